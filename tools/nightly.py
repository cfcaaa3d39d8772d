"""Runs what `make gate` leaves out, in shards, and prints a table of what ran.

`make nightly` runs all shards, `make nightly SHARD=3/16` the third of them. SHARDS is the only list of them; the table
in CONTRIBUTING.md shows it. `make gate` ends with the shards that the change since the last release touches.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .pythons import VERSIONS, interpreter

ROOT = Path(__file__).parents[1]
REPORTS = ROOT / "build/nightly"
PYTEST = (sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", "--durations=10")
VERSION_FILES = ("src/inorder/support/release.py", "src/inorder/__init__.py")  # the present file, and that of 0.1.0
LONG_WAY = "sqlite-long-way"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """A part of the night that takes at most half an hour on two cores.

    Args:
        name: its title.
        folders: beginnings of paths in the repository; a change there asks for this shard.
        pytest: the arguments that select its tests.
        commands: other commands that it runs, each a tuple of words.
    """

    name: str
    folders: tuple[str, ...]
    pytest: tuple[str, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()


def _tests(*places: str, mark: str = "nightly", without: Sequence[str] = ()) -> tuple[str, ...]:
    """Tests with this mark in these files and folders, without those on the store without shortcuts."""
    ignored = (f"--ignore={place}" for place in without)
    return ("-m", mark, "-k", f"not {LONG_WAY}", *places, *ignored)


def _histories(names: str) -> tuple[str, ...]:
    return tuple(f"tests/histories/test_{name}.py" for name in names.split())


HISTORIES = _histories("schedules properties master_property logical_schedules state_machine channel_schedules")
TABLES = _histories("scenarios")
POSTGRESQL = ("tests/stores/postgresql",)
SPARK = ("tests/spark", "tests/arrow")
DOORS = (*(f"tests/{name}" for name in "server cli mq/mqsc formats integrations house".split()), *_histories("soak"))
CLAIMED = (*HISTORIES, *TABLES, *POSTGRESQL, *SPARK, *DOORS)

STORES = ("src/inorder/stores/", "src/inorder/rules/", "tests/scenarios/", "inorder_scenarios/")
ALL = ("src/",)

SHARDS = (
    Shard(
        name="every fact on the store without shortcuts",
        folders=STORES,
        pytest=("-m", "nightly", "-k", LONG_WAY, "tests"),
    ),
    Shard(name="tables on unordered queues", folders=STORES, pytest=_tests(*TABLES)),
    Shard(
        name="all examples of the properties of the gate",
        folders=ALL,
        pytest=_tests("tests", mark="hypothesis and not nightly and not spark"),
    ),
    Shard(name="random histories and schedules, planted faults", folders=STORES, pytest=_tests(*HISTORIES)),
    Shard(name="PostgreSQL: cuts, kills, pairs, contention", folders=STORES, pytest=_tests(*POSTGRESQL)),
    Shard(name="kills, interrupts, power cuts, damage", folders=ALL, pytest=_tests("tests", without=CLAIMED)),
    Shard(
        name="Spark",
        folders=("src/inorder/spark/", "src/inorder/arrow/", "src/inorder/stores/", "src/pyspark_inorder/"),
        pytest=_tests(*SPARK),
    ),
    Shard(
        name="server, console, command, pages",
        folders=(
            *(f"src/inorder/{name}/" for name in "server cli mq formats integrations".split()),
            *("docs/", "examples/", "contrib/", "benchmarks/", "demo/", "README.md", "SECURITY.md"),
        ),
        pytest=_tests(*DOORS),
    ),
    Shard(
        name="a sample of mutants, a short run of `make fuzz`",
        folders=ALL,
        commands=(
            (sys.executable, "-m", "tools.mutants", "--sample", "60"),
            ("make", "fuzz", "ARGS=--examples 20 --seconds 120"),
        ),
    ),
    *(
        Shard(name=f"make test on Python {version}", folders=(*ALL, "pyproject.toml"), commands=(("python", version),))
        for version in VERSIONS
        if version != "3.11"  # the gate runs on it
    ),
    Shard(
        name="wheel and sdist on every Python, with all extras",
        folders=("mqi/", "pyproject.toml", "README.md", "tools/dist.py"),
        commands=((sys.executable, "tools/dist.py", "--every-python"),),
    ),
    Shard(
        name="Spark's tests on PySpark 4.0, 4.1 and 4.2",
        folders=("src/inorder/spark/", "src/inorder/arrow/", "src/pyspark_inorder/"),
        commands=((sys.executable, "-m", "tools.spark_versions"),),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a shard; counts are of pytest, and None for other commands."""

    shard: Shard
    status: int
    seconds: float
    processor_seconds: float
    tests: int | None = None
    failed: int | None = None
    skipped: int | None = None
    remark: str = ""


def run(number: int) -> Outcome:
    """Runs a shard, its output on standard output."""
    shard = SHARDS[number - 1]
    print(f"== shard {number}/{len(SHARDS)}: {shard.name}", flush=True)
    REPORTS.mkdir(parents=True, exist_ok=True)
    report = REPORTS / f"{number}.xml"
    report.unlink(missing_ok=True)
    before, start = _processor(), time.monotonic()
    status, remark = 0, ""
    for command in [(*PYTEST, *shard.pytest, f"--junitxml={report}")] if shard.pytest else shard.commands:
        words = command
        if command[0] == "python":
            if (python := interpreter(command[1])) is None:
                remark = "not installed here"
                break
            words = ("make", "test", f"PYTHON={python}", f"VENV=.venv-{command[1]}")
        status = subprocess.run(words, cwd=ROOT, check=False).returncode or status
    tests, failed, skipped = _counts(report) if report.exists() else (None, None, None)
    return Outcome(
        shard=shard,
        status=status,
        seconds=time.monotonic() - start,
        processor_seconds=_processor() - before,
        tests=tests,
        failed=failed,
        skipped=skipped,
        remark=remark,
    )


def _processor() -> float:
    """Returns the processor seconds of all commands that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def _counts(report: Path) -> tuple[int, int, int]:
    suite = next(ET.parse(report).iter("testsuite"))
    tests, failures, errors, skipped = (int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped"))
    return tests, failures + errors, skipped


def table(outcomes: dict[int, Outcome]) -> str:
    lines = ["| shard | what ran | tests | failed | skipped | minutes | processor min | result |", "|" + "---|" * 8]
    for number, one in outcomes.items():
        result = one.remark or ("passed" if one.status == 0 else f"status {one.status}")
        counts = ("" if count is None else f"{count:,}" for count in (one.tests, one.failed, one.skipped))
        minutes = (f"{seconds / 60:.1f}" for seconds in (one.seconds, one.processor_seconds))
        lines.append(f"| {' | '.join((str(number), one.shard.name, *counts, *minutes, result))} |")
    return "\n".join(lines)


def touched(paths: Sequence[str]) -> list[int]:
    """Returns the numbers of the shards that a change of these files requires."""
    return [number for number, shard in enumerate(SHARDS, 1) if any(path.startswith(shard.folders) for path in paths)]


def changed() -> list[str]:
    """The files that differ from the last release: from the first commit with the present version."""
    version = (ROOT / VERSION_FILES[0]).read_text(encoding="utf-8").splitlines()[-1]
    release = _git("log", "--reverse", "--format=%H", "-S", version, "--", *VERSION_FILES).partition("\n")[0]
    return _git("diff", "--name-only", f"{release}..HEAD").splitlines() if release else []


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def _numbers(text: str) -> list[int]:
    """The shards that "3", "3/16" or "" (all) names. Raises: ArgumentTypeError."""
    number, _, total = text.partition("/")
    if not text:
        return [*range(1, len(SHARDS) + 1)]
    if not number.isdecimal() or not 1 <= int(number) <= len(SHARDS) or total not in ("", str(len(SHARDS))):
        raise argparse.ArgumentTypeError(f"must be 1 to {len(SHARDS)}, or N/{len(SHARDS)}, not {text!r}")
    return [int(number)]


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command; 1 if a shard failed."""
    parser = argparse.ArgumentParser(prog="make nightly", description="Runs what `make gate` leaves out, in shards.")
    parser.add_argument("--shard", type=_numbers, default="", metavar="N", help="one of them: 3, or 3/16; default: all")
    parser.add_argument("--list", action="store_true", help="print the shards, run nothing")
    parser.add_argument(
        "--touched", action="store_true", help="print those that the change since the last release touches"
    )
    asked = parser.parse_args(words)
    if asked.list or asked.touched:
        numbers = touched(changed()) if asked.touched else range(1, len(SHARDS) + 1)
        for number in numbers:
            print(f"make nightly SHARD={number}/{len(SHARDS)}   # {SHARDS[number - 1].name}")
        return 0
    outcomes = {}
    for number in asked.shard:
        outcomes[number] = run(number)
        print(table(outcomes), flush=True)
    return int(any(one.status for one in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
