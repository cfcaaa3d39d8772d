"""The bare statements: what our store sends to SQLite for each verb, through APSW and nothing else.

The statements are in `bare.sql`, by name. Each method here is one verb: its transactions, and the sequence of
statements in them. The log is synced once for each promise and never for work inside an open unit of work.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import apsw

from benchmarks.harness import Cannot
from benchmarks.systems import BODY, System

BARE = "bare SQLite"
BUSY_MS = 60_000
SYNC: Literal["full", "explicit"] = "explicit"
"""How a promise reaches the disk: by SQLite within its commit, or by our own fdatasync of the log after it."""


def statements_of(text: str) -> dict[str, str]:
    """The named statements of a file: each begins at a line `-- name: NAME`."""
    parts = text.split("-- name: ")[1:]
    return {name.strip(): body.strip() for name, _, body in (part.partition("\n") for part in parts)}


SQL = statements_of(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))


class Bare(System):
    """Our statements without our Python."""

    name = BARE
    role = "bare"

    def __init__(self, folder: Path, port: int = 0) -> None:
        path = folder / "bare.db"
        self._connection = apsw.Connection(str(path))
        self._connection.set_busy_timeout(BUSY_MS)
        self._execute = self._connection.execute
        self._execute("PRAGMA journal_mode = WAL")
        self._execute(f"PRAGMA synchronous = {'FULL' if SYNC == 'full' else 'NORMAL'}")
        self._execute(f"BEGIN IMMEDIATE; {SQL['schema']} COMMIT")
        self._log = os.open(f"{path}-wal", os.O_RDWR)
        self._groups = 0

    def settings(self) -> str:
        mode = self._connection.pragma("journal_mode")
        synchronous = {1: "NORMAL", 2: "FULL"}[self._connection.pragma("synchronous")]
        own = ", fdatasync of the log after each commit that promises" if SYNC == "explicit" else ""
        return f"SQLite {apsw.sqlite_lib_version()}, APSW {apsw.apsw_version()}, {mode}, synchronous={synchronous}{own}"

    def close(self) -> None:
        os.close(self._log)
        self._connection.close()

    @contextlib.contextmanager
    def _transaction(self, *, promises: bool = True) -> Iterator[None]:
        self._execute("BEGIN IMMEDIATE")
        yield
        self._execute("COMMIT")
        if promises and SYNC == "explicit":
            os.fdatasync(self._log)

    # --- the verbs

    def put(self, body: bytes) -> None:
        with self._transaction():
            self._insert([{"body": body}])

    def put_many(self, bodies: Sequence[bytes]) -> None:
        with self._transaction():
            self._insert([{"body": body} for body in bodies])

    def get(self) -> None:
        self.get_many(1)

    def get_many(self, count: int) -> None:
        with self._transaction():
            rows = self._execute(SQL["take_first"], {"count": count}).fetchall()
            self._connection.executemany(SQL["take_content"], [row[:1] for row in rows]).fetchall()
            self._execute(SQL["count_down"], {"count": len(rows)})

    def get_many_in_unit(self, count: int) -> None:
        with self._transaction(promises=False):
            unit = self._begin_unit()
            self._read(self._execute(SQL["claim_first"], {"unit": unit, "count": count}).fetchall())
        self._settle(unit)

    def get_put(self, body: bytes) -> None:
        with self._transaction(promises=False):
            unit = self._begin_unit()
            self._read(self._execute(SQL["claim_first"], {"unit": unit, "count": 1}).fetchall())
        with self._transaction(promises=False):
            self._insert([{"body": body, "unit": unit, "state": 1}])
        self._settle(unit)

    def stock_groups(self, groups: int, members: int) -> None:
        ids = [number.to_bytes(24, "big") for number in range(self._groups + 1, self._groups + groups + 1)]
        self._groups += groups
        for number in range(1, members + 1):
            last = number if number == members else None
            with self._transaction():
                self._insert(
                    [{"body": BODY, "group_id": group, "sequence_number": number, "last": last} for group in ids]
                )

    def get_group(self) -> None:
        with self._transaction(promises=False):
            unit = self._begin_unit()
            ((group,),) = self._execute(SQL["first_whole_group"]).fetchall()
            self._read(self._execute(SQL["claim_group"], {"unit": unit, "group_id": group}).fetchall())
            self._execute(SQL["forget_group"], {"group_id": group})
        self._settle(unit)

    def empty(self) -> None:
        with self._transaction():
            self._execute(SQL["forget_everything"])

    # --- what they share

    def _insert(self, messages: list[dict[str, Any]]) -> None:
        after = self._number(SQL["draw_numbers"], {"count": len(messages)})
        now = time.time_ns()
        rows = [_row(message, number, now) for number, message in enumerate(messages, after - len(messages))]
        self._connection.executemany(SQL["insert_message"], rows)
        self._connection.executemany(SQL["insert_content"], rows)
        self._connection.executemany(SQL["count_member"], [row for row in rows if row["group_id"] is not None])

    def _begin_unit(self) -> int:
        return self._number(SQL["begin_unit"], {"started": time.time_ns()})

    def _number(self, statement: str, values: dict[str, Any]) -> int:
        ((number,),) = self._execute(statement, values).fetchall()
        return cast(int, number)

    def _read(self, rows: list[Any]) -> None:
        if not rows:
            raise Cannot("nothing there: the stock is wrong")
        self._connection.executemany(SQL["read_content"], [row[:1] for row in rows]).fetchall()

    def _settle(self, unit: int) -> None:
        with self._transaction():
            self._execute(SQL["settle_content"], {"unit": unit})
            self._execute(SQL["settle_gets"], {"unit": unit})
            self._execute(SQL["count_down"], {"count": self._connection.changes()})
            self._execute(SQL["settle_puts"], {"unit": unit})
            self._execute(SQL["end_unit"], {"unit": unit})


NO_ID = bytes(24)


def _row(message: dict[str, Any], number: int, now: int) -> dict[str, Any]:
    """What the statements bind for one message."""
    sequence_number = message.get("sequence_number", 1)
    return {
        "number": number,
        "body": message["body"],
        "length": len(message["body"]),
        "unit": message.get("unit"),
        "state": message.get("state", 0),
        "message_id": b"BENCH   " + number.to_bytes(16, "big"),
        "no_id": NO_ID,
        "group_id": message.get("group_id"),
        "sequence_number": sequence_number,
        "is_head": sequence_number == 1,
        "flags": 8 if "group_id" in message else 0,
        "last": message.get("last"),
        "put_time": now,
    }
