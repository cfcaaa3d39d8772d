"""load: tables, folders of files and IBM's dmpmqmsg texts go onto a queue, in one step, and never twice."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documents do
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ...errors import OptionsError, bad_argument
from ...formats import FORMAT, dmpmqmsg, folder, parse_rule, records
from ...message import NO_ID, Message
from ..finishing import transaction_time
from ..registering import register
from ..schema import DESCRIPTOR

Format = Literal["parquet", "json", "csv", "files", "dmpmqmsg"]
FORMATS: tuple[Format, ...] = get_args(Format)
TABLES = ("parquet", "json", "csv")
DEFAULT_APPLICATION = "load"
DEFAULT_SPLIT = "delimiter:\\n"

BATCH_ROWS, BATCH_BYTES = 4096, 8 * 2**20
FILES_PER_TASK = 64

RECORD = pa.schema(
    [
        ("body", pa.binary()),
        ("group_id", pa.binary()),
        ("sequence_number", pa.int32()),
        ("offset", pa.int32()),
        ("flags", pa.int32()),
        ("format", pa.string()),
    ]
)
PUT_FIELDS = [(name, kind) for name, kind in DESCRIPTOR if name != "original_length"]
DUMPED = pa.schema([*PUT_FIELDS, ("original_length", pa.int32()), ("body", pa.binary())])


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What `load` did.

    Args:
        messages: put on the queue; 0 if it was done before.
        files: read; of tables None.
        already: the transaction was committed before: nothing was put.
    """

    messages: int
    files: int | None
    already: bool


def load(
    spark: SparkSession,
    source: str | PathLike[str],
    url: str | PathLike[str],
    queue: str,
    *,
    format: Format,  # noqa: A002 - as Spark's readers call it
    transaction: str | None = None,
    application: str = DEFAULT_APPLICATION,
    group_by: str | None = None,
    order_by: str | None = None,
    bad_rows: str = "fail",
    split: str | None = None,
    patterns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    read_options: dict[str, str] | None = None,
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
        bad_rows: "fail", or "queue:NAME", which takes rows that are no message.
        split: of files: how each is split, `inorder.formats.splitting`; default "delimiter:\\n".
        patterns, exclude: of files: which; as `inorder.formats.folder`.
        read_options: of tables: options of Spark's reader, for example header=true.

    Raises: ArgumentError, OptionsError; FormatError with the line or the file; what the sink raises. Nothing is put.
    """
    if format not in FORMATS:
        raise bad_argument("format", format, f"one of {', '.join(FORMATS)}")
    _check_used(format, group_by=group_by, order_by=order_by, split=split, patterns=patterns, exclude=exclude)
    if transaction is not None and transaction_time(fspath(url), queue, transaction, application) is not None:
        return Loaded(messages=0, files=None, already=True)
    register(spark)
    files: int | None = None
    if format == "files":
        rows, files = _files(spark, fspath(source), split or DEFAULT_SPLIT, transaction, patterns, exclude)
    elif format == "dmpmqmsg":
        rows, files = _dumps(spark, fspath(source))
    else:
        rows = spark.read.format(format).options(**(read_options or {})).load(fspath(source))
    named = {"transaction": transaction, "groupBy": group_by, "orderBy": order_by}
    options = {name: value for name, value in named.items() if value is not None}
    counted = Observation("loaded")
    (
        rows.observe(counted, F.count(F.lit(1)).alias("messages"))
        .write.format("inorder")
        .options(url=fspath(url), queue=queue, application=application, badRows=bad_rows, **options)
        .mode("append")
        .save()
    )
    return Loaded(messages=counted.get["messages"], files=files, already=False)


def _check_used(format_: str, **given: object) -> None:
    tables = ("group_by", "order_by")
    for name, value in given.items():
        if value and (name in tables) != (format_ in TABLES) and not (format_ == "files" and name not in tables):
            raise OptionsError(f"{name} has no meaning for the format {format_}")


# --- files: each a group


def _files(
    spark: SparkSession,
    root: str,
    split: str,
    transaction: str | None,
    patterns: Sequence[str],
    exclude: Sequence[str],
) -> tuple[DataFrame, int]:
    """The messages of all files of a folder, read where the tasks run; and how many files."""
    parse_rule(split)
    place = str(Path(root).resolve(strict=False))
    paths = [(path,) for path in folder(place, patterns=patterns or ("**",), exclude=exclude)]
    seed = transaction if transaction is not None else hashlib.sha256(str(len(paths)).encode()).hexdigest()
    tasks = max(1, min(len(paths), max(spark.sparkContext.defaultParallelism * 4, len(paths) // FILES_PER_TASK)))
    listed = spark.createDataFrame(paths, "path string").repartition(tasks)
    return listed.mapInArrow(_reader(place, split, seed), _spark_types(RECORD)), len(paths)


def _reader(root: str, split: str, seed: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _in_batches(_records(root, split, seed, _texts(batches)), RECORD)

    return read


def _texts(batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    return (path for batch in batches for path in batch.column(0).to_pylist())


def _records(root: str, split: str, seed: str, paths: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    for path in paths:
        group_id = hashlib.sha256(f"{seed}\0{path}".encode(errors="surrogateescape")).digest()[:24]
        for one in records(root, path, split):
            format_ = FORMAT if one.sequence == 1 else ""
            yield one.body, group_id, one.sequence, one.offset, one.flags, format_


# --- dmpmqmsg


def _dumps(spark: SparkSession, source: str) -> tuple[DataFrame, int]:
    """The messages of one text, or of all texts of a folder, a task for each."""
    place = Path(source)
    paths = sorted(str(path) for path in place.iterdir() if path.is_file()) if place.is_dir() else [str(place)]
    listed = spark.createDataFrame([(path,) for path in paths], "path string").repartitionByRange(len(paths), "path")
    return listed.mapInArrow(_parse, _spark_types(DUMPED)), len(paths)


def _parse(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return _in_batches((_values(message) for message in _messages(_texts(batches))), DUMPED)


def _messages(paths: Iterable[str]) -> Iterator[Message]:
    for path in paths:
        with Path(path).open("rb") as text:
            yield from dmpmqmsg.parse(text)


def _values(message: Message) -> tuple[Any, ...]:
    """A message by the columns of `DUMPED`; what is not given is left to the put."""
    return tuple(_value(message, name) for name in DUMPED.names)


def _value(message: Message, name: str) -> Any:
    value = getattr(message, name)
    if name == "put_at":
        return int(value * 1_000_000) if value else None
    if name in ("correlation_id", "message_id", "group_id") and value == NO_ID:
        return None
    return value


# --- both


def _in_batches(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows as record batches of bounded size."""
    body = schema.get_field_index("body")
    some: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        some.append(row)
        size += len(row[body])
        if len(some) >= BATCH_ROWS or size >= BATCH_BYTES:
            yield _batch(some, schema)
            some, size = [], 0
    if some:
        yield _batch(some, schema)


def _batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _spark_types(schema: pa.Schema) -> StructType:
    return from_arrow_schema(schema)
