"""Leases over HTTP: puts and gets of many requests that happen together, or not at all."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from tests.helpers.support import put_group
from tests.server.conftest import Served, serving, somebody
from tests.server.described import BASE, Described, described, refusal
from tests.server.test_api_messages import bodies_of, until_waiting

import inorder
from inorder import QueueManager, aio
from inorder.client.leases import name_of
from inorder.server import Limits
from inorder.server.api import taking

OVER = (409, "INWB0014E", inorder.Reason.LEASE_OVER.value)


async def lease_of(ours: Described, **query: float) -> dict[str, str]:
    answer = await ours("begin_lease", **query)  # type: ignore[arg-type]
    assert answer.status_code == 201, answer.text
    return {"Inorder-Lease": answer.json()["token"]}


def seconds_left(answer: httpx.Response) -> float:
    ends_at = datetime.fromisoformat(answer.json()["ends_at"].replace("Z", "+00:00"))
    return (ends_at - datetime.now(timezone.utc)).total_seconds()


@pytest.mark.parametrize("how", ["commit_lease", "back_out_lease"])
async def test_a_lease_is_committed_or_backed_out_as_a_whole(qm: QueueManager, ours: Described, how: str) -> None:
    qm.put("Q1", b"a")
    qm.create_queue("Q2")
    lease = await lease_of(ours)
    assert (await ours("get", headers=lease)).json()["body"] == "a"
    assert (await ours("put", {"body": "b"}, queue="Q2", headers=lease)).status_code == 201
    group = {"messages": [{"body": "c"}, {"body": "d"}]}
    assert (await ours("put_many", group, queue="Q2", headers=lease, group=True)).status_code == 201
    assert bodies_of(await ours("browse")) == bodies_of(await ours("browse", queue="Q2")) == []
    assert (await ours(how, headers=lease)).status_code == 204
    for name in ("lease", "commit_lease", "back_out_lease", "extend_lease", "get"):
        assert refusal(await ours(name, headers=lease)) == OVER
    assert refusal(await ours("put", {"body": "e"}, headers=lease)) == OVER
    there, came = ([], ["b", "c", "d"]) if how == "commit_lease" else (["a"], [])
    assert bodies_of(await ours("browse")) == there
    assert bodies_of(await ours("browse", queue="Q2")) == came


async def test_gets_of_all_kinds_are_part_of_a_lease(qm: QueueManager, ours: Described) -> None:
    qm.put_many("Q1", [b"1", b"2", b"3"])
    put_group(qm, b"g1", b"g2", queue="Q1")
    lease = await lease_of(ours)
    assert (await ours("get", headers=lease)).json()["body"] == "1"
    assert bodies_of(await ours("get_many", headers=lease, count=2)) == ["2", "3"]
    assert bodies_of(await ours("get_group", headers=lease)) == ["g1", "g2"]
    assert (await ours("get", headers=lease)).status_code == 204
    await ours("back_out_lease", headers=lease)
    back = (await ours("browse")).json()["messages"]
    assert [(one["body"], one["backout_count"]) for one in back] == [(n, 1) for n in ("1", "2", "3", "g1", "g2")]


async def test_a_get_waits_in_a_lease_no_longer_than_it_lasts(ours: Described, served: Served) -> None:
    lease = await lease_of(ours, seconds=600)
    waiting = asyncio.ensure_future(ours("get", headers=lease, wait=600))
    await until_waiting(served)
    await ours("put", {"body": "a"})
    assert (await waiting).json()["body"] == "a"
    short = await lease_of(ours, seconds=0.3)
    assert refusal(await ours("get", headers=short, wait=600)) == OVER
    assert (await ours("back_out_lease", headers=lease)).status_code == 204
    assert (await ours("get")).json()["backout_count"] == 1


async def test_a_get_keeps_waiting_while_the_store_says_that_its_lease_has_not_expired(
    ours: Described, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By this worker's clock every deadline has passed; the store's answer decides."""
    looks: list[str] = []
    resume = aio.QueueManager.resume_lease

    async def noted(self: aio.QueueManager, token: str, **more: Any) -> aio.Lease:
        looks.append(token)
        return await resume(self, token, **more)

    monkeypatch.setattr(taking, "time", SimpleNamespace(time=lambda: math.inf))
    monkeypatch.setattr(aio.QueueManager, "resume_lease", noted)
    lease = await lease_of(ours, seconds=600)
    waiting = asyncio.ensure_future(ours("get", headers=lease, wait=600))
    while len(looks) < 3:
        assert not waiting.done(), "it has ended"
        await asyncio.sleep(0.01)
    await ours("put", {"body": "a"})
    assert (await waiting).json()["body"] == "a"


async def test_the_deadline_of_a_lease_can_be_extended(ours: Described) -> None:
    lease = await lease_of(ours, seconds=60)
    extended = await ours("extend_lease", headers=lease, seconds=500)
    assert 400 < seconds_left(extended) <= 500
    assert (await ours("lease", headers=lease)).json() == extended.json()
    assert "token" not in extended.json()


@pytest.mark.parametrize("seconds", ["0", "86401", "-1", "soon", "nan"])
async def test_an_invalid_duration_of_a_lease_is_refused(ours: Described, seconds: str) -> None:
    lease = await lease_of(ours)
    assert refusal(await ours("begin_lease", seconds=seconds))[:2] == (400, "INWB0003E")
    assert refusal(await ours("extend_lease", headers=lease, seconds=seconds))[:2] == (400, "INWB0003E")
    assert (await ours("back_out_lease", headers=lease)).status_code == 204


def test_a_lease_can_be_used_only_by_its_user(served: Served, qm: QueueManager) -> None:
    """A token that another user has seen is useless to that user."""
    tokens: list[dict[str, str]] = []

    async def of_ann(client: httpx.AsyncClient) -> None:
        ours = await described(client)
        tokens.append(await lease_of(ours, seconds=600))
        await ours("put", {"body": "a"}, headers=tokens[0])
        assert (await ours("lease", headers=tokens[0])).json()["user"] == "ann"

    async def of_bob(client: httpx.AsyncClient) -> None:
        ours = await described(client)
        for name in ("lease", "commit_lease", "back_out_lease", "extend_lease", "get"):
            assert refusal(await ours(name, headers=tokens[0])) == OVER

    served.run(of_ann, somebody("ann", "put", "get"))
    served.run(of_bob, somebody("bob", "put", "get"))

    async def of_ann_again(client: httpx.AsyncClient) -> None:  # by another worker, after a restart
        ours = await described(client)
        assert (await ours("commit_lease", headers=tokens[0])).status_code == 204

    served.run(of_ann_again, somebody("ann", "put", "get"))
    assert [one.body for one in qm.browse("Q1")] == [b"a"]


def test_the_leases_of_a_user_are_limited(served: Served) -> None:
    async def of_ann(client: httpx.AsyncClient) -> None:
        ours = await described(client)
        (first, _) = [await lease_of(ours) for _ in range(2)]
        answer = await ours("begin_lease")
        assert refusal(answer) == (429, "INWB0008E", 0)
        assert "leases of ann" in answer.text
        await ours("commit_lease", headers=first)
        await lease_of(ours)

    async def of_bob(client: httpx.AsyncClient) -> None:
        await lease_of(await described(client))

    served.run(of_ann, somebody("ann"), limits=Limits(leases=2))
    served.run(of_bob, somebody("bob"), limits=Limits(leases=2))


@serving(somebody("ann"), limits=Limits(leases=3))
async def test_the_limit_on_leases_holds_for_concurrent_requests(qm: QueueManager, ours: Described) -> None:
    answers = await asyncio.gather(*(ours("begin_lease", seconds=600) for _ in range(40)))
    assert Counter(one.status_code for one in answers) == {201: 3, 429: 37}
    assert len(qm.inspect.units()) == 3


async def test_a_lease_token_is_accepted_only_in_its_header_and_is_not_listed_with_the_units(
    served: Served, client: httpx.AsyncClient, ours: Described, qm: QueueManager
) -> None:
    token = (await lease_of(ours))["Inorder-Lease"]
    assert refusal(await client.get(f"{BASE}/lease", params={"Inorder-Lease": token}))[:2] == (400, "INWB0003E")
    for other in ("browse", "queue"):  # a lease that would have no effect is refused, not ignored
        assert refusal(await ours(other, headers={"Inorder-Lease": token}))[:2] == (400, "MQWB0302E")
    assert token not in str(qm.inspect.units())
    stored = b"".join(path.read_bytes() for path in served.folder.iterdir() if path.is_file())
    assert name_of(token).encode() in stored
    assert token.encode() not in stored


async def test_an_idempotency_key_used_in_a_lease_is_free_after_a_back_out(ours: Described) -> None:
    lease = await lease_of(ours)
    key = {"Idempotency-Key": "order-17"}
    await ours("put", {"body": "a"}, headers=lease | key)
    pending = await ours("put", {"body": "a"}, headers=key)
    assert refusal(pending) == (409, "INWB0014E", inorder.Reason.DUPLICATE_PENDING.value)
    await ours("back_out_lease", headers=lease)
    assert (await ours("put", {"body": "a"}, headers=key)).json()["duplicate_of"] is None
