"""Pictures of a queue over time, in the last minutes, hour, day or week: its depth, messages put and got a second, and
the age of its oldest message.

The server draws them as SVG with axes, so they need no script. The last minutes are the worker's own samples
(`watching`), the longer periods the history in the store (`rules.history`). Between samples that do not follow one
another, for example while the server was off, a picture has a gap.

    top  |-----------         the values have room between LEFT and RIGHT,
         |      /\\            and between TOP and BOTTOM
    half |-----/--\\-
         |____/____\\_
         10:00   10:15
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from markupsafe import Markup

from ... import QueueManager
from ...rules.history import RINGS, Activity, activities
from ...stores.seam.damage import utc
from .labels import UNITS as SPANS
from .labels import counted, drawn_line, number, span
from .watching import KEPT_SECONDS, Recent

WIDTH: Final = 300.0
HEIGHT: Final = 120.0
LEFT, RIGHT, TOP, BOTTOM = 38.0, WIDTH - 6, 8.0, HEIGHT - 20
# The top of an axis is one of these times a power of ten, so that its half is short, too.
NICE: Final = (1, 2, 4, 6, 8, 10)
UNITS: Final = ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))  # from this value on, by this size
DAY: Final = 86_400.0
PUT_AND_GOT: Final = (attrgetter("put"), attrgetter("got"))


class ShownPeriod(NamedTuple):
    """A period that a picture may show.

    Args:
        label: its link.
        seconds: how long it is; `step`: between two times on its axis.
        slot: the time for which a value stands.
        time: the format of a time in the table.
        first: how soon a new queue has its first value.
    """

    label: str
    seconds: float
    step: float
    slot: str
    time: str
    first: str


SOON: Final = "within two minutes"
PERIODS: Final[Mapping[str, ShownPeriod]] = {
    "minutes": ShownPeriod("5 minutes", KEPT_SECONDS, 60.0, "second", "%H:%M:%S", "in a few seconds"),
    "hour": ShownPeriod("hour", 3_600.0, 900.0, "minute", "%H:%M", SOON),
    "day": ShownPeriod("day", DAY, DAY / 4, "15 minutes", "%H:%M", SOON),
    "week": ShownPeriod("week", 7 * DAY, DAY, "2 hours", "%a %H:%M", SOON),
}


class Pictures(NamedTuple):
    """The pictures of a queue.

    Args:
        over: the period, a key of `PERIODS`.
        depth, rates, ages: the pictures; empty with less than two values.
        table: of each value the time, as a number and in words, the depth, put, got and age; the newest first.
    """

    over: str
    period: ShownPeriod
    depth: Markup
    rates: Markup
    ages: Markup
    table: Sequence[tuple[float, str, str, str, str, str]]


Runs = Sequence[Sequence[Activity]]


def read(qm: QueueManager, queue: str, over: str) -> tuple[str, Runs]:
    """Reads a period of the history of a queue, in runs without gaps; of the last minutes, which are not stored,
    nothing.

    Args:
        over: the period; "": the first that has two values, or the hour if none has.

    Returns: the period, and its runs.
    """
    found: list[tuple[str, Runs]] = []
    for period, ring in RINGS.items():
        if over in ("", period):
            found.append((period, list(_runs(activities(qm.internals.history(queue, period), ring)))))
            if is_enough(found[-1][1]):
                return found[-1]
    return found[0] if found else (over, [])


def is_enough(runs: Runs) -> bool:
    """Whether there are two values, which a picture needs."""
    return sum(map(len, runs)) > 1


def spanned(runs: Runs) -> float:
    """The seconds from the first value to the last."""
    return runs[-1][-1].at - runs[0][0].at if runs else 0.0


def _runs(values: Sequence[Activity]) -> Iterator[list[Activity]]:
    """Splits a history at its gaps: the value after one has no rates."""
    run: list[Activity] = []
    for one in values:
        if one.put is None and run:
            yield run
            run = []
        run.append(one)
    if run:
        yield run


def of_recent(recent: Recent, now: float) -> list[list[Activity]]:
    """The last minutes as a run."""
    if len(recent.depths) < 2:
        return []
    step = recent.seconds / (len(recent.depths) - 1)
    begin = now - recent.seconds
    rates = [(None, None), *zip(recent.puts, recent.gets, strict=True)]
    return [
        [
            Activity(begin + number * step, round(depth), put, got, age)
            for number, (depth, (put, got), age) in enumerate(zip(recent.depths, rates, recent.ages, strict=True))
        ]
    ]


def pictures(queue: str, over: str, runs: Runs, now: float) -> Pictures:
    """Draws the pictures of a queue.

    Args:
        runs: values that follow one another, in order of time.
        now: the end of the axis, seconds since 1970.
    """
    period, values = PERIODS[over], [one for run in runs for one in run]
    table = [
        (one.at, f"{utc(one.at):{period.time}}", number(one.depth), short(one.put), short(one.got), _age(one.age, "-"))
        for one in reversed(values)
    ]
    if not is_enough(runs):
        return Pictures(over, period, Markup(), Markup(), Markup(), table)
    axis = _Axes(period, now)
    depth = axis.picture(
        f"Depth of {queue}, the last {period.label}: {counted(values[-1].depth)} at the end, at most "
        f"{number(max(one.depth for one in values))}.",
        runs, [lambda one: one.depth], least=2.0,
    )  # fmt: skip
    rates = [one for one in values if one.put is not None]
    most = (short(max(pick(one) or 0.0 for one in rates)) if rates else "-" for pick in PUT_AND_GOT)
    return Pictures(
        over, period, depth,
        axis.picture(
            "Messages a second on {}, the last {}: at most {} put, {} got.".format(queue, period.label, *most),
            runs, PUT_AND_GOT,
        ),
        axis.picture(
            f"Age of the oldest message on {queue}, the last {period.label}: {_age(values[-1].age)} at the end, "
            f"at most {_age(max(one.age for one in values))}.",
            runs, [lambda one: one.age], least=60.0, is_time=True,
        ),
        table,
    )  # fmt: skip


def _age(seconds: float, none: str = "none") -> str:
    return span(seconds) if seconds >= 1 else none


def short(value: float | None) -> str:
    """A value on an axis or in the table: ``0.02``, ``1,250``, ``40k``, ``1.5M``; None: not known."""
    if value is None:
        return "-"
    for least, size, unit in UNITS:
        if value >= least:
            return f"{value / size:.4g}{unit}"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


class _Axes:
    """Draws values of a period that ends now."""

    def __init__(self, period: ShownPeriod, now: float) -> None:
        self._period, self._now, self._begin = period, now, now - period.seconds

    def picture(
        self,
        label: str,
        runs: Sequence[Sequence[Activity]],
        picks: Sequence[Callable[[Activity], float | None]],
        least: float = 0.0,
        is_time: bool = False,
    ) -> Markup:
        """A picture with a line for each of `picks`, on one scale from 0.

        Args:
            least: its smallest top.
            is_time: the values are seconds, and the scale has minutes, hours or days.
        """
        most = max((pick(one) or 0.0 for run in runs for one in run for pick in picks), default=0.0)
        top = _nice(max(most, least), is_time=is_time)
        parts = [*self._levels(top, _spoken if is_time else short), *self._times()]
        for which, pick in enumerate(picks, 1):
            for run in runs:
                points = [(self._x(one.at), _y(value, top)) for one in run if (value := pick(one)) is not None]
                parts += _line(which, points)
        return Markup('<svg class="over-time" viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}">{}</svg>').format(
            WIDTH, HEIGHT, label, Markup("").join(parts)
        )

    def _x(self, at: float) -> float:
        return LEFT + (RIGHT - LEFT) * min(1.0, max(0.0, (at - self._begin) / self._period.seconds))

    def _levels(self, top: float, label: Callable[[float], str]) -> Iterator[Markup]:
        """The values at the left, with a line at each."""
        for value in (0.0, top / 2, top):
            y = _y(value, top)
            yield Markup('<line x1="{:.0f}" x2="{:.0f}" y1="{y:.1f}" y2="{y:.1f}"/>').format(LEFT, RIGHT, y=y)
            yield Markup('<text class="value" x="{:.0f}" y="{:.1f}">{}</text>').format(LEFT - 5, y + 4, label(value))

    def _times(self) -> Iterator[Markup]:
        """Full hours, quarters of an hour or days below, in UTC."""
        step = self._period.step
        at = math.ceil(self._begin / step) * step
        while at <= self._now:
            x = self._x(at)
            yield Markup('<line x1="{x:.1f}" x2="{x:.1f}" y1="{:.0f}" y2="{:.0f}"/>').format(BOTTOM, BOTTOM + 4, x=x)
            if x - 8 >= LEFT and x + 14 <= WIDTH:
                text = f"{utc(at):%a}" if step >= DAY else f"{utc(at):%H:%M}"
                yield Markup('<text class="time" x="{:.1f}" y="{:.0f}">{}</text>').format(x, HEIGHT - 4, text)
            at += step


def _nice(most: float, *, is_time: bool) -> float:
    """The top of an axis with room for this value."""
    if most <= 0:
        return 1.0
    size = _size(most)[1] if is_time else 1.0
    unit = size * 10.0 ** math.floor(math.log10(most / size))
    return next(one * unit for one in NICE if one * unit >= most * (1 - 1e-9))


def _size(seconds: float) -> tuple[str, int]:
    """The largest unit that is not longer than this time."""
    return next((one for one in SPANS if seconds >= one[1]), SPANS[-1])


def _spoken(seconds: float) -> str:
    """A time on an axis, in one unit: ``30 min``."""
    unit, size = _size(seconds)
    return f"{short(seconds / size)} {unit}" if seconds else "0"


def _y(value: float, top: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * value / top


def _line(which: int, points: Sequence[tuple[float, float]]) -> Iterator[Markup]:
    """The line of one run, with the area below the first line; a dot, if it has one value."""
    if len(points) == 1:
        yield Markup('<circle class="line{}" cx="{:.1f}" cy="{:.1f}" r="2"/>').format(which, *points[0])
    elif points:
        yield Markup(drawn_line(which, points, BOTTOM))  # it has numbers only
