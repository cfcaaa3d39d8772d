"""`inorder check`, `inorder backup` and `inorder upgrade`."""

from __future__ import annotations

import functools
import sqlite3
from pathlib import Path

import pytest
from tests.cli.conftest import Command
from tests.helpers import invented

import inorder
from inorder.stores.sqlite import upgrade_file
from inorder.stores.sqlite.statements import VERSION


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE tally SET depth = 5, arrived = 5 WHERE queue <> 0", "the recorded depth is 5, but it has 1 messages"),
        ("DELETE FROM manager", "the queue manager is missing"),  # no program could open such a store
    ],
)
def test_check_describes_damage_in_words(run: Command, queue: str, store: Path, damage: str, said: str) -> None:
    run("put", queue, "1")
    assert run("check").out.split()[-2:] == ["is", "sound"]
    assert run("check", "--json").records[0]["problems"] == []
    with sqlite3.connect(store) as other:
        other.execute(damage)
    other.close()
    ended = run("check")
    assert ended.status == 1
    assert said in ended.out
    told = run("check", "--json").records[0]
    assert (told["sound"], [said in one for one in told["problems"]].count(True)) == (False, 1)


def test_a_store_is_made_with_a_name(run: Command, tmp_path: Path) -> None:
    path = tmp_path / "paris.db"
    ended = run("create", str(path), "--name", "PARIS")
    assert (ended.status, ended.out) == (0, f"made the store {path}: queue manager PARIS\n")
    with inorder.connect(path) as qm:
        assert qm.admin.manager_attributes().name == "PARIS"
    again = run("create", str(path), "--name", "OTHER")
    assert again.status == 3
    assert f"there is a store or another file at {path} already" in again.err
    wrong = run("create", str(tmp_path / "x.db"), "--name", "Zürich")
    assert (wrong.status, (tmp_path / "x.db").exists()) == (2, False)
    assert "--name must be" in wrong.err


def test_renaming_a_store_to_its_own_name_reports_that_it_has_it_already(run: Command, tmp_path: Path) -> None:
    path = tmp_path / "lyon.db"
    run("create", str(path), "--name", "LYON")
    again = run("rename", "LYON", "--store", str(path))
    assert (again.status, again.out) == (0, f"the queue manager is called LYON already: {path}\n")
    told = run("rename", "LYON", "--store", str(path), "--json")
    assert told.records == [{"store": str(path), "name": "LYON", "before": "LYON"}]


def test_a_backup_can_be_opened_as_a_store(run: Command, queue: str, tmp_path: Path) -> None:
    run("put", queue, "1")
    (tmp_path / "copy.db").write_text("mine")
    assert run("backup", "copy.db").status == 2
    assert (tmp_path / "copy.db").read_text() == "mine", "a file that is there is replaced only when asked"
    assert run("backup", "copy.db", "--replace", "--json").records[0]["copy"] == "copy.db"
    with inorder.connect(tmp_path / "copy.db") as qm:
        assert [message.body for message in qm.browse(queue)] == [b"1"]


def test_an_upgrade_says_what_it_did_and_where_the_backup_is(
    run: Command, queue: str, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("put", queue, "1")
    assert run("upgrade").out.endswith(f"already has the schema of this release (version {VERSION})\n")
    next_release = functools.partial(upgrade_file, ladder=invented.SQLITE, schema=invented.SCHEMA)
    monkeypatch.setattr("inorder.stores.sqlite.upgrade_file", next_release)
    taken = store.with_name("taken.db")
    taken.write_text("mine")
    ended = run("upgrade", "--backup", str(taken))
    assert (ended.status, taken.read_text()) == (2, "mine")
    assert "--backup must be the path of a file that does not exist yet" in ended.err
    assert run("upgrade", "--backup", "copy.db", "--no-backup").status == 2
    newest = invented.SQLITE.newest
    told = run("upgrade", "--json").records[0]
    copy = f"{store}.schema-{VERSION}"
    assert told == {"store": str(store), "found": VERSION, "version": newest, "backup": copy}
    with inorder.connect(copy) as qm:
        assert qm.depth(queue) == 1
    ended = run("queue", "list")
    assert ended.status == 3
    assert "newer release" in ended.err


def test_a_truncated_copy_is_reported_as_unfinished(run: Command, queue: str, store: Path, tmp_path: Path) -> None:
    run("put", queue, given=bytes(100_000))
    whole = store.read_bytes()
    torn = tmp_path / "torn.db"
    torn.write_bytes(whole[: len(whole) // 2])
    ended = run("check", "--store", str(torn))
    assert ended.status == 3
    assert f"it has {len(whole) // 2:,} of {len(whole):,} bytes, as an unfinished copy has" in ended.err


def test_each_problem_of_a_torn_file_is_described_in_one_line(run: Command, queue: str, store: Path) -> None:
    run("put", queue, given=bytes(100_000))
    with store.open("r+b") as file:  # pages of the body, whose chain breaks
        file.seek(-10 * 4096, 2)
        file.write(bytes(4096))
    problems = run("check", "--json").records[0]["problems"]
    assert problems
    assert not [one for one in problems if "\n" in one or "***" in one or "behind" in one]


@pytest.mark.parametrize("arguments", ["check --store", "queue create Q --store", "create"])
def test_a_command_refuses_a_store_in_memory(run: Command, store: Path, arguments: str) -> None:
    ended = run(*arguments.split(), ":memory:")
    assert ended.status == 2
    assert "a store that outlives the command" in ended.err
    assert not list(store.parent.iterdir())
