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
from types import FrameType
from typing import Any, Final

from uvicorn import Config, Server
from uvicorn.supervisors import Multiprocess

from ..errors import ArgumentError
from .app import Factory
from .listener import SURPLUS, Listener, within_descriptors
from .logs import CONFIGURATION
from .protocol import Protocol
from .renewing import Files, Renewing
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
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        text = f"nothing can listen at {place}: {why}"
        allowed = "an address of this machine, and a port that is free"
        raise ArgumentError(text, argument="host, port", value=place, allowed=allowed) from None


def serve(
    settings: Settings,
    listener: socket.socket,
    *,
    files: Files | None = None,
) -> None:
    """Serves until a signal says stop; then requests that are under way have some seconds to end.

    Args:
        listener: of `listening`; all workers share it, and it is closed at the end.
        files: for TLS; None: there is none.
    """
    several = settings.workers > 1
    limits = within_descriptors(settings.limits)
    shared = replace(settings, parent=os.getpid() if several else 0, limits=limits)
    listener = Listener(listener.detach(), limits.connections + SURPLUS)
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
        **({} if files is None else _tls(files)),
    )
    with listener, _quietly():
        if several:
            Supervisor(config, sockets=[listener]).run()
        else:
            Server(config).run(sockets=[listener])


def _tls(files: Files) -> dict[str, Any]:
    return {
        "ssl_certfile": files.certificate,
        "ssl_keyfile": files.key,
        "ssl_ca_certs": files.client_ca,
        "ssl_cert_reqs": ssl.CERT_NONE if files.client_ca is None else ssl.CERT_OPTIONAL,
        "ssl_context_factory": Renewing(files),
    }


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
