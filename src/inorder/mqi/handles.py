"""Message handles: MQCRTMH, MQDLTMH, and the properties that a handle has.

A handle belongs to the connection that made it and ends with it; one made with MQHC_UNASSOCIATED_HCONN belongs to the
process. Its properties are in the order in which they were set; the properties of a message that was got are in the
order of their names. It has each name once, because a message has.

Rules: M-12 of *mqi*.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..formats import rfh2
from ..model.properties import NAME_LENGTH_MAX, Properties, PropertyValue, fault_of_name
from . import constants as mq
from .layouts import layout
from .property_types import type_of
from .refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Buffer

USR: Final = "usr."
DESCRIPTOR: Final = "Root.MQMD."
VALIDATIONS: Final = (mq.MQCMHO_DEFAULT_VALIDATION, mq.MQCMHO_NO_VALIDATION, mq.MQCMHO_VALIDATE)
SYNONYMS: Final[Mapping[str, str]] = {
    **rfh2.SYNONYMS,
    "JMSDestination": "jms.Dst",
    "JMSReplyTo": "jms.Rto",
    "JMSCorrelationID": "jms.Cid",
    "JMSDeliveryMode": "jms.Dlv",
    "JMSPriority": "jms.Pri",
    "JMSExpiration": "jms.Exp",
    "JMSTimestamp": "jms.Tms",
    "JMSXGroupID": "jms.Gid",
    "JMSXGroupSeq": "jms.Seq",
}
"""Names that are equal for MQ, with the name that a message uses here."""

_numbers = itertools.count(1)
_handles: dict[int, MessageHandle] = {}


@dataclass(slots=True)
class Property:
    """A property of a handle: its value with MQ's type, and what MQPD says about it."""

    name: str
    value: PropertyValue
    kind: int
    support: int = mq.MQPD_SUPPORT_OPTIONAL
    context: int = mq.MQPD_NO_CONTEXT
    copy: int = mq.MQCOPY_DEFAULT


class MessageHandle:
    """A message handle.

    Attributes:
        hconn: the connection that made it; MQHC_UNASSOCIATED_HCONN: none.
        properties: in order.
        descriptor: the MQMD fields that were set, or the fields of the message that was got, by MQ's names.
        cursor: the place of the property under the cursor; -1: there is none.
        is_under: whether that property still exists.
    """

    def __init__(self, hconn: int) -> None:
        self.hconn = hconn
        self.properties: list[Property] = []
        self.descriptor: dict[str, Any] = {}
        self.cursor, self.is_under = -1, False

    def fill(self, properties: Mapping[str, PropertyValue]) -> None:
        """Replaces all properties by the properties of a message."""
        self.properties = [Property(name, value, type_of(value)) for name, value in properties.items()]
        self.cursor, self.is_under = -1, False

    def place(self, name: str) -> int:
        """The place of the property with this name. Raises: Refused 2471."""
        at = next((at for at, one in enumerate(self.properties) if one.name == name), -1)
        if at < 0:
            raise Refused(mq.MQRC_PROPERTY_NOT_AVAILABLE)
        return at

    def under_cursor(self) -> int:
        """The place of the property under the cursor. Raises: Refused 2471."""
        if not self.is_under:
            raise Refused(mq.MQRC_PROPERTY_NOT_AVAILABLE)
        return self.cursor

    def matching(self, pattern: str, begin: int = 0) -> Iterator[int]:
        """The places of the properties with this name, or if it ends with `%` of all whose names begin so."""
        name = canonical(pattern)
        for at in range(begin, len(self.properties)):
            one = self.properties[at].name
            if one == name or (pattern.endswith("%") and _full(one).startswith((pattern[:-1], USR + pattern[:-1]))):
                yield at

    def point(self, at: int) -> None:
        """Moves the cursor to a property."""
        self.cursor, self.is_under = at, True

    def insert(self, at: int, new: Property) -> None:
        """Inserts a property. Raises: Refused 2442, the handle has one with this name."""
        if any(one.name == new.name for one in self.properties):
            raise Refused(mq.MQRC_PROPERTY_NAME_ERROR)
        self.properties.insert(at, new)
        if self.cursor >= at:
            self.cursor += 1

    def remove(self, at: int) -> None:
        """Removes a property; the cursor then stands before the next one."""
        del self.properties[at]
        if self.cursor == at:
            self.is_under = False
        if self.cursor >= at:
            self.cursor -= 1


def _full(name: str) -> str:
    return name if "." in name else USR + name


def canonical(name: str) -> str:
    """The name under which a message has the property."""
    return SYNONYMS.get(name, name.removeprefix(USR))


def checked_name(name: str) -> str:
    """The name of a property to be set. Raises: Refused 2442, 2513."""
    text = canonical(name)
    fault = fault_of_name(text)
    if fault is not None:
        raise Refused(fault[0])
    return text


def name_of(name: bytes) -> str:
    """The name of a property in UTF-8, perhaps with a wildcard. Raises: Refused 2492, 2513."""
    if not 0 < len(name) <= NAME_LENGTH_MAX:
        raise Refused(mq.MQRC_PROPERTY_NAME_LENGTH_ERR)
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise Refused(mq.MQRC_PROP_NAME_NOT_CONVERTED) from None


# ---- the table of handles


def options_of(name: str, buffer: Buffer | None, allowed: int) -> int:
    """The Options of a structure that has little else; without it the default ones.

    Raises: Refused 2046; LayoutError.
    """
    options = int(structure(name, buffer).Options)
    if options & ~allowed:
        raise Refused(mq.MQRC_OPTIONS_ERROR)
    return options


def structure(name: str, buffer: Buffer | None) -> Any:
    """The values of a structure; its defaults without one. Raises: LayoutError."""
    return layout(name).Values() if buffer is None else layout(name).read(buffer)


def create(hconn: int, cmho: Buffer | None) -> int:
    """MQCRTMH. Names are always checked, because a message cannot have others. Raises: Refused 2046, 2461."""
    if options_of("CMHO", cmho, mq.MQCMHO_NO_VALIDATION | mq.MQCMHO_VALIDATE) not in VALIDATIONS:
        raise Refused(mq.MQRC_OPTIONS_ERROR)
    number = next(_numbers)
    _handles[number] = MessageHandle(hconn)
    return number


def delete(hconn: int, hmsg: int, dmho: Buffer | None) -> None:
    """MQDLTMH. Raises: Refused 2046, 2460, 2462."""
    options_of("DMHO", dmho, mq.MQDMHO_NONE)
    handle_of(hconn, hmsg)
    _handles.pop(hmsg, None)


def handle_of(hconn: int, hmsg: int) -> MessageHandle:
    """The handle with this number that the connection may use. Raises: Refused 2460."""
    found = _handles.get(hmsg)
    if found is None or found.hconn not in (hconn, mq.MQHC_UNASSOCIATED_HCONN):
        raise Refused(mq.MQRC_HMSG_ERROR)
    return found


def forget(hconn: int) -> None:
    """Ends the handles of a connection."""
    for number in [number for number, one in list(_handles.items()) if one.hconn == hconn]:
        _handles.pop(number, None)


# ---- handles and puts


ACTIONS: Final[Mapping[int, int]] = {
    mq.MQACTP_FORWARD: mq.MQCOPY_FORWARD,
    mq.MQACTP_REPLY: mq.MQCOPY_REPLY,
    mq.MQACTP_REPORT: mq.MQCOPY_REPORT,
}
UNSUPPORTED: Final = mq.MQPD_REJECT_UNSUP_MASK | mq.MQPD_ACCEPT_UNSUP_IF_XMIT_MASK


def composed(hconn: int, original: int, new: int, action: int) -> dict[str, PropertyValue]:
    """The properties that the handles of an MQPMO give to the message.

    A new message has the properties of the new handle, or without one those of the original. A forwarded message, a
    reply or a report has those properties of the original whose MQCOPY allows it, and the properties of the new handle.

    Raises: Refused 2460; 2490, a property that must be supported; 2535.
    """
    of_original = handle_of(hconn, original) if original else None
    of_new = handle_of(hconn, new) if new else None
    if action == mq.MQACTP_NEW:
        chosen = of_new or of_original
        properties = [] if chosen is None else list(chosen.properties)
    elif action in ACTIONS:
        wanted = ACTIONS[action] | mq.MQCOPY_ALL
        properties = [one for one in of_original.properties if one.copy & wanted] if of_original else []
        properties += of_new.properties if of_new else []
    else:
        raise Refused(mq.MQRC_ACTION_ERROR)
    if any(one.support & UNSUPPORTED for one in properties):
        raise Refused(mq.MQRC_UNSUPPORTED_PROPERTY)
    return {one.name: one.value for one in properties}


def composed_descriptor(hconn: int, original: int, new: int, action: int) -> bytearray:
    """The descriptor of a put that gives none, of the Root.MQMD properties of its handles.

    Those of the original handle count for a new message and one that is forwarded. Raises: Refused 2460.
    """
    fields: dict[str, Any] = {}
    if original and action in (mq.MQACTP_NEW, mq.MQACTP_FORWARD):
        fields |= handle_of(hconn, original).descriptor
    if new:
        fields |= handle_of(hconn, new).descriptor
    return layout("MD").new(**fields)


def put(hconn: int, new: int, properties: Properties) -> None:
    """After a put: the new handle has the properties of the message, too."""
    if new:
        handle_of(hconn, new).fill(properties)
