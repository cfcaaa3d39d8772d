"""Users who are disabled or lose an authority while a request waits: it takes, shows and claims nothing."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from tests.server.conftest import AS_NOBODY, PASSWORD, PORT, Served, add, alive, app_of, client_of
from tests.server.listening import Listener, listening
from tests.server.test_api_events import faster
from tests.server.test_messaging import number_of

import inorder
from inorder import QueueManager, aio
from inorder.aio import waiting
from inorder.errors import StoreError
from inorder.server import connected_clients
from inorder.server.api import events
from inorder.server.connected_clients import ConnectedClients
from inorder.server.identity import Identity
from inorder.server.users import Users

Q = "/inorder/v1/queues/Q1"
GRANTED: dict[str, Any] = {"roles": ["application"], "queues": {"Q1": ["get", "browse", "inquire"]}}
How = Callable[[inorder.QueueManager], object]
OUT: list[tuple[str, How, tuple[int, str, int]]] = [
    ("disabled", lambda qm: qm.accounts.alter_user("anna", enabled=False), (401, "MQWB0104E", 0)),
    ("deleted", lambda qm: qm.accounts.delete_user("anna"), (401, "MQWB0104E", 0)),
    ("revoked", lambda qm: qm.accounts.revoke_token(qm.accounts.tokens("anna")[0].name), (401, "MQWB0104E", 0)),
    ("no authority", lambda qm: qm.accounts.alter_user("anna", queues={}), (403, "MQWB0103E", 2035)),
]


async def asked(client: httpx.AsyncClient, ask: str) -> httpx.Response:
    """Sends a request that waits. Returns its answer."""
    method, path, headers, query = "POST", f"{Q}/get", dict[str, str](), {"wait": 600}
    match ask:
        case "get_many" | "get_group":
            path = f"{Q}/{ask}"
        case "get in a lease":
            begun = await client.post("/inorder/v1/leases", params={"seconds": 600})
            headers = {"Inorder-Lease": begun.json()["token"]}
        case "get under an id":
            query["confirm_id"] = 7
        case "browse":
            method, path = "GET", f"{Q}/browse"
        case "get of IBM's":
            method, path = "DELETE", "/ibmmq/rest/v3/messaging/qmgr/QM1/queue/Q1/message"
            query = {"wait": 600_000}
        case "claim":
            pytest.importorskip("pyarrow", reason="needs the extra inorder[arrow]")
            begun = await client.post(f"{Q}/readers/copy")
            path, query = f"{Q}/readers/copy/arrow", {"epoch": begun.json()["epoch"], "after": 0, "wait": 600}
    return await client.request(method, path, params=query, headers=headers)


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Requests that have looked at the queue and now wait."""
    found: list[object] = []
    has_looked = waiting.QueueWatch._has_looked

    def noted(watch: waiting.QueueWatch, waiter: Any) -> None:
        has_looked(watch, waiter)
        found.append(waiter)

    monkeypatch.setattr(waiting.QueueWatch, "_has_looked", noted)
    return found


async def refused_as_it_waits(
    client: httpx.AsyncClient, qm: QueueManager, ask: str, looked: list[object], then: Callable[[], object]
) -> tuple[int, str, int]:
    """The refusal of a waiting request after `then` was called and a message has arrived."""
    asking = asyncio.ensure_future(asked(client, ask))
    while not looked:
        assert not asking.done(), "it did not wait"
        await asyncio.sleep(0.01)
    then()
    qm.put("Q1", b"x")
    found = number_of(await asking)
    assert qm.get("Q1").body == b"x", "nobody holds it"
    return found


@pytest.mark.parametrize(
    ("ask", "how", "expected"),
    [(ask, *OUT[3][1:]) for ask in ("get_many", "get_group", "get in a lease", "get under an id", "browse", "claim")]
    + [("get", *one[1:]) for one in OUT]
    + [("get of IBM's", *one[1:]) for one in (OUT[0], OUT[3])],
)
async def test_a_waiting_request_delivers_nothing_to_a_user_who_has_lost_access(
    client: httpx.AsyncClient,
    qm: QueueManager,
    served: Served,
    ask: str,
    how: How,
    expected: tuple[int, str, int],
    looked: list[object],
) -> None:
    add(served, "anna", **GRANTED)
    client.auth = AS_NOBODY
    client.headers["Authorization"] = f"Bearer {qm.accounts.create_token('anna', 'a program')}"
    assert await refused_as_it_waits(client, qm, ask, looked, lambda: how(qm)) == expected


# --- streams of events


@contextlib.asynccontextmanager
async def listened(client: httpx.AsyncClient, qm: QueueManager, path: str) -> AsyncIterator[Listener]:
    """A stream that anna has opened."""
    token = qm.accounts.create_token("anna", "a program")
    async with listening(app_of(client), path, authorization=f"Bearer {token}") as listener:
        await listener.next()
        assert listener.status == 200
        yield listener


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the server look up connected users without pauses."""
    real = asyncio.sleep
    monkeypatch.setattr(connected_clients, "pause", lambda seconds: real(0.001))


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps streams from sending anything by themselves."""
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 600.0)
    monkeypatch.setattr(events, "pause", lambda seconds: asyncio.sleep(600))


@pytest.mark.parametrize("beats", [0.02, 600.0], ids=["a sign of life", "a change"])
@pytest.mark.parametrize(
    ("path", "out"),
    [(f"{Q}/events", one) for one in OUT] + [("/inorder/v1/events", one) for one in OUT[:3]],
    ids=[*(f"messages {one[0]}" for one in OUT), *(f"queues {one[0]}" for one in OUT[:3])],
)
async def test_a_stream_ends_when_its_user_loses_access(
    served: Served,
    path: str,
    out: tuple[str, How, tuple[int, str, int]],
    beats: float,
    monkeypatch: pytest.MonkeyPatch,
    client: httpx.AsyncClient,
    qm: QueueManager,
) -> None:
    _, how, expected = out
    add(served, "anna", **GRANTED)
    faster(monkeypatch, beats)
    async with listened(client, qm, path) as listener:
        if not path.startswith(Q):
            assert [one["name"] for one in (await listener.event()).data["queues"]] == ["Q1"]
        how(qm)
        if beats > 1:
            qm.put("Q1", b"secret")
        found = await listener.event()
        assert (found.kind, found.data["message"][:9], found.data["reasonCode"]) == ("failed", *expected[1:])
        assert await listener.next() is None
        assert listener.is_over


@pytest.mark.parametrize("how", ["token", "subject", "session"])
async def test_an_identity_ends_when_its_credential_is_no_longer_valid(
    served: Served, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = "CN=anna,O=Example"
    add(served, "anna", **GRANTED, subjects=[subject])
    async with aio.connect(served.store) as qm:
        users = Users(qm, None, 1, lambda: 0.0)
        token = await qm.accounts.create_token("anna", "a program", seconds=100)
        if how == "token":
            identity = await users.by_token(token, address="")
        elif how == "subject":
            identity = await users.by_subject(subject, address="")
        else:
            shown = await users.by_token(token, address="")
            assert shown is not None
            identity = await users.by_session("anna", shown.session)
        assert identity is not None
        assert await users.again(identity) == identity
        await qm.accounts.alter_user("anna", queues={"Q2": ["get"]})
        changed = await users.again(identity)
        assert changed is not None
        assert changed.may("get", "Q2")
        if how == "token":
            now = time.time()
            monkeypatch.setattr("inorder.server.users.time.time", lambda: now + 101)
        elif how == "subject":
            await qm.accounts.alter_user("anna", subjects=[])
        else:
            await qm.accounts.delete_user("anna")
            await qm.accounts.create_user("anna")
        assert await users.again(identity) is None


# --- sessions that end


COOKIE = f"LtpaToken2_{PORT}"
SECONDS = 7_200.0


@pytest.fixture
def session_ends(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A function that moves the server's clock to the end of the sessions that have begun."""
    real, passed = time.time, [0.0]
    monkeypatch.setattr("time.time", lambda: real() + passed[0])
    return lambda: passed.__setitem__(0, SECONDS)


async def _logged_in(client: httpx.AsyncClient) -> str:
    """Logs anna in. Returns the cookie of her session."""
    client.auth = AS_NOBODY
    answer = await client.post("/ibmmq/rest/v3/login", json={"username": "anna", "password": PASSWORD})
    assert answer.status_code == 204, answer.text
    return f"{COOKIE}={client.cookies[COOKIE]}"


@pytest.mark.parametrize("path", [f"{Q}/events", "/inorder/v1/events", "/console/live"])
async def test_a_stream_ends_with_the_session_that_began_it(
    served: Served, path: str, session_ends: Callable[[], None], soon: None, silent: None
) -> None:
    add(served, "anna", roles=["reader"])
    is_console = path.startswith("/console/")
    async with alive(served.app()) as app, client_of(app) as client:
        cookie = await _logged_in(client)
        async with listening(app, path, authorization=None, cookie=cookie) as listener:
            await listener.next()
            assert listener.status == 200
            session_ends()
            while not (found := await listener.next() or pytest.fail("it has ended without a word")).kind:
                pass
            if found.kind == "queues":
                found = await listener.event()
            assert found.kind == "failed"
            if is_console:
                assert "log in again" in found.data
            else:
                assert found.data["message"].startswith("MQWB0112E")
            assert await listener.next() is None
            assert listener.is_over
        async with listening(app, path, authorization=None, cookie=cookie) as refused:
            assert await refused.next() is None
            assert refused.status == (303 if is_console else 401), "a browser is led to the log-in"


@pytest.mark.parametrize("ask", ["get", "get in a lease", "get under an id", "browse", "get of IBM's"])
async def test_a_waiting_request_delivers_nothing_after_its_session_has_ended(
    client: httpx.AsyncClient,
    qm: QueueManager,
    served: Served,
    ask: str,
    session_ends: Callable[[], None],
    looked: list[object],
) -> None:
    add(served, "anna", **GRANTED)
    await _logged_in(client)
    assert await refused_as_it_waits(client, qm, ask, looked, session_ends) == (401, "MQWB0112E", 0)


async def test_a_stream_opened_with_a_token_outlives_a_session(
    served: Served, session_ends: Callable[[], None], soon: None
) -> None:
    """A cookie beside the token is ignored."""
    add(served, "anna", **GRANTED)
    async with alive(served.app()) as app, client_of(app) as client:
        cookie = await _logged_in(client)
        with inorder.connect(served.store) as qm:
            token = qm.accounts.create_token("anna", "a program")
            async with listening(app, f"{Q}/events", authorization=f"Bearer {token}", cookie=cookie) as listener:
                await listener.next()
                session_ends()
                qm.put("Q1", b"x")
                assert (await listener.event()).kind == "message"


async def test_a_stream_continues_after_a_notice_if_its_user_still_has_access(
    served: Served, monkeypatch: pytest.MonkeyPatch, client: httpx.AsyncClient, qm: QueueManager
) -> None:
    """A notice of the watch ends the stream only if it is still true."""
    add(served, "anna", **GRANTED)
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 600.0)
    outs: list[asyncio.Event] = []
    real = connected_clients.ConnectedClients.watched

    @contextlib.contextmanager
    def noted(self: connected_clients.ConnectedClients, *given: Any, **more: Any) -> Iterator[asyncio.Event]:
        with real(self, *given, **more) as out:
            outs.append(out)
            yield out

    monkeypatch.setattr(connected_clients.ConnectedClients, "watched", noted)

    async with listened(client, qm, f"{Q}/events") as listener:
        outs[0].set()
        assert not (await listener.next() or pytest.fail("it has ended")).kind
        outs[0].set()  # ignored: the user still exists
        qm.put("Q1", b"x")
        assert (await listener.event()).kind == "message"
        assert not outs[0].is_set()


async def test_a_stream_of_queues_shows_what_its_user_may_see_now(
    served: Served, monkeypatch: pytest.MonkeyPatch, client: httpx.AsyncClient, qm: QueueManager
) -> None:
    add(served, "anna", **GRANTED)
    faster(monkeypatch, 0.02)
    async with listened(client, qm, "/inorder/v1/events") as listener:
        qm.create_queue("Q2")
        assert [one["name"] for one in (await listener.event()).data["queues"]] == ["Q1"]
        qm.accounts.alter_user("anna", queues={"Q2": ["inquire"]})
        found = (await listener.event()).data
        assert ([one["name"] for one in found["queues"]], found["gone"]) == (["Q2"], ["Q1"])


# --- one look-up for any number of streams, and none after the last stream has ended

ANNA = Identity(name="anna", roles=frozenset({"reader"}), session="1", token="t1")
turns = asyncio.sleep


class Looks:
    """Answers look-ups of users when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[Identity] = []
        self.answers: dict[str, Identity | Exception | None] = {}
        self._due = asyncio.Event()
        monkeypatch.setattr(connected_clients, "pause", self._pause)

    async def _pause(self, seconds: float) -> None:
        assert seconds == connected_clients.EVERY_SECONDS
        await self._due.wait()

    async def again(self, identity: Identity) -> Identity | None:
        self.asked.append(identity)
        found = self.answers.get(identity.token, identity)
        if isinstance(found, Exception):
            raise found
        return found

    async def look(self) -> None:
        """Makes each watch look up its user once."""
        await _settled()
        due, self._due = self._due, asyncio.Event()
        due.set()
        await _settled()


async def _settled() -> None:
    for _ in range(10):
        await turns(0)


async def test_streams_of_the_same_identity_are_checked_once_and_all_end(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch)
    watching = ConnectedClients(looks.again)
    with ExitStack() as held:
        outs = [held.enter_context(watching.watched(ANNA)) for _ in range(100)]
        await looks.look()
        assert looks.asked == [ANNA]
        assert not any(one.is_set() for one in outs)
        looks.answers["t1"] = None
        await looks.look()
        assert len(looks.asked) == 2
        assert all(one.is_set() for one in outs)


async def test_streams_of_a_user_with_different_tokens_are_checked_separately(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch)
    watching = ConnectedClients(looks.again)
    other = Identity(name="anna", roles=ANNA.roles, session="1", token="t2")
    with watching.watched(ANNA) as one, watching.watched(other) as two:
        looks.answers["t2"] = None
        await looks.look()
        assert (one.is_set(), two.is_set()) == (False, True)


async def test_a_lost_authority_ends_the_streams_that_need_it(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch)
    watching = ConnectedClients(looks.again)
    with watching.watched(ANNA, lambda identity: "reader" in identity.roles) as one, watching.watched(ANNA) as two:
        looks.answers["t1"] = Identity(name="anna", roles=frozenset({"operator"}), session="1", token="t1")
        await looks.look()
        assert (one.is_set(), two.is_set()) == (True, False)


@pytest.mark.parametrize("error", [StoreError, OSError, KeyError])
async def test_an_error_of_the_check_ends_no_stream_and_the_check_is_repeated(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: type[Exception]
) -> None:
    looks = Looks(monkeypatch)
    watching = ConnectedClients(looks.again)
    with watching.watched(ANNA) as out:
        looks.answers["t1"] = error("the store is busy")
        await looks.look()
        assert not out.is_set()
        assert "the store is busy" in caplog.text
        looks.answers["t1"] = None
        await looks.look()
        assert out.is_set()


async def test_a_stream_ends_with_its_own_session(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, now = Looks(monkeypatch), [100.0]
    watching = ConnectedClients(looks.again, lambda: now[0])
    with watching.watched(ANNA, until=200.0) as one, watching.watched(ANNA, until=300.0) as two:
        await looks.look()
        assert (one.is_set(), two.is_set()) == (False, False)
        now[0] = 200.0
        await looks.look()
        assert (one.is_set(), two.is_set()) == (True, False)
        now[0] = 300.0
        looks.answers["t1"] = StoreError("the store is busy")
        await looks.look()
        assert two.is_set(), "to know the time needs no store"


async def test_no_task_remains_after_the_last_stream_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch)
    watching = ConnectedClients(looks.again)
    before = asyncio.all_tasks()
    with watching.watched(ANNA):
        with watching.watched(ANNA):
            await looks.look()
        await looks.look()
        assert len(looks.asked) == 2, "one is still there"
    await looks.look()
    assert len(looks.asked) == 2
    assert asyncio.all_tasks() == before
