"""One message: its body, its properties, its descriptor, and what has become of it so far."""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from starlette.responses import Response

from ... import Flags, Match, MessageType, QueueManager, Report
from ...errors import Reason
from ...labels import in_words, name_of
from ...message import Message, UniqueId
from ...operating import PREVIEW_MAX
from ...rules.dead_letters import is_dead, why_dead
from ...rules.gaps import Gaps
from ...stores.views import Sight
from ..problems import problem
from . import bodies, listing, words
from .groups import group_of
from .page import Page, Visit

NOT_SHOWN: Final = frozenset({"body", "properties", "length", "token", "earlier_pending", "warning"})
NAMED: Final[Mapping[str, type[enum.IntFlag]]] = {"flags": Flags, "report": Report}
USUAL: Final = Message()


async def show(visit: Visit) -> Mapping[str, Any]:
    """The message. ``?view=`` is json, text or hex."""
    wanted = visit.query("view").get("view", "")
    queue = visit.names["queue"]
    sight, missing = await visit.context.qm.run(lambda qm: _look(qm, queue, visit.names["uid"], bodies.SHOWN_MAX))
    if not visit.identity.may("display", queue):
        (sight,) = listing.without_holders([sight])
    message, now = sight.message, time.time()
    return {
        "queue": queue,
        "uid": visit.names["uid"],
        "row": listing.row(sight),
        "sight": sight,
        "message": message,
        "body": bodies.shown(message.body, sight.length, wanted),
        "properties": [(name, type(value).__name__, _value(value)) for name, value in message.properties.items()],
        "descriptor": list(_descriptor(message)),
        "life": list(_life(sight, now)),
        "missing": "" if missing is None or missing.is_complete else in_words(missing),
        "group": name_of(group_of(message)) if missing is not None else "",
        "dead": why_dead(message) if is_dead(message) else None,
        "why": _why(message),
        "now": now,
    }


async def body(visit: Visit) -> Response:
    """The whole body, as a file."""
    visit.query()
    queue, uid = visit.names["queue"], visit.names["uid"]
    sight, _ = await visit.context.qm.run(lambda qm: _look(qm, queue, uid, PREVIEW_MAX))
    number = sight.message.uid.number if sight.message.uid is not None else 0
    headers = {"Content-Disposition": f'attachment; filename="message-{number}.bin"'}
    return Response(sight.message.body, headers=headers, media_type="application/octet-stream")


def _look(qm: QueueManager, queue: str, text: str, preview: int) -> tuple[Sight, Gaps | None]:
    """The message, in whatever state, and what is missing of its group. Raises: Problem 404, it is not there."""
    uid: UniqueId | None = listing.uid_of(text)
    found = [] if uid is None else list(qm.look(queue, match=Match(uid=uid), preview=preview, most=1))
    if not found:
        raise problem("INWB0015E", text, queue)
    group_id = group_of(found[0].message)
    return found[0], qm.gaps(queue, group_id) if group_id else None


def _descriptor(message: Message) -> Iterator[tuple[str, str, bool]]:
    """Each field, its value, and whether it differs from what a message has by itself."""
    for name in Message.FIELDS:
        if name not in NOT_SHOWN:
            value = getattr(message, name)
            yield name, _field(name, value), value != getattr(USUAL, name)


def _field(name: str, value: Any) -> str:
    if name in NAMED:
        names = [one.name for one in NAMED[name] if one.value and value & one.value == one.value]
        return f"{' '.join(str(one) for one in names)} ({value})" if names else str(value)
    if name == "message_type":
        return f"{MessageType(value).name} ({value})" if value in list(MessageType) else str(value)
    if name == "put_at":
        return words.iso(value)
    if name == "expiry":
        return "never" if value in (None, math.inf) else words.span(value)
    if name in ("uid", "place", "transmission"):
        return "" if value is None else ", ".join(f"{key} {one}" for key, one in value._asdict().items())
    return _value(value)


def _value(value: Any) -> str:
    if isinstance(value, bytes):
        short = value.rstrip(b"\0")
        text = short.decode("ascii", "replace")
        readable = f"  “{text}”" if short and text.isprintable() and "\ufffd" not in text else ""
        return f"{short.hex()}{readable}"
    return "" if value is None else words.visible(str(value))


def _life(sight: Sight, now: float) -> Iterator[tuple[float | None, str]]:
    """What has happened to it, as far as the store still knows, and what will."""
    message = sight.message
    program = f" by {message.put_application_name}" if message.put_application_name else ""
    user = f" of {message.user_identifier}" if message.user_identifier else ""
    yield message.put_at, f"put{program}{user}"
    if sight.visible_since is not None and sight.visible_since != message.put_at:
        yield sight.visible_since, "everyone could see it"
    if message.backout_count:
        times = "once" if message.backout_count == 1 else f"{message.backout_count} times"
        yield None, f"got and backed out {times}"
    if is_dead(message) and why_dead(message).time:
        yield why_dead(message).time, "set aside as a dead letter"
    if sight.holder is not None:
        yield sight.holder.since, f"{sight.state} by {listing.by_whom(sight.holder)}"
    if sight.due_at is not None:
        yield sight.due_at, "may be read from then on"
    if message.expiry is not None and message.expiry < math.inf:
        yield now + message.expiry, "expires"


def _why(message: Message) -> str:
    """Why it is a dead letter, in a word."""
    reason = why_dead(message).reason
    return Reason(reason).name if reason in list(Reason) else str(reason)


PAGES: Final = (
    Page(
        path="queue/{queue}/message/{uid}",
        title="A message on {queue}",
        authority="browse",
        queue="queue",
        template="message.html",
        show=show,
    ),
    Page(path="queue/{queue}/message/{uid}/body", title="", authority="browse", queue="queue", show=body),
)
