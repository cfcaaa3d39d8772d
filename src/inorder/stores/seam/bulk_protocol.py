"""The parts of the upper seam for units of work, and for many messages: claims, surveys, channels, stagings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...rules.channels import Last
from ...rules.retries import Later
from .bulk_page import BulkPage, PageEnd
from .channel_records import (
    BodyPiece,
    Carrying,
    ChannelBatch,
    ChannelNow,
    HomeServerStatus,
    NextBatch,
    Receipt,
    Received,
    Sender,
)
from .records import (
    Claim,
    Claimer,
    ClaimRequest,
    Claims,
    ClaimStart,
    Leased,
    LedgerKey,
    Noted,
    Outcome,
    Settled,
    Slice,
    Staged,
    StageRequest,
    Stretch,
    Survey,
    SurveyRequest,
)
from .tables import Branch
from .views import Unit


class UnitStore(Protocol):
    """A store's operations on units of work; part of `protocol.Store`, which documents the common errors."""

    # --- units of work

    def settle(
        self, owner: int, outcome: Outcome, later: Later | None = None, *, moves: bool = False, decides: str = ""
    ) -> bool:
        """Commits or backs out the connection's unit of work. Returns whether there was one (R5.2, R5.3).

        Args:
            moves: an operator has moved messages: gets do not count as deliveries, nor puts as arrivals.
            later: for a back out after failed work: the messages that the unit got stay hidden for its delay, and its
                error is stored with the first message of each queue. On disk when the call returns.
            decides: the name of a global unit of the connection: the outcome becomes its decision in the same
                transaction, also if the connection has no unit of work here.

        Raises: ConnectionBroken 2009, also if `decides` names no undecided unit of this connection.
        """

    def prepare(self, owner: int, name: str) -> None:
        """Gives the connection's unit a name. The unit then outlives the connection (R5.10).

        Raises: ArgumentError, unless the name has 1 to 256 characters; UnitExists; UnitNotFound, there is no unit.
        """

    def settle_prepared(self, name: str, outcome: Outcome, user: str | None = None) -> None:
        """Commits or backs out a prepared unit, from any connection.

        Raises: UnitNotFound, if there is none of this name, or it belongs to another user than `user`.
        """

    def units(self) -> list[Unit]:
        """Returns all unsettled units, oldest first."""

    def has_unit(self, owner: int) -> bool:
        """Whether the connection has a unit of work open."""

    # --- global units: units of work that span several queue managers (K-2)

    def begin_global(self, owner: int, branches: Sequence[Branch]) -> str:
        """Records a unit of work of the connection that also has parts at these owners, and returns its name.

        The name contains the id of the store and is never used again, not even by a store that was restored from a
        backup. On disk when the call returns. `settle` decides the unit. If the connection ends before, the unit is
        backed out.

        Args:
            branches: the parts, 1 to 100.

        Raises: ArgumentError; WrongState, the connection has an undecided one; UnitNotAvailable 2255, the user has
        1,000 undecided ones.
        """

    def end_global(self, name: str, connections: Sequence[str], user: str | None = None) -> None:
        """Records that the owners at these connections have settled their parts; the last one removes the record.

        Harmless if the record does not exist, or belongs to another user than `user`.

        Raises: WrongState, the unit is undecided and its connection has not ended.
        """

    # --- leases: units with a token and a deadline (`rules.leases`)

    def begin_lease(self, owner: int, name: str, user: str, seconds: float, most: int | None) -> Leased:
        """Begins a lease. The store knows only its name. On disk when the call returns.

        Args:
            name: 1 to 256 characters.
            most: how many leases the user may have, including this one; None: any number.

        Raises: ArgumentError; UnitExists, there is a lease of this name; UnitNotAvailable, the user would have more.
        """

    def lease(self, name: str, user: str | None) -> Leased:
        """Returns a lease. Raises: LeaseOver, if none has this name, or it belongs to another user than `user`."""

    def extend_lease(self, name: str, user: str | None, seconds: float) -> Leased:
        """Moves the deadline to `seconds` from now. On disk when the call returns. Raises: LeaseOver."""

    def enter_lease(self, owner: int, name: str, user: str | None) -> Leased:
        """Makes the lease the connection's unit of work, until the connection leaves or settles it.

        Raises: LeaseOver; CallerError 2128, if the connection already has a unit of work.
        """

    def leave_lease(self, owner: int) -> None:
        """Detaches the connection from its lease, which continues. Harmless if the connection is in none."""

    def end_lease(self, name: str, user: str | None = None) -> None:
        """Backs out the lease of this name. Raises: as `lease`."""


class BulkStore(Protocol):
    """A store's operations on many messages; part of `protocol.Store`, which documents the common errors."""

    # --- claims and surveys

    def begin_claims(self, handle: int, application: str) -> ClaimStart:
        """Starts an application as a reader, with a higher epoch than all before. On disk when the call returns."""

    def claim(self, request: ClaimRequest) -> Claim | None:
        """Confirms the claims that are done, and takes the next messages under a new one; None: there are none.

        With `ahead` nothing is confirmed: the claim after the open one is taken before the reader asks for it. The call
        that asks for it then records that the open one is done and gets the claim; `settle_claims` removes messages
        later. None: there is nothing to take, it has already been taken, or the open claim is not planned or ends
        inside a group.

        A claim that the reader's checkpoint does not contain yet is returned again. On disk when the call returns.

        Raises: Fenced, CheckpointTooOld, CheckpointLost (`rules.claims`), GetInhibited 2016, OrderUnsupported.
        """

    def plan_claims(self, claimer: Claimer, after: int, upto: int, slices: int) -> Sequence[Slice]:
        """Records that the reader begins to process the claims after `after` up to `upto`, and returns their slices.

        No slice ends inside a group, and the same number of slices gives the same ones each time. With 0 slices, claim
        `upto` has no messages and counts as settled, though it was never taken.

        Raises: Fenced, CheckpointTooOld, CheckpointLost.
        """

    def read_claim(self, claimer: Claimer, part: Slice, first: int) -> BulkPage:
        """Returns the rows of a slice from position `first` on, up to a page; nothing changes. Their expiry is what was
        left when the claim was taken; for a channel, or a claimer that does not deliver, what is left now.

        Raises: Fenced; CheckpointTooOld, if the claim is settled.
        """

    def settle_claims(self, claimer: Claimer, upto: int) -> int:
        """Confirms claims up to this one. Returns how many messages were removed; 0 if repeated. Raises: Fenced,
        CheckpointLost.
        """

    def return_ahead(self, claimer: Claimer) -> int:
        """Returns the messages of the claim taken ahead to their places, and returns how many. Raises: Fenced."""

    def finish_claims(self, queue: str, application: str, upto: int) -> int:
        """Confirms as `settle_claims`, for a reader that has stopped for good. A reader that still runs is fenced.

        Raises: NotFound, if the application never claimed anything on the queue.
        """

    def leave_claimed_group(self, queue: str, application: str) -> bool:
        """Makes an application that has stopped for good leave its group (B-45). A reader that still runs is fenced.

        Returns: whether it was inside one.

        Raises: UnknownQueue 2085; NotFound, if it never claimed anything on the queue.
        """

    def release_claims(self, queue: str, application: str) -> int:
        """Returns the messages of open claims to their places, and returns how many. A reader that still runs is
        fenced.

        Raises: NotFound, if the application never claimed anything on the queue.
        """

    def claims(self) -> Sequence[Claims]:
        """Returns all applications' claims, by queue and application."""

    def survey(self, request: SurveyRequest) -> Survey:
        """Returns the messages that a browse would show next, to be read with `read_stretch`.

        No message changes. The handle's browse lock ends, as with every browse that moves on (R3.70). A strict survey
        shows no level beyond its first pending message (B-38, B-39).
        """

    def read_stretch(self, handle: int, stretch: Stretch, after: PageEnd = ()) -> tuple[BulkPage, PageEnd | None]:
        """Returns a page of a stretch in its present state, without locks, starting where the last page ended.

        Args:
            after: the end of the last page, as returned with it.

        Returns: the rows, whose `delivery` counts from 1 over all pages, and the page's end; None: it is the stretch's
        end.

        Raises: GetInhibited 2016.
        """

    # --- channels: at the sender

    def take_channel(self, handle: int, channel: str, *, operates: bool = False) -> Carrying:
        """Makes this handle's connection run the channel; earlier runs are fenced (C-1).

        Args:
            handle: of the transmission queue, open for input.
            operates: an operator's action, allowed also while the channel is stopped.

        Raises: ChannelStopped; ObjectInUse 2042, if another connection runs it; UnknownObject 2085, QueueCondition
        2041, if its definition does not name this queue now; WrongQueueType 2087, if it collects, but not from this
        queue.
        """

    def note_channel(
        self, handle: int, channel: str, status: str, *, reason: int = 0, error: str = "", short_retries: int = 0,
        long_retries: int = 0,
    ) -> str:  # fmt: skip
        """Records the channel's status. "inactive" ends the run, and leaves the channel stopped if an operator has
        stopped it; "stopped" means that an operator must act. Returns how an operator stopped it, or "".

        Raises: Fenced, if another connection runs it.
        """

    def note_home_server(
        self, owner: int, queue: str, status: HomeServerStatus, *, reason: int = 0, error: str = "",
        goes_on: bool = False,
    ) -> str:  # fmt: skip
        """Records the status of a home-server queue, for the connection that collects; any may trigger it. Returns the
        previous status. A triggered queue stays so until a collection begins; with "inactive" and "waiting" a stopped
        one does, too.

        Args:
            goes_on: with "running": the collection began before.

        Raises: UnknownQueue 2085; WrongQueueType 2043; ObjectInUse 2042, if another connection collects.
        """

    def next_batch(self, request: ClaimRequest, channel: str, *, fast: bool = False) -> NextBatch:
        """As `claim`; the confirmed claim was the channel's next batch and is counted as sent in the same
        transaction.

        Args:
            fast: a new claim holds persistent messages only. The others among those that it takes are removed and
                returned, and counted as sent. A repeat does not return them again.
        """

    def confirm_batch(self, request: ClaimRequest, channel: str) -> int:
        """As `settle_claims` up to `request.start`; the batch is counted as sent. Returns 0 if repeated."""

    def stop_channel(self, queue: str, channel: str, mode: str) -> None:
        """Ends the run of a channel: after its batch ("quiesce"), at its next call ("force"), or at once
        ("terminate"). Raises: UnknownObject 2085.
        """

    def start_channel(self, channel: str) -> None:
        """Allows a stopped channel to run again."""

    def resolve_channel(self, handle: int, channel: str, outcome: Outcome) -> int:
        """Confirms the batch in doubt, or returns it to its place. Returns the number of messages.

        Raises: NotFound, if there is none; Fenced, if `take_channel` was not called first.
        """

    def reset_channel(self, handle: int, channel: str, number: int) -> None:
        """Sets the number of the last batch. Raises: QueueCondition 9032, if one is in doubt; Fenced."""

    def channels(self, wanted: Sequence[tuple[str, str]]) -> list[ChannelNow]:
        """Returns the state of these channels, each given with its transmission queue."""

    # --- channels: at the receiver

    def receive(self, batch: ChannelBatch, *, user: str | None = None) -> Receipt:
        """Puts a batch once, and updates the record of the channel in the same transaction (C-1). A repeat changes
        nothing.

        Args:
            user: the server's user, who needs `put` on the target of each message; otherwise the message cannot be put
                (2035). None: not checked.

        Raises: SequenceError 9030; Fenced; Undeliverable, with the reason why a message cannot be put. Nothing has
        changed then.
        """

    def receive_piece(self, sender: Sender, epoch: int, piece: BodyPiece) -> int:
        """Keeps a piece of a body of the channel's next batch, if it continues the body. Returns how many bytes of the
        body have arrived: all if its batch was received, 0 also if the whole body did not match its digest and was
        dropped. A repeat changes nothing.

        Raises: Fenced; ArgumentError.
        """

    def with_bodies(self, batch: ChannelBatch) -> ChannelBatch | None:
        """Returns a batch with the bodies that have arrived before it in pieces, for the exit of a receiver; None: it
        was already received.

        Raises: ArgumentError; StoreError, if one of them is not complete; SequenceError, Fenced.
        """

    def bind_channel(self, sender: Sender, epoch: int, *, resets: bool = False) -> Received:
        """Begins a run of a channel: fences earlier runs here too. Returns the last batch that arrived. Raises:
        Fenced.

        Args:
            resets: changes nothing, and does not raise: the run begins with `reset_received`.
        """

    def reset_received(self, sender: Sender, epoch: int, number: int, seen: Last | None = None) -> None:
        """Sets the number of the last batch that arrived, and the sender's epoch, which may be lower than before.

        Args:
            seen: the last batch as the caller has read it. None: not checked.

        Raises: Fenced, the record has changed since the caller read it, and not by an earlier try of this call.
        """

    def received(self) -> list[Received]:
        """Returns the record of each channel that delivers here."""

    # --- stagings

    def stage(self, request: StageRequest) -> None:
        """Writes rows to a staging, where no reader sees them. On disk when the call returns.

        Bodies longer than the queue allows are split into segments, whether the flags allow that or not. An expired
        staging is dropped and begins again with 0 rows, as its count shows.

        A database writes bodies to their final place, and narrow rows beside them.

        Raises: ArgumentError, with row (from 0, in this request), column, value and range; CallerError 2027, 2253;
        NotOpenFor 2039; MessageTooBig 2030, 2031, if headers are longer than the queue allows; UnitExists, if the name
        belongs to another queue; PutInhibited 2051, for the alias through which it was opened.
        """

    def settle_staging(
        self, key: LedgerKey, stagings: Sequence[Staged], after: str | None = None, owner: int | None = None
    ) -> Settled:
        """Puts everything staged under these names, on one or more queues, all or nothing, and records it in the
        ledger.

        If a queue's ledger already has the key, the stagings for that queue are dropped. Numbers are drawn in the order
        (order_key, staging, row): one for each message, or, if the order rule draws numbers after the put, one for all,
        with ordinals. Messages with one `group_key` on a queue become a complete group in that order. Expiry and delay
        begin now.

        Args:
            after: the batch that was settled last under the key's application and query, as `last_settled` returned it,
                "" for none. If several writers continue from one batch, only one succeeds. None: not checked.
            owner: the connection whose user has the authority for reports (`authority`); None: not checked.

        A database moves narrow rows in one statement.

        Raises, with nothing changed: Fenced, if the last batch is not `after` and the key is not in the ledger;
        StagingGone, if a staging is missing or expired, or has another count; PutInhibited 2051; QueueFull 2053;
        InconsistentCall, if the numbers in a group of the caller's own have a gap or a repeat.
        """

    def undo_staging(self, names: Sequence[str]) -> int:
        """Drops stagings. Returns how many there were; unknown names are ignored, so it may be repeated."""

    def in_ledger(self, queue: str, key: LedgerKey) -> Noted | None:
        """Returns the ledger's entry for a key on the queue that a put to this name reaches, of a remote queue its
        transmission queue; None: none, or it was forgotten.

        The newest 1,000 batches of each streaming query are kept, and transactions forever. Raises: UnknownQueue 2085.
        """

    def last_settled(self, queue: str, application: str, query: str) -> str:
        """Returns the batch of a query that was settled last on the queue of `in_ledger`; empty: none.

        Raises: UnknownQueue 2085.
        """
