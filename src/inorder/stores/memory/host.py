"""What a process with a store in its memory is to others: nobody else is there."""

from __future__ import annotations

import os
from collections.abc import Callable

from ...errors import CallerError, Reason
from ...support.forks import began_at
from ...support.locks import Bell
from ..seam.backend import Peer
from . import checking
from .backend import MemoryBackend


class MemoryHost:
    """One process, and no medium."""

    def __init__(self, backend: MemoryBackend) -> None:
        self.stopped = self.is_closed = False
        self._backend = backend

    def own(self, process: int) -> bool:
        return True  # it lives as long as the store

    def refuse_lost(self) -> None:
        """A store in memory is of use as long as its process lives."""

    def disown(self, process: int) -> None:
        """Nothing: see `own`."""

    def is_alive(self, process: int) -> bool:
        return True

    def process_of(self, process: int) -> int | None:
        return os.getpid()

    def peer(self, process: int) -> Peer:
        return Peer(os.getpid(), "", began_at(os.getpid()))

    def run(self) -> tuple[bool, str, bool]:
        return True, "memory", False

    def is_reservation_open(self) -> bool:
        return False

    def attend(self, waiting: int) -> None:
        """Nobody else is there to change anything."""

    def looked(self, queue: int, name: str) -> None:
        """As with `attend`."""

    def bell(self, queue: str) -> Bell:
        return Bell()

    def sync(self, ticket: int) -> None:
        """There is no disk."""

    @property
    def syncs_quickly(self) -> bool:
        return True

    def make_room(self, *, feeds: bool) -> None:
        """There is no disk."""

    def hold(self) -> bool:
        return True

    def let_go(self) -> None:
        """Nobody else is there."""

    @property
    def has_more_to_do(self) -> bool:
        return False

    def after(self, step: Callable[[Callable[[], object]], None]) -> None:
        """Nothing is left to do."""

    def check(self, part: int | None) -> tuple[list[str], int]:
        return ([] if part is None else checking.problems(self._backend)), 1

    def backup(
        self, path: str | os.PathLike[str], *, replace: bool, progress: Callable[[int, int], object] | None
    ) -> None:
        raise CallerError(
            "a queue manager in memory cannot be backed up: connect to a file for one that can",
            reason=Reason.FUNCTION_NOT_SUPPORTED,
        )

    def close(self) -> None:
        """What is in memory goes with the object."""
        self.is_closed = True
