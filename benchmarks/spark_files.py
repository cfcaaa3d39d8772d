"""Folders of files onto a queue and back, beside `cp -r` and `tar` of the same folder: seconds, and processor.

    python -m benchmarks.spark_files [--rounds 3] [--parent /var/tmp] [--json FILE]

Two folders: 5,000 files of 10 KiB, and 20 of 20 MiB, of lines of some hundred bytes. `load` puts them on a queue and
`unload` writes them back from the archive that `drain` has made of it, each file synced with its name before it counts;
`unload_queue` takes them off a queue without Spark, a unit of work each. `cp -r` and `tar` let the kernel decide when
their files get to disk; both are also timed with a `sync -f` after them. Spark already runs, and has done each step
once on a folder of a few files.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

import inorder
from inorder.spark import jobs

from .spark_fixed import processor_seconds

Figures = dict[str, float]
MIB = 2**20


class Folder(NamedTuple):
    """The number and size of files, and the rule that splits them."""

    files: int
    size: int
    split: str


FOLDERS = {
    "small": Folder(5_000, 10 * 1024, "whole"),
    "large": Folder(20, 20 * MIB, "size:65536"),
}
WARM_UP = Folder(8, 64 * 1024, "whole")


def make(folder: Path, what: Folder) -> None:
    """Writes files of lines, all different, a hundred in each folder."""
    rng = random.Random(7)
    for number in range(what.files):
        place = folder / f"{number // 100:03}"
        place.mkdir(parents=True, exist_ok=True)
        lines = (rng.randbytes(75).hex().encode() + b"\n" for _ in range(-(-what.size // 151)))
        (place / f"{number:05}.txt").write_bytes(b"".join(lines)[: what.size])


class Round:
    """A folder, which is copied in each way."""

    def __init__(self, spark: SparkSession, folder: Path, what: Folder) -> None:
        self._spark, self._folder, self._what = spark, folder, what
        self._source = folder / "source"
        make(self._source, what)

    def _measured(self, work: Callable[[], object]) -> Figures:
        os.sync()
        processor, began = processor_seconds(), time.perf_counter()
        work()
        return {"seconds": time.perf_counter() - began, "processor": processor_seconds() - processor}

    def _run(self, *command: str | Path) -> None:
        subprocess.run(command, check=True)

    def _sync(self) -> None:
        self._run("sync", "-f", self._folder)

    def _copy(self) -> None:
        self._run("cp", "-r", self._source, self._folder / "copy")

    def _tar(self) -> None:
        archive = self._folder / "all.tar"
        self._run("tar", "-C", self._source, "-cf", archive, ".")
        (self._folder / "untarred").mkdir()
        self._run("tar", "-C", self._folder / "untarred", "-xf", archive)

    def _synced(self, work: Callable[[], object]) -> None:
        work()
        self._sync()

    def _clean(self, *names: str) -> None:
        for name in names:
            place = self._folder / name
            shutil.rmtree(place) if place.is_dir() else place.unlink()

    def _check(self, name: str) -> None:
        _, others, missing = filecmp.cmpfiles(self._source, self._folder / name, _files(self._source), shallow=False)
        assert not others + missing, (others[:3], missing[:3])

    def _load(self, store: Path) -> None:
        jobs.load(self._spark, self._source, store, "FILES", format="files", split=self._what.split)

    def _unload_queue(self, store: Path) -> None:
        with inorder.connect(store) as qm:
            assert len(list(jobs.unload_queue(qm, "FILES", self._folder / "taken"))) == self._what.files

    def run(self) -> dict[str, Figures]:
        spark, folder, taken = self._spark, self._folder, {}
        taken["cp -r"] = self._measured(self._copy)
        self._clean("copy")
        taken["cp -r, sync"] = self._measured(lambda: self._synced(self._copy))
        self._clean("copy")
        taken["tar, there and back"] = self._measured(self._tar)
        self._clean("all.tar", "untarred")
        taken["tar, there and back, sync"] = self._measured(lambda: self._synced(self._tar))
        self._clean("all.tar", "untarred")
        for store in ("one.db", "two.db"):
            with inorder.connect(folder / store) as qm:
                qm.create_queue("FILES", max_depth=999_999_999)
        taken["load"] = self._measured(lambda: self._load(folder / "one.db"))
        taken["drain"] = self._measured(lambda: jobs.drain(spark, folder / "one.db", "FILES", folder / "archive"))
        taken["unload"] = self._measured(lambda: jobs.unload(spark, folder / "archive", folder / "back"))
        self._check("back")
        self._load(folder / "two.db")
        taken["unload_queue"] = self._measured(lambda: self._unload_queue(folder / "two.db"))
        self._check("taken")
        return taken


def _files(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]


def main() -> None:
    """Runs the rounds."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # installed packages are not compiled anew in each process
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parent", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found: dict[str, list[dict[str, Figures]]] = {}
    with jobs.session("benchmark", driver_memory="4g") as spark:
        _round(spark, WARM_UP, given.parent)
        for name, what in FOLDERS.items():
            found[name] = [_round(spark, what, given.parent) for _ in range(given.rounds)]
            print(_table(name, _summed(found[name])), flush=True)
    if given.json:
        report = {name: _summed(rounds) for name, rounds in found.items()}
        given.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def _round(spark: SparkSession, what: Folder, parent: Path | None) -> dict[str, Figures]:
    with tempfile.TemporaryDirectory(prefix="inorder-bench-", dir=parent) as folder:
        return Round(spark, Path(folder), what).run()


def _summed(rounds: Sequence[Mapping[str, Figures]]) -> dict[str, Figures]:
    """Returns the medians by way, and those of the ratios to `cp -r` and `tar` in the same round."""
    names = ("seconds", "processor")
    return {
        way: {name: statistics.median(one[way][name] for one in rounds) for name in names}
        | {
            f"seconds, to {other}": statistics.median(one[way]["seconds"] / one[other]["seconds"] for one in rounds)
            for other in ("cp -r, sync", "tar, there and back, sync")
        }
        for way in rounds[0]
    }


def _table(name: str, report: Mapping[str, Figures]) -> str:
    what = FOLDERS[name]
    size = what.files * what.size / MIB
    lines = [
        f"{name}: {what.files:,} files of {what.size / 1024:,.0f} KiB, split {what.split}",
        "| | seconds | processor | files/s | MB/s | to cp -r, sync | to tar, sync |",
        "|---" * 7 + "|",
    ]
    for way, one in report.items():
        seconds, processor, copy, tar = one.values()
        rates = f"{what.files / seconds:,.0f} | {size * MIB / 1e6 / seconds:,.1f}"
        lines.append(f"| {way} | {seconds:.2f} s | {processor:.2f} s | {rates} | {copy:.1f} | {tar:.1f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
