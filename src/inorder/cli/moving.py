"""`inorder move` and `inorder copy`: messages from queue to queue, as they are."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import click

from .. import Match, NoMessageAvailable, QueueManager
from .choosing import ORDER, READ_ORDER, UNIT_SIZE, takes_match
from .output import count
from .parts import parts, take
from .places import Place, PlaceType
from .running import Command, Run, leaving, local_name, queue_names, takes_store

SOURCE = click.argument("source", shell_complete=queue_names)
TARGET = click.argument("target", shell_complete=queue_names)
MOST = click.option("--count", "-n", "most", type=click.IntRange(1), metavar="N", help="At most so many; default: all.")
Options = dict[str, Any]


@click.command("move", cls=Command, example="inorder move ORDERS ORDERS.OLD --group-id 414d51 --store orders.db")
@SOURCE
@TARGET
@MOST
@ORDER
@READ_ORDER
@takes_match
@UNIT_SIZE
@takes_store
def move(run: Run, source: str, target: str, **given: Any) -> None:
    """Move messages from queue SOURCE to queue TARGET.

    They keep their descriptor: ids, group, priority, what is left of their life, who put them when. TARGET gives them
    new places, in the order in which they are taken. Each unit of work is moved wholly or not at all.
    """
    most, size = given.pop("most") or sys.maxsize, given.pop("unit_size")
    options = {"logical": given.pop("order") == "logical", **given}
    with run.opened() as qm:
        _check_two(qm, source, target)

        def step(wanted: int) -> int:
            with qm.unit_of_work():
                messages = take(qm, source, wanted, options)
                qm.put_many(target, messages, context="set_all")
            return len(messages)

        moved = _in_steps(
            run, "moving", step, most=most, size=size, total=_expected(qm, source, options["match"], most)
        )
    _tell(run, "moved", moved, source, target)


@click.command("copy", cls=Command, example="inorder copy ORDERS TEST --to-store test.db --store orders.db")
@SOURCE
@TARGET
@MOST
@ORDER
@READ_ORDER
@takes_match
@click.option(
    "--to-store", type=PlaceType(), metavar="PATH|URL",
    help="The store of TARGET; default: the same one.",
)  # fmt: skip
@UNIT_SIZE
@takes_store
def copy(run: Run, source: str, target: str, to_store: Place | None, **given: Any) -> None:
    """Copy messages from queue SOURCE to queue TARGET.

    Nothing is removed. The copies have the descriptor of the messages: ids, group, priority, what is left of their
    life, who put them when. What others hold, or may not be read yet, is passed over. A copy that is begun again
    copies all again.
    """
    most, size = given.pop("most") or sys.maxsize, given.pop("unit_size")
    options = {"logical": given.pop("order") == "logical", **given}
    with ExitStack() as stack:
        qm = stack.enter_context(run.opened())
        other = qm if to_store is None else stack.enter_context(Run(to_store, as_json=run.output.as_json).opened())
        if to_store is None or to_store.is_one_with(run.store):
            _check_two(qm, source, target)
        else:
            other.attributes(target)
        units = parts(itertools.islice(qm.browse(source, **options), most), size)

        def step(_: int) -> int:
            part = next(units, [])
            other.put_many(target, part, context="set_all")
            return len(part)

        copied = _in_steps(
            run, "copying", step, most=most, size=size, total=_expected(qm, source, options["match"], most)
        )
    _tell(run, "copied", copied, source, target)


def _check_two(qm: QueueManager, source: str, target: str) -> None:
    """Raises: click.UsageError, both names stand for one queue: it would never end."""
    if local_name(qm, source) == local_name(qm, target):
        raise click.UsageError(f"{source} and {target} are one queue.")


def _expected(qm: QueueManager, source: str, match: Match, most: int) -> int | None:
    """How many there will be, as far as anybody can say."""
    return None if match.fields else min(most, qm.depth(source))


def _in_steps(run: Run, what: str, step: Callable[[int], int], *, most: int, size: int, total: int | None) -> int:
    """Takes steps of so many messages until there are no more; how many it was."""
    done = 0

    def left() -> str:
        return f"{what}: {count(done, 'message')} before that went over, and stay there" if done else ""

    with run.output.progress(what, "messages") as advance, leaving(run, left):
        while done < most:
            try:
                taken = step(min(size, most - done))
            except NoMessageAvailable:
                break
            if not taken:
                break
            done += taken
            advance(done, total)
    return done


def _tell(run: Run, done: str, messages: int, source: str, target: str) -> None:
    record = {"done": done, "messages": messages, "source": source, "target": target}
    run.output.tell(record, f"{done} {count(messages, 'message')} from {source} to {target}")
