"""unload: files that went onto a queue as groups are written back, from an archive or from the queue itself."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa
from pyspark import StorageLevel, TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documents do

from ...errors import InorderError, NoMessageAvailable
from ...formats import FORMAT, Rebuilder, dmpmqmsg, get_file
from ...formats.file_group import Existing
from ...formats.manifest import parse
from ...manager import QueueManager
from ...message import Message
from .archive import Archive, check_target, is_member, read_archive
from .load import DUMPED
from .replay import in_order

MEMBER_COLUMNS = ("queue", "group_id", "sequence_number", "offset", "body")
REPORT = "path string, group_id binary, size long, trouble string"
REPORTED = pa.schema(
    [("path", pa.string()), ("group_id", pa.binary()), ("size", pa.int64()), ("trouble", pa.string())]
)
TROUBLES_SHOWN = 20
PART = "part-"


class Trouble(NamedTuple):
    """A file that could not be written: its path if it is known, its group's id in hexadecimal, and why."""

    path: str | None
    group_id: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unloaded:
    """What `unload` did.

    Args:
        files, size: written, and how many bytes.
        failed: files that could not be written.
        troubles: the first of them.
        others: messages that belong to no file.
    """

    files: int
    size: int
    failed: int
    troubles: tuple[Trouble, ...]
    others: int


def unload(
    spark: SparkSession,
    archive: Archive,
    target: str | PathLike[str],
    *,
    existing: Existing = "same",
) -> Unloaded:
    """Writes the files of an archive back, each checked against its manifest; many at a time.

    A file that is wrong or incomplete is not written, and told; the others are.

    Args:
        archive: a folder or a DataFrame.
        target: a folder that the tasks can write; it is made if it is missing.
        existing: what may be where a file belongs: "refuse" anything, accept the "same" bytes, "replace" it.
    """
    place = Path(fspath(target)).resolve()
    place.mkdir(parents=True, exist_ok=True)
    rows = read_archive(spark, archive)
    members = rows.where(is_member())
    of_files = members.where((F.col("format") == FORMAT) & (F.col("sequence_number") == 1)).select(
        "queue", "group_id"
    )
    found = members.select(*MEMBER_COLUMNS).join(of_files.distinct(), ["queue", "group_id"], "left_semi")
    together = found.repartition("queue", "group_id").sortWithinPartitions(
        "queue", "group_id", "sequence_number", "offset"
    )
    done = together.mapInArrow(_rebuilder(str(place), existing), REPORT).persist(StorageLevel.DISK_ONLY)
    try:
        files, size, failed = _counts(done)
        troubles = done.where("trouble IS NOT NULL").orderBy("path", "group_id").limit(TROUBLES_SHOWN).collect()
    finally:
        done.unpersist()
    others = rows.count() - found.count()
    told = tuple(Trouble(one.path, bytes(one.group_id).hex(), one.trouble) for one in troubles)
    return Unloaded(files=files, size=size, failed=failed, troubles=told, others=others)


def _counts(done: DataFrame) -> tuple[int, int, int]:
    is_good = F.col("trouble").isNull()
    found = done.agg(
        F.count_if(is_good), F.coalesce(F.sum(F.when(is_good, F.col("size"))), F.lit(0)), F.count_if(~is_good)
    ).first()
    assert found is not None, "an aggregate without keys has one row"
    return found[0], found[1], found[2]


def _rebuilder(target: str, existing: Existing) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def rebuild(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        groups = itertools.groupby(_rows(batches), key=lambda row: (row.queue, row.group_id))
        for (_, group_id), rows in groups:
            told = _rebuild(group_id, rows, target, existing)
            columns = [pa.array([value], field.type) for value, field in zip(told, REPORTED, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=REPORTED)

    return rebuild


class _Member(NamedTuple):
    """A row of `MEMBER_COLUMNS`."""

    queue: str
    group_id: bytes
    sequence_number: int
    offset: int
    body: bytes


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[_Member]:
    return (
        _Member(*row) for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    )


def _rebuild(group_id: bytes, rows: Iterator[_Member], target: str, existing: Existing) -> tuple[Any, ...]:
    """Writes one file; a row of the report about it."""
    path, size = None, 0
    try:
        manifest = parse(next(rows).body)
        path = manifest.path
        with Rebuilder(manifest, target, existing=existing) as file:
            for row in rows:
                file.add(row.body, begins=row.offset == 0)
                size += len(row.body)
            file.finish()
    except InorderError as trouble:
        return path, group_id, size, str(trouble)
    return path, group_id, size, None


def dump(
    spark: SparkSession,
    archive: Archive,
    target: str | PathLike[str],
    *,
    order: Literal["logical", "physical"] = "logical",
    overwrite: bool = False,
) -> int:
    """Writes an archive as texts of IBM's dmpmqmsg utility, in files that are in order; how many messages.

    Args:
        target: a folder that the tasks can write.

    Raises: ArgumentError, it is there already; FormatError, a message that the format cannot hold.
    """
    path = check_target(spark, "target", target, overwrite=overwrite)
    place = Path(path).resolve()
    place.mkdir(parents=True, exist_ok=True)
    for old in place.glob(f"{PART}*"):
        old.unlink()
    rows = in_order(read_archive(spark, archive), order).select(*DUMPED.names)
    written = rows.mapInArrow(_dumper(str(place)), "messages long").agg(F.sum("messages")).first()
    return 0 if written is None else written[0] or 0


def _dumper(target: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None, "tasks have a context"
        final = Path(target) / f"{PART}{context.partitionId():05}.txt"
        begun = final.with_name(f".{final.name}.{context.taskAttemptId()}")
        with begun.open("wb") as text:
            count = dmpmqmsg.write(_as_messages(batches), text)
        if count:
            begun.replace(final)
        else:
            begun.unlink()
        yield pa.RecordBatch.from_pydict({"messages": pa.array([count], pa.int64())})

    return write


def _as_messages(batches: Iterable[pa.RecordBatch]) -> Iterator[Message]:
    for batch in batches:
        for row in batch.to_pylist():
            when, expiry = row.pop("put_at"), row.pop("expiry")
            fields = {name: value for name, value in row.items() if value is not None}
            fields["put_at"] = 0.0 if when is None else when.timestamp()
            yield Message(fields.pop("body"), expiry=math.inf if expiry is None else expiry, **fields)


def unload_queue(
    manager: QueueManager, queue: str, target: str | PathLike[str], *, existing: Existing = "same"
) -> Iterator[Path]:
    """Takes the files off a queue, one unit of work each: a file is on disk before its group is gone.

    Yields: where each file is now. Ends when no whole group that is a file is left.
    """
    place = Path(fspath(target))
    place.mkdir(parents=True, exist_ok=True)
    while True:
        try:
            yield get_file(manager, queue, place, existing=existing).path
        except NoMessageAvailable:
            return
