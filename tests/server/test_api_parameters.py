"""The kinds of parameters of our own interface."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.server.described import Described, refusal

from inorder import Message, QueueManager
from inorder.formats.json_lines import id_of
from inorder.model.options import MATCHABLE
from inorder.server.api.interface import OPERATIONS
from inorder.server.api.parameters import MATCHING


@pytest.mark.parametrize("name", ["message_id", "correlation_id", "group_id"])
async def test_an_id_is_asked_for_as_it_is_put(qm: QueueManager, ours: Described, name: str) -> None:
    shown = b"MINE".hex()
    qm.put("Q1", Message(b"other"))
    await ours("put", {"body": "x", name: "text:MINE", **({"flags": 24} if name == "group_id" else {})})
    for given in ("text:MINE", shown, shown.upper(), shown.ljust(48, "0")):
        asked: dict[str, Any] = {name: given}
        (found,) = (await ours("browse", **asked)).json()["messages"]
        assert (found["body"], found[name]) == ("x", shown)
    asked = {name: "text:NONE"}
    assert (await ours("get", **asked)).status_code == 204
    asked = {name: "text:MINE"}
    assert (await ours("get", **asked)).json()["body"] == "x"


@pytest.mark.parametrize("given", ["", "text:", "no", "abc", f"text:{'x' * 25}", "ab" * 25, f"text:{'é' * 13}", " ab"])
async def test_what_is_no_id_is_refused_with_what_is_one(ours: Described, given: str) -> None:
    answer = await ours("get", group_id=given)
    assert refusal(answer) == (400, "INWB0003E", 0)
    allowed = "'group_id' must be 2 to 48 hexadecimal digits, two for each byte, or text: and a text of 1 to 24 bytes"
    assert allowed in answer.text


@pytest.mark.parametrize("given", ["00ff", "AB" * 24, "text:order 7", "text:\u00e9", f"text:{'x' * 24}", "text:text:"])
def test_both_readers_of_ids_agree_and_so_does_the_schema(given: str) -> None:
    parameter = next(one for one in MATCHING if one.name == "group_id")
    assert parameter.kind.read("group_id", given) == id_of(given)
    assert re.search(parameter.schema["pattern"], given)


def test_a_get_may_match_on_all_of_the_one_list() -> None:
    for name in ("get", "get_many", "browse_and_lock"):
        (operation,) = (one for one in OPERATIONS if one.name == name)
        assert {one.name for one in MATCHABLE} <= {one.name for one in operation.parameters}


async def test_a_get_by_priority(qm: QueueManager, ours: Described) -> None:
    for priority in (3, 5):
        qm.put("Q1", Message(b"x", priority=priority))
    assert (await ours("get", priority=3)).json()["priority"] == 3
    answer = await ours("get", priority=-1)
    assert refusal(answer) == (400, "INWB0003E", 0)
    assert "The query parameter 'priority' must be an integer from 0 to 999,999,999, not '-1'" in answer.text
