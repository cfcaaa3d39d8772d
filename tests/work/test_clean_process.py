"""Functions under `inorder work` find a clean process: they fork, start programs and read; nothing of that is left."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers.support import LIMIT_SECONDS
from tests.tiers import gate, nightly
from tests.work.test_started_processes import Work

import inorder
from inorder import QueueManager

TASKS = """
import multiprocessing, os, signal, subprocess, sys, time
from inorder.work import Tasks

tasks = Tasks()

@tasks.task("FORKS")
def forks(message):
    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(1e6,))
    process.start()
    process.terminate()
    process.join()
    assert process.exitcode == -signal.SIGTERM, process.exitcode

@tasks.task("READS")
def reads(message):
    subprocess.run(["cat"], check=True)
    assert sys.stdin.read() == ""

@tasks.task("LEAVES")
def leaves(message):
    if not message.backout_count:
        subprocess.Popen(["sleep", "1000000"])
        if message.body == b"kill":
            os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def place(tmp_path: Path) -> str:
    (tmp_path / "clean_tasks.py").write_text(TASKS)
    return str(tmp_path / "shop.db")


@pytest.fixture
def qm(place: str) -> Iterator[QueueManager]:
    with inorder.connect(place, name="QM1") as made:
        for queue in ("FORKS", "READS", "LEAVES"):
            made.create_queue(queue)
        yield made


@gate
def test_a_function_may_fork_and_read_standard_input(qm: QueueManager, place: str, tmp_path: Path) -> None:
    qm.put("FORKS", b"")
    qm.put("READS", b"")
    with Work(tmp_path, place, "clean_tasks") as work:
        work.has_ended(2)
        assert work.end(signal.SIGTERM) == 0
    assert work.outcomes() == {"done": 2}, work.told


@nightly
@pytest.mark.parametrize("ends", ["asked", "killed", "its supervisor killed"])
def test_what_a_function_has_started_ends_with_its_process(
    qm: QueueManager, place: str, tmp_path: Path, ends: str
) -> None:
    qm.put("LEAVES", b"kill" if ends == "killed" else b"")
    with Work(tmp_path, place, "clean_tasks") as work:
        work.has_ended(1)
        work.end(signal.SIGKILL if ends == "its supervisor killed" else signal.SIGTERM)
        work._reader.join(LIMIT_SECONDS)  # it ends when the last process has closed the pipe
        is_left = work._reader.is_alive()
    if is_left:
        for one in work.told:
            if one["event"] == "started":
                os.killpg(one["pid"], signal.SIGKILL)
    assert not is_left, "a process that a function has started goes on"
