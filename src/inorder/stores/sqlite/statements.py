"""The named statements of `queries.sql`, each with its reason there, and the schema."""

from __future__ import annotations

import re
from importlib.resources import files

SCHEMA = files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")
VERSION = 1

_STATEMENTS = {
    name: text.strip()
    for name, text in re.findall(
        r"^-- name: (\S+)\n(.*?)(?=^-- name: |\Z)",
        files(__package__).joinpath("queries.sql").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
}


def statement(name: str, **parts: str) -> str:
    """A statement by its name, without its comments; `parts` replace what stands in it as {part}."""
    text = re.sub(r"--[^\n]*", "", _STATEMENTS[name]).strip().rstrip(";")
    for part, replacement in parts.items():
        text = text.replace(f"{{{part}}}", replacement)
    return " ".join(text.split())


def statements() -> dict[str, str]:
    """All of them, as they stand in the file: for tests and benchmarks."""
    return dict(_STATEMENTS)
