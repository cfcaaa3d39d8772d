"""Messages: put and get, one or many, alone or as whole groups, in a lease or without one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

from starlette.responses import JSONResponse, Response

from ...client.manager import QueueManager
from ...errors import ArgumentError, CallerError, written
from ...formats.json_lines import message_in, record_of_put
from ...model.message import IN_GROUP, LAST_IN_GROUP, NO_ID, Message, UniqueId
from ...model.options import DEDUPLICATE_FOR_MAX, KEY_LENGTH_MAX, Match, PutOptions, UniqueIds
from ...model.parameters import Integer, Seconds, Text
from ...rules.puts import PutResult
from ..calls import AT_ONCE, Call
from ..descriptors import AS_TEXT
from ..disconnects import IsGone, taken_in_one_call
from ..problems import problem
from .describing import ApiBody, ApiOperation, ApiParameter, ApiResponse, Given, ref
from .parameters import HELD_UNDER, flag
from .schemas import HOW_TO_PUT
from .taking import IN_LEASE, LEASE, MATCH, ORDER, READING, WAIT, match_of, of_many, of_one, options_of, taken

T = TypeVar("T")
KEY: Final = "Idempotency-Key"
KEPT: Final = Seconds(0, DEDUPLICATE_FOR_MAX, above=True)
MANY_MAX: Final = 10_000
MANY: Final = Integer(1, MANY_MAX)


# --- put


async def put(call: Call, given: Given) -> Response:
    """Puts one message."""
    record = await _body(call)
    message = _of_user(call, await _aside(call, lambda: _message(record, "")))
    options = _options(given)

    def work(qm: QueueManager) -> PutResult:
        if options.uid is not None and options.uid.origin == qm.admin.manager_attributes().origin:
            _check_uid(qm, call.queue, options.uid)
        return qm.put(call.queue, message, options)

    result = await _done(call, given, work)
    return JSONResponse(record_of_put(call.queue, result), 201)


async def put_many(call: Call, given: Given) -> Response:
    """Puts messages, all or none."""
    record = await _body(call)
    messages = [_of_user(call, one) for one in await _aside(call, lambda: _messages(record))]
    if given["group"]:
        messages = [_member(one, place, len(messages)) for place, one in enumerate(messages)]
    options = _options(given, logical=given["group"])
    results = await _done(call, given, lambda qm: qm.put_many(call.queue, messages, options))
    return JSONResponse({"results": [record_of_put(call.queue, one) for one in results]}, 201)


async def _done(call: Call, given: Given, work: Callable[[QueueManager], T]) -> T:
    """Runs a put in the request's lease, or commits it at once."""
    token = given[LEASE]
    if token is None:
        return await call.context.qm.run(work)
    lease = await call.context.qm.resume_lease(token, user=call.identity.name)
    return await lease.run(work)


def _options(given: Given, **more: Any) -> PutOptions:
    """The options of a put. Raises: Problem 400, if some exclude each other."""
    key, kept, lease = given[KEY], given["deduplicate_for"], given[LEASE]
    if kept is not None and key is None:
        raise problem("INWB0003E", "deduplicate_for", f"needs the header {KEY}")
    options = {name: given[name] for name in ("confirm_id", "uid", "resend") if given.get(name) is not None}
    if lease is not None and ("confirm_id" in options or "uid" in options):
        raise problem("INWB0003E", "confirm_id", f"and uid exclude {LEASE}: they act at once")
    once = {"deduplicate": key} if kept is None else {"deduplicate": key, "deduplicate_for": kept}
    return PutOptions(context="set_identity", **options, **once, **more)


async def _body(call: Call) -> dict[str, Any]:
    limits = call.context.settings.limits
    return await call.object(limits.body * 4 // 3 + limits.json)


async def _aside(call: Call, work: Callable[[], T]) -> T:
    """Calls `work`; in a thread if the request is long."""
    length = call.header("content-length") or ""
    is_short = length.isdecimal() and len(length) < 10 and int(length) <= AT_ONCE
    return work() if is_short else await asyncio.to_thread(work)


def _of_user(call: Call, message: Message) -> Message:
    """The message with the identity of the user, in place of any other identity."""
    return message.replace(**call.identity.context)


def _messages(record: Mapping[str, Any]) -> list[Message]:
    found = record.get("messages")
    if record.keys() != {"messages"} or not isinstance(found, list) or not 1 <= len(found) <= MANY_MAX:
        raise problem("INWB0004E", f"must be an object with messages, an array of 1 to {MANY_MAX:,}")
    return [_message(one, f"messages[{place}]: ") for place, one in enumerate(found)]


def _message(record: object, where: str) -> Message:
    """Reads a message. Raises: Problem 400, if it is not valid."""
    try:
        if not isinstance(record, dict):
            raise ValueError("a message must be an object")
        if "body_json" in record:
            return _of_json(record)
        return message_in(record if "body_base64" in record else {**AS_TEXT, **record})
    except (ValueError, TypeError, CallerError) as error:
        reason = error.reason.value if isinstance(error, CallerError) else 0
        raise problem("INWB0004E", f"{where}{_why(error)}", reason=reason) from None


def _why(error: Exception) -> object:
    """The mistake in a key, in terms of JSON."""
    if not isinstance(error, ArgumentError):
        return error
    name = str(error.data["argument"])
    allowed = HOW_TO_PUT.get(name)
    return error.args[0] if allowed is None else f"{name} cannot be {_shown(error.data['value'])}: {allowed}"


def _shown(value: object) -> str:
    return json.dumps(value) if isinstance(value, str | int | float | None) else written(value)


def _of_json(record: Mapping[str, Any]) -> Message:
    others = {name: value for name, value in record.items() if name != "body_json"}
    if twice := sorted(others.keys() & {"body", "body_base64"}):
        raise ValueError(f"a message must have only one body: body_json or {twice[0]}")
    text = Message.of_json(record["body_json"]).body.decode()
    return message_in({**AS_TEXT, **others, "body": text})


def _member(message: Message, place: int, count: int) -> Message:
    """The message as a member of the group. Raises: Problem 400, if it names a group, or a place in one."""
    if message.group_id != NO_ID or message.sequence_number != 1 or message.offset:
        raise problem(
            "INWB0003E",
            "group",
            f"messages[{place}] must not have group_id, sequence_number or offset: the queue manager sets them",
        )
    return message.replace(flags=message.flags | (LAST_IN_GROUP if place == count - 1 else IN_GROUP))


def _check_uid(qm: QueueManager, queue: str, uid: UniqueId) -> None:
    """Raises: Problem 400, if this queue manager assigns such unique ids (A-1), and no message on the queue has it.

    The queue manager could later assign an id from the future to another message.
    """
    if not any(qm.inspect.look(queue, match=Match(uid=uid), preview=0, most=1)):
        raise problem(
            "INWB0003E",
            "uid",
            f"{uid} is not on {queue}, and only this queue manager assigns such ids: to repeat a put safely after a "
            f"lost answer, use the header {KEY}",
        )


# --- get


async def get(call: Call, given: Given) -> Response:
    """Gets one message."""
    confirm_id, lock_id = given["confirm_id"] or 0, given["lock_id"] or 0
    if confirm_id and given[LEASE] is not None:
        raise problem("INWB0003E", "confirm_id", f"excludes {LEASE}: only one of them can hold the message")
    options = options_of(given, confirm_id=confirm_id, lock_id=lock_id)

    def leave(qm: QueueManager) -> None:
        if options.logical:  # the next request must not continue the handle's group
            qm.leave_group(call.queue)

    def work(qm: QueueManager) -> bytes:
        try:
            return of_one(qm.get(call.queue, options))
        finally:
            leave(qm)

    def now(is_gone: IsGone) -> Awaitable[bytes]:
        return taken_in_one_call(call, is_gone, options, of_one, leave)

    return await taken(call, given, work, options, options.match, now=now, is_held=confirm_id != 0)


async def get_many(call: Call, given: Given) -> Response:
    """Gets up to a number of messages."""
    options, count = options_of(given), given["count"]

    def work(qm: QueueManager) -> bytes:
        return of_many(qm.get_many(call.queue, count, options))

    return await taken(call, given, work, (options, count), options.match)


async def get_group(call: Call, given: Given) -> Response:
    """Gets a whole group, or a message in no group."""
    match, order = match_of(given), given["read_order"]

    def work(qm: QueueManager) -> bytes:
        return of_many(list(qm.get_group(call.queue, match=match, read_order=order)))

    return await taken(call, given, work, ("group", match, order), match)


# --- the description

CONFIRM_ID: Final = ApiParameter(
    "confirm_id", "Hold the message under this confirm id until it is confirmed or undone.", HELD_UNDER
)
ONCE: Final = (
    IN_LEASE,
    ApiParameter(
        KEY,
        "A key for the put: a repeated request with the same key puts nothing.",
        Text(KEY_LENGTH_MAX, least=1),
        where="header",
        example="order-17",
    ),
    ApiParameter("deduplicate_for", "Seconds for which the queue remembers the key; default: 3,600.", KEPT),
)
TAKING: Final = (IN_LEASE, WAIT, ORDER, *MATCH)
NOTHING: Final = ApiResponse("There was no suitable message, and none came in time.")

OPERATIONS: Final = (
    ApiOperation(
        name="put",
        method="POST",
        path="queues/{queue}/put",
        authority="put",
        summary="Put a message.",
        text="A persistent message is on disk before the answer is sent; in a lease it is on disk with the commit.",
        handler=put,
        parameters=(
            *ONCE,
            CONFIRM_ID,
            ApiParameter(
                "uid", "The unique id from an earlier put of this message, which this request repeats.", UniqueIds()
            ),
            flag("resend", "With uid: do not fail if the message is already on the queue."),
        ),
        body=ApiBody("The message.", ref("Message"), example={"body": "two apples", "priority": 7}),
        answers={201: ApiResponse("The message was put now, or earlier under this key.", ref("PutResult"))},
    ),
    ApiOperation(
        name="put_many",
        method="POST",
        path="queues/{queue}/put_many",
        authority="put",
        summary="Put messages in order, all or none; also as a whole group.",
        handler=put_many,
        parameters=(*ONCE, flag("group", "Put the messages as one whole group.")),
        body=ApiBody(
            "The messages, at most 10,000.",
            ref("Messages"),
            example={"messages": [{"body": "header"}, {"body_json": {"line": 1}}]},
        ),
        answers={
            201: ApiResponse(
                "A result for each message, in order. A repeat under a key puts nothing, and each result "
                "then names the first message of the original put.",
                ref("PutResults"),
            )
        },
    ),
    ApiOperation(
        name="get",
        method="POST",
        path="queues/{queue}/get",
        authority="get",
        summary="Remove a message and return it.",
        text=(
            "Delivery is at most once: if the answer is lost, the message is lost too, unless it was got in a lease "
            "or under a confirm id. Under a confirm id it then stays held: undo the id before the next get, which "
            "takes another message. If strict order withholds the message, the answer is 409 with the reason "
            "ORDER_PENDING."
        ),
        handler=get,
        parameters=(
            *TAKING,
            *READING,
            CONFIRM_ID,
            ApiParameter("lock_id", "Get a message that was locked under this lock id.", HELD_UNDER),
        ),
        answers={200: ApiResponse("The message.", ref("GotMessage")), 204: NOTHING},
    ),
    ApiOperation(
        name="get_many",
        method="POST",
        path="queues/{queue}/get_many",
        authority="get",
        summary="Remove up to a number of messages and return them.",
        handler=get_many,
        parameters=(*TAKING, *READING, ApiParameter("count", "How many at most.", MANY, default=100, example=10)),
        answers={200: ApiResponse("The messages, in order.", ref("GotMessages")), 204: NOTHING},
    ),
    ApiOperation(
        name="get_group",
        method="POST",
        path="queues/{queue}/get_group",
        authority="get",
        summary="Remove a whole group, or a message in no group, with segments joined, and return it.",
        handler=get_group,
        parameters=TAKING,
        answers={200: ApiResponse("Its messages, in order.", ref("GotMessages")), 204: NOTHING},
    ),
)
