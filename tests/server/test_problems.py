"""What goes wrong, in words for a client of HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.server.conftest import on_both

from inorder.errors import InorderError, ObjectInUse, Reason, UnknownQueue
from inorder.server.problems import Problem, of_admin_error, of_error, of_our_error
from inorder.stores.engine.catalog import Catalog

ERROR = ObjectInUse("Q1 is open, by 1 handle(s)", remedy="close it with close_queue('Q1')", queue="Q1")


@pytest.mark.parametrize(
    "made", [lambda error: of_error(error, "Q1", "QM1"), lambda error: of_admin_error(error, "Q1"), of_our_error]
)
def test_what_a_program_in_python_can_do_is_left_out(made: Callable[[InorderError], Problem]) -> None:
    said = made(ERROR).record()["message"]
    assert said.endswith("Q1 is open, by 1 handle(s) [2042 OBJECT_IN_USE]")
    assert "close_queue('Q1')" in str(ERROR), "it is for the programs that can"


@pytest.mark.parametrize("kind", ["address", "text", "object"])
async def test_it_is_left_out_of_what_a_command_is_answered(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ERROR

    monkeypatch.setattr(Catalog, "check_delete", refuse)
    commands: dict[str, dict[str, Any]] = {
        "text": {"type": "runCommand", "parameters": {"command": "DELETE QLOCAL(Q1)"}},
        "object": {"type": "runCommandJSON", "command": "delete", "qualifier": "qlocal", "name": "Q1"},
    }
    if kind == "address":
        answer = await client.delete("/ibmmq/rest/v1/admin/qmgr/QM1/queue/Q1")
    else:
        answer = await client.post("/ibmmq/rest/v1/admin/action/qmgr/QM1/mqsc", json=commands[kind])
    assert "Q1 is open, by 1 handle(s) [2042 OBJECT_IN_USE]" in answer.text


def test_a_picture_below_an_error_is_left_out() -> None:
    pictured = InorderError("at character 3: found ')'\na = )\n    ^", reason=Reason.SELECTOR_SYNTAX_ERROR)
    lines = InorderError("one\ntwo", reason=Reason.SELECTOR_SYNTAX_ERROR)
    for error, shown in ((pictured, "at character 3: found ')'"), (lines, "one two")):
        assert of_our_error(error).record()["message"] == f"INWB0014E: {shown} [2459 SELECTOR_SYNTAX_ERROR]"


@pytest.mark.parametrize("error", [ERROR, InorderError("x"), UnknownQueue("x", queue="Q1")], ids=type)
def test_administration_says_nothing_of_a_body_that_may_not_be_there(error: InorderError) -> None:
    record = of_admin_error(error, "Q1").record()
    assert "body" not in f"{record['message']} {record['explanation']} {record['action']}".lower()


@on_both
async def test_a_name_that_no_store_can_have_is_no_matter_of_a_body(client: httpx.AsyncClient) -> None:
    answer = await client.get("/ibmmq/rest/v1/login", auth=httpx.BasicAuth("sh\0op", "x"))
    assert answer.status_code in (400, 401)
    assert "body" not in answer.text.lower()
