"""Claims and stagings in a file: on disk when a call returns, kept by restarts and backups, whole or absent."""

from __future__ import annotations

import contextlib
import itertools
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.helpers import forked
from tests.helpers.claiming import GROUPS, PHYSICAL, STRICT, Application
from tests.helpers.staged import KEY, Writer, key, letters
from tests.helpers.support import bodies
from tests.tiers import gate

import inorder
from inorder import Flags, Message, QueueManager
from inorder.errors import CheckpointLost
from inorder.stores.engine import points
from inorder.stores.sql import backend, engine, leftovers, shortcuts
from inorder.stores.sqlite import SqliteStore
from inorder.stores.sqlite.checking import problems
from inorder.testing import ManualClock

MESSAGES = [b"m%d" % n for n in range(6)]


@pytest.fixture
def filled(store: SqliteStore) -> QueueManager:
    qm = inorder.connect(store, program="test")
    qm.create_queue("Q")
    fill(qm)
    return qm


def fill(qm: QueueManager) -> None:
    for number, body in enumerate(MESSAGES[:3]):
        qm.put("Q", body, priority=number)
    for number, body in enumerate(MESSAGES[3:], 1):
        flags = Flags.IN_GROUP | (Flags.LAST_IN_GROUP if number == 3 else Flags.NONE)
        qm.put("Q", body, group_id=b"g".ljust(24), sequence_number=number, flags=flags)


def log_size(path: Path) -> int:
    return Path(f"{path}-wal").stat().st_size


def test_a_call_that_changes_nothing_writes_nothing(filled: QueueManager, store: SqliteStore, path: Path) -> None:
    app = Application(store)
    app.claim(0)
    app.plan(0, 1)
    app.settle(1)
    filled.put("Q", b"1", group_id=b"h".ljust(24), sequence_number=1, flags=Flags.IN_GROUP)
    size, number = log_size(path), next_number(store)
    for options in (PHYSICAL, GROUPS, STRICT):
        assert app.claim(1, options, horizon=app.horizon) is None
        app.settle(1)
        app.survey(options)
    assert (log_size(path), next_number(store)) == (size, number)


def next_number(store: SqliteStore) -> int:
    with store.database.reading():
        number = store.database.connection.execute("SELECT counter FROM tally WHERE queue = 0").get
    assert isinstance(number, int)
    return number


def test_every_act_on_a_claim_is_on_disk_when_it_returns(
    filled: QueueManager, store: SqliteStore, syncs: list[int]
) -> None:
    owner = Application(store)
    syncs.clear()
    acts: list[Callable[[], object]] = [
        lambda: owner.claim(0, most=2), lambda: owner.plan(0, 1), lambda: owner.claim(1, most=2),
        lambda: owner.settle(2), lambda: owner.claim(2, most=1), lambda: store.release_claims("Q", "app"),
        lambda: store.finish_claims("Q", "app", 3), lambda: Application(store),
    ]  # fmt: skip
    for count, act in enumerate(acts, 1):
        act()
        assert len(syncs) == count


def test_a_backup_has_the_open_claim(filled: QueueManager, store: SqliteStore, tmp_path: Path) -> None:
    app = Application(store)
    app.claim(0, most=2)
    filled.admin.backup(tmp_path / "copy.db")
    app.claim(1)
    copy = SqliteStore(tmp_path / "copy.db")
    try:
        again = Application(copy)
        assert again.bodies(1) == [MESSAGES[2], MESSAGES[1]]
        with pytest.raises(CheckpointLost, match="the store was restored to an older state"):
            again.claim(2)
        assert problems(copy.database) == []
    finally:
        copy.close_store()


# ---- many rows at once: the triggers that follow groups are off meanwhile


def member(group: bytes, number: int, flags: Flags = Flags.IN_GROUP) -> Message:
    return Message(group + b"%d" % number, group_id=group.ljust(24), sequence_number=number, flags=flags)


def of_group(group: bytes, count: int) -> list[Message]:
    return [member(group, n) for n in range(1, count)] + [member(group, count, Flags.LAST_IN_GROUP)]


SHAPES = {
    "plain": [of_group(b"A", 3), of_group(b"B", 40)],
    "in pieces": [of_group(b"A", 3), [
        member(b"B", 1, Flags.IN_GROUP | Flags.SEGMENT),
        member(b"B", 1, Flags.IN_GROUP | Flags.LAST_SEGMENT).with_values(offset=2),
        member(b"B", 2, Flags.LAST_IN_GROUP),
    ]],
    "twice the same number": [of_group(b"A", 3), [*of_group(b"C", 2)[:1] * 2, member(b"C", 3, Flags.LAST_IN_GROUP)]],
}  # fmt: skip
TAKEN = {"plain": 43, "in pieces": 6, "twice the same number": 3}


@pytest.fixture(params=[1, engine.MANY], ids=["off", "on"])
def many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for user in (shortcuts, backend):
        monkeypatch.setattr(user, "MANY", request.param)


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("shape", SHAPES)
def test_the_records_of_groups_stay_correct_when_claims_take_return_or_confirm_messages(
    shape: str, store: SqliteStore
) -> None:
    qm = inorder.connect(store, program="test")
    qm.create_queue("Q")
    for messages in itertools.zip_longest(*SHAPES[shape]):  # the groups are interleaved
        qm.put_many("Q", [one for one in messages if one is not None])
    wanted = [one.body for group in SHAPES[shape] for one in group][: TAKEN[shape]]
    app = Application(store)
    for number in (1, 2):
        claim = app.claim(number - 1, GROUPS)
        assert claim is not None
        assert claim.messages == TAKEN[shape]
        assert problems(store.database) == []
        assert app.bodies(number) == wanted
        if number == 1:
            store.release_claims("Q", "app")
            app = Application(store)
            assert problems(store.database) == []
    qm.put_many("Q", of_group(b"A", 2))  # later messages under the same id are another group
    assert app.settle(2) == TAKEN[shape]
    assert problems(store.database) == []
    assert [one.body for one in qm.get_group("Q")] == [b"A1", b"A2"]


@pytest.mark.usefixtures("many")
def test_confirming_a_claim_of_any_size_ends_the_group_that_a_reader_is_inside(store: SqliteStore) -> None:
    qm = inorder.connect(store, program="test")
    qm.create_queue("Q")
    qm.put_many("Q", of_group(b"A", 3))
    assert qm.get("Q", logical=True).body == b"A1"
    app = Application(store)
    app.claim(0)
    app.plan(0, 1)
    assert app.settle(1) == 2
    assert problems(store.database) == []
    with store.database.reading():
        assert store.database.connection.execute("SELECT count(*) FROM entered").get == 0


# ---- processes

CHILD = """
import os, signal
from inorder import connect
from inorder.stores.sqlite import SqliteStore
store = SqliteStore(*arguments)
qm = connect(store)
qm.get("Q", syncpoint=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@gate
def test_a_strict_claim_backs_out_the_units_of_killed_processes_that_block_it(
    filled: QueueManager, store: SqliteStore, path: Path
) -> None:
    app = Application(store, "strict")
    app.claim(0, most=2)
    app.settle(1)
    filled.get("Q")
    for number in range(1, 4):
        assert forked.run(CHILD, str(path)) == -signal.SIGKILL
        app.claim(number, STRICT, most=1)
        assert app.bodies(number + 1) == [MESSAGES[2 + number]]
    assert problems(store.database) == []


@pytest.fixture
def writer(store: SqliteStore) -> Writer:
    qm = inorder.connect(store, program="test")
    qm.create_queue("Q")
    return Writer(store, qm)


def rows_in(writer: Writer, table: str) -> int:
    assert isinstance(writer.store, SqliteStore)
    database = writer.store.database
    with database.reading():
        count = database.connection.execute(f"SELECT count(*) FROM {table}").get
    assert isinstance(count, int)
    return count


def is_sound(writer: Writer) -> bool:
    assert isinstance(writer.store, SqliteStore)
    assert problems(writer.store.database) == []
    return True


def test_staging_writes_the_contents_and_settling_leaves_them_in_place(writer: Writer) -> None:
    writer.stage("one", letters("abc"), group_key=[1, 1, None])
    assert [rows_in(writer, table) for table in ("content", "staged", "message")] == [3, 3, 0]
    assert is_sound(writer)
    writer.settle("one")
    assert [rows_in(writer, table) for table in ("content", "staged", "message", "staging", "unit")] == [3, 0, 3, 0, 0]
    assert is_sound(writer)


def test_every_act_of_a_staging_is_on_disk_when_it_returns(writer: Writer, syncs: list[int]) -> None:
    writer.handle()
    writer.qm.put_many("Q", [b""] * 3)
    syncs.clear()
    writer.stage("one", letters("ab"), persistent=[False, False])
    assert len(syncs) == 1
    writer.settle("one")
    assert len(syncs) == 2
    writer.stage("two", letters("ab"))
    writer.store.undo_staging(["two"])
    assert len(syncs) == 4
    writer.store.undo_staging(["two"])
    assert writer.store.in_ledger("Q", KEY) is not None
    assert len(syncs) == 4


def test_the_contents_of_a_large_undone_or_expired_staging_are_removed_in_steps(
    writer: Writer, path: Path, monkeypatch: pytest.MonkeyPatch, clock: ManualClock
) -> None:
    monkeypatch.setattr(leftovers, "STEP_CONTENTS", 10)
    for name in ("undone", "over"):
        writer.stage(name, [b"x"] * 35, lasts=10.0)
    before_steps: list[int] = []
    with contextlib.closing(sqlite3.connect(path)) as other:

        def seen(point: str) -> None:
            if point == "settled":
                before_steps.extend(other.execute("SELECT count(*) FROM content").fetchone())

        monkeypatch.setattr(points, "reached", seen)
        writer.store.undo_staging(["undone"])
        assert (rows_in(writer, "content"), rows_in(writer, "leftover")) == (35, 0)
        clock.advance(10.0)
        writer.store.discard_expired(1000)
    assert before_steps == [70, 60, 50, 40, 35, 25, 15, 5]
    assert [rows_in(writer, table) for table in ("content", "leftover", "staged", "unit")] == [0, 0, 0, 0]
    assert is_sound(writer)


def test_stagings_and_the_ledger_survive_a_backup_and_a_reopening_of_the_store(
    writer: Writer, store: SqliteStore, path: Path, clock: ManualClock
) -> None:
    copy = path.with_name("copy.db")
    writer.put(letters("a"))
    writer.stage("one", letters("bcd"), group_key=[1, 1, 2], order_key=[3, 2, 1])
    writer.qm.admin.backup(copy)
    store.close_store()
    for one in (path, copy):
        reopened = SqliteStore(one, clock=clock)
        again = Writer(reopened, inorder.connect(reopened, program="next"))
        again.counts = dict(writer.counts)
        assert is_sound(again)
        assert reopened.in_ledger("Q", KEY) is not None
        assert again.settle("one", key=KEY._replace(batch="1")).messages == 3
        assert bodies(again.qm) == letters("adcb")
        assert is_sound(again)
        reopened.close_store()


def test_the_newest_batches_are_kept_even_if_the_clocks_of_two_alternating_stores_differ(
    writer: Writer, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inorder.stores.engine.staging.LEDGER_BATCHES_MAX", 3)
    another = SqliteStore(path, clock=ManualClock(1.0))  # years before the other clock
    theirs = Writer(another, inorder.connect(another, program="test"))
    for batch in range(8):
        (writer if batch % 3 else theirs).put([], key=key(batch))
        noted = [one for one in range(8) if writer.store.in_ledger("Q", key(one)) is not None]
        assert noted == list(range(max(0, batch - 2), batch + 1))
    another.close_store()
