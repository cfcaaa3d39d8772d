"""Checks every request: the host name, the origin, the coding of the body, and the size of the head. It also writes the
log and handles unexpected errors.

Browsers let any page send requests to an address on this machine. A page whose own name was made to lead here (DNS
rebinding) sends that name as Host; any other page sends its Origin. Both are refused, whatever else the request
contains.

A client that takes the server for a proxy sends the whole address as its target ("absolute form"). In that case the
host in the target counts, and Host is ignored (RFC 9112, 3.2.2).
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote_to_bytes, urlsplit

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..stores.remote.link import PATH as STORE_PATH
from .calls import has_body
from .logs import LOGGER, log_request
from .problems import Problem, problem
from .settings import Settings
from .store.endpoint import refuse

log = logging.getLogger(LOGGER)
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
)
CHECKED: Final = frozenset((b"host", b"origin", b"content-encoding", b"content-length", b"transfer-encoding"))
NAMES: Final = frozenset(name for name, _ in HEADERS)
PAGES = "/console/"
HOSTS_KEPT: Final = 64  # host names whose result is kept
OF_PAGES = dict(HEADERS) | {
    # Only the server's own files: no script or style inside a page, and nothing from other sites.
    b"content-security-policy": b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    b"referrer-policy": b"same-origin",  # without it browsers send forms with the Origin null
}


class Guard:
    """An ASGI application around another one."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._guard_socket(scope, receive, send)
            return
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

    async def _guard_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Checks the request that begins a WebSocket, of which there is one kind."""
        try:
            self._check(scope)
            if scope["path"] != STORE_PATH:
                raise problem("INWB0001E", scope["path"])
        except Problem as found:
            log_request(log, "WEBSOCKET", scope["path"], found.code, 0.0, None, None)
            await refuse(found.response(), send)
            return
        await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        """Raises: Problem."""
        raw = scope.get("raw_path") or b""
        size = len(raw) + len(scope["query_string"])
        if b"://" in raw and not raw.startswith(b"/"):
            self._shorten(scope, raw)
        found: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            size += len(name) + len(value) + 4
            if name in CHECKED:
                found.setdefault(name, []).append(value.decode("latin-1").strip())
        if size > self._settings.limits.head:
            raise problem("INWB0006E", f"{self._settings.limits.head:,}", Connection="close")
        if b"transfer-encoding" in found and b"content-length" in found:
            # A proxy may use the other header, and see two requests where this server sees one.
            raise problem("INWB0018E", "it must not have both Content-Length and Transfer-Encoding", Connection="close")
        hosts = found.get(b"host", [])
        if len(hosts) != 1:
            raise problem("INWB0018E", f"it must have the header Host once, not {len(hosts)} times")
        host = hosts[0].lower()
        if _name_of(host) not in self._settings.hosts:
            raise problem("INWB0010E", host)
        for origin in found.get(b"origin", ()):
            if origin.lower() != self._origin(host):
                raise problem("INWB0011E", origin)
        if codings := found.get(b"content-encoding"):
            _check_coding(scope, ", ".join(codings))

    def _shorten(self, scope: Scope, raw: bytes) -> None:
        """Replaces a target in absolute form by its path, and the Host header by its host.

        Raises: Problem 421, if its scheme does not fit the connection: https without TLS, or http with TLS.
        """
        scheme, _, rest = raw.partition(b"://")
        host, slash, path = rest.partition(b"/")
        if scheme.lower() != (b"https" if self._settings.is_secure else b"http"):
            raise problem("INWB0010E", (scheme + b"://" + host).decode("latin-1"))
        scope["raw_path"] = slash + path or b"/"
        scope["path"] = unquote_to_bytes(scope["raw_path"]).decode("utf-8", "replace")
        others = [(name, value) for name, value in scope["headers"] if name != b"host"]
        scope["headers"] = [(b"host", host), *others]

    def _origin(self, host: str) -> str:
        return f"{'https' if self._settings.is_secure else 'http'}://{host}"


def _check_coding(scope: Scope, given: str) -> None:
    """Raises: Problem 415, if the body is compressed, because no handler decompresses it."""
    if has_body(Request(scope)) and any(one.strip().lower() not in ("", "identity") for one in given.split(",")):
        raise problem("INWB0019E", given, Accept_Encoding="identity")


@functools.lru_cache(maxsize=HOSTS_KEPT)
def _name_of(host: str) -> str:
    """The host without its port; an IPv6 address in brackets."""
    try:
        parts = urlsplit(f"//{host}")
        name, _ = parts.hostname or "", parts.port
    except ValueError:  # not a host, or not a port
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
