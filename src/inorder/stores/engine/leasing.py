"""The operations on leases: units of work with a name and a deadline, open to any process that has their token.

A lease is a unit of kind "lease" with a `LeaseRow`. Its name is derived from its token, and the token itself is not
stored. A connection that enters a lease uses it as its unit of work until it leaves it, so puts and gets under a lease
are those of any unit. Operations that use, settle or end a lease run alone (`backend.OperationKind`): one at a time,
even if several processes have the token. `rules.leases` says when it ends.
"""

from __future__ import annotations

from ...errors import CallerError, LeaseOver, Reason, UnitExists, UnitNotAvailable, written
from ...rules.leases import is_over
from ..seam.damage import only
from ..seam.records import Leased
from ..seam.tables import LeaseRow, UnitRow
from ..seam.telemetry import event
from .operation import Operation, in_operation
from .process import OpenStore
from .settling import settle_lease
from .staging import check_name


def find_lease(operation: Operation, name: str, user: str | None) -> tuple[UnitRow, LeaseRow]:
    """Returns a lease in force. Raises: LeaseOver, if it is over, or belongs to another user."""
    units = operation.backend.select(UnitRow, kind="lease", name=name)
    for unit in units:
        row = only(operation.backend.select(LeaseRow, unit=unit.id), f"lease {name}")
        if user in (None, unit.user) and not is_over(row.ends_at, operation.backend.common_time(operation.now)):
            return unit, row
    raise LeaseOver(
        f"there is no lease {written(name)}: it was committed or backed out, or it expired and was backed out",
        lease=name,
    )


def _open(operation: Operation, user: str, most: int) -> list[UnitRow]:
    """Returns the leases of a user that are in force, or enough of them to compare with `most`."""
    now = operation.backend.common_time(operation.now)
    units = [one for one in operation.backend.select(UnitRow, kind="lease") if one.user == user]
    if len(units) < most:
        return units
    ends = {one.unit: one.ends_at for one in operation.backend.select(LeaseRow)}
    return [one for one in units if not is_over(ends.get(one.id, now), now)]


def _leased(unit: UnitRow, row: LeaseRow) -> Leased:
    return Leased(unit.name, unit.user, row.ends_at, row.seconds)


class LeasingVerbs(OpenStore):
    """The operations on leases; `protocol.Store` documents them."""

    @event("begin_lease", keys="unit name", about=lambda _, __, name, *___: ["lease", name])
    @in_operation(feeds=True)
    def begin_lease(
        self, operation: Operation, owner: int, name: str, user: str, seconds: float, most: int | None
    ) -> Leased:
        check_name("name", name)
        if operation.backend.select(UnitRow, kind="lease", name=name):
            raise UnitExists("there is already a lease of this name", unit=name)
        if most is not None and len(_open(operation, user, most)) >= most:
            raise UnitNotAvailable(f"user {user} has {most:,} leases open, the most allowed", user=user, most=most)
        program = self.connection(owner).program
        unit = operation.begin_unit(program._replace(user=user), "lease", name)
        row = LeaseRow(unit.id, operation.backend.common_time(operation.now) + seconds, seconds, 0)
        operation.backend.save(row)
        operation.durable = True
        return _leased(unit, row)

    @event("lease", keys="unit name", about=lambda _, name, *__: ["lease", name])
    @in_operation(writes=False, unless_dead=(LeaseOver,))
    def lease(self, operation: Operation, name: str, user: str | None) -> Leased:
        return _leased(*find_lease(operation, name, user))

    @event("extend_lease", keys="unit name", about=lambda _, name, *__: ["lease", name])
    @in_operation(unless_dead=(LeaseOver,))
    def extend_lease(self, operation: Operation, name: str, user: str | None, seconds: float) -> Leased:
        unit, row = find_lease(operation, name, user)
        row = row._replace(ends_at=operation.backend.common_time(operation.now) + seconds, seconds=seconds)
        operation.backend.save(row)
        operation.durable = True
        return _leased(unit, row)

    @event("enter_lease", keys="unit name", about=lambda _, __, name, *___: ["lease", name])
    @in_operation(writes=False, unless_dead=(LeaseOver,))
    def enter_lease(self, operation: Operation, owner: int, name: str, user: str | None) -> Leased:
        connection = self.connection(owner)
        if connection.unit is not None:
            raise CallerError("the connection already has a unit of work", reason=Reason.UOW_IN_PROGRESS)
        unit, row = find_lease(operation, name, user)
        operation.enter_lease(connection, row)
        return _leased(unit, row)

    def leave_lease(self, owner: int) -> None:
        if owner in self.connections and self.connections[owner].is_leased:
            self._leave_lease(owner)

    @in_operation(writes=False, though_stopped=True)
    def _leave_lease(self, operation: Operation, owner: int) -> None:
        connection = self.connection(owner)
        operation.leave_unit(connection, connection.record)

    @event("end_lease", keys="unit name", about=lambda _, name, *__: ["lease", name])
    @in_operation()
    def end_lease(self, operation: Operation, name: str, user: str | None = None) -> None:
        unit, _ = find_lease(operation, name, user)
        settle_lease(operation, unit.id, "back_out")
