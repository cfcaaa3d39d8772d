"""The checker on a store whose file was tampered with without its histories."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest
from tools.proof.acts import Reading
from tools.proof.checker import ROUNDS, STORE, run_observer
from tools.proof.history import read_folder
from tools.proof.labels import text_of
from tools.proof.worker import SINGLES

STEPS = 150
VISIBLE = 2  # rules.lifecycle.State


class Row(NamedTuple):
    """A persistent message of the worker, as it stands in the file."""

    id: int
    queue: int
    label: str


class Tampered:
    """A store's file, open for SQL, with what the histories say about it."""

    def __init__(self, folder: Path) -> None:
        self.reading = Reading(read_folder(folder / ROUNDS / "0001"))
        self.database = apsw.Connection(str(folder / STORE))

    def execute(self, sql: str, values: tuple[Any, ...] = ()) -> apsw.Cursor:
        return self.database.execute(sql, values)

    def rows(self) -> Iterator[Row]:
        found: list[Any] = self.execute(
            "SELECT m.id, m.queue, c.body FROM message m JOIN content c USING (id) "
            "JOIN definition d ON d.id = m.queue WHERE m.persistent AND m.state = ? AND d.name IN (?, ?, ?) "
            "ORDER BY m.queue, m.rank, m.number",
            (VISIBLE, *SINGLES),
        ).fetchall()
        for number, queue, body in found:
            if (label := text_of(body)) in self.reading.puts:
                yield Row(number, queue, label)


def lose_a_put(store: Tampered) -> str:
    row = next(row for row in store.rows() if store.reading.puts[row.label].act.puts == [row.label])
    for table in ("message", "content"):
        store.execute(f"DELETE FROM {table} WHERE id = ?", (row.id,))
    store.execute("UPDATE tally SET depth = depth - 1 WHERE queue = ?", (row.queue,))
    return row.label


def forget_a_content(store: Tampered) -> str:
    store.execute("DELETE FROM message WHERE id = ?", (next(store.rows()).id,))
    return "contents without a message"


FAULTS: dict[Callable[[Tampered], str], str] = {
    lose_a_put: "lost",
    forget_a_content: "tables",
}


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store on which a worker has worked, with its history; nobody has looked yet."""
    folder = tmp_path_factory.mktemp("untouched")
    for number in ("0000", "0001"):
        (folder / ROUNDS / number).mkdir(parents=True)
    assert run_observer(folder / STORE, folder / ROUNDS / "0000", seed=1) == []
    asked = ["-m", "tools.proof.worker", folder / STORE, folder / ROUNDS / "0001" / "worker.jsonl"]
    subprocess.run([sys.executable, *map(str, asked), "--seed", "6", "--steps", str(STEPS)], check=True)
    return folder


@pytest.fixture
def folder(untouched: Path, tmp_path: Path) -> Path:
    """A copy, to plant faults in."""
    return Path(shutil.copytree(untouched, tmp_path / "copy"))


def checked(folder: Path) -> subprocess.CompletedProcess[str]:
    asked = [sys.executable, "-m", "tools.proof.checker", str(folder), "--json"]
    return subprocess.run(asked, capture_output=True, text=True, check=False)


@pytest.mark.nightly
def test_a_store_that_nobody_touched_has_no_findings(folder: Path) -> None:
    done = checked(folder)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_fault_planted_in_the_file_is_named(folder: Path, plant: Callable[[Tampered], str]) -> None:
    store = Tampered(folder)
    with closing(store.database):
        named = plant(store)
    done = checked(folder)
    assert done.returncode == 1, done.stderr
    findings = json.loads(done.stdout)
    assert [found for found in findings if found["kind"] == FAULTS[plant] and named in found["text"]], findings
