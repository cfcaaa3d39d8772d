"""Our interface: browse by cursor, and with locks."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import httpx
import pytest
from tests.server.conftest import Served, alive, client_of
from tests.server.described import Described, described, refusal
from tests.server.test_api_messages import bodies_of

import inorder
from inorder import QueueManager
from inorder.server.api import browsing


@pytest.mark.parametrize("seed", range(2))
async def test_a_browse_never_misses_and_never_repeats(served: Served, qm: QueueManager, seed: int) -> None:
    """Between two pages messages are put and got, units committed and backed out; each page comes from a new worker."""
    chance = random.Random(seed)
    shown, kept, uncommitted, cursor = list[str](), set[str](), set[str](), dict[str, Any]()

    async def page(count: int) -> list[str]:
        async with alive(served.app()) as app, client_of(app) as client:
            answer = await (await described(client))("browse", count=count, **cursor)
        if found := answer.json()["cursor"]:
            cursor["cursor"] = found
        return bodies_of(answer)

    with qm.connect() as other:
        for step in range(30):
            if chance.random() < 0.5:
                other.put("Q1", f"u{step}".encode(), priority=chance.randrange(3), syncpoint=True)
                uncommitted.add(f"u{step}")
            qm.put("Q1", f"p{step}".encode(), priority=chance.randrange(3))
            kept.add(f"p{step}")
            shown += await page(chance.randrange(1, 4))
            if chance.random() < 0.3:
                other.commit()
                kept |= uncommitted
                uncommitted.clear()
            elif chance.random() < 0.3:
                other.back_out()
                uncommitted.clear()
        other.back_out()
    while found := await page(50):
        shown += found
    assert len(shown) == len(set(shown)), f"shown twice, seed {seed}"
    assert set(shown) == kept, f"missed, or shown and backed out, seed {seed}"


async def test_a_page_says_what_withholds_the_next(ours: Described, served: Served) -> None:
    with inorder.connect(served.store) as qm, qm.connect() as other, other.unit_of_work():
        qm.put("Q1", b"a")
        other.put("Q1", b"b")
        qm.put("Q1", b"c")
        page = (await ours("browse")).json()
        assert [one["body"] for one in page["messages"]] == ["a"]
        assert page["withheld"]["kind"] == "in"
        again = (await ours("browse", cursor=page["cursor"])).json()
        assert (again["messages"], again["cursor"]) == ([], page["cursor"])
        relaxed = await ours("browse", read_order="relaxed")
        assert bodies_of(relaxed) == ["a", "c"]
        assert relaxed.json()["cursor"] is None
        other.back_out()
        assert bodies_of(await ours("browse", cursor=page["cursor"])) == ["c"]


async def test_a_browse_waits_for_more(ours: Described, client: httpx.AsyncClient) -> None:
    await ours("put", {"body": "a"})
    cursor = (await ours("browse")).json()["cursor"]
    waiting = asyncio.ensure_future(ours("browse", cursor=cursor, wait=60))
    await client.get("/ready")
    await ours("put", {"body": "b"})
    assert bodies_of(await waiting) == ["b"]
    nothing = await ours("browse", queue="Q1", selector="colour = 'red'", wait=0.05)
    assert nothing.json()["messages"] == []


async def test_without_bodies_and_by_the_byte(ours: Described, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browsing, "PAGE_BYTES", 5)
    await ours("put_many", {"messages": [{"body": "abc"}] * 3})
    assert bodies_of(await ours("browse")) == ["abc", "abc"], "a page ends when it is long enough"
    page = (await ours("browse", bodies=False)).json()["messages"]
    assert [one["length"] for one in page] == [3, 3, 3]
    assert not any({"body", "body_base64"} & one.keys() for one in page)


async def test_a_group_that_is_not_whole_is_awaited(ours: Described) -> None:
    first = (await ours("put", {"body": "1", "flags": 8})).json()
    page = (await ours("browse", logical=True)).json()
    assert page["awaits"] == {"group_id": first["group_id"], "sequence_number": 2, "offset": 0}
    last = {"body": "2", "flags": 16, "group_id": first["group_id"], "sequence_number": 2}
    await ours("put", last)
    assert bodies_of(await ours("browse", logical=True, cursor=page["cursor"])) == ["2"]


@pytest.mark.parametrize("cursor", ["x", "e30=", "a" * 4_001, "'"])
async def test_a_cursor_that_is_none_is_refused(ours: Described, cursor: str) -> None:
    answer = await ours("browse", cursor=cursor)
    assert refusal(answer) == (400, "INWB0003E", 0)
    assert "parameter 'cursor' must be the cursor from the answer of a browse, not" in answer.text
    assert "token" not in answer.text


async def test_a_cursor_is_of_one_queue(qm: QueueManager, ours: Described) -> None:
    qm.create_queue("Q2")
    qm.put("Q1", b"a")
    qm.put("Q2", b"b")
    cursor = (await ours("browse")).json()["cursor"]
    assert refusal(await ours("browse", queue="Q2", cursor=cursor))[0] == 409


async def test_what_is_locked_is_hidden_until_it_is_freed(ours: Described) -> None:
    await ours("put_many", {"messages": [{"body": str(n)} for n in range(5)]})
    locked = await ours("browse_and_lock", count=3, seconds=600)
    lock_id = locked.json()["lock_id"]
    uids = [one["uid"] for one in locked.json()["messages"]]
    assert bodies_of(locked) == ["0", "1", "2"]
    assert (await ours("unique_ids", lock_id=lock_id)).json()["uids"] == uids
    assert (await ours("get")).json()["body"] == "3"
    assert refusal(await ours("unlock", {"uid": uids[0], "lock_id": lock_id + 1}))[0] == 409
    assert (await ours("unlock", {"uid": uids[0], "lock_id": lock_id})).status_code == 204
    named = f"{uids[1]['origin']}:{uids[1]['number']}"
    assert (await ours("get", lock_id=lock_id, uid=named)).json()["body"] == "1"
    assert (await ours("delete", {"uid": uids[2], "lock_id": lock_id})).status_code == 204
    assert bodies_of(await ours("browse")) == ["0", "4"]
    assert refusal(await ours("release_lock", {"lock_id": lock_id}))[0] == 409


async def test_what_is_held_is_listed_under_the_user_who_asked(qm: QueueManager, ours: Described) -> None:
    await ours("put_many", {"messages": [{"body": str(n)} for n in range(3)]})
    await ours("browse_and_lock", count=1, seconds=600)
    await ours("get", confirm_id=7)
    await ours("get", confirm_id=8, wait=1)
    await ours("put", {"body": "held"}, confirm_id=9)
    held = {one.name: one.program for one in qm.inspect.units() if one.kind in ("confirm", "lock")}
    assert {"7", "8", "9"} < held.keys()
    assert {one.user for one in held.values()} == {"launch-token"}
    assert {one.name for one in held.values()} == {"inorder serve"}


async def test_a_confirm_id_undoes_everything_under_it(ours: Described) -> None:
    await ours("put_many", {"messages": [{"body": "a"}, {"body": "b"}]})
    assert (await ours("get", confirm_id=7)).json()["body"] == "a"
    await ours("put", {"body": "c"}, confirm_id=7)
    assert bodies_of(await ours("browse_and_lock", confirm_id=7)) == ["b"]
    assert bodies_of(await ours("browse")) == []
    assert (await ours("undo", {"confirm_id": 7})).json() == {"messages": 3}
    assert bodies_of(await ours("browse")) == ["a", "b"]


async def test_a_number_without_a_fraction_is_an_integer(ours: Described) -> None:
    """So JSON Schema has it, and some programs write each number with a point."""
    put = await ours("put", {"body": "a", "priority": 7.0, "sequence_number": 1e0}, confirm_id=7)
    uid = put.json()["uid"]
    uid["number"] = float(uid["number"])
    assert (await ours("confirm_put", {"uid": uid, "confirm_id": 7.0})).status_code == 200
    lock_id = (await ours("browse_and_lock", count=1)).json()["lock_id"]
    assert (await ours("release_lock", {"lock_id": float(lock_id)})).json() == {"messages": 1}
    got = (await ours("get", confirm_id=8)).json()
    assert (got["priority"], type(got["priority"])) == (7, int)
    assert (await ours("undo", {"confirm_id": 8.0})).json() == {"messages": 1}


BAD_BODIES = [
    ("confirm_put", {}), ("confirm_put", {"uid": "QM1:7"}), ("confirm_put", {"uid": {"origin": "QM1"}}),
    ("confirm_put", {"uid": {"origin": "QM1", "number": -1}}), ("confirm_put", {"uid": {"origin": 1, "number": 1}}),
    ("confirm_get", {"uid": {"origin": "QM1", "number": 1}, "confirm_id": 0}),
    ("confirm_get", {"uid": {"origin": "QM1", "number": 1}, "confirm_id": True}),
    ("confirm_get", {"uid": {"origin": "QM1", "number": 1}, "colour": 1}),
    ("unlock", {"uid": {"origin": "QM1", "number": 1}}), ("undo", {}), ("undo", {"confirm_id": "7"}),
    ("undo", {"confirm_id": 2**64}), ("undo", {"confirm_id": 7.5}), ("undo", {"confirm_id": float(2**64)}),
    ("confirm_put", {"uid": {"origin": "QM1", "number": 1.5}}),
    ("release_lock", {"lock_id": None}), ("delete", {"lock_id": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given"), BAD_BODIES, ids=[f"{one[0]}-{one[1]}" for one in BAD_BODIES])
async def test_what_names_nothing_is_refused(ours: Described, name: str, given: dict[str, Any]) -> None:
    assert refusal(await ours(name, given)) == (400, "INWB0004E", 0)
