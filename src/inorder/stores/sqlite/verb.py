"""One verb as a block: lock, transaction, commit, promise, telling, in this order."""

from __future__ import annotations

import logging
from types import TracebackType

from ...errors import InorderError, QueueManagerStopping, StoreError
from .home import Home
from .transaction import SqliteTransaction

log = logging.getLogger("inorder.stores")


class Verb:
    """A block in which one verb does its work: all of it, or with an error nothing.

    What has expired is discarded in a step of its own before (`SqliteTransaction.tidy`), which an error of the caller's
    or a condition of the queue leaves as it is.

    Others come as soon as it is committed. Only then what was promised is brought to disk, together with what others
    have promised meanwhile, and the block ends.
    """

    __slots__ = ("_home", "_though_stopped", "_transaction", "_writes")

    def __init__(self, home: Home, *, writes: bool = True, though_stopped: bool = False) -> None:
        self._home, self._writes, self._though_stopped = home, writes, though_stopped

    def __enter__(self) -> SqliteTransaction:
        home = self._home
        home.lock.__enter__()
        try:
            if not self._though_stopped and home.database.stopped:
                raise QueueManagerStopping(f"queue manager {home.codec.name} has been stopped")
            connection = home.database.begin(writes=self._writes)
            try:
                self._transaction = SqliteTransaction(home, connection, home.clock.now())
            except BaseException as error:
                home.database.abort(error)
                raise
        except BaseException:
            home.lock.__exit__(None, None, None)
            raise
        return self._transaction

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        home, database, transaction = self._home, self._home.database, self._transaction
        try:
            if error is None or self._goes_on(error):
                if self._writes:
                    self._commit()
                else:
                    database.commit()
            ticket = database.ticket
            self._tell()
        finally:
            home.lock.__exit__(None, None, None)
        home.teller.tell()
        if transaction.durable:
            database.sync(ticket)
        if error is None and self._writes and not home.keeps_log:
            try:
                database.tidy_log()
            except StoreError:  # the verb has happened, and says so: the caller would do it once more
                log.exception("the log could not be copied into the database; it grows until it can be")

    def _goes_on(self, error: BaseException) -> bool:
        """The verb has failed and is taken back. Whether the transaction has a step of its own, to be committed."""
        transaction, is_ours = self._transaction, isinstance(error, InorderError) and not isinstance(error, StoreError)
        transaction.undo()
        try:
            if is_ours and transaction.return_to_tidied():
                return True
        except BaseException as another:
            self._home.database.abort(another)
            raise
        self._home.database.abort(error)
        return False

    def _tell(self) -> None:
        """What was touched is announced in this process; others see it by themselves."""
        home, transaction = self._home, self._transaction
        touched = transaction.touched()
        if touched or transaction.refused:
            for queue in touched:
                home.seen.own(queue, home.database.seen(queue))
            if home.teller.is_heard or transaction.has_discarded:
                home.teller.add(transaction.changes())

    def _commit(self) -> None:
        transaction, database = self._transaction, self._home.database
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
            if not database.has_happened:
                transaction.undo()
            raise
