"""The figures of streaming queries: a line of the log for each micro-batch, and metrics until the query ends."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from prometheus_client import CollectorRegistry
from pyspark.sql import SparkSession
from tests.helpers.support import until
from tests.spark.calls import ALL, Make, put, taken

from inorder.spark.listening import FIGURES, ProgressListener, report_progress

RUN = "a run"


def progress_of(*offsets: str | None, name: str | None = "nightly") -> Any:
    """The event of a micro-batch of a query whose sources show these offsets."""
    sources = [SimpleNamespace(latestOffset=one) for one in offsets]
    batch: dict[str, Any] = {"batchId": 3, "numInputRows": 1200, "batchDuration": 2500}
    return SimpleNamespace(progress=SimpleNamespace(name=name, id="an id", runId=RUN, sources=sources, **batch))


def samples(registry: CollectorRegistry) -> dict[str, float]:
    return {one.name: one.value for family in registry.collect() for one in family.samples}


def test_the_report_of_a_reader_is_logged_and_becomes_metrics(
    url: str, drain: Make, caplog: pytest.LogCaptureFixture
) -> None:
    put(url, b"1", b"2", b"3")
    reader = drain(maxMessagesPerTrigger=1)
    _, first = taken(reader, reader.getDefaultReadLimit())
    reader.partitions(*_after(first))
    registry = CollectorRegistry()
    listener = ProgressListener(registry)
    caplog.set_level("INFO", "inorder.spark.progress")
    offset = json.dumps(reader.reportLatestOffset())
    for others in (None, "-", "5", json.dumps({"topic": {"0": 7}})):
        listener.onQueryProgress(progress_of(others))
    assert not caplog.records
    listener.onQueryProgress(progress_of(None, offset))
    assert "query nightly as archive, batch 3: 1,200 messages in 2.5 s; 2 wait" in caplog.text
    assert "0 are pending, 1 claimed, 0 confirmed, 0 redelivered" in caplog.text
    assert samples(registry).keys() == {
        "inorder_spark_lag_messages",
        "inorder_spark_oldest_seconds",
        "inorder_spark_pending_messages",
        "inorder_spark_claimed_messages",
        "inorder_spark_confirmed_messages",
        "inorder_spark_redelivered_messages",
    }
    assert samples(registry)["inorder_spark_lag_messages"] == 2
    listener.onQueryProgress(progress_of(offset))
    listener.onQueryTerminated(SimpleNamespace(runId="another", exception=None))  # type: ignore[arg-type]
    assert samples(registry)
    listener.onQueryTerminated(SimpleNamespace(runId=RUN, exception="no\n\tat a line of Java"))  # type: ignore[arg-type]
    assert not samples(registry)
    assert caplog.records[-1].getMessage() == "query nightly as archive has failed: no"


def test_messages_of_a_planned_claim_are_redelivered_to_the_next_run(url: str, drain: Make) -> None:
    put(url, b"1", b"2", b"3")
    reader = drain(maxMessagesPerTrigger=2)
    _, first = taken(reader, reader.getDefaultReadLimit())
    killed = drain()
    assert taken(killed)[1]["claim"] == first["claim"]
    assert killed.reportLatestOffset()["redelivered"] == 0, "no task can have read a claim that is not planned"
    killed.partitions(*_after(first))
    again = drain()
    again.partitions(*_after(first))
    assert again.reportLatestOffset()["redelivered"] == 2
    again.commit(first)
    assert drain().latestOffset(first, ALL) != first


def _after(offset: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The offsets of the micro-batch that ends there, as `partitions` takes them."""
    return offset | {"claim": offset["claim"] - 1}, offset


def test_report_progress_registers_the_listener(caplog: pytest.LogCaptureFixture) -> None:
    session = MagicMock()
    listener = report_progress(session)
    session.streams.addListener.assert_called_once_with(listener)
    caplog.set_level("INFO", "inorder.spark.progress")
    listener.onQueryProgress(progress_of(json.dumps(dict.fromkeys(FIGURES, 1) | {"application": "a"}), name=None))
    assert "query an id as a, batch 3" in caplog.text


def test_spark_passes_the_figures_to_the_listener(
    queues: SparkSession, url: str, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(url, *[b"x"] * 5)
    caplog.set_level("INFO", "inorder.spark.progress")
    listener = report_progress(queues)
    try:
        rows = queues.readStream.format("inorder").options(queue="Q", mode="drain", application="a").load(url)
        writer = rows.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
        writer.queryName("shown").trigger(availableNow=True).start().awaitTermination()
        until(lambda: "query shown as a has ended" in caplog.text, "the listener to hear of the end")
    finally:
        queues.streams.removeListener(listener)
    assert "query shown as a, batch 0: 5 messages in" in caplog.text
