"""A history: the calls that a process was about to make, and the promises that it then received.

One file for each process, one line of JSON for each moment: "intent" before a call, "promised" or "refused" after it.
A line is written by one `os.write`, so a killed process loses no line that it has written; a line without its end was
not written. A call with only an intent may have happened or not; so may one that ended as "unknown". A line with "lost"
is the last one of a process that has lost its connection, at an unknown time.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from inorder import InorderError, OrderPending
from inorder.errors import (
    ConnectionBroken,
    NoMessageAvailable,
    NotFound,
    OrderDeadlock,
    OrderSelfBlocked,
    OutcomeUnknown,
    StoreError,
    UnitNotFound,
)

T = TypeVar("T")
Told = dict[str, Any]
Line = dict[str, Any]
Outcome = Literal["promised", "refused", "unknown"]

# The errors with which a call of a proof may be refused. Any other error ends its process, and the proof.
REFUSALS = (NoMessageAvailable, OrderPending, OrderSelfBlocked, OrderDeadlock, NotFound, UnitNotFound)

# Texts of errors about a server to which no connection can be made.
UNREACHABLE = ("cannot be reached", "closed the connection before it was established", "answered, but not as a server")


def nothing(_result: object) -> Told:
    return {}


class History:
    """Writes the history of one process.

    Args:
        path: the file; existing contents stay.
        measure: called at each promise; its result is in the line.
    """

    def __init__(self, path: Path, measure: Callable[[], Told] = dict) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._measure = measure
        self._calls = 0

    def do(self, what: str, act: Callable[[], T], tell: Callable[[T], Told] = nothing, **intent: Any) -> Told | None:
        """Makes a call and records it; returns the promise, or None if it was refused."""
        self._calls += 1
        call = self._calls
        self.write({"call": call, "is": "intent", "what": what, **intent})
        try:
            told = tell(act())
        except REFUSALS as error:
            self.write({"call": call, "is": "refused", "error": reason_of(error)})
            return None
        except OutcomeUnknown as error:
            self.write({"call": call, "is": "unknown", "error": reason_of(error), "lost": True})
            raise
        except InorderError as error:
            if is_loss(error):  # the error says that nothing happened
                self.write({"call": call, "is": "refused", "error": reason_of(error), "lost": True})
            raise
        self.write({"call": call, "is": "promised", **told, **self._measure()})
        return told

    def write(self, line: Line) -> None:
        os.write(self._file, json.dumps({"at": time.monotonic_ns(), **line}).encode() + b"\n")

    def close(self) -> None:
        os.close(self._file)


def is_loss(error: InorderError) -> bool:
    """Whether the error says that the connection is lost, or that there is no server for another one."""
    return isinstance(error, ConnectionBroken | OutcomeUnknown) or (
        type(error) is StoreError and any(said in str(error) for said in UNREACHABLE)
    )


def reason_of(error: InorderError) -> str:
    return f"{type(error).__name__}: {error}"


@dataclass(eq=False)
class Call:
    """A call, as its history records it.

    Args:
        process: the process that made it.
        what: "put", "get", "commit" ...
        intent: the request, as written before the call.
        told: the answer; empty unless promised.
        begun_at, ended_at: nanoseconds of the machine's one monotonic clock; infinite if it has not ended.
        last_at: the last sign of life of the process; if it has lost its connection, the last time at which that
            certainly existed.
    """

    process: str
    what: str
    intent: Line
    begun_at: int
    told: Told = field(default_factory=dict)
    ended_at: float = math.inf
    outcome: Outcome = "unknown"
    last_at: int = 0

    def __str__(self) -> str:
        return f"call {self.intent['call']} of {self.process} ({self.what})"


def read_lines(path: Path) -> list[Line]:
    """The lines of a history; a last one without its end was not written."""
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def calls_of(process: str, lines: Iterable[Line]) -> list[Call]:
    """The calls in these lines, in order."""
    calls: dict[int, Call] = {}
    last_at = 0
    for line in lines:
        if line["is"] == "intent":
            calls[line["call"]] = Call(process, line["what"], line, line["at"])
        else:
            call = calls[line["call"]]
            call.outcome = line["is"]
            call.ended_at = math.inf if call.outcome == "unknown" else line["at"]
            call.told = line if call.outcome == "promised" else {}
        if "lost" in line:
            last_at = max((call.begun_at for call in calls.values() if call.outcome == "promised"), default=0)
        else:
            last_at = line["at"]
    for call in calls.values():
        call.last_at = last_at
    return list(calls.values())


def read_folder(folder: Path) -> list[Call]:
    """The calls of all processes that have a history in a folder."""
    return [call for path in sorted(folder.glob("*.jsonl")) for call in calls_of(path.stem, read_lines(path))]
