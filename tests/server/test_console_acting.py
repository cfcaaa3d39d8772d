"""Acts of the console on messages: each act and each refusal; nothing else changes, and every act is logged."""

from __future__ import annotations

import html
import re
from typing import Any
from urllib.parse import quote_plus, urlencode

import httpx
import pytest
from tests.helpers.support import bodies_at
from tests.server.conftest import Served, on_both, serving, somebody, with_role
from tests.server.test_console import csrf_in

import inorder
from inorder import QueueManager
from inorder.server.console import acting, forms
from inorder.server.console.listing import uid_text

HOSTILE = '<script>alert("1")</script>'


async def csrf_of(client: httpx.AsyncClient) -> str:
    return csrf_in((await client.get("/console/")).text)


async def send(client: httpx.AsyncClient, path: str, **fields: Any) -> httpx.Response:
    """Sends a form of the console, with its token."""
    return await client.post(f"/console/{path}", data={"csrf": await csrf_of(client), **fields})


async def upload(client: httpx.AsyncClient, data: bytes, **fields: str) -> httpx.Response:
    return await client.post(
        "/console/queue/Q2/import", data={"csrf": await csrf_of(client), **fields}, files={"file": ("a.jsonl", data)}
    )


def put(served: Served, *bodies: bytes, queue: str = "Q1", **fields: Any) -> list[str]:
    """Puts messages. Returns their unique ids as pages show them."""
    with inorder.connect(served.store) as qm:
        return [uid_text(qm.put(queue, body, **fields).uid) for body in bodies]


def acts(served: Served) -> list[tuple[str, str, str, str, int | None]]:
    with inorder.connect(served.store) as qm:
        return [(one.user, one.act, one.queue, one.outcome, one.messages) for one in qm.accounts.acts()]


@pytest.fixture
def two(served: Served) -> Served:
    with inorder.connect(served.store) as qm:
        qm.create_queue("Q2")
        qm.create_queue("DEAD")
        qm.admin.alter_manager(dead_letter_queue="DEAD")
    return served


@pytest.mark.parametrize(
    ("action", "left", "there"),
    [
        ("move", [b"2"], [b"1", b"3"]),
        ("copy", [b"1", b"2", b"3"], [b"1", b"3"]),
        ("delete", [b"2"], []),
        ("bury", [b"2"], []),
    ],
)
@on_both
async def test_an_act_on_chosen_messages_is_shown_for_review_and_then_done(
    client: httpx.AsyncClient, two: Served, action: str, left: list[bytes], there: list[bytes]
) -> None:
    first, _, third = put(two, b"1", b"2", b"3")
    given = {"action": action, "uid": [first, third], "target": "Q2"}
    review = await send(client, "queue/Q1/act", **given)
    assert review.status_code == 200
    assert "2 messages" in review.text
    assert bodies_at(two.store, "Q1") == [b"1", b"2", b"3"], "a review changes nothing"
    done = await send(client, "queue/Q1/act", **given, step="do", typed="Q1")
    assert (done.status_code, done.headers["location"]) == (303, "/console/queue/Q1")
    assert (bodies_at(two.store, "Q1"), bodies_at(two.store, "Q2")) == (left, there)
    assert acts(two) == [("launch-token", action, "Q1", "done", 2)]
    assert bodies_at(two.store, "DEAD") == ([b"1", b"3"] if action == "bury" else [])


@pytest.mark.parametrize("action", ["move", "delete"])
@pytest.mark.parametrize("typed", ["", "q1", "Q1 ", "Q2"])
async def test_moving_and_deleting_messages_needs_the_typed_name_of_the_queue(
    client: httpx.AsyncClient, two: Served, action: str, typed: str
) -> None:
    uids = put(two, b"1")
    refused = await send(client, "queue/Q1/act", action=action, uid=uids, target="Q2", step="do", typed=typed)
    assert refused.status_code == 422
    assert "Nothing was changed" in refused.text
    assert bodies_at(two.store, "Q1") == [b"1"]
    assert acts(two) == []


@on_both
async def test_chosen_messages_that_are_gone_or_held_are_reported_and_the_others_deleted(
    client: httpx.AsyncClient, qm: QueueManager, two: Served
) -> None:
    gone, held, there = put(two, b"gone", b"held", b"there")
    qm.get("Q1", match=inorder.Match(uid=acting.uid_of(gone)))
    qm.get("Q1", match=inorder.Match(uid=acting.uid_of(held)), confirm_id=7)
    given = {"action": "delete", "uid": [gone, held, there]}
    review = await send(client, "queue/Q1/act", **given)
    assert "Delete 1 message from Q1?" in review.text
    for answer in (review, await send(client, "queue/Q1/act", **given, step="do", typed="Q1")):
        assert answer.status_code == 200
        assert "it has gone" in answer.text
        assert "got by confirm 7" in answer.text
    qm.undo("Q1", 7)
    assert bodies_at(two.store, "Q1") == [b"held"]
    assert acts(two) == [("launch-token", "delete", "Q1", "done", 1)]


@on_both
async def test_a_selector_chooses_only_messages_that_are_available_at_the_review(
    client: httpx.AsyncClient, two: Served
) -> None:
    put(two, b"red", properties={"colour": "red"})
    put(two, b"blue", properties={"colour": "blue"})
    put(two, b"later", properties={"colour": "red"}, delay=1000)
    review = await send(client, "queue/Q1/act", action="delete", selector="colour = 'red'")
    assert "Delete 1 message from Q1?" in review.text
    assert "1 more match" in review.text
    found = re.search(r'name="uid" value="([^"]*)"', review.text)
    assert found
    put(two, b"red, put since", properties={"colour": "red"})
    await send(client, "queue/Q1/act", action="delete", uid=html.unescape(found[1]), step="do", typed="Q1")
    assert bodies_at(two.store, "Q1") == [b"blue", b"red, put since"]


async def test_all_messages_are_chosen_only_by_an_empty_selector(client: httpx.AsyncClient, two: Served) -> None:
    put(two, b"1", b"2")
    refused = await send(client, "queue/Q1/act", action="delete")
    assert refused.status_code == 400
    assert "no message is chosen: tick at least one" in refused.text
    assert "Delete 2 messages" in (await send(client, "queue/Q1/act", action="delete", selector="")).text


async def test_the_number_of_messages_of_one_act_is_limited_and_the_page_says_so(
    client: httpx.AsyncClient, two: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acting, "CHOSEN_MAX", 3)
    uids = put(two, b"1", b"2", b"3", b"4")
    review = await send(client, "queue/Q1/act", action="delete", selector="")
    assert "Delete 3 messages" in review.text
    assert "More messages match" in review.text
    assert (await send(client, "queue/Q1/act", action="delete", uid=uids)).status_code == 400


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"action": "move", "target": ""}, 400, "the target queue is missing"),
        ({"action": "move", "target": "Q1"}, 400, "a queue other than Q1"),
        ({"action": "copy", "target": "NOWHERE"}, 404, "NOWHERE"),
        ({"action": "burn"}, 400, "action must be one of: move, copy, delete, bury, export"),
        ({"action": "delete", "uid": "x"}, 400, "the unique id of a message"),
        ({"action": "delete", "uid": f"{'9' * 30}-QM1"}, 400, "the unique id of a message"),
        ({"action": "delete", "selector": "colour ="}, 400, "selector"),
        ({"action": "export", "form": "floppy"}, 400, "jsonl"),
    ],
)
async def test_an_invalid_field_is_reported_and_nothing_is_done(
    client: httpx.AsyncClient, two: Served, fields: dict[str, str], status: int, said: str
) -> None:
    uids = put(two, b"1")
    chosen = {} if "uid" in fields or "selector" in fields else {"uid": uids}
    refused = await send(client, "queue/Q1/act", **chosen, **fields, step="do", typed="Q1")
    assert refused.status_code == status
    assert said in html.unescape(refused.text)
    assert "uid" not in fields or chosen_in(refused) == {fields["uid"]}, "it would be about all messages"
    assert bodies_at(two.store, "Q1") == [b"1"]


@on_both
async def test_an_error_in_the_middle_of_an_act_backs_all_of_it_out_and_is_logged(
    client: httpx.AsyncClient, qm: QueueManager, two: Served
) -> None:
    uids = put(two, b"1", b"2")
    qm.alter_queue("Q2", max_depth=1)
    full = await send(client, "queue/Q1/act", action="move", uid=uids, target="Q2", step="do", typed="Q1")
    assert full.status_code == 409
    assert "2053" in full.text
    assert (bodies_at(two.store, "Q1"), bodies_at(two.store, "Q2")) == ([b"1", b"2"], [])
    assert acts(two) == [("launch-token", "move", "Q1", "failed", None)]


def chosen_in(page: httpx.Response) -> set[str]:
    """The messages on which the form of a page would act."""
    fields = re.findall(r'<input type="hidden" name="uid" value="([^"]*)"', page.text)
    return {uid for field in fields for uid in html.unescape(field).split()}


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"action": "move", "target": "Q22"}, 404),
        ({"action": "copy", "target": "Q1"}, 400),
        ({"action": "move", "target": "FULL", "step": "do", "typed": "Q1"}, 409),
        ({"action": "delete", "step": "do", "typed": "Q1"}, 409),
        ({"action": "export", "form": "dmpmqmsg"}, 400),
    ],
)
async def test_chosen_messages_stay_chosen_when_an_act_is_refused(
    client: httpx.AsyncClient, qm: QueueManager, two: Served, fields: dict[str, str], status: int
) -> None:
    qm.create_queue("FULL", max_depth=1)
    qm.put("FULL", b"in the way")
    uids = [uid_text(qm.put("Q1", body, properties={"a": 1}).uid) for body in (b"1", b"2", b"3")][:2]
    qm.alter_queue("Q1", get_allowed=fields["action"] != "delete")
    refused = await send(client, "queue/Q1/act", uid=uids, **fields)
    assert refused.status_code == status
    assert chosen_in(refused) == set(uids)
    assert 'name="selector"' not in refused.text, "the form would be about all messages"
    for name in ("action", "form"):
        if name in fields:
            assert f'<option value="{fields[name]}" selected>' in refused.text
    again = await send(client, "queue/Q1/act", action="copy", uid=" ".join(chosen_in(refused)), target="Q2")
    assert "Copy 2 messages of Q1 to Q2?" in again.text
    assert bodies_at(two.store, "Q2") == []


@serving(somebody("ann", "get", "browse"))
async def test_chosen_messages_stay_chosen_when_the_visitor_may_not_put_to_the_target(
    client: httpx.AsyncClient, two: Served
) -> None:
    uids = put(two, b"1", b"2")
    refused = await send(client, "queue/Q1/act", action="move", uid=uids, target="Q2")
    assert refused.status_code == 403
    assert chosen_in(refused) == set(uids)
    assert "Not authorized to put to" in refused.text


@pytest.mark.parametrize(
    "fields", [{"action": "copy", "target": "Q22"}, {"action": "export", "form": "dmpmqmsg"}, {"action": "delete"}]
)
async def test_a_selector_stays_when_an_act_is_refused(
    client: httpx.AsyncClient, two: Served, fields: dict[str, str]
) -> None:
    put(two, b"1", properties={"colour": "red"})
    selector = "colour = 'red'" if fields["action"] != "delete" else "colour = "
    refused = await send(client, "queue/Q1/act", selector=selector, **fields)
    assert refused.status_code == (404 if fields["action"] == "copy" else 400)
    assert f'name="selector" value="{selector}"' in html.unescape(refused.text)
    assert f'<option value="{fields["action"]}" selected>' in refused.text


async def test_a_moved_message_keeps_its_ids_its_group_and_its_time(
    client: httpx.AsyncClient, qm: QueueManager, two: Served
) -> None:
    with qm.unit_of_work(), qm.group("Q1") as group:
        group.put(b"1", properties={"a": 1}, priority=7, correlation_id=b"c")
        group.put(b"2")
    before = [(one.message_id, one.group_id, one.sequence_number, one.put_at) for one in qm.browse("Q1")]
    uids = [uid_text(one.uid) for one in qm.browse("Q1") if one.uid]
    await send(client, "queue/Q1/act", action="move", uid=uids, target="Q2", step="do", typed="Q1")
    after = [(one.message_id, one.group_id, one.sequence_number, one.put_at) for one in qm.browse("Q2")]
    assert after == before
    assert [one.body for one in qm.get_group("Q2")] == [b"1", b"2"]


async def test_a_later_message_can_be_deleted_on_a_queue_that_requires_its_order(
    client: httpx.AsyncClient, qm: QueueManager, two: Served
) -> None:
    qm.create_queue("STRICT", read_order="required")
    _, uid = put(two, b"1", b"2", queue="STRICT")
    done = await send(client, "queue/STRICT/act", action="delete", uid=uid, step="do", typed="STRICT")
    assert done.status_code == 303  # a relaxed get would have been refused
    assert bodies_at(two.store, "STRICT") == [b"1"]


async def test_a_message_is_put_as_the_form_says(client: httpx.AsyncClient, qm: QueueManager) -> None:
    done = await send(
        client, "queue/Q1/put", kind="json", body='{"a":\r\n 1}', priority="7", persistent="yes", expiry="60",
        correlation_id="text:c", properties="colour=red\r\nsize:int=3", group="last", sequence_number="2",
        group_id="text:g", reply_to_queue="R",
    )  # fmt: skip
    assert (done.status_code, done.headers["location"]) == (303, "/console/queue/Q1")
    found = qm.get("Q1")
    assert (found.body, found.format, found.priority, found.persistent) == (b'{"a":\n 1}', "MQSTR", 7, True)
    assert (found.correlation_id[:1], found.group_id[:1], found.sequence_number) == (b"c", b"g", 2)
    assert dict(found.properties) == {"colour": "red", "size": 3}
    assert found.flags == inorder.Flags.IN_GROUP | inorder.Flags.LAST_IN_GROUP
    assert found.reply_to_queue == "R"
    assert found.expiry is not None
    assert found.expiry <= 60


async def test_a_put_with_a_warning_says_so(client: httpx.AsyncClient) -> None:
    await send(client, "queue/Q1/put", kind="text", body="x", priority="11")
    assert "with the warning PRIORITY_EXCEEDS_MAXIMUM." in (await client.get("/console/queue/Q1")).text


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"kind": "hex", "body": "0g"}, "hexadecimal digits"),
        ({"kind": "json", "body": "{"}, "JSON"),
        ({"kind": "runes"}, "text, json, hex"),
        ({"priority": "-1"}, "priority"),
        ({"expiry": "soon"}, "unlimited"),
        (
            {"expiry": "0"},
            "expiry must be a number of seconds from 0.1 to 99,999,999.9, unlimited, or empty for the queue's, not '0'",
        ),
        ({"delay": "100000000"}, "delay must be a number of seconds from 0 to 99,999,999.9, not '100000000'"),
        ({"delay": "unlimited"}, "seconds"),
        ({"persistent": "maybe"}, "yes or no"),
        ({"message_id": "xyz"}, "48 hexadecimal digits"),
        ({"properties": "colour"}, "NAME=VALUE"),
        ({"properties": "a=1\na=2"}, "unique names"),
        ({"group_id": "text:g"}, "in a group"),
        ({"group": "first"}, "empty, in or last"),
        ({"reply_to_queue": "x" * 49}, "reply_to_queue"),
    ],
)
async def test_a_refused_put_keeps_the_form_and_says_why(
    client: httpx.AsyncClient, served: Served, fields: dict[str, str], said: str
) -> None:
    refused = await send(client, "queue/Q1/put", **({"kind": "text", "body": "kept & shown"} | fields))
    assert refused.status_code == 400
    assert said in html.unescape(refused.text)
    if "body" not in fields:
        assert "kept &amp; shown" in refused.text
    assert bodies_at(served.store, "Q1") == []


@pytest.mark.parametrize("has_file", [False, True], ids=["fields", "with file"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"body", b"\xff"),
        (b"body", b'"a\xc3"'),
        (b"properties", b"a=\x80"),
        (b"b\xffdy", b"x"),
        (b"body", b"\xed\xa0\x80"),
    ],
)
async def test_a_form_that_is_not_utf_8_is_refused_and_nothing_put(
    client: httpx.AsyncClient, served: Served, has_file: bool, name: bytes, value: bytes
) -> None:
    fields = {b"csrf": (await csrf_of(client)).encode(), b"kind": b"text", name: value}
    if has_file:
        parts = [b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % one for one in fields.items()]
        data, media_type = b"".join(parts) + b"--x--\r\n", "multipart/form-data; charset=utf-8; boundary=x"
    else:
        data, media_type = urlencode(fields).encode(), "application/x-www-form-urlencoded"
    refused = await client.post("/console/queue/Q1/put", content=data, headers={"content-type": media_type})
    assert refused.status_code == 400
    assert "must be text in UTF-8, not byte 0x" in refused.text
    assert bodies_at(served.store, "Q1") == []


async def test_a_form_in_utf_8_is_taken_as_it_was_sent(client: httpx.AsyncClient, served: Served) -> None:
    text = "\u00e4\u20ac\U0001f600 a+b=c&d%20;\u202e"
    fields = {"csrf": await csrf_of(client), "kind": "text", "body": text}
    assert (await client.post("/console/queue/Q1/put", data=fields)).status_code == 303
    parts = {name: (None, value.encode()) for name, value in fields.items()}
    assert (await client.post("/console/queue/Q1/put", files=parts)).status_code == 303
    raw = f"csrf={fields['csrf']}&&kind=text&body={quote_plus(text, safe=text[:3])}&none".encode()
    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert (await client.post("/console/queue/Q1/put", content=raw, headers=headers)).status_code == 303
    many = raw + b"&a=1" * forms.FIELDS_MAX
    refused = await client.post("/console/queue/Q1/put", content=many, headers=headers)
    assert refused.status_code == 400
    assert "at most 1,000 fields" in refused.text
    assert bodies_at(served.store, "Q1") == [text.encode()] * 3


async def test_a_get_removes_one_message_and_shows_it_once(client: httpx.AsyncClient, two: Served) -> None:
    put(two, b'{"a": 1}', HOSTILE.encode(), properties={"colour": "red"})
    page = (await client.get("/console/queue/Q1/get")).text
    assert "removes it from the queue for good" in page
    assert len(bodies_at(two.store, "Q1")) == 2, "looking removes nothing"
    shown = await send(client, "queue/Q1/get")
    assert '"a": 1' in html.unescape(shown.text)
    assert "property colour" in shown.text
    assert bodies_at(two.store, "Q1") == [HOSTILE.encode()]
    none = await send(client, "queue/Q1/get", selector="colour = 'blue'")
    assert (none.status_code, "colour = &#39;blue&#39;" in none.text) == (409, True)
    assert (await send(client, "queue/Q1/get", selector="colour =")).status_code == 400
    assert HOSTILE not in (await send(client, "queue/Q1/get", selector="colour = 'red'")).text
    assert bodies_at(two.store, "Q1") == []
    assert [one for one in acts(two) if one[3] == "done"] == [("launch-token", "get", "Q1", "done", 1)] * 2


@serving(with_role("reader"))
async def test_a_reader_gets_no_controls_and_cannot_act(client: httpx.AsyncClient, two: Served) -> None:
    uids = put(two, b"1")
    page = (await client.get("/console/queue/Q1")).text
    for word in ("Move", "Copy", "Delete", "Bury", ">Put<", "Import", "To queue", "Act by selector"):
        assert word not in page, word
    assert 'type="checkbox" form="chosen"' in page, "they are there for an export"
    assert 'value="export"' in page
    message = (await client.get(f"/console/queue/Q1/message/{uids[0]}")).text
    by_selector = (await client.get("/console/queue/Q1/act")).text
    for word in ("Move", "Copy", "Delete", "To queue"):
        assert word not in message, word
        assert word not in by_selector, word
    assert 'name="command"' in (await client.get("/console/mqsc")).text, "it is there for DISPLAY"
    assert (await client.get("/console/queue/Q1/put")).status_code == 403
    for action in ("move", "copy", "delete", "bury"):
        refused = await send(client, "queue/Q1/act", action=action, uid=uids, target="Q2", step="do", typed="Q1")
        assert refused.status_code == 403, action
    assert (await send(client, "queue/Q1/put", kind="text", body="x")).status_code == 403
    assert (await send(client, "queue/Q1/get")).status_code == 403
    assert (await upload(client, b'{"body": "1"}')).status_code == 403
    assert (await client.get("/console/queue/Q1/export?form=jsonl")).status_code == 200
    assert bodies_at(two.store, "Q1") == [b"1"]
    assert acts(two) == []


async def test_hostile_bodies_and_names_are_escaped(client: httpx.AsyncClient, two: Served) -> None:
    uids = put(two, HOSTILE.encode(), properties={"a": HOSTILE})
    pages = [
        await send(client, "queue/Q1/act", action="delete", uid=uids),
        await send(client, "queue/Q1/act", action="copy", uid=uids, target=HOSTILE),
        await send(client, "queue/Q1/act", action="delete", selector=HOSTILE),
        await send(client, "queue/Q1/put", kind="hex", body=HOSTILE, properties=HOSTILE, format=HOSTILE),
        await client.get("/console/queue/Q1/export", params={"selector": HOSTILE}),
        await client.get("/console/queue/Q1/act", params={"selector": HOSTILE, "action": HOSTILE}),
    ]
    for page in pages:
        assert "<script>alert" not in page.text
