"""One request: its address, query, headers and body, read within the limits; and the state that all requests share."""

from __future__ import annotations

import asyncio
import functools
import json
import math
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.types import Message, Receive

from .. import aio
from ..client.manager import QueueManager
from ..errors import Reason
from ..rules.authorities import Authority
from .connected_clients import ConnectedClients
from .identity import Authenticator, Identity
from .problems import NOT_AUTHORIZED, Problem, problem
from .sampling import Samples
from .sessions import Sessions
from .settings import Settings

T = TypeVar("T")
QUERY_FIELDS_MAX = 32
CERTIFICATE_COUNTS: Final = "certificate_counts"  # in a request's state, if its connection has a client certificate
MEDIA_TYPES_KEPT: Final = 64  # that need not be read once more
NO_BODY: Final = "this request takes no body: use the address, the query and the headers"
SLOW_SECONDS = 1.0  # after a body that took longer, it is asked again who the user is
AT_ONCE = 65_536  # bytes of JSON that are read in the loop; more in a thread
DONE_TO: Final[Mapping[Authority, str]] = {
    "put": "put to",
    "get": "get from",
    "browse": "browse from",
    "inquire": "inquire status for",
    "set": "set",
    "display": "display",
    "alter": "alter",
    "clear": "clear",
    "control": "control",
    "administer": "administer",
}


class Room:
    """A bound for something that is in use at once."""

    def __init__(self, what: str, most: int) -> None:
        self._what, self._most, self.used = what, most, 0

    @contextmanager
    def taken(self, amount: int = 1) -> Iterator[None]:
        """Takes some of it. Raises: Problem 503, not enough is left."""
        if self.used + amount > self._most:
            raise problem("INWB0008E", self._what, f"{self._most:,}", Retry_After="1")
        self.used += amount
        try:
            yield
        finally:
            self.used -= amount


@dataclass(slots=True)
class Context:
    """What all requests to one worker share.

    Args:
        name: of the queue manager.
        stopping: is set when the server stops.
    """

    settings: Settings
    qm: aio.QueueManager
    name: str
    authenticator: Authenticator
    sessions: Sessions
    stopping: asyncio.Event
    waits: Room = field(init=False)
    bodies: Room = field(init=False)
    transfers: Room = field(init=False)
    subscribers: Room = field(init=False)
    samples: Samples = field(init=False)
    connected_clients: ConnectedClients = field(init=False)

    def __post_init__(self) -> None:
        self.waits = Room("waiting gets", self.settings.limits.waits)
        self.bodies = Room("bytes of bodies", self.settings.limits.bodies)
        self.transfers = Room("Arrow streams", self.settings.limits.transfers)
        self.subscribers = Room("streams of events", self.settings.limits.subscribers)
        self.samples = Samples(self.qm)
        self.connected_clients = ConnectedClients(self.authenticator.again)


@dataclass(slots=True, kw_only=True)
class Call:
    """A request, with its place in the interface.

    Args:
        version: of IBM's interface, 1 to 3; 0: of ours.
        names: what stands in the address, by the names of its pattern.
    """

    context: Context
    request: Request
    version: int
    names: Mapping[str, str]
    identity: Identity
    _headers: dict[bytes, list[bytes]] = field(init=False, default_factory=dict)
    _demanded: list[tuple[Authority, str]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        for name, value in self.request.scope["headers"]:
            self._headers.setdefault(name, []).append(value)

    # --- who, and what

    def demand(self, authority: Authority, queue: str = "") -> None:
        """Raises: Problem 403, the user may not do this."""
        if not self.identity.may(authority, queue):
            what = queue or self.context.name
            raise problem("MQWB0103E", DONE_TO[authority], what, reason=NOT_AUTHORIZED)
        self._demanded.append((authority, queue))

    async def demand_again(self, authority: Authority, queue: str = "") -> None:
        """After a wait: the same of the user as they are now. Raises: Problem 401, they are out; 403."""
        await self.ask_again()
        self.demand(authority, queue)

    @property
    def session_ends_at(self) -> float:
        """When the session ends by which the user came in, seconds since 1970; infinity: it was not by a session."""
        cookie = self.request.cookies.get(self.context.settings.cookie)
        if cookie is None or b"authorization" in self._headers or self.identity.subject:
            return math.inf
        return self.context.sessions.ends_at(cookie)

    async def ask_again(self) -> None:
        """After a wait: who the user is now, and what they may do.

        Raises: Problem 401, they, the session or the certificate of the connection are out.
        """
        certificate_counts = self.request.scope.get("state", {}).get(CERTIFICATE_COUNTS)
        if certificate_counts is not None and not certificate_counts():
            raise problem("MQWB0104E", self.request.url.path)
        if self.context.sessions.is_over(self.session_ends_at):
            raise problem("MQWB0112E", self.context.settings.cookie)
        now = await self.context.authenticator.again(self.identity)
        if now is None:
            raise problem("MQWB0104E", self.request.url.path)
        self.identity = now

    @property
    def queue(self) -> str:
        return self.names["queue"]

    def check_manager(self) -> None:
        """Raises: Problem 404, the address names another queue manager."""
        if self.names["qmgr"] != self.context.name:
            raise problem("MQWB0009E", self.names["qmgr"], reason=Reason.Q_MGR_NAME_ERROR.value)

    async def run(self, work: Callable[[QueueManager], T]) -> T:
        """What `work` returns, on a connection."""
        return await self.context.qm.run(work)

    # --- the query

    def query(self, *known: str) -> dict[str, str]:
        """The parameters of the query. Raises: Problem 400, one is unknown, comes twice, or cannot be read."""
        text = self.request.scope["query_string"]
        if not text:
            return {}
        try:
            pairs = parse_qsl(
                text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=QUERY_FIELDS_MAX
            )
        except ValueError as error:  # UnicodeDecodeError is one
            raise problem("INWB0003E", "?", f"cannot be read: {error}") from None
        found: dict[str, str] = {}
        for name, value in pairs:
            if name not in known:
                raise problem("INWB0003E", name, f"is unknown; known are: {', '.join(known) or 'none'}")
            if name in found:
                raise problem("INWB0003E", name, "is given twice")
            found[name] = value
        return found

    # --- headers

    def header(self, name: str) -> str | None:
        """A header that may come once. Raises: Problem 400, it comes twice."""
        values = self.headers(name)
        if len(values) > 1:
            raise problem("MQWB0302E", name, ", ".join(values), "it is given twice")
        return values[0] if values else None

    def headers(self, name: str) -> Sequence[str]:
        """All values of a header, as UTF-8 where they are that, else as Latin-1."""
        return [_text(value) for value in self._headers.get(name.lower().encode(), ())]

    def header_names(self, *beginnings: bytes) -> list[str]:
        """Their names, sorted; of those that begin so, if beginnings are given."""
        chosen = [name for name in self._headers if name.startswith(beginnings)] if beginnings else self._headers
        return sorted(name.decode("latin-1") for name in chosen)

    # --- the body

    async def body(self, most: int) -> bytes:
        """The whole body; of at most 0 bytes: there must be none.

        Raises: Problem 400 there is one, 413 too long, 408 too slow, 503 too many at once.
        """
        length = self._length(most)
        if length == 0 or (length is None and b"transfer-encoding" not in self._headers):
            return b""
        return await self._in_time(self._receive(most))

    def _length(self, most: int) -> int | None:
        """As the head says it: HTTP/1.1 has a body if there is a length, or a coding for the transfer.

        Raises: Problem 400, 413.
        """
        given = self._headers.get(b"content-length")
        if given is None or b"transfer-encoding" in self._headers:
            return None
        length = int(given[0]) if given[0].isdigit() and len(given[0]) < 20 else None
        if length is not None and length > most:
            raise _too_long(most)
        return length

    async def _in_time(self, work: Coroutine[Any, Any, T]) -> T:
        """The same; after a body that came slowly the user still may do all that was demanded.

        Raises: Problem 408, the body has not come in time; 401, the user is out meanwhile; 403.
        """
        seconds, began = self.context.settings.limits.body_seconds, time.monotonic()
        try:
            found = await _in_time(work, seconds)
        except asyncio.TimeoutError:
            raise problem("INWB0007E", f"{seconds:g}", Connection="close") from None
        if time.monotonic() - began >= SLOW_SECONDS and self.identity.name:  # nobody has a name yet at a log-in
            await self.ask_again()
            for authority, queue in tuple(dict.fromkeys(self._demanded)):
                self.demand(authority, queue)
        return found

    async def _receive(self, most: int) -> bytes:
        pieces: list[bytes] = []
        size = 0
        with ExitStack() as taken:
            async for piece in self.request.stream():
                size += len(piece)
                if size > most:
                    raise _too_long(most)
                taken.enter_context(self.context.bodies.taken(len(piece)))
                pieces.append(piece)
            return b"".join(pieces)

    async def received(self, most: int, read: Callable[[Receive], Coroutine[Any, Any, None]]) -> None:
        """Has the body read as it comes, through what `read` is called with. Raises: as `body`; what `read` raises."""
        self._length(most)
        with ExitStack() as taken:
            await self._in_time(read(self._counted(most, taken)))

    def _counted(self, most: int, taken: ExitStack) -> Receive:
        size = 0

        async def receive() -> Message:
            nonlocal size
            message = await self.request.receive()
            length = len(message.get("body", b""))
            size += length
            if size > most:
                raise _too_long(most)
            taken.enter_context(self.context.bodies.taken(length))
            return message

        return receive

    async def object(self, most: int | None = None) -> dict[str, Any]:
        """The body, which is a JSON object of at most so many bytes; None: as the limits say.

        Raises: Problem 400, 415; as `body`.
        """
        check_media_type(self, ("application/json",))
        body = await self.body(self.context.settings.limits.json if most is None else most)
        return await asyncio.to_thread(_object, body) if len(body) > AT_ONCE else _object(body)


def has_body(request: Request) -> bool:
    """Whether a request says that it has a body."""
    headers = request.headers
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _too_long(most: int) -> Problem:
    """A body of more bytes than this."""
    if not most:
        return problem("INWB0004E", NO_BODY, Connection="close")
    return problem("INWB0005E", f"{most:,}", Connection="close")


def _object(body: bytes) -> dict[str, Any]:
    try:
        given = json.loads(body.decode(), parse_constant=_no_constant, object_pairs_hook=_each_once)
    except (ValueError, RecursionError) as error:
        raise problem("INWB0004E", f"must be JSON in UTF-8: {error}") from None
    if not isinstance(given, dict):
        raise problem("INWB0004E", "must be a JSON object")
    return given


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; of a key that is there twice nobody could say which value was meant. Raises: Problem 400."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise problem("INWB0004E", f"the key {json.dumps(twice)} appears more than once in an object")
    return found


def check_media_type(call: Call, allowed: tuple[str, ...]) -> None:
    """Raises: Problem 415, the body is of another type, or in another character set than UTF-8."""
    wrong = _wrong_media_type(call.header("content-type") or "", allowed)
    if wrong is not None:
        raise problem(*wrong)


@functools.lru_cache(maxsize=MEDIA_TYPES_KEPT)
def _wrong_media_type(given: str, allowed: tuple[str, ...]) -> tuple[str, str] | None:
    kind, *parameters = (part.strip() for part in given.split(";"))
    if kind.lower() not in allowed:
        return "MQWB0306E", ", ".join(allowed)
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset" and value.strip().strip('"').lower() not in ("utf-8", "utf8"):
            return "MQWB0305E", value
    return None


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


async def _in_time(work: Coroutine[Any, Any, T], seconds: float) -> T:
    """Raises: asyncio.TimeoutError."""
    if sys.version_info < (3, 11):
        return await asyncio.wait_for(work, seconds)
    else:  # noqa: RET505 - without a task, and turns of the loop, of its own; mypy knows the version by the branch
        async with asyncio.timeout(seconds):
            return await work


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
