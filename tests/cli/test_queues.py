"""`inorder queue`: definitions from the shell."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console
from tests.cli.conftest import Command
from tests.helpers.support import called

import inorder
from inorder import QueueManager
from inorder.cli import output
from inorder.model.attributes import QUEUE_ATTRIBUTES
from inorder.mq import channels


def test_creating_the_first_queue_creates_the_store(run: Command, store: Path) -> None:
    ended = run("queue", "create", "ORDERS", "--order", "commit", "--read-order", "strict", "--max-depth", "10")
    assert (ended.status, ended.out) == (0, "created local queue ORDERS\n")
    assert ended.err == f"made the store {store}: queue manager orders\n"
    with inorder.connect(store) as qm:
        made = qm.attributes("ORDERS")
    assert (made.order, made.read_order, made.max_depth) == ("commit", "strict", 10)


def test_an_alias_of_a_missing_queue_is_listed_and_shown_without_status(run: Command, queue: str) -> None:
    run("queue", "create", "A", "--type", "alias", "--base-queue", "NOT.THERE")
    listed = run("queue", "list", "--json")
    assert (listed.status, [(one["queue"], one["depth"]) for one in listed.records]) == (0, [("A", None), (queue, 0)])
    assert "NOT.THERE" in run("queue", "show", "A").out
    assert run("queue", "show", "A", "--json").records[0].keys() == {*QUEUE_ATTRIBUTES}


def test_an_unreachable_owner_of_a_queue_does_not_prevent_a_list(run: Command, queue: str, store: Path) -> None:
    with inorder.connect(store) as qm:
        channels.define_connection(qm, "THERE", "https://127.0.0.1:1")
        there = {"type": "remote", "mode": "synchronous", "remote_manager": "THERE", "connection": "THERE"}
        qm.create_queue("FAR", remote_queue="Q", **there)  # type: ignore[arg-type]
        qm.create_queue("FAR.TOO", type="alias", base_queue="FAR")
    listed = run("queue", "list", "FAR*", "--json")
    found = (listed.status, [(one["queue"], one["depth"]) for one in listed.records])
    assert found == (0, [("FAR", None), ("FAR.TOO", None)])
    assert "FAR" in run("queue", "show", "FAR.TOO").out


def test_altering_changes_only_the_named_attributes(run: Command, queue: str, store: Path) -> None:
    run("queue", "alter", queue, "--expiry", "60", "--description", "of today")
    with inorder.connect(store) as qm:
        before = qm.attributes(queue)
    assert run("queue", "alter", queue, "--expiry", "none", "--no-put-allowed").status == 0
    with inorder.connect(store) as qm:
        after = qm.attributes(queue)
    changed = {name for name in QUEUE_ATTRIBUTES if getattr(before, name) != getattr(after, name)}
    assert (changed, after.expiry, after.put_allowed) == ({"expiry", "put_allowed"}, None, False)


def test_every_attribute_has_an_option(run: Command) -> None:
    shown = run("queue", "create", "--help").out
    names = QUEUE_ATTRIBUTES.keys() - {"name", "type"}
    assert [name for name in names if f"--{name.replace('_', '-')}" not in shown] == []


def test_show_has_attributes_status_and_names_in_mq(run: Command, queue: str) -> None:
    shown = run("queue", "show", queue).out
    assert "MaxQDepth" in shown
    assert "current-depth" in shown
    assert "base-queue" not in shown, "an alias has it, a local queue has not"
    record = run("queue", "show", queue, "--json").records[0]
    assert record.keys() >= {*QUEUE_ATTRIBUTES, "current_depth", "created_at"}
    assert record["created_at"].endswith("Z")


def test_list_selects_queues_by_pattern(run: Command) -> None:
    for name in ("ORDERS.A", "ORDERS.B", "OTHER"):
        run("queue", "create", name)
    assert [one["queue"] for one in run("queue", "list", "ORDERS.*", "--json").records] == ["ORDERS.A", "ORDERS.B"]
    nothing = run("queue", "list", "X*")
    assert (nothing.status, nothing.out, nothing.err) == (0, "", "no queue matches 'X*'\n")


def test_irreversible_commands_need_confirmation(run: Command, queue: str) -> None:
    run("put", queue, "1")
    for command in (("queue", "clear", queue), ("queue", "delete", queue, "--purge")):
        ended = run(*command)
        assert (ended.status, "--yes" in ended.err) == (2, True), "there is no terminal to ask at"
    assert run("queue", "show", queue, "--json").records[0]["current_depth"] == 1


def test_a_queue_can_be_cleared_and_deleted(run: Command, queue: str) -> None:
    run("put", queue, "--lines", given=b"1\n2\n")
    assert run("queue", "delete", queue).status == 1, "it has messages"
    assert run("queue", "clear", queue, "--yes").out == "removed 2 messages from ORDERS\n"
    assert run("queue", "delete", queue).out == "deleted queue ORDERS\n"
    run("queue", "create", queue)
    run("put", queue, "1")
    assert run("queue", "delete", queue, "--purge", "--yes", "--json").records == [{"queue": queue, "done": "deleted"}]
    assert run("queue", "list", "--json").out == ""


def test_retry_makes_backed_out_messages_available_at_once(run: Command, queue: str, store: Path) -> None:
    with inorder.connect(store) as qm, qm.unit_of_work() as unit:
        qm.put(queue, b"1", syncpoint=False)
        origin, number = qm.put(queue, b"2", syncpoint=False).uid
        qm.get_many(queue, 2)
        unit.back_out(delay=600, error="no room")
    assert run("get", queue).status == 1
    retried = run("queue", "retry", queue, "--uid", f"{origin}:{number}")
    assert retried.out == "made 1 message of ORDERS available for the next attempt\n"
    assert run("get", queue, "--all").out == "2\n"
    assert run("queue", "retry", queue).out == "made 1 message of ORDERS available for the next attempt\n"
    assert run("queue", "retry", queue, "--json").records == [{"queue": queue, "done": "retried", "messages": 0}]
    assert run("get", queue).out == "1\n"


@pytest.mark.parametrize("group", [[], ["--group"]], ids=["alone", "group"])
def test_messages_for_another_queue_manager_are_put_to_a_transmission_queue(
    run: Command, store: Path, group: list[str]
) -> None:
    run("queue", "create", "TO.PARIS", "--usage", "transmission")
    remote = "ORDERS.PARIS --type remote --remote-queue ORDERS --remote-manager PARIS --transmission-queue TO.PARIS"
    assert run("queue", "create", *remote.split()).status == 0
    assert run("put", "ORDERS.PARIS", "one", *group).status == 0
    assert run("put", "OTHER", "two", "--manager", "TO.PARIS", *group).status == 0
    said = [record["transmission"] for record in run("browse", "TO.PARIS", "--json").records]
    assert said == [{"queue": "ORDERS", "manager": "PARIS"}, {"queue": "OTHER", "manager": "TO.PARIS"}]
    shown = run("queue", "show", "ORDERS.PARIS", "--json").records[0]
    assert (shown["remote_manager"], "delivery" in shown) == ("PARIS", False)
    assert "remote-manager" in run("queue", "show", "ORDERS.PARIS").out
    assert run("queue", "list", "--json").records[0]["depth"] is None
    assert run("put", "ORDERS", "three", "--manager", "ROME").status == 2
    assert run("get", "ORDERS.PARIS").status == 2


def test_a_long_list_is_laid_out_like_a_short_one(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    run("queue", "create", "ORDERS", "--description", "\u6f22 as wide as two")
    run("queue", "create", "Q", "--type", "model")
    run("put", "ORDERS", "x")
    laid_out = run("queue", "list").out
    monkeypatch.setattr(output, "LAID_OUT_MAX", 1)
    assert run("queue", "list").out == laid_out
    assert len(laid_out.splitlines()) == 4


@pytest.mark.parametrize("is_terminal", [False, True], ids=["pipe", "terminal"])
def test_a_row_of_a_long_list_costs_few_calls(is_terminal: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Laid out cell by cell, a row cost a thousand calls; both ways show the same."""
    answer = output.Output(as_json=False)
    answer.console = Console(file=io.StringIO(), force_terminal=is_terminal, width=80)
    rows = [{"queue": f"ORDERS.{number}", "depth": number} for number in range(2 * output.LAID_OUT_MAX)]
    calls = called(lambda: answer.listing(rows, {"queue": "queue", "depth": "depth"}, nothing=""))
    assert calls.total() < 20 * len(rows)
    assert capsys.readouterr().out.splitlines()[-1] == f"ORDERS.{len(rows) - 1}  {len(rows) - 1:,}"


def test_a_definition_is_read_without_a_check_of_every_attribute(qm: QueueManager) -> None:
    """There are more than thirty attributes, and a list reads those of all queues."""
    for number in range(100):
        qm.create_queue(f"ORDERS.{number}", max_depth=1000 + number)
    calls = called(qm.queues)
    assert calls["_read"] >= 100
    assert calls["check"] <= 3 * calls["_read"]
