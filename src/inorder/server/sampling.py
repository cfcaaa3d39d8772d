"""Reads the state of all queues, at most twice a second for any number of readers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from .. import aio
from ..client.inspection import QueueView

SAMPLE_SECONDS: Final = 0.5


class SampledQueues(NamedTuple):
    """The state of all local queues, by name. `at`: seconds of the loop's clock, which cannot be set."""

    at: float
    views: Sequence[QueueView]


class Samples:
    """The newest look."""

    def __init__(self, qm: aio.QueueManager) -> None:
        self._qm = qm
        self._newest: SampledQueues | None = None
        self._alone = asyncio.Lock()

    async def look(self) -> SampledQueues:
        """The state of the queues, at most `SAMPLE_SECONDS` old."""
        now = asyncio.get_running_loop().time
        async with self._alone:
            if self._newest is None or now() >= self._newest.at + SAMPLE_SECONDS:
                views = await self._qm.inspect.overview()
                self._newest = SampledQueues(now(), views)
            return self._newest
