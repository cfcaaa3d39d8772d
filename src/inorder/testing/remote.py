"""A store that is reached over the network, for tests: a server on the loopback, in a thread of this process.

One server serves all such stores of the process. The token of a connection names its store.
"""

from __future__ import annotations

import asyncio
import functools
import os
import secrets
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, TypeVar, cast

from starlette.types import Receive, Scope, Send
from uvicorn import Config, Server

from ..client.manager import QueueManager
from ..server.calls import Context
from ..server.identity import LaunchToken
from ..server.sessions import Sessions
from ..server.settings import Settings
from ..server.store import StoreEndpoint
from ..server.store.protocol import SETTINGS as WEBSOCKETS
from ..server.users import Users
from ..stores.engine.store import QueueStore
from ..stores.remote.address import parse
from ..stores.remote.store import RemoteStore

T = TypeVar("T")

START_SECONDS: Final = 60.0


class ServedStore(RemoteStore):
    """A store behind the server of this process, with the calls that tests make on the store itself.

    Args:
        inner: the store that the server opens.
    """

    def __init__(self, inner: QueueStore, served: ServedToken | None = None) -> None:
        server = the_server(os.getpid())
        self.inner, self.served, self._is_first = inner, served or ServedToken(server, inner), served is None
        super().__init__(parse(server.url, {"token": self.served.token}), "test")
        self.clock, self.waiting = inner.clock, inner.waiting
        weakref.finalize(self, self._link.drop)  # many tests drop the store that they have made

    def again(self) -> ServedStore:
        return ServedStore(self.inner, self.served)

    def close_store(self) -> None:
        super().close_store()
        if self._is_first:  # a test closes the store that it has made
            self.served.end()
            self.inner.close_store()

    def restart(self) -> None:
        self.inner.restart()

    def stop(self) -> None:
        self.inner.stop()


class ServedToken:
    """A store that the server has for as long as this object exists."""

    def __init__(self, server: LoopbackServer, store: QueueStore) -> None:
        self.token, self._server = server.add(store), server
        weakref.finalize(self, server.forget, self.token).atexit = False

    def end(self) -> None:
        """Stops serving the store. Harmless when repeated."""
        self._server.remove(self.token)


class AsideUsers:
    """Logs users in: calls the accounts of a queue manager in threads, each call on a separate connection."""

    def __init__(self, qm: QueueManager) -> None:
        self._qm, self.accounts = qm, self

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return functools.partial(asyncio.to_thread, self._call, name)

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        with self._qm.connect() as own:
            return getattr(own.accounts, name)(*args, **kwargs)


class Here(ThreadPoolExecutor):
    """Makes calls in the thread that submits them: from Python 3.12 on no thread can start while a process ends."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        made: Future[T] = Future()
        try:
            made.set_result(fn(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
            made.set_exception(error)
        return made


class LoopbackServer:
    """The server, which starts when it is created and ends with the process."""

    def __init__(self) -> None:
        self._endpoints: dict[str, StoreEndpoint] = {}
        self._is_over, self._process = False, os.getpid()
        threading._register_atexit(self._end)  # type: ignore[attr-defined]  # before that of the pools of threads
        config = Config(
            self._app,
            host="127.0.0.1",
            port=0,
            **WEBSOCKETS,
            lifespan="off",
            interface="asgi3",
            log_config=None,
            proxy_headers=False,
        )
        self._server, self._begun = Server(config), threading.Event()
        threading.Thread(target=self._run, name="inorder test server", daemon=True).start()
        assert self._begun.wait(START_SECONDS), "the server has started"
        port = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"

    def _end(self) -> None:
        if os.getpid() != self._process:  # a child made by fork has no thread to end anything
            return
        self._is_over = True
        self._loop.call_soon_threadsafe(self._loop.set_default_executor, Here())
        for token in list(self._endpoints):
            self.remove(token)

    def _run(self) -> None:
        async def served() -> None:
            self._loop = asyncio.get_running_loop()
            self._server.config.load()
            self._server.lifespan = self._server.config.lifespan_class(self._server.config)
            await self._server.startup()
            self._begun.set()
            await self._server.main_loop()

        asyncio.run(served())

    def add(self, store: QueueStore | str, users: QueueManager | None = None) -> str:
        """Serves another store, which may be a URL. Returns the token of its administrator.

        Args:
            users: a queue manager whose users may connect too, after `admit` of their tokens.
        """
        token = secrets.token_hex(16)
        settings = Settings(store=cast("str", store), key=bytes(32), token=token)
        qm = cast("Any", None if users is None else AsideUsers(users))  # the console needs more of it
        context = Context(
            settings=settings,
            qm=qm,
            name="",
            authenticator=Users(qm, LaunchToken(token), 1, lambda: 0.0),
            sessions=Sessions(settings.key, 1.0, lambda: 0.0),
            stopping=asyncio.Event(),
        )
        self._endpoints[token] = StoreEndpoint(context)
        return token

    @contextmanager
    def serving(self, store: QueueStore | str, users: QueueManager | None = None) -> Iterator[str]:
        """Serves another store until the end of the block, as `add`."""
        token = self.add(store, users)
        try:
            yield token
        finally:
            self.remove(token)

    def remove(self, token: str) -> None:
        """Stops serving a store, and ends its connections. Harmless when repeated."""
        endpoint = self._endpoints.pop(token, None)
        if endpoint is not None:
            asyncio.run_coroutine_threadsafe(endpoint.close(), self._loop).result()

    def forget(self, token: str) -> None:
        """As `remove`, but without waiting: a garbage collection calls it, in any thread."""
        endpoint = self._endpoints.pop(token, None)
        if endpoint is not None and not self._is_over:
            asyncio.run_coroutine_threadsafe(endpoint.close(), self._loop)

    def admit(self, token: str, administrators: str) -> None:
        """Lets a token of a user lead to the same store as its administrator's."""
        self._endpoints[token] = self._endpoints[administrators]

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = dict(scope["headers"]).get(b"authorization", b"").decode()
        try:
            await self._endpoints[given.partition(" ")[2]](scope, receive, send)
        except RuntimeError:
            if not self._is_over:  # the interpreter ends the threads first
                raise


@functools.cache
def the_server(process: int) -> LoopbackServer:
    """The server of a process: a forked child does not use its parent's."""
    del process
    return LoopbackServer()
