"""Browse loops tell their position and continue from a token; marks and message tokens (mq-semantics 3.11, R3.24)."""

from __future__ import annotations

import gc

import pytest
from tests.helpers.support import waiting

from inorder import FOREVER, Flags, Match, NoMessageAvailable, OrderPending, Queue, QueueManager
from inorder.errors import ObjectInUse, QueueCondition
from inorder.rules.ordering import ReadOrder
from inorder.testing import ManualClock

G = b"G".ljust(24, b"\0")


def put(qm: QueueManager, *bodies: str) -> None:
    """Puts messages. Bodies such as g1 are members of group G, and g3. is its last member; others are in no group."""
    for body in bodies:
        if body.startswith("g"):
            flags = Flags.LAST_IN_GROUP if body.endswith(".") else Flags.IN_GROUP
            number = int(body[1:].rstrip("."))
            qm.put("Q", body.rstrip(".").encode(), group_id=G, sequence_number=number, flags=flags)
        else:
            qm.put("Q", body.encode())


def bodies(messages: object) -> list[str]:
    return [message.body.decode() for message in messages]  # type: ignore[attr-defined]


ORDERS: list[ReadOrder] = ["strict", "relaxed"]


@pytest.mark.parametrize("read_order", ORDERS)
def test_a_loop_that_ends_inside_a_group_names_what_it_awaits(qm: QueueManager, read_order: ReadOrder) -> None:
    put(qm, "g1", "g2", "x")
    browsing = qm.browse("Q", logical=True, read_order=read_order)
    assert bodies(browsing) == ["g1", "g2"]
    assert browsing.awaits == (G, 3, 0)


def test_a_loop_that_ends_inside_a_segmented_message_names_the_awaited_segment(qm: QueueManager) -> None:
    qm.put("Q", b"abc", group_id=G, flags=Flags.SEGMENT)
    browsing = qm.browse("Q", logical=True)
    assert bodies(browsing) == ["abc"]
    assert browsing.awaits == (G, 1, 3)


def test_a_loop_says_what_it_awaits_while_it_runs(qm: QueueManager) -> None:
    put(qm, "g1", "g2.", "x")
    browsing = qm.browse("Q", logical=True)
    found = [(message.body, browsing.awaits) for message in browsing]
    assert found == [(b"g1", (G, 2, 0)), (b"g2", None), (b"x", None)]


def test_a_withheld_loop_raises_with_its_token_and_can_be_continued_from_it(qm: QueueManager) -> None:
    put(qm, "a")
    writer = qm.connect()
    writer.put("Q", b"b", syncpoint=True)
    put(qm, "c")
    browsing = qm.browse("Q", read_order="strict")
    assert next(browsing).body == b"a"
    with pytest.raises(OrderPending) as pending:
        next(browsing)
    assert pending.value.token == browsing.token
    with pytest.raises(OrderPending) as again:
        next(qm.browse("Q", after=pending.value.token))
    writer.commit()
    assert bodies(qm.browse("Q", after=again.value.token)) == ["b", "c"]


@pytest.mark.every_store
def test_a_token_remembers_the_group_and_the_logical_order(qm: QueueManager) -> None:
    put(qm, "x", "g1", "g3.", "y")
    browsing = qm.browse("Q", logical=True, read_order="strict")
    assert bodies(browsing) == ["x", "g1"]
    assert browsing.awaits == (G, 2, 0)
    put(qm, "g2")
    assert bodies(qm.browse("Q", after=browsing.token)) == ["g2", "g3", "y"]


def test_a_relaxed_loop_has_no_token(qm: QueueManager) -> None:
    put(qm, "a")
    browsing = qm.browse("Q")
    next(browsing)
    assert browsing.token is None
    assert bodies(browsing) == []
    assert browsing.token is None


def test_the_handle_of_a_loop_is_closed_with_it(qm: QueueManager) -> None:
    put(qm, "a", "b")
    browsing = qm.browse("Q")
    next(browsing)
    qm.close_queue("Q")
    with pytest.raises(ObjectInUse):
        qm.delete_queue("Q", purge=True)
    browsing.close()
    qm.delete_queue("Q", purge=True)


def test_a_loop_that_the_collector_ends_inside_another_call_is_closed_by_the_next(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(qm, "a", "b")
    browsing = qm.browse("Q")
    next(browsing)
    ring: list[object] = [browsing]
    ring.append(ring)  # only the garbage collector can find it unused
    listing = qm._store.queues

    def collecting() -> object:
        gc.collect()
        return listing()

    monkeypatch.setattr(qm._store, "queues", collecting)
    gc.disable()
    try:
        del browsing, ring
        qm.queues()
    finally:
        gc.enable()
    qm.close_queue("Q")
    qm.delete_queue("Q", purge=True)  # raises if the queue is still open


def test_a_browse_that_leaves_its_group_continues_after_the_last_member_read(qm: QueueManager) -> None:
    put(qm, "a", "g1", "x")
    with qm.open("Q", browse=True, input="shared") as queue:
        browsing = queue.browse(logical=True, read_order="strict")
        assert bodies(browsing) == ["a", "g1"]
        assert not queue.leave_group()
        assert queue.leave_group(browsing=True)
        assert queue.browse_next(logical=True, read_order="strict").body == b"x"


def co_op(qm: QueueManager) -> Queue:
    return qm.open("Q", browse=True, co_op=True)


def test_r3_74_the_mark_of_a_handle_ends_on_request_and_not_with_the_mark_of_the_set(qm: QueueManager) -> None:
    qm.put("Q", b"1")
    one, plain = co_op(qm), qm.open("Q", browse=True)
    one.browse_first(mark_handle=True, mark_co_op=True)
    one.browse_first(unmark_co_op=True)
    assert plain.browse_first(unmarked=True, mark_handle=True).body == b"1"
    for handle in (one, plain):
        with pytest.raises(NoMessageAvailable):
            handle.browse_first(unmarked=True)
        assert handle.browse_first(unmark_handle=True).body == b"1"
        assert handle.browse_first(unmarked=True).body == b"1"


def test_r3_74_cooperative_marks_without_interval_end_on_request_or_with_the_set(
    qm: QueueManager, clock: ManualClock
) -> None:
    qm.admin.alter_manager(mark_interval=None)
    qm.put("Q", b"1")
    one, other = co_op(qm), co_op(qm)
    one.browse_first(mark_co_op=True)
    with pytest.raises(NoMessageAvailable):
        other.browse_first(unmarked=True)
    other.browse_first(unmark_co_op=True)
    assert one.browse_first(unmarked=True, mark_co_op=True).body == b"1"
    one.close()
    clock.advance(1e9)
    with pytest.raises(NoMessageAvailable):
        other.browse_first(unmarked=True)
    other.close()
    assert co_op(qm).browse_first(unmarked=True).body == b"1"


@pytest.mark.every_store
@pytest.mark.parametrize("ends", ["by itself", "by hand"])
def test_a_browser_that_waits_for_an_unmarked_message_is_woken_when_a_mark_ends(
    qm: QueueManager, clock: ManualClock, ends: str
) -> None:
    """R3.74, B-28."""
    qm.admin.alter_manager(mark_interval=7.0)
    qm.put("Q", b"1")
    marker = co_op(qm)
    marker.browse_first(mark_co_op=True)
    other = qm.connect()
    browser = co_op(other)
    call = waiting(other, lambda: browser.browse_first(unmarked=True, wait=FOREVER).body)
    clock.advance(5.0)
    call.sleeps(other)
    clock.advance(2.0) if ends == "by itself" else marker.browse_first(unmark_co_op=True)
    assert call.result() == b"1"


def test_r3_24_a_token_of_a_message_that_the_set_has_marked_is_2200(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2"])
    one, other = co_op(qm), co_op(qm)
    token = one.browse_first(mark_co_op=True).token
    with pytest.raises(QueueCondition, match="2200"):
        other.browse_first(unmarked=True, match=Match(token=token))
    assert other.browse_first(match=Match(token=token)).body == b"1"


@pytest.mark.parametrize("is_own_mark", [True, False], ids=["a mark of the handle", "before the cursor"])
def test_r3_24_only_a_mark_of_the_set_is_2200(qm: QueueManager, is_own_mark: bool) -> None:
    qm.put_many("Q", [b"1", b"2"])
    handle = co_op(qm)
    token = handle.browse_first(mark_handle=is_own_mark).token
    if not is_own_mark:
        handle.browse_next()
    browse = handle.browse_first if is_own_mark else handle.browse_next
    with pytest.raises(NoMessageAvailable):
        browse(unmarked=True, match=Match(token=token))
