"""The URL of a store elsewhere: the calls that accept it, its credentials, and the connection to its server."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.certificates import Signed, Signer
from tests.stores.remote.conftest import Reached, Tried

import inorder
from inorder import aio
from inorder.errors import ArgumentError, CallerError, OptionsError, StoreError
from inorder.formats.loading import load_folder
from inorder.mq.channels.sides import open_receiver
from inorder.spark.opening import open_store
from inorder.spark.options import source_options
from inorder.stores.open import OverNetwork, locate
from inorder.stores.remote.address import connected, parse, ssl_context
from inorder.stores.remote.credentials import Credentials, keep
from inorder.support import sockets

SECRET = "nobody-may-see-this"
LIMIT_SECONDS = 60.0


@pytest.mark.parametrize(
    ("given", "url", "host", "port"),
    [
        ("https://orders.example", "https://orders.example:443", "orders.example", 443),
        ("HTTPS://Orders.Example:9443/", "https://orders.example:9443", "orders.example", 9443),
        ("https://192.0.2.1:1", "https://192.0.2.1:1", "192.0.2.1", 1),
        ("https://[2001:DB8:0:0::1]:65535", "https://[2001:db8::1]:65535", "2001:db8::1", 65_535),
        ("http://localhost", "http://localhost:80", "localhost", 80),
        ("http://127.8.9.1:9443/", "http://127.8.9.1:9443", "127.8.9.1", 9443),
        ("http://[::1]:9443", "http://[::1]:9443", "::1", 9443),
    ],
)
def test_a_url_names_a_host_and_a_port(given: str, url: str, host: str, port: int) -> None:
    found = parse(given)
    assert (str(found), repr(found), found.host, found.port) == (url, f"RemoteAddress({url!r})", host, port)
    assert found.is_secure == url.startswith("https")
    assert f"{'https' if found.is_secure else 'http'}://{found.server}" == url


@pytest.mark.parametrize(
    "given",
    [
        f"https://me:{SECRET}@host", f"https://{SECRET}@host:9443", f"https://host:9443/?token={SECRET}",
        f"https://host:9443/#{SECRET}", f"https://host/{SECRET}", f"https://host:{SECRET}", f"https://{SECRET} /",
        f"https:/{SECRET}", "https://", "https://host:", "https://host:0", "https://host:65536", "https://host:9443//",
        "https://host\n", "https://-host", "https://höst", "https://host.", "https://::1", "https://[::1",
        "https://[1.2.3.4]", "https://[::1%eth0]",
    ],
)  # fmt: skip
def test_an_invalid_url_is_refused_and_its_secret_is_not_shown(given: str) -> None:
    with pytest.raises(ArgumentError, match="store must be a URL like https://host:9443, with") as refused:
        parse(given)
    assert SECRET not in f"{refused.value!r} {refused.value.data}"
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("host", ["orders.example", "192.0.2.1", "[2001:db8::1]", "0.0.0.0", "localhost.example"])
def test_without_tls_only_loopback_hosts_are_accepted(host: str) -> None:
    with pytest.raises(ArgumentError, match="http:// is only for localhost and the loopback addresses"):
        parse(f"http://{host}:9443")


def test_files_of_tls_are_refused_without_tls() -> None:
    for name in ("ca", "certificate"):
        with pytest.raises(ArgumentError, match=f"{name} must be left out for http://"):
            parse("http://localhost:9443", {name: "x.pem"})
    assert ssl_context(parse("http://localhost"), Credentials(ca=Path("/none"))) is None


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    return Signer(tmp_path, "authority")


@contextmanager
def serving(signed: Signed | None = None, client_ca: Path | None = None) -> Iterator[int]:
    """Answers the first connection with the subject of the client's certificate, or with a dash."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        one, _ = listener.accept()
        with one:
            if signed is None:
                one.sendall(b"-")
                return
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(signed.certificate, signed.key)
            if client_ca is not None:
                context.load_verify_locations(client_ca)
                context.verify_mode = ssl.CERT_REQUIRED
            try:
                with context.wrap_socket(one, server_side=True) as secure:
                    subject = (secure.getpeercert() or {}).get("subject", ((("", "-"),),))
                    secure.sendall(str(subject[0][0][1]).encode())
            except OSError:  # the client refused the certificate
                pass

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        thread.join()
        listener.close()


def answer_of(url: str, **given: object) -> str:
    address = parse(url, given)
    with closing(connected(address, address.credentials(), LIMIT_SECONDS)) as one:
        assert one.gettimeout() is None
        return one.recv(100).decode()


def test_a_connection_without_tls_has_options_that_detect_a_dead_peer() -> None:
    with serving() as port:
        address = parse(f"http://localhost:{port}")
        with closing(connected(address, Credentials(), LIMIT_SECONDS)) as one:
            assert one.recv(1) == b"-"
            level = socket.IPPROTO_TCP
            assert one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert one.getsockopt(level, socket.TCP_NODELAY)
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                idle, every, probes, unacknowledged = (
                    one.getsockopt(level, getattr(socket, name))
                    for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")
                )
                assert max(idle + every * probes, unacknowledged / 1000) <= 30
    assert sockets.PROBE_AFTER_SECONDS < 30


def test_a_private_authority_is_trusted_only_if_ca_names_it(signer: Signer, monkeypatch: pytest.MonkeyPatch) -> None:
    server = signer.sign("server", "/CN=x", use="serverAuth", hosts="DNS:localhost,IP:127.0.0.1")
    for host in ("localhost", "127.0.0.1"):
        with serving(server) as port:
            assert answer_of(f"https://{host}:{port}", ca=signer.certificate) == "-"
    with serving(server) as port, pytest.raises(StoreError, match=r"is not trusted \(.*\)\. Give the .* as ca=, in"):
        answer_of(f"https://localhost:{port}", token=SECRET)
    monkeypatch.setenv("INORDER_CA", str(signer.certificate))
    with serving(server) as port:
        assert answer_of(f"https://localhost:{port}") == "-"


def test_a_client_certificate_is_sent_to_the_server(signer: Signer) -> None:
    server = signer.sign("server", "/CN=x", use="serverAuth", hosts="DNS:localhost")
    client = signer.sign("client", "/CN=shop")
    both = client.certificate.with_name("both.pem")
    both.write_bytes(client.certificate.read_bytes() + client.key.read_bytes())
    for given in ({"certificate": client.certificate, "key": client.key}, {"certificate": both}):
        with serving(server, client_ca=signer.certificate) as port:
            assert answer_of(f"https://localhost:{port}", ca=signer.certificate, **given) == "shop"


def test_the_certificate_must_be_for_a_server_of_this_host_and_be_valid_now(
    signer: Signer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    of_another = signer.sign("another", "/CN=localhost", use="serverAuth", hosts="DNS:other.example,IP:192.0.2.1")
    expired = signer.sign("expired", "/CN=x", use="serverAuth", hosts="DNS:localhost,IP:127.0.0.1", is_expired=True)
    of_a_client = signer.sign("client", "/CN=x", hosts="DNS:localhost")
    for signed, host, words in (
        (of_another, "localhost", "is not for localhost .* Use a name that the certificate has"),
        (of_another, "127.0.0.1", "is not for 127.0.0.1"),
        (expired, "localhost", "is not valid now .* Renew it there, or check this machine's clock"),
        (of_a_client, "localhost", "is not trusted"),
    ):
        with serving(signed) as port, pytest.raises(StoreError, match=words) as refused:
            answer_of(f"https://{host}:{port}", token=SECRET, ca=signer.certificate)
        assert refused.value.data == {"path": f"https://{host}:{port}", "host": host, "port": port}
        assert SECRET not in f"{refused.value!r} {refused.value.__cause__!r} {caplog.text}"


def test_a_server_that_cannot_be_reached_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(StoreError, match=r"cannot be reached: nothing listens there\. Start inorder serve on it"):
        answer_of(f"http://127.0.0.1:{port}")
    with serving() as port, pytest.raises(StoreError, match=r"TLS failed \(.*\)\. Check that this port is that of"):
        answer_of(f"https://localhost:{port}")

    def unknown(*given: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(StoreError, match=r"orders\.example is not a known host"):
        answer_of("https://orders.example")


def test_a_connection_to_a_server_that_does_not_answer_times_out() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        address = parse(f"https://127.0.0.1:{listener.getsockname()[1]}")
        with pytest.raises(StoreError, match="it did not answer in time"):
            connected(address, Credentials(), 0.05)


def test_no_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with serving() as port:
        assert answer_of(f"http://localhost:{port}") == "-"


def test_files_in_pem_must_be_usable(signer: Signer, tmp_path: Path) -> None:
    address, empty = parse("https://localhost"), tmp_path / "empty.pem"
    empty.touch()
    for path in (empty, tmp_path / "none.pem"):
        with pytest.raises(CallerError, match=f"ca {path} must be a file with certificates of authorities") as refused:
            ssl_context(address, Credentials(ca=path))
        assert refused.value.reason == 2012
        with pytest.raises(CallerError, match=f"certificate {path} and key {signer.key} must be a certificate and its"):
            ssl_context(address, Credentials(None, path, signer.key))
    context = ssl_context(address, Credentials())
    assert context is not None
    assert (context.minimum_version, context.check_hostname) == (ssl.TLSVersion.TLSv1_2, True)
    assert context.verify_mode == ssl.CERT_REQUIRED


URL, SERVER = "https://orders.example:9443", "orders.example:9443"


def test_an_https_url_locates_a_store_over_the_network() -> None:
    found = locate("HTTPS://Orders.Example:9443/", credentials={"token": SECRET})
    assert isinstance(found, OverNetwork)
    assert (str(found), found.absolute, str(found.given), found.secret) == (URL, URL, URL, "")
    assert (repr(found), found.default_name) == (f"OverNetwork('{URL}')", "INORDER")
    assert (found.path, found.resolved, found.is_in_memory) == (None, None, False)
    assert found.is_there("test")
    assert found.is_one_with(locate(URL))
    assert not found.is_one_with(locate("https://orders.example"))
    assert not found.is_one_with(locate("orders.db"))
    with pytest.raises(ArgumentError, match="store must be a URL like https://host:9443"):
        locate(Path("https://orders.example"))


def test_credentials_are_taken_from_the_arguments_or_from_the_environment(
    tried: Tried, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: Any = {"token": SECRET, "ca": "ca.pem", "certificate": "c.pem", "key": "k.pem"}
    wanted = URL, Credentials(SECRET, Path("c.pem"), Path("k.pem"), Path("ca.pem"))
    with pytest.raises(Reached):
        inorder.connect(URL, **given)
    assert tried.pop() == wanted

    async def connected() -> None:
        await aio.connect(URL, **given)

    with pytest.raises(Reached):
        asyncio.run(connected())
    assert tried == [wanted] * len(tried)
    tried.clear()
    monkeypatch.setenv("INORDER_TOKEN", SECRET)
    for call in (inorder.connect, open_store, lambda url: load_folder(url, "Q", ".", "whole")):
        with pytest.raises(Reached):
            call(URL)
    assert ({found.token for _, found in tried}, len(tried)) == ({SECRET}, 3)


def test_a_host_named_by_a_definition_gets_only_the_credentials_in_the_file(
    tried: Tried, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INORDER_TOKEN", SECRET)
    with pytest.raises(Reached):
        open_receiver(URL)
    keep(SERVER, Credentials("of-file"))
    with pytest.raises(Reached):
        open_receiver(URL)
    assert [found.token for _, found in tried] == [None, "of-file"]


@pytest.mark.parametrize("name", ["token", "ca", "certificate", "key"])
def test_credentials_are_refused_for_other_stores(name: str, tmp_path: Path) -> None:
    words = f"{name} must be left out unless the store is a URL like https://host:9443"
    with inorder.connect() as qm:
        for kind in (tmp_path / "orders.db", ":memory:", "postgresql://host/a", qm._store):
            with pytest.raises(ArgumentError, match=words) as refused:
                inorder.connect(kind, **{name: SECRET})  # type: ignore[arg-type]
            assert SECRET not in f"{refused.value!r} {refused.value.data}"
    with pytest.raises(ArgumentError, match=words):
        aio.connect(**{name: SECRET})  # type: ignore[arg-type]


def test_an_upgrade_over_the_network_is_refused() -> None:
    with pytest.raises(CallerError, match=f"the store of {URL} is upgraded on the machine that has it"):
        inorder.upgrade(URL)


def test_spark_accepts_the_url_and_refuses_a_token() -> None:
    assert source_options({"path": f"{URL}/", "queue": "Q"}, "batch read").url == URL
    for given in ({"token": SECRET}, {"Token": SECRET}):
        with pytest.raises(OptionsError, match="in the credentials file") as refused:
            source_options({"url": URL, "queue": "Q", **given}, "batch read")
        assert SECRET not in f"{refused.value!r} {refused.value.data}"
    with pytest.raises(ArgumentError, match="store must be a URL") as wrong:
        source_options({"url": f"https://me:{SECRET}@host", "queue": "Q"}, "batch read")
    assert SECRET not in f"{wrong.value!r} {wrong.value.data}"


def test_a_url_is_parsed_without_importing_the_network_libraries() -> None:
    text = f"import sys; from inorder.stores.open import locate; locate({URL!r}); print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True)
    assert {"inorder.stores.remote.address", "websockets", "msgspec"} & {*ended.stdout.split()} == {
        "inorder.stores.remote.address"
    }
