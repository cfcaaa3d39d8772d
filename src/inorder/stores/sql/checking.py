"""Whether a store in a database is sound: what must be true of its tables, and each value of each row.

The parts come one by one, so that others work between them. The contents of messages, which are most of a store, are
read some at a time also within their part.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

from ...errors import ArgumentError, StoreDamaged
from ...model.fields import PUT_AT_MAX
from ...model.message import Message
from ..engine.claiming import state_of
from ..engine.group_records import entry_of
from ..engine.waits import levels_of
from ..seam.damage import DECODING
from ..seam.definitions import manager_of, queue_of
from ..seam.looking import pending_from_text
from .codec import wrong_body, wrong_descriptor
from .shapes import COUNTED_MAX, Shapes, Table

# Texts of our own in columns of which a database can say nothing.
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
NO_FINDINGS: Final = frozenset({"ok", "*** in database main ***"})  # lines of SQLite's integrity_check
FIRST: Final = -(2**63)
STEP_CONTENTS, STEP_BYTES = 1000, 16 << 20  # read in one transaction
NEXT_CONTENTS = "SELECT id FROM content WHERE id > ? AND id NOT IN (SELECT id FROM leftover) ORDER BY id LIMIT ?"


class CheckedDatabase(Protocol):
    """A database that holds a store.

    Attributes:
        tables: the types that a value may have in each column of each table.
        sql: its statements, by name.
        wrong: what it raises for rows that cannot be read, beside StoreDamaged.
    """

    tables: Mapping[str, Table]
    sql: Mapping[str, str]
    wrong: tuple[type[Exception], ...]

    def reading(self) -> AbstractContextManager[None]:
        """A block in which the database stands still. Raises: StoreDamaged, StoreError."""

    def query(self, sql: str, values: Sequence[Any] = ()) -> Iterable[tuple[Any, ...]]:
        """The rows of a statement, in such a block."""


Part = Callable[[CheckedDatabase], list[str]]


def parts(statements: Iterable[str]) -> list[Part]:
    """The parts of a check; each says in words where something is wrong.

    What cannot be read for the damage in it is a finding, too. Otherwise a part raises what
    `CheckedDatabase.reading` raises.

    Args:
        statements: what must be true of the tables, or of what they lie in: a row for each place where it is not.
    """
    return [*(functools.partial(_by_statement, sql=sql) for sql in statements), _rows, _contents]


def _by_statement(database: CheckedDatabase, sql: str) -> list[str]:
    """What a statement says, a sentence for each line of a row."""
    found: list[str] = []
    try:
        with database.reading():
            for row in database.query(sql):
                found += (line for line in _said(*row).splitlines() if line not in NO_FINDINGS)
    except StoreDamaged as error:
        found.append(error.args[0])
    return found


def _said(text: str, row: object = None, parent: object = None, _: object = None) -> str:
    """A row of an answer in words: ours and those of SQLite's `integrity_check` are words already."""
    return text if parent is None else f"table {text}, row {row}: what it refers to in {parent} is missing"


def _rows(database: CheckedDatabase) -> list[str]:
    """Values that no column can have, and texts that cannot be read, in all tables but that of the contents."""
    found: list[str] = []
    for table in database.tables:
        if table != "content":
            found += _rows_of(database, table)
    return found


def _rows_of(database: CheckedDatabase, table: str) -> list[str]:
    names = list(database.tables[table])
    columns = ", ".join(f'"{name}"' for name in names)
    shapes = Shapes.of(database.tables[table], names)
    texts = [(names.index(name), decode) for (of, name), decode in TEXTS.items() if of == table]
    found: list[str] = []
    last: object = "the beginning"
    try:
        with database.reading():
            for row in database.query(f"SELECT {columns} FROM {table}"):
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


def _contents(database: CheckedDatabase) -> list[str]:
    """Descriptors that cannot be as they are, and bodies that are not those that were put."""
    names = list(database.tables["content"])
    shapes = Shapes.of(database.tables["content"], names)
    found: list[str] = []
    last: int | None = FIRST
    while last is not None:
        try:
            with database.reading():
                last = _some_contents(database, names, shapes, last, found)
        except StoreDamaged as error:
            where = "the contents of messages" if last in (None, FIRST) else f"the contents after {last}"
            found.append(f"{where}: {error.args[0]}")
            return found
    return found


def _some_contents(
    database: CheckedDatabase, names: Sequence[str], shapes: Shapes, after: int, found: list[str]
) -> int | None:
    """A step of it; the last one that was looked at, None: there are no more."""
    query, size = database.query, 0
    sql = f"SELECT {', '.join(names)} FROM content WHERE id = ?"
    numbers: list[int] = [number for (number,) in query(NEXT_CONTENTS, (after, STEP_CONTENTS))]
    for number in numbers:
        try:
            (row,) = query(sql, (number,))
            content = dict(zip(names, row, strict=True))
            wrong = (
                shapes.wrong(row)
                or _wrong_value(names, row)
                or wrong_descriptor(content["descriptor"])
                or wrong_body(number, content["crc"], content["body"])
            )
            size += 0 if wrong else len(content["body"])
        except Exception as error:
            if not isinstance(error, DECODING + database.wrong):
                raise
            wrong = str(error)
        if wrong:
            queue = "".join(f" on queue {name}" for (name,) in query(database.sql["queue of message"], (number,)))
            found.append(f"message {number}{queue}: {wrong}")
        if size >= STEP_BYTES:
            return number
    return numbers[-1] if len(numbers) == STEP_CONTENTS else None
