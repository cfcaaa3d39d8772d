"""One queue: both orders side by side, folded groups, holders of messages, and the reasons why strict readers wait.

The address of a page has the position of each list as a text, the cursor.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

from ... import QueueManager
from ...client.defining import local_name
from ...client.incomplete_groups import group_of
from ...errors import CallerError, UnknownQueue
from ...model.attribute import Attribute
from ...model.attributes import QUEUE_ATTRIBUTES, QueueAttributes
from ...model.message import NO_ID, Place
from ...model.parameters import Integer, one_of
from ...rules.gaps import Gaps
from ...rules.ordering import Pending, pending_text
from ...rules.selectors import Selector, compile_selector
from ...stores.seam.views import (
    UNPLACED,
    ListingOrder,
    LockView,
    MessageView,
    Opening,
    OrderView,
    Position,
    QueueView,
    Unit,
    Wait,
)
from ..calls import QUERY_FIELDS_MAX
from ..problems import problem
from ..sessions import decoded, encoded
from . import history, listing
from .held_messages import Running, openings_of, running
from .page import Page, Visit, address
from .watching import KEPT_SECONDS

PAGE: Final = 50
LOOKED_MAX: Final = 2_000  # messages that one page checks against a selector
ORDERS: Final[Mapping[str, str]] = {"physical": "in order of arrival", "logical": "groups together"}
BY_PRIORITY: Final[Mapping[str, str]] = {
    "physical": "by priority, then in order of arrival",
    "logical": "by priority, groups together",
}
KNOWN: Final = ("physical", "logical", "selector", "show", "order", "over")
CURSOR_MAX: Final = 400
STAGE: Final = Integer(0, UNPLACED)
NUMBER: Final = Integer()
SIGNED: Final = Integer(-NUMBER.high, NUMBER.high)


def cursor_of(position: Position) -> str:
    """The cursor of a position."""
    values = [position.group_id.hex() if name == "group_id" else value for name, value in position._asdict().items()]
    return encoded(json.dumps(values, separators=(",", ":")).encode())


def position_in(name: str, text: str | None) -> Position | None:
    """Reads a cursor. Raises: Problem 400, if it is not valid."""
    if not text:
        return None
    try:
        if len(text) > CURSOR_MAX:
            raise ValueError
        return _position(*json.loads(decoded(text)))
    except (ValueError, TypeError, RecursionError):  # ArgumentError is a ValueError
        raise problem("INWB0003E", name, "must be a position from a page of this list") from None


def _position(
    stage: Any, anchor: Any, group_id: Any, sequence_number: Any, offset: Any, place: Any, number: Any
) -> Position:
    STAGE.check("stage", stage)
    for one in (sequence_number, offset, number):
        NUMBER.check("number", one)
    for one in (*anchor, *place):
        SIGNED.check("place", one)
    group = bytes.fromhex(group_id)
    if len(group) != len(NO_ID):
        raise ValueError
    return Position(stage, Place(*anchor), group, sequence_number, offset, Place(*place), number)


class ListedOrder(NamedTuple):
    """The part of the page for one order.

    Args:
        next_after: the position after which the next page begins; None at the end.
        following: the group of the next message; empty if it is in none or was not read.
        looked: the number of messages checked against a selector.
    """

    sights: Sequence[MessageView] = ()
    next_after: Position | None = None
    following: bytes = b""
    looked: int = 0


class QueuePageQuery(NamedTuple):
    """The query of the page."""

    after: Mapping[str, Position | None]
    selector: str
    columns: Sequence[str]
    orders: Sequence[ListingOrder]
    over: str


class Held(NamedTuple):
    """The holders of this queue's messages, and the programs that have it open."""

    units: Sequence[Unit]
    locks: Sequence[LockView]
    waits: Sequence[Wait]
    opened: Sequence[tuple[Running, Opening, int]]


NOBODY: Final = Held((), (), (), ())


class QueuePageState(NamedTuple):
    """The state of a queue in the store."""

    view: QueueView
    attributes: QueueAttributes
    order: OrderView
    held: Held
    sides: Mapping[str, ListedOrder]
    missing: Mapping[bytes, Gaps]
    wrong: str
    over: str
    history: history.Runs


async def show(visit: Visit) -> Mapping[str, Any]:
    """Shows the queue. ``?selector=`` limits the messages; ``?physical=`` and ``?logical=`` are the positions of the
    two sides.
    """
    pairs = _pairs(visit)
    wanted = _wanted(pairs)
    queue = visit.queue
    may_display = visit.identity.may("display", queue)
    found = await visit.context.qm.run(lambda qm: _look(qm, queue, wanted, with_holders=may_display))
    now, recent = time.time(), visit.watching.recent(found.view)
    over, runs = found.over, found.history
    if over == "minutes" or (not wanted.over and recent.depths and history.spanned(runs) < KEPT_SECONDS):
        over, runs = "minutes", history.of_recent(recent, now)
    return {
        "queue": found.view.name,
        "view": found.view,
        "attributes": found.attributes,
        "definition": _definition(found.attributes) if may_display else None,
        "recent": recent,
        "pictures": history.pictures(found.view.name, over, runs, now),
        "periods": {
            over: (one.label, address("queue", queue, pairs=[*_without(pairs, "over"), ("over", over)]))
            for over, one in history.PERIODS.items()
        },
        "now": now,
        "sides": [_side(queue, order, found, wanted, pairs) for order in _orders(found, wanted)],
        "wanted": wanted,
        "chosen": listing.chosen(wanted.columns),
        "columns": listing.COLUMNS,
        "wrong": found.wrong,
        "order": found.order,
        "held": found.held,
        "waiting": [(one, _why(one.pending, found.held.units)) for one in found.held.waits],
        "why": _why,
    }


def _pairs(visit: Visit) -> list[tuple[str, str]]:
    """The query, in which a name may be repeated. Raises: Problem 400, if a name is unknown."""
    text = visit.request.scope["query_string"].decode("latin-1")
    try:
        pairs = parse_qsl(text, errors="strict", max_num_fields=QUERY_FIELDS_MAX)
    except ValueError as error:
        raise problem("INWB0003E", "?", f"cannot be read: {error}") from None
    for name, _ in pairs:
        if name not in KNOWN:
            raise problem("INWB0003E", name, f"is unknown; it must be one of: {', '.join(KNOWN)}")
    return pairs


def _without(pairs: Sequence[tuple[str, str]], name: str) -> list[tuple[str, str]]:
    return [one for one in pairs if one[0] != name]


def _wanted(pairs: Sequence[tuple[str, str]]) -> QueuePageQuery:
    query = dict(pairs)
    if query.get("order", "") not in ("", *ORDERS):
        raise problem("INWB0003E", "order", f"must be {one_of(ORDERS)}, or left out")
    if query.get("over", "") not in ("", *history.PERIODS):
        raise problem("INWB0003E", "over", f"must be {one_of(history.PERIODS)}, or left out")
    shown = [order for order in ORDERS if query.get("order") in (None, "", order)]
    return QueuePageQuery(
        after={name: position_in(name, query.get(name)) for name in ORDERS},
        selector=query.get("selector", "").strip(),
        columns=[value for name, value in pairs if name == "show"],
        orders=[order for order in ("physical", "logical") if order in shown],
        over=query.get("over", ""),
    )


def _look(qm: QueueManager, queue: str, wanted: QueuePageQuery, *, with_holders: bool) -> QueuePageState:
    """Reads everything at (almost) one moment. Only visitors with the authority "display" see holders and waiting
    readers.

    Raises: UnknownQueue 2085, WrongQueueType 2045.
    """
    list(qm.inspect.look(queue, most=1, preview=0))  # which raises the right error if it is not a local queue
    name = local_name(qm, queue)
    view = next(iter(qm.inspect.overview(name)), None)
    if view is None:
        raise UnknownQueue(f"there is no queue {name!r}", queue=name)
    sides: dict[str, ListedOrder] = dict.fromkeys(wanted.orders, ListedOrder())
    wrong = ""
    try:
        selector = compile_selector(wanted.selector) if wanted.selector else None
    except CallerError as error:
        wrong = str(error)
    else:
        sides = {order: _listed(qm, name, order, wanted.after[order], selector) for order in wanted.orders}
    groups = set().union(*(listing.groups_in(one.sights) for one in sides.values()))
    missing = {group_id: qm.inspect.gaps(name, group_id) for group_id in groups}
    held = _held(qm, name) if with_holders else NOBODY
    if not with_holders:
        sides = {order: one._replace(sights=listing.without_holders(one.sights)) for order, one in sides.items()}
    return QueuePageState(
        view, qm.attributes(name), qm.inspect.order_view(name), held, sides, missing, wrong,
        *history.read(qm, name, wanted.over),
    )  # fmt: skip


def _listed(
    qm: QueueManager, name: str, order: ListingOrder, after: Position | None, selector: Selector | None
) -> ListedOrder:
    """A page of one order. A selector is applied to a limited number of messages, so that a deep queue does not delay
    the page.
    """
    most = PAGE + 1 if selector is None else LOOKED_MAX
    looked = list(qm.inspect.look(name, order=order, preview=listing.PREVIEW, most=most, after=after))
    fitting = [one for one in looked if selector is None or selector.fits(one.message)]
    if len(fitting) > PAGE:
        return ListedOrder(
            fitting[:PAGE], fitting[PAGE - 1].position, following=group_of(fitting[PAGE].message), looked=len(looked)
        )
    is_end = selector is None or len(looked) < LOOKED_MAX
    return ListedOrder(fitting, None if is_end else looked[-1].position, looked=len(looked))


def _held(qm: QueueManager, name: str) -> Held:
    units, waits = qm.inspect.units(), qm.inspect.waits()
    return Held(
        units=[one for one in units if name in one.queues or name == one.queue],
        locks=[one for one in qm.inspect.locks() if one.queue == name],
        waits=[one for one in waits if one.queue == name],
        opened=openings_of(name, running(qm.inspect.connections(), units, waits)),
    )


def _orders(found: QueuePageState, wanted: QueuePageQuery) -> Sequence[ListingOrder]:
    """The orders to show: without groups both are one, and a visitor who has not chosen an order sees it once."""
    if found.missing or any(wanted.after.values()) or len(wanted.orders) < 2:
        return wanted.orders
    return wanted.orders[:1]


def _side(
    queue: str, order: ListingOrder, found: QueuePageState, wanted: QueuePageQuery, pairs: Sequence[tuple[str, str]]
) -> Mapping[str, Any]:
    shown, next_after, following, looked = found.sides[order]
    columns, title = listing.chosen(wanted.columns), ORDERS[order]
    if not wanted.columns:
        columns = listing.fitting(columns, shown)
    if len({one.message.priority for one in shown}) > 1 and found.attributes.delivery == "priority":
        title = BY_PRIORITY[order]
    after = wanted.after[order]
    kept = _without(pairs, order)
    more = [*kept, (order, cursor_of(next_after))] if next_after is not None else None
    return {
        "order": order,
        "title": title,
        "rows": [listing.row(one) for one in shown] if order == "physical" else (),
        "blocks": listing.blocks(shown, found.missing, after.group_id if after else b"", following)
        if order == "logical"
        else (),
        "count": len(shown),
        "looked": looked if wanted.selector else 0,
        "fields": list(listing.fields(order, columns)),
        "next": more and address("queue", queue, pairs=more),
        "first": address("queue", queue, pairs=kept) if after is not None else "",
    }


def _why(pending: Pending | None, units: Sequence[Unit]) -> str:
    """The cause for which a strict reader waits, and the program that must act."""
    if pending is None:
        return "a message"
    who = next((one for one in units if one.connection is not None and one.connection == pending.holder), None)
    process = f", process {who.process}" if who is not None and who.process is not None else ""
    place = f"place {pending.place.number}: " if pending.place.number else ""
    return f"{place}{pending_text(pending)}{process}"


def _definition(attributes: QueueAttributes) -> list[tuple[Attribute, object, bool]]:
    """The attributes of its type with their values, and whether they differ from the default; these first."""
    known = [one for one in QUEUE_ATTRIBUTES.values() if attributes.type in one.applies_to and one.name != "name"]
    found = [(one, getattr(attributes, one.name)) for one in known]
    return sorted(((one, value, value != one.default) for one, value in found), key=lambda each: not each[2])


PAGES: Final = (
    Page(path="queue/{queue}", title="{queue}", authority="browse", template="queue.html", show=show, is_live=True),
)
