"""Events as Prometheus metrics, and depths at each scrape; needs the extra: ``pip install 'inorder[prometheus]'``.

Counters and histograms count what this process does. The depths are those of the store, whoever changes it: a scrape
reads them on a connection of its own, in one short look that writes nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ..errors import InorderError
from ..manager import QueueManager
from ..telemetry import PREFIX, StoreEvent

log = logging.getLogger("inorder.integrations")


class Exposition(Collector):
    """The metrics of one store in one registry; made by `expose`."""

    def __init__(self, manager: QueueManager, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._lock = threading.Lock()  # two scrapes may come at once, and a connection has one call at a time
        self._calls = Counter("inorder_calls", "Calls on the store", ["call", "reason"], registry=registry)
        self._seconds = Histogram("inorder_call_seconds", "How long calls took", ["call"], registry=registry)
        self._messages = Counter("inorder_messages", "Messages moved", ["call", "queue"], registry=registry)
        self._bytes = Counter("inorder_bytes", "Bytes of their bodies", ["call", "queue"], registry=registry)
        self._waits = Histogram("inorder_wait_seconds", "How long calls waited", ["queue", "found"], registry=registry)
        self._expired = Counter("inorder_expired_messages", "Messages expired", ["queue"], registry=registry)
        self._dead = Counter("inorder_dead_connections", "Connections of dead processes", registry=registry)
        own: list[Collector] = [
            self,
            self._calls,
            self._seconds,
            self._messages,
            self._bytes,
            self._waits,
            self._expired,
            self._dead,
        ]
        self._own = own
        self._connection = manager.connect(program="prometheus")
        self._observation = manager.observe(self._observe)
        registry.register(self)

    def cancel(self) -> None:
        """Ends it: the metrics go, and the connection. Harmless when repeated."""
        self._observation.cancel()
        with self._lock:
            own, self._own = self._own, []
            for one in own:
                self._registry.unregister(one)
            self._connection.close()

    def _observe(self, event: StoreEvent) -> None:
        name, told = event.name.removeprefix(PREFIX), event.metadata
        queue = str(told.get("queue", ""))
        if name == "wait_ended":
            self._waits.labels(queue, str(told["found"]).lower()).observe(event.measurements["seconds"])
        elif name == "expired":
            self._expired.labels(queue).inc(event.measurements["messages"])
        elif name == "dead_connection":
            self._dead.inc()
        elif "completion" in told:
            call = "browse" if told.get("browse") else name
            self._calls.labels(call, str(told["reason_name"])).inc()
            self._seconds.labels(call).observe(event.measurements["seconds"])
            for counter, moved in ((self._messages, "messages"), (self._bytes, "bytes")):
                if event.measurements.get(moved):
                    counter.labels(call, queue).inc(event.measurements[moved])

    # --- what a scrape asks the store

    def describe(self) -> list[Metric]:
        return list(_gauges())

    def collect(self) -> Iterator[Metric]:
        depth, up = _gauges()
        try:
            with self._lock:
                depths = {queue.name: queue.depth for queue in self._connection.overview()}
        except InorderError:
            log.exception("the depths cannot be read; the scrape says inorder_up 0")
            up.add_metric([], 0)
        else:
            up.add_metric([], 1)
            for queue, count in depths.items():
                depth.add_metric([queue], count)
        yield from (depth, up)


def _gauges() -> tuple[GaugeMetricFamily, GaugeMetricFamily]:
    depth = GaugeMetricFamily("inorder_queue_depth", "Messages that a queue counts", labels=["queue"])
    return depth, GaugeMetricFamily("inorder_up", "Whether the store could be read")


def expose(manager: QueueManager, registry: CollectorRegistry = REGISTRY) -> Exposition:
    """Exposes the store of a connection in a registry, until `cancel` of what it returns.

    Args:
        registry: one for each store: the names of the metrics do not say which store it is.
    """
    return Exposition(manager, registry)
