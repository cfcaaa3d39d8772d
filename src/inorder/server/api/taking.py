"""Gets: how messages are taken, and when a get is final.

**A get is at most once**, as in `server.messaging`. It takes the messages in one call of the store, or in a unit of
work. The server makes the answer, and commits just before it sends it, if the client is still connected. A client that
must not lose an answer gets in a lease or under a confirm id: then the messages are held, and its next request decides
about them. The server never undoes a get under a confirm id, because the client knows the id, and can undo a get whose
answer it lacks.

A get that waits is a task without a connection. It looks when something has changed on the queue. Meanwhile the user
may have been locked out or lost the authority. So a get that commits checks the user again before the commit, and a get
whose messages are held checks before each look.
"""

from __future__ import annotations

import asyncio
import functools
import json
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, Final, TypeVar

from starlette.responses import Response

from ...aio import Lease
from ...client.manager import QueueManager
from ...errors import NoMessageAvailable, OrderPending
from ...formats.json_lines import record_of
from ...model.message import Got
from ...model.options import GetOptions, Match
from ...model.parameters import Choice, Seconds, Text
from ..calls import Call
from ..disconnects import IsGone, IsWanted, check_wanted, is_gone_of, taken_in_one_unit, while_wanted
from ..problems import Problem, wrong_parameter
from .describing import JSON, ApiParameter, Given
from .parameters import MATCHING, flag

LEASE: Final = "Inorder-Lease"
WAIT_MAX: Final = 3_600.0
LEAST_SECONDS: Final = 0.1  # the shortest wait in a lease, whose deadline is by the store's clock

IN_LEASE: Final = ApiParameter(
    LEASE, "The token of the lease that this is a part of.", Text(200, least=1), where="header"
)
WAIT: Final = ApiParameter("wait", "Seconds to wait for a message.", Seconds(0, WAIT_MAX), default=0, example=5)
SELECTOR: Final = ApiParameter(
    "selector", "Get only a message that matches this selector.", Text(10_000, least=1), example="colour = 'red'"
)
MATCH: Final = (*MATCHING, SELECTOR)
READING: Final = (
    flag("logical", "Read in logical order: get only the first message of a group, or a message in no group."),
    flag("complete", "Get only whole logical messages, with their segments joined."),
    flag("all_segments", "Get only if all segments of the message have arrived."),
    flag("all_messages", "Get only if all messages of the group have arrived."),
)
READ_ORDER: Final = Choice(("strict", "relaxed"))
ORDER: Final = ApiParameter("read_order", "The read order; default: the queue's.", READ_ORDER)


def match_of(given: Given) -> Match:
    """The match of a request, from the parameters in `MATCH`. Raises: ArgumentError."""
    return Match(**{one.name: given[one.name] for one in MATCH if given[one.name] is not None})


def options_of(given: Given, **more: Any) -> GetOptions:
    """The options of a get, from `MATCH`, `READING` and `ORDER`. Raises: ArgumentError; OptionsError."""
    flags = {one.name: given[one.name] for one in READING}
    return GetOptions(match=match_of(given), read_order=given["read_order"], **flags, **more)


def rendered(record: Any) -> bytes:
    """An answer as JSON. Call it in the thread that has the messages, because it may take long."""
    return json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def of_one(found: Got) -> bytes:
    """One message as an answer."""
    return rendered(record_of(found))


def of_many(found: Sequence[Got]) -> bytes:
    """Several messages as an answer."""
    return rendered({"messages": [record_of(one) for one in found]})


Work = Callable[[QueueManager], bytes]
T = TypeVar("T")


async def get_and_hold(call: Call, work: Callable[[QueueManager], T], *, waits: bool) -> T:
    """Gets messages that stay held. After a wait it checks the user again, before the get and before the answer.

    Raises: Problem, if the user was locked out. The messages then stay held, as after a lost answer.
    """
    if not waits:
        return await call.context.qm.run(work)
    await call.demand_again("get", call.queue)
    found = await call.context.qm.run(work)
    await call.demand_again("get", call.queue)
    return found


async def taken(
    call: Call,
    given: Given,
    work: Work,
    key: Hashable,
    match: Match,
    *,
    now: Callable[[IsGone], Awaitable[bytes]] | None = None,
    is_held: bool = False,
) -> Response:
    """Answers a get.

    Args:
        work: gets in the present unit of work, without waiting, and makes the answer.
        key: equal for gets with equal options.
        now: does the same as `work`, without a wait, in a separate unit or call, if the client is still connected.
        is_held: whether a confirm id holds the messages, so that no message is lost with the answer.

    Raises: OrderPending; the errors of the get; ClientDisconnect; Problem 503.
    """
    wait, lease = wait_of(call, given), given.get(LEASE)
    qm, queue = call.context.qm, call.queue

    async def take(is_wanted: IsWanted) -> Response:
        if lease is not None:
            return await _answer(_in_lease(call, lease, work, wait, key, match))

        async def hold_if_wanted() -> bytes:
            await check_wanted(is_wanted)  # a client that has already gone leaves no message held
            return await get_and_hold(call, work, waits=wait > 0)

        if is_held:
            return await _answer(qm.awaited(queue, hold_if_wanted, wait=wait, match=match, key=key))

        async def commit_if_wanted() -> bytes:
            async with qm.unit_of_work():
                found = await qm.run(work)
                if wait:
                    await call.demand_again("get", queue)
                await check_wanted(is_wanted)
            return found

        return await _answer(qm.awaited(queue, commit_if_wanted, wait=wait, match=match, key=key))

    if not wait:
        is_gone = is_gone_of(call)
        if is_gone is None or lease is not None or is_held:
            return await while_wanted(call, take)
        return await _answer(taken_in_one_unit(call, is_gone, work) if now is None else now(is_gone))
    with call.context.waits.taken():
        return await while_wanted(call, take)


async def _in_lease(call: Call, token: str, work: Work, wait: float, key: Hashable, match: Match) -> bytes:
    """Gets in a lease. It waits until the deadline of the lease, and then checks whether the deadline was moved.

    Raises: LeaseOver; NoMessageAvailable; OrderPending.
    """
    qm, now = call.context.qm, asyncio.get_running_loop().time
    until = now() + wait
    while True:
        lease = await qm.resume_lease(token, user=call.identity.name)
        left = min(until - now(), max(lease.ends_at - time.time(), LEAST_SECONDS))
        try:
            look = functools.partial(_held, call, lease, work, waits=wait > 0)
            return await qm.awaited(call.queue, look, wait=max(left, 0), match=match, key=(lease.name, key))
        except (NoMessageAvailable, OrderPending):
            if now() >= until:
                raise


async def _held(call: Call, lease: Lease, work: Work, *, waits: bool) -> bytes:
    """Gets in a lease. Raises: Problem, if the user was locked out; then it backs out a lease that got messages."""
    if not waits:
        return await lease.run(work)
    await call.demand_again("get", call.queue)
    found = await lease.run(work)
    try:
        await call.demand_again("get", call.queue)
    except Problem:
        await lease.back_out()
        raise
    return found


async def _answer(found: Awaitable[bytes]) -> Response:
    try:
        return Response(await found, media_type=JSON)
    except NoMessageAvailable:
        return Response(status_code=204)


def wait_of(call: Call, given: Given) -> float:
    """The seconds to wait. Raises: Problem 400, if they exceed this server's limit."""
    most, wait = call.context.settings.limits.wait_seconds, float(given["wait"])
    if wait > most:
        raise wrong_parameter(Seconds(0, most).refusal("wait", wait))
    return wait
