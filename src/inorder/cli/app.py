"""The tree of commands."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click

from .. import __version__
from .browsing import browse
from .channelling import channel
from .claims import claim
from .dead import dead
from .dead_rules import run_rules
from .definitions import export, import_definitions
from .getting import get
from .login import PEM, login
from .moved import demo, scenarios
from .moving import copy, move
from .mqi import mqi
from .outbox import outbox
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

A store is one file, a schema of a PostgreSQL database, or elsewhere with a server at https://host:9443. Name its path
or URL with --store, before or after the command, or set INORDER_STORE once. Every command takes --json, and its --help
ends with an example.
"""


@click.group(cls=CommandGroup, help=HELP, epilog="Example: inorder queue create ORDERS --store orders.db")
@click.version_option(__version__, prog_name="inorder", message="%(prog)s %(version)s")
@click.option("--store", "-s", metavar="PATH|URL", help=f"{STORE_HELP} Give it before or after the command.")
@click.option("--ca", type=PEM, help="For a store elsewhere: the authorities that may sign the server's certificate, "
              "in PEM; also INORDER_CA.")  # fmt: skip
@click.option("--certificate", type=PEM, help="For a store elsewhere: a client certificate, in PEM; also "
              "INORDER_CERTIFICATE. A token is read from INORDER_TOKEN, or stored with inorder login.")  # fmt: skip
@click.option("--key", type=PEM, help="The key of the certificate, in PEM; also INORDER_KEY.")
@click.pass_context
def app(context: click.Context, /, store: str | None, **files: Path | None) -> None:
    """The root of the commands. A command that works on a store looks up `store` itself.

    The files are passed on in the environment, also to the processes that a command starts.
    """
    del store
    given = {f"INORDER_{name.upper()}": str(path.absolute()) for name, path in files.items() if path is not None}
    context.with_resource(_in_environment(given))


@contextmanager
def _in_environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


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
    outbox,
    dead,
    trigger_monitor,
    user,
    token,
    acts,
    check,
    backup,
    rename,
    upgrade,
    login,
    mqsc,
    export,
    import_definitions,
    mqi,
    pipeline,
    serve,
    demo,
    scenarios,
):
    app.add_command(command)
dead.add_command(run_rules)
