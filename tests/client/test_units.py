"""Units of work: blocks, calls with syncpoint, preparing under a name."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.helpers.support import bodies

from inorder import QueueManager, Reason, UnitOfWork, connect
from inorder.errors import CallerError, UnitExists, UnitNotFound, UnitTooLarge
from inorder.testing import ManualClock
from inorder.testing.stores import RestartableStore


def fail_after(qm: QueueManager, act: Callable[[UnitOfWork], object]) -> None:
    """Runs a unit of work that calls `act` and then raises."""
    with qm.unit_of_work() as unit:
        act(unit)
        raise ZeroDivisionError


# ---- the block


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_every_exception_that_ends_the_block_early_backs_out(qm: QueueManager, error: type[BaseException]) -> None:
    def end_early() -> None:
        with qm.unit_of_work():
            qm.put("Q", b"1")
            raise error

    with pytest.raises(error):
        end_early()
    assert (qm.depth("Q"), qm.inspect.units()) == (0, [])


def test_a_back_out_that_fails_does_not_hide_the_exception_of_the_block(store: RestartableStore) -> None:
    qm = connect(store)
    qm.create_queue("Q")

    def act(unit: UnitOfWork) -> None:
        qm.put("Q", b"1")
        store.restart()

    with pytest.raises(ZeroDivisionError):
        fail_after(qm, act)
    qm.internals.abandon()


def test_the_status_of_a_unit_says_how_it_ended(qm: QueueManager) -> None:
    unit = qm.unit_of_work()
    assert (unit.status, repr(unit)) == ("new", "<unit of work, new>")
    with unit as same:
        assert same is unit
        assert (unit.status, repr(unit)) == ("open", "<unit of work, open>")
    assert (unit.status, repr(unit)) == ("committed", "<unit of work, committed>")
    failed: list[UnitOfWork] = []
    with pytest.raises(ZeroDivisionError):
        fail_after(qm, failed.append)
    assert (failed[0].status, repr(failed[0])) == ("backed out", "<unit of work, backed out>")


def test_a_unit_can_be_used_only_once(qm: QueueManager) -> None:
    unit = qm.unit_of_work()
    with unit:
        pass
    with pytest.raises(CallerError, match="committed and cannot be used again"), unit:
        pass
    with qm.unit_of_work() as opened, pytest.raises(CallerError, match="open and cannot be used again"), opened:
        pass


@pytest.mark.parametrize("how", ["unit", "connection"])
@pytest.mark.parametrize(("end", "status", "left"), [("commit", "committed", [b"1"]), ("back_out", "backed out", [])])
def test_a_unit_can_be_ended_inside_its_block(
    qm: QueueManager, how: str, end: str, status: str, left: list[bytes]
) -> None:
    with qm.unit_of_work() as unit:
        qm.put("Q", b"1")
        getattr(unit if how == "unit" else qm, end)()
        assert (unit.status, bodies(qm)) == (status, left)
    assert (unit.status, bodies(qm), qm.depth("Q")) == (status, left, len(left))


def test_a_unit_refuses_every_call_after_it_has_ended(qm: QueueManager) -> None:
    with qm.unit_of_work() as unit:
        unit.commit()
        calls: list[Callable[[], object]] = [unit.commit, unit.back_out, lambda: unit.prepare("P")]
        for call in calls:
            with pytest.raises(UnitNotFound, match="committed"):
                call()
        with qm.unit_of_work():
            qm.put("Q", b"1")
            assert bodies(qm) == []
        assert bodies(qm) == [b"1"]
    new = qm.unit_of_work()
    with pytest.raises(UnitNotFound, match="new"):
        new.commit()


def test_r5_9_a_unit_inside_a_unit_is_2128(qm: QueueManager) -> None:
    inner = qm.unit_of_work()
    with qm.unit_of_work() as outer:
        qm.put("Q", b"1")
        with pytest.raises(CallerError) as raised, inner:
            pass
        assert (raised.value.reason, type(raised.value)) == (2128, CallerError)
        assert (outer.status, inner.status) == ("open", "new")
        qm.put("Q", b"2")
    assert bodies(qm) == [b"1", b"2"]
    with inner:
        qm.put("Q", b"3")
    assert bodies(qm) == [b"1", b"2", b"3"]


def test_a_block_after_a_call_with_syncpoint_is_2128(qm: QueueManager) -> None:
    qm.put("Q", b"1", syncpoint=True)
    with pytest.raises(CallerError) as raised, qm.unit_of_work():
        pass
    assert raised.value.reason == Reason.UOW_IN_PROGRESS
    qm.commit()
    with qm.unit_of_work():
        pass


# ---- preparing


@pytest.mark.parametrize("how", ["unit", "connection"])
@pytest.mark.parametrize("outcome", ["commit", "back_out"])
def test_a_unit_can_be_prepared_inside_its_block(qm: QueueManager, how: str, outcome: str) -> None:
    qm.put("Q", b"old")
    with qm.unit_of_work() as unit:
        qm.get("Q")
        qm.put("Q", b"new")
        (unit if how == "unit" else qm).prepare("P")
        assert (unit.status, repr(unit)) == ("prepared", "<unit of work, prepared>")
        qm.put("Q", b"after")
    assert (unit.status, bodies(qm)) == ("prepared", [b"after"])
    [prepared] = qm.inspect.units()
    assert (prepared.name, prepared.kind, prepared.puts, prepared.gets) == ("P", "prepared", 1, 1)
    other = qm.connect()
    other.settle("P", "commit" if outcome == "commit" else "back_out")
    assert bodies(qm) == ([b"new", b"after"] if outcome == "commit" else [b"old", b"after"])
    assert qm.inspect.units() == []


@pytest.mark.every_store
@pytest.mark.parametrize("how", ["unit", "connection"])
def test_a_prepare_under_a_name_in_use_is_refused_and_leaves_the_unit_open(qm: QueueManager, how: str) -> None:
    other = qm.connect()
    other.put("Q", b"1", syncpoint=True)
    other.prepare("P")
    with qm.unit_of_work() as unit:
        qm.put("Q", b"2")
        with pytest.raises(UnitExists, match="'P'") as raised:
            (unit if how == "unit" else qm).prepare("P")
        assert raised.value.reason == Reason.UNIT_EXISTS
        assert unit.status == "open"
    assert bodies(qm) == [b"2"]
    qm.settle("P", "commit")
    assert bodies(qm) == [b"1", b"2"]


def test_a_unit_that_holds_nothing_cannot_be_prepared(qm: QueueManager) -> None:
    with qm.unit_of_work() as unit:
        with pytest.raises(UnitNotFound):
            unit.prepare("P")
        assert unit.status == "open"
        qm.put("Q", b"1")
        unit.prepare("P")
    with pytest.raises(UnitNotFound):
        qm.prepare("P2")


# ---- the operator's view


@pytest.mark.every_store
def test_units_are_listed_oldest_first_with_their_program(qm: QueueManager, clock: ManualClock) -> None:
    first, second = qm.connect(program="first"), qm.connect(program="second")
    began = clock.now()
    second.put("Q", b"1", syncpoint=True)
    clock.advance(5)
    first.put_many("Q", [b"2", b"3"], syncpoint=True)
    first.prepare("P")
    clock.advance(5)
    first.put("Q", b"4", syncpoint=True)
    assert [
        (unit.program.name, unit.name, unit.kind, unit.started_at - began, unit.puts, unit.gets)
        for unit in qm.inspect.units()
    ] == [("second", "", "session", 0, 1, 0), ("first", "P", "prepared", 5, 2, 0), ("first", "", "session", 10, 1, 0)]
    second.back_out()
    assert [unit.name for unit in qm.inspect.units()] == ["P", ""]


@pytest.mark.every_store
def test_the_start_of_a_unit_is_recorded_to_a_tenth_of_a_second(qm: QueueManager, clock: ManualClock) -> None:
    began, starts = clock.now(), list[float]()
    for seconds in (0, 0.05, 0.15):  # from the start of one to the start of the next
        clock.advance(seconds)
        qm.put("Q", b"1", syncpoint=True)
        starts += [round(unit.started_at - began, 3) for unit in qm.inspect.units()]
        qm.commit()
    qm.get("Q", syncpoint=True)
    clock.advance(5)
    qm.put("Q", b"2", syncpoint=True)
    starts += [round(unit.started_at - began, 3) for unit in qm.inspect.units()]
    assert starts == [0, 0, 0.2, 0.2]


@pytest.mark.parametrize("limit", [1, 2])
def test_r5_8_a_unit_that_has_reached_a_lowered_limit_gets_nothing_more(qm: QueueManager, limit: int) -> None:
    qm.put_many("Q", [b"1", b"2", b"3", b"4"])
    qm.get_many("Q", 2, syncpoint=True)
    qm.admin.alter_manager(max_uncommitted=limit)
    with pytest.raises(UnitTooLarge):
        qm.get_many("Q", 2, syncpoint=True)
    assert qm.depth("Q") == 2
    qm.back_out()
    assert bodies(qm) == [b"1", b"2", b"3", b"4"]
