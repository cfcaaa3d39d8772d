"""The bulk verbs, written once for all backends: claims, surveys, stagings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ...errors import QueueFull
from ...model.attributes import QueueAttributes
from ...rules.ordering import read_order
from ...rules.staged_columns import Columns
from ..seam.bulk_page import BulkPage
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
from .claiming import Claiming, Taken
from .operation import Verb, in_verb
from .process import OpenHandle, OpenStore
from .queue import LocalQueue
from .reading import release
from .settling import tidied

NOBODY = 0  # no handle: what a lock of its own holds is not read in bulk

Behind = tuple[Any, ...]


# --- what events say


def _of_claimer(claimer: Claimer, *_: Any) -> int:
    return claimer.handle


def _by_claimer(_: object, claimer: Claimer, *__: Any) -> list[object]:
    return [claimer.application, "claim"]


def _by_name(_: object, queue: str, application: str, *__: Any) -> list[object]:
    return [queue, application, "claim"]


def _page(page: BulkPage, *_: Any) -> list[int]:
    return [len(page), sum(page.column("length"))]


class Shortcuts(Protocol):
    """What a backend does in fewer statements for plain requests, with the same answers as the rules give.

    None: the request is not plain, or nothing is there for it.
    """

    def get(
        self, verb: Verb, handle: OpenHandle, queue: LocalQueue, request: GetRequest, attributes: QueueAttributes
    ) -> GetOutcome | None:
        """What a plain get is given."""
        ...

    def claim(self, claiming: Claiming) -> Taken | None:
        """What a claim of plain messages, or of whole groups, takes."""
        ...


class BulkVerbs(OpenStore):
    """The part of a store for programs that keep a checkpoint of their own.

    Attributes:
        shortcuts: what the backend does for plain requests; None: all goes the long way.
    """

    shortcuts: Shortcuts | None

    # --- claims

    @event("begin_claims", keys="application unit", handle=first, about=lambda _, __, name: [name, "claim"])
    @in_verb()
    def begin_claims(self, verb: Verb, handle: int, application: str) -> ClaimStart:
        one = self.handle(handle)
        return claiming.begin_claims(verb, verb.queue_of(one), one.connection.holder, application)

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
        if claim is None and self.bury_dead():
            claim = self._claim(request)
        return claim

    @in_verb(alone=False)
    def _claim(self, verb: Verb, request: ClaimRequest) -> Claim | None:
        return self.take_claim(verb, request)

    def take_claim(self, verb: Verb, request: ClaimRequest) -> Claim | None:
        """The next claim, as part of a verb."""
        handle = self.handle(request.claimer.handle)
        queue = tidied(verb, handle)
        resolved = get_allowed(verb, handle, queue)
        account, held, takes = claiming.to_take(verb, queue, request)
        if not takes:
            return held
        reading = Claiming(verb, handle, queue, request, resolved, verb.manager, account)
        taken = None if self.shortcuts is None else self.shortcuts.claim(reading)
        return claiming.taken(reading, reading.run_claim() if taken is None else taken)

    @event("plan_claims", keys="application unit", handle=_of_claimer, about=_by_claimer)
    @in_verb(alone=False)
    def plan_claims(self, verb: Verb, claimer: Claimer, after: int, upto: int, slices: int) -> Sequence[Slice]:
        return claiming.plan_claims(verb, self._queue_of(verb, claimer), claimer, after, upto, slices)

    @event("read_claim", "messages bytes", "application unit", handle=_of_claimer, measured=_page, about=_by_claimer)
    @in_verb(writes=False)
    def read_claim(self, verb: Verb, claimer: Claimer, part: Slice, first: int) -> BulkPage:
        return claiming.read_page(verb, self._queue_of(verb, claimer), claimer, part, first)

    @event("settle_claims", "messages", "application unit", handle=_of_claimer, measured=count, about=_by_claimer)
    @in_verb(alone=False)
    def settle_claims(self, verb: Verb, claimer: Claimer, upto: int) -> int:
        return claiming.settle_claims(verb, self._queue_of(verb, claimer), claimer, upto)

    @event("return_ahead", "messages", "application unit", handle=_of_claimer, measured=count, about=_by_claimer)
    @in_verb(alone=False)
    def return_ahead(self, verb: Verb, claimer: Claimer) -> int:
        return claiming.return_ahead(verb, self._queue_of(verb, claimer), claimer)

    def _queue_of(self, verb: Verb, claimer: Claimer) -> LocalQueue:
        return verb.queue_of(self.handle(claimer.handle))

    @event("finish_claims", "messages", "queue application unit", measured=count, about=_by_name)
    @in_verb()
    def finish_claims(self, verb: Verb, queue: str, application: str, upto: int) -> int:
        known = Catalog(verb).local(queue)
        claiming.refuse_channel(verb, known, application)
        return claiming.finish_claims(verb, known, application, upto)

    @event("release_claims", "messages", "queue application unit", measured=count, about=_by_name)
    @in_verb()
    def release_claims(self, verb: Verb, queue: str, application: str) -> int:
        known = Catalog(verb).local(queue)
        claiming.refuse_channel(verb, known, application)
        return claiming.release_claims(verb, known, application)

    @event(
        "leave_claimed_group",
        keys="queue application unit acted",
        about=lambda acted, *given: [*_by_name(acted, *given), bool(acted)],
    )
    @in_verb()
    def leave_claimed_group(self, verb: Verb, queue: str, application: str) -> bool:
        return claiming.leave_claimed_group(verb, Catalog(verb).local(queue), application)

    @event("claims")
    @in_verb(writes=False)
    def claims(self, verb: Verb) -> Sequence[Claims]:
        return claiming.claims(verb)

    # --- surveys

    @event("survey", "messages", handle=lambda request: request.handle, measured=lambda found, _: [found.messages])
    def survey(self, request: SurveyRequest) -> Survey:
        claiming.check_options(request.options)
        claiming.check_limits(request.most, request.most_bytes)
        return self._survey(request)

    @in_verb(buries=True, alone=False)
    def _survey(self, verb: Verb, request: SurveyRequest) -> Survey:
        handle = self.handle(request.handle)
        queue = tidied(verb, handle)
        resolved = get_allowed(verb, handle, queue)
        release(verb, handle, queue)
        asked = request.options.read_order or handle.options.read_order
        strict, logical = read_order(resolved.read_order, asked) == "strict", request.options.logical
        reader = _reader(handle.id, handle, verb)._replace(horizon=request.horizon)
        limits = request.most, request.most_bytes, request.slices
        cuts = verb.backend.survey(queue, reader, request.cursor, *limits, logical=logical, strict=strict)
        cursor, total = moved(request.cursor, cuts, logical=logical), sum(one.messages for one in cuts)
        return Survey(cursor, total, stretches(cuts, logical=logical), queue.counter)

    @event("read_stretch", "messages bytes", handle=first, measured=lambda found, *_: _page(found[0]))
    def read_stretch(self, handle: int, stretch: Stretch, after: Behind = ()) -> tuple[BulkPage, Behind | None]:
        if self._has_work(handle):
            self._tidy(handle)
        return self._read_stretch(handle, stretch, after)

    @in_verb(writes=False)
    def _has_work(self, verb: Verb, handle: int) -> bool:
        return verb.queue_of(self.handle(handle)).has_work(verb.now)

    @in_verb(alone=False)
    def _tidy(self, verb: Verb, handle: int) -> None:
        tidied(verb, self.handle(handle))

    @in_verb(writes=False)
    def _read_stretch(self, verb: Verb, handle: int, stretch: Stretch, after: Behind) -> tuple[BulkPage, Behind | None]:
        one = self.handle(handle)
        queue = verb.queue_of(one)
        get_allowed(verb, one, queue)
        return verb.backend.stretch_page(queue, _reader(NOBODY, one, verb), stretch, after)

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
        self._stage(request, staging.check_request(request))  # others may write while it is checked
        if points.reached:
            points.reached("staged")

    @in_verb(feeds=True, alone=False, beside=True)
    def _stage(self, verb: Verb, request: StageRequest, columns: Columns) -> None:
        handle = self.handle(request.handle)
        staging.stage(verb, handle, verb.queue_of(handle), request, columns)

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

    @in_verb(feeds=True, unless_dead=(QueueFull,), alone=False)
    def _settle_staging(
        self, verb: Verb, key: LedgerKey, stagings: Sequence[Staged], after: str | None, user: str | None
    ) -> Settled:
        return staging.Settling(verb, key, stagings, after, user).run()

    @event("undo_staging", "stagings", "unit", measured=count, about=lambda *_: ["staging"])
    def undo_staging(self, names: Sequence[str]) -> int:
        for name in names:
            staging.check_name("names", name)
        return self._undo_staging(names)

    @in_verb()
    def _undo_staging(self, verb: Verb, names: Sequence[str]) -> int:
        found = staging.found_all(verb, dict.fromkeys(names))
        for _, known in found.values():
            staging.drop(verb, known)
        return len(found)

    @event("in_ledger", keys="queue application", about=lambda _, queue, key: [queue, key.application])
    @in_verb(writes=False)
    def in_ledger(self, verb: Verb, queue: str, key: LedgerKey) -> Noted | None:
        staging.check_key(key)
        return staging.noted(verb, Catalog(verb).local(queue), key)

    @event("last_settled", keys="queue application", about=lambda _, queue, application, __: [queue, application])
    @in_verb(writes=False)
    def last_settled(self, verb: Verb, queue: str, application: str, query: str) -> str:
        staging.check_key(LedgerKey(application, query, ""))
        return staging.last_noted(verb, Catalog(verb).local(queue), application, query)


def _reader(number: int, handle: OpenHandle, verb: Verb) -> Reader:
    return Reader(number, handle.connection.id, co_op=False, now=verb.now, mark_interval=0.0)
