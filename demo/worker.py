"""A process of the demonstration, with its own connection to the file.

It reads actions as lines of JSON, `[act, arguments]`, from its input, and answers each with a line on its output. It
ends with its input, even during a waiting call, so no process is left when the demonstration is killed.
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
    """Reads until the queue has no message, or order withholds the next one."""
    while True:
        try:
            yield read()
        except (NoMessageAvailable, OrderPending):
            return


def names(messages: Iterable[Message]) -> list[str]:
    """Returns the bodies as text."""
    return [message.body.decode() for message in messages]


class DemoWorker:
    """The actions of a process: each is a method, whose result is the answer."""

    def __init__(self, qm: QueueManager) -> None:
        self._qm = qm
        self._browsers: dict[str, Queue] = {}

    def put(self, queues: list[str], name: str, group: str = "", **keywords: Any) -> list[Any]:
        """Puts one message on each queue; returns the unique id of the last."""
        group_id = group.encode()
        results = [self._qm.put(queue, name.encode(), group_id=group_id, **keywords) for queue in queues]
        return list(results[-1].uid)

    def commit(self) -> None:
        self._qm.commit()

    def browse(self, queue: str, **keywords: Any) -> list[list[str]]:
        """Returns name, group and position in the group of each message."""
        return [
            [message.body.decode(), message.group_id.rstrip(b"\0").decode(), describe(message)]
            for message in self._qm.browse(queue, **keywords)
        ]

    def drain(self, queue: str, **keywords: Any) -> list[str]:
        """Gets all available messages."""
        return names(drain(lambda: self._qm.get(queue, **keywords)))

    def groups(self, queue: str) -> list[list[str]]:
        """Gets all complete groups."""
        groups = []
        while True:
            try:
                groups.append(names(self._qm.get_group(queue)))
            except NoMessageAvailable:
                return groups

    def browse_on(self, queue: str, read_order: AskedOrder) -> list[str]:
        """Continues the browse after the last call."""
        if queue not in self._browsers:
            self._browsers[queue] = self._qm.open(queue, browse=True, read_order=read_order)
        return names(drain(self._browsers[queue].browse_next))

    def take(self, queue: str, **keywords: Any) -> list[Any]:
        """Waits for one message; returns its name and backout count."""
        message = self._qm.get(queue, wait=FOREVER, **keywords)
        return [message.body.decode(), message.backout_count]

    def follow(self, queue: str, read_order: AskedOrder) -> str:
        """Waits for messages and reports each, until one is named END."""
        while True:
            name = self._qm.get(queue, wait=FOREVER, read_order=read_order).body.decode()
            if name == END:
                return name
            tell(name)


def describe(message: Message) -> str:
    """Returns a message's group, sequence number and segment as text."""
    group = message.group_id.rstrip(b"\0").decode()
    if not group:
        return "in no group"
    last = ", last" if message.group_status == "last" else ""
    segment = "" if message.segment_status == "no" else f", offset {message.offset}"
    return f"group {group}, {message.sequence_number}{last}{segment}"


def tell(answer: object) -> None:
    """Prints one answer."""
    print(json.dumps(answer), flush=True)


def listen(told: queues.SimpleQueue[str | None]) -> None:
    """Passes on the lines of the input, and None at the end."""
    for line in sys.stdin:
        told.put(line)
    told.put(None)
    time.sleep(ENDING_SECONDS)
    os._exit(1)  # a call may still wait for a message that will never come


def main() -> None:
    """Runs the actions until the input ends."""
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
