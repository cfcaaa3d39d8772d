"""`inorder serve`: serves a queue manager over HTTP."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from ..mq.channels.exits import check as check_exits
from ..stores.open import Location, OverNetwork
from ..support.advice import how_to_install
from ..support.sockets import is_loopback
from .login import PEM
from .output import Output
from .places import PlaceType
from .running import Command, Run, takes_exits, takes_store

if TYPE_CHECKING:
    from .. import QueueManager
    from ..server.renewing import Files
    from ..server.settings import Settings

TOKEN_LENGTH_MIN, TOKEN_LENGTH_MAX = 16, 512
NEEDED = ("argon2", "cryptography", "jinja2", "python_multipart", "starlette", "uvicorn")
LOOPBACK = ("localhost", "127.0.0.1", "::1")
EVERY = ("0.0.0.0", "::", "")  # a client cannot connect to these
HOST = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")
NEEDS_TLS = (
    "is reachable from other machines, so TLS is required: give --certificate and --key, or --self-signed. "
    "Without TLS, serve on 127.0.0.1 and connect through ssh -L."
)
NEEDS_USERS = (
    "is reachable from other machines, so a user who can log in is required: run inorder user add NAME "
    "--role admin --password, or inorder token create for an existing user."
)


class ListenAddress(NamedTuple):
    """The address on which the server listens.

    Attributes:
        shown: the host in printed links.
        hosts: the names and addresses that clients may use.
        is_ours: whether only this machine can reach it.
    """

    shown: str
    hosts: set[str]
    is_ours: bool


class Keys(NamedTuple):
    """The files for TLS and the SHA-256 of the certificate; both are empty without TLS."""

    files: Files | None = None
    fingerprint: str = ""


@click.command("serve", cls=Command, example="inorder serve orders.db --port 9443")
@click.argument("place", type=PlaceType(), required=False, metavar="[STORE]")
@click.option(
    "--host", default="127.0.0.1", show_default=True,
    help="The address to listen on. One that other machines can reach needs TLS and a user who can log in.",
)  # fmt: skip
@click.option(
    "--name", "names", multiple=True, metavar="HOST",
    help="Another name or address that clients use for the server; may be repeated.",
)  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65_535), default=9443, show_default=True, metavar="PORT",
              help="The port; 0 picks a free one.")  # fmt: skip
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, metavar="N",
              help="The number of server processes.")  # fmt: skip
@click.option(
    "--token-file", type=click.Path(dir_okay=False, path_type=Path),
    help="The file with the launch token; created with a new token if it is missing. Without this option each start "
    "makes a new token. Launch tokens work only on this machine's own addresses.",
)  # fmt: skip
@click.option("--certificate", type=PEM, help="For TLS: the certificate and its chain, in PEM.")
@click.option("--key", type=PEM, help="The key of the certificate, in PEM.")
@click.option(
    "--self-signed",
    is_flag=True,
    help="Use TLS with a new self-signed certificate, which clients do not trust by default.",
)
@click.option(
    "--client-ca", type=PEM,
    help="The CAs that sign client certificates, in PEM. Users can log in with such a certificate; see inorder user.",
)  # fmt: skip
@click.option("--client-crl", type=PEM, help="Revocation lists for client certificates, in PEM.")
@takes_exits
@takes_store
def serve(
    run: Run,
    *,
    place: Location | None,
    host: str,
    names: tuple[str, ...],
    port: int,
    workers: int,
    token_file: Path | None,
    certificate: Path | None,
    key: Path | None,
    self_signed: bool,
    client_ca: Path | None,
    client_crl: Path | None,
    exits: tuple[str, ...],
) -> int:
    """Serve a store over HTTP: IBM MQ's REST interfaces, our own, and a console, until Ctrl-C.

    Without --host the server listens on this machine only, and prints a link with a launch token for you. Users of the
    store log in by name and password, by token, or by client certificate; their roles decide what they may do. On an
    address that other machines can reach there is no launch token, so only users can log in. The log goes to standard
    error, one JSON object per line.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise click.ClickException(f"The server needs {' and '.join(missing)}: {how_to_install('server')}.")
    check_exits(exits)
    run = _run(run, place)
    _check_tls(certificate, key, client_ca, client_crl, self_signed=self_signed)
    if isinstance(run.store, OverNetwork):
        raise click.UsageError(f"{run.store} is a server already: serve the store on the machine that has it.")
    address = _address(host, names, token_file, has_tls=certificate is not None or self_signed)
    with run.opened() as qm:
        name = qm.admin.manager_attributes().name
        if not address.is_ours and not _may_come_in(qm, by_certificate=client_ca is not None):
            raise click.UsageError(f"--host {host} {NEEDS_USERS}")
    token = _token(run, token_file) if address.is_ours else None
    from ..server import running  # noqa: PLC0415 - it loads uvicorn
    from ..server.settings import Settings  # noqa: PLC0415 - it is of the server

    with (
        _keys(sorted(address.hosts), certificate, key, client_ca, client_crl, self_signed) as keys,
        contextlib.closing(running.listening("127.0.0.1" if host == "localhost" else host, port)) as listener,
    ):
        settings = Settings(
            store=run.store.absolute,
            key=secrets.token_bytes(32),
            token=token,
            hosts=frozenset(_in_address(one).lower() for one in address.hosts),
            port=listener.getsockname()[1],
            is_secure=keys.files is not None,
            workers=workers,
            exits=exits,
        )
        _announce(run.output, name, settings, address, token_file, keys)
        return running.serve(settings, listener, files=keys.files)


def _run(run: Run, place: Location | None) -> Run:
    """The run on the named store. The STORE argument takes precedence over INORDER_STORE."""
    if place is None:
        return run
    context = click.get_current_context()
    source = context.get_parameter_source("store")
    if source is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("Name the store once: as STORE, or with --store.")
    return Run(place, as_json=run.output.as_json)


def _address(host: str, names: tuple[str, ...], token_file: Path | None, *, has_tls: bool) -> ListenAddress:
    """The address to listen on. Raises: click.UsageError, if TLS or --name is needed and missing."""
    is_every = host in EVERY
    hosts = {*LOOPBACK, *(() if is_every else (host,)), *(_checked_name(one) for one in names)}
    if is_loopback(host):
        return ListenAddress(host, hosts, is_ours=True)
    if not has_tls:
        raise click.UsageError(f"--host {host} {NEEDS_TLS}")
    if token_file is not None:
        raise click.UsageError(
            f"--token-file works only on this machine's own addresses, and --host {host} is not one: leave it out."
        )
    if is_every and not names:
        raise click.UsageError(
            f"--host {host} means every address of this machine: give --name for each name or address that clients "
            "use, such as --name queues.example."
        )
    return ListenAddress(names[0] if is_every else host, hosts, is_ours=False)


def _checked_name(name: str) -> str:
    """Checks a name for a Host header. Raises: click.UsageError, if it is not valid."""
    with contextlib.suppress(ValueError):
        return str(ip_address(name))
    if HOST.fullmatch(name) is None:
        raise click.UsageError(f"--name {name!r} must be a name such as queues.example or an address, without a port.")
    return name.lower()


def _may_come_in(qm: QueueManager, *, by_certificate: bool) -> bool:
    """Whether any user can log in: with a password, a token or, where certificates are requested, a certificate."""
    users = [one for one in qm.accounts.users() if one.enabled]
    now = time.time()
    owners = {token.user_identifier for token in qm.accounts.tokens() if token.expires_at > now}
    return any(one.has_password or one.identifier in owners or (by_certificate and bool(one.subjects)) for one in users)


def _check_tls(
    certificate: Path | None, key: Path | None, client_ca: Path | None, client_crl: Path | None, *, self_signed: bool
) -> None:
    if (certificate is None) != (key is None):
        raise click.UsageError("--certificate and --key go together.")
    if self_signed and certificate is not None:
        raise click.UsageError("--self-signed creates a certificate: leave out --certificate and --key.")
    if client_ca is not None and certificate is None and not self_signed:
        raise click.UsageError("--client-ca needs TLS: give --certificate and --key, or --self-signed.")
    if client_crl is not None and client_ca is None:
        raise click.UsageError("--client-crl needs --client-ca, the issuers of the lists.")


def _token(run: Run, path: Path | None) -> str:
    """The launch token: a new one, or the one in the file. Raises: click.UsageError, if the file is not usable."""
    if path is None:
        return secrets.token_urlsafe(32)
    run.refuse_target(path, "--token-file")
    with contextlib.suppress(FileExistsError):
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(made, "w", encoding="ascii") as file:
            file.write(f"{secrets.token_urlsafe(32)}\n")
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise click.UsageError(f"--token-file {path} must not be accessible to other users: run chmod 600 {path}")
    with contextlib.suppress(UnicodeDecodeError):
        token = path.read_text(encoding="ascii").strip()
        if TOKEN_LENGTH_MIN <= len(token) <= TOKEN_LENGTH_MAX and token.isprintable() and " " not in token:
            return token
    raise click.UsageError(
        f"--token-file {path} must have one line of {TOKEN_LENGTH_MIN} to {TOKEN_LENGTH_MAX} printable ASCII "
        "characters without blanks."
    )


@contextlib.contextmanager
def _keys(
    hosts: list[str],
    certificate: Path | None,
    key: Path | None,
    client_ca: Path | None,
    client_crl: Path | None,
    self_signed: bool,
) -> Iterator[Keys]:
    """Yields the checked files for TLS. Those of a self-signed certificate are deleted at the end."""
    from ..server.certificates import fingerprint, make  # noqa: PLC0415 - it is of the server
    from ..server.renewing import Files  # noqa: PLC0415 - it loads uvicorn

    with contextlib.ExitStack() as held:
        if self_signed:
            folder = held.enter_context(tempfile.TemporaryDirectory(prefix="inorder-"))
            certificate, key, _ = make(Path(folder), hosts)
        if certificate is None or key is None:
            yield Keys()
            return
        files = Files(certificate=certificate, key=key, client_ca=client_ca, client_crl=client_crl)
        files.check(datetime.now(timezone.utc))
        yield Keys(files, fingerprint(certificate))


def _in_address(host: str) -> str:
    """A host in the form that a URL takes."""
    return f"[{ip_address(host)}]" if ":" in host else host


def _announce(
    output: Output, name: str, settings: Settings, address: ListenAddress, token_file: Path | None, keys: Keys
) -> None:
    """Prints the link of the server, with the token unless that is in a file."""
    url = f"{'https' if settings.is_secure else 'http'}://{_in_address(address.shown)}:{settings.port}/"
    has_link = token_file is None and settings.token is not None
    link = f"{url}?token={settings.token}" if has_link else url
    record = {
        "url": link,
        "queue_manager": name,
        "workers": settings.workers,
        "token_file": None if token_file is None else str(token_file),
        "fingerprint": keys.fingerprint or None,
    }
    output.tell(record, f"Queue manager {name} is at {link}")
    if token_file is not None:
        output.note(f"the token is in {token_file}")
    if settings.token is None:
        output.note("only users of the store can log in; this address has no launch token")
    if keys.fingerprint:
        output.note(f"the certificate's SHA-256 is {keys.fingerprint}")
