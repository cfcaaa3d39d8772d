"""Reads the histories of all processes, and checks whether every promise was kept.

    python -m tools.proof.checker FOLDER [--json]

A folder has the store, `store.db`, and a folder of histories for each round in `rounds`. A round ends with the
observer's history; if the last round has none, the store is observed now. The checks:

* every message whose put was acknowledged is on its queue, or was got, once; none that was got returns;
* a call without an answer happened wholly or not at all: units, groups, bulk calls;
* nothing is invented, doubled or damaged, and nothing is seen before its commit;
* a prepared unit, and a put or get with a confirm id, remain until a call ends them; other units end with their
  owner;
* unique ids and numbers are never reused; places ascend with time; strict readers read in order;
* the store's own check finds nothing: the database is sound, and its tables agree.

Messages that are not persistent may vanish, but must not return, or arrive twice.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import inorder
from inorder import InorderError

from .acts import Finding, Reading
from .fates import Judge
from .history import Call, read_folder
from .order import Known, order_findings

STORE = "store.db"
URL = "store.url"  # replaces the store file if the store is on a server
ROUNDS = "rounds"
OBSERVER = "observer.jsonl"
OBSERVER_SECONDS_MAX = 120


def check_round(calls: Iterable[Call], known: Known) -> list[Finding]:
    """The faults of one round; `known` has the state after the rounds before it, and is updated by this one."""
    reading = Reading(calls)
    judge = Judge(reading, known.visible)
    fates = judge.choose()
    findings = reading.findings + judge.findings(fates) + list(order_findings(reading, fates, known))
    puts = {**known.visible, **reading.puts}
    seen = [sighting.label for found in reading.seen.values() for sighting in found]
    known.visible = {label: puts[label] for label in seen if label in puts}
    return findings


def store_of(folder: Path) -> Path | str:
    """The location to which the processes of a proof connect."""
    url = folder / URL
    return url.read_text() if url.exists() else folder / STORE


def check_store(store: Path | str) -> list[Finding]:
    """The faults that the store's own check finds, after an observer."""
    try:
        with inorder.connect(store, program="checker") as qm:
            return [Finding("tables", text) for text in qm.admin.check()]
    except InorderError as error:
        return [Finding("unusable", f"the store cannot be checked: {error}")]


def round_folders(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / ROUNDS).iterdir() if path.is_dir())


def run_observer(store: Path | str, round_folder: Path, seed: int) -> list[Finding]:
    """Runs the observer in its own process; returns a finding if it fails."""
    asked = ["-m", "tools.proof.observer", store, round_folder / OBSERVER, "--seed", str(seed)]
    command = [sys.executable, *map(str, asked)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=OBSERVER_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        return [Finding("unusable", f"the store cannot be observed in {OBSERVER_SECONDS_MAX} s: a process waits")]
    if done.returncode == 0:
        return []
    return [Finding("unusable", f"the store cannot be observed: {done.stderr[-2000:]}")]


def check_folder(folder: Path) -> list[Finding]:
    """The faults of all rounds, and of the present database."""
    rounds, known = round_folders(folder), Known()
    findings = []
    if not (rounds[-1] / OBSERVER).exists():
        findings += run_observer(store_of(folder), rounds[-1], seed=0)
    for round_folder in rounds:
        found = check_round(read_folder(round_folder), known)
        findings += [Finding(kind, f"round {round_folder.name}: {text}") for kind, text in found]
    return findings + check_store(store_of(folder))


def told(findings: Sequence[Finding], *, as_json: bool) -> str:
    if as_json:
        return json.dumps([finding._asdict() for finding in findings], indent=2)
    return "\n".join([*(f"{kind}: {text}" for kind, text in findings), f"{len(findings)} broken promises"])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", action="store_true", help="the findings as a list of objects")
    asked = parser.parse_args()
    findings = check_folder(asked.folder)
    print(told(findings, as_json=asked.json))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
