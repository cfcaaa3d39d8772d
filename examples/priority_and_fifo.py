"""Priority and arrival: the order of delivery, and the effect of attributes that are changed midway.

    python examples/priority_and_fifo.py

A queue delivers by priority, or first in, first out. Its attributes give each message its place when it arrives, and
the message keeps this place. So a change does not move messages that are already on the queue:

* `delivery="fifo"` places each new message as if its priority were `default_priority`. The message keeps its own
  priority.
* After a change of `delivery`, old messages keep their places, and new ones are placed among them.
* After a change of `default_priority`, a fifo queue is no longer first in, first out: messages that were placed at the
  higher priority are delivered first.

`inorder.connect()` keeps everything in memory; with the path of a file the results are the same.

Shown: seed 001; lifecycle B-4; mq-semantics R4.10, R4.11.
"""

from __future__ import annotations

import inorder


def put(qm: inorder.QueueManager, queue: str, name: str, priority: int) -> None:
    """Puts one message, and prints it."""
    qm.put(queue, name.encode(), priority=priority)
    print(f"  put {name}, priority {priority}")


def show_attributes(qm: inorder.QueueManager, queue: str) -> None:
    """Prints the two attributes that decide where the next message is placed."""
    now = qm.attributes(queue)
    print(f"  the queue is now delivery={now.delivery}, default_priority={now.default_priority}")


def get_all(qm: inorder.QueueManager, queue: str) -> None:
    """Empties the queue, and prints the messages in their order, each with the priority in its descriptor."""
    got = qm.get_many(queue, qm.depth(queue))
    print(f"  got {', '.join(f'{message.body.decode()} ({message.priority})' for message in got)}")


def by_priority(qm: inorder.QueueManager) -> None:
    """Delivery by priority, which is the default."""
    print("By priority: the highest first, and within a priority the first to arrive")
    qm.create_queue("BY.PRIORITY")
    for name, priority in (("a", 3), ("b", 9), ("c", 3), ("d", 0)):
        put(qm, "BY.PRIORITY", name, priority)
    get_all(qm, "BY.PRIORITY")


def fifo(qm: inorder.QueueManager) -> None:
    """Delivery first in, first out."""
    print("First in, first out, for any priority, which the message keeps")
    qm.create_queue("FIFO", delivery="fifo", default_priority=4)
    for name, priority in (("a", 3), ("b", 9), ("c", 0)):
        put(qm, "FIFO", name, priority)
    get_all(qm, "FIFO")


def from_priority_to_fifo(qm: inorder.QueueManager) -> None:
    """A change to fifo does not move the old messages."""
    print("Changed midway to fifo: e and f are placed at the default priority 4")
    qm.create_queue("MIDWAY", default_priority=4)
    for name, priority in (("a", 3), ("b", 9), ("c", 4), ("d", 0)):
        put(qm, "MIDWAY", name, priority)
    qm.alter_queue("MIDWAY", delivery="fifo")
    show_attributes(qm, "MIDWAY")
    for name, priority in (("e", 9), ("f", 0)):
        put(qm, "MIDWAY", name, priority)
    get_all(qm, "MIDWAY")


def from_fifo_to_priority(qm: inorder.QueueManager) -> None:
    """After a change to priority, a and b stay at the default priority that was in force when they arrived."""
    print("Changed midway to priority: a and b stay at 4, not at their own priorities")
    qm.create_queue("AND.BACK", delivery="fifo", default_priority=4)
    for name, priority in (("a", 9), ("b", 0)):
        put(qm, "AND.BACK", name, priority)
    qm.alter_queue("AND.BACK", delivery="priority")
    show_attributes(qm, "AND.BACK")
    for name, priority in (("c", 5), ("d", 4), ("e", 1)):
        put(qm, "AND.BACK", name, priority)
    get_all(qm, "AND.BACK")


def default_priority_changed(qm: inorder.QueueManager) -> None:
    """A changed default priority breaks first in, first out: the manual warns of this."""
    print("A fifo queue whose default priority is changed: the second message in is the first out")
    qm.create_queue("SURPRISE", delivery="fifo", default_priority=0)
    put(qm, "SURPRISE", "a", 7)
    qm.alter_queue("SURPRISE", default_priority=5)
    show_attributes(qm, "SURPRISE")
    put(qm, "SURPRISE", "b", 1)
    get_all(qm, "SURPRISE")


def main() -> None:
    """Runs the five parts, each on its own queue."""
    with inorder.connect() as qm:
        by_priority(qm)
        for another in (fifo, from_priority_to_fifo, from_fifo_to_priority, default_priority_changed):
            print()
            another(qm)


if __name__ == "__main__":
    main()
