"""The named statements of `queries.sql` and its like, each with its reason there, and the schema."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import NamedTuple

SCHEMA = files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")
VERSION = 3


def _named(file: str) -> dict[str, str]:
    text = files(__package__).joinpath(file).read_text(encoding="utf-8")
    found = re.findall(r"^-- name: ([^\n]+)\n(.*?)(?=^-- name: |\Z)", text, re.MULTILINE | re.DOTALL)
    return {name: text.strip() for name, text in found}


_FILES = ("queries.sql", "queries_owners.sql", "queries_claims.sql", "queries_bulk.sql", "queries_operating.sql")
_STATEMENTS = {name: text for file in _FILES for name, text in _named(file).items()}
_FRAGMENTS = _named("fragments_claims.sql")


def _plain(text: str) -> str:
    """A text without its comments."""
    return " ".join(re.sub(r"--[^\n]*", "", text).strip().rstrip(";").split())


def fragment(name: str, **parts: str) -> str:
    """A part of statements, by its name."""
    return _filled(_plain(_FRAGMENTS[name]), parts)


def _filled(text: str, parts: dict[str, str]) -> str:
    for part, replacement in parts.items():
        text = text.replace(f"{{{part}}}", replacement)
    return text


def statement(name: str, **parts: str) -> str:
    """A statement by its name, without its comments; `parts` replace what stands in it as {part}."""
    return " ".join(_filled(_plain(_STATEMENTS[name]), parts).split())


class ById(NamedTuple):
    """A statement about messages that are given by their numbers: one, or an array of them."""

    one: str
    many: str


def by_id(name: str) -> ById:
    """Such a statement by its name."""
    return ById(statement(name, which="= ?1"), statement(name, which="IN carray(?1)"))


def statements() -> dict[str, str]:
    """All of them, as they stand in the file: for tests and benchmarks."""
    return dict(_STATEMENTS)


def checks() -> dict[str, str]:
    """What must be true of a store: each statement brings a sentence for every place where it is not."""
    return _named("checks.sql")
