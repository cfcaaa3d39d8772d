"""Clearing a queue: everything goes that no unit of work holds, from a queue that nobody has open (MQSC's CLEAR)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from inorder import Flags, Match, QueueManager
from inorder.errors import ObjectInUse, QueueNotEmpty
from inorder.stores.engine import clearing
from inorder.stores.engine.clearing import ClearingVerbs
from inorder.stores.engine.operation import Operation
from inorder.stores.engine.queue import LocalQueue


@pytest.mark.every_store
def test_all_messages_go_and_the_queue_works_as_before(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2", b"3"])
    qm.put("Q", b"later", delay=1000)
    qm.put("Q", b"large" * 100_000, priority=7)
    qm.close_queue("Q")
    assert (qm.admin.clear_queue("Q"), qm.depth("Q")) == (5, 0)
    assert qm.admin.clear_queue("Q") == 0
    qm.put("Q", b"again")
    message = qm.get("Q")
    assert (message.body, message.place and message.place.number) == (b"again", 6), "numbers do not return (B-2)"


@pytest.mark.parametrize("act", ["clear", "delete"])
def test_what_the_connection_opened_for_calls_by_name_is_in_nobodys_way(qm: QueueManager, act: str) -> None:
    qm.create_queue("A", type="alias", base_queue="Q")
    qm.put("Q", b"1")
    qm.put("A", b"2")
    if act == "delete":
        qm.delete_queue("Q", purge=True)
        assert [queue.name for queue in qm.queues()] == ["A"]
        return
    assert qm.admin.clear_queue("Q") == 2
    qm.put("A", b"3")
    assert qm.get("Q").body == b"3"


def test_a_handle_by_name_that_is_inside_a_group_is_not_closed(qm: QueueManager) -> None:
    qm.put("Q", b"1", logical=True, flags=Flags.IN_GROUP)
    with pytest.raises(ObjectInUse, match="close_queue"):
        qm.admin.clear_queue("Q")
    qm.put("Q", b"2", logical=True, flags=Flags.LAST_IN_GROUP)
    assert qm.admin.clear_queue("Q") == 2


@pytest.mark.every_store
def test_what_a_unit_of_work_holds_keeps_all_the_rest_too(qm: QueueManager) -> None:
    qm.put("Q", b"plain")
    qm.put("Q", b"uncommitted", confirm_id=7)
    qm.close_queue("Q")
    with pytest.raises(QueueNotEmpty):
        qm.admin.clear_queue("Q")
    assert qm.depth("Q") == 2


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Callable[[], object]]]:
    """A clear takes two messages at a time; what is in this list is called before its second step."""
    calls: list[Callable[[], object]] = []
    more = ClearingVerbs._clear_more

    def clear_more(self: ClearingVerbs, number: int, upto: int) -> int:
        while calls:
            calls.pop()()
        return more(self, number, upto)

    monkeypatch.setattr(clearing, "STEP", 2)
    monkeypatch.setattr(ClearingVerbs, "_clear_more", clear_more)
    yield calls
    assert not calls


@pytest.mark.every_store
def test_others_come_between_the_steps_of_a_clear(qm: QueueManager, between: list[Callable[[], object]]) -> None:
    qm.put_many("Q", [b"1", b"2", b"3", b"4", b"5"])
    qm.close_queue("Q")
    other = qm.connect()

    def work() -> None:
        assert other.depth("Q") == 3
        assert other.get("Q", syncpoint=True).body == b"3"
        other.put("Q", b"new", priority=9)

    between.append(work)
    assert qm.admin.clear_queue("Q") == 4, "what another one holds stays, and what has come"
    other.back_out()
    assert [one.body for one in qm.browse("Q")] == [b"new", b"3"]
    assert qm.admin.check() == []


@pytest.mark.every_store
def test_an_interrupted_clear_leaves_the_rest(qm: QueueManager, between: list[Callable[[], object]]) -> None:
    qm.put_many("Q", [b"1", b"2", b"3", b"4"])
    qm.close_queue("Q")

    def interrupt() -> None:
        raise KeyboardInterrupt

    between.append(interrupt)
    with pytest.raises(KeyboardInterrupt):
        qm.admin.clear_queue("Q")
    assert (qm.depth("Q"), qm.admin.check()) == (2, [])
    qm.close_queue("Q")
    assert qm.admin.clear_queue("Q") == 2


@pytest.mark.every_store
def test_locks_that_are_cleared_in_steps_end_with_their_last_message(
    qm: QueueManager, between: list[Callable[[], object]]
) -> None:
    qm.put_many("Q", [b"1", b"2", b"3", b"4"])
    qm.browse_and_lock("Q", Match())
    qm.close_queue("Q")
    between.append(lambda: None)
    assert qm.admin.clear_queue("Q") == 4
    assert (qm.inspect.units(), qm.admin.check()) == ([], [])


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_queue_is_purged_in_steps(qm: QueueManager, monkeypatch: pytest.MonkeyPatch, dynamic: bool) -> None:
    depths: list[int] = []
    clear = clearing._clear

    def step(verb: Operation, queue: LocalQueue, upto: int) -> int:
        depths.append(queue.depth)
        return clear(verb, queue, upto)

    monkeypatch.setattr(clearing, "STEP", 2)
    monkeypatch.setattr(clearing, "_clear", step)
    qm.create_queue("M", type="model", definition_type="permanent_dynamic")
    with qm.open("M", output=True, dynamic_name="D") as handle:
        handle.put_many([b"x"] * 7)
        if dynamic:
            handle.close(purge=True)
    if not dynamic:
        qm.delete_queue("D", purge=True)
    assert depths == [7, 5, 3]
    assert [one.name for one in qm.queues()] == ["M", "Q"]
    assert qm.admin.check() == []
