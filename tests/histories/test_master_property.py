"""The master property (lifecycle B-53) over processes: the times of a strict reader's looks make no difference.

Four processes write, in units of work, while another reads strictly all the time. At the end it has read the same as
a reader that starts last: of each priority, all committed messages, in the order of their places.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from itertools import cycle, product
from pathlib import Path

import pytest
from tools.proof.acts import Reading, Sighting
from tools.proof.checker import check_round
from tools.proof.history import History, read_folder
from tools.proof.observer import observe
from tools.proof.order import Known
from tools.proof.strict import END, put_message
from tools.proof.worker import QUEUES, create_queues

import inorder
from inorder import QueueManager

SEED = int(os.environ.get("INORDER_CRASH_SEED", random.SystemRandom().getrandbits(32)))
LONG = "INORDER_LONG" in os.environ
SECONDS = float(os.environ.get("INORDER_MASTER_SECONDS", "60" if LONG else "0.3"))
WRITERS = 4
RULES = [queue for queue in QUEUES if queue != "GROUPS"]
KINDS = ("getter", "browser")
CASES = list(product(RULES, KINDS) if LONG else zip(RULES, cycle(KINDS), strict=False))


def levels(sightings: Iterable[Sighting]) -> dict[int, list[str]]:
    """The labels of the messages, by priority (B-34)."""
    found: dict[int, list[str]] = defaultdict(list)
    for sighting in sightings:
        if sighting.label != str(END) and not sighting.label.startswith("observer"):
            found[sighting.place[0]].append(sighting.label)
    return dict(found)


def finish(qm: QueueManager, folder: Path, queue: str) -> None:
    """Tells the reader that all writers have ended."""
    history = History(folder / f"{END.putter}.jsonl")
    put_message(qm, history, queue, END)
    history.close()


def judge(qm: QueueManager, folder: Path, queue: str, kind: str) -> None:
    """Checks that every promise was kept, and that the reader read the same as one that starts last."""
    history = History(folder / "observer.jsonl")
    observe(qm, history, random.Random(SEED), "observer")
    history.close()
    calls = read_folder(folder)
    assert check_round(calls, Known()) == [], f"INORDER_CRASH_SEED={SEED}"
    reading = Reading(calls)
    eager = [sighting for sighting in reading.sightings if sighting.call.process == "reader"]
    assert len(eager) > WRITERS
    if kind == "browser":
        laid_back = reading.seen[queue]
    else:  # it has removed them: the committed ones, in order
        committed = {put.label for put in reading.puts.values() if put.act.fates == {True}}
        assert committed == {sighting.label for sighting in eager + reading.seen[queue]} | others(reading, queue)
        laid_back = sorted(eager, key=lambda sighting: sighting.place)
    assert levels(eager) == levels(laid_back), f"INORDER_CRASH_SEED={SEED}"


def others(reading: Reading, queue: str) -> set[str]:
    """The messages that the observer put on the other queues."""
    return {put.label for put in reading.puts.values() if put.queue != queue}


def start(folder: Path, role: str, name: str, queue: str, *options: object) -> subprocess.Popen[bytes]:
    asked = ["-m", "tools.proof.strict", role, folder / "store.db", folder / f"{name}.jsonl", "--queue", queue]
    return subprocess.Popen([sys.executable, *map(str, asked + list(options))])


@pytest.mark.nightly
@pytest.mark.parametrize(("queue", "kind"), CASES)
def test_a_strict_reader_reads_the_same_during_the_writes_of_processes_as_after_them(
    tmp_path: Path, queue: str, kind: str
) -> None:
    with inorder.connect(str(tmp_path / "store.db")) as qm:
        create_queues(qm)
        reader = start(tmp_path, kind, "reader", queue)
        writers = [
            start(tmp_path, "writer", f"writer-{n}", queue, "--seed", SEED + n, "--seconds", SECONDS)
            for n in range(WRITERS)
        ]
        assert [writer.wait() for writer in writers] == [0] * WRITERS
        finish(qm, tmp_path, queue)
        assert reader.wait() == 0
        judge(qm, tmp_path, queue, kind)
