"""Source, sink and jobs on a store with a server, by Spark on this machine; secrets, and connections of tasks."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom
from tests.helpers.support import until
from tests.spark.calls import on, put, run_to_end, with_queues

import inorder
from inorder.cli import main
from inorder.errors import OptionsError, StoreError
from inorder.spark import finish, jobs, opening, transaction_time
from inorder.spark.opening import store_for_task


@pytest.fixture(params=["in_postgresql", "at_server"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


def test_a_named_batch_is_written_once_and_read_by_parallel_tasks(queues: SparkSession, url: str) -> None:
    rows = queues.range(0, 1000, 1, 4).select(F.format_string("%04d", "id").alias("body"))
    for _ in range(2):
        writer = rows.write.format("inorder").options(queue="Q", orderBy="body", transaction="monday")
        writer.mode("append").save(url)
    assert transaction_time(url, "Q", "monday") is not None
    found = queues.read.format("inorder").options(queue="Q", partitions="4", body="string").load(url)
    assert found.rdd.getNumPartitions() == 4
    parts = found.select("body", F.spark_partition_id().alias("part")).collect()
    assert sorted(row.body for row in parts) == [f"{number:04}" for number in range(1000)]
    assert len({row.part for row in parts}) == 4


def test_the_commands_of_jobs_take_a_url(
    queues: SparkSession, url: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, archive, back = folder / "source", folder / "archive", folder / "back"
    source.mkdir()
    for name in ("a", "b"):
        (source / name).write_text(f"{name} 1\n{name} 2\n")

    def run(*arguments: str) -> dict[str, Any]:
        assert main(["pipeline", *arguments, "--json"]) == 0, capsys.readouterr()
        told: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
        return told

    load = ("load", str(source), "Q", "--format", "files", "--transaction", "one", "--store", url)
    assert [run(*load)["already"] for _ in range(2)] == [False, True]
    assert run("drain", "Q", str(archive), "--store", url)["messages"] == 6
    assert main(["claim", "finish", "Q", "drain", "--checkpoint", str(archive / "_checkpoint"), "--store", url]) == 0
    capsys.readouterr()
    assert run("replay", str(archive), "Q", "--transaction", "two", "--store", url)["messages"] == 6
    with inorder.connect(url) as qm:
        assert len(list(jobs.unload_queue(qm, "Q", back))) == 2
        assert qm.depth("Q") == 0
    assert {path.name: path.read_text() for path in back.iterdir()} == {"a": "a 1\na 2\n", "b": "b 1\nb 2\n"}


@pytest.mark.parametrize("beside", [False, True], ids=["a server", "a server and a file"])
def test_a_query_drains_queues_of_a_server_alone_or_beside_a_file(
    queues: SparkSession, at_server: str, folder: Path, *, beside: bool
) -> None:
    """Each message comes once, in order within its queue, although the query stops and starts again."""
    names = ("ORDERS.A", "ORDERS.B", "Q")
    stores, target = [at_server], with_queues(folder / "target.db", *names)
    if beside:
        stores.append(str(folder / "source.db"))

    def fill(first: int) -> None:
        for number, store in enumerate(stores):
            with inorder.connect(with_queues(store, *names)) as qm:
                for name in names:
                    qm.put_many(name, [b"%d %s %02d" % (number, name.encode(), at) for at in range(first, first + 20)])

    source = {"queue": "ORDERS.*,Q", "mode": "drain", "application": "hand over", "maxMessagesPerTrigger": "100"}
    sink = {"url": target, "queue": "Q", "queueColumn": "queue", "orderBy": "delivery_number"}
    for first in (0, 20):
        fill(first)
        rows = queues.readStream.format("inorder").options(url=json.dumps(stores), partitions="2", **source).load()
        run_to_end(rows, "inorder", folder, **sink)
    finish(json.dumps(stores), "ORDERS.*,Q", "hand over", str(folder / "checkpoint"))
    for name in names:
        found = on(target, name)
        for number, store in enumerate(stores):
            begins = b"%d %s " % (number, name.encode())
            assert [body for body in found if body.startswith(begins)] == [begins + b"%02d" % at for at in range(40)]
            with inorder.connect(store) as qm:
                assert qm.depth(name) == 0
        assert len(found) == 40 * len(stores)


def connections(url: str) -> int:
    """The number of Spark's connections to the store."""
    at, _, schema = url.rpartition("?schema=")
    with psycopg.connect(at) as connection:
        ask = f"SELECT count(*) FROM {schema}.connection WHERE program LIKE 'inorder.spark%'"
        ((count,),) = connection.execute(ask.encode()).fetchall()
    return int(count)


# --- PostgreSQL: errors and secrets


def test_a_missing_store_is_refused_and_not_created(queues: SparkSession, in_postgresql: str, postgresql: str) -> None:
    missing = in_postgresql.replace("schema=spark_", "schema=spark_not_")
    with pytest.raises(Exception, match=r"there is no store at .*create the queue manager first with"):
        queues.read.format("inorder").options(queue="Q").load(missing).count()
    with pytest.raises(StoreError, match="there is no store at"):
        finish(missing, "Q", "copy", "nowhere")
    with psycopg.connect(postgresql) as connection:
        ask = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'spark_not_%'"
        assert connection.execute(ask).fetchall() == [(0,)]


def test_a_password_in_a_url_is_refused_before_a_plan(queues: SparkSession, in_postgresql: str, folder: Path) -> None:
    secret = in_postgresql.replace("@", ":no-plan-shows-it@", 1)
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
    queues: SparkSession, in_postgresql: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "no-plan-shows-it")
    put(in_postgresql, b"1")
    rows = queues.read.format("inorder").options(queue="Q").load(in_postgresql)
    stream = queues.readStream.format("inorder").options(queue="Q").load(in_postgresql)
    for mode in ("simple", "extended", "cost", "formatted"):
        for frame in (rows, stream):
            frame.explain(mode)
            told = capsys.readouterr().out
            assert "inorder" in told
            assert "no-plan-shows-it" not in told
    rows.select("body").write.format("inorder").options(queue="Q").mode("append").save(in_postgresql)
    assert "no-plan-shows-it" not in "".join(capsys.readouterr())
    assert on(in_postgresql) == [b"1", b"1"]


# --- PostgreSQL: connections of tasks


def test_an_idle_worker_keeps_its_connection_for_the_next_task_and_closes_it_by_itself(
    in_postgresql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "IDLE_SECONDS", 3600.0)
    with store_for_task(in_postgresql) as first:
        pass
    with store_for_task(in_postgresql) as second:
        assert second is first
        with store_for_task(in_postgresql) as beside:
            assert beside is not first, "one piece of work at a time"
    with store_for_task(in_postgresql, "another") as other:
        assert other is not first
    monkeypatch.setattr(opening, "IDLE_SECONDS", 0.0)
    for application in ("", "another"):
        with store_for_task(in_postgresql, application):
            pass
    until(lambda: connections(in_postgresql) == 0, "the connections are closed")


def test_a_connection_that_was_lost_or_failed_is_not_given_to_the_next_task(
    in_postgresql: str, postgresql: str
) -> None:
    with store_for_task(in_postgresql) as first:
        pass
    with psycopg.connect(postgresql, autocommit=True) as connection:
        of_spark = f"application_name LIKE 'inorder {os.getpid()}: inorder.spark%'"
        connection.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {of_spark}".encode())
    with store_for_task(in_postgresql) as second:
        assert second is not first
    with pytest.raises(OptionsError), store_for_task(in_postgresql) as third:
        raise OptionsError("a task fails")
    with store_for_task(in_postgresql) as fourth:
        assert fourth is not third


def test_a_connection_that_served_long_is_closed(in_postgresql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "LIFE_SECONDS", -1.0)
    with store_for_task(in_postgresql):
        assert connections(in_postgresql) == 1
    assert connections(in_postgresql) == 0
