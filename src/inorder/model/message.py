"""Message: the descriptor (MQMD), the body, and the values that a get adds.

A message is one row of values behind named fields. It is checked once, when a caller builds it. A get makes messages
directly from their rows without checking again, so that bulk reads stay cheap. Messages never change: `replace` makes a
changed copy.

The fields are the MQMD of mq-semantics 1.1 under snake-case names; `fields` has the table of them. Durations are
seconds, ids are bytes of a fixed length padded with NUL, texts are given without their trailing blanks.
"""

from __future__ import annotations

import json
import operator
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from ..errors import CallerError, QueueCondition, Reason, bad_argument
from ..support.advice import unknown_name
from .fields import BODY, NO_ID, Descriptor, EarlierPending, Field, Id, MessageFields, Place, Transmission, UniqueId
from .kinds import Flags, MessageType, Report

if TYPE_CHECKING:
    from typing_extensions import Unpack

Row = tuple[Any, ...]
Status = Literal["no", "in", "last"]

REPORT_GENERATED = 256 | 2048 | 2097152  # confirm on arrival, confirm on delivery, expiration: by the queue manager
REPLY_NEEDED = REPORT_GENERATED | 16777216 | 1 | 2  # and exception, positive and negative action notification


# Plain integers: rules test flags for each message, and enum arithmetic costs a microsecond each time.
SEGMENTATION_ALLOWED, SEGMENT, LAST_SEGMENT, IN_GROUP, LAST_IN_GROUP = 1, 2, 4, 8, 16
ANY_SEGMENT = SEGMENT | LAST_SEGMENT
ANY_GROUP = IN_GROUP | LAST_IN_GROUP


class Message(MessageFields):
    """One message: a descriptor and a body. It never changes; `replace` makes a changed copy.

    Args:
        body: the data, any bytes-like object; stored as bytes.
        **fields: any field of the descriptor (see each field's help).

    Raises:
        ArgumentError: if a value is out of range, with MQ's reason code (2013, 2014, 2026, 2029, 2047, 2050,
            2061, 2249, 2250, 2251, 2252; 2442, 2473, 2478, 2498, 2513 properties; 2260 transmission); if a field is
            unknown.
        CallerError: 2027 MISSING_REPLY_TO_Q, if a request or a report option has no `reply_to_queue`.

    Source: mq-semantics 1.1 to 1.3.
    """

    __slots__ = ()

    def __init__(self, body: bytes | bytearray | memoryview = b"", **fields: Unpack[Descriptor]) -> None:
        data = body if type(body) is bytes else BODY.check("body", body)
        row = (*_BEFORE_BODY, data, len(data), *_AFTER_LENGTH)
        _set_row(self, _filled(row, fields, is_new=True) if fields else row)

    @classmethod
    def from_row(cls, row: Row) -> Message:
        """Makes a message from its row without checks: for stores, which checked it at the put."""
        message = _new(cls)
        _set_row(message, row)
        return message

    @classmethod
    def from_rows(cls, rows: Iterable[Row]) -> list[Message]:
        """Makes messages from many rows in one call."""
        messages = []
        for row in rows:
            message = _new(cls)
            _set_row(message, row)
            messages.append(message)
        return messages

    row = property(operator.attrgetter("_row"), doc="All values, in the order of `FIELDS`: for rules and stores.")

    def replace(self, **fields: Any) -> Message:
        """Makes a copy with other values, checked as in the constructor; `body` may be among them."""
        row = list(self._row)
        if "body" in fields:
            data = row[_BODY] = BODY.check("body", fields.pop("body"))
            row[_LENGTH] = len(data)
        return Message.from_row(_filled(row, fields))

    def with_values(self, **values: Any) -> Message:
        """Makes a copy with other values, unchecked: for rules and stores, which set values that callers cannot."""
        row = list(self._row)
        for name, value in values.items():
            row[Message.FIELDS[name].index] = value
        return Message.from_row(tuple(row))

    @property
    def group_status(self) -> Status:
        """Whether the message is in a group, is the last of one, or is in none."""
        flags = self._row[_FLAGS]
        return "last" if flags & LAST_IN_GROUP else "in" if flags & IN_GROUP else "no"

    @property
    def segment_status(self) -> Status:
        """Whether the message is a segment, the last segment, or a whole message."""
        flags = self._row[_FLAGS]
        return "last" if flags & LAST_SEGMENT else "in" if flags & SEGMENT else "no"

    @property
    def segmentation_allowed(self) -> bool:
        """Whether the queue manager may split the message."""
        return bool(self._row[_FLAGS] & SEGMENTATION_ALLOWED)

    @property
    def put_date(self) -> str:
        """MQ's PutDate: YYYYMMDD, UTC."""
        return mq_date(self.put_at)

    @property
    def put_time(self) -> str:
        """MQ's PutTime: HHMMSSTH, UTC, to the hundredth."""
        return mq_time(self.put_at)

    @classmethod
    def of_json(cls, value: Any, **fields: Unpack[Descriptor]) -> Message:
        """Makes a message whose body is the value as JSON in UTF-8; its format is MQSTR, its character set 1208.

        Raises ArgumentError if JSON cannot express the value or a part of it; otherwise as `Message`.
        """
        try:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            body = text.encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise bad_argument("value", value, f"a value that JSON can express ({error})") from None
        fields.setdefault("format", "MQSTR")
        fields.setdefault("coded_character_set_id", 1208)
        return cls(body, **fields)

    def json(self) -> Any:
        """Reads the body as JSON in UTF-8, independent of its format field.

        Raises QueueCondition 2110 FORMAT_ERROR if the body is not JSON or was truncated.
        """
        try:
            return json.loads(self.body.decode())
        except (ValueError, RecursionError) as error:
            missing = "" if len(self.body) == self.length else f", and {len(self.body)} of {self.length} bytes are here"
            raise QueueCondition(
                f"the body is not JSON in UTF-8: {error}{missing}; its format is {self.format!r}, its "
                f"coded_character_set_id {self.coded_character_set_id}",
                reason=Reason.FORMAT_ERROR,
                message_id=self.message_id,
            ) from None

    def fields(self) -> Iterator[tuple[str, Any]]:
        """Every field with its value, in the order of the descriptor."""
        return zip(Message.FIELDS, self._row, strict=True)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a message never changes: use message.replace({name}=...)")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a message never changes")

    def __eq__(self, other: object) -> bool:
        return self._row == other._row if isinstance(other, Message) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._row)

    def __reduce__(self) -> tuple[Callable[[Row], Message], tuple[Row]]:
        return Message.from_row, (self._row,)

    def __repr__(self) -> str:
        default = {name: field.default for name, field in Message.FIELDS.items()}
        shown = {name: value for name, value in self.fields() if value != default[name] and name != "length"}
        body = shown.pop("body", b"")
        preview = f"{body[:32]!r}... {len(body):,} bytes" if len(body) > 40 else repr(body)
        return f"Message({', '.join([preview, *(f'{name}={value!r}' for name, value in shown.items())])})"


if TYPE_CHECKING:

    class Got(Message):
        """A message as a get or a browse returns it: with the fields that the queue manager sets.

        Only type checkers see this class; at run time it is `Message`.
        """

        expiry: Field[float]
        priority: Field[int]
        persistent: Field[bool]
        uid: Field[UniqueId]
        place: Field[Place]

else:
    Got = Message


_DEFAULTS: Row = tuple(field.default for field in Message.FIELDS.values())
_BODY, _LENGTH, _FLAGS = Message.body.index, Message.length.index, Message.flags.index
_BEFORE_BODY, _AFTER_LENGTH = _DEFAULTS[:_BODY], _DEFAULTS[_LENGTH + 1 :]
_new = object.__new__
_set_row: Callable[[Message, Row], None] = MessageFields.__dict__["_row"].__set__


ONLY_PROPERTIES = {"properties"}


def _filled(values: Iterable[Any], fields: Any, *, is_new: bool = False) -> Row:
    row = list(values)
    for name, value in fields.items():
        field = Message.FIELDS.get(name)
        if field is None or field.check is None or name == "body":
            raise unknown_name("field", name, Descriptor.__annotations__, Reason.ARGUMENT_ERROR)
        row[field.index] = field.check(name, value)
    filled = tuple(row)
    if not (is_new and fields.keys() == ONLY_PROPERTIES):
        check_together(filled)
    return filled


_of_together = operator.itemgetter(
    *(
        Message.FIELDS[name].index
        for name in "report message_type reply_to_queue flags original_length expiry delay body".split()
    )
)


def check_together(row: Row) -> None:
    """Checks fields that depend on each other: reply-to queue (2027), expiry and delay (2013), and the original length
    of reports (2252, R1.12). A put ignores the original length of other messages.
    """
    report, message_type, reply_to_queue, flags, original_length, expiry, delay, body = _of_together(row)
    if not reply_to_queue and (message_type == MessageType.REQUEST or report & REPLY_NEEDED):
        raise CallerError(
            "a request, or a message that asks for reports, needs reply_to_queue",
            reason=Reason.MISSING_REPLY_TO_Q,
            argument="reply_to_queue",
        )
    if delay and expiry is not None and expiry < delay:
        allowed = f"at least the delay of {delay:g} seconds, or the message expires before it can be read"
        raise bad_argument("expiry", expiry, allowed, Reason.EXPIRY_ERROR)
    if original_length != -1 and message_type == MessageType.REPORT:
        least = max(len(body), flags & ANY_SEGMENT == SEGMENT)
        if original_length < least:
            allowed = f"at least {least:,}, because of the report's data"
            raise bad_argument("original_length", original_length, allowed, Reason.ORIGINAL_LENGTH_ERROR)


def stored_original_length(message_type: int, flags: int, given: int, length: int) -> int:
    """The original length of a stored message: of a segment the length of its data, of a report the given one (R1.12).

    Args:
        flags: including those that a put adds.
        length: the length of the data.
    """
    if message_type == MessageType.REPORT and given != -1:
        return given
    return length if flags & ANY_SEGMENT else -1


def mq_date(at: float) -> str:
    """Writes seconds since 1970 as MQ's date: YYYYMMDD, UTC."""
    return time.strftime("%Y%m%d", time.gmtime(at))


def mq_time(at: float) -> str:
    """Writes the time of day as MQ does: HHMMSSTH, UTC, to the hundredth."""
    return time.strftime("%H%M%S", time.gmtime(at)) + f"{hundredths(at):02d}"


def hundredths(at: float) -> int:
    """The hundredths of a second that have passed; those that a program has given are a little less as a float."""
    return min(int(at % 1 * 100 + 1e-4), 99)


def stored_flags(flags: int) -> int:
    """The flags as they are stored: "last in group" also sets "in group", "last segment" also sets "segment"."""
    if flags & LAST_IN_GROUP:
        flags |= IN_GROUP
    if flags & LAST_SEGMENT:
        flags |= SEGMENT
    return flags


__all__ = [
    "NO_ID",
    "Descriptor",
    "EarlierPending",
    "Flags",
    "Got",
    "Id",
    "Message",
    "MessageType",
    "Place",
    "Report",
    "Transmission",
    "UniqueId",
]
