"""`inorder work`: runs functions on the messages of queues, in processes and threads."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from .. import QueueManager
from ..client.defining import local_attributes
from ..client.programs import WORKER
from ..errors import ArgumentError, UnknownQueue
from ..formats.json_lines import when
from ..model.attributes import QueueAttributes
from ..model.parameters import Seconds
from ..support.advice import how_to_install
from ..work.creating import DEFAULT_QUEUE, create_queue
from ..work.job import id_of
from ..work.loading import load
from ..work.periodic import Schedule, Standing, checked, restart, standings
from ..work.processes import PROCESSES_MAX, STORE_LOST, Happened, Supervisor, leave, serve
from ..work.reloading import SourceWatch
from ..work.reporting import WorkerEvent, as_record, in_words
from ..work.results import JobPlace, status_of
from ..work.tasks import ATTEMPTS, THREADS_MAX, Task, Tasks
from ..work.worker import Worker
from .choosing import Of
from .output import give_up_output
from .running import STORE_VARIABLE, Command, Run, takes_store
from .wording import ended_how

LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
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
SCHEDULE_COLUMNS = {
    "schedule": "schedule",
    "queue": "queue",
    "cron": "cron",
    "zone": "zone",
    "missed": "missed runs",
    "last": "last",
    "next": "next",
    "overdue": "overdue",
}


@click.command("work", cls=Command, example="inorder work shop.tasks --processes 2 --threads 4 --store shop.db")
@click.argument("tasks", metavar="MODULE[:OBJECT] | status")
@click.argument("job", metavar="ID", required=False)
@click.option("--queue", "-q", default=DEFAULT_QUEUE, show_default=True, metavar="QUEUE", help="With status: the queue "
              "of the job.")  # fmt: skip
@click.option("--processes", "-p", type=click.IntRange(1, PROCESSES_MAX), default=1, show_default=True, metavar="N",
              help="The number of worker processes; one that ends is replaced.")  # fmt: skip
@click.option("--threads", "-t", type=click.IntRange(1, THREADS_MAX), default=1, show_default=True, metavar="N",
              help="Threads in each process for each function of messages and each queue of tasks, unless they set "
              "their own number.")  # fmt: skip
@click.option("--grace", type=Of(Seconds(0, 86_400)), default=30.0, show_default=True, metavar="SECONDS",
              help="Time for running calls to finish after SIGTERM or Ctrl-C, at most 86,400; then their messages "
              "return to the queue.")  # fmt: skip
@click.option("--metrics", metavar="[HOST:]PORT", help="Serve metrics of all processes to Prometheus on this "
              "address; without HOST on this machine only.")  # fmt: skip
@click.option("--log-level", "-l", type=click.Choice(tuple(LEVELS)), default="info", show_default=True,
              help="Print only events of at least this level: info includes each success.")  # fmt: skip
@click.option(
    "--burst", is_flag=True, help="End as soon as no message is ready and no call runs. Schedules do not run."
)
@click.option("--reload", "reloads", is_flag=True, help="Restart the processes when a source file changes: for "
              "development.")  # fmt: skip
@click.option("--list", "lists", is_flag=True, help="List the registered tasks and schedules, and exit.")
@click.option("--restart", "restarts", metavar="SCHEDULE", help="Restart this schedule from now, and exit. Use it "
              "if a wrong clock put its last run into the "
              "future.")  # fmt: skip
@click.option("--process", type=int, hidden=True, help="The number of this worker process.")
@click.option("--measured", is_flag=True, hidden=True, help="Collect metrics for the parent process.")
@click.option("--replaces", is_flag=True, hidden=True, help="This process replaces one that died.")
@takes_store
@click.pass_context
def work(
    context: click.Context,
    /,
    run: Run,
    tasks: str,
    job: str | None,
    processes: int,
    lists: bool,
    restarts: str | None,
    **how: Any,
) -> None:
    """Call functions with the messages of queues.

    MODULE is a Python module, which may be in the current directory. OBJECT is the name of its inorder.work.Tasks, by
    default tasks. The command uses the store that this object names, unless you name another one. A function is called
    with a message, the arguments in it or a whole group in a unit of work, which is committed when the function
    returns. If it raises an exception, the message returns to its place and is tried again later; after the last
    attempt it becomes a dead letter (inorder dead list). The store counts attempts, so an attempt counts even if its
    process was killed. On a queue whose read order is required no message overtakes one that fails: its task stops.

    Every process also runs the registered schedules (tasks.periodic); each run is put only once.

    SIGTERM or Ctrl-C ends the command after the grace time, a second signal ends it at once; messages in work return to
    their queues. It also ends when the reader of its --json output closes the pipe. Exit status 1: it ended at once, or
    a task or schedule had stopped. A process whose store was replaced, or whose sync to disk failed, ends with status 3
    and is replaced; with --metrics the command ends with that status too. Programs that a function starts end with its
    process, unless they have their own session.

    inorder work status ID shows the state of one job, its result if that is kept, and its errors. ID is the message id
    of the job, as the log of the workers shows it. Exit status 1: no message, result or dead letter has it.
    """
    given = {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    if job is not None:
        if tasks != "status":
            raise click.UsageError(f"Got unexpected extra argument ({job}).")
        if others := given - {"tasks", "job", "queue", "store", "as_json"}:
            raise click.UsageError(f"status takes --queue, --store and --json, not {_flags(context, others)}.")
        _tell_status(context, run, job, how["queue"])
        return
    if "queue" in given:
        raise click.UsageError("--queue is for status ID: the tasks name their queues.")
    registered = _loaded(run, tasks)
    run.use_unless_named(registered.store)
    if restarts is not None:
        _restart(run, registered, restarts)
        return
    threads, grace = how["threads"], how["grace"]
    if how["process"] is not None:
        _process(run, f"{WORKER} {tasks}", registered, threads, grace, how)
        return
    with run.opened() as qm:
        if any(task.queue == DEFAULT_QUEUE for task in registered):
            create_queue(qm)
        listed = [_record(qm, task, threads) for task in registered]
        scheduled = [_standing_of(qm, one) for one in checked(registered.schedules)]
    if lists:
        for records, columns in ((listed, COLUMNS), (scheduled, SCHEDULE_COLUMNS)):
            if records:
                run.output.listing(records, columns, nothing="")
        return

    def command(number: int, replaces: bool) -> Sequence[str]:
        given = [sys.executable, "-m", "inorder", "work", tasks, "--threads", str(threads), "--grace", str(grace)]
        given += ["--log-level", how["log_level"], "--process", str(number)]
        switches = {"replaces": replaces, "json": run.output.as_json, "burst": how["burst"], "measured": how["metrics"]}
        return given + [f"--{name}" for name, is_on in switches.items() if is_on]

    def log(happened: Happened) -> None:
        with _unless_unread(supervisor.reader_has_gone):
            _say(run, happened, LEVELS[how["log_level"]], check_store)

    with _metrics(run, how["metrics"]) as (environment, check_store):
        supervisor = Supervisor(
            command,
            # a URL may contain a password, which must not appear in the list of processes
            environment={STORE_VARIABLE: str(run.store.given), **environment},
            count=processes,
            grace=grace,
            log=log,
            has_changed=SourceWatch().has_changed if how["reloads"] else None,
        )
        names = sorted([task.name for task in registered] + [one.name for one in registered.schedules])
        run.output.note(f"{', '.join(names)}: {processes} process{'es' * (processes > 1)}; Ctrl-C ends")
        ended_well = supervisor.run()
    context.exit(0 if ended_well else 1)


def _flags(context: click.Context, names: Container[str]) -> str:
    return ", ".join(one.opts[0] for one in context.command.params if one.name in names)


@contextmanager
def _unless_unread(end: Callable[[], object]) -> Iterator[None]:
    """If the reader of standard output has gone, stops writing and calls `end`."""
    try:
        yield
    except BrokenPipeError:
        give_up_output()
        end()


@contextmanager
def _metrics(run: Run, address: str | None) -> Iterator[tuple[Mapping[str, str], Callable[[], None]]]:
    """Answers scrapes inside the block. Raises: click.UsageError.

    Yields: the environment for worker processes, and a check that raises StoreError if this process must reopen the
    store.
    """
    if address is None:
        yield {}, lambda: None
        return
    try:
        from ..integrations import prometheus_server  # noqa: PLC0415 - it loads the library
    except ModuleNotFoundError as missing:
        text = f"--metrics needs a library: {how_to_install('prometheus')} ({missing.name} is not installed)"
        raise click.UsageError(text) from missing
    with run.opened() as qm, prometheus_server.serving(qm, *prometheus_server.address_of(address)) as environment:
        yield environment, qm.admin.check_store


def _loaded(run: Run, named: str) -> Tasks:
    """Loads the tasks. Raises: click.UsageError, there are none; click.ClickException, the module cannot be imported:
    its traceback has been printed.
    """
    module = named.partition(":")[0]
    if module.endswith(".py"):
        raise click.UsageError(f"MODULE {named} must be a module, not a file: use {Path(module).stem}.")
    try:
        found = load(named)
    except ArgumentError as error:
        lacks_id = "ID is missing; and " if named == "status" else ""
        raise click.UsageError(f"MODULE {named}: {lacks_id}{error.args[0]}") from error
    except Exception as error:
        run.output.trace(error, behind=load.__code__.co_filename)
        raise click.ClickException(f"MODULE {named} cannot be imported: {type(error).__name__}: {error}.") from error
    if not found:
        raise click.UsageError(f"MODULE {named} registers no tasks: use @tasks.task or @tasks.periodic.")
    return found


def _process(run: Run, program: str, tasks: Tasks, threads: int, grace: float, how: Mapping[str, Any]) -> None:
    number, replaces, least = how["process"], how["replaces"], LEVELS[how["log_level"]]
    unread = threading.Event()

    def log(event: WorkerEvent) -> None:
        if event.level < least:
            return
        if run.output.as_json:
            with _unless_unread(unread.set):
                run.output.line({"time": when(time.time()), "process": number, **as_record(event)})
        else:
            run.output.note(_line(event.level, number, in_words(event)))

    with run.opened(program=program) as qm:
        if how["measured"]:
            from ..integrations import prometheus_server  # noqa: PLC0415 - it loads the library

            prometheus_server.count(qm)
        worker = Worker(
            qm, tasks, threads=threads, log=log, replaces_threads=False, tries_again=not replaces, burst=how["burst"]
        )
        status = serve(worker, grace, unread)
        if status == STORE_LOST:
            leave(status)  # the store cannot be closed either: another process settles its work
    leave(status)


def _say(run: Run, happened: Happened, least: int, check_store: Callable[[], None]) -> None:
    """Reports the end of a process. Raises: StoreError, if this process can no longer use its own connection."""
    level = logging.INFO if happened.event in ("started", "reloaded") else logging.WARNING
    if run.output.as_json and level >= least:
        record = {"time": when(time.time()), "level": logging.getLevelName(level).lower(), **happened._asdict()}
        run.output.line(record)
    elif level >= least:
        run.output.note(_line(level, happened.process, _in_words(happened)))
    if happened.event == "died" and happened.status == STORE_LOST:
        check_store()


def _in_words(happened: Happened) -> str:
    if happened.event == "started":
        return f"started as process {happened.pid}"
    if happened.event == "failed":
        return f"could not be started: {happened.error}; the next try is in {happened.delay:.1f} s"
    if happened.event == "reloaded":
        return "is restarted: its source has changed"
    if happened.event == "killed":
        return "was killed: its messages return to their queues"
    return f"{ended_how(happened.status or 0)}; a replacement starts in {happened.delay:.1f} s"


def _line(level: int, process: int, text: str) -> str:
    """A line of the log for people."""
    return f"{when(time.time())} {logging.getLevelName(level)} [{process}] {text}"


# --- the registered tasks and schedules


def _record(qm: QueueManager, task: Task, threads: int) -> dict[str, Any]:
    """A task as `--list` shows it. Raises: UnknownQueue 2085."""
    with _named(f"task {task.name}"):
        found = local_attributes(qm, task.queue)
    backoff = task.backoff
    return {
        "task": task.name,
        "queue": task.queue,
        "takes": _takes(task),
        "read_order": "required" if found.read_order == "required" else task.options.read_order or found.read_order,
        "attempts": task.attempts or found.backout_threshold or ATTEMPTS,
        "backoff": f"{backoff.first:g} s, x {backoff.factor:g}, up to {backoff.most:g} s",
        "timeout": task.timeout,
        "threads": task.threads or threads,
        "dead_letters": _dead_letters(qm, found),
    }


@contextmanager
def _named(owner: str) -> Iterator[None]:
    """If a queue does not exist, names the task or schedule in the error."""
    try:
        yield
    except UnknownQueue as error:
        error.args = (f"{owner}: {error.args[0]}", *error.args[1:])
        raise


def _takes(task: Task) -> str:
    if task.arguments is not None:
        return "arguments"
    return "groups" if task.group else "messages, logical order" if task.options.logical else "messages"


def _tell_status(context: click.Context, run: Run, job: str, queue: str) -> None:
    """Shows a job. Raises: click.UsageError, if it is not an id."""
    try:
        place = JobPlace(id_of(job), queue)
    except ArgumentError as error:
        raise click.UsageError(f"ID: {error.args[0]}.") from error
    with run.opened() as qm:
        found = status_of(qm, place)
    record = found._asdict() | {
        "job": job,
        "queue": queue,
        "since": None if found.since is None else when(found.since),
        "error": None if found.error is None else found.error._asdict(),
        "attempts": [
            {"number": one.number, "at": when(one.at), "error": one.error._asdict()} for one in found.attempts
        ],
    }
    words = [f"{found.task or 'job'} {found.state}"]
    if found.state == "running":
        words.append(f"by {found.program}{'' if found.process is None else f', process {found.process}'}")
    if found.since is not None:
        word = {"running": "since ", "waiting": "since ", "delayed": "until ", "retrying": "again at "}
        words.append(f"{word.get(found.state, '')}{when(found.since)}")
    is_done = found.state == "done"
    if is_done and found.error is None:
        words.append(f"result {json.dumps(found.result, ensure_ascii=False)}")
    lines = [", ".join(words)]
    for one in found.attempts:
        lines.append(f"attempt {one.number}, {when(one.at)}: {': '.join(filter(None, one.error))}")
    if found.error is not None and (is_done or not found.attempts):
        lines.append(": ".join(filter(None, found.error)))
    if run.output.as_json:
        run.output.line(record)
    for line in lines:
        run.output.say(line)
    context.exit(1 if found.state == "unknown" else 0)


def _restart(run: Run, tasks: Tasks, name: str) -> None:
    """Restarts a schedule. Raises: click.UsageError, if no schedule has this name."""
    named = [one for one in tasks.schedules if one.name == name]
    if not named:
        names = ", ".join(one.name for one in tasks.schedules)
        raise click.UsageError(
            f"--restart must be one of: {names}." if names else "--restart: MODULE has no schedules."
        )
    with run.opened() as qm:
        for one in named:
            restart(qm, one)
        for standing in standings(qm, named):
            run.output.tell(
                _standing(standing), f"{name} on {standing.schedule.queue} restarted; next run: {when(standing.next)}"
            )


def _standing_of(qm: QueueManager, schedule: Schedule) -> dict[str, Any]:
    """Raises: UnknownQueue 2085."""
    with _named(f"schedule {schedule.name}"):
        [standing] = standings(qm, [schedule])
    return _standing(standing)


def _standing(standing: Standing) -> dict[str, Any]:
    """A schedule as `--list` shows it."""
    one = standing.schedule
    return {
        "schedule": one.name,
        "queue": one.queue,
        "cron": one.cron,
        "zone": one.zone,
        "missed": one.missed,
        "last": when(standing.last),
        "next": when(standing.next),
        "overdue": standing.overdue,
    }


def _dead_letters(qm: QueueManager, queue: QueueAttributes) -> str:
    """The queue for messages whose attempts are used up."""
    if queue.read_order == "required":
        return "none: it stops"
    return queue.backout_requeue_queue or qm.dead.place()
