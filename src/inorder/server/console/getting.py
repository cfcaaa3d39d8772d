"""A get of one message, which removes it from its queue and shows it once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from ...client.manager import QueueManager
from ...client.operator_log import Acting
from ...errors import InorderError
from ...model.message import Got
from ...model.options import Match
from ..operator_log import acted
from ..problems import Problem
from . import labels
from .acting import refused
from .message import descriptor, value_text
from .page import Page, Visit
from .rendering import shown


def _values(visit: Visit, selector: str) -> dict[str, Any]:
    return {"queue": visit.queue, "selector": selector, "got": None}


async def show(visit: Visit) -> Mapping[str, Any]:
    """GET queue/NAME/get: the form, which explains that a get removes a message."""
    return _values(visit, visit.query("selector").get("selector", ""))


async def act(visit: Visit) -> Response:
    """POST queue/NAME/get: gets the next message, and shows it."""
    queue, selector = visit.queue, visit.text("selector").strip()
    match = Match(selector=selector or None)

    def get(qm: QueueManager, note: Acting) -> Got:
        found = qm.get(queue, match=match)
        note.messages = 1
        return found

    try:
        got = await acted(visit.context, visit.request, "get", queue, get)
    except (InorderError, Problem) as error:
        return refused(visit, error, _values(visit, selector))
    body = got.body[: labels.SHOWN_MAX]
    values = {
        "got": got, "body": labels.shown_body(body, len(got.body), ""), "descriptor": list(descriptor(got)),
        "properties": [(name, value_text(value)) for name, value in got.properties.items()],
    }  # fmt: skip
    return shown(visit, _values(visit, selector) | values)


PAGES: Final = (
    Page(path="queue/{queue}/get", title="Get from {queue}", authority="get", template="get.html", show=show, act=act),
)
