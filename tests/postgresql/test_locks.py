"""Nobody waits for each other in a circle: queues are locked in order, whatever a verb comes to first."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest
from tests.postgresql.server import Server
from tests.support import Call, until

import inorder
from inorder import QueueManager

WAITS = "application_name LIKE 'inorder %: other' AND wait_event_type = 'Lock'"
QUEUES = "SELECT queue FROM inorder.tally ORDER BY queue"
LOCK = "SELECT queue FROM inorder.tally WHERE queue = %s FOR NO KEY UPDATE"


@pytest.fixture
def other(own_server: Server) -> Iterator[QueueManager]:
    with inorder.connect(own_server.url(), program="other") as qm:
        qm.create_queue("A")
        qm.create_queue("B")
        yield qm


def crosses(server: Server, call: Callable[[], object]) -> None:
    """A call that comes to B, then to A, while another session has A, and then wants B."""
    with psycopg.connect(server.url()) as session:
        first, second = (queue for (queue,) in session.execute(QUEUES))
        session.execute(LOCK, [first])
        waiting = Call(call)
        until(lambda: server.sql(f"SELECT count(*) FROM pg_stat_activity WHERE {WAITS}") == "1", "it waits for A")
        session.execute(LOCK, [second])
        session.commit()
    waiting.result()
    assert "deadlock" not in server.log()


def test_the_end_of_a_connection_locks_queues_in_order(own_server: Server, other: QueueManager) -> None:
    ending = other.connect(program="other")
    ending.open("A", input="shared")
    ending.put("B", b"never seen", syncpoint=True)
    crosses(own_server, ending.abandon)
    assert other.depth("B") == 0
    assert list(other.check()) == []


def test_a_change_of_a_queue_locks_all_in_order(own_server: Server, other: QueueManager) -> None:
    other.put("B", b"stays")
    crosses(own_server, lambda: other.alter_queue("B", order="commit"))
    assert (other.attributes("B").order, other.depth("B")) == ("commit", 1)
    assert list(other.check()) == []
