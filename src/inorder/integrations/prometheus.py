"""Counts events as Prometheus metrics, and reads the queues at each scrape; needs the extra ``inorder[prometheus]``.

Counters and histograms count the operations of this process. The gauges show the store, whichever process changes it: a
scrape reads all queues on a separate connection, at one moment. It changes and discards no message; only if a process
has died, it backs out that process's units, as every inspection does.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ..client.incomplete_groups import GroupSearches, Wholeness
from ..client.manager import QueueManager
from ..errors import InorderError
from ..model.attributes import DEAD_LETTERS, QueueAttributes
from ..stores.seam.channel_records import ChannelNow
from ..stores.seam.telemetry import PREFIX, StoreEvent
from ..stores.seam.views import QueueView

log = logging.getLogger("inorder.integrations")

QUEUES_MAX: Final = 1_000  # the most queues with their own label
BROWSE: Final = f"{PREFIX}browse"
STOPS: Final = "inorder_worker_stops"
WORKING: Final = ("name", "queue")  # labels of a task or a schedule
OTHERS: Final = "other queues"  # the label of later ones; no queue can have this name


class Counters:
    """Counts the operations of this process on a store; `metrics` has the counters and histograms."""

    def __init__(self, manager: QueueManager) -> None:
        self._queues: set[str] = set()  # queues with their own label
        self._calls = Counter("inorder_calls", "Calls on the store", ["call", "reason"], registry=None)
        self._seconds = Histogram("inorder_call_seconds", "How long calls took", ["call"], registry=None)
        self._messages = Counter("inorder_messages", "Messages moved", ["call", "queue"], registry=None)
        self._bytes = Counter("inorder_bytes", "Bytes of their bodies", ["call", "queue"], registry=None)
        self._waits = Histogram("inorder_wait_seconds", "How long calls waited", ["queue", "found"], registry=None)
        self._expired = Counter("inorder_expired_messages", "Messages expired", ["queue"], registry=None)
        self._attempts = Counter("inorder_attempts", "Attempts of workers", ["task", "outcome"], registry=None)
        self._attempt = Histogram("inorder_attempt_seconds", "How long attempts took", ["task"], registry=None)
        self._puts = Counter("inorder_periodic_puts", "Periodic puts", ["schedule", "queue"], registry=None)
        self._failures = Counter(
            "inorder_periodic_failures", "Tries of periodic puts that failed", ["schedule", "queue"], registry=None
        )
        self._late = Histogram("inorder_periodic_late_seconds", "How late they were", ["schedule"], registry=None)
        self._stops = Counter(STOPS, "Tasks and schedules that stopped by themselves", WORKING, registry=None)
        self._troubles = Counter("inorder_worker_troubles", "Troubles for which tasks paused", WORKING, registry=None)
        self._dead = Counter("inorder_dead_connections", "Connections of dead processes", registry=None)
        self.metrics: Sequence[Collector] = [one for one in vars(self).values() if isinstance(one, Counter | Histogram)]
        self._ended: dict[tuple[str, object], tuple[Callable[[], object], Callable[[float], object]]] = {}
        self._moved: dict[tuple[str, str, str], Callable[[float], object]] = {}
        self._of_moved = (self._messages, "messages"), (self._bytes, "bytes")
        self._observation = manager.inspect.observe(self._observe)

    def cancel(self) -> None:
        """Stops counting. Harmless when repeated."""
        self._observation.cancel()

    def _observe(self, event: StoreEvent) -> None:
        told = event.metadata
        if "completion" in told:
            self._observe_call(event)
            return
        name = event.name.removeprefix(PREFIX)
        if name == "wait_ended":
            self._waits.labels(self._label_of(event), str(told["found"]).lower()).observe(event.measurements["seconds"])
        elif name == "expired":
            self._expired.labels(self._label_of(event)).inc(event.measurements["messages"])
        elif name == "attempt":
            self._attempts.labels(str(told["task"]), str(told["outcome"])).inc()
            self._attempt.labels(str(told["task"])).observe(event.measurements["seconds"])
        elif name == "worker":
            self._observe_worker(event)
        elif name == "dead_connection":
            self._dead.inc()

    def _observe_call(self, event: StoreEvent) -> None:
        """Counts a call. Its counters are looked up once, because `labels` costs more than counting."""
        told, measured = event.metadata, event.measurements
        call, reason = BROWSE if told.get("browse") else event.name, told["reason_name"]
        ended = self._ended.get((call, reason))
        if ended is None:
            name = call.removeprefix(PREFIX)
            ended = self._calls.labels(name, str(reason)).inc, self._seconds.labels(name).observe
            self._ended[call, reason] = ended
        count, took = ended
        count()
        took(measured["seconds"])
        for counter, what in self._of_moved:
            amount = measured.get(what)
            if amount:
                moved = call, what, self._label_of(event)
                add = self._moved.get(moved)
                if add is None:
                    add = self._moved[moved] = counter.labels(call.removeprefix(PREFIX), moved[2]).inc
                add(amount)

    def _observe_worker(self, event: StoreEvent) -> None:
        told = event.metadata
        task, schedule, queue = str(told["task"]), str(told["schedule"]), str(told["queue"])
        match told["kind"]:
            case "put":
                self._puts.labels(schedule, queue).inc()
                self._late.labels(schedule).observe(event.measurements["seconds"])
            case "trouble" if schedule:
                self._failures.labels(schedule, queue).inc()
            case "trouble":
                self._troubles.labels(task, queue).inc()
            case "stopped":
                self._stops.labels(task or schedule, queue).inc()

    def _label_of(self, event: StoreEvent) -> str:
        """The queue's name while there is room: dynamic queues come and go, but a label stays forever."""
        queue = str(event.metadata.get("queue", ""))
        if queue not in self._queues:
            if len(self._queues) >= QUEUES_MAX:
                return OTHERS
            self._queues.add(queue)
        return queue


class Gauges(Collector):
    """The queues of a store as they are at a scrape, read on a separate connection."""

    def __init__(self, manager: QueueManager) -> None:
        self._lock = threading.Lock()  # two scrapes may run at the same time, but a connection only runs one call
        self._connection = manager.connect(program="prometheus")
        self._groups = GroupSearches()

    def close(self) -> None:
        """Ends the connection. Harmless when repeated."""
        with self._lock:
            self._connection.close()

    def describe(self) -> list[Metric]:
        return [_family("up", UP, ()), *(_family(name, *one[:2]) for name, one in GAUGES.items())]

    def collect(self) -> Iterator[Metric]:
        seen: StoreSeen | None = None
        try:
            with self._lock:
                seen = _look(self._connection, self._groups)
        except InorderError:
            log.exception("the queues cannot be read; the scrape says inorder_up 0")
        up = _family("up", UP, ())
        up.add_metric([], seen is not None)
        yield up
        for name, (text, labels, values) in GAUGES.items():
            family = _family(name, text, labels)
            for *of, value in () if seen is None else values(seen):
                family.add_metric(of, value)
            yield family


class Exposition:
    """The metrics of one store in one registry; made by `expose`."""

    def __init__(self, manager: QueueManager, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._own: list[Collector] = []  # the collectors registered here
        self._gauges = Gauges(manager)
        self._counters = Counters(manager)
        try:
            for one in (*self._counters.metrics, self._gauges):
                self._registry.register(one)
                self._own.append(one)
        except BaseException:
            self.cancel()
            raise

    def cancel(self) -> None:
        """Removes the metrics and ends the connection. Harmless when repeated."""
        self._counters.cancel()
        own, self._own = self._own, []
        for one in own:
            self._registry.unregister(one)
        self._gauges.close()


class StoreSeen(NamedTuple):
    """A store at a scrape.

    Args:
        dead_letter_queue: the queue that the queue manager names, or SYSTEM.DEAD.LETTER.QUEUE.
        file: the path of the store, if it is a file.
        groups: the incomplete groups of queues, as far as they were found in time.
    """

    queues: Sequence[QueueView]
    attributes: Sequence[QueueAttributes]
    dead_letter_queue: str
    file: str
    groups: Mapping[str, Wholeness]


def _look(connection: QueueManager, groups: GroupSearches) -> StoreSeen:
    path, queues = connection.inspect.path, connection.inspect.overview()
    return StoreSeen(
        queues=queues,
        groups=groups.of_all(connection, queues),
        attributes=connection.queues(),
        dead_letter_queue=connection.admin.manager_attributes().dead_letter_queue or DEAD_LETTERS,
        file=path if Path(path).is_file() else "",
    )


def _family(name: str, text: str, labels: Sequence[str]) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
    return kind(f"inorder_{name}", text, labels=labels)


def _of_queues(value: Callable[[QueueView], float]) -> Values:
    return lambda seen: [(view.name, value(view)) for view in seen.queues]


def _incomplete(seen: StoreSeen) -> Iterable[tuple[str, float]]:
    return [(name, len(one.lacking)) for name, one in seen.groups.items()]


def _incomplete_since(seen: StoreSeen) -> Iterable[tuple[str, float]]:
    return [(name, min((each.put_at for each in one.lacking), default=0)) for name, one in seen.groups.items()]


def _of_channels(value: Callable[[ChannelNow], float]) -> Values:
    return lambda seen: [(one.name, value(one)) for view in seen.queues for one in view.channels]


def _dead_letters(seen: StoreSeen) -> Iterable[tuple[float]]:
    yield (sum(view.depth for view in seen.queues if view.name == seen.dead_letter_queue),)


def _most(seen: StoreSeen) -> Iterable[tuple[str, float]]:
    return [(one.name, one.max_depth) for one in seen.attributes if one.type == "local"]


def _statuses(seen: StoreSeen) -> Iterable[tuple[str, str, float]]:
    return [(one.name, one.status, 1) for view in seen.queues for one in view.channels]


def _size(seen: StoreSeen) -> Iterable[tuple[float]]:
    """The size of the file and of its log."""
    if seen.file:
        yield (sum(path.stat().st_size for path in map(Path, (seen.file, f"{seen.file}-wal")) if path.exists()),)


def _free(seen: StoreSeen) -> Iterable[tuple[float]]:
    if seen.file:
        yield (shutil.disk_usage(Path(seen.file).parent).free,)


Values = Callable[[StoreSeen], Iterable[tuple[Any, ...]]]  # the labels and the value of each sample
QUEUE, CHANNEL = ("queue",), ("channel",)
UP: Final = "Whether the store could be read"
GAUGES: Final[Mapping[str, tuple[str, Sequence[str], Values]]] = {
    "queue_depth": ("Messages that the queue counts", QUEUE, _of_queues(lambda view: view.depth)),
    "queue_max_depth": ("Messages that the queue may have", QUEUE, _most),
    "queue_uncommitted_puts": ("Messages put in unsettled units", QUEUE, _of_queues(lambda view: view.puts)),
    "queue_uncommitted_gets": ("Messages got or claimed in unsettled units", QUEUE, _of_queues(lambda view: view.gets)),
    "queue_locked": ("Messages that are locked", QUEUE, _of_queues(lambda view: view.locked)),
    "queue_delayed": ("Messages not to be read yet", QUEUE, _of_queues(lambda view: view.delayed)),
    "queue_waiting_calls": ("Calls that wait for a message", QUEUE, _of_queues(lambda view: view.waiters)),
    "queue_readers": ("Handles open for input", QUEUE, _of_queues(lambda view: view.open_input_count)),
    "queue_oldest_put_timestamp_seconds": (
        "When the oldest message was put; 0: none", QUEUE, _of_queues(lambda view: view.oldest_put_at or 0)
    ),
    "queue_dropped_reports_total": ("Reports that no queue took", QUEUE, _of_queues(lambda view: view.dropped)),
    "queue_incomplete_groups": ("Groups that lack messages", QUEUE, _incomplete),
    "queue_oldest_incomplete_group_timestamp_seconds": (
        "When the oldest of them began; 0: none", QUEUE, _incomplete_since
    ),
    "dead_letters": ("Messages on the dead-letter queue", (), _dead_letters),
    "channel_status": ("1, with the status as a label", ("channel", "status"), _statuses),
    "channel_waiting": ("Messages on its transmission queue", CHANNEL, _of_channels(lambda one: one.waiting)),
    "channel_oldest_put_timestamp_seconds": (
        "When the oldest of them was put; 0: none", CHANNEL, _of_channels(lambda one: one.oldest_put_at or 0)
    ),
    "channel_in_doubt": ("Messages sent and not confirmed", CHANNEL, _of_channels(lambda one: one.in_doubt)),
    "channel_messages_total": ("Messages that have arrived", CHANNEL, _of_channels(lambda one: one.messages)),
    "store_bytes": ("Size of the file of the store and its log", (), _size),
    "store_free_bytes": ("Free space of the disk of the store", (), _free),
}  # fmt: skip


def expose(manager: QueueManager, registry: CollectorRegistry = REGISTRY) -> Exposition:
    """Exposes the store of a connection in a registry, until `cancel` of the result is called.

    Args:
        registry: use one for each store: the names of the metrics do not include the store.
    """
    return Exposition(manager, registry)
