"""Workers in threads: units, attempts, dead letters, order, groups, time limits, ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from inorder import Got, QueueManager, Reason
from inorder.errors import ArgumentError, CallerError, ConnectionClosed
from inorder.rules.retries import Failure
from inorder.testing import ManualClock
from inorder.work import Backoff, Dead, Discard, Outcome, Retry, Tasks, failure_of

from ..helpers.support import LIMIT_SECONDS, Call, bodies
from ..helpers.working import at_work, dead_letter_queue, worked

AT_ONCE = Backoff(first=0, most=0, jitter=0)
DONE, RETRIED, DISCARDED, DEAD, OVERDUE, RETURNED = (
    Outcome.DONE, Outcome.RETRIED, Outcome.DISCARDED, Outcome.DEAD, Outcome.OVERDUE, Outcome.RETURNED,
)  # fmt: skip

FINAL: list[tuple[Callable[[], Exception], Outcome, list[Any]]] = [
    (lambda: Discard("old"), DISCARDED, []),
    (lambda: Dead("no such article", reason=70_000), DEAD, [(70_000, "no such article", 1)]),
    (lambda: UnicodeError("no"), DEAD, [(2362, "UnicodeError: no", 1)]),
]


@pytest.fixture
def tasks(qm: QueueManager) -> Tasks:
    dead_letter_queue(qm)
    qm.create_queue("NEXT")
    return Tasks()


def put_group(qm: QueueManager, *given: bytes) -> None:
    with qm.group("Q") as group:
        for body in given:
            group.put(body)


# --- units of work


def test_a_failed_attempt_is_backed_out_and_tried_again(qm: QueueManager, tasks: Tasks) -> None:
    seen = list[tuple[int, str | None]]()

    @tasks.task("Q", backoff=AT_ONCE)
    def pack(message: Got, own: QueueManager) -> None:
        last = failure_of(message)
        seen.append((message.backout_count, last and last.error))
        own.put("NEXT", message.body)
        if message.backout_count < 2:
            raise ValueError(f"no {message.backout_count}")

    qm.put("Q", b"1")
    heard = worked(qm, tasks, 3)
    assert heard.outcomes == [RETRIED, RETRIED, DONE]
    assert [count for count, _ in seen] == [0, 1, 2]
    assert seen[0][1] is None
    assert str(seen[2][1]).startswith("ValueError: no 1 (test_worker.py:")
    assert bodies(qm, "NEXT") == [b"1"]


@pytest.mark.parametrize("error", [SystemExit(1), asyncio.CancelledError()])
def test_a_system_exit_or_a_cancellation_is_an_attempt_and_the_thread_continues(
    qm: QueueManager, tasks: Tasks, error: BaseException
) -> None:
    @tasks.task("Q", backoff=AT_ONCE)
    def pack(message: Got) -> None:
        if not message.backout_count:
            raise error

    qm.put("Q", b"1")
    heard = worked(qm, tasks, 2)
    assert heard.outcomes == [RETRIED, DONE]
    assert heard.told[0].text.startswith(type(error).__name__)


# --- attempts, and the last one


def test_after_its_last_attempt_a_message_is_a_dead_letter_with_all_details(qm: QueueManager, tasks: Tasks) -> None:
    @tasks.task("Q", attempts=3, backoff=AT_ONCE)
    def pack(message: Got, own: QueueManager) -> None:
        own.put("NEXT", message.body)
        raise KeyError("price")

    qm.put("Q", b"1", properties={"colour": "red"})
    heard = worked(qm, tasks, 3)
    assert heard.outcomes == [RETRIED, RETRIED, DEAD]
    assert [qm.depth(queue) for queue in ("Q", "NEXT", "DEAD")] == [0, 0, 1]
    (letter,) = qm.dead.letters()
    why = letter.why
    assert (why.reason, why.queue, why.attempts) == (Reason.BACKOUT_THRESHOLD_REACHED, "Q", 3)
    assert why.error.startswith("KeyError: 'price' (test_worker.py:")
    assert why.time == qm.internals.clock.now()
    assert why.program == "test"
    qm.dead.replay()
    (back,) = qm.browse("Q")
    assert (back.body, dict(back.properties), back.backout_count) == (b"1", {"colour": "red"}, 0)


def test_the_queue_sets_the_number_of_attempts_and_the_queue_of_dead_letters(qm: QueueManager, tasks: Tasks) -> None:
    qm.create_queue("ASIDE")
    qm.create_queue("W", backout_threshold=2, backout_requeue_queue="ASIDE")

    @tasks.task("W", backoff=AT_ONCE)
    def pack(message: Got) -> None:
        raise OSError

    qm.put("W", b"1")
    heard = worked(qm, tasks, 2)
    assert heard.outcomes == [RETRIED, DEAD]
    assert [one.why.attempts for one in qm.dead.letters(dead_letter_queue="ASIDE")] == [2]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "the program ended, or backed out, in the middle of 2 attempts"),
        (["KeyError: 1"], "the program ended, or backed out, in the middle of an attempt; before: KeyError: 1"),
    ],
)
def test_attempts_that_ended_without_an_error_count(
    qm: QueueManager, tasks: Tasks, words: list[str], expected: str
) -> None:
    """These attempts look like kills in mid-attempt; the last error before them stays."""
    qm.put("Q", b"1")
    for word in words:
        with qm.unit_of_work() as unit:
            qm.get("Q")
            unit.back_out(error=word)
    for _ in range(2 - len(words)):
        lost = qm.connect()
        lost.get("Q", syncpoint=True)
        lost.internals.abandon()
    tasks.task("Q", attempts=2, name="never")(lambda message: pytest.fail(f"{message} was tried often enough"))
    heard = worked(qm, tasks)
    assert heard.outcomes == [DEAD]
    (letter,) = qm.dead.letters()
    assert (letter.why.attempts, letter.why.error) == (2, expected)


def test_a_retry_waits_as_long_as_it_says(qm: QueueManager, tasks: Tasks, clock: ManualClock) -> None:
    @tasks.task("Q")
    def pack(message: Got) -> None:
        if not message.backout_count:
            raise Retry("the shop is closed", after=3_600)

    qm.put("Q", b"1")
    with at_work(qm, tasks) as (_, heard):
        heard.attempts(1)
        assert [failure_of(one.message).error for one in qm.inspect.look("Q")] == ["the shop is closed"]  # type: ignore[union-attr]
        assert [one.due_at for one in qm.inspect.look("Q")] == [clock.now() + 3_600]
        clock.advance(3_600)
        heard.attempts(2)
    assert heard.outcomes == [RETRIED, DONE]


@pytest.mark.parametrize(("error", "outcome", "letters"), FINAL)
def test_a_function_may_give_up_or_discard_its_message_at_once(
    qm: QueueManager, tasks: Tasks, error: Callable[[], Exception], outcome: Outcome, letters: list[Any]
) -> None:
    @tasks.task("Q", dead_on=UnicodeError)
    def pack(message: Got, own: QueueManager) -> None:
        own.put("NEXT", message.body)
        raise error()

    qm.put("Q", b"1")
    heard = worked(qm, tasks)
    assert heard.outcomes == [outcome]
    assert [qm.depth(queue) for queue in ("Q", "NEXT", "DEAD")] == [0, 0, len(letters)]
    told = [(one.why.reason, one.why.error.partition(" (test_")[0], one.why.attempts) for one in qm.dead.letters()]
    assert told == letters


# --- order


def test_strict_order_holds_although_attempts_fail(qm: QueueManager, tasks: Tasks) -> None:
    qm.create_queue("S", read_order="strict")
    given = [str(number).encode() for number in range(20)]

    @tasks.task("S", backoff=AT_ONCE)
    def pack(message: Got, own: QueueManager) -> None:
        own.put("NEXT", message.body)
        if int(message.body) % 3 == 0 and message.backout_count < 2:
            raise OSError

    qm.put_many("S", given)
    with at_work(qm, tasks, threads=3) as (_, heard):
        heard.until(lambda heard: heard.outcomes.count(DONE) == len(given))
    assert bodies(qm, "NEXT") == given
    assert heard.outcomes.count(RETRIED) == 14


def test_a_required_order_stops_the_task_and_a_new_worker_tries_once_more(
    qm: QueueManager, tasks: Tasks, clock: ManualClock
) -> None:
    qm.create_queue("S", read_order="required")
    calls = list[bytes]()
    is_mended = False

    @tasks.task("S", attempts=2, backoff=AT_ONCE, name="pack")
    def pack(message: Got) -> None:
        calls.append(message.body)
        if message.body == b"bad" and not is_mended:
            raise OSError("no")

    qm.put_many("S", [b"1", b"bad", b"3"])
    for first, expected in ((True, [b"1", b"bad", b"bad"]), (False, [b"bad"])):
        calls.clear()
        clock.advance(1)
        with at_work(qm, tasks, threads=2) as (worker, heard):
            heard.until(lambda heard: "stopped" in heard.events)
            assert worker.wait(LIMIT_SECONDS), first
        assert calls == expected
        assert "no message may pass message" in worker.stopped["pack"]
        assert "OSError: no" in worker.stopped["pack"]
        assert (bodies(qm, "S"), qm.depth("DEAD")) == ([b"bad", b"3"], 0)
    is_mended = True
    clock.advance(1)
    heard = worked(qm, tasks, 2)
    assert heard.outcomes == [DONE, DONE]


def test_messages_are_processed_in_logical_order_although_attempts_fail(qm: QueueManager, tasks: Tasks) -> None:
    done = list[bytes]()

    @tasks.task("Q", logical=True, backoff=AT_ONCE)
    def see(message: Got) -> None:
        if not message.backout_count:
            raise OSError
        done.append(message.body)

    put_group(qm, b"1", b"2", b"3")
    with at_work(qm, tasks) as (_, heard):
        heard.until(lambda heard: heard.outcomes.count(DONE) == 3)
    assert done == [b"1", b"2", b"3"]


# --- groups


def test_a_group_is_processed_in_one_call(qm: QueueManager, tasks: Tasks) -> None:
    seen = list[list[bytes]]()

    @tasks.task("Q", group="list", attempts=2, backoff=AT_ONCE)
    def pack(messages: list[Got], own: QueueManager) -> None:
        seen.append([one.body for one in messages])
        own.put("NEXT", b"-".join(seen[-1]))
        if b"bad" in seen[-1]:
            raise OSError

    put_group(qm, b"1", b"2")
    put_group(qm, b"3", b"bad", b"4")
    qm.put("Q", b"alone")
    heard = worked(qm, tasks, 4)
    assert sorted(heard.outcomes, key=str) == sorted([DONE, RETRIED, DEAD, DONE], key=str)
    assert sorted(bodies(qm, "NEXT")) == [b"1-2", b"alone"]
    assert [(one.message.body, one.why.attempts) for one in qm.dead.letters()] == [(b"3", 2), (b"bad", 2), (b"4", 2)]
    assert qm.dead.replay().messages == 3
    assert [one.body for one in qm.get_group("Q")] == [b"3", b"bad", b"4"]


def test_a_group_given_as_an_iterator_is_removed_whole_even_if_it_is_not_read(qm: QueueManager, tasks: Tasks) -> None:
    first = list[bytes]()

    @tasks.task("Q", group="iterator")
    def pack(messages: Iterator[Got]) -> None:
        first.append(next(messages).body)

    put_group(qm, b"1", b"2", b"3")
    qm.put("Q", b"alone")
    worked(qm, tasks, 2)
    assert (first, qm.depth("Q")) == ([b"1", b"alone"], 0)


def test_a_group_without_attempts_left_becomes_dead_as_a_whole_without_a_call(qm: QueueManager, tasks: Tasks) -> None:
    put_group(qm, b"1", b"2")
    lost = qm.connect()
    with lost.unit_of_work():
        list(lost.get_group("Q"))
        lost.internals.abandon()
    tasks.task("Q", group="list", attempts=1, name="never")(lambda messages: pytest.fail(f"{messages}"))
    worked(qm, tasks)
    assert [one.message.body for one in qm.dead.letters()] == [b"1", b"2"]


# --- time limits and ends


def test_an_overdue_call_gives_its_message_back_and_has_no_later_effect(qm: QueueManager, tasks: Tasks) -> None:
    goes_on, errors = threading.Event(), list[Exception]()
    has_tried = threading.Event()

    @tasks.task("Q", timeout=1, backoff=AT_ONCE, attempts=100)  # on a slow machine a later call may be overdue too
    def pack(message: Got, own: QueueManager) -> None:
        own.put("NEXT", message.body)
        if message.backout_count:
            return
        assert goes_on.wait(LIMIT_SECONDS)
        try:
            own.put("NEXT", b"late")
        except ConnectionClosed as error:
            errors.append(error)
        has_tried.set()

    qm.put("Q", b"1")
    with at_work(qm, tasks) as (worker, heard):
        heard.until(lambda heard: DONE in heard.outcomes)
        goes_on.set()
        assert has_tried.wait(LIMIT_SECONDS)
        assert not worker.is_worn  # a new thread has replaced the one that is held
    assert heard.outcomes[0] is OVERDUE
    assert "took longer than 1 s" in heard.told[0].text
    assert set(heard.outcomes[1:-1]) <= {OVERDUE}
    assert heard.outcomes[-1] is DONE
    assert len(errors) == 1
    assert bodies(qm, "NEXT") == [b"1"]


@pytest.mark.parametrize("grace", [0, LIMIT_SECONDS])
def test_a_stop_waits_for_calls_and_gives_back_messages_of_those_that_do_not_end(
    qm: QueueManager, tasks: Tasks, grace: float
) -> None:
    began, goes_on = threading.Event(), threading.Event()

    @tasks.task("Q")
    def pack(message: Got, own: QueueManager) -> None:
        own.put("NEXT", message.body)
        began.set()
        assert goes_on.wait(LIMIT_SECONDS)

    qm.put_many("Q", [b"1", b"2"])
    with at_work(qm, tasks) as (worker, heard):
        assert began.wait(LIMIT_SECONDS)
        stop = Call(lambda: worker.stop(grace))
        assert worker.ends.wait(LIMIT_SECONDS)
        if grace:
            goes_on.set()
        assert stop.result() == (0 if grace else 1)
    goes_on.set()
    assert heard.outcomes == [DONE if grace else RETURNED]
    assert [(one.body, one.backout_count) for one in qm.browse("Q")] == [*([] if grace else [(b"1", 1)]), (b"2", 0)]
    assert qm.depth("NEXT") == (1 if grace else 0)


def test_a_grace_time_out_of_its_range_changes_nothing(qm: QueueManager, tasks: Tasks) -> None:
    tasks.task("Q", name="see")(lambda message: None)
    with at_work(qm, tasks) as (worker, heard):
        wrong: list[Any] = [-1, float("nan"), float("inf"), "5", None, True]
        for grace in wrong:
            with pytest.raises(ArgumentError, match="grace"):
                worker.stop(grace)
        qm.put("Q", b"1")
        heard.attempts(1)


def test_a_stopped_queue_manager_ends_the_work(qm: QueueManager, tasks: Tasks) -> None:
    tasks.task("Q", name="see")(lambda message: None)
    with at_work(qm, tasks) as (worker, heard):
        qm.admin.stop()
        heard.until(lambda heard: "stopped" in heard.events)
        assert worker.wait(LIMIT_SECONDS)


def test_a_queue_that_inhibits_gets_is_tried_again(
    qm: QueueManager, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inorder.work.lane.PAUSE_SECONDS", 0.01)
    tasks.task("Q", name="see")(lambda message: None)
    qm.alter_queue("Q", get_allowed=False)
    qm.put("Q", b"1")
    with at_work(qm, tasks) as (_, heard):
        heard.until(lambda heard: "trouble" in heard.events)
        qm.alter_queue("Q", get_allowed=True)
        heard.attempts(1)
    assert heard.events == ["trouble"]
    assert heard.outcomes == [DONE]


def test_observers_get_an_event_for_each_attempt(qm: QueueManager, tasks: Tasks) -> None:
    tasks.task("Q", name="see", attempts=1)(lambda message: 1 / 0)
    events = list[Any]()
    qm.inspect.observe(lambda event: events.append(event) if event.name == "inorder.attempt" else None)
    qm.put("Q", b"1")
    worked(qm, tasks)
    (event,) = events
    assert event.metadata["task"] == "see"
    assert (event.metadata["outcome"], event.metadata["attempt"], event.metadata["queue"]) == ("dead", 1, "Q")
    assert event.metadata["error"].startswith("ZeroDivisionError")
    assert event.measurements["seconds"] >= 0


@pytest.mark.parametrize("error", [OSError, SystemExit])
def test_an_exception_of_the_log_changes_nothing(qm: QueueManager, tasks: Tasks, error: type[BaseException]) -> None:
    def log(told: object) -> None:
        raise error

    done = threading.Event()
    tasks.task("Q", name="see")(lambda message: done.set())
    qm.put("Q", b"1")
    with qm.worker(tasks, log=log):
        assert done.wait(LIMIT_SECONDS)
    assert qm.depth("Q") == 0


# --- refusals


@pytest.mark.parametrize(
    ("named", "argument"),
    [
        ({"queue": "no blanks"}, "queue"),
        ({"name": ""}, "name"),
        ({"group": "set"}, "group"),
        ({"logical": 1}, "logical"),
        ({"read_order": "fast"}, "read_order"),
        ({"match": "x"}, "match"),
        ({"attempts": 0}, "attempts"),
        ({"backoff": 3}, "backoff"),
        ({"timeout": 0}, "timeout"),
        ({"threads": 0}, "threads"),
        ({"dead_on": (KeyError, KeyboardInterrupt)}, "dead_on"),
    ],
)
def test_invalid_options_of_a_task_are_refused(named: dict[str, Any], argument: str) -> None:
    tasks = Tasks()
    with pytest.raises(CallerError, match=argument):
        tasks.task(**{"queue": "Q", **named})
    assert len(tasks) == 0


def _by_name(*, message) -> None:  # type: ignore[no-untyped-def]
    ...


@pytest.mark.parametrize("function", [_by_name, 3])
def test_a_function_that_cannot_be_called_is_refused(function: Any) -> None:
    tasks = Tasks()
    with pytest.raises(ArgumentError, match=r"function|must take a message"):
        tasks.task("Q", name="see")(function)
    assert len(tasks) == 0


@pytest.mark.parametrize(
    "made",
    [
        lambda qm: qm.worker("tasks"),
        lambda qm: qm.worker(Tasks()),
        lambda qm: qm.worker(_one(), threads=0),
        lambda qm: qm.worker(_one(), log=3),
        lambda qm: Retry("x", after=-1),
        lambda qm: Dead("x", reason=2_033),
    ],
)
def test_invalid_arguments_of_a_worker_are_refused(qm: QueueManager, made: Any) -> None:
    with pytest.raises(ArgumentError):
        made(qm)


def test_a_worker_starts_once(qm: QueueManager) -> None:
    with qm.worker(_one()) as worker, pytest.raises(CallerError, match="started before"):
        worker.start()


def _one() -> Tasks:
    tasks = Tasks()
    tasks.task("Q", name="see")(lambda message: None)
    return tasks


def test_an_attempt_with_a_time_in_the_future_counts_as_before_the_worker_began(
    qm: QueueManager, clock: ManualClock
) -> None:
    tasks = Tasks()
    tasks.task("Q", name="work")(lambda message: None)
    task, now = next(iter(tasks)), clock.now()
    assert not qm.worker(tasks).may_try_again(task, Failure("no", now, 1))
    assert qm.worker(tasks).may_try_again(task, Failure("no", now + 365 * 86_400.0, 1))
