"""Workers killed with SIGKILL at random moments: no attempt is lost, and every dead letter has a reason.

`make crash` does this hundreds of times.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.support import Make
from tests.tiers import gate, nightly
from tools.proof import limited, working

import inorder
from inorder.work.results import RESULTS

pytest.importorskip("cronsim", reason="without inorder[work] there are no schedules")
SEED = int(os.environ.get("INORDER_CRASH_SEED", random.SystemRandom().getrandbits(32)))


@pytest.mark.parametrize("tasks", [working, limited])
@pytest.mark.parametrize("often", [pytest.param(False, marks=gate), pytest.param(True, marks=nightly)])
def test_killed_workers_break_no_promise(tmp_path: Path, tasks: Any, often: bool) -> None:
    kills = (40 if tasks is limited else 20) if often else 1
    report = tasks.run(kills=kills, seed=SEED, seconds=600, parent=tmp_path)
    assert not report.findings, f"INORDER_CRASH_SEED={SEED} tries the same plan\n{report}"
    assert report.kills >= kills
    assert report.calls > 0
    assert tasks is limited or report.runs >= working.RUNS


@nightly
@pytest.mark.postgresql
@pytest.mark.parametrize("tasks", [working, limited])
def test_killed_workers_break_no_promise_on_a_server(tmp_path: Path, postgresql: str, make: Make, tasks: Any) -> None:
    url = make("postgresql")
    report = tasks.run(kills=12, seed=SEED, seconds=600, parent=tmp_path, place=lambda _: url)
    assert not report.findings, f"INORDER_CRASH_SEED={SEED} tries the same plan\n{report}"
    assert report.kills >= 12


@pytest.fixture
def one(tmp_path: Path) -> working.Round:
    """A round without any worker: the tests plant the faults by hand."""
    now = time.time()
    fails = (0, working.ALWAYS, 0, working.DEAD, working.DISCARDED)
    made = working.Round(str(tmp_path / "store.db"), tmp_path / "calls.txt", True, fails, now - 7200.0)
    working.prepare(made)
    working.seen_first(made.place, working.schedule(), now - 3600.0)  # an hour's runs, put by a process that lived
    with inorder.connect(made.place) as qm:
        working.put_keys(made, qm)
    return made


def test_kept_promises_give_no_finding(one: working.Round) -> None:
    bury(one, b"1", attempts=working.ATTEMPTS, error="ValueError: message 1 fails")
    bury(one, b"3", attempts=2, error="message 3 is given up", reason=working.REASON)
    bury(one, b"4", discards=True)
    done(one, b"0", b"2")
    one.log.write_text("0 0\n1 0\n1 1\n2 0\n3 0\n3 0 given up\n4 0\n4 1\n4 1 given up\n")
    assert working.judge(working.Report(0), one) == []


def test_each_broken_promise_is_a_finding(one: working.Round) -> None:
    bury(one, b"0", attempts=1, error="")
    bury(one, b"3", attempts=5, error="ended in the middle of 5 attempts")
    bury(one, b"4", attempts=1, error="message 4 is given up")
    done(one, b"2", b"1", b"2")
    one.log.write_text("1 0\n1 0\n3 0\n3 0 given up\n3 1\n4 0 given up\n")
    with inorder.connect(one.place) as qm:
        qm.put("CLOCK", qm.get("CLOCK").body)  # sent to the end of the queue
        qm.put("CLOCK", next(iter(qm.browse("CLOCK"))).body)
        qm.get("KEYED")
        qm.put("KEYED", b"17")
    found = "\n".join([*working.lost_keys(one), *working.judge(working.Report(0), one)])
    promises = (
        "called twice with backout count 0",
        "message 2 has 2 ends",
        "dead letter of message 0 says",
        "dead for another reason",
        "fails always, and is done",
        "message 3 was given up with backout count 0, and called again with 1",
        "the dead letter of message 3 says",
        "message 3 was given up, and is dead for another reason",
        "message 4 was to be removed, and is a dead letter",
        "strict order is broken",
        "periodic puts: lost [], doubled [1",
        "the put under key 0 was promised, and is lost",
        "key 0 has 0 messages",
        "key 17 has 2 messages",
    )
    for what in promises:
        assert what in found, what


def done(one: working.Round, *given: bytes) -> None:
    with inorder.connect(one.place) as qm:
        qm.put_many("NEXT", list(given))


def bury(
    one: working.Round, body: bytes, *, attempts: int = 0, error: str = "", reason: int = 2362, discards: bool = False
) -> None:
    with inorder.connect(one.place) as qm, qm.unit_of_work():
        (uid,) = (message.uid for message in qm.browse("Q") if message.body == body)
        message = qm.get("Q", match=inorder.Match(uid=uid), read_order="relaxed")
        if not discards:
            qm.dead.add(message, queue="Q", attempts=attempts, error=error, reason=reason)


def test_each_broken_promise_of_limits_and_results_is_a_finding(tmp_path: Path) -> None:
    began = time.time() - 0.5
    one = working.Round(
        str(tmp_path / "store.db"), tmp_path / "calls.txt", False, (0,) * limited.JOBS, time.time() - 7200.0
    )
    ids = limited.prepare(one)
    lines = [f"begin 1 {began:.6f} 1 anna 0", f"begin 2 {began:.6f} 2 bert 0", f"begin 2 {began:.6f} 3 anna 0"]
    lines += ["kill 1", f"end 2 {began:.6f} 2 bert 0", f"begin 3 {began:.6f} 4 bert 0", f"begin 2 {began:.6f} 4 few 0"]
    lines += [f"begin 4 {began:.6f} {number} slow 0" for number in range(10, 22)]
    one.log.write_text("\n".join(lines))
    found = "\n".join(limited.judge_calls(working.Report(0), one, began))
    assert found.count("2 calls of anna ran at once") == 1
    assert "job 4 was called twice with backout count 0" in found
    assert "11 calls of slow have begun in " in found
    assert len(found.splitlines()) == 4, found
    with inorder.connect(one.place) as qm:
        qm.create_queue(RESULTS)
        for number, status, result in ((1, "done", 1), (2, "dead", None), (3, "done", 4), (3, "done", 3)):
            said: dict[str, object] = {"task": "few", "status": status, "result": result, "error": None}
            said |= {"attempts": [], "ended_at": 0.0}
            qm.put_json(RESULTS, said, correlation_id=ids[number])
        qm.put_many("NEXT", [b"3", b"4"])
    now = "\n".join(limited.judge_results(one, ids, has_ended=False))
    for number in (1, 2, 3):
        assert f"job {number} has the results" in now
    assert "job 3 has another result" in now
    ended = "\n".join(limited.judge_results(one, ids, has_ended=True))
    assert "job 4 is 1 times done and 0 times dead: []" in ended
    assert "job 5 is 0 times done and 0 times dead" in ended
