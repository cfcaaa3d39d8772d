"""`inorder trigger-monitor`: starts programs when trigger messages ask for them."""

from __future__ import annotations

import os
from dataclasses import asdict
from functools import partial
from typing import Any

import click

from ..formats.json_lines import when
from ..mq.trigger_monitor import TriggerEvent, run_trigger_monitor
from .lasting import ends_by_signal, run_all
from .running import STORE_VARIABLE, Command, Run, queue_names, takes_store
from .wording import ended_how

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
        read = partial(
            run_trigger_monitor,
            qm,
            until_empty=until_empty,
            ends=ends.is_set,
            report=partial(_tell, run),
            environment={STORE_VARIABLE: os.fspath(run.store.given)},
            output=STANDARD_ERROR if run.output.as_json else None,
        )
        failed = run_all([(f"trigger monitor {name}", partial(read, name)) for name in queues], ends)
    if failed is not None:
        raise failed


def _tell(run: Run, event: TriggerEvent) -> None:
    if run.output.as_json:
        run.output.line(_record(event))
    else:
        run.output.note(_text(event))


def _record(event: TriggerEvent) -> dict[str, Any]:
    return {
        **event._asdict(),
        "at": when(event.at),
        "trigger": None if event.trigger is None else asdict(event.trigger),
    }


def _text(event: TriggerEvent) -> str:
    of = "" if event.trigger is None else f" for {event.trigger.queue}"
    if event.event == "set aside":
        return f"{event.initiation_queue}: a trigger message{of} is a dead letter: {event.error}"
    program = "" if event.trigger is None else event.trigger.application_id.strip()
    return f"{event.initiation_queue}: {program}{of} ({event.process}) {_how(event)}"


def _how(event: TriggerEvent) -> str:
    status = event.status
    if event.event != "ended" or status is None:
        return event.event
    return ended_how(status)
