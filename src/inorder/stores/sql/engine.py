"""The operations of a database that the shared SQL code needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ...rules.staging import Key
from ..seam.backend import OperationKind
from .shapes import Table

WITHIN = "get available within"  # a statement that counts bytes, of databases that send all rows at once
TAKE_AWAY = "get and remove"  # a statement that reads, deletes and counts at once; not all databases have it
MANY = 1000  # the number of rows from which `Engine.ignore_groups` is worth its cost


class Engine(Protocol):
    """A connection to a database, with its statements.

    Attributes:
        sql: the statements, by name; `selection` replaces {joins}, {chosen} and {head} in them.
        tables: the types that a value may have in each column of each table.
        execute: runs a statement with its values.
        run: as `execute`, for statements without rows, or whose rows are read before anything else runs; it costs less.
        scan: as `execute`, if some rows may stay unread: the result must then be closed.
        changes: how many rows the last statement changed.
        has_triggers: whether triggers keep the records of groups up to date: see `follow_groups`.
    """

    sql: Mapping[str, str]
    tables: Mapping[str, Table]
    has_triggers: bool

    @property
    def execute(self) -> Callable[..., Any]: ...

    @property
    def run(self) -> Callable[..., Any]: ...

    @property
    def scan(self) -> Callable[..., Any]: ...

    @property
    def changes(self) -> Callable[[], int]: ...

    @property
    def is_inside(self) -> bool: ...

    @property
    def has_happened(self) -> bool: ...

    def begin(self, kind: OperationKind) -> None: ...

    def commit(self, changed: Collection[int], *, reserves: bool, durable: bool) -> int: ...

    def abort(self, error: BaseException) -> None: ...

    def follow_groups(self) -> None:
        """Enables the triggers of the schema, because messages in groups will change."""

    def ignore_groups(self) -> AbstractContextManager[None]:
        """Disables the triggers in the block, for many rows at once; the block must update the groups itself.

        All statements are prepared again, twice.
        """

    def array(self, values: Sequence[int] | Sequence[bytes] | Sequence[str]) -> Any:
        """Returns at least one number, id or name as one value, for statements with `{which}` or `carray`."""

    def keys(self, values: Sequence[Key]) -> Sequence[Any]:
        """Returns the keys of staged rows as values that sort and compare as `rules.staging.sort_key` says."""

    def beginning(self, number: int, size: int) -> bytes | None:
        """Reads only the first bytes of a body. None: there is no such body."""
