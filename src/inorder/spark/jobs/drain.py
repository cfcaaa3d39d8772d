"""drain: moves a queue into an archive, each message exactly once.

A streaming query takes the messages in claims and writes them as Parquet. If anything dies on the way, the next run
with the same checkpoint continues from there. Spark never tells a source that the last batch is done: when the run has
ended, the job reads Spark's commit log and confirms that batch.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Literal, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documents do
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from ...errors import CheckpointLost, OptionsError, bad_argument
from ..finishing import finish
from ..options import STORE, store_text
from ..registering import register
from .archive import ORDER, RemoteCheckpoint, check_folder, exists, read_text, write_text
from .progress import Progress, Tell
from .troubles import told_plainly

CHECKPOINT = "_checkpoint"  # in the archive's folder: readers skip names that begin with "_"
DRAINED_BY = "_drained_by"  # the id of the query that writes the archive
MESSAGES_PER_BATCH = 100_000
POLL_SECONDS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """The result of a run of `drain`.

    Args:
        messages, size: the messages archived by this run, and the bytes of their bodies.
        batches: how many micro-batches had messages.
        confirmed: how many messages were in the last batch, which was confirmed after the query had ended.
        seconds: from the start of the query to its end.
    """

    messages: int
    size: int
    batches: int
    confirmed: int
    seconds: float


def drain(
    spark: SparkSession,
    url: str | PathLike[str],
    queue: str,
    archive: str | PathLike[str],
    *,
    application: str = "drain",
    order: Literal["logical", "physical"] = "logical",
    complete_groups: bool | None = None,
    join_segments: bool = False,
    messages_per_batch: int = MESSAGES_PER_BATCH,
    partitions: int = 2,
    checkpoint: str | PathLike[str] | None = None,
    follow: bool = False,
    options: dict[str, str] | None = None,
    progress: Tell | None = None,
) -> Drained:
    """Moves the messages of a queue into an archive, exactly once; another run continues where it ended or died.

    The archive is Parquet, in folders by queue and date, with all columns of `inorder.spark.schema`. It is read with
    `spark.read.parquet(archive)`, which follows the log of Spark's file sink; a reader that lists files by itself may
    see files of a repeated batch.

    Args:
        url: the URL of the store, or its path; an archive is of one store.
        queue: the queue; or names and patterns, separated by commas, as the source takes them.
        archive: the folder; it may contain the output of earlier runs.
        application: the name under which the queue manager keeps the position; one run at a time.
        order: the order in which messages are taken and numbered (`delivery_number`).
        complete_groups: take only complete groups; None: only with logical order.
        join_segments: the segments of a message become one row.
        messages_per_batch: the most messages in one micro-batch; a larger group is taken whole.
        partitions: how many tasks read in parallel.
        checkpoint: the query's checkpoint; None: the folder `_checkpoint` of the archive.
        follow: continue until the query is stopped, instead of ending when the queue is empty.
        options: further options of the source.
        progress: called after each micro-batch.

    Raises:
        ArgumentError, OptionsError: as for the source's options; then the query was not started.
        CheckpointTooOld, CheckpointLost, Fenced and other errors of the query: as text in a QueueCondition.
    """
    ORDER.check("order", order)
    url = store_text(url)
    if url.lstrip().startswith("["):
        raise OptionsError("an archive is of one store: drain each store into an archive of its own")
    whole = order == "logical" if complete_groups is None else complete_groups
    check_folder(spark, "archive", archive)
    where = check_folder(spark, "checkpoint", f"{fspath(archive)}/{CHECKPOINT}" if checkpoint is None else checkpoint)
    register(spark)
    with told_plainly():
        check_pair(spark, fspath(archive), where)
        rows = (
            spark.readStream.format("inorder")
            .options(
                url=url,
                queue=queue,
                mode="drain",
                application=application,
                order=order,
                completeGroups=whole,
                joinSegments=join_segments,
                maxMessagesPerTrigger=messages_per_batch,
                partitions=partitions,
                allowNewCheckpoint=True,  # check_pair has checked that the archive belongs to the checkpoint
                **(options or {}),
            )
            .load()
        )
        writer = (
            with_date(rows.drop(STORE))
            .writeStream.format("parquet")
            .partitionBy("queue", "date")
            .option("path", fspath(archive))
            .option("checkpointLocation", where)
        )
        query = (writer if follow else writer.trigger(availableNow=True)).start()
        write_text(spark, f"{fspath(archive)}/{DRAINED_BY}", str(query.id))
    ran = attend(query, progress)
    confirmed = finish(url, queue, application, RemoteCheckpoint(spark, where))
    return Drained(**ran._asdict(), confirmed=confirmed)


def check_pair(spark: SparkSession, archive: str, checkpoint: str) -> None:
    """Checks that archive and checkpoint belong together.

    Spark's file sink skips a batch whose number is already in the archive, and a new checkpoint numbers its batches
    from 0 again: their messages would be removed from the queue, but not written to a file.

    Raises CheckpointLost; ArgumentError if the folder has Parquet files that no drain wrote: Spark's readers see only
    files in the log of its file sink.
    """
    described = read_text(spark, f"{checkpoint}/metadata")
    query = None if described is None else json.loads(described)["id"]
    writer = read_text(spark, f"{archive}/{DRAINED_BY}")
    is_written = exists(spark, f"{archive}/_spark_metadata")
    if query is not None and writer in (None, query):
        return
    if writer is not None or is_written:
        raise CheckpointLost(
            f"the archive {archive} was written with another checkpoint than {checkpoint}"
            f"{' (which does not exist)' if query is None else ''}, and Spark would skip batches whose numbers it "
            "already has. Continue with the checkpoint that belongs to the archive, or drain into a new folder",
            archive=archive,
            checkpoint=checkpoint,
        )
    if (hidden := _parquet_in(spark, archive)) is not None:
        allowed = f"a new folder, or an archive that drain wrote: readers of an archive would not see {hidden} in it"
        raise bad_argument("archive", archive, allowed)


def _parquet_in(spark: SparkSession, folder: str) -> str | None:
    """The name of a Parquet file, or of a folder of them, in a folder."""
    names = RemoteCheckpoint(spark, folder).names("") or []
    return next((one for one in sorted(names) if one.endswith(".parquet") or "=" in one), None)


def with_date(rows: DataFrame) -> DataFrame:
    """Adds the day of the put, in the session's time zone: folders are named by it."""
    return rows.withColumn("date", F.to_date("put_at"))


class Ran(NamedTuple):
    """The result of a query that has ended."""

    messages: int
    size: int
    batches: int
    seconds: float


def attend(query: StreamingQuery, progress: Tell | None = None) -> Ran:
    """Waits for the end of a query, and reports each batch. Ctrl-C stops the query first.

    Raises QueueCondition if the query has failed; its text says why, and what to do.
    """
    began = time.monotonic()
    seen, messages, size, batches, is_over = -1, 0, 0, 0, False
    try:
        while not is_over:
            is_over = _has_ended(query)
            for one in query.recentProgress:
                if one.batchId > seen:
                    seen, messages = one.batchId, messages + max(0, one.numInputRows)
                    if one.numInputRows > 0:
                        batches, size = batches + 1, size + _size(one)
                    if progress is not None:
                        progress(Progress(messages, size, time.monotonic() - began, seen))
    except KeyboardInterrupt:
        query.stop()
        raise
    return Ran(messages, size, batches, time.monotonic() - began)


def _size(batch: StreamingQueryProgress) -> int:
    """The bytes of a batch's claim, which the source writes into its offset."""
    size: int = json.loads(batch.sources[0].endOffset)["size"]
    return size


def _has_ended(query: StreamingQuery) -> bool:
    with told_plainly():
        return bool(query.awaitTermination(POLL_SECONDS))
