"""One get or browse request in one transaction: find, judge, do; as often as it asks. For every store."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Generic, NamedTuple

from ..attributes import ManagerAttributes, QueueAttributes
from ..errors import InorderError, NoMessageUnderCursor, OrderSelfBlocked, QueueCondition, Reason, UnitTooLarge
from ..message import ANY_GROUP, ANY_SEGMENT, EarlierPending, Message
from ..rules import gets
from ..rules.gets import Verdict
from ..rules.grouping import GroupState, Wanted, is_head, wanted
from ..rules.lifecycle import Event, State
from ..rules.ordering import UNSET, Cursor, Decision, Pending, blocks_itself, read_order
from .base import GetOutcome, GetRequest
from .rows import Entered, Reader, Row, as_got, available, lock_presented
from .shelf import Handle, Q, Transaction, U


class Found(NamedTuple):
    """What a get looked for, and the rows that it found: one, or the pieces of a logical message.

    Args:
        earlier: of a notify call: what was pending before it.
        withheld, pending, blockers: of a strict call, as in `rules.ordering.Decision`.
    """

    wanted: Wanted
    rows: Sequence[Row]
    earlier: Sequence[Pending] = ()
    withheld: Pending | None = None
    pending: Pending | None = None
    blockers: Sequence[Sequence[Pending]] = ()


class Reading(Generic[Q, U]):
    """A get request, and where it meets the queue.

    Attributes:
        in_its_way: after a strict call that was given nothing: for each level at which it waits, the connections
            that must act first; None if it waits for nobody in particular.
    """

    def __init__(
        self,
        verb: Transaction[Q, U],
        handle: Handle[U],
        queue: Q,
        request: GetRequest,
        queue_attributes: QueueAttributes,
        manager: ManagerAttributes,
    ) -> None:
        self.verb, self.handle, self.queue, self.request, self.manager = verb, handle, queue, request, manager
        order = read_order(queue_attributes.read_order, request.options.read_order or handle.options.read_order)
        # An explicit choice of a message is outside the promise (B-17).
        self.strict = order == "strict" and not request.options.by_cursor
        self.notify = order == "notify" and not request.options.by_cursor
        self.in_its_way: Sequence[frozenset[int]] | None = None
        self.reader = self._reader()

    def _reader(self) -> Reader:
        options, queue = self.request.options, self.queue
        interval = self.manager.mark_interval
        in_unit = self.request.syncpoint or options.syncpoint_if_persistent
        unit = self.handle.connection.unit if in_unit else self.verb.held_by(queue, options.confirm_id)
        return Reader(
            handle=self.handle.id,
            connection=self.handle.connection.id,
            co_op=self.handle.options.co_op,
            now=self.verb.now,
            mark_interval=math.inf if interval is None else interval,
            unit=unit,
            lock_id=options.lock_id,
            unmarked=options.unmarked,
        )

    def run(self) -> GetOutcome:
        request = self.request
        gets.check_browse_mode(request.options, request.cursor, strict=self.strict)
        state, cursor = gets.begin(request.options, request.state, request.cursor)
        messages: list[Message] = []
        outcome = GetOutcome(messages, request.state, request.cursor)
        while len(messages) < request.most:
            if request.one_group and messages:
                self.request = request._replace(options=gets.within_group(request.options, state))
            try:
                self.reader = self._reader()  # the call's own unit may have begun with its first message
                found = self._find(state, cursor)
                verdict = self._judge(state, found)
                unit = self._unit(verdict)
            except InorderError:
                if messages and not request.one_group:
                    break  # the next call meets it first, and raises it
                raise
            if verdict is None:
                return self._nothing_more(outcome, found)
            messages.append(self._told(verdict.message, found))
            if not verdict.takes:
                break
            cursor = self._do(cursor, found, verdict, unit)
            if verdict.in_unit and outcome.before_unit is None:
                outcome = outcome._replace(before_unit=state)
            state = verdict.state
            outcome = outcome._replace(state=state, cursor=cursor)
            if self._is_enough(verdict):
                break
        return outcome

    def _is_enough(self, verdict: Verdict) -> bool:
        if self.request.one_group:
            return not (verdict.state.group_open or verdict.state.message_open)
        return verdict.message.warning is not None

    def _told(self, message: Message, found: Found) -> Message:
        if not found.earlier:
            return message
        first = found.earlier[0]
        return message.with_values(earlier_pending=EarlierPending(len(found.earlier), first.place, first.kind.value))

    def _nothing_more(self, outcome: GetOutcome, found: Found) -> GetOutcome:
        """The call ends because there is nothing, or nothing that order allows."""
        self._release_if_browse_moved()
        if outcome.messages:
            return outcome
        if blocks_itself(found.blockers, self.handle.connection.id):
            raise OrderSelfBlocked("the call would wait for what its own connection holds: commit or back out first")
        levels = found.blockers
        if self.strict and found.pending and found.wanted.member:
            levels = [[found.pending]]
            if self.request.waits and blocks_itself(levels, self.handle.connection.id):
                raise OrderSelfBlocked("the next member is held by the call's own connection: commit or back out first")
        self.in_its_way = [frozenset(one.holder for one in level if one.holder is not None) for level in levels] or None
        pending = found.withheld or found.pending
        return outcome._replace(withheld=found.withheld, pending=pending, look_again_at=self._look_again_at())

    def _look_again_at(self) -> float | None:
        if not self.request.options.wait:
            return None
        now, queue = self.verb.now, self.queue
        times = [queue.next_delivery(now), queue.next_unmarking(self.reader), queue.next_lease_end(now)]
        if self.strict:
            times.append(queue.next_outcome(now))
        return min((time for time in times if time is not None), default=None)

    # --- find

    def _find(self, state: GroupState, cursor: Cursor) -> Found:
        options, queue = self.request.options, self.queue
        if options.by_cursor:
            looked_for = Wanted(joins=options.complete)
            return Found(looked_for, self._under_cursor(cursor, looked_for))
        looked_for = wanted(state, options)
        if self.strict:
            return self._found_strictly(looked_for, self._decide(looked_for, cursor))
        after = cursor.behind(logical=options.logical) if options.browse else None
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

    def _decide(self, looked_for: Wanted, cursor: Cursor) -> Decision[Row]:
        options = self.request.options
        above = cursor if options.browse else UNSET
        return self.queue.decide(looked_for, self.reader, above, logical=options.logical)

    def _found_strictly(self, looked_for: Wanted, decision: Decision[Row]) -> Found:
        rows: Sequence[Row] = ()
        if decision.row is not None:
            rows = self.queue.pieces(decision.row, looked_for, self.reader)
        return Found(looked_for, rows, (), decision.withheld, decision.pending, decision.blockers)

    def _under_cursor(self, cursor: Cursor, looked_for: Wanted) -> Sequence[Row]:
        row = self.queue.row(cursor.number)
        if row is None or not available(row, self.reader):
            raise NoMessageUnderCursor(f"the browse cursor on {self.handle.name} stands on no message")
        gets.check_under_cursor(self.request.options, row.message)
        return self.queue.pieces(row, looked_for, self.reader)

    def _check_token_is_free(self) -> None:
        """A browse for unmarked messages that names a marked one by its token is told so (R3.24)."""
        options = self.request.options
        if not (options.unmarked and "token" in options.match.fields):
            return
        after = self.request.cursor.place if options.browse == "next" else None
        marked = self.queue.find(Wanted(match=options.match), self.reader._replace(unmarked=False), after)
        if self.reader.co_op and marked and self.handle.id not in marked[0].handle_marks:
            raise QueueCondition(
                "the message of this token is marked by the cooperating set", reason=Reason.MSG_MARKED_BROWSE_CO_OP
            )

    # --- judge

    def _judge(self, state: GroupState, found: Found) -> Verdict | None:
        if not found.rows:
            return None
        if self.request.one_group and not (state.group_open or state.message_open):
            self._check_group_fits(found.rows[0])
        most = self.request.options.buffer if len(found.rows) == 1 else None  # what is joined is cut when it is whole
        return gets.judge(
            [as_got(row, self.verb.now) for row in self.queue.read(found.rows, most)],
            self.request.options,
            state,
            found.wanted,
            syncpoint=self.request.syncpoint,
            unit_open=self.handle.connection.unit is not None,
        )

    def _check_group_fits(self, head: Row) -> None:
        """A group is taken whole or not at all: the unit must have room for all of it (R5.8)."""
        unit = self.handle.connection.unit
        used, limit = unit.calls if unit is not None else 0, self.manager.max_uncommitted
        size = self.queue.gets_of_group(head.message.group_id)
        if used + size > limit:
            raise UnitTooLarge(
                f"the group has {size:,} messages, a unit of work holds at most {limit:,} and has {used:,}",
                limit=limit,
            )

    # --- do

    def _do(self, cursor: Cursor, found: Found, verdict: Verdict, unit: U | None) -> Cursor:
        rows = found.rows[: verdict.takes]
        if self.request.options.browse:
            return self._browse(rows, cursor, heads=found.wanted.heads)
        for row in rows:
            self._take(row, unit)
        self._note_group(found.rows[0], verdict.state, unit, logical=self.request.options.logical)
        return cursor

    def _unit(self, verdict: Verdict | None) -> U | None:
        """What comes to hold the message. Raises: UnitTooLarge 2024."""
        if verdict is None or not verdict.takes or self.request.options.browse:
            return None
        if verdict.in_unit:
            return self.verb.enlist(self.handle.connection, 1, self.manager.max_uncommitted)
        if self.request.options.confirm_id:
            return self.verb.confirm_unit(self.handle, self.queue, self.request.options.confirm_id)
        return None

    def _take(self, row: Row, unit: U | None) -> None:
        """A removing get: at once, or held; the handle's browse lock and marks end (R3.70, R3.74)."""
        lock = lock_presented(row, self.reader)
        if row.state is State.LOCKED and row.locked_by is not None:
            self.verb.step(self.queue, row, Event.UNLOCK, lock=lock)
            lock = lock_presented(row, self.reader)
        self.verb.unmark_for_all(self.queue, row)
        self.verb.step(self.queue, row, Event.GET if unit is None else Event.GET_HELD, unit, lock=lock)

    def _note_group(self, first: Row, state: GroupState, unit: U | None, *, logical: bool) -> None:
        """Who enters a group, or a message in segments, by a logical get is inside it until it goes elsewhere (B-45).

        With the last member the entry goes by itself, whoever takes it.
        """
        message = first.message
        open_unit = None if self.reader.application else self.handle.connection.unit
        if logical and is_head(message) and (state.group_open or state.message_open):
            self.verb.leave(self.queue, self.reader.id, unit, open_unit)
            undone_with = None if unit is None or unit.kind == "confirm" else unit  # an undo moves no handle
            self.verb.enter(self.queue, self._entered(first), undone_with)
        else:  # it stands at this message now, so it is inside no group but this (R3.30)
            but = message.group_id if message.flags & (ANY_GROUP | ANY_SEGMENT) else None
            self.verb.leave(self.queue, self.reader.id, unit, open_unit, but=but)

    def _entered(self, head: Row) -> Entered:
        connection = self.handle.connection
        by = self.reader.application or connection.program.name
        owner = None if self.reader.application else connection.id
        return Entered(head.place, head.message.with_values(body=b""), self.reader.id, owner, by, self.verb.now)

    def _browse(self, rows: Sequence[Row], cursor: Cursor, *, heads: bool) -> Cursor:
        """The effects of a browse: the old lock goes, the new lock and marks come, the cursor moves."""
        options, handle, queue = self.request.options, self.handle, self.queue
        first = rows[0]
        if self._release_if_browse_moved():  # it may have been one of these
            rows = [row for row in (queue.row(row.number) for row in rows) if row is not None]
        for row in rows:
            if options.lock and row.state is State.UNLOCKED:
                self.verb.lock_for(handle, queue, row)
            if options.mark_handle:
                self.verb.mark(queue, row, handle=handle.id)
            if options.unmark_handle:
                self.verb.unmark(queue, row, handle=handle.id)
            if options.mark_co_op:
                self.verb.mark(queue, row, co_op=True)
            if options.unmark_co_op:
                self.verb.unmark(queue, row, co_op=True)
        if options.browse == "cursor":
            return cursor
        return cursor.moved(first.place, first.number, logical=options.logical, head=heads, strict=self.strict)

    def _release_if_browse_moved(self) -> bool:
        """A browse that moves on, also one that finds nothing, frees the handle's lock (R3.70); whether it had one."""
        options = self.request.options
        if options.browse in ("first", "next") or (options.browse == "cursor" and not options.lock):
            return self.verb.release(self.handle, self.queue)
        return False
