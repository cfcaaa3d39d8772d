"""One request: its address, query, headers and body, read within the limits; and what all requests share."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.requests import Request

from .. import aio
from ..errors import Reason
from ..rules.authorities import Authority
from .identity import Authenticator, Identity
from .problems import NOT_AUTHORIZED, problem
from .sampling import Samples
from .sessions import Sessions
from .settings import Settings

QUERY_FIELDS_MAX = 32
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

    def __post_init__(self) -> None:
        self.waits = Room("waiting gets", self.settings.limits.waits)
        self.bodies = Room("bytes of bodies", self.settings.limits.bodies)
        self.transfers = Room("Arrow streams", self.settings.limits.transfers)
        self.subscribers = Room("streams of events", self.settings.limits.subscribers)
        self.samples = Samples(self.qm)


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

    # --- who, and what

    def demand(self, authority: Authority, queue: str = "") -> None:
        """Raises: Problem 403, the user may not do this."""
        if not self.identity.may(authority, queue):
            what = queue or self.context.name
            raise problem("MQWB0103E", DONE_TO[authority], what, reason=NOT_AUTHORIZED)

    async def demand_again(self, authority: Authority, queue: str = "") -> None:
        """After a wait: the same of the user as they are now. Raises: Problem 401, they are out; 403."""
        await self.ask_again()
        self.demand(authority, queue)

    async def ask_again(self) -> None:
        """After a wait: who the user is now, and what they may do. Raises: Problem 401, they are out."""
        now = await self.context.authenticator.by_session(self.identity.name, self.identity.session)
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

    # --- the query

    def query(self, *known: str) -> dict[str, str]:
        """The parameters of the query. Raises: Problem 400, one is unknown, comes twice, or cannot be read."""
        text = self.request.scope["query_string"]
        try:
            pairs = parse_qsl(
                text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=QUERY_FIELDS_MAX
            )
        except ValueError as error:  # UnicodeDecodeError is one
            raise problem("INWB0003E", "?", error) from None
        found: dict[str, str] = {}
        for name, value in pairs:
            if name not in known:
                raise problem("INWB0003E", name, f"allowed are {', '.join(known) or 'none'}")
            if name in found:
                raise problem("INWB0003E", name, "it is there twice")
            found[name] = value
        return found

    # --- headers

    def header(self, name: str) -> str | None:
        """A header that may come once. Raises: Problem 400, it comes twice."""
        values = self.headers(name)
        if len(values) > 1:
            raise problem("MQWB0302E", name, ", ".join(values), "it is there twice")
        return values[0] if values else None

    def headers(self, name: str) -> Sequence[str]:
        """All values of a header, as UTF-8 where they are that, else as Latin-1."""
        wanted = name.lower().encode()
        return [_text(value) for key, value in self.request.scope["headers"] if key == wanted]

    def header_names(self) -> set[str]:
        return {key.decode("latin-1") for key, _ in self.request.scope["headers"]}

    # --- the body

    async def body(self, most: int) -> bytes:
        """The whole body. Raises: Problem 413 too long, 408 too slow, 503 too many at once."""
        length = _length(self.request)
        if length is not None and length > most:
            raise problem("INWB0005E", f"{most:,}", Connection="close")
        if not _has_body(self.request):
            return b""
        seconds = self.context.settings.limits.body_seconds
        pieces: list[bytes] = []
        with ExitStack() as taken:
            try:
                await _in_time(self._receive(pieces, most, taken), seconds)
            except asyncio.TimeoutError:
                raise problem("INWB0007E", f"{seconds:g}", Connection="close") from None
            return b"".join(pieces)

    async def _receive(self, pieces: list[bytes], most: int, taken: ExitStack) -> None:
        size = 0
        async for piece in self.request.stream():
            size += len(piece)
            if size > most:
                raise problem("INWB0005E", f"{most:,}", Connection="close")
            taken.enter_context(self.context.bodies.taken(len(piece)))
            pieces.append(piece)

    async def object(self, most: int | None = None) -> dict[str, Any]:
        """The body, which is a JSON object of at most so many bytes; None: as the limits say.

        Raises: Problem 400, 415; as `body`.
        """
        check_media_type(self, ("application/json",))
        body = await self.body(self.context.settings.limits.json if most is None else most)
        return await asyncio.to_thread(_object, body) if len(body) > AT_ONCE else _object(body)


def _object(body: bytes) -> dict[str, Any]:
    try:
        given = json.loads(body.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise problem("INWB0004E", f"it is not JSON in UTF-8: {error}") from None
    if not isinstance(given, dict):
        raise problem("INWB0004E", "it is not a JSON object")
    return given


def check_media_type(call: Call, allowed: Sequence[str]) -> None:
    """Raises: Problem 415, the body is of another type, or in another character set than UTF-8."""
    kind, *parameters = (part.strip() for part in (call.header("content-type") or "").split(";"))
    if kind.lower() not in allowed:
        raise problem("MQWB0306E", ", ".join(allowed))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset" and value.strip().strip('"').lower() not in ("utf-8", "utf8"):
            raise problem("MQWB0305E", value)


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


def _length(request: Request) -> int | None:
    given = request.headers.get("content-length")
    return int(given) if given is not None and given.isdecimal() and len(given) < 20 else None


async def _in_time(work: Coroutine[Any, Any, None], seconds: float) -> None:
    """Raises: asyncio.TimeoutError."""
    if sys.version_info < (3, 11):
        await asyncio.wait_for(work, seconds)
    else:  # without a task, and turns of the loop, of its own
        async with asyncio.timeout(seconds):
            await work


def _has_body(request: Request) -> bool:
    """HTTP/1.1: the head says whether there is one."""
    return "transfer-encoding" in request.headers or request.headers.get("content-length", "0") != "0"


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
