"""One attempt: gets a message or a group, calls the function, and commits or backs out.

    got, attempts used up            set aside, without a call
    got, was given up                set aside or removed, without a call
    returned                         committed: the get, and the function's puts
    Retry                            backed out, and hidden for a while
    Discard                          backed out, then removed
    Dead, one of `dead_on`           backed out, then set aside
    arguments that do not match      the same, without a call
    no task takes the message        backed out without using up an attempt, and hidden for a while; or set aside
    a stop before the call begins    backed out without using up an attempt
    a full disk                      backed out, no attempt used up; the thread pauses
    a full or inhibited target       the same for as long as the task's `trouble_for`; then as any other exception
    any other exception              backed out, and hidden for a while; after the last attempt set aside
    over its time limit              backed out from outside, the connection ended: see `Lane.end_overdue`
    the function backed out          an attempt, even if it returned
    the function committed           done, even if it raised afterwards: see `as_settled`

The queue manager counts attempts: they are the message's backout count, so a program that is killed during an attempt
has used it up. A message to be set aside is first backed out, which undoes the function's puts. It is then got again,
in one unit of work with its put on the dead-letter queue. In between, another thread may get it, or the worker may be
killed. Then the next get does the rest without a call: the message has no attempts left, or the back out has stored
in it the decision of `Discard`, `Dead` or `dead_on` (`rules.retries.GivenUp`). If the dead-letter queue refuses the
message, or does not exist, the message is backed out without using up an attempt and comes again; others pass it
meanwhile.

If the read order is required, no message may pass one that cannot be worked on: the task stops (B-24).
"""

from __future__ import annotations

import contextlib
import inspect
import random
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

from ..client.defining import local_attributes
from ..client.manager import QueueManager
from ..errors import ArgumentError, InorderError, PutInhibited, QueueFull, Reason, StoreFull, Undeliverable
from ..model.message import IN_GROUP, LAST_IN_GROUP, Got
from ..model.options import GetOptions, Match
from ..model.parameters import as_storable
from ..rules.retries import GivenUp, Later, failure_of, given_up
from .arguments import TaskArguments, WrongResult
from .outcomes import Outcome
from .tasks import ATTEMPTS, Dead, Discard, Retry, Task

LUCK: Final = random.SystemRandom()  # a task's own random numbers stay reproducible


class TakenMessages(NamedTuple):
    """The messages that were got for one call."""

    first: Got
    given: Any
    rest: Iterator[Got]


class AttemptVerdict(NamedTuple):
    """The decision about a message.

    Args:
        reason: the reason of the dead letter.
        trace: where the function failed, for a log.
        is_failure: whether a call failed, or did not end: its unit is undone.
        is_final: whether the call has decided, regardless of the attempts left.
        is_trouble: whether it is retried without using up an attempt: the store, or a target queue, is full, no task
            here takes it, or its call has not begun.
        since: since when a target has refused messages, seconds since 1970; 0: it failed for another reason.
    """

    outcome: Outcome
    error: str
    delay: float = 0.0
    reason: int = Reason.BACKOUT_THRESHOLD_REACHED
    trace: str = ""
    is_failure: bool = True
    is_final: bool = False
    is_trouble: bool = False
    since: float = 0.0


UNKNOWN_SECONDS: Final = (1.0, 600.0)  # the least and the longest time for which a message without a task is hidden
WORDS_MAX: Final = 800  # of an exception's text; leaves room for the place where it was raised
UNDONE: Final = (Awaitable, Generator, AsyncGenerator)
TARGETS: Final = (QueueFull, PutInhibited)  # raised by a function: its target accepts nothing now
TROUBLES: Final = (StoreFull, Undeliverable)  # raised by a commit, or by a put on the dead-letter queue
WELL_DONE = AttemptVerdict(Outcome.DONE, "", is_failure=False)


class OrderStops(Exception):
    """The task must stop: a message cannot be worked on, and the read order allows no other to pass it."""


def take(qm: QueueManager, task: Task, options: GetOptions) -> TakenMessages:
    """Gets the message or group for the next call, in the open unit of work. Raises as a get.

    Args:
        options: the options of the task, or others for now.
    """
    if task.group is None:
        message = qm.get(task.queue, options)
        return TakenMessages(message, message, iter(()))
    group = qm.get_group(task.queue, wait=options.wait, match=options.match, read_order=options.read_order)
    first = next(group)
    whole = chain((first,), group)
    return TakenMessages(first, list(whole) if task.group == "list" else whole, group)


def call(qm: QueueManager, task: Task, taken: TakenMessages) -> object:
    """Calls the function, reads any rest of a group that comes as an iterator, and returns the function's result.

    Raises the function's exceptions; TypeError if it only returned a coroutine or generator that would do the work.
    """
    with _hooked(task, taken.first) if task.hooks else contextlib.nullcontext():
        made = begin(qm, task, taken)
        if isinstance(made, UNDONE):
            if inspect.iscoroutine(made) and inspect.getcoroutinestate(made) == inspect.CORO_CREATED:
                made.close()  # otherwise Python warns, whenever it is collected, that it was never awaited
            raise TypeError(f"the function has done nothing yet: it returned {made!r:.100}")
        for _ in taken.rest:
            pass
        return made


@contextlib.contextmanager
def _hooked(task: Task, first: Got) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for hook in task.hooks:
            stack.enter_context(hook(task.name, first))
        yield


async def call_async(qm: object, task: Task, taken: TakenMessages) -> Any:
    """Calls an `async def` function, and returns its result. Raises as the function."""
    with _hooked(task, taken.first) if task.hooks else contextlib.nullcontext():
        return await begin(qm, task, taken)


def begin(qm: object, task: Task, taken: TakenMessages) -> Any:
    """Calls the function, and returns its result: for an `async def` function, the awaitable.

    Args:
        qm: the connection that the function gets, if it takes one.

    Raises WrongArguments; as the function.
    """
    if task.arguments is not None:
        return task.function(**_named(task.arguments, taken.first, qm))
    return task.function(taken.given, qm) if task.takes_connection else task.function(taken.given)


class WrongArguments(Dead):
    """The arguments in the message do not match the task."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.reason = Reason.TASK_ARGUMENTS


def _named(arguments: TaskArguments, message: Got, qm: object) -> dict[str, Any]:
    """The arguments of a call, by name. Raises WrongArguments."""
    try:
        named = arguments.decode(message.body)
    except ArgumentError as error:
        raise WrongArguments(str(error.args[0])) from None
    if arguments.connection:
        named[arguments.connection] = qm
    if arguments.message:
        named[arguments.message] = message
    return named


def left_to_others(error: str, first: Got, now: float) -> AttemptVerdict:
    """The decision about a message that no task here takes: another program may know its task, or will.

    Args:
        now: seconds since 1970.
    """
    age = min(max(now - first.put_at, UNKNOWN_SECONDS[0]), UNKNOWN_SECONDS[1])
    return AttemptVerdict(Outcome.UNKNOWN, error, age, is_trouble=True)


def attempts_of(qm: QueueManager, task: Task) -> int:
    """The number of attempts after which a message is set aside."""
    return task.attempts or local_attributes(qm, task.queue).backout_threshold or ATTEMPTS


def judge(
    task: Task, error: BaseException, attempt: int, most: int, luck: Callable[[], float] = LUCK.random
) -> AttemptVerdict:
    """Decides about a message whose function raised an exception.

    Args:
        attempt: the number of this attempt, from 1.
        most: how many attempts there are.
        luck: a random number from 0 up to 1.
    """
    text, trace = said(error), "".join(traceback.format_exception(error))
    if isinstance(error, Discard):
        return AttemptVerdict(Outcome.DISCARDED, text, is_final=True)
    if isinstance(error, Dead):
        return AttemptVerdict(Outcome.DEAD, text, reason=error.reason, is_final=True)
    if isinstance(error, (*task.dead_on, WrongResult)):
        return AttemptVerdict(Outcome.DEAD, text, trace=trace, is_final=True)
    if attempt >= most:
        return AttemptVerdict(Outcome.DEAD, text, trace=trace)
    asked = error.after if isinstance(error, Retry) else None
    delay = task.backoff.after(attempt, luck()) if asked is None else asked
    return AttemptVerdict(Outcome.RETRIED, text, delay, trace="" if isinstance(error, Retry) else trace)


def in_trouble(error: BaseException, delay: float, since: float = 0.0) -> AttemptVerdict:
    """The decision to retry after this many seconds without using up an attempt; others pass the message."""
    wait = 0.0 if isinstance(error, StoreFull) else delay  # on a full disk no other message would succeed either
    text = str(error) if isinstance(error, TROUBLES) else said(error)
    return AttemptVerdict(Outcome.RETRIED, text, wait, is_trouble=True, since=since)


def judge_trouble(task: Task, error: BaseException, first: Got, now: float, delay: float) -> AttemptVerdict | None:
    """The decision about a call that failed because no message can be put now; None: it counts as an attempt."""
    since = since_of(error, first, now)
    is_brief = since > 0 and now - since < task.trouble_for
    if isinstance(error, task.dead_on) or not (is_brief or isinstance(error, StoreFull)):
        return None
    return in_trouble(error, delay, since)


def since_of(error: BaseException, first: Got, now: float) -> float:
    """Since when a target has refused messages, seconds since 1970; 0 if the error has another cause.

    Args:
        first: the message, or the first of a group.
        now: seconds since 1970.
    """
    if not isinstance(error, TARGETS):
        return 0.0
    last = failure_of(first)
    return min(last.since, now) if last is not None and last.since else now


def back_out(unit: Any, first: Got, verdict: AttemptVerdict) -> None:
    """Backs out the unit of a failed call. A final decision is on disk with the message when this returns."""
    final = GivenUp(first.uid, verdict.reason if verdict.outcome is Outcome.DEAD else 0) if verdict.is_final else None
    # If our own store or dead-letter queue is in trouble, the message keeps the error of its last attempt.
    is_ours = verdict.is_trouble and not verdict.since and verdict.outcome is not Outcome.UNKNOWN
    words = "" if is_ours else verdict.error
    later = Later(verdict.delay, words, given_up=final, since=verdict.since, counts=not verdict.is_trouble)
    unit._put_off(later)


def as_settled(verdict: AttemptVerdict, status: str) -> AttemptVerdict:
    """The decision about a call whose unit of work has ended like this; the function may have ended it itself."""
    if status == "backed out" and not verdict.is_failure:
        return AttemptVerdict(
            Outcome.RETRIED, "its unit of work was backed out, by the function or with its connection"
        )
    if status in ("committed", "prepared") and verdict.is_failure:
        text = f"its unit of work was {status}, then: {verdict.error}"
        return AttemptVerdict(Outcome.DONE, text, trace=verdict.trace, is_failure=False)
    return verdict


def not_settled(verdict: AttemptVerdict, error: InorderError) -> AttemptVerdict:
    """The decision about a call whose unit of work could not be committed or backed out."""
    return AttemptVerdict(Outcome.RETRIED, verdict.error or said(error), trace=verdict.trace)


def decided(message: Got) -> AttemptVerdict | None:
    """The final decision of an earlier call, which is still to be carried out; None if there is none."""
    found, last = given_up(message), failure_of(message)
    if found is None or last is None:
        return None
    outcome = Outcome.DEAD if found.reason else Outcome.DISCARDED
    return AttemptVerdict(outcome, last.error, reason=found.reason, is_failure=False)


def said(error: BaseException) -> str:
    """An exception in one line, with the line of the program that raised it, as a text that a store can keep."""
    name = type(error).__name__
    try:
        words = str(error)[:WORDS_MAX]
    except Exception as failure:  # noqa: BLE001 - whatever its own __str__ raises
        words = f"its text cannot be had, {type(failure).__name__}"
    if isinstance(error, Retry | Discard | Dead):
        text = words or name
    else:
        text = f"{name}: {words}" if words else name
        frames = traceback.extract_tb(error.__traceback__)
        if frames:
            text += f" ({Path(frames[-1].filename).name}:{frames[-1].lineno} in {frames[-1].name})"
    return as_storable(text)


def why_exhausted(message: Got) -> str:
    """Why a message is set aside without calling the function."""
    last = failure_of(message)
    if last is not None and last.attempt >= message.backout_count:
        return last.error
    lost = message.backout_count - (0 if last is None else last.attempt)
    text = f"the program ended, or backed out, in the middle of {'an attempt' if lost == 1 else f'{lost} attempts'}"
    return text if last is None else f"{text}; before: {last.error}"


def why_stopped(task: Task, first: Got, attempt: int, error: str) -> str:
    """Why a task stops on a queue whose order is required."""
    times = "once" if attempt == 1 else f"{attempt} times"
    return (
        f"{task.queue} requires the order, so no message may pass message {first.message_id.hex()}, which failed "
        f"{times}: {error}. Correct the cause, then start the worker again: it tries once more"
    )


def set_aside(qm: QueueManager, task: Task, messages: Iterable[Got], why: AttemptVerdict) -> None:
    """Makes dead letters of the messages, in the unit of work that got them. Raises Undeliverable if that is not
    possible now.
    """
    for message in messages:
        qm.dead.add(message, queue=task.queue, reason=why.reason, error=why.error, attempts=message.backout_count)


def taken_again(qm: QueueManager, task: Task, first: Got) -> list[Got]:
    """Gets messages again that were just backed out, in the open unit. Raises as a get if another reader has them."""
    if task.group is not None and first.flags & (IN_GROUP | LAST_IN_GROUP):
        return list(qm.get_group(task.queue, match=Match(group_id=first.group_id)))
    return [qm.get(task.queue, match=Match(uid=first.uid), read_order=None, wait=0)]
