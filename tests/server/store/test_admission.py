"""Limits of connections to a remote store: who may connect, how often, and for how long (W-5, W-6)."""

from __future__ import annotations

import base64
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.support import until
from tests.server.conftest import Running, Served, Start
from tests.server.store.raw import SECONDS, Raw
from tests.tiers import gate

import inorder
from inorder.errors import ConnectionBroken, LogInRefused, StoreError, TooManyLogIns
from inorder.model.attributes import define_queue
from inorder.rules.puts import Program
from inorder.server.store.places import Places
from inorder.stores.memory import MemoryStore
from inorder.stores.remote.address import parse
from inorder.stores.remote.frames import HEADER, FrameKind
from inorder.stores.remote.link import PATH
from inorder.stores.remote.store import RemoteStore
from inorder.testing.remote import the_server


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    one = MemoryStore("QM1")
    one.create_queue(define_queue("Q"))
    yield one
    one.stop()


Limited = Callable[..., tuple[str, str]]


@pytest.fixture
def limited(store: MemoryStore) -> Iterator[Limited]:
    """Serves the store with limits. Returns its URL and its token."""
    server = the_server(os.getpid())
    with ExitStack() as ends:

        def served(**limits: Any) -> tuple[str, str]:
            token = ends.enter_context(server.serving(store))
            context = server._endpoints[token]._context
            context.settings = replace(context.settings, limits=replace(context.settings.limits, **limits))
            return server.url, token

        yield served


def test_the_connections_of_a_user_are_limited(limited: Limited) -> None:
    url, token = limited(user_connections=2)
    address = parse(url, {"token": token})
    one, two = RemoteStore(address), RemoteStore(address)
    with pytest.raises(StoreError, match=r"takes no more connections: .*connections of a user.* 2"):
        RemoteStore(address)
    one.close_store()
    made: list[RemoteStore] = []

    def connects() -> bool:
        try:
            made.append(RemoteStore(address))
        except StoreError:  # the server has not noticed yet that `one` is closed
            return False
        return True

    until(connects, "there is room again")
    assert two.manager().name == "QM1"
    for each in (two, *made):
        each.close_store()


def test_the_size_of_a_call_and_the_time_for_a_hello_are_limited(limited: Limited) -> None:
    url, token = limited(body=2**21, json=0, head_seconds=0.01)
    port = int(url.rpartition(":")[2])
    with Raw(port, token) as raw:
        assert raw.answer() == (0, 1008, b"no hello came in time")
    url, token = limited(body=2**21, json=0)
    with Raw(port, token) as raw:
        raw.begin()
        for _ in range(3):
            raw.binary(HEADER.pack(FrameKind.CALL, 1, 0, 1) + bytes(2**20))
        assert raw.ends() == ["WireError"]


def test_the_total_size_of_calls_received_at_once_is_limited(limited: Limited) -> None:
    url, token = limited()
    context = the_server(os.getpid())._endpoints[token]._context
    with context.bodies.taken(context.settings.limits.bodies - 2**20), Raw(int(url.rpartition(":")[2]), token) as raw:
        raw.begin()
        for number in (1, 2):
            raw.binary(HEADER.pack(FrameKind.CALL, 1, 0, number) + bytes(2**20))
        assert raw.ends() == ["StoreError"]


@gate
@pytest.mark.parametrize(
    ("more", "status"),
    [
        (b"Content-Length: 3\r\n\r\nabc", 400),
        (b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"X: y\r\n" * 200 + b"\r\n", 431),
        (b"X: " + b"y" * 9_000 + b"\r\n\r\n", 431),
        (b"\r\n", 401),
    ],
)
def test_a_refused_websocket_is_answered_and_ends_and_the_log_stays_json(
    start: Start, more: bytes, status: int
) -> None:
    running = start()
    port = int(running.url.rpartition(":")[2])
    head = f"GET {PATH} HTTP/1.1\r\nHost: localhost:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    head += "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    with socket.create_connection(("127.0.0.1", port), SECONDS) as client, client.makefile("rb") as answer:
        client.sendall(head.encode() + more)
        assert int(answer.read().split()[1]) == status
    assert running.stop() == 0
    for line in running.log.read_text().splitlines():
        assert json.loads(line)["level"] == "info"


def connected(running: Running, token: str, **more: Any) -> RemoteStore:
    return RemoteStore(parse(running.url, {"token": token}), "test", **more)


@gate
def test_a_revoked_token_or_a_disabled_user_ends_its_connections(start: Start, served: Served) -> None:
    running = start()
    with inorder.connect(served.store) as qm:
        qm.accounts.create_user("anna", roles=("operator",))
        qm.accounts.create_user("bert", roles=("operator",))
        tokens = [qm.accounts.create_token(name, name) for name in ("anna", "bert", "bert")]
        stores = [connected(running, token, reconnects=0) for token in tokens]
        owners = [one.connect(Program("x", "test")) for one in stores]

        def has_gone(nth: int) -> bool:
            return owners[nth] not in {one.connection for one in qm.inspect.connections()}

        qm.accounts.revoke_token(tokens[1])
        until(lambda: has_gone(1), "the connection of the token has ended")
        with pytest.raises(ConnectionBroken):
            stores[1].manager()
        assert stores[2].manager().name == "QM1"
        qm.accounts.alter_user("anna", enabled=False)
        until(lambda: has_gone(0), "the connection of the user has ended")
        with pytest.raises(LogInRefused, match="refused the log-in: give a valid token"):
            connected(running, tokens[0])
        assert not has_gone(2)
        for one in stores:
            one.close_store()


@gate
def test_a_client_without_a_valid_token_is_refused_and_too_many_tries_are_blocked(start: Start) -> None:
    running = start()
    port, token = int(running.url.rpartition(":")[2]), running.token
    basic = base64.b64encode(f"anybody:{token}".encode()).decode()
    with running.client(auth=None) as client:
        path = "/ibmmq/rest/v2/login"
        assert client.post(path, json={"username": "anybody", "password": token}).status_code == 204
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    assert cookie
    refused: list[tuple[dict[str, str], int]] = [
        ({}, 401),
        ({"Authorization": f"Basic {basic}"}, 401),
        ({"Cookie": cookie}, 401),
        ({"Authorization": f"Bearer {token}", "Origin": "https://elsewhere.example"}, 403),
        ({"Authorization": f"Bearer {token}", "Host": f"elsewhere.example:{port}"}, 421),
    ]
    for headers, status in refused:
        with Raw(port, None, **headers) as raw:
            assert raw.response.status_code == status, headers
    with Raw(port, token, path="/inorder/v1/other") as raw:
        assert raw.response.status_code == 404
    with Raw(port, token, Origin=f"http://127.0.0.1:{port}") as raw:
        assert raw.response.status_code == 101
    errors = set[type[Exception]]()
    while TooManyLogIns not in errors:
        with pytest.raises((LogInRefused, TooManyLogIns)) as found:
            connected(running, "wrong")
        errors.add(found.type)
        assert len(errors) <= 2
    said = running.log.read_text()
    assert token not in said
    assert "Traceback" not in said


async def test_places_may_be_closed_twice(tmp_path: Path) -> None:
    places = Places(str(tmp_path / "store.db"))
    places.take().begin()
    await places.close()
    await places.close()
