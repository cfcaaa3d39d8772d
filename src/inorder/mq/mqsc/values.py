"""Converts values of attributes between MQSC and our own form."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any, Final

from ...model.attribute import Attribute
from .tokens import WORD, CommandToken

Number = int | Decimal  # a fraction is a Decimal, which keeps each digit
Scalar = Number | str | bool
Value = Scalar | tuple[str, ...]  # the value of a displayed keyword; a list is a tuple
INTEGER: Final = re.compile(r"-?[0-9]{1,18}")
NUMBER: Final = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,400})?")  # the smallest of Python's numbers has 343 digits


def allowed_values(attribute: Attribute) -> str:
    """The allowed values in MQSC's words, to be read after "allowed is"."""
    if attribute.mqsc_words:
        return " or ".join(f"{attribute.mqsc}({word})" for word in attribute.mqsc_words)
    if attribute.kind == "seconds":
        unit = "seconds" if attribute.mqsc_per_second == 1 else "milliseconds"
        most = Decimal(repr(attribute.maximum)) * attribute.mqsc_per_second
        some = f"{attribute.mqsc}({unit} above 0 and up to {most.normalize():,f})"
        return f"{some} or {attribute.mqsc}({attribute.mqsc_none})"
    return f"{attribute.mqsc}({attribute.allowed})"


def read_value(attribute: Attribute, token: CommandToken) -> Any:
    """Reads the value of an attribute.

    Raises MqscSyntaxError if the attribute cannot have this value.
    """
    try:
        return attribute.check(_value(attribute, token.value))
    except ValueError:  # an ArgumentError is one
        raise token.refused(allowed_values(attribute)) from None


def _value(attribute: Attribute, text: str) -> object:
    # MQ's dumps write ' ' for an empty value, so a value of blanks only is empty.
    text = text if text.strip(" ") else ""
    match attribute.kind:
        case "choice":
            return dict(zip(attribute.mqsc_words, attribute.choices, strict=True)).get(text)
        case "boolean":
            return dict(zip(attribute.mqsc_words, (True, False), strict=True)).get(text)
        case "integer":
            return int(_matched(INTEGER, text))
        case "seconds" if text == attribute.mqsc_none:
            return None
        case "seconds":
            return float(Decimal(_matched(NUMBER, text)) / attribute.mqsc_per_second)
        case "text" | "name" | "names":
            return text


def _matched(pattern: re.Pattern[str], text: str) -> str:
    if pattern.fullmatch(text) is None:
        raise ValueError(text)
    return text


def mqsc_value(attribute: Attribute, value: Any) -> Scalar:
    """Converts a value to MQSC, without quotes; a switch stays True or False, a number a number."""
    match attribute.kind:
        case "choice":
            return attribute.mqsc_words[attribute.choices.index(value)]
        case "boolean" if attribute.mqsc_words:
            return attribute.mqsc_words[0 if value else 1]
        case "boolean":
            return bool(value)
        case "integer":
            return int(value)
        case "seconds" if value is None:
            return int(attribute.mqsc_none) if attribute.mqsc_none.isdecimal() else attribute.mqsc_none
        case "seconds":
            return number(Decimal(repr(value)) * attribute.mqsc_per_second)
        case "text" | "name" | "names":
            return str(value)


def number(value: Decimal) -> Number:
    """Converts a number; without a fraction it becomes an integer."""
    whole = int(value)
    return whole if whole == value else value.normalize()


def written(keyword: str, value: Value) -> str:
    """Writes a keyword with its value for a script."""
    if isinstance(value, bool):
        return keyword if value else f"NO{keyword}"
    if isinstance(value, tuple):
        return f"{keyword}({','.join(map(quoted, value)) or quoted('')})"
    return f"{keyword}({quoted(value) if isinstance(value, str) else digits(value)})"


def digits(value: Number | float) -> str:
    """Writes a number; a fraction without an exponent."""
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def quoted(value: str) -> str:
    """Writes a value, in quotes if it needs them."""
    if value.upper() == value and WORD.fullmatch(value):
        return value
    doubled = value.replace("'", "''")
    return f"'{doubled or ' '}'"


def comparable(attribute: Attribute, value: Any) -> int | float | str | bool:
    """Converts a value for WHERE: as `mqsc_value`, but seconds are a number, and NOLIMIT is the largest."""
    if attribute.kind == "seconds":
        none = float(attribute.mqsc_none) if attribute.mqsc_none.isdecimal() else math.inf
        return none if value is None else float(value) * attribute.mqsc_per_second
    found = mqsc_value(attribute, value)
    assert not isinstance(found, Decimal)
    return found
