"""The search for incomplete groups: kept while the queue is the same, bounded, in turns."""

from __future__ import annotations

from itertools import count

import pytest

import inorder
from inorder import Flags
from inorder.client import incomplete_groups
from inorder.client.incomplete_groups import AGAIN_SECONDS, BUDGET_SECONDS, GroupSearches, Wholeness, wholeness


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_groups_are_looked_at_again_when_the_queue_has_changed_and_not_each_time() -> None:
    clock = Clock()
    with inorder.connect() as qm:
        qm.create_queue("Q1")
        qm.put("Q1", b"1", group_id=b"g", flags=Flags.IN_GROUP)
        groups = GroupSearches(clock)
        (first,) = qm.inspect.overview()
        (lacking,) = (groups.of(qm, first)).lacking
        assert lacking.missing.last
        qm.put("Q1", b"2", group_id=b"g", sequence_number=2, flags=Flags.LAST_IN_GROUP)
        (second,) = qm.inspect.overview()
        assert (groups.of(qm, second)).lacking, "within some seconds what was found is kept"
        clock.now += AGAIN_SECONDS
        assert not (groups.of(qm, second)).lacking
        qm.admin.clear_queue("Q1")
        assert groups.of(qm, (qm.inspect.overview())[0]) == Wholeness()


def test_a_group_that_the_look_has_cut_is_not_judged() -> None:
    with inorder.connect() as qm:
        qm.create_queue("Q1")
        for number in range(1, 6):
            last = Flags.LAST_IN_GROUP if number == 5 else Flags.IN_GROUP
            qm.put("Q1", b"x", group_id=b"whole", sequence_number=number, flags=last)
        cut = wholeness(list(qm.inspect.look("Q1", order="logical", most=3)), 3)
        assert (cut.lacking, cut.is_all) == ((), False)
        assert wholeness(list(qm.inspect.look("Q1", order="logical")), 6) == Wholeness()


def test_many_queues_take_turns() -> None:
    ticks = count(0, BUDGET_SECONDS / 4)  # each look at the clock takes that long
    with inorder.connect() as qm:
        for name in ("A", "B", "C"):
            qm.create_queue(name)
            qm.put(name, b"1", group_id=b"g", flags=Flags.IN_GROUP)
        groups, views = GroupSearches(lambda: next(ticks)), qm.inspect.overview()
        assert sorted(groups.of_all(qm, views)) == ["A", "B"]
        assert sorted(groups.of_all(qm, views)) == ["A", "B", "C"]


def test_the_results_of_queues_that_come_and_go_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incomplete_groups, "KNOWN_MAX", 2)
    groups = GroupSearches(Clock())
    with inorder.connect() as qm:
        for number in range(5):
            qm.create_queue(f"Q{number}")
            qm.put(f"Q{number}", b"1", group_id=b"g", flags=Flags.IN_GROUP)
        groups.of_all(qm, qm.inspect.overview())
    assert list(groups._known) == ["Q3", "Q4"]
