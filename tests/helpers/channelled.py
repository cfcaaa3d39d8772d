"""Queue managers for tests of channels: each has a queue Q, and a transmission queue named after the other."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from inorder import Message, QueueManager, connect
from inorder.errors import ChannelStopped, ObjectInUse
from inorder.model.channel_attributes import ChannelAttributes
from inorder.mq import channels
from inorder.mq.channels import ChannelNow

Place = str


def manager(place: Place, name: str) -> None:
    with connect(place, name=name) as qm:
        qm.create_queue("Q")
        qm.create_queue("DEAD")
        qm.admin.alter_manager(dead_letter_queue="DEAD")
        channels.define_channel(qm, "FROM", "receiver")


def link(source: Place, to: str, target: Place, **attributes: Any) -> str:
    """Makes a transmission queue and a channel, and returns the channel's name."""
    with connect(source) as qm:
        qm.create_queue(to, usage="transmission")
        channels.define_channel(
            qm, f"TO.{to}", transmission_queue=to, connection=target, **{"batch_size": 4, **attributes}
        )
    with connect(target) as qm:
        channels.define_channel(qm, f"TO.{to}", "receiver", message_retry_count=0)
    return f"TO.{to}"


def carry(source: Place, name: str, begun: Callable[[], None] = lambda: None) -> ChannelNow | None:
    """Runs the channel until its queue is empty; None if the channel is in use elsewhere or was stopped."""
    with connect(source, program="carrier") as qm:
        begun()
        with suppress(ObjectInUse, ChannelStopped):
            return channels.run_channel(qm, name, until_empty=True)
    return None


def bodies(qm: QueueManager, queue: str = "Q") -> list[bytes]:
    return [message.body for message in qm.browse(queue, read_order="strict")]


def numbers(first: int, upto: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, upto)]


class Died(BaseException):
    """Ends a run as the death of its process would."""


class World(NamedTuple):
    """Open queue managers A and B, and the channel TO.B between them."""

    source: Place
    target: Place
    a: QueueManager
    b: QueueManager

    def put(self, first: int, upto: int) -> None:
        self.a.put_many("Q", numbers(first, upto), manager="B")

    def run(self) -> ChannelNow:
        return channels.run_channel(self.a, "TO.B", until_empty=True)

    def dies(self, point: str) -> None:
        """Ends a run when it first reaches this point, between two transactions."""

        def reached(name: str) -> None:
            if name == point:
                raise Died

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(channels.points, "reached", reached)
            with pytest.raises(Died), connect(self.source, program="carrier") as carrier:
                channels.run_channel(carrier, "TO.B", until_empty=True)

    def now(self) -> ChannelNow:
        (now,) = channels.status(self.a)
        return now


@contextmanager
def world_of(source: Place, target: Place) -> Iterator[World]:
    """Makes both queue managers, in empty places."""
    manager(source, "A")
    manager(target, "B")
    link(source, "B", target)
    with connect(source) as a, connect(target) as b:
        yield World(source, target, a, b)


def put_back(backup: Path, place: str) -> None:
    for file in Path(place).parent.glob(f"{Path(place).name}*"):
        file.unlink()
    shutil.copy(backup, place)


def shout(message: Message, channel: ChannelAttributes) -> Message | None:
    """A channel exit that changes the body, empties it, drops the message or raises, depending on the body."""
    if message.body == b"vetoed":
        return None
    if message.body.startswith(b"secret"):
        return message.replace(body=b"")
    assert message.body != b"raises", channel.name
    return message.replace(body=message.body.upper())
