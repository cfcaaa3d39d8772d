"""What all requests share: the body, read as JSON, and none where there is to be none."""

from __future__ import annotations

import httpx
import pytest
from tests.server.test_messaging import V1, number_of

from inorder.server.calls import AT_ONCE

JSON = {"Content-Type": "application/json"}
Q = "/inorder/v1/queues/Q1"
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
async def test_a_key_that_is_there_twice_is_refused(
    client: httpx.AsyncClient, method: str, path: str, body: str, key: str
) -> None:
    answer = await client.request(method, path, content=body, headers=JSON)
    assert number_of(answer) == (400, "INWB0004E", 0)
    assert f'the key "{key}" appears more than once' in answer.json()["error"][0]["message"]


async def test_the_same_key_in_two_objects_is_good(client: httpx.AsyncClient) -> None:
    body = {"messages": [{"body": "a", "properties": {"body": "x"}}, {"body": "a"}]}
    assert (await client.post(f"{Q}/put_many", json=body)).status_code == 201


async def test_where_there_is_to_be_no_body_one_is_refused_so(client: httpx.AsyncClient) -> None:
    answer = await client.request("DELETE", f"{V1}/message", content="x")
    assert number_of(answer) == (400, "INWB0004E", 0)
    assert "this request takes no body" in answer.json()["error"][0]["message"]
