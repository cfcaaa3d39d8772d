"""Identifies the user of a request by a bearer token, a name with a password, a session cookie, or a client
certificate.

If there is an Authorization header, it alone decides. Otherwise a valid session decides, and otherwise the certificate
of the connection. The identity stays in the request's scope, for the log and for acts.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable

from starlette.requests import Request

from ..aio.lanes import act_for
from ..errors import TooManyLogIns
from .calls import Context
from .identity import Identity
from .problems import Problem, of_log_ins, problem

CHALLENGE = 'Basic realm="inorder", charset="UTF-8"'


async def identity_of(context: Context, request: Request) -> Identity:
    """The user of the request. Raises: Problem 401, if not authenticated; 429, if too many log-ins have failed."""
    given = request.headers.get("authorization")
    found = await (_without_header(context, request) if given is None else _by_header(context, request, given))
    if found is None:
        raise _unknown(request)
    return found


async def of_token_or_certificate(context: Context, request: Request) -> Identity:
    """The user of a program that connects to the store: no password and no session. Raises: as `identity_of`."""
    given = request.headers.get("authorization")
    if given is None:
        found = await _by_certificate(context, request)
    elif given.partition(" ")[0].lower() == "bearer":
        found = await _by_header(context, request, given)
    else:
        found = None
    if found is None:
        raise _unknown(request)
    return found


async def of_password(context: Context, request: Request, name: str, password: str) -> Identity | None:
    """The user with this name and password; None if there is none. Raises: Problem 429, after too many failures."""
    return await _known(request, context.authenticator.by_password(name, password, address=address_of(request)))


async def of_link(context: Context, request: Request, token: str) -> Identity:
    """The user who opened the printed link. Raises: Problem 401, if its token is wrong; 429, after many failures."""
    found = await _known(request, context.authenticator.by_link(token, address=address_of(request)))
    if found is None:
        raise _unknown(request)
    return found


def address_of(request: Request) -> str:
    """The client's address; "" if it is unknown."""
    return request.client.host if request.client else ""


async def _known(request: Request, asked: Awaitable[Identity | None]) -> Identity | None:
    try:
        found = await asked
    except TooManyLogIns as error:
        raise of_log_ins(error) from None
    if found is not None:
        request.scope["inorder.identity"] = found
        act_for(found.name)  # all calls of this request
    return found


async def _by_header(context: Context, request: Request, given: str) -> Identity | None:
    scheme, _, credentials = given.partition(" ")
    credentials = credentials.strip()
    if scheme.lower() == "bearer":
        return await _known(request, context.authenticator.by_token(credentials, address=address_of(request)))
    if scheme.lower() != "basic":
        return None
    try:
        name, separator, password = base64.b64decode(credentials, validate=True).decode().partition(":")
    except ValueError:  # binascii.Error and UnicodeDecodeError are
        return None
    return await of_password(context, request, name, password) if separator else None


async def _without_header(context: Context, request: Request) -> Identity | None:
    """Raises: Problem 401, if the session has ended and the connection has no certificate."""
    cookie = request.cookies.get(context.settings.cookie)
    session = None if cookie is None else context.sessions.read(cookie)
    if session is not None:
        found = await _known(request, context.authenticator.by_session(*session))
        if found is not None:
            return found
    found = await _by_certificate(context, request)
    if found is None and cookie is not None and not _subject(request):
        raise problem("MQWB0112E", context.settings.cookie)
    return found


def _subject(request: Request) -> str | None:
    subject: str | None = request.scope.get("extensions", {}).get("tls", {}).get("client_cert_name")
    return subject


async def _by_certificate(context: Context, request: Request) -> Identity | None:
    subject = _subject(request)
    if subject is None:
        return None
    return await _known(request, context.authenticator.by_subject(subject, address=address_of(request)))


def _unknown(request: Request) -> Problem:
    return problem("MQWB0104E", request.url.path, WWW_Authenticate=CHALLENGE)
