"""The tree of commands."""

from __future__ import annotations

import click

from .. import __version__
from .browsing import browse
from .channelling import channel
from .claims import claim
from .dead import dead
from .dead_rules import run_rules
from .getting import get
from .moved import demo, scenarios
from .moving import copy, move
from .pipeline import pipeline
from .putting import put
from .queues import queue
from .running import STORE_HELP, CommandGroup
from .scripts import mqsc
from .serve import serve
from .triggering import trigger_monitor
from .units import connection, lock, unit
from .upkeep import backup, check, create, rename, upgrade
from .users import acts, token, user
from .watching import watch
from .work import work

HELP = """A message queue manager that keeps its promises about order.

A store is one file, or a schema of a PostgreSQL database. Name its path or URL with --store, before or after the
command, or set INORDER_STORE once. Every command takes --json, and its --help ends with an example.
"""


@click.group(cls=CommandGroup, help=HELP, epilog="Example: inorder queue create ORDERS --store orders.db")
@click.version_option(__version__, prog_name="inorder", message="%(prog)s %(version)s")
@click.option("--store", "-s", metavar="PATH|URL", help=f"{STORE_HELP} Give it before or after the command.")
def app(store: str | None) -> None:
    """The root of the commands. A command that works on a store looks up `store` itself."""
    del store


for command in (
    create,
    queue,
    put,
    get,
    browse,
    watch,
    move,
    copy,
    unit,
    lock,
    connection,
    claim,
    channel,
    work,
    dead,
    trigger_monitor,
    user,
    token,
    acts,
    check,
    backup,
    rename,
    upgrade,
    mqsc,
    pipeline,
    serve,
    demo,
    scenarios,
):
    app.add_command(command)
dead.add_command(run_rules)
