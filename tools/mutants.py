"""Breaks the rules one by one and shows that a scenario table fails for each.

A *mutant* is the package with one rule broken. If every table still passes, the mutant survives, and a table is
missing: nobody would notice if somebody broke that rule by mistake.

The mutants are data, in `mutants_*.txt` beside this file, a few lines each:

    in rules/ordering.py                                        a file under src/inorder; its mutants follow
    R3.13 a fifo queue places by the message's own priority     the rule's number, and what the broken code does
    - if queue.delivery == "fifo":                              the old text: it must occur exactly once
    + if queue.delivery == "never":                             the new text
    by tests/rules/test_ordering.py                             only where the tables lack the word for it: the
                                                                unit tests that must fail instead

The tables, and unit tests that are there for several stores, run on the store that was broken; a mutant of what all
stores share runs on the memory store, which is the fastest.

Each mutant gets a copy of the package of its own, and a process of its own that runs the tables on it. One that
never ends counts as caught, and is told as hung. One whose own names do not exist is an error, not caught.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = Path("src/inorder")
SCENARIOS = Path("tests/scenarios")
STORES = ("memory", "sqlite")
LISTS = sorted(Path(__file__).parent.glob("mutants_*.txt"))

SECONDS_MIN = 30.0
TIMES_AS_LONG = 4  # as the slowest tests of the code that is whole: two mutants run at a time, on a busy machine
OUR_FAULT = ("ImportError", "IndentationError", "ModuleNotFoundError", "NameError", "SyntaxError", "UnboundLocalError")
# A line of the scenario runner, or of pytest's summary.
FAILURE = re.compile(r"(\S+:\d+): |(?:FAILED|ERROR) (\S+)")
LAST_WORDS = 80
RULE = re.compile(r"[A-Z]{0,2}-?\d+(\.\d+)?")

Result = Literal["caught", "hung", "survived", "error"]


class CodeChangedError(Exception):
    """A mutant does not fit the code any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One rule, broken.

    Args:
        rule: its number: of mq-semantics, or of lifecycle-and-order where it has a letter and a dash.
        name: what the broken code does, in plain words.
        file: relative to src/inorder.
        old, new: the text replaced, and what replaces it.
        tests: unit tests that must fail; "": a table must.
    """

    rule: str
    name: str
    file: str
    old: str = ""
    new: str = ""
    tests: str = ""

    def __str__(self) -> str:
        return f"{self.rule:<5}  {self.name}"

    @property
    def store(self) -> str:
        """The store that shows what is broken."""
        return next((store for store in STORES if self.file.startswith(f"stores/{store}/")), STORES[0])

    def apply(self, source: str) -> str:
        """The source with the rule broken. Raises: CodeChangedError."""
        times = source.count(self.old)
        if not self.old or times != 1:
            raise CodeChangedError(f"the code has changed: mend this mutant; its old text occurs {times} times")
        return source.replace(self.old, self.new)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a mutant: where it was caught, or what is wrong with it."""

    mutant: Mutant
    result: Result
    where: str = ""

    def __str__(self) -> str:
        told = self.result if self.result in ("caught", "hung") else self.result.upper()
        return f"{told:<8}  {self.mutant}" + (f"   ({self.where})" if self.where else "")


# --- the list


def read_mutants(text: str) -> list[Mutant]:
    """The mutants of a list, in its order. Raises: ValueError, a line that is none of a list's."""
    mutants: list[Mutant] = []
    file = ""
    for number, line in enumerate(text.splitlines(), 1):
        mark, _, rest = line.partition(" ")
        if not line:
            continue
        if mark == "in":
            file = rest
        elif mark in ("-", "+", "by") and mutants:
            mutants[-1] = _with_line(mutants[-1], mark, rest)
        elif RULE.fullmatch(mark) and rest and file:
            mutants.append(Mutant(rule=mark, name=rest, file=file))
        else:
            raise ValueError(f"line {number}: {line!r} is no line of a list of mutants")
    return mutants


def _with_line(mutant: Mutant, mark: str, line: str) -> Mutant:
    if mark == "by":
        return replace(mutant, tests=line)
    if mark == "-":
        return replace(mutant, old=f"{mutant.old}\n{line}" if mutant.old else line)
    return replace(mutant, new=f"{mutant.new}\n{line}" if mutant.new else line)


MUTANTS = [mutant for path in LISTS for mutant in read_mutants(path.read_text(encoding="utf-8"))]


# --- one mutant


class Run(NamedTuple):
    """How the tables, or tests, went on one copy of the package."""

    passed: bool
    hung: bool
    where: str
    seconds: float


class Bench:
    """A copy of code and tables as they were at the start, so that nobody's editing disturbs the run.

    Args:
        folder: an empty folder to work in.
        tables: the tables to run; default: all.
    """

    def __init__(self, folder: Path, tables: Sequence[Path] | None = None) -> None:
        self._folder = folder
        self._limit = 60.0
        self._whole = folder / "whole"
        shutil.copytree(ROOT / SOURCE, self._whole / "inorder", ignore=shutil.ignore_patterns("__pycache__"))
        kept = folder / SCENARIOS
        kept.mkdir(parents=True)
        for table in tables or sorted((ROOT / SCENARIOS).glob("*.txt")):
            shutil.copy(table, kept)
        self._tables = [str(SCENARIOS / table.name) for table in sorted(kept.iterdir())]

    def try_whole(self, mutants: Sequence[Mutant]) -> str:
        """What fails on the code that is whole; "" if nothing does. Sets the time limit of the mutants."""
        slowest = 0.0
        for store, tests in sorted({(mutant.store, mutant.tests) for mutant in mutants}):
            run = self._run_one(self._whole, store, tests)
            if not run.passed:
                return run.where or "a table"
            slowest = max(slowest, run.seconds)
        self._limit = max(SECONDS_MIN, TIMES_AS_LONG * slowest)
        return ""

    def judge(self, mutant: Mutant) -> Verdict:
        """Runs one mutant."""
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            copy = Path(name)
            shutil.copytree(self._whole, copy, symlinks=True, dirs_exist_ok=True)
            path = copy / "inorder" / mutant.file
            try:
                path.write_text(mutant.apply(path.read_text(encoding="utf-8")), encoding="utf-8")
            except (CodeChangedError, OSError) as wrong:
                return Verdict(mutant=mutant, result="error", where=str(wrong))
            run = self._run_one(copy, mutant.store, mutant.tests)
        if run.hung:
            return Verdict(mutant=mutant, result="hung", where=run.where)
        if run.passed:
            return Verdict(mutant=mutant, result="survived")
        result: Result = "error" if run.where.startswith(OUR_FAULT) else "caught"
        return Verdict(mutant=mutant, result=result, where=run.where)

    def _run_one(self, code: Path, store: str, tests: str) -> Run:
        """Unit tests, or if none are named the tables, on a store."""
        if not tests:
            return self._run(code, ["inorder.testing", *self._tables, "--store", store], self._folder)
        without_others = " and ".join(f"not {other}" for other in STORES if other != store)
        return self._run(code, ["pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", without_others, tests], ROOT)

    def _run(self, code: Path, module: Sequence[str], folder: Path) -> Run:
        """Runs a module on this copy of the package, up to its first failure or the time limit."""
        start = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", *module],
            cwd=folder,
            # Whoever is ended at the first failure leaves its stores behind: they go with the copy.
            env=os.environ | {"PYTHONPATH": str(code), "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(code)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        hung = threading.Event()

        def end() -> None:
            hung.set()
            process.kill()

        timer = threading.Timer(self._limit, end)
        timer.start()
        where = _first_failure(process)
        timer.cancel()
        return Run(process.returncode == 0, hung.is_set(), where, time.monotonic() - start)


def _first_failure(process: subprocess.Popen[str]) -> str:
    """Reads what the process says until the first failure, then ends it; where that was, or the last it said."""
    with process:
        last = ""
        for line in process.stdout or ():
            if failed := FAILURE.match(line):
                process.kill()
                return Path(failed[1] or failed[2]).name
            last = line.strip() or last
    return last[:LAST_WORDS]


def judge_all(bench: Bench, mutants: Sequence[Mutant]) -> Iterator[Verdict]:
    """Every mutant's verdict, in the order of the list, as many at a time as there are processors."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(bench.judge, mutants)


# --- the command


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; 0 if every mutant was caught, 1 if not, 2 if nothing could be run."""
    options = _options(arguments)
    chosen = [one for one in MUTANTS if options.only.lower() in f"{one.rule} {one.name} {one.file}".lower()]
    if not chosen:
        print(f"no mutant has {options.only!r} in its rule, name or file: --list shows them all", file=sys.stderr)
        return 2
    if options.list:
        for mutant in chosen:
            print(f"{mutant}   ({mutant.file})")
        return 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        bench = Bench(Path(folder))
        if failing := bench.try_whole(chosen):
            print(f"the code fails before any rule is broken: {failing}; mend that first", file=sys.stderr)
            return 2
        verdicts = []
        for verdict in judge_all(bench, chosen):
            verdicts.append(verdict)
            if not options.json:
                print(f"[{len(verdicts):>{len(str(len(chosen)))}}/{len(chosen)}] {verdict}", flush=True)
    _summarize(verdicts, as_json=options.json)
    return 0 if all(verdict.result in ("caught", "hung") for verdict in verdicts) else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make mutants",
        usage=".venv/bin/python tools/mutants.py [--only TEXT] [--list] [--json]",
        description="Breaks the rules one by one; for each a scenario table must fail. One that survives shows a "
        "table that is missing: write it in tests/scenarios/. Status 1: one survived or no longer fits the code.",
        epilog="example: .venv/bin/python tools/mutants.py --only R3.66   (the rule of logical browse alone)",
    )
    parser.add_argument("--only", metavar="TEXT", default="", help="only mutants with this in rule, name or file")
    parser.add_argument("--list", action="store_true", help="say what the mutants are, run nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON document, at the end")
    return parser.parse_args(arguments)


def _summarize(verdicts: Sequence[Verdict], *, as_json: bool) -> None:
    counts = {
        "mutants": len(verdicts),
        "caught": sum(verdict.result in ("caught", "hung") for verdict in verdicts),
        "survived": sum(verdict.result == "survived" for verdict in verdicts),
    }
    errors = sum(verdict.result == "error" for verdict in verdicts)
    if as_json:
        every = [asdict(verdict.mutant) | {"result": verdict.result, "where": verdict.where} for verdict in verdicts]
        print(json.dumps(counts | {"errors": errors, "verdicts": every}, indent=2))
        return
    ending = f", {errors} could not be judged" if errors else ""
    print(f"{counts['mutants']} mutants, {counts['caught']} caught, {counts['survived']} survived{ending}")


if __name__ == "__main__":
    sys.exit(main())
