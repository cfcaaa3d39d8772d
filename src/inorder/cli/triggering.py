"""`inorder trigger-monitor`: starts programs when trigger messages ask for them."""

from __future__ import annotations

import os
import threading
from dataclasses import asdict
from typing import Any

import click

from .. import QueueManager
from ..errors import InorderError
from ..formats.json_lines import when
from ..mq.trigger_monitor import TriggerEvent, run_trigger_monitor
from .lasting import ends_by_signal, run_all
from .running import STORE_VARIABLE, Command, Run, queue_names, takes_store

STANDARD_ERROR = 2


@click.command("trigger-monitor", cls=Command, example="inorder trigger-monitor START --store orders.db")
@click.argument("queues", nargs=-1, required=True, metavar="INITIATION_QUEUE...", shell_complete=queue_names)
@click.option(
    "--until-empty", is_flag=True, help="End when no trigger messages are left and all started programs have ended."
)
@takes_store
def trigger_monitor(run: Run, queues: tuple[str, ...], until_empty: bool) -> None:
    """Start the programs that trigger messages ask for, until Ctrl-C.

    The shell runs the APPLICID of the process definition, with the trigger message as one argument in the form of
    MQTMC2, followed by ENVRDATA. If ENVRDATA ends with &, the program runs in the background; otherwise the next
    program of this queue waits until it ends. A trigger message whose program cannot be started becomes a dead letter.
    Programs find the store in INORDER_STORE. Ctrl-C ends only the monitor; started programs keep running.

    If the monitor is killed, no trigger message is lost. It reports each start and each end of a program on standard
    error. With --json it writes them as lines to standard output, and programs write to standard error instead.
    """
    with run.opened() as qm, ends_by_signal() as ends:
        monitors = [_MonitorThread(run, qm, name, ends, until_empty) for name in queues]
        run_all(monitors)
    failed = [one.error for one in monitors if one.error is not None]
    if failed:
        raise failed[0]


class _MonitorThread(threading.Thread):
    """Reads one initiation queue. If it fails, it ends the other monitors too."""

    def __init__(self, run: Run, qm: QueueManager, queue: str, ends: threading.Event, until_empty: bool) -> None:
        super().__init__(name=f"trigger monitor {queue}")
        self._run, self._qm, self._queue, self._ends, self._until_empty = run, qm, queue, ends, until_empty
        self.error: InorderError | None = None

    def run(self) -> None:
        try:
            run_trigger_monitor(
                self._qm,
                self._queue,
                until_empty=self._until_empty,
                ends=self._ends.is_set,
                report=self._tell,
                environment={STORE_VARIABLE: os.fspath(self._run.store.given)},
                output=STANDARD_ERROR if self._run.output.as_json else None,
            )
        except InorderError as error:
            self.error = error
            self._ends.set()

    def _tell(self, event: TriggerEvent) -> None:
        if self._run.output.as_json:
            self._run.output.line(_record(event))
        else:
            self._run.output.note(_text(event))


def _record(event: TriggerEvent) -> dict[str, Any]:
    return {
        **event._asdict(),
        "at": when(event.at),
        "trigger": None if event.trigger is None else asdict(event.trigger),
    }


def _text(event: TriggerEvent) -> str:
    """An event in one line."""
    of = "" if event.trigger is None else f" for {event.trigger.queue}"
    if event.event == "set aside":
        return f"{event.initiation_queue}: a trigger message{of} is a dead letter: {event.error}"
    program = "" if event.trigger is None else event.trigger.application_id.strip()
    return f"{event.initiation_queue}: {program}{of} ({event.process}) {_how(event)}"


def _how(event: TriggerEvent) -> str:
    status = event.status
    if event.event != "ended" or status is None:
        return event.event
    return f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
