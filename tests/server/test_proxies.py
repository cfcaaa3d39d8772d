"""nginx and HAProxy in front of `inorder serve`, configured with the lines of `docs/how-to/elsewhere.md`."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import ssl
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from benchmarks.servers import LOOPBACK, free_port
from tests.helpers.certificates import Signer
from tests.helpers.pages import ROOT, blocks
from tests.helpers.support import until
from tests.server.conftest import Running, Start
from tests.tiers import nightly

import inorder
from inorder import QueueManager
from inorder.errors import ConnectionBroken, OutcomeUnknown, StoreError
from inorder.support.sockets import PROBE_AFTER_SECONDS, has_come

PAGE = ROOT / "docs/how-to/elsewhere.md"
SHORT = "3s"  # the proxy's own time-outs of idle connections; the page sets 7 days
WAIT_SECONDS = 600.0
KEEPALIVE, TICKS_PER_SECOND = 2, 100  # of /proc/net/tcp
pytestmark = nightly


def lines_of(language: str) -> str:
    """The page's only block in a language, a proxy's configuration. Pygments does not know HAProxy's language."""
    (found,) = [text for one, text in blocks(PAGE) if one == language]
    return found


class Places(NamedTuple):
    """The TLS files and ports that replace those of the page: one port of the server, two of the proxy.

    Attributes:
        bare: the proxy's port without the page's time-outs.
    """

    folder: Path
    certificate: Path
    key: Path
    server: int
    port: int
    bare: int


def put_in(text: str, changes: dict[str, str]) -> str:
    """Replaces parts of the page's lines. Each part must occur once."""
    for old, new in changes.items():
        assert text.count(old) == 1, f"say here what the page has in the place of {old!r}"
        text = text.replace(old, new)
    return text


def nginx(at: Places, answer: str, limit: bool) -> str:
    page = put_in(
        lines_of("nginx"),
        {
            "/etc/ssl/queues.pem": str(at.certificate),
            "/etc/ssl/queues.key": str(at.key),
            "queues.example": "localhost",
            "127.0.0.1:9443": f"{LOOPBACK}:{at.server}",
            "listen 443": f"listen {LOOPBACK}:{at.port}",
            "    location": f"    location = /answer {{ return 200 {answer}; }}\n    location",
        },
    )
    bare = re.sub(r"^ *proxy_(read|send)_timeout .*\n", "", page, flags=re.M).replace(str(at.port), str(at.bare))
    return f"""
        daemon off;
        pid {at.folder}/pid;
        {"worker_shutdown_timeout 1s;" if limit else ""}
        events {{}}
        http {{
            access_log off;
            client_body_temp_path {at.folder}/bodies;
            proxy_temp_path {at.folder}/answers;
            proxy_read_timeout {SHORT};
            proxy_send_timeout {SHORT};
            {page}
            {bare}
        }}"""


def haproxy(at: Places, answer: str, limit: bool) -> str:
    (at.folder / "both.pem").write_text(at.certificate.read_text() + at.key.read_text())
    page = put_in(
        lines_of("text"),
        {
            "/etc/ssl/queues.both.pem": f"{at.folder}/both.pem",
            "127.0.0.1:9443": f"{LOOPBACK}:{at.server}",
            "bind :443": f"bind {LOOPBACK}:{at.port}",
            "timeout client 30s": f"timeout client {SHORT}",
            "timeout server 30s": f"timeout server {SHORT}",
            "    default_backend": "    http-request return content-type text/plain"
            f" string {answer} if {{ path /answer }}\n    default_backend",
        },
    )
    bare = re.sub(r"^ *timeout tunnel .*\n", "", page, flags=re.MULTILINE)
    bare = bare.replace(f"{LOOPBACK}:{at.port}", f"{LOOPBACK}:{at.bare}")
    bare = re.sub(r"^(frontend |backend | *default_backend )", r"\1bare_", bare, flags=re.MULTILINE)
    return f"global\n    {'hard-stop-after 1s' if limit else ''}\n{page}\n{bare}"


class Kind(NamedTuple):
    """A proxy: its program and arguments, the signal that reloads it, and its whole configuration."""

    program: str
    words: Callable[[Path], list[str]]
    reloads: signal.Signals
    text: Callable[[Places, str, bool], str]


KINDS = [
    Kind("nginx", lambda file: ["-e", "stderr", "-p", str(file.parent), "-c", str(file)], signal.SIGHUP, nginx),
    Kind("haproxy", lambda file: ["-W", "-f", str(file)], signal.SIGUSR2, haproxy),
]


class RealProxy:
    """A proxy in a separate process, between clients and a server.

    Attributes:
        limit: whether the next configuration makes the old process end its connections one second after a reload.
    """

    def __init__(self, kind: Kind, program: str, at: Places, authority: Path) -> None:
        self._kind, self._program, self._at, self.authority = kind, program, at, authority
        self.limit, self._answer = False, 0
        self._file = at.folder / f"{kind.program}.conf"
        self.log = at.folder / f"{kind.program}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"https://localhost:{self._at.port}"

    @property
    def bare_url(self) -> str:
        return f"https://localhost:{self._at.bare}"

    def _configure(self) -> None:
        self._answer += 1
        self._file.write_text(self._kind.text(self._at, f"is{self._answer}", self.limit))

    def _is_configured(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log.read_text()
        with contextlib.suppress(httpx.TransportError):
            context = ssl.create_default_context(cafile=str(self.authority))
            return httpx.get(f"{self.url}/answer", verify=context).text == f"is{self._answer}"
        return False

    def start(self) -> None:
        self._configure()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, *self._kind.words(self._file)], stdout=log, stderr=log, start_new_session=True
            )
        until(self._is_configured, f"{self._kind.program} answers")

    def reload(self) -> None:
        """Reloads the configuration. Returns when a process with the new one answers."""
        assert self._process is not None
        self._configure()
        self._process.send_signal(self._kind.reloads)
        until(self._is_configured, f"{self._kind.program} has been reloaded")

    def restart(self) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(60)
        self.start()

    def kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(60)


@pytest.fixture
def server(start: Start) -> Running:
    return start()


@pytest.fixture(params=KINDS, ids=lambda kind: kind.program)
def proxy(request: pytest.FixtureRequest, server: Running, tmp_path: Path) -> Iterator[RealProxy]:
    kind: Kind = request.param
    program = shutil.which(kind.program, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"]))
    if program is None:
        pytest.skip(f"{kind.program} is not installed")
    folder = tmp_path / "proxy"
    folder.mkdir()
    signer = Signer(folder, "authority")
    pair = signer.sign("queues", "/CN=queues", use="serverAuth", hosts="DNS:localhost")
    port = httpx.URL(server.record["url"]).port
    assert port is not None
    at = Places(folder, pair.certificate, pair.key, port, free_port(), free_port())
    one = RealProxy(kind, program, at, signer.certificate)
    try:
        one.start()
        yield one
    finally:
        one.kill()


@pytest.fixture
def token(qm: QueueManager) -> str:
    rights = {"Q1": ("put", "get", "browse", "inquire")}
    qm.accounts.create_user("shop", roles=["application"], queues=rights)
    return qm.accounts.create_token("shop", "test")


@pytest.fixture
def far(proxy: RealProxy, token: str) -> Iterator[Any]:
    """A remote program whose connection goes through the proxy."""
    with inorder.connect(proxy.url, token=token, ca=proxy.authority) as one:
        yield one


def link_of(far: Any) -> Any:
    return far._store._link


def test_a_get_waits_longer_than_the_idle_timeout_of_the_proxy(
    proxy: RealProxy, token: str, far: QueueManager, qm: QueueManager
) -> None:
    link = link_of(far)
    far.put("Q1", b"1")
    assert far.get("Q1").body == b"1"
    bare = inorder.connect(proxy.bare_url, token=token, ca=proxy.authority, reconnect=0)
    with bare, ThreadPoolExecutor() as threads:
        got = threads.submit(far.get, "Q1", wait=WAIT_SECONDS)
        try:
            until(lambda: link.has_asked, "the get waits")
            with pytest.raises(OutcomeUnknown):  # its connection was cut
                bare.get("Q1", wait=WAIT_SECONDS)
        finally:
            qm.put("Q1", b"2")
        assert got.result(WAIT_SECONDS).body == b"2"
    assert link_of(far) is link
    assert not link.is_lost


def test_a_unit_of_work_continues_while_the_proxy_is_reloaded(
    proxy: RealProxy, token: str, far: QueueManager, qm: QueueManager
) -> None:
    link = link_of(far)
    far.put("Q1", b"1")
    with far.unit_of_work():
        far.put("Q1", far.get("Q1").body + b", again")
        proxy.reload()
        with inorder.connect(proxy.url, token=token, ca=proxy.authority) as other:  # through the new process
            assert list(other.browse("Q1")) == []
    assert link_of(far) is link
    assert [one.body for one in qm.browse("Q1")] == [b"1, again"]


@pytest.mark.parametrize("is_reload", [True, False], ids=["at a reload with a limit", "by a restart"])
def test_a_unit_of_work_that_the_proxy_cuts_is_backed_out_and_can_be_repeated(
    proxy: RealProxy, far: QueueManager, qm: QueueManager, is_reload: bool
) -> None:
    far.put("Q1", b"1")
    proxy.limit = True
    proxy.restart()  # old processes are limited by the configuration that they began with

    def step() -> None:
        with far.unit_of_work():
            body = far.get("Q1", wait=WAIT_SECONDS).body
            if body == b"1" and not cut:
                cut.append(True)
                (proxy.reload if is_reload else proxy.restart)()
                until(lambda: has_come(link_of(far)._socket), "the connection has been cut")
            far.put("Q1", body + b", again")

    cut: list[bool] = []
    with pytest.raises(ConnectionBroken, match="its unit of work was backed out"):
        step()
    step()
    assert cut == [True]
    assert [one.body for one in qm.browse("Q1")] == [b"1, again"]


def test_the_proxy_probes_a_silent_client(proxy: RealProxy, far: QueueManager) -> None:
    del proxy
    (_, client), (_, port) = (getattr(link_of(far)._socket, end)()[:2] for end in ("getsockname", "getpeername"))
    ends = f":{port:04X} 0100007F:{client:04X} "

    def timer() -> tuple[int, int]:
        (row,) = [one.split() for one in Path("/proc/net/tcp").read_text("ascii").splitlines() if ends in one]
        kind, ticks = row[5].split(":")
        return int(kind, 16), int(ticks, 16)

    until(lambda: timer()[0] == KEEPALIVE, "all that was sent is acknowledged, and the peer is probed", 20)
    assert timer()[1] <= PROBE_AFTER_SECONDS * TICKS_PER_SECOND


def test_the_error_says_that_the_proxy_does_not_reach_the_server(proxy: RealProxy, server: Running, token: str) -> None:
    server.stop()
    with pytest.raises(StoreError, match=r"answered 50[23]: a proxy there does not reach the server"):
        inorder.connect(proxy.url, token=token, ca=proxy.authority)
