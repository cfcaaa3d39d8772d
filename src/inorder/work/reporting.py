"""The events that a worker reports, and their lines in a log."""

from __future__ import annotations

import logging
import threading
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

from ..rules.dead_letters import reason_name
from .outcomes import Ended, Outcome
from .periodic import ScheduledRun

if TYPE_CHECKING:
    from ..errors import InorderError
    from ..rules.retries import Failure
    from .looping import TaskLoop
    from .tasks import Task

log = logging.getLogger("inorder.work")

CALM: Final = frozenset({Outcome.DISCARDED, Outcome.RETURNED})  # no cause for alarm, though not done


class WorkerEvent(NamedTuple):
    """An event of a worker, about a task or a schedule.

    Args:
        kind: "attempt", one has ended; "put", a periodic put; "trouble", it will be retried; "stopped", it has ended by
            itself.
        task, schedule: the name of its task or schedule; the other is empty.
        queue: the queue that the task works on, or that the schedule puts to.
        text: a description of the error.
        ended: the attempt that has ended.
        run: the periodic put.
        seconds: how long the attempt took; for a periodic put, how late it was.
    """

    kind: Literal["attempt", "put", "trouble", "stopped"]
    queue: str
    task: str = ""
    schedule: str = ""
    text: str = ""
    ended: Ended | None = None
    run: ScheduledRun | None = None
    seconds: float = 0.0

    @property
    def is_fine(self) -> bool:
        """Whether all went well, so that the event needs no attention."""
        ended = self.ended
        return self.run is not None or (ended is not None and ended.outcome is Outcome.DONE and not ended.error)

    @property
    def level(self) -> int:
        """Its level in a log, as in `logging`: info, warning, or error for a task that has stopped."""
        if self.kind == "stopped":
            return logging.ERROR
        is_calm = self.is_fine or (self.ended is not None and self.ended.outcome in CALM)
        return logging.INFO if is_calm else logging.WARNING


class WorkerOfThreads(Protocol):
    """A worker as its threads see it."""

    qm: Any
    ends: threading.Event
    is_worn: bool
    lost: InorderError | None
    stopped: dict[str, str]
    loop: TaskLoop | None
    attempts: int

    def report(self, event: WorkerEvent, *, is_repeated: bool = False) -> None: ...
    def may_try_again(self, task: Task, failure: Failure | None) -> bool: ...
    def stop_task(self, task: Task, why: str) -> None: ...
    def lose_store(self, error: InorderError) -> None: ...
    def replace(self, lane: Any, *, has_ended: bool = False) -> None: ...
    def lane_ends(self) -> None: ...
    def looks_again(self, attempts: int) -> bool: ...


def in_words(event: WorkerEvent) -> str:
    """Writes an event as one line."""
    ended, name = event.ended, event.task or f"schedule {event.schedule}"
    if event.run is not None:
        return f"{name} put to {event.queue} the run due at {_instant(event.run.due)}, {event.seconds:.3f} s late"
    if ended is None:
        how = "has stopped" if event.kind == "stopped" else "is in trouble and will be retried"
        return f"{name} {how}: {event.text}"
    attempt = f", attempt {ended.attempt}" if ended.attempt else ""
    which = f"message {ended.message_id.hex()} of {event.queue}{attempt}, {event.seconds:.3f} s"
    again = f", again in {ended.delay:.1f} s" if ended.delay else ""
    reason = f", {reason_name(ended.reason)}" if ended.reason else ""
    return f"{name} {ended.outcome.value}: {which}{again}{reason}{f': {event.text}' if event.text else ''}"


def as_record(event: WorkerEvent) -> dict[str, Any]:
    """Makes a record of an event for programs that read logs."""
    which = {"task": event.task} if event.task else {"schedule": event.schedule}
    level = logging.getLevelName(event.level).lower()
    record: dict[str, Any] = {"level": level, "event": event.kind, **which, "queue": event.queue}
    if event.ended is not None:
        ended = event.ended
        record |= {
            "outcome": ended.outcome.value,
            "reason": reason_name(ended.reason).lower() if ended.reason else None,
            "message_id": ended.message_id.hex(),
            "group_id": ended.group_id.hex() if any(ended.group_id) else None,
            "attempt": ended.attempt,
            "seconds": round(event.seconds, 6),
            "delay": round(ended.delay, 3) or None,
        }
    if event.run is not None:
        record |= {"due": _instant(event.run.due), "late": round(event.seconds, 6)}
    return record | {"error": event.text or None}


def to_log(event: WorkerEvent) -> None:
    """Writes an event to the logger `inorder.work`, with the traceback of a function that failed."""
    if log.isEnabledFor(event.level):
        trace = f"\n{event.ended.trace}" if event.ended is not None and event.ended.trace else ""
        log.log(event.level, "%s%s", in_words(event), trace)


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
