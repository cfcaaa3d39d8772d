"""`inorder channel`: from a definition to messages in the other store, and the acts of operators."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Command, told
from tests.helpers.channelled import bodies, link, manager
from tests.tiers import gate

from inorder import connect
from inorder.cli import main
from inorder.errors import Undeliverable
from inorder.mq import channels


@pytest.fixture
def places(tmp_path: Path) -> tuple[str, str]:
    a, b = str(tmp_path / "a.db"), str(tmp_path / "b.db")
    manager(a, "A")
    manager(b, "B")
    return a, b


def test_two_sites_can_be_connected_with_the_command_alone(
    places: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = places
    steps = [
        f"queue create B --usage transmission --store {a}",
        f"channel create TO.B --transmission-queue B --connection {b} --batch-size 2 --store {a}",
        f"channel alter TO.B --batch-size 3 --store {a}",
        f"channel ping TO.B --store {a}",
        f"channel run TO.B --until-empty --store {a}",
        f"channel stop TO.B --store {a}",
        f"channel start TO.B --store {a}",
        f"channel reset TO.B --number 9 --yes --store {a}",
    ]
    for n, step in enumerate(steps):
        if n == 4:
            with connect(a) as qm:
                qm.put_many("Q", [b"1", b"2", b"3", b"4"], manager="B")
        assert main(step.split()) == 0, step
    with connect(b) as qm:
        assert bodies(qm) == [b"1", b"2", b"3", b"4"]
    capsys.readouterr()
    assert main(f"channel status --store {a} --json".split()) == 0
    now = json.loads(capsys.readouterr().out)
    assert (now["channel"], now["status"], now["number"], now["messages"]) == ("TO.B", "inactive", 8, 4)
    assert main(f"channel status --received --store {b} --json".split()) == 0
    assert json.loads(capsys.readouterr().out)["manager"] == "A"
    assert main(f"channel list --store {a} --json".split()) == 0
    assert '"TO.B"' in capsys.readouterr().out
    assert main(f"channel show TO.B --store {a} --json".split()) == 0
    assert json.loads(capsys.readouterr().out)["batch_size"] == 3
    assert main(f"channel delete TO.B --store {a}".split()) == 0


@gate
def test_a_channel_run_reports_a_missing_store_and_when_it_runs_again(places: tuple[str, str], tmp_path: Path) -> None:
    (a, b), later = places, tmp_path / "later.db"
    link(a, "B", b)
    with connect(a) as qm:
        channels.alter_channel(qm, "TO.B", connection=str(later), short_retry_interval=1)
        qm.put("Q", b"1", manager="B")
    command = [sys.executable, "-m", "inorder", "channel", "run", "TO.B", "--until-empty", "--store", a]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        first = next(line for line in running.stderr if told(line))
        assert first == f"TO.B: retrying: there is no store at {later}; it keeps trying until Ctrl-C\n"
        Path(b).rename(later)
        assert told(running.stderr.read()).splitlines() == ["TO.B: running", "TO.B: inactive, 1 message sent"]
    assert running.returncode == 0
    with connect(later) as qm:
        assert bodies(qm) == [b"1"]


def test_a_run_of_one_channel_reports_a_pause_as_such_and_its_end_once(
    places: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = places
    link(a, "B", b)
    with connect(a) as qm, connect(b) as other:
        other.alter_queue("Q", read_order="required", put_allowed=False)
        channels.alter_channel(other, "TO.B", message_retry_count=1, message_retry_interval=None)
        qm.put("Q", b"1", manager="B")
    assert main(f"channel run TO.B --until-empty --store {a}".split()) == 1
    paused, ended = capsys.readouterr().err.splitlines()
    assert paused.startswith("TO.B: paused: ")
    assert "Ctrl-C" not in paused
    assert ended.startswith("inorder: ")
    assert main(f"channel run TO.B --until-empty --store {a}".split()) == 1
    (ended,) = capsys.readouterr().err.splitlines()
    assert ended.startswith("inorder: channel TO.B is stopped")


def test_a_pull_reports_a_pause(places: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    a, b = places
    with connect(a) as qm, connect(b) as other:
        qm.create_queue("HUB", type="store_and_forward", targets="B")
        qm.put("Q", b"1", manager="B")
        other.alter_queue("Q", read_order="required", put_allowed=False)
        channels.define_connection(other, "A", a)
        other.create_queue("HUB", type="home_server", remote_manager="A")
        channels.define_channel(other, "HUB", "receiver", message_retry_count=1, message_retry_interval=None)
    assert main(f"channel pull HUB --until-empty --store {b}".split()) == 1
    paused, ended = capsys.readouterr().err.splitlines()
    assert paused.startswith("HUB: paused: ")
    assert "Q" in paused
    assert ended.startswith("inorder: ")


def test_watch_shows_channels_with_their_lag_and_why_one_has_stopped(
    places: tuple[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    a, b = places
    link(a, "B", b)
    with connect(a) as qm, connect(b) as other:
        other.alter_queue("Q", read_order="required", put_allowed=False)
        qm.put_many("Q", [b"1", b"2"], manager="B")
        assert main(f"watch B --count 1 --json --store {a}".split()) == 0
        told = json.loads(capsys.readouterr().out)
        (channel,) = told["channels"]
        assert (channel["channel"], channel["status"], channel["waiting"]) == ("TO.B", "inactive", 2)
        assert channel["oldest_put_at"] == told["oldest_put_at"]
        with pytest.raises(Undeliverable):
            channels.run_channel(qm, "TO.B", until_empty=True)
    assert main(f"watch --count 1 --store {a}".split()) == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("sends from", "oldest", "in doubt"))
    (line,) = [line for line in shown.splitlines() if "TO.B" in line]
    assert "stopped" in line
    assert "does not accept a message of batch 1" in line


def test_a_channel_of_an_mqsc_script_uses_a_named_connection(
    places: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = places
    script = tmp_path / "script"
    script.write_text(
        "DEFINE QLOCAL(B) USAGE(XMITQ)\nDEFINE CHANNEL(TO.B) CHLTYPE(SDR) XMITQ(B) CONNAME('b(1414)') MCAUSER(' ')\n"
        "PING CHANNEL(TO.B)\nDEFINE QLOCAL(AFTER)\n"
    )
    assert main(["mqsc", str(script), "--store", a]) == 2
    assert "TO.B leads to b(1414), an address of MQ, for which there is no connection" in capsys.readouterr().out
    for step in (
        ["queue", "show", "AFTER"],
        ["connection", "define", "THERE", "nowhere.db"],
        ["connection", "define", "THERE", b, "--replace"],
        ["channel", "map", "b(1414)", "THERE"],
        ["channel", "ping", "TO.B"],
    ):
        assert main([*step, "--store", a]) == 0, step
    capsys.readouterr()
    assert main(["connection", "defined", "--store", a, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"connection": "THERE", "location": b, "user": ""}
    assert main(["channel", "map", "--store", a, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"address": "b(1414)", "connection": "THERE"}
    assert main(["channel", "map", "b(1414)", "--store", a]) == 2
    assert main(["channel", "unmap", "b(1414)", "--store", a]) == 0
    assert main(["connection", "delete", "THERE", "--store", a]) == 0
    assert main(["channel", "ping", "TO.B", "--store", a]) == 2


def test_a_process_imports_the_exits_that_it_is_started_with(
    places: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = places
    link(a, "B", b, message_exit="tests.helpers.channelled:shout")
    run = ["channel", "run", "TO.B", "--until-empty", "--store", a]
    with connect(a) as qm:
        qm.put("Q", b"a", manager="B")
    assert main(run) == 2
    assert "--exits tests.helpers.channelled" in capsys.readouterr().err
    assert main([*run, "--exits", "no.such.module"]) == 2
    assert main([*run, "--exits", "tests.helpers.channelled"]) == 0
    with connect(b) as qm:
        assert bodies(qm) == [b"A"]


def test_an_error_about_another_store_does_not_name_the_option_of_this_one(run: Command, queue: str) -> None:
    ended = run("connection", "define", "PARIS", "https://paris.example:9443/path")
    assert (ended.status, "--store" in ended.err, "must be a URL like" in ended.err) == (2, False, True), ended.err
