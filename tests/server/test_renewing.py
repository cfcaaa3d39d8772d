"""TLS whose files change while a server runs: new connections are made by the files as they are."""

from __future__ import annotations

import os
import shutil
import signal
import ssl
from pathlib import Path

import httpx
import pytest
from tests.server.conftest import Running, Served, Start, add
from tests.server.test_addresses import PAST, Signed, Signer, tls_of
from tests.server.test_users import LOGIN
from tests.support import until

from inorder.errors import CallerError
from inorder.server.logs import LOGGER
from inorder.server.renewing import Renewed


class Made:
    """Contexts of a file, and how often they were made; a file that says `bad` gives none."""

    def __init__(self, file: Path) -> None:
        self.file, self.contexts = file, list[ssl.SSLContext]()
        self.tries = 0
        file.write_text("1")
        self.renewed = Renewed([file], self._make)

    def _make(self) -> ssl.SSLContext:
        self.tries += 1
        if self.file.read_text() == "bad":
            raise CallerError("the file is bad")
        self.contexts.append(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        return self.contexts[-1]

    def used(self) -> int:
        """Which of the contexts makes a connection that comes now."""
        made = self.renewed.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_side=True)
        return self.contexts.index(made.context)

    def becomes(self, text: str) -> None:
        other = self.file.with_suffix(".new")
        other.write_text(text)
        other.replace(self.file)


def test_a_connection_is_made_by_the_files_as_they_are(tmp_path: Path) -> None:
    one = Made(tmp_path / "file")
    assert [one.used(), one.used(), one.tries] == [0, 0, 1]
    one.becomes("2")
    assert [one.used(), one.used(), one.tries] == [1, 1, 2]
    one.file.write_text("longer")
    assert one.used() == 2


def test_files_that_cannot_be_used_leave_those_before(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    one = Made(tmp_path / "file")
    one.becomes("bad")
    assert [one.used(), one.used(), one.tries] == [0, 0, 2], "it is tried once for each state of the files"
    assert [record.name for record in caplog.records] == [LOGGER]
    assert "those read before stay in use: the file is bad" in caplog.text
    one.file.unlink()
    assert one.used() == 0
    assert caplog.text.count("stay in use") == 2
    one.becomes("3")
    assert one.used() == 1


def test_files_that_cannot_be_used_at_the_start_are_an_error(tmp_path: Path) -> None:
    def make() -> ssl.SSLContext:
        raise CallerError("the file is bad")

    with pytest.raises(CallerError):
        Renewed([tmp_path / "file"], make)


# --- a server


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    return Signer(tmp_path, "the authority")


def _is_let_in(running: Running, signed: Signed) -> bool:
    with running.client(auth=None, verify=tls_of(signed)) as client:
        try:
            return client.get(LOGIN).status_code == 200
        except httpx.TransportError:
            return False


def _replaced(path: Path, by: Path) -> None:
    shutil.copy(by, path.with_suffix(".new"))
    path.with_suffix(".new").replace(path)


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_new_list_of_revoked_certificates_counts_for_new_connections(
    start: Start, served: Served, signer: Signer, tmp_path: Path, workers: str
) -> None:
    for name in ("shop", "stolen", "late"):
        add(served, name, password=None, subjects=[f"CN={name}"])
    shop, stolen, late = (signer.sign(name, f"/CN={name}") for name in ("shop", "stolen", "late"))
    lists = tmp_path / "lists.pem"
    _replaced(lists, signer.revoke())
    given = ("--client-ca", str(signer.certificate), "--client-crl", str(lists), "--workers", workers)
    running = start("--self-signed", *given)
    assert [_is_let_in(running, one) for one in (shop, stolen, late) * 3] == [True] * 9
    with running.client(auth=None, verify=tls_of(stolen)) as client:
        assert client.get(LOGIN).status_code == 200
        _replaced(lists, signer.revoke(stolen))
        assert client.get(LOGIN).status_code == 200, "a connection that is there stays"
    assert [_is_let_in(running, one) for one in (shop, stolen, late) * 3] == [True, False, True] * 3
    for bad in (signer.revoke(late, between=PAST).read_text(), "no list", ""):
        lists.write_text(bad)
        assert [_is_let_in(running, one) for one in (shop, stolen, late) * 3] == [True, False, True] * 3
    lists.unlink()
    assert [_is_let_in(running, one) for one in (shop, stolen, late)] == [True, False, True]
    _replaced(lists, signer.revoke())  # with all that were revoked so far
    assert [_is_let_in(running, one) for one in (shop, stolen, late) * 3] == [True, False, False] * 3
    log = running.log.read_text()
    assert "has expired on 2024-02-01" in log
    assert "has no revocation list" in log
    assert running.stop() == 0


@pytest.mark.slow
def test_a_worker_that_begins_with_files_that_cannot_be_used_is_begun_again_until_they_can(
    start: Start, served: Served, signer: Signer, tmp_path: Path
) -> None:
    lists = tmp_path / "lists.pem"
    _replaced(lists, signer.revoke())
    given = ("--client-ca", str(signer.certificate), "--client-crl", str(lists), "--workers", "2")
    running = start("--self-signed", *given)

    def has_answered(*, but: int = 0) -> bool:
        with running.client() as client:
            assert client.get("/health").status_code == 200, "the other one serves meanwhile"
        return len(running.workers() - {but}) >= 2

    until(has_answered, "both workers answer")
    victim = max(running.workers())
    lists.write_text("no list")
    os.kill(victim, signal.SIGKILL)
    until(lambda: "the files of TLS cannot be used" in running.log.read_text(), "a new worker has tried to begin")
    _replaced(lists, signer.revoke())
    until(lambda: has_answered(but=victim), "a new worker answers")
    assert "Traceback" not in running.log.read_text()
    assert running.stop() == 0


@pytest.mark.slow
def test_a_renewed_certificate_counts_for_new_connections(
    start: Start, served: Served, signer: Signer, tmp_path: Path
) -> None:
    first, second = (signer.sign(name, f"/CN={name}", use="serverAuth") for name in ("first", "second"))
    certificate, key = tmp_path / "server.pem", tmp_path / "server.key"
    _replaced(certificate, first.certificate)
    _replaced(key, first.key)
    running = start("--certificate", str(certificate), "--key", str(key))

    def shown() -> str:
        host, port = httpx.URL(running.record["url"]).host, httpx.URL(running.record["url"]).port
        return ssl.get_server_certificate((host, port or 0))

    assert shown() == _pem(first)
    _replaced(certificate, second.certificate)
    assert shown() == _pem(first), "the key is that of the first one still"
    _replaced(key, second.key)
    assert shown() == _pem(second)
    assert running.stop() == 0


def _pem(signed: Signed) -> str:
    return ssl.DER_cert_to_PEM_cert(ssl.PEM_cert_to_DER_cert(signed.certificate.read_text()))
