"""A trigger monitor: it reads an initiation queue, and starts the program that each trigger message names (R4.9).

What is started is a command of the shell, as MQ's runmqtrm builds it::

    application_id 'MQTMC2, 732 characters, one argument' environment_data

An `&` at the end of the environment data starts the program in the background; without it the monitor waits for its end
before it looks at the next trigger message. `TriggerMessage.from_argument(sys.argv[1])` is what a program was given.

A trigger message is got in a unit of work, which is committed when the program runs. So a monitor that dies loses none;
if it dies between the start and the commit, the program is started once more. A program that is triggered must be ready
to find nothing on its queue anyway: others may have been there. What cannot be started becomes a dead letter, in the
same unit of work.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping
from typing import IO, Literal, NamedTuple

from ..client.manager import QueueManager
from ..errors import (
    ArgumentError,
    CallerError,
    GetInhibited,
    InorderError,
    NoMessageAvailable,
    Reason,
    Undeliverable,
    bad_argument,
)
from ..model.kinds import Feedback
from ..model.message import Got
from ..model.options import check_instance, check_switch
from ..model.process_attributes import UNIX
from ..rules.dead_letters import WhyDead, buried
from ..rules.triggers import TriggerMessage

LOOK_SECONDS = 1.0  # how soon a monitor sees that it is to end, and that a program has ended
SHELL = "/bin/sh"
PROGRAM = "trigger-monitor"

TriggerEventName = Literal["started", "ended", "goes on", "set aside"]
Ends = Callable[[], bool]


class TriggerEvent(NamedTuple):
    """What a trigger monitor has done, or has seen.

    Args:
        event: "started"; "ended", what was started has; "goes on", it has not, and the monitor ends; "set aside", it
            cannot be started, and the trigger message is a dead letter.
        at: when, seconds since 1970.
        initiation_queue: where the trigger message was.
        trigger: what it says; None: it is not a trigger message.
        command: what the shell was given; empty: nothing.
        process: the id of the process; None: there is none.
        status: of what has ended, its exit status; less than 0: the signal that has killed it. Else None.
        reason, error: why it was set aside, a `Feedback` and words; else 0 and empty.
    """

    event: TriggerEventName
    at: float
    initiation_queue: str
    trigger: TriggerMessage | None
    command: str = ""
    process: int | None = None
    status: int | None = None
    reason: int = 0
    error: str = ""


Report = Callable[[TriggerEvent], object]


def run_trigger_monitor(
    qm: QueueManager,
    queue: str,
    *,
    until_empty: bool = False,
    ends: Ends | None = None,
    report: Report | None = None,
    environment: Mapping[str, str] | None = None,
    output: int | IO[bytes] | None = None,
) -> int:
    """Starts what the trigger messages of an initiation queue ask for, until it is to end.

    Any number of monitors may read one queue: each trigger message goes to one of them.

    Args:
        until_empty: it ends when there is not a trigger message, and all that it has started has ended.
        ends: asked at least once a second; True: the monitor ends. What it has started goes on.
        report: called with each `TriggerEvent`. What it raises ends the monitor.
        environment: of the programs, besides this process's own.
        output: where programs write what they write to standard output: a file or its descriptor; None: where this
            process does. Environment data such as `>> log` say otherwise.

    Returns: how many programs it has started.

    Raises: ArgumentError; CallerError 2012, the system has no such shell; Undeliverable, what cannot be started cannot
    become a dead letter either: the trigger message is in its place; and as `QueueManager.open`.
    """
    check_switch("until_empty", until_empty)
    for name, given in (("ends", ends), ("report", report)):
        if given is not None and not callable(given):
            raise bad_argument(name, given, "a function, or None")
    if environment is not None:
        check_instance("environment", environment, Mapping, "texts by their names, or None")
    if output is not None and (isinstance(output, bool) or not (isinstance(output, int) or hasattr(output, "fileno"))):
        raise bad_argument("output", output, "a file, its descriptor, or None")
    if os.name != "posix":
        raise CallerError("a trigger monitor needs a POSIX shell", reason=Reason.ENVIRONMENT_ERROR)
    with qm.connect(program=PROGRAM) as own:
        monitor = _Monitor(own, queue, until_empty, ends or _never, report or _nowhere, environment or {}, output)
        return monitor.run()


def _never() -> bool:
    return False


def _nowhere(event: TriggerEvent) -> None:
    del event


class _Unstartable(Exception):
    """A trigger message names nothing that could be started; `feedback` and the text say why."""

    def __init__(self, feedback: Feedback, text: str) -> None:
        super().__init__(text)
        self.feedback = feedback


class _Started(NamedTuple):
    """A program that runs, and for what."""

    process: subprocess.Popen[bytes]
    trigger: TriggerMessage
    command: str
    in_background: bool


_GOING_ON: list[subprocess.Popen[bytes]] = []  # what monitors of this process have left behind: they are its children


class _Monitor:
    """One call of `run_trigger_monitor`."""

    def __init__(
        self,
        own: QueueManager,
        queue: str,
        until_empty: bool,
        ends: Ends,
        report: Report,
        environment: Mapping[str, str],
        output: int | IO[bytes] | None,
    ) -> None:
        self._own, self._queue, self._until_empty = own, queue, until_empty
        self._ends, self._report, self._output = ends, report, output
        self._environment = {**os.environ, **environment}
        self._manager = own.admin.manager_attributes().name
        self._running: list[_Started] = []
        self._count = 0
        _GOING_ON[:] = [one for one in _GOING_ON if one.poll() is None]

    def run(self) -> int:
        try:
            while not self._ends():
                self._reap()
                if self._start_next() or not self._until_empty:
                    continue
                if not self._running:
                    break
                self._await(self._running[0])
        finally:
            self._reap()
            for one in self._running:
                self._tell("goes on", one)
                _GOING_ON.append(one.process)
        return self._count

    def _start_next(self) -> bool:
        """Starts what the next trigger message asks for, if there is one; waits for one as long as a look takes."""
        self._own.admin.check_store()
        try:
            with self._own.unit_of_work():
                message = self._own.get(self._queue, wait=0 if self._until_empty else LOOK_SECONDS)
                found = self._started(message)
        except NoMessageAvailable:
            return False
        except GetInhibited:
            if not self._until_empty:
                time.sleep(LOOK_SECONDS)
            return False
        if isinstance(found, TriggerEvent):
            self._report(found)
            return True
        self._tell("started", found)
        if not found.in_background:
            self._await(found)
        return True

    def _started(self, message: Got) -> _Started | TriggerEvent:
        """What was started in the unit that has got a trigger message; or it is with the dead letters then."""
        trigger: TriggerMessage | None = None
        try:
            trigger = self._said(message)
            command, in_background = self._command(trigger)
            one = _Started(self._begin(command), trigger, command, in_background)
        except _Unstartable as error:
            self._set_aside(message, error)
            reason, text = int(error.feedback), str(error)
            return TriggerEvent("set aside", self._now(), self._queue, trigger, reason=reason, error=text)
        self._count += 1
        self._running.append(one)
        return one

    # --- what is to be started

    def _said(self, message: Got) -> TriggerMessage:
        with self._own._session:
            is_own = self._own._store.is_own(message.token)
        if not is_own:
            raise _Unstartable(Feedback.TM_ERROR, "the queue manager has not put it there for a trigger")
        try:
            return TriggerMessage.from_bytes(message.body)
        except ArgumentError:
            raise _Unstartable(Feedback.TM_ERROR, "it is not a trigger message") from None

    def _command(self, trigger: TriggerMessage) -> tuple[str, bool]:
        """What the shell is given, and whether it runs in the background."""
        program, rest = trigger.application_id.strip(), trigger.environment_data.strip()
        if not program:
            lack = (
                f"process {trigger.process} names no program"
                if trigger.process
                else f"{trigger.queue} names no process"
            )
            raise _Unstartable(Feedback.APPL_CANNOT_BE_STARTED, lack)
        if trigger.application_type != UNIX:
            text = f"process {trigger.process} is of type {trigger.application_type}, not {UNIX}"
            raise _Unstartable(Feedback.APPL_TYPE_ERROR, text)
        in_background = rest.endswith("&") and not rest.endswith("&&")
        argument = trigger.to_argument(self._manager)
        if "\0" in f"{program}{argument}{rest}":
            raise _Unstartable(Feedback.TM_ERROR, "it has a NUL character, which no argument can have")
        command = f"{program} {shlex.quote(argument)} {rest.removesuffix('&') if in_background else rest}".rstrip()
        self._check_program(program)
        return command, in_background

    def _check_program(self, program: str) -> None:
        """Whether the shell finds the program, where the command is plain enough to tell."""
        try:
            word = shlex.split(program)[0]
        except (ValueError, IndexError):
            return  # the shell says what is wrong
        if "=" in word or set(program) & set("$`;|&<>(){}"):
            return
        asked = subprocess.run(
            [SHELL, "-c", 'command -v -- "$1"', SHELL, word],
            env=self._environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            check=False,
        )  # fmt: skip
        if asked.returncode:
            raise _Unstartable(Feedback.APPL_CANNOT_BE_STARTED, f"there is no program {word}")

    def _begin(self, command: str) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                [SHELL, "-c", command],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                start_new_session=True,  # what ends the monitor at a terminal does not end the program
            )
        except OSError as error:
            text = f"the shell cannot be started: {error.strerror}"
            raise _Unstartable(Feedback.APPL_CANNOT_BE_STARTED, text) from error

    def _set_aside(self, message: Got, error: _Unstartable) -> None:
        """Puts a trigger message with the dead letters, in the unit that has got it. Raises: Undeliverable."""
        why = WhyDead(int(error.feedback), self._queue, "", self._now(), PROGRAM, 0, str(error))
        dead, to = buried(message, why), self._own.admin.manager_attributes().dead_letter_queue
        text = f"a trigger message of {self._queue} asks for nothing that can be started ({error}), and "
        if isinstance(dead, Reason):
            raise Undeliverable(f"{text}its properties leave no room for that", reason=dead, queue=self._queue)
        if not to:
            raise Undeliverable(
                f"{text}there is no dead-letter queue: name one with alter_manager(dead_letter_queue=...)",
                reason=Reason.UNKNOWN_OBJECT_NAME, queue=self._queue,
            )  # fmt: skip
        try:
            self._own.put(to, dead, context="set_all")
        except InorderError as fault:
            raise Undeliverable(
                f"{text}{to} does not take it: {fault.args[0]}", reason=fault.reason, queue=self._queue
            ) from fault

    # --- what was started

    def _await(self, one: _Started) -> None:
        """Waits until a program has ended, or the monitor is to."""
        while not self._ends():
            try:
                one.process.wait(LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                continue
            self._reap()
            return

    def _reap(self) -> None:
        """Reports the programs that have ended."""
        for one in self._running[:]:
            if one.process.poll() is not None:
                self._running.remove(one)
                self._tell("ended", one)

    def _tell(self, event: TriggerEventName, one: _Started) -> None:
        of, status = one.process, one.process.returncode if event == "ended" else None
        self._report(TriggerEvent(event, self._now(), self._queue, one.trigger, one.command, of.pid, status))

    def _now(self) -> float:
        return self._own._session.services.now()


__all__ = ["TriggerEvent", "TriggerMessage", "run_trigger_monitor"]
