"""Shared by both streams in Spark's planner: read limits, figures, and the end of its process."""

from __future__ import annotations

import atexit
import signal
import sys
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader

from ..errors import OptionsError
from ..stores.seam.records import Claims
from ..stores.seam.views import QueueView
from .options import NO_LIMIT, SourceOptions
from .source_queues import Stores
from .versions import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxRows, SupportsTriggerAvailableNow


class BatchLimits(NamedTuple):
    """The limits of a batch: messages, and bytes of bodies."""

    messages: int = NO_LIMIT
    size: int = NO_LIMIT


class QueueStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream from queues. Spark has one copy of it in the planner, which asks for offsets, and others in tasks."""

    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._stores = Stores(options)
        self._counters: dict[str, int] | None = None  # of each queue, when an AvailableNow run was prepared
        self._served: dict[str, int] = {}  # for each queue a number that grows with its last turn
        self._turn = 0

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's names, here and below
        """The limit of all queues together. Spark only knows limits of one kind, so `limits` adds the other."""
        rows, size = self._options.max_messages_per_trigger, self._options.max_bytes_per_trigger
        if rows is not None:
            return ReadMaxRows(rows)
        return ReadAllAvailable() if size is None else ReadMaxBytes(size)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Messages and queues that arrive after this moment are not read in this run."""
        self._counters = {key: one.counter for key, one in self._stores.look().items()}


def limits(limit: ReadLimit, options: SourceOptions) -> BatchLimits:
    """Converts Spark's limit. A limit that allows everything overrides the options.

    Raises OptionsError for a kind of limit that a queue cannot apply.
    """
    if isinstance(limit, ReadAllAvailable):
        return BatchLimits()
    size = NO_LIMIT if options.max_bytes_per_trigger is None else options.max_bytes_per_trigger
    if isinstance(limit, ReadMaxRows):
        return BatchLimits(max(1, limit.max_rows), size)
    if isinstance(limit, ReadMaxBytes):
        return BatchLimits(size=max(1, min(size, limit.max_bytes)))
    raise OptionsError(
        f"a queue cannot be read with the limit {limit!r}: use limits on messages and bytes, "
        "maxMessagesPerTrigger and maxBytesPerTrigger",
    )


def redelivered(account: Claims | None) -> int:
    """The number of messages that a run starting now gets although an earlier run may have read them: those of the
    planned claim.
    """
    given = None if account is None else account.open
    return given.messages if given is not None and given.planned else 0


def figures(views: Iterable[QueueView], claimed: int, confirmed: int) -> dict[str, int]:
    """The figures that the offset for Spark's progress has, and `listening` reports.

    Args:
        views: the queues that are read.
        claimed: messages of claims that Spark has and that are not confirmed.
        confirmed: messages of claims that are over.
    """
    depth = pending = 0
    times: list[float] = []
    for view in views:
        depth, pending = depth + view.depth, pending + view.puts + view.delayed
        if view.oldest_put_at is not None:
            times.append(view.oldest_put_at)
    oldest = max(0, round(time.time() - min(times))) if times else 0
    lag = max(0, depth - claimed)
    return {"lag": lag, "oldest": oldest, "pending": pending, "claimed": claimed, "confirmed": confirmed}


RUNNER = "pyspark.sql.streaming.python_streaming_source_runner"  # the module that a planner's process runs


def stop_when_terminated(stop: Callable[[], object]) -> None:
    """Makes a planner's process call its reader's `stop` at SIGTERM; does nothing in other processes.

    A query that ends, or fails, sends that signal to its planner, which would end immediately. Spark also closes the
    planner's connection, and the planner may notice either first: if it is about to call `stop` when the signal comes,
    the end of the interpreter calls it.
    """
    if _is_planner():
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
        atexit.unregister(stop)
        atexit.register(stop)


def stop_though_terminated() -> None:
    """Lets a reader's `stop` finish once it has begun, even if that signal comes meanwhile."""
    if _is_planner():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _is_planner() -> bool:
    return getattr(sys.modules["__main__"].__spec__, "name", None) == RUNNER
