"""audit: proves or disproves that an archive kept its order.

What it can prove: that no delivery is missing or doubled, that every group and logical message is whole, and that each
message was delivered behind those that stood before it. It reads no bodies. What was lost after the last delivery
cannot be seen from the archive.

Under the output folder: `findings.parquet` and `findings.csv` (folders, as Spark writes them), `summary.json`,
`report.html`. The pictures in the report need the extra `inorder[report]`; all else does without it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from os import PathLike
from typing import TypeAlias

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documents do

from ...errors import bad_argument
from . import findings, groups, lanes
from .archive import PLACE, Archive, check_folder, check_target, is_member, read_archive, write_text
from .findings import FINDING_SCHEMA, KINDS, Promised
from .picture_data import PictureData, picture_data
from .report import NO_PICTURES, Picture, html_report
from .summary import Audited, Totals

Draw: TypeAlias = "Callable[[PictureData], list[Picture]]"

PROMISES = ("physical", "logical", "none")
NARROW = (
    "queue",
    *PLACE,
    "delivery_number",
    "put_at",
    "group_id",
    "sequence_number",
    "offset",
    "flags",
    "length",
    "original_length",
    "backout_count",
    "uid_origin",
    "uid_number",
)
KEY = ("key_rank", "key_number", "key_ordinal")
FILES_MAX = 64
EXAMPLES_MAX = 200
FIRST_SHOWN = ("severity", "queue", "delivery_number", "kind")  # errors, then notes


def audit(
    spark: SparkSession,
    archive: Archive,
    output: str | PathLike[str],
    *,
    order: Promised = "physical",
    first_delivery: int | None = 1,
    delivered_at: str | None = None,
    title: str = "Audit of an archive",
    overwrite: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Audited:
    """Looks for everything that contradicts the order of an archive, and writes findings, a summary and a report.

    The report has pictures if matplotlib is there (`inorder[report]`); if not, `progress` is told so at the beginning.

    Args:
        archive: a folder or a DataFrame.
        output: the folder to be written.
        order: what the reader was promised. "physical": messages of one rank in the order of their places;
            "logical": groups where their first message stands, whole; "none": overtakes are notes, not errors, and
            only those within a group are looked for.
        first_delivery: the delivery number that each queue begins with; None: whichever is the smallest.
        delivered_at: a timestamp column that says when a message was delivered, for its age; None: there is none.
        title: of the report.
        overwrite: whether the folder may be there already.
        progress: is told in words what begins.

    Raises:
        ArgumentError: columns are missing; the folder is there already; an unknown order.
    """
    if order not in PROMISES:
        raise bad_argument("order", order, f"one of {', '.join(PROMISES)}")
    tell = progress or (lambda _: None)
    path = check_target(spark, "output", output, overwrite=overwrite)
    for name in ("findings.parquet", "findings.csv"):
        check_folder(spark, "output", f"{path}/{name}")
    rows = read_archive(spark, archive)
    if delivered_at is not None and delivered_at not in rows.columns:
        raise bad_argument("delivered_at", delivered_at, f"a column of the archive: {', '.join(rows.columns)}")
    draw = _drawer()
    if draw is None:
        tell(NO_PICTURES)
    narrow = rows.select(*NARROW, *([F.col(delivered_at).alias("delivered_at")] if delivered_at else []))
    with ExitStack() as until:
        tell("counting")
        totals = Totals.of(narrow)
        tell(f"{totals.messages:,} messages: looking for those that are there twice")
        once, repeated = findings.repeated_messages(spark, narrow, row_count=totals.messages, until=until)
        members = once.where(is_member())
        positioned = _by_head(spark, once, totals, until) if order == "logical" else _by_place(once)
        tell("looking for gaps, repeats, overtakes and broken groups")
        broken, judged = findings.in_groups(spark, members, promised=order, row_count=totals.members, until=until)
        used_twice, put_earlier = findings.places(
            spark, once, _lanes(narrow, ("queue", *PLACE), totals), row_count=totals.messages, until=until
        )
        by_delivery = _lanes(narrow, ("queue", "delivery_number"), totals)
        found = [broken, used_twice, findings.redelivered(once), *([] if repeated is None else [repeated])]
        found += findings.delivery_numbers(
            spark, narrow, by_delivery, row_count=totals.messages, first=first_delivery, until=until
        )
        if order != "none":
            found.append(
                findings.overtakes(
                    spark, positioned, by_delivery, promised=order, row_count=totals.messages, until=until
                )
            )
        written = _write(spark, found, path)
        audited = _audited(written, judged, totals, order=order, put_earlier=put_earlier)
        pictures = None
        if draw is not None:
            tell("drawing")
            pictures = draw(picture_data(narrow, positioned, written, judged, totals=totals))
        examples = [row.asDict() for row in written.orderBy(*FIRST_SHOWN).limit(EXAMPLES_MAX).collect()]
    write_text(spark, f"{path}/summary.json", audited.as_json() + "\n")
    write_text(spark, f"{path}/report.html", html_report(title, audited, pictures, examples))
    return audited


def _drawer() -> Draw | None:
    """What draws the pictures; None: matplotlib is not installed."""
    try:
        from .charts import draw  # noqa: PLC0415 - matplotlib is slow to load, and an audit can do without
    except ModuleNotFoundError as missing:
        if missing.name != "matplotlib":
            raise
        return None
    return draw


def _lanes(rows: DataFrame, keys: Sequence[str], totals: Totals) -> lanes.Lanes:
    return lanes.make_lanes(rows, keys, row_count=totals.messages, rows_per_lane=lanes.LANE_ROWS)


def _by_place(rows: DataFrame) -> DataFrame:
    return rows.withColumns({key: F.col(name) for name, key in zip(PLACE, KEY, strict=True)})


def _by_head(spark: SparkSession, rows: DataFrame, totals: Totals, until: ExitStack) -> DataFrame:
    """Where each message's group stands. Groups without a head have no place in logical order: they are left out."""
    alone = _by_place(rows.where(~is_member()))
    parts = lanes.partitions(spark, totals.members, lanes.LANE_ROWS)
    members = groups.judged(groups.with_group(rows.where(is_member())).repartition(parts, *groups.GROUP)).where(
        "head IS NOT NULL"
    )
    placed = members.withColumns({key: F.col(f"head.{name}") for name, key in zip(PLACE, KEY, strict=True)})
    both = alone.unionByName(placed.select(*alone.columns)).persist(StorageLevel.DISK_ONLY)
    until.callback(both.unpersist)
    return both


def _write(spark: SparkSession, found: Sequence[DataFrame], path: str) -> DataFrame:
    """The findings as Parquet and CSV; read back, for most of them took long to find."""
    parquet = f"{path}/findings.parquet"
    functools.reduce(DataFrame.unionByName, found).coalesce(FILES_MAX).write.mode("overwrite").parquet(parquet)
    written = spark.read.schema(FINDING_SCHEMA).parquet(parquet)
    written.coalesce(1).write.mode("overwrite").csv(f"{path}/findings.csv", header=True)
    return written


def _audited(written: DataFrame, judged: DataFrame, totals: Totals, *, order: Promised, put_earlier: int) -> Audited:
    counts = {
        (row["kind"], row["severity"]): row["count"] for row in written.groupBy("kind", "severity").count().collect()
    }
    whole = judged.agg(F.count(F.lit(1)), F.count_if(~F.col("complete"))).first()
    assert whole is not None, "an aggregate without keys has one row"
    return Audited(
        order=order,
        messages=totals.messages,
        queues=totals.queues,
        groups=whole[0],
        incomplete_groups=whole[1],
        bytes=totals.bytes,
        first_put_at=totals.first_put_at,
        last_put_at=totals.last_put_at,
        first_delivery=totals.first_delivery,
        last_delivery=totals.last_delivery,
        put_earlier=put_earlier,
        errors={kind: counts.get((kind, "error"), 0) for kind in KINDS},
        notes={kind: counts.get((kind, "note"), 0) for kind in KINDS},
    )
