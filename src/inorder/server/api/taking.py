"""Gets: what is taken, and when it is gone for good.

**A get is at most once**, as in `server.messaging`: the messages are taken in one call of the store, or in a unit of
work, the answer is made, and what was taken is gone just before it is sent, if the client is still there. A client that
cannot bear to lose an answer gets in a lease or under a confirm id: then the messages are held, and its next request
says what becomes of them. What is held under a confirm id is never undone by the server: its client knows the id, and
undoes what it has no answer to.

A get that waits is a task without a connection: it looks when something has changed on the queue. Meanwhile
the user may be out, or have lost the authority: a get that commits asks again before the commit, and one whose messages
are held before each look.
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
LEAST_SECONDS: Final = 0.1  # of a wait in a lease, whose deadline is by the clock of the store

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
    """What the parameters in `MATCH` ask for. Raises: ArgumentError."""
    return Match(**{one.name: given[one.name] for one in MATCH if given[one.name] is not None})


def options_of(given: Given, **more: Any) -> GetOptions:
    """What those in `MATCH`, `READING` and `ORDER` ask for. Raises: ArgumentError; OptionsError."""
    flags = {one.name: given[one.name] for one in READING}
    return GetOptions(match=match_of(given), read_order=given["read_order"], **flags, **more)


def rendered(record: Any) -> bytes:
    """An answer as JSON; in the thread that has the messages, since it may take long."""
    return json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def of_one(found: Got) -> bytes:
    """One message, as an answer has it."""
    return rendered(record_of(found))


def of_many(found: Sequence[Got]) -> bytes:
    """Several, as an answer has them."""
    return rendered({"messages": [record_of(one) for one in found]})


Work = Callable[[QueueManager], bytes]
T = TypeVar("T")


async def get_and_hold(call: Call, work: Callable[[QueueManager], T], *, waits: bool) -> T:
    """What is got and stays held; after a wait the user is asked for again, before the get and before the answer.

    Raises: Problem, the user is out; what was got then stays held, as when an answer is lost.
    """
    if not waits:
        return await call.run(work)
    await call.demand_again("get", call.queue)
    found = await call.run(work)
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
    """What a get answers.

    Args:
        work: gets, in the unit of work that is there, and makes the answer; it does not wait.
        key: of gets that ask for the very same.
        now: does the same as `work`, without a wait, in a unit or a call of its own, if the client is there.
        is_held: what is got is held under a confirm id, so nothing is lost with the answer.

    Raises: OrderPending; as the get; ClientDisconnect; Problem 503.
    """
    wait, lease = wait_of(call, given), given.get(LEASE)
    qm, queue = call.context.qm, call.queue

    async def take(is_wanted: IsWanted) -> Response:
        if lease is not None:
            return await _answer(_in_lease(call, lease, work, wait, key, match))

        async def hold_if_wanted() -> bytes:
            await check_wanted(is_wanted)  # a client that has gone by now leaves nothing held
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
    """What a get in a lease finds. It waits to the deadline of the lease; then it sees whether that was moved.

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
    """Raises: Problem, the user is out: then nothing of a lease that took something meanwhile is kept."""
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
    """Seconds to wait. Raises: Problem 400, this server lets nobody wait so long."""
    most, wait = call.context.settings.limits.wait_seconds, float(given["wait"])
    if wait > most:
        raise wrong_parameter(Seconds(0, most).refusal("wait", wait))
    return wait
