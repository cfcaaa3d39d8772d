"""A session: what one connection shares among its handles.

Its number in the store, its one unit of work (R5.1) and who opened it, its handles' retained group states, and the
rule that only one call is in progress at a time.
"""

from __future__ import annotations

import contextlib
import logging
import weakref
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

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
    bad_argument,
    forked,
)
from ..model.parameters import is_storable
from ..rules.grouping import NOTHING_OPEN, GroupState
from ..rules.puts import Program
from ..rules.retries import Later
from ..stores.seam.protocol import Store
from ..stores.seam.records import UNIT_NAME_LENGTH_MAX, Outcome
from ..support import forks
from ..support.callers import Caller
from ..support.locks import Lock
from .services import Services

if TYPE_CHECKING:
    from collections.abc import Iterable


T = TypeVar("T")
log = logging.getLogger("inorder.session")

NOT_OPEN = 0  # instead of a handle's number in the store


class Retained:
    """One kind of group state of a handle, and how to take it back.

    The state that stood before the first call of a unit of work on this handle comes back when the unit is
    backed out; a commit forgets it.

    Rules: R2.9, R3.32.
    """

    __slots__ = ("_saved", "is_lost", "state")

    def __init__(self) -> None:
        self.state = NOTHING_OPEN
        self.is_lost = False  # a call in logical order was interrupted, and may have happened
        self._saved: GroupState | None = None

    def check(self) -> None:
        """Raises: InconsistentCall 2241, it is lost."""
        if self.is_lost:
            raise InconsistentCall(
                "an earlier call in logical order on this handle was interrupted and may have happened, so that its "
                "place in the group is not known: back out the unit of work, leave the group, or open another handle",
                reason=Reason.INCOMPLETE_GROUP,
            )

    def advance(self, state: GroupState, before_unit: GroupState | None) -> None:
        """A successful call leaves `state`; `before_unit` stood before its first act in the unit of work, if any."""
        if self._saved is None:
            self._saved = before_unit
        self.state = state

    def leave(self) -> bool:
        """The handle leaves its group or logical message, and does not come back into it; whether it was in one."""
        was_inside = self.state.group_open or self.state.message_open
        self.state, self.is_lost = NOTHING_OPEN, False
        self._saved = None if self._saved is None else NOTHING_OPEN
        return was_inside

    @property
    def in_use(self) -> bool:
        """Whether a group or logical message is open, or would be again after a back out."""
        states = (self.state, self._saved or NOTHING_OPEN)
        return any(state.group_open or state.message_open for state in states)

    def settled(self, outcome: Outcome) -> None:
        if outcome == "back_out":
            self.is_lost = False
            if self._saved is not None:
                self.state = self._saved
        self._saved = None


class Belonging(Protocol):
    """What lives beside a connection, and no longer."""

    @property
    def is_alive(self) -> bool: ...

    def cancel(self) -> None: ...


class Watched(weakref.ref[object]):
    """What is known of a handle when its object is dropped.

    Attributes:
        handle: its number.
        is_kept: it stays open then: the program was given it. Else a loop has it, or the call that made it was
            interrupted, and the connection's next call closes it.
    """

    __slots__ = ("handle", "is_kept")
    handle: int
    is_kept: bool


class Session(Lock):
    """A connection to a store, from connect to close.

    It is the lock of its calls: a call is a `with` block of it.
    """

    def __init__(self, services: Services, program: Program) -> None:
        super().__init__()
        self.services = services
        self.store: Store = services.store
        self.calls = 0  # that it has begun
        self.block: object | None = None  # the `with unit_of_work()` block that calls stand in
        # What could not be done when it should have been: the next call, whatever it is, does it first.
        # What answers False could not be done now either, and does not matter to it. Each is called with the session,
        # and none holds it: one that is dropped now would end with the next garbage collection only.
        self.left: deque[Callable[[Session], object]] = deque()
        self._not_backed_out: StoreError | None = None  # why a unit that was given up is still there
        self._dropped: deque[weakref.ref[object]] = deque()
        self._watched: dict[int, Watched] = {}
        self.opener: Caller | None = None  # who began the block, or made the first call that was part of the unit
        self._retained: dict[int, Retained] = {}  # by their ids
        self.belongings: list[Belonging] = []  # end before the connection does
        self._ending = Lock()
        self._life = forks.current
        self._ended = False
        self.owner = services.connect(program)
        try:
            # Handles, blocks and the connection all hold the session: it is forgotten with the last of them.
            services.forget_with(self, self.owner)
        except BaseException:
            services.forgotten.append(self.owner)
            raise

    @property
    def closed(self) -> bool:
        """Whether the connection has ended, or all have with the interpreter."""
        return self._ended or self.services.is_over

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
                    with contextlib.suppress(ConnectionBroken):  # it was closed
                        self.store.close(dropped.handle)
                self._watched.pop(id(dropped), None)
            self._dropped.popleft()

    def do_later(self, one: T, act: Callable[[T], object]) -> None:
        """The next call does this, if `one` is there still; what has gone by then has told the session so."""
        there = weakref.ref(one)
        self.left.append(lambda _: None if (found := there()) is None else act(found))

    # --- its handles

    def watch(self, queue: object) -> Watched:
        """A handle is being made."""
        one = Watched(queue, self._dropped.append)
        one.handle, one.is_kept = NOT_OPEN, False
        self._watched[id(one)] = one
        return one

    def handles(self) -> list[Any]:
        """Those that the program, or a loop, still has."""
        return [handle for one in self._watched.copy().values() if (handle := one()) is not None]

    def keep_handles(self) -> None:
        """Inside a call: closes the handles whose numbers nobody knows, after an exception from outside."""
        self.store.keep_handles(self.owner, [one.handle for one in self._watched.values()])

    def keep(self, one: Belonging) -> None:
        """It ends with the connection, if it has not ended before."""
        self.belongings = [*(other for other in self.belongings if other.is_alive), one]

    # --- the unit of work

    def begin(self, block: object) -> None:
        """A block begins the unit of work. Raises: CallerError 2128; UnitOfAnother 2128, with the other's remedy."""
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
            self.block, self.opener = block, Caller.now()

    def join_unit(self) -> None:
        """Inside a call: it acts in the unit of work, which the first of them opens.

        Raises: UnitOfAnother, another thread or task has opened it, and may still go on with it.
        """
        self._refuse_given_up()
        if self.opener is not None and self.opener.is_calling():  # nearly always
            return
        if self.opener is not None and self._has_unit():
            self._check_opener()
        else:
            self.opener = Caller.now()  # a call that failed, or got nothing, has opened none

    def can_join_unit(self) -> bool:
        """Whether the connection has a unit of work, by a block or by a call with syncpoint.

        Raises: UnitOfAnother, it has, and it is not a unit for this caller.

        Rules: R5.1.
        """
        with self:
            self._refuse_given_up()
            has_unit = self._has_unit()
            if has_unit:
                self._check_opener()
            return has_unit

    def _has_unit(self) -> bool:
        return self.block is not None or self.store.has_unit(self.owner)

    def _check_opener(self, reason: Reason = Reason.UNIT_OF_ANOTHER) -> None:
        if self.opener is None or self.opener.admits_caller():
            return
        names = self.opener.names
        who = f"task {names['task']!r} of thread" if names["task"] else "thread"
        raise UnitOfAnother(
            f"{who} {names['thread']!r} has a unit of work open on this connection, and this call is not its own: "
            "give each thread and each task a connection of its own with qm.connect()",
            reason=reason,
            **names,
        )

    def leave(self, block: object, outcome: Outcome) -> None:
        """The block of a lease has ended, which goes on; `outcome`: what the handles take it for."""
        if self.block is not block:
            return
        try:
            if not self.closed:
                with self:
                    self.store.leave_lease(self.owner)
        finally:
            self._settled(outcome)

    def give_up(self, outcome: Outcome) -> None:
        """The block has ended and its unit could not be settled: the next call, whatever it is, backs it out first.

        While that fails, calls outside a unit of work go on; those that are about one say what is the matter.

        Args:
            outcome: what was tried; it may have happened.
        """
        self.block = None
        self.left.append(lambda session: session._back_out(outcome))

    def _back_out(self, tried: Outcome) -> bool:
        """Whether it could be."""
        try:
            self._settled("back_out" if self.store.settle(self.owner, "back_out") else tried)
        except StoreError as error:
            self._not_backed_out = error
            return False
        self._not_backed_out = None
        return True

    def _refuse_given_up(self) -> None:
        if self._not_backed_out is not None:
            raise self._not_backed_out

    def retained(self, *kinds: Retained) -> None:
        """A handle was opened: these states follow the unit of work."""
        self._retained.update((id(one), one) for one in kinds)

    def forget(self, handle: Watched, kinds: Iterable[Retained]) -> None:
        """A handle was closed."""
        handle.handle = NOT_OPEN
        self._watched.pop(id(handle), None)
        for one in kinds:
            self._retained.pop(id(one), None)

    def settle(self, outcome: Outcome, later: Later | None = None, *, moves: bool = False) -> None:
        with self:
            self._refuse_given_up()
            try:
                self.store.settle(self.owner, outcome, later, moves=moves)
                self._settled(outcome)
            except BaseException as error:
                if isinstance(error, OutcomeUnknown) or not isinstance(error, InorderError):
                    self.left.append(lambda session: session._see_whether_settled(outcome))
                raise

    def _see_whether_settled(self, tried: Outcome) -> None:
        if not self.store.has_unit(self.owner):
            self._settled(tried)

    def prepare(self, name: str) -> None:
        if not isinstance(name, str) or not 0 < len(name) <= UNIT_NAME_LENGTH_MAX or not is_storable(name):
            allowed = f"a text of 1 to {UNIT_NAME_LENGTH_MAX} characters: a prepared unit is settled by its name"
            raise bad_argument("name", name, allowed)
        with self:
            self._refuse_given_up()
            try:
                self.store.prepare(self.owner, name)
                self._settled("commit")  # for handles prepare acts as commit (R5.10)
            except BaseException as error:
                if isinstance(error, OutcomeUnknown) or not isinstance(error, InorderError):
                    self.left.append(lambda session: session._see_whether_settled("commit"))
                raise

    def _settled(self, outcome: Outcome) -> None:
        self.block = self.opener = None
        for one in tuple(self._retained.values()):
            one.settled(outcome)

    # --- the end

    def end(self, later: Later | None = None) -> None:
        """Ends the connection as if the program had died: a wait is dismissed, the unit backed out.

        Args:
            later: how the unit is backed out. That comes first, when no other call can begin; if it fails the unit is
                backed out plainly with the connection.
        """
        if self._life is not forks.current:
            return
        with self._ending:
            if self.closed:
                return
            self._ended = True
        if later is not None:
            try:
                self.store.settle(self.owner, "back_out", later)
            except InorderError as error:
                log.warning("a unit of work is backed out without its delay, %s was lost: %s", later, error)
        try:
            while self.belongings:
                self.belongings.pop().cancel()
            self.services.end(self.owner)
        except BaseException:
            self.services.forgotten.append(self.owner)  # the next call of any connection tries again
            raise
