"""Users at the server: log-ins, authorities, and the log of acts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.server.conftest import AS_NOBODY, PASSWORD, TEXT, TOKEN, Served, add, alive, client_of, hash_of
from tests.server.test_messaging import number_of

import inorder
from inorder import QueueManager
from inorder.mq.mqsc import commands_in, parse
from inorder.mq.mqsc.authorities import need_of
from inorder.rules.log_ins import LIMITS
from inorder.server import Limits
from inorder.server import users as server_users
from inorder.support import passwords

V1, V3 = "/ibmmq/rest/v1", "/ibmmq/rest/v3"
LOGIN = f"{V3}/login"
MQSC = f"{V3}/admin/action/qmgr/QM1/mqsc"
OTHER = "another password"


def as_(name: str, password: str = PASSWORD) -> httpx.BasicAuth:
    return httpx.BasicAuth(name.encode(), password.encode())


def messages(queue: str) -> str:
    return f"{V3}/messaging/qmgr/QM1/queue/{queue}/message"


def command(text: str) -> dict[str, Any]:
    return {"type": "runCommand", "parameters": {"command": text}}


def change(served: Served, work: Callable[[inorder.QueueManager], object]) -> None:
    """Changes the store as another program."""
    with inorder.connect(served.store) as qm:
        work(qm)


async def name_of(client: httpx.AsyncClient) -> str | int:
    """The name of the user who has logged in, or the status of the refusal."""
    answer = await client.get(LOGIN)
    return str(answer.json()["user"][0]["name"]) if answer.status_code == 200 else answer.status_code


async def test_users_log_in_by_password_and_token(client: httpx.AsyncClient, qm: QueueManager, served: Served) -> None:
    add(served, "anna", roles=["operator"])
    token = qm.accounts.create_token("anna", "a program")
    for auth, headers, expected in (
        (as_("anna"), {}, "anna"),
        (as_("anna", OTHER), {}, 401),
        (as_("nobody"), {}, 401),
        (as_("anna", ""), {}, 401),
        (AS_NOBODY, {"Authorization": f"Bearer {token}"}, "anna"),
        (AS_NOBODY, {"Authorization": f"Bearer {token}x"}, 401),
        (AS_NOBODY, {"Authorization": f"Bearer {token.partition('.')[0]}"}, 401),
    ):
        client.auth = auth
        answer = await client.get(LOGIN, headers=headers)
        found = answer.json()["user"][0]["name"] if answer.status_code == 200 else answer.status_code
        assert found == expected, (auth, headers)


def test_the_launch_token_is_valid_only_if_the_server_has_one(served: Served) -> None:
    add(served, "anna")

    async def beside(client: httpx.AsyncClient) -> None:
        assert await name_of(client) == "launch-token"
        client.auth = as_("anna")
        assert await name_of(client) == "anna"
        client.auth = AS_NOBODY
        assert (await client.get(f"/?token={TOKEN}")).status_code == 303

    async def without(client: httpx.AsyncClient) -> None:
        assert await name_of(client) == 401
        client.auth = as_("anna")
        assert await name_of(client) == "anna"
        client.auth = AS_NOBODY
        assert number_of(await client.get(f"/?token={TOKEN}")) == (401, "MQWB0104E", 0)

    served.run(beside)
    served.run(without, token=None)


def test_no_user_can_have_the_name_of_the_launch_token() -> None:
    with inorder.connect(":memory:") as qm, pytest.raises(inorder.ArgumentError, match="stands for the launch token"):
        qm.accounts.create_user("launch-token", roles=["admin"])


async def test_a_token_of_a_user_in_an_address_is_refused(
    client: httpx.AsyncClient, qm: QueueManager, served: Served
) -> None:
    add(served, "anna")
    token = qm.accounts.create_token("anna", "a program")
    client.auth = AS_NOBODY
    assert number_of(await client.get("/", params={"token": token})) == (401, "MQWB0104E", 0)


@pytest.mark.parametrize("name", ["\ud800", "a\0b", "", "x" * 10_000])
async def test_names_that_no_user_can_have_are_refused(client: httpx.AsyncClient, name: str) -> None:
    client.auth = AS_NOBODY
    content = b'{"username": %b, "password": "12345678"}' % _json(name)
    answer = await client.post(LOGIN, content=content, headers={"Content-Type": "application/json"})
    assert number_of(answer) == (401, "MQWB0104E", 0)


def _json(text: str) -> bytes:
    return ('"' + "".join(f"\\u{ord(one):04x}" for one in text) + '"').encode()


def replaced(qm: inorder.QueueManager) -> None:
    qm.accounts.delete_user("anna")
    qm.accounts.create_user("anna", roles=["admin"], password_hash=hash_of(PASSWORD))


def disabled_and_enabled(qm: inorder.QueueManager) -> None:
    qm.accounts.alter_user("anna", enabled=False)
    qm.accounts.alter_user("anna", enabled=True)


CHANGES: list[tuple[str, Callable[[inorder.QueueManager], object], str | int]] = [
    ("deleted", lambda qm: qm.accounts.delete_user("anna"), 401),
    ("disabled", lambda qm: qm.accounts.alter_user("anna", enabled=False), 401),
    ("another password", lambda qm: qm.accounts.alter_user("anna", password_hash=hash_of(OTHER)), 401),
    ("no password", lambda qm: qm.accounts.alter_user("anna", password_hash=""), 401),
    ("another of the name", replaced, 401),
    ("disabled and enabled", disabled_and_enabled, 401),
    ("another role", lambda qm: qm.accounts.alter_user("anna", roles=["reader"]), "anna"),
]  # fmt: skip


@pytest.mark.parametrize("by", ["a session", "a password that is remembered"])
@pytest.mark.parametrize(("how", "expected"), [one[1:] for one in CHANGES], ids=[one[0] for one in CHANGES])
async def test_a_change_of_a_user_takes_effect_immediately(
    client: httpx.AsyncClient,
    served: Served,
    how: Callable[[inorder.QueueManager], object],
    expected: str | int,
    by: str,
) -> None:
    add(served, "anna", roles=["admin"])
    client.auth = AS_NOBODY if by == "a session" else as_("anna")
    if by == "a session":
        assert (await client.post(LOGIN, json={"username": "anna", "password": PASSWORD})).status_code == 204
    elif how in (replaced, disabled_and_enabled):
        expected = "anna"  # with the same password
    assert [await name_of(client) for _ in range(2)] == ["anna"] * 2
    assert (await client.post(MQSC, json=command("DEFINE QLOCAL(A)"))).status_code == 200
    change(served, how)
    assert await name_of(client) == expected
    again = await client.post(MQSC, json=command("DEFINE QLOCAL(B)"))
    assert again.status_code == (401 if expected == 401 else 200 if how in (replaced, disabled_and_enabled) else 403)


async def test_failed_log_ins_are_limited_and_the_error_says_for_how_long(
    client: httpx.AsyncClient, served: Served
) -> None:
    add(served, "anna")
    client.auth = as_("anna", OTHER)
    for _ in range(LIMITS["user"].failures):
        assert number_of(await client.get(LOGIN)) == (401, "MQWB0104E", 0)
    client.auth = AS_NOBODY
    for answer in (
        await client.get(LOGIN, auth=as_("anna")),
        await client.post(LOGIN, json={"username": "anna", "password": PASSWORD}),
    ):
        assert number_of(answer) == (429, "INWB0030E", 9061)
        assert 1 <= int(answer.headers["retry-after"]) <= LIMITS["user"].seconds
    assert (await client.get(LOGIN, auth=httpx.BasicAuth("anna", TOKEN))).status_code == 200


async def test_guesses_of_the_launch_token_are_limited_by_address(client: httpx.AsyncClient) -> None:
    client.auth = AS_NOBODY
    for number in range(LIMITS["address"].failures):
        way = {"params": {"token": "x"}} if number % 2 else {"headers": {"Authorization": "Bearer x"}}
        assert (await client.get("/", **way)).status_code == 401  # type: ignore[arg-type]
    assert number_of(await client.get("/?token=x")) == (429, "INWB0030E", 9061)
    assert (await client.get(f"/?token={TOKEN}")).status_code == 303


async def test_a_password_sent_with_each_request_is_verified_once(
    client: httpx.AsyncClient, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many of its requests at once are not mistaken for an attack."""
    add(served, "anna")
    tried: list[str] = []
    verifier = passwords.verifier

    def counted(password: str) -> Callable[[str | None], bool]:
        tried.append(password)
        return verifier(password)

    monkeypatch.setattr(passwords, "verifier", counted)
    client.auth = as_("anna")
    assert await asyncio.gather(*(name_of(client) for _ in range(30))) == ["anna"] * 30
    assert tried == [PASSWORD]
    client.auth = as_("anna", OTHER)
    assert [await name_of(client) for _ in range(2)] == [401, 401]
    assert tried == [PASSWORD, OTHER, OTHER], "what was wrong is tried again"


def test_a_correct_password_is_remembered_for_a_limited_time(served: Served, qm: QueueManager) -> None:
    add(served, "anna")
    user = qm.accounts.user("anna")
    now = [0.0]
    remembered = server_users.Remembered(lambda: now[0])
    remembered.add(user, PASSWORD)
    assert remembered.has(user, PASSWORD)
    assert not remembered.has(user, OTHER)
    now[0] = server_users.REMEMBERED_SECONDS
    assert not remembered.has(user, PASSWORD)
    for number in range(server_users.REMEMBERED_MAX + 1):
        remembered.add(user, str(number))
    assert not remembered.has(user, "0")
    assert remembered.has(user, "1")


async def test_the_loop_answers_others_while_a_password_is_compared(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison ends only after another request was answered; in the loop it would wait forever."""
    add(served, "anna")
    loop, others = asyncio.get_running_loop(), asyncio.Event()

    def slow(password: str) -> Callable[[str | None], bool]:
        def verify(kept: str | None) -> bool:
            asyncio.run_coroutine_threadsafe(others.wait(), loop).result(60)
            return passwords.verifier(password)(kept)

        return verify

    monkeypatch.setattr(server_users, "passwords", type("Slow", (), {"verifier": staticmethod(slow)}))
    limits = Limits(log_ins=2)
    async with alive(served.app(limits=limits)) as app, client_of(app, auth=AS_NOBODY) as client:
        asked = [asyncio.ensure_future(client.get(LOGIN, auth=as_("anna"))) for _ in range(3)]
        done, waiting = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        assert [number_of(one.result()) for one in done] == [(503, "INWB0008E", 0)]
        assert (await client.get("/ready")).status_code == 200
        others.set()
        assert [one.status_code for one in await asyncio.gather(*waiting)] == [200, 200]


ROLES_OF_IBM = {
    "admin": ["MQWebAdmin", "MQWebUser"],
    "operator": ["MQWebUser"],
    "reader": ["MQWebAdminRO"],
    "application": ["MQWebUser"],
}

# A request, the roles that may make it, and the grant on Q1 with which an application may make it.
REQUESTS: list[tuple[str, str, dict[str, Any], str, str]] = [
    ("POST", messages("Q1"), {"content": "x", "headers": TEXT}, "admin operator", "put"),
    ("DELETE", messages("Q1"), {}, "admin operator", "get"),
    ("GET", messages("Q1"), {}, "admin operator reader", "browse"),
    ("GET", f"{messages('Q1')}list", {}, "admin operator reader", "browse"),
    ("GET", f"{V1}/admin/qmgr/QM1/queue/Q1", {}, "admin operator reader", "inquire"),
    ("PATCH", f"{V1}/admin/qmgr/QM1/queue/Q1", {"json": {}}, "admin operator", "alter"),
    ("POST", f"{V1}/admin/qmgr/QM1/queue", {"json": {"name": "Q1"}}, "admin", ""),
    ("DELETE", f"{V1}/admin/qmgr/QM1/queue/Q1?purge", {}, "admin", ""),
    ("GET", f"{V3}/admin/qmgr", {}, "admin operator reader", ""),
    ("GET", f"{V3}/admin/installation", {}, "admin operator reader", ""),
    ("GET", "/metrics", {}, "admin operator reader", ""),
    *(
        ("POST", MQSC, {"json": command(text)}, roles, granted)
        for text, roles, granted in (
            ("DISPLAY QLOCAL(Q1)", "admin operator reader", "inquire"),
            ("DISPLAY QSTATUS(Q1)", "admin operator reader", "inquire"),
            ("DISPLAY QMGR", "admin operator reader", ""),
            ("DISPLAY CHANNEL(*)", "admin operator reader", ""),
            ("DISPLAY CHSTATUS(*)", "admin operator reader", ""),
            ("DISPLAY PROCESS(*)", "admin operator reader", ""),
            ("DISPLAY CONN(*) TYPE(ALL)", "admin operator reader", ""),
            ("DISPLAY QSTATUS(Q1) TYPE(HANDLE)", "admin operator reader", "inquire"),
            ("ALTER QLOCAL(Q1) MAXDEPTH(5)", "admin operator", "alter"),
            ("CLEAR QLOCAL(Q1)", "admin operator", "clear"),
            ("START CHANNEL(C)", "admin operator", ""),
            ("STOP CHANNEL(C)", "admin operator", ""),
            ("PING CHANNEL(C)", "admin operator", ""),
            ("RESET CHANNEL(C)", "admin operator", ""),
            ("RESOLVE CHANNEL(C) ACTION(COMMIT)", "admin operator", ""),
            ("DEFINE QLOCAL(Q1) REPLACE", "admin", ""),
            ("DELETE QLOCAL(Q1) PURGE", "admin", ""),
            ("ALTER QMGR DESCR('x')", "admin", ""),
            ("DEFINE PROCESS(P) APPLICID('x')", "admin", ""),
            ("ALTER PROCESS(P) APPLICID('x')", "admin", ""),
            ("DELETE PROCESS(P)", "admin", ""),
            ("DEFINE CHANNEL(C) CHLTYPE(SDR) XMITQ(X) CONNAME('b.db')", "admin", ""),
            ("ALTER CHANNEL(C) CHLTYPE(SDR) CONNAME('b.db')", "admin", ""),
            ("DELETE CHANNEL(C)", "admin", ""),
        )
    ),
]


@pytest.mark.parametrize("row", REQUESTS, ids=lambda row: str(row[:3])[-60:])
async def test_each_request_needs_its_authority(
    client: httpx.AsyncClient, qm: QueueManager, served: Served, row: tuple[str, str, dict[str, Any], str, str]
) -> None:
    """A refusal is 403 with reason 2035, and changes nothing; an allowed request gets any other answer."""
    method, path, given, roles, granted = row
    everything = ["put", "get", "browse", "inquire", "set", "display", "alter", "clear"]
    for role in ("admin", "operator", "reader"):
        add(served, role, roles=[role])
    add(served, "granted", roles=["application"], queues={"Q*": [granted]} if granted else {"*": everything})
    others = [one for one in everything if one != granted]
    add(served, "others", roles=["application"], queues={"Q1": others, "R1": everything})
    allowed = {*roles.split(), *(["granted"] if granted else [])}
    order = ["others", "granted", "reader", "operator", "admin"]  # the user with the most authority comes last
    qm.put("Q1", b"x")
    for name in order:
        before = qm.queues(), qm.depth("Q1"), list(qm.accounts.acts())
        answer = await client.request(method, path, auth=as_(name), **given)
        if name in allowed:
            assert answer.status_code not in (401, 403), (name, answer.text)
        else:
            assert number_of(answer) == (403, "MQWB0103E", 2035), name
            assert (qm.queues(), qm.depth("Q1"), list(qm.accounts.acts())) == before, name


def test_every_kind_of_command_is_tested_and_only_changes_have_an_act() -> None:
    """The table of requests has a command of each kind that the grammar knows."""
    texts = [given["json"]["parameters"]["command"] for _, path, given, *_ in REQUESTS if path == MQSC]
    sources = [next(iter(commands_in([text]))) for text in texts]
    commands = [parse(source) for source in sources]
    assert {type(one).__name__ for one in commands} == {
        "Define", "Alter", "AlterManager", "Delete", "Clear", "Display", "DisplayManager", "ObjectCommand",
    }  # fmt: skip
    for one in commands:
        looks = type(one).__name__.startswith("Display") or getattr(one, "verb", "") in ("DISPLAY", "PING")
        assert bool(need_of(one).act) is not looks, one


async def test_a_list_shows_what_its_user_may_inquire(
    client: httpx.AsyncClient, qm: QueueManager, served: Served
) -> None:
    for name in ("ORDERS.EU", "ORDERS.US", "SECRET"):
        qm.create_queue(name)
    add(served, "shop", roles=["application"], queues={"ORDERS.*": ["inquire"], "SECRET": ["put"]})
    add(served, "none", roles=["application"])
    client.auth = as_("shop")
    answer = await client.get(f"{V1}/admin/qmgr/QM1/queue")
    assert [one["name"] for one in answer.json()["queue"]] == ["ORDERS.EU", "ORDERS.US"]
    found = (await client.post(MQSC, json=command("DISPLAY QUEUE(*) CURDEPTH"))).json()["commandResponse"]
    assert [one["text"][0].partition("QUEUE(")[2].partition(")")[0] for one in found] == ["ORDERS.EU", "ORDERS.US"]
    for text in ("DISPLAY QLOCAL(SEC*)", "DISPLAY QSTATUS(SEC*) WHERE(CURDEPTH EQ 0)"):
        answer = await client.post(MQSC, json=command(text))
        assert answer.json()["overallReasonCode"] == 3008
        assert "SECRET" not in answer.text
        none = await client.post(MQSC, json=command(text.replace("SEC*", "NON*")))
        assert none.text == answer.text.replace("SEC*", "NON*"), "it does not say whether there are others"
    client.auth = as_("none")
    assert (await client.get(f"{V1}/admin/qmgr/QM1/queue")).json() == {"queue": []}


async def test_an_error_names_no_queue_that_the_user_may_not_see(
    client: httpx.AsyncClient, qm: QueueManager, served: Served
) -> None:
    qm.create_queue("SECRET")
    add(served, "shop", roles=["application"], queues={"SECRE": ["put", "get", "browse", "inquire", "clear"]})
    add(served, "boss", roles=["admin"])
    ours = "/inorder/v1/queues/SECRE"
    for name, is_shown in (("shop", False), ("boss", True)):
        client.auth = as_(name)
        for answer in (
            await client.get(ours),
            await client.post(f"{ours}/put", json={"body": "x"}),
            await client.get(f"{ours}/events"),
            await client.post(MQSC, json=command("CLEAR QLOCAL(SECRE)")),
            await client.post(MQSC, json={"type": "runCommandJSON", "command": "clear", "qualifier": "qlocal"}
                              | {"name": "SECRE"}),
        ):  # fmt: skip
            assert "there is no queue 'SECRE'" in answer.text
            assert ("SECRET" in answer.text) is is_shown


@pytest.mark.parametrize("role", ROLES_OF_IBM)
async def test_roles_have_ibm_s_names(client: httpx.AsyncClient, served: Served, role: str) -> None:
    add(served, "one", roles=[role])
    client.auth = as_("one")
    assert (await client.get(LOGIN)).json() == {"user": [{"name": "one", "role": ROLES_OF_IBM[role]}]}


async def test_a_message_has_the_name_of_the_user_who_put_it(client: httpx.AsyncClient, served: Served) -> None:
    names = ["anna", "a-name-of-twenty-two", "\u00e4\u20ac" * 10]
    for name in names:
        add(served, name, roles=["operator"])
    for name in names:
        put = await client.post(messages("Q1"), content="x", headers=TEXT, auth=as_(name))
        assert put.status_code == 201, put.text
    assert (await client.post(messages("Q1"), content="x", headers=TEXT)).status_code == 201
    with inorder.connect(served.store) as qm:  # while the server lives: the messages are not persistent
        there = [(message.user_identifier, message.put_application_name) for message in qm.browse("Q1")]
    expected = [*(name[:12] for name in names), "launch-token"]
    assert there == [(name, "inorder serve") for name in expected]


async def test_acts_that_change_or_destroy_are_logged_with_the_name_of_the_user(
    client: httpx.AsyncClient, qm: QueueManager, served: Served
) -> None:
    add(served, "root", roles=["admin"])
    for _ in range(3):
        qm.put("Q1", b"x")
    qm.close_queue("Q1")  # a queue that is open cannot be cleared
    client.auth = as_("root")
    queues = f"{V1}/admin/qmgr/QM1/queue"
    asked: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", queues, {"json": {"name": "NEW"}}),
        ("PATCH", f"{queues}/NEW", {"json": {"storage": {"maximumDepth": 5}}}),
        ("DELETE", f"{queues}/NEW", {}),
        ("DELETE", f"{queues}/NONE", {}),
        *(
            ("POST", MQSC, {"json": command(text)})
            for text in (
                "CLEAR QLOCAL(Q1)", "DEFINE QLOCAL(A)", "ALTER QLOCAL(A) MAXDEPTH(1)", "DELETE QLOCAL(A)",
                "CLEAR QLOCAL(NONE)", "ALTER QMGR DESCR('x')", "DEFINE PROCESS(P) APPLICID('x')",
                "DISPLAY QLOCAL(*)", "DISPLAY QMGR", "NONSENSE",
            )
        ),
        ("POST", messages("Q1"), {"content": "x", "headers": TEXT}),
        ("DELETE", messages("Q1"), {}),
    ]  # fmt: skip
    for method, path, given in asked:
        await client.request(method, path, **given)
    noted = [(act.act, act.queue, act.messages, act.outcome) for act in qm.accounts.acts(user="root")]
    assert noted[::-1] == [
        ("define", "NEW", None, "done"),
        ("alter", "NEW", None, "done"),
        ("delete", "NEW", None, "done"),
        ("delete", "NONE", None, "failed"),
        ("clear", "Q1", 3, "done"),
        ("define", "A", None, "done"),
        ("alter", "A", None, "done"),
        ("delete", "A", None, "done"),
        ("clear", "NONE", None, "failed"),
        ("alter the queue manager", "", None, "done"),
        ("define process P", "", None, "done"),
    ]
    assert {act.address for act in qm.accounts.acts()} == {"127.0.0.1"}


@pytest.mark.parametrize("name", ["a\0b", "x" * 300, "\u00e9" * 300, "a%2Fb"])
async def test_acts_on_impossible_queue_names_are_logged_too(
    client: httpx.AsyncClient, qm: QueueManager, name: str
) -> None:
    answer = await client.post(f"{V1}/admin/qmgr/QM1/queue", json={"name": name})
    assert answer.status_code == (201 if name == "a%2Fb" else 400), answer.text
    assert len(list(qm.accounts.acts(user="launch-token"))) == 1
