"""The application of one worker, which connects to the store at its start and answers requests."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import parent_process
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from .. import aio
from ..aio.manager import shared
from ..client.manager import QueueManager, connect
from ..errors import InorderError, StoreError
from ..rules.history import RINGS
from .api import interface as ours
from .authentication import identity_of, of_link
from .calls import Context
from .console import Console, moved
from .disconnects import IN_ONE_WRITE, ended
from .guard import Guard
from .identity import Authenticator, LaunchToken
from .interface import BASE, IbmInterface
from .login import set_session
from .logs import LOGGER
from .problems import not_allowed, of_admin_error, problem
from .sessions import Sessions
from .settings import Settings
from .stopping import set_by_signals
from .store import StoreEndpoint
from .users import Users
from .watching import PROGRAM, Metrics, health, ready

log = logging.getLogger(LOGGER)
NOTHING_HELD: Final = contextlib.nullcontext()
CLIENT_LEFT = 499  # for the log; HTTP has no such status
HISTORY_SECONDS: Final = RINGS["hour"].seconds
HISTORY_SPREAD_SECONDS: Final = 20.0
UNUSED_SECONDS: Final = 1.0  # after which a queue that no request uses is closed


def _connected(store: str) -> QueueManager:
    """Connects to the store. A user's request never opens another store with the rights of this process (P-3)."""
    qm = connect(store, program=PROGRAM)
    qm.internals.stay_here()
    return qm


def application(
    settings: Settings, authenticator: Authenticator | None = None, troubles: list[InorderError] | None = None
) -> ASGIApp:
    """The ASGI application that serves a store.

    Args:
        troubles: receives the error that ends this process, if it can no longer use the store.
        authenticator: identifies users; None: the users of the store, and the launch token if there is one.
    """
    ends = [] if troubles is None else troubles

    @contextlib.asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[dict[str, asyncio.Event]]:
        try:
            async with shared(lambda: _connected(settings.store), settings.connections) as qm:
                name = (await qm.admin.manager_attributes()).name
                metrics = await asyncio.to_thread(Metrics, settings.store, workers=settings.workers)
                context = Context(
                    settings=settings,
                    qm=qm,
                    name=name,
                    authenticator=authenticator or _users(settings, qm),
                    sessions=Sessions(settings.key, settings.limits.session_seconds, time.time),
                    stopping=asyncio.Event(),
                )
                router.default = doors = _Doors(context, metrics)
                tasks = [asyncio.create_task(_look_after(qm, ends)), asyncio.create_task(_keep_history(qm))]
                try:
                    with set_by_signals(context.stopping), _ending_with_parent():
                        yield {"stopping": context.stopping}
                finally:
                    for one in tasks:
                        await ended(one)
                    await doors.close()
                    await asyncio.to_thread(metrics.close)
        except StoreError:  # a lost store cannot be closed either
            if not ends:
                raise

    router = Router(lifespan=lifespan)
    return Guard(router, settings)


class _Doors:
    """Sends each request to its interface.

    Starlette's routes and layers take longer than everything else on the way of a single message to the queue and back.
    This class and the guard find the interface and handle errors in their place.
    """

    def __init__(self, context: Context, metrics: Metrics) -> None:
        self._store, self._console = StoreEndpoint(context), Console(context)
        self._interfaces = (  # the most frequent first
            (f"/{'/'.join(BASE)}/", IbmInterface(context)),
            (f"/{'/'.join(ours.BASE)}/", ours.OwnInterface(context)),
            ("/console/", self._console),
        )
        self._pages: dict[str, Callable[[Request], Awaitable[Response]]] = {
            "/": partial(welcome, context),
            "/health": health,
            "/ready": partial(ready, context),
            "/metrics": partial(metrics.answer, context),
            "/console": moved,
        }

    async def close(self) -> None:
        """Ends what the interfaces keep."""
        await self._store.close()
        await self._console.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._store(scope, receive, send)
            return
        try:
            answer = await self._answer(Request(scope, receive))
        except InorderError as error:
            answer = of_admin_error(error).response()
        except ClientDisconnect:
            answer = Response(status_code=CLIENT_LEFT)
        is_whole = not isinstance(answer, StreamingResponse)
        with (is_whole and scope.get("state", {}).get(IN_ONE_WRITE)) or NOTHING_HELD:
            await answer(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        """Raises: Problem; InorderError; ClientDisconnect."""
        path = request.scope["path"]
        for prefix, interface in self._interfaces:
            if path.startswith(prefix):
                return await interface.answer(request)
        page = self._pages.get(path)
        if page is None:
            raise problem("INWB0001E", request.url.path)
        if request.method not in ("GET", "HEAD"):
            raise not_allowed(request.method, ("GET", "HEAD"))
        return await page(request)


def _users(settings: Settings, qm: aio.QueueManager) -> Users:
    launch = None if settings.token is None else LaunchToken(settings.token)
    return Users(qm, launch, settings.limits.log_ins, time.monotonic)


async def welcome(context: Context, request: Request) -> Response:
    """GET /: describes the server. With the token of the printed link in the query it begins a session.

    Users with a session, and all browsers, are redirected to the console.
    """
    if "token" in request.query_params:
        identity = await of_link(context, request, request.query_params["token"])
        response: Response = RedirectResponse("/console/", 303)
        set_session(context, response, identity)
        return response
    if "text/html" in request.headers.get("accept", ""):
        return RedirectResponse("/console/", 303)
    identity = await identity_of(context, request)
    return JSONResponse(
        {
            "queue_manager": context.name,
            "user": identity.name,
            "interfaces": [
                *(f"/{'/'.join(BASE)}/v{version}" for version in (1, 2, 3)),
                f"/{'/'.join(ours.BASE)}",
            ],
        }
    )


def _stop() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


@contextlib.contextmanager
def _ending_with_parent() -> Iterator[None]:
    """Stops this worker when its parent process has gone, because the next server needs the port that it holds."""
    parent = parent_process()
    if parent is None:
        yield
        return

    def stop() -> None:
        loop.remove_reader(parent.sentinel)
        _stop()

    loop = asyncio.get_running_loop()
    loop.add_reader(parent.sentinel, stop)  # the system closes this pipe with the parent
    try:
        yield
    finally:
        loop.remove_reader(parent.sentinel)


async def _look_after(qm: aio.QueueManager, troubles: list[InorderError]) -> None:
    """Closes queues that no request uses, because no program can clear or delete a queue that is open.

    If the store was replaced, or a sync has failed, it stops this process, so that a new process can open the store.
    """
    while True:
        await asyncio.sleep(UNUSED_SECONDS)
        try:
            await qm.admin.check_store()
            await qm.internals.close_unused_queues()
        except InorderError as error:  # such as a store that is away for a while; requests report it
            if error.data.get("must_reopen"):
                log.error("this process ends: %s", error)
                troubles.append(error)
                _stop()
                return
            log.info("unused queues could not be closed: %s", error)
        except Exception:  # this task must go on, because nothing would show its end
            log.exception("unused queues could not be closed")


async def _keep_history(qm: aio.QueueManager) -> None:
    """Adds the counts of all queues to the store's history once a minute; the first of the store's servers does it."""
    after = random.uniform(0, HISTORY_SPREAD_SECONDS)
    while True:
        try:
            await qm.run(lambda one: one.internals.sample())
        except InorderError as error:  # such as a store that is full, or away for a while
            log.warning("the history of the queues has a gap: %s", error)
        except Exception:  # this task must go on, because nothing would show its end
            log.exception("the history of the queues has a gap")
        await asyncio.sleep(HISTORY_SECONDS - time.time() % HISTORY_SECONDS + after)


@dataclass(frozen=True, slots=True)
class Factory:
    """Makes the application in each worker. uvicorn passes this object to the processes that it starts."""

    settings: Settings
    troubles: list[InorderError] = field(default_factory=list)

    def __call__(self) -> ASGIApp:
        return application(self.settings, troubles=self.troubles)
