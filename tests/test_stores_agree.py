"""What stores once answered differently, each case by itself: found by `tests/test_state_machine.py`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support import told

from inorder import Flags, QueueManager
from inorder.errors import QueueDeleted
from inorder.options import AskedOrder
from inorder.testing import ManualClock, temporary_manager
from inorder.testing.stores import STORES


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=sorted(STORES))
def qm(request: pytest.FixtureRequest, clock: ManualClock) -> Iterator[QueueManager]:
    with temporary_manager(request.param, clock) as manager:
        yield manager


def test_r4_3_a_queue_that_is_gone_is_not_deleted_again_at_close(qm: QueueManager) -> None:
    qm.create_model("MODEL", shareable=True, default_input="shared")
    maker = qm.open("MODEL")
    user = qm.open(maker.name)
    maker.close()
    for purge in (False, True):
        with pytest.raises(QueueDeleted):
            user.close(delete=True, purge=purge)
    user.close()


def put_group(qm: QueueManager, group_id: bytes) -> None:
    qm.put("Q", b"first", group_id=group_id, flags=Flags.IN_GROUP, sequence_number=1)
    qm.put("Q", b"last", group_id=group_id, flags=Flags.LAST_IN_GROUP, sequence_number=2)


@pytest.mark.parametrize("read_order", ["relaxed", "strict"])
def test_a_12_a_group_is_whole_for_the_reader_whose_lock_id_holds_it(qm: QueueManager, read_order: AskedOrder) -> None:
    qm.create_queue("Q")
    put_group(qm, b"G")
    lock_id = qm.browse_and_lock("Q").lock_id

    def get() -> bytes:
        return qm.get("Q", lock_id=lock_id, logical=True, all_messages=True, read_order=read_order).body

    assert [get(), get()] == [b"first", b"last"]


@pytest.mark.parametrize("read_order", ["relaxed", "strict"])
@pytest.mark.parametrize("locked", ["first", "next"])
def test_r3_69_a_group_is_whole_for_the_handle_whose_browse_locks_one_of_it(
    qm: QueueManager, read_order: AskedOrder, locked: str
) -> None:
    qm.create_queue("Q")
    put_group(qm, b"G")
    with qm.open("Q", input="shared", browse=True) as queue:
        queue.browse_first(read_order="relaxed", lock=locked == "first")
        if locked == "next":
            queue.browse_next(read_order="relaxed", lock=True)
        assert queue.get(logical=True, all_messages=True, read_order=read_order).body == b"first"


def test_r6_2_the_hook_is_told_first_of_what_expired_first(qm: QueueManager, clock: ManualClock) -> None:
    qm.create_queue("Q", delivery="fifo")
    heard: list[bytes] = []
    qm.hook("expired", lambda queue, message: heard.append(message.body))
    for body, expiry in ((b"1", 3.0), (b"2", 1.0), (b"3", 2.0), (b"4", 1.0)):
        qm.put("Q", body, expiry=expiry)
    clock.advance(5.0)
    assert qm.status("Q").current_depth == 0
    told(qm)
    assert heard == [b"2", b"4", b"3", b"1"]


def test_a_9_a_confirm_id_whose_last_message_expired_begins_anew(qm: QueueManager, clock: ManualClock) -> None:
    qm.create_queue("Q")
    qm.put("Q", b"short", expiry=5.0, confirm_id=1)
    qm.put("Q", b"long")
    clock.advance(5.0)
    assert qm.get("Q", confirm_id=1).body == b"long"
    assert [unit.started_at for unit in qm.units()] == [clock.now()]


def test_r3_51_a_message_in_segments_has_its_group_id_with_a_group(qm: QueueManager) -> None:
    """Of several with one place in a group the first counts, be it in a group or not."""
    qm.create_queue("Q")
    qm.put("Q", b"segment", group_id=b"G", flags=Flags.SEGMENT | Flags.SEGMENTATION_ALLOWED, priority=0)
    qm.put("Q", b"", group_id=b"G", flags=Flags.IN_GROUP, priority=9)
    assert qm.get("Q", logical=True, all_messages=True).body == b"segment"


def test_listeners_of_several_queues_are_told_by_the_names_of_the_queues(qm: QueueManager) -> None:
    heard: list[str] = []
    for name in ("B", "A"):
        qm.create_queue(name)
        qm.listen(name, lambda arrival: heard.append(arrival.queue))
    for name in ("A", "B", "A"):
        qm.put(name, b"", syncpoint=True)
    qm.commit()
    told(qm)
    assert heard == ["A", "A", "B"]
