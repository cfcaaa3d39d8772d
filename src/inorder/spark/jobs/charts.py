"""Draws the pictures of an audit from counts, as self-contained SVG; needs the extra `inorder[report]`."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import matplotlib as mpl
from matplotlib import dates
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from ...model.fields import PUT_AT_MAX
from .picture_data import PictureData
from .report import Drawn, Picture

# Colours with which matplotlib draws. In the SVG each is replaced by the page's variable of that name, so that the page
# chooses colours for light and dark.
INK, SOFT, GRID, AXIS = "#1f2933", "#616e7c", "#e4e7eb", "#9aa5b1"
BLUE, RED, AMBER = "#2b6cb0", "#c53030", "#dd8a1c"
VARIABLES = {INK: "ink", SOFT: "soft", GRID: "line", AXIS: "axis", BLUE: "blue", RED: "red", AMBER: "amber"}
COLOR = re.compile("|".join(VARIABLES))
BLUES = LinearSegmentedColormap.from_list("blues", ["#d6e4f2", "#5b93c7", "#12365f"])
STYLE: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": AXIS,
    "axes.labelcolor": SOFT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "svg.fonttype": "path",  # the same everywhere, whatever fonts the reader has
    "svg.hashsalt": "inorder",
}
SIZE = (5.6, 3.3)  # inches
DWARFED = 20
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
DAY = 86_400
SHARE = "share of all deliveries, in their order"


def draw(data: PictureData) -> Drawn:
    """All pictures, in the order of the page, and the titles of those for which there is nothing to show."""
    wanted: list[tuple[str, bool, Callable[[Any, PictureData], str]]] = [
        ("Delivery against position", bool(data.density), _density),
        ("Overtakes", any(data.overtakes.values()), _overtakes),
        ("Gaps and repeats", bool(data.gaps or data.repeats), _gaps),
        ("Groups", bool(data.sizes), _groups),
        ("Age at delivery" if data.has_ages else "When the delivered messages were put", bool(data.ages), _ages),
        ("Throughput", bool(data.timeline), _timeline),
    ]
    with mpl.rc_context(STYLE):
        pictures = [_picture(title, paint, data) for title, has_data, paint in wanted if has_data]
    return Drawn(pictures, [title for title, has_data, _ in wanted if not has_data])


def _picture(title: str, paint: Callable[[Any, PictureData], str], data: PictureData) -> Picture:
    figure = Figure(figsize=SIZE, layout="constrained")
    caption = paint(figure.subplots(), data)
    written = io.StringIO()
    figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    svg = COLOR.sub(lambda found: f"var(--{VARIABLES[found[0]]})", written.getvalue())
    return Picture(title=title, caption=caption, svg=svg[svg.index("<svg") :])


def _density(axes: Any, data: PictureData) -> str:
    cells = [[math.nan] * data.slices for _ in range(data.places)]
    for (x, y), count in data.density.items():
        cells[y][x] = count
    most = max(data.density.values())
    image = axes.imshow(
        cells, origin="lower", aspect="auto", extent=(0, 1, 0, 1), cmap=BLUES, norm=LogNorm(1, max(2, most))
    )
    image.set_zorder(2)
    bar = axes.figure.colorbar(image, ax=axes, pad=0.02, format=_numbers())
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
    bar.ax.minorticks_off()
    bar.set_ticks(sorted({1, max(2, most), *(10**power for power in range(1, len(str(most))) if 3 * 10**power < most)}))
    bar.set_label("messages")
    _share(axes.xaxis)
    _share(axes.yaxis)
    axes.set_xlabel(SHARE)
    axes.set_ylabel("position in the promised order")
    return "Each cell counts messages. On a thin diagonal they came as promised; off it they came early or late."


def _overtakes(axes: Any, data: PictureData) -> str:
    series = [
        ("between messages", RED, data.overtakes.get("overtake", {})),
        ("within a group", AMBER, data.overtakes.get("overtake_in_group", {})),
    ]
    _bars(axes, data.slices, series, "messages overtaken")
    return "Messages that were delivered after one that should have followed them."


def _gaps(axes: Any, data: PictureData) -> str:
    series = [("missing", RED, data.gaps), ("repeated", AMBER, data.repeats)]
    _bars(axes, data.slices, series, "deliveries")
    return "Delivery numbers that the archive lacks, and deliveries that it has twice, where they were noticed."


def _bars(axes: Any, slices: int, series: list[tuple[str, str, dict[int, int]]], label: str) -> None:
    """Draws two counts by slice, side by side, on a logarithmic scale if the largest dwarfs the others."""
    width = 1 / slices / len(series)
    for n, (name, color, counts) in enumerate(series):
        lefts = [slice_ / slices + n * width for slice_ in counts]
        axes.bar(lefts, list(counts.values()), width, align="edge", color=color, label=name, zorder=2)
    axes.set_xlim(0, 1)
    axes.set_xlabel(SHARE)
    axes.set_ylabel(label)
    _share(axes.xaxis)
    heights = [count for _, _, counts in series for count in counts.values()]
    if max(heights) > DWARFED * min(heights):
        axes.set_yscale("symlog", linthresh=1, base=10)
        axes.set_ylim(0, max(heights) * 40)
        axes.yaxis.set_major_formatter(_numbers())
    else:
        axes.set_ylim(0, max(heights) * 1.2)
        _counts(axes.yaxis)
    axes.legend(frameon=False, loc="upper right", ncols=2)


def _groups(axes: Any, data: PictureData) -> str:
    sizes = sorted({size for size, _ in data.sizes})
    floor = [0] * len(sizes)
    for name, color, whole in (("whole", BLUE, True), ("not whole", RED, False)):
        heights = [data.sizes.get((size, whole), 0) for size in sizes]
        axes.bar(range(len(sizes)), heights, 0.72, bottom=floor, color=color, label=name, zorder=2)
        floor = [low + high for low, high in zip(floor, heights, strict=True)]
    axes.set_xticks(range(len(sizes)), [_size(size) for size in sizes])
    axes.set_xlim(-0.75, max(2, len(sizes)) - 0.25)
    axes.set_ylim(0, max(floor) * 1.15)
    axes.grid(visible=False, axis="x")
    axes.set_xlabel("messages in the group, from this number to below the next")
    axes.set_ylabel("groups")
    _counts(axes.yaxis)
    axes.legend(frameon=False, loc="upper right", ncols=2)
    broken = sum(count for (_, whole), count in data.sizes.items() if not whole)
    return f"Groups and segmented messages by size; {broken:,} of {sum(data.sizes.values()):,} are not whole."


def _size(bits: int) -> str:
    low = 2**bits
    return f"{low}" if low < 1024 else f"{low // 1024} Ki"


def _ages(axes: Any, data: PictureData) -> str:
    at = [(age.slice + 0.5) / data.slices for age in data.ages]
    turn: Callable[[float], float] = (lambda seconds: seconds) if data.has_ages else _day
    axes.fill_between(
        at,
        [turn(age.least) for age in data.ages],
        [turn(age.most) for age in data.ages],
        color=BLUE,
        alpha=0.25,
        linewidth=0,
        label="least to most",
    )
    axes.plot(at, [turn(age.mean) for age in data.ages], color=BLUE, linewidth=1.6, label="mean")
    axes.set_xlim(0, 1)
    axes.set_xlabel(SHARE)
    _share(axes.xaxis)
    axes.legend(frameon=False, loc="upper left", ncols=2)
    if data.has_ages:
        axes.set_ylabel("seconds from put to delivery")
        axes.set_ylim(bottom=0, top=max(age.most for age in data.ages) * 1.2 or 1)
        return "How long messages had waited when they were delivered."
    axes.margins(y=0.2)
    axes.set_ylim(*_bounded(*axes.get_ylim()))
    _times(axes.yaxis)
    axes.set_ylabel("put at (UTC)")
    return "The archive has no times of delivery. A steady slope: old messages first; a wide band: old and new mixed."


def _timeline(axes: Any, data: PictureData) -> str:
    width = data.timeline_width
    starts = [_day(start) for start in data.timeline]
    rates = [count / width for count in data.timeline.values()]
    # Edges of the same colour: without them hairlines show between bars.
    axes.bar(starts, rates, width / DAY, align="edge", color=BLUE, edgecolor=BLUE, linewidth=0.5, zorder=2)
    axes.set_xlim(*_bounded(*axes.get_xlim()))
    _times(axes.xaxis)
    axes.set_ylim(0, max(rates) * 1.1)
    axes.grid(visible=False, axis="x")
    _counts(axes.yaxis, whole=False)
    axes.set_ylabel("messages put per second")
    axes.set_xlabel("put at (UTC)")
    return f"Messages by the time of their put, a bar for {_duration(width)}."


def _duration(seconds: float) -> str:
    for size, name in ((DAY, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= size:
            count = seconds / size
            return f"each {name}" if count == 1 else f"every {count:,.3g} {name}s"
    return f"every {seconds * 1000:,.3g} ms"


def _day(seconds: float) -> float:
    """A time since 1970 as matplotlib counts: in days."""
    return float(dates.date2num(EPOCH)) + seconds / DAY


def _bounded(low: float, high: float) -> tuple[float, float]:
    """Limits of an axis of times, from 1970 to 9999: matplotlib cannot label others."""
    return max(low, _day(0)), min(high, _day(PUT_AT_MAX))


def _times(axis: Any) -> None:
    axis.axis_date()
    axis.set_major_formatter(dates.ConciseDateFormatter(axis.get_major_locator()))


def _share(axis: Any) -> None:
    axis.set_major_formatter(PercentFormatter(1.0))


def _counts(axis: Any, *, whole: bool = True) -> None:
    axis.set_major_locator(MaxNLocator(nbins=5, integer=whole))
    axis.set_major_formatter(_numbers())


def _numbers() -> FuncFormatter:
    return FuncFormatter(lambda value, _: f"{value:,.6g}" if value < 1e6 else f"{value / 1e6:,.4g} M")
