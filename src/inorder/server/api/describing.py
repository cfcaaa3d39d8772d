"""Operations of our interface, each with its full description for clients next to its handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

from starlette.responses import Response

from ...model.parameters import ParameterKind
from ..calls import Call
from ..identity import Authority

Schema = Mapping[str, Any]
"""A schema of JSON, as OpenAPI 3.1 has it."""

Given = Mapping[str, Any]
"""What a request says: values by the names that the operation has for its parameters, defaults included."""

Handler = Callable[[Call, Given], Awaitable[Response]]

JSON: Final = "application/json"
ARROW: Final = "application/vnd.apache.arrow.stream"
EVENTS: Final = "text/event-stream"


def ref(name: str) -> Schema:
    """A schema of one of the modules' `SCHEMAS`, by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


@dataclass(frozen=True, slots=True)
class ApiParameter:
    """Something small that a request says, in its query or in a header.

    Args:
        name: as the client writes it.
        summary: what it is, a sentence.
        kind: reads the value from its text, and says what it must be.
        default: without it; None: there is none.
        where: it stands.
        required: it must be there.
        example: a value that works, as JSON has it; None: there is none.
    """

    name: str
    summary: str
    kind: ParameterKind[Any]
    _: KW_ONLY
    default: Any = None
    where: Literal["query", "header"] = "query"
    required: bool = False
    example: Any = None

    @property
    def schema(self) -> Schema:
        """Of its value."""
        return dict(self.kind.schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiBody:
    """What a request carries.

    Args:
        summary: what it is, a sentence.
        schema: of JSON; of other media types what JSON schema can say of them.
        media_type: that it must have; the function behind the operation reads it, with `Call`.
        example: one that works.
    """

    summary: str
    schema: Schema
    media_type: str = JSON
    example: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiResponse:
    """What a client gets.

    Args:
        summary: what it means, a sentence.
        schema: of the body; None: there is none.
        media_type: of the body.
        headers: their names, and what they say.
    """

    summary: str
    schema: Schema | None = None
    media_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiOperation:
    """One request that can be made.

    Args:
        name: of the operation, once among all.
        method: of HTTP.
        path: behind ``/inorder/v1/``; ``{queue}`` stands for the name of a queue.
        authority: that is asked for, of the queue that the address names, else of the queue manager, before the handler
            runs; None: who is known may ask.
        also: authorities that are asked for besides.
        summary: what it does, a sentence.
        text: more, in Markdown.
        parameters: what the query and headers may say. Another parameter is refused, and so is another header that
            begins with ``inorder-``.
        body: what the request carries; None: nothing.
        answers: by status of HTTP; errors have one form, which every operation may answer.
        handler: does it.
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
        """Its path, cut at the slashes."""
        return tuple(self.path.split("/"))

    @property
    def authorities(self) -> tuple[Authority, ...]:
        """All that are asked for."""
        return () if self.authority is None else (self.authority, *self.also)

    @property
    def is_json(self) -> bool:
        """Whether all that is exchanged is JSON, and not a stream."""
        return {told.media_type for told in (self.body, *self.answers.values()) if told is not None} == {JSON}
