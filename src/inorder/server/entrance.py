"""Who a request comes from: a bearer token, a name with a password, or the cookie of a session."""

from __future__ import annotations

import base64
import binascii

from starlette.requests import Request

from .calls import Context
from .identity import Identity
from .problems import Problem, problem

CHALLENGE = 'Basic realm="inorder", charset="UTF-8"'


async def identity_of(context: Context, request: Request) -> Identity:
    """Who asks. Raises: Problem 401, nobody knows."""
    given = request.headers.get("authorization")
    if given is not None:
        found = await _by_header(context, given)
        if found is None:
            raise _unknown(request)
    else:
        found = await _by_cookie(context, request)
    request.scope["inorder.identity"] = found
    return found


async def _by_header(context: Context, given: str) -> Identity | None:
    scheme, _, credentials = given.partition(" ")
    credentials = credentials.strip()
    if scheme.lower() == "bearer":
        return await context.authenticator.by_token(credentials)
    if scheme.lower() != "basic":
        return None
    try:
        name, separator, password = base64.b64decode(credentials, validate=True).decode().partition(":")
    except (ValueError, binascii.Error):  # UnicodeDecodeError is a ValueError
        return None
    return await context.authenticator.by_password(name, password) if separator else None


async def _by_cookie(context: Context, request: Request) -> Identity:
    cookie = request.cookies.get(context.settings.cookie)
    if cookie is None:
        raise _unknown(request)
    name = context.sessions.name_in(cookie)
    found = None if name is None else await context.authenticator.by_session(name)
    if found is None:
        raise problem("MQWB0112E", context.settings.cookie)
    return found


def _unknown(request: Request) -> Problem:
    return problem("MQWB0104E", request.url.path, WWW_Authenticate=CHALLENGE)
