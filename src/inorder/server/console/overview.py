"""The list of queues: problems first, then depth, age, rates, held messages and waiting readers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Final, NamedTuple

from starlette.responses import Response

from ... import QueueManager
from ...model.attributes import DEAD_LETTERS, ManagerAttributes, QueueAttributes
from ...stores.seam.views import Dropped, QueueView, Unit, Wait
from ..api.describing import EVENTS
from ..api.streaming import Streamed
from .page import Page, Visit
from .problems import SeenStore, troubles
from .rendering import shown
from .watching import Recent

SHOWN_MAX: Final = 200  # queues
FULL_MAX: Final = 1_000_000  # a queue with a larger maximum has no bar


class QueueRow(NamedTuple):
    """A queue in the table. `full`: in percent; None if its depth is not limited."""

    view: QueueView
    recent: Recent
    full: int | None
    kind: str


class OverviewState(NamedTuple):
    """The state of the store at one moment."""

    queues: list[QueueView]
    attributes: list[QueueAttributes]
    waits: list[Wait]
    units: list[Unit]
    dropped: list[Dropped]
    manager: ManagerAttributes


def _look(qm: QueueManager) -> OverviewState:
    return OverviewState(
        qm.inspect.overview(),
        qm.queues(),
        qm.inspect.waits(),
        qm.inspect.units(),
        qm.inspect.dropped(),
        qm.admin.manager_attributes(),
    )


async def show(visit: Visit) -> Response:
    """The queues that the visitor may see; with ``?name=`` only those whose names contain it."""
    wanted = visit.query("name").get("name", "").strip()
    found = await visit.context.qm.run(_look)
    now = time.time()
    may = visit.identity.may
    local = [one for one in found.queues if may("inquire", one.name)]
    seen = SeenStore(
        now=now,
        queues=local,
        attributes={one.name: one for one in found.attributes},
        waits=[one for one in found.waits if may("display", one.queue)],
        units=[one for one in found.units if all(may("display", queue) for queue in one.queues)],
        dropped=found.dropped,
        groups=await visit.groups.of_all(local),
        dead_letter_queue=found.manager.dead_letter_queue or DEAD_LETTERS,
    )
    wrong = troubles(seen, {one.name for one in local})
    kinds = {one.queue: one.kind for one in reversed(wrong)}
    rows = [
        QueueRow(one, visit.watching.recent(one), _full(one, seen), kinds.get(one.name, ""))
        for one in local
        if wanted.lower() in one.name.lower()
    ]
    others = [one for one in found.attributes if one.type != "local" and may("inquire", one.name)]
    values = {
        "rows": rows[:SHOWN_MAX],
        "more": len(rows) - SHOWN_MAX,
        "others": others,
        "now": now,
        "wrong": wrong,
        "wanted": wanted,
    }
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
