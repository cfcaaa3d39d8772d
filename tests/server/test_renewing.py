"""TLS files that change while a server runs: new connections use them, and revoked clients are disconnected."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import ssl
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from tests.helpers.certificates import Signed, Signer
from tests.helpers.support import Call, until
from tests.server.conftest import Running, Served, Start, add
from tests.server.test_addresses import PAST, tls_of
from tests.server.test_users import LOGIN
from tests.tiers import gate, nightly

import inorder
from inorder.errors import CallerError
from inorder.server import certificates, renewing, revocation
from inorder.server.logs import LOGGER
from inorder.server.renewing import CertifiedConnection, Renewed, Tls
from inorder.server.revocation import Mark


class Made:
    """TLS contexts made from a file, and the number of tries; a file that says `bad` gives none."""

    def __init__(self, file: Path) -> None:
        self.file, self.contexts = file, list[ssl.SSLContext]()
        self.tries = 0
        file.write_text("1")
        self.renewed = Renewed([file], self._make)

    def _make(self) -> Tls:
        self.tries += 1
        if self.file.read_text() == "bad":
            raise CallerError("the file is bad")
        self.contexts.append(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        return Tls(self.contexts[-1])

    def used(self) -> int:
        """The index of the context that a new connection uses."""
        made = self.renewed.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_side=True)
        return self.contexts.index(made.context)

    def becomes(self, text: str) -> None:
        other = self.file.with_suffix(".new")
        other.write_text(text)
        other.replace(self.file)


def test_a_new_connection_uses_the_current_files(tmp_path: Path) -> None:
    one = Made(tmp_path / "file")
    assert [one.used(), one.used(), one.tries] == [0, 0, 1]
    one.becomes("2")
    assert [one.used(), one.used(), one.tries] == [1, 1, 2]
    one.file.write_text("longer")
    assert one.used() == 2


def test_unusable_files_leave_the_previous_ones_in_use(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    one = Made(tmp_path / "file")
    one.becomes("bad")
    assert [one.used(), one.used(), one.tries] == [0, 0, 2], "it is tried once for each state of the files"
    assert [record.name for record in caplog.records] == [LOGGER]
    assert "the old ones stay in use: the file is bad" in caplog.text
    one.file.unlink()
    assert one.used() == 0
    assert caplog.text.count("stay in use") == 2
    one.becomes("3")
    assert one.used() == 1


def test_unusable_files_at_the_start_are_an_error(tmp_path: Path) -> None:
    def make() -> Tls:
        raise CallerError("the file is bad")

    with pytest.raises(CallerError):
        Renewed([tmp_path / "file"], make)


class Connection:
    """A connection as asyncio has it: the number and expiry of its client certificate, and the signers at that time."""

    def __init__(self, number: int, *, ends: str = "Jan  1 00:00:00 2100 GMT", signers: str = "A") -> None:
        self._number, self._ends, self._signers = number, ends, signers

    @property
    def context(self) -> Connection:
        return self

    def get_ca_certs(self, *, binary_form: bool) -> list[bytes]:
        assert binary_form
        return [one.encode() for one in self._signers]

    def getpeercert(self, *, binary_form: bool = False) -> bytes | dict[str, str]:
        return b"%d" % self._number if binary_form else {"notAfter": self._ends}


class Looked:
    """Checks connections; the file names the signers, then the numbers of revoked certificates."""

    def __init__(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(revocation, "mark_of", lambda data: Mark((), int(data)))
        monkeypatch.setattr(renewing, "EVERY_SECONDS", 0.0)
        self.file, self.cut, self.looks = file, list[int](), asyncio.Event()
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        file.write_text("A")
        self._renewed = Renewed([file], self._make)

    def _make(self) -> Tls:
        self.looks.set()
        signers, *revoked = self.file.read_text().split()
        numbers = frozenset(Mark((), int(one)) for one in revoked)
        return Tls(self._context, frozenset(one.encode() for one in signers), numbers)

    def shown(self, number: int, **more: str) -> CertifiedConnection:
        connection: Any = Connection(number, **more)
        return self._renewed.shown(connection, lambda: self.cut.append(number))

    async def becomes(self, text: str) -> None:
        """Changes the file. Returns when the check has run by itself."""
        self.looks.clear()
        self.file.write_text(text)
        await self.looks.wait()


async def test_connections_of_revoked_certificates_are_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = Looked(tmp_path / "file", monkeypatch)
    one, two, gone = map(looked.shown, (1, 2, 3))
    gone.close()
    assert one.counts()
    await looked.becomes("A 1 3")
    assert looked.cut[0] == 1
    assert set(looked.cut) == {1}
    assert (one.counts(), two.counts()) == (False, True)
    looked.file.write_text("A 1 2 3")
    assert not two.counts(), "who is asked looks"
    assert 2 in looked.cut
    one.close()
    two.close()


async def test_connections_are_cut_off_if_one_of_their_signers_was_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not known which of the signers signed a certificate, so clients with valid ones must reconnect."""
    looked = Looked(tmp_path / "file", monkeypatch)
    early = looked.shown(1)
    await looked.becomes("AB")
    late = looked.shown(2, signers="AB")
    assert (early.counts(), late.counts()) == (True, True)
    await looked.becomes("BC 7")
    assert set(looked.cut) == {1, 2}
    looked.cut.clear()
    early.close()
    late.close()
    again = looked.shown(3, signers="BC")
    await looked.becomes("CB")
    assert again.counts()
    in_between = looked.shown(4, signers="ABC")  # its handshake began before the files changed
    assert not in_between.counts()
    again.close()
    in_between.close()
    assert 3 not in looked.cut


async def test_a_connection_whose_certificate_expires_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file has to change."""
    now = [ssl.cert_time_to_seconds("Nov 24 04:00:00 2026 GMT") - 0.5]
    monkeypatch.setattr(renewing, "time", SimpleNamespace(time=lambda: now[0]))
    looked = Looked(tmp_path / "file", monkeypatch)
    short = looked.shown(1, ends="Nov 24 04:00:00 2026 GMT")
    long = looked.shown(2, ends="Nov 24 04:00:01 2026 GMT")
    assert (short.counts(), long.counts()) == (True, True)
    now[0] += 0.5
    while not looked.cut:
        await asyncio.sleep(0)
    assert set(looked.cut) == {1}
    assert (short.counts(), long.counts()) == (False, True)
    short.close()
    long.close()


def _is_let_in(running: Running, signed: Signed) -> bool:
    with running.client(auth=None, verify=tls_of(signed)) as client:
        try:
            return client.get(LOGIN).status_code == 200
        except httpx.TransportError:
            return False


def _port_of(answer: httpx.Response) -> int:
    """The client's port of the connection on which a good answer arrived."""
    assert answer.status_code == 200
    port: int = answer.extensions["network_stream"].get_extra_info("client_addr")[1]
    return port


def _replaced(path: Path, by: Path) -> None:
    shutil.copy(by, path.with_suffix(".new"))
    path.with_suffix(".new").replace(path)


@pytest.mark.parametrize("workers", [pytest.param("1", marks=gate), pytest.param("2", marks=nightly)])
def test_a_new_list_of_revoked_certificates_closes_connections(
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
    with (
        running.client(auth=None, verify=tls_of(stolen)) as theirs,
        running.client(auth=None, verify=tls_of(shop)) as innocent,
    ):
        before = [_port_of(client.get(LOGIN)) for client in (theirs, innocent)]
        assert [_port_of(client.get(LOGIN)) for client in (theirs, innocent)] == before, "connections stay open"
        _replaced(lists, signer.revoke(stolen))
        with pytest.raises(httpx.TransportError):
            theirs.get(LOGIN)
        assert _port_of(innocent.get(LOGIN)) == before[1], "a connection with another certificate stays open"
    assert [_is_let_in(running, one) for one in (shop, stolen, late) * 3] == [True, False, True] * 3
    for bad in (signer.revoke(late, between=PAST).read_text(), "no list", ""):
        lists.write_text(bad)
        assert [_is_let_in(running, one) for one in (shop, stolen, late) * 3] == [True, False, True] * 3
    lists.unlink()
    assert [_is_let_in(running, one) for one in (shop, stolen, late)] == [True, False, True]
    _replaced(lists, signer.revoke())  # it lists all that were revoked so far
    assert [_is_let_in(running, one) for one in (shop, stolen, late) * 3] == [True, False, False] * 3
    log = running.log.read_text()
    assert "has expired on 2024-02-01" in log
    assert "has no revocation list" in log
    assert running.stop() == 0


class Client:
    """A program with a client certificate that reads the stream of Q1's messages and waits for one of another queue."""

    def __init__(self, served: Served, running: Running, signed: Signed, queue: str) -> None:
        self._running, self._signed, self._queue = running, signed, queue
        with inorder.connect(served.store) as qm:
            qm.create_queue(queue)
        self._listens = threading.Event()
        self.stream, self.wait = Call(self._stream), Call(self._wait)
        assert self._listens.wait(60), "the stream has not begun"
        with inorder.connect(served.store) as qm:
            until(lambda: any(it.queue == queue for c in qm.inspect.connections() for it in c.opened), "the get waits")

    def _client(self) -> httpx.Client:
        return self._running.client(auth=None, verify=tls_of(self._signed))

    def _stream(self) -> str:
        """The text of the stream until its end."""
        said = ""
        with self._client() as client, client.stream("GET", "/inorder/v1/queues/Q1/events") as answer:
            try:
                for piece in answer.iter_text():
                    self._listens.set()
                    said += piece
            except httpx.TransportError as error:
                return f"{said}cut off: {type(error).__name__}"
        return said

    def _wait(self) -> int:
        """The status of a get that waits, or 0 if its connection was cut off."""
        with self._client() as client:
            try:
                path = f"/ibmmq/rest/v3/messaging/qmgr/QM1/queue/{self._queue}/message"
                return client.delete(path, params={"wait": 3_600_000}).status_code
            except httpx.TransportError:
                return 0


@nightly
def test_a_new_revocation_list_ends_streams_and_waits_of_the_revoked_clients(
    start: Start, served: Served, signer: Signer, tmp_path: Path
) -> None:
    for name in ("shop", "stolen"):
        add(served, name, password=None, roles=["application"], queues={"*": ["get", "browse"]},
            subjects=[f"CN={name}"])  # fmt: skip
    shop, stolen = (signer.sign(name, f"/CN={name}") for name in ("shop", "stolen"))
    lists = tmp_path / "lists.pem"
    _replaced(lists, signer.revoke())
    given = ("--client-ca", str(signer.certificate), "--client-crl", str(lists), "--workers", "2")
    running = start("--self-signed", *given)
    innocent, theirs = Client(served, running, shop, "FOR.SHOP"), Client(served, running, stolen, "FOR.STOLEN")
    _replaced(lists, signer.revoke(stolen))
    with inorder.connect(served.store) as qm:
        qm.put("FOR.STOLEN", b"x", format="MQSTR")  # before a worker checks the list by itself
        assert theirs.wait.result() == 0
        assert "cut off" in theirs.stream.result(), "nothing is said on it: a worker looks by itself"
        until(lambda: qm.depth("FOR.STOLEN") == 1, "what was got for who is out is back")
        qm.put("FOR.SHOP", b"x", format="MQSTR")
        assert innocent.wait.result() == 200
    assert running.stop() == 0
    assert "cut off" not in innocent.stream.result()
    assert "Traceback" not in running.log.read_text()


@nightly
def test_a_worker_that_starts_with_unusable_files_is_restarted_until_they_are_usable(
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
    until(lambda: "the files for TLS cannot be used" in running.log.read_text(), "a new worker has tried to begin")
    _replaced(lists, signer.revoke())
    until(lambda: has_answered(but=victim), "a new worker answers")
    assert "Traceback" not in running.log.read_text()
    assert running.stop() == 0


@nightly
def test_a_renewed_certificate_is_used_for_new_connections(
    start: Start, served: Served, signer: Signer, tmp_path: Path
) -> None:
    first, second = (signer.sign(name, f"/CN={name}", use="serverAuth") for name in ("first", "second"))
    certificate, key = tmp_path / "server.pem", tmp_path / "server.key"
    _replaced(certificate, first.certificate)
    _replaced(key, first.key)
    running = start("--certificate", str(certificate), "--key", str(key))
    assert running.record["fingerprint"] == certificates.fingerprint(certificate)

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
