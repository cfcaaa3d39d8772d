"""Owners that were killed, disconnected by the server, or only stopped. Only the first two release what they held."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator

import pytest
from tests.helpers.support import Call, until
from tests.stores.postgresql.server import administrating, end_session, sessions
from tests.stores.sqlite.programs import Program
from tests.tiers import nightly

import inorder
from inorder import QueueManager
from inorder.errors import ConnectionBroken, NoMessageAvailable

GOT = b"got by the holder"


@pytest.fixture
def qm(url: str) -> Iterator[QueueManager]:
    with inorder.connect(url, program="other") as one:
        one.create_queue("A")
        one.create_queue("B")
        one.put("B", GOT)
        yield one


@pytest.fixture
def holder(child: Program) -> Program:
    """A process in a unit of work that has put on A and got the message on B."""
    child.run("qm.put('A', b'never seen', syncpoint=True); qm.get('B', syncpoint=True)")
    return child


def by_opening(_: QueueManager, url: str) -> bytes:
    with inorder.connect(url) as another:
        return another.get("B").body


def by_looking(qm: QueueManager, _: str) -> bytes:
    assert qm.inspect.units() == []
    return qm.get("B").body


@pytest.mark.parametrize(
    "notices", [lambda qm, _: qm.get("B").body, *(pytest.param(one, marks=nightly) for one in (by_opening, by_looking))]
)
def test_messages_held_by_a_killed_process_become_available(
    qm: QueueManager, url: str, holder: Program, notices: Callable[[QueueManager, str], bytes]
) -> None:
    with pytest.raises(NoMessageAvailable):
        qm.get("B")
    holder.kill()
    until(lambda: not sessions(url, "child 0"), "the server has noticed")
    assert notices(qm, url) == GOT
    assert (qm.depth("A"), qm.depth("B")) == (0, 0)
    assert list(qm.admin.check()) == []


def test_a_waiting_get_receives_the_message_of_a_killed_process(qm: QueueManager, holder: Program) -> None:
    call = Call(lambda: qm.get("B", wait=600))
    call.sleeps(qm)
    holder.kill()
    assert call.result().body == GOT


def test_a_session_that_the_server_has_ended_refuses_further_calls(qm: QueueManager, url: str) -> None:
    lost = inorder.connect(url, program="lost")
    with lost.unit_of_work() as unit:
        lost.put("A", b"never seen")
        assert lost.get("B").body == GOT
        end_session(url, "lost")
        for call in (unit.commit, lambda: lost.put("A", b"nor this"), unit.commit, lambda: lost.get("B")):
            with pytest.raises(ConnectionBroken):
                call()
        lost.close()  # the loss was reported before
    assert qm.get("B").body == GOT
    assert qm.depth("A") == 0
    assert list(qm.admin.check()) == []


def test_a_connection_that_was_dropped_ends_when_the_program_connects_again(qm: QueueManager, url: str) -> None:
    dropped = inorder.connect(url, program="dropped")
    assert dropped.get("B", syncpoint=True).body == GOT
    del dropped
    gc.collect()
    with inorder.connect(url, program="next"):
        until(lambda: not sessions(url, "dropped"), "the server has noticed")
    assert qm.get("B").body == GOT


def test_a_process_that_was_stopped_keeps_what_it_holds(
    qm: QueueManager, url: str, holder: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inorder.stores.postgresql.watch.LOOK_SECONDS", 0.05)
    os.kill(holder.process.pid or 0, signal.SIGSTOP)
    with pytest.raises(NoMessageAvailable):
        qm.get("B", wait=0.3)
    with inorder.connect(url) as another, pytest.raises(NoMessageAvailable):
        another.get("B")
    assert [unit.kind for unit in qm.inspect.units()] == ["session"]


def test_each_session_sets_the_tcp_keepalives_of_its_server(qm: QueueManager) -> None:
    link = qm._services.store.host._link  # type: ignore[attr-defined]
    asked = [f"current_setting('tcp_keepalives_{one}')" for one in ("idle", "interval", "count")]
    assert link.execute(f"SELECT {', '.join(asked)}").fetchall() == [("10", "5", "3")]


def test_connections_are_listed_with_their_host_and_start_time(qm: QueueManager, url: str, holder: Program) -> None:
    [seen] = [one for one in qm.inspect.connections() if one.program.name == "child 0"]
    assert (seen.process, seen.host) == (holder.process.pid, "127.0.0.1")
    assert [(one.queue, one.uses) for one in seen.opened] == [("A", "put"), ("B", "get")]
    with administrating(url) as connection:
        asked = "SELECT extract(epoch FROM backend_start)::float8 FROM pg_stat_activity WHERE application_name = %s"
        [(began,)] = connection.execute(asked, (f"inorder {holder.process.pid}: child 0",)).fetchall()
    assert seen.since == began
    holder.kill()
    until(lambda: not sessions(url, "child 0"), "the server has noticed")
    assert [one.program.name for one in qm.inspect.connections()] == ["other"]
