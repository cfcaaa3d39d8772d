"""inorder for asyncio: the same calls, awaitable.

    async with inorder.aio.connect("orders.db") as qm:
        await qm.put("ORDERS", b"hello")
        async with qm.unit_of_work():
            message = await qm.get("ORDERS", wait=30)
            await qm.put("DONE", message.body)

**A task behaves as if it had a connection of its own.** A connection of `inorder` is for one caller at a time and has
one unit of work, open queues, groups, cursors. A thousand tasks cannot have a thousand connections, and need not:
between two calls most of them hold nothing. So a `QueueManager` for tasks has a few connections, each with a thread
that makes its calls (`lanes.py`). A task has one of them for the time of a call, and keeps it as long as that call has
left something open there: a unit of work, a queue, a group, a loop. Meanwhile all its calls go to that connection, and
so behave as those of one connection do. When nothing is open there any more the next task has it. Tasks that find none
free are given one in the order in which they came. What a task leaves open when it ends is backed out and closed, but
for a queue that the program still has.

**A unit of work belongs to its task.** A task that was started inside the block is recognised by its context
(`contextvars`): its puts and gets would be neither surely in the unit nor surely outside, and are refused with
UnitOfAnother, as with connections. It may begin a unit of its own, or say `syncpoint=False`. So `asyncio.gather` and,
before Python 3.12, `asyncio.wait_for` do not work around a call in a unit; `wait=` and `asyncio.timeout` do.

**A waiting task has no thread.** A get that finds nothing gives its connection back, and its task waits in the loop,
also in a unit of work that has done nothing yet. One thread for each queue that is waited for says when a look may be
worth it, whichever process has changed the queue, and the tasks look in the order of R3.27 (`waiting.py`). A unit that
holds something waits in its connection, so that deadlocks of strict readers are found (B-31).

**A cancel finds a call not begun, or lets it end.** A thread cannot be stopped in the middle of a call (`jobs.py`).

    not begun, or waiting   it has not happened: CancelledError
    a get                   it is taken in a unit of work, which is committed when the task goes on with the message. A
                            cancel before that backs the message out to its place: CancelledError
    a stream                it is stopped between two reads or writes and backed out: CancelledError
    any other call, the     it ends, and its answer is returned as if there had been no cancel; CancelledError comes
    commit of a get         where the task awaits something next
    the end of a block      it is always done

So a task that gets CancelledError knows that the call has not happened, and one that gets an answer knows that it has.
A message that was backed out has one more in its backout count: every return of a got message counts (A-40). A get
costs a second trip to the thread and a unit of work for this.

**Threads.** The loop's own is used for nothing that may take long: for brief calls that wait for nobody (`brief.py`).
Values that a call is given, and what it returns, pass from thread to thread as they are, and the context of the task
with them: so traces go on. A `QueueManager` belongs to the loop in which it was made; a child made by fork makes its
own.
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
