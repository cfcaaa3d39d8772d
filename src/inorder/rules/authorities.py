"""Who may do what, as a table; what it does not say is refused (2035).

An *authority* is what is asked of a queue, or of the queue manager, which is the queue ''. A *role* has some on every
queue and on the queue manager. The role `application` has none of its own: its user has those that were granted queue
by queue, and none on the queue manager. A user with several roles has what each of them gives.

These rules bind at a server: a program that opens the store itself may do everything.
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
"""Instead of a queue's name: the queue manager."""
LAUNCH_TOKEN: Final = "launch-token"
"""What logs and acts call the holder of a server's launch token; no user has this name."""

_ALL, _RUNNING, _ADMIN = (frozenset(one.split()) for one in ("admin operator reader", "admin operator", "admin"))

# What each authority is for, the roles that have it everywhere, and whether it can be granted for single queues.
# fmt: off
TABLE: Final[Mapping[str, tuple[str, frozenset[str], bool]]] = MappingProxyType({
    "put":        ("put messages",                                     _RUNNING, True),
    "get":        ("get messages, also in units and leases",           _RUNNING, True),
    "browse":     ("see messages and leave them",                      _ALL,     True),
    "inquire":    ("see attributes and depth",                         _ALL,     True),
    "set":        ("inhibit puts and gets, switch triggers",           _RUNNING, True),
    "display":    ("see who holds what, units, locks and definitions", _ALL,     True),
    "alter":      ("alter a definition",                               _RUNNING, True),
    "clear":      ("remove messages unread",                           _RUNNING, True),
    "control":    ("settle units of others, run and stop channels",    _RUNNING, False),
    "administer": ("define, delete, manage users, read the log",       _ADMIN,   False),
})
# fmt: on
GRANTABLE: Final[tuple[str, ...]] = tuple(name for name, (_, _, granted) in TABLE.items() if granted)

Grants = Mapping[str, Collection[str]]
"""By the name of a queue, or its beginning and a `*`, the authorities that are granted there."""


def may(roles: Collection[str], grants: Grants, authority: str, queue: str) -> bool:
    """Whether a user with these roles and grants may do this with a queue; '' is the queue manager."""
    if authority not in TABLE:
        return False
    _, holders, granted = TABLE[authority]
    if not holders.isdisjoint(roles):
        return True
    if queue == MANAGER or not granted or "application" not in roles:
        return False
    return any(authority in verbs and fits(pattern, queue) for pattern, verbs in grants.items())


def fits(pattern: str, queue: str) -> bool:
    """Whether a queue is one of those that a grant names."""
    return queue.startswith(pattern[:-1]) if pattern.endswith("*") else queue == pattern
