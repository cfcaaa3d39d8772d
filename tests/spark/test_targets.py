"""Jobs never write into a store, a file beside one, a folder with a store in it, a pipe or a regular file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.archives import in_archive, placed
from tests.tiers import gate, nightly

import inorder
from inorder import QueueCondition
from inorder.errors import ArgumentError
from inorder.formats import FileError
from inorder.spark import jobs
from inorder.spark.files import texts_at

pytestmark = gate
BESIDE = ("", "-lock", "-wal", "-shm", "-journal")
INCOMPLETE = r"part-.* is not a Parquet file, or is incomplete: restore it from a copy, or remove it"
Job = Callable[[SparkSession, DataFrame, Path, Path], Any]

JOBS: dict[str, Job] = {  # called with a session, an archive, a store and a target
    "reorder": lambda spark, archive, _, target: jobs.reorder(spark, archive, target, overwrite=True),
    "reorder, aside": lambda spark, archive, store, target: jobs.reorder(
        spark, archive, store.parent / "new", incomplete=target, overwrite=True
    ),
    "audit": lambda spark, archive, _, target: jobs.audit(spark, archive, target, overwrite=True),
    "drain": lambda spark, _, store, target: jobs.drain(spark, store, "Q", target),
    "drain, checkpoint": lambda spark, _, store, target: jobs.drain(
        spark, store, "Q", store.parent / "new", checkpoint=target
    ),
    "unload": lambda spark, archive, _, target: jobs.unload(spark, archive, target, existing="replace"),
    "dump": lambda spark, archive, _, target: jobs.dump(spark, archive, target, overwrite=True),
    "unload_queue": lambda spark, _, store, target: unloaded(store, target),
}


def unloaded(store: Path, target: Path) -> list[Path]:
    with inorder.connect(store) as qm:
        return list(jobs.unload_queue(qm, "Q", target, existing="replace"))


@pytest.fixture
def store(folder: Path) -> Path:
    """A store with a message, which no process has open."""
    path = folder / "orders.db"
    with inorder.connect(path) as qm:
        qm.create_queue("Q")
        qm.put("Q", b"kept")
    return path


@pytest.fixture
def archive(spark: SparkSession) -> DataFrame:
    return in_archive(spark, placed([{}]), slices=1)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def is_whole(store: Path) -> bool:
    with inorder.connect(store) as qm:
        return not qm.admin.check() and [message.body for message in qm.browse("Q")] == [b"kept"]


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_a_job_writes_neither_to_a_path_of_a_store_nor_to_anything_but_a_folder(
    spark: SparkSession, archive: DataFrame, store: Path, job: Job
) -> None:
    os.mkfifo(store.parent / "pipe")
    (store.parent / "notes").write_text("mine")
    (store.parent / "link").symlink_to(store)
    before = names(store.parent)
    for target in [*(f"{store.name}{suffix}" for suffix in BESIDE), "pipe", "notes", "link"]:
        with pytest.raises(ArgumentError, match="must be a folder, not a file, a store"):
            job(spark, archive, store, store.parent / target)
    assert names(store.parent) == before
    assert (store.parent / "pipe").is_fifo()
    assert (store.parent / "notes").read_text() == "mine"
    assert is_whole(store)


def test_a_folder_with_a_store_in_it_is_not_removed(spark: SparkSession, archive: DataFrame, store: Path) -> None:
    inner = store.parent / "old/er"
    inner.mkdir(parents=True)
    for suffix in BESIDE[:2]:
        (store.parent / f"{store.name}{suffix}").rename(inner / f"{store.name}{suffix}")
    for name, options in (
        ("target", {"target": inner.parent}),
        ("target", {"target": inner}),
        ("incomplete", {"target": store.parent / "new", "incomplete": inner.parent}),
    ):
        with pytest.raises(ArgumentError, match=f"{name} must be a folder without a store"):
            jobs.reorder(spark, archive, overwrite=True, **options)  # type: ignore[arg-type]
    assert is_whole(inner / store.name)


def test_a_job_does_not_remove_the_archive_that_it_reads(spark: SparkSession, archive: DataFrame, folder: Path) -> None:
    path, link, other = folder / "a b" / "archive", folder / "link", folder / "other"
    archive.write.parquet(str(path))
    link.symlink_to(path)
    for source in (path, link, spark.read.parquet(str(path))):
        for wrong in (path, link, path.parent):
            with pytest.raises(ArgumentError, match="target must be a folder that does not contain"):
                jobs.reorder(spark, source, wrong, overwrite=True)
            with pytest.raises(ArgumentError, match="incomplete must be a folder that does not contain"):
                jobs.reorder(spark, source, other, incomplete=wrong, overwrite=True)
    for aside in (other, folder / "new" / ".." / "other"):
        with pytest.raises(ArgumentError, match="incomplete must be a folder that does not contain"):
            jobs.reorder(spark, path, other, incomplete=aside)
    archive.write.partitionBy("queue").parquet(str(folder / "parted"))
    parted = spark.read.parquet(str(folder / "parted"))
    for source, wrong in (path, path), (path, link), (link, path / "in it"), (parted, folder / "parted/in it"):
        with pytest.raises(ArgumentError, match="output must be a folder outside of the archive"):
            jobs.audit(spark, source, wrong, overwrite=True)
    path.rename(folder / "findings.parquet")
    with pytest.raises(ArgumentError, match=r"output must be a folder that does not contain .*/findings\.parquet"):
        jobs.audit(spark, folder / "findings.parquet", folder, overwrite=True)
    (folder / "findings.parquet").rename(path)
    for overwrite in (False, True):
        with pytest.raises(ArgumentError, match=r"a folder without part-.*\.parquet, which is not a text of this job"):
            jobs.dump(spark, path, path, overwrite=overwrite)
    assert not other.exists()
    assert spark.read.parquet(str(path)).count() == 1


def test_a_drain_does_not_hide_files_that_no_drain_wrote(
    spark: SparkSession, archive: DataFrame, store: Path, folder: Path
) -> None:
    archive.write.parquet(str(folder / "old"))
    archive.write.partitionBy("queue").parquet(str(folder / "older"))
    for name, hidden in (("old", "part-"), ("older", "queue=Q")):
        with pytest.raises(ArgumentError, match=f"readers of an archive would not see {hidden}"):
            jobs.drain(spark, store, "Q", folder / name)
    assert is_whole(store)


def test_a_damaged_archive_is_reported_in_one_line(spark: SparkSession, archive: DataFrame, folder: Path) -> None:
    damaged = folder / "damaged"
    archive.write.parquet(str(damaged))
    (part,) = damaged.glob("*.parquet")
    part.write_bytes(part.read_bytes()[:-40])
    (damaged / f".{part.name}.crc").unlink()
    (folder / "empty").mkdir()
    (folder / "empty/a.parquet").touch()
    reads: list[Callable[..., Any]] = [jobs.audit, jobs.reorder, jobs.unload, jobs.dump]
    for read in reads:
        for name, told in (("damaged", INCOMPLETE), ("empty", "has no Parquet files")):
            with pytest.raises(QueueCondition, match=told) as raised:
                read(spark, folder / name, folder / f"{read.__name__} {name}")
            assert "\n" not in str(raised.value)


@nightly
@pytest.mark.parametrize("what", ["pipe", "another name"])
def test_a_report_is_not_written_into_an_existing_pipe_or_link_to_a_store(
    spark: SparkSession, archive: DataFrame, store: Path, what: str
) -> None:
    summary = store.parent / "out/summary.json"
    summary.parent.mkdir()
    os.mkfifo(summary) if what == "pipe" else summary.hardlink_to(store)
    with pytest.raises(FileError, match="is a file of a store, or not a regular file"):
        jobs.audit(spark, archive, summary.parent, overwrite=True)
    summary.unlink()  # a store whose file has two names cannot be opened
    assert is_whole(store)


def test_a_repeated_dump_replaces_only_its_own_texts(
    spark: SparkSession, archive: DataFrame, store: Path, folder: Path
) -> None:
    target = folder / "texts"
    target.mkdir()
    assert jobs.dump(spark, archive, target) == 1
    assert jobs.dump(spark, archive, target, overwrite=True) == 1
    for make in (os.mkfifo, store.rename):
        make(target / "part-x")
        with pytest.raises(ArgumentError, match="part-x, which is not a text of this job"):
            jobs.dump(spark, archive, target, overwrite=True)
        assert "part-00000.txt" in names(target), "nothing goes when something must stay"
        (target / "part-x").rename(folder / "kept")
    assert is_whole(folder / "kept")


def test_a_pipe_is_not_read_as_a_dmpmqmsg_text(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(FileError, match="is a pipe or a device"):
        texts_at(str(folder / "pipe"))
