"""Queues: their names, attributes and status, with the names of Python."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from ...client.manager import QueueManager
from ...model.attributes import QueueAttributes, QueueStatus
from ..calls import Call
from .describing import ApiOperation, ApiResponse, Given, record, ref, value


async def listed(call: Call, given: Given) -> Response:
    """Lists the queues that the user may inquire."""
    del given
    found = [one.name for one in await call.context.qm.queues() if call.identity.may("inquire", one.name)]
    return JSONResponse({"queues": found})


async def shown(call: Call, given: Given) -> Response:
    """Answers one queue."""
    del given

    def look(qm: QueueManager) -> tuple[QueueAttributes, QueueStatus | None]:
        attributes = qm.attributes(call.queue)
        return attributes, qm.inspect.status(call.queue) if attributes.type == "local" else None

    attributes, status = await call.context.qm.run(look)
    record: dict[str, Any] = {"attributes": _values(attributes), "status": status and _values(status)}
    return JSONResponse(record)


def _values(of: Any) -> dict[str, Any]:
    return {one.name: getattr(of, one.name) for one in dataclasses.fields(of)}


SCHEMAS: Final = {
    "Queue": record(
        {
            "attributes": value("object", "all attributes, by name"),
            "status": value("object null", "current depth and counters; null if the queue is not local"),
        },
        is_open=True,
    ),
    "QueueNames": record({"queues": value("array", items=value("string"))}, is_open=True),
}
OPERATIONS: Final = (
    ApiOperation(
        name="queues",
        method="GET",
        path="queues",
        authority=None,
        summary="List the names of the queues that you may inquire.",
        handler=listed,
        answers={200: ApiResponse("Their names, in order.", ref("QueueNames"))},
    ),
    ApiOperation(
        name="queue",
        method="GET",
        path="queues/{queue}",
        authority="inquire",
        summary="A queue: its attributes and its status.",
        handler=shown,
        answers={200: ApiResponse("The queue.", ref("Queue"))},
    ),
)
