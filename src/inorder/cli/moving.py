"""`inorder move` and `inorder copy`: move and copy messages between queues, unchanged.

Within one store each batch is a unit of work. `inorder.client.store_transfer` carries messages to another store exactly
once.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import click

from .. import Match, NoMessageAvailable, QueueManager
from ..client import store_transfer
from ..client.defining import local_name
from ..errors import UnknownQueue
from ..model.attributes import QUEUE_ATTRIBUTES
from ..mq.channels.defining import identifier
from ..stores.open import Location, OverNetwork
from .choosing import ORDER, READ_ORDER, UNIT_SIZE, takes_match
from .parts import UNIT_BYTES, parts, take
from .places import PlaceType
from .running import INTERRUPTED, Command, Run, leaving, queue_names, takes_store
from .wording import count

SOURCE = click.argument("source", shell_complete=queue_names)
TARGET = click.argument("target", shell_complete=queue_names)
MOST = click.option(
    "--count", "-n", "most", type=click.IntRange(1), metavar="N", help="Take at most this many; default: all."
)
TO_STORE = click.option(
    "--to-store", type=PlaceType(is_second=True), metavar="PATH|URL", help="The store of TARGET; default: the same one."
)
APPLICATION = click.option(
    "--application", metavar="NAME",
    help="A name for the work when it goes to another store. A run resumes where the last one with this name "
    "stopped. Default: the name of the command.",
)  # fmt: skip
CREATE = click.option(
    "--create", is_flag=True, help="If TARGET is missing in the other store, define it with the attributes of SOURCE."
)
Options = dict[str, Any]


@click.command("move", cls=Command, example="inorder move ORDERS ORDERS --to-store new.db --create --store orders.db")
@SOURCE
@TARGET
@MOST
@ORDER
@READ_ORDER
@takes_match
@TO_STORE
@APPLICATION
@CREATE
@UNIT_SIZE
@takes_store
def move(run: Run, source: str, target: str, to_store: Location | None, **given: Any) -> None:
    """Move messages from queue SOURCE to queue TARGET.

    Messages keep their descriptor: ids, group, priority, remaining time to live, and the user and time of the put. They
    get new places on TARGET, in the order in which they are taken. Each unit of work is moved wholly or not at all.

    Each message arrives in another store exactly once. If the command is stopped, run the same command again and it
    resumes. A claim holds the messages that were taken but have not arrived. When two commands run under one name, the
    first one ends.
    """
    wants = _Wants(given)
    if to_store is not None and wants.match:
        raise click.UsageError(
            f"A move to another store takes all messages in order, so {_named(wants.match)} cannot be used. Move "
            f"the messages to a separate queue first."
        )
    with _opened_both(run, to_store, source, target, wants) as (qm, other):
        if other is None:
            steps = _within(qm, source, target, wants)
        else:
            steps = store_transfer.move(qm, source, other, target, **wants.carried("move"), read_order=wants.read_order)
        moved = _in_steps(run, "moving", steps, _expected(qm, source, wants), is_across=other is not None)
        left = qm.depth(source) if other is not None and moved < wants.most else 0
    _tell(run, "moved", moved, source, target)
    if left:
        run.output.note(
            f"{count(left, 'message')} stayed on {source}: held by other programs, delayed, or put meanwhile"
        )


@click.command("copy", cls=Command, example="inorder copy ORDERS TEST --to-store test.db --store orders.db")
@SOURCE
@TARGET
@MOST
@ORDER
@READ_ORDER
@takes_match
@TO_STORE
@APPLICATION
@CREATE
@UNIT_SIZE
@takes_store
def copy(run: Run, source: str, target: str, to_store: Location | None, **given: Any) -> None:
    """Copy messages from queue SOURCE to queue TARGET.

    Nothing is removed. Copies keep the descriptor: ids, group, priority, remaining time to live, and the user and time
    of the put. Within one store the command skips messages that other programs hold and messages that are delayed.
    Running it again copies everything again.

    A copy to another store reads strictly: it stops at the first message that another program holds, and copies each
    message exactly once. The same command resumes where it stopped, even after a complete copy. With --read-order
    relaxed it works as within one store.
    """
    wants = _Wants(given)
    if wants.read_order == "relaxed" and wants.application is not None:
        raise click.UsageError(
            "--application names the progress of a copy, and a relaxed copy keeps no progress: leave it out."
        )
    with _opened_both(run, to_store, source, target, wants) as (qm, other):
        is_across = other is not None and wants.read_order != "relaxed"
        if other is not None and is_across:
            steps = store_transfer.copy(qm, source, other, target, **wants.carried("copy"), match=wants.match)
        else:
            units = parts(itertools.islice(qm.browse(source, **wants.options), wants.most), wants.size)
            steps = _put(other or qm, target, units)
        copied = _in_steps(run, "copying", steps, _expected(qm, source, wants), is_across=is_across)
    _tell(run, "copied", copied, source, target)


class _Wants:
    """The options that move and copy share."""

    def __init__(self, given: Options) -> None:
        self.most: int = given.pop("most") or sys.maxsize
        self.size: int = given.pop("unit_size")
        self.application: str | None = given.pop("application")
        self.create: bool = given.pop("create")
        self.options: Options = {"logical": given.pop("order") == "logical", **given}
        self.match: Match = given["match"]
        self.read_order: Any = given["read_order"]

    def carried(self, command: str) -> Options:
        """The options of a move or a copy to another store."""
        return {
            "application": command if self.application is None else self.application,
            "logical": self.options["logical"],
            "most": self.most,
            "unit": self.size,
            "unit_bytes": UNIT_BYTES,
        }


@contextmanager
def _opened_both(
    run: Run, to_store: Location | None, source: str, target: str, wants: _Wants
) -> Iterator[tuple[QueueManager, QueueManager | None]]:
    """Opens the store of the source, and the store of the target if it is another one.

    Raises: click.UsageError; UnknownQueue 2085, if the target is missing, with the way to create it.
    """
    with ExitStack() as stack:
        qm = stack.enter_context(run.opened())
        if to_store is None:
            other = None
        else:
            qm.attributes(source)  # before a store is created
            to = Run(to_store, as_json=run.output.as_json)
            other = stack.enter_context(to.opened(make=wants.create))
            _refuse_unclear(run.store, qm, to_store, other)
            if to_store.is_one_with(run.store):
                other = None
        if other is None:
            _check_two(qm, source, target)
            for option in [name for name in ("application", "create") if getattr(wants, name)]:
                raise click.UsageError(f"--{option} needs another store: name it with --to-store.")
        else:
            _find_target(run, qm, source, other, target, wants)
        yield qm, other


def _refuse_unclear(one: Location, qm: QueueManager, two: Location, other: QueueManager) -> None:
    """Raises: click.UsageError, if two URLs of servers lead to one store, or to a store and its copy."""
    are_elsewhere = isinstance(one, OverNetwork) and isinstance(two, OverNetwork)
    if are_elsewhere and not two.is_one_with(one) and identifier(qm) == identifier(other):
        raise click.UsageError(
            f"{one} and {two} lead to one store, or to a store and its backup. Leave --to-store out, or name a store "
            "by its path, where its file is."
        )


def _find_target(run: Run, qm: QueueManager, source: str, other: QueueManager, target: str, wants: _Wants) -> None:
    """Checks that the target exists, or creates it. Raises: UnknownQueue 2085."""
    try:
        other.attributes(target)
    except UnknownQueue:
        if not wants.create:
            run.output.note(f"--create defines {target} there with the attributes of {source}")
            raise
        found = qm.attributes(local_name(qm, source))
        own = ("name", "type", "definition_type", "get_allowed", "put_allowed")
        names = [name for name, one in QUEUE_ATTRIBUTES.items() if "local" in one.applies_to and name not in own]
        other.create_queue(target, **{name: getattr(found, name) for name in names})
        run.output.note(f"created local queue {target}")


def _within(qm: QueueManager, source: str, target: str, wants: _Wants) -> Iterator[int]:
    """Moves messages in units of work, and yields the number of messages after each."""
    store_transfer.refuse_synchronous(qm, source)
    store_transfer.refuse_synchronous(qm, target)
    rest = wants.most
    while rest > 0:
        try:
            with store_transfer.moving(qm):
                messages = take(qm, source, min(wants.size, rest), wants.options)
                qm.put_many(target, messages, context="set_all")
        except NoMessageAvailable:
            return
        rest -= len(messages)
        yield len(messages)


def _put(qm: QueueManager, target: str, units: Iterator[list[Any]]) -> Iterator[int]:
    """Puts messages in units of work, and yields the number of messages after each."""
    for unit in units:
        with store_transfer.moving(qm):
            qm.put_many(target, unit, context="set_all")
        yield len(unit)


def _named(match: Match) -> str:
    names = [*match.fields, *([] if match.selector is None else ["selector"])]
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)


def _check_two(qm: QueueManager, source: str, target: str) -> None:
    """Raises: click.UsageError, if both names mean one queue, where a copy would never end."""
    if local_name(qm, source) == local_name(qm, target):
        raise click.UsageError(f"{source} and {target} are the same queue.")


def _expected(qm: QueueManager, source: str, wants: _Wants) -> int | None:
    """The expected number of messages, where it can be known."""
    return None if wants.match else min(wants.most, qm.depth(source))


def _in_steps(run: Run, what: str, steps: Iterator[int], total: int | None, *, is_across: bool) -> int:
    """Runs the steps and shows progress. Returns the number of messages."""
    done = 0

    def left() -> str:
        if is_across:
            return f"{what}: {count(done, 'message')} arrived; run the same command to resume"
        return f"{what}: {count(done, 'message')} already arrived and stay there" if done else ""

    with run.output.progress(what, "messages") as advance, leaving(run, left), _interrupted(is_across):
        for messages in steps:
            done += messages
            advance(done, total)
    return done


@contextmanager
def _interrupted(is_across: bool) -> Iterator[None]:
    """After Ctrl-C a move to another store still holds a claim, so the usual text "no messages are held" would be
    wrong.
    """
    try:
        yield
    except KeyboardInterrupt:
        if is_across:
            raise click.exceptions.Exit(INTERRUPTED) from None
        raise


def _tell(run: Run, done: str, messages: int, source: str, target: str) -> None:
    record = {"done": done, "messages": messages, "source": source, "target": target}
    run.output.tell(record, f"{done} {count(messages, 'message')} from {source} to {target}")
