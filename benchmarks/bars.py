"""The bars that several questions share: the required ratios for each kind of work.

A question adds its own bars in its file. Every bar here is the smallest allowed ratio of our rate to another's, in the
same rounds. A bar against the limit also has a higher goal. Ratios in memory decide, because no sync hides the
processor time there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from benchmarks.harness import RATE, Bar
from benchmarks.systems.all import in_memory
from benchmarks.systems.limit import LIMIT
from benchmarks.systems.ours import OURS

REDIS, POSTGRESQL, NATS, RABBITMQ = "Redis Streams", "PostgreSQL", "NATS JetStream", "RabbitMQ"
PERSIST_QUEUE, LITEQUEUE = "persist-queue", "litequeue"

SINGLE: Final = {REDIS: 1.0, POSTGRESQL: 1.3, NATS: 1.3, RABBITMQ: 1.3}
ALONE: Final = {**SINGLE, PERSIST_QUEUE: 0.9, LITEQUEUE: 0.9}
BULK: Final = dict.fromkeys((REDIS, POSTGRESQL, NATS, RABBITMQ), 1.0)

PEERS: Final[Mapping[str, Mapping[str, float]]] = {
    "put_one": ALONE,
    "get_one": ALONE,
    "get_commit": SINGLE,
    "get_put": SINGLE,
    "eight_processes": SINGLE,
    "put_many": BULK,
    "get_many_outside": BULK,
    "get_many_in_unit": BULK,
}

#                    first bar and goal: on disk; in memory
OF_PUT: Final = ((0.65, 0.85), (0.4, 0.6))
OF_GET: Final = ((0.6, 0.8), (0.35, 0.5))
OF_COMMIT: Final = ((0.6, 0.75), (0.35, 0.5))
OF_BULK: Final = ((0.5, 0.7), (0.4, 0.55))

TO_THE_LIMIT: Final = {
    "put_one": OF_PUT,
    "get_one": OF_GET,
    "get_commit": OF_COMMIT,
    "put_many": OF_BULK,
    "get_many_outside": OF_BULK,
    "get_many_in_unit": OF_BULK,
}


def bars_of(question: str) -> list[Bar]:
    """Returns the bars of a question: against the limit on disk and in memory, then against each peer."""
    peers = PEERS.get(question, {})
    return [
        *(
            Bar(figure=RATE, of=ours, against=limit, first=first, goal=goal)
            for (ours, limit), (first, goal) in zip(SIDES, TO_THE_LIMIT.get(question, ()), strict=False)
        ),
        *(Bar(figure=RATE, of=OURS, against=peer, first=least, goal=least) for peer, least in peers.items()),
    ]


SIDES: Final = ((OURS, LIMIT), (in_memory(OURS), in_memory(LIMIT)))
