"""Our interface from several processes: one lease in all of them, and servers that are killed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
from tests.helpers.support import bodies, until
from tests.server.conftest import Running, Served, Start, on_both
from tests.server.described import BASE
from tests.tiers import gate, nightly

import inorder

Q1 = f"{BASE}/queues/Q1"


def asked(running: Running, operation: str, given: Any = None, **more: Any) -> httpx.Response:
    """A request by a connection of its own, so that any worker may have it."""
    with running.client() as client:
        return client.post(operation, **({} if given is None else {"json": given}), **more)


def await_workers(running: Running, count: int) -> None:
    """Asks until so many workers have answered: the system chooses who takes a connection, and some are ready late."""

    def look(number: int) -> int:
        del number
        with running.client() as client:
            return client.get(f"{BASE}/queues").status_code

    def have_answered() -> bool:
        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(look, range(24))) == {200}
        return len(running.workers()) == count

    until(have_answered, f"{count} workers answer")


def begun(running: Running, seconds: int) -> dict[str, str]:
    lease = asked(running, f"{BASE}/leases", params={"seconds": seconds})
    assert lease.status_code == 201, lease.text
    return {"Inorder-Lease": lease.json()["token"]}


@nightly
@on_both
def test_any_worker_serves_any_request_of_a_lease(start: Start, served: Served) -> None:
    running = start("--workers", "2")
    await_workers(running, 2)
    with inorder.connect(served.store) as qm, ThreadPoolExecutor(9) as pool:
        qm.put("Q1", b"first")
        lease = begun(running, 600)

        def put(number: int) -> int:
            return asked(running, f"{Q1}/put", {"body": str(number)}, headers=lease).status_code

        assert asked(running, f"{Q1}/get", headers=lease).json()["body"] == "first"
        waiting = pool.submit(asked, running, f"{Q1}/get_many", params={"wait": 60})
        assert set(pool.map(put, range(60))) == {201}
        assert bodies(qm, "Q1") == []
        assert asked(running, f"{BASE}/lease/commit", headers=lease).status_code == 204
        got = [one["body"] for one in waiting.result().json()["messages"]]
        assert sorted(map(int, got + [one.decode() for one in bodies(qm, "Q1")])) == list(range(60))
    assert lease["Inorder-Lease"] not in running.log.read_text()


@gate
def test_a_kill_in_the_middle_of_a_lease_loses_nothing(start: Start, served: Served) -> None:
    """Another server goes on with the lease where the killed one was; an acknowledged put is in it."""
    with inorder.connect(served.store) as qm:
        qm.put("Q1", b"a")
        qm.put("Q1", b"b")
    running = start()
    lease = begun(running, 600)
    assert asked(running, f"{Q1}/get", headers=lease).json()["body"] == "a"
    assert asked(running, f"{Q1}/put", {"body": "c"}, headers=lease).status_code == 201
    running.kill()
    with inorder.connect(served.store) as qm:
        assert bodies(qm, "Q1") == [b"b"], "neither committed nor backed out by the kill"
        other = start()
        assert asked(other, f"{Q1}/put", {"body": "d"}, headers=lease).status_code == 201
        assert asked(other, f"{BASE}/lease/commit", headers=lease).status_code == 204
        assert bodies(qm, "Q1") == [b"b", b"c", b"d"]
        other.kill()
        assert bodies(qm, "Q1") == [b"b", b"c", b"d"], "what was answered 204 is committed"
        assert qm.admin.check() == []
