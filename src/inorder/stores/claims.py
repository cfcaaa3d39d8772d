"""The seam for readers in bulk: claims, which remove exactly once, and surveys, which browse; rows as plain columns.

A claim is a named unit that holds got messages at fixed positions (`rules.claims` says what each call means). Its
messages count in the depth, do not expire while they are held, and are shown as held by the application and the claim.
A survey says what a browse would show, as stretches that can be read side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from ..options import GetOptions
from ..rules.ordering import Cursor
from ..rules.puts import Program

BULK_COLUMNS: Sequence[str] = (
    "rank number ordinal group_rank group_number group_ordinal delivery report message_type expiry feedback encoding "
    "coded_character_set_id format priority persistent message_id correlation_id reply_to_queue "
    "reply_to_queue_manager user_identifier accounting_token application_identity_data put_application_type "
    "put_application_name put_at application_origin_data group_id sequence_number offset flags original_length body "
    "length backout_count uid_origin uid_number"
).split()
"""The columns of a row that is read in bulk, in this order.

The place; the place of the head of its group (its own if it is in none; None if the head is not on the queue, or of a
claim: not in the claim, so that it reads the same each time); `delivery`, its position in what is read; then the fields
of `Message`. None stands for an unlimited expiry, and for no correlation id,
group id or accounting token.
"""

BulkRow = tuple[Any, ...]
PAGE_ROWS, PAGE_BYTES = 8192, 8 * 2**20  # rows and bytes of bodies that are read at once


class Claimer(NamedTuple):
    """One start of an application's reader of a queue.

    Args:
        handle: open for input.
        epoch: as `begin_claims` gave it; calls with an older one than the last are refused.
    """

    handle: int
    application: str
    epoch: int


class ClaimStart(NamedTuple):
    """Where a reader begins.

    Args:
        settled: the last claim that is over; 0: none is.
        horizon: the highest number drawn on the queue so far.
    """

    epoch: int
    settled: int
    horizon: int


class ClaimRequest(NamedTuple):
    """The next claim.

    Args:
        start: claims up to this one are done; the one that is open is confirmed first.
        options: `read_order`; in physical order nothing else; with `logical` also `complete` (the pieces of a logical
            message are taken together) and `all_messages` (whole groups only).
        most, most_bytes: so many messages, and bytes of bodies, at most; at least one message is taken. With
            `all_messages` a group that is larger is taken whole.
        horizon: nothing above this number is taken; None: there is no such bound.
    """

    claimer: Claimer
    start: int
    options: GetOptions
    most: int
    most_bytes: int
    horizon: int | None = None


class Claim(NamedTuple):
    """A claim that is open.

    Args:
        number: 1, 2, 3 ...; a released one's number does not return.
        messages, size: how many, and how many bytes of bodies.
        delivered: messages of all claims that were confirmed before it.
        planned: the reader has begun to work on it.
        started_at: seconds since 1970.
    """

    number: int
    messages: int
    size: int
    delivered: int
    planned: bool
    started_at: float


class Claims(NamedTuple):
    """What an operator sees of one application's claims on one queue.

    Args:
        program: who started last.
        delivered: messages of confirmed claims.
        open: the claim that holds messages now, if one does.
    """

    queue: str
    application: str
    program: Program
    epoch: int
    settled: int
    delivered: int
    open: Claim | None


class Slice(NamedTuple):
    """A part of a claim: positions `first` to `last`, counted from 1; `delivered` messages came before the claim."""

    claim: int
    first: int
    last: int
    delivered: int


class SurveyRequest(NamedTuple):
    """What a browse would show next.

    Args:
        handle: open for browse.
        options: `read_order`; with `logical` whole groups only.
        cursor: where the browse stands; only a strict one's levels are looked at.
        most, most_bytes: as in `ClaimRequest`.
        slices: in about how many stretches.
        horizon: nothing above this number is shown.
    """

    handle: int
    options: GetOptions
    cursor: Cursor
    most: int
    most_bytes: int
    slices: int
    horizon: int | None = None


class Stretch(NamedTuple):
    """Messages of one level that follow each other, or groups by their heads.

    Args:
        first, last: number and ordinal of the first and the last message or head.
        messages: how many, members of groups counted.
    """

    logical: bool
    rank: int
    first: tuple[int, int]
    last: tuple[int, int]
    messages: int


class Survey(NamedTuple):
    """What was there.

    Args:
        cursor: where a strict browse stands when it has shown all of it.
        stretches: in order.
        horizon: the highest number drawn on the queue so far.
    """

    cursor: Cursor
    messages: int
    stretches: Sequence[Stretch]
    horizon: int


class ClaimVerbs(Protocol):
    """The verbs of a store for reading in bulk; see `Store` for what all verbs have in common."""

    def begin_claims(self, handle: int, application: str) -> ClaimStart:
        """An application starts to read: it takes a higher epoch than all before it. On disk when it returns."""
        ...

    def claim(self, request: ClaimRequest) -> Claim | None:
        """Confirms what is done, and takes the next messages under a new claim; None: there is nothing to take.

        A claim that the reader's checkpoint does not know yet is given again. On disk when it returns.

        Raises: Fenced, CheckpointTooOld, CheckpointLost (`rules.claims`), GetInhibited 2016, OrderUnsupported.
        """
        ...

    def plan_claims(self, claimer: Claimer, after: int, upto: int, slices: int) -> Sequence[Slice]:
        """The reader begins to work on the claims behind `after` up to `upto`: into which slices they fall.

        They are cut nowhere inside a group, and the same each time for one number of slices.
        Raises: Fenced, CheckpointTooOld, CheckpointLost.
        """
        ...

    def read_claim(self, claimer: Claimer, part: Slice) -> Iterator[list[BulkRow]]:
        """Reads a slice in pages; nothing changes, so it may be read as often as need be.

        Each page is one verb. Raises: Fenced; CheckpointTooOld, the claim is over.
        """
        ...

    def settle_claims(self, claimer: Claimer, upto: int) -> int:
        """Confirms claims up to this one; how many messages went. Again: 0. Raises: Fenced, CheckpointLost."""
        ...

    def finish_claims(self, queue: str, application: str, upto: int) -> int:
        """Confirms as `settle_claims`, in the name of a reader that has stopped for good.

        A reader that still runs is fenced. Raises: NotFound, the application never claimed anything here.
        """
        ...

    def leave_claimed_group(self, queue: str, application: str) -> bool:
        """An application that has stopped for good is inside no group any more (B-45); whoever runs it is fenced.

        Returns: whether it was inside one.

        Raises: UnknownQueue 2085; NotFound, it never claimed anything there.
        """
        ...

    def release_claims(self, queue: str, application: str) -> int:
        """Returns the messages of the open claim to their places; of how many. A reader that still runs is fenced.

        Raises: NotFound, the application never claimed anything here.
        """
        ...

    def claims(self) -> Sequence[Claims]:
        """All applications' claims, by queue and application."""
        ...

    def survey(self, request: SurveyRequest) -> Survey:
        """What a browse would show next, to be read with `read_stretch`.

        No message changes; the handle's browse lock ends, as with every browse that moves on (R3.70).
        Strictly, no level is shown beyond its first pending message (B-38, B-39).
        """
        ...

    def read_stretch(self, handle: int, stretch: Stretch) -> Iterator[list[BulkRow]]:
        """Reads in pages what is there of a stretch by then, unlocked; `delivery` counts from 1.

        Each page is one verb. Raises: GetInhibited 2016.
        """
        ...
