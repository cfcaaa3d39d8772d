"""Bulk reads and writes, for programs that keep their own checkpoints: claims, surveys, staged puts.

* `ClaimReader` removes messages exactly once. It takes them in numbered claims, which any number of processes can read
  any number of times, and confirms a claim once its work is on disk.
* `BulkBrowser` reads the messages that a browse would show, in stretches that several readers can read in parallel.
* `Stager` writes rows next to the queue, where no reader sees them. `qm.bulk.settle_staging` puts the rows of
  several stagers in one step, exactly once for each key.

Rows are plain tuples in the order of `BULK_COLUMNS`. Their pages also offer whole columns. The Spark source and sink
use these classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import bad_argument
from ..model.options import DEFAULT_GET, GetOptions, check_instance, check_whole
from ..model.parameters import Text
from ..rules.browse_token import decode, encode
from ..rules.grouping import NOTHING_OPEN
from ..rules.ordering import UNSET, Cursor
from ..stores.seam.bulk_page import BulkPage
from ..stores.seam.records import (
    BULK_COLUMNS,
    BulkRow,
    Claim,
    Claimer,
    ClaimRequest,
    Claims,
    ClaimStart,
    LedgerKey,
    Noted,
    Settled,
    Slice,
    Staged,
    StageRequest,
    Stretch,
    Survey,
    SurveyRequest,
)
from .namespace import Namespace
from .queue import Queue

NO_LIMIT = 2**62
NAME_LENGTH_MAX = 200
NAME = Text(NAME_LENGTH_MAX, least=1)  # of an application, a staging or a schedule


class ClaimReader:
    """A reader that removes messages in claims, each exactly once (spec/spark.md, 2).

    The application's checkpoint is the number of the last finished claim. For each claim it records the start, calls
    `plan`, reads the slices with `read`, and records the end. The next `claim`, or `settle`, then confirms the claim.

    Args:
        queue: a handle that is open for input.
        application: 1 to 200 characters. Only one reader of a queue may work under a name at a time: a later start
            under the name fences this reader (Fenced).
        epoch: the epoch of a start whose work this reader shares; None: call `begin` first.
        delivers: False if the messages have moved on to another queue, where they will be delivered. Then COD is not
            reported.
    """

    def __init__(self, queue: Queue, application: str, *, epoch: int | None = None, delivers: bool = True) -> None:
        self._queue = queue.internals
        self.application: str = NAME.check("application", application)
        self.epoch = epoch
        check_instance("delivers", delivers, bool, "True or False")
        self._delivers = delivers

    def begin(self) -> ClaimStart:
        """Starts the application with a higher epoch, which fences earlier starts. Raises: NotOpenFor 2037."""
        with self._queue.session:
            store, handle = self._queue.opened_for("input")
            start = store.begin_claims(handle, self.application)
        self.epoch = start.epoch
        return start

    def claim(
        self,
        start: int,
        options: GetOptions = DEFAULT_GET,
        *,
        most: int = NO_LIMIT,
        most_bytes: int = NO_LIMIT,
        horizon: int | None = None,
        ahead: bool = False,
    ) -> Claim | None:
        """Confirms all claims up to `start`, and claims the next messages; returns None if there are none.

        A claim that was taken but never planned is returned again.

        Args:
            ahead: takes the next claim early, while claim `start` is planned and not yet done. The later call that asks
                for that claim returns it at once, whatever its other arguments say, and only notes that `start` is
                done; `settle` then removes the messages. `return_ahead`, or a reader that begins or releases, returns
                the messages to their places. With `ahead` the call also returns None if the claim is already taken, or
                if claim `start` is not planned or ends inside a group.
            options: `logical`, `complete`, `all_messages`, `read_order`.
            most, most_bytes: the largest number of messages, and of bytes of bodies; but the call takes at least one
                message, or with `all_messages` one group.
            horizon: takes no message with a higher number.

        Raises: Fenced; CheckpointTooOld, CheckpointLost: `start` is not the application's position; GetInhibited 2016;
        OrderUnsupported.
        """
        _check_limits(options, most, most_bytes, horizon)
        check_whole("start", start)
        check_instance("ahead", ahead, bool, "True or False")
        with self._queue.session:
            store, handle = self._queue.opened_for("input")
            return store.claim(ClaimRequest(self._claimer(handle), start, options, most, most_bytes, horizon, ahead))

    def return_ahead(self) -> int:
        """Puts the messages of a claim taken ahead back into their places; returns their number. Raises: Fenced."""
        with self._queue.session:
            store, handle = self._queue.opened_for("input")
            return store.return_ahead(self._claimer(handle))

    def plan(self, after: int, upto: int, slices: int = 1) -> Sequence[Slice]:
        """Returns the slices of the claims after `after`; repeated calls return the same ones. No slice cuts a group.

        Raises: Fenced, CheckpointTooOld, CheckpointLost.
        """
        check_whole("after", after)
        check_whole("upto", upto, after)
        check_whole("slices", slices, 1)
        with self._queue.session:
            store, handle = self._queue.opened_for("input")
            return store.plan_claims(self._claimer(handle), after, upto, slices)

    def skip(self, upto: int) -> None:
        """Counts claim `upto` as finished without messages, because the checkpoint names it but it was never taken.

        Harmless when repeated. Raises: Fenced; CheckpointLost: a claim is open, or `upto` is not the next one.
        """
        check_whole("upto", upto, 1)
        with self._queue.session:
            store, handle = self._queue.opened_for("input")
            store.plan_claims(self._claimer(handle), upto, upto, 0)

    def read(self, part: Slice) -> Iterator[BulkPage]:
        """Yields the rows of a slice in pages; changes nothing. Raises: Fenced; CheckpointTooOld, the claim is over."""
        check_instance("part", part, Slice, "a Slice from plan()")
        first = part.first
        while first <= part.last:
            with self._queue.session:
                store, handle = self._queue.opened_for("input")
                page = store.read_claim(self._claimer(handle), part, first)
            yield page
            first += len(page)

    def settle(self, upto: int) -> int:
        """Confirms claims up to `upto`; returns the number of messages removed for good. Harmless when repeated."""
        check_whole("upto", upto)
        with self._queue.session:
            store, handle = self._queue.opened_for("input")
            return store.settle_claims(self._claimer(handle), upto)

    def _claimer(self, handle: int) -> Claimer:
        if self.epoch is None:
            raise bad_argument("epoch", None, "the epoch of a start: call begin() first")
        return Claimer(handle, self.application, self.epoch, self._delivers)


class BulkBrowser:
    """Browses a queue in bulk; removes nothing.

    Args:
        queue: a handle that is open for browse. Its own cursor does not move.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue.internals

    def survey(
        self,
        options: GetOptions = DEFAULT_GET,
        *,
        cursor: Cursor = UNSET,
        most: int = NO_LIMIT,
        most_bytes: int = NO_LIMIT,
        slices: int = 1,
        horizon: int | None = None,
    ) -> Survey:
        """Returns the stretches that a browse would read next, and its cursor after them.

        Args:
            options: `logical` (whole groups only), `read_order`.
            cursor: the position of a strict browse; a relaxed one has none.
            slices: the approximate number of stretches; several priorities need more.

        Raises: GetInhibited 2016; OrderUnsupported, a strict survey of an unordered queue.
        """
        _check_limits(options, most, most_bytes, horizon)
        check_instance("cursor", cursor, Cursor, "a Cursor from a survey or a token")
        check_whole("slices", slices, 1)
        with self._queue.session:
            store, handle = self._queue.opened_for("browse")
            return store.survey(SurveyRequest(handle, options, cursor, most, most_bytes, slices, horizon))

    def read(self, stretch: Stretch) -> Iterator[BulkPage]:
        """Yields the rows of a stretch that the queue still has, in pages."""
        check_instance("stretch", stretch, Stretch, "a Stretch from survey()")
        after: tuple[Any, ...] | None = ()
        while after is not None:
            with self._queue.session:
                store, handle = self._queue.opened_for("browse")
                page, after = store.read_stretch(handle, stretch, after)
            if page:
                yield page

    @property
    def incarnation(self) -> int:
        """A number for this creation of the queue: a queue created again under its name has another."""
        self._queue.checked_for("browse")
        return self._queue.incarnation

    def token(self, cursor: Cursor) -> str:
        """Returns a strict cursor as a token, for continuing after a restart."""
        return encode(self.incarnation, cursor, NOTHING_OPEN)

    def cursor(self, token: str) -> Cursor | None:
        """Returns the cursor in a token, or None if the token belongs to another queue of this name.

        Raises: ArgumentError, it is not a token.
        """
        resumed = decode(token)
        return resumed.cursor if resumed.incarnation == self.incarnation else None


class Stager:
    """Stages rows for a queue in bulk: they are on disk when a call returns, but invisible until they are settled.

    Args:
        queue: a handle that is open for output.
        name: the name of this staging, to be used only once.
        lasts: seconds after which rows that were never settled are dropped.
        checks_numbers: whether settling checks that the sequence numbers of groups with given ids are consecutive;
            False for messages that are transferred as they are.
        arrives: False if the messages come from another queue; then COA is not reported.
    """

    def __init__(
        self, queue: Queue, name: str, *, lasts: float, checks_numbers: bool = True, arrives: bool = True
    ) -> None:
        self._queue = queue.internals
        self.name: str = NAME.check("name", name)
        self._lasts = lasts
        check_instance("checks_numbers", checks_numbers, bool, "True or False")
        self._checks_numbers = checks_numbers
        check_instance("arrives", arrives, bool, "True or False")
        self._arrives = arrives
        self.count = 0

    def stage(self, count: int, columns: Mapping[str, Sequence[Any]]) -> None:
        """Adds rows.

        Args:
            columns: columns of `count` values each, by the names of `STAGED_COLUMNS`; a missing column takes the
                default of a put.

        Raises: ArgumentError, MessageTooBig 2030, StoreFull; the call has then staged nothing.
        """
        check_instance("columns", columns, Mapping, "a mapping of names to columns")
        with self._queue.session:
            store, handle = self._queue.opened_for("output")
            store.stage(
                StageRequest(handle, self.name, count, columns, self._lasts, self._checks_numbers, self._arrives)
            )
        self.count += count

    @property
    def staged(self) -> Staged:
        """The name and count of this staging, for `settle_staging`."""
        return Staged(self.name, self.count)


class Bulk(Namespace):
    """Claims and staged rows of a queue manager, `qm.bulk`."""

    def claims(self) -> Sequence[Claims]:
        """Returns the claims and the progress of each application, sorted by queue and application."""
        with self._session:
            return self._store.claims()

    def finish_claims(self, queue: str, application: str, upto: int) -> int:
        """Confirms the claims up to `upto` of an application that has stopped for good; returns the number of messages.

        A running reader is fenced. Raises: NotFound, the application never claimed; CheckpointLost, no such claim.
        """
        NAME.check("application", application)
        check_whole("upto", upto)
        with self._session:
            return self._store.finish_claims(queue, application, upto)

    def release_claims(self, queue: str, application: str) -> int:
        """Returns the messages of open claims to their places, after the checkpoint was lost; returns their number.

        A running reader is fenced. It or the next reader will process these messages again. Raises: NotFound, the
        application never claimed.
        """
        NAME.check("application", application)
        with self._session:
            return self._store.release_claims(queue, application)

    def leave_claimed_group(self, queue: str, application: str) -> bool:
        """Leaves the group that an application, which has stopped for good, has claimed in part.

        It then no longer holds back strict logical readers; a match on group id and sequence number reaches the rest
        of the group. A running reader is fenced; one that starts again continues after the group. Messages in open
        claims stay claimed.

        Returns: whether the application was inside a group.

        Raises: NotFound, the application never claimed.

        Rules: B-45.
        """
        NAME.check("application", application)
        with self._session:
            return self._store.leave_claimed_group(queue, application)

    def settle_staging(self, key: LedgerKey, stagings: Sequence[Staged], *, after: str | None = None) -> Settled:
        """Puts staged rows, all or none, once for each key; if the ledger already has the key, the rows are dropped.

        Args:
            after: the batch that must be the last one of the key's query, as `last_settled` returned it; None: any.

        Raises: Fenced, another batch than `after` is the last; StagingGone, a staging is missing or has another count;
        QueueFull 2053; PutInhibited 2051; InconsistentCall, sequence numbers with a gap. An error changes nothing.
        """
        check_instance("key", key, LedgerKey, "a LedgerKey")
        if not isinstance(stagings, Sequence) or not all(isinstance(one, Staged) for one in stagings):
            raise bad_argument("stagings", stagings, "a list of Staged from stagers")
        with self._session:
            return self._store.settle_staging(key, stagings, after, self._session.owner)

    def undo_staging(self, names: Sequence[str]) -> int:
        """Drops the rows staged under these names; returns their number. Unknown names are ignored."""
        if isinstance(names, str | bytes | bytearray | memoryview) or not isinstance(names, Sequence):
            raise bad_argument("names", names, "a list of names")
        with self._session:
            return self._store.undo_staging(names)

    def in_ledger(self, queue: str, key: LedgerKey) -> Noted | None:
        """Returns when rows were settled under this key on a queue, and the number of messages; None: never."""
        check_instance("key", key, LedgerKey, "a LedgerKey")
        with self._session:
            return self._store.in_ledger(queue, key)

    def last_settled(self, queue: str, application: str, query: str) -> str:
        """Returns the last batch settled on a queue for an application and query; empty: none was."""
        with self._session:
            return self._store.last_settled(queue, application, query)


def _check_limits(options: object, most: object, most_bytes: object, horizon: object) -> None:
    check_instance("options", options, GetOptions, "a GetOptions")
    check_whole("most", most, 1)
    check_whole("most_bytes", most_bytes, 1)
    if horizon is not None:
        check_whole("horizon", horizon)


__all__ = [
    "BULK_COLUMNS",
    "Bulk",
    "BulkBrowser",
    "BulkPage",
    "BulkRow",
    "Claim",
    "ClaimReader",
    "ClaimStart",
    "Claims",
    "LedgerKey",
    "Noted",
    "Settled",
    "Slice",
    "Staged",
    "Stager",
    "Stretch",
    "Survey",
]
