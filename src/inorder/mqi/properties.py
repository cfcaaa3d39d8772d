"""Properties of messages: the verbs on message handles, and the handles and MQRFH2 headers of puts and gets.

A put turns the property folders of an MQRFH2 at the front of the data into properties of the message; other folders
stay in the header. A get gives the properties to a message handle, puts an MQRFH2 before the data, or leaves them out,
as MQGMO says. The PropertyControl of a queue is always COMPAT: a message comes with an MQRFH2 if it has a property of
usr, mcd, jms or mqext.

Rules: M-12 of *mqi*.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..errors import ArgumentError
from ..formats import rfh2
from ..model.message import Message
from ..model.properties import Properties, PropertyValue
from . import constants as mq
from . import property_types
from .conversion import Data
from .handles import (
    DESCRIPTOR,
    MessageHandle,
    Property,
    canonical,
    checked_name,
    composed,
    handle_of,
    name_of,
    options_of,
    structure,
)
from .layouts import layout, put_text
from .refusals import MQCC_WARNING, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Buffer

POSITIONS: Final = (
    mq.MQSMPO_SET_FIRST,
    mq.MQSMPO_SET_PROP_UNDER_CURSOR,
    mq.MQSMPO_SET_PROP_AFTER_CURSOR,
    mq.MQSMPO_SET_PROP_BEFORE_CURSOR,
    mq.MQSMPO_APPEND_PROPERTY,
)
INQUIRIES: Final = (
    mq.MQIMPO_CONVERT_TYPE
    | mq.MQIMPO_QUERY_LENGTH
    | mq.MQIMPO_INQ_NEXT
    | mq.MQIMPO_INQ_PROP_UNDER_CURSOR
    | mq.MQIMPO_CONVERT_VALUE
)
COMPATIBLE: Final = frozenset({"usr", "mcd", "jms", "mqext"})
FIELDS: Final[Mapping[str, str]] = {
    each.name: each.code for each in layout("MD").members if each.name not in ("StrucId", "Version")
}
FIELD_TYPES: Final[Mapping[str, int]] = {
    "i": mq.MQTYPE_INT32,
    "b": mq.MQTYPE_BYTE_STRING,
    "c": mq.MQTYPE_STRING,
    "s": mq.MQTYPE_STRING,
}


# ---- MQSETMP and MQDLTMP


def set_property(
    hconn: int, hmsg: int, smpo: Buffer | None, name: bytes, pd: Buffer | None, kind: int, value: bytes
) -> None:
    """MQSETMP.

    Raises: Refused 2005, 2046, 2111, 2112, 2114, 2442 (also for a name that the handle has, with an option that adds
    one), 2460, 2463, 2471, 2473, 2482, 2492, 2513.
    """
    handle, options, about = handle_of(hconn, hmsg), structure("SMPO", smpo), structure("PD", pd)
    if options.Options not in POSITIONS or about.Options or about.Context & ~mq.MQPD_USER_CONTEXT:
        raise Refused(mq.MQRC_OPTIONS_ERROR)
    written = name_of(name)
    read = property_types.read(kind, value, options.ValueEncoding, options.ValueCCSID)
    if written.startswith(DESCRIPTOR):
        _set_field(handle, written.removeprefix(DESCRIPTOR), kind, read)
        return
    new = Property(checked_name(written), read, kind, about.Support, about.Context, about.CopyOptions)
    Properties({new.name: read})  # raises what no message can have
    at = next(handle.matching(new.name), -1)
    if options.Options == mq.MQSMPO_SET_PROP_UNDER_CURSOR:
        at = handle.under_cursor()
        if handle.properties[at].name != new.name:
            raise Refused(mq.MQRC_PROPERTY_NAME_ERROR)
    if at >= 0 and options.Options in (mq.MQSMPO_SET_FIRST, mq.MQSMPO_SET_PROP_UNDER_CURSOR):
        handle.properties[at] = new
    elif options.Options == mq.MQSMPO_SET_PROP_AFTER_CURSOR:
        handle.insert(handle.under_cursor() + 1, new)
    elif options.Options == mq.MQSMPO_SET_PROP_BEFORE_CURSOR:
        handle.insert(handle.under_cursor(), new)
    else:
        handle.insert(len(handle.properties), new)


def _set_field(handle: MessageHandle, name: str, kind: int, value: PropertyValue) -> None:
    """Sets a field of the descriptor. Raises: Refused 2442, 2473."""
    code = FIELDS.get(name)
    if code is None:
        raise Refused(mq.MQRC_PROPERTY_NAME_ERROR)
    if kind != FIELD_TYPES[code[-1]]:
        raise Refused(mq.MQRC_PROPERTY_TYPE_ERROR)
    if isinstance(value, int):
        handle.descriptor[name] = value
        return
    length = int(code[:-1])
    data = value.encode() if isinstance(value, str) else bytes(value or b"")  # type: ignore[arg-type]
    handle.descriptor[name] = data[:length].ljust(length, b" " if code[-1] == "c" else b"\0")


def delete_property(hconn: int, hmsg: int, dmpo: Buffer | None, name: bytes) -> None:
    """MQDLTMP. Raises: Refused 2046, 2460, 2471, 2481, 2492, 2513."""
    handle = handle_of(hconn, hmsg)
    if options_of("DMPO", dmpo, mq.MQDMPO_DEL_PROP_UNDER_CURSOR):
        handle.remove(handle.under_cursor())
        return
    written = name_of(name)
    if written.startswith(DESCRIPTOR):
        if handle.descriptor.pop(written.removeprefix(DESCRIPTOR), None) is None:
            raise Refused(mq.MQRC_PROPERTY_NOT_AVAILABLE)
        return
    handle.remove(handle.place(canonical(written)))


# ---- MQINQMP


class Inquired(NamedTuple):
    """The result of MQINQMP: MQ's type, the length of the whole value, the name, and the reason of a warning or 0."""

    kind: int
    length: int
    name: bytes
    completion: int
    reason: int


def inquire(
    hconn: int, hmsg: int, impo: Buffer | None, name: bytes, pd: Buffer | None, kind: int, buffer: Buffer
) -> Inquired:
    """MQINQMP: writes the value into the buffer, and the outputs into `impo` and `pd`.

    Args:
        kind: with MQIMPO_CONVERT_TYPE the wanted type.
        buffer: as long as the value may be. Of a longer value it gets what fits, with the whole length and 2469.

    Raises: Refused 2046, 2460, 2464, 2470, 2471, 2472, 2473, 2482, 2492, 2513.
    """
    handle, options, about = handle_of(hconn, hmsg), structure("IMPO", impo), structure("PD", pd)
    if options.Options & ~INQUIRIES or about.Options:
        raise Refused(mq.MQRC_OPTIONS_ERROR)
    at, found = _found(handle, options.Options, name_of(name))
    asked = kind if options.Options & mq.MQIMPO_CONVERT_TYPE else mq.MQTYPE_AS_SET
    value = property_types.converted(found.value, found.kind, asked)
    kind = asked if asked != mq.MQTYPE_AS_SET else found.kind
    encoding, characters = mq.MQENC_NATIVE, mq.MQCCSI_APPL
    if options.Options & mq.MQIMPO_CONVERT_VALUE:
        encoding, characters = options.RequestedEncoding, options.RequestedCCSID
    data, encoding, characters, reason = property_types.written(kind, value, encoding, characters)
    returned = found.name.encode()
    fault = _write_name(impo, options, returned)
    view = memoryview(buffer).cast("B")
    if not options.Options & mq.MQIMPO_QUERY_LENGTH:
        view[: len(data)] = data[: len(view)]
        if len(data) > len(view):
            fault = fault or mq.MQRC_PROPERTY_VALUE_TOO_BIG
    if not fault and at >= 0:
        handle.point(at)
    options.ReturnedEncoding, options.ReturnedCCSID = encoding, characters
    if impo is not None:
        layout("IMPO").write(impo, options)
    if pd is not None:
        about.Support, about.Context, about.CopyOptions = found.support, found.context, found.copy
        layout("PD").write(pd, about)
    completion = mq.MQCC_FAILED if fault else MQCC_WARNING if reason else mq.MQCC_OK
    return Inquired(kind, len(data), returned, completion, fault or reason)


def _found(handle: MessageHandle, options: int, name: str) -> tuple[int, Property]:
    """The property that is asked for, with its place; -1 for a field of the descriptor. Raises: Refused 2471."""
    if name.startswith(DESCRIPTOR):
        return -1, _field(handle, name.removeprefix(DESCRIPTOR))
    if options & mq.MQIMPO_INQ_PROP_UNDER_CURSOR:
        at = handle.under_cursor()
    else:
        at = next(handle.matching(name, handle.cursor + 1 if options & mq.MQIMPO_INQ_NEXT else 0), -1)
    if at < 0:
        raise Refused(mq.MQRC_PROPERTY_NOT_AVAILABLE)
    return at, handle.properties[at]


def _field(handle: MessageHandle, name: str) -> Property:
    value = handle.descriptor.get(name)
    if value is None:
        raise Refused(mq.MQRC_PROPERTY_NOT_AVAILABLE)
    kind = FIELD_TYPES[FIELDS[name][-1]]
    if kind == mq.MQTYPE_STRING:
        value = value.decode("utf-8", "replace").rstrip(" \0")
    return Property(DESCRIPTOR + name, value, kind)


def _write_name(impo: Any, options: Any, name: bytes) -> int:
    """Writes the name to the program's buffer, if it gave one; returns the reason if it is too long for that."""
    string = options.ReturnedName
    if impo is None or not (string.Ptr or string.Offset):
        return 0
    base = ctypes.addressof(ctypes.c_char.from_buffer(impo)) if string.Offset else 0
    if options.Options & mq.MQIMPO_QUERY_LENGTH or 0 < string.BufSize < len(name):
        options.ReturnedName = string._replace(Length=len(name))
        return 0 if options.Options & mq.MQIMPO_QUERY_LENGTH else int(mq.MQRC_PROPERTY_NAME_TOO_BIG)
    options.ReturnedName = put_text(string, name, base)
    return 0


# ---- MQMHBUF and MQBUFMH


def into_buffer(
    hconn: int, hmsg: int, mhbo: Buffer | None, name: bytes, md: Buffer | None, buffer: Buffer
) -> tuple[int, int]:
    """MQMHBUF: writes an MQRFH2 with the properties of this name into the buffer, and describes it in `md`.

    Returns: the length of the header, and 0, or 2469 if the buffer is shorter.

    Raises: Refused 2026, 2046, 2460, 2471, 2492, 2501, 2513.
    """
    handle = handle_of(hconn, hmsg)
    options = options_of("MHBO", mhbo, mq.MQMHBO_PROPERTIES_IN_MQRFH2 | mq.MQMHBO_DELETE_PROPERTIES)
    chosen = list(handle.matching(name_of(name)))
    if not chosen:
        raise Refused(mq.MQRC_PROPERTY_NOT_AVAILABLE)
    about = structure("MD", md)
    properties = {handle.properties[at].name: handle.properties[at].value for at in chosen}
    made = _with_header(Data(b"", about.Format, about.Encoding, about.CodedCharSetId), properties, is_new=True)
    view = memoryview(buffer).cast("B")
    if len(made.body) > len(view):
        return len(made.body), int(mq.MQRC_PROPERTY_VALUE_TOO_BIG)
    view[: len(made.body)] = made.body
    _describe(md, about, made)
    if options & mq.MQMHBO_DELETE_PROPERTIES:
        for at in reversed(chosen):
            handle.remove(at)
    return len(made.body), 0


def from_buffer(hconn: int, hmsg: int, bmho: Buffer | None, md: Buffer | None, buffer: Buffer) -> int:
    """MQBUFMH: gives the handle the properties of the headers in the buffer.

    With MQBMHO_DELETE_PROPERTIES, MQBMHO's default, it removes them from the buffer and describes the rest in `md`.

    Returns: the length of the data in the buffer.

    Raises: Refused 2026, 2046, 2334, 2421, 2460, 2489.
    """
    handle = handle_of(hconn, hmsg)
    options = options_of("BMHO", bmho, mq.MQBMHO_DELETE_PROPERTIES)
    about = structure("MD", md)
    view = memoryview(buffer).cast("B")
    data, properties = unfolded(Data(bytes(view), about.Format, about.Encoding, about.CodedCharSetId))
    handle.fill(properties)
    handle.descriptor = {name: getattr(about, name) for name in FIELDS}
    if not options & mq.MQBMHO_DELETE_PROPERTIES:
        return len(view)
    view[: len(data.body)] = data.body
    _describe(md, about, data)
    return len(data.body)


def _describe(md: Buffer | None, about: Any, data: Data) -> None:
    about.Format, about.Encoding, about.CodedCharSetId = data.format, data.encoding, data.ccsid
    if md is not None:
        layout("MD").write(md, about)


# ---- puts and gets


def unfolded(data: Data) -> tuple[Data, Properties]:
    """The data without the property folders of an MQRFH2 at its front, and their properties.

    A header in EBCDIC, and one with a property that a message cannot have, stays as it is.

    Raises: Refused 2334, the header is malformed; 2421, one of its folders is.
    """
    message = _message(data, {})
    if data.format != mq.MQFMT_RF_HEADER_2 or data.body[:4] == EBCDIC:
        return data, message.properties
    try:
        left = rfh2.parsed(message)
    except rfh2.MalformedHeader as error:
        raise Refused(mq.MQRC_RFH_FORMAT_ERROR if error.in_folder else mq.MQRC_RFH_ERROR) from error
    except ArgumentError:
        left = message
    return _data(left), left.properties


EBCDIC: Final = "RFH ".encode("cp500")


def at_put(hconn: int, data: Data, original: int, new: int, action: int) -> tuple[Data, Properties]:
    """The data and the properties of a message that is put.

    Args:
        original, new, action: the fields of MQPMO; 0: the handle is not given. They take precedence over a header.

    Raises: Refused, as `unfolded` and `handles.composed`; ArgumentError 2478, 2498, the properties do not go together.
    """
    data, properties = unfolded(data)
    given = composed(hconn, original, new, action)
    return data, Properties({**properties, **given}) if given else properties


def handle_for_get(hconn: int, hmsg: int, headers: int) -> MessageHandle | None:
    """Before a get: the handle that gets the properties; None: none does.

    Args:
        hmsg: MsgHandle of MQGMO.
        headers: MQGMO_PROPERTIES_* and MQGMO_NO_PROPERTIES.

    Raises: Refused 2460, also if MQGMO_PROPERTIES_IN_HANDLE comes without a handle.
    """
    if headers not in (mq.MQGMO_PROPERTIES_AS_Q_DEF, mq.MQGMO_PROPERTIES_IN_HANDLE):
        return None
    if not hmsg and headers == mq.MQGMO_PROPERTIES_AS_Q_DEF:
        return None
    return handle_of(hconn, hmsg)


def at_get(data: Data, properties: Properties, headers: int, handle: MessageHandle | None) -> Data:
    """The data as a get returns it, before any conversion; fills the handle.

    Args:
        headers: as in `handle_for_get`, which gave the handle.
    """
    if handle is not None:
        handle.fill(properties)
        return data
    if not properties or headers == mq.MQGMO_NO_PROPERTIES:
        return data
    if headers != mq.MQGMO_PROPERTIES_FORCE_MQRFH2 and not any(map(_is_compatible, properties)):
        return data
    return _with_header(data, properties)


def got(handle: MessageHandle, md: Buffer) -> None:
    """After a get: the handle has the fields of the descriptor, as Root.MQMD properties."""
    about = layout("MD").read(md)
    handle.descriptor = {name: getattr(about, name) for name in FIELDS}


def _is_compatible(name: str) -> bool:
    folder, dot, _ = rfh2.FULL_NAMES.get(name, name).partition(".")
    return not dot or folder in COMPATIBLE


def _with_header(data: Data, properties: Mapping[str, PropertyValue], *, is_new: bool = False) -> Data:
    message = _message(data, properties)
    return _data(rfh2.folded(message, is_new=is_new))


def _message(data: Data, properties: Mapping[str, PropertyValue]) -> Message:
    return Message(
        data.body,
        format=data.format.decode("ascii", "replace").rstrip(" \0"),
        encoding=data.encoding,
        coded_character_set_id=data.ccsid,
        properties=properties,
    )


def _data(message: Message) -> Data:
    return Data(
        message.body,
        message.format.encode("ascii", "replace").ljust(8),
        message.encoding,
        message.coded_character_set_id,
    )
