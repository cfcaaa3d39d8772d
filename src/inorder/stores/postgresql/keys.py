"""Keys of staged rows as bytes that sort as the keys do: numbers, texts, bytes (`rules.staging.sort_key`).

A number is the float that is nearest, as eight bytes in order, and how much more an integer is than that float: of one
with 64 bits this is 512 at most. Of two numbers the greater never has the lesser float, and if the floats are the same,
what is left over decides. So integers and floats are compared exactly, and equal ones have the same bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from ...rules.staging import Key

NUMBER, TEXT, BYTES = (bytes([kind]) for kind in (1, 2, 3))
ZERO: Final = 1 << 15  # of what is left over: it is stored from here up and down
SIGN, ALL = 1 << 63, (1 << 64) - 1


def encoded(keys: Sequence[Key]) -> list[bytes | None]:
    """Keys for a column."""
    return [None if key is None else of(key) for key in keys]


def of(key: int | float | str | bytes) -> bytes:
    """One key."""
    if isinstance(key, str):
        return TEXT + key.encode()
    if isinstance(key, bytes):
        return BYTES + key
    nearest = float(key) + 0.0  # of -0.0 it makes 0.0
    (bits,) = struct.unpack(">Q", struct.pack(">d", nearest))
    more = key - int(nearest) if isinstance(key, int) else 0
    return NUMBER + struct.pack(">QH", bits ^ (ALL if bits & SIGN else SIGN), ZERO + more)
