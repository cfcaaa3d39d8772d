"""`inorder trigger-monitor`: programs are started, and each start and end is reported."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Command
from tests.cli.test_json import keys_below
from tests.tiers import gate

import inorder

GETS = "import os, inorder, sys; qm = inorder.connect(os.environ['INORDER_STORE']); print(qm.get(sys.argv[1]).body)"


@pytest.fixture
def shop(run: Command, store: Path) -> Path:
    """Two initiation queues, each for one queue with a program; one program succeeds, the other fails."""
    program = shlex.join([sys.executable, "-c", GETS])
    script = f"""
DEFINE QLOCAL(START.A)
DEFINE QLOCAL(START.B)
DEFINE PROCESS(GETS) APPLICID('{program.replace("'", "''")} A #')
DEFINE PROCESS(FAILS) APPLICID('exit 3') ENVRDATA('&')
DEFINE QLOCAL(A) TRIGGER TRIGTYPE(EVERY) INITQ(START.A) PROCESS(GETS)
DEFINE QLOCAL(B) TRIGGER TRIGTYPE(FIRST) INITQ(START.B) PROCESS(FAILS)
"""
    assert run("mqsc", given=script.encode()).status == 0
    with inorder.connect(store) as qm:
        qm.put("A", b"work")
        qm.put("B", b"work")
    return store


@pytest.mark.usefixtures("shop")
def test_each_start_and_end_is_a_line_of_json_with_the_documented_keys(run: Command, store: Path) -> None:
    told = run("trigger-monitor", "START.A", "START.B", "--until-empty", "--json")
    assert told.status == 0
    by_queue = {
        queue: [(one["event"], one["status"]) for one in told.records if one["initiation_queue"] == queue]
        for queue in ("START.A", "START.B")
    }
    assert by_queue == {"START.A": [("started", None), ("ended", 0)], "START.B": [("started", None), ("ended", 3)]}
    assert keys_below("A trigger monitor's event") == {*told.records[0], *told.records[0]["trigger"]}
    with inorder.connect(store) as qm:
        assert (qm.depth("A"), qm.depth("B"), qm.depth("START.A"), qm.depth("START.B")) == (0, 1, 0, 0)


@pytest.mark.usefixtures("shop")
def test_events_for_people_are_written_to_standard_error(run: Command) -> None:
    told = run("trigger-monitor", "START.B", "--until-empty")
    assert told.out == ""
    assert re.search(
        r"START.B: exit 3 for B \(\d+\) started\n.*START.B: exit 3 for B \(\d+\) ended with status 3", told.err
    )


def test_an_error_on_one_initiation_queue_ends_the_whole_monitor_with_its_status(run: Command, shop: Path) -> None:
    with inorder.connect(shop) as qm:
        qm.put("START.A", b"nonsense")  # there is no dead-letter queue
    for queues, status, said in ((("START.B", "START.A"), 1, "dead-letter queue"), (("START.B", "NONE"), 2, "NONE")):
        told = run("trigger-monitor", *queues)
        assert (told.status, said in told.err) == (status, True), told.err


@gate
def test_a_signal_ends_the_trigger_monitor(shop: Path) -> None:
    command = [sys.executable, "-m", "inorder", "trigger-monitor", "START.A", "START.B", "--json", "--store", str(shop)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as monitor:
        assert monitor.stdout is not None
        events = []
        for line in monitor.stdout:
            events.append(json.loads(line)["event"])
            if events.count("ended") == 2:
                monitor.send_signal(signal.SIGTERM)
        assert monitor.wait() == 0
    assert sorted(events) == ["ended", "ended", "started", "started"]
