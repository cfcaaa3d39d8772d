"""The status and the result of a job."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import dataclass
from typing import Any

import pytest
from tests.helpers.support import LIMIT_SECONDS
from tests.helpers.working import at_work, worked

from inorder import Match, QueueManager, Reason, aio
from inorder.errors import ArgumentError, NoMessageAvailable
from inorder.rules.retries import EARLIER_MAX
from inorder.testing import ManualClock
from inorder.work import (
    Backoff,
    Dead,
    Discard,
    JobError,
    JobFailed,
    JobStatus,
    Outcome,
    Tasks,
    creating,
    results,
    sending,
)
from inorder.work.results import RESULTS, status_of

pytest.importorskip("msgspec", reason="without inorder[work] tasks have no arguments")


@dataclass
class Parcel:
    order: int
    weight: float = 1.5


@pytest.mark.every_store
def test_a_result_is_kept_for_as_long_as_asked_and_put_with_the_commit_of_its_job(
    qm: QueueManager, clock: ManualClock
) -> None:
    tasks, may_end, is_called = Tasks(), threading.Event(), threading.Event()

    @tasks.task
    def pack(order: int) -> Parcel:
        is_called.set()
        assert may_end.wait(LIMIT_SECONDS)
        return Parcel(order)

    began = clock.now()
    job = pack.put(17, qm=qm, keep=60)
    plain = pack.put(18, qm=qm, delay=5)
    assert job.status()[:3] == ("waiting", pack.name, began)
    assert (plain.status().state, plain.status().since) == ("delayed", began + 5)
    with pytest.raises(NoMessageAvailable, match="its state is waiting"):
        job.result()
    with at_work(qm, tasks) as (_, heard):
        assert is_called.wait(LIMIT_SECONDS)
        status = job.status()
        assert (status.state, status.program, status.process is not None) == ("running", qm.inspect.program, True)
        assert qm.depth(RESULTS) == 0
        may_end.set()
        assert job.result(wait=LIMIT_SECONDS) == {"order": 17, "weight": 1.5}
        heard.attempts(1)
    status = pack.job(job.id).status(qm=qm)
    assert (status.state, status.result, status.attempts) == ("done", {"order": 17, "weight": 1.5}, ())
    (reply,) = qm.browse(RESULTS)
    assert (reply.correlation_id, reply.expiry) == (job.message_id, 60)
    clock.advance(61)
    assert [one.outcome for one in tasks.drain(qm)] == [Outcome.DONE]
    assert (job.status().state, plain.status().state, qm.depth(RESULTS)) == ("unknown", "unknown", 0)


@pytest.mark.every_store
def test_failed_attempts_are_recorded_and_the_end_of_a_job_has_its_error_without_a_traceback(
    qm: QueueManager, clock: ManualClock
) -> None:
    tasks = Tasks()

    @tasks.task(attempts=3, backoff=Backoff(first=10, jitter=0), keep=3_600)
    def fail(how: str) -> None:
        if how == "dead":
            raise Dead("nothing: to pack")
        if how == "discard":
            raise Discard("never mind")
        raise ValueError(f"no {how}")

    retried, dead, discarded = (fail.put(how, qm=qm) for how in ("flour", "dead", "discard"))
    tasks.drain(qm)
    status, due = retried.status(), clock.now() + 10
    assert (status.state, status.since, status.error) == ("retrying", due, JobError("ValueError", "no flour"))
    assert [job.status().state for job in (dead, discarded)] == ["dead", "discarded"]
    with pytest.raises(JobFailed, match="is dead: nothing: to pack") as caught:
        dead.result()
    assert (caught.value.reason, caught.value.type, caught.value.why) == (Reason.JOB_FAILED, "", "nothing: to pack")
    for _ in range(2):
        clock.advance(100)
        tasks.drain(qm)
    status = retried.status()
    assert (status.state, status.error) == ("dead", JobError("ValueError", "no flour"))
    assert [(one.number, one.error.text) for one in status.attempts] == [(number, "no flour") for number in (1, 2, 3)]
    (reply,) = qm.browse(RESULTS, match=Match(correlation_id=retried.message_id))
    assert reply.json()["error"] == {"type": "ValueError", "text": "no flour", "reason": "backout_threshold_reached"}
    assert "test_results.py" not in json.dumps(reply.json()), "no traceback, no line of the program"


@pytest.mark.every_store
def test_a_replayed_dead_letter_gets_a_result_and_an_expired_job_is_reported_as_expired(
    qm: QueueManager, clock: ManualClock
) -> None:
    tasks, fails = Tasks(), [True]

    @tasks.task(keep=3_600, dead_on=ValueError)
    def add(number: int) -> int:
        if fails:
            raise ValueError(fails.pop())
        return number + 1

    job, late = add.put(1, qm=qm), add.put(2, qm=qm, delay=1, expiry=5)
    tasks.drain(qm)
    assert job.status().state == "dead"
    qm.dead.replay()
    assert (job.status().state, late.status().state) == ("waiting", "delayed")
    with pytest.raises(NoMessageAvailable):
        job.result()
    tasks.drain(qm)
    assert job.result() == 2
    clock.advance(6)
    qm.depth("TASKS")
    assert [one.status(qm=qm).state for one in (late, add.job(late.id))] == ["expired", "expired"]
    with pytest.raises(JobFailed, match="is expired"):
        late.result()


@pytest.mark.every_store
def test_a_job_that_expires_before_any_result_is_expired_and_leaves_no_dead_letter(
    qm: QueueManager, clock: ManualClock
) -> None:
    tasks = Tasks()

    @tasks.task(keep=3_600)
    def add(number: int) -> int:
        return number + 1

    late = add.put(1, qm=qm, expiry=5)
    clock.advance(6)
    assert tasks.drain(qm) == []
    assert add.job(late.id).status(qm=qm).state == "expired"
    assert list(qm.dead.letters()) == []


async def test_only_the_first_job_of_a_connection_that_may_expire_asks_whether_there_is_a_queue_for_its_end(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks, asked = Tasks(), list[str]()

    def create_queue(qm: QueueManager, name: str, *, create: Any = creating.create_queue) -> None:
        asked.append(name)
        create(qm, name)

    @tasks.task("Q", keep=60)
    def add(number: int) -> int:
        return number + 1

    monkeypatch.setattr(sending, "create_queue", create_queue)
    with qm.connect() as other:
        for connection, count in ((qm, 1), (other, 2), (qm, 2)):
            add.put(1, qm=connection, expiry=5)
            assert asked == [RESULTS] * count
    async with aio.QueueManager(qm.connect, 2) as there:
        await asyncio.gather(*(add.put_async(1, qm=there, expiry=5) for _ in range(2)))
        before = len(asked)
        await add.put_async(1, qm=there, expiry=5)
        assert len(asked) == before


def test_failures_that_use_up_no_attempt_are_not_among_the_attempts_of_a_job(
    qm: QueueManager, clock: ManualClock
) -> None:
    tasks, fails = Tasks(), ["full", "full", "no flour", "full", *["full"] * EARLIER_MAX, "no sugar"]

    @tasks.task(attempts=9, backoff=Backoff(first=10, jitter=0), keep=3_600)
    def carry(qm: QueueManager) -> str:
        if not fails:
            return "carried"
        why = fails.pop(0)
        if why == "full":
            qm.put("NEXT", b"no room")
        raise ValueError(why)

    qm.create_queue("NEXT", put_allowed=False)
    job = carry.put(qm=qm)
    while (state := job.status().state) not in ("done", "dead"):
        assert [one.number for one in job.status().attempts] == list(range(1, len(job.status().attempts) + 1)), state
        tasks.drain(qm)
        clock.advance(100)
    assert (state, [(one.number, one.error.text) for one in job.status().attempts]) == (
        "done",
        [(1, "no flour"), (2, "no sugar")],
    )


def test_a_long_error_keeps_its_type_among_the_earlier_attempts(qm: QueueManager, clock: ManualClock) -> None:
    tasks = Tasks()

    @tasks.task(attempts=2, backoff=Backoff(first=0), keep=3_600)
    def fail() -> None:
        raise ValueError("no flour, " * 100)

    job = fail.put(qm=qm)
    tasks.drain(qm)
    assert [(one.error.type, one.error.text[:8]) for one in job.status().attempts] == [("ValueError", "no flour")] * 2


@pytest.mark.parametrize("value", [object(), {1j: 2}])
def test_a_result_that_cannot_be_json_is_a_dead_letter_if_it_is_to_be_kept(qm: QueueManager, value: object) -> None:
    tasks = Tasks()

    @tasks.task(name="odd")
    def odd(qm: QueueManager) -> object:
        qm.put("Q", b"put")
        return value

    job = odd.put(qm=qm, keep=60)
    odd.put(qm=qm)
    assert [one.outcome for one in tasks.drain(qm)] == [Outcome.DEAD, Outcome.DONE]
    assert (job.status().error or ["none"])[0] == "WrongResult"
    assert qm.depth("Q") == 1


def test_a_job_whose_function_settles_its_unit_has_a_result_if_committed(qm: QueueManager) -> None:
    tasks = Tasks()

    @tasks.task(keep=60)
    def settle(how: str, qm: QueueManager) -> str:
        (qm.commit if how == "commit" else qm.back_out)()
        return how

    committed, undone = settle.put("commit", qm=qm), settle.put("back out", qm=qm)
    with at_work(qm, tasks) as (_, heard):
        heard.attempts(2)
        assert committed.result() == "commit"
    assert undone.status().state != "done"


@pytest.mark.parametrize(("error", "type"), [(ValueError("late"), "ValueError"), (Dead("late"), "")])
def test_a_job_that_fails_after_its_function_has_committed_is_done_and_has_the_error_instead_of_a_result(
    qm: QueueManager, error: Exception, type: str
) -> None:
    tasks = Tasks()

    @tasks.task(keep=60)
    def settle(qm: QueueManager) -> str:
        qm.commit()
        raise error

    job = settle.put(qm=qm)
    assert [one.outcome for one in tasks.drain(qm)] == [Outcome.DONE]
    assert (job.status().state, job.status().error, job.status().result) == ("done", (type, "late"), None)
    with pytest.raises(JobFailed, match=r"is done, but has no result: .*late") as caught:
        job.result()
    assert (caught.value.state, caught.value.type, caught.value.why) == ("done", type, "late")


def test_a_failed_job_becomes_a_dead_letter_even_if_its_reply_queue_is_missing(
    qm: QueueManager, caplog: pytest.LogCaptureFixture
) -> None:
    tasks = Tasks()

    @tasks.task(dead_on=ValueError)
    def fail() -> None:
        raise ValueError

    message = fail.message().replace(reply_to_queue="NONE", properties={"task": fail.name, "job.keep": 60})
    qm.create_queue("TASKS")
    qm.put("TASKS", message)
    assert worked(qm, tasks).outcomes == [Outcome.DEAD]
    assert "could not be put on NONE" in caplog.text


def test_invalid_replies_of_other_programs_are_ignored(qm: QueueManager) -> None:
    tasks = Tasks()

    @tasks.task(keep=60)
    def add(number: int) -> int:
        return number

    job = add.put(1, qm=qm)
    qm.create_queue(RESULTS)
    for body in (b"plain", b"[]", b'{"status":"done"}'):
        qm.put(RESULTS, body, correlation_id=job.message_id)
    assert job.status().state == "waiting"
    tasks.drain(qm)
    qm.put(RESULTS, b"{}", correlation_id=job.message_id)
    assert job.result() == 1


async def test_jobs_of_asyncio_are_awaited_and_expire(qm: QueueManager, clock: ManualClock) -> None:
    tasks = Tasks()

    @tasks.task(keep=60)
    async def double(number: int) -> int:
        return 2 * number

    async with aio.QueueManager(qm.connect, 2) as there:
        job = await double.put_async(4, qm=there)
        assert (await job.status_async()).state == "waiting"
        waits = asyncio.create_task(job.result_async(wait=LIMIT_SECONDS))
        await asyncio.to_thread(tasks.drain, qm)
        assert await waits == 8
        late = await double.put_async(4, qm=there, expiry=5)
        clock.advance(6)
        await asyncio.to_thread(tasks.drain, qm)
        assert (await double.job(late.id).status_async(qm=there)).state == "expired"


def test_a_waiting_sender_gets_the_error_of_a_job_that_dies_without_a_reply(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = Tasks()

    @tasks.task
    def refuse() -> None:
        raise Dead("no")

    def dies_then(*given: Any) -> JobStatus:
        found = status_of(*given)
        tasks.drain(qm)
        return found

    job = refuse.put(qm=qm)
    monkeypatch.setattr(results, "status_of", dies_then)
    with pytest.raises(JobFailed, match="is dead: no"):
        job.result(wait=1e-9)


def test_invalid_ids_and_times_of_jobs_are_refused(qm: QueueManager) -> None:
    tasks = Tasks()

    @tasks.task
    def add(number: int) -> int:
        return number

    for wrong in ("17", b"17", 17, "no", "00" * 24):
        with pytest.raises(ArgumentError, match="the id of a message"):
            add.job(wrong)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="keep"):
        add.put(1, qm=qm, keep=0)
    with pytest.raises(ArgumentError, match="keep"):
        tasks.task("Q", keep=60)(lambda message: None)
