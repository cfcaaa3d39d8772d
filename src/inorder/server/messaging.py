"""IBM's messaging interface: put, get, browse, list.

**A get is at most once**, as IBM's is. The message stays in its place if the client disconnects before the commit, if
the user has lost the authority, or if the message is not text. After the commit, a message whose answer does not arrive
is lost.

A get without a wait is one call of the store. Before it commits, it makes the answer and asks the system whether the
client is still connected. A get with a wait is a task, not a thread (`inorder.aio`), and holds nothing meanwhile. When
a message arrives, the task gets it in a unit of work, and backs that out if the client has gone; this counts as a
backout. The wait ends when a message arrives, when the time is over, when the client disconnects, and when the server
stops.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Awaitable
from typing import Final, TypeVar

from starlette.responses import JSONResponse, Response

from ..client.manager import QueueManager
from ..errors import ArgumentError, GetInhibited, InorderError, NoMessageAvailable, OrderPending, Reason
from ..model.message import NO_ID, Got
from ..model.options import EVERYTHING, GetOptions, PutOptions
from ..model.parameters import Integer
from ..rules.puts import PutResult
from .calls import Call, check_media_type
from .descriptors import headers_of, match_of, message_of, shown_correlation, shown_id, text_of
from .disconnects import BRIEF_MAX, IsGone, IsWanted, check_wanted, is_gone_of, taken_in_one_call, while_wanted
from .problems import of_error, problem, wrong_parameter

T = TypeVar("T")
TYPES = ("text/plain", "text/html", "text/xml", "application/json", "application/xml")
TEXT_TYPE = "text/plain; charset=utf-8"
LISTED = 10  # messages in a list without a limit
AS_IT_IS_SENT: Final = PutOptions(syncpoint=False, context="set_identity")
NOTHING = (NoMessageAvailable, OrderPending)


async def put(call: Call) -> Response:
    """POST message. Puts one message; a persistent message is on disk before the answer is sent."""
    call.check_manager()
    call.demand("put", call.queue)
    call.query()
    check_media_type(call, TYPES)
    body = await call.body(call.context.settings.limits.body)
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise problem("INWB0004E", f"must be text in UTF-8: byte {error.start} is not valid") from None
    message = message_of(call, body)
    qm, is_brief = call.context.qm, len(body) <= BRIEF_MAX

    def put_now(qm: QueueManager) -> PutResult:
        return qm.put(call.queue, message, AS_IT_IS_SENT)

    done = await _asked(call, qm.awaited(call.queue, lambda: qm.run(put_now, is_brief=is_brief)))
    shown = {"ibm-mq-md-messageId": shown_id(call, done.message_id), "Content-Language": "en-US"}
    return Response(status_code=201, headers=shown, media_type=TEXT_TYPE)


async def get(call: Call) -> Response:
    """DELETE message. Gets one message; 204 if none arrives in time."""
    call.check_manager()
    call.demand("get", call.queue)
    given = call.query("messageId", "correlationId", "wait")
    match, seconds = match_of(call, given), _wait(call, given)
    options = None if match is EVERYTHING else GetOptions(match=match)

    async def take(is_wanted: IsWanted) -> Response:
        qm = call.context.qm
        async with qm.unit_of_work():
            try:
                message = await qm.get(call.queue, wait=seconds, match=match)
            except NOTHING:
                return Response(status_code=204)
            if seconds:
                await call.demand_again("get", call.queue)
            answer = _answer(call, message)
            await check_wanted(is_wanted)
        return answer

    async def take_now(is_gone: IsGone) -> Response:
        try:
            return await taken_in_one_call(call, is_gone, options, lambda message: _answer(call, message))
        except NOTHING:
            return Response(status_code=204)

    if not seconds:
        is_gone = is_gone_of(call)
        return await _asked(call, while_wanted(call, take) if is_gone is None else take_now(is_gone))
    with call.context.waits.taken():
        return await _asked(call, while_wanted(call, take))


async def browse(call: Call) -> Response:
    """GET message. Copies the first message that matches; 204 if there is none."""
    call.check_manager()
    call.demand("browse", call.queue)
    match = match_of(call, call.query("messageId", "correlationId"))

    def look(qm: QueueManager) -> Got | None:
        try:
            with contextlib.closing(qm.browse(call.queue, match=match)) as messages:
                return next(messages, None)
        except OrderPending:  # a withheld message does not count as available
            return None

    message = await _asked(call, call.context.qm.run(look))
    return Response(status_code=204) if message is None else _answer(call, message)


async def listed(call: Call) -> Response:
    """GET messagelist. Lists messages, without their bodies."""
    call.check_manager()
    call.demand("browse", call.queue)
    given = call.query("messageId", "correlationId", "limit")
    match, most = match_of(call, given), _limit(call, given)

    def look(qm: QueueManager) -> list[Got]:
        found: list[Got] = []
        try:
            with contextlib.closing(qm.browse(call.queue, match=match, buffer=0, accept_truncated=True)) as messages:
                found.extend(itertools.islice(messages, most))
        except GetInhibited:  # IBM's answer is an empty list, too
            return []
        except OrderPending:  # a withheld message and all after it do not count as available
            pass
        return found

    found = await _asked(call, call.context.qm.run(look))
    return JSONResponse({"messages": [_listed(call, message) for message in found]})


async def publish(call: Call) -> Response:
    """POST to a topic. Refuses it, because there are no topics."""
    call.check_manager()
    raise problem("MQWB0300E", call.names["topic"], call.context.name, reason=Reason.UNKNOWN_OBJECT_NAME.value)


def _listed(call: Call, message: Got) -> dict[str, str]:
    entry = {"messageId": shown_id(call, message.message_id), "format": message.format.strip()}
    if message.correlation_id != NO_ID:
        entry["correlationId"] = shown_correlation(call, message.correlation_id)
    return entry


def _answer(call: Call, message: Got) -> Response:
    """The answer with a message. Raises: Problem 501, if the message is not text or its headers would be too long."""
    return Response(text_of(message).encode(), headers=headers_of(call, message), media_type=TEXT_TYPE)


async def _asked(call: Call, answer: Awaitable[T]) -> T:
    """Awaits an answer of the queue manager, and turns its errors into problems."""
    try:
        return await answer
    except InorderError as error:
        raise of_error(error, call.queue, call.context.name) from error


# --- parameters


def _wait(call: Call, given: dict[str, str]) -> float:
    """The seconds to wait. Raises: Problem 400."""
    most = int(call.context.settings.limits.wait_seconds * 1000)
    return _whole(given, "wait", 0, Integer(0, most, what="a number of milliseconds")) / 1000


def _limit(call: Call, given: dict[str, str]) -> int:
    most = call.context.settings.limits.listed
    return _whole(given, "limit", LISTED, Integer(1, most))


def _whole(given: dict[str, str], name: str, default: int, kind: Integer) -> int:
    try:
        return int(kind.read(name, given[name])) if name in given else default
    except ArgumentError as error:
        raise wrong_parameter(error) from None
