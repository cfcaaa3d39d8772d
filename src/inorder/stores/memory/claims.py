"""Claims and surveys of the memory store, message by message."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import chain

from ...attributes import ManagerAttributes, QueueAttributes
from ...message import NO_ID, Message, Place
from ...rules.grouping import Wanted, is_head
from ...rules.ordering import read_order
from ...rules.puts import NO_ACCOUNTING
from .. import claiming
from ..base import Outcome
from ..claiming import Account, Book, Claiming, OpenClaim, Taken
from ..claims import (
    PAGE_BYTES,
    PAGE_ROWS,
    BulkRow,
    Claim,
    Claimer,
    ClaimRequest,
    Claims,
    ClaimStart,
    Slice,
    Stretch,
    Survey,
    SurveyRequest,
)
from ..rows import Reader, Row, as_got, available, is_in_sight
from ..surveying import Shown, cut, looked_for, moved, stretches, within
from .handles import Handles, MemoryHandle
from .queue import MemoryQueue, MemoryUnit
from .transaction import MemoryTransaction


class MemoryBook(Book[MemoryQueue, MemoryUnit]):
    """A queue's accounts, in one transaction."""

    def __init__(self, verb: MemoryTransaction, queue: MemoryQueue) -> None:
        self.verb, self.queue = verb, queue

    def account(self, application: str) -> Account[MemoryUnit] | None:
        kept = self.queue.accounts.get(application)
        return None if kept is None else _copy(kept)

    def keep(self, account: Account[MemoryUnit]) -> None:
        self.queue.accounts[account.application] = _copy(account)

    def begin(self, account: Account[MemoryUnit], number: int) -> MemoryUnit:
        return MemoryUnit(account.program, self.verb.now, "claim", f"{account.application}#{number}")

    def end(self, claim: OpenClaim[MemoryUnit], outcome: Outcome) -> None:
        self.verb.settle(claim.unit, outcome)

    def take(self, claiming: Claiming[MemoryQueue, MemoryUnit]) -> Taken:
        return claiming.run_claim()

    def place(self, row: Row, position: int) -> None:
        row.claimed = position

    def spans(self, unit: MemoryUnit) -> Sequence[tuple[int, int]]:
        found: dict[bytes, list[int]] = {}
        for row in _claimed(unit):
            if row.message.group_id != NO_ID:
                found.setdefault(row.message.group_id, []).append(row.claimed)
        return [(min(positions), max(positions)) for positions in found.values()]

    def page(self, unit: MemoryUnit, first: int, last: int) -> list[BulkRow]:
        claimed = _claimed(unit)
        rows = claimed[first - 1 : last]
        count = claiming.page_end((row.message.length for row in rows), PAGE_ROWS, PAGE_BYTES)
        return [_bulk(row, claimed, row.claimed, unit.started_at) for row in rows[:count]]


def _copy(account: Account[MemoryUnit]) -> Account[MemoryUnit]:
    return replace(account, open=None if account.open is None else replace(account.open))


def _claimed(unit: MemoryUnit) -> list[Row]:
    return sorted((row for _, row in unit.rows.values()), key=lambda row: row.claimed)


def _bulk(row: Row, among: Iterable[Row], delivery: int, now: float) -> BulkRow:
    """A row in the order of BULK_COLUMNS; the head of its group is looked for among some."""
    message = as_got(row, now)
    assert message.uid is not None
    head = _head_place(row, among)
    return (
        *row.place, *head, delivery, message.report, message.message_type,
        None if row.expires_at == float("inf") else message.expiry, message.feedback, message.encoding,
        message.coded_character_set_id, message.format, message.priority, bool(message.persistent), message.message_id,
        _unless(message.correlation_id, NO_ID), message.reply_to_queue, message.reply_to_queue_manager,
        message.user_identifier, _unless(message.accounting_token, NO_ACCOUNTING), message.application_identity_data,
        message.put_application_type, message.put_application_name, message.put_at, message.application_origin_data,
        _unless(message.group_id, NO_ID), message.sequence_number, message.offset, message.flags,
        message.original_length, message.body, message.length, message.backout_count, message.uid.origin,
        message.uid.number,
    )  # fmt: skip


def _unless(value: bytes, nothing: bytes) -> bytes | None:
    return None if value == nothing else value


def _head_place(row: Row, among: Iterable[Row]) -> tuple[int | None, int | None, int | None]:
    """Where the group stands: its head, the first of them if there are several."""
    if row.message.group_id == NO_ID:
        return row.place
    group_id = row.message.group_id
    heads: list[Place] = [one.place for one in among if one.message.group_id == group_id and is_head(one.message)]
    return min(heads) if heads else (None, None, None)


class MemoryClaims(ABC):
    """The verbs of `stores.claims`, for the memory store."""

    _handles: Handles
    _manager: ManagerAttributes
    _verb: Callable[..., AbstractContextManager[MemoryTransaction]]

    @abstractmethod
    def _tidied(self, verb: MemoryTransaction, handle: int) -> MemoryHandle: ...

    @abstractmethod
    def _check_get_allowed(self, handle: MemoryHandle) -> QueueAttributes: ...

    def begin_claims(self, handle: int, application: str) -> ClaimStart:
        with self._verb() as verb:
            one = self._tidied(verb, handle)
            book = MemoryBook(verb, one.queue)
            return claiming.begin_claims(book, one.connection.program, application, one.queue.counter)

    def claim(self, request: ClaimRequest) -> Claim | None:
        with self._verb() as verb:
            one = self._tidied(verb, request.claimer.handle)
            resolved = self._check_get_allowed(one)
            return claiming.claim(verb, one, MemoryBook(verb, one.queue), request, resolved, self._manager)

    def plan_claims(self, claimer: Claimer, after: int, upto: int, slices: int) -> Sequence[Slice]:
        with self._verb() as verb:
            book = MemoryBook(verb, self._tidied(verb, claimer.handle).queue)
            return claiming.plan_claims(book, claimer, after, upto, slices)

    def read_claim(self, claimer: Claimer, part: Slice) -> Iterator[list[BulkRow]]:
        first = part.first
        while first <= part.last:
            with self._verb() as verb:
                book = MemoryBook(verb, self._tidied(verb, claimer.handle).queue)
                page = claiming.read_page(book, claimer, part, first)
            yield page
            first += len(page)

    def settle_claims(self, claimer: Claimer, upto: int) -> int:
        with self._verb() as verb:
            book = MemoryBook(verb, self._tidied(verb, claimer.handle).queue)
            return claiming.settle_claims(book, claimer, upto)

    def finish_claims(self, queue: str, application: str, upto: int) -> int:
        with self._verb() as verb:
            return claiming.finish_claims(self._book_of(verb, queue), application, upto)

    def release_claims(self, queue: str, application: str) -> int:
        with self._verb() as verb:
            return claiming.release_claims(self._book_of(verb, queue), application)

    def leave_claimed_group(self, queue: str, application: str) -> bool:
        with self._verb() as verb:
            return claiming.leave_claimed_group(verb, self._book_of(verb, queue), application)

    def _book_of(self, verb: MemoryTransaction, queue: str) -> MemoryBook:
        return MemoryBook(verb, self._handles.queues[self._handles.resolve(queue).name])

    def claims(self) -> Sequence[Claims]:
        with self._verb():
            return [
                claiming.seen(name, account)
                for name, queue in sorted(self._handles.queues.items())
                for _, account in sorted(queue.accounts.items())
            ]

    # --- surveys

    def survey(self, request: SurveyRequest) -> Survey:
        claiming.check_options(request.options)
        claiming.check_limits(request.most, request.most_bytes)
        with self._verb() as verb:
            one = self._tidied(verb, request.handle)
            resolved = self._check_get_allowed(one)
            verb.release(one, one.queue)
            asked = request.options.read_order or one.options.read_order
            strict = read_order(resolved.read_order, asked) == "strict"
            reader = _reader(one, verb, request.horizon)
            shown = within(_shown(one.queue, reader, request, strict=strict), request.most, request.most_bytes)
            cuts = cut(shown, request.slices)
            logical = request.options.logical
            return Survey(
                moved(request.cursor, cuts, logical=logical),
                sum(one.messages for one in shown),
                stretches(cuts, logical=logical),
                one.queue.counter,
            )

    def read_stretch(self, handle: int, stretch: Stretch) -> Iterator[list[BulkRow]]:
        with self._verb() as verb:
            one = self._tidied(verb, handle)
            self._check_get_allowed(one)
            reader = _reader(one, verb, None)._replace(handle=NOBODY)
            placed = one.queue.placed_rows()
            rows = list(chain.from_iterable(_of_stretch(one.queue, reader, stretch)))
            found = [_bulk(row, placed, position, verb.now) for position, row in enumerate(rows, 1)]
        while found:
            count = claiming.page_end((len(row[BODY]) for row in found), PAGE_ROWS, PAGE_BYTES)
            yield found[:count]
            found = found[count:]


BODY = 32  # in BULK_COLUMNS
NOBODY = 0  # no handle: what a lock of its own holds is not read in bulk


def _reader(handle: MemoryHandle, verb: MemoryTransaction, horizon: int | None) -> Reader:
    return Reader(handle.id, handle.connection.id, co_op=False, now=verb.now, mark_interval=0.0, horizon=horizon)


def _shown(queue: MemoryQueue, reader: Reader, request: SurveyRequest, *, strict: bool) -> Iterator[Shown]:
    """What the browse would show, in order; strictly, of each level what stands before its first pending message."""
    wanted = looked_for(logical=request.options.logical)
    blocked: set[int] = set()
    for standing in queue.standings(wanted, reader, request.cursor, logical=request.options.logical):
        rank = standing.place.rank
        if rank in blocked:
            continue
        if standing.pending is not None or standing.row is None:
            if strict:
                blocked.add(rank)
            continue
        members = _members(queue, reader, standing.row.message) if request.options.logical else [standing.row]
        yield Shown(standing.place, len(members), sum(one.message.length for one in members))


def _of_stretch(queue: MemoryQueue, reader: Reader, stretch: Stretch) -> Iterator[Sequence[Row]]:
    for row in queue.placed_rows():
        place = row.place
        if place.rank != stretch.rank or not stretch.first <= (place.number, place.ordinal) <= stretch.last:
            continue
        if not available(row, reader):
            continue
        if not stretch.logical:
            yield [row]
        elif is_head(row.message) and queue.has_what_it_needs(row, Wanted(heads=True, needs="group"), reader):
            yield _members(queue, reader, row.message)


def _members(queue: MemoryQueue, reader: Reader, head: Message) -> Sequence[Row]:
    """All that can be read of a group, in logical order."""
    if head.group_id == NO_ID:
        return [row for row in queue.placed_rows() if row.message is head]
    rows = [row for row in queue.group(head.group_id) if available(row, reader) and is_in_sight(row, reader)]
    return sorted(rows, key=lambda row: (row.message.sequence_number, row.message.offset, row.place))
