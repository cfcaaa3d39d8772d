"""An IPC stream is cut into the same messages however its bytes arrive, and pyarrow can read each."""

from __future__ import annotations

import io
import itertools
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import ipc

from inorder.arrow.framing import END, HEAD_MAX, Broken, Frame, Frames, TooLong, judged

BATCHES = [pa.record_batch({"body": pa.array([bytes(count)] * count, pa.binary())}) for count in (0, 1, 7)]
MOST = 10_000


def stream() -> bytes:
    sink = io.BytesIO()
    with ipc.new_stream(sink, BATCHES[0].schema) as writer:
        for batch in BATCHES:
            writer.write_batch(batch)
    return sink.getvalue()


STREAM = stream()


def cut(pieces: Sequence[bytes], most: int = MOST) -> list[Frame]:
    frames = Frames(most)
    found = [frame for piece in pieces for frame in frames.feed(piece)]
    frames.end()
    assert frames.held == 0
    return found


@given(st.lists(st.integers(0, len(STREAM)), max_size=40))
def test_the_messages_are_the_same_however_the_bytes_arrive(at: list[int]) -> None:
    places = [0, *sorted(at), len(STREAM)]
    found = cut([STREAM[first:last] for first, last in itertools.pairwise(places)])
    assert [one.kind for one in found] == ["schema", "batch", "batch", "batch"]
    assert b"".join(one.data for one in found) + END == STREAM
    schema = ipc.read_schema(pa.py_buffer(found[0].data))
    assert [ipc.read_record_batch(pa.py_buffer(one.data), schema) for one in found[1:]] == BATCHES


def test_every_truncated_stream_is_refused_as_incomplete() -> None:
    for length in range(len(STREAM)):
        with pytest.raises(Broken, match="is incomplete"):
            cut([STREAM[:length]])


def test_a_message_above_the_size_limit_is_refused() -> None:
    longest = max(len(one.data) for one in cut([STREAM]))
    assert len(cut([STREAM], longest)) == 4
    with pytest.raises(TooLong, match="has"):
        cut([STREAM], longest - 1)


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_as_a_head_are_refused_or_a_message(head: bytes, is_first: bool) -> None:
    frames = Frames(MOST)
    if not is_first:
        frames.feed(cut([STREAM])[0].data)
    padded = head.ljust(max(8, len(head)), b"\0")
    try:
        frames.feed(END[:4] + len(padded).to_bytes(4, "little") + padded)
    except (Broken, TooLong):
        return
    assert frames.held <= len(padded) + 8


@given(st.data())
def test_a_head_with_bytes_flipped_never_points_outside(data: st.DataObject) -> None:
    changed = bytearray(STREAM)
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = cut([bytes(changed)])
    except (Broken, TooLong):
        return
    assert b"".join(one.data for one in found) + END == bytes(changed)


def compressed() -> bytes:
    sink = io.BytesIO()
    with ipc.new_stream(sink, BATCHES[0].schema, options=ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_batch(BATCHES[2])
    return sink.getvalue()


def test_a_compressed_batch_is_refused_before_its_body_has_arrived() -> None:
    schema = len(cut([STREAM])[0].data)
    whole = compressed()
    head = schema + 8 + int.from_bytes(whole[schema + 4 : schema + 8], "little")
    with pytest.raises(Broken, match="compressed"):
        Frames(MOST).feed(whole[:head])


@pytest.mark.parametrize("length", [8, HEAD_MAX])
def test_a_head_below_8_bytes_or_above_its_limit_is_refused(length: int) -> None:
    frames = Frames(MOST)
    assert frames.feed(END[:4] + length.to_bytes(4, "little")) == []
    assert frames.held == 8
    for wrong in (7, HEAD_MAX + 1, 1, -8 % 2**32):
        with pytest.raises(Broken, match="the head of a message has"):
            Frames(MOST).feed(END[:4] + wrong.to_bytes(4, "little"))


def with_body(message: bytes, length: int) -> bytes:
    """The message with another body length in its head; the field is found by changing bytes and reading the length."""
    head = 8 + int.from_bytes(message[4:8], "little")
    before = judged(message[8:head], has_schema=True)[1]
    for at in range(8, head - 7, 4):
        changed = message[:at] + (before + 8).to_bytes(8, "little") + message[at + 8 :]
        try:
            if judged(changed[8:head], has_schema=True)[1] == before + 8:
                return message[:at] + (length % 2**64).to_bytes(8, "little") + message[at + 8 :]
        except Broken:
            continue
    raise AssertionError("the head has no length of a body")


def test_a_negative_body_length_is_refused() -> None:
    schema, *_, batch = cut([STREAM])
    for length in (-1, -8, -(2**63)):
        frames = Frames(MOST)
        frames.feed(schema.data)
        with pytest.raises(Broken, match="a body of -"):
            frames.feed(with_body(batch.data, length))
    frames = Frames(MOST)
    frames.feed(schema.data)
    with pytest.raises(TooLong):
        frames.feed(with_body(batch.data, 2**62))
