"""The checker on a store whose messages were tampered with behind the histories."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tools.proof.acts import Reading
from tools.proof.checker import ROUNDS, STORE, run_observer
from tools.proof.history import read_folder
from tools.proof.labels import parse, text_of

import inorder
from inorder import Message, QueueManager

STEPS = 150
SINGLES = ("BY_PUT", "BY_COMMIT", "BY_PREPARE")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store on which a worker has worked, with its history; nobody has looked yet."""
    for number in ("0000", "0001"):
        (tmp_path / ROUNDS / number).mkdir(parents=True)
    assert run_observer(tmp_path / STORE, tmp_path / ROUNDS / "0000", seed=1) == []
    asked = ["-m", "tools.proof.worker", tmp_path / STORE, tmp_path / ROUNDS / "0001" / "worker.jsonl"]
    subprocess.run([sys.executable, *map(str, asked), "--seed", "4", "--steps", str(STEPS)], check=True)
    return tmp_path


def standing(qm: QueueManager, reading: Reading) -> Iterator[tuple[str, Message]]:
    """Persistent messages of the worker, and their queues."""
    for queue in SINGLES:
        for message in list(qm.browse(queue)):
            if message.persistent and text_of(message.body) in reading.puts:
                yield queue, message


def delete(qm: QueueManager, queue: str, message: Message) -> str:
    assert message.uid is not None
    qm.delete(queue, message.uid)
    return text_of(message.body)


def lose_a_put(qm: QueueManager, reading: Reading) -> str:
    for queue, message in standing(qm, reading):
        act = reading.puts[text_of(message.body)].act
        if len(act.puts) + len(act.gets) == 1:
            return delete(qm, queue, message)
    raise AssertionError("choose another seed")


def halve_a_unit(qm: QueueManager, reading: Reading) -> str:
    for queue, message in standing(qm, reading):
        act = reading.puts[text_of(message.body)].act
        if len(act.puts) + len(act.gets) > 1:
            return delete(qm, queue, message)
    raise AssertionError("choose another seed")


def resurrect_a_get(qm: QueueManager, reading: Reading) -> str:
    label = next(act.gets[0] for act in reading.acts if act.fates == {True} and act.gets)
    qm.put(SINGLES[0], parse(label).body(0))
    return label


def double_a_message(qm: QueueManager, reading: Reading) -> str:
    queue, message = next(standing(qm, reading))
    qm.put(queue, message.body, priority=message.priority)
    return text_of(message.body)


FAULTS: dict[str, Callable[[QueueManager, Reading], str]] = {
    "lost": lose_a_put,
    "half": halve_a_unit,
    "resurrected": resurrect_a_get,
    "doubled": double_a_message,
}


def checked(folder: Path) -> subprocess.CompletedProcess[str]:
    asked = [sys.executable, "-m", "tools.proof.checker", str(folder), "--json"]
    return subprocess.run(asked, capture_output=True, text=True, check=False)


def test_a_store_that_nobody_touched_has_no_findings(folder: Path) -> None:
    done = checked(folder)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_planted_in_the_store_is_named(folder: Path, kind: str) -> None:
    reading = Reading(read_folder(folder / ROUNDS / "0001"))
    with inorder.connect(str(folder / STORE)) as qm:
        label = FAULTS[kind](qm, reading)
    done = checked(folder)
    assert done.returncode == 1, done.stderr
    findings = json.loads(done.stdout)
    assert [finding for finding in findings if finding["kind"] == kind and label in finding["text"]], findings
