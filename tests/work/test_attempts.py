"""What an exception of a function means for its message."""

from __future__ import annotations

import asyncio

import pytest

from inorder.work import Backoff, Dead, Discard, Outcome, Retry, Tasks
from inorder.work.attempts import judge
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
