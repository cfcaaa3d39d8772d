"""The names in selectors that stand for fields of the message.

`Root.MQMD.Priority` and similar names are MQ's for the fields of the descriptor, spelled as in the C structure. Names
that begin with JMS are the header fields and JMSX properties that IBM's classes for JMS map to the descriptor. All
other names are properties, including `JMSType`.

A field is read from the message's attribute `source`. A literal that is compared with a field is first converted to
the form of the field: an id without its padding matches, and so does a text with trailing blanks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ..model.fields import NO_ACCOUNTING
from ..model.message import Message, mq_date, mq_time
from ..model.parameters import ID_LENGTH

NUMBER, TEXT, BYTES, BOOLEAN, ANY = "a number", "a text", "a byte string", "a boolean", "anything"
ROOT: Final = "Root.MQMD."
JMS: Final = "JMS"
UNLIMITED: Final = -1  # MQEI_UNLIMITED
ID: Final = "ID:"


class SelectorField(NamedTuple):
    """A field as selectors see it."""

    source: str  # the field of `Message` that it is read from
    kind: str
    value: Callable[[Any], Any] | None = None  # converts the message's value; None: unchanged
    literal: Callable[[Any], Any] | None = None  # converts the literal. Raises ValueError if it can never be equal


def _without_blanks(literal: str) -> str:
    return literal.rstrip(" \0")


def _padded(length: int) -> Callable[[bytes], bytes]:
    def literal(given: bytes) -> bytes:
        if len(given) > length:
            raise ValueError(f"the field has {length} bytes, but this byte string has {len(given)}")
        return given.ljust(length, b"\0")

    return literal


_padded_id = _padded(ID_LENGTH)


def _jms_id(stored: bytes) -> str | None:
    return f"{ID}{stored.hex()}" if any(stored) else None


def _jms_id_literal(given: str) -> str:
    """Converts a JMS id: `ID:` and hex digits are bytes; any other text is encoded as UTF-8, as IBM's classes do."""
    try:
        octets = bytes.fromhex(given[len(ID) :]) if given.startswith(ID) else given.encode()
    except ValueError:
        raise ValueError("after ID: there must be pairs of hex digits") from None
    return f"{ID}{_padded_id(octets).hex()}"


def _tenths_left(expiry: float | None) -> int | None:
    return None if expiry is None else UNLIMITED if expiry == math.inf else round(expiry * 10)


def _milliseconds(at: float) -> int:
    return round(at * 1000)


def _or_null(text: str) -> str | None:
    return text or None


def _delivery_mode(persistent: bool | None) -> str | None:
    return None if persistent is None else "PERSISTENT" if persistent else "NON_PERSISTENT"


def _persistence(persistent: bool | None) -> int | None:
    return None if persistent is None else int(persistent)


def _delivery_count(backouts: int) -> int:
    return backouts + 1


def _fields_of(kind: type, name: str, literal: Callable[[Any], Any] | None = None) -> dict[str, SelectorField]:
    """The fields of MQ's descriptor whose values are of that type; the length of the data is none of them."""
    fields = (
        field
        for field in Message.FIELDS.values()
        if type(field.default) is kind and field.name != "length" and not field.mq_name.startswith("(")
    )
    return {field.mq_name: SelectorField(field.name, name, None, literal) for field in fields}


_OF_DESCRIPTOR: dict[str, SelectorField] = {
    **_fields_of(int, NUMBER),
    **_fields_of(str, TEXT, _without_blanks),
    "Expiry": SelectorField("expiry", NUMBER, _tenths_left),
    "Priority": SelectorField("priority", NUMBER),
    "Persistence": SelectorField("persistent", NUMBER, _persistence),
    "MsgId": SelectorField("message_id", BYTES, None, _padded_id),
    "CorrelId": SelectorField("correlation_id", BYTES, None, _padded_id),
    "GroupId": SelectorField("group_id", BYTES, None, _padded_id),
    "AccountingToken": SelectorField("accounting_token", BYTES, None, _padded(len(NO_ACCOUNTING))),
    "PutDate": SelectorField("put_at", TEXT, mq_date),
    "PutTime": SelectorField("put_at", TEXT, mq_time),
}

FIELDS: Final[dict[str, SelectorField]] = {
    **{ROOT + name: field for name, field in sorted(_OF_DESCRIPTOR.items())},
    "JMSCorrelationID": SelectorField("correlation_id", TEXT, _jms_id, _jms_id_literal),
    "JMSDeliveryMode": SelectorField("persistent", TEXT, _delivery_mode),
    "JMSMessageID": SelectorField("message_id", TEXT, _jms_id, _jms_id_literal),
    "JMSPriority": SelectorField("priority", NUMBER),
    "JMSTimestamp": SelectorField("put_at", NUMBER, _milliseconds),
    "JMSXAppID": SelectorField("put_application_name", TEXT, _or_null, _without_blanks),
    "JMSXDeliveryCount": SelectorField("backout_count", NUMBER, _delivery_count),
    "JMSXGroupID": SelectorField("group_id", TEXT, _jms_id, _jms_id_literal),
    "JMSXGroupSeq": SelectorField("sequence_number", NUMBER),
    "JMSXUserID": SelectorField("user_identifier", TEXT, _or_null, _without_blanks),
}
