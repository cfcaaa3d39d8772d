"""The operator's view of a queue: messages in every state, in both orders, with their holders; gaps of groups."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from typing import Any
from unittest import mock

import pytest
from tests.helpers.support import StillClock, put_figure, waiting

import inorder
from inorder import Flags, Match, QueueManager
from inorder.client import incomplete_groups, inspection
from inorder.client.bulk import ClaimReader
from inorder.client.incomplete_groups import AGAIN_SECONDS, BUDGET_SECONDS, GroupSearches, Wholeness, wholeness
from inorder.client.inspection import MessageView, Opening
from inorder.model.attributes import OrderRule
from inorder.rules.gaps import NO_GAPS, Gaps
from inorder.stores.seam.views import ListingOrder
from inorder.testing import ManualClock
from inorder.testing.stores import RestartableStore

IN, LAST, SEGMENT, END = Flags.IN_GROUP, Flags.LAST_IN_GROUP, Flags.SEGMENT, Flags.LAST_SEGMENT
PHYSICAL = ["A", "Y1", "Z2", "Y2", "Y3.1", "Y3.2", "Z1", "B"]
LOGICAL = ["A", "Y1", "Y2", "Y3.1", "Y3.2", "Z1", "Z2", "B"]


def put(qm: QueueManager, body: str, **keywords: Any) -> None:
    """Puts a message. Its body tells its group and number: Y3.2 is the second segment of the third of group Y."""
    qm.put("Q", body.encode(), **keywords)


def names(sights: Iterator[MessageView]) -> list[str]:
    return [one.message.body.decode() for one in sights]


# --- the two orders


@pytest.mark.every_store
@pytest.mark.parametrize("order", ["physical", "logical"])
def test_a_listing_is_complete_whatever_the_size_of_its_pages(qm: QueueManager, order: ListingOrder) -> None:
    put_figure(qm)
    for page in (1, 2, 3, 7, 8, 9):
        with mock.patch.object(inspection, "PAGE_MESSAGES", page):
            assert names(qm.inspect.look("Q", order=order)) == (PHYSICAL if order == "physical" else LOGICAL), page


@pytest.mark.every_store
@pytest.mark.parametrize("order", ["physical", "logical"])
def test_a_listing_can_continue_after_any_message(qm: QueueManager, order: ListingOrder) -> None:
    put_figure(qm)
    every = list(qm.inspect.look("Q", order=order))
    for number, one in enumerate(every, 1):
        assert list(qm.inspect.look("Q", order=order, after=one.position)) == every[number:]
        assert list(qm.inspect.look("Q", order=order, most=number)) == every[:number]


@pytest.mark.every_store
def test_a_group_without_its_first_message_comes_last(qm: QueueManager) -> None:
    for name, number in (("X3", 3), ("W2", 2), ("X2", 2)):
        put(qm, name, group_id=name[:1].encode(), sequence_number=number, flags=IN)
    put(qm, "A")
    assert names(qm.inspect.look("Q", order="logical")) == ["A", "W2", "X2", "X3"]
    put(qm, "X1", group_id=b"X", sequence_number=1, flags=IN)
    assert names(qm.inspect.look("Q", order="logical")) == ["A", "X1", "X2", "X3", "W2"]


def test_a_group_is_listed_at_the_earliest_of_several_first_messages(qm: QueueManager) -> None:
    for name, group in (("Y1", b"Y"), ("A", b""), ("Y1 again", b"Y"), ("Y2", b"Y")):
        number = 2 if name == "Y2" else 1
        put(qm, name, **({"group_id": group, "sequence_number": number, "flags": IN} if group else {}))
    assert names(qm.inspect.look("Q", order="logical")) == ["Y1", "Y1 again", "Y2", "A"]


@pytest.mark.every_store
def test_messages_are_listed_by_priority_and_those_without_a_place_last(
    store: RestartableStore, qm: QueueManager
) -> None:
    qm.alter_queue("Q", order="commit")
    others = qm.connect(program="other")
    for number in range(3):
        put(others if number % 2 else qm, f"unplaced {number}", syncpoint=True, priority=9)
    for priority in (1, 9, 5):
        put(qm, f"priority {priority}", priority=priority, syncpoint=False)
    expected = ["priority 9", "priority 5", "priority 1", "unplaced 0", "unplaced 1", "unplaced 2"]
    for order in ("physical", "logical"):
        for page in (1, 4, 1000):
            with mock.patch.object(inspection, "PAGE_MESSAGES", page):
                assert names(qm.inspect.look("Q", order=order)) == expected
    assert [one.place is None for one in qm.inspect.look("Q")] == [False] * 3 + [True] * 3


# --- states and holders


@pytest.mark.every_store
def test_every_state_and_holder_is_shown(qm: QueueManager, clock: ManualClock) -> None:
    for name in ("available", "got", "browsed", "confirmed", "claimed", "prepared"):
        put(qm, name, correlation_id=name.encode())
    put(qm, "locked", correlation_id=b"lock")
    put(qm, "delayed", delay=60.0)
    began = clock.now()
    clock.advance(5.0)
    qm.get("Q", match=Match(correlation_id=b"prepared"), syncpoint=True)
    qm.prepare("P")
    qm.get("Q", match=Match(correlation_id=b"got"), syncpoint=True)
    put(qm, "put", syncpoint=True)
    put(qm, "put under 7", confirm_id=7)
    qm.get("Q", match=Match(correlation_id=b"confirmed"), confirm_id=8)
    lock_id = qm.browse_and_lock("Q", Match(correlation_id=b"lock")).lock_id
    with qm.open("Q", browse=True) as handle, qm.open("Q", input="shared") as claiming:
        handle.browse_first(match=Match(correlation_id=b"browsed"), lock=True)
        reader = ClaimReader(claiming, "app")
        assert reader.claim(reader.begin().settled, most=2) is not None
        found = {one.message.body.decode(): one for one in qm.inspect.look("Q")}
        told = {
            name: (one.state, one.holder and (one.holder.kind, one.holder.name, one.holder.since - began))
            for name, one in found.items()
        }
        assert told == {
            "available": ("claimed", ("claim", "app#1", 5.0)),
            "claimed": ("claimed", ("claim", "app#1", 5.0)),
            "got": ("got", ("session", "", 5.0)),
            "browsed": ("locked", ("handle", "", 5.0)),
            "confirmed": ("got", ("confirm", "8", 5.0)),
            "prepared": ("got", ("prepared", "P", 5.0)),
            "locked": ("locked", ("lock", str(lock_id), 5.0)),
            "delayed": ("delayed", None),
            "put": ("put", ("session", "", 5.0)),
            "put under 7": ("put", ("confirm", "7", 5.0)),
        }
        assert {one.holder.program.name for one in found.values() if one.holder} == {"test"}
        own = {name: one.holder and (one.holder.connection, one.holder.process) for name, one in found.items()}
        assert own["got"] == own["put"] == own["browsed"] == (qm.internals.owner, os.getpid())
        assert own["locked"] == own["prepared"] == own["claimed"] == (None, None)
        assert (found["put"].visible_since, found["got"].visible_since) == (None, began)
        assert found["delayed"].due_at == began + 60.0
        held = {one.kind: set(names(qm.inspect.look("Q", unit=one))) for one in qm.inspect.units() if one.name != "7"}
        assert held == {
            "session": {"got", "put"},
            "prepared": {"prepared"},
            "confirm": {"confirmed"},
            "lock": {"locked"},
            "claim": {"available", "claimed"},
        }
        assert qm.inspect.status("Q").current_depth == 8, "nothing was taken by looking"


def test_a_delayed_message_is_available_when_its_time_has_come(qm: QueueManager, clock: ManualClock) -> None:
    put(qm, "late", delay=5.0)
    clock.advance(5.0)
    assert [(one.state, one.due_at) for one in qm.inspect.look("Q")] == [("available", None)]


@pytest.mark.every_store
def test_expired_messages_are_not_listed_and_not_discarded_by_a_listing(qm: QueueManager, clock: ManualClock) -> None:
    put(qm, "kept", expiry=5.0)
    put(qm, "Y1", group_id=b"Y", sequence_number=1, flags=IN, expiry=5.0)
    put(qm, "Y2", group_id=b"Y", sequence_number=2, flags=LAST)
    qm.get("Q", syncpoint=True)
    clock.advance(5.0)
    assert names(qm.inspect.look("Q")) == ["kept", "Y2"], "what a unit of work got does not expire"
    assert names(qm.inspect.look("Q", order="logical")) == ["kept", "Y2"]
    assert qm.inspect.gaps("Q", b"Y") == Gaps(sequences=((1, 1),))
    assert qm.inspect.overview()[0].depth == 2, "looking discards nothing"


@pytest.mark.every_store
def test_a_listing_truncates_bodies_and_shows_their_full_lengths(qm: QueueManager) -> None:
    for length in (0, 10, 2048, 2049, 100_000):
        qm.put("Q", b"x" * length)
    for preview in (0, 1, 64, 5000):
        found = [(len(one.message.body), one.length) for one in qm.inspect.look("Q", preview=preview)]
        assert found == [(min(length, preview), length) for length in (0, 10, 2048, 2049, 100_000)]


# --- matches


@pytest.mark.every_store
@pytest.mark.parametrize("order", ["physical", "logical"])
def test_a_match_selects_messages_and_keeps_their_order(qm: QueueManager, order: ListingOrder) -> None:
    put_figure(qm)
    assert names(qm.inspect.look("Q", order=order, match=Match(sequence_number=2))) == (
        ["Z2", "Y2"] if order == "physical" else ["Y2", "Z2"]
    )
    assert names(qm.inspect.look("Q", order=order, match=Match(group_id=b"Y"))) == ["Y1", "Y2", "Y3.1", "Y3.2"]
    assert names(qm.inspect.look("Q", order=order, match=Match(priority=5))) == []
    third = next(qm.browse("Q", match=Match(sequence_number=3))).uid
    assert names(qm.inspect.look("Q", order=order, match=Match(uid=third))) == ["Y3.1"]


@pytest.mark.every_store
@pytest.mark.parametrize("rule", ["put", "prepare", "commit"])
def test_the_messages_that_a_unit_holds_can_be_listed(qm: QueueManager, rule: OrderRule) -> None:
    qm.alter_queue("Q", order=rule)
    put_figure(qm)
    other = qm.connect(program="other")
    other.get("Q", syncpoint=True)
    put(other, "new", syncpoint=True)
    put(qm, "mine", syncpoint=True)
    [unit] = [one for one in qm.inspect.units() if one.program.name == "other"]
    assert (unit.connection, unit.process, unit.queues) == (other.internals.owner, os.getpid(), ("Q",))
    assert (
        names(qm.inspect.look("Q", unit=unit))
        == names(qm.inspect.look("Q", order="logical", unit=unit))
        == ["A", "new"]
    )
    other.back_out()
    assert names(qm.inspect.look("Q", unit=unit)) == []


@pytest.mark.every_store
def test_a_unit_names_the_queues_that_it_touches(qm: QueueManager) -> None:
    for name in ("R", "S"):
        qm.create_queue(name)
    for name in ("S", "Q"):
        qm.put(name, b"", syncpoint=True)
    qm.prepare("P")
    qm.put("R", b"", confirm_id=1)
    assert [(one.kind, one.queues, one.connection) for one in qm.inspect.units()] == [
        ("prepared", ("Q", "S"), None),
        ("confirm", ("R",), None),
    ]


@pytest.mark.every_store
def test_new_messages_can_be_listed_whatever_their_priority(qm: QueueManager) -> None:
    put_figure(qm)
    [view] = qm.inspect.overview()
    put(qm, "low", priority=0)
    put(qm, "high", priority=9)
    put(qm, "held", priority=5, syncpoint=True)
    assert names(qm.inspect.look("Q", numbered_after=view.numbered)) == ["high", "held", "low"]
    with mock.patch.object(inspection, "PAGE_MESSAGES", 1):
        assert names(qm.inspect.look("Q", numbered_after=view.numbered)) == ["high", "held", "low"]
    assert names(qm.inspect.look("Q", numbered_after=qm.inspect.overview()[0].numbered)) == []


# --- gaps


@pytest.mark.every_store
def test_the_missing_messages_and_segments_of_a_group_are_reported(qm: QueueManager) -> None:
    put_figure(qm)
    put(qm, "X2", group_id=b"X", sequence_number=2, flags=IN)
    put(qm, "X4", group_id=b"X", sequence_number=4, flags=IN)
    put(qm, "V", group_id=b"V", offset=10, flags=END)
    found = (qm.inspect.gaps("Q", b"Y"), qm.inspect.gaps("Q", b"Z"), qm.inspect.gaps("Q", b"none"))
    assert found == (NO_GAPS, NO_GAPS, NO_GAPS)
    assert qm.inspect.gaps("Q", b"X") == Gaps(sequences=((1, 1), (3, 3)), last=True)
    assert qm.inspect.gaps("Q", b"V") == Gaps(segments=((1, 0, 10),))


def test_a_group_member_held_by_a_unit_of_work_is_not_missing(qm: QueueManager) -> None:
    put_figure(qm)
    qm.get("Q", match=Match(group_id=b"Y", sequence_number=2), syncpoint=True)
    assert qm.inspect.gaps("Q", b"Y") == NO_GAPS
    qm.commit()
    assert qm.inspect.gaps("Q", b"Y") == Gaps(sequences=((2, 2),))


# --- locks, waits, all queues


@pytest.mark.every_store
def test_locks_are_listed_with_their_holders(qm: QueueManager, clock: ManualClock) -> None:
    put_figure(qm)
    began = clock.now()
    with qm.open("Q", browse=True) as handle:
        handle.browse_first(lock=True)
        clock.advance(1.0)
        lock_id = qm.browse_and_lock("Q", Match(group_id=b"Z")).lock_id
        qm.get("Q", lock_id=lock_id, syncpoint=True)
        assert [
            (one.kind, one.queue, one.lock_id, one.program.name, one.connection, one.process, one.since, one.messages)
            for one in qm.inspect.locks()
        ] == [
            ("handle", "Q", None, "test", qm.internals.owner, os.getpid(), began, 1),
            ("lock", "Q", lock_id, "test", None, None, began + 1.0, 2),
        ]
    assert [one.kind for one in qm.inspect.locks()] == ["lock"]


@pytest.mark.every_store
def test_connections_are_listed_with_the_queues_they_have_open(qm: QueueManager) -> None:
    qm.create_queue("OTHER.NAME", type="alias", base_queue="Q")
    qm.create_queue("NEXT")
    writer = qm.connect(program="writer")
    idle = qm.connect(program="idle")
    with qm.open("OTHER.NAME", input="exclusive"), qm.open("Q", browse=True), writer.open("NEXT", output=True):
        qm.put("NEXT", b"1")
        first, second, third = qm.inspect.connections()
        assert first.opened == (
            Opening("Q", "OTHER.NAME", "exclusive", output=False, co_op=False),
            Opening("Q", "Q", None, output=False, co_op=False),
            Opening("NEXT", "NEXT", None, output=True, co_op=False),  # opened by the put by name
        )
        assert second.opened == (Opening("NEXT", "NEXT", None, output=True, co_op=False),)
        assert third.opened == ()
    for one, owner, name in ((first, qm, "test"), (second, writer, "writer"), (third, idle, "idle")):
        assert (one.connection, one.program.name, one.process) == (owner.internals.owner, name, os.getpid())
    writer.close()
    found = [(one.program.name, one.opened) for one in qm.inspect.connections()]
    assert found == [("test", first.opened[2:]), ("idle", ())]


def test_a_deleted_queue_that_is_still_open_is_listed_without_a_name(qm: QueueManager) -> None:
    qm.create_queue("ANSWERS", type="model")
    creator = qm.open("ANSWERS", input="shared", dynamic_name="REPLY")
    with qm.open("REPLY", output=True):
        assert [(one.queue, one.name) for one in qm.inspect.connections()[0].opened] == [("REPLY", "REPLY")] * 2
        creator.close()
        assert [(one.queue, one.name) for one in qm.inspect.connections()[0].opened] == [("", "REPLY")]


def test_the_uses_of_an_open_queue_are_described_in_words() -> None:
    words = {Opening("Q", "Q", one, output=puts, co_op=co_op).uses
             for one in ("shared", "exclusive", None) for puts in (True, False) for co_op in (True, False)}  # fmt: skip
    assert words == {
        *("get", "get, put", "get, browse together", "get, put, browse together"),
        *("get exclusive", "get exclusive, put", "get exclusive, browse together"),
        *("get exclusive, put, browse together", "put", "put, browse together", "browse together", "look"),
    }


@pytest.mark.every_store
def test_waiting_calls_are_listed_with_what_they_wait_for(qm: QueueManager, clock: ManualClock) -> None:
    writer, strict, relaxed = (qm.connect(program=name) for name in ("writer", "strict", "relaxed"))
    clock.advance(1.0)
    put(writer, "first", syncpoint=True)
    since = clock.now()
    put(qm, "second")
    calls = [waiting(strict, lambda: strict.get("Q", wait=30, read_order="strict"))]
    calls.append(waiting(relaxed, lambda: relaxed.get("Q", wait=30, match=Match(priority=9))))
    one, other = qm.inspect.waits()
    assert (one.queue, one.program.name, one.process, one.withheld) == ("Q", "strict", os.getpid(), True)
    assert one.pending is not None
    assert (one.pending.kind.value, one.pending.by, one.pending.since) == ("in", "writer", since)
    assert (one.pending.holder, one.pending.place) == (writer.internals.owner, next(qm.inspect.look("Q")).place)
    assert (other.program.name, other.pending, other.withheld) == ("relaxed", None, False)
    assert qm.inspect.overview()[0].waiters == 2
    writer.commit()
    assert calls[0].result().body == b"first"
    put(qm, "third", priority=9)
    assert calls[1].result().body == b"third"
    assert qm.inspect.waits() == []


@pytest.mark.every_store
def test_the_overview_shows_the_figures_of_all_queues(qm: QueueManager, clock: ManualClock) -> None:
    qm.create_queue("EMPTY")
    qm.create_queue("ALIAS", type="alias", base_queue="Q")
    began = clock.now()
    for number in range(6):
        put(qm, f"{number}", priority=number % 2)
        clock.advance(1.0)
    put(qm, "delayed", delay=60.0)
    put(qm, "put", syncpoint=True)
    qm.get("Q", syncpoint=True)
    qm.browse_and_lock("Q", Match(priority=1))
    empty, view = qm.inspect.overview()
    assert (empty.name, empty.depth, empty.arrived, empty.oldest_put_at) == ("EMPTY", 0, 0, None)
    assert (view.depth, view.arrived, view.numbered) == (7, 8, 8)
    assert (view.puts, view.gets, view.locked, view.delayed) == (1, 1, 2, 1)
    assert (view.open_input_count, view.open_output_count, view.waiters) == (1, 1, 0)
    assert view.oldest_put_at == began
    assert view.created_at == began


@pytest.mark.every_store
def test_the_oldest_message_may_be_one_that_is_held(qm: QueueManager, clock: ManualClock) -> None:
    began = clock.now()
    for body in ("old", "new"):
        put(qm, body)
        clock.advance(1.0)
    qm.get("Q", syncpoint=True)
    assert qm.inspect.overview()[0].oldest_put_at == began
    qm.commit()
    assert qm.inspect.overview()[0].oldest_put_at == began + 1.0


def test_a_check_of_a_sound_store_finds_no_problems_and_reports_its_progress(qm: QueueManager) -> None:
    put_figure(qm)
    told: list[tuple[int, int]] = []
    assert qm.admin.check(lambda done, total: told.append((done, total))) == []
    assert told[0][0] == 0
    assert told[-1][0] == told[-1][1]


@pytest.mark.every_store
def test_messages_may_be_taken_while_a_listing_runs(qm: QueueManager) -> None:
    put_figure(qm)
    with mock.patch.object(inspection, "PAGE_MESSAGES", 2):
        listing = qm.inspect.look("Q", order="logical")
        assert [next(listing).message.body for _ in range(2)] == [b"A", b"Y1"]
        assert len(qm.get_many("Q", 2)) == 2
        assert names(listing) == ["Z1", "Z2", "B", "Y2", "Y3.1", "Y3.2"]


def test_a_changed_queue_is_searched_for_incomplete_groups_again_after_some_seconds() -> None:
    clock = StillClock()
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
        found = groups.of(qm, second)
        assert not found.lacking
        clock.now += AGAIN_SECONDS
        assert groups.of(qm, second) is found, "an unchanged queue is not searched again"
        qm.admin.clear_queue("Q1")
        assert groups.of(qm, (qm.inspect.overview())[0]) == Wholeness()


def test_a_group_cut_off_by_the_limit_of_a_listing_is_not_reported_as_incomplete() -> None:
    with inorder.connect() as qm:
        qm.create_queue("Q1")
        for number in range(1, 6):
            last = Flags.LAST_IN_GROUP if number == 5 else Flags.IN_GROUP
            qm.put("Q1", b"x", group_id=b"whole", sequence_number=number, flags=last)
        cut = wholeness(list(qm.inspect.look("Q1", order="logical", most=3)), 3)
        assert (cut.lacking, cut.is_all) == ((), False)
        assert wholeness(list(qm.inspect.look("Q1", order="logical")), 6) == Wholeness()


def test_the_search_for_incomplete_groups_covers_many_queues_in_turns() -> None:
    ticks = count(0, BUDGET_SECONDS / 4)  # each reading of the clock takes a quarter of the budget
    with inorder.connect() as qm:
        for name in ("A", "B", "C"):
            qm.create_queue(name)
            qm.put(name, b"1", group_id=b"g", flags=Flags.IN_GROUP)
        groups, views = GroupSearches(lambda: next(ticks)), qm.inspect.overview()
        assert sorted(groups.of_all(qm, views)) == ["A", "B"]
        assert sorted(groups.of_all(qm, views)) == ["A", "B", "C"]


def test_the_number_of_remembered_group_searches_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incomplete_groups, "KNOWN_MAX", 2)
    groups = GroupSearches(StillClock())
    with inorder.connect() as qm:
        for number in range(5):
            qm.create_queue(f"Q{number}")
            qm.put(f"Q{number}", b"1", group_id=b"g", flags=Flags.IN_GROUP)
        groups.of_all(qm, qm.inspect.overview())
    assert list(groups._known) == ["Q3", "Q4"]
