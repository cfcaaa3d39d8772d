"""What messages, ids and results are as JSON; `inorder.formats.json_lines` reads and writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...formats.json_lines import FIELDS, FILLED_IN, IDS
from ...model.message import Message
from .describing import Schema, ref

NULLABLE: Final = frozenset({"expiry", "priority", "persistent"})
BODY: Final[Mapping[str, Schema]] = {
    "body": {"type": "string", "description": "the body, as text"},
    "body_base64": {"type": "string", "contentEncoding": "base64", "description": "the body, as bytes"},
}
HOW: Final[Mapping[str, str]] = {
    "report": "Report options: the numbers of MQ's MQRO options, added up.",
    "message_type": "1 a request, 2 a reply, 4 a report, 8 a datagram; from 65536 on an application's own.",
    "expiry": "Seconds that it has left; null: it never expires.",
    "encoding": "How numbers in the body are written: MQ's MQENC numbers, added up.",
    "priority": "0 (lowest) to 9; more than 9 counts as 9.",
    "persistent": "Whether it survives a restart.",
    "message_id": "Names the message: 24 bytes.",
    "put_at": "Origin context: when it was put (not committed), in UTC.",
    "group_id": "Names its group: 24 bytes; null: it is in no group.",
    "flags": "Added up: 1 may be segmented, 2 a segment, 4 the last one, 8 in a group, 16 the last of it.",
    "transmission": "On a transmission queue: where it is to go, as an object of queue and manager; else null.",
    "properties": "Names of the program's own, and their values: an object. Bytes are a list of one text, in hex.",
}
"""Fields of the descriptor that JSON has in another way than Python: what they say here."""
BY_DEFAULT: Final = "null, or without this key: the queue's default."
HOW_TO_PUT: Final[Mapping[str, str]] = {
    "expiry": "Seconds to live from the put; null: for ever. Without this key: the queue's default.",
    "encoding": f"{HOW['encoding']} Without this key: as the server's machine writes them.",
    "priority": f"{HOW['priority']} {BY_DEFAULT}",
    "persistent": f"{HOW['persistent']} {BY_DEFAULT}",
    "message_id": "Names the message: 24 bytes. null, or without this key: the queue manager makes one.",
    "group_id": "Names its group: 24 bytes; null: it is in no group, or in a new one, as its flags say.",
}
"""The same of a message that is to be put, where it means more then."""
IN_HEX: Final[Schema] = {"type": ["string", "null"], "pattern": "^([0-9a-fA-F]{2})*$"}


def _of_field(name: str) -> Schema:
    """What a field of the descriptor is in an answer."""
    text = {"description": _said(name)}
    if name in IDS:
        return {**IN_HEX, "description": f"{_said(name)} In hex, without NULs at its end; null: nothing but NULs."}
    if name == "put_at":
        return {"type": "string", "format": "date-time"} | text
    if name == "properties":
        values = {"type": ["string", "number", "boolean", "null", "array"]}
        return {"type": "object", "additionalProperties": values} | text
    if name == "transmission":
        return {"type": ["object", "null"]} | text
    kind = {int: "integer", float: "number", str: "string", bool: "boolean"}.get(type(Message.FIELDS[name].default))
    if name in NULLABLE:
        return {"type": [{"expiry": "number", "priority": "integer", "persistent": "boolean"}[name], "null"]} | text
    return {"type": kind} | text


def _to_put(name: str) -> Schema:
    """The same of a message that is to be put: an id may be a text, too."""
    said = HOW_TO_PUT.get(name, _said(name))
    if name in IDS:
        return {"type": ["string", "null"], "description": f"{said} In hex, or text:TEXT; a shorter one gets NULs."}
    return {**_of_field(name), "description": said}


def _said(name: str) -> str:
    return HOW.get(name) or str(Message.FIELDS[name].__doc__)


def listed(name: str, **more: Any) -> Schema:
    """An array of a schema."""
    return {"type": "array", "items": ref(name), **more}


SCHEMAS: Final[Mapping[str, Schema]] = {
    "Message": {
        "type": "object",
        "description": (
            "A message to put: one of body, body_base64 and body_json, and fields of the descriptor. Keys that only "
            "the queue manager fills in may be there, and are passed over, so that what was got can be put. So are "
            "those that say who put it, and when: it is the user who asks, by the server, now."
        ),
        "properties": {
            **{name: _to_put(name) for name in FIELDS},
            **BODY,
            "body_json": {"description": "the body, as any value: its JSON is the body"},
            **{name: {"description": "passed over"} for name in FILLED_IN},
        },
        "additionalProperties": False,
        "oneOf": [{"required": [name]} for name in (*BODY, "body_json")],
    },
    "GotMessage": {
        "type": "object",
        "description": "A message that was got or browsed: body where that is text in UTF-8, else body_base64.",
        "required": [*FIELDS, *FILLED_IN],
        "properties": {
            **{name: _of_field(name) for name in FIELDS},
            **BODY,
            "length": {"type": "integer", "description": "bytes of the whole body"},
            "backout_count": {"type": "integer", "description": "how often a get of it was backed out"},
            "token": {"type": "string", "description": "names it on its queue"},
            "uid": {"anyOf": [ref("UniqueId"), {"type": "null"}]},
            "place": {"type": ["object", "null"], "description": "where it stood: rank, number, ordinal"},
            "warning": {"type": ["string", "null"], "description": "the name of the warning's reason"},
        },
        "additionalProperties": False,
    },
    "UniqueId": {
        "type": "object",
        "description": "Names a message for ever.",
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
                "description": "nothing was put now: this message was put under the same key",
            },
        },
    },
    "PutResults": {
        "type": "object",
        "required": ["results"],
        "properties": {"results": listed("PutResult")},
    },
}
