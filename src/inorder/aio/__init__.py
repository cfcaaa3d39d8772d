"""inorder for asyncio: the same calls, awaitable.

    async with inorder.aio.connect("orders.db") as qm:
        await qm.put("ORDERS", b"hello")
        async with qm.unit_of_work():
            message = await qm.get("ORDERS", wait=30)
            await qm.put("DONE", message.body)

**Each task behaves as if it had its own connection.** A connection of `inorder` serves one caller at a time and has
one unit of work, open queues, groups and cursors. A thousand tasks do not need a thousand connections, because most of
them hold nothing between two calls. So the `QueueManager` for tasks has a few connections, each with a thread that
makes its calls (`lanes.py`). A task borrows a connection for each call, and keeps it while it has a unit of work,
queue, group or loop open there. Meanwhile all its calls use that connection. Tasks that find no free connection wait
for one in order of arrival. When a task ends, its unit of work is backed out and everything it left open is closed,
except queues that the program still refers to.

**A unit of work belongs to its task.** The context (`contextvars`) shows that a task was started inside the block. Its
puts and gets are refused with UnitOfAnother, as between threads, because it would be unclear whether they belong to the
unit. The task may begin its own unit, or use `syncpoint=False`. So `asyncio.gather` and, before Python 3.12,
`asyncio.wait_for` do not work around a call in a unit; `wait=` and `asyncio.timeout` do.

**A waiting task uses no thread.** When a get finds nothing, its task returns the connection and waits in the loop, even
in a unit of work that has done nothing yet. One thread per queue with waiting tasks reports when a new try may succeed,
whichever process changed the queue. The tasks try in the order of R3.27 (`waiting.py`). A unit that holds something
waits in its connection, so that deadlocks of strict readers are found (B-31).

**A cancel revokes a call, or lets it finish.** A thread cannot be stopped in the middle of a call (`jobs.py`).

    not begun, or waiting   the call does not happen: CancelledError
    a get                   the get takes the message in a unit of work, which is committed when the task resumes with
                            the message. An earlier cancel backs the message out: CancelledError
    a stream                it is stopped between two reads or writes and backed out: CancelledError
    any other call, also a  it finishes, and the task receives its result; the task's next await raises
    get with `syncpoint`,   CancelledError
    the commit of a get
    the end of a block      it always finishes

So CancelledError means that the call has not happened, and a result means that it has. Each back out of a message
increases its backout count (A-40). For this, a get costs a second trip to the thread, and a unit of work.

**Threads.** The loop's own thread makes only brief calls that do not wait (`brief.py`). Arguments and results pass
between threads unchanged, with the context of the task, so traces continue. A `QueueManager` belongs to the loop in
which it was made; a child made by fork makes its own.
"""

from __future__ import annotations

from .calls import Accounts, Admin, Bulk, DeadLetters, Inspect
from .manager import QueueManager, connect
from .opened import Browsing, Entered, Group, GroupWriter, Lease, Queue, Replies, UnitOfWork

__all__ = [
    "Accounts",
    "Admin",
    "Browsing",
    "Bulk",
    "DeadLetters",
    "Entered",
    "Group",
    "GroupWriter",
    "Inspect",
    "Lease",
    "Queue",
    "QueueManager",
    "Replies",
    "UnitOfWork",
    "connect",
]
