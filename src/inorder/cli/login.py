"""`inorder login`: stores the credentials for a server elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ..errors import UnknownObject
from .output import Output, line_of_standard_input
from .running import Command, tells_json

PEM = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("login", cls=Command, example="inorder login https://orders.example:9443")
@click.argument("url")
@click.option("--ca", type=PEM, help="The authorities that may sign the server's certificate, in PEM.")
@click.option("--certificate", type=PEM, help="A client certificate, in PEM; then no token is asked for.")
@click.option("--key", type=PEM, help="The key of the certificate, in PEM.")
@click.option("--remove", is_flag=True, help="Remove the credentials for the server.")
@tells_json
def login(url: str, remove: bool, as_json: bool, **files: Path | None) -> None:
    """Store a token or a client certificate for the server at URL.

    The command asks for the token, or reads a line of standard input. Your commands and programs then use it for stores
    with this URL. It is stored in ~/.config/inorder/credentials, or the file that INORDER_CREDENTIALS names, which only
    you can read. For certificates and keys the paths are stored. To make a token, run inorder token create on the
    machine that has the store.
    """
    from ..stores.remote import address, credentials  # noqa: PLC0415 - they load TLS

    given = {name: path.absolute() for name, path in files.items() if path is not None}
    if remove and given:
        raise click.UsageError(f"Give --remove or --{next(iter(given))}, not both.")
    found = address.parse(url, given)
    output = Output(as_json=as_json)
    if remove:
        if not credentials.forget(found.server):
            raise UnknownObject(f"no credentials are stored for {found}", kind="credentials", object=found.server)
        output.tell({"server": found.server, "done": "removed"}, f"removed the credentials for {found}")
        return
    if found.given.certificate is None:
        found = address.parse(url, {**given, "token": _token()})
    address.ssl_context(found, found.given)  # the files can be used
    path = credentials.keep(found.server, found.given)
    record = {"server": found.server, "done": "stored", "file": str(path)}
    output.tell(record, f"stored the credentials for {found} in {path}")


def _token() -> str:
    if sys.stdin is None or not sys.stdin.isatty():
        return line_of_standard_input().strip()
    found: str = click.prompt("Token", hide_input=True, err=True)
    return found
