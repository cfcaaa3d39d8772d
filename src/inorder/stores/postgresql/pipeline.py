"""Sends statements through libpq's pipeline, without waiting for each answer.

A statement goes into libpq's buffer when it is executed, and to the server when an answer is read. Answers arrive in
the order of the statements. The statements between two `Sync` are one transaction, which the second one commits: no
BEGIN and no COMMIT is sent for it (link.py). If a statement fails, the server rolls back and skips the others up to the
next Sync. The error is raised where its answer is read, at the latest in the wait for that Sync.

Each text is prepared once for the types of its values. An exception from outside may come anywhere; then the pipeline
is out of step with the server, and `recover` reads all outstanding answers, whose number libpq knows.
"""

from __future__ import annotations

import contextlib
import select
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import psycopg
from psycopg import pq, waiting
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.generators import fetch, send

from .faults import is_lost
from .statement import NULL, Kinds, Packer, oids, packers, statement

T = TypeVar("T")

KEPT_STATEMENTS: Final = 1000
KEPT_KINDS: Final = 4000
ON_THEIR_WAY: Final = 500  # the most statements without answers: answers need room
WAKE_SECONDS: Final = 0.1  # between two checks for a signal
WAKE_MS: Final = int(1000 * WAKE_SECONDS)
CANCEL_SECONDS: Final = 5.0

Binary = pq.Format.BINARY
# As numbers: they are compared for each answer.
_FAILED: Final = int(pq.ExecStatus.FATAL_ERROR)
_DONE: Final = int(pq.ExecStatus.COMMAND_OK)
_ROWS: Final = int(pq.ExecStatus.TUPLES_OK)
_SYNC: Final = int(pq.ExecStatus.PIPELINE_SYNC)


class Prepared:
    """A prepared text with the types of its values, and its name on the server."""

    __slots__ = ("formats", "kinds", "loader", "name", "text")

    def __init__(self, text: str, kinds: Kinds, name: bytes) -> None:
        self.text, self.kinds, self.name = text, kinds, name
        self.formats = [Binary] * len(kinds)
        self.loader: Any = None  # a `Transformer` of its rows, from the first of them on


class StatementResult(Iterator[tuple[Any, ...]]):
    """The answer to a statement. Reading it waits for it.

    Attributes:
        is_asked: the server was asked to send it.
        heeds: called with an error of the server, instead of raising it.
        states_what_is_known: a first row that begins with NULL means that a guess about a queue was wrong, which is an
            error here. The server raises none, because it would write it to its log; so its changes must still be
            rolled back.
    """

    _rows: list[tuple[Any, ...]] | None = None
    is_asked = False
    _next = changed = 0
    said = b""
    heeds: Callable[[psycopg.Error], object] | None = None
    states_what_is_known = False

    def __init__(self, pipeline: Pipeline, prepared: Prepared) -> None:
        self._pipeline, self._prepared = pipeline, prepared

    def fetchall(self) -> list[tuple[Any, ...]]:
        rows = self._rows
        if rows is None:
            rows = self._pipeline.wait_for(self)
        return rows[self._next :] if self._next else rows

    @property
    def has_come(self) -> bool:
        """Whether it has arrived, and is not an error."""
        return self._rows is not None

    def state_what_is_known(self) -> None:
        """Sets `states_what_is_known`. Raises: SerializationFailure, if the answer has arrived and says that the guess
        was wrong.
        """
        self.states_what_is_known = True
        _refuse_others(self._rows or ())

    def count(self) -> int:
        """How many rows it has changed or returned."""
        self.fetchall()
        return self.changed

    def __iter__(self) -> StatementResult:
        return self

    def __next__(self) -> tuple[Any, ...]:
        rows = self._rows
        if rows is None:
            rows = self._pipeline.wait_for(self)
        if self._next >= len(rows):
            raise StopIteration
        self._next += 1
        return rows[self._next - 1]

    def take(self, result: pq.abc.PGresult, status: int) -> list[tuple[Any, ...]]:
        """Stores the answer, which has arrived. Raises: psycopg.Error, if it is an error."""
        rows: list[tuple[Any, ...]] = []
        if status == _ROWS:
            if result.ntuples:
                prepared = self._prepared
                loader = prepared.loader
                if loader is None:
                    loader = Transformer(self._pipeline.connection)
                    loader.set_pgresult(result)
                    if not prepared.text.startswith("FETCH"):  # its rows are those of its cursor
                        prepared.loader = loader
                else:
                    loader.set_pgresult(result, set_loaders=False)
                rows = loader.load_rows(0, result.ntuples, tuple)
            self.changed = result.ntuples
            if self.states_what_is_known and self.heeds is None:
                _refuse_others(rows)
        elif status == _DONE:
            self.changed, self.said = result.command_tuples or 0, result.command_status or b""
        elif status == _FAILED:
            error = error_from_result(result)
            if self.heeds is None:
                raise error
            self.heeds(error)
        elif self.heeds is None:  # skipped
            raise psycopg.errors.InFailedSqlTransaction("a statement before this one has failed")
        self._rows = rows
        return rows


class Sync:
    """The point where the server sends all answers so far, and commits statements outside of a transaction.

    Args:
        heeds: called with the error of that commit, instead of raising it.
    """

    __slots__ = ("heeds",)

    def __init__(self, heeds: Callable[[psycopg.Error], object] | None) -> None:
        self.heeds = heeds


class Pipeline:
    """A pipeline; see the module. It serves one thread at a time.

    Attributes:
        in_block: the transaction has begun with BEGIN, so a Sync does not end it.
        is_unasked: statements were or will be sent, and the server was not asked for their answers.
    """

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self.connection, self._pg = connection, connection.pgconn
        self._socket = self._pg.socket
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        self._poll = poll.poll
        self._pending: deque[StatementResult | Prepared | Sync] = deque()  # `Prepared`: it is being prepared
        self._is_out_of_step = False
        self.in_block = False
        self.is_unasked = False
        self._names = 0
        self._by_kinds: dict[tuple[str, Kinds], tuple[Prepared, Sequence[Packer]]] = {}
        self._variants: dict[str, list[Prepared]] = {}
        self.syncs = self.synced = 0  # the numbers of statements sent and answered
        self._pg.enter_pipeline_mode()

    @property
    def is_in_step(self) -> bool:
        """Whether the next answers belong to the statements for which they will be read."""
        return not self._is_out_of_step

    # --- sending

    def execute(self, text: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> StatementResult:
        if self._is_out_of_step:
            self.recover()
        if isinstance(values, dict):
            values = statement(text).values(values)
        kinds = tuple(map(type, values))
        prepared, each = self._by_kinds.get((text, kinds)) or self._find(text, kinds)
        given = [packs(value) for packs, value in zip(each, values)]  # noqa: B905 - as many as kinds
        answer = StatementResult(self, prepared)
        self._is_out_of_step = True
        self._pg.send_query_prepared(prepared.name, given, prepared.formats, Binary)
        self._pending.append(answer)
        self._is_out_of_step, self.is_unasked = False, True
        if len(self._pending) > ON_THEIR_WAY:
            answer.fetchall()
        return answer

    def sync(self, heeds: Callable[[psycopg.Error], object] | None = None) -> int:
        """Sends everything executed so far. The server answers it, and commits it unless BEGIN was sent.

        Returns: a number for `wait_for_sync`.

        Args:
            heeds: see `Sync`.
        """
        if self._is_out_of_step:
            self.recover()
        self._is_out_of_step = True
        self._pg.pipeline_sync()
        self._pending.append(Sync(heeds))
        self.syncs += 1
        if self._pg.flush():
            waiting.wait(send(self._pg), self._socket, WAKE_SECONDS)
        self._is_out_of_step = self.is_unasked = False
        return self.syncs

    def ask(self) -> None:
        """Sends everything executed so far. The server answers it without ending the transaction."""
        if self._is_out_of_step:
            self.recover()
        self._is_out_of_step = True
        self._pg.send_flush_request()
        if self._pg.flush():
            waiting.wait(send(self._pg), self._socket, WAKE_SECONDS)
        self._is_out_of_step = self.is_unasked = False

    def send(self) -> None:
        """Sends as much as the server accepts now. It answers at the next Sync."""
        if not self._is_out_of_step:
            self._is_out_of_step = True
            self._pg.flush()
            self._is_out_of_step = False

    def listen(self) -> bool:
        """Reads the data since the last answer. If the connection has ended, nothing more is sent.

        Returns: whether something has arrived.
        """
        if not self._poll(0):
            return False
        with contextlib.suppress(psycopg.OperationalError):
            while self._poll(0):
                self._pg.consume_input()
        return True

    def _find(self, text: str, kinds: Kinds) -> tuple[Prepared, Sequence[Packer]]:
        """Returns the prepared statement for values of these types; NULL fits every type."""
        variants, given = self._variants.setdefault(text, []), kinds
        for one in variants:
            if all(kind is NULL or kind is known for kind, known in zip(kinds, one.kinds, strict=True)):
                break
        else:
            if variants:
                kinds = tuple(
                    known if kind is NULL else kind for kind, known in zip(kinds, variants[-1].kinds, strict=True)
                )
            one = self._prepare(text, kinds)
        if len(self._by_kinds) >= KEPT_KINDS:
            self._by_kinds.clear()
        found = self._by_kinds[text, given] = one, packers(given)
        return found

    def _prepare(self, text: str, kinds: Kinds) -> Prepared:
        if len(self._variants) > KEPT_STATEMENTS:
            self._forget_oldest()
        self._names += 1
        one = Prepared(text, kinds, b"s%d" % self._names)
        self._is_out_of_step = True
        self._pg.send_prepare(one.name, statement(text).text.encode(), oids(kinds))
        self._pending.append(one)
        self._is_out_of_step = False
        self._variants.setdefault(text, []).append(one)
        return one

    def _forget_oldest(self) -> None:
        text = next(iter(self._variants))
        for one in self._variants.pop(text):
            self._forget(one)
            self._is_out_of_step = True
            self._pg.send_query_params(b"DEALLOCATE " + one.name, None)
            self._pending.append(StatementResult(self, one))
            self._is_out_of_step = False

    def _forget(self, prepared: Prepared) -> None:
        """Removes a statement that the server does not know, or soon will not."""
        variants = self._variants.get(prepared.text, [])
        if prepared in variants:
            variants.remove(prepared)
        self._by_kinds = {key: one for key, one in self._by_kinds.items() if one[0] is not prepared}

    # --- receiving

    def wait_for(self, answer: StatementResult) -> list[tuple[Any, ...]]:
        """Returns the rows of an answer, after all answers before it. Raises: psycopg.Error."""
        if self.is_unasked and not answer.is_asked:
            self.ask()
        rows: list[tuple[Any, ...]] | None = None
        while rows is None:
            if not self._pending:
                raise psycopg.OperationalError("the answer to a statement was lost")
            rows = self._read(answer)
        return rows

    def wait_for_sync(self, number: int) -> None:
        """Returns when everything before a Sync is done. Raises: psycopg.Error."""
        while self.synced < number:
            self._read()

    def wait_for_all(self) -> None:
        """Returns when no answers are outstanding; the transaction continues. Raises: psycopg.Error."""
        self.ask()
        while self._pending:
            self._read()

    def _read(self, wanted: StatementResult | None = None) -> list[tuple[Any, ...]] | None:
        """Reads the next result. Returns its rows, if it is the wanted one.

        Raises: psycopg.Error, if it is an error, or the connection was lost.
        """
        if self._is_out_of_step:
            self.recover()
            raise psycopg.OperationalError("the answer to a statement was lost")
        pg, pending = self._pg, self._pending
        if pg.is_busy():
            self._await()
        self._is_out_of_step = True
        result = pg.get_result()
        status = _FAILED if result is None else result.status
        if result is None or (status == _FAILED and is_lost(error_from_result(result))):
            self.connection.close()  # libpq would notice at the next statement
        if result is None:
            raise psycopg.OperationalError("no answer came")
        awaited = pending.popleft()
        if type(awaited) is Sync:
            if status != _SYNC:
                if awaited.heeds is None:
                    raise error_from_result(result)
                awaited.heeds(error_from_result(result))
                while result is None or result.status != _SYNC:
                    self._await()
                    result = pg.get_result()
            self.synced += 1
            self._is_out_of_step = False
            return None
        pg.get_result()  # none: the end of this statement's results
        self._is_out_of_step = False
        if type(awaited) is StatementResult:
            rows = awaited.take(result, status)
            return rows if awaited is wanted else None
        if status != _DONE:
            assert isinstance(awaited, Prepared)
            self._forget(awaited)
            if status == _FAILED:
                raise error_from_result(result)
        return None

    def _await(self) -> None:
        """Waits until a result can be read. An exception meanwhile changes nothing."""
        pg = self._pg
        while pg.is_busy():
            if self._poll(WAKE_MS):
                pg.consume_input()

    def give_up(self) -> None:
        """Ignores the outstanding answers and their errors."""
        for one in self._pending:
            if isinstance(one, StatementResult):
                one.heeds = one.heeds or _heedless
            elif isinstance(one, Prepared):
                self._forget(one)  # it was skipped after an error

    def recover(self, *, cancels: bool = False) -> None:
        """Reads and discards all outstanding answers, and ends a transaction. Raises: psycopg.Error."""
        pg = self._pg
        self._is_out_of_step = True
        self.give_up()
        if cancels:
            self.connection.cancel_safe(timeout=CANCEL_SECONDS)
        if not self.in_block:  # the Sync would commit the statements so far
            pg.send_query_params(b"BEGIN", None)
            pg.send_query_params(b"ROLLBACK", None)
        pg.pipeline_sync()
        while pg.status == pq.ConnStatus.OK:
            if pg.flush():
                waiting.wait(send(pg), self._socket, WAKE_SECONDS)
            try:
                pg.exit_pipeline_mode()
                break
            except psycopg.OperationalError:  # not yet
                waiting.wait(fetch(pg), self._socket, WAKE_SECONDS)
        self._pending.clear()
        self.synced, self.in_block, self.is_unasked = self.syncs, False, False
        if pg.transaction_status != pq.TransactionStatus.IDLE:
            waiting.wait(_roll_back(pg), self._socket, WAKE_SECONDS)
        pg.enter_pipeline_mode()
        self._is_out_of_step = False

    def outside(self, act: Callable[[], T]) -> T:
        """Runs a block for which the connection must not be in a pipeline."""
        self.wait_for_sync(self.sync())
        self._is_out_of_step = True
        self._pg.exit_pipeline_mode()
        try:
            return act()
        finally:
            self._pg.enter_pipeline_mode()
            self._is_out_of_step = False


def _roll_back(pg: pq.abc.PGconn) -> Any:
    """Rolls the transaction back, outside of the pipeline."""
    pg.send_query(b"ROLLBACK")
    yield from send(pg)
    while (yield from fetch(pg)) is not None:
        pass


def _heedless(_: psycopg.Error) -> None:
    """Ignores an error in an answer for which no caller waits."""


def _refuse_others(rows: Sequence[tuple[Any, ...]]) -> None:
    """Raises: SerializationFailure, if the rows say that a guess about a queue was wrong."""
    if rows and rows[0][0] is None:
        raise psycopg.errors.SerializationFailure("a queue was changed by others")
