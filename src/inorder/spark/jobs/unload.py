"""unload: writes files that were put on a queue as groups, from an archive or from the queue itself."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documents do

from ...client.manager import QueueManager
from ...errors import NoMessageAvailable, bad_argument
from ...formats import FORMAT, get_file
from ...formats.file_group import EXISTING, Existing
from ...model.parameters import Choice
from ...stores.open import is_of_any_store
from ..files import DUMPED, MEMBER, PART, TEXT, UnwrittenFile, WriteReport, register_formats
from .archive import MEMBER_OF, ORDER, Archive, check_local, is_member, read_archive
from .progress import Tell, told
from .replay import in_order
from .troubles import told_plainly


@dataclass(frozen=True, slots=True, kw_only=True)
class Unloaded:
    """The result of `unload`.

    Args:
        messages, size, files: the numbers of messages (with manifests), bytes and files that were written.
        failed: how many files could not be written.
        troubles: the first of them.
        others: how many messages belong to no file.
        seconds: from the start of the work to the last file.
    """

    messages: int
    size: int
    files: int
    failed: int
    troubles: tuple[UnwrittenFile, ...]
    others: int
    seconds: float


@told_plainly()
def unload(
    spark: SparkSession,
    archive: Archive,
    target: str | PathLike[str],
    *,
    existing: Existing = "same",
    progress: Tell | None = None,
) -> Unloaded:
    """Writes the files of an archive, many at a time, and checks each against its manifest.

    A file that is wrong or incomplete is reported and not written; the others are written.

    Args:
        archive: a folder or a DataFrame.
        target: a folder that the tasks can write; created if it is missing.
        existing: what to do if a file exists: "refuse"; accept a file with the "same" bytes; "replace" it.
        progress: called once a second, in another thread, with the amount in finished files, and finally with the
            total.
    """
    Choice(EXISTING).check("existing", existing)
    place = _made(target)
    began = time.monotonic()
    rows = read_archive(spark, archive)
    members = rows.where(is_member())
    is_manifest = (F.col("format") == FORMAT) & (F.col("sequence_number") == 1) & (F.col("offset") == 0)
    of_files = members.where(is_manifest).select(*MEMBER_OF).distinct()
    found = members.select(*MEMBER.names).join(of_files, [*MEMBER_OF], "left_semi")
    by_group = found.select(*MEMBER.names).repartition(*MEMBER_OF)
    by_group = by_group.sortWithinPartitions(*MEMBER.names[:4])
    report = _write(by_group, "inorder-files", place, progress, counted=rows, existing=existing)
    return Unloaded(
        messages=report.messages,
        size=report.size,
        files=report.files,
        failed=report.failed,
        troubles=tuple(report.troubles),
        others=rows.count() - report.rows,
        seconds=time.monotonic() - began,
    )


@told_plainly()
def dump(
    spark: SparkSession,
    archive: Archive,
    target: str | PathLike[str],
    *,
    order: Literal["logical", "physical"] = "logical",
    overwrite: bool = False,
    leave_out_properties: bool = False,
    progress: Tell | None = None,
) -> int:
    """Writes an archive as texts of IBM's dmpmqmsg utility, in ordered files; returns the number of messages.

    Args:
        target: a folder that the tasks can write; created if it is missing.
        overwrite: whether existing texts may be removed.
        leave_out_properties: True writes messages without their properties, which the format cannot store.
        progress: called once a second, in another thread, with the written amount, and finally with the total.

    Raises ArgumentError if there are texts already; QueueCondition for an error that Spark reports, such as a message
    that the format cannot store.
    """
    ORDER.check("order", order)
    place = _made(target)
    old = sorted(place.glob(f"{PART}*"))
    for one in old:
        if one.suffix != TEXT or is_of_any_store(one) or not one.is_file():
            raise bad_argument("target", str(place), f"a folder without {one.name}, which is not a text of this job")
    if old and not overwrite:
        raise bad_argument("target", str(place), f"a folder without {old[0].name}, unless overwrite=True")
    for one in old:
        one.unlink()
    messages = read_archive(spark, archive)
    rows = in_order(messages, order).select(*DUMPED.names)
    leaves_out = str(leave_out_properties).lower()
    report = _write(rows, "inorder-dmpmqmsg", place, progress, counted=messages, leave_out_properties=leaves_out)
    return report.messages


def _made(target: str | PathLike[str]) -> Path:
    """Creates the folder if it is missing. Raises ArgumentError if the path is something else."""
    place = Path(fspath(target)).resolve()
    check_local("target", place)
    place.mkdir(parents=True, exist_ok=True)
    return place


def _write(
    rows: DataFrame, format_: str, target: Path, progress: Tell | None, *, counted: DataFrame, **options: str
) -> WriteReport:
    """Has the tasks write, and returns their report.

    Args:
        counted: as many rows as will be written, or a few more, and quicker to count.
    """
    register_formats(rows.sparkSession)
    with tempfile.TemporaryDirectory(prefix="inorder-report-") as folder:
        report = str(Path(folder) / "report.json")
        with told(rows.sparkSession, progress, counted):
            rows.write.format(format_).mode("append").options(target=str(target), report=report, **options).save()
        return WriteReport.load(report)


def unload_queue(
    manager: QueueManager, queue: str, target: str | PathLike[str], *, existing: Existing = "same"
) -> Iterator[Path]:
    """Gets the files from a queue, one unit of work each: a file is on disk before its group is removed.

    Yields: the path of each file. Ends when no whole group of a file is left.
    """
    place = _made(target)
    while True:
        try:
            yield get_file(manager, queue, place, existing=existing).path
        except NoMessageAvailable:
            return
