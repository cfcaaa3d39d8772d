"""Power loss: the log of a recorded history is cut, and everything promised up to the cut must be there.

    python -m tools.proof.power --steps 300

A worker works alone on a new store whose log is never copied into the database, and notes the log's length at each
promise. Then the database and the log, cut, are copied into a folder of their own, without the shared memory and the
lock files: what a disk has after a power loss. The log is cut at every frame, and inside frames. A cut is judged like
a killed process: `checker.check_round` reads the history up to the first promise that needed more log than is left.

What is cut away had been told already, where nothing needed to be on disk for it (a put in a unit of work that was
still open): its unique ids and numbers must not come again.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise, takewhile
from pathlib import Path
from typing import NamedTuple

import inorder
from inorder import QueueManager

from .acts import Finding
from .checker import STORE, check_database, check_round, told
from .history import Call, History, Line, Told, calls_of, read_lines
from .observer import observe
from .order import Known
from .worker import Worker, create_queues

HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24
MAGIC = (0x377F0682, 0x377F0683)
NAME = "recorded"


def connect_untidied(path: Path) -> QueueManager:
    """A connection whose store never copies its log into the database.

    This is the one place to say so, once the store has a way to be told.
    """
    return inorder.connect(str(path))


class Cut(NamedTuple):
    """Where the log ends: after `length` bytes of it, and then perhaps bytes of a frame that was not written whole."""

    length: int
    torn: bytes = b""

    def __str__(self) -> str:
        return f"cut at {self.length:,}" + (f" and {len(self.torn):,} bytes of a torn frame" if self.torn else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A store as a worker left it that was killed, and its history with the lengths of the log."""

    database: Path
    log: bytes
    lines: list[Line]

    @property
    def ends(self) -> list[int]:
        """Every length at which a frame ends; 0, and the end of the header, too."""
        return [0, *frame_ends(self.log)]

    def cuts(self, chance: random.Random, most: int) -> list[Cut]:
        """Cuts at frames and inside them, `most` of all that there are; the last one always."""
        ends, found = self.ends, list[Cut]()
        for end, following in pairwise(ends):
            frame = self.log[end:following]
            middle = chance.randrange(1, len(frame))
            garbage = frame[:FRAME_HEADER_BYTES] + chance.randbytes(max(0, len(frame) - FRAME_HEADER_BYTES))
            found += [Cut(end), Cut(end, frame[:middle]), Cut(end, garbage), Cut(end, chance.randbytes(len(frame)))]
        return [*sorted(chance.sample(found, min(most - 1, len(found)))), Cut(ends[-1])]

    def told_at(self, length: int) -> list[Line]:
        """What had surely been told when the log was lost behind `length`, and the intents of that time."""
        return list(takewhile(lambda line: not (line.get("durable") and line["log"] > length), self.lines))


def frame_ends(log: bytes) -> list[int]:
    """Where the header and each frame of a write-ahead log end. Raises: ValueError, it was begun anew meanwhile."""
    if not log:
        return []
    magic, _, page_bytes = struct.unpack_from(">III", log)
    if magic not in MAGIC:
        raise ValueError(f"no write-ahead log: it begins with {magic:#x}")
    salts, frame_bytes = log[16:24], FRAME_HEADER_BYTES + page_bytes
    ends = list(range(HEADER_BYTES, len(log) + 1, frame_bytes))
    for end in ends[:-1]:
        if log[end + 8 : end + 16] != salts:
            raise ValueError("the log was begun anew while the history was recorded: a checkpoint was made")
    return ends


def log_of(store: Path) -> Path:
    return store.with_name(store.name + "-wal")


def record(folder: Path, *, seed: int, steps: int) -> Recording:
    """Has a process of its own work on a new store in `folder`, and die."""
    store, history = folder / STORE, folder / f"{NAME}.jsonl"
    asked = ["-m", "tools.proof.power", "--record", folder, "--seed", seed, "--steps", steps]
    done = subprocess.run([sys.executable, *map(str, asked)], capture_output=True, text=True, check=False)
    if done.returncode != -signal.SIGKILL:
        raise RuntimeError(f"the recording ended with status {done.returncode}: {done.stderr}")
    return Recording(database=store, log=log_of(store).read_bytes(), lines=read_lines(history))


def work_and_die(folder: Path, *, seed: int, steps: int) -> None:
    """The recording process: killed at its end, so that nothing is tidied up."""
    store = folder / STORE

    def measure() -> Told:
        log = log_of(store)
        return {"log": log.stat().st_size if log.exists() else 0}

    qm = connect_untidied(store)
    create_queues(qm)
    worker = Worker(qm, History(folder / f"{NAME}.jsonl", measure), random.Random(seed), NAME)
    for _ in range(steps):
        worker.step()
    os.kill(os.getpid(), signal.SIGKILL)


def check_cut(recording: Recording, cut: Cut, folder: Path) -> list[Finding]:
    """Opens the store as the cut leaves it, in the new folder `folder`, and judges what is there."""
    folder.mkdir()
    store, history = folder / STORE, folder / "observer.jsonl"
    shutil.copy(recording.database, store)
    log_of(store).write_bytes(recording.log[: cut.length] + cut.torn)
    with inorder.connect(str(store), program="observer") as qm:
        observe(qm, History(history), random.Random(0), "observer")
    calls: list[Call] = calls_of(NAME, recording.told_at(cut.length)) + calls_of("observer", read_lines(history))
    findings = check_round(calls, Known()) + check_database(store)
    return [Finding(kind, f"{cut}: {text}") for kind, text in findings]


def check_cuts(recording: Recording, cuts: Iterable[Cut], folder: Path) -> list[Finding]:
    """The faults of all cuts; a folder is kept only if its cut has some."""
    findings = []
    for number, cut in enumerate(cuts):
        found = check_cut(recording, cut, folder / str(number))
        if not found:
            shutil.rmtree(folder / str(number))
        findings += found
    return findings


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=300, help="of the worker")
    parser.add_argument("--cuts", type=int, default=10**9, help="how many of all cuts; default: all")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--record", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.record:
        work_and_die(asked.record, seed=asked.seed, steps=asked.steps)
    folder = Path(tempfile.mkdtemp(prefix="power-"))
    recording = record(folder, seed=asked.seed, steps=asked.steps)
    cuts = recording.cuts(random.Random(asked.seed), asked.cuts)
    findings = check_cuts(recording, cuts, folder)
    print(f"seed {asked.seed}: {len(cuts)} cuts of {len(recording.log):,} bytes, in {folder}")
    print(told(findings, as_json=False))
    if not findings:
        shutil.rmtree(folder)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
