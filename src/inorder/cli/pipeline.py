"""`inorder pipeline`: the jobs of `inorder.spark.jobs` as commands.

Each command takes the arguments of its job, under their names. What can be wrong with them is looked at first
(`readiness`); then Spark is loaded and a JVM begins. Exit status 1 is the verdict of an audit and nothing else.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple, TypeVar

import click
from rich.text import Text

from ..errors import InorderError, QueueCondition, Reason
from ..support.advice import how_to_install
from .output import plain, size
from .readiness import check_archive, check_extras, check_java, check_source, check_target, memory, split_rule
from .running import NO, TROUBLE, Command, Group, Run, local_name, queue_names, takes_store, tells_json

F = TypeVar("F", bound=Callable[..., Any])
STANDARD_ERROR = "-"
ORDER = click.option(
    "--order",
    type=click.Choice(("logical", "physical")),
    default="logical",
    show_default=True,
    help="Groups together, or every message in its place.",
)
JOIN = click.option("--join-segments", is_flag=True, help="The segments of a message become one row.")
OVERWRITE = click.option("--overwrite", is_flag=True, help="Remove what is in the target folder.")
PARALLEL = click.option(
    "--partitions", default=2, show_default=True, metavar="N", help="How many tasks read in parallel."
)
ARCHIVE = click.argument("archive")
QUEUE = click.argument("queue", shell_complete=queue_names)


class Failed(InorderError):
    """A job did not do its work: trouble, and no answer, whatever Spark or the queue said."""


class Job(Command):
    """A command that runs a job in a Spark session of its own, and says what it did."""

    def __init__(self, name: str | None, **named: Any) -> None:
        super().__init__(name, **named)
        self.params += [
            click.Option(
                ["--driver-memory"], default="2g", show_default=True, metavar="SIZE", type=memory,
                help="Memory of Spark's JVM.",
            ),
            click.Option(
                ["--spark-log"], default=os.devnull, metavar="FILE",
                help="Where Spark's own messages go, - for standard error; default: nowhere.",
            ),
        ]  # fmt: skip

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except QueueCondition as condition:
            raise Failed(condition.args[0], reason=condition.reason, **condition.data) from condition


class Pipeline(Group):
    """The family of jobs."""

    command_class = Job


@click.group("pipeline", cls=Pipeline, epilog="Example: inorder pipeline drain ORDERS archive/ --store orders.db")
def pipeline() -> None:
    """Move, order and check messages with Apache Spark.

    Jobs on queues and archives, run by Spark on this machine. An archive is a folder of Parquet that `drain` writes.
    The jobs need inorder[spark] and Java 17.
    """


class Spark(NamedTuple):
    """What a command begins Spark with; `begun` is called when all else is known to be right."""

    run: Run
    driver_memory: str
    log: str

    @contextmanager
    def begun(self) -> Iterator[tuple[Any, Any]]:
        """A block with the module of jobs and a session, in which trouble of Spark's is one line of ours."""
        check_extras()
        check_java()
        jobs = import_module("inorder.spark.jobs")
        troubles = import_module("inorder.spark.jobs.troubles")
        name = click.get_current_context().command_path
        log = None if self.log == STANDARD_ERROR else self.log
        try:
            with troubles.told_plainly(), ExitStack() as until:
                with self.run.output.waiting("starting Spark"):
                    session = until.enter_context(jobs.session(name, driver_memory=self.driver_memory, log=log))
                yield jobs, session
        except QueueCondition as condition:
            if condition.reason is not Reason.UNEXPECTED_ERROR or self.log != os.devnull:
                raise
            raise Failed(f"{condition.args[0]}; --spark-log - shows all that Spark says of it") from condition


def runs_a_job(function: F) -> F:
    """Makes a command of a function that is given the run and `Spark`, and returns what its job did."""

    @functools.wraps(function)
    def command(run: Run, driver_memory: str, spark_log: str, **given: Any) -> int:
        result = function(run, Spark(run, driver_memory, spark_log), **given)
        tell_result(run, result)
        if getattr(result, "failed", 0):
            return TROUBLE
        return NO if getattr(result, "error_count", 0) else 0

    return command  # type: ignore[return-value]


def on_store(function: F) -> F:
    """A job on a store; that the store and the queue are there is seen before Spark begins."""

    @functools.wraps(function)
    def checked(run: Run, queue: str, **given: Any) -> Any:
        with run.opened() as qm:
            queues = [queue]
            if (bad_rows := given.get("bad_rows", "fail")) != "fail":
                queues.append(bad_rows.removeprefix("queue:"))
            for name in queues:
                local_name(qm, name)
        return function(run, queue=queue, **given)

    return takes_store(checked)  # type: ignore[return-value]


def on_archive(function: F) -> F:
    """A job that works on archives alone: it names no store."""

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
    default="drain",
    show_default=True,
    metavar="NAME",
    help="The name of this reader; one of a name runs at a time.",
)
@ORDER
@JOIN
@click.option(
    "--messages-per-batch",
    default=100_000,
    show_default=True,
    metavar="N",
    help="At most this many in one batch of Spark.",
)
@PARALLEL
@click.option("--checkpoint", metavar="FOLDER", help="Default: _checkpoint in the archive.")
@click.option("--follow", is_flag=True, help="Go on for messages to come, until Ctrl-C.")
@on_store
@runs_a_job
def drain(run: Run, spark: Spark, queue: str, archive: str, *, follow: bool, **options: Any) -> Any:
    """Take messages off a queue into an archive, exactly once.

    ARCHIVE is a folder; a later run adds to it. With --follow, each batch is a line on standard error if that is
    not a terminal.
    """
    check_target("ARCHIVE", archive, overwrite=True)
    with run.opened() as qm:
        depth = None if follow else qm.depth(queue)
    with spark.begun() as (jobs, session), told_while_it_works(run, depth, logs=follow) as tell:
        return jobs.drain(session, str(run.store.given), queue, archive, progress=tell, follow=follow, **options)


@pipeline.command(
    "load", example="inorder pipeline load src/ FILES --format files --transaction monday --store orders.db"
)
@click.argument("source")
@QUEUE
@click.option(
    "--format",
    required=True,
    type=click.Choice(("parquet", "json", "csv", "files", "dmpmqmsg")),
    help="Tables, a folder of files, or texts of dmpmqmsg.",
)
@click.option("--transaction", metavar="NAME", help="A second load under this name puts nothing.")
@click.option(
    "--application",
    default="load",
    show_default=True,
    metavar="NAME",
    help="The application that the transaction belongs to.",
)
@click.option("--group-by", metavar="COLUMN", help="Of tables: equal values make a group.")
@click.option("--order-by", metavar="COLUMN", help="Of tables: the order of the puts.")
@click.option(
    "--bad-rows",
    default="fail",
    show_default=True,
    metavar="fail|queue:NAME",
    help="What becomes of rows that are not messages.",
)
@click.option(
    "--split",
    type=split_rule,
    metavar="RULE",
    help="Of files: delimiter:\\\\n, which is the default, size:65536, regex:PATTERN, whole.",
)
@click.option(
    "--pattern", "patterns", multiple=True, metavar="GLOB", help="Of files: those whose path matches; may be repeated."
)
@click.option(
    "--exclude", multiple=True, metavar="GLOB", help="Of files: not those whose path matches; may be repeated."
)
@click.option(
    "--read-option", "read_options", multiple=True, metavar="NAME=VALUE", help="An option for Spark's reader."
)
@on_store
@runs_a_job
def load(
    run: Run, spark: Spark, source: str, queue: str, *, format: str, read_options: tuple[str, ...], **options: Any
) -> Any:
    """Put tables, files or dmpmqmsg texts on a queue, never twice.

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
@click.option("--incomplete", metavar="FOLDER", help="Where incomplete groups go.")
@OVERWRITE
@on_archive
@runs_a_job
def reorder(
    run: Run, spark: Spark, archive: str, target: str, *, incomplete: str | None, overwrite: bool, **options: Any
) -> Any:
    """Bring an archive into logical order.

    TARGET is the folder of the result.
    """
    check_archive(archive)
    check_target("TARGET", target, overwrite=overwrite)
    check_target("--incomplete", incomplete, overwrite=overwrite)
    if options["order"] == "physical" and (incomplete or options["join_segments"]):
        raise click.UsageError("--join-segments and --incomplete go with --order logical only.")
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
    help="The order that the reader was promised.",
)
@OVERWRITE
@on_archive
@runs_a_job
def audit(run: Run, spark: Spark, archive: str, output: str, *, overwrite: bool, **options: Any) -> Any:
    """Prove or disprove the order of an archive.

    OUTPUT is a folder for the findings and report.html, which has pictures if inorder[report] is installed. Exit
    status: 0 the order was kept, 1 the audit found errors, 2 or 3 there was no audit.
    """
    check_archive(archive)
    check_target("OUTPUT", output, overwrite=overwrite)
    if find_spec("matplotlib") is None:
        run.output.note(f"report.html will have no pictures: they need {how_to_install('report')}")
    with spark.begun() as (jobs, session), run.output.bar() as show:
        return jobs.audit(session, archive, output, progress=show, overwrite=overwrite, **options)


@pipeline.command(
    "replay",
    example="inorder pipeline replay archive/ ORDERS --transaction again --where 'priority > 4' --store orders.db",
)
@ARCHIVE
@QUEUE
@click.option("--transaction", required=True, metavar="NAME", help="A second replay under this name puts nothing.")
@click.option(
    "--application",
    default="replay",
    show_default=True,
    metavar="NAME",
    help="The application that the transaction belongs to.",
)
@click.option("--where", metavar="CONDITION", help="Only messages that meet this condition in SQL.")
@ORDER
@on_store
@runs_a_job
def replay(run: Run, spark: Spark, archive: str, queue: str, **options: Any) -> Any:
    """Put an archive, or a part of it, back on a queue, never twice."""
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
    help="The files that were put, or texts of dmpmqmsg.",
)
@click.option(
    "--existing",
    type=click.Choice(("refuse", "same", "replace")),
    help="What happens to files that exist; default: same, and for texts refuse.",
)
@click.option("--order", type=click.Choice(("logical", "physical")), help="Of dmpmqmsg texts; default: logical.")
@click.option(
    "--leave-out-properties", is_flag=True, help="Write dmpmqmsg texts without properties: they have no place for them."
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
    """Write the files in an archive back, or dmpmqmsg texts.

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
        raise click.UsageError(f"{option} goes with --format {' or '.join(formats)} only.")


@contextmanager
def told_while_it_works(run: Run, total: int | None = None, *, logs: bool = False) -> Iterator[Callable[[Any], None]]:
    """A block in which a job works; what it is given shows people how far the job is.

    Args:
        total: how many messages there are, where that is known.
        logs: where nobody looks, each batch is a line instead.
    """
    looked_at = run.output.notes.is_terminal
    with run.output.bar() as show:

        def tell(now: Any) -> None:
            show(progress_line(now, total), now.messages, total)
            if logs and not looked_at:
                run.output.note(f"batch {now.batch}: {progress_line(now)}")

        yield tell


def progress_line(now: Any, total: int | None = None) -> str:
    """How far a job is, and how fast so far."""
    done = f"{now.messages:,}" if total is None else f"{now.messages:,} of {total:,}"
    return f"{done} messages, {size(now.size)} bytes, {rates(now.messages, now.seconds, now.size)}"


def rates(messages: int, seconds: float, length: int | None = None) -> str:
    """How fast a job is, or was: messages a second, and bytes a second where they are known."""
    if not seconds:
        return "at once"
    told = f"{messages / seconds:,.0f} messages/s"
    return told if length is None else f"{told}, {size(round(length / seconds))} bytes/s"


def tell_result(run: Run, result: Any) -> None:
    """What a job did: one line of JSON, or a line for each figure, the last one how fast it was."""
    values = result if isinstance(result, dict) else dataclasses.asdict(result)
    if run.output.as_json:
        run.output.line(json.loads(result.as_json()) if hasattr(result, "as_json") else values)
        return
    if hasattr(result, "as_text"):
        run.output.console.print(Text(result.as_text()))
        return
    if values.get("messages") and "seconds" in values:
        values = values | {"rate": rates(values["messages"], values["seconds"], values.get("size"))}
    told = {FIGURES.get(name) or name.replace("_", " "): value for name, value in values.items()}
    width = max(map(len, told))
    for name, value in told.items():
        for line in value if isinstance(value, tuple) else () if value is None else (value,):
            run.output.console.print(Text(f"{name:{width}}  {plain(_figure(line))}"))


# What people see for a figure whose name is of a program. One that is None is left out, one with parts has a line each.
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
    if isinstance(value, tuple):  # a `spark.files.Trouble`
        path, group, why = value
        return f"{path or f'group {group}'}: {why}"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
