"""Synchronous remote queues: the connections to their owners, and the handles whose calls are made there (K-2).

An open of such a queue raises `SynchronousQueue`, which says where it is. `CallsByName` then opens it as a
`QueueElsewhere`, through an `OwnerSession`: a connection to the owner's store that belongs to the connection here, is
made when it is first needed, and ends with it. Nothing about the messages is stored here.

A unit of work that is at one place, here or at one owner, commits there in one phase; else see `two_phases`.
"""

from __future__ import annotations

import contextlib
import logging
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ..errors import (
    ConnectionBroken,
    ConnectionClosed,
    GetInhibited,
    InorderError,
    NotAuthorized,
    PutInhibited,
    QueueCondition,
    Reason,
    StoreError,
    SynchronousQueue,
    UnknownQueue,
    WrongQueueType,
)
from ..model.attributes import QueueAttributes, QueueStatus
from ..model.message import Message
from ..model.options import EVERYTHING, GetOptions, Match, OpenOptions, PutOptions
from ..model.selecting import NO_CHANGES, Selector, in_our_words
from ..rules.naming import Names
from ..rules.puts import Program, PutResult
from ..stores.open import locate
from ..stores.seam.definitions import CONNECTION, read_connection
from ..stores.seam.records import Opened, Outcome
from ..stores.seam.tables import Branch
from .browsing import PAGE_SECONDS
from .confirming import USES, Locked, Use
from .queue import NO_USES, Queue
from .services import Services, connect_at
from .session import NOT_OPEN, Session

log = logging.getLogger("inorder.unit_of_work")

NO_UNIT: Final = -1
OUTPUT: Final[frozenset[Use]] = frozenset({"output"})
LEADS: Final = ("type", "base_queue", "remote_queue", "remote_manager", "mode", "connection")
"""The attributes of a definition that say where it leads."""


class Owner(NamedTuple):
    """The queue manager that has a queue, as a definition here names it.

    Args:
        manager: its name.
        connection: the name of the connection to it.
        location: the path or URL of its store.
        user: the user as which the owner's server must know this program; empty: any.
    """

    manager: str
    connection: str
    location: str
    user: str


class Lead(NamedTuple):
    """Where the open of a name has led.

    Args:
        owner, queue: the queue, and its owner.
        over: the definitions on the way, the first one first; none: the queue was discovered.
        commits: the number of commits in the store here when the definitions were read (`Host.commits`).
    """

    owner: Owner
    queue: str
    over: tuple[QueueAttributes, ...]
    commits: int | None = None


def lead_of(home: Session, there: SynchronousQueue) -> Lead:
    """Inside a call on `home`: returns the lead of an open that has raised this error."""
    owner = Owner(there.remote_manager, there.connection, there.location, there.user)
    return Lead(owner, there.remote_queue, tuple(map(home.store.queue, there.over)))


def led(home: Session, name: object) -> Lead | None:
    """Inside a call on `home`: returns the lead of a name's last open, unless something has changed since.

    Reading two definitions is faster than a failing open; if nothing was committed here, none need be read.
    """
    known = home.leads.get(name)
    is_asked = home.services.store.changes.are_elsewhere  # a server checks whether its user may open it
    if not isinstance(known, Lead) or not known.over or is_asked:  # a discovery is not noted
        return None
    owner, commits = known.owner, home.services.store.commits()
    if commits is not None and commits == known.commits:
        return known
    with contextlib.suppress(InorderError):
        connection = read_connection(home.store.object(CONNECTION, owner.connection).attributes)
        is_there = (connection.location, connection.user) == (owner.location, owner.user)
        if is_there and all(home.store.queue(one.name) == one for one in known.over):
            home.leads[name] = known = known._replace(commits=commits)
            return known
    del home.leads[name]
    return None


def reach(location: str, program: Program, connect: Callable[[Services], OwnerSession]) -> OwnerSession:
    """Connects to the store of an owner, which must exist. Raises: StoreError and its subclasses; NotAuthorized."""
    where = locate(location, named_by_program=False)
    if not where.is_there(program.name):
        raise StoreError(f"there is no store at {where}", path=str(where))
    return connect_at(where.resolved, lambda: where.open(where.default_name, program.name), connect)


def check_user(connection: str, location: str, wanted: str, known: str | None) -> None:
    """Raises: NotAuthorized 2035, the server there knows this program as another user than the connection names."""
    if wanted and known != wanted:
        raise NotAuthorized(
            f"connection {connection} is for user {wanted}, but {location} knows this side as {known}: put the "
            f"credentials of {wanted} into the credentials file (inorder login)",
            user=known,
        )


class OwnerSession(Session):
    """The connection to an owner, used by one connection here.

    A call on it is a call on that connection too, so the rules on threads are the same.

    Attributes:
        of: the owner.
        is_lost: it is broken for good; the next open makes another.
        units: how many units of work have ended there.
        opened: the queues that were opened there.
    """

    def __init__(self, services: Services, program: Program, home: Session, of: Owner) -> None:
        super().__init__(services, program)
        self.of, self._home, self.place = of, weakref.ref(home), f"at queue manager {of.manager}"
        self.units, self.opened = 0, set[str]()
        self.is_local = locate(of.location, named_by_program=False).path is not None
        self._of_here: InorderError | None = None
        self._owes = False  # it may have parts of units that are decided
        home.services.leads_to.add(services)

    @property
    def is_alive(self) -> bool:
        """Whether the connection here must end it."""
        return not self.closed

    def cancel(self) -> None:
        """Ends it with the connection here."""
        self.end()

    @property
    def home(self) -> Session:
        """The connection here."""
        found = self._home()
        if found is None:  # its handles hold it
            raise ConnectionClosed("the connection is closed")
        return found

    def __enter__(self) -> None:
        home = self.home
        home.__enter__()
        try:
            if self.is_lost:
                text = f"the connection to queue manager {self.of.manager} was lost: open the queue again"
                raise ConnectionBroken(text, owner=self.of.manager, connection=self.of.connection)
            if self._owes:
                self._owes = not _recovered(home, self)
            super().__enter__()
        except BaseException:
            home.__exit__(None, None, None)
            raise
        self.block = home.block

    def __exit__(self, *raised: object) -> None:
        of_here, self._of_here = self._of_here, None  # it refers to this session
        super().__exit__(*raised)
        try:
            if isinstance(raised[1], InorderError) and raised[1] is not of_here:
                self.note(raised[1])
        finally:
            self.home.__exit__(*raised)

    def here(self, error: InorderError) -> InorderError:
        """Notes, inside a call, that its error did not happen at the owner; returns the error."""
        self._of_here = error
        return error

    def note(self, error: InorderError) -> None:
        """Adds the owner to the error of a call there, and notes if the connection is lost."""
        named(error, self.of)
        if isinstance(error, ConnectionBroken):
            try:
                self.services.store.refuse_lost()
                self.store.has_unit(self.owner)  # raises if the store has ended this connection
            except ConnectionBroken:
                self.is_lost = True
                self.home.leave_owner(self)

    @property
    def branch(self) -> Branch:
        """The part of a global unit there."""
        return Branch(self.of.connection, self.of.manager, getattr(self.store, "user", None) or "")

    def settle_soon(self) -> None:
        """Makes the next call there settle decided units of work."""
        self._owes = True

    def join_unit(self, at: Session | None = None) -> None:
        del at
        self.home.join_unit(self)

    def _settled(self, outcome: Outcome) -> None:
        self.units += 1
        super()._settled(outcome)


def named(error: InorderError, owner: Owner) -> None:
    """Adds to an error the queue manager where it happened, and the connection to it."""
    if "owner" not in error.data:
        error.data |= {"owner": owner.manager, "connection": owner.connection}
        said = f"{error.args[0]} (at queue manager {owner.manager}, by connection {owner.connection})"
        error.args = (said, *error.args[1:])


def _check_path(home: Session, location: str) -> None:
    """Raises: StoreError, a server names a path: it is on the server's machine, and must open no file here."""
    store = home.services.store
    if store.changes.are_elsewhere and locate(location, named_by_program=False).path is not None:
        text = (
            f"{location} is a path on the machine of {store.path}: the connection there must name the URL of a server"
        )
        raise StoreError(text, path=location)


def connected(home: Session, of: Owner) -> OwnerSession:
    """Inside a call on `home`: returns its connection to an owner; makes one if there is none.

    Raises: StoreError 2059, the owner cannot be reached, and other errors of a connect; NotAuthorized 2035;
    WrongQueueType 2087, another queue manager is there.
    """
    known = home.owners.get(of)
    if isinstance(known, OwnerSession):
        return known
    try:
        _check_path(home, of.location)
        made = reach(of.location, home.program, lambda services: OwnerSession(services, home.program, home, of))
    except InorderError as error:
        named(error, of)
        if type(error) is not StoreError:  # its subclasses say more than that the owner cannot be reached
            raise
        raise StoreError(str(error.args[0]), reason=Reason.Q_MGR_NOT_AVAILABLE, **error.data) from error
    try:
        check_user(of.connection, of.location, of.user, getattr(made.store, "user", None))
        name = made.store.manager().name
        if name != of.manager:
            text = f"connection {of.connection} leads to queue manager {name}, not to {of.manager}"
            raise WrongQueueType(text, reason=Reason.UNKNOWN_REMOTE_Q_MGR, connection=of.connection, owner=name)
    except BaseException:
        made.end()
        raise
    home.add_owner(of, made)
    if not _recovered(home, made):
        made.settle_soon()
    return made


def _recover(home: Session, part: OwnerSession) -> bool:
    from .two_phases import recover  # noqa: PLC0415 - few programs need it

    return recover(home, part)


def _recovered(home: Session, part: OwnerSession) -> bool:
    """Settles decided units of work at an owner; returns whether nothing is left to do there."""
    try:
        return _recover(home, part)
    except InorderError as error:
        log.warning("units of work in doubt at queue manager %s are not settled: %s", part.of.manager, error)
        return False


def settle_in_doubt(home: Session) -> list[InorderError]:
    """Inside a call on `home`: settles decided units at every owner that can be reached. Returns the errors."""
    failures = []
    for connection, manager in sorted(
        {one[:2] for unit in home.store.units() if unit.outcome for one in unit.branches}
    ):
        try:
            found = read_connection(home.store.object(CONNECTION, connection).attributes)
            part = connected(home, Owner(manager, connection, found.location, found.user))
            try:
                _recover(home, part)
            except InorderError as error:
                part.note(error)
                raise
        except InorderError as error:
            failures.append(error)
    return failures


class QueueElsewhere(Queue):
    """An open synchronous remote queue: each call is made on the queue of the owner.

    The definitions here may inhibit a call, and supply a message's missing priority and persistence. Each call outside
    a unit of work reads them, and the first two calls inside one; a browse that continues reads them once a second.
    Nothing is read if nothing is known to have been committed here meanwhile. `_uses` stays empty, so that each call
    asks `_need` or `_need_nothing`, which do this.

    Attributes:
        over: the definitions on the way, the first one first; none: the queue was discovered.
    """

    def __init__(
        self, sessions: tuple[Session, OwnerSession], lead: Lead, name: str, options: OpenOptions, **how: Any
    ) -> None:
        self._home, self._owner = sessions
        self._there, self._here, self.over = lead.queue, name, lead.over
        self._looked_in, self._fresh_until, self._browses_on = NO_UNIT, 0.0, False
        self._commits = lead.commits
        super().__init__(self._owner, name, options, **how)

    def _opened(self, options: OpenOptions, dynamic_name: str) -> Opened:
        store, owner = self._store, self._session.owner
        try:
            if self._there not in self._owner.opened and store.queue(self._there).type == "model":
                raise WrongQueueType(f"{self._there} is a model queue", reason=Reason.Q_TYPE_ERROR, queue=self._there)
            opened = store.open(owner, self._there, options)
            self._owner.opened.add(self._there)
            return opened._replace(name=self._here)
        except SynchronousQueue as further:
            raise WrongQueueType(
                f"{self._there} is a synchronous remote queue there, too: name its owner {further.remote_manager} "
                f"in the definition of {self._here}",
                reason=Reason.OPTION_NOT_VALID_FOR_TYPE,
                queue=self._here,
            ) from further

    def _is_open_for(self, options: OpenOptions) -> None:
        self.options = options

    # --- the definitions here

    def _need(self, use: Use) -> None:
        self._alive()
        self._look_here()
        if self._handle == NOT_OPEN or not self.options.covers(USES[use][0]):
            self._ask_here(USES[use][0])
            super()._need(use)

    def _ask_here(self, options: OpenOptions) -> None:
        """If a server has the store here: asks it whether this program may open the definition for this use (P-3)."""
        if self._home.services.store.changes.are_elsewhere:
            try:
                self._home.store.open(self._home.owner, self._here, options, manager=self._manager)
            except SynchronousQueue:  # it may
                pass
            except InorderError as error:
                raise self._owner.here(error) from None

    def _need_nothing(self) -> None:
        self._look_here()
        super()._need_nothing()

    def _need_for_reading(self, options: GetOptions) -> None:
        self._browses_on = options.browse == "next"
        try:
            super()._need_for_reading(options)
        finally:
            self._browses_on = False
        self._check_gets()

    def browse_and_lock(self, match: Match = EVERYTHING, **how: Any) -> Locked:
        """Locks messages at the owner; see `Queue.browse_and_lock`."""
        with self._session:
            self._need_nothing()
            self._check_gets()
        return super().browse_and_lock(match, **how)

    def _check_gets(self) -> None:
        if not all(one.get_allowed for one in self.over):
            raise self._owner.here(GetInhibited(f"gets from {self.name} are inhibited", queue=self.name))

    def _look_here(self) -> None:
        """Reads the definitions again. Raises: QueueCondition 2041, they lead elsewhere now."""
        if self._browses_on and time.monotonic() < self._fresh_until:
            return
        in_unit = self._owner in self._home.places
        if in_unit and self._looked_in == self._owner.units:
            return
        self.check_lead()
        if in_unit:
            self._looked_in = self._owner.units
        self._fresh_until = time.monotonic() + PAGE_SECONDS

    def check_lead(self) -> None:
        """Inside a call: reads the definitions again, unless nothing was committed here. Raises: as `_look_here`."""
        commits = self._home.services.store.commits()
        if commits is not None and commits == self._commits:
            return
        for before in self.over:
            try:
                now = self._home.store.queue(before.name)
            except UnknownQueue as error:
                raise self._changed() from error
            except InorderError as error:
                raise self._owner.here(error) from None
            if now is not before and now != before:
                if any(getattr(now, one) != getattr(before, one) for one in LEADS):
                    raise self._changed()
                self.over = tuple(now if one is before else one for one in self.over)
        self._commits = commits

    def _changed(self) -> InorderError:
        changed = QueueCondition(f"{self.name} has changed: open it again", reason=Reason.OBJECT_CHANGED)
        return self._owner.here(changed)

    def attributes(self) -> QueueAttributes:
        """Returns the attributes of the definition as opened; of a discovered queue, those at its owner."""
        with self._session:
            self._need_nothing()
            return self.over[0] if self.over else self._store.queue(self._there)

    def status(self) -> QueueStatus:
        """Returns depth and open counts of the queue at its owner."""
        with self._session:
            self._need_nothing()
            return self._store.status(self._there)

    def set(self, changes: Mapping[Selector, object] = NO_CHANGES, /, **given: Any) -> None:
        """Changes attributes of the definition here; see `Queue.set`."""
        wanted = in_our_words(changes, given)
        with self._session:
            self._need_nothing()
            if not self.over:
                self._store.alter_queue(self._there, "set", wanted)
                return
            try:
                self._home.store.alter_queue(self.over[0].name, "set", wanted)
            except InorderError as error:
                raise self._owner.here(error) from None

    # --- puts

    def _put(self, messages: list[Message | bytes], options: PutOptions) -> Sequence[PutResult]:
        with self._session:
            self._need("output")
            if not all(one.put_allowed for one in self.over):
                raise self._owner.here(PutInhibited(f"puts on {self.name} are inhibited", queue=self.name))
            if self._home.services.carry is not None:
                messages = self._home.services.carry(messages)
            messages = [self._put_from_here(one) for one in messages]
        self._uses = OUTPUT  # the definitions need not be read a second time
        try:
            return super()._put(messages, options)
        finally:
            self._uses = NO_USES

    def _put_from_here(self, message: Message | bytes) -> Message | bytes:
        """Returns a message with the defaults of the definition, and this queue manager in its address for replies."""
        changed: dict[str, Any] = {}
        if self.over:
            changed = {"priority": self.over[0].default_priority, "persistent": self.over[0].default_persistence}
        if isinstance(message, bytes):
            return Message(message, **changed) if changed else message
        changed = {name: value for name, value in changed.items() if getattr(message, name) is None}
        if message.reply_to_queue and not message.reply_to_queue_manager:
            changed["reply_to_queue"], changed["reply_to_queue_manager"] = self._reply_to(message.reply_to_queue)
        return message.replace(**changed) if changed else message

    def _reply_to(self, queue: str) -> tuple[str, str]:
        store, found = self._home.store, {}
        with contextlib.suppress(UnknownQueue):
            found[queue] = store.queue(queue)
        return Names(store.manager(), found).reply_to(queue)
