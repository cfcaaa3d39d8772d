"""Stagings in a file: contents are written once, where they stay; the put moves narrow rows in one statement (spark 3).

`StagingVerbs` has the verbs. What is staged stands in `staged`, under a unit of kind "staging" with its counts in
`staging`; nothing that searches a queue looks there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...errors import QueueFull, UnitExists
from ...rules.lifecycle import Event, State, step
from ...rules.ordering import Moment, draws_number
from ...rules.puts import make_id
from ...rules.staging import check_next, check_room, rank_range
from ..base_staging import LEDGER_BATCHES_MAX, LedgerKey, Settled, Staged, StageRequest
from ..staging import (
    check_handle,
    check_key,
    check_name,
    check_put_allowed,
    check_request,
    check_settle,
    check_there,
    complete,
)
from .calls import Calls
from .catalog import SqliteCatalog
from .codec import stored_columns
from .points import reached
from .shelf import SqliteQueue
from .staged import SqliteStaging, begin_staging, drop_staging, end_staging, found_staging, write_staged
from .statements import statement
from .transaction import SqliteTransaction

PUT_STAGED = statement("put staged")
PUT_STAGED_IN_ORDER = statement("put staged in order")
PUT_STAGED_IN_GROUPS = statement("put staged in groups")
FIRST_WRONG_NUMBER = statement("first wrong number")
VISIBLE_OF_STAGINGS = statement("visible of stagings", columns=stored_columns("X''"))
EXPIRED_STAGING = statement("expired staging")
IN_LEDGER = statement("in ledger")
ENTER_IN_LEDGER = statement("enter in ledger")
TRIM_LEDGER = statement("trim ledger")

ID_PREFIX_LENGTH = 16


class StagingVerbs(Calls):
    """A store that stages; what each verb guarantees stands in `base_staging`."""

    def stage(self, request: StageRequest) -> None:
        columns = check_request(request)  # others may write meanwhile
        with self.verb() as verb:
            handle = self.handle(request.handle)
            queue = verb.queue(handle.queue, handle.queue_name, handle.name)
            resolved = self._attributes(verb, handle, queue)
            check_handle(handle, queue.attributes, resolved)
            found = found_staging(verb, request.name)
            if found is not None and found.expires_at <= verb.now:
                drop_staging(verb, found.unit, found.messages, found.size)
                found = None
            if found is not None and found.queue != queue.id:
                raise UnitExists(f"{request.name!r} stages for another queue", unit=request.name)
            manager, program = self.definitions.manager, handle.connection.program
            batch = complete(columns, request.count, resolved, manager, program, verb.now, verb.numbers)
            staging = found or begin_staging(verb, handle, queue, request.name)
            write_staged(verb, staging, batch, verb.now + request.lasts)
            verb.durable = True
        reached("staged")
        self._remove_leftovers()

    def settle_staging(self, key: LedgerKey, stagings: Sequence[Staged]) -> Settled:
        check_settle(key, stagings)

        def once() -> Settled:
            with self.verb() as verb:
                return Settling(verb, key, stagings).run()

        settled = self._unless_dead(once, QueueFull)
        self._remove_leftovers()
        return settled

    def undo_staging(self, names: Sequence[str]) -> int:
        for name in names:
            check_name("names", name)
        with self.verb() as verb:
            found = [staging for name in dict.fromkeys(names) if (staging := found_staging(verb, name)) is not None]
            for staging in found:
                drop_staging(verb, staging.unit, staging.messages, staging.size)
            verb.durable = bool(found)
        self._remove_leftovers()
        return len(found)

    def undo_expired(self) -> None:
        """Drops stagings whose time is over, a transaction for each; contents of large ones go in steps."""
        while True:
            with self.verb(writes=False) as verb:
                if next(verb.execute(EXPIRED_STAGING, (verb.now,)), None) is None:
                    return
            with self.verb() as verb:
                expired = next(verb.execute(EXPIRED_STAGING, (verb.now,)), None)
                if expired is not None:
                    drop_staging(verb, *expired)
                    verb.durable = True

    def in_ledger(self, queue: str, key: LedgerKey) -> float | None:
        check_key(key)
        with self.verb(writes=False) as verb:
            catalog = SqliteCatalog(verb)
            committed_at: float | None = verb.value(IN_LEDGER, catalog.number(catalog.resolve(queue).name), *key)
            return committed_at


# --- settling


class Settling:
    """One settle in one transaction: look, check everything, then write."""

    def __init__(self, verb: SqliteTransaction, key: LedgerKey, stagings: Sequence[Staged]) -> None:
        self._verb, self._key, self._stagings = verb, key, stagings
        found = ((one.name, found_staging(verb, one.name)) for one in stagings)
        self._found = {name: staging for name, staging in found if staging is not None}

    def run(self) -> Settled:
        queues = {staging.queue for staging in self._found.values()}
        noted = {number for number in queues if self._is_noted(number)}
        if not self._found or noted != queues:
            self._check_there(noted)
        put = [
            (self._verb.queue(number), [one for one in self._chosen() if one.queue == number])
            for number in dict.fromkeys(one.queue for one in self._chosen() if one.queue not in noted)
        ]
        for queue, stagings in put:
            self._check(queue, stagings)
        messages = sum(self._put(queue, stagings) for queue, stagings in put)
        reached("settled-staging")
        for staging in self._found.values():
            if staging.queue in noted:
                drop_staging(self._verb, staging.unit, staging.messages, staging.size)
            else:
                end_staging(self._verb, staging.unit)
        for queue, stagings in put:
            self._note(queue, sum(one.messages for one in stagings))
        self._verb.durable = True
        return Settled(bool(queues) and noted == queues, messages)

    def _chosen(self) -> Iterator[SqliteStaging]:
        """Those that are there, in the order of the call."""
        return (self._found[one.name] for one in self._stagings if one.name in self._found)

    def _is_noted(self, queue: int) -> bool:
        return bool(self._key.batch) and self._verb.value(IN_LEDGER, queue, *self._key) is not None

    def _check_there(self, noted: set[int]) -> None:
        for one in self._stagings:
            staging = self._found.get(one.name)
            if staging is None or staging.queue not in noted:
                check_there(one, _given(staging, self._verb.now))

    def _check(self, queue: SqliteQueue, stagings: Sequence[SqliteStaging]) -> None:
        check_put_allowed(queue.attributes)
        self._verb.discard(queue)
        self._verb.ripen(queue)
        check_room(queue.attributes, queue.depth, sum(one.given for one in stagings))
        if any(one.has_numbers for one in stagings):
            wrong = next(self._verb.execute(FIRST_WRONG_NUMBER, {"units": _units(stagings)}), None)
            if wrong is not None:
                group_id, *before, sequence_number, offset = wrong
                check_next(group_id, tuple(before), sequence_number, offset)

    def _put(self, queue: SqliteQueue, stagings: Sequence[SqliteStaging]) -> int:
        """The put of everything that is staged for one queue; of how many messages."""
        verb, total = self._verb, sum(one.messages for one in stagings)
        if not total:
            return 0
        _, state = step(State.ABSENT, Event.PUT)
        own = draws_number(queue.attributes.order, Moment.PUT)
        first = queue.counter + 1
        queue.counter += total if own else 1
        values = rank_range(queue.attributes)._asdict() | {
            "queue": queue.id,
            "state": state,
            "now": verb.now,
            "own": int(own),
            "number": first,
            "ordinal": 0,
        }
        if any(one.has_keys for one in stagings):
            prefix = make_id(verb.codec.name, 0)[:ID_PREFIX_LENGTH]
            verb.execute(PUT_STAGED_IN_GROUPS, values | {"units": _units(stagings), "prefix": prefix})
        elif any(one.has_order for one in stagings):
            verb.execute(PUT_STAGED_IN_ORDER, values | {"units": _units(stagings)})
        else:
            self._put_as_they_lie(stagings, values)
        queue.count(total)
        queue.arrived += total
        queue.changed = True
        told = verb.touch(queue)
        if verb.home.is_watched:
            shown = verb.execute(VISIBLE_OF_STAGINGS, {"units": _units(stagings)})
            messages = [verb.codec.full(columns) for columns in shown]
            told.put.extend(messages)
            told.visible.extend(messages)
        return total

    def _put_as_they_lie(self, stagings: Sequence[SqliteStaging], values: Mapping[str, Any]) -> None:
        before = 0
        for one in stagings:
            turn = {"number": values["number"] + before} if values["own"] else {"ordinal": before}
            self._verb.execute(PUT_STAGED, {**values, **turn, "unit": one.unit})
            before += one.messages

    def _note(self, queue: SqliteQueue, messages: int) -> None:
        if self._key.batch:
            self._verb.execute(ENTER_IN_LEDGER, (queue.id, *self._key, messages, self._verb.now))
            if self._key.query:
                row = queue.id, self._key.application, self._key.query, LEDGER_BATCHES_MAX
                self._verb.execute(TRIM_LEDGER, row)


def _given(staging: SqliteStaging | None, now: float) -> int | None:
    """How many rows it has, if it is there and its time is not over."""
    return None if staging is None or staging.expires_at <= now else staging.given


def _units(stagings: Sequence[SqliteStaging]) -> str:
    return json.dumps([one.unit for one in stagings])
