"""What a contestant can do: the verbs of a queue, each durable before it returns.

A system overrides the verbs that it has; the others raise `Cannot`, and the report says so. All of them are listed in
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
STOCK = 1000  # what stays on a queue that is got from, and the most that is put on it at a time


class System(ABC):
    """One queue of one system, empty when opened. The folder is for embedded ones, the port for servers."""

    name: ClassVar[str]
    role: ClassVar[Role] = "peer"
    is_server: ClassVar[bool] = False

    @abstractmethod
    def __init__(self, folder: Path, port: int) -> None: ...

    @abstractmethod
    def settings(self) -> str:
        """Version, and what makes an acknowledged message durable, as the system itself tells it where it can."""

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def put(self, body: bytes) -> None:
        """Puts one message."""

    @abstractmethod
    def get(self) -> None:
        """Takes the first message away."""

    def put_many(self, bodies: Sequence[bytes]) -> None:
        """Puts messages in one transaction."""
        raise Cannot("no transaction of several puts")

    def get_many(self, count: int) -> None:
        """Takes the first `count` messages away in one step: who dies after it has lost them."""
        raise Cannot("no get of several messages")

    def get_many_in_unit(self, count: int) -> None:
        """Claims the first `count` messages, then takes them away: who dies in between has lost nothing."""
        raise Cannot("no unit of work of several gets")

    def get_put(self, body: bytes) -> None:
        """Takes the first message away and puts one, both or neither."""
        raise Cannot("no unit of work of a get and a put")

    def stock_groups(self, groups: int, members: int) -> None:
        """Puts complete groups, interleaved: all first members, then all second ones."""
        raise Cannot("no message groups")

    def get_group(self) -> None:
        """Takes the next complete group away, in logical order, in one unit of work."""
        raise Cannot("no message groups")

    @abstractmethod
    def empty(self) -> None:
        """Takes everything away, however fast that goes."""

    def stock(self, count: int) -> None:
        """Puts so many messages, however fast that goes."""
        for start in range(0, count, FILL_BLOCK):
            self.put_many([BODY] * min(FILL_BLOCK, count - start))
