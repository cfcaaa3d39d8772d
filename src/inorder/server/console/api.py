"""The page about our HTTP interface: the OpenAPI description that programs read as ``openapi.json``, for people.

Nothing here knows an operation: the template shows every operation in the description. Each has a command for curl with
the required parameters, and values from examples or types. A second command adds the optional parameters with examples.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from shlex import quote
from typing import Any, Final, NamedTuple
from urllib.parse import quote as encoded
from urllib.parse import urlencode

from ...model.options import UniqueIds
from ...rules.authorities import GRANTABLE, MANAGER, ROLES, may
from ..api.describing import EVENTS, JSON
from ..api.interface import document
from .labels import number
from .page import Page, Visit

Schema = Mapping[str, Any]
IN_HEX: Final = re.compile(  # a pattern of patterns
    r"\^\(?\(\[0-9a-fA-F\]\{2\}\)(?:\{1,(?P<most>[0-9]+)\}|\*)(?P<text>\|text:\.\{1,[0-9]+\})?\)?\$"
)


async def show(visit: Visit) -> Mapping[str, Any]:
    """GET api: every operation, with lines for curl to the address that the browser used."""
    visit.query()
    found = _document()
    scheme = "https" if visit.context.settings.is_secure else "http"
    base = found["servers"][0]["url"]
    at = f"{scheme}://{visit.request.headers['host']}{base}"
    return {
        "api": found, "groups": _groups(), "root": base, "at_": at, "is_secure": scheme == "https",
        "token_line": f"token=TOKEN\ncurl {TOKEN} {quote(at + FIRST)}",
        "password_line": f"curl -u NAME {quote(at + FIRST)}", "line_of": line_of,
        "longer_line_of": longer_line_of, "resolved": resolved, "kind_of": kind_of, "range_of": range_of,
        "default_of": default_of, "content_of": content_of, "fields_of": fields_of,
    }  # fmt: skip


# --- the description in words


class Word(NamedTuple):
    """A piece of a type. `leads_to`: the schema that it names, or empty."""

    text: str
    leads_to: str = ""


class ShownField(NamedTuple):
    """A key of an object. The name of a key in an inner object has periods."""

    name: str
    schema: Schema
    is_required: bool


class ShownOperation(NamedTuple):
    """An operation.

    Args:
        roles: the roles that allow it on every queue.
        is_granted: whether an application can get its authorities queue by queue.
        raw: its part of the description.
    """

    method: str
    path: str
    authorities: Sequence[str]
    roles: Sequence[str]
    is_granted: bool
    raw: Schema


_document: Final = cache(document)


@cache
def _groups() -> Mapping[str, Sequence[ShownOperation]]:
    """The operations by their group; every visitor sees the same."""
    groups: dict[str, list[ShownOperation]] = {tag["name"]: [] for tag in _document()["tags"]}
    for path, methods in _document()["paths"].items():
        for method, one in methods.items():
            groups[one["tags"][0]].append(_operation(method.upper(), path, one))
    return groups


def _operation(method: str, path: str, one: Schema) -> ShownOperation:
    authorities = one.get("x-authorities", ())
    roles = [role for role in ROLES if all(may([role], {}, each, MANAGER) for each in authorities)]
    is_granted = "{queue}" in path and all(each in GRANTABLE for each in authorities)
    return ShownOperation(method, path, authorities, roles, is_granted, one)


def resolved(found: Any) -> Any:
    """A part of the description; a reference is replaced by its target."""
    while "$ref" in found:
        pieces = found["$ref"].removeprefix("#/").split("/")
        found = _document()
        for piece in pieces:
            found = found[piece]
    return found


def content_of(one: Schema) -> tuple[str, Schema] | None:
    """The media type and the schema of a body or an answer; None: it has no content."""
    return next(((media_type, media["schema"]) for media_type, media in one.get("content", {}).items()), None)


def fields_of(schema: Schema, before: str = "") -> Iterator[ShownField]:
    """The keys of an object, and of inner objects without a name."""
    required = schema.get("required", ())
    for name, one in schema.get("properties", {}).items():
        yield ShownField(before + name, one, name in required)
        yield from fields_of(one, f"{before}{name}.")
        yield from fields_of(one.get("items", {}), f"{before}{name}[].")


def default_of(schema: Schema) -> str:
    """The default of a parameter as a client writes it; empty: it has none."""
    match schema.get("default"):
        case None:
            return ""
        case bool(default):
            return str(default).lower()
        case int(default) | float(default):
            return _bound(default)
        case default:
            return str(default)


def kind_of(schema: Schema) -> Sequence[Word]:
    """The type of a value."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return [Word(name, name)]
    if "anyOf" in schema:
        alternatives = [kind_of(one) for one in schema["anyOf"]]
        return [word for n, one in enumerate(alternatives) for word in ([Word(" or ")] if n else []) + list(one)]
    kinds = schema.get("type", "any value")
    if kinds == "array":
        return [Word("array of "), *kind_of(schema.get("items", {}))]
    return [Word(kinds if isinstance(kinds, str) else " or ".join(kinds))]


def range_of(schema: Schema) -> str:
    """The allowed values of a type, in words; empty: all."""
    parts = [
        " or ".join(map(str, schema.get("enum", ()))),
        _between(schema.get("minimum"), schema.get("exclusiveMinimum"), schema.get("maximum")),
        _counted(schema.get("minLength"), schema.get("maxLength"), "character"),
        _counted(schema.get("minItems"), schema.get("maxItems"), "item"),
        schema.get("format", ""),
        schema.get("contentEncoding", ""),
        _matching(schema.get("pattern", "")),
    ]
    return ", ".join(one for one in parts if one)


def _matching(pattern: str) -> str:
    """The form of a text, in words if there are any."""
    if found := IN_HEX.fullmatch(pattern):
        in_hex = f"1 to {found['most']} bytes in hex" if found["most"] else "in hex"
        return f"{in_hex}, or text:TEXT" if found["text"] else in_hex
    return "ORIGIN:NUMBER" if pattern == UniqueIds.schema["pattern"] else f"matches {pattern}" if pattern else ""


def _between(least: float | None, above: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f"{_bound(least)} to {_bound(most)}"
    parts = [
        "" if least is None else f"at least {_bound(least)}",
        "" if above is None else f"above {_bound(above)}",
        "" if most is None else f"at most {_bound(most)}",
    ]
    return ", ".join(one for one in parts if one)


def _counted(least: int | None, most: int | None, unit: str) -> str:
    found = _between(least, None, most)
    return f"{found} {unit}{'' if (most or least) == 1 else 's'}" if found else ""


def _bound(value: float) -> str:
    """A number; an integer stays exact, however large."""
    return number(int(value)) if value == int(value) else f"{value:,}"


# --- commands for curl

TOKEN: Final = '-H "Authorization: Bearer $token"'  # the shell fills it in
FIRST: Final = "/queues"  # every user may list the queues
FILE: Final = "messages.arrow"
LINE: Final = " \\\n     "


def line_of(at: str, one: ShownOperation) -> str:
    """The command for an operation, in several lines.

    Args:
        at: the address of the interface, with the server.
    """
    return _line(at, one, [each for each in one.raw["parameters"] if each["required"]])


def longer_line_of(at: str, one: ShownOperation) -> str:
    """The command with optional parameters; empty: the operation has none."""
    chosen = [each for each in one.raw["parameters"] if each["required"] or "example" in each]
    return _line(at, one, chosen) if any(not each["required"] for each in chosen) else ""


def _line(at: str, one: ShownOperation, parameters: Sequence[Mapping[str, Any]]) -> str:
    return LINE.join([f"curl {TOKEN}", *_options(one, parameters), quote(at + _path(one, parameters))])


def _options(one: ShownOperation, parameters: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for each in parameters:
        if each["in"] != "header":
            continue
        name, value = each["name"], str(_value(each))
        yield "-H " + quote(f"{name}: {value}" if value else f"{name};")  # ";" sends an empty header
    for media_type, media in one.raw.get("requestBody", {}).get("content", {}).items():
        yield "-H " + quote(f"Content-Type: {media_type}")
        yield f"--data {quote(json.dumps(_value(media)))}" if media_type == JSON else f"--data-binary @{FILE}"
    if one.method != "GET" and "requestBody" not in one.raw:
        yield f"-X {one.method}"
    kinds = {kind for answer in one.raw["responses"].values() for kind in resolved(answer).get("content", ())}
    if EVENTS in kinds:
        yield "-N"  # shows each event at once
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
    """A value for a parameter or a body."""
    return one["example"] if "example" in one else _sample(one["schema"], one.get("name", "text"))


def _sample(given: Mapping[str, Any], name: str) -> Any:
    """A value that a schema allows, from its examples or its type. The value of a text is its name in capitals."""
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


PAGES: Final = (Page(path="api", title="API", authority=None, template="api.html", show=show, menu="API"),)
