"""Confirm ids and lock ids: messages that are held until a later request, from any client, settles them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from ...errors import Reason
from ...formats.json_lines import record_of, whole
from ...model.message import UniqueId
from ...model.parameters import Integer, Seconds
from ...rules.leases import LOCK_SECONDS_MAX
from ..calls import Call
from ..problems import problem
from .describing import JSON, ApiBody, ApiOperation, ApiParameter, ApiResponse, Given, Schema, ref
from .parameters import HELD_UNDER, ID_MAX
from .schemas import listed
from .taking import MATCH, match_of, rendered

LOCKED_MAX: Final = 2_000
LOCKED_FOR: Final = Seconds(0, LOCK_SECONDS_MAX, above=True)


async def confirm_put(call: Call, given: Given) -> Response:
    """Makes a message visible."""
    uid, ids = await _named(call, given, "confirm_id")
    return _warned(await call.context.qm.confirm_put(call.queue, uid, confirm_id=ids.get("confirm_id", 0)))


async def confirm_get(call: Call, given: Given) -> Response:
    """Removes a message for good."""
    uid, ids = await _named(call, given, "confirm_id")
    return _warned(await call.context.qm.confirm_get(call.queue, uid, confirm_id=ids.get("confirm_id", 0)))


async def undo(call: Call, given: Given) -> Response:
    """Takes back all that was done under a confirm id."""
    del given
    ids = await _ids(call, "confirm_id")
    return JSONResponse({"messages": await call.context.qm.undo(call.queue, ids["confirm_id"])})


async def browse_and_lock(call: Call, given: Given) -> Response:
    """Copies and locks messages."""
    match, confirm_id, most, lease = match_of(given), given["confirm_id"] or 0, given["count"], given["seconds"]
    locked = await call.run(
        lambda qm: qm.browse_and_lock(call.queue, match, confirm_id=confirm_id, most=most, lease=lease)
    )
    record = await asyncio.to_thread(
        lambda: rendered({"lock_id": locked.lock_id, "messages": [record_of(one) for one in locked.messages]})
    )
    return Response(record, media_type=JSON)


async def unlock(call: Call, given: Given) -> Response:
    """Frees one message."""
    uid, ids = await _named(call, given, "lock_id", required=True)
    await call.context.qm.unlock(call.queue, uid, lock_id=ids["lock_id"])
    return Response(status_code=204)


async def delete(call: Call, given: Given) -> Response:
    """Removes one message."""
    uid, ids = await _named(call, given, "lock_id")
    await call.context.qm.delete(call.queue, uid, lock_id=ids.get("lock_id", 0))
    return Response(status_code=204)


async def release_lock(call: Call, given: Given) -> Response:
    """Frees all that a lock id locks."""
    del given
    ids = await _ids(call, "lock_id")
    return JSONResponse({"messages": await call.context.qm.admin.release_lock(call.queue, ids["lock_id"])})


async def unique_ids(call: Call, given: Given) -> Response:
    """What stands under an id."""
    found = await call.context.qm.inspect.unique_ids(
        call.queue, confirm_id=given["confirm_id"] or 0, lock_id=given["lock_id"] or 0
    )
    return JSONResponse({"uids": [one._asdict() for one in found]})


def _warned(warning: Reason | None) -> Response:
    return JSONResponse({"warning": warning and warning.name})


async def _named(call: Call, given: Given, id_name: str, *, required: bool = False) -> tuple[UniqueId, dict[str, int]]:
    """The message that a body names, and the id beside it. Raises: Problem 400."""
    del given
    record = await call.object()
    uid = record.pop("uid", None)
    if not (
        isinstance(uid, dict)
        and uid.keys() == {"origin", "number"}
        and isinstance(uid["origin"], str)
        and _is_between(0, number := whole(uid["number"]))
    ):
        raise problem("INWB0004E", "uid must be an object with origin and number")
    return UniqueId(uid["origin"], number), _checked(record, id_name, required=required)


async def _ids(call: Call, name: str) -> dict[str, int]:
    return _checked(await call.object(), name, required=True)


def _checked(record: Mapping[str, Any], name: str, *, required: bool) -> dict[str, int]:
    found = {key: whole(value) for key, value in record.items()}
    if found.keys() - {name} or (required and not found) or not all(_is_between(1, one) for one in found.values()):
        raise problem("INWB0004E", f"{name} must be {HELD_UNDER.allowed}, and no other key is allowed")
    return found


def _is_between(least: int, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= ID_MAX


# --- what can be asked

ID: Final[Schema] = dict(HELD_UNDER.schema)
COUNTED: Final[Schema] = {
    "type": "object",
    "required": ["messages"],
    "properties": {"messages": {"type": "integer", "description": "how many"}},
}
WARNED: Final[Schema] = {
    "type": "object",
    "required": ["warning"],
    "properties": {"warning": {"type": ["string", "null"], "description": "the name of the warning's reason"}},
}


def _object(*required: str, **properties: Schema) -> Schema:
    return {
        "type": "object",
        "required": list(required),
        "properties": properties,
        "additionalProperties": False,
    }


UID_AND_CONFIRM_ID: Final = _object("uid", uid=ref("UniqueId"), confirm_id=ID)
SCHEMAS: Final = {
    "Locked": {
        "type": "object",
        "required": ["lock_id", "messages"],
        "properties": {"lock_id": ID, "messages": listed("GotMessage")},
    },
    "UniqueIds": {"type": "object", "required": ["uids"], "properties": {"uids": listed("UniqueId")}},
}


def _operation(name: str, handler: Callable[[Call, Given], Any], summary: str, **more: Any) -> ApiOperation:
    return ApiOperation(
        name=name, method="POST", path=f"queues/{{queue}}/{name}", handler=handler, summary=summary, **more
    )


OPERATIONS: Final = (
    _operation(
        "confirm_put",
        confirm_put,
        "Confirm a put: the message becomes visible.",
        authority="put",
        body=ApiBody(
            summary="The message, and its confirm id if the server should check it.", schema=UID_AND_CONFIRM_ID
        ),
        answers={200: ApiResponse(summary="The message is visible now, or already was.", schema=WARNED)},
    ),
    _operation(
        "confirm_get",
        confirm_get,
        "Confirm a get: the message is removed for good.",
        authority="get",
        body=ApiBody(
            summary="The message, and its confirm id if the server should check it.", schema=UID_AND_CONFIRM_ID
        ),
        answers={
            200: ApiResponse(
                summary="The message is removed; a warning tells whether it was already gone.", schema=WARNED
            )
        },
    ),
    _operation(
        "undo",
        undo,
        "Take back everything that was put, got or locked under a confirm id.",
        authority="get",
        also=("put",),
        body=ApiBody(summary="The confirm id.", schema=_object("confirm_id", confirm_id=ID)),
        answers={200: ApiResponse(summary="How many messages.", schema=COUNTED)},
    ),
    _operation(
        "browse_and_lock",
        browse_and_lock,
        "Copy messages and lock them against all others, under a new lock id.",
        authority="get",
        parameters=(
            ApiParameter(
                "count",
                "The number of messages, from the first in queue order.",
                Integer(1, LOCKED_MAX),
                default=10,
                example=2,
            ),
            ApiParameter("confirm_id", "For undo.", HELD_UNDER, example=7),
            ApiParameter(
                "seconds",
                "Seconds until the lock expires; without it the lock does not expire.",
                LOCKED_FOR,
                example=60,
            ),
            *MATCH,
        ),
        answers={200: ApiResponse(summary="The messages, and the lock id.", schema=ref("Locked"))},
    ),
    _operation(
        "unlock",
        unlock,
        "Unlock one message.",
        authority="get",
        body=ApiBody(
            summary="The message, and the lock id.", schema=_object("uid", "lock_id", uid=ref("UniqueId"), lock_id=ID)
        ),
        answers={204: ApiResponse(summary="The message is unlocked.")},
    ),
    _operation(
        "delete",
        delete,
        "Remove one message, unlocked, or locked under a lock id.",
        authority="get",
        body=ApiBody(summary="The message, and the lock id.", schema=_object("uid", uid=ref("UniqueId"), lock_id=ID)),
        answers={204: ApiResponse(summary="The message is removed.")},
    ),
    _operation(
        "release_lock",
        release_lock,
        "Unlock all messages under a lock id.",
        authority="get",
        body=ApiBody(summary="The lock id.", schema=_object("lock_id", lock_id=ID)),
        answers={200: ApiResponse(summary="How many messages.", schema=COUNTED)},
    ),
    ApiOperation(
        name="unique_ids",
        method="GET",
        path="queues/{queue}/unique_ids",
        authority="browse",
        summary="The unique ids of the messages under a confirm id or a lock id.",
        handler=unique_ids,
        parameters=(
            ApiParameter("confirm_id", "The confirm id.", HELD_UNDER, example=7),
            ApiParameter("lock_id", "The lock id, instead of a confirm id.", HELD_UNDER),
        ),
        answers={200: ApiResponse(summary="The unique ids.", schema=ref("UniqueIds"))},
    ),
)
