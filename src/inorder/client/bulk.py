"""Bulk reads and writes, for programs that keep their own checkpoints: claims, surveys, staged puts.

* `ClaimReader` removes messages exactly once. It takes them in numbered claims, which any number of processes can read
  any number of times, and confirms a claim once its work is on disk.
* `BulkBrowser` reads the messages that a browse would show, in stretches that can be read in parallel.
* `Stager` writes rows next to the queue, where they are not visible. `qm.bulk.settle_staging` puts the rows of
  several stagers in one step, exactly once for each key.

Rows are plain tuples in the order of `BULK_COLUMNS`. Their pages also offer whole columns. The Spark source and sink
use these classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import bad_argument
from ..model.options import DEFAULT_GET, GetOptions, check_instance, check_whole
from ..model.parameters import is_storable
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


class ClaimReader:
    """An application that removes messages in claims, each exactly once (spec/spark.md, 2).

    Its checkpoint is the number of the last claim whose work is done. For each claim: write down that it comes, `plan`,
    `read` its slices, write down that it is done; the next `claim` confirms it, or `settle`.

    Args:
        queue: a handle that is open for input.
        application: 1 to 200 characters. One reader of the queue at a time may work under a name: a later start of
            another one ends this one's (Fenced).
        epoch: of the start whose work this one shares; None: `begin` must be called.
        delivers: False: what it confirms has gone on to another queue, where its reader is. Then COD is not reported.
    """

    def __init__(self, queue: Queue, application: str, *, epoch: int | None = None, delivers: bool = True) -> None:
        self._queue = queue.internals
        self.application = check_name("application", application)
        self.epoch = epoch
        check_instance("delivers", delivers, bool, "True or False")
        self._delivers = delivers

    def begin(self) -> ClaimStart:
        """Starts the application: it takes a higher epoch, earlier starts are fenced. Raises: NotOpenFor 2037."""
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
        """Confirms all claims up to `start`, and takes the next messages; None: there are none.

        A claim that was taken and never planned is given again.

        Args:
            ahead: claim `start` is planned and not done; the next one is taken before it is asked for, so that it is
                there at once: the call that asks for it gets it, whatever its other arguments say. It only notes that
                `start` is done: `settle` then removes the messages. `return_ahead`, and a reader that begins or
                releases, returns what was taken ahead to its place. None also: it is taken already, or claim
                `start` is not planned, or it ends inside a group.
            options: `logical`, `complete`, `all_messages`, `read_order`.
            most, most_bytes: messages, and bytes of bodies; but one message is always taken, or with `all_messages`
                one group.
            horizon: nothing with a higher number is taken.

        Raises: Fenced; CheckpointTooOld, CheckpointLost: `start` does not go on where this application stands;
        GetInhibited 2016; OrderUnsupported.
        """
        _check_limits(options, most, most_bytes, horizon)
        check_whole("start", start)
        check_instance("ahead", ahead, bool, "True or False")
        with self._queue.session:
            store, handle = self._queue.opened_for("input")
            return store.claim(ClaimRequest(self._claimer(handle), start, options, most, most_bytes, horizon, ahead))

    def return_ahead(self) -> int:
        """Returns the messages of a claim that was taken ahead to their places; how many. Raises: Fenced."""
        with self._queue.session:
            store, handle = self._queue.opened_for("input")
            return store.return_ahead(self._claimer(handle))

    def plan(self, after: int, upto: int, slices: int = 1) -> Sequence[Slice]:
        """Begins the work on the claims behind `after`: their slices, cut nowhere inside a group, always the same.

        Raises: Fenced, CheckpointTooOld, CheckpointLost.
        """
        check_whole("after", after)
        check_whole("upto", upto, after)
        check_whole("slices", slices, 1)
        with self._queue.session:
            store, handle = self._queue.opened_for("input")
            return store.plan_claims(self._claimer(handle), after, upto, slices)

    def skip(self, upto: int) -> None:
        """Counts claim `upto` as over though it was never taken: the checkpoint knows it, and it has no messages.

        Harmless when repeated. Raises: Fenced; CheckpointLost: a claim is open, or `upto` is not the next one.
        """
        check_whole("upto", upto, 1)
        with self._queue.session:
            store, handle = self._queue.opened_for("input")
            store.plan_claims(self._claimer(handle), upto, upto, 0)

    def read(self, part: Slice) -> Iterator[BulkPage]:
        """The rows of a slice, in pages. Nothing changes. Raises: Fenced; CheckpointTooOld, the claim is over."""
        check_instance("part", part, Slice, "a Slice from plan()")
        first = part.first
        while first <= part.last:
            with self._queue.session:
                store, handle = self._queue.opened_for("input")
                page = store.read_claim(self._claimer(handle), part, first)
            yield page
            first += len(page)

    def settle(self, upto: int) -> int:
        """Confirms claims up to this one; how many messages went for good. Harmless when repeated."""
        check_whole("upto", upto)
        with self._queue.session:
            store, handle = self._queue.opened_for("input")
            return store.settle_claims(self._claimer(handle), upto)

    def _claimer(self, handle: int) -> Claimer:
        if self.epoch is None:
            raise bad_argument("epoch", None, "not None: call begin() first")
        return Claimer(handle, self.application, self.epoch, self._delivers)


class BulkBrowser:
    """Browses a queue in bulk; removes nothing.

    Args:
        queue: a handle that is open for browse. Its own cursor is not moved.
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
        """What a browse would show next: where it then stands, and the stretches to read.

        Args:
            options: `logical` (whole groups only), `read_order`.
            cursor: where a strict browse stands; of a relaxed one there is none.
            slices: in about how many stretches; there are more where several priorities are there.

        Raises: GetInhibited 2016; OrderUnsupported, a strict survey of an unordered queue.
        """
        _check_limits(options, most, most_bytes, horizon)
        check_instance("cursor", cursor, Cursor, "a Cursor from a survey or a token")
        check_whole("slices", slices, 1)
        with self._queue.session:
            store, handle = self._queue.opened_for("browse")
            return store.survey(SurveyRequest(handle, options, cursor, most, most_bytes, slices, horizon))

    def read(self, stretch: Stretch) -> Iterator[BulkPage]:
        """The rows that are there of a stretch, in pages."""
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
        """Names the queue since it was created: one made again under its name has another."""
        self._queue.checked_for("browse")
        return self._queue.incarnation

    def token(self, cursor: Cursor) -> str:
        """The strict cursor as a token, to go on from after a restart."""
        return encode(self.incarnation, cursor, NOTHING_OPEN)

    def cursor(self, token: str) -> Cursor | None:
        """The cursor that a token holds; None: the token is of another queue of this name.

        Raises: ArgumentError, it is not a token.
        """
        resumed = decode(token)
        return resumed.cursor if resumed.incarnation == self.incarnation else None


class Stager:
    """Writes rows beside a queue, in bulk: on disk when a call returns, and seen by nobody until they are settled.

    Args:
        queue: a handle that is open for output.
        name: of this staging, one that is used once only.
        lasts: seconds until what was staged and never settled is undone.
        checks_numbers: whether the sequence numbers of groups whose ids the rows bring must follow each other when the
            rows are settled; False for messages that are carried over as they were found.
        arrives: False: they were on another queue before, so that COA is not reported.
    """

    def __init__(
        self, queue: Queue, name: str, *, lasts: float, checks_numbers: bool = True, arrives: bool = True
    ) -> None:
        self._queue = queue.internals
        self.name = check_name("name", name)
        self._lasts = lasts
        check_instance("checks_numbers", checks_numbers, bool, "True or False")
        self._checks_numbers = checks_numbers
        check_instance("arrives", arrives, bool, "True or False")
        self._arrives = arrives
        self.count = 0

    def stage(self, count: int, columns: Mapping[str, Sequence[Any]]) -> None:
        """Adds rows.

        Args:
            columns: of `count` values each, by the names of `STAGED_COLUMNS`; the put's default for what is missing.

        Raises: ArgumentError, MessageTooBig 2030, StoreFull; nothing of this call is staged then.
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
        """What to settle."""
        return Staged(self.name, self.count)


class Bulk(Namespace):
    """Claims and staged rows of a queue manager, `qm.bulk`."""

    def claims(self) -> Sequence[Claims]:
        """The claims and the progress of each application, by queue and application."""
        with self._session:
            return self._store.claims()

    def finish_claims(self, queue: str, application: str, upto: int) -> int:
        """Confirms claims up to `upto` of an application that has stopped for good; of how many messages.

        A reader that still runs is fenced. Raises: NotFound, it never claimed; CheckpointLost, no such claim.
        """
        check_name("application", application)
        check_whole("upto", upto)
        with self._session:
            return self._store.finish_claims(queue, application, upto)

    def release_claims(self, queue: str, application: str) -> int:
        """Returns the messages of open claims to their places, of how many: the checkpoint is lost.

        A reader that still runs is fenced. What it has done with the messages, it, or the next reader, does again.
        Raises: NotFound, it never claimed.
        """
        check_name("application", application)
        with self._session:
            return self._store.release_claims(queue, application)

    def leave_claimed_group(self, queue: str, application: str) -> bool:
        """The operator's way for an application that claimed groups in parts and has stopped for good.

        It holds strict logical readers back no more: what is left of the group that it is inside is reached by a match
        on group id and sequence number. A reader that still runs is fenced; one that starts again goes on behind the
        group. What it holds in a claim it goes on holding.

        Returns: whether it was inside a group. Raises: NotFound, it never claimed anything there.

        Rules: B-45.
        """
        check_name("application", application)
        with self._session:
            return self._store.leave_claimed_group(queue, application)

    def settle_staging(self, key: LedgerKey, stagings: Sequence[Staged], *, after: str | None = None) -> Settled:
        """The put of staged rows, all or none, once for each key: if the key is in the ledger they are dropped.

        Args:
            after: the batch that must be the last of the key's query, as `last_settled` gave it; None: any.

        Raises: Fenced, another batch than `after` is the last; StagingGone, one is missing or has another count;
        QueueFull 2053; PutInhibited 2051; InconsistentCall, sequence numbers with a gap. Nothing has changed then.
        """
        check_instance("key", key, LedgerKey, "a LedgerKey")
        if not isinstance(stagings, Sequence) or not all(isinstance(one, Staged) for one in stagings):
            raise bad_argument("stagings", stagings, "a list of Staged from stagers")
        with self._session:
            return self._store.settle_staging(key, stagings, after, self._session.owner)

    def undo_staging(self, names: Sequence[str]) -> int:
        """Drops what was staged under these names; of how many rows. Unknown names are passed over."""
        if isinstance(names, str | bytes | bytearray | memoryview) or not isinstance(names, Sequence):
            raise bad_argument("names", names, "a list of names")
        with self._session:
            return self._store.undo_staging(names)

    def in_ledger(self, queue: str, key: LedgerKey) -> Noted | None:
        """When staged rows were settled under this key on a queue, and how many messages that put; None: never."""
        check_instance("key", key, LedgerKey, "a LedgerKey")
        with self._session:
            return self._store.in_ledger(queue, key)

    def last_settled(self, queue: str, application: str, query: str) -> str:
        """The batch that was settled last on a queue for an application and query; empty: none was."""
        with self._session:
            return self._store.last_settled(queue, application, query)


def _check_limits(options: object, most: object, most_bytes: object, horizon: object) -> None:
    check_instance("options", options, GetOptions, "a GetOptions")
    check_whole("most", most, 1)
    check_whole("most_bytes", most_bytes, 1)
    if horizon is not None:
        check_whole("horizon", horizon)


def check_name(argument: str, value: object) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= NAME_LENGTH_MAX or not is_storable(value):
        raise bad_argument(argument, value, f"a text of 1 to {NAME_LENGTH_MAX} characters")
    return value


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
