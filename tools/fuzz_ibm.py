"""IBM's addresses as OpenAPI, as far as a fuzzer needs them: requests, and a description of each answer.

It has less than docs/reference/http.md: only the successful statuses, and whether an answer is text or JSON. A get
does not wait here, because a fuzzer would.
"""

from __future__ import annotations

from typing import Any, Final

VERSIONS: Final = ("v1", "v2", "v3")
NAME: Final = {"type": "string", "minLength": 1, "maxLength": 48}
ANY: Final = {"type": "object"}
ERROR: Final = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "object", "required": ["msgId", "message", "explanation", "action", "type"]},
        }
    },
}
REFUSED: Final = {"description": "refused", "content": {"application/json": {"schema": ERROR}}}
OBJECT: Final = {"description": "an object", "content": {"application/json": {"schema": ANY}}}
TEXT: Final = {"description": "a text", "content": {"text/plain": {"schema": {"type": "string"}}}}
EMPTY: Final = {"description": "nothing"}
QUEUE: Final = {"name": "queue", "in": "path", "required": True, "schema": {"enum": ["Q1", "ORDERS", "NONE"]}}
PUT: Final = {
    "ibm-mq-md-correlationId": {"type": "string", "pattern": "^[0-9a-f]{48}$"},
    "ibm-mq-md-expiry": {"type": "integer", "minimum": 0, "maximum": 99_999_999_900},
    "ibm-mq-md-persistence": {"enum": ["persistent", "nonPersistent"]},
    "ibm-mq-md-replyTo": NAME,
    "ibm-mq-md-priority": {"type": "integer", "minimum": 0, "maximum": 9},
    "ibm-mq-usr": {"type": "string", "pattern": '^[a-z]{1,9};"[a-z]{0,9}";string$'},
}
COMMAND: Final = {
    "type": "object",
    "required": ["type"],
    "properties": {
        "type": {"enum": ["runCommand", "runCommandJSON"]},
        "command": {"enum": ["display", "define", "alter", "clear", "delete"]},
        "qualifier": {"enum": ["qlocal", "qalias", "qmgr", "queue", "process", "channel"]},
        "name": {"enum": ["Q1", "FUZZED", "*", "F*"]},
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}, "descr": {"type": "string"}}},
        "responseParameters": {"type": "array", "items": {"enum": ["all", "maxdepth", "curdepth"]}},
    },
}
DEFINED: Final = {
    "type": "object",
    "properties": {
        "name": {"enum": ["FUZZED"]},
        "type": {"enum": ["local", "alias", "remote"]},
        "storage": {"type": "object", "properties": {"maximumDepth": {"type": "integer"}}},
        "general": {"type": "object", "properties": {"description": {"type": "string"}}},
    },
}


def operation(status: int, answer: Any, *parameters: Any, body: tuple[str, Any] | None = None) -> dict[str, Any]:
    """Returns an operation, with its parameters besides the path's, and the media type and schema of its body."""
    found = {"responses": {str(status): answer, "default": REFUSED}, "parameters": [*parameters]}
    if body is not None:
        found["requestBody"] = {"required": True, "content": {body[0]: {"schema": body[1]}}}
    return found


def headers(schemas: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "in": "header", "schema": schema} for name, schema in schemas.items()]


def in_query(**schemas: Any) -> list[dict[str, Any]]:
    return [{"name": name, "in": "query", "schema": schema} for name, schema in schemas.items()]


def messages(version: str) -> dict[str, Any]:
    prefix = "ID:" if version == "v3" else ""
    match = in_query(messageId={"type": "string", "pattern": f"^{prefix}[0-9a-f]{{48}}$"})
    known = {name: schema for name, schema in PUT.items() if version == "v3" or name not in list(PUT)[-2:]}
    there = {"204": EMPTY}
    take, copy = operation(200, TEXT, *match), operation(200, TEXT, *match)
    take["responses"] |= there
    copy["responses"] |= there
    put = operation(201, EMPTY, *headers(known), body=("text/plain;charset=utf-8", {"type": "string"}))
    listed = operation(200, OBJECT, *in_query(limit={"type": "integer", "minimum": 1, "maximum": 2000}))
    queue = f"/{version}/messaging/qmgr/QM1/queue/{{queue}}"
    return {
        f"{queue}/message": {"parameters": [QUEUE], "post": put, "delete": take, "get": copy},
        f"{queue}/messagelist": {"parameters": [QUEUE], "get": listed},
    }


def administration(version: str) -> dict[str, Any]:
    """Returns the addresses of commands, the queue manager, and logins."""
    admin = f"/{version}/admin"
    commands = operation(200, OBJECT, body=("application/json", COMMAND))
    return {
        f"{admin}/action/qmgr/QM1/mqsc": {"post": commands},
        f"{admin}/qmgr": {"get": operation(200, OBJECT, *in_query(attributes={"type": "string"}))},
        f"{admin}/installation": {"get": operation(200, OBJECT, *in_query(attributes={"type": "string"}))},
        f"/{version}/login": {"get": operation(200, OBJECT)},
    }


def resources() -> dict[str, Any]:
    """Queues as resources, which version 1 alone has."""
    queues = "/v1/admin/qmgr/QM1/queue"
    asked = in_query(attributes={"type": "string"}, status={"type": "string"}, filter={"type": "string"})
    body = ("application/json", DEFINED)
    return {
        queues: {"get": operation(200, OBJECT, *asked), "post": operation(201, EMPTY, body=body)},
        f"{queues}/{{queue}}": {
            "parameters": [QUEUE],
            "get": operation(200, OBJECT, *asked),
            "patch": operation(204, EMPTY, body=body),
        },
    }


def description() -> dict[str, Any]:
    paths = resources()
    for version in VERSIONS:
        paths |= messages(version) | administration(version)
    return {
        "openapi": "3.1.0",
        "info": {"title": "IBM MQ's REST interfaces", "version": "3"},
        "servers": [{"url": "/ibmmq/rest"}],
        "paths": paths,
    }
