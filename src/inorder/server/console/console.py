"""The console: it finds the page, authenticates the visitor, checks forms, and shows errors.

Visitors log in and out here, with a browser.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from starlette.datastructures import FormData
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response

from ...client.incomplete_groups import GroupSearches
from ...errors import InorderError
from ..addresses import names_in, raw_path_of
from ..authentication import identity_of, of_password
from ..calls import Call, Context
from ..identity import NOBODY, Identity
from ..login import forget_session, set_session
from ..logs import LOGGER
from ..problems import Problem, not_allowed, of_admin_error, problem
from . import (
    api,
    commands,
    dead,
    defining,
    files,
    forms,
    getting,
    held_messages,
    lists,
    message,
    overview,
    putting,
    queue,
    selection,
    tasks,
    users,
)
from .page import BASE, Page, Visit, address
from .rendering import framed, plain_page, shown, static_file
from .watching import Watching

log = logging.getLogger(LOGGER)
PAGES: Final[tuple[Page, ...]] = (
    *overview.PAGES,
    *queue.PAGES,
    *message.PAGES,
    *defining.PAGES,
    *putting.PAGES,
    *getting.PAGES,
    *selection.PAGES,
    *files.PAGES,
    *held_messages.PAGES,
    *tasks.PAGES,
    *dead.PAGES,
    *commands.PAGES,
    *lists.PAGES[:1],
    *users.PAGES,
    *lists.PAGES[1:],
    *api.PAGES,
)
"""All pages, in the order of the navigation."""


class Console:
    """The pages of one queue manager, and the state that visits share."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._watching, self._groups = Watching(context.samples.look), GroupSearches()

    async def close(self) -> None:
        """The worker stops."""
        await self._watching.close()

    async def answer(self, request: Request) -> Response:
        """Answers a request. Raises: ClientDisconnect."""
        try:
            return await self._found(request)
        except Problem as found:
            return _error(self._context, request, found)
        except InorderError as error:
            return _error(self._context, request, of_admin_error(error))
        except ClientDisconnect:
            raise
        except Exception:
            log.exception("an unexpected error")
            return _error(self._context, request, problem("MQWB0000E"))

    async def _found(self, request: Request) -> Response:
        context = self._context
        pieces = _pieces(request)
        match (request.method, *pieces):
            case ("GET" | "HEAD", "static", mark, name):
                return static_file(mark, name)
            case ("GET" | "HEAD", "log-in"):
                return await ask(_call(context, request, NOBODY))
            case ("POST", "log-in"):
                return await begin(_call(context, request, NOBODY))
            case ("POST", "log-out"):
                return await end(_call(context, request, await identity_of(context, request)))
        identity = await identity_of(context, request)
        page, names = _page(request, pieces)
        return await self._visited(request, page, names, identity)

    async def _visited(self, request: Request, page: Page, names: Mapping[str, str], identity: Identity) -> Response:
        context = self._context
        methods = ("GET", "HEAD") if page.act is None else ("GET", "HEAD", "POST")
        if request.method not in methods:
            raise not_allowed(request.method, methods)
        token = forms.token(context, request)
        if page.is_live:
            self._watching.want()
        visit = Visit(
            context=context, request=request, names=names, identity=identity, page=page, csrf=token,
            menu=_menu(identity), watching=self._watching, groups=self._groups, form=FormData(),
        )  # fmt: skip
        if page.authority is not None:
            visit.demand(page.authority, names["queue"] if page.is_of_queue else "")
        if request.method == "POST":
            assert page.act is not None
            visit.form = await forms.read(visit, context.settings.limits.body)
            try:
                forms.check(visit.form, token)
                return await page.act(visit)
            finally:
                await visit.form.close()  # and its uploaded file
        found = await page.show(visit)
        return found if isinstance(found, Response) else shown(visit, found)


def _menu(identity: Identity) -> list[Page]:
    return [one for one in PAGES if one.menu and (one.authority is None or identity.may(one.authority, ""))]


def _error(context: Context, request: Request, found: Problem) -> Response:
    """Shows a problem as a page; a visitor who has not logged in is asked to do so first."""
    identity: Identity | None = request.scope.get("inorder.identity")
    if found.code == 401 and "authorization" not in request.headers:
        path = raw_path_of(request.scope).decode("latin-1")
        wanted = path if request.method == "GET" else None
        place = address("log-in", to=wanted)
        if "text/event-stream" in request.headers.get("accept", ""):
            return Response(status_code=401)
        if "hx-request" in request.headers:
            return Response(status_code=401, headers={"HX-Redirect": place})
        return RedirectResponse(place, 303)
    values: dict[str, Any] = {"title": "Not possible", "error": found.record(), "code": found.code}
    if identity is not None:
        values |= framed(context, identity, _menu(identity), forms.token(context, request))
    response = plain_page("error.html", found.code, **values)
    response.headers.update(found.headers)
    return response


def _call(context: Context, request: Request, identity: Identity) -> Call:
    return Call(context=context, request=request, version=0, names={}, identity=identity)


def _pieces(request: Request) -> list[str]:
    """The decoded pieces of the path after the base, as they were sent. Raises: Problem 404, if one is not UTF-8."""
    raw = raw_path_of(request.scope)
    try:
        return [unquote_to_bytes(piece).decode() for piece in raw.split(b"/")[2:]]
    except UnicodeDecodeError:
        raise problem("INWB0001E", request.url.path) from None


def _page(request: Request, pieces: Sequence[str]) -> tuple[Page, Mapping[str, str]]:
    """The page at an address, and the names in the address. Raises: Problem 404, if there is none."""
    for page in PAGES:
        names = names_in(page.path.split("/"), pieces)
        if names is not None:
            return page, names
    raise problem("INWB0001E", request.url.path)


# --- logging in and out


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
    response = RedirectResponse(address("log-in"), 303)
    forget_session(call.context, response)
    return response


def _inside(address: str) -> str:
    """An address of the console. An address of any other site is replaced, so that no visitor is redirected there."""
    is_ours = address.startswith(f"{BASE}/") and address.isascii() and address.isprintable() and "\\" not in address
    return address if is_ours else f"{BASE}/"


async def moved(_: Request) -> Response:
    """GET /console: the address with its slash."""
    return RedirectResponse(f"{BASE}/", 308)
