"""Server-sent events: the state of queues, and arriving messages.

A stream of events is a task. While it is idle it uses neither a thread nor a connection to the store. It follows the
pace of its client: events are produced only when the client reads, and a client that does not read for long is
disconnected. The stream ends when the client disconnects, when the server stops, and after some time; browsers then
reconnect and continue after their last event. The user is looked up before each event and each sign of life, and every
few seconds while the stream is idle. A user who was disabled or lost the authority gets a last event that says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from ...aio import QueueManager as SharedQueueManager
from ...client.bulk import BulkBrowser
from ...client.inspection import QueueView
from ...client.manager import QueueManager
from ...errors import InorderError, NoMessageAvailable, OrderPending
from ...model.options import GetOptions, Match
from ...model.parameters import Choice, Integer
from ...rules.authorities import Authority
from ...rules.ordering import UNSET
from ..calls import Call
from ..problems import Problem, of_our_error
from .browsing import shown_record
from .describing import EVENTS, ApiOperation, ApiParameter, ApiResponse, Given
from .parameters import BrowseCursor, flag
from .streaming import Streamed, unless
from .taking import SELECTOR

HEARTBEAT_SECONDS: Final = 15.0
STREAM_SECONDS: Final = 900.0
INTERVAL: Final = Integer(1, 60)
RETRY_MS: Final = 1_000
PAGE_MESSAGES, PAGE_BYTES = 100, 1_048_576
FROM_AN_EVENT: Final = BrowseCursor("the id of an event of this queue, or the cursor from the answer of a browse")
START: Final = Choice(("now", "first"))
SHOWN: Final = (
    "name",
    "depth",
    "arrived",
    "puts",
    "gets",
    "locked",
    "delayed",
    "oldest_put_at",
    "open_input_count",
    "open_output_count",
    "waiters",
)
BEGIN: Final = f"retry: {RETRY_MS}\n\n".encode()
HEARTBEAT: Final = b":\n\n"


def event(kind: str, data: Mapping[str, Any], cursor: str | None = None) -> bytes:
    """An event in the format of the stream."""
    name = "" if cursor is None else f"id: {cursor}\n"
    return f"{name}event: {kind}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


def _answer(call: Call, parts: AsyncIterator[bytes], held: ExitStack) -> Response:
    limits = call.context.settings.limits
    return Streamed(parts, held, seconds=limits.body_seconds, media_type=EVENTS)


pause = asyncio.sleep


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _refusal(call: Call, authority: Authority | None = None) -> Problem | None:
    """The problem that ends the stream; None if the user may still log in and has the authority."""
    try:
        await call.ask_again()
        if authority is not None:
            call.demand(authority, call.queue)
    except Problem as found:
        return found
    return None


def _failed(refusal: Problem) -> bytes:
    """The last event of a stream, with the reason for its end."""
    record = refusal.record()
    return event("failed", {name: record[name] for name in ("message", "reasonCode")})


# --- the state of queues


async def queues(call: Call, given: Given) -> Response:
    """Answers the state of the queues that the user may inquire."""
    with ExitStack() as held:
        held.enter_context(call.context.subscribers.taken())
        out = held.enter_context(call.context.connected_clients.watched(call.identity, until=call.session_ends_at))
        return _answer(call, _changes(call, given["interval"], out), held.pop_all())


async def _changes(call: Call, interval: int, out: asyncio.Event) -> AsyncIterator[bytes]:
    """The events: all queues first, then only changed ones."""
    context = call.context
    last: dict[str, dict[str, Any]] = {}
    now = _now()
    ends_at, beats_at, is_first = now + STREAM_SECONDS, now, True
    yield BEGIN
    while not context.stopping.is_set() and now < ends_at:
        views = (await context.samples.look()).views
        found = _seen(call, views)
        now = _now()
        if not is_first and (found != last or now >= beats_at or out.is_set()):
            out.clear()
            if refusal := await _refusal(call):
                yield _failed(refusal)
                return
            found = _seen(call, views)
        changed = [record for name, record in found.items() if record != last.get(name)]
        gone = sorted(last.keys() - found.keys())
        if changed or gone or is_first:
            beats_at, is_first = now + HEARTBEAT_SECONDS, False
            yield event("queues", {"queues": changed, "gone": gone})
        elif now >= beats_at:
            beats_at = now + HEARTBEAT_SECONDS
            yield HEARTBEAT
        last = found
        await unless(pause(interval), context.stopping, out)
        now = _now()


def _seen(call: Call, views: Sequence[QueueView]) -> dict[str, dict[str, Any]]:
    return {one.name: _shown(one) for one in views if call.identity.may("inquire", one.name)}


def _shown(view: QueueView) -> dict[str, Any]:
    return {name: getattr(view, name) for name in SHOWN}


# --- messages that arrive


class ShownMessages(NamedTuple):
    """The messages of a stream, and whether it shows their bodies."""

    match: Match
    bodies: bool


class EventPage(NamedTuple):
    """The messages of a browse as events, and the cursor after them."""

    events: list[bytes]
    cursor: str


async def messages(call: Call, given: Given) -> Response:
    """Answers the messages of a queue, as they arrive."""
    cursor: str | None = given["Last-Event-ID"] or given["cursor"]
    with ExitStack() as held:
        held.enter_context(call.context.subscribers.taken())
        if cursor is None:
            cursor = await call.context.qm.run(lambda one: _start(one, call.queue, given["start"]))
        shown = ShownMessages(Match(selector=given["selector"]), given["bodies"])
        first = await call.context.qm.run(lambda one: _page(one, call.queue, cursor, shown))
        watched = call.context.connected_clients.watched(
            call.identity, lambda one: one.may("browse", call.queue), until=call.session_ends_at
        )
        out = held.enter_context(watched)
        return _answer(call, _arrivals(call, shown, first, out), held.pop_all())


async def _arrivals(call: Call, shown: ShownMessages, page: EventPage, out: asyncio.Event) -> AsyncIterator[bytes]:
    qm, stopping, ends_at = call.context.qm, call.context.stopping, _now() + STREAM_SECONDS
    yield BEGIN
    while True:
        for each in page.events:
            yield each
        if not page.events:
            yield f"id: {page.cursor}\n\n".encode()  # a cursor to continue from, and a sign of life, but not an event
        if stopping.is_set() or _now() >= ends_at:
            return
        try:
            found = await unless(_next(qm, call.queue, page.cursor, shown), stopping, out)
            out.clear()
            refusal = await _refusal(call, "browse")
        except InorderError as error:  # the queue was deleted, or its gets are inhibited
            yield _failed(of_our_error(call.identity.shown(error)))
            return
        if refusal is not None:
            yield _failed(refusal)
            return
        page = page._replace(events=[]) if found is None else found


async def _next(qm: SharedQueueManager, queue: str, cursor: str, shown: ShownMessages) -> EventPage | None:
    """The next messages; None if none arrives before the next sign of life."""

    def look(one: QueueManager) -> EventPage:
        page = _page(one, queue, cursor, shown)
        if not page.events:
            raise NoMessageAvailable("no message has arrived")
        return page

    with contextlib.suppress(NoMessageAvailable):
        return await qm.awaited(queue, lambda: qm.run(look), wait=HEARTBEAT_SECONDS, match=shown.match)
    return None


def _start(qm: QueueManager, queue: str, start: str) -> str:
    """A cursor before the first message on the queue, or after the last."""
    with qm.open(queue, browse=True) as opened:
        browser = BulkBrowser(opened)
        if start == "first":
            return browser.token(UNSET)
        return browser.token(browser.survey(GetOptions(read_order="strict")).cursor)


def _page(qm: QueueManager, queue: str, cursor: str, shown: ShownMessages) -> EventPage:
    options: dict[str, Any] = {"match": shown.match}
    if not shown.bodies:
        options |= {"buffer": 0, "accept_truncated": True}
    events: list[bytes] = []
    size = 0
    with contextlib.closing(qm.browse(queue, after=cursor, **options)) as browsing, contextlib.suppress(OrderPending):
        for message in browsing:
            cursor = browsing.token or cursor
            events.append(event("message", shown_record(message, has_body=shown.bodies), cursor))
            size += len(events[-1])
            if len(events) == PAGE_MESSAGES or size >= PAGE_BYTES:
                break
    return EventPage(events, cursor)


STREAM: Final = {"description": "events, as HTML's EventSource reads them"}
ENDS: Final = (
    "The server sends a sign of life at least every 15 seconds. The stream ends after 15 minutes and when "
    "the server stops: connect again. It ends within seconds when the user is disabled or loses the "
    "authority, and when the session or token that started it ends. Then the last event is `failed`; its "
    "`message` and `reasonCode` (0 if MQ has none) give the cause."
)
OPERATIONS: Final = (
    ApiOperation(
        name="queue_events",
        method="GET",
        path="events",
        authority=None,
        summary="The state of the queues that you may inquire, at every change.",
        text=(
            "Events are named `queues`. Their data is an object with `queues` (first all queues, then only changed "
            f"ones) and `gone` (the names of deleted queues). {ENDS}"
        ),
        handler=queues,
        parameters=(ApiParameter("interval", "Seconds between two checks.", INTERVAL, default=2, example=5),),
        answers={200: ApiResponse("The events.", STREAM, media_type=EVENTS)},
    ),
    ApiOperation(
        name="message_events",
        method="GET",
        path="queues/{queue}/events",
        authority="browse",
        summary="Messages as they arrive on a queue, where they stay.",
        text=(
            "Events are named `message`; each is a message, and its id is a cursor. A client that reconnects with "
            "the last id, as `Last-Event-ID` or as `cursor`, misses no message and gets none twice. The stream is a "
            "strict browse: messages come in the order of the queue, an uncommitted message holds back those after "
            "it, and a message that was got before the stream reached it is not shown. With a selector, messages "
            "that did not match are checked again at each arrival until one matches. When the queue is deleted or "
            "its gets are inhibited, the last event is also `failed`. " + ENDS
        ),
        handler=messages,
        parameters=(
            ApiParameter("Last-Event-ID", "The id of the last event.", FROM_AN_EVENT, where="header"),
            ApiParameter(
                "cursor", "The same, for clients that cannot send a header; the header takes precedence.", FROM_AN_EVENT
            ),
            ApiParameter("start", "The start position without a cursor.", START, default="now", example="first"),
            flag("bodies", "Whether the messages have their bodies.", example=True),
            SELECTOR,
        ),
        answers={200: ApiResponse("The events.", STREAM, media_type=EVENTS)},
    ),
)
