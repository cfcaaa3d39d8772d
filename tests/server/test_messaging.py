"""IBM's messaging interface: requests and their answers, as IBM's pages describe them."""

from __future__ import annotations

import asyncio
import math
import select
import socket
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.helpers.support import bodies
from tests.server.conftest import TEXT, Served, alive, app_of, client_of, serving

import inorder
from inorder import Message, QueueManager, aio
from inorder.model.properties import INTEGER_MAX, INTEGER_MIN, PropertyValue
from inorder.server import Limits, disconnects, messaging, protocol
from inorder.server.user_properties import read, written

V1, V2, V3 = (f"/ibmmq/rest/v{version}/messaging/qmgr/QM1/queue/Q1" for version in (1, 2, 3))
ALL = pytest.mark.parametrize("base", [V1, V2, V3], ids=["v1", "v2", "v3"])
CORRELATION = "414d5120514d4144455620202020202067d8bf5923582e02"


def number_of(response: httpx.Response) -> tuple[int, str, int]:
    """The status, message id and reason code of an error, whose other fields must agree with them."""
    (error,) = response.json()["error"]
    assert error["msgId"] == error["messageId"]
    assert error["message"].startswith(error["messageId"])
    assert error["type"] == "rest"
    assert (error["completionCode"] == 2) == (error["reasonCode"] != 0)
    return response.status_code, error["messageId"], error["reasonCode"]


@ALL
async def test_a_message_is_put_browsed_and_got(client: httpx.AsyncClient, base: str) -> None:
    put = await client.post(f"{base}/message", content="Hello Wörld", headers=TEXT)
    assert (put.status_code, put.content) == (201, b"")
    assert put.headers["content-type"] == "text/plain; charset=utf-8"
    message_id = put.headers["ibm-mq-md-messageId"]
    assert message_id.startswith("ID:") == base.startswith(V3)
    assert len(bytes.fromhex(message_id.removeprefix("ID:"))) == 24
    for method in ("GET", "GET", "DELETE"):
        answer = await client.request(method, f"{base}/message")
        assert (answer.status_code, answer.text) == (200, "Hello Wörld")
        assert answer.headers["ibm-mq-md-messageId"] == message_id
        assert answer.headers["ibm-mq-md-persistence"] == "nonPersistent"
        assert answer.headers["ibm-mq-md-expiry"] == "unlimited"
        assert "ibm-mq-md-correlationId" not in answer.headers
        assert ("ibm-mq-md-priority" in answer.headers) == base.startswith(V3)
    for method in ("GET", "DELETE"):
        assert (await client.request(method, f"{base}/message")).status_code == 204


# A version, a header, its value, and fields of the message.
SAID: list[tuple[str, str, str, dict[str, Any]]] = [
    (V1, "ibm-mq-md-correlationId", CORRELATION, {"correlation_id": bytes.fromhex(CORRELATION)}),
    (V2, "ibm-mq-md-correlationId", CORRELATION.upper(), {"correlation_id": bytes.fromhex(CORRELATION)}),
    (V3, "ibm-mq-md-correlationId", f"ID:{CORRELATION}", {"correlation_id": bytes.fromhex(CORRELATION)}),
    (V3, "ibm-mq-md-correlationId", "order-7", {"correlation_id": b"order-7".ljust(24, b"\0")}),
    (V1, "ibm-mq-md-persistence", "persistent", {"persistent": True}),
    (V1, "ibm-mq-md-persistence", "nonPersistent", {"persistent": False}),
    (V1, "ibm-mq-md-replyTo", "ANSWERS", {"reply_to_queue": "ANSWERS", "reply_to_queue_manager": "QM1"}),
    (V2, "ibm-mq-md-replyTo", "ANSWERS@QM7", {"reply_to_queue": "ANSWERS", "reply_to_queue_manager": "QM7"}),
    (V1, "ibm-mq-md-expiry", "unlimited", {"expiry": math.inf}),
    (V1, "ibm-mq-md-expiry", "0", {"expiry": math.inf}),
    (V3, "ibm-mq-md-priority", "9", {"priority": 9}),
    (V3, "ibm-mq-md-priority", "asDestination", {"priority": 0}),
    (V3, "ibm-mq-usr", 'color;"red";string, size;5;i1', {"properties": {"color": "red", "size": 5}}),
    (V1, "x-unknown", "1", {"priority": 4, "format": "MQSTR", "coded_character_set_id": 1208, "persistent": False}),
]


@pytest.mark.parametrize(("base", "name", "value", "fields"), SAID, ids=[f"{one[1]}={one[2][:12]}" for one in SAID])
async def test_headers_correspond_to_the_fields_of_the_message(
    qm: QueueManager, base: str, name: str, value: str, fields: dict[str, Any], client: httpx.AsyncClient
) -> None:
    put = await client.post(f"{base}/message", content="x", headers=TEXT | {name: value})
    assert put.status_code == 201, put.text
    answer = await client.get(f"{base}/message")
    if name.startswith("ibm") and value not in ("asDestination", "0", "ANSWERS"):
        assert answer.headers[name].lower() == value.lower()
    message = qm.get("Q1")
    assert {field: getattr(message, field) for field in fields} == fields


async def test_messages_withheld_by_strict_order_are_neither_returned_nor_listed(
    served: Served, client: httpx.AsyncClient
) -> None:
    with inorder.connect(served.store) as qm, qm.connect() as other:
        qm.alter_queue("Q1", read_order="strict")
        qm.put("Q1", b"before", format="MQSTR")
        other.put("Q1", b"held", format="MQSTR", syncpoint=True)
        qm.put("Q1", b"behind", format="MQSTR")
        assert (await client.get(f"{V1}/message")).text == "before"
        assert len((await client.get(f"{V1}/messagelist")).json()["messages"]) == 1, "it ends before what is withheld"
        assert (await client.delete(f"{V1}/message")).text == "before"
        for answer in (await client.get(f"{V1}/message"), await client.delete(f"{V1}/message")):
            assert (answer.status_code, answer.content) == (204, b"")
        assert (await client.get(f"{V1}/messagelist")).json() == {"messages": []}


async def test_an_expiry_is_in_milliseconds(client: httpx.AsyncClient) -> None:
    for asked in ("99999999900", "60000"):
        await client.post(f"{V1}/message", content=asked, headers=TEXT | {"ibm-mq-md-expiry": asked})
        left = int((await client.delete(f"{V1}/message")).headers["ibm-mq-md-expiry"])
        assert int(asked) - 60_000 <= left <= int(asked)


# A version, headers, and the refusal.
REFUSED: list[tuple[str, dict[str, str], tuple[int, str, int]]] = [
    (V1, {"Content-Type": "application/octet-stream"}, (415, "MQWB0306E", 0)),
    (V1, {"Content-Type": ""}, (415, "MQWB0306E", 0)),
    (V1, {"Content-Type": "text/plain;charset=latin-1"}, (415, "MQWB0305E", 0)),
    *((V1, TEXT | {name: value}, (400, "MQWB0302E", 0)) for name, value in [
        ("ibm-mq-md-correlationId", "order-7"), ("ibm-mq-md-correlationId", CORRELATION[:-1]),
        ("ibm-mq-md-correlationId", f"ID:{CORRELATION}"), ("ibm-mq-md-expiry", "-1"),
        ("ibm-mq-md-expiry", "99999999901"),
        ("ibm-mq-md-expiry", "soon"), ("ibm-mq-md-persistence", "yes"), ("ibm-mq-md-replyTo", "@QM1"),
        ("ibm-mq-md-replyTo", "a queue"), ("ibm-mq-md-priority", "5"), ("ibm-mq-usr", "a;1;i1"),
        ("ibm-mq-md-format", "X"),
    ]),
    *((V3, TEXT | {name: value}, (400, "MQWB0302E", 0)) for name, value in [
        ("ibm-mq-md-priority", "10"), ("ibm-mq-md-priority", "high"), ("ibm-mq-md-correlationId", "x" * 25),
        ("ibm-mq-md-correlationId", "ID:7"), ("ibm-mq-usr", "a;128;i1"), ("ibm-mq-usr", "NULL;1;i1"),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("base", "headers", "expected"), REFUSED)
async def test_a_wrong_header_puts_nothing(
    client: httpx.AsyncClient, qm: QueueManager, base: str, headers: dict[str, str], expected: tuple[int, str, int]
) -> None:
    assert number_of(await client.post(f"{base}/message", content="x", headers=headers)) == expected
    assert qm.depth("Q1") == 0


@pytest.mark.parametrize("given", [["1a;5;i4"], ["ok;1;i1", "1a;5;i4"]])
async def test_the_error_for_a_refused_property_header_quotes_its_value(
    client: httpx.AsyncClient, given: list[str]
) -> None:
    headers = [*TEXT.items(), *(("ibm-mq-usr", one) for one in given), ("ibm-mq-rest-csrf-token", "")]
    answer = await client.post(f"{V3}/message", content="x", headers=headers)
    assert number_of(answer) == (400, "MQWB0302E", 0)
    said = answer.json()["error"][0]["message"]
    assert f"'ibm-mq-usr' request header cannot be set as '{', '.join(given)}' is not" in said
    assert "not '1a'" in said


async def test_a_body_that_is_not_utf_8_is_refused(client: httpx.AsyncClient) -> None:
    answer = await client.post(f"{V1}/message", content=b"\xff", headers=TEXT)
    assert number_of(answer) == (400, "INWB0004E", 0)


@ALL
async def test_messages_are_chosen_by_their_ids(client: httpx.AsyncClient, qm: QueueManager, base: str) -> None:
    prefix = "ID:" if base.startswith(V3) else ""
    ids = [qm.put("Q1", b"%d" % n, format="MQSTR", correlation_id=b"%d" % n).message_id for n in range(3)]
    second, third = f"{prefix}{ids[1].hex()}", f"{prefix}{b'2'.ljust(24, bytes(1)).hex()}"
    for method in ("GET", "DELETE"):
        answer = await client.request(method, f"{base}/message", params={"messageId": second})
        assert answer.text == "1"
        answer = await client.request(method, f"{base}/message", params={"correlationId": third})
        assert answer.text == "2"
        answer = await client.request(method, f"{base}/message", params={"messageId": second, "correlationId": third})
        assert answer.status_code == 204
    assert bodies(qm, "Q1") == [b"0"]


async def test_version_3_matches_a_correlation_id_given_as_text(client: httpx.AsyncClient) -> None:
    await client.post(f"{V3}/message", content="x", headers=TEXT | {"ibm-mq-md-correlationId": "order-7"})
    answer = await client.get(f"{V3}/message", params={"correlationId": "order-7"})
    assert answer.headers["ibm-mq-md-correlationId"] == "order-7"
    hex_digits = b"order-7".ljust(24, bytes(1)).hex()
    assert (await client.get(f"{V3}/message", params={"correlationId": f"ID:{hex_digits}"})).text == "x"
    assert (await client.get(f"{V1}/message")).headers["ibm-mq-md-correlationId"] == hex_digits


@pytest.mark.parametrize(
    ("method", "path", "parameter"),
    [
        ("GET", "message", {"messageId": "7"}),
        ("GET", "message", {"wait": "1"}),
        ("GET", "message", {"messageId": "ID:" + CORRELATION}),
        ("DELETE", "message", {"wait": "-1"}),
        ("DELETE", "message", {"wait": "1.5"}),
        ("DELETE", "message", {"wait": "3600001"}),
        ("GET", "messagelist", {"limit": "0"}),
        ("GET", "messagelist", {"limit": "2001"}),
        ("POST", "message", {"wait": "1"}),
    ],
)
async def test_a_wrong_query_is_refused(
    client: httpx.AsyncClient, method: str, path: str, parameter: dict[str, str]
) -> None:
    answer = await client.request(method, f"{V1}/{path}", params=parameter, headers=TEXT)
    assert number_of(answer) == (400, "INWB0003E", 0)
    assert f"'{next(iter(parameter))}'" in answer.json()["error"][0]["message"]
    twice = await client.request("DELETE", f"{V1}/message?wait=1&wait=2")
    assert number_of(twice) == (400, "INWB0003E", 0)


async def test_a_list_has_ids_and_formats_and_no_bodies(client: httpx.AsyncClient, qm: QueueManager) -> None:
    first = qm.put("Q1", b"1", format="MQSTR", correlation_id=bytes.fromhex(CORRELATION)).message_id
    second = qm.put("Q1", b"\xff").message_id
    for _ in range(20):
        qm.put("Q1", b"more")
    answer = await client.get(f"{V1}/messagelist", params={"limit": 2})
    assert answer.json() == {
        "messages": [
            {"messageId": first.hex(), "correlationId": CORRELATION, "format": "MQSTR"},
            {"messageId": second.hex(), "format": ""},
        ]
    }
    chosen = await client.get(f"{V3}/messagelist", params={"correlationId": f"ID:{CORRELATION}"})
    entry = {"messageId": f"ID:{first.hex()}", "correlationId": f"ID:{CORRELATION}", "format": "MQSTR"}
    assert chosen.json() == {"messages": [entry]}
    assert len((await client.get(f"{V1}/messagelist")).json()["messages"]) == 10


async def test_a_list_of_a_queue_that_is_inhibited_is_empty(client: httpx.AsyncClient, qm: QueueManager) -> None:
    qm.put("Q1", b"1")
    qm.alter_queue("Q1", get_allowed=False)
    assert (await client.get(f"{V1}/messagelist")).json() == {"messages": []}
    assert number_of(await client.get(f"{V1}/message")) == (500, "MQWB0303E", 2016)


@pytest.mark.parametrize(
    "message",
    [
        Message(b"text", format=""),
        Message(b"\xff", format="MQSTR", coded_character_set_id=1208),
        Message(b"text", format="MQSTR", coded_character_set_id=1047),
        Message(b"text", format="MQHRF2"),
    ],
    ids=["no format", "no text", "character set", "header"],
)
async def test_a_message_that_is_not_text_stays_on_the_queue(
    client: httpx.AsyncClient, qm: QueueManager, message: Message
) -> None:
    qm.put("Q1", message)
    for method in ("GET", "DELETE"):
        assert number_of(await client.request(method, f"{V1}/message")) == (501, "MQWB0309E", 0)
    assert bodies(qm, "Q1") == [message.body]


@pytest.mark.parametrize(
    ("body", "number", "encoding"),
    [(b"caf\xe9", 819, 546), ("café".encode("cp500"), 500, 546), ("café".encode("utf-16-le"), 1200, 546),
     ("café".encode("utf-16-be"), 1200, 273)],
)  # fmt: skip
async def test_texts_in_other_character_sets_are_returned_in_utf_8(
    client: httpx.AsyncClient, qm: QueueManager, body: bytes, number: int, encoding: int
) -> None:
    qm.put("Q1", body, format="MQSTR", coded_character_set_id=number, encoding=encoding)
    assert (await client.delete(f"{V1}/message")).text == "café"


async def test_a_refusal_of_the_queue_manager_has_its_reason_code(client: httpx.AsyncClient, qm: QueueManager) -> None:
    qm.create_queue("FULL", max_depth=0)
    qm.create_queue("SHORT", max_length=3)
    qm.create_queue("SHUT", put_allowed=False)
    base = "/ibmmq/rest/v2/messaging/qmgr/QM1/queue"
    for queue, expected in (
        ("FULL", (500, "MQWB0303E", 2053)),
        ("SHORT", (500, "MQWB0303E", 2030)),
        ("SHUT", (500, "MQWB0303E", 2051)),
        ("NONE", (404, "MQWB0300E", 2085)),
        ("not a name", (404, "MQWB0300E", 2085)),
    ):
        answer = await client.post(f"{base}/{queue}/message", content="long", headers=TEXT)
        assert number_of(answer) == expected, queue


async def test_a_topic_is_reported_as_not_found(client: httpx.AsyncClient) -> None:
    for topic in ("sport", "sport/football", "sport%2Ffootball"):
        path = f"/ibmmq/rest/v2/messaging/qmgr/QM1/topic/{topic}/message"
        assert number_of(await client.post(path, content="x", headers=TEXT)) == (404, "MQWB0300E", 2085)


async def test_names_in_addresses_are_percent_encoded(client: httpx.AsyncClient, qm: QueueManager) -> None:
    qm.create_queue("a/b%c.D")
    path = "/ibmmq/rest/v1/messaging/qmgr/QM1/queue/a%2Fb%25c%2ED/message"
    assert (await client.post(path, content="x", headers=TEXT)).status_code == 201
    assert (await client.delete(path)).text == "x"
    assert number_of(await client.get(path.replace("QM1", "qm1"))) == (404, "MQWB0009E", 2058)


@serving(limits=Limits(waits=1))
async def test_more_waits_than_the_server_takes_are_refused(client: httpx.AsyncClient) -> None:
    context = context_of(app_of(client))
    waiting = asyncio.ensure_future(client.delete(f"{V1}/message", params={"wait": 60_000}))
    while not context.waits.used:
        await asyncio.sleep(0)
    answer = await client.delete(f"{V1}/message", params={"wait": 1})
    assert number_of(answer) == (503, "INWB0008E", 0)
    assert answer.headers["retry-after"] == "1"
    await client.post(f"{V1}/message", content="x", headers=TEXT)
    assert (await waiting).text == "x"
    assert (await client.delete(f"{V1}/message", params={"wait": 1})).status_code == 204


@serving(limits=Limits(body=100))
async def test_the_length_of_a_body_is_limited(client: httpx.AsyncClient) -> None:
    assert (await client.post(f"{V1}/message", content="x" * 100, headers=TEXT)).status_code == 201

    async def pieces() -> Any:
        for _ in range(11):
            yield b"x" * 10

    for content in ("x" * 101, pieces()):
        answer = await client.post(f"{V1}/message", content=content, headers=TEXT)
        assert number_of(answer) == (413, "INWB0005E", 0)


@serving(limits=Limits(bodies=100, body_seconds=0.05))
async def test_the_total_size_of_bodies_is_limited_and_a_body_that_stalls_times_out(
    client: httpx.AsyncClient,
) -> None:
    async def never() -> Any:
        yield b"x"
        await asyncio.Event().wait()

    for content, expected in (("x" * 101, (503, "INWB0008E", 0)), (never(), (408, "INWB0007E", 0))):
        assert number_of(await client.post(f"{V1}/message", content=content, headers=TEXT)) == expected
    assert (await client.post(f"{V1}/message", content="x" * 100, headers=TEXT)).status_code == 201


class Client:
    """A client as a server sees it, which disconnects at a chosen moment."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self._leaves = asyncio.Event()
        self._is_new = True

    def leave(self) -> None:
        self._leaves.set()

    async def receive(self) -> Any:
        if self._is_new:
            self._is_new = False
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._leaves.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)


def scope_of(method: str, path: str, query: bytes) -> dict[str, Any]:
    headers = [(b"host", b"localhost"), (b"authorization", b"Bearer the-token-of-the-tests-0123456789")]
    headers.append((b"ibm-mq-rest-csrf-token", b""))
    return {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": query,
            "headers": headers, "scheme": "http", "root_path": "", "http_version": "1.1"}  # fmt: skip


async def test_a_client_that_disconnects_while_its_get_waits_takes_nothing(client: httpx.AsyncClient) -> None:
    app: Any = app_of(client)
    goes = Client()
    scope = scope_of("DELETE", f"{V1}/message", b"wait=60000")
    waiting = asyncio.ensure_future(app(scope, goes.receive, goes.send))
    await asyncio.sleep(0)
    goes.leave()
    await waiting
    await client.post(f"{V1}/message", content="x", headers=TEXT)
    assert (await client.delete(f"{V1}/message")).text == "x"


@pytest.mark.parametrize("asks_the_system", [False, True])
async def test_a_client_that_disconnects_after_its_message_was_taken_leaves_it_in_its_place(
    qm: QueueManager, served: Served, monkeypatch: pytest.MonkeyPatch, asks_the_system: bool
) -> None:
    """The client disconnects between the get and the commit, while the answer is made."""
    for number in range(3):
        qm.put("Q1", b"%d" % number, format="MQSTR")
    goes = Client()
    answer_of = messaging._answer
    has_left: list[bool] = []

    def leave(call: Any, message: Any) -> Any:
        if asks_the_system:  # a connection's thread, which may not set the client's event
            has_left.append(True)
        else:
            goes.leave()
        return answer_of(call, message)

    async with alive(served.app()) as app, client_of(app):
        scope = scope_of("DELETE", f"{V1}/message", b"")
        if asks_the_system:
            scope["state"] = {disconnects.IS_GONE: lambda: bool(has_left)}
        monkeypatch.setattr(messaging, "_answer", leave)
        await app(scope, goes.receive, goes.send)
    assert [one.get("status") for one in goes.sent][:1] == [499]
    messages = list(qm.browse("Q1"))
    times = 0 if asks_the_system else 1  # it was got in a unit of work, which was backed out
    assert [(one.body, one.backout_count) for one in messages] == [(b"0", times), (b"1", 0), (b"2", 0)]


@pytest.mark.parametrize("path", [f"{V1}/message", "/inorder/v1/queues/Q1/get"])
async def test_a_long_message_is_taken_in_a_thread(
    qm: QueueManager, served: Served, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """In the loop's thread it would take too long, and nobody else could write meanwhile."""
    text = "x" * (disconnects.BRIEF_MAX + 1)
    for body in ("short", text):
        qm.put("Q1", body.encode(), format="MQSTR", coded_character_set_id=1208)
    run, calls = aio.QueueManager.run, list[bool]()

    async def noted(self: aio.QueueManager, work: Any, *, is_brief: bool = False) -> Any:
        calls.append(is_brief)
        return await run(self, work, is_brief=is_brief)

    async with alive(served.app()) as app:
        monkeypatch.setattr(aio.QueueManager, "run", noted)
        for due in ("short", text):
            client = Client()
            scope = scope_of("DELETE" if path.endswith("message") else "POST", path, b"")
            await app({**scope, "state": {disconnects.IS_GONE: lambda: False}}, client.receive, client.send)
            assert client.sent[0]["status"] == 200
            assert due.encode() in client.sent[1]["body"]
    assert calls == [True, True, False]
    assert qm.depth("Q1") == 0


async def test_a_connected_client_gets_text_messages_and_an_error_for_other_ones(
    qm: QueueManager, served: Served
) -> None:
    """Runs as on a system that can tell whether the client has disconnected."""
    async with alive(served.app()) as app:
        for body, status, left in ((b"first", 200, 1), (b"no text", 501, 1), (b"", 204, 0)):
            if status == 200:
                qm.put("Q1", body, format="MQSTR")
                qm.put("Q1", b"no text")
            client, scope = Client(), scope_of("DELETE", f"{V1}/message", b"")
            await app({**scope, "state": {disconnects.IS_GONE: lambda: False}}, client.receive, client.send)
            assert (client.sent[0]["status"], qm.depth("Q1")) == (status, left), "what is no text is no answer"
            if status == 501:
                qm.get("Q1")
            else:
                assert client.sent[1]["body"] == body


@pytest.mark.skipif(not hasattr(select, "POLLRDHUP"), reason="only Linux says so")
def test_a_disconnect_is_detected_even_if_unread_data_precedes_it() -> None:
    class Transport(asyncio.Transport):
        def is_closing(self) -> bool:
            return is_closing

    is_closing = False
    ours, peer = socket.socketpair()
    with ours, peer:
        assert not protocol._is_gone(Transport(), ours.fileno())
        peer.sendall(b"a next request")
        assert not protocol._is_gone(Transport(), ours.fileno())
        is_closing = True
        assert protocol._is_gone(Transport(), ours.fileno())
        is_closing = False
        peer.close()
        assert protocol._is_gone(Transport(), ours.fileno())


async def test_a_stop_ends_waiting_requests(served: Served) -> None:
    app = served.app()
    async with alive(app), client_of(app) as client:
        waiting = asyncio.ensure_future(client.delete(f"{V1}/message", params={"wait": 60_000}))
        await client.get("/ready")
        context_of(app).stopping.set()
        assert number_of(await waiting) == (503, "INWB0009E", 0)
        assert number_of(await client.get("/ready")) == (503, "INWB0009E", 0)
        assert (await client.get("/health")).status_code == 200


def context_of(app: Any) -> Any:
    """The context that the requests of a worker share."""
    return app._app.default._store._context


# Values of the header, and their properties.
READ: list[tuple[list[str], dict[str, PropertyValue]]] = [
    (["myProp1;5;i1", 'myProp2;"My String";string'], {"myProp1": 5, "myProp2": "My String"}),
    (['myProp1;5;i1, myProp2;"My String";string'], {"myProp1": 5, "myProp2": "My String"}),
    (["a;TRUE;boolean,b;false;boolean"], {"a": True, "b": False}),
    (["a;-128;i1,b;-32768;i2,c;-2147483648;i4,d;-9223372036854775808;i8"],
     {"a": -128, "b": -32768, "c": -(2**31), "d": -(2**63)}),
    (["a;1;byte,b;1;short,c;1;integer,d;1;long,e;1.5;float,f;2;double"],
     {"a": 1, "b": 1, "c": 1, "d": 1, "e": 1.5, "f": 2.0}),
    (["a;-1.5e3;r8"], {"a": -1500.0}),
    (['a;"";string'], {"a": ""}),
    (["a;bare words;string"], {"a": "bare words"}),
    (['a;"1;2,3";string'], {"a": "1;2,3"}),
    ([r'a;"say \"no\" to C:\temp \\ \u00e9";string'], {"a": 'say "no" to C:\\temp \\ é'}),
    ([r'a;"\ud83d\ude00";string'], {"a": "😀"}),
    (["a;00ff;bin.hex"], {"a": b"\0\xff"}),
    (["a;;null"], {"a": None}),
    (['a; "b " ;string, c ; d e ;string'], {"a": "b ", "c": "d e"}),
    (["", " "], {}),
]  # fmt: skip


@pytest.mark.parametrize(("headers", "properties"), READ)
def test_a_header_is_read_as_properties(headers: list[str], properties: dict[str, PropertyValue]) -> None:
    assert read([one for one in headers if one.strip()]) == properties


@pytest.mark.parametrize(
    "header",
    ["a", "a;1", "a;1;i3", "a;x;i1", "a;128;i1", "a;1e400;r8", "a;nan;r8", "a;maybe;boolean", 'a;"open;string',
     "a;0;bin.hex",
     "a;1;null", "a;1;i1,a;2;i1", ";1;i1", "a;1;i1 b;2;i1", r'a;"\ud83d";string', "a;1_0;r8",
     "a;" + "9" * 5000 + ";i8",
     "a;" + " " * 30_000 + "x"],  # trying all ways to divide the blanks would take for ever
)  # fmt: skip
def test_a_header_that_is_not_properties_is_refused(header: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read([header])


NAMES = st.from_regex(r"[A-Za-z_$][A-Za-z0-9_$]{0,8}", fullmatch=True)
VALUES: st.SearchStrategy[PropertyValue] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(INTEGER_MIN, INTEGER_MAX),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.binary(max_size=10),
)


@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_properties_written_to_a_header_are_read_back(properties: dict[str, PropertyValue]) -> None:
    header = written(properties)
    assert header.isascii()
    assert header.isprintable()
    again = read([header]) if header else {}
    assert again == properties
    assert [type(one) for one in again.values()] == [type(one) for one in properties.values()]


@given(st.text(max_size=60))
def test_any_header_text_is_read_as_properties_or_refused(header: str) -> None:
    try:
        read([header])
    except ValueError as error:
        assert str(error)  # noqa: PT017 - either way is right, and an error says something
