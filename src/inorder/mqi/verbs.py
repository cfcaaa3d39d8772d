"""The MQI's verbs: the only module that doors use.

Structures are buffers that the verbs read and write as far as their versions go. Every verb ends with a completion code
and a reason code, and never raises but for KeyboardInterrupt and its kind, which belong to the program.

Rules: M-1, M-9.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import InorderError, QueueCondition, Reason
from . import connecting, getting, handles, inquiring, opening, properties, putting
from .commands import after_commit
from .connections import connection_of, or_later
from .constants import MQHC_UNASSOCIATED_HCONN
from .consumers import of_connection
from .layouts import LayoutError, layout
from .refusals import MQCC_FAILED, MQCC_OK, MQCC_WARNING, Codes, Refused, reason_of
from .registering import Callback

if TYPE_CHECKING:
    from typing_extensions import Buffer

log = logging.getLogger("inorder.mqi")

F = TypeVar("F", bound=Callable[..., Any])


def answers(*nothing: int | list[int] | bytes) -> Callable[[F], F]:
    """Decorates a verb: when it fails, it returns these values, the completion code and the reason code."""

    def decorate(verb: F) -> F:
        @functools.wraps(verb)
        def answered(*arguments: Any, **named: Any) -> Any:
            try:
                return verb(*arguments, **named)
            except Refused as refused:
                return (*nothing, refused.completion, refused.reason)
            except InorderError as error:
                log.debug("%s: %s", verb.__name__.upper(), error)  # a program never sees the text
                return (*nothing, MQCC_FAILED, reason_of(error))
            except LayoutError as error:
                return (*nothing, MQCC_FAILED, error.reason)
            except Exception:
                log.exception("%s failed", verb.__name__.upper())
                return (*nothing, MQCC_FAILED, int(Reason.UNEXPECTED_ERROR))

        return answered  # type: ignore[return-value]

    return decorate


# ---- connections and units of work


@answers(-1)
def mqconn(name: bytes) -> tuple[int, int, int]:
    """Connects to a queue manager: a name of 48 characters, blank for the default one."""
    return connecting.connect(name)


@answers(-1)
def mqconnx(
    name: bytes,
    cno: Buffer,
    cd: Buffer | None = None,
    csp: Buffer | None = None,
    sco: Buffer | None = None,
    bno: Buffer | None = None,
) -> tuple[int, int, int]:
    """Connects with options. MQCD and MQCSP are also found through the pointers in MQCNO; MQSCO and MQBNO are of no use
    here.
    """
    return connecting.connect(name, cno, cd, csp)


@answers()
def mqdisc(hconn: int) -> Codes:
    """Commits and disconnects."""
    return or_later(lambda: connecting.disconnect(hconn))


@answers()
def mqbegin(hconn: int, bo: Buffer | None) -> Codes:
    """Begins a unit of work for external resource managers, of which there are none: warning 2121."""
    connection = connection_of(hconn)
    with connection:
        if bo is not None and layout("BO").read(bo).Options:
            raise Refused(Reason.OPTIONS_ERROR)
        if connection.session.has_unit:
            raise Refused(Reason.UOW_IN_PROGRESS)
    return MQCC_WARNING, int(Reason.NO_EXTERNAL_PARTICIPANTS)


@answers()
def mqcmit(hconn: int) -> Codes:
    """Commits the unit of work. Warning 2003: a queue manager could not commit, so it was backed out everywhere."""
    connection = connection_of(hconn)
    with connection:
        try:
            warning = connection.manager.commit()
        except QueueCondition as error:
            raise Refused(error.reason, MQCC_WARNING if error.reason is Reason.BACKED_OUT else MQCC_FAILED) from None
        after_commit(connection)
    return (MQCC_OK, 0) if warning is None else (MQCC_WARNING, int(warning))


@answers()
def mqback(hconn: int) -> Codes:
    """Backs out the unit of work."""
    connection = connection_of(hconn)
    with connection:
        connection.manager.back_out()
        connection.requests.clear()
    return MQCC_OK, 0


# ---- objects


@answers(-1)
def mqopen(hconn: int, od: Buffer, options: int) -> tuple[int, int, int]:
    """Opens an object."""
    return opening.open_object(hconn, od, options)


@answers()
def mqclose(hconn: int, hobj: int, options: int) -> Codes:
    """Closes an object."""
    return or_later(lambda: opening.close(hconn, hobj, options))


@answers([], b"")
def mqinq(
    hconn: int, hobj: int, selectors: Sequence[int], int_count: int, char_length: int
) -> tuple[list[int], bytes, int, int]:
    """Returns attributes: integers and characters, each in the order of their selectors, and no more than there is
    room for.
    """
    return inquiring.inquire(hconn, hobj, selectors, int_count, char_length)


@answers()
def mqset(hconn: int, hobj: int, selectors: Sequence[int], ints: Sequence[int], chars: bytes) -> Codes:
    """Sets attributes of a queue."""
    return inquiring.set_values(hconn, hobj, selectors, ints, chars)


@answers()
def mqstat(hconn: int, type: int, sts: Buffer) -> Codes:
    """Reports the outcome of puts whose answer the program did not wait for."""
    return inquiring.status(hconn, type, sts)


# ---- messages


@answers()
def mqput(hconn: int, hobj: int, md: Buffer | None, pmo: Buffer | None, data: Buffer) -> Codes:
    """Puts a message through an open queue."""
    return putting.put(hconn, hobj, md, pmo, data)


@answers()
def mqput1(hconn: int, od: Buffer, md: Buffer | None, pmo: Buffer | None, data: Buffer) -> Codes:
    """Opens a queue, puts a message, and closes it."""
    return putting.put_one(hconn, od, md, pmo, data)


@answers(0)
def mqget(hconn: int, hobj: int, md: Buffer | None, gmo: Buffer | None, buffer: Buffer) -> tuple[int, int, int]:
    """Gets or browses a message; returns the length of its data, which may be greater than the buffer's."""
    return getting.get(hconn, hobj, md, gmo, buffer)


# ---- message handles and properties


@answers(-1)
def mqcrtmh(hconn: int, cmho: Buffer | None) -> tuple[int, int, int]:
    """Creates a message handle; with MQHC_UNASSOCIATED_HCONN it belongs to no connection."""
    with _turn(hconn):
        return handles.create(hconn, cmho), MQCC_OK, 0


@answers()
def mqdltmh(hconn: int, hmsg: int, dmho: Buffer | None) -> Codes:
    """Deletes a message handle."""
    with _turn(hconn):
        handles.delete(hconn, hmsg, dmho)
    return MQCC_OK, 0


@answers()
def mqsetmp(
    hconn: int, hmsg: int, smpo: Buffer | None, name: bytes, pd: Buffer | None, type: int, value: bytes
) -> Codes:
    """Sets a property of a message handle."""
    with _turn(hconn):
        properties.set_property(hconn, hmsg, smpo, name, pd, type, value)
    return MQCC_OK, 0


@answers(0, 0, b"")
def mqinqmp(
    hconn: int, hmsg: int, impo: Buffer | None, name: bytes, pd: Buffer | None, type: int, buffer: Buffer
) -> tuple[int, int, bytes, int, int]:
    """Returns a property of a message handle: its type, the length of its value, and its name."""
    with _turn(hconn):
        return properties.inquire(hconn, hmsg, impo, name, pd, type, buffer)


@answers()
def mqdltmp(hconn: int, hmsg: int, dmpo: Buffer | None, name: bytes) -> Codes:
    """Deletes a property of a message handle."""
    with _turn(hconn):
        properties.delete_property(hconn, hmsg, dmpo, name)
    return MQCC_OK, 0


@answers(0)
def mqbufmh(hconn: int, hmsg: int, bmho: Buffer | None, md: Buffer | None, buffer: Buffer) -> tuple[int, int, int]:
    """Gives a message handle the properties in a buffer; returns the length of the data that stay there."""
    with _turn(hconn):
        return properties.from_buffer(hconn, hmsg, bmho, md, buffer), MQCC_OK, 0


@answers(0)
def mqmhbuf(
    hconn: int, hmsg: int, mhbo: Buffer | None, name: bytes, md: Buffer | None, buffer: Buffer
) -> tuple[int, int, int]:
    """Writes the properties of a message handle into a buffer; returns their length there."""
    with _turn(hconn):
        length, reason = properties.into_buffer(hconn, hmsg, mhbo, name, md, buffer)
    return length, MQCC_FAILED if reason else MQCC_OK, reason


def _turn(hconn: int) -> AbstractContextManager[None]:
    """The turn of a call about a message handle, which may belong to no connection."""
    return nullcontext() if hconn == MQHC_UNASSOCIATED_HCONN else connection_of(hconn)


# ---- functions that are called with messages


@answers()
def mqcb(
    hconn: int,
    operation: int,
    cbd: Buffer | None,
    hobj: int,
    md: Buffer | None,
    gmo: Buffer | None,
    callback: Callback | None = None,
) -> Codes:
    """Registers a function for the messages of a queue or for events, or deregisters, suspends or resumes it.

    Args:
        callback: is called with the connection and, as buffers, MQMD, MQGMO, the data or None, and MQCBC.
    """
    connection = connection_of(hconn)
    with connection:
        of_connection(connection).change(operation, cbd, hobj, md, gmo, callback)
    return MQCC_OK, 0


@answers()
def mqctl(hconn: int, operation: int, ctlo: Buffer | None) -> Codes:
    """Starts, suspends, resumes or stops the calls of the functions."""
    connection = connection_of(hconn)
    connection.check(controls=True)
    return of_connection(connection).control(operation, ctlo)


# ---- not here


@answers(-1, -1)
def mqsub(hconn: int, sd: Buffer, hobj: int) -> tuple[int, int, int, int]:
    """Subscribes: there are no topics, reason 2298."""
    raise Refused(Reason.FUNCTION_NOT_SUPPORTED)


@answers()
def mqsubrq(hconn: int, hsub: int, action: int, sro: Buffer) -> Codes:
    """Asks for retained publications: there are no topics, reason 2298."""
    raise Refused(Reason.FUNCTION_NOT_SUPPORTED)
