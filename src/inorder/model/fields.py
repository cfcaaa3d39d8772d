"""The fields of a message: one table, from which all code about fields is derived.

`MessageFields` has a line for each field: its name, default and kind (range or length, and MQ's reason for refusing
other values), MQ's name, the release that added it, and its form in the stores, in bulk reads, in Arrow, in forms, in
options of the command, in files of dmpmqmsg and in scenarios. `Descriptor` repeats it for type checkers.

A field added after 0.1.0 goes at the end of both, and has its own column in `content`: see `LATER`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NamedTuple, TypedDict, TypeVar, overload
from uuid import UUID

from ..errors import ArgumentError, Reason, bad_argument
from .parameters import BYTES_LIKE, ID_LENGTH, Integer, Octets, ParameterKind, Seconds, Switch, Text
from .properties import NO_PROPERTIES, Properties, PropertyValue

if TYPE_CHECKING:
    from typing_extensions import Self

T_co = TypeVar("T_co", covariant=True)
Id = bytes | str | UUID

NUMBER_MAX: Final = 999_999_999
EXPIRY_SECONDS_MIN: Final = 0.1
EXPIRY_SECONDS_MAX: Final = 99_999_999.9
INT_MAX: Final = 2**31 - 1
FLAGS_MAX: Final = 31
PUT_AT_MAX: Final = 253402300799.0  # the end of the year 9999
NO_ID: Final = bytes(ID_LENGTH)
NO_ACCOUNTING: Final = bytes(32)
BY_QUEUE: Final = {"None for the queue's default": None}


class UniqueId(NamedTuple):
    """Identifies one message permanently.

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
    """The pending messages before one that a notify read returned: their number, and place and kind of the first."""

    total: int
    place: Place
    kind: str


# ---- kinds that only fields of messages have


class ReportOptions(Integer):
    """The bits of `Report` added up."""

    __slots__ = ()
    refused: Final = 270270464 | 4  # bits that MQ lacks, and activity reports

    def check(self, name: str, value: Any) -> int:
        report = int(super().check(name, value))
        if report & self.refused:
            raise self.refusal(name, value)
        return report


class MessageTypes(Integer):
    """One of `MessageType`, or a program's own type within the range."""

    __slots__ = ()
    known: Final = (1, 2, 4, 8)

    def check(self, name: str, value: Any) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and value in self.known:
            return int(value)
        return int(super().check(name, value))


class Instants(Seconds):
    """Seconds since 1970; interfaces may show them as a time."""

    __slots__ = ()


class Transmissions(ParameterKind[Transmission | None]):
    """The destination of a message."""

    __slots__ = ()
    types = frozenset({Transmission})

    def check(self, name: str, value: Any) -> Transmission | None:
        if value is None:
            return None
        try:
            if isinstance(value, tuple) and len(value) == len(Transmission._fields):
                return Transmission(*(NAME.check(name, one) for one in value))
        except ArgumentError:
            pass
        raise self.refusal(name, value) from None


class PropertySets(ParameterKind[Properties]):
    """Properties, made from any mapping."""

    __slots__ = ()
    types = frozenset({Properties})

    def check(self, name: str, value: Any) -> Properties:
        made = value if type(value) is Properties else Properties(value)  # isinstance is slower for a Mapping
        return NO_PROPERTIES if made.text is None else made


class BodyBytes(ParameterKind[bytes]):
    """The data, made from any bytes-like object."""

    __slots__ = ()
    types = frozenset({bytes})

    def check(self, name: str, value: Any) -> bytes:
        if not isinstance(value, BYTES_LIKE):
            hint = "bytes (encode a text first, for example with .encode())"
            if isinstance(value, dict | list | tuple):
                hint = "bytes: write json.dumps(...).encode() to have it as JSON"
            raise bad_argument(name, value, hint, self.reason)
        try:
            return bytes(value)
        except ValueError:
            raise bad_argument(name, value, "bytes, not a memoryview that was released") from None


def integer(low: int, high: int, reason: Reason = Reason.MD_ERROR) -> Integer:
    """An integer in this range."""
    return Integer(low, high, reason)


def text(length: int) -> Text:
    """A text with at most this many characters; trailing blanks are removed."""
    return Text(length, Reason.MD_ERROR, trimmed=True)


REPORT: Final = ReportOptions(
    0, INT_MAX, Reason.REPORT_OPTIONS_ERROR, words="a sum of report options, without activity reports (4)"
)
MESSAGE_TYPE: Final = MessageTypes(
    65_536, NUMBER_MAX, Reason.MSG_TYPE_ERROR, words="1, 2, 4, 8, or 65,536 to 999,999,999"
)
EXPIRY: Final = Seconds(
    EXPIRY_SECONDS_MIN, EXPIRY_SECONDS_MAX, Reason.EXPIRY_ERROR, also={"math.inf for never": math.inf, **BY_QUEUE}
)
PRIORITY: Final = Integer(0, NUMBER_MAX, Reason.PRIORITY_ERROR, also=BY_QUEUE)
PERSISTENT: Final = Switch(reason=Reason.PERSISTENCE_ERROR, also=BY_QUEUE)
ID: Final = Octets(ID_LENGTH, named=True)
NAME: Final = text(48)
PUT_AT: Final = Instants(
    0, PUT_AT_MAX, Reason.MD_ERROR, words="a time from 1970 to 9999, in seconds since 1970 where it is a number"
)
BODY: Final = BodyBytes("bytes")


# ---- the table


class PutOption(NamedTuple):
    """How `inorder put` takes a field.

    Args:
        metavar: the placeholder for the value; "": the option is a switch.
        name: the option's name; "": the field's.
    """

    metavar: str
    help: str
    name: str = ""


class Field(Generic[T_co]):
    """One field of a message, a line of the table.

    Args:
        mq_name: MQ's name; a description in parentheses if MQ has no such field.
        kind: the values that a program may give; None: the queue manager sets the field.
        text: its position in the stored text of a descriptor; None: it has its own column.
        none: the value that stores, and columns of many messages, represent as NULL; `...`: no value.
        remains: a message that was got still has it; bulk reads, archives and channels have no other fields.
        arrow: it is a column of Arrow and Spark.
        form: its label in the console's form, and a hint.
        option: the command's option for it.
        code: the code of its line in files of dmpmqmsg; two codes for a text that may also be in hexadecimal there.
        word: its name in scenarios; "": `name`.
    """

    def __init__(
        self,
        mq_name: str,
        default: T_co,
        doc: str,
        kind: ParameterKind[Any] | None = None,
        *,
        text: int | None = None,
        none: Any = ...,
        remains: bool = True,
        arrow: bool = True,
        form: tuple[str, str] | None = None,
        option: PutOption | None = None,
        code: str = "",
        word: str = "",
    ) -> None:
        self.mq_name, self.default, self.kind = mq_name, default, kind
        self.check = None if kind is None else kind.check
        self.text, self.remains, self.arrow = text, remains, arrow
        self.none = bytes(kind.length) if isinstance(kind, Octets) else none
        self.form, self.option, self.code = form, option, code
        self.__doc__ = doc
        self.name, self.word = "", word
        self.index = -1

    def __set_name__(self, owner: type[MessageFields], name: str) -> None:
        self.name, self.word = name, self.word or name.replace("_", "-")
        self.index = len(owner.FIELDS)
        owner.FIELDS[name] = self

    @overload
    def __get__(self, message: None, owner: type[MessageFields]) -> Self: ...
    @overload
    def __get__(self, message: MessageFields, owner: type[MessageFields]) -> T_co: ...
    def __get__(self, message: MessageFields | None, owner: type[MessageFields]) -> Self | T_co:
        if message is None:
            return self
        value: T_co = message._row[self.index]
        return value


class MessageFields:
    """The fields of `Message`, in the order of its row."""

    __slots__ = ("_row",)
    _row: tuple[Any, ...]
    FIELDS: ClassVar[dict[str, Field[Any]]] = {}

    # fmt: off
    report = Field("Report", 0, "Report options, MQRO bits: see `Report`.", REPORT, text=8, code="RPT")
    message_type = Field("MsgType", 8, "A `MessageType`, or an application's own from 65536.", MESSAGE_TYPE, text=6,
        code="MST")
    expiry: Field[float | None] = Field("Expiry", None,
        "Seconds to live from the put; None: the queue's default, math.inf: for ever. "
        "In a message that was got: the seconds that are left, math.inf if it never expires.", EXPIRY, none=math.inf,
        form=("Time to live, in seconds", "default: the queue's"),
        option=PutOption("SECONDS|none", "Time to live; default: the queue's."), code="EXP")
    feedback = Field("Feedback", 0, "Feedback code of a report.", integer(0, NUMBER_MAX, Reason.FEEDBACK_ERROR), text=9,
        code="FDB")
    encoding = Field("Encoding", 546 if sys.byteorder == "little" else 273,
        "The encoding of numbers in the body, MQENC bits; the default is this machine's encoding.", integer(0, INT_MAX),
        text=10, code="ENC")
    coded_character_set_id = Field("CodedCharSetId", 0, "Character set of the body; 0: that of the queue manager.",
        integer(-4, INT_MAX), text=3, code="CCS", word="ccsid")
    format = Field("Format", "", "Name of the body's format, 8 characters, for example MQSTR.", text(8), text=4,
        form=("Format", "default: MQSTR for text and JSON"),
        option=PutOption("NAME", "MQ's name for the form of the body, such as MQSTR.", "body-format"), code="FMT")
    priority: Field[int | None] = Field("Priority", None,
        "0 (lowest) to 9; None: the queue's default; more than 9 counts as 9.", PRIORITY,
        form=("Priority", "0 to 9; default: the queue's"), option=PutOption("0..9", "Default: the queue's."),
        code="PRI")
    persistent: Field[bool | None] = Field("Persistence", None,
        "Whether the message survives a restart; None: the queue's default.", PERSISTENT,
        form=("Persistent", "the queue's default"),
        option=PutOption("", "Whether messages survive when the last process closes the store; default: the queue's."),
        code="PER")
    message_id = Field("MsgId", NO_ID, "24 bytes; if all are NUL, the queue manager makes one.", ID,
        form=("Message id", "hexadecimal digits, or text:…; empty: generated"),
        option=PutOption("HEX|text:TEXT", "Default: the queue manager generates one."), code="MSI", word="id")
    correlation_id = Field("CorrelId", NO_ID, "24 bytes that relate messages to each other.", ID,
        form=("Correlation id", "hexadecimal digits, or text:…"),
        option=PutOption("HEX|text:TEXT", "Relates messages to each other, such as a reply to its request."),
        code="COI", word="correlation")
    reply_to_queue = Field("ReplyToQ", "", "The queue for replies and reports.", NAME, text=5,
        form=("Reply to queue", ""), option=PutOption("NAME", "The queue for replies."), code="RTQ", word="reply-to")
    reply_to_queue_manager = Field("ReplyToQMgr", "", "The queue manager of that queue.", NAME, text=7,
        form=("Reply to queue manager", ""),
        option=PutOption("NAME", "The queue manager of that queue; default: this one."), code="RTM")
    user_identifier = Field("UserIdentifier", "", "Identity context: the user.", text(12), text=1, code="USR")
    accounting_token = Field("AccountingToken", NO_ACCOUNTING, "Identity context: 32 bytes.", Octets(32), text=14,
        code="ACC")
    application_identity_data = Field("ApplIdentityData", "", "Identity context: free text.", text(32), text=11,
        code="AIX AID")
    put_application_type = Field("PutApplType", 0, "Origin context: kind of the putting program.", integer(-1, INT_MAX),
        text=2, code="PAT")
    put_application_name = Field("PutApplName", "", "Origin context: the putting program.", text(28), text=0,
        code="PAN")
    put_at = Field("PutDate, PutTime", 0.0, "Origin context: when it was put (not committed), seconds since 1970.",
        PUT_AT)
    application_origin_data = Field("ApplOriginData", "", "Origin context: free text.", text(4), text=12,
        code="AOX AOD")
    group_id = Field("GroupId", NO_ID, "24 bytes; all NUL: no group, or a new one.", ID, code="GRP", word="group")
    sequence_number = Field("MsgSeqNumber", 1, "Place of the logical message in its group, from 1.",
        integer(1, NUMBER_MAX, Reason.MSG_SEQ_NUMBER_ERROR), code="MSQ", word="seq")
    offset = Field("Offset", 0, "The number of bytes in the logical message before this segment.",
        integer(0, NUMBER_MAX, Reason.OFFSET_ERROR), code="OFF")
    flags = Field("MsgFlags", 0, "`Flags`, added up.", integer(0, FLAGS_MAX, Reason.MSG_FLAGS_ERROR), code="MSF")
    original_length = Field("OriginalLength", -1,
        "Of a segment: its length; of a report: that of the message or segment that it is about; else -1.",
        integer(-1, NUMBER_MAX, Reason.ORIGINAL_LENGTH_ERROR), code="ORL")
    delay = Field("(delivery delay)", 0.0, "Seconds from the put until the message may be read.",
        Seconds(0, EXPIRY_SECONDS_MAX), none=0.0, remains=False, form=("Delay before it can be read, in seconds", "0"),
        option=PutOption("SECONDS", "Time until the message can be read."))
    transmission: Field[Transmission | None] = Field("(transmission header)", None,
        "On a transmission queue: the destination. None on other queues.",
        Transmissions("a Transmission of two names, each at most 48 characters, or None", Reason.XQH_ERROR), text=13,
        arrow=False)
    properties = Field("(properties)", NO_PROPERTIES, "Named values that the program adds: a mapping.",
        PropertySets("a mapping of names to values"), word="property")
    body = Field("(data)", b"", "The data.", BODY)
    length = Field("DataLength", 0, "The length of the whole body in bytes, even if the body was truncated.")
    backout_count = Field("BackoutCount", 0, "How often a get of this message was backed out.", code="BOC")
    token = Field("MsgToken", bytes(16), "Identifies this message on this queue.")
    uid: Field[UniqueId | None] = Field("(unique id)", None, "Identifies this message for ever (lifecycle A-1).")
    place: Field[Place | None] = Field("(place)", None, "Its place on its queue.")
    earlier_pending: Field[EarlierPending | None] = Field("(earlier pending)", None,
        "In a notify read: the pending messages before it (lifecycle B-16); None: none.")
    warning: Field[Reason | None] = Field("Reason", None, "The warning of the call, None without one.")
    # fmt: on
    # Fields added after 0.1.0 go here, each with a kind and a column in `content`.


class Descriptor(TypedDict, total=False):
    """The fields that a caller may give, as keywords of `Message`, `put` and similar calls."""

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


GIVEN: Final[Mapping[str, Field[Any]]] = {name: MessageFields.FIELDS[name] for name in Descriptor.__annotations__}
"""The descriptor: the fields that a caller may give besides the body."""
LATER: Final = tuple(MessageFields.FIELDS)[MessageFields.warning.index + 1 :]
"""The fields that 0.1.0 lacks. They end the row, so that code which makes rows can append them together."""
NONE: Final[Mapping[str, Any]] = {name: field.none for name, field in GIVEN.items() if field.none is not ...}
"""The values that stores, and columns of many messages, represent as NULL."""
