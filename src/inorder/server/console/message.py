"""One message: its body, properties, descriptor and history."""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from starlette.responses import Response

from ... import Flags, MessageType, QueueManager, Report
from ...client.incomplete_groups import group_of
from ...client.inspection import PREVIEW_MAX
from ...client.labels import in_words, name_of
from ...client.unit_names import key_in
from ...model.message import Message
from ...rules.dead_letters import is_dead, reason_name, why_dead
from ...rules.dead_rules_syntax import NUMBERS
from ...rules.gaps import Gaps
from ...rules.retries import failure_of
from ...stores.seam.views import Holder, MessageView
from ..problems import problem
from . import forms, labels, listing
from .acting import noted, sight_of
from .page import Page, Visit, address

NOT_SHOWN: Final = frozenset({"body", "properties", "length", "token", "earlier_pending", "warning"})
NAMED: Final[Mapping[str, type[enum.IntFlag]]] = {"flags": Flags, "report": Report}
USUAL: Final = Message()
ENCODINGS: Final = {273: "big-endian", 546: "little-endian"}
# The first name of a number counts.
PROGRAM_KINDS: Final = {number: name.removeprefix("MQAT_") for name, number in [*NUMBERS["APPLTYPE"].items()][::-1]}
CODES: Final[Mapping[str, Callable[[int], str]]] = {
    "message_type": lambda value: MessageType(value).name if value in list(MessageType) else "",
    "feedback": lambda value: reason_name(value) if value else "none",
    "encoding": lambda value: ENCODINGS.get(value, ""),
    "put_application_type": lambda value: PROGRAM_KINDS.get(value, ""),
}
"""The words of codes; empty: none is known."""


async def show(visit: Visit) -> Mapping[str, Any]:
    """GET queue/NAME/message/UID: the message. ``?view=`` is json, text or hex."""
    wanted = visit.query("view").get("view", "")
    queue = visit.queue
    sight, missing = await visit.context.qm.run(lambda qm: _look(qm, queue, visit.names["uid"], labels.SHOWN_MAX))
    if not visit.identity.may("display", queue):
        (sight,) = listing.without_holders([sight])
    message, now = sight.message, time.time()
    dead = why_dead(message) if is_dead(message) else None
    return {
        "queue": queue,
        "uid": visit.names["uid"],
        "row": listing.row(sight),
        "sight": sight,
        "message": message,
        "body": labels.shown_body(message.body, sight.length, wanted),
        "properties": [(name, type(value).__name__, value_text(value)) for name, value in message.properties.items()],
        "descriptor": list(descriptor(message)),
        "life": list(_life(sight, now)),
        "missing": "" if missing is None or missing.is_complete else in_words(missing),
        "group": name_of(group_of(message)) if missing is not None else "",
        "dead": dead,
        "why": "" if dead is None else reason_name(dead.reason),
        "holder_page": _holder_page(queue, sight.holder) if visit.identity.may("display", "") else "",
        "now": now,
    }


async def body(visit: Visit) -> Response:
    """GET queue/NAME/message/UID/body: the whole body as a file."""
    visit.query()
    queue, uid = visit.queue, visit.names["uid"]
    sight, _ = await visit.context.qm.run(lambda qm: _look(qm, queue, uid, PREVIEW_MAX))
    number = listing.uid_in(sight.message).number
    headers = {"Content-Disposition": f'attachment; filename="message-{number}.bin"'}
    return Response(sight.message.body, headers=headers, media_type="application/octet-stream")


async def retry(visit: Visit) -> Response:
    """POST queue/NAME/message/UID: makes the message available, if it waits for its next attempt."""
    queue, text = visit.queue, visit.names["uid"]
    visit.demand("get", queue)
    uid = listing.uid_of(text)
    if uid is None:
        raise problem("INWB0015E", text, queue)
    found = await noted(visit, "retry", queue, lambda qm: qm.admin.retry_now(queue, uid))
    said = "made available for its next attempt" if found else "not waiting for its next attempt"
    return forms.done(visit, f"The message was {said}.", "queue", queue)


def _look(qm: QueueManager, queue: str, text: str, preview: int) -> tuple[MessageView, Gaps | None]:
    """The message in any state, and the gaps of its group. Raises: Problem 404, if it does not exist."""
    uid = listing.uid_of(text)
    sight = None if uid is None else sight_of(qm, queue, uid, preview)
    if sight is None:
        raise problem("INWB0015E", text, queue)
    group_id = group_of(sight.message)
    return sight, qm.inspect.gaps(queue, group_id) if group_id else None


def descriptor(message: Message) -> Iterator[tuple[str, str, bool]]:
    """Each field with its value, and whether that differs from the default."""
    for name in Message.FIELDS:
        if name not in NOT_SHOWN:
            value = getattr(message, name)
            yield name, _field(name, value), value != getattr(USUAL, name)


def _field(name: str, value: Any) -> str:
    if name in NAMED:
        names = [one.name for one in NAMED[name] if one.value and value & one.value == one.value]
        return f"{' '.join(str(one) for one in names)} ({value})" if names else str(value)
    if name in CODES:
        word = CODES[name](value)
        return f"{word} ({value})" if word else str(value)
    if name == "put_at":
        return labels.iso(value)
    if name == "expiry":
        return "never" if value in (None, math.inf) else labels.span(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name in ("uid", "place", "transmission"):
        return "" if value is None else ", ".join(f"{key} {one}" for key, one in value._asdict().items())
    return value_text(value)


def value_text(value: Any) -> str:
    """A value of a field or property; bytes in hex."""
    if isinstance(value, bytes):
        short = value.rstrip(b"\0")
        text = short.decode("ascii", "replace")
        readable = f"  “{text}”" if short and text.isprintable() and "\ufffd" not in text else ""
        return f"{short.hex()}{readable}"
    return "" if value is None else labels.visible(str(value))


def _life(sight: MessageView, now: float) -> Iterator[tuple[float | None, str]]:
    """Past and future events of the message, as far as the store knows them. None: the time is not recorded."""
    message = sight.message
    program = f" by {message.put_application_name}" if message.put_application_name else ""
    user = f" of {message.user_identifier}" if message.user_identifier else ""
    yield message.put_at, f"put{program}{user}"
    if sight.visible_since is not None and sight.visible_since != message.put_at:
        yield sight.visible_since, "its put was committed, which made it visible to everyone"
    yield from _attempts(message)
    if is_dead(message):
        why = why_dead(message)
        by = f" by {why.program}" if why.program else ""
        yield why.time or None, f"set aside as a dead letter{by}: {reason_name(why.reason)}"
    if sight.holder is not None:
        yield sight.holder.since, _held(sight.state, sight.holder)
    if sight.due_at is not None:
        yield sight.due_at, "can be read from then on"
    if message.expiry is not None and message.expiry < math.inf:
        yield now + message.expiry, "expires"


def _attempts(message: Message) -> Iterator[tuple[float | None, str]]:
    """The number of times that it was got and returned, and the last recorded error."""
    count, failure = message.backout_count, failure_of(message)
    if count:
        yield None, f"got and backed out {'once' if count == 1 else f'{count:,} times'}"
    if failure is not None:
        work = f" at {failure.work}" if failure.work else ""
        yield failure.time, f"attempt {failure.attempt:,} failed{work}: {failure.error}"
        since = count - failure.attempt
        if since > 0:
            ended = "an attempt has" if since == 1 else f"{since:,} attempts have"
            yield None, f"since then {ended} ended without an error text: the program was killed, or backed out"


def _held(state: str, holder: Holder) -> str:
    whose = listing.by_whom(holder)
    if state in ("put", "got"):
        prepared = "is prepared" if holder.kind == "prepared" else "is not settled"
        return f"{whose} began; it has {state} the message and {prepared}"
    return f"{state} by {whose}"


def _holder_page(queue: str, holder: Holder | None) -> str:
    """The page of its holder; empty if there is none."""
    if holder is None or holder.kind == "handle":
        return ""
    if holder.kind == "lock":
        return address("held", "lock", queue, holder.name)
    return address("held", "unit", key_in(queue, holder))


PAGES: Final = (
    Page(path="queue/{queue}/message/{uid}", title="A message on {queue}", authority="browse", template="message.html",
         show=show, act=retry),
    Page(path="queue/{queue}/message/{uid}/body", title="", authority="browse", show=body),
)  # fmt: skip
