"""The log of irreversible actions through a server: user, time, address, action and number of messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ..errors import bad_argument
from ..model.options import check_whole
from ..model.parameters import WHOLE_MAX, Text
from ..stores.seam.records import Act
from .namespace import Namespace

TEXT_LENGTH_MAX: Final = 256
NAME: Final = Text(TEXT_LENGTH_MAX, least=1)
NAME_OR_NONE: Final = Text(TEXT_LENGTH_MAX, words=f"a text of 0 to {TEXT_LENGTH_MAX} characters")
ERROR_LENGTH_MAX: Final = 1000
PAGE: Final = 500


class Acting:
    """An action in progress; made by `qm.accounts.acting`.

    Attributes:
        messages: how many messages it affected; the block may set it.
    """

    messages: int | None = None


class ActCalls(Namespace):
    """The calls of `qm.accounts` for the operator log."""

    @contextmanager
    def acting(self, act: str, queue: str = "", *, user: str, address: str = "") -> Iterator[Acting]:
        """Returns a block that logs an irreversible action before its start, and its outcome after its end.

        The entry is on disk before the block begins. If the process is killed inside the block, the entry says
        "begun". The entry is not part of a unit of work: a back out does not remove it.

        Args:
            act: the name of the action, 1 to 256 characters: "clear", "discard".
            queue: the queue; "": the queue manager.
            user, address: the user, and the address of the user's client.

        Raises: ArgumentError.
        """
        NAME.check("act", act)
        NAME_OR_NONE.check("queue", queue)
        NAME.check("user", user)
        NAME_OR_NONE.check("address", address)
        with self._session:
            number = self._session.services.store.begin_act(user, address, act, queue)
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
            self._session.services.store.end_act(number, "failed" if error else "done", acting.messages, storable)

    def acts(
        self, *, user: str | None = None, queue: str | None = None, since: float | None = None, most: int | None = None
    ) -> Iterator[Act]:
        """Yields the log entries, newest first; the store keeps as many as the manager's attribute `acts_kept` says.

        Args:
            user, queue: only entries of this user, or about this queue.
            since: only actions that began at or after this time, seconds since 1970.
            most: the largest number of entries; None: all.

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
                page = self._session.services.store.acts(behind, PAGE)
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
