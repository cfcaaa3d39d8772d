"""Queues: their names, attributes and status, with the names of Python."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from ...client.manager import QueueManager
from ...formats.json_lines import when
from ...model.attributes import QueueAttributes, QueueStatus
from ...model.parameters import Choice
from ...rules.history import RINGS, Period, activities
from ..calls import Call
from .describing import ApiOperation, ApiParameter, ApiResponse, Given, record, ref, value


async def listed(call: Call, _: Given) -> Response:
    """Lists the queues that the user may inquire."""
    found = [one.name for one in await call.context.qm.queues() if call.identity.may("inquire", one.name)]
    return JSONResponse({"queues": found})


async def shown(call: Call, _: Given) -> Response:
    """Answers one queue."""

    def look(qm: QueueManager) -> tuple[QueueAttributes, QueueStatus | None]:
        attributes = qm.attributes(call.queue)
        return attributes, qm.inspect.status(call.queue) if attributes.type == "local" else None

    attributes, status = await call.context.qm.run(look)
    record: dict[str, Any] = {"attributes": _values(attributes), "status": status and _values(status)}
    return JSONResponse(record)


async def history(call: Call, given: Given) -> Response:
    """Answers the history of a queue."""
    period: Period = given["over"]
    ring = RINGS[period]
    points = await call.context.qm.run(lambda qm: qm.internals.history(call.queue, period))
    values = [{**one._asdict(), "at": when(one.at)} for one in activities(points, ring)]
    return JSONResponse({"slot_seconds": ring.seconds, "values": values})


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
    "History": record(
        {
            "slot_seconds": value("integer", "the length of a slot; the store keeps one value for each"),
            "values": value(
                "array", "in order of time; a slot in which no server ran has none", items=ref("HistoryValue")
            ),
        },
        is_open=True,
    ),
    "HistoryValue": record(
        {
            "at": value("string", "when the last sample of its slot was taken, in UTC", format="date-time"),
            "depth": value("integer", "the highest depth that was seen in the slot"),
            "put": value("number null", "messages put per second since the previous value; null if its slot has none"),
            "got": value("number null", "the same for messages that left the depth, minus those that came back"),
            "age": value("number", "the highest age of its oldest message that was seen in the slot, in seconds"),
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
    ApiOperation(
        name="history",
        method="GET",
        path="queues/{queue}/history",
        authority="inquire",
        summary="Depth, rates and age of a queue in the last hour, day or week.",
        handler=history,
        parameters=(ApiParameter("over", "The period.", Choice(tuple(RINGS)), default="hour", example="day"),),
        answers={200: ApiResponse("The history.", ref("History"))},
    ),
)
