"""The command: long runs on a store, and their findings.

python -m tools.soak                                  all of them, as long as `make soak` does
python -m tools.soak opens --opens 1000               one of them, shorter
python -m tools.soak mixed --minutes 5 --parent /dev/shm
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from . import fair, mixed, opens, wake_ups
from .report import Report

RUNS: dict[str, Callable[[Path, argparse.Namespace], Report]] = {
    "opens": lambda folder, asked: opens.run(folder, count=asked.opens),
    "wake-ups": lambda folder, asked: wake_ups.run(folder, rounds=asked.rounds),
    "mixed": lambda folder, asked: mixed.run(folder, seconds=60 * asked.minutes, jump=asked.jump),
    "fair": lambda folder, asked: fair.run(folder, seconds=asked.seconds),
}


def arguments_of(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description="Long runs on a store.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"some of: {', '.join(RUNS)}; default: all")
    parser.add_argument("--opens", type=int, default=100_000, help="how many opens and closes")
    parser.add_argument("--rounds", type=int, default=100_000, help="how many rounds in wake-ups")
    parser.add_argument("--minutes", type=float, default=60.0, help="the duration of mixed work")
    parser.add_argument(
        "--jump", type=float, default=mixed.HOUR, help="seconds that the clock is set back, and forward"
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="the duration of puts, by processes and by threads")
    parser.add_argument("--parent", type=Path, default=Path("/var/tmp"), help="the parent of the folder of the run")
    parser.add_argument("--json", action="store_true", help="write the reports as one JSON list")
    asked = parser.parse_args(words)
    unknown = [name for name in asked.names if name not in RUNS]
    if unknown:
        parser.error(f"no run {unknown[0]!r}; there are {', '.join(RUNS)}")
    return asked


def main(words: Sequence[str] | None = None) -> int:
    """Runs them one after another; 1 if any found something."""
    asked, reports = arguments_of(words), list[Report]()
    with tempfile.TemporaryDirectory(prefix="soak-", dir=asked.parent) as folder:
        for name in asked.names or RUNS:
            reports.append(RUNS[name](Path(folder), asked))
            if not asked.json:
                print(reports[-1], flush=True)
    if asked.json:
        print(json.dumps([report.as_json() for report in reports], indent=2))
    return 1 if any(report.findings for report in reports) else 0


if __name__ == "__main__":
    sys.exit(main())
