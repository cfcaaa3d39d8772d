"""What is wrong with a group, judged row by row: `rules.grouping.Members` as windows over (queue, group id).

The members stand in the order (sequence number, offset, place). A group is complete if and only if each row follows
from the one before it: a segment is followed by the segment that begins where it ends, the last piece of a logical
message by the first piece of the next one, the last message by nothing. So every fault shows at one row, and a group
is complete and has nothing to spare exactly if none of its rows has a fault.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documents do

from ...message import ANY_GROUP, ANY_SEGMENT, LAST_IN_GROUP, LAST_SEGMENT
from .archive import MEMBER_OF, PLACE

# The columns that `judged` needs.
NEEDED = (*MEMBER_OF, "sequence_number", "offset", "flags", "length", "original_length", *PLACE)

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


def has(flag: int, flags: str = "flags") -> Column:
    """Whether one of these bits is set."""
    return F.col(flags).bitwiseAND(flag) != 0


def data_length() -> Column:
    """By how much the next offset advances: a report about a segment counts as that segment (R2.14)."""
    return F.when(F.col("original_length") == -1, F.col("length")).otherwise(F.col("original_length"))


def judged(members: DataFrame) -> DataFrame:
    """The members of groups and logical messages with a boolean column for each of `FAULTS`, and

    `head`: the place of the group, null if its first piece is not there; `first_of_group`, `grouped`;
    `previous_sequence_number`, `previous_offset` (null at the first row of a group); `end_before`: where the pieces
    before it in its logical message end, in bytes.
    """
    group, message = Window.partitionBy(*MEMBER_OF), Window.partitionBy(*MEMBER_OF, "sequence_number")
    in_order, pieces = group.orderBy("sequence_number", "offset", *PLACE), message.orderBy("offset", *PLACE)
    end = F.col("offset").cast("long") + data_length()
    seen = (
        members.withColumn("segment", has(ANY_SEGMENT))
        .withColumn("ends_message", ~has(ANY_SEGMENT) | has(LAST_SEGMENT))
        .withColumn("previous", F.lag(F.struct("sequence_number", "offset", "segment", "ends_message")).over(in_order))
        .withColumn("next_sequence_number", F.lead("sequence_number").over(in_order))
        .withColumn("end_before", F.max(end).over(pieces.rowsBetween(Window.unboundedPreceding, -1)))
        # The first piece says whether its logical message is the last of the group (Members.group_is_complete).
        .withColumn("last_message", F.first(has(LAST_IN_GROUP)).over(pieces))
        .withColumn("message_ends", F.max("ends_message").over(message))
        .withColumn("grouped", F.max(has(ANY_GROUP)).over(group))
        .withColumn("first_place", F.first(F.struct(*PLACE)).over(in_order))
        .withColumn("first_numbers", F.first(F.struct("sequence_number", "offset")).over(in_order))
        .withColumn("previous_last", F.lag("last_message").over(in_order))
        .withColumn("group_ends", F.max("last_message").over(group))
    )
    starts = F.col("previous").isNull() | (F.col("previous.sequence_number") != F.col("sequence_number"))
    is_head = (F.col("first_numbers.sequence_number") == 1) & (F.col("first_numbers.offset") == 0)
    named = (
        seen.withColumn("first_of_group", F.col("previous").isNull())
        .withColumn("starts", starts)
        .withColumn("previous_sequence_number", F.col("previous.sequence_number"))
        .withColumn("previous_offset", F.col("previous.offset"))
        .withColumn("head", F.when(is_head, F.col("first_place")))
    )
    faults = {name: F.coalesce(fault, F.lit(False)) for name, fault in _faults().items()}
    return named.withColumns(faults).drop("previous", "first_place", "first_numbers", "next_sequence_number")


def _faults() -> dict[str, Column]:
    sequence, before, grouped = F.col("sequence_number"), F.col("previous.sequence_number"), F.col("grouped")
    next_starts = F.col("next_sequence_number").isNull() | (F.col("next_sequence_number") != sequence)
    goes_on = ~F.col("starts")
    pieces = goes_on & F.col("segment") & F.col("previous.segment")
    overlap = (F.col("offset") < F.col("end_before")) | (F.col("offset") == F.col("previous.offset"))
    after_last = ~overlap & F.col("previous.ends_message")
    gap = ~overlap & ~after_last & (F.col("offset") > F.col("end_before"))
    return {
        "group_first_missing": grouped & F.col("first_of_group") & (sequence > 1),
        "group_last_missing": grouped & F.col("next_sequence_number").isNull() & ~F.col("group_ends"),
        "group_after_last": grouped & F.col("starts") & F.col("previous_last"),
        "sequence_gap": grouped & (sequence > before + 1),
        "sequence_repeated": goes_on & ~(F.col("segment") & F.col("previous.segment")),
        "segment_gap": (F.col("starts") & (F.col("offset") > 0)) | (pieces & gap),
        "segment_overlap": pieces & overlap,
        "segment_after_last": pieces & after_last,
        "segment_last_missing": next_starts & ~F.col("message_ends"),
    }


def any_fault() -> Column:
    """Whether a row has a fault."""
    return F.greatest(*[F.col(name) for name in FAULTS])
