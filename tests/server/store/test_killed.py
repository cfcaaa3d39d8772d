"""SIGKILL to the server, to one of its workers and to its clients: what was acknowledged is there, once (W-3, W-4)."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.support import until
from tests.server.conftest import Running, Served, Start
from tests.tiers import gate, nightly

import inorder
from inorder import QueueManager
from inorder.errors import ConnectionBroken, InorderError, NoMessageAvailable, OutcomeUnknown

CLIENT = """
import sys, inorder
url, what = sys.argv[1:]
qm = inorder.connect(url)
if what == "unit":
    qm.put("Q1", b"of the unit", syncpoint=True)
    qm.get("Q1", syncpoint=True)
    print("ready", flush=True)
    sys.stdin.read()
elif what == "wait":
    print("ready", flush=True)
    qm.get("Q1", wait=600)
else:
    print("ready", flush=True)
    for nth in range(10**9):
        qm.put("Q1", b"%d" % nth)
        print(nth, flush=True)
"""


def url_of(running: Running) -> str:
    return str(running.record["url"]).rstrip("/")


@contextlib.contextmanager
def client_of(running: Running, what: str) -> Iterator[subprocess.Popen[str]]:
    """A program elsewhere in a process of its own, which says when it is ready."""
    one = subprocess.Popen(
        [sys.executable, "-c", CLIENT, url_of(running), what],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"INORDER_TOKEN": running.token},
    )
    try:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
        yield one
    finally:
        one.kill()
        one.communicate()


# --- clients


@gate
@pytest.mark.parametrize("what", ["unit", "wait", "puts"])
def test_a_client_that_is_killed_is_ended_and_one_that_is_stopped_lives(
    start: Start, served: Served, what: str
) -> None:
    running = start()
    with inorder.connect(served.store) as qm:
        before = len(qm.inspect.connections())
        if what == "unit":
            qm.put("Q1", b"first")
        with client_of(running, what) as client:
            until(lambda: len(qm.inspect.connections()) > before, "it is connected")
            number = len(qm.inspect.connections())
            client.send_signal(signal.SIGSTOP)
            said = Path(f"/proc/{client.pid}/stat")
            until(lambda: said.read_text().split()[2] == "T", "it is stopped")
            assert len(qm.inspect.connections()) == number
            client.send_signal(signal.SIGCONT)
            client.kill()
            acknowledged = client.communicate()[0].split()
        until(lambda: len(qm.inspect.connections()) < number, "its connection has ended")
        until(lambda: not qm.inspect.units() and not qm.inspect.waits(), "its unit and its wait have ended")
        bodies = [one.body.decode() for one in qm.browse("Q1")]
        if what == "unit":
            assert bodies == ["first"]
        elif what == "puts":
            assert bodies[: len(acknowledged)] == acknowledged
            assert len(bodies) <= len(acknowledged) + 1
            assert len(set(bodies)) == len(bodies)


# --- servers


class Story:
    """A program elsewhere that puts and gets while its server is killed, and what it knows of each message.

    Attributes:
        put: bodies of puts that were acknowledged; `perhaps`: of puts whose outcome is unknown, by unique id.
        got: bodies of messages that were got in units that were committed; `got_perhaps`: whose commit is unknown.
    """

    def __init__(self, qm: QueueManager, seed: int) -> None:
        self.qm, self.draw = qm, random.Random(seed)
        self.put: list[bytes] = []
        self.perhaps: dict[Any, bytes] = {}
        self.got: list[bytes] = []
        self.got_perhaps: list[bytes] = []
        self.losses = 0
        self._nth = 0

    def act(self) -> None:
        with contextlib.suppress(NoMessageAvailable):
            self.draw.choice([self._put, self._put_in_unit, self._get])()

    def _body(self) -> bytes:
        self._nth += 1
        return b"%d" % self._nth

    def _put(self) -> None:
        body = self._body()
        try:
            self.qm.put("Q1", body)
            self.put.append(body)
        except OutcomeUnknown as error:
            self.losses += 1
            (uid,) = error.uids
            self.perhaps[uid] = body

    def _put_in_unit(self) -> None:
        bodies = [self._body(), self._body()]
        try:
            with self.qm.unit_of_work():
                for body in bodies:
                    self.qm.put("Q1", body)
            self.put += bodies
        except OutcomeUnknown:
            self.losses += 1
            self.perhaps |= dict(zip(bodies, bodies, strict=True))
        except ConnectionBroken:  # backed out
            self.losses += 1

    def _get(self) -> None:
        body = b""
        try:
            with self.qm.unit_of_work():
                body = self.qm.get("Q1", wait=self.draw.choice([0, 0.01])).body
            self.got.append(body)
        except OutcomeUnknown:
            self.losses += 1
            self.got_perhaps.append(body)
        except ConnectionBroken:
            self.losses += 1

    def judge(self, qm: QueueManager) -> None:
        """Nothing that was acknowledged is lost, and nothing is there twice."""
        left = [one.body for one in qm.browse("Q1")]
        uids = {one.uid for one in qm.browse("Q1")}
        seen = Counter([*left, *self.got])
        assert not [body for body, count in seen.items() if count > 1], "doubled"
        assert seen.keys() <= {*self.put, *self.perhaps.values()}, "never put"
        lost = set(self.put) - seen.keys() - set(self.got_perhaps)
        assert not lost, "lost"
        for uid, body in self.perhaps.items():
            if isinstance(uid, inorder.UniqueId):
                assert (uid in uids) == (body in left), "the unique id names the message"
        numbers = [int(body) for body in left]
        assert numbers == sorted(numbers), "in order"


@pytest.mark.parametrize(
    ("workers", "kills"),
    [
        pytest.param("1", 3, marks=gate),
        pytest.param("2", 3, marks=gate),
        pytest.param("1", 25, marks=nightly),
        pytest.param("2", 25, marks=nightly),
    ],
)
def test_servers_and_workers_are_killed(served: Served, workers: str, kills: int) -> None:
    """The server begins again on its port; of two workers one is killed, or all of them with their parent."""
    seed = random.SystemRandom().getrandbits(32)
    with inorder.connect(served.store) as qm:
        qm.accounts.create_user("anna", roles=("operator",))
        token = qm.accounts.create_token("anna", "test")
    server = _KilledServer(served, workers, seed)
    try:
        story = Story(inorder.connect(server.url, token=token), seed)
        for _ in range(kills):
            losses = story.losses
            killer = threading.Thread(target=server.kill)
            killer.start()
            while killer.is_alive():
                story.act()
            killer.join()
            assert story.losses <= losses + 1
        story.act()
        story.qm.close()
        with inorder.connect(served.store) as qm:
            story.judge(qm)
            assert not qm.inspect.units()
    except (InorderError, AssertionError) as error:
        raise AssertionError(f"seed {seed}\n{server.running.log.read_text()[-2000:]}") from error
    finally:
        server.running.kill()


class _KilledServer:
    def __init__(self, served: Served, workers: str, seed: int) -> None:
        self._served, self._workers, self._draw = served, workers, random.Random(seed)
        self.running = Running(served.store, "--workers", workers, folder=served.folder)
        self.url = url_of(self.running)

    def kill(self) -> None:
        """Kills it or one of its workers after a while; the whole server begins again."""
        threading.Event().wait(self._draw.random() / 5)
        if self._workers == "2" and self._draw.random() < 0.6:
            with inorder.connect(self._served.store) as qm:
                found = [one.process for one in qm.inspect.connections() if one.program.name == "inorder serve"]
            if found and (process := self._draw.choice(found)) is not None:
                os.kill(process, signal.SIGKILL)
            return
        self.running.kill()
        port = self.url.rpartition(":")[2]
        words = ["--workers", self._workers, "--port", port]
        self.running = Running(self._served.store, *words, folder=self._served.folder)
