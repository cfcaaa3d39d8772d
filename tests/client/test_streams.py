"""Puts of streams as messages or groups of messages, and gets of messages as streams."""

from __future__ import annotations

import io
import tempfile
from typing import IO, Any, cast

import pytest
from tests.helpers.support import Raw, bodies, memory_alone

from inorder import Match, QueueManager
from inorder.errors import ArgumentError, InconsistentCall, InorderError, QueueDeleted, TooManyHandles
from inorder.model.fields import NUMBER_MAX
from inorder.model.message import IN_GROUP, LAST_IN_GROUP, LAST_SEGMENT, SEGMENT

TEXT = b"0123456789"


class Chunks:
    """A stream that returns one chunk for each read, and raises a chunk that is an error."""

    def __init__(self, *chunks: bytes | Exception) -> None:
        self._chunks = list(chunks)
        self.reads = 0

    def read(self, size: int = -1) -> bytes:
        self.reads += 1
        if not self._chunks:
            return b""
        chunk = self._chunks.pop(0)
        if isinstance(chunk, Exception):
            raise chunk
        return chunk


def stream_of(*chunks: bytes | Exception) -> IO[bytes]:
    return cast("IO[bytes]", Chunks(*chunks))


class Full:
    """A stream that fails after this number of writes."""

    def __init__(self, writes: int) -> None:
        self._left = writes
        self.lengths: list[int] = []

    def write(self, data: bytes) -> int:
        if not self._left:
            raise OSError("no space left")
        self._left -= 1
        self.lengths.append(len(data))
        return len(data)


def full(writes: int) -> IO[bytes]:
    return cast("IO[bytes]", Full(writes))


def pieces(qm: QueueManager) -> list[tuple[bytes, int, str]]:
    return [(one.body, one.offset, one.segment_status) for one in qm.browse("Q")]


# ---- put


def test_a_stream_becomes_one_logical_message(qm: QueueManager) -> None:
    result = qm.put_stream("Q", io.BytesIO(TEXT), chunk=4, priority=3, correlation_id=b"c")
    assert pieces(qm) == [(b"0123", 0, "in"), (b"4567", 4, "in"), (b"89", 8, "last")]
    assert (result.offset, qm.inspect.units()) == (8, [])
    got = qm.get("Q", complete=True)
    assert (got.body, got.priority, got.correlation_id[:1]) == (TEXT, 3, b"c")


@pytest.mark.parametrize(("length", "count"), [(0, 1), (1, 1), (4, 1), (5, 2), (8, 2), (9, 3)])
def test_a_stream_makes_as_few_messages_as_it_can(qm: QueueManager, length: int, count: int) -> None:
    qm.put_stream("Q", io.BytesIO(bytes(length)), chunk=4)
    assert qm.depth("Q") == count
    assert {message.segment_status for message in qm.browse("Q")} <= ({"in", "last"} if count > 1 else {"no"})
    assert qm.get("Q", complete=True).body == bytes(length)


def test_reads_may_be_short(qm: QueueManager) -> None:
    qm.put_stream("Q", stream_of(b"01", b"2", b"345"), chunk=4)
    assert [offset for _, offset, _ in pieces(qm)] == [0, 2, 3]
    assert qm.get("Q", complete=True).body == b"012345"


@pytest.mark.parametrize("how", [{}, {"as_group": True, "chunk": 2, "most": 4}], ids=["message", "group"])
@pytest.mark.parametrize("failing_read", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("in_unit", [False, True])
def test_a_stream_that_fails_leaves_nothing(
    qm: QueueManager, failing_read: int, in_unit: bool, how: dict[str, Any]
) -> None:
    chunks: list[bytes | Exception] = [b"01", b"23", b"45", b"67", b"89"]
    chunks.insert(failing_read - 1, OSError("broken pipe"))
    if in_unit:
        qm.put("Q", b"before", syncpoint=True)
    with pytest.raises(OSError, match="broken pipe"):
        qm.put_stream("Q", stream_of(*chunks), **how)
    assert [unit.puts for unit in qm.inspect.units()] == ([1] if in_unit else [])
    if in_unit:
        qm.put("Q", b"after", syncpoint=True)
    qm.commit()
    assert bodies(qm) == ([b"before", b"after"] if in_unit else [])
    assert qm.put_stream("Q", stream_of(b"67", b"89"), **how).offset == 2


def test_inside_a_unit_a_stream_is_part_of_it(qm: QueueManager) -> None:
    with qm.unit_of_work() as unit:
        qm.put_stream("Q", io.BytesIO(TEXT), chunk=4)
        assert bodies(qm) == []
        unit.back_out()
    assert qm.depth("Q") == 0
    with qm.unit_of_work():
        qm.put_stream("Q", io.BytesIO(TEXT), chunk=4)
    assert qm.get("Q", complete=True).body == TEXT


@memory_alone  # the call checks the limit; a store in a file would write two gigabytes for the same result
def test_r1_9_a_message_has_at_most_999_999_999_bytes(qm: QueueManager) -> None:
    qm.alter_queue("Q", max_length=104_857_600)
    chunk = bytes(100_000_000)  # the same object ten times, which the queue holds once
    with pytest.raises(ArgumentError, match="2251"):
        qm.put_stream("Q", stream_of(*[chunk] * 10), chunk=len(chunk))
    assert (qm.depth("Q"), qm.inspect.units()) == (0, [])
    longest = [*[chunk] * 9, chunk[:-1]]
    qm.put_stream("Q", stream_of(*longest), chunk=len(chunk))
    written = Full(10)
    got = qm.get_stream("Q", cast("IO[bytes]", written))
    assert (got.length, sum(written.lengths)) == (NUMBER_MAX, NUMBER_MAX)


def test_a_stream_is_read_no_further_than_needed(qm: QueueManager) -> None:
    qm.alter_queue("Q", max_length=3)
    chunks = Chunks(b"0123", b"4567", b"89ab", b"cdef")
    with pytest.raises(InorderError):
        qm.put_stream("Q", cast("IO[bytes]", chunks))
    assert chunks.reads == 2


def test_a_stream_can_be_a_member_of_a_group(qm: QueueManager) -> None:
    with qm.group("Q") as group:
        group.put(b"head")
        group.put_stream(io.BytesIO(TEXT), chunk=4)
        group.put(b"tail")
    assert [message.body for message in qm.get_group("Q")] == [b"head", TEXT, b"tail"]


def test_a_stream_that_fails_leaves_its_group_unchanged(qm: QueueManager) -> None:
    with qm.group("Q") as group:
        group.put(b"head")
        with pytest.raises(OSError, match="gone"):
            group.put_stream(stream_of(b"01", b"23", OSError("gone")))
        assert group.put(b"tail").sequence_number == 2
    assert [message.body for message in qm.get_group("Q")] == [b"head", b"tail"]


def test_a_stream_outside_the_group_that_is_open_is_refused(qm: QueueManager) -> None:
    with qm.unit_of_work(), qm.open("Q", output=True) as queue:
        qm.put("Q", b"head", logical=True, flags=IN_GROUP)
        with pytest.raises(InconsistentCall, match="2241"):
            qm.put_stream("Q", io.BytesIO(TEXT), chunk=4)
        qm.put("Q", b"tail", logical=True, flags=LAST_IN_GROUP)
        assert queue.close() is None
    assert bodies(qm) == [b"head", b"tail"]


@pytest.mark.parametrize("chunk", [100, 4])
def test_a_stream_within_a_message_that_is_open_is_refused(qm: QueueManager, chunk: int) -> None:
    with qm.unit_of_work():
        qm.put("Q", b"part", flags=SEGMENT, logical=True)
        with pytest.raises(InconsistentCall, match="2242"):
            qm.put_stream("Q", io.BytesIO(TEXT), chunk=chunk)
        qm.put("Q", b"end", flags=LAST_SEGMENT, logical=True)
    assert qm.get("Q", complete=True).body == b"partend"


# ---- get


def test_a_message_is_written_segment_by_segment(qm: QueueManager) -> None:
    put = qm.put_stream("Q", io.BytesIO(TEXT), chunk=4, correlation_id=b"c")
    stream = io.BytesIO()
    got = qm.get_stream("Q", stream)
    assert stream.getvalue() == TEXT
    assert (got.body, got.length, got.offset, got.segment_status) == (b"", 10, 0, "last")
    assert (got.correlation_id[:1], got.group_id) == (b"c", put.group_id)
    assert (qm.depth("Q"), qm.inspect.units()) == (0, [])


@pytest.mark.parametrize("chunk", [4, 100])
def test_a_stream_that_accepts_only_a_part_of_each_write_receives_everything(qm: QueueManager, chunk: int) -> None:
    qm.put_stream("Q", io.BytesIO(TEXT), chunk=chunk)
    raw = Raw()
    assert qm.get_stream("Q", cast("IO[bytes]", raw)).length == len(raw.written)
    assert raw.written == TEXT


def test_a_temporary_file_with_partial_writes_receives_everything(qm: QueueManager) -> None:
    """A temporary file wraps its stream and each method of the stream."""
    qm.put("Q", TEXT)
    with tempfile.NamedTemporaryFile(buffering=0) as named:
        named.file = raw = Raw()  # type: ignore[assignment]
        qm.get_stream("Q", cast("IO[bytes]", named))
    assert raw.written == TEXT


class Nothing(Raw):
    def write(self, data: Any) -> int:
        return 0


class Unflushed(io.BytesIO):
    def flush(self) -> None:
        raise OSError("no space left")


@pytest.mark.parametrize(
    ("stream", "error", "words"),
    [
        (Nothing(), ArgumentError, "a number above 0"),
        (Raw(is_full=True), ArgumentError, "a binary stream that blocks"),
        (Unflushed(), OSError, "no space left"),
    ],
)
def test_a_message_stays_on_its_queue_if_the_stream_does_not_accept_it(
    qm: QueueManager, stream: Any, error: type[Exception], words: str
) -> None:
    qm.put("Q", TEXT)
    with pytest.raises(error, match=words):
        qm.get_stream("Q", stream)
    assert bodies(qm) == [TEXT]


@pytest.mark.parametrize("as_group", [False, True])
@pytest.mark.parametrize("writes", [0, 1, 2])
def test_a_get_to_a_stream_that_cannot_be_written_is_backed_out(qm: QueueManager, writes: int, as_group: bool) -> None:
    qm.put_stream("Q", io.BytesIO(TEXT), chunk=4, as_group=as_group, most=4 if as_group else NUMBER_MAX)
    with pytest.raises(OSError, match="no space left"):
        qm.get_stream("Q", full(writes), as_group=as_group)
    assert ([body for body, _, _ in pieces(qm)], qm.inspect.units()) == ([b"0123", b"4567", b"89"], [])
    stream = io.BytesIO()
    assert qm.get_stream("Q", stream, as_group=as_group).backout_count == 1
    assert stream.getvalue() == TEXT


def test_inside_a_unit_a_get_to_a_stream_is_part_of_it(qm: QueueManager) -> None:
    qm.put_stream("Q", io.BytesIO(TEXT), chunk=4)
    with qm.unit_of_work() as unit:
        qm.get_stream("Q", io.BytesIO())
        assert qm.inspect.units()[0].gets == 3
        unit.back_out()
    assert len(pieces(qm)) == 3
    with qm.unit_of_work():
        qm.get_stream("Q", io.BytesIO())
    assert qm.depth("Q") == 0


def test_a_handle_within_a_message_cannot_get_a_stream(qm: QueueManager) -> None:
    qm.put_stream("Q", io.BytesIO(TEXT), chunk=4)
    assert qm.get("Q", logical=True).body == b"0123"
    stream = io.BytesIO()
    with pytest.raises(InconsistentCall, match="2242"):
        qm.get_stream("Q", stream)
    assert (stream.getvalue(), len(pieces(qm))) == (b"", 2)


def test_a_member_of_a_group_can_be_got_as_a_stream(qm: QueueManager) -> None:
    with qm.group("Q") as group:
        group.put(b"head")
        group.put_stream(io.BytesIO(TEXT), chunk=4, last=True)
    fields: Any = {"logical": True, "syncpoint": True}
    assert qm.get("Q", **fields).body == b"head"
    stream = io.BytesIO()
    got = qm.get_stream("Q", stream)
    assert (stream.getvalue(), got.group_status, got.sequence_number) == (TEXT, "last", 2)


@pytest.mark.parametrize("error", [QueueDeleted, TooManyHandles])
def test_a_stream_that_raises_an_inorder_error_is_not_put_in_part(qm: QueueManager, error: type[InorderError]) -> None:
    qm.create_queue("OTHER")
    qm.put("OTHER", b"its handle could make room")
    with pytest.raises(error, match="of another connection"):
        qm.put_stream("Q", stream_of(b"AAAA", error("of another connection"), b"BBBB"), chunk=4)
    assert bodies(qm) == []
    assert bodies(qm, "OTHER") == [b"its handle could make room"]


def put(qm: QueueManager, data: bytes, chunk: int = 2, most: int = 4) -> None:
    qm.put_stream("Q", io.BytesIO(data), chunk=chunk, as_group=True, most=most)


def members(qm: QueueManager) -> list[tuple[int, int, bytes, str, str]]:
    return [
        (one.sequence_number, one.offset, one.body, one.segment_status, one.group_status)
        for one in qm.browse("Q", logical=True)
    ]


def got(qm: QueueManager) -> bytes:
    stream = io.BytesIO()
    assert qm.get_stream("Q", stream, as_group=True).length == len(stream.getvalue())
    return stream.getvalue()


@pytest.mark.parametrize("in_unit", [False, True])
def test_a_stream_that_is_too_long_is_refused_and_leaves_nothing(qm: QueueManager, in_unit: bool) -> None:
    if in_unit:
        qm.put("Q", b"before", syncpoint=True)
    with pytest.raises(ArgumentError, match="as_group=True") as raised:
        qm.put_stream("Q", io.BytesIO(TEXT), chunk=4, most=9)
    assert raised.value.reason == 2251
    assert [unit.puts for unit in qm.inspect.units()] == ([1] if in_unit else [])
    qm.back_out()
    qm.put_stream("Q", io.BytesIO(TEXT), chunk=4, most=10)
    assert qm.get("Q", complete=True).body == TEXT


@pytest.mark.every_store
def test_a_long_stream_becomes_a_group_of_messages_in_segments(qm: QueueManager) -> None:
    put(qm, TEXT)
    assert members(qm) == [
        (1, 0, b"01", "in", "in"),
        (1, 2, b"23", "last", "in"),
        (2, 0, b"45", "in", "in"),
        (2, 2, b"67", "last", "in"),
        (3, 0, b"89", "no", "last"),
    ]
    assert qm.inspect.units() == []
    assert got(qm) == TEXT
    assert qm.depth("Q") == 0


@pytest.mark.parametrize(("chunk", "most"), [(1, 1), (2, 4), (3, 4), (4, 4), (9, 4), (2, 9)])
def test_a_stream_put_as_a_group_is_got_back_whole_and_in_order(qm: QueueManager, chunk: int, most: int) -> None:
    for length in range(10):
        put(qm, TEXT[:length], chunk, most)
        assert all(one.length <= min(chunk, most) for one in qm.browse("Q"))
        assert got(qm) == TEXT[:length]
        assert (qm.depth("Q"), qm.inspect.units()) == (0, [])


def test_get_stream_without_as_group_gets_only_the_first_message_of_a_group(qm: QueueManager) -> None:
    put(qm, TEXT)
    stream = io.BytesIO()
    assert qm.get_stream("Q", stream).group_status == "in"
    assert stream.getvalue() == b"0123"
    with pytest.raises(InconsistentCall, match="has a group open"):
        qm.get_stream("Q", stream, as_group=True)


def test_get_stream_with_as_group_also_gets_a_message_in_no_group(qm: QueueManager) -> None:
    qm.put_stream("Q", io.BytesIO(TEXT), chunk=4)
    put(qm, b"group")
    assert [got(qm), got(qm)] == [TEXT, b"group"]


def test_get_stream_with_as_group_can_select_the_group_by_a_match(qm: QueueManager) -> None:
    qm.put_stream("Q", io.BytesIO(b"first"), as_group=True, correlation_id=b"a", most=2)
    qm.put_stream("Q", io.BytesIO(TEXT), as_group=True, correlation_id=b"b", most=2)
    stream = io.BytesIO()
    qm.get_stream("Q", stream, as_group=True, match=Match(correlation_id=b"b"))
    assert stream.getvalue() == TEXT


@pytest.mark.parametrize("flags", [IN_GROUP, LAST_IN_GROUP])
def test_a_stream_as_a_group_is_refused_inside_another_group(qm: QueueManager, flags: int) -> None:
    with pytest.raises(InconsistentCall, match="makes a new group"):
        qm.put_stream("Q", io.BytesIO(TEXT), as_group=True, flags=flags)
    qm.put("Q", b"begun", logical=True, flags=IN_GROUP)
    with pytest.raises(InconsistentCall, match="makes a new group"):
        qm.put_stream("Q", io.BytesIO(TEXT), as_group=True)
