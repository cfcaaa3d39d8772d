"""`qm.admin`: what an administrator does to a queue manager; its attributes, process definitions, upkeep, its end."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import LeaseOver, ObjectExists, bad_argument, written
from ..model.attributes import ManagerAttributes, ManagerKeywords
from ..model.options import check_switch, check_whole, is_path
from ..model.parameters import is_storable
from ..model.process_attributes import ProcessAttributes, ProcessKeywords, altered_process, define_process
from ..stores.seam.definitions import as_text, process_of
from . import housekeeping
from .by_name import by_name
from .namespace import Namespace

if TYPE_CHECKING:
    from typing_extensions import Unpack

PROCESS = "process"
Progress = Callable[[int, int], object]  # done, and all there is


class Admin(Namespace):
    """The administration of a queue manager, `qm.admin`.

    Queues of all types are created, altered and deleted by the connection itself: `create_queue`, `alter_queue` and
    `delete_queue`.
    """

    # --- the queue manager

    def manager_attributes(self) -> ManagerAttributes:
        """The queue manager's own attributes."""
        with self._session:
            return self._store.manager()

    def alter_manager(self, **changes: Unpack[ManagerKeywords]) -> None:
        """Changes attributes of the queue manager, for example `max_uncommitted`."""
        with self._session:
            self._store.alter_manager(dict(changes))

    def stop(self) -> None:
        """Stops the queue manager for everyone: calls that wait, and all later ones, end with 2162."""
        self._session.check()  # not more: it may end a call that waits on this connection
        self._store.stop()

    # --- process definitions, which name the program that serves a queue (R4.9)

    def create_process(self, name: str, *, exist_ok: bool = False, **attributes: Unpack[ProcessKeywords]) -> None:
        """Defines what program serves a queue. Attributes: see `inorder.model.process_attributes.ProcessAttributes`.

        A queue names it with its attribute `process`; its trigger messages say then what is defined here.

        Args:
            exist_ok: one of this name that is the same is left as it is.

        Raises: ArgumentError, a bad name or attribute; ObjectExists 2100.
        """
        check_switch("exist_ok", exist_ok)
        wanted = define_process(name, **attributes)
        with self._session:
            try:
                self._store.define_object(PROCESS, name, as_text(wanted))
            except ObjectExists:
                if not (exist_ok and process_of(self._store.object(PROCESS, name).attributes) == wanted):
                    raise

    def alter_process(self, name: str, **changes: Unpack[ProcessKeywords]) -> None:
        """Changes attributes of a process definition. Raises: UnknownObject 2085; ArgumentError."""
        with self._session:
            before = self._store.object(PROCESS, name).attributes
            self._store.alter_object(PROCESS, name, before, as_text(altered_process(process_of(before), **changes)))

    def delete_process(self, name: str) -> None:
        """Deletes a process definition; queues that name it trigger nothing any more. Raises: UnknownObject 2085."""
        with self._session:
            self._store.delete_object(PROCESS, name)

    def process(self, name: str) -> ProcessAttributes:
        """A process definition. Raises: UnknownObject 2085."""
        with self._session:
            return process_of(self._store.object(PROCESS, name).attributes)

    def processes(self) -> list[ProcessAttributes]:
        """All process definitions, by name."""
        with self._session:
            return [process_of(one.attributes) for one in self._store.objects(PROCESS)]

    # --- what queues hold

    def clear_queue(self, name: str) -> int:
        """Removes all messages of a local queue, locked ones too, as MQSC's CLEAR QLOCAL; returns how many.

        Of many messages some hundreds go at a time, each time in a transaction of its own, so that other calls come
        between. Others may then find what is not removed yet. What they have got or locked stays theirs, and what
        is put after the beginning stays on the queue. If the call is interrupted, the rest stays.

        Raises: ObjectInUse 2042, it is open, not counting idle handles of this connection's own calls by name;
        QueueNotEmpty 2055, it has messages in units of work; WrongQueueType 2043.
        """
        return self._manager._unhindered(name, lambda: self._store.clear_queue(name))

    @by_name
    def release_lock(self, queue: str, lock_id: int) -> int:
        """Unlocks all messages that are still locked under a lock id; of how many. Raises: NotFound."""
        return self._manager._default(queue).internals.release_lock(lock_id)

    def end_lease(self, name: str) -> None:
        """Backs out a lease before its deadline; it is named as in `units()`. Raises: LeaseOver 9060, it is over."""
        if not isinstance(name, str) or not is_storable(name):
            raise LeaseOver(f"there is no lease {written(name)}", lease=name)
        with self._session:
            self._store.end_lease(name)

    # --- upkeep

    def check_store(self) -> None:
        """Looks whether the store can be used on; for a program that runs for long, between its calls.

        Raises: ConnectionClosed 2018; StoreError with `must_reopen`: the store was deleted, replaced or restored, or a
            sync to its disk has failed. This process can use it again after it has closed it; after a failed sync, all
            processes must have closed it.
        """
        self._session.check()
        self._session.services.store.refuse_lost()

    def check(self, progress: Progress | None = None) -> list[str]:
        """Everything that is wrong with the store, in words; empty: it is sound.

        It reads everything, each part on one state of it, but for the bodies, which are verified some at a time. Others
        may work between two parts.

        Args:
            progress: called with the parts that are done and all there are. What it raises ends the check.

        What cannot be read for the damage in it is something that is wrong, and no error.
        """
        _check_progress(progress)
        with self._session:
            found, parts = self._store.check(None)
            for part in range(parts):
                if progress is not None:
                    progress(part, parts)
                found += self._store.check(part)[0]
        if progress is not None:
            progress(parts, parts)
        return found

    def discard_expired(self, limit: int = housekeeping.STEP_MESSAGES) -> int:
        """Discards expired messages on all queues, up to `limit`; how many it was."""
        check_whole("limit", limit, 1)
        with self._session:
            return housekeeping.tidy(self._store, limit)

    def backup(self, path: str | os.PathLike[str], *, replace: bool = False, progress: Progress | None = None) -> None:
        """Copies the queue manager to another file as it is at one instant, while all go on using it.

        The copy is a store of its own, which `inorder.connect` opens. What was committed before the call is in it.
        Units of work that are open stay out of it: they are backed out when the copy is first opened.

        Args:
            path: of the copy. It appears there when it is whole and on disk.
            replace: a file that is there is replaced; without it, it is refused.
            progress: called with the bytes copied and the bytes in all, for each few MiB and at the end. What it
                raises ends the backup.

        Raises: ArgumentError, a file is there, or it is the store itself; CallerError 2298, the queue manager is in
        memory; StoreError, the path cannot be written, or somebody has it open; StoreFull 2192.
        """
        if not isinstance(path, str | os.PathLike) or not is_path(path):
            raise bad_argument("path", path, "the path of a file, in UTF-8")
        check_switch("replace", replace)
        _check_progress(progress)
        with self._session:
            self._session.services.store.backup(path, replace=replace, progress=progress)


def _check_progress(progress: Progress | None) -> None:
    if progress is not None and not callable(progress):
        raise bad_argument("progress", progress, "a function of two numbers")
