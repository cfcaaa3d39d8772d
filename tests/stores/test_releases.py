"""The changelog's releases each have a kept store, which this release can upgrade."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.helpers import invented
from tests.helpers.pages import ROOT
from tools.fixture_store import FILE, RELEASES, TABLES, keep, missing, taken_out

import inorder
from inorder.stores.seam.migrations import Ladder, MigrationStep
from inorder.stores.sqlite import upgrade_file
from inorder.stores.sqlite.database import Database
from inorder.stores.sqlite.statements import VERSION

RELEASED = re.findall(r"^## (\d+\.\d+\.\d+) \((?!unreleased)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_the_store_of_every_release_is_kept_and_can_be_upgraded(tmp_path: Path) -> None:
    kept = sorted(folder.name for folder in RELEASES.iterdir()) if RELEASES.exists() else []
    assert kept == sorted(RELEASED), "python -m tools.fixture_store VERSION, with the code of that release"
    for version in kept:
        store = tmp_path / f"{version}.db"
        taken_out(RELEASES / version, store)
        inorder.upgrade(store)
        with inorder.connect(store) as qm:
            assert missing(qm) == [], version


def test_a_store_that_the_tool_keeps_loses_nothing_in_an_upgrade(tmp_path: Path) -> None:
    folder = keep("9.9.9", tmp_path)
    assert (folder / TABLES).read_text(encoding="utf-8").count("CREATE TABLE") > 10
    store = tmp_path / FILE
    taken_out(folder, store)
    upgrade_file(store, ladder=invented.SQLITE, schema=invented.SCHEMA)
    Database(store, schema=invented.SCHEMA, ladder=invented.SQLITE).close()
    # Undo the invented upgrade, so that this release can open the store and check what is in it.
    with closing(sqlite3.connect(store)) as connection:
        connection.executescript(f"DROP INDEX definition_note; ALTER TABLE definition DROP COLUMN note; {BACK}")
    with inorder.connect(store) as qm:
        assert missing(qm) == []


BACK = f"""
CREATE TABLE back (id INTEGER PRIMARY KEY) STRICT; INSERT INTO back SELECT * FROM process;
DROP TABLE process; ALTER TABLE back RENAME TO process; PRAGMA user_version = {VERSION}
"""


def test_the_check_lists_a_missing_message_and_a_wrong_description(tmp_path: Path) -> None:
    store = tmp_path / FILE
    taken_out(keep("9.9.9", tmp_path), store)
    with inorder.connect(store) as qm:
        qm.get("OTHERS")
        qm.alter_queue("ORDERS", description="lost")
        assert [one.partition(":")[0] for one in missing(qm)] == ["description", "a long body"]


def test_the_version_is_that_of_the_changelog_and_of_the_tutorial() -> None:
    newest = re.findall(r"^## (\d+\.\d+\.\d+) \(", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[0]
    archives = re.findall(r"inorder-(\S+)\.tar\.gz", (ROOT / "docs/tutorial/ten-minutes.md").read_text("utf-8"))
    assert {newest, *archives} == {inorder.__version__}


def step(version: int) -> MigrationStep:
    return MigrationStep(version=version, statements="")


def test_steps_lead_one_by_one_to_the_version_of_the_release() -> None:
    ladder = Ladder(7, [step(6), step(7)])
    assert (ladder.oldest, ladder.newest) == (5, 7)
    assert [one.version for one in ladder.from_version(5)] == [6, 7]
    assert [one.version for one in ladder.from_version(6)] == [7]
    assert [version for version in range(10) if ladder.can_upgrade(version)] == [5, 6]
    assert Ladder(7).oldest == 7
    for wrong in ([step(5)], [step(7), step(6)], [step(6), step(6), step(7)]):
        with pytest.raises(AssertionError):
            Ladder(7, wrong)


def test_a_wrong_store_or_backup_is_refused(tmp_path: Path) -> None:
    upgrade: Any = inorder.upgrade
    for store in (b"x", 1, None, ":memory:", "a\0b"):
        with pytest.raises(inorder.ArgumentError, match="store must be"):
            upgrade(store)
    for named in ({"backup": 1}, {"backup": "a\0b"}, {"progress": 1}):
        with pytest.raises(inorder.ArgumentError, match=f"{next(iter(named))} must be"):
            upgrade(tmp_path / "orders.db", **named)
    assert list(tmp_path.iterdir()) == []
