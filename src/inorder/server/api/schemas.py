"""What messages, ids and results are as JSON; `inorder.formats.json_lines` reads and writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...formats.json_lines import FIELDS, FILLED_IN, IDS
from ...model.fields import GIVEN
from .describing import Schema, ref

BODY: Final[Mapping[str, Schema]] = {
    "body": {"type": "string", "description": "the body, as text"},
    "body_base64": {"type": "string", "contentEncoding": "base64", "description": "the body, as bytes"},
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
"""Fields of the descriptor that JSON has in another way than Python: what they say here."""
BY_DEFAULT: Final = "null, or without this key: the queue's default."
HOW_TO_PUT: Final[Mapping[str, str]] = {
    "expiry": "Time to live in seconds from the put; null for ever. Without this key: the queue's default.",
    "encoding": f"{HOW['encoding']} Without this key: that of the server's machine.",
    "priority": f"{HOW['priority']} {BY_DEFAULT}",
    "persistent": f"{HOW['persistent']} {BY_DEFAULT}",
    "message_id": "Identifies the message: 24 bytes. null, or without this key: the queue manager generates one.",
    "group_id": "Identifies its group: 24 bytes; null if it is in no group, or in a new one, depending on its flags.",
}
"""The same of a message that is to be put, where it means more then."""
IN_HEX: Final[Schema] = {"type": ["string", "null"], "pattern": "^([0-9a-fA-F]{2})*$"}


def _of_field(name: str) -> Schema:
    """What a field of the descriptor is in an answer."""
    text = {"description": _said(name)}
    if name in IDS:
        return {**IN_HEX, "description": f"{_said(name)} In hex, without trailing NULs; null if it is all NULs."}
    if name == "put_at":
        return {"type": "string", "format": "date-time"} | text
    if name == "properties":
        values = {"type": ["string", "number", "boolean", "null", "array"]}
        return {"type": "object", "additionalProperties": values} | text
    if name == "transmission":
        return {"type": ["object", "null"]} | text
    kind = GIVEN[name].kind
    assert kind is not None
    word = kind.schema["type"]
    return {"type": [word, "null"] if None in kind.also.values() else word} | text


def _to_put(name: str) -> Schema:
    """The same of a message that is to be put: an id may be a text, too."""
    said = HOW_TO_PUT.get(name, _said(name))
    if name in IDS:
        return {"type": ["string", "null"], "description": f"{said} In hex, or text:TEXT; a shorter one gets NULs."}
    return {**_of_field(name), "description": said}


def _said(name: str) -> str:
    return HOW.get(name) or str(GIVEN[name].__doc__)


def listed(name: str, **more: Any) -> Schema:
    """An array of a schema."""
    return {"type": "array", "items": ref(name), **more}


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
    "GotMessage": {
        "type": "object",
        "description": "A message from a get or browse: body if it is UTF-8 text, otherwise body_base64.",
        "required": [*FIELDS, *FILLED_IN],
        "properties": {
            **{name: _of_field(name) for name in FIELDS},
            **BODY,
            "length": {"type": "integer", "description": "the length of the whole body in bytes"},
            "backout_count": {"type": "integer", "description": "the number of times that a get of it was backed out"},
            "token": {"type": "string", "description": "identifies it on its queue"},
            "uid": {"anyOf": [ref("UniqueId"), {"type": "null"}]},
            "place": {"type": ["object", "null"], "description": "its place: rank, number, ordinal"},
            "warning": {"type": ["string", "null"], "description": "the name of the warning's reason"},
        },
        "additionalProperties": False,
    },
    "UniqueId": {
        "type": "object",
        "description": "Identifies a message permanently.",
        "examples": [{"origin": "QM1", "number": 17}],
        "required": ["origin", "number"],
        "properties": {
            "origin": {"type": "string", "minLength": 1},
            "number": {"type": "integer", "minimum": 1, "maximum": 2**63 - 1},
        },
        "additionalProperties": False,
    },
    "Messages": {
        "type": "object",
        "required": ["messages"],
        "properties": {"messages": listed("Message", minItems=1)},
        "additionalProperties": False,
    },
    "GotMessages": {
        "type": "object",
        "required": ["messages"],
        "properties": {"messages": listed("GotMessage", minItems=1)},
    },
    "PutResult": {
        "type": "object",
        "required": ["queue", "message_id", "group_id", "sequence_number", "uid", "warning", "duplicate_of"],
        "properties": {
            "queue": {"type": "string"},
            "message_id": IN_HEX,
            "correlation_id": IN_HEX,
            "group_id": IN_HEX,
            "sequence_number": {"type": "integer", "description": "the next message of the group has one more"},
            "offset": {"type": "integer"},
            "flags": {"type": "integer"},
            "uid": ref("UniqueId"),
            "warning": {"type": ["string", "null"], "description": "the name of the warning's reason"},
            "duplicate_of": {
                "anyOf": [ref("UniqueId"), {"type": "null"}],
                "description": "this request put nothing: this message was put earlier under the same key",
            },
        },
    },
    "PutResults": {
        "type": "object",
        "required": ["results"],
        "properties": {"results": listed("PutResult")},
    },
}
