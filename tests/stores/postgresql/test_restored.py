"""A store that was restored while programs had it open: another one is at its address then."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress

import pytest
from tests.helpers.support import LIMIT_SECONDS, Call, until
from tests.helpers.working import Heard
from tests.stores.postgresql.conftest import Connect
from tests.stores.postgresql.server import administrating

import inorder
from inorder.errors import StoreError
from inorder.stores.postgresql import drop, parse
from inorder.work import Tasks, Worker
from inorder.work.processes import STORE_LOST, serve

Restore = Callable[[], None]


@pytest.fixture
def restore(url: str, postgresql: str) -> Restore:
    """Puts a store with the same queue in the place of the one at the address, as a restored one is, in one moment."""
    name = parse(url).schema
    with inorder.connect(f"{postgresql}?schema={name}_new") as qm:
        qm.create_queue("Q")

    def act() -> None:
        gone = f"gone_{uuid.uuid4().hex}"
        with administrating(postgresql, autocommit=False) as admin:
            admin.execute(f"ALTER SCHEMA {name} RENAME TO {gone}".encode())
            admin.execute(f"ALTER SCHEMA {name}_new RENAME TO {name}".encode())
            admin.commit()
        with administrating(postgresql) as admin:
            admin.execute(f"DROP SCHEMA {gone} CASCADE".encode())

    return act


def test_a_program_that_looks_is_told(connect: Connect, restore: Restore) -> None:
    qm = connect("test")
    qm.create_queue("Q")
    qm.admin.check_store()
    restore()
    with pytest.raises(StoreError, match="restored") as raised:
        qm.admin.check_store()
    assert raised.value.must_reopen


def test_a_program_that_looks_is_told_that_nothing_is_there(url: str) -> None:
    qm = inorder.connect(url)
    drop(parse(url))
    with pytest.raises(StoreError, match="dropped") as raised:
        qm.admin.check_store()
    assert raised.value.must_reopen
    with suppress(StoreError):
        qm.close()


def test_a_connection_that_is_lost_is_no_such_store(connect: Connect, url: str) -> None:
    qm = connect("test")
    with administrating(url) as admin:
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '%test'")
    qm.admin.check_store()


def test_a_call_that_waits_ends(connect: Connect, url: str, restore: Restore) -> None:
    qm = connect("test")
    qm.create_queue("Q")
    call = Call(lambda: qm.get("Q", wait=2 * LIMIT_SECONDS))
    with administrating(url) as looking:
        until(lambda: looking.execute("SELECT 1 FROM listener").fetchone() == (1,), "it waits")
    restore()
    with pytest.raises(StoreError, match="restored") as raised:
        call.result()
    assert raised.value.must_reopen


def test_a_worker_ends_with_its_own_status(connect: Connect, restore: Restore) -> None:
    qm = connect("test")
    qm.create_queue("Q")
    tasks = Tasks()
    tasks.task("Q", name="work")(lambda message: None)
    heard = Heard()
    worker = Worker(qm, tasks, log=heard)
    soon = Call(restore)
    assert serve(worker, LIMIT_SECONDS) == STORE_LOST
    soon.result()
    assert worker.stopped == {"work": str(worker.lost)}
    assert "trouble" not in heard.events
