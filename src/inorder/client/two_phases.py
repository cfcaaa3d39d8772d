"""Units of work that touch more than one queue manager, in two phases (K-2).

The store here records the unit before the first *prepare*. Each owner prepares its part under a separate name
(`branch_name`), which outlives every connection. The transaction that commits here writes the decision into the record;
without one, the end of this connection backs the unit out. Then each owner settles its part, and the record goes.

If an owner cannot be reached after the decision, the record stays, and `recover` settles the part: when a connection
of any program here reaches that owner the next time, or when an operator asks for it.

If this connection is lost, another program may remove the record while this one stalls before a prepare. This one then
backs out the part that it has prepared too late, since nobody else looks for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from ..errors import ConnectionBroken, InorderError, OutcomeUnknown, QueueCondition, Reason, UnitNotFound
from ..stores.seam.protocol import Store
from ..stores.seam.records import Outcome
from ..stores.seam.tables import Branch, Decision
from ..stores.seam.views import Unit
from .services import Services

log = logging.getLogger("inorder.unit_of_work")

POINTS: Final = {
    "unit-recorded": "the unit is recorded here, and no part is prepared",
    "part-prepared": "an owner has prepared its part",
    "unit-decided": "the decision is on disk, and no owner knows it",
    "part-settled": "an owner has settled its part",
    "unit-ended": "all owners have, and the record is removed",
}
"""Points in a commit where a test can act."""
reached: Callable[[str], object] | None = None
"""Set by a test. Called with the name of each point, one of `POINTS`, that a commit reaches."""

IN_FLIGHT_SECONDS = 10.0
"""How long after the beginning of a unit its request to prepare may still be on its way to an owner elsewhere. Until
then, an owner that has no such part may get it later, so the record of a unit that is backed out stays."""


def _reach(point: str) -> None:
    if reached is not None:
        reached(point)


class Home(Protocol):
    """The connection that coordinates a unit of work."""

    store: Store
    owner: int
    services: Services


class Part(Protocol):
    """A connection at which a unit of work holds something."""

    store: Store
    owner: int
    is_local: bool
    """Whether its store is a file that this program has open, so that nothing can be on its way there."""

    @property
    def branch(self) -> Branch: ...

    def note(self, error: InorderError) -> None:
        """Adds to an error where it happened, and notes if the connection is lost."""

    def settle_soon(self) -> None:
        """Makes the next call there settle decided units of work."""


class GlobalUnit:
    """The end of a unit of work with parts at owners.

    Attributes:
        outcome: the decision; empty: there is none yet, or it is not known.
        cause: the error of the first phase.
        warning: OUTCOME_PENDING 2124, if an owner could not settle its part yet.
    """

    def __init__(self, home: Home, parts: Sequence[Part]) -> None:
        self._home, self._store, self._parts = home, home.store, parts
        self._name = ""
        self._preparing: list[Part] = []  # asked to prepare, the answer has not come
        self._is_asked = False  # the store here may have been told to commit
        self.outcome: Decision = ""
        self.cause: InorderError | None = None
        self.warning: Reason | None = None

    def commit(self, *, moves: bool) -> None:
        """Commits, or backs out if a queue manager cannot prepare or commit.

        Raises: OutcomeUnknown and other errors of the store here, if they hide the decision; see `finish`.
        """
        try:
            self._name = self._store.begin_global(self._home.owner, [one.branch for one in self._parts])
            _reach("unit-recorded")
            for one in self._parts:
                self._prepare(one)
                _reach("part-prepared")
            self._is_asked = True
            self._store.settle(self._home.owner, "commit", moves=moves, decides=self._name)
            self.outcome = "commit"
            _reach("unit-decided")
        except InorderError as error:
            self._is_asked &= not isinstance(error, ConnectionBroken)
            self.cause = error
        self.finish()

    def _prepare(self, part: Part) -> None:
        self._preparing.append(part)
        try:
            part.store.prepare(part.owner, branch_name(self._name, part.branch))
        except InorderError as error:
            if not isinstance(error, OutcomeUnknown):
                self._preparing.remove(part)
            part.note(error)
            raise
        self._preparing.remove(part)

    def finish(self) -> None:
        """Settles all parts by the decision; without one it backs out.

        Raises: the error of the store here, if it hides the decision.
        """
        if not self.outcome:
            try:
                self.outcome = self._decision()
            except InorderError:
                if not self._is_asked:  # nobody can commit it, and the record may be gone: see `recover`
                    for one in self._parts:
                        self._settle(one, "back_out")
                raise
        outcome: Outcome = "commit" if self.outcome == "commit" else "back_out"
        done = [one for one in self._parts if self._settle(one, outcome)]
        if len(done) < len(self._parts):
            self.warning = Reason.OUTCOME_PENDING
        if self._name and done:
            try:
                self._store.end_global(self._name, [one.branch.connection for one in done])
            except InorderError as error:  # the next program that reaches the owners does this
                log.warning("the record of unit of work %s could not be removed: %s", self._name, error)
            _reach("unit-ended")
        self._name = ""

    def _decision(self) -> Decision:
        """Returns the decision, which is to back out if there was none. Raises: see `finish`."""
        units = [] if self.cause is not None and not self._name else self._store.units()
        if not self._name:  # the caller may have been interrupted before it got the name
            mine = [one for one in units if one.kind == "global" and one.connection == self._home.owner]
            self._name = next((one.name for one in mine if not one.outcome), "")
        if not self._name:
            self._store.settle(self._home.owner, "back_out")
            return "back_out"
        found = [one for one in units if (one.kind, one.name) == ("global", self._name)]
        if not found:  # another program has carried it out
            raise self.cause or OutcomeUnknown("the outcome of the unit of work is not known")
        if not found[0].outcome:
            self._store.settle(self._home.owner, "back_out", decides=self._name)
        return found[0].outcome or "back_out"

    def _settle(self, part: Part, outcome: Outcome) -> bool:
        """Settles a part; returns whether its owner has."""
        for is_last in (False, True):
            try:
                if outcome == "back_out" and part.store.has_unit(part.owner):
                    part.store.settle(part.owner, "back_out")
                if self._name:
                    part.store.settle_prepared(branch_name(self._name, part.branch), outcome)
                    _reach("part-settled")
                return True
            except UnitNotFound:
                if part not in self._preparing or part.is_local:
                    return True
                break
            except InorderError as error:
                if is_last or not isinstance(error, OutcomeUnknown | ConnectionBroken):
                    part.note(error)
                    log.warning("a part of unit of work %s is not settled yet: %s", self._name, error)
                    break
        if not self._name:  # it was not prepared, so it ends with its connection
            return True
        part.settle_soon()
        return False

    def error(self) -> InorderError:
        """The error of a commit that has backed out."""
        cause = self.cause
        assert cause is not None
        about = {name: cause.data[name] for name in ("owner", "connection") if name in cause.data}
        text = f"the unit of work was backed out at all queue managers, because one could not commit it: {cause}"
        error = QueueCondition(text, reason=Reason.BACKED_OUT, **about)
        error.__cause__ = cause
        return error


def branch_name(unit: str, branch: Branch) -> str:
    """The name under which an owner prepares its part of a global unit."""
    return f"{unit}/{branch.connection}"


def recover(home: Home, part: Part) -> bool:
    """Inside a call on `home`: settles decided units at an owner. Returns whether nothing is left for this user.

    Raises: errors of either store.
    """
    mine, is_done = part.branch, True
    for unit in home.store.units():
        branches = [one for one in unit.branches if one[:2] == mine[:2]]
        if unit.kind != "global" or not branches or not unit.outcome:
            continue
        try:
            part.store.settle_prepared(branch_name(unit.name, mine), unit.outcome)
        except UnitNotFound:
            if branches[0].user not in ("", mine.user):  # another user's, who may see the part there
                continue
            if not part.is_local and _is_in_flight(home, unit):
                is_done = False
                continue
        home.store.end_global(unit.name, [mine.connection])
    return is_done


def _is_in_flight(home: Home, unit: Unit) -> bool:
    age = home.services.now() - unit.started_at if unit.age is None else unit.age
    return unit.outcome == "back_out" and age < IN_FLIGHT_SECONDS
