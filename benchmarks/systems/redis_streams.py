"""Redis Streams through redis-py: a stream, one consumer group, one consumer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import redis

from benchmarks.harness import Cannot
from benchmarks.systems import System

STREAM, GROUP, CONSUMER = "bench", "readers", "reader"


class RedisStreams(System):
    """XADD; XREADGROUP, then XACK and XDEL; several commands in MULTI and EXEC."""

    name = "Redis Streams"
    is_server = True

    def __init__(self, folder: Path, port: int) -> None:
        self._redis: Any = redis.Redis(host="127.0.0.1", port=port)
        self._config = self._redis.config_get("append*")
        if (self._config["appendonly"], self._config["appendfsync"]) != ("yes", "always"):
            raise Cannot("this server does not sync before it acknowledges")
        if not self._redis.exists(STREAM):
            self._create()

    def settings(self) -> str:
        version = self._redis.info("server")["redis_version"]
        return (
            f"Redis {version}, redis-py {redis.__version__}, appendonly {self._config['appendonly']}, "
            f"appendfsync {self._config['appendfsync']}"
        )

    def close(self) -> None:
        self._redis.close()

    def put(self, body: bytes) -> None:
        self._redis.xadd(STREAM, {"body": body})

    def put_many(self, bodies: Sequence[bytes]) -> None:
        with self._redis.pipeline(transaction=True) as pipeline:
            for body in bodies:
                pipeline.xadd(STREAM, {"body": body})
            pipeline.execute()

    def get(self) -> None:
        self.get_many_in_unit(1)

    def get_many(self, count: int) -> None:
        ids = [entry for entry, _ in self._read(count, noack=True)]
        self._redis.xdel(STREAM, *ids)

    def get_many_in_unit(self, count: int) -> None:
        with self._redis.pipeline(transaction=True) as pipeline:
            self._settle(pipeline, self._read(count))

    def get_put(self, body: bytes) -> None:
        with self._redis.pipeline(transaction=True) as pipeline:
            entries = self._read(1)
            pipeline.xadd(STREAM, {"body": body})
            self._settle(pipeline, entries)

    def empty(self) -> None:
        self._redis.xgroup_destroy(STREAM, GROUP)
        self._redis.delete(STREAM)
        self._create()

    def _create(self) -> None:
        self._redis.xgroup_create(STREAM, GROUP, id="0", mkstream=True)

    def _read(self, count: int, *, noack: bool = False) -> Any:
        return self._redis.xreadgroup(GROUP, CONSUMER, {STREAM: ">"}, count=count, noack=noack)[0][1]

    def _settle(self, pipeline: Any, entries: Any) -> None:
        ids = [entry for entry, _ in entries]
        pipeline.xack(STREAM, GROUP, *ids)
        pipeline.xdel(STREAM, *ids)
        pipeline.execute()
