"""Connections and open handles of this process; what others may want to know of them stands in the file."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..shelf import Connection, Handle
from .units import SqliteUnit


@dataclass(slots=True, eq=False)
class SqliteConnection(Connection[SqliteUnit]):
    """A connection, with its handles.

    Attributes:
        waits: a row says that a call of it waits.
    """

    waits: bool = False
    by_id: dict[int, SqliteHandle] = field(default_factory=dict)


@dataclass(slots=True, eq=False, kw_only=True)
class SqliteHandle(Handle[SqliteUnit]):
    """An open queue, by its number; `queue_name` is the local queue's."""

    queue: int
    queue_name: str
