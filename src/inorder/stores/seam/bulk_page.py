"""Rows of a bulk read, kept as columns and readable as a sequence of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from .records import BULK_COLUMNS, BulkRow

PageEnd = tuple[Any, ...]  # where a page of a stretch ended: numbers, and pairs of numbers


@dataclass(frozen=True, slots=True)
class BulkPage(Sequence[BulkRow]):
    """A page of rows, which are tuples in the order of BULK_COLUMNS. It is stored as columns, which can be used
    directly.

    Args:
        messages: the number of rows.
        shared: the columns in which all rows have the same value, by name.
        columns: the others, each with a value for each row.
    """

    messages: int
    shared: dict[str, Any]
    columns: dict[str, Sequence[Any]]

    @classmethod
    def of_columns(cls, columns: Mapping[str, Sequence[Any]]) -> BulkPage:
        """Makes a page from whole columns of at least one row, and finds the shared ones."""
        messages = len(next(iter(columns.values())))
        shared = {name: values[0] for name, values in columns.items() if _is_same(values)}
        return cls(messages, shared, {name: values for name, values in columns.items() if name not in shared})

    @classmethod
    def of_rows(cls, rows: Sequence[BulkRow]) -> BulkPage:
        """Makes a page from rows, possibly none."""
        if not rows:
            return cls(0, {}, dict.fromkeys(BULK_COLUMNS, ()))
        return cls.of_columns(dict(zip(BULK_COLUMNS, zip(*rows, strict=True), strict=True)))

    def with_columns(self, columns: Mapping[str, Sequence[Any]]) -> BulkPage:
        """Returns the same rows with these columns added or replaced."""
        new = self.of_columns(columns)
        return BulkPage(
            self.messages,
            {name: value for name, value in self.shared.items() if name not in columns} | new.shared,
            {name: values for name, values in self.columns.items() if name not in columns} | new.columns,
        )

    def column(self, name: str) -> Sequence[Any]:
        """Returns a column, with a value for each row."""
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
    """Whether all values of a column are equal. Compares the two ends first, where most unequal columns differ."""
    first = values[0]
    return bool(first == values[-1]) and values.count(first) == len(values)
