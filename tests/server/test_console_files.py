"""Exports and imports of the console: messages as a browse returns them, imported completely or not at all."""

from __future__ import annotations

import html
import io
import json
from collections.abc import Iterator

import httpx
import pytest
from tests.helpers.support import bodies_at
from tests.server.conftest import Served, Start, serving, somebody
from tests.server.test_console_acting import acts, put, send, two, upload
from tests.tiers import gate

import inorder
from inorder import QueueManager
from inorder.errors import ArgumentError
from inorder.formats import dmpmqmsg
from inorder.formats.json_lines import message_of
from inorder.server import Limits
from inorder.server.console import files, forms

__all__ = ["two"]


# --- export


async def test_an_export_has_the_messages_of_a_browse_and_can_be_read_back(
    client: httpx.AsyncClient, two: Served
) -> None:
    put(two, b"1", properties={"colour": "red"}, priority=3)
    put(two, b"\xff\x00", b"x" * 200_000, priority=3)
    put(two, b"later", delay=1000)
    file = await client.get("/console/queue/Q1/export?form=jsonl")
    assert file.headers["content-disposition"] == 'attachment; filename="Q1.jsonl"'
    found = [message_of(line, "x") for line in file.content.splitlines()]
    assert [one.body for one in found] == [b"1", b"\xff\x00", b"x" * 200_000]
    chosen = await client.get("/console/queue/Q1/export", params={"form": "jsonl", "selector": "colour = 'red'"})
    (record,) = map(json.loads, chosen.text.splitlines())
    assert (record["body"], record["properties"], record["priority"]) == ("1", {"colour": "red"}, 3)
    assert len(bodies_at(two.store, "Q1")) == 3
    assert acts(two) == []


async def test_an_export_of_chosen_messages_has_only_these(client: httpx.AsyncClient, two: Served) -> None:
    first, _, third = put(two, b"1", b"2", b"3")
    file = await send(client, "queue/Q1/act", action="export", uid=[first, third])
    assert [json.loads(line)["body"] for line in file.text.splitlines()] == ["1", "3"]


async def test_an_export_continues_over_several_pages(
    client: httpx.AsyncClient, two: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "PAGE", 2)
    put(two, *(b"%d" % n for n in range(5)))
    file = await client.get("/console/queue/Q1/export?form=jsonl")
    assert [json.loads(line)["body"] for line in file.text.splitlines()] == list("01234")


async def test_an_export_as_parquet_has_the_columns_of_an_archive(client: httpx.AsyncClient, two: Served) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    put(two, b"1", properties={"n": 3, "b": b"x", "t": True, "none": None})
    put(two, b"x" * 100_000)
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


async def test_parquet_without_its_library_is_refused_with_what_to_install(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    refused = await client.get("/console/queue/Q1/export?form=parquet")
    assert refused.status_code == 501
    assert "inorder[arrow]" in refused.text
    assert "not installed" in (await client.get("/console/queue/Q1/export")).text


async def test_an_export_as_dmpmqmsg_is_read_back(client: httpx.AsyncClient, two: Served) -> None:
    put(two, b"1", b"2")
    file = await client.get("/console/queue/Q1/export?form=dmpmqmsg")
    assert [one.body for one in dmpmqmsg.parse(io.BytesIO(file.content))] == [b"1", b"2"]
    put(two, b"3", properties={"a": 1})
    refused = await client.get("/console/queue/Q1/export?form=dmpmqmsg")
    assert refused.status_code == 400
    assert "choose 'dmpmqmsg, without properties'" in html.unescape(refused.text)
    bare = await client.get("/console/queue/Q1/export?form=dmpmqmsg-bare")
    assert len(list(dmpmqmsg.parse(io.BytesIO(bare.content)))) == 3


@gate
def test_an_export_that_fails_midway_does_not_look_complete(two: Served, start: Start) -> None:
    put(two, *[b"1"] * 2 * files.PAGE)
    put(two, b"2", properties={"a": 1})  # dmpmqmsg cannot hold properties
    with start().client() as client, pytest.raises(httpx.RemoteProtocolError):
        client.get("/console/queue/Q1/export?form=dmpmqmsg")


@pytest.mark.parametrize(
    "place", ["Q1/export?form=floppy", "Q1/export?form=jsonl&selector=colour%20%3D", "Q1/export?wrong=1", "NONE/export"]
)
async def test_a_refused_export_is_answered_with_a_page(client: httpx.AsyncClient, place: str) -> None:
    refused = await client.get(f"/console/queue/{place}")
    assert refused.status_code == (404 if "NONE" in place else 400)
    assert "<html" in refused.text


# --- import


@pytest.mark.parametrize("keep", ["", "yes"])
async def test_an_exported_file_is_imported_completely(
    client: httpx.AsyncClient, qm: QueueManager, two: Served, keep: str
) -> None:
    put(two, b"1", b"\xff", properties={"a": 1}, correlation_id=b"c", context="set_all", put_at=1e9)
    file = await client.get("/console/queue/Q1/export?form=jsonl")
    done = await upload(client, file.content.replace(b"\n", b"\r\n"), keep=keep)
    assert (done.status_code, done.headers["location"]) == (303, "/console/queue/Q2")
    for one, other in zip(qm.browse("Q1"), qm.browse("Q2"), strict=True):
        found = (one.body, one.message_id, one.correlation_id)
        assert found == (other.body, other.message_id, other.correlation_id)
        assert one.properties == other.properties
        assert (other.put_at == 1e9) == (keep == "yes")
    assert acts(two) == [("launch-token", "import", "Q2", "done", 2)]


def test_lines_are_put_as_they_are_read(served: Served) -> None:
    """A long file needs no more memory than one line."""
    pending: list[int] = []

    def lines(qm: inorder.QueueManager) -> Iterator[bytes]:
        for _ in range(3):
            pending.append(sum(one.puts for one in qm.inspect.units()))
            yield b'{"body": "1"}\n'

    with inorder.connect(served.store) as qm:
        assert files.put_lines(qm, "Q1", lines(qm), None) == 3
        with pytest.raises(ArgumentError, match="JSON Lines"):
            files.put_lines(qm, "Q1", [b"\n", b" "], None)
    assert pending == [0, 1, 2]
    assert bodies_at(served.store, "Q1") == [b"1"] * 3


@serving(limits=Limits(body=4_000_000, bodies=4_000_000))
async def test_a_form_that_is_too_long_is_refused_and_leaves_nothing(client: httpx.AsyncClient, two: Served) -> None:
    line = b'{"body": "' + b"x" * 3_000_000 + b'"}\n'
    assert (await upload(client, line * 2)).status_code == 413
    assert (await upload(client, line)).status_code == 303, "what the refused one took is free again"
    long = {"name": "ann", "password": "x" * forms.SMALL}
    assert (await client.post("/console/log-in", data=long)).status_code == 413
    assert [len(one) for one in bodies_at(two.store, "Q2")] == [3_000_000]


def test_messages_put_in_the_console_have_the_name_of_its_user(two: Served, qm: QueueManager) -> None:
    line = b'{"body": "2", "user_identifier": "bob", "application_identity_data": "bob", "accounting_token": "07"}'

    async def work(client: httpx.AsyncClient) -> None:
        assert (await send(client, "queue/Q2/put", kind="text", body="1")).status_code == 303
        assert (await upload(client, line)).status_code == 303

    async def keeping(client: httpx.AsyncClient) -> None:
        assert (await upload(client, line.replace(b"2", b"3"), keep="yes")).status_code == 303

    two.run(work, somebody("annabella-maria", "put", "browse", queue="Q2"))
    two.run(work)
    two.run(keeping)
    found = [(one.body, one.user_identifier, one.application_identity_data) for one in qm.browse("Q2")]
    assert {one.accounting_token for one in qm.browse("Q2") if one.body != b"3"} == {bytes(32)}
    names = ["annabella-ma", "launch-token"]
    expected = [(body, name, "") for name in names for body in (b"1", b"2")]
    assert found == [*expected, (b"3", "bob", "bob")]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "one message per line"),
        (b'{"body": "1"}\n\n{"body": 2}\n', "line 3: body must be a text"),
        (b"[]", "line 1: not a JSON object. Nothing was put."),
        (b"PAR1\xb5\x00\x00PAR1", "file must be a JSON Lines file with one message per line, not Parquet"),
    ],
)
async def test_a_file_with_a_wrong_line_puts_nothing(
    client: httpx.AsyncClient, two: Served, data: bytes, said: str
) -> None:
    refused = await upload(client, data)
    assert refused.status_code == (400 if "one message per line" in said else 422), "no such file, or a wrong line"
    assert said in html.unescape(refused.text)
    assert bodies_at(two.store, "Q2") == []
