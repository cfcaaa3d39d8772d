"""Compares the answers of two stores.

Values agree if they are equal, except those that a store may choose: generated ids, tokens, unique ids, lock ids, the
names of dynamic queues, numbers of connections, incarnations. Each store has its own. Two of them are paired when they
are first seen together; from then on they must always be seen together, in both directions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

from inorder import InorderError, Message, UniqueId
from inorder.client.inspection import Unit
from inorder.client.listening import Registration
from inorder.client.programs import user_name
from inorder.client.queue import Queue
from inorder.model.properties import Properties
from inorder.rules.authorities import LAUNCH_TOKEN
from inorder.rules.browse_token import Resumed, decode
from inorder.rules.ordering import Cursor, Pending
from inorder.stores.seam.records import Locked
from inorder.stores.seam.views import LockView, Position

GENERATED_ID = b"AMQ "
GENERATED_NAME = re.compile(r"\b(?:AMQ|DYN)\.[0-9A-F]+")  # of a dynamic queue; also inside a text
ID_LENGTH, TOKEN_LENGTH = 24, 16
LEFT, RIGHT = 0, 1


class Differs(AssertionError):
    """The two stores answered differently."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A call that raised, with the error that its caller sees."""

    error: type[BaseException]
    reason: Any
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Returned:
    """A call that returned."""

    value: Any


Outcome = Failed | Returned


def failed(error: BaseException) -> Failed:
    if isinstance(error, InorderError):
        return Failed(type(error), error.reason, error.data)
    return Failed(type(error), None, {})


class Pairs:
    """The pairs of values of the left store and of the right one."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[dict[Any, Any], dict[Any, Any]]] = {}

    def right_of(self, kind: str, left: Any) -> Any:
        """The right store's value, or the left one's if no pair is known."""
        return self._known.get(kind, ({}, {}))[LEFT].get(left, left)

    def learn(self, kind: str, left: Any, right: Any) -> None:
        """Pairs the values. Raises: Differs, one of them has another partner."""
        forth, back = self._known.setdefault(kind, ({}, {}))
        if forth.setdefault(left, right) != right or back.setdefault(right, left) != left:
            raise Differs(f"{kind}: {left!r} has stood for {forth[left]!r}, and {right!r} for {back.get(right)!r}")

    # --- comparing

    def check(self, left: Any, right: Any, where: str = "") -> None:
        """Raises: Differs, at the first place where the answers disagree."""
        for kind, compare in _COMPARISONS.items():
            if isinstance(left, kind) and isinstance(right, kind):
                compare(self, left, right, where)
                return
        if type(left) is not type(right):
            raise Differs(f"{where}: {left!r} or {right!r}")
        if is_dataclass(left) and not isinstance(left, type):
            names = [one.name for one in fields(left)]
            self._each(((name, getattr(left, name), getattr(right, name)) for name in names), where)
        else:
            self._value(left, right, where)

    def _value(self, left: Any, right: Any, where: str) -> None:
        if left != right or type(left) is not type(right):
            raise Differs(f"{where}: {left!r} or {right!r}")

    def _each(self, parts: Iterable[tuple[str, Any, Any]], where: str) -> None:
        for name, left, right in parts:
            self.check(left, right, f"{where}.{name}")

    def _message(self, left: Message, right: Message, where: str) -> None:
        self._each(((name, value, getattr(right, name)) for name, value in left.fields()), where)

    def _properties(self, left: Properties, right: Properties, where: str) -> None:
        self._value(left.text, right.text, where)  # as text, since 1 == 1.0 == True

    def _unique_id(self, left: UniqueId, right: UniqueId, where: str) -> None:
        if left.origin != right.origin:
            raise Differs(f"{where}: {left!r} or {right!r}")
        self.learn("uid", left, right)

    def _octets(self, left: bytes, right: bytes, where: str) -> None:
        generated = len(left) == len(right) == ID_LENGTH and left.startswith(GENERATED_ID)
        if generated and right.startswith(GENERATED_ID):
            self.learn("id", left, right)
        elif len(left) == len(right) == TOKEN_LENGTH and where.endswith("token"):
            self.learn("token", left, right)
        elif left != right:
            raise Differs(f"{where}: {left!r} or {right!r}")

    def _text(self, left: str, right: str, where: str) -> None:
        if where.endswith("data.token"):  # a browse token, on an error
            self.check(decode(left), decode(right), where)
        elif right == LAUNCH_TOKEN and where.endswith((".user", ".user_identifier")):  # of a store elsewhere
            self.learn("user", left, right)
        elif f"user {LAUNCH_TOKEN} " in right:  # in the text of an error
            self._text(left, right.replace(f"user {LAUNCH_TOKEN} ", f"user {user_name()} "), where)
        elif GENERATED_NAME.split(left) == GENERATED_NAME.split(right):
            for name, other in zip(GENERATED_NAME.findall(left), GENERATED_NAME.findall(right), strict=True):
                self.learn("queue", name, other)
        elif self.right_of("lock", left) != right:
            raise Differs(f"{where}: {left!r} or {right!r}")

    def _locked(self, left: Locked, right: Locked, where: str) -> None:
        self.check(left.messages, right.messages, where)
        self.learn("lock", left.lock_id, right.lock_id)
        self.learn("lock", str(left.lock_id), str(right.lock_id))  # the unit has this name

    def _pending(self, left: Pending, right: Pending, where: str) -> None:
        if left.holder is not None and right.holder is not None:
            self.learn("connection", left.holder, right.holder)
            right = right._replace(holder=left.holder)
        self._items(left, right, where)

    def _cursor(self, left: Cursor, right: Cursor, where: str) -> None:
        if left.number is not None and right.number is not None:
            self.learn("row", left.number, right.number)
            right = right._replace(number=left.number)
        self._items(left, right, where)

    def _resumed(self, left: Resumed, right: Resumed, where: str) -> None:
        self.learn("incarnation", left.incarnation, right.incarnation)
        self._items(left, right._replace(incarnation=left.incarnation), where)

    def _position(self, left: Position, right: Position, where: str) -> None:
        if left.number and right.number:
            self.learn("row", left.number, right.number)
            right = right._replace(number=left.number)
        self._items(left, right, where)

    def _items(self, left: Sequence[Any], right: Sequence[Any], where: str) -> None:
        if len(left) != len(right):
            raise Differs(f"{where}: {list(left)} or {list(right)}")
        names = getattr(left, "_fields", range(len(left)))
        self._each(((str(name), a, b) for name, a, b in zip(names, left, right, strict=True)), where)

    def _number(self, left: int, right: int, where: str) -> None:
        if where.endswith(".connection"):
            self.learn("connection", left, right)
        elif left != right and not (where.endswith("lock_id") and self.right_of("lock", left) == right):
            raise Differs(f"{where}: {left!r} or {right!r}")

    def _list(self, left: Sequence[Any], right: Sequence[Any], where: str) -> None:
        key = next(
            (key for kind, key in _ANY_ORDER.items() if all(isinstance(one, kind) for one in [*left, *right])), None
        )
        if left and key is not None:
            left = sorted(left, key=lambda one: key(self, one, LEFT))
            right = sorted(right, key=lambda one: key(self, one, RIGHT))
        self._items(left, right, where)

    def _unit_key(self, unit: Unit, side: int) -> tuple[Any, ...]:
        back = self._known.get("lock", ({}, {}))[RIGHT]
        name = back.get(unit.name, unit.name) if side == RIGHT and unit.kind == "lock" else unit.name
        return unit.started_at, unit.kind, unit.queue, name, unit.program.name, unit.puts, unit.gets

    def _lock_key(self, lock: LockView, side: int) -> tuple[Any, ...]:
        back = self._known.get("lock", ({}, {}))[RIGHT]
        lock_id = back.get(lock.lock_id, lock.lock_id) if side == RIGHT else lock.lock_id
        return lock.since, lock.queue, lock.kind, lock_id or 0, lock.connection or 0

    def _mapping(self, left: Mapping[str, Any], right: Mapping[str, Any], where: str) -> None:
        if left.keys() != right.keys():
            raise Differs(f"{where}: {left!r} or {right!r}")
        self._each(((name, value, right[name]) for name, value in left.items() if name != "nearest"), where)

    def _handles(self, left: set[int], right: set[int], where: str) -> None:
        """Compares numbers of handles by their count alone: no other answer shows them."""
        if len(left) != len(right):
            raise Differs(f"{where}: {left!r} or {right!r}")

    def _error(self, left: InorderError, right: InorderError, where: str) -> None:
        """Compares errors inside answers."""
        self.check(failed(left), failed(right), where)

    def _nothing(self, left: Any, right: Any, where: str) -> None:
        """Accepts objects of the library that have no value of their own."""


# Views of one moment may be listed in any order.
_ANY_ORDER: Mapping[type[Any], Any] = {Unit: Pairs._unit_key, LockView: Pairs._lock_key}

# The first line whose type matches both sides compares them.
_COMPARISONS: Mapping[Any, Any] = {
    Message: Pairs._message,
    InorderError: Pairs._error,
    set: Pairs._handles,
    UniqueId: Pairs._unique_id,
    Locked: Pairs._locked,
    Pending: Pairs._pending,
    Cursor: Pairs._cursor,
    Position: Pairs._position,
    Resumed: Pairs._resumed,
    Properties: Pairs._properties,
    (Queue, Registration): Pairs._nothing,
    (bool, Enum): Pairs._value,
    int: Pairs._number,
    bytes: Pairs._octets,
    str: Pairs._text,
    tuple: Pairs._items,
    list: Pairs._list,
    Mapping: Pairs._mapping,
}
