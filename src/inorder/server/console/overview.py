"""The list of queues: problems first, then depth, age, rates, held messages and waiting readers.

A problem is something that fails, or a reason for which messages or readers wait.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from starlette.responses import Response

from ... import QueueManager
from ...client.incomplete_groups import GroupSearches, Wholeness
from ...errors import REASON_TEXT, Reason
from ...model.attributes import QueueAttributes
from ...model.parameters import one_of
from ...rules.authorities import Authority
from ...rules.ordering import pending_text
from ...stores.seam.views import Dropped, QueueView, Unit, Wait
from ..api.describing import EVENTS
from ..api.streaming import Streamed
from ..problems import problem
from .labels import counted, number, span
from .page import Page, Visit
from .rendering import shown
from .watching import Recent

LONG_SECONDS: Final = 60.0  # before an open unit of work is reported
NEARLY_FULL: Final = 0.8
SHOWN_MAX: Final = 200  # queues
FULL_MAX: Final = 1_000_000  # a queue with a larger maximum has no bar
WRONG_CHANNELS: Final = ("stopped", "retrying", "paused")


class StoreProblem(NamedTuple):
    """A problem. `kind`: bad if something fails; warn if something waits or will soon fail."""

    kind: Literal["bad", "warn"]
    queue: str
    text: str


class SeenStore(NamedTuple):
    """The state of the store at one moment, as far as the visitor may see it.

    Args:
        attributes: of all queues, by name.
        groups: the incomplete groups by queue, as far as they are known.
    """

    now: float
    queues: Sequence[QueueView]
    attributes: Mapping[str, QueueAttributes]
    waits: Sequence[Wait]
    units: Sequence[Unit]
    dropped: Sequence[Dropped]
    dead_letter_queue: str
    groups: Mapping[str, Wholeness] = MappingProxyType({})


def problems(seen: SeenStore, queues: Collection[str]) -> list[StoreProblem]:
    """The problems of these queues, worst first."""
    found = [*_of_queues(seen), *_of_waits(seen), *_of_units(seen), *_of_dropped(seen)]
    return sorted((one for one in found if not one.queue or one.queue in queues), key=lambda one: one.kind != "bad")


def _of_queues(seen: SeenStore) -> Iterator[StoreProblem]:
    for one in seen.queues:
        attributes = seen.attributes.get(one.name)
        if one.name == seen.dead_letter_queue and one.depth:
            yield StoreProblem("bad", one.name, f"{counted(one.depth)} could not be delivered")
        if attributes is not None:
            yield from _of_definition(one, attributes)
        yield from _of_groups(one.name, seen)
        for channel in one.channels:
            if channel.status in WRONG_CHANNELS:
                why = f": {channel.error}" if channel.error else ""
                yield StoreProblem("bad", one.name, f"channel {channel.name} is {channel.status}{why}")


def _of_definition(one: QueueView, attributes: QueueAttributes) -> Iterator[StoreProblem]:
    most = attributes.max_depth
    if one.depth >= most:
        yield StoreProblem("bad", one.name, f"full: {number(one.depth)} of {counted(most)}")
    elif one.depth >= NEARLY_FULL * most:
        yield StoreProblem("warn", one.name, f"nearly full: {number(one.depth)} of {counted(most)}")
    if not attributes.put_allowed:
        yield StoreProblem("warn", one.name, "puts are inhibited")
    if not attributes.get_allowed:
        yield StoreProblem("warn", one.name, "gets are inhibited")


def _of_groups(queue: str, seen: SeenStore) -> Iterator[StoreProblem]:
    lacking = seen.groups[queue].lacking if queue in seen.groups else ()
    if lacking:
        oldest = span(seen.now - min(one.put_at for one in lacking))
        count = "1 group is" if len(lacking) == 1 else f"{number(len(lacking))} groups are"
        yield StoreProblem(
            "warn", queue, f"{count} incomplete; the oldest began {oldest} ago".replace("now ago", "now")
        )


def _of_waits(seen: SeenStore) -> Iterator[StoreProblem]:
    for one in seen.waits:
        if one.pending is not None:
            process = "" if one.process is None else f" ({one.process})"
            behind = "; messages wait behind it" if one.withheld else ""
            why = f"{pending_text(one.pending)}, for {span(seen.now - one.pending.since)}"
            yield StoreProblem("warn", one.queue, f"strict reader {one.program.name}{process} waits for {why}{behind}")


def _of_units(seen: SeenStore) -> Iterator[StoreProblem]:
    for one in seen.units:
        age = seen.now - one.started_at
        for queue in one.queues:
            if one.kind == "prepared":
                yield StoreProblem("warn", queue, f"prepared unit {one.name} has not been settled for {span(age)}")
            elif one.kind == "session" and age > LONG_SECONDS:
                process = "" if one.process is None else f" ({one.process})"
                yield StoreProblem(
                    "warn", queue, f"a unit of work of {one.program.name}{process} has been open for {span(age)}"
                )


def _of_dropped(seen: SeenStore) -> Iterator[StoreProblem]:
    for one in seen.dropped:
        try:
            why = REASON_TEXT.get(Reason(one.reason), str(one.reason))
        except ValueError:
            why = str(one.reason)
        text = f"{number(one.messages)} reports or trigger messages could not be put on any queue: {why}"
        yield StoreProblem("bad", one.queue, text)


class QueueRow(NamedTuple):
    """A queue in the table. `full`: in percent; None if its depth is not limited."""

    view: QueueView
    recent: Recent
    full: int | None
    kind: str


SORTS: Final[Mapping[str, Callable[[QueueRow], float]]] = {
    "name": lambda row: 0.0,
    "depth": lambda row: row.view.depth,
    "age": lambda row: -math.inf if row.view.oldest_put_at is None else -row.view.oldest_put_at,
    "put": lambda row: row.recent.put or 0.0,
    "got": lambda row: row.recent.got or 0.0,
}


def _look(qm: QueueManager, may: Callable[[Authority, str], bool], groups: GroupSearches) -> SeenStore:
    queues = [one for one in qm.inspect.overview() if may("inquire", one.name)]
    return SeenStore(
        queues=queues,
        groups=groups.of_all(qm, queues),
        attributes={one.name: one for one in qm.queues()},
        waits=[one for one in qm.inspect.waits() if may("display", one.queue)],
        units=[one for one in qm.inspect.units() if all(may("display", queue) for queue in one.queues)],
        dropped=qm.inspect.dropped(),
        dead_letter_queue=qm.dead.place(),
        now=time.time(),
    )


async def show(visit: Visit) -> Response:
    """The queues that the visitor may see; with ``?name=`` only those whose names contain it, with ``?sort=`` the
    deepest, oldest or busiest first.
    """
    given = visit.query("name", "sort")
    wanted, sort = given.get("name", "").strip(), given.get("sort", "name")
    if sort not in SORTS:
        raise problem("INWB0003E", "sort", f"must be {one_of(SORTS)}, or left out")
    may = visit.identity.may
    seen = await visit.context.qm.run(lambda qm: _look(qm, may, visit.groups))
    wrong = problems(seen, {one.name for one in seen.queues})
    kinds = {one.queue: one.kind for one in reversed(wrong)}
    rows = [
        QueueRow(one, visit.watching.recent(one), _full(one, seen), kinds.get(one.name, ""))
        for one in seen.queues
        if wanted.lower() in one.name.lower()
    ]
    if sort != "name":
        rows.sort(key=SORTS[sort], reverse=True)
    others = [one for one in seen.attributes.values() if one.type != "local" and may("inquire", one.name)]
    shown_rows = rows[:SHOWN_MAX]
    hour = await visit.context.qm.run(lambda qm: visit.watching.last_hour(qm, [row.view for row in shown_rows]))
    values = {
        "rows": shown_rows, "hour": hour, "more": len(rows) - SHOWN_MAX, "others": others, "now": seen.now,
        "wrong": wrong, "wanted": wanted, "sort": sort,
    }  # fmt: skip
    return await asyncio.to_thread(shown, visit, values)  # many queues take some time


def _full(one: QueueView, seen: SeenStore) -> int | None:
    attributes = seen.attributes.get(one.name)
    if attributes is None or attributes.max_depth > FULL_MAX:
        return None
    return min(100, round(100 * one.depth / max(1, attributes.max_depth)))


async def live(visit: Visit) -> Response:
    """Server-sent events. Each one says that pages may have changed."""
    visit.query()
    with ExitStack() as held:
        held.enter_context(visit.watching.listening.taken())
        out = held.enter_context(visit.context.connected_clients.watched(visit.identity, until=visit.session_ends_at))
        seconds = visit.context.settings.limits.body_seconds
        return Streamed(_events(visit, out), held.pop_all(), seconds=seconds, media_type=EVENTS)


async def _events(visit: Visit, out: asyncio.Event) -> AsyncIterator[bytes]:
    async for _ in visit.watching.changes(visit.context.stopping, out):
        yield b"data: look\n\n"
    if out.is_set():  # the browser connects again, is refused, and shows the log-in page
        yield b"event: failed\ndata: log in again\n\n"


PAGES: Final = (
    Page(path="", title="Queues", authority=None, template="overview.html", show=show, menu="Queues", is_live=True),
    Page(path="live", title="", authority=None, show=live),
)
