"""What the description of our HTTP interface says, in the words of a page: nothing here knows an operation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

from ...model.options import UniqueIds
from ...rules.authorities import GRANTABLE, MANAGER, ROLES, may
from ..api.interface import document
from .labels import number

Schema = Mapping[str, Any]
IN_HEX: Final = re.compile(  # a pattern of patterns
    r"\^\(?\(\[0-9a-fA-F\]\{2\}\)(?:\{1,(?P<most>[0-9]+)\}|\*)(?P<text>\|text:\.\{1,[0-9]+\})?\)?\$"
)


class Word(NamedTuple):
    """A piece of a type; `leads_to` is the schema that it names, or empty."""

    text: str
    leads_to: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownField:
    """A parameter, or a key of an object; of an object in an object its name has periods.

    Args:
        where: path, query or header; empty: it is a key.
        range: what is allowed besides the type.
        default: as it is written; empty: there is none.
    """

    name: str
    where: str = ""
    kind: Sequence[Word]
    range: str
    default: str = ""
    is_required: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a request or an answer carries."""

    media_type: str
    kind: Sequence[Word]
    text: str
    fields: Sequence[ShownField]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownResponse:
    """An answer by its status; ``default`` stands for all others."""

    status: str
    text: str
    headers: Mapping[str, str]
    content: Content | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownOperation:
    """One operation.

    Args:
        roles: those that may do it everywhere.
        is_granted: its authorities can be granted to an application, queue by queue.
        raw: what the description has.
    """

    name: str
    method: str
    path: str
    summary: str
    text: str
    authorities: Sequence[str]
    roles: Sequence[str]
    is_granted: bool
    parameters: Sequence[ShownField]
    about: str
    body: Content | None
    answers: Sequence[ShownResponse]
    raw: Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Object:
    """A schema that has a name."""

    name: str
    text: str
    fields: Sequence[ShownField]


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """What may be answered to every request; an ellipsis stands for what differs from one to the next."""

    number: str
    statuses: Sequence[int]
    message: str
    why: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """All of it: operations by their group, the objects that they exchange, and errors."""

    version: str
    path: str
    groups: Mapping[str, Sequence[ShownOperation]]
    objects: Sequence[Object]
    errors: Sequence[Error]


@cache
def _document() -> Schema:
    return document()


@cache
def described() -> Described:
    """The description of this server's interface; it is the same for every visitor."""
    found = _document()
    groups: dict[str, list[ShownOperation]] = {tag["name"]: [] for tag in found["tags"]}
    for path, methods in found["paths"].items():
        for method, one in methods.items():
            groups[one["tags"][0]].append(_operation(path, method, one))
    return Described(
        version=found["info"]["version"],
        path=found["servers"][0]["url"],
        groups=groups,
        objects=[
            Object(name=name, text=one.get("description", ""), fields=list(_fields(one)))
            for name, one in found["components"]["schemas"].items()
        ],
        errors=[
            Error(
                number=number,
                statuses=one["status"],
                message=one["message"],
                why=one["explanation"],
                remedy=one["action"],
            )
            for number, one in found["components"]["responses"]["Error"]["x-errors"].items()
        ],
    )


def resolved(found: Any) -> Any:
    """A part of the description, or what it refers to there."""
    while "$ref" in found:
        pieces = found["$ref"].removeprefix("#/").split("/")
        found = _document()
        for piece in pieces:
            found = found[piece]
    return found


def _operation(path: str, method: str, one: Schema) -> ShownOperation:
    body, authorities = one.get("requestBody"), one.get("x-authorities", ())
    return ShownOperation(
        name=one["operationId"],
        method=method.upper(),
        path=path,
        summary=one["summary"],
        text=one.get("description", ""),
        authorities=authorities,
        roles=[role for role in ROLES if all(may([role], {}, each, MANAGER) for each in authorities)],
        is_granted="{queue}" in path and all(each in GRANTABLE for each in authorities),
        parameters=[_parameter(each) for each in one["parameters"]],
        about="" if body is None else body["description"],
        body=None if body is None else _content(body),
        answers=[_answer(status, each) for status, each in one["responses"].items()],
        raw=one,
    )


def _parameter(one: Schema) -> ShownField:
    schema = one["schema"]
    return ShownField(
        name=one["name"],
        where=one["in"],
        kind=kind_of(schema),
        range=range_of(schema),
        default=_written(schema.get("default")),
        is_required=one["required"],
        text=one["description"],
    )


def _written(default: Any) -> str:
    match default:
        case None:
            return ""
        case bool():
            return str(default).lower()
        case int() | float():
            return _told(default)
    return str(default)


def _answer(status: str, one: Schema) -> ShownResponse:
    found = resolved(one)
    headers = {name: each["description"] for name, each in found.get("headers", {}).items()}
    return ShownResponse(status=status, text=found["description"], headers=headers, content=_content(found))


def _content(one: Schema) -> Content | None:
    """Of a body or an answer; None: it has none."""
    for media_type, media in one.get("content", {}).items():
        schema = media["schema"]
        whole = resolved(schema)
        return Content(
            media_type=media_type,
            kind=kind_of(schema),
            text=whole.get("description", ""),
            fields=list(_fields(whole)),
        )
    return None


def _fields(schema: Schema, before: str = "") -> Iterator[ShownField]:
    """The keys of an object, and of objects in it that have no name of their own."""
    required = schema.get("required", ())
    for name, one in schema.get("properties", {}).items():
        yield ShownField(
            name=before + name,
            kind=kind_of(one),
            range=range_of(one),
            is_required=name in required,
            text=one.get("description", ""),
        )
        yield from _fields(one, f"{before}{name}.")
        yield from _fields(one.get("items", {}), f"{before}{name}[].")


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
    """What is allowed of a type, in words; empty: all."""
    said = [
        " or ".join(map(str, schema.get("enum", ()))),
        _between(schema.get("minimum"), schema.get("exclusiveMinimum"), schema.get("maximum")),
        _counted(schema.get("minLength"), schema.get("maxLength"), "character"),
        _counted(schema.get("minItems"), schema.get("maxItems"), "item"),
        schema.get("format", ""),
        schema.get("contentEncoding", ""),
        _matching(schema.get("pattern", "")),
    ]
    return ", ".join(one for one in said if one)


def _matching(pattern: str) -> str:
    """What a text looks like, in words where people have words for it."""
    if found := IN_HEX.fullmatch(pattern):
        in_hex = f"1 to {found['most']} bytes in hex" if found["most"] else "in hex"
        return f"{in_hex}, or text:TEXT" if found["text"] else in_hex
    return "ORIGIN:NUMBER" if pattern == UniqueIds.schema["pattern"] else f"matches {pattern}" if pattern else ""


def _between(least: float | None, above: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f"{_told(least)} to {_told(most)}"
    said = [
        "" if least is None else f"at least {_told(least)}",
        "" if above is None else f"above {_told(above)}",
        "" if most is None else f"at most {_told(most)}",
    ]
    return ", ".join(one for one in said if one)


def _counted(least: int | None, most: int | None, what: str) -> str:
    found = _between(least, None, most)
    return f"{found} {what}{'' if (most or least) == 1 else 's'}" if found else ""


def _told(value: float) -> str:
    """A bound; an integer stays exact, however large."""
    return number(int(value)) if value == int(value) else f"{value:,}"
