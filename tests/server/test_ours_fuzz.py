"""Whatever a client sends to our interface, the answer is one that is described: never a traceback, never 500.

The requests are made from the description, with values that fit it, that nearly do, and that do not.
"""

from __future__ import annotations

from typing import Any

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.server.conftest import Served
from tests.server.described import BASE, Described, described
from tests.server.test_fuzz import JSON

from inorder.server.ours import interface
from inorder.server.ours.describing import Operation

OPERATIONS = [one for one in interface.OPERATIONS if one.is_json]
VALUES = st.one_of(
    st.sampled_from(
        ["true", "false", "0", "1", "7", "0.2", "-1", "1e9", "nan", "strict", "relaxed", "QM1:7", "00", "0f" * 24, "",
         "colour = 'red'", "colour =", "body", "x" * 300]
    ),
    st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=12),
)  # fmt: skip
WAITS = st.sampled_from(["0", "0.01", "-1", "x", "1e3"])
FIELDS = st.sampled_from(
    ["body", "body_base64", "body_json", "priority", "expiry", "message_id", "group_id", "flags", "sequence_number",
     "offset", "properties", "put_at", "persistent", "format", "report", "message_type", "delay", "transmission", "uid",
     "confirm_id", "lock_id", "messages", "original_length", "accounting_token", "reply_to_queue"]
)  # fmt: skip
LIKELY = st.one_of(
    JSON, st.integers(0, 31), st.sampled_from(["/w==", "text:a", "0f", "MQSTR"]), st.booleans(),
    st.fixed_dictionaries({"origin": st.just("QM1"), "number": st.one_of(st.integers(0, 200), JSON)}),
)  # fmt: skip
MESSAGES = st.dictionaries(FIELDS, LIKELY, max_size=4)
BODIES = st.one_of(
    JSON,
    MESSAGES,
    st.fixed_dictionaries({"body": st.text(max_size=5)}, optional={"priority": st.integers(-1, 11)}),
    st.fixed_dictionaries({"messages": st.lists(MESSAGES, max_size=3)}),
)


@st.composite
def requests(draw: st.DrawFn) -> tuple[Operation, Any, dict[str, str], dict[str, str]]:
    one = draw(st.sampled_from(OPERATIONS))
    named = {each.name: each for each in one.parameters}
    names = draw(st.lists(st.sampled_from(sorted(named)), max_size=4, unique=True)) if named else []
    query, headers = dict[str, str](), dict[str, str]()
    for parameter in (named[name] for name in names):
        value = draw(WAITS if parameter.name == "wait" else VALUES)
        if parameter.where == "query":
            query[parameter.name] = value
        else:
            headers[parameter.name] = value.strip()
    return one, draw(BODIES) if one.body is not None or draw(st.booleans()) else None, query, headers


def test_every_answer_is_one_that_is_described(served: Served) -> None:
    answers: set[int] = set()

    async def work(client: httpx.AsyncClient) -> None:
        ours = await described(client)
        for one, body, query, headers in found:
            answer = await _sent(ours, one, body, query, headers)
            answers.add(answer.status_code)
            assert answer.status_code not in (500, 501), (one.name, body, query, headers, answer.text)

    found: list[Any] = []

    @settings(suppress_health_check=list(HealthCheck), deadline=None)
    @given(st.lists(requests(), min_size=1, max_size=10))
    def many(some: list[Any]) -> None:
        found[:] = some
        served.run(work)

    many()
    assert {200, 400} <= answers, "the requests are too far from what is described"


async def _sent(
    ours: Described, one: Operation, body: Any, query: dict[str, str], headers: dict[str, str]
) -> httpx.Response:
    """Its answer; a good one fits the description, and so does a problem."""
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    content = {} if body is None else {"json": _finite(body)}
    answer = await ours.client.request(
        one.method, f"{BASE}/{one.path.replace('{queue}', 'Q1')}", params=query, headers=raw, **content
    )
    operation = ours.operations[one.name][2]
    described_as = (
        operation["responses"].get(str(answer.status_code)) or ours.document["components"]["responses"]["Error"]
    )
    if "content" in described_as:
        ours.validate(answer.json(), described_as["content"]["application/json"]["schema"])
    else:
        assert answer.content == b""
    return answer


def _finite(value: Any) -> Any:
    """What JSON can say."""
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return 1e308
    if isinstance(value, float) and value != value:  # noqa: PLR0124 - it is NaN
        return None
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list) else value
