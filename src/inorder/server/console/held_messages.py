"""Holders of messages: units, locks, claims, waiting calls and programs. Operators can end them here.

To end one, the visitor types its name, as `inorder unit list` shows it, and needs the authority "control".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final

from starlette.responses import Response

from ...client.manager import QueueManager
from ...client.unit_names import INSTEAD, find_unit, key_of, settle_by_hand
from ...errors import InorderError, UnitNotFound, UnknownObject
from ...model.parameters import one_of
from ...rules.ordering import pending_text
from ...stores.seam.records import Claims, Outcome
from ...stores.seam.views import LockView, MessageView, Unit
from ..problems import problem
from . import notices
from .form_results import noted, refused, text_in
from .page import Page, Visit, to
from .programs import running
from .rendering import shown

SHOWN: Final = 200
OUTCOMES: Final[tuple[Outcome, ...]] = ("commit", "back_out")
DONE: Final[Mapping[str, str]] = {"commit": "committed", "back_out": "backed out"}


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


# --- a unit


async def show_unit(visit: Visit) -> Mapping[str, Any]:
    """GET held/unit/NAME: a unit and the messages that it holds."""
    visit.query()
    return await _unit(visit)


async def _unit(visit: Visit) -> dict[str, Any]:
    def look(qm: QueueManager) -> tuple[Unit, list[tuple[str, list[MessageView]]]]:
        one = find_unit(qm, visit.names["unit"])
        return one, [(queue, list(islice(qm.inspect.look(queue, unit=one, most=SHOWN), SHOWN))) for queue in one.queues]

    one, held = await visit.context.qm.run(look)
    seen = [(queue, sights if visit.identity.may("browse", queue) else []) for queue, sights in held]
    return {
        "unit": one,
        "key": key_of(one),
        "held": seen,
        "most": SHOWN,
        "now": time.time(),
        "outcomes": [one_of for one_of in OUTCOMES if (one_of, one.kind) not in INSTEAD],
        "instead": {word: INSTEAD[word, one.kind] for word in OUTCOMES if (word, one.kind) in INSTEAD},
        "problem": "",
    }


async def act_on_unit(visit: Visit) -> Response:
    """POST held/unit/NAME: commits the unit or backs it out."""
    visit.demand("control")
    outcome = next((one for one in OUTCOMES if one == text_in(visit, "outcome")), None)
    if outcome is None:
        raise problem("INWB0004E", f"outcome must be {one_of(OUTCOMES)}")
    values = await _unit(visit)
    key, unit = values["key"], values["unit"]
    if text_in(visit, "typed") != key:
        return _again(visit, values, key)

    def settle(qm: QueueManager) -> int:
        settle_by_hand(qm, unit, outcome)
        return int(unit.puts + unit.gets + unit.locks)

    try:
        await noted(visit, f"{outcome.replace('_', ' ')} {key}"[:256], unit.queue, settle, lambda held: held)
    except InorderError as error:
        return refused(visit, error, values)
    return notices.leave(visit.context, to("held"), f"{key} was {DONE[outcome]}.")


def _again(visit: Visit, values: Mapping[str, Any], name: str) -> Response:
    wrong = f"Type {name} to confirm. Nothing was changed."
    return shown(visit, {**values, "problem": wrong}, status=422)


# --- a lock id


async def show_lock(visit: Visit) -> Mapping[str, Any]:
    """GET held/lock/QUEUE/ID: a lock id."""
    visit.query()
    return await _lock(visit)


async def _lock(visit: Visit) -> dict[str, Any]:
    def look(qm: QueueManager) -> LockView:
        found = (
            one for one in qm.inspect.locks() if (one.queue, str(one.lock_id)) == (visit.queue, visit.names["lock"])
        )
        one = next(found, None)
        if one is None:
            raise UnitNotFound(f"there is no lock id {visit.names['lock']} on {visit.queue}", unit=visit.names["lock"])
        return one

    one = await visit.context.qm.run(look)
    return {"lock": one, "key": f"lock:{one.queue}:{one.lock_id}", "now": time.time(), "problem": ""}


async def act_on_lock(visit: Visit) -> Response:
    """POST held/lock/QUEUE/ID: unlocks its messages."""
    visit.demand("control")
    values = await _lock(visit)
    key, lock_id = values["key"], values["lock"].lock_id
    if text_in(visit, "typed") != key:
        return _again(visit, values, key)
    return await _done(
        visit, values, "release lock", lambda qm: qm.admin.release_lock(visit.queue, lock_id), f"{key} released"
    )


async def _done(
    visit: Visit, values: Mapping[str, Any], act: str, work: Callable[[QueueManager], int], text: str
) -> Response:
    try:
        messages = await noted(visit, act, visit.queue, work, lambda count: count)
    except InorderError as error:
        return refused(visit, error, values)
    return notices.leave(
        visit.context, to("held"), f"{text}: {messages:,} {'message' if messages == 1 else 'messages'}."
    )


# --- an application's claims


async def show_claim(visit: Visit) -> Mapping[str, Any]:
    """GET held/claim/QUEUE/APPLICATION: the claims of an application."""
    visit.query()
    return await _claim(visit)


async def _claim(visit: Visit) -> dict[str, Any]:
    application = visit.names["application"]

    def look(qm: QueueManager) -> Claims:
        found = (one for one in qm.bulk.claims() if (one.queue, one.application) == (visit.queue, application))
        one = next(found, None)
        if one is None:
            raise UnknownObject(
                f"{application} has not read any messages in claims on {visit.queue}", object=application
            )
        return one

    one = await visit.context.qm.run(look)
    held = sum(claim.messages for claim in one.held if claim.number > one.settled)
    return {"claims": one, "key": application, "held": held, "now": time.time(), "problem": ""}


async def act_on_claim(visit: Visit) -> Response:
    """POST held/claim/QUEUE/APPLICATION: returns its messages, or takes it out of its group."""
    visit.demand("control")
    name = text_in(visit, "action")
    if name not in ("release", "leave"):
        raise problem("INWB0004E", "action must be one of: release, leave")
    values = await _claim(visit)
    key = values["key"]
    if text_in(visit, "typed") != key:
        return _again(visit, values, key)
    if name == "release":
        return await _done(
            visit, values, "release claims", lambda qm: qm.bulk.release_claims(visit.queue, key),
            f"Messages of {key} were returned to {visit.queue}",
        )  # fmt: skip
    return await _done(
        visit, values, "leave group", lambda qm: _left(qm, visit.queue, key), f"{key} has left its group"
    )


def _left(qm: QueueManager, queue: str, application: str) -> int:
    qm.bulk.leave_claimed_group(queue, application)
    return 0


PAGES: Final = (
    Page(path="held", title="Held messages", authority="display", template="held.html", show=show, menu="Held",
         is_live=True),
    Page(path="held/unit/{unit}", title="{unit}", authority="display", template="unit.html", show=show_unit,
         act=act_on_unit),
    Page(path="held/lock/{queue}/{lock}", title="Lock id {lock} on {queue}", authority="display", template="lock.html",
         show=show_lock, act=act_on_lock),
    Page(path="held/claim/{queue}/{application}", title="Claims of {application} on {queue}", authority="display",
         template="claim.html", show=show_claim, act=act_on_claim),
)  # fmt: skip
