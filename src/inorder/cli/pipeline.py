"""`inorder pipeline`: the jobs of `inorder.spark.jobs` as commands."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from ..errors import InorderError

HINT = "the pipeline needs Spark: pip install 'inorder[spark]', and Java 17 or later"
Run = Callable[[Any, Any, argparse.Namespace], Any]


def add_parser(commands: Any) -> None:
    """Adds `pipeline` and its jobs to the commands."""
    pipeline = commands.add_parser(
        "pipeline",
        help="move, order and check messages with Apache Spark",
        description="Jobs on queues and archives, run by Apache Spark on this machine. An archive is a folder of "
        "Parquet that `drain` writes.",
        epilog="example: inorder pipeline drain orders.db ORDERS archive/",
    )
    jobs = pipeline.add_subparsers(dest="job", required=True, metavar="JOB")
    for name, (add, text, example) in JOBS.items():
        job = jobs.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", epilog=f"example: {example}"
        )
        job.add_argument("--json", action="store_true", help="print the result as one JSON object")
        job.add_argument("--driver-memory", default="2g", metavar="SIZE", help="memory of Spark's JVM (default 2g)")
        add(job)


def _store_and_queue(job: argparse.ArgumentParser) -> None:
    job.add_argument("store", help="path of the store")
    job.add_argument("queue", help="name of the queue")


def _add_drain(job: argparse.ArgumentParser) -> None:
    _store_and_queue(job)
    job.add_argument("archive", help="folder of the archive; a later run adds to it")
    job.add_argument("--application", default="drain", help="name of this reader; one runs at a time (default: drain)")
    job.add_argument("--order", choices=("logical", "physical"), default="logical")
    job.add_argument("--join-segments", action="store_true", help="the segments of a message become one row")
    job.add_argument("--messages-per-batch", type=int, default=100_000, metavar="N")
    job.add_argument("--partitions", type=int, default=2, metavar="N", help="tasks that read side by side")
    job.add_argument("--checkpoint", metavar="FOLDER", help="default: _checkpoint in the archive")
    job.add_argument("--follow", action="store_true", help="go on for messages to come, until Ctrl-C")
    job.set_defaults(run=_drain)


def _drain(jobs: Any, spark: Any, given: argparse.Namespace) -> Any:
    def tell(now: Any) -> None:
        rate = now.messages / now.seconds if now.seconds else 0
        print(f"batch {now.batch}: {now.messages:,} messages, {rate:,.0f}/s", file=sys.stderr)

    return jobs.drain(
        spark,
        given.store,
        given.queue,
        given.archive,
        application=given.application,
        order=given.order,
        join_segments=given.join_segments,
        messages_per_batch=given.messages_per_batch,
        partitions=given.partitions,
        checkpoint=given.checkpoint,
        follow=given.follow,
        progress=tell,
    )


def _add_load(job: argparse.ArgumentParser) -> None:
    job.add_argument("source", help="a file or a folder")
    _store_and_queue(job)
    job.add_argument("--format", required=True, choices=("parquet", "json", "csv", "files", "dmpmqmsg"))
    job.add_argument("--transaction", metavar="NAME", help="a second load under this name puts nothing")
    job.add_argument("--application", default="load")
    job.add_argument("--group-by", metavar="COLUMN", help="of tables: equal values make a group")
    job.add_argument("--order-by", metavar="COLUMN", help="of tables: the order of the puts")
    job.add_argument("--bad-rows", default="fail", metavar="fail|queue:NAME")
    job.add_argument("--split", metavar="RULE", help="of files: delimiter:\\n (default), size:65536, regex:..., whole")
    job.add_argument("--pattern", action="append", default=[], metavar="GLOB", help="of files: which (may be repeated)")
    job.add_argument("--exclude", action="append", default=[], metavar="GLOB", help="of files: which not")
    job.add_argument("--read-option", action="append", default=[], metavar="NAME=VALUE", help="of Spark's reader")
    job.set_defaults(run=_load)


def _load(jobs: Any, spark: Any, given: argparse.Namespace) -> Any:
    return jobs.load(
        spark,
        given.source,
        given.store,
        given.queue,
        format=given.format,
        transaction=given.transaction,
        application=given.application,
        group_by=given.group_by,
        order_by=given.order_by,
        bad_rows=given.bad_rows,
        split=given.split,
        patterns=given.pattern,
        exclude=given.exclude,
        read_options=dict(one.partition("=")[::2] for one in given.read_option),
    )


def _add_reorder(job: argparse.ArgumentParser) -> None:
    job.add_argument("archive")
    job.add_argument("target", help="folder of the result")
    job.add_argument("--order", choices=("logical", "physical"), default="logical")
    job.add_argument("--join-segments", action="store_true")
    job.add_argument("--incomplete", metavar="FOLDER", help="where groups go that are not complete")
    job.add_argument("--overwrite", action="store_true")
    job.set_defaults(run=_reorder)


def _reorder(jobs: Any, spark: Any, given: argparse.Namespace) -> Any:
    return jobs.reorder(
        spark,
        given.archive,
        given.target,
        order=given.order,
        join_segments=given.join_segments,
        incomplete=given.incomplete,
        overwrite=given.overwrite,
        progress=lambda text: print(text, file=sys.stderr),
    )


def _add_audit(job: argparse.ArgumentParser) -> None:
    job.add_argument("archive")
    job.add_argument("output", help="folder for the findings and the report")
    job.add_argument("--order", choices=("logical", "physical", "none"), default="logical", help="what was promised")
    job.add_argument("--overwrite", action="store_true")
    job.set_defaults(run=_audit)


def _audit(jobs: Any, spark: Any, given: argparse.Namespace) -> Any:
    return jobs.audit(
        spark,
        given.archive,
        given.output,
        order=given.order,
        overwrite=given.overwrite,
        progress=lambda text: print(text, file=sys.stderr),
    )


def _add_replay(job: argparse.ArgumentParser) -> None:
    job.add_argument("archive")
    _store_and_queue(job)
    job.add_argument(
        "--transaction", required=True, metavar="NAME", help="a second replay under this name puts nothing"
    )
    job.add_argument("--application", default="replay")
    job.add_argument("--where", metavar="CONDITION", help="which messages: a condition in SQL")
    job.add_argument("--order", choices=("logical", "physical"), default="logical")
    job.set_defaults(run=_replay)


def _replay(jobs: Any, spark: Any, given: argparse.Namespace) -> Any:
    return jobs.replay(
        spark,
        given.archive,
        given.store,
        given.queue,
        transaction=given.transaction,
        application=given.application,
        where=given.where,
        order=given.order,
    )


def _add_unload(job: argparse.ArgumentParser) -> None:
    job.add_argument("archive")
    job.add_argument("target", help="a folder")
    job.add_argument("--format", choices=("files", "dmpmqmsg"), default="files")
    job.add_argument("--existing", choices=("refuse", "same", "replace"), default="same", help="of files")
    job.add_argument("--order", choices=("logical", "physical"), default="logical", help="of dmpmqmsg texts")
    job.set_defaults(run=_unload)


def _unload(jobs: Any, spark: Any, given: argparse.Namespace) -> Any:
    if given.format == "dmpmqmsg":
        return {"messages": jobs.dump(spark, given.archive, given.target, order=given.order)}
    return jobs.unload(spark, given.archive, given.target, existing=given.existing)


def _add_finish(job: argparse.ArgumentParser) -> None:
    _store_and_queue(job)
    job.add_argument("application")
    job.add_argument("checkpoint", help="the query's checkpointLocation")
    job.set_defaults(run=_finish, without_spark=True)


def _finish(module: Any, _: Any, given: argparse.Namespace) -> Any:
    return {"confirmed": module.finish(given.store, given.queue, given.application, given.checkpoint)}


def _add_release(job: argparse.ArgumentParser) -> None:
    _store_and_queue(job)
    job.add_argument("application")
    job.set_defaults(run=_release, without_spark=True)


def _release(module: Any, _: Any, given: argparse.Namespace) -> Any:
    return {"released": module.release(given.store, given.queue, given.application)}


class Job(NamedTuple):
    """A job: what adds its arguments, what it does, and an example."""

    add: Callable[[argparse.ArgumentParser], None]
    text: str
    example: str


JOBS = {
    "drain": Job(
        _add_drain,
        "take messages off a queue into an archive, exactly once",
        "inorder pipeline drain orders.db ORDERS archive/",
    ),
    "load": Job(
        _add_load,
        "put tables, files or dmpmqmsg texts on a queue, never twice",
        "inorder pipeline load src/ orders.db FILES --format files --transaction monday",
    ),
    "reorder": Job(_add_reorder, "bring an archive into logical order", "inorder pipeline reorder archive/ ordered/"),
    "audit": Job(_add_audit, "prove or disprove the order of an archive", "inorder pipeline audit archive/ findings/"),
    "replay": Job(
        _add_replay,
        "put an archive, or a part of it, back on a queue, never twice",
        "inorder pipeline replay archive/ orders.db ORDERS --transaction again --where 'priority > 4'",
    ),
    "unload": Job(
        _add_unload,
        "write the files in an archive back, or dmpmqmsg texts",
        "inorder pipeline unload archive/ files/",
    ),
    "finish": Job(
        _add_finish,
        "confirm the last batch of a query that has stopped for good",
        "inorder pipeline finish orders.db ORDERS drain archive/_checkpoint",
    ),
    "release": Job(
        _add_release,
        "return what a query holds whose checkpoint is lost",
        "inorder pipeline release orders.db ORDERS drain",
    ),
}


def run(given: argparse.Namespace) -> int:
    """Runs one job; prints what it did. Returns the exit status."""
    try:
        result = _run(given)
    except ModuleNotFoundError as missing:
        if missing.name not in ("pyspark", "pyarrow", "matplotlib"):
            raise
        print(f"inorder: {HINT} ({missing.name} is not installed)", file=sys.stderr)
        return 2
    except InorderError as error:
        print(f"inorder: {error}", file=sys.stderr)
        return 1
    print(_shown(result, as_json=given.json))
    return 1 if getattr(result, "failed", 0) or getattr(result, "error_count", 0) else 0


def _run(given: argparse.Namespace) -> Any:
    if getattr(given, "without_spark", False):
        return given.run(import_module("inorder.spark"), None, given)
    jobs = import_module("inorder.spark.jobs")
    with jobs.session(f"inorder pipeline {given.job}", driver_memory=given.driver_memory) as spark:
        return given.run(jobs, spark, given)


def _shown(result: Any, *, as_json: bool) -> str:
    if as_json and hasattr(result, "as_json"):
        return str(result.as_json())
    values = result if isinstance(result, dict) else dataclasses.asdict(result)
    if as_json:
        return json.dumps(values)
    if hasattr(result, "as_text"):
        return str(result.as_text())
    width = max(map(len, values))
    return "\n".join(f"{name.replace('_', ' '):{width}}  {_number(value)}" for name, value in values.items())


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
