"""TCP sockets: notices vanished peers, and checks for readable data and loopback addresses."""

from __future__ import annotations

import ipaddress
import select
import socket
from typing import Final

# A vanished peer is noticed within 30 s, whether or not data was on its way: a silent one after 10 s and three probes,
# together 25 s; one that does not acknowledge data also after 25 s.
PROBE_AFTER_SECONDS: Final = 10
PROBE_EVERY_SECONDS: Final = 5
PROBES: Final = 3
UNACKNOWLEDGED_MS: Final = 25_000


def watch_peer(one: socket.socket) -> None:
    """Makes the kernel probe a silent peer and limit the time for acknowledgements, and send short data at once.

    The kernel of a peer whose process is stopped or busy still answers, so only a machine or a network that has
    vanished ends a connection. But if that process does not read its full buffers, the limit applies to it, too.
    """
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", PROBE_AFTER_SECONDS),
        ("TCP_KEEPINTVL", PROBE_EVERY_SECONDS),
        ("TCP_KEEPCNT", PROBES),
        ("TCP_USER_TIMEOUT", UNACKNOWLEDGED_MS),
    ):
        if hasattr(socket, name):  # not on all systems
            one.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def has_come(one: socket.socket) -> bool:
    """Whether a socket has something to read, or has ended."""
    if not hasattr(select, "poll"):  # poll takes descriptors of any number
        return bool(select.select([one], [], [], 0)[0])
    found = select.poll()
    found.register(one, select.POLLIN)
    return bool(found.poll(0))


def is_loopback(host: str) -> bool:
    """Whether an address can be reached only from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
