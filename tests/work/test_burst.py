"""Workers that end by themselves when no work is left."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
from tests.helpers.support import LIMIT_SECONDS

import inorder
from inorder import Message, QueueManager
from inorder.testing import ManualClock
from inorder.work import Backoff, Outcome, Tasks, Worker

pytest.importorskip("msgspec", reason="without inorder[work] tasks have no arguments")
DONE, RETRIED, DEAD, UNKNOWN = Outcome.DONE, Outcome.RETRIED, Outcome.DEAD, Outcome.UNKNOWN


@pytest.mark.every_store
def test_draining_works_until_no_message_is_ready_including_those_that_tasks_send(
    qm: QueueManager, clock: ManualClock
) -> None:
    tasks, seen = Tasks(), list[int]()
    qm.create_queue("OTHER")

    @tasks.task
    def down(number: int) -> None:
        seen.append(number)
        if number:
            other.put(number - 1)

    @tasks.task("OTHER", backoff=Backoff(first=0, most=0))
    async def other(number: int, message: Message) -> None:
        if not message.backout_count:
            raise ValueError("the next one")
        await down.put_async(number)

    assert tasks.drain(qm) == []
    with qm.unit_of_work():
        down.put(3)
        down.put(0, delay=60)
    assert Counter(one.outcome for one in tasks.drain(qm, threads=2)) == {DONE: 7, RETRIED: 3}
    assert seen == [3, 2, 1, 0]
    clock.advance(60)
    assert [one.outcome for one in tasks.drain(qm)] == [DONE]
    assert (qm.depth("TASKS"), qm.depth("OTHER"), qm.inspect.units()) == (0, 0, [])


def test_a_lane_that_found_nothing_looks_again_after_an_attempt_of_another_one(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks, found_nothing, looks_again = Tasks(), threading.Event(), Worker.looks_again

    def noted(worker: Worker, attempts: int) -> bool:
        found_nothing.set()
        return looks_again(worker, attempts)

    @tasks.task("Q")
    def first(message: Message, own: QueueManager) -> None:
        assert found_nothing.wait(LIMIT_SECONDS)
        own.put("NEXT", message.body)

    @tasks.task("NEXT")
    def second(message: Message) -> None: ...

    monkeypatch.setattr(Worker, "looks_again", noted)
    qm.create_queue("NEXT")
    qm.put("Q", b"1")
    assert [one.outcome for one in tasks.drain(qm)] == [DONE, DONE]


def test_draining_does_not_wait_for_messages_that_fail_or_are_unknown(qm: QueueManager) -> None:
    tasks = Tasks()

    @tasks.task(dead_on=ValueError)
    def fail(how: str) -> None:
        raise {"dead": ValueError, "later": KeyError}[how](how)

    for how in ("dead", "later"):
        fail.put(how, qm=qm)
    qm.put("TASKS", b"plain")
    outcomes = [one.outcome for one in tasks.drain(qm)]
    assert sorted(outcomes, key=str) == [DEAD, RETRIED, UNKNOWN]
    assert len(list(qm.dead.letters())) == 1


def test_the_command_ends_when_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "bursting.py").write_text(
        "from inorder.work import Tasks\n\ntasks = Tasks()\n\n@tasks.task\ndef add(number: int) -> None:\n    pass\n"
    )
    with inorder.connect(tmp_path / "shop.db") as qm:
        qm.create_queue("TASKS")
        for number in range(3):
            qm.put_json("TASKS", {"number": number}, properties={"task": "bursting.add"})
    words = ["work", "bursting", "--burst", "--processes", "2", "--store", "shop.db"]
    ended = subprocess.run(
        [sys.executable, "-m", "inorder", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    lines = [line.split(" ", 3) for line in ended.stderr.splitlines() if "bursting.add done" in line]
    assert (ended.returncode, len(lines)) == (0, 3), ended.stderr
    assert {(level, process) for _, level, process, _ in lines} <= {("INFO", "[1]"), ("INFO", "[2]")}
    with inorder.connect(tmp_path / "shop.db") as qm:
        assert qm.depth("TASKS") == 0
