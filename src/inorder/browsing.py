"""A browse of all messages as a loop that says where it stands, how it ended, and goes on from a token."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from .errors import NoMessageAvailable, OrderPending
from .message import Got
from .options import GetOptions
from .rules.grouping import Numbers


class Standing(NamedTuple):
    """Where a browse stands.

    Args:
        token: of a strict browse; None: a relaxed one has none.
        awaits: the next member of the group, or piece of the message, inside which it stands; None: it is in none.
    """

    token: str | None = None
    awaits: Numbers | None = None


class Browsed(Protocol):
    """The handle that is browsed."""

    def browse_first(self, options: GetOptions) -> Got: ...

    def browse_next(self, options: GetOptions) -> Got: ...

    def go_on(self, token: str, options: GetOptions) -> GetOptions:
        """Puts the cursor where a token says; the options with which the browse goes on from there."""
        ...

    @property
    def standing(self) -> Standing: ...


class Browsing(Iterator[Got]):
    """The messages that a browse shows, one after another; made by `browse` of a queue manager or a handle.

        for message in (browsing := qm.browse("ORDERS", logical=True, read_order="strict")):
            ...
        if browsing.awaits:  # it ended inside a group: this member is not there yet
            ...

    The loop ends where there is nothing more to show. A strict one that is withheld for order raises OrderPending with
    the `token` of the place; `qm.browse("ORDERS", after=token)` goes on from there, also after a restart.
    """

    def __init__(self, opening: AbstractContextManager[Browsed], options: GetOptions, after: str | None) -> None:
        self._place = _Place(None, Standing(after))
        self._messages = _run(opening, options, after, self._place)

    def __next__(self) -> Got:
        return next(self._messages)

    def close(self) -> None:
        """Ends the loop early, and closes the handle if the loop has one of its own. Harmless when repeated."""
        self._messages.close()

    @property
    def token(self) -> str | None:
        """Where it stands, or stood at its end, for `browse(..., after=token)` (B-41); a relaxed browse has none."""
        return self._where.token

    @property
    def awaits(self) -> Numbers | None:
        """The member of a group, or piece of a message in segments, that comes next (B-44); None: it is inside none.

        If the loop has ended and this is not None, it ended inside that group: the member is not there, or is pending.
        """
        return self._where.awaits

    @property
    def _where(self) -> Standing:
        place = self._place
        return place.last if place.browsed is None else place.browsed.standing


@dataclass(slots=True)
class _Place:
    """What the loop and its owner share, so that neither holds the other: a loop that is dropped ends at once.

    Attributes:
        browsed: the handle, while the loop runs.
        last: where it stood at the end.
    """

    browsed: Browsed | None
    last: Standing


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
                following = browsed.go_on(after, following)
            while True:
                yield browsed.browse_next(following)
        except NoMessageAvailable:
            return
        except OrderPending as pending:
            pending.data["token"] = browsed.standing.token
            raise
        finally:
            place.browsed, place.last = None, browsed.standing
