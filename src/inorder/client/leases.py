"""A lease: a unit of work that outlives its connection. Callers with its token can use it until its deadline.

It is for programs that keep no connection, such as clients of a server, whose requests any of several processes may
serve. Puts and gets inside the block are part of the lease. The end of the block does not settle it. A commit or back
out ends it. At its deadline it is backed out.
"""

from __future__ import annotations

from typing import Literal

from ..errors import LeaseOver, bad_argument
from ..model.options import check_whole
from ..model.parameters import Seconds, is_storable
from ..rules.leases import SECONDS_MAX
from ..rules.puts import Program
from ..rules.retries import Later
from ..stores.seam.records import Leased, Outcome
from .session import Session
from .unit_of_work import later_of

NAME_LENGTH = 32
SECONDS = Seconds(0, SECONDS_MAX, above=True)
LeaseStatus = Literal["open", "committed", "backed out"]


def name_of(token: str) -> str:
    """Returns the name of the lease with this token; the name does not reveal the token."""
    from ..support import secrets  # noqa: PLC0415 - few programs need it

    return secrets.hashed(token)[:NAME_LENGTH]


class Lease:
    """A lease; made by `QueueManager.lease` and `QueueManager.resume_lease`.

    As a context manager it is the connection's unit of work inside the block. It can be entered again, and by other
    connections too, whose calls run one after another. Each handle keeps its own group state.

    Attributes:
        token: other programs need it to use the lease. The store has no copy: if it is lost, wait for the deadline.
        name: its name in `inspect.units`.
        user: the owner.
        ends_at: the last known deadline; seconds since 1970 by the clock of the store.
        status: "open", "committed" or "backed out", if this object did it.
    """

    spans = False  # another process could settle it without its parts elsewhere

    def __init__(self, session: Session, token: str, user: str | None, leased: Leased) -> None:
        self._session, self._as, self._is_inside = session, user, False
        self.token, self.name, self.user = token, leased.name, leased.user
        self.ends_at = leased.ends_at
        self.status: LeaseStatus = "open"

    def __enter__(self) -> Lease:
        """Makes the lease the connection's unit of work.

        Raises: LeaseOver 9060; CallerError 2128 UOW_IN_PROGRESS, the connection has a unit of work.
        """
        self._session.begin(self)
        try:
            with self._session:
                self.ends_at = self._session.store.enter_lease(self._session.owner, self.name, self._as).ends_at
            self._is_inside = True
        except BaseException:
            self._session.leave(self, "commit")
            raise
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.leave("back_out" if isinstance(error, LeaseOver) else "commit")

    def leave(self, outcome: Outcome = "commit") -> None:
        """Leaves the lease open and ends its use by this connection. Harmless when repeated.

        Args:
            outcome: "back_out" restores the handles' group states from the beginning of the block.
        """
        if self._is_inside:
            self._is_inside = False
            self._session.leave(self, outcome)

    def commit(self) -> None:
        """Commits: makes all puts visible and all gets final in one step, on disk when the call returns.

        Raises: LeaseOver 9060; the lease was not committed.
        """
        self._settle("commit", "committed")

    def back_out(self, *, delay: float = 0, error: str = "") -> None:
        """Backs out: undoes the puts and returns messages got to their places; their back out counts rise by one.

        Args:
            delay, error: as in `QueueManager.back_out`.

        Raises: LeaseOver 9060; ArgumentError.
        """
        self._settle("back_out", "backed out", later_of(delay, error))

    def _settle(self, outcome: Outcome, status: LeaseStatus, later: Later | None = None) -> None:
        if self._is_inside:
            self._session.settle(outcome, later)
            self._is_inside = False
        else:
            with self:
                self._settle(outcome, status, later)
        self.status = status

    def extend(self, seconds: float) -> float:
        """Sets the deadline to `seconds` from now, above 0 up to 86,400; returns it in seconds since 1970.

        Raises: LeaseOver 9060; ArgumentError.
        """
        SECONDS.check("seconds", seconds)
        with self._session:
            self.ends_at = self._session.store.extend_lease(self.name, self._as, float(seconds)).ends_at
        return self.ends_at

    def __repr__(self) -> str:
        return f"<lease {self.name}, {self.status}>"


class LeaseCalls:
    """The calls of `QueueManager` that begin and resume leases."""

    _session: Session
    _program: Program

    def lease(self, *, seconds: float = 30.0, user: str | None = None, most: int | None = None) -> Lease:
        """Begins a unit of work that any connection with its token may use until its deadline; see `Lease`.

        The lease is on disk when the call returns.

        Args:
            seconds: time to the deadline, above 0 up to 86,400. At the deadline an unsettled lease is backed out.
            user: the owner; default: the user of this program.
            most: the largest number of open leases of that user, including this one, 1 or more, across all processes;
                None: any number.

        Raises: ArgumentError; UnitNotAvailable 2255, the user already has that many.

        Rules: B-32.
        """
        from ..support import secrets  # noqa: PLC0415 - few programs need it

        SECONDS.check("seconds", seconds)
        check_user(user)
        if most is not None:
            check_whole("most", most, low=1)
        token, session = secrets.new_secret(), self._session
        with session:
            leased = session.store.begin_lease(
                session.owner, name_of(token), user or self._program.user, float(seconds), most
            )
        return Lease(session, token, user, leased)

    def resume_lease(self, token: str, *, user: str | None = None) -> Lease:
        """Returns the lease with this token; another process may have begun it.

        Args:
            user: the user that must own the lease; None: any.

        Raises: LeaseOver 9060, it was settled, its deadline has passed, or it belongs to another user; ArgumentError.
        """
        if not isinstance(token, str) or not token or not is_storable(token):
            raise bad_argument("token", "...", "a text, the token of a lease")
        check_user(user)
        with self._session:
            leased = self._session.store.lease(name_of(token), user)
        return Lease(self._session, token, user, leased)


def check_user(user: object) -> None:
    """Raises: ArgumentError."""
    if user is not None and (not isinstance(user, str) or not user or not is_storable(user)):
        raise bad_argument("user", user, "the name of a user, not empty, or None")
