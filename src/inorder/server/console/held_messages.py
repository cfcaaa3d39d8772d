"""Holders of messages: units, locks and claims; waiting calls, and the programs that are connected.

An operator can end a holder here. For this the operator types the holder's name, as `inorder unit list` shows it, and
needs the authority "control".
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from ...client.manager import QueueManager
from ...client.programs import WORKER
from ...client.unit_names import INSTEAD, coordinator_of, find_unit, key_of, settle_by_hand
from ...errors import InorderError, UnitNotFound, UnknownObject
from ...rules.ordering import pending_text
from ...rules.puts import Program
from ...stores.seam.records import Claims, Outcome
from ...stores.seam.views import ConnectionView, LockView, MessageView, Opening, Unit, Wait
from ..watching import PROGRAM
from . import forms
from .acting import noted, refused
from .labels import counted
from .page import Page, Visit
from .rendering import shown

SHOWN: Final = 200
DONE: Final[Mapping[Outcome, str]] = {"commit": "committed", "back_out": "backed out"}


class Running(NamedTuple):
    """A program in a process.

    Args:
        process, host, since: see `ConnectionView`.
        is_worker: whether `inorder work` started it.
        is_here: whether it is this process of this server.
        connections: how many connections it has.
        opened: each open queue by name, with its uses and the number of handles.
        units: its open units of work, the oldest first.
        waits: how many of its calls wait.
    """

    program: Program
    process: int | None
    host: str
    since: float | None
    is_worker: bool
    is_here: bool
    connections: int
    opened: Sequence[tuple[Opening, int]]
    units: Sequence[Unit]
    waits: int


def running(connections: Sequence[ConnectionView], units: Sequence[Unit], waits: Sequence[Wait]) -> list[Running]:
    """The programs: workers first, then by name. A connection whose process is unknown counts as a separate program.

    In a store on a server, each connection of a process has its own start time, and process ids are unique only within
    a host.
    """
    together: dict[tuple[object, ...], list[ConnectionView]] = {}
    for one in connections:
        process: object = one.connection
        if one.process is not None:
            process = (one.host, one.process, None if one.host else one.since)
        together.setdefault((one.program, process), []).append(one)
    found = [_running(each, units, waits) for each in together.values()]
    return sorted(found, key=lambda one: (not one.is_worker, one.program.name, one.since or 0.0))


def _running(connections: Sequence[ConnectionView], units: Sequence[Unit], waits: Sequence[Wait]) -> Running:
    one = connections[0]
    numbers = {each.connection for each in connections}
    opened = Counter(opening for each in connections for opening in each.opened)
    return Running(
        program=one.program,
        process=one.process,
        host=one.host,
        since=min((each.since for each in connections if each.since is not None), default=None),
        is_worker=one.program.name.startswith(f"{WORKER} "),
        is_here=one.process == os.getpid() and one.program.name == PROGRAM,
        connections=len(connections),
        opened=sorted(opened.items(), key=lambda each: (each[0].name, each[0].uses)),
        units=[unit for unit in units if unit.connection in numbers],
        waits=sum(wait.connection in numbers for wait in waits),
    )


def openings_of(queue: str, programs: Sequence[Running]) -> list[tuple[Running, Opening, int]]:
    """The programs that have a queue open, under any of its names, and with how many handles."""
    return [(one, opening, count) for one in programs for opening, count in one.opened if opening.queue == queue]


# --- all holders


async def show(visit: Visit) -> Mapping[str, Any]:
    """GET held: all holders of messages, waiting calls and connected programs."""
    visit.query()

    def look(qm: QueueManager) -> dict[str, Any]:
        units, waits = qm.inspect.units(), qm.inspect.waits()
        programs = running(qm.inspect.connections(), units, waits)
        return {
            "units": units,
            "locks": qm.inspect.locks(),
            "claims": qm.bulk.claims(),
            "waits": waits,
            "programs": programs[:SHOWN],
            "more": len(programs) - SHOWN,
        }

    return {**await visit.context.qm.run(look), "now": time.time(), "why": pending_text}


async def _confirmed(
    visit: Visit, values: Mapping[str, Any], act: str, queue: str, work: Callable[[QueueManager], int], text: str
) -> Response:
    """Runs an act if the visitor has typed the name of the holder, which is the key in `values`.

    Args:
        work: does it, and returns the number of messages.
        text: the notice; it may contain ``{messages}``.
    """
    key = values["key"]
    if wrong := visit.unconfirmed(key):
        return shown(visit, values, wrong=wrong)
    try:
        messages = await noted(visit, act, queue, work)
    except InorderError as error:
        return refused(visit, error, values)
    return forms.done(visit, text.replace("{messages}", counted(messages)), "held")


# --- a unit


async def unit(visit: Visit) -> dict[str, Any]:
    """GET held/unit/NAME: a unit and the messages that it holds."""
    visit.query()

    def look(qm: QueueManager) -> tuple[Unit, list[tuple[str, list[MessageView]]]]:
        one = find_unit(qm, visit.names["unit"])
        return one, [(queue, list(qm.inspect.look(queue, unit=one, most=SHOWN))) for queue in one.queues]

    one, held = await visit.context.qm.run(look)
    seen = [(queue, sights if visit.identity.may("browse", queue) else []) for queue, sights in held]
    return {
        "unit": one,
        "key": key_of(one),
        "coordinator": coordinator_of(one),
        "held": seen,
        "most": SHOWN,
        "now": time.time(),
        "outcomes": [word for word in DONE if (word, one.kind) not in INSTEAD],
        "instead": {word: INSTEAD[word, one.kind] for word in DONE if (word, one.kind) in INSTEAD},
    }


async def settle_unit(visit: Visit) -> Response:
    """POST held/unit/NAME: commits the unit or backs it out."""
    visit.demand("control")
    outcome = visit.choice("outcome", DONE)
    values = await unit(visit)
    key, one = values["key"], values["unit"]

    def settle(qm: QueueManager) -> int:
        settle_by_hand(qm, one, outcome)
        return int(one.puts + one.gets + one.locks)

    act = f"{outcome.replace('_', ' ')} {key}"[:256]
    return await _confirmed(visit, values, act, one.queue, settle, f"{key} was {DONE[outcome]}.")


# --- a lock id


async def lock(visit: Visit) -> dict[str, Any]:
    """GET held/lock/QUEUE/ID: a lock id."""
    visit.query()

    def look(qm: QueueManager) -> LockView:
        for one in qm.inspect.locks():
            if (one.queue, str(one.lock_id)) == (visit.queue, visit.names["lock"]):
                return one
        raise UnitNotFound(f"there is no lock id {visit.names['lock']} on {visit.queue}", unit=visit.names["lock"])

    one = await visit.context.qm.run(look)
    return {"lock": one, "key": f"lock:{one.queue}:{one.lock_id}", "now": time.time()}


async def release_lock(visit: Visit) -> Response:
    """POST held/lock/QUEUE/ID: unlocks its messages."""
    visit.demand("control")
    values = await lock(visit)
    lock_id, text = values["lock"].lock_id, f"{values['key']} released: {{messages}}."
    return await _confirmed(
        visit, values, "release lock", visit.queue, lambda qm: qm.admin.release_lock(visit.queue, lock_id), text
    )


# --- an application's claims


async def claim(visit: Visit) -> dict[str, Any]:
    """GET held/claim/QUEUE/APPLICATION: the claims of an application."""
    visit.query()
    application = visit.names["application"]

    def look(qm: QueueManager) -> Claims:
        for one in qm.bulk.claims():
            if (one.queue, one.application) == (visit.queue, application):
                return one
        text = f"{application} has not read any messages in claims on {visit.queue}"
        raise UnknownObject(text, object=application)

    one = await visit.context.qm.run(look)
    held = sum(each.messages for each in one.held if each.number > one.settled)
    return {"claims": one, "key": application, "held": held, "now": time.time()}


async def end_claim(visit: Visit) -> Response:
    """POST held/claim/QUEUE/APPLICATION: returns its messages, or takes the application out of its group."""
    visit.demand("control")
    name = visit.choice("action", ("release", "leave"))
    values = await claim(visit)
    key, queue = values["key"], visit.queue

    def release(qm: QueueManager) -> int:
        return qm.bulk.release_claims(queue, key)

    def leave(qm: QueueManager) -> int:
        qm.bulk.leave_claimed_group(queue, key)
        return 0

    if name == "release":
        text = f"Messages of {key} were returned to {queue}: {{messages}}."
        return await _confirmed(visit, values, "release claims", queue, release, text)
    return await _confirmed(visit, values, "leave group", queue, leave, f"{key} has left its group: {{messages}}.")


PAGES: Final = (
    Page(path="held", title="Held messages", authority="display", template="held.html", show=show, menu="Held",
         is_live=True),
    Page(path="held/unit/{unit}", title="{unit}", authority="display", template="unit.html", show=unit,
         act=settle_unit),
    Page(path="held/lock/{queue}/{lock}", title="Lock id {lock} on {queue}", authority="display", template="lock.html",
         show=lock, act=release_lock),
    Page(path="held/claim/{queue}/{application}", title="Claims of {application} on {queue}", authority="display",
         template="claim.html", show=claim, act=end_claim),
)  # fmt: skip
