"""Checks by the types in the schema that a row can have been written by inorder.

A database checks types when it writes, not when it reads. Correct combinations of types are cached, so that a row costs
one lookup in a set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Types = frozenset[type]
Table = Mapping[str, Types]  # by the names of the columns

COUNTED_MAX = 2**61  # above every counter
INTEGER: Types = frozenset({int})
REAL: Types = frozenset({float, int})
TEXT: Types = frozenset({str})
BLOB: Types = frozenset({bytes})
NULL: Types = frozenset({type(None)})


class Shapes:
    """The types that the columns of one kind of row may have.

    Attributes:
        known: combinations found correct; code that reads rows first checks `tuple(map(type, row)) in known`.
    """

    def __init__(self, columns: Sequence[tuple[str, Types]]) -> None:
        self._columns = columns
        self.known: set[tuple[Any, ...]] = set()

    @classmethod
    def of(cls, table: Table, names: Sequence[str]) -> Shapes:
        """For rows with these columns of a table."""
        return cls([(name, table[name]) for name in names])

    def wrong(self, row: Sequence[Any]) -> str:
        """Returns the first column with an impossible type, in words; empty if there is none."""
        for (name, types), value in zip(self._columns, row, strict=True):
            if type(value) not in types:
                return f"{name} cannot be {value!r:.60}"
        self.known.add(tuple(map(type, row)))
        return ""
