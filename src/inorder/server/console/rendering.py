"""Fills the templates of pages, and serves the files in ``static``.

The environment escapes every value in a page. The address of a file has a hash of its contents, so browsers keep the
file for good.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse, Response

from ...client.unit_names import key_of
from ..calls import Context
from ..identity import Identity
from ..problems import problem
from . import labels
from .forms import forget_notice, notice_in
from .page import BASE, Page, Visit, address

HERE: Final = Path(__file__).parent
TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
FOR_GOOD: Final = {"Cache-Control": "public, max-age=31536000, immutable"}


class StaticFile(NamedTuple):
    """A file, with the hash in its address."""

    data: bytes
    kind: str
    mark: str


@cache
def files() -> Mapping[str, StaticFile]:
    """The files of ``static`` by name."""
    return {path.name: _read(path) for path in sorted((HERE / "static").iterdir()) if path.suffix in TYPES}


def _read(path: Path) -> StaticFile:
    data = path.read_bytes()
    return StaticFile(data, TYPES[path.suffix], hashlib.sha256(data).hexdigest()[:16])


def static(name: str) -> str:
    """The address of a file."""
    return f"{BASE}/static/{files()[name].mark}/{name}"


def static_file(mark: str, name: str) -> Response:
    """A file as a response. Raises: Problem 404, if no file of this name has these contents."""
    found = files().get(name)
    if found is None or found.mark != mark:
        raise problem("INWB0001E", f"{BASE}/static/{mark}/{name}")
    return Response(found.data, headers=FOR_GOOD, media_type=found.kind)


@cache
def environment() -> Environment:
    """The templates, with the functions and filters that they may call."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals |= {"static": static, "sparkline": labels.sparkline, "at": address, "base": BASE, "unit_key": key_of}
    named = (labels.span, labels.size, labels.number, labels.counted, labels.rate, labels.clock, labels.duration)
    made.filters |= {one.__name__: one for one in (*named, labels.iso, labels.setting, marked)}
    made.filters |= {
        "line": labels.one_line,
        "field": labels.field_name,
        "sentence": lambda text: text[:1].upper() + text[1:],
    }
    return made


def marked(text: str) -> Markup:
    """A text of our own, in which backticks mark code."""
    pieces = (f"<code>{escape(one)}</code>" if n % 2 else str(escape(one)) for n, one in enumerate(text.split("`")))
    return Markup("".join(pieces))


def rendered(template: str, **values: Any) -> str:
    """Fills a template."""
    return environment().get_template(template).render(**values)


def shown(visit: Visit, values: Mapping[str, Any], *, wrong: str = "", status: int = 0, template: str = "") -> Response:
    """A page as a response.

    Args:
        wrong: why an act shows its form again; the page shows it as `problem`.
        status: default: 422 with `wrong`, otherwise 200.
    """
    notice = notice_in(visit.context, visit.request)
    known: dict[str, Any] = {
        **framed(visit.context, visit.identity, visit.menu, visit.csrf),
        "title": visit.page.title.format_map(visit.names),
        "here": visit.here,
        "path": visit.page.path,
        "section": _section(visit.page),
        "notice": notice,
        "is_live": visit.page.is_live and visit.request.method != "POST",  # the answer to a form is not loaded again
        "names": visit.names,
        "problem": wrong,
    }
    response = HTMLResponse(
        rendered(template or visit.page.template, **(known | dict(values))), status or (422 if wrong else 200)
    )
    if notice:
        forget_notice(visit.context, response)
    return response


def _section(page: Page) -> str:
    """The path of the navigation's page to which this one belongs."""
    first = page.path.partition("/")[0]
    return {"queue": "", "define": "", "user": "users"}.get(first, first)


def framed(context: Context, identity: Identity, menu: Sequence[Page], csrf: str) -> dict[str, Any]:
    """The values for the frame of each page. Templates may call `may`, too: ``may('put', queue)``."""
    return {"manager": context.name, "user": identity.name, "menu": menu, "csrf": csrf, "may": identity.may}


def plain_page(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A page outside the table of pages, such as an error; without navigation unless the values have it."""
    empty = dict.fromkeys(("manager", "user", "here", "csrf", "notice"), "")
    nowhere = {"path": None, "section": None, "menu": (), "is_live": False}
    return HTMLResponse(rendered(template, **(empty | nowhere | values)), status)
