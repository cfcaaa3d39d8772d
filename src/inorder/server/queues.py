"""Queues as resources, as in version 1 of IBM's administration interface: list, show, create, alter, delete."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final, get_args
from urllib.parse import quote

from starlette.responses import JSONResponse, Response

from ..client.manager import QueueManager
from ..errors import UnknownQueue, WrongQueueType
from ..model.attributes import QueueAttributes, QueueStatus, QueueType
from ..model.parameters import one_of
from ..mq.mqsc.commands import Define
from ..mq.mqsc.filters import is_like
from ..mq.mqsc.running import define
from ..mq.mqsc.words import BY_TYPE, age
from .calls import Call
from .operator_log import acted
from .problems import problem
from .queue_filters import Filter, NotComparable, read_filter
from .queue_objects import AGE, GROUPS, PATHS, STATUS, attributes_in, object_of, status_of, wanted

TYPES: Final = ("all", *BY_TYPE)
STATUS_PATHS: Final = frozenset(f"status.{name}" for name in STATUS)
OF_STATUS: Final = "timestamps."  # attributes that are part of a queue's status


async def listed(call: Call) -> Response:
    """GET queue: the queues that match the query and that the user may inquire."""
    return await _show(call, None)


async def shown(call: Call) -> Response:
    """GET queue/NAME: one queue."""
    return await _show(call, call.queue)


async def _show(call: Call, name: str | None) -> Response:
    call.check_manager()
    if name:
        call.demand("inquire", name)
    given = call.query("type", "attributes", "status", *(() if name else ("name", "filter")))
    pattern, kind = given.get("name", "*"), given.get("type", "all")
    if kind not in TYPES:
        raise problem("INWB0003E", "type", f"must be {one_of(TYPES)}")
    paths = paths_in(given, "attributes", GROUPS, PATHS)
    of_status = paths_in(given, "status", ("status",), STATUS_PATHS)
    chosen = _filter(given)
    needed = frozenset((chosen.path,)) if chosen else frozenset()

    def look(qm: QueueManager) -> list[dict[str, Any]]:
        found = [qm.attributes(name)] if name else qm.queues()
        seen = [one for one in found if call.identity.may("inquire", one.name)]
        fitting = [one for one in seen if kind in ("all", one.type) and (name or is_like(one.name, pattern))]
        ages = _ages(qm) if AGE in of_status | needed else {}
        if chosen:
            whole = ((one, _object(qm, one, needed & PATHS, needed & STATUS_PATHS, ages)) for one in fitting)
            fitting = [one for one, values in whole if values is not None and chosen.fits(values)]
        return [object_ for one in fitting if (object_ := _object(qm, one, paths, of_status, ages)) is not None]

    try:
        return JSONResponse({"queue": await call.context.qm.run(look)})
    except NotComparable as error:
        raise problem("INWB0003E", "filter", error) from None


def _filter(given: dict[str, str]) -> Filter | None:
    if "filter" not in given:
        return None
    try:
        return read_filter(given["filter"], PATHS | STATUS_PATHS)
    except ValueError as error:
        raise problem("INWB0003E", "filter", error) from None


def _ages(qm: QueueManager) -> dict[str, int]:
    """The age of the oldest message on each queue, in seconds."""
    now = time.time()
    return {one.name: age(one.oldest_put_at, now) for one in qm.inspect.overview()}


def paths_in(given: dict[str, str], parameter: str, groups: tuple[str, ...], paths: frozenset[str]) -> frozenset[str]:
    """The paths of the attributes that a parameter names. Raises: Problem 400, if there is no such attribute."""
    try:
        return wanted(given.get(parameter), groups, paths)
    except ValueError as error:
        raise problem("INWB0003E", parameter, error) from None


def _object(
    qm: QueueManager,
    queue: QueueAttributes,
    paths: frozenset[str],
    of_status: frozenset[str],
    ages: Mapping[str, int],
) -> dict[str, Any] | None:
    """A queue as JSON; None if it was deleted meanwhile."""
    needs_status = bool(of_status) or any(path.startswith(OF_STATUS) for path in paths)
    status: QueueStatus | None = None
    if needs_status and queue.type == "local":
        try:
            status = qm.inspect.status(queue.name)
        except UnknownQueue:
            return None
    found = object_of(queue, paths, status)
    if status is not None and of_status:
        found["status"] = status_of(status, of_status, ages.get(queue.name, 0))
    return found


async def create(call: Call) -> Response:
    """POST queue: creates a queue, or replaces the attributes of an existing one, whose messages stay."""
    call.check_manager()
    call.demand("administer")
    asked = call.query("like", "noReplace")
    like = asked.get("like")
    if like == "":
        raise problem("INWB0003E", "like", "must be the name of a queue")
    given = await call.object()
    name, kind = given.pop("name", None), given.pop("type", "local")
    if not isinstance(name, str) or kind not in get_args(QueueType):
        raise problem("INWB0004E", f"name must be a text, and type {one_of(BY_TYPE)}")
    attributes = _attributes(given)
    command = Define(name=name, type=kind, attributes=attributes, like=like, replace="noReplace" not in asked)
    await _done(call, "define", name, lambda qm: define(qm, command))
    place = f"{call.request.url.path.rstrip('/')}/{quote(name, safe='')}"
    return Response(status_code=201, headers={"Location": place})


async def alter(call: Call) -> Response:
    """PATCH queue/NAME: changes the given attributes."""
    call.check_manager()
    call.demand("alter", call.queue)
    call.query()
    given = await call.object()
    kind = given.pop("type", None)
    changes = _attributes(given)

    def change(qm: QueueManager) -> None:
        there = qm.attributes(call.queue).type
        if kind not in (None, there):
            raise WrongQueueType(f"{call.queue} is a queue of type {there!r}, not {kind!r}", queue=call.queue)
        qm.alter_queue(call.queue, **changes)

    await _done(call, "alter", call.queue, change)
    return Response(status_code=204)


async def delete(call: Call) -> Response:
    """DELETE queue/NAME: deletes a queue; with ?purge also its messages. Grants for its name stay in either case."""
    call.check_manager()
    call.demand("administer")
    purge = "purge" in call.query("purge", "keepAuthorityRecords")
    await _done(call, "delete", call.queue, lambda qm: qm.delete_queue(call.queue, purge=purge))
    return Response(status_code=204)


def _attributes(given: dict[str, Any]) -> dict[str, Any]:
    try:
        return attributes_in(given)
    except ValueError as error:
        raise problem("INWB0004E", error) from None


async def _done(call: Call, act: str, queue: str, work: Callable[[QueueManager], object]) -> None:
    await acted(call.context, call.request, act, queue, lambda qm, _: work(qm))
