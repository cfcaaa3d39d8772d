"""Loops over messages: a browse, a group that is got, replies."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Final, TypeVar

from ..client import browsing, requesting, unit_of_work
from ..errors import NoMessageAvailable
from ..model.message import Got
from ..model.options import GetOptions
from ..rules.grouping import Numbers
from .jobs import finished
from .lanes import Connection, Lane
from .sharing import Sharing

T = TypeVar("T")
PAGE: Final = 100  # messages of a group that are fetched at once


class Browsing(AsyncIterator[Got]):
    """The messages that a browse shows; made by `browse`. See `inorder.Browsing`."""

    def __init__(
        self,
        shared: Sharing,
        lane: Lane | None,
        begin: Callable[[Connection], browsing.Browsing],
        after: str | None,
    ) -> None:
        self._shared, self._lane, self._begin, self._after = shared, lane, begin, after
        self._loop: browsing.Browsing | None = None

    async def __anext__(self) -> Got:
        if self._lane is None:
            seat = self._shared.seat()
            found = await self._shared.run(seat, self._next)
            self._lane = seat.lane
        else:
            found = await self._shared.on(self._lane, "", self._next)
        if found is None:
            raise StopAsyncIteration
        return found

    def _next(self, connection: Connection) -> Got | None:
        if self._loop is None:
            self._loop = self._begin(connection)
        return next(self._loop, None)

    async def aclose(self) -> None:
        """Ends the loop early. Harmless when repeated."""
        if self._lane is not None and self._loop is not None:
            await self._lane.exit(self._loop.close)

    def __del__(self) -> None:
        if self._lane is not None and self._loop is not None:
            loop = self._loop
            self._lane.post(lambda _: loop.close())

    @property
    def token(self) -> str | None:
        """Where it stands, or stood at its end, for `browse(..., after=token)` (B-41); a relaxed browse has none."""
        return self._after if self._loop is None else self._loop.token

    @property
    def awaits(self) -> Numbers | None:
        """The member of a group that comes next (B-44); None: it is inside none. See `inorder.Browsing.awaits`."""
        return None if self._loop is None else self._loop.awaits


class Group(AsyncIterator[Got]):
    """The messages of a whole group that is got; made by `QueueManager.get_group`.

    Outside of a unit of work it has one of its own, committed when the loop asks for a message behind the last.
    """

    def __init__(self, shared: Sharing, queue: str, options: GetOptions) -> None:
        self._shared, self._queue, self._options = shared, queue, options
        self._lane: Lane | None = None
        self._unit: unit_of_work.UnitOfWork | None = None
        self._messages: Iterator[Got] = iter(())
        self._page: deque[Got] = deque()
        self._has_more = self._is_new = True

    async def __anext__(self) -> Got:
        if self._is_new:
            await self._begin()
        elif not self._page and self._has_more and self._lane is not None:
            self._keep(await self._shared.on(self._lane, "get_group", lambda _: self._next_page()))
        if self._page:
            return self._page.popleft()
        unit, self._unit = self._unit, None
        if unit is not None and self._lane is not None:
            await self._lane.exit(lambda: unit.__exit__(None, None, None))
        raise StopAsyncIteration

    async def _begin(self) -> None:
        def take(connection: Connection, waits: bool) -> list[Got]:
            wait = self._options.wait if waits else 0
            self._messages = connection.get_group(
                self._queue, wait=wait, match=self._options.match, read_order=self._options.read_order
            )
            return self._next_page()

        seat = self._shared.seat("get_group")
        options = replace(self._options, syncpoint=None)  # it is in one by `take`
        page = await self._shared.take(seat, self._queue, options, take, self)
        self._is_new, self._lane = False, seat.lane
        self._keep(page)

    def _next_page(self) -> list[Got]:
        return list(itertools.islice(self._messages, PAGE))

    def _keep(self, page: list[Got]) -> None:
        self._page.extend(page)
        self._has_more = len(page) == PAGE

    def adopt(self, lane: Lane, unit: unit_of_work.UnitOfWork, _: Connection | None) -> None:
        """The group was got in a unit of work of its own."""
        self._lane, self._unit = lane, unit

    async def aclose(self) -> None:
        """Ends the loop early: what it had got returns to its place. Harmless when repeated."""
        unit, self._unit = self._unit, None
        self._page.clear()
        self._is_new = self._has_more = False
        if unit is not None and self._lane is not None:
            await self._lane.exit(lambda: _back_out(unit))

    def __del__(self) -> None:
        if self._unit is not None and self._lane is not None:
            unit = self._unit
            self._lane.post(lambda _: _back_out(unit))


def _back_out(unit: unit_of_work.UnitOfWork) -> None:
    unit.__exit__(asyncio.CancelledError, asyncio.CancelledError(), None)


class Replies(AsyncIterator[Got]):
    """The replies to one request, as they come; made by `QueueManager.replies`."""

    def __init__(self, shared: Sharing, ask: Callable[[Connection], requesting.Replies]) -> None:
        self._shared, self._ask = shared, ask
        self._replies: requesting.Replies | None = None

    @property
    def message_id(self) -> bytes | None:
        """Of the request, when it was put."""
        return None if self._replies is None else self._replies.message_id

    async def __anext__(self) -> Got:
        lane = self._shared.asking()
        if self._replies is None:
            self._replies = await finished(lane.submit(self._ask))
        replies = self._replies

        async def look() -> Got:
            found = await finished(lane.submit(lambda _: _reply(replies)))
            if found is None:
                raise NoMessageAvailable("no reply is there yet")
            return found

        try:
            if wait := replies.left:
                return await self._shared.awaited(replies.reply_queue, replies, 0, wait, lambda _: look())
        except NoMessageAvailable:
            pass
        found = await finished(lane.submit(lambda _: _last_reply(replies)))
        if found is None:
            raise StopAsyncIteration
        return found


def _reply(replies: requesting.Replies) -> Got | None:
    """The next reply, if it is there."""
    try:
        return replies.next_within(0)
    except (NoMessageAvailable, StopIteration):
        return None


def _last_reply(replies: requesting.Replies) -> Got | None:
    """The same when time is over. Raises: NoMessageAvailable, as the loop."""
    try:
        return replies.next_within(0)
    except StopIteration:
        return None
