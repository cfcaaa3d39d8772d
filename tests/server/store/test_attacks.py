"""Attacks on the server of a remote store by users with few rights and by clients that send arbitrary data."""

from __future__ import annotations

import asyncio
import os
import struct
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest
from tests.helpers.support import Call

import inorder
from inorder import errors
from inorder.model.attributes import define_queue
from inorder.model.kinds import Report
from inorder.model.message import Message, Place, UniqueId
from inorder.model.options import EVERYTHING, GetOptions, Match, OpenOptions, PutOptions
from inorder.rules.grouping import NOTHING_OPEN
from inorder.rules.lifecycle import Event
from inorder.rules.ordering import UNSET
from inorder.server import connected_clients
from inorder.server.store import checking, endpoint, places
from inorder.stores.engine.store import QueueStore
from inorder.stores.remote import frames
from inorder.stores.remote.address import parse
from inorder.stores.remote.frames import VALUES_MAX, FrameKind
from inorder.stores.remote.store import RemoteStore
from inorder.stores.remote.wire import WireError, decode_error, encode_call
from inorder.stores.seam.records import (
    Claimer,
    ClaimRequest,
    GetRequest,
    LockRequest,
    OneMessage,
    PutRequest,
    StageRequest,
    Stretch,
)
from inorder.stores.seam.views import LookRequest
from inorder.testing.remote import the_server

ANY = OpenOptions(input="shared", output=True, browse=True)
FULL = int(Report.EXCEPTION_WITH_FULL_DATA)


class Attacker(RemoteStore):
    """A client logged in as a user, which can have a handle of the queue A."""

    def __init__(self, url: str, user: str, token: str, how: OpenOptions | None) -> None:
        super().__init__(parse(url, {"token": token}), "attack", reconnects=0.0)
        self.user, self.token = user, token
        self.handle = 0 if how is None else self.open(0, "A", how).handle

    def puts(self, message: Message | bytes = b"x", *, in_unit: bool = False, **options: Any) -> UniqueId:
        return self.put(PutRequest(self.handle, [message], PutOptions(**options), NOTHING_OPEN, in_unit)).results[0].uid

    def request(self, *, syncpoint: bool = False, most: int = 1, **options: Any) -> GetRequest:
        return GetRequest(self.handle, GetOptions(**options), NOTHING_OPEN, UNSET, syncpoint, most)

    def one(self, event: Event, uid: UniqueId, **ids: int) -> Any:
        return self.one_message(OneMessage(handle=self.handle, event=event, uid=uid, **ids))

    def asks(self, verb: str, *given: Any) -> None:
        """Makes a call that the client itself would refuse. Raises: the error of the server."""
        raise self.raw(FrameKind.CALL, encode_call(verb, given, {}))

    def raw(self, kind: FrameKind, payload: bytes, number: int | None = None) -> errors.InorderError:
        """Sends a payload. Returns the error that the server answers."""
        found, answer = self._link.call(payload, kind=kind, number=number)
        assert found == FrameKind.ERROR
        return decode_error(answer)


class Served:
    """A store in a file, its server, and clients of its users."""

    def __init__(self, path: Path) -> None:
        self.qm = inorder.connect(path)
        self.store: QueueStore = self.qm._services.store  # type: ignore[assignment]
        for name in ("A", "SECRET"):
            self.qm.create_queue(name)
        self.qm.create_queue("TO.PARIS", usage="transmission")
        for given in (
            define_queue("MODEL", "model"),
            define_queue("BACK", "remote", remote_manager=self.store.manager().name),
        ):
            self.store.create_queue(given)
        self.secret = self.qm.put("SECRET", b"the secret")
        self.server = the_server(os.getpid())
        self.administrators = self.server.add(self.store, self.qm)
        self.clients: list[Attacker] = []

    def user(self, name: str, grants: str = "", *, role: str = "", how: OpenOptions | None = None) -> Attacker:
        """A client of a new user with a role, or with these grants on A."""
        queues = {} if role else {"A": grants.split()} if grants else {"NONE": ["put"]}
        self.qm.accounts.create_user(name, roles=[role or "application"], queues=queues)
        return self.client(name, how)

    def client(self, name: str, how: OpenOptions | None = None) -> Attacker:
        token = self.qm.accounts.create_token(name, "test")
        self.server.admit(token, self.administrators)
        self.clients.append(Attacker(self.server.url, name, token, how))
        return self.clients[-1]

    def until_it_waits(self, client: Attacker) -> None:
        """Returns when a call of this client waits."""
        owner, room = client.hello.connection, self.store.waiting
        Call(lambda: room.watch_until(lambda: room.is_asleep(owner))).result()

    def bodies(self, queue: str = "A") -> list[bytes]:
        return [one.body for one in self.qm.browse(queue)]

    def close(self) -> None:
        for one in self.clients:
            one.close_store()
        self.server.remove(self.administrators)
        self.qm.close()


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(connected_clients, "pause", lambda _: asyncio.Event().wait())  # only calls check their user
    served = Served(tmp_path / "a.db")
    yield served
    served.close()


# --- attacks that the table of authorities and the store refuse

Attack = Callable[[Served, Attacker], Any]


def opens(queue: str, **how: Any) -> Attack:
    rest = {name: how.pop(name) for name in ("manager", "dynamic_name") if name in how}
    return lambda _, client: client.open(0, queue, OpenOptions(**how), **rest)


def call(verb: str, *arguments: Any) -> bytes:
    return msgspec.msgpack.encode([verb, arguments])


def raises(error: errors.InorderError) -> None:
    raise error


# fmt: off
REFUSED: list[tuple[str, Attack, type[errors.InorderError]]] = [
    ("read a queue by its name", opens("SECRET", browse=True), errors.NotAuthorized),
    ("put through an alias of the queue manager", opens("SECRET", output=True, manager="BACK"), errors.NotAuthorized),
    ("make a queue through an alias of the queue manager",
        opens("MODEL", input="shared", manager="BACK", dynamic_name="SECRET.2"), errors.NotAuthorized),
    ("put to another queue manager", opens("PAYROLL", output=True, manager="TO.PARIS"), errors.NotAuthorized),
    ("look at a queue", lambda _, client: client.look(
        LookRequest(queue="SECRET", order="physical", after=None, most=9, preview=9)), errors.NotAuthorized),
    ("put a cursor on a message of another queue", lambda at, client: client.get(client.request(
        browse="cursor")._replace(cursor=UNSET._replace(place=Place(0, 1, 0), number=at.secret.uid.number))),
        errors.NoMessageUnderCursor),
    ("read a user", lambda _, client: client.asks("object", "user", "victim"), errors.NotAuthorized),
    ("ask for a report where one may not put", lambda _, client: client.puts(
        Message(b"x", report=int(Report.COA), reply_to_queue="SECRET")), errors.NotAuthorized),
    ("take a message under the unique id of the future", lambda at, client: client.puts(
        uid=UniqueId(at.secret.uid.origin, 10**12)), errors.NotAuthorized),
    ("confirm under a made-up id", lambda at, client: client.one(
        Event.CONFIRM_PUT, at.clients[0].puts(confirm_id=5), confirm_id=2**63), errors.ConfirmIdMismatch),
    ("watch with a handle for puts", lambda _, client: raises(client.raw(FrameKind.WATCH, call(
        "check_handle", client.open(0, "A", OpenOptions(output=True)).handle))), errors.NotOpenFor),
    ("settle the unit of another connection", lambda _, client: raises(
        client.raw(FrameKind.CALL, call("settle", 1, "commit", None))), errors.ArgumentError),
    ("a lease without an end", lambda _, client: client.begin_lease(0, "l", "", 1e300, None), errors.ArgumentError),
    ("a lease of no time", lambda _, client: client.begin_lease(0, "l", "", 0.0, None), errors.ArgumentError),
    ("a selector that is too long", lambda _, client: client.get(
        client.request(match=Match(selector="NOT " * 9_000 + "x=1"))), errors.InorderError),
    ("a long name of a prepared unit", lambda _, client: (
        client.puts(in_unit=True), client.prepare(0, "n" * 257)), errors.ArgumentError),
    ("a long name of a lease",
        lambda _, client: client.begin_lease(0, "n" * 257, "", 60.0, None), errors.ArgumentError),
]
# fmt: on


def test_known_attacks_are_refused(at: Served) -> None:
    at.user("victim", "put get browse", how=ANY)
    attacker = at.user("attacker", "put get browse", how=ANY)
    for title, attack, error in REFUSED:
        try:
            done = attack(at, attacker)
        except error:
            continue
        pytest.fail(f"it succeeded: {title}: {done}")
    assert at.bodies("SECRET") == [b"the secret"]
    assert attacker.read_stretch(attacker.handle, Stretch(False, 0, (0, 0), (2**62, 0), 9))[0].messages == 0
    assert not attacker.get(attacker.request(match=Match(token=at.qm.browse("SECRET").__next__().token))).messages


# --- attacks that once succeeded


def test_a_client_cannot_cause_an_event_reserved_for_the_queue_manager(at: Served) -> None:
    victim = at.user("victim", "put", how=OpenOptions(output=True))
    attacker = at.user("attacker", "get put browse", how=ANY)
    held = victim.puts(b"held", confirm_id=5)
    for event in set(Event) - {Event.CONFIRM_PUT, Event.CONFIRM_GET, Event.UNLOCK, Event.DELETE}:
        with pytest.raises(errors.ArgumentError, match="event must be one of"):
            attacker.one(event, held)
    victim.one(Event.CONFIRM_PUT, held)
    assert at.bodies() == [b"held"]


def test_a_forged_report_names_its_author_and_leaves_the_queue_readable(at: Served) -> None:
    attacker = at.user("attacker", "put browse", how=OpenOptions(output=True, browse=True))
    attacker.puts(b"mine")
    token = next(at.qm.browse("A")).token
    made_up = Message(b"lies", report=FULL, reply_to_queue="A", user_identifier="root").with_values(token=token)
    for reason in (-1, 2**40):
        with pytest.raises(errors.ArgumentError, match="reason must be"):
            attacker.report_exception(0, made_up, reason, in_unit=False)
    attacker.report_exception(0, made_up.with_values(token=b"\xff" * 40), 2030, in_unit=False)
    assert at.bodies() == [b"mine"]  # nobody put a message with such a token
    attacker.report_exception(0, made_up, 2030, in_unit=False)
    report = list(at.qm.browse("A"))[1]
    assert (report.body, report.user_identifier, report.feedback) == (b"lies", "attacker", 2030)
    assert not at.user("reader", role="reader").is_own(b"\xff" * 40)


def test_settling_claims_without_delivery_reports_is_refused_without_control_authority(at: Served) -> None:
    client = at.user("attacker", "get", how=OpenOptions(input="shared"))
    at.qm.put("A", b"x")
    epoch = client.begin_claims(client.handle, "app").epoch
    claimer = Claimer(client.handle, "app", epoch)
    client.claim(ClaimRequest(claimer, 0, GetOptions(), 1, 1_000))
    with pytest.raises(errors.NotAuthorized, match="reports"):
        client.settle_claims(claimer._replace(delivers=False), 1)
    assert client.settle_claims(claimer, 1) == 1

    at.qm.put("A", b"y")
    operator = at.user("operator", role="operator", how=OpenOptions(input="shared"))
    claimer = Claimer(operator.handle, "other", operator.begin_claims(operator.handle, "other").epoch)
    operator.claim(ClaimRequest(claimer, 0, GetOptions(), 1, 1_000))
    assert operator.settle_claims(claimer._replace(delivers=False), 1) == 1


def test_an_error_names_no_queue_that_the_user_may_not_see(at: Served) -> None:
    at.qm.accounts.create_user("attacker", roles=["application"], queues={"SEC*": ["put"], "A*": ["put"]})
    at.qm.create_queue("AB")
    client = at.client("attacker")
    with pytest.raises(errors.UnknownQueue, match="did you mean SECRET"):
        client.open(0, "SECRE", OpenOptions(output=True))
    at.qm.accounts.alter_user("attacker", queues={"SECRE": ["put"]})
    with pytest.raises(errors.UnknownQueue) as refused:
        client.open(0, "SECRE", OpenOptions(output=True))
    assert "SECRET" not in str(refused.value)
    assert refused.value.data["nearest"] == []


def test_starting_a_channel_is_logged_as_an_act(at: Served) -> None:
    operator = at.user("operator", role="operator")
    operator.start_channel("TO.PARIS on queue")
    (act,) = at.qm.accounts.acts()
    assert (act.act, act.queue, act.outcome) == ("start channel TO.PARIS on queue", "", "done")


@pytest.mark.parametrize("how", [{"delete": True}, {"purge": True}])
def test_only_an_administrator_deletes_a_queue_by_the_close_of_a_handle_that_did_not_make_it(
    at: Served, how: dict[str, bool]
) -> None:
    at.qm.create_queue("KEEPING", type="model", definition_type="permanent_dynamic")
    with at.qm.open("KEEPING", input="shared", dynamic_name="MADE.*") as made:
        name = made.name
    reader = at.user("reader")
    at.qm.accounts.alter_user("reader", queues={name: ["get"]})
    handle = reader.open(0, name, OpenOptions(input="shared")).handle
    with pytest.raises(errors.NotAuthorized):
        reader.close(handle, **how)
    reader.close(handle)
    administrator = at.user("administrator", role="admin")
    handle = administrator.open(0, name, OpenOptions(input="shared")).handle
    administrator.close(handle, **how)
    assert [(one.user, one.act, one.queue, one.outcome) for one in at.qm.accounts.acts()] == [
        ("administrator", "delete", name, "done")
    ]


def test_a_check_refuses_a_part_number_out_of_range(at: Served) -> None:
    operator = at.user("operator", role="operator")
    _, parts = operator.check(None)
    for part in (-1, parts):
        with pytest.raises(errors.ArgumentError, match="part must be"):
            operator.check(part)


# --- rights that change


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda at, _: at.qm.accounts.alter_user("me", queues={"A": ["put"]}), errors.NotAuthorized),
        (lambda at, _: at.qm.accounts.alter_user("me", enabled=False), errors.LogInRefused),
        (lambda at, _: at.qm.accounts.delete_user("me"), errors.LogInRefused),
        (lambda at, client: at.qm.accounts.revoke_token(client.token), errors.LogInRefused),
    ],
    ids=["no get", "disabled", "deleted", "revoked"],
)
@pytest.mark.parametrize("browse", [None, "first"])
def test_a_wait_delivers_nothing_to_a_user_who_has_lost_access(
    at: Served, change: Callable[[Served, Attacker], Any], error: type[errors.InorderError], browse: Any
) -> None:
    client = at.user("me", "get browse", how=OpenOptions(input="shared", browse=True))
    waiting = Call(lambda: client.wait(client.request(wait=600.0, browse=browse)))
    at.until_it_waits(client)
    change(at, client)
    at.qm.put("A", b"x")
    with pytest.raises(error):
        waiting.result()
    assert at.bodies() == [b"x"]
    with pytest.raises(error):
        client.get(client.request(browse=browse))


def test_a_revoked_token_ends_a_wait(at: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connected_clients, "pause", lambda _: asyncio.sleep(0.01))
    client = at.user("me", "get", how=OpenOptions(input="shared"))
    waiting = Call(lambda: client.wait(client.request(wait=600.0, syncpoint=True)))
    at.until_it_waits(client)
    at.qm.accounts.revoke_token(client.token)
    with pytest.raises(errors.ConnectionBroken):
        waiting.result()


def test_a_changed_role_takes_effect_at_the_next_call(at: Served) -> None:
    client = at.user("me", "put")
    with pytest.raises(errors.NotAuthorized):
        client.clear_queue("A")
    at.qm.accounts.alter_user("me", roles=["operator"], queues={})
    client.clear_queue("A")
    at.qm.accounts.alter_user("me", roles=["reader"])
    with pytest.raises(errors.NotAuthorized):
        client.clear_queue("A")
    at.qm.accounts.delete_user("me")
    at.qm.accounts.create_user("me", roles=["admin"])
    with pytest.raises(errors.LogInRefused):  # the new user with that name is a different user
        client.clear_queue("A")


def test_a_watch_sends_no_notice_to_a_user_who_has_lost_access(at: Served) -> None:
    client, told = at.user("me", "get", how=OpenOptions(input="shared")), list[None]()
    first = threading.Event()

    def changed() -> None:
        told.append(None)
        first.set()

    watching = Call(lambda: client.watch(client.handle, changed))
    first.wait()
    at.qm.accounts.alter_user("me", queues={"A": ["put"]})
    seen = len(told)
    at.qm.put("A", b"x")
    with pytest.raises(errors.NotAuthorized):
        watching.result()
    assert len(told) == seen


# --- load


def test_the_messages_and_bytes_of_an_answer_are_limited(at: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "GOT_BYTES", 3_000)
    client = at.user("me", "get browse", how=OpenOptions(input="shared", browse=True))
    at.qm.put_many("A", [b"x" * 1_000] * 300)
    first = client.get(client.request(browse="first"))
    following = client.request(browse="next")._replace(state=first.state, cursor=first.cursor)
    assert len(client.browse_page(following, 2**62)) == checking.PAGE_MESSAGES
    for match in (EVERYTHING, Match(selector="x IS NULL")):
        assert len(client.get(client.request(most=2**62, match=match)).messages) == 3
    at.qm.put_many("A", [b"y" * 1_000_000] * 3)
    assert len(client.get(client.request(most=1)).messages) == 1
    monkeypatch.setattr(checking, "GOT_MESSAGES", 2)
    assert len(client.get(client.request(most=2**62)).messages) == 2


def test_a_browse_and_lock_is_limited_and_locks_only_the_messages_of_its_answer(
    at: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "GOT_BYTES", 3_000)
    client = at.user("me", "get browse", how=OpenOptions(input="shared", browse=True))
    at.qm.put_many("A", [b"x" * 1_000] * 10)
    request = LockRequest(handle=client.handle, match=EVERYTHING, confirm_id=0)
    assert [len(client.browse_and_lock(request).messages) for _ in range(2)] == [3, 3]
    monkeypatch.setattr(checking, "GOT_MESSAGES", 2)
    assert len(client.browse_and_lock(request).messages) == 2
    assert len(at.qm.get_many("A", 10)) == 2


def test_a_user_cannot_stage_more_rows_than_the_maximum_depth_of_the_queue(at: Served) -> None:
    client, other = (at.user(name, "put", how=OpenOptions(output=True)) for name in ("me", "you"))
    at.qm.alter_queue("A", max_depth=5)

    def stage(one: Attacker, name: str, count: int, *, is_bounded: bool = True) -> None:
        one.stage(StageRequest(one.handle, name, count, {"body": [b"x"] * count}, 60.0, is_bounded=is_bounded))

    stage(client, "first", 3)
    stage(client, "second", 2)
    refused = "user me has staged 5 rows for A; 1 more would exceed its limit of 5"
    for name in ("first", "third"):
        with pytest.raises(errors.QueueFull, match=refused):
            stage(client, name, 1, is_bounded=False)
    stage(other, "other", 5)
    client.undo_staging(["first"])
    stage(client, "third", 3)


def test_claims_ended_by_another_user_are_still_listed_under_their_owner(at: Served) -> None:
    client, operator = at.user("me", "get", how=OpenOptions(input="shared")), at.user("you", role="admin")
    at.qm.put_many("A", [b"x"] * 4)
    ends: list[Callable[[], int]] = [
        lambda: operator.release_claims("A", "app"),
        lambda: operator.finish_claims("A", "app", 2),
    ]
    for nth, end in enumerate(ends):
        epoch = client.begin_claims(client.handle, "app").epoch
        client.claim(ClaimRequest(Claimer(client.handle, "app", epoch), nth, GetOptions(), 2, 100))
        end()
        assert [one.program.user for one in at.store.claims()] == ["me"]


def test_a_listing_is_sent_in_pages_and_a_client_that_asks_for_all_gets_all(
    at: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = at.user("me", "browse")
    at.qm.put_many("A", [b"x" * 1_000] * 10)
    request = LookRequest(queue="A", order="physical", after=None, most=2**62, preview=1_000)
    for name, most in (("LOOK_MESSAGES", 4), ("GOT_BYTES", 3_000)):
        monkeypatch.setattr(checking, name, most)
        with mock.patch.object(at.store, "look", wraps=at.store.look) as look:
            assert len(client.look(request)) == 10
        assert {call.args[0].most for call in look.call_args_list} == {4 if name == "LOOK_MESSAGES" else 3}


def test_a_payload_with_too_many_values_is_refused(at: Served) -> None:
    client, count = at.user("me"), VALUES_MAX + 1
    bomb = b"\x92\xaakeep_handles\x91\xdd" + struct.pack(">I", count) + b"\x80" * count
    error = client.raw(FrameKind.CALL, bomb)
    assert isinstance(error, errors.ArgumentError), "the caller shall not try again"
    assert f"at most {VALUES_MAX:,} values" in str(error)


VALUES: list[Any] = [
    *(None, True, 1, -1, 200, -100, 60_000, -30_000, 2**31, -(2**31), 2**62, -(2**62), 1.5),
    *("x" * length for length in (0, 1, 40, 300, 70_000)),
    *(b"x" * length for length in (0, 1, 300, 70_000)),
    *(msgspec.msgpack.Ext(1, b"x" * length) for length in (1, 2, 3, 4, 8, 16, 300, 70_000)),
    *([1] * length for length in (0, 20, 70_000)),
    *({str(n): n for n in range(length)} for length in (0, 1, 20, 70_000)),
]


def test_the_values_of_a_payload_are_counted_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in [*VALUES, VALUES]:
        count = counted(value)
        monkeypatch.setattr(frames, "VALUES_MAX", count)
        frames.check_values(msgspec.msgpack.encode(value))
        monkeypatch.setattr(frames, "VALUES_MAX", count - 1)
        with pytest.raises(WireError):
            frames.check_values(msgspec.msgpack.encode(value))


def counted(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + sum(1 + counted(one) for one in value.values())
    return 1 + sum(map(counted, value)) if isinstance(value, list) else 1


def test_slow_calls_of_one_user_do_not_hold_up_another(at: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "THREADS", 2)
    monkeypatch.setattr(endpoint, "USER_THREADS_MAX", 1)
    goes_on, slow = threading.Event(), at.store.gaps
    monkeypatch.setattr(at.store, "gaps", lambda *given: (goes_on.wait(), slow(*given))[1])
    other = at.user("other")
    attackers = [at.user("attacker", "browse"), at.client("attacker"), at.client("attacker")]
    calls = [Call(partial(one.gaps, "A", b"g")) for one in attackers]
    assert other.manager().name == at.store.manager().name
    assert not any(one.done for one in calls)
    goes_on.set()
    for one in calls:
        one.result()
