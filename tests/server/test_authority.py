"""Each way to have a message put, for each role: nothing reaches a queue on which the same user may not put."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest
from tests.server.arrows import batch_of, keyed, stream_of
from tests.server.conftest import AS_ANYBODY, AS_NOBODY, PASSWORD, PORT, TEXT, Served, add, app_of
from tests.server.test_console_acting import send

import inorder
from inorder import QueueManager, Report
from inorder.mq import channels
from inorder.rules.dead_letters import WhyDead, buried
from inorder.server import calls
from inorder.server.console.listing import uid_text
from inorder.stores.sql import bulk

OURS = "/inorder/v1/queues"
SECRET = "what was got from Q1 by a user who may"
ASKS = {"report": int(Report.COA_WITH_FULL_DATA | Report.EXCEPTION)}
ELSEWHERE = ("DEAD", "START", "PARIS")
GRANTED = {"Q1": ["put", "get", "browse"], "NAME": ["put"], "FAR": ["put"], "REPLIES": ["put"]}
ROLES: dict[str, tuple[dict[str, Any], bool, bool]] = {  # definition; may it put on Q1; may it put everywhere
    "admin": ({"roles": ["admin"]}, True, True),
    "operator": ({"roles": ["operator"]}, True, True),
    "reader": ({"roles": ["reader"]}, False, False),
    "application": ({"roles": ["application"], "queues": GRANTED}, True, False),
    "application for nothing": ({"roles": ["application"]}, False, False),
}
DONE = (200, 201, 303)
Lose = Callable[[QueueManager], None]
Way = Callable[[httpx.AsyncClient, dict[str, Any]], Awaitable[httpx.Response]]


def record(asked: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"body": SECRET, **ASKS, **asked, **more}


async def put(client: httpx.AsyncClient, asked: dict[str, Any], queue: str = "Q1", **given: Any) -> httpx.Response:
    return await client.post(f"{OURS}/{queue}/put", json=record(asked), **given)


async def put_many(client: httpx.AsyncClient, asked: dict[str, Any]) -> httpx.Response:
    return await client.post(f"{OURS}/Q1/put_many", json={"messages": [{"body": "1"}, record(asked)]})


async def put_group(client: httpx.AsyncClient, asked: dict[str, Any]) -> httpx.Response:
    return await client.post(f"{OURS}/Q1/put_many?group=true", json={"messages": [record(asked), record(asked)]})


async def put_in_a_lease(client: httpx.AsyncClient, asked: dict[str, Any]) -> httpx.Response:
    lease = {"Inorder-Lease": (await client.post("/inorder/v1/leases")).json()["token"]}
    answer = await put(client, asked, headers=lease)
    await client.post("/inorder/v1/lease/commit", headers=lease)
    return answer


async def put_and_confirm(client: httpx.AsyncClient, asked: dict[str, Any]) -> httpx.Response:
    answer = await put(client, asked, params={"confirm_id": 7})
    if answer.status_code == 201:
        confirmed = await client.post(f"{OURS}/Q1/confirm_put", json={"uid": answer.json()["uid"]})
        assert confirmed.status_code == 200, confirmed.text
    return answer


async def put_arrow(client: httpx.AsyncClient, asked: dict[str, Any]) -> httpx.Response:
    pytest.importorskip("pyarrow", reason="needs the extra inorder[arrow]")
    columns = {name: [value] for name, value in {"report": int(Report.EXCEPTION_WITH_FULL_DATA), **asked}.items()}
    stream = stream_of(batch_of([SECRET.encode()], **columns))
    return await client.post(f"{OURS}/Q1/arrow", content=stream, headers=keyed(uuid.uuid4().hex))


async def import_file(client: httpx.AsyncClient, asked: dict[str, Any], **fields: str) -> httpx.Response:
    page = (await client.get("/console/queue/Q1/put")).text
    csrf = page.partition('name="csrf" value="')[2][:64]
    files = {"file": ("a.jsonl", json.dumps(record(asked)).encode())}
    return await client.post("/console/queue/Q1/import", data={"csrf": csrf, **fields}, files=files)


WAYS: dict[str, Way] = {
    "put": put,
    "put under a key": lambda client, asked: put(client, asked, headers={"Idempotency-Key": uuid.uuid4().hex}),
    "put by an alias": lambda client, asked: put(client, asked, "NAME"),
    "put by a remote name": lambda client, asked: put(client, asked, "FAR"),
    "put_many": put_many,
    "put_many as a group": put_group,
    "put in a lease": put_in_a_lease,
    "put and confirm": put_and_confirm,
    "put_arrow": put_arrow,
    "import": import_file,
}


@pytest.fixture
def site(served: Served, qm: QueueManager) -> Served:
    for name in ("DEAD", "START", "REPLIES"):
        qm.create_queue(name)
    qm.create_queue("PARIS", usage="transmission")
    qm.create_queue("NAME", type="alias", base_queue="Q1")
    qm.create_queue("FAR", type="remote", remote_queue="Q9", remote_manager="PARIS")
    qm.admin.alter_manager(dead_letter_queue="DEAD")
    return served


def landed(qm: QueueManager, *queues: str) -> list[str]:
    """The queues that contain the body, except copies on their way to Q9."""
    there = [(name, one) for name in queues for one in qm.browse(name)]
    return sorted(
        {n for n, it in there if it.body == SECRET.encode() and getattr(it.transmission, "queue", "") != "Q9"}
    )


TARGETS: list[dict[str, Any]] = [
    {"reply_to_queue": "DEAD"},
    {"reply_to_queue": "START"},
    {"reply_to_queue": "PARIS"},
    {"reply_to_queue": "REPLIES", "reply_to_queue_manager": "PARIS"},
    {"reply_to_queue": "FAR"},
    {"reply_to_queue": "NONE"},
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("role", ROLES)
async def test_a_body_reaches_only_queues_to_which_its_user_may_put(
    client: httpx.AsyncClient, site: Served, qm: QueueManager, role: str, way: str
) -> None:
    given, may_put, may_all = ROLES[role]
    add(site, "anna", **given)
    client.auth = httpx.BasicAuth("anna", PASSWORD)
    for target in TARGETS:
        answer = await WAYS[way](client, target)
        assert answer.status_code in (DONE if may_all else (403,)), answer.text
    if may_all:
        arrives = way not in ("put by a remote name", "put_arrow")  # forwarded; asks only for exceptions
        assert landed(qm, "DEAD", "START") == (["DEAD", "START"] if arrives else [])
        return
    assert landed(qm, *ELSEWHERE, "Q1", "REPLIES") == []
    status = (await WAYS[way](client, {"reply_to_queue": "REPLIES"})).status_code
    assert status in (DONE if may_put else (403,))
    assert landed(qm, *ELSEWHERE) == []


# --- messages that are put again


def lay(qm: QueueManager, queue: str, **given: Any) -> str:
    """Puts a message that asks for reports on START, or a dead letter of it. Returns its unique id."""
    message = inorder.Message(SECRET.encode(), report=Report.COD_WITH_FULL_DATA, reply_to_queue="START")
    if given:
        letter = buried(message, WhyDead(2053, given["target"], given.get("manager", ""), 1.0, "test"))
        assert isinstance(letter, inorder.Message)
        message = letter
    return uid_text(qm.put(queue, message, context="set_all").uid)


AGAIN: dict[str, tuple[str, dict[str, str], str, dict[str, Any]]] = {
    "move": ("Q1", {}, "queue/Q1/act", {"action": "move", "target": "REPLIES", "typed": "Q1"}),
    "copy": ("Q1", {}, "queue/Q1/act", {"action": "copy", "target": "REPLIES"}),
    "move to the dead": ("Q1", {}, "queue/Q1/act", {"action": "move", "target": "DEAD", "typed": "Q1"}),
    "replay": ("DEAD", {"target": "REPLIES"}, "dead", {"action": "replay"}),
    "replay to a queue": ("DEAD", {"target": "START"}, "dead", {"action": "replay", "target": "REPLIES"}),
    "replay to another site": ("DEAD", {"target": "REPLIES", "manager": "PARIS"}, "dead", {"action": "replay"}),
}


@pytest.mark.parametrize("act", AGAIN)
@pytest.mark.parametrize("role", ROLES)
async def test_a_message_that_is_put_again_needs_the_authority_of_the_user_who_does_it(
    client: httpx.AsyncClient, site: Served, qm: QueueManager, role: str, act: str
) -> None:
    """The message asks for a report on START: a user who may not put there cannot have it put again."""
    given, _, may_all = ROLES[role]
    if role == "application":
        given = {**given, "queues": {**GRANTED, "DEAD": ["get", "browse"]}}
    add(site, "anna", **given)
    client.auth = httpx.BasicAuth("anna", PASSWORD)
    queue, why, path, fields = AGAIN[act]
    uid = lay(qm, queue, **why)
    await send(client, path, uid=uid, step="do", **fields)
    assert landed(qm, queue) == ([] if may_all and act != "copy" else [queue])
    others = [one for one in (*ELSEWHERE, "REPLIES") if one not in (queue, *(["START"] if may_all else []))]
    where = "PARIS" if act == "replay to another site" else fields.get("target", "REPLIES")
    assert landed(qm, *others) == ([where] if may_all else [])


WAYS_ELSEWHERE: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/ibmmq/rest/v3/messaging/qmgr/QM1/queue/{}/message", {"content": "1", "headers": TEXT}),
    ("DELETE", "/ibmmq/rest/v3/messaging/qmgr/QM1/queue/{}/message", {}),
    ("GET", "/ibmmq/rest/v3/messaging/qmgr/QM1/queue/{}/messagelist", {}),
    ("POST", OURS + "/{}/put", {"json": {"body": "1"}}),
    ("POST", OURS + "/{}/put_many", {"json": {"messages": [{"body": "1"}]}}),
    ("POST", OURS + "/{}/get", {}),
    ("POST", OURS + "/{}/get_many?count=2", {}),
    ("GET", OURS + "/{}/browse", {}),
]


async def test_no_user_reaches_another_store_with_the_authority_of_the_server(
    client: httpx.AsyncClient, site: Served, qm: QueueManager
) -> None:
    with inorder.connect(site.folder / "other.db", name="OTHER") as other:
        other.create_queue("Q")
        other.put("Q", SECRET.encode())
        channels.define_connection(qm, "OTHER", str(site.folder / "other.db"))
        to_other: Any = {"type": "remote", "mode": "synchronous", "remote_manager": "OTHER", "connection": "OTHER"}
        qm.create_queue("THERE", remote_queue="Q", **to_other)
        qm.create_queue("ALSO.THERE", type="alias", base_queue="THERE")
        for method, address, given in WAYS_ELSEWHERE:
            for queue in ("THERE", "ALSO.THERE"):
                answer = await client.request(method, address.format(queue), **given)
                assert answer.json()["error"][0]["reasonCode"] == 2045, (address, answer.text)
                assert SECRET not in answer.text
        page = await client.get("/console/queue/THERE")
        done = await send(client, "queue/THERE/put", body="1")
        assert SECRET not in page.text + done.text
        assert [message.body.decode() for message in other.browse("Q")] == [SECRET]
        assert len(other.inspect.connections()) == 1


async def test_the_launch_token_may_put_with_any_reply_queue(client: httpx.AsyncClient, site: Served) -> None:
    for target in TARGETS:
        assert (await put(client, target)).status_code == 201
    client.auth = AS_NOBODY
    assert (await put(client, TARGETS[0])).status_code == 401


async def test_reports_need_the_current_authority_of_their_user_and_a_refusal_names_the_queue(
    client: httpx.AsyncClient, site: Served, qm: QueueManager
) -> None:
    add(site, "anna", roles=["application"], queues=GRANTED)
    client.auth = httpx.BasicAuth("anna", PASSWORD)
    refused = await put(client, {"reply_to_queue": "START"})
    (error,) = refused.json()["error"]
    assert (error["msgId"], error["reasonCode"]) == ("MQWB0103E", 2035)
    assert "'START'" in error["message"]
    await client.post(
        f"{OURS}/Q1/put", json={"body": SECRET, "report": int(Report.COD_WITH_FULL_DATA), "reply_to_queue": "REPLIES"}
    )
    qm.accounts.alter_user("anna", queues={"Q1": ["put"]})
    qm.get("Q1")
    (letter,) = qm.dead.letters()
    assert (letter.why.reason, letter.message.body, qm.depth("REPLIES")) == (2035, b"", 0)


# --- a request that goes on after its user has lost the authority


def disable(qm: QueueManager) -> None:
    qm.accounts.alter_user("anna", enabled=False)


def disable_and_enable(qm: QueueManager) -> None:
    disable(qm)
    qm.accounts.alter_user("anna", enabled=True)


def take_away(qm: QueueManager) -> None:
    qm.accounts.alter_user("anna", roles=["application"], queues={"REPLIES": ["put"]})


def delete(qm: QueueManager) -> None:
    qm.accounts.delete_user("anna")


LOSSES: dict[Lose, int] = {disable: 401, disable_and_enable: 401, take_away: 403, delete: 401}
loses = pytest.mark.parametrize("lose", LOSSES)
SLOW: dict[str, tuple[str, dict[str, str], bytes]] = {  # path, headers and body of a request
    "put": (f"{OURS}/Q1/put", {"Content-Type": "application/json"}, b'{"body": "late"}'),
    "IBM's put": ("/ibmmq/rest/v3/messaging/qmgr/QM1/queue/Q1/message", TEXT, b"late"),
    "MQSC": (
        "/ibmmq/rest/v3/admin/action/qmgr/QM1/mqsc",
        {"Content-Type": "application/json"},
        b'{"type": "runCommand", "parameters": {"command": "ALTER QLOCAL(Q1) DESCR(late)"}}',
    ),
}


async def slowly(qm: QueueManager, body: bytes, lose: Lose) -> AsyncIterator[bytes]:
    """A body in the middle of which its user loses the authority."""
    yield body[: len(body) // 2]
    lose(qm)
    yield body[len(body) // 2 :]


@pytest.mark.parametrize("asked", SLOW)
@loses
async def test_a_slow_request_changes_nothing_if_its_user_loses_access_meanwhile(
    client: httpx.AsyncClient,
    site: Served,
    qm: QueueManager,
    monkeypatch: pytest.MonkeyPatch,
    lose: Lose,
    asked: str,
) -> None:
    monkeypatch.setattr(calls, "SLOW_SECONDS", 0.0, raising=False)
    path, headers, body = SLOW[asked]
    add(site, "anna", roles=["application"], queues={"Q1": ["put", "alter"]})
    client.auth = httpx.BasicAuth("anna", PASSWORD)
    assert (await client.post(path, headers=headers, content=body)).status_code in (200, 201)
    qm.alter_queue("Q1", description="before")
    depth = qm.depth("Q1")
    answer = await client.post(path, headers=headers, content=slowly(qm, body, lose))
    assert answer.status_code == LOSSES[lose], answer.text
    assert (qm.depth("Q1"), qm.attributes("Q1").description) == (depth, "before")


@loses
async def test_a_stream_puts_nothing_if_its_user_has_lost_access_at_its_end(
    client: httpx.AsyncClient, site: Served, qm: QueueManager, lose: Lose
) -> None:
    add(site, "anna", roles=["application"], queues={"Q1": ["put"]})
    client.auth = httpx.BasicAuth("anna", PASSWORD)
    body = slowly(qm, stream_of(batch_of([b"late"])), lose)
    answer = await client.post(f"{OURS}/Q1/arrow", content=body, headers=keyed("k"))
    assert answer.status_code == LOSSES[lose], answer.text
    assert (qm.depth("Q1"), qm.inspect.units()) == (0, [])


async def taken_slowly(client: httpx.AsyncClient, request: httpx.Request, then: Callable[[], object]) -> bytes:
    """Calls `then` when the first bytes of the answer arrive. Returns the body, which must be incomplete."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)
        if len(sent) == 2:
            then()

    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1",
        "method": request.method, "scheme": "http", "path": request.url.path,
        "raw_path": request.url.raw_path.partition(b"?")[0],
        "root_path": "", "query_string": request.url.query, "client": ("127.0.0.1", 1), "server": ("localhost", PORT),
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
    }  # fmt: skip
    await app_of(client)(scope, receive, send)
    assert sent[0]["status"] == 200
    assert {one["more_body"] for one in sent[1:]} == {True}, "it has its end"
    return b"".join(one["body"] for one in sent[1:])


@pytest.mark.parametrize("how", ["claim", "export"])
@loses
async def test_a_slow_download_stops_when_its_user_loses_access(
    client: httpx.AsyncClient, site: Served, qm: QueueManager, monkeypatch: pytest.MonkeyPatch, lose: Lose, how: str
) -> None:
    monkeypatch.setattr(bulk, "PAGE_ROWS", 1)
    add(site, "anna", roles=["application"], queues={"Q1": ["get", "browse"]})
    auth = httpx.BasicAuth("anna", PASSWORD)
    qm.put_many("Q1", [b"1" * 70_000, b"2" * 70_000])
    if how == "claim":
        epoch = (await client.post(f"{OURS}/Q1/readers/r", auth=auth)).json()["epoch"]
        request = client.build_request("POST", f"{OURS}/Q1/readers/r/arrow", params={"epoch": epoch, "after": 0})
    else:
        request = client.build_request("GET", "/console/queue/Q1/export", params={"form": "jsonl", "selector": ""})
    request = next(auth.auth_flow(request))
    found = await taken_slowly(client, request, lambda: lose(qm))
    assert b"1111" in found
    assert b"2222" not in found


async def test_a_claim_released_while_it_is_sent_is_cut_off_with_a_warning_and_no_traceback(
    client: httpx.AsyncClient, qm: QueueManager, caplog: pytest.LogCaptureFixture
) -> None:
    qm.put("Q1", b"given back")
    epoch = (await client.post(f"{OURS}/Q1/readers/r")).json()["epoch"]
    request = client.build_request("POST", f"{OURS}/Q1/readers/r/arrow", params={"epoch": epoch, "after": 0})

    def then() -> None:
        assert qm.bulk.release_claims("Q1", "r") == 1

    assert b"given back" not in await taken_slowly(client, next(AS_ANYBODY.auth_flow(request)), then)
    (said,) = (one for one in caplog.records if one.levelname != "INFO")
    assert (said.levelname, said.exc_info) == ("WARNING", None)
    assert "9012" in said.getMessage()


async def test_a_reader_with_the_name_of_a_channel_is_refused(
    client: httpx.AsyncClient, site: Served, qm: QueueManager
) -> None:
    add(site, "anna", roles=["application"], queues={"PARIS": ["get"]})
    client.auth = httpx.BasicAuth("anna", PASSWORD)
    reader = f"{OURS}/PARIS/readers/channel%20TO.PARIS"
    asked = {"": {}, "/settle": {"epoch": 1, "upto": 1}, "/release": {}, "/arrow": {"epoch": 1, "after": 0}}
    for path, query in asked.items():
        answer = await client.post(reader + path, params=query)
        assert answer.status_code == 400, answer.text
    assert qm.bulk.claims() == []
