"""The statements of pgmq, the queue extension of PostgreSQL, as its documentation shows them.

A column of the table has the time from which a message is visible. send is an INSERT, pop a DELETE of the first visible
message with SKIP LOCKED, read hides messages for a time, and delete removes them. They do not need the extension.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.systems import System
from benchmarks.systems.postgresql import CREATING, connected, settings_of

SCHEMA = """
CREATE TABLE IF NOT EXISTS q_bench (
    msg_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, read_ct INT DEFAULT 0 NOT NULL,
    enqueued_at TIMESTAMPTZ DEFAULT now() NOT NULL, vt TIMESTAMPTZ NOT NULL, message JSONB
);
CREATE INDEX IF NOT EXISTS q_bench_vt ON q_bench (vt ASC)
"""
SEND = "INSERT INTO q_bench (vt, message) VALUES (clock_timestamp(), %s::text::jsonb) RETURNING msg_id"
SEND_BATCH = "INSERT INTO q_bench (vt, message) SELECT clock_timestamp(), unnest(%s::text[])::jsonb RETURNING msg_id"
VISIBLE = """
WITH cte AS (
    SELECT msg_id FROM q_bench WHERE vt <= clock_timestamp() ORDER BY msg_id ASC LIMIT %s FOR UPDATE SKIP LOCKED
)
"""
POP = f"{VISIBLE} DELETE FROM q_bench WHERE msg_id IN (SELECT msg_id FROM cte) RETURNING *"
READ = f"""
{VISIBLE} UPDATE q_bench m SET vt = clock_timestamp() + interval '30 seconds', read_ct = read_ct + 1 FROM cte
WHERE m.msg_id = cte.msg_id RETURNING m.*
"""
DELETE = "DELETE FROM q_bench WHERE msg_id = ANY (%s) RETURNING msg_id"


class Pgmq(System):
    """send and pop; read and delete for claimed messages."""

    name = "pgmq's statements"
    is_server = True

    def __init__(self, folder: Path, port: int) -> None:
        self._connection = connected(port)
        with self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(%s)", [CREATING])
            self._connection.execute(SCHEMA)

    def settings(self) -> str:
        return settings_of(self._connection)

    def close(self) -> None:
        self._connection.close()

    def put(self, body: bytes) -> None:
        self._connection.execute(SEND, [_json(body)]).fetchall()

    def put_many(self, bodies: Sequence[bytes]) -> None:
        self._connection.execute(SEND_BATCH, [[_json(body) for body in bodies]]).fetchall()

    def get(self) -> None:
        self.get_many(1)

    def get_many(self, count: int) -> None:
        self._connection.execute(POP, [count]).fetchall()

    def get_many_in_unit(self, count: int) -> None:
        rows = self._connection.execute(READ, [count]).fetchall()
        self._connection.execute(DELETE, [[row[0] for row in rows]]).fetchall()

    def empty(self) -> None:
        self._connection.execute("TRUNCATE q_bench")


def _json(body: bytes) -> str:
    return json.dumps({"body": body.decode()})
