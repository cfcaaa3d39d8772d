"""Rows of a bulk read, kept as columns and readable as a sequence of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from .records import BULK_COLUMNS, BulkRow


@dataclass(frozen=True, slots=True)
class BulkPage(Sequence[BulkRow]):
    """A page of rows, tuples in the order of BULK_COLUMNS; made of columns, which can be taken as they are.

    Args:
        messages: how many rows.
        shared: the columns in which all rows have the same value, by name.
        columns: the others, each with a value for each row.
    """

    messages: int
    shared: dict[str, Any]
    columns: dict[str, Sequence[Any]]

    @classmethod
    def of_columns(cls, columns: Mapping[str, Sequence[Any]]) -> BulkPage:
        """A page of whole columns, of one row or more; it finds those that rows share."""
        messages = len(next(iter(columns.values())))
        shared = {name: values[0] for name, values in columns.items() if _is_same(values)}
        return cls(messages, shared, {name: values for name, values in columns.items() if name not in shared})

    @classmethod
    def of_rows(cls, rows: Sequence[BulkRow]) -> BulkPage:
        """A page of rows; it may be empty."""
        if not rows:
            return cls(0, {}, dict.fromkeys(BULK_COLUMNS, ()))
        return cls.of_columns(dict(zip(BULK_COLUMNS, zip(*rows, strict=True), strict=True)))

    def with_columns(self, columns: Mapping[str, Sequence[Any]]) -> BulkPage:
        """The same rows, with columns that are new, or take the place of those of their names."""
        new = self.of_columns(columns)
        return BulkPage(
            self.messages,
            {name: value for name, value in self.shared.items() if name not in columns} | new.shared,
            {name: values for name, values in self.columns.items() if name not in columns} | new.columns,
        )

    def column(self, name: str) -> Sequence[Any]:
        """A value for each row."""
        return [self.shared[name]] * self.messages if name in self.shared else self.columns[name]

    def __len__(self) -> int:
        return self.messages

    def __iter__(self) -> Iterator[BulkRow]:
        return zip(*map(self.column, BULK_COLUMNS), strict=True)

    @overload
    def __getitem__(self, at: int) -> BulkRow: ...
    @overload
    def __getitem__(self, at: slice) -> list[BulkRow]: ...
    def __getitem__(self, at: int | slice) -> BulkRow | list[BulkRow]:
        if isinstance(at, slice):
            return list(zip(*(self.column(name)[at] for name in BULK_COLUMNS), strict=True))
        row = range(self.messages)[at]
        return tuple(self.shared[name] if name in self.shared else self.columns[name][row] for name in BULK_COLUMNS)


def _is_same(values: Sequence[Any]) -> bool:
    """Whether all values of a column are equal. It compares the two ends first, because most unequal columns differ
    there.
    """
    first = values[0]
    return bool(first == values[-1]) and values.count(first) == len(values)
