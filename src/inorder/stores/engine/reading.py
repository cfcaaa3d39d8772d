"""One get or browse request in one operation: finds, judges and takes a message, and repeats that up to `most`
times.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ...errors import (
    InorderError,
    LeaseOver,
    NoMessageUnderCursor,
    OrderSelfBlocked,
    QueueCondition,
    Reason,
    UnitNotFound,
    UnitTooLarge,
)
from ...model.attributes import QueueAttributes
from ...model.message import ANY_GROUP, ANY_SEGMENT, EarlierPending, Got, Message
from ...rules import gets
from ...rules.gets import GetVerdict
from ...rules.grouping import GroupState, Wanted, is_head, wanted, wanted_by
from ...rules.lifecycle import Event, Presented, State
from ...rules.ordering import UNSET, Cursor, Decision, Pending, blocks_itself, read_order
from ...rules.selectors import selector_of
from ..seam.queued import NEVER, Far, QueuedMessage, Reader, as_got, available, presented
from ..seam.records import GetOutcome, GetRequest, Rest
from ..seam.tables import MarkRow, UnitRow
from . import group_readers
from .group_records import Entry
from .incremental_search import NOT_YET, Ahead, changes_by_others, lasts, look_ahead
from .operation import Operation
from .process import OpenHandle
from .queue import LocalQueue
from .settling import happen

REST_MESSAGES, REST_BYTES = 256, 1 << 20  # of a large group, read at once


class Found(NamedTuple):
    """The result of a search: one row, or the segments of a logical message.

    Args:
        earlier: for a notify call: the pending messages before it.
        withheld, pending, blockers: for a strict call, as in `rules.ordering.Decision`.
    """

    wanted: Wanted
    rows: Sequence[QueuedMessage]
    earlier: Sequence[Pending] = ()
    withheld: Pending | None = None
    pending: Pending | None = None
    blockers: Sequence[Sequence[Pending]] = ()


class Reading:
    """A get request on its queue.

    Args:
        waits: the call will wait if it gets nothing.
        ahead: how far the call has searched ahead.

    Attributes:
        in_its_way: if a strict call got nothing: for each level at which it waits, the connections that must act first;
            None if it waits for no connection.
    """

    def __init__(
        self,
        operation: Operation,
        handle: OpenHandle,
        queue: LocalQueue,
        request: GetRequest,
        queue_attributes: QueueAttributes,
        *,
        waits: bool = False,
        ahead: Ahead = NOT_YET,
    ) -> None:
        self.operation, self.handle, self.queue, self.request = operation, handle, queue, request
        self.manager, self.waits, self.ahead = operation.manager, waits, ahead
        order = read_order(queue_attributes.read_order, request.options.read_order or handle.options.read_order)
        # The order does not apply to a message chosen by the cursor (B-17).
        self.strict = order == "strict" and not request.options.by_cursor
        self.notify = order == "notify" and not request.options.by_cursor
        self.in_its_way: Sequence[frozenset[int]] | None = None
        self._bytes = 0  # of bodies, if they are limited
        self.reader = self._reader()

    def _reader(self) -> Reader:
        options, queue = self.request.options, self.queue
        interval = self.manager.mark_interval
        in_unit = self.request.syncpoint or options.syncpoint_if_persistent
        if in_unit:
            unit = self.handle.connection.unit
        else:
            held_by = self.operation.held_by(queue, options.confirm_id) if options.confirm_id else None
            unit = None if held_by is None else held_by.id
        lock = queue.named_unit("lock", str(options.lock_id)) if options.lock_id else None
        return Reader(
            handle=self.handle.id,
            connection=self.handle.connection.id,
            co_op=self.handle.options.co_op,
            now=self.operation.now,
            mark_interval=math.inf if interval is None else interval,
            unit=unit,
            lock_id=options.lock_id,
            lock=0 if lock is None else lock.id,
            unmarked=options.unmarked,
            passed=self.ahead.passed,
            noted=self.ahead.noted,
            asked_at=self.ahead.asked_at,
            asks=self.ahead.asks if self._may_look_ahead() else math.inf,
            lease=self.handle.connection.unit if self.handle.connection.is_leased else None,
        )

    def _may_look_ahead(self) -> bool:
        """Whether a message that does not fit the call's selector now can be skipped for good."""
        options, selector = self.request.options, selector_of(self.request.options.match)
        if selector is None:
            return False
        return not self.strict or not (options.unmarked or changes_by_others(selector))

    def look_ahead(self) -> Ahead:
        """Searches one step ahead; `run` follows when that is over."""
        options, before = self.request.options, self.ahead
        selector = selector_of(options.match)
        if selector is None or not self._may_look_ahead():
            return before._replace(is_over=True)
        if not lasts(self.queue, options, selector):
            before = before._replace(lasts=False)
        state, cursor = gets.begin(options, self.request.state, self.request.cursor)
        above = cursor if options.browse else UNSET
        asked_at = self.operation.now if before.asked_at is None else before.asked_at
        reader = self.reader._replace(asks=math.inf, asked_at=asked_at)
        most = 1 if self.request.one_group else self.request.most
        looked_for, logical = wanted(state, options), options.logical
        if looked_for.selector is None:  # inside a group its numbers give the next member
            return before._replace(is_over=True)
        return look_ahead(self.queue, looked_for, reader, above, most, before, logical=logical, strict=self.strict)

    def run(self) -> GetOutcome:
        request = self.request
        gets.check_browse_mode(request.options, request.cursor, strict=self.strict)
        state, cursor = gets.begin(request.options, request.state, request.cursor)
        messages: list[Got] = []
        outcome = GetOutcome(messages, request.state, request.cursor)
        while len(messages) < request.most:
            if request.one_group and messages:
                self.request = request._replace(options=gets.within_group(request.options, state))
            try:
                if messages:  # the first message may have begun the call's own unit
                    self.reader = self._reader()._replace(asks=math.inf)
                found = self._find(state, cursor)
                if found.rows:
                    found = found._replace(rows=self._read(state, found.rows))
                verdict = self._judge(state, found)
                unit = self._unit(verdict)
            except Far:
                return outcome._replace(is_far=True)
            except InorderError:
                if messages and not request.one_group:
                    break  # the next call raises it
                raise
            if verdict is None:
                return self._nothing_more(outcome, found)
            messages.append(self._with_earlier(verdict.message, found))
            if not verdict.takes:
                break
            cursor = self._do(cursor, found, verdict, unit)
            self._forget_noted(found.rows)
            if verdict.in_unit and outcome.before_unit is None:
                outcome = outcome._replace(before_unit=state)
            state = verdict.state
            outcome = outcome._replace(state=state, cursor=cursor)
            if self._is_enough(verdict):
                break
        return outcome

    def _forget_noted(self, rows: Sequence[QueuedMessage]) -> None:
        if self.ahead.noted:
            numbers = {row.number for row in rows}
            self.ahead = self.ahead._replace(noted=tuple(one for one in self.ahead.noted if one.number not in numbers))

    def _is_enough(self, verdict: GetVerdict) -> bool:
        if self.request.one_group:
            return not (verdict.state.group_open or verdict.state.message_open)
        if self.request.most_bytes is not None:
            self._bytes += len(verdict.message.body)
            if self._bytes >= self.request.most_bytes:
                return True
        return verdict.message.warning is not None

    def _with_earlier(self, message: Message, found: Found) -> Got:
        got: Got = message  # type: ignore[assignment]  # it was made from a `Got`
        if found.earlier:
            first = found.earlier[0]
            earlier = EarlierPending(len(found.earlier), first.place, first.kind.value)
            got = message.with_values(earlier_pending=earlier)  # type: ignore[assignment]
        return got

    def _nothing_more(self, outcome: GetOutcome, found: Found) -> GetOutcome:
        """Ends the call: there is nothing more, or nothing that the order allows."""
        if outcome.messages:
            return outcome
        if self.waits or not found.withheld:
            self._release_if_browse_moved()
        if blocks_itself(found.blockers, self.handle.connection.id):
            raise OrderSelfBlocked(
                "the call would wait for messages that its own connection holds: commit or back out first"
            )
        levels = found.blockers
        if self.strict and found.pending and found.wanted.member:
            levels = [[found.pending]]
            if self.waits and blocks_itself(levels, self.handle.connection.id):
                raise OrderSelfBlocked("this connection itself holds the next member: commit or back out first")
        self.in_its_way = [frozenset(one.holder for one in level if one.holder is not None) for level in levels] or None
        pending = found.withheld or found.pending
        age = None if pending is None else max(0.0, self.operation.now - pending.since)
        return outcome._replace(withheld=found.withheld, pending=pending, age=age)

    def look_again_at(self) -> float | None:
        """After a call that got nothing: returns when time alone may make a message available."""
        return self.operation.backend.look_again_at(self.queue, self.reader, strict=self.strict)

    # --- find

    def _find(self, state: GroupState, cursor: Cursor) -> Found:
        options, queue = self.request.options, self.queue
        if options.by_cursor:
            looked_for = Wanted(joins=options.complete)
            return Found(looked_for, self._under_cursor(cursor, looked_for))
        looked_for = wanted(state, options)
        if self.strict:
            return self._found_strictly(looked_for, self._decide(looked_for, cursor))
        after = cursor.after(logical=options.logical) if options.browse else None
        rows = queue.find(looked_for, self.reader, after)
        if not rows:
            self._check_token_is_free()
        if not self.notify:
            return Found(looked_for, rows)
        if not rows:
            pending = queue.earlier(None, looked_for, self.reader, after, logical=options.logical)
            return Found(looked_for, rows, pending=pending[0] if pending else None)
        earlier = queue.earlier(rows[0], looked_for, self.reader, after, logical=options.logical)
        return Found(looked_for, rows, earlier)

    def _decide(self, looked_for: Wanted, cursor: Cursor) -> Decision[QueuedMessage]:
        options = self.request.options
        above = cursor if options.browse else UNSET
        return self.queue.decide(looked_for, self.reader, above, logical=options.logical)

    def _found_strictly(self, looked_for: Wanted, decision: Decision[QueuedMessage]) -> Found:
        rows: Sequence[QueuedMessage] = ()
        if decision.row is not None:
            rows = self.queue.pieces(decision.row, looked_for, self.reader)
        return Found(looked_for, rows, (), decision.withheld, decision.pending, decision.blockers)

    def _under_cursor(self, cursor: Cursor, looked_for: Wanted) -> Sequence[QueuedMessage]:
        row = self.queue.row(cursor.number)
        if row is None or not available(row, self.reader):
            raise NoMessageUnderCursor(f"the browse cursor on {self.handle.name} is on no message")
        gets.check_under_cursor(self.request.options, row.message)
        return self.queue.pieces(row, looked_for, self.reader)

    def _check_token_is_free(self) -> None:
        """Refuses a browse for unmarked messages whose token belongs to a marked one (R3.24)."""
        options = self.request.options
        if not (options.unmarked and "token" in options.match.fields):
            return
        after = self.request.cursor.place if options.browse == "next" else None
        marked = self.queue.find(wanted_by(options.match), self.reader._replace(unmarked=False), after)
        if (
            self.reader.co_op
            and marked
            and not self.operation.backend.select(MarkRow, message=marked[0].number, handle=self.handle.id)
        ):
            raise QueueCondition(
                "the message of this token is marked by the cooperating set", reason=Reason.MSG_MARKED_BROWSE_CO_OP
            )

    # --- judge

    def _read(self, state: GroupState, rows: Sequence[QueuedMessage]) -> Sequence[QueuedMessage]:
        """Returns the rows with their bodies. Raises: UnitTooLarge, if the unit has no room for the group that they
        begin.
        """
        if self.request.one_group and not (state.group_open or state.message_open):
            self._check_group_fits(rows[0])
        most = self.request.options.buffer if len(rows) == 1 else None  # a joined message is cut after joining
        return self.operation.backend.read(rows, most)

    def _judge(self, state: GroupState, found: Found) -> GetVerdict | None:
        if not found.rows:
            return None
        return gets.judge(
            [as_got(row, self.operation.now) for row in found.rows],
            self.request.options,
            state,
            found.wanted,
            syncpoint=self.request.syncpoint,
            unit_open=self.handle.connection.unit is not None,
        )

    def _check_group_fits(self, head: QueuedMessage) -> None:
        """A group is taken whole or not at all, so the unit must have room for all of it (R5.8)."""
        used, limit = self.handle.connection.calls, self.manager.max_uncommitted
        size = self.operation.backend.gets_of_group(self.queue.id, head.message.group_id)
        if used + size > limit:
            raise UnitTooLarge(
                f"the group has {size:,} messages, but a unit of work holds at most {limit:,} and already has {used:,}",
                limit=limit,
            )

    # --- do

    def _do(self, cursor: Cursor, found: Found, verdict: GetVerdict, unit: UnitRow | None) -> Cursor:
        rows = found.rows[: verdict.takes]
        if self.request.options.browse:
            return self._browse(rows, cursor, heads=found.wanted.heads)
        for row in rows:
            self._take(row, unit)
        self._note_group(found.rows[0], verdict.state, unit, logical=self.request.options.logical)
        return cursor

    def _unit(self, verdict: GetVerdict | None) -> UnitRow | None:
        """Returns the unit that will hold the message, if any. Raises: UnitTooLarge 2024."""
        if verdict is None or not verdict.takes or self.request.options.browse:
            return None
        if verdict.in_unit:
            return self.operation.enlist(self.handle.connection, 1, self.manager.max_uncommitted)
        if self.request.options.confirm_id:
            return self.operation.confirm_unit(
                self.handle.connection.holder, self.queue, self.request.options.confirm_id
            )
        return None

    def _take(self, row: QueuedMessage, unit: UnitRow | None, **values: Any) -> None:
        """Gets a message for good or into a unit; the handle's browse lock and its marks end (R3.70, R3.74)."""
        lock = presented(row, self.reader)
        if row.state is State.LOCKED and row.locked_handle is not None:
            unlocked = happen(self.operation, self.queue, row, Event.UNLOCK, presents=lock)
            assert unlocked is not None
            row, lock = unlocked, presented(unlocked, self.reader)
        if self.queue.state.has_marks:
            self.operation.backend.remove_records(MarkRow, message=row.number)
        event = Event.GET if unit is None else Event.GET_HELD
        happen(self.operation, self.queue, row, event, unit, presents=lock, co_op_marked_at=NEVER, **values)

    def _note_group(self, first: QueuedMessage, state: GroupState, unit: UnitRow | None, *, logical: bool) -> None:
        """Records that a logical get enters a group, or a message in segments, or leaves it by going elsewhere (B-45).

        The entry is removed with the last member, whichever call takes that.
        """
        message = first.message
        held = None if unit is None else unit.id
        open_unit = None if self.reader.application else self.handle.connection.unit
        if logical and is_head(message) and (state.group_open or state.message_open):
            group_readers.leave(self.queue, self.reader.id, held, open_unit)
            undone_with = None if unit is None or unit.kind == "confirm" else unit.id  # an undo changes no handle
            group_readers.enter(
                self.queue, self.operation.number(), self.reader.id, message.group_id, self._entry(first), undone_with
            )
        else:  # the handle is at this message now, so it has left every other group (R3.30)
            but = message.group_id if message.flags & (ANY_GROUP | ANY_SEGMENT) else None
            group_readers.leave(self.queue, self.reader.id, held, open_unit, but=but)

    def _entry(self, head: QueuedMessage) -> Entry:
        connection = self.handle.connection
        by = self.reader.application or connection.program.name
        owner = None if self.reader.application else connection.id
        head_of_group = as_got(head, self.operation.now).with_values(body=b"", place=None)
        return Entry(head.place, head_of_group, owner, by, self.operation.now)

    def _browse(self, rows: Sequence[QueuedMessage], cursor: Cursor, *, heads: bool) -> Cursor:
        """Carries out a browse: frees the old lock, sets the new lock and marks, and moves the cursor."""
        options, handle, queue = self.request.options, self.handle, self.queue
        first = rows[0]
        if self._release_if_browse_moved():  # the lock may have been on one of these
            rows = [row for row in (queue.row(row.number) for row in rows) if row is not None]
        for row in rows:
            if options.lock and row.state is State.UNLOCKED:
                row = self._lock(row)  # noqa: PLW2901 - its new state
            if options.mark_handle:
                self.operation.backend.save(MarkRow(row.number, handle.id))
            if options.unmark_handle:
                self.operation.backend.remove_records(MarkRow, message=row.number, handle=handle.id)
            if options.mark_co_op or options.unmark_co_op:
                marked_at = self.operation.now if options.mark_co_op and not options.unmark_co_op else NEVER
                self.operation.backend.write(row, row._replace(co_op_marked_at=marked_at))
            if options.unmark_co_op:
                self.operation.touch(queue)
        if options.browse == "cursor":
            return cursor
        return cursor.moved(first.place, first.number, logical=options.logical, head=heads, strict=self.strict)

    def _lock(self, row: QueuedMessage) -> QueuedMessage:
        """Locks the row for the handle (R3.69)."""
        since = self.operation.now
        locked = happen(
            self.operation, self.queue, row, Event.BROWSE_LOCK, locked_handle=self.handle.id, locked_at=since
        )
        assert locked is not None
        self.handle.has_locked = True
        return locked

    def _release_if_browse_moved(self) -> bool:
        """Frees the handle's lock if the browse moves on, finds nothing or may wait (R3.70). Returns whether there was
        one.
        """
        options = self.request.options
        if options.browse in ("first", "next") or (options.browse == "cursor" and not options.lock):
            return release(self.operation, self.handle, self.queue)
        return False


def release(operation: Operation, handle: OpenHandle, queue: LocalQueue) -> bool:
    """Frees the handle's browse lock. Returns whether there was one (R3.71)."""
    if not handle.has_locked:
        return False
    operation.remember(handle, "has_locked")
    handle.has_locked = False
    rows = operation.backend.rows(locked_handle=handle.id)
    for row in rows:
        happen(operation, queue, row, Event.UNLOCK, presents=Presented.RIGHT)
    return bool(rows)


def read_rest(operation: Operation, handle: OpenHandle, rest: Rest) -> tuple[list[Got], Rest | None]:
    """Returns the next page of a large group that a unit of work has got, and the rest after it: `Store.read_rest`."""
    if handle.connection.unit != rest.unit or handle.connection.ended != rest.ended:
        raise UnitNotFound(
            "the unit of work that took this group has ended: read the whole group before you settle the unit"
        )
    where = {
        "queue": handle.queue,
        "group_id": rest.group_id,
        "unit": rest.unit,
        "first": rest.sequence_number + 1,
        "state": State.GET_UNCONFIRMED,
    }
    rows = operation.backend.rows(REST_MESSAGES, **where)
    if not rows:
        raise LeaseOver("the lease that took this group has ended before the whole group was read")
    rows = rows[: page_end((row.message.length for row in rows), REST_MESSAGES, REST_BYTES)]
    messages = [as_got(row, rest.got_at) for row in operation.backend.read(rows)]
    left = rest.messages - len(messages)
    return messages, rest._replace(messages=left, sequence_number=messages[-1].sequence_number) if left else None


def page_end(lengths: Iterable[int], rows_max: int, bytes_max: int) -> int:
    """Returns how many rows of these lengths make a page: at least one."""
    count = size = 0
    for length in lengths:
        if count and (count >= rows_max or size + length > bytes_max):
            break
        count, size = count + 1, size + length
    return count
