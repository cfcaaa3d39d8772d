"""A verdict that a killed worker did not carry out: the next reader carries it out, and calls no function."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.helpers.support import LIMIT_SECONDS
from tests.helpers.working import at_work, dead_letter_queue, worked
from tests.work.test_worker import FINAL

from inorder import Got, Match, QueueManager
from inorder.client.store_transfer import move
from inorder.testing import ManualClock
from inorder.work import Backoff, Dead, Discard, Outcome, Tasks, attempts, failure_of
from inorder.work.tasks import Task

DONE, RETRIED, DISCARDED, DEAD = Outcome.DONE, Outcome.RETRIED, Outcome.DISCARDED, Outcome.DEAD


@pytest.fixture
def tasks(qm: QueueManager) -> Tasks:
    dead_letter_queue(qm)
    return Tasks()


def other() -> Task:
    tasks = Tasks()
    tasks.task("Q", dead_on=UnicodeError, name="other")(lambda given: None)
    return next(iter(tasks))


def give_up(qm: QueueManager, error: Exception, *besides: tuple[str, Match], **wanted: Any) -> None:
    """Backs out the next message, or group, with the verdict of a failed call, as a worker does that is then killed.

    Args:
        besides: other messages that the function got in the same unit of work.
    """
    with qm.unit_of_work() as unit:
        first, *_ = qm.get_group("Q", **wanted)
        for queue, match in besides:
            qm.get(queue, match=match)
        attempts.back_out(unit, first, attempts.judge(other(), error, first.backout_count + 1, 5))


def letters(qm: QueueManager) -> list[tuple[int, str, int]]:
    return [(one.why.reason, one.why.error, one.why.attempts) for one in qm.dead.letters()]


@pytest.mark.parametrize("group", [None, "list"])
@pytest.mark.parametrize(("error", "outcome", "expected"), FINAL)
def test_a_message_that_a_call_has_given_up_is_not_passed_to_a_function_again(
    qm: QueueManager, tasks: Tasks, error: Callable[[], Exception], outcome: Outcome, expected: list[Any], group: Any
) -> None:
    tasks.task("Q", group=group, name="never")(lambda given: pytest.fail(f"{given} was given up"))
    count = 1 if group is None else 3
    if group is None:
        qm.put("Q", b"0")
    else:
        with qm.group("Q") as putting:
            for number in range(count):
                putting.put(b"%d" % number)
    give_up(qm, error())
    heard = worked(qm, tasks)
    assert [(one.ended.outcome, one.ended.attempt) for one in heard.told if one.ended] == [(outcome, 1)]
    assert [qm.depth(queue) for queue in ("Q", "DEAD")] == [0, count * len(expected)]
    assert letters(qm) == expected * count


def test_a_verdict_survives_a_kill_of_the_worker_that_carries_it_out(qm: QueueManager, tasks: Tasks) -> None:
    tasks.task("Q", name="never")(lambda given: pytest.fail(f"{given} was given up"))
    qm.put("Q", b"1")
    give_up(qm, Dead("no such article"))
    lost = qm.connect()
    lost.get("Q", syncpoint=True)
    lost.internals.abandon()
    worked(qm, tasks)
    assert letters(qm) == [(65_536, "no such article", 2)]


def test_only_the_message_of_the_call_is_given_up(qm: QueueManager, tasks: Tasks) -> None:
    """Other messages that its function got, earlier on the same queue or on another one, are tried again."""
    calls = list[bytes]()
    qm.create_queue("OTHER")
    for queue in ("Q", "OTHER"):
        tasks.task(queue, name=queue)(lambda message: calls.append(message.body))
    qm.put("OTHER", b"other")
    for colour in ("blue", "red"):
        qm.put("Q", colour.encode(), properties={"colour": colour})
    red, blue = (Match(selector=f"colour = '{colour}'") for colour in ("red", "blue"))
    give_up(qm, Dead("no such article"), ("Q", blue), ("OTHER", Match()), match=red)
    (failure,) = (failure_of(message) for message in qm.browse("OTHER"))
    assert failure is not None
    assert (failure.error, failure.given_up) == ("no such article", ""), "its unit has failed, no more"
    worked(qm, tasks, 3)
    assert sorted(calls) == [b"blue", b"other"]
    assert [one.message.body for one in qm.dead.letters()] == [b"red"]


def test_a_message_given_up_and_moved_to_another_queue_is_processed_normally(qm: QueueManager, tasks: Tasks) -> None:
    qm.create_queue("NEXT")
    tasks.task("NEXT", name="pack")(lambda message: None)
    qm.put("Q", b"1")
    give_up(qm, Dead("no such article"))
    assert list(move(qm, "Q", qm, "NEXT")) == [1]
    lost = qm.connect()
    lost.get("NEXT", syncpoint=True)  # an attempt there that ended without an error
    lost.internals.abandon()
    heard = worked(qm, tasks)
    assert (heard.outcomes, qm.depth("DEAD")) == ([DONE], 0)


# --- queues with a required order


def test_on_a_queue_with_required_order_a_later_worker_tries_a_given_up_message_once_more(
    qm: QueueManager, tasks: Tasks, clock: ManualClock
) -> None:
    """Such a queue sets nothing aside, not even for Dead: the task stopped, and the function was corrected (B-24)."""
    calls = list[bytes]()
    tasks.task("Q", name="pack")(lambda message: calls.append(message.body))
    qm.alter_queue("Q", read_order="required")
    qm.put("Q", b"1")
    give_up(qm, Dead("no such article"))
    with at_work(qm, tasks) as (worker, heard):  # the clock stands still, so this worker did not begin later
        heard.until(lambda so_far: "stopped" in so_far.events)
        assert worker.wait(LIMIT_SECONDS)
    assert "no such article" in worker.stopped["pack"]
    assert (calls, qm.depth("Q"), qm.depth("DEAD")) == ([], 1, 0)
    clock.advance(1)
    heard = worked(qm, tasks)
    assert (heard.outcomes, qm.depth("Q"), qm.depth("DEAD")) == ([DONE], 0, 0)


def test_an_attempt_is_reported_although_its_message_cannot_become_a_dead_letter(
    qm: QueueManager, tasks: Tasks
) -> None:
    @tasks.task("Q", name="pack")
    def pack(message: Got) -> None:
        raise Dead("no such article")

    qm.alter_queue("Q", read_order="required")
    qm.put("Q", b"1")
    with at_work(qm, tasks) as (worker, heard):
        heard.until(lambda so_far: "stopped" in so_far.events)
        assert worker.wait(LIMIT_SECONDS)
    assert (heard.outcomes, heard.events, heard.told[0].kind) == ([Outcome.RETRIED], ["stopped"], "attempt")
    assert "no such article" in heard.told[0].text
    assert (qm.depth("Q"), qm.depth("DEAD")) == (1, 0)


def test_a_discarded_message_is_removed_although_the_order_is_required(qm: QueueManager, tasks: Tasks) -> None:
    tasks.task("Q", name="never")(lambda message: pytest.fail(f"{message} was given up"))
    qm.alter_queue("Q", read_order="required")
    qm.put("Q", b"1")
    give_up(qm, Discard("old"))
    heard = worked(qm, tasks)
    assert (heard.outcomes, qm.depth("Q"), qm.depth("DEAD")) == ([DISCARDED], 0, 0)


# --- threads


def test_a_thread_that_is_overtaken_leaves_the_report_to_the_other_one(
    qm: QueueManager, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first thread is held after its verdict; meanwhile the second one gets the message."""
    is_dead, calls = threading.Event(), list[bytes]()
    taken_again = attempts.taken_again

    def held(*given: Any) -> list[Got]:
        assert is_dead.wait(LIMIT_SECONDS)
        return taken_again(*given)

    @tasks.task("Q", threads=2, backoff=Backoff(first=0, most=0, jitter=0))
    def pack(message: Got) -> None:
        calls.append(message.body)
        raise Dead("no such article")

    monkeypatch.setattr(attempts, "taken_again", held)
    with at_work(qm, tasks) as (_, heard):
        qm.put("Q", b"1")
        heard.attempts(1)
        assert heard.outcomes == [DEAD]
        is_dead.set()
    assert heard.outcomes == [DEAD], "also after the end of both threads"
    (ended,) = (one.ended for one in heard.told if one.ended is not None)
    assert (ended.attempt, ended.error, ended.reason) == (1, "no such article", 65_536)
    assert calls == [b"1"]
    assert letters(qm) == [(65_536, "no such article", 1)]
