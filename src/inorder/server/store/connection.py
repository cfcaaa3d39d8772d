"""One connection of a program elsewhere: its owner in the store, its handles, and its calls one after another.

The identity never comes from the wire (W-5): the server sets owner and user. A handle is a number within this
connection, which stands for a handle of the store, so a client cannot name a handle of another connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import inspect
import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence, Set
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
from uvicorn.protocols.utils import ClientDisconnected

from ...aio.jobs import LaneJob, tell
from ...client.operator_log import ERROR_LENGTH_MAX
from ...errors import ArgumentError, ConnectionBroken, InorderError, LogInRefused, NotOpenFor, StoreError
from ...model.message import Message
from ...model.options import OpenOptions
from ...mq.channels.exits import passed
from ...rules.puts import Program
from ...stores.remote.frames import HEADER, PIECE_MAX, Flag, FrameKind, WireFrame, check_values, pieces
from ...stores.remote.link import CALL_BYTES, HELLO, PROTOCOL, Hello
from ...stores.remote.wire import WireError, decode_call, encode, encode_error
from ...stores.seam.channel_records import ChannelBatch
from ...stores.seam.protocol import LocalStore, Store
from ...support.release import __version__
from ..identity import Identity, ReadObject
from ..logs import LOGGER
from ..settings import Limits
from .brief import BYTES_MAX, NotBrief, get_short, is_brief, messages_of
from .checking import PAGE_MESSAGES, ActToLog, Checker
from .places import SharedStore
from .protocol import StoreProtocol
from .resuming import Resumable

log = logging.getLogger(LOGGER)

CALLS_MAX: Final = 64  # unanswered calls of one connection
PAUSES: Final = (0.01, 0.03, 0.1, 0.3, *[0.5] * 8)  # seconds between looks at a previous connection, about 5 together
SPECIAL: Final = {FrameKind.REOPEN: "open", FrameKind.WATCH: "check_handle"}
NO_HELLO: Final = "a connection must begin with a hello"
NO_LONGER_VALID: Final = "the user or the credential of this connection is no longer valid"
TAKEN: Final = frozenset({FrameKind.CALL, FrameKind.BYE, FrameKind.REOPEN, FrameKind.WATCH})

Call = tuple[str, dict[str, Any]]
Makes = Callable[[LocalStore, str, dict[str, Any]], Any]


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


@functools.cache
def _places(verb: str) -> Sequence[str]:
    """The names of the arguments of a verb that go by position."""
    parameters = inspect.signature(getattr(Store, verb)).parameters.values()
    return [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD][1:]


def made(store: LocalStore, verb: str, arguments: dict[str, Any]) -> Any:
    """Makes a call of the store and returns its answer."""
    by_place = [arguments.pop(name) for name in _places(verb)]
    return getattr(store, verb)(*by_place, **arguments)


def _made_short(store: LocalStore, verb: str, arguments: dict[str, Any]) -> Any:
    return get_short(store, arguments["request"]) if verb == "get" else made(store, verb, arguments)


def _read_call(payload: bytes) -> tuple[str, dict[str, Any]]:
    try:
        check_values(payload)
    except WireError as error:  # which does not pass, as the caller of a StoreError may think
        raise ArgumentError(f"{error.args[0]}: make several calls", argument="call") from None
    return decode_call(payload)


class StoreConnection:
    """A connection; `begin` it with its hello, give it frames, and `end` it.

    Each call goes one of three ways:

        a wait or a watch    a task waits for it, without a thread
        a brief call         the lane makes it: in the loop's own thread, if that need not wait for anybody
        any other call       a task waits for a thread of the pool, which makes it

    Args:
        place: the store object that serves it.
        identity: its user.
        present: looks its user up again, as `Authenticator.now`.
        address: the address of the client, for the log of acts.
        protocol: the WebSocket.
        run: makes a call in a thread of the pool.
        limits: the limits of the server.
        exits: the modules whose functions the server may call as the exits of receivers.
        resumable: the connections of this worker.
    """

    def __init__(
        self,
        place: SharedStore,
        identity: Identity,
        *,
        present: Callable[[Identity, ReadObject], Identity | None],
        address: str,
        protocol: StoreProtocol,
        run: Callable[..., Coroutine[Any, Any, Any]],
        limits: Limits,
        resumable: Resumable,
        exits: Collection[str] = (),
    ) -> None:
        self.services, self.store, self.identity = place.services, place.services.store, identity
        self._lane, self._exits = place.lane, exits
        self._present, self._address, self._protocol, self._run = present, address, protocol, run
        self._limits, self._resumable = limits, resumable
        self._busy = threading.Lock()  # of the call that runs and of the end
        self._loop = asyncio.get_running_loop()
        self.owner = 0
        self._checker = Checker(self.store, 0)
        self._handles: dict[int, Handle] = {}
        self._next_handle = 1
        self._unit = 0  # messages that the unit of work may have
        self._calls: deque[WireFrame] = deque()  # that have not begun
        self._bytes = 0  # of their payloads
        self._is_busy = False  # a call was begun and is not answered, or was answered in this turn of the loop
        self._is_over = self._is_gone = False
        self._wait: Waiting | None = None  # of the call that a task makes
        self._leaving: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    # --- the loop's side

    async def begin(self, payload: bytes) -> None:
        """Answers the hello. Raises: WireError; InorderError, the store cannot be used."""
        try:
            check_values(payload)
            hello = HELLO.decode(payload)
        except msgspec.MsgspecError as error:
            raise WireError(NO_HELLO) from error
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

        Raises: StoreError, if it does not end: the client tries again.
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
        return any(one.program.user == self.identity.user_identifier for one in found)

    def _connect(self, program: str) -> Hello:
        manager = self.store.manager()
        self.owner = self.services.connect(Program(self.identity.user_identifier, program[:256]))
        self._checker = Checker(self.store, self.owner)
        self.store.set_user(self.owner, self.identity.name)
        self._resumable.ends[self.owner] = self._replace
        return Hello(
            PROTOCOL,
            __version__,
            [f"{CALL_BYTES}{self._limits.call}"],
            list(Message.FIELDS),
            store=self.store.identifier(),
            manager=manager.name,
            user=self.identity.name,
            page_messages=PAGE_MESSAGES,
            connection=self.owner,
            resume=self._resumable.secret(self.owner, self.identity.name),
        )

    async def send(self, kind: FrameKind, number: int, payload: bytes, *, has_unit: bool = False) -> None:
        """Sends a payload, in pieces if it is long. Raises: ClientDisconnected."""
        for piece in pieces(kind, number, payload, Flag.HAS_UNIT if has_unit else 0):
            if not self._protocol.send_at_once(piece):
                await self._protocol.send({"type": "websocket.send", "bytes": piece})

    def take(self, frame: WireFrame) -> None:
        """Takes a frame that has arrived. Raises: WireError, the client must not send it."""
        if frame.kind is FrameKind.END_WAITS:
            if self._wait is not None and self._wait.ends():
                self._spawn(self._end_waits())
            return
        if frame.kind not in TAKEN:
            raise WireError(f"a client must not send a frame of kind {frame.kind.name}")
        self._bytes += len(frame.payload)
        if len(self._calls) >= CALLS_MAX or self._bytes > self._limits.call:
            raise WireError(f"at most {CALLS_MAX} calls with {self._limits.call:,} bytes may be unanswered")
        self._calls.append(frame)
        if frame.kind is FrameKind.BYE and self._leaving is None:
            self._leaving = self._spawn(self._run(self.end))  # the owner ends even while it waits
        if not self._is_busy:
            self._next()

    def _next(self) -> None:
        self._is_busy = bool(self._calls) and not self._is_over
        if not self._is_busy:
            return
        frame = self._calls.popleft()
        self._bytes -= len(frame.payload)
        lane = self._lane
        if lane is None or lane.is_held_up or frame.kind is not FrameKind.CALL or len(frame.payload) > BYTES_MAX:
            self._begin_slowly(frame)
            return
        try:
            call = _read_call(frame.payload)
            job = lane.submit(partial(self._made_briefly, *call)) if is_brief(*call, self._unit) else None
        except Exception as error:  # noqa: BLE001 - answered
            self._reply(frame, self._failed(error))
            return
        if job is None:
            self._begin_slowly(frame, call)
        else:
            job.when_over(partial(self._is_made, frame, call))

    def _is_made(self, frame: WireFrame, call: Call, job: LaneJob[Answered | None]) -> None:
        """After a brief call."""
        if self._is_over:
            return
        try:
            answer = job.answer()
        except Exception as error:  # noqa: BLE001 - answered
            answer = self._failed(error)
        if answer is None:
            self._begin_slowly(frame, call)
        else:
            self._reply(frame, answer)

    def _reply(self, frame: WireFrame, answer: Answered) -> None:
        """Answers a call, and begins the next one in the next turn of the loop, so that other connections get their
        turn.
        """
        size, flags = len(answer.payload), Flag.HAS_UNIT if answer.has_unit else 0
        if size <= PIECE_MAX and self._protocol.send_at_once(
            HEADER.pack(answer.kind, flags, 0, frame.number) + answer.payload
        ):
            self._loop.call_soon(self._go_on)
        else:
            self._spawn(self._answer(frame, answer))

    async def _answer(self, frame: WireFrame, answer: Answered) -> None:
        with contextlib.suppress(ClientDisconnected):
            await self.send(answer.kind, frame.number, answer.payload, has_unit=answer.has_unit)
        self._is_gone |= frame.kind is FrameKind.BYE
        self._go_on()

    def _go_on(self) -> None:
        """After an answer: begins the next call, or ends a connection whose owner is gone; its client makes another."""
        if self._is_gone:
            self._is_over = True
            self._protocol.wake()
        self._next()

    def _begin_slowly(self, frame: WireFrame, call: Call | None = None) -> None:
        self._wait = Waiting(self._loop)
        self._spawn(self._serve(frame, call, self._wait))

    async def _serve(self, frame: WireFrame, call: Call | None, waiting: Waiting) -> None:
        """Makes a call that is not brief, and answers it."""
        try:
            answer = await self._made_slowly(frame, call, waiting)
        except ClientDisconnected:
            return
        except Exception as error:  # noqa: BLE001 - answered
            answer = self._failed(error)
        self._wait = None
        await self._answer(frame, answer)

    async def _made_slowly(self, frame: WireFrame, call: Call | None, waiting: Waiting) -> Answered:
        if self._leaving is not None and frame.kind is FrameKind.BYE:
            await asyncio.shield(self._leaving)
            return Answered(FrameKind.ANSWER, b"")
        if call is None:
            is_short = len(frame.payload) <= BYTES_MAX
            call = _read_call(frame.payload) if is_short else await self._run(_read_call, frame.payload)
        verb, arguments = call
        if frame.kind in SPECIAL and verb != SPECIAL[frame.kind]:
            raise WireError(f"a frame of kind {frame.kind.name} must call {SPECIAL[frame.kind]}, not {verb}")
        if verb == "wait" or frame.kind is FrameKind.WATCH:
            return await self._waited(frame, verb, arguments, waiting)
        reopens = frame.number if frame.kind is FrameKind.REOPEN else None
        answer: Answered = await self._run(self._make, verb, arguments, reopens)
        return answer

    async def _waited(self, frame: WireFrame, verb: str, arguments: dict[str, Any], waiting: Waiting) -> Answered:
        """Waits without a thread: the store calls back, for a watch also at each change."""
        if frame.kind is FrameKind.WATCH:
            await self._run(self._begin_watch, arguments, waiting.tell)
        else:
            await self._run(self._begin_wait, arguments, waiting.tell)
        if waiting.begins():
            await self._end_waits()
        while not await waiting.is_over():
            await self.send(FrameKind.EVENT, frame.number, b"")
        found = waiting.outcome[0]
        if isinstance(found, BaseException):
            raise found
        if sum(len(one.body) for one in found.messages) <= BYTES_MAX:
            return self._answered(verb, arguments, found)
        answer: Answered = await self._run(self._answered, verb, arguments, found)
        return answer

    async def _end_waits(self) -> None:
        with contextlib.suppress(InorderError):  # the connection has ended
            await self._run(self.store.end_waits, self.owner)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def stop(self) -> None:
        """Answers no more calls."""
        self._is_over = True
        tasks = [*self._tasks]
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- in a thread, or in the loop's

    def _made_briefly(self, verb: str, arguments: dict[str, Any], _: object) -> Answered | None:
        """Makes a brief call. None: nothing has happened, because the answer is too long."""
        try:
            with self._in_call(waits=False):  # the ending thread may wait for the store, held here
                return self._made(verb, arguments, None, _made_short)
        except NotBrief:
            return None
        except Exception as error:  # noqa: BLE001 - answered; the lane itself has lost nothing
            return self._failed(error)

    @contextlib.contextmanager
    def _in_call(self, *, waits: bool = True) -> Iterator[None]:
        """Holds up the end of the connection. Raises: ConnectionBroken, it has ended; NotBrief, it is just ending."""
        if not self._busy.acquire(blocking=waits):
            raise NotBrief
        try:
            if not self.owner:
                raise ConnectionBroken("the connection has ended: connect again")
            yield
        finally:
            self._busy.release()

    def _make(self, verb: str, arguments: dict[str, Any], reopens: int | None) -> Answered:
        with self._in_call():
            return self._made(verb, arguments, reopens)

    def _made(self, verb: str, arguments: dict[str, Any], reopens: int | None, makes: Makes = made) -> Answered:
        if reopens is not None and (not 0 < reopens < self._next_handle or reopens in self._handles):
            raise WireError("only a handle of an earlier connection can be opened again")
        self._look_up()
        arguments, act = self._checked(verb, arguments)
        with nullcontext() if act is None else self._logged(act):
            answer = makes(self.store, verb, self._filled(verb, arguments))
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
        return self._answered(verb, arguments, self._checker.shown(verb, arguments, answer, self.identity))

    def _look_up(self, read: ReadObject | None = None) -> None:
        """Looks the user up again. Raises: LogInRefused, the user or the credential is no longer valid."""
        found = self._present(self.identity, read or self._attributes)
        if found is None:
            raise LogInRefused(NO_LONGER_VALID)
        self.identity = found

    def _attributes(self, kind: str, name: str) -> str:
        return self.store.object(kind, name).attributes

    def _checked(self, verb: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], ActToLog | None]:
        """The arguments with the store's handles, and the act for the log of acts.

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
        if verb == "receive":
            batch: ChannelBatch | None = self.store.with_bodies(arguments["batch"])
            if batch is not None:
                receiver = self._checker.receiver(batch.sender.channel)
                arguments = {**arguments, "batch": passed(batch, receiver, self._exits)}
        return self._checker.filled(verb, arguments, self.identity, leases_max=self._limits.leases)

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
            self._look_up()
            known, _ = self._checked("wait", arguments)

            def may(read: ReadObject) -> None:
                self._look_up(read)
                self._checker.demand("wait", known, self.identity)

            self.store.wait_apart(self._filled("wait", known)["request"], tell, may)

    def _begin_watch(self, arguments: dict[str, Any], tell: Callable[..., None]) -> None:
        with self._in_call():
            handle = self._opened(arguments["handle"])
            if not (handle.options.browse or handle.options.input):
                raise NotOpenFor("only a handle that is open for input or browse can be watched")

            def changed() -> None:
                self._look_up()
                self._checker.demand_watch(handle.number, self.identity)
                tell()

            self.store.watch_apart(handle.number, changed, tell)

    def _answered(self, verb: str, arguments: dict[str, Any], value: Any) -> Answered:
        has_unit = self._has_unit()
        self._unit = self._unit + messages_of(verb, arguments) if has_unit else 0
        return Answered(FrameKind.ANSWER, encode(value), has_unit)

    def _failed(self, error: Exception) -> Answered:
        if not isinstance(error, InorderError):
            log.error("an unexpected error in a call of a program elsewhere", exc_info=error)
            error = InorderError("an unexpected error, which the server's log has")
        if isinstance(hindering := error.data.get("handles"), Set):  # the client can close its own
            own = {one.number: number for number, one in self._handles.items()}
            error.data["handles"] = {own.get(number, -number) for number in hindering}
        return Answered(FrameKind.ERROR, encode_error(self.identity.shown(error)), self._has_unit())

    def _has_unit(self) -> bool:
        try:
            return self.store.has_unit(self.owner)
        except ConnectionBroken:
            self._is_gone |= bool(self.owner)  # the store has lost it
            return False

    def _replace(self) -> None:
        tell(self._loop, self._protocol.wake)
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


class Waiting:
    """The wait of a call, if it waits.

    Attributes:
        outcome: the value with which it ended; empty until then.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._happened = loop, asyncio.Event()
        self.outcome: list[Any] = []
        self._has_begun = self._ends = False

    def tell(self, *outcome: Any) -> None:
        """From any thread: something has changed, or, with an outcome, this is the end."""
        self.outcome.extend(outcome)
        tell(self._loop, self._happened.set)

    def begins(self) -> bool:
        """Notes that the store knows it. Returns whether it is to end now."""
        self._has_begun = True
        return self._ends

    def ends(self) -> bool:
        """Notes that it is to end. Returns whether the store is to end it now."""
        is_first, self._ends = not self._ends, True
        return is_first and self._has_begun

    async def is_over(self) -> bool:
        """Waits until something happens. Returns whether it is the end."""
        if not self.outcome:
            await self._happened.wait()
            self._happened.clear()
        return bool(self.outcome)
