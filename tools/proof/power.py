"""Power loss: the log of a recorded history is cut, and everything promised up to the cut must be there.

    python -m tools.proof.power --steps 300

A worker works alone on a new store whose log is never copied into the database, and notes at each promise how long the
log is, and how long it was when it was synced last. Then the database and the log, cut, are copied into a folder of
their own, without the shared memory: what a disk has after a power loss. The log is cut at every frame, and inside
frames. A cut is judged like a killed process: `checker.check_round` reads the history up to the first promise before
which more was synced than is left.

What is cut away had been told already, where nothing was synced for it (a put in a unit of work that was still open):
its unique ids and numbers must not come again. The store knows of the loss either because its sidecar is not there, or
because the sidecar, with whatever stands in it, was left by another run of the machine: a cut has one or the other.
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
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import pairwise, takewhile
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import inorder
from inorder import InorderError, QueueManager
from inorder.stores.sqlite import SqliteStore, host, log
from inorder.stores.sqlite.coordination import LENGTH

from .acts import Finding
from .checker import STORE, check_round, check_store, told
from .history import Call, History, Line, Told, calls_of, read_lines
from .limits import make_small
from .observer import observe
from .order import Known
from .worker import Worker, create_queues

HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24
MAGIC = (0x377F0682, 0x377F0683)
NAME = "recorded"
PERSISTENT_SHARE = 0.5  # what is not persistent is told and seen without being on disk
DRAWS = 10  # on each of four queues: more than are reserved at once
SIDECARS = (b"", b"\0" * LENGTH, b"\xa5" * LENGTH)
BOOT = "the next run of the machine"


def connect_untidied(path: Path) -> QueueManager:
    """A connection whose store never copies its log into the database."""
    return inorder.connect(SqliteStore(path, keeps_log=True), program=NAME)


class Cut(NamedTuple):
    """Where the log ends: after `length` bytes of it, and then perhaps bytes of a frame that was not written whole.

    Args:
        sidecar: what is left of the sidecar, if anything.
    """

    length: int
    torn: bytes = b""
    sidecar: bytes = b""

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
            torn = (b"", frame[:middle], garbage, chance.randbytes(len(frame)))
            found += [Cut(end, bytes_of_frame, chance.choice(SIDECARS)) for bytes_of_frame in torn]
        return [*sorted(chance.sample(found, min(most - 1, len(found)))), Cut(ends[-1])]

    def told_at(self, length: int) -> list[Line]:
        """What may have been told when the log was lost behind `length`, and the intents of that time."""
        return list(takewhile(lambda line: line.get("synced", 0) <= length, self.lines))

    def lost_at(self, length: int) -> list[Line]:
        """What of that is cut away."""
        return [line for line in self.told_at(length) if line.get("log", 0) > length]

    def unsynced(self) -> list[Finding]:
        """Calls that must be on disk when they return, and brought nothing there."""
        promised = [line for line in self.lines if "log" in line]
        return [
            Finding("unsynced", f"call {line['call']} returned before it was on disk")
            for before, line in pairwise(promised)
            if line.get("durable") and line["synced"] <= before["log"]
        ]


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


def sidecar_of(store: Path) -> Path:
    return store.with_name(store.name + "-lock")


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
    synced, sync = 0, log.sync_data

    def noting_sync(descriptor: int) -> None:
        nonlocal synced
        length = os.fstat(descriptor).st_size
        sync(descriptor)
        synced = length

    def measure() -> Told:
        return {"log": log_of(store).stat().st_size, "synced": synced}

    log.sync_data = noting_sync
    make_small()
    qm = connect_untidied(store)
    create_queues(qm)
    worker = Worker(qm, History(folder / f"{NAME}.jsonl", measure), random.Random(seed), NAME, PERSISTENT_SHARE)
    for _ in range(steps):
        worker.step()
    os.kill(os.getpid(), signal.SIGKILL)


def check_cut(recording: Recording, cut: Cut, folder: Path) -> list[Finding]:
    """Opens the store as the cut leaves it, in the new folder `folder`, and judges what is there."""
    folder.mkdir()
    store, history = folder / STORE, folder / "observer.jsonl"
    shutil.copy(recording.database, store)
    log_of(store).write_bytes(recording.log[: cut.length] + cut.torn)
    if cut.sidecar:
        sidecar_of(store).write_bytes(cut.sidecar)
    run_of_machine = mock.patch.object(host, "_boot", return_value=BOOT) if cut.sidecar else nullcontext()
    try:
        with run_of_machine, inorder.connect(str(store), program="observer") as qm:
            observe(qm, History(history), random.Random(0), "observer", draws=DRAWS)
    except InorderError as error:
        return [Finding("unusable", f"{cut}: the store cannot be looked at: {error}")]
    calls: list[Call] = calls_of(NAME, recording.told_at(cut.length)) + calls_of("observer", read_lines(history))
    findings = check_round(calls, Known()) + check_store(store)
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
    findings = recording.unsynced() + check_cuts(recording, cuts, folder)
    losing = sum(bool(recording.lost_at(cut.length)) for cut in cuts)
    print(
        f"seed {asked.seed}: {len(cuts)} cuts of {len(recording.log):,} bytes, {losing} before something that was told"
    )
    print(told(findings, as_json=False))
    if findings:
        print(f"the stores and their histories are in {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
