"""The named statements for PostgreSQL, and the schema.

Most are those of `stores/sql/`, in PostgreSQL's words (`RULES`). Those in `queries.sql` here stand for those of the
same name there, as do those in `fragments.sql`; those in `queries_sessions.sql` are PostgreSQL's alone.
"""

from __future__ import annotations

import re
from typing import Final

from ..sql.shapes import BLOB, INTEGER, REAL, TEXT, Types
from ..sql.statements import fragments, made, named, read, statements, tables, together

BOOLEAN: Types = frozenset({bool})
SCHEMA = read("postgresql", "schema.sql")
VERSION = 1
TABLES = tables(
    SCHEMA,
    {
        "bigint": INTEGER,
        "integer": INTEGER,
        "smallint": INTEGER,
        "double precision": REAL,
        "text": TEXT,
        "bytea": BLOB,
        "boolean": BOOLEAN,
    },
    end=r"(?: WITH|;)",
)

RULES: Final = (
    (r" INDEXED BY \w+", ""),  # the planner finds it
    (r"\bCROSS JOIN (\w+ \w+|\w+) ON\b", r"JOIN \1 ON"),
    (r"\bLIMIT :most\b", "LIMIT nullif(:most, -1)"),  # -1: all
    (r"\bjson_each\(", "numbers_in("),
    (r"\bis_end\b", "is_end(flags)"),
)


def translated(text: str) -> str:
    """A shared text in PostgreSQL's words."""
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text)
    return text


def own(file: str = "queries.sql") -> dict[str, str]:
    """Those that are PostgreSQL's alone, or say something in other words, as they stand in a file."""
    return named(read("postgresql", file))


def _made() -> dict[str, str]:
    shared = {name: translated(text) for name, text in statements().items()}
    parts = {name: translated(text) for name, text in fragments().items()}
    return made(
        together([shared, own(), own("queries_sessions.sql")]),
        together([parts, own("fragments.sql")]),
        many="= ANY(?1)",
    )


STATEMENTS = _made()


def checks() -> dict[str, str]:
    """What must be true of a store: each statement brings a sentence for every place where it is not."""
    return named(read("postgresql", "checks.sql"))
