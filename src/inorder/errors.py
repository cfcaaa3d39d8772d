"""The one tree of errors, split by whose fault it is.

::

    InorderError
    ├── CallerError              the caller's mistake: the same call fails again
    │   ├── ArgumentError            a bad value (also a ValueError)
    │   ├── OptionsError             options that exclude each other
    │   ├── MatchError               what to match does not fit the call
    │   ├── InconsistentCall         a piece that does not go on with its group or browse
    │   ├── HandleError              a closed or foreign handle
    │   ├── NotOpenFor               a handle that was not opened for this
    │   ├── UnknownObject            no channel or process of that name
    │   │   └── UnknownQueue             no queue of that name
    │   ├── WrongQueueType           a queue of another type than the call needs
    │   ├── UnitExists               a unit's name is taken
    │   ├── UnitNotFound             no unit of that name
    │   ├── ConnectionClosed         a closed connection
    │   ├── CallInProgress           two threads in one connection at once
    │   ├── UnitOfAnother            a put or get into the unit of work of another thread or task
    │   ├── PropertyNotAvailable     the message has no property of this name (also a KeyError)
    │   └── ForkedConnection         a connection inherited over a fork
    ├── QueueCondition           the call was right, the queue's state says no: it may succeed later
    │   ├── NoMessageAvailable       nothing fits, or nothing came in time
    │   ├── WaitEnded                another thread has ended the wait
    │   ├── OrderPending             something fits but is withheld to keep order
    │   ├── OrderUnsupported         the queue keeps no order
    │   ├── OrderSelfBlocked         the reader would wait for itself
    │   ├── OrderDeadlock            readers would wait for each other
    │   ├── NoMessageUnderCursor     the browse cursor stands on nothing
    │   ├── GetInhibited             getting is switched off
    │   ├── PutInhibited             putting is switched off
    │   ├── QueueFull                the depth limit is reached
    │   ├── MessageTooBig            the length limit is passed
    │   ├── UnitTooLarge             the limit of uncommitted messages is reached
    │   ├── UnitNotAvailable         splitting or joining needs a unit of work
    │   ├── ObjectInUse              another handle or unit rules this out
    │   ├── QueueNotEmpty            a queue with messages cannot be deleted
    │   ├── QueueDeleted             the queue went away under the handle
    │   ├── ObjectExists             the name is taken
    │   ├── TooManyHandles           the limit of open handles is reached
    │   ├── QueueManagerStopping     the queue manager takes no more calls
    │   ├── ConnectionBroken         the connection was lost
    │   ├── OutcomeUnknown           the connection was lost during the commit
    │   ├── DuplicateMessage         the unique id is on the queue already
    │   ├── DuplicatePending         another unit of work has put under the same key
    │   ├── NotFound                 no message of that unique id
    │   ├── LockMismatch             locked under another lock id
    │   ├── ConfirmIdMismatch        waiting for another confirm id
    │   ├── WrongState               the message or unit is in another state
    │   ├── Fenced                   a newer owner has taken over
    │   ├── CheckpointTooOld         a checkpoint that does not know what is over
    │   ├── CheckpointLost           a checkpoint that does not know what is open, or knows too much
    │   ├── StagingGone              what was staged is not there any more
    │   ├── Undeliverable            a message can neither go where it should nor be a dead letter
    │   ├── SequenceError            the two sides of a channel disagree on which batch is next
    │   ├── LeaseOver                the lease was committed or backed out, or its time is over
    │   ├── NotAuthorized            the user may not do this
    │   │   └── LogInRefused             the password, token or certificate is not a user's
    │   ├── TooManyLogIns            too many failed log-ins: the next one has to wait
    │   └── ChannelStopped           a channel that an operator has stopped
    └── StoreError               trouble with the store
        ├── StoreFull                the disk is full
        ├── StoreDamaged             the store contradicts itself
        ├── StoreForeign             the file is not ours
        ├── StoreNewer               the store is of a newer release
        └── StoreOlder               the store is of an older release

What files say that are read or written has a branch of its own, `inorder.formats.FormatError`.
An invariant of our own that is broken is none of these: it is an ``AssertionError``, raised by ``assert``.

Every error carries its reason code, and its data as attributes. A warning never raises: it is on the result. The class
says whose fault it is and what to do, the reason exactly what happened; so one class may come with several reasons.
"""

from __future__ import annotations

import copyreg
import difflib
import reprlib
from collections.abc import Iterable
from typing import Any, Final

from .reasons import REASON_TEXT, Completion, Reason

__all__ = [
    "REASON_TEXT", "ArgumentError", "CallInProgress", "CallerError", "ChannelStopped", "CheckpointLost",
    "CheckpointTooOld", "Completion", "ConfirmIdMismatch", "ConnectionBroken", "ConnectionClosed", "DuplicateMessage",
    "DuplicatePending", "Fenced", "ForkedConnection", "GetInhibited", "HandleError", "InconsistentCall",
    "InorderError", "LeaseOver", "LockMismatch", "LogInRefused", "MatchError", "MessageTooBig", "NoMessageAvailable",
    "NoMessageUnderCursor", "NotAuthorized", "NotFound", "NotOpenFor", "ObjectExists", "ObjectInUse", "OptionsError",
    "OrderDeadlock", "OrderPending", "OrderSelfBlocked", "OrderUnsupported", "OutcomeUnknown", "PropertyNotAvailable",
    "PutInhibited", "QueueCondition", "QueueDeleted", "QueueFull", "QueueManagerStopping", "QueueNotEmpty", "Reason",
    "SequenceError", "StagingGone", "StoreDamaged", "StoreError", "StoreForeign", "StoreFull", "StoreNewer",
    "StoreOlder", "TooManyHandles", "TooManyLogIns", "Undeliverable", "UnitExists", "UnitNotAvailable", "UnitNotFound",
    "UnitOfAnother", "UnitTooLarge", "UnknownObject", "UnknownQueue", "WaitEnded", "WrongQueueType", "WrongState",
]  # fmt: skip

SHOWN_CHARACTERS_MAX: Final = 60
TEXT_CHARACTERS_MAX: Final = 4_000


def bounded(text: str) -> str:
    """The text of an error: of more than 4,000 characters the middle is left out, for the remedy often ends it.

    Control characters but line feeds are written as Python writes them: a terminal or a log would obey them.
    """
    kept = TEXT_CHARACTERS_MAX // 2 - 10
    short = text if len(text) <= TEXT_CHARACTERS_MAX else f"{text[:kept]} [...] {text[-kept:]}"
    visible = "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in short)
    return short if visible == short else bounded(visible)


class InorderError(Exception):
    """The root of every error that this package raises on purpose.

    Args:
        text: what happened, without the reason; `bounded`.
        reason: the reason code, where it is not the one of the class.
        data: what the caller may want to act on, read as attributes; the text ends with a `remedy` for Python, too.
    """

    reason: Reason = Reason.UNEXPECTED_ERROR
    completion: Completion = Completion.FAILED
    data: dict[str, object]

    def __init__(self, text: str, *, reason: Reason | None = None, **data: object) -> None:
        # An item with the name of something that an error has already could never be read.
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
        # Asked only for what is not an ordinary attribute. A copy in the making has no data yet.
        try:
            return self.__dict__["data"][name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}") from None

    def __str__(self) -> str:
        return f"{self.args[0]} [{self.reason.value} {self.reason_name}]"

    def __reduce__(self) -> tuple[Any, ...]:
        # The default would call the class with the text alone, which a subclass may not accept.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__.copy()  # type: ignore[attr-defined]


class CallerError(InorderError):
    """The caller's mistake: the same call would fail again."""

    reason = Reason.ARGUMENT_ERROR


class QueueCondition(InorderError):
    """The call was right but the state of the queue says no; its subclasses say which state."""

    reason = Reason.UNEXPECTED_ERROR


class StoreError(InorderError):
    """Trouble with the store, or with what it stands on."""

    reason = Reason.RESOURCE_PROBLEM


# ---- the caller's mistakes


class ArgumentError(CallerError, ValueError):
    """An argument has a value that is not allowed; data: argument, value, allowed."""

    reason = Reason.ARGUMENT_ERROR


class OptionsError(CallerError):
    """An option is unknown or excluded by another one."""

    reason = Reason.OPTIONS_ERROR


class MatchError(CallerError):
    """What to match is not valid or does not fit the call."""

    reason = Reason.MATCH_OPTIONS_ERROR


class InconsistentCall(CallerError):
    """A call does not go on with its group, message or browse (2241, 2242, 2185, 2245, 2259)."""

    reason = Reason.INCOMPLETE_GROUP


class HandleError(CallerError):
    """The handle is closed or belongs to another connection."""

    reason = Reason.HOBJ_ERROR


class NotOpenFor(CallerError):
    """The handle was not opened for this call (2036 to 2040)."""

    reason = Reason.NOT_OPEN_FOR_INPUT


class UnknownObject(CallerError):
    """There is no object of this name: of a channel or process data: kind, object, nearest (the names most like it)."""

    reason = Reason.UNKNOWN_OBJECT_NAME


class UnknownQueue(UnknownObject):
    """There is no queue of this name; data: queue, nearest (the names most like it)."""

    reason = Reason.UNKNOWN_OBJECT_NAME


class WrongQueueType(CallerError):
    """The queue is not of a type that takes this call, or its name leads nowhere; data: queue.

    2001, 2043, 2045, 2057, 2082; of a remote name 2087, 2091, 2092, 2184, 2196, 2197, 2198, 2199.
    """

    reason = Reason.OBJECT_TYPE_ERROR


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
    """The connection's unit of work is that of another thread or asyncio task; data: thread, task (their names)."""

    reason = Reason.UNIT_OF_ANOTHER


class PropertyNotAvailable(CallerError, KeyError):
    """The message has no property of this name; data: property, nearest (the names most like it)."""

    reason = Reason.PROPERTY_NOT_AVAILABLE


class ForkedConnection(CallerError):
    """The connection was opened before the process forked; data: path, of the store."""

    reason = Reason.FORKED


# ---- conditions of the queue


class NoMessageAvailable(QueueCondition):
    """No message fits the request, or none came before the wait was over."""

    reason = Reason.NO_MSG_AVAILABLE


class WaitEnded(QueueCondition):
    """The program has ended the wait with `end_waits`, from another thread."""

    reason = Reason.WAIT_ENDED


class OrderPending(QueueCondition):
    """Something fits but an earlier message is pending; data: kind, by, age (seconds), place, queue."""

    reason = Reason.ORDER_PENDING


class OrderUnsupported(QueueCondition):
    """Strict order was asked for on a queue that keeps none."""

    reason = Reason.ORDER_UNSUPPORTED


class OrderSelfBlocked(QueueCondition):
    """Strict order would make the reader wait for its own open work."""

    reason = Reason.ORDER_SELF_BLOCKED


class OrderDeadlock(QueueCondition):
    """Strict order would make readers wait for each other in a circle."""

    reason = Reason.ORDER_DEADLOCK


class NoMessageUnderCursor(QueueCondition):
    """The browse cursor stands on no message, or its message is gone."""

    reason = Reason.NO_MSG_UNDER_CURSOR


class GetInhibited(QueueCondition):
    """Getting and browsing are switched off for the queue."""

    reason = Reason.GET_INHIBITED


class PutInhibited(QueueCondition):
    """Putting is switched off for the queue."""

    reason = Reason.PUT_INHIBITED


class QueueFull(QueueCondition):
    """The queue holds as many messages as its depth limit allows."""

    reason = Reason.Q_FULL


class MessageTooBig(QueueCondition):
    """The message is longer than the queue (2030) or the queue manager (2031) allows."""

    reason = Reason.MSG_TOO_BIG_FOR_Q


class UnitTooLarge(QueueCondition):
    """The unit of work holds as many uncommitted messages as allowed."""

    reason = Reason.SYNCPOINT_LIMIT_REACHED


class UnitNotAvailable(QueueCondition):
    """The call needs a unit of work, and none can be had: one is not allowed here, or too many leases are open."""

    reason = Reason.UOW_NOT_AVAILABLE


class ObjectInUse(QueueCondition):
    """Another handle or unit of work uses the queue in a way that rules this out."""

    reason = Reason.OBJECT_IN_USE


class QueueNotEmpty(QueueCondition):
    """The queue cannot be deleted while it holds messages or uncommitted work."""

    reason = Reason.Q_NOT_EMPTY


class QueueDeleted(QueueCondition):
    """The queue was deleted after the handle opened it."""

    reason = Reason.Q_DELETED


class ObjectExists(QueueCondition):
    """There is an object of this name already; data: queue, differs (by attribute: as it is, as asked for)."""

    reason = Reason.OBJECT_ALREADY_EXISTS


class TooManyHandles(QueueCondition):
    """The connection has as many open handles as allowed."""

    reason = Reason.HANDLE_NOT_AVAILABLE


class QueueManagerStopping(QueueCondition):
    """The queue manager stops and takes no more calls."""

    reason = Reason.Q_MGR_STOPPING


class ConnectionBroken(QueueCondition):
    """The connection was lost; its open work is backed out."""

    reason = Reason.CONNECTION_BROKEN


class OutcomeUnknown(QueueCondition):
    """The call was being committed when the connection was lost: it has happened, or not; data: uids, of its puts."""

    reason = Reason.CALL_INTERRUPTED


class DuplicateMessage(QueueCondition):
    """The queue holds a message with this unique id already."""

    reason = Reason.DUPLICATE_MESSAGE


class DuplicatePending(QueueCondition):
    """A unit of work that is not settled has put under this key; data: queue, key, by, age (seconds)."""

    reason = Reason.DUPLICATE_PENDING


class NotFound(QueueCondition):
    """No message that the call could see has this unique id."""

    reason = Reason.NOT_FOUND


class LockMismatch(QueueCondition):
    """The message is locked under another lock id."""

    reason = Reason.LOCK_MISMATCH


class ConfirmIdMismatch(QueueCondition):
    """The message waits for a confirm under another confirm id."""

    reason = Reason.CONFIRM_ID_MISMATCH


class WrongState(QueueCondition):
    """The message or the unit of work is in a state that does not take this call."""

    reason = Reason.WRONG_STATE


class Fenced(QueueCondition):
    """A newer owner has taken over this work."""

    reason = Reason.FENCED


class CheckpointTooOld(QueueCondition):
    """A reader's checkpoint does not know claims that are over: it would read on from where nothing is any more."""

    reason = Reason.CHECKPOINT_TOO_OLD


class CheckpointLost(QueueCondition):
    """A reader's checkpoint does not know the open claim or those that are over, or knows one that never was."""

    reason = Reason.CHECKPOINT_LOST


class StagingGone(QueueCondition):
    """What was staged under a name is not there, or not all of it; data: staging."""

    reason = Reason.STAGING_GONE


class Undeliverable(QueueCondition):
    """A message can neither go where it should nor be a dead letter; data: queue, where it should go."""

    reason = Reason.UNDELIVERABLE


class SequenceError(QueueCondition):
    """The two sides of a channel disagree on which batch is next; data: channel, number, expected."""

    reason = Reason.SEQUENCE_ERROR


class LeaseOver(QueueCondition):
    """The lease holds nothing any more: it was committed or backed out, or its time is over; data: lease (its name)."""

    reason = Reason.LEASE_OVER


class NotAuthorized(QueueCondition):
    """The user may not do this; data: user, authority, queue ("": it is about the queue manager)."""

    reason = Reason.NOT_AUTHORIZED


class LogInRefused(NotAuthorized):
    """What was shown is not a password, token or certificate of a user; which of them is wrong is not said."""

    reason = Reason.NOT_AUTHORIZED


class TooManyLogIns(QueueCondition):
    """Too many log-ins have failed for this user or from this address; data: seconds (until the next may be tried)."""

    reason = Reason.TOO_MANY_LOG_INS


class ChannelStopped(QueueCondition):
    """An operator has stopped the channel: it runs again after a start; data: channel."""

    reason = Reason.CHANNEL_STOPPED


# ---- trouble with the store


class StoreFull(StoreError):
    """The disk that holds the store is full."""

    reason = Reason.STORAGE_MEDIUM_FULL


class StoreDamaged(StoreError):
    """The store contradicts itself or cannot be read."""

    reason = Reason.STORE_DAMAGED


class StoreForeign(StoreError):
    """The file is not an inorder store; it was left as it was."""

    reason = Reason.STORE_FOREIGN


class StoreNewer(StoreError):
    """The store was written by a newer release than this one can read."""

    reason = Reason.STORE_NEWER


class StoreOlder(StoreError):
    """The store was written by an older release; data: path, version, upgradable (whether `inorder.upgrade` helps)."""

    reason = Reason.STORE_OLDER


# ---- helpers of those who raise

IN_MEMORY: Final = ":memory:"  # the path of a store that is in no file


def forked(path: str) -> ForkedConnection:
    """The error for a call in a forked child on what its parent has opened: the store at this path."""
    remedy = (
        "a queue manager in memory belongs to the process that made it: keep the store in a file to share it"
        if path == IN_MEMORY
        else f"connect in the child with inorder.connect({path!r})"
    )
    return ForkedConnection(f"this was opened by the parent, before the process forked; {remedy}", path=path)


def bad_argument(name: str, value: object, allowed: str, reason: Reason = Reason.ARGUMENT_ERROR) -> ArgumentError:
    """The error for an argument with a value that is not allowed.

    Args:
        name: the argument's name.
        value: what was given; shortened in the text, whole in the data.
        allowed: what is allowed, to be read after "must be".
        reason: MQ's reason, where it has one.
    """
    text = f"{name} must be {allowed}, not {written(value)}"
    return ArgumentError(text, reason=reason, argument=name, value=value, allowed=allowed)


def nearest_names(name: str, known: Iterable[str]) -> list[str]:
    """The known names most like the one given, best first, at most three, upper and lower case alike."""
    by_folded = {each.casefold(): each for each in known}
    folded = difflib.get_close_matches(name[:SHOWN_CHARACTERS_MAX].casefold(), by_folded, n=3)
    return [by_folded[each] for each in folded]


def written(value: object) -> str:
    """A value as an error's text shows it: written out, as far as that can be done, and shortened."""
    text = _whole(value)
    return text if len(text) <= SHOWN_CHARACTERS_MAX else f"{text[: SHOWN_CHARACTERS_MAX - 3]}..."


def _whole(value: object) -> str:
    if isinstance(value, (str, bytes, bytearray)):
        # A body of many megabytes is cut before it is written out, not after.
        return repr(value[: SHOWN_CHARACTERS_MAX + 1])
    try:
        return reprlib.repr(value)
    except ValueError:  # Python writes out no integer of many thousand digits
        return f"a value of type {type(value).__name__}"
