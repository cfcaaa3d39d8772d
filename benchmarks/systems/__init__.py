"""The abilities of a contestant: the verbs of a queue, each durable before it returns.

A system overrides the verbs that it has; the others raise `Cannot`, which the report shows. All systems are listed in
`all.py`. A server takes part if the site has a port of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from benchmarks.harness import Cannot, Role

BODY = b"0123456789abcdef" * 64  # 1 KiB
BLOCK = 100
FILL_BLOCK = 1000
STOCK = 1000  # the stock of a queue for gets, and the most that is put on it at a time


class System(ABC):
    """One queue of one system, empty when opened. The folder is for embedded systems, the port for servers."""

    name: ClassVar[str]
    role: ClassVar[Role] = "peer"
    is_server: ClassVar[bool] = False

    @abstractmethod
    def __init__(self, folder: Path, port: int) -> None: ...

    @abstractmethod
    def settings(self) -> str:
        """The version, and the durability of acknowledged messages, if possible as the system reports it."""

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def put(self, body: bytes) -> None:
        """Puts one message."""

    @abstractmethod
    def get(self) -> None:
        """Removes the first message."""

    def put_many(self, bodies: Sequence[bytes]) -> None:
        """Puts messages in one transaction."""
        raise Cannot("no transaction of several puts")

    def get_many(self, count: int) -> None:
        """Removes the first `count` messages in one step; a reader that dies afterwards has lost them."""
        raise Cannot("no get of several messages")

    def get_many_in_unit(self, count: int) -> None:
        """Claims the first `count` messages, then removes them; a reader that dies in between loses nothing."""
        raise Cannot("no unit of work of several gets")

    def get_put(self, body: bytes) -> None:
        """Removes the first message and puts one, both or neither."""
        raise Cannot("no unit of work of a get and a put")

    def stock_groups(self, groups: int, members: int) -> None:
        """Puts complete groups, interleaved: all first members, then all second ones."""
        raise Cannot("no message groups")

    def get_group(self) -> None:
        """Removes the next complete group, in logical order, in one unit of work."""
        raise Cannot("no message groups")

    @abstractmethod
    def empty(self) -> None:
        """Removes everything; this is not timed."""

    def stock(self, count: int) -> None:
        """Puts this many messages; this is not timed."""
        for start in range(0, count, FILL_BLOCK):
            self.put_many([BODY] * min(FILL_BLOCK, count - start))
