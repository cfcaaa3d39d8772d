"""Limits on the calls of a task in all processes together: how many run at once, and how many begin in a time.

A permit is the key of a put (`deduplicate`) on the queue TASKS.LIMITS. The store gives a key to one unit of work only:

    at once    one of `concurrency` keys, put in the unit of work of the call and kept no longer than that: the commit
               frees it, and so does the back out of a call that fails or whose process is killed
    rate       one of up to 10 keys, put outside of that unit and kept for 10 intervals: the permit is spent even if
               the call fails

So nothing has to be set up, counted or cleaned up, and it works on every store. The messages are empty and expire.

A lane that has got a message but no permit backs it out without using up an attempt. For a while it then gets no
messages of this task and key: a selector passes over them, so they keep their places. A lane that finds several keys
with work takes them in turn.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Protocol

from ..client.manager import QueueManager
from ..errors import DuplicatePending, bad_argument
from ..model.message import Message
from ..model.options import GetOptions, Match, check_whole
from .creating import put_made

LIMITS: Final = "TASKS.LIMITS"
KEY: Final = "job.key"  # the property of a message with the value of its task's key, if it is text of a modest length
KEY_CHARACTERS_MAX: Final = 60  # a selector may name 100 of them
CONCURRENCY_MAX: Final = 1_000
RATE: Final = re.compile(r"([1-9][0-9]{0,5})/(s|second|m|min|minute|h|hour|d|day)")
SECONDS: Final = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
AT_A_TIME_MAX: Final = 10  # permits of a rate that may be taken at the same moment
BRIEF: Final = 1e-300  # seconds; too short to change any time, so that the commit frees the key
PERMIT_SECONDS: Final = 0.1  # until the message of a permit expires
FIRST_SECONDS, MOST_SECONDS = 0.02, 1.0  # for which a lane passes over messages without a permit
SHARE: Final = 10  # such a look takes at most this fraction of a lane's time, 1/SHARE, or one look a second
PASSED_MAX: Final = 50  # keys that one selector passes over
LUCK: Final = random.SystemRandom()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit on the calls of a task, in all processes of all machines that use the store.

    Args:
        concurrency: how many calls may run at once, 1 to 1,000; None: any number.
        rate: how many calls may begin in a time, as "100/min": a number up to 999,999, and s, min, h or d. They are
            spread evenly; at most 10 may begin at the same moment. None: any number.
        key: the name of a parameter of the function: the limit applies to each of its values separately. None: it
            applies to the task.

    Raises ArgumentError if a value is out of range, or neither `concurrency` nor `rate` is given.
    """

    concurrency: int | None = None
    rate: str | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        if self.concurrency is not None:
            check_whole("concurrency", self.concurrency, 1, CONCURRENCY_MAX)
        if self.rate is not None and (not isinstance(self.rate, str) or not RATE.fullmatch(self.rate)):
            raise bad_argument("rate", self.rate, 'a text such as "100/min": 1 to 999,999 in s, min, h or d')
        if self.concurrency is None and self.rate is None:
            raise bad_argument("concurrency", None, "given, unless rate is given")
        if self.key is not None and not isinstance(self.key, str):
            raise bad_argument("key", self.key, "the name of a parameter, or None")

    @property
    def spacing(self) -> tuple[int, float]:
        """Of the rate: how many calls may begin at the same moment, and the seconds for which a permit is spent."""
        assert self.rate is not None, "checked by the caller"
        number, _, unit = self.rate.partition("/")
        at_a_time = min(int(number), AT_A_TIME_MAX)
        return at_a_time, at_a_time * SECONDS[unit[0]] / int(number)


def checked(limit: object) -> tuple[Limit, ...]:
    """The limits of a task. Raises ArgumentError if they are none, or name several keys."""
    limits = limit if isinstance(limit, tuple) else () if limit is None else (limit,)
    if not all(isinstance(one, Limit) for one in limits):
        raise bad_argument("limit", limit, "a Limit, or a tuple of them")
    if len({one.key for one in limits if one.key is not None}) > 1:
        raise bad_argument("limit", limit, "a tuple of Limits with the same key: messages have one key")
    return limits


class Scope(NamedTuple):
    """The scope of a limit: a task, or one of the values of its key."""

    task: str
    key: str | None


class LimitedTask(Protocol):
    """The attributes of a task that limits use."""

    @property
    def name(self) -> str: ...
    @property
    def limits(self) -> tuple[Limit, ...]: ...
    @property
    def arguments(self) -> Any: ...


def key_of(name: str | None, body: bytes, default: Any = None) -> str | None:
    """The value of a task's key in the arguments of a message, as a text; None: the task has no key.

    If a body holds no arguments it is the default: such a message becomes a dead letter without a call.
    """
    if name is None:
        return None
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    value = found.get(name, default) if isinstance(found, dict) else default
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
    if len(text) <= KEY_CHARACTERS_MAX and text.isprintable() and "'" not in text:
        return text
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _digest(scope: Scope) -> str:
    return hashlib.sha256(json.dumps(scope).encode()).hexdigest()


def _is_first(qm: QueueManager, limit: Limit, name: str) -> bool:
    if limit.concurrency is None:
        return True
    return any(_takes(qm, f"{name} {one}", BRIEF, syncpoint=True) for one in _shuffled(limit.concurrency))


def _is_in_time(qm: QueueManager, limit: Limit, name: str) -> bool:
    if limit.rate is None:
        return True
    at_a_time, seconds = limit.spacing
    return any(_takes(qm, f"{name} {one}", seconds, syncpoint=False) for one in _shuffled(at_a_time))


def _shuffled(count: int) -> Iterable[int]:
    first = LUCK.randrange(count)
    return (*range(first, count), *range(first))


def _takes(qm: QueueManager, key: str, seconds: float, *, syncpoint: bool) -> bool:
    permit = Message(b"", expiry=PERMIT_SECONDS, persistent=False)
    try:
        put = put_made(qm, LIMITS, permit, deduplicate=key, deduplicate_for=seconds, syncpoint=syncpoint)
    except DuplicatePending:
        return False
    return put.duplicate_of is None


class Withheld(NamedTuple):
    """How a message without a permit is put back.

    Args:
        hidden: seconds for which no lane gets it; 0: only this lane passes over it.
        pause: seconds for which the lane waits, because the read order allows no message to pass this one.
    """

    hidden: float = 0.0
    pause: float = 0.0


class Passed(NamedTuple):
    """The end, in monotonic time, and the duration of a time in which a lane passes over messages."""

    until: float
    seconds: float


class LaneLimits:
    """One lane's view of the permits: the messages that it passes over."""

    def __init__(self) -> None:
        self._without = dict[Scope, Passed]()
        self._served = dict[Scope, None]()  # keys that had their turn
        self._fair_from = self._looked_at = 0.0
        self._is_fair = False  # whether the last get passed over keys that had their turn

    def choice(self, options: GetOptions) -> GetOptions:
        """The options of the next get."""
        now = self._looked_at = time.monotonic()
        self._without = {scope: one for scope, one in self._without.items() if now < one.until + MOST_SECONDS}
        without = {scope: one for scope, one in self._without.items() if now < one.until}
        served = self._served if now >= self._fair_from else {}
        self._is_fair = bool(served)
        if not without and not served:
            return options
        ends = min((one.until for one in without.values()), default=now)
        wait = 0.0 if served else min(options.wait, max(0.0, ends - now))
        return replace(options, match=Match(selector=_passing({**without, **served})), wait=wait)

    def looks_again(self) -> bool:
        """After a get that found nothing: whether that was because of keys that had their turn."""
        if not self._is_fair:
            return False
        self._served.clear()
        now = time.monotonic()
        self._fair_from = now + SHARE * (now - self._looked_at)
        return True

    def forget(self) -> None:
        """Looks at all messages again, because calls have ended."""
        self._without.clear()

    def held(self, qm: QueueManager, task: LimitedTask, message: Message, *, may_pass: bool) -> Withheld | None:
        """Takes the permits of a call; None: it has them. Raises as a put.

        Args:
            may_pass: whether the read order allows other messages to pass this one.
        """
        keyed = next((one.key for one in task.limits if one.key is not None), None)
        key = key_of(keyed, message.body, None if keyed is None else task.arguments.default_of(keyed))
        scopes = [Scope(task.name, None if limit.key is None else key) for limit in task.limits]
        for takes, word in ((_is_first, ""), (_is_in_time, "rate ")):  # those last: a back out does not return them
            for number, (limit, scope) in enumerate(zip(task.limits, scopes, strict=True)):
                if not takes(qm, limit, f"{number} {word}{_digest(scope)}"):
                    return self._put_back(limit, scope, message, may_pass=may_pass)
        for scope in scopes:
            self._without.pop(scope, None)
        if key is not None and may_pass and len(self._served) < PASSED_MAX:
            self._served[Scope(task.name, key)] = None
        return None

    def _put_back(self, limit: Limit, scope: Scope, message: Message, *, may_pass: bool) -> Withheld:
        now = time.monotonic()
        last = self._without.get(scope)
        seconds = FIRST_SECONDS if last is None else max(2 * last.seconds, SHARE * (now - self._looked_at))
        seconds = min(MOST_SECONDS, seconds)
        if not may_pass:
            return Withheld(pause=seconds)
        has_key = scope.key is None or message.properties.get(KEY) == scope.key
        if not has_key or (scope not in self._without and len(self._without) >= PASSED_MAX):
            return Withheld(hidden=MOST_SECONDS)
        self._without[scope] = Passed(now + seconds, seconds)
        return Withheld()


def _passing(scopes: Iterable[Scope]) -> str:
    """A selector that is true for all messages except those of these tasks and keys."""
    keys: dict[str, list[str]] = {}
    tasks = {scope.task for scope in scopes if scope.key is None}
    for scope in scopes:
        if scope.key is not None and scope.task not in tasks:
            keys.setdefault(scope.task, []).append(scope.key)
    parts = [f"(task IS NULL OR task <> {_quoted(task)})" for task in sorted(tasks)]
    for task, of_it in keys.items():
        listed = ", ".join(_quoted(key) for key in of_it)
        parts.append(f"(task IS NULL OR task <> {_quoted(task)} OR {KEY} IS NULL OR {KEY} NOT IN ({listed}))")
    return " AND ".join(parts)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
