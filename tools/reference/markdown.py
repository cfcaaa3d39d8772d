"""Pieces of a Markdown page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

MADE = "<!-- Made from the program by `make reference`: change it there. -->"
PART = re.compile(r"(?<=<!-- made: )(\w+) -->.*?(?=<!-- end -->)", re.DOTALL)

Parts = Mapping[str, str]


def page(title: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", MADE, *(part.strip("\n") for part in parts if part)]) + "\n"


def filled(path: Path, parts: Callable[[], Parts]) -> str:
    """Returns a page that is written by hand, with the parts that the program makes in place of its marks."""
    made, text = parts(), path.read_text(encoding="utf-8")
    assert sorted(PART.findall(text)) == sorted(made), f"{path.name} must have marks for {sorted(made)}"
    return PART.sub(lambda found: f"{found[1]} -->\n\n{made[found[1]]}\n\n", text)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table; a cell may hold anything except a line's end."""
    lines = [_row(headings), "|" + "---|" * len(headings)]
    return "\n".join([*lines, *(_row(row) for row in rows)])


def _row(cells: Sequence[str]) -> str:
    assert not any("\n" in cell for cell in cells), cells
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def code(text: str) -> str:
    """A text as code inside a line; empty for an empty text."""
    return f"`{text}`" if text else ""


def codes(texts: Iterable[str]) -> str:
    return ", ".join(map(code, texts))


def sentence(text: str) -> str:
    """Returns the text with a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', ':')) else '.'}"
