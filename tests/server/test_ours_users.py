"""Users who go, or lose an authority, while their request waits: it takes, shows and claims nothing for them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp
from tests.cutting import ended
from tests.server.conftest import PASSWORD, Served, add, alive
from tests.server.listening import Listener, listening
from tests.server.test_messaging import number_of

import inorder
from inorder.aio import waiting
from inorder.server.ours import events

Q = "/inorder/v1/queues/Q1"
ANNA = httpx.BasicAuth("anna", PASSWORD)
GRANTED: dict[str, Any] = {"roles": ["application"], "queues": {"Q1": ["get", "browse", "inquire"]}}
How = Callable[[inorder.QueueManager], object]
OUT: list[tuple[str, How, tuple[int, str, int]]] = [
    ("disabled", lambda qm: qm.alter_user("anna", enabled=False), (401, "MQWB0104E", 0)),
    ("deleted", lambda qm: qm.delete_user("anna"), (401, "MQWB0104E", 0)),
    ("no authority", lambda qm: qm.alter_user("anna", queues={}), (403, "MQWB0103E", 2035)),
]
IS_OUT = pytest.mark.parametrize(("how", "expected"), [one[1:] for one in OUT], ids=[one[0] for one in OUT])
Ask = Callable[[httpx.AsyncClient], Awaitable[httpx.Response]]


async def _get(client: httpx.AsyncClient) -> httpx.Response:
    return await client.post(f"{Q}/get", params={"wait": 600})


async def _get_many(client: httpx.AsyncClient) -> httpx.Response:
    return await client.post(f"{Q}/get_many", params={"wait": 600})


async def _get_group(client: httpx.AsyncClient) -> httpx.Response:
    return await client.post(f"{Q}/get_group", params={"wait": 600})


async def _in_lease(client: httpx.AsyncClient) -> httpx.Response:
    begun = await client.post("/inorder/v1/leases", params={"seconds": 600})
    assert begun.status_code == 201, begun.text
    return await client.post(f"{Q}/get", params={"wait": 600}, headers={"Inorder-Lease": begun.json()["token"]})


async def _held(client: httpx.AsyncClient) -> httpx.Response:
    return await client.post(f"{Q}/get", params={"wait": 600, "confirm_id": 7})


async def _browse(client: httpx.AsyncClient) -> httpx.Response:
    return await client.get(f"{Q}/browse", params={"wait": 600})


async def _claim(client: httpx.AsyncClient) -> httpx.Response:
    pytest.importorskip("pyarrow", reason="needs the extra inorder[arrow]")
    begun = await client.post(f"{Q}/readers/copy")
    assert begun.status_code == 200, begun.text
    given = {"epoch": begun.json()["epoch"], "after": 0, "wait": 600}
    return await client.post(f"{Q}/readers/copy/arrow", params=given)


@IS_OUT
@pytest.mark.parametrize("ask", [_get, _get_many, _get_group, _in_lease, _held, _browse, _claim])
def test_a_request_that_waits_gives_nothing_to_a_user_who_is_out(
    served: Served, ask: Ask, how: How, expected: tuple[int, str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    add(served, "anna", **GRANTED)
    joined: list[object] = []
    join = waiting.Watch.join

    def noted(watch: waiting.Watch, waiter: Any) -> None:
        join(watch, waiter)
        joined.append(waiter)

    monkeypatch.setattr(waiting.Watch, "join", noted)

    async def work(client: httpx.AsyncClient) -> None:
        client.auth = ANNA
        asking = asyncio.ensure_future(ask(client))
        while not joined:
            assert not asking.done(), "it did not wait"
            await asyncio.sleep(0.01)
        with inorder.connect(served.store) as qm:
            how(qm)
            qm.put("Q1", b"x")
            assert number_of(await asking) == expected
            assert qm.get("Q1").body == b"x", "nobody holds it"

    served.run(work)


# --- streams of events


def listened(served: Served, path: str, work: Callable[[Listener, inorder.QueueManager], Awaitable[None]]) -> None:
    """Has the work done with a stream of anna's."""

    async def inside() -> None:
        app: ASGIApp
        async with alive(served.app()) as app:
            with inorder.connect(served.store) as qm:
                token = qm.create_token("anna", "a program")
                async with listening(app, path, authorization=f"Bearer {token}") as listener:
                    await listener.next()
                    assert listener.status == 200
                    await work(listener, qm)

    ended(inside())


@pytest.mark.parametrize("beats", [0.02, 600.0], ids=["a sign of life", "a message"])
@IS_OUT
def test_a_stream_of_messages_ends_with_its_user(
    served: Served, how: How, expected: object, beats: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    del expected
    add(served, "anna", **GRANTED)
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", beats)

    async def work(listener: Listener, qm: inorder.QueueManager) -> None:
        how(qm)
        if beats > 1:
            qm.put("Q1", b"secret")
        shown = []
        while (found := await listener.next()) is not None:
            shown.append(found.kind)
        assert listener.is_over
        assert "message" not in shown

    listened(served, f"{Q}/events", work)


@pytest.mark.parametrize("beats", [0.02, 600.0], ids=["a sign of life", "a change"])
@pytest.mark.parametrize("how", [one[1] for one in OUT[:2]], ids=[one[0] for one in OUT[:2]])
def test_a_stream_of_queues_ends_with_its_user(
    served: Served, how: How, beats: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(served, "anna", **GRANTED)
    _hasten(monkeypatch, beats)

    async def work(listener: Listener, qm: inorder.QueueManager) -> None:
        assert [one["name"] for one in (await listener.event()).data["queues"]] == ["Q1"]
        how(qm)
        if beats > 1:
            qm.put("Q1", b"x")
        while (found := await listener.next()) is not None:
            assert not found.kind, "nothing more is shown"
        assert listener.is_over

    listened(served, "/inorder/v1/events", work)


def test_a_stream_of_queues_shows_what_its_user_may_see_now(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    add(served, "anna", **GRANTED)
    _hasten(monkeypatch, 0.02)
    with inorder.connect(served.store) as qm:
        qm.create_queue("Q2")

    async def work(listener: Listener, qm: inorder.QueueManager) -> None:
        assert [one["name"] for one in (await listener.event()).data["queues"]] == ["Q1"]
        qm.alter_user("anna", queues={"Q2": ["inquire"]})
        found = (await listener.event()).data
        assert ([one["name"] for one in found["queues"]], found["gone"]) == (["Q2"], ["Q1"])

    listened(served, "/inorder/v1/events", work)


def _hasten(monkeypatch: pytest.MonkeyPatch, beats: float) -> None:
    monkeypatch.setattr("inorder.server.sampling.SAMPLE_SECONDS", 0.0)
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", beats)
    real = asyncio.sleep
    monkeypatch.setattr(events, "pause", lambda seconds: real(0.001))
