"""Total order at any size: rows are dealt to lanes by ranges of their key, and each lane is small enough to sort.

A window over all rows would bring them all to one task. Instead a bounded sample of the keys gives *borders*, which
cut the keys into *lanes* of about the same number of rows; lane 0 holds the smallest keys. Inside a lane a window
sees the neighbour of each row but the first. What stands on both sides of a border is at most two rows a lane, so a
second, small window over these finds the neighbours of the first rows (`breaks`).

The lane of a key is a balanced tree of comparisons in SQL, made from the borders: it costs each row a few comparisons.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documents do

from .archive import columns

Key = tuple[Any, ...]

LANES_MAX = 1024
LANE_BYTES = 192 * 2**20  # of whole messages: what one task sorts
LANE_ROWS = 500_000  # of rows without bodies
ROW_BYTES = 500  # the columns besides the body, as Spark holds them
SAMPLES_PER_LANE = 100
SAMPLE_SEED = 20
HASH_TRIES = 40  # keys tried for each partition: one is missed with a probability of e^-40


class Lanes(NamedTuple):
    """How keys are dealt.

    Args:
        keys: the columns that make the key, the most significant one first; texts or whole numbers, never null.
        borders: the smallest key of each lane but the first, ascending.
    """

    keys: tuple[str, ...]
    borders: tuple[Key, ...]

    @property
    def total(self) -> int:
        return len(self.borders) + 1

    def lane(self) -> Column:
        """The number of a row's lane, from 0."""
        return F.expr(_tree(self.keys, self.borders, 0, len(self.borders)))

    def lane_of(self, key: Key) -> int:
        """The same for one key here."""
        return bisect_right(self.borders, key)


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
    # A text as its bytes: no quoting rule of any session's settings applies.
    return f"CAST(X'{value.encode().hex()}' AS STRING)" if isinstance(value, str) else f"{value}L"


def make_lanes(rows: DataFrame, keys: Sequence[str], *, row_count: int, rows_per_lane: int) -> Lanes:
    """Borders from a sample of the keys, of at most some ten thousand rows however many there are.

    Args:
        rows: has the key columns, and `weight` where a row stands for several.
        row_count: about how many rows there are.
        rows_per_lane: how many rows a lane should hold; it is more above `LANES_MAX` lanes.
    """
    wanted = min(max(1, -(-row_count // rows_per_lane)), LANES_MAX)
    if wanted == 1:
        return Lanes(tuple(keys), ())
    fraction = min(1.0, wanted * SAMPLES_PER_LANE / row_count)
    weight = F.col("weight") if "weight" in rows.columns else F.lit(1)
    sample = sorted(
        (tuple(row[:-1]), row[-1])
        for row in rows.select(*columns(keys), weight).sample(fraction=fraction, seed=SAMPLE_SEED).collect()
    )
    total, passed, borders = sum(weight for _, weight in sample), 0, list[Key]()
    for key, weight in sample:
        if passed * wanted >= total * (len(borders) + 1) and key not in borders[-1:]:
            borders.append(key)
        passed += weight
    return Lanes(tuple(keys), tuple(borders))


def partitions(spark: SparkSession, row_count: int, rows_per_partition: int) -> int:
    """Into how many partitions so many rows go: each small enough to sort, none of the cores without work.

    Said for every shuffle of rows: the session's setting is the same for a thousand rows and for a billion.
    """
    return max(spark.sparkContext.defaultParallelism, -(-row_count // rows_per_partition))


def repartition_by_lane(spark: SparkSession, rows: DataFrame, lanes: Lanes) -> DataFrame:
    """The rows with a column `lane`, and lane n in partition n.

    Spark's own range partitioning would compute the rows a second time to sample them. So the partition is chosen
    through Spark's hash: for each lane there is a number that hashes to it.
    """
    count = lanes.total
    tried = spark.range(count * HASH_TRIES).select("id", F.pmod(F.hash("id"), F.lit(count)).alias("partition"))
    found = {row["partition"]: row["id"] for row in tried.groupBy("partition").agg(F.min("id").alias("id")).collect()}
    keys = F.lit([found[lane] for lane in range(count)]).cast("array<bigint>")  # hashed as what was tried
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
) -> tuple[DataFrame, DataFrame]:
    """Rows that do not follow from the row before them.

    Args:
        rows: any rows with the columns named here and those of the lanes' key.
        dealt: lanes by the columns `along`, with or without some of `apart` before them.
        apart: rows that differ in these columns are no neighbours.
        along: the order.
        carry: what is known of the row before: the struct column `before`.
        wrong: judges a row against the one before it.
        parts: into how many partitions the rows go.
        until: the rows found are kept on disk until it closes, for they are asked for more than once.

    Returns:
        The rows for which `wrong` is true, with the column `before`; and the first row of each line of neighbours,
        `before` being null.
    """
    line = Window.partitionBy(*apart, "lane").orderBy(*along)
    carried = F.struct(*columns(carry))
    seen = (
        rows.withColumn("lane", dealt.lane())
        .repartition(parts, *apart, "lane")
        .withColumn("before", F.lag(carried).over(line))
        .withColumn("_ends", F.lead("lane").over(line).isNull())
        .withColumn("_begins", F.col("before").isNull())
        .withColumn("_wrong", F.coalesce(wrong, F.lit(False)))
        .where("_wrong OR _begins OR _ends")
        .drop("lane")
        .persist(StorageLevel.DISK_ONLY)
    )
    until.callback(seen.unpersist)
    # The lag over the ends of all lanes: for the first row of a lane it is the last row of the lane before it.
    ends = seen.where("_begins OR _ends").withColumn(
        "before", F.lag(carried).over(Window.partitionBy(*apart).orderBy(*along))
    )
    firsts = ends.where("_begins").select(*rows.columns, "before")
    inside = seen.where("_wrong").select(*rows.columns, "before")
    return inside.unionByName(firsts.where(wrong)), firsts.where(F.col("before").isNull())
