"""Claims made directly on the store, for tests: an application that claims, and queues with groups for it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

from inorder import Flags, QueueManager
from inorder.model.options import GetOptions, OpenOptions
from inorder.rules.ordering import UNSET, Cursor
from inorder.rules.puts import Program
from inorder.stores.seam.bulk_page import BulkPage
from inorder.stores.seam.protocol import Store
from inorder.stores.seam.records import BULK_COLUMNS, Claim, Claimer, ClaimRequest, Slice, Stretch, SurveyRequest
from inorder.testing.stores import RestartableStore

ALL = 10**9
BODY, DELIVERY = BULK_COLUMNS.index("body"), BULK_COLUMNS.index("delivery")
HEAD = BULK_COLUMNS.index("group_rank")
GROUPS = GetOptions(logical=True, all_messages=True)
LOGICAL = GetOptions(logical=True)
PHYSICAL = GetOptions()
STRICT = GetOptions(read_order="strict")
STRICT_GROUPS = GetOptions(logical=True, all_messages=True, read_order="strict")


class Application:
    """One run of a reader that claims."""

    def __init__(self, store: Store, name: str = "app", queue: str = "Q") -> None:
        self.store = store
        self.owner = store.connect(Program("tester", "application"))
        handle = store.open(self.owner, queue, OpenOptions(input="shared", browse=True)).handle
        start = store.begin_claims(handle, name)
        self.settled, self.horizon = start.settled, start.horizon
        self.claimer = Claimer(handle, name, start.epoch)

    def claim(self, start: int, options: GetOptions = PHYSICAL, **limits: Any) -> Claim | None:
        wanted = {"most": ALL, "most_bytes": ALL} | limits
        return self.store.claim(ClaimRequest(self.claimer, start, options, **wanted))

    def plan(self, after: int, upto: int, slices: int = 1) -> list[Slice]:
        return list(self.store.plan_claims(self.claimer, after, upto, slices))

    def bodies(self, upto: int, slices: int = 1) -> list[bytes]:
        return [row[BODY] for row in self.rows(upto, slices)]

    def rows(self, upto: int, slices: int = 1) -> list[tuple[Any, ...]]:
        parts = self.plan(upto - 1, upto, slices)
        return [row for part in parts for page in claim_pages(self.store, self.claimer, part) for row in page]

    def settle(self, upto: int) -> int:
        return self.store.settle_claims(self.claimer, upto)

    def survey(
        self, options: GetOptions = PHYSICAL, cursor: Cursor = UNSET, **limits: Any
    ) -> tuple[Cursor, list[bytes]]:
        wanted = {"most": ALL, "most_bytes": ALL, "slices": 1} | limits
        survey = self.store.survey(SurveyRequest(self.claimer.handle, options, cursor, **wanted))
        rows = [
            row
            for one in survey.stretches
            for page in stretch_pages(self.store, self.claimer.handle, one)
            for row in page
        ]
        assert len(rows) == survey.messages == sum(one.messages for one in survey.stretches)
        return survey.cursor, [row[BODY] for row in rows]


def put_all(qm: QueueManager, bodies: Iterable[bytes]) -> None:
    for body in bodies:
        qm.put("Q", body)


def claim_pages(store: Store, claimer: Claimer, part: Slice) -> Iterator[BulkPage]:
    """Reads a slice of a claim page by page."""
    first = part.first
    while first <= part.last:
        page = store.read_claim(claimer, part, first)
        yield page
        first += len(page)


def stretch_pages(store: Store, handle: int, stretch: Stretch) -> Iterator[BulkPage]:
    """Reads a stretch page by page."""
    after: tuple[Any, ...] | None = ()
    while after is not None:
        page, after = store.read_stretch(handle, stretch, after)
        if page:
            yield page


def store_of(qm: QueueManager) -> RestartableStore:
    store: RestartableStore = qm._session.store  # type: ignore[assignment]
    return store


def interleaved(
    qm: QueueManager, sizes: dict[bytes, int], without: Iterable[tuple[bytes, int]] = (), seed: int = 1
) -> dict[bytes, list[bytes]]:
    """Puts groups of these sizes, interleaved, without some members. Returns all bodies of each group, in order."""
    waiting = [(name, number) for name, size in sizes.items() for number in range(1, size + 1)]
    random.Random(seed).shuffle(waiting)
    heads = [(name, 1) for name in sizes]
    order = heads + [one for one in waiting if one[1] > 1]
    for name, number in order:
        if (name, number) in without:
            continue
        flags = Flags.IN_GROUP | (Flags.LAST_IN_GROUP if number == sizes[name] else Flags.NONE)
        qm.put("Q", b"%s%d" % (name, number), group_id=name.ljust(24, b"."), sequence_number=number, flags=flags)
    return {name: [b"%s%d" % (name, number) for number in range(1, size + 1)] for name, size in sizes.items()}
