"""The named statements of `queries.sql` and its like, each with its reason there, and the schema."""

from __future__ import annotations

import re
from importlib.resources import files

from ..sql.codec import GOT_COLUMNS, NARROW_COLUMNS, stored_columns
from ..sql.descriptors import column
from ..sql.shapes import BLOB, INTEGER, NULL, REAL, TEXT, Types

SCHEMA = files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")
VERSION = 7
_TYPES = {"INTEGER": INTEGER, "REAL": REAL, "TEXT": TEXT, "BLOB": BLOB, "ANY": INTEGER | REAL | TEXT | BLOB}


def _tables() -> dict[str, dict[str, Types]]:
    """The tables of the schema: what types a value may have in each column."""
    found = {}
    for table, text in re.findall(r"^CREATE TABLE (\w+) \(\n(.*?)^\) STRICT", SCHEMA, re.MULTILINE | re.DOTALL):
        columns = re.findall(r'^    "?([a-z_]+)"? (INTEGER|REAL|TEXT|BLOB|ANY)\b(.*)$', text, re.MULTILINE)
        found[table] = {
            name: _TYPES[kind] if rest.startswith((" NOT NULL", " PRIMARY KEY")) else _TYPES[kind] | NULL
            for name, kind, rest in columns
        }
    return found


TABLES = _tables()


def _named(file: str) -> dict[str, str]:
    text = files(__package__).joinpath(file).read_text(encoding="utf-8")
    found = re.findall(r"^-- name: ([^\n]+)\n(.*?)(?=^-- name: |\Z)", text, re.MULTILINE | re.DOTALL)
    return {name: text.strip() for name, text in found}


_FILES = ("queries.sql", "queries_claims.sql", "queries_bulk.sql")
_FRAGMENTS = _named("fragments_claims.sql")


def _plain(text: str) -> str:
    """A text without its comments."""
    return " ".join(re.sub(r"--[^\n]*", "", text).strip().rstrip(";").split())


def _filled(text: str, parts: dict[str, str]) -> str:
    """A text with parts in place of what stands in it as {part}."""
    for part, replacement in parts.items():
        text = text.replace(f"{{{part}}}", replacement)
    return text


def _fragment(name: str, **parts: str) -> str:
    return _filled(_plain(_FRAGMENTS[name]), parts)


COLUMNS = {
    "narrow": NARROW_COLUMNS,
    "whole": stored_columns(),
    "bare": stored_columns("?2", "NULL"),
    "preview": stored_columns("CASE WHEN m.length <= ?2 THEN c.body END", "NULL"),
    "got": GOT_COLUMNS,
    "text_kind": f"{column('coded_character_set_id')} || ' ' || {column('encoding')}",
}
NEXT = {
    kind: {
        "chosen": _fragment(kind, length=", length"),
        "places": _fragment(kind, length=""),
        "numbered": _fragment("numbered"),
        "running": _fragment("running"),
    }
    for kind in ("singles", "messages", "groups")
}
MESSAGES = ("singles", "messages")
KINDS = {"anything next": NEXT, "claim": MESSAGES, "count": MESSAGES, "weigh": MESSAGES, "place": MESSAGES}
PARTS = {
    "claim plain groups": NEXT["groups"],
    "claim groups": NEXT["groups"],
    "stretches of groups": NEXT["groups"],
    "doubtful groups": NEXT["groups"],
    "read claimed": {"columns": _fragment("columns", delivery="m.claimed")},
    "read messages": {"columns": _fragment("columns", delivery="0")},
    "read groups": {"columns": _fragment("columns", delivery="next.head")},
    "read group": {"columns": _fragment("columns", delivery=":head")},
}


def statements() -> dict[str, str]:
    """All of them, as they stand in the files."""
    return {name: text for file in _FILES for name, text in _named(file).items()}


def _made() -> dict[str, str]:
    """All of them, without comments and with their parts; of some there are two kinds."""
    made: dict[str, str] = {}
    for name, text in statements().items():
        plain = _plain(text)
        if name in KINDS:
            made |= {f"{name} of {kind}": _filled(plain, NEXT[kind]) for kind in KINDS[name]}
        elif "{which}" in plain:
            made[name] = plain.replace("{which}", "= ?1")
            made[f"{name} many"] = plain.replace("{which}", "IN carray(?1)")
        else:
            made[name] = " ".join(_filled(_filled(plain, PARTS.get(name, {})), COLUMNS).split())
    return {name: " ".join(text.split()) for name, text in made.items()}


STATEMENTS = _made()


def checks() -> dict[str, str]:
    """What must be true of a store: each statement brings a sentence for every place where it is not."""
    return _named("checks.sql")
