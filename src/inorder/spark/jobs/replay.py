"""replay: puts an archive, or a part of it, on a queue again in logical order, and never twice."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Literal

from pyspark.sql import Column, DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documents do

from ..finishing import transaction_time
from ..options import store_text
from ..registering import register
from .archive import MEMBER_OF, ORDER, PLACE, Archive, is_member, read_archive
from .progress import Tell, told
from .putting import put
from .troubles import told_plainly

DEFAULT_APPLICATION = "replay"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """The result of `replay`.

    Args:
        messages: how many messages were put; 0 if the replay was done before.
        already: whether the transaction was committed before, so that nothing was put.
    """

    messages: int
    already: bool


def replay(
    spark: SparkSession,
    archive: Archive,
    url: str | PathLike[str],
    queue: str,
    *,
    transaction: str,
    application: str = DEFAULT_APPLICATION,
    where: str | Column | None = None,
    order: Literal["logical", "physical"] = "logical",
    progress: Tell | None = None,
) -> ReplayResult:
    """Puts an archive's messages on a queue, all in one step, in order.

    They keep their descriptors, group ids and numbers; places and unique ids are new. If `where` leaves a gap in a
    group, nothing is put.

    Args:
        archive: a folder or a DataFrame.
        url, queue: the destination; the queue must exist.
        transaction: the name of this replay: a second one with the same name and application puts nothing.
        where: a condition on the messages, in SQL or as a column; None: all.
        order: "logical": groups at the place of their first message; "physical": by place.
        progress: called once a second, in another thread, with the staged amount, and finally with the total. With
            `where` the total is not known before.

    Raises ArgumentError for the arguments of this function; for an error that Spark reports, such as a full queue
    (2053) or a gap in a group, QueueCondition with its text and reason. Then nothing is put.
    """
    ORDER.check("order", order)
    url = store_text(url)
    if transaction_time(url, queue, transaction, application) is not None:
        return ReplayResult(messages=0, already=True)
    register(spark)
    with told_plainly():
        rows = read_archive(spark, archive).withColumn("expiry", F.coalesce("expiry", F.lit(float("inf"))))
        if where is not None:
            rows = rows.where(where)
        counted = Observation("replayed")
        with told(spark, progress, rows if where is None else None):  # a condition would have to read the archive
            ordered = in_order(rows, order).observe(counted, F.count(F.lit(1)).alias("messages"))
            already = put(ordered, url=url, queue=queue, application=application, transaction=transaction)
    return ReplayResult(messages=0 if already else counted.get["messages"], already=already)


def in_order(rows: DataFrame, order: str) -> DataFrame:
    """The columns of messages, sorted over all partitions, and inside each."""
    if "logical_position" in rows.columns and order == "logical":
        return rows.orderBy("logical_position").drop("logical_position", "date")
    own = F.struct(*PLACE)
    if order == "physical":
        return rows.orderBy("queue", own).drop("date")
    is_head = (F.col("sequence_number") == 1) & (F.col("offset") == 0)
    head = F.min(F.when(is_head, own)).over(Window.partitionBy(*MEMBER_OF))
    members = rows.where(is_member()).withColumn("stands_at", F.coalesce(head, own))
    others = rows.where(~is_member()).withColumn("stands_at", own)
    together = members.unionByName(others).orderBy("queue", "stands_at", "group_id", "sequence_number", "offset", own)
    return together.drop("stands_at", "date")
