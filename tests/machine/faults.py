"""Memory stores with planted faults, which the comparison must find.

A fault is a patch of one name that lasts only while the faulty store runs a verb; the other store of the comparison
uses the same modules and stays sound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from unittest import mock

from inorder.model.message import NO_ID, Message
from inorder.model.properties import Properties
from inorder.rules import grouping, ordering
from inorder.rules.lifecycle import Event, State, Step, StepAnswer
from inorder.rules.ordering import Decision, Moment, PendingKind
from inorder.stores.engine import (
    authority,
    claiming,
    confirming,
    group_readers,
    putkeys,
    putting,
    queue,
    reading,
    settling,
    staging,
    waits,
)
from inorder.stores.engine.catalog import Catalog
from inorder.stores.engine.operation import WRITING, Operation, run
from inorder.stores.engine.process import OpenStore, VerbLock
from inorder.stores.engine.queue import LocalQueue
from inorder.stores.memory import MemoryStore, backend, bulk
from inorder.stores.memory.backend import MemoryBackend
from inorder.stores.seam.backend import Expired
from inorder.stores.seam.queued import QueuedMessage
from inorder.stores.seam.tables import UnitRow
from inorder.support.clock import Clock

NUMBERS_BURNT = 1000


def _all(user: authority.UserRights | None) -> authority.UserRights | None:
    """The same user, enabled and with all rights."""
    return user and user._replace(enabled=True, roles=["admin"])


def _plain(message: Message) -> Message:
    numbers = {name: int(one) if one is True else one for name, one in message.properties.items()}
    return message.with_values(properties=Properties(numbers))


class OtherNumbers(MemoryStore):
    """A sound store whose ids differ from another store's: the comparison must allow that."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(name="TEST", clock=clock)
        run(self, WRITING, _burn)


def _burn(_: MemoryStore, verb: Operation) -> None:
    for _nth in range(NUMBERS_BURNT):
        verb.number()


class Fault:
    """A faulty replacement for one name of a module or class, made from the sound value.

    Args:
        shows_in: the histories that find it: "bulk", "keys", or "" for those of everything.
    """

    def __init__(self, where: Any, name: str, wrong: Callable[[Any], Any], shows_in: str = "") -> None:
        self.where, self.name, self._wrong, self.shows_in = where, name, wrong, shows_in

    def planted(self) -> Any:
        return mock.patch.object(self.where, self.name, self._wrong(getattr(self.where, self.name)))

    def store(self, clock: Clock) -> MemoryStore:
        store = OtherNumbers(clock)
        store.lock = _FaultyLock(store, self)
        return store


class _FaultyLock(VerbLock):
    """Plants a fault as long as a verb holds the lock of its store."""

    def __init__(self, store: OpenStore, fault: Fault) -> None:
        super().__init__(store)
        self._fault = fault
        self._planted: Any = None

    def __enter__(self) -> None:
        super().__enter__()
        self._planted = self._fault.planted()
        self._planted.__enter__()

    def __exit__(self, *raised: object) -> None:
        self._planted.__exit__(None, None, None)
        super().__exit__(*raised)


def _without(kind: PendingKind) -> Callable[[Any], Any]:
    """A strict decision that ignores messages pending for this reason."""

    def wrong(decide: Callable[[Any], Decision[QueuedMessage]]) -> Any:
        return lambda standings: decide(one for one in standings if one.pending is None or one.pending.kind is not kind)

    return wrong


def _expires_uncounted(expire: Any) -> Any:
    def wrong(one: MemoryBackend, queue: int, now: float, most: int) -> Expired:
        result: Expired = expire(one, queue, now, most)
        return result._replace(total=0)

    return wrong


def _forgets_locks(undoing: Any) -> Any:
    def wrong(row: QueuedMessage, unit: UnitRow | None, confirm_id: int) -> Event | None:
        event = undoing(row, unit, confirm_id)
        return {Event.UNDO_BOTH: Event.BACK_OUT, Event.UNDO_LOCK: None}.get(event, event)

    return wrong


def _resend_replaces_what_was_seen(step: Any) -> Any:
    def wrong(state: State, event: Event, *lock: Any) -> Any:
        answer = step(state, event, *lock)
        replaces = event is Event.RESEND and state is State.UNLOCKED
        return Step(StepAnswer.DUPLICATE) if replaces else answer

    return wrong


def _stays_in_the_depth(happen: Any) -> Any:
    def wrong(one: Any, queue: LocalQueue, row: QueuedMessage, event: Event, *given: Any, **values: Any) -> Any:
        added = queue.added
        result = happen(one, queue, row, event, *given, **values)
        queue.added = added if event is Event.GET_HELD else queue.added
        return result

    return wrong


def _of_groups_too(remove: Any) -> Any:
    """A get of the last member of a group leaves other readers inside the group."""

    def wrong(one: MemoryBackend, row: QueuedMessage, **how: Any) -> None:
        remove(one, row._replace(message=row.message.with_values(group_id=NO_ID)), **how)

    return wrong


FAULTS: Mapping[str, Fault] = {
    "a strict reader does not mind locked messages": Fault(backend, "decide", _without(PendingKind.LOCKED)),
    "a strict reader does not mind groups that others are inside": Fault(
        LocalQueue, "entered_by_others", lambda _: lambda *_: []
    ),
    "what the call's own unit got blocks it": Fault(
        queue, "pending_of", lambda right: lambda *given: (one := right(*given)) and one._replace(own=False)
    ),
    "nobody waits for himself": Fault(reading, "blocks_itself", lambda _: lambda *_: False),
    "nobody is deadlocked": Fault(waits, "is_deadlocked", lambda _: lambda *_: False),
    "the backout count is not raised": Fault(settling, "adds_backout", lambda _: lambda *_: 0),
    "an undo forgets locks": Fault(confirming, "_undoing", _forgets_locks),
    "what has expired is still counted": Fault(MemoryBackend, "expire", _expires_uncounted),
    "pieces are joined though they differ": Fault(
        grouping.Members, "logical_message", lambda right: lambda one, number: right(one, number)[:1]
    ),
    "a truth among the properties becomes a number": Fault(
        MemoryBackend,
        "_arrive",
        lambda right: lambda store, queue, message, *how: right(store, queue, _plain(message), *how),
    ),
    "priority counts on a fifo queue": Fault(
        backend, "rank", lambda right: lambda queue, message: right(replace(queue, delivery="priority"), message)
    ),
    "with prepare order the commit draws the number": Fault(
        settling,
        "draws_number",
        lambda right: lambda order, moment: moment is not Moment.PREPARE and right(order, moment),
    ),
    "a repeat of a message that was seen is refused": Fault(putting, "step", _resend_replaces_what_was_seen),
    "a browse cursor is always the last place": Fault(
        ordering.Cursor, "has_shown", lambda _: lambda one, place: one.place is not None and place <= one.place
    ),
    "marks do not end": Fault(
        backend, "is_marked", lambda _: lambda row, reader: reader.co_op and row.co_op_marked_at > 0
    ),
    "a closed handle stays inside its group": Fault(group_readers, "leave_all", lambda _: lambda *_: None),
    "what several connections put in a unit stands by the ids that each draws for itself": Fault(
        Operation, "pass_others", lambda _: lambda _verb: None
    ),
    "a lease has no end": Fault(settling, "end_leases", lambda _: lambda *_: None),
    "gets stay in the depth": Fault(reading, "happen", _stays_in_the_depth),
    "who takes the last of a group leaves others inside": Fault(MemoryBackend, "_remove", _of_groups_too),
    "a unit that is backed out has entered its groups all the same": Fault(
        group_readers, "settle", lambda _: lambda *_: None
    ),
    "what is delayed can be read at once": Fault(
        queue, "available", lambda right: lambda row, reader: right(row._replace(due_at=0.0), reader)
    ),
    "a stranger may open what is open exclusively": Fault(Catalog, "is_exclusive", lambda _: lambda *_: False),
    "a batch that comes once more is put once more": Fault(staging, "noted", lambda _: lambda *_: None, "bulk"),
    "a claim that is released is confirmed": Fault(
        claiming, "_end", lambda right: lambda verb, claim, _: right(verb, claim, "commit"), "bulk"
    ),
    "a survey shows more than it was asked for": Fault(bulk, "within", lambda _: lambda shown, *_: list(shown), "bulk"),
    "what a unit put under a key stays a duplicate when it is backed out": Fault(
        putkeys, "settle", lambda right: lambda verb, unit, _: right(verb, unit, "commit"), "keys"
    ),
    "what a user asks for is asked for by a program": Fault(
        authority, "mark_of", lambda _: lambda _verb, _user: None, "keys"
    ),
    "a report is made for whoever may not have it any more": Fault(
        authority, "_found", lambda right: lambda verb, name: _all(right(verb, name)), "keys"
    ),
    "what goes to two queues elsewhere has one key": Fault(putkeys, "_target", lambda _: lambda _planned: "", "keys"),
}
