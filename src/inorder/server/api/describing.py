"""Operations of our interface, each with its full description for clients next to its handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

from starlette.responses import Response

from ...model.parameters import ParameterKind
from ..calls import Call
from ..identity import Authority

Schema = Mapping[str, Any]
"""A JSON schema, as OpenAPI 3.1 uses it."""

Given = Mapping[str, Any]
"""The values of a request's parameters by name, with defaults."""

Handler = Callable[[Call, Given], Awaitable[Response]]

JSON: Final = "application/json"
ARROW: Final = "application/vnd.apache.arrow.stream"
EVENTS: Final = "text/event-stream"


# --- schemas


def ref(name: str) -> Schema:
    """A schema in the `SCHEMAS` of a module, by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def value(types: str, about: str = "", **more: Any) -> Schema:
    """A value of one type, or of several: ``value("string null", "the cursor of the next page")``."""
    names = types.split()
    return {"type": names if len(names) > 1 else types, **({"description": about} if about else {}), **more}


def listed(name: str, **more: Any) -> Schema:
    """An array of a schema in `SCHEMAS`."""
    return {"type": "array", "items": ref(name), **more}


def record(
    keys: Mapping[str, Schema], optional: Collection[str] = (), *, about: str = "", is_open: bool = False
) -> Schema:
    """An object with these keys.

    Args:
        optional: the keys that it may lack.
        is_open: whether later versions may add keys.
    """
    made: dict[str, Any] = {"type": "object"}
    if about:
        made["description"] = about
    made |= {"required": [name for name in keys if name not in optional], "properties": keys}
    return made if is_open else {**made, "additionalProperties": False}


# --- operations


@dataclass(frozen=True, slots=True)
class ApiParameter:
    """A parameter of a request, in its query or in a header.

    Args:
        name: as the client writes it.
        summary: a sentence about it.
        kind: reads its value from the text, and refuses wrong values.
        default: the value without it; None: it has no default.
        where: its place.
        required: whether a request must have it.
        example: a value that works, as JSON; None: no example.
    """

    name: str
    summary: str
    kind: ParameterKind[Any]
    _: KW_ONLY
    default: Any = None
    where: Literal["query", "header"] = "query"
    required: bool = False
    example: Any = None


@dataclass(frozen=True, slots=True)
class ApiBody:
    """The body of a request.

    Args:
        summary: a sentence about it.
        schema: the schema of its JSON; for other media types, as much as JSON schema can express.
        media_type: the required media type. The handler reads the body, with `Call`.
        example: a body that works.
    """

    summary: str
    schema: Schema
    _: KW_ONLY
    media_type: str = JSON
    example: Any = None


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """An answer to a client.

    Args:
        summary: its meaning, a sentence.
        schema: the schema of the body; None: it has no body.
        media_type: the media type of the body.
        headers: the meaning of each header, by its name.
    """

    summary: str
    schema: Schema | None = None
    _: KW_ONLY
    media_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiOperation:
    """One operation of the interface.

    Args:
        name: unique among all operations.
        method: the HTTP method.
        path: after ``/inorder/v1/``; ``{queue}`` stands for the name of a queue.
        authority: that the user needs on the queue in the address, or on the queue manager if it names none. It is
            checked before the handler runs. None: every user who has logged in may send the request.
        also: more authorities that the user needs.
        summary: its effect, a sentence.
        text: more about it, in Markdown.
        parameters: the parameters in the query and the headers. Other parameters are refused, and so are other headers
            that begin with ``inorder-``.
        body: the body of the request; None: the request has no body.
        answers: by status of HTTP. Every operation may also answer an error, which has one form.
        handler: answers the request.
    """

    name: str
    method: Literal["GET", "POST", "PATCH", "DELETE"]
    path: str
    authority: Authority | None
    summary: str
    handler: Handler
    answers: Mapping[int, ApiResponse]
    also: tuple[Authority, ...] = ()
    text: str = ""
    parameters: tuple[ApiParameter, ...] = ()
    body: ApiBody | None = None

    @property
    def pattern(self) -> tuple[str, ...]:
        """Its path, split at the slashes."""
        return tuple(self.path.split("/"))

    @property
    def authorities(self) -> tuple[Authority, ...]:
        """All authorities that the user needs."""
        return () if self.authority is None else (self.authority, *self.also)
