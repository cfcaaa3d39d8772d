"""`inorder pipeline`: the jobs of `inorder.spark.jobs` as commands.

Each command takes the arguments of its job under the same names. It checks them first (`readiness`), then loads Spark
and starts a JVM. Only a failed audit gives exit status 1.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import logging
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple, TypeVar

import click
from rich.text import Text

from ..client.bulk import NAME_LENGTH_MAX
from ..client.defining import local_name
from ..errors import InorderError, QueueCondition, Reason
from ..model.parameters import Text as TextKind
from ..support.advice import how_to_install
from .choosing import Of
from .readiness import (
    bad_rows,
    check_archive,
    check_extras,
    check_java,
    check_log,
    check_source,
    check_target,
    memory,
    split_rule,
)
from .running import INTERRUPTED, NO, TROUBLE, Command, CommandGroup, Run, queue_names, takes_store, tells_json
from .wording import plain, size

F = TypeVar("F", bound=Callable[..., Any])
STANDARD_ERROR = "-"
ORDER = click.option(
    "--order",
    type=click.Choice(("logical", "physical")),
    default="logical",
    show_default=True,
    help="Logical: groups together. Physical: every message in its place.",
)
JOIN = click.option("--join-segments", is_flag=True, help="Join the segments of a message into one row.")
OVERWRITE = click.option("--overwrite", is_flag=True, help="Remove the contents of the target folder first.")
PARALLEL = click.option(
    "--partitions", type=click.IntRange(1, 10_000), default=2, show_default=True, metavar="N",
    help="The number of tasks that read in parallel.",
)  # fmt: skip
NAME = Of(TextKind(NAME_LENGTH_MAX, least=1, fits=lambda text: bool(text.strip())))
ARCHIVE = click.argument("archive")
QUEUE = click.argument("queue", shell_complete=queue_names)


class Failed(InorderError):
    """A job failed. The exit status is 3 for any error that Spark or the queue raised."""


class JobCommand(Command):
    """A command that runs a job in its own Spark session and prints the result."""

    def __init__(self, name: str | None, **named: Any) -> None:
        super().__init__(name, **named)
        self.params += [
            click.Option(
                ["--driver-memory"], default="2g", show_default=True, metavar="SIZE", type=memory,
                help="The memory of Spark's JVM.",
            ),
            click.Option(
                ["--spark-log"], default=os.devnull, metavar="FILE",
                help="Write Spark's own log to this file, or - for standard error; default: nowhere.",
            ),
        ]  # fmt: skip

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except QueueCondition as condition:
            raise Failed(condition.args[0], reason=condition.reason, **condition.data) from condition


class PipelineGroup(CommandGroup):
    """The family of jobs."""

    command_class = JobCommand


@click.group("pipeline", cls=PipelineGroup, epilog="Example: inorder pipeline drain ORDERS archive/ --store orders.db")
def pipeline() -> None:
    """Move, order and check messages with Apache Spark.

    Spark runs these jobs on this machine. An archive is a folder of Parquet files that `drain` writes. The jobs need
    inorder[spark] and Java 17.
    """


class Spark(NamedTuple):
    """The settings with which a command starts Spark. Call `begun` after all other checks have passed."""

    run: Run
    driver_memory: str
    log: str

    @contextmanager
    def begun(self) -> Iterator[tuple[Any, Any]]:
        """Yields the module of jobs and a session. Inside the block, an error of Spark is reported in one line."""
        check_extras()
        check_java()
        check_log(self.log)
        jobs = import_module("inorder.spark.jobs")
        troubles = import_module("inorder.spark.jobs.troubles")
        name = click.get_current_context().command_path
        log = None if self.log == STANDARD_ERROR else self.log
        if log is not None:  # also of what PySpark logs in this process, such as the traceback of a Ctrl-C
            logging.basicConfig(filename=log)
        try:
            with troubles.told_plainly(), ExitStack() as until:
                with self.run.output.waiting("starting Spark"):
                    session = until.enter_context(jobs.session(name, driver_memory=self.driver_memory, log=log))
                yield jobs, session
        except QueueCondition as condition:
            if condition.reason is not Reason.UNEXPECTED_ERROR or self.log != os.devnull:
                raise
            raise Failed(f"{condition.args[0]}; --spark-log - shows Spark's full log") from condition


def runs_a_job(function: F) -> F:
    """Turns a function into a command. The function receives the run and `Spark`, and returns the result of its job."""

    @functools.wraps(function)
    def command(run: Run, driver_memory: str, spark_log: str, **given: Any) -> int:
        result = function(run, Spark(run, driver_memory, spark_log), **given)
        tell_result(run, result)
        if getattr(result, "failed", 0):
            return TROUBLE
        return NO if getattr(result, "error_count", 0) else 0

    return command  # type: ignore[return-value]


def on_store(function: F, *, several: bool = False) -> F:
    """A job on a store. The store and the queue are checked before Spark starts.

    Args:
        several: the queue may be names and patterns; then the names are checked.
    """

    @functools.wraps(function)
    def checked(run: Run, queue: str, **given: Any) -> Any:
        with run.opened() as qm:
            queues = [one for one in _names(queue) if "*" not in one] if several else [queue]
            if (place := given.get("bad_rows", "fail")) != "fail":
                queues.append(place.removeprefix("queue:"))
            for name in queues:
                local_name(qm, name)
        return function(run, queue=queue, **given)

    return takes_store(checked)  # type: ignore[return-value]


def _names(queues: str) -> list[str]:
    return [one.strip() for one in queues.split(",")]


def on_archive(function: F) -> F:
    """A job that works on archives only and takes no store."""

    @tells_json
    @functools.wraps(function)
    def command(as_json: bool, **given: Any) -> Any:
        return function(Run(None, as_json=as_json), **given)

    return command  # type: ignore[return-value]


@pipeline.command("drain", example="inorder pipeline drain ORDERS archive/ --store orders.db")
@QUEUE
@ARCHIVE
@click.option(
    "--application",
    type=NAME,
    default="drain",
    show_default=True,
    metavar="NAME",
    help="The name of this reader. Only one reader with this name runs at a time.",
)
@ORDER
@JOIN
@click.option(
    "--messages-per-batch",
    type=click.IntRange(1, 10**12),
    default=100_000,
    show_default=True,
    metavar="N",
    help="The most messages in one Spark batch.",
)
@PARALLEL
@click.option("--checkpoint", metavar="FOLDER", help="Default: _checkpoint in the archive.")
@click.option("--follow", is_flag=True, help="Keep running for new messages until Ctrl-C.")
@functools.partial(on_store, several=True)
@runs_a_job
def drain(run: Run, spark: Spark, queue: str, archive: str, *, follow: bool, **options: Any) -> Any:
    """Move messages from a queue to an archive, exactly once.

    QUEUE may be several names and patterns, as 'ORDERS.*,RETURNS'. ARCHIVE is a folder; later runs add to it. With
    --follow, each batch prints a line on standard error, unless that is a terminal.
    """
    check_target("ARCHIVE", archive, overwrite=True)
    with run.opened() as qm:
        depth = None if follow or "*" in queue else sum(map(qm.depth, _names(queue)))
    with spark.begun() as (jobs, session), told_while_it_works(run, depth, logs=follow) as tell:
        try:
            return jobs.drain(session, str(run.store.given), queue, archive, progress=tell, follow=follow, **options)
        except KeyboardInterrupt:
            run.output.note("interrupted; a claim may hold the last batch: the same command continues with it")
            raise click.exceptions.Exit(INTERRUPTED) from None


def takes_application(default: str) -> Callable[[F], F]:
    """Adds --application to a job that puts under a transaction."""
    told = "The application that the transaction belongs to."
    return click.option("--application", type=NAME, default=default, show_default=True, metavar="NAME", help=told)


@pipeline.command(
    "load", example="inorder pipeline load src/ FILES --format files --transaction monday --store orders.db"
)
@click.argument("source")
@QUEUE
@click.option(
    "--format",
    required=True,
    type=click.Choice(("parquet", "json", "csv", "files", "dmpmqmsg")),
    help="The form of SOURCE: tables, a folder of files, or dmpmqmsg files.",
)
@click.option(
    "--transaction", type=NAME, metavar="NAME",
    help="A name for the load. Loading again under the same name puts nothing.",
)  # fmt: skip
@takes_application("load")
@click.option("--group-by", metavar="COLUMN", help="For tables: rows with the same value in this column make a group.")
@click.option("--order-by", metavar="COLUMN", help="For tables: put rows in the order of this column.")
@click.option(
    "--bad-rows",
    type=bad_rows,
    default="fail",
    show_default=True,
    metavar="fail|queue:NAME",
    help="How to treat rows that are not valid messages.",
)
@click.option(
    "--split",
    type=split_rule,
    metavar="RULE",
    help="For files: how to split them into messages: delimiter:\\\\n (the default), size:65536, regex:PATTERN or "
    "whole.",
)
@click.option(
    "--pattern",
    "patterns",
    multiple=True,
    metavar="GLOB",
    help="For files: load only paths that match; may be repeated.",
)
@click.option("--exclude", multiple=True, metavar="GLOB", help="For files: skip paths that match; may be repeated.")
@click.option(
    "--read-option", "read_options", multiple=True, metavar="NAME=VALUE", help="An option for Spark's reader."
)
@on_store
@runs_a_job
def load(
    run: Run, spark: Spark, source: str, queue: str, *, format: str, read_options: tuple[str, ...], **options: Any
) -> Any:
    """Put tables, files or dmpmqmsg files on a queue, never twice.

    SOURCE is a file or a folder.
    """
    for one in read_options:
        if "=" not in one:
            raise click.BadParameter(f"{one!r} is not NAME=VALUE.", param_hint="--read-option")
    options |= {name: list(options[name]) for name in ("patterns", "exclude")}
    options |= {"format": format, "read_options": dict(one.split("=", 1) for one in read_options)}
    for name, formats in USED_BY.items():
        if options[name]:
            _refuse_unless(format, OPTIONS.get(name, "--" + name.replace("_", "-")), formats)
    check_source(source)
    with spark.begun() as (jobs, session), told_while_it_works(run) as tell:
        return jobs.load(session, source, str(run.store.given), queue, progress=tell, **options)


@pipeline.command("reorder", example="inorder pipeline reorder archive/ ordered/")
@ARCHIVE
@click.argument("target")
@ORDER
@JOIN
@click.option("--incomplete", metavar="FOLDER", help="Write incomplete groups to this folder.")
@OVERWRITE
@on_archive
@runs_a_job
def reorder(
    run: Run, spark: Spark, archive: str, target: str, *, incomplete: str | None, overwrite: bool, **options: Any
) -> Any:
    """Write an archive in logical order.

    TARGET is the folder for the result.
    """
    check_archive(archive)
    check_target("TARGET", target, overwrite=overwrite)
    check_target("--incomplete", incomplete, overwrite=overwrite)
    if options["order"] == "physical" and (incomplete or options["join_segments"]):
        raise click.UsageError("--join-segments and --incomplete need --order logical.")
    options |= {"incomplete": incomplete, "overwrite": overwrite}
    with spark.begun() as (jobs, session), run.output.bar() as show:
        return jobs.reorder(session, archive, target, progress=show, **options)


@pipeline.command("audit", example="inorder pipeline audit archive/ findings/")
@ARCHIVE
@click.argument("output")
@click.option(
    "--order",
    type=click.Choice(("logical", "physical", "none")),
    default="logical",
    show_default=True,
    help="The order that the reader asked for.",
)
@OVERWRITE
@on_archive
@runs_a_job
def audit(run: Run, spark: Spark, archive: str, output: str, *, order: str, overwrite: bool) -> Any:
    """Prove or disprove the order of an archive.

    OUTPUT is a folder for the findings and report.html, which has pictures if inorder[report] is installed. Exit
    status: 0 the order was kept; 1 the audit found errors; 2 or 3 the audit did not run.
    """
    check_archive(archive)
    check_target("OUTPUT", output, overwrite=overwrite)
    if find_spec("matplotlib") is None:
        run.output.note(f"report.html will have no pictures: they need {how_to_install('report')}")
    with spark.begun() as (jobs, session), run.output.bar() as show:
        words = [*click.get_current_context().command_path.split(), archive, output, "--order", order]
        command = shlex.join([*words, *(["--overwrite"] if overwrite else [])])
        return jobs.audit(session, archive, output, order=order, command=command, progress=show, overwrite=overwrite)


@pipeline.command(
    "replay",
    example="inorder pipeline replay archive/ ORDERS --transaction again --where 'priority > 4' --store orders.db",
)
@ARCHIVE
@QUEUE
@click.option(
    "--transaction",
    type=NAME,
    required=True,
    metavar="NAME",
    help="A name for the replay. Replaying again under the same name puts nothing.",
)
@takes_application("replay")
@click.option("--where", metavar="CONDITION", help="Replay only messages that meet this SQL condition.")
@ORDER
@on_store
@runs_a_job
def replay(run: Run, spark: Spark, archive: str, queue: str, **options: Any) -> Any:
    """Put an archive or part of it back on a queue, never twice."""
    check_archive(archive)
    with spark.begun() as (jobs, session), told_while_it_works(run) as tell:
        return jobs.replay(session, archive, str(run.store.given), queue, progress=tell, **options)


@pipeline.command("unload", example="inorder pipeline unload archive/ files/")
@ARCHIVE
@click.argument("target")
@click.option(
    "--format",
    type=click.Choice(("files", "dmpmqmsg")),
    default="files",
    show_default=True,
    help="Write the original files, or dmpmqmsg files.",
)
@click.option(
    "--existing",
    type=click.Choice(("refuse", "same", "replace")),
    help="How to treat existing files; default: same, or refuse for dmpmqmsg.",
)
@click.option(
    "--order", type=click.Choice(("logical", "physical")), help="The order of dmpmqmsg files; default: logical."
)
@click.option(
    "--leave-out-properties",
    is_flag=True,
    help="Write dmpmqmsg files without properties, which that format cannot hold.",
)
@on_archive
@runs_a_job
def unload(
    run: Run,
    spark: Spark,
    archive: str,
    target: str,
    *,
    format: str,
    existing: str | None,
    order: str | None,
    leave_out_properties: bool,
) -> Any:
    """Write the messages of an archive back to files.

    TARGET is a folder.
    """
    if order:
        _refuse_unless(format, "--order", ("dmpmqmsg",))
    if leave_out_properties:
        _refuse_unless(format, "--leave-out-properties", ("dmpmqmsg",))
    if existing == "same":
        _refuse_unless(format, "--existing same", ("files",))
    check_archive(archive)
    check_target("TARGET", target, overwrite=True)
    with spark.begun() as (jobs, session), told_while_it_works(run) as tell:
        if format == "files":
            return jobs.unload(session, archive, target, existing=existing or "same", progress=tell)
        options = {"order": order or "logical", "leave_out_properties": leave_out_properties}
        overwrite = existing == "replace"
        return {"messages": jobs.dump(session, archive, target, overwrite=overwrite, progress=tell, **options)}


TABLES = ("parquet", "json", "csv")
USED_BY = {
    "group_by": TABLES,
    "order_by": TABLES,
    "read_options": TABLES,
    "split": ("files",),
    "patterns": ("files",),
    "exclude": ("files",),
}
OPTIONS = {"patterns": "--pattern", "read_options": "--read-option"}


def _refuse_unless(format: str, option: str, formats: tuple[str, ...]) -> None:
    if format not in formats:
        raise click.UsageError(f"{option} needs --format {' or '.join(formats)}.")


@contextmanager
def told_while_it_works(run: Run, total: int | None = None, *, logs: bool = False) -> Iterator[Callable[[Any], None]]:
    """A block in which a job runs. It yields a function that shows people the progress.

    Args:
        total: the number of messages, if it is known before the job begins; a job may find it out itself.
        logs: without a terminal, print a line for each batch instead.
    """
    looked_at = run.output.notes.is_terminal
    with run.output.bar() as show:

        def tell(now: Any) -> None:
            known = total if now.total is None else now.total
            show(progress_line(now, known), now.messages, known)
            if logs and not looked_at:
                run.output.note(f"batch {now.batch}: {progress_line(now)}")

        yield tell


def progress_line(now: Any, total: int | None = None) -> str:
    """The progress of a job, and its speed so far."""
    done = f"{now.messages:,}" if total is None else f"{now.messages:,} of {total:,}"
    return f"{done} messages, {size(now.size)} bytes, {rates(now.messages, now.seconds, now.size)}"


def rates(messages: int, seconds: float, length: int | None = None) -> str:
    """The speed of a job: messages a second, and bytes a second if they are known."""
    if not seconds:
        return "at once"
    told = f"{messages / seconds:,.0f} messages/s"
    return told if length is None else f"{told}, {size(round(length / seconds))} bytes/s"


def tell_result(run: Run, result: Any) -> None:
    """Prints the result of a job: one line of JSON, or a line for each figure with the speed last."""
    values = result if isinstance(result, dict) else dataclasses.asdict(result)
    if run.output.as_json:
        run.output.line(json.loads(result.as_json()) if hasattr(result, "as_json") else values)
        return
    if hasattr(result, "as_text"):
        run.output.console.print(Text(result.as_text()))
        return
    if values.get("messages") and "seconds" in values:
        values = values | {"rate": rates(values["messages"], values["seconds"], values.get("size"))}
    told = {FIGURES.get(name, name.replace("_", " ")): value for name, value in values.items()}
    width = max(map(len, told))
    for name, value in told.items():
        for line in value if isinstance(value, tuple) else () if value is None else (value,):
            run.output.console.print(Text(f"{name:{width}}  {plain(_figure(line))}"))


# Labels of figures that their field names would not explain. A figure with parts gets a line for each part.
FIGURES = {
    "size": "bytes of bodies",
    "batches": "micro-batches",
    "confirmed": "confirmed at the end",
    "already": "put by an earlier run",
    "failed": "files not written",
    "troubles": "trouble",
    "others": "messages of no file",
}


def _figure(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):  # a `spark.files.UnwrittenFile`
        path, group, why = value
        return f"{path or f'group {group}'}: {why}"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
