"""Global units: units of work that also have parts at other queue managers, in two phases (K-2).

The coordinator is a connection here. It records the unit before it prepares the first part elsewhere, and `settle`
writes the decision in the transaction that settles the part here. A unit without a decision whose connection has ended
can never be committed, so any process that finds it may back out its parts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Final

from ...errors import ConnectionBroken, UnitNotAvailable, WrongState, bad_argument, written
from ...model.parameters import is_storable
from ...rules.puts import Program
from ..seam.backend import Alone
from ..seam.damage import decodes
from ..seam.definitions import manager_row
from ..seam.records import UNIT_NAME_LENGTH_MAX, Outcome
from ..seam.tables import Branch, ConnectionRow, GlobalUnitRow
from ..seam.telemetry import event
from ..seam.views import Unit
from .operation import Operation, in_operation
from .process import OpenStore

BRANCHES_MAX: Final = 100
UNITS_MAX: Final = 1_000  # of one user


class GlobalVerbs(OpenStore):
    """The operations on global units; `bulk_protocol.UnitStore` documents them."""

    @event("begin_global", keys="unit name", about=lambda name, *_: ["global", name or ""])
    @in_operation(feeds=True)
    def begin_global(self, operation: Operation, owner: int, branches: Sequence[Branch]) -> str:
        connection = self.connection(owner)
        if not 0 < len(branches) <= BRANCHES_MAX:
            raise bad_argument("branches", branches, f"1 to {BRANCHES_MAX} branches")
        for text in (text for one in branches for text in one):
            if len(text) > UNIT_NAME_LENGTH_MAX or not is_storable(text):
                raise bad_argument("branches", text, f"texts of at most {UNIT_NAME_LENGTH_MAX} characters")
        select, user = operation.backend.select, connection.holder.user
        if select(GlobalUnitRow, connection=owner, outcome=""):
            raise WrongState("the connection already has an undecided unit of work at other queue managers")
        if len(select(GlobalUnitRow, user=user)) >= UNITS_MAX:
            text = f"user {user} has {UNITS_MAX:,} units of work in doubt at other queue managers: settle some of them"
            raise UnitNotAvailable(text, user=user, most=UNITS_MAX)
        store = manager_row(operation.backend).identifier
        name = f"{store}/{os.urandom(4).hex()}/{operation.number()}"  # random: a restored store repeats numbers
        program = connection.program.name
        now = operation.backend.common_time(operation.now)
        operation.backend.save(GlobalUnitRow(name, owner, user, program, now, _text(branches), ""))
        operation.durable = True
        return name

    @event("end_global", keys="unit name", about=lambda _, name, *__: ["global", name])
    @in_operation()
    def end_global(self, operation: Operation, name: str, connections: Sequence[str], user: str | None = None) -> None:
        for row in operation.backend.select(GlobalUnitRow, name=name):
            if user not in (None, row.user):
                continue
            if not row.outcome and operation.backend.select(ConnectionRow, id=row.connection):
                raise WrongState(f"unit of work {written(name)} is undecided: its connection has not ended", unit=name)
            left = [one for one in branches_in(row.branches) if one.connection not in connections]
            if left:
                operation.backend.save(row._replace(branches=_text(left)))
            else:
                operation.backend.remove_records(GlobalUnitRow, name=name)  # no sync: it may be repeated


def decide(operation: Operation, owner: int, name: str, outcome: Outcome) -> None:
    """Writes the decision. Raises: ConnectionBroken, there is no undecided unit of this name and connection."""
    if not operation.kind.alone:
        raise Alone
    found = operation.backend.select(GlobalUnitRow, name=name, connection=owner, outcome="")
    if not found or not operation.backend.select(ConnectionRow, id=owner):
        raise ConnectionBroken(f"unit of work {written(name)} was backed out, because its connection was lost")
    operation.backend.save(found[0]._replace(outcome=outcome))
    operation.durable = True


@decodes("the parts of a unit of work")
def branches_in(text: str) -> tuple[Branch, ...]:
    """Decodes the parts that are not known to be settled. Raises: StoreDamaged."""
    found = tuple(Branch(*one) for one in json.loads(text))
    if not all(isinstance(word, str) for one in found for word in one):
        raise TypeError("a part has a name that is no text")
    return found


def _text(branches: Sequence[Branch]) -> str:
    return json.dumps(branches, ensure_ascii=False)


def global_units(operation: Operation, now: float) -> list[Unit]:
    """Returns the global units as an operator sees them."""
    found = []
    for row in operation.backend.select(GlobalUnitRow):
        alive = operation.backend.select(ConnectionRow, id=row.connection)
        found.append(
            Unit(
                kind="global",
                name=row.name,
                queue="",
                program=Program(row.user, row.program),
                started_at=row.started_at,
                puts=0,
                gets=0,
                locks=0,
                connection=row.connection if alive else None,
                process=operation.store.host.process_of(alive[0].process) if alive else None,
                branches=branches_in(row.branches),
                outcome=row.outcome or ("" if alive else "back_out"),
                age=max(0.0, now - row.started_at),
            )
        )
    return found
