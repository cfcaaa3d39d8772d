"""The server under test: the application in this process, or `inorder serve` in a separate one."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from argon2 import PasswordHasher
from starlette.types import ASGIApp
from tests.helpers.certificates import Signer
from tests.helpers.cutting import ended
from tests.helpers.support import Make
from tests.server.described import Described
from tests.tiers import ON_BOTH

import inorder
from inorder.server import Authenticator, Settings, application
from inorder.server.api.interface import document
from inorder.server.identity import Authority, Identity, ReadObject

TOKEN = "the-token-of-the-tests-0123456789"
KEY = bytes(range(32))
PORT = 9443
CSRF = {"ibm-mq-rest-csrf-token": ""}
TEXT = {"Content-Type": "text/plain;charset=utf-8"}
AS_ANYBODY = httpx.BasicAuth("mqadmin", TOKEN)
PASSWORD = "the password of the tests, \u00e4 and \u20ac"
AS_NOBODY = httpx.Auth()  # adds no credentials


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "serving(authenticator, **settings): the application that `client` asks")


Work = Callable[[httpx.AsyncClient], Awaitable[None]]


class Everybody:
    """An authenticator that gives every caller the same identity."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity

    async def _found(self, *given: object, **more: object) -> Identity | None:
        del given, more
        return self.identity

    by_password = by_token = by_link = by_subject = by_session = _found

    async def again(self, identity: Identity) -> Identity | None:
        return identity

    def now(self, identity: Identity, read: ReadObject) -> Identity | None:
        del read
        return identity


def with_role(role: str) -> Everybody:
    """An authenticator for which every caller is mqadmin, with this role only."""
    return Everybody(Identity(name="mqadmin", roles=frozenset({role})))


def somebody(name: str, *authorities: Authority, queue: str = "Q1") -> Everybody:
    """An authenticator for which every caller is this user, with these authorities on one queue only."""
    return Everybody(Identity(name=name, roles=frozenset({"application"}), queues={queue: authorities}))


class Served(NamedTuple):
    """A store with the settings of its server; `folder` holds the files of servers."""

    store: Path | str
    settings: Settings
    folder: Path

    def run(self, work: Work, authenticator: Authenticator | None = None, **changes: Any) -> None:
        """Runs `work` with a client that has the token, between startup and shutdown of the application."""

        async def inside() -> None:
            async with alive(self.app(authenticator, **changes)) as app, client_of(app) as client:
                await work(client)

        ended(inside())

    def app(self, authenticator: Authenticator | None = None, **changes: Any) -> ASGIApp:
        return application(replace(self.settings, **changes), authenticator)


@functools.cache
def hash_of(password: str) -> str:
    """A cheap hash: the server reads the cost from the hash, and the default is slow on purpose."""
    return PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(password)


def add(served: Served, name: str, *, password: str | None = PASSWORD, **given: Any) -> None:
    """Creates a user."""
    with inorder.connect(served.store) as qm:
        qm.accounts.create_user(name, password_hash=None if password is None else hash_of(password), **given)


def client_of(app: ASGIApp, kind: type[httpx.AsyncClient] = httpx.AsyncClient, **given: Any) -> httpx.AsyncClient:
    """A client with the token, which sends the CSRF header."""
    named: dict[str, Any] = {"auth": AS_ANYBODY, "headers": CSRF} | given
    return kind(transport=httpx.ASGITransport(app), base_url=f"http://localhost:{PORT}", **named)


@contextlib.asynccontextmanager
async def alive(app: ASGIApp) -> AsyncIterator[ASGIApp]:
    """Runs the application's lifespan: startup before the block, shutdown after it."""
    said: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    told: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    state: dict[str, Any] = {}
    life = asyncio.ensure_future(app({"type": "lifespan", "state": state}, told.get, said.put))  # type: ignore[arg-type]
    await told.put({"type": "lifespan.startup"})
    answer = await said.get()
    assert answer["type"] == "lifespan.startup.complete", answer
    try:
        yield app
    finally:
        await told.put({"type": "lifespan.shutdown"})
        assert (await said.get())["type"] == "lifespan.shutdown.complete"
        await life


def serving(authenticator: Authenticator | None = None, **changes: Any) -> pytest.MarkDecorator:
    """Gives the application of the fixture `client` this authenticator and these settings."""
    return pytest.mark.serving(authenticator, **changes)


def app_of(client: httpx.AsyncClient) -> Any:
    return client._transport.app  # type: ignore[attr-defined]


class Starting(httpx.AsyncClient):
    """A client whose application starts when the client is entered, and stops when it is left."""

    async def __aenter__(self) -> Starting:
        self._life = alive(app_of(self))
        await self._life.__aenter__()
        await super().__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await super().__aexit__(*error)
        await self._life.__aexit__(*error)


@pytest.fixture
def client(request: pytest.FixtureRequest, served: Served) -> httpx.AsyncClient:
    """A client with the token. The application starts before an `async def` test and stops after it."""
    mark = request.node.get_closest_marker("serving")
    return client_of(served.app(*mark.args, **mark.kwargs) if mark else served.app(), Starting)


@pytest.fixture
def ours(client: httpx.AsyncClient) -> Described:
    """A client of our own interface that checks each request and answer against the description."""
    return Described(client, document())


# For behaviour of the server in which stores can differ.
on_both = pytest.mark.parametrize("served", ON_BOTH, indirect=True)


@pytest.fixture
def served(request: pytest.FixtureRequest, tmp_path: Path, make: Make) -> Served:
    """A queue manager QM1 with a queue Q1."""
    on_server = getattr(request, "param", "sqlite") == "postgresql"
    store = make("postgresql") if on_server else tmp_path / "orders.db"
    with inorder.connect(store, name="QM1") as qm:
        qm.create_queue("Q1")
    return Served(store, Settings(store=str(store), key=KEY, token=TOKEN, port=PORT), tmp_path)


@pytest.fixture
def qm(served: Served) -> Iterator[inorder.QueueManager]:
    """Another program that has the store open."""
    with inorder.connect(served.store, program="maker") as one:
        yield one


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    return Signer(tmp_path, "the authority")


class Running:
    """`inorder serve` in a separate process."""

    def __init__(self, store: Path | str, *arguments: str, folder: Path | None = None) -> None:
        self.store = store
        beside = Path(store) if folder is None else folder / "server"
        self.token_file = beside.with_suffix(".token")
        has_token = not {"0.0.0.0", "192.0.2.1"} & set(arguments)  # a server that others can reach has none
        self.log = beside.with_suffix(".log")
        file = ["--token-file", str(self.token_file)] if has_token else []
        words = ["serve", str(store), "--port", "0", "--json", *file, *arguments]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "inorder", *words], stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        self.record: dict[str, Any] = json.loads(line)
        self.token = self.token_file.read_text().strip() if has_token else ""

    @property
    def url(self) -> str:
        return str(self.record["url"]).rstrip("/")

    def client(self, **given: Any) -> httpx.Client:
        """A client with the token."""
        named: dict[str, Any] = {"auth": ("anybody", self.token), "headers": CSRF, "timeout": 60, "verify": False}
        return httpx.Client(base_url=self.record["url"], **(named | given))

    def workers(self) -> set[int]:
        """The ids of the processes that have answered, according to the log."""
        return {json.loads(line)["process"] for line in self.log.read_text().splitlines()}

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Sends a signal and waits for the server to exit. Returns its exit status."""
        self.process.send_signal(number)
        return self.process.wait(60)

    def kill(self) -> None:
        """Kills the server and its workers."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()


Start = Callable[..., Running]


@pytest.fixture
def start(served: Served) -> Iterator[Start]:
    """Starts servers of the store; kills those that still run at the end."""
    begun: list[Running] = []

    def one(*arguments: str) -> Running:
        begun.append(Running(served.store, *arguments, folder=served.folder))
        return begun[-1]

    yield one
    for each in begun:
        each.kill()
