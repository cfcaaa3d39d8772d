"""Clearing a queue: everything goes that no unit of work holds, from a queue that nobody has open (MQSC's CLEAR)."""

from __future__ import annotations

import pytest

from inorder import Flags, Match, ObjectInUse, QueueManager, QueueNotEmpty, UnknownQueue, WrongQueueType


@pytest.mark.every_store
def test_all_messages_go_and_the_queue_works_as_before(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2", b"3"])
    qm.put("Q", b"later", delay=1000)
    qm.put("Q", b"large" * 100_000, priority=7)
    qm.close_queue("Q")
    assert (qm.clear_queue("Q"), qm.depth("Q")) == (5, 0)
    assert qm.clear_queue("Q") == 0
    qm.put("Q", b"again")
    message = qm.get("Q")
    assert (message.body, message.place and message.place.number) == (b"again", 6), "numbers do not return (B-2)"


@pytest.mark.every_store
def test_locks_go_with_their_messages(qm: QueueManager) -> None:
    qm.put("Q", b"locked")
    qm.browse_and_lock("Q", Match())
    qm.close_queue("Q")
    assert qm.clear_queue("Q") == 1
    assert not qm.units()


def test_a_queue_that_somebody_has_open_stays_as_it_is(qm: QueueManager) -> None:
    qm.put("Q", b"1")
    for manager in (qm, qm.connect()):
        with manager.open("Q"), pytest.raises(ObjectInUse):
            qm.clear_queue("Q")
    assert qm.depth("Q") == 1


@pytest.mark.parametrize("act", ["clear", "delete"])
def test_what_the_connection_opened_for_calls_by_name_is_in_nobodys_way(qm: QueueManager, act: str) -> None:
    qm.create_alias("A", base_queue="Q")
    qm.put("Q", b"1")
    qm.put("A", b"2")
    if act == "delete":
        qm.delete_queue("Q", purge=True)
        assert [queue.name for queue in qm.queues()] == ["A"]
        return
    assert qm.clear_queue("Q") == 2
    qm.put("A", b"3")
    assert qm.get("Q").body == b"3"


def test_a_handle_by_name_that_is_inside_a_group_is_not_closed(qm: QueueManager) -> None:
    qm.put("Q", b"1", logical=True, flags=Flags.IN_GROUP)
    with pytest.raises(ObjectInUse, match="close_queue"):
        qm.clear_queue("Q")
    qm.put("Q", b"2", logical=True, flags=Flags.LAST_IN_GROUP)
    assert qm.clear_queue("Q") == 2


@pytest.mark.every_store
def test_what_a_unit_of_work_holds_keeps_all_the_rest_too(qm: QueueManager) -> None:
    qm.put("Q", b"plain")
    qm.put("Q", b"uncommitted", confirm_id=7)
    qm.close_queue("Q")
    with pytest.raises(QueueNotEmpty):
        qm.clear_queue("Q")
    assert qm.depth("Q") == 2


def test_only_a_local_queue_can_be_cleared(qm: QueueManager) -> None:
    qm.create_alias("A", base_queue="Q")
    with pytest.raises(WrongQueueType):
        qm.clear_queue("A")
    with pytest.raises(UnknownQueue):
        qm.clear_queue("QQ")
