"""The form that puts a message: a body as text, JSON or hexadecimal digits, a descriptor, properties, a group."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from starlette.responses import Response

from ...errors import InorderError, Reason, bad_argument
from ...field_checks import EXPIRY_SECONDS_MAX
from ...formats.json_lines import id_of
from ...formats.property_text import ALLOWED, read_property
from ...message import IN_GROUP, LAST_IN_GROUP, Message
from . import notices
from .noting import refused, text_in
from .page import Page, Visit, to

TEXT: Final = "MQSTR"
UTF_8: Final = 1208
KINDS: Final = ("text", "json", "hex")
SECONDS: Final = re.compile(r"[0-9]{1,10}(\.[0-9]{1,6})?")
EXPIRY_ALLOWED: Final = f"seconds from 0.1 to {EXPIRY_SECONDS_MAX:,.1f}, unlimited, or empty for the queue's"
PRIORITY_ALLOWED: Final = "an integer from 0 to 999,999,999 (9 is the highest that counts), or empty for the queue's"
FIELDS: Final = (
    "kind", "body", "priority", "persistent", "expiry", "delay", "message_id", "correlation_id", "format",
    "reply_to_queue", "reply_to_queue_manager", "properties", "group", "group_id", "sequence_number",
)  # fmt: skip


def message_of(given: Mapping[str, str]) -> Message:
    """The message of a form; a field that is empty is as by default. Raises: ArgumentError, which names the field."""
    kind = given.get("kind", "text")
    fields: dict[str, Any] = {}
    if kind != "hex":
        fields |= {"format": TEXT, "coded_character_set_id": UTF_8}
    for name, read in READERS.items():
        text = given.get(name, "").strip()
        if text:
            fields[name] = read(name, text)
    return Message(_body(kind, given.get("body", "")), **fields, **_group(given))


def _body(kind: str, text: str) -> bytes:
    if kind not in KINDS:
        raise bad_argument("kind", kind, f"one of: {', '.join(KINDS)}")
    if kind == "hex":
        try:
            return bytes.fromhex(text)
        except ValueError:
            raise bad_argument("body", text, "hexadecimal digits, two for each byte, with blanks if you like") from None
    text = text.replace("\r\n", "\n")  # a browser sends each end of a line so
    if kind == "json":
        try:
            json.loads(text)
        except (ValueError, RecursionError) as error:
            raise bad_argument("body", text, f"JSON: {error}") from None
    return text.encode()


def _group(given: Mapping[str, str]) -> dict[str, Any]:
    """The group of a message, if the form says that it is in one."""
    place = given.get("group", "")
    if place not in ("", "in", "last"):
        raise bad_argument("group", place, "empty, in or last")
    if not place:
        for name in ("group_id", "sequence_number"):
            if given.get(name, "").strip():
                raise bad_argument(name, given[name].strip(), "empty, unless the message is in a group: say which")
        return {}
    fields: dict[str, Any] = {"flags": IN_GROUP if place == "in" else IN_GROUP | LAST_IN_GROUP}
    if text := given.get("group_id", "").strip():
        fields["group_id"] = _id("group_id", text)
    if text := given.get("sequence_number", "").strip():
        fields["sequence_number"] = _whole("sequence_number", text)
    return fields


def _whole(name: str, text: str) -> int:
    if re.fullmatch("[0-9]{1,10}", text) is None:
        raise bad_argument(name, text, "an integer from 0")
    return int(text)


def _priority(name: str, text: str) -> int:
    if re.fullmatch("[0-9]{1,9}", text) is None:
        raise bad_argument(name, text, PRIORITY_ALLOWED, Reason.PRIORITY_ERROR)
    return int(text)


def _expiry(name: str, text: str) -> float:
    if text == "unlimited":
        return math.inf
    if SECONDS.fullmatch(text) is None or not 0.1 <= float(text) <= EXPIRY_SECONDS_MAX:
        raise bad_argument(name, text, EXPIRY_ALLOWED, Reason.EXPIRY_ERROR)
    return float(text)


def _delay(name: str, text: str) -> float:
    if SECONDS.fullmatch(text) is None or float(text) > EXPIRY_SECONDS_MAX:
        raise bad_argument(name, text, f"seconds from 0 to {EXPIRY_SECONDS_MAX:,.1f}")
    return float(text)


def _id(name: str, text: str) -> bytes:
    try:
        return id_of(text, name)
    except ValueError as error:
        raise bad_argument(name, text, str(error).partition(" must be ")[2].partition(", not ")[0]) from None


def _switch(name: str, text: str) -> bool:
    if text not in ("yes", "no"):
        raise bad_argument(name, text, "yes or no")
    return text == "yes"


def _properties(name: str, text: str) -> dict[str, Any]:
    """A property a line."""
    found: dict[str, Any] = {}
    for line in filter(str.strip, text.splitlines()):
        key, value = read_property(line.strip())
        if key in found:
            raise bad_argument(name, key, f"names that are there once, each {ALLOWED}")
        found[key] = value
    return found


READERS: Final[Mapping[str, Callable[[str, str], Any]]] = MappingProxyType(
    {
        "priority": _priority,
        "persistent": _switch,
        "expiry": _expiry,
        "delay": _delay,
        "message_id": _id,
        "correlation_id": _id,
        "format": lambda _, text: text,
        "reply_to_queue": lambda _, text: text,
        "reply_to_queue_manager": lambda _, text: text,
        "properties": _properties,
    }
)


async def show(visit: Visit) -> Mapping[str, Any]:
    """GET queue/NAME/put: the form."""
    visit.query()
    await visit.context.qm.attributes(visit.queue)
    return {"given": dict.fromkeys(FIELDS, "") | {"kind": "text"}, "problem": ""}


async def act(visit: Visit) -> Response:
    """POST queue/NAME/put: puts the message."""
    given = {name: text_in(visit, name) for name in FIELDS}
    try:
        message = message_of(given).replace(**visit.identity.context)
        put = await visit.context.qm.put(visit.queue, message, context="set_identity")
    except InorderError as error:
        return refused(visit, error, {"given": given})
    warned = "" if put.warning is None else f", with the warning {put.warning.name}"
    text = f"1 message put, with message id {put.message_id.hex()}{warned}."
    return notices.leave(visit.context, to("queue", visit.queue), text)


PAGES: Final = (
    Page(
        path="queue/{queue}/put",
        title="Put on {queue}",
        authority="put",
        queue="queue",
        template="put.html",
        show=show,
        act=act,
    ),
)
