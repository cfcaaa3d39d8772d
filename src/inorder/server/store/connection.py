"""One connection of a program elsewhere: its owner in the store, its handles, and its calls one after another.

Nothing that says who acts comes from the wire (W-5). The owner and the user are the server's. A handle is a number of
this connection, which stands for one that the store has given; there is no way to name a handle of another connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec

from ...client.operator_log import ERROR_LENGTH_MAX
from ...client.services import Services
from ...errors import ConnectionBroken, InorderError, NotOpenFor, StoreError
from ...model.message import Message
from ...model.options import OpenOptions
from ...rules.puts import Program
from ...stores.remote.frames import Flag, FrameKind, WireFrame, pieces
from ...stores.remote.link import PROTOCOL, Hello
from ...stores.remote.wire import WireError, decode_call, encode_answer, encode_error
from ...stores.seam.protocol import Store
from ...support.release import __version__
from ..identity import Identity
from ..logs import LOGGER
from .checking import ActToLog, Checker
from .resuming import Resumable

log = logging.getLogger(LOGGER)

CALLS_MAX: Final = 64  # of one connection, that have arrived and are not answered
PAGE_MESSAGES: Final = 256
PAUSES: Final = (0.01, 0.03, 0.1, 0.3, *[0.5] * 8)  # seconds between looks at a previous connection, about 5 together
SPECIAL: Final = {FrameKind.REOPEN: "open", FrameKind.WATCH: "check_handle"}
TAKEN: Final = frozenset({FrameKind.CALL, FrameKind.BYE, FrameKind.REOPEN, FrameKind.WATCH})

Send = Callable[[bytes], Awaitable[None]]


class Handle(NamedTuple):
    """A handle of the connection: its number in the store, and its options."""

    number: int
    options: OpenOptions


@dataclass(slots=True)
class Answered:
    """The payload of the answer to a call, and whether the connection has a unit of work now."""

    kind: FrameKind
    payload: bytes
    has_unit: bool = False


class StoreConnection:
    """A connection; `begin` it with its hello, give it frames, and `end` it.

    Args:
        services: the store object that serves it.
        identity: its user; a new one, after the user was changed, counts from the next call on.
        address: of the client, for the log of acts.
        send: sends a frame, and waits while the client reads too slowly.
        run: makes a call in a thread.
        leases: how many the user may have.
        resumable: the connections of this worker.

    Attributes:
        replaced: an event that is set when the client has connected again.
    """

    def __init__(
        self,
        services: Services,
        identity: Identity,
        address: str,
        send: Send,
        run: Callable[..., Any],
        leases: int,
        resumable: Resumable,
    ) -> None:
        self.services, self.store, self.identity = services, services.store, identity
        self._address, self._send, self._run, self._leases = address, send, run, leases
        self._resumable = resumable
        self._busy = threading.Lock()  # of the call that runs and of the end
        self._loop, self.replaced = asyncio.get_running_loop(), asyncio.Event()
        self.owner = 0
        self._checker = Checker(self.store, 0)
        self._handles: dict[int, Handle] = {}
        self._next_handle = 1
        self._calls: asyncio.Queue[WireFrame] = asyncio.Queue()

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
        await self._end_previous(hello.resume)
        answer = await self._run(self._connect, hello.program)
        await self.send(FrameKind.HELLO, 0, msgspec.msgpack.encode(answer))

    async def _end_previous(self, secret: bytes) -> None:
        """Ends the client's previous connection, or waits until the worker that has it has noticed its end.

        Raises: StoreError, it does not end: the client tries again.
        """
        number = self._resumable.number_of(secret)
        if not number:
            return
        if (end := self._resumable.end_of(secret, self.identity.name)) is not None:
            await self._run(end)
        for pause in PAUSES:
            if not await self._run(self._is_there, number):
                return
            await asyncio.sleep(pause)
        raise StoreError("the previous connection of this program has not ended yet: try again")

    def _is_there(self, number: int) -> bool:
        """Whether there is a connection of the user with this number."""
        self.store.end_dead_processes()
        found = (one for one in self.store.list_connections() if one.connection == number)
        return any(one.program.user == self.identity.name for one in found)

    def _connect(self, program: str) -> Hello:
        manager = self.store.manager()
        self.owner = self.services.connect(Program(self.identity.name, program[:256]))
        self._checker = Checker(self.store, self.owner)
        self.store.set_user(self.owner, self.identity.name)
        self._resumable.ends[self.owner] = self._replace
        return Hello(
            PROTOCOL,
            __version__,
            [],
            list(Message.FIELDS),
            store=self.store.identifier(),
            manager=manager.name,
            user=self.identity.name,
            page_messages=PAGE_MESSAGES,
            connection=self.owner,
            resume=self._resumable.secret(self.owner, self.identity.name),
        )

    async def send(self, kind: FrameKind, number: int, payload: bytes, *, has_unit: bool = False) -> None:
        """Sends a payload, in pieces if it is long."""
        for piece in pieces(kind, number, payload, Flag.HAS_UNIT if has_unit else 0):
            await self._send(piece)

    async def take(self, frame: WireFrame) -> None:
        """Takes a frame that has arrived. Raises: WireError, the client must not send it."""
        if frame.kind is FrameKind.END_WAITS:
            await self._run(self._end_waits)
            return
        if frame.kind not in TAKEN:
            raise WireError(f"a client must not send a frame of kind {frame.kind.name}")
        if self._calls.qsize() >= CALLS_MAX:
            raise WireError(f"at most {CALLS_MAX} calls may be unanswered at once")
        if frame.kind is FrameKind.BYE:
            await self._run(self.end)
        self._calls.put_nowait(frame)

    async def serve(self) -> None:
        """Answers the calls, one after another, until it is cancelled or the client has said goodbye."""
        while True:
            frame = await self._calls.get()
            if frame.kind is FrameKind.BYE:
                await self.send(FrameKind.ANSWER, frame.number, b"")
                return
            answer = await self._answer(frame)
            await self.send(answer.kind, frame.number, answer.payload, has_unit=answer.has_unit)

    async def _answer(self, frame: WireFrame) -> Answered:
        try:
            verb, arguments = decode_call(frame.payload)
            if frame.kind in SPECIAL and verb != SPECIAL[frame.kind]:
                raise WireError(f"a frame of kind {frame.kind.name} must call {SPECIAL[frame.kind]}, not {verb}")
            if verb == "wait" or frame.kind is FrameKind.WATCH:
                return await self._wait(frame, verb, arguments)
            reopens = frame.number if frame.kind is FrameKind.REOPEN else None
            answer: Answered = await self._run(self._make, verb, arguments, reopens)
            return answer
        except InorderError as error:
            return self._failed(error)
        except Exception:
            log.exception("an unexpected error in a call of a program elsewhere")
            return self._failed(InorderError("an unexpected error, which the server's log has"))

    async def _wait(self, frame: WireFrame, verb: str, arguments: dict[str, Any]) -> Answered:
        """Waits without a thread: the store calls back, for a watch also at each change."""
        loop, happened = asyncio.get_running_loop(), asyncio.Event()
        ended: list[Any] = []

        def tell(*outcome: Any) -> None:
            ended.extend(outcome)
            with contextlib.suppress(RuntimeError):  # the loop is over
                loop.call_soon_threadsafe(happened.set)

        if frame.kind is FrameKind.WATCH:
            await self._run(self._begin_watch, arguments["handle"], tell)
        else:
            await self._run(self._begin_wait, arguments, tell)
        while not ended:
            await happened.wait()
            happened.clear()
            if not ended:
                await self.send(FrameKind.EVENT, frame.number, b"")
        if isinstance(ended[0], InorderError):
            return self._failed(ended[0])
        if isinstance(ended[0], BaseException):
            raise ended[0]
        answer: Answered = await self._run(self._answered, verb, ended[0])
        return answer

    # --- the threads' side

    @contextlib.contextmanager
    def _in_call(self) -> Iterator[None]:
        """Holds up the end of the connection. Raises: ConnectionBroken, it has ended."""
        with self._busy:
            if not self.owner:
                raise ConnectionBroken("the connection has ended: connect again")
            yield

    def _make(self, verb: str, arguments: dict[str, Any], reopens: int | None) -> Answered:
        with self._in_call():
            return self._made(verb, arguments, reopens)

    def _made(self, verb: str, arguments: dict[str, Any], reopens: int | None) -> Answered:
        if reopens is not None and (not 0 < reopens < self._next_handle or reopens in self._handles):
            raise WireError("only a handle of an earlier connection can be opened again")
        arguments, act = self._checked(verb, arguments)
        with nullcontext() if act is None else self._logged(act):
            answer = made(self.store, verb, self._filled(verb, arguments))
        self._checker.note(verb, arguments, answer)
        if verb == "open":
            number = self._next_handle if reopens is None else reopens
            self._next_handle = max(self._next_handle, number + 1)
            self._handles[number] = Handle(answer.handle, answer.options)
            answer = answer._replace(handle=number)
        elif verb == "extend":
            number = next(number for number, one in self._handles.items() if one.number == answer.handle)
            self._handles[number] = Handle(answer.handle, answer.options)
            answer = answer._replace(handle=number)
        elif verb in ("close", "keep_handles"):
            self._handles = {
                number: one for number, one in self._handles.items() if one.number in self._checker.handles
            }
        return self._answered(verb, self._checker.shown(verb, arguments, answer, self.identity))

    def _checked(self, verb: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], ActToLog | None]:
        """The arguments with the store's handles, and what the log of acts needs.

        Raises: NotAuthorized 2035; ConnectionBroken 2009, the connection has no such handle; see `Checker.check`.
        """
        known = dict(arguments)
        if "handles" in known:
            known["handles"] = [self._handles[one].number for one in arguments["handles"] if one in self._handles]
        for name in ("handle", "request", "claimer"):
            if name in known:
                known[name] = self._with_handle(known[name])
        return known, self._checker.check(verb, known, self.identity)

    def _filled(self, verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return self._checker.filled(verb, arguments, self.identity, leases_max=self._leases)

    @contextlib.contextmanager
    def _logged(self, act: ActToLog) -> Iterator[None]:
        """Writes the act into the log before it is done, and its outcome after that."""
        number = self.store.begin_act(self.identity.name, self._address, act.act, act.queue)
        try:
            yield
        except BaseException as error:
            self.store.end_act(number, "failed", None, f"{type(error).__name__}: {error}"[:ERROR_LENGTH_MAX])
            raise
        self.store.end_act(number, "done", None, "")

    def _with_handle(self, one: Any) -> Any:
        """A handle's number, or a request or claimer with one, as the store knows it."""
        if isinstance(one, int):
            return self._opened(one).number
        if hasattr(one, "claimer"):
            return one._replace(claimer=self._with_handle(one.claimer))
        if not hasattr(one, "handle"):
            return one
        number = self._opened(one.handle).number
        if hasattr(one, "_replace"):
            return one._replace(handle=number)
        return dataclasses.replace(one, handle=number)

    def _opened(self, number: int) -> Handle:
        found = self._handles.get(number)
        if found is None:
            raise ConnectionBroken("the connection of this handle was lost: connect again")
        return found

    def _begin_wait(self, arguments: dict[str, Any], tell: Callable[..., None]) -> None:
        with self._in_call():
            known, _ = self._checked("wait", arguments)
            self.store.wait_apart(self._filled("wait", known)["request"], tell)

    def _begin_watch(self, number: int, tell: Callable[..., None]) -> None:
        with self._in_call():
            handle = self._opened(number)
            if not (handle.options.browse or handle.options.input):
                raise NotOpenFor("only a handle that is open for input or browse can be watched")
            self.store.watch_apart(handle.number, tell, tell)

    def _end_waits(self) -> None:
        with contextlib.suppress(InorderError):  # the connection has ended
            self.store.end_waits(self.owner)

    def _answered(self, verb: str, value: Any) -> Answered:
        return Answered(FrameKind.ANSWER, encode_answer(verb, value), self._has_unit())

    def _failed(self, error: InorderError) -> Answered:
        return Answered(FrameKind.ERROR, encode_error(error), self._has_unit())

    def _has_unit(self) -> bool:
        try:
            return self.store.has_unit(self.owner)
        except ConnectionBroken:
            return False

    def _replace(self) -> None:
        self._loop.call_soon_threadsafe(self.replaced.set)
        self.end()

    def end(self) -> None:
        """Ends the owner after the call that runs: its waits, its unit of work and its handles. Harmless when repeated;
        blocks.
        """
        with self._busy:
            if not self.owner:
                return
            owner, self.owner = self.owner, 0
            self._handles.clear()
            try:
                self.services.end(owner)
            except InorderError as error:
                self.services.forgotten.append(owner)
                log.warning("the connection of a program elsewhere could not be ended yet: %s", error)
            self._resumable.ends.pop(owner, None)


@functools.cache
def _places(verb: str) -> Sequence[str]:
    """The names of the arguments of a verb that go by position."""
    parameters = inspect.signature(getattr(Store, verb)).parameters.values()
    return [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD][1:]


def made(store: Store, verb: str, arguments: dict[str, Any]) -> Any:
    """Makes a call of the store and returns its answer."""
    by_place = [arguments.pop(name) for name in _places(verb)]
    return getattr(store, verb)(*by_place, **arguments)
