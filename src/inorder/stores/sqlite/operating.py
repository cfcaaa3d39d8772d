"""The verbs of the SQLite store for its operator: each looks at one state of the file, and writes nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ...attributes import QueueStatus
from ...message import Place
from ...rules.gaps import Gaps
from ...rules.lifecycle import State
from ...rules.ordering import PRIORITY_MAX, Kind, Pending
from ...rules.puts import Program
from ..base_operating import CheckProgress, Lock, LookRequest, QueueView, Sight, Unit, Wait
from . import checking, looking, owners, views
from .calls import Calls
from .catalog import SqliteCatalog
from .selection import ALL_HEADS
from .shelf import SqliteQueue
from .statements import statement
from .transaction import SqliteTransaction

WAITS = statement("waits")
HANDLE_LOCKS = statement("handle locks")
LOCK_IDS = statement("lock ids")
TALLIES = statement("tallies")
HELD_BY_UNITS = statement("held by units")
LOCKED_BY_HANDLES = statement("locked by handles")
LOCKED_BY_IDS = statement("locked by ids")
DELAYED = statement("delayed")
FIRST_OF_NEXT_RANK = statement("first of next rank")
FIRST_DELAYED_OF_NEXT_RANK = statement("first delayed of next rank")
PUT_AT = statement("put at")
OPENS = statement("opens")
WAITERS = statement("waiters")


class OperatorVerbs(Calls):
    """The part of the store that operators use."""

    def status(self, name: str) -> QueueStatus:
        owners.bury_dead(self)
        with self.verb() as verb:
            return views.status(verb, name)

    def units(self) -> list[Unit]:
        owners.bury_dead(self)
        with self.verb(writes=False) as verb:
            return views.units(verb)

    def look(self, request: LookRequest) -> Sequence[Sight]:
        owners.bury_dead(self)
        with self.verb(writes=False) as verb:
            return looking.look(verb, self._local(verb, request.queue), request)

    def gaps(self, queue: str, group_id: bytes) -> Gaps:
        with self.verb(writes=False) as verb:
            return looking.missing(verb, self._local(verb, queue), group_id)

    def _local(self, verb: SqliteTransaction, name: str) -> SqliteQueue:
        """The queue that has the name, or for which it stands; as it lies there."""
        catalog = SqliteCatalog(verb)
        local = catalog.resolve(name).name
        return verb.queue(catalog.number(local), local)

    def waits(self) -> list[Wait]:
        owners.bury_dead(self)
        with self.verb(writes=False) as verb:
            return [
                Wait(
                    queue=queue,
                    connection=connection,
                    program=Program(user, program),
                    process=self.database.process_of(process),
                    pending=None if pending is None else pending_from_text(pending),
                    withheld=bool(withheld),
                )
                for queue, connection, user, program, process, pending, withheld in verb.execute(WAITS)
            ]

    def locks(self) -> list[Lock]:
        owners.bury_dead(self)
        with self.verb(writes=False) as verb:
            found = [*self._handle_locks(verb), *_lock_ids(verb)]
        return sorted(found, key=lambda one: (one.since, one.queue))

    def _handle_locks(self, verb: SqliteTransaction) -> list[Lock]:
        return [
            Lock(
                kind="handle",
                queue=queue,
                lock_id=None,
                program=Program(user, program),
                connection=connection,
                process=self.database.process_of(process),
                since=since,
                messages=messages,
            )
            for queue, connection, user, program, process, since, messages in verb.execute(HANDLE_LOCKS)
        ]

    def overview(self) -> list[QueueView]:
        owners.bury_dead(self)
        with self.verb(writes=False) as verb:
            return Overview(verb).queues()

    def check(self, progress: CheckProgress | None) -> list[str]:
        return checking.problems(self, progress)


def _lock_ids(verb: SqliteTransaction) -> list[Lock]:
    return [
        Lock(
            kind="lock",
            queue=queue,
            lock_id=int(name),
            program=Program(user, program),
            connection=None,
            process=None,
            since=since,
            messages=messages,
            lease_ends_at=lease_ends_at,
        )
        for queue, name, user, program, since, messages, lease_ends_at in verb.execute(LOCK_IDS)
    ]


def pending_as_text(pending: Pending | None) -> str | None:
    """What a call waits for, as it stands in the file."""
    return None if pending is None else json.dumps([pending.kind.value, *pending[1:]])


def pending_from_text(text: str) -> Pending:
    """The reverse of `pending_as_text`."""
    kind, place, holder, by, since, own = json.loads(text)
    return Pending(Kind(kind), Place(*place), holder, by, since, own)


class Counts:
    """What is held of one queue."""

    def __init__(self) -> None:
        self.puts = self.gets = self.locked = 0
        self.oldest: list[int] = []


class Overview:
    """All queues at one moment: what is held is counted once for all of them, over the indexes."""

    def __init__(self, verb: SqliteTransaction) -> None:
        self.verb = verb
        self._held: dict[int, Counts] = {}
        for queue, state, count, oldest in verb.execute(HELD_BY_UNITS):
            counts = self._counts(queue, oldest)
            if state == State.PUT_UNCONFIRMED:
                counts.puts += count
            else:
                counts.gets += count
        for sql in (LOCKED_BY_HANDLES, LOCKED_BY_IDS):
            for queue, count, oldest in verb.execute(sql):
                self._counts(queue, oldest).locked += count
        self._opens = {queue: opens for queue, *opens in verb.execute(OPENS)}
        self._waiters = dict(verb.execute(WAITERS))

    def _counts(self, queue: int, oldest: int) -> Counts:
        counts = self._held.setdefault(queue, Counts())
        counts.oldest.append(oldest)
        return counts

    def queues(self) -> list[QueueView]:
        return [self._view(*columns) for columns in self.verb.execute(TALLIES).fetchall()]

    def _view(self, queue: int, name: str, created_at: float, depth: int, arrived: int, numbered: int) -> QueueView:
        held = self._held.get(queue) or Counts()
        inputs, outputs = self._opens.get(queue, (0, 0))
        return QueueView(
            name=name,
            created_at=created_at,
            depth=depth,
            arrived=arrived,
            numbered=numbered,
            puts=held.puts,
            gets=held.gets,
            locked=held.locked,
            delayed=self.verb.value(DELAYED, queue, self.verb.now),
            oldest_put_at=self._oldest_put_at(queue, held),
            open_input_count=inputs,
            open_output_count=outputs,
            waiters=self._waiters.get(queue, 0),
        )

    def _oldest_put_at(self, queue: int, held: Counts) -> float | None:
        """By the number the oldest of what is held, by the place the first of each level of what is not."""
        firsts: dict[int, tuple[Place, int]] = {}
        for sql in (FIRST_OF_NEXT_RANK, FIRST_DELAYED_OF_NEXT_RANK):
            for head in ALL_HEADS:
                for place, number in self._firsts(sql, queue, head):
                    firsts[place.rank] = min(firsts.get(place.rank, (place, number)), (place, number))
        oldest = [*([min(held.oldest)] if held.oldest else []), *(number for _, number in firsts.values())]
        put_at: float | None = self.verb.value(PUT_AT, json.dumps(oldest)) if oldest else None
        return put_at

    def _firsts(self, sql: str, queue: int, head: int) -> list[tuple[Place, int]]:
        found: list[tuple[Place, int]] = []
        rank = -PRIORITY_MAX - 1
        while (row := next(self.verb.execute(sql, (queue, head, rank)), None)) is not None:
            rank = row[0]
            found.append((Place(*row[:3]), row[3]))
        return found
