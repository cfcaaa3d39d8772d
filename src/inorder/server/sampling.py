"""How all queues stand, looked at no more often than need be for any number of those who ask."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from .. import aio
from ..client.inspection import QueueView

SAMPLE_SECONDS: Final = 0.5


class SampledQueues(NamedTuple):
    """All local queues by name. `at`: seconds of the loop's clock, which is never set."""

    at: float
    views: Sequence[QueueView]


class Samples:
    """What the newest look has shown."""

    def __init__(self, qm: aio.QueueManager) -> None:
        self._qm = qm
        self._newest: SampledQueues | None = None
        self._alone = asyncio.Lock()

    async def look(self) -> SampledQueues:
        """How they stand; at most `SAMPLE_SECONDS` old."""
        now = asyncio.get_running_loop().time
        async with self._alone:
            if self._newest is None or now() >= self._newest.at + SAMPLE_SECONDS:
                views = await self._qm.inspect.overview()
                self._newest = SampledQueues(now(), views)
            return self._newest
