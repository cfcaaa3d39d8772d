"""MQPUT and MQPUT1.

Rules: 2.1 to 2.7, M-10 to M-12.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ..errors import MessageTooBig, PutInhibited, QueueDeleted, QueueFull, Reason, UnitTooLarge
from ..model.fields import NO_ACCOUNTING
from ..model.message import Message, Row
from ..model.options import PutOptions
from ..model.properties import NO_PROPERTIES, Properties
from ..rules.puts import APPLICATION_TYPE_UNIX, PutResult
from .commands import after_put
from .connections import MqiConnection, OpenObject, connection_of
from .constants import MQOO_OUTPUT, MQOO_RESOLVE_LOCAL_Q, MQOO_SAVE_ALL_CONTEXT, MQOT_Q
from .descriptor import DEFAULT_MD, NO_CONTEXT, Described, context_of, read, write_put
from .handles import composed_descriptor
from .handles import put as note_put
from .headers import FORMAT, NO_HANDLES, WITH_HEADERS, Handles, message_of
from .layouts import OD, PMO
from .opening import NO_LISTS, names_of, object_of, resolved_names, write_opened
from .options import Putting, put_options
from .refusals import MQCC_OK, MQCC_WARNING, Refused, reason_of

if TYPE_CHECKING:
    from typing_extensions import Buffer

HEAD: Final = struct.Struct("=8siii")  # identifier and version, Options, Timeout, Context
DESTINATIONS: Final = struct.Struct("=iii96s")  # of MQPMO, from KnownDestCount to ResolvedQMgrName
DESTINATIONS_AT: Final = 20
RECORDS: Final = struct.Struct("=i")
RECORDS_AT: Final = 128
HANDLES: Final = struct.Struct("=qqi")
HANDLES_AT: Final = 160
XMIT: Final = "MQXMIT"
VERSIONS: Final = {b"PMO " + struct.pack("=i", version): version for version in range(PMO.oldest, PMO.newest + 1)}
NOTHING: Final[Described] = read(DEFAULT_MD)
AT: Final = 5  # of a context: the time of the put
LATER: Final = PutInhibited, QueueFull, MessageTooBig, QueueDeleted, UnitTooLarge
"""The failures that MQSTAT tells a client that does not wait for the answers of its puts."""
IDENTITY: Final = 3  # the fields of a context that are about the user


def put(handle: int, hobj: int, md: Any, pmo: Any, data: Buffer) -> tuple[int, int]:
    """Puts a message through an open queue. Raises: Refused, InorderError."""
    connection = connection_of(handle)
    with connection:
        opened = object_of(connection, hobj)
        if not opened.options & MQOO_OUTPUT:
            raise Refused(Reason.NOT_OPEN_FOR_OUTPUT)
        putting, described, passed, handles = _read(connection, md, pmo, one=False)
        if putting.needed is not None and not opened.options & putting.needed[0]:
            raise Refused(putting.needed[1])
        context = _context(connection, putting, described, passed)
        message, context, options = _message(connection, opened, putting, described, context, handles, data)
        try:
            result = opened.put(message, options)
        except LATER as error:
            if not (putting.is_counted and connection.is_client):
                raise
            connection.count_failure(reason_of(error), opened)
            return MQCC_OK, 0
        if handles.new:
            note_put(connection.handle, handles.new, _properties_of(message))
        if putting.is_counted:
            connection.count(result.warning)
        resolved = opened.resolved
        if putting.resolves_locally and opened.queue is not None:
            resolved = resolved_names(connection, opened.queue, "", MQOO_RESOLVE_LOCAL_Q)
        after_put(connection, resolved, result.uid, in_unit=options.syncpoint is True)
        return _answer(md, pmo, described.version, result, context, resolved)


def put_one(handle: int, od: Buffer, md: Any, pmo: Any, data: Buffer) -> tuple[int, int]:
    """Opens a queue, puts a message and closes it. Raises: Refused, InorderError."""
    connection = connection_of(handle)
    with connection:
        values = OD.read(od)
        if values.RecsPresent:
            raise Refused(NO_LISTS)
        if values.ObjectType != MQOT_Q:
            raise Refused(Reason.UNKNOWN_OBJECT_NAME)
        putting, described, passed, handles = _read(connection, md, pmo, one=True)
        context = _context(connection, putting, described, passed)
        message, context, options = _message(connection, None, putting, described, context, handles, data)
        name, elsewhere = names_of(values)
        connection.check_authority("put", name)
        if not elsewhere and connection.manager.attributes(name).type == "model":
            raise Refused(Reason.Q_TYPE_ERROR)
        with connection.manager.open(name, manager=elsewhere, output=True) as queue:
            result = queue.put(message, options)
            options_of_open = MQOO_RESOLVE_LOCAL_Q if putting.resolves_locally else 0
            resolved = resolved_names(connection, queue, elsewhere, options_of_open)
        write_opened(od, values, resolved)
        if handles.new:
            note_put(connection.handle, handles.new, _properties_of(message))
        after_put(connection, resolved, result.uid, in_unit=options.syncpoint is True)
        return _answer(md, pmo, described.version, result, context, resolved)


def _read(connection: MqiConnection, md: Any, pmo: Any, *, one: bool) -> tuple[Putting, Described, int, Handles]:
    """Reads options and descriptor; also the handle in Context, and the message handles.

    Raises: Refused 2026, 2154, 2173.
    """
    described = NOTHING if md is None else read(md)
    if pmo is None:
        return put_options(0, described.version, one), described, 0, NO_HANDLES
    head, options, _, passed = HEAD.unpack_from(pmo)
    version = VERSIONS.get(head, 0)
    if not version:
        raise Refused(Reason.PMO_ERROR)
    handles = NO_HANDLES
    if version > 1 and RECORDS.unpack_from(pmo, RECORDS_AT)[0]:
        raise Refused(NO_LISTS)
    if version > 2:
        original, new, action = HANDLES.unpack_from(pmo, HANDLES_AT)
        if original or new:
            handles = Handles(original, new, action)
    putting = put_options(options, described.version, one)
    if putting.ignores_descriptor or (md is None and handles is not NO_HANDLES):
        described = read(composed_descriptor(connection.handle, *handles))._replace(version=described.version)
    return putting, described, passed, handles


def _context(connection: MqiConnection, putting: Putting, described: Described, passed: int) -> Row:
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


def _message(
    connection: MqiConnection,
    opened: OpenObject | None,
    putting: Putting,
    described: Described,
    context: Row,
    handles: Handles,
    data: Buffer,
) -> tuple[Message | bytes, Row, PutOptions]:
    """The message to put, its context, and the options; the body alone if the descriptor has only defaults."""
    body, options = data if type(data) is bytes else bytes(data), putting.options
    is_given = bool(putting.passes or putting.sets)
    if handles is NO_HANDLES and described.said[FORMAT] not in WITH_HEADERS:
        if not is_given and described.is_plain:
            return body, context, options
        return Message.from_row(described.row(body, context if is_given else NO_CONTEXT)), context, options
    is_transmission = (
        described.said[FORMAT] == XMIT and opened is not None and opened.queue is not None
        and opened.queue.attributes().usage == "transmission"
    )  # fmt: skip
    given = context if is_given else NO_CONTEXT
    message, made = message_of(connection.handle, described, given, body, handles, is_transmission=is_transmission)
    if made is not given:  # the descriptor in an MQXQH has the context
        return message, made, replace(options, context="set_all")
    return message, context, options


def _properties_of(message: Message | bytes) -> Properties:
    return message.properties if isinstance(message, Message) else NO_PROPERTIES


def _answer(md: Any, pmo: Any, version: int, result: PutResult, context: Row, resolved: bytes) -> tuple[int, int]:
    """Writes the outputs, also those of a put that warns (M-10)."""
    if md is not None:
        made = (*context[:AT], result.put_at, context[AT + 1]) if result.put_at else context
        write_put(md, version, result, made)
    if pmo is not None:
        DESTINATIONS.pack_into(pmo, DESTINATIONS_AT, 1, 0, 0, resolved)
    warning = result.warning
    return (MQCC_OK, 0) if warning is None else (MQCC_WARNING, int(warning))
