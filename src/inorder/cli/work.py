"""`inorder work`: functions that work on queues, in processes and threads."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import click

from .. import QueueManager
from ..attributes import QueueAttributes
from ..errors import ArgumentError
from ..work.attempts import Outcome
from ..work.loading import load
from ..work.processes import PROCESSES_MAX, Happened, Supervisor, leave, serve
from ..work.tasks import ATTEMPTS, THREADS_MAX, Task, Tasks
from ..work.telling import Told, as_record, in_words
from ..work.worker import Worker
from .output import when
from .running import STORE_VARIABLE, Command, Run, takes_store

COLUMNS = {
    "task": "task",
    "queue": "queue",
    "takes": "takes",
    "read_order": "read order",
    "attempts": "attempts",
    "backoff": "back-off",
    "timeout": "time limit",
    "threads": "threads",
    "dead_letters": "dead letters",
}


@click.command("work", cls=Command, example="inorder work shop.tasks --processes 2 --threads 4 --store shop.db")
@click.argument("tasks", metavar="MODULE[:OBJECT]")
@click.option("--processes", "-p", type=click.IntRange(1, PROCESSES_MAX), default=1, show_default=True,
              help="How many; one that dies is replaced.")  # fmt: skip
@click.option("--threads", "-t", type=click.IntRange(1, THREADS_MAX), default=1, show_default=True,
              help="In each process, for each task that does not say it itself; each has a connection.")  # fmt: skip
@click.option("--grace", type=click.FloatRange(0, 86_400), default=30.0, show_default=True, metavar="SECONDS",
              help="What is under way may end within, after SIGTERM or Ctrl-C; then it is given back.")  # fmt: skip
@click.option("--list", "lists", is_flag=True, help="Show what is registered, and work on nothing.")
@click.option("--process", type=int, hidden=True, help="This is one of the processes.")
@click.option("--replaces", is_flag=True, hidden=True, help="One that died was there before.")
@takes_store
@click.pass_context
def work(context: click.Context, /, run: Run, tasks: str, processes: int, lists: bool, **how: Any) -> None:
    """Call functions with the messages of queues.

    MODULE is one of Python's, found from the current directory too; OBJECT is its inorder.work.Tasks, unless that is
    called tasks. A function is called with a message, or a whole group, in a unit of work: it is committed when the
    function returns. When it raises an exception the message goes back to its place, and comes again later; after the
    last attempt it is a dead letter (inorder dead list). Attempts are counted in the store, so that one whose process
    was killed counts, too. On a queue whose read order is required nothing passes a message that fails: its task stops.

    Ends by SIGTERM or Ctrl-C; a second one ends it at once. What it was at work on then is back on its queue. Exit
    status 1: a task has stopped by itself.
    """
    registered = _loaded(tasks)
    threads, grace = how["threads"], how["grace"]
    if how["process"] is not None:
        _process(run, registered, threads, grace, how["process"], replaces=how["replaces"])
        return
    with run.opened() as qm:
        listed = [_record(qm, task, threads) for task in registered]
    if lists:
        run.output.listing(listed, COLUMNS, nothing="nothing is registered")
        return

    def command(number: int, replaces: bool) -> Sequence[str]:
        given = [sys.executable, "-m", "inorder", "work", tasks, "--threads", str(threads), "--grace", str(grace)]
        given += ["--process", str(number), *["--replaces"] * replaces, *["--json"] * run.output.as_json]
        return given

    supervisor = Supervisor(
        command,
        environment={
            STORE_VARIABLE: str(run.store.given)
        },  # a URL may have a password, which no list of processes shows
        count=processes,
        grace=grace,
        log=lambda happened: _say(run, happened),
    )
    run.output.note(f"{', '.join(sorted(task.name for task in registered))}: {processes} processes; Ctrl-C ends")
    context.exit(0 if supervisor.run() else 1)


def _loaded(named: str) -> Tasks:
    """Raises: click.UsageError, there are none."""
    try:
        found = load(named)
    except ArgumentError as error:
        raise click.UsageError(f"MODULE {named}: {error.args[0]}") from error
    if not len(found):
        raise click.UsageError(f'MODULE {named}: nothing is registered there: @tasks.task("QUEUE") does.')
    return found


def _process(run: Run, tasks: Tasks, threads: int, grace: float, number: int, *, replaces: bool) -> None:
    """One of the processes."""

    def log(told: Told) -> None:
        if run.output.as_json:
            run.output.line({"time": when(time.time()), "process": number, **as_record(told)})
        elif told.ended is None or told.ended.outcome is not Outcome.DONE:
            run.output.note(f"[{number}] {in_words(told)}")

    with run.opened() as qm:
        worker = Worker(qm, tasks, threads=threads, log=log, replaces_threads=False, tries_again=not replaces)
        status = serve(worker, grace)
    leave(status)


def _say(run: Run, happened: Happened) -> None:
    """What became of a process."""
    if run.output.as_json:
        run.output.line({"time": when(time.time()), **happened._asdict()})
    elif happened.event == "died":
        status = happened.status or 0
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        run.output.note(f"[{happened.process}] {how}; another begins in {happened.delay:.1f} s")
    elif happened.event == "killed":
        run.output.note(f"[{happened.process}] is killed: what it held goes back")


# --- what is registered


def _record(qm: QueueManager, task: Task, threads: int) -> dict[str, Any]:
    """A task as `--list` shows it. Raises: UnknownQueue 2085."""
    found = qm.attributes(task.queue)
    if found.type == "alias":
        found = qm.attributes(found.base_queue)
    backoff = task.backoff
    return {
        "task": task.name,
        "queue": task.queue,
        "takes": "groups" if task.group else "messages, logical order" if task.options.logical else "messages",
        "read_order": "required" if found.read_order == "required" else task.options.read_order or found.read_order,
        "attempts": task.attempts or found.backout_threshold or ATTEMPTS,
        "backoff": f"{backoff.first:g} s, x {backoff.factor:g}, up to {backoff.most:g} s",
        "timeout": task.timeout,
        "threads": task.threads or threads,
        "dead_letters": _dead_letters(qm, found),
    }


def _dead_letters(qm: QueueManager, queue: QueueAttributes) -> str:
    """Where messages go that were tried often enough."""
    if queue.read_order == "required":
        return "none: it stops"
    return queue.backout_requeue_queue or qm.manager_attributes().dead_letter_queue or "no queue: it stops"
