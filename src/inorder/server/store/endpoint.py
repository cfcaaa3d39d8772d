"""The WebSocket `/inorder/v1/store`: admits clients, and passes on the frames of each connection."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.utils import ClientDisconnected

from ...errors import InorderError, LogInRefused, StoreError
from ...stores.remote.frames import FrameAssembler, FrameKind, WireFrame, pieces
from ...stores.remote.wire import WireError, encode_error
from ..authentication import of_token_or_certificate
from ..calls import Context, Room
from ..identity import Identity
from ..logs import LOGGER, log_request
from ..problems import Problem
from .connection import NO_HELLO, NO_LONGER_VALID, StoreConnection
from .places import USER_THREADS_MAX, Places
from .protocol import PROTOCOL, StoreProtocol
from .resuming import Resumable

log = logging.getLogger(LOGGER)
CALLS_IN_PIECES_MAX: Final = 4
DONE, WRONG = 1000, 1008  # codes of closes
REASON_MAX: Final = 100  # characters of the reason in a close


class StoreEndpoint:
    """Answers WebSockets for stores.

    Args:
        context: the state of the worker.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._places, self._resumable = Places(context.settings.store), Resumable(context.settings.key)
        self._users: dict[str, Room] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_over = False
        self._turns: dict[str, asyncio.Semaphore] = {}

    async def close(self) -> None:
        """Ends the connections, and then the store objects."""
        self._is_over, tasks = True, list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._places.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._answer(scope, receive, send)
        except asyncio.CancelledError:
            if not self._is_over:
                raise
        finally:
            self._tasks.discard(task)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # the request to connect
        began = time.monotonic()
        request = Request({**scope, "type": "http", "method": "GET"})
        try:
            identity = await of_token_or_certificate(self._context, request)
            with self._one_more(identity.name):
                log_request(log, "WEBSOCKET", scope["path"], 101, 0.0, identity.name, _address(scope))
                await send({"type": "websocket.accept"})
                await self._connection(identity, scope, receive, send)
                log_request(
                    log, "WEBSOCKET", scope["path"], 200, time.monotonic() - began, identity.name, _address(scope)
                )
        except Problem as found:
            log_request(log, "WEBSOCKET", scope["path"], found.code, 0.0, None, _address(scope))
            await refuse(found.response(), send)

    @contextlib.contextmanager
    def _one_more(self, user: str) -> Iterator[None]:
        """Counts the connections of a user. Raises: Problem 503, if there are too many."""
        most = self._context.settings.limits.user_connections
        room = self._users.setdefault(user, Room("connections of a user", most))
        try:
            with room.taken():
                yield
        finally:
            if not room.used:
                del self._users[user]
                self._turns.pop(user, None)

    async def _connection(self, identity: Identity, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a connection until one side ends it."""
        context = self._context
        protocol: StoreProtocol = scope["state"][PROTOCOL]
        in_thread = partial(asyncio.get_running_loop().run_in_executor, self._places.threads)
        turn = self._turns.setdefault(identity.name, asyncio.Semaphore(USER_THREADS_MAX))

        async def run(call: Callable[..., Any], *given: Any) -> Any:
            async with turn:
                return await in_thread(call, *given)

        reason = ""
        try:
            place = await run(self._places.take)
            place.begin()
            one = StoreConnection(
                place,
                identity,
                present=context.authenticator.now,
                address=_address(scope) or "",
                protocol=protocol,
                run=run,
                limits=context.settings.limits,
                resumable=self._resumable,
                exits=context.settings.exits,
            )
            try:
                with contextlib.closing(ArrivingFrames(context)) as frames:
                    await self._serve(one, frames, protocol, receive)
            finally:
                try:
                    await one.stop()
                finally:
                    await asyncio.shield(in_thread(one.end))
        except asyncio.TimeoutError:
            reason = "no hello came in time"
        except InorderError as error:
            reason = str(error)
            with contextlib.suppress(ClientDisconnected):
                for piece in pieces(FrameKind.ERROR, 0, encode_error(error)):
                    await send({"type": "websocket.send", "bytes": piece})
        except ClientDisconnected:
            pass
        with contextlib.suppress(ClientDisconnected):
            await send({"type": "websocket.close", "code": WRONG if reason else DONE, "reason": reason[:REASON_MAX]})

    async def _serve(
        self, one: StoreConnection, frames: ArrivingFrames, protocol: StoreProtocol, receive: Receive
    ) -> None:
        """Takes frames until the client has gone or must go. Raises: InorderError, with the reason."""
        context = self._context
        first = await asyncio.wait_for(_first(frames, receive), context.settings.limits.head_seconds)
        if first is None:
            return
        if first.kind is not FrameKind.HELLO:
            raise WireError(NO_HELLO)
        await one.begin(first.payload)
        failures: list[InorderError] = []

        def take(message: bytes | None) -> None:
            try:
                frame = None if failures else frames.add(message)
                if frame is not None:
                    one.take(frame)
            except InorderError as error:
                failures.append(error)
                protocol.wake()

        with context.connected_clients.watched(one.identity, ended=protocol.wake) as over:
            while not failures and not over.is_set():
                protocol.takes_directly(take)  # from now on, or after those messages that have already come
                event = await receive()
                if event["type"] != "websocket.receive":
                    break
                take(event.get("bytes"))
            if failures:
                raise failures[0]
            if over.is_set():
                raise LogInRefused(NO_LONGER_VALID)


async def _first(frames: ArrivingFrames, receive: Receive) -> WireFrame | None:
    """The first whole frame; None: the connection has ended."""
    while (event := await receive())["type"] == "websocket.receive":
        frame = frames.add(event.get("bytes"))
        if frame is not None:
            return frame
    return None


class ArrivingFrames:
    """The frames of a connection, with their pieces joined, within the worker's limit of bytes in transit."""

    def __init__(self, context: Context) -> None:
        limits = context.settings.limits
        self._bodies, self._held = context.bodies, contextlib.ExitStack()
        self._assembler = FrameAssembler(limits.call, CALLS_IN_PIECES_MAX)

    def add(self, message: bytes | None) -> WireFrame | None:
        """Takes a message, and returns the frame that it completes, if it does. Raises: WireError; StoreError."""
        if message is None:
            raise WireError("frames must be binary")
        before = self._assembler.held
        frame = self._assembler.add(message)
        more = self._assembler.held - before
        if more > 0:
            try:
                self._held.enter_context(self._bodies.taken(more))
            except Problem:
                raise StoreError("too many bytes of messages arrive at this server at once: try again") from None
        elif before and not self._assembler.held:
            self._held.close()
        return frame

    def close(self) -> None:
        """Forgets what is not complete, and gives back its part of the limit."""
        self._assembler.close()
        self._held.close()


async def refuse(response: Response, send: Send) -> None:
    """Answers the request to connect with an HTTP response."""
    await send(
        {"type": "websocket.http.response.start", "status": response.status_code, "headers": response.raw_headers}
    )
    await send({"type": "websocket.http.response.body", "body": bytes(response.body)})


def _address(scope: Scope) -> str | None:
    client = scope.get("client")
    return client[0] if client else None
