"""Checks every few seconds whether the users of long event streams may continue, once for all streams of a user.

A stream looks up its user before it sends an event. An idle stream would continue for a user who was disabled, so a
task watches each user, token or certificate with streams at this worker. A stream that began in a session ends with
that session, even if its user has others.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from ..errors import InorderError
from .identity import Identity
from .logs import LOGGER

log = logging.getLogger(LOGGER)
EVERY_SECONDS: Final = 3.0
pause = asyncio.sleep

Again = Callable[[Identity], Awaitable[Identity | None]]
May = Callable[[Identity], bool]
Shown = tuple[str, str, str, str]  # name, session, token and subject of an identity


@dataclass(eq=False, slots=True)
class _Stream:
    may: May
    until: float
    ended: Callable[[], object]
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def end(self) -> None:
        if not self.over.is_set():
            self.over.set()
            self.ended()


@dataclass(eq=False, slots=True)
class _Watch:
    """The streams of one identity, and the task that looks it up."""

    streams: set[_Stream] = field(default_factory=set)
    task: asyncio.Task[None] | None = None


class ConnectedClients:
    """The users with streams at this worker.

    Args:
        again: looks up an identity, as `Authenticator.again`.
        now: returns seconds since 1970.
    """

    def __init__(self, again: Again, now: Callable[[], float] | None = None) -> None:
        self._again, self._now = again, now or time.time
        self._watches: dict[Shown, _Watch] = {}

    @contextmanager
    def watched(
        self,
        identity: Identity,
        may: May = lambda _: True,
        *,
        until: float = math.inf,
        ended: Callable[[], object] = lambda: None,
    ) -> Iterator[asyncio.Event]:
        """An event that is set within some seconds after the user was locked out or lost the authority.

        Args:
            may: whether the stream of an identity may continue.
            until: the end of the user's session, in seconds since 1970.
            ended: called when the event is set.
        """
        shown = (identity.name, identity.session, identity.token, identity.subject)
        watch, stream = self._watches.setdefault(shown, _Watch()), _Stream(may, until, ended)
        watch.streams.add(stream)
        if watch.task is None:
            watch.task = asyncio.create_task(self._look(identity, watch.streams))
        try:
            yield stream.over
        finally:
            watch.streams.remove(stream)
            if not watch.streams:
                watch.task.cancel()
                del self._watches[shown]

    async def _look(self, identity: Identity, streams: set[_Stream]) -> None:
        while True:
            await pause(EVERY_SECONDS)
            for one in streams:
                if self._now() >= one.until:
                    one.end()
            try:
                now = await self._again(identity)
            except InorderError as error:  # it may pass; each stream checks before it sends anything
                log.warning("the user of a stream could not be looked up: %s", error)
                continue
            except Exception:
                log.exception("the user of a stream could not be looked up")
                continue
            for one in streams:
                if now is None or not one.may(now):
                    one.end()
