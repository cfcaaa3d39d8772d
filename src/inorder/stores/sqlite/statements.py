"""The named statements for SQLite, and the schema."""

from __future__ import annotations

from ..seam.migrations import SQLITE, Ladder
from ..sql.shapes import BLOB, INTEGER, REAL, TEXT
from ..sql.statements import checks as shared_checks
from ..sql.statements import fragments, made, named, read, statements, tables

SCHEMA = read("sqlite", "schema.sql")
VERSION = 11
LADDER = Ladder(VERSION, SQLITE)
TABLES = tables(
    SCHEMA,
    {"INTEGER": INTEGER, "REAL": REAL, "TEXT": TEXT, "BLOB": BLOB, "ANY": INTEGER | REAL | TEXT | BLOB},
    end=" STRICT",
)
STATEMENTS = made(statements(), fragments(), many="IN carray(?1)")


def checks() -> dict[str, str]:
    """Returns the conditions of a store: each statement returns a sentence for each violation."""
    return named(read("sqlite", "checks.sql")) | shared_checks()
