"""Builds statements from others: inserts of many rows, of a message with its content, counted changes."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from itertools import count
from typing import Final, NamedTuple

from ..sql.shapes import Table, Types
from .statements import STATEMENTS, TABLES


def _joined(one: str, another: str) -> str:
    """Joins two inserts into one statement; the parameters of the second follow those of the first."""
    return f"WITH first AS ({one.rstrip().rstrip(';')}) {another}"


def _appending(sql: str, between: str, queue: str) -> str:
    """Changes a statement that inserts messages so that numbers are counted from 0 and the server adds its counter."""
    columns, values = sql.split(between, 1)
    written = values.split(", ")
    assert columns.partition("(")[2].split(",")[NUMBER].strip() == "number", sql
    written[NUMBER] += f" + (SELECT counter FROM tally WHERE queue = {queue} ORDER BY serial DESC LIMIT 1)"
    return columns + between + ", ".join(written)


def _numbered(sql: str, first: int) -> str:
    """Numbers a statement's parameters, from this number on."""
    numbers = count(first)
    return "".join(f"?{next(numbers)}" if part == "?" else part for part in re.split(r"(\?)", sql))


def _put(arrival: str, here: str, more: str = "") -> str:
    """Builds the one statement of a put: the guess about the queue, a message with its content, the kind of commit.

    If the guess is wrong it changes nothing, and its row begins with NULL.

    Args:
        here: the name of the statement that reads the queue; its answer has the queue's counter.
        more: further parts of the statement, which use `here`.
    """
    here, row, content = (STATEMENTS[name].rstrip().rstrip(";") for name in (here, arrival, "insert content"))
    values = _numbered(row, 1 + max(map(int, re.findall(r"\?(\d+)", here))))
    columns, given = values.split(" VALUES ", 1)
    written = given.strip("()").split(", ")
    assert columns.partition("(")[2].split(",")[NUMBER].strip() == "number", row
    written[NUMBER] += " + counter"
    inserted = _numbered(content, 1 + max(map(int, re.findall(r"\?(\d+)", values))))
    level = 1 + max(map(int, re.findall(r"\?(\d+)", inserted)))
    table, given = inserted.split(" VALUES ", 1)
    return (
        f"WITH here AS MATERIALIZED ({here}), first AS ({columns} SELECT {', '.join(written)} FROM here), "
        f"second AS ({table} SELECT {given.strip('()')} FROM here){more} SELECT max(counter), max(reserved), "
        f"max(depth), set_config('synchronous_commit', ?{level}, true) FROM here"
    )


# Usually all messages of a block have the same values in these: then the server unpacks no arrays.
ALIKE: Final = frozenset("queue state rank persistent priority visible_at unit put_at expiry delay descriptor".split())
NUMBER: Final = 4  # the position of the column among those of an arriving message
ARRIVALS: Final = {
    name: _joined(STATEMENTS[name], STATEMENTS["insert content"]) for name in ("insert message", "insert plain message")
}
APPENDED: Final = {
    name: _joined(_appending(STATEMENTS[name], " VALUES ", "?2"), STATEMENTS["insert content"]) for name in ARRIVALS
}
PUTS: Final = {name: _put(name, "count one arrival") for name in ARRIVALS}
COUNTED: Final = (
    STATEMENTS["update queue counters together"]
    .replace("VALUES (?1, pg_backend_pid(), ?2, ?3)", "SELECT ?1, pg_backend_pid(), 1, 1 FROM here")
    .rstrip()
    .rstrip(";")
)
PUTS_TOGETHER: Final = {name: _put(name, "count one arrival together", f", third AS ({COUNTED})") for name in ARRIVALS}


@functools.lru_cache(maxsize=256)
def counted(sql: str, parameter: int) -> str:
    """Returns the same change with one more parameter, the last: how many rows it must change."""
    done = f"WITH done AS ({sql.rstrip().rstrip(';')} RETURNING 1)"
    return f"{done} SELECT CASE WHEN count(*) <> ?{parameter} THEN expect(count(*), ?{parameter}) END FROM done"


class RowsInsert(NamedTuple):
    """The statement that inserts any number of rows: each parameter is a value for all rows, or an array.

    Args:
        kinds: of the elements of each array; None: a value.
    """

    text: str
    kinds: Sequence[type | None]


@functools.lru_cache(maxsize=16)
def in_arrays(sql: str, *, appends: bool = False, alike: bool = False) -> RowsInsert:
    """Extends the statement that inserts one row to any number. Values in its text, the same for all rows, stay.

    Args:
        appends: numbers are counted from 0, and all rows go to one queue.
        alike: all rows have one value in each of the columns `ALIKE`.
    """
    before, values = sql.rstrip().rstrip(";").rsplit(" VALUES ", 1)
    table, _, names = before.removeprefix("INSERT INTO ").partition("(")
    columns: Table = TABLES[table.strip()]
    written = [one.strip() for one in values.strip("()").split(",")]
    listed = [name.strip(' "\n)') for name in names.split(",")] if names else list(columns)
    given = [name for name, value in zip(listed, written, strict=True) if value == "?"]
    kinds = [None if alike and name in ALIKE else _kind(columns[name]) for name in given]
    numbers = [number for number, kind in enumerate(kinds, 1) if kind is not None]
    chosen = iter([f"?{number}" if kind is None else f"c{number}" for number, kind in enumerate(kinds, 1)])
    selected = ", ".join(next(chosen) if value == "?" else value for value in written)
    arrays, named = (", ".join(f"{mark}{number}" for number in numbers) for mark in ("?", "c"))
    into = f"{before} SELECT {selected} FROM unnest({arrays}) AS rows({named})"
    if appends:
        queue = 1 + given.index("queue")
        into = _appending(into, " SELECT ", f"?{queue}" if alike else f"(?{queue})[1]")
    return RowsInsert(into, kinds)


@functools.lru_cache(maxsize=16)
def alike_in(sql: str) -> Sequence[int]:
    """Returns the positions of the columns `ALIKE` among the parameters of a statement that inserts one row."""
    return [nth for nth, kind in enumerate(in_arrays(sql, alike=True).kinds) if kind is None]


def _kind(types: Types) -> type:
    return next(kind for kind in (float, int, str, bytes) if kind in types)
