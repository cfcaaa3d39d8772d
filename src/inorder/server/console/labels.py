"""Numbers, times and sizes for people."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Final

UNITS: Final = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def span(seconds: float | None) -> str:
    """How long something has lasted, in its two largest units: ``3 h 12 min``. None: nothing."""
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


def rate(value: float | None) -> str:
    """Messages a second; None: it is not known yet."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 10 or value == 0 else f"{value:,.1f}"


def clock(at: float | None) -> str:
    """A time for people, in UTC, which it names: who looks may be in another zone than the server. None: nothing."""
    return "" if at is None else f"{datetime.fromtimestamp(at, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"


def iso(at: float | None) -> str:
    """A time for machines, in UTC: ``2026-11-24T08:15:00.250Z``. None: nothing."""
    if at is None:
        return ""
    return datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def visible(text: str) -> str:
    """What does not show, and what would change the direction of what follows, as its number."""
    return "".join(one if one.isprintable() or one in "\n\t" else f"\\u{ord(one):04x}" for one in text)


def one_line(text: str) -> str:
    """A text as a row has it: in one line, and what cannot be seen made visible."""
    return "".join(one if one.isprintable() else "↵" if one == "\n" else "·" for one in text)
