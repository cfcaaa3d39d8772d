"""What the verbs about claims mean: `rules.claims` applied to a store's record, and claims taken message by message."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, NamedTuple

from ..attributes import ManagerAttributes, QueueAttributes
from ..errors import Fenced, NotFound, OptionsError, bad_argument
from ..message import NO_ID
from ..options import GetOptions
from ..rules import claims as rules
from ..rules.claims import Next, Record
from ..rules.grouping import NOTHING_OPEN, GroupState, state_after
from ..rules.ordering import UNSET
from ..rules.puts import Program
from .base import GetRequest, Outcome
from .claims import BulkRow, Claim, Claimer, ClaimRequest, Claims, ClaimStart, Slice
from .reading import Reading
from .rows import Reader, Row, available
from .shelf import Handle, Q, Transaction, U

APPLICATION_LENGTH_MAX = 256


@dataclass(slots=True)
class OpenClaim(Generic[U]):
    """The claim that an application has open.

    Attributes:
        state: where its reader stands in a group when the claim is confirmed.
    """

    number: int
    unit: U
    messages: int
    size: int
    state: GroupState
    planned: bool = False


@dataclass(slots=True)
class Account(Generic[U]):
    """What a store keeps of one application's claims on one queue."""

    application: str
    program: Program
    epoch: int = 0
    settled: int = 0
    delivered: int = 0
    state: GroupState = NOTHING_OPEN
    open: OpenClaim[U] | None = None

    @property
    def record(self) -> Record:
        return Record(self.epoch, self.settled, self.open is not None, self.open is not None and self.open.planned)


class Taken(NamedTuple):
    """What a claim has taken, and where its reader stands then."""

    messages: int
    size: int
    state: GroupState


class Book(ABC, Generic[Q, U]):
    """What the verbs need of a store, in one transaction on one queue."""

    queue: Q

    @abstractmethod
    def account(self, application: str) -> Account[U] | None:
        """What is kept of an application."""

    @abstractmethod
    def keep(self, account: Account[U]) -> None:
        """Writes it down, with its open claim."""

    @abstractmethod
    def begin(self, account: Account[U], number: int) -> U:
        """The unit of a new claim."""

    @abstractmethod
    def end(self, claim: OpenClaim[U], outcome: Outcome) -> None:
        """Confirms or backs out all that a claim holds, and forgets it."""

    @abstractmethod
    def take(self, claiming: Claiming[Q, U]) -> Taken:
        """Takes messages: as `claiming.run` does, or in fewer statements with the same result."""

    @abstractmethod
    def place(self, row: Row, position: int) -> None:
        """A row that the claim has just taken has this position in it."""

    @abstractmethod
    def spans(self, unit: U) -> Sequence[tuple[int, int]]:
        """The first and last position of each group in a claim."""

    @abstractmethod
    def page(self, unit: U, first: int, last: int) -> list[BulkRow]:
        """The rows at these positions, or as many of the first of them as make a page."""


class Claiming(Reading[Q, U]):
    """A claim that is taken message by message, as gets would.

    Its unit begins with its first message: a call that finds nothing writes nothing.
    """

    def __init__(
        self,
        verb: Transaction[Q, U],
        handle: Handle[U],
        book: Book[Q, U],
        request: ClaimRequest,
        queue_attributes: QueueAttributes,
        manager: ManagerAttributes,
        *,
        state: GroupState,
        begin: Callable[[], U],
    ) -> None:
        self.wants, self.book, self.start_state, self._begin = request, book, state, begin
        self._unit_begun: U | None = None
        as_get = GetRequest(handle.id, request.options, state, UNSET, syncpoint=False)
        super().__init__(verb, handle, book.queue, as_get, queue_attributes, manager)

    @property
    def unit(self) -> U:
        if self._unit_begun is None:
            self._unit_begun = self._begin()
        return self._unit_begun

    def _reader(self) -> Reader:
        wants = self.wants
        return (
            super()
            ._reader()
            ._replace(unit=self._unit_begun, horizon=wants.horizon, application=wants.claimer.application)
        )

    def run_claim(self) -> Taken:
        """Takes what the request asks for."""
        options, state = self.request.options, self.start_state
        messages = size = 0
        while True:
            self.reader = self._reader()
            found = self._find(state, UNSET)
            if not found.rows:
                break
            is_inside = state.group_open or state.message_open
            if not (options.all_messages and is_inside):
                counted = self._whole(found.rows) if options.all_messages else found.rows
                total = sum(row.message.length for row in counted)
                over = messages + len(counted) > self.wants.most or size + total > self.wants.most_bytes
                if messages and over:
                    break
            for row in found.rows:
                self._take(row, self.unit)
                messages, size = messages + 1, size + row.message.length
                self.book.place(row, messages)
            if options.logical:
                state = state_after(found.rows[-1].message, in_unit=True, logical=True)
                self._note_group(found.rows[0], state, self.unit, logical=True)
        return Taken(messages, size, state)

    def _whole(self, rows: Sequence[Row]) -> Sequence[Row]:
        """All that belongs to the group, or to the segmented message, that begins here."""
        group_id = rows[0].message.group_id
        if group_id == NO_ID:
            return rows
        return [row for row in self.queue.group(group_id) if available(row, self.reader)]


def check_application(application: object) -> str:
    """Raises: ArgumentError."""
    if not isinstance(application, str) or not 0 < len(application) <= APPLICATION_LENGTH_MAX:
        raise bad_argument("application", application, f"a text of 1 to {APPLICATION_LENGTH_MAX} characters")
    return application


def check_options(options: GetOptions) -> None:
    """Raises: OptionsError, what does not go with reading in bulk."""
    allowed = GetOptions(
        logical=options.logical,
        complete=options.complete,
        all_segments=options.all_segments,
        all_messages=options.all_messages,
        read_order=options.read_order,
    )
    if options != allowed:
        raise OptionsError("messages are read in bulk by logical, complete, all_segments, all_messages, read_order")
    if not options.logical and (options.complete or options.all_segments or options.all_messages):
        raise OptionsError("in bulk, whole groups and whole messages are read in logical order: add logical=True")


def check_limits(most: int, most_bytes: int) -> None:
    """Raises: ArgumentError."""
    for name, value in (("most", most), ("most_bytes", most_bytes)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise bad_argument(name, value, "an integer from 1 on")


def begin_claims(book: Book[Q, U], program: Program, application: str, horizon: int) -> ClaimStart:
    """An application starts: `ClaimVerbs.begin_claims`."""
    account = book.account(check_application(application)) or Account(application, program)
    account.epoch += 1
    account.program = program
    book.keep(account)
    return ClaimStart(account.epoch, account.settled, horizon)


def live_account(book: Book[Q, U], claimer: Claimer) -> Account[U]:
    """The account of a claimer that is not fenced."""
    account = book.account(claimer.application)
    if account is None:
        raise Fenced(
            f"application {claimer.application!r} has not begun to claim on {book.queue.attributes.name}: an epoch of "
            "an earlier queue of this name, or of another application, does not count. Begin first",
            application=claimer.application,
            epoch=claimer.epoch,
        )
    rules.check_epoch(account.record, claimer.epoch, claimer.application)
    return account


def claim(
    verb: Transaction[Q, U],
    handle: Handle[U],
    book: Book[Q, U],
    request: ClaimRequest,
    queue_attributes: QueueAttributes,
    manager: ManagerAttributes,
) -> Claim | None:
    """The next claim: `ClaimVerbs.claim`."""
    check_options(request.options)
    check_limits(request.most, request.most_bytes)
    account = live_account(book, request.claimer)
    answer = rules.next_claim(account.record, request.start, account.application)
    if answer is Next.GIVE:
        return shown(account)
    if answer is Next.CONFIRM_AND_TAKE:
        confirm(book, account)
    begin = partial(book.begin, account, account.settled + 1)
    claiming = Claiming(verb, handle, book, request, queue_attributes, manager, state=account.state, begin=begin)
    taken = book.take(claiming)
    if not taken.messages:
        return None
    account.open = OpenClaim(account.settled + 1, claiming.unit, taken.messages, taken.size, taken.state)
    book.keep(account)
    return shown(account)


def confirm(book: Book[Q, U], account: Account[U]) -> int:
    """The open claim is confirmed; how many messages go."""
    done = account.open
    assert done is not None
    account.settled, account.delivered, account.state = done.number, account.delivered + done.messages, done.state
    account.open = None
    book.end(done, "commit")
    book.keep(account)
    return done.messages


def plan_claims(book: Book[Q, U], claimer: Claimer, after: int, upto: int, most: int) -> Sequence[Slice]:
    """The slices of the open claim: `ClaimVerbs.plan_claims`."""
    account = live_account(book, claimer)
    if not rules.plan(account.record, after, upto, account.application):
        return []
    assert account.open is not None
    if not account.open.planned:
        account.open.planned = True
        book.keep(account)
    spans = book.spans(account.open.unit) if most > 1 else ()
    cut = rules.slices(account.open.messages, spans, most)
    return [Slice(upto, first, last, account.delivered) for first, last in cut]


def read_page(book: Book[Q, U], claimer: Claimer, part: Slice, first: int) -> list[BulkRow]:
    """The rows of a slice from position `first` on, as many as make a page."""
    account = live_account(book, claimer)
    rules.plan(account.record, part.claim - 1, part.claim, account.application)
    assert account.open is not None
    if not 1 <= part.first <= part.last <= account.open.messages:
        allowed = f"positions from 1 to {account.open.messages}"
        raise bad_argument("part", part, allowed)
    return book.page(account.open.unit, first, part.last)


def settle_claims(book: Book[Q, U], claimer: Claimer, upto: int) -> int:
    """Confirms: `ClaimVerbs.settle_claims`."""
    account = live_account(book, claimer)
    return confirm(book, account) if rules.settle(account.record, upto, account.application) else 0


def known_account(book: Book[Q, U], application: str) -> Account[U]:
    """For an operator. Raises: NotFound."""
    account = book.account(check_application(application))
    if account is None:
        raise NotFound(
            f"application {application!r} never claimed anything on {book.queue.attributes.name}; "
            "a list of the claims has all that did",
            application=application,
        )
    return account


def finish_claims(book: Book[Q, U], application: str, upto: int) -> int:
    """Confirms for an operator: `ClaimVerbs.finish_claims`."""
    account = known_account(book, application)
    done = rules.settle(account.record, upto, application)
    account.epoch += 1
    if done:
        return confirm(book, account)
    book.keep(account)
    return 0


def release_claims(book: Book[Q, U], application: str) -> int:
    """Undoes for an operator: `ClaimVerbs.release_claims`."""
    account = known_account(book, application)
    account.epoch += 1
    released = 0
    if account.open is not None:
        gone, account.open = account.open, None
        account.settled, released = gone.number, gone.messages
        book.end(gone, "back_out")
    book.keep(account)
    return released


def leave_claimed_group(verb: Transaction[Q, U], book: Book[Q, U], application: str) -> bool:
    """Ends an application's being inside a group: `ClaimVerbs.leave_claimed_group`."""
    account = known_account(book, application)
    states = [account.state] if account.open is None else [account.state, account.open.state]
    account.epoch += 1
    account.state = NOTHING_OPEN
    if account.open is not None:
        account.open.state = NOTHING_OPEN
    verb.leave_all(book.queue, application)
    book.keep(account)
    return any(state.group_open or state.message_open for state in states)


def shown(account: Account[U]) -> Claim | None:
    """The open claim, for callers."""
    one = account.open
    if one is None:
        return None
    return Claim(one.number, one.messages, one.size, account.delivered, one.planned, one.unit.started_at)


def seen(queue: str, account: Account[U]) -> Claims:
    """An account, for an operator."""
    return Claims(
        queue,
        account.application,
        account.program,
        account.epoch,
        account.settled,
        account.delivered,
        shown(account),
    )


def page_end(lengths: Iterator[int], rows_max: int, bytes_max: int) -> int:
    """How many rows of these lengths make a page: at least one."""
    count = size = 0
    for length in lengths:
        if count and (count >= rows_max or size + length > bytes_max):
            break
        count, size = count + 1, size + length
    return count
