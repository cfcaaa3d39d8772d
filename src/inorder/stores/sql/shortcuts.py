"""All shortcuts: plain requests in fewer statements, with the same answers as the rules give.

A request is *plain* (`SqlShortcuts.get`, `SqlShortcuts.claim`) if it takes the first message unconditionally: no match,
no locks, no marks, no reader inside a group, no segments to join. One statement reads as many messages as requested,
and one removes them. A *plain group* is a complete group without segments, taken whole in a unit of work. Requests that
are not plain are served message by message (`stores.reading`, `stores.claiming`). A backend without shortcuts gives the
same answers.
"""

from __future__ import annotations

import operator
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from ...model.attributes import QueueAttributes
from ...model.message import ANY_GROUP, ANY_SEGMENT, LAST_IN_GROUP, Message, Place
from ...model.options import DEFAULT_GET, GetOptions
from ...rules.grouping import NOTHING_OPEN, GroupState, state_after
from ...rules.lifecycle import Event, State, step
from ...rules.ordering import UNSET, read_order
from ..engine.claiming import ClaimedPart, Claiming
from ..engine.operation import Operation
from ..engine.process import OpenHandle
from ..engine.queue import LocalQueue
from ..seam.queued import QueuedMessage, up_to
from ..seam.records import GetOutcome, GetRequest, Rest
from .attention import GROUPS
from .bulk import Levels, SqlBulk
from .codec import GOT_BODY
from .engine import MANY, TAKE_AWAY, WITHIN
from .search import NO_END, START, StrictSearch, is_own
from .selection import EVERYTHING, Heads

PAGE_MESSAGES: Final = 256  # of a large group, returned at once
PAGE_BYTES: Final = 1 << 20
PLAIN_GROUP = GetOptions(logical=True, complete=True, all_messages=True)
# Options that do not affect how a message is found or taken.
HARMLESS = frozenset({"wait", "syncpoint", "read_order"})
compared = operator.attrgetter(*(name for name in GetOptions.__slots__ if name not in HARMLESS))
_tuple = tuple.__new__  # makes a named tuple without an extra call: each get makes one
_, AFTER_HELD_GET = step(State.UNLOCKED, Event.GET_HELD)
FLAGS, PERSISTENT, GROUP, SEQUENCE, LENGTH = (
    Message.FIELDS[name].index for name in ("flags", "persistent", "group_id", "sequence_number", "length")
)


class SqlShortcuts:
    """The shortcuts of a backend; see `stores.bulk.Shortcuts`."""

    def __init__(self, backend: SqlBulk) -> None:
        self._backend, self._sql = backend, backend.sql

    # --- plain requests

    def get(
        self,
        operation: Operation,
        handle: OpenHandle,
        queue: LocalQueue,
        request: GetRequest,
        attributes: QueueAttributes,
    ) -> GetOutcome | None:
        options, state = request.options, queue.state
        if handle.has_locked or state.has_marks or state.has_entered:
            return None
        is_default = options is DEFAULT_GET
        if not is_default and (options.browse or options.match):
            return None
        order = read_order(attributes.read_order, options.read_order or handle.options.read_order)
        if order == "notify":
            return None
        if state.has_reports and not request.syncpoint:
            return None  # the delivery must be reported; for gets in a unit that happens at the commit
        unit = handle.connection.unit if request.syncpoint else None
        if order == "strict" and any(unit is None or one != 2 * unit for one in self._backend.holders(queue.id)):
            return None  # something is pending: the rules decide
        room = operation.store.definitions.manager.max_uncommitted - (0 if unit is None else handle.connection.calls)
        if not request.one_group and (is_default or _is(options, DEFAULT_GET)):
            return self._take_first(operation, handle, queue, request, room)
        if _is(options, PLAIN_GROUP) and request.one_group and request.syncpoint:
            return self._take_group(operation, handle, queue, request, room, strict=order == "strict")
        return None

    def claim(self, claiming: Claiming) -> ClaimedPart | None:
        options, state, wants = claiming.request.options, claiming.state, claiming.wants
        if claiming.handle.has_locked or (options.logical and not options.all_messages):
            return None
        if state.group_open or state.message_open:
            return None
        levels = Levels(self._backend, claiming.queue, claiming.reader, UNSET, logical=options.logical,
                        strict=claiming.strict, most=wants.most)  # fmt: skip
        ranges = list(levels)
        return None if levels.unusual else self._claim(claiming, levels, ranges)

    def undisputed(self, asked: StrictSearch, rows: Iterable[QueuedMessage], heads: Heads) -> QueuedMessage | None:
        """Returns the first of these rows if nothing before it on its level is pending: a strict call gets that one."""
        queue, wanted, reader, holders, chosen = asked
        row = next((row for row in rows if queue.selects(row, wanted, reader)), None)
        if row is None or row.expires_at <= reader.now or not queue.has_what_it_needs(row, wanted, reader):
            return None
        level = Place(row.place.rank, 0, -1)
        for holder in holders:
            if not is_own(holder, reader):
                first = next(self._backend.held(queue.id, holder, level, chosen, heads), None)
                if first is not None and first.place < row.place:
                    return None
        return row

    # --- gets

    def _take_first(
        self, operation: Operation, handle: OpenHandle, queue: LocalQueue, request: GetRequest, room: int
    ) -> GetOutcome | None:
        if request.state.logical and (request.state.group_open or request.state.message_open):
            return None  # the caller gets a warning because it leaves a group
        count = min(request.most, room) if request.syncpoint else request.most
        if count < 1:
            return None
        may_be_in_groups = self._backend.noted[queue.id] & GROUPS
        is_limited = request.most_bytes is not None and count > 1
        goes = not (request.syncpoint or may_be_in_groups or is_limited) and TAKE_AWAY in self._sql
        if goes:
            found = self._backend.take_away(queue.id, count)
        else:
            take = self._sql["get available" if may_be_in_groups else "get available singles"]
            run = self._backend.engine.run
            if is_limited and WITHIN in self._sql:
                found = run(self._sql[WITHIN], (queue.id, count, request.most_bytes)).fetchall()
            elif is_limited:
                rows = run(take, (queue.id, count))
                found = list(up_to(request.most_bytes, rows, lambda row: len(row[GOT_BODY])))
            else:
                found = run(take, (queue.id, count)).fetchall()
        if not found:
            return None
        messages = self._backend.codec.got(found, operation.now)
        if may_be_in_groups and any(message.row[FLAGS] & ANY_GROUP for message in messages):
            return None  # the reader inside a group must be recorded
        numbers = () if goes else [columns[0] for columns in found]
        self._go(operation, handle, queue, numbers, messages, in_unit=request.syncpoint)
        state = NOTHING_OPEN
        if (last := messages[-1]).row[FLAGS]:
            state = state_after(last, in_unit=request.syncpoint, logical=False)
        return _outcome(request, messages, state)

    def _take_group(
        self,
        operation: Operation,
        handle: OpenHandle,
        queue: LocalQueue,
        request: GetRequest,
        room: int,
        *,
        strict: bool,
    ) -> GetOutcome | None:
        """Takes a group: a small one in one statement, a large one by its numbers, to be read later by the caller."""
        if request.state.group_open or request.state.message_open:
            return None
        head = self._first_whole(queue, strict=strict)
        if head is None:
            return None
        flags, group_id = head.message.flags, head.message.group_id
        if flags & ANY_SEGMENT or not flags & ANY_GROUP:
            return None
        numbers, messages, is_all = self._beginning(queue, group_id, operation.now)
        if not is_all:
            return self._take_large_group(operation, handle, queue, request, messages, room)
        if len(messages) > room or not _are_a_group((one.row[SEQUENCE], one.row[FLAGS]) for one in messages):
            return None
        self._go(operation, handle, queue, numbers, messages, in_unit=True)
        return _outcome(request, messages, state_after(messages[-1], in_unit=True, logical=True))

    def _first_whole(self, queue: LocalQueue, *, strict: bool) -> QueuedMessage | None:
        """Returns the first head of a group that looks complete; strictly, only if no unfinished one is before it."""
        whole = self._first_head(queue, (2,))
        if whole is None or not strict:
            return whole
        first = self._first_head(queue, (1, 2))
        return whole if first is not None and first.number == whole.number else None

    def _first_head(self, queue: LocalQueue, heads: Heads) -> QueuedMessage | None:
        return next(self._backend.open(queue.id, START, EVERYTHING, heads), None)

    def _beginning(self, queue: LocalQueue, group_id: bytes, now: float) -> tuple[list[int], list[Message], bool]:
        """Returns the numbers of the first members, these messages up to a page, and whether they are all."""
        numbers: list[int] = []
        messages: list[Message] = []
        size, got = 0, self._backend.codec.got
        members = self._backend.engine.scan(self._sql["get available of group"], (queue.id, group_id))
        for columns in members:
            (message,) = got((columns,), now)
            size += message.row[LENGTH]
            if messages and (len(messages) == PAGE_MESSAGES or size > PAGE_BYTES):
                members.close()
                return numbers, messages, False
            numbers.append(columns[0])
            messages.append(message)
        return numbers, messages, True

    def _take_large_group(
        self,
        operation: Operation,
        handle: OpenHandle,
        queue: LocalQueue,
        request: GetRequest,
        page: list[Message],
        room: int,
    ) -> GetOutcome | None:
        group_id, numbers = page[0].group_id, array("q")

        def noted() -> Iterator[tuple[int, int]]:
            for number, _, sequence_number, flags in self._backend.engine.scan(
                self._sql["numbers of group"], (queue.id, group_id)
            ):
                numbers.append(number)
                yield sequence_number, flags

        if not _are_a_group(noted()) or len(numbers) > room:
            return None
        unit = operation.enlist(handle.connection, len(numbers), 2**62)
        held = queue.id, group_id, AFTER_HELD_GET, unit.id
        self._backend.change(self._sql["hold group for unit"], held, len(numbers))
        queue.count(-len(numbers))
        operation.touch(queue)
        (last,) = self._backend.read(self._backend.rows(queue=queue.id, number=numbers[-1]), 0)
        rest = Rest(
            unit.id,
            handle.connection.ended,
            len(numbers) - len(page),
            group_id,
            page[-1].sequence_number,
            operation.now,
        )
        outcome = _outcome(request, page, state_after(last.message, in_unit=True, logical=True))
        return outcome._replace(rest=rest)

    def _go(
        self,
        operation: Operation,
        handle: OpenHandle,
        queue: LocalQueue,
        numbers: Sequence[int],
        messages: Sequence[Message],
        *,
        in_unit: bool,
    ) -> None:
        """Removes the messages: at once, or when the unit of work is committed.

        Args:
            numbers: of those that are still on the queue.
        """
        if in_unit:
            unit = operation.enlist(handle.connection, len(numbers), 2**62)
            self._backend.change_each("hold messages for unit", numbers, State.UNLOCKED, AFTER_HELD_GET, unit.id)
        else:
            self._backend.change_each("delete messages", numbers, State.UNLOCKED)
            self._backend.execute_each("delete content", numbers)
            for message in messages:
                if message.row[PERSISTENT]:
                    operation.durable = True
                    break
        queue.count(-len(messages))
        operation.touch(queue)

    # --- claims

    def _claim(self, claiming: Claiming, levels: Levels, ranges: Sequence[Any]) -> ClaimedPart:
        """Takes a claim of plain messages, or of whole groups."""
        engine, wants, operation, queue = self._backend.engine, claiming.wants, claiming.operation, claiming.queue
        if levels.kind == "groups":
            sql = self._sql["claim plain groups" if levels.plain else "claim groups"]
        else:
            sql = self._sql[f"claim messages of {levels.kind}"]
        messages = size = 0
        more = False
        for one in ranges:
            if not levels.has_more(one):
                continue
            if messages < wants.most:
                values = levels.values(one, wants.most - messages) | {
                    "state": AFTER_HELD_GET,
                    "unit": claiming.unit.id,
                    "base": messages,
                    "most_bytes": wants.most_bytes - size,
                    "weighs": wants.most_bytes < NO_END,
                    "first": not messages,
                }
                if levels.kind == "groups" and min(wants.most, queue.depth) >= MANY:
                    with engine.ignore_groups():
                        engine.execute(sql, values)
                        engine.execute(self._sql["delete gatherings of claim"], values)
                else:
                    engine.execute(sql, values)
                messages, size = next(engine.execute(self._sql["size of claim"], (claiming.unit.id, queue.id)))
            more = levels.has_more(one)
            if more:
                break
        if messages:
            operation.touch(queue)
            if queue.state.has_marks:
                engine.execute(self._sql["delete marks of claim"], (claiming.unit.id, queue.id))
        return ClaimedPart(messages, size, NOTHING_OPEN, more)


def _is(options: GetOptions, plain: GetOptions) -> bool:
    return options is plain or compared(options) == compared(plain)


def _are_a_group(members: Iterable[tuple[int, int]]) -> bool:
    """Whether these sequence numbers and flags are messages 1 to n, only the last one marked as last, and no
    segments.
    """
    number, ended = 0, False
    for number, (sequence_number, flags) in enumerate(members, 1):
        if ended or sequence_number != number or flags & ANY_SEGMENT:
            return False
        ended = bool(flags & LAST_IN_GROUP)
    return ended


def _outcome(request: GetRequest, messages: Sequence[Message], state: GroupState) -> GetOutcome:
    before = request.state if request.syncpoint else None
    return _tuple(GetOutcome, (messages, state, request.cursor, before, None, None, None, False, None))
