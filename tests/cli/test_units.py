"""`inorder unit`, `lock`, `claim` and `connection`: lists of holders, and settling and releasing by hand."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.cli.conftest import Command

import inorder
from inorder import Match
from inorder.cli import main
from inorder.cli.units import unit_names
from inorder.cli.users import user_names
from inorder.client.bulk import ClaimReader, Stager
from inorder.client.unit_names import INSTEAD
from inorder.mq import channels
from inorder.stores.seam.tables import Branch


def in_doubt(qm: inorder.QueueManager, *managers: str) -> str:
    """Leaves a committed unit of work with parts at these owners. Returns its name."""
    name = qm._store.begin_global(qm.internals.owner, [Branch(f"TO.{one}", one) for one in managers])
    qm._store.settle(qm.internals.owner, "commit", decides=name)
    return name


@pytest.fixture
def other(queue: str, store: Path) -> Iterator[inorder.QueueManager]:
    """Another program that works on the store."""
    with inorder.connect(store, program="worker") as qm:
        yield qm


def test_units_are_listed_with_their_programs_and_messages(
    run: Command, other: inorder.QueueManager, queue: str
) -> None:
    other.put(queue, b"1", syncpoint=True)
    other.put(queue, b"2", confirm_id=7)
    prepared = other.connect(program="preparer")
    prepared.put_many(queue, [b"3", b"pears"], syncpoint=True)
    prepared.prepare("monday")
    records = run("unit", "list", "--json").records
    assert [(one["kind"], one["program"], one["puts"], one["queues"]) for one in records] == [
        ("session", "worker", 1, [queue]),
        ("confirm", "worker", 1, [queue]),
        ("prepared", "preparer", 2, [queue]),
    ]
    assert [one["unit"] for one in records][1:] == [f"confirm:{queue}:7", "prepared:monday"]
    assert (records[0]["process"], records[2]["process"]) == (os.getpid(), None)
    shown = run("unit", "list").out
    assert "session:" in shown
    assert "preparer" in shown
    record = run("unit", "show", "monday", "--json").records[0]
    assert (record["unit"], [one["preview"] for one in record["messages"]]) == ("prepared:monday", ["3", "pears"])
    assert "pears" in run("unit", "show", "prepared:monday").out
    prepared.close()
    other.back_out()


def test_a_unit_is_committed_or_backed_out_only_with_confirmation(
    run: Command, other: inorder.QueueManager, queue: str
) -> None:
    for name in ("monday", "tuesday", "\x1b[31mred"):
        other.put(queue, name.encode(), syncpoint=True)
        other.prepare(name)
    other.put(queue, b"1", confirm_id=7)
    with other.open(queue, output=True) as handle:
        Stager(handle, "batch", lasts=60).stage(1, {"body": [b"staged"]})
    refused = run("unit", "commit", "monday")
    assert (refused.status, "--yes" in refused.err) == (2, True)
    assert "Commit prepared:monday of worker, open for" in refused.err
    assert "1 put?" in refused.err
    assert len(other.inspect.units()) == 5
    assert run("unit", "commit", "monday", "--yes").out == "committed prepared:monday\n"
    assert run("unit", "commit", "prepared:\x1b[31mred", "--yes").out == "committed prepared:\\x1b[31mred\n"
    unknown = run("unit", "show", "prepared:tusday")
    assert (unknown.status, "did you mean prepared:tuesday?" in unknown.err) == (2, True)
    assert run("unit", "backout", "prepared:tuesday", "--yes", "--json").records[0]["done"] == "backed out"
    for unit in (f"confirm:{queue}:7", "staging:batch"):
        assert run("unit", "backout", unit, "--yes").status == 0
    assert [message.body for message in other.browse(queue)] == [b"monday", b"\x1b[31mred"]
    assert run("unit", "list").err == "no unit is open\n"


def test_a_unit_that_another_command_settles_is_refused_with_that_command(
    run: Command, other: inorder.QueueManager, queue: str
) -> None:
    other.put_many(queue, [b"1", b"2", b"3"])
    other.browse_and_lock(queue, Match(message_id=next(other.browse(queue)).message_id))
    with other.open(queue, input="shared") as handle:
        reader = ClaimReader(handle, "spark")
        reader.claim(reader.begin().settled, most=1)
    other.put(queue, b"held", confirm_id=7)
    with other.open(queue, output=True) as handle:
        Stager(handle, "batch", lasts=60).stage(1, {"body": [b"staged"]})
    other.lease(seconds=600)
    other.put(queue, b"4", syncpoint=True)
    other._store.begin_global(other.internals.owner, [Branch("PARIS", "PARIS")])
    keys = {one["kind"]: one["unit"] for one in run("unit", "list", "--json").records}
    for (verb, kind), how in INSTEAD.items():
        ended = run("unit", verb.replace("_", ""), keys[kind], "--yes", "--json")
        assert ended.status == 1
        assert how in json.loads(ended.err)["error"]
    assert len(other.inspect.units()) == len(keys) == 7
    other.back_out()


def test_units_in_doubt_are_settled_at_the_reachable_owners_and_can_be_forgotten(
    run: Command, other: inorder.QueueManager, tmp_path: Path
) -> None:
    with inorder.connect(tmp_path / "paris.db", name="PARIS"):
        channels.define_connection(other, "TO.PARIS", str(tmp_path / "paris.db"))
        done, name = in_doubt(other, "PARIS"), in_doubt(other, "PARIS", "ROME")
        (settled,) = run("unit", "settle", "--json").records
    assert (settled["settled"], settled["left"], len(settled["errors"])) == (1, 1, 1)
    assert "TO.ROME" in settled["errors"][0]
    ended = run("unit", "settle")
    assert (ended.out, "TO.ROME" in ended.err) == ("settled 0 units, 1 left\n", True)
    (record,) = run("unit", "list", "--json").records
    assert (record["unit"], record["owners"], record["outcome"]) == (f"global:{name}", ["ROME"], "commit")
    assert "which is not settled at ROME?" in run("unit", "forget", f"global:{name}").err
    assert run("unit", "forget", f"global:{name}", "--yes").out == f"forgot global:{name}\n"
    assert run("unit", "show", f"global:{done}").status == 2


def test_a_part_of_a_unit_of_another_queue_manager_is_settled_with_a_warning(
    run: Command, other: inorder.QueueManager, queue: str
) -> None:
    part = f"{'0' * 32}/01234567/8/HERE"
    for outcome in ("commit", "backout"):
        other.put(queue, b"1", syncpoint=True)
        other.prepare(part)
        ended = run("unit", outcome, f"prepared:{part}", "--yes")
        assert (ended.status, "the unit is half committed" in ended.err) == (0, True)
    assert run("unit", "forget", f"prepared:{part}", "--yes").status == 2
    other.put(queue, b"1", syncpoint=True)
    other.prepare(part)
    assert run("unit", "forget", f"prepared:{part}", "--yes").status == 1


def test_locks_are_listed_and_lock_ids_released(run: Command, other: inorder.QueueManager, queue: str) -> None:
    other.put_many(queue, [b"1", b"2"])
    with other.open(queue, browse=True) as handle:
        handle.browse_first(lock=True)
        locked = other.browse_and_lock(queue, Match())
        records = run("lock", "list", "--json").records
        found = {(one["kind"], one["lock_id"], one["messages"]) for one in records}
        assert found == {("handle", None, 1), ("lock", locked.lock_id, 1)}
        assert "worker" in run("lock", "list").out
        assert "--yes" in run("lock", "release", queue, str(locked.lock_id)).err
        ended = run("lock", "release", queue, str(locked.lock_id), "--yes")
        assert ended.out == "unlocked 1 message on ORDERS\n"
    assert run("lock", "list").err == "nothing is locked\n"
    assert run("lock", "release", queue, "99", "--yes").status == 1
    other.browse_and_lock(queue, most=1, lease=5000)
    other.browse_and_lock(queue)
    [leased, held] = run("lock", "list", "--json").records
    assert 4000 < leased["lease_left"] <= 5000
    assert leased["lease_ends_at"] > leased["since"]
    assert (held["lease_ends_at"], held["lease_left"]) == (None, None)
    assert re.search(r"lease left(.|\n)*8\d min", run("lock", "list").out)
    other.admin.release_lock(queue, leased["lock_id"])
    assert "lease" not in run("lock", "list").out


def test_a_table_shows_numbers_of_other_commands_without_separators(
    run: Command, other: inorder.QueueManager, queue: str
) -> None:
    other.put_many(queue, [b"1"] * 1_002)
    with other.open(queue, browse=True) as handle:
        handle.browse_first(lock=True)
        locked = other.browse_and_lock(queue)
        assert locked.lock_id > 999
        assert {str(locked.lock_id), "1,001", str(os.getpid())} <= set(run("lock", "list").out.split())


def test_claims_are_listed_finished_and_released(run: Command, other: inorder.QueueManager, queue: str) -> None:
    assert run("claim", "list").err == "no application has read in claims\n"
    other.put_many(queue, [b"1", b"2", b"3"])
    with other.open(queue, input="shared") as handle:
        reader = ClaimReader(handle, "copy")
        reader.claim(reader.begin().settled, most=2)
        record = run("claim", "list", "--json").records[0]
        assert (record["application"], record["claim"], record["messages"], record["settled"]) == ("copy", 1, 2, 0)
        assert "copy" in run("claim", "list").out
        assert "--yes" in run("claim", "release", queue, "copy").err
        other.create_queue("ALIAS", type="alias", base_queue=queue)
        assert "--yes" in run("claim", "release", "ALIAS", "copy").err, "asked by whatever name"
        assert run("claim", "release", queue, "copy", "--yes", "--json").records[0]["released"] == 2
        again = ClaimReader(handle, "copy")
        claim = again.claim(again.begin().settled, most=2)
        assert claim is not None
        assert run("claim", "finish", queue, "copy").status == 2, "with which note?"
        assert run("claim", "finish", queue, "copy", "--upto", str(claim.number)).out == (
            "confirmed 2 messages of copy on ORDERS\n"
        )
    assert [message.body for message in other.browse(queue)] == [b"3"]


def test_names_of_units_and_users_complete(run: Command, other: inorder.QueueManager, queue: str, store: Path) -> None:
    other.put(queue, b"1", syncpoint=True)
    other.prepare("monday")
    context = click.Context(click.Command("x"))
    context.params["store"] = store
    assert unit_names(context, click.Argument(["unit"]), "prep") == ["prepared:monday"]
    assert unit_names(context, click.Argument(["unit"]), "x") == []
    other.accounts.create_user("alice")
    other.accounts.create_user("bob")
    assert user_names(context, click.Argument(["name"]), "a") == ["alice"]
    assert main(["unit", "list"]) == 0


def test_connections_are_listed_with_the_queues_they_have_open(
    run: Command, other: inorder.QueueManager, queue: str
) -> None:
    other.create_queue("NOTES")
    writer = other.connect(program="writer")
    with other.open(queue, input="exclusive"), writer.open("NOTES", output=True, browse=True):
        first, second = run("connection", "list", "--json").records
        found = (first["connection"], first["program"], first["process"])
        assert found == (other.internals.owner, "worker", os.getpid())
        assert first["opened"] == [
            {"queue": queue, "name": queue, "input": "exclusive", "output": False, "co_op": False}
        ]
        assert [one["output"] for one in second["opened"]] == [True]
        told = run("connection", "list").out
        assert f"{queue} (get exclusive)" in told
        assert "NOTES (put)" in told
        assert [one["program"] for one in run("connection", "list", "NOTES", "--json").records] == ["writer"]
    assert run("connection", "list", queue).err == "no other program is connected\n"
    assert "NONE" in run("connection", "list", "NONE").err
