"""A page of the console, and a visit to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from starlette.datastructures import FormData
from starlette.responses import RedirectResponse, Response

from ...rules.authorities import Authority
from ..calls import Call
from .groups import GroupSearches
from .watching import Watching

BASE = "/console"


@dataclass(slots=True, kw_only=True)
class Visit(Call):
    """A request to a page: who asks (`identity`, `demand`), and for what (`names`, `query`).

    Args:
        page: that is visited.
        csrf: what forms of this visitor must carry; in a template ``{{ hidden(csrf) }}``, of ``parts.html``.
        menu: the pages in his navigation.
        watching: what has happened in the last minutes.
        groups: which groups are not all there.
        form: what was sent with POST, checked against forgery; empty with GET.
    """

    version: int = 0
    page: Page
    csrf: str
    menu: Sequence[Page]
    watching: Watching
    groups: GroupSearches
    form: FormData

    @property
    def here(self) -> str:
        """The address of this visit, with its query."""
        query = self.request.scope["query_string"].decode("latin-1")
        path: str = (self.request.scope.get("raw_path") or self.request.scope["path"].encode()).decode("latin-1")
        return f"{path}?{query}" if query else path


Show = Callable[[Visit], Awaitable[Mapping[str, Any] | Response]]
Act = Callable[[Visit], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page.

    Args:
        path: below ``/console/``; a piece in braces is a name: ``queue/{queue}/put``.
        title: may have the names of the path, in braces.
        authority: that a visitor needs; None: none, what is shown depends on who asks.
        queue: the piece of the path, without its braces, that names the queue for which the authority is needed; empty:
            for the queue manager.
        template: in ``templates``; it extends ``base.html``.
        show: makes what the template shows, or a response of its own.
        act: what a POST of a form of this page does, which is in `Visit.form`; None: nothing. It answers with `to`,
            mostly, and `notices.leave`; with `rendering.shown` if the form is to be seen again.
        menu: its word in the navigation; empty: it is not there.
        is_live: it is loaded again when something changes.
    """

    path: str
    title: str
    authority: Authority | None
    queue: str = ""
    template: str = ""
    show: Show
    act: Act | None = None
    menu: str = ""
    is_live: bool = False


def address(*pieces: str, pairs: Iterable[tuple[str, str]] = (), **query: object) -> str:
    """An address in the console: ``address("queue", name, order="logical")``. What is None is left out of the query.

    Args:
        pairs: of the query, too, where a name comes several times.
    """
    path = "/".join(quote(piece, safe="") for piece in pieces)
    told = [*pairs, *((name, value) for name, value in query.items() if value is not None)]
    return f"{BASE}/{path}?{urlencode(told)}" if told else f"{BASE}/{path}"


def to(*pieces: str, pairs: Iterable[tuple[str, str]] = (), **query: object) -> Response:
    """Sends the browser to a page, as an act does when it is done; with the arguments of `address`."""
    return RedirectResponse(address(*pieces, pairs=pairs, **query), 303)
