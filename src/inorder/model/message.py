"""Message: the descriptor (MQMD), the body, and the values that a get adds.

A message is one row of values behind named fields. It is checked once, when a caller builds it. A get makes messages
directly from their rows without checking again, so that bulk reads stay cheap. Messages never change: `replace` makes a
changed copy.

The fields are the MQMD of mq-semantics 1.1 under snake-case names. Each is declared once, below, with its MQ
name, its default, its check and its meaning. Durations are seconds, ids are bytes of a fixed length padded
with NUL, texts are given without their trailing blanks.
"""

from __future__ import annotations

import json
import operator
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, TypedDict, TypeVar, overload
from uuid import UUID

from ..errors import ArgumentError, CallerError, QueueCondition, Reason, bad_argument
from ..support.advice import unknown_name
from .field_checks import (
    EXPIRY,
    EXPIRY_SECONDS_MAX,
    ID,
    INT_MAX,
    MESSAGE_TYPE,
    NAME,
    NUMBER_MAX,
    PERSISTENT,
    PRIORITY,
    REPORT,
    body_bytes,
    integer,
    property_values,
    text,
)
from .kinds import Flags, MessageType, Report
from .parameters import ID_LENGTH, Octets, ParameterKind, Seconds
from .properties import NO_PROPERTIES, PropertyValue

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

T_co = TypeVar("T_co", covariant=True)
Row = tuple[Any, ...]
Status = Literal["no", "in", "last"]

Id = bytes | str | UUID

NO_ID = bytes(ID_LENGTH)
PUT_AT_MAX = 253402300799.0  # the end of the year 9999
REPORT_GENERATED = 256 | 2048 | 2097152  # the queue manager sends these: COA, COD, expiration
REPLY_NEEDED = REPORT_GENERATED | 16777216 | 1 | 2  # and exception, positive and negative action notification


# Plain integers: rules test flags for each message, and enum arithmetic costs a microsecond each time.
SEGMENTATION_ALLOWED, SEGMENT, LAST_SEGMENT, IN_GROUP, LAST_IN_GROUP = 1, 2, 4, 8, 16
ANY_SEGMENT = SEGMENT | LAST_SEGMENT
ANY_GROUP = IN_GROUP | LAST_IN_GROUP
FLAGS_MAX = 31


class UniqueId(NamedTuple):
    """Identifies one message for ever.

    Args:
        origin: the original name of the queue manager that made it.
        number: a number that this queue manager never uses again.
    """

    origin: str
    number: int


class Transmission(NamedTuple):
    """The destination of a message on a transmission queue: MQXQH's RemoteQName and RemoteQMgrName (between N-3).

    Args:
        queue: the name of the destination queue.
        manager: the name of its queue manager.
    """

    queue: str
    manager: str


class Place(NamedTuple):
    """The place of a message on its queue; smaller is earlier (lifecycle B-5).

    `rank` is the effective priority at arrival, negated; `number` comes from the queue's one counter;
    `ordinal` counts the messages of one unit of work in put order.
    """

    rank: int
    number: int
    ordinal: int


class EarlierPending(NamedTuple):
    """The pending messages before one that a notify read returned: how many, and place and kind of the first."""

    total: int
    place: Place
    kind: str


class Field(Generic[T_co]):
    """One field of the row: its position, and the check of a given value."""

    def __init__(
        self,
        mq_name: str,
        default: T_co,
        doc: str,
        kind: ParameterKind[Any] | Callable[[str, Any], T_co] | None = None,
    ) -> None:
        self.mq_name = mq_name
        self.default = default
        self.kind = kind if isinstance(kind, ParameterKind) else None
        self.check: Callable[[str, Any], T_co] | None = kind.check if isinstance(kind, ParameterKind) else kind
        # None: only the queue manager sets it
        self.__doc__ = doc
        self.name = ""
        self.index = -1

    def __set_name__(self, owner: type[Message], name: str) -> None:
        self.name = name
        self.index = len(owner.FIELDS)
        owner.FIELDS[name] = self

    @overload
    def __get__(self, message: None, owner: type[Message]) -> Self: ...
    @overload
    def __get__(self, message: Message, owner: type[Message]) -> T_co: ...
    def __get__(self, message: Message | None, owner: type[Message]) -> Self | T_co:
        if message is None:
            return self
        value: T_co = message._row[self.index]
        return value


def _transmission(name: str, value: Any) -> Transmission | None:
    if value is None:
        return None
    allowed = "a Transmission of two names, each at most 48 characters, or None"
    if not isinstance(value, tuple) or len(value) != len(Transmission._fields):
        raise bad_argument(name, value, allowed, Reason.XQH_ERROR)
    try:
        return Transmission(*(NAME.check(name, one) for one in value))
    except ArgumentError:
        raise bad_argument(name, value, allowed, Reason.XQH_ERROR) from None


class Descriptor(TypedDict, total=False):
    """The fields that a caller may give, as keywords of `Message`, `put` and their kin."""

    report: int
    message_type: int
    expiry: float | None
    feedback: int
    encoding: int
    coded_character_set_id: int
    format: str
    priority: int | None
    persistent: bool | None
    message_id: Id
    correlation_id: Id
    reply_to_queue: str
    reply_to_queue_manager: str
    user_identifier: str
    accounting_token: bytes
    application_identity_data: str
    put_application_type: int
    put_application_name: str
    put_at: float
    application_origin_data: str
    group_id: Id
    sequence_number: int
    offset: int
    flags: int
    original_length: int
    delay: float
    transmission: Transmission | None
    properties: Mapping[str, PropertyValue]


class Message:
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

    __slots__ = ("_row",)
    _row: Row
    FIELDS: ClassVar[dict[str, Field[Any]]] = {}

    report = Field("Report", 0, "Report options, MQRO bits: see `Report`.", REPORT)
    message_type = Field("MsgType", 8, "A `MessageType`, or an application's own from 65536.", MESSAGE_TYPE)
    expiry: Field[float | None] = Field(
        "Expiry",
        None,
        "Seconds to live from the put; None: the queue's default, math.inf: for ever. "
        "In a message that was got: the seconds that are left, math.inf if it never expires.",
        EXPIRY,
    )
    feedback = Field("Feedback", 0, "Feedback code of a report.", integer(0, NUMBER_MAX, Reason.FEEDBACK_ERROR))
    encoding = Field(
        "Encoding",
        546 if sys.byteorder == "little" else 273,
        "The encoding of numbers in the body, MQENC bits; the default is this machine's encoding.",
        integer(0, INT_MAX),
    )
    coded_character_set_id = Field(
        "CodedCharSetId", 0, "Character set of the body; 0: that of the queue manager.", integer(-4, INT_MAX)
    )
    format = Field("Format", "", "Name of the body's format, 8 characters, for example MQSTR.", text(8))
    priority: Field[int | None] = Field(
        "Priority", None, "0 (lowest) to 9; None: the queue's default; more than 9 counts as 9.", PRIORITY
    )
    persistent: Field[bool | None] = Field(
        "Persistence", None, "Whether the message survives a restart; None: the queue's default.", PERSISTENT
    )
    message_id = Field("MsgId", NO_ID, "24 bytes; if all are NUL, the queue manager makes one.", ID)
    correlation_id = Field("CorrelId", NO_ID, "24 bytes that relate messages to each other.", ID)
    reply_to_queue = Field("ReplyToQ", "", "The queue for replies and reports.", NAME)
    reply_to_queue_manager = Field("ReplyToQMgr", "", "The queue manager of that queue.", NAME)
    user_identifier = Field("UserIdentifier", "", "Identity context: the user.", text(12))
    accounting_token = Field("AccountingToken", bytes(32), "Identity context: 32 bytes.", Octets(32))
    application_identity_data = Field("ApplIdentityData", "", "Identity context: free text.", text(32))
    put_application_type = Field("PutApplType", 0, "Origin context: kind of the putting program.", integer(-1, INT_MAX))
    put_application_name = Field("PutApplName", "", "Origin context: the putting program.", text(28))
    put_at = Field(
        "PutDate, PutTime",
        0.0,
        "Origin context: when it was put (not committed), seconds since 1970.",
        Seconds(0, PUT_AT_MAX, Reason.MD_ERROR),
    )
    application_origin_data = Field("ApplOriginData", "", "Origin context: free text.", text(4))
    group_id = Field("GroupId", NO_ID, "24 bytes; all NUL: no group, or a new one.", ID)
    sequence_number = Field(
        "MsgSeqNumber",
        1,
        "Place of the logical message in its group, from 1.",
        integer(1, NUMBER_MAX, Reason.MSG_SEQ_NUMBER_ERROR),
    )
    offset = Field(
        "Offset",
        0,
        "The number of bytes in the logical message before this segment.",
        integer(0, NUMBER_MAX, Reason.OFFSET_ERROR),
    )
    flags = Field("MsgFlags", 0, "`Flags`, added up.", integer(0, FLAGS_MAX, Reason.MSG_FLAGS_ERROR))
    original_length = Field(
        "OriginalLength",
        -1,
        "In a report: the length of the original message; else -1.",
        integer(-1, NUMBER_MAX, Reason.ORIGINAL_LENGTH_ERROR),
    )
    delay = Field(
        "(delivery delay)",
        0.0,
        "Seconds from the put until the message may be read.",
        Seconds(0, EXPIRY_SECONDS_MAX),
    )
    transmission: Field[Transmission | None] = Field(
        "(transmission header)", None, "On a transmission queue: the destination. None on other queues.", _transmission
    )
    properties = Field("(properties)", NO_PROPERTIES, "Named values that the program adds: a mapping.", property_values)
    body = Field("(data)", b"", "The data.", body_bytes)
    length = Field("DataLength", 0, "The length of the whole body in bytes, even if the body was truncated.")
    backout_count = Field("BackoutCount", 0, "How often a get of this message was backed out.")
    token = Field("MsgToken", bytes(16), "Identifies this message on this queue.")
    uid: Field[UniqueId | None] = Field("(unique id)", None, "Identifies this message for ever (lifecycle A-1).")
    place: Field[Place | None] = Field("(place)", None, "Its place on its queue.")
    earlier_pending: Field[EarlierPending | None] = Field(
        "(earlier pending)", None, "In a notify read: the pending messages before it (lifecycle B-16); None: none."
    )
    warning: Field[Reason | None] = Field("Reason", None, "The warning of the call, None without one.")

    def __init__(self, body: bytes | bytearray | memoryview = b"", **fields: Unpack[Descriptor]) -> None:
        data = body if type(body) is bytes else body_bytes("body", body)
        row = (*_BEFORE_BODY, data, len(data), *_BEHIND_LENGTH)
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
            data = row[_BODY] = body_bytes("body", fields.pop("body"))
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
            raise bad_argument("value", value, f"what JSON can say ({error})") from None
        fields.setdefault("format", "MQSTR")
        fields.setdefault("coded_character_set_id", 1208)
        return cls(body, **fields)

    def json(self) -> Any:
        """Reads the body as JSON in UTF-8, whatever its format field says.

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
_BEFORE_BODY, _BEHIND_LENGTH = _DEFAULTS[:_BODY], _DEFAULTS[_LENGTH + 1 :]
_new = object.__new__
_set_row: Callable[[Message, Row], None] = Message.__dict__["_row"].__set__


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
        _check_together(filled)
    return filled


_of_together = operator.itemgetter(
    *(
        Message.FIELDS[name].index
        for name in ("report", "message_type", "reply_to_queue", "flags", "original_length", "body")
    )
)


def _check_together(row: Row) -> None:
    """Checks fields that depend on each other: reply-to queue (2027) and original length (2252, R1.12)."""
    report, message_type, reply_to_queue, flags, original_length, body = _of_together(row)
    if not reply_to_queue and (message_type == MessageType.REQUEST or report & REPLY_NEEDED):
        raise CallerError(
            "a request, or a message that asks for reports, needs reply_to_queue",
            reason=Reason.MISSING_REPLY_TO_Q,
            argument="reply_to_queue",
        )
    if original_length != -1:
        if message_type != MessageType.REPORT:
            raise _bad_original_length(original_length, "-1 except in a report")
        if original_length < max(len(body), flags & ANY_SEGMENT == SEGMENT):
            raise _bad_original_length(original_length, "at least the length of the data")


def _bad_original_length(value: int, allowed: str) -> ArgumentError:
    return bad_argument("original_length", value, allowed, Reason.ORIGINAL_LENGTH_ERROR)


def mq_date(at: float) -> str:
    """Writes seconds since 1970 as MQ's date: YYYYMMDD, UTC."""
    return time.strftime("%Y%m%d", time.gmtime(at))


def mq_time(at: float) -> str:
    """Writes the time of day as MQ does: HHMMSSTH, UTC, to the hundredth."""
    return time.strftime("%H%M%S", time.gmtime(at)) + f"{int(at % 1 * 100):02d}"


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
    "Message",
    "MessageType",
    "Place",
    "Report",
    "Transmission",
    "UniqueId",
]
