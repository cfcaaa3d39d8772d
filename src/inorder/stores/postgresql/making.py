"""Statements that are made of others: inserts of many rows, of a message with its content, changes that are counted."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

from ..sql.shapes import Table, Types
from .statements import STATEMENTS, TABLES


def _joined(one: str, another: str) -> str:
    """Two statements that insert as one; the values of the second follow those of the first."""
    return f"WITH first AS ({one.rstrip().rstrip(';')}) {another}"


def _appending(sql: str, between: str, queue: str) -> str:
    """A statement that inserts messages whose numbers are counted from 0: the server adds its counter."""
    columns, values = sql.split(between, 1)
    written = values.split(", ")
    assert columns.partition("(")[2].split(",")[NUMBER].strip() == "number", sql
    written[NUMBER] += f" + (SELECT counter FROM tally WHERE queue = {queue})"
    return columns + between + ", ".join(written)


NUMBER: Final = 4  # the column of messages that arrive
ARRIVALS: Final = {name: _joined(STATEMENTS[name], STATEMENTS["arrive content"]) for name in ("arrive", "arrive plain")}
APPENDED: Final = {
    name: _joined(_appending(STATEMENTS[name], " VALUES ", "?2"), STATEMENTS["arrive content"]) for name in ARRIVALS
}


@functools.lru_cache(maxsize=256)
def counted(sql: str, parameter: int) -> str:
    """The same change with one parameter more, its last: how many rows it changes."""
    done = f"WITH done AS ({sql.rstrip().rstrip(';')} RETURNING 1)"
    return f"{done} SELECT CASE WHEN count(*) <> ?{parameter} THEN expect(count(*), ?{parameter}) END FROM done"


@functools.lru_cache(maxsize=16)
def in_arrays(sql: str, *, appends: bool = False) -> tuple[str, int, Sequence[type]]:
    """The statement that inserts one row, for any number; how many arrays it is given, and of what.

    What is the same in all rows, and so written out, stays.

    Args:
        appends: numbers are counted from 0, and all go to one queue.
    """
    before, values = sql.rstrip().rstrip(";").rsplit(" VALUES ", 1)
    table, _, names = before.removeprefix("INSERT INTO ").partition("(")
    columns: Table = TABLES[table.strip()]
    written = [one.strip() for one in values.strip("()").split(",")]
    listed = [name.strip(' "\n)') for name in names.split(",")] if names else list(columns)
    kinds = [_kind(columns[name]) for name, value in zip(listed, written, strict=True) if value == "?"]
    given = iter(range(1, len(kinds) + 1))
    chosen = ", ".join(f"c{next(given)}" if value == "?" else value for value in written)
    arrays = ", ".join(f"?{number}" for number in range(1, len(kinds) + 1))
    named = ", ".join(f"c{number}" for number in range(1, len(kinds) + 1))
    into = f"{before} SELECT {chosen} FROM unnest({arrays}) AS rows({named})"
    if appends:
        queue = 1 + sum(value == "?" for value in written[: listed.index("queue")])
        into = _appending(into, " SELECT ", f"(?{queue})[1]")
    return into, len(kinds), kinds


def _kind(types: Types) -> type:
    return next(kind for kind in (float, int, str, bytes) if kind in types)
