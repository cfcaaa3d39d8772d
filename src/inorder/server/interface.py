"""The addresses of IBM's interface, and what is behind each: ``/ibmmq/rest/v1 ... v3``.

Names in addresses are percent-encoded, a slash of a name as %2F, so an address is cut before it is decoded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final
from urllib.parse import unquote_to_bytes

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from . import admin, login, messaging, queues
from .calls import Call, Context
from .entrance import identity_of
from .identity import Identity
from .problems import problem

BASE: Final = ("ibmmq", "rest")
CSRF: Final = "ibm-mq-rest-csrf-token"
NOBODY: Final = Identity(name="", roles=frozenset())

Handler = Callable[[Call], Awaitable[Response]]
Methods = Mapping[str, Handler]

MESSAGE: Final[Methods] = {"POST": messaging.put, "DELETE": messaging.get, "GET": messaging.browse}
ROUTES: Final[Mapping[tuple[str, ...], Methods]] = {
    ("login",): {"POST": login.begin, "GET": login.show, "DELETE": login.end},
    ("messaging", "qmgr", "{qmgr}", "queue", "{queue}", "message"): MESSAGE,
    ("messaging", "qmgr", "{qmgr}", "queue", "{queue}", "messagelist"): {"GET": messaging.listed},
    ("messaging", "qmgr", "{qmgr}", "topic", "{topic...}", "message"): {"POST": messaging.publish},
    ("admin", "installation"): {"GET": admin.installation},
    ("admin", "installation", "{installation}"): {"GET": admin.installation},
    ("admin", "qmgr"): {"GET": admin.managers},
    ("admin", "qmgr", "{qmgr}"): {"GET": admin.managers},
    ("admin", "action", "qmgr", "{qmgr}", "mqsc"): {"POST": admin.mqsc},
}
OF_VERSION_1: Final[Mapping[tuple[str, ...], Methods]] = {
    ("admin", "qmgr", "{qmgr}", "queue"): {"GET": queues.listed, "POST": queues.create},
    ("admin", "qmgr", "{qmgr}", "queue", "{queue}"): {
        "GET": queues.shown,
        "PATCH": queues.alter,
        "DELETE": queues.delete,
    },
}
VERSIONS: Final = {"v1": 1, "v2": 2, "v3": 3}


class Interface:
    """An ASGI application: IBM's interface to one queue manager."""

    def __init__(self, context: Callable[[], Context]) -> None:
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises: Problem; ClientDisconnect."""
        response = await self._answer(Request(scope, receive))
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        context = self._context()
        segments = _segments(request)
        version = VERSIONS.get(segments[0]) if segments else None
        found = None if version is None else _found(version, segments[1:])
        if version is None or found is None:
            raise problem("INWB0001E", request.url.path)
        methods, names = found
        handler = methods.get(request.method)
        is_login = handler is login.begin
        identity = NOBODY if is_login else await identity_of(context, request)
        if handler is None:
            raise problem("INWB0002E", request.method, ", ".join(methods), Allow=", ".join(methods))
        if request.method != "GET" and not is_login and CSRF not in request.headers:
            raise problem("MQWB0100E", CSRF)
        return await handler(Call(context=context, request=request, version=version, names=names, identity=identity))


def _segments(request: Request) -> list[str]:
    """What stands between the slashes behind the base. Raises: Problem 404, it is not UTF-8."""
    raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    pieces = raw.strip(b"/").split(b"/")[len(BASE) :]
    try:
        return [unquote_to_bytes(piece).decode() for piece in pieces]
    except UnicodeDecodeError:
        raise problem("INWB0001E", request.url.path) from None


def _found(version: int, segments: Sequence[str]) -> tuple[Methods, dict[str, str]] | None:
    for routes in (ROUTES, OF_VERSION_1 if version == 1 else {}):
        for pattern, methods in routes.items():
            names = _names(pattern, segments)
            if names is not None:
                return methods, names
    return None


def _names(pattern: Sequence[str], segments: Sequence[str]) -> dict[str, str] | None:
    """What the address says for the names of a pattern; None: it does not fit."""
    many = next((n for n, piece in enumerate(pattern) if piece.endswith("...}")), None)
    if many is not None and len(segments) >= len(pattern):
        end = many + 1 + len(segments) - len(pattern)
        segments = [*segments[:many], "/".join(segments[many:end]), *segments[end:]]
    if len(pattern) != len(segments):
        return None
    names = {}
    for piece, segment in zip(pattern, segments, strict=True):
        if piece.startswith("{"):
            names[piece.strip("{.}")] = segment
        elif piece != segment:
            return None
    return names if all(names.values()) else None
