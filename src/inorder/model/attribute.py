"""Describes single attributes of objects, and makes tables of them: of queues, the queue manager, processes.

An attribute is declared as a field of a dataclass. The field has the type and the default; its metadata, made by
`texts`, `integers` and the like, has MQ's name, the allowed values, and how the attribute may be changed. `table_of`
reads the attributes from the fields, and `checked` checks values against a table before anything is changed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from types import MappingProxyType
from typing import Any, Final, Literal, TypeGuard, get_args

from ..errors import ArgumentError, Reason, bad_argument, nearest_names
from ..support.advice import translated
from .parameters import NONE, Choice, Integer, Seconds, Switch, Text, is_integer
from .parameters import ParameterKind as Takes

Kind = Literal["integer", "choice", "boolean", "text", "name", "names", "seconds"]
ChangedBy = Literal["create", "alter", "set"]
Change = Literal["alter", "set"]

NAME_LENGTH_MAX: Final = 48
DESCRIPTION_LENGTH_MAX: Final = 64
COUNT_MAX: Final = 999_999_999
NAME: Final = re.compile(r"[A-Za-z0-9./_%]+")
NAMES_ALLOWED: Final = "1 to {} characters out of A-Z a-z 0-9 . / _ %"
LIST_LENGTH_MAX: Final = 10_000
CONTROL_CATEGORIES: Final = frozenset({"Cc", "Cs"})  # control characters, and surrogates, which UTF-8 cannot store


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """One attribute: its names, its allowed values, and how it may be changed.

    ``minimum`` and ``maximum`` are the bounds of an integer. Seconds must be above the minimum. For a name the minimum
    is the shortest length. ``max_length`` counts the characters of a text or name; a ``hexadecimal`` text has
    exactly this many, or none. ``changed_by`` is "create" (fixed once the object is made), "alter", or "set" (altered,
    or set through a handle).

    ``mq_name`` and ``selector`` are its names in MQINQ and MQSET. ``mq_values`` are MQ's values for each choice, or for
    True and False; without them both use the same values. See ``selecting``.

    ``mqsc`` is its keyword in MQSC: MQ's, or our own where MQ has no such attribute. ``mqsc_words`` are the words in
    parentheses after the keyword, for each choice or for True and False; a boolean without words is written KEYWORD or
    NOKEYWORD. ``mqsc_per_second`` is the keyword's unit for seconds, and ``mqsc_none`` the word for None.
    """

    name: str
    doc: str
    kind: Kind
    applies_to: frozenset[str]
    mqsc: str
    mqsc_words: tuple[str, ...] = ()
    mqsc_per_second: int = 1
    mqsc_none: str = "NOLIMIT"
    default: object = None
    mq_name: str | None = None
    selector: int | None = None
    mq_values: tuple[int, ...] = ()
    minimum: float = 0
    maximum: float = 0
    choices: tuple[str, ...] = ()
    max_length: int = 0
    hexadecimal: bool = False
    changed_by: ChangedBy = "alter"
    reason: Reason = Reason.ARGUMENT_ERROR
    takes: Takes[Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "takes", _takes(self))

    def check(self, value: object) -> Any:
        """Checks a value and returns it in the form in which it is stored.

        Raises: ArgumentError, if the value is not allowed; with MQ's reason for this attribute, or 9017.
        """
        return self.takes.check(self.name, value)

    def to_mq(self, value: Any) -> Any:
        """Translates our value to MQ's."""
        return self.mq_values[self._ours.index(value)] if self.mq_values else value

    def from_mq(self, value: object) -> Any:
        """Translates MQ's value to ours. Raises ArgumentError with MQ's reason, or 9017."""
        if not self.mq_values:
            return value
        if not is_integer(value) or value not in self.mq_values:
            allowed = " or ".join(f"{each} ({self.name}={self.from_mq(each)!r})" for each in self.mq_values)
            raise bad_argument(self.mq_name or self.name, value, allowed, self.reason)
        return self._ours[self.mq_values.index(value)]

    @property
    def allowed(self) -> str:
        """The allowed values in words, to be read after "must be"."""
        return self.takes.allowed

    @property
    def _ours(self) -> tuple[object, ...]:
        return self.choices or (True, False)


def _takes(one: Attribute) -> Takes[Any]:
    """The kind of parameter that checks this attribute."""
    match one.kind:
        case "integer":
            return Integer(int(one.minimum), int(one.maximum), one.reason)
        case "choice":
            return Choice(one.choices, one.reason)
        case "boolean":
            return Switch(reason=one.reason)
        case "text" if one.hexadecimal:
            words = f"{one.max_length} hexadecimal digits in lower case, or ''"
            form = f"([0-9a-f]{{{one.max_length}}})?"
            return Text(one.max_length, one.reason, words=words, fits=lambda text: bool(re.fullmatch(form, text)))
        case "text":
            words = f"a text of at most {one.max_length} characters without control characters"
            return Text(one.max_length, one.reason, words=words, fits=_is_plain)
        case "name":
            words = NAMES_ALLOWED.format(one.max_length) + ("" if one.minimum else ", or ''")
            return Text(one.max_length, one.reason, words=words, fits=is_name if one.minimum else _is_name_or_empty)
        case "names":
            return NameList(one.max_length, one.reason)
        case "seconds":
            return Seconds(one.minimum, one.maximum, one.reason, above=True, also=NONE)


class NameList(Text):
    """Names with commas between them; each is kept once."""

    __slots__ = ()

    def __init__(self, most: int, reason: Reason) -> None:
        words = f"names with commas between them, each {NAMES_ALLOWED.format(NAME_LENGTH_MAX)}, or ''"
        super().__init__(most, reason, words=words, fits=lambda text: all(map(is_name, names_in(text))))

    def check(self, name: str, value: Any) -> Any:
        return ",".join(names_in(super().check(name, value)))


def names_in(text: str) -> tuple[str, ...]:
    """The names in a list of names, without repeats."""
    return tuple(dict.fromkeys(one.strip() for one in text.split(",") if one.strip()))


def name_made_of(text: str) -> str:
    """Makes a valid name for a queue manager from the name of a file or schema."""
    return re.sub(r"[^A-Za-z0-9./_%]", "_", text)[:NAME_LENGTH_MAX] or "INORDER"


def check_queue_name(name: object, *, argument: str = "name", reason: Reason = Reason.ARGUMENT_ERROR) -> str:
    """Checks the name of a queue or queue manager and returns it.

    Args:
        name: 1 to 48 characters from A-Z a-z 0-9 . / _ %
        argument: the caller's name for this argument.
        reason: MQ's reason, if it has one (2011 for dynamic names).

    Raises: ArgumentError, if the name is not valid.
    """
    if not is_name(name):
        raise bad_argument(argument, name, NAMES_ALLOWED.format(NAME_LENGTH_MAX), reason)
    return str.__str__(name)


def is_name(value: object) -> TypeGuard[str]:
    """Whether this is a valid name for a queue or a queue manager."""
    return isinstance(value, str) and len(value) <= NAME_LENGTH_MAX and NAME.fullmatch(value) is not None


def _is_name_or_empty(text: str) -> bool:
    return not text or is_name(text)


def _is_plain(text: str) -> bool:
    return not any(unicodedata.category(each) in CONTROL_CATEGORIES for each in text)


# ---- declaring


def _about(kind: Kind, mq: str | None, selector: int | None, doc: str, **more: object) -> dict[str, Any]:
    """The metadata of a field; MQ's name and selector come from mq-semantics 4.1."""
    return {"kind": kind, "mq_name": mq, "selector": selector, "doc": doc, **more}


def integers(low: int, high: int, mq: str | None, selector: int | None, doc: str, **more: object) -> dict[str, Any]:
    """An integer in this range."""
    return _about("integer", mq, selector, doc, minimum=low, maximum=high, **more)


def choices(of: Any, mq: str | None, selector: int | None, doc: str, **more: object) -> dict[str, Any]:
    """One of the words of a literal type."""
    return _about("choice", mq, selector, doc, choices=get_args(of), **more)


def booleans(mq: str | None, selector: int | None, doc: str, **more: object) -> dict[str, Any]:
    """True or False."""
    return _about("boolean", mq, selector, doc, **more)


def texts(mq: str, selector: int, doc: str, max_length: int = DESCRIPTION_LENGTH_MAX, **more: object) -> dict[str, Any]:
    """A text with at most this many characters."""
    return _about("text", mq, selector, doc, max_length=max_length, **more)


def names(shortest: int, mq: str | None, selector: int | None, doc: str, **more: object) -> dict[str, Any]:
    """The name of an object; with `shortest` 0 it may be empty."""
    return _about("name", mq, selector, doc, minimum=shortest, max_length=NAME_LENGTH_MAX, **more)


def lists(doc: str, **more: object) -> dict[str, Any]:
    """Names of objects, with commas between them; MQ has no such attribute."""
    return _about("names", None, None, doc, max_length=LIST_LENGTH_MAX, **more)


def seconds(high: float, mq: str | None, selector: int | None, doc: str, **more: object) -> dict[str, Any]:
    """A number of seconds above 0 and up to `high`, or None."""
    return _about("seconds", mq, selector, doc, maximum=high, **more)


Table = Mapping[str, Attribute]


def table_of(declared: type[Any], applies_to: frozenset[str]) -> Table:
    """The attributes that a dataclass declares, by their names."""
    return MappingProxyType({each.name: _attribute(each, applies_to) for each in fields(declared)})


def _attribute(declared: Field[Any], applies_to: frozenset[str]) -> Attribute:
    default = None if declared.default is MISSING else declared.default
    return Attribute(**{"applies_to": applies_to, **declared.metadata}, name=declared.name, default=default)


# ---- checking

WHOSE: Final = {"sender": "a sender channel", "receiver": "a receiver channel"}  # others are types of queues

# The ways to set an attribute; what a later one can change, the earlier ones can set, too.
_WAYS: Final = ("create", "alter", "set")


def checked(table: Table, owner: str, by: str, given: Mapping[str, object]) -> dict[str, Any]:
    """Checks that this call may set these attributes of this owner, and returns the values as they are stored."""
    for name, value in given.items():
        _check_open(table, owner, by, name, value)
    return {name: table[name].takes.check(name, value) for name, value in given.items()}


def _check_open(table: Table, owner: str, by: str, name: str, value: object) -> None:
    if complaint := _complaint(table, owner, by, name):
        reason, text = complaint
        names = [each for each in table if not _complaint(table, owner, by, each)]
        nearest = [] if name in table else nearest_names(name, names)
        hint = f" (nearest: {', '.join(nearest)})" if nearest else ""
        if told := translated(name, names):
            hint = f": write {told}"
        data = {"argument": name, "value": value, "allowed": ", ".join(names), "nearest": nearest}
        raise ArgumentError(text + hint, reason=reason, **data)


def _complaint(table: Table, owner: str, by: str, name: str) -> tuple[Reason, str] | None:
    """The reason and the text if this attribute may not be named here at all, else None."""
    if name not in table:
        return Reason.SELECTOR_ERROR, f"there is no attribute {name!r}"
    if owner not in table[name].applies_to:
        whose = WHOSE.get(owner, f"a queue of type {owner!r}")
        return Reason.SELECTOR_NOT_FOR_TYPE, f"{whose} has no attribute {name!r}"
    if by not in _WAYS[: _WAYS.index(changed_by(table[name], owner)) + 1]:
        way = "changed after creation" if by == "alter" else "set through a handle"
        return Reason.SELECTOR_ERROR, f"attribute {name!r} cannot be {way}"
    return None


def changed_by(attribute: Attribute, owner: str) -> ChangedBy:
    """When this attribute of this type of queue, or of "manager", can be changed.

    The definition type of a queue is fixed when the queue is created; that of a model can be altered.
    """
    return "alter" if (owner, attribute.name) == ("model", "definition_type") else attribute.changed_by
