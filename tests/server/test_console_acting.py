"""What the console does to messages: each act, each refusal; nothing else is touched, and all of it is noted."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from tests.server.conftest import Served, Start, somebody, with_role

import inorder
from inorder.errors import ArgumentError
from inorder.formats.json_lines import message_of
from inorder.server.console import acting, exporting, forms, importing
from inorder.server.console.listing import uid_text

HOSTILE = '<script>alert("1")</script>'
Visit = Callable[[httpx.AsyncClient], Coroutine[Any, Any, None]]


async def csrf_of(client: httpx.AsyncClient) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]{64})"', (await client.get("/console/")).text)
    assert found, "no page has a form with a token"
    return found[1]


async def send(client: httpx.AsyncClient, path: str, **fields: Any) -> httpx.Response:
    """A form of the console, with its token."""
    return await client.post(f"/console/{path}", data={"csrf": await csrf_of(client), **fields})


def put(served: Served, *bodies: bytes, queue: str = "Q1", **fields: Any) -> list[str]:
    """The unique ids of messages put, as pages have them."""
    with inorder.connect(served.store) as qm:
        return [uid_text(qm.put(queue, body, **fields).uid) for body in bodies]


def bodies(served: Served, queue: str = "Q1") -> list[bytes]:
    with inorder.connect(served.store) as qm:
        return [one.body for one in qm.browse(queue)]


def acts(served: Served) -> list[tuple[str, str, str, str, int | None]]:
    with inorder.connect(served.store) as qm:
        return [(one.user, one.act, one.queue, one.outcome, one.messages) for one in qm.acts()]


@pytest.fixture
def two(served: Served) -> Served:
    with inorder.connect(served.store) as qm:
        qm.create_queue("Q2")
        qm.create_queue("DEAD")
        qm.alter_manager(dead_letter_queue="DEAD")
    return served


# --- move, copy, delete


@pytest.mark.parametrize(
    ("action", "left", "there"),
    [("move", [b"2"], [b"1", b"3"]), ("copy", [b"1", b"2", b"3"], [b"1", b"3"]), ("delete", [b"2"], [])],
)
def test_what_is_chosen_is_shown_and_then_done(two: Served, action: str, left: list[bytes], there: list[bytes]) -> None:
    first, _, third = put(two, b"1", b"2", b"3")

    async def work(client: httpx.AsyncClient) -> None:
        given = {"action": action, "uid": [first, third], "target": "Q2"}
        review = await send(client, "queue/Q1/act", **given)
        assert review.status_code == 200
        assert "2 messages" in review.text
        assert bodies(two) == [b"1", b"2", b"3"], "a review changes nothing"
        done = await send(client, "queue/Q1/act", **given, step="do", typed="Q1")
        assert (done.status_code, done.headers["location"]) == (303, "/console/queue/Q1")

    two.run(work)
    assert (bodies(two), bodies(two, "Q2")) == (left, there)
    assert acts(two) == [("launch-token", action, "Q1", "done", 2)]


@pytest.mark.parametrize("action", ["move", "delete"])
@pytest.mark.parametrize("typed", ["", "q1", "Q1 ", "Q2"])
def test_what_takes_messages_away_needs_the_name_of_the_queue(two: Served, action: str, typed: str) -> None:
    uids = put(two, b"1")

    async def work(client: httpx.AsyncClient) -> None:
        refused = await send(client, "queue/Q1/act", action=action, uid=uids, target="Q2", step="do", typed=typed)
        assert refused.status_code == 422
        assert "Nothing was changed" in refused.text

    two.run(work)
    assert bodies(two) == [b"1"]
    assert acts(two) == []


def test_what_has_gone_or_is_held_is_reported_and_the_rest_is_done(two: Served) -> None:
    gone, held, there = put(two, b"gone", b"held", b"there")
    with inorder.connect(two.store) as qm:
        qm.get("Q1", match=inorder.Match(uid=acting.uid_of(gone)))
        qm.get("Q1", match=inorder.Match(uid=acting.uid_of(held)), confirm_id=7)

        async def work(client: httpx.AsyncClient) -> None:
            given = {"action": "delete", "uid": [gone, held, there]}
            review = await send(client, "queue/Q1/act", **given)
            assert "Delete 1 message from Q1?" in review.text
            for answer in (review, await send(client, "queue/Q1/act", **given, step="do", typed="Q1")):
                assert answer.status_code == 200
                assert "it has gone" in answer.text
                assert "got by confirm 7" in answer.text

        two.run(work)
        qm.undo("Q1", 7)
    assert bodies(two) == [b"held"]
    assert acts(two) == [("launch-token", "delete", "Q1", "done", 1)]


def test_a_selector_chooses_those_that_are_there_and_can_be_had(two: Served) -> None:
    put(two, b"red", properties={"colour": "red"})
    put(two, b"blue", properties={"colour": "blue"})
    put(two, b"later", properties={"colour": "red"}, delay=1000)

    async def work(client: httpx.AsyncClient) -> None:
        review = await send(client, "queue/Q1/act", action="delete", selector="colour = 'red'")
        assert "Delete 1 message from Q1?" in review.text
        assert "1 more fit" in review.text
        found = re.search(r'name="uid" value="([^"]*)"', review.text)
        assert found
        put(two, b"red, put since", properties={"colour": "red"})
        await send(client, "queue/Q1/act", action="delete", uid=html.unescape(found[1]), step="do", typed="Q1")

    two.run(work)
    assert bodies(two) == [b"blue", b"red, put since"]


def test_all_messages_are_meant_only_where_a_selector_could_be(two: Served) -> None:
    put(two, b"1", b"2")

    async def work(client: httpx.AsyncClient) -> None:
        refused = await send(client, "queue/Q1/act", action="delete")
        assert refused.status_code == 400
        assert "no message is chosen: tick the boxes" in refused.text
        assert "Delete 2 messages" in (await send(client, "queue/Q1/act", action="delete", selector="")).text

    two.run(work)


def test_one_act_is_about_so_many_at_most_and_says_so(two: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acting, "CHOSEN_MAX", 3)
    uids = put(two, b"1", b"2", b"3", b"4")

    async def work(client: httpx.AsyncClient) -> None:
        review = await send(client, "queue/Q1/act", action="delete", selector="")
        assert "Delete 3 messages" in review.text
        assert "More messages fit" in review.text
        assert (await send(client, "queue/Q1/act", action="delete", uid=uids)).status_code == 400

    two.run(work)


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"action": "move", "target": ""}, 400, "the name of a queue"),
        ({"action": "move", "target": "Q1"}, 400, "another queue than Q1"),
        ({"action": "copy", "target": "NOWHERE"}, 404, "NOWHERE"),
        ({"action": "burn"}, 400, "action is out of"),
        ({"action": "delete", "uid": "x"}, 400, "the unique id of a message"),
        ({"action": "delete", "uid": f"{'9' * 30}-QM1"}, 400, "the unique id of a message"),
        ({"action": "delete", "selector": "colour ="}, 400, "selector"),
        ({"action": "export", "form": "floppy"}, 400, "jsonl"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_done(two: Served, fields: dict[str, str], status: int, said: str) -> None:
    uids = put(two, b"1")

    async def work(client: httpx.AsyncClient) -> None:
        chosen = {} if "uid" in fields or "selector" in fields else {"uid": uids}
        refused = await send(client, "queue/Q1/act", **chosen, **fields, step="do", typed="Q1")
        assert refused.status_code == status
        assert said in html.unescape(refused.text)

    two.run(work)
    assert bodies(two) == [b"1"]


def test_an_error_in_the_middle_backs_all_of_it_out_and_is_noted(two: Served) -> None:
    uids = put(two, b"1", b"2")
    with inorder.connect(two.store) as qm:
        qm.alter_queue("Q2", max_depth=1)

    async def work(client: httpx.AsyncClient) -> None:
        full = await send(client, "queue/Q1/act", action="move", uid=uids, target="Q2", step="do", typed="Q1")
        assert full.status_code == 409
        assert "2053" in full.text

    two.run(work)
    assert (bodies(two), bodies(two, "Q2")) == ([b"1", b"2"], [])
    assert acts(two) == [("launch-token", "move", "Q1", "failed", None)]


def test_a_message_that_is_moved_keeps_what_it_is(two: Served) -> None:
    with inorder.connect(two.store) as qm:
        with qm.unit_of_work(), qm.group("Q1") as group:
            group.put(b"1", properties={"a": 1}, priority=7, correlation_id=b"c")
            group.put(b"2")
        before = [(one.message_id, one.group_id, one.sequence_number, one.put_at) for one in qm.browse("Q1")]
        uids = [uid_text(one.uid) for one in qm.browse("Q1") if one.uid]

    async def work(client: httpx.AsyncClient) -> None:
        await send(client, "queue/Q1/act", action="move", uid=uids, target="Q2", step="do", typed="Q1")

    two.run(work)
    with inorder.connect(two.store) as qm:
        after = [(one.message_id, one.group_id, one.sequence_number, one.put_at) for one in qm.browse("Q2")]
        assert after == before
        assert [one.body for one in qm.get_group("Q2")] == [b"1", b"2"]


def test_on_a_queue_that_requires_its_order_its_own_rule_decides(two: Served) -> None:
    with inorder.connect(two.store) as qm:
        qm.create_queue("STRICT", read_order="required")
    _, uid = put(two, b"1", b"2", queue="STRICT")

    async def work(client: httpx.AsyncClient) -> None:
        done = await send(client, "queue/STRICT/act", action="delete", uid=uid, step="do", typed="STRICT")
        assert done.status_code == 303  # a relaxed get would have been refused

    two.run(work)
    assert bodies(two, "STRICT") == [b"1"]


# --- put


def test_a_message_is_put_as_the_form_says(served: Served) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        done = await send(
            client, "queue/Q1/put", kind="json", body='{"a":\r\n 1}', priority="7", persistent="yes", expiry="60",
            correlation_id="text:c", properties="colour=red\r\nsize:int=3", group="last", sequence_number="2",
            group_id="text:g", reply_to_queue="R",
        )  # fmt: skip
        assert (done.status_code, done.headers["location"]) == (303, "/console/queue/Q1")

    served.run(work)
    with inorder.connect(served.store) as qm:
        found = qm.get("Q1")
    assert (found.body, found.format, found.priority, found.persistent) == (b'{"a":\n 1}', "MQSTR", 7, True)
    assert (found.correlation_id[:1], found.group_id[:1], found.sequence_number) == (b"c", b"g", 2)
    assert dict(found.properties) == {"colour": "red", "size": 3}
    assert found.flags == inorder.Flags.IN_GROUP | inorder.Flags.LAST_IN_GROUP
    assert found.reply_to_queue == "R"
    assert found.expiry is not None
    assert found.expiry <= 60


def test_a_put_with_a_warning_says_so(served: Served) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        await send(client, "queue/Q1/put", kind="text", body="x", priority="11")
        assert "with the warning PRIORITY_EXCEEDS_MAXIMUM." in (await client.get("/console/queue/Q1")).text

    served.run(work)


def test_what_is_about_to_be_moved_is_shown_as_text_that_runs_one_way(two: Served) -> None:
    uids = put(two, "a\u202eb\x1b".encode())

    async def work(client: httpx.AsyncClient) -> None:
        review = await send(client, "queue/Q1/act", action="delete", uid=uids)
        assert "a·b·" in review.text
        assert "\u202e" not in review.text

    two.run(work)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"kind": "hex", "body": "0g"}, "hexadecimal digits"),
        ({"kind": "json", "body": "{"}, "JSON"),
        ({"kind": "runes"}, "text, json, hex"),
        ({"priority": "-1"}, "priority"),
        ({"priority": "high"}, "priority"),
        ({"expiry": "soon"}, "unlimited"),
        ({"delay": "unlimited"}, "seconds"),
        ({"persistent": "maybe"}, "yes or no"),
        ({"message_id": "xyz"}, "48 hexadecimal digits"),
        ({"properties": "colour"}, "NAME=VALUE"),
        ({"properties": "a=1\na=2"}, "there once"),
        ({"group_id": "text:g"}, "in a group"),
        ({"group": "first"}, "empty, in or last"),
        ({"reply_to_queue": "x" * 49}, "reply_to_queue"),
    ],
)
def test_a_put_that_cannot_be_keeps_the_form_and_says_why(served: Served, fields: dict[str, str], said: str) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        refused = await send(client, "queue/Q1/put", **({"kind": "text", "body": "kept & shown"} | fields))
        assert refused.status_code == 400
        assert said in html.unescape(refused.text)
        if "body" not in fields:
            assert "kept &amp; shown" in refused.text

    served.run(work)
    assert bodies(served) == []


# --- export


def test_an_export_is_what_a_browse_shows_and_is_taken_back(two: Served) -> None:
    put(two, b"1", properties={"colour": "red"}, priority=3)
    put(two, b"\xff\x00", b"x" * 200_000, priority=3)
    put(two, b"later", delay=1000)

    async def work(client: httpx.AsyncClient) -> None:
        file = await client.get("/console/queue/Q1/export?form=jsonl")
        assert file.headers["content-disposition"] == 'attachment; filename="Q1.jsonl"'
        found = [message_of(line, "x") for line in file.content.splitlines()]
        assert [one.body for one in found] == [b"1", b"\xff\x00", b"x" * 200_000]
        chosen = await client.get("/console/queue/Q1/export", params={"form": "jsonl", "selector": "colour = 'red'"})
        (record,) = map(json.loads, chosen.text.splitlines())
        assert (record["body"], record["properties"], record["priority"]) == ("1", {"colour": "red"}, 3)

    two.run(work)
    assert len(bodies(two)) == 3
    assert acts(two) == []


def test_an_export_of_chosen_ones_has_these(two: Served) -> None:
    first, _, third = put(two, b"1", b"2", b"3")

    async def work(client: httpx.AsyncClient) -> None:
        file = await send(client, "queue/Q1/act", action="export", uid=[first, third])
        assert [json.loads(line)["body"] for line in file.text.splitlines()] == ["1", "3"]

    two.run(work)


def test_an_export_goes_over_pages(two: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "PAGE", 2)
    put(two, *(b"%d" % n for n in range(5)))

    async def work(client: httpx.AsyncClient) -> None:
        file = await client.get("/console/queue/Q1/export?form=jsonl")
        assert [json.loads(line)["body"] for line in file.text.splitlines()] == list("01234")

    two.run(work)


def test_an_export_as_parquet_has_the_columns_of_an_archive(two: Served) -> None:
    pytest.importorskip("pyarrow")
    import io

    import pyarrow.parquet as pq

    put(two, b"1", properties={"n": 3, "b": b"x", "t": True, "none": None})
    put(two, b"x" * 100_000)

    async def work(client: httpx.AsyncClient) -> None:
        file = await client.get("/console/queue/Q1/export?form=parquet")
        rows = pq.read_table(io.BytesIO(file.content)).to_pylist()
        assert [row["body"] for row in rows] == [b"1", b"x" * 100_000]
        properties = dict(rows[0]["properties"])
        assert properties["n"]["long"] == 3
        assert properties["b"]["binary"] == b"x"
        assert properties["t"]["boolean"] is True
        assert properties["none"] is None
        assert rows[0]["queue"] == "Q1"
        empty = await client.get("/console/queue/Q2/export?form=parquet")
        assert pq.read_table(io.BytesIO(empty.content)).num_rows == 0

    two.run(work)


def test_parquet_without_its_library_is_refused_with_what_to_install(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "find_spec", lambda name: None)

    async def work(client: httpx.AsyncClient) -> None:
        refused = await client.get("/console/queue/Q1/export?form=parquet")
        assert refused.status_code == 501
        assert "inorder[arrow]" in refused.text
        assert "not installed" in (await client.get("/console/queue/Q1/export")).text

    served.run(work)


def test_an_export_as_dmpmqmsg_is_read_back(two: Served) -> None:
    import io

    from inorder.formats import dmpmqmsg

    put(two, b"1", b"2")

    async def work(client: httpx.AsyncClient) -> None:
        file = await client.get("/console/queue/Q1/export?form=dmpmqmsg")
        assert [one.body for one in dmpmqmsg.parse(io.BytesIO(file.content))] == [b"1", b"2"]
        put(two, b"3", properties={"a": 1})
        refused = await client.get("/console/queue/Q1/export?form=dmpmqmsg")
        assert refused.status_code == 400
        assert "choose 'dmpmqmsg, without properties'" in html.unescape(refused.text)
        bare = await client.get("/console/queue/Q1/export?form=dmpmqmsg-bare")
        assert len(list(dmpmqmsg.parse(io.BytesIO(bare.content)))) == 3

    two.run(work)


def test_an_export_that_fails_on_its_way_never_looks_whole(two: Served, start: Start) -> None:
    put(two, *[b"1"] * 2 * exporting.PAGE)
    put(two, b"2", properties={"a": 1})  # for which dmpmqmsg has no place
    with start().client() as client, pytest.raises(httpx.RemoteProtocolError):
        client.get("/console/queue/Q1/export?form=dmpmqmsg")


@pytest.mark.parametrize("query", ["form=floppy", "form=jsonl&selector=colour%20%3D", "wrong=1"])
def test_an_export_that_cannot_be_is_a_page(served: Served, query: str) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        refused = await client.get(f"/console/queue/Q1/export?{query}")
        assert refused.status_code == 400
        assert "<html" in refused.text

    served.run(work)


def test_an_export_of_no_queue_is_a_page(served: Served) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        assert (await client.get("/console/queue/NOWHERE/export?form=jsonl")).status_code == 404

    served.run(work)


# --- import


async def upload(client: httpx.AsyncClient, data: bytes, **fields: str) -> httpx.Response:
    return await client.post(
        "/console/queue/Q2/import", data={"csrf": await csrf_of(client), **fields}, files={"file": ("a.jsonl", data)}
    )


@pytest.mark.parametrize("keep", ["", "yes"])
def test_an_export_is_imported_all_of_it(two: Served, keep: str) -> None:
    put(two, b"1", b"\xff", properties={"a": 1}, correlation_id=b"c", context="set_all", put_at=1e9)

    async def work(client: httpx.AsyncClient) -> None:
        file = await client.get("/console/queue/Q1/export?form=jsonl")
        done = await upload(client, file.content.replace(b"\n", b"\r\n"), keep=keep)
        assert (done.status_code, done.headers["location"]) == (303, "/console/queue/Q2")

    two.run(work)
    with inorder.connect(two.store) as qm:
        for one, other in zip(qm.browse("Q1"), qm.browse("Q2"), strict=True):
            assert (one.body, one.message_id, one.correlation_id) == (
                other.body,
                other.message_id,
                other.correlation_id,
            )
            assert one.properties == other.properties
            assert (other.put_at == 1e9) == (keep == "yes")
    assert acts(two) == [("launch-token", "import", "Q2", "done", 2)]


def test_lines_are_put_as_they_are_read(served: Served) -> None:
    """So that of a long file no more than a line is in memory."""
    pending: list[int] = []

    def lines(qm: inorder.QueueManager) -> Iterator[bytes]:
        for _ in range(3):
            pending.append(sum(one.puts for one in qm.units()))
            yield b'{"body": "1"}\n'

    with inorder.connect(served.store) as qm:
        assert importing.put_lines(qm, "Q1", lines(qm), None) == 3
        with pytest.raises(ArgumentError, match="JSON Lines"):
            importing.put_lines(qm, "Q1", [b"\n", b" "], None)
    assert pending == [0, 1, 2]
    assert bodies(served) == [b"1"] * 3


def test_a_form_that_is_too_long_is_refused_and_leaves_nothing(two: Served) -> None:
    line = b'{"body": "' + b"x" * 3_000_000 + b'"}\n'

    async def work(client: httpx.AsyncClient) -> None:
        assert (await upload(client, line * 2)).status_code == 413
        assert (await upload(client, line)).status_code == 303, "what the refused one took is free again"
        long = {"name": "ann", "password": "x" * forms.SMALL}
        assert (await client.post("/console/log-in", data=long)).status_code == 413

    limits = replace(two.settings.limits, body=4_000_000, bodies=4_000_000)
    two.run(work, limits=limits)
    assert [len(one) for one in bodies(two, "Q2")] == [3_000_000]


def test_what_the_console_puts_has_the_name_of_its_user(two: Served) -> None:
    line = b'{"body": "2", "user_identifier": "bob", "application_identity_data": "bob", "accounting_token": "07"}'

    async def work(client: httpx.AsyncClient) -> None:
        assert (await send(client, "queue/Q2/put", kind="text", body="1")).status_code == 303
        assert (await upload(client, line)).status_code == 303

    async def keeping(client: httpx.AsyncClient) -> None:
        assert (await upload(client, line.replace(b"2", b"3"), keep="yes")).status_code == 303

    two.run(work, somebody("annabella-maria", "put", "browse", queue="Q2"))
    two.run(work)
    two.run(keeping)
    with inorder.connect(two.store) as qm:
        found = [(one.body, one.user_identifier, one.application_identity_data) for one in qm.browse("Q2")]
        assert {one.accounting_token for one in qm.browse("Q2") if one.body != b"3"} == {bytes(32)}
    names = ["annabella-ma", "launch-token"]
    expected = [(body, name, "") for name in names for body in (b"1", b"2")]
    assert found == [*expected, (b"3", "bob", "bob")]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "a message a line"),
        (b'{"body": "1"}\n\n{"body": 2}\n', "line 3: body must be a text"),
        (b'{"body": "1"}\nnot JSON', "line 2: not JSON"),
        (b'{"body": "1", "colour": "red"}', "there is no key"),
    ],
)
def test_a_file_with_a_wrong_line_puts_nothing(two: Served, data: bytes, said: str) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        refused = await upload(client, data)
        assert refused.status_code in (400, 422)
        assert said in html.unescape(refused.text)

    two.run(work)
    assert bodies(two, "Q2") == []


# --- who may


def test_who_may_only_look_gets_no_controls_and_no_act(two: Served) -> None:
    uids = put(two, b"1")

    async def work(client: httpx.AsyncClient) -> None:
        page = (await client.get("/console/queue/Q1")).text
        for word in ("Move", "Copy", "Delete", ">Put<"):
            assert word not in page
        assert (await client.get("/console/queue/Q1/put")).status_code == 403
        for action in ("move", "copy", "delete"):
            refused = await send(client, "queue/Q1/act", action=action, uid=uids, target="Q2", step="do", typed="Q1")
            assert refused.status_code == 403, action
        assert (await send(client, "queue/Q1/put", kind="text", body="x")).status_code == 403
        assert (await upload(client, b'{"body": "1"}')).status_code == 403
        assert (await client.get("/console/queue/Q1/export?form=jsonl")).status_code == 200

    two.run(work, with_role("reader"))
    assert bodies(two) == [b"1"]
    assert acts(two) == []


@pytest.mark.parametrize("token", [None, "", "0" * 64])
def test_a_form_without_its_token_does_nothing(two: Served, token: str | None) -> None:
    uids = put(two, b"1")
    forged = {} if token is None else {"csrf": token}

    async def work(client: httpx.AsyncClient) -> None:
        given = {"action": "delete", "uid": uids, "step": "do", "typed": "Q1"}
        assert (await client.post("/console/queue/Q1/act", data=given | forged)).status_code == 403
        assert (await client.post("/console/queue/Q1/put", data={"body": "x"} | forged)).status_code == 403

    two.run(work)
    assert bodies(two) == [b"1"]


# --- names and bodies are only text


def test_hostile_bodies_and_names_are_text(two: Served) -> None:
    uids = put(two, HOSTILE.encode(), properties={"a": HOSTILE})

    async def work(client: httpx.AsyncClient) -> None:
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

    two.run(work)
