"""The verbs in bulk, once for all backends: claims, surveys, stagings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

from ..attributes import QueueAttributes
from ..errors import QueueFull
from ..rules.ordering import read_order
from . import claiming, points, staging
from .catalog import Catalog
from .claiming import Claiming, Taken
from .connections import bury_dead, unless_dead
from .queued import Reader
from .reading import release
from .records import (
    BULK_COLUMNS,
    BulkRow,
    Claim,
    Claimer,
    ClaimRequest,
    Claims,
    ClaimStart,
    GetOutcome,
    GetRequest,
    LedgerKey,
    Settled,
    Slice,
    Staged,
    StageRequest,
    Stretch,
    Survey,
    SurveyRequest,
)
from .settling import tidied
from .surveying import moved, stretches
from .telemetry import event
from .verb import LocalQueue, OpenHandle, OpenStore, Verb

LENGTH = BULK_COLUMNS.index("length")
NOBODY = 0  # no handle: what a lock of its own holds is not read in bulk

Behind = tuple[Any, ...]


def _of_claimer(claimer: Claimer, *_: Any) -> int:
    return claimer.handle


def _by_claimer(_: object, claimer: Claimer, *__: Any) -> list[object]:
    return [claimer.application, "claim"]


def _by_name(_: object, queue: str, application: str, *__: Any) -> list[object]:
    return [queue, application, "claim"]


def _size(rows: Sequence[BulkRow]) -> int:
    return sum(row[LENGTH] for row in rows)


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


class BulkVerbs(OpenStore, ABC):
    """The part of a store for programs that keep a checkpoint of their own; `protocol.Store` says what they guarantee."""

    shortcuts: Shortcuts | None

    @abstractmethod
    def _attributes(self, verb: Verb, handle: OpenHandle, queue: LocalQueue) -> QueueAttributes: ...

    @abstractmethod
    def _check_get_allowed(self, verb: Verb, handle: OpenHandle, queue: LocalQueue) -> QueueAttributes: ...

    @abstractmethod
    def _sweep(self) -> None: ...

    # --- claims

    @event("begin_claims", keys=["application", "unit"], handle=lambda handle, _: handle,
           about=lambda _, __, application: [application, "claim"])  # fmt: skip
    def begin_claims(self, handle: int, application: str) -> ClaimStart:
        with self.verb() as verb:
            one = self.handle(handle)
            return claiming.begin_claims(verb, verb.queue_of(one), one.connection.program, application)

    @event(
        "claim",
        ["messages", "bytes"],
        ["application", "unit"],
        handle=lambda request: request.claimer.handle,
        measured=lambda claim, _: [claim.messages, claim.size] if claim else [0, 0],
        about=lambda _, request: [request.claimer.application, "claim"],
    )
    def claim(self, request: ClaimRequest) -> Claim | None:
        claim = self._claim(request)
        if claim is None and bury_dead(self):
            claim = self._claim(request)
        self._sweep()
        return claim

    def _claim(self, request: ClaimRequest) -> Claim | None:
        with self.verb() as verb:
            handle = self.handle(request.claimer.handle)
            queue = tidied(verb, handle)
            resolved = self._check_get_allowed(verb, handle, queue)
            account, again = claiming.to_take(verb, queue, request)
            if again is not None:
                return again
            reading = Claiming(verb, handle, queue, request, resolved, verb.manager, account)
            taken = None if self.shortcuts is None else self.shortcuts.claim(reading)
            return claiming.taken(reading, reading.run_claim() if taken is None else taken)

    @event("plan_claims", keys=["application", "unit"], handle=_of_claimer, about=_by_claimer)
    def plan_claims(self, claimer: Claimer, after: int, upto: int, slices: int) -> Sequence[Slice]:
        with self.verb() as verb:
            queue = verb.queue_of(self.handle(claimer.handle))
            return claiming.plan_claims(verb, queue, claimer, after, upto, slices)

    @event("read_claim", ["messages", "bytes"], ["application", "unit"], handle=_of_claimer,
           measured=lambda page, *_: [len(page), _size(page)], about=_by_claimer)  # fmt: skip
    def read_claim(self, claimer: Claimer, part: Slice, first: int) -> list[BulkRow]:
        with self.verb(writes=False) as verb:
            return claiming.read_page(verb, verb.queue_of(self.handle(claimer.handle)), claimer, part, first)

    @event("settle_claims", ["messages"], ["application", "unit"], handle=_of_claimer,
           measured=lambda count, *_: [count], about=_by_claimer)  # fmt: skip
    def settle_claims(self, claimer: Claimer, upto: int) -> int:
        with self.verb() as verb:
            settled = claiming.settle_claims(verb, verb.queue_of(self.handle(claimer.handle)), claimer, upto)
        self._sweep()
        return settled

    @event("finish_claims", ["messages"], ["queue", "application", "unit"], measured=lambda count, *_: [count],
           about=_by_name)  # fmt: skip
    def finish_claims(self, queue: str, application: str, upto: int) -> int:
        with self.verb() as verb:
            finished = claiming.finish_claims(verb, Catalog(verb).local(queue), application, upto)
        self._sweep()
        return finished

    @event("release_claims", ["messages"], ["queue", "application", "unit"], measured=lambda count, *_: [count],
           about=_by_name)  # fmt: skip
    def release_claims(self, queue: str, application: str) -> int:
        with self.verb() as verb:
            return claiming.release_claims(verb, Catalog(verb).local(queue), application)

    @event("leave_claimed_group", keys=["queue", "application", "unit", "acted"],
           about=lambda acted, *given: [*_by_name(acted, *given), bool(acted)])  # fmt: skip
    def leave_claimed_group(self, queue: str, application: str) -> bool:
        with self.verb() as verb:
            return claiming.leave_claimed_group(verb, Catalog(verb).local(queue), application)

    @event("claims")
    def claims(self) -> Sequence[Claims]:
        with self.verb(writes=False) as verb:
            return claiming.claims(verb)

    # --- surveys

    @event("survey", ["messages"], handle=lambda request: request.handle, measured=lambda found, _: [found.messages])
    def survey(self, request: SurveyRequest) -> Survey:
        claiming.check_options(request.options)
        claiming.check_limits(request.most, request.most_bytes)
        bury_dead(self)
        with self.verb() as verb:
            handle = self.handle(request.handle)
            queue = tidied(verb, handle)
            resolved = self._check_get_allowed(verb, handle, queue)
            release(verb, handle, queue)
            asked = request.options.read_order or handle.options.read_order
            strict, logical = read_order(resolved.read_order, asked) == "strict", request.options.logical
            reader = _reader(handle.id, handle, verb)._replace(horizon=request.horizon)
            limits = request.most, request.most_bytes, request.slices
            cuts = verb.backend.survey(queue, reader, request.cursor, *limits, logical=logical, strict=strict)
            shown = stretches(cuts, logical=logical)
            return Survey(moved(request.cursor, cuts, logical=logical), sum(one.messages for one in cuts), shown,
                          queue.counter)  # fmt: skip

    @event("read_stretch", ["messages", "bytes"], handle=lambda handle, *_: handle,
           measured=lambda found, *_: [len(found[0]), _size(found[0])])  # fmt: skip
    def read_stretch(self, handle: int, stretch: Stretch, after: Behind = ()) -> tuple[list[BulkRow], Behind | None]:
        with self.verb(writes=False) as verb:
            one = self.handle(handle)
            queue = verb.queue_of(one)
            has_work = queue.has_work(verb.now)
        if has_work:
            with self.verb() as verb:
                tidied(verb, self.handle(handle))
        with self.verb(writes=False) as verb:
            one = self.handle(handle)
            queue = verb.queue_of(one)
            self._check_get_allowed(verb, one, queue)
            return verb.backend.stretch_page(queue, _reader(NOBODY, one, verb), stretch, after)

    # --- stagings

    @event(
        "stage",
        ["messages", "bytes"],
        ["unit", "name"],
        handle=lambda request: request.handle,
        measured=lambda _, request: [request.count, sum(map(len, request.columns["body"]))],
        about=lambda _, request: ["staging", request.name],
    )
    def stage(self, request: StageRequest) -> None:
        columns = staging.check_request(request)  # others may write meanwhile
        with self.verb() as verb:
            handle = self.handle(request.handle)
            queue = verb.queue_of(handle)
            staging.stage(verb, handle, queue, self._attributes(verb, handle, queue), request, columns)
        if points.reached:
            points.reached("staged")
        self._sweep()

    @event(
        "settle_staging",
        ["messages"],
        ["unit", "application", "already"],
        measured=lambda settled, *_: [settled.messages],
        about=lambda settled, key, _: ["staging", key.application, settled is not None and settled.already],
    )
    def settle_staging(self, key: LedgerKey, stagings: Sequence[Staged]) -> Settled:
        staging.check_settle(key, stagings)

        def once() -> Settled:
            with self.verb() as verb:
                return staging.Settling(verb, key, stagings).run()

        settled = unless_dead(self, once, QueueFull)
        self._sweep()
        return settled

    @event("undo_staging", ["stagings"], ["unit"], measured=lambda count, _: [count], about=lambda *_: ["staging"])
    def undo_staging(self, names: Sequence[str]) -> int:
        for name in names:
            staging.check_name("names", name)
        with self.verb() as verb:
            found = [one for name in dict.fromkeys(names) if (one := staging.found(verb, name)) is not None]
            for _, known in found:
                staging.drop(verb, known)
        self._sweep()
        return len(found)

    def _undo_expired_stagings(self) -> None:
        """Drops stagings whose time is over, a verb for each; contents of large ones go in steps."""
        while staging.is_any_over(self):
            with self.verb() as verb:
                staging.drop_one_that_is_over(verb)

    @event("in_ledger", keys=["queue", "application"], about=lambda _, queue, key: [queue, key.application])
    def in_ledger(self, queue: str, key: LedgerKey) -> float | None:
        staging.check_key(key)
        with self.verb(writes=False) as verb:
            return staging.noted_at(verb, Catalog(verb).local(queue), key)


def _reader(number: int, handle: OpenHandle, verb: Verb) -> Reader:
    return Reader(number, handle.connection.id, co_op=False, now=verb.now, mark_interval=0.0)
