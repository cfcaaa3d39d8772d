"""Names of attributes in inquire and set: our name, MQ's name or MQ's number.

The names and numbers of MQ come from the tables in `attributes`. If a program inquires or sets with MQ's names or
numbers, it also uses MQ's values, and so can compare with MQ's constants: InhibitGet (9) is 1 where `get_allowed` is
False.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from types import MappingProxyType
from typing import Any, Final

from ..errors import ArgumentError, Reason, bad_argument
from ..support.advice import unknown_name
from .attributes import QUEUE_ATTRIBUTES, READABLE, QueueAttributes, QueueStatus, QueueType

Selector = str | int
NO_CHANGES: Final[Mapping[Selector, object]] = MappingProxyType({})


def _words_of_mq() -> Iterator[tuple[Selector, str]]:
    for name, attribute in QUEUE_ATTRIBUTES.items():
        yield from ((word, name) for word in (attribute.mq_name, attribute.selector) if word is not None)
    for each in fields(QueueStatus):
        yield from ((word, each.name) for word in each.metadata.values())


OURS: Final = frozenset(QUEUE_ATTRIBUTES.keys() | set(QueueStatus.__slots__))
BY_MQ: Final[Mapping[Selector, str]] = MappingProxyType(dict(_words_of_mq()))
"""Our name for each of MQ's names and numbers."""


def inquired(
    attributes: QueueAttributes, ask_status: Callable[[], QueueStatus], selectors: Sequence[Selector]
) -> dict[Selector, Any]:
    """The values of the selected attributes, keyed by the selectors given; without selectors, all values by our names.

    Args:
        ask_status: a function that reads the status; called only if the status is needed.
        selectors: attributes, and for local queues and aliases also fields of the status.

    Raises ArgumentError 2067 if there is no such selector; 2068 if it is in the status of another type of queue.
    """
    has_status = attributes.type in ("local", "alias") or attributes.mode == "synchronous"
    if not selectors:
        selectors = [*_names_of(attributes.type), *(QueueStatus.__slots__ if has_status else ())]
    names = [_known(selector) for selector in selectors]
    _check_type(attributes, zip(selectors, names, strict=True))
    of_status = [selector for selector, name in zip(selectors, names, strict=True) if name not in QUEUE_ATTRIBUTES]
    if of_status and not has_status:
        allowed = f"one that a queue of type {attributes.type} has"
        raise bad_argument("selector", of_status[0], allowed, Reason.SELECTOR_NOT_FOR_TYPE)
    status = ask_status() if of_status else None
    return {
        selector: _value(selector, name, attributes if name in QUEUE_ATTRIBUTES else status)
        for selector, name in zip(selectors, names, strict=True)
    }


def _names_of(kind: QueueType) -> list[str]:
    """The attributes of a queue of this type. Aliases and models have all, though some have no effect there."""
    return [name for name, one in QUEUE_ATTRIBUTES.items() if kind in READABLE or kind in one.applies_to]


def _check_type(attributes: QueueAttributes, asked: Iterable[tuple[Selector, str]]) -> None:
    names = {*_names_of(attributes.type), *QueueStatus.__slots__}
    for selector, name in asked:
        if name not in names:
            allowed = f"one that a queue of type {attributes.type} has"
            raise bad_argument("selector", selector, allowed, Reason.SELECTOR_NOT_FOR_TYPE)


def _value(selector: Selector, name: str, told: object) -> Any:
    value, attribute = getattr(told, name), QUEUE_ATTRIBUTES.get(name)
    return value if selector == name or attribute is None else attribute.to_mq(value)


def _known(selector: object) -> str:
    """Our name for a selector."""
    if isinstance(selector, str) and selector in OURS:
        return selector
    if isinstance(selector, str | int) and not isinstance(selector, bool) and selector in BY_MQ:
        return BY_MQ[selector]
    raise _unknown(selector)


def _unknown(selector: object) -> ArgumentError:
    if isinstance(selector, str):
        names = OURS | {word for word in BY_MQ if isinstance(word, str)}
        return unknown_name("selector", selector, names, Reason.SELECTOR_ERROR)
    numbers = sorted(word for word in BY_MQ if isinstance(word, int))
    allowed = f"a name, or one of: {', '.join(map(str, numbers))}"
    return bad_argument("selector", selector, allowed, Reason.SELECTOR_ERROR)


def in_our_words(changes: Mapping[Selector, object], named: Mapping[str, object]) -> dict[str, Any]:
    """The attributes to set, by our names and in our values. Unknown names are left for the table of attributes to
    refuse.

    Args:
        changes, named: by any selector; in MQ's values if it is MQ's.

    Raises ArgumentError 2067 for an unknown number, or for an attribute that is named twice; for a value that MQ does
    not know, with the attribute's reason.
    """
    if not isinstance(changes, Mapping):
        raise bad_argument("changes", changes, "a mapping of selectors to values")
    found: dict[str, Any] = {}
    for selector, value in (*changes.items(), *named.items()):
        is_unknown_name = isinstance(selector, str) and selector not in BY_MQ
        name = str(selector) if is_unknown_name else _known(selector)
        if name in found:
            raise bad_argument("selector", selector, "an attribute that is given only once", Reason.SELECTOR_ERROR)
        attribute = QUEUE_ATTRIBUTES.get(name)
        is_in_mq = selector != name and attribute is not None and attribute.changed_by == "set"
        found[name] = attribute.from_mq(value) if attribute is not None and is_in_mq else value
    return found
