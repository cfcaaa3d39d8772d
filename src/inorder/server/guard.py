"""Checks for every request: the host name, the origin, the size of the head; the log; and unexpected errors.

Browsers let any page send requests to an address on this machine. A page whose own name was made to lead here (DNS
rebinding) sends that name as Host; any other sends its Origin. Both are refused, whatever else the request has.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .logs import LOGGER, log_request
from .problems import Problem, problem
from .settings import Settings

log = logging.getLogger(LOGGER)
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
)
NAMES: Final = frozenset(name for name, _ in HEADERS)
PAGES = "/console/"
HOSTS_KEPT: Final = 64  # names of hosts that need not be read once more
OF_PAGES = dict(HEADERS) | {
    # Only files of the server itself: no script and no style in a page, nothing from elsewhere.
    b"content-security-policy": b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    b"referrer-policy": b"same-origin",  # without one browsers send the Origin null with forms
}


class Guard:
    """An ASGI application around another one."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = _with_defaults(scope, message.get("headers", ()))
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, receive, answer)
        except Problem as found:
            await found.response()(scope, receive, answer)
        except Exception:
            log.exception("an unexpected error")
            if not status:
                await problem("MQWB0000E").response()(scope, receive, answer)
        finally:
            _tell(scope, status, time.monotonic() - began)

    def _check(self, scope: Scope) -> None:
        """Raises: Problem."""
        size = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        hosts, origins = [], []
        for name, value in scope["headers"]:
            size += len(name) + len(value) + 4
            if name == b"host":
                hosts.append(value.decode("latin-1").strip().lower())
            elif name == b"origin":
                origins.append(value.decode("latin-1"))
        if size > self._settings.limits.head:
            raise problem("INWB0006E", f"{self._settings.limits.head:,}", Connection="close")
        if len(hosts) != 1 or _name_of(hosts[0]) not in self._settings.hosts:
            raise problem("INWB0010E", ", ".join(hosts))
        for origin in origins:
            if origin.lower() != self._origin(hosts[0]):
                raise problem("INWB0011E", origin)

    def _origin(self, host: str) -> str:
        return f"{'https' if self._settings.is_secure else 'http'}://{host}"


@functools.lru_cache(maxsize=HOSTS_KEPT)
def _name_of(host: str) -> str:
    """The host without its port; an IPv6 address in brackets."""
    try:
        parts = urlsplit(f"//{host}")
        name, _ = parts.hostname or "", parts.port
    except ValueError:  # no host, or no port
        return ""
    if parts.path or parts.query or parts.fragment or parts.username is not None:
        return ""
    return f"[{name}]" if ":" in name else name


def _with_defaults(scope: Scope, headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    there = NAMES.intersection(name.lower() for name, _ in headers)
    if scope["path"].startswith(PAGES):
        return [*headers, *((name, value) for name, value in OF_PAGES.items() if name not in there)]
    return [*headers, *(HEADERS if not there else ((name, value) for name, value in HEADERS if name not in there))]


def _tell(scope: Scope, status: int, seconds: float) -> None:
    identity, client = scope.get("inorder.identity"), scope.get("client")
    name, address = None if identity is None else identity.name, client[0] if client else None
    log_request(log, scope["method"], scope["path"], status, seconds, name, address)
