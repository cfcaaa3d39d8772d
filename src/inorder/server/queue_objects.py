"""A queue in version 1 of IBM's administration interface: nested objects, with names that differ from MQSC's.

`inorder.mq.words` gives the place of each attribute, with the names in IBM's own answers, and
`inorder.model.attributes` has the values and their checks. Our attributes without such a name are in `runCommandJSON`,
which has all attributes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..model.attributes import QUEUE_ATTRIBUTES, QueueAttributes, QueueStatus
from ..model.parameters import one_of
from ..mq import words
from ..stores.seam.damage import utc


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributePlace:
    """The place of an attribute.

    Args:
        group, name: as in storage.maximumDepth.
        words: IBM's value for each of ours; empty: the values are the same.
    """

    group: str
    name: str
    words: Mapping[object, object]


CONTRARY: Final[Mapping[object, object]] = {True: False, False: True}
VALUES: Final[Mapping[str, Mapping[object, object]]] = {  # IBM's value for each of ours, if they differ
    "put_allowed": CONTRARY,
    "get_allowed": CONTRARY,
    "usage": {"normal": False, "transmission": True},
    "default_persistence": {True: "persistent", False: "nonPersistent"},
    "default_input": {"shared": True, "exclusive": False},
}


def _places() -> Iterator[tuple[str, AttributePlace]]:
    by_keyword = {each.mqsc: name for name, each in QUEUE_ATTRIBUTES.items()}
    for keyword, path in words.paths().items():
        (group, _, name), attribute = path.partition("."), by_keyword[keyword]
        yield attribute, AttributePlace(group=group, name=name, words=VALUES.get(attribute, {}))


PLACES: Final[Mapping[str, AttributePlace]] = dict(_places())
ALWAYS: Final = ("alias", "remote")  # groups in each answer about a queue that has them
TIMESTAMPS: Final = ("created", "altered")
STATUS: Final[Mapping[str, Callable[[QueueStatus, int], int | str]]] = {
    "currentDepth": lambda status, _: status.current_depth,
    "openInputCount": lambda status, _: status.open_input_count,
    "openOutputCount": lambda status, _: status.open_output_count,
    "uncommittedMessages": lambda status, _: status.uncommitted,
    "oldestMessageAge": lambda _, age: age,
    "lastGet": lambda *_: "",  # the store does not record it; MQ without monitoring, MONQ(OFF), gives the same answer
    "lastPut": lambda *_: "",
}
AGE: Final = "status.oldestMessageAge"
GROUPS: Final = tuple(dict.fromkeys([*(place.group for place in PLACES.values()), "timestamps"]))
PATHS: Final = frozenset(
    {*(f"{place.group}.{place.name}" for place in PLACES.values()), *(f"timestamps.{name}" for name in TIMESTAMPS)}
)


def wanted(asked: str | None, groups: tuple[str, ...], paths: frozenset[str]) -> frozenset[str]:
    """The paths of the attributes in a query. Raises: ValueError, if there is no such attribute."""
    found: set[str] = set()
    for word in asked.split(",") if asked is not None else ():
        if word == "*":
            found |= paths
        elif word in groups:
            found |= {path for path in paths if path.startswith(f"{word}.")}
        elif word in paths:
            found.add(word)
        else:
            raise ValueError(f"must be {one_of(('*', *groups, *sorted(paths)))}, not {word!r}")
    return frozenset(found)


def object_of(queue: QueueAttributes, paths: frozenset[str], status: QueueStatus | None) -> dict[str, Any]:
    """A queue as JSON, with the attributes at these paths."""
    found: dict[str, Any] = {"name": queue.name, "type": queue.type}
    for attribute, place in PLACES.items():
        if queue.type not in QUEUE_ATTRIBUTES[attribute].applies_to:
            continue
        if f"{place.group}.{place.name}" in paths or place.group in ALWAYS:
            value = getattr(queue, attribute)
            found.setdefault(place.group, {})[place.name] = place.words.get(value, value) if place.words else value
    if status is not None:
        for name, at in zip(TIMESTAMPS, (status.created_at, status.altered_at), strict=True):
            if f"timestamps.{name}" in paths:
                found.setdefault("timestamps", {})[name] = f"{utc(at):%Y-%m-%dT%H:%M:%S.000Z}"
    return found


def status_of(status: QueueStatus, paths: frozenset[str], age: int) -> dict[str, int | str]:
    """The status of a queue as JSON, with the values at these paths. `age`: the age of its oldest message, in
    seconds.
    """
    return {name: value(status, age) for name, value in STATUS.items() if f"status.{name}" in paths}


def attributes_in(given: Mapping[str, Any]) -> dict[str, Any]:
    """Reads the attributes in a JSON object, by our names. Raises: ValueError, if there is no such attribute."""
    by_path = {(place.group, place.name): (attribute, place) for attribute, place in PLACES.items()}
    found: dict[str, Any] = {}
    for group, members in given.items():
        if not isinstance(members, dict):
            raise ValueError(f"{group} must be {one_of(GROUPS)}, and an object")
        for name, value in members.items():
            if (group, name) not in by_path:
                raise ValueError(f"{group}.{name} must be {one_of(sorted(PATHS))}")
            attribute, place = by_path[group, name]
            found[attribute] = _ours(f"{group}.{name}", place, value)
    return found


def _ours(path: str, place: AttributePlace, value: Any) -> Any:
    if not place.words:
        return value
    for ours, theirs in place.words.items():
        if value == theirs and type(value) is type(theirs):
            return ours
    raise ValueError(f"{path} must be {' or '.join(map(json.dumps, place.words.values()))}")
