"""The settings and limits of a server, which its workers inherit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from ..model.attributes import MESSAGE_LENGTH_MAX

MIB: Final = 1_048_576


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one worker. A request that exceeds one gets an error with the status in parentheses.

    Args:
        body: bytes of a message (413).
        json: bytes of a command, a definition or a login (413).
        bodies: bytes of all bodies that arrive at the same time (503).
        batch: bytes of an Arrow record batch (413).
        transfers: simultaneous Arrow streams in both directions (503).
        subscribers: simultaneous streams of events (503).
        head: bytes of a request's address and headers (431).
        head_seconds: for the head of a request to arrive; afterwards the connection is closed.
        body_seconds: for the body of a request to arrive (408).
        wait_seconds: the longest wait of a get (400).
        waits: gets that wait at the same time (503).
        log_ins: log-ins by password that wait for their turn (503).
        connections: open connections (503).
        user_connections: connections of one user to the store (503).
        leases: open leases of one user (429).
        listed: messages in a list (400).
        stop_seconds: for running requests to end when the server stops.
        session_seconds: the duration of a session.
    """

    body: int = MESSAGE_LENGTH_MAX
    json: int = MIB
    bodies: int = 256 * MIB
    batch: int = 64 * MIB
    transfers: int = 16
    subscribers: int = 500
    head: int = 32_768
    head_seconds: float = 30.0
    body_seconds: float = 120.0
    wait_seconds: float = 3_600.0
    waits: int = 1_000
    log_ins: int = 1_000
    connections: int = 2_000
    user_connections: int = 1_000
    leases: int = 100
    listed: int = 2_000
    stop_seconds: int = 30
    session_seconds: float = 7_200.0

    @property
    def call(self) -> int:
        """Bytes that the unanswered calls of one connection to the store may have; with more, the connection ends."""
        return self.body + self.json


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings that the workers of a server share. Its repr leaves out the secrets.

    Args:
        store: a path or a URL, as `inorder.connect` takes it.
        key: signs sessions; the server makes it at its start.
        token: the launch token; None: only users can log in.
        hosts: the names that clients may use for the server, in lower case, with IPv6 addresses in brackets.
        port: the port on which it listens.
        is_secure: whether it uses TLS.
        workers: the number of processes.
        connections: the number of connections to the store, for each worker.
        exits: the modules whose functions the server may call as exits of channels' receivers.
    """

    store: str = field(repr=False)
    key: bytes = field(repr=False)
    token: str | None = field(repr=False)
    hosts: frozenset[str] = frozenset({"localhost", "127.0.0.1", "[::1]"})
    port: int = 0
    is_secure: bool = False
    workers: int = 1
    connections: int = 8
    exits: tuple[str, ...] = ()
    limits: Limits = Limits()

    @property
    def cookie(self) -> str:
        """The name of the session cookie, with the port, because browsers send cookies to all ports of a host."""
        return f"LtpaToken2_{self.port}"
