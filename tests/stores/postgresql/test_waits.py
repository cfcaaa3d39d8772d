"""Calls that wait, in several processes and on several connections: what wakes them, and what that costs.

`alone` disables the look of each second: a waiting call is woken by a notification, or times out.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest
from tests.helpers.support import LIMIT_SECONDS, until, waiting
from tests.helpers.waking import WAKING
from tests.stores.postgresql.server import Server, administrating
from tests.stores.sqlite.programs import FOREVER, Program, programs

import inorder
from inorder import NoMessageAvailable, QueueManager
from inorder.stores.postgresql import drop, parse, watch

NEVER = 1e6
SOON = 0.05


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LOOK_SECONDS", NEVER)
    monkeypatch.setattr(watch, "KEPT_SECONDS", NEVER)  # else notifications end after five seconds


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting calls look so often that no test takes long."""
    monkeypatch.setattr(watch, "LOOK_SECONDS", SOON)


@pytest.fixture
def database(url: str) -> Iterator[psycopg.Connection[Any]]:
    with administrating(url) as one:
        yield one


def watch_of(qm: QueueManager) -> watch.PostgresWatch:
    store: Any = qm._services.store
    found: watch.PostgresWatch = store.host.watch
    return found


def rows(database: psycopg.Connection[Any]) -> int:
    """The number of connections that say that they listen."""
    return len(database.execute("SELECT 1 FROM listener").fetchall())


def end_listener(database: psycopg.Connection[Any]) -> int:
    """Makes the server end the listening connections of this process. Returns their number."""
    asked = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"
    return len(database.execute(asked, (f"inorder {os.getpid()}: listener",)).fetchall())


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("what", WAKING)
def test_a_waiting_get_is_woken_by(qm: QueueManager, child: Program, what: str) -> None:
    before, how, act = WAKING[what]
    child.run(before)
    call = waiting(qm, lambda: qm.get("Q", wait=FOREVER, **how))
    child.run(act)
    assert call.result().body == b"2"


@pytest.mark.usefixtures("alone")
def test_a_waiting_browse_is_woken(qm: QueueManager, child: Program) -> None:
    with qm.open("Q", browse=True) as queue:
        call = waiting(qm, lambda: queue.browse_first(wait=FOREVER))
        child.run("qm.put('Q', b'2')")
        assert call.result().body == b"2"


@pytest.mark.usefixtures("alone")
def test_each_message_ends_one_wait_among_many_processes_and_connections(qm: QueueManager, url: str) -> None:
    with programs(url, 2) as each:
        for one in each:
            one.run("own = [qm.connect() for _ in range(3)]")
            one.run("waits = [Waiting(m, lambda m=m: m.get('Q', wait=600)) for m in own]")
        for number in range(6):
            qm.put("Q", b"%d" % number)
        got = [body for one in each for body in one.ask("[wait.end() for wait in waits]")]
    assert sorted(got) == [b"%d" % number for number in range(6)]


@pytest.mark.usefixtures("alone")
def test_a_waiting_call_is_woken_only_for_its_own_queue_in_its_own_store(
    qm: QueueManager, postgresql: str, url: str
) -> None:
    """Two stores in one database, whose queues have the same number; one connection delivers their notifications."""
    other_url = f"{url}_other"
    try:
        with inorder.connect(other_url) as other:
            other.create_queue("Q")
            other.create_queue("OTHER")
            here, there = (waiting(one, lambda one=one: one.get("Q", wait=FOREVER)) for one in (qm, other))  # type: ignore[misc]
            numbers = [one.seen for one in (*watch_of(qm)._waiting(), *watch_of(other)._waiting())]
            assert numbers[0] is not None
            assert numbers[1] is not None
            assert numbers[0][0] == numbers[1][0]
            link: Any = watch_of(qm)._link
            before = link.pipeline.syncs
            with inorder.connect(other_url) as putter:
                putter.put("OTHER", b"of another queue")
                putter.put("Q", b"theirs")
            assert there.result().body == b"theirs"
            assert not here.done
            assert link.pipeline.syncs == before, "nobody looked"
            with inorder.connect(url) as putter:
                putter.put("Q", b"ours")
            assert here.result().body == b"ours"
    finally:
        drop(parse(other_url))


@pytest.mark.usefixtures("alone")
def test_a_put_while_the_listening_connection_is_lost_is_found_when_it_is_made_again(
    qm: QueueManager, child: Program, database: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The listening connection is lost, and made again only after the put: then the waiting call looks at once."""
    connects, goes_on = watch.DatabaseListener._connect, threading.Event()

    def late(listener: watch.DatabaseListener) -> object:
        assert goes_on.wait(LIMIT_SECONDS)
        return connects(listener)

    call = waiting(qm, lambda: qm.get("Q", wait=FOREVER))
    monkeypatch.setattr(watch.DatabaseListener, "_connect", late)
    assert end_listener(database) >= 1
    until(lambda: not end_listener(database), "the server has ended it")
    child.run("qm.put('Q', b'1')")
    assert room_is_asleep(qm)
    goes_on.set()
    assert call.result().body == b"1"


def room_is_asleep(qm: QueueManager) -> bool:
    store: Any = qm._services.store
    return bool(store.waiting.is_asleep(qm.internals.owner))


@pytest.mark.usefixtures("often")
def test_a_put_whose_notification_was_lost_is_found_by_the_next_look(qm: QueueManager, child: Program) -> None:
    """As if a process were killed between commit and notification; this may happen in the first second, too."""
    child.run("from inorder.stores.postgresql.statements import STATEMENTS as all_of_them")
    child.run("all_of_them['notify listeners'] = 'SELECT ?1'")
    for number in range(5):
        call = waiting(qm, lambda: qm.get("Q", wait=FOREVER))
        child.run(f"qm.put('Q', b'{number}')")
        assert call.result().body == b"%d" % number


@pytest.mark.usefixtures("often")
def test_a_deleted_row_of_a_listener_is_inserted_again(qm: QueueManager, database: psycopg.Connection[Any]) -> None:
    call = waiting(qm, lambda: qm.get("Q", wait=FOREVER))
    for _ in range(3):
        until(lambda: rows(database) == 1, "the row is there")
        database.execute("DELETE FROM listener")
    until(lambda: rows(database) == 1, "the row is there again")
    qm.connect().put("Q", b"1")
    assert call.result().body == b"1"


@pytest.mark.usefixtures("often")
def test_the_row_of_a_dead_listener_is_deleted(
    qm: QueueManager, child: Program, database: psycopg.Connection[Any]
) -> None:
    qm.create_queue("THEIRS")
    child.run("wait = Waiting(qm, lambda: qm.get('THEIRS', wait=600))")
    child.kill()
    call = waiting(qm, lambda: qm.get("Q", wait=FOREVER))
    assert rows(database) == 2
    database.execute("UPDATE listener SET until = until - interval '2 minutes'")
    until(lambda: rows(database) == 1, "theirs is gone, and ours is there")
    qm.connect().put("Q", b"1")
    assert call.result().body == b"1"


def test_nothing_is_kept_of_waits_that_have_ended(qm: QueueManager) -> None:
    for number in range(20):
        name = f"REPLY.{number}"
        qm.create_queue(name)
        with pytest.raises(NoMessageAvailable):
            qm.get(name, wait=0.001)
        qm.close_queue(name)
        qm.delete_queue(name)
    assert watch_of(qm)._waiting() == []


PROCESSES = 10
IDLE = """
own = [inorder.connect(qm._services.store) for _ in range(100)]
waits = [Waiting(one, lambda one=one, n=n: one.get("W%d" % (n % 10), wait=600)) for n, one in enumerate(own)]
"""
LOOK_STATEMENTS = 2


def got(each: Sequence[Program]) -> list[bytes]:
    return [body for one in each for body in one.ask("[wait.said for wait in waits]") if body]


@pytest.fixture
def counting_server(quick_disk: None) -> Iterator[Server]:
    with Server(shared_preload_libraries="pg_stat_statements") as server:
        server.sql("CREATE EXTENSION pg_stat_statements")
        yield server


@pytest.mark.nightly
@pytest.mark.postgresql
def test_a_thousand_waiting_calls_in_ten_processes_send_as_few_statements_as_ten(counting_server: Server) -> None:
    """Each process looks once a second, however many calls wait there; one look by each call would make a thousand."""
    url = counting_server.url()

    def statements() -> int:
        return int(counting_server.sql("SELECT sum(calls) FROM pg_stat_statements WHERE query !~ 'pg_stat_statements'"))

    with inorder.connect(url) as qm:
        for number in range(10):
            qm.create_queue(f"W{number}")
        with programs(url, PROCESSES) as each:
            for one in each:
                one.begin(IDLE)
            for one in each:
                one.answer()
            began, before = time.monotonic(), statements()
            until(lambda: statements() >= before + 2 * PROCESSES, "they have looked")
            made, seconds = statements() - before, time.monotonic() - began
            assert made <= LOOK_STATEMENTS * PROCESSES * (seconds / watch.LOOK_SECONDS + 1)
            for number in range(10):
                qm.put(f"W{number}", b"%d" % number)
            until(lambda: sorted(got(each)) == [b"%d" % number for number in range(10)], "each was got by one")
