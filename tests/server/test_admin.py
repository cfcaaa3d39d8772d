"""IBM's administration interface: commands, the queue manager, the installation, queues as resources."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import httpx
import pytest
from tests.server.test_messaging import number_of

from inorder import QueueManager, __version__
from inorder.model.attributes import QUEUE_ATTRIBUTES
from inorder.mq.mqsc.words import keywords_of
from inorder.server.queue_objects import PLACES

V1, V2, V3 = (f"/ibmmq/rest/v{version}" for version in (1, 2, 3))
MQSC = "/admin/action/qmgr/QM1/mqsc"
DONE = {"overallCompletionCode": 0, "overallReasonCode": 0}
REFUSED = {"overallCompletionCode": 2, "overallReasonCode": 3008}


def text(command: str) -> dict[str, Any]:
    return {"type": "runCommand", "parameters": {"command": command}}


def as_object(command: str, qualifier: str, name: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "type": "runCommandJSON",
        "command": command,
        "qualifier": qualifier,
        **({"name": name} if name else {}),
        **more,
    }


def ok(**more: Any) -> dict[str, Any]:
    return {"completionCode": 0, "reasonCode": 0, **more}


# A command and its answer.
ANSWERED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (text("DEFINE QLOCAL(NEW)"), {"commandResponse": [ok(text=["AMQ8006I: Queue NEW defined."])], **DONE}),
    (text("ALTER QLOCAL(Q1) MAXDEPTH(5)"), {"commandResponse": [ok(text=["AMQ8008I: Queue Q1 altered."])], **DONE}),
    (
        text("DISPLAY QLOCAL(Q1) CURDEPTH"),
        {"commandResponse": [ok(text=[
            "AMQ8409I: Display Queue details.   QUEUE(Q1)                               TYPE(QLOCAL)   CURDEPTH(0)"
        ])], **DONE},
    ),
    (text("CLEAR QLOCAL(Q1)"), {"commandResponse": [ok(text=["AMQ8022I: Queue Q1 cleared: 0 messages removed."])],
                                **DONE}),
    (as_object("define", "qlocal", "new.one", parameters={"maxdepth": 7, "descr": "it's", "replace": "yes"}),
     {"commandResponse": [ok(message=["AMQ8006I: Queue new.one defined."])], **DONE}),
    (as_object("display", "qlocal", "Q1", responseParameters=["curdepth", "get"]),
     {"commandResponse": [ok(parameters={"queue": "Q1", "type": "QLOCAL", "curdepth": 0, "get": "ENABLED"})], **DONE}),
    (as_object("DISPLAY", "QSTATUS", "Q*", responseParameters=["CURDEPTH"], parameters={"where": "CURDEPTH EQ 0"}),
     {"commandResponse": [ok(parameters={"queue": "Q1", "type": "QUEUE", "curdepth": 0})], **DONE}),
    (as_object("display", "qmgr", responseParameters=["ccsid"]),
     {"commandResponse": [ok(parameters={"qmname": "QM1", "ccsid": 1208})], **DONE}),
    (as_object("display", "qmgr", responseParameters=["markint", "trigint"]),
     {"commandResponse": [ok(parameters={"qmname": "QM1", "markint": 5000, "trigint": 999_999_999})], **DONE}),
    (as_object("alter", "qmgr", parameters={"markint": 0.5, "maxhands": 7.0}),
     {"commandResponse": [ok(message=["AMQ8005I: Queue manager altered."])], **DONE}),
    (as_object("display", "qlocal", "Q1", responseParameters=["share", "trigger"]),
     {"commandResponse": [ok(parameters={"queue": "Q1", "type": "QLOCAL", "share": "YES", "trigger": "NO"})], **DONE}),
    (as_object("alter", "qlocal", "Q1", parameters={"share": "no", "trigger": "yes", "initq": "I"}),
     {"commandResponse": [ok(message=["AMQ8008I: Queue Q1 altered."])], **DONE}),
    (as_object("delete", "qlocal", "Q1", parameters={"purge": "yes"}),
     {"commandResponse": [ok(message=["AMQ8007I: Queue Q1 deleted."])], **DONE}),
    (as_object("define", "channel", "TO.B", parameters={"chltype": "sdr", "xmitq": "X", "conname": "b.db"}),
     {"commandResponse": [ok(message=["AMQ8014I: Channel TO.B defined."])], **DONE}),
]  # fmt: skip


@pytest.mark.parametrize("version", [V2, V3])
@pytest.mark.parametrize(("command", "answer"), ANSWERED, ids=lambda one: str(one)[:60])
async def test_commands_are_run(
    client: httpx.AsyncClient, version: str, command: dict[str, Any], answer: dict[str, Any]
) -> None:
    response = await client.post(version + MQSC, json=command)
    assert response.status_code == 200, response.text
    assert response.json() == answer


@pytest.mark.parametrize(
    ("command", "reason", "member", "said"),
    [
        (text("DISPLAY QLOCAL(NONE)"), 2085, "text", "AMQ8147E: "),
        (as_object("display", "qlocal", "NONE"), 2085, "message", "AMQ8147E: "),
        (as_object("display", "conn", "F" * 16, parameters={"type": "handle"}), 2085, "message", "AMQ8147E: "),
        (text("DEFIN QLOCAL(X)"), 3008, "text", "AMQ8405I: "),
        (as_object("display", "topic", "X"), 3008, "message", "AMQ8101E: qualifier: found MQ's object TOPIC"),
        (
            as_object("define", "qlocal", "X", parameters={"maxdepth": 1, "cluster": "C"}),
            3008,
            "message",
            "AMQ8101E: parameters.cluster: found MQ's",
        ),
        (as_object("display", "chstatus", "X"), 3065, "message", "AMQ8420I: no channel that runs"),
        (as_object("define", "qmodel", "X", parameters={"deftype": "PREDEFINED"}), 4005, "message", "AMQ8101E: def"),
    ],
)
async def test_a_refusal_of_the_queue_manager_is_returned_inside_an_answer(
    client: httpx.AsyncClient, command: dict[str, Any], reason: int, member: str, said: str
) -> None:
    answer = (await client.post(V2 + MQSC, json=command)).json()
    (item,) = answer.pop("commandResponse")
    assert answer == REFUSED
    assert (item["completionCode"], item["reasonCode"]) == (2, reason)
    assert item[member][0].startswith(said)


WRONG_MEMBERS = [
    (as_object("displey", "qlocal", "Q1"), "command: found 'DISPLEY'; "),
    (as_object("display", "qlocal", "A B"), "name: found 'A B'; "),
    (as_object("define", "qlocal", parameters={"maxdepth": 1}), "name must be the name of a QLOCAL"),
    (as_object("display", "qmgr", "QM1"), "name must be left out"),
    (as_object("define", "qlocal", "X", parameters={"descr": "it's", "maxdepth": "many"}),
     "parameters.maxdepth: found 'MANY'; allowed is MAXDEPTH(an integer"),
    (as_object("define", "qlocal", "X", parameters={"Colour": "red"}), "parameters.Colour: found 'COLOUR'; "),
    (as_object("alter", "qmgr", parameters={"trigint": 1e999}), "parameters.trigint must be a text, a number"),
    (as_object("alter", "qmgr", parameters={"maxhands": 10**400}), "parameters.maxhands: found '1000"),
    *((as_object("alter", "qlocal", "Q1", parameters={"share": value}),
       f'parameters.share must be "yes" or "no", not {shown}')
      for value, shown in (("maybe", '"maybe"'), (None, "null"), (1, "1"), (["no"], "a list"), ({}, "an object"))),
    (as_object("define", "qlocal", "X", parameters={"replace": False}),
     'parameters.replace must be "yes"; for the opposite give {"noreplace": "yes"}, not false'),
    (as_object("define", "qlocal", "X", parameters={"noreplace": "no"}),
     'parameters.noreplace must be "yes"; for the opposite give {"replace": "yes"}, not "no"'),
    (as_object("display", "qlocal", "Q1", parameters={"all": "no"}),
     'parameters.all must be "yes"; otherwise leave it out, not "no"'),
    (as_object("define", "qlocal", "X", parameters={"maxdepth": None}),
     "parameters.maxdepth must be a text, a number, or a list of texts, not null"),
    (as_object("define", "qlocal", parameters={}), "name must be the name of a QLOCAL, not null"),
    (as_object("alter", "qmgr", parameters={"maxhands": 1.5}), "parameters.maxhands: found '1.5'; "),
    (as_object("display", "qlocal", "Q1", responseParameters=["get", "maxmsglen"]),
     "responseParameters: found 'MAXMSGLEN'; "),
]  # fmt: skip


@pytest.mark.parametrize(("command", "said"), WRONG_MEMBERS, ids=lambda one: str(one)[:60])
async def test_an_error_in_a_json_command_names_the_member(
    client: httpx.AsyncClient, command: dict[str, Any], said: str
) -> None:
    """The error has no line number, because the sender wrote no MQSC."""
    body = json.dumps(command).replace("Infinity", "1e999")
    headers = {"Content-Type": "application/json"}
    (found,) = (await client.post(V2 + MQSC, content=body, headers=headers)).json()["error"]
    assert found["message"].startswith(f"MQWB0120E: The command in JSON is not valid: {said}"), found
    assert "line " not in found["message"]


async def test_a_fraction_of_a_millisecond_is_shown_as_a_number(client: httpx.AsyncClient, qm: QueueManager) -> None:
    qm.admin.alter_manager(mark_interval=0.0005, trigger_interval=None)
    asked = as_object("display", "qmgr", responseParameters=["markint", "trigint"])
    (item,) = (await client.post(V2 + MQSC, json=asked)).json()["commandResponse"]
    assert item["parameters"] == {"qmname": "QM1", "markint": 0.5, "trigint": "NOLIMIT"}
    (item,) = (await client.post(V2 + MQSC, json=text("DISPLAY QMGR MARKINT"))).json()["commandResponse"]
    assert item["text"][0].endswith("MARKINT(0.5)")


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{", b'{"type": "run"}', b'{"type": "runCommand"}',
     b'{"type": "runCommand", "parameters": {"command": 1}}',
     b'{"type": "runCommand", "parameters": {"command": ""}}', b'{"a": NaN}', b"\xff", b"[" * 100_000,
     b'{"type": "runCommand", "parameters": {"command": "DISPLAY QMGR\\nDISPLAY QMGR"}}',
     b'{"type": "runCommandJSON", "command": "display", "qualifier": "qmgr", "more": 1}',
     b'{"type": "runCommand", "parameters": {"command": "' + b"+\\n" * 20_000 + b'"}}'],
    ids=range(13),
)  # fmt: skip
async def test_bodies_that_are_not_commands_are_refused(client: httpx.AsyncClient, body: bytes) -> None:
    response = await client.post(V2 + MQSC, content=body, headers={"Content-Type": "application/json"})
    assert number_of(response) == (400, "INWB0004E", 0)
    assert number_of(await client.post(V2 + MQSC, content=b"{}")) == (415, "MQWB0306E", 0)


async def test_every_attribute_of_display_is_a_member_in_json(client: httpx.AsyncClient) -> None:
    """JSON shows and accepts the keywords in lower case; our own are shown only where the value differs from MQ."""
    shown = (await client.post(V2 + MQSC, json=as_object("display", "qlocal", "Q1"))).json()
    (item,) = shown["commandResponse"]
    keywords = {word.lower() for word, each in keywords_of("local").items() if each.mq_name}
    assert keywords <= item["parameters"].keys()
    assert not item["parameters"].keys() & {"order", "readorder", "expiry"}
    given = {
        name: value
        for name, value in item["parameters"].items()
        if name in keywords and name not in ("queue", "type", "deftype")
    }
    answer = (await client.post(V2 + MQSC, json=as_object("define", "qlocal", "COPY", parameters=given))).json()
    assert answer["overallCompletionCode"] == 0, answer
    copy = (await client.post(V2 + MQSC, json=as_object("display", "qlocal", "COPY"))).json()
    assert given.items() <= copy["commandResponse"][0]["parameters"].items()


async def test_the_queue_manager_and_the_installation_are_shown(client: httpx.AsyncClient) -> None:
    one = {"name": "QM1", "state": "running"}
    for version in (V1, V2, V3):
        for path in ("/admin/qmgr", "/admin/qmgr/", "/admin/qmgr/QM1"):
            assert (await client.get(version + path)).json() == {"qmgr": [one]}
        found = (await client.get(f"{version}/admin/installation")).json()
        assert found == {"installation": [{"name": "inorder", "platform": "unix", "version": __version__}]}
    assert (await client.get(f"{V1}/admin/qmgr?state=ended")).json() == {"qmgr": []}
    more = (await client.get(f"{V1}/admin/qmgr?attributes=*&status=*")).json()
    assert more == {"qmgr": [{**one, "extended": {"installationName": "inorder"}, "status": {}}]}
    assert number_of(await client.get(f"{V1}/admin/qmgr?status=status.started")) == (400, "INWB0003E", 0)
    assert number_of(await client.get(f"{V1}/admin/qmgr/QM2")) == (404, "MQWB0009E", 2058)
    assert number_of(await client.get(f"{V1}/admin/installation/other")) == (404, "INWB0001E", 0)
    level = (await client.get(f"{V3}/admin/installation/inorder?attributes=extended.level")).json()
    assert level["installation"][0]["extended"] == {"level": __version__}


async def test_queues_are_listed_with_the_requested_attributes(client: httpx.AsyncClient, qm: QueueManager) -> None:
    qm.create_queue("ALIAS", type="alias", base_queue="Q1")
    qm.create_queue("FAR", type="remote", remote_queue="THERE", remote_manager="QM2", transmission_queue="X")
    qm.put("Q1", b"1")
    base = f"{V1}/admin/qmgr/QM1/queue"
    local: dict[str, Any] = {"name": "Q1", "type": "local"}
    alias = {"name": "ALIAS", "type": "alias", "alias": {"targetName": "Q1"}}
    remote = {"qmgrName": "QM2", "queueName": "THERE", "transmissionQueueName": "X"}
    far = {"name": "FAR", "type": "remote", "remote": remote}
    for query, expected in (
        ("", [alias, far, local]),
        ("?name=*&type=all", [alias, far, local]),
        ("?name=Q*", [local]),
        ("?name=Q1", [local]),
        ("?name=q*", []),
        ("?type=alias", [alias]),
        ("?name=*&status=status.currentDepth&type=local", [{**local, "status": {"currentDepth": 1}}]),
        ("/Q1", [local]),
        ("/Q1?status=status.currentDepth,status.openInputCount",
         [{**local, "status": {"currentDepth": 1, "openInputCount": 0}}]),
        ("/Q1?status=status.uncommittedMessages,status.lastGet,status.lastPut",
         [{**local, "status": {"uncommittedMessages": 0, "lastGet": "", "lastPut": ""}}]),
        ("/Q1?attributes=storage.maximumMessageLength,general.inhibitGet",
         [{**local, "storage": {"maximumMessageLength": 4194304}, "general": {"inhibitGet": False}}]),
    ):  # fmt: skip
        found = (await client.get(base + query)).json()
        assert sorted(found["queue"], key=lambda one: one["name"]) == expected, query
    whole = (await client.get(f"{base}/Q1?attributes=*&status=*")).json()["queue"][0]
    assert whole["applicationDefaults"]["messagePersistence"] == "persistent"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z", whole["timestamps"]["created"])
    assert number_of(await client.get(f"{base}/NONE")) == (404, "MQWB0037E", 2085)
    for query in ("?attributes=maxDepth", "?status=depth", "?type=cluster", "?filter=x", "/Q1?name=Q1",
                  "/Q1?filter=status.currentDepth:equalTo:1", "?filter=status.currentDepth:greaterThan",
                  "?filter=status.currentDepth:over:0", "?filter=status.depth:equalTo:0",
                  "?filter=status.currentDepth:equalTo:x", "?filter=general.inhibitPut:equalTo:no",
                  "?filter=general.inhibitPut:lessThan:true"):  # fmt: skip
        assert number_of(await client.get(base + query)) == (400, "INWB0003E", 0)
    for version in (V2, V3):
        assert number_of(await client.get(f"{version}/admin/qmgr/QM1/queue")) == (404, "INWB0001E", 0)


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        ("status.currentDepth:greaterThan:0", ["FULL"]),
        ("status.currentDepth:lessThanOrEqualTo:0", ["EMPTY", "Q1"]),
        ("status.currentDepth:equalTo:2", ["FULL"]),
        ("storage.maximumDepth:lessThan:100", ["EMPTY"]),
        ("storage.maximumDepth:greaterThanOrEqualTo:99", ["EMPTY", "FULL", "Q1"]),
        ("storage.maximumDepth:notEqualTo:99", ["FULL", "Q1"]),
        ("status.oldestMessageAge:lessThan:600", ["EMPTY", "FULL", "Q1"]),
        ("general.inhibitPut:equalTo:true", ["EMPTY"]),
        ("general.description:equalTo:a: *", ["EMPTY"]),
        ("general.description:notEqualTo:a: queue", ["FULL", "Q1"]),
        ("alias.targetName:equalTo:F*", ["ALIAS"]),
    ],
)
async def test_queues_are_filtered(
    client: httpx.AsyncClient, qm: QueueManager, condition: str, names: list[str]
) -> None:
    qm.create_queue("EMPTY", max_depth=99, put_allowed=False, description="a: queue")
    qm.create_queue("FULL")
    qm.put_many("FULL", [b"1", b"2"])
    qm.create_queue("ALIAS", type="alias", base_queue="FULL")
    kind = "alias" if names == ["ALIAS"] else "local"
    answer = await client.get(f"{V1}/admin/qmgr/QM1/queue", params={"filter": condition, "type": kind})
    assert answer.status_code == 200, answer.text
    assert [one["name"] for one in answer.json()["queue"]] == names


async def test_a_queue_is_made_like_another_one(client: httpx.AsyncClient, qm: QueueManager) -> None:
    """Attributes that the body leaves out come from `like`, or else from the default object of the type."""
    qm.create_queue("PATTERN", max_depth=7, description="a pattern", order="commit", default_priority=4)
    qm.create_queue("NICK", type="alias", base_queue="PATTERN")
    qm.create_queue("SYSTEM.DEFAULT.LOCAL.QUEUE", max_depth=11)
    qm.put("PATTERN", b"x")
    base = f"{V1}/admin/qmgr/QM1/queue"
    body = {"name": "COPY", "general": {"description": "mine"}}
    assert (await client.post(f"{base}?like=PATTERN&noReplace", json=body)).status_code == 201
    assert (await client.post(base, json={"name": "PLAIN"})).status_code == 201
    alias = {"name": "NICK2", "type": "alias"}
    assert (await client.post(f"{base}?like=NICK", json=alias)).status_code == 201
    for like, given, refused in (
        ("PATTERN&noReplace", {"name": "COPY"}, (409, "INWB0014E", 2100)),
        ("NONE", {"name": "OTHER"}, (404, "MQWB0037E", 2085)),
        ("NICK", {"name": "OTHER"}, (400, "INWB0014E", 2043)),
        ("PATTERN", {"name": "OTHER", "type": "alias"}, (400, "INWB0014E", 2043)),
        ("", {"name": "OTHER"}, (400, "INWB0003E", 0)),
        ("PATTERN&like=NICK", {"name": "OTHER"}, (400, "INWB0003E", 0)),
    ):
        answer = await client.post(f"{base}?like={like}", json=given)
        assert number_of(answer) == refused, (like, answer.text)
    missing = await client.post(f"{base}?like=NONE", json={"name": "OTHER"})
    assert "NONE" in missing.json()["error"][0]["message"], "it is the pattern that is not there"
    copy, plain, nick = (qm.attributes(name) for name in ("COPY", "PLAIN", "NICK2"))
    assert (copy.max_depth, copy.description, copy.order, copy.default_priority) == (7, "mine", "commit", 4)
    assert (plain.max_depth, nick.base_queue) == (11, "PATTERN")
    assert qm.depth("COPY") == 0, "the messages are not copied"
    assert "OTHER" not in [one.name for one in qm.queues()]


async def test_a_queue_is_replaced_and_its_messages_stay(client: httpx.AsyncClient, qm: QueueManager) -> None:
    qm.alter_queue("Q1", max_depth=7, description="before")
    qm.put("Q1", b"x")
    qm.close_queue("Q1")
    base = f"{V1}/admin/qmgr/QM1/queue"
    answer = await client.post(base, json={"name": "Q1", "general": {"description": "after"}})
    assert (answer.status_code, answer.headers["location"]) == (201, f"{base}/Q1")
    assert number_of(await client.post(base, json={"name": "Q1", "type": "alias"}))[:2] == (400, "INWB0014E")
    found = qm.attributes("Q1")
    qm.create_queue("USUAL")
    assert (found.description, found.max_depth) == ("after", qm.attributes("USUAL").max_depth)
    assert [one.body for one in qm.browse("Q1")] == [b"x"]


async def test_a_queue_is_made_altered_and_deleted(client: httpx.AsyncClient, qm: QueueManager) -> None:
    base = f"{V1}/admin/qmgr/QM1/queue"
    made = await client.post(
        base, json={"name": "A/B", "storage": {"maximumDepth": 5}, "general": {"inhibitPut": True}}
    )
    assert (made.status_code, made.headers["location"]) == (201, f"{base}/A%2FB")
    shown = await client.get(f"{made.headers['location']}?attributes=storage.maximumDepth,general.inhibitPut")
    assert shown.json()["queue"][0]["storage"] == {"maximumDepth": 5}
    assert shown.json()["queue"][0]["general"] == {"inhibitPut": True}
    assert number_of(await client.post(f"{base}?noReplace", json={"name": "A/B"})) == (409, "INWB0014E", 2100)
    changed = await client.patch(made.headers["location"], json={"storage": {"maximumDepth": 6}})
    assert changed.status_code == 204
    for wrong in ({"storage": {"depth": 1}}, {"storage": 1}, {"storage": {"maximumDepth": "1"}},
                  {"general": {"inhibitPut": "yes"}},
                  {"applicationDefaults": {"messagePersistence": True}}):  # fmt: skip
        refused = await client.patch(made.headers["location"], json=wrong)
        assert refused.status_code == 400, wrong
        assert "inhibitPut" not in str(wrong) or "inhibitPut must be false or true" in refused.text
    kinds: tuple[object, ...] = ("cluster", {}, [], 1, None)
    for kind in kinds:
        refused = await client.post(base, json={"name": "B", "type": kind})
        assert number_of(refused) == (400, "INWB0004E", 0), kind
        changed = await client.patch(made.headers["location"], json={"type": kind})
        assert changed.status_code == (204 if kind is None else 400), kind
    alias = await client.post(base, json={"name": "ALIAS", "type": "alias", "alias": {"targetName": "A/B"}})
    assert alias.status_code == 201
    assert (await client.patch(f"{base}/ALIAS", json={"type": "local"})).status_code == 400
    for path in ("A%2FB?keepAuthorityRecords", "ALIAS"):
        assert (await client.delete(f"{base}/{path}")).status_code == 204
    assert number_of(await client.delete(f"{base}/ALIAS")) == (404, "MQWB0037E", 2085)
    assert [one.name for one in qm.queues()] == ["Q1"]
    qm.put("Q1", b"1")
    qm.close_queue("Q1")
    path = f"{base}/Q1"
    refused = await client.delete(path)
    assert number_of(refused) == (409, "INWB0014E", 2055)
    assert "body" not in refused.text.lower(), "it has none"
    assert (await client.delete(f"{path}?purge")).status_code == 204


@pytest.mark.parametrize("by", ["address", "command"])
async def test_a_queue_that_requests_have_used_can_be_deleted(
    client: httpx.AsyncClient, qm: QueueManager, by: str
) -> None:
    """Connections of the server keep a queue open under its name, which does not count as use."""
    messages = f"{V1}/messaging/qmgr/QM1/queue/Q1/message"
    puts = (client.post(messages, content="1", headers={"Content-Type": "text/plain"}) for _ in range(8))
    assert {one.status_code for one in await asyncio.gather(*puts)} == {201}
    taken = (client.delete(messages, params={"wait": wait}) for wait in (0, 100, 0, 100))
    assert {one.status_code for one in await asyncio.gather(*taken)} == {200}
    if by == "address":
        assert (await client.delete(f"{V1}/admin/qmgr/QM1/queue/Q1?purge")).status_code == 204
    else:
        answer = await client.post(f"{V1}{MQSC}", json=text("DELETE QLOCAL(Q1) PURGE"))
        assert answer.json()["commandResponse"] == [ok(text=["AMQ8007I: Queue Q1 deleted."])]
    assert list(qm.queues()) == []


def test_the_table_of_places_names_attributes_that_exist() -> None:
    assert PLACES.keys() <= QUEUE_ATTRIBUTES.keys()
    paths = [(place.group, place.name) for place in PLACES.values()]
    assert len(set(paths)) == len(paths)
    for attribute, place in PLACES.items():
        words = QUEUE_ATTRIBUTES[attribute].choices or (True, False)
        assert not place.words or set(place.words) == set(words), attribute
