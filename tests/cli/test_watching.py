"""`inorder watch`: all queues again and again, their rates, and the calls that wait."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.cli.conftest import Command
from tests.helpers.support import waiting

import inorder
from inorder import QueueManager, Reason, Report
from inorder.cli import watching
from inorder.cli.watching import QueuesSnapshot, Rates, rates
from inorder.client.inspection import QueueView
from inorder.formats.json_lines import when


@pytest.fixture
def qm(store: Path, queue: str) -> Iterator[QueueManager]:
    with inorder.connect(store, program="loader") as manager:
        manager.create_queue("EMPTY")
        yield manager


def view(arrived: int, depth: int, created_at: float = 1.0) -> QueueView:
    none = ("puts", "gets", "locked", "delayed", "open_input_count", "open_output_count", "waiters", "dropped")
    counts: dict[str, Any] = dict.fromkeys(none, 0) | {"depth": depth, "arrived": arrived, "numbered": arrived}
    return QueueView(name="Q", created_at=created_at, oldest_put_at=None, **counts)


def look(tick: float, *views: QueueView) -> QueuesSnapshot:
    return QueuesSnapshot(1000.0 + tick, tick, views, [])


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (None, look(0.0, view(5, 5)), Rates()),
        (look(0.0, view(5, 5)), look(2.0, view(25, 5)), Rates(10.0, 10.0)),
        (look(0.0, view(5, 5)), look(2.0, view(25, 25)), Rates(10.0, 0.0)),
        (look(0.0, view(5, 4)), look(0.5, view(5, 5)), Rates(0.0, -2.0)),
        (look(0.0, view(5, 5, 1.0)), look(1.0, view(3, 3, 2.0)), Rates()),
    ],
    ids=["first look", "in and out", "in", "backed out", "another queue of the name"],
)
def test_rates_are_computed_from_two_snapshots(
    before: QueuesSnapshot | None, now: QueuesSnapshot, expected: Rates
) -> None:
    [(_, found)] = rates(before, now)
    assert found == expected


def test_watch_counts_held_messages(run: Command, qm: QueueManager) -> None:
    qm.put_many("ORDERS", [b"x"] * 5)
    qm.put("ORDERS", b"later", delay=60)
    qm.put("ORDERS", b"new", syncpoint=True)
    qm.get_many("ORDERS", 2, syncpoint=True)
    qm.browse_and_lock("ORDERS")
    ended = run("watch", "--count", "1")
    assert (ended.status, ended.err) == (0, "")
    shown = {words[0]: words[1:] for words in map(str.split, ended.out.splitlines()) if words}
    assert shown["EMPTY"] == ["0", "0", "0", "0", "0", "-", "-", "0"]
    assert shown["ORDERS"][:5] == ["5", "1", "2", "3", "1"]
    assert shown["ORDERS"][-4:] == ["s", "-", "-", "0"]
    assert "\x1b" not in ended.out


def test_json_output_has_each_queue_at_each_interval(
    run: Command, qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(watching, "pause", interrupted)
        ended = run("watch")
        assert (ended.status, ended.err) == (130, "\ninterrupted; no messages are held\n")
    monkeypatch.setattr(watching, "pause", lambda seconds: qm.put_many("ORDERS", [b"x"] * 4))
    records = run("watch", "--count", "3", "--json").records
    assert [(one["queue"], one["depth"], one["arrived"]) for one in records] == [
        (name, depth, depth) for looks in (0, 4, 8) for name, depth in (("EMPTY", 0), ("ORDERS", looks))
    ]
    assert [one["puts_per_second"] is None for one in records] == [True, True, False, False, False, False]
    assert records[3]["puts_per_second"] > 0
    assert records[3]["gets_per_second"] == 0
    assert records[0]["at"].endswith("Z")


def test_json_output_counts_reports_dropped_about_messages_of_deleted_queues(run: Command, qm: QueueManager) -> None:
    qm.create_queue("GONE")
    qm.put("GONE", b"1", report=Report.COA, reply_to_queue="NOWHERE")
    qm.delete_queue("GONE", purge=True)
    *_, told = run("watch", "--count", "1", "--json").records
    (dropped,) = qm.inspect.dropped()
    assert told.pop("at").endswith("Z")
    assert told == {
        "queue": None,
        "dropped": 1,
        "dropped_reason": Reason.UNKNOWN_OBJECT_NAME,
        "dropped_at": when(dropped.last_at),
    }
    assert [one["queue"] for one in run("watch", "ORDERS", "--count", "1", "--json").records] == ["ORDERS"]


def test_strict_readers_are_shown_with_what_they_wait_for(run: Command, store: Path, qm: QueueManager) -> None:
    qm.put("ORDERS", b"1", syncpoint=True)
    qm.put("ORDERS", b"2", syncpoint=False)
    strict, idle = (qm.connect(program=name) for name in ("strict", "idle"))
    calls = [waiting(strict, lambda: strict.get("ORDERS", wait=600, read_order="strict"))]
    calls.append(waiting(idle, lambda: idle.get("EMPTY", wait=600)))
    out = run("watch", "--count", "1").out
    told = run("watch", "ORDERS", "--count", "1", "--json").records[0]
    qm.put("EMPTY", b"", syncpoint=False)
    qm.commit()
    assert {call.result().body for call in calls} == {b"1", b""}
    assert "place 1: a put that is not committed, by loader, for " in out
    assert "; messages wait behind it" in out
    assert "a message" in next(line for line in out.splitlines() if line.startswith("idle"))
    [wait] = told["waits"]
    found = (wait["program"], wait["withheld"], wait["pending"]["kind"], wait["pending"]["by"])
    assert found == ("strict", True, "in", "loader")


def test_queues_can_be_chosen_by_name_alias_and_pattern(run: Command, qm: QueueManager) -> None:
    qm.create_queue("ALIAS", type="alias", base_queue="ORDERS")
    qm.create_queue("MODEL", type="model")

    def told(*names: str) -> list[str]:
        return [json.loads(line)["queue"] for line in run("watch", *names, "--count", "1", "--json").out.splitlines()]

    assert told() == ["EMPTY", "ORDERS"]
    assert told("ORDERS") == told("ALIAS") == told("ORD*") == ["ORDERS"]
    assert told("EMPTY", "ORDER?") == ["EMPTY", "ORDERS"]
    unknown = run("watch", "ORDRES", "--count", "1")
    assert (unknown.status, "did you mean ORDERS?" in unknown.err) == (2, True)
    assert run("watch", "MODEL").status == 2
    assert "no queues" in run("watch", "NONE*", "--count", "1").out


@pytest.mark.parametrize("width", [80, 140])
def test_each_queue_fits_on_one_line_of_a_terminal(width: int) -> None:
    console = Console(force_terminal=True, width=width, color_system=None)
    many = view(12_345_678, 1_234_567)
    with console.capture() as shown:
        console.print(watching._picture(look(0.0, view(1, 1)), look(1.0, many), width))
    lines = shown.get().splitlines()
    assert len(next(line for line in lines if line.startswith("Q")).split()) == 9
    assert all(len(line) <= width for line in lines)
    assert any("1,234,567" in line for line in lines)
