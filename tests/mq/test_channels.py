"""Channels carry messages to another queue manager once, in order, even if a run or a store dies (C-1 to C-7)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from signal import SIGKILL
from typing import Any

import pytest
from tests.helpers import forked
from tests.helpers.carried import ITS_OWN, SAME, fill
from tests.helpers.channelled import World, bodies, carry, link, manager, numbers, put_back, world_of
from tests.helpers.support import Make

from inorder import CallerError, Flags, QueueManager, connect
from inorder.errors import (
    ArgumentError,
    ChannelStopped,
    Fenced,
    InorderError,
    ObjectInUse,
    Reason,
    SequenceError,
    StoreError,
    Undeliverable,
    UnknownObject,
)
from inorder.mq import channels
from inorder.mq.channels.sides import Receiver, Sending, open_receiver
from inorder.stores.engine.receiving import ReceivingVerbs
from inorder.stores.seam.channel_records import Carrying, NextBatch

KINDS = ("sqlite", "postgresql")


@pytest.fixture
def world(make: Make) -> Iterator[World]:
    with world_of(make("sqlite"), make("sqlite")) as made:
        yield made


# --- arrival


PAIRS = [("sqlite", "sqlite"), ("sqlite", "postgresql"), ("postgresql", "sqlite")]


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_messages_arrive_unchanged(make: Make, source: str, target: str) -> None:
    """Section 2: ids, priority, persistence, expiry, properties, groups, segments, contexts."""
    one, other = make(source), make(target)
    manager(one, "A")
    manager(other, "B")
    link(one, "B", other)
    with connect(one) as a, connect(other) as b:
        a.create_queue("FAR", type="remote", remote_queue="Q", remote_manager="B")
        a.create_queue("HERE")
        for queue in ("HERE", "FAR"):
            fill(a, queue)
            a.put(queue, b"with properties", properties={"colour": "red", "count": 3}, report=0)
        before = list(a.browse("HERE", read_order="relaxed"))
        carry(one, "TO.B")
        arrived = list(b.browse("Q", read_order="relaxed"))
        before, arrived = ([one for one in found if one.body != b"dead"] for found in (before, arrived))
        assert len(arrived) == 13
        for sent, came in zip(before, arrived, strict=True):
            made = {"message_id", "group_id", "put_at", "reply_to_queue_manager"}  # these differ between two puts
            names = [name for name in SAME if name not in made | ITS_OWN]
            assert [(name, getattr(came, name)) for name in names] == [(name, getattr(sent, name)) for name in names]
            assert (came.expiry is None) == (sent.expiry is None)


# --- deaths

KILLED = """
from tests.helpers.channelled import carry
from tools.proof import crash_points

step = crash_points.kill_at_step(int(arguments[0]))
carry(*arguments[1:], begun=lambda: crash_points.reach(step))
"""
STRIDES = {("sqlite", "sqlite"): 1}


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("source", KINDS)
def test_a_run_killed_at_each_point_loses_and_doubles_no_message(make: Make, source: str, target: str) -> None:
    """C-1: dies at each point of the run, and of each verb that it calls on either side."""
    point, deaths, stride = 1, 0, STRIDES.get((source, target), 7)
    while True:
        one, other = make(source), make(target)
        manager(one, "A")
        manager(other, "B")
        link(one, "B", other)
        with connect(one) as a, connect(other) as b:
            a.put_many("Q", numbers(0, 9), manager="B")
            a.put("NOWHERE", b"dead", manager="B")
            killed = forked.run(KILLED, str(point), one, "TO.B") != 0
            deaths += killed
            carry(one, "TO.B")
            assert bodies(b) == numbers(0, 9), f"killed at point {point}"
            assert bodies(b, "DEAD") == [b"dead"], f"killed at point {point}"
            (now,) = channels.status(a)
            assert (now.status, now.number, now.in_doubt, now.messages) == ("inactive", 3, 0, 10), f"at point {point}"
            assert (a.depth("B"), [received.number for received in channels.received(b)]) == (0, [3])
            assert a.admin.check() == b.admin.check() == []
        if not killed:
            break
        point += stride
    assert deaths >= 30 / stride


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_two_carriers_killed_at_random_lose_and_double_no_message(world: World, seed: int) -> None:
    """One carrier dies at a random point, and the other one continues at once."""
    world.put(0, 60)
    random = Random(seed)
    points = [[random.randrange(5, 120) for _ in range(8)] for _ in range(2)]

    def lives(chosen: list[int]) -> int:
        return sum(forked.run(KILLED, str(point), world.source, "TO.B") != 0 for point in chosen)

    with ThreadPoolExecutor(2) as threads:
        deaths = sum(threads.map(lives, points))
    world.run()
    assert bodies(world.b) == numbers(0, 60), f"seed {seed}"
    assert world.a.admin.check() == world.b.admin.check() == []
    assert deaths


# --- runs


@pytest.mark.parametrize(("mode", "there"), [("quiesce", 4), ("force", 4), ("terminate", 4)])
def test_a_stopped_channel_continues_after_a_start(world: World, mode: channels.defining.StopMode, there: int) -> None:
    world.put(0, 8)

    def stops(_: float) -> bool:
        with connect(world.source) as other:
            channels.stop_channel(other, "TO.B", mode)
        return False

    now = channels.run_channel(world.a, "TO.B", until_empty=True, wait=stops)
    assert (now.status, now.stop, len(bodies(world.b))) == ("stopped", mode, there)
    assert now.in_doubt == (0 if mode == "quiesce" else 4)
    with pytest.raises(ChannelStopped):
        world.run()
    channels.start_channel(world.a, "TO.B")
    assert world.run().status == "inactive"
    assert bodies(world.b) == numbers(0, 8)


def test_a_start_while_the_run_is_still_stopping_is_not_undone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """C-6: the run has read that it must stop, and an operator starts the channel before it has ended."""
    world.put(0, 4)

    def reached(point: str) -> None:
        if point == "received":
            channels.stop_channel(world.a, "TO.B")
        elif point == "confirmed":
            channels.start_channel(world.a, "TO.B")

    with monkeypatch.context() as patched:
        patched.setattr(channels.points, "reached", reached)
        now = channels.run_channel(world.a, "TO.B")
    assert (now.status, now.stop) == ("inactive", "")
    world.put(4, 8)
    world.run()
    assert bodies(world.b) == numbers(0, 8)


def test_a_start_while_an_operator_resolves_is_not_undone(world: World) -> None:
    world.put(0, 4)
    world.dies("sending")
    channels.stop_channel(world.a, "TO.B")

    def starts(location: str) -> Receiver:
        channels.start_channel(world.a, "TO.B")
        return open_receiver(location)

    assert channels.resolve_channel(world.a, "TO.B", connects=starts) == "back_out"
    assert (world.now().status, world.now().stop) == ("inactive", "")


def test_a_resolve_keeps_the_error_of_a_run_that_ended_meanwhile(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.put(0, 4)
    world.dies("sending")
    world.b.delete_queue("Q")
    world.b.admin.alter_manager(dead_letter_queue="")
    take = Sending.take

    def takes(sending: Sending, **given: bool) -> Carrying:
        monkeypatch.setattr(Sending, "take", take)
        with pytest.raises(Undeliverable):
            world.run()
        return take(sending, **given)

    monkeypatch.setattr(Sending, "take", takes)
    assert channels.resolve_channel(world.a, "TO.B") == "back_out"
    assert (world.now().status, world.now().reason) == ("stopped", Reason.UNKNOWN_OBJECT_NAME)


def test_a_paused_channel_is_stopped_within_a_second(world: World) -> None:
    channels.alter_channel(world.b, "TO.B", message_retry_count=1, message_retry_interval=600)
    world.b.alter_queue("Q", put_allowed=False)
    world.put(0, 4)
    waited: list[float] = []

    def stops(seconds: float) -> bool:
        waited.append(seconds)
        if world.now().status == "paused":
            channels.stop_channel(world.a, "TO.B")
        return False

    now = channels.run_channel(world.a, "TO.B", wait=stops)
    assert (now.status, now.in_doubt, max(waited)) == ("stopped", 4, 1)


def test_a_channel_that_is_defined_again_is_not_stopped(world: World) -> None:
    """Its numbers continue, and a reset that the receiver has not yet taken is kept."""
    world.put(0, 4)
    world.run()
    channels.reset_channel(world.a, "TO.B", 8)
    channels.stop_channel(world.a, "TO.B")
    channels.delete_channel(world.a, "TO.B")
    channels.define_channel(world.a, "TO.B", transmission_queue="B", connection=world.target)
    assert (world.now().status, world.now().stop) == ("inactive", "")
    world.put(4, 8)
    assert world.run().number == 8
    assert bodies(world.b) == numbers(0, 8)


def test_the_time_of_a_fast_message_counts_from_its_removal(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the run stalls between the removal and its reading of the clock."""
    for qm in (world.a, world.b):
        channels.alter_channel(qm, "TO.B", nonpersistent_speed="fast")
    world.a.put("Q", b"1", manager="B", persistent=False, expiry=1000)
    take, stalled = Sending.next, 0.0

    def stalls(sending: Sending, *given: Any, **named: Any) -> NextBatch:
        nonlocal stalled
        found = take(sending, *given, **named)
        stalled = 600.0
        return found

    monkeypatch.setattr(Sending, "next", stalls)
    monkeypatch.setattr(Sending, "now", lambda _: time.time() + stalled)
    world.run()
    assert [one.body for one in world.b.browse("Q") if one.expiry is not None and 300 < one.expiry <= 400] == [b"1"]


# --- sides restored from backup, or made anew


def test_a_receiver_restored_from_a_backup_causes_a_sequence_error(world: World, tmp_path: Path) -> None:
    world.put(0, 4)
    world.run()
    world.b.admin.backup(tmp_path / "b.backup")
    world.put(4, 8)
    world.run()
    world.b.close()
    put_back(tmp_path / "b.backup", world.target)
    world.put(8, 12)
    with pytest.raises(SequenceError):
        world.run()
    with connect(world.target) as b:
        assert bodies(b) == numbers(0, 4)
        assert (world.now().status, world.now().waiting) == ("stopped", 4)
        channels.reset_channel(world.a, "TO.B")  # the operator has seen which messages are missing
        channels.start_channel(world.a, "TO.B")
        world.run()
        assert bodies(b) == numbers(0, 4) + numbers(8, 12)


@pytest.mark.parametrize("runs", [1, 3])  # the receiver has seen as many runs as the sender will start, or more
def test_a_sender_restored_from_a_backup_causes_a_sequence_error(world: World, tmp_path: Path, runs: int) -> None:
    world.put(0, 4)
    world.a.admin.backup(tmp_path / "a.backup")
    for _ in range(runs):
        world.run()
    world.a.close()
    put_back(tmp_path / "a.backup", world.source)
    with connect(world.source) as a:
        with pytest.raises(SequenceError):
            channels.run_channel(a, "TO.B", until_empty=True)
        assert bodies(world.b) == numbers(0, 4)  # not twice
        a.admin.clear_queue("B")
        channels.reset_channel(a, "TO.B", 7)
        channels.start_channel(a, "TO.B")
        a.put("Q", b"new", manager="B")
        assert channels.run_channel(a, "TO.B", until_empty=True).number == 7
    assert bodies(world.b) == [*numbers(0, 4), b"new"]


def test_a_reset_takes_effect_at_the_other_side_when_the_channel_runs(world: World) -> None:
    world.put(0, 4)
    world.run()
    before = world.now().number
    channels.reset_channel(world.a, "TO.B", 70)
    assert (world.now().number, [one.number for one in channels.received(world.b)]) == (69, [before])
    world.put(4, 8)
    world.run()
    assert world.now().number == channels.received(world.b)[0].number >= 70
    world.put(8, 12)
    world.run()  # without a further reset
    assert bodies(world.b) == numbers(0, 12)


# by how many epochs the receiver is ahead of the restored sender; its second run reuses one
@pytest.mark.parametrize("ahead", range(5))
def test_a_run_that_stalls_does_not_set_a_number_back(
    world: World, monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    world.put(0, 4)
    world.run()
    (known,) = channels.received(world.b)
    world.b._store.bind_channel(known.sender, known.epoch + ahead)
    channels.reset_channel(world.a, "TO.B", 70)
    world.put(4, 8)
    check = Sending.check

    def stalls(sending: Sending, carrying: Carrying) -> None:
        monkeypatch.setattr(Sending, "check", check)
        check(sending, carrying)
        channels.stop_channel(world.a, "TO.B", "terminate")
        channels.start_channel(world.a, "TO.B")
        world.dies("received")  # another run has taken the channel, and dies before the batch is confirmed

    monkeypatch.setattr(Sending, "check", stalls)
    with pytest.raises(Fenced):
        world.run()
    world.run()
    assert bodies(world.b) == numbers(0, 8)


def test_a_receiver_of_0_2_0_is_reset(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Release 0.2.0 does not know the arguments `resets` and `seen`."""
    world.put(0, 4)
    world.run()
    (known,) = channels.received(world.b)
    world.b._store.bind_channel(known.sender, known.epoch + 9)
    bind, reset = ReceivingVerbs.bind_channel, ReceivingVerbs.reset_received
    monkeypatch.setattr(ReceivingVerbs, "bind_channel", lambda *given, resets: bind(*given))  # noqa: PLW0108
    monkeypatch.setattr(ReceivingVerbs, "reset_received", lambda *given: reset(*given[:-1]))
    channels.reset_channel(world.a, "TO.B", 70)
    world.put(4, 8)
    assert world.run().number == 70
    assert bodies(world.b) == numbers(0, 8)


@pytest.mark.parametrize("number", [0, 1_000_000_000, True, "1"])
def test_a_reset_accepts_only_the_sequence_numbers_of_mq(world: World, number: int) -> None:
    with pytest.raises(ArgumentError, match="from 1 to 999,999,999"):
        channels.reset_channel(world.a, "TO.B", number)
    channels.reset_channel(world.a, "TO.B", 999_999_999)
    world.put(0, 8)
    assert world.run().number == 1_000_000_000


def test_a_reset_of_the_receiver_does_not_change_the_sender(world: World) -> None:
    world.put(0, 4)
    world.run()
    channels.reset_channel(world.b, "TO.B", 70)
    assert channels.received(world.b)[0].number == 69
    world.put(4, 8)
    with pytest.raises(SequenceError):
        world.run()


# --- exits


@pytest.mark.parametrize("side", ["sender", "receiver"])
def test_an_exit_changes_or_vetoes_messages_or_stops_the_channel(world: World, side: str) -> None:
    """C-7, for exits of both sides, whose stores this process has open."""
    channels.alter_channel(
        world.a if side == "sender" else world.b, "TO.B", message_exit="tests.helpers.channelled:shout"
    )

    def run() -> channels.ChannelNow:
        return channels.run_channel(world.a, "TO.B", until_empty=True, exits=["tests.helpers.channelled"])

    for body in (b"a", b"vetoed", b"b"):
        put = world.a.put("Q", body, manager="B", properties={"colour": "red"}, priority=5)
    run()
    assert (bodies(world.b), bodies(world.b, "DEAD")) == ([b"A", b"B"], [b"vetoed"])
    last = list(world.b.browse("Q"))[-1]
    assert (last.message_id, last.priority, dict(last.properties)) == (put.message_id, 5, {"colour": "red"})
    world.a.put("Q", b"raises", manager="B")
    with pytest.raises(CallerError) as failed:
        run()
    assert failed.value.reason is Reason.EXIT_FAILED
    assert (world.now().status, len(bodies(world.b))) == ("stopped", 2)


# --- definitions


@pytest.mark.parametrize(
    ("attributes", "argument"),
    [
        ({"connection": ""}, "connection"),
        ({"transmission_queue": ""}, "transmission_queue"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_sise": 1}, "batch_sise"),
        ({"message_retry_count": 1}, "message_retry_count"),
        ({"type": "receiver", "user": "london", "sender": "5f0c6f1e"}, "sender"),
        ({"name": "A.NAME.OF.TWENTYONE.C"}, "name"),
        ({"type": "server"}, "type"),
    ],
)
def test_a_bad_definition_is_refused(world: World, attributes: dict[str, str], argument: str) -> None:
    goes = {} if attributes.get("type") == "receiver" else {"transmission_queue": "B", "connection": "b.db"}
    given = {"name": "C", **goes, **attributes}
    with pytest.raises(ArgumentError) as refused:
        channels.define_channel(world.a, **given)  # type: ignore[arg-type]
    assert refused.value.argument == argument
    assert [one.name for one in channels.channels(world.a)] == ["FROM", "TO.B"]


def test_a_channel_in_doubt_is_neither_deleted_nor_altered_nor_are_its_claims_settled(world: World) -> None:
    world.put(0, 1)
    world.dies("sending")
    for call, says in (
        (lambda: channels.delete_channel(world.a, "TO.B"), "in doubt"),
        (lambda: channels.alter_channel(world.a, "TO.B", transmission_queue="C"), "in doubt"),
        (lambda: world.a.bulk.release_claims("B", "channel TO.B"), "asks it about the last one"),
        (lambda: world.a.bulk.finish_claims("B", "channel TO.B", 1), "asks it about the last one"),
    ):
        with pytest.raises(ObjectInUse, match=says):
            call()
    world.run()
    channels.delete_channel(world.a, "TO.B")
    assert channels.status(world.a) == []


CHANGES: dict[str, Callable[[QueueManager], object]] = {
    "alter_object": lambda qm: channels.alter_channel(qm, "TO.B", transmission_queue="C"),
    "delete_object": lambda qm: channels.delete_channel(qm, "TO.B"),
}


@pytest.mark.parametrize("verb", CHANGES)
def test_a_batch_that_begins_just_before_a_change_keeps_its_definition(
    world: World, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """The program that changes it stalls after it has looked."""
    world.put(0, 1)
    made = getattr(world.a._store, verb)

    def stalls(*given: Any) -> None:
        world.dies("sending")
        made(*given)

    monkeypatch.setattr(world.a._store, verb, stalls)
    with pytest.raises(ObjectInUse, match="in doubt"):
        CHANGES[verb](world.a)
    assert channels.channel(world.a, "TO.B").transmission_queue == "B"


@pytest.mark.parametrize(
    ("verb", "reason"), [("alter_object", Reason.OBJECT_CHANGED), ("delete_object", Reason.UNKNOWN_OBJECT_NAME)]
)
def test_a_run_that_stalled_before_a_change_begins_no_batch(
    world: World, monkeypatch: pytest.MonkeyPatch, verb: str, reason: Reason
) -> None:
    world.put(0, 1)
    monkeypatch.setattr("inorder.mq.channels.carrying.load", lambda *_: CHANGES[verb](world.a))
    with pytest.raises(InorderError) as refused:
        world.run()
    assert (refused.value.reason, world.a.depth("B"), bodies(world.b)) == (reason, 1, [])


def test_a_stop_that_stalls_while_the_channel_is_deleted_stops_no_later_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = world.a._store.stop_channel

    def stalls(*given: Any) -> None:
        with connect(world.source) as other:
            channels.delete_channel(other, "TO.B")
        made(*given)

    monkeypatch.setattr(world.a._store, "stop_channel", stalls)
    with pytest.raises(UnknownObject):
        channels.stop_channel(world.a, "TO.B")
    channels.define_channel(world.a, "TO.B", transmission_queue="B", connection=world.target)
    assert world.now().status == "inactive"


def test_a_channel_that_cannot_run_says_why(world: World, tmp_path: Path) -> None:
    world.a.create_queue("LOCAL")
    channels.define_channel(world.a, "C", transmission_queue="LOCAL", connection=world.target)
    with pytest.raises(InorderError) as refused:
        channels.run_channel(world.a, "C", until_empty=True)
    assert refused.value.reason is Reason.XMIT_Q_USAGE_ERROR
    assert channels.ping_channel(world.a, "TO.B") == "B"
    channels.alter_channel(world.a, "TO.B", connection=str(tmp_path / "none.db"))
    with pytest.raises(StoreError, match="no store"):
        channels.ping_channel(world.a, "TO.B")
    assert not (tmp_path / "none.db").exists()
    channels.alter_channel(world.a, "TO.B", connection="NOTDEF")
    says = r"there is no store at NOTDEF, and no connection NOTDEF is defined: 'inorder connection define NOTDEF"
    with pytest.raises(StoreError, match=says):
        channels.ping_channel(world.a, "TO.B")


# --- large messages


PIECE_BYTES, PIECES = 100_000, 50
CARRY = "from tests.helpers.channelled import carry\ncarry(*arguments)"


@pytest.mark.gate
def test_a_large_message_continues_after_its_last_received_piece(tmp_path: Path) -> None:
    """A message of five megabytes in fifty pieces: pieces that were received are not sent again after a death."""
    one, other = str(tmp_path / "a.db"), str(tmp_path / "b.db")
    manager(one, "A")
    manager(other, "B")
    link(one, "B", other)
    large = bytes(range(250)) * (PIECE_BYTES * PIECES // 250)
    with connect(one) as a, connect(other) as b:
        a.alter_queue("B", max_length=PIECE_BYTES)
        a.put("Q", large, manager="B", flags=Flags.SEGMENTATION_ALLOWED)
        assert a.depth("B") == PIECES
        for point, there in (("received:3", 12), ("sending:2", 12), ("delivered:4", 24), ("claimed:5", 40)):
            assert forked.run(CARRY, one, "TO.B", kill_at=point) == -SIGKILL
            assert b.depth("Q") == there, point
            assert not list(b.browse("Q", logical=True, complete=True, all_segments=True)), "it is not whole yet"
        before = channels.received(b)[0].number
        carry(one, "TO.B")
        got = b.get("Q", logical=True, complete=True, all_segments=True)
        assert got.body == large
        assert (b.depth("Q"), a.depth("B")) == (0, 0)
        assert channels.received(b)[0].number - before == (PIECES - 40 + 3) // 4
