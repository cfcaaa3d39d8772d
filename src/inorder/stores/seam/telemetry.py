"""Events for observers: every call on the store, every wait, and the store's work besides its calls.

A verb that reports has the decorator `event`, with its public name, its measurements besides "seconds", and its
subject. Names and fields are a public contract (docs/reference/events.md); `EVENTS` lists all.

An observer is called on the thread of the call, at the end of the verb: after its transaction, when its promises are on
disk, and before the program gets the answer. No transaction is open then, and no lock of the store or of waiters is
held. The connection is still inside its call, so an observer that calls the queue manager needs another connection;
such calls are not reported. Exceptions of an observer are logged and have no other effect. Events of gathered calls
(`Promises`) are reported when gathering ends, on the thread that syncs their promises to disk.

Without observers, a verb costs one extra function call.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final, NamedTuple, TypeVar, cast

from ...errors import InorderError, Reason, bad_argument
from ...model.message import Message
from .changes import Change, Changes, Death, Happened
from .gathering import Gathering

log = logging.getLogger("inorder.telemetry")

PREFIX: Final = "inorder."
COMMON_KEYS: Final = ("store", "manager")  # of every event
CALL_KEYS: Final = ("completion", "reason", "reason_name", "error")  # of every event of a verb; see `_failure`


class Fields(NamedTuple):
    """The fields of an event besides `COMMON_KEYS`; a call's event also has `CALL_KEYS` and "seconds"."""

    measurements: Sequence[str]
    keys: Sequence[str]


EVENTS: Final[dict[str, Fields]] = {
    "wait_began": Fields((), ("queue", "browse")),
    "wait_ended": Fields(("seconds",), ("queue", "browse", "found")),
    "expired": Fields(("messages",), ("queue",)),
    "dead_connection": Fields((), ("program", "user")),
    "attempt": Fields(("seconds", "delay"), ("task", "queue", "outcome", "attempt", "error")),
    "worker": Fields(("seconds",), ("kind", "task", "schedule", "queue", "error")),
}
"""Every event, by its name without the prefix. `event` adds those of operations."""
REPORTERS: Final[dict[str, Callable[[Any], Any]]] = {}
"""The decorators that `event` has made, by the names of the events of calls: a store elsewhere reports with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreEvent:
    """Something that happened in the store.

    Args:
        name: "inorder.put", "inorder.get" ...; docs/reference/events.md lists them.
        measurements: numbers, by name: "seconds", "messages", "bytes" ...
        metadata: details: "queue", "completion", "reason_name" ...
        messages: those that a get or a browse returned.
    """

    name: str
    measurements: Mapping[str, float] = field(default_factory=dict)
    metadata: Mapping[str, object] = field(default_factory=dict)
    messages: Sequence[Message] = ()


StoreObserver = Callable[[StoreEvent], object]


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """An observer that gets events; `cancel` ends it."""

    observer: StoreObserver
    telemetry: Telemetry

    def cancel(self) -> None:
        """Stops sending events to the observer. Harmless when repeated."""
        self.telemetry.cancel(self)


class _Telling(threading.local):
    """Whether this thread is calling observers."""

    on = False


class Telemetry:
    """The observers of one store in this process, and the delivery of events to them.

    Args:
        gathering: keeps a thread's events until the changes that they report are on disk.
        common: makes the values of `COMMON_KEYS`.

    Attributes:
        common: those values, once there is an observer.
    """

    def __init__(self, changes: Changes, gathering: Gathering, common: Callable[[], Mapping[str, object]]) -> None:
        self._gathering = gathering
        self._lock = threading.Lock()
        self._telling = _Telling()
        self._make_common, self.common = common, dict[str, object]()
        self.observations: tuple[Observation, ...] = ()
        changes.subscribe(self._happened, is_ours=True)  # which wants only discards and deaths

    def observe(self, observer: StoreObserver) -> Observation:
        """Adds an observer. Raises: ArgumentError, if it is not callable."""
        if not callable(observer):
            raise bad_argument("observer", observer, "a callable", Reason.OPTIONS_ERROR)
        if not self.common:
            self.common = dict(self._make_common())
        observation = Observation(observer, self)
        with self._lock:
            self.observations = (*self.observations, observation)
        return observation

    def cancel(self, observation: Observation) -> None:
        with self._lock:
            self.observations = tuple(one for one in self.observations if one is not observation)

    def close(self) -> None:
        """Drops all observers, after the last connection has ended."""
        with self._lock:
            self.observations = ()

    @property
    def is_observed(self) -> bool:
        """Whether to report this thread's calls: there are observers, and this is not an observer's own call."""
        return bool(self.observations) and not self._telling.on

    def report(self, event: str, measurements: Mapping[str, float], metadata: Mapping[str, object]) -> None:
        """Calls every observer and logs its exceptions. Inside `Promises` this happens at their end."""
        if self.is_observed:
            self.emit(event, measurements, {**self.common, **metadata}, ())

    def emit(
        self, event: str, measurements: Mapping[str, float], metadata: Mapping[str, object], messages: Sequence[Message]
    ) -> None:
        """As `report`, after the caller has checked `is_observed`; the metadata include `common`."""
        told = StoreEvent(name=PREFIX + event, measurements=measurements, metadata=metadata, messages=messages)
        promises = self._gathering.promises
        if promises is None:
            self._deliver(told)
        else:
            promises.emit_later(lambda error: self._deliver(told if error is None else _failed(told, error)))

    def _deliver(self, told: StoreEvent) -> None:
        self._telling.on = True
        try:
            for one in self.observations:
                _deliver(one.observer, told)
        finally:
            self._telling.on = False

    def _happened(self, happened: Happened) -> None:
        if isinstance(happened, Death):
            self.report("dead_connection", {}, {"program": happened.program.name, "user": happened.program.user})
        elif isinstance(happened, Change) and happened.discarded:
            self.report("expired", {"messages": happened.discarded}, {"queue": happened.queue})


def _failed(event: StoreEvent, error: BaseException) -> StoreEvent:
    """The event of a call that returned, but whose promise has failed since."""
    seconds = {name: value for name, value in event.measurements.items() if name == "seconds"}
    return StoreEvent(name=event.name, measurements=seconds, metadata={**event.metadata, **_failure(error)})


def _deliver(observer: StoreObserver, event: StoreEvent) -> None:
    try:
        observer(event)
    except KeyboardInterrupt:
        raise
    except BaseException:  # it must not end a thread that makes calls for others
        log.exception("an observer failed at %s; the call itself is not affected", event.name)


# --- operations


F = TypeVar("F", bound=Callable[..., Any])
_DONE: Final[Mapping[str, object]] = {"completion": "ok", "reason": 0, "reason_name": "NONE", "error": ""}


def event(
    name: str,
    measurements: str = "",
    keys: str = "",
    *,
    handle: Callable[..., int] | None = None,
    measured: Callable[..., Sequence[float]] | None = None,
    about: Callable[..., Sequence[object]] | None = None,
    gives: Callable[[Any], Sequence[Message]] | None = None,
) -> Callable[[F], F]:
    """Decorates an operation that reports an event of this name.

    Args:
        measurements, keys: their names, separated by spaces.
        handle: from the arguments: the handle whose queue is the key "queue".
        measured: from the answer and the arguments: the values of the `measurements`, if the call succeeded.
        about: from the answer, or None, and the arguments: the values of the `keys`.
        gives: from the answer: its messages.
    """
    measures, named = measurements.split(), keys.split()
    EVENTS[name] = Fields(tuple(measures), (*(("queue",) if handle else ()), *named))

    def decorated(operation: F) -> F:
        @functools.wraps(operation)
        def call(store: Any, *given: Any, **by_name: Any) -> Any:
            telemetry: Telemetry = store.telemetry
            if not telemetry.observations or not telemetry.is_observed:
                return operation(store, *given, **by_name)
            metadata = dict(telemetry.common)
            if handle is not None:
                one = store.handles.get(handle(*given, **by_name))
                metadata["queue"] = "" if one is None else one.queue_name
            began = perf_counter()
            how, answer = _DONE, None
            try:
                answer = operation(store, *given, **by_name)
            except BaseException as error:
                how = _failure(error)
                raise
            finally:
                values = {"seconds": perf_counter() - began}
                try:
                    if measured is not None and how is _DONE:
                        values.update(zip(measures, measured(answer, *given, **by_name), strict=True))
                    if about is not None:
                        metadata.update(zip(named, about(answer, *given, **by_name), strict=True))
                except Exception:
                    log.exception("the event of %s could not be made; the call itself is not affected", name)
                else:
                    metadata.update(how)
                    messages = () if gives is None or how is not _DONE else gives(answer)
                    if telemetry.observations:
                        telemetry.emit(name, values, metadata, messages)
            return answer

        return cast(F, call)

    REPORTERS[name] = decorated
    return decorated


def first(number: int, *_: Any, **__: Any) -> int:
    """For `event`: the handle, if it is the operation's first argument."""
    return number


def count(answer: float, *_: Any, **__: Any) -> Sequence[float]:
    """For `event`: the answer itself, as the measurement."""
    return [answer]


def length(messages: Sequence[Message | bytes]) -> int:
    """For `event`: the total length of the messages."""
    return sum(message.length if isinstance(message, Message) else len(message) for message in messages)


def of_request(request: Any, **_: Any) -> int:
    """For `event`: the handle in the operation's first argument, a request."""
    handle: int = request.handle
    return handle


def unit_of(request: Any, *, in_unit: bool) -> str:
    """For `event`: the kind of unit that holds the messages of a put or a get."""
    return "confirm" if request.options.confirm_id else "session" if in_unit else ""


def _failure(error: BaseException) -> dict[str, object]:
    """The result of a call that raised: its reason or, for an exception that is not inorder's, only its class."""
    reason = error.reason if isinstance(error, InorderError) else Reason.UNEXPECTED_ERROR
    return {"completion": "failed", "reason": int(reason), "reason_name": reason.name, "error": type(error).__name__}
