"""A memory store with a planted fault: what the comparison must find.

A fault is a patch of one name that holds only while the faulty store runs a verb; the other store of the comparison
uses the same modules and stays sound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from inorder.stores.memory.queue import MemoryQueue
from inorder.stores.rows import Row

from inorder.clock import Clock
from inorder.rules import grouping, ordering
from inorder.rules.lifecycle import Answer, Event, State, Step
from inorder.rules.ordering import Decision, Kind, Moment
from inorder.stores import confirmed, putting, reading, rows, shelf
from inorder.stores.catalog import Catalog
from inorder.stores.memory import MemoryStore, queue, transaction
from inorder.stores.memory import store as memory_store

NUMBERS_BURNT = 1000


class OtherNumbers(MemoryStore):
    """A sound store whose ids are not those of another one: the comparison must not ask for them."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(name="TEST", clock=clock)
        for _ in range(NUMBERS_BURNT):
            next(self._numbers)


class Fault:
    """What is wrong: the place, the name there, and what stands in its stead, given what stood there."""

    def __init__(self, where: Any, name: str, wrong: Callable[[Any], Any]) -> None:
        self.where, self.name, self._wrong = where, name, wrong

    def planted(self) -> Any:
        return mock.patch.object(self.where, self.name, self._wrong(getattr(self.where, self.name)))

    def store(self, clock: Clock) -> MemoryStore:
        """A store that has it."""
        fault = self

        class Faulty(OtherNumbers):
            @contextmanager
            def _verb(self, *, though_stopped: bool = False) -> Iterator[Any]:
                with super()._verb(though_stopped=though_stopped) as verb, fault.planted():
                    yield verb

        return Faulty(clock)


def _without(kind: Kind) -> Callable[[Any], Any]:
    """A strict decision that does not mind what is pending for this reason."""

    def wrong(decide: Callable[[Any], Decision[Row]]) -> Any:
        return lambda standings: decide(one for one in standings if one.pending is None or one.pending.kind is not kind)

    return wrong


def _expires_late(_: Any) -> Any:
    def expired(one: MemoryQueue, now: float) -> list[Row]:
        return [row for row in one.all_rows() if row.expires_at < now and not rows.is_away(row)]

    return expired


def _segments_are_always_there(needs: Any) -> Any:
    def wrong(message: Any, what: str, members: Any) -> Any:
        return what == "segments" or needs(message, what, members)

    return wrong


def _forgets_locks(undoing: Any) -> Any:
    def wrong(row: Row, unit: Any, confirm_id: int) -> Event | None:
        event = undoing(row, unit, confirm_id)
        return {Event.UNDO_BOTH: Event.BACK_OUT, Event.UNDO_LOCK: None}.get(event, event)

    return wrong


def _resend_replaces_what_was_seen(step: Any) -> Any:
    def wrong(state: State, event: Event, *lock: Any) -> Any:
        answer = step(state, event, *lock)
        replaces = event is Event.RESEND and state is State.UNLOCKED
        return Step(Answer.DUPLICATE) if replaces else answer

    return wrong


FAULTS: Mapping[str, Fault] = {
    "a strict reader does not mind locked messages": Fault(queue, "decide", _without(Kind.LOCKED)),
    "a strict reader does not mind delayed messages": Fault(queue, "decide", _without(Kind.DELAYED)),
    "a strict reader does not mind prepared units": Fault(queue, "decide", _without(Kind.IN_DOUBT)),
    "a strict reader does not mind groups that others are inside": Fault(
        MemoryQueue, "entered_by_others", lambda _: lambda *_: []
    ),
    "what the call's own unit got blocks it": Fault(
        shelf, "pending_of", lambda right: lambda *given: (one := right(*given)) and one._replace(own=False)
    ),
    "nobody waits for himself": Fault(reading, "blocks_itself", lambda _: lambda *_: False),
    "nobody is deadlocked": Fault(memory_store, "is_deadlocked", lambda _: lambda *_: False),
    "the backout count is not raised": Fault(transaction, "adds_backout", lambda _: lambda *_: 0),
    "an undo forgets locks": Fault(confirmed, "_undoing", _forgets_locks),
    "what expires now is still counted": Fault(MemoryQueue, "expired", _expires_late),
    "a segment that is missing is not missed": Fault(shelf, "has_what_it_needs", _segments_are_always_there),
    "a group is complete when its head is there": Fault(
        grouping.Members, "group_is_complete", lambda _: lambda one: bool(one.logical_message(1))
    ),
    "pieces are joined though they differ": Fault(
        grouping.Members, "logical_message", lambda right: lambda one, number: right(one, number)[:1]
    ),
    "priority counts on a fifo queue": Fault(
        transaction, "rank", lambda right: lambda queue, message: right(replace(queue, delivery="priority"), message)
    ),
    "with prepare order the commit draws the number": Fault(
        transaction,
        "draws_number",
        lambda right: lambda order, moment: moment is not Moment.PREPARE and right(order, moment),
    ),
    "a repeat of a message that was seen is refused": Fault(putting, "step", _resend_replaces_what_was_seen),
    "a browse cursor is always the last place": Fault(
        ordering.Cursor, "has_shown", lambda _: lambda one, place: one.place is not None and place <= one.place
    ),
    "marks do not end": Fault(
        queue, "is_marked", lambda _: lambda row, reader: bool(row.handle_marks) or row.co_op_marked_at > 0
    ),
    "a confirm id need not be the right one": Fault(confirmed, "_check_confirm", lambda _: lambda *_: None),
    "a closed handle stays inside its group": Fault(MemoryQueue, "leave_all", lambda _: lambda *_: False),
    "a lease has no end": Fault(transaction.MemoryTransaction, "end_leases", lambda _: lambda *_: 0),
    "gets stay in the depth": Fault(transaction, "count_away", lambda _: lambda *_: None),
    "a stranger may open what is open exclusively": Fault(Catalog, "is_exclusive", lambda _: lambda *_: False),
}
