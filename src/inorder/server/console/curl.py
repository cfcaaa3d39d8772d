"""Lines for curl, made of the description of an operation: what is required, with values from examples or types.

A second line has the optional parameters, too, of which the description has an example.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import Any, Final
from urllib.parse import quote as encoded
from urllib.parse import urlencode

from ..api.describing import EVENTS, JSON
from .described import ShownOperation, resolved

TOKEN: Final = '-H "Authorization: Bearer $token"'  # the shell puts it in
FIRST: Final = "/queues"  # which everybody may ask for
FILE: Final = "messages.arrow"
LINE: Final = " \\\n     "


def line_of(at: str, one: ShownOperation) -> str:
    """The line for an operation: of a shell, in several lines.

    Args:
        at: the address of the interface, with the server.
    """
    return _line(at, one, [each for each in one.raw["parameters"] if each["required"]])


def longer_line_of(at: str, one: ShownOperation) -> str:
    """The same with optional parameters; empty: there are none."""
    chosen = [each for each in one.raw["parameters"] if each["required"] or "example" in each]
    return _line(at, one, chosen) if any(not each["required"] for each in chosen) else ""


def _line(at: str, one: ShownOperation, parameters: Sequence[Mapping[str, Any]]) -> str:
    return LINE.join([f"curl {TOKEN}", *_options(one, parameters), quote(at + _path(one, parameters))])


def first_lines(at: str) -> str:
    """The first request of a shell, by a token."""
    return f"token=TOKEN\ncurl {TOKEN} {quote(at + FIRST)}"


def by_password(at: str) -> str:
    """The same with a password, which curl asks for."""
    return f"curl -u NAME {quote(at + FIRST)}"


def _options(one: ShownOperation, parameters: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for each in parameters:
        if each["in"] != "header":
            continue
        name, value = each["name"], str(_value(each))
        yield "-H " + quote(f"{name}: {value}" if value else f"{name};")  # so curl sends a header without a value
    for media_type, media in one.raw.get("requestBody", {}).get("content", {}).items():
        yield "-H " + quote(f"Content-Type: {media_type}")
        yield f"--data {quote(json.dumps(_value(media)))}" if media_type == JSON else f"--data-binary @{FILE}"
    if one.method != "GET" and one.body is None:
        yield f"-X {one.method}"
    kinds = {answer.content.media_type for answer in one.answers if answer.content is not None}
    if EVENTS in kinds:
        yield "-N"  # each event as it comes
    elif kinds - {JSON}:
        yield f"--output {FILE}"


def _path(one: ShownOperation, parameters: Sequence[Mapping[str, Any]]) -> str:
    values = {each["name"]: str(_value(each)) for each in parameters if each["in"] == "path"}
    path = one.path.format_map({name: encoded(value, safe="") for name, value in values.items()})
    query = {each["name"]: _in_query(_value(each)) for each in parameters if each["in"] == "query"}
    return f"{path}?{urlencode(query, quote_via=encoded)}" if query else path


def _in_query(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(one: Mapping[str, Any]) -> Any:
    """Of a parameter or a body."""
    return one["example"] if "example" in one else _sample(one["schema"], one.get("name", "text"))


def _sample(given: Mapping[str, Any], name: str) -> Any:
    """A value that a schema allows, from its examples or else its type; a text is its own name, in capitals."""
    schema = resolved(given)
    for known in ("examples", "enum", "anyOf", "oneOf"):
        if known in schema:
            return _sample(schema[known][0], name) if known.endswith("Of") else schema[known][0]
    kinds = schema.get("type", "string")
    match kinds if isinstance(kinds, str) else kinds[0]:
        case "object":
            return {key: _sample(schema["properties"][key], key) for key in schema.get("required", ())}
        case "array":
            return [_sample(schema["items"], name)]
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
    return name.upper()
