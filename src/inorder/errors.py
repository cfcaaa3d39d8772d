"""The tree of errors: the caller's mistakes, conditions of the queue, and trouble with the store.

::

    InorderError
    ├── CallerError              the caller's mistake: the same call fails again
    │   ├── ArgumentError            a bad value (also a ValueError)
    │   ├── OptionsError             options that exclude each other
    │   ├── MatchError               a match that does not fit the call
    │   ├── InconsistentCall         a piece that does not continue its group or browse
    │   ├── HandleError              a closed or foreign handle
    │   ├── NotOpenFor               a handle that was not opened for this
    │   ├── UnknownObject            no channel or process of that name
    │   │   └── UnknownQueue             no queue of that name
    │   ├── WrongQueueType           a queue of the wrong type for the call
    │   │   └── SynchronousQueue         a synchronous remote queue, which this call cannot use
    │   ├── UnitExists               a unit's name is taken
    │   ├── UnitNotFound             no unit of that name
    │   ├── ConnectionClosed         a closed connection
    │   ├── CallInProgress           two threads in one connection at once
    │   ├── UnitOfAnother            a put or get into the unit of work of another thread or task
    │   ├── PropertyNotAvailable     the message has no property of this name (also a KeyError)
    │   └── ForkedConnection         a connection inherited across a fork
    ├── QueueCondition           the call was right, but not in this state: it may succeed later
    │   ├── NoMessageAvailable       no message matches, or none came in time
    │   ├── WaitEnded                another thread has ended the wait
    │   ├── OrderPending             a message matches but is withheld to keep order
    │   ├── OrderUnsupported         the queue keeps no order
    │   ├── OrderSelfBlocked         the reader would wait for itself
    │   ├── OrderDeadlock            readers would wait for each other
    │   ├── NoMessageUnderCursor     the browse cursor is on no message
    │   ├── GetInhibited             getting is switched off
    │   ├── PutInhibited             putting is switched off
    │   ├── QueueFull                the depth limit is reached
    │   ├── MessageTooBig            the length limit is passed
    │   ├── UnitTooLarge             the limit of uncommitted messages is reached
    │   ├── UnitNotAvailable         splitting or joining needs a unit of work
    │   ├── ObjectInUse              another handle or unit conflicts with the call
    │   ├── QueueNotEmpty            a queue with messages cannot be deleted
    │   ├── QueueDeleted             the queue was deleted after the handle was opened
    │   ├── ObjectExists             the name is taken
    │   ├── TooManyHandles           the limit of open handles is reached
    │   ├── QueueManagerStopping     the queue manager takes no more calls
    │   ├── ConnectionBroken         the connection was lost
    │   ├── OutcomeUnknown           the connection was lost before the answer
    │   ├── DuplicateMessage         the unique id is on the queue already
    │   ├── DuplicatePending         another unit of work has put under the same key
    │   ├── NotFound                 no message of that unique id
    │   ├── LockMismatch             locked under another lock id
    │   ├── ConfirmIdMismatch        held under another confirm id
    │   ├── WrongState               the message or unit is in another state
    │   ├── Fenced                   a newer owner has taken over
    │   ├── CheckpointTooOld         a checkpoint older than claims that have ended
    │   ├── CheckpointLost           a checkpoint that does not fit the claims
    │   ├── StagingGone              the staged rows are gone
    │   ├── Undeliverable            a message can neither be delivered nor become a dead letter
    │   ├── SequenceError            the two sides of a channel disagree about the next batch
    │   ├── LeaseOver                the lease was committed, backed out or has expired
    │   ├── NotAuthorized            the user may not do this
    │   │   └── LogInRefused             the password, token or certificate was not accepted
    │   ├── TooManyLogIns            too many failed log-ins: wait before the next one
    │   └── ChannelStopped           a channel that an operator has stopped
    └── StoreError               trouble with the store
        ├── StoreFull                the disk is full
        ├── StoreDamaged             the store is inconsistent
        ├── StoreForeign             the file is not an inorder store
        ├── StoreNewer               a newer release wrote the store
        └── StoreOlder               an older release wrote the store

Errors in the content of files that are read or written have their own branch, `inorder.formats.FormatError`. A broken
invariant of inorder itself raises ``AssertionError``, through ``assert``.

Every error carries its reason code, and its data as attributes. A warning never raises; it is on the result. The class
says whose fault the error is and how to react. The reason says exactly what happened; one class may have several.
"""

from __future__ import annotations

import copyreg
import difflib
import reprlib
from bisect import bisect
from collections.abc import Iterable
from typing import Any, Final

from .reasons import REASON_TEXT, Completion, Reason

__all__ = [
    "REASON_TEXT", "ArgumentError", "CallInProgress", "CallerError", "ChannelStopped", "CheckpointLost",
    "CheckpointTooOld", "Completion", "ConfirmIdMismatch", "ConnectionBroken", "ConnectionClosed", "DuplicateMessage",
    "DuplicatePending", "Fenced", "ForkedConnection", "GetInhibited", "HandleError", "InconsistentCall", "InorderError",
    "LeaseOver", "LockMismatch", "LogInRefused", "MatchError", "MessageTooBig", "NoMessageAvailable",
    "NoMessageUnderCursor", "NotAuthorized", "NotFound", "NotOpenFor", "ObjectExists", "ObjectInUse", "OptionsError",
    "OrderDeadlock", "OrderPending", "OrderSelfBlocked", "OrderUnsupported", "OutcomeUnknown", "PropertyNotAvailable",
    "PutInhibited", "QueueCondition", "QueueDeleted", "QueueFull", "QueueManagerStopping", "QueueNotEmpty", "Reason",
    "SequenceError", "StagingGone", "StoreDamaged", "StoreError", "StoreForeign", "StoreFull", "StoreNewer",
    "StoreOlder", "SynchronousQueue", "TooManyHandles", "TooManyLogIns", "Undeliverable", "UnitExists",
    "UnitNotAvailable", "UnitNotFound", "UnitOfAnother", "UnitTooLarge", "UnknownObject", "UnknownQueue", "WaitEnded",
    "WrongQueueType", "WrongState",
]  # fmt: skip

SHOWN_CHARACTERS_MAX: Final = 60
TEXT_CHARACTERS_MAX: Final = 4_000
COMPARED_NAMES_MAX: Final = 400


def bounded(text: str) -> str:
    """The text of an error, at most 4,000 characters: the middle is left out, as the remedy often stands at the end.

    Control characters except line feeds are escaped as in Python, because a terminal or a log would obey them.
    """
    kept = TEXT_CHARACTERS_MAX // 2 - 10
    short = text if len(text) <= TEXT_CHARACTERS_MAX else f"{text[:kept]} [...] {text[-kept:]}"
    visible = "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in short)
    return short if visible == short else bounded(visible)


class InorderError(Exception):
    """The root of every error that this package raises on purpose.

    Args:
        text: what happened, without the reason; `bounded`.
        reason: the reason code, if it differs from that of the class.
        data: values for the caller, which can be read as attributes. A `remedy` for Python programs also ends the text.
    """

    reason: Reason = Reason.UNEXPECTED_ERROR
    completion: Completion = Completion.FAILED
    data: dict[str, object]

    def __init__(self, text: str, *, reason: Reason | None = None, **data: object) -> None:
        # An item with the name of an existing attribute could never be read.
        assert not any(hasattr(InorderError, name) or name == "data" for name in data), data
        super().__init__(bounded(f"{text}; {data['remedy']}" if "remedy" in data else text))
        self.data = data
        if reason is not None:
            self.reason = reason

    @property
    def reason_name(self) -> str:
        """The name of the reason, as MQ writes it without ``MQRC_``."""
        return self.reason.name

    def __getattr__(self, name: str) -> Any:
        # Called only for names that are not ordinary attributes. A copy under construction has no data yet.
        try:
            return self.__dict__["data"][name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}") from None

    def __str__(self) -> str:
        return f"{self.args[0]} [{self.reason.value} {self.reason_name}]"

    def __reduce__(self) -> tuple[Any, ...]:
        # The default would call the class with only the text, which a subclass may not accept.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__.copy()  # type: ignore[attr-defined]


class CallerError(InorderError):
    """The caller's mistake: the same call would fail again."""

    reason = Reason.ARGUMENT_ERROR


class QueueCondition(InorderError):
    """The call was right, but the state of the queue does not allow it. The subclasses name the state."""

    reason = Reason.UNEXPECTED_ERROR


class StoreError(InorderError):
    """Trouble with the store, or with the disk or server that holds it."""

    reason = Reason.RESOURCE_PROBLEM


# ---- the caller's mistakes


class ArgumentError(CallerError, ValueError):
    """An argument has a value that is not allowed; data: argument, value, allowed."""

    reason = Reason.ARGUMENT_ERROR


class OptionsError(CallerError):
    """An option is unknown or excluded by another one."""

    reason = Reason.OPTIONS_ERROR


class MatchError(CallerError):
    """The match is not valid or does not fit the call."""

    reason = Reason.MATCH_OPTIONS_ERROR


class InconsistentCall(CallerError):
    """A call does not continue its group, message or browse (2241, 2242, 2185, 2245, 2259)."""

    reason = Reason.INCOMPLETE_GROUP


class HandleError(CallerError):
    """The handle is closed or belongs to another connection."""

    reason = Reason.HOBJ_ERROR


class NotOpenFor(CallerError):
    """The handle was not opened for this call (2036 to 2040)."""

    reason = Reason.NOT_OPEN_FOR_INPUT


class UnknownObject(CallerError):
    """There is no object of this name; data of a channel or process: kind, object, nearest (most similar names)."""

    reason = Reason.UNKNOWN_OBJECT_NAME


class UnknownQueue(UnknownObject):
    """There is no queue of this name; data: queue, nearest (the most similar names)."""

    reason = Reason.UNKNOWN_OBJECT_NAME


class WrongQueueType(CallerError):
    """This call needs a queue of another type, or the name leads nowhere; data: queue.

    2001, 2043, 2045, 2057, 2082; of a remote name 2087, 2091, 2092, 2184, 2196, 2197, 2198, 2199.
    """

    reason = Reason.OBJECT_TYPE_ERROR


class SynchronousQueue(WrongQueueType):
    """A synchronous remote queue, whose owner must be asked; data: queue, remote_queue, remote_manager, connection."""

    reason = Reason.OPTION_NOT_VALID_FOR_TYPE


class UnitExists(CallerError):
    """An unsettled unit of work has this name already."""

    reason = Reason.UNIT_EXISTS


class UnitNotFound(CallerError):
    """No unsettled unit of work has this name."""

    reason = Reason.UNIT_NOT_FOUND


class ConnectionClosed(CallerError):
    """The connection has been closed."""

    reason = Reason.HCONN_ERROR


class CallInProgress(CallerError):
    """Another thread is inside a call on the same connection."""

    reason = Reason.CALL_IN_PROGRESS


class UnitOfAnother(CallerError):
    """The connection's unit of work belongs to another thread or asyncio task; data: thread, task (their names)."""

    reason = Reason.UNIT_OF_ANOTHER


class PropertyNotAvailable(CallerError, KeyError):
    """The message has no property of this name; data: property, nearest (the most similar names)."""

    reason = Reason.PROPERTY_NOT_AVAILABLE


class ForkedConnection(CallerError):
    """The connection was opened before the process forked; data: path (of the store)."""

    reason = Reason.FORKED


# ---- conditions of the queue


class NoMessageAvailable(QueueCondition):
    """No message matches the request, or none came before the wait ended."""

    reason = Reason.NO_MSG_AVAILABLE


class WaitEnded(QueueCondition):
    """The program has ended the wait with `end_waits`, from another thread."""

    reason = Reason.WAIT_ENDED


class OrderPending(QueueCondition):
    """A message matches, but an earlier one is pending; data: kind, by, age (seconds), place, queue."""

    reason = Reason.ORDER_PENDING


class OrderUnsupported(QueueCondition):
    """Strict order was requested on a queue that keeps no order."""

    reason = Reason.ORDER_UNSUPPORTED


class OrderSelfBlocked(QueueCondition):
    """Strict order would make the reader wait for its own open work."""

    reason = Reason.ORDER_SELF_BLOCKED


class OrderDeadlock(QueueCondition):
    """Strict order would make readers wait for each other in a circle."""

    reason = Reason.ORDER_DEADLOCK


class NoMessageUnderCursor(QueueCondition):
    """The browse cursor is on no message, or its message is gone."""

    reason = Reason.NO_MSG_UNDER_CURSOR


class GetInhibited(QueueCondition):
    """Getting and browsing are switched off for the queue."""

    reason = Reason.GET_INHIBITED


class PutInhibited(QueueCondition):
    """Putting is switched off for the queue."""

    reason = Reason.PUT_INHIBITED


class QueueFull(QueueCondition):
    """The queue has reached its depth limit."""

    reason = Reason.Q_FULL


class MessageTooBig(QueueCondition):
    """The message is longer than the queue (2030) or the queue manager (2031) allows."""

    reason = Reason.MSG_TOO_BIG_FOR_Q


class UnitTooLarge(QueueCondition):
    """The unit of work has reached its limit of uncommitted messages."""

    reason = Reason.SYNCPOINT_LIMIT_REACHED


class UnitNotAvailable(QueueCondition):
    """The call needs a unit of work, but none is allowed here or too many leases are open."""

    reason = Reason.UOW_NOT_AVAILABLE


class ObjectInUse(QueueCondition):
    """Another handle or unit of work is using the queue in a way that conflicts with this call."""

    reason = Reason.OBJECT_IN_USE


class QueueNotEmpty(QueueCondition):
    """The queue cannot be deleted while it holds messages or uncommitted work."""

    reason = Reason.Q_NOT_EMPTY


class QueueDeleted(QueueCondition):
    """The queue was deleted after the handle opened it."""

    reason = Reason.Q_DELETED


class ObjectExists(QueueCondition):
    """An object of this name exists already; data: queue, differs (each attribute's present and requested value)."""

    reason = Reason.OBJECT_ALREADY_EXISTS


class TooManyHandles(QueueCondition):
    """The connection has reached its limit of open handles."""

    reason = Reason.HANDLE_NOT_AVAILABLE


class QueueManagerStopping(QueueCondition):
    """The queue manager stops and takes no more calls."""

    reason = Reason.Q_MGR_STOPPING


class ConnectionBroken(QueueCondition):
    """The connection was lost, and its open work was backed out."""

    reason = Reason.CONNECTION_BROKEN


class OutcomeUnknown(QueueCondition):
    """The connection was lost before the answer, so the call may or may not have happened; data: uids (of its puts)."""

    reason = Reason.CALL_INTERRUPTED


class DuplicateMessage(QueueCondition):
    """The queue already holds a message with this unique id."""

    reason = Reason.DUPLICATE_MESSAGE


class DuplicatePending(QueueCondition):
    """An unsettled unit of work has put under this key; data: queue, key, by, age (seconds)."""

    reason = Reason.DUPLICATE_PENDING


class NotFound(QueueCondition):
    """No message that the call can see has this unique id."""

    reason = Reason.NOT_FOUND


class LockMismatch(QueueCondition):
    """The message is locked under another lock id."""

    reason = Reason.LOCK_MISMATCH


class ConfirmIdMismatch(QueueCondition):
    """The message is held under another confirm id and waits to be confirmed."""

    reason = Reason.CONFIRM_ID_MISMATCH


class WrongState(QueueCondition):
    """The call is not allowed in the present state of the message or unit of work."""

    reason = Reason.WRONG_STATE


class Fenced(QueueCondition):
    """A newer owner has taken over this work."""

    reason = Reason.FENCED


class CheckpointTooOld(QueueCondition):
    """A reader's checkpoint is older than claims that have ended: it would resume from messages that are gone."""

    reason = Reason.CHECKPOINT_TOO_OLD


class CheckpointLost(QueueCondition):
    """A reader's checkpoint lacks the open claim or ended claims, or names a claim that never existed."""

    reason = Reason.CHECKPOINT_LOST


class StagingGone(QueueCondition):
    """The rows staged under a name are gone, or some are missing; data: staging."""

    reason = Reason.STAGING_GONE


class Undeliverable(QueueCondition):
    """A message can neither be delivered nor become a dead letter; data: queue (its destination)."""

    reason = Reason.UNDELIVERABLE


class SequenceError(QueueCondition):
    """The two sides of a channel disagree about the next batch; data: channel, number, expected."""

    reason = Reason.SEQUENCE_ERROR


class LeaseOver(QueueCondition):
    """The lease has ended: it was committed, backed out or has expired; data: lease (its name)."""

    reason = Reason.LEASE_OVER


class NotAuthorized(QueueCondition):
    """The user may not do this; data: user, authority, queue (empty if it concerns the queue manager)."""

    reason = Reason.NOT_AUTHORIZED


class LogInRefused(NotAuthorized):
    """The name, password, token or certificate was not accepted. The error does not say which part was wrong."""

    reason = Reason.NOT_AUTHORIZED


class TooManyLogIns(QueueCondition):
    """Too many log-ins have failed for this user or from this address; data: seconds (until the next is allowed)."""

    reason = Reason.TOO_MANY_LOG_INS


class ChannelStopped(QueueCondition):
    """An operator has stopped the channel. It runs again after a start; data: channel."""

    reason = Reason.CHANNEL_STOPPED


# ---- trouble with the store


class StoreFull(StoreError):
    """The disk that holds the store is full."""

    reason = Reason.STORAGE_MEDIUM_FULL


class StoreDamaged(StoreError):
    """The store is inconsistent or cannot be read."""

    reason = Reason.STORE_DAMAGED


class StoreForeign(StoreError):
    """The file is not an inorder store. It was not changed."""

    reason = Reason.STORE_FOREIGN


class StoreNewer(StoreError):
    """The store was written by a newer release, which this one cannot read."""

    reason = Reason.STORE_NEWER


class StoreOlder(StoreError):
    """The store was written by an older release; data: path, version, upgradable (whether `inorder.upgrade` helps)."""

    reason = Reason.STORE_OLDER


# ---- helpers for raising errors

IN_MEMORY: Final = ":memory:"  # the path of a store in memory


def forked(path: str) -> ForkedConnection:
    """The error for a call in a forked child that uses its parent's connection to the store at this path."""
    remedy = (
        "a queue manager in memory belongs to the process that created it: use a store in a file to share it"
        if path == IN_MEMORY
        else f"connect in the child with inorder.connect({path!r})"
    )
    return ForkedConnection(f"the parent opened this connection before the process forked; {remedy}", path=path)


def bad_argument(name: str, value: object, allowed: str, reason: Reason = Reason.ARGUMENT_ERROR) -> ArgumentError:
    """The error for an argument with a value that is not allowed.

    Args:
        name: the argument's name.
        value: the given value; shortened in the text, complete in the data.
        allowed: the allowed values, in words that follow "must be".
        reason: MQ's reason, if it has one.
    """
    text = f"{name} must be {allowed}, not {written(value)}"
    return ArgumentError(text, reason=reason, argument=name, value=value, allowed=allowed)


def nearest_names(name: str, known: Iterable[str]) -> list[str]:
    """At most three known names that are most similar to the given one, best first, ignoring case. Among many names,
    it compares only the next ones in the alphabet: 5,000 comparisons take up to .9 seconds.
    """
    by_folded = {each.casefold(): each for each in known}
    folded, among = name[:SHOWN_CHARACTERS_MAX].casefold(), sorted(by_folded)
    first = max(0, min(bisect(among, folded) - COMPARED_NAMES_MAX // 2, len(among) - COMPARED_NAMES_MAX))
    near = difflib.get_close_matches(folded, among[first : first + COMPARED_NAMES_MAX], n=3)
    return [by_folded[each] for each in near]


def written(value: object) -> str:
    """A value in the form that error texts show: written out if possible, and shortened."""
    text = _whole(value)
    return text if len(text) <= SHOWN_CHARACTERS_MAX else f"{text[: SHOWN_CHARACTERS_MAX - 3]}..."


def _whole(value: object) -> str:
    if isinstance(value, (str, bytes, bytearray)):
        return repr(value[: SHOWN_CHARACTERS_MAX + 1])  # a body of many megabytes is cut first
    try:
        return reprlib.repr(value)
    except ValueError:  # Python refuses to write out an integer of many thousand digits
        return f"a value of type {type(value).__name__}"
