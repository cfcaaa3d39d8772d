"""Lists without actions: channels with their status, users with their authorities, and the log of acts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from ...client.manager import QueueManager
from ...mq.channels import channels, status
from ...rules.dead_letters import reason_name
from .page import Page, Visit
from .sites import ways

ACTS: Final = 200


async def show_channels(visit: Visit) -> Mapping[str, Any]:
    """GET channels: the ways to other queue managers as a picture, the defined channels and their status."""
    visit.query()

    def look(qm: QueueManager) -> dict[str, Any]:
        return {"channels": channels(qm), "states": {one.name: one for one in status(qm)}, "ways": ways(qm)}

    return {**await visit.context.qm.run(look), "now": time.time(), "reason_name": reason_name}


async def show_users(visit: Visit) -> Mapping[str, Any]:
    """GET users: the users, their ways to log in and their authorities, without secrets."""
    visit.query()

    def look(qm: QueueManager) -> dict[str, Any]:
        now, tokens = qm.internals.clock.now(), qm.accounts.tokens()
        valid = [one.user for one in tokens if one.expires_at > now]
        return {"users": qm.accounts.users(), "tokens": {name: valid.count(name) for name in set(valid)}}

    return await visit.context.qm.run(look)


async def show_acts(visit: Visit) -> Mapping[str, Any]:
    """GET log: acts through servers that nobody can undo, newest first."""
    given = visit.query("user", "queue")
    user, queue = (given.get(name, "").strip() or None for name in ("user", "queue"))
    acts = await visit.context.qm.run(lambda qm: list(islice(qm.accounts.acts(user=user, queue=queue), ACTS + 1)))
    return {
        "acts": acts[:ACTS],
        "has_more": len(acts) > ACTS,
        "most": ACTS,
        "given": {name: given.get(name, "") for name in ("user", "queue")},
    }


PAGES: Final = (
    Page(path="channels", title="Channels", authority="display", template="channels.html", show=show_channels,
         menu="Channels", is_live=True),
    Page(path="users", title="Users", authority="administer", template="users.html", show=show_users, menu="Users"),
    Page(path="log", title="Log of acts", authority="administer", template="acts.html", show=show_acts, menu="Log"),
)  # fmt: skip
