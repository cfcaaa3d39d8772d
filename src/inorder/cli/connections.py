"""`inorder connection`: shows connected programs, and names connections to other stores."""

from __future__ import annotations

import time
from typing import Any

import click

from ..formats.json_lines import when
from ..mq import channels
from ..stores.seam.views import ConnectionView
from .running import CommandGroup, Run, completes, queue_names, takes_store

CONNECTION_COLUMNS = {
    "connection": "connection",
    "user": "user",
    "program": "program",
    "process": "process",
    "host": "host",
    "age": "age",
    "opened": "has open",
}
DEFINED_COLUMNS = {"connection": "connection", "location": "to", "user": "user"}
connection_names = completes(lambda qm: [one.name for one in channels.connections(qm)])


@click.group("connection", cls=CommandGroup, epilog="Example: inorder connection list --store orders.db")
def connection() -> None:
    """Show connected programs and their open queues; define connections to other stores, for channels."""


@connection.command("list", example="inorder connection list --store orders.db")
@click.argument("queue", required=False, shell_complete=queue_names)
@takes_store
def list_connections(run: Run, queue: str | None) -> None:
    """List the connections of all running processes with their open queues; with QUEUE, only those that have it open.

    A queue is open to get (get, or get exclusive), to put, or only to browse, inquire or set, which are all listed as
    look. The time of opening is not recorded. The age is the age of the process or, for a store on a server, of its
    session. Processes that 'inorder work' starts are listed under that name.
    """
    with run.opened() as qm:
        own = qm.internals.owner
        if queue is not None:
            qm.attributes(queue)
        found = [one for one in qm.inspect.connections() if one.connection != own]
    wanted = [one for one in found if queue is None or any(queue in (each.queue, each.name) for each in one.opened)]
    records = [_record_of_connection(one) for one in wanted]
    if not run.output.as_json:
        for record, one in zip(records, wanted, strict=True):
            record["opened"] = ", ".join(f"{each.name} ({each.uses})" for each in one.opened)
    run.output.listing(records, CONNECTION_COLUMNS, nothing="no other program is connected")


def _record_of_connection(one: ConnectionView) -> dict[str, Any]:
    return {
        "connection": one.connection,
        "user": one.program.user,
        "program": one.program.name,
        "process": one.process,
        "host": one.host or None,
        "since": when(one.since),
        "age": None if one.since is None else time.time() - one.since,
        "opened": [each._asdict() for each in one.opened],
    }


@connection.command(
    "define", example="inorder connection define PARIS https://paris.example:9443 --user london --store london.db"
)
@click.argument("name")
@click.argument("location")
@click.option("--user", default="", help="Stop channels if the server at LOCATION authenticates this side as another "
              "user.")  # fmt: skip
@click.option("--replace", is_flag=True, help="Change the connection if it exists.")
@takes_store
def define_connection(run: Run, name: str, location: str, user: str, replace: bool) -> None:
    """Define a connection to another queue manager's store, which channels can name.

    LOCATION is the path or URL of the store. The program that runs the channel needs credentials
    for it: see inorder login.
    """
    with run.opened() as qm:
        made = channels.define_connection(qm, name, location, user=user, replace=replace)
    run.output.tell({**_record_of_defined(made), "done": "defined"}, f"defined connection {name} to {location}")


@connection.command("defined", example="inorder connection defined --store london.db")
@takes_store
def list_defined(run: Run) -> None:
    """List the named connections to other stores."""
    with run.opened() as qm:
        records = [_record_of_defined(one) for one in channels.connections(qm)]
    run.output.listing(records, DEFINED_COLUMNS, nothing="no connection is defined")


def _record_of_defined(one: channels.Connection) -> dict[str, Any]:
    return {"connection": one.name, "location": one.location, "user": one.user}


@connection.command("delete", example="inorder connection delete PARIS --store london.db")
@click.argument("name", shell_complete=connection_names)
@takes_store
def delete_connection(run: Run, name: str) -> None:
    """Delete a named connection. Channels that name it cannot run until it is defined again."""
    with run.opened() as qm:
        channels.delete_connection(qm, name)
    run.output.tell({"connection": name, "done": "deleted"}, f"deleted connection {name}")
