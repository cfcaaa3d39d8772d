"""A server stops at once, or its standby takes over: all that it acknowledged is still there.

The server of these tests writes nothing to disk by itself for ten seconds, so anything that no call has synced is lost.
INORDER_LONG=1 kills programs at every statement, otherwise at some of them.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from tests.helpers.support import bodies, until
from tests.stores.killing import ACTS, check_kills
from tests.stores.postgresql.server import ROOT, Server, sessions
from tests.tiers import nightly
from tools.proof import crash
from tools.proof.checker import OBSERVER, ROUNDS, URL, check_folder, run_observer
from tools.proof.lives import CRASHED, Crash, Life, Parent, live

import inorder
from inorder import QueueManager
from inorder.errors import ConnectionBroken, OutcomeUnknown

WORKERS = 3
SECONDS = 1.0  # of work before a server stops


@pytest.fixture
def server(quick_disk: None, postgresql: str) -> Iterator[Server]:
    with Server(wal_writer_delay="10s", shared_buffers="16MB", bgwriter_delay="10s") as one:
        yield one


def get_and_put(qm: QueueManager) -> None:
    with qm.unit_of_work():
        qm.get("Q")
        qm.put("Q", b"4")


# Calls in order, and the messages on the queue when the server has stopped right after the answer.
ANSWERED: list[tuple[Callable[[QueueManager], object], list[bytes]]] = [
    (lambda qm: qm.put("Q", b"1"), [b"1"]),
    (lambda qm: qm.put_many("Q", [b"2", b"3"]), [b"1", b"2", b"3"]),
    (get_and_put, [b"2", b"3", b"4"]),
    (lambda qm: qm.get("Q"), [b"3", b"4"]),
]


def test_acknowledged_calls_survive_an_immediate_stop_of_the_server(server: Server) -> None:
    """No unique id that a call returned is used again, even if its put was lost."""
    with inorder.connect(server.url()) as qm:
        qm.create_queue("Q")
    for act, left in ANSWERED:
        qm = inorder.connect(server.url())
        other = qm.connect()
        lost = other.put("Q", b"never seen", syncpoint=True).uid
        act(qm)
        server.crash()
        with pytest.raises((ConnectionBroken, OutcomeUnknown)):
            qm.put("Q", b"nor this")
        other.internals.abandon()
        qm.close()
        server.start()
        with inorder.connect(server.url()) as qm:
            assert (bodies(qm), qm.inspect.units(), list(qm.admin.check())) == (left, [], [])
            new = qm.put("Q", b"new").uid
            assert new.number > lost.number
            *places, last = [message.place for message in qm.browse("Q")]
            assert all(place < last for place in places)
            qm.delete("Q", new)


@nightly
def test_killed_processes_and_terminated_sessions_break_no_promise(server: Server, tmp_path: Path) -> None:
    seed = random.SystemRandom().getrandbits(32)
    report = crash.run(kills=12, seed=seed, workers=3, lives=2, seconds=600, parent=tmp_path, server=server)
    assert not report.findings, report
    assert report.kills.total()
    assert report.promises


def judged(folder: Path, url: str, happens: Callable[[], object]) -> None:
    """Workers use a store whose server fails; the observer and the checker find that every promise was kept."""
    (folder / URL).write_text(url)
    before, during = folder / ROUNDS / "0000", folder / ROUNDS / "0001"
    before.mkdir(parents=True)
    during.mkdir()
    assert run_observer(url, before, 1) == []
    moment = Crash(happens, during / "server.jsonl", WORKERS, SECONDS)
    seeds = random.SystemRandom()
    lives = [Life(f"w{nth}", seeds.getrandbits(32), CRASHED, 1, 0) for nth in range(WORKERS)]
    parents = [Parent() for _ in lives]
    with ThreadPoolExecutor(WORKERS) as slots:
        ends = list(
            slots.map(lambda parent, life: live(parent, url, during, life, None, moment.happen), parents, lives)
        )
    for parent in parents:
        parent.close()
    assert ends == [(CRASHED, [])] * WORKERS
    assert check_folder(folder) == []
    assert (during / OBSERVER).exists()


def restart(server: Server) -> None:
    server.crash()
    server.start()


@nightly
def test_an_immediate_stop_of_the_server_under_load_breaks_no_promise(server: Server, tmp_path: Path) -> None:
    judged(tmp_path, f"{server.url()}?schema=proof", partial(restart, server))


def fail_over(primary: Server, standby: Server) -> None:
    primary.crash()
    standby.promote()


@nightly
def test_a_synchronous_standby_that_takes_over_breaks_no_promise(server: Server, tmp_path: Path) -> None:
    with server.make_standby(synchronous=True) as standby:
        judged(tmp_path, f"{standby.url_of(server)}&schema=proof", partial(fail_over, server, standby))


# ---- the server of these tests syncs, and ends with its process

STARTS = """
import time
from tests.stores.postgresql.server import Server
server = Server()
print(server.folder, server.sql("SHOW fsync"), flush=True)
time.sleep(600)
"""


def test_a_test_server_ends_and_its_folder_is_removed_when_its_parent_is_killed(postgresql: str) -> None:
    with subprocess.Popen([sys.executable, "-c", STARTS], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        folder, fsync = process.stdout.readline().split()
        pid = int(Path(folder, "data/postmaster.pid").read_text().splitlines()[0])
        process.kill()
    assert fsync == "on"
    until(lambda: not Path(folder).exists(), "its folder is gone")
    until(lambda: state_of(pid) in "Z", "it is gone")


def state_of(pid: int) -> str:
    """The state of a process, as one letter; empty if there is none."""
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


IS_LONG = bool(os.environ.get("INORDER_LONG"))
SOME = 4  # statements, besides the first and the last
IN_GATE = "commit"


@pytest.mark.parametrize("act", [IN_GATE, *(pytest.param(one, marks=nightly) for one in ACTS if one != IN_GATE)])
def test_a_killed_call_has_happened_completely_or_not_at_all(url: str, act: str) -> None:
    def among(count: int) -> list[int]:
        between = range(1, count)
        return [*between] if IS_LONG else random.Random(act).sample(between, min(SOME, len(between)))

    check_kills("postgresql", url, act, among, lambda name: until(lambda: not sessions(url, name), "it was noticed"))
