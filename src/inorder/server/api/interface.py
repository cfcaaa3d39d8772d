"""Finds the operation of a request to our interface, reads the request, and answers it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ...errors import ArgumentError, InorderError
from ..addresses import check_csrf, names_in, segments_of
from ..authentication import identity_of
from ..calls import NO_BODY, Call, Context, has_body
from ..problems import must_be, not_allowed, of_our_error, problem, wrong_parameter
from . import browsing, bulk, confirming, events, leases, messages, queues, schemas
from .describing import ApiOperation, ApiParameter, ApiResponse, Given, Schema
from .openapi import description

BASE: Final = ("inorder", "v1")
OURS: Final = ("inorder-", "idempotency-key", "last-event-id")  # prefixes of headers that only this interface reads

MODULES: Final = {
    "Queues": queues,
    "Put and get": messages,
    "Browse": browsing,
    "Units of work": leases,
    "Confirm ids and locks": confirming,
    "In bulk": bulk,
    "Events": events,
}
"""By the group of their operations. Each has OPERATIONS, and may have SCHEMAS."""


async def described(*_: object) -> Response:
    """Answers this description."""
    return JSONResponse(document())


def document() -> dict[str, Any]:
    """The description of this interface, in OpenAPI 3.1."""
    return description(GROUPS, SCHEMAS)


GROUPS: Final[Mapping[str, tuple[ApiOperation, ...]]] = {
    "Description": (
        ApiOperation(
            name="openapi",
            method="GET",
            path="openapi.json",
            authority=None,
            summary="This description, in OpenAPI 3.1.",
            handler=described,
            answers={200: ApiResponse("The description.", {"type": "object"})},
        ),
    ),
    **{group: module.OPERATIONS for group, module in MODULES.items()},
}
OPERATIONS: Final[tuple[ApiOperation, ...]] = tuple(one for operations in GROUPS.values() for one in operations)
SCHEMAS: Final[Mapping[str, Schema]] = {
    name: schema for module in (schemas, *MODULES.values()) for name, schema in getattr(module, "SCHEMAS", {}).items()
}  # fmt: skip


class OwnInterface:
    """Our interface to one queue manager."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def answer(self, request: Request) -> Response:
        """Answers a request. Raises: Problem; InorderError; ClientDisconnect."""
        context = self._context
        methods, names = _found(request)
        identity = await identity_of(context, request)
        operation = methods.get(request.method)
        if operation is None:
            raise not_allowed(request.method, methods)
        check_csrf(request)
        call = Call(context=context, request=request, version=0, names=names, identity=identity)
        queue = names.get("queue", "")
        for authority in operation.authorities:
            call.demand(authority, queue)
        if operation.body is None and has_body(request):
            raise problem("INWB0004E", NO_BODY)
        try:
            return await operation.handler(call, given_in(call, operation))
        except InorderError as error:
            raise of_our_error(identity.shown(error)) from error


def _found(request: Request) -> tuple[Mapping[str, ApiOperation], dict[str, str]]:
    """The operations at an address by method, and the names in it. Raises: Problem 404, if there are none."""
    segments = segments_of(request, BASE)
    methods: dict[str, ApiOperation] = {}
    names: dict[str, str] = {}
    for operation in OPERATIONS:
        found = names_in(operation.pattern, segments)
        if found is not None:
            methods[operation.method], names = operation, found
    if not methods:
        raise problem("INWB0001E", request.url.path)
    return methods, names


def given_in(call: Call, operation: ApiOperation) -> Given:
    """Reads the parameters of a request, as the operation defines them. Raises: Problem 400."""
    in_query = call.query(*(one.name for one in operation.parameters if one.where == "query"))
    in_headers = _ours(call, operation)
    return {one.name: _value(one, in_query if one.where == "query" else in_headers) for one in operation.parameters}


def _ours(call: Call, operation: ApiOperation) -> dict[str, str]:
    known = {one.name.lower(): one.name for one in operation.parameters if one.where == "header"}
    found: dict[str, str] = {}
    for name in sorted(call.header_names()):
        value = call.header(name) or "" if name in known or name.startswith(OURS) else ""
        if name in known:
            found[known[name]] = value
        elif name.startswith(OURS):
            raise problem("MQWB0302E", name, value, f"known headers are: {', '.join(known.values()) or 'none'}")
    return found


def _value(one: ApiParameter, given: Mapping[str, str]) -> Any:
    text = given.get(one.name)
    if text is None:
        if one.required and one.where == "header":
            raise problem("MQWB0302E", one.name, "", "it is missing")
        if one.required:
            raise problem("INWB0003E", one.name, "is missing")
        return one.default
    try:
        return one.kind.read(one.name, text)
    except ArgumentError as error:
        if one.where == "header":
            raise problem("MQWB0302E", one.name, text, must_be(error)) from None
        raise wrong_parameter(error) from None
