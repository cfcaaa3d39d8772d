"""`inorder get`: prints messages, and removes them from their queue once they are written."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any

import click

from .. import Message, NoMessageAvailable, QueueManager
from ..formats import dmpmqmsg
from ..formats.json_lines import record_of
from ..support.streams import write_whole
from .choosing import ORDER, READ_ORDER, UNIT_SIZE, WAIT, takes_format, takes_match
from .parts import take
from .running import Command, Run, queue_names, takes_store
from .wording import json_line, plain

Options = dict[str, Any]
Write = Callable[[Sequence[Message]], object]
Written = Callable[[Sequence[Message], bool], bytes]  # the messages, and whether they go to a terminal


@click.command("get", cls=Command, example="inorder get ORDERS --order logical --wait 10 --store orders.db")
@click.argument("queue", shell_complete=queue_names)
@click.option("--count", "-n", "most", type=click.IntRange(1), metavar="N", help="Get at most this many; default: 1.")
@click.option(
    "--all", "everything", is_flag=True, help="Get all messages; with --wait, until none arrives within that time."
)
@click.option("--group", is_flag=True, help="Get a whole group, or one message that is in no group.")
@ORDER
@READ_ORDER
@click.option("--complete", is_flag=True, help="Get whole logical messages, with their segments joined.")
@takes_match
@WAIT
@click.option("--raw", is_flag=True, help="Write only the bytes of the bodies, with nothing between them.")
@takes_format("Write a file for MQ's dmpmqmsg, with the descriptors.")
@click.option(
    "--leave-out-properties",
    is_flag=True,
    help="Write --format dmpmqmsg without properties, which that format cannot hold.",
)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="PATH",
    help="Write to this file. If there is no message, the file stays as it is.",
)  # fmt: skip
@UNIT_SIZE
@takes_store
def get(run: Run, queue: str, **given: Any) -> int:
    """Get messages: remove them, and print their bodies.

    Each body is a line. A message is removed only after it has been written. If anything stops the command before that,
    such as Ctrl-C or a closed pipe, the message returns to its place.

    Exit status 1: there was no message, or strict order withheld it.
    """
    most, everything, group = given.pop("most"), given.pop("everything"), given.pop("group")
    path, size = given.pop("output"), given.pop("unit_size")
    raw, form, bare = given.pop("raw"), given.pop("form"), given.pop("leave_out_properties")
    if (most is not None) + everything + group > 1:
        raise click.UsageError("Give only one of --count, --all and --group.")
    if raw + run.output.as_json + (form is not None) > 1:
        raise click.UsageError("Give only one of --raw, --json and --format.")
    if bare and form is None:
        raise click.UsageError("--leave-out-properties needs --format dmpmqmsg.")
    if raw and path is None and sys.stdout.isatty():
        raise click.UsageError(
            "--raw writes bytes unchanged, which a terminal may obey: use a pipe or a file (--output PATH)."
        )
    if path is not None:
        run.refuse_target(path, "--output")
    options = _options(given, group=group)
    with run.opened() as qm, ExitStack() as files:
        write = _writer(run, path, files, _dumping(leave_out=bare) if form else _lining(run, raw=raw))
        if group:
            got = _get_group(qm, queue, options, write)
        else:
            got = _get(qm, queue, options, write, most=sys.maxsize if everything else most or 1, size=size)
    if not got and everything:
        run.output.note(f"no message on {queue}")
    return 0


def _options(given: Options, *, group: bool) -> Options:
    """The options of the gets. Raises: click.UsageError, if an order is given together with --group."""
    logical = given.pop("order") == "logical"
    if group:
        if logical or given["complete"] or given["read_order"]:
            raise click.UsageError(
                "--group implies logical order and complete messages: leave out --order, --read-order and --complete."
            )
        return {"wait": given["wait"], "match": given["match"]}
    return {"logical": logical, **given}


def _get(qm: QueueManager, queue: str, options: Options, write: Write, *, most: int, size: int) -> int:
    """Gets up to `most` messages, and commits each unit of work once its messages are written. Returns how many it got.

    Raises: NoMessageAvailable or OrderPending, if it got none.
    """
    got = 0
    try:
        while got < most:
            with qm.unit_of_work():
                messages = take(qm, queue, min(size, most - got), options)
                write(messages)
            got += len(messages)
    except NoMessageAvailable:
        if not got and most < sys.maxsize:
            raise
    return got


def _get_group(qm: QueueManager, queue: str, options: Options, write: Write) -> int:
    got = 0
    with qm.unit_of_work():
        for message in qm.get_group(queue, **options):
            write([message])
            got += 1
    return got


def _lining(run: Run, *, raw: bool) -> Written:
    """Writes bodies, or lines of JSON."""

    def written(messages: Sequence[Message], looked_at: bool) -> bytes:
        as_json = run.output.as_json
        return b"".join(one.body if raw else _line(one, as_json=as_json, looked_at=looked_at) for one in messages)

    return written


def _dumping(*, leave_out: bool) -> Written:
    """Writes dmpmqmsg text, with its header before the first message."""
    goes_on = False

    def written(messages: Sequence[Message], _: bool) -> bytes:
        nonlocal goes_on
        text = io.BytesIO()
        dmpmqmsg.write(messages, text, leave_out_properties=leave_out, goes_on=goes_on)
        goes_on = True
        return text.getvalue()

    return written


def _writer(run: Run, path: Path | None, files: ExitStack, written: Written) -> Write:
    """Writes messages and flushes them, so that a failure shows before the commit.

    A file is opened, and its old content is lost, only when there is something to write.
    """
    number = 0
    is_seen = path is None and sys.stdout.isatty()  # a progress bar would be mixed with the messages
    advance = files.enter_context(run.output.progress("getting", "messages", hidden=is_seen))
    stream: IO[bytes] | None = sys.stdout.buffer if path is None else None

    def write(messages: Sequence[Message]) -> None:
        nonlocal stream, number
        text = written(messages, is_seen)
        if stream is None:
            assert path is not None
            run.refuse_target(path, "--output")  # again: the command may have waited for long
            stream = files.enter_context(path.open("wb"))
        write_whole(stream, text)  # with PYTHONUNBUFFERED standard output has no buffer
        number += len(messages)
        stream.flush()
        _bring_to_disk(stream)
        advance(number)

    return write


def _bring_to_disk(stream: IO[bytes]) -> None:
    """Syncs a file to disk, because the commit that follows removes its messages from the queue durably."""
    with suppress(io.UnsupportedOperation):  # the caller's stream is not a file
        if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            os.fsync(stream.fileno())


def _line(message: Message, *, as_json: bool, looked_at: bool) -> bytes:
    if as_json:
        return f"{json_line(record_of(message))}\n".encode()
    if looked_at:
        return f"{plain(message.body.decode(errors='backslashreplace'))}\n".encode()
    return message.body + b"\n"
