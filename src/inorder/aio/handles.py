"""An open queue, for tasks."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from ..client import queue
from ..client.browsing import Browsing as SyncBrowsing
from ..model.options import BrowseKeywords, GetOptions, OpenOptions
from .lanes import Connection, Lane, joins
from .loops import Browsing
from .queue_calls import QueueCalls
from .sharing import Sharing

if TYPE_CHECKING:
    from typing_extensions import Unpack


P = ParamSpec("P")
T = TypeVar("T")


class Queue(QueueCalls):
    """An open queue; made by `QueueManager.open`.

    Its calls are made on the connection on which it was opened. Other tasks may make some, too, one after another.
    """

    def __init__(self, shared: Sharing, lane: Lane, opened: queue.Queue) -> None:
        self._shared, self._lane, self._handle = shared, lane, opened
        lane.handles.add(self)
        weakref.finalize(self, lane.post, lambda _: _close(opened)).atexit = False

    @property
    def name(self) -> str:
        """Of the queue: of a model, that of the queue that was made."""
        return self._handle.name

    @property
    def options(self) -> OpenOptions:
        """What it is open for."""
        return self._handle.options

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._handle.closed

    async def _call(self, method: Callable[Concatenate[queue.Queue, P], T], /, *given: P.args, **named: P.kwargs) -> T:
        part = joins(method.__name__, given, named)
        return await self._shared.on(self._lane, part, lambda _: method(self._handle, *given, **named))

    async def _get(self, method: Callable[..., T], options: GetOptions, /, *given: Any) -> T:
        outside = options.syncpoint is False or options.confirm_id or options.browse
        seat, at_once = self._shared.seat_of(self._lane, "" if outside else "get"), replace(options, wait=0)

        def call(_: Connection, waits: bool) -> T:
            return method(self._handle, *given, options if waits else at_once)

        return await self._shared.take(seat, self.name, options, call)

    def browse(
        self, options: GetOptions | None = None, *, after: str | None = None, **keywords: Unpack[BrowseKeywords]
    ) -> Browsing:
        """Copies every suitable message, in an `async for`; moves this handle's cursor. See `inorder.Queue.browse`."""

        def begin(_: Connection) -> SyncBrowsing:
            return self._handle.browse(options, after=after, **keywords)

        return Browsing(self._shared, self._lane, begin, after)

    async def __aenter__(self) -> Queue:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        opened = self._handle
        await self._lane.exit(lambda: opened.__exit__(kind, error, trace))

    def __repr__(self) -> str:
        return repr(self._handle)


def _close(opened: queue.Queue) -> None:
    if not opened.closed and not opened.session.closed:
        opened.close()
