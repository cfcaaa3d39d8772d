"""The named statements, made of the texts in `queries.sql` and its like.

The texts are SQLite's, and name its indexes. Apart from that they say what other databases understand, too, unless it
would cost; another database brings texts of its own for those.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files

from ...errors import StoreError
from ...model.fields import LATER
from .codec import GOT_COLUMNS, LATER_COLUMNS, NARROW_COLUMNS, stored_columns
from .descriptors import column
from .shapes import NULL, Table, Types

Texts = Mapping[str, str]
_FILES = ("queries.sql", "queries_claims.sql", "queries_bulk.sql")

COLUMNS = {
    "narrow": NARROW_COLUMNS,
    "whole": stored_columns(),
    "bare": stored_columns("?2", "NULL"),
    "preview": stored_columns("CASE WHEN m.length <= ?2 THEN c.body END", "NULL"),
    "got": GOT_COLUMNS,
    "taken": re.sub(r"\b[mc]\.", "", GOT_COLUMNS),
    "later": ", ?" * len(LATER),
    "text_kind": f"{column('coded_character_set_id')} || ' ' || {column('encoding')}",
}
MESSAGES = ("singles", "messages")
LEVELS = (*MESSAGES, "groups")
KINDS = {
    "exists next": LEVELS,
    "claim messages": MESSAGES,
    "count next messages": MESSAGES,
    "count next messages by bytes": MESSAGES,
    "place of nth message": MESSAGES,
}
OF_GROUPS = ("claim plain groups", "claim groups", "stretches of groups", "doubtful groups")
DELIVERIES = {
    "messages of claim": "m.claimed",
    "messages of stretch": "0",
    "messages of groups": "next.head",
    "messages of group": ":head",
}


def read(*path: str) -> str:
    """A file of the package of stores. Raises: StoreError, the process can open no more files."""
    try:
        return files(__package__.rpartition(".")[0]).joinpath(*path).read_text(encoding="utf-8")
    except OSError as error:
        if error.errno is None:  # a time-out of the caller's
            raise
        raise StoreError(f"{'/'.join(path)} of inorder cannot be read: {error.strerror}") from error


def statements() -> dict[str, str]:
    """All of them, as they stand in the files."""
    return together(named(read("sql", file)) for file in _FILES)


def fragments() -> dict[str, str]:
    """The parts of those about claims."""
    return named(read("sql", "fragments_claims.sql"))


def named(text: str) -> dict[str, str]:
    """The statements of a file, by name."""
    found = re.findall(r"^-- name: ([^\n]+)\n(.*?)(?=^-- name: |\Z)", text, re.MULTILINE | re.DOTALL)
    return {name: text.strip() for name, text in found}


def made(statements: Texts, fragments: Texts, *, many: str) -> dict[str, str]:
    """All of them, without comments and with their parts; of some there are two kinds.

    Args:
        many: what stands behind `id` in place of {which} where a statement is about many; `= ?1` if it is about one.
    """
    made: dict[str, str] = {}
    for name, text in statements.items():
        plain = _plain(text)
        if name in KINDS:
            made |= {f"{name} of {kind}": _filled(plain, _next(fragments, kind)) for kind in KINDS[name]}
        elif "{which}" in plain:
            made[name] = plain.replace("{which}", "= ?1")
            made[f"{name} many"] = plain.replace("{which}", many)
        else:
            made[name] = _filled(_filled(plain, _parts(fragments, name)), COLUMNS)
    return {name: " ".join(text.split()) for name, text in made.items()}


def tables(schema: str, types: Mapping[str, Types], end: str) -> dict[str, Table]:
    """The tables of a schema: what types a value may have in each column.

    Args:
        types: of the types that columns have.
        end: what stands behind the last column of each, as a regular expression.
    """
    found: dict[str, Table] = {}
    kinds = "|".join(types)
    for table, text in re.findall(rf"^CREATE(?: UNLOGGED)? TABLE (\w+) \(\n(.*?)^\){end}", schema, re.M | re.S):
        columns = re.findall(rf'^    "?([a-z_]+)"? ({kinds})\b(?: COLLATE "C")?(.*)$', text, re.MULTILINE)
        found[table] = {
            name: types[kind] if rest.startswith((" NOT NULL", " PRIMARY KEY")) else types[kind] | NULL
            for name, kind, rest in columns
        }
    return found


def _next(fragments: Texts, kind: str) -> dict[str, str]:
    """What a statement about what is next on one level is made of."""
    return {
        "chosen": _filled(_plain(fragments[kind]), {"length": ", length"}),
        "places": _filled(_plain(fragments[kind]), {"length": ""}),
        "numbered": _plain(fragments["numbered"]),
        "running": _plain(fragments["running"]),
    }


def _parts(fragments: Texts, name: str) -> dict[str, str]:
    if name in OF_GROUPS:
        return _next(fragments, "groups")
    if name in DELIVERIES:
        parts = {"delivery": DELIVERIES[name], "later": LATER_COLUMNS}
        return {"columns": _filled(_plain(fragments["columns"]), parts)}
    return {}


def _plain(text: str) -> str:
    """A text without its comments."""
    return " ".join(re.sub(r"--[^\n]*", "", text).strip().rstrip(";").split())


def _filled(text: str, parts: Texts) -> str:
    """A text with parts in place of what stands in it as {part}."""
    for part, replacement in parts.items():
        text = text.replace(f"{{{part}}}", replacement)
    return text


def together(texts: Iterable[Texts]) -> dict[str, str]:
    """All texts; a later one of the same name stands for an earlier one."""
    return {name: text for one in texts for name, text in one.items()}
