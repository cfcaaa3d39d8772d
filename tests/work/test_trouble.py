"""Troubles that are not a message's fault use up no attempt: a full disk, a full target, no room for dead letters."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.helpers.support import LIMIT_SECONDS, bodies, until
from tests.helpers.working import Heard, at_work, worked

from inorder import Got, QueueFull, QueueManager, UnitOfWork
from inorder.errors import PutInhibited, StoreFull, UnknownQueue
from inorder.work import Backoff, Dead, Outcome, Tasks, failure_of, lane

DONE, RETRIED, DEAD = Outcome.DONE, Outcome.RETRIED, Outcome.DEAD
AT_ONCE = Backoff(first=0, most=0, jitter=0)


@pytest.fixture
def tasks(qm: QueueManager, monkeypatch: pytest.MonkeyPatch) -> Tasks:
    monkeypatch.setattr(lane, "TROUBLE", Backoff(first=0.01, most=0.01, jitter=0))
    qm.create_queue("NEXT", max_depth=1)
    return Tasks()


def advanced(qm: QueueManager, seconds: float) -> None:
    qm.internals.clock.advance(seconds)  # type: ignore[attr-defined]


def troubles(heard: Heard) -> int:
    return heard.events.count("trouble")


def passing_until(qm: QueueManager, so: Callable[[], bool]) -> None:
    """Advances the clock, for messages that wait, until the condition is met."""

    def is_so() -> bool:
        advanced(qm, 0.02)
        return so()

    until(is_so, "the worker has come to it")


@pytest.mark.every_store
@pytest.mark.parametrize("is_full", [True, False])
def test_a_full_or_inhibited_target_uses_up_no_attempt_for_an_hour(
    qm: QueueManager, tasks: Tasks, is_full: bool
) -> None:
    is_tried, seen = threading.Event(), list[tuple[int, float]]()

    @tasks.task("Q", attempts=2, backoff=AT_ONCE)
    def carry(message: Got, own: QueueManager) -> None:
        failure = failure_of(message)
        seen.append((message.backout_count, 0.0 if failure is None else failure.since))
        is_tried.set()
        own.put("NEXT", message.body)

    if is_full:
        qm.put("NEXT", b"in the way")
    else:
        qm.alter_queue("NEXT", put_allowed=False)
    began = qm.internals.clock.now()
    qm.put("Q", b"1")
    with at_work(qm, tasks) as (_, heard):
        for _ in range(3):
            assert is_tried.wait(LIMIT_SECONDS), heard.told
            is_tried.clear()
            heard.until(lambda so_far: troubles(so_far) == 1)
            passing_until(qm, is_tried.is_set)
        assert {count for count, _ in seen} == {0}
        assert heard.outcomes == []
        assert ("2053" if is_full else "2051") in heard.told[0].text
        advanced(qm, 3_600)
        passing_until(qm, lambda: len(heard.outcomes) == 2)
    assert heard.outcomes == [RETRIED, DEAD]
    assert seen[-1][0] == 1
    assert {since for _, since in seen[1:]} == {began}
    assert troubles(heard) == 1, "the same trouble is said once, not each time"
    (letter,) = qm.dead.letters()
    assert (letter.why.attempts, letter.message.body) == (2, b"1")
    assert ("QueueFull" if is_full else "PutInhibited") in letter.why.error


def test_others_pass_a_message_whose_target_is_full(qm: QueueManager, tasks: Tasks) -> None:
    @tasks.task("Q", backoff=AT_ONCE)
    def carry(message: Got, own: QueueManager) -> None:
        if message.body == b"1":
            own.put("NEXT", message.body)

    qm.put("NEXT", b"in the way")
    qm.put_many("Q", [b"1", b"2", b"3"])
    with at_work(qm, tasks) as (_, heard):
        heard.attempts(2)
        assert heard.outcomes == [DONE, DONE]
        qm.get("NEXT")
        passing_until(qm, lambda: len(heard.outcomes) == 3)
    assert heard.outcomes[-1] is DONE
    assert bodies(qm, "NEXT") == [b"1"]


def test_troubles_that_alternate_are_each_reported_once(qm: QueueManager, tasks: Tasks) -> None:
    calls = list[bytes]()

    @tasks.task("Q")
    def carry(message: Got, own: QueueManager) -> None:
        calls.append(message.body)
        own.put("NEXT" if message.body == b"1" else "SHUT", message.body)

    def have_met_it(times: int) -> bool:
        return len(calls) == 2 * times and not qm.inspect.units()

    qm.put("NEXT", b"in the way")
    qm.create_queue("SHUT", put_allowed=False)
    qm.put_many("Q", [b"1", b"2"])
    with at_work(qm, tasks) as (_, heard):
        until(partial(have_met_it, 1), "each has met its trouble")
        for times in range(2, 5):
            advanced(qm, 1)  # each message waits for its next attempt
            until(partial(have_met_it, times), "each has met its trouble again")
    assert calls == [b"1", b"2"] * 4
    assert sorted(one.text[:12] for one in heard.told) == ["PutInhibited", "QueueFull: N"]


@pytest.mark.parametrize(
    ("error", "how"),
    [
        (QueueFull("NEXT is full"), {"trouble_for": 0}),
        (PutInhibited("NEXT takes nothing"), {"dead_on": PutInhibited}),
        (StoreFull("no room"), {"dead_on": StoreFull}),
        (UnknownQueue("NOWHERE is no queue"), {}),
    ],
)
def test_a_task_may_count_a_full_queue_or_disk_as_an_attempt(
    qm: QueueManager, tasks: Tasks, error: Exception, how: dict[str, Any]
) -> None:
    @tasks.task("Q", attempts=1, backoff=AT_ONCE, **how)
    def carry(message: Got) -> None:
        raise error

    qm.put("Q", b"1")
    heard = worked(qm, tasks)
    assert (heard.outcomes, heard.events) == ([DEAD], [])


@pytest.mark.parametrize("fails", ["the function", "the commit"])
def test_a_full_disk_uses_up_no_attempt_however_long_it_lasts(
    qm: QueueManager, tasks: Tasks, fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, is_full, commit = list[int](), True, UnitOfWork.commit

    def committed(self: UnitOfWork) -> None:
        if is_full and fails == "the commit":
            raise StoreFull("the disk is full")
        commit(self)

    @tasks.task("Q", attempts=1)
    def carry(message: Got, own: QueueManager) -> None:
        nonlocal is_full
        calls.append(message.backout_count)
        is_full = len(calls) < 4
        advanced(qm, 100_000)
        if is_full and fails == "the function":
            raise StoreFull("the disk is full")

    monkeypatch.setattr(UnitOfWork, "commit", committed)
    qm.put("Q", b"1")
    heard = worked(qm, tasks)
    assert (heard.outcomes, calls, qm.depth("Q")) == ([DONE], [0, 0, 0, 0], 0)
    assert heard.told[0].kind == "trouble"
    assert "the disk is full" in heard.told[0].text


def test_a_function_that_backs_its_unit_out_has_used_up_an_attempt_on_a_full_disk_too(
    qm: QueueManager, tasks: Tasks
) -> None:
    @tasks.task("Q", attempts=2, backoff=AT_ONCE)
    def carry(message: Got, own: QueueManager) -> None:
        own.back_out()
        raise StoreFull("the disk is full")

    qm.put("Q", b"1")
    heard = worked(qm, tasks, 3)
    assert (heard.outcomes, heard.events) == ([RETRIED, RETRIED, DEAD], [])


# --- dead letters


@pytest.mark.every_store
def test_without_a_dead_letter_queue_messages_go_to_the_systems_queue(qm: QueueManager, tasks: Tasks) -> None:
    @tasks.task("Q", attempts=1)
    def pack(message: Got) -> None:
        if message.body == b"bad":
            raise ValueError("torn")

    qm.put_many("Q", [b"bad", b"good"])
    with at_work(qm, tasks) as (worker, heard):
        heard.attempts(2)
    assert (heard.outcomes, worker.stopped) == ([DEAD, DONE], {})
    assert bodies(qm, "SYSTEM.DEAD.LETTER.QUEUE") == [b"bad"]
    assert [one.why.error[:16] for one in qm.dead.letters()] == ["ValueError: torn"]
    assert (qm.dead.replay().messages, bodies(qm, "Q")) == (1, [b"bad"])


@pytest.mark.parametrize("verdict", [Dead("torn"), ValueError("torn")])
def test_other_messages_continue_while_there_is_no_room_for_a_dead_letter(
    qm: QueueManager, tasks: Tasks, verdict: Exception
) -> None:
    qm.create_queue("DEAD", put_allowed=False)
    qm.admin.alter_manager(dead_letter_queue="DEAD")

    @tasks.task("Q", attempts=1)
    def pack(message: Got) -> None:
        if message.body == b"bad":
            raise verdict

    qm.put_many("Q", [b"bad", b"good"])
    with at_work(qm, tasks) as (worker, heard):
        heard.attempts(2)
        assert heard.outcomes == [RETRIED, DONE]
        assert "cannot become a dead letter" in next(one.text for one in heard.told if one.kind == "trouble")
        advanced(qm, 60)  # it is tried again, and fails again
        qm.alter_queue("DEAD", put_allowed=True)
        passing_until(qm, lambda: DEAD in heard.outcomes)
    assert worker.stopped == {}
    (letter,) = qm.dead.letters()
    assert (letter.why.attempts, letter.why.error.removeprefix("ValueError: ")[:4]) == (1, "torn")
