"""The part of the seam above the verbs for many messages: claims, surveys, channels, stagings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from .bulk_page import BulkPage
from .records import (
    Carrying,
    ChannelBatch,
    ChannelNow,
    Claim,
    Claimer,
    ClaimRequest,
    Claims,
    ClaimStart,
    LedgerKey,
    NextBatch,
    Noted,
    Outcome,
    Receipt,
    Received,
    Sender,
    Settled,
    Slice,
    Staged,
    StageRequest,
    Stretch,
    Survey,
    SurveyRequest,
)


class BulkStore(Protocol):
    """The verbs about many messages of a store; part of `protocol.Store`, where the common errors stand."""

    # --- claims and surveys

    def begin_claims(self, handle: int, application: str) -> ClaimStart:
        """An application starts to read: it takes a higher epoch than all before it. On disk when it returns."""

    def claim(self, request: ClaimRequest) -> Claim | None:
        """Confirms what is done, and takes the next messages under a new claim; None: there is nothing to take.

        With `ahead` nothing is confirmed: what comes behind the open claim is taken before the reader asks for it. The
        call that asks for it notes that the open one is done, and is given it; `settle_claims` then removes messages.
        None: there is nothing to take ahead, or it is taken already, or the open claim is not planned or ends inside a
        group.

        A claim that the reader's checkpoint does not know yet is given again. On disk when it returns.

        Raises: Fenced, CheckpointTooOld, CheckpointLost (`rules.claims`), GetInhibited 2016, OrderUnsupported.
        """

    def plan_claims(self, claimer: Claimer, after: int, upto: int, slices: int) -> Sequence[Slice]:
        """The reader begins to work on the claims behind `after` up to `upto`: into which slices they fall.

        They are cut nowhere inside a group, and the same each time for one number of slices. With 0 slices claim `upto`
        has no messages: it counts as over, though it was never taken.
        Raises: Fenced, CheckpointTooOld, CheckpointLost.
        """

    def read_claim(self, claimer: Claimer, part: Slice, first: int) -> BulkPage:
        """The rows of a slice from position `first` on, as many as make a page; nothing changes.

        Raises: Fenced; CheckpointTooOld, the claim is over.
        """

    def settle_claims(self, claimer: Claimer, upto: int) -> int:
        """Confirms claims up to this one; how many messages went. Again: 0. Raises: Fenced, CheckpointLost."""

    def return_ahead(self, claimer: Claimer) -> int:
        """Returns the messages of the claim that was taken ahead to their places; of how many. Raises: Fenced."""

    def finish_claims(self, queue: str, application: str, upto: int) -> int:
        """Confirms as `settle_claims`, on behalf of a reader that has stopped for good.

        A reader that still runs is fenced. Raises: NotFound, the application never claimed anything here.
        """

    def leave_claimed_group(self, queue: str, application: str) -> bool:
        """An application that has stopped for good leaves its group (B-45); a reader that still runs is fenced.

        Returns: whether it was inside one.

        Raises: UnknownQueue 2085; NotFound, it never claimed anything there.
        """

    def release_claims(self, queue: str, application: str) -> int:
        """Returns the messages of open claims to their places; of how many. A reader that still runs is fenced.

        Raises: NotFound, the application never claimed anything here.
        """

    def claims(self) -> Sequence[Claims]:
        """All applications' claims, by queue and application."""

    def survey(self, request: SurveyRequest) -> Survey:
        """What a browse would show next, to be read with `read_stretch`.

        No message changes; the handle's browse lock ends, as with every browse that moves on (R3.70).
        Strictly, no level is shown beyond its first pending message (B-38, B-39).
        """

    def read_stretch(
        self, handle: int, stretch: Stretch, after: tuple[Any, ...] = ()
    ) -> tuple[BulkPage, tuple[Any, ...] | None]:
        """The next page of a stretch, as it is now, without locks; it begins where another page ended.

        Args:
            after: what came with that page.

        Returns: the rows, whose `delivery` counts from 1 over all pages, and where they end; None: with the stretch.

        Raises: GetInhibited 2016.
        """

    # --- channels: at the sender's

    def take_channel(self, handle: int, channel: str, *, operates: bool = False) -> Carrying:
        """This handle's connection carries the channel from now on; earlier runs are fenced (C-1).

        Args:
            handle: of the transmission queue, open for input.
            operates: an operator comes to it, also where it is stopped.

        Raises: ChannelStopped; ObjectInUse 2042, another connection carries it.
        """

    def note_channel(
        self, handle: int, channel: str, status: str, *, reason: int = 0, error: str = "", short_retries: int = 0,
        long_retries: int = 0,
    ) -> str:  # fmt: skip
        """What the channel does now; "inactive" and "stopped" end the run. How an operator has stopped it, or "".

        Raises: Fenced, another connection carries it.
        """

    def next_batch(self, request: ClaimRequest, channel: str) -> NextBatch:
        """As `claim`: the claim that is confirmed was the channel's next batch, which is counted as sent with it."""

    def confirm_batch(self, request: ClaimRequest, channel: str) -> int:
        """As `settle_claims` up to `request.start`, counted so. Again: 0."""

    def stop_channel(self, queue: str, channel: str, mode: str) -> None:
        """The run of a channel is to end: behind its batch ("quiesce"), at its next call, or at once ("terminate")."""

    def start_channel(self, channel: str) -> None:
        """A channel that was stopped may run again."""

    def resolve_channel(self, handle: int, channel: str, outcome: Outcome) -> int:
        """The batch in doubt is confirmed here, or returns to its place; of how many messages.

        Raises: NotFound, there is none; Fenced, `take_channel` is to come first.
        """

    def reset_channel(self, handle: int, channel: str, number: int) -> None:
        """The last batch has this number. Raises: QueueCondition 9032, one is in doubt; Fenced."""

    def channels(self, wanted: Sequence[tuple[str, str]]) -> list[ChannelNow]:
        """What these channels do, each given with its transmission queue."""

    # --- channels: at the receiver's

    def receive(self, batch: ChannelBatch) -> Receipt:
        """Puts a batch, once: with it goes the record of the channel (C-1). The same batch again changes nothing.

        Raises: SequenceError 9030, Fenced; Undeliverable, with the reason why a message cannot be put. Nothing has
        changed then.
        """

    def bind_channel(self, sender: Sender, epoch: int) -> Received:
        """A run of a channel begins: earlier ones are fenced here, too; the last batch that came. Raises: Fenced."""

    def reset_received(self, sender: Sender, epoch: int, number: int) -> None:
        """The last batch that came has this number from now on, and the sender this epoch, whatever it had."""

    def received(self) -> list[Received]:
        """All channels that have come here."""

    # --- stagings

    def stage(self, request: StageRequest) -> None:
        """Writes rows under a staging, on disk when it returns; nobody sees them.

        Bodies longer than the queue takes are split into segments, whether the flags allow that or not. A staging whose
        time is over is dropped and begins again from 0 rows, which its count shows.

        A database writes contents where they stay, and narrow rows beside them. Raises: ArgumentError, naming row
        (from 0, in this request), column, value and range; CallerError 2027, 2253; NotOpenFor 2039; MessageTooBig
        2030, 2031, headers are longer than the queue takes; UnitExists, the name is another queue's; PutInhibited
        2051, the alias through which it was opened.
        """

    def settle_staging(
        self, key: LedgerKey, stagings: Sequence[Staged], after: str | None = None, owner: int | None = None
    ) -> Settled:
        """Puts all that is staged under these names, all or nothing, perhaps on several queues; notes it in the ledger.

        Stagings for queues where the ledger has the key already are dropped. Numbers are drawn in the order (order_key,
        staging, row): one for each message, or, where the order rule draws it later than at the put, one for all, with
        ordinals. Messages with one `group_key` on a queue become a group in that order, its last one closed. Expiry and
        delay begin now.

        Args:
            after: the batch that was settled last under the key's application and query, "" if none was, as
                `last_settled` gave it: of several writers that go on from one place one alone does. None: any.
            owner: the connection whose user has the authority for reports (`authority`); None: nothing is asked.

        A database moves narrow rows in one statement. Raises, and nothing has changed: Fenced, another batch than
        `after` was settled last, and the key is not in the ledger; StagingGone, one is missing, its time is over, or it
        has another count; PutInhibited 2051; QueueFull 2053; InconsistentCall, the numbers of a group of the caller's
        own have a gap or a repeat.
        """

    def undo_staging(self, names: Sequence[str]) -> int:
        """Drops stagings; how many there were. Unknown names are passed over, so it may come twice."""

    def in_ledger(self, queue: str, key: LedgerKey) -> Noted | None:
        """What was settled under a key on a queue, or the queue of an alias; None: nothing, or long ago.

        Of one streaming query the newest 1,000 batches are kept, transactions for ever. Raises: UnknownQueue 2085.
        """

    def last_settled(self, queue: str, application: str, query: str) -> str:
        """The batch of a query that was settled last on a queue, or the queue of an alias; empty: none was.

        Raises: UnknownQueue 2085.
        """
