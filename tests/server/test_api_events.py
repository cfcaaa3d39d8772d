"""Server-sent events: changes of queues and new messages, none missed or repeated, and nothing left running."""

from __future__ import annotations

import asyncio
import itertools
import threading
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp
from tests.server.conftest import Served, alive, app_of, serving
from tests.server.listening import Event, Listener, listening
from tests.server.test_messaging import context_of

import inorder
from inorder import QueueManager, aio
from inorder.server import Limits
from inorder.server.api import events, streaming

QUEUES = "/inorder/v1/events"
MESSAGES = "/inorder/v1/queues/Q1/events"
SOON = 0.02


@pytest.fixture
def app(client: httpx.AsyncClient) -> ASGIApp:
    """The application, which these tests call without the client."""
    asked: ASGIApp = app_of(client)
    return asked


async def bodies_of(listener: Listener, count: int) -> list[str]:
    return [(await listener.event()).data["body"] for _ in range(count)]


async def begun(listener: Listener) -> str:
    """The cursor at which a stream without events begins."""
    while True:
        found = await listener.next()
        assert found is not None
        if found.cursor:
            return found.cursor


# --- messages


@pytest.mark.parametrize("start", ["now", "first"])
async def test_messages_are_streamed_as_they_arrive_and_stay_on_the_queue(
    start: str, app: ASGIApp, qm: QueueManager
) -> None:
    qm.put_many("Q1", [b"1", b"2"])
    async with listening(app, MESSAGES, f"bodies=true&start={start}") as listener:
        if start == "first":
            assert await bodies_of(listener, 2) == ["1", "2"]
        else:
            await begun(listener)
        qm.put("Q1", b"3")
        assert await bodies_of(listener, 1) == ["3"]
        qm.put_many("Q1", [b"%d" % number for number in range(4, 300)])
        assert await bodies_of(listener, 296) == [str(number) for number in range(4, 300)]
        assert listener.status == 200
    assert qm.depth("Q1") == 299


async def test_a_client_that_returns_with_the_last_event_id_gets_each_message_once(
    served: Served, qm: QueueManager
) -> None:
    """Each visit is to a new server."""
    seen: list[str] = []
    cursor = ""
    for number in range(20):
        given = {"last_event_id": cursor} if cursor and number % 2 else {}
        query = f"&cursor={cursor}" if cursor and not number % 2 else ""
        async with alive(served.app()) as app, listening(app, MESSAGES, f"bodies=true{query}", **given) as listener:
            cursor = cursor or await begun(listener)
            qm.put_many("Q1", [b"%d-%d" % (number, n) for n in range(3)])
            for _ in range(3 if number % 3 else 2):  # sometimes the client leaves before the last event
                found = await listener.event()
                seen.append(found.data["body"])
                cursor = found.cursor
    async with alive(served.app()) as app, listening(app, MESSAGES, f"bodies=true&cursor={cursor}") as listener:
        seen += await bodies_of(listener, 60 - len(seen))
    assert seen == [f"{number}-{n}" for number in range(20) for n in range(3)]


async def test_an_uncommitted_message_holds_back_the_next(served: Served, app: ASGIApp, qm: QueueManager) -> None:
    with inorder.connect(served.store) as other:
        async with listening(app, MESSAGES, "bodies=true") as listener:
            await begun(listener)
            with other.unit_of_work():
                other.put("Q1", b"first")
                qm.put("Q1", b"second")
            assert await bodies_of(listener, 2) == ["first", "second"]


async def test_a_stream_does_not_miss_a_message_that_its_priority_places_before_the_cursor(
    app: ASGIApp, qm: QueueManager
) -> None:
    qm.put("Q1", b"low", priority=1)
    async with listening(app, MESSAGES, "bodies=true&start=first") as listener:
        assert await bodies_of(listener, 1) == ["low"]
        qm.put("Q1", b"high", priority=9)
        assert await bodies_of(listener, 1) == ["high"]


async def test_a_selector_selects_messages_and_those_it_skips_are_not_shown_later(
    app: ASGIApp, qm: QueueManager
) -> None:
    def put(*colours: str) -> None:
        for number, colour in enumerate(colours):
            qm.put("Q1", f"{colour} {number}".encode(), properties={"colour": colour})

    put("red", "blue", "red")
    query = "bodies=true&start=first&selector=colour%20%3D%20'red'"
    async with listening(app, MESSAGES, query) as listener:
        assert await bodies_of(listener, 2) == ["red 0", "red 2"]
        put("blue", "blue")
        put("blue", "red", "blue")
        found = await listener.event()
        assert found.data["body"] == "red 1"
    put("red")
    async with listening(app, MESSAGES, f"{query}&cursor={found.cursor}") as listener:
        assert await bodies_of(listener, 1) == ["red 0"]
    assert qm.depth("Q1") == 9


async def test_an_event_is_a_message_without_its_body_unless_it_is_asked_for(app: ASGIApp, qm: QueueManager) -> None:
    qm.put("Q1", b"\xff\n\n", format="x", properties={"a": "b\nc"})
    async with listening(app, MESSAGES, "start=first") as listener:
        found = await listener.event()
    assert (found.data["format"], found.data["length"], found.data["properties"]) == ("x", 3, {"a": "b\nc"})
    assert not {"body", "body_base64"} & found.data.keys()
    async with listening(app, MESSAGES, "start=first&bodies=true") as listener:
        assert (await listener.event()).data["body_base64"] == "/woK"


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        ("/inorder/v1/queues/NONE/events", "", 404),
        ("/inorder/v1/queues/MIXED/events", "", 409),
        (MESSAGES, "start=later", 400),
        (MESSAGES, "selector=colour%20%3D", 400),
        (QUEUES, "interval=0", 400),
        (QUEUES, "interval=61", 400),
    ],
)
async def test_an_invalid_request_is_refused_before_the_stream_begins(
    served: Served, path: str, query: str, status: int, app: ASGIApp, qm: QueueManager
) -> None:
    qm.create_queue("MIXED", read_order="unordered")

    async with listening(app, path, query) as listener:
        await listener.rest()
        assert listener.status == status


@pytest.mark.parametrize("given", ["Last-Event-ID", "cursor"])
async def test_an_invalid_cursor_is_reported_under_the_name_that_the_client_used(
    client: httpx.AsyncClient, given: str
) -> None:
    where: dict[str, Any] = {"headers" if given == "Last-Event-ID" else "params": {given: "nonsense"}}
    answer = await client.get(MESSAGES, **where)
    assert answer.status_code == 400
    (error,) = answer.json()["error"]
    assert f"'{given}'" in error["message"]
    assert "'nonsense'" in error["message"]
    assert "the id of an event of this queue" in error["message"]
    assert "token" not in error["message"]


async def test_a_queue_that_inhibits_gets_ends_its_stream_with_a_failed_event(app: ASGIApp, qm: QueueManager) -> None:
    async with listening(app, MESSAGES) as listener:
        await begun(listener)
        qm.alter_queue("Q1", get_allowed=False)
        qm.put("Q1", b"1")
        found = await listener.event()
        assert (found.kind, found.data["reasonCode"]) == ("failed", 2016)
        assert await listener.next() is None


# --- queues


async def test_a_stream_of_queues_begins_with_all_queues_and_continues_with_changes(
    monkeypatch: pytest.MonkeyPatch, app: ASGIApp, qm: QueueManager
) -> None:
    faster(monkeypatch)

    qm.create_queue("Q2")
    async with listening(app, QUEUES) as listener:
        first = await listener.event()
        names = [one["name"] for one in first.data["queues"]]
        assert (first.kind, first.data["gone"]) == ("queues", [])
        assert {"Q1", "Q2"} <= set(names)
        qm.put("Q2", b"1")
        assert await told(listener, "Q2", 1)
        qm.delete_queue("Q2", purge=True)
        while "Q2" not in (await listener.event()).data["gone"]:
            pass


def faster(monkeypatch: pytest.MonkeyPatch, beats: float = SOON) -> None:
    """Lets samples follow each other at once, and sets the seconds between heartbeats."""
    monkeypatch.setattr("inorder.server.sampling.SAMPLE_SECONDS", 0.0)
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", beats)
    real = asyncio.sleep
    monkeypatch.setattr(events, "pause", lambda seconds: real(0.001))


async def told(listener: Listener, queue: str, depth: int) -> bool:
    """Reads until the stream reports that a queue has a depth."""
    while True:
        found: Event = await listener.event()
        if any((one["name"], one["depth"]) == (queue, depth) for one in found.data["queues"]):
            return True


async def test_fifty_clients_share_one_reading_of_the_queues(monkeypatch: pytest.MonkeyPatch, app: ASGIApp) -> None:
    looks = 0
    real = aio.Inspect.overview

    async def counted(self: aio.Inspect, queue: str | None = None) -> object:
        nonlocal looks
        looks += 1
        return await real(self, queue)

    monkeypatch.setattr(aio.Inspect, "overview", counted)
    monkeypatch.setattr("inorder.server.sampling.SAMPLE_SECONDS", 3600.0)

    listeners = [Listener(app, QUEUES, "", {}) for _ in range(50)]
    for one in listeners:
        await one.event()
        await one.leave()
    assert looks == 1


# --- streams of both kinds


@pytest.mark.parametrize("path", [QUEUES, MESSAGES])
async def test_a_stream_sends_heartbeats_and_ends_after_its_maximum_time(
    path: str, monkeypatch: pytest.MonkeyPatch, app: ASGIApp
) -> None:
    faster(monkeypatch)
    monkeypatch.setattr(events, "_now", itertools.count(0.0, SOON).__next__)  # each reading of the clock is later
    monkeypatch.setattr(events, "STREAM_SECONDS", 20 * SOON)

    async with listening(app, path) as listener:
        signs = 0
        while (found := await listener.next()) is not None:
            signs += not found.kind
        assert signs > 1
        assert listener.is_over


@pytest.mark.parametrize("path", [QUEUES, MESSAGES])
@serving(limits=Limits(subscribers=2))
async def test_the_number_of_streams_is_limited_and_a_client_that_leaves_makes_room(path: str, app: ASGIApp) -> None:
    for _ in range(3):
        async with listening(app, path) as one, listening(app, path) as two:
            await one.next()
            await two.next()
            async with listening(app, path) as more:
                await more.rest()
                assert more.status == 503


@pytest.mark.parametrize("path", [QUEUES, MESSAGES])
async def test_a_stop_of_the_server_ends_the_streams(app: ASGIApp, path: str) -> None:
    async with listening(app, path) as listener:
        await listener.next()
        context_of(app).stopping.set()
        await listener.rest()
        assert listener.is_over


@pytest.mark.parametrize("path", [QUEUES, MESSAGES])
@serving(limits=Limits(body_seconds=SOON))
async def test_a_client_that_reads_nothing_is_disconnected(path: str, app: ASGIApp, qm: QueueManager) -> None:
    async with listening(app, path) as listener:
        await listener.next()
        listener.takes.clear()
        qm.put("Q1", b"1")
        await listener.task
        assert not listener.is_over, "an answer that looks whole is not cut off"


async def test_waiting_streams_do_not_need_a_thread_each(app: ASGIApp) -> None:
    """One thread watches the queue for all of them; after the last one ends, at most a few idle tasks remain."""

    before = threading.active_count()
    listeners = [Listener(app, MESSAGES, "", {}) for _ in range(100)]
    for one in listeners:
        await one.next()
    tasks = len(asyncio.all_tasks())
    assert threading.active_count() <= before + 9, "8 connections and a watch"
    assert tasks >= 100
    for one in listeners:
        await one.leave()
    while len(asyncio.all_tasks()) > 10:  # until the cancelled ones have ended
        await asyncio.sleep(0)


@serving(limits=Limits(subscribers=1))
async def test_a_stream_whose_answer_is_cancelled_makes_room_for_another(app: ASGIApp) -> None:
    listener = Listener(app, MESSAGES, "", {})
    await listener.next()
    listener.task.cancel()
    await asyncio.wait({listener.task})
    async with listening(app, MESSAGES) as again:
        await again.next()
        assert again.status == 200


async def test_unless_gives_the_result_the_error_or_none() -> None:
    async def fails() -> None:
        raise ValueError("no")

    stopping = asyncio.Event()
    assert await streaming.unless(asyncio.sleep(0, 7), asyncio.Event(), stopping) == 7
    with pytest.raises(ValueError, match="no"):
        await streaming.unless(fails(), stopping)
    stopping.set()
    assert await streaming.unless(asyncio.Event().wait(), asyncio.Event(), stopping) is None
