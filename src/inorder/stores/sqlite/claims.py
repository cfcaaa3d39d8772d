"""Claims and surveys of the SQLite store: what is next on each level, in one statement for as many as there are.

The database brings what looks available, in order, up to the limits. Two things it cannot judge alone: what is pending
on a level that is read strictly, so the level ends before its first pending message; and groups of an unusual shape,
which the rules look at one by one (`stores.claiming`).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ...attributes import QueueAttributes
from ...message import ANY_GROUP, Place
from ...rules.grouping import NOTHING_OPEN, GroupState, Members
from ...rules.lifecycle import Event, State, step
from ...rules.ordering import UNSET, Cursor, read_order
from ...rules.puts import Program
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
from ..rows import Reader, Row, available, is_in_sight
from ..surveying import Cut, looked_for, moved, stretches
from . import owners
from .catalog import SqliteCatalog
from .handles import SqliteHandle
from .home import Home
from .shelf import SqliteQueue
from .statements import fragment, statement
from .transaction import SqliteTransaction
from .units import SqliteUnit
from .verb import Verb

ACCOUNT = statement("account")
KEEP_ACCOUNT = statement("keep account")
ACCOUNTS = statement("accounts")
OPEN_CLAIM = statement("open claim")
KEEP_CLAIM = statement("keep claim")
END_CLAIM = statement("end claim")
UNMARK_CLAIMED = statement("unmark claimed")
CLAIMED = statement("claimed")
PLACE_IN_CLAIM = statement("place in claim")
SPANS = statement("spans")
HEADS_OF_STRETCH = statement("heads of stretch")

MESSAGES, GROUPS, RUNNING = fragment("messages"), fragment("groups"), fragment("running")
HEAD, HEAD_IN_CLAIM = fragment("head", among=""), fragment("head", among="AND unit = m.unit")
ROW, COUNTED = fragment("columns", delivery="m.claimed"), fragment("columns", delivery="0")
CLAIM_MESSAGES = statement("claim messages", chosen=MESSAGES, running=RUNNING)
CLAIM_GROUPS = statement("claim groups", chosen=GROUPS, running=RUNNING)
ODD_GROUPS = statement("odd groups", chosen=GROUPS)
ANY_MESSAGE_NEXT = statement("anything next", chosen=MESSAGES)
ANY_GROUP_NEXT = statement("anything next", chosen=GROUPS)
STRETCHES_OF_MESSAGES = statement("stretches", chosen=MESSAGES, running=RUNNING)
STRETCHES_OF_GROUPS = statement("stretches", chosen=GROUPS, running=RUNNING)
READ_CLAIMED = statement("read claimed", columns=ROW, head=HEAD_IN_CLAIM)
READ_MESSAGES = statement("read messages", columns=COUNTED, head=HEAD)
READ_SINGLE = statement("read single", columns=COUNTED, head=HEAD)
READ_GROUP = statement("read group", columns=COUNTED, head=HEAD)

NO_END = 2**62
DELIVERY, GROUP, SEQUENCE, OFFSET, LENGTH = 6, 27, 28, 29, 33  # in BULK_COLUMNS
DELIVERY_PLACE = 3  # the first columns: the place
HEADS_AT_ONCE = 1024
_BEFORE_ALL: tuple[int, ...] = (0, 0, 0, 0, 0)
_, AFTER_HELD_GET = step(State.UNLOCKED, Event.GET_HELD)


class Range(NamedTuple):
    """A part of one level: behind `after`, before `stop`, both (number, ordinal); without some heads."""

    rank: int
    after: tuple[int, int]
    stop: tuple[int, int]
    excluded: Sequence[int] = ()


class Levels:
    """What a reader may be given on a queue, level by level, as ranges of places.

    Attributes:
        most: so many messages or heads of a level are looked at.
        reach: so many messages of it, counting those of groups, are enough.
        unusual: a group was met that is whole, but of a shape that only the rules know how to take.
    """

    def __init__(
        self, queue: SqliteQueue, reader: Reader, cursor: Cursor, *, logical: bool, strict: bool, most: int
    ) -> None:
        self.queue, self.reader, self.cursor, self.logical, self.strict = queue, reader, cursor, logical, strict
        self.most = self.reach = most
        self.unusual = False
        self._wanted = looked_for(logical=logical)

    def __iter__(self) -> Iterator[Range]:
        for rank in self.queue.ranks():
            shown = next((place for level, place in self.cursor.levels if level == rank), None)
            after = (0, -1) if shown is None else (shown.number, shown.ordinal)
            stop: Place | None = None
            if self.strict:
                stop = self.queue.first_pending(rank, self._wanted, self.reader, self.cursor, logical=self.logical)
            found = Range(rank, after, (NO_END, 0) if stop is None else (stop.number, stop.ordinal))
            if self.logical:
                found = self.without_odd(found)
            yield found

    def values(self, one: Range, most: int) -> dict[str, Any]:
        """What the statements about a range ask for."""
        horizon = self.reader.horizon
        return {
            "queue": self.queue.id,
            "rank": one.rank,
            "number": one.after[0],
            "ordinal": one.after[1],
            "stop_number": one.stop[0],
            "stop_ordinal": one.stop[1],
            "horizon": NO_END if horizon is None else horizon,
            "excluded": json.dumps(one.excluded),
            "most": most,
        }

    def without_odd(self, one: Range) -> Range:
        """The range without groups that only look whole; read strictly, it ends before the first of them."""
        while True:
            values = self.values(one, self.most) | {"reach": self.reach}
            odd = self.queue.verb.execute(ODD_GROUPS, values).fetchall()
            missing = []
            for head, group_id, number, ordinal in odd:
                if self._is_whole(group_id):
                    self.unusual = True
                elif self.strict:
                    return one._replace(stop=min(one.stop, (number, ordinal)))
                else:
                    missing.append(head)
            if not missing:
                return one
            one = one._replace(excluded=[*one.excluded, *missing])

    def _is_whole(self, group_id: bytes) -> bool:
        rows = [row for row in self.queue.group(group_id) if self._can_be_read(row)]
        members = Members(row.message for row in rows)
        if any(row.message.flags & ANY_GROUP for row in rows):
            return members.group_is_complete()
        return bool(members.logical_message(1))

    def _can_be_read(self, row: Row) -> bool:
        return available(row, self.reader) and is_in_sight(row, self.reader)


class SqliteBook(Book[SqliteQueue, SqliteUnit]):
    """A queue's accounts, in one transaction."""

    def __init__(self, verb: SqliteTransaction, queue: SqliteQueue) -> None:
        self.verb, self.queue = verb, queue

    def account(self, application: str) -> Account[SqliteUnit] | None:
        found = next(self.verb.execute(ACCOUNT, (self.queue.id, application)), None)
        if found is None:
            return None
        user, program, epoch, settled, delivered, state = found
        account: Account[SqliteUnit] = Account(
            application, Program(user, program), epoch, settled, delivered, _state_of(state)
        )
        claimed = next(self.verb.execute(OPEN_CLAIM, (self.queue.id, application)), None)
        if claimed is not None:
            number, unit, messages, size, state, planned = claimed
            account.open = OpenClaim(number, self.verb.unit(unit), messages, size, _state_of(state), bool(planned))
        return account

    def keep(self, account: Account[SqliteUnit]) -> None:
        self.verb.durable = True
        by, key = account.program, (self.queue.id, account.application)
        state = _state_text(account.state)
        self.verb.execute(
            KEEP_ACCOUNT, (*key, by.user, by.name, account.epoch, account.settled, account.delivered, state)
        )
        if account.open is not None:
            one = account.open
            state = _state_text(one.state)
            self.verb.execute(KEEP_CLAIM, (one.unit.id, *key, one.number, one.messages, one.size, state, one.planned))

    def begin(self, account: Account[SqliteUnit], number: int) -> SqliteUnit:
        return self.verb.begin_claim(account.program, f"{account.application}#{number}", self.queue.id)

    def end(self, claim: OpenClaim[SqliteUnit], outcome: Outcome) -> None:
        self.verb.settle(claim.unit, outcome)
        self.verb.execute(END_CLAIM, (claim.unit.id,))

    def place(self, row: Row, position: int) -> None:
        row.claimed = position
        self.verb.change(PLACE_IN_CLAIM, (position, row.number))

    def spans(self, unit: SqliteUnit) -> Sequence[tuple[int, int]]:
        spans: list[tuple[int, int]] = self.verb.execute(SPANS, (unit.id,)).fetchall()
        return spans

    def page(self, unit: SqliteUnit, first: int, last: int) -> list[BulkRow]:
        values = {"unit": unit.id, "first": first, "last": last, **_names(self.verb, unit.started_at)}
        return _page(self.verb.execute(READ_CLAIMED, values))

    # --- taking

    def take(self, claiming: Claiming[SqliteQueue, SqliteUnit]) -> Taken:
        taken = self._take_at_once(claiming)
        return claiming.run_claim() if taken is None else taken

    def _take_at_once(self, claiming: Claiming[SqliteQueue, SqliteUnit]) -> Taken | None:
        """What a claim of plain messages, or of whole groups, takes; None if it goes message by message."""
        options, state, wants = claiming.request.options, claiming.start_state, claiming.wants
        if claiming.handle.locked or (options.logical and not options.all_messages):
            return None
        if state.group_open or state.message_open:
            return None
        levels = Levels(
            self.queue, claiming.reader, UNSET, logical=options.logical, strict=claiming.strict, most=wants.most
        )
        ranges = list(levels)
        if levels.unusual:
            return None
        sql, anything = (CLAIM_GROUPS, ANY_GROUP_NEXT) if options.logical else (CLAIM_MESSAGES, ANY_MESSAGE_NEXT)
        messages = size = 0
        for one in ranges:
            if not self.verb.value_of(anything, levels.values(one, 1)):
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
                self.verb.execute(sql, values)
                messages, size = next(self.verb.execute(CLAIMED, (claiming.unit.id,)))
            if self.verb.value_of(anything, levels.values(one, 1)):
                break
        if messages:
            self.verb.touch(self.queue)
            if self.queue.here.has_marks:
                self.verb.execute(UNMARK_CLAIMED, (claiming.unit.id,))
        return Taken(messages, size, NOTHING_OPEN)


def _state_text(state: GroupState) -> str:
    return json.dumps([state.group_id.hex(), *state[1:]])


def _state_of(text: str) -> GroupState:
    group_id, *rest = json.loads(text)
    return GroupState(bytes.fromhex(group_id), *rest)


def _names(verb: SqliteTransaction, now: float) -> dict[str, Any]:
    """What rows are completed with: it is not stored."""
    return {"now": now, "prefix": verb.codec.prefix, "name": verb.codec.name}


class _Page:
    """Rows as they are read, until there are as many, or bodies as large, as one page may have."""

    def __init__(self) -> None:
        self.rows: list[BulkRow] = []
        self._room = PAGE_BYTES

    def fill(self, found: Any) -> bool:
        """Adds rows from a statement; whether all of them had room."""
        rows, room = self.rows, self._room
        left = PAGE_ROWS - len(rows)
        for row in found:
            room -= row[LENGTH]
            if rows and (room < 0 or left <= 0):
                found.close()
                return False
            rows.append(row)
            left -= 1
        self._room = room
        return True


def _page(found: Any) -> list[BulkRow]:
    """As many rows from a statement as make a page."""
    page = _Page()
    page.fill(found)
    return page.rows


class SqliteClaims(Home, ABC):
    """The verbs of `stores.claims`, for the SQLite store."""

    @abstractmethod
    def verb(self, *, writes: bool = True, though_stopped: bool = False) -> Verb: ...

    @abstractmethod
    def _queue(self, verb: SqliteTransaction, handle: SqliteHandle) -> SqliteQueue: ...

    @abstractmethod
    def _check_get_allowed(
        self, verb: SqliteTransaction, handle: SqliteHandle, queue: SqliteQueue
    ) -> QueueAttributes: ...

    @abstractmethod
    def _remove_leftovers(self) -> None: ...

    def _book(self, verb: SqliteTransaction, handle: int) -> SqliteBook:
        one = self.handle(handle)
        return SqliteBook(verb, verb.queue(one.queue, one.queue_name, one.name))

    def _book_of(self, verb: SqliteTransaction, queue: str) -> SqliteBook:
        catalog = SqliteCatalog(verb)
        local = catalog.resolve(queue).name
        return SqliteBook(verb, verb.queue(catalog.number(local), local))

    def begin_claims(self, handle: int, application: str) -> ClaimStart:
        with self.verb() as verb:
            book = self._book(verb, handle)
            program = self.handle(handle).connection.program
            return claiming.begin_claims(book, program, application, book.queue.counter)

    def claim(self, request: ClaimRequest) -> Claim | None:
        claim = self._claim(request)
        if claim is None and owners.bury_dead(self):
            claim = self._claim(request)
        self._remove_leftovers()
        return claim

    def _claim(self, request: ClaimRequest) -> Claim | None:
        with self.verb() as verb:
            one = self.handle(request.claimer.handle)
            queue = self._queue(verb, one)
            resolved = self._check_get_allowed(verb, one, queue)
            return claiming.claim(verb, one, SqliteBook(verb, queue), request, resolved, self.definitions.manager)

    def plan_claims(self, claimer: Claimer, after: int, upto: int, slices: int) -> Sequence[Slice]:
        with self.verb() as verb:
            return claiming.plan_claims(self._book(verb, claimer.handle), claimer, after, upto, slices)

    def read_claim(self, claimer: Claimer, part: Slice) -> Iterator[list[BulkRow]]:
        first = part.first
        while first <= part.last:
            with self.verb(writes=False) as verb:
                page = claiming.read_page(self._book(verb, claimer.handle), claimer, part, first)
            yield page
            first += len(page)

    def settle_claims(self, claimer: Claimer, upto: int) -> int:
        with self.verb() as verb:
            settled = claiming.settle_claims(self._book(verb, claimer.handle), claimer, upto)
        self._remove_leftovers()
        return settled

    def finish_claims(self, queue: str, application: str, upto: int) -> int:
        with self.verb() as verb:
            finished = claiming.finish_claims(self._book_of(verb, queue), application, upto)
        self._remove_leftovers()
        return finished

    def release_claims(self, queue: str, application: str) -> int:
        with self.verb() as verb:
            return claiming.release_claims(self._book_of(verb, queue), application)

    def leave_claimed_group(self, queue: str, application: str) -> bool:
        with self.verb() as verb:
            return claiming.leave_claimed_group(verb, self._book_of(verb, queue), application)

    def claims(self) -> Sequence[Claims]:
        with self.verb(writes=False) as verb:
            found = []
            for name, queue, application in verb.execute(ACCOUNTS).fetchall():
                account = SqliteBook(verb, verb.queue(queue)).account(application)
                assert account is not None
                found.append(claiming.seen(name, account))
            return found

    # --- surveys

    def survey(self, request: SurveyRequest) -> Survey:
        claiming.check_options(request.options)
        claiming.check_limits(request.most, request.most_bytes)
        owners.bury_dead(self)
        with self.verb() as verb:
            one = self.handle(request.handle)
            queue = self._queue(verb, one)
            resolved = self._check_get_allowed(verb, one, queue)
            verb.release(one, queue)
            asked = request.options.read_order or one.options.read_order
            strict = read_order(resolved.read_order, asked) == "strict"
            levels = Levels(
                queue,
                _reader(one, verb, request.horizon),
                request.cursor,
                logical=request.options.logical,
                strict=strict,
                most=request.most,
            )
            cuts = self._cuts(levels, request)
            return Survey(
                moved(request.cursor, cuts, logical=request.options.logical),
                sum(one.messages for one in cuts),
                stretches(cuts, logical=request.options.logical),
                queue.counter,
            )

    def _cuts(self, levels: Levels, request: SurveyRequest) -> list[Cut]:
        """What is shown, level by level, until the limits are reached."""
        of_groups = request.options.logical
        sql, anything = (
            (STRETCHES_OF_GROUPS, ANY_GROUP_NEXT) if of_groups else (STRETCHES_OF_MESSAGES, ANY_MESSAGE_NEXT)
        )
        expected = min(request.most, max(1, levels.queue.depth))
        chunk = -(-expected // max(1, request.slices))
        cuts: list[Cut] = []
        messages = size = 0
        for one in levels:
            values = levels.values(one, request.most - messages) | {
                "most_bytes": request.most_bytes - size,
                "weighs": request.most_bytes < NO_END,
                "first": not messages,
                "chunk": chunk,
            }
            found = levels.queue.verb.execute(sql, values).fetchall() if values["most"] > 0 else []
            begun: tuple[Place, int] | None = None
            for number, ordinal, before, upto, size_sum, begins, ends in found:
                place = Place(one.rank, number, ordinal)
                if begins:
                    begun = place, before
                if ends:
                    assert begun is not None
                    cuts.append(Cut(begun[0], place, upto - begun[1]))
                    last_messages, last_size = upto, size_sum
            if found:
                messages, size = messages + last_messages, size + last_size
                rest = one._replace(after=(cuts[-1].last.number, cuts[-1].last.ordinal))
            else:
                rest = one
            if messages and levels.queue.verb.value_of(anything, levels.values(rest, 1)):
                break
        return cuts

    def read_stretch(self, handle: int, stretch: Stretch) -> Iterator[list[BulkRow]]:
        pages = self._group_pages(handle, stretch) if stretch.logical else self._message_pages(handle, stretch)
        delivered = 0
        for page in pages:
            yield [(*row[:DELIVERY], delivered + nth, *row[DELIVERY + 1 :]) for nth, row in enumerate(page, 1)]
            delivered += len(page)

    def _tidy(self, handle: int) -> None:
        """Discards what has expired: pages are read without writing."""
        with self.verb(writes=False) as verb:
            one = self.handle(handle)
            if not verb.queue(one.queue, one.queue_name, one.name).has_work(verb.now):
                return
        with self.verb() as verb:
            self._queue(verb, one)

    def _opened(self, verb: SqliteTransaction, handle: int) -> tuple[SqliteHandle, SqliteQueue]:
        one = self.handle(handle)
        queue = verb.queue(one.queue, one.queue_name, one.name)
        self._check_get_allowed(verb, one, queue)
        return one, queue

    def _message_pages(self, handle: int, stretch: Stretch) -> Iterator[list[BulkRow]]:
        first = stretch.first
        while first <= stretch.last:
            self._tidy(handle)
            with self.verb(writes=False) as verb:
                _, queue = self._opened(verb, handle)
                values = _bounds(queue, stretch, first) | _names(verb, verb.now) | {"limit": PAGE_ROWS}
                page = _page(verb.execute(READ_MESSAGES, values))
            if not page:
                return
            yield page
            first = page[-1][1], page[-1][2] + 1

    def _group_pages(self, handle: int, stretch: Stretch) -> Iterator[list[BulkRow]]:
        """Group after group; a page ends where it is full, also inside one."""
        first, is_over = stretch.first, False
        within, behind = 0, _BEFORE_ALL  # the head of the group that a page ended in, and the last row of that page
        while not is_over:
            page = _Page()
            self._tidy(handle)
            with self.verb(writes=False) as verb:
                one, queue = self._opened(verb, handle)
                heads, excluded = _heads(queue, _reader(one, verb, None), stretch, first)
                is_over = len(heads) < HEADS_AT_ONCE
                for head, group_id, number, ordinal in heads:
                    start = behind if head == within else _BEFORE_ALL
                    if head not in excluded and not page.fill(_members(verb, queue, head, group_id, start)):
                        is_over, first, within, behind = False, (number, ordinal), head, start
                        if page.rows[-1][GROUP] == group_id:
                            behind = page.rows[-1][SEQUENCE], page.rows[-1][OFFSET], *page.rows[-1][:DELIVERY_PLACE]
                        break
                    first = number, ordinal + 1
            if page.rows:
                yield page.rows


def _heads(
    queue: SqliteQueue, reader: Reader, stretch: Stretch, first: tuple[int, int]
) -> tuple[list[Any], Sequence[int]]:
    """The next groups of a stretch, and which of them only look whole."""
    levels = Levels(queue, reader, UNSET, logical=True, strict=False, most=HEADS_AT_ONCE)
    levels.reach = NO_END
    ends = stretch.last[0], stretch.last[1] + 1
    looked_at = levels.without_odd(Range(stretch.rank, (first[0], first[1] - 1), ends))
    bounds = _bounds(queue, stretch, first) | {"limit": HEADS_AT_ONCE}
    return queue.verb.execute(HEADS_OF_STRETCH, bounds).fetchall(), looked_at.excluded


def _members(
    verb: SqliteTransaction, queue: SqliteQueue, head: int, group_id: bytes | None, behind: tuple[int, ...]
) -> Any:
    """The rest of a group, or the one message that stands alone."""
    names = _names(verb, verb.now)
    if group_id is None:
        return verb.execute(READ_SINGLE, {"id": head, **names})
    where = dict(zip(("sequence", "start", "rank", "number", "ordinal"), behind, strict=True))
    return verb.execute(READ_GROUP, {"queue": queue.id, "group": group_id, **where, **names})


def _bounds(queue: SqliteQueue, stretch: Stretch, first: tuple[int, int]) -> dict[str, Any]:
    return {
        "queue": queue.id,
        "rank": stretch.rank,
        "number": first[0],
        "ordinal": first[1],
        "last_number": stretch.last[0],
        "last_ordinal": stretch.last[1],
    }


def _reader(handle: SqliteHandle, verb: SqliteTransaction, horizon: int | None) -> Reader:
    return Reader(handle.id, handle.connection.id, co_op=False, now=verb.now, mark_interval=0.0, horizon=horizon)
