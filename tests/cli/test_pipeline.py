"""What the commands of jobs tell of their speed. Nothing here starts Spark; `tests/spark/test_jobs.py` runs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from inorder.cli.pipeline import rates, tell_result
from inorder.cli.running import Run


@dataclass
class Done:
    messages: int
    size: int
    seconds: float


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ((3000, 2.0), "1,500 messages/s"),
        ((3000, 2.0, 4 * 2**20), "1,500 messages/s, 2.0 M bytes/s"),
        ((10, 0.5, 400), "20 messages/s, 800 bytes/s"),
        ((10, 0.0, 400), "at once"),
    ],
)
def test_a_rate_is_in_messages_and_in_bytes_where_they_are_known(given: Any, told: str) -> None:
    assert rates(*given) == told


def test_people_are_told_how_fast_a_job_was(capsys: pytest.CaptureFixture[str]) -> None:
    tell_result(Run(None, as_json=False), Done(3000, 4 * 2**20, 2.0))
    assert capsys.readouterr().out.splitlines()[-1] == "rate      1,500 messages/s, 2.0 M bytes/s"


def test_a_job_that_did_nothing_has_no_rate(capsys: pytest.CaptureFixture[str]) -> None:
    tell_result(Run(None, as_json=False), Done(0, 0, 0.0))
    assert "rate" not in capsys.readouterr().out


def test_machines_are_told_the_figures_alone(capsys: pytest.CaptureFixture[str]) -> None:
    tell_result(Run(None, as_json=True), Done(3000, 4 * 2**20, 2.0))
    assert capsys.readouterr().out == '{"messages": 3000, "size": 4194304, "seconds": 2.0}\n'
