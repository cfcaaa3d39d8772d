"""Authentication by tokens, passwords and cookies; host names and origins; the log and the metrics."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import httpx
import pytest
from tests.server.conftest import AS_NOBODY, KEY, PORT, TEXT, TOKEN, Served, alive, app_of, client_of, serving
from tests.server.test_messaging import V1, context_of, number_of

from inorder.server import Limits
from inorder.server.logs import LOGGER, JsonFormatter, JsonLines, log_request
from inorder.server.sessions import Sessions

COOKIE = f"LtpaToken2_{PORT}"
LOGIN = "/ibmmq/rest/v2/login"


async def test_only_requests_with_the_right_token_are_accepted(client: httpx.AsyncClient) -> None:
    client.auth = AS_NOBODY
    message = f"{V1}/message"
    for headers, expected in (
        ({}, 401),
        ({"Authorization": f"Bearer {TOKEN}"}, 204),
        ({"Authorization": f"bearer  {TOKEN} "}, 204),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Bearer \xe9"}, 401),
        ({"Authorization": f"Digest {TOKEN}"}, 401),
        ({"Authorization": "Basic !!!"}, 401),
        ({"Authorization": "Basic bm9jb2xvbg=="}, 401),
        ({"Authorization": ""}, 401),
    ):
        sent = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
        answer = await client.get(message, headers=sent)
        assert answer.status_code == expected, headers
        if expected == 401:
            assert number_of(answer) == (401, "MQWB0104E", 0)
            assert answer.headers["www-authenticate"].startswith("Basic ")
    assert (await client.get(message, auth=("anybody", TOKEN))).status_code == 204
    assert (await client.get(message, auth=("anybody", "wrong"))).status_code == 401
    assert (await client.get("/nowhere")).status_code == 404


async def test_a_login_sets_a_cookie_and_a_logout_removes_it(client: httpx.AsyncClient) -> None:
    client.auth = AS_NOBODY
    refused = await client.post(LOGIN, json={"username": "me", "password": "wrong"})
    assert number_of(refused) == (401, "MQWB0104E", 0)
    for wrong in ({}, {"username": "me"}, {"username": 1, "password": ""}, {"username": "", "password": "", "x": 1}):
        assert number_of(await client.post(LOGIN, json=wrong)) == (400, "INWB0004E", 0)
    del client.headers["ibm-mq-rest-csrf-token"]  # a login does not need it
    done = await client.post(LOGIN, json={"username": "me", "password": TOKEN})
    assert (done.status_code, done.content) == (204, b"")
    (cookie,) = done.headers.get_list("set-cookie")
    assert cookie.startswith(f"{COOKIE}=")
    assert {"httponly", "samesite=strict", "path=/", "max-age=7200"} <= {it.strip().lower() for it in cookie.split(";")}
    assert "secure" not in cookie.lower()
    user = {"name": "launch-token", "role": ["MQWebAdmin", "MQWebUser"]}
    assert (await client.get(LOGIN)).json() == {"user": [user]}
    assert number_of(await client.delete(LOGIN)) == (401, "MQWB0100E", 0)
    gone = await client.delete(LOGIN, headers={"ibm-mq-rest-csrf-token": ""})
    assert gone.status_code == 204
    assert not client.cookies
    assert number_of(await client.get(LOGIN)) == (401, "MQWB0104E", 0)


async def test_a_repeated_key_is_found_in_time_in_proportion_to_the_number_of_keys(client: httpx.AsyncClient) -> None:
    keys = [*range(90_000), 89_999]  # comparing each with each would take minutes
    body = ",".join(f'"{one}":1' for one in keys)
    client.auth = AS_NOBODY
    answer = await client.post(LOGIN, content=f"{{{body}}}", headers={"Content-Type": "application/json"})
    assert number_of(answer) == (400, "INWB0004E", 0)
    assert 'the key "89999" appears more than once' in answer.json()["error"][0]["message"]


@serving(is_secure=True)
async def test_with_tls_the_cookie_is_marked_secure(client: httpx.AsyncClient) -> None:
    done = await client.post(LOGIN, json={"username": "me", "password": TOKEN})
    assert "; secure" in done.headers["set-cookie"].lower()


async def test_a_session_is_valid_at_every_worker_and_at_no_other_server(served: Served) -> None:
    async with alive(served.app()) as first, alive(served.app()) as second, client_of(first) as client:
        await client.post(LOGIN, json={"username": "me", "password": TOKEN})
        value = client.cookies[COOKIE]
        for app, key_is_same in ((second, True), (served.app(key=bytes(32)), False)):
            async with alive(app), client_of(app, auth=None, cookies={COOKIE: value}) as other:
                answer = await other.get(LOGIN)
                if key_is_same:
                    assert answer.status_code == 200
                else:
                    assert number_of(answer) == (401, "MQWB0112E", 0)


@pytest.mark.parametrize(
    ("later", "found"), [(59.0, ("me", "this one")), (60.0, None), (-500.0, None)], ids=["there", "over", "clock back"]
)
def test_a_session_expires_and_is_not_valid_before_it_began(later: float, found: tuple[str, str] | None) -> None:
    now = [1000.0]
    sessions = Sessions(KEY, 60.0, lambda: now[0])
    cookie = sessions.begin("me", "this one")
    now[0] += later
    assert sessions.read(cookie) == found


def test_a_cookie_that_was_changed_is_not_valid() -> None:
    sessions = Sessions(KEY, 60.0, lambda: 0.0)
    cookie = sessions.begin("me", "this one")
    assert sessions.read(cookie) == ("me", "this one")
    for place in range(len(cookie)):
        other = "A" if cookie[place] != "A" else "B"
        changed = cookie[:place] + other + cookie[place + 1 :]
        assert sessions.read(changed) in (None, ("me", "this one"))
        if sessions.read(changed):  # the last character of each base64 part has unused bits
            assert cookie[place + 1 : place + 2] in ("", ".")
    for nonsense in ("", ".", "a", "a.b", "é.é", cookie.split(".")[0], "." + cookie.split(".")[1]):
        assert sessions.read(nonsense) is None


async def test_the_printed_link_begins_a_session(client: httpx.AsyncClient) -> None:
    client.auth = AS_NOBODY
    assert number_of(await client.get("/")) == (401, "MQWB0104E", 0)
    assert number_of(await client.get("/?token=wrong")) == (401, "MQWB0104E", 0)
    assert number_of(await client.get(f"/?token=wrong{'&x=' * 40}")) == (401, "MQWB0104E", 0)
    moved = await client.get(f"/?token={TOKEN}")
    assert (moved.status_code, moved.headers["location"]) == (303, "/console/")
    assert (await client.get("/")).json()["queue_manager"] == "QM1"


async def test_only_a_get_needs_no_csrf_header(client: httpx.AsyncClient) -> None:
    del client.headers["ibm-mq-rest-csrf-token"]
    message = f"{V1}/message"
    assert (await client.get(message)).status_code == 204
    for method, path in (
        ("POST", message),
        ("DELETE", message),
        ("POST", "/ibmmq/rest/v3/admin/action/qmgr/QM1/mqsc"),
        ("DELETE", LOGIN),
    ):
        assert number_of(await client.request(method, path)) == (401, "MQWB0100E", 0)


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost", 204), (f"localhost:{PORT}", 204), ("LOCALHOST:1", 204), ("127.0.0.1:9443", 204), ("[::1]:9443", 204),
     ("evil.example", 421), ("localhost.evil.example", 421), ("localhost@evil.example", 421), ("localhost:x", 421),
     ("127.0.0.2", 421), ("", 421), ("[::1", 421), ("localhost/evil", 421)],
)  # fmt: skip
async def test_a_host_name_that_is_not_the_server_s_is_refused(
    client: httpx.AsyncClient, host: str, status: int
) -> None:
    answer = await client.get(f"{V1}/message", headers={"Host": host})
    assert answer.status_code == status
    assert (await client.get("/health", headers={"Host": host})).status_code == (200 if status == 204 else 421)


@pytest.mark.parametrize(
    ("origin", "status"),
    [("http://localhost:9443", 204), ("https://localhost:9443", 403), ("http://localhost", 403), ("null", 403),
     ("http://evil.example", 403), ("", 403)],
)  # fmt: skip
async def test_another_origin_is_refused(client: httpx.AsyncClient, origin: str, status: int) -> None:
    assert (await client.get(f"{V1}/message", headers={"Origin": origin})).status_code == status


@serving(limits=Limits(head=1000))
async def test_a_long_head_is_refused(client: httpx.AsyncClient) -> None:
    for given in ({"headers": {"X-Long": "x" * 1000}}, {"params": {"x": "x" * 1000}}):
        answer = await client.get(f"{V1}/message", **given)  # type: ignore[arg-type]
        assert number_of(answer) == (431, "INWB0006E", 0)
    assert (await client.get(f"{V1}/message")).status_code == 204


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [("GET", "/nowhere", (404, "INWB0001E", 0)), ("POST", "/health", (405, "INWB0002E", 0)),
     ("PUT", f"{V1}/message", (405, "INWB0002E", 0)), ("GET", "/ibmmq/rest/v4/login", (404, "INWB0001E", 0)),
     ("GET", "/ibmmq/rest", (404, "INWB0001E", 0)), ("GET", "/ibmmq/rest/v1/messaging/qmgr/QM1/queue//message",
      (404, "INWB0001E", 0)), ("GET", "/ibmmq/rest/v1/messaging/qmgr/QM1/queue/%FF/message", (404, "INWB0001E", 0))],
)  # fmt: skip
async def test_unknown_paths_and_methods_are_reported_in_the_common_error_format(
    client: httpx.AsyncClient, method: str, path: str, expected: tuple[int, str, int]
) -> None:
    answer = await client.request(method, path)
    assert number_of(answer) == expected
    assert ("allow" in answer.headers) == (expected[0] == 405)
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_health_and_readiness_need_no_token(client: httpx.AsyncClient) -> None:
    client.auth = AS_NOBODY
    assert (await client.get("/health")).json() == {"status": "ok"}
    assert (await client.get("/ready")).json() == {"status": "ready"}


async def test_a_store_that_cannot_be_used_is_not_ready(client: httpx.AsyncClient) -> None:
    await context_of(app_of(client)).qm.close()
    assert (await client.get("/ready")).status_code == 503
    assert (await client.get("/health")).status_code == 200


@pytest.mark.parametrize("workers", [1, 2])
def test_metrics_are_those_of_the_store(served: Served, workers: int) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        assert (await client.get("/metrics", auth=None)).status_code == 401
        await client.post(f"{V1}/message", content="x", headers=TEXT)
        page = (await client.get("/metrics", auth=None, headers={"Authorization": f"Bearer {TOKEN}"})).text
        assert 'inorder_queue_depth{queue="Q1"} 1.0' in page
        assert "inorder_up 1.0" in page
        assert ("inorder_calls_total" in page) == (workers == 1)

    served.run(work, workers=workers)


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def log() -> Iterator[Lines]:
    handler, logger = Lines(), logging.getLogger(LOGGER)
    logger.addHandler(handler)
    before = logger.level
    logger.setLevel(logging.INFO)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(before)


async def test_the_log_is_json_and_has_no_secrets(client: httpx.AsyncClient, log: Lines) -> None:
    await client.post(LOGIN, json={"username": "me", "password": TOKEN})
    cookie = client.cookies[COOKIE]
    await client.get(f"/?token={TOKEN}")
    await client.get(f"{V1}/message", headers={"Authorization": f"Bearer {TOKEN}"})
    await client.post(f"{V1}/message", content="the body", headers=TEXT | {"X-Secret": "a header"})
    await client.get("/no%0Aline")
    written = "\n".join(log.lines)
    for secret in (TOKEN, cookie, "the body", "a header"):
        assert secret not in written
    records: list[dict[str, Any]] = [json.loads(line) for line in log.lines]
    put = next(one for one in records if one.get("status") == 201)
    assert put["event"] == "request"
    assert {name: put[name] for name in ("level", "method", "path", "status", "identity")} == {
        "level": "info", "method": "POST", "path": f"{V1}/message", "status": 201, "identity": "launch-token",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("path", "identity", "client"),
    [("/a", "launch-token", "127.0.0.1"), ('/"\n\u00e9\u2028\ud800', None, None), ("/b", 'a"b', "::1")],
)
def test_the_log_line_of_a_request_is_the_same_with_and_without_a_log_record(
    path: str, identity: str | None, client: str | None
) -> None:
    ours, other, written = JsonLines(), Lines(), io.StringIO()
    ours.setStream(written)
    log = logging.getLogger(f"lines of {path!r}")
    log.setLevel(logging.INFO)
    log.propagate = False
    log.addHandler(ours)
    fields = ("GET", path, 200, 0.0001234567, identity, client)
    log_request(log, *fields)  # only the server's own handler gets it
    log.addHandler(other)
    log_request(log, *fields)
    first, second = written.getvalue().splitlines()
    assert second == other.lines[0]
    at = len('{"at": "2026-11-23T16:00:00.000Z"')
    assert first[at:] == second[at:]
    assert len(first) == len(second)
    assert abs((moment(first) - moment(second)).total_seconds()) < 60
    log.setLevel(logging.WARNING)
    log_request(log, *fields)
    assert len(written.getvalue().splitlines()) == 2


def moment(line: str) -> datetime:
    return datetime.fromisoformat(json.loads(line)["at"].replace("Z", "+00:00"))


async def test_an_internal_error_is_logged_and_its_details_are_not_shown(
    client: httpx.AsyncClient, log: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def breaks(*given: object) -> None:
        raise RuntimeError("the inner part")

    monkeypatch.setattr(context_of(app_of(client)).qm, "run", breaks)
    answer = await client.get(f"{V1}/message")
    assert number_of(answer) == (500, "MQWB0000E", 0)
    assert "inner" not in answer.text
    await asyncio.sleep(0)
    assert any("the inner part" in line for line in log.lines)
