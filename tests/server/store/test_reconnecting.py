"""A remote program whose connection breaks: its unit of work, lease, handles, waits, and each verb (W-3, W-4)."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

import pytest
from tests.helpers.proxy import Way
from tests.helpers.support import until
from tests.server.store.broken import Call, Far, calls, elsewhere, state
from tests.tiers import gate, nightly

import inorder
from inorder import QueueManager
from inorder.client.bulk import Stager
from inorder.errors import ArgumentError, ConnectionBroken, Fenced, OutcomeUnknown, Reason
from inorder.rules.store_verbs import VERBS
from inorder.server.settings import Limits, Settings
from inorder.server.store.resuming import Resumable
from inorder.stores.remote import store
from inorder.stores.remote import wire as wire_format
from inorder.stores.remote.frames import PIECE_MAX
from inorder.support.sockets import has_come
from inorder.testing import ManualClock, remote
from inorder.testing.stores import make_store

WAYS: list[Way] = ["to server", "to client"]


class Wire:
    """A remote program, the connection to its server, and another program at the server.

    Attributes:
        qm: of the remote program.
        near: of the program at the server.
    """

    def __init__(self, at: Far) -> None:
        self.at, self.proxy, self.far = at, at.proxy, at.far
        self.near = inorder.connect(at.store)
        self.qm = inorder.connect(at.far)
        self.store: Any = self.qm._store
        self.near.create_queue("A")
        self._units = {one.name for one in self.near.inspect.units()}

    def units(self) -> list[str]:
        """The names of the units that the remote program has begun."""
        return [one.name for one in self.near.inspect.units() if one.name not in self._units]

    def bodies(self) -> list[bytes]:
        return [one.body for one in self.near.browse("A")]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "PAUSES", (0.001, 0.01))


@pytest.fixture
def wire() -> Iterator[Wire]:
    with elsewhere() as at:
        one = Wire(at)
        yield one
        one.store.close_store()
        one.near.close()


# --- calls that are too long


def test_a_call_too_large_for_the_server_is_refused_before_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the server would end the connection: the unit would be lost, and the outcome unknown."""
    limits = Limits(body=4 * PIECE_MAX, json=0)
    monkeypatch.setattr(remote, "Settings", partial(Settings, limits=limits))
    with elsewhere() as at:
        qm = inorder.connect(at.far)
        before = qm.depth("Q")
        with qm.open("Q", output=True) as handle, qm.unit_of_work():
            qm.put("Q", b"1")
            with pytest.raises(ArgumentError, match=r"messages must be at most 4,194,304 bytes in one call to http"):
                qm.put_many("Q", [bytes(PIECE_MAX)] * 4)
            with pytest.raises(ArgumentError, match=r"columns must be at most 4,194,304 bytes in one call to http"):
                Stager(handle, "S", lasts=60).stage(4, {"body": [bytes(PIECE_MAX)] * 4})
            qm.put_many("Q", [bytes(PIECE_MAX)] * 3)
        assert qm.depth("Q") == before + 4


# --- units of work


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "act",
    [lambda qm: qm.put("A", b"2"), lambda qm: qm.get("A"), lambda qm: qm.depth("A"), lambda qm: list(qm.browse("A"))],
)
def test_calls_in_a_unit_of_work_whose_connection_was_lost_fail_until_it_is_backed_out(
    wire: Wire, way: Way, act: Callable[[QueueManager], object]
) -> None:
    wire.near.put("A", b"0")
    block = wire.qm.unit_of_work()
    block.__enter__()
    wire.qm.put("A", b"1")
    wire.proxy.cut_after(way, 0)
    for _ in range(2):
        with pytest.raises(ConnectionBroken, match="its unit of work was backed out: back out, too"):
            act(wire.qm)
    block.back_out()
    with wire.qm.unit_of_work():
        assert wire.qm.get("A").body == b"0"
        wire.qm.put("A", b"3")
    assert wire.bodies() == [b"3"]


@pytest.mark.parametrize("way", WAYS)
def test_a_commit_whose_answer_is_lost_has_an_unknown_outcome(wire: Wire, way: Way) -> None:
    block = wire.qm.unit_of_work()
    block.__enter__()
    wire.qm.put("A", b"1")
    wire.proxy.cut_after(way, 0)
    with pytest.raises(OutcomeUnknown):
        block.__exit__(None, None, None)
    wire.qm.put("A", b"2")
    assert wire.bodies() == ([b"2"] if way == "to server" else [b"1", b"2"])
    assert wire.units() == []


@pytest.mark.parametrize("way", WAYS)
def test_a_prepare_whose_answer_is_lost_has_an_unknown_outcome(wire: Wire, way: Way) -> None:
    wire.qm.put("A", b"1", syncpoint=True)
    wire.proxy.cut_after(way, 0)
    with pytest.raises(OutcomeUnknown):
        wire.qm.prepare("named")
    assert wire.qm.depth("A") == (0 if way == "to server" else 1)
    assert wire.units() == ([] if way == "to server" else ["named"])


@pytest.mark.parametrize("way", WAYS)
def test_a_back_out_succeeds_although_the_connection_is_lost(wire: Wire, way: Way) -> None:
    wire.qm.put("A", b"1", syncpoint=True)
    wire.proxy.cut_after(way, 0)
    wire.qm.back_out()
    wire.qm.put("A", b"2")
    assert wire.bodies() == [b"2"]


@pytest.mark.parametrize("way", WAYS)
def test_a_put_outside_the_unit_of_work_has_an_unknown_outcome_if_its_answer_is_lost(wire: Wire, way: Way) -> None:
    wire.qm.put("A", b"0")
    wire.qm.put("A", b"in", syncpoint=True)
    wire.proxy.cut_after(way, 0)
    with pytest.raises(OutcomeUnknown):
        wire.qm.put("A", b"outside", syncpoint=False)
    with pytest.raises(ConnectionBroken):
        wire.qm.put("A", b"in", syncpoint=True)
    wire.qm.back_out()
    wire.qm.put("A", b"then")
    assert wire.bodies() == ([b"0", b"then"] if way == "to server" else [b"0", b"outside", b"then"])


@pytest.mark.parametrize("way", WAYS)
def test_the_first_call_of_a_unit_of_work_is_repeated_on_a_new_connection(wire: Wire, way: Way) -> None:
    wire.proxy.cut_after(way, 0)
    with wire.qm.unit_of_work():
        wire.qm.put("A", b"1")
        wire.qm.put("A", b"2")
    assert wire.bodies() == [b"1", b"2"]


# --- leases


@pytest.mark.parametrize("way", WAYS)
def test_a_lease_outlives_the_connection_that_uses_it(wire: Wire, way: Way) -> None:
    lease = wire.qm.lease()
    with lease:
        wire.qm.put("A", b"1")
        wire.proxy.cut_after(way, 0)
        with pytest.raises(OutcomeUnknown):
            wire.qm.put("A", b"2")
        with pytest.raises(ConnectionBroken, match="leaves the lease as it is"):
            wire.qm.put("A", b"never")
    with wire.qm.resume_lease(lease.token):
        wire.proxy.cut_after(way, 0)
        with pytest.raises(ConnectionBroken, match="leaves the lease as it is"):
            wire.qm.depth("A")
    with wire.qm.resume_lease(lease.token) as again:
        wire.qm.put("A", b"3")
        again.commit()
    assert wire.bodies() == ([b"1", b"3"] if way == "to server" else [b"1", b"2", b"3"])


@pytest.mark.parametrize("way", WAYS)
def test_entering_a_lease_is_repeated_after_a_lost_connection(wire: Wire, way: Way) -> None:
    lease = wire.qm.lease()
    wire.proxy.cut_after(way, 0, quietly=True)
    with lease:
        wire.qm.put("A", b"1")
        wire.proxy.cut_after(way, 0)
        with pytest.raises(OutcomeUnknown):
            lease.commit()
    wire.qm.queues()
    assert wire.bodies() == ([] if way == "to server" else [b"1"])


# --- the previous connection ends before the new one begins


def test_a_repeated_get_does_not_skip_the_message_of_the_lost_answer(wire: Wire) -> None:
    """The server has not yet noticed that the connection that got the message is lost."""
    for body in (b"1", b"2", b"3"):
        wire.near.put("A", body)
    for order in ("relaxed", "strict"):
        with wire.qm.unit_of_work() as unit:
            wire.proxy.cut_after("to client", 0, quietly=True)
            assert [wire.qm.get("A", read_order=order).body for _ in range(3)] == [b"1", b"2", b"3"]
            unit.back_out()
    assert wire.bodies() == [b"1", b"2", b"3"]


def test_a_lost_exclusive_open_does_not_block_its_repetition(wire: Wire) -> None:
    wire.proxy.cut_after("to client", 0, quietly=True)
    with wire.qm.open("A", input="exclusive") as handle:
        wire.proxy.abandon()
        wire.near.put("A", b"1")
        assert handle.get().body == b"1"


def test_reconnecting_leaves_only_one_connection_at_the_server(wire: Wire) -> None:
    before = len(wire.near.inspect.connections())
    for _ in range(3):
        wire.proxy.abandon()
        wire.qm.queues()
        assert len(wire.near.inspect.connections()) == before


def test_a_resume_secret_is_valid_only_for_its_own_user() -> None:
    one, ended = Resumable(bytes(32)), list[int]()
    for number in (7, 8):
        one.ends[number] = lambda number=number: ended.append(number)  # type: ignore[misc]
    secret = one.secret(7, "anna")
    found = one.end_of(secret, "anna")
    assert found is not None
    found()
    assert ended == [7]
    assert one.number_of(secret) == 7
    assert one.end_of(secret, "bob") is None
    assert one.end_of(one.secret(8, "bob")[:8] + secret[8:], "anna") is None
    assert one.end_of(Resumable(b"1" * 32).secret(7, "anna"), "anna") is None
    for wrong in (b"", b"x", secret + b"x"):
        assert one.number_of(wrong) == 0
        assert one.end_of(wrong, "anna") is None


# --- waits, and calls on a connection that has ended meanwhile


def test_a_wait_continues_after_lost_connections_and_loses_no_message(wire: Wire) -> None:
    got: list[bytes] = []

    def wait() -> None:
        with wire.qm.unit_of_work():
            got.append(wire.qm.get("A", wait=600).body)

    def waits_anew() -> bool:
        found = {one.connection for one in wire.near.inspect.waits()} - seen
        seen.update(found)
        return bool(found)

    seen, thread = set[int](), threading.Thread(target=wait)
    thread.start()
    for _ in range(5):
        until(waits_anew, "it waits on a new connection")
        wire.proxy.cut()
    until(waits_anew, "it waits on a new connection")
    wire.near.put("A", b"1")
    thread.join()
    assert got == [b"1"]
    assert wire.bodies() == []


def test_a_repeated_wait_waits_no_longer_than_it_was_asked_to(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    now = [100.0]
    monkeypatch.setattr(store, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=lambda _: None))
    encode = wire_format.encode_call

    def encoded(verb: str, arguments: Any, keywords: Any) -> bytes:
        if verb == "wait":
            asked.append(arguments[0].options.wait)
            now[0] += 40
            if len(asked) < 2:
                wire.proxy.cut_after("to server", 0)
            else:
                wire.near.put("A", b"1")
        return encode(verb, arguments, keywords)

    monkeypatch.setattr(store, "encode_call", encoded)
    with wire.qm.unit_of_work():
        assert wire.qm.get("A", wait=60).body == b"1"
    assert asked == [60, 20]


def test_a_call_after_the_connection_has_ended_reconnects_unless_a_unit_was_open(wire: Wire) -> None:
    wire.qm.put("A", b"0")
    wire.proxy.cut()
    until(lambda: has_come(wire.store._link._socket), "the end has come")
    assert wire.qm.put("A", b"1").uid is not None
    wire.qm.put("A", b"2", syncpoint=True)
    wire.proxy.cut()
    until(lambda: has_come(wire.store._link._socket), "the end has come")
    with pytest.raises(ConnectionBroken):  # certainly not committed
        wire.qm.commit()
    wire.qm.back_out()
    assert wire.bodies() == [b"0", b"1"]


def test_closing_a_lost_connection_does_not_reconnect(wire: Wire) -> None:
    wire.proxy.cut()
    before = dict(wire.proxy.passed)
    wire.qm.close()
    assert wire.proxy.passed == before


def test_reconnecting_does_not_change_the_random_numbers_of_the_program(wire: Wire) -> None:
    before = random.getstate()
    pauses = store.pauses()
    assert 0 < next(pauses) < next(pauses) + next(pauses)
    assert random.getstate() == before


def test_reconnecting_can_be_switched_off(wire: Wire) -> None:
    wire.store._reconnects = 0
    wire.proxy.cut_after("to client", 0)
    for _ in range(2):
        with pytest.raises(ConnectionBroken):
            wire.qm.depth("A")


# --- cuts at each byte


def size_of(wire: Wire, way: Way, act: Callable[[], object]) -> int:
    before = wire.proxy.passed[way]
    act()
    return wire.proxy.passed[way] - before


@gate
@pytest.mark.parametrize("way", WAYS)
def test_a_put_cut_at_any_byte_has_an_unknown_outcome_and_happens_at_most_once(wire: Wire, way: Way) -> None:
    wire.qm.put("A", b"first")
    size = size_of(wire, way, lambda: wire.qm.put("A", b"first"))
    assert size > 50
    for count in range(size):
        wire.qm.put("A", b"before")
        there = wire.near.depth("A")
        wire.proxy.cut_after(way, count)
        with pytest.raises(OutcomeUnknown) as unknown:
            wire.qm.put("A", b"cut")
        wire.qm.queues()
        has_happened = wire.near.depth("A") > there
        assert has_happened == (way == "to client")
        found = [one.uid for one in wire.near.browse("A") if one.body == b"cut" and one.uid in unknown.value.uids]
        assert len(unknown.value.uids) == 1
        assert len(found) == has_happened


@gate
@pytest.mark.parametrize("way", WAYS)
def test_a_get_cut_at_any_byte_has_an_unknown_outcome_and_takes_at_most_one_message(wire: Wire, way: Way) -> None:
    for _ in range(3):
        wire.near.put("A", b"body")
    wire.qm.get("A")
    size = size_of(wire, way, lambda: wire.qm.get("A"))
    assert size > 50
    for count in range(size):
        wire.near.put("A", b"body")
        there = wire.near.depth("A")
        wire.proxy.cut_after(way, count)
        with pytest.raises(OutcomeUnknown):
            wire.qm.get("A")
        wire.qm.queues()
        assert there - wire.near.depth("A") == (way == "to client")


@gate
@pytest.mark.parametrize("way", WAYS)
def test_a_get_in_a_unit_cut_at_any_byte_is_repeated_and_gets_the_same_message(wire: Wire, way: Way) -> None:
    for body in (b"1", b"2"):
        wire.near.put("A", body)

    def get() -> None:
        with wire.qm.unit_of_work() as unit:
            assert wire.qm.get("A", read_order="strict").body == b"1"
            unit.back_out()

    get()
    with wire.qm.unit_of_work() as unit:
        size = size_of(wire, way, lambda: wire.qm.get("A"))
        unit.back_out()
    for count in range(size + 1):
        wire.proxy.cut_after(way, count, quietly=count % 2 == 0)
        get()
    assert wire.bodies() == [b"1", b"2"]


@pytest.mark.parametrize("step", [pytest.param(41, marks=gate), pytest.param(1, marks=nightly)])
@pytest.mark.parametrize("way", WAYS)
def test_reconnecting_and_reopening_handles_succeeds_after_a_cut_at_any_byte(wire: Wire, way: Way, step: int) -> None:
    with wire.qm.open("A", input="exclusive", browse=True) as one, wire.qm.open("A", output=True) as two:

        def again() -> None:
            wire.proxy.cut()
            two.put(b"x", deduplicate="the same")

        again()
        size = size_of(wire, way, again)
        assert size > 500
        connections = len(wire.near.inspect.connections())
        for count in range(0, size, step):
            wire.proxy.cut()
            wire.proxy.cut_after(way, count, quietly=count % 2 == 0)
            two.put(b"x", deduplicate="the same")
            assert [each.body for each in one.browse()] == [b"x"]
        assert len(wire.near.inspect.connections()) == connections


def test_a_program_sets_for_how_long_reconnecting_is_tried() -> None:
    far: Any = make_store("remote", ManualClock())
    where, token = far.path, far.served.token
    with pytest.raises(inorder.ArgumentError, match="reconnect must be seconds from 0 to 86,400, not -1"):
        inorder.connect(where, token=token, reconnect=-1)
    with pytest.raises(inorder.ArgumentError, match="reconnect must be left out"):
        inorder.connect(reconnect=1)
    qm = inorder.connect(where, token=token, reconnect=0)
    qm.create_queue("Q")
    store: Any = qm._services.store
    store._link.drop()
    for _ in range(2):
        with pytest.raises(ConnectionBroken):
            qm.put("Q", b"")
    qm.internals.abandon()
    with inorder.connect(where, token=token) as other:
        other._services.store._link.drop()  # type: ignore[attr-defined]
        other.put("Q", b"")
    far.inner.close_store()


def test_a_unit_of_work_is_lost_with_a_link_that_was_dropped_between_two_calls(wire: Wire) -> None:
    wire.qm.put("A", b"1", syncpoint=True)
    wire.store._link.drop()
    assert wire.qm.inspect.has_unit
    for _ in range(2):
        with pytest.raises(ConnectionBroken, match="back out"):
            wire.qm.commit()
    wire.qm.back_out()
    wire.qm.put("A", b"2", syncpoint=True)
    wire.qm.commit()
    assert wire.bodies() == [b"2"]


def test_a_client_whose_connection_the_store_has_lost_connects_again() -> None:
    far: Any = make_store("remote", ManualClock())
    with inorder.connect(far, program="test") as qm:
        qm.create_queue("Q")
        qm.put("Q", b"kept")
        unit = qm.unit_of_work().__enter__()
        qm.put("Q", b"lost")
        far.restart()
        with pytest.raises(ConnectionBroken):
            qm.put("Q", b"lost too")
        with pytest.raises(ConnectionBroken, match="back out"):
            qm.put("Q", b"lost as well")
        unit.back_out()
        assert [qm.get("Q").body, qm.depth("Q")] == [b"kept", 0]
    far.inner.close_store()


# ---- each verb, cut before the server has the call and before the client has the answer (W-4)


CALLS: Final = calls()
LOCAL: Final = {"settle", "has_unit", "end_waits"}  # the client answers these itself while there is no unit and no wait
RUNS: Final = {"note_channel: taken", "reset_channel: there"}  # the run ends with its connection


def test_each_verb_has_a_call() -> None:
    assert {one.verb for one in CALLS.values()} == VERBS.keys()


@pytest.mark.parametrize("title", [title for title, one in CALLS.items() if one.verb not in LOCAL])
def test_a_call_whose_connection_breaks_happens_once_or_its_outcome_is_unknown(title: str) -> None:
    call = CALLS[title]
    with elsewhere() as at:
        call.before(at)
        without, lost = state(at.store), call.lost(at)
        answer, once = call.made(at), state(at.store)
    for way in ("to server", "to client"):
        with elsewhere() as at:
            call.before(at)
            at.far._reserve(1)  # so that a put need not reserve numbers
            at.proxy.cut_after(way, 0)
            _check(call, call.made(at), way, lost, answer)
            assert at.far.manager().name == "QM1", "the connection is made again"
            expected = without if lost == "unknown" and way == "to server" else once
            if title in RUNS:
                expected = without if way == "to server" else once
            assert state(at.store) == expected, way


def _check(call: Call, found: Any, way: Way, lost: str, answer: Any) -> None:
    if call.title in RUNS:
        assert found is Fenced
    elif call.title == "settle_staging: an own one" and way == "to client":
        assert found is OutcomeUnknown, "the staging is gone: the ledger must be asked"
    elif call.title == "one_message: confirm a get" and way == "to client":
        assert found is Reason.NOT_FOUND, "a warning: the message is gone"
    elif lost == "unknown":
        assert found is OutcomeUnknown
    elif isinstance(answer, type):
        assert found is answer
    else:
        assert type(found) is type(answer), found


def test_requests_go_on_after_a_loss_with_a_new_temporary_queue(wire: Wire) -> None:
    def ask() -> bytes:
        server = threading.Thread(target=lambda: wire.near.serve("A", lambda request: request.body.upper(), wait=0))
        replies = wire.qm.replies("A", b"x", timeout=60)
        server.start()
        server.join()
        return next(replies).body

    assert ask() == b"X"
    wire.proxy.cut()
    assert ask() == b"X"
    wire.proxy.cut()
    assert ask() == b"X"
    assert wire.qm.internals.is_idle
