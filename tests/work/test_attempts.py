"""What an exception of a function means for its message."""

from __future__ import annotations

import asyncio

import pytest

from inorder.work import Backoff, Dead, Discard, Outcome, Retry, Tasks
from inorder.work.attempts import judge, said
from inorder.work.tasks import Task

RETRIED, DISCARDED, DEAD = Outcome.RETRIED, Outcome.DISCARDED, Outcome.DEAD


@pytest.mark.parametrize(
    ("error", "attempt", "outcome", "delay", "is_final"),
    [
        (OSError("no"), 1, RETRIED, 2.0, False),
        (OSError("no"), 2, RETRIED, 4.0, False),
        (OSError("no"), 3, DEAD, 0.0, False),
        (Retry("no"), 1, RETRIED, 2.0, False),
        (Retry("no", after=7), 1, RETRIED, 7.0, False),
        (Retry("no", after=7), 3, DEAD, 0.0, False),
        (Discard(), 1, DISCARDED, 0.0, True),
        (Dead("no"), 1, DEAD, 0.0, True),
        (KeyError("no"), 1, DEAD, 0.0, True),
        (SystemExit(1), 1, RETRIED, 2.0, False),
        (asyncio.CancelledError(), 1, RETRIED, 2.0, False),
    ],
)
def test_what_an_exception_means(
    error: BaseException, attempt: int, outcome: Outcome, delay: float, is_final: bool
) -> None:
    tasks = Tasks()
    tasks.task("Q", name="see", backoff=Backoff(first=2), dead_on=LookupError)(lambda message: None)
    task: Task = next(iter(tasks))
    verdict = judge(task, error, attempt, 3, luck=lambda: 0.5)
    assert (verdict.outcome, verdict.delay) == (outcome, delay)
    assert verdict.is_failure
    assert verdict.error
    assert verdict.is_final is is_final


class Wordless(Exception):
    """Its text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("no"), "ValueError: no (test_attempts.py:"),
        (ValueError("x" * 5_000), f"ValueError: {'x' * 800} (test_attempts.py:"),
        (Wordless(), "Wordless: its text cannot be had, RuntimeError (test_attempts.py:"),
        (Dead(), "Dead"),
        (Discard("old"), "old"),
    ],
)
def test_an_exception_in_one_line_says_what_it_is_and_where(error: Exception, expected: str) -> None:
    with pytest.raises(type(error)) as raised:
        raise error
    line = said(raised.value)
    assert line.startswith(expected)
    assert len(line) <= 1_000, "more is not kept with the message"
