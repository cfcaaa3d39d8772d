"""`inorder work` before it works: what it lists, and what it refuses; tests/test_work_processes.py has it at work."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Command
from tests.cli.test_json import keys_below

TASKS = '''
from inorder.work import Backoff, Tasks

tasks, empty, three = Tasks(), Tasks(), 3

@tasks.task("ORDERS", group="list", attempts=7, timeout=30, threads=2, backoff=Backoff(first=3))
def pack(messages):
    """Packs."""
'''


@pytest.fixture
def module(store: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module in the current folder."""
    (store.parent / "packing.py").write_text(TASKS)
    (store.parent / "lacking.py").write_text("import nowhere_at_all\n")
    monkeypatch.syspath_prepend(str(store.parent))
    for name in ("packing", "lacking"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return "packing"


def test_the_list_shows_what_is_registered_and_what_its_queue_adds(run: Command, queue: str, module: str) -> None:
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
            "dead_letters": "no queue: it stops",
        }
    ]
    assert told.records[0].keys() == keys_below("A registered task")
    run("queue", "create", "ASIDE")
    run("queue", "alter", "ORDERS", "--backout-requeue-queue", "ASIDE")
    assert run("work", module, "--list", "--json").records[0]["dead_letters"] == "ASIDE"
    run("queue", "alter", "ORDERS", "--read-order", "required")
    assert run("work", module, "--list", "--json").records[0]["dead_letters"] == "none: it stops"


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("nowhere_at_all", "no module nowhere_at_all"),
        ("packing:jobs", "packing has no Tasks named jobs; it has tasks, empty"),
        ("packing:three", "packing has no Tasks named three"),
        ("packing:empty", "nothing is registered there"),
        (":tasks", "MODULE or MODULE:OBJECT"),
    ],
)
def test_what_names_no_tasks_is_refused(run: Command, queue: str, module: str, named: str, said: str) -> None:
    told = run("work", named)
    assert told.status == 2
    assert said in told.err.replace("\n", " ")


def test_what_a_module_lacks_is_not_mistaken_for_the_module(run: Command, queue: str, module: str) -> None:
    with pytest.raises(ModuleNotFoundError, match="nowhere_at_all"):
        run("work", "lacking")


def test_a_queue_that_is_not_there_is_said_before_anything_starts(run: Command, store: Path, module: str) -> None:
    run("queue", "create", "OTHER")
    told = run("work", module)
    assert told.status == 2
    assert "ORDERS" in told.err
