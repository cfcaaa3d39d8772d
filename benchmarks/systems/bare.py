"""The bare statements that our store sends to SQLite to get a whole group, through APSW and nothing else.

The schema and the statements are the store's own, by their names in `queries.sql`, in its transactions and in its
order, with values made ahead as far as possible. The log is synced once for each promise and never for work inside an
open unit of work; it is copied into the file when it is long. Work without groups is compared with `limit.py`.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw

from benchmarks.harness import Cannot
from benchmarks.systems import BODY, System
from inorder.stores.seam.tables import UnitRow
from inorder.stores.sql.records import SqlRecords
from inorder.stores.sql.selection import EVERYTHING, ordered
from inorder.stores.sqlite.statements import SCHEMA, STATEMENTS

BARE = "bare SQLite"
BUSY_MS = 60_000
LOG_PAGES = 4096  # 16 MiB, the limit of our store
QUEUE = 1
UNLOCKED, GET_UNCONFIRMED = 2, 4
RESERVED = 2**40
IN_GROUP, LAST_IN_GROUP = 8, 24
START = {"queue": QUEUE, "rank": -10, "number": 0, "ordinal": 0, "limit": 1}

HERE, DRAW, COUNTED = (
    STATEMENTS["queue state"],
    "SELECT counter, reserved FROM tally WHERE queue = 0",
    STATEMENTS["update queue counters"],
)
ARRIVE, ARRIVE_CONTENT = STATEMENTS["insert message"], STATEMENTS["insert content"]
TAKE_GROUP, HOLD = STATEMENTS["get available of group"], STATEMENTS["hold messages for unit"]
FIRST_WHOLE = ordered(STATEMENTS["available by place"], EVERYTHING, (2,))
SHARES = STATEMENTS["shares of unit"]
REMOVE_CONTENTS_OF_UNIT, REMOVE_OF_UNIT = STATEMENTS["delete contents of unit"], STATEMENTS["delete messages of unit"]


class Noted(SqlRecords):
    """Notes the statement that the store sends for a small record, and does not send it."""

    def __init__(self) -> None:
        self.engine: Any = self
        self.text = ""

    def execute(self, sql: str, values: object) -> list[tuple[Any, ...]]:
        self.text = sql
        return []

    run = execute

    def changes(self) -> int:
        return 0


def sent(call: Callable[[SqlRecords], object]) -> str:
    """Returns the statement that a call sends."""
    noted = Noted()
    call(noted)
    return noted.text


SESSION = UnitRow(0, "session", "", None, 0, "bench", "bench", 0.0)
BEGIN_UNIT = sent(lambda records: records.save(SESSION))
FIND_UNIT = sent(lambda records: records.select(UnitRow, id=0))
END_UNIT = sent(lambda records: records.remove_records(UnitRow, id=0))


class Bare(System):
    """Runs our statements without our Python."""

    name = BARE
    role = "bare"

    def __init__(self, folder: Path, port: int = 0) -> None:
        path = folder / "bare.db"
        self._connection = apsw.Connection(str(path), statementcachesize=256)
        self._connection.set_busy_timeout(BUSY_MS)
        self._connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        self._execute: Callable[..., Any] = self._connection.execute
        self._many: Callable[..., Any] = self._connection.executemany
        self._execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -8192").fetchall()
        self._connection.wal_autocheckpoint(0)
        self._pages = 0
        self._connection.set_wal_hook(self._note_log)
        self._execute("BEGIN IMMEDIATE")
        if not self._execute("SELECT 1 FROM sqlite_schema").fetchall():
            self._execute(SCHEMA).fetchall()
            self._execute("INSERT INTO manager (id, attributes) VALUES (1, '{}')")
            self._execute("INSERT INTO definition VALUES (?, 'BENCH', 'local', '{}', 0, 0)", (QUEUE,))
            self._execute("INSERT INTO tally (queue) VALUES (?)", (QUEUE,))
            self._execute("UPDATE tally SET reserved = ?", (RESERVED,))
        self._execute("COMMIT")
        self._log = os.open(f"{path}-wal", os.O_RDWR)
        self._groups = 0

    def _note_log(self, connection: apsw.Connection, name: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK

    def settings(self) -> str:
        mode = self._connection.pragma("journal_mode")
        synchronous = {1: "NORMAL", 2: "FULL"}[self._connection.pragma("synchronous")]
        return (
            f"SQLite {apsw.sqlite_lib_version()}, APSW {apsw.apsw_version()}, {mode}, synchronous={synchronous}, "
            "fdatasync of the log after each commit that promises"
        )

    def close(self) -> None:
        os.close(self._log)
        self._connection.close()

    @contextlib.contextmanager
    def _transaction(self, *, promises: bool = True) -> Iterator[None]:
        self._execute("BEGIN IMMEDIATE")
        yield
        self._execute("COMMIT")
        if promises:
            os.fdatasync(self._log)
        if self._pages > LOG_PAGES:
            with contextlib.suppress(apsw.BusyError):  # another process is doing it
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def put(self, body: bytes) -> None:
        raise Cannot("whole groups only")

    def get(self) -> None:
        raise Cannot("whole groups only")

    def stock_groups(self, groups: int, members: int) -> None:
        ids = [number.to_bytes(24, "big") for number in range(self._groups + 1, self._groups + groups + 1)]
        self._groups += groups
        for number in range(1, members + 1):
            flags = LAST_IN_GROUP if number == members else IN_GROUP
            with self._transaction():
                self._insert(ids, number, flags)

    def get_group(self) -> None:
        self._settle(self._claim())

    def empty(self) -> None:
        with self._transaction():
            self._execute("DELETE FROM message; DELETE FROM content; UPDATE tally SET depth = 0").fetchall()

    def _here(self) -> int:
        ((counter, *_),) = self._execute(HERE, (QUEUE,)).fetchall()
        return int(counter)

    def _insert(self, groups: Sequence[bytes], sequence: int, flags: int) -> None:
        """Inserts the members with this sequence number of all these groups."""
        counter = self._here()
        ((number, _),) = self._execute(DRAW).fetchall()
        now, head = time.time(), 0 if sequence > 1 else 1
        rows, contents = [], []
        for place, group in enumerate(groups, 1):
            rows.append(
                (number + place, QUEUE, UNLOCKED, 0, counter + place, head, group, sequence, 0, len(BODY), flags, -1,
                 True, 0, None, None, None, None, None, None, now, None, None)
            )  # fmt: skip
            contents.append((number + place, now, None, None, '["bench","bench",6,1208]', 0, BODY))
        self._many(ARRIVE, rows)
        self._many(ARRIVE_CONTENT, contents)
        self._execute(COUNTED, (0, number + len(rows), RESERVED, 0, 0))
        self._execute(COUNTED, (QUEUE, counter + len(rows), RESERVED, len(rows), len(rows)))

    def _claim(self) -> int:
        """Gets the first complete group in a new unit of work."""
        with self._transaction(promises=False):
            counter = self._here()
            first = self._execute(FIRST_WHOLE, START).fetchall()
            if not first:
                raise Cannot("nothing there: the stock is wrong")
            ((_, _, group, *_),) = first
            ids = [row[:1] for row in self._execute(TAKE_GROUP, (QUEUE, group)).fetchall()]
            ((number, _),) = self._execute(DRAW).fetchall()
            unit = int(number) + 1
            # A connection has one unit. Each unit here is of another connection, so no unit must be looked up.
            self._execute(BEGIN_UNIT, SESSION._replace(id=unit, connection=unit, started_at=time.time()))
            self._many(HOLD, [(one, UNLOCKED, GET_UNCONFIRMED, unit) for (one,) in ids])
            self._execute(COUNTED, (0, unit, RESERVED, 0, 0))
            self._execute(COUNTED, (QUEUE, counter, RESERVED, -len(ids), 0))
        return unit

    def _settle(self, unit: int) -> None:
        with self._transaction():
            self._execute(FIND_UNIT, (unit,)).fetchall()
            shares = self._execute(SHARES, (unit,)).fetchall()
            for queue, state, *_ in shares:
                self._here()
                self._execute(REMOVE_CONTENTS_OF_UNIT, (unit, queue, state))
                self._execute(REMOVE_OF_UNIT, (unit, queue, state))
            self._execute(END_UNIT, (unit,))
