"""MQOPEN and MQCLOSE.

Rules: R4.1 to R4.5, R4.8, M-11, M-16.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..client.keywords import get_options
from ..client.queue import Queue
from ..errors import QueueDeleted, Reason, WrongQueueType
from ..model.attribute import NAME_LENGTH_MAX as NAME_LENGTH
from ..model.attribute import is_name
from ..model.options import DEFAULT_GET, OpenOptions
from ..rules.authorities import MANAGER, Authority
from ..rules.selectors import LENGTH_MAX as SELECTOR_LENGTH_MAX
from . import constants as mq
from .connecting import address_of
from .connections import MqiConnection, OpenObject, connection_of
from .descriptor import padded, text_of
from .layouts import OD, text_at
from .options import INPUTS, OPEN_FOR, OPENS, open_options
from .refusals import MQCC_OK, MQCC_WARNING, Refused

if TYPE_CHECKING:
    from typing_extensions import Buffer

AUTHORITIES: Final[tuple[tuple[int, Authority], ...]] = (
    (INPUTS, "get"), (mq.MQOO_BROWSE, "browse"), (mq.MQOO_OUTPUT, "put"), (mq.MQOO_INQUIRE, "inquire"),
    (mq.MQOO_SET, "set"),
)  # fmt: skip
"""The authority on a queue that each option of an open needs."""
NO_LISTS: Final = 2154  # MQRC_RECS_PRESENT_ERROR: there are no distribution lists
NO_NAMES: Final = b" " * (2 * NAME_LENGTH)
DELETES: Final = mq.MQCO_DELETE | mq.MQCO_DELETE_PURGE
ELSEWHERE: Final = (Reason.OPTION_NOT_VALID_FOR_TYPE, Reason.Q_TYPE_ERROR)


def open_object(handle: int, od: Buffer, options: int) -> tuple[int, int, int]:
    """Opens an object; returns its handle. Raises: Refused."""
    connection = connection_of(handle)
    with connection:
        values = OD.read(od)
        if values.RecsPresent:
            raise Refused(NO_LISTS)
        if values.ObjectType == mq.MQOT_Q:
            opened = _queue(connection, od, values, options)
        elif values.ObjectType in (mq.MQOT_Q_MGR, mq.MQOT_PROCESS):
            opened = _definition(connection, values, options)
        elif values.ObjectType in (mq.MQOT_TOPIC, mq.MQOT_NAMELIST):
            raise Refused(Reason.UNKNOWN_OBJECT_NAME)
        else:
            raise Refused(Reason.OBJECT_TYPE_ERROR)
        return connection.add(opened), MQCC_OK, int(Reason.NONE)


def _queue(connection: MqiConnection, od: Any, values: Any, options: int) -> OpenObject:
    chosen = open_options(options)
    selector = _selector(od, values)
    name, elsewhere = names_of(values)
    for bits, authority in AUTHORITIES:
        if options & bits:
            connection.check_authority(authority, name)
    queue = _opened(connection, name, elsewhere, text_of(values.DynamicQName), chosen, options)
    resolved = resolved_names(connection, queue, elsewhere, options)
    if queue.name != name:  # a model's new queue
        values.ObjectName, values.ObjectQMgrName = padded(queue.name, NAME_LENGTH), resolved[NAME_LENGTH:]
    write_opened(od, values, resolved if options & (INPUTS | mq.MQOO_BROWSE | mq.MQOO_OUTPUT) else NO_NAMES)
    opened = OpenObject(mq.MQOT_Q, queue.name, options, queue, resolved, selector)
    opened.is_maker = queue.name != name
    return opened


def write_opened(od: Any, values: Any, resolved: bytes) -> None:
    """Writes the outputs of an open to MQOD."""
    values.ResolvedQName, values.ResolvedQMgrName = resolved[:NAME_LENGTH], resolved[NAME_LENGTH:]
    values.ResolvedType = mq.MQOT_Q
    values.KnownDestCount, values.UnknownDestCount, values.InvalidDestCount = 1, 0, 0
    OD.write(od, values)


def names_of(values: Any) -> tuple[str, str]:
    """The names of the queue and the queue manager in MQOD. Raises: Refused 2086."""
    name, elsewhere = text_of(values.ObjectName), text_of(values.ObjectQMgrName)
    if elsewhere and not is_name(elsewhere):
        raise Refused(Reason.UNKNOWN_OBJECT_Q_MGR)
    return name, elsewhere


def _opened(
    connection: MqiConnection, name: str, elsewhere: str, dynamic: str, chosen: OpenOptions, options: int
) -> Queue:
    """Opens a queue. One that is opened to inquire or set alone is opened to browse, which excludes no other open."""
    manager = connection.manager
    how: Any = {"manager": elsewhere, "dynamic_name": dynamic}
    wanted: Any = {"input": chosen.input, "output": chosen.output, "browse": chosen.browse, "co_op": chosen.co_op}
    try:
        return manager.open(name, **how, **wanted)
    except WrongQueueType as error:
        if error.reason not in ELSEWHERE or options & (INPUTS | mq.MQOO_OUTPUT | mq.MQOO_BROWSE):
            raise
        return manager.open(name, **how, output=True)


def resolved_names(connection: MqiConnection, queue: Queue, elsewhere: str, options: int = 0) -> bytes:
    """The names of the queue, and of its queue manager, to which the name has led."""
    name, manager = queue.local_name, connection.own_name
    if elsewhere and elsewhere != manager and not options & mq.MQOO_RESOLVE_LOCAL_Q:
        name, manager = queue.name, elsewhere
    elif name != queue.name and not options & mq.MQOO_RESOLVE_LOCAL_Q:
        definition = queue.attributes()
        if definition.type == "remote":
            name, manager = definition.remote_queue, definition.remote_manager
    return padded(name, NAME_LENGTH) + padded(manager, NAME_LENGTH)


def _selector(od: Any, values: Any) -> str | None:
    """The selection string, checked. Raises: ArgumentError 2459; LayoutError 2519."""
    if not (values.SelectionString.Ptr or values.SelectionString.Offset):
        return None
    string = values.SelectionString
    base = address_of(od) if string.Offset else 0
    text = text_at(string, base, SELECTOR_LENGTH_MAX, Reason.SELECTION_STRING_ERROR)
    selector = text.decode(errors="replace").rstrip("\0 ") or None
    if selector is not None:
        get_options({"selector": selector}, None, DEFAULT_GET)
    return selector


def _definition(connection: MqiConnection, values: Any, options: int) -> OpenObject:
    """The queue manager or a process definition, of which a program can only inquire the attributes."""
    if options & ~OPENS or not options & OPEN_FOR:
        raise Refused(Reason.OPTIONS_ERROR)
    if options & ~(mq.MQOO_INQUIRE | mq.MQOO_FAIL_IF_QUIESCING | mq.MQOO_ALTERNATE_USER_AUTHORITY):
        raise Refused(Reason.OPTION_NOT_VALID_FOR_TYPE)
    name = text_of(values.ObjectName)
    if text_of(values.ObjectQMgrName) not in ("", connection.own_name, connection.name):
        raise Refused(Reason.OPTION_NOT_VALID_FOR_TYPE)
    if values.ObjectType == mq.MQOT_PROCESS:
        connection.manager.admin.process(name)
    elif name in ("", connection.own_name, connection.name):
        name = connection.own_name
    else:
        raise Refused(Reason.UNKNOWN_OBJECT_NAME)
    return OpenObject(values.ObjectType, name, options, None, b"")


def object_of(connection: MqiConnection, handle: int) -> OpenObject:
    """Inside a call: the object of a handle. Raises: Refused 2019."""
    found = connection.objects.get(handle)
    if found is None:
        raise Refused(Reason.HOBJ_ERROR)
    return found


def close(handle: int, hobj: int, options: int) -> tuple[int, int]:
    """Closes an object.

    Raises: Refused 2018, 2019, 2045, 2046; NotAuthorized 2035, QueueNotEmpty 2055, ObjectInUse 2042.
    """
    connection = connection_of(handle)
    with connection:
        opened = object_of(connection, hobj)
        deletes = options & DELETES
        if options & ~(DELETES | mq.MQCO_QUIESCE) or deletes == DELETES:
            raise Refused(Reason.OPTIONS_ERROR)
        if opened.queue is None:
            if deletes:
                raise Refused(Reason.OPTION_NOT_VALID_FOR_TYPE)
            del connection.objects[hobj]
            return MQCC_OK, int(Reason.NONE)
        try:
            if deletes and not opened.is_maker:
                _check_delete(connection, opened.queue)
            warning = opened.queue.close(delete=bool(deletes & mq.MQCO_DELETE), purge=deletes == mq.MQCO_DELETE_PURGE)
        except QueueDeleted:
            warning = opened.queue.close()
        del connection.objects[hobj]
        if connection.consumers is not None:
            connection.consumers.closed(hobj)
        return (MQCC_OK, int(Reason.NONE)) if warning is None else (MQCC_WARNING, int(warning))


def _check_delete(connection: MqiConnection, queue: Queue) -> None:
    """Checks that a handle that did not make a queue may delete it: only a permanent dynamic queue, by its own name.

    Raises: Refused 2045; NotAuthorized 2035, the user is no administrator; QueueDeleted.
    """
    if queue.attributes().definition_type != "permanent_dynamic":
        raise Refused(Reason.OPTION_NOT_VALID_FOR_TYPE)
    connection.check_authority("administer", MANAGER)
