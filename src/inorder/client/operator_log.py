"""The log of irreversible acts through a server: user, time, address, act and number of messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ..errors import bad_argument
from ..model.options import check_whole
from ..model.parameters import WHOLE_MAX, is_storable
from ..stores.seam.records import Act
from .namespace import Namespace

TEXT_LENGTH_MAX: Final = 256
ERROR_LENGTH_MAX: Final = 1000
PAGE: Final = 500


class Acting:
    """An act that goes on; made by `qm.accounts.acting`.

    Attributes:
        messages: how many it was about, for the block to set; None: it does not say.
    """

    messages: int | None = None


class ActCalls(Namespace):
    """The part of `qm.accounts` for that log."""

    @contextmanager
    def acting(self, act: str, queue: str = "", *, user: str, address: str = "") -> Iterator[Acting]:
        """A block around something that cannot be taken back: noted before it, and with its outcome behind it.

        The note is on disk before the block begins, so nothing is done without one. If the process is killed inside,
        it says "begun". In a unit of work it is none of its acts: a back out leaves it.

        Args:
            act: what it is, 1 to 256 characters: "clear", "discard".
            queue: on which; "": on the queue manager.
            user, address: who does it, from where.

        Raises: ArgumentError.
        """
        for argument, value, least in (
            ("act", act, 1),
            ("queue", queue, 0),
            ("user", user, 1),
            ("address", address, 0),
        ):
            if not isinstance(value, str) or not is_storable(value) or not least <= len(value) <= TEXT_LENGTH_MAX:
                raise bad_argument(argument, value, f"a text of {least} to {TEXT_LENGTH_MAX} characters")
        with self._session:
            number = self._store.begin_act(user, address, act, queue)
        acting = Acting()
        try:
            yield acting
        except BaseException as error:
            self._end(number, acting, f"{type(error).__name__}: {error}"[:ERROR_LENGTH_MAX])
            raise
        self._end(number, acting, "")

    def _end(self, number: int, acting: Acting, error: str) -> None:
        storable = error.encode("utf-8", "backslashreplace").decode()
        with self._session:
            self._store.end_act(number, "failed" if error else "done", acting.messages, storable)

    def acts(
        self, *, user: str | None = None, queue: str | None = None, since: float | None = None, most: int | None = None
    ) -> Iterator[Act]:
        """The log, the newest first: as many as the queue manager's attribute `acts_kept` says are kept.

        Args:
            user, queue: only what this user has done, or what was done on this queue.
            since: nothing that began before, seconds since 1970.
            most: so many at most.

        Raises: ArgumentError.
        """
        if most is not None:
            check_whole("most", most, 0)
        for argument, text in (("user", user), ("queue", queue)):
            if text is not None and not isinstance(text, str):
                raise bad_argument(argument, text, "a text, or None")
        if since is not None and (isinstance(since, bool) or not isinstance(since, int | float)):
            raise bad_argument("since", since, "seconds since 1970, or None")
        return self._acts(user, queue, since, WHOLE_MAX if most is None else most)

    def _acts(self, user: str | None, queue: str | None, since: float | None, room: int) -> Iterator[Act]:
        behind: Act | None = None
        while room:
            with self._session:
                page = self._store.acts(behind, PAGE)
            for one in page:
                if since is not None and one.at < since:
                    return
                if user in (None, one.user) and queue in (None, one.queue):
                    yield one
                    room -= 1
                    if not room:
                        return
            if len(page) < PAGE:
                return
            behind = page[-1]
