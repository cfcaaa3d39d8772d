"""The addresses of IBM's interface and their handlers: ``/ibmmq/rest/v1 ... v3``."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from . import admin, login, messaging, queues
from .addresses import check_csrf, cut, names_in, raw_path_of
from .authentication import identity_of
from .calls import Call, Context
from .identity import NOBODY
from .problems import not_allowed, problem

BASE: Final = ("ibmmq", "rest")

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
PLACES_KEPT: Final = 256  # addresses whose result is kept
VERSIONS: Final = {"v1": 1, "v2": 2, "v3": 3}


class Endpoint(NamedTuple):
    """The handlers at an address, and the names in it."""

    version: int
    methods: Methods
    names: Mapping[str, str]


class IbmInterface:
    """IBM's interface to one queue manager."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def answer(self, request: Request) -> Response:
        """Answers a request. Raises: Problem; InorderError; ClientDisconnect."""
        context, place = self._context, place_of(raw_path_of(request.scope))
        if place is None:
            raise problem("INWB0001E", request.url.path)
        version, methods, names = place
        handler = methods.get(request.method)
        is_login = handler is login.begin
        identity = NOBODY if is_login else await identity_of(context, request)
        if handler is None:
            raise not_allowed(request.method, methods)
        if not is_login:
            check_csrf(request)
        return await handler(Call(context=context, request=request, version=version, names=names, identity=identity))


@functools.lru_cache(maxsize=PLACES_KEPT)
def place_of(raw: bytes) -> Endpoint | None:
    """The place of an address, as the client sent it; None if there is no such address."""
    try:
        segments = cut(raw, BASE)
    except UnicodeDecodeError:
        return None
    version = VERSIONS.get(segments[0]) if segments else None
    if version is None:
        return None
    for routes in (ROUTES, OF_VERSION_1 if version == 1 else {}):
        for pattern, methods in routes.items():
            names = names_in(pattern, segments[1:])
            if names is not None:
                return Endpoint(version, methods, MappingProxyType(names))
    return None
