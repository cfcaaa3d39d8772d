"""Pages of templates. Everything that comes from outside is escaped, since the environment escapes all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse, Response

from ...client.unit_names import key_of
from ..calls import Context
from ..identity import Identity
from . import labels, notices
from .files import static
from .page import BASE, Page, Visit, address
from .pictures import sparkline

FOLDER: Final = Path(__file__).parent / "templates"


@cache
def environment() -> Environment:
    """The templates, with what they may call."""
    made = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals |= {"static": static, "sparkline": sparkline, "at": address, "base": BASE, "unit_key": key_of}
    made.filters |= {
        "span": labels.span,
        "size": labels.size,
        "number": labels.number,
        "rate": labels.rate,
        "clock": labels.clock,
        "iso": labels.iso,
        "line": labels.one_line,
        "marked": marked,
    }
    return made


def marked(text: str) -> Markup:
    """A text of ours in which backticks mark code."""
    pieces = (f"<code>{escape(one)}</code>" if n % 2 else str(escape(one)) for n, one in enumerate(text.split("`")))
    return Markup("".join(pieces))


def rendered(template: str, **values: Any) -> str:
    """A template, filled."""
    return environment().get_template(template).render(**values)


def shown(visit: Visit, values: Mapping[str, Any], *, status: int = 200, template: str = "") -> Response:
    """A page as a response. An act that shows its form again gives the status 422 and what is wrong."""
    notice = notices.left(visit.context, visit.request)
    known: dict[str, Any] = {
        **framed(visit.context, visit.identity, visit.menu, visit.csrf),
        "title": visit.page.title.format_map(visit.names),
        "here": visit.here,
        "path": visit.page.path,
        "section": _section(visit.page),
        "notice": notice,
        "is_live": visit.page.is_live and visit.request.method != "POST",  # what an act shows is not loaded again
        "names": visit.names,
    }
    response = HTMLResponse(rendered(template or visit.page.template, **(known | dict(values))), status)
    if notice:
        notices.forget(visit.context, response)
    return response


def _section(page: Page) -> str:
    """The page of the navigation that this one belongs to, by its path."""
    first = page.path.partition("/")[0]
    return "" if first == "queue" else first


def framed(context: Context, identity: Identity, menu: Sequence[Page], csrf: str) -> dict[str, Any]:
    """What is around each page of somebody who is known. Templates have `may`, too: ``may('put', queue)``."""
    return {"manager": context.name, "user": identity.name, "menu": menu, "csrf": csrf, "may": identity.may}


def plain_page(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A page that is none of the table: without navigation, if the values have none."""
    empty = dict.fromkeys(("manager", "user", "here", "csrf", "notice"), "")
    nowhere = {"path": None, "section": None, "menu": (), "is_live": False}
    return HTMLResponse(rendered(template, **(empty | nowhere | values)), status)
