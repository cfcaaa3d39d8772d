"""load: puts tables, folders of files or IBM's dmpmqmsg texts on a queue, in one step, and never twice."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, get_args

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documents do

from ...errors import OptionsError
from ...formats import FORMAT, parse_rule
from ...model.parameters import Choice
from ..files import register_formats
from ..finishing import transaction_time
from ..options import store_text
from ..registering import register
from .progress import Tell, told
from .putting import put
from .troubles import told_plainly

Format = Literal["parquet", "json", "csv", "files", "dmpmqmsg"]
FORMATS: tuple[Format, ...] = get_args(Format)
TABLES = ("parquet", "json", "csv")
DEFAULT_APPLICATION = "load"
DEFAULT_SPLIT = "delimiter:\\n"
NOTHING: dict[str, Any] = {"messages": 0, "size": 0, "files": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The result of `load`.

    Args:
        messages: how many messages were put; 0 if the load was done before.
        size: the bytes of their bodies.
        files: for a folder of files, how many groups they became.
        already: whether the transaction was committed before, so that nothing was put.
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
    """Puts the contents of files on a queue, all in one step.

    In a table a column is a field of the message, by name; `body` must be present. Of a folder of files each file
    becomes a group that begins with its manifest. A dmpmqmsg text, or a folder of them, has the messages themselves.

    Args:
        source: a file or a folder; the tasks must be able to read it.
        url, queue: the destination; the queue must exist.
        format: "parquet", "json", "csv"; "files"; "dmpmqmsg".
        transaction: the name of this load: a second one with the same name and application puts nothing. None: no name;
            if run twice, it puts twice.
        group_by: for tables: rows with an equal value become a group.
        order_by: for tables: the column that sets the order of the messages, and their numbers in the group.
        bad_rows: "fail", or "queue:NAME", which takes rows that are not messages.
        split: for files: how to split each, `inorder.formats.splitting`; default "delimiter:\\n".
        patterns, exclude: which files, as for `inorder.formats.folder`.
        read_options: for tables: options of Spark's reader, for example header=true.
        progress: called once a second, in another thread, with the staged amount, and finally with the total.

    Raises ArgumentError, OptionsError for the arguments of this function; for an error that Spark reports, such as a
    wrong line, column or row, or a full queue, QueueCondition with its text and reason. Then nothing is put.
    """
    Choice(FORMATS).check("format", format)
    tables = {"group_by": group_by, "order_by": order_by, "read_options": read_options}
    url = store_text(url)
    _check_used(format, split=split, patterns=patterns, exclude=exclude, **tables)
    if transaction is not None and transaction_time(url, queue, transaction, application) is not None:
        return Loaded(**NOTHING, already=True, seconds=0.0)
    began = time.monotonic()
    register(spark)
    with told_plainly():
        register_formats(spark)
        if format == "files":
            rows = _files(spark, fspath(source), split or DEFAULT_SPLIT, transaction, patterns, exclude)
        elif format == "dmpmqmsg":
            rows = spark.read.format("inorder-dmpmqmsg").load(str(Path(fspath(source)).resolve()))
        else:
            rows = spark.read.format(format).options(**(read_options or {})).load(fspath(source))
        named = {"application": application, "transaction": transaction, "groupBy": group_by, "orderBy": order_by}
        options = {name: value for name, value in named.items() if value is not None}
        counted = Observation("loaded")
        manifests = F.count_if(F.col("format") == FORMAT) if format == "files" else F.lit(None).cast("long")
        has_length = dict(rows.dtypes).get("body") in ("binary", "string")  # otherwise the sink reports the error
        size = F.coalesce(F.sum(F.octet_length("body")), F.lit(0)) if has_length else F.lit(0)
        figures = F.count(F.lit(1)).alias("messages"), size.alias("size"), manifests.alias("files")
        with told(spark, progress, rows if format == "parquet" else None):
            already = put(rows.observe(counted, *figures), url=url, queue=queue, badRows=bad_rows, **options)
    put_now = NOTHING if already else counted.get
    return Loaded(**put_now, already=already, seconds=time.monotonic() - began)


USED_BY = {
    "group_by": TABLES,
    "order_by": TABLES,
    "read_options": TABLES,
    "split": ("files",),
    "patterns": ("files",),
    "exclude": ("files",),
}


def _check_used(format_: str, **given: object) -> None:
    """Raises OptionsError if an option was given that has no effect here."""
    for name, value in given.items():
        if value and format_ not in USED_BY[name]:
            raise OptionsError(f"{name} has no meaning for the format {format_}; it is for {', '.join(USED_BY[name])}")


def _files(
    spark: SparkSession, root: str, split: str, transaction: str | None, patterns: Sequence[str], exclude: Sequence[str]
) -> DataFrame:
    """The messages of all files in a folder. Another load with the same name gives their groups the same ids."""
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
