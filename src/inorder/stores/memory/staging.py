"""Stagings in memory, and the ledger: lists of messages beside the queues, put one after another (spark 3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ...attributes import ManagerAttributes, QueueAttributes
from ...errors import UnitExists
from ...message import NO_ID, Message, Place, UniqueId
from ...rules.lifecycle import Event
from ...rules.ordering import Moment, draws_number
from ...rules.puts import NO_ACCOUNTING, Program, make_id
from ...rules.staging import StagedMessage, check_numbers, check_room, grouped, lined_up
from ..base import Unit
from ..base_staging import LEDGER_BATCHES_MAX, STAGED_COLUMNS, LedgerKey, Settled, Staged, StageRequest
from ..staging import (
    KEYS,
    Batch,
    check_handle,
    check_key,
    check_name,
    check_put_allowed,
    check_request,
    check_settle,
    check_there,
    complete,
)
from .handles import MemoryHandle
from .queue import MemoryQueue
from .transaction import MemoryTransaction, arriving
from .undo import Undoable, UndoDict, UndoList


@dataclass(slots=True, eq=False)
class MemoryStaging(Undoable):
    """What is staged under a name, for one queue."""

    name: str
    queue: MemoryQueue
    program: Program
    started_at: float
    expires_at: float
    given: int = 0
    rows: list[StagedMessage] = field(default_factory=UndoList)

    def as_seen(self) -> Unit:
        """As an operator sees it."""
        return Unit(
            kind="staging",
            name=self.name,
            queue=self.queue.attributes.name,
            program=self.program,
            started_at=self.started_at,
            puts=len(self.rows),
            gets=0,
            locks=0,
            queues=(self.queue.attributes.name,),
        )


class MemoryStagings(Undoable):
    """All stagings of a store, and its ledger."""

    def __init__(self) -> None:
        self._stagings: dict[str, MemoryStaging] = UndoDict()
        self._ledgers: dict[MemoryQueue, dict[LedgerKey, float]] = UndoDict()

    def as_seen(self) -> list[Unit]:
        return [staging.as_seen() for staging in self._stagings.values()]

    def forget_queue(self, queue: MemoryQueue) -> None:
        """A queue goes, with what is staged for it and what was noted of it."""
        self._drop(name for name, one in self._stagings.items() if one.queue is queue)
        self._ledgers.pop(queue, None)

    def _drop(self, names: Iterable[str]) -> None:
        for name in list(names):
            del self._stagings[name]

    def undo_expired(self, now: float) -> None:
        """Drops what is staged for too long."""
        self._drop(name for name, one in self._stagings.items() if one.expires_at <= now)

    def undo(self, names: Sequence[str]) -> int:
        for name in names:
            check_name("names", name)
        return sum(self._stagings.pop(name, None) is not None for name in names)

    def stage(
        self,
        verb: MemoryTransaction,
        handle: MemoryHandle,
        resolved: QueueAttributes,
        manager: ManagerAttributes,
        request: StageRequest,
    ) -> None:
        columns = check_request(request)
        queue, program = handle.queue, handle.connection.program
        check_handle(handle, queue.attributes, resolved)
        staging = self._stagings.get(request.name)
        if staging is None or staging.expires_at <= verb.now:
            staging = MemoryStaging(request.name, queue, program, verb.now, verb.now)
        if staging.queue is not queue:
            raise UnitExists(f"{request.name!r} stages for another queue", unit=request.name)
        batch = complete(columns, request.count, resolved, manager, program, verb.now, verb.numbers)
        first = len(staging.rows)
        keys = zip(*(batch.columns[name] for name in KEYS), strict=True)
        for n, (message, (group_key, order_key)) in enumerate(zip(_messages(batch, manager.name), keys, strict=True)):
            staging.rows.append(StagedMessage(message, first + n, first + batch.wholes[n], group_key, order_key))
        staging.given += batch.given
        staging.expires_at = verb.now + request.lasts
        self._stagings[request.name] = staging

    def settle(
        self, verb: MemoryTransaction, key: LedgerKey, stagings: Sequence[Staged], id_of: Callable[[Message], bytes]
    ) -> Settled:
        """The put of them all; `id_of` makes the id of a group of its first message."""
        check_settle(key, stagings)
        found = {one.name: self._stagings[one.name] for one in stagings if one.name in self._stagings}
        queues = list(dict.fromkeys(one.queue for one in found.values()))
        noted = [queue for queue in queues if self.noted_at(queue, key) is not None]
        if not found or noted != queues:
            for one in stagings:
                staging = found.get(one.name)
                if staging is None or staging.queue not in noted:
                    is_there = staging is not None and staging.expires_at > verb.now
                    check_there(one, staging.given if staging is not None and is_there else None)
        put = {queue: [one for one in found.values() if one.queue is queue] for queue in queues if queue not in noted}
        for queue, chosen in put.items():
            check_put_allowed(queue.attributes)
            verb.discard(queue)
            check_room(queue.attributes, queue.depth, sum(one.given for one in chosen))
            check_numbers(row.message for one in chosen for row in one.rows)
        total = 0
        for queue, chosen in put.items():
            rows = [row._replace(staging=n) for n, one in enumerate(chosen) for row in one.rows]
            put_all(verb, queue, grouped(lined_up(rows), id_of))
            self._note(queue, key, verb.now)
            total += len(rows)
        for name in found:
            del self._stagings[name]
        return Settled(bool(queues) and noted == queues, total)

    def _note(self, queue: MemoryQueue, key: LedgerKey, now: float) -> None:
        if not key.batch:
            return
        ledger = self._ledgers.setdefault(queue, UndoDict())
        ledger[key] = now
        alike = [one for one in ledger if key.query and one[:2] == key[:2]]
        for old in alike[:-LEDGER_BATCHES_MAX]:
            del ledger[old]

    def noted_at(self, queue: MemoryQueue, key: LedgerKey) -> float | None:
        """When this was settled on a queue."""
        check_key(key)
        return self._ledgers.get(queue, {}).get(key) if key.batch else None


def put_all(verb: MemoryTransaction, queue: MemoryQueue, messages: Iterable[Message]) -> None:
    """Messages arrive in this order: with a number each, or one for all where it is drawn later than at the put."""
    own = draws_number(queue.attributes.order, Moment.PUT)
    number = None
    for ordinal, message in enumerate(messages):
        number = queue.draw_number() if own or number is None else number
        row = arriving(queue, message, verb.now)
        row.place, row.placed = Place(row.rank, number, 0 if own else ordinal), True
        queue.add(row)
        verb.step(queue, row, Event.PUT)
        verb.touch(queue).put.append(message)


def group_id_maker(manager_name: str) -> Callable[[Message], bytes]:
    """The id of a group of its first message: the one that its number makes."""
    return lambda message: make_id(manager_name, int.from_bytes(message.token, "big"))


NONE = {"message_id": NO_ID, "correlation_id": NO_ID, "group_id": NO_ID, "accounting_token": NO_ACCOUNTING}


def _messages(batch: Batch, manager_name: str) -> Iterable[Message]:
    """The messages that the columns are."""
    empty = Message()
    for n, number in enumerate(batch.numbers):
        values = {name: batch.columns[name][n] for name in STAGED_COLUMNS if name not in KEYS}
        values |= {name: none for name, none in NONE.items() if values[name] is None}
        if values["message_id"] == NO_ID:
            values["message_id"] = make_id(manager_name, number)
        values["expiry"] = math.inf if values["expiry"] is None else values["expiry"]
        values["length"] = len(values["body"])
        yield empty.with_values(**values, token=number.to_bytes(16, "big"), uid=UniqueId(manager_name, number))
