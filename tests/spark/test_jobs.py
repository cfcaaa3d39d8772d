"""Jobs on queues: drain, load, replay, unload, dump; and their commands."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as in Spark's documents
from tests.spark.calls import properties_on, put_properties, with_queues
from tests.tiers import gate

from inorder import Flags, Message, QueueManager, connect
from inorder.cli import main
from inorder.errors import ArgumentError, CheckpointLost, OptionsError, QueueCondition, Reason
from inorder.formats import put_file
from inorder.spark import arrow_schema, finish, jobs, transaction_time
from inorder.spark.jobs.archive import read_archive
from inorder.spark.jobs.troubles import plain

GROUPS, MEMBERS = 30, 5


def members(first: int = 0) -> list[Message]:
    """Groups with interleaved members: all first members, then all second ones, and so on."""
    return [
        Message(
            b"%d/%d" % (group, number),
            group_id=b"%d" % group,
            sequence_number=number,
            flags=Flags.IN_GROUP | (Flags.LAST_IN_GROUP if number == MEMBERS else Flags.NONE),
        )
        for number in range(1, MEMBERS + 1)
        for group in range(first, first + GROUPS)
    ]


def bodies(spark: SparkSession, archive: Path) -> list[bytes]:
    rows = spark.read.parquet(str(archive)).orderBy("delivery_number").select("body").collect()
    return [bytes(row.body) for row in rows]


def in_groups(first: int = 0) -> list[bytes]:
    return [b"%d/%d" % (group, number) for group in range(first, first + GROUPS) for number in range(1, MEMBERS + 1)]


@pytest.fixture
def files(folder: Path) -> Path:
    """A folder with files of every kind."""
    root = folder / "files"
    (root / "deep" / "er").mkdir(parents=True)
    (root / "empty").write_bytes(b"")
    (root / "text.txt").write_bytes(b"one\ntwo\n\nthree")
    (root / "deep" / "binary").write_bytes(bytes(range(256)) * 50)
    (root / "deep" / "er" / "run.sh").write_bytes(b"#!/bin/sh\necho hello\n")
    (root / "deep" / "er" / "run.sh").chmod(0o755)
    return root


def tree(root: Path) -> dict[str, tuple[bytes, int]]:
    paths = (path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mode & 0o777) for path in paths}


# ---- drain


def test_drain_leaves_incomplete_groups_on_the_queue(
    spark: SparkSession, qm: QueueManager, url: str, folder: Path
) -> None:
    assert jobs.drain(spark, url, "Q", folder / "archive").messages == 0
    qm.put_many("Q", members()[:-1])
    jobs.drain(spark, url, "Q", folder / "archive")
    assert bodies(spark, folder / "archive") == in_groups()[:-MEMBERS]
    assert qm.inspect.status("Q").current_depth == MEMBERS - 1


@gate
def test_drain_refuses_bad_arguments_before_it_creates_the_archive(spark: SparkSession, url: str, folder: Path) -> None:
    with pytest.raises(ArgumentError, match="order must be one of: logical, physical, not 'sideways'"):
        jobs.drain(spark, url, "Q", folder / "archive", order="sideways")  # type: ignore[arg-type]
    with pytest.raises(QueueCondition, match=r"there is no queue .*NOBODY"):
        jobs.drain(spark, url, "NOBODY", folder / "archive")
    with pytest.raises(OptionsError, match="an archive is of one store"):
        jobs.drain(spark, json.dumps([url, url]), "Q", folder / "archive")
    assert not (folder / "archive").exists()


def test_several_queues_go_into_one_archive(spark: SparkSession, qm: QueueManager, url: str, folder: Path) -> None:
    qm.create_queue("R.ONE")
    qm.put_many("Q", members())
    qm.put("R.ONE", b"alone")
    assert jobs.drain(spark, url, "Q,R.*", folder / "archive").messages == GROUPS * MEMBERS + 1
    archived = spark.read.parquet(str(folder / "archive"))
    assert set(archived.columns) == {*arrow_schema().names, "date"}, "as the archive of one queue"
    assert [bytes(row.body) for row in archived.where("queue = 'R.ONE'").collect()] == [b"alone"]
    assert (qm.depth("Q"), qm.depth("R.ONE"), qm.inspect.units()) == (0, 0, [])


def test_a_drain_refuses_to_continue_an_archive_with_another_checkpoint(
    spark: SparkSession, qm: QueueManager, url: str, folder: Path
) -> None:
    """Otherwise Spark's file sink would skip the batches, and their messages would be in no file."""
    archive = folder / "archive"
    qm.put_many("Q", members())
    jobs.drain(spark, url, "Q", archive)
    qm.put_many("Q", members(GROUPS))
    with pytest.raises(CheckpointLost, match="was written with another checkpoint"):
        jobs.drain(spark, url, "Q", archive, checkpoint=folder / "new")
    jobs.drain(spark, url, "Q", folder / "other", checkpoint=folder / "other checkpoint", application="other")
    with pytest.raises(CheckpointLost, match="was written with another checkpoint"):
        jobs.drain(spark, url, "Q", archive, checkpoint=folder / "other checkpoint", application="other")
    shutil.rmtree(archive / "_checkpoint")
    with pytest.raises(CheckpointLost, match="which does not exist"):
        jobs.drain(spark, url, "Q", archive)
    assert (bodies(spark, archive), bodies(spark, folder / "other")) == (in_groups(), in_groups(GROUPS))


HARD_NAMES = (  # for folders of partitions: escapes, reserved words, and values whose type Spark would infer
    *("/", "A/B", "//", ".", "..", "_", "_X", "%", "%%", "%2F", "%3D", "_metadata", "_temporary", "_spark_metadata"),
    *("a", "A", "queue", "date", "null", "NULL", "true", "NaN", "Infinity", "__HIVE_DEFAULT_PARTITION__"),
    *("007", "7", "7.0", "1e5", "1E999999999", "1d", "2024", "2024.05.01", "9" * 48, "/" * 48, "%" * 48),
)


def test_jobs_keep_messages_under_the_name_of_their_queue_whatever_it_is(
    spark: SparkSession, qm: QueueManager, url: str, folder: Path, files: Path
) -> None:
    archive, count = folder / "archive", len(HARD_NAMES)
    for name in HARD_NAMES:
        qm.create_queue(name)
        put_file(qm, name, files, "deep/er/run.sh", "whole")
    qm.create_queue("BACK")
    assert jobs.drain(spark, url, ",".join(HARD_NAMES), archive).messages == 2 * count
    audited = jobs.audit(spark, archive, folder / "audit", order="logical")
    assert (audited.queues, audited.groups, audited.error_count) == (count, count, 0)
    assert jobs.reorder(spark, archive, folder / "ordered").groups == count
    for rows in archive, folder / "ordered":
        found = read_archive(spark, rows).groupBy("queue").count().collect()
        assert sorted(map(tuple, found)) == sorted((name, 2) for name in HARD_NAMES)
        assert jobs.unload(spark, rows, folder / f"back from {rows.name}").files == count
    named = f"queue IN {HARD_NAMES}"
    assert jobs.replay(spark, archive, url, "BACK", transaction="again", where=named).messages == 2 * count


# ---- load and unload: files


def test_a_load_takes_only_the_files_that_its_patterns_select(spark: SparkSession, url: str, files: Path) -> None:
    loaded = jobs.load(spark, files, url, "Q", format="files", patterns=["**/*.sh", "*.txt"], exclude=["text*"])
    assert loaded.files == 1


def test_files_are_unloaded_from_the_queue_itself(qm: QueueManager, folder: Path, files: Path) -> None:
    for path in tree(files):
        put_file(qm, "Q", files, path, "size:100")
    assert len(list(jobs.unload_queue(qm, "Q", folder / "back"))) == 4
    assert tree(folder / "back") == tree(files)
    assert qm.inspect.status("Q").current_depth == 0


def test_a_damaged_file_is_reported_and_the_others_are_written(
    spark: SparkSession, url: str, folder: Path, files: Path, qm: QueueManager
) -> None:
    jobs.load(spark, files, url, "Q", format="files", split="delimiter:\\n")
    qm.put("Q", b"no file")
    jobs.drain(spark, url, "Q", folder / "archive")
    rows = spark.read.parquet(str(folder / "archive"))
    is_two = F.col("body").eqNullSafe(F.lit(b"two\n"))
    damaged = rows.withColumn("body", F.when(is_two, F.lit(b"owt\n")).otherwise(F.col("body")))
    written = jobs.unload(spark, damaged, folder / "back")
    assert (written.files, written.failed, written.others) == (3, 1, 1)
    assert (written.troubles[0].path, "SHA-256" in written.troubles[0].why) == ("text.txt", True)
    assert tree(folder / "back") == {name: file for name, file in tree(files).items() if name != "text.txt"}


# ---- load: tables


@pytest.mark.parametrize("format_", ["json", "csv", "parquet"])
def test_tables_become_groups_in_order(
    spark: SparkSession, qm: QueueManager, url: str, folder: Path, format_: Any
) -> None:
    rows = [(f"{customer}-{number}", customer, number, 3) for number in (3, 1, 2) for customer in ("a", "b")]
    table = spark.createDataFrame(rows, "body string, customer string, number int, priority int")
    table.write.format(format_).option("header", True).save(str(folder / "table"))
    options = {"header": "true", "inferSchema": "true"} if format_ == "csv" else {}
    named: dict[str, Any] = {"group_by": "customer", "order_by": "number", "read_options": options}
    loaded = jobs.load(spark, folder / "table", url, "Q", format=format_, **named)
    assert (loaded.messages, loaded.files) == (6, None)
    found = [[message.body for message in qm.get_group("Q")] for _ in range(2)]
    assert sorted(found) == [[b"a-1", b"a-2", b"a-3"], [b"b-1", b"b-2", b"b-3"]]


@gate
@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"format": "xml"}, ArgumentError, "format must be one of: parquet, json, csv, files, dmpmqmsg, not 'xml'"),
        ({"format": "files", "group_by": "x"}, OptionsError, "group_by has no meaning for the format files"),
        ({"format": "dmpmqmsg", "patterns": ["*"]}, OptionsError, "patterns has no meaning for the format dmpmqmsg"),
    ],
)
def test_a_load_refuses_unknown_formats_and_options_without_meaning(
    spark: SparkSession, url: str, files: Path, options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        jobs.load(spark, files, url, "Q", **options)


# ---- load and replay: several stores


@pytest.mark.parametrize("function", [jobs.load, jobs.replay, jobs.drain, finish, transaction_time])
def test_a_python_list_of_stores_is_refused_with_the_remedy(function: Callable[..., object]) -> None:
    given = {"url": ["a.db", "b.db"], "queue": "Q", "transaction": "monday", "format": "parquet", "application": "a"}
    named = {name: given.get(name) for name, one in signature(function).parameters.items() if one.default is one.empty}
    with pytest.raises(ArgumentError, match=r"url must be a store, or a JSON list of stores, json.dumps\(.*, not \['a"):
        function(**named)


def test_a_load_and_a_replay_put_each_message_once_in_one_of_several_stores(
    spark: SparkSession, qm: QueueManager, url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = [str(folder / name) for name in ("one.db", "two.db")]
    for target in targets:
        with connect(target) as there:
            there.create_queue("Q")
            there.create_queue("R")

    def found(queue: str) -> list[list[bytes]]:
        """The messages in each store; each group is in one store, in order."""
        held = []
        for target in targets:
            with connect(target) as there:
                assert there.inspect.units() == []
                held.append([message.body for message in there.browse(queue, logical=True)])
        return held

    qm.put_many("Q", members())
    jobs.drain(spark, url, "Q", folder / "archive")
    rows = [(f"{group}/{number}", group, number) for number in (2, 1) for group in range(GROUPS)]
    spark.createDataFrame(rows, "body string, g int, n int").write.parquet(str(folder / "table"))
    for is_repeated, looks in (False, True), (True, True), (True, False):
        if not looks:  # as if another run put everything after this run's check
            for name in "load", "replay":
                monkeypatch.setattr(import_module(f"inorder.spark.jobs.{name}"), "transaction_time", lambda *_: None)
        named = {"transaction": "monday", "group_by": "g", "order_by": "n"}
        loaded = jobs.load(spark, folder / "table", json.dumps(targets), "Q", format="parquet", **named)  # type: ignore[arg-type]
        replayed = jobs.replay(spark, folder / "archive", json.dumps(targets), "R", transaction="monday")
        assert (loaded.already, replayed.already) == (is_repeated, is_repeated)
        assert (loaded.messages, replayed.messages) == ((0, 0) if is_repeated else (2 * GROUPS, GROUPS * MEMBERS))
    for queue, size in (("Q", 2), ("R", MEMBERS)):
        held = found(queue)
        assert all(held), "both stores have some"
        groups = [some[at : at + size] for some in held for at in range(0, len(some), size)]
        assert sorted(groups) == sorted([b"%d/%d" % (group, n + 1) for n in range(size)] for group in range(GROUPS))


# ---- dmpmqmsg


def test_messages_are_dumped_to_dmpmqmsg_texts_and_loaded_from_them(
    spark: SparkSession, qm: QueueManager, url: str, folder: Path
) -> None:
    qm.create_queue("R")
    qm.put_many("Q", members())
    qm.put("Q", bytes(range(256)), priority=7, correlation_id=b"abc", format="MQSTR", expiry=100.0)
    jobs.drain(spark, url, "Q", folder / "archive")
    assert jobs.dump(spark, folder / "archive", folder / "texts") == GROUPS * MEMBERS + 1
    assert jobs.load(spark, folder / "texts", url, "R", format="dmpmqmsg").messages == GROUPS * MEMBERS + 1
    first = qm.get("R")
    assert (first.body, first.priority, first.format) == (bytes(range(256)), 7, "MQSTR")
    assert first.correlation_id == b"abc".ljust(24, b"\0")
    assert [message.body for message in qm.get_group("R")] == in_groups()[:MEMBERS]
    with pytest.raises(ArgumentError, match="a folder without part-00000"):
        jobs.dump(spark, folder / "archive", folder / "texts")


def test_an_archive_keeps_properties_and_a_dump_refuses_or_leaves_them_out(
    queues: SparkSession, url: str, folder: Path
) -> None:
    wanted = put_properties(url)
    rows = queues.read.format("inorder").option("queue", "Q").load(url)
    rows.write.parquet(str(folder / "archive"))
    assert jobs.replay(queues, folder / "archive", url, "COPY", transaction="1").messages == 3
    assert properties_on(url, "COPY") == wanted
    with pytest.raises(QueueCondition, match="properties: the format cannot store them"):
        jobs.dump(queues, folder / "archive", folder / "texts")
    assert jobs.dump(queues, folder / "archive", folder / "texts", leave_out_properties=True) == 3
    with_queues(url, "LOADED")
    assert jobs.load(queues, folder / "texts", url, "LOADED", format="dmpmqmsg").messages == 3
    assert properties_on(url, "LOADED") == [None] * 3
    rows.drop("properties").write.parquet(str(folder / "old"))  # from a release without properties
    assert jobs.replay(queues, folder / "old", url, "LOADED", transaction="1").messages == 3
    assert properties_on(url, "LOADED") == [None] * 6


# ---- replay


def test_replay_puts_an_archive_back_in_order_and_only_once(
    spark: SparkSession, qm: QueueManager, url: str, folder: Path
) -> None:
    qm.create_queue("R")
    qm.create_queue("PART")
    qm.put_many("Q", members())
    jobs.drain(spark, url, "Q", folder / "archive", order="physical")
    assert bodies(spark, folder / "archive") == [message.body for message in members()]
    first = jobs.replay(spark, folder / "archive", url, "R", transaction="again")
    again = jobs.replay(spark, folder / "archive", url, "R", transaction="again")
    assert (first.messages, first.already, again.messages, again.already) == (GROUPS * MEMBERS, False, 0, True)
    assert [message.body for message in qm.browse("R")] == in_groups()
    assert {message.body for message in qm.get_group("R")} == set(in_groups()[:MEMBERS])
    with pytest.raises(QueueCondition, match="after message 1 comes message 3"):
        jobs.replay(spark, folder / "archive", url, "PART", transaction="half", where="sequence_number <> 2")
    assert qm.inspect.status("PART").current_depth == 0
    of_two = "group_id < CAST('2' AS BINARY)"
    assert jobs.replay(spark, folder / "archive", url, "PART", transaction="a part", where=of_two).messages == 60


# ---- commands


@gate
def test_the_commands_run_the_jobs_and_print_json(
    spark: SparkSession, qm: QueueManager, url: str, folder: Path, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> dict[str, Any]:
        assert main([*arguments, "--json"]) == 0
        told: dict[str, Any] = json.loads(capsys.readouterr().out)
        return told

    archive, back, store = str(folder / "archive"), str(folder / "back"), ("--store", url)
    load = ("pipeline", "load", str(files), "Q", "--format", "files", "--transaction", "monday", *store)
    loaded, put = run(*load), [message.body for message in qm.browse("Q")]
    assert (loaded["files"], loaded["already"]) == (4, False)
    assert (loaded["messages"], loaded["size"]) == (len(put), sum(map(len, put)))
    again = run(*load)
    assert (again["already"], again["messages"], again["size"]) == (True, 0, 0)
    assert run("pipeline", "drain", "Q", archive, *store)["batches"] == 1
    finished = run("claim", "finish", "Q", "drain", "--checkpoint", f"{archive}/_checkpoint", *store)
    assert finished == {"queue": "Q", "application": "drain", "confirmed": 0}
    incomplete = ("--incomplete", str(folder / "aside"))
    assert run("pipeline", "reorder", archive, str(folder / "ordered"), *incomplete)["groups"] == 4
    assert run("pipeline", "audit", archive, str(folder / "audit"))["error_count"] == 0
    written = run("pipeline", "unload", archive, back)
    size = sum(len(content) for content, _ in tree(files).values())
    assert (written["files"], written["messages"], written["size"]) == (4, loaded["messages"], size)
    assert tree(Path(back)) == tree(files)
    replay = ("pipeline", "replay", str(folder / "ordered"), "Q", "--transaction", "again", *store)
    assert run(*replay)["messages"] > 0
    assert run("pipeline", "unload", archive, str(folder / "texts"), "--format", "dmpmqmsg")["messages"] > 0


@pytest.mark.spark
def test_ctrl_c_ends_a_command_with_one_sentence(url: str, folder: Path) -> None:
    """The command runs in a process of its own, whose standard error is not that of its JVM."""
    command = [sys.executable, "-m", "inorder", "pipeline", "drain", "Q", str(folder / "archive"), "--follow"]
    with subprocess.Popen(
        [*command, "--store", url],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - there are no threads here
    ) as one:
        assert one.stderr is not None
        assert one.stderr.readline().startswith("batch 0: ")
        one.send_signal(signal.SIGINT)
        told = one.stderr.readlines()
    assert told == ["interrupted; a claim may hold the last batch: the same command continues with it\n"]
    assert one.returncode == 130


CALLING = "Py4JJavaError: An error occurred while calling o82.start.\n: "


@pytest.mark.parametrize(
    ("text", "told", "reason"),
    [
        (
            CALLING + "java.io.IOException: mkdir of file:/proc/x/_spark_metadata failed\n\tat org.apache.hadoop.A.b",
            "/proc/x/_spark_metadata cannot be created: name a folder in which this user may write",
            Reason.RESOURCE_PROBLEM,
        ),
        (
            CALLING + "org.apache.spark.SparkException: Job aborted: java.io.IOException: Mkdirs failed to create "
            "file:/proc/f/_temporary/0 (exists=false, cwd=file:/tmp)\n\tat org.apache.spark.A.b",
            "/proc/f/_temporary/0 cannot be created: name a folder in which this user may write",
            Reason.RESOURCE_PROBLEM,
        ),
        (
            CALLING + "java.lang.IllegalStateException: it is too late\n\tat org.apache.spark.A.b",
            "java.lang.IllegalStateException: it is too late",
            Reason.UNEXPECTED_ERROR,
        ),
        ("Py4JError: the gateway is closed", "Py4JError: the gateway is closed", Reason.UNEXPECTED_ERROR),
        ("", "Spark gave no reason", Reason.UNEXPECTED_ERROR),
    ],
)
def test_an_error_of_spark_is_reported_by_its_cause(text: str, told: str, reason: Reason) -> None:
    """Spark has raised errors with these texts."""
    assert plain(text) == (told, reason)
