"""The calls of a connection that name a queue, and the default handles that they use."""

from __future__ import annotations

import contextlib
import functools
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Set
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from ..errors import (
    QueueCondition,
    Reason,
    SynchronousQueue,
    TooManyHandles,
    UnknownQueue,
    WrongQueueType,
)
from ..model.attribute import check_queue_name
from ..model.message import Got, Message, UniqueId
from ..model.options import EVERYTHING, BrowseKeywords, GetKeywords, GetOptions, Match, OpenOptions, PutOptions
from ..rules.ordering import ReadOrder
from ..rules.puts import PutResult
from ..stores.seam.protocol import Store
from ..stores.seam.records import Locked
from . import groups
from .browsing import Browsing
from .keywords import Data, PutCall, sweep_options
from .namespace import Namespace
from .owners import Lead, QueueElsewhere, connected, lead_of, led
from .queue import Queue
from .session import Session

if TYPE_CHECKING:
    from typing_extensions import Unpack

F = TypeVar("F", bound=Callable[..., Any])
FOR_OUTPUT = OpenOptions(output=True)
FOR_BROWSE = OpenOptions(browse=True)


class Elsewhere(NamedTuple):
    """The name of a queue and of its queue manager; a tuple that a caller gives as a name is refused."""

    queue: str
    manager: str


Name = str | Elsewhere
HERE = ""  # the default, recognized by `is`: a caller's value may not support comparison


def by_name(call: F) -> F:
    """Decorates a call on the default handle of the queue in its first argument: repeats it where that can help.

    At the limit of handles it closes another default handle first. If the queue was deleted, or the definition of a
    synchronous remote queue leads elsewhere now, it reopens the handle once. If the name leads to a synchronous remote
    queue, the call is made with a handle at the owner.
    """

    @functools.wraps(call)
    def attempts(one: CallsByName | Namespace, /, *given: Any, **named: Any) -> Any:
        is_new = False
        while True:
            try:
                return call(one, *given, **named)
            except TooManyHandles:
                if not _connection(one)._make_room(*_queue(given, named)):
                    raise
            except QueueCondition as error:
                if error.reason not in (Reason.Q_DELETED, Reason.OBJECT_CHANGED):
                    raise
                if is_new or not _connection(one)._renew(*_queue(given, named)):
                    raise
                is_new = True
            except SynchronousQueue as there:  # its open failed, so nothing has been done
                if not _connection(one)._lead(there, *_queue(given, named)):
                    raise

    return cast(F, attempts)


def _connection(one: CallsByName | Namespace) -> CallsByName:
    return one._manager if isinstance(one, Namespace) else one


def _queue(given: tuple[Any, ...], named: dict[str, Any]) -> tuple[str, str]:
    """The queue and the queue manager in the arguments of a call."""
    return given[0] if given else named["queue"], named.get("manager", HERE)


class CallsByName:
    """The calls of a connection that name a queue; each queue has a default handle."""

    _session: Session
    _store: Store
    _queues: OrderedDict[Name, Queue]  # the most recently used is last

    def close_queue(self, name: str, *, manager: str = "") -> Reason | None:
        """Closes the default handle of a queue; returns the warning of `Queue.close`, or None if it was not open."""
        return self._close_default(name_of(name, manager)) if isinstance(name, str) else None

    def _close_default(self, name: Name) -> Reason | None:
        queue = self._queues.get(name)
        if queue is None:
            return None
        warning = None if queue.closed else queue.close()
        self._queues.pop(name, None)
        return warning

    def _close_idle(self, handles: Set[int]) -> bool:
        """Closes these handles if all are idle default handles; returns whether it did."""
        ours = [(name, queue) for name, queue in self._queues.items() if queue.internals.session is self._session]
        idle = {queue.internals.number: name for name, queue in ours if queue.internals.is_idle}
        if not handles <= idle.keys():
            return False
        for number in handles:
            self._close_default(idle[number])
        return True

    def _default(self, name: Name) -> Queue:
        """Returns the default handle of a queue, which the first call that needs it opens."""
        queue = self._queues.get(name) if isinstance(name, str | Elsewhere) else None
        if queue is None or queue.closed:
            self._check_no_model(name)
            if queue is not None:  # its close was interrupted
                self._queues.pop(name, None)
            return self._queues.setdefault(name, self._made(name, FOR_BROWSE, grows=True, lazy=True))
        self._queues.move_to_end(name)
        queue.was_used = True
        return queue

    def _open(self, name: Name, options: OpenOptions, **how: Any) -> Queue:
        is_name = isinstance(name, str | Elsewhere) and "manager" not in how
        while True:
            try:
                try:
                    with self._session:
                        if not is_name or (lead := led(self._session, name)) is None:
                            return self._made(name, options, **how)
                except SynchronousQueue as there:
                    if self._session.stays_here:
                        raise
                    with self._session:
                        lead = lead_of(self._session, there)
                    if is_name:
                        self._session.leads[name] = lead
                return self._made_elsewhere(lead, name, options, **how)
            except TooManyHandles:
                if not self._make_room():
                    raise

    def _made_elsewhere(self, lead: Lead, name: Name, options: OpenOptions, **how: Any) -> QueueElsewhere:
        """Opens a queue at its owner, to which an open of its name here has led."""
        with self._session:
            owner = connected(self._session, lead.owner)
        if isinstance(name, Elsewhere):
            name, how["manager"] = name
        with owner:
            return QueueElsewhere((self._session, owner), lead, name, options, **how)

    def _lead(self, there: SynchronousQueue, queue: str, manager: str) -> bool:
        """Replaces the default handle, whose open has led to an owner, by one there; returns whether it did."""
        name = name_of(queue, manager)
        own = self._queues.get(name)
        if self._session.stays_here or "location" not in there.data:
            return False
        if own is None or own.internals.number or isinstance(own, QueueElsewhere):
            return False
        self._close_default(name)
        with self._session:
            lead = lead_of(self._session, there)
        self._queues[name] = self._made_elsewhere(lead, name, FOR_BROWSE, grows=True, lazy=True)
        return True

    def _made(self, name: Name, options: OpenOptions, **how: Any) -> Queue:
        if isinstance(name, Elsewhere):
            name, how["manager"] = name
        return Queue(self._session, name, options, **how)

    def _check_no_model(self, name: Name) -> None:
        if isinstance(name, Elsewhere):
            return
        with self._session:
            kind = self._store.queue(name).type
        if kind == "model":
            raise WrongQueueType(f"{name} is a model queue: open it to create a queue", reason=Reason.Q_TYPE_ERROR)

    def _make_room(self, queue: str = "", manager: str = HERE) -> bool:
        """At the limit of handles: closes the idle default handle used longest ago; returns whether it found one.

        Args:
            queue, manager: the queue whose default handle the call uses. If that handle is open, the call itself did
                not reach the limit: a stream or function that the caller passed did, through its calls.
        """
        own = self._queues.get(name_of(queue, manager))
        if own is not None and own.internals.number and not own.closed:
            return False
        idle = next((name for name, queue in self._queues.items() if queue.internals.is_idle), None)
        if idle is not None:
            self._close_default(idle)
        return idle is not None

    def _renew(self, queue: str, manager: str) -> bool:
        """Closes a default handle that is no longer valid; returns whether the call may be repeated on a new one.

        If the handle was inside a group, the call is not repeated: that would silently begin the group again. If the
        handle is still valid, the error came from a stream or function that the caller passed, which has read or done
        something.
        """
        name = name_of(queue, manager)
        own = self._queues.get(name)
        if own is None or own.closed or self._is_valid(own):
            return False
        was_idle = own.internals.is_idle
        self._close_default(name)
        if was_idle:
            with contextlib.suppress(UnknownQueue):
                self._default(name)
                return True
        return False

    def _is_valid(self, handle: Queue) -> bool:
        """Whether the queue of an open handle still exists, and its definition here still leads to it."""
        try:
            with handle.internals.session:
                if isinstance(handle, QueueElsewhere):
                    handle.check_lead()
                if handle.internals.number:
                    handle._store.check_handle(handle.internals.number)
                return handle.internals.number != 0
        except QueueCondition:
            return False

    # --- messages

    @by_name
    def put(
        self,
        queue: str,
        body: Data,
        options: PutOptions | None = None,
        *,
        manager: str = "",
        **keywords: Unpack[PutCall],
    ) -> PutResult:
        """Puts one message through the default handle of a queue; see `Queue.put`.

        Args:
            manager: the queue manager that has the queue, as in `open`.
            **keywords: fields of the message, see `Message`: report=0, message_type=8, expiry=None,
                feedback=0, encoding=546, coded_character_set_id=0, format="", priority=None, persistent=None,
                message_id=b"", correlation_id=b"", reply_to_queue="", reply_to_queue_manager="", user_identifier="",
                accounting_token=b"", application_identity_data="", put_application_type=0, put_application_name="",
                put_at=0.0, application_origin_data="", group_id=b"", sequence_number=1, offset=0, flags=0,
                original_length=-1, delay=0.0, transmission=None, properties={}. And options, see `PutOptions`:
                syncpoint=None, logical=False, new_message_id=False, new_correlation_id=False, context="default",
                confirm_id=0, uid=None, resend=False, deduplicate=None, deduplicate_for=3600.0.
        """
        name = queue if manager is HERE else name_of(queue, manager)
        return self._default(name).put(body, options, **keywords)

    def put_json(
        self,
        queue: str,
        value: Any,
        options: PutOptions | None = None,
        *,
        manager: str = "",
        **keywords: Unpack[PutCall],
    ) -> PutResult:
        """Puts a value as JSON; `Message.json` of a get gives it back. See `Message.of_json` and `Queue.put`."""
        return self.put(queue, Message.of_json(value), options, manager=manager, **keywords)

    def put_many(
        self,
        queue: str,
        messages: Iterable[Data],
        options: PutOptions | None = None,
        *,
        manager: str = "",
        **keywords: Unpack[PutCall],
    ) -> list[PutResult]:
        """Puts messages in order, all or none; see `put` and `Queue.put_many`."""
        again = list(messages) if isinstance(messages, Iterator) else messages  # the call may be repeated
        return self._put_many(queue, again, options, manager=manager, **keywords)

    @by_name
    def _put_many(
        self, queue: str, messages: Iterable[Data], options: PutOptions | None, *, manager: str, **keywords: Any
    ) -> list[PutResult]:
        name = queue if manager is HERE else name_of(queue, manager)
        return self._default(name).put_many(messages, options, **keywords)

    @by_name
    def get(self, queue: str, options: GetOptions | None = None, **keywords: Unpack[GetKeywords]) -> Got:
        """Removes one message and returns it; see `Queue.get`.

        Args:
            **keywords: see `GetOptions`: wait=0, syncpoint=None, syncpoint_if_persistent=False,
                logical=False, complete=False, all_segments=False, all_messages=False, match=EVERYTHING, selector=None,
                under_cursor=False, buffer=None, accept_truncated=False, read_order=None, confirm_id=0, lock_id=0.
        """
        return self._default(queue).get(options, **keywords)

    @by_name
    def get_many(
        self, queue: str, count: int, options: GetOptions | None = None, **keywords: Unpack[GetKeywords]
    ) -> list[Got]:
        """Removes up to `count` messages; see `Queue.get_many`."""
        return self._default(queue).get_many(count, options, **keywords)

    def browse(self, queue: str, *, after: str | None = None, **keywords: Unpack[BrowseKeywords]) -> Browsing:
        """Copies every suitable message, from the first or after a token; see `Queue.browse`.

        Each call opens its own handle and closes it at the end of the loop, so loops may be nested.

        Args:
            **keywords: see `GetOptions`: wait=0, logical=False, complete=False, all_segments=False,
                all_messages=False, match=EVERYTHING, selector=None, lock=False, mark_handle=False, mark_co_op=False,
                unmarked=False, unmark_handle=False, unmark_co_op=False, buffer=None, accept_truncated=False,
                read_order=None.
        """
        return Browsing(self._opened_to_browse(queue), sweep_options(None, keywords), after)

    @contextlib.contextmanager
    def _opened_to_browse(self, queue: str) -> Iterator[Queue]:
        with self._open(queue, FOR_BROWSE) as handle:
            yield handle

    @by_name
    def leave_group(self, queue: str) -> bool:
        """Leaves the group that gets through the default handle of a queue are inside; see `Queue.leave_group`."""
        return self._default(queue).leave_group()

    def group(self, queue: str, *, manager: str = "") -> groups.GroupWriter:
        """Returns a block that puts one group in logical order, through its own handle; see `GroupWriter`, `put`."""
        name = name_of(queue, manager)
        self._check_no_model(name)
        return groups.GroupWriter(self._session, self._open(name, FOR_OUTPUT))

    def get_group(
        self,
        queue: str,
        *,
        wait: float = 0,
        match: Match = EVERYTHING,
        read_order: ReadOrder | None = None,
    ) -> Generator[Got, None, None]:
        """Gets a complete group in order, or one message in no group, in one step; segments are joined.

        Args:
            wait: seconds to wait for a complete group, from 0; or `FOREVER`.
            match: selects the group by its first message.
            read_order: "strict", "relaxed" or "notify"; None: the queue's default.

        Outside a unit of work it begins one: the end of the loop commits it, leaving the loop early backs it out. Until
        then puts and gets of this connection belong to that unit. If you keep the iterator in a variable, call its
        `close()`.

        Raises: NoMessageAvailable 2033; InconsistentCall 2241, the default handle is inside a group; as `Queue.get`.
        """
        return self._take_groups(queue, groups.whole_group(wait=wait, match=match, read_order=read_order))

    def _take_groups(self, queue: str, options: GetOptions) -> Generator[Got, None, None]:
        yield from groups.get_group(self._session, self._for_groups(queue), options)

    @by_name
    def _for_groups(self, queue: str) -> Queue:
        return self._default(queue).internals.checked_for("input")

    @by_name
    def put_stream(self, queue: str, stream: IO[bytes], *, manager: str = "", **options: Any) -> PutResult:
        """Puts a binary stream as one logical message in segments, or as a group; see `client.groups.put_stream`."""
        name = name_of(queue, manager)
        return groups.put_stream(self._session, self._default(name), stream, **options)

    @by_name
    def get_stream(
        self,
        queue: str,
        stream: IO[bytes],
        *,
        wait: float = 0,
        match: Match = EVERYTHING,
        as_group: bool = False,
    ) -> Got:
        """Gets one logical message, or a group, into a binary stream; see `client.groups.get_stream`."""
        handle = self._default(queue)
        return groups.get_stream(self._session, handle, stream, wait=wait, match=match, as_group=as_group)

    # --- confirmed calls: each queue has its own confirm ids, lock ids and unique ids

    @by_name
    def confirm_put(self, queue: str, uid: UniqueId, *, confirm_id: int = 0) -> Reason | None:
        """Makes a message that was put under a confirm id visible; see `Queue.confirm_put`."""
        return self._default(queue).confirm_put(uid, confirm_id=confirm_id)

    @by_name
    def confirm_get(self, queue: str, uid: UniqueId, *, confirm_id: int = 0) -> Reason | None:
        """Removes for good a message that was got under a confirm id; see `Queue.confirm_get`."""
        return self._default(queue).confirm_get(uid, confirm_id=confirm_id)

    @by_name
    def browse_and_lock(
        self,
        queue: str,
        match: Match = EVERYTHING,
        *,
        confirm_id: int = 0,
        most: int | None = None,
        lease: float | None = None,
    ) -> Locked:
        """Copies and locks messages that match, under one new lock id; see `Queue.browse_and_lock`."""
        return self._default(queue).browse_and_lock(match, confirm_id=confirm_id, most=most, lease=lease)

    @by_name
    def unlock(self, queue: str, uid: UniqueId, *, lock_id: int) -> None:
        """Unlocks one message that `browse_and_lock` locked. Raises: NotFound, WrongState, LockMismatch."""
        self._default(queue).unlock(uid, lock_id=lock_id)

    @by_name
    def delete(self, queue: str, uid: UniqueId, *, lock_id: int = 0) -> None:
        """Removes one message that is unlocked or locked under `lock_id`; see `Queue.delete`."""
        self._default(queue).delete(uid, lock_id=lock_id)

    @by_name
    def undo(self, queue: str, confirm_id: int) -> int:
        """Takes back everything put, got or locked under a confirm id; see `Queue.undo`."""
        return self._default(queue).undo(confirm_id)


def name_of(queue: str, manager: str) -> Name:
    """Returns the name of a queue, with its queue manager if one is named. Raises: ArgumentError 2058, a bad name."""
    if isinstance(manager, str) and manager == HERE:
        return queue
    manager = check_queue_name(manager, argument="manager", reason=Reason.Q_MGR_NAME_ERROR)
    return Elsewhere(queue, manager) if isinstance(queue, str) else queue  # the open then refuses it
