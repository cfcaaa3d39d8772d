"""The history of queues that a server keeps in the store."""

from __future__ import annotations

import pytest
from tests.helpers.support import Stores

from inorder import QueueManager, connect
from inorder.errors import UnknownQueue
from inorder.rules.history import RINGS, Activity, HistoryPoint, activities
from inorder.stores.seam.tables import SampleRow
from inorder.testing import ManualClock

MINUTE, QUARTER = 60, 900


def rows(qm: QueueManager) -> list[SampleRow]:
    with (store := qm._services.store).lock:  # type: ignore[attr-defined]
        return store.backend.select(SampleRow)  # type: ignore[attr-defined,no-any-return]


def keep(qm: QueueManager, at: float) -> None:
    """Stores an empty sample with this time in each ring."""
    samples = [SampleRow(one.seconds, one.slot(at), at, "{}") for one in RINGS.values()]
    qm._services.store._keep(samples)  # type: ignore[attr-defined]


def depths(qm: QueueManager, period: str = "hour") -> list[int]:
    return [one.depth for one in qm.internals.history("Q", period)]  # type: ignore[arg-type]


@pytest.mark.every_store
def test_the_history_of_a_queue_has_its_depth_and_arrivals(qm: QueueManager, clock: ManualClock) -> None:
    began = clock.now()
    for number in range(3):
        qm.put_many("Q", [b"x"] * 3)
        if number:
            qm.get("Q")
        qm.internals.sample()
        clock.advance(MINUTE)
    assert qm.internals.history("Q", "hour") == [
        HistoryPoint(began, 3, 3, 3, 0),
        HistoryPoint(began + 60, 5, 5, 6, 60),
        HistoryPoint(began + 120, 7, 7, 9, 120),
    ]
    activity = activities(qm.internals.history("Q", "hour"), RINGS["hour"])[2]
    assert activity == Activity(began + 120, 7, 3 / 60, 1 / 60, age=120)


@pytest.mark.every_store
def test_a_minute_has_one_sample(qm: QueueManager, clock: ManualClock) -> None:
    clock.advance(-clock.now() % MINUTE)
    assert qm.internals.sample() == len(qm.inspect.overview())
    qm.put("Q", b"x")
    clock.advance(MINUTE - 1)
    assert qm.internals.sample() == 0
    assert depths(qm) == [0]
    clock.advance(1)
    assert qm.internals.sample() > 0
    assert depths(qm) == [0, 1]


def test_a_day_keeps_the_highest_depth_and_age_of_each_quarter_of_an_hour(qm: QueueManager, clock: ManualClock) -> None:
    clock.advance(-clock.now() % QUARTER)
    began = clock.now()
    for count in (4, 0, 1):
        qm.put_many("Q", [b"x"] * count) if count else qm.admin.clear_queue("Q")
        qm.internals.sample()
        clock.advance(MINUTE)
    assert qm.internals.history("Q", "day") == [HistoryPoint(began + 120, 1, 4, 5, 0)]
    clock.advance(QUARTER)
    qm.internals.sample()
    assert [one.peak for one in qm.internals.history("Q", "day")] == [4, 1]


def test_the_rings_are_bounded(qm: QueueManager, clock: ManualClock) -> None:
    for _ in range(90):
        qm.internals.sample()
        clock.advance(MINUTE)
    assert len([one for one in rows(qm) if one.seconds == MINUTE]) == RINGS["hour"].slots
    assert len(depths(qm)) == 59  # the last of the 60 minutes has no sample yet
    assert len(depths(qm, "day")) in (6, 7)
    assert len(depths(qm, "week")) in (1, 2)


def test_samples_older_than_the_period_are_not_shown(qm: QueueManager, clock: ManualClock) -> None:
    qm.internals.sample()
    clock.advance(3 * 3_600)
    assert depths(qm) == []
    assert depths(qm, "day") == [0]


def test_an_earlier_sample_does_not_replace_a_later_one_of_another_server(qm: QueueManager, clock: ManualClock) -> None:
    clock.advance(-clock.now() % QUARTER)
    slow = clock.now()
    clock.advance(1)
    qm.put("Q", b"x")
    qm.internals.sample()
    newest = rows(qm)
    keep(qm, slow)
    assert rows(qm) == newest


def test_a_clock_that_was_ahead_does_not_stop_the_history(qm: QueueManager, clock: ManualClock) -> None:
    ahead = clock.now() + 3_600
    keep(qm, ahead)
    assert depths(qm) == []
    assert qm.internals.sample() > 0
    assert depths(qm) == [0]


def test_a_queue_created_again_has_no_history_of_the_former_one(qm: QueueManager, clock: ManualClock) -> None:
    qm.create_queue("AGAIN")
    qm.internals.sample()
    qm.delete_queue("AGAIN")
    qm.create_queue("AGAIN")
    assert qm.internals.history("AGAIN", "hour") == []
    clock.advance(MINUTE)
    qm.internals.sample()
    assert len(qm.internals.history("AGAIN", "hour")) == 1


def test_an_alias_has_the_history_of_its_queue_and_an_unused_queue_has_none(qm: QueueManager) -> None:
    qm.create_queue("A", type="alias", base_queue="Q")
    qm.internals.sample()
    assert len(qm.internals.history("A", "hour")) == 1
    assert qm.internals.history("SYSTEM.DEFAULT.LOCAL.QUEUE", "hour") == []
    with pytest.raises(UnknownQueue):
        qm.internals.history("NONE", "hour")


@pytest.mark.every_store
def test_the_history_survives_a_restart(stores: Stores) -> None:
    store = stores.make()
    with connect(store) as qm:
        qm.create_queue("Q")
        qm.put("Q", b"x")
        qm.internals.sample()
    store.restart()
    with connect(store) as qm:
        assert depths(qm) == [1]


@pytest.mark.every_store
def test_the_histories_of_several_queues_are_read_in_one_call(qm: QueueManager) -> None:
    qm.create_queue("R")
    qm.put("R", b"x")
    qm.internals.sample()
    found = qm.internals.histories(["R", "SYSTEM.DEFAULT.LOCAL.QUEUE", "Q"], "hour")
    assert [[one.depth for one in points] for points in found] == [[1], [], [0]]
    assert qm.internals.histories([], "hour") == []
    with pytest.raises(UnknownQueue):
        qm.internals.histories(["Q", "NONE"], "hour")


def test_no_history_is_written_for_a_store_that_is_not_served(qm: QueueManager, clock: ManualClock) -> None:
    qm.put("Q", b"x")
    clock.advance(MINUTE)
    qm.inspect.overview()
    assert rows(qm) == []
