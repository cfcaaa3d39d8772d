"""A registry that a module fills: functions with arguments, functions of messages, and schedules.

    tasks = Tasks("shop.db")

    @tasks.task(attempts=5, backoff=Backoff(first=2))
    def pack(order_id: int, qm: QueueManager) -> None:       # pack.put(order_id=17) sends a call
        qm.put_json("PARCELS", order_id)

    @tasks.task("ORDERS")
    def see(message: Message) -> None:                       # called with the messages of any program
        print(message.body)

    @tasks.periodic("30 2 * * *", queue="REPORTS", zone="Europe/Berlin")
    def nightly(due):
        return due.isoformat().encode()

`inorder work shop.tasks` and `QueueManager.worker` run the registered functions and schedules. A function may decide
about its message by raising `Retry`, `Discard` or `Dead`. Any other exception is a failure, and the message is tried
again.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, ParamSpec, Protocol, TypeVar, overload

from ..client.manager import connect
from ..errors import ArgumentError, bad_argument
from ..model.attribute import check_queue_name
from ..model.message import Got, Message
from ..model.options import EVERYTHING, GetOptions, Match, check_instance, check_switch, check_whole
from ..model.parameters import NONE, Choice, Seconds, is_integer
from ..rules.dead_letters import TASK_FAILED
from ..rules.ordering import ReadOrder
from ..rules.retries import SECONDS_MAX, Backoff
from ..support.advice import unknown_name
from .arguments import TaskArguments, takes_messages
from .creating import DEFAULT_QUEUE
from .due import Missed
from .limits import Limit
from .limits import checked as checked_limits
from .outcomes import Ended, eager_failure
from .periodic import Schedule
from .sending import KEPT, OwnConnections, TaskFunction

if TYPE_CHECKING:
    from ..client.manager import QueueManager

GROUP: Final = Choice(("list", "iterator"), also=NONE)
P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M", bound=Callable[[datetime], bytes | Message])
TROUBLE_SECONDS: Final = 3_600.0
TIMEOUT: Final = Seconds(0.001, SECONDS_MAX)
FROM_ZERO: Final = Seconds(0, SECONDS_MAX)  # of pauses and waits
ATTEMPTS: Final = 5  # if neither the task nor its queue sets it
IDLE_SECONDS: Final = 60.0  # for one wait; then its thread checks whether it is to end
ATTEMPTS_MAX: Final = 999_999_999  # as in the attribute of queues
THREADS_MAX: Final = 1_000
CONCURRENCY: Final = 10  # calls of an async function at once in each process, if the task does not set it
Grouping = Literal["list", "iterator"]
Unknown = Literal["retry", "dead"]
OfMessages = (
    Callable[[Got], object]
    | Callable[[Got, Any], object]
    | Callable[[list[Got]], object]
    | Callable[[list[Got], Any], object]
    | Callable[[list[Message]], object]
    | Callable[[list[Message], Any], object]
    | Callable[[Iterator[Got]], object]
    | Callable[[Iterator[Got], Any], object]
)
F = TypeVar("F", bound=OfMessages)
Hook = Callable[[str, Message], AbstractContextManager[object]]
H = TypeVar("H", bound=Hook)


class TaskDecorator(Protocol):
    """Registers the function below it: a function of messages is unchanged, any other becomes a `TaskFunction`."""

    @overload
    def __call__(self, function: F, /) -> F: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> TaskFunction[P, R]: ...


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
            FROM_ZERO.check("after", after)
        self.after = after


class Discard(Exception):
    """Raised by a function to have its message removed without a trace, and its puts undone."""


class Dead(Exception):
    """Raised by a function to make its message a dead letter immediately, and undo its puts.

    Args:
        error: the cause; stored with the dead letter.
        reason: a number chosen by the program, from 65,536; without one it is 65,536, TASK_FAILED.

    Raises ArgumentError if `reason` is out of range.
    """

    def __init__(self, error: str = "", *, reason: int = TASK_FAILED) -> None:
        super().__init__(error)
        if not is_integer(reason) or not TASK_FAILED <= reason < 2**31:
            raise bad_argument("reason", reason, f"a reason of the program's own, {TASK_FAILED:,} to 2**31 - 1")
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A function, its queue, and its options; made by `Tasks.task`, which explains the fields.

    Args:
        arguments: its parameters, if it takes arguments and is called by its name; None: it takes messages.
        is_async: whether it is an `async def` function.
    """

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
    arguments: TaskArguments | None = None
    is_async: bool = False
    limits: tuple[Limit, ...] = ()
    hooks: Sequence[Hook] = ()

    @property
    def is_alone(self) -> bool:
        """Whether its options choose messages, or how they come, so that no other task can get them for it."""
        chosen = self.options
        return bool(self.group or chosen.logical or chosen.read_order or chosen.match != EVERYTHING)


class Tasks:
    """Functions registered as tasks, and schedules. One object may be used by any number of workers.

    Args:
        store: the store of messages that are put outside of any unit of work, as for `inorder.connect`; not in memory.
            `inorder work` uses it if no other store is named. None: `put` needs a unit of work, or `qm=`.
        unknown: the treatment of messages whose task a worker does not know: "retry", the worker reports the message
            and puts it back for other workers, with a delay as long as its age, 1 to 600 seconds; "dead", it makes the
            message a dead letter with reason 9080 TASK_UNKNOWN. Neither calls a function.

    Raises ArgumentError.
    """

    def __init__(self, store: str | os.PathLike[str] | None = None, *, unknown: Unknown = "retry") -> None:
        self.unknown: Unknown = Choice(("retry", "dead")).check("unknown", unknown)
        self.store = store
        self._own = OwnConnections(store)
        self._tasks: dict[str, Task] = {}
        self._schedules: dict[str, Schedule] = {}
        self._hooks = list[Hook]()

    @overload
    def task(self, queue: F, /) -> F: ...
    @overload
    def task(self, queue: Callable[P, R], /) -> TaskFunction[P, R]: ...
    @overload
    def task(
        self,
        queue: str | None = None,
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
        concurrency: int | None = None,
        dead_on: type[Exception] | tuple[type[Exception], ...] = (),
        trouble_for: float = TROUBLE_SECONDS,
        keep: float | None = None,
        limit: Limit | tuple[Limit, ...] | None = None,
        **unknown: NoReturn,
    ) -> TaskDecorator: ...

    def task(
        self,
        queue: Any = None,
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
        concurrency: int | None = None,
        dead_on: type[Exception] | tuple[type[Exception], ...] = (),
        trouble_for: float = TROUBLE_SECONDS,
        keep: float | None = None,
        limit: Limit | tuple[Limit, ...] | None = None,
        **unknown: NoReturn,
    ) -> Any:
        """Registers the decorated function. It may be called as before.

        A function *with arguments* becomes a `TaskFunction`: `pack.put(order_id=17)` sends a call. A worker calls it by
        the name in the message, so any number of them share a queue. Its arguments are checked against its
        annotations when they are sent, and before it is called. A parameter annotated as `QueueManager` takes the
        worker's connection, one annotated as `Message` the message.

        A function *of messages* is not changed. Its first parameter is annotated as `Message`, or as a list or iterator
        of messages; or it has no annotation, and a queue is given. The worker calls it with the message, and with the
        connection if it has a second parameter.

        Get, call and commit are one unit of work: the function's puts and gets through that connection, and its puts
        with `put` of a task, are committed with the get, or undone with it.

        Args:
            queue: a local queue, or an alias of one; None, or no parentheses: TASKS, which is made when it is needed.
            name: the name of the task in messages, logs and metrics; None: module and name of the function. Give a name
                if the function may move: messages are sent under it.
            group: call the function with a complete group, or one message in no group, as a "list" or as an "iterator",
                which holds a page of a large group in memory. None: call it with one message.
            logical: messages come in logical order, each in a separate unit. A group is in this order anyway.
            read_order: "strict" or "relaxed"; None: the read order of the queue.
            match: get only messages that match.
            attempts: how many attempts a message has before it is set aside, from 1. None: the queue's
                `backout_threshold`, or 5 if that is 0.
            backoff: how long a message waits between attempts; None: 1 s, 2 s, 4 s ... 600 s, each 10 % more or less.
            timeout: seconds that a call may take, more than 0; None: unlimited. See `Worker`.
            threads: how many threads work on it in each process, from 1; None: the worker's number. Tasks with
                arguments share the threads of their queue, the largest number that one of them asks for.
            concurrency: the same for an `async def` function, whose calls run in the loop of the process: how many at
                once, from 1; None: 10. Each has a connection.
            dead_on: exceptions that another attempt would not avoid: the message becomes a dead letter immediately.
            trouble_for: seconds, from 0. If the function raises QueueFull 2053 or PutInhibited 2051, its message is
                backed out and tried again later without using up an attempt, for this long after the first time; after
                that each try uses one up. A full disk (StoreFull 2192) uses up no attempt, for any duration.
            keep: seconds for which the result of each job, or its errors, can be asked for after its end, 0.1 to
                99,999,999.9, unless `put` says otherwise; None: nothing is kept.
            limit: how many calls may run at once or begin in a time, in all processes: a `Limit`, or several.

        `group`, `logical`, `read_order` and `match` are for functions of messages, `keep` and `limit` for functions
        with arguments.

        Raises:
            ArgumentError: if a value is out of range, there is no such keyword, the name is taken, the function is a
                generator, or its arguments could not be sent as JSON; if another function takes messages of the queue
                and nothing tells their messages apart.
            CallerError: if the library for arguments is not installed (`inorder[work]`).
        """
        _check_known(unknown, Tasks.task)
        if callable(queue):
            return self.task()(queue)
        if queue is not None:
            check_queue_name(queue, argument="queue")
        _check_choices(name, group, attempts, threads, concurrency)
        check_switch("logical", logical)
        check_instance("match", match, Match, "a Match")
        if backoff is not None:
            check_instance("backoff", backoff, Backoff, "a Backoff")
        if timeout is not None:
            TIMEOUT.check("timeout", timeout)
        FROM_ZERO.check("trouble_for", trouble_for)
        kinds = dead_on if isinstance(dead_on, tuple) else (dead_on,)
        if not all(isinstance(one, type) and issubclass(one, Exception) for one in kinds):
            raise bad_argument("dead_on", dead_on, "an exception class, or a tuple of them")
        if keep is not None:
            KEPT.check("keep", keep)
        limits = checked_limits(limit)
        options = GetOptions(logical=logical, read_order=read_order, match=match, wait=IDLE_SECONDS, syncpoint=True)

        def registered(function: Any) -> Any:
            function = function.function if isinstance(function, TaskFunction) else function
            is_async = _check_function(function)
            called = name or _name_of(function)
            self._check_free(called)
            task = Task(
                name=called,
                queue=queue or DEFAULT_QUEUE,
                function=function,
                takes_connection=False,
                is_async=is_async,
                group=group,
                options=options,
                attempts=attempts,
                backoff=backoff or Backoff(),
                timeout=timeout,
                threads=_calls_at_once(threads, concurrency, is_async=is_async),
                dead_on=kinds,
                trouble_for=trouble_for,
                limits=limits,
                hooks=self._hooks,
            )
            if is_async and group == "iterator":
                raise bad_argument("group", group, '"list" for an async function, which cannot wait for an iterator')
            if group or takes_messages(function, has_queue=queue is not None):
                task = replace(task, takes_connection=_takes_connection(function))
            elif task.is_alone:
                allowed = "one of messages: logical, read_order and match choose messages"
                raise bad_argument("function", function, allowed)
            else:
                task = replace(task, arguments=TaskArguments(function, is_async=is_async))
            _check_for_arguments(task, keep)
            self._check_apart(task)
            self._tasks[called] = task
            if task.arguments is None:
                return function
            return TaskFunction(function, called, task.queue, task.arguments, self._own, keep=keep, limits=limits)

        return registered

    def _check_apart(self, task: Task) -> None:
        """Raises ArgumentError if messages of the queue could go to this task as well as to another one."""
        for other in self._tasks.values():
            if other.queue != task.queue or (task.arguments and other.arguments):
                continue
            both = f"{task.name} and {other.name} both take messages of {task.queue}"
            if task.arguments or other.arguments:
                alone = task if task.arguments is None else other
                if alone.is_alone:
                    text = f"{both}, and one thread gets them for both: {alone.name} must be registered without group, "
                    raise ArgumentError(f"{text}logical, read_order and match, or for another queue", argument="queue")
            elif task.options.match == other.options.match or EVERYTHING in (task.options.match, other.options.match):
                text = f"{both}, and nothing tells which of them a message is for: give each of them arguments, a "
                raise ArgumentError(f"{text}match of its own, or a queue of its own", argument="queue")

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
        Each instant is put once, even if several processes and workers run it. The function itself is unchanged.

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

    def drain(self, qm: QueueManager, *, threads: int = 1) -> list[Ended]:
        """Works until no message is ready and no call runs: for tests and scripts.

        Calls, attempts and dead letters are as in any worker. It does not wait for delayed messages, nor for attempts
        that come later (a test may use a manual clock, or `Backoff(first=0)`), and runs no schedules.

        Args:
            qm: the queue manager; the calls use separate connections, and see only committed messages.
            threads: as for `QueueManager.worker`.

        Returns: the attempts that have ended, in that order, with their errors.

        Raises ArgumentError; the error of the store that has ended the work.
        """
        ended = list[Ended | None]()
        with qm.worker(self, threads=threads, burst=True, log=lambda event: ended.append(event.ended)) as worker:
            worker.wait()
        if worker.lost is not None:
            raise worker.lost
        return [one for one in ended if one is not None]

    @contextmanager
    def eager(self) -> Iterator[QueueManager]:
        """In the block, each `put` calls the task at once: for tests and for trying things out.

        The messages go through a queue manager in memory and a real worker, so arguments, attempts, limits and results
        are as always. Puts of a task are called after its commit. A put in your own unit of work is called by the
        next put outside of any unit, or by `drain`. Delayed calls and later attempts are not made. `put_async` needs
        `qm=`, and `drain` with it.

        Yields: the queue manager. Queues that the tasks name, except TASKS, must be created in it.

        A put raises JobFailed 9082 if an attempt fails.
        """
        with connect() as qm:

            def drain() -> None:
                failed = [one for one in self.drain(qm) if one.error]
                if failed:
                    raise eager_failure(failed[0])

            with self._own.eagerly(qm, drain):
                yield qm

    def around(self, hook: H) -> H:
        """Registers a hook: each call of one of these tasks runs in the context manager that the hook returns::

            @tasks.around
            @contextmanager
            def logged(task: str, message: Message) -> Iterator[None]:
                with structlog.contextvars.bound_contextvars(task=task, job=message.message_id.hex()):
                    yield

        It is entered in the call's thread, for an `async def` function in its asyncio task. An exception of the
        function passes through it and must be raised again. The first hook that was registered is the outermost.

        Raises ArgumentError if it cannot be called.
        """
        if not callable(hook):
            raise bad_argument("hook", hook, "a function of a name and a message that returns a context manager")
        self._hooks.append(hook)
        return hook

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


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise bad_argument("name", name, "a text that is not empty, or None")


def _check_choices(
    name: object, group: object, attempts: int | None, threads: int | None, concurrency: int | None
) -> None:
    if name is not None:
        _check_name(name)
    GROUP.check("group", group)
    if attempts is not None:
        check_whole("attempts", attempts, 1, ATTEMPTS_MAX)
    for argument, count in (("threads", threads), ("concurrency", concurrency)):
        if count is not None:
            check_whole(argument, count, 1, THREADS_MAX)


def _check_for_arguments(task: Task, keep: float | None) -> None:
    """Raises ArgumentError if a task cannot have limits or results, or lacks the parameter that a limit names."""
    if task.arguments is None and (task.limits or keep is not None):
        argument, value = ("limit", task.limits) if task.limits else ("keep", keep)
        raise bad_argument(argument, value, "left out for a function of messages: it is for functions with arguments")
    for one in task.limits:
        if one.key is not None and task.arguments is not None and one.key not in task.arguments.names:
            raise bad_argument(
                "key", one.key, f"a parameter of the function: {', '.join(task.arguments.names) or 'none'}"
            )


def _calls_at_once(threads: int | None, concurrency: int | None, *, is_async: bool) -> int | None:
    """The number of simultaneous calls; None: as many as the worker has threads. Raises ArgumentError."""
    if is_async and threads is not None:
        raise bad_argument("threads", threads, "left out for an async function: concurrency=NUMBER")
    if not is_async and concurrency is not None:
        raise bad_argument("concurrency", concurrency, "left out for a function without async: threads=NUMBER")
    return (concurrency or CONCURRENCY) if is_async else threads


def _check_function(function: Callable[..., Any]) -> bool:
    """Returns whether it is an `async def` function. Raises ArgumentError for a generator."""
    kinds = (inspect.isasyncgenfunction, inspect.isgeneratorfunction)
    if not callable(function) or any(is_one(function) for is_one in kinds):
        raise bad_argument("function", function, "a function that does the work when it is called, not a generator")
    return inspect.iscoroutinefunction(function)


def _takes_connection(function: Callable[..., Any]) -> bool:
    """Whether the function has a second parameter. Raises ArgumentError if a worker cannot call it."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # a built-in function without one: `takes_messages`
        return False
    for given in ((None, None), (None,)):
        try:
            signature.bind(*given)
        except TypeError:
            continue
        return len(given) > 1
    raise ArgumentError(f"{function!r:.100} must take a message, or a message and a connection", argument="function")
