"""The description of our interface: it is valid OpenAPI 3.1, complete, and true of each operation."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from tests.server.conftest import Served, on_both, serving, somebody
from tests.server.described import BASE, Described, refusal

from inorder import Message, QueueManager
from inorder.errors import InorderError, ObjectInUse, Reason, UnknownQueue
from inorder.formats.json_lines import id_of
from inorder.model.options import MATCHABLE
from inorder.server import Authority
from inorder.server.api import interface
from inorder.server.api.describing import JSON, ApiOperation
from inorder.server.api.interface import OPERATIONS
from inorder.server.api.parameters import MATCHING
from inorder.server.problems import Problem, of_admin_error, of_error, of_our_error
from inorder.stores.engine.catalog import Catalog

OPEN = {"openapi", "queues", "begin_lease", "lease", "extend_lease", "commit_lease", "back_out_lease", "queue_events"}


def test_no_two_operations_have_the_same_name_or_address() -> None:
    names = [one.name for one in interface.OPERATIONS]
    assert len(names) == len(set(names))
    places = [(one.method, one.path) for one in interface.OPERATIONS]
    assert len(places) == len(set(places))


@pytest.mark.parametrize("one", interface.OPERATIONS, ids=lambda one: one.name)
def test_an_operation_is_described_in_full(one: ApiOperation) -> None:
    assert one.summary.endswith(".")
    assert not one.text or one.text.endswith(".")
    assert (one.authority is None) == (one.name in OPEN), "an operation on a queue asks for an authority"
    assert all(parameter.summary.endswith(".") for parameter in one.parameters)
    assert len({parameter.name.lower() for parameter in one.parameters}) == len(one.parameters)
    for parameter in one.parameters:
        schema = dict(parameter.kind.schema)
        Draft202012Validator.check_schema(schema)
        if parameter.default is not None:
            Draft202012Validator(schema).validate(parameter.default)
        if parameter.where == "header":
            assert parameter.name.lower().startswith(interface.OURS), "others are not refused where nobody reads them"


async def test_the_openapi_description_is_valid_and_complete(client: httpx.AsyncClient) -> None:
    document = (await client.get(f"{BASE}/openapi.json")).json()
    assert document["openapi"] == "3.1.0"
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    used = set(re.findall(r'"#/components/schemas/(\w+)"', str(document).replace("'", '"')))
    assert used == document["components"]["schemas"].keys(), "each schema is there, and is used"
    for path, methods in document["paths"].items():
        for method, one in methods.items():
            in_path = {each["name"] for each in one["parameters"] if each["in"] == "path"}
            assert in_path == set(re.findall(r"{(\w+)}", path)), (path, method)


PYTHON = re.compile(
    r"\b(None|True|False|math\.\w+|inorder\.\w+|dicts?|mapping|tuple|datetime|bytes object|exception)\b"
    r"|`(Flags|Report|MessageType|Message|Match|\w+\(\))`|seconds since 1970"
)


def test_the_description_speaks_of_json_and_not_of_python() -> None:
    def texts(of: Any, at: str) -> list[tuple[str, str]]:
        if isinstance(of, dict):
            return [found for key, one in of.items() for found in texts(one, f"{at}.{key}")]
        if isinstance(of, list):
            return [found for n, one in enumerate(of) for found in texts(one, f"{at}[{n}]")]
        return [(at, of)] if isinstance(of, str) else []

    found = {at: text for at, text in texts(interface.document(), "") if PYTHON.search(text)}
    assert found == {}, "say it in terms of JSON, in ours/schemas.py for fields of messages"


async def test_null_in_a_message_means_what_the_description_says(qm: QueueManager, ours: Described) -> None:
    qm.alter_queue("Q1", default_priority=7, default_persistence=True, expiry=3_600.0)
    null = dict.fromkeys(("expiry", "priority", "persistent", "message_id", "group_id"))
    for given, has_an_end in (({}, True), (null, False)):
        await ours("put", {"body": "x", **given})
        got = (await ours("get")).json()
        assert (got["expiry"] is not None) == has_an_end
        assert (got["priority"], got["persistent"], got["group_id"]) == (7, True, None)
        assert got["message_id"]


def test_every_error_that_the_interface_names_is_described() -> None:
    """`Described` checks the answers that tests receive; this covers errors that no test may have caused."""
    folder = Path(interface.__file__).parent
    shared = [folder.parent / name for name in ("addresses.py", "authentication.py", "guard.py", "disconnects.py")]
    named = {
        number
        for path in (*folder.glob("*.py"), *shared)
        for number in re.findall(r'problem\(\s*"(\w+)"', path.read_text(encoding="utf-8"))
    }
    assert {"INWB0003E", "INWB0020E", "MQWB0104E"} <= named
    described = interface.document()["components"]["responses"]["Error"]["x-errors"]
    assert named <= described.keys(), "openapi.NUMBERS lacks what the interface answers"


async def test_each_operation_answers_as_it_is_described(ours: Described) -> None:
    """The order gives each operation something to act on."""
    asked: set[str] = set()

    async def ask(name: str, given: Any = None, **more: Any) -> Any:
        answer = await ours(name, given, **more)
        least = min(int(status) for status in ours.operations[name][2]["responses"] if status != "default")
        assert answer.status_code == least, (name, answer.text)
        asked.add(name)
        return answer.json() if answer.content else None

    for name in ("openapi", "queues", "queue", "history"):
        await ask(name)
    await ask("put", {"body": "a"})
    await ask("put_many", {"messages": [{"body": "b"}, {"body_base64": "/w=="}]}, group=True)
    for name in ("browse", "get", "get_group"):
        await ask(name)
    for body in "cdefg":
        await ask("put", {"body": body})
    await ask("get_many", count=1)
    lease = {"Inorder-Lease": (await ask("begin_lease"))["token"]}
    await ask("lease", headers=lease)
    await ask("extend_lease", headers=lease, seconds=60)
    await ask("commit_lease", headers=lease)
    await ask("back_out_lease", headers={"Inorder-Lease": (await ask("begin_lease"))["token"]})
    locked = await ask("browse_and_lock", count=3)
    lock = {"lock_id": locked["lock_id"]}
    await ask("unique_ids", **lock)
    for name, one in zip(("unlock", "delete"), locked["messages"], strict=False):
        await ask(name, {"uid": one["uid"], **lock})
    await ask("release_lock", lock)
    held = await ask("put", {"body": "h"}, confirm_id=5)
    await ask("confirm_put", {"uid": held["uid"]})
    held = await ask("get", confirm_id=6)
    await ask("confirm_get", {"uid": held["uid"]})
    await ask("get", confirm_id=7)
    await ask("undo", {"confirm_id": 7})
    await ask("begin_reader")
    await ask("settle_claims", epoch=1, upto=0)
    await ask("release_claims")
    bodies = {one.name: (one.body, *one.answers.values()) for one in interface.OPERATIONS}
    assert asked == {name for name, each in bodies.items() if {one.media_type for one in each if one} == {JSON}}


@pytest.mark.parametrize("one", interface.OPERATIONS, ids=lambda one: one.name)
async def test_parameters_and_headers_that_are_not_described_are_refused(
    client: httpx.AsyncClient, one: ApiOperation
) -> None:
    """A parameter or header with a meaning must never be ignored."""
    address = f"{BASE}/{one.path.replace('{queue}', 'Q1').replace('{reader}', 'r')}"
    required = {each.name: "x" for each in one.parameters if each.required and each.where == "header"}
    in_query = await client.request(one.method, address, params={"colour": "red"}, headers=required)
    assert refusal(in_query)[:2] == (400, "INWB0003E")
    in_header = await client.request(one.method, address, headers={"Inorder-Colour": "red", **required})
    assert refusal(in_header)[:2] == (400, "MQWB0302E")
    if not any(each.name == "Idempotency-Key" for each in one.parameters):
        keyed = await client.request(one.method, address, headers={"Idempotency-Key": "k", **required})
        assert refusal(keyed)[:2] == (400, "MQWB0302E")


BODILESS = [one for one in interface.OPERATIONS if one.body is None]


@pytest.mark.parametrize("one", BODILESS, ids=lambda one: one.name)
async def test_a_body_is_refused_by_an_operation_that_takes_none(client: httpx.AsyncClient, one: ApiOperation) -> None:
    """Otherwise the server would ignore something that the client believes it has asked for."""

    async def chunks() -> AsyncIterator[bytes]:
        yield b"{}"

    address = f"{BASE}/{one.path.replace('{queue}', 'Q1')}"
    for body in ({"json": {"seconds": 60}}, {"content": chunks()}):
        assert refusal(await client.request(one.method, address, **body)) == (400, "INWB0004E", 0)


GUARDED = [one for one in interface.OPERATIONS if one.authorities]
EVERY: tuple[Authority, ...] = ("put", "get", "browse", "inquire", "display")


@pytest.mark.parametrize("one", GUARDED, ids=lambda one: one.name)
def test_an_operation_demands_its_authority(served: Served, one: ApiOperation) -> None:
    """403 comes before any other error: without the authority, even with all others, and with it on another queue."""
    address = f"{BASE}/{one.path}".replace("{reader}", "r")

    async def ask(client: httpx.AsyncClient, queue: str) -> tuple[int, str, int]:
        answer = await client.request(one.method, address.replace("{queue}", queue), params={"colour": "red"})
        return refusal(answer)

    async def without(client: httpx.AsyncClient) -> None:
        assert await ask(client, "Q1") == (403, "MQWB0103E", 2035)

    async def elsewhere(client: httpx.AsyncClient) -> None:
        assert await ask(client, "Q2") == (403, "MQWB0103E", 2035)
        if "{queue}" in one.path:
            assert (await ask(client, "Q1"))[0] == 400

    for missing in one.authorities:
        served.run(without, somebody("ann", *(each for each in EVERY if each != missing)))
    served.run(elsewhere, somebody("ann", *EVERY))


@serving(somebody("ann", "put"))
async def test_a_request_in_a_lease_needs_the_authority_too(qm: QueueManager, ours: Described) -> None:
    lease = {"Inorder-Lease": (await ours("begin_lease")).json()["token"]}
    assert (await ours("put", {"body": "a"}, headers=lease)).status_code == 201
    assert refusal(await ours("get", headers=lease)) == (403, "MQWB0103E", 2035)
    assert (await ours("queues")).json() == {"queues": []}
    assert (await ours("commit_lease", headers=lease)).status_code == 204
    assert [one.body for one in qm.browse("Q1")] == [b"a"]


async def test_a_request_without_the_csrf_header_is_refused(client: httpx.AsyncClient) -> None:
    del client.headers["ibm-mq-rest-csrf-token"]
    for one in interface.OPERATIONS:
        if one.method != "GET":
            address = f"{BASE}/{one.path.replace('{queue}', 'Q1').replace('{reader}', 'r')}"
            assert refusal(await client.request(one.method, address))[:2] == (401, "MQWB0100E"), one.name


async def test_a_request_without_credentials_is_refused(client: httpx.AsyncClient) -> None:
    for one in interface.OPERATIONS:
        address = f"{BASE}/{one.path.replace('{queue}', 'Q1').replace('{reader}', 'r')}"
        answer = await client.request(one.method, address, auth=httpx.Auth())
        assert refusal(answer)[:2] == (401, "MQWB0104E"), one.name


@pytest.mark.parametrize("name", ["message_id", "correlation_id", "group_id"])
async def test_an_id_is_matched_in_the_notation_in_which_it_is_put(
    qm: QueueManager, ours: Described, name: str
) -> None:
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
async def test_an_invalid_id_is_refused_with_the_allowed_notation(ours: Described, given: str) -> None:
    answer = await ours("get", group_id=given)
    assert refusal(answer) == (400, "INWB0003E", 0)
    allowed = "'group_id' must be 2 to 48 hexadecimal digits, two for each byte, or text: and a text of 1 to 24 bytes"
    assert allowed in answer.text


@pytest.mark.parametrize("given", ["00ff", "AB" * 24, "text:order 7", "text:\u00e9", f"text:{'x' * 24}", "text:text:"])
def test_both_parsers_of_ids_agree_with_each_other_and_with_the_schema(given: str) -> None:
    parameter = next(one for one in MATCHING if one.name == "group_id")
    assert parameter.kind.read("group_id", given) == id_of(given)
    assert re.search(parameter.kind.schema["pattern"], given)


def test_every_get_may_match_on_all_listed_fields() -> None:
    for name in ("get", "get_many", "browse_and_lock"):
        (operation,) = (one for one in OPERATIONS if one.name == name)
        assert {one.name for one in MATCHABLE} <= {one.name for one in operation.parameters}


async def test_a_get_matches_a_priority(qm: QueueManager, ours: Described) -> None:
    for priority in (3, 5):
        qm.put("Q1", Message(b"x", priority=priority))
    assert (await ours("get", priority=3)).json()["priority"] == 3
    answer = await ours("get", priority=-1)
    assert refusal(answer) == (400, "INWB0003E", 0)
    assert "The query parameter 'priority' must be an integer from 0 to 999,999,999, not '-1'" in answer.text


ERROR = ObjectInUse("Q1 is open, by 1 handle(s)", remedy="close it with close_queue('Q1')", queue="Q1")


@pytest.mark.parametrize("made", [lambda error: of_error(error, "Q1", "QM1"), of_admin_error, of_our_error])
def test_an_error_leaves_out_advice_for_python_programs(made: Callable[[InorderError], Problem]) -> None:
    said = made(ERROR).record()["message"]
    assert said.endswith("Q1 is open, by 1 handle(s) [2042 OBJECT_IN_USE]")
    assert "close_queue('Q1')" in str(ERROR), "it is for the programs that can"


@pytest.mark.parametrize("kind", ["text", "object"])
async def test_the_answer_to_a_command_leaves_out_advice_for_python_programs(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ERROR

    monkeypatch.setattr(Catalog, "check_delete", refuse)
    commands: dict[str, dict[str, Any]] = {
        "text": {"type": "runCommand", "parameters": {"command": "DELETE QLOCAL(Q1)"}},
        "object": {"type": "runCommandJSON", "command": "delete", "qualifier": "qlocal", "name": "Q1"},
    }
    answer = await client.post("/ibmmq/rest/v1/admin/action/qmgr/QM1/mqsc", json=commands[kind])
    assert "Q1 is open, by 1 handle(s) [2042 OBJECT_IN_USE]" in answer.text


def test_an_error_is_one_line_without_the_drawing_below_it() -> None:
    pictured = InorderError("at character 3: found ')'\na = )\n    ^", reason=Reason.SELECTOR_SYNTAX_ERROR)
    lines = InorderError("one\ntwo", reason=Reason.SELECTOR_SYNTAX_ERROR)
    for error, shown in ((pictured, "at character 3: found ')'"), (lines, "one two")):
        assert of_our_error(error).record()["message"] == f"INWB0014E: {shown} [2459 SELECTOR_SYNTAX_ERROR]"


@pytest.mark.parametrize("error", [ERROR, InorderError("x"), UnknownQueue("x", queue="Q1")], ids=type)
def test_errors_of_administration_do_not_mention_a_request_body(error: InorderError) -> None:
    record = of_admin_error(error).record()
    assert "body" not in f"{record['message']} {record['explanation']} {record['action']}".lower()


@on_both
async def test_the_error_for_an_impossible_user_name_does_not_mention_a_body(client: httpx.AsyncClient) -> None:
    answer = await client.get("/ibmmq/rest/v1/login", auth=httpx.BasicAuth("sh\0op", "x"))
    assert answer.status_code in (400, 401)
    assert "body" not in answer.text.lower()
