"""Runs tests repeatedly in random order on a busy machine, and reports how often each failed.

    make flaky                                        everything in the gate, three times
    make flaky TIMES=20 TESTS="tests/aio/test_manager.py"     some tests, twenty times

Two processes that only compute keep the processors busy meanwhile. Runs alternate between two and four workers.
The seed of each order is printed: `pytest -p randomly --randomly-seed=N` repeats it.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORKERS = (2, 4)
BUSY = "while True: sum(range(10_000))"
PROCESSORS = 2  # how many are kept busy


@contextlib.contextmanager
def busy() -> Iterator[None]:
    running = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(PROCESSORS)]
    try:
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


def run(tests: Sequence[str], seed: int, workers: int, report: Path) -> int:
    """Runs the tests once; returns pytest's status."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(workers), "--dist", "loadgroup", "-m", "not nightly"]
    order = ["-p", "randomly", f"--randomly-seed={seed}", "--hypothesis-profile=quick"]
    return subprocess.run([*command, *order, f"--junitxml={report}", *tests], cwd=ROOT, check=False).returncode


def failures(report: Path) -> list[str]:
    """Returns the names of the tests that failed, in themselves or in set-up or clean-up."""
    cases = ET.parse(report).iter("testcase") if report.exists() else ()
    return [
        f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command; 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="make flaky", description="Runs tests again and again in random order.")
    parser.add_argument("tests", nargs="*", metavar="TEST", help="files or names of tests; default: all")
    parser.add_argument("--times", type=int, default=3, help="how many runs (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="the seed of the first run; each further run adds 1")
    asked = parser.parse_args(words)
    first = random.randrange(1_000_000) if asked.seed is None else asked.seed
    found: dict[str, list[str]] = defaultdict(list)
    broken = 0
    with tempfile.TemporaryDirectory() as folder, busy():
        for number in range(asked.times):
            seed, workers, report = first + number, WORKERS[number % len(WORKERS)], Path(folder) / f"{number}.xml"
            print(f"== run {number + 1} of {asked.times}: seed {seed}, {workers} workers", flush=True)
            status = run(asked.tests, seed, workers, report)
            failed = failures(report)
            for name in failed:
                found[name].append(f"{seed} on {workers} workers")
            broken += status not in (0, 1) or (status == 1 and not failed)
    print(f"== {asked.times} runs, {len(found)} tests failed, {broken} runs broke off")
    for name, seeds in sorted(found.items(), key=lambda one: -len(one[1])):
        print(f"{len(seeds)} of {asked.times}: {name}   (seeds {', '.join(seeds)})")
    return int(bool(found or broken))


if __name__ == "__main__":
    sys.exit(main())
