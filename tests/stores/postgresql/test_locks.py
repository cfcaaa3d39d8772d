"""Nobody waits for each other in a circle: queues are locked in order, whatever a verb comes to first.

And of each queue that it came to, a call knows how it is before it is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import psycopg
import pytest
from tests.helpers.support import Call, bodies, until
from tests.stores.postgresql.conftest import Connect
from tests.stores.postgresql.server import Server, waits_for_a_lock

import inorder
from inorder import QueueManager
from inorder.errors import QueueManagerStopping
from inorder.stores.engine import settling, store
from inorder.stores.engine.operation import Operation
from inorder.stores.engine.process import OpenHandle, OpenStore
from inorder.stores.engine.queue import LocalQueue

QUEUES = "SELECT queue FROM inorder.tally ORDER BY queue"
LOCK = "SELECT queue FROM inorder.tally WHERE queue = %s FOR NO KEY UPDATE"


@pytest.fixture(scope="module")
def server(postgresql: str) -> Iterator[Server]:
    with Server() as one:
        yield one


@pytest.fixture
def other(server: Server) -> Iterator[QueueManager]:
    with inorder.connect(server.url(), program="other") as qm:
        qm.create_queue("A")
        qm.create_queue("B")
        yield qm
        for queue in ("A", "B"):
            qm.close_queue(queue)
            qm.delete_queue(queue, purge=True)


def crosses(server: Server, call: Callable[[], object]) -> None:
    """A call that comes to B, then to A, while another session has A, and then wants B."""
    with psycopg.connect(server.url()) as session:
        first, second = (queue for (queue,) in session.execute(QUEUES))
        session.execute(LOCK, [first])
        waiting = Call(call)
        until(lambda: waits_for_a_lock(server.url(), "other"), "it waits for A")
        session.execute(LOCK, [second])
        session.commit()
    waiting.result()
    assert "deadlock" not in server.log()


def test_the_end_of_a_connection_locks_queues_in_order(server: Server, other: QueueManager) -> None:
    ending = other.connect(program="other")
    ending.open("A", input="shared")
    ending.put("B", b"never seen", syncpoint=True)
    crosses(server, ending.internals.abandon)
    assert other.depth("B") == 0
    assert list(other.admin.check()) == []


def test_a_change_of_the_queue_manager_locks_all_in_order(server: Server, other: QueueManager) -> None:
    other.put("B", b"stays")
    crosses(server, lambda: other.admin.alter_manager(description="changed"))
    assert (other.admin.manager_attributes().description, other.depth("B")) == ("changed", 1)
    assert list(other.admin.check()) == []


def test_a_put_waits_for_what_the_server_says_of_each_queue_that_its_call_came_to(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = connect("one"), connect("other")
    for queue in ("A", "B"):
        one.create_queue(queue)
    for queue in ("A", "B") * 3:
        one.put(queue, b"x")
    other.alter_queue("A", max_depth=7)
    (number,) = (handle.queue for handle in cast("OpenStore", one._store).handles.values() if handle.name == "A")
    came, seen = settling.tidied, list[int]()

    def come(verb: Operation, handle: OpenHandle) -> LocalQueue:
        seen.append(verb.queue(number).attributes.max_depth)
        return came(verb, handle)

    monkeypatch.setattr(store, "tidied", come)
    one.put("B", b"y")
    assert seen[-1] == 7, "A is not as it was taken to be, so the call runs again"
    assert bodies(other, "B") == [b"x", b"x", b"x", b"y"]


@pytest.mark.parametrize("values", [{}, {"expiry": 3600.0}], ids=["a plain queue", "a queue with messages that expire"])
def test_a_queue_manager_that_another_program_has_stopped_refuses_puts_and_gets(
    qm: QueueManager, connect: Connect, values: dict[str, float]
) -> None:
    queue = qm.open("Q", input="shared", output=True)
    for _ in range(2):
        queue.put(b"", **values)  # type: ignore[arg-type]
    connect("operator").admin.stop()
    with pytest.raises(QueueManagerStopping):
        queue.put(b"")
    with pytest.raises(QueueManagerStopping):
        queue.get()
