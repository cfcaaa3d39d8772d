"""Message: the descriptor (MQMD), the body, and what a get adds.

A message is one row of values behind named fields. It is validated once, when a caller builds it; a message
that a get returns is made from its row without any further work, so that bulk reads stay cheap. Either way it
cannot be changed: `replace` makes a changed copy.

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
REPORT_GENERATED = 256 | 2048 | 2097152  # confirm on arrival, confirm on delivery, expiration: by the queue manager
REPLY_NEEDED = REPORT_GENERATED | 16777216 | 1 | 2  # and exception, positive and negative action notification


# Plain integers: rules test flags for each message, and enum arithmetic costs a microsecond a time.
SEGMENTATION_ALLOWED, SEGMENT, LAST_SEGMENT, IN_GROUP, LAST_IN_GROUP = 1, 2, 4, 8, 16
ANY_SEGMENT = SEGMENT | LAST_SEGMENT
ANY_GROUP = IN_GROUP | LAST_IN_GROUP
FLAGS_MAX = 31


class UniqueId(NamedTuple):
    """Names one message for ever.

    Args:
        origin: the name with which the queue manager that made it was created.
        number: one that never returns there.
    """

    origin: str
    number: int


class Transmission(NamedTuple):
    """Where a message on a transmission queue is to go: MQXQH's RemoteQName and RemoteQMgrName (between N-3).

    Args:
        queue: the name of the queue there.
        manager: the name of the queue manager that has it.
    """

    queue: str
    manager: str


class Place(NamedTuple):
    """Where a message sits on its queue; smaller is earlier (lifecycle B-5).

    `rank` is the effective priority at arrival, negated; `number` comes from the queue's one counter;
    `ordinal` counts the messages of one unit in put order.
    """

    rank: int
    number: int
    ordinal: int


class EarlierPending(NamedTuple):
    """What stood before a message that a notify call was given: how many, the first one's place and kind."""

    total: int
    place: Place
    kind: str


class Field(Generic[T_co]):
    """One field of the row: where it stands, and how a given value is checked."""

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
        # None: the queue manager fills it in, callers cannot
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
        body: the data, any bytes-like object; kept as bytes.
        **fields: any field of the descriptor (see each field's help).

    Raises:
        ArgumentError: a value out of its range, with MQ's reason code (2013, 2014, 2026, 2029, 2047, 2050,
            2061, 2249, 2250, 2251, 2252; 2442, 2473, 2478, 2498, 2513 properties; 2260 transmission); an unknown field.
        CallerError: 2027 MISSING_REPLY_TO_Q, a request or a report option without `reply_to_queue`.

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
        "On a message that was got: what is left, math.inf if it never expires.",
        EXPIRY,
    )
    feedback = Field("Feedback", 0, "Feedback code of a report.", integer(0, NUMBER_MAX, Reason.FEEDBACK_ERROR))
    encoding = Field(
        "Encoding",
        546 if sys.byteorder == "little" else 273,
        "How numbers in the body are written, MQENC bits; the default is this machine's way.",
        integer(0, INT_MAX),
    )
    coded_character_set_id = Field(
        "CodedCharSetId", 0, "Character set of the body; 0: the queue manager's.", integer(-4, INT_MAX)
    )
    format = Field("Format", "", "Name of the body's format, 8 characters, for example MQSTR.", text(8))
    priority: Field[int | None] = Field(
        "Priority", None, "0 (lowest) to 9; None: the queue's default; more than 9 counts as 9.", PRIORITY
    )
    persistent: Field[bool | None] = Field(
        "Persistence", None, "Does the message survive a restart? None: the queue's default.", PERSISTENT
    )
    message_id = Field("MsgId", NO_ID, "24 bytes; all NUL: the queue manager makes one.", ID)
    correlation_id = Field("CorrelId", NO_ID, "24 bytes that relate messages.", ID)
    reply_to_queue = Field("ReplyToQ", "", "Where replies and reports should go.", NAME)
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
    group_id = Field("GroupId", NO_ID, "24 bytes; NUL: no group, or a new one.", ID)
    sequence_number = Field(
        "MsgSeqNumber",
        1,
        "Place of the logical message in its group, from 1.",
        integer(1, NUMBER_MAX, Reason.MSG_SEQ_NUMBER_ERROR),
    )
    offset = Field(
        "Offset",
        0,
        "Bytes of the logical message before this segment.",
        integer(0, NUMBER_MAX, Reason.OFFSET_ERROR),
    )
    flags = Field("MsgFlags", 0, "`Flags`, added up.", integer(0, FLAGS_MAX, Reason.MSG_FLAGS_ERROR))
    original_length = Field(
        "OriginalLength",
        -1,
        "In a report: the length of the message that it is about; else -1.",
        integer(-1, NUMBER_MAX, Reason.ORIGINAL_LENGTH_ERROR),
    )
    delay = Field(
        "(delivery delay)",
        0.0,
        "Seconds from the put until the message may be read.",
        Seconds(0, EXPIRY_SECONDS_MAX),
    )
    transmission: Field[Transmission | None] = Field(
        "(transmission header)", None, "On a transmission queue: where it is to go. None: it is there.", _transmission
    )
    properties = Field(
        "(properties)", NO_PROPERTIES, "Names of the program's own, and their values: a mapping.", property_values
    )
    body = Field("(data)", b"", "The data.", body_bytes)
    length = Field("DataLength", 0, "Bytes of the whole data, also where the body was truncated.")
    backout_count = Field("BackoutCount", 0, "How often a get of it was backed out.")
    token = Field("MsgToken", bytes(16), "Names this message on this queue.")
    uid: Field[UniqueId | None] = Field("(unique id)", None, "Names this message for ever (lifecycle A-1).")
    place: Field[Place | None] = Field("(place)", None, "Where it sat on its queue.")
    earlier_pending: Field[EarlierPending | None] = Field(
        "(earlier pending)", None, "On a notify call: what was pending before it (lifecycle B-16); None: nothing."
    )
    warning: Field[Reason | None] = Field("Reason", None, "The call's warning, None if it had none.")

    def __init__(self, body: bytes | bytearray | memoryview = b"", **fields: Unpack[Descriptor]) -> None:
        data = body if type(body) is bytes else body_bytes("body", body)
        row = (*_BEFORE_BODY, data, len(data), *_BEHIND_LENGTH)
        _set_row(self, _filled(row, fields, is_new=True) if fields else row)

    @classmethod
    def from_row(cls, row: Row) -> Message:
        """A message straight from its row: for stores, which have checked it before."""
        message = _new(cls)
        _set_row(message, row)
        return message

    @classmethod
    def from_rows(cls, rows: Iterable[Row]) -> list[Message]:
        """The same of many rows, in one call."""
        messages = []
        for row in rows:
            message = _new(cls)
            _set_row(message, row)
            messages.append(message)
        return messages

    row = property(operator.attrgetter("_row"), doc="All values, in the order of `FIELDS`: for rules and stores.")

    def replace(self, **fields: Any) -> Message:
        """A copy with other values, checked as in the constructor; `body` may be among them."""
        row = list(self._row)
        if "body" in fields:
            data = row[_BODY] = body_bytes("body", fields.pop("body"))
            row[_LENGTH] = len(data)
        return Message.from_row(_filled(row, fields))

    def with_values(self, **values: Any) -> Message:
        """A copy with other values, unchecked: for rules and stores, which set what callers cannot."""
        row = list(self._row)
        for name, value in values.items():
            row[Message.FIELDS[name].index] = value
        return Message.from_row(tuple(row))

    @property
    def group_status(self) -> Status:
        """Whether it is in a group, the last of one, or in none."""
        flags = self._row[_FLAGS]
        return "last" if flags & LAST_IN_GROUP else "in" if flags & IN_GROUP else "no"

    @property
    def segment_status(self) -> Status:
        """Whether it is a segment, the last one, or a whole message."""
        flags = self._row[_FLAGS]
        return "last" if flags & LAST_SEGMENT else "in" if flags & SEGMENT else "no"

    @property
    def segmentation_allowed(self) -> bool:
        """Whether the queue manager may split it."""
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
        """A message whose body is a value as JSON in UTF-8; its format is MQSTR, its character set 1208.

        Raises: ArgumentError, JSON has nothing for the value, or for one in it; otherwise as `Message`.
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
        """The value that the body is as JSON in UTF-8; bodies of any format are tried.

        Raises: QueueCondition 2110 FORMAT_ERROR, the body is not that, or not all of it is there.
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
        """A message as a get or a browse returns it: what the queue manager fills in is there.

        To type checkers alone it is a class of its own; a program that runs knows only messages.
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
    """What no field can tell alone: reply-to queue (2027) and original length (2252, R1.12)."""
    report, message_type, reply_to_queue, flags, original_length, body = _of_together(row)
    if not reply_to_queue and (message_type == MessageType.REQUEST or report & REPLY_NEEDED):
        raise CallerError(
            "a request, and a message that asks for reports, needs reply_to_queue",
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
    """Seconds since 1970 as MQ writes a date: YYYYMMDD, UTC."""
    return time.strftime("%Y%m%d", time.gmtime(at))


def mq_time(at: float) -> str:
    """The time of that day: HHMMSSTH, UTC, to the hundredth."""
    return time.strftime("%H%M%S", time.gmtime(at)) + f"{int(at % 1 * 100):02d}"


def stored_flags(flags: int) -> int:
    """The flags as stored: last in group is in group, last segment is a segment."""
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
