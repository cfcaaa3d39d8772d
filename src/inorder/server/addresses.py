"""Reads the addresses of all interfaces, and checks the header that pages of other sites cannot send.

Names in addresses are percent-encoded, and a slash in a name is %2F. So an address is split before it is decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote_to_bytes

from starlette.requests import Request
from starlette.types import Scope

from .problems import problem

CSRF: Final = "ibm-mq-rest-csrf-token"


def check_csrf(request: Request) -> None:
    """Raises: Problem 401, if a request other than GET lacks the header."""
    if request.method != "GET" and CSRF not in request.headers:
        raise problem("MQWB0100E", CSRF)


def segments_of(request: Request, base: Sequence[str]) -> list[str]:
    """The pieces of the path after the base, decoded. Raises: Problem 404, if one is not UTF-8."""
    try:
        return cut(raw_path_of(request.scope), base)
    except UnicodeDecodeError:
        raise problem("INWB0001E", request.url.path) from None


def raw_path_of(scope: Scope) -> bytes:
    """The path as the client sent it."""
    found: bytes = scope.get("raw_path") or scope["path"].encode()
    return found


def cut(raw: bytes, base: Sequence[str]) -> list[str]:
    """The pieces of a path after the base, decoded. Raises: UnicodeDecodeError."""
    return [unquote_to_bytes(piece).decode() for piece in raw.strip(b"/").split(b"/")[len(base) :]]


def names_in(pattern: Sequence[str], segments: Sequence[str]) -> dict[str, str] | None:
    """The values for the names in a pattern; None if the address does not match it."""
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
