"""The strict browse cursor as a token, which another handle can continue from, even after a restart (B-41).

A token identifies the queue by its incarnation, so that it cannot be used on another queue of the same name. It
contains a cursor and, inside a group, the position in that group; callers need not look inside.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, NamedTuple

from ..errors import Reason, bad_argument
from ..model.fields import FLAGS_MAX, NUMBER_MAX, Place
from ..model.parameters import ID_LENGTH, WHOLE_MAX, is_integer
from .grouping import GroupState
from .ordering import PRIORITY_MAX, Cursor

VERSION = 1


class Resumed(NamedTuple):
    """The contents of a token."""

    incarnation: int
    cursor: Cursor
    state: GroupState


def encode(incarnation: int, cursor: Cursor, state: GroupState) -> str:
    """Makes the token of a strict browse."""
    held = {
        "version": VERSION,
        "incarnation": incarnation,
        "cursor": cursor._replace(strict=True),
        "state": state._replace(group_id=state.group_id.hex()),  # type: ignore[arg-type]
    }
    return base64.urlsafe_b64encode(json.dumps(held, separators=(",", ":")).encode()).decode("ascii")


def decode(token: Any) -> Resumed:
    """Reads a token. Raises ArgumentError if it is not one."""
    try:
        held = json.loads(base64.b64decode(token.encode("ascii"), b"-_", validate=True))
        if held["version"] != VERSION:
            raise ValueError(held["version"])
        place, number, anchor, logical, strict, levels = held["cursor"]
        group_id, sequence_number, offset, length, flags, *switches = held["state"]
        shown = tuple((_rank(rank), _place(where) or Place(0, 0, 0)) for rank, where in levels)
        last = None if number is None else _whole(number)
        in_order = None if logical is None else _switch(logical)
        cursor = Cursor(_place(place), last, _place(anchor), in_order, _switch(strict), shown)
        group = bytes.fromhex(group_id)
        if len(group) != ID_LENGTH:
            raise ValueError(group)
        sequence_number, offset, length = (_whole(one, NUMBER_MAX) for one in (sequence_number, offset, length))
        persistent, in_unit, in_logical_order = map(_switch, switches)
        state = GroupState(
            group, sequence_number, offset, length, _whole(flags, FLAGS_MAX), persistent, in_unit, in_logical_order
        )
        return Resumed(_whole(held["incarnation"]), cursor, state)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, binascii.Error):
        raise bad_argument("token", token, "a token from browse_token", Reason.ARGUMENT_ERROR) from None


# A program can change a token. The stores must never see a value that they could not have stored.


def _whole(value: Any, most: int = WHOLE_MAX) -> int:
    if not is_integer(value) or not 0 <= value <= most:
        raise ValueError(value)
    return value


def _rank(value: Any) -> int:
    return -_whole(-value, PRIORITY_MAX)


def _switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(value)
    return value


def _place(value: Any) -> Place | None:
    if value is None:
        return None
    rank, number, ordinal = value
    return Place(_rank(rank), _whole(number), _whole(ordinal))
