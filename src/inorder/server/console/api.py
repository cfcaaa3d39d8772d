"""The page about our HTTP interface, for people: made of the description that programs read as ``openapi.json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .curl import by_password, first_lines, line_of, longer_line_of
from .described import described
from .page import Page, Visit


async def show(visit: Visit) -> Mapping[str, Any]:
    """GET api: every operation, with a line for curl that has the address which the browser used."""
    visit.query()
    found = described()
    scheme = "https" if visit.context.settings.is_secure else "http"
    at = f"{scheme}://{visit.request.headers['host']}{found.path}"
    lines = {"token_line": first_lines(at), "password_line": by_password(at)}
    made = {"line_of": line_of, "longer_line_of": longer_line_of}
    return {"api": found, "at_": at, "is_secure": scheme == "https", **lines, **made}


PAGES: Final = (Page(path="api", title="API", authority=None, template="api.html", show=show, menu="API"),)
