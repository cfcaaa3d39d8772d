"""Systems whose processes wait for each other: one way, and there and back.

A talker is one queue, or two, that a process at each end uses. A durable talker has each message on disk before its put
returns; others may lose messages in a power failure.
"""

from __future__ import annotations

import contextlib
import os
import select
from abc import ABC, abstractmethod
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import inorder
from benchmarks.harness import Role
from benchmarks.systems.ours import OURS, open_store, settings_of

ID_BYTES = 24


class Talker(ABC):
    """One end of a conversation. The folder is for embedded systems, the port for servers."""

    name: ClassVar[str]
    server: ClassVar[str | None] = None  # its name as a system, if it is a server
    role: ClassVar[Role] = "peer"
    durable: ClassVar[bool] = True

    @abstractmethod
    def __init__(self, folder: Path, port: int) -> None: ...

    @abstractmethod
    def settings(self) -> str:
        """The version, and the settings that make a message durable."""

    @abstractmethod
    def close(self) -> None: ...

    @contextlib.contextmanager
    def measured(self) -> Iterator[None]:
        """Surrounds the measurement, at one end: sets options of a server that other talkers share."""
        yield

    @abstractmethod
    def send(self, body: bytes) -> None:
        """Puts a message."""

    @abstractmethod
    def receive(self, seconds: float) -> bytes | None:
        """Removes the first message, as soon as there is one. Returns None if none came in time."""

    @abstractmethod
    def ask(self, body: bytes, seconds: float) -> bytes | None:
        """Puts a request and waits for its reply. Returns None if none came in time."""

    @abstractmethod
    def answer(self, seconds: float) -> bool:
        """Takes a request, as soon as there is one, and replies with its body. Returns whether one came in time."""


class Ours(Talker):
    """`inorder` finds the reply by its correlation id."""

    name = OURS
    role: ClassVar[Role] = "ours"

    def __init__(self, folder: Path, port: int = 0) -> None:
        self._stack = contextlib.ExitStack()
        self._qm = self._stack.enter_context(open_store(folder))
        for queue in ("ONE.WAY", "REQUESTS", "REPLIES"):
            with contextlib.suppress(inorder.ObjectExists):
                self._qm.create_queue(queue, default_persistence=self.durable)

    def settings(self) -> str:
        return settings_of(self._qm) + ("" if self.durable else "; messages that are not persistent")

    def close(self) -> None:
        self._stack.close()

    def send(self, body: bytes) -> None:
        self._qm.put("ONE.WAY", body)

    def receive(self, seconds: float) -> bytes | None:
        try:
            return self._qm.get("ONE.WAY", wait=seconds).body
        except inorder.NoMessageAvailable:
            return None

    def ask(self, body: bytes, seconds: float) -> bytes | None:
        own = os.urandom(ID_BYTES)
        self._qm.put("REQUESTS", body, correlation_id=own)
        try:
            return self._qm.get("REPLIES", match=inorder.Match(correlation_id=own), wait=seconds).body
        except inorder.NoMessageAvailable:
            return None

    def answer(self, seconds: float) -> bool:
        try:
            asked = self._qm.get("REQUESTS", wait=seconds)
        except inorder.NoMessageAvailable:
            return False
        self._qm.put("REPLIES", asked.body, correlation_id=asked.correlation_id)
        return True


class OursNotPersistent(Ours):
    """The same with messages that are not persistent."""

    name, durable = f"{OURS}, not persistent", False
    role: ClassVar[Role] = "volatile"


class Redis(Talker):
    """Redis with RPUSH and BLPOP, and a separate list for each reply."""

    name, server = "Redis lists", "Redis Streams"

    def __init__(self, folder: Path, port: int) -> None:
        redis = import_module("redis")  # only this peer needs the client

        self._redis: Any = redis.Redis(host="127.0.0.1", port=port, socket_timeout=None)  # BLPOP has its own
        self._client = redis.__version__

    def settings(self) -> str:
        return (
            f"Redis {self._redis.info('server')['redis_version']}, redis-py {self._client}, appendonly yes, "
            f"appendfsync {self._syncs}"
        )

    @property
    def _syncs(self) -> str:
        return "always" if self.durable else "no"

    def close(self) -> None:
        self._redis.close()

    @contextlib.contextmanager
    def measured(self) -> Iterator[None]:
        before = self._redis.config_get("appendfsync")["appendfsync"]
        self._redis.config_set("appendfsync", self._syncs)
        try:
            yield
        finally:
            self._redis.config_set("appendfsync", before)

    def send(self, body: bytes) -> None:
        self._redis.rpush("one way", body)

    def receive(self, seconds: float) -> bytes | None:
        return self._first("one way", seconds)

    def ask(self, body: bytes, seconds: float) -> bytes | None:
        own = os.urandom(ID_BYTES)
        self._redis.rpush("requests", own + body)
        return self._first(own, seconds)

    def answer(self, seconds: float) -> bool:
        asked = self._first("requests", seconds)
        if asked is not None:
            self._redis.rpush(asked[:ID_BYTES], asked[ID_BYTES:])
        return asked is not None

    def _first(self, key: str | bytes, seconds: float) -> bytes | None:
        found = self._redis.blpop(key, seconds)
        return None if found is None else bytes(found[1])


class RedisWithoutSyncs(Redis):
    """The same without syncs."""

    name, durable = "Redis lists, no syncs", False
    role: ClassVar[Role] = "volatile"


class PostgreSQL(Talker):
    """PostgreSQL with INSERT and NOTIFY, LISTEN, and DELETE of rows that SKIP LOCKED finds."""

    name, server = "PostgreSQL", "PostgreSQL"

    _MAKE = """
    CREATE TABLE IF NOT EXISTS talk (id BIGSERIAL PRIMARY KEY, queue TEXT NOT NULL, own BYTEA, body BYTEA NOT NULL)
    """
    _PUT = "WITH put AS (INSERT INTO talk (queue, own, body) VALUES (%s, %s, %s)) SELECT pg_notify(%s, '')"
    _TAKE = """
    DELETE FROM talk WHERE id = (
        SELECT id FROM talk WHERE queue = %(queue)s AND (%(own)s::bytea IS NULL OR own = %(own)s)
        ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
    ) RETURNING own, body
    """

    def __init__(self, folder: Path, port: int) -> None:
        psycopg = import_module("psycopg")

        self._client = psycopg.__version__
        self._connection: Any = psycopg.connect(
            host="127.0.0.1", port=port, user="postgres", dbname="postgres", autocommit=True
        )
        with self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(2)")
            self._connection.execute(self._MAKE)
        self._listens = set[str]()

    def settings(self) -> str:
        names = ("server_version", "fsync", "synchronous_commit")
        shown = [self._connection.execute(f"SHOW {name}").fetchone()[0] for name in names]
        return (
            f"PostgreSQL {shown[0].split()[0]}, psycopg {self._client}, fsync={shown[1]}, synchronous_commit={shown[2]}"
        )

    def close(self) -> None:
        self._connection.close()

    def send(self, body: bytes) -> None:
        self._put("one_way", None, body)

    def receive(self, seconds: float) -> bytes | None:
        found = self._first("one_way", None, seconds)
        return None if found is None else found[1]

    def ask(self, body: bytes, seconds: float) -> bytes | None:
        own = os.urandom(ID_BYTES)
        self._put("requests", own, body)
        found = self._first("replies", own, seconds)
        return None if found is None else found[1]

    def answer(self, seconds: float) -> bool:
        asked = self._first("requests", None, seconds)
        if asked is not None:
            self._put("replies", *asked)
        return asked is not None

    def _put(self, queue: str, own: bytes | None, body: bytes) -> None:
        self._connection.execute(self._PUT, [queue, own, body, queue])

    def _first(self, queue: str, own: bytes | None, seconds: float) -> tuple[bytes | None, bytes] | None:
        if queue not in self._listens:
            self._connection.execute(f"LISTEN {queue}")
            self._listens.add(queue)
        low_level = self._connection.pgconn
        while True:
            found = self._connection.execute(self._TAKE, {"queue": queue, "own": own}).fetchone()
            if found is not None:
                return found[0], found[1]
            if low_level.notifies() is None:
                if not select.select([self._connection.fileno()], [], [], seconds)[0]:
                    return None
                low_level.consume_input()
            while low_level.notifies() is not None:
                pass


TALKERS: tuple[type[Talker], ...] = (Ours, OursNotPersistent, Redis, RedisWithoutSyncs, PostgreSQL)
