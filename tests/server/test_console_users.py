"""Forms for users and tokens: who may use them, the password again, what they change, and what the log of acts has."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from tests.server.conftest import PASSWORD, TOKEN, Served, add, serving, with_role
from tests.server.test_console_acting import send
from tests.server.test_console_pages import words

from inorder import QueueManager
from inorder.errors import LogInRefused
from inorder.support import passwords

HOSTILE = "<script>alert(1)</script>"
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


async def test_an_administrator_confirms_with_the_own_password_only(
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
        ({"name": "a" * 300}, "name must be"),
        ({"name": "shop"}, "already"),
        ({"name": "a", "roles": ["king"]}, "roles must be"),
        ({"name": "a", "roles": ["application"], "queues": "put"}, "lines such as put,get=ORDERS.*"),
        ({"name": "a", "password": "short", "again": "short"}, "8 to 1,024 characters"),
        ({"name": "a", "password": NEW, "again": "other"}, "the same password"),
    ],
)
async def test_a_user_that_cannot_be_keeps_the_form_and_says_why(
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


async def test_a_user_that_is_not_there(client: httpx.AsyncClient) -> None:
    assert (await client.get("/console/user/nobody")).status_code == 404
    assert (await send(client, "user/nobody", action="burn")).status_code == 400
