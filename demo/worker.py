"""A process of the demonstration: it has a connection of its own to the file, and does as it is asked.

It is driven by lines of JSON on its input, `[act, arguments]`, and answers each with a line on its output. When its
input ends it ends, also in the middle of a call that waits: so none is left when the demonstration is killed.
"""

from __future__ import annotations

import json
import os
import queue as queues
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from inorder.client.manager import QueueManager, connect
from inorder.client.queue import Queue
from inorder.errors import NoMessageAvailable, OrderPending
from inorder.model.message import Message
from inorder.model.options import FOREVER, AskedOrder

END = "."  # the name of a message after which `follow` ends
ENDING_SECONDS = 2.0


def drain(read: Callable[[], Message]) -> Iterator[Message]:
    """Reads until there is none, or until order withholds the next."""
    while True:
        try:
            yield read()
        except (NoMessageAvailable, OrderPending):
            return


def names(messages: Iterable[Message]) -> list[str]:
    """The bodies as text."""
    return [message.body.decode() for message in messages]


class DemoWorker:
    """The acts of a process; each is a method, and what it returns is the answer."""

    def __init__(self, qm: QueueManager) -> None:
        self._qm = qm
        self._browsers: dict[str, Queue] = {}

    def put(self, queues: list[str], name: str, group: str = "", **keywords: Any) -> list[Any]:
        """Puts one message on each queue; the unique id of the last."""
        group_id = group.encode()
        results = [self._qm.put(queue, name.encode(), group_id=group_id, **keywords) for queue in queues]
        return list(results[-1].uid)

    def commit(self) -> None:
        self._qm.commit()

    def browse(self, queue: str, **keywords: Any) -> list[list[str]]:
        """Name, group and place in it, of each message."""
        return [
            [message.body.decode(), message.group_id.rstrip(b"\0").decode(), describe(message)]
            for message in self._qm.browse(queue, **keywords)
        ]

    def drain(self, queue: str, **keywords: Any) -> list[str]:
        """Gets all that can be got."""
        return names(drain(lambda: self._qm.get(queue, **keywords)))

    def groups(self, queue: str) -> list[list[str]]:
        """Gets all whole groups."""
        groups = []
        while True:
            try:
                groups.append(names(self._qm.get_group(queue)))
            except NoMessageAvailable:
                return groups

    def browse_on(self, queue: str, read_order: AskedOrder) -> list[str]:
        """Browses on from where the last call stopped."""
        if queue not in self._browsers:
            self._browsers[queue] = self._qm.open(queue, browse=True, read_order=read_order)
        return names(drain(self._browsers[queue].browse_next))

    def take(self, queue: str, **keywords: Any) -> list[Any]:
        """Waits for one message; its name and how often it was backed out."""
        message = self._qm.get(queue, wait=FOREVER, **keywords)
        return [message.body.decode(), message.backout_count]

    def follow(self, queue: str, read_order: AskedOrder) -> str:
        """Waits for messages, all the time, and tells each, until one is called END."""
        while True:
            name = self._qm.get(queue, wait=FOREVER, read_order=read_order).body.decode()
            if name == END:
                return name
            tell(name)


def describe(message: Message) -> str:
    """A message in words: group, sequence number, segment."""
    group = message.group_id.rstrip(b"\0").decode()
    if not group:
        return "in no group"
    last = ", last" if message.group_status == "last" else ""
    segment = "" if message.segment_status == "no" else f", offset {message.offset}"
    return f"group {group}, {message.sequence_number}{last}{segment}"


def tell(answer: object) -> None:
    """One answer."""
    print(json.dumps(answer), flush=True)


def listen(told: queues.SimpleQueue[str | None]) -> None:
    """Passes on what comes to this process; None at the end."""
    for line in sys.stdin:
        told.put(line)
    told.put(None)
    time.sleep(ENDING_SECONDS)
    os._exit(1)  # a call still waits, for what nobody will bring


def main() -> None:
    """Does as it is asked, until its input ends."""
    path, program = sys.argv[1:]
    told: queues.SimpleQueue[str | None] = queues.SimpleQueue()
    threading.Thread(target=listen, args=(told,), daemon=True).start()
    with connect(path, program=program) as qm:
        worker = DemoWorker(qm)
        while (line := told.get()) is not None:
            act, keywords = json.loads(line)
            tell(getattr(worker, act)(**keywords))


if __name__ == "__main__":
    main()
