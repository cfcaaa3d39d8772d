"""Programs with tasks are killed amid their work: units are backed out, single calls have happened or not."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.helpers.support import bodies, until

from inorder import QueueManager, connect

pytestmark = pytest.mark.nightly

MESSAGES = 60
TASKS = 12
LINES = (1, 7, 20, 31)  # so many are read, then it is killed
KILLS = len(LINES)
PROGRAM = f"""
import asyncio, sys
from inorder import aio

async def worker(qm):
    while True:
        async with qm.unit_of_work():
            message = await qm.get("IN", wait=60)
            await qm.put("OUT", message.body)
        print("moved", flush=True)

async def copier(qm):
    while True:
        message = await qm.get("ONCE", wait=60)
        print(message.body.decode(), flush=True)

async def main():
    async with aio.connect(sys.argv[1], connections=3) as qm:
        await asyncio.gather(*(worker(qm) for _ in range({TASKS})), copier(qm))

asyncio.run(main())
"""


def killed_after(lines: int, where: str) -> list[str]:
    """What a program said that was killed when it had said so many lines."""
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, where], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    with program, program.stdout:
        said = [program.stdout.readline().strip() for _ in range(lines)]
        program.kill()
        return said + program.stdout.read().split()


def kill_again_and_again(where: str, qm: QueueManager) -> None:
    names = [b"%d" % number for number in range(MESSAGES)]
    for queue in ("IN", "OUT", "ONCE"):
        qm.create_queue(queue)
    qm.put_many("IN", names)
    qm.put_many("ONCE", names)
    said: list[str] = []
    for lines in LINES:
        said += killed_after(lines, where)
    until(lambda: not qm.inspect.units(), "a server sees in a moment that killed programs are gone")
    left, moved = bodies(qm, "IN"), bodies(qm, "OUT")
    assert sorted([*left, *moved]) == sorted(names)  # a unit has happened or not
    assert said.count("moved") <= len(moved) <= said.count("moved") + KILLS * TASKS  # and what was said has
    taken = Counter(word.encode() for word in said if word != "moved")
    once = bodies(qm, "ONCE")
    assert max(taken.values()) == 1, "a message was given to two"
    assert not taken.keys() & set(once), "a message that was given to a task came again"
    assert len(once) + len(taken) >= MESSAGES - KILLS, "more are gone than one for each kill"


def test_killed_programs_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with connect(path) as qm:
        kill_again_and_again(str(path), qm)
