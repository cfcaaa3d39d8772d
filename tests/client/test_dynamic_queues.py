"""Models, and the dynamic queues that opening one makes (mq-semantics R4.1 to R4.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.helpers.support import bodies

from inorder import Queue, QueueManager, UnknownQueue, connect
from inorder.errors import ArgumentError, ObjectInUse, QueueDeleted, QueueNotEmpty, WrongQueueType
from inorder.model.attributes import QUEUE_ATTRIBUTES
from inorder.testing.stores import RestartableStore

SHARED: dict[str, Any] = {"shareable": True, "default_input": "shared"}


@pytest.fixture
def qm(store: RestartableStore) -> Iterator[QueueManager]:
    with connect(store, program="test") as manager:
        manager.create_queue("TEMPORARY", type="model", **SHARED)
        manager.create_queue("PERMANENT", type="model", definition_type="permanent_dynamic", **SHARED)
        yield manager


def names(qm: QueueManager) -> list[str]:
    return [queue.name for queue in qm.queues() if queue.type == "local"]


def test_opening_a_model_makes_a_queue_with_its_attributes(qm: QueueManager) -> None:
    qm.alter_queue("PERMANENT", max_depth=5, delivery="fifo", description="replies")
    handle = qm.open("PERMANENT")
    model, made = qm.attributes("PERMANENT"), qm.attributes(handle.name)
    assert made.type == "local"
    for name in QUEUE_ATTRIBUTES:
        assert name in ("name", "type") or getattr(made, name) == getattr(model, name), name
    assert handle.attributes() == made


def test_a_queue_outlives_the_model_that_it_was_made_from(qm: QueueManager) -> None:
    handle = qm.open("PERMANENT")
    qm.delete_queue("PERMANENT")
    handle.put(b"1")
    assert bodies(qm, handle.name) == [b"1"]
    with pytest.raises(UnknownQueue):
        qm.open("PERMANENT")


def test_r4_2_a_name_with_a_star_is_completed(qm: QueueManager) -> None:
    made = [qm.open("TEMPORARY", dynamic_name="REPLY.*").name for _ in range(3)]
    assert len(set(made)) == 3
    assert all(name.startswith("REPLY.") and 6 < len(name) <= 48 for name in made)
    assert qm.open("TEMPORARY", dynamic_name="N" * 48).name == "N" * 48
    prefix = "P" * 33
    longest = qm.open("TEMPORARY", dynamic_name=f"{prefix}*").name
    assert longest.startswith(prefix)
    assert 33 < len(longest) <= 48


def end(how: str, manager: QueueManager, handle: Queue) -> None:
    if how == "close the handle":
        handle.close()
    elif how == "close":
        manager.close()
    else:
        manager.internals.abandon()


@pytest.mark.every_store
@pytest.mark.parametrize("ending", ["close the handle", "close", "abandon"])
def test_r4_3_a_temporary_queue_is_deleted_with_the_handle_that_made_it_a_permanent_one_is_not(
    qm: QueueManager, ending: str
) -> None:
    for model in ("TEMPORARY", "PERMANENT"):
        other = qm.connect()
        handle = other.open(model, dynamic_name="REPLY")
        handle.put(b"1")
        assert qm.depth("REPLY") == 1
        end(ending, other, handle)
        if model == "TEMPORARY":
            with pytest.raises(UnknownQueue):
                qm.depth("REPLY")
    message = qm.get("REPLY")
    assert (message.body, message.persistent) == (b"1", True)


def test_r4_3_a_temporary_queue_outlives_the_handles_of_others(qm: QueueManager) -> None:
    creator = qm.open("TEMPORARY", dynamic_name="REPLY")
    with qm.connect() as other, other.open("REPLY", output=True) as handle:
        handle.put(b"1")
    with qm.open("REPLY") as handle:
        assert handle.browse_first().body == b"1"
    assert creator.get().body == b"1"


AFTER: dict[str, Callable[[Queue], object]] = {
    "put": lambda handle: handle.put(b"x"),
    "get": lambda handle: handle.get(),
    "browse_cursor": lambda handle: handle.browse_cursor(),
    "unlock": lambda handle: handle.unlock(),
    "attributes": lambda handle: handle.attributes(),
    "set": lambda handle: handle.set(get_allowed=False),
}


@pytest.mark.parametrize("made_again", [False, True])
@pytest.mark.parametrize("call", AFTER.values(), ids=AFTER)
def test_r4_3_other_handles_of_a_deleted_temporary_queue_report_that_it_is_deleted(
    qm: QueueManager, call: Callable[[Queue], object], made_again: bool
) -> None:
    creator = qm.open("TEMPORARY", dynamic_name="REPLY")
    other = qm.open("REPLY")
    creator.close()
    if made_again:
        qm.create_queue("REPLY")
        qm.put("REPLY", b"1")
    with pytest.raises(QueueDeleted, match="2052"):
        call(other)
    if made_again:
        assert bodies(qm, "REPLY") == [b"1"]
    other.close()


@pytest.mark.every_store
def test_r4_3_a_unit_of_work_on_a_deleted_queue_can_be_committed(qm: QueueManager) -> None:
    qm.create_queue("Q")
    creator = qm.open("TEMPORARY", dynamic_name="REPLY")
    with qm.unit_of_work():
        qm.put("REPLY", b"1")
        qm.put("Q", b"2")
        creator.close()
    assert bodies(qm, "Q") == [b"2"]
    assert qm.inspect.units() == []


def test_r1_5_a_temporary_queue_takes_no_persistent_message(qm: QueueManager) -> None:
    handle = qm.open("TEMPORARY")
    with pytest.raises(ArgumentError, match="persistent") as raised:
        handle.put(b"1", persistent=True)
    assert raised.value.reason == 2048
    handle.put(b"2")
    assert handle.get().persistent is False


def test_r1_5_an_alias_of_a_temporary_queue_also_refuses_persistent_messages(qm: QueueManager) -> None:
    qm.open("TEMPORARY", dynamic_name="REPLY")
    qm.create_queue("A", type="alias", base_queue="REPLY")
    with pytest.raises(ArgumentError, match="2048"):
        qm.put("A", b"1")
    qm.put("A", b"2", persistent=False)
    assert bodies(qm, "REPLY") == [b"2"]


def test_r4_3_a_queue_with_messages_is_2055_unless_purged(qm: QueueManager) -> None:
    handle = qm.open("PERMANENT", dynamic_name="KEEP")
    handle.put(b"1")
    with pytest.raises(QueueNotEmpty, match="2055"):
        handle.close(delete=True)
    assert (handle.closed, handle.browse_first().body) == (False, b"1")
    handle.close(purge=True)
    assert (names(qm), handle.closed) == ([], True)


@pytest.mark.parametrize("act", ["put", "get", "prepare"])
@pytest.mark.parametrize("option", ["delete", "purge"])
def test_r4_3_a_queue_with_uncommitted_work_is_2055_even_if_purged(qm: QueueManager, act: str, option: str) -> None:
    handle = qm.open("PERMANENT", dynamic_name="KEEP")
    if act != "get":
        handle.put(b"1", syncpoint=True)
        if act == "prepare":
            qm.prepare("P")
    else:
        handle.put(b"1")
        handle.get(syncpoint=True)
    keywords: Any = {option: True}
    with pytest.raises(QueueNotEmpty, match="2055"):
        handle.close(**keywords)
    if act == "prepare":
        qm.settle("P", "back_out")
    qm.back_out()
    handle.close(purge=True)
    assert names(qm) == []


@pytest.mark.parametrize("option", ["delete", "purge"])
def test_r4_3_a_queue_that_is_open_elsewhere_is_2042(qm: QueueManager, option: str) -> None:
    handle = qm.open("PERMANENT", dynamic_name="KEEP")
    other = qm.open("KEEP", browse=True)
    keywords: Any = {option: True}
    with pytest.raises(ObjectInUse, match="2042"):
        handle.close(**keywords)
    assert not handle.closed
    other.close()
    handle.close(**keywords)
    assert names(qm) == []


@pytest.mark.parametrize("option", ["delete", "purge"])
def test_r4_3_a_close_that_deletes_a_temporary_queue_is_one_by_its_maker_whatever_is_there(
    qm: QueueManager, option: str
) -> None:
    creator = qm.open("TEMPORARY", dynamic_name="REPLY")
    other = qm.open("REPLY")
    other.put(b"1")
    creator.put(b"2", syncpoint=True)
    keywords: Any = {option: True}
    with pytest.raises(WrongQueueType, match="2045"):
        other.close(**keywords)
    assert not other.closed
    creator.close(**keywords)
    assert (names(qm), creator.closed) == ([], True)
    with pytest.raises(QueueDeleted, match="2052"):
        other.put(b"3")
    qm.commit()
    assert qm.inspect.units() == []


def test_opening_a_model_beyond_the_handle_limit_makes_no_queue(qm: QueueManager) -> None:
    qm.admin.alter_manager(max_handles=1)
    qm.open("TEMPORARY")
    before = names(qm)
    with pytest.raises(Exception, match="2017"):
        qm.open("TEMPORARY")
    assert names(qm) == before
