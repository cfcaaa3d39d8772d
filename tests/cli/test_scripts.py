"""`inorder mqsc`: scripts from files and pipes, their answers for people and machines, and definitions as a script."""

from __future__ import annotations

import builtins
import io
import json
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Command

import inorder
from inorder.cli import main

SCRIPT = b"""\
* queues for orders
DEFINE QLOCAL(A) +
   MAXDEPTH(5)
DISPLAY QLOCAL(A) MAXDEPTH
"""


def test_a_script_is_echoed_with_its_lines_and_answered(run: Command, store: Path, tmp_path: Path) -> None:
    (tmp_path / "a.mqsc").write_bytes(SCRIPT)
    ended = run("mqsc", "a.mqsc")
    assert ended.out == (
        "     2 : DEFINE QLOCAL(A) +\n"
        "       :    MAXDEPTH(5)\n"
        "Queue A defined.\n"
        "     4 : DISPLAY QLOCAL(A) MAXDEPTH\n"
        "1 queue:\n"
        "   QUEUE(A)                                TYPE(QLOCAL)\n"
        "   MAXDEPTH(5)\n"
        "2 commands read: all done.\n"
    )
    assert (ended.status, ended.err) == (0, f"made the store {store}\n")


@pytest.mark.parametrize("argument", [(), ("-",)])
def test_a_script_comes_from_standard_input_too(run: Command, store: Path, argument: tuple[str, ...]) -> None:
    assert run("mqsc", *argument, given=b"\xef\xbb\xbfDEFINE QLOCAL(A)\r\nDEFINE QLOCAL('\xc3\x84')\r\n").status == 2
    with inorder.connect(store) as qm:
        assert [one.name for one in qm.queues()] == ["A"]


@pytest.mark.parametrize(
    ("script", "status"),
    [
        (b"DIS QMGR", 0),
        (b"", 0),
        (b"DEFINE QLOCAL(ORDERS)", 1),
        (b"DIS QLOCAL(NONE)", 2),
        (b"RUBBISH", 2),
        (b"RUBBISH\nDEFINE QLOCAL(ORDERS)", 2),
        (b"END\nRUBBISH", 0),
    ],
)
def test_the_exit_status_is_that_of_the_worst_command(run: Command, queue: str, script: bytes, status: int) -> None:
    assert run("mqsc", given=script).status == status


def test_errors_are_told_with_their_line_and_counted(run: Command, queue: str) -> None:
    ended = run("mqsc", given=b"* c\nDEFINE QLOCAL(X) MAXDEPT(3)\nDEFINE QLOCAL(ORDERS)\nDEFINE QLOCAL(B)")
    first, second = ended.err.splitlines()
    assert first.startswith("inorder: line 2, column 18: found 'MAXDEPT'; allowed is an attribute of a local queue")
    assert second == "inorder: line 3: there is a queue 'ORDERS' already [2100 OBJECT_ALREADY_EXISTS]"
    assert ended.out.endswith("Queue B defined.\n3 commands read: 1 refused, 1 not valid.\n")


def test_stop_ends_at_the_first_failure(run: Command, queue: str, store: Path) -> None:
    ended = run("mqsc", "--stop", given=b"RUBBISH\nDEFINE QLOCAL(B)")
    assert (ended.status, ended.out) == (2, "     1 : RUBBISH\n1 command read: 1 not valid.\n")


def test_check_needs_no_store_and_makes_none(run: Command, store: Path) -> None:
    ended = run("mqsc", "--check", given=SCRIPT + b"RUBBISH")
    assert (ended.status, store.exists()) == (2, False)
    assert ended.out.endswith("3 commands read: 1 not valid.\n")
    assert run("mqsc", "--check", given=SCRIPT).out.endswith("2 commands read: all valid.\n")


def test_a_script_that_defines_nothing_makes_no_store(run: Command, store: Path) -> None:
    ended = run("mqsc", given=b"DISPLAY QUEUE(*)")
    assert (ended.status, store.exists()) == (3, False)
    assert "there is no store" in ended.err


def test_machines_are_told_a_line_for_each_command(run: Command) -> None:
    ended = run("mqsc", "--json", given=SCRIPT + b"DEFINE QLOCAL(A)\nRUBBISH\n")
    define, display, total = ended.records
    assert define == {
        "line": 2,
        "command": "DEFINE QLOCAL(A) +\n   MAXDEPTH(5)",
        "outcome": "done",
        "text": "Queue A defined.",
        "rows": [],
    }
    assert display["rows"] == [{"QUEUE": "A", "TYPE": "QLOCAL", "MAXDEPTH": 5}]
    assert total == {"commands": 4, "refused": 1, "not_valid": 1}
    refused, invalid = [json.loads(line) for line in ended.err.splitlines()]
    assert (refused["line"], refused["outcome"], refused["reason"], refused["exit_status"]) == (5, "refused", 2100, 1)
    assert (invalid["line"], invalid["outcome"], invalid["data"]["column"]) == (6, "not valid", 1)


def test_what_is_exported_makes_the_same_store_again(run: Command, store: Path, tmp_path: Path) -> None:
    run("mqsc", given=SCRIPT + b"DEFINE QALIAS(AL) TARGET(A) DESCR('a ''b'' \xe2\x80\xae')\nALTER QMGR MAXUMSGS(7)")
    exported = run("mqsc", "--export")
    assert exported.status == 0
    again = tmp_path / "again.db"
    assert run("mqsc", "--store", str(again), given=exported.out.encode()).status == 0
    with inorder.connect(store) as one, inorder.connect(again) as other:
        assert one.queues() == other.queues()
        assert one.manager_attributes().max_uncommitted == other.manager_attributes().max_uncommitted == 7
    records = run("mqsc", "--export", "--json").records
    assert "\n".join(record["command"] for record in records) + "\n" == exported.out


def test_what_cannot_be_read_is_a_wrong_call(run: Command, tmp_path: Path) -> None:
    (tmp_path / "latin.mqsc").write_bytes(b"DIS QMGR\nDEFINE QLOCAL(A) DESCR('\xe4')")
    ended = run("mqsc", "latin.mqsc")
    assert ended.status == 2
    assert "latin.mqsc is not in UTF-8: byte 0xe4 in line 2" in ended.err
    missing, folder = run("mqsc", "missing.mqsc"), run("mqsc", ".")
    assert (missing.status, folder.status) == (2, 2)
    assert "missing.mqsc cannot be read: No such file or directory" in missing.err
    assert run("mqsc", "--export", "--stop").status == 2


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_at_a_terminal_commands_are_typed(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = iter(["help", "DEFINE QLOCAL(A) +", "MAXDEPTH(5)", "RUBBISH", "DIS QL(A) MAXDEPTH"])
    prompts = []

    def answer(prompt: str) -> str:
        prompts.append(prompt)
        line = next(typed, None)
        if line is None:
            raise EOFError
        return line

    monkeypatch.setattr(builtins, "input", answer)
    monkeypatch.setattr(sys, "stdin", Terminal())
    status = main(["mqsc"])
    told = capsys.readouterr()
    assert prompts == ["> ", "> ", ". ", "> ", "> ", "> "]
    assert (status, told.out.splitlines()[0]) == (2, "Queue A defined.")
    assert "DEFINE QLOCAL(NAME) ..." in told.err
