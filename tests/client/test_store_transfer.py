"""Messages are transferred exactly once: to all kinds of stores, after a kill at each point, by two runs at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from tests.helpers import carried, forked
from tests.helpers.carried import CARRY, fill, seen
from tests.helpers.support import Make, bodies, until

from inorder import Feedback, Match, Message, OrderPending, QueueFull, QueueManager, Report, connect
from inorder.client import store_transfer
from inorder.client.bulk import Bulk, ClaimReader, Staged, Stager
from inorder.errors import ArgumentError, Fenced, GetInhibited, MessageTooBig, ObjectInUse, PutInhibited
from inorder.model.attributes import OrderRule
from inorder.stores.seam.records import Settled
from inorder.testing import ManualClock

KINDS = ("sqlite", "postgresql")


class World(SimpleNamespace):
    """Two open stores, each with a queue Q."""

    source: str
    target: str
    a: QueueManager
    b: QueueManager


@pytest.fixture
def world(make: Make) -> Iterator[World]:
    source, target = make("sqlite"), make("sqlite")
    with connect(source) as a, connect(target) as b:
        a.create_queue("Q")
        b.create_queue("Q")
        yield World(source=source, target=target, a=a, b=b)


def numbered(qm: QueueManager, many: int, **fields: object) -> None:
    qm.put_many("Q", [b"%d" % number for number in range(many)], **fields)  # type: ignore[arg-type]


# --- between all kinds


@pytest.mark.parametrize("command", list(CARRY))
@pytest.mark.parametrize(
    ("source", "target", "order"),
    [("sqlite", "sqlite", "put"), ("sqlite", "postgresql", "commit"), ("postgresql", "sqlite", "commit")],
)
def test_messages_arrive_unchanged_and_in_their_order(
    make: Make, source: str, target: str, order: OrderRule, command: str
) -> None:
    one, other = make(source), make(target)
    with connect(one) as a, connect(other) as b:
        a.create_queue("Q", order=order)
        b.create_queue("Q", order=order)
        fill(a)
        # Waits for the real clock: a store that several processes share has no clock to set.
        until(lambda: len(seen(a)) == 12, "the last one has expired")
        before = seen(a)
        assert carried.work(command, one, other) == 12
        assert seen(b) == before
        assert seen(a) == ([] if command == "move" else before)
        assert carried.work(command, one, other) == 0
        assert (seen(b), a.inspect.units(), b.inspect.units()) == (before, [], [])


KILLED = """
from tests.helpers.carried import work
from tools.proof import crash_points

step = crash_points.kill_at_step(int(arguments[0]))
work(*arguments[1:], begun=lambda: crash_points.reach(step))
"""
STRIDES = {("sqlite", "sqlite"): 1}  # kills take longer on a server, where the points are the same


@pytest.mark.nightly
@pytest.mark.parametrize("command", list(CARRY))
@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("source", KINDS)
def test_a_transfer_killed_at_each_point_loses_and_duplicates_nothing(
    make: Make, source: str, target: str, command: str
) -> None:
    point, deaths = 1, 0
    while True:
        one, other = make(source), make(target)
        with connect(one) as a, connect(other) as b:
            a.create_queue("Q")
            b.create_queue("Q")
            fill(a)
            a.get("Q", match=Match(priority=0), read_order="relaxed")
            before = [each for each in seen(a) if each["body"] != b"dead"]
            killed = forked.run(KILLED, str(point), command, one, other) != 0
            deaths += killed
            carried.work(command, one, other)
            left = [each for each in seen(a) if each["body"] != b"dead"]
            arrived = [each for each in seen(b) if each["body"] != b"dead"]
            assert arrived == before, f"killed at point {point}"
            assert left == ([] if command == "move" else before), f"killed at point {point}"
            assert not any(claims.held for claims in a.bulk.claims())
        if not killed:
            break
        point += STRIDES.get((source, target), 9)
    assert deaths >= 30 / STRIDES.get((source, target), 9)


@pytest.mark.gate
@pytest.mark.parametrize("command", list(CARRY))
def test_a_transfer_killed_as_the_only_process_of_its_stores_can_be_continued(make: Make, command: str) -> None:
    """Nonpersistent messages, claimed or not, are lost with the last process."""
    one, other = make("sqlite"), make("sqlite")
    with connect(one) as a, connect(other) as b:
        a.create_queue("Q")
        b.create_queue("Q")
        numbered(a, 6, persistent=False)
        a.put("Q", b"kept")
    for point in (9, 14, 19):
        forked.run(KILLED, str(point), command, one, other)
    carried.work(command, one, other)
    with connect(one) as a, connect(other) as b:
        assert [message.body for message in b.browse("Q") if message.persistent] == [b"kept"]
        assert not any(claims.held for claims in a.bulk.claims())


# --- two at once


@pytest.mark.parametrize(
    ("command", "unit", "told"),
    [
        ("move", 2, "was started again after"),
        ("copy", 2, "has another writer on Q"),
        ("copy", 3, "has another writer on Q"),  # its batches differ from those of the first run
    ],
)
def test_of_two_transfers_with_one_name_only_the_later_one_continues(
    world: World, command: str, unit: int, told: str
) -> None:
    numbered(world.a, 10)
    first = CARRY[command](world.a, "Q", world.b, "Q", unit=2)
    assert next(first) == 2
    with connect(world.source) as a, connect(world.target) as b:
        second = CARRY[command](a, "Q", b, "Q", unit=unit)
        assert next(second) == unit
        with pytest.raises(Fenced, match=told):
            next(first)
        assert sum(second) == 8 - unit
    assert bodies(world.b) == [b"%d" % number for number in range(10)]


def test_a_move_that_was_paused_during_a_later_one_puts_nothing_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It settles its staged batch after the ledger has forgotten that batch."""
    monkeypatch.setattr("inorder.stores.engine.staging.LEDGER_BATCHES_MAX", 2)
    numbered(world.a, 10)
    settle = Bulk.settle_staging

    def sleeps(qm: Bulk, *given: object, **named: object) -> object:
        monkeypatch.setattr(Bulk, "settle_staging", settle)
        with connect(world.source) as a, connect(world.target) as b:
            assert sum(store_transfer.move(a, "Q", b, "Q", unit=2)) == 10
        return settle(qm, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Bulk, "settle_staging", sleeps)
    with pytest.raises(Fenced, match="has another writer on Q"):
        list(store_transfer.move(world.a, "Q", world.b, "Q", unit=2))
    assert bodies(world.b) == [b"%d" % number for number in range(10)]
    assert world.b.inspect.units() == []


def test_transfers_with_other_names_or_other_sources_are_independent(world: World, make: Make) -> None:
    numbered(world.a, 3)
    for name in ("copy", "again"):
        assert sum(store_transfer.copy(world.a, "Q", world.b, "Q", application=name)) == 3
    assert sum(store_transfer.copy(world.a, "Q", world.b, "Q", match=Match(priority=0))) == 3
    with connect(make("sqlite")) as c:
        c.create_queue("Q")
        numbered(c, 2)
        assert sum(store_transfer.copy(c, "Q", world.b, "Q")) == 2
        assert sum(store_transfer.move(c, "Q", world.b, "Q")) == 2
    world.a.close_queue("Q")
    world.a.delete_queue("Q", purge=True)
    world.a.create_queue("Q")
    numbered(world.a, 1)
    assert sum(store_transfer.copy(world.a, "Q", world.b, "Q")) == 1
    assert sum(store_transfer.move(world.a, "Q", world.b, "Q")) == 1
    assert world.b.depth("Q") == 3 + 3 + 3 + 2 + 2 + 1 + 1


def test_of_two_moves_that_staged_the_same_batch_one_continues(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first move puts the batch but may not confirm it; the second finds it put and confirms it."""
    numbered(world.a, 4)
    settle, firsts = Bulk.settle_staging, list[Settled]()
    first = store_transfer.move(world.a, "Q", world.b, "Q", unit=2)

    def later(qm: Bulk, *given: object, **named: object) -> object:
        monkeypatch.setattr(Bulk, "settle_staging", sooner)
        with connect(world.source) as a, connect(world.target) as b:
            second = store_transfer.move(a, "Q", b, "Q", unit=2)
            assert sum(second) == 4
        return firsts[0]

    def sooner(qm: Bulk, *given: object, **named: object) -> object:
        monkeypatch.setattr(Bulk, "settle_staging", settle)
        staged = [unit.name for unit in world.b.inspect.units() if unit.kind == "staging"]
        assert len(staged) == 2
        ((theirs, count),) = ((name, 2) for name in staged if name != given[1][0].name)  # type: ignore[index]
        firsts.append(settle(world.b.bulk, given[0], [Staged(theirs, count)], after=""))  # type: ignore[arg-type]
        assert not firsts[0].already
        return settle(qm, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Bulk, "settle_staging", later)
    with pytest.raises(Fenced):
        list(first)
    assert bodies(world.b) == [b"0", b"1", b"2", b"3"]
    assert (world.a.depth("Q"), world.b.inspect.units()) == (0, [])


def test_a_batch_that_may_have_arrived_on_one_queue_is_not_moved_to_another(world: World) -> None:
    numbered(world.a, 4)
    world.b.create_queue("OTHER")
    runs = store_transfer.move(world.a, "Q", world.b, "Q", unit=2)
    assert next(runs) == 2
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ClaimReader, "settle", _stopped)
        with pytest.raises(KeyboardInterrupt):
            next(runs)
    assert len(bodies(world.b)) == 4, "it has arrived, and the source does not know"
    with pytest.raises(ObjectInUse, match="may have arrived there") as refused:
        list(store_transfer.move(world.a, "Q", world.b, "OTHER"))
    assert (refused.value.data["queue"], bodies(world.b, "OTHER")) == ("Q", [])
    assert sum(store_transfer.move(world.a, "Q", world.b, "Q")) == 2
    numbered(world.a, 1)
    assert sum(store_transfer.move(world.a, "Q", world.b, "OTHER")) == 1
    assert len(bodies(world.b)) == 4


@pytest.mark.parametrize("carry", [store_transfer.move, store_transfer.copy])
@pytest.mark.parametrize("name", ["most", "unit", "unit_bytes"])
@pytest.mark.parametrize("value", [0, None, 1.5])
def test_bad_sizes_are_refused(world: World, carry: Any, name: str, value: object) -> None:
    numbered(world.a, 1)
    with pytest.raises(ArgumentError, match=rf"^{name} must be an integer from 1 "):
        list(carry(world.a, "Q", world.b, "Q", **{name: value}))
    assert (world.a.depth("Q"), world.b.depth("Q")) == (1, 0)


def test_a_batch_whose_claim_is_released_may_be_moved_to_another_queue(world: World) -> None:
    numbered(world.a, 2)
    world.b.create_queue("OTHER")
    long = "x" * 200
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(store_transfer.LedgerWriter, "put", _stopped)
        with pytest.raises(KeyboardInterrupt):
            list(store_transfer.move(world.a, "Q", world.b, "Q", application=long))
    with pytest.raises(ObjectInUse) as refused:
        list(store_transfer.move(world.a, "Q", world.b, "OTHER", application=long))
    assert world.a.bulk.release_claims("Q", str(refused.value.data["application"])) == 2
    assert sum(store_transfer.move(world.a, "Q", world.b, "OTHER", application=long)) == 2


def _stopped(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


# --- the target refuses


def test_a_move_that_finds_no_message_succeeds_although_the_target_is_full(world: World) -> None:
    world.b.alter_queue("Q", max_depth=3)
    numbered(world.a, 3)
    world.a.put("Q", b"held")
    with connect(world.source) as other:
        held = list(world.a.browse("Q"))[3].message_id
        other.get("Q", match=Match(message_id=held), syncpoint=True)
        world.a.put("Q", b"later", delay=900)
        assert sum(store_transfer.move(world.a, "Q", world.b, "Q", unit=3)) == 3
        assert sum(store_transfer.move(world.a, "Q", world.b, "Q")) == 0
        other.back_out()
    with pytest.raises(QueueFull):
        list(store_transfer.move(world.a, "Q", world.b, "Q"))


def test_a_claimed_batch_is_moved_later_if_others_have_filled_the_target(world: World) -> None:
    world.b.alter_queue("Q", max_depth=4)
    numbered(world.a, 4)
    runs = store_transfer.move(world.a, "Q", world.b, "Q", unit=2)
    assert next(runs) == 2
    filled = store_transfer.LedgerWriter.put

    def fills(onto: store_transfer.LedgerWriter, *given: object, **named: object) -> None:
        world.b.put("Q", b"other")
        filled(onto, *given, **named)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(store_transfer.LedgerWriter, "put", fills)
        with pytest.raises(QueueFull):
            next(runs)
    assert [claim.open is not None for claim in world.a.bulk.claims()] == [True]
    with pytest.raises(QueueFull):
        list(store_transfer.move(world.a, "Q", world.b, "Q", unit=2))
    world.b.alter_queue("Q", max_depth=5)
    assert sum(store_transfer.move(world.a, "Q", world.b, "Q", unit=2)) == 2
    assert bodies(world.b) == [b"0", b"1", b"other", b"2", b"3"]


@pytest.mark.parametrize("command", list(CARRY))
def test_a_message_that_is_too_long_for_the_target_is_not_truncated(world: World, command: str) -> None:
    world.b.alter_queue("Q", max_length=10)
    world.a.put_many("Q", [b"short", b"1" * 11])
    with pytest.raises(MessageTooBig, match="at most 10 bytes, and one of these has 11"):
        list(CARRY[command](world.a, "Q", world.b, "Q", unit=1))
    world.b.alter_queue("Q", max_length=11)
    assert sum(CARRY[command](world.a, "Q", world.b, "Q")) == 1
    assert bodies(world.b) == [b"short", b"1" * 11]


@pytest.mark.parametrize("command", list(CARRY))
def test_inhibited_queues_refuse_before_anything_is_held(world: World, command: str) -> None:
    numbered(world.a, 2)
    world.b.alter_queue("Q", put_allowed=False)
    with pytest.raises(PutInhibited):
        list(CARRY[command](world.a, "Q", world.b, "Q"))
    world.b.alter_queue("Q", put_allowed=True)
    world.a.alter_queue("Q", get_allowed=False)
    with pytest.raises(GetInhibited):
        list(CARRY[command](world.a, "Q", world.b, "Q"))
    assert (world.a.inspect.units(), world.b.inspect.units()) == ([], [])
    world.a.alter_queue("Q", get_allowed=True, put_allowed=False)  # inhibiting puts on the source does not matter
    assert sum(CARRY[command](world.a, "Q", world.b, "Q")) == 2


# --- the messages that are taken


def test_a_copy_stops_before_a_message_that_another_holds_and_continues_there_later(world: World) -> None:
    numbered(world.a, 5)
    with connect(world.source) as other:
        other.get("Q", match=Match(message_id=list(world.a.browse("Q"))[3].message_id), syncpoint=True)
        with pytest.raises(OrderPending):
            list(store_transfer.copy(world.a, "Q", world.b, "Q", unit=2))
        assert bodies(world.b) == [b"0", b"1", b"2"]
        other.back_out()
    assert list(store_transfer.copy(world.a, "Q", world.b, "Q")) == [2]
    world.a.put("Q", b"later")
    assert list(store_transfer.copy(world.a, "Q", world.b, "Q")) == [1]


def test_groups_are_moved_whole_and_in_logical_order_in_several_batches(world: World) -> None:
    with connect(world.source) as other, world.a.unit_of_work(), world.a.group("Q") as one:
        for number in range(5):
            one.put(b"a%d" % number)
            other.put("Q", b"between %d" % number)
    assert sum(store_transfer.move(world.a, "Q", world.b, "Q", logical=True, unit=2)) == 10
    group = [b"a%d" % number for number in range(5)]
    assert bodies(world.b) == group + [b"between %d" % number for number in range(5)]
    assert [message.body for message in world.b.get_group("Q")] == group


def test_transfers_are_limited_by_messages_and_bytes(world: World) -> None:
    world.a.put_many("Q", [b"x" * 1000] * 10)
    assert list(store_transfer.move(world.a, "Q", world.b, "Q", most=5, unit_bytes=2000)) == [2, 2, 1]
    assert list(store_transfer.copy(world.a, "Q", world.b, "Q", most=3, unit_bytes=2000)) == [2, 1]
    assert list(store_transfer.copy(world.a, "Q", world.b, "Q", unit=4)) == [2]


def test_a_copy_with_a_selector_can_be_continued_with_it(world: World) -> None:
    world.a.put_many("Q", [Message(b"%d" % number, properties={"n": number}) for number in range(10)])
    odd = Match(selector="n IN (1, 3, 5, 7)")
    assert list(store_transfer.copy(world.a, "Q", world.b, "Q", match=odd, unit=3, most=3)) == [3]
    assert sum(store_transfer.copy(world.a, "Q", world.b, "Q", match=odd)) == 1
    assert [message.properties for message in world.b.browse("Q")] == [{"n": number} for number in (1, 3, 5, 7)]


def test_a_transfer_through_aliases_continues_that_of_their_queues(world: World) -> None:
    for qm in (world.a, world.b):
        qm.create_queue("A", type="alias", base_queue="Q")
    numbered(world.a, 3)
    assert sum(store_transfer.copy(world.a, "A", world.b, "A", most=2)) == 2
    assert sum(store_transfer.copy(world.a, "Q", world.b, "Q")) == 1
    assert sum(store_transfer.move(world.a, "A", world.b, "A")) == 3


def test_the_expiry_of_a_message_decreases_while_it_is_claimed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.a.put("Q", b"1", expiry=900)
    with world.a.open("Q", input="as_queue") as queue:
        reader = ClaimReader(queue, store_transfer._claimer("move", world.b, "Q"))
        assert reader.claim(reader.begin().settled) is not None
        later = ManualClock(time.time() + 600)
        monkeypatch.setattr(queue.internals.session.services.store, "clock", later)
        assert sum(store_transfer.move(world.a, "Q", world.b, "Q")) == 1
    expiry = next(world.b.browse("Q")).expiry
    assert expiry is not None
    assert 100 < expiry < 301, "of 900 seconds 600 have passed, and what the test took"


def test_a_large_batch_is_staged_in_parts(world: World) -> None:
    """A batch of 24 mebibytes is staged in parts of about eight."""
    world.a.put_many("Q", [b"x" * 2**20] * 24)
    sizes: list[int] = []
    stage = Stager.stage

    def noted(stager: Stager, count: int, columns: store_transfer.Columns) -> None:
        sizes.append(sum(map(len, columns["body"])))
        stage(stager, count, columns)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Stager, "stage", noted)
        assert list(store_transfer.move(world.a, "Q", world.b, "Q", unit_bytes=2**30)) == [24]
    assert (sum(sizes), max(sizes) <= 9 * 2**20) == (24 * 2**20, True)


@pytest.mark.parametrize("command", list(CARRY))
def test_a_transferred_message_is_not_reported_as_delivered_at_the_source(world: World, command: str) -> None:
    for qm in (world.a, world.b):
        qm.create_queue("REPORTS")
    world.a.put("Q", b"1", report=Report.COA | Report.COD, reply_to_queue="REPORTS", reply_to_queue_manager="")
    assert world.a.get("REPORTS").feedback == Feedback.COA
    assert carried.work(command, world.source, world.target) == 1
    assert world.a.depth("REPORTS") == 0  # no COD: the message was not delivered
    (there,) = world.b.browse("Q")
    assert (there.report, there.reply_to_queue) == (Report.COA | Report.COD, "REPORTS")


@pytest.mark.parametrize("command", list(CARRY))
def test_a_transferred_message_is_not_reported_as_arrived_at_the_target(world: World, command: str) -> None:
    name = world.b.admin.manager_attributes().name
    world.b.create_queue("REPORTS")
    world.a.put("Q", b"1", report=Report.COA | Report.COD, reply_to_queue="REPORTS", reply_to_queue_manager=name)
    assert carried.work(command, world.source, world.target) == 1
    assert (world.b.depth("REPORTS"), world.b.inspect.dropped()) == (0, [])
    world.b.get("Q")
    assert world.b.get("REPORTS").feedback == Feedback.COD


BOTH = Report.COA | Report.COD


def feedbacks(qm: QueueManager) -> list[int]:
    """Gets all reports; returns their feedbacks."""
    return [one.feedback for one in qm.get_many("R", qm.depth("R"))] if qm.depth("R") else []


def prepare(qm: QueueManager) -> None:
    for name in ("R", "TO"):
        qm.create_queue(name)
    qm.put("Q", b"1", report=BOTH, reply_to_queue="R")
    assert feedbacks(qm) == [Feedback.COA]


@pytest.mark.every_store
def test_a_moved_message_is_reported_as_delivered_when_it_is_got(qm: QueueManager) -> None:
    prepare(qm)
    with store_transfer.moving(qm):
        qm.put("TO", qm.get("Q"), context="set_all")
    assert (qm.depth("Q"), qm.depth("TO"), feedbacks(qm)) == (0, 1, [])
    got = qm.get("TO")
    assert (got.body, got.report, feedbacks(qm)) == (b"1", BOTH, [Feedback.COD])


def test_a_unit_of_work_after_a_move_makes_its_reports_as_usual(qm: QueueManager) -> None:
    prepare(qm)
    with store_transfer.moving(qm):
        qm.put("TO", qm.get("Q"), context="set_all")
    with qm.unit_of_work():
        qm.put("Q", b"2", report=BOTH, reply_to_queue="R")
        qm.get("TO")
    assert sorted(feedbacks(qm)) == [Feedback.COA, Feedback.COD]


def test_a_moved_message_triggers_on_its_target_queue(qm: QueueManager) -> None:
    prepare(qm)
    qm.create_queue("INIT")
    qm.admin.create_process("SERVE")
    qm.alter_queue("TO", trigger_control=True, trigger_type="first", initiation_queue="INIT", process="SERVE")
    with store_transfer.moving(qm):
        qm.put("TO", qm.get("Q"), context="set_all")
    qm.close_queue("TO")
    assert qm.depth("INIT") == 1
