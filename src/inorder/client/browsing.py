"""A browse of all messages, as a loop. It knows its position and how it ended; another loop can continue from there.

If each call is a round trip to a server, the loop fetches pages ahead. A page holds the messages that consecutive calls
would have shown at one moment (`stores/engine/paging.py`). The handle's cursor moves with each message that the loop
yields. The loop discards the page when the connection makes another call, when the cursor moves, or after a second, and
then continues from the cursor. So it misses and repeats no message, sees its own program's changes, and shows no
message that has been gone for more than that second.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol

from ..errors import NoMessageAvailable, OrderPending
from ..model.message import Got
from ..model.options import GetOptions
from ..rules.grouping import Numbers
from ..rules.ordering import UNSET, Cursor
from ..stores.seam.records import GetOutcome
from .session import Session

PAGES: Final = (4, 8, 256)  # messages of the first page, the factor for each next page, and the largest page
PAGE_SECONDS: Final = 1.0


class BrowsePosition(NamedTuple):
    """The position of a browse.

    Args:
        token: the token of a strict browse; None for a relaxed one.
        awaits: the next member of the group, or segment of the message, that the browse is inside; None outside groups.
    """

    token: str | None = None
    awaits: Numbers | None = None


class FetchedPage:
    """Messages that a loop has fetched ahead, each with the handle's state after it.

    Attributes:
        fetch: the size of the next page.
    """

    __slots__ = ("_calls", "_cursor", "_outcomes", "_until", "fetch")

    def __init__(self) -> None:
        self._outcomes: Iterator[GetOutcome] = iter(())
        self._calls, self._cursor, self._until, self.fetch = 0, UNSET, 0.0, PAGES[0]

    def fill(self, outcomes: Iterable[GetOutcome], now: float) -> GetOutcome | None:
        """Takes a new page; returns its first message."""
        self._outcomes, self._until = iter(outcomes), now + PAGE_SECONDS
        return next(self._outcomes, None)

    def stands(self, session: Session, cursor: Cursor) -> None:
        """Notes the state after the loop yielded a message; any change before the next one discards the page."""
        self._calls, self._cursor = session.calls, cursor

    def next(self, session: Session, cursor: Cursor) -> GetOutcome | None:
        """Returns the next message of the page, or None if the page is used up or no longer valid."""
        is_good = session.calls == self._calls + 1 and cursor is self._cursor and session.services.now() < self._until
        outcome = next(self._outcomes, None)
        if outcome is None:
            self.fetch = min(self.fetch * PAGES[1], PAGES[2])
        elif not is_good:
            self._outcomes, self.fetch, outcome = iter(()), PAGES[0], None
        return outcome


class Browsed(Protocol):
    """The handle that is browsed."""

    def browse_first(self, options: GetOptions) -> Got: ...

    @property
    def internals(self) -> BrowsedOn: ...


class BrowsedOn(Protocol):
    """The internals of that handle."""

    def browse_on(self, options: GetOptions, page: FetchedPage) -> Got: ...

    def go_on(self, token: str, options: GetOptions) -> GetOptions:
        """Moves the cursor to the position in a token; returns the options for the rest of the browse."""
        ...

    @property
    def standing(self) -> BrowsePosition: ...


class Browsing(Iterator[Got]):
    """An iterator over the messages of a browse; made by `browse` of a queue manager or a handle.

    ::

        for message in (browsing := qm.browse("ORDERS", logical=True, read_order="strict")):
            ...
        if browsing.awaits:  # it ended inside a group, before this member
            ...

    The loop ends after the last message. A strict loop that must wait for a pending message raises OrderPending with a
    `token`; `qm.browse("ORDERS", after=token)` continues from there, also after a restart.
    """

    def __init__(self, opening: AbstractContextManager[Browsed], options: GetOptions, after: str | None) -> None:
        self._place = _Place(None, BrowsePosition(after))
        self._messages = _run(opening, options, after, self._place)

    def __next__(self) -> Got:
        return next(self._messages)

    def close(self) -> None:
        """Ends the loop early, and closes the handle if the loop opened it. Harmless when repeated."""
        self._messages.close()

    @property
    def token(self) -> str | None:
        """The current or last position, for `browse(..., after=token)`; None in a relaxed browse."""
        return self._where.token

    @property
    def awaits(self) -> Numbers | None:
        """The next member of the group, or segment of the message, that the browse is inside; None outside groups.

        If the loop has ended and this is not None, it ended inside that group: the member is missing or pending.

        Rules: B-44.
        """
        return self._where.awaits

    @property
    def _where(self) -> BrowsePosition:
        place = self._place
        return place.last if place.browsed is None else place.browsed.internals.standing


@dataclass(slots=True)
class _Place:
    """The state shared by the loop and its owner. Neither refers to the other, so a dropped loop ends at once.

    Attributes:
        browsed: the handle, while the loop runs.
        last: the position at the end.
    """

    browsed: Browsed | None
    last: BrowsePosition


def _run(
    opening: AbstractContextManager[Browsed], options: GetOptions, after: str | None, place: _Place
) -> Generator[Got, None, None]:
    following = replace(options, browse="next")
    with opening as browsed:
        place.browsed = browsed
        try:
            if after is None:
                yield browsed.browse_first(replace(options, browse="first"))
            else:
                following = browsed.internals.go_on(after, following)
            page, ahead = FetchedPage(), browsed.internals
            while True:
                yield ahead.browse_on(following, page)
        except NoMessageAvailable:
            return
        except OrderPending as pending:
            pending.data["token"] = browsed.internals.standing.token
            raise
        finally:
            place.browsed, place.last = None, browsed.internals.standing
