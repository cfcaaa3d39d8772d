"""`inorder serve`: refused calls, and the settings of accepted ones. The server itself is tested in tests/server."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Command
from tests.cli.test_json import keys_below

import inorder
from inorder.cli import serve
from inorder.server import Settings, certificates, running
from inorder.support.advice import how_to_install


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The settings that would be served; no server is started."""
    found: list[Settings] = []
    monkeypatch.setattr(running, "serve", lambda settings, *given, **named: found.append(settings))
    return found


def define(*, password: bool = False, subjects: tuple[str, ...] = (), token: float = 0, enabled: bool = True) -> None:
    """Defines a user of the store."""
    with inorder.connect("orders.db") as qm:
        qm.accounts.create_user("anna", roles=["admin"], subjects=subjects, password_hash="$kept" if password else None)
        if token:
            qm.accounts.create_token("anna", "a program", seconds=token)
        qm.accounts.alter_user("anna", enabled=enabled)


@pytest.fixture
def refused(run: Command, queue: str, served: list[Settings]) -> Callable[..., str]:
    """A function that makes a call, checks that it serves nothing, and returns its error."""

    def calls(*arguments: str) -> str:
        ended = run("serve", *arguments)
        assert (ended.status in (2, 3), served) == (True, []), ended
        return str(ended.err)

    return calls


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "db.example", ""])
def test_an_address_that_others_reach_needs_tls(refused: Callable[..., str], host: str) -> None:
    define(password=True)
    told = refused("--host", host, "--name", "db.example")
    assert "TLS is required: give --certificate and --key, or --self-signed" in told
    assert "ssh -L" in told


@pytest.mark.parametrize(
    "user",
    [None, {}, {"password": True, "enabled": False}, {"subjects": ("CN=anna",)}, {"token": 1e-9}],
    ids=["nobody", "no way in", "disabled", "certificates are not asked for", "an expired token"],
)
def test_an_address_that_others_reach_needs_a_user_who_can_log_in(
    refused: Callable[..., str], user: dict[str, Any] | None
) -> None:
    if user is not None:
        define(**user)
    told = refused("--host", "192.0.2.1", "--self-signed")
    assert "a user who can log in is required: run inorder user add NAME" in told


@pytest.mark.parametrize("user", [{"password": True}, {"token": 60.0}, {"subjects": ("CN=anna",)}])
def test_with_tls_and_a_user_the_server_starts_without_a_launch_token(
    run: Command, queue: str, served: list[Settings], tmp_path: Path, user: dict[str, Any]
) -> None:
    define(**user)
    made = certificates.make(tmp_path, ["db.example"])
    asked = ("--client-ca", str(made.certificate)) if "subjects" in user else ()
    ended = run("serve", "--host", "0.0.0.0", "--port", "0", "--name", "DB.example", "--self-signed", "--json", *asked)
    assert ended.status == 0, ended.err
    (settings,) = served
    assert settings.token is None
    assert settings.hosts == {"localhost", "127.0.0.1", "[::1]", "db.example"}
    assert ended.records[0]["url"] == f"https://DB.example:{settings.port}/"


@pytest.mark.parametrize(
    ("name", "host"), [("192.0.2.7", "192.0.2.7"), ("2001:db8::1", "[2001:db8::1]"), ("A-b", "a-b")]
)
def test_a_given_name_is_accepted_as_a_host_of_the_server(
    run: Command, queue: str, served: list[Settings], name: str, host: str
) -> None:
    assert run("serve", "--port", "0", "--name", name).status == 0
    assert host in served[0].hosts
    assert served[0].token is not None


@pytest.mark.parametrize("name", ["", "a b", "queues.example:9443", "https://queues.example", "[::1]", "-x"])
def test_a_name_that_is_not_a_host_name_is_refused(refused: Callable[..., str], name: str) -> None:
    assert "must be a name such as" in refused("--port", "0", f"--name={name}")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("orders.db", "--store", "orders.db"), "Name the store once"),
        (("--certificate", "orders.db"), "--certificate and --key go together"),
        (("--self-signed", "--certificate", "orders.db", "--key", "orders.db"), "leave out --certificate and --key"),
        (("--client-ca", "orders.db"), "--client-ca needs TLS"),
        (("--client-ca", "none.pem", "--self-signed"), "does not exist"),
        (("--client-crl", "orders.db", "--self-signed"), "--client-crl needs --client-ca"),
        (("--client-ca", "orders.db", "--self-signed"), "has no certificates in PEM"),
        (("--host", "192.0.2.1", "--self-signed", "--token-file", "t"), "is not one: leave it out"),
        (("--host", "0.0.0.0", "--self-signed"), "give --name for each"),
        (("--token-file", "orders.db"), "is the store itself"),
        (("--certificate", "c.pem", "--key", "c.pem"), "c.pem"),
        (("--port", "65536"), "65536"),
    ],
)
def test_invalid_options_of_serve_are_refused(
    refused: Callable[..., str], arguments: tuple[str, ...], words: str
) -> None:
    Path("c.pem").write_text("nonsense")
    define(password=True)
    free = () if "--port" in arguments else ("--port", "0")
    assert words in refused(*arguments, *free)


def test_a_port_in_use_is_reported(run: Command, queue: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run("serve", "--port", str(port))
    assert ended.status == 2
    assert f"the server cannot listen on 127.0.0.1:{port}: Address already in use" in ended.err


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        (b"x" * 43, 0o644, "chmod 600"),
        (b"short", 0o600, "one line of 16 to 512"),
        (b"\xff" * 40, 0o600, "one line"),
        (b"two words of a token", 0o600, "one line"),
    ],
)
def test_an_invalid_token_file_is_refused(
    refused: Callable[..., str], tmp_path: Path, content: bytes, mode: int, words: str
) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    file.chmod(mode)
    assert words in refused("--port", "0", "--token-file", str(file))


def test_without_its_libraries_serve_says_what_to_install(
    run: Command, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "find_spec", lambda name: None)
    ended = run("serve")
    assert ended.status == 2
    assert how_to_install("server") in ended.err


def test_the_link_has_the_token_unless_a_file_has_it(
    run: Command, queue: str, served: list[Settings], tmp_path: Path
) -> None:
    first = run("serve", "--port", "0")
    assert first.status == 0, first.err
    assert f"http://127.0.0.1:{served[0].port}/?token={served[0].token}" in first.out.replace("\n", "")
    file = tmp_path / "token"
    for _ in range(2):
        ended = run("serve", "orders.db", "--port", "0", "--host", "localhost", "--token-file", str(file), "--json")
        (record,) = ended.records
        assert record.keys() == keys_below("A server")
        assert record["url"] == f"http://localhost:{served[-1].port}/"
        token = served[-1].token
        assert token
        assert token == file.read_text().strip()
        assert token not in ended.out + ended.err
    assert file.stat().st_mode & 0o777 == 0o600
    assert served[1].token == served[2].token != served[0].token
    assert len({one.key for one in served}) == 3
    secret = served[0].token
    assert secret is not None
    assert secret not in repr(served[0])
