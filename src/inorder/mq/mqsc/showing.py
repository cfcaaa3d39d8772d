"""Writes the result of a DISPLAY in columns, with each item in the form of a script."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from .objects import OBJECTS, Found, Row
from .values import Value, written

INDENT = "   "
COLUMN_WIDTH = 40


def columns(found: Found) -> Iterator[str]:
    """The lines for one object: two items a line, if they fit; any item can be copied into a DEFINE or ALTER.

    Its handles follow, each after an empty line.
    """
    yield from _lines(written(word, cast(Value, value)) for word, value in found.items() if word != OBJECTS)
    for row in cast("tuple[Row, ...]", found.get(OBJECTS, ())):
        yield ""
        yield from columns(row)


def _lines(items: Iterable[str]) -> Iterator[str]:
    waiting = ""
    for item in items:
        if waiting and len(waiting) < COLUMN_WIDTH and len(item) < COLUMN_WIDTH:
            yield f"{INDENT}{waiting:{COLUMN_WIDTH}}{item}"
            waiting = ""
            continue
        if waiting:
            yield INDENT + waiting
        waiting = item
    if waiting:
        yield INDENT + waiting
