"""The tree of commands."""

from __future__ import annotations

import click

from .. import __version__
from .browsing import browse
from .channelling import channel
from .claims import claim
from .dead import dead
from .getting import get
from .moving import copy, move
from .pipeline import pipeline
from .putting import put
from .queues import queue
from .running import STORE_HELP, Group
from .scripts import mqsc
from .showing import demo, scenarios
from .units import lock, unit
from .upkeep import backup, check
from .watching import watch

HELP = """A message queue manager that keeps its promises about order.

A store is one file, or a schema of a PostgreSQL database. Name its path or URL with --store, before or behind the
command, or once with INORDER_STORE. Every command but demo and scenarios takes --json, and --help ends with an example.
"""


@click.group(cls=Group, help=HELP, epilog="Example: inorder queue create ORDERS --store orders.db")
@click.version_option(__version__, prog_name="inorder", message="%(prog)s %(version)s")
@click.option("--store", "-s", metavar="PATH|URL", help=f"{STORE_HELP} Before the command or behind it.")
def app(store: str | None) -> None:
    """The root of the commands. Each that works on a store looks for `store` by itself."""
    del store


for command in (
    queue,
    put,
    get,
    browse,
    watch,
    move,
    copy,
    unit,
    lock,
    claim,
    channel,
    dead,
    check,
    backup,
    mqsc,
    pipeline,
    demo,
    scenarios,
):
    app.add_command(command)
