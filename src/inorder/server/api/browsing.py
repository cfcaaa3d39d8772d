"""Browse: pages of messages, which stay on the queue. The cursor in the request is the whole state of a browse.

A cursor is the token of a strict browse (B-38, B-41): its position in each priority. So no page misses a message or
shows one twice, even if messages are put meanwhile, and any worker may serve the next page. A relaxed browse has no
such
position: it shows one page of the present state of the queue.
"""

from __future__ import annotations

import contextlib
from typing import Any, Final

from starlette.responses import Response

from ...client.manager import QueueManager
from ...errors import NoMessageAvailable, OrderPending
from ...formats.json_lines import record_of, told_id
from ...model.message import Got
from ...model.parameters import Integer
from ..calls import Call
from ..disconnects import IsWanted, while_wanted
from .describing import JSON, ApiOperation, ApiParameter, ApiResponse, Given, listed, record, ref, value
from .parameters import BrowseCursor, flag
from .taking import MATCH, READ_ORDER, READING, WAIT, match_of, rendered, wait_of

PAGE_BYTES: Final = 16 * 1_048_576  # of bodies, after which a page ends
PAGE_MAX: Final = 2_000
BODIES: Final = frozenset({"body", "body_base64"})


async def browse(call: Call, given: Given) -> Response:
    """Answers one page of messages."""
    qm, wait = call.context.qm, wait_of(call, given)
    match, order = match_of(given), given["read_order"]
    options: dict[str, Any] = {one.name: given[one.name] for one in READING} | {"match": match, "read_order": order}
    if not given["bodies"]:
        options |= {"buffer": 0, "accept_truncated": True}

    def page(qm: QueueManager, *, is_last: bool) -> bytes:
        found = _page(qm, call.queue, options, given)
        if not (found["messages"] or is_last):
            raise NoMessageAvailable("there is no message after the cursor")
        return rendered(found)

    async def show(*, is_last: bool) -> Response:
        found = await qm.run(lambda one: page(one, is_last=is_last))
        if wait:
            await call.demand_again("browse", call.queue)
        return Response(found, media_type=JSON)

    async def look(is_wanted: IsWanted) -> Response:
        del is_wanted  # a browse can lose no message
        if wait:
            with contextlib.suppress(NoMessageAvailable):
                return await qm.awaited(call.queue, lambda: show(is_last=False), wait=wait, match=match)
        return await show(is_last=True)

    if not wait:
        return await look(lambda: True)
    with call.context.waits.taken():
        return await while_wanted(call, look)


def _page(qm: QueueManager, queue: str, options: dict[str, Any], given: Given) -> dict[str, Any]:
    shown: list[dict[str, Any]] = []
    withheld: dict[str, Any] | None = None
    size = 0
    with contextlib.closing(qm.browse(queue, after=given["cursor"], **options)) as browsing:
        try:
            for message in browsing:
                shown.append(shown_record(message, has_body=given["bodies"]))
                size += len(message.body)
                if len(shown) == given["count"] or size >= PAGE_BYTES:
                    break
        except OrderPending as pending:
            withheld = {name: pending.data.get(name) for name in ("kind", "by", "age")}
        token, awaits = browsing.token, browsing.awaits
    return {
        "messages": shown,
        "cursor": token or given["cursor"],
        "awaits": awaits
        and {"group_id": told_id(awaits.group_id), "sequence_number": awaits.sequence_number, "offset": awaits.offset},
        "withheld": withheld,
    }


def shown_record(message: Got, *, has_body: bool) -> dict[str, Any]:
    """A message as JSON, with or without its body."""
    record = record_of(message)
    return record if has_body else {name: value for name, value in record.items() if name not in BODIES}


SCHEMAS: Final = {
    "Page": record(
        {
            "messages": listed(
                "GotMessage", description="at most the requested number; empty if there are no more now"
            ),
            "cursor": value(
                "string null",
                "for the next page, even if this one is empty; null: begin again, or the browse is relaxed",
            ),
            "awaits": value("object null", "in logical order: the next member of a group, which has not arrived yet"),
            "withheld": value(
                "object null",
                "the unsettled message before which the page ends: kind (in: put, out: got), by, age (seconds)",
            ),
        }
    )
}
OPERATIONS: Final = (
    ApiOperation(
        name="browse",
        method="GET",
        path="queues/{queue}/browse",
        authority="browse",
        summary="Copy messages, a page at a time.",
        text=(
            "The cursor of one page leads to the next: no message is missed and none comes twice. A browse is "
            "strict unless it asks for relaxed order. A relaxed browse has only one page, and also shows messages "
            "that a strict one withholds."
        ),
        handler=browse,
        parameters=(
            ApiParameter("count", "The most messages in the page.", Integer(1, PAGE_MAX), default=10, example=100),
            ApiParameter(
                "cursor",
                "The `cursor` of the page after which to continue; without it the browse starts at the first message.",
                BrowseCursor("the cursor from the answer of a browse"),
            ),
            ApiParameter("read_order", "The read order.", READ_ORDER, default="strict"),
            flag("bodies", "Whether to include the bodies.", default=True),
            WAIT,
            *READING,
            *MATCH,
        ),
        answers={200: ApiResponse("The page; it is empty if there is no message now.", ref("Page"))},
    ),
)
