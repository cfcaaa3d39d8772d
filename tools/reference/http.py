"""The operations of our own HTTP interface, made from the table of operations that the server routes by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from inorder.server.api.describing import ApiOperation, ApiParameter, ApiResponse, Schema
from inorder.server.api.interface import BASE, OPERATIONS, SCHEMAS

from .markdown import Parts, code, table


def parts() -> Parts:
    """The parts of docs/reference/http-own.md: all operations, and their bodies."""
    index = table(("operation", "does"), map(_row, OPERATIONS))
    return {
        "operations": "\n\n".join([index, *map(_operation, OPERATIONS)]),
        "schemas": "\n\n".join(_schema(name, schema) for name, schema in SCHEMAS.items()),
    }


def _row(one: ApiOperation) -> tuple[str, str]:
    return f"[{code(one.name)}](#{one.name})", one.summary


def _operation(one: ApiOperation) -> str:
    authorities = " and ".join(one.authorities)
    parts = [
        f"## {one.name}",
        f"`{one.method} /{'/'.join(BASE)}/{one.path}`" + (f" (authority: {authorities})" if authorities else ""),
        f"{one.summary} {one.text}".strip(),
    ]
    if one.parameters:
        parts.append(table(("parameter", "is", "default"), map(_parameter, one.parameters)))
    if one.body is not None:
        parts.append(f"**Body**, {code(one.body.media_type)}: {one.body.summary} {_shape(one.body.schema)}".strip())
    rows = ((str(status), _answer(answer)) for status, answer in one.answers.items())
    parts.append(table(("status", "answer"), rows))
    return "\n\n".join(parts)


def _parameter(one: ApiParameter) -> tuple[str, str, str]:
    where = "header " if one.where == "header" else ""
    default = "required" if one.required else "" if one.default is None else code(str(one.default).lower())
    return f"{where}{code(one.name)}", f"{one.summary} {_range(one.kind.schema)}".strip(), default


def _range(schema: Schema) -> str:
    """The allowed values, in short."""
    if "enum" in schema:
        return f"{' or '.join(map(code, schema['enum']))}."
    if "maximum" in schema:
        most = f"{int(schema['maximum']):,}"  # a float would increase the largest id by one
        return f"{schema['minimum']:,} to {most}." if "minimum" in schema else f"Above 0, at most {most}."
    if "maxLength" in schema:
        return f"At most {schema['maxLength']:,} characters."
    return ""


def _answer(one: ApiResponse) -> str:
    headers = "".join(f" {code(name)}: {summary}" for name, summary in one.headers.items())
    media = "" if one.schema is None or one.media_type == "application/json" else f" {code(one.media_type)}."
    return f"{one.summary}{media} {_shape(one.schema or {})}{headers}".strip()


def _shape(schema: Schema) -> str:
    """The form of a value: the name of a schema, or the keys of an object."""
    name = _named(schema)
    if name:
        return f"See [{name}](#json-{name.lower()})."
    keys = schema.get("properties")
    return f"Keys: {_keys(keys, schema.get('required', ()))}." if keys else ""


def _keys(keys: Iterable[str], required: Iterable[str]) -> str:
    return ", ".join(code(key) + ("" if key in set(required) else " (may be left out)") for key in keys)


def _named(schema: Mapping[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _schema(name: str, schema: Schema) -> str:
    rows = ((code(key), _type(each), each.get("description", "")) for key, each in schema.get("properties", {}).items())
    parts = [f"### JSON: {name}", schema.get("description", ""), table(("key", "type", "is"), rows)]
    return "\n\n".join(part for part in parts if part)


def _type(schema: Mapping[str, Any]) -> str:
    name = _named(schema)
    if name:
        return f"[{name}](#json-{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    kind = schema.get("type", "any")
    kinds = kind if isinstance(kind, list) else [kind]
    if kinds == ["array"]:
        return f"array of {_type(schema['items'])}" if "items" in schema else "array"
    return " or ".join(kinds)
