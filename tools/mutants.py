"""Breaks the code one decision at a time and shows that a scenario table fails, or else a unit test.

A *mutant* is the package with one thing broken. If every table, and the unit tests that mirror the file, still pass,
the mutant survives: a table or test is missing, and the same fault made by mistake would go unnoticed.

Rules are broken by mutants that were written (`mutant.py`), all of them each time; all other decisions by generated
mutants (`mutation.py`), a sample of them each time.

The tables run on the store that was broken; for a mutant of the code that all stores share, on the memory store, which
is the fastest. Unit tests run as `make gate` runs them: for a mutant of the store on PostgreSQL those that need its
server, otherwise the others.

Each mutant gets its own copy of the package, and its own process, which runs the tables on it. A mutant that never ends
counts as caught, and is reported as hung. A written mutant that uses a missing name is an error, not caught.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from .mutant import ROOT, SOURCE, CodeChangedError, Mutant, Written, written
from .mutation import EQUIVALENT, SERVER, generated, read_equivalent, sample, without_equivalent

SCENARIOS = Path("tests/scenarios")

SAMPLE = 120
SECONDS_MIN = 30.0
TIMES_AS_LONG = 4  # as the same tests of the unbroken code: two mutants run at a time, on a busy machine
OUR_FAULT = ("ImportError", "IndentationError", "ModuleNotFoundError", "NameError", "SyntaxError", "UnboundLocalError")
# A line of the scenario runner, or of pytest's summary.
FAILURE = re.compile(r"(\S+:\d+): |(?:FAILED|ERROR) (\S+)")
LAST_WORDS = 80

PASSABLE = 0o711  # PostgreSQL's server runs as another user, and its folder is inside

Result = Literal["caught", "hung", "survived", "error"]


class WholeFailsError(Exception):
    """The tables or tests fail on the unbroken code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcome for a mutant: where it was caught, or the error in it; for a survivor, the change."""

    mutant: Mutant
    result: Result
    where: str = ""

    def __str__(self) -> str:
        told = self.result if self.result in ("caught", "hung") else self.result.upper()
        return f"{told:<8}  {self.mutant}" + (f"   ({self.where})" if self.where else "")


# --- one mutant


class Judges(NamedTuple):
    """The tables on a store, or files of unit tests ("": they name their own)."""

    store: str
    tests: tuple[str, ...] = ()


class Run(NamedTuple):
    """The result of the tables, or tests, on one copy of the package."""

    passed: bool
    hung: bool
    where: str
    seconds: float


class Bench:
    """A copy of code and tables as they were at the start, so that edits do not disturb the run.

    Args:
        folder: an empty folder to work in.
        tables: the tables to run; default: all.
    """

    def __init__(self, folder: Path, tables: Sequence[Path] | None = None) -> None:
        self._folder = folder
        self.whole = folder / "whole"
        self._limits: dict[Judges, float] = {}
        self._measuring = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        folder.chmod(PASSABLE)
        kept = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / SOURCE, self.whole / "inorder", ignore=kept)
        copies = folder / SCENARIOS
        copies.mkdir(parents=True)
        for table in tables or sorted((ROOT / SCENARIOS).glob("*.txt")):
            shutil.copy(table, copies)
        self._tables = [str(SCENARIOS / table.name) for table in sorted(copies.iterdir())]

    def judge(self, mutant: Mutant) -> Verdict:
        """Runs one mutant. Raises: WholeFailsError."""
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            copy = Path(name)
            copy.chmod(PASSABLE)
            shutil.copytree(self.whole / "inorder", copy / "inorder")  # the tests that run now are files beside it
            path = copy / "inorder" / mutant.file
            try:
                path.write_text(mutant.apply(path.read_text(encoding="utf-8")), encoding="utf-8")
            except (CodeChangedError, OSError) as wrong:
                return Verdict(mutant=mutant, result="error", where=str(wrong))
            for judges in _judges(mutant):
                run = self._run(copy, judges, self._limit(judges))
                if not run.passed:
                    return Verdict(mutant=mutant, result=_result(mutant, run), where=run.where)
        return Verdict(mutant=mutant, result="survived", where=mutant.change)

    def stop(self) -> None:
        """Ends the running processes, when the user does not want to wait for them."""
        for process in list(self._running):
            _end(process)

    def _limit(self, judges: Judges) -> float:
        """The time limit for the judges, in seconds; it is measured on the unbroken code at the first call."""
        if known := self._limits.get(judges):
            return known
        with self._measuring:
            if judges not in self._limits:
                run = self._run(self.whole, judges, None)
                if not run.passed:
                    raise WholeFailsError(run.where or "a table")
                self._limits[judges] = max(SECONDS_MIN, TIMES_AS_LONG * run.seconds)
            return self._limits[judges]

    def _run(self, code: Path, judges: Judges, limit: float | None) -> Run:
        """Runs them on this copy of the package, up to the first failure or the time limit."""
        if judges.tests:
            where = "postgresql" if judges.tests[0] == SERVER else "not postgresql"
            chosen = ["-m", f"not nightly and {where}", *judges.tests]
            command, folder = ["pytest", "-q", "-x", "-p", "no:cacheprovider", *chosen], ROOT
        else:
            command, folder = ["inorder_scenarios", *self._tables, "--store", judges.store], self._folder
        start = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", *command],
            cwd=folder,
            # A process that is ended at the first failure leaves its stores; they are removed with the copy.
            env=os.environ
            | {"PYTHONPATH": f"{code}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(code)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        hung = threading.Event()

        def end() -> None:
            hung.set()
            _end(process)

        timer = threading.Timer(limit or threading.TIMEOUT_MAX, end)
        timer.start()
        self._running.add(process)
        where = _first_failure(process)
        self._running.discard(process)
        timer.cancel()
        return Run(process.returncode == 0, hung.is_set(), where, time.monotonic() - start)


def _judges(mutant: Mutant) -> Iterator[Judges]:
    """The tables first, because they are fast and describe the fault in words; unit tests if it survives them."""
    if mutant.by_tables:
        yield Judges(mutant.store)
    if mutant.by_tests:
        yield Judges("", mutant.by_tests)


def _result(mutant: Mutant, run: Run) -> Result:
    if run.hung:
        return "hung"
    # A reversed decision may use an unset name: that is a failure like any other. SQL has no names.
    ours = OUR_FAULT if isinstance(mutant, Written) else ("IndentationError", "SyntaxError")
    return "error" if run.where.startswith(ours) else "caught"


def _first_failure(process: subprocess.Popen[str]) -> str:
    """Reads the output of the process until the first failure, then kills it. Returns the place, or the last line."""
    with process:
        last = ""
        for line in process.stdout or ():
            if failed := FAILURE.match(line):
                _end(process)
                return Path(failed[1] or failed[2]).name
            last = line.strip() or last
    return last[:LAST_WORDS]


def _end(process: subprocess.Popen[str]) -> None:
    """Ends a process and the processes that its tests have started, which hold its output open."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def judge_all(bench: Bench, mutants: Sequence[Mutant]) -> Iterator[Verdict]:
    """Every mutant's verdict, in the order of the list; as many run at a time as there are processors."""
    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        yield from pool.map(bench.judge, mutants)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        bench.stop()
        pool.shutdown()


# --- which mutants


def chosen(glob: str, size: int | None, seed: int) -> list[Mutant]:
    """The written mutants and a sample of the generated ones, those whose name matches the glob somewhere.

    Raises:
        ValueError: the list of equivalent mutants has a name that does not exist.
    """
    reasons = read_equivalent(EQUIVALENT.read_text(encoding="utf-8"))
    made = [mutant for mutant in without_equivalent(generated(), reasons) if _fits(mutant, glob)]
    rules = [mutant for mutant in written() if _fits(mutant, glob)]
    return [*rules, *(made if size is None else sample(made, size, seed))]


def _fits(mutant: Mutant, glob: str) -> bool:
    return fnmatchcase(str(mutant).lower(), f"*{glob.lower()}*")


# --- the command


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; 0 if every mutant was caught, 1 if not, 2 if nothing could be run."""
    options = _options(arguments)
    try:
        mutants = chosen(options.only, options.sample, options.seed)
    except ValueError as wrong:
        print(wrong, file=sys.stderr)
        return 2
    if not mutants:
        print(f"no mutant's name fits {options.only!r}: --list shows them all", file=sys.stderr)
        return 2
    if options.list:
        for mutant in mutants:
            print(mutant)
        return 0
    verdicts = []
    try:
        with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
            for verdict in judge_all(Bench(Path(folder)), mutants):
                verdicts.append(verdict)
                if not options.json:
                    print(f"[{len(verdicts):>{len(str(len(mutants)))}}/{len(mutants)}] {verdict}", flush=True)
    except WholeFailsError as wrong:
        print(f"the code fails before anything is broken: {wrong}; repair that first", file=sys.stderr)
        return 2
    _summarize(verdicts, options)
    return 0 if all(verdict.result in ("caught", "hung") for verdict in verdicts) else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make mutants",
        usage=".venv/bin/python -m tools.mutants [--only GLOB] [--sample N|all] [--seed N] [--list] [--json]",
        description="Breaks the code one decision at a time: rules as written in tools/mutants_*.txt, a sample of "
        "all other decisions as generated. For each a scenario table or a unit test must fail. A survivor shows a "
        "missing test. Status 1: a mutant survived or does not fit the code.",
        epilog="example: .venv/bin/python -m tools.mutants --only 'stores/engine/reading.py*negated'",
    )
    parser.add_argument("--only", metavar="GLOB", default="", help="only mutants whose name, or a part of it, matches")
    parser.add_argument(
        "--sample",
        metavar="N|all",
        type=lambda text: None if text == "all" else int(text),
        default=SAMPLE,
        help="how many of the generated ones (default: %(default)s)",
    )
    parser.add_argument("--seed", metavar="N", type=int, default=1, help="the seed of the sample (default: 1)")
    parser.add_argument("--list", action="store_true", help="list the mutants, run nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON document, at the end")
    return parser.parse_args(arguments)


def _summarize(verdicts: Sequence[Verdict], options: argparse.Namespace) -> None:
    times = {result: sum(verdict.result == result for verdict in verdicts) for result in get_args(Result)}
    if options.json:
        every = [asdict(verdict.mutant) | {"result": verdict.result, "where": verdict.where} for verdict in verdicts]
        print(json.dumps({"seed": options.seed, "mutants": len(verdicts)} | times | {"verdicts": every}, indent=2))
        return
    ending = f", {times['error']} could not be judged" if times["error"] else ""
    caught = times["caught"] + times["hung"]
    print(f"seed {options.seed}: {len(verdicts)} mutants, {caught} caught, {times['survived']} survived{ending}")


if __name__ == "__main__":
    sys.exit(main())
