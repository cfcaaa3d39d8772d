"""`inorder watch`: shows all queues live, with depth, held messages, age, rates and waiting readers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import click
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from .. import QueueManager
from ..client.defining import local_name
from ..client.inspection import Dropped, QueueView, Wait
from ..formats.json_lines import when
from ..model.parameters import Seconds
from ..mq.channels import ChannelNow
from ..rules.dead_letters import reason_name
from ..rules.ordering import pending_text
from .browsing import pause
from .channelling import record_of_channel
from .choosing import Of
from .drawing import table
from .running import Command, Run, queue_names, takes_store
from .wording import plain, span

WIDE = 130  # columns: narrower terminals get short headings


class QueuesSnapshot(NamedTuple):
    """A snapshot of the queues.

    Args:
        at: seconds since 1970; `tick`: the same moment on the monotonic clock.
    """

    at: float
    tick: float
    queues: Sequence[QueueView]
    waits: Sequence[Wait]
    channels: Sequence[ChannelNow] = ()
    dropped: Sequence[Dropped] = ()


class Rates(NamedTuple):
    """Messages a second between two snapshots; None if there is no earlier one of the same queue."""

    put: float | None = None
    got: float | None = None


@click.command("watch", cls=Command, example="inorder watch 'ORDERS.*' --interval 2 --store orders.db")
@click.argument("queues", nargs=-1, metavar="[QUEUE]...", shell_complete=queue_names)
@click.option(
    "--interval", type=Of(Seconds(0.1, 86_400)), default=1.0, show_default=True, metavar="SECONDS",
    help="Time between two refreshes, 0.1 to 86,400.",
)  # fmt: skip
@click.option(
    "--count", "-n", "most", type=click.IntRange(1), metavar="N", help="Refresh this many times; default: until Ctrl-C."
)
@takes_store
def watch(run: Run, queues: Sequence[str], interval: float, most: int | None) -> None:
    """Show all queues, or only those named, and refresh until Ctrl-C.

    QUEUE may contain * for any text and ? for any character. The command only reads, and a deep queue costs no more
    than an empty one.

    put/s counts all puts, including those not committed yet. got/s counts messages that left the depth (got, expired or
    backed out), minus messages that came back.
    """
    with run.opened() as qm, _screen(run) as show:
        names = [_local_name(qm, one) for one in queues]
        before: QueuesSnapshot | None = None
        number = 0
        while most is None or number < most:
            if number:
                pause(interval)
                qm.admin.check_store()
            now = _look(qm, names)
            show(before, now)
            before = now
            number += 1


def _local_name(qm: QueueManager, name: str) -> str:
    """Returns a pattern unchanged, and the local queue of a name. Raises: UnknownQueue 2085, click.UsageError."""
    if "*" in name or "?" in name:
        return name
    if qm.attributes(name).type == "model":
        raise click.UsageError(f"{name} is a model queue: it has no messages.")
    return local_name(qm, name)


def _look(qm: QueueManager, names: Sequence[str]) -> QueuesSnapshot:
    def is_meant(name: str) -> bool:
        return not names or any(fnmatchcase(name, pattern) for pattern in names)

    found = [one for one in qm.inspect.overview() if is_meant(one.name)]
    waits = [one for one in qm.inspect.waits() if is_meant(one.queue)]
    carried = [one for view in found for one in view.channels]
    dropped = [one for one in qm.inspect.dropped() if is_meant(one.queue)]
    return QueuesSnapshot(time.time(), time.monotonic(), found, waits, carried, dropped)


def rates(before: QueuesSnapshot | None, now: QueuesSnapshot) -> Iterator[tuple[QueueView, Rates]]:
    """Each queue with its rates since the previous snapshot."""
    known = {} if before is None else {(one.name, one.created_at): one for one in before.queues}
    for one in now.queues:
        earlier = known.get((one.name, one.created_at))
        if before is None or earlier is None:
            yield one, Rates()
            continue
        seconds = max(now.tick - before.tick, 0.001)
        put = one.arrived - earlier.arrived
        yield one, Rates(put / seconds, (put - (one.depth - earlier.depth)) / seconds)


# --- showing


Show = Callable[[QueuesSnapshot | None, QueuesSnapshot], None]


@contextmanager
def _screen(run: Run) -> Iterator[Show]:
    """Yields a function that shows a snapshot: in place on a terminal, otherwise as one table after another or as lines
    of JSON.
    """
    console = run.output.console
    if run.output.as_json:
        yield lambda before, now: _tell(run, before, now)
    elif console.is_terminal:
        with Live(console=console, auto_refresh=False, vertical_overflow="ellipsis") as live:
            yield lambda before, now: live.update(_picture(before, now, console.width), refresh=True)
    else:
        yield lambda before, now: console.print(_picture(before, now, console.width))


def _picture(before: QueuesSnapshot | None, now: QueuesSnapshot, width: int) -> RenderableType:
    at = datetime.fromtimestamp(now.at).astimezone().strftime("%H:%M:%S")
    parts: list[RenderableType] = [Text(at, "dim"), _queues(before, now, is_narrow=width < WIDE)]
    if now.waits:
        parts.append(_waits(now))
    if now.channels:
        parts.append(_channels(now))
    if now.dropped:
        parts.append(_dropped(now))
    return Group(*parts)


def _queues(before: QueuesSnapshot | None, now: QueuesSnapshot, *, is_narrow: bool) -> RenderableType:
    if not now.queues:
        return Text("no queues", "dim")
    held = ("put*", "got*") if is_narrow else ("put, not committed", "got, not committed")
    numbers = ("depth", *held, "locked", "delayed", "oldest", "put/s", "got/s", "waits" if is_narrow else "waiting")
    made = table(("queue", *numbers), right=numbers)
    for column in made.columns[1:]:
        column.no_wrap = True
    for one, rate in rates(before, now):
        oldest = None if one.oldest_put_at is None else now.at - one.oldest_put_at
        made.add_row(
            Text(plain(one.name)),
            _number(one.depth, "bold"),
            _number(one.puts, "yellow"),
            _number(one.gets, "magenta"),
            _number(one.locked, "red"),
            _number(one.delayed, "blue"),
            Text(span(oldest)),
            _rate(rate.put),
            _rate(rate.got),
            _number(one.waiters, "cyan"),
        )
    if is_narrow:
        made.padding = (0, 1, 0, 0)
        made.caption, made.caption_justify = "* not committed", "left"
    return made


def _number(value: int, style: str) -> Text:
    return Text(f"{value:,}", style if value else "dim")


def _rate(value: float | None) -> Text:
    if value is None:
        return Text("-", "dim")
    return Text(f"{value:,.0f}" if abs(value) >= 10 or value == 0 else f"{value:,.1f}", "green" if value else "dim")


def _waits(now: QueuesSnapshot) -> RenderableType:
    made = table(("reader", "waits on", "for"))
    for one in now.waits:
        process = "" if one.process is None else f" ({one.process})"
        made.add_row(Text(f"{plain(one.program.name)}{process}"), Text(plain(one.queue)), _for_what(one, now.at))
    return made


def _for_what(wait: Wait, now: float) -> Text:
    pending = wait.pending
    if pending is None:
        return Text("a message", "dim")
    place = f"place {pending.place.number}: " if pending.place.number else ""
    behind = "; messages wait behind it" if wait.withheld else ""
    return Text(f"{place}{plain(pending_text(pending))}, for {span(now - pending.since)}{behind}")


def _channels(now: QueuesSnapshot) -> RenderableType:
    made = table(("channel", "sends from", "status", "waiting", "oldest", "in doubt", "trouble"))
    for one in now.channels:
        style = "red" if one.status in ("stopped", "retrying", "paused") else ""
        oldest = None if one.oldest_put_at is None else now.at - one.oldest_put_at
        made.add_row(
            Text(plain(one.name)),
            Text(plain(one.queue)),
            Text(one.status, style),
            _number(one.waiting, ""),
            Text(span(oldest)),
            _number(one.in_doubt, "yellow"),
            Text(plain(one.error)),
        )
    return made


def _dropped(now: QueuesSnapshot) -> RenderableType:
    made = table(("about messages of", "dropped", "last", "because"))
    for one in now.dropped:
        last = Text(span(now.at - one.last_at))
        made.add_row(Text(plain(one.queue) or "-"), _number(one.messages, "red"), last, Text(reason_name(one.reason)))
    return made


# --- for machines


def _tell(run: Run, before: QueuesSnapshot | None, now: QueuesSnapshot) -> None:
    for one, rate in rates(before, now):
        waits = [_record_of_wait(wait) for wait in now.waits if wait.queue == one.name]
        dropped = next((each for each in now.dropped if each.queue == one.name), None)
        run.output.line(
            _record(one, rate, now.at)
            | {
                "dropped_reason": dropped and dropped.reason,
                "dropped_at": dropped and when(dropped.last_at),
                "waits": waits,
                "channels": [record_of_channel(each) for each in one.channels],
            }
        )
    for each in now.dropped:
        if not each.queue:  # not about a queue here: the message came through a channel, or its queue was deleted
            run.output.line(_record_of_no_queue(each, now.at))


def _record(one: QueueView, rate: Rates, at: float) -> dict[str, Any]:
    return {
        "at": when(at),
        "queue": one.name,
        "depth": one.depth,
        "uncommitted_puts": one.puts,
        "uncommitted_gets": one.gets,
        "locked": one.locked,
        "delayed": one.delayed,
        "oldest_put_at": when(one.oldest_put_at),
        "arrived": one.arrived,
        "puts_per_second": rate.put,
        "gets_per_second": rate.got,
        "open_input_count": one.open_input_count,
        "open_output_count": one.open_output_count,
        "waiters": one.waiters,
        "dropped": one.dropped,
    }


def _record_of_no_queue(one: Dropped, at: float) -> dict[str, Any]:
    return {
        "at": when(at),
        "queue": None,
        "dropped": one.messages,
        "dropped_reason": one.reason,
        "dropped_at": when(one.last_at),
    }


def _record_of_wait(wait: Wait) -> dict[str, Any]:
    pending = wait.pending
    told = pending and {
        "kind": pending.kind.value,
        "by": pending.by,
        "since": when(pending.since),
        "place": pending.place._asdict() if pending.place.number else None,
        "connection": pending.holder,
    }
    return {
        "program": wait.program.name,
        "user": wait.program.user,
        "connection": wait.connection,
        "process": wait.process,
        "pending": told,
        "withheld": wait.withheld,
    }
