"""Kills and a broken network between two stores elsewhere: each message arrives once, in order (between C-1, W-9)."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL

import pytest
from tests.helpers import forked
from tests.helpers.proxy import Way
from tools.proof import carried_round
from tools.proof.carried import HERE, THERE, create, place
from tools.proof.carried_served import BREAKS, Breaker, served
from tools.proof.lives import Parent

import inorder
from inorder.errors import StoreError
from inorder.model.attribute import COUNT_MAX
from inorder.model.channel_attributes import NonpersistentSpeed
from inorder.mq import channels
from inorder.mq.channels.points import FAST_POINTS, POINTS
from inorder.stores.remote.credentials import FILE_VARIABLE

SEED = int(os.environ.get("INORDER_CRASH_SEED", random.SystemRandom().getrandbits(32)))
CARRY = "from tests.helpers.channelled import carry\ncarry(*arguments)"
ROUNDS = 4


class Sites:
    """Both stores, the breakers of their connections, and the numbers of the messages that were put."""

    def __init__(self, folder: Path, here: Breaker, there: Breaker) -> None:
        self.folder, self.here, self.there = folder, here, there
        self._put = 0

    def put(self, persistent: bool | None = None) -> list[bytes]:
        bodies = [b"%d" % number for number in range(self._put, self._put + 10)]
        self._put += len(bodies)
        with inorder.connect(place(self.folder, HERE)) as qm:
            qm.put_many("Q", bodies, manager=THERE, persistent=persistent)
        return bodies

    def alter(self, speed: NonpersistentSpeed) -> None:
        for name in (HERE, THERE):
            with inorder.connect(place(self.folder, name)) as qm:
                channels.alter_channel(qm, "TO.THERE", nonpersistent_speed=speed)

    def carry(self) -> None:
        """Carries all messages; if a server dies while a program connects, it is tried again."""
        for is_last in (False, False, True):
            try:
                with inorder.connect(place(self.folder, HERE)) as qm:
                    channels.run_channel(qm, "TO.THERE", until_empty=True)
            except StoreError:
                if is_last:
                    raise
            else:
                return

    def arrived(self) -> list[bytes]:
        with inorder.connect(place(self.folder, THERE)) as qm:
            return [message.body for message in qm.get_many("Q", 1_000, read_order="strict")]


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    folder = tmp_path_factory.mktemp("sites")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(FILE_VARIABLE, str(folder / "credentials"))
        with served(folder, random.Random(SEED)) as (here, there):
            create(folder, short_retry_interval=0, short_retry_count=COUNT_MAX)
            yield Sites(folder, here, there)


@pytest.mark.gate
@pytest.mark.parametrize(
    ("side", "point"),
    [("there", one) for one in ("delivered:1", "committed:2", "synced:3")]
    + [("here", one) for one in ("written:2", "committed:4", "settled:3")],
)
def test_each_message_arrives_once_although_the_server_of_a_side_is_killed(sites: Sites, side: str, point: str) -> None:
    bodies = sites.put()
    getattr(sites, side).served.again(point)
    sites.carry()
    assert sites.arrived() == bodies


@pytest.mark.gate
@pytest.mark.parametrize("way", ["to server", "to client"])
def test_each_message_arrives_once_although_the_network_breaks_inside_a_frame(sites: Sites, way: Way) -> None:
    """The cuts fall into the handshake, the first calls and the batches."""
    bodies = sites.put()
    for count in (50, 600, 1500):
        sites.there.proxy.cut_after(way, count)
        sites.carry()
        bodies += sites.put()
    sites.there.proxy.cut()  # and drop a cut that has not happened yet
    sites.carry()
    assert sites.arrived() == bodies


class Fast:
    """The sites with a fast channel between them: the messages that were put, and the promises of C-4."""

    def __init__(self, sites: Sites) -> None:
        self.sites, self._persistent, self._fast = sites, list[bytes](), list[bytes]()

    def put(self) -> None:
        self._persistent += self.sites.put(persistent=True)
        self._fast += self.sites.put(persistent=False)

    def judge(self) -> int:
        """Checks the messages that have arrived. Returns the number of fast messages that were lost."""
        self.sites.carry()
        arrived = self.sites.arrived()
        fast = [one for one in arrived if one in set(self._fast)]
        assert [one for one in arrived if one not in set(self._fast)] == self._persistent
        assert fast == sorted(set(fast), key=int)
        return len(self._fast) - len(fast)


@pytest.fixture
def fast(sites: Sites) -> Iterator[Fast]:
    sites.alter("fast")
    yield Fast(sites)
    sites.there.proxy.cut()
    sites.alter("normal")


@pytest.mark.gate
def test_a_killed_carrier_loses_at_most_one_batch_of_fast_messages(fast: Fast) -> None:
    for point in (*POINTS, *FAST_POINTS):
        fast.put()
        if point != "confirmed":
            assert forked.run(CARRY, place(fast.sites.folder, HERE), "TO.THERE", kill_at=f"{point}:1") == -SIGKILL
    assert 0 < fast.judge() <= 3, "those of one batch, which were removed and not sent"


@pytest.mark.gate
@pytest.mark.parametrize("point", ["committed:2", "committed:4"])
def test_a_killed_receiver_of_fast_messages_loses_no_persistent_message(fast: Fast, point: str) -> None:
    fast.put()
    fast.sites.there.served.again(point)
    fast.judge()  # a restart of the receiver also discards fast messages that have arrived


@pytest.mark.gate
@pytest.mark.parametrize("way", ["to server", "to client"])
def test_network_failures_lose_few_fast_and_no_persistent_messages(fast: Fast, way: Way) -> None:
    for count in (600, 1500, 2500, 3500):
        fast.put()
        fast.sites.there.proxy.cut_after(way, count)
        fast.sites.carry()
    fast.sites.there.proxy.cut()
    assert fast.judge() <= 4 * 3


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_random_kills_and_network_failures_break_no_promise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "credentials"))
    parents, chance, kills = [Parent() for _ in range(4)], random.Random(SEED), Counter[str]()
    try:
        for number in range(ROUNDS):
            folder = tmp_path / f"{number}"
            folder.mkdir()
            found, _, findings = carried_round.run_served_round(folder, chance, parents, lives=6)
            assert not findings, f"INORDER_CRASH_SEED={SEED} tries the same plan\n{findings}"
            kills += found
    finally:
        for parent in parents:
            parent.close()
    assert set(BREAKS) < set(kills)
