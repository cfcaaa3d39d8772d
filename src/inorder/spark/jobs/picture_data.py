"""Counts the data for an audit's pictures in Spark: at most some thousand numbers, however large the archive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documents do

from .lanes import Lanes
from .summary import Count, Totals

SLICES = 64  # of the deliveries, and of the promised order: equal numbers of messages
TIMES_MAX = 240
# Widths of a bar of the timeline, in seconds.
WIDTHS = (0.001, 0.01, 0.1, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 21_600, 86_400, 7 * 86_400, 30 * 86_400)


@dataclass(frozen=True, slots=True, kw_only=True)
class Age:
    """The ages in one slice of the deliveries, in seconds: least, mean, most. `put_at` itself if deliveries have no
    time.
    """

    slice: int
    least: float
    mean: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureData:
    """Counts by slice; all deliveries, in order, queue after queue, are divided into `slices` slices.

    Args:
        slices: the number of slices of the deliveries.
        places: the number of slices of the promised order.
        density: messages by (slice of the deliveries, slice of the promised order).
        overtakes, gaps, repeats: by slice: messages overtaken, deliveries missing, deliveries and messages repeated.
        sizes: groups by (bits of their size, whole): 1 message, 2 to 3, 4 to 7 ...
        has_ages: whether `ages` are ages, and not times of puts.
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
    positioned: DataFrame, counts: Sequence[Count], deliveries: Lanes, places: Lanes, *, totals: Totals
) -> PictureData:
    """Counts the data of all pictures.

    Args:
        positioned: rows without bodies, each message once, with `key_rank`, `key_number`, `key_ordinal`, their place in
            the promised order (null: none); `delivered_at` is optional.
        counts: the counts of the notes, by slice of the deliveries.
        deliveries, places: the slices, as lanes.
    """
    width = _width(totals)
    cells, timeline = _cells(positioned, deliveries, places, width)
    return PictureData(
        slices=deliveries.total,
        places=places.total,
        density={(cell.slice, cell.place): cell.messages for cell in cells if cell.place is not None},
        overtakes={kind: _by_slice(counts, kind) for kind in ("overtake", "overtake_in_group")},
        gaps=_by_slice(counts, "delivery_gap", missing=True),
        repeats=_by_slice(counts, "delivery_repeated", "message_repeated"),
        sizes=_sizes(counts),
        has_ages="delivered_at" in positioned.columns,
        ages=_ages(cells),
        timeline=timeline,
        timeline_width=width,
    )


@dataclass(frozen=True, slots=True)
class _Cell:
    """Messages in one slice of the deliveries and one of the promised order, and the ages of those that have one."""

    slice: int
    place: int | None
    messages: int
    ages: int
    least: float
    total: float
    most: float


def _cells(
    positioned: DataFrame, deliveries: Lanes, places: Lanes, width: float
) -> tuple[list[_Cell], dict[float, int]]:
    """The cells and the timeline, from one pass over the rows."""
    put_at = F.unix_micros("put_at")
    age = (F.unix_micros("delivered_at") - put_at if "delivered_at" in positioned.columns else put_at) / 1e6
    rows = positioned.select(
        deliveries.lane().alias("slice"),
        F.when(F.col(places.keys[-1]).isNotNull(), places.lane()).alias("place"),
        F.floor(put_at / round(width * 1e6)).alias("bar"),
        age.alias("age"),
    )
    counted = rows.groupingSets([["slice", "place"], ["bar"]], "slice", "place", "bar").agg(
        F.count(F.lit(1)), F.count("age"), F.min("age"), F.sum("age"), F.max("age")
    )
    cells, timeline = list[_Cell](), dict[float, int]()
    for at, place, bar, count, *ages in counted.collect():
        if at is not None:
            cells.append(_Cell(at, place, count, *ages))
        elif bar is not None:
            timeline[bar * width] = count
    return cells, timeline


def _by_slice(counts: Sequence[Count], *kinds: str, missing: bool = False) -> dict[int, int]:
    summed = Counter[int]()
    for count in counts:
        if count.kind in kinds:
            summed[count.slice] += (count.missing or 0) if missing else count.count
    return dict(summed)


def _sizes(counts: Sequence[Count]) -> dict[tuple[int, bool], int]:
    summed = Counter[tuple[int, bool]]()
    for count in counts:
        if count.bits is not None and count.complete is not None:
            summed[count.bits, count.complete] += count.count
    return dict(summed)


def _ages(cells: Sequence[_Cell]) -> list[Age]:
    by_slice = dict[int, list[_Cell]]()
    for cell in cells:
        if cell.ages:
            by_slice.setdefault(cell.slice, []).append(cell)
    return [
        Age(
            slice=at,
            least=min(cell.least for cell in of),
            mean=sum(cell.total for cell in of) / sum(cell.ages for cell in of),
            most=max(cell.most for cell in of),
        )
        for at, of in sorted(by_slice.items())
    ]


def _width(totals: Totals) -> float:
    span = 0.0
    if totals.first_put_at is not None and totals.last_put_at is not None:
        span = totals.last_put_at - totals.first_put_at
    return next((width for width in WIDTHS if span / width <= TIMES_MAX), span / TIMES_MAX)
