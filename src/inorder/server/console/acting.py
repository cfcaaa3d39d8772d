"""Acts of the console on exactly the messages that a visitor has chosen, in one unit of work.

A message is identified by its unique id, which never changes. A chosen message that has disappeared since, or that
another program holds now, is left alone and reported. The store's log has each act, with user and address, before it
begins.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from starlette.responses import Response

from ...aio import QueueManager as QueueManagerOfTasks
from ...client.defining import local_name
from ...client.manager import QueueManager
from ...client.operator_log import Acting
from ...errors import ArgumentError, InorderError, NoMessageAvailable, StoreError, bad_argument
from ...model.message import Got, UniqueId
from ...model.options import Match
from ...rules.ordering import ReadOrder
from ...stores.seam.views import MessageView
from ..operator_log import acted
from ..problems import Problem, of_admin_error, stated
from . import forms, listing
from .page import Visit
from .rendering import shown

CHOSEN_MAX: Final = 5_000
"""The most messages in one act."""


def left_out(argument: str, text: str) -> ArgumentError:
    """The error for a field that the visitor must fill in, with a text for people."""
    return ArgumentError(text, argument=argument, value="", allowed=text)


def uid_of(text: str) -> UniqueId:
    """Reads the unique id that a page names. Raises: ArgumentError."""
    found = listing.uid_of(text)
    if found is None:
        raise bad_argument("uid", text, "the unique id of a message, as shown on the page")
    return found


def uids_of(texts: Iterable[str]) -> list[UniqueId]:
    """The unique ids of a form without repeats. A field may have several, separated by blanks.

    Raises: ArgumentError, if one is not an id or there are more than `CHOSEN_MAX`.
    """
    found = list(dict.fromkeys(uid_of(word) for text in texts for word in text.split()))
    if len(found) > CHOSEN_MAX:
        raise bad_argument("uid", f"{len(found):,} messages", f"at most {CHOSEN_MAX:,} in one act")
    return found


# --- which messages


class UnavailableMessage(NamedTuple):
    """A chosen message that was left alone.

    Args:
        why: it has gone, it is held (with the holder), or its put failed (with the error).
    """

    uid: UniqueId
    why: str


class Meant(NamedTuple):
    """The messages that an act would affect.

    Args:
        sights: the available ones.
        missing: chosen messages that are not available.
        has_more: whether more match than one act can take.
        others: messages that match the selector but are held or delayed.
    """

    sights: Sequence[MessageView]
    missing: Sequence[UnavailableMessage]
    has_more: bool = False
    others: int = 0


async def pages_of(
    qm: QueueManagerOfTasks, queue: str, match: Match, *, preview: int, most: int
) -> AsyncIterator[Sequence[MessageView]]:
    """The messages that match, page by page. No connection is held in between. Raises: as `qm.inspect.look`."""
    after = None
    while True:
        page = await qm.run(
            lambda one, after=after: list(  # type: ignore[misc]
                one.inspect.look(queue, match=match, preview=preview, most=most, after=after)
            )
        )
        yield page
        if len(page) < most:
            return
        after = page[-1].position


def chosen(qm: QueueManager, queue: str, uids: Sequence[UniqueId], *, preview: int = 64) -> Meant:
    """The messages with these ids. Raises: as `qm.inspect.look`."""
    sights, missing = [], []
    for uid in uids:
        sight = sight_of(qm, queue, uid, preview)
        if sight is not None and sight.state == "available":
            sights.append(sight)
        else:
            missing.append(UnavailableMessage(uid, why(sight)))
    return Meant(sights, missing)


def sight_of(qm: QueueManager, queue: str, uid: UniqueId, preview: int = 0) -> MessageView | None:
    """The message with this id in any state, or None if it does not exist."""
    return next(qm.inspect.look(queue, match=Match(uid=uid), preview=preview, most=1), None)


def why(sight: MessageView | None) -> str:
    """Why a message is not available."""
    if sight is None:
        return "it has gone"
    if sight.holder is None:
        return "it is delayed" if sight.state == "delayed" else "it was not available at that moment"
    name = f" {sight.holder.name}" if sight.holder.name else ""
    return f"{sight.state} by {sight.holder.kind}{name} of {sight.holder.program.name or 'an unnamed program'}"


# --- acts


class Acted(NamedTuple):
    """The result of an act.

    Args:
        messages: the number of messages affected.
        missing: messages that were not available.
        stayed: dead letters that could not be replayed.
    """

    messages: int
    missing: Sequence[UnavailableMessage]
    stayed: Sequence[UnavailableMessage] = ()


def remove(qm: QueueManager, queue: str, uids: Sequence[UniqueId]) -> Acted:
    """Removes messages for good. Raises: the errors of a get; in that case none was removed."""
    return _taken(qm, queue, uids, lambda message: None)


def bury(qm: QueueManager, queue: str, uids: Sequence[UniqueId], error: str) -> Acted:
    """Makes messages dead letters with this error. Raises: as `qm.dead.add`; in that case none was moved."""
    name = local_name(qm, queue)
    return _taken(qm, queue, uids, lambda one: qm.dead.add(one, queue=name, error=error, attempts=one.backout_count))


def move(qm: QueueManager, queue: str, uids: Sequence[UniqueId], target: str) -> Acted:
    """Moves messages unchanged to another queue. Raises: ArgumentError, and the errors of gets and puts; in that case
    none was moved.
    """
    check_two(qm, queue, target)
    return _taken(qm, queue, uids, lambda message: qm.put(target, message, context="set_all", syncpoint=True))


def copy(qm: QueueManager, queue: str, uids: Sequence[UniqueId], target: str) -> Acted:
    """Copies messages unchanged to another queue. Raises: as `move`; in that case none was copied."""
    check_two(qm, queue, target)
    order, missing, copied = _read_order(qm, queue), list[UnavailableMessage](), 0
    with qm.unit_of_work():
        for uid in uids:
            message = next(iter(qm.browse(queue, match=Match(uid=uid), read_order=order)), None)
            if message is None:
                missing.append(UnavailableMessage(uid, why(sight_of(qm, queue, uid))))
                continue
            qm.put(target, message, context="set_all", syncpoint=True)
            copied += 1
    return Acted(copied, missing)


def _taken(qm: QueueManager, queue: str, uids: Sequence[UniqueId], work: Callable[[Got], object]) -> Acted:
    """Gets messages in one unit of work, and passes each to `work`."""
    order, missing, taken = _read_order(qm, queue), list[UnavailableMessage](), 0
    with qm.unit_of_work():
        for uid in uids:
            try:
                message = qm.get(queue, match=Match(uid=uid), read_order=order, syncpoint=True)
            except NoMessageAvailable:
                missing.append(UnavailableMessage(uid, why(sight_of(qm, queue, uid))))
                continue
            work(message)
            taken += 1
    return Acted(taken, missing)


def _read_order(qm: QueueManager, queue: str) -> ReadOrder | None:
    """The read order for messages out of turn: relaxed, or the queue's own if it requires an order."""
    return None if qm.attributes(local_name(qm, queue)).read_order == "required" else "relaxed"


def check_two(qm: QueueManager, queue: str, target: str) -> None:
    """Raises: ArgumentError, if both names mean the same queue; UnknownQueue 2085."""
    if local_name(qm, queue) == local_name(qm, target):
        raise bad_argument("target", target, f"a queue other than {queue}")


# --- acts of visitors

Counted = TypeVar("Counted", int, Acted)


async def noted(visit: Visit, act: str, queue: str, work: Callable[[QueueManager], Counted]) -> Counted:
    """Runs an act that cannot be undone, and logs it with the number of messages.

    Args:
        act: its name in the log.
        queue: the queue that it changes; "": the queue manager.
        work: does the act, in the thread of a connection. It returns the number of messages, or `Acted`.

    Raises: the errors of `work`; the log then says failed.
    """

    def inside(qm: QueueManager, note: Acting) -> Counted:
        found = work(qm)
        note.messages = found if isinstance(found, int) else found.messages
        return found

    return await acted(visit.context, visit.request, act, queue, inside)


def reported(visit: Visit, queue: str, missing: Sequence[UnavailableMessage]) -> list[UnavailableMessage]:
    """The unavailable messages, with their holders if the visitor may see them."""
    if visit.identity.may("display", queue):
        return list(missing)
    return [one._replace(why="it has gone, or is not available now") for one in missing]


def outcome(
    visit: Visit,
    queue: str,
    text: str,
    missing: Sequence[UnavailableMessage],
    stayed: Sequence[UnavailableMessage],
    target: str,
    *page: str,
) -> Response:
    """Redirects to a page with the result of an act. If some messages were left alone, lists them instead."""
    if missing or stayed:
        values = {"queue": queue, "text": text, "missing": missing, "stayed": stayed, "target": target}
        return shown(visit, values | {"uid_text": listing.uid_text}, template="acted.html")
    return forms.done(visit, text, *page)


def refused(visit: Visit, error: InorderError | Problem, values: Mapping[str, Any]) -> Response:
    """Shows a page again with the error as `problem`. `values` has the visitor's input.

    Raises: StoreError, and Problem 401 if the session has ended, for the error page.
    """
    if isinstance(error, StoreError) or (isinstance(error, Problem) and error.code == 401):
        raise error
    if isinstance(error, Problem):
        record, status = error.record(), error.code
        said = f"{record['message'].partition(': ')[2]} {record['action']}"
    else:
        said, status = stated(visit.identity.shown(error)), of_admin_error(error).code
    return shown(visit, values, wrong=said, status=status)
