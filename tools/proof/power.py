"""Power loss: the log of a recorded history is cut, and everything promised up to the cut must remain.

    python -m tools.proof.power --steps 300

A worker works alone on a new store whose log is never copied into the database, and records at each promise the length
of the log, and its length at the last sync. Then the database and the cut log are copied into a separate folder,
without the shared memory: this is the state of a disk after a power loss. The log is cut at every frame, and inside
frames. A cut is judged like a killed process: `checker.check_round` reads the history up to the first promise before
which more was synced than remains.

A part that is cut off may have been reported before, if it needed no sync (a put in a unit of work that was still
open): its unique ids and numbers must not be reused. The store recognises the loss because its sidecar is missing, or
because the sidecar, whatever its contents, is from another run of the machine: a cut has one of the two.
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
PERSISTENT_SHARE = 0.5  # other messages are reported and seen before they are on disk
DRAWS = 10  # on each of four queues: more than are reserved at once
SIDECARS = (b"", b"\0" * LENGTH, b"\xa5" * LENGTH)
BOOT = "the next run of the machine"


def connect_untidied(path: Path) -> QueueManager:
    """A connection whose store never copies its log into the database."""
    return inorder.connect(SqliteStore(path, keeps_log=True), program=NAME)


class Cut(NamedTuple):
    """The end of the log: after `length` bytes of it, and perhaps bytes of an incomplete frame.

    Args:
        sidecar: the contents of the sidecar, if it is left.
    """

    length: int
    torn: bytes = b""
    sidecar: bytes = b""

    def __str__(self) -> str:
        return f"cut at {self.length:,}" + (f" and {len(self.torn):,} bytes of a torn frame" if self.torn else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A store as a killed worker left it, and its history with the lengths of the log."""

    database: Path
    log: bytes
    lines: list[Line]

    @property
    def ends(self) -> list[int]:
        """Every length at which a frame ends; 0, and the end of the header, too."""
        return [0, *frame_ends(self.log)]

    def cuts(self, chance: random.Random, most: int) -> list[Cut]:
        """Cuts at frames and inside them, at most `most`; always with the last one."""
        ends, found = self.ends, list[Cut]()
        for end, following in pairwise(ends):
            frame = self.log[end:following]
            middle = chance.randrange(1, len(frame))
            garbage = frame[:FRAME_HEADER_BYTES] + chance.randbytes(max(0, len(frame) - FRAME_HEADER_BYTES))
            torn = (b"", frame[:middle], garbage, chance.randbytes(len(frame)))
            found += [Cut(end, bytes_of_frame, chance.choice(SIDECARS)) for bytes_of_frame in torn]
        return [*sorted(chance.sample(found, min(most - 1, len(found)))), Cut(ends[-1])]

    def told_at(self, length: int) -> list[Line]:
        """The answers before the log was lost after `length`, and the intents until then."""
        return list(takewhile(lambda line: line.get("synced", 0) <= length, self.lines))

    def lost_at(self, length: int) -> list[Line]:
        """The answers among them that are cut off."""
        return [line for line in self.told_at(length) if line.get("log", 0) > length]

    def unsynced(self) -> list[Finding]:
        """Calls that must be on disk when they return, but have written nothing."""
        promised = [line for line in self.lines if "log" in line]
        return [
            Finding("unsynced", f"call {line['call']} returned before it was on disk")
            for before, line in pairwise(promised)
            if line.get("durable") and line["synced"] <= before["log"]
        ]


def frame_ends(log: bytes) -> list[int]:
    """The ends of the header and of each frame of a write-ahead log. Raises: ValueError, if it was restarted."""
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
    """Runs a process that works on a new store in `folder`, and dies."""
    store, history = folder / STORE, folder / f"{NAME}.jsonl"
    asked = ["-m", "tools.proof.power", "--record", folder, "--seed", seed, "--steps", steps]
    done = subprocess.run([sys.executable, *map(str, asked)], capture_output=True, text=True, check=False)
    if done.returncode != -signal.SIGKILL:
        raise RuntimeError(f"the recording ended with status {done.returncode}: {done.stderr}")
    return Recording(database=store, log=log_of(store).read_bytes(), lines=read_lines(history))


def work_and_die(folder: Path, *, seed: int, steps: int) -> None:
    """The recording process: killed at its end, so that nothing is cleaned up."""
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
    """Opens the store as the cut leaves it, in the new folder `folder`, and judges its contents."""
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
        return [Finding("unusable", f"{cut}: the store cannot be observed: {error}")]
    calls: list[Call] = calls_of(NAME, recording.told_at(cut.length)) + calls_of("observer", read_lines(history))
    findings = check_round(calls, Known()) + check_store(store)
    return [Finding(kind, f"{cut}: {text}") for kind, text in findings]


def check_cuts(recording: Recording, cuts: Iterable[Cut], folder: Path) -> list[Finding]:
    """The faults of all cuts; only the folders of cuts with faults are kept."""
    findings = []
    for number, cut in enumerate(cuts):
        found = check_cut(recording, cut, folder / str(number))
        if not found:
            shutil.rmtree(folder / str(number))
        findings += found
    return findings


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=300, help="the number of steps of the worker")
    parser.add_argument("--cuts", type=int, default=10**9, help="the number of cuts; default: all")
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
    print(f"seed {asked.seed}: {len(cuts)} cuts of {len(recording.log):,} bytes, {losing} before an answer")
    print(told(findings, as_json=False))
    if findings:
        print(f"the stores and their histories are in {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
