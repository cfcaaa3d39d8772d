"""What all commands share: stores that cannot be opened, errors as one line, exit status, completion."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Command

import inorder
from inorder.cli.running import record_of_error, status_of


def test_the_version_can_be_asked(run: Command) -> None:
    assert run("--version").out == f"inorder {inorder.__version__}\n"


def test_without_a_store_the_command_says_how_to_name_one(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INORDER_STORE")
    ended = run("queue", "list")
    assert ended.status == 2
    assert "--store PATH, or set INORDER_STORE" in ended.err


def one_line(text: str) -> str:
    assert text.count("\n") == 1, text
    assert "Traceback" not in text
    return text


def test_a_missing_store_is_not_made_by_looking(run: Command, store: Path) -> None:
    for path in (store, store.parent / "no folder" / "x.db"):
        ended = run("queue", "list", "--store", str(path))
        assert (ended.status, path.exists()) == (3, False)
        assert "there is no store at" in one_line(ended.err)
    store.touch()
    assert run("queue", "list").status == 3
    assert store.stat().st_size == 0


@pytest.mark.parametrize("name", ["\udcff.db", "\udcff/x.db"])
def test_a_name_that_is_no_text_is_refused_in_a_line(run: Command, queue: str, store: Path, name: str) -> None:
    (store.parent / name).parent.mkdir(exist_ok=True)
    ended = run("queue", "create", "Q", "--store", name)
    assert (ended.status, (store.parent / name).exists()) == (2, False)
    assert "store must be the path of a file, in UTF-8" in one_line(ended.err)
    assert run("backup", name).status == 2


def test_a_foreign_file_is_left_as_it_was(run: Command, store: Path) -> None:
    store.write_text("not a store, and long enough to be looked at" * 10)
    before = store.read_bytes()
    ended = run("queue", "create", "Q")
    assert (ended.status, store.read_bytes()) == (3, before)
    assert str(store) in one_line(ended.err)
    assert list(store.parent.iterdir()) == [store]


def test_an_error_is_one_json_object_for_machines(run: Command, queue: str) -> None:
    ended = run("get", "ORDRES", "--json")
    error = json.loads(ended.err)
    assert error == {
        "error": "there is no queue 'ORDRES'; did you mean ORDERS?",
        "class": "UnknownQueue",
        "reason": 2085,
        "reason_name": "UNKNOWN_OBJECT_NAME",
        "exit_status": 2,
        "data": {"queue": "ORDRES", "nearest": ["ORDERS"]},
    }
    usage = json.loads(run("get", "--json").err)
    assert (usage["class"], usage["exit_status"]) == ("MissingParameter", 2)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (inorder.NoMessageAvailable("none"), 1),
        (inorder.QueueFull("full"), 1),
        (inorder.UnknownQueue("which"), 2),
        (inorder.errors.StoreForeign("not ours", path=Path("x"), seen=b"\x01", far=float("inf")), 3),
    ],
)
def test_the_exit_status_says_whose_fault_it_is(error: inorder.InorderError, status: int) -> None:
    assert status_of(error) == record_of_error(error)["exit_status"] == status
    json.dumps(record_of_error(error), allow_nan=False)


def test_names_of_queues_complete_in_a_shell(run: Command, queue: str, store: Path) -> None:
    patient = "from inorder.cli import running; running.COMPLETION_SECONDS = 60.0; "  # an opening on a busy machine
    ended = subprocess.run(
        [sys.executable, "-c", patient + "from inorder.cli.app import app; app(prog_name='inorder')"],
        env={"_INORDER_COMPLETE": "bash_complete", "COMP_WORDS": "inorder get OR", "COMP_CWORD": "2",
             "INORDER_STORE": str(store), "PYTHONPATH": ":".join(sys.path)},
        capture_output=True, text=True, timeout=240, check=True,
    )  # fmt: skip
    assert ended.stdout.split() == ["plain,ORDERS"]
