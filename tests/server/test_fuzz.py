"""Any request of a client or a browser gets an answer of the interface or a page, never an internal error."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote, quote_from_bytes, urlencode

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.server.conftest import AS_NOBODY, TOKEN, Served, app_of, client_of
from tests.server.test_console import csrf_in
from tests.server.test_messaging import V1, V2, V3
from tests.tiers import nightly

from inorder import Flags, QueueManager
from inorder.server.console.console import PAGES

METHODS = st.sampled_from(["GET", "POST", "DELETE", "PATCH", "PUT", "HEAD", "OPTIONS"])
WORDS = (
    "ibmmq rest v1 v2 v3 login messaging admin action qmgr QM1 queue Q1 message messagelist topic mqsc installation"
    " health ready metrics . .. %2e%2e %2F %00"
)
PIECES = st.one_of(st.sampled_from(["", *WORDS.split()]), st.binary(max_size=8).map(quote_from_bytes))
PATHS = st.one_of(
    st.lists(PIECES, max_size=9).map(lambda pieces: "/" + "/".join(pieces)),
    st.sampled_from([f"{base}/{leaf}" for base in (V1, V2, V3) for leaf in ("message", "messagelist")]),
    st.sampled_from([f"/ibmmq/rest/v1/{leaf}" for leaf in ("login", "admin/qmgr/QM1/queue", "admin/qmgr/QM1/queue/Q1",
                                                          "admin/action/qmgr/QM1/mqsc", "admin/qmgr")]),
)  # fmt: skip
QUERIES = st.one_of(
    st.binary(max_size=30).map(lambda one: quote_from_bytes(one, safe="=&%+")),
    st.dictionaries(
        st.sampled_from(["messageId", "correlationId", "limit", "name", "status", "attributes", "type", "purge"]),
        st.one_of(st.sampled_from(["0", "*", "ID:" + "0" * 48, "0" * 48, "status.currentDepth"]), st.text(max_size=10)),
        max_size=3,
    ).map(lambda fields: "&".join(f"{name}={quote_from_bytes(value.encode())}" for name, value in fields.items())),
)
HEADER_NAMES = st.sampled_from(
    ["content-type", "content-length", "authorization", "cookie", "origin", "ibm-mq-md-correlationId",
     "ibm-mq-md-expiry",
     "ibm-mq-md-persistence", "ibm-mq-md-replyTo", "ibm-mq-md-priority", "ibm-mq-usr", "ibm-mq-md-messageId", "accept"]
)  # fmt: skip
HEADER_VALUES = st.one_of(
    st.sampled_from(
        ["text/plain;charset=utf-8", "application/json", "a;1;i1", 'a;"x";string', "persistent", "unlimited", "5",
         "Q@QM2", "Basic " + "A" * 7, "Bearer x", "LtpaToken2_9443=a.b", "ID:" + "0f" * 24, "charset", "; ; ;", "100"]
    ),
    st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=30),
)  # fmt: skip
HEADERS = st.lists(st.tuples(HEADER_NAMES, HEADER_VALUES), max_size=4)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=10)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=8,
)
BODIES = st.one_of(st.binary(max_size=60), JSON.map(lambda one: json.dumps(one).encode()))


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    query = draw(QUERIES)
    headers = [(name.encode(), value.strip().encode("latin-1")) for name, value in draw(HEADERS)]
    if draw(st.booleans()):
        headers.append((b"ibm-mq-rest-csrf-token", b""))
    if draw(st.integers(0, 9)) and not any(name == b"authorization" for name, _ in headers):
        headers.append((b"authorization", f"Bearer {TOKEN}".encode()))
    body = draw(BODIES)
    if draw(st.booleans()) and not any(name == b"content-type" for name, _ in headers):
        headers.append((b"content-type", b"application/json"))
    return {
        "method": draw(METHODS),
        "url": draw(PATHS) + (f"?{query}" if query else ""),
        "headers": headers,
        "content": body,
    }


def check(answer: httpx.Response, request: dict[str, Any]) -> None:
    """Checks that an error has the common form and is not an internal one."""
    assert answer.status_code < 600, request
    if answer.status_code >= 400 and request["method"] != "HEAD":
        (error,) = answer.json()["error"]
        assert error["messageId"] != "MQWB0000E", request
        assert answer.status_code != 500 or error["reasonCode"], request
        assert "Traceback" not in answer.text


# All examples share one store, so each finds what earlier ones left, as on a real server.
@nightly
def test_any_request_is_answered(served: Served) -> None:
    sent: list[dict[str, Any]] = []

    @settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
    @given(st.lists(requests(), min_size=1, max_size=10))
    def run(examples: list[dict[str, Any]]) -> None:
        sent.extend(examples)

        async def work(client: httpx.AsyncClient) -> None:
            client.auth, client.headers = AS_NOBODY, httpx.Headers()
            for request in examples:
                try:
                    prepared = client.build_request(**request)
                except httpx.InvalidURL:
                    continue
                check(await client.send(prepared), request)

        served.run(work)

    run()
    assert sent


HOSTILE = "<script>'\"&{{7*7}}\x00\u202e"
TEXTS = st.one_of(
    st.sampled_from(["", "0", "-1", "Q1", "QM1", "1-QM1", "all", "hex", "logical", "a = 1", "a =", "%", HOSTILE]),
    st.text(max_size=12),
)
FIELDS = st.sampled_from(
    ["name", "view", "selector", "physical", "logical", "order", "show", "uid", "to", "body", "queue", "command",
     "unit", "lock", "reason", "properties", "priority", "kind", "format", "confirm", "typed"]
)  # fmt: skip
VISITS = st.fixed_dictionaries(
    {
        "page": st.sampled_from([page for page in PAGES if page.path != "live"]),
        "method": st.sampled_from(["GET", "GET", "POST", "HEAD", "PUT"]),
        "names": st.lists(TEXTS, min_size=4, max_size=4),
        "query": st.lists(st.tuples(FIELDS, TEXTS), max_size=3),
        "form": st.lists(st.tuples(FIELDS, TEXTS), max_size=5),
        "kind": st.sampled_from(["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain"]),
        "is_ours": st.booleans(),
    }
)


def path_of(visit: dict[str, Any]) -> str:
    """The address of a page, with the names and the query of a visit."""
    names = iter(visit["names"])
    given_names = re.sub(
        r"\{\w+\}", lambda _: quote(next(names).encode("utf-8", "replace"), safe=""), visit["page"].path
    )
    query = urlencode([(name, value.encode("utf-8", "replace")) for name, value in visit["query"]])
    return f"/console/{given_names}?{query}"


@nightly
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(visits=st.lists(VISITS, min_size=1, max_size=20))
def test_every_visit_gets_an_answer(served: Served, visits: list[dict[str, Any]], qm: QueueManager) -> None:
    qm.create_queue("Q1", exist_ok=True)
    qm.put("Q1", HOSTILE.encode(), group_id=b"g", flags=Flags.IN_GROUP, properties={"a": 1})

    async def work(client: httpx.AsyncClient) -> None:
        token = csrf_in((await client.get("/console/")).text)
        for visit in visits:
            form = [*visit["form"], *([("csrf", token)] if visit["is_ours"] else [])]
            body = urlencode([(name, value.encode("utf-8", "replace")) for name, value in form])
            answer = await client.request(
                visit["method"],
                path_of(visit),
                content=body if visit["method"] == "POST" else None,
                headers={"Content-Type": visit["kind"]} if visit["method"] == "POST" else {},
            )
            assert answer.status_code < 500, (visit, answer.text)
            assert "<script>'" not in answer.text, visit
            assert "script-src 'self'" in answer.headers["content-security-policy"]

    served.run(work)


async def test_a_broken_upload_is_an_error_of_the_caller(client: httpx.AsyncClient) -> None:
    nameless = b"--y\r\nContent-Disposition: form-data\r\n\r\n1\r\n--y--"
    for body in (b"", b"--x", b"--x\r\n\r\n", nameless, b"\xff" * 99):
        kind = {"Content-Type": "multipart/form-data; boundary=x"}
        answer = await client.post("/console/log-out", content=body, headers=kind)
        assert answer.status_code in (400, 403), body
    assert (await client_of(app_of(client)).get("/console/")).status_code == 200
