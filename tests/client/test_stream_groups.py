"""Streams longer than one logical message: refused, or on request a group; the limit of a message is given, small."""

from __future__ import annotations

import io

import pytest
from tests.client.test_streams import full, stream_of

from inorder import Match, QueueManager
from inorder.errors import ArgumentError, InconsistentCall
from inorder.model.message import IN_GROUP, LAST_IN_GROUP

TEXT = b"0123456789"


def put(qm: QueueManager, data: bytes, chunk: int = 2, most: int = 4) -> None:
    qm.put_stream("Q", io.BytesIO(data), chunk=chunk, as_group=True, most=most)


def pieces(qm: QueueManager) -> list[tuple[int, int, bytes, str, str]]:
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
    assert pieces(qm) == [
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
def test_all_of_it_comes_back_in_order(qm: QueueManager, chunk: int, most: int) -> None:
    for length in range(10):
        put(qm, TEXT[:length], chunk, most)
        assert all(one.length <= min(chunk, most) for one in qm.browse("Q"))
        assert got(qm) == TEXT[:length]
        assert (qm.depth("Q"), qm.inspect.units()) == (0, [])


def test_without_the_option_a_getter_is_given_the_first_message_of_it(qm: QueueManager) -> None:
    put(qm, TEXT)
    stream = io.BytesIO()
    assert qm.get_stream("Q", stream).group_status == "in"
    assert stream.getvalue() == b"0123"
    with pytest.raises(InconsistentCall, match="has a group open"):
        qm.get_stream("Q", stream, as_group=True)


def test_with_the_option_a_getter_is_given_a_message_in_no_group_too(qm: QueueManager) -> None:
    qm.put_stream("Q", io.BytesIO(TEXT), chunk=4)
    put(qm, b"group")
    assert [got(qm), got(qm)] == [TEXT, b"group"]


def test_a_group_can_be_chosen(qm: QueueManager) -> None:
    qm.put_stream("Q", io.BytesIO(b"first"), as_group=True, correlation_id=b"a", most=2)
    qm.put_stream("Q", io.BytesIO(TEXT), as_group=True, correlation_id=b"b", most=2)
    stream = io.BytesIO()
    qm.get_stream("Q", stream, as_group=True, match=Match(correlation_id=b"b"))
    assert stream.getvalue() == TEXT


@pytest.mark.parametrize("failing_read", [1, 2, 4, 6])
@pytest.mark.parametrize("in_unit", [False, True])
def test_a_group_that_fails_leaves_nothing(qm: QueueManager, failing_read: int, in_unit: bool) -> None:
    chunks: list[bytes | Exception] = [b"01", b"23", b"45", b"67", b"89"]
    chunks.insert(failing_read - 1, OSError("broken pipe"))
    if in_unit:
        qm.put("Q", b"before", syncpoint=True)
    with pytest.raises(OSError, match="broken pipe"):
        qm.put_stream("Q", stream_of(*chunks), as_group=True, chunk=2, most=4)
    assert [unit.puts for unit in qm.inspect.units()] == ([1] if in_unit else [])
    qm.commit()
    put(qm, TEXT)
    assert [message.body for message in qm.get_group("Q")][-1] == (b"before" if in_unit else b"89")


@pytest.mark.parametrize("writes", [0, 1, 4])
def test_a_group_that_cannot_be_written_backs_out(qm: QueueManager, writes: int) -> None:
    put(qm, TEXT)
    with pytest.raises(OSError, match="no space"):
        qm.get_stream("Q", full(writes), as_group=True)
    assert (qm.depth("Q"), qm.inspect.units()) == (5, [])
    assert got(qm) == TEXT


@pytest.mark.parametrize("flags", [IN_GROUP, LAST_IN_GROUP])
def test_it_is_a_group_of_its_own(qm: QueueManager, flags: int) -> None:
    with pytest.raises(InconsistentCall, match="makes a new group"):
        qm.put_stream("Q", io.BytesIO(TEXT), as_group=True, flags=flags)
    qm.put("Q", b"begun", logical=True, flags=IN_GROUP)
    with pytest.raises(InconsistentCall, match="makes a new group"):
        qm.put_stream("Q", io.BytesIO(TEXT), as_group=True)
