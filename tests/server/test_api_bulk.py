"""Bulk transfer over HTTP: a stream is put once for each key; a repeated claim answers with the same messages."""

from __future__ import annotations

import asyncio
import datetime
import math
import struct
import threading
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from tests.helpers.support import bodies, bodies_at, put_group
from tests.server.conftest import Everybody, Served, Starting, client_of, serving, somebody

import inorder
from inorder import Message, QueueManager
from inorder.rules import authorities
from inorder.server import Limits
from inorder.server.api import bulk
from inorder.server.identity import Identity

pa = pytest.importorskip("pyarrow", reason="needs the extra inorder[arrow]")
from tests.server.arrows import ARROW, batch_of, bodies_in, keyed, rows_in, stream_of  # noqa: E402 - needs pyarrow

Q = "/inorder/v1/queues/Q1"
R = f"{Q}/readers/copy"
SMALL = pa.record_batch({"body": pa.array([b"1", b"2", b"3"], pa.binary())})


def number_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"][0]["messageId"]


async def began(client: httpx.AsyncClient) -> dict[str, int]:
    answer = await client.post(R)
    assert answer.status_code == 200, answer.text
    record: dict[str, int] = answer.json()
    return record


async def claimed(client: httpx.AsyncClient, epoch: int, after: int, **more: Any) -> httpx.Response:
    return await client.post(f"{R}/arrow", params={"epoch": epoch, "after": after, **more})


# --- puts


async def test_a_stream_is_put_once_and_its_repeated_key_gets_the_same_answer(
    client: httpx.AsyncClient, served: Served
) -> None:
    first = await client.post(f"{Q}/arrow", content=stream_of(SMALL, SMALL), headers=keyed("monday"))
    again = await client.post(f"{Q}/arrow", content=stream_of(SMALL), headers=keyed("monday"))
    cut_off = await client.post(f"{Q}/arrow", content=b"nothing", headers=keyed("monday"))
    answers = [(one.status_code, one.json()) for one in (first, again, cut_off)]
    assert answers == [(200, {"messages": 6})] * 3
    other = await client.post(f"{Q}/arrow", content=stream_of(SMALL), headers=keyed("tuesday"))
    assert other.json() == {"messages": 3}
    writer = await client.post(f"{Q}/arrow?writer=b", content=stream_of(SMALL), headers=keyed("monday"))
    assert writer.json() == {"messages": 3}
    assert bodies_at(served.store, "Q1") == [b"1", b"2", b"3"] * 4


async def test_a_stream_for_a_remote_queue_is_put_once(client: httpx.AsyncClient, qm: QueueManager) -> None:
    qm.create_queue("PARIS", usage="transmission")
    qm.create_queue("FAR", type="remote", remote_queue="THERE", remote_manager="PARIS")
    far = "/inorder/v1/queues/FAR/arrow"
    for _ in range(2):
        answer = await client.post(far, content=stream_of(SMALL), headers=keyed("monday"))
        assert (answer.status_code, answer.json()) == (200, {"messages": 3})
    assert bodies(qm, "PARIS") == [b"1", b"2", b"3"]


async def test_the_key_of_an_empty_stream_is_recorded(client: httpx.AsyncClient, served: Served) -> None:
    empty = stream_of(schema=SMALL.schema)
    answers = [await client.post(f"{Q}/arrow", content=one, headers=keyed("none")) for one in (empty, stream_of(SMALL))]
    assert [one.json() for one in answers] == [{"messages": 0}] * 2
    assert bodies_at(served.store, "Q1") == []


async def test_columns_are_the_fields_of_messages(client: httpx.AsyncClient, qm: QueueManager) -> None:
    now = datetime.datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=datetime.timezone.utc)
    batch = batch_of(
        [b"a", b"b"],
        priority=pa.array([3, None], pa.int8()),
        correlation_id=pa.array([b"c", None], pa.large_binary()),
        persistent=pa.array([True, None]),
        format=pa.array(["MQSTR", None], pa.large_string()),
        put_at=pa.array([None, now], pa.timestamp("ms", tz="Europe/Berlin")),
        expiry=pa.array([60, None], pa.int64()),
        properties=pa.array([[("colour", "red")], None], pa.map_(pa.string(), pa.string())),
        number=pa.array([17, 18], pa.int64()),  # where the messages were read: ignored
    )
    answer = await client.post(f"{Q}/arrow", content=stream_of(batch), headers=keyed("k"))
    assert answer.status_code == 200, answer.text
    first, second = qm.browse("Q1")
    assert (first.body, first.priority, first.persistent, first.format) == (b"a", 3, True, "MQSTR")
    assert (first.correlation_id.rstrip(b"\0"), dict(first.properties)) == (b"c", {"colour": "red"})
    assert second.put_at == now.timestamp()
    assert first.expiry < 60
    assert (second.priority, second.persistent, second.expiry, dict(second.properties)) == (0, True, math.inf, {})


FORGED = {
    "user_identifier": pa.array(["bob", None]),
    "accounting_token": pa.array([b"7" * 32, None]),
    "application_identity_data": pa.array(["bob", None]),
    "put_application_type": pa.array([11, None]),
    "put_application_name": pa.array(["bob's", None]),
    "put_at": pa.array([0, None], pa.timestamp("us", tz="UTC")),
    "application_origin_data": pa.array(["bob", None]),
}


@pytest.mark.parametrize("role", ["application", "operator", "admin"])
@pytest.mark.parametrize("forged", [FORGED, {}], ids=["said", "not said"])
async def test_rows_of_a_stream_have_the_name_of_the_user(
    served: Served, role: str, forged: dict[str, Any], qm: QueueManager
) -> None:
    """The rows' own context is ignored unless the user may control the queue manager."""
    keeps = authorities.may([role], {}, "control", authorities.MANAGER)
    assert keeps == (role != "application"), "the roles of this test are of both kinds"
    who = Identity(name="annabella-maria", roles=frozenset({role}), queues={"Q1": ("put",)})
    async with client_of(served.app(Everybody(who)), Starting) as client:
        put = await client.post(f"{Q}/arrow", content=stream_of(batch_of([b"a", b"b"], **forged)), headers=keyed("k"))
        assert put.status_code == 200, put.text
    first, second = ({name: getattr(one, name) for name in FORGED} for one in qm.browse("Q1"))
    assert second["put_at"] > 1_500_000_000
    usual = {
        "user_identifier": "annabella-ma", "accounting_token": bytes(32), "application_identity_data": "",
        "put_application_type": second["put_application_type"], "put_application_name": "inorder serve",
        "put_at": second["put_at"], "application_origin_data": "",
    }  # fmt: skip
    assert second == usual
    said = {name: column[0].as_py() for name, column in FORGED.items()} | {"put_at": 0.0}
    assert first == (said if keeps and forged else usual)


REFUSED: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("no body", {"text": pa.array(["a"])}, "column must be one of: accounting_token"),
    ("an unknown column", {"body": pa.array([b"a"]), "prioritty": pa.array([1])}, "did you mean priority"),
    ("another type", {"body": pa.array([b"a"]), "priority": pa.array(["1"])}, "priority must be of type an integer"),
    ("a time without a zone", {"body": ["a"], "put_at": pa.array([0], pa.timestamp("us"))}, "with a time zone"),
    ("a null body", {"body": pa.array([b"a", None])}, "row 2: body must not be null"),
    ("a bad row", {"body": ["a", "b"], "priority": pa.array([1, -1])}, "priority must be an integer"),
    ("a property of two types", {"body": ["a"], "properties": pa.array(
        [[("p", {"string": "a", "long": 1})]],
        pa.map_(pa.string(), pa.struct([("string", pa.string()), ("long", pa.int64())])))}, "several values"),
)  # fmt: skip


@pytest.mark.parametrize(("columns", "told"), [one[1:] for one in REFUSED], ids=[one[0] for one in REFUSED])
async def test_columns_that_cannot_be_messages_are_refused_and_nothing_is_put(
    client: httpx.AsyncClient, served: Served, columns: Any, told: str
) -> None:
    content = stream_of(SMALL.select([])) if not columns else stream_of(pa.record_batch(columns))
    answer = await client.post(f"{Q}/arrow", content=content, headers=keyed("k"))
    assert answer.status_code == 400, answer.text
    assert told in answer.json()["error"][0]["message"]
    assert (await client.post(f"{Q}/arrow", content=stream_of(SMALL), headers=keyed("k"))).status_code == 200
    assert bodies_at(served.store, "Q1") == [b"1", b"2", b"3"]


async def test_an_error_names_a_row_by_its_number_in_the_stream(client: httpx.AsyncClient, served: Served) -> None:
    batches = [batch_of([b"a"] * 10, priority=pa.array([1] * 10)) for _ in range(3)]
    batches.append(batch_of([b"a", b"b"], priority=pa.array([1, -5])))
    answer = await client.post(f"{Q}/arrow", content=stream_of(*batches), headers=keyed("k"))
    said = answer.json()["error"][0]["message"]
    assert "row 32: priority must be an integer from 0 to 999,999,999, not -5 [" in said
    assert bodies_at(served.store, "Q1") == []


WHOLE = stream_of(SMALL, SMALL)
SCHEMA_LENGTH = 8 + struct.unpack_from("<i", WHOLE, 4)[0]
BROKEN = (
    ("empty", b""),
    ("a file", b"ARROW1\0\0" + WHOLE),
    ("without the end", WHOLE[:-8]),
    ("more behind the end", WHOLE + b"\0"),
    ("no schema", WHOLE[SCHEMA_LENGTH:]),
    ("of an old version", stream_of(SMALL, use_legacy_format=True)),
)


@pytest.mark.parametrize("content", [one[1] for one in BROKEN], ids=[one[0] for one in BROKEN])
async def test_a_broken_stream_is_refused_and_leaves_nothing_staged(
    content: bytes, qm: QueueManager, client: httpx.AsyncClient
) -> None:
    answer = await client.post(f"{Q}/arrow", content=content, headers=keyed("k"))
    assert number_of(answer) == (400, "INWB0004E"), answer.text
    assert (qm.depth("Q1"), qm.inspect.units()) == (0, []), "what was staged is there still"


async def test_a_put_is_answered_even_if_the_queue_is_immediately_recreated(
    client: httpx.AsyncClient, qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = bulk.Upload.run

    async def run_before_another_program(upload: bulk.Upload) -> object:
        found = await run(upload)
        qm.delete_queue("Q1", purge=True)
        qm.create_queue("Q1")
        return found

    monkeypatch.setattr(bulk.Upload, "run", run_before_another_program)
    answer = await client.post(f"{Q}/arrow", content=stream_of(SMALL), headers=keyed("k"))
    assert (answer.status_code, answer.json()) == (200, {"messages": 3})


@pytest.mark.parametrize(
    ("headers", "number"),
    [
        (ARROW, (400, "MQWB0302E")),
        (ARROW | {"Idempotency-Key": ""}, (400, "MQWB0302E")),
        (ARROW | {"Idempotency-Key": "k" * 201}, (400, "MQWB0302E")),
        ({"Idempotency-Key": "k"}, (415, "MQWB0306E")),
        ({"Idempotency-Key": "k", "Content-Type": "application/json"}, (415, "MQWB0306E")),
    ],
)
async def test_a_put_needs_an_idempotency_key_and_the_content_type_of_arrow(
    client: httpx.AsyncClient, headers: dict[str, str], number: Any
) -> None:
    assert number_of(await client.post(f"{Q}/arrow", content=WHOLE, headers=headers)) == number


async def test_a_put_to_a_missing_or_full_queue_is_refused(
    client: httpx.AsyncClient, qm: QueueManager, served: Served
) -> None:
    qm.alter_queue("Q1", max_depth=5)
    none = await client.post("/inorder/v1/queues/NONE/arrow", content=WHOLE, headers=keyed("k"))
    assert none.status_code == 404
    full = await client.post(f"{Q}/arrow", content=WHOLE, headers=keyed("k"))
    assert (full.status_code, full.json()["error"][0]["reasonCode"]) == (409, 2053)
    assert (await client.post(f"{Q}/arrow", content=stream_of(SMALL), headers=keyed("k"))).status_code == 200
    assert len(bodies_at(served.store, "Q1")) == 3


@pytest.mark.parametrize(
    ("limits", "content", "expected"),
    [
        (Limits(batch=4_096), stream_of(batch_of([bytes(5_000)])), (413, "INWB0005E")),
        (Limits(transfers=0), WHOLE, (503, "INWB0008E")),
        (Limits(body_seconds=0.05), None, (408, "INWB0007E")),
    ],
)
async def test_the_size_of_batches_the_number_of_streams_and_their_pauses_are_limited(
    served: Served, limits: Limits, content: bytes | None, expected: tuple[int, str]
) -> None:
    async def never() -> AsyncIterator[bytes]:
        yield WHOLE[:SCHEMA_LENGTH]
        await asyncio.Event().wait()

    async with client_of(served.app(limits=limits), Starting) as client:
        answer = await client.post(f"{Q}/arrow", content=content or never(), headers=keyed("k"))
        assert number_of(answer) == expected
    assert bodies_at(served.store, "Q1") == []


async def test_without_pyarrow_only_the_arrow_requests_are_answered_with_501(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "find_spec", lambda name: None)
    put = await client.post(f"{Q}/arrow", content=WHOLE, headers=keyed("k"))
    get = await claimed(client, 1, 0)
    assert [number_of(one) for one in (put, get)] == [(501, "INWB0020E")] * 2
    assert (await client.get(Q)).status_code == 200


MEBIBYTE = 2**20


def pieces_of(count: int) -> Iterator[bytes]:
    """A stream of `count` record batches of 4 MiB, generated while it is sent, in pieces as a network delivers them."""
    batch = stream_of(batch_of([bytes(1024)] * 4096))
    first = 8 + struct.unpack_from("<i", batch, 4)[0]
    yield batch[:first]
    for _ in range(count):
        for at in range(first, len(batch) - 8, 65_536):
            yield batch[at : min(at + 65_536, len(batch) - 8)]
    yield batch[-8:]


@pytest.mark.nightly
async def test_the_memory_of_a_stream_is_bounded_whatever_its_length(client: httpx.AsyncClient) -> None:
    """Sends 96 MiB."""

    async def sent() -> AsyncIterator[bytes]:
        for piece in pieces_of(24):
            yield piece

    tracemalloc.start()
    before, arrow = tracemalloc.get_traced_memory()[0], pa.total_allocated_bytes()
    answer = await client.post(f"{Q}/arrow", content=sent(), headers=keyed("k"))
    most = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert answer.json() == {"messages": 98_304}
    assert most < 48 * MEBIBYTE, f"{most / MEBIBYTE:,.0f} MiB at once"
    assert pa.total_allocated_bytes() - arrow < 16 * MEBIBYTE


# --- claims


@serving(somebody("shop", "get"))
async def test_a_claim_is_listed_under_the_name_of_its_user(qm: QueueManager, client: httpx.AsyncClient) -> None:
    qm.put("Q1", b"1")

    await began(client)
    assert bodies_in(await claimed(client, 1, 0)) == [b"1"]
    assert [(one.kind, one.program.user) for one in qm.inspect.units()] == [("claim", "shop")]
    assert [one.program.user for one in qm.bulk.claims()] == ["shop"]


async def test_a_repeated_claim_returns_the_same_messages_until_the_next_one_confirms_them(
    client: httpx.AsyncClient, qm: QueueManager, served: Served
) -> None:
    qm.put_many("Q1", [b"%d" % number for number in range(5)])
    start = await began(client)
    assert start == {"epoch": 1, "settled": 0}
    first = [await claimed(client, 1, 0, messages=2) for _ in range(3)]
    assert [bodies_in(one) for one in first] == [[b"0", b"1"]] * 3
    assert {(one.headers["inorder-claim"], one.headers["inorder-messages"]) for one in first} == {("1", "2")}
    second = [await claimed(client, 1, 1, messages=2) for _ in range(2)]
    assert [bodies_in(one) for one in second] == [[b"2", b"3"]] * 2
    assert [row["delivery_number"] for row in rows_in(second[0])] == [3, 4]
    assert number_of(await claimed(client, 1, 0)) == (409, "INWB0014E"), "claim 1 is over"
    confirmed = [await client.post(f"{R}/settle", params={"epoch": 1, "upto": 2}) for _ in range(2)]
    assert [one.json() for one in confirmed] == [{"messages": 2}, {"messages": 0}]
    assert bodies_in(await claimed(client, 1, 2)) == [b"4"]
    assert (await claimed(client, 1, 3)).status_code == 204
    assert (await claimed(client, 1, 3)).status_code == 204
    assert bodies_at(served.store, "Q1") == []


async def test_whole_groups_are_claimed_as_a_whole(client: httpx.AsyncClient, qm: QueueManager, served: Served) -> None:
    put_group(qm, b"a1", b"a2", b"a3", queue="Q1")
    qm.put("Q1", b"b", group_id=b"g", sequence_number=1, flags=inorder.Flags.IN_GROUP)
    qm.put("Q1", b"c")
    epoch = (await began(client))["epoch"]
    first = await claimed(client, epoch, 0, messages=2, whole_groups="true")
    assert bodies_in(first) == [b"a1", b"a2", b"a3"]
    assert bodies_in(await claimed(client, epoch, 1, whole_groups="true")) == [b"c"]
    assert (await claimed(client, epoch, 2, whole_groups="true")).status_code == 204
    assert bodies_at(served.store, "Q1") == [b"b"]


async def test_a_claim_waits_for_messages_without_a_thread(client: httpx.AsyncClient, qm: QueueManager) -> None:
    epoch = (await began(client))["epoch"]
    waiting = asyncio.ensure_future(claimed(client, epoch, 0, wait=600))
    while not any(one.name == "inorder aio watch Q1" for one in threading.enumerate()):
        await asyncio.sleep(0.001)
    qm.put("Q1", b"1")
    assert bodies_in(await waiting) == [b"1"]
    assert (await claimed(client, epoch, 1, wait=0.01)).status_code == 204


async def test_a_stream_that_was_read_can_be_put(client: httpx.AsyncClient, qm: QueueManager) -> None:
    """The stream of a claim is put to another queue unchanged."""
    message = Message(body=b"x", priority=4, properties={"n": 2**40, "b": b"\0"}, correlation_id=b"c")
    qm.create_queue("Q2")
    qm.put("Q1", message)
    read = await claimed(client, (await began(client))["epoch"], 0)
    answer = await client.post("/inorder/v1/queues/Q2/arrow", content=read.content, headers=keyed("copy-1"))
    assert answer.json() == {"messages": 1}, answer.text
    (copy,) = qm.browse("Q2")
    assert (copy.body, copy.priority, dict(copy.properties)) == (b"x", 4, {"n": 2**40, "b": b"\0"})


async def test_bad_requests_of_readers_are_refused(client: httpx.AsyncClient) -> None:
    await began(client)
    for answer, number in (
        (await client.post(f"{R}/arrow", params={"epoch": 1}), (400, "INWB0003E")),
        (await client.post(f"{R}/arrow", params={"after": 1}), (400, "INWB0003E")),
        (await claimed(client, 1, 0, messages=0), (400, "INWB0003E")),
        (await claimed(client, 1, -1), (400, "INWB0003E")),
        (await claimed(client, 1, 7), (409, "INWB0014E")),
        (await client.post(f"{Q}/readers/{'r' * 201}"), (400, "INWB0014E")),
        (await client.post("/inorder/v1/queues/NONE/readers/r"), (404, "INWB0014E")),
        (await client.post(f"{Q}/readers/other/release"), (409, "INWB0014E")),
    ):
        assert number_of(answer) == number, answer.text
