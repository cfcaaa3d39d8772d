"""The sources of credentials for a store elsewhere, and their order; no output shows a token."""

from __future__ import annotations

import copy
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from inorder.errors import ArgumentError, CallerError
from inorder.stores.remote import credentials
from inorder.stores.remote.address import parse
from inorder.stores.remote.credentials import Credentials, forget, from_file, keep

SECRET = "nobody-may-see-this"
IN_FILE = "of-file"
URL, SERVER = "https://orders.example:9443", "orders.example:9443"


def written(path: Path, text: str, mode: int = 0o600) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


@pytest.fixture
def file(home: Path) -> Path:
    """The usual credentials file, with a token for the server."""
    return written(home / ".config/inorder/credentials", f"# ours\n[{SERVER}]\ntoken = {IN_FILE}\n")


def test_the_argument_overrides_the_environment_which_overrides_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert parse(URL).credentials().token == IN_FILE
    monkeypatch.setenv("INORDER_TOKEN", "of-environment")
    assert parse(URL).credentials().token == "of-environment"
    assert parse(URL, {"token": "of-argument"}).credentials().token == "of-argument"
    monkeypatch.setenv("INORDER_TOKEN", "")
    assert parse(URL).credentials().token == IN_FILE, "an empty variable counts as none"


def test_each_connection_reads_the_credentials_file_again(file: Path) -> None:
    address = parse(URL)
    assert address.credentials().token == IN_FILE
    keep(SERVER, Credentials("renewed"))
    assert address.credentials().token == "renewed"


def test_the_environment_is_used_only_for_hosts_that_the_program_names(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TOKEN", "CERTIFICATE", "KEY", "CA"):
        monkeypatch.setenv(f"INORDER_{name}", f"/of-environment/{name}")
    assert parse(URL, named_by_program=False).credentials() == Credentials(IN_FILE)
    assert parse("https://other.example:9443", named_by_program=False).credentials() == Credentials()


def test_the_identity_is_from_one_source_and_the_ca_from_the_first_source_that_has_one(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(file, f"[{SERVER}]\ntoken = {IN_FILE}\nca = sub/ca.pem\n")
    there = file.parent / "sub/ca.pem"
    assert parse(URL, {"certificate": "c.pem", "key": "k.pem"}).credentials() == Credentials(
        None, Path("c.pem"), Path("k.pem"), there
    )
    monkeypatch.setenv("INORDER_CERTIFICATE", "/env/c.pem")
    assert parse(URL, {"ca": "~/own.pem"}).credentials() == Credentials(
        None, Path("/env/c.pem"), None, file.parents[2] / "own.pem"
    )
    monkeypatch.setenv("INORDER_CA", "/env/ca.pem")
    file.chmod(0o644)  # the file is not read if nothing is missing
    assert parse(URL).credentials() == Credentials(None, Path("/env/c.pem"), None, Path("/env/ca.pem"))
    assert parse("http://localhost:9443", {"token": "t"}).credentials().token == "t"


def test_a_section_applies_to_one_host_and_port_regardless_of_case(file: Path) -> None:
    written(file, f"[DEFAULT]\ntoken = d\n[{SERVER.upper()}]\ntoken = a=b%c#;\n[[::1]:9443]\ntoken = six\n")
    assert parse(URL).credentials().token == "a=b%c#;"
    assert parse("https://[0:0::1]:9443").credentials().token == "six"
    assert parse("https://orders.example").credentials() == Credentials(), "nothing applies to every host"


def test_the_environment_can_name_another_credentials_file(
    file: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert credentials.credentials_file() == file
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "other"))
    assert parse(URL).credentials() == Credentials()
    written(home / "other/inorder/credentials", f"[{SERVER}]\ntoken = xdg\n")
    assert parse(URL).credentials().token == "xdg"
    monkeypatch.setenv("INORDER_CREDENTIALS", str(written(home / "named", f"[{SERVER}]\ntoken = named\n")))
    assert parse(URL).credentials().token == "named"
    monkeypatch.setenv("INORDER_CREDENTIALS", "")
    assert parse(URL).credentials() == Credentials()
    with pytest.raises(CallerError, match="no place for credentials: set INORDER_CREDENTIALS"):
        keep(SERVER, Credentials("t"))


def test_without_a_home_there_is_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "home", nowhere)
    assert credentials.credentials_file() is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o610])
def test_a_file_that_others_can_use_is_refused_with_the_remedy(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(CallerError, match=f"must not be accessible to other users: run chmod 600 {file}") as refused:
        parse(URL).credentials()
    assert refused.value.reason == 2012


def test_a_file_of_another_user_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    if file.stat().st_uid == 0:  # root may write files for other users
        assert parse(URL).credentials().token == IN_FILE
        os.chown(file, 54_321, -1)
    with pytest.raises(CallerError, match="must belong to the user who reads it"):
        parse(URL).credentials()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"token = {SECRET}\n", "must have sections"),
        (f"[{SERVER}]\n{SECRET}\n", "must have sections"),
        (f"[{SERVER}]\ntoken = {SECRET}\ntoken = {SECRET}\n", "must have sections"),
        (f"[{SERVER}]\ntoken = a\n[{SERVER}]\ntoken = {SECRET}\n", "must have sections"),
        (f"[{SERVER}]\n{SECRET}==\n", r"must have only token, certificate, key, ca in \[orders.example:9443\]"),
        (
            f"[{SERVER}]\ntoken = {SECRET} more\n",
            r"token of \[orders.example:9443\] in .* must be 1 to 4,096 printable",
        ),
        (f"[{SERVER}]\ntoken =\n", "must be 1 to 4,096 printable"),
        (f"[{SERVER}]\nkey = k.pem\n", "must be left out unless certificate of .* is given"),
    ],
)
def test_a_file_that_is_not_valid_is_refused_without_its_secrets(file: Path, text: str, words: str) -> None:
    written(file, text)
    with pytest.raises(CallerError, match=words) as refused:
        parse(URL).credentials()
    assert_hidden(refused.value)


def assert_hidden(error: CallerError) -> None:
    shown: list[Any] = [error, error.data, error.__cause__]
    assert error.__suppress_context__ or error.__context__ is None
    assert SECRET not in "".join(map(repr, shown)) + str(error)


def test_a_file_that_cannot_be_read_is_refused(file: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_bytes(b"\xff")
    with pytest.raises(CallerError, match=r"must have sections .* in UTF-8"):
        parse(URL).credentials()
    monkeypatch.setenv("INORDER_CREDENTIALS", str(home / "none"))
    with pytest.raises(CallerError, match="none does not exist, and INORDER_CREDENTIALS names it"):
        parse(URL).credentials()
    monkeypatch.setenv("INORDER_CREDENTIALS", str(home))
    with pytest.raises(CallerError, match=r"cannot be read .*: set INORDER_CREDENTIALS to another file"):
        parse(URL).credentials()


@pytest.mark.parametrize("token", ["", "two words", "line\nbreak", "ü", 7, b"t", "x" * 4097])
def test_a_token_must_fit_into_a_header(token: Any) -> None:
    with pytest.raises(ArgumentError, match=r"token must be 1 to 4,096 printable ASCII characters") as refused:
        parse(URL, {"token": token})
    assert refused.value.data["value"] == "(not shown)"


def test_variables_are_named_in_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INORDER_KEY", "k.pem")
    with pytest.raises(ArgumentError, match="INORDER_KEY must be left out unless INORDER_CERTIFICATE is given"):
        parse(URL).credentials()
    monkeypatch.setenv("INORDER_TOKEN", f"{SECRET} {SECRET}")
    with pytest.raises(ArgumentError, match="INORDER_TOKEN must be") as refused:
        parse(URL).credentials()
    assert_hidden(refused.value)
    with pytest.raises(ArgumentError, match="ca must be the path of a file in PEM, not 7"):
        parse(URL, {"ca": 7})


def test_a_token_is_never_shown_pickled_or_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INORDER_TOKEN", SECRET)
    for address in (parse(URL, {"token": SECRET}), parse(URL)):
        found = address.credentials()
        assert found.token == SECRET
        shown = [address, found, address.given, [address], {"a": address}]
        assert SECRET not in "".join(f"{one!r} {one!s}" for one in shown)
        assert address == parse(URL)
        for one in (address, found):
            for carry in (pickle.dumps, copy.deepcopy, copy.copy):
                with pytest.raises(TypeError, match="cannot be pickled"):
                    carry(one)


def test_the_file_is_written_for_its_owner_alone(home: Path) -> None:
    path = home / ".config/inorder/credentials"
    assert not forget(SERVER)
    assert keep(SERVER, Credentials("first", ca=Path("/ca.pem"))) == path
    keep("other:1", Credentials(None, Path("/c.pem"), Path("/k.pem")))
    keep(SERVER, Credentials("second%"))
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert from_file(SERVER) == Credentials("second%")
    assert from_file("other:1") == Credentials(None, Path("/c.pem"), Path("/k.pem"))
    assert forget(SERVER)
    assert not forget(SERVER)
    assert from_file(SERVER) == Credentials()
    assert [one.name for one in path.parent.iterdir()] == ["credentials"]


def test_a_symbolic_link_to_the_file_is_kept(home: Path) -> None:
    real = written(home / "real", "")
    path = home / ".config/inorder/credentials"
    path.parent.mkdir(parents=True)
    path.symlink_to(real)
    assert keep(SERVER, Credentials("t")) == real
    assert path.is_symlink()
    assert SERVER in real.read_text(encoding="utf-8")


def test_a_failed_write_changes_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        keep(SERVER, Credentials("new"))
    assert [one.name for one in file.parent.iterdir()] == ["credentials"]
    assert from_file(SERVER).token == IN_FILE
