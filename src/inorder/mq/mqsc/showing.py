"""Writes the result of a DISPLAY in columns, as runmqsc does: values have no quotes, and an empty one is a blank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from .objects import OBJECTS, Found, Row
from .values import Value, digits

INDENT = "   "
COLUMN_WIDTH = 40


def columns(found: Found) -> Iterator[str]:
    """The lines for one object: two items a line, if they fit. Its handles follow, each after an empty line."""
    yield from _lines(_item(word, cast(Value, value)) for word, value in found.items() if word != OBJECTS)
    for row in cast("tuple[Row, ...]", found.get(OBJECTS, ())):
        yield ""
        yield from columns(row)


def _item(keyword: str, value: Value) -> str:
    if isinstance(value, bool):
        return keyword if value else f"NO{keyword}"
    text = ",".join(value) if isinstance(value, tuple) else value if isinstance(value, str) else digits(value)
    return f"{keyword}({text or ' '})"


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
