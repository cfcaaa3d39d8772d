"""The bulk operations, written once for all backends: claims, surveys, stagings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ...errors import QueueFull
from ...model.attributes import QueueAttributes
from ...model.message import Message
from ...rules.ordering import read_order
from ...rules.staged_columns import Columns
from ..seam.bulk_page import BulkPage, PageEnd
from ..seam.queued import Reader
from ..seam.records import (
    Claim,
    Claimer,
    ClaimRequest,
    Claims,
    ClaimStart,
    GetOutcome,
    GetRequest,
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
from ..seam.surveying import moved, stretches
from ..seam.telemetry import count, event, first
from . import claiming, points, staging
from .catalog import Catalog, get_allowed
from .claiming import ClaimedPart, Claiming
from .operation import Operation, in_operation
from .process import OpenHandle, OpenStore
from .queue import LocalQueue
from .reading import release
from .settling import tidied

NOBODY = 0  # no handle: bulk reads skip messages under the handle's own lock


# --- the fields of events


def _of_claimer(claimer: Claimer, *_: Any) -> int:
    return claimer.handle


def _by_claimer(_: object, claimer: Claimer, *__: Any) -> list[object]:
    return [claimer.application, "claim"]


def _by_name(_: object, queue: str, application: str, *__: Any) -> list[object]:
    return [queue, application, "claim"]


def _page(page: BulkPage, *_: Any) -> list[int]:
    return [len(page), sum(page.column("length"))]


class Shortcuts(Protocol):
    """Plain requests that a backend serves in fewer statements, with the same answers as the rules give.

    None: the request is not plain, or there are no messages for it.
    """

    def get(
        self,
        operation: Operation,
        handle: OpenHandle,
        queue: LocalQueue,
        request: GetRequest,
        attributes: QueueAttributes,
    ) -> GetOutcome | None:
        """Serves a plain get."""
        ...

    def claim(self, claiming: Claiming) -> ClaimedPart | None:
        """Takes a claim of plain messages, or of whole groups."""
        ...


class BulkVerbs(OpenStore):
    """The operations for programs that keep their own checkpoints.

    Attributes:
        shortcuts: the backend's faster path for plain requests; None: it has none.
    """

    shortcuts: Shortcuts | None

    # --- claims

    @event("begin_claims", keys="application unit", handle=first, about=lambda _, __, name: [name, "claim"])
    @in_operation()
    def begin_claims(self, operation: Operation, handle: int, application: str) -> ClaimStart:
        one = self.handle(handle)
        return claiming.begin_claims(operation, operation.queue_of(one), one.connection.holder, application)

    @event(
        "claim",
        "messages bytes",
        "application unit",
        handle=lambda request: request.claimer.handle,
        measured=lambda claim, _: [claim.messages, claim.size] if claim else [0, 0],
        about=lambda _, request: [request.claimer.application, "claim"],
    )
    def claim(self, request: ClaimRequest) -> Claim | None:
        claim = self._claim(request)
        if claim is None and self.end_dead_processes():
            claim = self._claim(request)
        return claim

    @in_operation(alone=False)
    def _claim(self, operation: Operation, request: ClaimRequest) -> Claim | None:
        return self.take_next(operation, request, fast=False)[0]

    def take_next(
        self, operation: Operation, request: ClaimRequest, *, fast: bool
    ) -> tuple[Claim | None, Sequence[Message]]:
        """Takes the next claim, as part of an operation. With `fast`, a new claim leaves non-persistent messages out:
        they are removed and returned.
        """
        handle = self.handle(request.claimer.handle)
        queue = tidied(operation, handle)
        resolved = get_allowed(operation, handle, queue)
        account, held, takes = claiming.to_take(operation, queue, request)
        if not takes:
            return held, ()
        reading = Claiming(operation, handle, queue, request, resolved, account)
        taken = None if self.shortcuts is None else self.shortcuts.claim(reading)
        part = reading.run_claim() if taken is None else taken
        gone: Sequence[Message] = ()
        if fast and part.messages:
            part, gone = claiming.take_out(reading, part)
        return claiming.taken(reading, part), gone

    @event("plan_claims", keys="application unit", handle=_of_claimer, about=_by_claimer)
    @in_operation(alone=False)
    def plan_claims(
        self, operation: Operation, claimer: Claimer, after: int, upto: int, slices: int
    ) -> Sequence[Slice]:
        return claiming.plan_claims(operation, self._queue_of(operation, claimer), claimer, after, upto, slices)

    @event("read_claim", "messages bytes", "application unit", handle=_of_claimer, measured=_page, about=_by_claimer)
    @in_operation(writes=False)
    def read_claim(self, operation: Operation, claimer: Claimer, part: Slice, first: int) -> BulkPage:
        return claiming.read_page(operation, self._queue_of(operation, claimer), claimer, part, first)

    @event("settle_claims", "messages", "application unit", handle=_of_claimer, measured=count, about=_by_claimer)
    @in_operation(alone=False)
    def settle_claims(self, operation: Operation, claimer: Claimer, upto: int) -> int:
        return claiming.settle_claims(operation, self._queue_of(operation, claimer), claimer, upto)

    @event("return_ahead", "messages", "application unit", handle=_of_claimer, measured=count, about=_by_claimer)
    @in_operation(alone=False)
    def return_ahead(self, operation: Operation, claimer: Claimer) -> int:
        return claiming.return_ahead(operation, self._queue_of(operation, claimer), claimer)

    def _queue_of(self, operation: Operation, claimer: Claimer) -> LocalQueue:
        return operation.queue_of(self.handle(claimer.handle))

    @event("finish_claims", "messages", "queue application unit", measured=count, about=_by_name)
    @in_operation()
    def finish_claims(self, operation: Operation, queue: str, application: str, upto: int) -> int:
        known = Catalog(operation).local(queue)
        claiming.refuse_channel(operation, known, application)
        return claiming.finish_claims(operation, known, application, upto)

    @event("release_claims", "messages", "queue application unit", measured=count, about=_by_name)
    @in_operation()
    def release_claims(self, operation: Operation, queue: str, application: str) -> int:
        known = Catalog(operation).local(queue)
        claiming.refuse_channel(operation, known, application)
        return claiming.release_claims(operation, known, application)

    @event(
        "leave_claimed_group",
        keys="queue application unit acted",
        about=lambda acted, *given: [*_by_name(acted, *given), bool(acted)],
    )
    @in_operation()
    def leave_claimed_group(self, operation: Operation, queue: str, application: str) -> bool:
        return claiming.leave_claimed_group(operation, Catalog(operation).local(queue), application)

    @event("claims")
    @in_operation(writes=False)
    def claims(self, operation: Operation) -> Sequence[Claims]:
        return claiming.claims(operation)

    # --- surveys

    @event("survey", "messages", handle=lambda request: request.handle, measured=lambda found, _: [found.messages])
    def survey(self, request: SurveyRequest) -> Survey:
        claiming.check_options(request.options)
        claiming.check_limits(request.most, request.most_bytes)
        return self._survey(request)

    @in_operation(ends_dead=True, alone=False)
    def _survey(self, operation: Operation, request: SurveyRequest) -> Survey:
        handle = self.handle(request.handle)
        queue = tidied(operation, handle)
        resolved = get_allowed(operation, handle, queue)
        release(operation, handle, queue)
        asked = request.options.read_order or handle.options.read_order
        strict, logical = read_order(resolved.read_order, asked) == "strict", request.options.logical
        reader = Reader(handle.id, handle.connection.id, operation.now, horizon=request.horizon)
        limits = request.most, request.most_bytes, request.slices
        cuts = operation.backend.survey(queue, reader, request.cursor, *limits, logical=logical, strict=strict)
        cursor, total = moved(request.cursor, cuts, logical=logical), sum(one.messages for one in cuts)
        return Survey(cursor, total, stretches(cuts, logical=logical), queue.counter)

    @event("read_stretch", "messages bytes", handle=first, measured=lambda found, *_: _page(found[0]))
    def read_stretch(self, handle: int, stretch: Stretch, after: PageEnd = ()) -> tuple[BulkPage, PageEnd | None]:
        if self._has_work(handle):
            self._tidy(handle)
        return self._read_stretch(handle, stretch, after)

    @in_operation(writes=False)
    def _has_work(self, operation: Operation, handle: int) -> bool:
        return operation.queue_of(self.handle(handle)).has_work(operation.now)

    @in_operation(alone=False)
    def _tidy(self, operation: Operation, handle: int) -> None:
        tidied(operation, self.handle(handle))

    @in_operation(writes=False)
    def _read_stretch(
        self, operation: Operation, handle: int, stretch: Stretch, after: PageEnd
    ) -> tuple[BulkPage, PageEnd | None]:
        one = self.handle(handle)
        queue = operation.queue_of(one)
        get_allowed(operation, one, queue)
        return operation.backend.stretch_page(queue, Reader(NOBODY, one.connection.id, operation.now), stretch, after)

    # --- stagings

    @event(
        "stage",
        "messages bytes",
        "unit name",
        handle=lambda request: request.handle,
        measured=lambda _, request: [request.count, sum(map(len, request.columns["body"]))],
        about=lambda _, request: ["staging", request.name],
    )
    def stage(self, request: StageRequest) -> None:
        self._stage(request, staging.check_request(request))  # others may write during the check
        if points.reached:
            points.reached("staged")

    @in_operation(feeds=True, alone=False, beside=True)
    def _stage(self, operation: Operation, request: StageRequest, columns: Columns) -> None:
        handle = self.handle(request.handle)
        staging.stage(operation, handle, operation.queue_of(handle), request, columns)

    @event(
        "settle_staging",
        "messages",
        "unit application already",
        measured=lambda settled, *_: [settled.messages],
        about=lambda settled, key, *_: ["staging", key.application, settled is not None and settled.already],
    )
    def settle_staging(
        self, key: LedgerKey, stagings: Sequence[Staged], after: str | None = None, owner: int | None = None
    ) -> Settled:
        staging.check_settle(key, stagings, after)
        return self._settle_staging(key, stagings, after, None if owner is None else self.connection(owner).user)

    @in_operation(feeds=True, unless_dead=(QueueFull,), alone=False)
    def _settle_staging(
        self, operation: Operation, key: LedgerKey, stagings: Sequence[Staged], after: str | None, user: str | None
    ) -> Settled:
        return staging.Settling(operation, key, stagings, after, user).run()

    @event("undo_staging", "stagings", "unit", measured=count, about=lambda *_: ["staging"])
    def undo_staging(self, names: Sequence[str]) -> int:
        for name in names:
            staging.check_name("names", name)
        return self._undo_staging(names)

    @in_operation()
    def _undo_staging(self, operation: Operation, names: Sequence[str]) -> int:
        found = staging.found_all(operation, dict.fromkeys(names))
        for _, known in found.values():
            staging.drop(operation, known)
        return len(found)

    @event("in_ledger", keys="queue application", about=lambda _, queue, key: [queue, key.application])
    @in_operation(writes=False)
    def in_ledger(self, operation: Operation, queue: str, key: LedgerKey) -> Noted | None:
        staging.check_key(key)
        return staging.noted(operation, Catalog(operation).reached(queue), key)

    @event("last_settled", keys="queue application", about=lambda _, queue, application, __: [queue, application])
    @in_operation(writes=False)
    def last_settled(self, operation: Operation, queue: str, application: str, query: str) -> str:
        staging.check_key(LedgerKey(application, query, ""))
        return staging.last_noted(operation, Catalog(operation).reached(queue), application, query)
