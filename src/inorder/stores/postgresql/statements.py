"""The named statements for PostgreSQL, and the schema.

Most are those of `stores/sql/`, translated to PostgreSQL (`RULES`). Those in `queries.sql` here replace those of the
same name there, as do those in `fragments.sql`. Those in `queries_sessions.sql`, `queries_gets.sql` and
`queries_fronts.sql` exist only for PostgreSQL. Some of all these are built from `PARTS`.
"""

from __future__ import annotations

import re
from typing import Final

from ..seam.migrations import POSTGRESQL, Ladder
from ..sql.shapes import BLOB, INTEGER, REAL, TEXT, Types
from ..sql.statements import checks as shared_checks
from ..sql.statements import fragments, made, named, read, statements, tables, together

BOOLEAN: Types = frozenset({bool})
LIST: Types = frozenset({list})
FILES: Final = ("schema.sql", "schema_objects.sql", "functions.sql", "groups.sql", "fronts.sql")
SCHEMA = "\n".join(read("postgresql", file) for file in FILES)
VERSION = 4
LADDER = Ladder(VERSION, POSTGRESQL)
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
        "int8": LIST,  # how an array is written
    },
    end=r"(?: WITH|;)",
)

RULES: Final = (
    (r" INDEXED BY \w+", ""),  # the planner finds it
    (r"\bCROSS JOIN (\w+ \w+|\w+) ON\b", r"JOIN \1 ON"),
    (r"\bLIMIT :most\b", "LIMIT nullif(:most, -1)"),  # -1: all
    (r"\bjson_each\(", "numbers_in("),
    (r"-max\(", "-greatest("),
    (r"\bmax\(1, ", "greatest(1, "),
    (r"\bmin\((:most|[^(),]+, 32|count\(\*\), 32)", r"least(\1"),
    (r"CAST\((:\w+ \|\| )unhex\(printf\('%016X', (\w+)\)\) AS BLOB\)", r"\1int8send(\2)"),
    (r"\bhex\((\w+)\)", r"encode(\1, 'hex')"),
    (r"\bis_end\b", "is_end(flags)"),
    # A function of the row, and an index of the rows for which it is not NULL: schema.sql.
    (r"\b(m\.)?holder (?==|>|IS NOT NULL)", r"NOT \1available AND \1number IS NOT NULL AND \g<0>"),
    (r"(?<![\w.])holder\b", "message.holder"),
)


OWN: Final = ("queries.sql", "queries_sessions.sql", "queries_gets.sql", "queries_fronts.sql")
PARTS: Final = ("removed", "removed one", "left", "left together", "one left", "one left together", "first available")

FIRST: Final = re.compile(
    r"SELECT (\*|\*, ctid AS message_at) FROM message WHERE queue = \?1 AND head = (\d) AND available"
    r"((?: AND here\.known = 1)?) ORDER BY rank, number, ordinal(?: LIMIT \S+)?((?: FOR UPDATE SKIP LOCKED)?)"
)
GETS: Final = (
    *("get available", "get available singles", "get and remove", "get and remove one"),
    *("get available singles together", "get and remove together"),
    *("get and remove together as known", "get and remove one together as known"),
)


def translated(text: str) -> str:
    """Translates a shared text to PostgreSQL."""
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text)
    return text


def own(file: str = "queries.sql") -> dict[str, str]:
    """Returns the statements of a file that are PostgreSQL's own, or replace shared ones."""
    return named(read("postgresql", file))


def _made() -> dict[str, str]:
    shared = {name: translated(text) for name, text in statements().items()}
    parts = {name: translated(text) for name, text in fragments().items()} | own("fragments.sql")
    texts = together([shared, *map(own, OWN)])
    for part in PARTS:
        filling = parts[part].rstrip(";")
        texts = {name: text.replace(f"{{{part}}}", filling) for name, text in texts.items()}
    return made(texts, parts, many="= ANY(?1)")


def after_fronts(text: str) -> str:
    """Changes the statement of a get so that it takes from each level, in order, what is after the level's front."""
    limit = "?2" if "LIMIT ?2" in text else "1"
    first = (
        r"SELECT next.* FROM levels_of(?1, \2) AS level CROSS JOIN LATERAL ( SELECT \1 FROM message WHERE queue = ?1 "
        r"AND head = \2 AND available AND rank = level.rank AND number >= level.front\3 ORDER BY number, ordinal "
        rf"LIMIT {limit}\4 ) AS next LIMIT {limit}"
    )
    made_after, searches = FIRST.subn(first, text)
    assert searches, text
    return made_after.replace(f" ORDER BY m.rank, m.number, m.ordinal LIMIT {limit} )", " )")


STATEMENTS = _made()
STATEMENTS |= {f"{name} after fronts": after_fronts(STATEMENTS[name]) for name in GETS}


def checks() -> dict[str, str]:
    """Returns the conditions of a store: each statement returns a sentence for each violation."""
    return own("checks.sql") | {name: translated(text) for name, text in shared_checks().items()}
