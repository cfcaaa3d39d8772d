"""The runner of scenario tables, with its errors and failures, and the fixtures for users."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from inorder_scenarios import TableError, run_scenario
from inorder_scenarios.__main__ import main
from inorder_scenarios.language import parse

import inorder
from inorder.errors import ArgumentError
from inorder.mq.channels import points
from inorder.testing import STORES, ManualClock
from inorder.testing.remote import the_server
from inorder.testing.stores import KINDS, POSTGRESQL_URL, make_store

PAGE = Path(__file__).parents[2] / "docs/how-to/testing.md"
QUEUE = "scenario: t\nqm queue Q -> ok\n"

BAD_LINES = {
    "unknown verb": "P throw m1 -> ok",
    "unknown flag": "P put m1 shiny -> ok",
    "a key without a value": "P put m1 priority= -> ok",
    "a key twice": "P put m1 priority=1 priority=2 -> ok",
    "no arrow": "P put m1",
    "no outcome": "P put m1 ->",
    "no body": "P put -> ok",
    "an outcome word as body": "P put none -> ok",
    "a body with a plus": "P put a+b -> ok",
    "a fact that ok does not have": "P put m1 -> ok backouts=1",
    "an outcome after an error": "P get -> error=2033 seq=1",
    "a list without its end": "P get-all -> [m1 m2",
    "browse without a position": "P browse -> m1",
    "an operator's verb by an actor": "P settle U commit -> ok",
    "an actor with a strange name": "P! put m1 -> ok",
    "a tenth queue manager": "qm10 queue Q -> ok",
}
BAD_STEPS = {
    "two orders at once": "P get strict relaxed -> m1",
    "a message that nobody has put": "P confirm-put m1 -> ok",
    "a length below the body": "P put m123 length=2 -> ok",
    "a yes that is no yes": "P put m1 persistent=maybe -> ok",
    "a number that is none": "P put m1 priority=high -> ok",
    "a name that nothing has bound": "P put m1 group=$g in-group -> ok",
    "a position that browse does not have": "P browse sideways -> m1",
    "resuming what does not wait": "P resumes -> m1",
    "closing what is not open": "P close -> ok",
    "a clock that goes back": "qm clock -5 -> ok",
    "a channel that goes nowhere": "qm define-channel C -> ok",
    "a point that no run comes to": "qm run-channel C kill=lunch -> killed",
    "a run that is not held": "qm resume-channel C -> ok",
    "the status of a channel that is not there": "qm channel-status C -> ok",
    "a reply to what was not got": "P reply m1 m2 -> ok",
}
BAD_LINES |= {
    f"{said}, {word}": line
    for word in ("property=colour", "property=n:long=1", "property=n:int=x")
    for said, line in {"put": f"P put m1 {word} -> ok", "got": f"C get -> m1 {word}"}.items()
}
PROPERTIES = "P put m1 property=a:int=1 property=c=x -> ok\nC get -> m1"
PAIR = """scenario: t
qm queue QM2 usage=transmission        -> ok
qm define-channel TO.QM2 to=qm2        -> ok
qm2 queue Q                            -> ok
A put m1 on=Q manager=QM2              -> ok
"""
WRONG_OUTCOMES = [  # the last step, or two, of a table, and part of the outcome that is got
    *((QUEUE, steps, got) for steps, got in [
        ("P put m1 -> error", "ok"),
        ("P get -> m1", "none"),
        ("P get -> waits", "none"),
        ("P get wait=forever -> none", "waits"),
        ("P get under-cursor -> error=2033", "error=2034"),
        ("P get wait=forever -> waits", "no step reads"),
        ("qm depth -> 1", "0"),
        ("P put m1 in-group -> ok group=$a\nP put m2 in-group group=$a seq=2 -> ok group=$b", "seq=2"),
        *((f"{PROPERTIES} {said}", "property=a:int=1 c=x") for said in (
            "property=a=1", "property=a:int=2", "property=b:int=1", "property=none",
        )),
    ]),
    *((PAIR, steps, got) for steps, got in [
        ("qm run-channel TO.QM2 -> ok sent=2", "sent=1"),
        ("qm run-channel TO.QM2 kill=received:2 -> killed", "ok"),
        ("qm run-channel TO.QM2 -> held", "ok"),
        ("qm run-channel TO.QM2 kill=received -> killed\nqm channel-status TO.QM2 -> ok in-doubt=0", "in-doubt=1"),
        ("qm run-channel TO.QM2 hold=sending -> held\nB@qm2 get -> m1", "none"),
        ("qm run-channel NONE -> ok", "error=2085"),
        ("qm run-channel TO.QM2 -> ok\nB get on=Q -> m1", "error=2085"),
    ]),
]  # fmt: skip


@pytest.mark.parametrize("line", BAD_LINES.values(), ids=BAD_LINES)
def test_a_wrong_word_is_refused_with_file_and_line(line: str) -> None:
    with pytest.raises(TableError, match=r"^table\.txt:3: "):
        parse(QUEUE + line, "table.txt")


@pytest.mark.parametrize("line", BAD_STEPS.values(), ids=BAD_STEPS)
def test_a_step_that_means_nothing_is_refused_with_file_and_line(line: str) -> None:
    [scenario] = parse(QUEUE + line, "table.txt")
    with pytest.raises(TableError, match=r"^table\.txt:3: "):
        run_scenario(scenario)


@pytest.mark.parametrize(("begin", "steps", "got"), WRONG_OUTCOMES)
def test_a_wrong_outcome_fails_with_its_line_and_the_expected_and_actual_outcome(
    begin: str, steps: str, got: str
) -> None:
    [scenario] = parse(begin + steps, "table.txt")
    failure = run_scenario(scenario)
    assert failure is not None
    assert failure.file == "table.txt"
    assert got in failure.got
    if got != "no step reads":
        assert failure.line == (begin + steps).count("\n") + 1
        assert failure.expected in steps
    assert points.reached is None, "a run that is held is gone with its scenario"


def test_steps_without_a_scenario_and_scenarios_without_steps_are_refused() -> None:
    for text in ("P get -> m1", "scenario: empty\n", "scenario:\nqm queue Q -> ok"):
        with pytest.raises(TableError):
            parse(text)


def test_messages_are_named_by_their_parts_and_pieces() -> None:
    text = """
    scenario: names
    qm queue Q max-length=32                                  -> ok
    P put big length=70 segmentation                          -> ok
    P put a1 segment group=G offset=0 length=10               -> ok
    P put a2 last-segment group=G offset=10 length=6          -> ok
    P put padded length=20                                    -> ok
    C browse-all                                              -> [big@0 big@32 big@64 a1 a2 padded]
    C get complete                                            -> big length=70
    C get complete                                            -> a1+a2 length=16
    C get buffer=3 accept-truncated                           -> pad length=20 warning=2079
    """
    [scenario] = parse(text)
    failure = run_scenario(scenario)
    assert failure is None, str(failure)


def test_the_command_counts_scenarios_and_lists_those_that_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.txt"
    table.write_text(f"{QUEUE}P put m1 -> ok\n{QUEUE}P put m1 -> error\n")
    assert main([str(table)]) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith(f"{table}:6: t: ")
    assert told[-1] == "1 passed, 1 failed"


def test_the_command_succeeds_quietly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "table.txt"
    table.write_text(f"{QUEUE}P put m1 -> ok\nC get -> m1\n")
    assert main([str(table), "--store", "sqlite-long-way"]) == 0
    assert capsys.readouterr().out == "1 passed, 0 failed\n"


def test_postgresql_is_a_kind_of_store_only_if_the_environment_names_a_database(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(POSTGRESQL_URL, "postgresql://host/database")
    assert [*STORES] == [*KINDS]
    monkeypatch.delenv(POSTGRESQL_URL)
    assert [*STORES] == [name for name in KINDS if name != "postgresql"]
    assert len(STORES) == len(KINDS) - 1
    with pytest.raises(ArgumentError, match=POSTGRESQL_URL):
        make_store("postgresql", ManualClock())
    with pytest.raises(SystemExit):
        main(["table.txt", "--store", "postgresql"])
    assert POSTGRESQL_URL in capsys.readouterr().err


def test_the_command_says_which_file_it_cannot_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "table.txt"
    table.write_text("scenario: t\nnonsense\n")
    assert main([str(table)]) == 2
    assert f"{table}:2: " in capsys.readouterr().err
    assert main([str(tmp_path / "missing.txt")]) == 2
    assert "missing.txt: cannot be read: No such file or directory" in capsys.readouterr().err
    good = tmp_path / "good.txt"
    good.write_text(f"{QUEUE}P put m1 -> ok\n")
    assert main([str(table), str(good)]) == 2
    assert capsys.readouterr().out == "1 passed, 0 failed\n", "the other tables run all the same"
    (tmp_path / "empty.txt").write_text("# nothing\n")
    assert main([str(tmp_path / "empty.txt")]) == 2
    assert "empty.txt: holds no scenario" in capsys.readouterr().err


def test_the_tables_on_the_page_pass() -> None:
    tables = re.findall(r"```text\n(scenario: .*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert [run_scenario(scenario) for table in tables for scenario in parse(table)] == [None, None]


def test_the_fixtures_do_what_the_page_shows(tmp_path: Path) -> None:
    section = PAGE.read_text(encoding="utf-8").split("## With pytest")[1]
    shown = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    for name, text in zip(("conftest.py", "test_offers.py"), shown, strict=True):
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1].split(" in ")[0]) == (0, "1 passed"), done.stdout


LEFT_BY_A_CHILD = """
import os, sys
from inorder.testing import temporary_manager
from inorder.testing.mq import temporary_mq

with temporary_mq("Q", in_python=True) if sys.argv[1] == "mq" else temporary_manager(sys.argv[1]) as made:
    qm = made.qm if sys.argv[1] == "mq" else made
    qm.create_queue("Q", exist_ok=True)
    qm.put("Q", b"1")
    child = os.fork()
    if not child:
        sys.exit()
    assert os.waitpid(child, 0)[1] == 0
    qm.put("Q", b"2")
    with qm.connect() as other:
        assert [one.body for one in other.browse("Q")] == [b"1", b"2"]
"""


@pytest.mark.parametrize("store", ["memory", "sqlite", "remote", "mq"])
def test_a_forked_child_that_leaves_the_block_does_not_end_the_queue_manager(store: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", LEFT_BY_A_CHILD, store]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


LEFT_OPEN = """
import os, sys
import inorder
from inorder.testing.remote import the_server

server = the_server(os.getpid())
qm = inorder.connect(server.url, token=server.add(sys.argv[1]))
qm.create_queue("Q")
qm.put("Q", b"1", syncpoint=True)
"""


def test_the_test_server_ends_with_the_process_without_output(tmp_path: Path) -> None:
    """On every Python, although from 3.12 on no thread can be started at that point."""
    ended = subprocess.run(
        [sys.executable, "-c", LEFT_OPEN, str(tmp_path / "a.db")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_users_log_in_while_the_test_has_a_call_in_progress(tmp_path: Path) -> None:
    server = the_server(os.getpid())
    with inorder.connect(tmp_path / "a.db") as qm:
        qm.accounts.create_user("reader", roles=["operator"])
        token = qm.accounts.create_token("reader", "test")
        with server.serving(str(tmp_path / "a.db"), qm) as administrators:
            server.admit(token, administrators)
            with qm._session, inorder.connect(server.url, token=token) as there:
                assert there.inspect.connections() != []
