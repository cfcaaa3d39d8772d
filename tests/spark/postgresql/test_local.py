"""Source and sink on a store in PostgreSQL: errors, secrets, connections."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession
from tests.helpers.support import until
from tests.spark.calls import put

import inorder
from inorder.errors import OptionsError, StoreError
from inorder.spark import finish, jobs, opening
from inorder.spark.opening import store_for_task

SECONDS_MAX = 240


def connections(url: str) -> int:
    """How many connections of Spark's the store has."""
    at, _, schema = url.rpartition("?schema=")
    with psycopg.connect(at) as connection:
        ask = f"SELECT count(*) FROM {schema}.connection WHERE program LIKE 'inorder.spark%'"
        ((count,),) = connection.execute(ask.encode()).fetchall()
    return int(count)


# --- errors


def test_a_store_that_is_not_there_is_not_made(queues: SparkSession, url: str, postgresql: str) -> None:
    missing = url.replace("schema=spark_", "schema=spark_not_")
    with pytest.raises(Exception, match=r"there is no store at .*create the queue manager first with"):
        queues.read.format("inorder").options(queue="Q").load(missing).count()
    with pytest.raises(StoreError, match="there is no store at"):
        finish(missing, "Q", "copy", "nowhere")
    with psycopg.connect(postgresql) as connection:
        ask = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'spark_not_%'"
        assert connection.execute(ask).fetchall() == [(0,)]


def test_a_password_in_a_url_is_refused_before_a_plan(queues: SparkSession, url: str, folder: Path) -> None:
    secret = url.replace("@", ":no-plan-shows-it@", 1)
    row = queues.range(1).selectExpr("'a' AS body")
    calls: list[Callable[[], object]] = [
        lambda: queues.read.format("inorder").options(queue="Q").load(secret),
        lambda: row.write.format("inorder").mode("append").save(secret, queue="Q"),
        lambda: jobs.drain(queues, secret, "Q", folder / "archive"),
        lambda: jobs.load(queues, folder, secret, "Q", format="files"),
        lambda: finish(secret, "Q", "copy", str(folder)),
    ]
    for call in calls:
        with pytest.raises(Exception, match="has a password") as refused:
            call()
        assert "no-plan-shows-it" not in str(refused.value)


def test_no_plan_shows_the_password_that_libpq_is_given(
    queues: SparkSession, url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "no-plan-shows-it")
    put(url, b"1")
    rows = queues.read.format("inorder").options(queue="Q").load(url)
    stream = queues.readStream.format("inorder").options(queue="Q").load(url)
    for mode in ("simple", "extended", "cost", "formatted"):
        for frame in (rows, stream):
            frame.explain(mode)
            told = capsys.readouterr().out
            assert "inorder" in told
            assert "no-plan-shows-it" not in told
    rows.select("body").write.format("inorder").options(queue="Q").mode("append").save(url)
    assert "no-plan-shows-it" not in "".join(capsys.readouterr())
    with inorder.connect(url) as qm:
        assert [message.body for message in qm.browse("Q")] == [b"1", b"1"]


# --- connections of tasks


def test_an_idle_worker_keeps_its_connection_for_the_next_task_and_closes_it_by_itself(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "IDLE_SECONDS", 3600.0)
    with store_for_task(url) as first:
        pass
    with store_for_task(url) as second:
        assert second is first
        with store_for_task(url) as beside:
            assert beside is not first, "one piece of work at a time"
    with store_for_task(url, "another") as other:
        assert other is not first
    monkeypatch.setattr(opening, "IDLE_SECONDS", 0.0)
    for application in ("", "another"):
        with store_for_task(url, application):
            pass
    until(lambda: connections(url) == 0, "the connections are closed")


def test_a_connection_that_was_lost_or_failed_is_not_given_to_the_next_task(url: str, postgresql: str) -> None:
    with store_for_task(url) as first:
        pass
    with psycopg.connect(postgresql, autocommit=True) as connection:
        of_spark = f"application_name LIKE 'inorder {os.getpid()}: inorder.spark%'"
        connection.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {of_spark}".encode())
    with store_for_task(url) as second:
        assert second is not first
    with pytest.raises(OptionsError), store_for_task(url) as third:
        raise OptionsError("a task fails")
    with store_for_task(url) as fourth:
        assert fourth is not third


def test_a_connection_that_served_long_is_closed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "LIFE_SECONDS", -1.0)
    with store_for_task(url):
        assert connections(url) == 1
    assert connections(url) == 0
