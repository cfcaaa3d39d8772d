"""A session: the state that the handles of one connection share.

It has the connection's number in the store, its one unit of work (R5.1) and the caller that opened it, and the
retained group states of its handles. It allows one call at a time.
"""

from __future__ import annotations

import contextlib
import logging
import weakref
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from ..errors import (
    CallerError,
    CallInProgress,
    ConnectionBroken,
    ConnectionClosed,
    InconsistentCall,
    InorderError,
    OutcomeUnknown,
    Reason,
    StoreError,
    UnitOfAnother,
    forked,
)
from ..model.parameters import Text
from ..rules.grouping import NOTHING_OPEN, GroupState
from ..rules.puts import Program
from ..rules.retries import Later
from ..stores.seam.protocol import Store
from ..stores.seam.records import UNIT_NAME_LENGTH_MAX, Outcome
from ..stores.seam.tables import Branch
from ..support import forks
from ..support.callers import Caller
from ..support.locks import Lock
from .services import Services

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .two_phases import GlobalUnit


T = TypeVar("T")
log = logging.getLogger("inorder.session")

NOT_OPEN = 0  # instead of a handle's number in the store
UNIT_NAME = Text(
    UNIT_NAME_LENGTH_MAX,
    least=1,
    words=f"a text of 1 to {UNIT_NAME_LENGTH_MAX} characters: a prepared unit is settled by its name",
)


class Retained:
    """One kind of group state of a handle, which follows the unit of work.

    A back out restores the state from before the unit's first call on this handle; a commit drops that state.

    Rules: R2.9, R3.32.
    """

    __slots__ = ("_saved", "is_lost", "state")

    def __init__(self) -> None:
        self.state = NOTHING_OPEN
        self.is_lost = False  # a call in logical order was interrupted, and may have happened
        self._saved: GroupState | None = None

    def check(self) -> None:
        """Raises: InconsistentCall 2241, the state is lost."""
        if self.is_lost:
            raise InconsistentCall(
                "an earlier call in logical order on this handle was interrupted and may have happened, so the "
                "handle's place in the group is unknown: back out, leave the group, or open another handle",
                reason=Reason.INCOMPLETE_GROUP,
            )

    def advance(self, state: GroupState, before_unit: GroupState | None) -> None:
        """Notes the state after a successful call, and the state before the handle's first call in the unit, if any."""
        if self._saved is None:
            self._saved = before_unit
        self.state = state

    def leave(self) -> bool:
        """Leaves the group or logical message for good, even after a back out; returns whether it was in one."""
        was_inside = self.state.group_open or self.state.message_open
        self.state, self.is_lost = NOTHING_OPEN, False
        self._saved = None if self._saved is None else NOTHING_OPEN
        return was_inside

    @property
    def in_use(self) -> bool:
        """Whether a group or logical message is open, or a back out would reopen one."""
        states = (self.state, self._saved or NOTHING_OPEN)
        return any(state.group_open or state.message_open for state in states)

    def settled(self, outcome: Outcome) -> None:
        if outcome == "back_out":
            self.is_lost = False
            if self._saved is not None:
                self.state = self._saved
        self._saved = None


@runtime_checkable
class Belonging(Protocol):
    """Something that the end of a connection cancels, such as a listener."""

    @property
    def is_alive(self) -> bool: ...

    def cancel(self) -> None: ...


class Watched(weakref.ref[object]):
    """A weak reference to a handle, which remembers its number after the object is dropped.

    Attributes:
        handle: its number.
        is_kept: whether it stays open then, because the program was given it. Otherwise it belongs to a loop, or the
            call that made it was interrupted, and the connection's next call closes it.
    """

    __slots__ = ("handle", "is_kept")
    handle: int
    is_kept: bool


class OpenBlock(Protocol):
    """An open block of a unit of work. Attributes: spans: whether it may hold messages of several queue managers."""

    spans: bool


def _holds(one: Session) -> bool:
    """Whether the unit of work holds, or has lost, something at a place."""
    return one.is_lost or one.store.has_unit(one.owner)


def _lost_unit(one: Session) -> ConnectionBroken:
    text = (
        f"the connection was lost, and the unit of work {one.place} was backed out: back out, too, and begin it again"
    )
    return ConnectionBroken(text)


class Session(Lock):
    """A connection to a store, from connect to close.

    It is also the lock of its calls: each call is a `with` block of the session.
    """

    is_lost = False  # a connection to an owner is broken for good
    is_local = True  # see `two_phases.Part`
    place = "here"  # for the texts of errors

    def __init__(self, services: Services, program: Program) -> None:
        super().__init__()
        self.services, self.program = services, program
        self.store: Store = services.store
        self.calls = 0  # begun so far
        self.block: OpenBlock | None = None  # the open `with unit_of_work()` block
        # Work that failed when it was due: the next call does it first. A function that returns False failed again and
        # stays here; the call goes on. Each is called with the session and must not refer to it: the cycle would keep a
        # dropped session until the next garbage collection.
        self.left: deque[Callable[[Session], object]] = deque()
        self._not_backed_out: StoreError | None = None  # why a unit that was given up could not be backed out
        self._dropped: deque[weakref.ref[object]] = deque()
        self._watched: dict[int, Watched] = {}
        self.opener: Caller | None = None  # the caller that began the block or made the unit's first call
        self.caller: Callable[[], Caller] = Caller.now  # the present caller
        self._retained: dict[int, Retained] = {}  # by their ids
        self.belongings: list[Belonging] = []  # cancelled before the connection ends
        self.owners: dict[object, Session] = {}  # its connections to owners of synchronous remote queues
        self.leads: dict[object, object] = {}  # names that have led to such queues: `owners.Lead`
        self.stays_here = False  # opens no such queue: it works for users who must not act with this program's rights
        self.places: list[Session] = []  # those of its connections that the unit of work has used
        self._global: GlobalUnit | None = None  # a unit at several places, while it ends
        self._ending = Lock()
        self._life = forks.current
        self._ended = False
        self.owner = services.connect(program)
        try:
            # Handles, blocks and the connection all hold the session, so it is dropped with the last of them.
            services.forget_with(self, self.owner)
        except BaseException:
            services.forgotten.append(self.owner)
            raise

    @property
    def closed(self) -> bool:
        """Whether the connection has ended, or the interpreter is ending."""
        return self._ended or self.services.is_over

    @property
    def branch(self) -> Branch:
        """The part of a unit at an owner; only for a connection to one."""
        raise NotImplementedError

    def note(self, error: InorderError) -> None:
        """For a connection to an owner: adds the owner to the error of a call there."""

    def settle_soon(self) -> None:
        """For a connection to an owner: see `two_phases.Part`."""

    # --- one call at a time

    def check(self) -> None:
        """Raises: ForkedConnection; ConnectionClosed 2018."""
        if self._life is not forks.current:
            raise forked(self.services.store.path)
        if self.closed:
            raise ConnectionClosed("the connection is closed")

    def __enter__(self) -> None:
        """Begins a call. Raises: as `check`; CallInProgress 2219."""
        if self._ended or self.services.is_over or self._life is not forks.current:
            self.check()
        if self._is_owned():
            raise CallInProgress("a call was made from inside another one, by a finalizer or a signal handler")
        try:
            is_free = self.acquire(False)
            if is_free:
                self.calls += 1
                if self.services.forgotten:
                    self.services.reap()
                if self.left or self._dropped:
                    self._do_what_is_left()
        except BaseException:
            try:  # noqa: SIM105 - `suppress` is not a block that is written in C
                self.release()
            except RuntimeError:  # it was not free
                pass
            raise
        if not is_free:
            raise CallInProgress(
                "another thread has a call in progress on this connection: give each thread its own with qm.connect()"
            )

    def _do_what_is_left(self) -> None:
        while self.left and self.left[0](self) is not False:
            self.left.popleft()
        while self._dropped:
            dropped = self._dropped[0]
            assert isinstance(dropped, Watched)
            if not dropped.is_kept:
                if dropped.handle != NOT_OPEN:
                    with contextlib.suppress(ConnectionBroken):  # the handle was closed with the connection
                        self.store.close(dropped.handle)
                self._watched.pop(id(dropped), None)
            self._dropped.popleft()

    def do_later(self, one: T, act: Callable[[T], object]) -> None:
        """Makes the next call do this, if `one` still exists then."""
        there = weakref.ref(one)
        self.left.append(lambda _: None if (found := there()) is None else act(found))

    # --- its handles

    def watch(self, queue: object) -> Watched:
        """Starts to watch a handle that is being made."""
        one = Watched(queue, self._dropped.append)
        one.handle, one.is_kept = NOT_OPEN, False
        self._watched[id(one)] = one
        return one

    def handles(self) -> list[Any]:
        """Returns the handles to which the program or a loop still refers, also those at owners."""
        own = [handle for one in self._watched.copy().values() if (handle := one()) is not None]
        return own + [handle for one in self.owners.values() for handle in one.handles()]

    def keep_handles(self) -> None:
        """Inside a call: closes handles in the store that no object has, after an exception from outside."""
        self.store.keep_handles(self.owner, [one.handle for one in self._watched.values()])

    def keep(self, one: Belonging) -> None:
        """Cancels `one` when the connection ends, unless it has ended before."""
        self.belongings = [*(other for other in self.belongings if other.is_alive), one]

    # --- its connections to owners of synchronous remote queues

    def add_owner(self, of: object, made: Session) -> None:
        """Keeps a connection to an owner until this one ends."""
        assert isinstance(made, Belonging)
        self.keep(made)
        self.owners[of] = made

    def leave_owner(self, lost: Session) -> None:
        """Ends a connection to an owner that is lost. Its handles are closed, and its unit of work is backed out."""
        self.owners = {of: one for of, one in self.owners.items() if one is not lost}
        for handle in lost.handles():
            handle.closed = True
        with contextlib.suppress(InorderError):
            lost.end()

    # --- the unit of work

    @property
    def has_unit(self) -> bool:
        """Whether its unit of work holds something, here or at an owner."""
        return self.store.has_unit(self.owner) or any(map(_holds, self.places))

    def begin(self, block: OpenBlock) -> None:
        """Begins the unit of work of a block. Raises: CallerError 2128; UnitOfAnother 2128, another caller has one."""
        with self:
            self._refuse_given_up()
            if self._has_unit():
                self._check_opener(Reason.UOW_IN_PROGRESS)
                task = getattr(self.block, "task", "")
                remedy = (
                    f"it is the worker's, which commits it when the function of task {task} returns, and backs it out "
                    "when it raises. Leave out unit_of_work() and commit(), or take another connection, qm.connect()"
                    if task
                    else "commit it or back it out first"
                )
                raise CallerError(f"the connection has a unit of work already: {remedy}", reason=Reason.UOW_IN_PROGRESS)
            self.block, self.opener = block, self.caller()

    def join_unit(self, at: Session | None = None) -> None:
        """Inside a call: joins the unit of work, or opens it.

        Args:
            at: the connection to the owner where the call is made; None: it is made here.

        Raises: UnitOfAnother, another thread or task opened it and may still continue it. CallerError 2298, it is
        of a kind that has only one place. ConnectionBroken, a part of it was lost.
        """
        self._refuse_given_up()
        if (at is not None or self.places) and at not in self.places:
            self._check_places(at)
        if self.opener is not None and self.opener.is_calling():  # nearly always
            return
        if self.opener is not None and self._has_unit():
            self._check_opener()
        else:
            self.opener = self.caller()  # an earlier call that failed or got nothing opened no unit

    def _check_places(self, at: Session | None) -> None:
        """Adds a place to the unit of work."""
        for one in self.places:
            if one.is_lost:
                raise _lost_unit(one)
        if self.block is not None and not self.block.spans:
            for one in (self, *self.places):
                if one is not (at or self) and _holds(one):
                    raise CallerError(
                        f"the unit of work is {one.place}, and this kind of unit cannot span two queue managers, so "
                        f"this call {(at or self).place} must be made with syncpoint=False",
                        reason=Reason.FUNCTION_NOT_SUPPORTED,
                    )
        if at is not None:
            self.places.append(at)

    def can_join_unit(self) -> bool:
        """Whether the connection has a unit of work, begun by a block or by a call with syncpoint.

        Raises: UnitOfAnother, the unit belongs to another thread or task.

        Rules: R5.1.
        """
        with self:
            self._refuse_given_up()
            has_unit = self._has_unit()
            if has_unit:
                self._check_opener()
            return has_unit

    def _has_unit(self) -> bool:
        return self.block is not None or self.has_unit

    def _check_opener(self, reason: Reason = Reason.UNIT_OF_ANOTHER) -> None:
        if self.opener is None or self.opener.admits_caller():
            return
        names = self.opener.names
        who = f"task {names['task']!r} of thread" if names["task"] else "thread"
        raise UnitOfAnother(
            f"{who} {names['thread']!r} has a unit of work open on this connection, to which this call does not "
            "belong: give each thread and each task its own connection with qm.connect()",
            reason=reason,
            **names,
        )

    def leave(self, block: object, outcome: Outcome) -> None:
        """Ends the block of a lease, not the lease; `outcome` says how the handles' group states follow."""
        if self.block is not block:
            return
        try:
            if not self.closed:
                with self:
                    self.store.leave_lease(self.owner)
        finally:
            self._settled(outcome)

    def give_up(self, outcome: Outcome) -> None:
        """Ends a block whose unit could not be settled; the connection's next call first backs the unit out.

        While that fails, calls outside a unit of work still run; calls in one raise the error of the back out.

        Args:
            outcome: the outcome that was tried; it may have happened.
        """
        self.block = None
        self.left.append(lambda session: session._back_out(outcome))

    def _back_out(self, tried: Outcome) -> bool:
        """Backs out the unit that was given up; returns whether it could."""
        try:
            if self._global is not None:
                self._global.finish()
                outcome: Outcome = "commit" if self._global.outcome == "commit" else "back_out"
            else:
                outcome = "back_out" if self._back_out_places() else tried
        except OutcomeUnknown:  # the commit has told the program
            outcome = tried
        except StoreError as error:
            self._not_backed_out = error
            return False
        self._settled(outcome)
        self._not_backed_out = None
        return True

    def _back_out_places(self, later: Later | None = None, *, moves: bool = False) -> bool:
        """Backs out the unit at all places; returns whether there was one.

        Raises: the error of one of them, after the others have backed out.
        """
        was_open, failure = False, None
        for one in (*self.places, self):
            try:
                was_open |= one.is_lost or one.store.settle(one.owner, "back_out", later, moves=moves)
            except InorderError as error:
                one.note(error)
                if one is self or not isinstance(error, ConnectionBroken):  # an owner backs out a lost unit
                    failure = error
                was_open = True
        if failure is not None:
            raise failure
        return was_open

    def _refuse_given_up(self) -> None:
        if self._not_backed_out is not None:
            raise self._not_backed_out

    def retained(self, *kinds: Retained) -> None:
        """Makes these states of a new handle follow the unit of work."""
        self._retained.update((id(one), one) for one in kinds)

    def forget(self, handle: Watched, kinds: Iterable[Retained]) -> None:
        """Forgets a closed handle and its states."""
        handle.handle = NOT_OPEN
        self._watched.pop(id(handle), None)
        for one in kinds:
            self._retained.pop(id(one), None)

    def settle(self, outcome: Outcome, later: Later | None = None, *, moves: bool = False) -> Reason | None:
        """Commits or backs out. Returns a warning: OUTCOME_PENDING 2124, an owner could not be reached to commit."""
        with self:
            self._refuse_given_up()
            try:
                if self.places:
                    return self._settle_places(outcome, later, moves=moves)
                self.store.settle(self.owner, outcome, later, moves=moves)
                self._settled(outcome)
            except BaseException as error:
                if isinstance(error, OutcomeUnknown) or not isinstance(error, InorderError):
                    self.left.append(lambda session: session._see_whether_settled(outcome))
                raise
        return None

    def _settle_places(self, outcome: Outcome, later: Later | None, *, moves: bool) -> Reason | None:
        lost = next((one for one in self.places if one.is_lost), None)
        if outcome == "back_out" or lost is not None:
            self._back_out_places(later, moves=moves)
            self._settled("back_out")
            if lost is not None and outcome == "commit":
                raise _lost_unit(lost)
            return None
        parts = [one for one in self.places if _holds(one)]
        if parts and (len(parts) > 1 or self.store.has_unit(self.owner)):
            return self._commit_all(parts, moves=moves)
        at = parts[0] if parts else self
        try:
            at.store.settle(at.owner, outcome, moves=moves)
        except InorderError as error:
            at.note(error)
            raise
        self._settled(outcome)
        return None

    def _commit_all(self, parts: list[Session], *, moves: bool) -> Reason | None:
        """Commits in two phases. Raises: QueueCondition 2003, the unit was backed out."""
        from .two_phases import GlobalUnit  # noqa: PLC0415 - few programs need it

        unit = self._global = GlobalUnit(self, parts)
        try:
            unit.commit(moves=moves)
        except BaseException:
            self.left.append(lambda session: session._global is None or session._back_out("commit"))
            raise
        if unit.outcome == "back_out":
            self._settled("back_out")
            raise unit.error()
        self._settled("commit")
        return unit.warning

    def _see_whether_settled(self, tried: Outcome) -> None:
        if not self.has_unit:
            self._settled(tried)

    def prepare(self, name: str) -> None:
        UNIT_NAME.check("name", name)
        with self:
            self._refuse_given_up()
            for one in self.places:
                if _holds(one):
                    text = (
                        f"the unit of work holds messages {one.place}, and only a connection to that can prepare them"
                    )
                    raise CallerError(text, reason=Reason.FUNCTION_NOT_SUPPORTED)
            try:
                self.store.prepare(self.owner, name)
                self._settled("commit")  # for handles prepare acts as commit (R5.10)
            except BaseException as error:
                if isinstance(error, OutcomeUnknown) or not isinstance(error, InorderError):
                    self.left.append(lambda session: session._see_whether_settled("commit"))
                raise

    def _settled(self, outcome: Outcome) -> None:
        self.block = self.opener = self._global = None
        places, self.places = self.places, []
        for one in tuple(self._retained.values()):
            one.settled(outcome)
        for at in places:
            at._settled(outcome)

    # --- the end

    def end(self, later: Later | None = None) -> None:
        """Ends the connection as if the program had died: ends a wait and backs out the unit.

        Args:
            later: delay and error of the back out, which comes first, when no other call can begin. If it fails, the
                unit is backed out with the connection, without them.
        """
        if self._life is not forks.current:
            return
        with self._ending:
            if self.closed:
                return
            self._ended = True
        if later is not None:
            try:
                self._back_out_places(later)
            except InorderError as error:
                log.warning("a unit of work is backed out without its delay, %s was lost: %s", later, error)
        try:
            while self.belongings:
                self.belongings.pop().cancel()
            self.services.end(self.owner)
        except BaseException:
            self.services.forgotten.append(self.owner)  # the next call of any connection tries again
            raise
