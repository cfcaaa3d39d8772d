"""How all queues stand, looked at no more often than need be for any number of those who ask."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from .. import aio
from ..operating import QueueView

SAMPLE_SECONDS: Final = 0.5


class Samples:
    """What the newest look has shown."""

    def __init__(self, qm: aio.QueueManager) -> None:
        self._qm = qm
        self._views: Sequence[QueueView] = ()
        self._until = 0.0
        self._alone = asyncio.Lock()

    async def views(self) -> Sequence[QueueView]:
        """All local queues by name; at most `SAMPLE_SECONDS` old."""
        now = asyncio.get_running_loop().time
        async with self._alone:
            if now() >= self._until:
                self._views = await self._qm.overview()
                self._until = now() + SAMPLE_SECONDS
        return self._views
