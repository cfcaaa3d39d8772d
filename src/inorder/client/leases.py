"""A lease: a unit of work that outlives its connection. Callers with its token can use it until its deadline.

It is for programs that keep no connection, such as clients of a server, whose requests any of several processes may
serve. Puts and gets inside the block are part of the lease. The end of the block does not settle it. A commit or back
out ends it. At its deadline it is backed out.
"""

from __future__ import annotations

from types import TracebackType
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
    """The name of the lease with this token, from which the token cannot be found."""
    from ..support import secrets  # noqa: PLC0415 - few programs need it

    return secrets.hashed(token)[:NAME_LENGTH]


class Lease:
    """A lease; made by `QueueManager.lease` and `QueueManager.resume_lease`.

    As a context manager it is the connection's unit of work inside the block, which can be entered again, and by other
    connections too: their acts come one after another. What a handle remembers of groups stays with the handle.

    Attributes:
        token: what others need to act under it. The store has no copy: without it one can only wait for the deadline.
        name: by which operators know it, in `units()`.
        user: whose it is.
        ends_at: the deadline as this object has seen it last; seconds since 1970 by the clock of the store.
        status: "open", "committed" or "backed out", as far as this object has done it.
    """

    def __init__(self, session: Session, token: str, user: str | None, leased: Leased) -> None:
        self._session, self._as, self._is_inside = session, user, False
        self.token, self.name, self.user = token, leased.name, leased.user
        self.ends_at = leased.ends_at
        self.status: LeaseStatus = "open"

    def __enter__(self) -> Lease:
        """Makes it the connection's unit of work.

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave("back_out" if isinstance(error, LeaseOver) else "commit")

    def leave(self, outcome: Outcome = "commit") -> None:
        """The connection goes on without it. Harmless when repeated.

        Args:
            outcome: what its handles take it for: "back_out" puts their group states back to where they entered.
        """
        if self._is_inside:
            self._is_inside = False
            self._session.leave(self, outcome)

    def commit(self) -> None:
        """Makes its puts visible and its gets final, all at once. Raises: LeaseOver 9060, nothing of it has happened.

        On disk when it returns.
        """
        self._settle("commit", "committed")

    def back_out(self, *, delay: float = 0, error: str = "") -> None:
        """Undoes its puts; what it got returns to its place, with one more back out.

        Args:
            delay, error: as of `QueueManager.back_out`.

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
        """Sets the deadline to so many seconds from now, above 0 up to 86,400; the new one, seconds since 1970.

        Raises: LeaseOver 9060; ArgumentError.
        """
        SECONDS.check("seconds", seconds)
        with self._session:
            self.ends_at = self._session.store.extend_lease(self.name, self._as, float(seconds)).ends_at
        return self.ends_at

    def __repr__(self) -> str:
        return f"<lease {self.name}, {self.status}>"


class LeaseCalls:
    """What a queue manager does about leases; part of `QueueManager`."""

    _session: Session
    _program: Program

    def lease(self, *, seconds: float = 30.0, user: str | None = None, most: int | None = None) -> Lease:
        """A unit of work that any connection may act under which shows its token, until its deadline; see `Lease`.

        Args:
            seconds: until the deadline, above 0 up to 86,400. Then it is backed out, if nobody has settled it.
            user: whose it is; default: the user of this program.
            most: leases of that user that may be open then, with this one, 1 or more; None: any number. It holds for
                all processes, however many begin one at once.

        Raises: ArgumentError; UnitNotAvailable 2255, the user has as many. It is on disk when the call returns.

        Rules: B-32.
        """
        return begin_lease(self._session, user, self._program.user, seconds, most)

    def resume_lease(self, token: str, *, user: str | None = None) -> Lease:
        """The lease with this token, even one of another process.

        Args:
            user: the lease must be this user's; None: whose it is does not matter.

        Raises: LeaseOver 9060, it was settled, its time has passed, or it is another user's; ArgumentError.
        """
        return resume_lease(self._session, token, user)


def begin_lease(session: Session, user: str | None, owner: str, seconds: float, most: int | None) -> Lease:
    """A new lease of `user`, or of the program's own user, `owner`."""
    from ..support import secrets  # noqa: PLC0415 - few programs need it

    SECONDS.check("seconds", seconds)
    check_user(user)
    if most is not None:
        check_whole("most", most, low=1)
    token = secrets.new_secret()
    with session:
        leased = session.store.begin_lease(session.owner, name_of(token), user or owner, float(seconds), most)
    return Lease(session, token, user, leased)


def resume_lease(session: Session, token: str, user: str | None) -> Lease:
    """The lease with this token. Raises: LeaseOver 9060; ArgumentError."""
    if not isinstance(token, str) or not token or not is_storable(token):
        raise bad_argument("token", "...", "a text, the token of a lease")
    check_user(user)
    with session:
        leased = session.store.lease(name_of(token), user)
    return Lease(session, token, user, leased)


def check_user(user: object) -> None:
    """Raises: ArgumentError."""
    if user is not None and (not isinstance(user, str) or not user or not is_storable(user)):
        raise bad_argument("user", user, "the name of a user, not empty, or None")
