"""load: tables, folders of files and IBM's dmpmqmsg texts go onto a queue, in one step, and never twice."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Literal, get_args

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documents do

from ...errors import OptionsError, bad_argument
from ...formats import FORMAT, parse_rule
from ..files import register_formats
from ..finishing import transaction_time
from ..registering import register
from .progress import Tell, told
from .troubles import told_plainly

Format = Literal["parquet", "json", "csv", "files", "dmpmqmsg"]
FORMATS: tuple[Format, ...] = get_args(Format)
TABLES = ("parquet", "json", "csv")
DEFAULT_APPLICATION = "load"
DEFAULT_SPLIT = "delimiter:\\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What `load` did.

    Args:
        messages: put on the queue; 0 if it was done before.
        size: bytes of their bodies.
        files: of a folder of files: how many groups they are.
        already: the transaction was committed before: nothing was put.
        seconds: from the start of the work to the put.
    """

    messages: int
    size: int
    files: int | None
    already: bool
    seconds: float


def load(
    spark: SparkSession,
    source: str | PathLike[str],
    url: str | PathLike[str],
    queue: str,
    *,
    format: Format,
    transaction: str | None = None,
    application: str = DEFAULT_APPLICATION,
    group_by: str | None = None,
    order_by: str | None = None,
    bad_rows: str = "fail",
    split: str | None = None,
    patterns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    read_options: dict[str, str] | None = None,
    progress: Tell | None = None,
) -> Loaded:
    """Puts what is in files on a queue, all of it in one step.

    Tables: a column is a field of the message, by name; `body` must be there. A folder of files: each file becomes a
    group that begins with its manifest. A dmpmqmsg text, or a folder of such: the messages as they were dumped.

    Args:
        source: a file or a folder; the tasks must be able to read it.
        url, queue: where to; the queue must be there.
        format: "parquet", "json", "csv"; "files"; "dmpmqmsg".
        transaction: the name of this load: a second one under the same name and application puts nothing. None:
            it has none, and run twice it puts twice.
        group_by: of tables: rows with an equal value make a group.
        order_by: of tables: the column in whose order the messages are put, and numbered in their group.
        bad_rows: "fail", or "queue:NAME", which takes rows that are not messages.
        split: of files: how each is split, `inorder.formats.splitting`; default "delimiter:\\n".
        patterns, exclude: of files: which; as `inorder.formats.folder`.
        read_options: of tables: options of Spark's reader, for example header=true.
        progress: called once a second, in another thread, with what is staged, and at last all of it.

    Raises: ArgumentError, OptionsError; FormatError with the line or the file; what the sink raises. Nothing is put.
    """
    if format not in FORMATS:
        raise bad_argument("format", format, f"one of: {', '.join(FORMATS)}")
    tables = {"group_by": group_by, "order_by": order_by, "read_options": read_options}
    _check_used(format, split=split, patterns=patterns, exclude=exclude, **tables)
    if transaction is not None and transaction_time(fspath(url), queue, transaction, application) is not None:
        return Loaded(messages=0, size=0, files=None, already=True, seconds=0.0)
    began = time.monotonic()
    register(spark)
    with told_plainly(), told(spark, progress):
        register_formats(spark)
        if format == "files":
            rows = _files(spark, fspath(source), split or DEFAULT_SPLIT, transaction, patterns, exclude)
        elif format == "dmpmqmsg":
            rows = spark.read.format("inorder-dmpmqmsg").load(str(Path(fspath(source)).resolve()))
        else:
            rows = spark.read.format(format).options(**(read_options or {})).load(fspath(source))
        named = {"transaction": transaction, "groupBy": group_by, "orderBy": order_by}
        options = {name: value for name, value in named.items() if value is not None}
        counted = Observation("loaded")
        manifests = F.count_if(F.col("format") == FORMAT) if format == "files" else F.lit(None).cast("long")
        has_length = dict(rows.dtypes).get("body") in ("binary", "string")  # else the sink says what is wrong
        size = F.coalesce(F.sum(F.octet_length("body")), F.lit(0)) if has_length else F.lit(0)
        (
            rows.observe(counted, F.count(F.lit(1)).alias("messages"), size.alias("size"), manifests.alias("files"))
            .write.format("inorder")
            .options(url=fspath(url), queue=queue, application=application, badRows=bad_rows, **options)
            .mode("append")
            .save()
        )
    return Loaded(**counted.get, already=False, seconds=time.monotonic() - began)


USED_BY = {
    "group_by": TABLES,
    "order_by": TABLES,
    "read_options": TABLES,
    "split": ("files",),
    "patterns": ("files",),
    "exclude": ("files",),
}


def _check_used(format_: str, **given: object) -> None:
    """Raises: OptionsError, something was given that means nothing here."""
    for name, value in given.items():
        if value and format_ not in USED_BY[name]:
            raise OptionsError(f"{name} has no meaning for the format {format_}; it is for {', '.join(USED_BY[name])}")


def _files(
    spark: SparkSession, root: str, split: str, transaction: str | None, patterns: Sequence[str], exclude: Sequence[str]
) -> DataFrame:
    """The messages of all files of a folder. Their groups have the same ids when they are loaded again by one name."""
    parse_rule(split)
    return (
        spark.read.format("inorder-files")
        .options(
            root=str(Path(root).resolve()),
            split=split,
            seed=transaction if transaction is not None else str(uuid.uuid4()),
            patterns=json.dumps(list(patterns) or ["**"]),
            exclude=json.dumps(list(exclude)),
            tasks=spark.sparkContext.defaultParallelism,
        )
        .load()
    )
