"""Makes the OpenAPI 3.1 description of our interface from the table of operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..addresses import CSRF
from ..problems import KINDS
from .describing import ApiBody, ApiOperation, ApiParameter, ApiResponse, Schema, listed, record, ref, value

VERSION: Final = "1"
ERRORS: Final[Mapping[str, Schema]] = {
    "Errors": record({"error": listed("Error", minItems=1)}, is_open=True),
    "Error": record(
        {
            "type": value("string"),
            "messageId": value("string", "the error's number, one of those in `x-errors`"),
            "msgId": value("string", "the same, as programs for IBM's server read it"),
            "message": value("string"),
            "explanation": value("string"),
            "action": value("string", "what to do"),
            "completionCode": value("integer", "MQ's: 2 if there is a reason, otherwise 0"),
            "reasonCode": value("integer", "MQ's or inorder's; 0 if there is none"),
        },
        optional=["type", "msgId"],
        is_open=True,
    ),
}
NUMBERS: Final[Mapping[str, tuple[int, ...]]] = {
    **{
        number: (KINDS[number].status,)
        for number in (
            *("MQWB0000E", "MQWB0100E", "MQWB0103E", "MQWB0104E", "MQWB0112E", "MQWB0302E", "MQWB0306E"),
            *(f"INWB{number:04}E" for number in (*range(1, 13), 14, *range(18, 21), 30)),
        )
    },
    "INWB0008E": (429, 503),
    "INWB0014E": (400, 404, 409),
}
"""The errors that this interface answers, with their status."""
CSRF_HEADER: Final[Mapping[str, Any]] = {
    "name": CSRF,
    "in": "header",
    "required": True,
    "description": "Any value, even empty; a page of another site cannot send this header.",
    "example": "",
    "schema": value("string"),
}
NAMES: Final[Mapping[str, Mapping[str, Any]]] = {
    "queue": {"description": "The name of the queue, percent-encoded.", "example": "ORDERS"},
    "reader": {"description": "The name of the reader, percent-encoded.", "example": "loader"},
}
"""Parameters for the names in addresses."""
NAME: Final[Schema] = {"type": "string", "minLength": 1}


def description(groups: Mapping[str, Sequence[ApiOperation]], schemas: Mapping[str, Schema]) -> dict[str, Any]:
    """The whole description as a JSON object, with a tag for each group."""
    paths: dict[str, dict[str, Any]] = {}
    for group, operations in groups.items():
        for one in operations:
            paths.setdefault(f"/{one.path}", {})[one.method.lower()] = {"tags": [group], **_operation(one)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "inorder", "version": VERSION, "description": "Messages, in order."},
        "servers": [{"url": "/inorder/v1"}],
        "security": [{"bearer": []}, {"basic": []}, {"session": []}],
        "tags": [{"name": group} for group in groups],
        "paths": paths,
        "components": {
            "schemas": {**schemas, **ERRORS},
            "responses": {
                "Error": {
                    "description": "The request was refused.",
                    "content": {"application/json": {"schema": ref("Errors")}},
                    "x-errors": {number: _error(number, statuses) for number, statuses in NUMBERS.items()},
                }
            },
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "basic": {"type": "http", "scheme": "basic"},
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "LtpaToken2_PORT",
                    "description": "PORT is the server's.",
                },
            },
        },
    }


def _operation(one: ApiOperation) -> dict[str, Any]:
    names = [piece.strip("{}") for piece in one.pattern if piece.startswith("{")]
    parameters = [
        *({"name": name, "in": "path", "required": True, **NAMES[name], "schema": NAME} for name in names),
        *map(_parameter, one.parameters),
        *([] if one.method == "GET" else [CSRF_HEADER]),
    ]
    found: dict[str, Any] = {
        "operationId": one.name,
        "summary": one.summary,
        **({"description": one.text} if one.text else {}),
        "parameters": parameters,
        **({"requestBody": _body(one.body)} if one.body is not None else {}),
        "responses": {
            **{str(status): _answer(answer) for status, answer in one.answers.items()},
            "default": {"$ref": "#/components/responses/Error"},
        },
    }
    if one.authorities:
        found["x-authorities"] = list(one.authorities)
    return found


def _error(number: str, statuses: Sequence[int]) -> dict[str, Any]:
    kind = KINDS[number]
    texts = {"message": kind.text, "explanation": kind.why, "action": kind.remedy}
    return {
        "status": list(statuses),
        **{name: text.replace("{}.", "…").replace("{}", "…") for name, text in texts.items()},
    }


def _parameter(one: ApiParameter) -> dict[str, Any]:
    return {
        "name": one.name,
        "in": one.where,
        "required": one.required,
        "description": one.summary,
        **_known("example", one.example),
        "schema": {**one.kind.schema, **_known("default", one.default)},
    }


def _body(one: ApiBody) -> dict[str, Any]:
    media = {"schema": one.schema, **_known("example", one.example)}
    return {"description": one.summary, "required": True, "content": {one.media_type: media}}


def _answer(one: ApiResponse) -> dict[str, Any]:
    headers = {name: {"description": about, "schema": value("string")} for name, about in one.headers.items()}
    return {
        "description": one.summary,
        **({} if one.schema is None else {"content": {one.media_type: {"schema": one.schema}}}),
        **({"headers": headers} if headers else {}),
    }


def _known(name: str, given: Any) -> Mapping[str, Any]:
    """A key with its value; nothing for None."""
    return {} if given is None else {name: given}
