"""What the shared SQL code asks of a database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ...rules.staging import Key
from ..seam.backend import OperationKind
from .shapes import Table

TAKE_AWAY = "get and remove"  # a statement by which a database reads, removes and counts at once; not all have it
MANY = 1000  # from so many rows on `Engine.ignore_groups` pays


class Engine(Protocol):
    """A connection to a database, with its statements.

    Attributes:
        sql: the statements, by name; what stands in them as {joins}, {chosen} and {head} is filled in with `selection`.
        tables: the types that a value may have in each column of each table.
        execute, execute_many: of a statement and its values.
        run: as `execute`, for what gives no rows, or whose rows are read before anything else runs; it costs less.
        scan: as `execute`, for rows that may be more than are read: `close` what it gives when they are not all read.
        changes: how many rows the last statement changed.
        has_triggers: whether what is known of groups follows the messages: see `follow_groups`.
    """

    sql: Mapping[str, str]
    tables: Mapping[str, Table]
    has_triggers: bool

    @property
    def execute(self) -> Callable[..., Any]: ...

    @property
    def execute_many(self) -> Callable[..., Any]: ...

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
        """From now on the triggers of the schema run: something changes about messages in groups."""

    def ignore_groups(self) -> AbstractContextManager[None]:
        """For many rows at once: no trigger runs in the block, which does for groups what the triggers would do.

        All statements are prepared again, twice.
        """

    def array(self, values: Sequence[int] | Sequence[bytes] | Sequence[str]) -> Any:
        """Numbers, ids or names as one value, for statements that say `{which}` or `carray`; one at least."""

    def keys(self, values: Sequence[Key]) -> Sequence[Any]:
        """The keys of staged rows as values that sort, and are equal, as `rules.staging.sort_key` says."""

    def beginning(self, number: int, size: int) -> bytes | None:
        """The first bytes of a body; the others are not read. None: there is no such body."""
