"""The answers of commands as text: records as JSON for programs, values in words for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

Record = Mapping[str, Any]


def plain(text: str) -> str:
    """The text, with control and invisible characters written as escapes."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def json_line(record: Record) -> str:
    """A record as JSON without a line end. Characters that `plain` would escape are written as JSON escapes."""
    is_unicode = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    text = json.dumps(record, ensure_ascii=not is_unicode)
    return text if text.isprintable() else "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in text)


def span(seconds: float | None) -> str:
    """A duration for people: 0.4 s, 12 s, 5 min, 3 h, 2 d."""
    if seconds is None:
        return ""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{max(seconds, 0.0):.1f} s"


def count(number: int, noun: str) -> str:
    """1 message, 2 messages, 1,000 messages."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def ended_how(status: int) -> str:
    """How a process ended, by its status, which is negative after a signal."""
    return f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"


def size(length: int) -> str:
    """A number of bytes for people: 999, 4.2 K, 17 M."""
    value = float(length)
    for unit in ("", " K", " M"):
        if value < 999.5:
            return f"{value:.1f}{unit}" if unit and value < 10 else f"{value:.0f}{unit}"
        value /= 1024
    return f"{value:.1f} G"


def words(value: object) -> str:
    """A value for people, as plain text."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(plain(str(one)) for one in value)
    return "" if value is None else plain(str(value))
