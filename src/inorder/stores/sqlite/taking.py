"""Plain gets, many messages at a time: the common cases of `stores.reading`, with the same answers.

A *plain* get takes what is first, in physical order, whatever it is: no match, no locks, no marks, nothing that is to
be joined or complete. As many as are asked for come in one statement and go in one. A *plain group* is a complete
group without segments, taken whole in a unit of work. What is not plain goes message by message, by `Reading`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ...attributes import ManagerAttributes, QueueAttributes
from ...message import ANY_GROUP, ANY_SEGMENT, LAST_IN_GROUP, Message
from ...options import DEFAULT_GET, GetOptions
from ...rules.grouping import GroupState, state_after
from ...rules.lifecycle import Event, State, step
from ...rules.ordering import read_order
from ..base import GetOutcome, GetRequest
from .codec import GOT_COLUMNS
from .handles import SqliteHandle
from .shelf import SqliteQueue
from .statements import by_id, statement
from .taken_group import PAGE_BYTES, PAGE_MESSAGES, TakenGroup, read_taken
from .transaction import SqliteTransaction

TAKE = statement("take", columns=GOT_COLUMNS)
TAKE_GROUP = statement("take group", columns=GOT_COLUMNS)
NUMBERS_OF_GROUP = statement("numbers of group")
HOLD_GROUP = statement("hold group")
HOLD = by_id("hold")
REMOVE = by_id("remove")
REMOVE_CONTENT = by_id("remove content")

PLAIN_GROUP = GetOptions(logical=True, complete=True, all_messages=True)
# Options that change nothing of how a message is found or taken.
HARMLESS = frozenset({"wait", "syncpoint", "read_order"})
COMPARED = tuple(name for name in GetOptions.__slots__ if name not in HARMLESS)
_, AFTER_HELD_GET = step(State.UNLOCKED, Event.GET_HELD)
BODY = 27  # in the columns of "take"
FLAGS, PERSISTENT, GROUP, SEQUENCE = (
    Message.FIELDS[name].index for name in ("flags", "persistent", "group_id", "sequence_number")
)


def take(
    verb: SqliteTransaction,
    handle: SqliteHandle,
    queue: SqliteQueue,
    request: GetRequest,
    attributes: QueueAttributes,
    manager: ManagerAttributes,
) -> GetOutcome | None:
    """What a plain get is given; None if this is none, or nothing is there for it."""
    options = request.options
    here = queue.here
    if handle.locked or here.has_marks or here.has_entered or options.browse or options.match:
        return None
    order = read_order(attributes.read_order, options.read_order or handle.options.read_order)
    if order == "notify":
        return None
    unit = handle.connection.unit if request.syncpoint else None
    own = None if unit is None else 2 * unit.id
    if order == "strict" and any(holder != own for holder in queue.holders()):
        return None  # something is pending: the rules decide
    room = manager.max_uncommitted - (0 if unit is None else unit.calls)
    if _is(options, DEFAULT_GET) and not request.one_group:
        return _take_first(verb, handle, queue, request, room)
    if _is(options, PLAIN_GROUP) and request.one_group and request.syncpoint:
        return _take_group(verb, handle, queue, request, room, strict=order == "strict")
    return None


def _is(options: GetOptions, plain: GetOptions) -> bool:
    return options is plain or all(getattr(options, name) == getattr(plain, name) for name in COMPARED)


def _take_first(
    verb: SqliteTransaction, handle: SqliteHandle, queue: SqliteQueue, request: GetRequest, room: int
) -> GetOutcome | None:
    if request.state.logical and (request.state.group_open or request.state.message_open):
        return None  # it is warned that it leaves a group
    count = min(request.most, room) if request.syncpoint else request.most
    if count < 1:
        return None
    got, now = verb.codec.got, verb.now
    found = verb.execute(TAKE, (queue.id, count)).fetchall()
    if not found:
        return None
    messages = [got(columns, now) for columns in found]
    if any(message.row[FLAGS] & ANY_GROUP for message in messages):
        return None  # who is inside a group is to be noted
    _go(verb, handle, queue, found, messages, in_unit=request.syncpoint)
    state = state_after(messages[-1], in_unit=request.syncpoint, logical=False)
    return _outcome(request, messages, state)


def _take_group(
    verb: SqliteTransaction, handle: SqliteHandle, queue: SqliteQueue, request: GetRequest, room: int, *, strict: bool
) -> GetOutcome | None:
    """A small group in one statement, a large one by its numbers, to be read when the caller goes through it."""
    if request.state.group_open or request.state.message_open:
        return None
    head = queue.first_whole(strict=strict)
    if head is None:
        return None
    flags, group_id = head.message.flags, head.message.group_id
    if flags & ANY_SEGMENT or not flags & ANY_GROUP:
        return None
    found = _small_group(verb, queue, group_id)
    if found is None:
        return _take_large_group(verb, handle, queue, request, group_id, room)
    got, now = verb.codec.got, verb.now
    messages = [got(columns, now) for columns in found]
    if len(messages) > room or not _are_a_group((one.row[SEQUENCE], one.row[FLAGS]) for one in messages):
        return None
    _go(verb, handle, queue, found, messages, in_unit=True)
    return _outcome(request, messages, state_after(messages[-1], in_unit=True, logical=True))


def _small_group(verb: SqliteTransaction, queue: SqliteQueue, group_id: bytes) -> list[tuple[Any, ...]] | None:
    """The members with their contents; None if they are more than a page."""
    found, size = [], 0
    members = verb.execute(TAKE_GROUP, (queue.id, group_id))
    for columns in members:
        found.append(columns)
        size += len(columns[BODY])
        if len(found) > PAGE_MESSAGES or size > PAGE_BYTES:
            members.close()
            return None
    return found


def _take_large_group(
    verb: SqliteTransaction,
    handle: SqliteHandle,
    queue: SqliteQueue,
    request: GetRequest,
    group_id: bytes,
    room: int,
) -> GetOutcome | None:
    numbers, lengths = array("q"), array("q")

    def noted() -> Iterator[tuple[int, int]]:
        for number, length, sequence_number, flags in verb.execute(NUMBERS_OF_GROUP, (queue.id, group_id)):
            numbers.append(number)
            lengths.append(length)
            yield sequence_number, flags

    if not _are_a_group(noted()) or len(numbers) > room:
        return None
    connection = verb.home.connection(handle.connection.id)
    unit = verb.enlist(connection, len(numbers), 2**62)
    verb.change(HOLD_GROUP, (queue.id, group_id, AFTER_HELD_GET, unit.id), len(numbers))
    queue.count(-len(numbers))
    verb.touch(queue)
    (last,) = read_taken(verb, numbers[-1:], unit, verb.now)
    messages = TakenGroup(verb.home, connection, unit, verb.now, numbers, lengths)
    return _outcome(request, messages, state_after(last, in_unit=True, logical=True))


def _are_a_group(members: Iterable[tuple[int, int]]) -> bool:
    """Whether these sequence numbers and flags are those of messages 1 to n, the last the only one that says so, none
    a segment."""
    number, ended = 0, False
    for number, (sequence_number, flags) in enumerate(members, 1):
        if ended or sequence_number != number or flags & ANY_SEGMENT:
            return False
        ended = bool(flags & LAST_IN_GROUP)
    return ended


def _go(
    verb: SqliteTransaction,
    handle: SqliteHandle,
    queue: SqliteQueue,
    found: Sequence[Sequence[Any]],
    messages: Sequence[Message],
    *,
    in_unit: bool,
) -> None:
    """The messages leave: at once, or when the unit of work is committed."""
    numbers = [columns[0] for columns in found]
    if in_unit:
        unit = verb.enlist(handle.connection, len(found), 2**62)
        verb.change_each(HOLD, numbers, State.UNLOCKED, AFTER_HELD_GET, unit.id)
    else:
        verb.change_each(REMOVE, numbers, State.UNLOCKED)
        verb.execute_each(REMOVE_CONTENT, numbers)
        verb.durable |= any(message.row[PERSISTENT] for message in messages)
    queue.count(-len(found))
    verb.touch(queue)


def _outcome(request: GetRequest, messages: Sequence[Message], state: GroupState) -> GetOutcome:
    before = request.state if request.syncpoint else None
    return GetOutcome(messages, state, request.cursor, before)
