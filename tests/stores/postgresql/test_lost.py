"""Errors when a connection is lost, the standby may lack a commit, or another store is at the address."""

from __future__ import annotations

import contextlib
import math
import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from benchmarks.servers import ServerError
from tests.helpers import spanning
from tests.helpers.proxy import Proxy
from tests.helpers.support import LIMIT_SECONDS, Call, Make, until
from tests.helpers.working import Heard
from tests.stores.postgresql.conftest import Connect
from tests.stores.postgresql.server import Server, administrating, end_session, port_of
from tests.stores.postgresql.server import sessions as sessions_of

import inorder
from inorder import InorderError, Message, OutcomeUnknown, QueueManager
from inorder.client import two_phases
from inorder.errors import ConnectionBroken, StoreError
from inorder.stores.engine.process import NO_NUMBERS
from inorder.stores.postgresql import drop, parse
from inorder.work import Tasks, Worker
from inorder.work.processes import STORE_LOST, serve

WAITS = "application_name LIKE 'inorder %: writer' AND wait_event = 'SyncRep'"


def cancelled(server: Server, call: Call[object]) -> OutcomeUnknown:
    until(lambda: server.sql(f"SELECT count(*) FROM pg_stat_activity WHERE {WAITS}") == "1", "it waits for the standby")
    server.sql(f"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE {WAITS}")
    with pytest.raises(OutcomeUnknown, match=r"the wait of .* for its synchronous standby was cancelled") as told:
        call.result()
    return told.value


def test_a_commit_whose_wait_for_the_standby_was_cancelled_has_an_unknown_outcome(own_server: Server) -> None:
    with inorder.connect(own_server.url(), program="writer") as qm:
        qm.create_queue("Q")
        queue = qm.open("Q", output=True)
        own_server.configure("synchronous_standby_names", "nobody")
        put = cancelled(own_server, Call(lambda: qm.put("Q", b"one")))
        assert [message.uid for message in qm.browse("Q")] == list(put.uids)
        unit = qm.unit_of_work().__enter__()
        qm.put("Q", b"two")
        assert cancelled(own_server, Call(unit.commit)).uids == ()
        made = cancelled(own_server, Call(lambda: qm.create_queue("R")))
        assert made.reason_name == "CALL_INTERRUPTED"
        assert queue.put(b"known", persistent=False).uid  # so the next put finds the queue as this one left it
        store = qm._services.store
        store.numbers = NO_NUMBERS  # type: ignore[attr-defined]  # reserving numbers waits for its own commit
        put = cancelled(own_server, Call(lambda: queue.put(b"drawn")))
        assert [message.uid for message in qm.browse("Q")][3:] == list(put.uids)
        own_server.configure("synchronous_standby_names", "")
        qm.put("Q", b"three")
        assert [message.body for message in qm.browse("Q")] == [b"one", b"two", b"known", b"drawn", b"three"]
        assert list(qm.admin.check()) == []


def test_numbers_whose_reservation_did_not_reach_the_standby_are_not_used_again(own_server: Server) -> None:
    """The wait for the standby was cancelled, the numbers have been seen, and the standby takes over (B-2)."""
    with own_server.make_standby(synchronous=True) as standby:
        with inorder.connect(own_server.url(), program="writer") as qm:
            qm.create_queue("Q")
            queue = qm.open("Q", output=True, browse=True)
            queue.put(b"first")
            standby.stop("immediate")
            many = [Message(b"%d" % n, persistent=False) for n in range(3000)]
            cancelled(own_server, Call(lambda: queue.put_many(many)))
            seen = {message.place for message in queue.browse()}
            assert len(seen) == 3001
            own_server.crash()
            with contextlib.suppress(ConnectionBroken):
                qm.internals.abandon()
        standby.start()
        standby.promote()
        standby.configure("synchronous_standby_names", "")
        with inorder.connect(standby.url()) as qm:
            assert [message.body for message in qm.browse("Q")] == [b"first"]
            qm.put("Q", b"later")
            (_, later) = qm.browse("Q")
            assert later.place is not None
            assert later.place.number > max(place.number for place in seen if place)
            assert later.place not in seen


def test_a_put_of_unknown_outcome_reports_the_unique_ids_with_which_it_can_be_repeated(
    url: str, qm: QueueManager
) -> None:
    lost = inorder.connect(url, program="lost")
    lost.put("Q", b"warm")
    qm.get("Q")
    link = lost._services.store.host._link  # type: ignore[attr-defined]
    commit, flush = link.commit, link.flush

    def flush_in_vain(upto: int) -> None:
        end_session(url, "lost")
        flush(upto)

    link.commit, link.flush = lambda **given: commit(**{**given, "flushes": False}), flush_in_vain
    with pytest.raises(OutcomeUnknown) as told:
        lost.put_many("Q", [b"one", b"two"])
    lost.close()
    assert [message.uid for message in qm.browse("Q")] == list(told.value.uids)
    for uid, body in zip(told.value.uids, (b"one", b"two"), strict=True):
        qm.put("Q", body, uid=uid, resend=True)
    assert [message.body for message in qm.browse("Q")] == [b"one", b"two"]


def test_a_close_that_finds_its_unit_lost_raises_an_error(url: str, qm: QueueManager) -> None:
    lost = inorder.connect(url, program="lost")
    lost.put("Q", b"never seen", syncpoint=True)
    end_session(url, "lost")
    with pytest.raises((ConnectionBroken, OutcomeUnknown)):
        lost.close()
    lost.close()
    assert qm.depth("Q") == 0


def test_a_lost_connection_does_not_hide_the_exception_raised_in_a_with_block(url: str, qm: QueueManager) -> None:
    def fail() -> None:
        with (
            inorder.connect(url, program="lost") as lost,
            lost.open("Q", output=True) as queue,
            lost.group("Q") as group,
        ):
            queue.put(b"nor this")
            group.put(b"never seen")
            end_session(url, "lost")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert qm.depth("Q") == 0


def test_the_environment_and_service_files_override_our_connection_defaults(
    url: str, qm: QueueManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def settings(one: str) -> tuple[str | None, str | None]:
        with inorder.connect(one) as made:
            given = made._services.store.host._link._connection.info.get_parameters()  # type: ignore[attr-defined]
        return given.get("application_name"), given.get("connect_timeout")

    assert settings(url) == (None, "30")
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "7")
    monkeypatch.setenv("PGAPPNAME", "orders")
    assert settings(url) == ("orders", "7")
    monkeypatch.delenv("PGCONNECT_TIMEOUT")
    monkeypatch.delenv("PGAPPNAME")
    services = tmp_path / "services"
    services.write_text("[mine]\nconnect_timeout=9\napplication_name=shop\n")
    monkeypatch.setenv("PGSERVICEFILE", os.fspath(services))
    assert settings(f"{url}&service=mine") == ("shop", "9")
    monkeypatch.setenv("PGSERVICE", "mine")
    assert settings(url) == ("shop", "9")
    assert settings(f"{url}&application_name=till&connect_timeout=11") == ("till", "11")


def clients(server: Server) -> float:
    """The number of connections of a server; infinity if it has no room for the question."""
    with contextlib.suppress(ServerError):
        return int(server.sql("SELECT count(*) - 1 FROM pg_stat_activity WHERE backend_type = 'client backend'"))
    return math.inf


@pytest.mark.nightly
@pytest.mark.postgresql
def test_a_server_without_free_connections_is_reported(quick_disk: None) -> None:
    with Server(max_connections=10) as server:
        made: list[QueueManager] = []
        told: StoreError | None = None
        try:
            while told is None:
                try:
                    made.append(inorder.connect(server.url(user="ann") if made else server.url()))
                except StoreError as error:
                    told = error
                if len(made) == 1:
                    server.sql("CREATE ROLE ann LOGIN SUPERUSER")
                    made[0].create_queue("Q")
            assert type(told) is StoreError
            assert "cannot be reached" in str(told)
            assert "too many clients already" in str(told)
            with pytest.raises(StoreError, match=r"cannot be reached.*too many clients already"):
                made[0].get("Q", wait=600)
            for _ in range(3):
                made.pop().close()
            until(lambda: clients(server) <= len(made), "the server has ended their sessions")
            made[0].put("Q", b"one")
            assert made[0].get("Q", wait=600).body == b"one"
        finally:
            for one in made:
                one.close()


def test_a_server_that_does_not_answer_holds_up_no_other_connection(url: str, qm: QueueManager, proxy: Proxy) -> None:
    proxy.freeze()
    silent = Call(lambda: inorder.connect(url.replace(f":{port_of(url)}/", f":{proxy.port}/"), program="silent"))
    until(lambda: proxy.waiting == 1, "it has come to the proxy")
    with inorder.connect(url) as other:
        assert other.depth("Q") == 0
    assert not silent.done
    proxy.thaw()
    silent.result().close()


def test_a_restored_dump_backs_out_open_units_keeps_named_ones_and_gives_no_id_and_no_place_again(
    own_server: Server,
) -> None:
    url = f"{own_server.url()}?schema=orders"
    with inorder.connect(url) as qm, qm.connect() as named:
        qm.create_queue("Q")
        qm.create_queue("U", read_order="unordered")
        qm.put_many("Q", [b"1", b"2"])
        qm.get("Q", syncpoint=True)
        named.put("Q", b"prepared", syncpoint=True)
        named.prepare("monday")
        own_server._run("pg_dump", "-Fc", "-n", "orders", "-f", "orders.dump", own_server.url())
    used = ids_and_places(url)
    own_server.sql("DROP SCHEMA orders CASCADE")
    own_server._run("pg_restore", "-d", own_server.url(), "orders.dump")
    with inorder.connect(url) as qm:
        assert [unit.kind for unit in qm.inspect.units()] == ["prepared"]
        assert [(one.body, one.backout_count) for one in qm.browse("Q")] == [(b"1", 1), (b"2", 0)]
        assert qm.admin.check() == []
    assert not used & ids_and_places(url)


def ids_and_places(url: str) -> set[object]:
    with inorder.connect(url) as qm:
        uids = {qm.put(queue, b"later").uid for queue in ("Q", "Q", "U", "U")}
        found = [(queue, one) for queue in "QU" for one in qm.inspect.look(queue) if one.message.uid in uids]
        return {*uids, *((queue, one.place) for queue, one in found)}


Restore = Callable[[], None]


@pytest.fixture
def restore(url: str, postgresql: str) -> Restore:
    """Replaces the store at the address by another one with the same queue, in one moment, as a restore does."""
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


def test_check_store_reports_a_restored_store(connect: Connect, restore: Restore) -> None:
    qm = connect("test")
    qm.create_queue("Q")
    qm.admin.check_store()
    restore()
    with pytest.raises(StoreError, match="restored") as raised:
        qm.admin.check_store()
    assert raised.value.must_reopen


def test_a_unit_that_the_restored_store_lacks_cannot_be_committed(connect: Connect, restore: Restore) -> None:
    qm = connect("test")
    qm.create_queue("Q")
    qm.put("Q", b"never", syncpoint=True)
    restore()
    with pytest.raises(StoreError, match=r"unit .* is missing"):
        qm.commit()
    qm.back_out()


def test_check_store_reports_a_dropped_store(url: str) -> None:
    qm = inorder.connect(url)
    drop(parse(url))
    with pytest.raises(StoreError, match="dropped") as raised:
        qm.admin.check_store()
    assert raised.value.must_reopen
    with suppress(StoreError):
        qm.close()


def test_check_store_reports_nothing_after_a_lost_connection(connect: Connect, url: str) -> None:
    qm = connect("test")
    end_session(url, "test")
    qm.admin.check_store()


def test_a_waiting_call_ends_with_an_error_when_the_store_is_restored(
    connect: Connect, url: str, restore: Restore
) -> None:
    qm = connect("test")
    qm.create_queue("Q")
    call = Call(lambda: qm.get("Q", wait=2 * LIMIT_SECONDS))
    with administrating(url) as looking:
        until(lambda: looking.execute("SELECT 1 FROM listener").fetchone() == (1,), "it waits")
    restore()
    with pytest.raises(StoreError, match="restored") as raised:
        call.result()
    assert raised.value.must_reopen


def test_a_worker_ends_with_status_store_lost_when_the_store_is_restored(connect: Connect, restore: Restore) -> None:
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


POINTS = tuple(two_phases.POINTS)


@pytest.fixture
def places(postgresql: str, make: Make) -> list[str]:
    """The URLs of LONDON and of both owners."""
    made = [make("postgresql") for _ in range(3)]
    spanning.create(made)
    return made


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("place", ["LONDON", "PARIS"])
def test_a_unit_is_committed_at_all_queue_managers_or_none_if_the_server_ends_a_session(
    places: list[str], monkeypatch: pytest.MonkeyPatch, point: str, place: str
) -> None:
    program = inorder.connect(places[0], program="unit")
    spanning.put(program, b"0")
    owners: Any = program._session.owners.values()
    sessions = {"LONDON": program._session, **{one.of.manager: one for one in owners}}
    store: Any = sessions[place].store
    pid = store.host._link.server_pid

    def end() -> None:
        assert sessions_of(places[0], "unit", "pg_terminate_backend(pid)", f"pid = {pid}") == 1
        until(lambda: not sessions_of(places[0], "unit", where=f"pid = {pid}"), "the server has ended the session")
        ended.append(place)

    ended: list[str] = []
    spanning.act_at(monkeypatch, point, end)
    is_committed = False
    with contextlib.suppress(InorderError):
        spanning.put(program, b"1")
        is_committed = True
    program.internals.abandon()
    assert ended == [place]
    here, *owners = spanning.settled(places[0])
    assert owners == [here, here]
    assert not is_committed or here == [b"0", b"1"]
