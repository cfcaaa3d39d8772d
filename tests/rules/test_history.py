"""The history of queues: slots, texts of samples, and the rates between samples."""

from __future__ import annotations

import pytest

from inorder.rules.history import RINGS, Activity, HistoryPoint, QueueCounts, activities, counts_in, counts_of, text_of

MINUTE = RINGS["hour"]


@pytest.mark.parametrize(("period", "seconds"), [("hour", 3_600), ("day", 86_400), ("week", 604_800)])
def test_a_ring_covers_its_period_and_wraps_around(period: str, seconds: int) -> None:
    ring = RINGS[period]  # type: ignore[index]
    assert ring.seconds * ring.slots == seconds
    slots = [ring.slot(1_764_000_000 + ring.seconds * number + 0.5) for number in range(ring.slots)]
    assert sorted(slots) == list(range(ring.slots))
    assert ring.slot(1_764_000_000.0) == ring.slot(1_764_000_000.0 + seconds)


def test_a_store_keeps_240_samples() -> None:
    assert sum(one.slots for one in RINGS.values()) == 240


def test_a_sample_is_read_as_it_was_written() -> None:
    counts = {1: QueueCounts(5, 5, 9, 60), 12: QueueCounts(0, 0, 0, 0)}
    text = text_of(counts, {})
    assert text == '{"1":[5,5,9,60],"12":[0,0,0,0]}'
    assert counts_in(text) == counts
    assert counts_of([1, 12, 2, None], text) == counts
    assert counts_of([2], text) == {}


def test_a_later_sample_of_a_slot_keeps_the_peak_and_the_highest_age() -> None:
    earlier = {1: QueueCounts(7, 8, 9, 60), 2: QueueCounts(1, 1, 1, 1), 4: QueueCounts(1, 1, 1, 1)}
    now = {1: QueueCounts(5, 5, 12, 0), 3: QueueCounts(2, 2, 2, 7), 4: QueueCounts(1, 1, 1, 2)}
    assert text_of(now, earlier) == '{"1":[5,8,12,60],"3":[2,2,2,7],"4":[1,1,1,2]}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "7",
        '{"x":[1,1,1,1]}',
        '{"1":[1,1,1]}',
        '{"1":[2,1,3,1]}',
        '{"1":[-1,1,1,1]}',
        '{"1":[1.5,2,3,1]}',
        '{"1":[1,1,1,-1]}',
    ],
)
def test_an_invalid_text_of_a_sample_is_refused(text: str) -> None:
    with pytest.raises((ValueError, TypeError, AttributeError)):
        counts_in(text)
    if '"1"' in text:
        with pytest.raises((ValueError, TypeError)):
            counts_of([1], text)


def test_rates_are_taken_from_one_slot_to_the_next() -> None:
    points = [HistoryPoint(30.0, 2, 2, 100, 7), HistoryPoint(90.0, 5, 6, 160, 67), HistoryPoint(150.0, 0, 5, 160, 90)]
    assert activities(points, MINUTE) == [
        Activity(30.0, 2, age=7),
        Activity(90.0, 6, put=1.0, got=0.95, age=67),
        Activity(150.0, 5, put=0.0, got=5 / 60, age=90),
    ]


def test_a_gap_has_no_rate() -> None:
    points = [HistoryPoint(30.0, 0, 0, 0, 0), HistoryPoint(200.0, 0, 0, 900, 5)]
    assert activities(points, MINUTE) == [Activity(30.0, 0), Activity(200.0, 0, age=5)]


def test_messages_that_return_to_the_queue_give_no_negative_rate() -> None:
    points = [HistoryPoint(0.0, 0, 0, 50, 0), HistoryPoint(60.0, 30, 30, 50, 0)]
    assert activities(points, MINUTE)[1] == Activity(60.0, 30, put=0.0, got=0.0)


def test_an_empty_history_has_no_slots() -> None:
    assert activities([], MINUTE) == []
