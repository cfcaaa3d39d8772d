"""Whether a store is sound: what SQLite says of the file, what must be true of its tables, and each value of each row.

The parts come one by one, so that others work between them. The contents of messages, which are most of a store, are
read some at a time also within their part.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import apsw

from ...errors import ArgumentError, StoreDamaged
from ...message import PUT_AT_MAX, Message
from ..claiming import state_of
from ..damage import DECODING
from ..definitions import manager_of, queue_of
from ..entries import entry_of
from ..looking import pending_from_text
from ..sql.codec import wrong_body, wrong_descriptor
from ..sql.shapes import COUNTED_MAX, Shapes
from ..waits import levels_of
from .database import Database
from .statements import STATEMENTS, TABLES, checks

FILE: Final = ("PRAGMA integrity_check", "PRAGMA foreign_key_check")
# Texts of our own in columns that SQLite can say nothing of.
TEXTS: Final[dict[tuple[str, str], Callable[[str], object]]] = {
    ("manager", "attributes"): manager_of,
    ("definition", "attributes"): queue_of,
    ("account", "state"): state_of,
    ("claim", "state"): state_of,
    ("entered", "entry"): entry_of,
    ("wait", "pending"): pending_from_text,
    ("wait", "levels"): levels_of,
}
# What is stored otherwise than callers give it, and what may be any number.
FREE: Final = frozenset({"persistent", "body", "uid_number", "group_key", "order_key", "holder"})
TIME_MAX = PUT_AT_MAX + 1e9  # what expires, or is due, may come later than any message is put
STEP_CONTENTS, STEP_BYTES = 1000, 16 << 20  # read in one transaction
NEXT_CONTENTS = "SELECT id FROM content WHERE id > ? AND id NOT IN (SELECT id FROM leftover) ORDER BY id LIMIT ?"

Part = Callable[[Database], list[str]]


def parts() -> list[Part]:
    """The parts of a check; each says in words where something is wrong.

    What cannot be read for the damage in it is a finding, too. A part raises what `Database.reading` raises otherwise.
    """
    statements = (*FILE, *checks().values())
    return [*(functools.partial(_by_statement, sql=sql) for sql in statements), _rows, _contents]


def problems(database: Database) -> list[str]:
    """Everything that is wrong; empty if the store is sound."""
    return [text for part in parts() for text in part(database)]


def _by_statement(database: Database, sql: str) -> list[str]:
    """What a statement says, a sentence for each row."""
    found: list[str] = []
    try:
        with database.reading():
            found += (text for row in database.connection.execute(sql) if (text := _said(*row)) != "ok")
    except StoreDamaged as error:
        found.append(error.args[0])
    return found


def _said(text: str, row: object = None, parent: object = None, _: object = None) -> str:
    """A row of an answer in words: ours and those of `integrity_check` are words already."""
    return text if parent is None else f"table {text}, row {row}: what it refers to in {parent} is missing"


def _rows(database: Database) -> list[str]:
    """Values that no column can have, and texts that cannot be read, in all tables but that of the contents."""
    found: list[str] = []
    for table in TABLES:
        if table != "content":
            found += _rows_of(database, table)
    return found


def _rows_of(database: Database, table: str) -> list[str]:
    names = list(TABLES[table])
    columns = ", ".join(f'"{name}"' for name in names)
    shapes = Shapes.of(TABLES[table], names)
    texts = [(names.index(name), decode) for (of, name), decode in TEXTS.items() if of == table]
    found: list[str] = []
    last: object = "the beginning"
    try:
        with database.reading():
            for row in database.connection.execute(f"SELECT {columns} FROM {table}"):
                last = f"row {row[0]!r:.30}"
                wrong = shapes.wrong(row) or _wrong_value(names, row)
                wrongs = [wrong] if wrong else [why for index, decode in texts for why in _unread(row[index], decode)]
                found += (f"table {table}, {last}: {wrong}" for wrong in wrongs)
    except StoreDamaged as error:
        found.append(f"table {table}, behind {last}: {error.args[0]}")
    return found


def _wrong_value(names: Sequence[str], row: Sequence[Any]) -> str:
    """The first value that no caller could have given and nothing could have counted, in words."""
    for name, value in zip(names, row, strict=True):
        if value is None or name in FREE:
            continue
        field = Message.FIELDS.get(name)
        if field is not None and field.check is not None:
            try:
                field.check(name, value)
            except ArgumentError as error:
                return str(error.args[0])
        elif (
            abs(value) > COUNTED_MAX if isinstance(value, int) else name.endswith("_at") and not 0 <= value <= TIME_MAX
        ):
            return f"{name} cannot be {value}"
    return ""


def _unread(text: str | None, decode: Callable[[str], object]) -> Iterator[str]:
    """Why a text of ours cannot be read."""
    try:
        if text is not None:
            decode(text)
    except StoreDamaged as error:
        yield error.args[0]


def _contents(database: Database) -> list[str]:
    """Descriptors that cannot be as they are, and bodies that are not those that were put."""
    names = list(TABLES["content"])  # the last ones: descriptor, crc, body
    shapes = Shapes.of(TABLES["content"], names)
    found: list[str] = []
    last: int | None = -(2**63)
    while last is not None:
        try:
            with database.reading():
                last = _some_contents(database, names, shapes, last, found)
        except StoreDamaged as error:
            found.append(f"contents behind {last}: {error.args[0]}")
            return found
    return found


def _some_contents(
    database: Database, names: Sequence[str], shapes: Shapes, after: int, found: list[str]
) -> int | None:
    """A step of it; the last one that was looked at, None: there are no more."""
    execute, size = database.connection.execute, 0
    sql = f"SELECT {', '.join(names)} FROM content WHERE id = ?"
    numbers: list[int] = [number for (number,) in execute(NEXT_CONTENTS, (after, STEP_CONTENTS))]
    for number in numbers:
        try:
            (row,) = execute(sql, (number,))
            wrong = (
                shapes.wrong(row)
                or _wrong_value(names, row)
                or wrong_descriptor(row[-3])
                or wrong_body(number, *row[-2:])
            )
            size += 0 if wrong else len(row[-1])
        except (*DECODING, apsw.CorruptError) as error:
            wrong = str(error)
        if wrong:
            queue = execute(STATEMENTS["queue of message"], (number,)).get
            found.append(f"message {number}{'' if queue is None else f' on queue {queue}'}: {wrong}")
        if size >= STEP_BYTES:
            return number
    return numbers[-1] if len(numbers) == STEP_CONTENTS else None
