"""Dead letters: lists them with reason, time and destination; replays and discards chosen ones."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final

from starlette.responses import Response

from ...client.dead_letters import DeadLetter
from ...client.manager import QueueManager
from ...errors import InorderError
from ...model.message import UniqueId
from ...model.options import Match
from ...model.parameters import Integer
from ...rules.authorities import MANAGER
from ...rules.dead_letters import WhyDead, reason_name
from ..problems import Problem
from . import acting
from .acting import Acted, UnavailableMessage, noted, outcome, refused, reported
from .labels import counted
from .listing import uid_in, uid_text
from .page import Page, Visit
from .rendering import shown

LISTED: Final = 200
ACTIONS: Final = ("replay", "discard")
FILTER: Final = ("reason", "queue", "selector")
REASON: Final = Integer(0, 9_999_999_999, words="the number of a reason")


async def show(visit: Visit) -> Mapping[str, Any]:
    """GET dead: the first dead letters that match the query."""
    return await _listed(visit, visit.query(*FILTER))


async def _listed(
    visit: Visit, given: Mapping[str, str], chosen: Sequence[str] = (), target: str = ""
) -> dict[str, Any]:
    """The values for the list.

    Args:
        given: the filter.
        chosen, target: the values of a refused form; the page ticks these boxes again.
    """
    values: dict[str, Any] = {
        "given": {name: given.get(name, "") for name in FILTER},
        "letters": [],
        "chosen": frozenset(chosen),
        "others": chosen,
        "target": target,
        "uid_text": uid_text,
        "has_more": False,
        "most": LISTED,
        "now": time.time(),
        "reason_name": reason_name,
        "there": "",
    }
    there = await visit.context.qm.dead.place()
    visit.demand("browse", there)
    try:
        fitting = _choice(given)
        letters = await visit.context.qm.run(
            lambda qm: list(islice(qm.dead.letters(dead_letter_queue=there, **fitting), LISTED + 1))
        )
    except InorderError as error:
        return values | {"there": there, "problem": str(visit.identity.shown(error))}
    listed = {uid_text(uid_in(one.message)) for one in letters[:LISTED]}
    others = [one for one in chosen if one not in listed]
    return values | {
        "there": there, "letters": letters[:LISTED], "has_more": len(letters) > LISTED, "others": others,
    }  # fmt: skip


def _choice(given: Mapping[str, str]) -> dict[str, Any]:
    """Reads the filter. Raises: ArgumentError."""
    reason, queue, selector = (given.get(name, "").strip() for name in FILTER)
    return {
        "reason": REASON.read("reason", reason) if reason else None,
        "queue": queue or None,
        "match": Match(selector=selector or None),
    }


async def act(visit: Visit) -> Response:
    """POST dead: shows the chosen letters first; the second POST replays or discards them."""
    name = visit.choice("action", ACTIONS)
    given, target = visit.query(*FILTER), visit.text("target").strip()
    there = await visit.context.qm.dead.place()
    try:
        uids = acting.uids_of(visit.texts("uid"))
        if not uids:
            raise acting.left_out("uid", "no dead letter is chosen: tick at least one")
        visit.demand("get" if name == "replay" else "clear", there)
        letters, missing = await visit.context.qm.run(lambda qm: letters_of(qm, there, uids))
        missing = reported(visit, there, missing)
        if name == "replay":
            _demand_targets(visit, letters, target)
            if target:
                await visit.context.qm.run(lambda qm: acting.check_two(qm, there, target))
        values = {
            "name": name, "there": there, "letters": letters, "missing": missing, "target": target,
            "uids": " ".join(uid_text(uid_in(one.message)) for one in letters),
            "reason_name": reason_name,
        }  # fmt: skip
        return await _reviewed(visit, name, there, letters, target, values)
    except (InorderError, Problem) as error:
        chosen = list(dict.fromkeys(word for text in visit.texts("uid") for word in text.split()))
        return refused(visit, error, await _listed(visit, given, chosen, target))


async def _reviewed(
    visit: Visit, name: str, there: str, letters: Sequence[DeadLetter], target: str, values: dict[str, Any]
) -> Response:
    if visit.text("step") != "do":
        return shown(visit, values, template="dead_review.html")
    if name == "discard" and visit.text("typed") != there:
        wrong = f"Type the name of the queue, {there}, to confirm. Nothing was discarded."
        return shown(visit, values, wrong=wrong, template="dead_review.html")
    uids = [uid_in(one.message) for one in letters]
    if name == "discard":
        acted = await noted(visit, "discard", there, lambda qm: acting.remove(qm, there, uids))
    else:
        acted = await noted(visit, "replay", there, lambda qm: replayed(qm, visit, there, uids, target or None))
    text = f"{counted(acted.messages, 'dead letter')} {'discarded' if name == 'discard' else 'replayed'}."
    missing = [*values["missing"], *reported(visit, there, acted.missing)]
    return outcome(visit, there, text, missing, acted.stayed, target, "dead")


def _demand_targets(visit: Visit, letters: Sequence[DeadLetter], target: str) -> None:
    """Raises: Problem 403, if the visitor may not put on the destination of the letters."""
    for queue in {target} if target else {_asked_of(visit, one.why) for one in letters if one.why.queue}:
        visit.demand("put", queue)


def _asked_of(visit: Visit, why: WhyDead) -> str:
    """The destination of a letter, or the queue manager if any transmission queue leads there."""
    return why.queue if why.manager in ("", visit.context.name) else MANAGER


def letters_of(
    qm: QueueManager, there: str, uids: Sequence[UniqueId]
) -> tuple[list[DeadLetter], list[UnavailableMessage]]:
    """The dead letters with these ids, and the ids of letters that are not available."""
    letters, missing = list[DeadLetter](), list[UnavailableMessage]()
    for uid in uids:
        letter = next(iter(qm.dead.letters(match=Match(uid=uid), dead_letter_queue=there)), None)
        if letter is None:
            missing.append(UnavailableMessage(uid, acting.why(acting.sight_of(qm, there, uid))))
        else:
            letters.append(letter)
    return letters, missing


def replayed(qm: QueueManager, visit: Visit, there: str, uids: Sequence[UniqueId], target: str | None) -> Acted:
    """Replays these dead letters, each in its own unit of work. Returns those that stay, with the error."""
    messages, missing, stayed = 0, list[UnavailableMessage](), list[UnavailableMessage]()
    for uid in uids:
        done = qm.dead.replay(to=target, match=Match(uid=uid), dead_letter_queue=there)
        messages += done.messages
        if done.stayed:
            stayed += [UnavailableMessage(uid, str(visit.identity.shown(one.error))) for one in done.stayed]
        elif not done.messages:
            missing.append(UnavailableMessage(uid, acting.why(acting.sight_of(qm, there, uid))))
    return Acted(messages, missing, stayed)


PAGES: Final = (
    Page(
        path="dead", title="Dead letters", authority=None, template="dead.html", show=show, act=act,
        menu="Dead letters", is_live=True,
    ),
)  # fmt: skip
