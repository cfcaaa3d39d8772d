"""The kinds of parameters: each reads a text, and says in its schema what it takes."""

from __future__ import annotations

import math
import re
from typing import Any, Final

from ...errors import ArgumentError, written
from ...formats.json_lines import IDS, TEXT_ID
from ...message import UniqueId
from ...parameters import ID_LENGTH
from ...rules.browse_token import decode
from .describing import Parameter

INTEGER: Final = re.compile(r"-?[0-9]{1,20}")
NATURAL: Final = re.compile(r"[0-9]{1,19}")
NUMBER: Final = re.compile(r"[0-9]{1,15}(\.[0-9]{1,20})?([eE][-+]?[0-9]{1,3})?")  # as programs write floats
HEX: Final = re.compile(r"([0-9a-fA-F]{2})+")
UNIQUE_ID: Final = "^.+:(?!0+$)[0-9]{1,19}$"
"""As JSON schema has it."""
FLAGS: Final = {"true": True, "false": False}


def integer(name: str, summary: str, least: int, most: int, **more: Any) -> Parameter:
    """A whole number."""
    allowed = f"it is an integer from {least:,} to {most:,}"

    def read(text: str) -> int:
        if INTEGER.fullmatch(text) is None or not least <= int(text) <= most:
            raise ValueError(allowed)
        return int(text)

    schema = {"type": "integer", "minimum": least, "maximum": most}
    return Parameter(name=name, summary=summary, schema=schema, read=read, **more)


def seconds(name: str, summary: str, most: float, *, above: bool = False, **more: Any) -> Parameter:
    """A duration, 0 too unless it is to be `above`; decimals are allowed."""
    allowed = f"it is seconds above 0, at most {most:,.0f}" if above else f"it is seconds from 0 to {most:,.0f}"

    def read(text: str) -> float:
        value = float(text) if NUMBER.fullmatch(text) else math.inf
        if value > most or (above and not value):
            raise ValueError(allowed)
        return value

    schema = {"type": "number", "exclusiveMinimum" if above else "minimum": 0, "maximum": most}
    return Parameter(name=name, summary=summary, schema=schema, read=read, **more)


def choice(name: str, summary: str, *allowed: str, **more: Any) -> Parameter:
    """One of some words."""

    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"it is out of {', '.join(allowed)}")
        return text

    schema = {"type": "string", "enum": list(allowed)}
    return Parameter(name=name, summary=summary, schema=schema, read=read, **more)


def flag(name: str, summary: str, **more: Any) -> Parameter:
    """true or false; false without it."""

    def read(text: str) -> bool:
        if text not in FLAGS:
            raise ValueError("it is true or false")
        return FLAGS[text]

    named: dict[str, Any] = {"default": False} | more
    return Parameter(name=name, summary=summary, schema={"type": "boolean"}, read=read, **named)


def text(name: str, summary: str, most: int, **more: Any) -> Parameter:
    """A text, not empty."""

    def read(given: str) -> str:
        if not 1 <= len(given) <= most:
            raise ValueError(f"it is a text of 1 to {most:,} characters")
        return given

    schema = {"type": "string", "minLength": 1, "maxLength": most}
    return Parameter(name=name, summary=summary, schema=schema, read=read, **more)


def identifier(name: str, summary: str, length: int = ID_LENGTH, **more: Any) -> Parameter:
    """An id in hex; NULs at its end may be left out. What a put takes as a text is taken so here, too."""
    allowed = f"it is 1 to {length} bytes as hexadecimal digits"
    pattern = f"([0-9a-fA-F]{{2}}){{1,{length}}}"
    if name in IDS:
        allowed += f", or {TEXT_ID} and a text of 1 to {length} bytes"
        pattern += f"|{TEXT_ID}.{{1,{length}}}"
        summary += f" In hex, or {TEXT_ID}TEXT; a shorter one gets NULs."

    def read(given: str) -> bytes:
        text = given.removeprefix(TEXT_ID) if name in IDS else given
        is_text = text != given
        if not (is_text or HEX.fullmatch(given)):
            raise ValueError(f"{allowed}, not {written(given)}")
        found = text.encode() if is_text else bytes.fromhex(given)
        if not 1 <= len(found) <= length:
            raise ValueError(f"{allowed}, not {written(given)}")
        return found.ljust(length, b"\0")

    schema = {"type": "string", "pattern": f"^({pattern})$"}
    return Parameter(name=name, summary=summary, schema=schema, read=read, **more)


def cursor(name: str, summary: str, whence: str, most: int, **more: Any) -> Parameter:
    """Where a strict browse stands, as an answer has it.

    Args:
        whence: what a client has it from, to be read after "it is".
    """

    def shown(given: str) -> str:
        return "" if more.get("where") == "header" else f", not {written(given)}"  # the error of a header has it

    def read(given: str) -> str:
        try:
            if len(given) <= most:
                decode(given)
                return given
        except ArgumentError:
            pass
        raise ValueError(f"it is {whence}{shown(given)}")

    schema = {"type": "string", "minLength": 1, "maxLength": most}
    return Parameter(name=name, summary=summary, schema=schema, read=read, **more)


def unique_id(name: str, summary: str, **more: Any) -> Parameter:
    """A unique id, as text: the origin, a colon, and the number."""

    def read(given: str) -> UniqueId:
        origin, separator, number = given.rpartition(":")
        if not (separator and origin and NATURAL.fullmatch(number)):
            raise ValueError("it is ORIGIN:NUMBER, as in QM1:17")
        return UniqueId(origin, int(number))

    schema = {"type": "string", "pattern": UNIQUE_ID}
    return Parameter(name=name, summary=summary, schema=schema, read=read, **more)
