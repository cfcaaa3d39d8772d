"""The events that a worker reports, and their lines in a log."""

from __future__ import annotations

import logging
from datetime import datetime, timezone
from typing import Any, Final, Literal, NamedTuple

from .attempts import Ended, Outcome
from .periodic import ScheduledRun

log = logging.getLogger("inorder.work")

LEVELS: Final = {Outcome.DISCARDED: logging.INFO, Outcome.RETURNED: logging.INFO}


class WorkerEvent(NamedTuple):
    """An event of a worker, about a task or a schedule.

    Args:
        kind: "attempt", one has ended; "put", a periodic put; "trouble", it will be retried; "stopped", it has ended by
            itself.
        task, schedule: the name of the one that it is about; the other is empty.
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
        """Whether all went well, so that nobody needs to read it."""
        ended = self.ended
        return self.run is not None or (ended is not None and ended.outcome is Outcome.DONE and not ended.error)


def in_words(event: WorkerEvent) -> str:
    """Writes an event as one line."""
    ended, name = event.ended, event.task or f"schedule {event.schedule}"
    if event.run is not None:
        return f"{name} put to {event.queue} the run due at {_instant(event.run.due)}, {event.seconds:.3f} s late"
    if ended is None:
        how = "has stopped" if event.kind == "stopped" else "is in trouble and will be retried"
        return f"{name} {how}: {event.text}"
    which = f"message {ended.message_id.hex()} of {event.queue}, attempt {ended.attempt}, {event.seconds:.3f} s"
    again = f", again in {ended.delay:.1f} s" if ended.outcome in (Outcome.RETRIED, Outcome.OVERDUE) else ""
    return f"{name} {ended.outcome.value}: {which}{again}{f': {event.text}' if event.text else ''}"


def as_record(event: WorkerEvent) -> dict[str, Any]:
    """Makes a record of an event for programs that read logs."""
    which = {"task": event.task} if event.task else {"schedule": event.schedule}
    record: dict[str, Any] = {"event": event.kind, **which, "queue": event.queue}
    if event.ended is not None:
        ended = event.ended
        record |= {
            "outcome": ended.outcome.value,
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
    ended = event.ended
    if event.run is not None:
        log.info("%s", in_words(event))
    elif ended is None:
        log.log(logging.ERROR if event.kind == "stopped" else logging.WARNING, "%s", in_words(event))
    else:
        level = logging.DEBUG if event.is_fine else LEVELS.get(ended.outcome, logging.WARNING)
        if log.isEnabledFor(level):
            log.log(level, "%s", f"{in_words(event)}\n{ended.trace}" if ended.trace else in_words(event))


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
