"""Keys of staged rows as bytes that sort as the keys do: numbers, texts, bytes (`rules.staging.sort_key`).

A number becomes the nearest float, as eight bytes in order, followed by the difference between an integer and that
float, at most 512 for 64 bits. A greater number never has a lesser float, and if the floats are equal, the differences
decide. So integers and floats are compared exactly, and equal ones have the same bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from ...rules.staging import Key

NUMBER, TEXT, BYTES = (bytes([kind]) for kind in (1, 2, 3))
ZERO: Final = 1 << 15  # of the difference, which is stored with this offset
SIGN, ALL = 1 << 63, (1 << 64) - 1


def encoded(keys: Sequence[Key]) -> list[bytes | None]:
    """Encodes the keys of a column."""
    return [None if key is None else of(key) for key in keys]


def of(key: int | float | str | bytes) -> bytes:
    """Encodes one key."""
    if isinstance(key, str):
        return TEXT + key.encode()
    if isinstance(key, bytes):
        return BYTES + key
    nearest = float(key) + 0.0  # turns -0.0 into 0.0
    (bits,) = struct.unpack(">Q", struct.pack(">d", nearest))
    more = key - int(nearest) if isinstance(key, int) else 0
    return NUMBER + struct.pack(">QH", bits ^ (ALL if bits & SIGN else SIGN), ZERO + more)
