"""Looks up the holders of messages in one transaction: units, handles and connections by number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..seam.backend import Backend
from ..seam.damage import only
from ..seam.tables import ConnectionRow, HandleRow, UnitRow
from .process import OpenHandle


class UnitOwners(NamedTuple):
    """Caches the units of a transaction; `handles` are those of this process."""

    backend: Backend
    handles: Mapping[int, OpenHandle]
    units: dict[int, UnitRow]

    def unit(self, number: int) -> UnitRow:
        unit = self.units.get(number)
        if unit is None:
            unit = only(self.backend.select(UnitRow, id=number), f"unit {number}")
            self.units[number] = unit
        return unit

    def whose_handle(self, handle: int) -> tuple[int, str]:
        """Returns the connection and the program of a handle, of any process."""
        found = only(self.backend.select(HandleRow, id=handle), f"handle {handle}")
        connection = only(self.backend.select(ConnectionRow, id=found.connection), f"connection {found.connection}")
        return connection.id, connection.program

    def has_locked(self, handle: int) -> bool:
        """Whether a handle of this process has a browse lock."""
        one = self.handles.get(handle)
        return one is not None and one.has_locked
