"""Finds the faults of groups row by row: `rules.grouping.Members` as windows over (queue, group id).

The members are sorted by (sequence number, offset, place). A group is complete if and only if each row follows from the
one before it: a segment is followed by the segment that begins where it ends, the last piece of a logical message by
the first piece of the next one, the last message by nothing. So every fault belongs to one row, and a group is complete
without extra members exactly if none of its rows has a fault.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documents do

from ...model.message import ANY_GROUP, ANY_SEGMENT, LAST_IN_GROUP, LAST_SEGMENT
from .archive import PLACE

# The columns that identify a group. Spark sorts by the first eight bytes of the first column, and compares whole rows
# only if these are equal. The queue mostly is equal, and so is the beginning of group ids; hence the hash before them.
GROUP = ("group_hash", "queue", "group_id")

# The columns that `judged` needs.
NEEDED = (*GROUP, "sequence_number", "offset", "flags", "length", "original_length", *PLACE)

FAULTS = (
    "group_first_missing",
    "group_last_missing",
    "group_after_last",
    "sequence_gap",
    "sequence_repeated",
    "segment_gap",
    "segment_overlap",
    "segment_after_last",
    "segment_last_missing",
)


def with_group(members: DataFrame) -> DataFrame:
    """Adds the column `group_hash`: the columns `GROUP` then identify the group of each row."""
    return members.withColumn("group_hash", F.xxhash64("queue", "group_id"))


def has(flag: int, flags: str = "flags") -> Column:
    """Whether one of these bits is set."""
    return F.col(flags).bitwiseAND(flag) != 0


def data_length() -> Column:
    """The step to the next offset: a report about a segment counts like that segment (R2.14)."""
    return F.when(F.col("original_length") == -1, F.col("length")).otherwise(F.col("original_length"))


def judged(members: DataFrame) -> DataFrame:
    """Members of groups and logical messages, from `with_group`, with a boolean column for each of `FAULTS`,

    and `first_of_group`; `starts`, whether it is the first piece of its logical message; `head`, the place of the
    group, null if its first piece is missing; `previous_sequence_number`, null at the first row; `end_before`,
    the end of the pieces before it in its logical message, in bytes, null at the first piece.

    All are functions of one window, so the rows are sorted once. Values for one logical message (whether its first
    piece is marked, how far its pieces reach) are a running maximum that begins with the sequence number: the largest
    one so far belongs to this message, or before its first piece to the message before it.
    """
    in_order = Window.partitionBy(*GROUP).orderBy("sequence_number", "offset", *PLACE)
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    sequence, offset = F.col("sequence_number"), F.col("offset")
    ends_message = ~has(ANY_SEGMENT) | has(LAST_SEGMENT)
    marks = F.struct(sequence.alias("sequence"), (-offset).alias("backwards"), has(LAST_IN_GROUP).alias("last"))
    seen = members.withColumns(
        {
            "p": F.lag(
                F.struct(sequence, offset, has(ANY_SEGMENT).alias("segment"), ends_message.alias("ends_message"))
            ).over(in_order),
            "next_sequence_number": F.lead("sequence_number").over(in_order),
            "reach": F.max(F.struct(sequence, (offset.cast("long") + data_length()).alias("end"))).over(before),
            # The first piece shows whether its logical message is the last of the group (Members.group_is_complete).
            "mark": F.max(marks).over(so_far),
            "mark_before": F.max(marks).over(before),
            "message_ends": F.max(F.struct(sequence, ends_message.alias("ends"))).over(so_far),
            "last_seen": F.max(has(LAST_IN_GROUP) & (offset == 0)).over(so_far),
            "grouped": F.max(has(ANY_GROUP)).over(so_far),
            "first": F.first(F.struct(sequence, offset, *PLACE)).over(so_far),
        }
    )
    starts = F.col("p").isNull() | (F.col("p.sequence_number") != sequence)
    is_head = (F.col("first.sequence_number") == 1) & (F.col("first.offset") == 0)
    told = {
        "first_of_group": F.col("p").isNull(),
        "starts": starts,
        "previous_sequence_number": F.col("p.sequence_number"),
        "end_before": F.when(~starts, F.col("reach.end")),
        "head": F.when(is_head, F.struct(*[F.col(f"first.{name}") for name in PLACE])),
    }
    faults = {name: F.coalesce(fault, F.lit(False)).alias(name) for name, fault in _faults(starts).items()}
    return seen.select(*members.columns, *[value.alias(name) for name, value in told.items()], *faults.values())


def _faults(starts: Column) -> dict[str, Column]:
    sequence, offset, before = F.col("sequence_number"), F.col("offset"), F.col("p.sequence_number")
    is_last = F.col("next_sequence_number").isNull()
    both_segments = has(ANY_SEGMENT) & F.col("p.segment")
    pieces = ~starts & both_segments
    overlap = (offset < F.col("reach.end")) | (offset == F.col("p.offset"))
    after_last = ~overlap & F.col("p.ends_message")
    gap = ~overlap & ~after_last & (offset > F.col("reach.end"))
    return {
        "group_first_missing": F.col("p").isNull() & (sequence > 1),
        "group_last_missing": is_last & F.col("grouped") & ~F.col("mark.last") & ~F.col("last_seen"),
        "group_after_last": starts & F.col("mark_before.last"),
        "sequence_gap": sequence > before + 1,
        "sequence_repeated": ~starts & ~both_segments,
        "segment_gap": (starts & (offset > 0)) | (pieces & gap),
        "segment_overlap": pieces & overlap,
        "segment_after_last": pieces & after_last,
        "segment_last_missing": (is_last | (F.col("next_sequence_number") != sequence)) & ~F.col("message_ends.ends"),
    }


def any_fault() -> Column:
    """Whether a row has a fault."""
    return F.greatest(*[F.col(name) for name in FAULTS])
