"""What is known about one attribute of an object, and tables of them: of queues, the queue manager, processes.

A field of a dataclass is the declaration: its type and default are Python's, and its metadata, made by `texts`,
`integers` and the like, says what MQ calls it, which values it takes, and who may change it. `table_of` reads the
attributes off the fields, and `checked` checks values by a table, before anything is changed.
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

Kind = Literal["integer", "choice", "boolean", "text", "name", "seconds"]
ChangedBy = Literal["create", "alter", "set"]
Change = Literal["alter", "set"]

NAME_LENGTH_MAX: Final = 48
DESCRIPTION_LENGTH_MAX: Final = 64
COUNT_MAX: Final = 999_999_999
NAME: Final = re.compile(r"[A-Za-z0-9./_%]+")
NAMES_ALLOWED: Final = "1 to {} characters out of A-Z a-z 0-9 . / _ %"
CONTROL_CATEGORIES: Final = frozenset({"Cc", "Cs"})  # control characters, and halves that no file can hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """What is known about one attribute: its names, its values, and who may change it.

    ``minimum`` and ``maximum`` bound an integer, or the seconds, which lie above the minimum; for a name the
    minimum is the least length. ``max_length`` counts the characters of a text or name. ``changed_by`` is
    "create" (fixed once the object is made), "alter", or "set" (altered, or set through a handle).

    ``mq_name`` and ``selector`` are what MQINQ and MQSET call it, and ``mq_values`` is what they have for each choice,
    or for True and False; without them the values of a queue's attribute are the same in both. See ``selecting``.

    ``mqsc`` is its keyword in MQSC: MQ's, or our own where MQ has no such attribute. ``mqsc_words`` says what
    stands behind the keyword for each choice, or for True and False; a boolean without words is a switch, KEYWORD
    or NOKEYWORD. ``mqsc_per_second`` is the keyword's unit for seconds.
    """

    name: str
    doc: str
    kind: Kind
    applies_to: frozenset[str]
    mqsc: str
    mqsc_words: tuple[str, ...] = ()
    mqsc_per_second: int = 1
    default: object = None
    mq_name: str | None = None
    selector: int | None = None
    mq_values: tuple[int, ...] = ()
    minimum: float = 0
    maximum: float = 0
    choices: tuple[str, ...] = ()
    max_length: int = 0
    changed_by: ChangedBy = "alter"
    reason: Reason = Reason.ARGUMENT_ERROR
    takes: Takes[Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "takes", _takes(self))

    def check(self, value: object) -> Any:
        """The value as it is kept, if it is allowed.

        Raises:
            ArgumentError: it is not; with MQ's reason for this attribute, or 9017.
        """
        return self.takes.check(self.name, value)

    def to_mq(self, value: Any) -> Any:
        """MQ's value for one of ours."""
        return self.mq_values[self._ours.index(value)] if self.mq_values else value

    def from_mq(self, value: object) -> Any:
        """Our value for one of MQ's, where MQ has others. Raises: ArgumentError, with MQ's reason, or 9017."""
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
    """Which values an attribute takes."""
    match one.kind:
        case "integer":
            return Integer(int(one.minimum), int(one.maximum), one.reason)
        case "choice":
            return Choice(one.choices, one.reason)
        case "boolean":
            return Switch(reason=one.reason)
        case "text":
            words = f"a text of at most {one.max_length} characters without control characters"
            return Text(one.max_length, one.reason, words=words, fits=_is_plain)
        case "name":
            words = NAMES_ALLOWED.format(one.max_length) + ("" if one.minimum else ", or ''")
            return Text(one.max_length, one.reason, words=words, fits=is_name if one.minimum else _is_name_or_empty)
        case "seconds":
            return Seconds(one.minimum, one.maximum, one.reason, above=True, also=NONE)


def name_made_of(text: str) -> str:
    """A queue manager's name, made from the name of a file or schema."""
    return re.sub(r"[^A-Za-z0-9./_%]", "_", text)[:NAME_LENGTH_MAX] or "INORDER"


def check_queue_name(name: object, *, argument: str = "name", reason: Reason = Reason.ARGUMENT_ERROR) -> str:
    """The name, if a queue or a queue manager can have it.

    Args:
        name: 1 to 48 characters out of A-Z a-z 0-9 . / _ %
        argument: what the caller calls it.
        reason: MQ's reason, where there is one (2011 for dynamic names).

    Raises:
        ArgumentError: no queue can have this name.
    """
    if not is_name(name):
        raise bad_argument(argument, name, NAMES_ALLOWED.format(NAME_LENGTH_MAX), reason)
    return str.__str__(name)


def is_name(value: object) -> TypeGuard[str]:
    """Whether a queue or a queue manager can have this name."""
    return isinstance(value, str) and len(value) <= NAME_LENGTH_MAX and NAME.fullmatch(value) is not None


def _is_name_or_empty(text: str) -> bool:
    return not text or is_name(text)


def _is_plain(text: str) -> bool:
    return not any(unicodedata.category(each) in CONTROL_CATEGORIES for each in text)


# ---- declaring


def _about(kind: Kind, mq: str | None, selector: int | None, doc: str, **more: object) -> dict[str, Any]:
    """The metadata of a field; MQ's name and selector are those of mq-semantics 4.1."""
    return {"kind": kind, "mq_name": mq, "selector": selector, "doc": doc, **more}


def integers(low: int, high: int, mq: str | None, selector: int | None, doc: str, **more: object) -> dict[str, Any]:
    """An integer in this range."""
    return _about("integer", mq, selector, doc, minimum=low, maximum=high, **more)


def choices(of: Any, mq: str | None, selector: int | None, doc: str, **more: object) -> dict[str, Any]:
    """One of the words of a literal type."""
    return _about("choice", mq, selector, doc, choices=get_args(of), **more)


def booleans(mq: str, selector: int, doc: str, **more: object) -> dict[str, Any]:
    """True or False."""
    return _about("boolean", mq, selector, doc, **more)


def texts(mq: str, selector: int, doc: str, max_length: int = DESCRIPTION_LENGTH_MAX, **more: object) -> dict[str, Any]:
    """A text of at most so many characters."""
    return _about("text", mq, selector, doc, max_length=max_length, **more)


def names(shortest: int, mq: str | None, selector: int | None, doc: str, **more: object) -> dict[str, Any]:
    """The name of an object; `shortest` 0: or an empty one."""
    return _about("name", mq, selector, doc, minimum=shortest, max_length=NAME_LENGTH_MAX, **more)


def seconds(high: float, mq: str | None, selector: int | None, doc: str, **more: object) -> dict[str, Any]:
    """Seconds above 0 and up to this many, or None."""
    return _about("seconds", mq, selector, doc, maximum=high, **more)


Table = Mapping[str, Attribute]


def table_of(declared: type[Any], applies_to: frozenset[str]) -> Table:
    """The attributes that a dataclass declares, by their names."""
    return MappingProxyType({each.name: _attribute(each, applies_to) for each in fields(declared)})


def _attribute(declared: Field[Any], applies_to: frozenset[str]) -> Attribute:
    default = None if declared.default is MISSING else declared.default
    return Attribute(**{"applies_to": applies_to, **declared.metadata}, name=declared.name, default=default)


# ---- checking

# By what an attribute can be given, for each value of ``changed_by``.
_OPEN_TO: Final[Mapping[ChangedBy, frozenset[str]]] = MappingProxyType(
    {
        "create": frozenset({"create"}),
        "alter": frozenset({"create", "alter"}),
        "set": frozenset({"create", "alter", "set"}),
    }
)


def checked(table: Table, owner: str, by: str, given: Mapping[str, object]) -> dict[str, Any]:
    """The values as they are kept, each of an attribute that its owner has and that this call may give."""
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
    """What is wrong with naming this attribute at all."""
    if name not in table:
        return Reason.SELECTOR_ERROR, f"there is no attribute {name!r}"
    if owner not in table[name].applies_to:
        return Reason.SELECTOR_NOT_FOR_TYPE, f"a queue of type {owner!r} has no attribute {name!r}"
    if by not in _OPEN_TO[changed_by(table[name], owner)]:
        way = "changed after creation" if by == "alter" else "set through a handle"
        return Reason.SELECTOR_ERROR, f"attribute {name!r} cannot be {way}"
    return None


def changed_by(attribute: Attribute, owner: str) -> ChangedBy:
    """By what this attribute of this type of queue, or of "manager", can be changed at most.

    How a queue came to be is history; what a model makes is a choice.
    """
    return "alter" if (owner, attribute.name) == ("model", "definition_type") else attribute.changed_by
