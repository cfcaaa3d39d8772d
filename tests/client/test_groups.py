"""Whole groups: a block that puts one, a loop that gets one."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from tests.helpers.support import bodies, put_group

from inorder import Flags, GroupWriter, Message, QueueManager, Reason
from inorder.errors import CallerError, InconsistentCall, InorderError, UnitTooLarge, WrongState
from inorder.model.message import LAST_IN_GROUP, LAST_SEGMENT, NO_ID, SEGMENT, SEGMENTATION_ALLOWED

GROUP = b"G".ljust(24, b"\0")


def statuses(qm: QueueManager, **keywords: Any) -> list[tuple[bytes, int, str]]:
    return [(one.body, one.sequence_number, one.group_status) for one in qm.browse("Q", **keywords)]


def fail_after(qm: QueueManager, *several: bytes) -> GroupWriter:
    """Puts messages into a group whose block then raises."""
    with qm.group("Q") as group:
        for body in several:
            group.put(body)
        raise ZeroDivisionError


def got(qm: QueueManager, **keywords: Any) -> list[bytes]:
    return [message.body for message in qm.get_group("Q", **keywords)]


# ---- a block that puts a group


def test_leaving_the_block_closes_the_group(qm: QueueManager) -> None:
    with qm.group("Q") as group:
        assert group.group_id == NO_ID
        first = group.put(b"1")
        assert group.group_id == first.group_id != NO_ID
        group.put(Message(b"2", priority=0))
        assert bodies(qm) == []
    assert statuses(qm) == [(b"1", 1, "in"), (b"2", 2, "last")]
    assert {message.group_id for message in qm.browse("Q")} == {group.group_id}
    assert qm.inspect.units() == []


def test_an_empty_block_puts_nothing(qm: QueueManager) -> None:
    with qm.group("Q") as group:
        pass
    assert group.group_id == NO_ID
    assert (qm.depth("Q"), qm.inspect.units()) == (0, [])
    put_group(qm, b"1")


def test_inside_a_unit_the_group_is_part_of_it(qm: QueueManager) -> None:
    with qm.unit_of_work():
        put_group(qm, b"1", b"2")
        qm.put("Q", b"x")
        assert bodies(qm) == []
        assert qm.inspect.units()[0].puts == 3
    assert statuses(qm) == [(b"1", 1, "in"), (b"2", 2, "last"), (b"x", 1, "no")]


def test_an_exception_in_the_block_of_a_group_puts_nothing(qm: QueueManager) -> None:
    with pytest.raises(ZeroDivisionError):
        fail_after(qm, b"1")
    assert (qm.depth("Q"), qm.inspect.units()) == (0, [])
    put_group(qm, b"2")
    assert statuses(qm) == [(b"2", 1, "last")]


def test_an_exception_inside_a_unit_marks_no_message_as_the_last(qm: QueueManager) -> None:
    with qm.unit_of_work(), pytest.raises(ZeroDivisionError):
        fail_after(qm, b"1")
    assert statuses(qm) == [(b"1", 1, "in")]


def test_a_put_can_mark_its_message_as_the_last_of_the_group(qm: QueueManager) -> None:
    with qm.group("Q") as group:
        group.put(b"1")
        group.put(b"2", last=True)
        with pytest.raises(CallerError, match="2241"):
            group.put(b"3")
    with pytest.raises(CallerError, match="2241"):
        group.put(b"after the block")
    assert (statuses(qm), qm.inspect.units()) == ([(b"1", 1, "in"), (b"2", 2, "last")], [])


def test_a_committed_message_cannot_be_marked_as_the_last(qm: QueueManager) -> None:
    def put_and_commit() -> None:
        with qm.group("Q") as group:
            group.put(b"1")
            qm.commit()

    with pytest.raises(WrongState):
        put_and_commit()
    assert statuses(qm) == [(b"1", 1, "in")]


def test_all_pieces_of_the_last_message_are_marked(qm: QueueManager) -> None:
    qm.alter_queue("Q", max_length=16)
    with qm.group("Q") as group:
        group.put(b"1")
        group.put(bytes(40), flags=SEGMENTATION_ALLOWED)
    found = [(one.sequence_number, one.offset, one.group_status, one.segment_status) for one in qm.browse("Q")]
    assert found == [(1, 0, "in", "no"), (2, 0, "last", "in"), (2, 16, "last", "in"), (2, 32, "last", "last")]


def test_segments_can_be_put_in_a_group(qm: QueueManager) -> None:
    with qm.group("Q") as group:
        group.put(b"one", flags=SEGMENT)
        group.put(b"two", flags=Flags.LAST_SEGMENT)
        group.put(b"three", flags=SEGMENT, last=True)
        group.put(b"four", flags=LAST_SEGMENT, last=True)
    found = [(one.sequence_number, one.offset, one.flags) for one in qm.browse("Q")]
    assert found == [(1, 0, 8 + 2), (1, 3, 8 + 4 + 2), (2, 0, 16 + 8 + 2), (2, 5, 16 + 8 + 4 + 2)]
    assert got(qm) == [b"onetwo", b"threefour"]


def test_a_block_that_ends_within_a_segmented_message_puts_nothing(qm: QueueManager) -> None:
    def put_half() -> None:
        with qm.group("Q") as group:
            group.put(b"1")
            group.put(b"two", flags=SEGMENT)

    with pytest.raises(InconsistentCall, match="2242"):
        put_half()
    assert (qm.depth("Q"), qm.inspect.units()) == (0, [])


def test_a_group_inside_a_group_is_another_group(qm: QueueManager) -> None:
    with qm.group("Q") as group:
        group.put(b"1")
        put_group(qm, b"x")
        qm.put("Q", b"other")
        group.put(b"2")
    assert statuses(qm) == [(b"1", 1, "in"), (b"x", 1, "last"), (b"other", 1, "no"), (b"2", 2, "last")]


def test_a_group_whose_unit_was_backed_out_cannot_be_continued(qm: QueueManager) -> None:
    with contextlib.suppress(KeyError), qm.group("Q") as group:
        group.put(b"1")
        qm.back_out()
        with pytest.raises(InconsistentCall, match="backed out"):
            group.put(b"2")
        raise KeyError("the caller gives up")
    assert statuses(qm) == []
    assert qm.inspect.units() == []


def test_a_put_in_a_group_refuses_syncpoint_logical_and_bad_flags(qm: QueueManager) -> None:
    with qm.group("Q") as group:
        for name, value in (("syncpoint", False), ("logical", False), ("flags", "last")):
            options: Any = {name: value}
            with pytest.raises(InorderError, match=name):
                group.put(b"1", **options)
        group.put(b"2")
    assert statuses(qm) == [(b"2", 1, "last")]


# ---- a loop that gets a group


def test_a_failing_loop_over_a_group_backs_out_its_gets_and_puts(qm: QueueManager) -> None:
    qm.create_queue("OUT")
    put_group(qm, b"1", b"2")

    def pass_on(*, fail: bool) -> None:
        for message in qm.get_group("Q"):
            qm.put("OUT", message.body)
            if fail and message.group_status == "last":
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        pass_on(fail=True)
    assert (bodies(qm), qm.depth("OUT")) == ([b"1", b"2"], 0)
    pass_on(fail=False)
    assert (qm.depth("Q"), bodies(qm, "OUT")) == (0, [b"1", b"2"])


def test_a_group_loop_left_early_inside_a_unit_keeps_the_whole_group_in_the_unit(qm: QueueManager) -> None:
    put_group(qm, b"1", b"2")
    with qm.unit_of_work() as unit:
        next(qm.get_group("Q"))
        assert (bodies(qm), qm.inspect.units()[0].gets) == ([], 2)
        unit.back_out()
    assert bodies(qm) == [b"1", b"2"]


def test_a_handle_inside_a_group_cannot_get_another(qm: QueueManager) -> None:
    put_group(qm, b"1", b"2")
    assert qm.get("Q", logical=True).body == b"1"
    with pytest.raises(InconsistentCall, match="2241"):
        got(qm)
    assert qm.get("Q", logical=True).body == b"2"


@pytest.mark.parametrize("limit", [1, 2])
def test_a_group_too_large_for_the_unit_stays_whole_on_the_queue(qm: QueueManager, limit: int) -> None:
    put_group(qm, b"1", b"2", b"3")
    qm.admin.alter_manager(max_uncommitted=limit)
    with pytest.raises(UnitTooLarge, match="2024"):
        got(qm)
    assert (bodies(qm), qm.inspect.units()) == ([b"1", b"2", b"3"], [])
    qm.admin.alter_manager(max_uncommitted=3)
    assert got(qm) == [b"1", b"2", b"3"]


def test_a_group_with_segments_that_cannot_be_joined_is_got_whole_or_not_at_all(qm: QueueManager) -> None:
    for n, encoding in enumerate((546, 273, 273)):
        flags = LAST_IN_GROUP | (LAST_SEGMENT if n == 2 else SEGMENT)
        qm.put("Q", b"%d" % n, group_id=GROUP, offset=n, flags=flags, encoding=encoding)
    qm.admin.alter_manager(max_uncommitted=2)
    with qm.unit_of_work(), pytest.raises(UnitTooLarge):
        got(qm)
    assert bodies(qm) == [b"0", b"1", b"2"]
    qm.admin.alter_manager(max_uncommitted=3)
    found = [(message.body, message.warning) for message in qm.get_group("Q")]
    assert found == [(b"0", Reason.INCONSISTENT_ENCODINGS), (b"1", None), (b"2", None)]
    assert qm.depth("Q") == 0
