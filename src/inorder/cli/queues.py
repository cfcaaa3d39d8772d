"""`inorder queue`: define, change, show, retry, clear and delete queues."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any, TypeVar, get_args

import click

from .. import QueueManager
from ..client.inspection import QueueView
from ..errors import UnknownQueue, WrongQueueType
from ..formats.json_lines import when
from ..model.attribute import Attribute
from ..model.attributes import QUEUE_ATTRIBUTES, READABLE, QueueAttributes, QueueStatus, QueueType
from ..model.message import UniqueId
from ..model.options import UniqueIds
from .choosing import METAVARS, Of
from .running import CommandGroup, Run, as_json_value, queue_names, says_yes, takes_store
from .wording import count, words

F = TypeVar("F", bound=Callable[..., Any])
OPTIONS = [name for name in QUEUE_ATTRIBUTES if name not in ("name", "type")]
TIMES = ("created_at", "altered_at")
STATUS_IN_MQ = {
    "current_depth": "CurrentQDepth",
    "open_input_count": "OpenInputCount",
    "open_output_count": "OpenOutputCount",
    "uncommitted": "UNCOM",
    "created_at": "CreationDate, CreationTime",
    "altered_at": "AlterationDate, AlterationTime",
}
COLUMNS = {
    "queue": "queue",
    "type": "type",
    "depth": "depth",
    "uncommitted": "uncommitted",
    "delivery": "delivery",
    "order": "order",
    "read_order": "read order",
    "open_input_count": "readers",
    "open_output_count": "writers",
    "description": "description",
}
WIDE = ("delivery", "open_input_count", "open_output_count")  # an 80 column terminal needs the room for names
RULES = re.compile(r" \((?:(?:[A-DKNP]-|R)?\d+(?:\.\d+)?(?:, )?)+\)")


@click.group("queue", cls=CommandGroup, epilog="Example: inorder queue list --store orders.db")
def queue() -> None:
    """Create, alter, show, list, retry, clear and delete queues."""


def _help(attribute: Attribute) -> str:
    """The description of an attribute, without rule numbers and in the words of the command."""
    return RULES.sub("", attribute.doc).replace("None", "none")


def _option(attribute: Attribute) -> Callable[[F], F]:
    """The option for an attribute, made from its declaration. The attribute itself checks the value."""
    word = attribute.name.replace("_", "-")
    match attribute.kind:
        case "boolean":
            return click.option(f"--{word}/--no-{word}", attribute.name, default=None, help=_help(attribute))
        case "choice":
            values: dict[str, Any] = {"type": click.Choice(attribute.choices)}
        case "integer":
            values = {"type": Of(attribute.takes), "metavar": f"{attribute.minimum}..{attribute.maximum}"}
        case "seconds":
            values = {"type": Of(attribute.takes.taking({"none": None})), "metavar": "SECONDS|none"}
        case "text" | "name" | "names":
            values = {"type": str, "metavar": attribute.kind.upper()}
    return click.option(f"--{word}", attribute.name, help=_help(attribute), **values)


def takes_attributes_of(attributes: Mapping[str, Attribute]) -> Callable[[F], F]:
    """Adds an option for each of these attributes to a command, and passes those given to its function as `changes`."""

    def decorated(function: F) -> F:
        @click.pass_context
        @functools.wraps(function)
        def command(context: click.Context, *given: Any, **named: Any) -> Any:
            values = {name: named.pop(name) for name in attributes}
            source = click.core.ParameterSource.COMMANDLINE
            changes = {name: value for name, value in values.items() if context.get_parameter_source(name) is source}
            return function(*given, changes=changes, **named)

        for attribute in reversed(list(attributes.values())):
            command = _option(attribute)(command)
        return command  # type: ignore[return-value]

    return decorated


def alter_object(run: Run, kind: str, name: str, changes: Mapping[str, Any], change: Callable[..., object]) -> None:
    """Changes the attributes of an object, and says which. Raises: click.UsageError, if there are none."""
    if not changes:
        raise click.UsageError("Nothing to change: name at least one attribute.")
    with run.opened() as qm:
        change(qm, name, **changes)
    told = ", ".join(f"{one.replace('_', '-')} {words(value) or 'none'}" for one, value in changes.items())
    run.output.tell({kind: name, "done": "altered", "changes": changes}, f"altered {name}: {told}")


takes_attributes = takes_attributes_of({name: QUEUE_ATTRIBUTES[name] for name in OPTIONS})


@queue.command("create", example="inorder queue create ORDERS --order commit --read-order strict --store orders.db")
@click.argument("name")
@click.option(
    "--type",
    "kind",
    type=click.Choice(get_args(QueueType)),
    default="local",
    show_default=True,
    help=_help(QUEUE_ATTRIBUTES["type"]),
)
@takes_attributes
@takes_store
def create(run: Run, name: str, kind: QueueType, changes: dict[str, Any]) -> None:
    """Define a queue, and create the store if it is missing.

    NAME must be 1 to 48 of the characters A-Z a-z 0-9 . / _ %
    """
    with run.opened(make=True) as qm:
        qm.create_queue(name, type=kind, **changes)
    run.output.tell({"queue": name, "type": kind, "done": "created"}, f"created {kind} queue {name}")


@queue.command("alter", example="inorder queue alter ORDERS --max-depth 100000 --no-put-allowed --store orders.db")
@click.argument("name", shell_complete=queue_names)
@takes_attributes
@takes_store
def alter(run: Run, name: str, changes: dict[str, Any]) -> None:
    """Change attributes. Messages on the queue keep their places."""
    alter_object(run, "queue", name, changes, QueueManager.alter_queue)


@queue.command("show", example="inorder queue show ORDERS --store orders.db")
@click.argument("name", shell_complete=queue_names)
@takes_store
def show(run: Run, name: str) -> None:
    """Show a queue's attributes and status."""
    with run.opened() as qm:
        attributes = qm.attributes(name)
        asked = [one for one, about in QUEUE_ATTRIBUTES.items() if attributes.type in about.applies_to]
        if attributes.type in READABLE:
            asked = [] if _status(qm, attributes) is not None else list(QUEUE_ATTRIBUTES)
        found = qm.inquire(name, *asked)
    if run.output.as_json:
        run.output.line({one: when(value) if one in TIMES else as_json_value(value) for one, value in found.items()})
        return
    rows = []
    for one, value in found.items():
        if one in QUEUE_ATTRIBUTES and found["type"] not in QUEUE_ATTRIBUTES[one].applies_to:
            continue
        mq = QUEUE_ATTRIBUTES[one].mq_name if one in QUEUE_ATTRIBUTES else STATUS_IN_MQ[one]
        rows.append((one, (when(value) or "") if one in TIMES else words(value), mq or ""))
    run.output.attributes(rows)


@queue.command("list", example="inorder queue list 'ORDERS.*' --store orders.db")
@click.argument("pattern", default="*")
@takes_store
def list_queues(run: Run, pattern: str) -> None:
    """List queues with their depth and order.

    PATTERN selects queues by name: * is any text, ? any character.
    """
    with run.opened() as qm:
        while qm.admin.discard_expired():
            pass
        views = {one.name: one for one in qm.inspect.overview()}
        records = [_summary(qm, one, views) for one in qm.queues() if fnmatchcase(one.name, pattern)]
    where = f"no queue matches {pattern!r}" if pattern != "*" else "the store has no queues"
    run.output.listing(records, COLUMNS, nothing=where, wide=WIDE)


def _status(qm: QueueManager, one: QueueAttributes) -> QueueStatus | None:
    """The status, or None for a model, for a name that leads nowhere or to another queue manager, and for a queue that
    was just deleted. The owner of a synchronous remote queue is not asked: it may be out of reach.
    """
    try:
        kind = qm.attributes(one.base_queue).type if one.type == "alias" else one.type
        return qm.inspect.status(one.name) if kind == "local" else None
    except (UnknownQueue, WrongQueueType):
        return None


def _summary(qm: QueueManager, one: QueueAttributes, views: Mapping[str, QueueView]) -> dict[str, Any]:
    """The record of a queue, from a snapshot of all local queues. A queue that is not in it is read separately."""
    view = views.get(one.base_queue if one.type == "alias" else one.name)
    status = None if view is not None else _status(qm, one)
    depth, uncommitted = status and status.current_depth, status and status.uncommitted
    if view is not None:
        depth, uncommitted = view.depth, view.puts + view.gets
    opens = view or status
    return {
        "queue": one.name,
        "type": one.type,
        "depth": depth,
        "uncommitted": uncommitted,
        "delivery": one.delivery,
        "order": one.order,
        "read_order": one.read_order,
        "open_input_count": opens and opens.open_input_count,
        "open_output_count": opens and opens.open_output_count,
        "description": one.description,
    }


@queue.command("clear", example="inorder queue clear ORDERS --yes --store orders.db")
@click.argument("name", shell_complete=queue_names)
@says_yes
@takes_store
def clear(run: Run, name: str, yes: bool) -> None:
    """Remove all messages from a local queue, including those under lock ids.

    The command fails while a program has the queue open, or while a unit of work or a claim holds one of its messages;
    'inorder unit' and 'inorder claim' show which. It removes some hundreds at a time, so that other programs need not
    wait. Messages that they put meanwhile stay.
    """
    with run.opened() as qm:
        depth = qm.depth(name)
        run.output.confirm(f"Remove {count(depth, 'message')} from {name}?", yes=yes)
        removed = qm.admin.clear_queue(name)
    run.output.tell(
        {"queue": name, "done": "cleared", "messages": removed}, f"removed {count(removed, 'message')} from {name}"
    )


@queue.command("retry", example="inorder queue retry JOBS --store orders.db")
@click.argument("name", shell_complete=queue_names)
@click.option(
    "--uid",
    type=Of(UniqueIds()),
    metavar=METAVARS[UniqueIds],
    help="Only the message with this unique id, and the messages of its group that failed with it.",
)
@takes_store
def retry(run: Run, name: str, uid: UniqueId | None) -> None:
    """Make messages that wait for their next attempt available at once.

    Their work has failed, and a worker has put them back with a delay. They keep their places and their number of
    attempts. Messages that were put with a delivery delay stay delayed.
    """
    with run.opened() as qm:
        messages = qm.admin.retry_now(name, uid)
    run.output.tell(
        {"queue": name, "done": "retried", "messages": messages},
        f"made {count(messages, 'message')} of {name} available for the next attempt",
    )


@queue.command("delete", example="inorder queue delete ORDERS --purge --store orders.db")
@click.argument("name", shell_complete=queue_names)
@click.option("--purge", is_flag=True, help="Delete the queue even if it has messages.")
@says_yes
@takes_store
def delete(run: Run, name: str, purge: bool, yes: bool) -> None:
    """Delete a queue. A queue with messages needs --purge."""
    with run.opened() as qm:
        if purge and qm.attributes(name).type == "local" and (depth := qm.depth(name)):
            run.output.confirm(f"Delete {name} with {count(depth, 'message')}?", yes=yes)
        qm.delete_queue(name, purge=purge)
    run.output.tell({"queue": name, "done": "deleted"}, f"deleted queue {name}")
