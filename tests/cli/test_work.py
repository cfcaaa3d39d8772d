"""`inorder work` before it works: its list, and refused calls. tests/work/test_started_processes.py starts it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Command
from tests.cli.test_json import keys_below
from tests.helpers.support import LIMIT_SECONDS

import inorder
from inorder.formats.json_lines import when
from inorder.work import Tasks

TASKS = '''
from inorder.work import Backoff, Tasks

tasks, empty, three = Tasks(), Tasks(), 3

@tasks.task("ORDERS", group="list", attempts=7, timeout=30, threads=2, backoff=Backoff(first=3))
def pack(messages):
    """Packs."""
'''

SCHEDULES = """
from inorder.work import Tasks

tasks = Tasks()

@tasks.periodic("30 2 * * *", queue="ORDERS", name="nightly", zone="Europe/Berlin", missed="all")
def nightly(due):
    return due.isoformat().encode()
"""


@pytest.fixture
def module(store: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module in the current folder; another module, `lacking`, cannot be imported."""
    (store.parent / "packing.py").write_text(TASKS)
    (store.parent / "lacking.py").write_text("import nowhere_at_all\n")
    monkeypatch.syspath_prepend(str(store.parent))
    for name in ("packing", "lacking"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return "packing"


def test_the_list_shows_registered_tasks_and_what_their_queue_determines(run: Command, queue: str, module: str) -> None:
    told = run("work", module, "--list", "--json")
    assert told.status == 0, told.err
    assert told.records == [
        {
            "task": "packing.pack",
            "queue": "ORDERS",
            "takes": "groups",
            "read_order": "relaxed",
            "attempts": 7,
            "backoff": "3 s, x 2, up to 600 s",
            "timeout": 30,
            "threads": 2,
            "dead_letters": "SYSTEM.DEAD.LETTER.QUEUE",
        }
    ]
    assert told.records[0].keys() == keys_below("A registered task")
    run("queue", "create", "ASIDE")
    run("queue", "alter", "ORDERS", "--backout-requeue-queue", "ASIDE")
    assert run("work", module, "--list", "--json").records[0]["dead_letters"] == "ASIDE"
    run("queue", "alter", "ORDERS", "--read-order", "required")
    assert run("work", module, "--list", "--json").records[0]["dead_letters"] == "none: it stops"


def test_the_list_shows_schedules_with_their_state(
    run: Command, queue: str, store: Path, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cronsim", reason="without inorder[work] there are no schedules")
    (store.parent / "timing.py").write_text(SCHEDULES)
    monkeypatch.delitem(sys.modules, "timing", raising=False)
    told = run("work", "timing", "--list", "--json")
    assert told.status == 0, told.err
    (record,) = told.records
    assert record.keys() == keys_below("A registered schedule")
    assert record["next"].endswith(":30:00.000000Z")
    del record["next"]
    assert record == {
        "schedule": "nightly",
        "queue": "ORDERS",
        "cron": "30 2 * * *",
        "zone": "Europe/Berlin",
        "missed": "all",
        "last": None,
        "overdue": False,
    }
    assert "30 2 * * *" in run("work", "timing", "--list").out
    run("queue", "delete", "ORDERS", "--yes")
    told = run("work", "timing")
    assert told.status == 2
    assert "ORDERS" in told.err
    assert told.err.startswith("inorder: schedule nightly: there is no queue 'ORDERS'")


@pytest.mark.parametrize("address", ["nine", "127.0.0.1:0", "127.0.0.1:70000", "192.0.2.1:9464"])
def test_an_invalid_address_for_metrics_is_refused(run: Command, queue: str, module: str, address: str) -> None:
    pytest.importorskip("prometheus_client")
    told = run("work", module, "--metrics", address)
    assert told.status == 2
    assert "metrics" in told.err
    assert address.rpartition(":")[2] in told.err


def test_a_metrics_port_in_use_is_reported_without_the_usage(run: Command, queue: str, module: str) -> None:
    pytest.importorskip("prometheus_client")
    with socket.create_server(("127.0.0.1", 0)) as other:
        place = f"127.0.0.1:{other.getsockname()[1]}"
        told = run("work", module, "--metrics", place)
    assert told.status == 2
    assert told.err.startswith(f"inorder: the metrics server cannot listen on {place}: Address already in use")


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("packing --grace nan", "--grace"),
        ("packing --grace 86401", "--grace"),
        ("packing", "ORDERS"),
        ("packing --list", "inorder: task packing.pack: there is no queue 'ORDERS'"),
        ("packing --restart nightly", "--restart: MODULE has no schedules."),
        ("status", "work [OPTIONS] MODULE[:OBJECT] | status ID"),
        ("status", "MODULE status: ID is missing; and there is no module status"),
        ("lacking", "MODULE lacking cannot be imported: ModuleNotFoundError: No module named 'nowhere_at_all'."),
        ("nowhere_at_all", "no module nowhere_at_all"),
        ("packing:jobs", "packing has no Tasks named jobs; it has tasks, empty"),
        ("packing:empty", "registers no tasks"),
        ("packing --queue OTHER", "--queue is for status ID"),
        (f"status {'1' * 48} --threads 2 --burst", "not --threads, --burst"),
        (":tasks", "MODULE or MODULE:OBJECT"),
        ("packing.py", "must be a module, not a file: use packing."),
    ],
)
def test_invalid_arguments_of_work_are_refused(run: Command, module: str, named: str, said: str) -> None:
    run("queue", "create", "OTHER")
    told = run("work", *named.split())
    assert told.status == 2
    assert said in told.err.replace("\n", " ")


def test_the_traceback_of_a_failing_module_begins_at_its_own_line(
    run: Command, queue: str, store: Path, module: str
) -> None:
    (store.parent / "failing.py").write_text("def half():\n    return 1 / 0\n\n\nhalf()\n")
    told = run("work", "failing")
    assert told.status == 2
    first, place, *_, last = told.err.splitlines()
    assert first == "Traceback (most recent call last):"
    assert "failing.py" in place
    assert "line 5" in place
    assert "MODULE failing cannot be imported: ZeroDivisionError: division by zero." in last
    assert "Usage" not in told.err
    assert "--help" not in told.err


def test_a_syntax_error_in_a_module_is_shown_with_its_line(run: Command, queue: str, store: Path, module: str) -> None:
    (store.parent / "wrong.py").write_text("def half(:\n")
    told = run("work", "wrong", "--json")
    assert (told.status, told.err.count("\n")) == (2, 1)
    assert "SyntaxError: invalid syntax (wrong.py, line 1)" in json.loads(told.err)["error"]
    told = run("work", "wrong")
    assert told.err.count("File ") == 1, told.err
    assert "def half(:" in told.err


def test_work_ends_quietly_when_its_output_is_closed(run: Command, queue: str, store: Path) -> None:
    (store.parent / "reading.py").write_text(
        'from inorder.work import Tasks\n\ntasks = Tasks()\n\n@tasks.task("ORDERS")\ndef see(message): pass\n'
    )
    command = [sys.executable, "-m", "inorder", "work", "reading", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as working:
        assert working.stdout is not None
        assert json.loads(working.stdout.readline())["event"] == "started"
        working.stdout.close()
        run("put", queue, "1")
        _, errors = working.communicate(timeout=LIMIT_SECONDS)
    assert (working.returncode, errors) == (1, b"")


def test_work_status_shows_the_outcome_of_a_job(run: Command, queue: str, module: str, store: Path) -> None:
    tasks = Tasks()

    @tasks.task(name="shop.pack", keep=60, dead_on=ValueError)
    def pack(order: int) -> dict[str, int]:
        if order < 0:
            raise ValueError("no such order")
        return {"packed": order}

    @tasks.task(name="shop.send", keep=60)
    def send(qm: inorder.QueueManager) -> None:
        qm.commit()
        raise OSError("sent, but")

    with inorder.connect(store) as qm:
        good, bad, later = pack.put(17, qm=qm), pack.put(-1, qm=qm), pack.put(18, qm=qm, delay=60)
        sent = send.put(qm=qm)
        tasks.drain(qm)
        times = [job.status().since for job in (good, bad, later)]
    told = [run("work", "status", job.id, "--json").records[0] for job in (good, bad, later)]
    assert [one["since"] for one in told] == [when(at or 0) for at in times]
    assert told[0] == {
        "job": good.id,
        "queue": "TASKS",
        "state": "done",
        "task": "shop.pack",
        "since": told[0]["since"],
        "program": "",
        "process": None,
        "result": {"packed": 17},
        "error": None,
        "attempts": [],
    }
    assert (told[1]["state"], told[1]["error"]) == ("dead", {"type": "ValueError", "text": "no such order"})
    assert (told[2]["state"], told[2]["task"]) == ("delayed", "shop.pack")
    assert f'shop.pack done, {told[0]["since"]}, result {{"packed": 17}}' in run("work", "status", good.id).out
    state, attempt = run("work", "status", bad.id).out.splitlines()
    assert (state[:14], attempt[:11]) == ("shop.pack dead", "attempt 1, ")
    state, error = run("work", "status", sent.id).out.splitlines()
    assert (state[:14], error, "result" in state) == ("shop.send done", "OSError: sent, but", False)
    assert f"shop.pack delayed, until {told[2]['since']}\n" == run("work", "status", later.id).out
    assert run("work", "status", "01" * 24).status == 1
    for words, said in (
        ("status 17", "ID: message_id must be the id of a message"),
        ("packing more", "extra argument"),
    ):
        assert said in run("work", *words.split()).err.replace("\n", " ")


def test_work_uses_the_store_of_its_tasks_if_no_other_is_named(
    run: Command, queue: str, store: Path, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (store.parent / "packing.py").write_text(TASKS.replace("Tasks()", f"Tasks({store.name!r})", 1))
    monkeypatch.delenv("INORDER_STORE")
    assert [one["queue"] for one in run("work", module, "--list", "--json").records] == ["ORDERS"]
    assert "there is no store at other.db" in run("work", module, "--list", "--store", "other.db").err
    (store.parent / "storeless.py").write_text(TASKS)
    monkeypatch.delitem(sys.modules, "storeless", raising=False)
    assert "No store was named" in run("work", "storeless", "--list").err
