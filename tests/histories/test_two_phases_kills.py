"""Kills in a unit of work over three queue managers: it is whole everywhere or nowhere when all are back (K-2)."""

from __future__ import annotations

import contextlib
import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from signal import SIGKILL

import pytest
from tests.helpers import forked, spanning
from tests.helpers.elsewhere import log_in
from tools.proof.carried_served import LOOPBACK, TOKEN, ServedStore

import inorder
from inorder.client.two_phases import POINTS
from inorder.stores.remote.credentials import FILE_VARIABLE

SEED = int(os.environ.get("INORDER_CRASH_SEED", random.SystemRandom().getrandbits(32)))
KILLS = int(os.environ.get("INORDER_TWO_PHASES_KILLS", "3000"))
WORK = "from tests.helpers.spanning import work\nwork(*arguments)"
STEPS = ("begun", "written", "committed", "before-sync", "synced", "settled")
"""Points of each transaction, of LONDON and of the owners; the count of visits tells which one it is."""


class Sites:
    """Three queue managers, and the units that were acknowledged."""

    def __init__(self, folder: Path, servers: Sequence[ServedStore] = ()) -> None:
        self._servers = servers
        self.home, self.acknowledged = str(folder / "london.db"), folder / "acknowledged"
        self.acknowledged.touch()
        self._number = 0

    def killed(self, point: str, nth: int, units: int = 1) -> bool:
        """Runs a program that is to be killed at a point; returns whether it was."""
        first, self._number = self._number, self._number + units
        status = forked.run(
            WORK, self.home, str(first), str(units), str(self.acknowledged), kill_at=f"{point}:{nth}" if point else ""
        )
        assert status in (0, 1, -SIGKILL)  # 1: a server died
        return status == -SIGKILL

    def judge(self) -> None:
        """Checks that all units are whole everywhere or nowhere, and that no acknowledged one is lost."""
        for one in self._servers:
            one.again()  # restarts it without a kill point
        here, *owners = spanning.settled(self.home)
        assert owners == [here, here]
        assert len(set(here)) == len(here)
        assert set(self.acknowledged.read_bytes().split()) <= set(here)


@pytest.fixture
def sites(tmp_path: Path) -> Sites:
    spanning.create(spanning.paths(tmp_path))
    return Sites(tmp_path)


@pytest.mark.gate
def test_a_program_killed_at_each_point_of_a_commit_leaves_its_unit_whole(sites: Sites) -> None:
    for point in POINTS:
        assert sites.killed(point, 1)
        sites.judge()
    assert len(spanning.settled(sites.home)[0]) == len(POINTS) - 2


class Servers:
    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(FILE_VARIABLE, str(folder / "credentials"))
        stores = spanning.paths(folder)
        for name, store in zip(spanning.OWNERS, stores[1:], strict=True):
            inorder.connect(store, name=name).close()
        self.all = [ServedStore(Path(store)) for store in stores[1:]]
        places = [f"{LOOPBACK}:{one.port}" for one in self.all]
        log_in(folder / "credentials", dict.fromkeys(places, TOKEN))
        spanning.create(stores, [f"http://{place}" for place in places])

    def close(self) -> None:
        for one in self.all:
            one.close()


@pytest.fixture
def servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Servers]:
    made = Servers(tmp_path, monkeypatch)
    with contextlib.closing(made):
        yield made


@pytest.mark.gate
def test_a_killed_server_of_an_owner_leaves_every_unit_whole(servers: Servers, tmp_path: Path) -> None:
    sites = Sites(tmp_path, servers.all)
    for one, point in zip(servers.all, ("committed:4", "synced:5"), strict=True):
        one.again(point)
        sites.killed("", 0, units=3)
        sites.judge()
    servers.all[1].again("committed:4")
    assert sites.killed("part-prepared", 2)
    sites.judge()


def places_of(chance: random.Random) -> Sequence[tuple[str, int]]:
    """The places where the next programs die: each point of a commit, and steps of transactions."""
    places = [(point, nth) for point, most in zip(POINTS, (1, 2, 1, 2, 1), strict=True) for nth in range(1, most + 1)]
    return [*places, *((point, chance.randint(1, 24)) for point in STEPS)]


def place_of(point: str, nth: int) -> str:
    return f"{point}:{nth}" if point in POINTS else point


def told(counted: Counter[str]) -> None:
    print("\n".join(f"{number:5} {place}" for place, number in sorted(counted.items())))
    assert {place.partition(": ")[2].partition(":")[0] for place in counted} >= set(POINTS)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_many_kills_of_programs_leave_every_unit_whole(sites: Sites) -> None:
    """All stores are files, so a program dies with both sides. `INORDER_CRASH_SEED` repeats a plan."""
    chance, counted = random.Random(SEED), Counter[str]()
    while counted.total() < KILLS * 2 // 3:
        for point, nth in places_of(chance):
            if sites.killed(point, nth):
                counted[f"both sides: {place_of(point, nth)}"] += 1
        sites.judge()
    told(counted)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_many_kills_of_programs_and_servers_leave_every_unit_whole(servers: Servers, tmp_path: Path) -> None:
    chance, counted, sites = random.Random(SEED), Counter[str](), Sites(tmp_path, servers.all)
    while counted.total() < KILLS // 3:
        for point, nth in places_of(chance):
            side = chance.choice(("program", "owner", "both"))
            if side != "program":
                chance.choice(servers.all).again(f"{chance.choice(STEPS)}:{chance.randint(1, 12)}")
            was_killed = sites.killed("" if side == "owner" else point, nth)
            if was_killed or side != "program":
                place = place_of(point, nth) if was_killed else "a step of a transaction of its server"
                counted[f"{side}: {place}"] += 1
        sites.judge()
    told(counted)
