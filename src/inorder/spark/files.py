"""Files and texts as Spark sources and sinks for the jobs `load` and `unload`, read and written by many tasks.

`inorder-files` reads a folder of files as the messages of their groups, and writes such messages back into files.
`inorder-dmpmqmsg` does the same with texts of IBM's dmpmqmsg utility. They are data sources, because functions over
data frames need pandas.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ..arrow.properties import as_pairs, properties_of
from ..arrow.schema import DESCRIPTOR
from ..errors import InorderError
from ..formats import FORMAT, FileError, Rebuilder, dmpmqmsg, folder, records
from ..formats.manifest import parse
from ..formats.paths import length_of
from ..model.message import NO_ID, Message
from .batches import in_batches, rows_of
from .tally import Tally

TASK_BYTES = 128 * 2**20  # for one task; starting a task costs as much as 700 small files
FILE_BYTES = 64 * 2**10  # a file costs as much by itself (find, open twice, manifest) as reading this many bytes
TROUBLES_KEPT = 20
PART, TEXT = "part-", ".txt"

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
DUMPED = pa.schema([*DESCRIPTOR, ("body", pa.binary())])
MEMBER = pa.schema(
    [
        ("queue", pa.string()),
        ("group_id", pa.binary()),
        ("sequence_number", pa.int32()),
        ("offset", pa.int32()),
        ("body", pa.binary()),
    ]
)


def register_formats(spark: SparkSession) -> None:
    """Registers the two formats with a session; harmless when repeated."""
    for source in (FilesSource, DumpSource):
        spark.dataSource.register(source)


class Paths(InputPartition):
    """The files of one task."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = list(paths)


def dealt(paths: Sequence[str], weights: Sequence[int], tasks: int) -> list[Paths]:
    """Splits the files, in order, into parts of similar weight, at most `TASK_BYTES`.

    Args:
        weights: the bytes of each file, plus `FILE_BYTES`.
        tasks: the least number of parts, if there are as many files.
    """
    total = sum(weights)
    parts = min(len(paths), max(tasks, -(-total // TASK_BYTES)))
    middles = [upto - weight / 2 for upto, weight in zip(itertools.accumulate(weights), weights, strict=True)]
    of_parts = itertools.groupby(zip(middles, paths, strict=True), key=lambda one: int(one[0] * parts / total))
    return [Paths([path for _, path in part]) for _, part in of_parts] or [Paths([])]


# --- reading


class FilesSource(DataSource):
    """Files as groups; options root, split, seed, patterns and exclude (lists as JSON), tasks."""

    @classmethod
    def name(cls) -> str:
        return "inorder-files"

    def schema(self) -> StructType:
        return from_arrow_schema(RECORD)

    def reader(self, schema: StructType) -> FilesReader:
        return FilesReader(self.options)

    def writer(self, schema: StructType, overwrite: bool) -> FilesWriter:
        return FilesWriter(self.options)


class FilesReader(DataSourceReader):
    """Reads files in the tasks."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._root, self._split, self._seed = options["root"], options["split"], options["seed"]
        self._patterns, self._exclude = json.loads(options["patterns"]), json.loads(options["exclude"])
        self._tasks = int(options["tasks"])

    def partitions(self) -> Sequence[InputPartition]:
        paths = list(folder(self._root, patterns=self._patterns, exclude=self._exclude))
        return dealt(paths, [FILE_BYTES + length_of(self._root, path) for path in paths], self._tasks)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Paths)
        return in_batches(self._records(partition.paths), RECORD)

    def _records(self, paths: Iterable[str]) -> Iterator[tuple[Any, ...]]:
        for path in paths:
            group_id = hashlib.sha256(f"{self._seed}\0{path}".encode(errors="surrogateescape")).digest()[:24]
            for one in records(self._root, path, self._split):
                format_ = FORMAT if one.sequence == 1 else ""
                yield one.body, group_id, one.sequence, one.offset, one.flags, format_


class DumpSource(DataSource):
    """Texts of dmpmqmsg; option path, a text or a folder of texts, read in the order of their names."""

    @classmethod
    def name(cls) -> str:
        return "inorder-dmpmqmsg"

    def schema(self) -> StructType:
        return from_arrow_schema(DUMPED)

    def reader(self, schema: StructType) -> DumpReader:
        return DumpReader(self.options)

    def writer(self, schema: StructType, overwrite: bool) -> DumpWriter:
        return DumpWriter(self.options)


class DumpReader(DataSourceReader):
    """Reads texts, one in each task."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._path = options["path"]

    def partitions(self) -> Sequence[InputPartition]:
        return [Paths([path]) for path in texts_at(self._path)] or [Paths([])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Paths)
        return in_batches(map(as_dumped, self._messages(partition.paths)), DUMPED)

    def _messages(self, paths: Iterable[str]) -> Iterator[Message]:
        for path in paths:
            with Path(path).open("rb") as text:
                yield from dmpmqmsg.parse(text)


def texts_at(source: str) -> list[str]:
    """The text at a path, or those in a folder, except names that begin with a dot."""
    place = Path(source)
    if not place.is_dir():
        if place.exists() and not place.is_file():
            raise FileError(f"{source!r} is a pipe or a device: a text of dmpmqmsg must be a file", path=source)
        return [str(place)]
    return sorted(str(path) for path in place.iterdir() if path.is_file() and not path.name.startswith("."))


def as_dumped(message: Message) -> tuple[Any, ...]:
    """A message in the columns of `DUMPED`; missing values are left to the put."""
    return tuple(_put_value(message, name) for name in DUMPED.names)


def _put_value(message: Message, name: str) -> Any:
    value = getattr(message, name)
    if name == "put_at":
        return int(value * 1_000_000) if value else None
    if name == "properties":
        return as_pairs(value) or None
    if name in ("correlation_id", "message_id", "group_id") and value == NO_ID:
        return None
    return value


def as_messages(batches: Iterable[pa.RecordBatch]) -> Iterator[Message]:
    """Makes messages from rows of `DUMPED`."""
    for batch in batches:
        for row in batch.to_pylist():
            when, expiry = row.pop("put_at"), row.pop("expiry")
            fields = {name: value for name, value in row.items() if value is not None}
            fields["properties"] = properties_of(fields.get("properties"))
            fields["put_at"] = 0.0 if when is None else when.timestamp()
            yield Message(fields.pop("body"), expiry=math.inf if expiry is None else expiry, **fields)


# --- writing


class UnwrittenFile(NamedTuple):
    """A file that could not be written: its path if it is known, its group's id in hexadecimal, and the reason."""

    path: str | None
    group_id: str
    why: str


@dataclass(slots=True)
class WriteReport(WriterCommitMessage):
    """The output of one task, or of all of them.

    Args:
        files, messages, size: the number of files, messages and bytes.
        failed: how many files could not be written; `troubles` lists the first of them.
        rows: how many rows came, whether or not their files were written.
    """

    rows: int = 0
    files: int = 0
    messages: int = 0
    size: int = 0
    failed: int = 0
    troubles: list[UnwrittenFile] = field(default_factory=list)

    def add(self, other: WriteReport) -> None:
        self.rows += other.rows
        self.files += other.files
        self.messages += other.messages
        self.size += other.size
        self.failed += other.failed
        self.troubles = sorted([*self.troubles, *other.troubles], key=lambda one: (one.path or "", one.group_id))
        del self.troubles[TROUBLES_KEPT:]

    def save(self, path: str) -> None:
        Path(path).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def load(cls, path: str) -> WriteReport:
        held = json.loads(Path(path).read_text(encoding="utf-8"))
        return cls(**held | {"troubles": [UnwrittenFile(*one) for one in held["troubles"]]})


class _Writer(DataSourceArrowWriter):
    """Writes below the folder of option target, and its result into a file at option report."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._target, self._report = options["target"], options["report"]

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        total = WriteReport()
        for one in messages:
            assert isinstance(one, WriteReport), "every task that has ended well reports its result"
            total.add(one)
        total.save(self._report)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Does nothing: finished files are whole, and stay."""


class FilesWriter(_Writer):
    """Files from messages that come group by group, each in order: columns as `MEMBER`; option existing."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self._existing: Any = options["existing"]

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        report, tally = WriteReport(), Tally()
        rows = (_Member(*row) for row in rows_of(_counted(iterator, report)))
        for (_, group_id), members in itertools.groupby(rows, key=lambda row: (row.queue, row.group_id)):
            self._rebuild(group_id, members, report)
            tally.note(report.messages, report.size)
        return report

    def _rebuild(self, group_id: bytes, members: Iterator[_Member], report: WriteReport) -> None:
        path, size, messages = None, 0, 1
        try:
            manifest = parse(next(members).body)
            path = manifest.path
            with Rebuilder(manifest, self._target, existing=self._existing) as file:
                for one in members:
                    file.add(one.body, begins=one.offset == 0)
                    size, messages = size + len(one.body), messages + 1
                file.finish()
        except InorderError as trouble:
            report.add(WriteReport(failed=1, troubles=[UnwrittenFile(path, group_id.hex(), str(trouble))]))
        else:
            report.add(WriteReport(files=1, messages=messages, size=size))


def _counted(batches: Iterable[pa.RecordBatch], report: WriteReport) -> Iterator[pa.RecordBatch]:
    """Passes batches on, and counts their rows."""
    for batch in batches:
        report.rows += batch.num_rows
        yield batch


class _Member(NamedTuple):
    """A row of `MEMBER`."""

    queue: str
    group_id: bytes
    sequence_number: int
    offset: int
    body: bytes


class DumpWriter(_Writer):
    """Texts of dmpmqmsg, one for each partition, in the order of the partitions: columns as `DUMPED`."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self._leaves_out = options["leave_out_properties"] == "true"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None, "a task has a context"
        final = Path(self._target) / f"{PART}{context.partitionId():05}{TEXT}"
        begun = final.with_name(f".{final.name}.{context.taskAttemptId()}")
        begun.unlink(missing_ok=True)
        with begun.open("xb") as text:  # an existing file of this name is not written through
            tally = Tally()
            messages = as_messages(_tallied(iterator, text, tally))
            count = dmpmqmsg.write(messages, text, leave_out_properties=self._leaves_out)
        if not count:
            begun.unlink()
            return WriteReport()
        begun.replace(final)
        size = final.stat().st_size
        tally.note(count, size)
        return WriteReport(files=1, messages=count, size=size)


def _tallied(batches: Iterable[pa.RecordBatch], text: BinaryIO, tally: Tally) -> Iterator[pa.RecordBatch]:
    """Passes batches on, and counts each as written when the next is asked for."""
    count = 0
    for batch in batches:
        yield batch
        count += batch.num_rows
        tally.note(count, text.tell())
