"""WHERE: which rows of a DISPLAY are shown."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from ..attributes import Attribute
from .commands import Condition
from .errors import syntax_error, unknown_word
from .tokens import Token
from .values import INTEGER, comparable, read_value
from .words import INTEGER_STATUS, is_switch

COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = MappingProxyType(
    {
        "EQ": operator.eq,
        "NE": operator.ne,
        "LT": operator.lt,
        "GT": operator.gt,
        "LE": operator.le,
        "GE": operator.ge,
    }
)
SAME: Final = ("EQ", "NE")
LIKE: Final = ("LK", "NL")
YES: Final[Mapping[str, bool]] = MappingProxyType({"YES": True, "NO": False})
FORM: Final = "WHERE(KEYWORD EQ VALUE); instead of EQ: NE, LT, GT, LE, GE, LK or NL"


def read_condition(token: Token, values: Sequence[Token], keywords: Mapping[str, Attribute | None]) -> Condition:
    """The condition that stands in WHERE(...).

    Args:
        token: the word WHERE.
        keywords: what may be compared; None for what is no attribute.

    Raises: MqscSyntaxError.
    """
    if len(values) != 3:
        raise syntax_error(token.at, f"WHERE with {len(values)} instead of 3 words", FORM)
    subject, comparison, value = values
    if subject.kind != "word" or subject.value not in keywords:
        raise unknown_word(subject.at, subject.value, "a keyword to compare", keywords)
    attribute = keywords[subject.value]
    operators = _operators(subject.value, attribute)
    if comparison.kind != "word" or comparison.value not in operators:
        raise syntax_error(comparison.at, comparison.found, f"{', '.join(operators)} for {subject.value}")
    read = value.value if comparison.value in LIKE else _value(subject.value, attribute, value)
    return Condition(keyword=subject.value, operator=comparison.value, value=read)


def _operators(keyword: str, attribute: Attribute | None) -> tuple[str, ...]:
    if attribute is None:
        return tuple(COMPARE) if keyword in INTEGER_STATUS else (*COMPARE, *LIKE)
    if attribute.kind in ("choice", "boolean"):
        return SAME
    return (*COMPARE, *LIKE) if attribute.kind in ("text", "name") else tuple(COMPARE)


def _value(keyword: str, attribute: Attribute | None, token: Token) -> int | float | str | bool:
    if attribute is None and keyword in INTEGER_STATUS:
        if INTEGER.fullmatch(token.value) is None:
            raise syntax_error(token.at, token.found, f"{keyword} and an integer")
        return int(token.value)
    if attribute is None:
        return token.value
    if is_switch(attribute):
        if token.value not in YES:
            raise syntax_error(token.at, token.found, "YES or NO")
        return YES[token.value]
    return comparable(attribute, read_value(attribute, token))


def holds(condition: Condition, value: int | float | str | bool) -> bool:
    """Whether a value fulfils the condition."""
    if condition.operator in LIKE:
        return is_like(str(value), str(condition.value)) == (condition.operator == "LK")
    return COMPARE[condition.operator](value, condition.value)


def is_like(text: str, pattern: str) -> bool:
    """Whether a text is the pattern, or begins with what stands before the pattern's last character, an asterisk."""
    return text.startswith(pattern[:-1]) if pattern.endswith("*") else text == pattern
