"""A page of the console, and a visit to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from starlette.datastructures import FormData
from starlette.responses import Response

from ...client.incomplete_groups import GroupSearches
from ...model.parameters import one_of
from ...rules.authorities import Authority
from ..addresses import raw_path_of
from ..calls import Call
from ..problems import problem
from .watching import Watching

C = TypeVar("C", bound=str)

BASE = "/console"


@dataclass(slots=True, kw_only=True)
class Visit(Call):
    """A request to a page, with the visitor (`identity`, `demand`), the names in the address, and the query.

    Args:
        page: the visited page.
        csrf: the token that forms of this visitor must carry; in a template ``{{ hidden(csrf) }}``, of ``parts.html``.
        menu: the pages in the visitor's navigation.
        watching: the last minutes of all queues.
        groups: finds incomplete groups.
        form: the form of a POST, checked against forgery; empty with GET.
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
        path = raw_path_of(self.request.scope).decode("latin-1")
        return f"{path}?{query}" if query else path

    def text(self, name: str) -> str:
        """A text field of the form; empty if it is missing or a file."""
        value = self.form.get(name)
        return value if isinstance(value, str) else ""

    def texts(self, name: str) -> list[str]:
        """All text fields of the form with this name."""
        return [value for value in self.form.getlist(name) if isinstance(value, str)]

    def choice(self, name: str, known: Iterable[C]) -> C:
        """The text of a field of the form. Raises: Problem 400, if it is none of these."""
        for one in known:
            if one == self.text(name):
                return one
        raise problem("INWB0004E", f"{name} must be {one_of(known)}")

    def unconfirmed(self, name: str, what: str = "") -> str:
        """Why an act that asks for a name is not done: the visitor has typed another. Empty: it was this one."""
        asked = f"{what}, {name}," if what else name
        return "" if self.text("typed") == name else f"Type {asked} to confirm. Nothing was changed."


Show = Callable[[Visit], Awaitable[Mapping[str, Any] | Response]]
Act = Callable[[Visit], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page.

    Args:
        path: below ``/console/``; a piece in braces is a name: ``queue/{queue}/put``.
        title: may contain names of the path, in braces.
        authority: that a visitor needs: on the queue if the path begins with ``queue/{queue}``, otherwise on the queue
            manager. None: every visitor may open the page, which shows only objects that the visitor may see.
        template: in ``templates``; it extends ``base.html``.
        show: returns the values for the template, or a complete response.
        act: answers a POST of a form on this page, mostly with `forms.done`, or with `rendering.shown` to show the form
            again. None: the page has no form.
        menu: its word in the navigation; empty: it is not in the navigation.
        is_live: the browser loads it again when something changes.
    """

    path: str
    title: str
    authority: Authority | None
    template: str = ""
    show: Show
    act: Act | None = None
    menu: str = ""
    is_live: bool = False

    @property
    def is_of_queue(self) -> bool:
        """Whether the address names the queue for which the visitor needs the authority."""
        return self.path.startswith("queue/{queue}")


def address(*pieces: str, pairs: Iterable[tuple[str, str]] = (), **query: object) -> str:
    """An address in the console: ``address("queue", name, order="logical")``. The query is without values of None.

    Args:
        pairs: more of the query, for names that come several times.
    """
    path = "/".join(quote(piece, safe="") for piece in pieces)
    given = [*pairs, *((name, value) for name, value in query.items() if value is not None)]
    return f"{BASE}/{path}?{urlencode(given)}" if given else f"{BASE}/{path}"
