"""Gets and browses as operations: those that take messages, those that only look, and the steps of a long search."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

from ...errors import ConnectionBroken, LeaseOver, NoMessageUnderCursor, OrderDeadlock, OutcomeUnknown, WaitEnded
from ...model.message import Got
from ...support.locks import AtEnd
from ..seam.protocol import May
from ..seam.queued import NotedMessage, onlooker
from ..seam.records import GetOutcome, GetRequest, Locked, LockRequest, Rest
from ..seam.telemetry import event, first, length, of_request, unit_of
from . import confirming
from .bulk import Shortcuts
from .catalog import get_allowed
from .incremental_search import NOT_YET, Ahead, rest
from .objects import find_object
from .operation import Operation, in_operation
from .paging import PageReading
from .process import OpenConnection, OpenStore
from .reading import Reading, read_rest
from .settling import earliest, lease_end, tidied
from .waiting import WATCHING, Look, WaitingRoom
from .waits import Looks, begin_wait, end_wait

Accepts = Callable[[Got], object]
Looked = tuple[GetOutcome, float | None]
"""The result of a look, and when to look again even if nothing has changed."""


def _count(outcome: GetOutcome) -> int:
    """Returns the number of messages that a get returned, including those still to be read."""
    return len(outcome.messages) + (0 if outcome.rest is None else outcome.rest.messages)


class Search:
    """The progress of the looks of one call in searching ahead."""

    def __init__(self) -> None:
        self.ahead = NOT_YET


class GettingVerbs(OpenStore):
    """The operations that get and browse; `protocol.Store` and `protocol.LocalStore` document them."""

    shortcuts: Shortcuts | None
    waiting: WaitingRoom

    def get(self, request: GetRequest) -> GetOutcome:
        return self._look(request, waits=False)[0]

    def get_if(self, request: GetRequest, accepts: Accepts, *, waits: bool = False) -> GetOutcome:
        return self._wait(request, accepts) if waits else self._look(request, waits=False, accepts=accepts)[0]

    def wait(self, request: GetRequest) -> GetOutcome:
        return self._wait(request)

    def _wait(self, request: GetRequest, accepts: Accepts | None = None) -> GetOutcome:
        self.refuse_wait()
        handle = self.handle(request.handle)
        look = Looks(functools.partial(self._look, request, waits=True, search=Search(), accepts=accepts))
        with AtEnd(self._end_wait, handle.connection) as again, again:
            self.waiting.wait(handle.connection.id, handle.queue_name, request.options, look)
        assert look.outcome is not None
        return look.outcome

    def wait_apart(
        self, request: GetRequest, done: Callable[[GetOutcome | BaseException], object], may: May | None = None
    ) -> None:
        self.refuse_wait()
        handle = self.handle(request.handle)
        look = Looks(functools.partial(self._look, request, waits=True, search=Search(), may=may))

        def ended(error: BaseException | None) -> None:
            self._end_wait(handle.connection)
            outcome = look.outcome if error is None else error
            assert outcome is not None
            done(outcome)

        self.waiting.wait_apart(handle.connection.id, handle.queue_name, request.options, look, ended)

    @event(
        "get",
        "messages bytes",
        "unit browse withheld",
        handle=of_request,
        measured=lambda found, *_, **__: [_count(found[0]), length(found[0].messages)],
        about=lambda found, request, **_: [
            unit_of(request, in_unit=request.syncpoint),
            request.options.browse is not None,
            found is not None and found[0].withheld is not None,
        ],
        gives=lambda found: found[0].messages,
    )
    def _look(
        self,
        request: GetRequest,
        *,
        waits: bool,
        search: Search | None = None,
        accepts: Accepts | None = None,
        may: May | None = None,
    ) -> Looked:
        """Looks once. Also returns when to look again even if nothing has changed."""
        is_again = False
        while True:
            try:
                if request.options.match.selector is not None:
                    search = search or Search()
                    found = self._look_far(request, waits, search, accepts, may)
                elif request.options.browse:
                    found = self._look_or_take(request, waits, NOT_YET, may)
                else:
                    found = self._take(request, waits, accepts=accepts, may=may)
            except (NoMessageUnderCursor, OrderDeadlock):
                if is_again or not self.end_dead_processes():
                    raise
            else:
                if is_again or found[0].messages or not self.end_dead_processes():
                    return found
            is_again = True

    @event(
        "browse_page",
        "messages bytes",
        handle=lambda request, *_: request.handle,
        measured=lambda found, *_: [len(found), sum(length(one.messages) for one in found)],
    )
    def browse_page(self, request: GetRequest, most: int) -> list[GetOutcome]:
        return self._page(request, most) if self._only_looks(request) else []

    def _end_wait(self, connection: OpenConnection) -> None:
        # If the connection has ended, its wait has too, and the store may be closed.
        if connection.waits and connection.id in self.connections:
            with contextlib.suppress(ConnectionBroken, OutcomeUnknown):  # as above; the caller still gets its answer
                self._forget_wait(connection)

    @in_operation(though_stopped=True, alone=False)
    def _forget_wait(self, operation: Operation, connection: OpenConnection) -> None:
        if connection.id in self.connections:
            end_wait(operation, connection)

    @event("read_rest", "messages bytes", handle=first, measured=lambda found, *_: [len(found[0]), length(found[0])])
    @in_operation(writes=False)
    def read_rest(self, operation: Operation, handle: int, rest: Rest) -> tuple[list[Got], Rest | None]:
        return read_rest(operation, self.handle(handle), rest)

    def end_waits(self, owner: int) -> bool:
        return self.waiting.dismiss(owner, WaitEnded("another thread has ended the waits of this connection"))

    def watch(self, handle: int, changed: Callable[[], object]) -> None:
        self.refuse_wait()
        one = self.handle(handle)
        self.waiting.watch(one.connection.id, one.queue_name, self._look_for(handle, changed))

    def watch_apart(self, handle: int, changed: Callable[[], object], done: Callable[[BaseException], object]) -> None:
        self.refuse_wait()
        one = self.handle(handle)

        def ended(error: BaseException | None) -> None:
            assert error is not None, "a watch ends only by an error"
            done(error)

        look = self._look_for(handle, changed)
        self.waiting.wait_apart(one.connection.id, one.queue_name, WATCHING, look, ended, is_told=False)

    def _look_for(self, handle: int, changed: Callable[[], object]) -> Look:
        def look() -> tuple[bool, float | None]:
            again_at = self._expect(handle)
            changed()
            return False, again_at

        return look

    @in_operation(alone=False)
    def _expect(self, operation: Operation, handle: int) -> float | None:
        """Announces a look for `watch`. Returns when time alone may make a message available."""
        one = self.handle(handle)
        queue = tidied(operation, one)
        self.host.looked(one.queue, one.queue_name)
        again_at = operation.backend.look_again_at(queue, onlooker(operation.now), strict=True)
        return earliest(again_at, lease_end(operation))

    def _look_far(
        self, request: GetRequest, waits: bool, search: Search, accepts: Accepts | None, may: May | None
    ) -> Looked:
        """Searches with a selector. A long search looks ahead first, and so does a request for many messages."""
        ahead, is_far = search.ahead, request.most > 1 and not request.one_group
        while True:
            if is_far:
                before, ahead = ahead.passed, ahead._replace(is_over=False)
                while not ahead.is_over:
                    began = perf_counter()
                    ahead = self._step_ahead(request, ahead)
                    if not ahead.is_over:
                        rest(began)
                if ahead.passed == before:  # no progress: the search continues alone, without a budget
                    ahead = ahead._replace(asks=math.inf)
            if request.options.browse:
                found = self._look_or_take(request, waits, ahead, may)
            else:
                found = self._take(request, waits, ahead, accepts, may)
            if not found[0].is_far:
                search.ahead = ahead if ahead.lasts else NOT_YET
                return found
            is_far = True

    @in_operation(writes=False)
    def _step_ahead(self, operation: Operation, request: GetRequest, ahead: Ahead) -> Ahead:
        handle = self.handle(request.handle)
        queue = operation.queue_of(handle)
        resolved = get_allowed(operation, handle, queue)
        return Reading(operation, handle, queue, request, resolved, ahead=ahead).look_ahead()

    def _look_or_take(self, request: GetRequest, waits: bool, ahead: Ahead, may: May | None) -> Looked:
        if not waits and self._only_looks(request):
            outcome = self._browse(request, ahead)
            if outcome is not None:
                return outcome, None
        return self._take(request, waits, ahead, may=may)

    @in_operation(writes=False)
    def _browse(self, operation: Operation, request: GetRequest, ahead: Ahead) -> GetOutcome | None:
        """Runs a browse that changes nothing; None: something must be tidied first."""
        handle = self.handle(request.handle)
        queue = operation.queue_of(handle)
        if queue.has_work(operation.now):
            return None
        resolved = get_allowed(operation, handle, queue)
        return Reading(operation, handle, queue, request, resolved, ahead=ahead).run()

    @in_operation(writes=False)
    def _page(self, operation: Operation, request: GetRequest, most: int) -> list[GetOutcome]:
        handle = self.handle(request.handle)
        queue = operation.queue_of(handle)
        if queue.has_work(operation.now):
            return []
        resolved = get_allowed(operation, handle, queue)
        return PageReading(operation, handle, queue, request, resolved).outcomes(most)

    @in_operation(alone=False, together=True, unless_dead=(LeaseOver,))
    def _take(
        self,
        operation: Operation,
        request: GetRequest,
        waits: bool,
        ahead: Ahead = NOT_YET,
        accepts: Accepts | None = None,
        may: May | None = None,
    ) -> Looked:
        handle = self.handle(request.handle)
        if handle.connection.is_leased and (request.syncpoint or request.options.syncpoint_if_persistent):
            operation.lease_of(handle.connection)
        queue = tidied(operation, handle)
        if handle.connection.waits:
            end_wait(operation, handle.connection)
        resolved = get_allowed(operation, handle, queue)
        if self.shortcuts is not None:
            taken = self.shortcuts.get(operation, handle, queue, request, resolved)
            if taken is not None:
                if may is not None:
                    may(functools.partial(_attributes, operation))
                return (taken if accepts is None else _accepted(accepts, taken)), None
        reading = Reading(operation, handle, queue, request, resolved, waits=waits, ahead=ahead)
        outcome = reading.run()
        if accepts is not None:
            _accepted(accepts, outcome)
        if outcome.messages or outcome.is_far or not waits:
            if may is not None and outcome.messages:
                may(functools.partial(_attributes, operation))
            return outcome, None
        begin_wait(operation, handle, outcome, reading.in_its_way)
        return outcome, earliest(reading.look_again_at(), lease_end(operation))

    def _only_looks(self, request: GetRequest) -> bool:
        """Whether the call is a browse that changes nothing and therefore waits for no writer."""
        options, handle = request.options, self.handles.get(request.handle)
        if not options.browse or handle is None or handle.has_locked:
            return False
        marks = options.mark_handle or options.mark_co_op or options.unmark_handle or options.unmark_co_op
        connection = self.connections.get(handle.connection.id)  # another thread may be ending it
        return not (options.lock or marks or connection is None or connection.waits)

    # --- browse and lock

    def _look_and_lock(self, request: LockRequest) -> Locked:
        """Browses and locks. With a selector it looks ahead first, and then locks the noted messages and later
        arrivals.
        """
        if request.match.selector is None:
            return self._lock(request, NOT_YET)
        ahead, noted = NOT_YET, list[NotedMessage]()
        while not ahead.is_over:
            began = perf_counter()
            left = None if request.most is None else request.most - sum(one.suits for one in noted)
            ahead = self._step_to_lock(replace(request, most=left), ahead._replace(noted=()))
            noted += ahead.noted
            if not ahead.is_over:
                rest(began)
        return self._lock(request, ahead._replace(noted=tuple(sorted(noted))))

    @in_operation(writes=False)
    def _step_to_lock(self, operation: Operation, request: LockRequest, ahead: Ahead) -> Ahead:
        handle = self.handle(request.handle)
        queue = operation.queue_of(handle)
        get_allowed(operation, handle, queue)
        return confirming.look_ahead_to_lock(operation, handle, queue, request, ahead)

    @in_operation(ends_dead=True, alone=False)
    def _lock(self, operation: Operation, request: LockRequest, ahead: Ahead) -> Locked:
        handle = self.handle(request.handle)
        queue = tidied(operation, handle)
        get_allowed(operation, handle, queue)
        return confirming.browse_and_lock(operation, handle, queue, request, ahead)


def _attributes(operation: Operation, kind: str, name: str) -> str:
    return find_object(operation, kind, name).attributes


def _accepted(accepts: Accepts, outcome: GetOutcome) -> GetOutcome:
    """Returns the outcome, unless the caller refuses one of its messages."""
    for one in outcome.messages:
        accepts(one)
    return outcome
