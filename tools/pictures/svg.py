"""A picture as plain SVG: boxes, texts, lines and arrows in the colours of the house.

A picture is 480 units wide, so that its texts (13 to 15 units) are legible on a phone, and has a ground of its own, so
that they are on a light and on a dark page. Its colours follow the reader's setting, wherever it is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise

WIDTH = 480
MARGIN = 16
LINE = 17  # from one line of text to the next
CHARACTER = 7.2  # the width of most characters, at 14 units, on the safe side

STYLE = """
text { font: 14px "Helvetica Neue", Helvetica, Arial, sans-serif; fill: #1c2430 }
.small { font-size: 13px } .bold { font-weight: 600 } .mid { text-anchor: middle } .end { text-anchor: end }
.faint { fill: #566070 } .halo { paint-order: stroke; stroke: #fcfcfd; stroke-width: 5px; stroke-linejoin: round }
.ground { fill: #fcfcfd; stroke: #d5d9e0 } .box { stroke: #8a94a3; fill: #edf0f4 }
.line { stroke: #566070; stroke-width: 1.5; fill: none } .dash { stroke-dasharray: 4 4 }
.head { fill: #566070 } .band { fill: #f1f3f6; stroke: none }
.one { fill: #cfe8da; stroke: #3f8f67 }
.two { fill: #fbdcb4; stroke: #b5711a } .three { fill: #d3e2f8; stroke: #3f74b8 }
.one-line { stroke: #3f8f67 } .two-line { stroke: #b5711a } .three-line { stroke: #3f74b8 }
.ghost { fill: none; stroke: #b3362c; stroke-dasharray: 4 3 } .bad { fill: #b3362c }
@media (prefers-color-scheme: dark) {
text { fill: #e6e9ee } .faint { fill: #a9b2bf } .halo { stroke: #1a1e25 }
.ground { fill: #1a1e25; stroke: #363d48 } .box { stroke: #7d8796; fill: #2a303a }
.line { stroke: #a9b2bf } .head { fill: #a9b2bf } .band { fill: #232831 }
.one { fill: #1f4a37; stroke: #62b78d }
.two { fill: #5a3d17; stroke: #e0a24c } .three { fill: #23406a; stroke: #7fabe3 }
.one-line { stroke: #62b78d } .two-line { stroke: #e0a24c } .three-line { stroke: #7fabe3 }
.ghost { stroke: #ec8378 } .bad { fill: #ec8378 }
}
"""

Point = tuple[float, float]


class Picture:
    """What is drawn so far; `svg` is the file.

    Args:
        title: what it shows, in a sentence, for who does not see it.
        height: in units; it is 480 wide.
    """

    def __init__(self, title: str, height: float) -> None:
        self._title, self._height = title, height
        self._parts: list[str] = []

    def svg(self) -> str:
        """The file."""
        width, height = WIDTH, _number(self._height)
        ground = (
            f'<rect class="ground" x="0.5" y="0.5" width="{width - 1}" height="{_number(self._height - 1)}" rx="8"/>'
        )
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'role="img">\n<title>{escape(self._title)}</title>\n<style>{STYLE}</style>'
        )
        return "\n".join([head, ground, *self._parts, "</svg>"]) + "\n"

    def text(self, x: float, y: float, text: str, kind: str = "") -> None:
        """A line of text, its baseline at y; `kind`: classes of the style."""
        name = f' class="{kind}"' if kind else ""
        self._parts.append(f'<text x="{_number(x)}" y="{_number(y)}"{name}>{escape(text, quote=False)}</text>')

    def lines(self, x: float, y: float, texts: Iterable[str], kind: str = "") -> None:
        """Lines of text, one below the other."""
        for n, text in enumerate(texts):
            self.text(x, y + n * LINE, text, kind)

    def rectangle(self, x: float, y: float, width: float, height: float, kind: str = "box") -> None:
        """A box without a text."""
        corner = f'x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" height="{_number(height)}"'
        self._parts.append(f'<rect class="{kind}" {corner} rx="5"/>')

    def box(self, x: float, y: float, width: float, height: float, texts: Sequence[str], kind: str = "box") -> None:
        """A box with lines of text in its middle."""
        self.rectangle(x, y, width, height, kind)
        first = y + height / 2 + 5 - (len(texts) - 1) * LINE / 2
        self.lines(x + width / 2, first, texts, "mid")

    def line(self, points: Sequence[Point], kind: str = "line") -> None:
        """A line over these points."""
        self.path("M" + " L".join(f"{_number(x)} {_number(y)}" for x, y in points), kind)

    def path(self, path: str, kind: str = "line") -> None:
        """Any path, as SVG writes it."""
        self._parts.append(f'<path class="{kind}" d="{path}"/>')

    def arrow(self, points: Sequence[Point], kind: str = "line") -> None:
        """A line over these points, which run along the axes, with a head at the last."""
        self.line(points, kind)
        (ax, ay), (bx, by) = list(pairwise(points))[-1]
        dx, dy = (bx > ax) - (bx < ax), (by > ay) - (by < ay)
        sides = [(bx - 8 * dx - 4 * dy, by - 8 * dy - 4 * dx), (bx - 8 * dx + 4 * dy, by - 8 * dy + 4 * dx)]
        corners = " ".join(f"{_number(x)},{_number(y)}" for x, y in [(bx, by), *sides])
        self._parts.append(f'<polygon class="head" points="{corners}"/>')

    def dot(self, x: float, y: float, *, ring: bool = False) -> None:
        """Where a life begins; with a ring, where it ends."""
        self._parts.append(f'<circle class="head" cx="{_number(x)}" cy="{_number(y)}" r="5"/>')
        if ring:
            self._parts.append(f'<circle class="line" cx="{_number(x)}" cy="{_number(y)}" r="9"/>')


def wrapped(text: str, width: float) -> list[str]:
    """The words of a text in lines of at most this width, in units."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and len(longer) * CHARACTER > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
