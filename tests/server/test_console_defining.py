"""Forms for definitions, users and tokens: their effects, the authority that they need, and the log of acts."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from tests.server.conftest import PASSWORD, TOKEN, Served, add, serving, somebody, with_role
from tests.server.test_console_acting import acts, send
from tests.server.test_console_pages import words

from inorder import QueueManager
from inorder.errors import LogInRefused
from inorder.mq import channels
from inorder.support import passwords

HOSTILE = "<script>alert(1)</script>"


async def test_a_queue_is_created_with_what_the_form_says(client: httpx.AsyncClient, qm: QueueManager) -> None:
    page = (await client.get("/console/define")).text
    assert 'name="max_depth" value="999999999"' in page
    done = await send(
        client, "define", type="local", name="new.one", description="it's new", max_depth="5", get_allowed="no",
        expiry="2.5", read_order="required",
    )  # fmt: skip
    assert (done.status_code, done.headers["location"]) == (303, "/console/queue/new.one")
    found = qm.attributes("new.one")
    assert (found.description, found.max_depth, found.get_allowed, found.read_order, found.expiry) == (
        "it's new", 5, False, "required", 2.5,
    )  # fmt: skip
    assert "Queue new.one defined." in (await client.get("/console/queue/new.one")).text
    done = await send(client, "define", type="alias", name="AL", base_queue="Q1")
    assert (done.status_code, qm.attributes("AL").base_queue) == (303, "Q1")
    assert 'name="remote_queue"' in (await client.get("/console/define?type=remote")).text


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"type": "local", "name": ""}, 400, "the name of the queue is missing"),
        ({"type": "local", "name": "A", "max_depth": "many"}, 400, "maximum depth must be"),
        ({"type": "local", "name": "A", "put_allowed": "maybe"}, 400, "put_allowed must be"),
        ({"type": "local", "name": "Q1"}, 422, "AMQ8150E"),
        ({"type": "local", "name": "A B"}, 400, "name must be 1 to 48 characters"),
        ({"type": "local", "name": f"A') {HOSTILE}"}, 400, "name must be 1 to 48 characters"),
        ({"type": "heap", "name": "A"}, 400, "type"),
    ],
)
async def test_a_refused_queue_keeps_the_form_and_says_why(
    client: httpx.AsyncClient, qm: QueueManager, fields: dict[str, str], status: int, said: str
) -> None:
    refused = await send(client, "define", **{"description": f"'{HOSTILE}", **fields})
    assert refused.status_code == status
    assert said in words(refused.text)
    assert HOSTILE not in refused.text
    if fields["type"] == "local":
        assert "alert(1)" in refused.text, "what was typed is kept"
    assert not {"A", "A B"} & {one.name for one in qm.queues()}


async def test_attributes_that_another_user_has_altered_meanwhile_are_kept(
    client: httpx.AsyncClient, qm: QueueManager
) -> None:
    page = (await client.get("/console/queue/Q1/alter")).text
    fields = dict(re.findall(r'<input (?:type="hidden" )?name="([^"]+)" value="([^"]*)"', page))
    qm.alter_queue("Q1", max_depth=7)
    done = await send(client, "queue/Q1/alter", **{**fields, "action": "alter", "description": "mine"})
    assert done.status_code == 303
    found = qm.attributes("Q1")
    assert (found.max_depth, found.description) == (7, "mine")


async def test_only_changed_attributes_are_altered(client: httpx.AsyncClient, served: Served, qm: QueueManager) -> None:
    page = (await client.get("/console/queue/Q1/alter")).text
    assert 'name="description" value=""' in page
    same = await send(client, "queue/Q1/alter", action="alter", max_depth="999999999", put_allowed="yes")
    assert same.status_code == 303
    assert acts(served) == [], "nothing was different"
    done = await send(client, "queue/Q1/alter", action="alter", description=HOSTILE, put_allowed="no", max_depth="7")
    assert (done.status_code, done.headers["location"]) == (303, "/console/queue/Q1")
    found = qm.attributes("Q1")
    assert (found.description, found.put_allowed, found.max_depth) == (HOSTILE, False, 7)
    assert [one[:4] for one in acts(served)] == [("launch-token", "alter", "Q1", "done")]
    for place in ("queue/Q1", "queue/Q1/alter"):
        assert HOSTILE not in (await client.get(f"/console/{place}")).text


@pytest.mark.parametrize("action", ["clear", "delete"])
async def test_clearing_and_deleting_a_queue_needs_its_typed_name(
    client: httpx.AsyncClient, served: Served, qm: QueueManager, action: str
) -> None:
    qm.put_many("Q1", [b"1", b"2"])
    qm.close_queue("Q1")
    for typed in ("", "q1"):
        refused = await send(client, "queue/Q1/alter", action=action, typed=typed)
        assert refused.status_code == 422
        assert "Nothing was changed" in refused.text
    if action == "delete":
        refused = await send(client, "queue/Q1/alter", action="delete", typed="Q1")
        assert refused.status_code == 422
        assert "AMQ8143E" in refused.text, "it has messages"
    assert qm.depth("Q1") == 2
    qm.close_queue("Q1")
    done = await send(client, "queue/Q1/alter", action=action, typed="Q1", purge="yes")
    assert done.status_code == 303, words(done.text)
    assert ("Q1" in {one.name for one in qm.queues()}) == (action == "clear")
    assert acts(served)[0][1:4] == (action, "Q1", "done")
    assert (await send(client, "queue/Q2/alter", action="burn")).status_code == 400


WORDS = ("New queue", "Definition …", "Inhibit puts")


@serving(with_role("reader"))
async def test_a_reader_sees_no_forms_and_changes_nothing(client: httpx.AsyncClient, qm: QueueManager) -> None:
    for place in ("", "queue/Q1"):
        page = (await client.get(f"/console/{place}")).text
        assert not [word for word in WORDS if word in page]
    assert (await client.get("/console/queue/Q1/alter")).status_code == 403
    for action in ("alter", "clear", "delete"):
        refused = await send(client, "queue/Q1/alter", action=action, put_allowed="no", typed="Q1")
        assert refused.status_code == 403, action
    assert (await send(client, "define", type="local", name="A")).status_code == 403
    assert (await send(client, "channels", channel="C", action="start")).status_code == 403
    assert qm.attributes("Q1").put_allowed


@serving(somebody("ann", "alter", "inquire", "browse"))
async def test_a_grant_to_alter_does_not_allow_clearing_or_deleting(
    client: httpx.AsyncClient, qm: QueueManager
) -> None:
    qm.put("Q1", b"x")
    qm.close_queue("Q1")
    assert (await send(client, "queue/Q1/alter", action="alter", max_depth="9")).status_code == 303
    page = (await client.get("/console/queue/Q1/alter")).text
    assert "Clear" not in words(page)
    assert "Delete" not in words(page)
    for action in ("clear", "delete"):
        assert (await send(client, "queue/Q1/alter", action=action, typed="Q1", purge="yes")).status_code == 403
    assert qm.depth("Q1") == 1


async def test_channels_are_started_stopped_and_pinged(
    client: httpx.AsyncClient, served: Served, qm: QueueManager
) -> None:
    qm.create_queue("X", usage="transmission")
    channels.define_channel(qm, "TO.B", transmission_queue="X", connection="nowhere.db")
    asks = await send(client, "channels", channel="TO.B", action="stop")
    assert (asks.status_code, "Stop TO.B?" in words(asks.text)) == (200, True)
    refused = await send(client, "channels", channel="TO.B", action="stop", typed="to.b")
    assert (refused.status_code, "Nothing was changed" in refused.text) == (422, True)
    assert channels.status(qm)[0].status != "stopped"
    assert (await send(client, "channels", channel="TO.B", action="stop", typed="TO.B")).status_code == 303
    assert channels.status(qm)[0].status == "stopped"
    assert (await send(client, "channels", channel="TO.B", action="start")).status_code == 303
    assert channels.status(qm)[0].status != "stopped"
    failed = await send(client, "channels", channel="TO.B", action="ping")
    assert failed.status_code == 422
    assert "AMQ9202E" in failed.text
    assert (await send(client, "channels", channel="NONE", action="start")).status_code == 422
    assert (await send(client, "channels", channel="TO.B", action="burn")).status_code == 400
    assert {one[1] for one in acts(served) if one[3] == "done"} == {"stop channel TO.B", "start channel TO.B"}


NEW = "correct horse battery"


def log_of(qm: QueueManager) -> list[tuple[str, str, str]]:
    return [(one.user, one.act, one.outcome) for one in reversed(list(qm.accounts.acts()))]


async def test_a_user_is_created_altered_disabled_and_deleted(client: httpx.AsyncClient, qm: QueueManager) -> None:
    fields = {
        "name": "shop", "roles": ["application", "reader"], "queues": "put, get=ORDERS.*\nbrowse=REPLIES",
        "subjects": "CN=shop\n", "description": HOSTILE, "password": NEW, "again": NEW,
    }  # fmt: skip
    made = await send(client, "users", **fields, confirm=TOKEN)
    assert (made.status_code, made.headers["location"]) == (303, "/console/user/shop")
    found = qm.accounts.user("shop")
    assert (set(found.roles), dict(found.queues), found.subjects, found.description) == (
        {"application", "reader"}, {"ORDERS.*": ("put", "get"), "REPLIES": ("browse",)}, ("CN=shop",), HOSTILE,
    )  # fmt: skip
    assert qm.accounts.identify(name="shop", verify=passwords.verifier(NEW)).name == "shop"
    for place in ("users", "user/shop"):
        page = (await client.get(f"/console/{place}")).text
        assert HOSTILE not in page
        assert NEW not in page
    altered = await send(client, "user/shop", action="alter", roles=["reader"], description="x", confirm=TOKEN)
    assert altered.status_code == 303
    found = qm.accounts.user("shop")
    assert (found.roles, dict(found.queues), found.subjects, found.has_password) == (("reader",), {}, (), True)
    assert (await send(client, "user/shop", action="disable", confirm=TOKEN)).status_code == 303
    assert not qm.accounts.user("shop").enabled
    assert (await send(client, "user/shop", action="enable", confirm=TOKEN)).status_code == 303
    assert (await send(client, "user/shop", action="password", password="", again="", confirm=TOKEN)).status_code == 303
    assert not qm.accounts.user("shop").has_password
    refused = await send(client, "user/shop", action="delete", typed="Shop", confirm=TOKEN)
    assert (refused.status_code, "to confirm" in words(refused.text)) == (400, True)
    assert (await send(client, "user/shop", action="delete", typed="shop", confirm=TOKEN)).status_code == 303
    assert qm.accounts.users() == []
    done = ("create user shop", "alter user shop", "disable user shop", "enable user shop", "password of user shop",
            "delete user shop")  # fmt: skip
    assert log_of(qm) == [("launch-token", act, "done") for act in done]


async def test_a_token_is_shown_once_and_revoked(client: httpx.AsyncClient, qm: QueueManager) -> None:
    qm.accounts.create_user("shop", roles=["application"], queues={"ORDERS": ["get"]})
    qm.accounts.create_user("other")
    shown = await send(client, "user/shop", action="create token", label="nightly", days="2", confirm=TOKEN)
    assert shown.status_code == 200
    assert re.findall(r'name="roles" value="(\w+)" checked', shown.text) == ["application"]
    assert "get=ORDERS" in words(shown.text), "the form of the authorities is as before"
    assert 'name="label" value=""' in shown.text, "a second press of the button makes no second token"
    secret = re.findall(r'<pre class="line" tabindex="0">([^<]*)</pre>', shown.text)[0]
    assert qm.accounts.identify(token=secret).name == "shop"
    [token] = qm.accounts.tokens("shop")
    assert token.expires_at - token.created_at == 2 * 86_400
    page = (await client.get("/console/user/shop")).text
    assert secret.partition(".")[2] not in page
    assert token.name in page
    wrong = await send(client, "user/shop", action="create token", label="nightly", days="never", confirm=TOKEN)
    assert (wrong.status_code, 'name="label" value="nightly"' in wrong.text) == (400, True)
    wrong = await send(client, "user/other", action="revoke token", token=token.name, confirm=TOKEN)
    assert (wrong.status_code, len(qm.accounts.tokens())) == (400, 1)
    assert (await send(client, "user/shop", action="revoke token", token=token.name, confirm=TOKEN)).status_code == 303
    with pytest.raises(LogInRefused):
        qm.accounts.identify(token=secret)


EVERY: list[tuple[str, dict[str, Any]]] = [
    ("users", {"name": "a"}),
    ("user/shop", {"action": "alter", "roles": ["admin"]}),
    ("user/shop", {"action": "password", "password": NEW, "again": NEW}),
    ("user/shop", {"action": "disable"}),
    ("user/shop", {"action": "delete", "typed": "shop"}),
    ("user/shop", {"action": "create token", "label": "x", "days": "1"}),
]


@pytest.mark.parametrize(("place", "fields"), EVERY, ids=[one.get("action", "new") for _, one in EVERY])
async def test_each_form_needs_the_password_again(
    client: httpx.AsyncClient, qm: QueueManager, place: str, fields: dict[str, Any]
) -> None:
    before = qm.accounts.create_user("shop")
    for confirm in ({}, {"confirm": ""}, {"confirm": "wrong"}):
        refused = await send(client, place, **fields, **confirm)
        assert refused.status_code == 400
        assert "The launch token is not correct. Nothing was changed." in words(refused.text)
        assert "The launch token, which is in the link to the console, to confirm" in words(refused.text)
    assert (qm.accounts.users(), qm.accounts.tokens(), log_of(qm)) == ([before], [], [])


async def test_an_administrator_confirms_only_with_their_own_password(
    client: httpx.AsyncClient, served: Served, qm: QueueManager
) -> None:
    add(served, "root", roles=("admin",))
    add(served, "boss", roles=("admin",), password=NEW)
    client.auth = httpx.BasicAuth("root", PASSWORD.encode())
    for confirm in (NEW, TOKEN):
        refused = await send(client, "users", name="a", roles=["reader"], confirm=confirm)
        assert (refused.status_code, "Your password is not correct" in refused.text) == (400, True)
    assert (await send(client, "users", name="a", roles=["reader"], confirm=PASSWORD)).status_code == 303
    assert log_of(qm) == [("root", "create user a", "done")]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": ""}, "the name of the user is missing"),
        ({"name": "a b"}, "name must be"),
        ({"name": "shop"}, "already"),
        ({"name": "a", "roles": ["king"]}, "roles must be"),
        ({"name": "a", "roles": ["application"], "queues": "put"}, "lines such as put,get=ORDERS.*"),
        ({"name": "a", "password": "short", "again": "short"}, "8 to 1,024 characters"),
        ({"name": "a", "password": NEW, "again": "other"}, "the same password"),
    ],
)
async def test_a_refused_user_keeps_the_form_and_says_why(
    client: httpx.AsyncClient, qm: QueueManager, fields: dict[str, Any], said: str
) -> None:
    qm.accounts.create_user("shop")
    refused = await send(
        client, "users", **{"description": f"'{HOSTILE}", "roles": ["reader"], **fields}, confirm=TOKEN
    )
    assert 400 <= refused.status_code < 500
    assert said in words(refused.text)
    assert "alert(1)" in refused.text
    assert HOSTILE not in refused.text
    assert NEW not in refused.text
    assert [one.name for one in qm.accounts.users()] == ["shop"]


@serving(with_role("operator"))
async def test_only_administrators_see_and_change_users(client: httpx.AsyncClient, qm: QueueManager) -> None:
    qm.accounts.create_user("shop")
    for place in ("users", "user/shop"):
        assert (await client.get(f"/console/{place}")).status_code == 403
    for place, fields in EVERY:
        assert (await send(client, place, **fields, confirm=TOKEN)).status_code == 403
    assert [one.name for one in qm.accounts.users()] == ["shop"]


async def test_the_page_of_an_unknown_user_is_not_found(client: httpx.AsyncClient) -> None:
    assert (await client.get("/console/user/nobody")).status_code == 404
    for _, fields in EVERY[1:]:
        answer = await send(client, "user/nobody", **{**fields, "typed": "nobody"}, confirm=TOKEN)
        assert answer.status_code == 404, fields
    assert (await send(client, "user/nobody", action="burn")).status_code == 400
