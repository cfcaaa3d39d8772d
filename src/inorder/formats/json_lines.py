"""Messages as JSON: `--json`, the server and the console write this, `put --from-json` and the server read it.

The keys are the fields of `Message`. Ids and tokens are in hex, ids without the NULs at their end, null if there is
none; an id may also be `text:` and a text. Properties are an object, bytes in it a list of one text, in hex.
`transmission` is an object of queue and manager, null if there is none. `put_at` is ISO 8601 in UTC; a null `expiry`
means that the message never expires. The body is `body` if it is text in UTF-8, otherwise `body_base64`.
"""

from __future__ import annotations

import base64
import codecs
import json
import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from ..errors import ArgumentError, CallerError, nearest_names, written
from ..model.attributes import MESSAGE_LENGTH_MAX
from ..model.fields import GIVEN, Transmission
from ..model.message import Message
from ..model.parameters import ID_LENGTH, TEXT_ID, Integer, Octets
from ..rules.puts import PutResult
from ..stores.seam.damage import utc
from .errors import FormatError

LINE_BYTES_MAX: Final = 6 * MESSAGE_LENGTH_MAX + 2**20  # a body all of control characters, and a descriptor
FIELDS = tuple(GIVEN)
IDS = {name: field.kind.length for name, field in GIVEN.items() if isinstance(field.kind, Octets)}
INTEGERS = {name for name, field in GIVEN.items() if isinstance(field.kind, Integer)}
FILLED_IN = ("length", "backout_count", "token", "uid", "place", "warning")  # by the queue manager: shown, never taken


def record_of(message: Message) -> dict[str, Any]:
    """A message that was got or browsed, as a JSON object."""
    record: dict[str, Any] = {name: _told(name, getattr(message, name)) for name in FIELDS}
    record |= body_of(message.body)
    return record | {
        "length": message.length,
        "backout_count": message.backout_count,
        "token": message.token.hex(),
        "uid": message.uid and message.uid._asdict(),
        "place": message.place and message.place._asdict(),
        "warning": message.warning and message.warning.name,
    }


def body_of(body: bytes) -> dict[str, str]:
    """The body as text, or in base64 if it is not text."""
    try:
        return {"body": body.decode("utf-8")}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode()}


def lines_of(messages: Iterable[Message]) -> bytes:
    """A line of JSON for each message, which `message_of` can read."""
    return b"".join(f"{json.dumps(record_of(one), ensure_ascii=False)}\n".encode() for one in messages)


BOMS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def record_of_put(queue: str, put: PutResult) -> dict[str, Any]:
    """The result of a put, as a JSON object."""
    return {
        "queue": queue,
        "message_id": told_id(put.message_id),
        "correlation_id": _told("correlation_id", put.correlation_id),
        "group_id": _told("group_id", put.group_id),
        "sequence_number": put.sequence_number,
        "offset": put.offset,
        "flags": int(put.flags),
        "uid": put.uid._asdict(),
        "warning": put.warning and put.warning.name,
        "duplicate_of": put.duplicate_of and put.duplicate_of._asdict(),
    }


def message_of(line: bytes, where: str) -> Message:
    """Reads a message from a line of JSON.

    Args:
        where: the origin of the line, for the error.

    Raises FormatError, with the line and the key, if it is not a message.
    """
    if line.startswith(BOMS) or b"\0" in line[:2]:
        raise FormatError(f"{where}: must be in UTF-8, not in UTF-16: convert it first, iconv -f UTF-16 -t UTF-8")
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{where}: not JSON: {error}") from None
    if not isinstance(record, dict):
        raise FormatError(f"{where}: not a JSON object.")
    try:
        return message_in(record)
    except (ValueError, TypeError, CallerError) as error:
        text = error.args[0] if isinstance(error, CallerError) else error
        raise FormatError(f"{where}: {text}") from error


def message_in(record: Mapping[str, Any]) -> Message:
    """Reads a message from a JSON object.

    Raises ValueError, with the key, if it is not a message; TypeError; ArgumentError and CallerError, as `Message`.
    """
    unknown = sorted(record.keys() - {*FIELDS, *FILLED_IN, "body", "body_base64"})
    if unknown:
        keys = ["body", "body_base64", *FIELDS]
        near = nearest_names(unknown[0], keys)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(keys)}"
        raise ValueError(f"there is no key {written(unknown[0])}; {hint}")
    if ("body" in record) == ("body_base64" in record):
        raise ValueError("a message has either body or body_base64")
    return Message(_body(record), **{name: _taken(name, record[name]) for name in FIELDS if name in record})


def _body(record: Mapping[str, Any]) -> bytes:
    name = "body" if "body" in record else "body_base64"
    if not isinstance(record[name], str):
        raise ValueError(f"{name} must be a text")
    try:
        return record[name].encode() if name == "body" else base64.b64decode(record[name], validate=True)
    except ValueError:
        raise ValueError(f"{name} is not {'text' if name == 'body' else 'base64'}") from None


def when(seconds: float | None) -> str | None:
    """A time: ISO 8601 in UTC, with microseconds."""
    if seconds is None:
        return None
    return utc(seconds).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def told_id(value: bytes) -> str | None:
    """An id for JSON: in hex, without the NULs at its end."""
    return value.rstrip(b"\0").hex() or None


def _told(name: str, value: Any) -> Any:
    if name in IDS:
        return told_id(value)
    if name == "properties":
        return {name: [one.hex()] if isinstance(one, bytes) else one for name, one in value.items()}
    if name == "put_at":
        return when(value)
    if name == "transmission":
        return value and value._asdict()
    if name == "expiry":
        return None if value is None or math.isinf(value) else value
    return int(value) if name == "flags" else value


def _taken(name: str, value: Any) -> Any:
    if name in IDS:
        return bytes(IDS[name]) if value is None else id_of(value, name, IDS[name])
    if name == "put_at":
        return _time(value)
    if name == "properties":
        return _properties(value)
    if name == "transmission":
        return _transmission(value)
    if name in INTEGERS:
        return whole(value)
    return math.inf if name == "expiry" and value is None else value


def whole(value: Any) -> Any:
    """Turns a JSON number without a fraction into an integer, however it is written; other values are unchanged."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def id_of(value: object, name: str = "id", length: int = ID_LENGTH) -> bytes:
    """The bytes of an id given in hex or as a text, padded with NUL. Raises ValueError."""
    kind = Octets(length, least=0, named=True)
    if not isinstance(value, str):
        raise ValueError(f"{name} must be {kind.readable}, not {written(value)}")
    try:
        return kind.read(name, value if value.startswith(TEXT_ID) else value.replace(" ", ""))
    except ArgumentError as error:
        raise ValueError(error.args[0]) from None


def _properties(value: object) -> dict[str, Any]:
    """Reads properties from an object; null is refused."""
    if value is not None and not isinstance(value, dict):
        raise ValueError(f"properties must be an object of names and values, not {written(value)}")
    return {name: _bytes(name, one) if isinstance(one, list) else one for name, one in (value or {}).items()}


def _transmission(value: object) -> Transmission | None:
    """Reads the destination from an object; null is refused."""
    if value is None:
        return None
    if not isinstance(value, dict) or value.keys() != set(Transmission._fields):
        raise ValueError(f"transmission must be an object of queue and manager, not {written(value)}")
    return Transmission(**value)


def _bytes(name: str, value: list[object]) -> bytes:
    try:
        (text,) = value
        return bytes.fromhex(text if isinstance(text, str) else "?")
    except ValueError:
        allowed = "a list of one text, hexadecimal digits, if its value is bytes"
        raise ValueError(f"property {written(name)} must be {allowed}, not {written(value)}") from None


def _time(value: object) -> float:
    try:
        made = datetime.fromisoformat(value.replace("Z", "+00:00") if isinstance(value, str) else "?")
    except ValueError:
        raise ValueError(f"put_at must be a time such as 2026-01-31T12:00:00Z, not {written(value)}") from None
    if made.tzinfo is None:
        raise ValueError(f"put_at must say its time zone, as 2026-01-31T12:00:00Z does, not {written(value)}")
    return made.timestamp()
