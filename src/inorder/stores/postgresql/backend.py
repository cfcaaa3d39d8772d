"""Rows and transactions in PostgreSQL: what differs from other SQL databases, which is who may change what when.

Many transactions run at once. What belongs to a queue changes under the lock of its tally row alone, and a writing verb
takes that lock with the statement by which it comes to the queue: numbers of a queue become visible in the order in
which they were drawn (B-5), and all that a verb has seen of the queue stays true until it ends. Staging is no change of
a queue: it shares a lock of the row that only a removal waits for, and holds its own unit's row. Verbs that are alone
(`backend.Kind`) hold the queue manager's row before; who waits for whom is looked at under a lock of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from typing import Any, Final

from ...errors import QueueManagerStopping
from ..backend import Kind, QueueState, Share, Tally
from ..sql.backend import SqlBackend
from ..sql.shapes import Table, Types
from ..tables import WaitRow
from .statement import array
from .statements import STATEMENTS, TABLES

INSERTED_MAX: Final = 1000  # rows by one statement
INSERTED_BYTES: Final = 1 << 24  # by one, where there is more than one row
DRAWN: Final = 1000  # numbers that name things drawn at once: their transaction is synchronous
SKIPPED: Final = 100_000  # of these numbers, where a server has lost some
STOPPED: Final = -1  # the revision of a queue whose queue manager was stopped


def _together(one: str, another: str) -> str:
    """Two statements that insert as one; the values of the second follow those of the first."""
    return f"WITH first AS ({one.rstrip().rstrip(';')}) {another}"


ARRIVALS: Final = {
    name: _together(STATEMENTS[name], STATEMENTS["arrive content"]) for name in ("arrive", "arrive plain")
}


class PostgresBackend(SqlBackend):
    """See the module, and `SqlBackend`.

    Attributes:
        stopped: whether the queue manager was stopped, as far as this process has seen.
    """

    stopped = False
    arrivals = ARRIVALS

    def begin(self, kind: Kind) -> None:
        self._kind, self._locked = kind, set[int]()
        self.here = "here beside" if kind.beside else "here locked" if kind.writes else "here"
        super().begin(kind)
        if kind.writes and kind.alone:
            ((stopped,),) = self.engine.run(self.sql["alone"]).fetchall()
            self._heed_stop(bool(stopped))

    def _heed_stop(self, stopped: bool) -> None:
        self.stopped = stopped
        if stopped and not self._kind.though_stopped:
            raise QueueManagerStopping(f"queue manager {self.codec.name} has been stopped")

    def stop(self, stopped: bool) -> None:
        """Inside a verb: the queue manager was stopped, or is not any more."""
        self.engine.execute(self.sql["stop"], (stopped,))
        self.stopped = stopped

    # --- numbers

    def draw(self, count: int, reserve: int) -> tuple[range, bool]:
        count = max(count, DRAWN)
        first: int = self.value(self.sql["draw"], count)
        return range(first, first + count), True

    def skip_reserved(self) -> None:
        self.engine.execute(self.sql["draw"], (SKIPPED,))

    # --- transactions

    def commit(self, tallies: Sequence[Tally], changed: Collection[int], *, reserves: bool, durable: bool) -> int:
        quiet = sorted(set(changed) - {tally.queue for tally in tallies})
        if quiet:  # the row of a queue tells those who wait that it has changed, should nobody else (watch.py)
            self.engine.run(self.sql["touched"], (self.engine.array(quiet),))
        return super().commit(tallies, changed, reserves=reserves, durable=durable)

    def sweep(self) -> None:
        self.engine.run(self.sql["lock leftovers"])
        super().sweep()

    # --- guarded changes

    def change(self, sql: str, values: Any, expected: int = 1) -> None:
        """The server counts, and fails if there are more or less: nobody has to wait for the answer."""
        self.engine.run(_counted(sql, len(values) + 1), (*values, expected))

    def insert(self, name: str, values: Sequence[Any]) -> None:
        """As arrays, one for each column: a statement with few values is soon read, however many rows there are."""
        into, width, kinds = _in_arrays(self.sql[name])
        step = INSERTED_MAX * width
        for begin in range(0, len(values), step):
            self._insert(into, width, kinds, values[begin : begin + step])

    def _insert(self, into: str, width: int, kinds: Sequence[type], values: Sequence[Any]) -> None:
        arrays = [array(values[column::width], kind) for column, kind in enumerate(kinds)]
        half = len(values) // width // 2 * width
        if half and sum(map(len, arrays)) > INSERTED_BYTES:
            self._insert(into, width, kinds, values[:half])
            self._insert(into, width, kinds, values[half:])
        else:
            self.engine.run(into, arrays)

    def restart_unit(self, unit: int, now: float) -> None:
        self.change(self.sql["restart unit"], (now, unit))

    # --- locks

    def state(self, queue: int) -> QueueState | None:
        if self._kind.writes and queue not in self._locked:
            self._locked.add(queue)
            if queue in self._in_vain:  # what looks for more sees the state before a wait for the lock
                self.engine.run(self.sql["lock queue beside" if self._kind.beside else "lock queue"], (queue,))
        found = super().state(queue)
        if found is not None:
            self._heed_stop(found.revision == STOPPED)
        return found

    def shares(self, unit: int, *, locked: bool = False) -> Sequence[Share]:
        if self._kind.writes:
            self._lock_queues([queue for (queue,) in self.engine.run(self.sql["queues of unit"], (unit,))])
        return super().shares(unit, locked=locked)

    def _lock_queues(self, queues: Sequence[int]) -> None:
        """In the order of their numbers, so that two transactions never wait for each other."""
        missing = sorted(set(queues) - self._locked)
        if missing:
            self.engine.run(self.sql["lock queues"], (self.engine.array(missing),))
            self._locked.update(missing)

    def clear(self, queue: int) -> None:
        self.engine.run(self.sql["lock queue alone"], (queue,))  # the queue may be about to go
        super().clear(queue)

    def hold_stagings(self, names: Collection[str], *, begins: bool) -> None:
        held = self.value(self.sql["hold stagings"], self.engine.array(list(names)))
        if begins and held < len(names):
            for name in names:
                self.engine.run(self.sql["begin staging"], (name,))
            self.value(self.sql["hold stagings"], self.engine.array(list(names)))

    def save(self, record: Any) -> None:
        if type(record) is WaitRow and record.levels is not None:
            self.engine.run(self.sql["lock waits"])
        super().save(record)


@functools.lru_cache(maxsize=256)
def _counted(sql: str, parameter: int) -> str:
    """The same change with one parameter more, its last: how many rows it changes."""
    return f"WITH done AS ({sql.rstrip().rstrip(';')} RETURNING 1) SELECT expect(count(*), ?{parameter}) FROM done"


@functools.lru_cache(maxsize=16)
def _in_arrays(sql: str) -> tuple[str, int, Sequence[type]]:
    """The statement that inserts one row, for any number; how many arrays it is given, and of what.

    What is the same in all rows, and so written out, stays.
    """
    before, values = sql.rstrip().rstrip(";").rsplit(" VALUES ", 1)
    table, _, names = before.removeprefix("INSERT INTO ").partition("(")
    columns: Table = TABLES[table.strip()]
    written = [one.strip() for one in values.strip("()").split(",")]
    listed = [name.strip(' "\n)') for name in names.split(",")] if names else list(columns)
    kinds = [_kind(columns[name]) for name, value in zip(listed, written, strict=True) if value == "?"]
    given = iter(range(1, len(kinds) + 1))
    chosen = ", ".join(f"c{next(given)}" if value == "?" else value for value in written)
    arrays = ", ".join(f"?{number}" for number in range(1, len(kinds) + 1))
    named = ", ".join(f"c{number}" for number in range(1, len(kinds) + 1))
    return f"{before} SELECT {chosen} FROM unnest({arrays}) AS rows({named})", len(kinds), kinds


def _kind(types: Types) -> type:
    return next(kind for kind in (float, int, str, bytes) if kind in types)
