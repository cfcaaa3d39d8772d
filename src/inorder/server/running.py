"""Runs the server: in one process, or in several workers that share a socket."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from uvicorn import Config, Server
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

from ..errors import ArgumentError
from ..work.processes import ProcessPlace
from .app import Factory
from .listener import SURPLUS, LimitedListener, within_descriptors
from .logs import CONFIGURATION, LOGGER
from .protocol import Protocol
from .renewing import Files, Renewing
from .settings import Settings
from .store.protocol import SETTINGS as WEBSOCKETS

log = logging.getLogger(LOGGER)

BACKLOG: Final = 1_024
KEEP_ALIVE_SECONDS: Final = 30
STARTED_SECONDS: Final = 60  # for a worker to answer its supervisor, which may take long on a busy machine
PORT_SECONDS: Final = 5.0  # for the workers of a server that was killed to give up its port
AGAIN_SECONDS: Final = 0.05  # between two attempts to get the port
DONE, TROUBLE = 0, 3  # exit statuses


def listening(host: str, port: int) -> socket.socket:
    """A listening socket. Raises: ArgumentError, if the address or port cannot be used.

    It tries again for some seconds if the port is in use, because the workers of a killed server release the port only
    when they notice.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    until = time.monotonic() + PORT_SECONDS
    while True:
        try:
            return socket.create_server((host, port), family=family, backlog=BACKLOG)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() >= until:
                raise _refused(host, port, error) from None
        time.sleep(AGAIN_SECONDS)


def _refused(host: str, port: int, error: OSError) -> ArgumentError:
    why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    text = f"the server cannot listen on {place}: {why}"
    allowed = "an address of this machine, and a port that is free"
    return ArgumentError(text, argument="host, port", value=place, allowed=allowed)


def serve(
    settings: Settings,
    listener: socket.socket,
    *,
    files: Files | None = None,
) -> int:
    """Serves until a signal stops the server. Then running requests have some seconds to end.

    Args:
        listener: from `listening`; all workers share it, and it is closed at the end.
        files: for TLS; None: no TLS.

    Returns: the exit status: 3, if this process can no longer use the store, or no worker ever became ready.
    """
    limits = within_descriptors(settings.limits)
    factory = Factory(replace(settings, limits=limits))
    listener = LimitedListener(listener.detach(), limits.connections + SURPLUS)
    config = Config(
        factory,
        factory=True,
        loop="asyncio",
        http=Protocol,
        **WEBSOCKETS,
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
    server = Server(config)
    with listener, _quietly(server):
        if settings.workers == 1:
            server.run(sockets=[listener])
            return TROUBLE if factory.troubles else DONE
        supervisor = ServerSupervisor(config, sockets=[listener])
        if server.should_exit:
            supervisor.should_exit.set()
        supervisor.run()
        return supervisor.status


def _tls(files: Files) -> dict[str, Any]:
    return {
        "ssl_certfile": files.certificate,
        "ssl_keyfile": files.key,
        "ssl_ca_certs": files.client_ca,
        "ssl_cert_reqs": ssl.CERT_NONE if files.client_ca is None else ssl.CERT_OPTIONAL,
        "ssl_context_factory": Renewing(files),
    }


class ServerSupervisor(Multiprocess):
    """Starts the workers, and replaces workers that die.

    It asks each worker through a pipe whether it is alive. It must close the worker's end of that pipe. Otherwise it
    would not notice a worker that was killed before it answered, and would wait for the whole `STARTED_SECONDS` without
    handling signals.

    If a worker cannot start, for example because a database cannot be reached, the supervisor tries again after a
    growing pause. The server ends only if no worker ever became ready.

    Attributes:
        status: the exit status of the server.
    """

    def __init__(self, config: Config, sockets: list[socket.socket]) -> None:
        super().__init__(config, sockets)
        self.status, self._was_ready = DONE, False
        self._places = [ProcessPlace() for _ in range(config.workers)]

    def keep_subprocess_alive(self) -> None:
        for number, one in enumerate(self.processes):
            if self.should_exit.is_set():
                return
            self._keep(number, one)

    def _keep(self, number: int, one: Process) -> None:
        while len(self._places) <= number:  # a signal has added a worker
            self._places.append(ProcessPlace())
        place = self._places[number]
        one.child_conn.close()  # the worker has its own copy by now; a second close does nothing
        if place.starts_at is None:
            if one.is_alive(timeout=STARTED_SECONDS):
                self._was_ready = self._was_ready or one.is_ready(timeout=STARTED_SECONDS)
                return
            one.kill()  # it may hang
            one.join()
            if one.exitcode == STARTUP_FAILURE and not self._was_ready:
                log.error("no worker can start, so the server ends")
                self.status = TROUBLE
                self.should_exit.set()
                return
            delay = place.ends()
            log.info("worker %s ended with status %s; a replacement starts in %.1f s", one.pid, one.exitcode, delay)
        if place.is_due and not self.should_exit.is_set():
            place.begins()
            self.processes[number] = Process(self.config, self.sockets)
            self.processes[number].start()


@contextlib.contextmanager
def _quietly(server: Server) -> Iterator[None]:
    """SIGTERM and Ctrl-C stop the server and are not raised again, so the process ends normally.

    uvicorn handles them while it runs, and sends them again at its end. Before and after that, this block handles them.
    """

    def done(*_: object) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, done) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
