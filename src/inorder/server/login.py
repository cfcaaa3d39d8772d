"""Logs users in: a name with a password, or the launch token, is exchanged for a cookie."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from .authentication import of_password
from .calls import Call, Context
from .identity import IBM_ROLES, Identity
from .problems import problem


async def begin(call: Call) -> Response:
    """POST login {"username", "password"}: 204 and a cookie. Needs no authentication, and no CSRF header."""
    call.query()
    given = await call.object()
    unknown = sorted(given.keys() - {"username", "password"})
    if unknown or not all(isinstance(given.get(name), str) for name in ("username", "password")):
        raise problem("INWB0004E", "must be an object with two texts, username and password")
    identity = await of_password(call.context, call.request, given["username"], given["password"])
    if identity is None:
        raise problem("MQWB0104E", call.request.url.path)
    response = Response(status_code=204)
    set_session(call.context, response, identity)
    return response


async def show(call: Call) -> Response:
    """GET login: the user of the request."""
    call.query()
    roles = sorted({name for role in call.identity.roles for name in IBM_ROLES.get(role, (role,))})
    user: dict[str, Any] = {"name": call.identity.name, "role": roles}
    return JSONResponse({"user": [user]})


async def end(call: Call) -> Response:
    """DELETE login: deletes the cookie."""
    call.query()
    response = Response(status_code=204)
    forget_session(call.context, response)
    return response


def set_session(context: Context, response: Response, identity: Identity) -> None:
    """Begins a session, and sets its cookie in a response."""
    settings = context.settings
    response.set_cookie(
        settings.cookie,
        context.sessions.begin(identity.name, identity.session),
        max_age=int(settings.limits.session_seconds),
        secure=settings.is_secure,
        httponly=True,
        samesite="strict",
    )


def forget_session(context: Context, response: Response) -> None:
    """Deletes the cookie of a session."""
    settings = context.settings
    response.delete_cookie(settings.cookie, secure=settings.is_secure, httponly=True, samesite="strict")
