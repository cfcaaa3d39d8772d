"""What a verb has changed is taken back if it fails: the memory store's transactions.

All that the store keeps is in objects and containers of the kinds below. While a `Changes` block runs on a thread,
each change notes how it is taken back; if the block ends with an exception that happens, the last change first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, SupportsIndex, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class _Running(threading.local):
    """The block that runs on this thread."""

    changes: Changes | None = None


_running = _Running()


class Changes:
    """A block in which everything changes, or nothing does."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], object]] = []
        self._copied: set[int] = set()

    def __enter__(self) -> Changes:
        self._before, _running.changes = _running.changes, self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _running.changes = self._before
        if error is not None:
            for step in reversed(self._steps):
                step()

    def keep(self) -> None:
        """What has changed so far is not taken back any more."""
        self._steps.clear()
        self._copied.clear()

    def note(self, step: Callable[[], object]) -> None:
        self._steps.append(step)

    def is_first_of(self, container: object) -> bool:
        """Whether this asks for the first time about a container, which is copied then."""
        is_first = id(container) not in self._copied
        self._copied.add(id(container))
        return is_first


class Undoable:
    """An object whose attributes are taken back."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        if (changes := _running.changes) is not None and hasattr(self, name):
            before, put_back = getattr(self, name), object.__setattr__
            changes.note(lambda: put_back(self, name, before))
        object.__setattr__(self, name, value)


class UndoList(list[V]):
    """A list that is taken back; it can do what the store needs."""

    __slots__ = ()

    def append(self, value: V, /) -> None:
        if (changes := _running.changes) is not None:
            changes.note(super().pop)
        super().append(value)

    def insert(self, index: SupportsIndex, value: V, /) -> None:
        if (changes := _running.changes) is not None:
            delete = super().__delitem__
            changes.note(lambda: delete(index))
        super().insert(index, value)

    def remove(self, value: V, /) -> None:
        del self[self.index(value)]

    def __delitem__(self, index: SupportsIndex | slice, /) -> None:
        assert not isinstance(index, slice)
        if (changes := _running.changes) is not None:
            value, insert = self[index], super().insert
            changes.note(lambda: insert(index, value))
        super().__delitem__(index)

    def extend(self, values: Iterable[V], /) -> None:
        for value in values:
            self.append(value)

    def clear(self) -> None:
        if (changes := _running.changes) is not None:
            before, extend = list(self), super().extend
            changes.note(lambda: extend(before))
        super().clear()


_NOTHING: Any = object()


class UndoDict(dict[K, V]):
    """A dict that is taken back, with the order of its keys; it can do what the store needs."""

    __slots__ = ()

    def _note_removal(self, key: K) -> None:
        if (changes := _running.changes) is not None and key in self and changes.is_first_of(self):
            before, clear, update = dict(self), super().clear, super().update
            changes.note(lambda: (clear(), update(before)))

    def __setitem__(self, key: K, value: V, /) -> None:
        if (changes := _running.changes) is not None:
            before, put, delete = self.get(key, _NOTHING), super().__setitem__, super().pop
            changes.note(lambda: delete(key, None) if before is _NOTHING else put(key, before))
        super().__setitem__(key, value)

    def __delitem__(self, key: K, /) -> None:
        self._note_removal(key)
        super().__delitem__(key)

    def pop(self, key: K, *default: Any) -> Any:
        self._note_removal(key)
        return super().pop(key, *default)

    def setdefault(self, key: K, default: V, /) -> V:
        if key not in self:
            self[key] = default
        return self[key]


class UndoIndex(UndoDict[K, V]):
    """The same where nobody asks for the order: nothing is copied."""

    __slots__ = ()

    def _note_removal(self, key: K) -> None:
        if (changes := _running.changes) is not None and key in self:
            value, put = self[key], super().__setitem__
            changes.note(lambda: put(key, value))


class UndoSet(set[V]):
    """A set that is taken back; it can do what the store needs."""

    __slots__ = ()

    def _note(self) -> None:
        if (changes := _running.changes) is not None:
            before, clear, update = set(self), super().clear, super().update
            changes.note(lambda: (clear(), update(before)))

    def add(self, value: V, /) -> None:
        self._note()
        super().add(value)

    def discard(self, value: object, /) -> None:
        self._note()
        super().discard(value)

    def clear(self) -> None:
        self._note()
        super().clear()


class Counter(Undoable):
    """Numbers from 1 on; those of a verb that failed come again."""

    def __init__(self) -> None:
        self.last = 0

    def __iter__(self) -> Counter:
        return self

    def __next__(self) -> int:
        self.last += 1
        return self.last
