"""The attributes of queues and of the queue manager, in one table each.

An attribute is declared as a field of ``QueueAttributes`` or ``ManagerAttributes``. The field has the type and the
default; its metadata has MQ's name, the allowed values, the types of queue that have the attribute, and how it may
be changed. The tables ``QUEUE_ATTRIBUTES`` and ``MANAGER_ATTRIBUTES`` are made from the fields. Defining, altering,
the error texts and the documentation all use these tables.

Values are checked only here: ``define_queue`` and ``altered`` (and the same two functions for the manager) make
every set of attributes, and refuse a bad one before anything is changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Literal, TypedDict

from ..errors import ObjectExists, Reason, bad_argument
from .attribute import (
    COUNT_MAX,
    Change,
    Table,
    booleans,
    checked,
    choices,
    integers,
    lists,
    names,
    seconds,
    table_of,
    texts,
)
from .fields import EXPIRY_SECONDS_MAX

QueueType = Literal["local", "alias", "model", "remote", "store_and_forward", "home_server"]
Delivery = Literal["priority", "fifo"]
OrderRule = Literal["put", "prepare", "commit"]
QueueReadOrder = Literal["required", "strict", "relaxed", "unordered"]
IndexType = Literal["none", "message_id", "correlation_id", "message_token", "group_id"]
DefaultInput = Literal["shared", "exclusive"]
DefinitionType = Literal["predefined", "permanent_dynamic", "temporary_dynamic"]
NonpersistentClass = Literal["normal", "high"]
TriggerType = Literal["none", "first", "every", "depth", "group"]
Usage = Literal["normal", "transmission"]
RemoteMode = Literal["asynchronous", "synchronous"]

MESSAGE_LENGTH_MAX: Final = 104_857_600
MARK_INTERVAL_SECONDS_MAX: Final = 999_999.999
TRIGGER_INTERVAL_SECONDS_MAX: Final = 999_999.999
TRIGGER_DATA_LENGTH_MAX: Final = 64

ANY_QUEUE: Final = frozenset({"local", "alias", "model", "remote"})
READABLE: Final = ANY_QUEUE - {"remote"}
HOLDERS: Final = frozenset({"local", "model"})
ALIAS: Final = frozenset({"alias"})
REMOTE: Final = frozenset({"remote"})
FORWARDS: Final = frozenset({"store_and_forward"})
COLLECTS: Final = frozenset({"home_server"})
EVERY_TYPE: Final = ANY_QUEUE | FORWARDS | COLLECTS
MANAGER: Final = frozenset({"manager"})


# ---- the declarations

# Formatted by hand: with one argument a line, as the formatter does it, the two tables would fill six screens.
# fmt: off


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueAttributes:
    """The attributes of one queue; ``define_queue`` and ``altered`` make and check them (A-33)."""

    name: str = field(metadata=names(
        1, "QName", 2016, "The name of the queue. It never changes.", applies_to=EVERY_TYPE, changed_by="create",
        mqsc="QUEUE"))
    type: QueueType = field(default="local", metadata=choices(
        QueueType, "QType", 20,
        "Local stores messages, alias names another queue, model is a template, remote is on another manager (R4.1); "
        "store_and_forward and home_server, which MQ does not have, let other queue managers collect (K-3).",
        applies_to=EVERY_TYPE, changed_by="create", mq_values=(1, 3, 2, 6, 1001, 1002),
        mqsc="TYPE", mqsc_words=("QLOCAL", "QALIAS", "QMODEL", "QREMOTE", "QFORWARD", "QHOME")))
    description: str = field(default="", metadata=texts(
        "QDesc", 2013, "A description of the queue.", applies_to=EVERY_TYPE, mqsc="DESCR"))
    delivery: Delivery = field(default="priority", metadata=choices(
        Delivery, "MsgDeliverySequence", 16,
        "Priority sorts messages by their priority; fifo gives all the default priority (R4.10, R4.11).",
        mq_values=(0, 1), mqsc="MSGDLVSQ", mqsc_words=("PRIORITY", "FIFO")))
    default_priority: int = field(default=0, metadata=integers(
        0, 9, "DefPriority", 6,
        "The priority of a message that sets none, and with fifo the effective priority of all (R1.4, R4.11).",
        applies_to=ANY_QUEUE, reason=Reason.PRIORITY_ERROR, mqsc="DEFPRTY"))
    default_persistence: bool = field(default=True, metadata=booleans(
        "DefPersistence", 5,
        "Whether messages that set no persistence survive a restart; no on temporary queues (R1.5).",
        applies_to=ANY_QUEUE, mq_values=(1, 0), mqsc="DEFPSIST", mqsc_words=("YES", "NO")))
    order: OrderRule = field(default="put", metadata=choices(
        OrderRule, None, None, "The moment that sets a message's place: its put, its prepare or its commit (B-5).",
        mqsc="ORDER", mqsc_words=("PUT", "PREPARE", "COMMIT")))
    read_order: QueueReadOrder = field(default="relaxed", metadata=choices(
        QueueReadOrder, None, None, "How strictly readers keep the order, and whether a reader may choose (B-18).",
        mqsc="READORDER", mqsc_words=("REQUIRED", "STRICT", "RELAXED", "UNORDERED")))
    index_type: IndexType = field(default="none", metadata=choices(
        IndexType, "IndexType", 57, "The field that most getters match on; with group_id a group keeps the place of "
        "its first message (R4.13).",
        mq_values=(0, 1, 2, 4, 5), mqsc="INDXTYPE", mqsc_words=("NONE", "MSGID", "CORRELID", "MSGTOKEN", "GROUPID")))
    max_depth: int = field(default=COUNT_MAX, metadata=integers(
        0, COUNT_MAX, "MaxQDepth", 15, "The most messages that the queue takes, counted in any state (R4.6, R4.7).",
        mqsc="MAXDEPTH"))
    max_length: int = field(default=4_194_304, metadata=integers(
        0, MESSAGE_LENGTH_MAX, "MaxMsgLength", 13,
        "The most bytes in one message, or in each segment if it may be split (R2.22, R2.23).", mqsc="MAXMSGL"))
    get_allowed: bool = field(default=True, metadata=booleans(
        "InhibitGet", 9, "Whether messages can be got and browsed; takes effect at once (R4.8).",
        applies_to=READABLE, changed_by="set", reason=Reason.INHIBIT_VALUE_ERROR,
        mq_values=(0, 1), mqsc="GET", mqsc_words=("ENABLED", "DISABLED")))
    put_allowed: bool = field(default=True, metadata=booleans(
        "InhibitPut", 10, "Whether messages can be put; takes effect at once (R4.8).",
        applies_to=ANY_QUEUE, changed_by="set", reason=Reason.INHIBIT_VALUE_ERROR,
        mq_values=(0, 1), mqsc="PUT", mqsc_words=("ENABLED", "DISABLED")))
    shareable: bool = field(default=True, metadata=booleans(
        "Shareability", 23, "Whether several handles may be open for input at the same time (R4.4).", mq_values=(1, 0),
        mqsc="SHARE"))
    default_input: DefaultInput = field(default="shared", metadata=choices(
        DefaultInput, "DefInputOpenOption", 4, "Whether an open for input is shared or exclusive by default "
        "(R4.4).",
        mq_values=(2, 4), mqsc="DEFSOPT", mqsc_words=("SHARED", "EXCL")))
    definition_type: DefinitionType = field(default="predefined", metadata=choices(
        DefinitionType, "DefinitionType", 7,
        "How the queue was created; for a model, the kind of queue that it creates, which can be altered (R4.3).",
        changed_by="create", mq_values=(1, 2, 3), mqsc="DEFTYPE", mqsc_words=("PREDEFINED", "PERMDYN", "TEMPDYN")))
    backout_threshold: int = field(default=0, metadata=integers(
        0, COUNT_MAX, "BackoutThreshold", 22,
        "The number of backouts after which a getter should set a message aside; stored for applications "
        "(R6.9).", mqsc="BOTHRESH"))
    backout_requeue_queue: str = field(default="", metadata=names(
        0, "BackoutRequeueQName", 2019, "The queue for messages that a getter sets aside; stored for applications "
        "(R6.9).",
        mqsc="BOQNAME"))
    harden_get_backout: bool = field(default=True, metadata=booleans(
        "HardenGetBackout", 8, "Whether the backout count of a message must survive a restart (R1.13).",
        mq_values=(1, 0), mqsc="HARDENBO"))
    retention_interval: int = field(default=COUNT_MAX, metadata=integers(
        0, COUNT_MAX, "RetentionInterval", 21,
        "The number of hours for which the queue is needed; stored for applications (4.1).", mqsc="RETINTVL"))
    nonpersistent_class: NonpersistentClass = field(default="normal", metadata=choices(
        NonpersistentClass, "NonPersistentMessageClass", 78,
        "Normal: a restart discards non-persistent messages; high: it keeps those that it can (R1.5).",
        mq_values=(0, 10), mqsc="NPMCLASS", mqsc_words=("NORMAL", "HIGH")))
    expiry: float | None = field(default=None, metadata=seconds(
        EXPIRY_SECONDS_MAX, None, None,
        "The expiry, in seconds, of a message that sets none; None means that it never expires (A-38).", mqsc="EXPIRY"))
    trigger_control: bool = field(default=False, metadata=booleans(
        "TriggerControl", 24, "Whether the queue causes trigger messages; with depth, each one switches this off "
        "(R4.9).",
        changed_by="set", reason=Reason.TRIGGER_CONTROL_ERROR, mq_values=(1, 0), mqsc="TRIGGER"))
    trigger_type: TriggerType = field(default="first", metadata=choices(
        TriggerType, "TriggerType", 28, "The event that causes a trigger message; MQ does not have group (R4.9, P-2).",
        changed_by="set", reason=Reason.TRIGGER_TYPE_ERROR, mq_values=(0, 1, 2, 3, 1001),
        mqsc="TRIGTYPE", mqsc_words=("NONE", "FIRST", "EVERY", "DEPTH", "GROUP")))
    trigger_priority: int = field(default=0, metadata=integers(
        0, 9, "TriggerMsgPriority", 26, "Messages with a lower priority cause no trigger message and are not counted "
        "(R4.9).",
        changed_by="set", reason=Reason.TRIGGER_MSG_PRIORITY_ERR, mqsc="TRIGMPRI"))
    trigger_depth: int = field(default=1, metadata=integers(
        1, COUNT_MAX, "TriggerDepth", 29, "With depth: the number of messages that causes a trigger message (R4.9).",
        changed_by="set", reason=Reason.TRIGGER_DEPTH_ERROR, mqsc="TRIGDPTH"))
    trigger_data: str = field(default="", metadata=texts(
        "TriggerData", 2023, "Data in the trigger message for the program that is started (R4.9).",
        TRIGGER_DATA_LENGTH_MAX, changed_by="set", mqsc="TRIGDATA"))
    initiation_queue: str = field(default="", metadata=names(
        0, "InitiationQName", 2008, "The local queue that receives the trigger messages (R4.9).", mqsc="INITQ"))
    process: str = field(default="", metadata=names(
        0, "ProcessName", 2012, "The process definition of the program to start; empty: none (R4.9).",
        mqsc="PROCESS"))
    base_queue: str = field(default="", metadata=names(
        0, "BaseQName", 2002, "The queue that an alias names, looked up at each open (R4.1).",
        applies_to=ALIAS, mqsc="TARGET"))
    usage: Usage = field(default="normal", metadata=choices(
        Usage, "Usage", 12, "Normal: programs get the messages; transmission: they wait to be sent to another queue "
        "manager (R4.1).",
        mq_values=(0, 1), mqsc="USAGE", mqsc_words=("NORMAL", "XMITQ")))
    remote_queue: str = field(default="", metadata=names(
        0, "RemoteQName", 2018, "The queue on the other queue manager; '' makes this a queue manager alias (R4.1).",
        applies_to=REMOTE, mqsc="RNAME"))
    remote_manager: str = field(default="", metadata=names(
        0, "RemoteQMgrName", 2017, "The queue manager that has the queue (R4.1); with home_server, the home server "
        "(K-3).", applies_to=REMOTE | COLLECTS, mqsc="RQMNAME"))
    transmission_queue: str = field(default="", metadata=names(
        0, "XmitQName", 2024, "The transmission queue; '': the queue with the name of the remote queue manager (R4.1).",
        applies_to=REMOTE, mqsc="XMITQ"))
    mode: RemoteMode = field(default="asynchronous", metadata=choices(
        RemoteMode, None, None, "Asynchronous: messages wait on the transmission queue; synchronous: each call is made "
        "on the remote queue itself, through the connection (A-28, K-2).",
        applies_to=REMOTE, mqsc="MODE", mqsc_words=("ASYNC", "SYNC")))
    connection: str = field(default="", metadata=names(
        0, None, None, "With synchronous: the named connection to the queue manager that has the queue (A-28); with "
        "home_server, the one to the home server; '': the connection with its name.",
        applies_to=REMOTE | COLLECTS, mqsc="CONNECTION"))
    targets: str = field(default="", metadata=lists(
        "The queue managers whose messages wait here, with commas between them, each on its own transmission queue "
        "(A-29, K-3).", applies_to=FORWARDS, mqsc="TARGETS"))
    interval_ms: int = field(default=0, metadata=integers(
        0, COUNT_MAX, None, None, "Milliseconds from the end of a collection to the next one; 0: only when it is "
        "triggered (A-29, K-3).", applies_to=COLLECTS, mqsc="INTERVAL"))
    retry: bool = field(default=False, metadata=booleans(
        None, None, "Whether a collection begins again by itself after the connection was lost, or could not be made; "
        "otherwise only when it is triggered (A-29, K-3).",
        applies_to=COLLECTS, mqsc="RETRY", mqsc_words=("YES", "NO")))


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerAttributes:
    """The attributes of the queue manager; ``define_manager`` and ``altered_manager`` make and check them."""

    name: str = field(default="INORDER", metadata=names(
        1, "QMgrName", 2015, "The name of the queue manager; `inorder rename` changes it while no program is "
        "connected.",
        changed_by="create", mqsc="QMNAME"))
    description: str = field(default="", metadata=texts(
        "QMgrDesc", 2014, "A description of the queue manager.", mqsc="DESCR"))
    max_uncommitted: int = field(default=1_000_000, metadata=integers(
        1, COUNT_MAX, "MaxUncommittedMsgs", 33, "The most puts and gets in one unit of work (R5.8).",
        mqsc="MAXUMSGS"))
    max_priority: int = field(default=9, metadata=integers(
        9, 9, "MaxPriority", 14, "The highest priority; always 9 (R1.4).",
        changed_by="create", mqsc="MAXPRTY"))
    max_length: int = field(default=MESSAGE_LENGTH_MAX, metadata=integers(
        32_768, MESSAGE_LENGTH_MAX, "MaxMsgLength", 13,
        "The most bytes in a message on any queue (R2.22); above MQ's 4,194,304, so that by default only "
        "the queue's own limit binds.", mqsc="MAXMSGL"))
    max_handles: int = field(default=256, metadata=integers(
        1, COUNT_MAX, "MaxHandles", 11, "The most handles that one connection can have open (reason 2017).",
        mqsc="MAXHANDS"))
    coded_character_set_id: int = field(default=1208, metadata=integers(
        1, 65_535, "CodedCharSetId", 2, "The character set that a put stores in place of 0; 1208 is UTF-8 "
        "(1.1).", mqsc="CCSID"))
    mark_interval: float | None = field(default=5.0, metadata=seconds(
        MARK_INTERVAL_SECONDS_MAX, "MsgMarkBrowseInterval", 68,
        "The number of seconds after which marks of cooperating browsers end; None is never (R3.74).",
        mqsc="MARKINT", mqsc_per_second=1000))
    dead_letter_queue: str = field(default="", metadata=names(
        0, "DeadLetterQName", 2006,
        "The queue for messages that the queue manager cannot deliver; empty: none (R6.8, C-5).", mqsc="DEADQ"))
    trigger_interval: float | None = field(default=TRIGGER_INTERVAL_SECONDS_MAX, metadata=seconds(
        TRIGGER_INTERVAL_SECONDS_MAX, "TriggerInterval", 25,
        "How many seconds after a trigger message of type first an arriving message causes another one, though the "
        "queue was not empty; None is never (R4.9).", mqsc="TRIGINT", mqsc_per_second=1000))
    default_transmission_queue: str = field(default="", metadata=names(
        0, "DefXmitQName", 2025, "The transmission queue for queue managers without a separate one (R4.1).",
        mqsc="DEFXMITQ"))
    acts_kept: int = field(default=10_000, metadata=integers(
        1, 1_000_000, None, None,
        "How many entries the log of irreversible operations through a server keeps: the newest.",
        mqsc="ACTSKEPT"))
    origin: str = field(default="", metadata=names(
        0, None, None, "The name that the queue manager was created with. Message ids and unique ids are made from "
        "it, and a rename leaves it (R1.1).", changed_by="create", mqsc="ORIGIN"))

    def __post_init__(self) -> None:
        if not self.origin:  # a new queue manager, or one that 0.1.0 stored
            object.__setattr__(self, "origin", self.name)


def _unpickle(attributes: ManagerAttributes, values: Sequence[Any]) -> None:
    """Also reads a pickle of 0.1.0, which has no `origin`."""
    ManagerAttributes.__init__(attributes, **dict(zip(ManagerAttributes.__slots__, values, strict=False)))


setattr(ManagerAttributes, "__setstate__", _unpickle)  # noqa: B010 - Python 3.10 ignores one in the class


# fmt: on


class QueueKeywords(TypedDict, total=False):
    """The attributes of a queue as keywords, for ``**``; the name and the type are separate arguments."""

    description: str
    delivery: Delivery
    default_priority: int
    default_persistence: bool
    order: OrderRule
    read_order: QueueReadOrder
    index_type: IndexType
    max_depth: int
    max_length: int
    get_allowed: bool
    put_allowed: bool
    shareable: bool
    default_input: DefaultInput
    definition_type: DefinitionType
    backout_threshold: int
    backout_requeue_queue: str
    harden_get_backout: bool
    retention_interval: int
    nonpersistent_class: NonpersistentClass
    expiry: float | None
    trigger_control: bool
    trigger_type: TriggerType
    trigger_priority: int
    trigger_depth: int
    trigger_data: str
    initiation_queue: str
    process: str
    base_queue: str
    usage: Usage
    remote_queue: str
    remote_manager: str
    transmission_queue: str
    mode: RemoteMode
    connection: str
    targets: str
    interval_ms: int
    retry: bool


class ManagerKeywords(TypedDict, total=False):
    """The attributes of the queue manager that can be altered, as keywords."""

    description: str
    max_uncommitted: int
    max_length: int
    max_handles: int
    coded_character_set_id: int
    mark_interval: float | None
    dead_letter_queue: str
    trigger_interval: float | None
    default_transmission_queue: str
    acts_kept: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    """The state of a queue at one moment: depth, open handles, times. Only the queue manager sets these fields.

    ``current_depth`` counts all stored messages but those that were got (R4.6), ``uncommitted`` the puts and gets
    in open units of work. Neither open count includes handles that only browse. Times are seconds since 1970, UTC.
    The metadata are MQ's name and selector.
    """

    current_depth: int = field(metadata={"mq_name": "CurrentQDepth", "selector": 3})
    open_input_count: int = field(metadata={"mq_name": "OpenInputCount", "selector": 17})
    open_output_count: int = field(metadata={"mq_name": "OpenOutputCount", "selector": 18})
    uncommitted: int
    created_at: float
    altered_at: float


QUEUE_ATTRIBUTES: Final[Table] = table_of(QueueAttributes, HOLDERS)
MANAGER_ATTRIBUTES: Final[Table] = table_of(ManagerAttributes, MANAGER)


# ---- defining and altering


def define_queue(name: str, type: QueueType = "local", **given: object) -> QueueAttributes:
    """Makes the attributes of a new queue: those given, and the defaults of its type.

    Args:
        name: 1 to 48 characters from A-Z a-z 0-9 . / _ %
        type: one of `QueueType`.
        given: any of ``QueueKeywords`` that a queue of this type has.

    Raises:
        ArgumentError: if an attribute is unknown (2067), is not one of this type (2068) or has a bad value.
    """
    kind = QUEUE_ATTRIBUTES["type"].check(type)
    values = checked(QUEUE_ATTRIBUTES, kind, "create", {"name": name, **given})
    return _agreeing(QueueAttributes(type=kind, **{**_defaults_of(kind, values), **values}))


def check_same(there: QueueAttributes, wanted: QueueAttributes, given: Iterable[str]) -> None:
    """Checks that an existing queue has the given values. Raises ObjectExists if its type or one of them differs."""
    differing = [name for name in ("type", *given) if getattr(there, name) != getattr(wanted, name)]
    if differing:
        told = ", ".join(f"its {name} is {getattr(there, name)!r}, not {getattr(wanted, name)!r}" for name in differing)
        differs = {name: (getattr(there, name), getattr(wanted, name)) for name in differing}
        raise ObjectExists(f"queue {there.name!r} already exists: {told}", queue=there.name, differs=differs)


def altered(attributes: QueueAttributes, by: Change, /, **changes: object) -> QueueAttributes:
    """Makes the attributes of a queue after a change; ``attributes`` itself is not changed.

    Args:
        attributes: the present ones.
        by: "alter" for the administrator, "set" for a handle that was opened to set.
        changes: any of ``QueueKeywords`` that may be changed this way.

    Raises:
        ArgumentError: as ``define_queue``; or if the attribute cannot be changed this way (2067).
    """
    return _agreeing(replace(attributes, **checked(QUEUE_ATTRIBUTES, attributes.type, by, changes)))


def define_manager(**given: object) -> ManagerAttributes:
    """Makes the attributes of a new queue manager: those given, and defaults. Raises as ``define_queue``."""
    return ManagerAttributes(**checked(MANAGER_ATTRIBUTES, "manager", "create", given))


def altered_manager(attributes: ManagerAttributes, by: Change = "alter", /, **changes: object) -> ManagerAttributes:
    """Makes the attributes of the queue manager after a change. Raises as ``altered``; "set" can change none."""
    return replace(attributes, **checked(MANAGER_ATTRIBUTES, "manager", by, changes))


def _defaults_of(kind: QueueType, given: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults that depend on other attributes (mq-semantics 4.1).

    By default a model makes temporary queues, whose messages are not persistent, and which only one reader may open.
    """
    made = given.get("definition_type", "temporary_dynamic" if kind == "model" else "predefined")
    defaults = {"definition_type": made, "default_persistence": made != "temporary_dynamic"}
    return defaults | ({"shareable": False, "default_input": "exclusive"} if kind == "model" else {})


def _agreeing(queue: QueueAttributes) -> QueueAttributes:
    """Returns the queue if its values agree with each other. Raises ArgumentError if not."""
    if queue.definition_type == "temporary_dynamic" and queue.default_persistence:
        allowed = "False for a temporary dynamic queue"
        raise bad_argument("default_persistence", True, allowed, Reason.PERSISTENT_NOT_ALLOWED)
    if queue.type == "model" and queue.definition_type == "predefined":
        allowed = "'permanent_dynamic' or 'temporary_dynamic' for a model"
        raise bad_argument("definition_type", queue.definition_type, allowed)
    if queue.trigger_type == "depth" and queue.read_order == "unordered":
        allowed = "none, every, first or group if read_order is 'unordered': such a queue has no exact depth"
        raise bad_argument("trigger_type", "depth", allowed, Reason.TRIGGER_TYPE_ERROR)
    if queue.mode == "synchronous":
        if not queue.connection:
            raise bad_argument("connection", "", "the name of a connection if mode is 'synchronous'")
        if queue.transmission_queue:
            allowed = "left out if mode is 'synchronous': messages do not wait here"
            raise bad_argument("transmission_queue", queue.transmission_queue, allowed)
    elif queue.connection and queue.type == "remote":
        raise bad_argument("connection", queue.connection, "left out unless mode is 'synchronous'")
    if queue.type == "home_server" and not queue.remote_manager:
        raise bad_argument("remote_manager", "", "the name of the home server, the queue manager to collect from")
    return queue


# ---- definitions that every store has

DEAD_LETTERS: Final = "SYSTEM.DEAD.LETTER.QUEUE"

# Queues that exist without a definition, as in MQ. The store creates one when it is first altered or opened.
SYSTEM_QUEUES: Final[Mapping[str, QueueAttributes]] = MappingProxyType(
    {
        each.name: each
        for each in (
            define_queue("SYSTEM.DEFAULT.LOCAL.QUEUE"),
            define_queue("SYSTEM.DEFAULT.ALIAS.QUEUE", "alias"),
            define_queue("SYSTEM.DEFAULT.MODEL.QUEUE", "model"),
            define_queue("SYSTEM.DEFAULT.REMOTE.QUEUE", "remote"),
            define_queue(DEAD_LETTERS),
            define_queue("SYSTEM.DEFAULT.INITIATION.QUEUE"),
            define_queue("SYSTEM.CHANNEL.INITQ"),
            define_queue("SYSTEM.CICS.INITIATION.QUEUE"),
        )
    }
)
