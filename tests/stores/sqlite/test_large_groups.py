"""Large groups are taken in one step; their bodies are read in pages while the caller goes through them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest
from tests.helpers.claiming import store_of

import inorder
from inorder import QueueManager
from inorder.errors import (
    ConnectionBroken,
    ConnectionClosed,
    InorderError,
    NoMessageAvailable,
    OrderPending,
    UnitNotFound,
)
from inorder.model.message import IN_GROUP, LAST_IN_GROUP
from inorder.stores.sql.shortcuts import PAGE_BYTES, PAGE_MESSAGES

SIZES = (PAGE_MESSAGES - 1, PAGE_MESSAGES, PAGE_MESSAGES + 1, 2 * PAGE_MESSAGES + 3)


def put_group(qm: QueueManager, size: int, length: int = 8) -> list[bytes]:
    bodies = [number.to_bytes(8, "big").ljust(length) for number in range(size)]
    messages = [inorder.Message(b, flags=LAST_IN_GROUP if n == size - 1 else IN_GROUP) for n, b in enumerate(bodies)]
    with qm.unit_of_work(), qm.open("Q", output=True) as handle:
        handle.put_many(messages, logical=True)
    return bodies


@pytest.mark.parametrize(("size", "read_order"), [*((size, "relaxed") for size in SIZES), (SIZES[-1], "strict")])
def test_a_group_of_any_size_is_got_whole_and_in_order(
    qm: QueueManager, size: int, read_order: Literal["relaxed", "strict"]
) -> None:
    qm.alter_queue("Q", read_order=read_order)
    bodies = put_group(qm, size)
    qm.put("Q", b"behind")
    got = list(qm.get_group("Q"))
    assert [message.body for message in got] == bodies
    assert [message.sequence_number for message in got] == list(range(1, size + 1))
    assert [message.body for message in qm.browse("Q")] == [b"behind"]


@pytest.mark.parametrize(
    ("size", "length", "pages"), [(7, PAGE_BYTES // 2, [2, 2, 2, 1]), (3, PAGE_BYTES + 1, [1, 1, 1])]
)
def test_groups_of_long_messages_are_read_in_pages_of_limited_bytes(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch, size: int, length: int, pages: list[int]
) -> None:
    bodies = put_group(qm, size, length)
    store, read = store_of(qm), list[int]()

    def read_rest(*given: Any) -> Any:
        answer = real(*given)
        read.append(len(answer[0]))
        return answer

    real = store.read_rest
    monkeypatch.setattr(store, "read_rest", read_rest)
    assert [message.body for message in qm.get_group("Q")] == bodies
    assert [size - sum(read), *read] == pages


def test_a_large_group_whose_loop_is_left_early_returns_whole_to_its_queue(qm: QueueManager) -> None:
    bodies = put_group(qm, SIZES[-1])
    for message in qm.get_group("Q"):
        assert message.body == bodies[0]
        break
    assert (qm.depth("Q"), qm.inspect.units()) == (len(bodies), [])
    got = list(qm.get_group("Q"))
    assert [message.body for message in got] == bodies
    assert {message.backout_count for message in got} == {1}


SETTLE: dict[str, Callable[[QueueManager], object]] = {
    "commit": lambda qm: qm.commit(),
    "back out": lambda qm: qm.back_out(),
    "prepare": lambda qm: qm.prepare("U"),
}


@pytest.mark.parametrize("ending", SETTLE)
def test_reading_on_after_the_unit_was_settled_raises_an_error(qm: QueueManager, ending: str) -> None:
    put_group(qm, SIZES[-1])
    qm.put("Q", b"work", syncpoint=True)
    members = qm.get_group("Q")
    for _ in range(PAGE_MESSAGES):
        next(members)
    SETTLE[ending](qm)
    qm.put("Q", b"another unit", syncpoint=True)
    with pytest.raises(UnitNotFound, match="before you settle"):
        next(members)


ENDS: dict[type[InorderError], Callable[[QueueManager], None]] = {
    ConnectionClosed: lambda other: other.internals.abandon(),
    ConnectionBroken: lambda other: store_of(other).disconnect(other.internals.owner),
}


@pytest.mark.parametrize("error", ENDS)
def test_reading_on_after_the_connection_has_ended_raises_an_error(qm: QueueManager, error: type[InorderError]) -> None:
    put_group(qm, SIZES[-1])
    other = qm.connect()
    members = other.get_group("Q")
    next(members)
    ENDS[error](other)
    with pytest.raises(error):
        list(members)
    assert qm.depth("Q") == SIZES[-1]
    other.internals.abandon()


def test_a_strict_reader_takes_no_large_group_after_an_unfinished_one(qm: QueueManager) -> None:
    qm.alter_queue("Q", read_order="strict")
    qm.put("Q", b"unfinished", flags=IN_GROUP, group_id=b"u")
    bodies = put_group(qm, SIZES[-1])
    with pytest.raises(OrderPending):
        next(qm.get_group("Q"))
    qm.put("Q", b"finished", flags=LAST_IN_GROUP, group_id=b"u", sequence_number=2)
    assert [message.body for message in qm.get_group("Q")] == [b"unfinished", b"finished"]
    assert [message.body for message in qm.get_group("Q")] == bodies


def test_a_large_group_that_exceeds_the_limit_of_a_unit_stays_on_its_queue(qm: QueueManager) -> None:
    size = SIZES[-1]
    put_group(qm, size)
    qm.admin.alter_manager(max_uncommitted=size - 1)
    with pytest.raises(inorder.errors.UnitTooLarge):
        next(qm.get_group("Q"))
    assert (qm.depth("Q"), qm.inspect.units()) == (size, [])


def test_a_large_group_with_a_duplicate_and_a_missing_member_is_not_got(qm: QueueManager) -> None:
    size = SIZES[-1]
    numbers = [1, 1, *range(3, size + 1)]
    qm.put_many(
        "Q",
        [
            inorder.Message(b"x", group_id=b"G", sequence_number=n, flags=LAST_IN_GROUP if n == size else IN_GROUP)
            for n in numbers
        ],
    )
    with pytest.raises(NoMessageAvailable):
        next(qm.get_group("Q"))
    assert qm.depth("Q") == size
