"""Trouble outside of queues: closed streams, odd encodings, stores that are locked or missing."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Command, told

import inorder
from inorder.cli import main, running
from inorder.cli.output import Output
from inorder.cli.running import record_of_error, status_of


def by_itself(*arguments: str, **streams: Any) -> subprocess.CompletedProcess[str]:
    """Runs the command in a separate process, with these streams."""
    given: dict[str, Any] = {"stderr": subprocess.PIPE, "text": True} | streams
    return subprocess.run([sys.executable, "-m", "inorder", *arguments], check=False, **given)


def test_a_get_with_a_closed_standard_output_takes_no_message(run: Command, queue: str) -> None:
    run("put", queue, "one")
    ended = by_itself("get", queue, preexec_fn=lambda: os.close(1))
    assert (ended.returncode, told(ended.stderr).count("\n")) == (3, 1), ended.stderr
    assert run("get", queue).out == "one\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("put", "ORDERS"),
        ("mqsc",),
        ("queue", "clear", "ORDERS"),
        ("user", "add", "alice", "--password-stdin"),
        ("login", "https://orders.example:9443"),
    ],
    ids=" ".join,
)
def test_a_closed_standard_input_is_a_usage_error(run: Command, queue: str, arguments: tuple[str, ...]) -> None:
    run("put", queue, "one")
    ended = by_itself(*arguments, preexec_fn=lambda: os.close(0))
    assert (ended.returncode, "Traceback" in ended.stderr) == (2, False), ended.stderr


@pytest.mark.usefixtures("queue")
def test_a_password_is_not_asked_for_without_a_terminal() -> None:
    arguments = ("user", "add", "alice", "--password")
    ended = by_itself(*arguments, stdin=subprocess.DEVNULL, start_new_session=True)
    assert (ended.returncode, told(ended.stderr).count("\n")) == (2, 2), ended.stderr
    assert "inorder: Give --password-stdin, because there is no terminal" in ended.stderr


def test_characters_that_an_encoding_lacks_are_written_as_escapes(run: Command, queue: str) -> None:
    run("put", queue, "gr\u00fcn \u6f22")
    plain = by_itself("browse", queue, stdout=subprocess.PIPE, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert (plain.returncode, r"gr\xfcn \u6f22" in plain.stdout) == (0, True), plain.stderr


def test_json_output_is_escaped_in_an_encoding_other_than_utf_8(queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="latin-1"))
    assert main(["queue", "create", "GREEN", "--description", "gr\u00fcn", "--json"]) == 0
    assert main(["queue", "list", "GREEN", "--json"]) == 0
    assert rb"gr\u00fcn" in written.getvalue()


LOCKS = """
import sqlite3, sys
other = sqlite3.connect(sys.argv[1], isolation_level=None)
other.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def locker(queue: str, store: Path) -> Iterator[subprocess.Popen[str]]:
    """Another program, which keeps the store locked until its standard input ends."""
    words = [sys.executable, "-c", LOCKS, str(store)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "locked\n"
        yield program


def test_a_locked_store_is_reported_in_one_line(
    run: Command, locker: object, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "PATIENCE_SECONDS", 0.01)
    before = signal.getsignal(signal.SIGALRM)
    ended = run("queue", "list")
    assert ended.err.startswith(f"inorder: {store} could not be opened within")
    assert (ended.status, ended.err.count("\n")) == (3, 1)
    assert (signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)) == (before, (0.0, 0.0))


def test_a_store_that_is_locked_for_a_while_is_waited_for(
    run: Command, locker: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = []

    def told(output: Output, text: str) -> None:
        notes.append(text)
        assert locker.stdin is not None
        locker.stdin.close()

    monkeypatch.setattr(running, "TOLD_AFTER_SECONDS", 0.01)
    monkeypatch.setattr(Output, "note", told)
    assert run("queue", "list").status == 0
    assert [note.endswith("after a crash; press Ctrl-C to stop") for note in notes] == [True]


@pytest.mark.usefixtures("locker")
def test_completion_does_not_wait_for_a_locked_store() -> None:
    asked = {"_INORDER_COMPLETE": "bash_complete", "COMP_WORDS": "inorder browse ", "COMP_CWORD": "2"}
    ended = by_itself(stdout=subprocess.PIPE, env=os.environ | asked, timeout=240)
    assert (ended.returncode, ended.stdout.strip(), told(ended.stderr)) == (0, "", "")


def test_a_message_got_into_a_file_is_on_disk_before_it_leaves_the_queue(
    run: Command, queue: str, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("put", queue, "one")
    synced: list[str] = []
    there: list[str] = []
    sync = os.fsync

    def fsync(descriptor: int) -> None:
        sync(descriptor)
        if os.fstat(descriptor).st_ino == Path("bodies").stat().st_ino:
            synced.append(Path("bodies").read_text())
            with inorder.connect(store) as other:
                there.extend(sight.state for sight in other.inspect.look(queue))

    monkeypatch.setattr(os, "fsync", fsync)
    assert run("get", queue, "--output", "bodies").status == 0
    assert (synced, there) == (["one\n"], ["got"])


LONG = "N" * 1_000_000


@pytest.mark.parametrize(
    "path",
    ["loop", "loop/orders.db", "n" * 300, "n" * 250, LONG, ".", "pipe"],
    ids=lambda path: f"{path[:15]} of {len(path)}",
)
def test_an_impossible_path_of_a_store_is_a_store_error(run: Command, tmp_path: Path, path: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("text")
    os.mkfifo(tmp_path / "pipe")
    commands = ["queue list", "queue create Q", "put Q --file file", "get Q --output out", "check", "backup copy.db"]
    for command in (*commands, "copy A B", "pipeline drain Q archive"):
        ended = run(*command.split(), "--store", path)
        assert (ended.status, "Traceback" in ended.err) == (3, False), (command, ended.err[:500])
        assert len(ended.err) < 5_000


@pytest.mark.parametrize(
    ("arguments", "given", "status"),
    [
        (("put", LONG, "body"), b"", 2),
        (("queue", "create", "Q", "--max-depth", "1" * 5_000), b"", 2),
        (("get", "ORDERS", "--wait", "1" * 5_000), b"", 2),
        (("get", "ORDERS", "--message-id", ""), b"", 2),
        (("get", "ORDERS", "--output", LONG), b"", 3),
        (("put", "ORDERS", "--expiry", LONG), b"", 2),
        (("backup", LONG), b"", 3),
        (("mqsc", "-"), b"ALTER QLOCAL(ORDERS) MAXDEPTH(%s)\n" % (b"1" * 5_000), 2),
        (("mqsc", "-"), f"ALTER QLOCAL(ORDERS) MAXDEPTH('{LONG}')\n".encode(), 2),
        (("copy", "ORDERS", "ORDERS", "--to-store", "loop"), b"", 3),
        ((LONG,), b"", 2),
        (("put", "ORDERS", "--from-json"), b'{"body": "x", "priority": %s}' % (b"1" * 5_000), 2),
        (("put", "ORDERS", "--from-json"), f'{{"body": "x", "message_id": "{LONG}"}}'.encode(), 2),
        (("put", "ORDERS", "--from-json"), f'{{"body": "x", "put_at": "{LONG}"}}'.encode(), 2),
        (("put", "ORDERS", "--from-json"), f'{{"body": "x", "{LONG}": 1}}'.encode(), 2),
        (("put", "ORDERS", "--from-json"), b'{"body": %s}' % (b"[" * 100_000 + b"]" * 100_000), 2),
    ],
    ids=lambda given: " ".join(one[:20] for one in given) if isinstance(given, tuple) else "",
)
def test_very_long_input_gets_a_short_error(
    run: Command, queue: str, tmp_path: Path, arguments: tuple[str, ...], given: bytes, status: int
) -> None:
    run("put", queue, "1")
    (tmp_path / "loop").symlink_to("loop")
    ended = run(*arguments, given=given)
    assert (ended.status, "Traceback" in ended.err) == (status, False), ended.err[:500]
    assert len(ended.err) < 5_000


# ---- stores that cannot be opened, errors as one line, exit status, completion


def test_the_version_is_printed(run: Command) -> None:
    assert run("--version").out == f"inorder {inorder.__version__}\n"


def test_without_a_store_the_command_says_how_to_name_one(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INORDER_STORE")
    ended = run("queue", "list")
    assert ended.status == 2
    assert "--store PATH, or set INORDER_STORE" in ended.err


def test_an_empty_name_of_a_store_does_not_stand_for_the_store_of_the_environment(run: Command, queue: str) -> None:
    for words in (("--store", "", "queue", "list"), ("queue", "list", "--store", "")):
        ended = run(*words)
        assert (ended.status, ended.out, "not ''" in ended.err) == (2, "", True), ended.err


def one_line(text: str) -> str:
    assert text.count("\n") == 1, text
    assert "Traceback" not in text
    return text


def test_listing_queues_does_not_create_a_missing_store(run: Command, store: Path) -> None:
    for path in (store, store.parent / "no folder" / "x.db"):
        ended = run("queue", "list", "--store", str(path))
        assert (ended.status, path.exists()) == (3, False)
        assert "there is no store at" in one_line(ended.err)
    store.touch()
    assert run("queue", "list").status == 3
    assert store.stat().st_size == 0


@pytest.mark.parametrize("name", ["\udcff.db", "\udcff/x.db"])
def test_a_path_that_is_not_utf_8_is_refused_in_one_line(run: Command, queue: str, store: Path, name: str) -> None:
    (store.parent / name).parent.mkdir(exist_ok=True)
    ended = run("queue", "create", "Q", "--store", name)
    assert (ended.status, (store.parent / name).exists()) == (2, False)
    assert "store must be the path of a file, in UTF-8" in one_line(ended.err)
    assert run("backup", name).status == 2


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
    patient = "from inorder.cli import running; running.COMPLETION_SECONDS = 60.0; "  # for a busy machine
    ended = subprocess.run(
        [sys.executable, "-c", patient + "from inorder.cli.app import app; app(prog_name='inorder')"],
        env={"_INORDER_COMPLETE": "bash_complete", "COMP_WORDS": "inorder get OR", "COMP_CWORD": "2",
             "INORDER_STORE": str(store), "PYTHONPATH": ":".join(sys.path)},
        capture_output=True, text=True, timeout=240, check=True,
    )  # fmt: skip
    assert ended.stdout.split() == ["plain,ORDERS"]
