"""The JSON schemas of messages, ids and results, which `inorder.formats.json_lines` reads and writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...formats.json_lines import FIELDS, FILLED_IN, IDS
from ...model.fields import GIVEN
from .describing import Schema, listed, record, ref, value

BODY: Final[Mapping[str, Schema]] = {
    "body": value("string", "the body, as text"),
    "body_base64": value("string", "the body, as bytes", contentEncoding="base64"),
}
HOW: Final[Mapping[str, str]] = {
    "report": "Report options: the sum of MQ's MQRO values.",
    "message_type": "1 a request, 2 a reply, 4 a report, 8 a datagram; from 65536 defined by applications.",
    "expiry": "Seconds until it expires; null if it never does.",
    "encoding": "The encoding of numbers in the body: the sum of MQ's MQENC values.",
    "priority": "0 (lowest) to 9; more than 9 counts as 9.",
    "persistent": "Whether it survives a restart.",
    "message_id": "Identifies the message: 24 bytes.",
    "put_at": "Origin context: the time of the put (not of the commit), in UTC.",
    "group_id": "Identifies its group: 24 bytes; null if it is in no group.",
    "flags": "A sum of: 1 may be segmented, 2 a segment, 4 the last segment, 8 in a group, 16 the last of its group.",
    "transmission": "On a transmission queue: the destination, an object with queue and manager; otherwise null.",
    "properties": "Properties of the application: an object of names and values. Bytes are a list with one text in "
    "hex.",
}
"""Descriptions of the fields whose values in JSON differ from those in Python."""
BY_DEFAULT: Final = "null, or without this key: the queue's default."
HOW_TO_PUT: Final[Mapping[str, str]] = {
    "expiry": "Time to live in seconds from the put; null: it never expires. Without this key: the queue's default.",
    "encoding": f"{HOW['encoding']} Without this key: that of the server's machine.",
    "priority": f"{HOW['priority']} {BY_DEFAULT}",
    "persistent": f"{HOW['persistent']} {BY_DEFAULT}",
    "message_id": "Identifies the message: 24 bytes. null, or without this key: the queue manager generates one.",
    "group_id": "Identifies its group: 24 bytes; null if it is in no group, or in a new one, depending on its flags.",
}
"""Descriptions of the fields that mean more in a message to put."""
HEX_OR_NULL: Final[Schema] = value("string null", pattern="^([0-9a-fA-F]{2})*$")


def _of_field(name: str) -> Schema:
    """A field of the descriptor in an answer."""
    about = _about(name)
    if name in IDS:
        return {**HEX_OR_NULL, "description": f"{about} In hex, without trailing NULs; null if it is all NULs."}
    match name:
        case "put_at":
            return value("string", about, format="date-time")
        case "properties":
            return value("object", about, additionalProperties=value("string number boolean null array"))
        case "transmission":
            return value("object null", about)
    kind = GIVEN[name].kind
    assert kind is not None
    word = str(kind.schema["type"])
    return value(f"{word} null" if None in kind.also.values() else word, about)


def _to_put(name: str) -> Schema:
    """The field in a message to put, where an id may also be a text."""
    about = HOW_TO_PUT.get(name, _about(name))
    if name in IDS:
        return value("string null", f"{about} In hex, or text:TEXT; a shorter one gets NULs.")
    return {**_of_field(name), "description": about}


def _about(name: str) -> str:
    return HOW.get(name) or str(GIVEN[name].__doc__)


WARNING: Final = value("string null", "the name of the warning's reason")
SCHEMAS: Final[Mapping[str, Schema]] = {
    "Message": {
        "type": "object",
        "description": (
            "A message to put: one of body, body_base64 and body_json, and fields of the descriptor. Keys that only "
            "the queue manager sets are ignored, so that a message from a get can be put. The user and time of the "
            "put are ignored too; the server sets them to the present user and time."
        ),
        "properties": {
            **{name: _to_put(name) for name in FIELDS},
            **BODY,
            "body_json": {"description": "the body, as any JSON value"},
            **{name: {"description": "passed over"} for name in FILLED_IN},
        },
        "additionalProperties": False,
        "oneOf": [{"required": [name]} for name in (*BODY, "body_json")],
    },
    "GotMessage": record(
        {
            **{name: _of_field(name) for name in FIELDS},
            **BODY,
            "length": value("integer", "the length of the whole body in bytes"),
            "backout_count": value("integer", "the number of times that a get of it was backed out"),
            "token": value("string", "identifies it on its queue"),
            "uid": {"anyOf": [ref("UniqueId"), {"type": "null"}]},
            "place": value("object null", "its place: rank, number, ordinal"),
            "warning": WARNING,
        },
        optional=BODY.keys(),
        about="A message from a get or browse: body if it is UTF-8 text, otherwise body_base64.",
    ),
    "UniqueId": {
        **record(
            {
                "origin": value("string", minLength=1),
                "number": value("integer", minimum=1, maximum=2**63 - 1),
            },
            about="Identifies a message permanently.",
        ),
        "examples": [{"origin": "QM1", "number": 17}],
    },
    "Messages": record({"messages": listed("Message", minItems=1)}),
    "GotMessages": record({"messages": listed("GotMessage", minItems=1)}, is_open=True),
    "PutResult": record(
        {
            "queue": value("string"),
            "message_id": HEX_OR_NULL,
            "correlation_id": HEX_OR_NULL,
            "group_id": HEX_OR_NULL,
            "sequence_number": value("integer", "the next message of the group has one more"),
            "offset": value("integer"),
            "flags": value("integer"),
            "uid": ref("UniqueId"),
            "warning": WARNING,
            "duplicate_of": {
                "anyOf": [ref("UniqueId"), {"type": "null"}],
                "description": "this request put nothing: this message was put earlier under the same key",
            },
        },
        optional=["correlation_id", "offset", "flags"],
        is_open=True,
    ),
    "PutResults": record({"results": listed("PutResult")}, is_open=True),
}
