"""The part of a descriptor that messages of one program mostly have alike, as one text.

It is a JSON array without blanks, with a value for each of FIELDS in that order. The accounting token is in
hexadecimal; one of all NUL is null. The same values always make the same text, so that a match compares texts. A text
is read as if its values were given now: what no caller could have given is refused. Both ways are remembered for the
texts that were met last.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any, Final

from ...errors import ArgumentError
from ...message import Message
from ...rules.puts import NO_ACCOUNTING

FIELDS: Final = (
    "report", "message_type", "feedback", "encoding", "coded_character_set_id", "format", "reply_to_queue",
    "reply_to_queue_manager", "user_identifier", "accounting_token", "application_identity_data",
    "put_application_type", "put_application_name", "application_origin_data",
)  # fmt: skip
PLACES: Final[Mapping[str, int]] = {name: place for place, name in enumerate(FIELDS)}
LENGTH_MAX: Final = 4096  # of a text: no values that a caller can give make one as long
REMEMBERED: Final = 1024

Values = tuple[Any, ...]  # of FIELDS; the accounting token None, if it is none


@functools.lru_cache(maxsize=REMEMBERED)
def as_text(values: Values) -> str:
    """The text of these values; of the accounting token 32 NULs will do, too."""
    return as_json([_as_kept(name, value) for name, value in zip(FIELDS, values, strict=True)])


def as_json(value: object) -> str:
    """A value as it stands in a text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def wanted(name: str, value: object) -> str:
    """What one of FIELDS is compared with where a match names it."""
    return as_json(_as_kept(name, value))


def _as_kept(name: str, value: Any) -> Any:
    if name != "accounting_token":
        return value
    return None if value is None or value == NO_ACCOUNTING else value.hex()


@functools.lru_cache(maxsize=REMEMBERED)
def values_of(text: str) -> Values:
    """The values of a text. Raises: one of `damage.DECODING`, nobody has written it."""
    found = json.loads(text) if len(text) <= LENGTH_MAX else None
    if type(found) is not list or len(found) != len(FIELDS):
        raise ValueError(f"it is no list of {len(FIELDS)} values")
    return tuple(_checked(name, value) for name, value in zip(FIELDS, found, strict=True))


def _checked(name: str, value: Any) -> Any:
    if name == "accounting_token" and value is not None:
        value = bytes.fromhex(value)
        if len(value) != len(NO_ACCOUNTING) or value == NO_ACCOUNTING:
            raise ValueError(f"{name} cannot be {value!r:.60}")
        return value
    if name == "accounting_token":
        return None
    check = Message.FIELDS[name].check
    assert check is not None, name
    try:
        kept = check(name, value)
    except ArgumentError as error:
        raise ValueError(error.args[0]) from error
    if kept != value:
        raise ValueError(f"{name} cannot be {value!r:.60}")
    return value
