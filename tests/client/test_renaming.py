"""A queue manager is renamed while nobody is connected; its ids stay."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.channelled import carry
from tests.helpers.support import Make, close_store, put_group
from tests.stores.sqlite.programs import Program

import inorder
from inorder import Match
from inorder.client import store_transfer
from inorder.client.bulk import LedgerKey, Stager
from inorder.model.attributes import define_manager
from inorder.mq import channels
from inorder.stores.postgresql import PostgresStore
from inorder.stores.seam.definitions import as_text, manager_of
from inorder.stores.sqlite import SqliteStore
from inorder.testing import ManualClock

PREFIX = b"AMQ " + b"PARIS".ljust(12)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    store = tmp_path / "store.db"
    with inorder.connect(store, name="PARIS") as qm:
        qm.create_queue("Q")
    return store


def test_ids_stay_the_same_after_a_rename_and_new_ones_have_the_same_prefix(path: Path) -> None:
    with inorder.connect(path) as qm:
        before = qm.put("Q", b"before")
    assert inorder.rename(path, "LYON") == "PARIS"
    with inorder.connect(path) as qm:
        attributes = qm.admin.manager_attributes()
        assert (attributes.name, attributes.origin) == ("LYON", "PARIS")
        after = qm.put("Q", b"after", reply_to_queue="Q")
        found = list(qm.browse("Q"))
        assert [(one.message_id, one.uid) for one in found] == [(one.message_id, one.uid) for one in (before, after)]
        assert {(one.message_id[:16], one.uid and one.uid.origin) for one in found} == {(PREFIX, "PARIS")}
        assert found[1].reply_to_queue_manager == "LYON"
        assert qm.get("Q", match=Match(uid=before.uid)).body == b"before"
        assert qm.get("Q", match=Match(message_id=after.message_id)).body == b"after"
    assert inorder.rename(path, "PARIS") == "LYON"


def test_all_ids_made_after_a_rename_have_the_first_name_as_origin(path: Path) -> None:
    inorder.rename(path, "LYON")
    with inorder.connect(path) as qm:
        qm.create_queue("R")
        qm.create_queue("INIT")
        qm.admin.create_process("P", application_id="echo")
        qm.create_queue("T", trigger_control=True, trigger_type="every", initiation_queue="INIT", process="P")
        with qm.open("INIT", input="shared"):
            qm.put("T", b"x", report=inorder.Report.COA, reply_to_queue="R")
        made = [qm.get("INIT"), qm.get("R")]
        assert [one.put_application_name for one in made] == ["LYON", "LYON"]
        put_group(qm, b"1", b"2")
        with qm.open("Q", output=True) as queue:
            stager = Stager(queue, "staging", lasts=60)
            stager.stage(2, {"body": [b"3", b"4"], "group_key": ["a", "a"]})
            qm.bulk.settle_staging(LedgerKey("load", "", "monday"), [stager.staged])
        grouped = list(qm.browse("Q"))
        assert {one.group_id[:16] for one in grouped} == {PREFIX}
        made += grouped
        assert {(one.message_id[:16], one.uid and one.uid.origin) for one in made} == {(PREFIX, "PARIS")}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("name", ["PARIS", "LYON"])
def test_reports_made_at_a_start_after_a_rename_refer_to_the_ids_of_their_messages(
    make: Make, kind: str, name: str
) -> None:
    place = make(kind)
    with inorder.connect(place, name="PARIS") as qm:
        qm.create_queue("Q")
        qm.create_queue("R")
    if name != "PARIS":
        inorder.rename(place, name)
    with inorder.connect(place) as qm:
        kept = qm.put("Q", b"kept")
        over = qm.put("Q", b"over", expiry=60, report=inorder.Report.EXPIRATION, reply_to_queue="R")
    with Program(place) as child:
        child.answer()
        child.run("qm.unit_of_work().__enter__(); qm.get('Q'); qm.put('Q', b'never', expiry=60)")
        child.kill()
    store = {"sqlite": SqliteStore, "postgresql": PostgresStore}[kind](place, clock=ManualClock(time.time() + 3600))
    with inorder.connect(store) as qm:
        assert qm.admin.manager_attributes().name == name
        report = qm.get("R")
        assert (report.correlation_id, report.message_id[:16]) == (over.message_id, PREFIX)
        assert [(one.body, one.message_id, one.uid) for one in qm.browse("Q")] == [(b"kept", kept.message_id, kept.uid)]
    close_store(store)


def test_a_copy_between_stores_continues_after_both_were_renamed(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with inorder.connect(path) as source, inorder.connect(other) as target:
        target.create_queue("Q")
        source.put_many("Q", [b"0", b"1", b"2", b"3"])
        assert sum(store_transfer.copy(source, "Q", target, "Q", most=2)) == 2
    inorder.rename(path, "LYON")
    inorder.rename(other, "NICE")
    with inorder.connect(path) as source, inorder.connect(other) as target:
        assert sum(store_transfer.copy(source, "Q", target, "Q")) == 2
        assert [one.body for one in target.browse("Q")] == [b"0", b"1", b"2", b"3"]


def test_a_channel_continues_after_its_sender_was_renamed(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with inorder.connect(other, name="NICE") as target:
        target.create_queue("Q")
    with inorder.connect(path) as qm:
        qm.create_queue("NICE", usage="transmission")
        channels.define_channel(qm, "TO.NICE", transmission_queue="NICE", connection=str(other))
        qm.put("Q", b"1", manager="NICE")
        carry(str(path), "TO.NICE")
        with pytest.raises(inorder.errors.ObjectInUse):
            inorder.rename(path, "LYON")
    with pytest.raises(inorder.ArgumentError, match="name must be another name: NICE leads to another queue manager"):
        inorder.rename(path, "NICE")
    inorder.rename(path, "LYON")
    with inorder.connect(path) as qm, inorder.connect(other) as target:
        qm.put("Q", b"2", manager="NICE")
        carry(str(path), "TO.NICE")
        assert [one.body for one in target.browse("Q")] == [b"1", b"2"]
        assert [(one.sender.manager, one.number) for one in channels.received(target)] == [("LYON", 2)]


def test_replies_to_the_old_name_arrive_through_a_remote_definition_of_that_name(path: Path) -> None:
    with inorder.connect(path) as qm:
        qm.put("Q", b"question", reply_to_queue="Q")
    inorder.rename(path, "LYON")
    with inorder.connect(path) as qm:
        qm.create_queue("FAR", type="remote", remote_queue="Q", remote_manager="NICE", transmission_queue="X")
    with pytest.raises(inorder.ArgumentError, match="name must be another name: FAR leads to"):
        inorder.rename(path, "NICE")
    with inorder.connect(path) as qm:
        asked = qm.get("Q")
        assert asked.reply_to_queue_manager == "PARIS"
        with pytest.raises(inorder.errors.WrongQueueType):
            qm.reply(asked, b"answer")
        qm.create_queue("PARIS", type="remote", remote_manager="LYON")
        qm.reply(asked, b"answer")
        assert qm.get("Q").body == b"answer"


def test_a_rename_is_refused_while_another_program_has_the_store_open(path: Path) -> None:
    with (
        inorder.connect(path, program="worker.py"),
        pytest.raises(
            inorder.errors.ObjectInUse,
            match=r"PARIS cannot be renamed while other programs .* open \(worker\.py\)\. Close",
        ),
    ):
        inorder.rename(path, "LYON")
    store = SqliteStore(path)  # without a connection
    try:
        with pytest.raises(inorder.errors.ObjectInUse, match="PARIS cannot be renamed"):
            inorder.rename(path, "LYON")
    finally:
        store.close_store()
    with inorder.connect(path) as qm:
        assert qm.admin.manager_attributes().name == "PARIS"
    assert inorder.rename(path, "LYON") == "PARIS"


@pytest.mark.parametrize("name", ["", "a b", "Zürich", "x" * 49, None, 1])
def test_a_name_that_is_not_valid_is_refused(path: Path, name: Any) -> None:
    with pytest.raises(inorder.ArgumentError, match="name must be") as refused:
        inorder.rename(path, name)
    assert refused.value.reason == inorder.Reason.Q_MGR_NAME_ERROR


def test_renaming_a_missing_store_is_refused_and_creates_nothing(tmp_path: Path) -> None:
    rename: Any = inorder.rename
    with pytest.raises(inorder.StoreError, match="there is no store at"):
        rename(tmp_path / "none.db", "LYON")
    for store in (":memory:", b"x", None, "a\0b"):
        with pytest.raises(inorder.ArgumentError, match="store must be"):
            rename(store, "LYON")
    assert list(tmp_path.iterdir()) == []


def test_attributes_written_by_an_older_release_have_their_name_as_origin() -> None:
    kept = json.loads(as_text(define_manager(name="PARIS")))
    del kept["origin"]
    assert manager_of(json.dumps(kept)).origin == "PARIS"
