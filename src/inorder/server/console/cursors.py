"""The position of a listing, as a text for an address."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from ...model.message import NO_ID, Place
from ...stores.seam.views import UNPLACED, Position
from ..problems import problem

LENGTH_MAX = 400
NUMBER_MAX = 2**63 - 1


def written(position: Position) -> str:
    """A position as a text."""
    values = [position.group_id.hex() if name == "group_id" else value for name, value in position._asdict().items()]
    return base64.urlsafe_b64encode(json.dumps(values, separators=(",", ":")).encode()).decode().rstrip("=")


def read(name: str, text: str | None) -> Position | None:
    """Reads such a text. Raises: Problem 400, if it is not valid."""
    if not text:
        return None
    try:
        if len(text) > LENGTH_MAX:
            raise ValueError
        data = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
        return _position(*json.loads(data))
    except (ValueError, TypeError, RecursionError, binascii.Error):
        raise problem("INWB0003E", name, "must be a position from a page of this list") from None


def _position(
    stage: Any, anchor: Any, group_id: Any, sequence_number: Any, offset: Any, place: Any, number: Any
) -> Position:
    _check(stage, 0, UNPLACED)
    for one in (sequence_number, offset, number):
        _check(one, 0, NUMBER_MAX)
    for one in (*anchor, *place):
        _check(one, -NUMBER_MAX, NUMBER_MAX)
    group = bytes.fromhex(group_id)
    if len(group) != len(NO_ID):
        raise ValueError
    return Position(stage, Place(*anchor), group, sequence_number, offset, Place(*place), number)


def _check(value: Any, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError
