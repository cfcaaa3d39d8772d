"""The form that puts a message: a body as text, JSON or hexadecimal digits, a descriptor, properties, a group."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from starlette.responses import Response

from ...errors import InorderError, bad_argument
from ...formats.property_text import ALLOWED, read_property
from ...model.fields import GIVEN, Field
from ...model.message import IN_GROUP, LAST_IN_GROUP, Message
from ...model.parameters import Switch, one_of
from ..descriptors import AS_TEXT
from . import forms
from .acting import refused
from .page import Page, Visit

KINDS: Final = ("text", "json", "hex")
IN_FORM: Final = {name: field for name, field in GIVEN.items() if field.form}
FIELDS: Final = ("kind", "body", *IN_FORM, "properties", "group", "group_id", "sequence_number")
BESIDES: Final = {math.inf: "unlimited", None: "empty for the queue's"}


def message_of(given: Mapping[str, str]) -> Message:
    """The message of a form. An empty field has its default. Raises: ArgumentError, which names the field."""
    kind = given.get("kind", "text")
    fields: dict[str, Any] = {}
    if kind != "hex":
        fields |= AS_TEXT
    for name, read in READERS.items():
        text = given.get(name, "").strip()
        if text:
            fields[name] = read(name, text)
    return Message(_body(kind, given.get("body", "")), **fields, **_group(given))


def _body(kind: str, text: str) -> bytes:
    if kind not in KINDS:
        raise bad_argument("kind", kind, one_of(KINDS))
    if kind == "hex":
        try:
            return bytes.fromhex(text)
        except ValueError:
            raise bad_argument("body", text, "hexadecimal digits, two for each byte; blanks are allowed") from None
    text = text.replace("\r\n", "\n")  # browsers send this line end
    if kind == "json":
        try:
            json.loads(text)
        except (ValueError, RecursionError) as error:
            raise bad_argument("body", text, f"JSON: {error}") from None
    return text.encode()


def _group(given: Mapping[str, str]) -> dict[str, Any]:
    """The group of a message, if the form says that the message is in one."""
    place = given.get("group", "")
    if place not in ("", "in", "last"):
        raise bad_argument("group", place, "empty, in or last")
    if not place:
        for name in ("group_id", "sequence_number"):
            if given.get(name, "").strip():
                raise bad_argument(name, given[name].strip(), "empty, unless Group says that the message is in a group")
        return {}
    fields: dict[str, Any] = {"flags": IN_GROUP if place == "in" else IN_GROUP | LAST_IN_GROUP}
    if text := given.get("group_id", "").strip():
        fields["group_id"] = _reader(GIVEN["group_id"])("group_id", text)
    if text := given.get("sequence_number", "").strip():
        fields["sequence_number"] = _reader(GIVEN["sequence_number"])("sequence_number", text)
    return fields


def _reader(field: Field[Any]) -> Callable[[str, str], Any]:
    """Reads the text of a field of the descriptor; empty is never read."""
    assert field.kind is not None
    return Switch(("yes", "no")).read if isinstance(field.kind, Switch) else field.kind.worded(BESIDES).read


def _properties(name: str, text: str) -> dict[str, Any]:
    """Reads properties, one per line."""
    found: dict[str, Any] = {}
    for line in filter(str.strip, text.splitlines()):
        key, value = read_property(line.strip())
        if key in found:
            raise bad_argument(name, key, f"unique names, each {ALLOWED}")
        found[key] = value
    return found


READERS: Final[Mapping[str, Callable[[str, str], Any]]] = MappingProxyType(
    {name: _reader(field) for name, field in IN_FORM.items()} | {"properties": _properties}
)


async def show(visit: Visit) -> Mapping[str, Any]:
    """GET queue/NAME/put: the form."""
    visit.query()
    await visit.context.qm.attributes(visit.queue)
    return _shown(dict.fromkeys(FIELDS, "") | {"kind": "text"})


def _shown(given: Mapping[str, str]) -> dict[str, Any]:
    """The values of a form, and of each field its name, label and hint, and whether it is a switch."""
    shown = [(name, *field.form, isinstance(field.kind, Switch)) for name, field in IN_FORM.items() if field.form]
    return {"given": given, "shown": shown}


async def act(visit: Visit) -> Response:
    """POST queue/NAME/put: puts the message."""
    given = {name: visit.text(name) for name in FIELDS}
    try:
        message = message_of(given).replace(**visit.identity.context)
        put = await visit.context.qm.put(visit.queue, message, context="set_identity")
    except InorderError as error:
        return refused(visit, error, _shown(given))
    warned = "" if put.warning is None else f", with the warning {put.warning.name}"
    text = f"1 message put, with message id {put.message_id.hex()}{warned}."
    return forms.done(visit, text, "queue", visit.queue)


PAGES: Final = (
    Page(path="queue/{queue}/put", title="Put on {queue}", authority="put", template="put.html", show=show, act=act),
)
