"""Telling observers what happened, in the order in which it happened; for any store whose verbs run in threads.

A verb appends its changes while it holds the store's lock, so that they stand in the order of the verbs. It tells
them after it has let go of the lock, so that an observer may call the store. One thread tells at a time; another
that comes meanwhile, or an observer whose own call brings changes, leaves them to the one that is telling.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from ..rules.puts import Program
from .base import Change, Observer

log = logging.getLogger("inorder.stores")
T = TypeVar("T")


class Teller:
    """The observers of a store, and the changes that they are still to be told of."""

    def __init__(self) -> None:
        self._observers: list[Observer] = []
        self._wants: list[Callable[[], bool]] = []
        self._heeds: list[Callable[[], bool]] = []
        self._changes: deque[Change] = deque()
        self._of_deaths: list[Callable[[Program], object]] = []
        self._telling = threading.Lock()

    def observe(self, observer: Observer, wants: Callable[[], bool] | None, heeds: Callable[[], bool] | None) -> None:
        self._observers.append(observer)
        self._heeds.append(heeds or _always)
        if wants is not None:
            self._wants.append(wants)

    def observe_deaths(self, observer: Callable[[Program], object]) -> None:
        self._of_deaths.append(observer)

    @property
    def is_heard(self) -> bool:
        """Whether any observer looks at changes now."""
        return any(heeds() for heeds in self._heeds)

    @property
    def is_watched(self) -> bool:
        """Whether any observer looks at messages now."""
        return any(wants() for wants in self._wants)

    def add(self, changes: Iterable[Change]) -> None:
        """These happened; the caller holds the lock under which they did."""
        self._changes.extend(changes)

    def tell(self) -> None:
        """Tells what has been added; what an observer raises is logged and reaches no caller of a verb."""
        # Asked again after each turn: a change may come when the last look is over and the turn is not.
        while self._changes and self._telling.acquire(blocking=False):
            try:
                while self._changes:
                    _tell(self._observers, self._changes.popleft())
            finally:
                self._telling.release()

    def tell_of_deaths(self, programs: Iterable[Program]) -> None:
        """Connections of dead processes were ended; called outside locks and transactions."""
        for program in programs:
            _tell(self._of_deaths, program)


def _tell(observers: Sequence[Callable[[T], object]], happened: T) -> None:
    for observer in list(observers):
        try:
            observer(happened)
        except Exception:
            log.exception("an observer failed; what it was told of has happened")


def _always() -> bool:
    return True
