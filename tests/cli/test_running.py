"""What all commands share: help with examples, stores that cannot be opened, errors as one line, exit status."""

from __future__ import annotations

import json
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.cli.conftest import Command

import inorder
from inorder.cli.app import app
from inorder.cli.running import Command as WithExample
from inorder.cli.running import completions, record_of_error, status_of

WITHOUT_STORE = ("demo", "scenarios")


def commands(group: click.Group = app, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that does something, with the words that call it."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


ALL = dict(commands())


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_the_help_ends_with_an_example_that_can_be_given(run: Command, path: tuple[str, ...]) -> None:
    ended = run(*path, "--help")
    command = ALL[path]
    assert isinstance(command, WithExample)
    assert ended.status == 0
    assert " ".join(ended.out.rsplit("Example:", 1)[1].split()) == command.example
    program, *words = shlex.split(command.example)
    assert (program, tuple(words[: len(path)])) == ("inorder", path)
    command.make_context(path[-1], words[len(path) :])


@pytest.mark.parametrize("path", [path for path in ALL if path[0] not in WITHOUT_STORE], ids=" ".join)
def test_every_command_tells_machines_too(path: tuple[str, ...]) -> None:
    assert "as_json" in {parameter.name for parameter in ALL[path].params}


def test_the_help_says_which_commands_do_not(run: Command) -> None:
    assert f"Every command but {' and '.join(WITHOUT_STORE)} takes" in " ".join(run("--help").out.split())


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_option_says_what_it_is(path: tuple[str, ...]) -> None:
    options = [one for one in ALL[path].params if isinstance(one, click.Option)]
    silent = [one.name for one in options if not (one.help or one.metavar or isinstance(one.type, click.Choice))]
    assert not silent, f"give them a help text: {silent}"


def test_the_version_can_be_asked(run: Command) -> None:
    assert run("--version").out == f"inorder {inorder.__version__}\n"


def test_no_command_shows_the_help(run: Command) -> None:
    ended = run()
    assert (ended.status, "Commands:" in ended.err) == (2, True)


def test_a_command_that_is_not_there_is_answered_with_the_nearest(run: Command) -> None:
    ended = run("quue", "list")
    assert ended.status == 2
    assert "Did you mean 'queue'?" in ended.err


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


def test_another_programs_database_is_foreign_too(run: Command, store: Path) -> None:
    with sqlite3.connect(store) as other:
        other.execute("CREATE TABLE t (a)")
    other.close()
    ended = run("queue", "list")
    assert ended.status == 3
    assert "9011" in one_line(ended.err) or "STORE_FOREIGN" in ended.err


def test_a_newer_store_is_told_as_such(run: Command, queue: str, store: Path) -> None:
    with sqlite3.connect(store) as other:
        other.execute("PRAGMA user_version = 99")
    other.close()
    ended = run("queue", "list")
    assert ended.status == 3
    assert "newer release" in one_line(ended.err)


def test_a_folder_is_no_store(run: Command, tmp_path: Path) -> None:
    ended = run("queue", "list", "--store", str(tmp_path))
    assert ended.status == 3
    assert "directory" in one_line(ended.err)


def test_an_unknown_queue_is_answered_with_the_nearest_names(run: Command, queue: str) -> None:
    for command in (("put", "ORDRES", "x"), ("get", "ORDRES"), ("queue", "show", "ORDRES"), ("move", "ORDRES", queue)):
        ended = run(*command)
        assert ended.status == 2
        assert "did you mean ORDERS?" in one_line(ended.err)


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
        (inorder.StoreForeign("not ours", path=Path("x"), seen=b"\x01", far=float("inf")), 3),
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


def test_the_commands_packages_are_not_loaded_by_the_library() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, inorder; print('click' in sys.modules, 'rich' in sys.modules)"],
        capture_output=True, text=True, timeout=240, check=True,
    )  # fmt: skip
    assert loaded.stdout.split() == ["False", "False"]


def test_completion_says_nothing_of_a_store_that_cannot_be_looked_at(
    queue: str, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    context = app.make_context("inorder", ["queue", "list", "--store", str(store)])
    context.params["store"] = Path("x" * 300)
    assert completions(context, lambda qm: [one.name for one in qm.queues()], "") == []
    assert capsys.readouterr() == ("", "")


def test_seconds_that_are_none_are_told_with_what_is_allowed(run: Command, queue: str) -> None:
    assert "'soon' is neither a number of seconds nor 'forever'." in run("get", queue, "--wait", "soon").err
    assert "'soon' is neither a number of seconds nor 'none'." in run("put", queue, "x", "--expiry", "soon").err


def test_the_usage_may_take_several_lines(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    first, second, complaint = run("claim", "release").err.splitlines()
    assert (first, second.strip()) == ("Usage: inorder claim release [OPTIONS] QUEUE", "APPLICATION")
    assert "Missing argument 'QUEUE'" in complaint
