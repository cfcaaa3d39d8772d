"""Bulk transfer over HTTP with servers in separate processes, kills and cut connections."""

from __future__ import annotations

import threading

import pytest
from tests.helpers.support import until
from tests.server.conftest import Running, Served, Start
from tests.server.test_api_lost import Asked

import inorder

pytest.importorskip("pyarrow", reason="needs the extra inorder[arrow]")
from tests.server.arrows import batch_of, keyed, stream_of

pytestmark = pytest.mark.nightly

Q = "/inorder/v1/queues/Q1"
BODIES = [b"%d" % number + bytes(1024) for number in range(20_000)]
STREAM = stream_of(*(batch_of(BODIES[at : at + 1000]) for at in range(0, len(BODIES), 1000)))
HALF = len(STREAM) // 2


def staged(served: Served) -> int:
    """The number of staged rows."""
    with inorder.connect(served.store) as qm:
        return sum(one.puts for one in qm.inspect.units() if one.kind == "staging")


def waited(served: Served, *, is_there: bool) -> None:
    """Waits until rows are staged, or until none are."""
    until(lambda: (staged(served) > 0) == is_there, "what is staged comes, or goes")


def half(running: Running) -> Asked:
    """A request of which half the body was sent."""
    return Asked(running, f"{Q}/arrow", STREAM[:HALF], len(STREAM), **keyed("k"))


def put(running: Running, key: str = "k") -> dict[str, int]:
    with running.client() as client:
        answer = client.post(f"{Q}/arrow", content=STREAM, headers=keyed(key))
    assert answer.status_code == 200, answer.text
    record: dict[str, int] = answer.json()
    return record


def test_an_interrupted_upload_leaves_nothing_and_can_be_repeated(start: Start, served: Served) -> None:
    running = start()
    cut = half(running)
    waited(served, is_there=True)
    cut.is_cut()
    waited(served, is_there=False)
    with inorder.connect(served.store) as qm:
        assert qm.depth("Q1") == 0
    assert [put(running) for _ in range(2)] == [{"messages": 20_000}] * 2
    with inorder.connect(served.store) as qm:
        assert qm.depth("Q1") == 20_000
    assert "Traceback" not in running.log.read_text()


def test_a_server_killed_during_a_stream_has_put_nothing_and_a_key_puts_once(start: Start, served: Served) -> None:
    running = start()
    cut = half(running)
    waited(served, is_there=True)
    running.kill()
    cut.is_cut()
    with inorder.connect(served.store) as qm:
        assert (qm.depth("Q1"), list(qm.browse("Q1"))) == (0, [])
    again = start()
    assert [put(again) for _ in range(2)] == [{"messages": 20_000}] * 2
    again.kill()
    assert put(start()) == {"messages": 20_000}, "it was acknowledged, so it is known"
    with inorder.connect(served.store) as qm:
        assert [message.body for message in qm.browse("Q1")] == BODIES


def test_concurrent_clients_with_the_same_key_put_once(start: Start, served: Served) -> None:
    running = start("--workers", "2")
    answers: list[dict[str, int]] = []
    clients = [threading.Thread(target=lambda: answers.append(put(running))) for _ in range(4)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    assert answers == [{"messages": 20_000}] * 4
    with inorder.connect(served.store) as qm:
        assert (qm.depth("Q1"), [one for one in qm.inspect.units() if one.kind == "staging"]) == (20_000, [])
