"""Archives for the jobs: Parquet under a folder, or any DataFrame with the columns of `spark.schema`.

An archive is partitioned by queue and date, so these two values come from the names of folders. Spark would guess their
types from the text (a queue named 007 would become the number 7), so they are read with the types of the schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from os import PathLike, fspath
from pathlib import Path, PurePath
from typing import Any, TypeAlias
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documents do
from pyspark.sql.types import DateType, StringType, StructField, StructType

from ...errors import bad_argument
from ...formats import FileError
from ...model.message import ANY_GROUP, ANY_SEGMENT
from ...model.parameters import Choice
from ...stores.open import is_of_any_store, store_below
from ..schema import arrow_schema, spark_schema

Archive: TypeAlias = "DataFrame | str | PathLike[str]"

PLACE = ("rank", "number", "ordinal")
MEMBER_OF = ("queue", "group_id")
ORDER = Choice(("logical", "physical"))
PARTS = ".parts"  # added to the name of a CSV file: the folder into which Spark writes it
NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"  # Spark reads this name as null; a row of an archive has a queue
FROM_FOLDERS = {"queue": StringType(), "date": DateType()}
OF_PARTITION = re.compile(f"(/({'|'.join(FROM_FOLDERS)})=[^/]*)+$")


def read_archive(spark: SparkSession, archive: Archive) -> DataFrame:
    """The rows of an archive, lazily.

    Args:
        archive: the folder of an archive, or a DataFrame with its columns; further columns are kept.

    Raises:
        ArgumentError: if columns are missing.
    """
    rows = archive if isinstance(archive, DataFrame) else _read_folder(spark, fspath(archive))
    if "properties" not in rows.columns:  # written before messages had properties
        rows = rows.withColumn("properties", F.lit(None).cast(spark_schema()["properties"].dataType))
    missing = [name for name in arrow_schema().names if name not in rows.columns]
    if missing:
        raise bad_argument("archive", sorted(rows.columns), f"one with all columns of an archive; missing: {missing}")
    return rows.withColumn("queue", F.coalesce("queue", F.lit(NULL_FOLDER)))


def _read_folder(spark: SparkSession, folder: str) -> DataFrame:
    found = spark.read.parquet(folder).schema
    fields = [StructField(field.name, FROM_FOLDERS.get(field.name, field.dataType)) for field in found.fields]
    return spark.read.schema(StructType(fields)).parquet(folder)


def check_target(spark: SparkSession, name: str, folder: str | PathLike[str], *, overwrite: bool) -> str:
    """Checks the folder that a job is about to write, and returns it as a text.

    Raises:
        ArgumentError: if it exists and may not be overwritten; as `check_folder`.
    """
    path = check_folder(spark, name, folder)
    if not overwrite and exists(spark, path):
        raise bad_argument(name, path, "a folder that does not exist yet, unless overwrite=True")
    return path


def check_folder(spark: SparkSession, name: str, folder: str | PathLike[str]) -> str:
    """Checks a folder that a job writes into, or creates, and returns it as a text. Raises ArgumentError, as
    `check_local`.
    """
    path = fspath(folder)
    if (local := _local(spark, path)) is not None:
        check_local(name, local)
    return path


def check_local(name: str, path: Path) -> None:
    """Raises ArgumentError if the path is not a folder, or is a store, or has the name of one of a store's files."""
    if is_of_any_store(path) or (path.exists() and not path.is_dir()):
        raise bad_argument(name, str(path), "a folder, not a file, a store or a store's other file")


def check_replaceable(spark: SparkSession, name: str, folder: str) -> None:
    """Raises ArgumentError if a folder that is about to be removed contains a store."""
    local = _local(spark, folder)
    found = None if local is None else store_below(local)
    if found is not None:
        raise bad_argument(name, folder, f"a folder without a store, but {found} belongs to one")


def check_removable(
    spark: SparkSession, name: str, folder: str, archive: Archive, *, others: Iterable[str] = ()
) -> None:
    """Raises ArgumentError if a folder that is about to be removed contains a store, the archive, or one of the others.

    An archive in a DataFrame is known by the files that it reads.
    """
    check_replaceable(spark, name, folder)
    for one in (*others, *_folders_of(archive)):
        if _real(spark, one).is_relative_to(_real(spark, folder)):
            raise bad_argument(name, folder, f"a folder that does not contain {one}, because its contents are removed")


def check_outside(spark: SparkSession, name: str, folder: str, archive: Archive) -> None:
    """Raises ArgumentError if a folder for other files is that of the archive, or in it, as readers of an archive take
    every file in it for a part.
    """
    for one in _folders_of(archive):
        whole = OF_PARTITION.sub("", one)
        if _real(spark, folder).is_relative_to(_real(spark, whole)):
            raise bad_argument(name, folder, f"a folder outside of the archive {whole}")


def _folders_of(archive: Archive) -> list[str]:
    if isinstance(archive, DataFrame):
        return sorted({unquote(uri.rpartition("/")[0]) for uri in archive.inputFiles()})
    return [fspath(archive)]


def _real(spark: SparkSession, path: str) -> PurePath:
    local = _local(spark, path)
    return PurePath(path) if local is None else local.resolve()


def _local(spark: SparkSession, path: str) -> Path | None:
    """The path in this machine's file system; None if it is in another one."""
    system = file_system(spark, path)
    if system.getScheme() != "file":
        return None
    return Path(system.makeQualified(hadoop_path(spark, path)).toUri().getPath())


def absolute(spark: SparkSession, path: str) -> str:
    """A path for a reader in another folder: absolute if it is on this machine."""
    local = _local(spark, path)
    return path if local is None else str(local)


def is_member() -> Column:
    """Whether a row belongs with others: it is in a group, or a segment (its group id is then never null)."""
    return F.col("group_id").isNotNull() & (F.col("flags").bitwiseAND(ANY_GROUP | ANY_SEGMENT) != 0)


def columns(names: Iterable[str]) -> list[Column]:
    """The columns with these names."""
    return [F.col(name) for name in names]


def file_system(spark: SparkSession, path: str) -> Any:
    """Hadoop's file system for a path, with the settings of the session."""
    return hadoop_path(spark, path).getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())


def hadoop_path(spark: SparkSession, path: str) -> Any:
    """A path as an object of Hadoop."""
    jvm = spark._jvm
    assert jvm is not None, "the session has no gateway to its JVM"
    return jvm.org.apache.hadoop.fs.Path(path)


def write_text(spark: SparkSession, path: str, text: str) -> None:
    """Writes one small file wherever Spark can write: local folders, HDFS, object stores. Raises FileError, as
    `_check_file`.
    """
    _check_file(spark, path)
    stream = file_system(spark, path).create(hadoop_path(spark, path), True)
    try:
        stream.write(bytearray(text.encode()))
    finally:
        stream.close()


def check_csv(spark: SparkSession, name: str, path: str) -> None:
    """Checks the file that `write_csv` is about to write. There may be a folder of CSV files, as audits of 0.1.0 wrote.

    Raises ArgumentError if that folder contains a store; FileError, as `_check_file`.
    """
    for one in (path, path + PARTS):
        if exists(spark, one) and file_system(spark, one).getFileStatus(hadoop_path(spark, one)).isDirectory():
            check_replaceable(spark, name, one)
        else:
            _check_file(spark, one)


def write_csv(rows: DataFrame, path: str) -> None:
    """Writes rows as one CSV file with a header, wherever Spark can write, replacing an existing one."""
    spark = rows.sparkSession
    system = file_system(spark, path)
    target, folder = hadoop_path(spark, path), hadoop_path(spark, path + PARTS)
    rows.coalesce(1).write.mode("overwrite").csv(path + PARTS, header=True)
    part = next(one.getPath() for one in system.listStatus(folder) if one.getPath().getName().startswith("part-"))
    system.delete(target, True)
    system.rename(part, target)
    system.delete(folder, True)


def _check_file(spark: SparkSession, path: str) -> None:
    """Raises FileError if a file about to be written is a file of a store, or exists and is a pipe, a device or a
    folder.
    """
    local = _local(spark, path)
    if local is not None and (is_of_any_store(local) or (local.exists() and not local.is_file())):
        raise FileError(f"{path!r} is a file of a store, or not a regular file: it must not be written", path=path)


def exists(spark: SparkSession, path: str) -> bool:
    """Whether a file or folder exists, wherever Spark can read."""
    return bool(file_system(spark, path).exists(hadoop_path(spark, path)))


class RemoteCheckpoint:
    """A checkpoint wherever Spark can read (`finishing.Checkpoint`)."""

    def __init__(self, spark: SparkSession, place: str) -> None:
        self._spark, self._place = spark, place

    def __str__(self) -> str:
        return self._place

    def names(self, folder: str) -> list[str] | None:
        place = f"{self._place}/{folder}"
        if not exists(self._spark, place):
            return None
        found = file_system(self._spark, place).listStatus(hadoop_path(self._spark, place))
        return [one.getPath().getName() for one in found]

    def text(self, path: str) -> str | None:
        return read_text(self._spark, f"{self._place}/{path}")


def read_text(spark: SparkSession, path: str) -> str | None:
    """Reads one small file; None if it does not exist."""
    if not exists(spark, path):
        return None
    stream = file_system(spark, path).open(hadoop_path(spark, path))  # spark.read skips names that begin with "_"
    try:
        return bytes(stream.readAllBytes()).decode()
    finally:
        stream.close()
