"""Options of puts and gets: frozen values that are checked once.

`PutOptions`, `GetOptions` and `Match` can be built ahead and used for many calls; the calls also take the same
names as keywords. mq-semantics 2.1 and 3.1 say which options exclude each other; a bad combination is refused
here, before the store is asked.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypedDict

from ..errors import MatchError, OptionsError, Reason, bad_argument
from ..support import old_paths
from .message import NO_ID, Descriptor, Message, UniqueId
from .parameters import NONE, WHOLE_MAX, Choice, Integer, Octets, ParameterKind, Seconds, Switch, Text, is_storable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack

Browse = Literal["first", "next", "cursor"]
AskedOrder = Literal["strict", "relaxed", "notify"]
Context = Literal["default", "none", "set_identity", "set_all"]

BROWSES: tuple[Browse, ...] = ("first", "next", "cursor")
ASKED_ORDERS: tuple[AskedOrder, ...] = ("strict", "relaxed", "notify")
ID_MAX = 2**64 - 1
KEY_LENGTH_MAX = 200
DEDUPLICATE_FOR, DEDUPLICATE_FOR_MAX = 3600.0, 366 * 86400.0  # seconds
CONTEXTS: tuple[Context, ...] = ("default", "none", "set_identity", "set_all")
# No match on times: they change after the put. None on properties: a selector chooses by them.
UNMATCHED = frozenset({"body", "expiry", "delay", "properties"})
ID_FIELDS = frozenset({"message_id", "correlation_id", "group_id"})
NAMING = frozenset({"message_id", "correlation_id", "uid"})
FOREVER = math.inf


class UniqueIds(ParameterKind[UniqueId]):
    """A unique id as a put or a message returned it; as a text ORIGIN:NUMBER."""

    __slots__ = ()
    schema = MappingProxyType({"type": "string", "pattern": "^.+:(?!0+$)[0-9]{1,19}$"})

    def __init__(self, reason: Reason = Reason.ARGUMENT_ERROR) -> None:
        super().__init__("a UniqueId, as a put returned it: its number is from 1 to 2**63 - 1", reason)

    def check(self, name: str, value: Any) -> UniqueId:
        good = (
            isinstance(value, UniqueId)
            and isinstance(value.origin, str)
            and is_storable(value.origin)
            and "\0" not in value.origin  # names never contain one, and PostgreSQL refuses texts that do
            and isinstance(value.number, int)
            and 1 <= value.number <= WHOLE_MAX
        )
        if not good:
            raise self.refusal(name, value)
        assert isinstance(value, UniqueId)
        return value

    def read(self, name: str, text: str) -> UniqueId:
        origin, _, number = text.rpartition(":")
        if not origin or re.fullmatch("[0-9]{1,19}", number) is None:
            raise bad_argument(name, text, "ORIGIN:NUMBER, as in QM1:17", self.reason)
        return self.check(name, UniqueId(origin, int(number)))


class Matchable(NamedTuple):
    """A field that a get may match on, at every interface.

    Args:
        kind: the kind of its values.
        mq_name: MQ's name of the field.
        doc: a description of the messages that match, to be read after "Only".
    """

    name: str
    kind: ParameterKind[Any]
    mq_name: str
    doc: str


# The names in a match besides fields of the descriptor.
MATCH_ALONE: Mapping[str, ParameterKind[Any]] = {
    "token": Octets(16, Reason.MATCH_OPTIONS_ERROR),
    "uid": UniqueIds(Reason.MATCH_OPTIONS_ERROR),
}


def _matchable(name: str, doc: str) -> Matchable:
    field = Message.FIELDS[name]
    kind = MATCH_ALONE.get(name) or field.kind
    assert kind is not None
    return Matchable(name, kind.taking(), field.mq_name, doc)


MATCHABLE: Final = (
    _matchable("message_id", "messages with this message id."),
    _matchable("correlation_id", "messages with this correlation id."),
    _matchable("group_id", "messages in this group."),
    _matchable("sequence_number", "messages with this number in their group."),
    _matchable("offset", "segments with this offset."),
    _matchable("priority", "messages with this priority."),
    _matchable("token", "the message with this token."),
    _matchable("uid", "the message with this unique id."),
)
"""The fields that interfaces which read texts can match on; Python programs may name any stored field."""


class MatchKeywords(Descriptor, total=False):
    """The fields that a match may name: the descriptor's, the token and the unique id."""

    token: bytes
    uid: UniqueId


class Match:
    """A filter: field equalities and a selector, all of which must hold.

    Args:
        selector: a condition on properties and fields, see `docs/reference/selectors.md`. The call that uses the match
            raises the error if it is not valid.
        **fields: the wanted values of fields of the descriptor, of `token`, or of `uid`, the unique id from a put or a
            message. An id that is all NUL matches anything. `Match()` matches every message.

    Raises:
        ArgumentError: 2247, for an unknown field, one that changes by itself (expiry, delay), or properties; with the
            field's reason, for a value that no message can have; 2519, for a selector that is not a text.

    Rules: A-5, R3.18, A-1, A-4.
    """

    __slots__ = ("fields", "selector")
    fields: Mapping[str, Any]
    selector: str | None

    def __init__(self, *, selector: str | None = None, **fields: Unpack[MatchKeywords]) -> None:
        wanted: dict[str, Any] = {}
        for name, value in fields.items():
            checked = _match_value(name, value)
            if not (name in ID_FIELDS and checked == NO_ID):
                wanted[name] = checked
        if selector is not None and not isinstance(selector, str):
            raise bad_argument("selector", selector, "a text, or None", Reason.SELECTION_STRING_ERROR)
        self._set(wanted, selector)

    def _set(self, fields: dict[str, Any], selector: str | None) -> None:
        object.__setattr__(self, "fields", MappingProxyType(fields))
        object.__setattr__(self, "selector", selector)

    def accepts(self, message: Message) -> bool:
        """Whether `message` has the wanted value in every field named here; the rules check the selector."""
        return all(getattr(message, name) == value for name, value in self.fields.items())

    @property
    def specific(self) -> bool:
        """Whether the match has a message id, a unique id or a correlation id: waits with these are served first.

        Rules: R3.27.
        """
        return not NAMING.isdisjoint(self.fields)

    def without(self, *names: str) -> Match:
        """The same filter without these fields."""
        match = Match()
        match._set({name: value for name, value in self.fields.items() if name not in names}, self.selector)
        return match

    def selecting(self, selector: str | None) -> Match:
        """The same fields, with this selector or without one. Raises ArgumentError 2519."""
        return Match(selector=selector, **self.fields)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a match never changes: build another")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a match never changes: build another")

    def __reduce__(self) -> tuple[Any, ...]:
        return _match_of, (self._given,)

    def __bool__(self) -> bool:
        return bool(self.fields) or self.selector is not None

    def __eq__(self, other: object) -> bool:
        return self._given == other._given if isinstance(other, Match) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._given.items())))

    def __repr__(self) -> str:
        return f"Match({', '.join(f'{name}={value!r}' for name, value in self._given.items())})"

    @property
    def _given(self) -> dict[str, Any]:
        return dict(self.fields) if self.selector is None else {**self.fields, "selector": self.selector}


def _match_value(name: str, value: Any) -> Any:
    field = Message.FIELDS.get(name)
    check = MATCH_ALONE[name].check if name in MATCH_ALONE else None if field is None else field.check
    if check is None or name in UNMATCHED:
        known = ", ".join(sorted(Descriptor.__annotations__.keys() - UNMATCHED | MATCH_ALONE.keys()))
        raise bad_argument("match field", name, f"a stored field of messages: {known}", Reason.MATCH_OPTIONS_ERROR)
    if value is None:
        raise bad_argument(name, value, "a value that a message can have", Reason.MATCH_OPTIONS_ERROR)
    return check(name, value)


def _match_of(given: dict[str, Any]) -> Match:
    return Match(**given)


EVERYTHING = Match()


# ---- kinds of options

SWITCH = Switch(reason=Reason.OPTIONS_ERROR)
MAYBE = Switch(reason=Reason.OPTIONS_ERROR, also=NONE)
CALLERS_ID = Integer(1, ID_MAX, Reason.OPTIONS_ERROR)
ID_OR_NONE = Integer(0, ID_MAX, Reason.OPTIONS_ERROR, words="an integer from 1 to 2**64 - 1, or 0 for none")
WAIT = Seconds(reason=Reason.WAIT_INTERVAL_ERROR, also={"inorder.FOREVER": FOREVER})
READ_ORDER = Choice(ASKED_ORDERS, Reason.OPTIONS_ERROR, also=NONE)
check_switch = SWITCH.check

Checks = tuple[tuple[str, ParameterKind[Any], object], ...]


def _checks(options: type[Any], switches: str, **kinds: ParameterKind[Any]) -> Checks:
    """The checks of the options by name, with their defaults; `switches` are those that are True or False."""
    kinds = dict.fromkeys(switches.split(), SWITCH) | kinds
    return tuple((name, kind, options.__dataclass_fields__[name].default) for name, kind in kinds.items())


def _check(options: object, checks: Checks) -> None:
    """Checks every option that differs from its default."""
    for name, kind, default in checks:
        value = getattr(options, name)
        if value is not default:
            kind.check(name, value)


class PutKeywords(TypedDict, total=False):
    """The options of a put, as keywords."""

    syncpoint: bool | None
    logical: bool
    new_message_id: bool
    new_correlation_id: bool
    context: Context
    confirm_id: int
    uid: UniqueId | None
    resend: bool
    deduplicate: str | None
    deduplicate_for: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PutOptions:
    """The options of a put.

    Args:
        syncpoint: True: put inside the connection's unit of work; False: outside; None: inside in a
            `with qm.unit_of_work()` block, else outside.
        logical: the queue manager numbers groups and segments (MQPMO_LOGICAL_ORDER).
        new_message_id: make a new message id even if the message has one.
        new_correlation_id: make a new correlation id.
        context: the recorded putter: "default" (this program), "none", "set_identity" (identity
            fields from the message), "set_all" (identity and origin fields from the message).
        confirm_id: keep the message hidden until `confirm_put` or `undo`; 0: no confirmation.
        uid: the unique id from an earlier put of this message, to repeat that put.
        resend: with `uid`: do not raise if the message is already on the queue.
        deduplicate: a key, 1 to 200 characters. A second put with the same key puts nothing; its result has
            `duplicate_of`, and the warning 9050. None: every put puts.
        deduplicate_for: how long the queue remembers the key, in seconds from the put, or from the commit of its unit
            of work; above 0, at most 366 days. Ignored without `deduplicate`.

    Raises:
        ArgumentError: 2046 OPTIONS_ERROR, if an option has a value that it cannot have.

    Rules: 2.1, A-9, A-21, A-3, A-22, decision 330.
    """

    syncpoint: bool | None = None
    logical: bool = False
    new_message_id: bool = False
    new_correlation_id: bool = False
    context: Context = "default"
    confirm_id: int = 0
    uid: UniqueId | None = None
    resend: bool = False
    deduplicate: str | None = None
    deduplicate_for: float = DEDUPLICATE_FOR

    def __post_init__(self) -> None:
        _check(self, _CHECKED_IN_PUT)
        if self.deduplicate is not None and type(self.deduplicate) is not str:
            object.__setattr__(self, "deduplicate", str.__str__(self.deduplicate))
        for broken, why in (
            (self.syncpoint and self.confirm_id, "syncpoint, confirm_id (A-3)"),
            (self.syncpoint and self.uid is not None, "syncpoint, uid: a repeated put takes effect immediately"),
            (
                self.logical and self.uid is not None,
                "logical, uid: give the group id and sequence number of the first put",
            ),
            (self.resend and self.uid is None, "resend without the uid of the put that it repeats"),
            (
                self.deduplicate and self.uid is not None,
                "deduplicate, uid: each of them prevents a second put; give one",
            ),
            (
                self.deduplicate and self.confirm_id,
                "deduplicate, confirm_id: to repeat a put with confirm_id, give its uid",
            ),
        ):
            if broken:
                raise OptionsError(f"these options do not go together: {why}")


_CHECKED_IN_PUT = _checks(
    PutOptions,
    "logical new_message_id new_correlation_id resend",
    syncpoint=MAYBE,
    confirm_id=ID_OR_NONE,
    uid=UniqueIds(Reason.OPTIONS_ERROR),
    deduplicate=Text(KEY_LENGTH_MAX, Reason.OPTIONS_ERROR, least=1, also=NONE),
    deduplicate_for=Seconds(0, DEDUPLICATE_FOR_MAX, Reason.OPTIONS_ERROR, above=True),
    context=Choice(CONTEXTS, Reason.OPTIONS_ERROR),
)


class GetKeywords(TypedDict, total=False):
    """The options of a get, as keywords; `selector` is the selector of the match."""

    wait: float
    syncpoint: bool | None
    syncpoint_if_persistent: bool
    logical: bool
    complete: bool
    all_segments: bool
    all_messages: bool
    match: Match
    selector: str | None
    under_cursor: bool
    buffer: int | None
    accept_truncated: bool
    read_order: AskedOrder | None
    confirm_id: int
    lock_id: int


class BrowseKeywords(TypedDict, total=False):
    """The options of a browse, as keywords; `selector` is the selector of the match."""

    wait: float
    logical: bool
    complete: bool
    all_segments: bool
    all_messages: bool
    match: Match
    selector: str | None
    lock: bool
    mark_handle: bool
    mark_co_op: bool
    unmarked: bool
    unmark_handle: bool
    unmark_co_op: bool
    buffer: int | None
    accept_truncated: bool
    read_order: AskedOrder | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GetOptions:
    """The options of a get or a browse.

    Args:
        browse: None removes the message from the queue; "first", "next" and "cursor" leave it there.
        wait: how long to wait for a suitable message, in seconds; 0 does not wait; or `FOREVER`.
        syncpoint: True: get inside the unit of work; False: outside; None: inside in a `with qm.unit_of_work()` block,
            else outside.
        syncpoint_if_persistent: inside the unit of work if the message is persistent.
        logical: logical order: groups and segments in sequence (MQGMO_LOGICAL_ORDER).
        complete: whole logical messages only, their segments joined (MQGMO_COMPLETE_MSG).
        all_segments: only messages of which all segments have arrived.
        all_messages: only messages of groups that have arrived completely.
        match: selects the message; see `Match`.
        under_cursor: remove the message under the browse cursor (MQGMO_MSG_UNDER_CURSOR).
        lock: hide the browsed message from all other handles.
        mark_handle, mark_co_op: mark the browsed message for this handle, or for all cooperating ones.
        unmarked: skip messages with such a mark.
        unmark_handle, unmark_co_op: take the mark off the browsed message.
        buffer: return at most this many bytes of the body; None: all.
        accept_truncated: remove the message even if the buffer is too small.
        read_order: "strict", "relaxed", "notify" (relaxed, and reports the pending messages), or None: the read order
            of the handle, else of the queue.
        confirm_id: keep the message hidden until `confirm_get` or `undo`; 0: no confirmation.
        lock_id: get a message that `browse_and_lock` locked under this id.

    Raises:
        OptionsError: 2046, if options exclude each other.
        MatchError: 2247, if `complete` is given with a match on the offset.
        ArgumentError: 2090 WAIT_INTERVAL_ERROR, 2005 BUFFER_LENGTH_ERROR, or 2046 with the argument's name.

    Rules: 3.1 to 3.11, 3.9, R3.25, R3.78, 3.10, 3.11, 3.8, B-16, B-18, A-25, A-12, R3.1 to R3.10, R3.9.
    """

    browse: Browse | None = None
    wait: float = 0
    syncpoint: bool | None = None
    syncpoint_if_persistent: bool = False
    logical: bool = False
    complete: bool = False
    all_segments: bool = False
    all_messages: bool = False
    match: Match = EVERYTHING
    under_cursor: bool = False
    lock: bool = False
    mark_handle: bool = False
    mark_co_op: bool = False
    unmarked: bool = False
    unmark_handle: bool = False
    unmark_co_op: bool = False
    buffer: int | None = None
    accept_truncated: bool = False
    read_order: AskedOrder | None = None
    confirm_id: int = 0
    lock_id: int = 0

    def __post_init__(self) -> None:
        wait: Any = self.wait
        if wait is None:
            object.__setattr__(self, "wait", no_wait())
        _check(self, _CHECKED_IN_GET)
        if not isinstance(self.match, Match):
            raise bad_argument("match", self.match, "a Match", Reason.MATCH_OPTIONS_ERROR)
        for broken, why in _combinations(self):
            if broken:
                raise OptionsError(f"these options do not go together: {why}")
        if self.complete and "offset" in self.match.fields:
            raise MatchError("complete messages cannot be matched by offset")

    @property
    def by_cursor(self) -> bool:
        """Whether the cursor alone chooses the message; match and wait are then ignored."""
        return self.under_cursor or self.browse == "cursor"


_CHECKED_IN_GET = _checks(
    GetOptions,
    "syncpoint_if_persistent logical complete all_segments all_messages under_cursor lock "
    "mark_handle mark_co_op unmarked unmark_handle unmark_co_op accept_truncated",
    confirm_id=ID_OR_NONE,
    lock_id=ID_OR_NONE,
    read_order=READ_ORDER,
    syncpoint=MAYBE,
    browse=Choice(BROWSES, Reason.OPTIONS_ERROR, also=NONE),
    wait=WAIT,
    buffer=Integer(0, WHOLE_MAX, Reason.BUFFER_LENGTH_ERROR, what="a number of bytes", also=NONE),
)


def no_wait() -> float:
    """Treats `wait=None` as 0, as in 0.1.0, with a warning."""
    old_paths.warn("wait=None is now wait=0, which is the default (to wait for ever is inorder.FOREVER)")
    return 0.0


def _combinations(options: GetOptions) -> tuple[tuple[object, str], ...]:
    """Combinations that mq-semantics 3.1 forbids, a line each: the condition, and its text."""
    o = options
    marks = o.mark_handle or o.mark_co_op or o.unmarked or o.unmark_handle or o.unmark_co_op
    return (
        (o.syncpoint is not None and o.syncpoint_if_persistent, "syncpoint, syncpoint_if_persistent (R3.1)"),
        (o.browse and o.under_cursor, "browse, under_cursor (R3.2)"),
        (o.browse and o.syncpoint, "browse, syncpoint (R3.3)"),
        (o.browse and o.syncpoint_if_persistent, "browse, syncpoint_if_persistent (R3.4)"),
        (o.complete and o.syncpoint_if_persistent, "complete, syncpoint_if_persistent (R3.4, R3.9)"),
        (o.lock and not o.browse, "lock without browse (R3.6)"),
        (marks and not o.browse, "marks without browse (R3.10)"),
        (marks and o.lock, "marks, lock (R3.10)"),
        (o.mark_handle and o.unmark_handle, "mark_handle, unmark_handle"),
        (o.mark_co_op and o.unmark_co_op, "mark_co_op, unmark_co_op"),
        (o.browse and (o.confirm_id or o.lock_id), "browse with confirm_id or lock_id: use browse_and_lock"),
        (o.under_cursor and o.lock_id, "under_cursor, lock_id"),
        ((o.syncpoint or o.syncpoint_if_persistent) and o.confirm_id, "syncpoint, confirm_id (A-3)"),
        (o.complete and o.confirm_id, "complete, confirm_id: confirm_get confirms a single message (A-10)"),
    )


def check_whole(name: str, value: object, low: int = 0, high: int = WHOLE_MAX) -> None:
    """Checks a whole number that a caller gives."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise Integer(low, high).refusal(name, value)


def check_instance(name: str, value: object, kind: type[object], allowed: str) -> None:
    """Checks that an argument is an object of this class."""
    if not isinstance(value, kind):
        raise bad_argument(name, value, allowed)


def check_function(name: str, value: object, allowed: str = "a function, or None") -> None:
    """Checks that an argument is a function or None."""
    if value is not None and not callable(value):
        raise bad_argument(name, value, allowed)


def is_path(value: str | os.PathLike[str]) -> bool:
    """Whether SQLite can open this path: the names of the file and its folder must be text in UTF-8."""
    try:
        path = os.fspath(value)
    except TypeError:  # a __fspath__ that returns something else
        return False
    return isinstance(path, str) and bool(path) and "\0" not in path and is_storable(str(Path(path).absolute()))


class OpenKeywords(TypedDict, total=False):
    """The options of an open, as keywords."""

    input: Literal["as_queue", "shared", "exclusive"] | None
    output: bool
    browse: bool
    co_op: bool
    read_order: AskedOrder | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenOptions:
    """The uses for which a queue is opened.

    Args:
        input: None, "as_queue" (the queue's default), "shared" or "exclusive": for removing messages.
        output: for putting messages.
        browse: for browsing; such an open never conflicts.
        co_op: take part in the cooperating set of browse marks; needs `browse`.
        read_order: the default of calls through this handle.

    Raises:
        ArgumentError: 2046 OPTIONS_ERROR, if an option has a value that it cannot have.
        OptionsError: 2046, if `co_op` is given without `browse`, or no use is given.

    Rules: R4.4, R3.11, B-18.
    """

    input: Literal["as_queue", "shared", "exclusive"] | None = None
    output: bool = False
    browse: bool = False
    co_op: bool = False
    read_order: AskedOrder | None = None

    def __post_init__(self) -> None:
        _check(self, _CHECKED_IN_OPEN)
        if self.co_op and not self.browse:
            raise OptionsError("co_op needs browse")
        if not (self.input or self.output or self.browse):
            raise OptionsError("open a queue for input, output or browse")

    def covers(self, other: OpenOptions) -> bool:
        """Whether a handle that was opened with these options allows all uses in `other`."""
        return bool(
            (self.input or not other.input) and (self.output or not other.output) and (self.browse or not other.browse)
        )

    def joined(self, other: OpenOptions) -> OpenOptions:
        """The options for the uses of both."""
        return OpenOptions(
            input=self.input or other.input,
            output=self.output or other.output,
            browse=self.browse or other.browse,
            co_op=self.co_op or other.co_op,
            read_order=self.read_order or other.read_order,
        )


_CHECKED_IN_OPEN = _checks(
    OpenOptions,
    "output browse co_op",
    read_order=READ_ORDER,
    input=Choice(("as_queue", "shared", "exclusive"), Reason.OPTIONS_ERROR, also=NONE),
)
DEFAULT_GET = GetOptions()
"""A get without options: one object, so that an identity test recognises it."""
