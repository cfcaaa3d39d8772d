"""Acts on chosen messages of a queue, ticked or matched by a selector: move, copy, delete, bury, export.

The first POST shows the chosen messages, their number and the holders of others. It names each by its unique id. The
second POST acts on exactly these. An act that removes messages from a queue asks for the queue's name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from starlette.responses import Response

from ...client.manager import QueueManager
from ...errors import InorderError, bad_argument
from ...model.message import UniqueId
from ...model.options import Match
from ...rules.authorities import Authority
from ...stores.seam.views import MessageView
from ..problems import Problem
from . import acting, files
from .acting import Acted, Meant, noted, outcome, refused, reported
from .labels import counted
from .listing import uid_in, uid_text
from .page import Page, Visit
from .rendering import shown

SHOWN: Final = 20
"""The most messages listed before an act."""
PAGE: Final = 500
"""The number of messages that one call reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """An action on messages.

    Args:
        word: for its button; done: for its result.
        authority: needed on their queue; the target needs put.
        has_target: whether it puts them on another queue.
        takes_away: whether it removes them from their queue, so that the visitor must type its name.
    """

    word: str
    done: str
    authority: Authority
    has_target: bool = False
    takes_away: bool = False


ACTIONS: Final[Mapping[str, Action]] = MappingProxyType(
    {
        "move": Action(word="Move", done="moved", authority="get", has_target=True, takes_away=True),
        "copy": Action(word="Copy", done="copied", authority="browse", has_target=True),
        "delete": Action(word="Delete", done="deleted", authority="clear", takes_away=True),
        "bury": Action(word="Bury", done="made dead letters", authority="get", takes_away=True),
        "export": Action(word="Export", done="exported", authority="browse"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The request in a form.

    Args:
        uids: the ids of the messages; if there are none, the selector decides, and an empty one means all.
        is_last: whether this is the second POST.
    """

    name: str
    queue: str
    uids: Sequence[UniqueId]
    selector: str
    target: str
    is_last: bool

    @property
    def action(self) -> Action:
        return ACTIONS[self.name]

    @property
    def match(self) -> Match:
        return Match(selector=self.selector or None)


def wish_of(visit: Visit, name: str) -> Wish:
    """Raises: ArgumentError, if an id is not valid or no message is chosen."""
    uids = acting.uids_of(visit.texts("uid"))
    if not uids and "selector" not in visit.form:
        raise acting.left_out("uid", "no message is chosen: tick at least one, or give a selector")
    return Wish(
        name=name,
        queue=visit.queue,
        uids=uids,
        selector=visit.text("selector").strip(),
        target=visit.text("target").strip(),
        is_last=visit.text("step") == "do",
    )


async def show(visit: Visit) -> Mapping[str, Any]:
    """GET queue/NAME/act: the form that chooses messages by a selector."""
    return _form(visit, visit.query("action", "selector"), "")


def _form(visit: Visit, given: Mapping[str, str], uids: str) -> dict[str, Any]:
    """The values for the form.

    Args:
        given: the visitor's input.
        uids: the chosen messages as sent; the form keeps them whatever else was wrong. If empty, the selector decides.
    """
    may, queue = visit.identity.may, visit.queue
    has_hands = may("get", queue) or may("put", queue)  # a visitor who can only browse cannot copy
    allowed = [one for one, it in ACTIONS.items() if may(it.authority, queue) and (has_hands or not it.has_target)]
    return {
        "actions": ACTIONS,
        "allowed": allowed,
        "name": given.get("action", ""),
        "selector": given.get("selector", ""),
        "target": given.get("target", ""),
        "form": given.get("form", ""),
        "uids": uids,
        "chosen": len(set(uids.split())),
        "forms": files.FORMS,
    }


async def act(visit: Visit) -> Response:
    """POST queue/NAME/act: shows the chosen messages first; the second POST acts on them."""
    name = visit.choice("action", ACTIONS)
    try:
        wish = wish_of(visit, name)
        _demand(visit, wish)
        if wish.name == "export":
            return await files.download(visit, wish.uids, wish.match, visit.text("form") or "jsonl")
        if wish.action.has_target:
            await visit.context.qm.run(lambda qm: acting.check_two(qm, wish.queue, wish.target))
        if not wish.is_last:
            return shown(visit, _values(wish, await meant(visit, wish)), template="review.html")
        return await _do(visit, wish)
    except (InorderError, Problem) as error:
        given = {field: visit.text(field) for field in ("action", "selector", "target", "form")}
        return refused(visit, error, _form(visit, given, " ".join(visit.texts("uid")).strip()))


def _demand(visit: Visit, wish: Wish) -> None:
    """Raises: Problem 403; ArgumentError, if there is no target."""
    visit.demand(wish.action.authority, wish.queue)
    if wish.action.has_target:
        if not wish.target:
            raise acting.left_out("target", "the target queue is missing: fill in its name")
        visit.demand("put", wish.target)


async def meant(visit: Visit, wish: Wish) -> Meant:
    """The messages that the act would affect. They are read page by page."""
    qm = visit.context.qm
    if wish.uids:
        found = await qm.run(lambda one: acting.chosen(one, wish.queue, wish.uids))
        return found._replace(missing=reported(visit, wish.queue, found.missing))
    sights: list[MessageView] = []
    others = 0
    async for page in acting.pages_of(qm, wish.queue, wish.match, preview=64, most=PAGE):
        there = [one for one in page if one.state == "available"]
        others += len(page) - len(there)
        sights += there
        if len(sights) > acting.CHOSEN_MAX:
            break
    return Meant(sights[: acting.CHOSEN_MAX], [], has_more=len(sights) > acting.CHOSEN_MAX, others=others)


def _values(wish: Wish, found: Meant) -> dict[str, Any]:
    return {
        "action": wish.action, "name": wish.name, "queue": wish.queue, "target": wish.target, "meant": found,
        "uids": " ".join(uid_text(uid_in(one.message)) for one in found.sights),
        "shown": found.sights[:SHOWN], "most": acting.CHOSEN_MAX,
    }  # fmt: skip


async def _do(visit: Visit, wish: Wish) -> Response:
    if not wish.uids:
        raise bad_argument("uid", "", "the messages that the previous page showed")
    if wish.action.takes_away and (wrong := visit.unconfirmed(wish.queue, "the name of the queue")):
        return shown(visit, _values(wish, await meant(visit, wish)), wrong=wrong, template="review.html")
    user = visit.identity.name
    acted = await noted(visit, wish.name, wish.queue, lambda qm: _work(qm, wish, user))
    text = f"{counted(acted.messages)} {wish.action.done}{f' to {wish.target}' if wish.target else ''}."
    missing = reported(visit, wish.queue, acted.missing)
    return outcome(visit, wish.queue, text, missing, (), "", "queue", wish.queue)


def _work(qm: QueueManager, wish: Wish, user: str) -> Acted:
    if wish.name == "move":
        return acting.move(qm, wish.queue, wish.uids, wish.target)
    if wish.name == "copy":
        return acting.copy(qm, wish.queue, wish.uids, wish.target)
    if wish.name == "bury":
        return acting.bury(qm, wish.queue, wish.uids, f"buried by {user} in the console")
    return acting.remove(qm, wish.queue, wish.uids)


PAGES: Final = (
    Page(path="queue/{queue}/act", title="Act on messages of {queue}", authority="browse", template="selection.html",
         show=show, act=act),
)  # fmt: skip
