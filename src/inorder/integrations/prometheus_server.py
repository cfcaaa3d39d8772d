"""Serves the metrics of several processes at one address; needs the extra ``inorder[prometheus]``.

Each process writes its counts into a folder, as files that outlive it (prometheus-client's multiprocess mode). One
process adds them up at each scrape, reads the queues of the store, and answers.

    /ready          200, or 503 with the reason: the store cannot be read, or a task or schedule has stopped by itself
    anything else   the metrics
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.multiprocess import MultiProcessCollector

from ..client.manager import QueueManager
from ..errors import ArgumentError, bad_argument
from .prometheus import STOPS, Counters, Gauges

FOLDER_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"  # set in a process's environment before it imports the library
LOOPBACK: Final = "127.0.0.1"


def address_of(text: str) -> tuple[str, int]:
    """Reads host and port from `8000`, `127.0.0.1:8000` or `[::1]:8000`. Raises ArgumentError for other texts."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 2**16):
        raise bad_argument("metrics", text, "PORT or HOST:PORT, with a port from 1 to 65535")
    return host.strip("[]") or LOOPBACK, int(port)


@contextmanager
def serving(manager: QueueManager, host: str, port: int) -> Iterator[dict[str, str]]:
    """Answers scrapes inside the block, with the counts of processes that get the environment variables that this
    yields.

    Raises ArgumentError if it cannot listen at the address.
    """
    registry = CollectorRegistry()
    with tempfile.TemporaryDirectory(prefix="inorder-metrics-") as folder:
        MultiProcessCollector(registry, path=folder)  # type: ignore[no-untyped-call]
        gauges = Gauges(manager)
        try:
            registry.register(gauges)
            try:
                server, thread = start_http_server(port, host, registry)
            except OSError as error:
                place = f"{host}:{port}"
                raise ArgumentError(
                    f"the metrics server cannot listen on {place}: {error.strerror}",
                    argument="metrics", value=place, allowed="an address of this machine, and a port that is free",
                ) from None  # fmt: skip
            metrics = server.get_app()
            assert metrics is not None

            def answer(asked: dict[str, Any], begin: Callable[..., Any]) -> Iterable[bytes]:
                return _ready(registry, begin) if asked["PATH_INFO"] == "/ready" else metrics(asked, begin)

            server.set_app(answer)
            try:
                yield {FOLDER_VARIABLE: folder}
            finally:
                server.shutdown()
                server.server_close()
                thread.join()
        finally:
            gauges.close()


def _ready(registry: CollectorRegistry, begin: Callable[..., Any]) -> Iterable[bytes]:
    """Answers whether everything registered is working, as far as a scrape shows."""
    wrong = []
    for sample in (sample for metric in registry.collect() for sample in metric.samples):
        if sample.name == "inorder_up" and not sample.value:
            wrong.append("the store cannot be read")
        elif sample.name == f"{STOPS}_total" and sample.value:
            wrong.append(f"{sample.labels['name']} has stopped by itself")
    begin("503 Service Unavailable" if wrong else "200 OK", [("Content-Type", "application/json")])
    told = {"status": "not ready", "error": f"{'; '.join(wrong)}: the log says why"} if wrong else {"status": "ready"}
    return [json.dumps(told).encode()]


def count(manager: QueueManager) -> None:
    """Counts the operations of this process, from now until its end, for the serving process."""
    Counters(manager)
