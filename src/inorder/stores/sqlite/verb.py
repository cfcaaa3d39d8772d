"""One verb as a block: lock, transaction, commit, promise, telling, in this order."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import TYPE_CHECKING

from ...errors import InorderError, QueueManagerStopping, StoreError
from .transaction import SqliteTransaction

if TYPE_CHECKING:
    from .store import SqliteStore


log = logging.getLogger("inorder.stores")


class Verb:
    """A block in which one verb does its work.

    An error of the caller's (`InorderError`) keeps what was done before it was found, as in the memory store: expired
    messages are gone, say. Any other error takes all of it back.

    Others come as soon as it is committed. Only then what was promised is brought to disk, together with what others
    have promised meanwhile, and the block ends.
    """

    __slots__ = ("_store", "_though_stopped", "_transaction", "_writes")

    def __init__(self, store: SqliteStore, writes: bool, though_stopped: bool) -> None:
        self._store, self._writes, self._though_stopped = store, writes, though_stopped

    def __enter__(self) -> SqliteTransaction:
        store = self._store
        store.lock.__enter__()
        try:
            if not self._though_stopped and store.database.stopped:
                raise QueueManagerStopping(f"queue manager {store.codec.name} has been stopped")
            connection = store.database.begin(writes=self._writes)
        except BaseException:
            store.lock.__exit__(None, None, None)
            raise
        self._transaction = SqliteTransaction(store, connection, store.clock.now())
        return self._transaction

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        store, database, transaction = self._store, self._store.database, self._transaction
        try:
            if error is not None and (not isinstance(error, InorderError) or isinstance(error, StoreError)):
                transaction.undo()
                database.abort(error)
                return
            if self._writes:
                self._commit()
            else:
                database.commit()
            ticket = database.ticket
            store.told(transaction)
        finally:
            store.lock.__exit__(None, None, None)
        if transaction.touched():
            store.teller.tell()
        if transaction.durable:
            database.sync(ticket)
        if self._writes and not store.keeps_log:
            try:
                database.tidy_log()
            except StoreError:  # the verb has happened, and says so: the caller would do it once more
                log.exception("the log could not be copied into the database; it grows until it can be")

    def _commit(self) -> None:
        transaction, database = self._transaction, self._store.database
        try:
            transaction.finish()
            for queue in transaction.touched():
                database.note_change(queue)
        except BaseException as error:
            transaction.undo()
            database.abort(error)
            raise
        try:
            database.commit()
        except BaseException:
            transaction.undo()
            raise
