"""Kills of the collecting program and of both servers: each message is collected once, in order (between K-3)."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL

import pytest
from tests.helpers import forked
from tools.proof.carried import HERE, THERE, place
from tools.proof.carried_served import KILLED, Breaker, served

import inorder
from inorder.errors import ConnectionBroken, Fenced, ObjectInUse, OutcomeUnknown, StoreError
from inorder.mq import channels
from inorder.mq.channels.points import POINTS
from inorder.stores.remote.credentials import FILE_VARIABLE

SEED = int(os.environ.get("INORDER_CRASH_SEED", random.SystemRandom().getrandbits(32)))
PULL = """
import inorder
from inorder.mq import channels
with inorder.connect(arguments[0]) as qm:
    channels.pull(qm, "HUB", until_empty=True)
"""
PASSES = (StoreError, ConnectionBroken, OutcomeUnknown, ObjectInUse, Fenced)
TRIES = 200
BREAKS = 25


class Sites:
    """The home server, and the queue manager that collects from it."""

    def __init__(self, folder: Path, home: Breaker, spoke: Breaker) -> None:
        self.folder, self.home, self.spoke = folder, home, spoke
        self.bodies: list[bytes] = []
        with inorder.connect(place(folder, HERE)) as qm:
            qm.create_queue("HUB", type="store_and_forward", targets=THERE)
        with inorder.connect(place(folder, THERE)) as qm:
            qm.create_queue("Q")
            channels.define_connection(qm, HERE, place(folder, HERE))
            qm.create_queue("HUB", type="home_server", remote_manager=HERE)

    def put(self) -> None:
        bodies = [b"%d" % number for number in range(len(self.bodies), len(self.bodies) + 10)]
        with inorder.connect(self.folder / f"{HERE}.db") as qm:
            qm.put_many("Q", bodies, manager=THERE)
        self.bodies += bodies

    def pull(self) -> None:
        """Collects all messages, and starts again after a broken connection."""
        for left in reversed(range(TRIES)):
            try:
                with inorder.connect(place(self.folder, THERE)) as qm:
                    channels.pull(qm, "HUB", until_empty=True)
            except PASSES:
                if not left:
                    raise
            else:
                return

    def judge(self) -> None:
        """Checks that each message has arrived once, in order, and that none is on its way."""
        with inorder.connect(self.folder / f"{THERE}.db") as qm:
            assert [one.body for one in qm.browse("Q", read_order="strict")] == self.bodies
        with inorder.connect(self.folder / f"{HERE}.db") as qm:
            (now,) = channels.status(qm)
            assert (now.waiting, now.in_doubt, now.messages) == (0, 0, len(self.bodies))


@pytest.fixture
def sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sites]:
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "credentials"))
    with served(tmp_path, random.Random(SEED)) as (home, spoke):
        yield Sites(tmp_path, home, spoke)


@pytest.mark.gate
def test_a_collecting_program_killed_at_each_point_loses_and_doubles_nothing(sites: Sites) -> None:
    for point in POINTS:
        sites.put()
        assert forked.run(PULL, place(sites.folder, THERE), kill_at=f"{point}:1") == -SIGKILL
    sites.pull()
    sites.judge()


@pytest.mark.gate
def test_servers_killed_inside_transactions_lose_and_double_nothing(sites: Sites) -> None:
    for side, point in (
        *((sites.home, one) for one in ("written:2", "committed:4", "settled:2")),
        *((sites.spoke, one) for one in ("delivered:1", "committed:3", "synced:2")),
    ):
        sites.put()
        side.served.again(point)
        sites.pull()
    sites.judge()


@pytest.mark.nightly
def test_random_failures_of_both_servers_and_the_network_lose_and_double_nothing(sites: Sites) -> None:
    breakers = (sites.home, sites.spoke)
    for one in breakers:
        one.start()
    while min(one.broken.total() for one in breakers) < BREAKS:
        sites.put()
        sites.pull()
    for one in breakers:
        one.stop()
    sites.pull()
    broken = sum((one.broken for one in breakers), Counter[str]())
    assert broken[KILLED] > 0, f"INORDER_CRASH_SEED={SEED}"
    sites.judge()
