"""The operations on claims: they apply `rules.claims` to an application's records, and take messages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...errors import Fenced, NotFound, ObjectInUse, OptionsError, bad_argument, written
from ...model.attributes import QueueAttributes
from ...model.message import NO_ID, Message
from ...model.options import GetOptions, check_whole
from ...rules import claims as rules
from ...rules.channels import CHANNEL
from ...rules.claims import ClaimRecord, Next
from ...rules.grouping import NOTHING_OPEN, GroupState, is_head, state_after
from ...rules.lifecycle import Event
from ...rules.ordering import UNSET
from ...rules.puts import Program
from ..seam.bulk_page import BulkPage
from ..seam.damage import damaged, decodes
from ..seam.looking import group_of
from ..seam.queued import QueuedMessage, Reader, as_got, available
from ..seam.records import Claim, Claimer, ClaimRequest, Claims, ClaimStart, GetRequest, Outcome, Slice
from ..seam.surveying import members_from
from ..seam.tables import AccountRow, ClaimRow, SentRow, UnitRow, application_reader
from . import group_readers
from .operation import Operation
from .process import OpenHandle
from .queue import LocalQueue
from .reading import Reading
from .settling import happen, settle

APPLICATION_LENGTH_MAX = 256


@dataclass(slots=True)
class HeldClaim:
    """A claim that holds messages.

    Attributes:
        state: the position of its reader in a group once the claim is confirmed.
        more: whether its limits left messages on the queue.
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
    """The record of one application's claims on one queue.

    Attributes:
        held: the claims that hold messages, by number: a settled one, the open one, one taken ahead.
        delivers: whether confirmed messages have reached their reader; see `Claimer`.
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
    """The messages of a new claim, the position of its reader after them, and whether its limits left messages on the
    queue.
    """

    messages: int
    size: int
    state: GroupState
    more: bool


# --- the records


def account_of(operation: Operation, queue: LocalQueue, application: str) -> Account | None:
    """Returns an application's account on a queue, or None."""
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
    """Saves the progress of an application."""
    operation.durable = True
    by = account.program
    counts = account.epoch, account.settled, account.delivered
    state = _state_text(account.state)
    operation.backend.save(AccountRow(queue.id, account.application, by.user, by.name, *counts, state))


def _keep_claim(operation: Operation, queue: LocalQueue, account: Account, one: HeldClaim) -> None:
    """Saves a claim that is new or has been planned."""
    operation.durable = True
    counted = one.number, one.messages, one.size
    state = _state_text(one.state)
    operation.backend.save(ClaimRow(one.unit.id, queue.id, account.application, *counted, state, one.more, one.planned))


def _end(operation: Operation, account: Account, claim: HeldClaim, outcome: Outcome) -> int:
    """Confirms or backs out everything that a claim holds, and deletes it. Returns the number of messages."""
    settle(operation, claim.unit.id, outcome, was_given=claim is not account.ahead, delivers=account.delivers)
    operation.end_unit(claim.unit.id)
    operation.backend.remove_records(ClaimRow, unit=claim.unit.id)
    account.held.remove(claim)
    return claim.messages


def _remove_over(operation: Operation, account: Account) -> int:
    """Removes the messages of settled claims. Returns how many."""
    return sum(_end(operation, account, one, "commit") for one in account.held[:] if one.number <= account.settled)


def _return_ahead(operation: Operation, account: Account) -> int:
    """Returns the messages of the claim taken ahead to their places. Returns how many."""
    return 0 if account.ahead is None else _end(operation, account, account.ahead, "back_out")


def _is_inside(state: GroupState) -> bool:
    """Whether a reader with this state is inside a group, or a message in segments."""
    return state.group_open or state.message_open


def _state_text(state: GroupState) -> str:
    return json.dumps([state.group_id.hex(), *state[1:]])


@decodes("an application's position in a group")
def state_of(text: str) -> GroupState:
    """Decodes a reader's stored position. Raises: StoreDamaged."""
    group_id, *rest = json.loads(text)
    return GroupState(bytes.fromhex(group_id), *rest)


# --- taking


class Claiming(Reading):
    """Takes a claim message by message, as gets would.

    Its unit begins with the first message, so a claim that finds nothing writes nothing.
    """

    def __init__(
        self,
        operation: Operation,
        handle: OpenHandle,
        queue: LocalQueue,
        request: ClaimRequest,
        queue_attributes: QueueAttributes,
        account: Account,
    ) -> None:
        self.wants, self.account = request, account
        before = account.held[-1] if request.ahead else None
        self.state = account.state if before is None else before.state
        self.number = account.settled + 1 if before is None else before.number + 1
        self._unit_begun: UnitRow | None = None
        as_get = GetRequest(handle.id, request.options, self.state, UNSET, syncpoint=False)
        super().__init__(operation, handle, queue, as_get, queue_attributes)

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
        """Takes the messages of the request."""
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
                    first = self.operation.backend.read([first], 0)[0]  # selectors of other readers may need it
                self._note_group(first, state, self.unit, logical=True)
        return ClaimedPart(messages, size, state, more)

    def _whole(self, rows: Sequence[QueuedMessage]) -> Sequence[QueuedMessage]:
        """Returns all available members of the group, or segments of the message, that begins here."""
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
    """Raises: OptionsError, for options that bulk reads do not support."""
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


# --- the operations


def begin_claims(operation: Operation, queue: LocalQueue, program: Program, application: str) -> ClaimStart:
    """Starts an application: `Store.begin_claims`."""
    account = account_of(operation, queue, check_application(application)) or Account(application, program)
    _remove_over(operation, account)
    _return_ahead(operation, account)
    account.epoch += 1
    account.program = program
    keep(operation, queue, account)
    return ClaimStart(account.epoch, account.settled, queue.counter)


def live_account(operation: Operation, queue: LocalQueue, claimer: Claimer) -> Account:
    """Returns the account of a claimer. Raises: Fenced."""
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
    """Confirms finished claims. Returns the account, a held claim to return instead, and whether a new one may be
    taken.
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
        _note_done(account)
        keep(operation, queue, account)
    assert account.open is not None
    return account, shown(account, account.open), False


def _may_take_ahead(account: Account, start: int) -> bool:
    """Whether to take the next claim ahead. Not from inside a group, where a reader follows the order of gets."""
    if not rules.takes_ahead(account.record, start, account.application):
        return False
    assert account.open is not None
    return not _is_inside(account.open.state)


def taken(claiming: Claiming, taken: ClaimedPart) -> Claim | None:
    """Records the taken messages as a claim of the application; None: there were none."""
    account = claiming.account
    if not taken.messages:
        return None
    claim = HeldClaim(claiming.number, claiming.unit, *taken)
    account.held.append(claim)
    _keep_claim(claiming.operation, claiming.queue, account, claim)
    return shown(account, claim)


def take_out(claiming: Claiming, part: ClaimedPart) -> tuple[ClaimedPart, Sequence[Message]]:
    """Removes the non-persistent messages of a claim that is not recorded yet. Returns the rest, and those messages.

    On disk when the call returns: a machine that fails must not bring back messages that were sent.
    """
    operation, queue, unit = claiming.operation, claiming.queue, claiming.unit
    rows = sorted(operation.backend.rows(unit=unit.id), key=lambda row: row.claimed)
    gone, kept = ([row for row in rows if bool(row.message.persistent) is stays] for stays in (False, True))
    if not gone:
        return part, ()
    operation.durable = True
    messages = [
        as_got(row, operation.now).with_values(backout_count=0, place=None) for row in operation.backend.read(gone)
    ]
    if kept:
        for row in gone:
            happen(operation, queue, row, Event.CONFIRM)
        for position, row in enumerate(kept, 1):
            if row.claimed != position:
                operation.backend.write(row, row._replace(claimed=position))
    else:
        settle(operation, unit.id, "commit")
        operation.end_unit(unit.id)
    size = sum(row.message.length for row in gone)
    return part._replace(messages=len(kept), size=part.size - size), messages


def _note_done(account: Account) -> None:
    """Marks the open claim as settled."""
    done = account.open
    assert done is not None
    account.settled, account.delivered, account.state = done.number, account.delivered + done.messages, done.state


def confirm(operation: Operation, queue: LocalQueue, account: Account) -> int:
    """Confirms the open claim. Returns how many messages were removed, including those of earlier settled claims."""
    _note_done(account)
    keep(operation, queue, account)
    return _remove_over(operation, account)


def plan_claims(
    operation: Operation, queue: LocalQueue, claimer: Claimer, after: int, upto: int, most: int
) -> Sequence[Slice]:
    """Returns the slices of the open claim: `Store.plan_claims`."""
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
    """Returns the rows of a slice from position `first` on, up to a page."""
    account = live_account(operation, queue, claimer)
    rules.plan(account.record, part.claim - 1, part.claim, account.application)
    assert account.open is not None
    if not 1 <= part.first <= part.last <= account.open.messages:
        allowed = f"positions from 1 to {account.open.messages}"
        raise bad_argument("part", part, allowed)
    unit = account.open.unit
    if claimer.application.startswith(CHANNEL) or not claimer.delivers:  # the time that they spend here counts
        unit = unit._replace(started_at=operation.now)
    page = operation.backend.claim_page(unit, first, part.last)
    positions = page.column("delivery")
    if not page or (positions[0], positions[-1]) != (first, first + len(page) - 1):
        where = f"claim {part.claim} of {account.application} on queue {queue.attributes.name}"
        raise damaged(where, f"it must hold all messages from position {first} on")
    return page


def settle_claims(operation: Operation, queue: LocalQueue, claimer: Claimer, upto: int) -> int:
    """Confirms claims: `Store.settle_claims`."""
    account = live_account(operation, queue, claimer)
    if rules.settle(account.record, upto, account.application):
        return confirm(operation, queue, account)
    return _remove_over(operation, account) if upto == account.settled else 0


def return_ahead(operation: Operation, queue: LocalQueue, claimer: Claimer) -> int:
    """Returns the messages of the claim taken ahead: `Store.return_ahead`."""
    return _return_ahead(operation, live_account(operation, queue, claimer))


def known_account(operation: Operation, queue: LocalQueue, application: str) -> Account:
    """Returns an application's account, for an operator. Raises: NotFound."""
    account = account_of(operation, queue, check_application(application))
    if account is None:
        raise NotFound(
            f"application {written(application)} has never claimed messages on {queue.attributes.name}; the list of "
            "claims shows the applications that have",
            application=application,
        )
    return account


def refuse_channel(operation: Operation, queue: LocalQueue, application: str) -> None:
    """Raises: ObjectInUse 2042, for a channel: its receiver may have the claimed messages, and must be asked first."""
    if operation.backend.select(SentRow, queue=queue.id, channel=application.removeprefix(CHANNEL)):
        raise ObjectInUse(
            f"{application} has batches at another queue manager: `inorder channel resolve` asks it about the last one",
            queue=queue.attributes.name,
        )


def finish_claims(operation: Operation, queue: LocalQueue, application: str, upto: int) -> int:
    """Confirms claims for an operator: `Store.finish_claims`."""
    account = known_account(operation, queue, application)
    done = rules.settle(account.record, upto, application)
    account.epoch += 1
    _return_ahead(operation, account)
    if done:
        return confirm(operation, queue, account)
    keep(operation, queue, account)
    return _remove_over(operation, account)


def release_claims(operation: Operation, queue: LocalQueue, application: str) -> int:
    """Backs out claims for an operator: `Store.release_claims`."""
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
    """Makes an application leave its group: `Store.leave_claimed_group`."""
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
    """Returns all applications' claims, by queue and application."""
    found = []
    for row in operation.backend.select(AccountRow):
        account = _account(operation, row)
        counts = account.epoch, account.settled, account.delivered
        name = operation.queue(row.queue).attributes.name
        held = tuple(shown(account, one) for one in account.held)
        found.append(Claims(name, account.application, account.program, *counts, held))
    return sorted(found, key=lambda one: (one.queue, one.application))


def shown(account: Account, claim: HeldClaim) -> Claim:
    """Returns a claim in the form that callers get."""
    one, before = claim, account.delivered
    if one.number > account.settled:
        before += sum(other.messages for other in account.held if account.settled < other.number < one.number)
    else:
        before -= one.messages
    return Claim(one.number, one.messages, one.size, before, one.more, one.planned, one.unit.started_at)
