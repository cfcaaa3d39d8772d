"""Synchronous remote queues: calls at the owner of the queue, and owners that cannot be reached (K-2)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.helpers.elsewhere import elsewhere_in, log_in, proxied
from tests.helpers.proxy import Proxy, Way
from tests.helpers.support import bodies, error_of
from tests.tiers import gate

import inorder
from inorder import ConnectionBroken, Flags, InorderError, NoMessageAvailable, OutcomeUnknown, QueueManager
from inorder.aio import connect as aio_connect
from inorder.client import store_transfer
from inorder.client.owners import OwnerSession
from inorder.errors import CallInProgress, NotFound, WaitEnded
from inorder.mq import channels
from inorder.stores.remote.link import RemoteLink
from inorder.testing.remote import the_server

SYNCHRONOUS: Any = {"type": "remote", "mode": "synchronous", "remote_queue": "Q", "remote_manager": "PARIS"}
FAR = "Q.PARIS"


def define(qm: QueueManager, location: str) -> None:
    """Defines the queue Q of PARIS; its store is at this path or URL."""
    channels.define_connection(qm, "PARIS", location)
    qm.create_queue(FAR, connection="PARIS", **SYNCHRONOUS)


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[tuple[QueueManager, QueueManager]]:
    """LONDON, where `FAR` names the queue Q of PARIS, and PARIS; both in files."""
    paris, london = tmp_path / "paris.db", tmp_path / "london.db"
    with inorder.connect(london, name="LONDON") as here, inorder.connect(paris, name="PARIS") as there:
        there.create_queue("Q")
        here.create_queue("L")
        define(here, str(paris))
        yield here, there


class Served(NamedTuple):
    """LONDON in a file, and PARIS behind a proxy and a server of this process."""

    here: QueueManager
    there: QueueManager
    proxy: Proxy


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    with inorder.connect(tmp_path / "paris.db", name="PARIS") as there:
        there.create_queue("Q")
        with (
            proxied(monkeypatch, tmp_path / "credentials", there) as [proxy],
            inorder.connect(tmp_path / "london.db", name="LONDON") as here,
        ):
            here.create_queue("L")
            define(here, f"http://127.0.0.1:{proxy.port}")
            yield Served(here, there, proxy)


# --- calls that the owner answers, and calls that the definition answers


def test_a_remote_queue_shows_the_owners_depth_and_status_and_its_own_attributes(
    sites: tuple[QueueManager, QueueManager],
) -> None:
    here, there = sites
    there.put_many("Q", [b"1", b"2"])
    assert here.depth(FAR) == 2
    found = here.inquire(FAR)
    assert (found["mode"], found["connection"], found["current_depth"]) == ("synchronous", "PARIS", 2)
    assert here.inquire(FAR, "CurrentQDepth") == {"CurrentQDepth": 2}
    with here.open(FAR) as handle:
        assert handle.attributes() == here.attributes(FAR)
        assert handle.status().current_depth == 2
        handle.set(put_allowed=False)
    assert not here.attributes(FAR).put_allowed
    assert there.attributes("Q").put_allowed


def test_a_definition_must_give_mode_and_connection_together(sites: tuple[QueueManager, QueueManager]) -> None:
    here, _ = sites
    define = here.create_queue
    for wrong in ({"connection": ""}, {"connection": "PARIS", "transmission_queue": "X"}):
        assert isinstance(error_of(define, "R", **(SYNCHRONOUS | wrong)), ValueError)
    left_out = error_of(define, "R", type="remote", remote_queue="Q", remote_manager="PARIS", connection="PARIS")
    assert "connection must be left out unless mode is 'synchronous'" in str(left_out)


def test_every_kind_of_put_and_get_is_made_at_the_owner(sites: tuple[QueueManager, QueueManager]) -> None:
    here, there = sites
    here.put_many(FAR, [b"1", b"2"])
    here.put_json(FAR, {"n": 3})
    with here.group(FAR) as group:
        group.put(b"4")
        group.put(b"5")
    assert bodies(there) == bodies(here, FAR) == [b"1", b"2", b'{"n":3}', b"4", b"5"]
    assert [message.body for message in here.get_many(FAR, 3)] == [b"1", b"2", b'{"n":3}']
    assert [message.body for message in here.get_group(FAR)] == [b"4", b"5"]
    with here.open("Q", manager="PARIS") as discovered:
        discovered.put(b"6")
        assert discovered.browse_first().body == discovered.get(under_cursor=True).body == b"6"
    assert here.inspect.overview("L")[0].depth == 0
    assert here.admin.check() == there.admin.check() == []


def test_local_handles_and_handles_at_the_owner_are_distinguished(sites: tuple[QueueManager, QueueManager]) -> None:
    here, there = sites
    here.put(FAR, b"1")
    here.put("L", b"1")
    idle = [here.internals.is_idle]
    with here.open(FAR):
        idle.append(here.internals.is_idle)
    assert idle == [True, False]
    here.delete_queue("L", purge=True)
    assert here.get(FAR).body == b"1"
    here.put(FAR, b"2")
    here.close_queue(FAR)
    there.delete_queue("Q", purge=True)
    assert "at queue manager PARIS, by connection PARIS" in str(error_of(here.put, FAR, b"3"))
    there.create_queue("Q")
    here.put(FAR, b"4")
    assert bodies(there) == [b"4"]


def test_a_unit_of_work_at_the_owner_follows_the_local_block(sites: tuple[QueueManager, QueueManager]) -> None:
    here, there = sites
    with here.unit_of_work() as unit:
        here.put(FAR, b"1")
        assert bodies(there) == []
        here.put("L", b"at once", syncpoint=False)
    assert unit.status == "committed"
    with here.unit_of_work() as unit:
        assert here.get(FAR).body == b"1"
        unit.back_out()
    assert (there.get("Q").backout_count, here.depth("L")) == (1, 1)
    with here.lease(seconds=60):
        refused = error_of(here.put, FAR, b"2")
        assert refused.reason == 2298
        assert "so this call at queue manager PARIS must be made with syncpoint=False" in str(refused)
    here.put(FAR, b"3", syncpoint=True)
    here.close()
    assert bodies(there) == [b"3"]


def test_dropping_a_connection_also_ends_its_connection_to_the_owner(sites: tuple[QueueManager, QueueManager]) -> None:
    here, there = sites
    other = here.connect()
    other.put(FAR, b"1", syncpoint=True)
    assert next(other.browse(FAR), None) is None
    other.put("L", b"2", syncpoint=True)
    assert len(there.inspect.units()) == 1
    del other  # it is in no reference cycle
    here.depth("L")
    assert there.inspect.units() == []
    assert len(there.inspect.connections()) == 1


def test_a_wait_at_the_owner_can_be_ended_locally_and_admits_no_other_call(
    sites: tuple[QueueManager, QueueManager],
) -> None:
    here, there = sites
    found: list[BaseException] = []

    def wait() -> None:
        try:
            here.get(FAR, wait=inorder.FOREVER)
        except InorderError as error:
            found.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    there._store.waiting.watch_until(lambda: bool(there._store.waiting._waiters))  # type: ignore[attr-defined]
    with pytest.raises(CallInProgress):
        here.put("L", b"x")
    assert here.end_waits()
    waiting.join()
    assert [type(one) for one in found] == [WaitEnded]


async def test_asyncio_can_wait_at_the_owner(sites: tuple[QueueManager, QueueManager], tmp_path: Path) -> None:
    _, there = sites
    async with aio_connect(tmp_path / "london.db") as qm:
        waiting = asyncio.create_task(qm.get(FAR, wait=inorder.FOREVER))
        await asyncio.sleep(0)
        await asyncio.to_thread(there.put, "Q", b"1")
        assert (await waiting).body == b"1"


# --- operators, and definitions that change


def test_a_listing_shows_the_queue_at_the_owner(sites: tuple[QueueManager, QueueManager]) -> None:
    here, there = sites
    here.create_queue("A", type="alias", base_queue=FAR)
    there.put("Q", b"1", group_id=b"g", sequence_number=2, flags=Flags.LAST_IN_GROUP)
    assert here.inspect.overview(FAR) == there.inspect.overview("Q")
    assert here.inspect.gaps("A", b"g") == there.inspect.gaps("Q", b"g")
    there.put("Q", b"2", syncpoint=True)
    assert [(one.state, one.message.body) for one in here.inspect.look("A")] == [("available", b"1"), ("put", b"2")]
    assert here.inspect.order_view(FAR) == there.inspect.order_view("Q")
    here.internals.stay_here()
    assert here.inspect.overview(FAR) == []
    assert error_of(here.inspect.look, FAR).reason == 2045


def test_a_remote_queue_can_be_copied_from_but_not_moved_from_or_transferred_to(
    sites: tuple[QueueManager, QueueManager],
) -> None:
    here, there = sites
    here.create_queue("A", type="alias", base_queue=FAR)
    there.create_queue("T")
    for transfer in (
        store_transfer.move(here, "A", there, "T"),
        store_transfer.move(there, "T", here, FAR),
        store_transfer.copy(there, "T", here, FAR),
    ):
        assert "name queue Q in the store of connection PARIS instead" in str(error_of(list, transfer))
    here.put(FAR, b"1")
    assert list(store_transfer.copy(here, "A", there, "T")) == [1]


def test_a_call_by_name_follows_a_definition_that_was_changed(sites: tuple[QueueManager, QueueManager]) -> None:
    here, there = sites
    there.create_queue("R")
    here.put(FAR, b"1")
    here.alter_queue(FAR, remote_queue="R")
    here.put(FAR, b"2")
    assert (bodies(there, "Q"), bodies(there, "R")) == ([b"1"], [b"2"])
    here.put(FAR, b"3", logical=True, flags=Flags.IN_GROUP)
    here.alter_queue(FAR, remote_queue="Q")
    assert error_of(here.put, FAR, b"4", logical=True, flags=Flags.LAST_IN_GROUP).reason == 2041
    with here.unit_of_work():
        here.put(FAR, b"5")
        handle = here.open(FAR)
        here.alter_queue(FAR, remote_queue="R")
        assert [error_of(handle.put, b"6").reason for _ in range(2)] == [2041, 2041]
        here.put(FAR, b"7")
    assert (bodies(there, "Q"), bodies(there, "R")) == ([b"1", b"5"], [b"2", b"3", b"7"])
    here.delete_queue(FAR)
    here.create_queue(FAR)
    here.put(FAR, b"8")
    assert here.inspect.overview(FAR)[0].depth == 1


# --- owners that cannot be reached


def test_an_error_names_the_owner_and_the_connection(sites: tuple[QueueManager, QueueManager], tmp_path: Path) -> None:
    here, _ = sites
    channels.define_connection(here, "PARIS", str(tmp_path / "none.db"), replace=True)
    error = error_of(here.put, FAR, b"1")
    assert (error.reason, error.owner, error.connection) == (2059, "PARIS", "PARIS")
    assert "there is no store at" in str(error)
    assert not (tmp_path / "none.db").exists()
    channels.define_connection(here, "PARIS", "http://127.0.0.1:1", replace=True)
    assert error_of(here.depth, FAR).reason == 2059
    channels.define_connection(here, "PARIS", str(tmp_path / "london.db"), replace=True)
    assert "leads to queue manager LONDON, not to PARIS" in str(error_of(here.get, FAR))
    assert error_of(here.open, "Q", manager="PARIS", browse=True).reason == 2087


def test_a_restarted_owner_is_connected_to_again(sites: tuple[QueueManager, QueueManager]) -> None:
    here, there = sites
    handle = here.open(FAR)
    handle.put(b"1")
    here.put(FAR, b"2", syncpoint=True)
    there._store.restart()  # type: ignore[attr-defined]
    assert isinstance(error_of(here.put, FAR, b"3"), ConnectionBroken)
    assert "open the queue again" in str(error_of(handle.put, b"3"))
    here.put(FAR, b"4")
    assert isinstance(error_of(here.put, "L", b"5", syncpoint=True), ConnectionBroken)
    assert "was backed out" in str(error_of(here.commit))
    here.put("L", b"6", syncpoint=True)
    here.commit()
    assert (bodies(here, FAR), bodies(here, "L")) == ([b"1", b"4"], [b"6"])


def test_a_lost_connection_to_a_server_is_made_again_and_its_unit_of_work_is_lost(served: Served) -> None:
    here, there, proxy = served
    handle = here.open(FAR)
    handle.put(b"1")
    proxy.cut()
    assert handle.get().body == b"1"
    handle.put(b"2", syncpoint=True)
    proxy.cut()
    assert isinstance(error_of(handle.put, b"3", syncpoint=True), ConnectionBroken)
    here.back_out()
    with here.unit_of_work():
        handle.put(b"4")
    assert bodies(there) == [b"4"]
    proxy.cut_after("to client", 0)
    unknown = error_of(handle.get)
    assert isinstance(unknown, OutcomeUnknown)
    assert unknown.owner == "PARIS"


@gate
def test_calls_at_the_owner_are_made_as_the_user_of_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with elsewhere_in(tmp_path, monkeypatch) as at:
        at.b.create_queue("OTHER")
        for name in ("Q", "OTHER"):
            wanted = SYNCHRONOUS | {"remote_queue": name, "remote_manager": "B", "connection": "THERE"}
            at.a.create_queue(f"{name}.B", **wanted)
        at.a.put("Q.B", b"1")
        assert at.b.get("Q").user_identifier == "london"
        refused = error_of(at.a.get, "Q.B")
        assert (refused.reason, refused.user, refused.owner) == (2035, "london", "B")
        assert error_of(at.a.put, "OTHER.B", b"1").reason == 2035
        channels.define_connection(at.a, "THERE", at.url, user="rome", replace=True)
        at.a.close_queue("Q.B")
        refused = error_of(at.a.put, "Q.B", b"2")
        assert "connection THERE is for user rome, but" in str(refused)
        assert refused.reason == 2035


@gate
def test_a_user_of_a_server_needs_rights_on_the_definition_for_each_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = the_server(os.getpid())
    with (
        elsewhere_in(tmp_path, monkeypatch) as at,
        server.serving(at.a._session.services.store) as token,  # type: ignore[arg-type]
    ):
        log_in(at.credentials, {server.url.partition("://")[2]: token})
        channels.define_connection(at.b, "BACK", server.url)
        at.b.create_queue("Q.A", **(SYNCHRONOUS | {"remote_manager": "A", "connection": "BACK"}))
        at.b.accounts.create_user("rome", roles=["application"], queues={"Q.A": ("put",)})
        with inorder.connect(at.url, token=at.b.accounts.create_token("rome", "test")) as qm:
            qm.put("Q.A", b"1")
            with qm.open("Q.A", output=True) as handle:
                refused = error_of(handle.set, put_allowed=False)
                assert (refused.reason, refused.user, "owner" in refused.data) == (2035, "rome", False)
            channels.define_connection(at.b, "BACK", str(tmp_path / "a.db"), replace=True)
            qm.close_queue("Q.A")
            refused = error_of(qm.put, "Q.A", b"2")
            assert (refused.reason, "is a path on the machine of" in str(refused)) == (2059, True)
            refused = error_of(qm.get, "Q.A")
            assert (refused.reason, refused.user, "owner" in refused.data) == (2035, "rome", False)
            assert error_of(qm.put, "Q", b"1", manager="A").reason in (2035, 2087)
        assert bodies(at.a) == [b"1"]


# --- the cost of a call


@pytest.mark.parametrize("call", ["put", "get", "browse", "unit"])
def test_a_remote_call_takes_as_many_messages_as_a_direct_connection_to_the_owner(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    here, there, proxy = served
    calls: list[object] = []
    ask = RemoteLink.call

    def counts(*given: Any, **named: Any) -> Any:
        calls.append(given)
        return ask(*given, **named)

    monkeypatch.setattr(RemoteLink, "call", counts)
    there.put_many("Q", [b"1"] * 10)

    def counted(qm: QueueManager, queue: str) -> int:
        with qm.open(queue) as handle:
            handle.get()  # the first call does more, such as reserving unique ids
            handle.put(b"1")
            calls.clear()
            if call == "put":
                handle.put(b"1")
            elif call == "get":
                handle.get()
            elif call == "browse":
                list(handle.browse())
            else:
                with qm.unit_of_work():
                    handle.get()
                    handle.put(b"1")
            return len(calls)

    with inorder.connect(f"http://127.0.0.1:{proxy.port}") as direct:
        assert counted(here, FAR) == counted(direct, "Q") > 0


def test_a_call_reads_the_definitions_again_only_after_a_local_commit(
    sites: tuple[QueueManager, QueueManager], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, _ = sites
    handle = here.open(FAR)

    def use() -> list[Any]:
        return [here.put(FAR, b"1"), handle.put(b"2"), here.depth(FAR), bodies(here, FAR), handle.get()]

    use()
    reads: list[str] = []
    with monkeypatch.context() as patch:
        for verb in ("queue", "object", "status", "open"):
            patch.setattr(here._store, verb, partial(reads.append, verb))
        use()
    assert reads == []
    with here.connect() as other:
        other.alter_queue(FAR, put_allowed=False)
    assert error_of(handle.put, b"3").reason == error_of(here.put, FAR, b"3").reason == 2051


# --- assured calls, as an application makes them


class Journal(dict[str, Any]):
    """The records of the application on its disk, which are never lost."""


def put_once(qm: QueueManager, journal: Journal, body: bytes, confirm_id: int) -> None:
    """Puts a message exactly once; is repeated after any failure."""
    if "confirming" not in journal:
        if "sending" in journal:  # its answer may be lost; undo it, as a copy that was put is still hidden
            with_lost_answers(lambda: undone(qm, confirm_id))
        journal["sending"] = confirm_id
        put = qm.put(FAR, body, confirm_id=confirm_id)
        journal["confirming"] = put.uid  # on disk before the first confirm: it can no longer be undone
    qm.confirm_put(FAR, journal["confirming"])
    journal.clear()


def get_once(qm: QueueManager, journal: Journal, confirm_id: int) -> bytes:
    """Gets a message exactly once; is repeated after any failure."""
    if "got" not in journal:
        if "getting" in journal:
            with_lost_answers(lambda: undone(qm, confirm_id))
        journal["getting"] = confirm_id
        message = qm.get(FAR, confirm_id=confirm_id)
        journal["got"] = message.uid, message.body
    uid, body = journal["got"]
    qm.confirm_get(FAR, uid)
    journal.clear()
    return bytes(body)


def undone(qm: QueueManager, confirm_id: int) -> None:
    with contextlib.suppress(NotFound):  # the put or get had not happened, or was undone already
        qm.undo(FAR, confirm_id)


def with_lost_answers(call: Callable[[], Any]) -> Any:
    """Repeats a call of the application until it is answered."""
    while True:
        try:
            return call()
        except (OutcomeUnknown, ConnectionBroken):
            pass


ACTS = ("put", "confirm_put", "get", "confirm_get")


@pytest.mark.parametrize("way", ["to server", "to client"])
@pytest.mark.parametrize("act", ACTS)
def test_a_message_is_put_and_got_exactly_once_if_the_answer_of_any_call_is_lost(
    served: Served, monkeypatch: pytest.MonkeyPatch, act: str, way: Way
) -> None:
    here, there, proxy = served
    here.put(FAR, b"0")
    assert here.get(FAR).body == b"0"
    losses = [act]
    made = getattr(QueueManager, act)

    def cut_once(*given: Any, **named: Any) -> Any:
        if losses:
            losses.clear()
            proxy.cut_after(way, 0)
        return made(*given, **named)

    monkeypatch.setattr(QueueManager, act, cut_once)
    journal, taken = Journal(), Journal()
    with_lost_answers(lambda: put_once(here, journal, b"1", 7))
    assert there.depth("Q") == 1
    assert with_lost_answers(lambda: get_once(here, taken, 8)) == b"1"
    assert (losses, there.depth("Q"), there.inspect.units()) == ([], 0, [])


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("happens", [False, True])
def test_a_message_is_put_and_got_exactly_once_if_the_application_dies_at_any_call(
    served: Served, monkeypatch: pytest.MonkeyPatch, act: str, happens: bool
) -> None:
    here, there, _ = served
    made, deaths = getattr(QueueManager, act), [act]

    def dies_once(*given: Any, **named: Any) -> Any:
        if not deaths:
            return made(*given, **named)
        deaths.clear()
        if happens:
            made(*given, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(QueueManager, act, dies_once)
    journal, taken = Journal(), Journal()

    def in_another_program(call: Callable[[QueueManager], Any]) -> Any:
        while True:
            program = here.connect()
            try:
                return call(program)
            except KeyboardInterrupt:
                program.internals.abandon()

    in_another_program(lambda qm: put_once(qm, journal, b"1", 7))
    assert in_another_program(lambda qm: get_once(qm, taken, 8)) == b"1"
    with pytest.raises(NoMessageAvailable):
        there.get("Q")
    assert there.inspect.units() == []


def test_a_connection_has_only_one_connection_to_an_owner(sites: tuple[QueueManager, QueueManager]) -> None:
    here, there = sites
    here.put(FAR, b"1")
    with here.open(FAR), here.open("Q", manager="PARIS"):
        assert [type(one) for one in here._session.owners.values()] == [OwnerSession]
    assert len(there.inspect.connections()) == 2
    here.close()
    assert len(there.inspect.connections()) == 1
