"""The progress of a job: figures noted by tasks, their sum, and the end of the reports."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("pyspark", reason="needs the extra inorder[spark]")

from pyspark import TaskContext
from pyspark.sql import SparkSession
from tests.tiers import gate

from inorder import QueueManager
from inorder.errors import QueueCondition
from inorder.spark import jobs
from inorder.spark.jobs import Progress, sessions
from inorder.spark.jobs.progress import look_until
from inorder.spark.tally import FOLDER, Tally, added_up


@pytest.fixture
def files(folder: Path) -> Path:
    root = folder / "files"
    root.mkdir()
    for number in range(20):
        (root / f"{number}.txt").write_text("a line\n" * number, encoding="ascii")
    return root


def tally_of(monkeypatch: pytest.MonkeyPatch, partition: int, folder: Path | None) -> Tally:
    """The tally of a task; `folder` is None if progress is not reported."""
    known = {FOLDER: None if folder is None else str(folder)}
    task = SimpleNamespace(partitionId=lambda: partition, getLocalProperty=known.__getitem__)
    with monkeypatch.context() as patched:
        patched.setattr(TaskContext, "get", lambda: task)
        return Tally()


def told_by(work: Any) -> list[Progress]:
    """Returns a job's reports; checks that its figures never fall, and that it leaves no thread."""
    told = list[Progress]()
    work(told.append)
    assert told == sorted(told), "messages, bytes and seconds grow"
    assert not any(one.name.startswith("inorder-progress") for one in threading.enumerate())
    return told


# ---- without Spark


def test_the_tasks_figures_are_added_up_and_a_repeated_task_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (tally_of(monkeypatch, number, tmp_path) for number in (0, 1))
    (tmp_path / "2").write_bytes(b"")  # not written yet
    assert added_up(str(tmp_path)) == (0, 0)
    one.note(3, 30)
    other.note(1, 5)
    one.note(4, 2**40)
    assert added_up(str(tmp_path)) == (5, 2**40 + 5)
    tally_of(monkeypatch, 0, tmp_path).note(2, 20)
    assert added_up(str(tmp_path)) == (3, 25)


@pytest.mark.parametrize("folder", [None, Path("/not/on/this/machine")])
def test_a_task_without_a_folder_for_its_figures_does_not_fail(
    monkeypatch: pytest.MonkeyPatch, folder: Path | None
) -> None:
    tally_of(monkeypatch, 0, folder).note(1, 1)
    assert folder is None or not folder.exists()
    Tally().note(1, 1)  # outside of a task


def test_progress_is_reported_after_each_wait_and_at_the_end() -> None:
    waits, looks, clock = (
        iter([False, False, True]),
        iter([(0, 0), (2, 9), (5, 20)]),
        iter([100.0, 101.0, 102.0, 102.5]),
    )
    told: list[Progress] = []
    look_until(lambda _: next(waits), lambda: next(looks), told.append, 5, clock=lambda: next(clock))
    assert told == [Progress(*one, total=5) for one in ((0, 0, 1.0), (2, 9, 2.0), (5, 20, 2.5))]


# ---- jobs


def test_each_job_reports_its_progress_up_to_its_total(
    spark: SparkSession, qm: QueueManager, url: str, folder: Path, files: Path
) -> None:
    archive, texts = folder / "archive", folder / "texts"
    loaded: list[jobs.Loaded] = []
    told = told_by(lambda tell: loaded.append(jobs.load(spark, files, url, "Q", format="files", progress=tell)))
    (load,) = loaded
    assert told[-1][:2] == (load.messages, load.size)
    assert not spark.sparkContext.getLocalProperty(FOLDER)
    batches: list[Progress] = []
    drained = jobs.drain(spark, url, "Q", archive, messages_per_batch=100, progress=batches.append)
    by_batch = {one.batch: one.messages for one in batches if one.batch is not None}
    assert sorted(by_batch.values()) == [*by_batch.values()]
    assert (drained.messages, drained.batches, max(by_batch.values())) == (load.messages, len(by_batch), load.messages)
    told = told_by(lambda tell: jobs.unload(spark, archive, folder / "back", progress=tell))
    assert told[-1][:2] == (load.messages, sum(path.stat().st_size for path in files.iterdir()))
    assert told[0].total == load.messages
    qm.create_queue("R")
    told = told_by(lambda tell: jobs.replay(spark, archive, url, "R", transaction="again", progress=tell))
    assert (told[-1].messages, told[-1].total) == (load.messages, load.messages)
    none = told_by(lambda tell: jobs.replay(spark, archive, url, "R", transaction="no", where="false", progress=tell))
    assert (none[-1].messages, none[-1].total) == (0, None), "the archive is not read for a total"
    told = told_by(lambda tell: jobs.dump(spark, archive, texts, progress=tell))
    assert told[-1][:2] == (load.messages, sum(path.stat().st_size for path in texts.glob("part-*")))


@gate
def test_progress_reports_end_with_a_job_that_fails(spark: SparkSession, url: str, folder: Path) -> None:
    (folder / "text").write_text("no text of dmpmqmsg\n", encoding="ascii")

    def work(tell: Any) -> None:
        with pytest.raises(QueueCondition, match="line 1"):
            jobs.load(spark, folder / "text", url, "Q", format="dmpmqmsg", progress=tell)

    told_by(work)
    assert not spark.sparkContext.getLocalProperty(FOLDER)


def test_an_error_of_the_callback_is_raised_when_the_job_is_done(
    spark: SparkSession, qm: QueueManager, url: str, files: Path
) -> None:
    def fail(now: Progress) -> None:
        raise ZeroDivisionError(now)

    with pytest.raises(ZeroDivisionError):
        jobs.load(spark, files, url, "Q", format="files", progress=fail)
    assert qm.inspect.status("Q").current_depth > 0


# ---- the session of a job


def test_java_options_that_are_set_elsewhere_stay_unless_others_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    for given in ("", "-Xint"):
        builder = MagicMock()
        builder.appName.return_value = builder.config.return_value = builder
        monkeypatch.setattr(SparkSession, "builder", builder)
        with sessions.session("a job", java_options=given):
            told = [asked.args[1] for asked in builder.config.mock_calls if "extraJava" in str(asked.args)]
        assert told == [given] * bool(given)
