"""Confirm ids and lock ids: messages that are held until a later request, from any client, settles them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from ...errors import ArgumentError, Reason
from ...formats.json_lines import record_of, whole
from ...model.message import UniqueId
from ...model.parameters import Integer, Seconds, is_integer
from ...rules.leases import LOCK_SECONDS_MAX
from ..calls import Call
from ..problems import problem
from .describing import (
    JSON,
    ApiBody,
    ApiOperation,
    ApiParameter,
    ApiResponse,
    Given,
    Schema,
    listed,
    record,
    ref,
    value,
)
from .parameters import HELD_UNDER, ID_MAX
from .taking import MATCH, match_of, rendered

LOCKED_MAX: Final = 2_000
LOCKED_FOR: Final = Seconds(0, LOCK_SECONDS_MAX, above=True)


async def confirm_put(call: Call, _: Given) -> Response:
    """Makes a message visible."""
    uid, confirm_id = await _message_and_id(call, "confirm_id")
    return _warned(await call.context.qm.confirm_put(call.queue, uid, confirm_id=confirm_id))


async def confirm_get(call: Call, _: Given) -> Response:
    """Removes a message for good."""
    uid, confirm_id = await _message_and_id(call, "confirm_id")
    return _warned(await call.context.qm.confirm_get(call.queue, uid, confirm_id=confirm_id))


async def undo(call: Call, _: Given) -> Response:
    """Takes back everything that was put, got or locked under a confirm id."""
    confirm_id = _id_in(await call.object(), "confirm_id")
    return JSONResponse({"messages": await call.context.qm.undo(call.queue, confirm_id)})


async def browse_and_lock(call: Call, given: Given) -> Response:
    """Copies and locks messages."""
    match, confirm_id, most, lease = match_of(given), given["confirm_id"] or 0, given["count"], given["seconds"]
    locked = await call.context.qm.run(
        lambda qm: qm.browse_and_lock(call.queue, match, confirm_id=confirm_id, most=most, lease=lease)
    )
    record = await asyncio.to_thread(
        lambda: rendered({"lock_id": locked.lock_id, "messages": [record_of(one) for one in locked.messages]})
    )
    return Response(record, media_type=JSON)


async def unlock(call: Call, _: Given) -> Response:
    """Unlocks one message."""
    uid, lock_id = await _message_and_id(call, "lock_id", required=True)
    await call.context.qm.unlock(call.queue, uid, lock_id=lock_id)
    return Response(status_code=204)


async def delete(call: Call, _: Given) -> Response:
    """Removes one message."""
    uid, lock_id = await _message_and_id(call, "lock_id")
    await call.context.qm.delete(call.queue, uid, lock_id=lock_id)
    return Response(status_code=204)


async def release_lock(call: Call, _: Given) -> Response:
    """Unlocks all messages under a lock id."""
    lock_id = _id_in(await call.object(), "lock_id")
    return JSONResponse({"messages": await call.context.qm.admin.release_lock(call.queue, lock_id)})


async def unique_ids(call: Call, given: Given) -> Response:
    """Lists the messages under a confirm id or a lock id."""
    found = await call.context.qm.inspect.unique_ids(
        call.queue, confirm_id=given["confirm_id"] or 0, lock_id=given["lock_id"] or 0
    )
    return JSONResponse({"uids": [one._asdict() for one in found]})


def _warned(warning: Reason | None) -> Response:
    return JSONResponse({"warning": warning and warning.name})


async def _message_and_id(call: Call, name: str, *, required: bool = False) -> tuple[UniqueId, int]:
    """Reads the message that a body names, and the id with it; 0 if there is none. Raises: Problem 400."""
    given = await call.object()
    uid = given.pop("uid", None)
    if isinstance(uid, dict) and uid.keys() == {"origin", "number"} and isinstance(uid["origin"], str):
        number = whole(uid["number"])
        if is_integer(number) and 0 <= number <= ID_MAX:
            return UniqueId(uid["origin"], number), _id_in(given, name) if given or required else 0
    raise problem("INWB0004E", "uid must be an object with origin and number")


def _id_in(given: Mapping[str, Any], name: str) -> int:
    """Reads the id in a body without other keys. Raises: Problem 400."""
    try:
        if given.keys() == {name}:
            return int(HELD_UNDER.check(name, whole(given[name])))
    except ArgumentError:
        pass
    raise problem("INWB0004E", f"{name} must be {HELD_UNDER.allowed}, and no other key is allowed")


# --- the description

ID: Final[Schema] = dict(HELD_UNDER.schema)
COUNTED: Final = record({"messages": value("integer", "how many")}, is_open=True)
WARNED: Final = record({"warning": value("string null", "the name of the warning's reason")}, is_open=True)
UID: Final = ref("UniqueId")
UID_AND_CONFIRM_ID: Final = record({"uid": UID, "confirm_id": ID}, optional=["confirm_id"])
SCHEMAS: Final = {
    "Locked": record({"lock_id": ID, "messages": listed("GotMessage")}, is_open=True),
    "UniqueIds": record({"uids": listed("UniqueId")}, is_open=True),
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
        body=ApiBody("The message, and its confirm id if the server should check it.", UID_AND_CONFIRM_ID),
        answers={200: ApiResponse("The message is visible now, or already was.", WARNED)},
    ),
    _operation(
        "confirm_get",
        confirm_get,
        "Confirm a get: the message is removed for good.",
        authority="get",
        body=ApiBody("The message, and its confirm id if the server should check it.", UID_AND_CONFIRM_ID),
        answers={200: ApiResponse("The message is removed; a warning tells whether it was already gone.", WARNED)},
    ),
    _operation(
        "undo",
        undo,
        "Take back everything that was put, got or locked under a confirm id.",
        authority="get",
        also=("put",),
        body=ApiBody("The confirm id.", record({"confirm_id": ID})),
        answers={200: ApiResponse("The number of messages.", COUNTED)},
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
        answers={200: ApiResponse("The messages, and the lock id.", ref("Locked"))},
    ),
    _operation(
        "unlock",
        unlock,
        "Unlock one message.",
        authority="get",
        body=ApiBody("The message, and the lock id.", record({"uid": UID, "lock_id": ID})),
        answers={204: ApiResponse("The message is unlocked.")},
    ),
    _operation(
        "delete",
        delete,
        "Remove one message, unlocked, or locked under a lock id.",
        authority="get",
        body=ApiBody("The message, and the lock id.", record({"uid": UID, "lock_id": ID}, optional=["lock_id"])),
        answers={204: ApiResponse("The message is removed.")},
    ),
    _operation(
        "release_lock",
        release_lock,
        "Unlock all messages under a lock id.",
        authority="get",
        body=ApiBody("The lock id.", record({"lock_id": ID})),
        answers={200: ApiResponse("The number of messages.", COUNTED)},
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
        answers={200: ApiResponse("The unique ids.", ref("UniqueIds"))},
    ),
)
