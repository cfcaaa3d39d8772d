"""Leases of lock ids (A-19), locks of some, and unique ids, as far as the scenario tables have no word for them."""

from __future__ import annotations

from typing import Literal

import pytest
from tests.helpers.support import looks_once

from inorder import GetOptions, Match, OpenOptions, QueueManager, connect
from inorder.errors import NotFound
from inorder.rules.grouping import NOTHING_OPEN
from inorder.rules.ordering import UNSET
from inorder.stores.seam.records import GetRequest
from inorder.testing import ManualClock
from inorder.testing.stores import RestartableStore


@pytest.mark.every_store
def test_the_operator_sees_when_a_lease_ends(qm: QueueManager, clock: ManualClock) -> None:
    qm.put_many("Q", [b"1", b"2"])
    began = clock.now()
    first = qm.browse_and_lock("Q", most=1, lease=5)
    second = qm.browse_and_lock("Q")
    seen = {lock.lock_id: lock.lease_ends_at for lock in qm.inspect.locks()}
    assert seen == {first.lock_id: began + 5, second.lock_id: None}
    clock.advance(5)
    assert qm.admin.discard_expired() == 0, "it counts messages that are discarded"
    assert [lock.lock_id for lock in qm.inspect.locks()] == [second.lock_id]
    assert [unit.name for unit in qm.inspect.units()] == [str(second.lock_id)]
    assert [sight.state for sight in qm.inspect.look("Q")] == ["available", "locked"]


@pytest.mark.every_store
def test_housekeeping_ends_the_leases_of_queues_that_nobody_touches(qm: QueueManager, clock: ManualClock) -> None:
    for name in ("A", "B"):
        qm.create_queue(name)
        qm.put(name, b"1")
        qm.browse_and_lock(name, lease=5 if name == "A" else 6)
    clock.advance(5)
    qm.connect().close()
    states = {name: [sight.state for sight in qm.inspect.look(name)] for name in ("A", "B")}
    assert states == {"A": ["available"], "B": ["locked"]}


def test_an_operator_who_looks_at_order_sees_no_lock_whose_lease_is_over(qm: QueueManager, clock: ManualClock) -> None:
    qm.put("Q", b"1")
    qm.browse_and_lock("Q", lease=5)
    assert qm.inspect.order_view("Q").pending_out == 1
    clock.advance(5)
    assert qm.inspect.order_view("Q").pending_out == 0


def looks_again_at(qm: QueueManager, options: GetOptions) -> float | None:
    """When the store wants a call to look again that is given nothing and would wait."""
    handle = qm._store.open(qm.internals.owner, "Q", OpenOptions(input="shared")).handle
    request = GetRequest(handle, options, NOTHING_OPEN, UNSET, syncpoint=False)
    outcome, again_at = looks_once(qm, request)
    assert outcome.messages == []
    return again_at


@pytest.mark.every_store
@pytest.mark.parametrize("read_order", ["relaxed", "strict"])
def test_who_waits_looks_again_when_the_next_lease_ends(
    qm: QueueManager, clock: ManualClock, read_order: Literal["relaxed", "strict"]
) -> None:
    began, waits = clock.now(), GetOptions(wait=60, read_order=read_order, match=Match(correlation_id=b"none"))
    qm.put_many("Q", [b"1", b"2", b"3"])
    qm.browse_and_lock("Q", most=1)
    assert looks_again_at(qm, waits) is None
    qm.browse_and_lock("Q", most=1, lease=9)
    qm.browse_and_lock("Q", most=1, lease=5)
    assert looks_again_at(qm, waits) == began + 5
    clock.advance(5)
    assert looks_again_at(qm, waits) == began + 9
    clock.advance(4)
    assert looks_again_at(qm, waits) is None


@pytest.mark.every_store
def test_a_prepared_get_goes_on_without_its_lock(store: RestartableStore, clock: ManualClock) -> None:
    with connect(store) as qm:
        qm.create_queue("Q")
        qm.put_many("Q", [b"1", b"2"])
        locked = qm.browse_and_lock("Q", lease=5)
        for _ in range(2):
            qm.get("Q", lock_id=locked.lock_id, syncpoint=True)
            qm.prepare(f"unit {len(qm.inspect.units())}")
        names = [unit.name for unit in qm.inspect.units() if unit.kind == "prepared"]
    store.restart()
    clock.advance(5)
    with connect(store) as qm:
        qm.settle(names[0], "commit")
        qm.settle(names[1], "back_out")
        assert [(one.body, one.backout_count) for one in qm.browse("Q")] == [(b"2", 1)]
        with pytest.raises(NotFound):
            qm.inspect.unique_ids("Q", lock_id=locked.lock_id)


@pytest.mark.every_store
def test_a_queue_with_a_lease_can_be_cleared_and_deleted(qm: QueueManager, clock: ManualClock) -> None:
    qm.create_queue("A")
    qm.put("A", b"1")
    qm.browse_and_lock("A", lease=5)
    qm.close_queue("A")
    assert qm.admin.clear_queue("A") == 1
    assert qm.inspect.locks() == []
    qm.put("A", b"1")
    qm.browse_and_lock("A", lease=5)
    qm.close_queue("A")
    qm.delete_queue("A", purge=True)
    clock.advance(5)
    assert qm.admin.discard_expired() == 0
