"""What the pictures of an audit show, counted in Spark: at most some thousand numbers, however large the archive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documents do

from .lanes import Lanes, make_lanes
from .summary import Totals

SLICES = 64  # of the deliveries, and of the promised order: equal numbers of messages
TIMES_MAX = 240
# Widths of a bar of the timeline, in seconds.
WIDTHS = (0.001, 0.01, 0.1, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 21_600, 86_400, 7 * 86_400, 30 * 86_400)


@dataclass(frozen=True, slots=True, kw_only=True)
class Age:
    """Of one slice of the deliveries, in seconds: least, mean, most. `put_at` itself where deliveries have no time."""

    slice: int
    least: float
    mean: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureData:
    """Counts by slice; a slice is one in `slices` of all deliveries in their order, queue after queue.

    Args:
        slices: of the deliveries.
        places: slices of the promised order.
        density: messages by (slice of the deliveries, slice of the promised order).
        overtakes, gaps, repeats: by slice: messages overtaken, deliveries missing, deliveries and messages repeated.
        sizes: groups by (bits of their size, whole): 1 message, 2 to 3, 4 to 7 ...
        has_ages: whether `ages` are ages, or times of puts.
        timeline: messages put, by start of the bar in seconds since 1970; bars are `timeline_width` seconds wide.
    """

    slices: int
    places: int
    density: dict[tuple[int, int], int]
    overtakes: dict[str, dict[int, int]]
    gaps: dict[int, int]
    repeats: dict[int, int]
    sizes: dict[tuple[int, bool], int]
    has_ages: bool
    ages: list[Age]
    timeline: dict[float, int]
    timeline_width: float


def picture_data(
    rows: DataFrame, positioned: DataFrame, findings: DataFrame, judged: DataFrame, *, totals: Totals
) -> PictureData:
    """Counts everything that the pictures show.

    Args:
        rows: of the archive, without bodies; `delivered_at` is optional.
        positioned: with `key_rank`, `key_number`, `key_ordinal`, where they stand in the promised order.
        findings: as written.
        judged: one row a group, with `size` and `complete`.
    """
    deliveries = _slices(rows, ("queue", "delivery_number"), totals)
    places = _slices(positioned, ("queue", "key_rank", "key_number", "key_ordinal"), totals)
    width = _width(totals)
    slice_of = deliveries.lane()
    noticed = _Noticed.of(findings, slice_of)
    size = F.floor(F.log2("size")).cast("int")
    return PictureData(
        slices=deliveries.total,
        places=places.total,
        density={(row[0], row[1]): row[2] for row in _count(positioned, slice_of, places.lane())},
        overtakes={kind: noticed.counts.get(kind, {}) for kind in ("overtake", "overtake_in_group")},
        gaps=noticed.missing,
        repeats=_added(noticed.counts.get("delivery_repeated", {}), noticed.counts.get("message_repeated", {})),
        sizes={(row[0], row[1]): row[2] for row in _count(judged, size, F.col("complete"))},
        has_ages="delivered_at" in rows.columns,
        ages=_ages(rows, slice_of),
        timeline=_timeline(rows, width),
        timeline_width=width,
    )


def _slices(rows: DataFrame, keys: Sequence[str], totals: Totals) -> Lanes:
    return make_lanes(rows, keys, row_count=totals.messages, rows_per_lane=max(1, -(-totals.messages // SLICES)))


def _count(rows: DataFrame, *by: Column) -> list[tuple[Any, ...]]:
    named = [column.alias(f"by_{n}") for n, column in enumerate(by)]
    return [tuple(row) for row in rows.groupBy(*named).count().collect()]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noticed:
    """Findings by kind and slice, and how many delivery numbers are missing by slice."""

    counts: dict[str, dict[int, int]]
    missing: dict[int, int]

    @classmethod
    def of(cls, findings: DataFrame, slice_of: Column) -> _Noticed:
        is_gap = F.col("kind") == "delivery_gap"
        lost = F.when(is_gap, F.col("found")).cast("long") - F.when(is_gap, F.col("expected")).cast("long")
        found = findings.groupBy("kind", slice_of.alias("slice")).agg(
            F.count(F.lit(1)).alias("count"), F.sum(lost).alias("lost")
        )
        noticed = cls(counts={}, missing={})
        for kind, at, count, missing in found.collect():
            noticed.counts.setdefault(kind, {})[at] = count
            if kind == "delivery_gap":
                noticed.missing[at] = missing
        return noticed


def _added(one: dict[int, int], other: dict[int, int]) -> dict[int, int]:
    return {at: one.get(at, 0) + other.get(at, 0) for at in {**one, **other}}


def _ages(rows: DataFrame, slice_of: Column) -> list[Age]:
    put_at = F.unix_micros("put_at") / 1e6
    age = F.unix_micros("delivered_at") / 1e6 - put_at if "delivered_at" in rows.columns else put_at
    found = rows.where(age.isNotNull()).groupBy(slice_of.alias("slice")).agg(F.min(age), F.avg(age), F.max(age))
    return sorted(
        (Age(slice=row[0], least=row[1], mean=row[2], most=row[3]) for row in found.collect()),
        key=lambda age: age.slice,
    )


def _width(totals: Totals) -> float:
    span = 0.0
    if totals.first_put_at is not None and totals.last_put_at is not None:
        span = totals.last_put_at - totals.first_put_at
    return next((width for width in WIDTHS if span / width <= TIMES_MAX), span / TIMES_MAX)


def _timeline(rows: DataFrame, width: float) -> dict[float, int]:
    micros = round(width * 1e6)
    bar = F.floor(F.unix_micros("put_at") / micros)
    return {row[0] * width: row[1] for row in _count(rows.where(F.col("put_at").isNotNull()), bar)}
