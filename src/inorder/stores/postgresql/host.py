"""The host of a store in PostgreSQL: it holds an advisory lock as its owner lock, and syncs."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import psycopg

from ...errors import CallerError, ConnectionBroken, OutcomeUnknown, Reason, StoreError
from ...support.locks import Bell
from ..engine import points
from ..seam.backend import Peer
from .backend import PostgresBackend
from .checking import PostgresSource, parts
from .faults import replaced, told_as_ours
from .link import Link
from .opening import refuse_upgraded
from .watch import PostgresBell, PostgresWatch

if TYPE_CHECKING:
    from ..engine.process import OpenStore

log = logging.getLogger("inorder.stores")


class PostgresHost:
    """See `backend.Host`.

    Attributes:
        store, watch: the store sets them.
    """

    store: OpenStore
    watch: PostgresWatch

    def __init__(self, link: Link, backend: PostgresBackend) -> None:
        self._link, self._backend = link, backend
        self._number = 0  # of the store; it differs after a restore at the same address
        self.is_closed = False

    # --- the queue manager

    @property
    def stopped(self) -> bool:
        return self._backend.stopped

    @stopped.setter
    def stopped(self, value: bool) -> None:
        self._backend.stop(value)

    def run(self) -> tuple[bool, str, bool]:
        """Inside an operation. A server that has crashed, or was promoted, has emptied the table `run`.

        A restored store has another number than the one that was dumped, as if the machine had been started again.
        """
        refuse_upgraded(self._link)
        execute, sql = self._link.execute, self._backend.sql
        others = [one for (one,) in execute(sql["all processes"])]
        is_start = not any(self.is_alive(one) for one in others)
        ((has_lost, number),) = execute(sql["server has lost changes"]).fetchall()
        if has_lost:
            execute(sql["insert run"])
        if is_start:
            self._backend.stop(False)
        return is_start or has_lost, f"postgresql {number}", has_lost

    def refuse_lost(self) -> None:
        """Raises: StoreError with `must_reopen`, if the store was dropped, perhaps to be restored.

        The server takes care of its files. If the connection is lost, the next call reports it.
        """
        with self.store.lock, contextlib.suppress(ConnectionBroken), told_as_ours(self._link.address):
            self._link.check()
            ((found,),) = self._link.execute(self._backend.sql["store at this address"])
            if found != self._number:
                raise replaced(self._link.address)

    # --- owners

    def own(self, process: int) -> bool:
        self._backend.look_for_leftovers()
        ((is_held, self._number),) = self._link.execute(self._backend.sql["lock own process"], (process,))
        return bool(is_held)

    def disown(self, process: int) -> None:
        if not self._link.is_closed:
            self._link.execute(self._backend.sql["unlock own process"], (process,))

    def is_alive(self, process: int) -> bool:
        """To be called inside an operation."""
        ((is_free,),) = self._link.execute(self._backend.sql["process is dead"], (process,))
        return not is_free

    def process_of(self, process: int) -> int | None:
        """Inside an operation: returns the id of the process on its own machine, which may be another one."""
        return self.peer(process).process

    def peer(self, process: int) -> Peer:
        for found in self._link.execute(self._backend.sql["session of process"], (process,)):
            return Peer(*found)
        return Peer(None, "", None)

    # --- waits

    def attend(self, waiting: int) -> None:
        """Nothing to do: each waiting call has a bell, see `bell`."""

    def looked(self, queue: int, name: str) -> None:
        """Nothing to do: `bell` has recorded the wait before the look."""

    def bell(self, queue: str | None) -> Bell:
        return PostgresBell(self.watch, queue)

    # --- durability

    def commits(self) -> None:
        """Returns None: see `Host.commits`."""

    def is_reservation_open(self) -> bool:
        return False  # reservations are committed synchronously

    def sync(self, ticket: int) -> None:
        if ticket <= self._link.flushed:
            return
        if points.reached:
            points.reached("before-sync")
        with self.store.lock:
            try:
                self._link.check()
                self._link.flush(ticket)
            except (psycopg.Error, ConnectionBroken) as error:
                raise OutcomeUnknown(
                    f"the connection to {self._link.address} was lost before the call's changes were on disk: "
                    "it is not known whether they survive",
                    uids=(),
                ) from error
        if points.reached:
            points.reached("synced")

    @property
    def syncs_quickly(self) -> bool:
        return False

    def make_room(self, *, feeds: bool) -> None:
        """Does nothing: the server's disk is not ours."""

    def hold(self) -> bool:
        return False  # each statement waits for the server

    def let_go(self) -> None:
        """Nothing to do: nothing was held."""

    @property
    def has_more_to_do(self) -> bool:
        return self._backend.has_leftovers

    def after(self, step: Callable[[Callable[[], object]], None]) -> None:
        try:
            if self._backend.has_leftovers:
                self._backend.sweep_all(step)
        except (StoreError, ConnectionBroken, OutcomeUnknown):
            # The operation has happened and must return: after an error the caller would repeat it.
            log.exception("contents of deleted messages could not be removed; a later call will remove them")

    # --- for operators

    def check(self, part: int | None) -> tuple[list[str], int]:
        if part is None:
            return [], len(parts())
        every = parts()
        with self.store.lock:
            return every[part](PostgresSource(self._link)), len(every)

    def backup(
        self, path: str | os.PathLike[str], *, replace: bool, progress: Callable[[int, int], object] | None
    ) -> None:
        raise CallerError(
            f"back up {self._link.address} with PostgreSQL's own tools: pg_dump -n {self._link.address.schema}, or "
            "a base backup with its log",
            reason=Reason.FUNCTION_NOT_SUPPORTED,
        )

    def close(self) -> None:
        self.watch.end()
        self.is_closed = True
        self._link.close()
