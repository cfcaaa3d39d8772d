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
from zlib import crc32

import apsw
import pytest
from tools.proof.acts import Act, Reading
from tools.proof.checker import ROUNDS, STORE, run_observer
from tools.proof.history import read_folder
from tools.proof.labels import text_of
from tools.proof.worker import SINGLES

STEPS = 150
VISIBLE, PUT_UNCONFIRMED = 2, 1  # rules.lifecycle.State


class Row(NamedTuple):
    """A persistent message of the worker, as it stands in the file."""

    id: int
    queue: int
    state: int
    rank: int
    number: int
    unit_kind: str | None
    label: str


class Tampered:
    """A store's file, open for SQL, with what the histories say about it."""

    def __init__(self, folder: Path) -> None:
        self.reading = Reading(read_folder(folder / ROUNDS / "0001"))
        self.database = apsw.Connection(str(folder / STORE))

    def execute(self, sql: str, values: tuple[Any, ...] = ()) -> apsw.Cursor:
        return self.database.execute(sql, values)

    def rows(self, state: int = VISIBLE) -> Iterator[Row]:
        found: list[Any] = self.execute(
            "SELECT m.id, m.queue, m.state, m.rank, m.number, u.kind, c.body "
            "FROM message m JOIN content c USING (id) JOIN definition d ON d.id = m.queue "
            "LEFT JOIN unit u ON u.id = m.unit "
            "WHERE m.persistent AND m.state = ? AND d.name IN (?, ?, ?) ORDER BY m.queue, m.rank, m.number",
            (state, *SINGLES),
        ).fetchall()
        for *values, body in found:
            if (label := text_of(body)) in self.reading.puts:
                yield Row._make([*values, label])

    def act(self, row: Row) -> Act:
        return self.reading.puts[row.label].act

    def remove(self, row: Row) -> str:
        self.execute("DELETE FROM message WHERE id = ?", (row.id,))
        self.execute("DELETE FROM content WHERE id = ?", (row.id,))
        self.execute("UPDATE tally SET depth = depth - 1 WHERE queue = ?", (row.queue,))
        return row.label

    def copy(self, table: str, row: Row, **changed: int) -> None:
        """Another row, like that one but for the values that are changed."""
        names = [
            name
            for _, name, *_, hidden in self.execute(f"PRAGMA table_xinfo({table})")
            if not hidden  # the others are generated
        ]
        values = ", ".join(str(changed[name]) if name in changed else f'"{name}"' for name in names)
        into = ", ".join(f'"{name}"' for name in names)
        self.execute(f"INSERT INTO {table} ({into}) SELECT {values} FROM {table} WHERE id = ?", (row.id,))

    def body(self, number: int) -> bytes:
        body = self.execute("SELECT body FROM content WHERE id = ?", (number,)).get
        assert isinstance(body, bytes)
        return body

    def write(self, number: int, body: bytes) -> None:
        """Another body, as if the queue manager had written it: with the length and the CRC that belong to it."""
        self.execute("UPDATE content SET body = ?, crc = ? WHERE id = ?", (body, crc32(body, number), number))
        self.execute("UPDATE message SET length = ? WHERE id = ?", (len(body), number))


def lose_a_put(store: Tampered) -> str:
    return store.remove(next(row for row in store.rows() if store.act(row).puts == [row.label]))


def forget_a_content(store: Tampered) -> str:
    row = next(store.rows())
    store.copy("content", row, id=10**9)
    return "contents without a message"


def double_a_message(store: Tampered) -> str:
    row = next(store.rows())
    counter = store.execute("UPDATE tally SET counter = counter + 1 WHERE queue = 0 RETURNING counter").get
    store.copy("message", row, id=counter, ordinal=1)
    assert isinstance(counter, int)
    store.copy("content", row, id=counter)
    store.write(counter, store.body(row.id))
    store.execute("UPDATE tally SET depth = depth + 1 WHERE queue = ?", (row.queue,))
    return row.label


def show_what_was_not_confirmed(store: Tampered) -> str:
    row = next(row for row in store.rows(PUT_UNCONFIRMED) if row.unit_kind == "confirm")
    store.execute(
        "UPDATE message SET state = ?, unit = NULL, number = coalesce(number, 1000000) WHERE id = ?", (VISIBLE, row.id)
    )
    return store.act(row).title


def cut_a_body(store: Tampered) -> str:
    row = next(store.rows())
    store.write(row.id, store.body(row.id)[:-1])
    return row.label


FAULTS: dict[Callable[[Tampered], str], str] = {
    lose_a_put: "lost",
    forget_a_content: "tables",
    double_a_message: "doubled",
    show_what_was_not_confirmed: "vanished",
    cut_a_body: "damaged",
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
