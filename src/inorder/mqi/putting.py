"""MQPUT and MQPUT1.

Rules: 2.1 to 2.7, M-10 to M-12.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

from ..errors import Reason
from ..model.fields import NO_ACCOUNTING
from ..model.message import Message, Row
from ..rules.puts import APPLICATION_TYPE_UNIX, PutResult
from .connections import Connection, connection_of
from .constants import MQOO_OUTPUT, MQOO_SAVE_ALL_CONTEXT, MQOT_Q
from .descriptor import DEFAULT_MD, NO_CONTEXT, Described, context_of, padded, read, text_of, write_put
from .layouts import OD, PMO
from .opening import NAME_LENGTH, object_of
from .options import Putting, put_options
from .refusals import MQCC_OK, MQCC_WARNING, Refused

if TYPE_CHECKING:
    from typing_extensions import Buffer

HEAD: Final = struct.Struct("=8siii")  # identifier and version, Options, Timeout, Context
DESTINATIONS: Final = struct.Struct("=iii96s")  # of MQPMO, from KnownDestCount to ResolvedQMgrName
DESTINATIONS_AT: Final = 20
VERSIONS: Final = {b"PMO " + struct.pack("=i", version): version for version in range(PMO.oldest, PMO.newest + 1)}
NOTHING: Final[Described] = read(DEFAULT_MD)
IDENTITY: Final = 3  # the fields of a context that are about the user


def put(handle: int, hobj: int, md: Any, pmo: Any, data: Buffer) -> tuple[int, int]:
    """Puts a message through an open queue. Raises: Refused, InorderError."""
    connection = connection_of(handle)
    with connection:
        opened = object_of(connection, hobj)
        if not opened.options & MQOO_OUTPUT:
            raise Refused(Reason.NOT_OPEN_FOR_OUTPUT)
        putting, described, passed = _read(connection, md, pmo, one=False)
        if putting.needed is not None and not opened.options & putting.needed[0]:
            raise Refused(putting.needed[1])
        context = _context(connection, putting, described, passed)
        message = _message(putting, described, context, data)
        result = opened.put(message, putting.options)
        return _answer(md, pmo, described.version, result, context, opened.resolved)


def put_one(handle: int, od: Buffer, md: Any, pmo: Any, data: Buffer) -> tuple[int, int]:
    """Opens a queue, puts a message and closes it. Raises: Refused, InorderError."""
    connection = connection_of(handle)
    with connection:
        values = OD.read(od)
        if values.RecsPresent:
            raise Refused(2154)  # MQRC_RECS_PRESENT_ERROR: there are no distribution lists
        if values.ObjectType != MQOT_Q:
            raise Refused(Reason.UNKNOWN_OBJECT_NAME)
        putting, described, passed = _read(connection, md, pmo, one=True)
        context = _context(connection, putting, described, passed)
        message = _message(putting, described, context, data)
        name, elsewhere = text_of(values.ObjectName), text_of(values.ObjectQMgrName)
        result = connection.manager.put(name, message, putting.options, manager=elsewhere)
        resolved = padded(name, NAME_LENGTH) + padded(elsewhere or connection.own_name, NAME_LENGTH)
        return _answer(md, pmo, described.version, result, context, resolved)


def _read(connection: Connection, md: Any, pmo: Any, *, one: bool) -> tuple[Putting, Described, int]:
    """Reads options and descriptor; also the handle in Context. Raises: Refused 2026, 2173."""
    described = NOTHING if md is None else read(md)
    if pmo is None:
        return put_options(0, described.version, one), described, 0
    head, options, _, passed = HEAD.unpack_from(pmo)
    if head not in VERSIONS:
        raise Refused(Reason.PMO_ERROR)
    putting = put_options(options, described.version, one)
    if putting.ignores_descriptor:
        described = NOTHING._replace(version=described.version)
    return putting, described, passed


def _context(connection: Connection, putting: Putting, described: Described, passed: int) -> Row:
    """The context that the message gets. Raises: Refused 2097, 2098; ArgumentError 2026."""
    if not putting.passes and not putting.sets:
        if putting.options.context == "none":
            return NO_CONTEXT
        user, name = connection.session.program
        return (user, NO_ACCOUNTING, "", APPLICATION_TYPE_UNIX, name, connection.now(), "")
    if putting.sets:
        given = context_of(described.context)
    else:
        source = connection.objects.get(passed)
        if source is None or not source.options & MQOO_SAVE_ALL_CONTEXT:
            raise Refused(Reason.CONTEXT_HANDLE_ERROR)
        if source.saved is None:
            raise Refused(Reason.CONTEXT_NOT_AVAILABLE)
        given = source.saved
    if putting.options.context == "set_all":
        return given
    return (*given[:IDENTITY], APPLICATION_TYPE_UNIX, connection.session.program.name, connection.now(), "")


def _message(putting: Putting, described: Described, context: Row, data: Buffer) -> Message | bytes:
    """What is put: the body alone if the descriptor says nothing."""
    body = data if type(data) is bytes else bytes(data)
    given = context if putting.passes or putting.sets else NO_CONTEXT
    if given is NO_CONTEXT and described.is_plain:
        return body
    return Message.from_row(described.row(body, given))


def _answer(md: Any, pmo: Any, version: int, result: PutResult, context: Row, resolved: bytes) -> tuple[int, int]:
    """Writes the outputs, also those of a put that warns (M-10)."""
    if md is not None:
        write_put(md, version, result, context)
    if pmo is not None:
        DESTINATIONS.pack_into(pmo, DESTINATIONS_AT, 1, 0, 0, resolved)
    warning = result.warning
    return (MQCC_OK, 0) if warning is None else (MQCC_WARNING, int(warning))
