"""RabbitMQ through pika: a quorum queue, whose log is synced before a publish is confirmed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pika

from benchmarks.systems import BODY, System

QUEUE = "bench"


class RabbitMQ(System):
    """Persistent publish with confirms; basic_get and ack. RabbitMQ does not confirm acks."""

    name = "RabbitMQ"
    is_server = True

    def __init__(self, folder: Path, port: int) -> None:
        self._connection: Any = pika.BlockingConnection(pika.ConnectionParameters(host="127.0.0.1", port=port))
        self._channel: Any = self._connection.channel()
        self._channel.queue_declare(QUEUE, durable=True, arguments={"x-queue-type": "quorum"})
        self._channel.confirm_delivery()

    def settings(self) -> str:
        version = self._connection._impl.server_properties["version"]
        return (
            f"RabbitMQ {version}, pika {pika.__version__}, quorum queue, persistent, publisher confirms; "
            "an ack is not awaited"
        )

    def close(self) -> None:
        self._connection.close()

    def put(self, body: bytes) -> None:
        properties = pika.BasicProperties(delivery_mode=pika.DeliveryMode.Persistent)
        self._channel.basic_publish("", QUEUE, body, properties=properties)

    def get(self) -> None:
        found = None
        while found is None:
            found, _, _ = self._channel.basic_get(QUEUE)
        self._channel.basic_ack(found.delivery_tag)

    def empty(self) -> None:
        self._channel.queue_purge(QUEUE)

    def stock(self, count: int) -> None:
        for _ in range(count):
            self.put(BODY)
