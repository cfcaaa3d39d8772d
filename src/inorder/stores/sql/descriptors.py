"""The part of a descriptor that messages of one program mostly have alike, as one text.

It is a JSON array without blanks, with a value for each field in the order of KEPT. Values at its end that are the
defaults are left out, so that the usual text names a program and its user and no more. The accounting token is in
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
# In a text, with their defaults: those first that are seldom the default. The same on every machine, so as numbers.
KEPT: Final[Mapping[str, object]] = {
    "put_application_name": "",
    "user_identifier": "",
    "put_application_type": 0,
    "coded_character_set_id": 0,
    "format": "",
    "reply_to_queue": "",
    "message_type": 8,
    "reply_to_queue_manager": "",
    "report": 0,
    "feedback": 0,
    "encoding": 546,
    "application_identity_data": "",
    "application_origin_data": "",
    "accounting_token": None,
}
LENGTH_MAX: Final = 4096  # of a text: no values that a caller can give make one as long
REMEMBERED: Final = 1024
_ORDER = [FIELDS.index(name) for name in KEPT]
_BACK = [list(KEPT).index(name) for name in FIELDS]
_DEFAULTS = list(KEPT.values())

Values = tuple[Any, ...]  # of FIELDS; the accounting token None, if it is none


@functools.lru_cache(maxsize=REMEMBERED)
def as_text(values: Values) -> str:
    """The text of these values, of FIELDS; of the accounting token 32 NULs will do, too."""
    kept = [_as_kept(name, values[index]) for name, index in zip(KEPT, _ORDER, strict=True)]
    while kept and kept[-1] == _DEFAULTS[len(kept) - 1]:
        kept.pop()
    return _as_json(kept)


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _as_kept(name: str, value: Any) -> Any:
    if name != "accounting_token":
        return value
    return None if value is None or value == NO_ACCOUNTING else value.hex()


@functools.lru_cache(maxsize=REMEMBERED)
def values_of(text: str) -> Values:
    """The values of a text. Raises: one of `damage.DECODING`, nobody has written it."""
    found = json.loads(text) if len(text) <= LENGTH_MAX else None
    if type(found) is not list or len(found) > len(KEPT):
        raise ValueError(f"it is no list of {len(KEPT)} values or fewer")
    values = [_checked(name, value) for name, value in zip(KEPT, found, strict=False)] + _DEFAULTS[len(found) :]
    made = tuple([values[index] for index in _BACK])
    if as_text(made) != text:  # a match compares texts
        raise ValueError("the same values have another text")
    return made


def _checked(name: str, value: Any) -> Any:
    if name == "accounting_token":
        return None if value is None else _token(value)
    check = Message.FIELDS[name].check
    assert check is not None, name
    try:
        kept = check(name, value)
    except ArgumentError as error:
        raise ValueError(error.args[0]) from error
    if kept != value:
        raise ValueError(f"{name} cannot be {value!r:.60}")
    return value


def _token(text: str) -> bytes:
    token = bytes.fromhex(text)
    if len(token) != len(NO_ACCOUNTING) or token == NO_ACCOUNTING or token.hex() != text:
        raise ValueError(f"accounting_token cannot be {text!r:.60}")
    return token


# --- in statements


def column(name: str) -> str:
    """One of FIELDS, as SQL: the text of its value."""
    return f"coalesce(c.descriptor -> '$[{list(KEPT).index(name)}]', '{_as_json(KEPT[name])}')"


def compared(name: str, value: object) -> str:
    """What `column` is where a field has this value."""
    return _as_json(_as_kept(name, value))
