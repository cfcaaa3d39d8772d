"""The host of a store in a file: it holds an owner lock, notices changes by others, and syncs."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable
from pathlib import Path

from ...errors import InorderError
from ...support.forks import began_at
from ...support.locks import Bell
from ..seam.backend import Peer
from ..sql.backend import SqlBackend
from .backup import back_up
from .checking import SqliteSource, parts
from .coordination import STOPPED
from .database import Database
from .watch import SqliteBell, SqliteWatch

log = logging.getLogger("inorder.stores")


class SqliteHost:
    """See `backend.Host`.

    Args:
        keeps_log: never copy the log into the file; for tests of the state after a loss of power.

    Attributes:
        watch: the store sets it.
    """

    watch: SqliteWatch

    def __init__(self, database: Database, backend: SqlBackend, *, keeps_log: bool) -> None:
        self.database, self._backend, self._keeps_log = database, backend, keeps_log
        self.sync, self.refuse_lost = database.sync, database.refuse_lost
        self.disown = database.release_owner
        self.hold, self.let_go = database.keep_turn, database.give_turn

    @property
    def stopped(self) -> bool:
        return bool(self.database.shared.words[STOPPED])

    @stopped.setter
    def stopped(self, value: bool) -> None:
        self.database.shared.stopped = value

    @property
    def is_closed(self) -> bool:
        return self.database.is_closed

    def own(self, process: int) -> bool:
        self._backend.look_for_leftovers()  # earlier processes may have left some
        return self.database.hold_owner(process)

    def is_alive(self, process: int) -> bool:
        return self.database.shared.is_alive(process)

    def process_of(self, process: int) -> int | None:
        return self.database.shared.process_of(process)

    def peer(self, process: int) -> Peer:
        number = self.process_of(process)
        return Peer(number, "", None if number is None else began_at(number))

    def run(self) -> tuple[bool, str, bool]:
        return not self.database.shared.any_owner_alive(), _boot(), self.database.may_have_lost

    def is_reservation_open(self) -> bool:
        return self.database.shared.is_reservation_open

    def commits(self) -> int | None:
        return self.database.shared.commits

    def attend(self, waiting: int) -> None:
        self.watch.attend(waiting)

    def looked(self, queue: int, name: str) -> None:
        self.watch.looked(queue, name)

    def bell(self, queue: str | None) -> Bell:
        return SqliteBell(self.watch, queue)

    @property
    def syncs_quickly(self) -> bool:
        return self.database.shared.syncs_quickly

    def make_room(self, *, feeds: bool) -> None:
        if not self._keeps_log:
            self.database.make_room(feeds=feeds)

    @property
    def has_more_to_do(self) -> bool:
        return self._backend.has_leftovers or (self.database.log.is_long and not self._keeps_log)

    def after(self, step: Callable[[Callable[[], object]], None]) -> None:
        try:
            if self._backend.has_leftovers:
                self._backend.sweep_all(step)
        except InorderError:  # the operation has happened and must return: after an error the caller would repeat it
            self._tell("contents of deleted messages could not be removed; a later call will remove them")
        try:
            if self.database.log.is_long and not self._keeps_log:
                self.database.tidy_log()
        except InorderError:  # as above
            self._tell("the log could not be copied into the database; it grows until that succeeds")

    def _tell(self, trouble: str) -> None:
        """Logs an error, unless another thread has closed the store meanwhile."""
        if not self.database.is_closed:
            log.exception(trouble)

    def check(self, part: int | None) -> tuple[list[str], int]:
        every = parts()
        if part is None:
            return [], len(every)
        with contextlib.closing(self.database.again()) as database:  # a part may take long; others go on meanwhile
            return every[part](SqliteSource(database)), len(every)

    def backup(
        self, path: str | os.PathLike[str], *, replace: bool, progress: Callable[[int, int], object] | None
    ) -> None:
        back_up(self.database, path, replace=replace, progress=progress)

    def close(self) -> None:
        self.watch.end()
        self.database.close()


def _boot() -> str:
    """Returns an id of this machine's present boot; empty if the machine does not provide one."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
