"""Streams that a thread reads or writes, and that end when their task is cancelled."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, Any, cast


class Stopped(Exception):
    """The task was cancelled."""


def guarded(stream: IO[bytes]) -> tuple[IO[bytes], Callable[[], None]]:
    """The stream, and what stops it: from then on each use of it raises `Stopped`."""
    guard = _Guard(stream)
    return cast("IO[bytes]", guard), guard.stop


class _Guard:
    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._is_stopped = stream, False

    def stop(self) -> None:
        self._is_stopped = True

    def __getattr__(self, name: str) -> Any:
        if self._is_stopped:
            raise Stopped
        return getattr(self._stream, name)
