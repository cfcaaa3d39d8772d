"""Pieces of a Markdown page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MADE = "<!-- Made from the program by `make reference`: change it there. -->"


def page(title: str, *parts: str) -> str:
    """A whole page."""
    return "\n\n".join([f"# {title}", MADE, *(part.strip("\n") for part in parts if part)]) + "\n"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a cell may hold anything but a line's end."""
    lines = [_row(headings), "|" + "---|" * len(headings)]
    return "\n".join([*lines, *(_row(row) for row in rows)])


def _row(cells: Sequence[str]) -> str:
    assert not any("\n" in cell for cell in cells), cells
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def code(text: str) -> str:
    """A text as code inside a line; nothing, if there is none."""
    return f"`{text}`" if text else ""


def codes(texts: Iterable[str]) -> str:
    return ", ".join(map(code, texts))


def sentence(text: str) -> str:
    """With a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', ':')) else '.'}"
