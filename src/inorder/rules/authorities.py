"""The table of authorities; everything that it does not allow is refused (2035).

An *authority* concerns a queue, or the queue manager, which is the queue ''. A *role* has authorities on every queue
and on the queue manager. The role `application` has none: its users have only those that were granted for single
queues, and none on the queue manager. A user with several roles has the authorities of all of them.

A server enforces these rules: a program that opens the store itself may do everything.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final, Literal, get_args

Authority = Literal["put", "get", "browse", "inquire", "set", "display", "alter", "clear", "control", "administer"]
Role = Literal["admin", "operator", "reader", "application"]

AUTHORITIES: Final[tuple[str, ...]] = get_args(Authority)
ROLES: Final[tuple[str, ...]] = get_args(Role)
MANAGER: Final = ""
"""Stands for the queue manager in place of a queue's name."""
LAUNCH_TOKEN: Final = "launch-token"
"""The name of the holder of a server's launch token in logs; no user can have this name."""

_ALL, _RUNNING, _ADMIN = (frozenset(one.split()) for one in ("admin operator reader", "admin operator", "admin"))

# Each authority: its meaning, the roles that have it on every queue, and whether it can be granted for single queues.
# fmt: off
TABLE: Final[Mapping[str, tuple[str, frozenset[str], bool]]] = MappingProxyType({
    "put":        ("put messages",                                     _RUNNING, True),
    "get":        ("get messages, also in units and leases",           _RUNNING, True),
    "browse":     ("see messages and leave them",                      _ALL,     True),
    "inquire":    ("see attributes and depth",                         _ALL,     True),
    "set":        ("inhibit puts and gets, switch triggers",           _RUNNING, True),
    "display":    ("see units, locks, their holders, and definitions", _ALL,     True),
    "alter":      ("alter a definition",                               _RUNNING, True),
    "clear":      ("remove messages unread",                           _RUNNING, True),
    "control":    ("settle units of others, run and stop channels",    _RUNNING, False),
    "administer": ("define, delete, manage users, read the log",       _ADMIN,   False),
})
# fmt: on
GRANTABLE: Final[tuple[str, ...]] = tuple(name for name, (_, _, granted) in TABLE.items() if granted)

Grants = Mapping[str, Collection[str]]
"""The authorities that are granted, by the name of a queue, or the beginning of a name and a `*`."""


def may(roles: Collection[str], grants: Grants, authority: str, queue: str) -> bool:
    """Whether a user with these roles and grants has this authority on a queue; '' is the queue manager."""
    if authority not in TABLE:
        return False
    _, holders, granted = TABLE[authority]
    if not holders.isdisjoint(roles):
        return True
    if queue == MANAGER or not granted or "application" not in roles:
        return False
    return any(authority in verbs and fits(pattern, queue) for pattern, verbs in grants.items())


def fits(pattern: str, queue: str) -> bool:
    """Whether the pattern of a grant covers this queue."""
    return queue.startswith(pattern[:-1]) if pattern.endswith("*") else queue == pattern
