"""`inorder pipeline`: the jobs of `inorder.spark.jobs` as commands.

Each command takes the arguments of its job, under their names; Spark is loaded when one runs.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar

import click
from rich.text import Text

from .output import plain, size
from .running import NO, Command, Group, Run, queue_names, takes_store, tells_json

F = TypeVar("F", bound=Callable[..., Any])
EXTRAS = ("pyspark", "pyarrow")
ORDER = click.option(
    "--order",
    type=click.Choice(("logical", "physical")),
    default="logical",
    show_default=True,
    help="Groups together, or every message in its place.",
)
JOIN = click.option("--join-segments", is_flag=True, help="The segments of a message become one row.")
OVERWRITE = click.option("--overwrite", is_flag=True, help="What is in the target folder goes.")
PARALLEL = click.option("--partitions", default=2, show_default=True, metavar="N", help="Tasks that read side by side.")
ARCHIVE = click.argument("archive")
QUEUE = click.argument("queue", shell_complete=queue_names)


@contextmanager
def needs_spark() -> Iterator[None]:
    """Says what to install where Spark is missing. Raises: click.ClickException."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if missing.name not in EXTRAS:
            raise
        raise click.ClickException(
            f"this needs Spark: pip install 'inorder[spark]', and Java 17 or later ({missing.name} is not installed)"
        ) from missing


class Job(Command):
    """A command that runs a job in a Spark session of its own, and tells what it did."""

    def __init__(self, name: str | None, **named: Any) -> None:
        memory = click.Option(
            ["--driver-memory"], default="2g", show_default=True, metavar="SIZE", help="Memory of Spark's JVM."
        )
        super().__init__(name, **named)
        self.params.append(memory)


class Pipeline(Group):
    """The family of jobs."""

    command_class = Job


@click.group("pipeline", cls=Pipeline, epilog="Example: inorder pipeline drain ORDERS archive/ --store orders.db")
def pipeline() -> None:
    """Move, order and check messages with Apache Spark.

    Jobs on queues and archives, run by Spark on this machine. An archive is a folder of Parquet that `drain` writes.
    The jobs need inorder[spark] and Java 17.
    """


def runs_a_job(function: F) -> F:
    """Makes a command of a function that is given the run, the module of jobs and a session, and returns a result."""

    @functools.wraps(function)
    def command(run: Run, driver_memory: str, **given: Any) -> int:
        with needs_spark():
            jobs = import_module("inorder.spark.jobs")
            name = click.get_current_context().command_path
            with jobs.session(name, driver_memory=driver_memory) as spark:
                result = function(run, jobs, spark, **given)
        tell_result(run, result)
        return NO if getattr(result, "failed", 0) or getattr(result, "error_count", 0) else 0

    return command  # type: ignore[return-value]


def on_store(function: F) -> F:
    """A job on a store; that the store is there is seen before Spark begins."""

    @functools.wraps(function)
    def checked(run: Run, **given: Any) -> Any:
        with run.opened():
            pass
        return function(run, **given)

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
    "--application", default="drain", show_default=True, metavar="NAME", help="Of this reader; one runs at a time."
)
@ORDER
@JOIN
@click.option(
    "--messages-per-batch", default=100_000, show_default=True, metavar="N", help="In one batch of Spark, at most."
)
@PARALLEL
@click.option("--checkpoint", metavar="FOLDER", help="Default: _checkpoint in the archive.")
@click.option("--follow", is_flag=True, help="Go on for messages to come, until Ctrl-C.")
@on_store
@runs_a_job
def drain(run: Run, jobs: Any, spark: Any, queue: str, archive: str, **options: Any) -> Any:
    """Take messages off a queue into an archive, exactly once.

    ARCHIVE is a folder; a later run adds to it.
    """

    def tell(now: Any) -> None:
        run.output.note(f"batch {now.batch}: {progress_line(now)}")

    return jobs.drain(spark, str(run.store.given), queue, archive, progress=tell, **options)


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
@click.option("--application", default="load", show_default=True, metavar="NAME", help="Whose transaction it is.")
@click.option("--group-by", metavar="COLUMN", help="Of tables: equal values make a group.")
@click.option("--order-by", metavar="COLUMN", help="Of tables: the order of the puts.")
@click.option(
    "--bad-rows",
    default="fail",
    show_default=True,
    metavar="fail|queue:NAME",
    help="What becomes of rows that are no message.",
)
@click.option(
    "--split", metavar="RULE", help="Of files: delimiter:\\\\n (the default), size:65536, regex:PATTERN, whole."
)
@click.option("--pattern", "patterns", multiple=True, metavar="GLOB", help="Of files: which; may be repeated.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Of files: which not; may be repeated.")
@click.option("--read-option", "read_options", multiple=True, metavar="NAME=VALUE", help="Of Spark's reader.")
@on_store
@runs_a_job
def load(
    run: Run, jobs: Any, spark: Any, source: str, queue: str, read_options: tuple[str, ...], **options: Any
) -> Any:
    """Put tables, files or dmpmqmsg texts on a queue, never twice.

    SOURCE is a file or a folder.
    """
    for one in read_options:
        if "=" not in one:
            raise click.BadParameter(f"{one!r} is not NAME=VALUE.", param_hint="--read-option")
    chosen = dict(one.split("=", 1) for one in read_options)
    options |= {name: list(options[name]) for name in ("patterns", "exclude")}
    with told_while_it_works(run) as tell:
        return jobs.load(spark, source, str(run.store.given), queue, read_options=chosen, progress=tell, **options)


@pipeline.command("reorder", example="inorder pipeline reorder archive/ ordered/")
@ARCHIVE
@click.argument("target")
@ORDER
@JOIN
@click.option("--incomplete", metavar="FOLDER", help="Where groups go that are not complete.")
@OVERWRITE
@on_archive
@runs_a_job
def reorder(run: Run, jobs: Any, spark: Any, archive: str, target: str, **options: Any) -> Any:
    """Bring an archive into logical order.

    TARGET is the folder of the result.
    """
    return jobs.reorder(spark, archive, target, progress=run.output.note, **options)


@pipeline.command("audit", example="inorder pipeline audit archive/ findings/")
@ARCHIVE
@click.argument("output")
@click.option(
    "--order",
    type=click.Choice(("logical", "physical", "none")),
    default="logical",
    show_default=True,
    help="What was promised.",
)
@OVERWRITE
@on_archive
@runs_a_job
def audit(run: Run, jobs: Any, spark: Any, archive: str, output: str, **options: Any) -> Any:
    """Prove or disprove the order of an archive.

    OUTPUT is a folder for the findings and report.html, which has pictures if inorder[report] is installed. Exit
    status 1: the audit found errors.
    """
    return jobs.audit(spark, archive, output, progress=run.output.note, **options)


@pipeline.command(
    "replay",
    example="inorder pipeline replay archive/ ORDERS --transaction again --where 'priority > 4' --store orders.db",
)
@ARCHIVE
@QUEUE
@click.option("--transaction", required=True, metavar="NAME", help="A second replay under this name puts nothing.")
@click.option("--application", default="replay", show_default=True, metavar="NAME", help="Whose transaction it is.")
@click.option("--where", metavar="CONDITION", help="Which messages: a condition in SQL.")
@ORDER
@on_store
@runs_a_job
def replay(run: Run, jobs: Any, spark: Any, archive: str, queue: str, **options: Any) -> Any:
    """Put an archive, or a part of it, back on a queue, never twice."""
    with told_while_it_works(run) as tell:
        return jobs.replay(spark, archive, str(run.store.given), queue, progress=tell, **options)


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
@click.option("--existing", type=click.Choice(("refuse", "same", "replace")), help="Of files; default: same.")
@click.option("--order", type=click.Choice(("logical", "physical")), help="Of dmpmqmsg texts; default: logical.")
@click.option("--leave-out-properties", is_flag=True, help="Of dmpmqmsg texts, which have no place for them.")
@on_archive
@runs_a_job
def unload(
    run: Run,
    jobs: Any,
    spark: Any,
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
    if format == "dmpmqmsg":
        _refuse(existing, "--existing", "files")
        with told_while_it_works(run) as tell:
            options = {"order": order or "logical", "leave_out_properties": leave_out_properties}
            return {"messages": jobs.dump(spark, archive, target, progress=tell, **options)}
    _refuse(order, "--order", "dmpmqmsg")
    _refuse(leave_out_properties or None, "--leave-out-properties", "dmpmqmsg")
    with told_while_it_works(run) as tell:
        return jobs.unload(spark, archive, target, existing=existing or "same", progress=tell)


def _refuse(value: object, option: str, format: str) -> None:
    if value is not None:
        raise click.UsageError(f"{option} goes with --format {format} only.")


@contextmanager
def told_while_it_works(run: Run) -> Iterator[Callable[[Any], None]]:
    """A block in which a job works; what it is given tells people how far the job is."""
    with run.output.line_of_progress() as show:
        yield lambda now: show(progress_line(now))


def progress_line(now: Any) -> str:
    """How far a job is, and how fast so far."""
    return f"{now.messages:,} messages, {size(now.size)} bytes, {rates(now.messages, now.seconds, now.size)}"


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
    width = max(map(len, values))
    for name, value in values.items():
        run.output.console.print(Text(f"{name.replace('_', ' '):{width}}  {plain(_figure(value))}"))


def _figure(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
