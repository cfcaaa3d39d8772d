"""A registry that a module fills: the function for each queue, its retries, and the schedules.

    tasks = Tasks()

    @tasks.task("ORDERS", attempts=5, backoff=Backoff(first=2))
    def pack(message, qm):
        qm.put("PARCELS", message.body)

    @tasks.periodic("30 2 * * *", queue="REPORTS", zone="Europe/Berlin")
    def nightly(due):
        return due.isoformat().encode()

`inorder work shop.tasks` and `QueueManager.worker` run what is registered. A function may decide about its message by
raising `Retry`, `Discard` or `Dead`. Any other exception is a failure, and the message is tried again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, NoReturn, TypeVar

from ..errors import ArgumentError, bad_argument
from ..model.attribute import check_queue_name
from ..model.message import Message
from ..model.options import EVERYTHING, GetOptions, Match, check_instance, check_switch, check_whole
from ..model.parameters import NONE, Choice, Seconds
from ..rules.ordering import ReadOrder
from ..rules.retries import SECONDS_MAX, Backoff
from ..support.advice import unknown_name
from .due import Missed
from .periodic import Schedule

GROUP: Final = Choice(("list", "iterator"), also=NONE)
F = TypeVar("F", bound=Callable[..., object])
M = TypeVar("M", bound=Callable[[datetime], bytes | Message])
TROUBLE_SECONDS: Final = 3_600.0
ATTEMPTS: Final = 5  # if neither the task nor its queue sets it
IDLE_SECONDS: Final = 60.0  # for one wait; then its thread checks whether it is to end
ATTEMPTS_MAX: Final = 999_999_999  # as in the attribute of queues
THREADS_MAX: Final = 1_000
FIRST_OF_PROGRAMS: Final = 65_536  # reasons from here on are the program's
Grouping = Literal["list", "iterator"]


class Retry(Exception):
    """Raised by a function to have the work tried again, after the back-off, or after this many seconds.

    This uses up an attempt: after the last one the message is set aside.

    Args:
        error: the cause; stored with the message.
        after: seconds, 0 to 99,999,999.9; None: the task's back-off.

    Raises ArgumentError if `after` is out of range.
    """

    def __init__(self, error: str = "", *, after: float | None = None) -> None:
        super().__init__(error)
        if after is not None:
            check_seconds("after", after, least=0)
        self.after = after


class Discard(Exception):
    """Raised by a function to have its message removed without a trace, and its puts undone."""


class Dead(Exception):
    """Raised by a function to make its message a dead letter immediately, and undo its puts.

    Args:
        error: the cause; stored with the dead letter.
        reason: a number chosen by the program, from 65,536.

    Raises ArgumentError if `reason` is out of range.
    """

    def __init__(self, error: str = "", *, reason: int = FIRST_OF_PROGRAMS) -> None:
        super().__init__(error)
        if isinstance(reason, bool) or not isinstance(reason, int) or not FIRST_OF_PROGRAMS <= reason < 2**31:
            raise bad_argument("reason", reason, f"a reason of the program's own, {FIRST_OF_PROGRAMS:,} to 2**31 - 1")
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A function, its queue, and its options; made by `Tasks.task`, which explains the fields."""

    name: str
    queue: str
    function: Callable[..., object]
    takes_connection: bool
    group: Grouping | None
    options: GetOptions
    attempts: int | None
    backoff: Backoff
    timeout: float | None
    threads: int | None
    dead_on: tuple[type[Exception], ...]
    trouble_for: float


class Tasks:
    """Functions registered for queues, and schedules. One object may be used by any number of workers."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}
        self._schedules: dict[str, Schedule] = {}

    def task(
        self,
        queue: str,
        *,
        name: str | None = None,
        group: Grouping | None = None,
        logical: bool = False,
        read_order: ReadOrder | None = None,
        match: Match = EVERYTHING,
        attempts: int | None = None,
        backoff: Backoff | None = None,
        timeout: float | None = None,
        threads: int | None = None,
        dead_on: type[Exception] | tuple[type[Exception], ...] = (),
        trouble_for: float = TROUBLE_SECONDS,
        **unknown: NoReturn,
    ) -> Callable[[F], F]:
        """Registers the decorated function for a queue. The function itself is unchanged, and may be called as before.

        The worker calls it with the message, and with the connection if it has a second parameter. Get, call and commit
        are one unit of work: the function's puts and gets through that connection are committed with the get, or undone
        with it.

        Args:
            queue: a local queue, or an alias of one.
            name: the name of the task in logs and metrics; None: module and name of the function.
            group: call the function with a complete group, or one message in no group, as a "list" or as an "iterator",
                which holds a page of a large group in memory. None: call it with one message.
            logical: messages come in logical order, each in a unit of its own. A group is in this order anyway.
            read_order: "strict" or "relaxed"; None: the read order of the queue.
            match: get only messages that match.
            attempts: how many attempts a message has before it is set aside, from 1. None: the queue's
                `backout_threshold`, or 5 if that is 0.
            backoff: how long a message waits between attempts; None: 1 s, 2 s, 4 s ... 600 s, each 10 % more or less.
            timeout: seconds that a call may take, more than 0; None: unlimited. See `Worker`.
            threads: how many threads work on it in each process, from 1; None: the worker's number.
            dead_on: exceptions that another attempt would not avoid: the message becomes a dead letter immediately.
            trouble_for: seconds, from 0. If the function raises QueueFull 2053 or PutInhibited 2051, its message is
                backed out and tried again later without using up an attempt, for this long after the first time; after
                that each try uses one up. A full disk (StoreFull 2192) uses up no attempt, however long it lasts.

        Raises ArgumentError if a value is out of range, there is no such keyword, the name is taken, or the function
        has another number of parameters, or is a generator or a coroutine function.
        """
        _check_known(unknown, Tasks.task)
        _check_called(queue)
        check_queue_name(queue, argument="queue")
        _check_choices(name, group, attempts, threads)
        check_switch("logical", logical)
        check_instance("match", match, Match, "a Match")
        if backoff is not None:
            check_instance("backoff", backoff, Backoff, "a Backoff")
        if timeout is not None:
            check_seconds("timeout", timeout, least=0.001)
        check_seconds("trouble_for", trouble_for, least=0)
        kinds = dead_on if isinstance(dead_on, tuple) else (dead_on,)
        if not all(isinstance(one, type) and issubclass(one, Exception) for one in kinds):
            raise bad_argument("dead_on", dead_on, "an exception class, or a tuple of them")
        options = GetOptions(logical=logical, read_order=read_order, match=match, wait=IDLE_SECONDS, syncpoint=True)

        def registered(function: F) -> F:
            called = name or _name_of(function)
            self._check_free(called)
            self._tasks[called] = Task(
                name=called,
                queue=queue,
                function=function,
                takes_connection=_takes_connection(function),
                group=group,
                options=options,
                attempts=attempts,
                backoff=backoff or Backoff(),
                timeout=timeout,
                threads=threads,
                dead_on=kinds,
                trouble_for=trouble_for,
            )
            return function

        return registered

    def periodic(
        self,
        cron: str,
        *,
        queue: str,
        name: str | None = None,
        zone: str = "UTC",
        missed: Missed = "one",
        **unknown: NoReturn,
    ) -> Callable[[M], M]:
        """Registers the decorated function: its result is put whenever the expression is due.

        The function is called with the instant at which it is due, in the time zone, and returns bytes or a `Message`.
        Each instant is put once, however many processes and workers run it. The function itself is unchanged.

        Args:
            cron: minute, hour, day of the month, month, day of the week; or six fields, the first for seconds.
            queue: where the messages are put: a queue of this queue manager, or an alias of one.
            name: 1 to 200 characters; with the queue it identifies the schedule to all processes. None: module and name
                of the function. Give a name if the function may move: under another name the schedule begins again.
            zone: the name of the time zone of `cron`.
            missed: which missed runs are put: "one", only the last of them; "all"; "none", not those that are late by
                more than a minute.

        Raises:
            ArgumentError: if a value is not allowed, there is no such keyword, or the name is taken.
            CallerError: if the library for cron expressions is not installed (`inorder[work]`).
        """
        _check_known(unknown, Tasks.periodic)
        if name is not None:
            _check_name(name)

        def registered(function: M) -> M:
            called = name or _name_of(function)
            self.add(Schedule(name=called, cron=cron, queue=queue, body=function, zone=zone, missed=missed))
            return function

        return registered

    def add(self, *schedules: Schedule) -> None:
        """Registers existing schedules.

        Raises ArgumentError if one of the names is taken, or one is not a `Schedule`; then none of them is registered.
        """
        names = set[str]()
        for one in schedules:
            check_instance("schedules", one, Schedule, "a Schedule")
            self._check_free(one.name, names)
            names.add(one.name)
        self._schedules |= {one.name: one for one in schedules}

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """The schedules, in the order in which they were registered."""
        return tuple(self._schedules.values())

    def _check_free(self, name: str, others: Container[str] = ()) -> None:
        if name in self._tasks or name in self._schedules or name in others:
            raise bad_argument("name", name, "unique among the tasks and schedules")

    def __iter__(self) -> Iterator[Task]:
        return iter(list(self._tasks.values()))

    def __len__(self) -> int:
        return len(self._tasks)

    def __bool__(self) -> bool:
        """Whether a function or a schedule is registered."""
        return bool(self._tasks or self._schedules)

    def __repr__(self) -> str:
        return f"<tasks: {', '.join([*self._tasks, *self._schedules]) or 'none'}>"


def _name_of(function: object) -> str:
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', function)}"


def _check_known(unknown: Mapping[str, object], call: Callable[..., object]) -> None:
    """Raises: ArgumentError, a keyword that the call does not have; a word of another library is translated."""
    for name in unknown:
        raise unknown_name("keyword", name, set(inspect.signature(call).parameters) - {"self", "unknown"})


def _check_called(queue: object) -> None:
    """Raises ArgumentError if the decorator was written without parentheses."""
    if inspect.isroutine(queue):
        raise bad_argument("queue", queue, f'a name: write @tasks.task("QUEUE") above {queue.__name__}')


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise bad_argument("name", name, "a text that is not empty, or None")


def _check_choices(name: object, group: object, attempts: int | None, threads: int | None) -> None:
    if name is not None:
        _check_name(name)
    GROUP.check("group", group)
    if attempts is not None:
        check_whole("attempts", attempts, 1, ATTEMPTS_MAX)
    if threads is not None:
        check_whole("threads", threads, 1, THREADS_MAX)


def check_seconds(name: str, value: object, *, least: float) -> None:
    """Raises ArgumentError if this is not a number of seconds in the range."""
    Seconds(least, SECONDS_MAX).check(name, value)


def _takes_connection(function: Callable[..., Any]) -> bool:
    """Whether the function has a second parameter. Raises ArgumentError if a worker cannot call it."""
    kinds = (inspect.iscoroutinefunction, inspect.isasyncgenfunction, inspect.isgeneratorfunction)
    if not callable(function) or any(is_one(function) for is_one in kinds):
        allowed = "a function that does the work when it is called, not a generator"
        if inspect.iscoroutinefunction(function):
            called = f"asyncio.run({function.__name__}(message))"
            allowed = f"a function without async: register one that calls {called}, or use inorder.aio"
        raise bad_argument("function", function, allowed)
    signature = inspect.signature(function)
    for given in ((None, None), (None,)):
        try:
            signature.bind(*given)
        except TypeError:
            continue
        return len(given) > 1
    raise ArgumentError(f"{function!r:.100} must take a message, or a message and a connection", argument="function")
