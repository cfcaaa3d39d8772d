"""Units of work and their like, by the numbers of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...rules.puts import Program
from ..rows import HeldUnit


@dataclass(slots=True, eq=False)
class SqliteUnit(HeldUnit):
    """A unit, by the number of its row."""

    id: int = 0


def unit_of(columns: Sequence[Any]) -> SqliteUnit:
    """A unit from its row."""
    number, kind, name, connection, user, program, started_at = columns
    return SqliteUnit(Program(user, program), started_at, kind, name, connection, 0, number)
