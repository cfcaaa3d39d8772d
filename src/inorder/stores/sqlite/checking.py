"""Whether a store is sound: what SQLite says of the file, and what must be true of its tables."""

from __future__ import annotations

from .database import Database
from .statements import checks

FILE = ("PRAGMA integrity_check", "PRAGMA foreign_key_check")


def statements_of_checks() -> list[str]:
    """The parts of a check; each brings a sentence for every place where something is wrong."""
    return [*FILE, *checks().values()]


def problems_of(database: Database, sql: str) -> list[str]:
    """Everything that is wrong by one of these, in words; others may work meanwhile.

    Raises: StoreDamaged, the file is too damaged to be read; what `Database.reading` raises.
    """
    with database.reading():
        return [text for row in database.connection.execute(sql) if (text := _said(*row)) != "ok"]


def problems(database: Database) -> list[str]:
    """Everything that is wrong; empty if the store is sound. For tests and the proof tools."""
    return [text for sql in statements_of_checks() for text in problems_of(database, sql)]


def _said(text: str, row: object = None, parent: object = None, _: object = None) -> str:
    """A row of an answer in words: ours and those of `integrity_check` are words already."""
    return text if parent is None else f"table {text}, row {row}: what it refers to in {parent} is missing"
