"""Leases of units of work, which are backed out at their deadline (B-32, B-48), and of lock ids (A-19)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import pytest
from tests.helpers.support import Call, Stores, bodies, looks_once, put_group, waiting
from tests.tiers import ON_BOTH

from inorder import Flags, GetOptions, Match, OpenOptions, QueueManager, connect, errors
from inorder.client.leases import name_of
from inorder.rules.grouping import NOTHING_OPEN
from inorder.rules.ordering import UNSET
from inorder.stores.seam.records import GetRequest
from inorder.testing import ManualClock
from inorder.testing.stores import RestartableStore


def jump(clock: ManualClock, seconds: float) -> None:
    """Sets the clock without waking waiting calls."""
    clock._time += seconds


@pytest.fixture
def other(qm: QueueManager) -> QueueManager:
    return qm.connect()


@pytest.mark.every_store
def test_several_connections_can_work_under_one_lease_and_any_can_settle_it(
    qm: QueueManager, other: QueueManager
) -> None:
    qm.put("Q", b"1")
    lease = qm.lease(seconds=30)
    with lease:
        assert qm.get("Q").body == b"1"
        qm.put("Q", b"2")
    with other.resume_lease(lease.token):
        other.put("Q", b"3")
    assert (bodies(qm), qm.depth("Q")) == ([], 2)
    [unit] = qm.inspect.units()
    assert (unit.kind, unit.name, unit.puts, unit.gets, unit.queues) == ("lease", lease.name, 2, 1, ("Q",))
    assert unit.ends_at == lease.ends_at
    other.resume_lease(lease.token).commit()
    assert (bodies(qm), qm.inspect.units(), qm.admin.check()) == ([b"2", b"3"], [], [])


@pytest.mark.parametrize("act", ["put", "get", "commit", "back_out", "extend", "resume", "enter"])
def test_at_its_deadline_a_lease_is_backed_out_and_refuses_every_call(
    qm: QueueManager, clock: ManualClock, act: str
) -> None:
    qm.put_many("Q", [b"1", b"2"])
    lease = qm.lease(seconds=30)
    with lease:
        qm.get("Q")
        qm.put("Q", b"3")
        acts: dict[str, Callable[[], Any]] = {
            "put": lambda: qm.put("Q", b"4"),
            "get": lambda: qm.get("Q"),
            "commit": lease.commit,
            "back_out": lease.back_out,
            "extend": lambda: lease.extend(30),
            "resume": lambda: qm.resume_lease(lease.token),
            "enter": lambda: qm.connect().resume_lease(lease.token).__enter__(),
        }
        clock.advance(29.999)
        assert bodies(qm) == [b"2"]
        clock.advance(0.001)
        with pytest.raises(errors.LeaseOver):
            acts[act]()
    assert (bodies(qm), qm.inspect.units(), qm.admin.check()) == ([b"1", b"2"], [], [])


LOOKS: dict[str, Callable[[QueueManager], Any]] = {
    "a get": lambda qm: qm.get("Q").body,
    "a browse": lambda qm: qm.open("Q", browse=True).browse_next().body,
    "a strict get": lambda qm: qm.get("Q", read_order="strict").body,
    "a get of a group": lambda qm: next(iter(qm.get_group("Q"))).body,
    "a listing": lambda qm: next(qm.inspect.look("Q", preview=9)).message.body,
}


@pytest.mark.every_store
@pytest.mark.parametrize("look", LOOKS)
def test_a_call_that_finds_an_expired_lease_backs_it_out(
    qm: QueueManager, other: QueueManager, clock: ManualClock, look: str
) -> None:
    qm.put("Q", b"1")
    with qm.lease(seconds=30):
        qm.get("Q")
    clock.advance(30)
    assert LOOKS[look](other) == b"1"


@pytest.mark.every_store
def test_a_lease_holds_its_message_and_queue_until_it_ends(
    qm: QueueManager, other: QueueManager, clock: ManualClock
) -> None:
    qm.create_queue("SMALL", max_depth=1)
    with qm.lease(seconds=30):
        qm.put("SMALL", b"1")
    with pytest.raises(errors.QueueFull):
        other.put("SMALL", b"2")
    with pytest.raises(errors.ObjectInUse):
        other.delete_queue("SMALL", purge=True)
    clock.advance(30)
    other.put("SMALL", b"2")
    assert other.get("SMALL").body == b"2"
    qm.internals.abandon()
    other.delete_queue("SMALL")


@pytest.mark.every_store
def test_a_strict_reader_is_woken_when_a_lease_ends(qm: QueueManager, other: QueueManager, clock: ManualClock) -> None:
    qm.put_many("Q", [b"1", b"2"])
    with qm.lease(seconds=30):
        assert qm.get("Q", read_order="strict").body == b"1"
    with pytest.raises(errors.OrderPending):
        other.get("Q", read_order="strict")
    call = waiting(other, lambda: other.get("Q", read_order="strict", wait=100).body)
    clock.advance(30)
    assert call.result() == b"1"


def test_housekeeping_ends_an_expired_lease_and_keeps_an_extended_one(qm: QueueManager, clock: ManualClock) -> None:
    lease, extended = qm.lease(seconds=30), qm.lease(seconds=30)
    for one, body in ((lease, b"1"), (extended, b"2")):
        with one:
            qm.put("Q", body)
    clock.advance(29)
    assert extended.extend(30) == clock.now() + 30
    clock.advance(29)
    qm.connect().close()
    assert (qm.depth("Q"), [unit.name for unit in qm.inspect.units()]) == (1, [extended.name])
    extended.commit()
    assert bodies(qm) == [b"2"]


@pytest.mark.every_store
def test_two_threads_that_use_one_token_at_once_take_each_message_once(qm: QueueManager) -> None:
    given = [b"%d" % number for number in range(20)]
    qm.put_many("Q", given)
    lease, got, start = qm.lease(), list[bytes](), threading.Barrier(2)

    def take() -> None:
        with qm.connect() as own:
            start.wait()
            with own.resume_lease(lease.token):
                for _ in range(10):
                    got.append(own.get("Q").body)
                    own.put("Q", b"done")

    for call in [Call(take), Call(take)]:
        call.result()
    lease.commit()
    assert (sorted(got, key=int), bodies(qm), qm.admin.check()) == (given, [b"done"] * 20, [])


def test_a_clock_that_is_set_back_does_not_keep_a_lease_for_longer(qm: QueueManager, clock: ManualClock) -> None:
    qm.put("Q", b"1")
    lease = qm.lease(seconds=30)
    with lease:
        qm.get("Q")
    jump(clock, -3600)
    with pytest.raises(errors.NoMessageAvailable):  # this get notices the jump
        qm.get("Q")
    assert qm.inspect.units()[0].ends_at == clock.now() + 30
    clock.advance(29)
    with pytest.raises(errors.NoMessageAvailable):
        qm.get("Q")
    clock.advance(1)
    assert qm.get("Q").body == b"1"


def test_a_clock_that_is_set_forward_ends_a_lease_for_good(qm: QueueManager, clock: ManualClock) -> None:
    qm.put("Q", b"1")
    lease = qm.lease(seconds=30)
    with lease:
        qm.get("Q")
    jump(clock, 3600)
    assert qm.get("Q").body == b"1"
    jump(clock, -3600)
    with pytest.raises(errors.LeaseOver):
        lease.commit()


@pytest.mark.every_store
def test_a_lease_outlives_its_connection_and_a_restart(stores: Stores, clock: ManualClock) -> None:
    store = stores.make(clock)
    first = connect(store, program="test")
    first.create_queue("Q")
    lease = first.lease(seconds=30)
    with lease:
        first.put("Q", b"1")
        first.put("Q", b"2", persistent=False)
    first.internals.abandon()
    store.restart()
    with connect(store, program="test") as second:
        second.resume_lease(lease.token).commit()
        assert bodies(second) == [b"1", b"2"]


def test_closing_a_connection_inside_a_lease_leaves_the_lease_open(qm: QueueManager, other: QueueManager) -> None:
    lease = qm.lease()
    lease.__enter__()
    qm.put("Q", b"1")
    qm.close()
    lease.__exit__(None, None, None)
    assert [unit.puts for unit in other.inspect.units()] == [1]
    other.resume_lease(lease.token).commit()
    assert bodies(other) == [b"1"]


def test_a_commit_of_the_connection_settles_the_lease_it_has_entered(qm: QueueManager) -> None:
    lease = qm.lease()
    with lease:
        qm.put("Q", b"1")
        qm.commit()
        assert lease.status == "committed"
        qm.put("Q", b"2")
    assert bodies(qm) == [b"1", b"2"]
    with pytest.raises(errors.LeaseOver), lease:
        pass


def test_a_connection_is_in_at_most_one_unit_or_lease(qm: QueueManager) -> None:
    lease = qm.lease()
    with qm.unit_of_work():
        with pytest.raises(errors.CallerError, match="2128"), lease:
            pass
        qm.put("Q", b"1")
    qm.put("Q", b"2", syncpoint=True)
    with pytest.raises(errors.CallerError, match="2128"), lease:
        pass
    qm.back_out()
    with lease, pytest.raises(errors.CallerError, match="2128"), qm.unit_of_work():
        pass
    with lease:
        qm.put("Q", b"3")
        with pytest.raises(errors.WrongState):
            qm.prepare("P")
    assert bodies(qm) == [b"1"]


@pytest.mark.every_store
def test_an_operator_backs_out_a_lease_by_its_name_and_never_sees_the_token(qm: QueueManager) -> None:
    lease = qm.lease()
    with lease:
        qm.put("Q", b"1")
    assert lease.name == name_of(lease.token)
    assert lease.token not in f"{lease!r} {qm.inspect.units()} {list(qm.inspect.look('Q'))}"
    qm.admin.end_lease(lease.name)
    with pytest.raises(errors.LeaseOver):
        lease.commit()
    with pytest.raises(errors.LeaseOver):
        qm.admin.end_lease(lease.name)
    assert (qm.depth("Q"), qm.inspect.units()) == (0, [])


@pytest.mark.every_store
def test_all_calls_under_a_lease_count_toward_its_limit(qm: QueueManager, other: QueueManager) -> None:
    """R5.8: on any connection."""
    qm.admin.alter_manager(max_uncommitted=3)
    lease = qm.lease()
    with lease:
        qm.put_many("Q", [b"1", b"2"])
    with other.resume_lease(lease.token):
        other.put("Q", b"3")
        with pytest.raises(errors.UnitTooLarge):
            other.put("Q", b"4")
    with lease, pytest.raises(errors.UnitTooLarge):
        qm.put("Q", b"5")
    lease.commit()
    assert bodies(qm) == [b"1", b"2", b"3"]


@pytest.mark.parametrize("kind", ON_BOTH, indirect=True)  # the others read the whole group at once
def test_the_rest_of_a_large_group_is_not_read_from_an_expired_lease(qm: QueueManager, clock: ManualClock) -> None:
    put_group(qm, *[b"1"] * 600)
    with qm.lease(seconds=30):
        messages = iter(qm.get_group("Q"))
        next(messages)
        clock.advance(30)
        qm.connect().close()
        with pytest.raises(errors.LeaseOver):
            list(messages)


def test_half_a_group_put_under_an_expired_lease_is_backed_out_and_the_handle_reset(
    qm: QueueManager, clock: ManualClock
) -> None:
    with qm.open("Q", output=True) as handle:
        lease = qm.lease(seconds=30)
        lease.__enter__()
        handle.put(b"1", logical=True, flags=Flags.IN_GROUP)
        clock.advance(30)
        with pytest.raises(errors.LeaseOver):
            handle.internals.withdraw(handle.internals.put_state, whole_group=True)
        with pytest.raises(errors.LeaseOver) as refused:
            handle.put(b"2", logical=True, flags=Flags.IN_GROUP)
        lease.__exit__(errors.LeaseOver, refused.value, None)
        assert not handle.internals.put_state.group_open
    assert (qm.depth("Q"), qm.inspect.units()) == (0, [])


@pytest.mark.parametrize("bad", [0, 86_400.1, True, None, float("nan")], ids=repr)
def test_a_lease_needs_a_number_of_seconds_up_to_a_day(qm: QueueManager, bad: Any) -> None:
    with pytest.raises(errors.ArgumentError, match="seconds must be a number of seconds above 0 and up to 86,400"):
        qm.lease(seconds=bad)
    lease = qm.lease(seconds=86_400)
    with pytest.raises(errors.ArgumentError, match="seconds must be a number of seconds above 0"):
        lease.extend(bad)
    assert qm.inspect.units()[0].ends_at == lease.ends_at


@pytest.mark.parametrize("bad", ["", None, b"token", "\ud800"], ids=repr)
def test_a_bad_token_or_user_of_a_lease_is_refused(qm: QueueManager, bad: Any) -> None:
    with pytest.raises(errors.ArgumentError, match="token must be a text, the token of a lease"):
        qm.resume_lease(bad)
    if bad is not None:
        with pytest.raises(errors.ArgumentError, match="user must be the name of a user"):
            qm.lease(user=bad)
    with pytest.raises(errors.LeaseOver):
        qm.resume_lease("no token of ours")
    assert qm.inspect.units() == []


@pytest.mark.every_store
def test_the_number_of_leases_of_a_user_is_limited(qm: QueueManager, clock: ManualClock) -> None:
    first = qm.lease(seconds=30, user="ann", most=2)
    qm.lease(seconds=60, user="ann", most=2)
    with pytest.raises(errors.UnitNotAvailable, match="user ann has 2 leases open") as refused:
        qm.lease(user="ann", most=2)
    assert refused.value.data == {"user": "ann", "most": 2}
    assert len(qm.inspect.units()) == 2, "nothing has begun"
    qm.lease(user="bob", most=1)
    qm.lease(user="ann", most=3).commit()
    first.commit()
    qm.lease(seconds=30, user="ann", most=2)
    jump(clock, 31)
    qm.lease(seconds=30, user="ann", most=2)  # the lease that is over does not count, backed out or not
    with pytest.raises(errors.UnitNotAvailable):
        qm.lease(user="ann", most=2)
    qm.lease(user="ann")  # without `most` there is no limit
    for bad in (0, 1.5, True):
        with pytest.raises(errors.ArgumentError, match="most"):
            qm.lease(most=bad)  # type: ignore[arg-type]


@pytest.mark.every_store
def test_the_limit_on_leases_holds_for_those_that_begin_at_once(qm: QueueManager) -> None:
    connections = [qm.connect() for _ in range(8)]
    together = threading.Barrier(len(connections))
    refused: list[BaseException] = []

    def begin(each: QueueManager) -> None:
        together.wait()
        for _ in range(3):
            try:
                each.lease(seconds=600, most=5)
            except errors.UnitNotAvailable as error:
                refused.append(error)

    for call in [Call(partial(begin, each)) for each in connections]:
        call.result()
    assert (len(qm.inspect.units()), len(refused)) == (5, 19)


@pytest.mark.every_store
def test_two_leases_cannot_have_one_name(qm: QueueManager, store: RestartableStore) -> None:
    lease = qm.lease(seconds=60)
    with pytest.raises(errors.UnitExists, match="already a lease of this name"):
        store.begin_lease(qm._session.owner, name_of(lease.token), "", 60.0, None)
    lease.commit()
    store.begin_lease(qm._session.owner, name_of(lease.token), "", 60.0, None)


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
def test_housekeeping_ends_the_lock_leases_of_unused_queues(qm: QueueManager, clock: ManualClock) -> None:
    for name in ("A", "B"):
        qm.create_queue(name)
        qm.put(name, b"1")
        qm.browse_and_lock(name, lease=5 if name == "A" else 6)
    clock.advance(5)
    qm.connect().close()
    states = {name: [sight.state for sight in qm.inspect.look(name)] for name in ("A", "B")}
    assert states == {"A": ["available"], "B": ["locked"]}


def test_the_order_view_does_not_count_a_lock_whose_lease_is_over(qm: QueueManager, clock: ManualClock) -> None:
    qm.put("Q", b"1")
    qm.browse_and_lock("Q", lease=5)
    assert qm.inspect.order_view("Q").pending_out == 1
    clock.advance(5)
    assert qm.inspect.order_view("Q").pending_out == 0


def looks_again_at(qm: QueueManager, options: GetOptions) -> float | None:
    """The time at which a call that has found nothing, and would wait, must look again."""
    handle = qm._store.open(qm.internals.owner, "Q", OpenOptions(input="shared")).handle
    request = GetRequest(handle, options, NOTHING_OPEN, UNSET, syncpoint=False)
    outcome, again_at = looks_once(qm, request)
    assert outcome.messages == []
    return again_at


@pytest.mark.every_store
@pytest.mark.parametrize("read_order", ["relaxed", "strict"])
def test_a_waiting_get_looks_again_when_the_next_lease_ends(
    qm: QueueManager, clock: ManualClock, read_order: Literal["relaxed", "strict"]
) -> None:
    began, waits = clock.now(), GetOptions(wait=600, read_order=read_order, match=Match(correlation_id=b"none"))
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
def test_a_prepared_get_can_be_settled_after_its_lock_has_ended(store: RestartableStore, clock: ManualClock) -> None:
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
        with pytest.raises(errors.NotFound):
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
