"""`inorder serve`: the queue manager over HTTP."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import stat
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from .output import Output
from .places import Place, PlaceType
from .running import DONE, Command, Run, takes_store

if TYPE_CHECKING:
    from ..server.settings import Settings

TOKEN_LENGTH_MIN, TOKEN_LENGTH_MAX = 16, 512
NEEDED = ("starlette", "uvicorn")


class Keys(NamedTuple):
    """A certificate and its key in PEM; without TLS neither is there."""

    certificate: Path | None = None
    key: Path | None = None
    fingerprint: str = ""


PEM = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("serve", cls=Command, example="inorder serve orders.db --port 9443")
@click.argument("place", type=PlaceType(), required=False, metavar="[STORE]")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=9443, show_default=True, help="The port; 0: one that is free."
)
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes that serve.")
@click.option(
    "--token-file", type=click.Path(dir_okay=False, path_type=Path),
    help="Where the launch token is; made with a new one if it is missing. Without it each start has a new token.",
)  # fmt: skip
@click.option("--certificate", type=PEM, help="For TLS: the certificate, and those that have signed it, in PEM.")
@click.option("--key", type=PEM, help="The key of the certificate, in PEM.")
@click.option("--self-signed", is_flag=True, help="TLS with a certificate made now, which no client trusts unasked.")
@takes_store
def serve(
    run: Run,
    *,
    place: Place | None,
    host: str,
    port: int,
    workers: int,
    token_file: Path | None,
    certificate: Path | None,
    key: Path | None,
    self_signed: bool,
) -> int:
    """Serve a store over HTTP: IBM MQ's REST interfaces, until Ctrl-C.

    It listens on this machine alone, and prints a link with a token, without which nothing is answered. Programs send
    the token as a bearer token, or as the password of basic authentication. The log is on standard error, a JSON
    object a line.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise click.ClickException(f"{' and '.join(missing)} are missing: pip install 'inorder[server]'.")
    run = _run(run, place)
    _check_address(host)
    _check_tls(certificate, key, self_signed=self_signed)
    with run.opened() as qm:
        name = qm.manager_attributes().name
    token = _token(run, token_file)
    with contextlib.closing(_listener(host, port)) as listener, _keys(host, certificate, key, self_signed) as keys:
        settings = _settings(run, host, listener, token, workers, is_secure=keys.certificate is not None)
        _announce(run.output, name, settings, host, token_file, keys)
        _serve(settings, listener, keys)
    return DONE


def _run(run: Run, place: Place | None) -> Run:
    """The run on the store that is named; as an argument it is in front of INORDER_STORE."""
    if place is None:
        return run
    context = click.get_current_context()
    source = context.get_parameter_source("store")
    if source is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("Name the store once: as STORE, or with --store.")
    return Run(place, as_json=run.output.as_json)


def _check_address(host: str) -> None:
    """Raises: click.UsageError, others could reach it."""
    from ..server.running import is_loopback  # noqa: PLC0415 - it loads uvicorn

    if not is_loopback(host):
        raise click.UsageError(
            f"--host {host} can be reached from other machines, which needs TLS and users. There are no users yet: "
            "serve on 127.0.0.1, ::1 or localhost, and reach it from elsewhere through ssh -L."
        )


def _check_tls(certificate: Path | None, key: Path | None, *, self_signed: bool) -> None:
    if (certificate is None) != (key is None):
        raise click.UsageError("--certificate and --key go together.")
    if self_signed and certificate is not None:
        raise click.UsageError("--self-signed makes a certificate: leave --certificate and --key out.")


def _token(run: Run, path: Path | None) -> str:
    """The launch token: a new one, or that in the file. Raises: click.UsageError, the file cannot be it."""
    if path is None:
        return secrets.token_urlsafe(32)
    run.refuse_target(path, "--token-file")
    with contextlib.suppress(FileExistsError):
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(made, "w", encoding="ascii") as file:
            file.write(f"{secrets.token_urlsafe(32)}\n")
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise click.UsageError(f"--token-file {path} can be read or written by others: chmod 600 {path}")
    with contextlib.suppress(UnicodeDecodeError):
        token = path.read_text(encoding="ascii").strip()
        if TOKEN_LENGTH_MIN <= len(token) <= TOKEN_LENGTH_MAX and token.isprintable() and " " not in token:
            return token
    raise click.UsageError(
        f"--token-file {path} must have one line of {TOKEN_LENGTH_MIN} to {TOKEN_LENGTH_MAX} printable characters of "
        "ASCII, without blanks."
    )


def _listener(host: str, port: int) -> socket.socket:
    from ..server.running import listening  # noqa: PLC0415 - it loads uvicorn

    return listening("127.0.0.1" if host == "localhost" else host, port)


@contextlib.contextmanager
def _keys(host: str, certificate: Path | None, key: Path | None, self_signed: bool) -> Iterator[Keys]:
    from ..server.certificates import check, fingerprint, make  # noqa: PLC0415 - it is of the server

    if certificate is not None and key is not None:
        check(certificate, key)
        yield Keys(certificate, key, fingerprint(certificate))
    elif self_signed:
        with tempfile.TemporaryDirectory(prefix="inorder-") as folder:
            yield Keys(*make(Path(folder), sorted({host, "localhost", "127.0.0.1", "::1"})))
    else:
        yield Keys()


def _settings(run: Run, host: str, listener: socket.socket, token: str, workers: int, *, is_secure: bool) -> Settings:
    from ..server.settings import Settings  # noqa: PLC0415 - it is of the server

    store = str(run.store.given)
    return Settings(
        store=store if "://" in store else str(Path(store).absolute()),
        key=secrets.token_bytes(32),
        token=token,
        hosts=frozenset({"localhost", "127.0.0.1", "[::1]", _in_address(host)}),
        port=listener.getsockname()[1],
        is_secure=is_secure,
        workers=workers,
    )


def _in_address(host: str) -> str:
    """A host as an address has it."""
    return f"[{ip_address(host)}]" if ":" in host else host


def _announce(output: Output, name: str, settings: Settings, host: str, token_file: Path | None, keys: Keys) -> None:
    """Says where it is; the token only where it is in no file."""
    url = f"{'https' if settings.is_secure else 'http'}://{_in_address(host)}:{settings.port}/"
    link = url if token_file is not None else f"{url}?token={settings.token}"
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
    if keys.fingerprint:
        output.note(f"the certificate's SHA-256 is {keys.fingerprint}")


def _serve(settings: Settings, listener: socket.socket, keys: Keys) -> None:
    from ..server.running import serve as serve_on  # noqa: PLC0415 - it loads uvicorn

    serve_on(settings, listener, certificate=keys.certificate, key=keys.key)
