"""Small pictures of numbers through time, as SVG in the page: without script, and in the page's own colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

WIDTH: Final = 120.0
HEIGHT: Final = 28.0
POINTS_MAX: Final = 60
EDGE: Final = 2.0  # so that a line at the top is not cut


def sparkline(what: str, *series: Sequence[float]) -> Markup:
    """One or two lines on one scale, from 0 to the highest; the first has its area filled.

    Args:
        what: for those who cannot see it.
        series: the newest last.
    """
    drawn = [_thinned(one) for one in series]
    top = max((max(one) for one in drawn if one), default=0.0) or 1.0
    lines = [_line(one, top, number) for number, one in enumerate(drawn) if len(one) > 1]
    return Markup(
        '<svg class="spark" viewBox="0 0 {:.0f} {:.0f}" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>'
    ).format(WIDTH, HEIGHT, what, Markup("").join(lines))


def _line(values: Sequence[float], top: float, number: int) -> Markup:
    step = WIDTH / (len(values) - 1)
    room = HEIGHT - 2 * EDGE
    points = " ".join(f"{n * step:.1f},{HEIGHT - EDGE - room * value / top:.1f}" for n, value in enumerate(values))
    area = Markup("")
    if number == 0:
        area = Markup('<polygon points="0,{1:.0f} {0} {2:.0f},{1:.0f}"/>').format(points, HEIGHT, WIDTH)
    return area + Markup('<polyline class="line{}" points="{}"/>').format(number + 1, points)


def _thinned(values: Sequence[float]) -> Sequence[float]:
    """At most so many points: of each stretch the highest, which is what one looks for."""
    if len(values) <= POINTS_MAX:
        return values
    size = -(-len(values) // POINTS_MAX)
    return [max(values[at : at + size]) for at in range(0, len(values), size)]
