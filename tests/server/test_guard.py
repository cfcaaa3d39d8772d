"""Checks that apply to every request."""

from __future__ import annotations

import asyncio
import dataclasses
import gzip
import json
from typing import Any

import httpx
import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from tests.helpers.cutting import ended
from tests.server.conftest import PORT, TEXT, Served
from tests.server.test_messaging import V1, number_of
from tests.server.test_protocol import answer_of, listening

from inorder.server import Limits
from inorder.server.calls import AT_ONCE
from inorder.server.guard import Guard

HOST = (b"host", b"localhost")


class Seen:
    """An application behind a guard, which records the requests that reach it."""

    def __init__(self, served: Served, **changes: Any) -> None:
        self.scopes: list[Scope] = []
        self.answers: list[dict[str, Any]] = []
        self._guard = Guard(self._app, dataclasses.replace(served.settings, **changes))

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        await Response()(scope, receive, send)

    def ask(self, target: bytes, *headers: tuple[bytes, bytes]) -> tuple[int, str]:
        """Sends a request as uvicorn passes it on. Returns the status and message id of the answer."""
        raw, _, query = target.partition(b"?")
        scope = {"type": "http", "method": "GET", "path": raw.decode(), "raw_path": raw, "query_string": query}
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            return {"type": "http.request", "body": b""}

        ended(self._guard({**scope, "headers": list(headers)}, receive, send))
        body = sent[1]["body"]
        return sent[0]["status"], json.loads(body)["error"][0]["msgId"] if body else ""


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        (b"http://localhost/health", b"/health", b""),
        (b"HTTP://LocalHost:9443/health?a=http://b/c", b"/health", b"a=http://b/c"),
        (b"http://[::1]:9443/a%2Fb/%C3%A9", b"/a%2Fb/%C3%A9", b""),
        (b"http://localhost", b"/", b""),
        (b"http://localhost?x=1", b"/", b"x=1"),
        (b"http://localhost//two", b"//two", b""),
        (b"/http://localhost/health", b"/http://localhost/health", b""),
    ],
)
def test_an_absolute_url_is_accepted_as_a_request_target(
    served: Served, target: bytes, path: bytes, query: bytes
) -> None:
    seen = Seen(served)
    assert seen.ask(target, HOST) == (200, "")
    (scope,) = seen.scopes
    assert (scope["raw_path"], scope["query_string"]) == (path, query)
    assert scope["path"] == httpx.URL(f"http://x{path.decode()}").path


@pytest.mark.parametrize(
    ("target", "host", "answer"),
    [
        (b"http://localhost/", b"evil.example", (200, "")),
        (b"http://evil.example/", b"localhost", (421, "INWB0010E")),
        (b"http://localhost@evil.example/", b"localhost", (421, "INWB0010E")),
        (b"http:///", b"localhost", (421, "INWB0010E")),
        (b"https://localhost/", b"localhost", (421, "INWB0010E")),
        (b"ftp://localhost/", b"localhost", (421, "INWB0010E")),
    ],
)
def test_the_host_of_an_absolute_url_takes_precedence_over_the_header(
    served: Served, target: bytes, host: bytes, answer: tuple[int, str]
) -> None:
    """RFC 9112, 3.2.2; and RFC 9110, 7.4: an https address is refused on a connection without TLS."""
    assert Seen(served).ask(target, (b"host", host)) == answer


def test_with_tls_an_absolute_url_must_be_https(served: Served) -> None:
    seen = Seen(served, is_secure=True)
    assert seen.ask(b"https://localhost/", HOST) == (200, "")
    assert seen.ask(b"http://localhost/", HOST) == (421, "INWB0010E")


def test_an_origin_is_compared_with_the_host_of_the_absolute_url(served: Served) -> None:
    seen = Seen(served)
    assert seen.ask(b"http://localhost/", (b"host", b"x"), (b"origin", b"http://localhost")) == (200, "")
    assert seen.ask(b"http://localhost/", (b"host", b"x"), (b"origin", b"http://x")) == (403, "INWB0011E")


async def test_an_absolute_url_is_answered_over_a_connection(served: Served) -> None:
    async with listening(served, Limits()) as (address, _):
        reader, writer = await asyncio.open_connection(*address)
        for target, status in (("localhost", 200), ("evil.example", 421), ("127.0.0.1:9443", 200)):
            writer.write(f"GET http://{target}/health HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert (await answer_of(reader))[0] == status
        writer.close()


@pytest.mark.parametrize("count", [0, 2])
def test_a_request_must_have_exactly_one_host_header(served: Served, count: int) -> None:
    assert Seen(served).ask(b"/health", *([HOST] * count)) == (400, "INWB0018E")


# --- the coding of a body

Q = "/inorder/v1/queues/Q1"
WITH_BODIES: list[tuple[str, dict[str, str], bytes]] = [
    (f"{V1}/message", TEXT, b"x"),
    ("/ibmmq/rest/v2/admin/action/qmgr/QM1/mqsc", {"Content-Type": "application/json"},
     b'{"type": "runCommand", "parameters": {"command": "DISPLAY QMGR"}}'),
    (f"{Q}/put", {"Content-Type": "application/json"}, b'{"body": "x"}'),
    (f"{Q}/arrow", {"Content-Type": "application/vnd.apache.arrow.stream", "Idempotency-Key": "k"}, b"x"),
    ("/console/log-in", {"Content-Type": "application/x-www-form-urlencoded"}, b"name=a"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "headers", "body", "coding"),
    [
        *((*one, "gzip") for one in WITH_BODIES),
        *((*WITH_BODIES[0], coding) for coding in ("GZIP", "identity, br", "?")),
    ],
)
async def test_a_compressed_body_is_refused(
    client: httpx.AsyncClient, path: str, headers: dict[str, str], body: bytes, coding: str
) -> None:
    given = headers | {"Content-Encoding": coding}
    answer = await client.post(path, content=gzip.compress(body), headers=given)
    assert number_of(answer) == (415, "INWB0019E", 0)
    assert coding in answer.json()["error"][0]["message"]
    assert answer.headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("coding", ["identity", "Identity", ""])
async def test_the_content_encoding_identity_is_accepted(client: httpx.AsyncClient, coding: str) -> None:
    headers = TEXT | {"Content-Encoding": coding}
    assert (await client.post(f"{V1}/message", content="x", headers=headers)).status_code == 201
    no_body = await client.get(f"{V1}/message", headers={"Content-Encoding": "gzip", "Host": f"localhost:{PORT}"})
    assert no_body.text == "x"


# --- JSON bodies, and requests that take no body

JSON = {"Content-Type": "application/json"}
MQSC = "/ibmmq/rest/v2/admin/action/qmgr/QM1/mqsc"


@pytest.mark.parametrize(
    ("method", "path", "body", "key"),
    [
        ("POST", f"{Q}/put", '{"body": "a", "priority": 1, "body": "b"}', "body"),
        ("POST", f"{Q}/put", '{"body": "a", "properties": {"x": 1, "x": 2}}', "x"),
        ("POST", f"{Q}/put", f'{{"body": "a", "body": "{"b" * AT_ONCE}"}}', "body"),
        ("POST", f"{Q}/put_many", '{"messages": [{"body": "a"}, {"body": "b", "body": "b"}]}', "body"),
        ("POST", MQSC, '{"type": "runCommand", "type": "runCommandJSON"}', "type"),
        ("PATCH", "/ibmmq/rest/v1/admin/qmgr/QM1/queue/Q1", '{"storage": {}, "storage": {}}', "storage"),
        ("POST", "/ibmmq/rest/v1/login", '{"username": "a", "password": "b", "password": "c"}', "password"),
    ],
    ids=["a message", "inside", "a long one", "in a list", "a command", "a queue", "a log-in"],
)
async def test_a_duplicate_key_in_json_is_refused(
    client: httpx.AsyncClient, method: str, path: str, body: str, key: str
) -> None:
    answer = await client.request(method, path, content=body, headers=JSON)
    assert number_of(answer) == (400, "INWB0004E", 0)
    assert f'the key "{key}" appears more than once' in answer.json()["error"][0]["message"]


async def test_the_same_key_in_two_objects_is_accepted(client: httpx.AsyncClient) -> None:
    body = {"messages": [{"body": "a", "properties": {"body": "x"}}, {"body": "a"}]}
    assert (await client.post(f"{Q}/put_many", json=body)).status_code == 201


async def test_a_body_of_a_request_that_takes_none_is_refused_with_that_reason(client: httpx.AsyncClient) -> None:
    answer = await client.request("DELETE", f"{V1}/message", content="x")
    assert number_of(answer) == (400, "INWB0004E", 0)
    assert "this request takes no body" in answer.json()["error"][0]["message"]
