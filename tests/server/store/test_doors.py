"""The command, asyncio and workers in separate processes, connected to a server in another process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.helpers.support import Make, until
from tests.server.conftest import Running, Served, Start
from tests.tiers import gate

import inorder
from inorder.errors import ConnectionBroken

pytestmark = gate

TASKS = """
from inorder.work import Tasks
tasks = Tasks()

@tasks.task("WORK")
def work(message):
    with open("done", "a") as file:
        file.write(message.body.decode() + "\\n")

@tasks.periodic("* * * * * *", queue="WORK")
def tick(at):
    return b"tick"
"""
TASKLETS = """
import asyncio, sys
from inorder import aio

async def main():
    async with await aio.connect(sys.argv[1]) as qm:
        waiting = [asyncio.create_task(qm.get("Q", wait=600)) for _ in range(3)]
        async with qm.unit_of_work():
            for body in (b"1", b"2", b"3"):
                await qm.put("Q", body)
        print(sorted([(await one).body for one in waiting]), [one.body async for one in qm.browse("Q")])

asyncio.run(main())
"""
PROCESS = """
DEFINE PROCESS(P) APPLICID('echo triggered >> triggered #')
DEFINE QLOCAL(START)
DEFINE QLOCAL(ORDERS) TRIGGER TRIGTYPE(EVERY) INITQ(START) PROCESS(P)
"""
SECONDS = 120


@pytest.fixture
def environment(start: Start, tmp_path: Path) -> dict[str, str]:
    running = start()
    return os.environ | {"INORDER_STORE": running.url, "INORDER_TOKEN": running.token, "HOME": str(tmp_path)}


def test_the_command_line_the_asyncio_interface_and_task_workers_use_a_server(
    environment: dict[str, str], tmp_path: Path
) -> None:
    def run(*words: str, given: str = "") -> str:
        ended = subprocess.run(
            [sys.executable, *words],
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
            env=environment,
            cwd=tmp_path,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def inorder_(*words: str, given: str = "") -> str:
        return run("-m", "inorder", *words, given=given)

    for name in ("Q", "COPY", "WORK"):
        inorder_("queue", "create", name)
    assert run("-c", TASKLETS, environment["INORDER_STORE"]) == "[b'1', b'2', b'3'] []\n"
    inorder_("mqsc", given=PROCESS)
    inorder_("put", "ORDERS", "x")
    inorder_("trigger-monitor", "START", "--until-empty")
    assert (tmp_path / "triggered").read_text() == "triggered\n"
    assert "ORDERS" in inorder_("watch", "--count", "1")
    inorder_("get", "ORDERS", "--format", "dmpmqmsg", "--output", "dump")
    inorder_("put", "COPY", "--format", "dmpmqmsg", given=(tmp_path / "dump").read_text())
    assert inorder_("get", "COPY").strip() == "x"

    (tmp_path / "shop.py").write_text(TASKS)
    done = tmp_path / "done"
    words = [sys.executable, "-m", "inorder", "work", "shop", "--processes", "2"]
    with subprocess.Popen(words, env=environment, cwd=tmp_path) as working:
        try:
            inorder_("put", "WORK", "task")
            until(lambda: done.exists() and {"task", "tick"} <= {*done.read_text().split()}, "the tasks were called")
        finally:
            working.terminate()
        assert working.wait(SECONDS) == 0


@pytest.fixture(params=["file", "postgresql"])
def place(request: pytest.FixtureRequest, served: Served, make: Make) -> str:
    if request.param == "file":
        return str(served.store)
    url = make("postgresql")
    inorder.connect(url).close()
    return url


def test_a_disconnected_client_continues_at_either_of_two_workers(place: str, tmp_path: Path) -> None:
    running = Running(place, "--workers", "2", folder=tmp_path)
    try:
        with inorder.connect(running.url, token=running.token) as qm:
            qm.create_queue("E")
            qm.put("E", b"kept")
            with qm.open("E", input="exclusive", output=True) as queue:
                for _ in range(6):
                    unit = qm.unit_of_work().__enter__()
                    queue.get()
                    qm._store._link._socket.shutdown(socket.SHUT_RDWR)  # type: ignore[attr-defined]
                    with pytest.raises(ConnectionBroken):
                        queue.put(b"lost")
                    unit.back_out()
                    assert queue.get().body == b"kept"
                    queue.put(b"kept")
            assert len([one for one in qm.inspect.connections() if one.opened]) == 1  # the default handle
    finally:
        running.kill()
