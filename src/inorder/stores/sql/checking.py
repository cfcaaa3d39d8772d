"""Checks a store in a database: the conditions of its tables, and each value of each row.

The parts run one by one, so that others can work between them. The contents of messages, which are most of a store, are
also read in steps within their part.
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
from ..engine.global_units import branches_in
from ..engine.group_records import entry_of
from ..engine.history import sample_in
from ..engine.waits import levels_of
from ..seam.damage import DECODING
from ..seam.definitions import manager_of, queue_of
from ..seam.looking import pending_from_text
from .codec import wrong_body, wrong_descriptor
from .shapes import COUNTED_MAX, Shapes, Table

# Columns with texts of inorder's own, which a database cannot check.
TEXTS: Final[dict[tuple[str, str], Callable[[str], object]]] = {
    ("manager", "attributes"): manager_of,
    ("definition", "attributes"): queue_of,
    ("account", "state"): state_of,
    ("claim", "state"): state_of,
    ("entered", "entry"): entry_of,
    ("wait", "pending"): pending_from_text,
    ("wait", "levels"): levels_of,
    ("globalunit", "branches"): branches_in,
    ("sample", "queues"): sample_in,
}
# Columns stored in another form than callers give, and columns that may have any number.
FREE: Final = frozenset({"persistent", "body", "uid_number", "group_key", "order_key", "holder"})
TIME_MAX = PUT_AT_MAX + 1e9  # expiries and due times may be later than the latest time of a put
NO_FINDINGS: Final = frozenset({"ok", "*** in database main ***"})  # lines of SQLite's integrity_check
FIRST: Final = -(2**63)
STEP_CONTENTS, STEP_BYTES = 1000, 16 << 20  # read in one transaction
NEXT_CONTENTS = "SELECT id FROM content WHERE id > ? AND id NOT IN (SELECT id FROM leftover) ORDER BY id LIMIT ?"


class CheckedDatabase(Protocol):
    """A database that holds a store.

    Attributes:
        tables: the types that a value may have in each column of each table.
        sql: its statements, by name.
        wrong: the exceptions for rows that cannot be read, besides StoreDamaged.
    """

    tables: Mapping[str, Table]
    sql: Mapping[str, str]
    wrong: tuple[type[Exception], ...]

    def reading(self) -> AbstractContextManager[None]:
        """A block in which the database does not change. Raises: StoreDamaged, StoreError."""

    def query(self, sql: str, values: Sequence[Any] = ()) -> Iterable[tuple[Any, ...]]:
        """Yields the rows of a statement, in such a block."""


Part = Callable[[CheckedDatabase], list[str]]


def parts(statements: Iterable[str]) -> list[Part]:
    """Returns the parts of a check; each returns its findings in words.

    Damage that prevents reading is a finding, too. Otherwise a part raises the errors of `CheckedDatabase.reading`.

    Args:
        statements: conditions of the tables or of their file; each returns a row for each violation.
    """
    return [*(functools.partial(_by_statement, sql=sql) for sql in statements), _rows, _contents]


def _by_statement(database: CheckedDatabase, sql: str) -> list[str]:
    """Returns the findings of a statement, one for each line of a row."""
    found: list[str] = []
    try:
        with database.reading():
            for row in database.query(sql):
                found += (line for line in _said(*row).splitlines() if line not in NO_FINDINGS)
    except StoreDamaged as error:
        found.append(error.args[0])
    return found


def _said(text: str, row: object = None, parent: object = None, _: object = None) -> str:
    """Converts a result row to words. Our statements and SQLite's `integrity_check` already return words."""
    return text if parent is None else f"table {text}, row {row}: the row in {parent} to which it refers is missing"


def _rows(database: CheckedDatabase) -> list[str]:
    """Finds values that no column can have, and texts that cannot be decoded, in all tables except that of the
    contents.
    """
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
        found.append(f"table {table}, after {last}: {error.args[0]}")
    return found


def _wrong_value(names: Sequence[str], row: Sequence[Any]) -> str:
    """Returns the first value that neither a caller could have given nor inorder could have counted, in words, or
    "".
    """
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
    """Yields why a text of inorder's cannot be decoded."""
    try:
        if text is not None:
            decode(text)
    except StoreDamaged as error:
        yield error.args[0]


def _contents(database: CheckedDatabase) -> list[str]:
    """Finds impossible descriptors, and bodies that differ from those that were put."""
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
    """Checks one step of contents. Returns the last id that it looked at; None: there are no more."""
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
