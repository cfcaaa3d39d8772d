"""A put, from what the caller gave to the messages that arrive on the queue.

`plan_put` is the whole of MQPUT that needs no store: defaults of the queue, ids, numbers in the group,
consistency, splitting, context. What it returns has only to be counted against the queue's depth, given its
place, and written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..attributes import ManagerAttributes, QueueAttributes
from ..errors import ArgumentError, CallerError, MessageTooBig, PutInhibited, Reason, UnitNotAvailable
from ..message import (
    ANY_SEGMENT,
    LAST_SEGMENT,
    NO_ID,
    SEGMENTATION_ALLOWED,
    Message,
    UniqueId,
    stored_flags,
)
from ..options import Context, PutOptions
from . import policy
from .grouping import GroupState, Numbers, check_put, number_put, state_after
from .ordering import PRIORITY_MAX
from .segmentation import split

APPLICATION_TYPE_UNIX = 6
APPLICATION_TYPE_NONE = 0
NO_ACCOUNTING = bytes(32)


class Program(NamedTuple):
    """Who puts: the identity and origin context of a connection."""

    user: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PutCircumstances:
    """What a put meets: the queue as resolved, the queue manager, the unit of work, the time.

    Args:
        queue: the local queue, with an alias's defaults where the put went through one.
        in_unit: this put is inside the connection's unit of work.
        unit_open: the connection has a unit of work open.
        now: seconds since 1970.
        new_number: makes numbers that never return; they make unique ids.
    """

    queue: QueueAttributes
    manager: ManagerAttributes
    program: Program
    in_unit: bool
    unit_open: bool
    now: float
    new_number: Callable[[], int]


class PutResult(NamedTuple):
    """What a put did: the ids and numbers used, and the warning, if any (R2.11).

    Args:
        flags: the flags as the caller gave them; the stored copy may have more (R1.10).
        warning: 2049, or 2241, 2242 where a group is left open by a put without logical order.
    """

    message_id: bytes
    correlation_id: bytes
    group_id: bytes
    sequence_number: int
    offset: int
    flags: int
    uid: UniqueId
    warning: Reason | None


class Planned(NamedTuple):
    """A put ready to be written: the messages that arrive, what the caller is told, the handle's new state."""

    arriving: Sequence[Message]
    result: PutResult
    state: GroupState


def make_id(manager_name: str, number: int) -> bytes:
    """A message, correlation or group id: "AMQ ", twelve characters of name, a number that grows (R1.1)."""
    return b"AMQ " + manager_name.encode("ascii")[:12].ljust(12) + number.to_bytes(8, "big")


def plan_put(message: Message, options: PutOptions, state: GroupState, at: PutCircumstances) -> Planned:
    """What becomes of one put (mq-semantics 2).

    Raises:
        PutInhibited: 2051. MessageTooBig: 2030, 2031. UnitNotAvailable: 2255.
        ArgumentError: 2048 persistent on a temporary queue, 2250, 2251 numbers too large, 2253 empty segment.
        InconsistentCall: 2241, 2242, 2185, 2245 in logical order.
    """
    if not at.queue.put_allowed:
        raise PutInhibited(f"puts to {at.queue.name} are inhibited", queue=at.queue.name)
    persistent = _persistent(message, at.queue)
    warning = check_put(state, message, logical=options.logical, persistent=persistent, in_unit=at.in_unit)
    _check_segment(message)

    def new_id() -> bytes:
        return make_id(at.manager.name, at.new_number())

    numbers = number_put(state, message, logical=options.logical, new_id=new_id)
    whole = _as_sent(message, options, numbers, at, persistent=persistent)
    result = PutResult(
        whole.message_id,
        whole.correlation_id,
        numbers.group_id,
        numbers.sequence_number,
        numbers.offset,
        message.flags,
        whole.uid or options.uid or UniqueId("", 0),
        warning or _priority_warning(whole),
    )
    new_state = state_after(whole, in_unit=at.in_unit, logical=options.logical)
    given_id = message.message_id != NO_ID and not options.new_message_id
    return Planned(_pieces(whole, at, given_id=given_id), result, new_state)


def _as_sent(
    message: Message, options: PutOptions, numbers: Numbers, at: PutCircumstances, *, persistent: bool
) -> Message:
    """The message as it is stored: its fields, with what the queue, the queue manager and the call add."""
    name, number, row = at.manager.name, at.new_number(), list(message.row)
    if row[MESSAGE_ID] == NO_ID or options.new_message_id:
        row[MESSAGE_ID] = make_id(name, number)
    if options.new_correlation_id:
        row[CORRELATION_ID] = make_id(name, at.new_number())
    row[GROUP_ID], row[SEQUENCE_NUMBER], row[OFFSET] = numbers
    row[FLAGS] = stored_flags(row[FLAGS])
    row[PERSISTENT] = persistent
    if row[PRIORITY] is None:
        row[PRIORITY] = at.queue.default_priority
    if row[EXPIRY] is None:
        row[EXPIRY] = at.queue.expiry
    row[CCSID] = row[CCSID] or at.manager.coded_character_set_id
    row[LENGTH] = len(row[BODY])  # of a message that was got truncated, what is there
    row[TOKEN], row[UID] = number.to_bytes(16, "big"), options.uid or UniqueId(name, number)
    for index, value in AS_SENT:
        row[index] = value
    _set_context(row, options.context, at)
    return Message.from_row(tuple(row))


def _index(name: str) -> int:
    return Message.FIELDS[name].index


MESSAGE_ID, CORRELATION_ID, GROUP_ID = _index("message_id"), _index("correlation_id"), _index("group_id")
SEQUENCE_NUMBER, OFFSET, FLAGS = _index("sequence_number"), _index("offset"), _index("flags")
PERSISTENT, PRIORITY, EXPIRY = _index("persistent"), _index("priority"), _index("expiry")
CCSID, BODY, LENGTH = _index("coded_character_set_id"), _index("body"), _index("length")
TOKEN, UID = _index("token"), _index("uid")
USER, ACCOUNTING, IDENTITY_DATA = (
    _index("user_identifier"),
    _index("accounting_token"),
    _index("application_identity_data"),
)
PUT_TYPE, PUT_NAME, PUT_AT, ORIGIN_DATA = (
    _index("put_application_type"),
    _index("put_application_name"),
    _index("put_at"),
    _index("application_origin_data"),
)
# What a get added to a message is not part of a put of it.
AS_SENT = (
    (_index("backout_count"), 0),
    (_index("place"), None),
    (_index("earlier_pending"), None),
    (_index("warning"), None),
)


def _persistent(message: Message, queue: QueueAttributes) -> bool:
    """The queue's default where the message says nothing; a temporary queue keeps nothing for ever (R1.5)."""
    persistent = queue.default_persistence if message.persistent is None else message.persistent
    if persistent and queue.definition_type == "temporary_dynamic":
        raise ArgumentError(
            f"{queue.name} is a temporary dynamic queue: it takes no persistent message",
            reason=Reason.PERSISTENT_NOT_ALLOWED,
            argument="persistent",
            value=True,
        )
    return persistent


def _check_segment(message: Message) -> None:
    """Only the last segment of a logical message may be empty (R2.19)."""
    if message.flags & ANY_SEGMENT and not message.flags & LAST_SEGMENT and not message.length:
        raise CallerError(
            "only the last segment of a message may be empty",
            reason=Reason.SEGMENT_LENGTH_ZERO,
            argument="body",
        )


def _priority_warning(message: Message) -> Reason | None:
    """A priority above the maximum is accepted, counts as the maximum, and is told (R1.4)."""
    too_high = message.priority is not None and message.priority > PRIORITY_MAX
    return Reason.PRIORITY_EXCEEDS_MAXIMUM if too_high else None


def _set_context(row: list[Any], context: Context, at: PutCircumstances) -> None:
    """Who put it, and when: from this connection, or from the message where the caller sets it (1.1, R2.2)."""
    if context in ("default", "none"):
        row[USER] = at.program.user if context == "default" else ""
        row[ACCOUNTING], row[IDENTITY_DATA] = NO_ACCOUNTING, ""
    if context != "set_all":
        named = context != "none"
        row[PUT_TYPE] = APPLICATION_TYPE_UNIX if named else APPLICATION_TYPE_NONE
        row[PUT_NAME] = at.program.name if named else ""
        row[PUT_AT], row[ORIGIN_DATA] = at.now, ""


def _pieces(whole: Message, at: PutCircumstances, *, given_id: bool) -> Sequence[Message]:
    """The message, or the segments it must be split into (2.6)."""
    limit = min(at.queue.max_length, at.manager.max_length)
    if whole.length <= limit:
        return (whole,)
    of_queue = at.queue.max_length <= at.manager.max_length
    reason = Reason.MSG_TOO_BIG_FOR_Q if of_queue else Reason.MSG_TOO_BIG_FOR_Q_MGR
    if not whole.flags & SEGMENTATION_ALLOWED:
        raise MessageTooBig(
            f"the message has {whole.length:,} bytes, {at.queue.name} takes at most {limit:,}; "
            "give it flags=Flags.SEGMENTATION_ALLOWED, or raise max_length",
            reason=reason,
            queue=at.queue.name,
            length=whole.length,
            limit=limit,
        )
    needs_unit = whole.persistent or not policy.UNIT_NEEDED_FOR_PERSISTENT_PIECES_ONLY
    if needs_unit and at.unit_open and not at.in_unit:
        raise UnitNotAvailable("a put outside the open unit of work cannot split a persistent message")
    return [
        _piece(whole, n, piece, at, keep_id=given_id and policy.PIECES_KEEP_GIVEN_MESSAGE_ID)
        for n, piece in enumerate(split(whole, limit, reason))
    ]


def _piece(whole: Message, n: int, piece: Any, at: PutCircumstances, *, keep_id: bool) -> Message:
    body = whole.body[piece.start : piece.end]
    number = int.from_bytes(whole.token, "big") if n == 0 else at.new_number()
    own_id = {} if keep_id or n == 0 else {"message_id": make_id(at.manager.name, number)}
    return whole.with_values(
        body=body,
        length=len(body),
        offset=whole.offset + piece.start,
        flags=piece.flags,
        token=number.to_bytes(16, "big"),
        uid=whole.uid if n == 0 else UniqueId(at.manager.name, number),
        **own_id,
    )
