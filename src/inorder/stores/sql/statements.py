"""The named statements, built from the texts in `queries.sql` and similar files.

The texts are for SQLite and use its index hints. Otherwise they are portable, unless that would cost performance;
another database replaces those that it does not understand.
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
_FILES = ("queries.sql", "queries_claims.sql", "queries_bulk.sql", "queries_views.sql")

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
OF_STAGED = ("put staged", "put staged in order", "put staged in groups")
DELIVERIES = {
    "messages of claim": "m.claimed",
    "messages of stretch": "0",
    "messages of groups": "next.head",
    "messages of group": ":head",
}


def read(*path: str) -> str:
    """Reads a file of the package of stores. Raises: StoreError, if the process can open no more files."""
    try:
        return files(__package__.rpartition(".")[0]).joinpath(*path).read_text(encoding="utf-8")
    except OSError as error:
        if error.errno is None:  # a time-out of the caller's
            raise
        raise StoreError(f"{'/'.join(path)} of inorder cannot be read: {error.strerror}") from error


def statements() -> dict[str, str]:
    """Returns all statements as they are in the files."""
    return together(named(read("sql", file)) for file in _FILES)


def checks() -> dict[str, str]:
    """Returns the conditions of a store in any database: each statement returns a sentence for each violation."""
    return named(read("sql", "checks.sql"))


def fragments() -> dict[str, str]:
    """Returns the parts of statements."""
    return named(read("sql", "fragments.sql"))


def named(text: str) -> dict[str, str]:
    """Returns the statements of a file, by name."""
    found = re.findall(r"^-- name: ([^\n]+)\n(.*?)(?=^-- name: |\Z)", text, re.MULTILINE | re.DOTALL)
    return {name: text.strip() for name, text in found}


def made(statements: Texts, fragments: Texts, *, many: str) -> dict[str, str]:
    """Builds all statements: removes comments and fills in parts. Some statements have two variants.

    Args:
        many: the text for {which} after `id` in a statement about many messages; for one it is `= ?1`.
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
    """Returns the tables of a schema with the types that a value may have in each column.

    Args:
        types: the types that columns have.
        end: a regular expression for the text after the last column of each table.
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
    """Returns the parts of a statement about the next messages of one level."""
    return {
        "chosen": _filled(_plain(fragments[kind]), {"length": ", length"}),
        "places": _filled(_plain(fragments[kind]), {"length": ""}),
        "numbered": _plain(fragments["numbered"]),
        "running": _plain(fragments["running"]),
    }


def _parts(fragments: Texts, name: str) -> dict[str, str]:
    if name in OF_GROUPS:
        return _next(fragments, "groups")
    if name in OF_STAGED:
        return {"staged": _plain(fragments["staged"])}
    if name in DELIVERIES:
        parts = {"delivery": DELIVERIES[name], "later": LATER_COLUMNS}
        return {"columns": _filled(_plain(fragments["columns"]), parts)}
    return {}


def _plain(text: str) -> str:
    """Removes the comments from a text, and writes a search for each kind of head, in order: {heads} ... {/heads}."""
    plain = " ".join(re.sub(r"--[^\n]*", "", text).strip().rstrip(";").split())
    return re.sub(r"\{heads\} (.*?) \{/heads\}", _of_each_head, plain)


def _of_each_head(found: re.Match[str]) -> str:
    return " UNION ALL ".join(found[1].replace("{head}", head) for head in "210")


def _filled(text: str, parts: Texts) -> str:
    for part, replacement in parts.items():
        text = text.replace(f"{{{part}}}", replacement)
    return text


def together(texts: Iterable[Texts]) -> dict[str, str]:
    """Merges texts; a later one replaces an earlier one of the same name."""
    return {name: text for one in texts for name, text in one.items()}
