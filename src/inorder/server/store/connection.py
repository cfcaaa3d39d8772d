"""One connection of a program elsewhere: its owner in the store, its handles, and its calls one after another.

Nothing that says who acts comes from the wire (W-5). The owner and the user are the server's. A handle is a number of
this connection, which stands for one that the store has given; there is no way to name a handle of another connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ... import __version__
from ...client.services import Services
from ...errors import ConnectionBroken, HandleError, InorderError, StoreError
from ...model.message import Message
from ...rules.puts import Program
from ...rules.store_verbs import VERBS
from ...stores.remote.frames import Assembler, Flag, Frame, Kind, pieces
from ...stores.remote.link import PROTOCOL, Hello
from ...stores.remote.wire import WireError, decode_call, encode_answer, encode_error
from ...stores.seam.migrations import VERSION
from ..identity import Identity
from ..logs import LOGGER
from .checking import Checker, OpenedHandle

log = logging.getLogger(LOGGER)

CALLS_MAX: Final = 64  # of one connection, that have arrived and are not answered
PAGE_MESSAGES: Final = 256
SPECIAL: Final = frozenset({Kind.CALL, Kind.BYE, Kind.REOPEN})

Send = Callable[[bytes], Awaitable[None]]


@dataclass(slots=True)
class Answered:
    """What a thread has made of a call: the payload of its answer, and whether the connection has a unit of work now."""

    kind: Kind
    payload: bytes
    has_unit: bool = False


class StoreConnection:
    """A connection; `begin` it with its hello, give it frames, and `end` it.

    Args:
        services: the store object that serves it.
        identity: its user; a new one, after the user was changed, counts from the next call on.
        send: sends a frame, and waits while the client reads too slowly.
    """

    def __init__(
        self, services: Services, identity: Identity, checker: Checker, send: Send, run: Callable[..., Any]
    ) -> None:
        self.services, self.store, self.identity = services, services.store, identity
        self._checker, self._send, self._run = checker, send, run
        self.owner = 0
        self._handles: dict[int, OpenedHandle] = {}
        self._next_handle = 1
        self._calls: asyncio.Queue[Frame | None] = asyncio.Queue()

    # --- the loop's side

    async def begin(self, payload: bytes) -> None:
        """Answers the hello. Raises: WireError; InorderError, the store cannot be used."""
        try:
            hello = msgspec.msgpack.decode(payload, type=Hello)
        except msgspec.MsgspecError as error:
            raise WireError("a connection must begin with a hello") from error
        if hello.protocol != PROTOCOL:
            raise StoreError(
                f"this server is of release {__version__} and speaks protocol {PROTOCOL}, not {hello.protocol}"
            )
        self._next_handle = max(1, min(hello.first_handle, 2**31))
        answer = await self._run(self._connect, hello.program)
        await self.send(Kind.HELLO, 0, msgspec.msgpack.encode(answer))

    def _connect(self, program: str) -> Hello:
        manager = self.store.manager()
        self.owner = self.services.connect(Program(self.identity.name, program[:256]))
        self.store.set_user(self.owner, self.identity.name)
        return Hello(
            PROTOCOL,
            __version__,
            [],
            list(Message.FIELDS),
            store=manager.identifier,
            schema=VERSION,
            manager=manager.name,
            user=self.identity.name,
            page_messages=PAGE_MESSAGES,
        )

    async def send(self, kind: Kind, number: int, payload: bytes, *, has_unit: bool = False) -> None:
        """Sends a payload, in pieces if it is long."""
        for piece in pieces(kind, number, payload, Flag.HAS_UNIT if has_unit else 0):
            await self._send(piece)

    async def take(self, frame: Frame) -> None:
        """Takes a frame that has arrived. Raises: WireError, the client must not send it."""
        if frame.kind is Kind.END_WAITS:
            await self._run(self._end_waits)
            return
        if frame.kind not in SPECIAL:
            raise WireError(f"a client must not send a frame of kind {frame.kind.name}")
        if self._calls.qsize() >= CALLS_MAX:
            raise WireError(f"at most {CALLS_MAX} calls may be unanswered at once")
        if frame.kind is Kind.BYE:
            await self._run(self.end)
        self._calls.put_nowait(frame)

    async def serve(self) -> None:
        """Answers the calls, one after another, until it is cancelled."""
        while True:
            frame = await self._calls.get()
            if frame is None:
                return
            if frame.kind is Kind.BYE:
                await self.send(Kind.ANSWER, frame.number, b"")
                continue
            answer = await self._answer(frame)
            await self.send(answer.kind, frame.number, answer.payload, has_unit=answer.has_unit)

    async def _answer(self, frame: Frame) -> Answered:
        try:
            verb, arguments = decode_call(frame.payload)
            if verb in ("wait", "watch"):
                return await self._wait(verb, frame.number, arguments)
            return await self._run(self._make, verb, arguments, frame.number if frame.kind is Kind.REOPEN else None)
        except InorderError as error:
            return self._failed(error)

    async def _wait(self, verb: str, number: int, arguments: dict[str, Any]) -> Answered:
        """Waits without a thread: the store calls back."""
        loop, ended = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()
        changes = 0

        def done(outcome: Any) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is over
                loop.call_soon_threadsafe(lambda: ended.done() or ended.set_result(outcome))

        def changed() -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(tell)

        def tell() -> None:
            nonlocal changes
            changes += 1
            news.set()

        news = asyncio.Event()
        await self._run(self._begin_wait, verb, arguments, done, changed)
        while not ended.done():
            told = asyncio.ensure_future(news.wait())
            await asyncio.wait((told, ended), return_when=asyncio.FIRST_COMPLETED)
            told.cancel()
            if news.is_set():
                news.clear()
                await self.send(Kind.EVENT, number, b"")
        outcome = ended.result()
        if isinstance(outcome, InorderError):
            return self._failed(outcome)
        if isinstance(outcome, BaseException):
            raise outcome
        return await self._run(lambda: self._answered(verb, outcome))

    # --- the threads' side

    def _make(self, verb: str, arguments: dict[str, Any], reopens: int | None) -> Answered:
        prepared = self._prepared(verb, arguments)
        if reopens is not None and (verb != "open" or not 0 < reopens < self._next_handle or reopens in self._handles):
            raise WireError("only a handle of an earlier connection can be opened again")
        with self._checker.noted(self, verb, arguments):
            value = getattr(self.store, verb)(**prepared)
        return self._answered(verb, self._told(verb, arguments, value, reopens))

    def _prepared(self, verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments with the store's handles and the owner. Raises: NotAuthorized 2035; HandleError 2019."""
        rule = VERBS[verb]
        self._checker.check(self.store, self.identity, verb, arguments, self._handles)
        prepared = dict(arguments)
        if rule.takes_owner:
            prepared["owner"] = self.owner
        if "handles" in prepared:
            prepared["handles"] = [self._handles[one].number for one in arguments["handles"] if one in self._handles]
        for name in ("handle", "request", "claimer"):
            if name in prepared:
                prepared[name] = self._with_handle(prepared[name])
        return prepared

    def _with_handle(self, one: Any) -> Any:
        """A handle's number, or a request or claimer with one, as the store knows it."""
        if isinstance(one, int):
            return self._opened(one).number
        if hasattr(one, "claimer"):
            return one._replace(claimer=self._with_handle(one.claimer))
        number = self._opened(one.handle).number
        return one._replace(handle=number) if isinstance(one, tuple) else msgspec.structs.replace(one, handle=number)

    def _opened(self, number: int) -> OpenedHandle:
        found = self._handles.get(number)
        if found is None:
            raise HandleError(f"the connection has no handle {number}")
        return found

    def _told(self, verb: str, arguments: dict[str, Any], value: Any, reopens: int | None) -> Any:
        """The answer as the client gets it; notes handles that were opened and closed."""
        if verb == "open":
            number = self._next_handle if reopens is None else reopens
            self._next_handle = max(self._next_handle, number + 1)
            self._handles[number] = OpenedHandle(value.handle, arguments["queue"], value.queue, value.options)
            return value._replace(handle=number)
        if verb == "extend":
            number = arguments["handle"]
            self._handles[number] = self._handles[number]._replace(options=value.options)
            return value._replace(handle=number)
        if verb == "close":
            del self._handles[arguments["handle"]]
        elif verb == "keep_handles":
            self._handles = {number: one for number, one in self._handles.items() if number in arguments["handles"]}
        return self._checker.filtered(self.identity, verb, value)

    def _begin_wait(self, verb: str, arguments: dict[str, Any], done: Any, changed: Any) -> None:
        prepared = self._prepared(verb, arguments)
        if verb == "wait":
            self.store.wait_apart(prepared["request"], done)
        else:
            self.store.watch_apart(prepared["handle"], changed, done)

    def _end_waits(self) -> None:
        with contextlib.suppress(InorderError):  # the connection has ended
            self.store.end_waits(self.owner)

    def _answered(self, verb: str, value: Any) -> Answered:
        return Answered(Kind.ANSWER, encode_answer(verb, value), self._has_unit())

    def _failed(self, error: InorderError) -> Answered:
        return Answered(Kind.ERROR, encode_error(error), self._has_unit())

    def _has_unit(self) -> bool:
        try:
            return self.store.has_unit(self.owner)
        except ConnectionBroken:
            return False

    def end(self) -> None:
        """Ends the owner: its waits, its unit of work and its handles. Harmless when repeated; blocks."""
        if self.owner:
            owner, self.owner = self.owner, 0
            self._handles.clear()
            try:
                self.services.end(owner)
            except InorderError as error:
                self.services.forgotten.append(owner)
                log.warning("the connection of a program elsewhere could not be ended yet: %s", error)
