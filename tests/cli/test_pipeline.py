"""What the commands of jobs tell of their speed. Nothing here starts Spark; `tests/spark/test_jobs.py` runs them."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import pytest

from inorder.cli.pipeline import rates, tell_result, told_while_it_works
from inorder.cli.running import Run


@dataclass
class Done:
    messages: int
    size: int
    seconds: float


@dataclass
class Now:
    messages: int
    size: int
    seconds: float


class Terminal(io.StringIO):
    """Somebody looks."""

    def isatty(self) -> bool:
        return True


def told_on(monkeypatch: pytest.MonkeyPatch, errors: io.StringIO, *, as_json: bool) -> str:
    """What a command says of a job on a terminal, or on what is none."""
    monkeypatch.setattr("sys.stderr", errors)
    monkeypatch.setenv("TERM", "xterm")
    with told_while_it_works(Run(None, as_json=as_json)) as tell:
        tell(Now(3000, 4 * 2**20, 2.0))
    return errors.getvalue()


def test_people_see_how_far_a_job_is(monkeypatch: pytest.MonkeyPatch) -> None:
    told = told_on(monkeypatch, Terminal(), as_json=False)
    assert "3,000 messages, 4.0 M bytes, 1,500 messages/s, 2.0 M bytes/s" in told


def test_nothing_is_said_of_progress_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told_on(monkeypatch, io.StringIO(), as_json=False) == ""


def test_machines_are_told_nothing_of_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told_on(monkeypatch, Terminal(), as_json=True) == ""


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
