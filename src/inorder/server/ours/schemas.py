"""What messages, ids and results are as JSON; `inorder.formats.json_lines` reads and writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...formats.json_lines import FIELDS, FILLED_IN, IDS
from ...message import Message
from .describing import Schema, ref

ID_MAX: Final = 2**64 - 1
NULLABLE: Final = frozenset({"expiry", "priority", "persistent"})
BODY: Final[Mapping[str, Schema]] = {
    "body": {"type": "string", "description": "the body, as text"},
    "body_base64": {"type": "string", "contentEncoding": "base64", "description": "the body, as bytes"},
}
IN_HEX: Final[Schema] = {"type": ["string", "null"], "pattern": "^([0-9a-fA-F]{2})*$"}


def _of_field(name: str) -> Schema:
    """What a field of the descriptor is in an answer."""
    text = {"description": Message.FIELDS[name].__doc__}
    if name in IDS:
        return {**IN_HEX, "description": f"{text['description']} In hex; null: none."}
    if name == "put_at":
        return {"type": "string", "format": "date-time"} | text
    if name == "properties":
        values = {"type": ["string", "number", "boolean", "null", "array"]}
        note = f"{text['description']} Bytes are a list of one text, in hex."
        return {"type": "object", "additionalProperties": values, "description": note}
    if name == "transmission":
        return {"type": ["object", "null"]} | text
    kind = {int: "integer", float: "number", str: "string", bool: "boolean"}.get(type(Message.FIELDS[name].default))
    if name in NULLABLE:
        return {"type": [{"expiry": "number", "priority": "integer", "persistent": "boolean"}[name], "null"]} | text
    return {"type": kind} | text


def _to_put(name: str) -> Schema:
    """The same of a message that is to be put: an id may be a text, too."""
    if name in IDS:
        return {"type": ["string", "null"], "description": f"{Message.FIELDS[name].__doc__} In hex, or text:TEXT."}
    return _of_field(name)


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
