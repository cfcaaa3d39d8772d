"""What a worker says of its work, and how it becomes lines of a log."""

from __future__ import annotations

import logging
from typing import Any, Final, Literal, NamedTuple

from .attempts import Ended, Outcome

log = logging.getLogger("inorder.work")

LEVELS: Final = {Outcome.DONE: logging.DEBUG, Outcome.DISCARDED: logging.INFO, Outcome.RETURNED: logging.INFO}


class Told(NamedTuple):
    """Something that a worker says.

    Args:
        event: "attempt", one has ended; "stopped", a task has ended by itself; "trouble", a task goes on later.
        task, queue: which task.
        text: what went wrong, in words.
        ended: of an attempt.
        seconds: how long the attempt took.
    """

    event: Literal["attempt", "stopped", "trouble"]
    task: str
    queue: str
    text: str = ""
    ended: Ended | None = None
    seconds: float = 0.0


def in_words(told: Told) -> str:
    """What is told as one line."""
    ended = told.ended
    if ended is None:
        how = "has stopped" if told.event == "stopped" else "is in trouble and goes on later"
        return f"{told.task} {how}: {told.text}"
    which = f"message {ended.message_id.hex()} of {told.queue}, attempt {ended.attempt}, {told.seconds:.3f} s"
    again = f", again in {ended.delay:.1f} s" if ended.outcome in (Outcome.RETRIED, Outcome.OVERDUE) else ""
    return f"{told.task} {ended.outcome.value}: {which}{again}{f': {told.text}' if told.text else ''}"


def as_record(told: Told) -> dict[str, Any]:
    """The same for a program that reads logs."""
    record: dict[str, Any] = {"event": told.event, "task": told.task, "queue": told.queue}
    if told.ended is not None:
        ended = told.ended
        record |= {
            "outcome": ended.outcome.value,
            "message_id": ended.message_id.hex(),
            "group_id": ended.group_id.hex() if any(ended.group_id) else None,
            "attempt": ended.attempt,
            "seconds": round(told.seconds, 6),
            "delay": round(ended.delay, 3) or None,
        }
    return record | {"error": told.text or None}


def to_log(told: Told) -> None:
    """Writes it to the logger `inorder.work`, with the traceback of a function that failed."""
    ended = told.ended
    if ended is None:
        log.log(logging.ERROR if told.event == "stopped" else logging.WARNING, "%s", in_words(told))
        return
    level = LEVELS.get(ended.outcome, logging.WARNING)
    if log.isEnabledFor(level):
        log.log(level, "%s", f"{in_words(told)}\n{ended.trace}" if ended.trace else in_words(told))
