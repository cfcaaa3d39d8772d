"""Events: every call on the store, every wait, and what the store did beside its calls, told to observers.

The verbs of `stores.base.Store` are the one seam that all work passes, over whichever store. `Reporting` stands before
a store and hands each verb on; if anybody observes, it then reports one event. What an event of a verb measures and
names stands in the table `VERBS` (`telemetry_verbs.py`), the other events in `OTHERS`; docs/reference/events.md shows
both.

An observer is called on the thread that made the call, when the verb is over: after its transaction, when what it
promised is on disk, and before the program gets its answer. No transaction is open then, and no lock of the store or
of the waiting room is held. The connection itself is still inside its call, so an observer that asks the queue manager
has a connection of its own; such calls report nothing. What an observer raises is logged, and changes nothing.

While nobody observes, a verb costs one more call of a function.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final, cast

from .errors import InorderError, Reason, bad_argument
from .options import OpenOptions
from .rules.puts import Program
from .stores.base import Change, Opened, Store
from .telemetry_verbs import PAGED, SILENT, VERBS, Call, Verb

log = logging.getLogger("inorder.telemetry")

PREFIX: Final = "inorder."
COMMON_KEYS: Final = ("store", "manager")  # of every event
CALL_KEYS: Final = ("completion", "reason", "reason_name", "error")  # of every event of a verb; see `_failure`

OTHERS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {  # measurements and keys, beside COMMON_KEYS
    "wait_began": ((), ("queue", "browse")),
    "wait_ended": (("seconds",), ("queue", "browse", "found")),
    "expired": (("messages",), ("queue",)),
    "dead_connection": ((), ("program", "user")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreEvent:
    """Something that happened at the store.

    Args:
        name: "inorder.put", "inorder.get" ...; docs/reference/events.md lists them.
        measurements: numbers, by name: "seconds", "messages", "bytes" ...
        metadata: what it is about: "queue", "completion", "reason_name" ...
    """

    name: str
    measurements: Mapping[str, float] = field(default_factory=dict)
    metadata: Mapping[str, object] = field(default_factory=dict)


StoreObserver = Callable[[StoreEvent], object]


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """An observer that is told of events; `cancel` ends it."""

    observer: StoreObserver
    telemetry: Telemetry

    def cancel(self) -> None:
        """The observer is told nothing from now on. Harmless when repeated."""
        self.telemetry.cancel(self)


class Telemetry:
    """The observers of one store in this process, and how they are told."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._telling = threading.local()
        self._common: dict[str, object] = {}
        self.observations: tuple[Observation, ...] = ()
        store.observe(self._changed, heeds=lambda: False)  # but for what was discarded
        store.observe_deaths(self._died)

    def observe(self, observer: StoreObserver) -> Observation:
        """Raises: ArgumentError, `observer` cannot be called."""
        if not callable(observer):
            raise bad_argument("observer", observer, "something that can be called", Reason.OPTIONS_ERROR)
        if not self._common:
            self._common = {"store": self._store.path, "manager": self._store.manager().name}
        observation = Observation(observer, self)
        with self._lock:
            self.observations = (*self.observations, observation)
        return observation

    def cancel(self, observation: Observation) -> None:
        with self._lock:
            self.observations = tuple(one for one in self.observations if one is not observation)

    def close(self) -> None:
        """The last connection has ended: nobody observes any more."""
        with self._lock:
            self.observations = ()

    @property
    def is_heard(self) -> bool:
        """Whether this thread's calls are to be reported: somebody observes, and this is not an observer's own call."""
        return bool(self.observations) and not getattr(self._telling, "on", False)

    def report(self, event: str, measurements: Mapping[str, float], metadata: Mapping[str, object]) -> None:
        """Tells every observer; what one raises is logged."""
        if not self.is_heard:
            return
        told = StoreEvent(name=PREFIX + event, measurements=measurements, metadata={**self._common, **metadata})
        self._telling.on = True
        try:
            for one in self.observations:
                _tell(one.observer, told)
        finally:
            self._telling.on = False

    # --- what the store says beside its answers

    def _changed(self, change: Change) -> None:
        if change.discarded:
            self.report("expired", {"messages": change.discarded}, {"queue": change.queue})

    def _died(self, program: Program) -> None:
        self.report("dead_connection", {}, {"program": program.name, "user": program.user})


def _tell(observer: StoreObserver, event: StoreEvent) -> None:
    try:
        observer(event)
    except Exception:
        log.exception("an observer failed at %s; the call is as it was", event.name)


class Reporting:
    """A store that reports its verbs. It is made to be used as a `Store`: see `reported`."""

    def __init__(self, store: Store, telemetry: Telemetry) -> None:
        self._store, self._telemetry = store, telemetry
        self._queue_by_handle: dict[int, str] = {}  # by open handle
        self._owner_by_handle: dict[int, int] = {}

    def __getattr__(self, name: str) -> Any:
        # What is no verb of the table: the clock, what connections share, and SILENT.
        return getattr(self._store, name)

    # --- handles are numbers in most verbs; observers want to know which queue

    def open(self, owner: int, queue: str, options: OpenOptions, *, dynamic_name: str = "*") -> Opened:
        opened: Opened = self._open(owner, queue, options, dynamic_name=dynamic_name)
        self._queue_by_handle[opened.handle] = opened.queue
        self._owner_by_handle[opened.handle] = owner
        return opened

    def close(self, handle: int, *, delete: bool = False, purge: bool = False) -> None:
        self._close(handle, delete=delete, purge=purge)
        self._forget(handle)

    def disconnect(self, owner: int) -> None:
        self._disconnect(owner)
        for handle in [handle for handle, whose in list(self._owner_by_handle.items()) if whose == owner]:
            self._forget(handle)

    def _forget(self, handle: int) -> None:
        self._queue_by_handle.pop(handle, None)
        self._owner_by_handle.pop(handle, None)

    # --- one call

    def _timed(self, name: str, verb: Verb, arguments: dict[str, Any], call: Callable[[], Any]) -> Any:
        made = Call(arguments, None, self._queue_by_handle)
        began = perf_counter()
        try:
            answer = call()
        except StopIteration:  # the pages of a verb are over
            raise
        except BaseException as error:
            self._tell(name, Verb({}, verb.keys), perf_counter() - began, made, _failure(error))
            raise
        self._tell(name, verb, perf_counter() - began, made._replace(answer=answer), _DONE)
        return answer

    def _tell(self, name: str, verb: Verb, seconds: float, made: Call, how: Mapping[str, object]) -> None:
        try:
            measured = {"seconds": seconds, **{key: count(made) for key, count in verb.measurements.items()}}
            metadata = {**{key: value(made) for key, value in verb.keys.items()}, **how}
        except Exception:
            log.exception("the event of %s could not be made; the call is as it was", name)
        else:
            self._telemetry.report(name, measured, metadata)

    def _pages(self, name: str, verb: Verb, arguments: dict[str, Any], pages: Iterator[Any]) -> Iterator[Any]:
        """Each page is a call; whether anybody observes is asked for each."""
        while True:
            try:
                heard = self._telemetry.is_heard
                yield self._timed(name, verb, arguments, pages.__next__) if heard else next(pages)
            except StopIteration:
                return


_DONE: Final[Mapping[str, object]] = {"completion": "ok", "reason": 0, "reason_name": "NONE", "error": ""}


def _failure(error: BaseException) -> dict[str, object]:
    """How a call ended that raised: with our reason, or, for what is not ours, with its class alone."""
    reason = error.reason if isinstance(error, InorderError) else Reason.UNEXPECTED_ERROR
    return {
        "completion": "failed",
        "reason": int(reason),
        "reason_name": reason.name,
        "error": type(error).__name__,
    }


def _reported(name: str, verb: Verb) -> Callable[..., Any]:
    code = getattr(Store, name).__code__
    names = code.co_varnames[1 : code.co_argcount]

    def call(self: Reporting, *given: Any, **named: Any) -> Any:
        done = getattr(self._store, name)
        if not self._telemetry.observations or not self._telemetry.is_heard:
            return done(*given, **named)
        arguments = {**dict(zip(names, given, strict=False)), **named}
        return self._timed(name, verb, arguments, lambda: done(*given, **named))

    def paged(self: Reporting, *given: Any, **named: Any) -> Iterator[Any]:
        arguments = {**dict(zip(names, given, strict=False)), **named}
        return self._pages(name, verb, arguments, getattr(self._store, name)(*given, **named))

    return paged if name in PAGED else call


for _name, _verb in VERBS.items():
    setattr(Reporting, f"_{_name}" if hasattr(Reporting, _name) else _name, _reported(_name, _verb))


def reported(store: Store, telemetry: Telemetry) -> Store:
    """The store, with its verbs reported to the observers of `telemetry`."""
    return cast(Store, Reporting(store, telemetry))


__all__ = ["SILENT", "VERBS", "Observation", "StoreEvent", "StoreObserver", "Telemetry", "reported"]
