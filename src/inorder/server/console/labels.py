"""Values as people read them: numbers, times, sizes, bodies of messages, and small pictures of numbers over time.

The pictures are SVG in the page, without script and in the page's own colours.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from markupsafe import Markup, escape

from ...client.labels import text_in
from ...stores.seam.damage import utc

UNITS: Final = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
WIDTH: Final = 120.0
HEIGHT: Final = 28.0
POINTS_MAX: Final = 60
EDGE: Final = 2.0  # so that a line at the top is not cut
SHOWN_MAX: Final = 65_536  # bytes of a body that a page reads
HEX_MAX: Final = 8_192
LINE: Final = 16


def span(seconds: float | None) -> str:
    """A duration in its two largest units: ``3 h 12 min``. None: nothing."""
    if seconds is None:
        return ""
    if seconds < 1:
        return "now"
    left = int(seconds)
    parts: list[str] = []
    for unit, length in UNITS:
        count, left = divmod(left, length)
        if count or parts:
            parts.append(f"{count} {unit}" if count else "")
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if part)


def size(count: int) -> str:
    """Bytes: ``1.5 KiB``."""
    if count < 1_024:
        return f"{count} B"
    value = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        value /= 1_024
        if value < 1_024 or unit == "GiB":
            break
    return f"{value:,.1f} {unit}" if value < 100 else f"{value:,.0f} {unit}"


def number(value: int) -> str:
    """With separators: ``12,345``."""
    return f"{value:,}"


def counted(count: int, one: str = "message") -> str:
    """A number of things: ``1 message``, ``2,000 messages``."""
    return f"{count:,} {one}{'' if count == 1 else 's'}"


def rate(value: float | None) -> str:
    """Messages per second; None: not known yet."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 10 or value == 0 else f"{value:,.1f}"


def duration(seconds: float | None) -> str:
    """A measured duration: ``12 ms``, ``3.4 s``, or as `span`. None: nothing."""
    if seconds is None:
        return ""
    if seconds < 1:
        return f"{1_000 * seconds:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else span(seconds)


def clock(at: float | None) -> str:
    """A time for people. It names UTC, because a visitor may be in another zone than the server. None: nothing."""
    return "" if at is None else f"{utc(at):%Y-%m-%d %H:%M:%S} UTC"


def iso(at: float | None) -> str:
    """A time for machines, in UTC: ``2026-11-24T08:15:00.250Z``. None: nothing."""
    if at is None:
        return ""
    return utc(at).isoformat(timespec="milliseconds").replace("+00:00", "Z")


FIELD_WORDS: Final = {
    "uid": "unique id", "user_identifier": "user", "put_application_name": "put by program",
    "put_application_type": "kind of program", "reply_to_manager": "reply to queue manager",
    "coded_character_set_id": "character set (CCSID)", "backout_count": "backed out, times",
    "max_depth": "maximum depth", "max_length": "maximum length, bytes",
}  # fmt: skip


def field_name(name: str) -> str:
    """The name of a field or attribute as people say it."""
    return FIELD_WORDS.get(name) or name.replace("_ms", ", ms").replace("_", " ")


def setting(value: object) -> str:
    """The value of an attribute as people say it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return number(value)
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value in (None, "") else visible(str(value)).replace("_", " " if str(value).islower() else "_")


def visible(text: str) -> str:
    """The text with invisible characters, and those that change the direction of text, as their numbers."""
    return "".join(one if one.isprintable() or one in "\n\t" else f"\\u{ord(one):04x}" for one in text)


def one_line(text: str) -> str:
    """A text for a row: in one line, with marks for line ends and invisible characters."""
    return "".join(one if one.isprintable() else "↵" if one == "\n" else "·" for one in text)


def sparkline(what: str, *series: Sequence[float | None]) -> Markup:
    """One or two lines on one scale, from 0 to the highest value; the area under the first is filled.

    Args:
        what: the label for visitors who cannot see the picture.
        series: the values of each line, the newest last; None: a gap.
    """
    drawn = [_thinned(one) for one in series]
    top = max((value for one in drawn for value in one if value is not None), default=0.0) or 1.0
    lines = [_lines(one, top, number) for number, one in enumerate(drawn, 1) if len(one) > 1]
    made = (
        f'<svg class="spark" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(what)}">{"".join(lines)}</svg>'
    )
    return Markup(made)  # at once: `Markup.format` took most of the time of a page with many queues


def _lines(values: Sequence[float | None], top: float, number: int) -> str:
    """A line through values, with a piece for each stretch between gaps."""
    step, last = WIDTH / (len(values) - 1), len(values) - 1
    room = HEIGHT - 2 * EDGE
    pieces: list[list[tuple[float, float]]] = [[]]
    for n, value in enumerate(values):
        if value is None:
            pieces.append([])
        elif not (0 < n < last and values[n - 1] == value == values[n + 1]):  # a page of idle queues is drawn at once
            pieces[-1].append((n * step, HEIGHT - EDGE - room * value / top))
    return "".join(drawn_line(number, one, HEIGHT) for one in pieces if len(one) > 1)


def drawn_line(number: int, points: Sequence[tuple[float, float]], bottom: float) -> str:
    """The SVG of a line through points; below the first line of a picture also its area, down to `bottom`."""
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    line = f'<polyline class="line{number}" points="{drawn}"/>'
    if number > 1:
        return line
    return f'<polygon points="{points[0][0]:.1f},{bottom:.0f} {drawn} {points[-1][0]:.1f},{bottom:.0f}"/>{line}'


def _thinned(values: Sequence[float | None]) -> Sequence[float | None]:
    """At most `POINTS_MAX` values: the highest of each stretch, because visitors look for peaks."""
    if len(values) <= POINTS_MAX:
        return values
    size = -(-len(values) // POINTS_MAX)
    stretches = (values[at : at + size] for at in range(0, len(values), size))
    return [max((value for value in one if value is not None), default=None) for one in stretches]


View = Literal["json", "text", "hex"]


class BodyView(NamedTuple):
    """The possible views of a body, the present view, and the text in it.

    Args:
        cut: how many bytes the text has; 0: the whole body.
    """

    views: tuple[View, ...]
    view: View
    text: str
    cut: int


def shown_body(data: bytes, length: int, wanted: str = "") -> BodyView:
    """A body in the wanted view, or in the first possible one.

    Args:
        data: the beginning of the body, at most `SHOWN_MAX` bytes.
        length: the length of the whole body.
    """
    found: dict[View, str] = {}
    is_whole = len(data) >= length
    text = text_in(data, is_whole=is_whole)
    if text is not None and "\0" not in text:
        pretty = _json(text) if is_whole else None
        if pretty is not None:
            found["json"] = visible(pretty)
        found["text"] = visible(text)
    found["hex"] = _hex(data[:HEX_MAX])
    view = next((one for one in found if one == wanted), next(iter(found)))
    seen = min(len(data), HEX_MAX) if view == "hex" else len(data)
    return BodyView(tuple(found), view, found[view], 0 if seen >= length else seen)


def _json(text: str) -> str | None:
    """A JSON object or list, with each part on its own line; None: the text is neither."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


def _hex(data: bytes) -> str:
    """Lines with an offset, 16 bytes, and their ASCII characters."""
    lines = []
    for at in range(0, len(data), LINE):
        piece = data[at : at + LINE]
        letters = "".join(chr(one) if 32 <= one < 127 else "." for one in piece)
        lines.append(f"{at:08x}  {piece[:8].hex(' '):23}  {piece[8:].hex(' '):23}  {letters}")
    return "\n".join(lines)
