"""`inorder user`, `token` and `acts`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cli.conftest import Command, Ended

import inorder
from inorder.cli.app import app
from inorder.support import passwords

PASSWORD = "correct horse"


@pytest.fixture
def qm(queue: str, store: Path) -> Iterator[inorder.QueueManager]:
    del queue
    with inorder.connect(store) as one:
        yield one


@pytest.fixture
def run(run: Command) -> Command:
    """Like the shared fixture `run`, but checks the exit status."""

    def command(*arguments: str, given: bytes = b"", status: int = 0) -> Ended:
        ended: Ended = run(*arguments, given=given)
        assert ended.status == status, ended.err
        return ended

    return command


def test_users_are_defined_and_listed(run: Command, qm: inorder.QueueManager) -> None:
    given = ["--role", "application", "--may", "put,inquire=ORDERS.*", "--may", "get=REPLIES", "--certificate", "CN=x"]
    [record] = run("user", "add", "shop", *given, "--description", "the shop", "--json").records
    assert record == {
        "user": "shop",
        "roles": ["application"],
        "enabled": True,
        "password": False,
        "grants": ["put,inquire=ORDERS.*", "get=REPLIES"],
        "subjects": ["CN=x"],
        "description": "the shop",
        "done": "created",
    }
    assert qm.accounts.user("shop").may("put", "ORDERS.EU")
    assert run("user", "add", "reader").out == "created user reader: reader\n"
    assert [one["user"] for one in run("user", "list", "--json").records] == ["reader", "shop"]
    assert "put,inquire=ORDERS.*" in run("user", "list").out
    assert "already" in run("user", "add", "reader", "--password", status=1).err
    assert not qm.accounts.user("reader").has_password, "and none was asked for"


def test_only_the_given_attributes_of_a_user_are_altered(run: Command, qm: inorder.QueueManager) -> None:
    run("user", "add", "shop", "--role", "application", "--may", "put=A")
    run("user", "alter", "shop", "--may", "get=B", "--disable")
    found = qm.accounts.user("shop")
    assert (dict(found.queues), found.enabled, found.roles) == ({"B": ("get",)}, False, ("application",))
    run("user", "alter", "shop", "--enable", "--role", "reader")
    found = qm.accounts.user("shop")
    assert (dict(found.queues), found.enabled, found.roles) == ({}, True, ("reader",))
    assert "Nothing to change" in run("user", "alter", "shop", status=2).err


def test_a_password_is_read_from_standard_input(run: Command, qm: inorder.QueueManager) -> None:
    run("user", "add", "alice", "--password-stdin", given=f"{PASSWORD}\n".encode())
    assert qm.accounts.identify(name="alice", verify=passwords.verifier(PASSWORD)).name == "alice"
    run("user", "password", "alice", "--password-stdin", given=b"another horse\r\n")
    assert qm.accounts.identify(name="alice", verify=passwords.verifier("another horse")).name == "alice"
    assert run("user", "password", "alice", "--remove").out == "removed the password of alice\n"
    assert not qm.accounts.user("alice").has_password
    assert "not both" in run("user", "password", "alice", "--remove", "--password-stdin", status=2).err


def test_a_password_is_asked_for_twice_and_not_shown(qm: inorder.QueueManager, store: Path) -> None:
    arguments = ["user", "add", "alice", "--password", "--store", str(store)]
    result = CliRunner().invoke(app, arguments, input=f"{PASSWORD}\n{PASSWORD}\n")
    assert (result.exit_code, PASSWORD in result.output) == (0, False)
    assert qm.accounts.identify(name="alice", verify=passwords.verifier(PASSWORD)).name == "alice"


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["user", "add", "a b"], 2, "without blanks"),
        (["user", "add", "shop", "--may", "put"], 2, "must be AUTHORITY,...=QUEUE"),
        (["user", "add", "shop", "--may", "put=Q"], 2, "'application'"),
        (["user", "add", "shop", "--role", "application", "--may", "administer=Q"], 2, "one or more of put, get"),
        (["user", "add", "shop", "--role", "application", "--may", "put,inqire=Q"], 2, "not 'inqire'"),
        (["user", "add", "shop", "--role", "root"], 2, "'root' is not one of"),
        (["user", "add", "shop", "--password-stdin"], 2, "8 to 1,024 characters"),
        (["user", "add", "shop", "--password", "--password-stdin"], 2, "not both"),
        (["user", "alter", "nobody", "--disable"], 2, "there is no user 'nobody'"),
        (["token", "revoke", "abc.secret"], 2, "there is no token 'abc'"),
    ],
)
def test_bad_calls_are_refused(
    run: Command, qm: inorder.QueueManager, arguments: list[str], status: int, told: str
) -> None:
    said = run(*arguments, status=status, given=b"short\n").err
    assert told in said
    assert "secret" not in said
    assert qm.accounts.users() == []


def test_a_password_that_is_not_utf_8_is_refused(run: Command, qm: inorder.QueueManager) -> None:
    said = run("user", "add", "shop", "--password-stdin", given=f"{PASSWORD} \xe9\n".encode("latin-1"), status=2).err
    assert "password must be a text in UTF-8" in said
    assert qm.accounts.users() == []


def test_a_token_is_shown_once(run: Command, qm: inorder.QueueManager) -> None:
    run("user", "add", "shop")
    shown = run("token", "create", "shop", "nightly run", "--days", "30").out.strip()
    assert qm.accounts.identify(token=shown).name == "shop"
    [record] = run("token", "list", "--user", "shop", "--json").records
    assert (record["token"], record["label"], record["user"]) == (shown.partition(".")[0], "nightly run", "shop")
    assert shown.partition(".")[2] not in json.dumps(record)
    [made] = run("token", "create", "shop", "more", "--json").records
    assert made["secret"].startswith(f"{made['token']}.")
    run("token", "revoke", record["token"])
    assert [one.label for one in qm.accounts.tokens()] == ["more"]
    run("user", "delete", "shop", "--yes")
    assert (qm.accounts.users(), qm.accounts.tokens()) == ([], [])


def test_acts_are_shown_the_newest_first(run: Command, qm: inorder.QueueManager) -> None:
    for user, queue in (("alice", "A"), ("bob", "B"), ("alice", "B")):
        with qm.accounts.acting("clear", queue, user=user, address="10.0.0.1") as act:
            act.messages = 3
    records = run("acts", "--json").records
    found = [(one["user"], one["queue"], one["messages"], one["outcome"]) for one in records]
    assert found == [("alice", "B", 3, "done"), ("bob", "B", 3, "done"), ("alice", "A", 3, "done")]
    assert len(run("acts", "--user", "alice", "--queue", "B", "--json").records) == 1
    assert len(run("acts", "--limit", "2", "--json").records) == 2
    assert "10.0.0.1" in run("acts").out


def test_a_lease_is_listed_with_the_time_left_and_backed_out(
    run: Command, qm: inorder.QueueManager, queue: str
) -> None:
    lease = qm.lease(seconds=600)
    with lease:
        qm.put(queue, b"1")
    [record] = run("unit", "list", "--json").records
    assert (record["kind"], record["unit"], record["puts"]) == ("lease", f"lease:{lease.name}", 1)
    assert 300 < record["time_left"] <= 600
    assert record["ends_at"]
    assert "time left" in run("unit", "list").out
    assert "only its token can commit it" in run("unit", "commit", f"lease:{lease.name}", "--yes", status=1).err
    run("unit", "backout", f"lease:{lease.name}", "--yes")
    assert (qm.inspect.units(), qm.depth(queue)) == ([], 0)
