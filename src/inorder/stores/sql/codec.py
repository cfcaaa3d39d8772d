"""Converts messages to columns and back.

A generated message id, the unique id and the token are all derived from the message's number, so they are not stored;
an id of all NUL is stored as NULL. The fields that a search needs are in the table `message`, the others in `content`.

Each body has a CRC-32 that starts with the message's number, so a body that was changed in the file, or that belongs to
another message, is found when it is read. An empty body with a small number costs no more bytes than the number.
"""

from __future__ import annotations

import functools
import math
import operator
import struct
import sys
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn
from zlib import crc32

from ...errors import StoreDamaged
from ...model.fields import EXPIRY_SECONDS_MIN, LATER, NO_ACCOUNTING, PUT_AT_MAX
from ...model.message import ANY_GROUP, NO_ID, REPORT_GENERATED, Message, Place, Row, UniqueId
from ...model.parameters import ID_LENGTH
from ...model.properties import NO_PROPERTIES, Properties
from ...rules.lifecycle import State
from ...rules.ordering import effective_priority
from ...rules.puts import make_id
from ..seam.bulk_page import BulkPage
from ..seam.damage import DECODING, damaged
from ..seam.queued import HELD, LOCKS, NEVER, NO_PLACE, QueuedMessage
from .attention import DUE, EXPIRES, GROUPS, REPORTS
from .descriptors import BETWEEN, Values, as_text, check, parts_of, values_of, with_properties
from .descriptors import FIELDS as DESCRIBED
from .shapes import BLOB, INTEGER, NULL, Shapes, Table

INDEX = {name: index for index, name in enumerate(Message.FIELDS)}

IN_CONTENT = frozenset({"put_at", *LATER})  # columns of `content`; other fields are columns of `message`
LATER_COLUMNS = "".join(f', c."{name}"' for name in LATER)  # at the end, in the order of a row

_FLAGS, _GROUP, _SEQUENCE, _OFFSET = INDEX["flags"], INDEX["group_id"], INDEX["sequence_number"], INDEX["offset"]


def stored_columns(body: str = "c.body", crc: str = "c.crc") -> str:
    """Returns the columns for `Codec.full`. `body`: the expression for the body; `crc`: NULL if that is only a part."""
    return (
        "m.id, c.descriptor, c.expiry, m.priority, m.persistent, m.message_id, m.correlation_id, c.put_at, m.group_id, "
        f'm.sequence_number, m."offset", m.flags, m.original_length, c.delay, {crc}, {body}, m.length, m.uid_origin, '
        f"m.uid_number{LATER_COLUMNS}"
    )


NARROW_COLUMNS = (
    'm.id, m.flags, m.group_id, m.sequence_number, m."offset", m.length, m.original_length, m.persistent, '
    "m.message_id, m.correlation_id, m.uid_origin, m.uid_number, m.queue, m.state, m.rank, m.number, m.ordinal, "
    "m.visible_at, m.expires_at, m.due_at, m.backouts, m.unit, m.away, m.locked_handle, m.locked_at, m.lock, "
    "m.lock_confirm, m.co_op_marked_at, m.forgotten, m.claimed"
)
DESCRIBED_COLUMNS = f"{NARROW_COLUMNS}, c.descriptor, m.priority, c.put_at{LATER_COLUMNS}"  # for a selector
STATES = {int(state): state for state in State if state}
# For `Codec.got`.
GOT_COLUMNS = (
    "m.id, c.descriptor, m.priority, m.persistent, m.message_id, m.correlation_id, c.put_at, m.group_id, "
    'm.sequence_number, m."offset", m.flags, m.original_length, c.crc, c.body, m.length, m.uid_origin, m.uid_number, '
    f"m.expires_at, m.backouts, m.rank, m.number, m.ordinal{LATER_COLUMNS}"
)
GOT_BODY = GOT_COLUMNS.split(", ").index("c.body")
# For `Codec.bulk`: the stored ones of `records.BULK_COLUMNS`, and columns for checking a row.
READ_IN_BULK = [
    *"rank number ordinal delivery expires_at priority persistent message_id correlation_id put_at group_id "
    "sequence_number offset flags original_length body length backout_count uid_origin uid_number descriptor crc id"
    .split(),
    *LATER,
]  # fmt: skip


LEVELS_MAX = 64  # cached for one queue


class Arriving(NamedTuple):
    """Messages as values for `message` and for `content`, one row after another.

    Args:
        plain: those that are in no group, never expire, are not delayed, and have only generated ids.
        rows: the others.
        attention: the attention bits that they set on their queue.
    """

    plain: list[Any]
    rows: list[Any]
    contents: list[Any]
    attention: int


class Codec:
    """Converts messages for one queue manager, whose name is part of generated ids.

    A value that cannot have been written raises `StoreDamaged`, with the queue and the message.

    Args:
        tables: the types of the columns of each table.
        queue_of: returns the name of the queue that has a message, by its number; None: none has.
    """

    def __init__(self, manager_name: str, tables: Mapping[str, Table], queue_of: Callable[[int], str | None]) -> None:
        self.name_after(manager_name, manager_name)
        self._queue_of = queue_of
        columns = {**tables["content"], **tables["message"]}
        in_part = {**columns, "crc": NULL, "body": BLOB | NULL}
        self._narrow = Shapes.of(columns, _names(NARROW_COLUMNS))
        self._described = Shapes.of(columns, _names(DESCRIBED_COLUMNS))
        self._full = Shapes.of(columns, _names(stored_columns()))
        self._part = Shapes.of(in_part, _names(stored_columns()))
        self._got = Shapes.of({**columns, "number": INTEGER}, _names(GOT_COLUMNS))
        self._in_bulk = [(name, _BULK.get(name) or columns[name]) for name in READ_IN_BULK]
        self._bulk = Shapes(self._in_bulk)
        self._columns = columns
        self._states: set[tuple[Any, ...]] = set()
        # The levels of arriving messages by priority and head, for the queue of the last put.
        self._levels_of: Any = None
        self._levels: dict[tuple[int, int], int] = {}

    def name_after(self, manager_name: str, origin: str) -> None:
        """Sets the queue manager's name, and the name with which it was created, which ids contain."""
        self.name, self.origin = manager_name, origin
        self.prefix = make_id(origin, 0)[:16]

    def own_id(self, number: int) -> bytes:
        """Returns the message id derived from a number."""
        return self.prefix + number.to_bytes(8, "big")

    def shapes_of(self, names: Sequence[str]) -> Shapes:
        """Returns the types of rows with these columns, for messages that have places."""
        return Shapes.of({**self._columns, "number": INTEGER}, names)

    # --- impossible values

    def damaged(self, number: object, wrong: str) -> StoreDamaged:
        """Returns the error for a damaged message, with its queue if that can still be found."""
        queue = self._queue_of(number) if isinstance(number, int) and 0 < number < 2**63 else None
        where = f"message {number!r:.30}" if queue is None else f"message {number} on queue {queue}"
        return damaged(where, wrong, number=number, queue=queue)

    def refuse_body(self, number: int, crc: int, body: bytes, length: int) -> NoReturn:
        """Raises: StoreDamaged, because a body does not have its stored CRC or length."""
        raise self.damaged(number, wrong_body(number, crc, body) or f"its body has {len(body)} bytes, not {length}")

    def _judge(self, columns: tuple[Any, ...], shapes: Shapes) -> None:
        """Checks a combination of types that is new."""
        if wrong := shapes.wrong(columns):
            raise self.damaged(columns[0], wrong)

    def _judge_state(self, columns: tuple[Any, ...], shapes: Shapes) -> None:
        """Checks a new combination of types and a state: holders fit the state, as the CHECKs in `schema.sql` say."""
        self._judge(columns, shapes)
        state, unit, handle, lock = (columns[index] for index in (_STATE, _UNIT, _HANDLE, _LOCK))
        is_held, is_locked = unit is not None, lock is not None or handle is not None
        if state not in STATES or (state in HELD) != is_held or (state in LOCKS) != is_locked:
            wrong = f"in state {state} it cannot be held by unit {unit} and locked by handle {handle} or unit {lock}"
            raise self.damaged(columns[0], wrong)
        self._states.add((state, *map(type, columns)))

    def number_in(self, message_id: bytes) -> int | None:
        """Returns the number from which this message id was derived, if this queue manager made it."""
        number = int.from_bytes(message_id[16:], "big")
        return number if message_id[:16] == self.prefix and number < 2**63 else None

    def arriving(
        self,
        arriving: Sequence[Row],
        queue: int,
        attributes: Any,
        state: State,
        first_number: int | None,
        unit: int | None,
        now: float,
    ) -> Arriving:
        """Converts arriving messages to values."""
        plain, rows, contents = list[Any](), list[Any](), list[Any]()
        prefix, own, place_number = self.prefix, self.origin, first_number
        visible_at = None if unit else now
        levels = self._levels
        if attributes is not self._levels_of or len(levels) > LEVELS_MAX:
            self._levels, self._levels_of = (levels := {}), attributes
        attention, described, shared, reports = 0, (), "", 0
        for row in arriving:
            (expiry, priority, persistent, message_id, correlation_id, put_at, properties, body, length, token,
             (origin, uid)) = _always_asked(row)  # fmt: skip
            number = int.from_bytes(token, "big")
            own_uid = uid == number and origin == own
            own_id = message_id == prefix + token[8:]
            single = (alone := row[_ALONE]) == _USUAL
            head = 2 if single else _head(*alone[1:4])
            level = levels.get((priority, head))
            if level is None:
                level = levels[priority, head] = -effective_priority(attributes, Message.from_row(row))
            if (values := _described(row)) != described:
                described, shared, reports = values, as_text(values), values[_REPORT] & REPORT_GENERATED
                attention |= REPORTS if reports else 0
            descriptor = shared if properties is NO_PROPERTIES else with_properties(values, properties)
            if expiry == math.inf:
                expiry = None
            if single and own_id and own_uid and expiry is None and correlation_id == NO_ID and not reports:
                plain += number, queue, state, level, place_number, length, persistent, priority, visible_at, unit
                delay = None
            else:
                group_id, sequence_number, offset, flags, original_length, delay = alone
                if expiry is not None:
                    attention |= EXPIRES
                if delay:
                    attention |= DUE
                if group_id != NO_ID or head != 2:
                    attention |= GROUPS
                rows += (
                    number,
                    queue,
                    state,
                    level,
                    place_number,
                    head,
                    None if group_id == NO_ID else group_id,
                    sequence_number,
                    offset,
                    length,
                    flags,
                    original_length,
                    persistent,
                    priority,
                    None if own_id else message_id,
                    None if correlation_id == NO_ID else correlation_id,
                    None if own_uid else origin,
                    None if own_uid else uid,
                    None if expiry is None else now + expiry,
                    now + delay if delay else None,
                    visible_at,
                    unit,
                    1 if reports else None,
                )
            content = number, put_at, expiry, delay or None, descriptor, crc32(body, number), body
            contents += content + row[_LATER:] if LATER else content
            if place_number is not None:
                place_number += 1
        return _tuple(Arriving, (plain, rows, contents, attention))

    def row(self, columns: tuple[Any, ...]) -> QueuedMessage:
        """Makes a message on a queue, with the fields that a search needs, from NARROW_COLUMNS."""
        if (columns[_STATE], *map(type, columns)) not in self._states:
            self._judge_state(columns, self._narrow)
        return self._queued(columns, self.narrow(columns[:_QUEUE]))

    def described(self, columns: tuple[Any, ...]) -> QueuedMessage:
        """The same with everything but the body, from DESCRIBED_COLUMNS."""
        (number, flags, group_id, sequence_number, offset, length, original_length, persistent, message_id,
         correlation_id, uid_origin, uid_number) = columns[:_QUEUE]  # fmt: skip
        descriptor, priority, put_at, *later = columns[_NARROW:]
        if (columns[_STATE], *map(type, columns)) not in self._states:
            self._judge_state(columns, self._described)
        if group_id is not None and len(group_id) != ID_LENGTH:
            raise self.damaged(number, f"group_id has {len(group_id)} bytes, not {ID_LENGTH}")
        if not 0 <= put_at <= PUT_AT_MAX:
            raise self.damaged(number, f"put_at cannot be {put_at}")
        described, properties = self._read_descriptor(number, descriptor)
        (report, message_type, feedback, encoding, ccsid, format_, reply_to, reply_to_manager, user, accounting,
         identity, put_type, put_name, origin, transmission) = described  # fmt: skip
        token = number.to_bytes(16, "big")
        message = Message.from_row((
            report, message_type, None, feedback, encoding, ccsid, format_, priority, bool(persistent),
            message_id or self.prefix + token[8:], correlation_id or NO_ID, reply_to, reply_to_manager, user,
            accounting or NO_ACCOUNTING, identity, put_type, put_name, put_at, origin, group_id or NO_ID,
            sequence_number, offset, flags, original_length, 0.0, transmission, properties, b"", length, 0, token,
            UniqueId(self.origin, number) if uid_origin is None else UniqueId(uid_origin, uid_number), None, None, None,
            *later,
        ))  # fmt: skip
        return self._queued(columns[:_NARROW], message)

    def _queued(self, columns: tuple[Any, ...], message: Message) -> QueuedMessage:
        (queue, state, rank_, number, ordinal, visible_at, expires_at, due_at, backouts, unit, away, locked_handle,
         locked_at, lock, lock_confirm, co_op_marked_at, forgotten, claimed) = columns[_QUEUE:]  # fmt: skip
        try:
            return QueuedMessage(
                message,
                columns[0],
                queue,
                rank_,
                STATES[state],
                NO_PLACE if number is None else Place(rank_, number, ordinal),
                NEVER if visible_at is None else visible_at,
                math.inf if expires_at is None else expires_at,
                NEVER if due_at is None else due_at,
                backouts,
                unit,
                bool(away),
                locked_handle,
                locked_at,
                lock,
                int(lock_confirm or 0),
                NEVER if co_op_marked_at is None else co_op_marked_at,
                bool(forgotten),
                claimed or 0,
            )
        except (ValueError, OverflowError) as error:  # a negative number, a confirm id that is not valid
            raise self.damaged(columns[0], repr(error)) from error

    def narrow(self, columns: tuple[Any, ...]) -> Message:
        """Makes a message with the fields that a search needs; the others have their defaults."""
        (number, flags, group_id, sequence_number, offset, length, original_length, persistent, message_id,
         correlation_id, uid_origin, uid_number) = columns  # fmt: skip
        if group_id is not None and len(group_id) != ID_LENGTH:
            raise self.damaged(number, f"group_id has {len(group_id)} bytes, not {ID_LENGTH}")
        row = list(_EMPTY)
        row[_FLAGS], row[_GROUP], row[_SEQUENCE], row[_OFFSET] = flags, group_id or NO_ID, sequence_number, offset
        row[_LENGTH], row[_ORIGINAL_LENGTH], row[_PERSISTENT] = length, original_length, bool(persistent)
        row[_MESSAGE_ID] = message_id or self.prefix + number.to_bytes(8, "big")
        row[_CORRELATION_ID] = correlation_id or NO_ID
        row[_TOKEN] = number.to_bytes(16, "big")
        row[_UID] = UniqueId(self.origin, number) if uid_origin is None else UniqueId(uid_origin, uid_number)
        return Message.from_row(tuple(row))

    def full(self, columns: tuple[Any, ...], *, partly: bool = False) -> Message:
        """Makes a whole message from the columns of the statement `message by number`.

        Args:
            partly: the columns have only part of the body, or none of it, and no CRC, so the body is not verified.
        Raises: StoreDamaged, if the body is not the one that was put, or another column has an impossible value.
        """
        (number, descriptor, expiry, priority, persistent, message_id, correlation_id, put_at, group_id,
         sequence_number, offset, flags, original_length, delay, crc, body, length, uid_origin,
         uid_number, *later) = columns  # fmt: skip
        shapes = self._part if partly else self._full
        if tuple(map(type, columns)) not in shapes.known:
            self._judge(columns, shapes)
        if not 0 <= put_at <= PUT_AT_MAX:
            raise self.damaged(number, f"put_at cannot be {put_at}")
        if not partly and (crc32(body, number) != crc or len(body) != length):
            self.refuse_body(number, crc, body, length)
        described, properties = self._read_descriptor(number, descriptor)
        (report, message_type, feedback, encoding, ccsid, format_, reply_to, reply_to_manager, user, accounting,
         identity, put_type, put_name, origin, transmission) = described  # fmt: skip
        return Message.from_row((
            report, message_type, math.inf if expiry is None else expiry, feedback, encoding, ccsid, format_, priority,
            bool(persistent), message_id or self.prefix + number.to_bytes(8, "big"), correlation_id or NO_ID, reply_to,
            reply_to_manager, user, accounting or NO_ACCOUNTING, identity, put_type, put_name, put_at, origin,
            group_id or NO_ID, sequence_number, offset, flags, original_length, delay or 0.0, transmission, properties,
            body, length, 0, number.to_bytes(16, "big"),
            UniqueId(self.origin, number) if uid_origin is None else UniqueId(uid_origin, uid_number), None, None, None,
            *later,
        ))  # fmt: skip

    def _read_descriptor(self, number: int, descriptor: str) -> tuple[Values, Properties]:
        """Reads a message's descriptor and properties; `got` does the same inline. Raises: StoreDamaged."""
        begun, properties = descriptor, NO_PROPERTIES
        try:
            if BETWEEN in descriptor:
                begun, text = parts_of(descriptor)
                properties = Properties.from_text(text)
            return values_of(begun), properties
        except DECODING as error:
            raise self.damaged(number, wrong_descriptor(descriptor)) from error

    def got(self, found: Iterable[tuple[Any, ...]], now: float) -> list[Message]:
        """Makes messages as a get returns them (`queued.as_got`), from the statement `get available`.

        Raises: as `full`.
        """
        known, own, prefix, rows = self._got.known, self.origin, self.prefix, []
        types: tuple[type, ...] = ()
        for columns in found:
            (number, descriptor, priority, persistent, message_id, correlation_id, put_at, group_id, sequence_number,
             offset, flags, original_length, crc, body, length, uid_origin, uid_number, expires_at, backouts, rank_,
             place_number, ordinal) = columns[:_GOT] if LATER else columns  # fmt: skip
            if (found_types := tuple(map(type, columns))) != types:
                types = found_types
                if types not in known:
                    self._judge(columns, self._got)
            if not 0 <= put_at <= PUT_AT_MAX:
                raise self.damaged(number, f"put_at cannot be {put_at}")
            if crc32(body, number) != crc or len(body) != length:
                self.refuse_body(number, crc, body, length)
            begun, properties = descriptor, NO_PROPERTIES
            try:
                if BETWEEN in descriptor:
                    begun, text = parts_of(descriptor)
                    properties = Properties.from_text(text)
                (report, message_type, feedback, encoding, ccsid, format_, reply_to, reply_to_manager, user, accounting,
                 identity, put_type, put_name, origin, transmission) = values_of(begun)  # fmt: skip
            except DECODING as error:
                raise self.damaged(number, wrong_descriptor(descriptor)) from error
            token = number.to_bytes(16, "big")
            uid = (own, number) if uid_origin is None else (uid_origin, uid_number)
            row = (
                report, message_type,
                math.inf if expires_at is None else max(EXPIRY_SECONDS_MIN, expires_at - now), feedback, encoding,
                ccsid, format_, priority, bool(persistent), message_id or prefix + token[8:],
                correlation_id or NO_ID, reply_to, reply_to_manager, user, accounting or NO_ACCOUNTING, identity,
                put_type, put_name, put_at, origin, group_id or NO_ID, sequence_number, offset, flags, original_length,
                0.0, transmission, properties, body, length, backouts, token, _tuple(UniqueId, uid),
                _tuple(Place, (rank_, place_number, ordinal)), None, None,
            )  # fmt: skip
            rows.append(row + columns[_GOT:] if LATER else row)
        return Message.from_rows(rows)

    def bulk(self, found: Sequence[Sequence[Any]], now: float) -> BulkPage:
        """Makes a page from rows read in bulk, at least one, except for the places of the groups' heads.

        Whole columns are checked; single rows only if a column has a fault, to find the row.

        Args:
            found: the columns of READ_IN_BULK.
            now: the time at which remaining expiries are computed.

        Raises: as `full`.
        """
        page = BulkPage.of_columns(dict(zip(READ_IN_BULK, found, strict=True)))
        if not self._is_sound(page):
            for row in zip(*found, strict=True):
                self._judge_in_bulk(row)
            raise AssertionError("columns were refused, and none of their rows")
        numbers, texts = page.column("id"), page.column("descriptor")
        properties: Sequence[str | None] = [None] * len(page)
        if any(BETWEEN in text for text in set(texts)):
            texts, properties = zip(*map(parts_of, texts), strict=True)
        described = {text: values_of(text) for text in set(texts)}
        shared, columns = dict(page.shared), dict(page.columns)
        for name, *values in zip(DESCRIBED, *described.values(), strict=True):
            if values.count(values[0]) == len(values):
                shared[name] = values[0]
            else:
                columns[name] = list(map(dict(zip(described, values, strict=True)).__getitem__, texts))
        return BulkPage(len(page), shared, columns).with_columns(
            {
                "properties": properties,
                "expiry": [
                    None if at is None else max(EXPIRY_SECONDS_MIN, at - now) for at in page.column("expires_at")
                ],
                "message_id": _filled(page, "message_id", lambda: self._ids(numbers)),
                "uid_origin": _filled(page, "uid_origin", lambda: [self.origin] * len(page)),
                "uid_number": _filled(page, "uid_number", lambda: numbers),
            }
        )

    def _is_sound(self, page: BulkPage) -> bool:
        """Whether no row of a page needs to be refused."""
        for name, types in self._in_bulk:
            if not (
                types >= {type(page.shared[name])}
                if name in page.shared
                else types.issuperset(map(type, page.columns[name]))
            ):
                return False
        bodies, times = page.column("body"), page.column("put_at")
        return (
            min(times) >= 0
            and max(times) <= PUT_AT_MAX
            and list(map(len, bodies)) == list(page.column("length"))
            and list(map(crc32, bodies, page.column("id"))) == list(page.column("crc"))
            and all(map(_can_be_read, set(page.column("descriptor"))))
        )

    def _judge_in_bulk(self, row: tuple[Any, ...]) -> None:
        """Raises: StoreDamaged, if a row cannot have been written."""
        columns = dict(zip(READ_IN_BULK, row, strict=True))
        number, body = columns["id"], columns["body"]
        if wrong := self._bulk.wrong(row):
            raise self.damaged(number, wrong)
        if not 0 <= columns["put_at"] <= PUT_AT_MAX:
            raise self.damaged(number, f"put_at cannot be {columns['put_at']}")
        if crc32(body, number) != columns["crc"] or len(body) != columns["length"]:
            self.refuse_body(number, columns["crc"], body, columns["length"])
        if wrong := wrong_descriptor(columns["descriptor"]):
            raise self.damaged(number, wrong)

    def _ids(self, numbers: Sequence[int]) -> Sequence[bytes]:
        """Returns the message ids derived from numbers: the words of the prefix, and the number in network byte
        order.
        """
        last = array("q", numbers)
        if sys.byteorder == "little":
            last.byteswap()
        words = array("q", bytes(ID_LENGTH * len(numbers)))
        for at, word in enumerate(struct.unpack("qq", self.prefix)):
            words[at::3] = array("q", [word]) * len(numbers)
        words[2::3] = last
        return struct.unpack(f"{ID_LENGTH}s" * len(numbers), words)


def _filled(page: BulkPage, name: str, own: Callable[[], Sequence[Any]]) -> Sequence[Any]:
    """Returns a column with each NULL replaced."""
    if name in page.shared:
        return own() if page.shared[name] is None else page.column(name)
    return [other if value is None else value for value, other in zip(page.columns[name], own(), strict=True)]


def _head(sequence_number: int, offset: int, flags: int) -> int:
    """Returns the column `head` of a new message: at its beginning a group counts as incomplete until it is checked."""
    return 0 if sequence_number != 1 or offset else 1 if flags & ANY_GROUP else 2


def _can_be_read(text: str) -> bool:
    try:
        values_of(parts_of(text)[0])
    except DECODING:
        return False
    return True


def wrong_descriptor(text: str) -> str:
    """Returns why a text cannot be the descriptor of a message, in words; empty if it can."""
    try:
        check(text)
    except DECODING as error:
        return f"its descriptor cannot be {text!r:.60} ({error!s:.100})"
    return ""


def wrong_body(number: int, crc: int, body: bytes) -> str:
    """Returns why a body cannot be the one that was put, in words; empty if it can."""
    found = crc32(body, number)
    return "" if found == crc else f"its body is not the one that was put: its CRC-32 is {found:#x}, not {crc:#x}"


@functools.lru_cache(maxsize=16)
def _names(columns: str) -> Sequence[str]:
    """Returns the names of columns as a statement selects them."""
    return tuple(one.strip().split(".")[-1].strip('"') for one in columns.split(","))


_ASKED = "expiry priority persistent message_id correlation_id put_at properties body length token uid".split()
_always_asked = operator.itemgetter(*(INDEX[name] for name in _ASKED))
_ALONE = slice(INDEX["group_id"], INDEX["delay"] + 1)  # with sequence_number, offset, flags, original_length
_USUAL = (NO_ID, 1, 0, 0, -1, 0.0)
_REPORT = DESCRIBED.index("report")
_described = operator.itemgetter(*(INDEX[name] for name in DESCRIBED))
_EMPTY = Message().row
_LATER = len(_EMPTY) - len(LATER)
_GOT = len(_names(GOT_COLUMNS)) - len(LATER)


def descriptor_of(message: Message) -> str:
    """Returns the stored text of a message's descriptor and properties."""
    return with_properties(_described(message.row), message.properties)


_tuple = tuple.__new__  # makes a named tuple without an extra call: each message that is got has two
# In bulk reads: columns with other names, or narrower types, than in the tables.
_BULK = {"number": INTEGER, "delivery": INTEGER, "backout_count": INTEGER}
_NARROW, _QUEUE = len(_names(NARROW_COLUMNS)), _names(NARROW_COLUMNS).index("queue")
_STATE, _UNIT, _HANDLE, _LOCK = map(_names(NARROW_COLUMNS).index, ("state", "unit", "locked_handle", "lock"))
_LENGTH, _ORIGINAL_LENGTH, _PERSISTENT = INDEX["length"], INDEX["original_length"], INDEX["persistent"]
_MESSAGE_ID, _CORRELATION_ID, _TOKEN, _UID = (
    INDEX["message_id"],
    INDEX["correlation_id"],
    INDEX["token"],
    INDEX["uid"],
)
