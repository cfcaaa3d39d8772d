"""Channels in trouble and the operator's view of them: damaged stores, lag, messages in doubt, dropped messages."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from tests.helpers.channelled import World, link, manager, world_of

from inorder import Message, Report, connect
from inorder.errors import ChannelStopped, Reason, StoreDamaged, StoreError, StoreForeign, StoreNewer, Undeliverable
from inorder.mq import channels


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with world_of(str(tmp_path / "a.db"), str(tmp_path / "b.db")) as made:
        yield made


# --- damaged and foreign stores


def spoil(place: str) -> None:
    """Damages the store: overwrites its first page after the header."""
    with Path(place).open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 300)


def foreign(place: str) -> None:
    """Replaces the store by another program's database."""
    Path(place).unlink()
    with closing(sqlite3.connect(place)) as other:
        other.execute("CREATE TABLE theirs (x)")


def newer(place: str) -> None:
    """Makes the store look as if a later release had written it."""
    with closing(sqlite3.connect(place)) as other:
        other.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize(
    ("harm", "error"),
    [(spoil, StoreDamaged), (foreign, StoreForeign), (newer, StoreNewer)],
    ids=lambda one: one.__name__,
)
def test_a_damaged_foreign_or_newer_store_stops_the_channel(
    tmp_path: Path, harm: Callable[[str], None], error: type[StoreError]
) -> None:
    source, target = str(tmp_path / "a.db"), str(tmp_path / "b.db")
    manager(source, "A")
    manager(target, "B")
    link(source, "B", target)
    harm(target)
    with connect(source) as a:
        a.put("Q", b"1", manager="B")
        with pytest.raises(error) as raised:
            channels.run_channel(a, "TO.B", wait=lambda _: pytest.fail("it is tried again"))
        (now,) = channels.status(a)
        assert (now.status, now.stop, now.reason, now.waiting) == ("stopped", "quiesce", raised.value.reason, 1)
        assert now.error in str(raised.value)
        with pytest.raises(ChannelStopped):
            channels.run_channel(a, "TO.B", until_empty=True)


@pytest.mark.nightly
@pytest.mark.parametrize("side", ["a", "b"])
def test_a_store_that_is_replaced_while_it_is_open_ends_the_run(tmp_path: Path, side: str) -> None:
    """A write to a file that was replaced would be lost; another process can carry on."""
    source, target = str(tmp_path / "a.db"), str(tmp_path / "b.db")
    manager(source, "A")
    manager(target, "B")
    link(source, "B", target)
    naps = 0
    a = connect(source)

    def wait(seconds: float) -> bool:
        nonlocal naps
        naps += 1
        if naps == 2:
            (tmp_path / f"{side}.db").rename(tmp_path / "moved.db")
            (tmp_path / f"{side}.db").touch()
        if naps > 2 and side == "b":
            a.put("Q", b"more", manager="B")
        return naps > 1000

    try:
        a.put("Q", b"1", manager="B")
        with pytest.raises(StoreError, match="deleted or replaced") as raised:
            channels.run_channel(a, "TO.B", wait=wait)
        assert naps < 1000
        assert f"{side}.db" in str(raised.value)
        if side == "b":
            (now,) = channels.status(a)
            assert (now.status, now.stop) == ("inactive", "")
            assert "deleted or replaced" in now.error
    finally:
        with suppress(StoreError):
            a.close()


# --- the view of all queues


def test_the_overview_shows_the_channels_of_a_transmission_queue(world: World) -> None:
    world.put(0, 6)
    world.dies("sending")
    (view,) = [one for one in world.a.inspect.overview() if one.channels]
    (now,) = view.channels
    assert (view.name, view.depth) == (now.queue, now.waiting)
    assert (now.name, now.status, now.in_doubt, now.waiting) == ("TO.B", "inactive", 4, 6)
    assert now.oldest_put_at is not None
    assert now.oldest_put_at == view.oldest_put_at
    assert view.channels == tuple(channels.status(world.a))
    assert all(not one.channels for one in world.b.inspect.overview())  # a receiver has no queue that it sends from
    channels.delete_channel(world.b, "TO.B")


def test_a_report_that_the_receiver_cannot_put_is_counted_as_dropped_without_a_queue(world: World) -> None:
    world.b.create_queue("REPORTS", max_depth=1)
    world.b.put("REPORTS", b"in the way")
    world.b.alter_queue("DEAD", max_depth=1)
    asks = Message(b"1", report=Report.EXCEPTION, reply_to_queue="REPORTS", reply_to_queue_manager="B")
    world.a.put("NONE", asks, manager="B")
    channels.run_channel(world.a, "TO.B", until_empty=True)
    assert world.b.depth("DEAD") == 1  # the message fills the queue
    assert [(one.queue, one.messages, one.reason) for one in world.b.inspect.dropped()] == [("", 1, Reason.Q_FULL)]


def test_a_dead_letter_does_not_overfill_a_queue_that_its_own_batch_fills(world: World) -> None:
    world.b.alter_queue("DEAD", max_depth=1)
    world.a.put("DEAD", b"fills", manager="B")
    world.a.put("NONE", b"dead", manager="B")
    with pytest.raises(Undeliverable, match="2053"):
        world.run()
    assert world.b.depth("DEAD") == 0


def test_a_report_does_not_overfill_a_queue_that_the_batch_of_its_message_fills(world: World) -> None:
    world.b.alter_queue("Q", max_depth=1)
    world.a.put("Q", b"fills", manager="B")
    asks = int(Report.EXCEPTION)
    world.a.put("NONE", b"dead", manager="B", report=asks, reply_to_queue="Q", reply_to_queue_manager="B")
    world.run()
    assert (world.b.depth("Q"), world.b.depth("DEAD")) == (1, 2)


def test_a_batch_is_never_larger_than_a_server_takes_in_one_call(world: World) -> None:
    channels.alter_channel(world.a, "TO.B", batch_size=50, batch_kilobytes=999_999)
    world.a.put_many("Q", [bytes(4_000_000)] * 14, manager="B")
    assert world.run().number == 2
    assert world.b.depth("Q") == 14


IDLE = """
import itertools
import sys
import inorder
from inorder.mq import channels
from inorder.mq.channels import carrying, sides

class Counted(sides.Receiver):
    asked = 0

    def check(self):
        Counted.asked += 1
        super().check()

carrying.LOOK_SECONDS, waits = 0.01, itertools.count()
with inorder.connect(sys.argv[1]) as a:
    channels.alter_channel(a, "TO.B", heartbeat_interval=1)
    connects = lambda location: Counted(inorder.connect(location))
    channels.run_channel(a, "TO.B", wait=lambda _: next(waits) > 200, connects=connects)
print(Counted.asked)
"""


def test_an_idle_channel_checks_the_other_side_even_without_assertions(world: World) -> None:
    command = [sys.executable, "-O", "-c", IDLE, world.source]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) > 0
