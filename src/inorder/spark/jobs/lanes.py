"""Sorts any number of rows: ranges of their key divide them into lanes, each small enough to sort.

A window over all rows would bring them all to one task. Instead a bounded sample of the keys gives *borders*, which
cut the keys into *lanes* of about the same number of rows; lane 0 holds the smallest keys. Inside a lane a window finds
the neighbour of each row but the first. Only two rows a lane are next to a border, so a second, small window over these
finds the neighbours of the first rows (`breaks`).

A balanced tree of comparisons in SQL, made from the borders, computes the lane of a key with a few comparisons a row.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documents do

from .archive import columns

Key = tuple[Any, ...]

LANES_MAX = 1024
LANE_BYTES = 192 * 2**20  # of whole messages that one task sorts
LANE_ROWS = 500_000  # of rows without bodies
ROW_BYTES = 500  # the columns besides the body, as Spark holds them
SAMPLES_PER_LANE = 100
SAMPLE_SEED = 20
HASH_TRIES = 40  # keys tried for each partition: none fits with a probability of e^-40


class Lanes(NamedTuple):
    """The division of keys into lanes.

    Args:
        keys: the columns of the key, the most significant one first; texts or whole numbers, never null.
        borders: the smallest key of each lane but the first, ascending.
    """

    keys: tuple[str, ...]
    borders: tuple[Key, ...]

    @property
    def total(self) -> int:
        return len(self.borders) + 1

    def lane(self) -> Column:
        """The lane number of a row, from 0."""
        return F.expr(_tree(self.keys, self.borders, 0, len(self.borders)))


def _tree(keys: Sequence[str], borders: Sequence[Key], low: int, high: int) -> str:
    if low == high:
        return str(low)
    middle = (low + high) // 2
    below, above = _tree(keys, borders, low, middle), _tree(keys, borders, middle + 1, high)
    return f"CASE WHEN {_is_before(keys, borders[middle])} THEN {below} ELSE {above} END"


def _is_before(keys: Sequence[str], border: Key) -> str:
    first, literal = f"`{keys[0]}`", _literal(border[0])
    if len(keys) == 1:
        return f"{first} < {literal}"
    return f"({first} < {literal} OR ({first} = {literal} AND {_is_before(keys[1:], border[1:])}))"


def _literal(value: str | int) -> str:
    # A text as its bytes, so that no session setting about quoting applies.
    return f"CAST(X'{value.encode().hex()}' AS STRING)" if isinstance(value, str) else f"{value}L"


class KeySample:
    """Some of the keys of many rows, drawn once, when lanes are first cut from it.

    Args:
        rows: the rows, with the key columns, and `weight` if a row stands for several.
        keys: all columns that any of the lanes needs.
        row_count: the approximate number of rows.
        lanes_max: the most lanes that will be cut.
    """

    def __init__(self, rows: DataFrame, keys: Sequence[str], *, row_count: int, lanes_max: int) -> None:
        fraction = min(1.0, lanes_max * SAMPLES_PER_LANE / max(1, row_count))
        weight = F.col("weight") if "weight" in rows.columns else F.lit(1)
        self._chosen = rows.select(*columns(keys), weight.alias("weight")).sample(fraction=fraction, seed=SAMPLE_SEED)

    @functools.cached_property
    def _rows(self) -> list[Row]:
        return self._chosen.collect()

    def cut(self, keys: Sequence[str], wanted: int) -> Lanes:
        """Cuts this many lanes of similar weight, for rows in which none of these keys is null."""
        if wanted == 1:
            return Lanes(tuple(keys), ())
        found = ((tuple(row[key] for key in keys), row["weight"]) for row in self._rows)
        sample = sorted((key, weight) for key, weight in found if None not in key)
        total, passed, borders = sum(weight for _, weight in sample), 0, list[Key]()
        for key, weight in sample:
            if passed * wanted >= total * (len(borders) + 1) and key not in borders[-1:]:
                borders.append(key)
            passed += weight
        return Lanes(tuple(keys), tuple(borders))


def wanted_lanes(row_count: int, rows_per_lane: int) -> int:
    """The number of lanes for this many rows: no more than `LANES_MAX`, above which lanes grow instead."""
    return min(max(1, -(-row_count // rows_per_lane)), LANES_MAX)


def make_lanes(rows: DataFrame, keys: Sequence[str], *, row_count: int, rows_per_lane: int) -> Lanes:
    """Makes lanes from a sample of the keys, of at most some hundred thousand rows for any number of rows.

    Args: as for `KeySample`; rows_per_lane: how many rows a lane should have.
    """
    wanted = wanted_lanes(row_count, rows_per_lane)
    return KeySample(rows, keys, row_count=row_count, lanes_max=wanted).cut(keys, wanted)


def partitions(spark: SparkSession, row_count: int, rows_per_partition: int) -> int:
    """How many partitions this many rows need: each small enough to sort, and no core idle.

    Set for every shuffle of rows, because the session's setting is the same for a thousand rows and for a billion.
    """
    return max(spark.sparkContext.defaultParallelism, -(-row_count // rows_per_partition))


def brought_together(rows: DataFrame, parts: int, *keys: str) -> DataFrame:
    """Repartitions the rows, with those of the same keys in one partition. A single partition needs no shuffle."""
    return rows.coalesce(1) if parts == 1 else rows.repartition(parts, *keys)


def repartition_by_lane(spark: SparkSession, rows: DataFrame, lanes: Lanes) -> DataFrame:
    """Adds a column `lane` to the rows, and puts lane n into partition n.

    Spark's own range partitioning would compute the rows a second time to sample them. So the partition is chosen
    through Spark's hash: for each lane there is a number that hashes to it.
    """
    count = lanes.total
    tried = spark.range(count * HASH_TRIES).select("id", F.pmod(F.hash("id"), F.lit(count)).alias("partition"))
    found = {row["partition"]: row["id"] for row in tried.groupBy("partition").agg(F.min("id").alias("id")).collect()}
    keys = F.lit([found[lane] for lane in range(count)]).cast("array<bigint>")  # hashed with the type that was tried
    dealt = rows.withColumn("lane", lanes.lane()).withColumn("_partition_key", keys[F.col("lane")])
    return dealt.repartition(count, "_partition_key").drop("_partition_key")


def breaks(
    rows: DataFrame,
    dealt: Lanes,
    *,
    apart: Sequence[str],
    along: Sequence[str],
    carry: Sequence[str],
    wrong: Column,
    parts: int,
    until: ExitStack,
) -> DataFrame:
    """Finds rows that do not follow from the row before them, and rows without one before them.

    Args:
        rows: any rows with the columns named here and the columns of the lanes' key.
        dealt: lanes by the columns `along`, with or without some of `apart` before them.
        apart: rows that differ in these columns are not neighbours.
        along: the order.
        carry: the columns of the row before, which become the struct column `before`.
        wrong: compares a row with the one before it.
        parts: the number of partitions for the rows.
        until: with several lanes, the rows found are kept on disk until it closes.

    Returns:
        The rows for which `wrong` is true, and the first row of each line of neighbours; the column `before` is null
        for the latter.
    """
    carried = F.struct(*columns(carry))
    told = F.coalesce(wrong, F.lit(False)) | F.col("before").isNull()
    whole_line = Window.partitionBy(*apart).orderBy(*along)
    if dealt.total == 1:
        return brought_together(rows, parts, *apart).withColumn("before", F.lag(carried).over(whole_line)).where(told)
    line = Window.partitionBy(*apart, "lane").orderBy(*along)
    seen = (
        rows.withColumn("lane", dealt.lane())
        .repartition(parts, *apart, "lane")
        .withColumn("before", F.lag(carried).over(line))
        .withColumn("_ends", F.lead("lane").over(line).isNull())
        .withColumn("_begins", F.col("before").isNull())
        .where(told | F.col("_ends"))
        .drop("lane")
        .persist(StorageLevel.DISK_ONLY)
    )
    until.callback(seen.unpersist)
    # The lag over the ends of all lanes: for the first row of a lane it is the last row of the lane before it.
    ends = brought_together(seen.where("_begins OR _ends"), parts, *apart)
    ends = ends.withColumn("before", F.lag(carried).over(whole_line))
    firsts = ends.where("_begins").where(told).select(*rows.columns, "before")
    inside = seen.where(~F.col("_begins")).where(wrong).select(*rows.columns, "before")
    return inside.unionByName(firsts)
