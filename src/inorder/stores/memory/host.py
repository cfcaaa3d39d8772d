"""The host of a store in memory, which has only this process."""

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
        """Never raises: the store is usable as long as its process lives."""

    def disown(self, process: int) -> None:
        """Nothing to do: see `own`."""

    def is_alive(self, process: int) -> bool:
        return True

    def process_of(self, process: int) -> int | None:
        return os.getpid()

    def peer(self, process: int) -> Peer:
        return Peer(os.getpid(), "", began_at(os.getpid()))

    def run(self) -> tuple[bool, str, bool]:
        return True, "memory", False

    def commits(self) -> None:
        """Returns None: see `Host.commits`."""

    def is_reservation_open(self) -> bool:
        return False

    def attend(self, waiting: int) -> None:
        """Nothing to do: no other process can change anything."""

    def looked(self, queue: int, name: str) -> None:
        """Nothing to do, as in `attend`."""

    def bell(self, queue: str | None) -> Bell:
        return Bell()

    def sync(self, ticket: int) -> None:
        """Nothing to do: there is no disk."""

    @property
    def syncs_quickly(self) -> bool:
        return True

    def make_room(self, *, feeds: bool) -> None:
        """Nothing to do: there is no disk."""

    def hold(self) -> bool:
        return True

    def let_go(self) -> None:
        """Nothing to do: there are no other processes."""

    @property
    def has_more_to_do(self) -> bool:
        return False

    def after(self, step: Callable[[Callable[[], object]], None]) -> None:
        """Nothing to do."""

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
        """Marks the store as closed; its memory is freed with the object."""
        self.is_closed = True
