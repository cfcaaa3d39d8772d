"""WHERE: selects the rows that a DISPLAY shows."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from ...model.attribute import Attribute
from ..words import SYNONYMS, MqWord
from .commands import Condition
from .errors import syntax_error, unknown_word, unsupported
from .tokens import CommandToken
from .values import INTEGER, Value, comparable, digits, read_value
from .words import INTEGER_STATUS, is_switch

COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = MappingProxyType(
    {
        "EQ": operator.eq,
        "NE": operator.ne,
        "LT": operator.lt,
        "GT": operator.gt,
        "LE": operator.le,
        "GE": operator.ge,
        "CT": operator.eq,  # contains: a single value counts as a list of one
        "EX": operator.ne,
    }
)
LIKE: Final[Mapping[str, bool]] = MappingProxyType({"LK": True, "NL": False, "CTG": True, "EXG": False})
ANY: Final[Mapping[str, str]] = MappingProxyType({"CT": "EQ", "CTG": "LK"})  # for lists, and for their values
NONE: Final[Mapping[str, str]] = MappingProxyType({"EX": "CT", "EXG": "CTG"})
OPERATORS: Final = (*COMPARE, *LIKE)
YES: Final[Mapping[str, bool]] = MappingProxyType({"YES": True, "NO": False})
FORM: Final = f"WHERE(KEYWORD EQ VALUE); instead of EQ: {', '.join(OPERATORS[1:])}"


def read_condition(
    token: CommandToken,
    values: Sequence[CommandToken],
    keywords: Mapping[str, Attribute | None],
    unsupported_names: Mapping[str, MqWord],
    integers: Collection[str] = INTEGER_STATUS,
    read: Callable[[Attribute, CommandToken], Any] = read_value,
) -> Condition:
    """Reads the condition in WHERE(...).

    Args:
        token: the word WHERE.
        keywords: the keywords that may be compared, by any operator; None for keywords that are not attributes.
        unsupported_names: keywords that MQ can compare and we cannot.
        integers: keywords that are not attributes, but numbers.
        read: reads a value of an attribute.

    Raises MqscSyntaxError; Unsupported.
    """
    if len(values) != 3:
        raise syntax_error(token.at, f"WHERE with {len(values)} instead of 3 words", FORM)
    subject, comparison, value = values
    word = SYNONYMS.get(subject.value, subject.value)
    if subject.kind == "word" and word in unsupported_names:
        allowed = f"one of {', '.join(keywords)}"
        raise unsupported(subject.at, f"MQ's attribute {word}", unsupported_names[word].why, allowed)
    if subject.kind != "word" or word not in keywords:
        raise unknown_word(subject.at, word, "a keyword to compare", keywords)
    attribute = keywords[word]
    if comparison.kind != "word" or comparison.value not in OPERATORS:
        raise comparison.refused(", ".join(OPERATORS))
    if comparison.value in LIKE:
        compared: int | float | str | bool = _pattern(value)
    elif attribute is None:
        compared = _status(word, value, integers)
    else:
        compared = _value(attribute, value, read)
    return Condition(keyword=word, operator=comparison.value, value=compared)


def _pattern(token: CommandToken) -> str:
    return token.value if token.value.strip(" ") else ""  # MQSC treats blanks alone as empty


def _status(keyword: str, token: CommandToken, integers: Collection[str]) -> int | str:
    if keyword not in integers:
        return token.value
    if INTEGER.fullmatch(token.value) is None:
        raise token.refused(f"{keyword} and an integer")
    return int(token.value)


def _value(
    attribute: Attribute, token: CommandToken, read: Callable[[Attribute, CommandToken], Any]
) -> int | float | str | bool:
    if is_switch(attribute):
        if token.value not in YES:
            raise token.refused("YES or NO")
        return YES[token.value]
    return comparable(attribute, read(attribute, token))


def holds(condition: Condition, value: Value | float) -> bool:
    """Whether a value meets the condition. For LIKE a number is compared by its digits."""
    if isinstance(value, tuple):
        return _list_holds(condition, value)
    if condition.operator in LIKE:
        text = ("NO", "YES")[value] if isinstance(value, bool) else value if isinstance(value, str) else digits(value)
        return is_like(text, str(condition.value)) == LIKE[condition.operator]
    return COMPARE[condition.operator](value, condition.value)


def _list_holds(condition: Condition, values: tuple[str, ...]) -> bool:
    """CT and CTG: one of the values does; EX and EXG: none does. Other operators compare the list as it is written."""
    if condition.operator in ANY:
        one = replace(condition, operator=ANY[condition.operator])
        return any(holds(one, value) for value in values)
    if condition.operator in NONE:
        return not _list_holds(replace(condition, operator=NONE[condition.operator]), values)
    return holds(condition, ",".join(values))


def is_like(text: str, pattern: str) -> bool:
    """Whether a text equals the pattern, or begins with it if the pattern ends with an asterisk."""
    return text.startswith(pattern[:-1]) if pattern.endswith("*") else text == pattern
