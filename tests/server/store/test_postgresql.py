"""A server with a database: the connections of many remote programs share a few sessions (W-3)."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.helpers.support import Make
from tests.stores.postgresql.server import administrating
from tests.tiers import gate

import inorder
from inorder import Flags, NoMessageAvailable, QueueManager
from inorder.server.store import checking
from inorder.server.store.places import SESSIONS_MAX
from inorder.stores.postgresql.engine import PostgresEngine
from inorder.stores.postgresql.pipeline import StatementResult
from inorder.testing.remote import the_server

pytestmark = gate
CLIENTS = 20


@pytest.fixture
def url(postgresql: str, make: Make) -> str:
    one = make("postgresql")
    inorder.connect(one).close()
    return one


@pytest.fixture
def clients(url: str) -> Iterator[list[QueueManager]]:
    server = the_server(os.getpid())
    with server.serving(url) as token:
        made = [inorder.connect(server.url, token=token) for _ in range(CLIENTS)]
        made[0].create_queue("Q")
        yield made
        for one in made:
            one.internals.abandon()


def test_many_connections_share_a_few_sessions(clients: list[QueueManager], url: str) -> None:
    with administrating(url) as database:
        asked = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE %s"
        ((sessions,),) = database.execute(asked, ("%inorder serve%",)).fetchall()
    assert 1 <= sessions <= SESSIONS_MAX
    assert len(clients[0].inspect.connections()) >= CLIENTS


def test_each_connection_waits_gets_one_message_and_keeps_its_unit_of_work(clients: list[QueueManager]) -> None:
    got: list[bytes] = []

    def waits(qm: QueueManager) -> None:
        with qm.unit_of_work():
            got.append(qm.get("Q", wait=600).body)

    threads = [threading.Thread(target=waits, args=(one,)) for one in clients[1:]]
    for thread in threads:
        thread.start()
    for nth in range(1, CLIENTS):
        clients[0].put("Q", b"%d" % nth)
    for thread in threads:
        thread.join()
    assert sorted(map(int, got)) == list(range(1, CLIENTS))
    with pytest.raises(NoMessageAvailable):
        clients[0].get("Q")


@pytest.mark.parametrize("flags", [Flags(0), Flags.LAST_IN_GROUP])
def test_the_database_sends_no_more_bodies_than_the_answer_has(
    clients: list[QueueManager], monkeypatch: pytest.MonkeyPatch, flags: Flags
) -> None:
    monkeypatch.setattr(checking, "GOT_BYTES", 3_000)
    clients[0].put("Q", b"in a group", flags=flags)
    clients[0].put_many("Q", [b"x" * 1_000] * 50)
    clients[0].get("Q")
    sent: list[StatementResult] = []

    def counted(self: Any, sql: str, values: Any = ()) -> Any:
        sent.append(PostgresEngine.execute(self, sql, values))
        return sent[-1]

    monkeypatch.setattr(PostgresEngine, "run", counted)
    for in_unit in (False, True):
        assert len(clients[1].get_many("Q", 40, syncpoint=in_unit)) == 3
    assert max(one.count() for one in sent) == 3


def test_the_end_of_a_connection_backs_out_only_its_own_unit_of_work(clients: list[QueueManager]) -> None:
    first, second, third = clients[:3]
    for one in (first, second):
        one.unit_of_work().__enter__()
        one.put("Q", b"x")
    first.internals.abandon()
    second.commit()
    third.get("Q")
    with pytest.raises(NoMessageAvailable):
        third.get("Q")
