"""`inorder browse`: shows the messages of a queue in either order and in any state, and takes none."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import get_args

import click

from .. import Match, QueueManager
from ..client.defining import local_name
from ..client.incomplete_groups import group_of
from ..client.inspection import Gaps, MessageView, QueueView
from ..model.fields import NUMBER_MAX
from ..stores.seam.views import ListingOrder, SightState
from .choosing import takes_match
from .listing import Rows, record_of_sight
from .running import Command, Run, queue_names, takes_store
from .wording import count

LIMIT = 1_000
BLOCK = 1_000  # rows of one table
PREVIEW = 64
PREVIEW_MAX = 65_536
PAUSE_SECONDS = 0.25
GROUPS_MAX = 100_000  # groups whose gaps are kept in memory
STATES: Sequence[SightState] = get_args(SightState)


@click.command("browse", cls=Command, example="inorder browse ORDERS --order logical --store orders.db")
@click.argument("queue", shell_complete=queue_names)
@click.option(
    "--order", type=click.Choice(("physical", "logical")), default="physical", show_default=True,
    help="Physical: in order of arrival. Logical: each group together, at the place of its first message.",
)  # fmt: skip
@click.option(
    "--state",
    "states",
    type=click.Choice(STATES),
    multiple=True,
    help="Show only messages in this state; may be repeated.",
)
@takes_match
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(0, NUMBER_MAX),
    metavar="N",
    help=f"Show at most N messages; default: {LIMIT:,}, or all with --json.",
)
@click.option(
    "--preview", type=click.IntRange(0, PREVIEW_MAX), default=PREVIEW, show_default=True, metavar="BYTES",
    help="Show this many bytes of each body.",
)  # fmt: skip
@click.option("--follow", "-f", is_flag=True, help="Then show each new message as it arrives, until Ctrl-C.")
@takes_store
def browse(
    run: Run,
    queue: str,
    *,
    order: ListingOrder,
    states: Sequence[SightState],
    match: Match,
    limit: int | None,
    preview: int,
    follow: bool,
) -> None:
    """Show the messages of a queue in any state, and who holds them.

    Nothing is removed or locked.

    In logical order, groups whose first message is missing come at the end, followed by messages that have no place on
    the queue yet. A line lists the missing pieces of a group: below its last message in logical order, below its first
    in physical order.
    """
    with run.opened() as qm:
        listing = PrintedListing(run, qm, queue, match=match, states=states, preview=preview, follows=follow)
        most = limit if limit is not None or run.output.as_json else LIMIT
        begun = listing.view() if follow else None
        found = listing.look(order, upto=None if begun is None else begun.numbered)
        shown = listing.show(found if most is None else islice(found, most), order)
        if most is not None and next(found, None) is not None:
            depth = count(listing.view().depth, "message")
            run.output.note(f"more messages follow: the depth is {depth}; --limit N shows N of them")
        elif not shown and not follow:
            run.output.note(f"no message on {queue}" + (" matches" if match or states else ""))
        if begun is not None:
            listing.follow(begun)


class PrintedListing:
    """Shows the messages of a queue, block by block."""

    def __init__(
        self,
        run: Run,
        qm: QueueManager,
        queue: str,
        *,
        match: Match,
        states: Sequence[SightState],
        preview: int,
        follows: bool,
    ) -> None:
        self._run, self._qm, self._queue = run, qm, queue
        self._match, self._states, self._preview = match, states, preview
        self._follows, self._has_heading = follows, False

    def view(self) -> QueueView:
        """The queue as it is now. Raises: UnknownQueue 2085, WrongQueueType 2045."""
        while not (found := self._qm.inspect.overview(local_name(self._qm, self._queue))):
            list(self._qm.inspect.look(self._queue, most=1))  # which raises the right error if there is no such queue
            pause(PAUSE_SECONDS)  # the queue has not been used yet
        return found[0]

    def look(self, order: ListingOrder, *, upto: int | None = None, after: int | None = None) -> Iterator[MessageView]:
        """The messages in this order, optionally only those numbered up to `upto`, or after `after`."""
        found = self._qm.inspect.look(
            self._queue, order=order, match=self._match, preview=self._preview, numbered_after=after
        )
        return (
            one
            for one in found
            if (not self._states or one.state in self._states)
            and (upto is None or one.place is None or one.place.number <= upto)
        )

    def show(self, sights: Iterable[MessageView], order: ListingOrder) -> int:
        """Shows messages as they come. Returns how many it showed."""
        if self._run.output.as_json:
            return self._tell(sights, order)
        shown = 0
        stream = iter(sights)
        groups = GroupGaps(self._qm, self._queue, order)
        while block := list(islice(stream, BLOCK)):
            self._print(block, groups, is_last=len(block) < BLOCK)
            shown += len(block)
        return shown

    def _tell(self, sights: Iterable[MessageView], order: ListingOrder) -> int:
        groups, told = GroupGaps(self._qm, self._queue, order), 0
        for told, sight in enumerate(sights, 1):  # noqa: B007 - the number of messages
            self._run.output.line(record_of_sight(self._queue, sight, groups.missing(sight)))
        return told

    def _print(self, block: Sequence[MessageView], groups: GroupGaps, *, is_last: bool) -> None:
        console = self._run.output.console
        rows = Rows(block, time.time(), console.width, is_terminal=console.is_terminal, steady=self._follows)
        rows.table.show_header = not (self._has_heading and self._follows)
        for sight in block:
            for one in groups.before(sight):
                rows.note(*one)
            rows.add(sight)
            for one in groups.after(sight):
                rows.note(*one)
        if is_last:
            for one in groups.at_end():
                rows.note(*one)
        console.print(rows.table)
        self._has_heading = True

    def follow(self, since: QueueView) -> None:
        """Shows messages that get a place after `since`, as they come, until the user interrupts it."""
        while True:
            now = self.view()
            numbered = since.numbered if now.created_at == since.created_at else 0  # or a new queue of the same name
            if now.numbered > numbered:
                # Messages numbered during this read wait for the next round, because pages may show only some of them.
                found = list(self.look("physical", after=numbered, upto=now.numbered))
                found.sort(key=lambda one: one.place[1:] if one.place is not None else ())
                self.show(found, "physical")
            since = now
            pause(PAUSE_SECONDS)


class GroupGaps:
    """Looks up the gaps of each group in a listing once, and decides where to report them."""

    def __init__(self, qm: QueueManager, queue: str, order: ListingOrder) -> None:
        self._qm, self._queue, self._order = qm, queue, order
        self._known: dict[bytes, Gaps] = {}
        self._open = b""

    def missing(self, sight: MessageView) -> Gaps | None:
        """The gaps of a message's group or segmented message; None if the message is in neither."""
        group_id = group_of(sight.message)
        if not group_id:
            return None
        if group_id not in self._known:
            if self._order == "logical" or len(self._known) >= GROUPS_MAX:
                self._known.clear()  # in logical order groups come one after the other
            self._known[group_id] = self._qm.inspect.gaps(self._queue, group_id)
        return self._known[group_id]

    def before(self, sight: MessageView) -> Iterator[tuple[bytes, Gaps]]:
        """The gaps to report before this message: in logical order, the gaps of the group that just ended."""
        if self._order == "logical" and group_of(sight.message) != self._open:
            yield from self.at_end()
            self._open = group_of(sight.message)
            self.missing(sight)

    def after(self, sight: MessageView) -> Iterator[tuple[bytes, Gaps]]:
        """The gaps to report after this message: in physical order, the gaps of a group that is new here."""
        group_id = group_of(sight.message)
        if self._order == "physical" and group_id not in self._known:
            missing = self.missing(sight)
            if missing is not None and not missing.is_complete:
                yield group_id, missing

    def at_end(self) -> Iterator[tuple[bytes, Gaps]]:
        """The gaps to report when the last group shown ends."""
        missing = self._known.get(self._open)
        if self._order == "logical" and missing is not None and not missing.is_complete:
            yield self._open, missing
        self._open = b""


def pause(seconds: float) -> None:
    """Waits until it is time to look again."""
    time.sleep(seconds)
