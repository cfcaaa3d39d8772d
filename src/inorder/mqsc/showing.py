"""What a DISPLAY found, in columns, each item as a script would have it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .values import written

INDENT = "   "
COLUMN_WIDTH = 40


def columns(row: Mapping[str, int | str | bool]) -> Iterator[str]:
    """The lines for one row: two items a line, where they fit; any item can be copied into a DEFINE or ALTER."""
    waiting = ""
    for item in (written(word, value) for word, value in row.items()):
        if waiting and len(waiting) < COLUMN_WIDTH and len(item) < COLUMN_WIDTH:
            yield f"{INDENT}{waiting:{COLUMN_WIDTH}}{item}"
            waiting = ""
            continue
        if waiting:
            yield INDENT + waiting
        waiting = item
    if waiting:
        yield INDENT + waiting
