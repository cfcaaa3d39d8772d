"""`qm.admin`: administration of a queue manager: its attributes, process definitions, upkeep and stop."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import InorderError, LeaseOver, ObjectExists, UnitNotFound, UnknownObject, bad_argument, written
from ..model.attributes import ManagerAttributes, ManagerKeywords
from ..model.message import UniqueId
from ..model.options import UniqueIds, check_function, check_switch, check_whole, is_path
from ..model.parameters import is_storable
from ..model.process_attributes import (
    SYSTEM_PROCESS,
    ProcessAttributes,
    ProcessKeywords,
    altered_process,
    define_process,
)
from ..stores.seam.definitions import as_text, process_of
from .by_name import by_name
from .namespace import Namespace
from .owners import settle_in_doubt

if TYPE_CHECKING:
    from typing_extensions import Unpack

PROCESS = "process"
STEP_MESSAGES = 1000  # expired ones that a connection discards when it opens, and when it closes
Progress = Callable[[int, int], object]  # parts done, and parts in all
OF_PROGRESS = "a function of two numbers"


class Admin(Namespace):
    """Administration of a queue manager, `qm.admin`.

    To create, alter and delete queues, use the connection itself: `create_queue`, `alter_queue` and `delete_queue`.
    """

    # --- the queue manager

    def manager_attributes(self) -> ManagerAttributes:
        """Returns the attributes of the queue manager."""
        with self._session:
            return self._store.manager()

    def alter_manager(self, **changes: Unpack[ManagerKeywords]) -> None:
        """Changes attributes of the queue manager, for example `max_uncommitted`."""
        with self._session:
            self._store.alter_manager(dict(changes))

    def stop(self) -> None:
        """Stops the queue manager for everyone: waiting calls and all later calls raise 2162."""
        self._session.check()  # no lock: a call that `stop` ends may be waiting on this connection
        self._store.stop()

    # --- process definitions, which name the program that serves a queue (R4.9)

    def create_process(self, name: str, *, exist_ok: bool = False, **attributes: Unpack[ProcessKeywords]) -> None:
        """Creates a process definition: the program that serves a queue.

        A queue refers to it with its attribute `process`; its trigger messages then carry these attributes.

        Args:
            exist_ok: accepts an existing definition of this name if it is the same.
            **attributes: see `inorder.model.process_attributes.ProcessAttributes`.

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
        if self.process(name) is SYSTEM_PROCESS:
            self.create_process(name, exist_ok=True)
        with self._session:
            before = self._store.object(PROCESS, name).attributes
            self._store.alter_object(PROCESS, name, before, as_text(altered_process(process_of(before), **changes)))

    def delete_process(self, name: str) -> None:
        """Deletes a process definition; queues that name it stop triggering. Raises: UnknownObject 2085."""
        with self._session:
            self._store.delete_object(PROCESS, name)

    def process(self, name: str) -> ProcessAttributes:
        """Returns a process definition, also SYSTEM.DEFAULT.PROCESS. Raises: UnknownObject 2085."""
        with self._session:
            try:
                return process_of(self._store.object(PROCESS, name).attributes)
            except UnknownObject:
                if isinstance(name, str) and name == SYSTEM_PROCESS.name:
                    return SYSTEM_PROCESS
                raise

    def processes(self) -> list[ProcessAttributes]:
        """Returns all process definitions, sorted by name."""
        with self._session:
            return [process_of(one.attributes) for one in self._store.objects(PROCESS)]

    # --- messages, locks and leases

    def clear_queue(self, name: str) -> int:
        """Removes all messages of a local queue, locked ones too, as MQSC's CLEAR QLOCAL; returns how many.

        Many messages are removed a few hundred at a time, each step in its own transaction, so that other calls can run
        in between; they may find messages that are not removed yet. Messages that others got or locked meanwhile stay
        theirs, and messages put after the call began stay on the queue. If the call is interrupted, the rest stays.

        Raises: ObjectInUse 2042, the queue is open (this connection's idle default handles do not count);
        QueueNotEmpty 2055, it has messages in units of work; WrongQueueType 2043.
        """
        return self._manager._unhindered(lambda: self._store.clear_queue(name))

    def retry_now(self, name: str, uid: UniqueId | None = None) -> int:
        """Ends the delay of the messages of a queue that wait for their next attempt; returns how many.

        These are the messages that were backed out with a delay, as workers do with failed work. They are available at
        once, in their places and with their backout counts, and waiting calls are woken. Messages in their delivery
        delay stay hidden. The call is not part of a unit of work. (lifecycle B-25)

        Args:
            name: a local queue or an alias of one.
            uid: only the message with this unique id, and the messages of its group that the same back out delayed; 0
                is returned if it does not wait for its next attempt.

        Raises: UnknownQueue 2085; WrongQueueType 2043; ArgumentError, `uid` is not a unique id.
        """
        if uid is not None:
            UniqueIds().check("uid", uid)
        with self._session:
            return self._store.retry_now(name, uid)

    @by_name
    def release_lock(self, queue: str, lock_id: int) -> int:
        """Unlocks all messages that are still locked under a lock id; returns how many. Raises: NotFound."""
        return self._manager._default(queue).internals.release_lock(lock_id)

    def end_lease(self, name: str) -> None:
        """Backs out a lease before its deadline; `name` is its name in `inspect.units`. Raises: LeaseOver 9060."""
        if not isinstance(name, str) or not is_storable(name):
            raise LeaseOver(f"there is no lease {written(name)}", lease=name)
        with self._session:
            self._store.end_lease(name)

    # --- units of work over several queue managers

    def settle_in_doubt(self) -> list[InorderError]:
        """Settles units of work that span several queue managers, at every owner that can be reached.

        It carries out what their programs have decided. A unit without a decision is left alone while its program is
        connected, and then backed out. Connections to owners do this too, when they are made.

        Returns: the errors of the owners that could not settle their parts. A part can also be left without an error:
        for 10 seconds after a unit began, if its owner does not have it; or if it belongs to another user there.
        `inspect.units` has the rest, with the kind "global".

        Rules: K-2.
        """
        with self._session:
            return settle_in_doubt(self._session)

    def forget_in_doubt(self, name: str) -> None:
        """Drops the record of a global unit, without settling its parts at owners; for an owner that is gone.

        A part that is still prepared at its owner stays there until somebody settles it by hand. If it is then settled
        differently from the unit here, the unit is half committed.

        Args:
            name: its name in `inspect.units`.

        Raises: UnitNotFound, there is no such global unit; WrongState, its program is connected and has not decided.
        """
        with self._session:
            found = [one for one in self._store.units() if (one.kind, one.name) == ("global", name)]
            if not found:
                raise UnitNotFound(f"no global unit is named {written(name)}", unit=name)
            self._store.end_global(name, [one.connection for one in found[0].branches])

    # --- upkeep

    def check_store(self) -> None:
        """Checks that the store is still usable; for long-running programs, between their calls.

        Raises: ConnectionClosed 2018; StoreError with `must_reopen`: the store was deleted, replaced or restored, or a
            sync to its disk has failed. This process can use it again after closing it; after a failed sync, all
            processes must close it first.
        """
        self._session.check()
        self._session.services.store.refuse_lost()

    def check(self, progress: Progress | None = None) -> list[str]:
        """Checks the whole store; returns a text for each fault, and an empty list for a sound store.

        It reads the store in parts, each in one transaction, except for the bodies, which it verifies a few at a time.
        Other programs can work between two parts.

        Args:
            progress: called with the number of parts done and of all parts. An exception from it ends the check.

        Damage that makes a part unreadable is reported as a fault, not raised.
        """
        check_function("progress", progress, OF_PROGRESS)
        with self._session:
            found, parts = self._store.check(None)
            for part in range(parts):
                if progress is not None:
                    progress(part, parts)
                found += self._store.check(part)[0]
        if progress is not None:
            progress(parts, parts)
        return found

    def discard_expired(self, limit: int = STEP_MESSAGES) -> int:
        """Discards up to `limit` (from 1) expired messages on all queues; returns how many."""
        check_whole("limit", limit, 1)
        with self._session:
            return self._store.discard_expired(limit)

    def backup(self, path: str | os.PathLike[str], *, replace: bool = False, progress: Progress | None = None) -> None:
        """Copies the queue manager, as it is at one instant, to a file, while programs go on using it.

        `inorder.connect` can open the copy. It contains everything committed before the call. The first open of the
        copy backs out units of work that were open.

        Args:
            path: the copy's path. The file appears there when it is complete and on disk.
            replace: replaces an existing file; otherwise an existing file is refused.
            progress: called with the bytes copied and the bytes in all, every few MiB and at the end. An exception
                from it ends the backup.

        Raises: ArgumentError, the file exists, or is the store itself; CallerError 2298, the queue manager is in
        memory; StoreError, the path cannot be written, or a program has it open; StoreFull 2192.
        """
        if not isinstance(path, str | os.PathLike) or not is_path(path):
            raise bad_argument("path", path, "the path of a file, in UTF-8")
        check_switch("replace", replace)
        check_function("progress", progress, OF_PROGRESS)
        with self._session:
            self._session.services.store.backup(path, replace=replace, progress=progress)
