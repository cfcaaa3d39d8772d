"""The settings of one server, and its bounds: a value that its workers inherit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from ..model.attributes import MESSAGE_LENGTH_MAX

MIB: Final = 1_048_576


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one worker. A request beyond them gets an answer that says so.

    Args:
        body: bytes of a message (413).
        json: bytes of a command, a definition or a login (413).
        bodies: bytes of all bodies that are being received at once (503).
        batch: bytes of an Arrow record batch (413).
        transfers: Arrow streams, both ways, at once (503).
        subscribers: streams of events at once (503).
        head: bytes of a request's address and headers (431).
        head_seconds: for the head of a request to arrive; then the connection is closed.
        body_seconds: for the body of a request to arrive (408).
        wait_seconds: that a get may wait (400).
        waits: gets that wait at once (503).
        log_ins: by password, that wait for their turn at once (503).
        connections: that are open at once (503).
        leases: of one user that are open at once (429).
        listed: messages that a list shows at most (400).
        stop_seconds: that a stop gives to requests that are under way.
        session_seconds: that a login lasts.
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
    leases: int = 100
    listed: int = 2_000
    stop_seconds: int = 30
    session_seconds: float = 7_200.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the workers of one server share. It has secrets, so its repr is without them.

    Args:
        store: a path or a URL, as `inorder.connect` takes it.
        key: signs sessions; made when the server starts, and inherited by its workers.
        token: the launch token; None: there is none, but users alone.
        hosts: the names by which clients may call the server, in small letters, IPv6 addresses in brackets.
        port: the one it listens at.
        is_secure: it speaks TLS.
        workers: how many processes serve.
        connections: to the store, of each worker.
    """

    store: str = field(repr=False)
    key: bytes = field(repr=False)
    token: str | None = field(repr=False)
    hosts: frozenset[str] = frozenset({"localhost", "127.0.0.1", "[::1]"})
    port: int = 0
    is_secure: bool = False
    workers: int = 1
    connections: int = 8
    limits: Limits = Limits()

    @property
    def cookie(self) -> str:
        """The name of the session cookie. Cookies know no ports, so it has the server's, as IBM's has a suffix."""
        return f"LtpaToken2_{self.port}"
