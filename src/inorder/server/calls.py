"""A request, whose address, query, headers and body are read within the limits; and the state that requests share."""

from __future__ import annotations

import asyncio
import functools
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.types import Message, Receive

from .. import aio
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
CERTIFIED: Final = "certified_connection"  # in the state of a connection with a client certificate
MEDIA_TYPES_KEPT: Final = 64  # headers whose result is kept
NO_BODY: Final = "this request takes no body: use the address, the query and the headers"
SLOW_SECONDS = 1.0  # after a slower body, the user is looked up again
AT_ONCE = 65_536  # bytes of JSON that the loop reads; a thread reads longer JSON
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
CONTEXT: Final = frozenset(  # columns that name the sender of a message
    "user_identifier accounting_token application_identity_data put_application_type put_application_name put_at "
    "application_origin_data".split()
)


class Room:
    """A limit on simultaneous use."""

    def __init__(self, what: str, most: int) -> None:
        self._what, self._most, self.used = what, most, 0

    @contextmanager
    def taken(self, amount: int = 1) -> Iterator[None]:
        """Takes an amount while the block runs. Raises: Problem 503, if not enough is left."""
        if self.used + amount > self._most:
            raise problem("INWB0008E", self._what, f"{self._most:,}", Retry_After="1")
        self.used += amount
        try:
            yield
        finally:
            self.used -= amount


@dataclass(slots=True)
class Context:
    """The state that all requests to a worker share.

    Args:
        name: the name of the queue manager.
        stopping: an event that is set when the server stops.
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
    """A request, its user, and the names in its address.

    Args:
        version: of IBM's interface, 1 to 3; 0 for our own interface.
        names: the values in the address, by the names in its pattern.
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

    # --- the user

    def demand(self, authority: Authority, queue: str = "") -> None:
        """Raises: Problem 403, if the user does not have this authority."""
        if not self.identity.may(authority, queue):
            what = queue or self.context.name
            raise problem("MQWB0103E", DONE_TO[authority], what, reason=NOT_AUTHORIZED)
        self._demanded.append((authority, queue))

    async def demand_again(self, authority: Authority, queue: str = "") -> None:
        """Checks an authority again after a wait. Raises: Problem 401, if the user has been locked out; 403."""
        await self.ask_again()
        self.demand(authority, queue)

    @property
    def session_ends_at(self) -> float:
        """The end of the user's session, in seconds since 1970; infinity if the user did not log in by a session."""
        cookie = self.request.cookies.get(self.context.settings.cookie)
        if cookie is None or b"authorization" in self._headers or self.identity.subject:
            return math.inf
        return self.context.sessions.ends_at(cookie)

    async def ask_again(self) -> None:
        """Looks up the user and their authorities again, after a wait.

        Raises: Problem 401, if the user, the session or the certificate of the connection is no longer valid.
        """
        certified = self.request.scope.get("state", {}).get(CERTIFIED)
        if certified is not None and not certified.counts():
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
        """Raises: Problem 404, if the address names another queue manager."""
        if self.names["qmgr"] != self.context.name:
            raise problem("MQWB0009E", self.names["qmgr"], reason=Reason.Q_MGR_NAME_ERROR.value)

    # --- the query

    def query(self, *known: str) -> dict[str, str]:
        """The parameters of the query. Raises: Problem 400, if one is unknown, repeated or unreadable."""
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
        """The value of a header; None if the request lacks it. Raises: Problem 400, if the request has it twice."""
        values = self.headers(name)
        if len(values) > 1:
            raise problem("MQWB0302E", name, ", ".join(values), "it is given twice")
        return values[0] if values else None

    def headers(self, name: str) -> Sequence[str]:
        """All values of a header, decoded as UTF-8, or as Latin-1 if they are not UTF-8."""
        return [_text(value) for value in self._headers.get(name.lower().encode(), ())]

    def header_names(self, *beginnings: bytes) -> list[str]:
        """The sorted names of the headers, or of those with one of these beginnings."""
        chosen = [name for name in self._headers if name.startswith(beginnings)] if beginnings else self._headers
        return sorted(name.decode("latin-1") for name in chosen)

    # --- the body

    async def body(self, most: int) -> bytes:
        """The whole body, of at most this many bytes; with 0 the request must have no body.

        Raises: Problem 400, if it must have none; 413, if it is too long; 408, if it arrives too slowly; 503, if the
        server is receiving too many bytes at once.
        """
        length = self._length(most)
        if length == 0 or (length is None and b"transfer-encoding" not in self._headers):
            return b""
        with ExitStack() as taken:
            return await self._in_time(Request(self.request.scope, self._counted(most, taken)).body())

    def _length(self, most: int) -> int | None:
        """The length of the body as the head gives it; None if the head does not.

        In HTTP/1.1 a request has a body if it has a length, or a transfer coding. Raises: Problem 400, 413.
        """
        given = self._headers.get(b"content-length")
        if given is None or b"transfer-encoding" in self._headers:
            return None
        length = int(given[0]) if given[0].isdigit() and len(given[0]) < 20 else None
        if length is not None and length > most:
            raise _too_long(most)
        return length

    async def _in_time(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs the reading of a body within the time limit. After a slow body it checks all authorities again.

        Raises: Problem 408, if the body did not arrive in time; 401, if the user was locked out meanwhile; 403.
        """
        seconds, began = self.context.settings.limits.body_seconds, time.monotonic()
        try:
            found = await _in_time(work, seconds)
        except asyncio.TimeoutError:
            raise problem("INWB0007E", f"{seconds:g}", Connection="close") from None
        if time.monotonic() - began >= SLOW_SECONDS and self.identity.name:  # at a log-in there is no user yet
            await self.ask_again()
            for authority, queue in tuple(dict.fromkeys(self._demanded)):
                self.demand(authority, queue)
        return found

    async def received(self, most: int, read: Callable[[Receive], Coroutine[Any, Any, None]]) -> None:
        """Passes the body to `read` while it arrives. Raises: the errors of `body`, and of `read`."""
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
        """Reads the body as a JSON object.

        Args:
            most: bytes; None: the server's limit for JSON.

        Raises: Problem 400, if it is not a JSON object; 415; the errors of `body`.
        """
        check_media_type(self, ("application/json",))
        body = await self.body(self.context.settings.limits.json if most is None else most)
        return await asyncio.to_thread(_object, body) if len(body) > AT_ONCE else _object(body)


def has_body(request: Request) -> bool:
    """Whether the headers of a request announce a body."""
    headers = request.headers
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _too_long(most: int) -> Problem:
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
    """Makes an object of its pairs. Raises: Problem 400, if a key is repeated, because either value could be meant."""
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name in found if counts[name] > 1)
        raise problem("INWB0004E", f"the key {json.dumps(twice)} appears more than once in an object")
    return found


def check_media_type(call: Call, allowed: tuple[str, ...]) -> None:
    """Raises: Problem 415, if the body has another media type, or another character set than UTF-8."""
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
