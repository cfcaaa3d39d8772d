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
from ..model.message import Place
from .grouping import GroupState
from .ordering import Cursor

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
        held = json.loads(base64.urlsafe_b64decode(token.encode("ascii")))
        if held["version"] != VERSION:
            raise ValueError(held["version"])
        place, number, anchor, logical, strict, levels = held["cursor"]
        group_id, *rest = held["state"]
        shown = tuple((_number(rank), _place(where) or Place(0, 0, 0)) for rank, where in levels)
        last = None if number is None else _number(number)
        cursor = Cursor(_place(place), last, _place(anchor), logical, bool(strict), shown)
        sequence_number, offset, length, flags = map(_number, rest[:4])
        persistent, in_unit, in_logical_order = map(bool, rest[4:])
        state = GroupState(
            bytes.fromhex(group_id), sequence_number, offset, length, flags, persistent, in_unit, in_logical_order
        )
        return Resumed(_number(held["incarnation"]), cursor, state)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, binascii.Error):
        raise bad_argument("token", token, "a token from browse_token", Reason.ARGUMENT_ERROR) from None


def _number(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError(value)
    return value


def _place(value: Any) -> Place | None:
    return None if value is None else Place(*map(_number, value))
