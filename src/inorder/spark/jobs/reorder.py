"""reorder: turns an archive in physical order into one in logical order.

In logical order a group has the place of its first message, and its messages are sorted by sequence number and offset
(R3.33). Three passes, the first two without bodies:

1. *Judge.* Windows over each group find whether it is complete, and the place of its head: one row a group, on disk.
2. *Measure.* A sample of the heads gives the borders of the lanes, a count gives the number of messages in each lane.
3. *Move.* Members are joined with their group's row, all messages go to their lane, each lane is sorted and written as
   one file. A lane knows how many messages come before it, so its rows can be numbered there.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from os import PathLike
from typing import Literal

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documents do

from ...errors import OptionsError
from ...model.message import ANY_GROUP, ANY_SEGMENT, LAST_SEGMENT, MessageType
from ..schema import arrow_schema
from . import groups, lanes
from .archive import ORDER, PLACE, Archive, check_removable, check_target, columns, is_member, read_archive
from .groups import GROUP
from .lanes import LANE_ROWS, Lanes, make_lanes, partitions, repartition_by_lane
from .troubles import told_plainly

Order = Literal["logical", "physical"]

HEAD = ("head_rank", "head_number", "head_ordinal")
ROW_INDEX = 2**33 - 1  # monotonically_increasing_id(): the partition above these bits, the row in it below


@dataclass(frozen=True, slots=True, kw_only=True)
class Reordered:
    """The result of `reorder`.

    Args:
        messages: how many rows the result has; joined segments count as one.
        groups: how many complete groups, and complete logical messages outside groups, the result has.
        incomplete_groups: how many are not complete.
        incomplete_messages: how many rows of the archive they have; none of these is in the result.
        files: the number of ranges of the result; empty ones have no file.
    """

    messages: int
    groups: int
    incomplete_groups: int
    incomplete_messages: int
    files: int


@told_plainly()
def reorder(
    spark: SparkSession,
    archive: Archive,
    target: str | PathLike[str],
    *,
    join_segments: bool = False,
    incomplete: str | PathLike[str] | None = None,
    order: Order = "logical",
    overwrite: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Reordered:
    """Writes an archive in another order: sorted over all files, with each message numbered.

    The result has the columns of the archive and `logical_position`, 1 to n over all rows: sorted first by queue, then
    by the place of the group's head, sequence number and offset. A group that lacks a member, or has one too many (a
    repeated number, a message after its last), is set aside as a whole.

    Args:
        archive: a folder or a DataFrame.
        target: the folder to write, as Parquet.
        join_segments: join segments into whole messages, with the first one's descriptor and without the flags of a
            segment. If the character set or the encoding changes inside, only the pieces before that are joined, and
            all stay segments (R3.45).
        incomplete: the folder for incomplete groups; None: they are counted and left out.
        order: "logical", or "physical": by place alone, without checking groups.
        overwrite: whether the folders may already exist.
        progress: called with a description of each step that begins.

    Raises:
        ArgumentError: if columns are missing, a folder already exists or contains the archive, or the order is unknown.
        OptionsError: if `join_segments` or `incomplete` is given with the physical order.
        QueueCondition: for an error that Spark reports, such as a damaged file.
    """
    _check(order, join_segments=join_segments, incomplete=incomplete is not None)
    tell = progress or (lambda _: None)
    path, aside = check_target(spark, "target", target, overwrite=overwrite), None
    check_removable(spark, "target", path, archive)
    if incomplete is not None:
        aside = check_target(spark, "incomplete", incomplete, overwrite=overwrite)
        check_removable(spark, "incomplete", aside, archive, others=[path])
    rows = _plain(read_archive(spark, archive))
    with ExitStack() as until:
        tell("judging groups")
        size = _Size.of(rows, judge=order == "logical")
        members, others = _split(rows) if size.members else (None, rows)
        judged = (
            None
            if members is None
            else _judge(members, partitions(spark, size.members, LANE_ROWS), joins=join_segments)
        )
        if judged is not None:
            judged = judged.persist(StorageLevel.DISK_ONLY)
            until.callback(judged.unpersist)
        tell("measuring")
        heads = _heads(others, judged)
        dealt = make_lanes(heads, size.key, row_count=size.messages, rows_per_lane=size.rows_per_lane)
        counts = _counts(heads, dealt)
        tell(f"writing {sum(counts):,} messages in {dealt.total} files")
        moved = _with_own_head(others)
        if members is not None and judged is not None:
            moved = moved.unionByName(
                _complete(members, judged, partitions(spark, size.messages, size.rows_per_lane), joins=join_segments)
            )
        _write(spark, moved, dealt, counts, path)
        whole, broken, left_out = _verdict(judged)
        if aside is not None and members is not None and judged is not None:
            tell(f"writing {left_out:,} messages of incomplete groups")
            _write_aside(members, judged, aside)
    return Reordered(
        messages=sum(counts), groups=whole, incomplete_groups=broken, incomplete_messages=left_out, files=dealt.total
    )


def _split(rows: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Members of groups, with the group's hash, and messages in none."""
    return groups.with_group(rows.where(is_member())), rows.where(~is_member())


def _check(order: str, *, join_segments: bool, incomplete: bool) -> None:
    ORDER.check("order", order)
    if order == "physical" and (join_segments or incomplete):
        raise OptionsError("join_segments and incomplete need order='logical': physical order does not check groups")


def _plain(rows: DataFrame) -> DataFrame:
    """The columns of an archive without the folder's date; other columns follow."""
    names = arrow_schema().names
    return rows.select(*names, *[name for name in rows.columns if name not in (*names, "date", "logical_position")])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    messages: int
    members: int
    bytes: int
    key: tuple[str, ...]  # the sort key of the result, without columns that are the same in all rows

    @classmethod
    def of(cls, rows: DataFrame, *, judge: bool) -> _Size:
        found = rows.agg(
            F.count(F.lit(1)),
            F.count_if(is_member() if judge else F.lit(False)),
            F.sum(F.col("length").cast("long")),
            F.min("queue") == F.max("queue"),
            F.min("rank") == F.max("rank"),
        ).first()
        assert found is not None, "an aggregate without keys has one row"
        messages, members, size, one_queue, one_rank = found
        key = (*(() if one_queue else ("queue",)), *HEAD[bool(one_rank) :])
        return cls(messages=messages, members=members, bytes=size or 0, key=key)

    @property
    def lanes(self) -> int:
        return max(1, -(-(self.bytes + self.messages * lanes.ROW_BYTES) // lanes.LANE_BYTES))

    @property
    def rows_per_lane(self) -> int:
        return max(1, -(-self.messages // self.lanes))


# --- groups ------------------------------------------------------------------------------------------------


def _with_run(pieces: DataFrame) -> DataFrame:
    """Adds `_run`: whether a piece is among the leading ones with equal character set and encoding in its message."""
    message = Window.partitionBy(*GROUP, "sequence_number").orderBy("offset", *PLACE)
    character_set, encoding = F.col("coded_character_set_id"), F.col("encoding")
    first_set, first_encoding = F.first(character_set).over(message), F.first(encoding).over(message)
    is_equal = (character_set == first_set) & (encoding == first_encoding)
    return pieces.withColumn("_equal", is_equal).withColumn("_run", F.min("_equal").over(message)).drop("_equal")


def _judge(members: DataFrame, parts: int, *, joins: bool) -> DataFrame:
    """One row a group: whether it is complete, its place, how many rows it has and how many it will have."""
    needed = [*groups.NEEDED, *(("coded_character_set_id", "encoding") if joins else ())]
    rows = groups.judged(members.select(*needed).repartition(parts, *GROUP))
    if joins:
        rows = _with_run(rows).withColumn("_stays", F.col("starts") | ~F.col("_run"))
    return rows.groupBy(*GROUP).agg(
        (~F.max(groups.any_fault())).alias("complete"),
        *[
            F.min(F.when(F.col("first_of_group"), F.col(name))).alias(head)
            for name, head in zip(PLACE, HEAD, strict=True)
        ],
        F.count(F.lit(1)).alias("members"),
        (F.count_if(F.col("_stays")) if joins else F.count(F.lit(1))).alias("weight"),
    )


def _with_own_head(rows: DataFrame) -> DataFrame:
    return rows.withColumns({head: F.col(name) for name, head in zip(PLACE, HEAD, strict=True)})


def _heads(others: DataFrame, judged: DataFrame | None) -> DataFrame:
    """One row for each group in the result and each message outside groups: its place, and its number of messages."""
    alone = _with_own_head(others.select("queue", *PLACE)).select("queue", *HEAD, F.lit(1).cast("long").alias("weight"))
    return alone if judged is None else alone.unionByName(judged.where("complete").select(*alone.columns))


def _complete(members: DataFrame, judged: DataFrame, parts: int, *, joins: bool) -> DataFrame:
    complete = judged.where("complete").select(*GROUP, *HEAD)
    rows = members.repartition(parts, *GROUP).join(complete, [*GROUP])
    rows = rows.select(*members.columns, *HEAD)
    return (_joined(rows) if joins else rows).drop("group_hash")


def _joined(rows: DataFrame) -> DataFrame:
    """Joins the pieces of a logical message: segmentation.join, in Spark's operations."""
    plain = rows.where(~groups.has(ANY_SEGMENT))
    pieces = _with_run(rows.where(groups.has(ANY_SEGMENT)))
    rest = pieces.where(~F.col("_run")).drop("_run")
    others = [name for name in rows.columns if name not in (*GROUP, "sequence_number", "body", "length")]
    whole = (
        pieces.where("_run")
        .groupBy(*GROUP, "sequence_number")
        .agg(
            F.min_by(F.struct(*columns(others)), "offset").alias("first"),
            F.max(groups.has(LAST_SEGMENT)).alias("ended"),
            F.expr("listagg(body) WITHIN GROUP (ORDER BY offset)").alias("body"),
            F.sum("length").cast("int").alias("length"),
        )
    )
    flags = F.col("first.flags")
    is_grouped = flags.bitwiseAND(ANY_GROUP) != 0
    made = {name: F.col(f"first.{name}") for name in others}
    # A joined message is no longer a segment; outside a group it then has no group id either.
    made["flags"] = F.when(F.col("ended"), flags.bitwiseAND(~ANY_SEGMENT)).otherwise(flags)
    made["group_id"] = F.when(is_grouped | ~F.col("ended"), F.col("group_id"))
    is_report = (F.col("first.message_type") == MessageType.REPORT) & (F.col("first.original_length") != -1)
    made["original_length"] = (
        F.when(is_report, F.col("first.original_length")).when(F.col("ended"), -1).otherwise(F.col("length"))
    )
    joined = whole.select(*[made.get(name, F.col(name)).alias(name) for name in rows.columns])
    return plain.unionByName(joined).unionByName(rest)


def _verdict(judged: DataFrame | None) -> tuple[int, int, int]:
    """The numbers of complete groups, of incomplete ones, and of rows in these."""
    if judged is None:
        return 0, 0, 0
    broken = ~F.col("complete")
    found = judged.agg(F.count_if("complete"), F.count_if(broken), F.sum(F.when(broken, F.col("members")))).first()
    assert found is not None, "an aggregate without keys has one row"
    return found[0], found[1], found[2] or 0


# --- lanes -------------------------------------------------------------------------------------------------


def _counts(heads: DataFrame, dealt: Lanes) -> list[int]:
    """The number of messages that each lane will have."""
    counts = [0] * dealt.total
    for row in heads.groupBy(dealt.lane().alias("lane")).agg(F.sum("weight").alias("weight")).collect():
        counts[row["lane"]] = row["weight"]
    return counts


def _write(spark: SparkSession, rows: DataFrame, dealt: Lanes, counts: list[int], path: str) -> None:
    before = [sum(counts[:lane]) for lane in range(dealt.total)]
    lane, partition = F.col("lane"), F.spark_partition_id()
    position = F.element_at(F.lit(before), lane + 1) + F.monotonically_increasing_id().bitwiseAND(ROW_INDEX) + 1
    misplaced = F.raise_error(F.format_string("lane %d came to partition %d", lane, partition)).cast("long")
    repartition_by_lane(spark, rows, dealt).sortWithinPartitions(
        *dealt.keys, "sequence_number", "offset", *PLACE
    ).withColumn("logical_position", F.when(lane == partition, position).otherwise(misplaced)).drop(
        "lane", *HEAD
    ).write.mode("overwrite").parquet(path)


def _write_aside(members: DataFrame, judged: DataFrame, path: str) -> None:
    broken = judged.where(~F.col("complete")).select(*GROUP)
    rows = members.join(broken, [*GROUP], "left_semi").drop("group_hash")
    rows.sortWithinPartitions("queue", *PLACE).write.mode("overwrite").parquet(path)
