"""What an audit finds: each kind with its weight and meaning, and the checks that find it.

Every check works on rows without bodies, sees no more than a group or a lane at a time (`lanes.py`), and gives a
DataFrame of findings, one row each.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Literal, NamedTuple

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documents do

from . import groups, lanes
from .archive import PLACE, columns
from .lanes import Lanes

Severity = Literal["error", "note"]
Promised = Literal["physical", "logical", "none"]


class Kind(NamedTuple):
    """A kind of finding: how grave it is, and what it means."""

    severity: Severity
    meaning: str


KINDS = {
    "delivery_gap": Kind("error", "delivery numbers are missing: messages were delivered that the archive lacks"),
    "delivery_repeated": Kind("error", "two rows have one delivery number"),
    "message_repeated": Kind("error", "the same message (unique id) stands in the archive more than once"),
    "place_repeated": Kind("error", "two messages have one place on the queue"),
    "overtake": Kind("error", "a message was delivered after one that stood behind it"),
    "overtake_in_group": Kind("error", "a message was delivered after a later one of its group"),
    "sequence_gap": Kind("error", "a group lacks messages in its middle"),
    "sequence_repeated": Kind("error", "two messages have one sequence number in a group"),
    "group_first_missing": Kind("error", "a group lacks its first message"),
    "group_last_missing": Kind("error", "no message is marked as the last of its group"),
    "group_after_last": Kind("error", "a group goes on after its last message"),
    "segment_gap": Kind("error", "a logical message lacks a segment"),
    "segment_overlap": Kind("error", "two segments hold the same bytes of a logical message"),
    "segment_after_last": Kind("error", "a logical message goes on after its last segment"),
    "segment_last_missing": Kind("error", "no segment is marked as the last of its logical message"),
    "redelivered": Kind("note", "a get of the message had been backed out before"),
}

IDENTITY = ("queue", "group_id", "sequence_number", "offset", "delivery_number", *PLACE)
FINDING_SCHEMA = (
    "kind string, severity string, queue string, group_id string, sequence_number int, offset int, "
    "delivery_number bigint, rank int, number bigint, ordinal int, expected string, found string, text string"
)
UID = ("queue", "uid_origin", "uid_number")


def _says(template: str, *values: Column | str) -> Column:
    return F.format_string(template, *[F.col(value) if isinstance(value, str) else value for value in values])


def _found(
    rows: DataFrame,
    kind: Column | str,
    *,
    expected: Column,
    found: Column,
    text: Column,
    severity: Column | None = None,
) -> DataFrame:
    """Rows as findings."""
    kind_column = F.lit(kind) if isinstance(kind, str) else kind
    weight = severity if severity is not None else F.lit(KINDS[kind].severity if isinstance(kind, str) else "error")
    named = rows.withColumns({"_expected": expected.cast("string"), "_found": found.cast("string"), "_text": text})
    return named.select(
        kind_column.alias("kind"),
        weight.alias("severity"),
        "queue",
        F.lower(F.hex("group_id")).alias("group_id"),
        *IDENTITY[2:],
        F.col("_expected").alias("expected"),
        F.col("_found").alias("found"),
        F.col("_text").alias("text"),
    )


def repeated_messages(
    spark: SparkSession, rows: DataFrame, *, row_count: int, until: ExitStack
) -> tuple[DataFrame, DataFrame | None]:
    """The rows with each message once (its first delivery), and the findings; None: no message is there twice."""
    parts = lanes.partitions(spark, row_count, lanes.LANE_ROWS)
    uids = rows.where(F.col("uid_number").isNotNull()).select(*UID).repartition(parts, *UID)
    twice = uids.groupBy(*UID).count().where("count > 1").drop("count").persist(StorageLevel.DISK_ONLY)
    until.callback(twice.unpersist)
    if twice.isEmpty():
        return rows, None
    copies = Window.partitionBy(*UID).orderBy("delivery_number", *PLACE)
    repeated = (
        rows.join(twice, [*UID])
        .withColumn("copy", F.row_number().over(copies))
        .withColumn("first_delivery", F.first("delivery_number").over(copies))
    )
    once = rows.join(twice, [*UID], "left_anti").unionByName(
        repeated.where("copy = 1").select(*rows.columns), allowMissingColumns=False
    )
    surplus = repeated.where("copy > 1")
    text = _says(
        "message %s:%d was delivered again as number %d; its first delivery was number %d",
        "uid_origin",
        "uid_number",
        "delivery_number",
        "first_delivery",
    )
    return once, _found(
        surplus, "message_repeated", expected=F.lit("one delivery"), found=_says("copy %d", "copy"), text=text
    )


def delivery_numbers(
    spark: SparkSession, rows: DataFrame, dealt: Lanes, *, row_count: int, first: int | None, until: ExitStack
) -> list[DataFrame]:
    """Gaps and repeats among the delivery numbers of each queue."""
    number, before = F.col("delivery_number"), F.col("before.delivery_number")
    wrong, firsts = lanes.breaks(
        rows.select(*IDENTITY),
        dealt,
        apart=("queue",),
        along=("delivery_number",),
        carry=("delivery_number",),
        wrong=number != before + 1,
        parts=lanes.partitions(spark, row_count, lanes.LANE_ROWS),
        until=until,
    )
    gaps = _found(
        wrong.where(number > before),
        "delivery_gap",
        expected=before + 1,
        found=number,
        text=_missing(before + 1, number),
    )
    repeats = _found(
        wrong.where(number == before),
        "delivery_repeated",
        expected=before + 1,
        found=number,
        text=_says("delivery number %d stands at another row, too", number),
    )
    if first is None:
        return [gaps, repeats]
    start = F.lit(first)
    late = _found(
        firsts.where(number > first), "delivery_gap", expected=start, found=number, text=_missing(start, number)
    )
    return [gaps, repeats, late]


def _missing(expected: Column, found: Column) -> Column:
    one = _says("delivery number %d is missing", expected)
    return F.when(found - expected == 1, one).otherwise(
        _says("delivery numbers %d to %d are missing: %d", expected, found - 1, found - expected)
    )


def overtakes(
    spark: SparkSession, positioned: DataFrame, dealt: Lanes, *, promised: Promised, row_count: int, until: ExitStack
) -> DataFrame:
    """Messages delivered after one that stands behind them in the promised order, at one rank.

    The messages of a rank stood in order if and only if each stands behind the one delivered before it, so a message
    is compared with that one alone. Two of one group that contradict each other by their numbers are `in_groups`'s.

    Args:
        positioned: rows with `key_rank`, `key_number`, `key_ordinal`: where they stand in the promised order.
    """
    key, before = ("key_rank", "key_number", "key_ordinal"), "before."
    same_group = F.col("group_id").eqNullSafe(F.col("before.group_id")) & F.col("group_id").isNotNull()
    inside = same_group & (F.struct("sequence_number", "offset") < F.struct("before.sequence_number", "before.offset"))
    behind = F.struct(*columns(key[1:])) < F.struct(*columns(before + name for name in key[1:]))
    wrong, _ = lanes.breaks(
        positioned.select(*IDENTITY, *key),
        dealt,
        apart=("queue", "key_rank"),
        along=("delivery_number", "key_number", "key_ordinal", "sequence_number", "offset"),
        carry=("delivery_number", "group_id", "sequence_number", "offset", *key),
        wrong=behind & ~inside,
        parts=lanes.partitions(spark, row_count, lanes.LANE_ROWS),
        until=until,
    )
    where = "its group stands" if promised == "logical" else "it stands"
    text = _says(
        f"delivery %d came right after %d at this rank, but {where} before it: place %d.%d is before %d.%d",
        "delivery_number",
        "before.delivery_number",
        *key[1:],
        *[before + name for name in key[1:]],
    )
    expected = _says("a place from %d.%d", "before.key_number", "before.key_ordinal")
    return _found(wrong, "overtake", expected=expected, found=_says("%d.%d", *key[1:]), text=text)


def in_groups(
    spark: SparkSession, members: DataFrame, *, promised: Promised, row_count: int, until: ExitStack
) -> tuple[DataFrame, DataFrame]:
    """Faults of groups and logical messages, overtakes inside them; and one row a group: its size, `complete`."""
    parts = lanes.partitions(spark, row_count, lanes.LANE_ROWS)
    needed = (*groups.NEEDED, "delivery_number")
    group = Window.partitionBy(*groups.GROUP)
    delivered = group.orderBy("delivery_number", "sequence_number", "offset")
    carried = F.struct("delivery_number", "sequence_number", "offset", *PLACE)
    mine, theirs = F.struct("sequence_number", "offset"), F.struct("before.sequence_number", "before.offset")
    seen = (
        groups.judged(groups.with_group(members).select(*needed).repartition(parts, *groups.GROUP))
        .withColumn("size", F.count(F.lit(1)).over(group))
        .withColumn("faulty", groups.any_fault())
        .withColumn("complete", ~F.max("faulty").over(group))
        .withColumn("before", F.lag(carried).over(delivered))
        .withColumn("overtaken", F.coalesce(mine < theirs, F.lit(False)))
        .where("faulty OR overtaken OR first_of_group")
        .persist(StorageLevel.DISK_ONLY)
    )
    until.callback(seen.unpersist)
    described = {name: F.struct(F.lit(name).alias("kind"), *values) for name, values in _fault_words().items()}
    faults = F.filter(
        F.array(*[F.when(F.col(name), described[name]) for name in groups.FAULTS]), lambda fault: fault.isNotNull()
    )
    told = seen.where("faulty").withColumn("fault", F.explode(faults))
    broken = _found(
        told,
        F.col("fault.kind"),
        expected=F.col("fault.expected"),
        found=F.col("fault.found"),
        text=F.col("fault.text"),
    )
    return broken.unionByName(_overtaken(seen, promised)), seen.where("first_of_group").select("size", "complete")


def _overtaken(seen: DataFrame, promised: Promised) -> DataFrame:
    text = _says(
        "message %d at offset %d of the group was delivered as %d, after message %d at offset %d, delivered as %d",
        "sequence_number",
        "offset",
        "delivery_number",
        "before.sequence_number",
        "before.offset",
        "before.delivery_number",
    )
    # In physical order a reader gives members as they stand: put out of order, they are no fault of the delivery.
    stood_so = F.struct(*columns(PLACE)) > F.struct(*columns(f"before.{name}" for name in PLACE))
    excused = {"physical": stood_so, "none": F.lit(True), "logical": F.lit(False)}[promised]
    return _found(
        seen.where("overtaken"),
        "overtake_in_group",
        expected=_says("before delivery %d", "before.delivery_number"),
        found=F.col("delivery_number"),
        text=text,
        severity=F.when(excused, "note").otherwise("error"),
    )


def _fault_words() -> dict[str, tuple[Column, Column, Column]]:
    """Expected, found and text of each fault of `groups.judged`."""
    sequence, offset, end = F.col("sequence_number"), F.col("offset"), F.coalesce(F.col("end_before"), F.lit(0))
    before = F.col("previous_sequence_number")
    pieces = (end, offset, sequence)
    words = {
        "group_first_missing": (F.lit(1), sequence, _says("the group begins with message %d, not with 1", sequence)),
        "group_last_missing": (
            F.lit("a last message"),
            sequence,
            _says("the group ends with message %d, which is not marked as its last", sequence),
        ),
        "group_after_last": (
            F.lit("the end of the group"),
            sequence,
            _says("message %d follows message %d, which is marked as the last of the group", sequence, before),
        ),
        "sequence_gap": (
            before + 1,
            sequence,
            _says("message %d is followed by message %d: %d are missing", before, sequence, sequence - before - 1),
        ),
        "sequence_repeated": (before + 1, sequence, _says("sequence number %d is used again", sequence)),
        "segment_gap": (
            end,
            offset,
            _says("bytes %d to %d of message %d are missing", end, offset - 1, sequence),
        ),
        "segment_overlap": (
            end,
            offset,
            _says("bytes up to %d are there, and a segment begins at %d in message %d", *pieces),
        ),
        "segment_after_last": (
            F.lit("the end of the message"),
            offset,
            _says("the last segment ends at %d, and one at %d follows in message %d", *pieces),
        ),
        "segment_last_missing": (
            F.lit("a last segment"),
            offset,
            _says("message %d ends with the segment at %d, which is not marked as its last", sequence, offset),
        ),
    }
    return {
        name: (expected.cast("string").alias("expected"), found.cast("string").alias("found"), text.alias("text"))
        for name, (expected, found, text) in words.items()
    }


def places(
    spark: SparkSession, rows: DataFrame, dealt: Lanes, *, row_count: int, until: ExitStack
) -> tuple[DataFrame, int]:
    """Places used twice; and how many messages were put before the one that stands before them.

    The second is no fault: a queue whose order is commit or prepare numbers messages then, not at the put.
    """
    same = (F.col("number") == F.col("before.number")) & (F.col("ordinal") == F.col("before.ordinal"))
    put_earlier = F.coalesce(F.col("put_at") < F.col("before.put_at"), F.lit(False))
    wrong, _ = lanes.breaks(
        rows.select(*IDENTITY, "put_at"),
        dealt,
        apart=("queue", "rank"),
        along=("number", "ordinal", "delivery_number"),
        carry=("delivery_number", "number", "ordinal", "put_at"),
        wrong=same | put_earlier,
        parts=lanes.partitions(spark, row_count, lanes.LANE_ROWS),
        until=until,
    )
    text = _says(
        "place %d.%d at rank %d is also that of the message delivered as %d",
        *PLACE[1:],
        "rank",
        "before.delivery_number",
    )
    place = _says("%d.%d", *PLACE[1:])
    used = _found(wrong.where(same), "place_repeated", expected=F.lit("a place of its own"), found=place, text=text)
    return used, wrong.where(put_earlier & ~same).count()


def redelivered(rows: DataFrame) -> DataFrame:
    """Messages that had been got and backed out before."""
    count = F.col("backout_count")
    text = _says("%d gets of the message had been backed out before this delivery", count)
    return _found(rows.where(count > 0), "redelivered", expected=F.lit(0), found=count, text=text)
