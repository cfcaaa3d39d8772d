"""`inorder mqsc`: scripts from files and pipes, their answers for people and machines, and definitions as a script."""

from __future__ import annotations

import builtins
import re
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Command, Terminal

import inorder
from inorder.cli import main, running
from inorder.mq import channels

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
        "Starting MQSC for queue manager orders.\n"
        "     2 : DEFINE QLOCAL(A) +\n"
        "       :    MAXDEPTH(5)\n"
        "AMQ8006I: Queue A defined.\n"
        "     4 : DISPLAY QLOCAL(A) MAXDEPTH\n"
        "AMQ8409I: Display Queue details.\n"
        "   QUEUE(A)                                TYPE(QLOCAL)\n"
        "   MAXDEPTH(5)\n"
        "2 MQSC commands read.\n"
        "No commands have a syntax error.\n"
        "All valid MQSC commands were processed.\n"
    )
    assert (ended.status, ended.err) == (0, f"made the store {store}: queue manager orders\n")


@pytest.mark.parametrize("argument", [(), ("-",)])
def test_a_script_is_read_from_standard_input_too(run: Command, store: Path, argument: tuple[str, ...]) -> None:
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


def test_check_needs_no_store_and_makes_none(run: Command, store: Path) -> None:
    ended = run("mqsc", "--check", given=SCRIPT + b"RUBBISH")
    assert (ended.status, store.exists()) == (2, False)
    assert "3 MQSC commands read.\nOne command has a syntax error.\n" in ended.out
    assert run("mqsc", "--check", given=SCRIPT).out.endswith("All valid MQSC commands were read; none was run.\n")


def test_the_help_names_every_verb_that_a_script_may_use(run: Command) -> None:
    told = " ".join(run("mqsc", "--check", given=b"RUBBISH").out.split())
    verbs = re.findall("[A-Z]+", told.partition("allowed is ")[2].partition(" or END")[0])
    assert {"DEFINE", "TRIGGER"} <= set(verbs)
    shown = run("mqsc", "--help").out
    assert [verb for verb in verbs if verb not in shown] == []


UNSUPPORTED = b"""\
DEFINE LISTENER(TCP) TRPTYPE(TCP)
DEFINE QLOCAL(JOBS) CLUSTER(C) DEFBIND(OPEN) MAXDEPTH(7)
SET AUTHREC OBJTYPE(QMGR) GROUP('apps') AUTHADD(CONNECT)
START LISTENER(TCP)
"""


def test_unsupported_features_of_mq_are_skipped_on_request_and_summed_up(run: Command, store: Path) -> None:
    ended = run("mqsc", given=UNSUPPORTED)
    assert ended.status == 2
    assert (
        "No commands have a syntax error.\n"
        "4 commands ask for features of MQ that are not supported; --skip-unsupported passes over them.\n"
        "All valid MQSC commands were processed.\n"
    ) in ended.out
    assert "`inorder user` gives the users of a server their rights; allowed is" in ended.out
    assert "allowed is a command without it; --skip-unsupported passes over it\n" in ended.out
    ended = run("mqsc", "--skip-unsupported", given=UNSUPPORTED)
    assert (ended.status, ended.err) == (0, "")
    assert "AMQ8006I: Queue JOBS defined. Without effect here: DEFBIND. Skipped: CLUSTER.\n" in ended.out
    assert ended.out.endswith(
        "4 MQSC commands read.\n"
        "No commands have a syntax error.\n"
        "All valid MQSC commands were processed.\n"
        "Skipped: MQ's object LISTENER, lines 1, 4.\n"
        "Skipped: MQ's attribute CLUSTER, line 2.\n"
        "Skipped: MQ's command SET AUTHREC, line 3.\n"
    )
    with inorder.connect(store) as qm:
        assert qm.attributes("JOBS").max_depth == 7
    assert run("mqsc", "--skip-unsupported", given=b"DEFINE QLOCAL(A) MAXDEPT(7)").status == 2, "that is a mistake"
    *_, total = run("mqsc", "--skip-unsupported", "--check", "--json", given=UNSUPPORTED).records
    found = total["skipped"]
    assert found == {"MQ's object LISTENER": [1, 4], "MQ's attribute CLUSTER": [2], "MQ's command SET AUTHREC": [3]}


def test_a_script_that_defines_nothing_makes_no_store(run: Command, store: Path) -> None:
    ended = run("mqsc", given=b"DISPLAY QUEUE(*)")
    assert (ended.status, store.exists()) == (3, False)
    assert "there is no store" in ended.err


def test_json_output_has_a_line_for_each_command(run: Command) -> None:
    ended = run("mqsc", "--json", given=SCRIPT + b"DEFINE QLOCAL(A)\nRUBBISH\n")
    define, display, refused, invalid, total = ended.records
    assert define == {
        "line": 2,
        "command": "DEFINE QLOCAL(A) +\n   MAXDEPTH(5)",
        "outcome": "done",
        "number": "AMQ8006I",
        "text": "Queue A defined.",
        "rows": [],
        "skipped": [],
    }
    assert display["rows"] == [{"QUEUE": "A", "TYPE": "QLOCAL", "MAXDEPTH": 5}]
    assert (refused["line"], refused["outcome"], refused["reason"], refused["exit_status"]) == (5, "refused", 2100, 1)
    assert (invalid["line"], invalid["outcome"], invalid["data"]["column"]) == (6, "not valid", 1)
    found = (total, ended.err.count("\n"))
    assert found == ({"commands": 4, "refused": 1, "not_valid": 1, "unsupported": 0, "skipped": {}}, 0)


def test_an_exported_script_makes_the_same_store_again(run: Command, store: Path, tmp_path: Path) -> None:
    run("mqsc", given=SCRIPT + b"DEFINE QALIAS(AL) TARGET(A) DESCR('a ''b'' \xe2\x80\xae')\nALTER QMGR MAXUMSGS(7)")
    with inorder.connect(store) as qm:
        channels.define_connection(qm, "ROME", "a store\nDELETE QLOCAL(A) +")
        channels.define_connection(qm, "OSLO", "https://oslo:9443", user="london")
    exported = run("mqsc", "--export")
    assert exported.status == 0
    assert exported.out.splitlines()[:2] == [
        "* inorder connection define OSLO https://oslo:9443 --user london --replace",
        r"""* inorder ["connection", "define", "ROME", "a store\nDELETE QLOCAL(A) +", "--replace"]""",
    ]
    again = tmp_path / "again.db"
    assert run("mqsc", "--store", str(again), given=exported.out.encode()).status == 0
    with inorder.connect(store) as one, inorder.connect(again) as other:
        assert one.queues() == other.queues()
        assert one.admin.manager_attributes().max_uncommitted == other.admin.manager_attributes().max_uncommitted == 7
    records = run("mqsc", "--export", "--json").records
    assert "\n".join(record["command"] for record in records) + "\n" == exported.out


def test_a_script_that_cannot_be_read_is_a_usage_error(run: Command, tmp_path: Path) -> None:
    (tmp_path / "latin.mqsc").write_bytes(b"DIS QMGR\nDEFINE QLOCAL(A) DESCR('\xe4')")
    ended = run("mqsc", "latin.mqsc")
    assert ended.status == 2
    assert "latin.mqsc is not in UTF-8: byte 0xe4 in line 2" in ended.err
    missing, folder = run("mqsc", "missing.mqsc"), run("mqsc", ".")
    assert (missing.status, folder.status) == (2, 2)
    assert "missing.mqsc cannot be read: No such file or directory" in missing.err
    assert run("mqsc", "--export", "--stop").status == 2


@pytest.mark.parametrize("command", ["mqsc", "import", "dead run"])
def test_a_script_without_an_end_is_refused(run: Command, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "SCRIPT_BYTES_MAX", 1_000)
    ended = run(*command.split(), "/dev/zero")
    assert (ended.status, "/dev/zero is not read: it has more than 1,000 bytes" in ended.err) == (2, True), ended.err
    assert "standard input is not read" in run(*command.split(), "-", given=b"*" * 1_001).err


def test_commands_can_be_typed_at_a_terminal(
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
    assert (status, told.out.splitlines()[0]) == (2, "AMQ8006I: Queue A defined.")
    assert "DEFINE QLOCAL(NAME) ..." in told.err


def test_a_script_of_a_company_is_answered_as_runmqsc_does(run: Command, tmp_path: Path) -> None:
    """`company.txt` has each command and its answer; the store paid.db has three messages on a queue."""
    path, here = tmp_path / "paid.db", Path(__file__).parent
    with inorder.connect(path, name="PAYMENTS") as qm:
        qm.create_queue("PAY.OLD")
        qm.put_many("PAY.OLD", [b"1", b"2", b"3"])
    given = (here / "company.mqsc").read_bytes()
    ended = run("mqsc", "--skip-unsupported", "--store", str(path), given=given)
    assert ended == (2, (here / "company.txt").read_text(encoding="utf-8"), "")
