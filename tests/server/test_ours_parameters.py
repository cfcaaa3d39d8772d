"""The kinds of parameters of our own interface."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.server.described import Described, refusal

from inorder import Message, QueueManager
from inorder.formats.json_lines import id_of
from inorder.server.ours.parameters import identifier


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
    allowed = "'group_id' is not valid: it is 1 to 24 bytes as hexadecimal digits, or text: and a text of 1 to 24"
    assert allowed in answer.text


@pytest.mark.parametrize("given", ["00ff", "AB" * 24, "text:order 7", "text:\u00e9", f"text:{'x' * 24}", "text:text:"])
def test_both_readers_of_ids_agree_and_so_does_the_schema(given: str) -> None:
    parameter = identifier("group_id", "A group.")
    assert parameter.read(given) == id_of(given)
    assert re.search(parameter.schema["pattern"], given)


def test_a_token_which_nobody_makes_up_is_in_hex_alone() -> None:
    with pytest.raises(ValueError, match=r"^it is 1 to 16 bytes as hexadecimal digits, not 'text:a'$"):
        identifier("token", "A token.", 16).read("text:a")
