"""The sink on several stores, call by call: the choice of a store, and commits repeated after each fault."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType
from tests.helpers.pages import ROOT
from tests.helpers.support import bodies_at
from tests.spark.calls import on, schema, with_queues
from tests.spark.kills import holding
from tests.tiers import gate

import inorder
from inorder import Flags
from inorder.errors import (
    CallerError,
    CheckpointLost,
    CheckpointTooOld,
    Fenced,
    OptionsError,
    PutInhibited,
    UnknownQueue,
)
from inorder.spark import points, transaction_time
from inorder.spark.options import sink_options
from inorder.spark.sink import BatchWriter, StreamWriter, TaskMessage
from inorder.spark.sink_stores import BatchCommit

NAMES = ("one", "two", "three")
ROWS = [f"row {number}".encode() for number in range(12)]
BODIES = schema(body="binary")
WITH_KEYS = schema(body="binary", k="string", n="integer")
WITH_STORE = schema(body="binary", store="string", queue="string")


@pytest.fixture
def stores(tmp_path: Path) -> list[str]:
    """Three stores with the queues Q and OTHER; the first one's Q is the oldest."""
    return [with_queues(tmp_path / f"{name}.db", "Q", "OTHER") for name in NAMES]


def on_all(stores: list[str]) -> list[bytes]:
    return sorted(body for url in stores for body in on(url))


def writer(stores: list[str], kinds: StructType = BODIES, **options: str) -> BatchWriter:
    given = {"url": json.dumps(stores), "queue": "Q", "transaction": "monday"} | options
    return BatchWriter(sink_options(given, "batch write"), kinds)


def commit(stores: list[str], batch: int = 0, rows: list[bytes] | None = None, query: str = "query") -> None:
    """Stages and commits a batch of a stream; like each process of Spark, the commit has a writer of its own."""
    told = staged(stores, ROWS if rows is None else rows, query=query)
    stream(stores).commit([told], batch)


def stream(stores: list[str]) -> StreamWriter:
    return StreamWriter(sink_options({"url": json.dumps(stores), "queue": "Q"}, "stream write"), BODIES)


def staged(stores: list[str], rows: list[bytes], query: str = "query") -> TaskMessage:
    told = stream(stores).write(iter([pa.record_batch({"body": pa.array(rows, pa.binary())})]))
    assert isinstance(told, TaskMessage)
    told.query = query
    return told


class Killed(BaseException):
    """Ends the driver."""


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Commits a batch, and ends between the first store and the others. Its stagings remain, as a dead driver's do."""

    def run(stores: list[str], batch: int = 0, **more: Any) -> None:
        def end(point: str) -> None:
            if point == "settled first":
                raise Killed

        with monkeypatch.context() as patched:
            patched.setattr(points, "reached", end)
            with pytest.raises(Killed):
                commit(stores, batch, **more)

    return run


def expire(stores: list[str]) -> None:
    """Removes the stagings of dead drivers."""
    for url in stores:
        with inorder.connect(url) as qm:
            qm.bulk.undo_staging([one.name for one in qm.inspect.units() if one.kind == "staging"])


# --- the choice of a store


def test_rows_are_distributed_by_their_bodies_and_not_by_addresses_or_order(stores: list[str], tmp_path: Path) -> None:
    commit(stores)
    found = [on(url) for url in stores]
    assert all(found)
    assert on_all(stores) == sorted(ROWS)
    moved = [str(Path(url).rename(tmp_path / f"moved-{Path(url).name}")) for url in stores]
    commit(moved[::-1], 1, ROWS[::-1])
    assert [sorted(on(url)) for url in moved] == [sorted(some * 2) for some in found]


def test_a_group_stays_together(stores: list[str]) -> None:
    keys = [f"group {number % 8}" for number in range(40)] + ["", ""]
    rows = pa.record_batch(
        {"body": [str(number).encode() for number in range(42)], "k": keys, "n": pa.array(range(42), pa.int32())}
    )
    several = writer(stores, WITH_KEYS, groupBy="k", orderBy="n")
    several.commit([several.write(iter([rows.slice(0, 20)])), several.write(iter([rows.slice(20)]))])
    groups: dict[str, int] = {}
    for number, url in enumerate(stores):
        with inorder.connect(url) as qm:
            for one in qm.browse("Q", logical=True):
                assert groups.setdefault(keys[int(one.body)], number) == number
                assert one.sequence_number == 1 + keys[: int(one.body)].count(keys[int(one.body)])
    assert set(groups.values()) == {0, 1, 2}
    assert len(groups) == 9


def test_a_given_group_id_chooses_the_store_whether_padded_with_zeros_or_not(stores: list[str]) -> None:
    kinds = schema(body="binary", group_id="binary", flags="integer", sequence_number="integer")
    ids = [b"%d" % number for number in range(8)] + [None, b"\0" * 24]
    flags = [int(Flags.IN_GROUP)] * 8 + [0, 0]
    numbers = {1: [1] * 10, 2: [2] * 8 + [1, 1]}
    for number, given in ((1, ids), (2, [one and one.ljust(24, b"\0") for one in ids])):
        bodies = [b"%d of %d" % (number, row) for row in range(8)] + [b"alone"] * 2
        columns = {"body": bodies, "group_id": given, "flags": flags, "sequence_number": numbers[number]}
        one = writer(stores, kinds, transaction=str(number))
        one.commit([one.write(iter([pa.record_batch(columns)]))])
    found = [[body.split(b" of ")[-1] for body in on(url)] for url in stores]
    assert all(found)
    assert all(some.count(body) == (4 if body == b"alone" else 2) for some in found for body in some)


def test_a_column_names_the_store_and_another_the_queue(stores: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for url in stores:
        with_queues(url, "BAD")
    monkeypatch.chdir(Path(stores[0]).parent)
    given = {
        "body": [b"1", b"2", b"3", b"4", b"5", b"6", b"7"],
        "store": [stores[1], "two.db", stores[2], "four.db", stores[0], "mysql://a", ""],
        "queue": ["OTHER", None, "Q", "Q", "NOWHERE", "Q", "Q"],
    }
    rows = pa.record_batch({name: pa.array(values) for name, values in given.items()})
    one = writer(stores, WITH_STORE, storeColumn="store", queueColumn="queue", badRows="queue:BAD")
    strict = writer(stores, WITH_STORE, storeColumn="store")
    monkeypatch.chdir("/")  # a task of a cluster has a folder of its own
    one.commit([one.write(iter([rows]))])
    assert (on(stores[1], "OTHER"), on(stores[1]), on(stores[2]), on(stores[0])) == ([b"1"], [b"2"], [b"3"], [])
    bad = sorted((json.loads(body) for url in stores for body in on(url, "BAD")), key=lambda told: told["row_number"])
    assert [told["row_number"] for told in bad] == [4, 5, 6, 7]
    assert bad[0]["error"].startswith("store names no store of option url: it has no /")
    assert bad[1]["error"].startswith("queue names no queue to put on: there is no queue 'NOWHERE'")
    assert "store names no store of option url: option url must be the path of a store file" in bad[2]["error"]
    assert bad[3]["error"] == "store names no store of option url: it is empty, and only null leaves the choice open"
    assert [json.loads(body)["row_number"] for body in on(stores[0], "BAD")][:1] == [5], "in the store of its row"
    with pytest.raises(CallerError, match="row 4 of partition 0 is not a message: store names no store of option url"):
        strict.write(iter([rows]))
    assert on_all(stores) == [b"2", b"3"]


# --- the commit of a batch


def test_every_ledger_has_every_batch_even_in_a_store_without_rows(stores: list[str]) -> None:
    one = writer(stores)
    one.commit([])
    assert all(transaction_time(url, "Q", "monday") is not None for url in stores)
    assert transaction_time(json.dumps(stores), "Q", "monday") is not None
    one.commit([one.write(iter([pa.record_batch({"body": [b"again"]})]))])
    assert on_all(stores) == []


COMMIT = """
import sys
from tests.spark.test_sink_stores import commit

commit(sys.argv[1:], 1)
"""


@gate
def test_a_batch_of_a_process_killed_between_two_stores_is_put_once_when_repeated(stores: list[str]) -> None:
    commit(stores, 0, [b"before"])
    with subprocess.Popen(
        [sys.executable, "-c", COMMIT, *stores],
        env=holding.environment("settled first:1:/dev/stdout"),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as one:
        try:
            assert one.stdout is not None
            assert one.stdout.readline() == f"settled first {one.pid}\n"
        finally:
            one.kill()
    expire(stores)
    assert 0 < len(set(on(stores[0])) & set(ROWS)) < len(ROWS)
    assert not set(on_all(stores[1:])) & set(ROWS)
    commit(stores, 1)
    assert on_all(stores) == sorted([*ROWS, b"before"])


@pytest.mark.parametrize("again", [ROWS, ROWS[::-1]])
def test_a_batch_interrupted_between_two_stores_is_finished_by_its_repetition(
    stores: list[str], killed: Callable[..., None], again: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    commit(stores, 0, [b"before"])
    killed(stores, 1)
    expire(stores)
    first = on(stores[0])
    assert 0 < len(first) < len(ROWS)
    assert not set(on_all(stores[1:])) & set(ROWS)
    commit(stores, 1, again)
    assert on(stores[0]) == first
    assert on_all(stores) == sorted([*ROWS, b"before"])
    assert "batch 1 of query query was on 1 of 3 stores before; the others have it now" in caplog.text
    commit(stores, 1)
    commit(stores, 2, [b"after"])
    assert on_all(stores) == sorted([*ROWS, b"before", b"after"])


def test_a_transaction_that_failed_at_a_store_is_finished_by_a_second_one(
    stores: list[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def inhibit(point: str) -> None:
        if point == "settled first":
            alter(stores[1], put_allowed=False)

    rows = pa.record_batch({"body": ROWS})
    one = writer(stores)
    told = one.write(iter([rows]))
    with monkeypatch.context() as patched:
        patched.setattr(points, "reached", inhibit)
        with pytest.raises(PutInhibited):
            one.commit([told])
    one.abort([told])
    assert "transaction monday is not on all of 3 stores: repeat it, which puts the rest" in caplog.text
    assert transaction_time(json.dumps(stores), "Q", "monday") is None
    alter(stores[1], put_allowed=True)
    two = writer(stores)
    two.commit([two.write(iter([rows]))])
    assert on_all(stores) == sorted(ROWS)


def alter(url: str, **attributes: Any) -> None:
    with inorder.connect(url) as qm:
        qm.alter_queue("Q", **attributes)


@pytest.mark.parametrize("change", ["one more", "one less", "one alone"])
def test_another_list_is_refused_while_a_batch_is_half_committed(
    stores: list[str], killed: Callable[..., None], tmp_path: Path, change: str
) -> None:
    fourth = with_queues(tmp_path / "four.db", "Q")
    others = {"one more": [*stores, fourth], "one less": stores[:2], "one alone": stores[:1]}[change]
    killed(stores)
    expire(stores)
    with pytest.raises(OptionsError, match=r"batch 0 of query query is on .*one\.db, which put it under another list"):
        commit(others)
    expire([*stores, fourth])
    commit(stores)
    assert on_all(stores) == sorted(ROWS)
    commit(others, 1)
    assert on_all([*stores, fourth]) == sorted(ROWS * 2)
    commit(others, 1)
    assert on_all([*stores, fourth]) == sorted(ROWS * 2)


def test_a_single_store_that_has_a_batch_cannot_become_one_of_several_before_the_next(stores: list[str]) -> None:
    commit(stores[1:2])
    with pytest.raises(OptionsError, match=r"two\.db, which put it under another list"):
        commit(stores)
    expire(stores)
    commit(stores, 1)
    commit(stores[:1], 2, [b"alone again"])
    commit(stores[:1], 2, [b"alone again"])
    assert on_all(stores) == sorted([*ROWS, *ROWS, b"alone again"])


def test_a_list_that_lacks_the_store_that_commits_first_is_refused(
    stores: list[str], killed: Callable[..., None]
) -> None:
    killed(stores)
    expire(stores)
    with pytest.raises(OptionsError, match=r"lacks a store that the sink has put on, .* UTC\. It commits first"):
        commit(stores[1:])
    expire(stores)
    commit(stores)
    with pytest.raises(OptionsError, match="lacks a store that the sink has put on"):
        commit(stores[1:], 1)
    expire(stores)
    commit(stores[1:], 0, query="with a new checkpoint")
    assert on_all(stores) == sorted(ROWS * 2)


def test_a_list_that_was_recorded_and_never_used_is_replaced(
    stores: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(*_: Any, **__: Any) -> None:
        raise Killed

    more = [*stores, with_queues(tmp_path / "four.db", "Q")]
    commit(stores)
    for some in (more, stores, more):
        with monkeypatch.context() as patched:
            patched.setattr(BatchCommit, "_settle", end)
            with pytest.raises(Killed):
                commit(some, 1)
        expire(more)
    commit(more, 1)
    commit(more, 1)
    assert on_all(more) == sorted(ROWS * 2)


def test_of_two_processes_that_commit_a_batch_the_later_one_stops(
    stores: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dead driver's worker may still commit when the next driver starts, perhaps with another list."""
    check = BatchCommit._check

    def meanwhile(self: BatchCommit, ledgers: Any) -> None:
        check(self, ledgers)
        monkeypatch.setattr(BatchCommit, "_check", check)
        commit(stores[:2])

    monkeypatch.setattr(BatchCommit, "_check", meanwhile)
    with pytest.raises(Fenced, match="another process has put batch 0 of query query since this one began"):
        commit(stores)
    assert sorted(body for url in stores[:2] for body in bodies_at(url)) == sorted(ROWS)
    assert bodies_at(stores[2]) == []


# --- old copies of checkpoints and stores


@pytest.mark.parametrize("count", [1, 3])
def test_an_old_copy_of_a_checkpoint_is_refused(stores: list[str], count: int) -> None:
    some = stores[:count]
    for batch in range(3):
        commit(some, batch, [str(batch).encode()])
    with pytest.raises(CheckpointTooOld, match=r"has batch 2 of query query, and this is batch 1: .* is an old copy"):
        commit(some, 1, [b"other rows"])
    expire(some)
    commit(some, 2)
    commit(some, 3, [b"3"])
    assert on_all(some) == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("which", [0, 2])
@pytest.mark.parametrize("is_repeated", [True, False])
def test_a_restored_backup_is_noticed_except_in_a_later_store_at_a_repeated_batch(
    stores: list[str], killed: Callable[..., None], tmp_path: Path, which: int, is_repeated: bool
) -> None:
    commit(stores, 0)
    copy = tmp_path / "copy.db"
    with inorder.connect(stores[which]) as qm:
        qm.admin.backup(str(copy))
    commit(stores, 1)
    Path(stores[which]).unlink()
    copy.rename(stores[which])
    is_seen = is_repeated is False or which == 0
    if is_seen:
        with pytest.raises(CheckpointLost, match=rf"in .*{NAMES[which]}\.db lacks a batch .* restored from a backup"):
            commit(stores, 1 if is_repeated else 2)
    else:
        commit(stores, 1)  # as after a kill between two stores
        assert on_all(stores) == sorted(ROWS * 2)


def test_two_copies_of_a_store_are_refused(stores: list[str], tmp_path: Path) -> None:
    copy = str(tmp_path / "copy.db")
    with inorder.connect(stores[0]) as qm:
        qm.admin.backup(copy)
    with pytest.raises(OptionsError, match="names one store twice, or a store and its copy"):
        stream([stores[0], copy])


def test_a_write_to_several_stores_needs_a_transaction_existing_queues_and_a_string_column(
    stores: list[str], tmp_path: Path
) -> None:
    with pytest.raises(OptionsError, match="a write to several stores needs option transaction"):
        sink_options({"url": json.dumps(stores), "queue": "Q"}, "batch write")
    with pytest.raises(UnknownQueue):
        stream([*stores, with_queues(tmp_path / "four.db")])
    with pytest.raises(UnknownQueue):
        writer(stores, badRows="queue:BAD")
    with pytest.raises(OptionsError, match=r"option storeColumn names the column 'n', which is int: cast it to string"):
        writer(stores, WITH_KEYS, storeColumn="n", groupBy="k")
