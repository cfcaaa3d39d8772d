"""What `tools.proof.limited` finds; `test_crashes.py` kills its workers."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tools.proof import limited
from tools.proof.working import Report, Round

import inorder
from inorder.work.results import RESULTS

pytest.importorskip("cronsim", reason="without inorder[work] there are no schedules")


def test_each_broken_promise_is_a_finding(tmp_path: Path) -> None:
    began = time.time() - 0.5
    one = Round(str(tmp_path / "store.db"), tmp_path / "calls.txt", False, (0,) * limited.JOBS, time.time() - 7200.0)
    ids = limited.prepare(one)
    lines = [f"begin 1 {began:.6f} 1 anna 0", f"begin 2 {began:.6f} 2 bert 0", f"begin 2 {began:.6f} 3 anna 0"]
    lines += ["kill 1", f"end 2 {began:.6f} 2 bert 0", f"begin 3 {began:.6f} 4 bert 0", f"begin 2 {began:.6f} 4 few 0"]
    lines += [f"begin 4 {began:.6f} {number} slow 0" for number in range(10, 22)]
    one.log.write_text("\n".join(lines))
    found = "\n".join(limited.judge_calls(Report(0), one, began))
    assert found.count("2 calls of anna ran at once") == 1
    assert "job 4 was called twice with backout count 0" in found
    assert "11 calls of slow have begun in " in found
    assert len(found.splitlines()) == 4, found
    with inorder.connect(one.place) as qm:
        qm.create_queue(RESULTS)
        for number, status, result in ((1, "done", 1), (2, "dead", None), (3, "done", 4), (3, "done", 3)):
            said: dict[str, object] = {
                "task": "few",
                "status": status,
                "result": result,
                "error": None,
                "attempts": [],
                "ended_at": 0.0,
            }
            qm.put_json(RESULTS, said, correlation_id=ids[number])
        qm.put_many("NEXT", [b"3", b"4"])
    now = "\n".join(limited.judge_results(one, ids, has_ended=False))
    for number in (1, 2, 3):
        assert f"job {number} has the results" in now
    assert "job 3 has another result" in now
    ended = "\n".join(limited.judge_results(one, ids, has_ended=True))
    assert "job 4 is 1 times done and 0 times dead: []" in ended
    assert "job 5 is 0 times done and 0 times dead" in ended
