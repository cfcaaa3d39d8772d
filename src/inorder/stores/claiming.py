"""What the verbs about claims mean: `rules.claims` applied to an application's records; and how claims are taken."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..attributes import ManagerAttributes, QueueAttributes
from ..errors import Fenced, NotFound, OptionsError, bad_argument, written
from ..message import NO_ID
from ..options import GetOptions
from ..rules import claims as rules
from ..rules.claims import Next, Record
from ..rules.grouping import NOTHING_OPEN, GroupState, state_after
from ..rules.ordering import UNSET
from ..rules.puts import Program
from . import entering
from .damage import damaged, decodes
from .process import OpenHandle
from .queue import LocalQueue
from .queued import QueuedMessage, Reader, available
from .reading import Reading
from .records import BULK_COLUMNS, BulkRow, Claim, Claimer, ClaimRequest, Claims, ClaimStart, GetRequest, Outcome, Slice
from .settling import settle
from .tables import AccountRow, ClaimRow, UnitRow
from .verb import Verb

APPLICATION_LENGTH_MAX = 256
DELIVERY = BULK_COLUMNS.index("delivery")


@dataclass(slots=True)
class OpenClaim:
    """The claim that an application has open.

    Attributes:
        state: where its reader stands in a group when the claim is confirmed.
    """

    number: int
    unit: UnitRow
    messages: int
    size: int
    state: GroupState
    planned: bool = False


@dataclass(slots=True)
class Account:
    """What is kept of one application's claims on one queue."""

    application: str
    program: Program
    epoch: int = 0
    settled: int = 0
    delivered: int = 0
    state: GroupState = NOTHING_OPEN
    open: OpenClaim | None = None

    @property
    def record(self) -> Record:
        return Record(self.epoch, self.settled, self.open is not None, self.open is not None and self.open.planned)


class Taken(NamedTuple):
    """What a claim has taken, and where its reader stands then."""

    messages: int
    size: int
    state: GroupState


# --- the records


def account_of(verb: Verb, queue: LocalQueue, application: str) -> Account | None:
    """What is kept of an application."""
    found = verb.backend.select(AccountRow, queue=queue.id, application=application)
    return _account(verb, found[0]) if found else None


def _account(verb: Verb, row: AccountRow) -> Account:
    by = Program(row.user, row.program)
    account = Account(row.application, by, row.epoch, row.settled, row.delivered, state_of(row.state))
    for one in verb.backend.select(ClaimRow, queue=row.queue, application=row.application):
        unit, state = verb.unit(one.unit), state_of(one.state)
        account.open = OpenClaim(one.number, unit, one.messages, one.size, state, bool(one.planned))
    return account


def keep(verb: Verb, queue: LocalQueue, account: Account) -> None:
    """Writes it down, with its open claim."""
    verb.durable = True
    by, key, open_claim = account.program, (queue.id, account.application), account.open
    counts = account.epoch, account.settled, account.delivered
    verb.backend.save(AccountRow(*key, by.user, by.name, *counts, _state_text(account.state)))
    if open_claim is not None:
        one = open_claim
        counted = one.number, one.messages, one.size
        verb.backend.save(ClaimRow(one.unit.id, *key, *counted, _state_text(one.state), one.planned))


def _end(verb: Verb, claim: OpenClaim, outcome: Outcome) -> None:
    """Confirms or backs out all that a claim holds, and forgets it."""
    settle(verb, claim.unit.id, outcome)
    verb.end_unit(claim.unit.id)
    verb.backend.remove_records(ClaimRow, unit=claim.unit.id)


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
        verb: Verb,
        handle: OpenHandle,
        queue: LocalQueue,
        request: ClaimRequest,
        queue_attributes: QueueAttributes,
        manager: ManagerAttributes,
        account: Account,
    ) -> None:
        self.wants, self.account = request, account
        self._unit_begun: UnitRow | None = None
        as_get = GetRequest(handle.id, request.options, account.state, UNSET, syncpoint=False)
        super().__init__(verb, handle, queue, as_get, queue_attributes, manager)

    @property
    def unit(self) -> UnitRow:
        if self._unit_begun is None:
            name = f"{self.account.application}#{self.account.settled + 1}"
            self._unit_begun = self.verb.begin_unit(self.account.program, "claim", name, self.queue.id)
        return self._unit_begun

    def _reader(self) -> Reader:
        unit = None if self._unit_begun is None else self._unit_begun.id
        application = self.wants.claimer.application
        return super()._reader()._replace(unit=unit, horizon=self.wants.horizon, application=application)

    def run_claim(self) -> Taken:
        """Takes what the request asks for."""
        options, state = self.request.options, self.account.state
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
                messages, size = messages + 1, size + row.message.length
                self._take(row, self.unit, claimed=messages)
            if options.logical:
                state = state_after(found.rows[-1].message, in_unit=True, logical=True)
                self._note_group(found.rows[0], state, self.unit, logical=True)
        return Taken(messages, size, state)

    def _whole(self, rows: Sequence[QueuedMessage]) -> Sequence[QueuedMessage]:
        """All that belongs to the group, or to the segmented message, that begins here."""
        group_id = rows[0].message.group_id
        if group_id == NO_ID:
            return rows
        return [row for row in self.queue.members(group_id) if available(row, self.reader)]


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


# --- the verbs


def begin_claims(verb: Verb, queue: LocalQueue, program: Program, application: str) -> ClaimStart:
    """An application starts: `Store.begin_claims`."""
    account = account_of(verb, queue, check_application(application)) or Account(application, program)
    account.epoch += 1
    account.program = program
    keep(verb, queue, account)
    return ClaimStart(account.epoch, account.settled, queue.counter)


def live_account(verb: Verb, queue: LocalQueue, claimer: Claimer) -> Account:
    """The account of a claimer that is not fenced."""
    account = account_of(verb, queue, claimer.application)
    if account is None:
        raise Fenced(
            f"application {written(claimer.application)} has not begun to claim on {queue.attributes.name}: an epoch "
            "of an earlier queue of this name, or of another application, does not count. Begin first",
            application=claimer.application,
            epoch=claimer.epoch,
        )
    rules.check_epoch(account.record, claimer.epoch, claimer.application)
    return account


def to_take(verb: Verb, queue: LocalQueue, request: ClaimRequest) -> tuple[Account, Claim | None]:
    """Whose claim is to be taken, or the open one, which is given again; what is done is confirmed."""
    check_options(request.options)
    check_limits(request.most, request.most_bytes)
    account = live_account(verb, queue, request.claimer)
    answer = rules.next_claim(account.record, request.start, account.application)
    if answer is Next.GIVE:
        return account, shown(account)
    if answer is Next.CONFIRM_AND_TAKE:
        confirm(verb, queue, account)
    return account, None


def taken(claiming: Claiming, taken: Taken) -> Claim | None:
    """What was taken is the open claim of the application from now on; None: nothing was."""
    account = claiming.account
    if not taken.messages:
        return None
    account.open = OpenClaim(account.settled + 1, claiming.unit, taken.messages, taken.size, taken.state)
    keep(claiming.verb, claiming.queue, account)
    return shown(account)


def confirm(verb: Verb, queue: LocalQueue, account: Account) -> int:
    """The open claim is confirmed; how many messages go."""
    done = account.open
    assert done is not None
    account.settled, account.delivered, account.state = done.number, account.delivered + done.messages, done.state
    account.open = None
    _end(verb, done, "commit")
    keep(verb, queue, account)
    return done.messages


def plan_claims(verb: Verb, queue: LocalQueue, claimer: Claimer, after: int, upto: int, most: int) -> Sequence[Slice]:
    """The slices of the open claim: `Store.plan_claims`."""
    account = live_account(verb, queue, claimer)
    if not rules.plan(account.record, after, upto, account.application):
        return []
    assert account.open is not None
    if not account.open.planned:
        account.open.planned = True
        keep(verb, queue, account)
    spans = verb.backend.spans(account.open.unit.id) if most > 1 else ()
    cut = rules.slices(account.open.messages, spans, most)
    return [Slice(upto, first, last, account.delivered) for first, last in cut]


def read_page(verb: Verb, queue: LocalQueue, claimer: Claimer, part: Slice, first: int) -> list[BulkRow]:
    """The rows of a slice from position `first` on, as many as make a page."""
    account = live_account(verb, queue, claimer)
    rules.plan(account.record, part.claim - 1, part.claim, account.application)
    assert account.open is not None
    if not 1 <= part.first <= part.last <= account.open.messages:
        allowed = f"positions from 1 to {account.open.messages}"
        raise bad_argument("part", part, allowed)
    page = verb.backend.claim_page(account.open.unit, first, part.last)
    if not page or (page[0][DELIVERY], page[-1][DELIVERY]) != (first, first + len(page) - 1):
        where = f"claim {part.claim} of {account.application} on queue {queue.attributes.name}"
        raise damaged(where, f"it does not hold all messages from position {first} on")
    return page


def settle_claims(verb: Verb, queue: LocalQueue, claimer: Claimer, upto: int) -> int:
    """Confirms: `Store.settle_claims`."""
    account = live_account(verb, queue, claimer)
    return confirm(verb, queue, account) if rules.settle(account.record, upto, account.application) else 0


def known_account(verb: Verb, queue: LocalQueue, application: str) -> Account:
    """For an operator. Raises: NotFound."""
    account = account_of(verb, queue, check_application(application))
    if account is None:
        raise NotFound(
            f"application {written(application)} never claimed anything on {queue.attributes.name}; "
            "a list of the claims has all that did",
            application=application,
        )
    return account


def finish_claims(verb: Verb, queue: LocalQueue, application: str, upto: int) -> int:
    """Confirms for an operator: `Store.finish_claims`."""
    account = known_account(verb, queue, application)
    done = rules.settle(account.record, upto, application)
    account.epoch += 1
    if done:
        return confirm(verb, queue, account)
    keep(verb, queue, account)
    return 0


def release_claims(verb: Verb, queue: LocalQueue, application: str) -> int:
    """Undoes for an operator: `Store.release_claims`."""
    account = known_account(verb, queue, application)
    account.epoch += 1
    released = 0
    if account.open is not None:
        gone, account.open = account.open, None
        account.settled, released = gone.number, gone.messages
        _end(verb, gone, "back_out")
    keep(verb, queue, account)
    return released


def leave_claimed_group(verb: Verb, queue: LocalQueue, application: str) -> bool:
    """Ends an application's being inside a group: `Store.leave_claimed_group`."""
    account = known_account(verb, queue, application)
    states = [account.state] if account.open is None else [account.state, account.open.state]
    account.epoch += 1
    account.state = NOTHING_OPEN
    if account.open is not None:
        account.open.state = NOTHING_OPEN
    if entering.leave_all(queue, application):
        verb.touch(queue)
    keep(verb, queue, account)
    return any(state.group_open or state.message_open for state in states)


def claims(verb: Verb) -> list[Claims]:
    """All applications' claims, by queue and application."""
    found = []
    for row in verb.backend.select(AccountRow):
        account = _account(verb, row)
        counts = account.epoch, account.settled, account.delivered
        name = verb.queue(row.queue).attributes.name
        found.append(Claims(name, account.application, account.program, *counts, shown(account)))
    return sorted(found, key=lambda one: (one.queue, one.application))


def shown(account: Account) -> Claim | None:
    """The open claim, for callers."""
    one = account.open
    if one is None:
        return None
    return Claim(one.number, one.messages, one.size, account.delivered, one.planned, one.unit.started_at)
