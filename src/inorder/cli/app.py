"""The tree of commands."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import ClassVar, Final

import click

from .. import __version__
from .login import PEM
from .running import STORE_HELP, CommandGroup

HELP = """A message queue manager that keeps its promises about order.

A store is one file, a schema of a PostgreSQL database, or elsewhere with a server at https://host:9443. Name its path
or URL with --store, before or after the command, or set INORDER_STORE once. Every command takes --json, and its --help
ends with an example.
"""


SECTIONS: Final = {
    "Queues and messages": {
        "queue": "queues.queue",
        "put": "putting.put",
        "get": "getting.get",
        "browse": "browsing.browse",
        "watch": "watching.watch",
        "move": "moving.move",
        "copy": "moving.copy",
        "dead": "dead.dead",
    },
    "Work in progress": {
        "unit": "units.unit",
        "lock": "units.lock",
        "claim": "claims.claim",
        "connection": "connections.connection",
    },
    "Long-running programs": {
        "work": "work.work",
        "outbox": "outbox.outbox",
        "trigger-monitor": "triggering.trigger_monitor",
        "channel": "channelling.channel",
        "serve": "serve.serve",
    },
    "The store": {
        "create": "upkeep.create",
        "check": "upkeep.check",
        "backup": "upkeep.backup",
        "rename": "upkeep.rename",
        "upgrade": "upkeep.upgrade",
        "export": "definitions.export",
        "import": "definitions.import_definitions",
    },
    "Users of a server": {
        "user": "users.user",
        "token": "users.token",
        "login": "login.login",
        "acts": "users.acts",
    },
    "IBM MQ and Spark": {
        "mqsc": "scripts.mqsc",
        "mqi": "mqi.mqi",
        "pipeline": "pipeline.pipeline",
        "demo": "moved.demo",
        "scenarios": "moved.scenarios",
    },
}


class CommandModules(Mapping[str, click.Command]):
    """The commands by name. A module is imported when its command is looked up, because a call needs only one."""

    places: ClassVar[dict[str, str]] = {name: place for section in SECTIONS.values() for name, place in section.items()}

    def __getitem__(self, name: str) -> click.Command:
        module, variable = self.places[name].split(".")
        command: click.Command = getattr(import_module(f".{module}", __package__), variable)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


@click.group(
    cls=CommandGroup,
    commands=CommandModules(),
    sections=SECTIONS,
    help=HELP,
    epilog="Example: inorder queue create ORDERS --store orders.db",
)
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
