"""Kills a reader by claims at every point of its work, once or twice: each message arrives once, in order.

The reader works as a micro-batch engine does: it asks for the next claim, writes its number to a log of offsets, reads
the claim, writes a batch to a sink, and writes the batch's number to a log of commits. Logs and sink survive the
reader. It may take the next claim ahead, once it has begun to work on the current one.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import pytest
from tests.helpers.claiming import GROUPS, PHYSICAL, Application, interleaved, store_of
from tests.helpers.support import fresh_manager

from inorder import QueueManager
from inorder.model.options import GetOptions

NEVER = 10**6


class Killed(Exception):
    """Ends the life of a reader."""


@dataclass
class Disk:
    """The logs and the sink, which survive the reader."""

    offsets: list[int] = field(default_factory=list)
    commits: set[int] = field(default_factory=set)
    sink: dict[int, list[bytes]] = field(default_factory=dict)


class Reader:
    """One life of the reader, which ends after `steps` steps."""

    def __init__(self, qm: QueueManager, disk: Disk, options: GetOptions, steps: int, *, ahead: bool) -> None:
        self.qm, self.disk, self.options, self.left, self.ahead = qm, disk, options, steps, ahead

    def step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Killed

    def run(self) -> None:
        initial = Application(store_of(self.qm), queue="Q").settled  # a separate process asks this; it has no effect
        self.step()
        self.app = Application(store_of(self.qm), queue="Q")
        disk = self.disk
        if len(disk.offsets) > len(disk.commits):
            self.work(len(disk.commits), initial)
        while True:
            start = disk.offsets[-1] if disk.offsets else initial
            self.step()
            claim = self.app.claim(start, self.options, most=3)
            self.step()
            if claim is None:
                return
            disk.offsets.append(claim.number)
            self.step()
            if len(disk.offsets) > 1 and len(disk.offsets) % 2:
                self.app.settle(disk.offsets[-2])  # an engine reports its commits sooner or later
                self.step()
            self.work(len(disk.offsets) - 1, initial)

    def work(self, batch: int, initial: int) -> None:
        disk = self.disk
        start = disk.offsets[batch - 1] if batch else min(initial, disk.offsets[0] - 1)
        parts = self.app.plan(start, disk.offsets[batch], slices=2)
        self.step()
        assert parts
        if self.ahead:
            self.app.settle(start)
            self.step()
            self.app.claim(disk.offsets[batch], self.options, most=3, ahead=True)
            self.step()
        rows = self.app.bodies(disk.offsets[batch], slices=2)
        self.step()
        assert disk.sink.setdefault(batch, rows) == rows, "a batch that comes again is the same"
        self.step()
        disk.commits.add(batch)
        self.step()


def prepare(qm: QueueManager) -> None:
    interleaved(qm, {b"x": 3, b"y": 2, b"z": 4})
    qm.put("Q", b"alone")


def lives(options: GetOptions, deaths: tuple[int, ...], *, ahead: bool) -> int:
    """Returns how often the reader was killed."""
    killed = 0
    with fresh_manager("memory") as qm:
        qm.create_queue("Q")
        prepare(qm)
        expected = [message.body for message in qm.browse("Q", logical=options.logical)]
        disk = Disk()
        for steps in (*deaths, NEVER):
            try:
                Reader(qm, disk, options, steps, ahead=ahead).run()
            except Killed:
                killed += 1
                continue
            break
        assert [body for batch in sorted(disk.sink) for body in disk.sink[batch]] == expected
        store_of(qm).finish_claims("Q", "app", disk.offsets[-1])
        assert (qm.inspect.status("Q").current_depth, qm.inspect.units()) == (0, [])
    return killed


STEPS = 43  # more than one life takes


@pytest.mark.parametrize("ahead", [False, True], ids=["one claim", "two claims"])
@pytest.mark.parametrize("options", [PHYSICAL, GROUPS], ids=["physical", "groups"])
def test_a_reader_killed_once_at_any_step_gets_each_message_once_and_in_order(options: GetOptions, ahead: bool) -> None:
    killed = [lives(options, (steps,), ahead=ahead) for steps in range(STEPS)]
    assert (killed[0], killed[-1]) == (1, 0)


@pytest.mark.nightly
@pytest.mark.parametrize("ahead", [False, True], ids=["one claim", "two claims"])
@pytest.mark.parametrize("options", [PHYSICAL, GROUPS], ids=["physical", "groups"])
def test_a_reader_killed_twice_at_any_steps_gets_each_message_once_and_in_order(
    options: GetOptions, ahead: bool
) -> None:
    for deaths in itertools.product(range(STEPS), range(0, STEPS, 2)):
        lives(options, deaths, ahead=ahead)
