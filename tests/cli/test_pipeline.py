"""Checks of the commands of jobs before Spark starts, and the speeds that they print.

Nothing here starts Spark; `tests/spark/test_jobs.py` runs the jobs.
"""

from __future__ import annotations

import io
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import click
import pytest
from tests.cli.conftest import Command, Terminal

from inorder.cli import drawing, pipeline, readiness
from inorder.cli.pipeline import tell_result, told_while_it_works
from inorder.cli.running import Run
from inorder.errors import QueueFull
from inorder.support.advice import how_to_install


class Progress(NamedTuple):
    """A job's report of its progress; the class itself needs PySpark."""

    messages: int
    size: int
    seconds: float
    batch: int | None = None
    total: int | None = None


@dataclass
class Done:
    messages: int
    size: int
    seconds: float


@pytest.mark.parametrize(
    ("errors", "as_json", "total", "told"),
    [
        (Terminal(), False, None, "3,000 messages, 4.0 M bytes, 1,500 messages/s, 2.0 M bytes/s"),
        (Terminal(), False, 12_000, "3,000 of 12,000 messages"),
        (Terminal(), True, None, None),
        (io.StringIO(), False, None, None),
    ],
    ids=["people", "of a total", "machines", "nobody looks"],
)
def test_people_see_the_progress_of_a_job_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, errors: io.StringIO, as_json: bool, total: int | None, told: str | None
) -> None:
    monkeypatch.setattr("sys.stderr", errors)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr(drawing, "SHOWN_AFTER_SECONDS", 0.0)
    with told_while_it_works(Run(None, as_json=as_json), total) as tell:
        tell(Progress(3000, 4 * 2**20, 2.0))
    assert told in errors.getvalue() if told else errors.getvalue() == ""


def test_a_bar_shows_the_time_left_and_nothing_in_the_first_second(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = Terminal()
    monkeypatch.setattr("sys.stderr", errors)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    with told_while_it_works(Run(None, as_json=False)) as tell:
        tell(Progress(3000, 4 * 2**20, 2.0, total=12_000))
        assert "messages" not in errors.getvalue()
        monkeypatch.setattr(drawing, "SHOWN_AFTER_SECONDS", 0.0)
        tell(Progress(3000, 4 * 2**20, 2.0, total=12_000))
    assert "3,000 of 12,000 messages" in errors.getvalue()
    assert re.search(r"\d\.\d s left", errors.getvalue())
    assert drawing.time_left(20.0, 1_000, 4_000) == "60 s left"
    assert drawing.time_left(20.0, 0, 4_000) == drawing.time_left(20.0, 4_000, 4_000) == ""
    assert drawing.time_left(20.0, 4_000, None) == ""


def test_people_see_the_rate_of_a_job_and_json_has_only_its_figures(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tell_result(Run(None, as_json=False), Done(3000, 4 * 2**20, 2.0))
    assert capsys.readouterr().out.splitlines()[-1] == "rate             1,500 messages/s, 2.0 M bytes/s"
    tell_result(Run(None, as_json=False), Done(0, 0, 0.0))
    assert "rate" not in capsys.readouterr().out
    tell_result(Run(None, as_json=True), Done(3000, 4 * 2**20, 2.0))
    assert capsys.readouterr().out == '{"messages": 3000, "size": 4194304, "seconds": 2.0}\n'


def test_results_for_people_have_labels_and_a_line_for_each_error(capsys: pytest.CaptureFixture[str]) -> None:
    @dataclass
    class Unloaded:
        size: int
        already: bool
        files: int | None
        troubles: tuple[tuple[str | None, str, str], ...]

    tell_result(
        Run(None, as_json=False), Unloaded(1_000, True, None, (("a/b", "", "no room"), (None, "c0", "no room")))
    )
    assert capsys.readouterr().out.splitlines() == [
        "bytes of bodies        1,000",
        "put by an earlier run  yes",
        "trouble                a/b: no room",
        "trouble                group c0: no room",
    ]


# ---- checks before a JVM starts


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes each start of Spark fail."""

    def begun(name: str) -> None:
        raise AssertionError(f"{name} was loaded")

    monkeypatch.setattr(pipeline, "import_module", begun)


@pytest.mark.usefixtures("no_spark", "queue")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("drain NONE archive", "there is no queue 'NONE'"),
        ("drain ORDERS archive --spark-log orders.db", "--spark-log orders.db is a store, or a file of one"),
        ("audit archive findings --spark-log orders.db-wal", "--spark-log orders.db-wal is a store, or a file of one"),
        ("drain ORDERS file", "ARCHIVE file must be a folder, and is a file."),
        ("drain ORDERS archive --driver-memory lots", "'lots' must be a number with a unit, such as 2g or 512m."),
        ("drain ORDERS archive --partitions 0", "Invalid value for '--partitions': 0 is not in the range"),
        ("drain ORDERS archive --messages-per-batch 0", "for '--messages-per-batch': 0 is not in the range"),
        ("drain ORDERS archive --application ''", "--application must be a text of 1 to 200 characters, not ''"),
        ("load file ORDERS --format csv --transaction ' '", "--transaction must be a text of 1 to 200 characters"),
        ("replay archive ORDERS --transaction ''", "--transaction must be a text of 1 to 200 characters, not ''"),
        ("load file ORDERS --format csv --bad-rows ORDERS", "'ORDERS' must be fail, or queue:NAME."),
        ("load file ORDERS --format csv --bad-rows FAIL --split whole", "--split needs --format files."),
        ("load file ORDERS --format csv --bad-rows Queue:NONE", "there is no queue 'NONE'"),
        ("load file ORDERS --format csv --bad-rows queue:NONE", "there is no queue 'NONE'"),
        ("load file ORDERS --format csv --split whole", "--split needs --format files."),
        ("load file ORDERS --format files --split by-magic", "Invalid value for '--split': it must be delimiter:"),
        ("reorder none target", "There is no archive none: 'inorder pipeline drain' creates one."),
        ("reorder empty target", "empty is not an archive: it has no Parquet files."),
        ("reorder archive target --order physical --join-segments", "need --order logical."),
        ("audit archive empty", "OUTPUT empty exists already: name another folder, or give --overwrite."),
        ("unload archive file", "TARGET file must be a folder, and is a file."),
        ("unload archive files --order logical", "--order needs --format dmpmqmsg."),
        ("unload archive files --format dmpmqmsg --existing same", "--existing same needs --format files."),
    ],
)
def test_ordinary_errors_are_reported_in_one_sentence_before_spark_starts(
    run: Command, tmp_path: Path, arguments: str, told: str
) -> None:
    (tmp_path / "file").write_text("a text", encoding="ascii")
    (tmp_path / "empty").mkdir()
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive/part-0.parquet").touch()
    words = shlex.split(arguments)
    store = ("--store", str(tmp_path / "orders.db")) if words[0] in ("drain", "load", "replay") else ()
    ended = run("pipeline", *words, *store)
    assert (ended.status, ended.out) == (2, "")
    last = ended.err.splitlines()[-1]
    assert last.startswith("inorder: ")
    assert told in last


@pytest.mark.usefixtures("no_spark", "queue")
def test_blanks_around_the_commas_between_queues_are_ignored(run: Command) -> None:
    ended = run("pipeline", "drain", "ORDERS , NONE", "archive")
    assert "there is no queue 'NONE'" in ended.err
    assert run("queue", "create", "NONE").status == 0
    with pytest.raises(AssertionError, match="was loaded"):
        run("pipeline", "drain", "ORDERS , NONE", "archive")


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize(
    ("script", "told"),
    [
        (None, "which has no bin/java"),
        ("echo 'openjdk version \"1.8.0_402\"' >&2", "is Java 8: install Java 17 or later"),
        ("echo hello", "does not print its version"),
        ("echo 'openjdk version \"17.0.15\"' >&2", ""),
        ("echo 'java version \"25\" 2025-09-16' >&2", ""),
    ],
)
def test_the_version_of_java_is_checked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: Command, script: str | None, told: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive/part-0.parquet").touch()
    if script is not None:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin/java").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bin/java").chmod(0o755)
    if not told:
        readiness.check_java()
        return
    ended = run("pipeline", "audit", "archive", "findings")
    assert (ended.status, told in ended.err.splitlines()[-1]) == (2, True), ended.err


def test_a_missing_library_is_reported_with_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, run: Command, tmp_path: Path
) -> None:
    monkeypatch.setattr(readiness, "find_spec", lambda name: None)
    (tmp_path / "a.parquet").touch()
    ended = run("pipeline", "audit", ".", "findings")
    assert (ended.status, how_to_install("spark") in ended.err) == (2, True)


@pytest.mark.parametrize("target", ["closed", "closed/new", "closed/new/er"])
def test_a_folder_in_which_this_user_may_not_write_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, target: str
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: path != closed)  # root may write everywhere
    with pytest.raises(click.ClickException, match=rf"TARGET {target} cannot be written: .* not write to {closed}\."):
        readiness.check_target("TARGET", target, overwrite=True)
    readiness.check_target("TARGET", "open/new", overwrite=True)


def test_the_choices_of_a_missing_option_are_listed_in_one_line(run: Command) -> None:
    ended = run("pipeline", "load", "file", "ORDERS")
    assert (ended.status, r"\n" in ended.err) == (2, False), ended.err
    assert "Choose from: parquet, json, csv, files, dmpmqmsg." in ended.err


def test_remote_paths_are_not_checked_before_spark_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    for elsewhere in ("s3a://bucket/none", "hdfs://host/none"):
        readiness.check_archive(elsewhere)
        readiness.check_target("TARGET", elsewhere, overwrite=False)
    assert readiness.local("file:///a/b") == readiness.local("file:/a/b") == Path("/a/b")
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    readiness.check_archive("none")


# ---- exit statuses


@dataclass
class Judged:
    """The result of an audit."""

    error_count: int


@pytest.mark.parametrize(
    ("done", "status"),
    [
        (Judged(error_count=0), 0),
        (Judged(error_count=2), 1),
        (QueueFull("the queue is full", queue="ORDERS"), 3),
    ],
)
def test_status_1_means_only_that_an_audit_found_errors(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: Any, status: int
) -> None:
    def audit(*_: Any, **__: Any) -> Any:
        if isinstance(done, Exception):
            raise done
        return done

    @contextmanager
    def begun(_: pipeline.Spark) -> Iterator[tuple[Any, Any]]:
        yield SimpleNamespace(audit=audit), None

    monkeypatch.setattr(pipeline.Spark, "begun", begun)
    (tmp_path / "a.parquet").touch()
    ended = run("pipeline", "audit", ".", "findings")
    assert ended.status == status
    assert ("the queue is full [2053 Q_FULL]" in ended.err) == (status == 3)


@pytest.mark.usefixtures("queue")
def test_an_interrupted_drain_does_not_say_that_it_holds_nothing(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def drain(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    @contextmanager
    def begun(_: pipeline.Spark) -> Iterator[tuple[Any, Any]]:
        yield SimpleNamespace(drain=drain), None

    monkeypatch.setattr(pipeline.Spark, "begun", begun)
    ended = run("pipeline", "drain", "ORDERS", "archive")
    told = "interrupted; a claim may hold the last batch: the same command continues with it"
    assert (ended.status, ended.err.strip()) == (130, told)
