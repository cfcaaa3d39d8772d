"""The status of a job, and its result if the sender asked for it.

A sender that wants the result names a reply queue and a time in the message of the job: the fields `reply_to_queue` and
`report`, and the property `job.keep`, seconds. The worker puts the reply in the unit of work that got the job. So there
is a reply if and only if the job is done, dead or discarded. It is a JSON object, and expires after that time:

    {"task": "shop.pack", "status": "done", "result": 17, "error": null, "attempts": [], "ended_at": 1795911850.76}

If the function has ended that unit itself, the reply is put afterwards. A function that commits and then fails has done
its job: the reply has its error in place of a result.

Everything else about a job is seen in the store: its message on its queue, in some unit of work, or a dead letter.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import time
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

from ..client.defining import local_attributes
from ..client.manager import QueueManager
from ..client.unit_of_work import UnitOfWork
from ..errors import CallerError, NoMessageAvailable, QueueCondition, UnknownQueue
from ..model.attributes import DEAD_LETTERS
from ..model.kinds import Feedback, MessageType
from ..model.message import Message
from ..model.options import Match
from ..rules.dead_letters import reason_name, why_dead
from ..rules.retries import KEEP, failed_attempts
from .arguments import TaskArguments
from .creating import create_queue
from .outcomes import JobFailed, Outcome

log = logging.getLogger("inorder.work")

RESULTS: Final = "TASKS.RESULTS"  # of senders that name no other queue
PLACE: Final = re.compile(r"(?s)(\w+)(?:: (.*))? \([^()]+:[0-9]+ in [^()]+\)")
State = Literal["waiting", "delayed", "running", "retrying", "done", "dead", "discarded", "expired", "unknown"]
HELD: Final = frozenset({"got", "locked", "claimed"})


class JobError(NamedTuple):
    """An error of a task.

    Args:
        type: the name of the exception; empty: the function decided it (`Dead`), or the call was ended from outside.
        text: the text of the exception.
    """

    type: str
    text: str


class JobAttempt(NamedTuple):
    """An attempt that failed.

    Args:
        number: from 1.
        at: when it failed, seconds since 1970.
    """

    number: int
    at: float
    error: JobError


class JobStatus(NamedTuple):
    """The status of a job.

    Args:
        state: "waiting"; "delayed", until `since`; "running"; "retrying", an attempt has failed and the next one is
            due at `since`; "done", "dead" or "discarded"; "expired", before a call began; "unknown": no message, result
            or dead letter has its id. A job whose result is not kept is unknown once it is done.
        since: when it reached the state, or is due, seconds since 1970; None: not known.
        program: of a running job: the program that runs it.
        process: of a running job: the id of that program's process.
        result: of a job that is done.
        error: of a job that is dead or discarded, or whose last attempt failed; of a job that is done: its function had
            committed its unit of work before it failed, so there is no result.
        attempts: those that failed; all of them if the result is kept, else the last.
    """

    state: State
    task: str = ""
    since: float | None = None
    program: str = ""
    process: int | None = None
    result: Any = None
    error: JobError | None = None
    attempts: Sequence[JobAttempt] = ()

    @property
    def has_ended(self) -> bool:
        """Whether the state is final."""
        return self.state in ("done", "dead", "discarded", "expired")


def job_error(text: str) -> JobError:
    """An error as `attempts.said` writes it, in its parts."""
    found = PLACE.fullmatch(text)
    return JobError("", text) if found is None else JobError(found[1], found[2] or "")


def is_kept(message: Message) -> bool:
    """Whether the sender asks for the result of a job."""
    text = message.properties.text
    return text is not None and KEEP in text and KEEP in message.properties and bool(message.reply_to_queue)


def keep_result(
    qm: QueueManager, unit: UnitOfWork, name: str, arguments: TaskArguments, job: Message, value: object
) -> None:
    """Puts the result of a call, in its unit of work, if the sender asked for it.

    Args:
        name, arguments: the name and the arguments of the task.

    Raises WrongResult if it cannot be JSON; as a put.
    """
    if is_kept(job) and unit.status != "backed out":
        _reply(qm, job, name, "done", arguments.result(value), None)


def keep_end(qm: QueueManager, job: Message, outcome: Outcome, error: str, reason: int) -> None:
    """Puts the end of a job that has no result: in the unit of work that makes it dead or discards it, or after that
    in which it is done.
    """
    if not is_kept(job):
        return
    said = {**job_error(error)._asdict(), "reason": reason_name(reason).lower() if outcome is Outcome.DEAD else None}
    try:
        _reply(qm, job, task_of(job), outcome.value, None, said)
    except (QueueCondition, CallerError) as failure:  # it must not keep the dead letter from being made
        log.warning("the end of job %s could not be put on %s: %s", job.message_id.hex(), job.reply_to_queue, failure)


def _reply(
    qm: QueueManager, job: Message, task: str, status: str, result: object, error: dict[str, Any] | None
) -> None:
    attempts = [{"number": one.number, "at": one.at, "error": one.error._asdict()} for one in attempts_of(job)]
    said = {"task": task, "status": status, "result": result, "error": error, "attempts": attempts}
    body = json.dumps({**said, "ended_at": qm.internals.clock.now()}, ensure_ascii=False, separators=(",", ":"))
    seconds = job.properties[KEEP]
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        raise CallerError(f"the property {KEEP} of a job must be a number of seconds, not {seconds!r:.60}")
    reply = Message(body.encode(), format="MQSTR", coded_character_set_id=1208, expiry=float(seconds))
    try:
        qm.reply(job, reply)
    except UnknownQueue:
        if job.reply_to_queue != RESULTS:
            raise
        create_queue(qm, RESULTS)
        qm.reply(job, reply)


def task_of(message: Message) -> str:
    """The name of the task of a message; empty: it has none."""
    name = message.properties.get("task")
    return name if isinstance(name, str) else ""


def attempts_of(message: Message) -> tuple[JobAttempt, ...]:
    """The failed attempts that are recorded in a message."""
    return tuple(JobAttempt(number, at, job_error(error)) for number, at, error in failed_attempts(message))


# --- for senders


class JobPlace(NamedTuple):
    """Where to look for a job.

    Args:
        message_id: the id of its message.
        queue: the queue of its task.
        results: the queue of its result.
        expires_at: when it expires, seconds since 1970; None: never, or not known.
    """

    message_id: bytes
    queue: str
    results: str = RESULTS
    expires_at: float | None = None


def status_of(qm: QueueManager, job: JobPlace) -> JobStatus:
    """Looks for a job. Raises as `Inspect.look`."""
    for look in (_on_its_queue, _kept, _dead, _on_its_queue, _kept):  # again: it may have moved meanwhile
        found = look(qm, job)
        if found is not None:
            return found
    is_over = job.expires_at is not None and job.expires_at <= qm.internals.clock.now()
    return JobStatus("expired" if is_over else "unknown", since=job.expires_at if is_over else None)


def _on_its_queue(qm: QueueManager, job: JobPlace) -> JobStatus | None:
    view = next(iter(qm.inspect.look(job.queue, match=Match(message_id=job.message_id), most=1)), None)
    if view is None:
        return None
    message, holder = view.message, view.holder
    attempts = attempts_of(message)
    error = attempts[-1].error if attempts else None
    task = task_of(message)
    if view.state in HELD and holder is not None:
        return JobStatus("running", task, holder.since, holder.program.name, holder.process, None, error, attempts)
    if message.backout_count:
        return JobStatus("retrying", task, view.due_at, error=error, attempts=attempts)
    if view.state == "delayed":
        return JobStatus("delayed", task, view.due_at)
    return JobStatus("waiting", task, view.put_at)


def _kept(qm: QueueManager, job: JobPlace) -> JobStatus | None:
    try:
        found = list(qm.browse(job.results, match=Match(correlation_id=job.message_id), read_order="relaxed"))
    except UnknownQueue:
        return None
    ends = [status for status in map(_as_status, found) if status is not None]
    return ends[-1] if ends else None  # a dead letter that was replayed has several


def _as_status(reply: Message) -> JobStatus | None:
    """The status that a reply reports; None: the reply is another program's."""
    if reply.message_type == MessageType.REPORT and reply.feedback == Feedback.EXPIRATION:
        return JobStatus("expired", since=reply.put_at)
    try:
        kept = json.loads(reply.body)
        error = None if kept["error"] is None else JobError(kept["error"]["type"], kept["error"]["text"])
        attempts = tuple(JobAttempt(one["number"], one["at"], JobError(**one["error"])) for one in kept["attempts"])
        state, task, at = kept["status"], kept["task"], kept["ended_at"]
        return JobStatus(state, task, at, result=kept["result"], error=error, attempts=attempts)
    except (KeyError, TypeError, ValueError):
        return None


def _dead(qm: QueueManager, job: JobPlace) -> JobStatus | None:
    own = local_attributes(qm, job.queue).backout_requeue_queue
    places = (own, qm.admin.manager_attributes().dead_letter_queue, DEAD_LETTERS)
    for place in filter(None, places):
        try:
            found = next(iter(qm.browse(place, match=Match(message_id=job.message_id), read_order="relaxed")), None)
        except UnknownQueue:
            continue
        if found is not None:
            why = why_dead(found)
            return JobStatus("dead", task_of(found), why.time, error=job_error(why.error))
    return None


def result_of(qm: QueueManager, job: JobPlace, wait: float) -> Any:
    """The result of a job, which stays on its queue.

    Args:
        wait: seconds.

    Raises NoMessageAvailable if it has none within that time; JobFailed if it has ended without one.
    """
    create_queue(qm, job.results)
    ends, match = time.monotonic() + wait, Match(correlation_id=job.message_id)
    with qm.open(job.results, browse=True) as replies, contextlib.suppress(NoMessageAvailable):
        for _ in replies.browse(match=match, read_order="relaxed"):  # of an attempt to which it was replayed
            pass
        status = status_of(qm, job)
        while not status.has_ended:
            left = max(0.0, ends - time.monotonic())
            reply = replies.browse_next(match=match, wait=left, read_order="relaxed")
            status = _as_status(reply) or status
    if not status.has_ended and wait:
        status = status_of(qm, job)  # it may have ended meanwhile without a reply
    if status.state == "done" and status.error is None:
        return status.result
    if not status.has_ended:
        name = job.message_id.hex()
        raise NoMessageAvailable(
            f"job {name} of {job.queue} has no result: its state is {status.state}", queue=job.queue
        )
    raise failed(job, status)


def failed(job: JobPlace, status: JobStatus) -> JobFailed:
    """The error for a program that waits for the result of a job that has ended without one."""
    error = status.error or JobError("", "")
    why = ": ".join(filter(None, error))
    state = "done, but has no result" if status.state == "done" else status.state
    text = f"job {job.message_id.hex()} of {job.queue} is {state}{f': {why}' if why else ''}"
    return JobFailed(text, queue=job.queue, state=status.state, type=error.type, why=error.text)
