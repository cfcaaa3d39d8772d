"""The verbs about claims: they apply `rules.claims` to an application's records, and take claims."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...errors import Fenced, NotFound, ObjectInUse, OptionsError, bad_argument, written
from ...model.attributes import ManagerAttributes, QueueAttributes
from ...model.message import NO_ID
from ...model.options import GetOptions, check_whole
from ...rules import claims as rules
from ...rules.channels import CHANNEL
from ...rules.claims import ClaimRecord, Next
from ...rules.grouping import NOTHING_OPEN, GroupState, is_head, state_after
from ...rules.ordering import UNSET
from ...rules.puts import Program
from ..seam.bulk_page import BulkPage
from ..seam.damage import damaged, decodes
from ..seam.looking import group_of
from ..seam.queued import QueuedMessage, Reader, available
from ..seam.records import Claim, Claimer, ClaimRequest, Claims, ClaimStart, GetRequest, Outcome, Slice
from ..seam.surveying import members_from
from ..seam.tables import AccountRow, ClaimRow, SentRow, UnitRow, application_reader
from . import group_readers
from .operation import Operation
from .process import OpenHandle
from .queue import LocalQueue
from .reading import Reading
from .settling import settle

APPLICATION_LENGTH_MAX = 256


@dataclass(slots=True)
class HeldClaim:
    """A claim that holds messages.

    Attributes:
        state: where its reader stands in a group when the claim is confirmed.
        more: its limits have left messages behind.
    """

    number: int
    unit: UnitRow
    messages: int
    size: int
    state: GroupState
    more: bool
    planned: bool = False


@dataclass(slots=True)
class Account:
    """What is kept of one application's claims on one queue.

    Attributes:
        held: the claims that hold messages, by number: one that is over, the open one, one that was taken ahead.
        delivers: what is confirmed now has reached its reader; see `Claimer`.
    """

    application: str
    program: Program
    epoch: int = 0
    settled: int = 0
    delivered: int = 0
    state: GroupState = NOTHING_OPEN
    held: list[HeldClaim] = field(default_factory=list)
    delivers: bool = True

    def claim(self, number: int) -> HeldClaim | None:
        return next((one for one in self.held if one.number == number), None)

    @property
    def open(self) -> HeldClaim | None:
        return self.claim(self.settled + 1)

    @property
    def ahead(self) -> HeldClaim | None:
        return self.claim(self.settled + 2)

    @property
    def record(self) -> ClaimRecord:
        one = self.open
        return ClaimRecord(self.epoch, self.settled, one is not None, one is not None and one.planned, bool(self.ahead))


class ClaimedPart(NamedTuple):
    """What a claim has taken, where its reader stands then, and whether its limits have left messages behind."""

    messages: int
    size: int
    state: GroupState
    more: bool


# --- the records


def account_of(operation: Operation, queue: LocalQueue, application: str) -> Account | None:
    """What is kept of an application."""
    found = operation.backend.select(AccountRow, queue=queue.id, application=application)
    return _account(operation, found[0]) if found else None


def _account(operation: Operation, row: AccountRow) -> Account:
    by = Program(row.user, row.program)
    account = Account(row.application, by, row.epoch, row.settled, row.delivered, state_of(row.state))
    for one in operation.backend.select(ClaimRow, queue=row.queue, application=row.application):
        unit, state = operation.unit(one.unit), state_of(one.state)
        held = HeldClaim(one.number, unit, one.messages, one.size, state, bool(one.more), bool(one.planned))
        account.held.append(held)
    account.held.sort(key=lambda one: one.number)
    return account


def keep(operation: Operation, queue: LocalQueue, account: Account) -> None:
    """Writes down how far an application has come."""
    operation.durable = True
    by = account.program
    counts = account.epoch, account.settled, account.delivered
    state = _state_text(account.state)
    operation.backend.save(AccountRow(queue.id, account.application, by.user, by.name, *counts, state))


def _keep_claim(operation: Operation, queue: LocalQueue, account: Account, one: HeldClaim) -> None:
    """Writes down a claim that is new, or was planned."""
    operation.durable = True
    counted = one.number, one.messages, one.size
    state = _state_text(one.state)
    operation.backend.save(ClaimRow(one.unit.id, queue.id, account.application, *counted, state, one.more, one.planned))


def _end(operation: Operation, account: Account, claim: HeldClaim, outcome: Outcome) -> int:
    """Confirms or backs out all that a claim holds, and forgets it; how many messages."""
    settle(operation, claim.unit.id, outcome, was_given=claim is not account.ahead, delivers=account.delivers)
    operation.end_unit(claim.unit.id)
    operation.backend.remove_records(ClaimRow, unit=claim.unit.id)
    account.held.remove(claim)
    return claim.messages


def _remove_over(operation: Operation, account: Account) -> int:
    """The messages of claims that are over go; how many."""
    return sum(_end(operation, account, one, "commit") for one in account.held[:] if one.number <= account.settled)


def _return_ahead(operation: Operation, account: Account) -> int:
    """The messages of the claim that was taken ahead return to their places; how many."""
    return 0 if account.ahead is None else _end(operation, account, account.ahead, "back_out")


def _is_inside(state: GroupState) -> bool:
    """Whether a reader in this state has begun a group, or a message in segments, and not finished it."""
    return state.group_open or state.message_open


def _state_text(state: GroupState) -> str:
    return json.dumps([state.group_id.hex(), *state[1:]])


@decodes("where an application stands")
def state_of(text: str) -> GroupState:
    """Where a reader stands, as it is kept. Raises: StoreDamaged."""
    group_id, *rest = json.loads(text)
    return GroupState(bytes.fromhex(group_id), *rest)


# --- taking


class Claiming(Reading):
    """A claim that is taken message by message, as gets would.

    Its unit begins with its first message: a call that finds nothing writes nothing.
    """

    def __init__(
        self,
        operation: Operation,
        handle: OpenHandle,
        queue: LocalQueue,
        request: ClaimRequest,
        queue_attributes: QueueAttributes,
        manager: ManagerAttributes,
        account: Account,
    ) -> None:
        self.wants, self.account = request, account
        before = account.held[-1] if request.ahead else None
        self.state = account.state if before is None else before.state
        self.number = account.settled + 1 if before is None else before.number + 1
        self._unit_begun: UnitRow | None = None
        as_get = GetRequest(handle.id, request.options, self.state, UNSET, syncpoint=False)
        super().__init__(operation, handle, queue, as_get, queue_attributes, manager)

    @property
    def unit(self) -> UnitRow:
        if self._unit_begun is None:
            name = f"{self.account.application}#{self.number}"
            self._unit_begun = self.operation.begin_unit(self.account.program, "claim", name, self.queue.id)
        return self._unit_begun

    def _reader(self) -> Reader:
        unit = None if self._unit_begun is None else self._unit_begun.id
        application = self.wants.claimer.application
        earlier = tuple(one.unit.id for one in self.account.held)
        return (
            super()
            ._reader()
            ._replace(unit=unit, horizon=self.wants.horizon, application=application, earlier_units=earlier)
        )

    def run_claim(self) -> ClaimedPart:
        """Takes what the request asks for."""
        options, state = self.request.options, self.state
        messages = size = 0
        more = False
        while not more:
            self.reader = self._reader()
            found = self._find(state, UNSET)
            if not found.rows:
                break
            if not (options.all_messages and _is_inside(state)):
                counted = self._whole(found.rows) if options.all_messages else found.rows
                total = sum(row.message.length for row in counted)
                over = messages + len(counted) > self.wants.most or size + total > self.wants.most_bytes
                if messages and over:
                    more = True
                    continue
            for row in found.rows:
                messages, size = messages + 1, size + row.message.length
                self._take(row, self.unit, claimed=messages)
            if options.logical:
                state = state_after(found.rows[-1].message, in_unit=True, logical=True)
                first = found.rows[0]
                if is_head(first.message) and (state.group_open or state.message_open):
                    first = self.operation.backend.read([first], 0)[0]  # others may choose by what is in it
                self._note_group(first, state, self.unit, logical=True)
        return ClaimedPart(messages, size, state, more)

    def _whole(self, rows: Sequence[QueuedMessage]) -> Sequence[QueuedMessage]:
        """All that belongs to the group, or to the segmented message, that begins here."""
        head = rows[0]
        if group_of(head.message) == NO_ID:
            return rows
        there = self.queue.members(head.message.group_id)
        return members_from(head, (row for row in there if available(row, self.reader)))


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
        raise OptionsError(
            "bulk reads take only these options: logical, complete, all_segments, all_messages, read_order"
        )
    if not options.logical and (options.complete or options.all_segments or options.all_messages):
        raise OptionsError("bulk reads of whole groups and whole messages need logical=True")


def check_limits(most: int, most_bytes: int) -> None:
    """Raises: ArgumentError."""
    for name, value in (("most", most), ("most_bytes", most_bytes)):
        check_whole(name, value, 1)


# --- the verbs


def begin_claims(operation: Operation, queue: LocalQueue, program: Program, application: str) -> ClaimStart:
    """An application starts: `Store.begin_claims`."""
    account = account_of(operation, queue, check_application(application)) or Account(application, program)
    _remove_over(operation, account)
    _return_ahead(operation, account)
    account.epoch += 1
    account.program = program
    keep(operation, queue, account)
    return ClaimStart(account.epoch, account.settled, queue.counter)


def live_account(operation: Operation, queue: LocalQueue, claimer: Claimer) -> Account:
    """The account of a claimer that is not fenced."""
    account = account_of(operation, queue, claimer.application)
    if account is None:
        raise Fenced(
            f"application {written(claimer.application)} has not begun to claim on {queue.attributes.name}: call "
            "begin first. An epoch of an earlier queue of this name, or of another application, is not valid",
            application=claimer.application,
            epoch=claimer.epoch,
        )
    rules.check_epoch(account.record, claimer.epoch, claimer.application)
    account.delivers = claimer.delivers
    return account


def to_take(operation: Operation, queue: LocalQueue, request: ClaimRequest) -> tuple[Account, Claim | None, bool]:
    """Whose claim is to be taken; or one that is held already and is given; and whether there is anything to take.

    What is done is confirmed.
    """
    check_options(request.options)
    check_limits(request.most, request.most_bytes)
    account = live_account(operation, queue, request.claimer)
    if request.ahead:
        takes = _may_take_ahead(account, request.start)
        if takes:
            _remove_over(operation, account)
        return account, None, takes
    answer = rules.next_claim(account.record, request.start, account.application)
    if answer in (Next.TAKE, Next.CONFIRM_AND_TAKE):
        if answer is Next.CONFIRM_AND_TAKE:
            confirm(operation, queue, account)
        return account, None, True
    if answer is Next.CONFIRM_AND_GIVE:
        _remove_over(operation, account)  # of a claim before, if nobody has come to it
        _note_done(account)
        keep(operation, queue, account)
    assert account.open is not None
    return account, shown(account, account.open), False


def _may_take_ahead(account: Account, start: int) -> bool:
    """Whether the next claim is taken ahead: not from inside a group, where a reader goes on in the order of gets."""
    if not rules.takes_ahead(account.record, start, account.application):
        return False
    assert account.open is not None
    return not _is_inside(account.open.state)


def taken(claiming: Claiming, taken: ClaimedPart) -> Claim | None:
    """What was taken is a claim of the application from now on; None: nothing was."""
    account = claiming.account
    if not taken.messages:
        return None
    claim = HeldClaim(claiming.number, claiming.unit, *taken)
    account.held.append(claim)
    _keep_claim(claiming.operation, claiming.queue, account, claim)
    return shown(account, claim)


def _note_done(account: Account) -> None:
    """The open claim is over."""
    done = account.open
    assert done is not None
    account.settled, account.delivered, account.state = done.number, account.delivered + done.messages, done.state


def confirm(operation: Operation, queue: LocalQueue, account: Account) -> int:
    """The open claim is confirmed; how many messages go, with those of a claim that was over before."""
    _note_done(account)
    keep(operation, queue, account)
    return _remove_over(operation, account)


def plan_claims(
    operation: Operation, queue: LocalQueue, claimer: Claimer, after: int, upto: int, most: int
) -> Sequence[Slice]:
    """The slices of the open claim: `Store.plan_claims`."""
    account = live_account(operation, queue, claimer)
    if not most:
        if rules.skip(account.record, upto, account.application):
            account.settled = upto
            keep(operation, queue, account)
        return []
    if not rules.plan(account.record, after, upto, account.application):
        return []
    assert account.open is not None
    if not account.open.planned:
        account.open.planned = True
        _keep_claim(operation, queue, account, account.open)
    spans = operation.backend.spans(account.open.unit) if most > 1 else ()
    cut = rules.slices(account.open.messages, spans, most)
    return [Slice(upto, first, last, account.delivered) for first, last in cut]


def read_page(operation: Operation, queue: LocalQueue, claimer: Claimer, part: Slice, first: int) -> BulkPage:
    """The rows of a slice from position `first` on, as many as make a page."""
    account = live_account(operation, queue, claimer)
    rules.plan(account.record, part.claim - 1, part.claim, account.application)
    assert account.open is not None
    if not 1 <= part.first <= part.last <= account.open.messages:
        allowed = f"positions from 1 to {account.open.messages}"
        raise bad_argument("part", part, allowed)
    page = operation.backend.claim_page(account.open.unit, first, part.last)
    positions = page.column("delivery")
    if not page or (positions[0], positions[-1]) != (first, first + len(page) - 1):
        where = f"claim {part.claim} of {account.application} on queue {queue.attributes.name}"
        raise damaged(where, f"it must hold all messages from position {first} on")
    return page


def settle_claims(operation: Operation, queue: LocalQueue, claimer: Claimer, upto: int) -> int:
    """Confirms: `Store.settle_claims`."""
    account = live_account(operation, queue, claimer)
    if rules.settle(account.record, upto, account.application):
        return confirm(operation, queue, account)
    return _remove_over(operation, account) if upto == account.settled else 0


def return_ahead(operation: Operation, queue: LocalQueue, claimer: Claimer) -> int:
    """Returns the claim that was taken ahead: `Store.return_ahead`."""
    return _return_ahead(operation, live_account(operation, queue, claimer))


def known_account(operation: Operation, queue: LocalQueue, application: str) -> Account:
    """For an operator. Raises: NotFound."""
    account = account_of(operation, queue, check_application(application))
    if account is None:
        raise NotFound(
            f"application {written(application)} has never claimed messages on {queue.attributes.name}; the list of "
            "claims shows the applications that have",
            application=application,
        )
    return account


def refuse_channel(operation: Operation, queue: LocalQueue, application: str) -> None:
    """What a channel has claimed may be at its receiver's, which must be asked first. Raises: ObjectInUse 2042."""
    if operation.backend.select(SentRow, queue=queue.id, channel=application.removeprefix(CHANNEL)):
        raise ObjectInUse(
            f"{application} has batches at another queue manager: `inorder channel resolve` asks it about the last one",
            queue=queue.attributes.name,
        )


def finish_claims(operation: Operation, queue: LocalQueue, application: str, upto: int) -> int:
    """Confirms for an operator: `Store.finish_claims`."""
    account = known_account(operation, queue, application)
    done = rules.settle(account.record, upto, application)
    account.epoch += 1
    _return_ahead(operation, account)
    if done:
        return confirm(operation, queue, account)
    keep(operation, queue, account)
    return _remove_over(operation, account)


def release_claims(operation: Operation, queue: LocalQueue, application: str) -> int:
    """Undoes for an operator: `Store.release_claims`."""
    account = known_account(operation, queue, application)
    account.epoch += 1
    _remove_over(operation, account)
    released = _return_ahead(operation, account)
    if account.open is not None:
        released += _end(operation, account, account.open, "back_out")
        account.settled += 1
    keep(operation, queue, account)
    return released


def leave_claimed_group(operation: Operation, queue: LocalQueue, application: str) -> bool:
    """Ends an application's being inside a group: `Store.leave_claimed_group`."""
    account = known_account(operation, queue, application)
    states = [account.state, *(one.state for one in account.held)]
    account.epoch += 1
    account.state = NOTHING_OPEN
    for one in account.held:
        one.state = NOTHING_OPEN
        _keep_claim(operation, queue, account, one)
    if group_readers.leave_all(queue, application_reader(application)):
        operation.touch(queue)
    keep(operation, queue, account)
    return any(map(_is_inside, states))


def claims(operation: Operation) -> list[Claims]:
    """All applications' claims, by queue and application."""
    found = []
    for row in operation.backend.select(AccountRow):
        account = _account(operation, row)
        counts = account.epoch, account.settled, account.delivered
        name = operation.queue(row.queue).attributes.name
        held = tuple(shown(account, one) for one in account.held)
        found.append(Claims(name, account.application, account.program, *counts, held))
    return sorted(found, key=lambda one: (one.queue, one.application))


def shown(account: Account, claim: HeldClaim) -> Claim:
    """A claim, for callers."""
    one, before = claim, account.delivered
    if one.number > account.settled:
        before += sum(other.messages for other in account.held if account.settled < other.number < one.number)
    else:
        before -= one.messages
    return Claim(one.number, one.messages, one.size, before, one.more, one.planned, one.unit.started_at)
