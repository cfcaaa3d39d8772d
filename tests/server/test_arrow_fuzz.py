"""Malformed Arrow streams sent to the server: a clear 4xx, nothing put or left staged, bounded memory.

Tests of the Arrow code cover single messages; these cover the answers that a client gets.
"""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import tracemalloc
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.server.conftest import KEY, PORT, TOKEN, Served
from tests.tiers import nightly

import inorder
from inorder.server import Limits
from inorder.server.settings import Settings

pa = pytest.importorskip("pyarrow", reason="needs the extra inorder[arrow]")
from pyarrow import ipc  # noqa: E402 - needs pyarrow
from tests.server.arrows import batch_of, keyed, stream_of  # noqa: E402 - needs pyarrow

ROOT = Path(__file__).parents[2]
ADDRESS = "/inorder/v1/queues/Q1/arrow"
MEBIBYTE = 2**20
END = b"\xff\xff\xff\xff\0\0\0\0"
EXTREMES = (0, 1, 7, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, -1, -(2**31), -(2**63))

BODIES = batch_of(
    [b"one", b"", b"three"], priority=pa.array([1, None, 3], pa.int32()), format=pa.array(["a", None, "b"])
)
PROPERTIES = batch_of([b"x"], properties=pa.array([[("p", 1.5)]], pa.map_(pa.string(), pa.float64())))
STREAMS = (
    stream_of(BODIES, BODIES.slice(1), BODIES),
    stream_of(PROPERTIES, PROPERTIES),
    stream_of(batch_of([bytes(5_000)])),
)


def messages_of(stream: bytes) -> list[bytes]:
    """The schema and record batches of a stream, without its end."""
    return [bytes(one.serialize()) for one in ipc.MessageReader.open_stream(io.BytesIO(stream))]


async def refused(client: httpx.AsyncClient, content: Any, *allowed: int) -> int:
    """Checks that a stream is refused with an explanation. Returns the status."""
    answer = await client.post(ADDRESS, content=content, headers=keyed(str(uuid.uuid4())))
    (error,) = answer.json()["error"]
    assert answer.status_code in (allowed or (400,)), answer.text
    assert error["messageId"].startswith("INWB")
    assert len(error["message"]) > 20
    return answer.status_code


def check_nothing_is_left(served: Served) -> None:
    with inorder.connect(served.store) as qm:
        assert (qm.depth("Q1"), qm.inspect.units()) == (0, []), "something was put, or is staged still"


async def in_pieces(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    for one in pieces:
        yield one


TYPES = st.recursive(
    st.sampled_from(
        [pa.null(), pa.bool_(), pa.int8(), pa.uint64(), pa.float16(), pa.decimal128(5, 2), pa.date32(), pa.time64("us"),
         pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.duration("s"), pa.string(), pa.large_string(), pa.binary(),
         pa.binary(0), pa.binary(4), pa.large_binary(), pa.string_view(), pa.binary_view()]
    ),
    lambda inner: st.one_of(
        inner.map(pa.list_),
        inner.map(pa.large_list),
        inner.map(lambda one: pa.list_(one, 2)),
        inner.map(lambda one: pa.struct([("a", one), ("b", pa.int8())])),
        inner.map(lambda one: pa.map_(pa.string(), one)),
        st.sampled_from([pa.string(), pa.int64()]).map(lambda one: pa.dictionary(pa.int8(), one)),
        st.sampled_from([pa.string(), pa.int64()]).map(lambda one: pa.run_end_encoded(pa.int32(), one)),
    ),
    max_leaves=3,
)  # fmt: skip
NAMES = st.sampled_from(["body", "priority", "properties", "format", "put_at", "expiry", "queue", "uid", "x", "", "\0"])


@st.composite
def wrong_streams(draw: st.DrawFn) -> bytes:
    """Columns of unexpected types, some of them nested or encoded, whose values are all null or absent."""
    drawn = draw(st.lists(st.tuples(NAMES, TYPES), min_size=1, max_size=3))
    columns = ([] if draw(st.booleans()) else [("body", pa.binary())]) + drawn
    count = draw(st.integers(0, 3))
    try:
        arrays = [pa.nulls(count, kind) for _, kind in columns]
        batch = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(columns))
        batch.validate(full=True)
        return stream_of(batch)
    except (pa.ArrowException, NotImplementedError):  # nobody can send a batch that Arrow cannot make
        return stream_of(schema=pa.schema(columns))


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A valid stream with messages dropped, repeated, reversed or taken from another stream, and with wrong numbers."""
    messages = messages_of(draw(st.sampled_from(STREAMS)))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(messages) - 1))
        what = draw(st.sampled_from(["drop", "repeat", "swap", "foreign"]))
        if what == "drop" and len(messages) > 1:
            del messages[at]
        elif what == "repeat":
            messages.insert(at, messages[at])
        elif what == "swap":
            messages.reverse()
        else:
            messages[at] = draw(st.sampled_from([one for other in STREAMS for one in messages_of(other)]))
    whole = bytearray(b"".join(messages) + (END if draw(st.booleans()) else b""))
    for _ in range(draw(st.integers(0, 3))):
        size = draw(st.sampled_from([8, 4, 2, 1]))
        at = draw(st.integers(0, max(0, len(whole) // size - 1))) * size
        value = draw(st.sampled_from(EXTREMES) | st.integers(0, 255)) % 2 ** (8 * size)
        whole[at : at + size] = value.to_bytes(size, "little")
    return bytes(whole)


@nightly
def test_any_stream_is_put_as_a_whole_or_refused_as_a_whole(served: Served) -> None:
    """A changed stream may still be valid: then the answer must be true; otherwise nothing is put."""
    statuses: Counter[int] = Counter()
    streams: list[tuple[bytes, int]] = []

    async def work(client: httpx.AsyncClient) -> None:
        for content, cut in streams:
            pieces = [content[:cut], content[cut:]]
            answer = await client.post(ADDRESS, content=in_pieces(pieces), headers=keyed(str(uuid.uuid4())))
            statuses[answer.status_code] += 1
            with inorder.connect(served.store) as qm:
                there = qm.depth("Q1")
                assert qm.inspect.units() == [], "what was staged is there still"
                qm.admin.clear_queue("Q1")
            if answer.status_code == 200:
                assert answer.json()["messages"] == there
                continue
            assert answer.status_code in (400, 413), (answer.text, content)
            assert answer.json()["error"][0]["messageId"] in ("INWB0004E", "INWB0005E", "INWB0014E"), answer.text
            assert there == 0, "it was refused, and something is there"

    @settings(suppress_health_check=list(HealthCheck), deadline=None)
    @given(st.lists(st.tuples(st.one_of(mutated(), wrong_streams()), st.integers(0, 2_000)), min_size=1, max_size=10))
    def many(some: list[tuple[bytes, int]]) -> None:
        streams[:] = some
        served.run(work)

    many()
    assert statuses[400] > statuses[200], "few of these are as they should be"


def declaring(length: int) -> bytes:
    """A stream whose first record batch declares a body of this many bytes, which do not follow."""
    schema, batch = messages_of(stream_of(batch_of([bytes(64)])))
    found = struct.pack("<q", len(batch) - 8 - struct.unpack_from("<i", batch, 4)[0])
    assert batch.count(found) == 1, "the head has the length of its body once"
    return schema + batch.replace(found, struct.pack("<q", length))


def bomb(compression: str) -> bytes:
    """128 MiB, compressed to a few hundred KiB or less."""
    return stream_of(batch_of([bytes(128 * MEBIBYTE)]), compression=compression)


def rows_of_nothing(count: int) -> bytes:
    """A stream of rows that need no bytes."""
    column = pa.FixedSizeBinaryArray.from_buffers(pa.binary(0), count, [None, pa.py_buffer(b"")])
    return stream_of(pa.record_batch({"body": column}))


def more_rows_than_bytes(count: int) -> bytes:
    """A record batch that declares this many rows, as do its columns."""
    schema, batch = messages_of(stream_of(batch_of([b"x"] * 99, priority=pa.nulls(99, pa.int8()))))
    found = struct.pack("<q", 99)
    assert batch.count(found) >= 3, "the batch and each column have it"
    return schema + batch.replace(found, struct.pack("<q", count)) + END


LARGE: dict[str, tuple[Callable[[], bytes], int]] = {
    "a body of 2^62 bytes": (lambda: declaring(2**62), 413),
    "a body of 1 GiB": (lambda: declaring(2**30), 413),
    "a body of 60 MiB that does not come": (lambda: declaring(60 * MEBIBYTE), 400),
    "a body of -8 bytes": (lambda: declaring(-8), 400),
    "a head of 2 GiB": (lambda: struct.pack("<iI", -1, 2**31 - 1) + bytes(100), 400),
    "compressed by lz4": (lambda: bomb("lz4"), 400),
    "compressed by zstd": (lambda: bomb("zstd"), 400),
    "rows of nothing": (lambda: rows_of_nothing(10**9), 400),
    "more rows than bytes": (lambda: more_rows_than_bytes(2**40), 400),
    "null bodies": (lambda: stream_of(pa.record_batch({"body": pa.nulls(10**9)})), 400),
    "run ends": (
        lambda: stream_of(
            pa.record_batch(
                {"body": pa.RunEndEncodedArray.from_arrays(pa.array([10**9], pa.int32()), pa.array([b"x"]))}
            )
        ),
        400,
    ),
    "a dictionary": (lambda: stream_of(pa.record_batch({"body": pa.array([b"x"] * 9).dictionary_encode()})), 400),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_small_stream_that_stands_for_a_large_one_is_refused_in_little_memory(served: Served, name: str) -> None:
    make, status = LARGE[name]
    content = make()

    async def work(client: httpx.AsyncClient) -> None:
        before = pa.total_allocated_bytes()
        tracemalloc.start()
        began = tracemalloc.get_traced_memory()[0]
        try:
            assert await refused(client, content, status) == status
            most = tracemalloc.get_traced_memory()[1] - began
        finally:
            tracemalloc.stop()
        assert most < 8 * MEBIBYTE, f"{most / MEBIBYTE:,.0f} MiB at once"
        assert pa.total_allocated_bytes() - before < MEBIBYTE

    served.run(work, limits=Limits(body_seconds=60))
    check_nothing_is_left(served)


def peak_of(store: str, folder: Path) -> int:
    """The most bytes that Arrow has at once in this process, in which a server gets the streams of a folder."""

    async def work(client: httpx.AsyncClient) -> None:
        for path in folder.iterdir():
            await refused(client, path.read_bytes(), 400, 413)

    Served(store, Settings(store=store, key=KEY, token=TOKEN, port=PORT), folder).run(work)
    return int(pa.default_memory_pool().max_memory())


def test_arrow_allocates_little_for_a_few_bytes_that_stand_for_many(served: Served, tmp_path: Path) -> None:
    """In a process of its own: here Arrow has made the streams, so its peak is high already."""
    folder = tmp_path / "streams"
    folder.mkdir()
    for number, (make, _) in enumerate(LARGE.values()):
        (folder / str(number)).write_bytes(make())
    text = "import pathlib, sys; from tests.server.test_arrow_fuzz import peak_of; "
    text += "print(peak_of(sys.argv[1], pathlib.Path(sys.argv[2])))"
    told = subprocess.run(
        [sys.executable, "-c", text, str(served.store), str(folder)], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    assert int(told.stdout) < 8 * MEBIBYTE
