"""A trigger monitor: reads an initiation queue, and starts the program that each trigger message names (R4.9).

It starts a shell command, built like MQ's runmqtrm does::

    application_id 'MQTMC2, 732 characters, one argument' environment_data

An `&` at the end of the environment data starts the program in the background; without it the monitor waits for its end
before it gets the next trigger message. The program reads its argument with
`TriggerMessage.from_argument(sys.argv[1])`.

A trigger message is got in a unit of work, which is committed when the program has started. So a monitor that dies
loses none; if it dies between the start and the commit, the program is started again. A triggered program must expect
an empty queue anyway, because others may have read it. A trigger message whose program cannot be started becomes a dead
letter, in the same unit of work.
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
from ..model.options import check_function, check_instance, check_switch
from ..model.process_attributes import UNIX
from ..rules.dead_letters import NO_QUEUE, WhyDead, buried
from ..rules.triggers import TriggerMessage

LOOK_SECONDS = 1.0  # how soon a monitor notices that it is to end, or that a program has ended
SHELL = "/bin/sh"
PROGRAM = "trigger-monitor"

TriggerEventName = Literal["started", "ended", "goes on", "set aside"]
Ends = Callable[[], bool]


class TriggerEvent(NamedTuple):
    """An event of a trigger monitor.

    Args:
        event: "started"; "ended", the program has ended; "goes on", it is still running when the monitor ends; "set
            aside", it cannot be started, and the trigger message is a dead letter.
        at: when, seconds since 1970.
        initiation_queue: the queue of the trigger message.
        trigger: its contents; None: it is not a trigger message.
        command: the shell command; empty: none.
        process: the id of the process; None: none.
        status: the exit status of a program that has ended; less than 0: the signal that killed it. Otherwise None.
        reason, error: why it was set aside, a `Feedback` and a description; otherwise 0 and empty.
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
    """Starts the programs that the trigger messages of an initiation queue name, until it is to end.

    Any number of monitors may read one queue: each trigger message goes to one of them.

    Args:
        until_empty: end when no trigger message is left, and all started programs have ended.
        ends: called at least once a second; True ends the monitor. Started programs continue to run.
        report: called with each `TriggerEvent`. An exception from it ends the monitor.
        environment: variables for the programs, in addition to this process's.
        output: the programs' standard output: a file or its descriptor; None: that of this process. Environment data
            such as `>> log` override it.

    Returns: the number of started programs.

    Raises ArgumentError; CallerError 2012 if the system has no POSIX shell; Undeliverable if a trigger message whose
    program cannot be started cannot become a dead letter either: it returns to its place; and as `QueueManager.open`.
    """
    check_switch("until_empty", until_empty)
    check_function("ends", ends)
    check_function("report", report)
    if environment is not None:
        check_instance("environment", environment, Mapping, "texts by their names, or None")
    if output is not None and (isinstance(output, bool) or not (isinstance(output, int) or hasattr(output, "fileno"))):
        raise bad_argument("output", output, "a file, its descriptor, or None")
    if os.name != "posix":
        raise CallerError("a trigger monitor needs a POSIX shell", reason=Reason.ENVIRONMENT_ERROR)
    with qm.connect(program=PROGRAM) as own:
        tell, is_over = report or (lambda event: None), ends or (lambda: False)
        return _Monitor(own, queue, until_empty, is_over, tell, environment or {}, output).run()


class _Unstartable(Exception):
    """A trigger message names no program that can be started; `feedback` and the text say why."""

    def __init__(self, feedback: Feedback, text: str) -> None:
        super().__init__(text)
        self.feedback = feedback


class _Started(NamedTuple):
    """A running program, and the trigger message that started it."""

    process: subprocess.Popen[bytes]
    trigger: TriggerMessage
    command: str
    in_background: bool


_GOING_ON: list[subprocess.Popen[bytes]] = []  # children of this process that ended monitors have left running


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
        """Starts the program of the next trigger message; waits for one as long as one check."""
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
        """Starts the program, in the unit that has got its trigger message; or makes that a dead letter."""
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

    # --- the program to start

    def _said(self, message: Got) -> TriggerMessage:
        with self._own._session:
            is_own = self._own._store.is_own(message.token)
        if not is_own:
            raise _Unstartable(Feedback.TM_ERROR, "the queue manager did not put it for a trigger")
        try:
            return TriggerMessage.from_bytes(message.body)
        except ArgumentError:
            raise _Unstartable(Feedback.TM_ERROR, "it is not a trigger message") from None

    def _command(self, trigger: TriggerMessage) -> tuple[str, bool]:
        """The shell command, and whether it runs in the background."""
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
        """Checks that the shell finds the program, if the command is simple enough to tell."""
        try:
            word = shlex.split(program)[0]
        except (ValueError, IndexError):
            return  # the shell reports the error
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
                start_new_session=True,  # a signal from the terminal ends the monitor but not the program
            )
        except OSError as error:
            text = f"the shell cannot be started: {error.strerror}"
            raise _Unstartable(Feedback.APPL_CANNOT_BE_STARTED, text) from error

    def _set_aside(self, message: Got, error: _Unstartable) -> None:
        """Makes a trigger message a dead letter, in the unit that has got it. Raises Undeliverable."""
        why = WhyDead(int(error.feedback), self._queue, "", self._now(), PROGRAM, 0, str(error))
        dead, to = buried(message, why), self._own.admin.manager_attributes().dead_letter_queue
        text = f"a trigger message of {self._queue} names no program that can be started ({error}), and "
        if isinstance(dead, Reason):
            raise Undeliverable(f"{text}its properties leave no room for that", reason=dead, queue=self._queue)
        if not to:
            raise Undeliverable(f"{text}{NO_QUEUE}", reason=Reason.UNKNOWN_OBJECT_NAME, queue=self._queue)
        try:
            self._own.put(to, dead, context="set_all")
        except InorderError as fault:
            raise Undeliverable(
                f"{text}{to} does not accept it: {fault.args[0]}", reason=fault.reason, queue=self._queue
            ) from fault

    # --- started programs

    def _await(self, one: _Started) -> None:
        """Waits until a program has ended, or the monitor is to end."""
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
