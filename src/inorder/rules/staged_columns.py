"""Checks rows that come as columns, fills in defaults and splits long bodies, as a put does for single messages.

The data stay columns: a check looks at the types that occur and at the smallest and largest value, or at
each distinct value once. Only if that finds an error are the values checked one by one, to name the row; only a body
that is too long for its queue turns its row into several.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ArgumentError, InorderError, Reason, bad_argument
from ..model.attributes import ManagerAttributes, QueueAttributes
from ..model.fields import BODY, FLAGS_MAX, GIVEN, NONE, NUMBER_MAX, BodyBytes, PropertySets
from ..model.message import (
    ANY_GROUP,
    ANY_SEGMENT,
    LAST_SEGMENT,
    REPLY_NEEDED,
    REPORT_GENERATED,
    Message,
    MessageType,
    Transmission,
    stored_flags,
    stored_original_length,
)
from ..model.parameters import Integer, Octets, ParameterKind, Seconds, Switch, is_storable
from ..model.properties import NO_PROPERTIES
from ..support.advice import unknown_name
from . import policy
from .grouping import NOTHING_OPEN, put_row
from .puts import Program, ReplyTo, check_delay, check_sent, default_context, defaults, make_id
from .segmentation import report_of_piece, split

KEYS = ("group_key", "order_key")
STAGED_COLUMNS = (*GIVEN, "body", *KEYS)
KINDS: Mapping[str, ParameterKind[Any]] = {name: field.kind for name, field in GIVEN.items() if field.kind} | {
    "body": BODY
}
INTEGER_MAX = 2**63 - 1
STORED_FLAGS = [stored_flags(flags) for flags in range(FLAGS_MAX + 1)]
OCTETS = [name for name, kind in KINDS.items() if isinstance(kind, Octets)]
PUT_ROWS = [put_row(NOTHING_OPEN, flags, logical=False) for flags in range(FLAGS_MAX + 1)]

OWN_NUMBERS = ("group_id", "sequence_number", "offset", "flags")
ALLOWED = {"group_id": "None", "sequence_number": "1", "offset": "0", "flags": "without groups and segments"}
ANY_MEMBER = ANY_GROUP | ANY_SEGMENT
Columns = dict[str, Sequence[Any]]


# --- the caller's columns


def check_columns(given: Mapping[str, Sequence[Any]], count: int) -> Columns:
    """Checks columns and returns them as they are stored, except for defaults of the queue; those are None.

    Raises ArgumentError, with the row from 0, the column, its value and the allowed values; CallerError 2027.
    """
    for name, values in given.items():
        if name not in STAGED_COLUMNS:
            raise unknown_name("column", name, STAGED_COLUMNS, Reason.ARGUMENT_ERROR)
        if len(values) != count:
            raise bad_argument(name, len(values), f"a column of {count:,} values")
    if "body" not in given:
        raise bad_argument("columns", sorted(given), "columns with the body among them")
    columns: Columns = {
        name: _checked_keys(name, values) if name in KEYS else _checked(name, values) for name, values in given.items()
    }
    _check_together(columns, count)
    return columns


def _checked(name: str, values: Sequence[Any]) -> Sequence[Any]:
    """Checks a column of the descriptor, or the body; None stays None."""
    types = set(map(type, values))
    given: Iterable[Any] = values
    if type(None) in types:
        if name == "body":
            return _one_by_one(name, values)
        types.discard(type(None))
        given = [value for value in values if value is not None]
    if not types:
        return values
    if not types <= KINDS[name].types:
        return _one_by_one(name, values)
    try:
        return _alike(name, values, given, types)
    except ArgumentError:
        return _one_by_one(name, values)  # to name the row


def _alike(name: str, values: Sequence[Any], given: Iterable[Any], types: set[type]) -> Sequence[Any]:
    """Checks a column whose values are all of the right type.

    Args:
        given: the values that are not None.

    Raises ArgumentError if one is out of range.
    """
    kind = KINDS[name]
    match kind:
        case BodyBytes() | Switch() | PropertySets():
            return values
        case Seconds():
            return _times(name, kind, values, given, types)
        case Octets():
            return _ids(name, kind, values, given)
        case Integer() if type(kind) is Integer:  # the derived kinds refuse some values within their range
            kind.check(name, min(given))
            kind.check(name, max(given))
            return values
    as_kept = {value: kind.check(name, value) for value in set(given)}
    if all(kept is value or kept == value for value, kept in as_kept.items()):
        return values
    return [None if value is None else as_kept[value] for value in values]


def _times(name: str, kind: Seconds, values: Sequence[Any], given: Iterable[Any], types: set[type]) -> Sequence[Any]:
    finite = [value for value in given if value != math.inf] if math.inf in kind.also.values() else given
    if any(map(math.isnan, finite)):
        raise kind.refusal(name, math.nan)
    if finite:
        kind.check(name, min(finite))
        kind.check(name, max(finite))
    return [None if value is None else float(value) for value in values] if int in types else values


def _ids(name: str, kind: Octets, values: Sequence[Any], given: Iterable[Any]) -> Sequence[Any]:
    """Pads ids to their full length; an id of all NUL becomes None."""
    lengths, none = set(map(len, given)), NONE[name]
    if max(lengths) > kind.length:
        raise kind.refusal(name, max(given, key=len))
    if lengths != {kind.length}:
        values = [None if value is None else value.ljust(kind.length, b"\0") for value in values]
    return [None if value == none else value for value in values] if none in values else values


def _one_by_one(name: str, values: Sequence[Any]) -> list[Any]:
    """Each value as it is kept. Raises: ArgumentError, with the row of the first that is wrong."""
    kind, kept = KINDS[name], []
    none = NONE[name] if isinstance(kind, Octets) else None
    for row, value in enumerate(values):
        with_row = value if value is None and name != "body" else _in_row(row, kind.check, name, value)
        kept.append(None if none is not None and with_row == none else with_row)
    return kept


def _in_row(row: int, call: Callable[..., Any], *values: Any, **named: Any) -> Any:
    """Calls the function; an error that it raises gets the row's number."""
    try:
        return call(*values, **named)
    except InorderError as error:
        error.args = (f"row {row:,}: {error.args[0]}", *error.args[1:])
        error.data["row"] = row
        raise


def _checked_keys(name: str, values: Sequence[Any]) -> Sequence[Any]:
    types = set(map(type, values)) - {type(None)}
    if types <= {int, float, str, bytes}:
        numbers = [value for value in values if isinstance(value, (int, float))] if types & {int, float} else []
        texts = "".join(value for value in values if isinstance(value, str)) if str in types else ""
        is_number = not numbers or not any(map(math.isnan, numbers))
        if is_number and all(abs(n) <= INTEGER_MAX for n in numbers if type(n) is int) and is_storable(texts):
            return values
    for row, value in enumerate(values):
        good = value is None or (isinstance(value, (int, float, str, bytes)) and not isinstance(value, bool))
        good = good and not (isinstance(value, float) and math.isnan(value))
        good = good and not (isinstance(value, int) and abs(value) > INTEGER_MAX)
        if not good or (isinstance(value, str) and not is_storable(value)):
            allowed = "an int of 64 bits, a float, a str, bytes, or None"
            _in_row(row, _refuse, name, value, allowed)
    return values


def _refuse(name: str, value: object, allowed: str, reason: Reason = Reason.ARGUMENT_ERROR) -> None:
    raise bad_argument(name, value, allowed, reason)


# --- checks that need several columns


def _check_together(columns: Columns, count: int) -> None:
    """Checks fields of one message that depend on each other, if the columns could disagree."""
    nothing = [None] * count

    def column(name: str) -> Sequence[Any]:
        return columns.get(name, nothing)

    suspects: set[int] = set()
    if MessageType.REQUEST in column("message_type") or any(r and r & REPLY_NEEDED for r in column("report")):
        asked = zip(column("message_type"), column("report"), column("reply_to_queue"), strict=True)
        suspects |= {
            row
            for row, (kind, report, reply_to) in enumerate(asked)
            if not reply_to and (kind == MessageType.REQUEST or (report and report & REPLY_NEEDED))
        }
    lengths = column("original_length")
    suspects |= {row for row, length in enumerate(lengths) if length is not None and length != -1}
    if "delay" in columns:
        waits = zip(column("delay"), column("expiry"), strict=True)
        suspects |= {row for row, (delay, expiry) in enumerate(waits) if delay and expiry is not None}
    for row in sorted(suspects):
        fields = {name: values[row] for name, values in columns.items() if name not in (*KEYS, "body")}
        _in_row(row, Message, columns["body"][row], **{name: v for name, v in fields.items() if v is not None})
    if any(column("flags")):
        _check_segments(columns["flags"], column("offset"), columns["body"])
    if "group_key" in columns and not columns.keys().isdisjoint(OWN_NUMBERS):
        _check_keyed(column)


def _check_segments(flags: Sequence[Any], offsets: Sequence[Any], bodies: Sequence[bytes]) -> None:
    """Checks that only last segments are empty, and that the numbers at segment ends are in range (R2.19, R2.12)."""
    for row, (flag, offset, body) in enumerate(zip(flags, offsets, bodies, strict=True)):
        if not flag or not flag & ANY_SEGMENT:
            continue
        if not body and not flag & LAST_SEGMENT:
            raise ArgumentError(
                f"row {row:,}: only the last segment of a message may be empty",
                reason=Reason.SEGMENT_LENGTH_ZERO, argument="body", value=b"", allowed="not empty", row=row,
            )  # fmt: skip
        if offset and offset + len(body) > NUMBER_MAX:
            allowed = f"at most {NUMBER_MAX - len(body):,}, because the segment has {len(body):,} bytes"
            _in_row(row, _refuse, "offset", offset, allowed, Reason.OFFSET_ERROR)


def _check_keyed(column: Callable[[str], Sequence[Any]]) -> None:
    """Checks that members of groups made at the settle have no given numbers."""
    rows = zip(*(column(name) for name in ("group_key", *OWN_NUMBERS)), strict=True)
    for row, (key, *values) in enumerate(rows):
        if key is None:
            continue
        group_id, number, offset, flags = values
        wrong = (group_id is not None, number not in (None, 1), bool(offset), bool(flags and flags & ANY_MEMBER))
        if any(wrong):
            name = OWN_NUMBERS[wrong.index(True)]
            _in_row(row, _refuse, name, values[wrong.index(True)], f"{ALLOWED[name]} if a group_key is given")


# --- the queue's defaults


@dataclass(slots=True, kw_only=True)
class Batch:
    """A request ready to be written: a value in each column for each message.

    Attributes:
        numbers: the messages' own; their ids are made from them.
        wholes: for each message the row, in this request, of the first piece of its logical message.
        columns: as `STAGED_COLUMNS`; an id of None is not set, an expiry of None is unlimited.
        given: the number of rows as the caller counts.
        has_keys, has_order, has_numbers: whether any row has a group key, an order key, its own group id.
        has_reports: whether any asks the queue manager for reports.
    """

    numbers: Sequence[int]
    wholes: Sequence[int]
    columns: Columns
    given: int
    size: int
    has_keys: bool
    has_order: bool
    has_numbers: bool
    has_reports: bool


def addressed(
    columns: Columns, count: int, queue: QueueAttributes, transmission: Transmission | None, reply_to: ReplyTo
) -> Columns:
    """Adds the destinations of messages after the queue, and of replies to them, to checked columns (N-2, N-3).

    Args:
        transmission, reply_to: as `PutPlan` takes them.

    Raises ArgumentError 2260 if a message for a transmission queue has no destination.
    """
    said = columns.get("transmission", [None] * count)
    if transmission is None and queue.usage == "transmission":
        for row, one in enumerate(said):
            _in_row(row, check_sent, one, queue)
    else:
        said = [transmission] * count
    return {**columns, "transmission": said, **_replies(columns, count, reply_to)}


def _replies(columns: Columns, count: int, reply_to: ReplyTo) -> Columns:
    queues = columns.get("reply_to_queue", ())
    if not any(queues):
        return {}
    known = {name: reply_to(name) for name in set(queues) if name}
    named = zip(queues, columns.get("reply_to_queue_manager", [None] * count), strict=True)
    both = [known[queue] if queue and not manager else (queue, manager) for queue, manager in named]
    return dict(zip(("reply_to_queue", "reply_to_queue_manager"), zip(*both, strict=True), strict=True))


def complete(
    columns: Columns,
    count: int,
    queue: QueueAttributes,
    manager: ManagerAttributes,
    program: Program,
    now: float,
    numbers: Callable[[int], Sequence[int]],
) -> Batch:
    """Adds the defaults of queue, queue manager and program to checked columns, and splits rows that are too long.

    Args:
        queue: with an alias's defaults if the handle is open through an alias.
        now: seconds since 1970: the put time of messages that give none.
        numbers: returns the requested number of numbers that are never used again.

    Raises ArgumentError 2048, persistent on a temporary queue; MessageTooBig 2030, 2031.
    """
    full = _with_defaults(columns, count, queue, manager, program, now)
    has_keys, has_order = any(k is not None for k in full["group_key"]), any(k is not None for k in full["order_key"])
    if True in full["persistent"] and queue.definition_type == "temporary_dynamic":
        row = list(full["persistent"]).index(True)
        allowed = f"False: {queue.name} is a temporary dynamic queue"
        _in_row(row, _refuse, "persistent", True, allowed, Reason.PERSISTENT_NOT_ALLOWED)
    for row, delay in enumerate(columns.get("delay", ())):
        if delay and columns.get("expiry", [None] * count)[row] is None:
            _in_row(row, check_delay, delay, queue.expiry, queue)
    bodies = full["body"]
    lengths = list(map(len, bodies))
    limit = min(queue.max_length, manager.max_length)
    wholes: Sequence[int] = range(count)
    if count and max(lengths) > limit:
        full, wholes = _cut(full, lengths, limit, queue, manager)
    ids = numbers(len(wholes))
    has_numbers = _number(full, wholes, ids, manager.origin)
    _measure(full)
    return Batch(
        numbers=ids,
        wholes=wholes,
        columns=full,
        given=count,
        size=sum(lengths),
        has_keys=has_keys,
        has_order=has_order,
        has_numbers=has_numbers,
        has_reports=any(report & REPORT_GENERATED for report in set(full["report"])),
    )


def _with_defaults(
    columns: Columns, count: int, queue: QueueAttributes, manager: ManagerAttributes, program: Program, now: float
) -> Columns:
    usual = defaults(queue, manager)
    values: dict[str, Any] = {name: Message.FIELDS[name].default for name in STAGED_COLUMNS if name not in KEYS}
    values |= default_context(program, now) | dict.fromkeys((*OCTETS, *KEYS))
    values |= {"priority": usual.priority, "persistent": usual.persistent}
    values |= {"expiry": math.inf if usual.expiry is None else usual.expiry}
    full = {name: _filled(columns.get(name), default, count) for name, default in values.items()}
    ccsid = usual.coded_character_set_id
    full["coded_character_set_id"] = _replaced(full["coded_character_set_id"], 0, ccsid)
    full["expiry"] = _replaced(full["expiry"], math.inf, None)
    return full


def _filled(values: Sequence[Any] | None, default: Any, count: int) -> Sequence[Any]:
    if values is None:
        return [default] * count
    return values if default is None else _replaced(values, None, default)


def _replaced(values: Sequence[Any], old: Any, new: Any) -> Sequence[Any]:
    return [new if value == old else value for value in values] if old in values else values


def _cut(
    full: Columns, lengths: Sequence[int], limit: int, queue: QueueAttributes, manager: ManagerAttributes
) -> tuple[Columns, list[int]]:
    """Splits rows with bodies above the limit; also returns the first piece of each row."""
    reason = Reason.MSG_TOO_BIG_FOR_Q if queue.max_length <= manager.max_length else Reason.MSG_TOO_BIG_FOR_Q_MGR
    sources: list[int] = []
    wholes: list[int] = []
    pieces: dict[int, tuple[int, int, int, int]] = {}  # by row: begin and end in its body, flags, offset
    for row, length in enumerate(lengths):
        first = len(sources)
        if length <= limit:
            sources.append(row)
            wholes.append(first)
            continue
        message = _whole(full, row, length)
        for piece in _in_row(row, split, message, limit, reason):
            pieces[len(sources)] = piece.start, piece.end, piece.flags, message.offset + piece.start
            sources.append(row)
            wholes.append(first)
    taken: dict[str, list[Any]] = {name: [values[row] for row in sources] for name, values in full.items()}
    for row, (start, end, flags, offset) in pieces.items():
        if start:
            taken["properties"][row] = NO_PROPERTIES
            taken["report"][row] = report_of_piece(taken["report"][row], start)
        taken["body"][row] = taken["body"][row][start:end]
        taken["flags"][row], taken["offset"][row] = flags, offset
    assert policy.PIECES_KEEP_GIVEN_MESSAGE_ID, "the column is taken for each piece"
    return dict(taken), wholes


def _whole(full: Columns, row: int, length: int) -> Message:
    """The message to be split."""
    flags = full["flags"][row]
    return Message().with_values(
        body=full["body"][row],
        length=length,
        format=full["format"][row],
        encoding=full["encoding"][row],
        flags=flags,
        offset=full["offset"][row] if flags & ANY_SEGMENT else 0,
    )


def _measure(full: Columns) -> None:
    """Sets the original lengths (R1.12)."""
    given, flags = full["original_length"], full["flags"]
    if any(flags) or any(length != -1 for length in given):
        values = zip(full["message_type"], flags, given, map(len, full["body"]), strict=True)
        full["original_length"] = [stored_original_length(*one) for one in values]


def _number(full: Columns, wholes: Sequence[int], ids: Sequence[int], origin: str) -> bool:
    """Numbers messages in their groups, by the table of puts without logical order (`grouping.PUT_TABLE`).

    Returns: whether any has a group id from the caller.
    """
    flags = full["flags"]
    if not any(flags):  # nothing to number, as in most calls
        assert PUT_ROWS[0][7:] == ("none", "one", "zero")
        full["group_id"], full["offset"] = [None] * len(flags), [0] * len(flags)
        full["sequence_number"] = [1] * len(flags)
        return False
    rows = [PUT_ROWS[flag] for flag in flags]
    groups = [None if row.group_id == "none" else group for row, group in zip(rows, full["group_id"], strict=True)]
    has_numbers = any(group is not None for group in groups)
    full["group_id"] = [
        make_id(origin, ids[whole]) if group is None and row.group_id != "none" and key is None else group
        for row, group, key, whole in zip(rows, groups, full["group_key"], wholes, strict=True)
    ]
    numbers = zip(full["sequence_number"], rows, strict=True)
    full["sequence_number"] = [number if row.sequence_number == "field" else 1 for number, row in numbers]
    offsets = zip(full["offset"], rows, strict=True)
    full["offset"] = [offset if row.offset == "field" else 0 for offset, row in offsets]
    full["flags"] = [STORED_FLAGS[flag] for flag in flags]
    return has_numbers
