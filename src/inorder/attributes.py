"""The attributes of queues and of the queue manager: one table each, every attribute declared once.

A field of ``QueueAttributes`` or ``ManagerAttributes`` is the declaration: its type and default are Python's,
and its metadata says what MQ calls it, which values it takes, which types of queue have it and who may change
it. The tables ``QUEUE_ATTRIBUTES`` and ``MANAGER_ATTRIBUTES`` are read off the fields. Everything else goes
through the tables: defining, altering, the texts of errors, and the documentation.

Values are checked here and nowhere else: ``define_queue`` and ``altered`` (and their twins for the manager)
make every set of attributes, and refuse a bad one before anything is changed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Final, Literal, TypedDict, TypeGuard, get_args

from .errors import ArgumentError, ObjectExists, Reason, bad_argument, nearest_names

Kind = Literal["integer", "choice", "boolean", "text", "name", "seconds"]
ChangedBy = Literal["create", "alter", "set"]
Change = Literal["alter", "set"]
QueueType = Literal["local", "alias", "model"]
Delivery = Literal["priority", "fifo"]
OrderRule = Literal["put", "prepare", "commit"]
QueueReadOrder = Literal["required", "strict", "relaxed", "unordered"]
IndexType = Literal["none", "message_id", "correlation_id", "message_token", "group_id"]
DefaultInput = Literal["shared", "exclusive"]
DefinitionType = Literal["predefined", "permanent_dynamic", "temporary_dynamic"]
NonpersistentClass = Literal["normal", "high"]

NAME_LENGTH_MAX: Final = 48
DESCRIPTION_LENGTH_MAX: Final = 64
COUNT_MAX: Final = 999_999_999
MESSAGE_LENGTH_MAX: Final = 104_857_600
EXPIRY_SECONDS_MAX: Final = 99_999_999.9
MARK_INTERVAL_SECONDS_MAX: Final = 999_999.999

NAME: Final = re.compile(r"[A-Za-z0-9./_%]+")
NAMES_ALLOWED: Final = "1 to 48 characters out of A-Z a-z 0-9 . / _ %"
CONTROL_CATEGORIES: Final = frozenset({"Cc", "Cs"})  # control characters, and halves that no file can hold

ANY_QUEUE: Final = frozenset({"local", "alias", "model"})
HOLDERS: Final = frozenset({"local", "model"})
ALIAS: Final = frozenset({"alias"})
MANAGER: Final = frozenset({"manager"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """What is known about one attribute: its names, its values, and who may change it.

    ``minimum`` and ``maximum`` bound an integer, or the seconds, which lie above the minimum; for a name the
    minimum is the least length. ``max_length`` counts the characters of a text or name. ``changed_by`` is
    "create" (fixed once the object is made), "alter", or "set" (altered, or set through a handle).

    ``mq_name`` and ``selector`` are what MQINQ and MQSET call it, and ``mq_values`` is what they have for each choice,
    or for True and False; without them the values of a queue's attribute are the same in both. See ``selecting``.

    ``mqsc`` is its keyword in MQSC: MQ's, or our own where MQ has no such attribute. ``mqsc_words`` says what
    stands behind the keyword for each choice, or for True and False; a boolean without words is a switch, KEYWORD
    or NOKEYWORD. ``mqsc_per_second`` is the keyword's unit for seconds.
    """

    name: str
    doc: str
    kind: Kind
    applies_to: frozenset[str]
    mqsc: str
    mqsc_words: tuple[str, ...] = ()
    mqsc_per_second: int = 1
    default: object = None
    mq_name: str | None = None
    selector: int | None = None
    mq_values: tuple[int, ...] = ()
    minimum: float = 0
    maximum: float = 0
    choices: tuple[str, ...] = ()
    max_length: int = 0
    changed_by: ChangedBy = "alter"
    reason: Reason = Reason.ARGUMENT_ERROR

    def check(self, value: object) -> Any:
        """The value as it is kept, if it is allowed.

        Raises:
            ArgumentError: it is not; with MQ's reason for this attribute, or 9017.
        """
        if not self._allows(value):
            raise bad_argument(self.name, value, self.allowed, self.reason)
        return None if value is None else _KEPT_AS[self.kind](value)

    def to_mq(self, value: Any) -> Any:
        """MQ's value for one of ours."""
        return self.mq_values[self._ours.index(value)] if self.mq_values else value

    def from_mq(self, value: object) -> Any:
        """Our value for one of MQ's, where MQ has others. Raises: ArgumentError, with MQ's reason, or 9017."""
        if not self.mq_values:
            return value
        if not _is_integer(value) or value not in self.mq_values:
            allowed = " or ".join(f"{each} ({self.name}={self.from_mq(each)!r})" for each in self.mq_values)
            raise bad_argument(self.mq_name or self.name, value, allowed, self.reason)
        return self._ours[self.mq_values.index(value)]

    @property
    def allowed(self) -> str:
        """The allowed values in words, to be read after "must be"."""
        match self.kind:
            case "integer" if self.minimum == self.maximum:
                return f"{self.minimum}"
            case "integer":
                return f"an integer from {self.minimum:,} to {self.maximum:,}"
            case "choice":
                return " or ".join(repr(choice) for choice in self.choices)
            case "boolean":
                return "True or False"
            case "text":
                return f"a text of at most {self.max_length} characters without control characters"
            case "name":
                return NAMES_ALLOWED if self.minimum else f"{NAMES_ALLOWED}, or ''"
            case "seconds":
                return f"a number of seconds above {self.minimum:g} and up to {self.maximum:,}, or None"

    @property
    def _ours(self) -> tuple[object, ...]:
        return self.choices or (True, False)

    def _allows(self, value: object) -> bool:
        match self.kind:
            case "integer":
                return _is_integer(value) and self.minimum <= value <= self.maximum
            case "choice":
                return isinstance(value, str) and value in self.choices
            case "boolean":
                return isinstance(value, bool)
            case "text":
                return isinstance(value, str) and len(value) <= self.max_length and _is_plain(value)
            case "name":
                return _is_name(value) or (isinstance(value, str) and not value and not self.minimum)
            case "seconds":
                return value is None or (_is_number(value) and self.minimum < value <= self.maximum)


def check_queue_name(name: object, *, argument: str = "name", reason: Reason = Reason.ARGUMENT_ERROR) -> str:
    """The name, if a queue or a queue manager can have it.

    Args:
        name: 1 to 48 characters out of A-Z a-z 0-9 . / _ %
        argument: what the caller calls it.
        reason: MQ's reason, where there is one (2011 for dynamic names).

    Raises:
        ArgumentError: no queue can have this name.
    """
    if not _is_name(name):
        raise bad_argument(argument, name, NAMES_ALLOWED, reason)
    return str.__str__(name)


def _is_integer(value: object) -> TypeGuard[int]:
    # To Python True is 1; here it is a mistake.
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> TypeGuard[float]:
    return _is_integer(value) or isinstance(value, float)


def _is_name(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and len(value) <= NAME_LENGTH_MAX and NAME.fullmatch(value) is not None


def _is_plain(text: str) -> bool:
    return not any(unicodedata.category(each) in CONTROL_CATEGORIES for each in text)


# Subclasses (a member of an enumeration, say) become what they stand for, so that every store can keep them.
_KEPT_AS: Final[Mapping[Kind, Callable[[Any], object]]] = MappingProxyType(
    {
        "integer": int,
        "choice": str.__str__,
        "boolean": bool,
        "text": str.__str__,
        "name": str.__str__,
        "seconds": float,
    }
)


# ---- the declarations


def _about(kind: Kind, mq: str | None, selector: int | None, doc: str, **more: object) -> dict[str, Any]:
    """The metadata of a field; MQ's name and selector are those of mq-semantics 4.1."""
    return {"kind": kind, "mq_name": mq, "selector": selector, "doc": doc, **more}


def _integer(low: int, high: int, mq: str, selector: int, doc: str, **more: object) -> dict[str, Any]:
    return _about("integer", mq, selector, doc, minimum=low, maximum=high, **more)


def _choice(of: Any, mq: str | None, selector: int | None, doc: str, **more: object) -> dict[str, Any]:
    return _about("choice", mq, selector, doc, choices=get_args(of), **more)


def _boolean(mq: str, selector: int, doc: str, **more: object) -> dict[str, Any]:
    return _about("boolean", mq, selector, doc, **more)


def _text(mq: str, selector: int, doc: str, **more: object) -> dict[str, Any]:
    return _about("text", mq, selector, doc, max_length=DESCRIPTION_LENGTH_MAX, **more)


def _name(shortest: int, mq: str, selector: int, doc: str, **more: object) -> dict[str, Any]:
    return _about("name", mq, selector, doc, minimum=shortest, max_length=NAME_LENGTH_MAX, **more)


def _seconds(high: float, mq: str | None, selector: int | None, doc: str, **more: object) -> dict[str, Any]:
    return _about("seconds", mq, selector, doc, maximum=high, **more)


# Set by hand: in the formatter's way, one argument a line, the two tables would fill six screens.
# fmt: off


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueAttributes:
    """The attributes of one queue; made and checked by ``define_queue`` and ``altered`` (A-33)."""

    name: str = field(metadata=_name(
        1, "QName", 2016, "What the queue is called, for good.", applies_to=ANY_QUEUE, changed_by="create",
        mqsc="QUEUE"))
    type: QueueType = field(default="local", metadata=_choice(
        QueueType, "QType", 20, "Local holds messages, alias stands for a queue, model makes queues (R4.1).",
        applies_to=ANY_QUEUE, changed_by="create", mq_values=(1, 3, 2),
        mqsc="TYPE", mqsc_words=("QLOCAL", "QALIAS", "QMODEL")))
    description: str = field(default="", metadata=_text(
        "QDesc", 2013, "What the queue is for, in words.", applies_to=ANY_QUEUE, mqsc="DESCR"))
    delivery: Delivery = field(default="priority", metadata=_choice(
        Delivery, "MsgDeliverySequence", 16,
        "Whether newcomers are placed by their own priority, or all at the default one (R4.10, R4.11).",
        mq_values=(0, 1), mqsc="MSGDLVSQ", mqsc_words=("PRIORITY", "FIFO")))
    default_priority: int = field(default=0, metadata=_integer(
        0, 9, "DefPriority", 6,
        "The priority of a message that sets none, and under fifo the place of every newcomer (R1.4, R4.11).",
        applies_to=ANY_QUEUE, reason=Reason.PRIORITY_ERROR, mqsc="DEFPRTY"))
    default_persistence: bool = field(default=True, metadata=_boolean(
        "DefPersistence", 5,
        "Whether a message survives a restart if it does not say; no on temporary queues (R1.5).",
        applies_to=ANY_QUEUE, mq_values=(1, 0), mqsc="DEFPSIST", mqsc_words=("YES", "NO")))
    order: OrderRule = field(default="put", metadata=_choice(
        OrderRule, None, None, "What gives a message its place: its put, its prepare or its commit (B-5).",
        mqsc="ORDER", mqsc_words=("PUT", "PREPARE", "COMMIT")))
    read_order: QueueReadOrder = field(default="relaxed", metadata=_choice(
        QueueReadOrder, None, None, "How strictly readers keep the order, and if they may choose (B-18).",
        mqsc="READORDER", mqsc_words=("REQUIRED", "STRICT", "RELAXED", "UNORDERED")))
    index_type: IndexType = field(default="none", metadata=_choice(
        IndexType, "IndexType", 57, "What getters mostly choose by; group_id places a group's head (R4.13).",
        mq_values=(0, 1, 2, 4, 5), mqsc="INDXTYPE", mqsc_words=("NONE", "MSGID", "CORRELID", "MSGTOKEN", "GROUPID")))
    max_depth: int = field(default=COUNT_MAX, metadata=_integer(
        0, COUNT_MAX, "MaxQDepth", 15, "How many messages, in any state, the queue takes (R4.6, R4.7).",
        mqsc="MAXDEPTH"))
    max_length: int = field(default=4_194_304, metadata=_integer(
        0, MESSAGE_LENGTH_MAX, "MaxMsgLength", 13,
        "The most bytes of one message, or of each piece if it may be split (R2.22, R2.23).", mqsc="MAXMSGL"))
    get_allowed: bool = field(default=True, metadata=_boolean(
        "InhibitGet", 9, "Whether messages can be got and browsed; takes effect at once (R4.8).",
        applies_to=ANY_QUEUE, changed_by="set", reason=Reason.INHIBIT_VALUE_ERROR,
        mq_values=(0, 1), mqsc="GET", mqsc_words=("ENABLED", "DISABLED")))
    put_allowed: bool = field(default=True, metadata=_boolean(
        "InhibitPut", 10, "Whether messages can be put; takes effect at once (R4.8).",
        applies_to=ANY_QUEUE, changed_by="set", reason=Reason.INHIBIT_VALUE_ERROR,
        mq_values=(0, 1), mqsc="PUT", mqsc_words=("ENABLED", "DISABLED")))
    shareable: bool = field(default=True, metadata=_boolean(
        "Shareability", 23, "Whether several handles may be open for input at once (R4.4).", mq_values=(1, 0),
        mqsc="SHARE"))
    default_input: DefaultInput = field(default="shared", metadata=_choice(
        DefaultInput, "DefInputOpenOption", 4, "How an open for input shares if it does not say (R4.4).",
        mq_values=(2, 4), mqsc="DEFSOPT", mqsc_words=("SHARED", "EXCL")))
    definition_type: DefinitionType = field(default="predefined", metadata=_choice(
        DefinitionType, "DefinitionType", 7,
        "How the queue came to be; of a model, what it makes, and there it can be altered (R4.3).",
        changed_by="create", mq_values=(1, 2, 3), mqsc="DEFTYPE", mqsc_words=("PREDEFINED", "PERMDYN", "TEMPDYN")))
    backout_threshold: int = field(default=0, metadata=_integer(
        0, COUNT_MAX, "BackoutThreshold", 22,
        "After how many backouts a getter should set a message aside; kept for applications (R6.9).", mqsc="BOTHRESH"))
    backout_requeue_queue: str = field(default="", metadata=_name(
        0, "BackoutRequeueQName", 2019, "Where a getter should set it aside; kept for applications (R6.9).",
        mqsc="BOQNAME"))
    harden_get_backout: bool = field(default=True, metadata=_boolean(
        "HardenGetBackout", 8, "Whether the backout count of a message must survive a restart (R1.13).",
        mq_values=(1, 0), mqsc="HARDENBO"))
    retention_interval: int = field(default=COUNT_MAX, metadata=_integer(
        0, COUNT_MAX, "RetentionInterval", 21,
        "How many hours the queue is needed; kept for applications (4.1).", mqsc="RETINTVL"))
    nonpersistent_class: NonpersistentClass = field(default="normal", metadata=_choice(
        NonpersistentClass, "NonPersistentMessageClass", 78,
        "Whether a restart discards non-persistent messages, or under high keeps what it can (R1.5).",
        mq_values=(0, 10), mqsc="NPMCLASS", mqsc_words=("NORMAL", "HIGH")))
    expiry: float | None = field(default=None, metadata=_seconds(
        EXPIRY_SECONDS_MAX, None, None,
        "The life in seconds of a message that sets none; None is for ever (A-38).", mqsc="EXPIRY"))
    base_queue: str = field(default="", metadata=_name(
        0, "BaseQName", 2002, "The queue that an alias stands for, looked up at each open (R4.1).",
        applies_to=ALIAS, mqsc="TARGET"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerAttributes:
    """The attributes of the queue manager; made and checked by ``define_manager`` and ``altered_manager``."""

    name: str = field(default="INORDER", metadata=_name(
        1, "QMgrName", 2015, "What the queue manager is called, for good.", changed_by="create", mqsc="QMNAME"))
    description: str = field(default="", metadata=_text(
        "QMgrDesc", 2014, "What the queue manager is for, in words.", mqsc="DESCR"))
    max_uncommitted: int = field(default=1_000_000, metadata=_integer(
        1, COUNT_MAX, "MaxUncommittedMsgs", 33, "How many puts and gets one unit of work takes (R5.8).",
        mqsc="MAXUMSGS"))
    max_priority: int = field(default=9, metadata=_integer(
        9, 9, "MaxPriority", 14, "The highest priority that places a message; always 9 (R1.4).",
        changed_by="create", mqsc="MAXPRTY"))
    max_length: int = field(default=MESSAGE_LENGTH_MAX, metadata=_integer(
        32_768, MESSAGE_LENGTH_MAX, "MaxMsgLength", 13,
        "The most bytes of a message on any queue (R2.22); above MQ's 4,194,304, so that by default only "
        "the queue's own limit binds.", mqsc="MAXMSGL"))
    max_handles: int = field(default=256, metadata=_integer(
        1, COUNT_MAX, "MaxHandles", 11, "How many handles one connection can have open (reason 2017).",
        mqsc="MAXHANDS"))
    coded_character_set_id: int = field(default=1208, metadata=_integer(
        1, 65_535, "CodedCharSetId", 2, "What replaces 0 in a message at the put; 1208 is UTF-8 (1.1).", mqsc="CCSID"))
    mark_interval: float | None = field(default=5.0, metadata=_seconds(
        MARK_INTERVAL_SECONDS_MAX, "MsgMarkBrowseInterval", 68,
        "After how many seconds the marks of cooperating browsers end; None is never (R3.74).",
        mqsc="MARKINT", mqsc_per_second=1000))


# fmt: on


class QueueKeywords(TypedDict, total=False):
    """The attributes of a queue as keywords, for ``**``; the name and the type go before them."""

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
    base_queue: str


class ManagerKeywords(TypedDict, total=False):
    """The attributes of the queue manager that can be altered, as keywords."""

    description: str
    max_uncommitted: int
    max_length: int
    max_handles: int
    coded_character_set_id: int
    mark_interval: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    """What a queue is at one moment: how deep, how often open, how old. No one sets these.

    ``current_depth`` counts messages in every state but those got (R4.6), ``uncommitted`` the puts and gets
    in open units of work. Browsing handles are in neither open count. Times are seconds since 1970, UTC.
    The metadata are MQ's name and selector.
    """

    current_depth: int = field(metadata={"mq_name": "CurrentQDepth", "selector": 3})
    open_input_count: int = field(metadata={"mq_name": "OpenInputCount", "selector": 17})
    open_output_count: int = field(metadata={"mq_name": "OpenOutputCount", "selector": 18})
    uncommitted: int
    created_at: float
    altered_at: float


Table = Mapping[str, Attribute]


def _table(declared: type[Any], applies_to: frozenset[str]) -> Table:
    return MappingProxyType({each.name: _attribute(each, applies_to) for each in fields(declared)})


def _attribute(declared: Field[Any], applies_to: frozenset[str]) -> Attribute:
    default = None if declared.default is MISSING else declared.default
    return Attribute(**{"applies_to": applies_to, **declared.metadata}, name=declared.name, default=default)


QUEUE_ATTRIBUTES: Final[Table] = _table(QueueAttributes, HOLDERS)
MANAGER_ATTRIBUTES: Final[Table] = _table(ManagerAttributes, MANAGER)


# ---- defining and altering

# By what an attribute can be given, for each value of ``changed_by``.
_OPEN_TO: Final[Mapping[ChangedBy, frozenset[str]]] = MappingProxyType(
    {
        "create": frozenset({"create"}),
        "alter": frozenset({"create", "alter"}),
        "set": frozenset({"create", "alter", "set"}),
    }
)


def define_queue(name: str, type: QueueType = "local", **given: object) -> QueueAttributes:
    """The attributes of a new queue: those given, and the defaults of its type.

    Args:
        name: 1 to 48 characters out of A-Z a-z 0-9 . / _ %
        type: "local", "alias" or "model".
        given: any of ``QueueKeywords`` that a queue of this type has.

    Raises:
        ArgumentError: an attribute is unknown (2067), not one of this type (2068) or has a bad value.
    """
    kind = QUEUE_ATTRIBUTES["type"].check(type)
    checked = _checked(QUEUE_ATTRIBUTES, kind, "create", {"name": name, **given})
    return _agreeing(QueueAttributes(type=kind, **{**_defaults_of(kind, checked), **checked}))


def check_same(there: QueueAttributes, wanted: QueueAttributes, given: Iterable[str]) -> None:
    """Raises: ObjectExists, the queue that is there is of another type, or has another value of what was given."""
    names = [name for name in ("type", *given) if getattr(there, name) != getattr(wanted, name)]
    if names:
        told = ", ".join(f"its {name} is {getattr(there, name)!r}, not {getattr(wanted, name)!r}" for name in names)
        differs = {name: (getattr(there, name), getattr(wanted, name)) for name in names}
        raise ObjectExists(f"there is a queue {there.name!r} already: {told}", queue=there.name, differs=differs)


def altered(attributes: QueueAttributes, by: Change, /, **changes: object) -> QueueAttributes:
    """The attributes of a queue after a change; what is given is untouched.

    Args:
        attributes: as they are.
        by: "alter" for the administrator, "set" for a handle that was opened to set.
        changes: any of ``QueueKeywords`` that may be changed this way.

    Raises:
        ArgumentError: as ``define_queue``; or the attribute cannot be changed this way (2067).
    """
    return _agreeing(replace(attributes, **_checked(QUEUE_ATTRIBUTES, attributes.type, by, changes)))


def define_manager(**given: object) -> ManagerAttributes:
    """The attributes of a new queue manager: those given, and defaults. Raises as ``define_queue``."""
    return ManagerAttributes(**_checked(MANAGER_ATTRIBUTES, "manager", "create", given))


def altered_manager(attributes: ManagerAttributes, by: Change = "alter", /, **changes: object) -> ManagerAttributes:
    """The attributes of the queue manager after a change. Raises as ``altered``; nothing can be "set"."""
    return replace(attributes, **_checked(MANAGER_ATTRIBUTES, "manager", by, changes))


def _checked(table: Table, owner: str, by: str, given: Mapping[str, object]) -> dict[str, Any]:
    """The values as they are kept, each of an attribute that its owner has and that this call may give."""
    for name, value in given.items():
        _check_open(table, owner, by, name, value)
    return {name: table[name].check(value) for name, value in given.items()}


def _check_open(table: Table, owner: str, by: str, name: str, value: object) -> None:
    if complaint := _complaint(table, owner, by, name):
        reason, text = complaint
        names = [each for each in table if not _complaint(table, owner, by, each)]
        nearest = [] if name in table else nearest_names(name, names)
        hint = f" (nearest: {', '.join(nearest)})" if nearest else ""
        data = {"argument": name, "value": value, "allowed": ", ".join(names), "nearest": nearest}
        raise ArgumentError(text + hint, reason=reason, **data)


def _complaint(table: Table, owner: str, by: str, name: str) -> tuple[Reason, str] | None:
    """What is wrong with naming this attribute at all."""
    if name not in table:
        return Reason.SELECTOR_ERROR, f"there is no attribute {name!r}"
    if owner not in table[name].applies_to:
        return Reason.SELECTOR_NOT_FOR_TYPE, f"a queue of type {owner!r} has no attribute {name!r}"
    if by not in _OPEN_TO[changed_by(table[name], owner)]:
        way = "changed after creation" if by == "alter" else "set through a handle"
        return Reason.SELECTOR_ERROR, f"attribute {name!r} cannot be {way}"
    return None


def changed_by(attribute: Attribute, owner: str) -> ChangedBy:
    """By what this attribute of this type of queue, or of "manager", can be changed at most.

    How a queue came to be is history; what a model makes is a choice.
    """
    return "alter" if (owner, attribute.name) == ("model", "definition_type") else attribute.changed_by


def _defaults_of(kind: QueueType, given: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults that hang on something else (mq-semantics 4.1).

    Models make temporary queues, which keep nothing; what they make is for one reader unless they say otherwise.
    """
    made = given.get("definition_type", "temporary_dynamic" if kind == "model" else "predefined")
    defaults = {"definition_type": made, "default_persistence": made != "temporary_dynamic"}
    return defaults | ({"shareable": False, "default_input": "exclusive"} if kind == "model" else {})


def _agreeing(queue: QueueAttributes) -> QueueAttributes:
    """The same, if its values agree with each other."""
    if queue.definition_type == "temporary_dynamic" and queue.default_persistence:
        allowed = "False for a temporary dynamic queue"
        raise bad_argument("default_persistence", True, allowed, Reason.PERSISTENT_NOT_ALLOWED)
    if queue.type == "model" and queue.definition_type == "predefined":
        allowed = "'permanent_dynamic' or 'temporary_dynamic' for a model"
        raise bad_argument("definition_type", queue.definition_type, allowed)
    return queue
