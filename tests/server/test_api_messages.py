"""Our interface: messages put, got and browsed, in groups, once for each key, with waits, cursors and locks."""

from __future__ import annotations

import asyncio
import base64
import math
import random
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.helpers.support import until
from tests.server.conftest import Served, alive, client_of, serving, somebody
from tests.server.described import BASE, Described, described, refusal
from tests.server.test_messaging import Client, scope_of

import inorder
from inorder import Flags, Message, QueueManager
from inorder.server import Limits, disconnects
from inorder.server.api import browsing, taking
from inorder.server.disconnects import IsWanted

ID = "0102030405060708090a0b0c0d0e0f101112131415161718"

# A request's body, and fields of the message.
PUT: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"body": "Hello Wörld"}, {"body": "Hello Wörld".encode(), "format": "MQSTR", "coded_character_set_id": 1208}),
    ({"body": "x", "format": "", "coded_character_set_id": 819}, {"format": "", "coded_character_set_id": 819}),
    ({"body_base64": "AP8="}, {"body": b"\x00\xff", "format": ""}),
    ({"body_json": {"a": [1, None, "ü"]}}, {"body": '{"a":[1,null,"ü"]}'.encode(), "format": "MQSTR"}),
    ({"body_json": None}, {"body": b"null"}),
    ({"body": ""}, {"body": b""}),
    ({"body": "x", "expiry": None}, {"expiry": math.inf}),
    ({"body": "x", "message_id": ID}, {"message_id": bytes.fromhex(ID)}),
    ({"body": "x", "correlation_id": "text:order-7"}, {"correlation_id": b"order-7".ljust(24, b"\0")}),
    ({"body": "x", "reply_to_queue": "A", "message_type": 1}, {"reply_to_queue": "A", "message_type": 1}),
    ({"body": "x", "report": 64, "feedback": 7}, {"report": 64, "feedback": 7}),
    (
        {"body": "x", "properties": {"a": 1, "b": 2.5, "c": True, "d": "t", "e": None, "f": ["00ff"]}},
        {"properties": {"a": 1, "b": 2.5, "c": True, "d": "t", "e": None, "f": b"\x00\xff"}},
    ),
    (
        {"body": "x", "group_id": ID, "sequence_number": 3, "flags": 16},
        {"group_id": bytes.fromhex(ID), "sequence_number": 3, "group_status": "last"},
    ),
    (
        {"body": "x", "message_id": ID, "group_id": ID, "sequence_number": 2, "offset": 5, "flags": 8 + 4},
        {"offset": 5, "segment_status": "last", "group_status": "in"},
    ),
]


@pytest.mark.parametrize(("given", "fields"), PUT, ids=[str(one[0])[:40] for one in PUT])
async def test_a_message_has_the_fields_of_its_put_request(
    qm: QueueManager, given: dict[str, Any], fields: dict[str, Any], ours: Described
) -> None:
    done = await ours("put", given)
    assert done.status_code == 201, done.text
    message = qm.get("Q1")
    assert {field: getattr(message, field) for field in fields} == fields


async def test_a_message_that_was_got_can_be_put_again(qm: QueueManager, ours: Described) -> None:
    given = Message(b"\xff", priority=3, properties={"a": b"\1"}, correlation_id=b"c", expiry=500, format="MQSTR")

    qm.put("Q1", given)
    got = (await ours("get")).json()
    assert (got["body_base64"], got["priority"], got["properties"]) == ("/w==", 3, {"a": ["01"]})
    assert (await ours("put", got)).status_code == 201
    again = qm.get("Q1")
    for field in ("body", "priority", "properties", "correlation_id", "format"):
        assert getattr(again, field) == getattr(given, field)
    assert given.expiry is not None
    assert given.expiry - 60 < again.expiry < given.expiry


@serving(somebody("annabella-maria", "put"))
async def test_a_message_has_the_name_of_the_user_who_put_it_whatever_the_request_says(
    qm: QueueManager, ours: Described
) -> None:
    """The user, program and time that the request gives are ignored."""
    forged = {
        "user_identifier": "bob", "put_application_name": "bob's", "accounting_token": "07",
        "application_identity_data": "bob", "application_origin_data": "bob", "put_at": "2001-01-01T00:00:00Z",
    }  # fmt: skip
    await ours("put", {"body": "a", **forged})
    await ours("put_many", {"messages": [{"body": "b", **forged}]})
    for message in qm.browse("Q1"):
        assert (message.user_identifier, message.put_application_name) == ("annabella-ma", "inorder serve")
        assert (message.accounting_token, message.application_identity_data) == (bytes(32), "")
        assert message.application_origin_data == ""
        assert message.put_at > 1_500_000_000
    assert qm.depth("Q1") == 2


# A request's body, its refusal, and a word of the error's text.
REFUSED: list[tuple[Any, tuple[int, str, int], str]] = [
    ([], (400, "INWB0004E", 0), "object"),
    ({}, (400, "INWB0004E", 0), "either body or body_base64"),
    ({"body": "x", "body_base64": ""}, (400, "INWB0004E", 0), "either body or body_base64"),
    ({"body": "x", "body_json": 1}, (400, "INWB0004E", 0), "body_json or body"),
    ({"body": 7}, (400, "INWB0004E", 0), "body must be a text"),
    ({"body_base64": "/"}, (400, "INWB0004E", 0), "not base64"),
    ({"body": "x", "colour": 1}, (400, "INWB0004E", 0), "'colour'"),
    ({"body": "x", "priority": -1}, (400, "INWB0004E", 2050), "priority cannot be -1: 0 (lowest) to 9"),
    ({"body": "x", "priority": "high"}, (400, "INWB0004E", 2050), 'high\\": 0 (lowest) to 9'),
    ({"body": "x", "persistent": "yes"}, (400, "INWB0004E", 2047), "null, or without this key"),
    ({"body": "x", "message_id": "xyz"}, (400, "INWB0004E", 0), "message_id"),
    ({"body": "x", "expiry": 0}, (400, "INWB0004E", 2013), "expiry"),
    ({"body": "x", "message_type": 1}, (400, "INWB0004E", 2027), "reply_to_queue"),
    ({"body": "x", "properties": {"": 1}}, (400, "INWB0004E", 2513), "property"),
    ({"body": "x", "properties": {"a": {}}}, (400, "INWB0004E", 2473), "property"),
]


@pytest.mark.parametrize(("given", "expected", "word"), REFUSED, ids=[str(one[0])[:40] for one in REFUSED])
async def test_an_invalid_message_is_refused(
    qm: QueueManager, ours: Described, given: Any, expected: tuple[int, str, int], word: str
) -> None:
    answer = await ours("put", given)
    assert (refusal(answer), word in answer.text) == (expected, True), answer.text
    many = await ours("put_many", {"messages": [{"body": "a"}, given]})
    assert (refusal(many), word in many.text, "messages[1]" in many.text) == (expected, True, True)
    assert qm.depth("Q1") == 0, "what is refused changes nothing"


@given(st.floats(0, 3_600))
def test_a_duration_may_be_any_float_as_python_writes_it(value: float) -> None:
    assert taking.WAIT.kind.read("wait", repr(value)) == value


async def test_a_selector_error_is_shown_in_one_line(ours: Described) -> None:
    answer = await ours("get", selector="0")
    message = answer.json()["error"][0]["message"]
    assert message.startswith("INWB0014E: the selector is wrong at line 1, column 1: ")
    assert message.endswith("but must be a condition [2459 SELECTOR_SYNTAX_ERROR]")


# An operation, its query and headers, and the expected status and message id.
WRONG: list[tuple[str, dict[str, Any], dict[str, str], tuple[int, str]]] = [
    ("get", {"wait": "1e9"}, {}, (400, "INWB0003E")),
    ("get", {"wait": "-1"}, {}, (400, "INWB0003E")),
    ("get", {"logical": "yes"}, {}, (400, "INWB0003E")),
    ("get", {"read_order": "wild"}, {}, (400, "INWB0003E")),
    ("get", {"message_id": "7"}, {}, (400, "INWB0003E")),
    ("get", {"token": ID}, {}, (400, "INWB0003E")),
    ("get", {"uid": "QM1"}, {}, (400, "INWB0003E")),
    ("get", {"confirm_id": "0"}, {}, (400, "INWB0003E")),
    ("get", {"selector": "colour ="}, {}, (400, "INWB0014E")),
    ("get", {"complete": "true", "offset": "5"}, {}, (400, "INWB0014E")),
    ("get", {"confirm_id": "7"}, {"Inorder-Lease": "t"}, (400, "INWB0003E")),
    ("get", {}, {"Inorder-Lease": "t"}, (409, "INWB0014E")),
    ("get", {"lock_id": "7"}, {}, (204, "")),
    ("put", {"deduplicate_for": "7"}, {}, (400, "INWB0003E")),
    ("put", {}, {"Idempotency-Key": "k" * 201}, (400, "MQWB0302E")),
    ("put", {"uid": "QM1:7"}, {"Idempotency-Key": "k"}, (400, "INWB0014E")),
    ("put", {"confirm_id": "7"}, {"Idempotency-Key": "k"}, (400, "INWB0014E")),
    ("put", {"confirm_id": "7"}, {"Inorder-Lease": "t"}, (400, "INWB0003E")),
    ("put", {"resend": "true"}, {}, (400, "INWB0014E")),
    ("put", {"group": "true"}, {}, (400, "INWB0003E")),
    ("get_many", {"count": "0"}, {}, (400, "INWB0003E")),
    ("get_many", {"count": "10001"}, {}, (400, "INWB0003E")),
]


@pytest.mark.parametrize(("name", "query", "headers", "expected"), WRONG, ids=[f"{one[0]}-{one[1]}" for one in WRONG])
async def test_invalid_parameters_and_headers_are_refused(
    qm: QueueManager,
    ours: Described,
    name: str,
    query: dict[str, Any],
    headers: dict[str, str],
    expected: tuple[int, str],
) -> None:
    given = {"body": "x"} if name == "put" else None
    answer = await ours(name, given, headers=headers, **query)
    found = refusal(answer)[:2] if answer.is_error else (answer.status_code, "")
    assert found == expected, answer.text
    assert qm.depth("Q1") == 0, "what is refused changes nothing"


async def test_a_missing_queue_is_reported_as_not_found(ours: Described) -> None:
    for answer in (
        await ours("put", {"body": "x"}, queue="A/B"),
        await ours("get", queue="A/B"),
        await ours("browse", queue="A/B"),
        await ours("queue", queue="A/B"),
        await ours("undo", {"confirm_id": 7}, queue="A/B"),
    ):
        assert refusal(answer) == (404, "INWB0014E", 2085)
        assert "A/B" in answer.text


@serving(limits=Limits(body=100_000, json=1_000))
async def test_a_body_may_be_as_long_as_the_limit_says(ours: Described) -> None:
    """Base64 makes it a third longer. A longer body than that is refused before it is read."""
    whole = {"body_base64": base64.b64encode(b"\xff" * 99_999).decode()}
    assert (await ours("put", whole)).status_code == 201
    assert len((await ours("get")).json()["body_base64"]) == 4 * 33_333
    longer = await ours("put", {"body_base64": base64.b64encode(bytes(300_000)).decode()})
    assert refusal(longer) == (413, "INWB0005E", 0)


# --- gets


def bodies_of(answer: httpx.Response) -> list[str]:
    return [one["body"] for one in answer.json()["messages"]] if answer.status_code == 200 else []


async def test_a_get_matches_ids_selectors_and_tokens(qm: QueueManager, ours: Described) -> None:
    for n in range(6):
        qm.put("Q1", str(n).encode(), correlation_id=bytes([n]), properties={"colour": "red" if n % 2 else "blue"})
    uid = qm.put("Q1", b"u").uid
    token = qm.browse("Q1").__next__().token.hex()
    assert (await ours("get", correlation_id="04")).json()["body"] == "4"
    assert (await ours("get", selector="colour = 'red'")).json()["body"] == "1"
    assert (await ours("get", uid=f"{uid.origin}:{uid.number}")).json()["body"] == "u"
    assert (await ours("get", token=token)).json()["body"] == "0"
    assert (await ours("get", message_id=ID)).status_code == 204
    assert bodies_of(await ours("get_many", count=2)) == ["2", "3"]
    assert bodies_of(await ours("get_many")) == ["5"]
    assert (await ours("get_many")).status_code == 204


async def test_a_group_is_put_in_one_request_and_got_in_one_answer(ours: Described) -> None:
    group = [{"body": "header"}, {"body": "line 1"}, {"body": "line 2", "priority": 0}]
    done = (await ours("put_many", {"messages": group}, group=True)).json()["results"]
    assert [one["sequence_number"] for one in done] == [1, 2, 3]
    assert len({one["group_id"] for one in done}) == 1
    (first, *_, last) = (await ours("browse")).json()["messages"]
    assert (first["flags"], last["flags"]) == (Flags.IN_GROUP, Flags.IN_GROUP | Flags.LAST_IN_GROUP)
    assert bodies_of(await ours("get_group")) == ["header", "line 1", "line 2"]
    assert (await ours("get_group")).status_code == 204


@serving(connections=1)
async def test_no_request_continues_the_group_of_another(ours: Described) -> None:
    """A handle forgets its group at the end of a request: the next one begins with the first message of a group."""
    for name in ("a", "b"):
        await ours("put_many", {"messages": [{"body": f"{name}1"}, {"body": f"{name}2"}]}, group=True)
    assert (await ours("get", logical=True)).json()["body"] == "a1"
    assert (await ours("get", logical=True)).json()["body"] == "b1"
    assert (await ours("get", logical=True)).status_code == 204
    assert bodies_of(await ours("get_many")) == ["a2", "b2"]


async def test_strict_order_is_kept(ours: Described, served: Served) -> None:
    with inorder.connect(served.store) as qm, qm.connect() as other:
        qm.create_queue("STRICT", order="put", read_order="strict")
        with other.unit_of_work():
            other.put("STRICT", b"first")
            qm.put("STRICT", b"second")
            withheld = await ours("get", queue="STRICT")
            assert refusal(withheld) == (409, "INWB0014E", inorder.Reason.ORDER_PENDING.value)
            assert refusal(await ours("get", queue="STRICT", wait=0.05))[0] == 409
            assert (await ours("get", queue="STRICT", read_order="relaxed")).json()["body"] == "second"


# --- idempotency


async def test_a_repeated_request_acts_once(ours: Described) -> None:
    key = {"Idempotency-Key": "order-17"}
    first = (await ours("put", {"body": "two apples"}, headers=key)).json()
    again = await ours("put", {"body": "two apples"}, headers=key)
    assert again.status_code == 201
    assert again.json() == first | {"warning": "DUPLICATE_PUT", "duplicate_of": first["uid"]}
    group = {"messages": [{"body": "a"}, {"body": "b"}]}
    key = {"Idempotency-Key": "order-18"}
    done = [(await ours("put_many", group, group=True, headers=key, deduplicate_for=60)).json() for _ in range(2)]
    assert [one["duplicate_of"] is None for one in done[0]["results"]] == [True, True]
    assert [one["duplicate_of"] for one in done[1]["results"]] == [done[0]["results"][0]["uid"]] * 2
    assert bodies_of(await ours("get_many")) == ["two apples", "a", "b"]
    assert (await ours("put", {"body": "c"}, headers=key)).json()["duplicate_of"] is not None


async def test_a_put_is_repeated_with_its_unique_id(ours: Described) -> None:
    first = (await ours("put", {"body": "a"}, confirm_id=7)).json()["uid"]
    uid = f"{first['origin']}:{first['number']}"
    again = await ours("put", {"body": "a"}, uid=uid, confirm_id=7)
    assert refusal(again)[:2] == (409, "INWB0014E")
    assert (await ours("put", {"body": "a"}, uid=uid, resend=True, confirm_id=7)).status_code == 201
    assert (await ours("confirm_put", {"uid": first})).status_code == 200
    assert bodies_of(await ours("get_many")) == ["a"]


@pytest.mark.parametrize("ahead", [1, 3, 10**6, 2**63 - 2])
async def test_a_unique_id_that_was_not_assigned_yet_cannot_be_used(ours: Described, ahead: int) -> None:
    """Otherwise two messages would have it (A-1)."""
    uid = (await ours("put", {"body": "a"})).json()["uid"]
    forged = f"{uid['origin']}:{min(uid['number'] + ahead, 2**63 - 1)}"
    refused = await ours("put", {"body": "forged"}, uid=forged)
    assert (refusal(refused)[:2], "is not on Q1" in refused.text) == ((400, "INWB0003E"), True)
    assert (await ours("put", {"body": "another's"}, uid=f"ELSEWHERE:{uid['number']}")).status_code == 201
    assert bodies_of(await ours("get_many")) == ["a", "another's"]


@pytest.mark.parametrize("named", [{"group_id": "text:MINE"}, {"sequence_number": 2}])
async def test_messages_put_as_one_group_must_not_name_a_group_or_a_sequence_number(
    ours: Described, named: dict[str, Any]
) -> None:
    given = {"messages": [{"body": "a"}, {"body": "b", **named}]}
    refused = await ours("put_many", given, group=True)
    assert (refusal(refused)[:2], "messages[1]" in refused.text) == ((400, "INWB0003E"), True)
    assert bodies_of(await ours("get_many")) == []


# --- waits


async def test_a_wait_ends_when_a_message_arrives(ours: Described, served: Served) -> None:
    for name in ("get", "get_many", "get_group"):
        waiting = asyncio.ensure_future(ours(name, wait=600))
        await until_waiting(served)
        await ours("put", {"body": name})
        answer = await waiting
        assert name in answer.text


@serving(limits=Limits(waits=1, wait_seconds=600))
async def test_too_many_waits_are_refused(ours: Described, served: Served) -> None:
    waiting = asyncio.ensure_future(ours("get", wait=600))
    await until_waiting(served)
    assert refusal(await ours("get", wait=1)) == (503, "INWB0008E", 0)
    assert refusal(await ours("get", wait=601)) == (400, "INWB0003E", 0)
    await ours("put", {"body": "x"})
    await waiting


async def until_waiting(served: Served) -> None:
    """Returns when a get has opened Q1."""
    with inorder.connect(served.store) as qm:
        await asyncio.to_thread(until, lambda: qm.inspect.status("Q1").open_input_count > 0, "a get waits")
    await asyncio.sleep(0)


@pytest.mark.parametrize("asks_the_system", [False, True])
@pytest.mark.parametrize("name", ["get", "get_many", "get_group"])
async def test_a_client_that_disconnects_has_taken_nothing(
    qm: QueueManager, served: Served, monkeypatch: pytest.MonkeyPatch, name: str, asks_the_system: bool
) -> None:
    """The client disconnects after the message is taken and the answer made; the message is in its place again.

    A message taken in a single call was never removed. One taken in a unit of work is backed out and counted (A-40).
    """
    qm.put("Q1", b"a")

    goes = Client()

    async def gone_first(is_wanted: IsWanted) -> None:
        goes.leave()
        await disconnects.check_wanted(is_wanted)

    async with alive(served.app()) as app, client_of(app) as client:
        with monkeypatch.context() as changed:
            changed.setattr(taking, "check_wanted", gone_first)
            scope = scope_of("POST", f"{BASE}/queues/Q1/{name}", b"")
            if asks_the_system:
                scope["state"] = {disconnects.IS_GONE: lambda: True}
            await app(scope, goes.receive, goes.send)
        assert [one.get("status") for one in goes.sent][:1] == [499]
        ours = await described(client)
        back = (await ours("get")).json()
        is_counted = not (asks_the_system and name == "get")
        assert (back["body"], back["backout_count"]) == ("a", int(is_counted))


@pytest.mark.parametrize("seed", range(2))
async def test_a_browse_in_pages_misses_and_repeats_no_message(served: Served, qm: QueueManager, seed: int) -> None:
    """Between pages, messages are put and units are committed or backed out; a new worker serves each page."""
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


async def test_a_page_says_what_withholds_the_next_message(ours: Described, served: Served) -> None:
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
    waiting = asyncio.ensure_future(ours("browse", cursor=cursor, wait=600))
    await client.get("/ready")
    await ours("put", {"body": "b"})
    assert bodies_of(await waiting) == ["b"]
    nothing = await ours("browse", queue="Q1", selector="colour = 'red'", wait=0.05)
    assert nothing.json()["messages"] == []


async def test_a_page_is_limited_in_bytes_and_may_leave_out_bodies(
    ours: Described, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browsing, "PAGE_BYTES", 5)
    await ours("put_many", {"messages": [{"body": "abc"}] * 3})
    assert bodies_of(await ours("browse")) == ["abc", "abc"], "a page ends when it is long enough"
    page = (await ours("browse", bodies=False)).json()["messages"]
    assert [one["length"] for one in page] == [3, 3, 3]
    assert not any({"body", "body_base64"} & one.keys() for one in page)


async def test_a_page_says_which_message_of_an_incomplete_group_is_awaited(ours: Described) -> None:
    first = (await ours("put", {"body": "1", "flags": 8})).json()
    page = (await ours("browse", logical=True)).json()
    assert page["awaits"] == {"group_id": first["group_id"], "sequence_number": 2, "offset": 0}
    last = {"body": "2", "flags": 16, "group_id": first["group_id"], "sequence_number": 2}
    await ours("put", last)
    assert bodies_of(await ours("browse", logical=True, cursor=page["cursor"])) == ["2"]


@pytest.mark.parametrize("cursor", ["x", "e30=", "a" * 4_001, "'"])
async def test_an_invalid_cursor_is_refused(ours: Described, cursor: str) -> None:
    answer = await ours("browse", cursor=cursor)
    assert refusal(answer) == (400, "INWB0003E", 0)
    assert "parameter 'cursor' must be the cursor from the answer of a browse, not" in answer.text
    assert "token" not in answer.text


async def test_a_cursor_of_another_queue_is_refused(qm: QueueManager, ours: Described) -> None:
    qm.create_queue("Q2")
    qm.put("Q1", b"a")
    qm.put("Q2", b"b")
    cursor = (await ours("browse")).json()["cursor"]
    assert refusal(await ours("browse", queue="Q2", cursor=cursor))[0] == 409


async def test_locked_messages_are_hidden_until_they_are_unlocked(ours: Described) -> None:
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


async def test_held_messages_are_listed_under_the_user_who_requested_them(qm: QueueManager, ours: Described) -> None:
    await ours("put_many", {"messages": [{"body": str(n)} for n in range(3)]})
    await ours("browse_and_lock", count=1, seconds=600)
    await ours("get", confirm_id=7)
    await ours("get", confirm_id=8, wait=1)
    await ours("put", {"body": "held"}, confirm_id=9)
    held = {one.name: one.program for one in qm.inspect.units() if one.kind in ("confirm", "lock")}
    assert {"7", "8", "9"} < held.keys()
    assert {one.user for one in held.values()} == {"launch-token"}
    assert {one.name for one in held.values()} == {"inorder serve"}


async def test_undoing_a_confirm_id_undoes_everything_under_it(ours: Described) -> None:
    await ours("put_many", {"messages": [{"body": "a"}, {"body": "b"}]})
    assert (await ours("get", confirm_id=7)).json()["body"] == "a"
    await ours("put", {"body": "c"}, confirm_id=7)
    assert bodies_of(await ours("browse_and_lock", confirm_id=7)) == ["b"]
    assert bodies_of(await ours("browse")) == []
    assert (await ours("undo", {"confirm_id": 7})).json() == {"messages": 3}
    assert bodies_of(await ours("browse")) == ["a", "b"]


async def test_a_number_without_a_fraction_is_an_integer(ours: Described) -> None:
    """JSON Schema says so, and some programs write every number with a decimal point."""
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
async def test_an_invalid_request_body_is_refused(ours: Described, name: str, given: dict[str, Any]) -> None:
    assert refusal(await ours(name, given)) == (400, "INWB0004E", 0)
