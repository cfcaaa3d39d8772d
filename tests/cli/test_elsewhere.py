"""The command with a remote store: the credentials that it sends, and `inorder login`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from tests.cli.conftest import Command, Terminal
from tests.helpers.certificates import Signer
from tests.helpers.support import error_of
from tests.stores.remote.conftest import Tried, home, tried

import inorder
from inorder.cli import main
from inorder.cli.app import app
from inorder.cli.running import completions
from inorder.errors import OrderPending
from inorder.stores.memory import MemoryStore
from inorder.stores.remote.credentials import Credentials, from_file, keep
from inorder.testing import ManualClock
from inorder.testing.remote import the_server

__all__ = ["home", "tried"]

SECRET = "nobody-may-see-this"
URL, SERVER = "https://orders.example:9443", "orders.example:9443"


def test_the_token_of_the_environment_is_sent_only_to_the_main_store_of_the_command(
    run: Command, tried: Tried, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INORDER_TOKEN", SECRET)
    assert run("queue", "create", "Q").status == 0
    ended = run("--store", URL, "queue", "list")
    assert (ended.status, "is not there" in ended.err) == (3, True)
    assert run("copy", "Q", "Q", "--to-store", URL).status == 3
    monkeypatch.setenv("INORDER_STORE", URL)
    assert run("queue", "list").status == 3
    assert [found.token for _, found in tried] == [SECRET, None, SECRET]


def test_files_for_tls_are_options_before_the_command(
    run: Command, store: Path, tried: Tried, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {name: store.with_name(f"{name}.pem") for name in ("ca", "certificate", "key")}
    given: list[str] = []
    for name, path in files.items():
        path.touch()
        given += [f"--{name}", path.name]
    monkeypatch.setenv("INORDER_CA", "before")
    assert run(*given, "queue", "list", "--store", URL).status == 3
    assert tried == [(URL, Credentials(None, files["certificate"], files["key"], files["ca"]))]
    assert [os.environ.get(f"INORDER_{name}") for name in ("CA", "KEY")] == ["before", None]
    for words in (["queue", "list"], ["serve", str(store)]):
        ended = run("--ca", "ca.pem", *words)
        assert (ended.status, "--ca is for a store elsewhere" in ended.err) == (2, True)
    ended = run("--key", "key.pem", "login", URL)
    assert (ended.status, "login does not use a store: leave --key out" in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("command", "status", "told"),
    [
        (f"serve {URL}", 2, f"{URL} is a server already"),
        (f"create {URL}", 3, f"there is a store or another file at {URL} already"),
        (f"upgrade --store {URL}", 2, f"the store of {URL} is upgraded on the machine that has it"),
        (f"queue list --store https://me:{SECRET}@host", 2, "store must be a URL like https://host:9443"),
    ],
)
def test_commands_that_cannot_use_a_remote_store_are_refused(
    run: Command, command: str, status: int, told: str
) -> None:
    ended = run(*command.split())
    assert (ended.status, told in ended.err, SECRET in ended.err) == (status, True, False), ended


def test_two_names_of_one_server_are_refused_as_they_may_be_a_store_and_its_backup(run: Command, home: Path) -> None:
    server = the_server(os.getpid())
    with server.serving(MemoryStore("QM1")) as token:
        one, two = server.url, server.url.replace("127.0.0.1", "localhost")
        for url in (one, two):
            keep(url.partition("://")[2], Credentials(token))
        for name in "AB":
            assert run("--store", one, "queue", "create", name).status == 0
        for command in ("move", "copy"):
            ended = run("--store", one, command, "A", "B", "--to-store", two)
            assert (ended.status, "lead to one store, or to a store and its backup" in ended.err) == (2, True)
        ended = run("--store", one, "move", "A", "B", "--to-store", one, "--application", "app")
        assert (ended.status, "--application needs another store" in ended.err) == (2, True)


def test_ages_follow_the_clock_of_the_server(run: Command, home: Path) -> None:
    clock, server = ManualClock(), the_server(os.getpid())
    inner = MemoryStore("QM1", clock=clock)
    with server.serving(inner) as token, inorder.connect(inner) as qm:
        keep(server.url.partition("://")[2], Credentials(token))
        far = inorder.connect(server.url)
        qm.create_queue("Q", order="put")
        qm.put_many("Q", [b"1", b"2"])
        holder = qm.connect()
        holder.get("Q", syncpoint=True)
        holder.browse_and_lock("Q", confirm_id=1, lease=90)
        clock.advance(60)
        units, (lock,) = (run(one, "list", "--json", "--store", server.url).records for one in ("unit", "lock"))
        assert {one["kind"]: one["age"] for one in units} == {"session": 60, "lock": 60}
        assert (lock["age"], lock["lease_left"]) == (60, 30)
        qm.put("Q", b"3")
        withheld = error_of(far.get, "Q", read_order="strict")
        assert (type(withheld), withheld.data["age"]) == (OrderPending, 60)
        far.close()


def test_definitions_are_exported_from_and_imported_to_a_server_without_users(
    run: Command, store: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("queue", "create", "A", "--store", str(store))
    run("user", "add", "alice", "--store", str(store))
    server = the_server(os.getpid())
    with server.serving(str(store)) as token:
        monkeypatch.setenv("INORDER_TOKEN", token)
        whole, ended = run("export", "--store", str(store)), run("export", "--store", server.url)
        assert "inorder user add alice" in whole.out
        assert ended.out == whole.out.partition("* inorder user add")[0]
        assert "users are left out" in ended.err
        script = ended.out.replace("QLOCAL(A)", "QLOCAL(B)").encode()
        assert run("import", "-", "--yes", "--store", server.url, given=script).status == 0
        refused = run("import", "-", "--yes", "--store", server.url, given=whole.out.replace("(A)", "(C)").encode())
        assert (refused.status, "run 'inorder user'" in refused.err) == (2, True)
        with inorder.connect(store) as qm:
            assert [one.name for one in qm.queues()] == ["A", "B"]


def test_login_stores_a_token_from_standard_input(run: Command, home: Path) -> None:
    path = home / ".config/inorder/credentials"
    ended = run("login", f"{URL}/", "--json", given=f"{SECRET}\n".encode())
    assert (ended.status, ended.records) == (0, [{"server": SERVER, "done": "stored", "file": str(path)}])
    assert path.read_text(encoding="utf-8") == f"[{SERVER}]\ntoken = {SECRET}\n\n"
    assert path.stat().st_mode & 0o777 == 0o600
    ended = run("login", URL, "--remove")
    assert (ended.status, ended.out) == (0, f"removed the credentials for {URL}\n")
    ended = run("login", URL, "--remove")
    assert (ended.status, f"no credentials are stored for {URL}" in ended.err) == (2, True)


def test_login_asks_at_a_terminal(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def prompt(text: str, **how: Any) -> str:
        asked.append((text, how))
        return SECRET

    monkeypatch.setattr(click, "prompt", prompt)
    monkeypatch.setattr(sys, "stdin", Terminal())
    assert main(["login", URL]) == 0
    assert asked == [("Token", {"hide_input": True, "err": True})]
    assert from_file(SERVER) == Credentials(SECRET)


def test_login_stores_the_paths_of_certificates_that_can_be_used(run: Command, store: Path) -> None:
    signer = Signer(store.parent, "authority")
    words = ["login", URL, "--ca", "authority.pem", "--certificate", "authority.pem"]
    ended = run(*words, "--key", "authority.key")
    found = (ended.status, from_file(SERVER))
    assert found == (0, Credentials(None, signer.certificate, signer.key, signer.certificate))
    ended = run(*words)
    assert (ended.status, "must be a certificate and its key in PEM" in ended.err) == (2, True)
    ended = run(*words, "--remove")
    assert (ended.status, "Give --remove or --ca, not both" in ended.err) == (2, True)
    ended = run("login", "http://localhost:9443", "--ca", "authority.pem")
    assert (ended.status, "--ca must be left out for http://" in ended.err) == (2, True)
    ended = run("login", "https://other.example", given=b"two words\n")
    assert (ended.status, "token must be 1 to 4,096 printable ASCII" in ended.err) == (2, True)
    assert from_file(SERVER).ca == signer.certificate, "what is refused changes nothing"


def test_completion_reports_no_error(store: Path) -> None:
    store.with_name("ca.pem").touch()
    context = app.make_context("inorder", ["--ca", "ca.pem", "--store", str(store), "get"], resilient_parsing=True)
    assert completions(click.Context(app.commands["get"], parent=context), lambda qm: ["Q"], "") == []
