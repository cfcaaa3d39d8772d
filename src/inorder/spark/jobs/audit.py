"""audit: checks whether an archive kept its order.

It can prove that no delivery is missing or doubled, that every group and logical message is whole, and that each
message was delivered after those before it on the queue. It reads no bodies. An archive does not show messages that
were lost after the last delivery.

Under the output folder: `findings.parquet` (a folder, as Spark writes it), `findings.csv`, `summary.json`,
`report.html`. The pictures in the report need the extra `inorder[report]`.
"""

from __future__ import annotations

import functools
import platform
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from importlib.util import find_spec
from os import PathLike, fspath
from typing import Any, NamedTuple, TypeAlias

import pyspark
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documents do

from ...errors import bad_argument
from ...model.parameters import Choice
from ...support.release import __version__
from . import findings, lanes
from .archive import (
    PLACE,
    Archive,
    absolute,
    check_csv,
    check_folder,
    check_outside,
    check_removable,
    check_target,
    is_member,
    read_archive,
    write_csv,
    write_text,
)
from .findings import COUNTED, FINDING, Promised
from .picture_data import SLICES, PictureData, picture_data
from .report import NO_PICTURES, Drawn, Provenance, html_report
from .summary import Audited, Totals, count_notes
from .troubles import told_plainly

Draw: TypeAlias = "Callable[[PictureData], Drawn]"

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
DELIVERY = ("queue", "delivery_number")
KEY = ("key_rank", "key_number", "key_ordinal")
JUDGED_BY = ("flags", "length", "original_length", "backout_count", "uid_origin", "uid_number")  # dropped afterwards
FILES_MAX = 64
EXAMPLES_MAX = 200
FIRST_SHOWN = ("severity", "queue", "delivery_number", "kind")  # errors, then notes


@told_plainly()
def audit(
    spark: SparkSession,
    archive: Archive,
    output: str | PathLike[str],
    *,
    order: Promised = "physical",
    first_delivery: int | None = 1,
    delivered_at: str | None = None,
    title: str = "Audit of an archive",
    command: str | None = None,
    history: Sequence[str] = (),
    overwrite: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Audited:
    """Searches an archive for everything that contradicts its order, and writes findings, a summary and a report.

    The report has pictures if matplotlib is installed (`inorder[report]`); if not, `progress` first gets a note.

    Args:
        archive: a folder or a DataFrame.
        output: the folder to write.
        order: the promised order. "physical": messages of one rank in the order of their places; "logical": whole
            groups, at the place of their first message; "none": overtakes are notes, not errors, and only checked
            within a group.
        first_delivery: the first delivery number of each queue; None: the smallest in the archive.
        delivered_at: a timestamp column with the time of delivery, for ages; None: there is none.
        title: the title of the report.
        command: the command that the report says was run; None: this call.
        history: events of the run that made the archive, which the report lists, one sentence each.
        overwrite: whether the folder may already exist.
        progress: called with a description of each step that begins.

    Raises:
        ArgumentError: if columns are missing, the folder already exists or is in the archive, or the order is unknown.
        QueueCondition: for an error that Spark reports, such as a damaged file.
    """
    Choice(PROMISES).check("order", order)
    tell = progress or (lambda _: None)
    path = check_target(spark, "output", output, overwrite=overwrite)
    check_outside(spark, "output", path, archive)
    check_removable(spark, "output", f"{path}/findings.parquet", archive)
    check_folder(spark, "output", f"{path}/findings.parquet")
    check_csv(spark, "output", f"{path}/findings.csv")
    source = Provenance(
        title=title,
        archive="" if isinstance(archive, DataFrame) else absolute(spark, fspath(archive)),
        made_at=time.time(),
        versions=f"inorder {__version__}, PySpark {pyspark.__version__}, Python {platform.python_version()}",
        call=command or _call(archive, path, order, first_delivery, delivered_at),
        history=history,
    )
    rows = read_archive(spark, archive)
    if delivered_at is not None and delivered_at not in rows.columns:
        raise bad_argument("delivered_at", delivered_at, f"a column of the archive: {', '.join(rows.columns)}")
    narrow = rows.select(*NARROW, *([F.col(delivered_at).alias("delivered_at")] if delivered_at else []))
    with ExitStack() as until:
        pencil = _Pencil(until) if find_spec("matplotlib") else None
        if pencil is None:
            tell(NO_PICTURES)
        tell("counting")
        totals = Totals.of(narrow)
        slices = min(SLICES, max(1, totals.messages)) if pencil else 1
        judged = _judge(
            spark, narrow, totals, order=order, first_delivery=first_delivery, slices=slices, tell=tell, until=until
        )
        deliveries = judged.sample.cut(DELIVERY, slices)
        counts = count_notes(judged.notes, deliveries.lane())
        audited = Audited.of(totals, counts, order=order)
        if pencil is not None:
            tell("drawing")
            places = judged.sample.cut(("queue", *KEY), slices)
            pencil.draw(picture_data(judged.positioned, counts, deliveries, places, totals=totals))
        examples = _write(judged.notes.where(F.col("severity") != COUNTED).select(*FINDING), path)
        page = html_report(source, audited, None if pencil is None else pencil.drawn(), examples)
    write_text(spark, f"{path}/summary.json", audited.as_json() + "\n")
    write_text(spark, f"{path}/report.html", page)
    return audited


def _call(archive: Archive, path: str, order: Promised, first_delivery: int | None, delivered_at: str | None) -> str:
    """This call, with the arguments on which the result depends."""
    given: dict[str, object] = {"order": order}
    if first_delivery != 1:
        given["first_delivery"] = first_delivery
    if delivered_at is not None:
        given["delivered_at"] = delivered_at
    rows = "archive" if isinstance(archive, DataFrame) else repr(fspath(archive))
    return f"jobs.audit(spark, {rows}, {path!r}, {', '.join(f'{name}={value!r}' for name, value in given.items())})"


class _Pencil:
    """Loads matplotlib, and draws, in a thread while Spark works."""

    def __init__(self, until: ExitStack) -> None:
        self._thread = until.enter_context(ThreadPoolExecutor(1))
        self._draw = self._thread.submit(_drawer)
        self._pictures: Future[Drawn] | None = None

    def draw(self, data: PictureData) -> None:
        """Starts drawing."""
        self._pictures = self._thread.submit(self._draw.result(), data)

    def drawn(self) -> Drawn:
        """The finished pictures."""
        assert self._pictures is not None, "nothing was drawn"
        return self._pictures.result()


def _drawer() -> Draw:
    from .charts import draw  # noqa: PLC0415 - matplotlib is slow to load, and an audit can do without

    return draw


class _Judged(NamedTuple):
    """The results of the checks.

    Args:
        positioned: each message once, with its place in the promised order; null: it has none.
        sample: a sample of the rows, with their deliveries, places and places in the promised order.
        notes: the notes of all checks.
    """

    positioned: DataFrame
    sample: lanes.KeySample
    notes: DataFrame


def _judge(
    spark: SparkSession,
    rows: DataFrame,
    totals: Totals,
    *,
    order: Promised,
    first_delivery: int | None,
    slices: int,
    tell: Callable[[str], None],
    until: ExitStack,
) -> _Judged:
    """Runs, or plans, all checks. The sample is large enough for this many slices."""
    wanted = lanes.wanted_lanes(totals.messages, lanes.LANE_ROWS)
    # Planning and running a shuffle of one lane's rows takes longer than the other cores would save: the checks use
    # them.
    parts = 1 if wanted == 1 else lanes.partitions(spark, totals.messages, lanes.LANE_ROWS)
    tell(f"{totals.messages:,} messages: looking for duplicates")
    once, repeated = findings.repeated_messages(rows, parts=parts, until=until)
    members = findings.members_judged(once.where(is_member()), parts=parts)
    if order == "logical":  # used twice: for faults of groups, and for their places
        members = members.drop(*JUDGED_BY).persist(StorageLevel.DISK_ONLY)
        until.callback(members.unpersist)
    positioned = _by_head(once, members) if order == "logical" else _by_place(once)
    tell("looking for gaps, repeats, overtakes and broken groups")
    keys, most = (*DELIVERY, *PLACE, *KEY), max(slices, wanted)
    sample = lanes.KeySample(positioned, keys, row_count=totals.messages, lanes_max=most)
    by_delivery, by_place = sample.cut(DELIVERY, wanted), sample.cut(("queue", *PLACE), wanted)
    found = [
        findings.in_groups(members, promised=order),
        findings.places(once, by_place, parts=parts, until=until),
        findings.redelivered(once),
        findings.delivery_numbers(rows, by_delivery, parts=parts, first=first_delivery, until=until),
    ]
    if repeated is not None:
        found.append(repeated)
    if order != "none":
        found.append(findings.overtakes(positioned, by_delivery, promised=order, parts=parts, until=until))
    notes = functools.reduce(DataFrame.union, found).persist(StorageLevel.DISK_ONLY)
    until.callback(notes.unpersist)
    return _Judged(positioned, sample, notes)


def _by_place(rows: DataFrame) -> DataFrame:
    return rows.withColumns({key: F.col(name) for name, key in zip(PLACE, KEY, strict=True)})


def _by_head(rows: DataFrame, judged: DataFrame) -> DataFrame:
    """The place of each message's group. Groups without a head have no place in logical order."""
    alone = _by_place(rows.where(~is_member()).drop(*JUDGED_BY))
    placed = judged.withColumns({key: F.col(f"head.{name}") for name, key in zip(PLACE, KEY, strict=True)})
    return alone.union(placed.select(*alone.columns))


def _write(found: DataFrame, path: str) -> list[dict[str, Any]]:
    """Writes the findings as Parquet and CSV; returns the first of them for the report."""
    found.coalesce(FILES_MAX).write.mode("overwrite").parquet(f"{path}/findings.parquet")
    write_csv(found, f"{path}/findings.csv")
    return [row.asDict() for row in found.orderBy(*FIRST_SHOWN).limit(EXAMPLES_MAX).collect()]
