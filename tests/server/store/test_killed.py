"""SIGKILL and SIGSTOP to a client: what was acknowledged is there, once, and what it held is free (W-3).

Servers are killed in `tests/mq/test_carried_served.py`, workers in `tests/histories/test_serving_kills.py`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers.support import until
from tests.server.conftest import Running, Served, Start
from tests.tiers import gate

import inorder

CLIENT = """
import sys, inorder
url, what = sys.argv[1:]
qm = inorder.connect(url, program="a client")
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


@gate
@pytest.mark.parametrize("what", ["unit", "wait", "puts"])
def test_a_killed_client_is_ended_and_a_stopped_one_lives(start: Start, served: Served, what: str) -> None:
    running = start()
    with inorder.connect(served.store) as qm:

        def is_connected() -> bool:
            return any(one.program.name == "a client" for one in qm.inspect.connections())

        if what == "unit":
            qm.put("Q1", b"first")
        with client_of(running, what) as client:
            until(is_connected, "it is connected")
            client.send_signal(signal.SIGSTOP)
            said = Path(f"/proc/{client.pid}/stat")
            until(lambda: said.read_text().split()[2] == "T", "it is stopped")
            assert is_connected()
            client.send_signal(signal.SIGCONT)
            client.kill()
            acknowledged = client.communicate()[0].split()
        until(lambda: not is_connected(), "its connection has ended")
        until(lambda: not qm.inspect.units() and not qm.inspect.waits(), "its unit and its wait have ended")
        bodies = [one.body.decode() for one in qm.browse("Q1")]
        if what == "unit":
            assert bodies == ["first"]
        elif what == "puts":
            assert bodies[: len(acknowledged)] == acknowledged
            assert len(bodies) <= len(acknowledged) + 1
            assert len(set(bodies)) == len(bodies)
