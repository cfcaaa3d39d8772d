"""Functions that change the state of their thread or their unit of work; the meaning of their exceptions."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from tests.helpers.support import LIMIT_SECONDS, bodies
from tests.helpers.working import at_work, worked
from tests.work.test_worker import AT_ONCE, tasks

from inorder import ConnectionBroken, Got, QueueManager
from inorder.errors import ArgumentError, CallerError
from inorder.work import Backoff, Dead, Discard, Outcome, Retry, Tasks
from inorder.work.attempts import judge, said
from inorder.work.tasks import Task

__all__ = ["tasks"]
DONE, RETRIED, DISCARDED, DEAD = Outcome.DONE, Outcome.RETRIED, Outcome.DISCARDED, Outcome.DEAD


# --- functions that return before the work is done


def _generator(message: Got) -> Iterator[None]:
    yield


async def _coroutine(message: Got) -> None: ...


async def _asynchronous_generator(message: Got) -> AsyncIterator[None]:
    yield


class _AsyncCallable:
    async def __call__(self, message: Got) -> None: ...


NOT_DONE: list[Any] = [_generator, _asynchronous_generator, _coroutine, _AsyncCallable()]


def test_functions_that_return_a_coroutine_or_generator_are_refused_or_fail(qm: QueueManager, tasks: Tasks) -> None:
    for function in NOT_DONE[:2]:
        with pytest.raises(ArgumentError, match="function"):
            tasks.task("Q", name="see")(function)
    functions = iter(NOT_DONE)

    @tasks.task("Q", attempts=1)
    def hidden(message: Got) -> object:
        return next(functions)(message)

    qm.put_many("Q", [b"1", b"2", b"3", b"4"])
    heard = worked(qm, tasks, 4)
    assert heard.outcomes == [DEAD] * 4, "the message is gone, and the work was never done"
    assert all("has done nothing" in one.text for one in heard.told if one.ended is not None)
    heard.told.clear()
    gc.collect()  # warns of a coroutine that was never awaited
    assert qm.depth("DEAD") == 4


# --- units that the function ends itself


def test_a_unit_that_the_function_backs_out_is_an_attempt(qm: QueueManager, tasks: Tasks) -> None:
    @tasks.task("Q")
    def pack(message: Got, own: QueueManager) -> None:
        own.put("NEXT", message.body)
        if not message.backout_count:
            own.back_out()

    qm.put("Q", b"1")
    heard = worked(qm, tasks, 2)
    assert heard.outcomes == [RETRIED, DONE]
    assert "backed out" in heard.told[0].text
    assert bodies(qm, "NEXT") == [b"1"]


@pytest.mark.parametrize("error", [ValueError("no"), Dead("no"), Discard("no")])
@pytest.mark.parametrize("ends", ["commit", "close"])
def test_a_call_that_fails_after_its_commit_counts_as_done(
    qm: QueueManager, tasks: Tasks, ends: str, error: Exception
) -> None:
    @tasks.task("Q")
    def pack(message: Got, own: QueueManager) -> None:
        own.put("NEXT", message.body)
        getattr(own, ends)()
        raise error

    qm.put("Q", b"1")
    heard = worked(qm, tasks)
    assert heard.outcomes == [DONE]
    assert "was committed, then: " in heard.told[0].text
    assert not heard.told[0].is_fine
    assert (bodies(qm, "NEXT"), [qm.depth(queue) for queue in ("Q", "DEAD")]) == ([b"1"], [0, 0])


def test_a_thread_that_the_function_leaves_in_a_call_costs_an_attempt_and_not_the_task(
    qm: QueueManager, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only that thread could settle the unit: its connection ends, and the task goes on with another one."""
    monkeypatch.setattr("inorder.work.lane.TROUBLE", AT_ONCE)
    left = list[threading.Thread]()

    @tasks.task("Q")
    def pack(message: Got, own: QueueManager) -> None:
        if message.backout_count:
            return
        waits = threading.Event()

        def stay() -> None:
            with own._session:
                waits.set()
                goes_on.wait(LIMIT_SECONDS)

        left.append(threading.Thread(target=stay))
        left[0].start()
        assert waits.wait(LIMIT_SECONDS)

    goes_on = threading.Event()
    qm.put("Q", b"1")
    with at_work(qm, tasks) as (worker, heard):
        heard.until(lambda heard: bool(heard.events))
        goes_on.set()
        heard.attempts(2)
        assert worker.stopped == {}
    left[0].join(LIMIT_SECONDS)
    assert heard.outcomes == [RETRIED, DONE]
    assert heard.events == ["trouble"]


@pytest.mark.parametrize("fails", ["commit", "back_out"])
def test_an_attempt_whose_unit_cannot_be_settled_is_reported(
    qm: QueueManager, tasks: Tasks, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    monkeypatch.setattr("inorder.work.lane.TROUBLE", AT_ONCE)

    @tasks.task("Q")
    def pack(message: Got, own: QueueManager) -> None:
        if message.backout_count:
            return
        own._session.settle = broken  # type: ignore[method-assign]
        if fails == "back_out":
            raise KeyError("price")

    def broken(*given: object, **how: object) -> None:
        raise ConnectionBroken("the server has gone")

    qm.put("Q", b"1")
    heard = worked(qm, tasks, 2)
    assert heard.outcomes == [RETRIED, DONE]
    assert ("KeyError: 'price'" if fails == "back_out" else "the server has gone") in heard.told[0].text
    assert heard.events == ["trouble"]


# --- threads


@pytest.mark.parametrize("by", ["function", "log"])
def test_a_worker_cannot_be_stopped_by_its_own_threads(qm: QueueManager, tasks: Tasks, by: str) -> None:
    """A stop would wait for the thread that called it."""
    refused, has_tried = list[CallerError](), threading.Event()

    def stop() -> None:
        try:
            worker.stop()
        except CallerError as error:
            refused.append(error)
        has_tried.set()

    tasks.task("Q", name="see")(lambda message: stop() if by == "function" else None)
    qm.put("Q", b"1")
    worker = qm.worker(tasks, log=lambda event: stop() if by == "log" else None)
    with worker:
        assert has_tried.wait(LIMIT_SECONDS)
    assert "a thread that is not its own" in str(refused[0])
    assert qm.depth("Q") == 0


def test_a_function_that_begins_a_unit_is_refused_since_it_is_in_the_workers_unit(
    qm: QueueManager, tasks: Tasks
) -> None:
    told = []

    @tasks.task("Q", name="see")
    def see(message: Got, qm: QueueManager) -> None:
        with pytest.raises(CallerError) as refused, qm.unit_of_work():
            pass
        told.append(str(refused.value))

    qm.put("Q", b"1")
    heard = worked(qm, tasks)
    assert heard.outcomes == [DONE]
    assert "it is the worker's, which commits it when the function of task see returns" in told[0]
    assert "commit it or back it out first" not in told[0]


# ---- the meaning of an exception for its message


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
def test_the_type_of_an_error_decides_the_outcome_and_the_delay(
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
    """An exception whose text cannot be read."""

    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("no"), "ValueError: no (test_functions.py:"),
        (ValueError("x" * 5_000), f"ValueError: {'x' * 800} (test_functions.py:"),
        (Wordless(), "Wordless: its text cannot be had, RuntimeError (test_functions.py:"),
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
