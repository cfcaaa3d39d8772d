"""NATS JetStream through nats-py: a work-queue stream on disk, one durable pull consumer."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import nats
from nats.js.api import RetentionPolicy, StorageType, StreamConfig

from benchmarks.harness import Cannot
from benchmarks.systems import BLOCK, BODY, System

T = TypeVar("T")
STREAM, SUBJECT, CONSUMER = "BENCH", "bench", "reader"
WAIT_SECONDS = 10
FIRST_THAT_SYNCS = (2, 10)  # earlier ones do not know sync_interval


class NatsJetStream(System):
    """Publish and its acknowledgement; fetch and a confirmed ack."""

    name = "NATS JetStream"
    is_server = True

    def __init__(self, folder: Path, port: int) -> None:
        self._loop = asyncio.new_event_loop()
        self._run(self._connect(port))

    async def _connect(self, port: int) -> None:
        self._client: Any = await nats.connect(f"nats://127.0.0.1:{port}")
        version = self._client.connected_server_version
        if (version.major, version.minor) < FIRST_THAT_SYNCS:
            await self._client.close()
            await asyncio.sleep(0)  # lets its tasks end
            raise Cannot(f"NATS {version.major}.{version.minor} does not sync before it acknowledges")
        self._stream: Any = self._client.jetstream()
        config = StreamConfig(
            name=STREAM, subjects=[SUBJECT], storage=StorageType.FILE, retention=RetentionPolicy.WORK_QUEUE
        )
        await self._stream.add_stream(config)
        self._reader: Any = await self._stream.pull_subscribe(SUBJECT, durable=CONSUMER)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)

    def settings(self) -> str:
        server = self._client.connected_server_version
        return f"NATS {server}, nats-py {version('nats-py')}, file storage, sync_interval always"

    def close(self) -> None:
        self._run(self._client.close())
        self._loop.close()

    def put(self, body: bytes) -> None:
        self._run(self._stream.publish(SUBJECT, body))

    def get(self) -> None:
        self.get_many_in_unit(1)

    def get_many_in_unit(self, count: int) -> None:
        self._run(self._take(count))

    async def _take(self, count: int) -> None:
        messages: list[Any] = []
        while len(messages) < count:
            messages += await self._reader.fetch(count - len(messages), timeout=WAIT_SECONDS)
        await asyncio.gather(*(message.ack_sync() for message in messages))

    def empty(self) -> None:
        self._run(self._stream.purge_stream(STREAM))

    def stock(self, count: int) -> None:
        self._run(self._publish(count))

    async def _publish(self, count: int) -> None:
        for start in range(0, count, BLOCK):
            block = min(BLOCK, count - start)
            await asyncio.gather(*(self._stream.publish(SUBJECT, BODY) for _ in range(block)))
