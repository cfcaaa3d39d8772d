"""Whatever a browser sends to the console, the answer is a page, a file or a redirection: never an unexpected error."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, urlencode

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.server.conftest import Served, app_of, client_of
from tests.server.test_console import csrf_in
from tests.tiers import nightly

from inorder import Flags, QueueManager
from inorder.server.console.console import PAGES

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
    """The address of a page with these names in it."""
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
