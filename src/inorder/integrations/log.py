"""Writes events as lines of a log, with Python's own logging; needs nothing else.

Each line is short, and has the event as `record.event`, for handlers that write more than text.
"""

from __future__ import annotations

import logging
from typing import Final

from ..client.manager import QueueManager
from ..model.parameters import NONE, Seconds
from ..stores.seam.telemetry import Observation, StoreEvent

SHOWN: Final = ("queue", "unit", "outcome", "application", "name", "act", "program")  # keys that are shown in the line


def log_events(
    manager: QueueManager,
    logger: logging.Logger | None = None,
    *,
    level: int = logging.DEBUG,
    failed_level: int = logging.WARNING,
    slow_seconds: float | None = None,
) -> Observation:
    """Logs each event of the store of a connection, until it is cancelled.

    Args:
        logger: the logger; default: "inorder.store".
        level: the level of most lines. Lines below the logger's level cost little.
        failed_level: the level for calls that failed, and connections that died.
        slow_seconds: calls that take longer, without waits, get `failed_level` too; None: none do.

    Raises ArgumentError.
    """
    Seconds(also=NONE).check("slow_seconds", slow_seconds)
    to = logger or logging.getLogger("inorder.store")

    def write(event: StoreEvent) -> None:
        is_slow = slow_seconds is not None and event.measurements.get("seconds", 0.0) > slow_seconds
        matters = event.metadata.get("completion") == "failed" or event.name == "inorder.dead_connection"
        chosen = failed_level if (is_slow and event.name != "inorder.wait_ended") or matters else level
        if to.isEnabledFor(chosen):
            to.log(chosen, "%s", text_of(event), extra={"event": event})

    return manager.inspect.observe(write)


def text_of(event: StoreEvent) -> str:
    """The event in one line: ``inorder.put queue='ORDERS' messages=2 bytes=8 seconds=0.000113``."""
    # With repr, so that no name of a queue or a program can start a new line or control a terminal.
    words = [f"{key}={event.metadata[key]!r}" for key in SHOWN if event.metadata.get(key)]
    words += [f"{key}={value:.6f}" if key == "seconds" else f"{key}={value}" for key, value in _ordered(event)]
    if event.metadata.get("completion") == "failed":
        words.append(f"failed: {event.metadata['reason']} {event.metadata['reason_name']} ({event.metadata['error']})")
    return " ".join([event.name, *words])


def _ordered(event: StoreEvent) -> list[tuple[str, float]]:
    return sorted(event.measurements.items(), key=lambda item: item[0] == "seconds")
