"""A message and the headers that describe it: `ibm-mq-md-...` and `ibm-mq-usr`, in the three versions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

from ..errors import ArgumentError
from ..model.attribute import is_name
from ..model.fields import EXPIRY_SECONDS_MIN
from ..model.message import NO_ID, Got, Message
from ..model.options import EVERYTHING, Match
from ..model.parameters import Integer, Switch
from . import user_properties
from .calls import Call
from .problems import must_be, problem

TEXT: Final = "MQSTR"
AS_TEXT: Final[Mapping[str, Any]] = {"format": TEXT, "coded_character_set_id": 1208}  # UTF-8
EXPIRY: Final = Integer(0, 99_999_999_900, what="a number of milliseconds", also={"unlimited": 0})
PERSISTENCE: Final = Switch(("persistent", "nonPersistent"))
PRIORITY: Final = Integer(0, 9, also={"asDestination": None})
PRIORITY_OF_JMS: Final = 4  # the priority in versions 1 and 2, which have no header for it
PREFIX: Final = "ID:"
HEX_ID: Final = re.compile(r"[0-9a-fA-F]{48}")
HEADER_MAX: Final = 65_536  # bytes of one header of an answer
REVERSED: Final = 2  # of MQENC: integers with their low byte first

# Character sets of texts that other programs have put, by MQ's numbers.
CODECS: Final[Mapping[int, str]] = {
    1208: "utf-8", 819: "latin-1", 923: "iso8859-15", 912: "iso8859-2", 1250: "cp1250", 1251: "cp1251", 1252: "cp1252",
    437: "cp437", 850: "cp850", 858: "cp858", 37: "cp037", 500: "cp500", 1140: "cp1140", 367: "ascii",
}  # fmt: skip
UTF_16: Final = frozenset({1200, 13488, 17584})


# ---- the message of a put


def message_of(call: Call, body: bytes) -> Message:
    """The message of a request that puts. Raises: Problem 400, if a header is not valid."""
    fields: dict[str, Any] = {**AS_TEXT, "persistent": False, **call.identity.context}
    if call.version < 3:
        fields["priority"] = PRIORITY_OF_JMS
    known = OF_ALL_IN_3 if call.version >= 3 else OF_ALL
    for name in call.header_names(b"ibm-mq-md-", b"ibm-mq-usr"):
        if name not in known:
            allowed = f"headers of version {call.version} are {', '.join(known)}"
            raise problem("MQWB0302E", name, ", ".join(call.headers(name)), allowed)
        given = ",".join(call.headers(name)) if name == USER else call.header(name) or ""
        try:
            fields |= known[name](call, given.strip())
        except ValueError as error:  # ArgumentError is one
            why = must_be(error) if isinstance(error, ArgumentError) and error.data["argument"] == name else error
            raise problem("MQWB0302E", name, given, why) from None
    try:
        return Message(body, **fields)
    except ArgumentError as error:
        given = ", ".join(call.headers(USER))
        raise problem("MQWB0302E", USER if "properties" in fields else "ibm-mq-md", given, error.args[0]) from None


def _correlation(call: Call, value: str) -> dict[str, Any]:
    return {"correlation_id": correlation_id_of(call, value)}


def _expiry(_: Call, value: str) -> dict[str, Any]:
    given = EXPIRY.read("ibm-mq-md-expiry", value)
    return {"expiry": max(given / 1000, EXPIRY_SECONDS_MIN) if given else math.inf}


def _persistence(_: Call, value: str) -> dict[str, Any]:
    return {"persistent": PERSISTENCE.read("ibm-mq-md-persistence", value)}


def _reply_to(_: Call, value: str) -> dict[str, Any]:
    queue, separator, manager = value.partition("@")
    if not is_name(queue) or (separator and not is_name(manager)):
        raise ValueError("must be myReplyQueue, or myReplyQueue@myReplyQMgr")
    return {"reply_to_queue": queue, "reply_to_queue_manager": manager}


def _priority(_: Call, value: str) -> dict[str, Any]:
    return {"priority": PRIORITY.read("ibm-mq-md-priority", value)}


def _properties(call: Call, _: str) -> dict[str, Any]:
    return {"properties": user_properties.read(call.headers(USER))}


USER: Final = "ibm-mq-usr"
Reader = Callable[[Call, str], dict[str, Any]]
OF_ALL: Final[Mapping[str, Reader]] = {
    "ibm-mq-md-correlationid": _correlation,
    "ibm-mq-md-expiry": _expiry,
    "ibm-mq-md-persistence": _persistence,
    "ibm-mq-md-replyto": _reply_to,
}
OF_ALL_IN_3: Final[Mapping[str, Reader]] = {**OF_ALL, "ibm-mq-md-priority": _priority, USER: _properties}


# ---- ids


def correlation_id_of(call: Call, value: str) -> bytes:
    """Reads a correlation id of a client. Raises: ValueError."""
    if call.version < 3 or value.startswith(PREFIX):
        return _hex_id(call, value)
    data = value.encode("utf-8", "surrogatepass")
    if not 1 <= len(data) <= len(NO_ID):
        raise ValueError(f"must be {PREFIX} and 48 hexadecimal digits, or a text of 1 to {len(NO_ID)} bytes")
    return data


def _hex_id(call: Call, value: str) -> bytes:
    prefix = PREFIX if call.version >= 3 else ""
    digits = value.removeprefix(prefix)
    if not value.startswith(prefix) or HEX_ID.fullmatch(digits) is None:
        raise ValueError(f"must be {'ID: and ' if prefix else ''}48 hexadecimal digits")
    return bytes.fromhex(digits)


def match_of(call: Call, given: Mapping[str, str]) -> Match:
    """The match in a query. Raises: Problem 400, if an id is not valid."""
    readers = {"messageId": ("message_id", _hex_id), "correlationId": ("correlation_id", correlation_id_of)}
    chosen: dict[str, Any] = {}
    for name, (field, reader) in readers.items():
        if name in given:
            try:
                chosen[field] = reader(call, given[name])
            except ValueError as error:
                raise problem("INWB0003E", name, error) from None
    return Match(**chosen) if chosen else EVERYTHING


def shown_id(call: Call, value: bytes) -> str:
    """A message id for an answer."""
    return f"{PREFIX if call.version >= 3 else ''}{value.hex()}"


def shown_correlation(call: Call, value: bytes) -> str:
    """A correlation id for an answer; in version 3 as text if it looks like an application's own."""
    text = value.rstrip(b"\0")
    if call.version >= 3 and text and not text.startswith(b"ID:") and all(0x21 <= one <= 0x7E for one in text):
        return text.decode("ascii")
    return shown_id(call, value)


# ---- the answers of a get and a browse


def text_of(message: Got) -> str:
    """The text of a message. Raises: Problem 501, if it is not text."""
    number = message.coded_character_set_id
    codec = CODECS.get(number)
    if number in UTF_16:
        codec = "utf-16-le" if message.encoding & 0xF == REVERSED else "utf-16-be"
    if message.format.strip() == TEXT and codec is not None:
        try:
            return message.body.decode(codec)
        except UnicodeDecodeError:
            pass
    raise problem("MQWB0309E", message.format.strip(), number)


def headers_of(call: Call, message: Got) -> dict[str, str]:
    """The headers that describe a message. Raises: Problem 501, if one would be too long."""
    headers = {"ibm-mq-md-messageId": shown_id(call, message.message_id)}
    if message.correlation_id != NO_ID:
        headers["ibm-mq-md-correlationId"] = shown_correlation(call, message.correlation_id)
    ms = message.expiry * 1000
    headers["ibm-mq-md-expiry"] = "unlimited" if ms == math.inf else str(int(ms))
    headers["ibm-mq-md-persistence"] = "persistent" if message.persistent else "nonPersistent"
    if message.reply_to_queue:
        manager = message.reply_to_queue_manager
        headers["ibm-mq-md-replyTo"] = _plain(
            f"{message.reply_to_queue}@{manager}" if manager else message.reply_to_queue
        )
    if call.version >= 3:
        headers["ibm-mq-md-priority"] = str(message.priority)
        if message.properties:
            headers[USER] = user_properties.written(message.properties)
    for name, value in headers.items():
        if len(value) > HEADER_MAX:
            raise problem("MQWB0304E", name)
    return headers


def _plain(text: str) -> str:
    return quote(text, safe="/@%!#$&'()*+,;=:?[]~ ")
