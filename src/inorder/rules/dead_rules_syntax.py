"""Reads a table of rules for dead letters, in the syntax of MQ's runmqdlq, into `DeadRules`.

::

    table    = [ control ] rule+                        each begins on a line of its own
    control  = INPUTQ(..) INPUTQM(..) RETRYINT(..) WAIT(..)
    rule     = pattern* ACTION(..) FWDQ(..) FWDQM(..) HEADER(..) PUTAUT(..) RETRY(..)
    pattern  = one of `dead_rules.FIELDS` ( value )

Keywords come in any order, each once, separated by a blank or a comma; keywords and unquoted words are converted
to capital letters. A line that begins with `*` is a comment. A `+` at the end of a line continues with the first
non-blank character of the next line, a `-` with its very first character.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, cast

from ..errors import CallerError, Reason, nearest_names
from ..model.attribute import is_name
from ..model.fields import NUMBER_MAX
from ..model.kinds import Feedback, MessageType
from ..model.options import FOREVER
from .dead_rules import FIELDS, SYMBOLS, Action, DeadRule, DeadRules, Value

CONTROL: Final = ("INPUTQ", "INPUTQM", "RETRYINT", "WAIT")
ACTIONS: Final = ("DISCARD", "IGNORE", "RETRY", "FWD")
ACTING: Final = ("ACTION", "FWDQ", "FWDQM", "HEADER", "PUTAUT", "RETRY")
KEYWORDS: Final = (*CONTROL, *FIELDS, *ACTING)
UNSUPPORTED: Final[Mapping[str, str]] = {"CONVERT": "contents stay as they are"}

ITEM: Final = re.compile(
    r"[ \t,]*(?P<keyword>[A-Za-z0-9_]+)[ \t]*"
    r"(?:\([ \t]*(?:'(?P<quoted>(?:[^']|'')*)'|(?P<word>[^'()\s,]+))[ \t]*\))?"
)
WORD: Final = re.compile(r"[A-Za-z0-9./_%*?&]+")
BEGINNING: Final = re.compile(r"[ \t,]")
# The meaning of a symbolic name, by the prefixes that MQ gives it.
NUMBERS: Final[Mapping[str, Mapping[str, int]]] = {
    "APPLTYPE": {
        f"MQAT_{name}": number
        for name, number in {
            "NO_CONTEXT": 0, "CICS": 1, "MVS": 2, "OS390": 2, "ZOS": 2, "IMS": 3, "OS2": 4, "DOS": 5, "UNIX": 6,
            "AIX": 6, "DEFAULT": 6, "QMGR": 7, "OS400": 8, "WINDOWS": 9, "CICS_VSE": 10, "WINDOWS_NT": 11, "VMS": 12,
            "NSK": 13, "GUARDIAN": 13, "VOS": 14, "IMS_BRIDGE": 19, "XCF": 20, "CICS_BRIDGE": 21, "NOTES_AGENT": 22,
            "USER": 25, "BROKER": 26, "JAVA": 28, "DQM": 29, "CHANNEL_INITIATOR": 30,
        }.items()
    },
    "FEEDBACK": {f"MQFB_{one.name}": int(one) for one in Feedback},
    "MSGTYPE": {f"MQMT_{one.name}": int(one) for one in MessageType},
    "PERSIST": {"MQPER_NOT_PERSISTENT": 0, "MQPER_PERSISTENT": 1, "MQPER_PERSISTENCE_AS_Q_DEF": 2},
    "REASON": {
        **{f"MQRC_{one.name}": int(one) for one in Reason},
        **{f"MQFB_{one.name}": int(one) for one in Feedback},
    },
}  # fmt: skip


class DeadRulesError(CallerError):
    """A table of rules is not valid; data: line, found, allowed."""

    reason = Reason.ARGUMENT_ERROR


class Item(NamedTuple):
    """A keyword and its value; `line` is the first line of its entry."""

    line: int
    keyword: str
    value: str

    def wrong(self, allowed: str) -> DeadRulesError:
        return _error(self.line, f"{self.keyword}({self.value!r})", allowed)


def read_rules(lines: Iterable[str]) -> DeadRules:
    """Reads a table from the lines of a text, with or without line ends.

    Raises DeadRulesError with the line where the entry begins, the text that was found, and the allowed one.
    """
    control: dict[str, Any] = {}
    rules: list[DeadRule] = []
    for number, (line, text) in enumerate(_entries(lines)):
        items = {one.keyword: one for one in _items(line, text)}
        if items.keys() & set(CONTROL):
            if number:
                raise _error(line, "control data after another entry", "control data in the first entry")
            control = _control(line, items)
        else:
            rules.append(_rule(line, items))
    if not rules:
        raise _error(1, "no rule", "at least one rule")
    return DeadRules(rules=tuple(rules), **control)


# --- lines into entries, entries into items


def _entries(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Splits the text into entries, each with its first line."""
    begun, text, goes_on = 0, "", ""
    for number, line in enumerate(lines, 1):
        bare = line.rstrip("\r\n").rstrip(" \t")
        if bare.startswith("*") or not (bare or goes_on):
            continue
        begun = begun if goes_on else number
        text += bare.lstrip(" \t") if goes_on == "+" else bare
        goes_on = bare[-1:] if bare[-1:] in ("+", "-") else ""
        if goes_on:
            text = text[:-1]
        else:
            yield begun, text
            text = ""
    if goes_on:
        raise _error(begun, f"the end of the table after {goes_on}", "a further line")


def _items(line: int, text: str) -> Iterator[Item]:
    at, known = 0, set[str]()
    while at < len(text.rstrip(" \t,")):
        found = ITEM.match(text, at)
        if found is None:
            raise _error(line, repr(text[at : at + 40]), "a keyword and its value, as in REASON(MQRC_Q_FULL)")
        keyword = found["keyword"].upper()
        if at and not BEGINNING.match(text, at):
            raise _error(line, f"{keyword} right after another value", "a blank or a comma before it")
        if keyword in UNSUPPORTED:
            raise _error(
                line, f"MQ's keyword {keyword}, which is not supported: {UNSUPPORTED[keyword]}", "a rule without it"
            )
        if keyword not in KEYWORDS:
            near = nearest_names(keyword, KEYWORDS)
            hint = f"{', '.join(near)}" if near else f"one of {', '.join(KEYWORDS)}"
            raise _error(line, repr(keyword), hint)
        if keyword in known:
            raise _error(line, f"{keyword} again", "each keyword once")
        known.add(keyword)
        yield Item(line, keyword, _value(line, keyword, found))
        at = found.end()


def _value(line: int, keyword: str, found: re.Match[str]) -> str:
    """The value in parentheses: a quoted text as it is, a word in capital letters."""
    quoted, word = found["quoted"], found["word"]
    if quoted:
        return quoted.replace("''", "'")
    if word is None:
        raise _error(line, f"{keyword} without a value", f"{keyword}(...); ' ' is an empty value")
    if not WORD.fullmatch(word):
        raise _error(line, repr(word), "single quotes around a value with other characters than A-Z 0-9 . / _ % * ? &")
    return word.upper()


# --- items into values


def _control(line: int, items: Mapping[str, Item]) -> dict[str, Any]:
    others = [name for name in items if name not in CONTROL]
    if others:
        raise _error(line, f"{others[0]} among control data", f"{', '.join(CONTROL)}; a rule begins on its own line")
    read: dict[str, Callable[[Item], Any]] = {
        "INPUTQ": _name, "INPUTQM": _name, "RETRYINT": lambda one: _number(one, 1), "WAIT": _wait
    }  # fmt: skip
    names = {"INPUTQ": "queue", "INPUTQM": "manager", "RETRYINT": "retry_seconds", "WAIT": "wait"}
    return {names[name]: read[name](one) for name, one in items.items()}


def _wait(item: Item) -> float:
    if item.value in ("YES", "NO"):
        return FOREVER if item.value == "YES" else 0.0
    return float(_number(item, 0, "YES, NO or "))


def _rule(line: int, items: Mapping[str, Item]) -> DeadRule:
    if "ACTION" not in items:
        raise _error(line, "a rule without ACTION", " or ".join(f"ACTION({one})" for one in ACTIONS))
    action = _word(items["ACTION"], ACTIONS)
    for name in ("FWDQ", "FWDQM", "HEADER"):
        if name in items and action != "FWD":
            raise _error(line, f"{name} with ACTION({action})", f"{name} with ACTION(FWD)")
    if action == "FWD" and "FWDQ" not in items:
        raise _error(line, "ACTION(FWD) without FWDQ", "FWDQ(NAME), FWDQ(&DESTQ) or FWDQ(&REPLYQ)")
    if "PUTAUT" in items and _word(items["PUTAUT"], ("DEF", "CTX")) == "CTX":
        raise items["PUTAUT"].wrong("PUTAUT(DEF): any program that opens the store may put")
    return DeadRule(
        line=line,
        action=cast(Action, action.lower()),
        patterns={name: value for name, one in items.items() if name in FIELDS and (value := _pattern(one)) != "*"},
        queue=_forward(items.get("FWDQ")),
        manager=_forward(items.get("FWDQM")),
        header="HEADER" not in items or _word(items["HEADER"], ("YES", "NO")) == "YES",
        tries=_number(items["RETRY"], 1) if "RETRY" in items else 1,
    )


def _pattern(item: Item) -> Value:
    length = FIELDS[item.keyword]
    if length:
        if len(item.value.replace("*", "").rstrip(" ")) > length:
            raise item.wrong(f"at most {length} characters, not counting *")
        return item.value.rstrip(" ")
    if item.value == "*":
        return "*"
    known = NUMBERS[item.keyword]
    if item.value in known:
        return known[item.value]
    return _number(item, 0, f"*, a name such as {next(iter(known))}, or ")


def _forward(item: Item | None) -> str:
    if item is None:
        return ""
    if item.value.startswith("&"):
        if item.value not in SYMBOLS[item.keyword]:
            raise item.wrong(" or ".join(SYMBOLS[item.keyword]))
        return item.value
    name = _name(item)
    if not name and item.keyword == "FWDQ":
        raise item.wrong("a name")
    return name


def _name(item: Item) -> str:
    name = item.value.strip(" ")
    if name and not is_name(name):
        raise item.wrong("at most 48 characters from A-Z a-z 0-9 . / _ %")
    return name


def _word(item: Item, allowed: tuple[str, ...]) -> str:
    if item.value not in allowed:
        raise item.wrong(" or ".join(f"{item.keyword}({one})" for one in allowed))
    return item.value


def _number(item: Item, least: int, others: str = "") -> int:
    if re.fullmatch(r"[0-9]{1,9}", item.value) is None or int(item.value) < least:
        raise item.wrong(f"{others}a number from {least} to {NUMBER_MAX:,}")
    return int(item.value)


def _error(line: int, found: str, allowed: str) -> DeadRulesError:
    return DeadRulesError(f"line {line}: found {found}; allowed is {allowed}", line=line, found=found, allowed=allowed)
