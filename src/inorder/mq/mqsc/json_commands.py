"""Commands as JSON objects, as in IBM's administration interface (`runCommandJSON`).

A command is turned into a `Source`, and then read, checked and run like any other, with the same grammar and the same
table of attributes. The results of a DISPLAY are converted back.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from ...errors import SHOWN_CHARACTERS_MAX, ArgumentError
from .channelling import KEYWORDS as CHANNEL_KEYWORDS
from .lines import Source
from .managing import TARGETS as MANAGER_TARGETS
from .objects import Found, Row
from .parameters import SWITCHES
from .processes import WORDS as PROCESS_WORDS
from .tokens import WORD as BARE
from .values import Value, digits, number, quoted
from .words import MANAGER_KEYWORDS, OBJECTS, QUEUE_KEYWORDS, SHORT, is_switch

WORD: Final = re.compile(r"[A-Za-z]{1,20}")
ATTRIBUTES: Final = frozenset(word for word, each in QUEUE_KEYWORDS.items() if is_switch(each))
FLAGS: Final = frozenset({"ALL", *SWITCHES, *(f"NO{word}" for word in SWITCHES)})
# Keywords whose values are texts or names, where case matters.
TEXTS: Final = frozenset(
    {"LIKE"}
    | {
        word
        for table in (QUEUE_KEYWORDS, MANAGER_KEYWORDS, CHANNEL_KEYWORDS, PROCESS_WORDS.keywords)
        for word, each in table.items()
        if each.kind in ("text", "name")
    }
)
WORDS: Final = 'a word of letters, as in "display"'
VALUES: Final = "a text, a number, or a list of texts"
NAMED: Final = frozenset(word for words in OBJECTS.values() for word in words) - {*MANAGER_TARGETS}


def source_of(
    command: object,
    qualifier: object,
    name: object = None,
    parameters: object = None,
    asked: object = None,
) -> Source:
    """Turns a JSON object into a command.

    Args:
        command, qualifier: as in "define" and "qlocal".
        name: the name of the object; None or empty for objects without one, such as "qmgr".
        parameters: values by keywords. Keywords without a value in MQSC have "yes" here: {"replace": "yes"}; switches
            of queues have "no", too.
        asked: the keywords that a DISPLAY is to show.

    Raises ArgumentError with the name of the member.
    """
    pieces = [("command", _word("command", command)), ("qualifier", _word("qualifier", qualifier))]
    _check_name(pieces[-1][1], name)
    if name:
        pieces.append(("name", f"({quoted(str(name))})"))
    if not isinstance(parameters, Mapping | None):
        raise _bad("parameters", parameters, "an object of values by keywords")
    pieces += [(f"parameters.{key}", _parameter(key, value)) for key, value in (parameters or {}).items()]
    if asked is not None and (isinstance(asked, str) or not isinstance(asked, Sequence)):
        raise _bad("responseParameters", asked, "a list of keywords")
    pieces += [("responseParameters", _word("responseParameters", each)) for each in asked or ()]
    last = len(pieces)
    lines = tuple((n, piece if n == last else f"{piece} +") for n, (_, piece) in enumerate(pieces, 1))
    return Source(lines, members=tuple(member for member, _ in pieces))


def _check_name(qualifier: str, name: object) -> None:
    if not isinstance(name, str | None):
        raise _bad("name", name, "a text")
    if not name and SHORT.get(qualifier, qualifier) in NAMED:
        raise _bad("name", name, f"the name of a {qualifier}")
    if name and qualifier in MANAGER_TARGETS:
        raise _bad("name", name, "left out: there is one queue manager")


def _word(member: str, value: object) -> str:
    if not isinstance(value, str) or WORD.fullmatch(value) is None:
        raise _bad(member, value, WORDS)
    return value.upper()


def _parameter(key: object, value: Any) -> str:
    keyword = _word("parameters", key)
    member = f"parameters.{key}"
    if keyword in FLAGS:
        said = value.lower() if isinstance(value, str) else value
        if said is True or said == "yes":
            return keyword
        if keyword in ATTRIBUTES and (said is False or said == "no"):
            return f"NO{keyword}"
        raise _bad(member, value, '"yes" or "no"' if keyword in ATTRIBUTES else f'"yes"; {_contrary(keyword)}')
    if keyword == "WHERE" and isinstance(value, str | tuple):
        return _condition(member, value)
    values = value if isinstance(value, list) else [value]
    if not values or not all(isinstance(one, str) or _is_number(one) for one in values):
        raise _bad(member, value, VALUES)
    texts = [one if isinstance(one, str) else digits(number(Decimal(repr(one)))) for one in values]
    return f"{keyword}({','.join(_written(keyword, one) for one in texts)})"


def _is_number(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _written(keyword: str, value: str) -> str:
    """Writes a value in a command: for words to choose from, case does not matter."""
    return quoted(value) if keyword in TEXTS or not BARE.fullmatch(value) else value.upper()


def _contrary(keyword: str) -> str:
    if keyword == "ALL":
        return "otherwise leave it out"
    other = keyword.removeprefix("NO") if keyword.startswith("NO") else f"NO{keyword}"
    return f'for the opposite give {{"{other.lower()}": "yes"}}'


def _bad(member: str, value: object, allowed: str) -> ArgumentError:
    """Makes the error for a member, with its value as JSON."""
    text = f"{member} must be {allowed}, not {_shown(value)}"
    return ArgumentError(text, argument=member, value=value, allowed=allowed)


def _shown(value: object) -> str:
    """Writes a value as JSON, shortened; of nested values only the type, because they may be very deep."""
    if isinstance(value, Mapping):
        return "an object"
    if not isinstance(value, str | int | float | None):
        return "a list"
    text = json.dumps(value[:SHOWN_CHARACTERS_MAX] if isinstance(value, str) else value, ensure_ascii=False)
    return text if len(text) <= SHOWN_CHARACTERS_MAX else f"{text[: SHOWN_CHARACTERS_MAX - 3]}..."


def _condition(member: str, value: str | tuple[str, ...]) -> str:
    """A condition as one text, or as its three words, of which the last may be empty."""
    words = value.split(None, 2) if isinstance(value, str) else value
    if len(words) != 3:
        raise _bad(member, value, 'a condition, as in "CURDEPTH GT 0"')
    subject, operator, compared = words
    return f"WHERE({_word(member, subject)} {_word(member, operator)} {quoted(compared)})"


def object_of(found: Found) -> dict[str, Any]:
    """Turns a result of a DISPLAY into JSON: keywords in lower case; MQSC switches are YES or NO."""
    return {word.lower(): _in_json(value) for word, value in found.items()}


def _in_json(value: Value | tuple[Row, ...]) -> Any:
    if isinstance(value, tuple):
        return [object_of(one) if isinstance(one, Mapping) else one for one in value]
    if isinstance(value, bool):
        return ("NO", "YES")[value]
    return float(value) if isinstance(value, Decimal) else value
