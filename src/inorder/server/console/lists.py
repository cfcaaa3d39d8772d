"""Lists: channels with their status, which can be started and stopped, and the log of acts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from starlette.responses import Response

from ...client.manager import QueueManager
from ...mq.channels import channels, status
from ...mq.mqsc.values import written
from ...rules.dead_letters import reason_name
from . import forms
from .defining import run
from .page import Page, Visit
from .rendering import shown
from .sites import ways

ACTS: Final = 200
CHANNEL_ACTS: Final = ("start", "stop", "ping")


async def show_channels(visit: Visit) -> Mapping[str, Any]:
    """GET channels: the ways to other queue managers as a picture, the defined channels and their status."""
    visit.query()
    return await _channels(visit)


async def _channels(visit: Visit) -> dict[str, Any]:
    def look(qm: QueueManager) -> dict[str, Any]:
        return {"channels": channels(qm), "states": {one.name: one for one in status(qm)}, "ways": ways(qm)}

    found = await visit.context.qm.run(look)
    return {**found, "now": time.time(), "reason_name": reason_name, "asks": ""}


async def act_on_channel(visit: Visit) -> Response:
    """POST channels: starts, stops or pings a channel, by the command of MQSC; a stop asks for the name first."""
    name, what = visit.text("channel"), visit.choice("action", CHANNEL_ACTS)
    visit.demand("control")
    if what == "stop" and (wrong := visit.unconfirmed(name)):
        values = {**await _channels(visit), "asks": name}
        return shown(visit, values, wrong=wrong if "typed" in visit.form else "")
    answer = await run(visit, f"{what.upper()} {written('CHANNEL', name)}")
    if answer.failed:
        return shown(visit, await _channels(visit), wrong=f"{answer.number}: {answer.text}")
    return forms.done(visit, answer.text, "channels")


async def show_acts(visit: Visit) -> Mapping[str, Any]:
    """GET log: acts through servers that cannot be undone, newest first."""
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
         act=act_on_channel,
         menu="Channels", is_live=True),
    Page(path="log", title="Log of acts", authority="administer", template="acts.html", show=show_acts, menu="Log"),
)  # fmt: skip
