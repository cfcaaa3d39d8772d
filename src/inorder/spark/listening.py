"""The state of streaming queries for operators: a line of the log for each micro-batch, and Prometheus metrics.

Spark gives a Python source no metrics. The source writes its figures into the offset that Spark shows with
the progress of a query, and a listener in the driver reads them there.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from ..support.advice import not_installed

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        StreamingQueryProgress,
    )

log = logging.getLogger("inorder.spark.progress")

LABELS = ("query", "application")
FIGURES: Mapping[str, str] = {
    "lag": "Messages that the query has not claimed yet",
    "oldest": "Seconds since the oldest message on its queues was put; 0: there is none",
    "pending": "Messages on its queues that are put and not committed, or delayed",
    "claimed": "Messages that the query has claimed and not confirmed",
    "confirmed": "Messages that were confirmed in all runs under its application",
    "redelivered": "Messages that this run was given, though an earlier run may have read them",
}
"""The figures of a query that drains, as `reportLatestOffset` names them."""


class ProgressListener(StreamingQueryListener):
    """Logs and exposes the figures of the session's queries that drain queues; made by `report_progress`."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._gauges: dict[str, Any] = {}
        self._labels: dict[str, set[tuple[str, str]]] = {}  # by run
        if registry is not None:
            gauge = import_module("prometheus_client").Gauge
            names = {"oldest": "oldest_seconds"}
            self._gauges = {
                name: gauge(f"inorder_spark_{names.get(name, f'{name}_messages')}", text, LABELS, registry=registry)
                for name, text in FIGURES.items()
            }

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's names, here and below
        """Does nothing: the first micro-batch has the first figures."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Does nothing: Spark gives no figures."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Logs a line, and sets the metrics."""
        progress = event.progress
        query = progress.name or str(progress.id)
        for application, figures in _figures(progress):
            log.info(
                "query %s as %s, batch %d: %s messages in %.1f s; %s wait, the oldest message was put %s s ago, %s are "
                "pending, %s claimed, %s confirmed, %s redelivered",
                query,
                application,
                progress.batchId,
                f"{max(0, progress.numInputRows):,}",
                progress.batchDuration / 1000,
                *(f"{figures[name]:,}" for name in FIGURES),
            )
            self._labels.setdefault(str(progress.runId), set()).add((query, application))
            for name, gauge in self._gauges.items():
                gauge.labels(query, application).set(figures[name])

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Removes the metrics of the query, which otherwise would keep their last values."""
        for labels in self._labels.pop(str(event.runId), set()):
            log.log(
                *(
                    (logging.INFO, "query %s as %s has ended", *labels)
                    if event.exception is None
                    else (logging.ERROR, "query %s as %s has failed: %s", *labels, event.exception.splitlines()[0])
                )
            )
            for gauge in self._gauges.values():
                gauge.remove(*labels)


def _figures(progress: StreamingQueryProgress) -> Iterator[tuple[str, dict[str, int]]]:
    """The application and the figures of each of a query's sources that drains queues."""
    for source in progress.sources:
        try:
            latest = json.loads(source.latestOffset or "null")
        except ValueError:  # the offset of another source
            continue
        if isinstance(latest, dict) and "application" in latest and latest.keys() >= {*FIGURES}:
            yield latest["application"], latest


def report_progress(spark: SparkSession, registry: CollectorRegistry | None = None) -> ProgressListener:
    """Reports the figures of each micro-batch of the session's queries that drain queues, from now on.

    The logger `inorder.spark.progress` writes a line at level info. `spark.streams.removeListener` of the result ends
    this.

    Args:
        registry: where the figures become metrics, for example `prometheus_client.REGISTRY`; None: nowhere. Needs
            `inorder[prometheus]`.

    Raises CallerError if there is a registry and prometheus-client is not installed.
    """
    try:
        listener = ProgressListener(registry)
    except ModuleNotFoundError as missing:
        raise not_installed("metrics need a library", "prometheus", missing) from missing
    spark.streams.addListener(listener)
    return listener
