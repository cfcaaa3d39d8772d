"""`RemoteStore`: the verbs of a store, made by a server elsewhere (W-2 to W-4).

One object is one connection to the server, and one connection of the queue manager there: its handles and its unit of
work end with it. If the connection was lost, the next call reconnects, unless it depends on the lost unit of work. The
handles are then opened again under their numbers; their locks, marks and entered groups are gone. A lost unit of work
is backed out, and each call raises an error that says so until the program has backed out, too.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, repeat
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ...errors import (
    CallerError,
    ConnectionBroken,
    InorderError,
    OutcomeUnknown,
    Reason,
    StagingGone,
    StoreError,
    bad_argument,
)
from ...model.message import Message, UniqueId
from ...model.options import OpenOptions
from ...rules.puts import Program
from ...rules.store_verbs import FILLED_IN, OBJECT_KINDS, VERBS, lost_of
from ...support.clock import Clock, SystemClock
from ...support.release import __version__
from ..seam.changes import Changes
from ..seam.channel_records import BODIES_MAX, BODY_PIECE_MAX, BodyPiece, ChannelBatch, Receipt
from ..seam.gathering import Gathering
from ..seam.protocol import Store
from ..seam.records import GetRequest, Leased, LedgerKey, Opened, PutOutcome, PutRequest, Settled, Staged
from ..seam.telemetry import Telemetry
from ..seam.views import LookRequest, MessageView
from .address import RemoteAddress
from .frames import FrameKind
from .link import PROTOCOL, Hello, Lost, LostBefore, RemoteLink
from .reporting import reporting
from .wire import decode_answer, decode_error, encode_call

log = logging.getLogger("inorder.stores")

JITTER: Final = random.SystemRandom()  # the program's own random numbers stay reproducible
PAUSES: Final = (0.05, 2.0)  # seconds between attempts to connect, the first and the longest
AGAIN: Final = 3  # attempts to make a call that may be repeated
UNIT_ENDS: Final = ("settle", "prepare")  # after these there is no unit of work, whatever their outcome
RESERVED: Final = 1_000  # unique ids at a time
NO_IDS: Final = range(0)
LONG: Final[Mapping[str, str]] = MappingProxyType({"put": "messages", "stage": "columns", "receive": "batch"})
"""The arguments that may be too long for a call."""


class OpenedElsewhere(NamedTuple):
    """How to open a handle again."""

    queue_name: str
    options: OpenOptions
    manager: str


class RemoteStore:
    """A store on a server. `seam.protocol` documents its verbs; most of them are made at the end of this file.

    Args:
        address: the server, and the credentials.
        program: the name that the server records with the connection until `connect` gives it one.
        reconnects: for how many seconds a call tries to make a lost connection again; 0: a lost connection stays lost.

    Attributes:
        user: the user as which the server knows this process.

    Raises: StoreError, the server cannot be reached; LogInRefused 2035; TooManyLogIns.
    """

    def __init__(self, address: RemoteAddress, program: str = "", *, reconnects: float = 30.0) -> None:
        self.address, self.path, self.changes = address, str(address), Changes(are_elsewhere=True)
        self.clock: Clock = SystemClock()
        self.shared: object | None = None
        self.telemetry = Telemetry(
            self.changes, Gathering(), lambda: {"store": self.path, "manager": self.hello.manager}
        )
        self._program, self._reconnects = program, reconnects
        self.handles: dict[int, OpenedElsewhere] = {}
        self._first_handle = 1
        self._ids = NO_IDS  # reserved on the present link
        self._has_owner = self._lost_unit = self._is_leased = self._waits = self._is_closed = False
        self._is_repeat = False  # whether an earlier attempt of the last call may have happened
        self._resume = b""
        self._link = RemoteLink(address, self._own_hello())
        self.hello, self._resume = self._link.hello, self._link.hello.resume
        self.page_messages, self.user = self.hello.page_messages, self.hello.user

    def again(self) -> RemoteStore:
        return RemoteStore(self.address, self._program, reconnects=self._reconnects)

    def _own_hello(self) -> Hello:
        fields = list(Message.FIELDS)
        return Hello(PROTOCOL, __version__, [], fields, self._program, self._first_handle, resume=self._resume)

    # --- the connection

    def connect(self, program: Program) -> int:
        """See `Store.connect`. Raises: CallerError, this object has a connection already: each needs its own."""
        if self._has_owner:
            raise CallerError(
                "a store elsewhere has one connection for each object: connect by its URL",
                reason=Reason.FUNCTION_NOT_SUPPORTED,
            )
        self._has_owner = True
        if program.name != self._program:
            self._program = program.name
            self._link.drop()
            self._link = self._again()
        return self._link.hello.connection

    def disconnect(self, owner: int) -> None:
        del owner
        self.close_store()

    def close_store(self) -> None:
        """See `LocalStore.close_store`. Ends the connection."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self._link.ask(FrameKind.BYE)
        except Lost:  # the server also backs out when it notices the end
            pass
        finally:
            self._link.drop()

    def end_waits(self, owner: int) -> bool:
        del owner
        waits = self._waits and self._link.has_asked  # otherwise it would arrive before the wait
        if waits:
            try:
                self._link.say(FrameKind.END_WAITS)
            except Lost:
                return False
        return waits

    def has_unit(self, owner: int) -> bool:
        """See `Store.has_unit`: the last answer contained it."""
        del owner
        return self._lost_unit or self._link.has_unit

    # --- calls

    def _call(
        self,
        verb: str,
        arguments: Sequence[Any],
        keywords: dict[str, Any],
        on_event: Callable[[], object] | None = None,
        remade: Callable[[], Sequence[Any]] | None = None,
    ) -> Any:
        """Makes a call; repeats it if the connection was lost and the call is repeatable.

        Args:
            remade: makes the arguments for each attempt.
        """
        if "kind" in VERBS[verb].also and named(verb, arguments, keywords)["kind"] not in OBJECT_KINDS:
            raise self._refused("reading or changing users and tokens", USERS)
        call_kind, self._is_repeat = FrameKind.CALL if on_event is None else FrameKind.WATCH, False
        is_long = verb == "wait" or on_event is not None  # such a call is repeated after any number of losses
        for left in repeat(AGAIN) if is_long else reversed(range(AGAIN)):
            if remade is not None:
                arguments = remade()
            self._lost_unit |= self._link.is_lost and self._link.has_unit
            if self._lost_unit:
                return self._without_unit(verb, arguments)
            payload, link = encode_call(verb, arguments, keywords), self._linked()
            if len(payload) > link.call_bytes:
                allowed = f"at most {link.call_bytes:,} bytes in one call to {self.path}, with all fields"
                raise bad_argument(LONG.get(verb, verb), len(payload), allowed)
            had_unit = link.has_unit
            try:
                kind, answer = link.call(payload, on_event, kind=call_kind)
            except Lost as lost:
                is_before = isinstance(lost, LostBefore)
                self._lost_unit = link.has_unit = had_unit and (is_before or verb not in UNIT_ENDS)
                if not is_before and self._lost_of(verb, arguments, keywords) == "unknown":
                    raise self._unknown(verb, arguments) from lost
                if had_unit:
                    return self._without_unit(verb, arguments)
                if not left or not self._reconnects:
                    raise self._broken() from lost
                self._is_repeat |= not is_before
                continue
            except BaseException:  # the caller's function raised it, or it came from outside: then the link is dropped
                if link.is_lost:
                    self._lost_unit = link.has_unit = had_unit and verb not in UNIT_ENDS
                raise
            if kind == FrameKind.ERROR:
                error = decode_error(answer)
                self._lost_unit = had_unit and isinstance(error, ConnectionBroken) and not link.has_unit
                raise error
            return decode_answer(verb, answer)
        raise AssertionError("the last attempt returns or raises")

    def _lost_of(self, verb: str, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> str:
        return lost_of(verb, named(verb, arguments, keywords), leased=self._is_leased)

    def _without_unit(self, verb: str, arguments: Sequence[Any]) -> Any:
        """The answer to a call after the loss of a unit of work. Raises: ConnectionBroken, unless it backs out."""
        backs_out = verb == "settle" and arguments[0] == "back_out" and not self._is_leased
        if not backs_out and verb != "leave_lease":
            raise self._broken()
        self._lost_unit = self._link.has_unit = False
        return True if backs_out else None

    def _broken(self) -> ConnectionBroken:
        rest = ""
        if self._lost_unit and self._is_leased:
            rest = ", which leaves the lease as it is: leave it, too, and resume it"
        elif self._lost_unit:
            rest = ", and its unit of work was backed out: back out, too, and begin it again"
        return ConnectionBroken(f"the connection to {self.path} was lost{rest}")

    def _unknown(self, verb: str, arguments: Sequence[Any]) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"the connection to {self.path} was lost before the answer to {verb} came, so it may have happened or not: "
            "look, and repeat it if it has not",
            uids=self._uids(arguments[0]) if verb == "put" else (),
        )

    def _linked(self) -> RemoteLink:
        """Returns the link, reconnected if it was lost. Raises: ConnectionBroken, if that fails."""
        if not self._link.is_lost:
            return self._link
        if self._is_closed or not self._reconnects:
            raise self._broken()
        ends_at = time.monotonic() + self._reconnects
        for pause in pauses():
            try:
                self._link, self._ids = self._again(), NO_IDS
            except (InorderError, Lost) as error:
                if not isinstance(error, StoreError | Lost) or time.monotonic() + pause > ends_at:
                    raise self._broken() from error
                log.info("%s cannot be reached; the next attempt is in %.2f s: %s", self.path, pause, error)
                time.sleep(pause)
            else:
                break
        return self._link

    def _again(self) -> RemoteLink:
        link = RemoteLink(self.address, self._own_hello())
        self._resume = link.hello.resume
        try:
            if link.hello.store != self.hello.store:
                raise CallerError(f"{self.path} has another store now", reason=Reason.CONNECTION_BROKEN)
            for number, one in tuple(self.handles.items()):
                payload = encode_call("open", (one.queue_name, one.options), {"manager": one.manager})
                kind, answer = link.call(payload, kind=FrameKind.REOPEN, number=number)
                if kind == FrameKind.ERROR:
                    error = decode_error(answer)
                    if isinstance(error, StoreError):
                        raise error
                    log.warning("queue %s could not be opened again: %s", one.queue_name, error)
                    del self.handles[number]
        except BaseException:
            link.drop()
            raise
        return link

    def settle(self, owner: int, outcome: str, later: Any = None, *, moves: bool = False, decides: str = "") -> bool:
        if not decides and not self.has_unit(owner):
            return False
        try:
            has_acted = bool(
                self._call("settle", (outcome, later), {"moves": moves} | ({"decides": decides} if decides else {}))
            )
        finally:
            self._is_leased = self._is_leased and self.has_unit(owner)
        return has_acted

    # --- leases, which outlive the connection

    def enter_lease(self, owner: int, name: str, user: str | None) -> Leased:
        del owner, user
        leased: Leased = self._call("enter_lease", (), {"name": name})
        self._is_leased = True
        return leased

    def leave_lease(self, owner: int) -> None:
        del owner
        self._call("leave_lease", (), {})
        self._is_leased = False

    # --- puts, with unique ids that are known before they are sent

    def put(self, request: PutRequest) -> PutOutcome:
        options, needed = request.options, len(request.messages)
        needs = not request.in_unit and options.deduplicate is None and options.uid is None and 0 < needed <= RESERVED

        def remade() -> Sequence[Any]:  # ids are reserved for one link
            return (request._replace(uid_number=self._reserve(needed)),)

        outcome: PutOutcome = self._call("put", (request,), {}, remade=remade if needs else None)
        return outcome

    def _reserve(self, count: int) -> int:
        """Returns the first of some unused numbers of unique ids, which it asks for in blocks."""
        self._linked()
        if len(self._ids) < count:
            first: UniqueId = self._call("reserve_numbers", (RESERVED,), {})
            self._origin, self._ids = first.origin, range(first.number, first.number + RESERVED)
        number, self._ids = self._ids[0], self._ids[count:]
        return number

    def _uids(self, request: PutRequest) -> Sequence[UniqueId]:
        """Returns the unique ids that a put's messages have if it has happened, as far as they are known."""
        if not request.uid_number:
            return () if request.options.uid is None else (request.options.uid,)
        return [UniqueId(self._origin, request.uid_number + nth) for nth in range(len(request.messages))]

    def settle_staging(
        self, key: LedgerKey, stagings: Sequence[Staged], after: str | None = None, owner: int | None = None
    ) -> Settled:
        """See `BulkStore.settle_staging`. Also raises: OutcomeUnknown, after a loss: look in the ledger."""
        del owner
        try:
            settled: Settled = self._call("settle_staging", (), {"key": key, "stagings": stagings, "after": after})
        except StagingGone as gone:
            if not self._is_repeat:
                raise
            raise self._unknown("settle_staging", ()) from gone
        return settled

    # --- a channel's batches, with long bodies piece by piece

    def receive(self, batch: ChannelBatch, *, user: str | None = None) -> Receipt:
        """See `Store.receive`. After a loss, long bodies of a numbered batch continue where they stopped."""
        del user
        messages, held, room = list(batch.messages), set(batch.held), BODIES_MAX
        for position, message in enumerate(messages) if batch.number else ():
            if BODY_PIECE_MAX < len(message.body) <= room:
                self._send_body(batch, position, message.body)
                messages[position] = message.with_values(body=b"")
                held.add(position)
                room -= len(message.body)
        receipt: Receipt = self._call("receive", (batch._replace(messages=messages, held=frozenset(held)),), {})
        return receipt

    def _send_body(self, batch: ChannelBatch, position: int, body: bytes) -> None:
        piece = BodyPiece(batch.digest, position, hashlib.sha256(body).digest(), len(body), 0, b"")
        while (there := self._call("receive_piece", (batch.sender, batch.epoch, piece), {})) < len(body):
            piece = piece._replace(first=there, data=body[there : there + BODY_PIECE_MAX])

    # --- handles, which are opened again after a loss

    def open(
        self, owner: int, queue: str, options: OpenOptions, *, manager: str = "", dynamic_name: str = "*"
    ) -> Opened:
        keywords = {"manager": manager, "dynamic_name": dynamic_name}
        del owner
        opened: Opened = self._call("open", (queue, options), keywords)
        self.handles[opened.handle] = OpenedElsewhere(opened.name, options, manager)
        self._first_handle = max(self._first_handle, opened.handle + 1)
        return opened

    def extend(self, handle: int, options: OpenOptions) -> Opened:
        opened: Opened = self._call("extend", (handle, options), {})
        self.handles[handle] = self.handles[handle]._replace(options=options)
        return opened

    def close(self, handle: int, *, delete: bool = False, purge: bool = False) -> None:
        delete = delete or purge
        try:
            self._call("close", (handle,), {"delete": delete, "purge": purge})
        except ConnectionBroken:
            if delete or handle in self.handles:  # otherwise it could not be opened again
                raise
        self.handles.pop(handle, None)

    def keep_handles(self, owner: int, handles: Sequence[int]) -> None:
        del owner
        self._call("keep_handles", (handles,), {})
        self.handles = {number: one for number, one in self.handles.items() if number in handles}

    # --- waits

    def wait(self, request: GetRequest) -> Any:
        options, attempts = request.options, count()
        ends_at = time.monotonic() + options.wait

        def remade() -> Sequence[Any]:
            if not next(attempts):
                return (request,)
            left = max(0.0, ends_at - time.monotonic())
            return (request._replace(options=replace(options, wait=left)),)

        self._waits = True
        try:
            return self._call("wait", (request,), {}, remade=remade)
        finally:
            self._waits = False

    def watch(self, handle: int, changed: Callable[[], object]) -> None:
        self._waits = True
        try:
            self._call("check_handle", (handle,), {}, changed)
        finally:
            self._waits = False

    # --- listings, whose pages the server may make smaller

    def look(self, request: LookRequest) -> Sequence[MessageView]:
        found: list[MessageView] = self._call("look", (request,), {})
        page = found
        while page and len(found) < request.most:
            page = self._call("look", (replace(request, after=page[-1].position, most=request.most - len(found)),), {})
            found += page
        return found

    # --- calls of `LocalStore`

    def refuse_lost(self) -> None:
        """Does nothing: a lost connection is made again."""

    def commits(self) -> None:
        """Returns None: see `Host.commits`."""

    def promises(self) -> Unpromised:
        """See `LocalStore.promises`: each call returns after its effect is on the server's disk."""
        return Unpromised()

    def identifier(self) -> str:
        return self.hello.store

    def __getattr__(self, name: str) -> Any:
        if name in INSTEAD:
            raise self._refused(f"the call {name}", INSTEAD[name])
        raise AttributeError(name)

    def _refused(self, what: str, instead: str) -> CallerError:
        text = f"{what} is not possible for a store elsewhere ({self.path}): {instead}"
        return CallerError(text, reason=Reason.FUNCTION_NOT_SUPPORTED)


OF_A_SERVER: Final = "only a server makes this call, in the process that has the store open"
INSTEAD: Final[Mapping[str, str]] = MappingProxyType({
    "backup": "run 'inorder backup' on the machine that has the store",
    "rename": "stop the server, and run 'inorder rename' on the machine that has the store",
    "stop": "stop the server itself; it would end every other program's connection",
    "acts": "run 'inorder acts' on the machine that has the store, or open the log in the console of its server",
    "with_bodies": OF_A_SERVER,
    "get_if": "get the message in a unit of work, and back out if it must stay",
    "set_user": "the user of a connection is that of its token or certificate",
    "begin_act": OF_A_SERVER,
    "end_act": OF_A_SERVER,
    "try_log_in": OF_A_SERVER,
    "forgive_log_in": OF_A_SERVER,
    "wait_apart": OF_A_SERVER,
    "watch_apart": OF_A_SERVER,
    "users_of": OF_A_SERVER,
    "end_dead_processes": OF_A_SERVER,
    "sample": OF_A_SERVER,
    "history": "look at the queue in the console of its server, or ask it over HTTP",
})  # fmt: skip
"""The calls that a store elsewhere lacks, and what to do instead."""

USERS: Final = "run 'inorder user' and 'inorder token' on the machine that has the store"


class Unpromised:
    """`Promises` of a store that defers nothing."""

    count, is_empty, is_quick = 0, True, True

    def keep(self) -> None:
        """Does nothing."""

    def take_puts(self) -> Sequence[Any]:
        """Returns nothing: no put was deferred."""
        return ()

    def at_once(self, call: Callable[[], object]) -> None:
        """Calls nothing: the store is elsewhere."""

    def __enter__(self) -> object:
        return self

    def __exit__(self, *_: object) -> None:
        """Does nothing."""


def pauses() -> Iterator[float]:
    """Yields the seconds between attempts to connect: growing, and different for the clients of a server."""
    pause, longest = PAUSES
    while True:
        yield pause * JITTER.uniform(0.5, 1.0)
        pause = min(2 * pause, longest)


def named(verb: str, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the arguments of a call, without those that do not travel, by their names."""
    names = [one for one in inspect.signature(getattr(Store, verb)).parameters if one not in FILLED_IN.get(verb, ())]
    return {**dict(zip(names[1:], arguments, strict=False)), **keywords}


def _made(verb: str) -> Callable[..., Any]:
    if verb in FILLED_IN:  # without these arguments

        def call(self: RemoteStore, *arguments: Any, **keywords: Any) -> Any:
            given = inspect.signature(getattr(Store, verb)).bind(self, *arguments, **keywords).arguments
            left_out = ("self", *FILLED_IN[verb])
            return self._call(verb, (), {name: one for name, one in given.items() if name not in left_out})

    else:

        def call(self: RemoteStore, *arguments: Any, **keywords: Any) -> Any:
            return self._call(verb, arguments, keywords)

    call.__name__, call.__qualname__, call.__doc__ = verb, f"RemoteStore.{verb}", f"See `Store.{verb}`."
    return call


for _verb in VERBS:
    setattr(RemoteStore, _verb, reporting(_verb, vars(RemoteStore).get(_verb) or _made(_verb)))
