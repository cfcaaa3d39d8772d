"""What an operator sees of a store: units, and what is pending on a queue."""

from __future__ import annotations

from collections.abc import Iterator

from ...attributes import QueueStatus
from ...message import Place
from ...rules.lifecycle import State
from ...rules.puts import Program
from ..base import OrderView, Unit
from ..rows import Reader, pending_of
from .catalog import SqliteCatalog
from .looking import Whose
from .selection import ALL_HEADS
from .shelf import NARROW_COLUMNS, SqliteQueue
from .statements import statement
from .transaction import SqliteTransaction

UNITS = statement("units")
NEXT_QUEUE_OF_UNIT = statement("next queue of unit")
PENDING = statement("pending", columns=NARROW_COLUMNS)
WITHHELD = statement("withheld")
WAITING = statement("waiting")
UNSETTLED = statement("unsettled")


def units(verb: SqliteTransaction) -> list[Unit]:
    """All unsettled units, oldest first."""
    known, whose = verb.home.definitions.current(verb), Whose(verb)
    return [
        Unit(
            kind=kind,
            name=name,
            queue=queue,
            program=Program(user, program),
            started_at=started_at,
            puts=puts,
            gets=gets,
            locks=locks,
            connection=connection,
            process=None if connection is None else whose(connection)[1],
            queues=(queue,) if queue else tuple(sorted(known.attributes(one).name for one in _queues_of(verb, number))),
        )
        for number, kind, name, queue, user, program, started_at, puts, gets, locks, connection in verb.execute(
            UNITS
        ).fetchall()
    ]


def _queues_of(verb: SqliteTransaction, unit: int) -> Iterator[int]:
    queue = verb.value(NEXT_QUEUE_OF_UNIT, unit, 0)
    while queue is not None:
        yield queue
        queue = verb.value(NEXT_QUEUE_OF_UNIT, unit, queue)


def status(verb: SqliteTransaction, name: str) -> QueueStatus:
    """Depth and open counts of a queue, after discarding what has expired (R4.6)."""
    catalog = SqliteCatalog(verb)
    local = catalog.resolve(name).name
    queue = verb.queue(catalog.number(local), local)
    verb.discard(queue)
    opens = catalog.opens(local)
    unsettled, _ = next(verb.execute(UNSETTLED, (queue.id,)))
    created_at, altered_at = verb.home.definitions.times[queue.id]
    return QueueStatus(
        current_depth=queue.depth,
        open_input_count=sum(one.input for one in opens),
        open_output_count=sum(one.output for one in opens),
        uncommitted=unsettled,
        created_at=created_at,
        altered_at=altered_at,
    )


def order_view(verb: SqliteTransaction, queue: SqliteQueue) -> OrderView:
    """What is pending on a queue, since when and by whom (B-33)."""
    nobody = Reader(0, 0, co_op=False, now=verb.now, mark_interval=0.0)
    rows = [queue.row_of(columns) for columns in verb.execute(PENDING, (queue.id,))]
    held = [(row, pending_of(row, nobody)) for row in rows if row.expires_at > verb.now]
    puts = [one for row, one in held if one is not None and row.state is State.PUT_UNCONFIRMED]
    others = [one for row, one in held if one is not None and row.state is not State.PUT_UNCONFIRMED]
    first: dict[int, Place] = {}
    for one in sorted([*puts, *others], key=lambda one: one.place):
        first.setdefault(one.place.rank, one.place)
    return OrderView(
        unresolved_puts=len(puts),
        oldest_put=min(puts, key=lambda one: (one.since, one.place), default=None),
        pending_out=len(others),
        oldest_out=min(others, key=lambda one: (one.since, one.place), default=None),
        withheld=sum(verb.value(WITHHELD, queue.id, head, *place) for place in first.values() for head in ALL_HEADS),
        strict_waiters=verb.value(WAITING, queue.id),
    )
