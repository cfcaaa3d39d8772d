"""The console as an ASGI application: it finds the page, authenticates the visitor, checks forms, and shows errors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from ...errors import InorderError
from ..authentication import identity_of
from ..calls import Call, Context
from ..identity import Identity
from ..logs import LOGGER
from ..problems import Problem, of_admin_error, problem
from . import files, forms, log_in
from .groups import GroupSearches
from .page import BASE, Page, Visit, address
from .pages import PAGES
from .rendering import framed, plain_page, shown
from .watching import Watching

log = logging.getLogger(LOGGER)
NOBODY = Identity(name="", roles=frozenset())


class Console:
    """An ASGI application: the pages of one queue manager."""

    def __init__(self, context: Callable[[], Context]) -> None:
        self._context = context
        self._watching: Watching | None = None
        self._groups: GroupSearches | None = None

    async def close(self) -> None:
        """The worker stops."""
        if self._watching is not None:
            await self._watching.close()

    def _known(self, context: Context) -> tuple[Watching, GroupSearches]:
        """What visits share; made in the loop in which they are."""
        if self._watching is None or self._groups is None:
            self._watching, self._groups = Watching(context.samples.look), GroupSearches(context.qm)
        return self._watching, self._groups

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises: ClientDisconnect."""
        response = await self._answer(Request(scope, receive))
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        context = self._context()
        try:
            return await self._found(context, request)
        except Problem as found:
            return _error(context, request, found)
        except InorderError as error:
            return _error(context, request, of_admin_error(error, getattr(error, "queue", "")))
        except (ClientDisconnect, HTTPException):  # nobody is there any more; what the server itself answers
            raise
        except Exception:
            log.exception("an unexpected error")
            return _error(context, request, problem("MQWB0000E"))

    async def _found(self, context: Context, request: Request) -> Response:
        pieces = _pieces(request)
        match (request.method, *pieces):
            case ("GET" | "HEAD", "static", mark, name):
                return files.answer(mark, name)
            case ("GET" | "HEAD", "log-in"):
                return await log_in.ask(_call(context, request, {}, NOBODY))
            case ("POST", "log-in"):
                return await log_in.begin(_call(context, request, {}, NOBODY))
            case ("POST", "log-out"):
                return await log_in.end(_call(context, request, {}, await identity_of(context, request)))
        identity = await identity_of(context, request)
        page, names = _page(request, pieces)
        return await self._visited(context, request, page, names, identity)

    async def _visited(
        self, context: Context, request: Request, page: Page, names: Mapping[str, str], identity: Identity
    ) -> Response:
        methods = ("GET", "HEAD") if page.act is None else ("GET", "HEAD", "POST")
        if request.method not in methods:
            raise problem("INWB0002E", request.method, ", ".join(methods), Allow=", ".join(methods))
        token = forms.token(context, request)
        watching, groups = self._known(context)
        if page.is_live:
            watching.want()
        visit = Visit(
            context=context,
            request=request,
            names=names,
            identity=identity,
            page=page,
            csrf=token,
            menu=_menu(identity),
            watching=watching,
            groups=groups,
            form=FormData(),
        )
        if page.authority is not None:
            visit.demand(page.authority, names[page.queue] if page.queue else "")
        if request.method == "POST":
            assert page.act is not None
            visit.form = await forms.read(visit, context.settings.limits.body)
            try:
                forms.check(visit.form, token)
                return await page.act(visit)
            finally:
                await visit.form.close()  # files that were sent with it
        found = await page.show(visit)
        return found if isinstance(found, Response) else shown(visit, found)


def _menu(identity: Identity) -> list[Page]:
    return [one for one in PAGES if one.menu and (one.authority is None or identity.may(one.authority, ""))]


def _error(context: Context, request: Request, found: Problem) -> Response:
    """A problem as a page; who is not known is asked to log in first."""
    identity: Identity | None = request.scope.get("inorder.identity")
    if found.code == 401 and "authorization" not in request.headers:
        path = (request.scope.get("raw_path") or b"").decode("latin-1")
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


def _call(context: Context, request: Request, names: Mapping[str, str], identity: Identity) -> Call:
    return Call(context=context, request=request, version=0, names=names, identity=identity)


def _pieces(request: Request) -> list[str]:
    """What stands between the slashes behind the base. Raises: Problem 404, it is not UTF-8."""
    raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    try:
        return [unquote_to_bytes(piece).decode() for piece in raw.split(b"/")[2:]]
    except UnicodeDecodeError:
        raise problem("INWB0001E", request.url.path) from None


def _page(request: Request, pieces: Sequence[str]) -> tuple[Page, Mapping[str, str]]:
    """The page at an address, with the names in it. Raises: Problem 404, there is none."""
    for page in PAGES:
        pattern = page.path.split("/")
        if len(pattern) != len(pieces):
            continue
        pairs = list(zip(pattern, pieces, strict=True))
        if all(piece if wanted.startswith("{") else piece == wanted for wanted, piece in pairs):
            return page, {wanted[1:-1]: piece for wanted, piece in pairs if wanted.startswith("{")}
    raise problem("INWB0001E", request.url.path)


async def moved(request: Request) -> Response:
    """GET /console: the address with its slash."""
    del request
    return RedirectResponse(f"{BASE}/", 308)
