"""Logging in and out with a browser."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from ..authentication import of_password
from ..calls import Call
from ..login import set_session
from ..problems import problem
from . import forms
from .page import BASE
from .rendering import plain_page

PATH = f"{BASE}/log-in"


async def ask(call: Call, *, status: int = 200, wrong: str = "", to: str = "") -> Response:
    """Shows the form for logging in."""
    wanted = to or call.request.query_params.get("to", "")
    return plain_page("log_in.html", status, title="Log in", wrong=wrong, to=_inside(wanted))


async def begin(call: Call) -> Response:
    """Begins a session, and redirects (303) to the requested page."""
    if "origin" in call.request.headers and call.request.headers["origin"] == "null":
        raise problem("INWB0011E", "null")
    form = await forms.read(call, forms.SMALL)
    name, password, wanted = (str(form.get(field, "")) for field in ("name", "password", "to"))
    identity = await of_password(call.context, call.request, name, password)
    if identity is None:
        return await ask(call, status=401, wrong="The name or password is not correct.", to=wanted)
    response = RedirectResponse(_inside(wanted), 303)
    set_session(call.context, response, identity)
    return response


async def end(call: Call) -> Response:
    """Ends the session of the browser. Raises: Problem 403, if the form is not from a page of this session."""
    forms.check(await forms.read(call, forms.SMALL), forms.token(call.context, call.request))
    settings = call.context.settings
    response = RedirectResponse(PATH, 303)
    response.delete_cookie(settings.cookie, secure=settings.is_secure, httponly=True, samesite="strict")
    return response


def _inside(address: str) -> str:
    """An address of the console. An address of any other site is replaced, so that no visitor is redirected there."""
    is_ours = address.startswith(f"{BASE}/") and address.isascii() and address.isprintable() and "\\" not in address
    return address if is_ours else f"{BASE}/"
