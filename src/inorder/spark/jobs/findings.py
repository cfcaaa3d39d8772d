"""The findings of an audit: each kind with its severity and meaning, and the checks for them.

Every check works on rows without bodies, handles only a group or a lane at a time (`lanes.py`), and returns a DataFrame
of *notes*, with the columns of a finding, and `size` and `complete` for groups. Most notes are findings, one row each.
Others are only counted: one for each group, and one for each message that was put earlier than the message before it.
So one pass over all notes counts everything.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Literal, NamedTuple

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documents do

from . import groups, lanes
from .archive import PLACE, columns
from .lanes import Lanes

Severity = Literal["error", "note"]
Promised = Literal["physical", "logical", "none"]


class FindingKind(NamedTuple):
    """A kind of finding: its severity, and its meaning."""

    severity: Severity
    meaning: str


KINDS = {
    "delivery_gap": FindingKind(
        "error", "delivery numbers are missing: messages were delivered that the archive lacks"
    ),
    "delivery_repeated": FindingKind("error", "two rows have one delivery number"),
    "message_repeated": FindingKind("error", "the same message (unique id) is in the archive more than once"),
    "place_repeated": FindingKind("error", "two messages have one place on the queue"),
    "overtake": FindingKind("error", "a message was delivered after one that comes later on the queue"),
    "overtake_in_group": FindingKind("error", "a message was delivered after a later one of its group"),
    "sequence_gap": FindingKind("error", "a group lacks messages in its middle"),
    "sequence_repeated": FindingKind("error", "two messages have one sequence number in a group"),
    "group_first_missing": FindingKind("error", "a group lacks its first message"),
    "group_last_missing": FindingKind("error", "no message is marked as the last of its group"),
    "group_after_last": FindingKind("error", "a group continues after its last message"),
    "segment_gap": FindingKind("error", "a logical message lacks a segment"),
    "segment_overlap": FindingKind("error", "two segments hold the same bytes of a logical message"),
    "segment_after_last": FindingKind("error", "a logical message continues after its last segment"),
    "segment_last_missing": FindingKind("error", "no segment is marked as the last of its logical message"),
    "redelivered": FindingKind("note", "a get of the message had been backed out before"),
}

IDENTITY = ("queue", "group_id", "sequence_number", "offset", "delivery_number", *PLACE)
FINDING = ("kind", "severity", *IDENTITY, "expected", "found", "text", "condition")
UID = ("queue", "uid_origin", "uid_number")


COUNTED = "counted"  # the severity of notes that are not findings
GROUP, PUT_EARLIER = "group", "put_earlier"


def _says(template: str, *values: Column | str) -> Column:
    return F.format_string(template, *[F.col(value) if isinstance(value, str) else value for value in values])


def _noted(
    rows: DataFrame,
    kind: Column | str,
    *,
    expected: Column,
    found: Column,
    text: Column,
    condition: Column,
    severity: Column | None = None,
    size: Column | None = None,
    complete: Column | None = None,
) -> DataFrame:
    """Makes notes from rows.

    Args:
        condition: the condition that, with the queue, selects the messages of a finding in the archive.
    """
    weight = F.lit(KINDS[kind].severity if isinstance(kind, str) else "error")
    return rows.select(
        (F.lit(kind) if isinstance(kind, str) else kind).alias("kind"),
        (weight if severity is None else severity).alias("severity"),
        "queue",
        F.lower(F.hex("group_id")).alias("group_id"),
        *IDENTITY[2:],
        expected.cast("string").alias("expected"),
        found.cast("string").alias("found"),
        text.alias("text"),
        F.when(text.isNotNull(), F.concat(_says("queue = '%s' AND ", "queue"), condition)).alias("condition"),
        (F.lit(None) if size is None else size).cast("bigint").alias("size"),
        (F.lit(None) if complete is None else complete).cast("boolean").alias("complete"),
    )


def _one_delivery() -> Column:
    return _says("delivery_number = %d", "delivery_number")


def _two_deliveries(other: Column | str) -> Column:
    return _says("delivery_number IN (%d, %d)", other, "delivery_number")


def repeated_messages(rows: DataFrame, *, parts: int, until: ExitStack) -> tuple[DataFrame, DataFrame | None]:
    """Each message once (its first delivery), and the findings for repeats; None if there are none."""
    uids = lanes.brought_together(rows.where(F.col("uid_number").isNotNull()).select(*UID), parts, *UID)
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
    return once, _noted(
        surplus,
        "message_repeated",
        expected=F.lit("one delivery"),
        found=_says("copy %d", "copy"),
        text=text,
        condition=_two_deliveries("first_delivery"),
    )


def delivery_numbers(rows: DataFrame, dealt: Lanes, *, parts: int, first: int | None, until: ExitStack) -> DataFrame:
    """Finds gaps and repeats among the delivery numbers of each queue."""
    number, before = F.col("delivery_number"), F.col("before.delivery_number")
    wrong = lanes.breaks(
        rows.select(*IDENTITY),
        dealt,
        apart=("queue",),
        along=("delivery_number",),
        carry=("delivery_number",),
        wrong=number != before + 1,
        parts=parts,
        until=until,
    )
    expected = before + 1 if first is None else F.coalesce(before + 1, F.lit(first))
    is_gap, is_repeat = number > expected, number == before
    return _noted(
        wrong.where(is_gap | is_repeat),
        F.when(is_gap, "delivery_gap").otherwise("delivery_repeated"),
        expected=expected,
        found=number,
        text=F.when(is_gap, _missing(expected, number)).otherwise(
            _says("delivery number %d is also on another row", number)
        ),
        condition=F.when(is_gap, _says("delivery_number BETWEEN %d AND %d", expected - 1, number)).otherwise(
            _one_delivery()
        ),
    )


def _missing(expected: Column, found: Column) -> Column:
    one = _says("delivery number %d is missing", expected)
    return F.when(found - expected == 1, one).otherwise(
        _says("delivery numbers %d to %d are missing: %d", expected, found - 1, found - expected)
    )


def overtakes(positioned: DataFrame, dealt: Lanes, *, promised: Promised, parts: int, until: ExitStack) -> DataFrame:
    """Finds messages delivered after one that is later in the promised order, at one rank.

    The messages of a rank are in order if and only if each is later than the one delivered before it, so a message is
    only compared with that one. `in_groups` handles two messages of one group whose numbers contradict each other.

    Args:
        positioned: rows with `key_rank`, `key_number`, `key_ordinal`: their place in the promised order; null: none.
    """
    key, before = ("key_rank", "key_number", "key_ordinal"), "before."
    same_group = F.col("group_id").eqNullSafe(F.col("before.group_id")) & F.col("group_id").isNotNull()
    inside = same_group & (F.struct("sequence_number", "offset") < F.struct("before.sequence_number", "before.offset"))
    behind = F.struct(*columns(key[1:])) < F.struct(*columns(before + name for name in key[1:]))
    wrong = lanes.breaks(
        positioned.where(F.col(key[0]).isNotNull()).select(*IDENTITY, *key),
        dealt,
        apart=("queue", "key_rank"),
        along=("delivery_number", "key_number", "key_ordinal", "sequence_number", "offset"),
        carry=("delivery_number", "group_id", "sequence_number", "offset", *key),
        wrong=behind & ~inside,
        parts=parts,
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
    return _noted(
        wrong.where(F.col("before").isNotNull()),
        "overtake",
        expected=expected,
        found=_says("%d.%d", *key[1:]),
        text=text,
        condition=_two_deliveries("before.delivery_number"),
    )


def members_judged(members: DataFrame, *, parts: int) -> DataFrame:
    """Members of groups as `groups.judged` returns them, with the members of a group in one partition."""
    return groups.judged(lanes.brought_together(groups.with_group(members), parts, *groups.GROUP))


def in_groups(judged: DataFrame, *, promised: Promised) -> DataFrame:
    """Finds faults of groups and logical messages, and overtakes inside them; also one note a group: its size,
    `complete`.

    Args:
        judged: the result of `members_judged`.
    """
    group = Window.partitionBy(*groups.GROUP)
    delivered = group.orderBy("delivery_number", "sequence_number", "offset")
    carried = F.struct("delivery_number", "sequence_number", "offset", *PLACE)
    mine, theirs = F.struct("sequence_number", "offset"), F.struct("before.sequence_number", "before.offset")
    seen = (
        judged.withColumn("faulty", groups.any_fault())
        .withColumns(
            {
                "size": F.count(F.lit(1)).over(group),
                "complete": ~F.max("faulty").over(group),
                "before": F.lag(carried).over(delivered),
            }
        )
        .withColumn("overtaken", F.coalesce(mine < theirs, F.lit(False)))
        .where("faulty OR overtaken OR first_of_group")
    )
    told: list[tuple[str, str, Column, tuple[Column, ...]]] = [
        *((name, name, F.lit("error"), words) for name, words in _fault_words().items()),
        ("overtaken", "overtake_in_group", _overtake_severity(promised), _overtake_words()),
        ("first_of_group", GROUP, F.lit(COUNTED), (F.lit(None), F.lit(None), F.lit(None))),
    ]
    listed = [F.when(F.col(condition), _note(kind, severity, *words)) for condition, kind, severity, words in told]
    is_group = F.col("note.kind") == GROUP
    return _noted(
        seen.withColumn("note", F.explode(F.array_compact(F.array(*listed)))),
        F.col("note.kind"),
        severity=F.col("note.severity"),
        expected=F.col("note.expected"),
        found=F.col("note.found"),
        text=F.col("note.text"),
        condition=_says("group_id = X'%s'", F.hex("group_id")),
        size=F.when(is_group, F.col("size")),
        complete=F.when(is_group, F.col("complete")),
    )


def _note(kind: str, severity: Column, expected: Column, found: Column, text: Column) -> Column:
    words = {"expected": expected, "found": found, "text": text}
    return F.struct(
        F.lit(kind).alias("kind"),
        severity.alias("severity"),
        *[value.cast("string").alias(name) for name, value in words.items()],
    )


def _overtake_severity(promised: Promised) -> Column:
    # In physical order a reader returns members by their places: members put out of order are not a fault of the
    # delivery.
    stood_so = F.struct(*columns(PLACE)) > F.struct(*columns(f"before.{name}" for name in PLACE))
    excused = {"physical": stood_so, "none": F.lit(True), "logical": F.lit(False)}[promised]
    return F.when(excused, "note").otherwise("error")


def _overtake_words() -> tuple[Column, Column, Column]:
    """Expected value, found value and text for a member that was delivered after a later one of its group."""
    text = _says(
        "message %d at offset %d of the group was delivered as %d, after message %d at offset %d, delivered as %d",
        "sequence_number",
        "offset",
        "delivery_number",
        "before.sequence_number",
        "before.offset",
        "before.delivery_number",
    )
    return _says("before delivery %d", "before.delivery_number"), F.col("delivery_number"), text


def _fault_words() -> dict[str, tuple[Column, Column, Column]]:
    """Expected value, found value and text for each fault of `groups.judged`."""
    sequence, offset, end = F.col("sequence_number"), F.col("offset"), F.coalesce(F.col("end_before"), F.lit(0))
    before = F.col("previous_sequence_number")
    pieces = (end, offset, sequence)
    return {
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
        "segment_gap": (end, offset, _says("bytes %d to %d of message %d are missing", end, offset - 1, sequence)),
        "segment_overlap": (
            end,
            offset,
            _says("the segments before end at byte %d, and a segment begins at %d in message %d", *pieces),
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


def places(rows: DataFrame, dealt: Lanes, *, parts: int, until: ExitStack) -> DataFrame:
    """Finds places used twice; also one note for each message that was put earlier than the message before it.

    The latter is not a fault: with commit or prepare order, messages get their numbers then, not at the put.
    """
    same = (F.col("number") == F.col("before.number")) & (F.col("ordinal") == F.col("before.ordinal"))
    put_earlier = F.coalesce(F.col("put_at") < F.col("before.put_at"), F.lit(False))
    wrong = lanes.breaks(
        rows.select(*IDENTITY, "put_at"),
        dealt,
        apart=("queue", "rank"),
        along=("number", "ordinal", "delivery_number"),
        carry=("delivery_number", "number", "ordinal", "put_at"),
        wrong=same | put_earlier,
        parts=parts,
        until=until,
    )
    text = _says(
        "place %d.%d at rank %d is also that of the message delivered as %d",
        *PLACE[1:],
        "rank",
        "before.delivery_number",
    )
    return _noted(
        wrong.where(F.col("before").isNotNull()),
        F.when(same, "place_repeated").otherwise(PUT_EARLIER),
        severity=F.when(same, "error").otherwise(COUNTED),
        expected=F.when(same, "a unique place"),
        found=F.when(same, _says("%d.%d", *PLACE[1:])),
        text=F.when(same, text),
        condition=_two_deliveries("before.delivery_number"),
    )


def redelivered(rows: DataFrame) -> DataFrame:
    """Finds messages that had been got and backed out before."""
    count = F.col("backout_count")
    text = _says("%d gets of the message had been backed out before this delivery", count)
    return _noted(
        rows.where(count > 0), "redelivered", expected=F.lit(0), found=count, text=text, condition=_one_delivery()
    )
