"""Prepares puts: from the caller's messages to the rows that arrive on the queue.

`PutPlan` does every part of MQPUT that needs no store: defaults of the queue, ids, numbers in the group,
consistency, splitting, context. The store then only checks the queue's depth, gives each row its place, and
writes it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from ..errors import ArgumentError, MessageTooBig, PutInhibited, Reason, UnitNotAvailable, bad_argument
from ..model.attributes import ManagerAttributes, QueueAttributes
from ..model.fields import NO_ACCOUNTING
from ..model.message import (
    ANY_SEGMENT,
    LAST_SEGMENT,
    NO_ID,
    SEGMENTATION_ALLOWED,
    Message,
    Row,
    Transmission,
    UniqueId,
    stored_flags,
    stored_original_length,
)
from ..model.options import Context, PutOptions
from ..model.properties import NO_PROPERTIES
from . import policy
from .grouping import NOTHING_OPEN, UNGROUPED, GroupState, Numbers, check_put, number_put, state_after
from .ordering import PRIORITY_MAX
from .segmentation import report_of_piece, split

APPLICATION_TYPE_UNIX = 6
APPLICATION_TYPE_NONE = 0
ReplyTo = Callable[[str], tuple[str, str]]
_tuple = tuple.__new__  # makes a named tuple without a Python call, because every message makes one


class Program(NamedTuple):
    """The putting program: the identity and origin context of a connection."""

    user: str = ""
    name: str = ""


class PutCircumstances(NamedTuple):
    """The circumstances of one put: the unit of work, the time, and numbers.

    Args:
        in_unit: whether this put is inside the connection's unit of work.
        unit_open: whether the connection has a unit of work open.
        now: seconds since 1970.
        new_number: returns numbers that are never used again; unique ids are made from them.
        new_uid: returns the reserved unique id of the next message, or of the first segment of one that is split; None:
            unique ids are made from the numbers. Tokens are not reserved: the messages of a unit of work are in the
            order of their tokens (B-5), so a reserved one would be below those of earlier messages.
    """

    in_unit: bool
    unit_open: bool
    now: float
    new_number: Callable[[], int]
    new_uid: Callable[[], UniqueId] | None = None


class PutResult(NamedTuple):
    """The result of a put: the ids and numbers used, and the warning, if any (R2.11).

    Args:
        flags: the flags as the caller gave them; the stored copy may have more (R1.10).
        warning: 2049; 2241 or 2242 if a put without logical order leaves a group open; 9050 if nothing was put.
        duplicate_of: nothing was put, because the message with this unique id was put under the same key; `uid` and
            `message_id` are those of that message. The other ids and numbers are those that this put would have used.
        put_at: the message's time, seconds since 1970; 0: the server has an earlier release.
    """

    message_id: bytes
    correlation_id: bytes
    group_id: bytes
    sequence_number: int
    offset: int
    flags: int
    uid: UniqueId
    warning: Reason | None
    duplicate_of: UniqueId | None = None
    put_at: float = 0.0


class Planned(NamedTuple):
    """Puts ready to be written, one after another.

    Args:
        arriving: the rows of the messages that arrive.
        results: the result of each put.
        state: the handle's new state.
        split: puts that arrive as several messages: their index, and the number of messages.
    """

    arriving: Sequence[Row]
    results: Sequence[PutResult]
    state: GroupState
    split: Mapping[int, int]


@functools.lru_cache(maxsize=16)
def _id_prefix(origin: str) -> bytes:
    return b"AMQ " + origin.encode("ascii")[:12].ljust(12)


def make_id(origin: str, number: int) -> bytes:
    """Makes a message, correlation or group id: "AMQ ", twelve characters of the name, a number used once (R1.1).

    Args:
        origin: the original name of the queue manager.
    """
    return _id_prefix(origin) + number.to_bytes(8, "big")


class Defaults(NamedTuple):
    """The values of fields that a message does not set, besides its context; `expiry` None: the message's, or
    unlimited.
    """

    priority: int
    persistent: bool
    expiry: float | None
    coded_character_set_id: int


def defaults(queue: QueueAttributes, manager: ManagerAttributes) -> Defaults:
    """The defaults of messages that arrive on a queue: put, or staged (1.2, R1.5)."""
    values = queue.default_priority, queue.default_persistence, queue.expiry, manager.coded_character_set_id
    return _tuple(Defaults, values)


class PutPlan:
    """The shared part of all puts of one program with the same options to one queue, computed once.

    Args:
        queue: the resolved queue, with an alias's defaults if the puts go through an alias.
        transmission: the destination after this queue; None: if it is a transmission queue, each message has its own.
        reply_to: gives queue and queue manager of replies if a message names only a queue (N-2); None: it is here.

    Raises PutInhibited 2051.
    """

    __slots__ = (
        "_context",
        "_defaults",
        "_is_for_transmission",
        "_limit",
        "_plain",
        "_prefix",
        "_reply_to",
        "_transmission",
        "manager",
        "options",
        "queue",
    )

    def __init__(
        self,
        options: PutOptions,
        queue: QueueAttributes,
        manager: ManagerAttributes,
        program: Program,
        *,
        transmission: Transmission | None = None,
        reply_to: ReplyTo | None = None,
    ) -> None:
        if not queue.put_allowed:
            raise PutInhibited(f"puts to {queue.name} are inhibited", queue=queue.name)
        self.options, self.queue, self.manager = options, queue, manager
        self._reply_to, self._transmission = reply_to, transmission
        self._is_for_transmission = transmission is None and queue.usage == "transmission"
        self._limit = min(queue.max_length, manager.max_length)
        self._defaults = defaults(queue, manager)
        self._prefix = _id_prefix(manager.origin)
        self._context = _context(options.context, program)
        self._plain = self._made_plain()

    def puts(self, messages: Iterable[Message | bytes], state: GroupState, at: PutCircumstances) -> Planned:
        """Prepares puts one after another (mq-semantics 2); most are a body and properties alone.

        Raises:
            MessageTooBig: 2030, 2031. UnitNotAvailable: 2255.
            ArgumentError: 2048 persistent on a temporary queue, 2250, 2251 numbers too large, 2253 empty segment.
            InconsistentCall: 2241, 2242, 2185, 2245 in logical order.
        """
        plain, prefix, origin, limit = self._plain, self._prefix, self.manager.origin, self._limit
        new_number, new_uid, now = at.new_number, at.new_uid, at.now
        arriving: list[Row] = []
        results: list[PutResult] = []
        split: dict[int, int] = {}
        for message in messages:
            if isinstance(message, Message):
                given = message.row
                body, properties = given[BODY], given[PROPERTIES]
                is_usual = given[:PROPERTIES] == NOTHING_SAID and given[LATER] == NOTHING_LATER
            else:
                body, properties, is_usual = message, NO_PROPERTIES, True
            if plain is None or state.flags or not is_usual or len(body) > limit:
                whole = message if isinstance(message, Message) else Message(message)
                rows, result, state = self._put(whole, state, at)
            else:
                number, (before_id, before_time, after_time) = new_number(), plain
                token = number.to_bytes(16, "big")
                message_id = prefix + token[8:]
                uid = _tuple(UniqueId, (origin, number)) if new_uid is None else new_uid()
                arriving.append((*before_id, message_id, *before_time, now, *after_time, properties, body,
                                 len(body), 0, token, uid, None, None, None, *NOTHING_LATER))  # fmt: skip
                results.append(_tuple(PutResult, (message_id, NO_ID, NO_ID, 1, 0, 0, uid, None, None, now)))
                state = NOTHING_OPEN
                continue
            if len(rows) > 1:
                split[len(results)] = len(rows)
            arriving += rows
            results.append(result)
        return _tuple(Planned, (arriving, results, state, split))

    def _put(
        self, message: Message, state: GroupState, at: PutCircumstances
    ) -> tuple[Sequence[Row], PutResult, GroupState]:
        """Prepares one put with any fields: the rows that arrive, the result, the new state."""
        given, logical, usual = message.row, self.options.logical, self._defaults
        persistent = usual.persistent if given[PERSISTENT] is None else given[PERSISTENT]
        if persistent and self.queue.definition_type == "temporary_dynamic":
            refuse_persistent(self.queue)
        # In no group and no segment, with none open: no numbers (P8), no contradiction, none left open.
        is_single = not (given[FLAGS] or state.flags or logical)
        warning, numbers = (None, UNGROUPED) if is_single else self._numbered(message, state, persistent, at)
        row = self._as_sent(given, numbers, persistent, at)
        rows: Sequence[Row] = (row,)
        if row[LENGTH] > self._limit:
            given_id = given[MESSAGE_ID] != NO_ID and not self.options.new_message_id
            rows = [piece.row for piece in self._pieces(Message.from_row(row), at, given_id=given_id)]
        new_state = NOTHING_OPEN
        if not is_single:
            new_state = state_after(Message.from_row(row), in_unit=at.in_unit, logical=logical)
        if row[PRIORITY] > PRIORITY_MAX:  # it is accepted, counts as the maximum, and is reported (R1.4)
            warning = warning or Reason.PRIORITY_EXCEEDS_MAXIMUM
        told = (row[MESSAGE_ID], row[CORRELATION_ID], *numbers, given[FLAGS], row[UID], warning, None, row[PUT_AT])
        return rows, _tuple(PutResult, told), new_state

    def _made_plain(self) -> tuple[Row, Row, Row] | None:
        """The stored values of a plain message before its message id, up to its time, and after; None: use `_put`."""
        options, persistent = self.options, self._defaults.persistent
        is_temporary = self.queue.definition_type == "temporary_dynamic"
        if options.logical or options.new_correlation_id or options.uid is not None or options.context == "set_all":
            return None
        if (persistent and is_temporary) or self._is_for_transmission:
            return None
        row = self._as_sent(Message().row, UNGROUPED, persistent, PutCircumstances(False, False, 0.0, int))
        return row[:MESSAGE_ID], row[MESSAGE_ID + 1 : PUT_AT], row[PUT_AT + 1 : PROPERTIES]

    def _numbered(
        self, message: Message, state: GroupState, persistent: bool, at: PutCircumstances
    ) -> tuple[Reason | None, Numbers]:
        """The numbers of a message in the group and logical message that the handle has open, or that it begins."""
        logical = self.options.logical
        warning = check_put(state, message, logical=logical, persistent=persistent, in_unit=at.in_unit)
        _check_segment(message)
        new_id = functools.partial(self._new_id, at)
        return warning, number_put(state, message, logical=logical, new_id=new_id)

    def _new_id(self, at: PutCircumstances) -> bytes:
        return make_id(self.manager.origin, at.new_number())

    def _as_sent(self, given: Row, numbers: Numbers, persistent: bool, at: PutCircumstances) -> Row:
        """The message as it is stored: its fields, and those that the queue, the queue manager and the call add."""
        options, row = self.options, list(given)
        number = at.new_number()
        if row[MESSAGE_ID] == NO_ID or options.new_message_id:
            row[MESSAGE_ID] = self._prefix + number.to_bytes(8, "big")
        if options.new_correlation_id:
            row[CORRELATION_ID] = self._new_id(at)
        row[NUMBERS] = numbers
        if row[FLAGS]:
            row[FLAGS] = stored_flags(row[FLAGS])
        row[PERSISTENT] = persistent
        usual = self._defaults
        if row[PRIORITY] is None:
            row[PRIORITY] = usual.priority
        if row[EXPIRY] is None:
            row[EXPIRY] = usual.expiry
            check_delay(row[DELAY], usual.expiry, self.queue)
        row[CCSID] = row[CCSID] or usual.coded_character_set_id
        if self._is_for_transmission:
            check_sent(row[TRANSMISSION], self.queue)
        else:
            row[TRANSMISSION] = self._transmission
        if row[REPLY_TO_QUEUE] and not row[REPLY_TO_MANAGER]:
            queue = row[REPLY_TO_QUEUE]
            row[REPLY_TO] = (queue, self.manager.name) if self._reply_to is None else self._reply_to(queue)
        row[LENGTH] = len(row[BODY])  # a truncated message is put with the part that it has
        if row[FLAGS] or row[ORIGINAL_LENGTH] != -1:
            row[ORIGINAL_LENGTH] = stored_original_length(
                row[MESSAGE_TYPE], row[FLAGS], row[ORIGINAL_LENGTH], row[LENGTH]
            )
        fields, values = self._context
        row[fields] = values
        if fields != NO_CONTEXT:
            row[PUT_AT] = at.now
        uid = options.uid or (_tuple(UniqueId, (self.manager.origin, number)) if at.new_uid is None else at.new_uid())
        row[OF_THE_QUEUE] = (0, number.to_bytes(16, "big"), uid, None, None, None)
        return tuple(row)

    def _pieces(self, whole: Message, at: PutCircumstances, *, given_id: bool) -> Sequence[Message]:
        """Splits a message that is longer than the limit into segments (2.6)."""
        queue, limit = self.queue, self._limit
        of_queue = queue.max_length <= self.manager.max_length
        reason = Reason.MSG_TOO_BIG_FOR_Q if of_queue else Reason.MSG_TOO_BIG_FOR_Q_MGR
        if not whole.flags & SEGMENTATION_ALLOWED:
            raise MessageTooBig(
                f"the message has {whole.length:,} bytes, but {queue.name} takes at most {limit:,}",
                remedy="give it flags=Flags.SEGMENTATION_ALLOWED, or raise max_length",
                reason=reason,
                queue=queue.name,
                length=whole.length,
                limit=limit,
            )
        if policy.pieces_need_unit(whole) and at.unit_open and not at.in_unit:
            raise UnitNotAvailable("a put outside the open unit of work cannot split a persistent message")
        keep_id = given_id and policy.PIECES_KEEP_GIVEN_MESSAGE_ID
        return [
            self._piece(whole, n, piece, at, keep_id=keep_id) for n, piece in enumerate(split(whole, limit, reason))
        ]

    def _piece(self, whole: Message, n: int, piece: Any, at: PutCircumstances, *, keep_id: bool) -> Message:
        body, origin = whole.body[piece.start : piece.end], self.manager.origin
        number = int.from_bytes(whole.token, "big") if n == 0 else at.new_number()
        own: dict[str, Any] = {}
        if n > 0:
            own = {"properties": NO_PROPERTIES, "report": report_of_piece(whole.report, piece.start)}
            own |= {} if keep_id else {"message_id": make_id(origin, number)}
        return whole.with_values(
            body=body,
            length=len(body),
            offset=whole.offset + piece.start,
            flags=piece.flags,
            original_length=stored_original_length(whole.message_type, piece.flags, whole.original_length, len(body)),
            token=number.to_bytes(16, "big"),
            uid=whole.uid if n == 0 else UniqueId(origin, number),
            **own,
        )


def _index(name: str) -> int:
    return Message.FIELDS[name].index


def _span(first: str, last: str) -> slice:
    return slice(_index(first), _index(last) + 1)


MESSAGE_ID, CORRELATION_ID, FLAGS = _index("message_id"), _index("correlation_id"), _index("flags")
PERSISTENT, PRIORITY, EXPIRY = _index("persistent"), _index("priority"), _index("expiry")
DELAY = _index("delay")
CCSID, PROPERTIES, BODY, LENGTH = map(_index, ("coded_character_set_id", "properties", "body", "length"))
MESSAGE_TYPE, ORIGINAL_LENGTH = _index("message_type"), _index("original_length")
NOTHING_SAID = Message().row[:PROPERTIES]  # every field of the descriptor but the later ones
UID, PUT_AT, TRANSMISSION = _index("uid"), _index("put_at"), _index("transmission")
REPLY_TO_QUEUE, REPLY_TO_MANAGER = _index("reply_to_queue"), _index("reply_to_queue_manager")
# Fields that are adjacent in the descriptor.
NUMBERS = _span("group_id", "offset")
IDENTITY_AND_ORIGIN = _span("user_identifier", "application_origin_data")
ORIGIN = _span("put_application_type", "application_origin_data")
REPLY_TO = _span("reply_to_queue", "reply_to_queue_manager")
NO_CONTEXT = slice(0, 0)
OF_THE_QUEUE = _span("backout_count", "warning")  # a put ignores the fields that a get has added
LATER = slice(OF_THE_QUEUE.stop, None)
NOTHING_LATER = Message().row[LATER]


def refuse_persistent(queue: QueueAttributes) -> NoReturn:
    """Refuses a persistent message: a temporary queue keeps none (R1.5). Raises ArgumentError 2048."""
    raise ArgumentError(
        f"{queue.name} is a temporary dynamic queue: it takes no persistent message",
        reason=Reason.PERSISTENT_NOT_ALLOWED,
        argument="persistent",
        value=True,
    )


def check_delay(delay: float, expiry: float | None, queue: QueueAttributes) -> None:
    """Checks that a message does not expire by the queue's default before it can be read. Raises ArgumentError 2013."""
    if delay and expiry is not None and expiry < delay:
        allowed = f"at most {expiry:g} seconds, after which messages on {queue.name} expire, or with an expiry"
        raise bad_argument("delay", delay, allowed, Reason.EXPIRY_ERROR)


def check_sent(transmission: Transmission | None, queue: QueueAttributes) -> None:
    """Checks that a message for a transmission queue has a destination (N-3). Raises ArgumentError 2260."""
    if transmission is None:
        raise ArgumentError(
            f"{queue.name} is a transmission queue: put through a remote queue, or name the target's queue manager",
            reason=Reason.XQH_ERROR, argument="transmission", value=None,
        )  # fmt: skip


def _check_segment(message: Message) -> None:
    """Checks that an empty segment is the last one of its logical message (R2.19)."""
    if message.flags & ANY_SEGMENT and not message.flags & LAST_SEGMENT and not message.length:
        raise ArgumentError(
            "only the last segment of a message may be empty",
            reason=Reason.SEGMENT_LENGTH_ZERO, argument="body", value=b"", allowed="not empty",
        )  # fmt: skip


def _context(context: Context, program: Program) -> tuple[slice, Row]:
    """The context fields that do not come from the message, and their values but for the time (1.1, R2.2)."""
    if context == "default":
        return IDENTITY_AND_ORIGIN, tuple(default_context(program, 0.0).values())
    if context == "none":
        return IDENTITY_AND_ORIGIN, ("", NO_ACCOUNTING, "", APPLICATION_TYPE_NONE, "", 0.0, "")
    if context == "set_identity":
        return ORIGIN, (APPLICATION_TYPE_UNIX, program.name, 0.0, "")
    return NO_CONTEXT, ()


def default_context(program: Program, now: float) -> dict[str, Any]:
    """The context of a put without options for it, in the order of the descriptor."""
    return {
        "user_identifier": program.user,
        "accounting_token": NO_ACCOUNTING,
        "application_identity_data": "",
        "put_application_type": APPLICATION_TYPE_UNIX,
        "put_application_name": program.name,
        "put_at": now,
        "application_origin_data": "",
    }
