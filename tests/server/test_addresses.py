"""Real servers on other addresses, with TLS, users and client certificates; their output contains no secret."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from tests.helpers.certificates import Signed, Signer
from tests.server.conftest import CSRF, PASSWORD, TEXT, Served, Start, add
from tests.server.test_messaging import V1, V3, number_of
from tests.server.test_users import LOGIN, MQSC, command
from tests.tiers import gate, nightly

import inorder
from inorder.errors import CallerError
from inorder.server import revocation
from inorder.server.subjects import subject_of

NAME = "queues.example"
OUTSIDE = ("--host", "0.0.0.0", "--name", NAME, "--self-signed")


def tls_of(signed: Signed | None = None) -> ssl.SSLContext:
    """The TLS settings of a client that accepts any server and can present a certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if signed is not None:
        context.load_cert_chain(signed.certificate, signed.key)
    return context


@pytest.fixture
def address() -> Iterator[str]:
    """An address of this machine that is not loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.connect(("192.0.2.1", 9))  # sends nothing, but selects a local address
        except OSError:
            pytest.skip("this machine has no address but loopback")
        yield one.getsockname()[0]


@gate
def test_an_address_beyond_localhost_serves_only_logged_in_users_over_tls(
    start: Start, served: Served, address: str
) -> None:
    add(served, "anna", roles=["admin"])
    running = start(*OUTSIDE, "--name", address)
    url = httpx.URL(running.record["url"])
    assert (url.scheme, url.host) == ("https", NAME)
    for host, called, expected in (
        (address, address, 200),
        (address, NAME, 200),
        ("127.0.0.1", "localhost", 200),
        (address, "evil.example", 421),
    ):
        base = f"https://{host}:{url.port}"
        with httpx.Client(base_url=base, verify=tls_of(), auth=("anna", PASSWORD.encode())) as client:
            assert client.get(LOGIN, headers={"Host": called}).status_code == expected, called
    with httpx.Client(base_url=f"https://127.0.0.1:{url.port}", verify=tls_of()) as client:
        assert client.get(LOGIN).status_code == 401
        assert client.get("/health").status_code == 200
    with httpx.Client(base_url=f"http://127.0.0.1:{url.port}") as client, pytest.raises(httpx.TransportError):
        client.get("/health")


@nightly
def test_the_self_signed_certificate_has_all_names_of_the_server(start: Start, served: Served) -> None:
    add(served, "anna")
    port = httpx.URL(start(*OUTSIDE).record["url"]).port
    pem = ssl.get_server_certificate(("127.0.0.1", port or 0))
    context = ssl.create_default_context(cadata=pem)
    with httpx.Client(verify=context) as client:
        for host in ("localhost", "127.0.0.1"):
            assert client.get(f"https://{host}:{port}/health").status_code == 200
        answer = client.get(
            f"https://127.0.0.1:{port}/health", headers={"Host": NAME}, extensions={"sni_hostname": NAME}
        )
        assert answer.status_code == 200


@pytest.mark.parametrize("workers", [pytest.param("1", marks=gate), pytest.param("2", marks=nightly)])
def test_a_client_certificate_authenticates_its_user(
    start: Start, served: Served, signer: Signer, workers: str
) -> None:
    shop = signer.sign("shop", "/C=DE/O=Example, Inc./CN=shop")
    unknown = signer.sign("unknown", "/CN=unknown")
    add(served, "shop", password=None, roles=["application"], queues={"Q1": ["put"]},
        subjects=["CN=shop,O=Example\\, Inc.,C=DE"])  # fmt: skip
    running = start("--self-signed", "--client-ca", str(signer.certificate), "--workers", workers)
    with running.client(auth=None, verify=tls_of(shop)) as client:
        for _ in range(2):  # on one connection
            assert client.get(LOGIN).json()["user"][0]["name"] == "shop"
        assert client.post(f"{V1}/message", content="x", headers=TEXT).status_code == 201
        assert number_of(client.delete(f"{V1}/message")) == (403, "MQWB0103E", 2035)
        assert client.get(LOGIN, auth=("anybody", running.token)).json()["user"][0]["name"] == "launch-token"
        assert client.get(LOGIN, auth=("anybody", "wrong")).status_code == 401, "what is in the header decides"
    for nobody in (unknown, None):
        with running.client(auth=None, verify=tls_of(nobody)) as client:
            assert number_of(client.get(LOGIN)) == (401, "MQWB0104E", 0)
    with running.client(auth=None, verify=tls_of(shop)) as client:
        assert client.get(LOGIN).status_code == 200
        with inorder.connect(served.store) as qm:
            qm.accounts.alter_user("shop", enabled=False)
        assert client.get(LOGIN).status_code == 401, "on a connection that was there before, too"


@nightly
def test_an_invalid_client_certificate_is_refused(start: Start, served: Served, signer: Signer, tmp_path: Path) -> None:
    add(served, "shop", password=None, subjects=["CN=shop"])
    (tmp_path / "other").mkdir()
    running = start("--self-signed", "--client-ca", str(signer.certificate))
    for bad in (
        Signer(tmp_path / "other", "another authority").sign("shop", "/CN=shop"),
        signer.sign("expired", "/CN=shop", is_expired=True),
        signer.sign("server", "/CN=shop", use="serverAuth"),
    ):
        with running.client(auth=None, verify=tls_of(bad)) as client, pytest.raises(httpx.TransportError):
            client.get(LOGIN)
    with running.client(auth=None, verify=tls_of(signer.sign("good", "/CN=shop"))) as client:
        assert client.get(LOGIN).status_code == 200


PAST = ("20240101000000Z", "20240201000000Z")
TO_COME = ("20990101000000Z", "20990201000000Z")


@gate
def test_unusable_revocation_lists_are_refused_at_the_start(served: Served, signer: Signer, tmp_path: Path) -> None:
    """Otherwise the server would refuse every client with an error that does not say why."""
    (tmp_path / "other").mkdir()
    other = Signer(tmp_path / "other", "another authority")

    def check(path: Path, authorities: Path) -> None:
        revocation.check(path, authorities, datetime.now(timezone.utc))

    def told(path: Path) -> str:
        with pytest.raises(CallerError) as refused:
            check(path, signer.certificate)
        return str(refused.value)

    check(signer.revoke(), signer.certificate)
    assert "list 1 has expired on 2024-02-01 at 00:00:00 UTC" in told(signer.revoke(between=PAST))
    assert "list 1 is not valid before 2099-01-01 00:00:00 UTC" in told(signer.revoke(between=TO_COME))
    assert f"list 1 was not issued by any CA in --client-ca {signer.certificate}" in told(other.revoke())
    good, both = signer.revoke(), tmp_path / "both.crl"
    both.write_text(good.read_text() + other.revoke().read_text())
    assert "list 2 was not issued by any CA" in told(both)
    both.write_text(good.read_text()[:-60])
    assert "has no revocation lists in PEM" in told(both)
    assert "has no revocation list" in told(signer.certificate)
    assert "No such file" in told(tmp_path / "none.crl")
    authorities = tmp_path / "authorities.pem"
    authorities.write_text(signer.certificate.read_text() + other.certificate.read_text())
    both.write_text(good.read_text() + other.revoke().read_text())
    check(both, authorities)
    words = ("--self-signed", "--client-ca", str(signer.certificate), "--client-crl", str(signer.revoke(between=PAST)))
    ended = subprocess.run(
        [sys.executable, "-m", "inorder", "serve", str(served.store), "--port", "0", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, "has expired on 2024-02-01" in ended.stderr) == (2, True), ended.stderr


@gate
def test_the_entries_of_a_revocation_list_match_the_revoked_certificates(signer: Signer) -> None:
    """Serial numbers are those that openssl shows; issuers are compared regardless of case and string type."""
    numbers = [signer.sign(f"one {n}", f"/CN=one {n}") for n in range(3)]
    marks = [revocation.mark_of(der_of(one.certificate)) for one in numbers]
    for one, mark in zip(numbers, marks, strict=True):
        words = ("openssl", "x509", "-noout", "-serial", "-in", str(one.certificate))
        said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        assert mark.serial == int(said.removeprefix("serial="), 16)
        assert mark.issuer == revocation.subject_in(der_of(signer.certificate))

    def listed(*revoked: Signed) -> frozenset[revocation.Mark]:
        return revocation.check(signer.revoke(*revoked), signer.certificate, datetime.now(timezone.utc))

    assert listed() == frozenset()
    assert listed(numbers[1]) == {marks[1]}
    assert listed(numbers[2]) == {marks[1], marks[2]}
    der = der_of(numbers[0].certificate)
    printable, capitals = b"\x0c\x0dthe authority", b"\x13\x0dThe Authority"
    assert der.count(printable) == 1
    assert revocation.mark_of(der.replace(printable, capitals)) == marks[0]
    assert revocation.mark_of(der.replace(printable, b"\x0c\x0dthe authoritz")) != marks[0]


def der_of(path: Path) -> bytes:
    return ssl.PEM_cert_to_DER_cert(path.read_text())


@nightly
def test_without_a_client_ca_client_certificates_are_ignored(start: Start, served: Served, signer: Signer) -> None:
    add(served, "shop", password=None, subjects=["CN=shop"])
    running = start("--self-signed")
    with running.client(auth=None, verify=tls_of(signer.sign("shop", "/CN=shop"))) as client:
        assert number_of(client.get(LOGIN)) == (401, "MQWB0104E", 0)


@gate
@pytest.mark.parametrize(
    "subject",
    ["/CN=shop", '/C=DE/ST=Bayern/O=A, "B" <x>;/OU= lead/CN=#sh\u00f6p', "/CN=x \\\\ y+UID=u",
     "/DC=com/DC=example/UID=u/GN=A/SN=B/emailAddress=a@b/serialNumber=5/title=t/L=x/street=s/CN=a"],
)  # fmt: skip
def test_a_subject_is_written_as_openssl_writes_it(signer: Signer, subject: str) -> None:
    made = signer.sign("one", subject)
    words = ("openssl", "x509", "-noout", "-subject", "-nameopt", "RFC2253,-esc_msb,utf8", "-in", str(made.certificate))
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    decoded = ssl._ssl._test_decode_cert(str(made.certificate))  # type: ignore[attr-defined]
    assert f"subject={subject_of(decoded)}\n" == said


@gate
def test_no_secret_is_in_any_output_of_a_server(start: Start, served: Served, signer: Signer) -> None:
    """Sends secrets of each kind, right and wrong, and causes errors; then searches all output of the server."""
    add(served, "anna", roles=["admin"])
    body, wrong = "the-body-of-a-message", "a-wrong-password-of-somebody"
    with inorder.connect(served.store) as qm:
        token = qm.accounts.create_token("anna", "a program")
    shop = signer.sign("shop", "/CN=shop")
    running = start("--self-signed", "--client-ca", str(signer.certificate), "--workers", "2")
    secrets = [running.token, PASSWORD, token, token.partition(".")[2], body, wrong]
    with running.client(auth=None) as client:
        for name, password in (
            ("anna", PASSWORD),
            ("me", running.token),
            ("anna", wrong),
            (wrong, "x"),
            ("anna", token),
        ):
            client.get(LOGIN, auth=(name.encode(), password.encode()))
            client.post(LOGIN, json={"username": name, "password": password})
            client.post(LOGIN, json={"username": name, "password": password, "more": wrong})
            client.post(LOGIN, content=json.dumps({"password": password})[:-3], headers=CSRF)
            secrets += [f"{name}:{password}"] if password != "x" else []
            secrets += client.cookies.values()
        for given in (token, running.token, wrong):
            client.get(LOGIN, headers={"Authorization": f"Bearer {given}"})
            client.get(LOGIN, headers={"Authorization": f"Strange {given}"})
            client.get("/", params={"token": given})
            client.get("/nowhere", params={"token": given})
            client.get(LOGIN, params={"token": given}, headers={"Cookie": f"LtpaToken2_1={given}"})
        client.cookies.clear()
        auth = ("anna", PASSWORD.encode())
        client.post(f"{V1}/message", auth=auth, content=body, headers=TEXT)
        client.post(f"{V1}/message", auth=auth, content=body, headers=TEXT | {"ibm-mq-md-expiry": wrong})
        client.post(f"{V1}/message", auth=auth, content=body, headers={"Content-Type": wrong})
        client.delete(f"{V1}/message", auth=auth)
        client.get(f"{V3}/message", auth=auth, params={"messageId": wrong})
        client.post(MQSC, auth=auth, json=command(f"DEFINE QLOCAL(X) DESCR('{wrong}')"))
        client.post(MQSC, auth=auth, json=command(f"NONSENSE '{wrong}'"))
    with running.client(auth=None, verify=tls_of(shop)) as client:
        client.get(LOGIN)
    send_nonsense(httpx.URL(running.record["url"]), token, wrong)
    assert running.stop() == 0
    assert running.process.stdout is not None
    said = running.log.read_text() + running.process.stdout.read().decode() + json.dumps(running.record)
    assert said.count('"event": "request"') > 40, "the log has the requests"
    for secret in secrets:
        for form in forms_of(secret):
            assert form not in said, secret


def send_nonsense(url: httpx.URL, token: str, wrong: str) -> None:
    """Sends invalid HTTP, and plain text instead of TLS, both with secrets."""
    raw = b"GET / HTTP/1.1\r\nAuthorization: Bearer %b\r\nBad header %b\r\n\r\n" % (token.encode(), wrong.encode())
    with socket.create_connection((url.host, url.port or 0)) as plain, tls_of().wrap_socket(plain) as one:
        one.sendall(raw)
        assert b"400" in one.recv(100)
    with socket.create_connection((url.host, url.port or 0)) as plain:  # without TLS
        plain.sendall(raw)


def forms_of(secret: str) -> set[str]:
    """The forms in which a log might contain the secret."""
    data = secret.encode()
    encoded = {base64.b64encode(data).decode().rstrip("="), base64.urlsafe_b64encode(data).decode().rstrip("=")}
    return {
        secret, quote(secret), quote(secret, safe=""), json.dumps(secret)[1:-1], data.hex(), repr(data)[2:-1],
    } | encoded  # fmt: skip
