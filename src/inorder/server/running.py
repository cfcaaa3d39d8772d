"""The processes that serve: one, or several that share a socket."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import signal
import socket
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Final

from uvicorn import Config, Server
from uvicorn.supervisors import Multiprocess

from ..errors import bad_argument
from .app import Factory
from .logs import CONFIGURATION
from .protocol import Protocol
from .revocation import WithRevocation
from .settings import Settings

BACKLOG: Final = 1_024
KEEP_ALIVE_SECONDS: Final = 30
STARTED_SECONDS: Final = 60  # for a worker to answer its supervisor: a busy machine may take long


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises: ArgumentError, it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        allowed = f"an address and a port that are free here ({error.strerror})"
        raise bad_argument("host, port", f"{host}:{port}", allowed) from None


def serve(
    settings: Settings,
    listener: socket.socket,
    *,
    certificate: Path | None = None,
    key: Path | None = None,
    client_ca: Path | None = None,
    client_crl: Path | None = None,
) -> None:
    """Serves until a signal says stop; then requests that are under way have some seconds to end.

    Args:
        listener: of `listening`; all workers share it.
        certificate, key: in PEM; None: no TLS.
        client_ca: who signs client certificates, in PEM; None: nobody is asked for one.
        client_crl: lists of those that were revoked, in PEM, as `revocation.check` wants them; None: there are none.
    """
    several = settings.workers > 1
    shared = replace(settings, parent=os.getpid() if several else 0)
    limits = shared.limits
    config = Config(
        Factory(shared),
        factory=True,
        loop="asyncio",
        http=Protocol,
        ws="none",
        lifespan="on",
        interface="asgi3",
        workers=settings.workers,
        access_log=False,
        log_config=CONFIGURATION,
        proxy_headers=False,
        server_header=False,
        h11_max_incomplete_event_size=2 * limits.head,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=limits.stop_seconds,
        timeout_worker_healthcheck=STARTED_SECONDS,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        ssl_ca_certs=client_ca,
        ssl_cert_reqs=ssl.CERT_NONE if client_ca is None else ssl.CERT_OPTIONAL,
        ssl_context_factory=None if client_crl is None else WithRevocation(client_crl),
    )
    with _quietly():
        if several:
            Supervisor(config, sockets=[listener]).run()
        else:
            Server(config).run(sockets=[listener])


class Supervisor(Multiprocess):
    """Begins the workers, and those that die again.

    It asks each worker through a pipe whether it lives. Of that pipe it must not keep the worker's end: else it would
    not notice that a worker was killed before it answered, and would wait for it, deaf to signals, for the whole
    `STARTED_SECONDS`.
    """

    def keep_subprocess_alive(self) -> None:
        for one in self.processes:
            one.child_conn.close()  # the worker has its own by now; to close it once more does nothing
        super().keep_subprocess_alive()


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """SIGTERM and Ctrl-C stop the server, and are not raised again: the process ends normally."""

    def done(number: int, frame: FrameType | None) -> None:
        del number, frame

    before = {number: signal.signal(number, done) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
