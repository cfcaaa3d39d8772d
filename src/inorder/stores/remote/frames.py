"""Frames: the content of one binary message of the WebSocket, and payloads in pieces."""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from .wire import WireError

HEADER: Final = struct.Struct(">BBHI")  # kind, flags, 0, number of the request
PIECE_MAX: Final = 2**20  # bytes of payload in one frame


class FrameKind(enum.IntEnum):
    """The kinds of frame."""

    HELLO = 1
    CALL = 2
    ANSWER = 3
    ERROR = 4
    END_WAITS = 5
    BYE = 6
    EVENT = 7
    REOPEN = 8
    WATCH = 9


class Flag(enum.IntFlag):
    """The flags of a frame."""

    MORE = 1
    HAS_UNIT = 2


VALUES_MAX: Final = 2_000_000  # in one payload; about 140 MB if all of them are empty maps
# The whole length of a value by its first byte; for texts and bytes, below 0: how many bytes have the length.
SIZES: Final = (
    *[1] * 0xA0, *range(1, 0x21), *[1] * 4, -1, -2, -4, -11, -12, -14, 5, 9,
    2, 3, 5, 9, 2, 3, 5, 9, 3, 4, 6, 10, 18, -1, -2, -4, 3, 5, 3, 5, *[1] * 0x20,
)  # fmt: skip
KINDS: Final = {int(kind): kind for kind in FrameKind}


class WireFrame(NamedTuple):
    """A whole payload. The number is that of the request that it makes or answers."""

    kind: FrameKind
    number: int
    payload: bytes


def pieces(kind: FrameKind, number: int, payload: bytes, flags: int = 0) -> Iterator[bytes]:
    """Cuts a payload into frames, each with at most `PIECE_MAX` bytes of it; an empty payload is one frame."""
    if len(payload) <= PIECE_MAX:
        yield HEADER.pack(kind, flags, 0, number) + payload
        return
    view, last = memoryview(payload), (len(payload) - 1) // PIECE_MAX * PIECE_MAX
    for start in range(0, len(payload), PIECE_MAX):
        header = HEADER.pack(kind, flags | Flag.MORE if start < last else flags, 0, number)
        yield header + view[start : start + PIECE_MAX]


def check_values(payload: bytes) -> None:
    """Checks that a payload does not become much larger in memory: a map of one byte takes 64. Raises: WireError."""
    if len(payload) <= VALUES_MAX:  # each value has at least one byte
        return
    at, end, count = 0, len(payload), 0
    while at < end:
        count += 1
        size = SIZES[payload[at]]
        if size < 0:
            has_type, width = divmod(-size, 10)
            size = 1 + width + has_type + int.from_bytes(payload[at + 1 : at + 1 + width], "big")
        at += size
        if count > VALUES_MAX:
            raise WireError(f"a payload must have at most {VALUES_MAX:,} values")


class FrameAssembler:
    """Joins the pieces that arrive on one connection; pieces of different requests may alternate.

    Args:
        most: bytes of all payloads that are not complete, together with the one that a piece completes.
        most_calls: how many payloads may be incomplete at once.
    """

    def __init__(self, most: int, most_calls: int) -> None:
        self.most, self.most_calls = most, most_calls
        self.held = 0
        self._begun: dict[int, tuple[FrameKind, bytearray]] = {}

    def close(self) -> None:
        """Forgets the payloads that are not complete."""
        self._begun.clear()
        self.held = 0

    def add(self, frame: bytes) -> WireFrame | None:
        """Takes a frame and returns the payload that it completes, if it does.

        Raises: WireError, if this is no frame, or it exceeds a limit; end the connection then.
        """
        if len(frame) < HEADER.size:
            raise WireError(f"a frame must have at least {HEADER.size} bytes, not {len(frame)}")
        code, flags, zero, number = HEADER.unpack_from(frame)
        kind, size = KINDS.get(code), len(frame) - HEADER.size
        if kind is None or flags & ~Flag.MORE or zero:
            raise WireError(f"the header of a frame must be of a known kind, not {frame[: HEADER.size].hex()}")
        if size > PIECE_MAX:
            raise WireError(f"a frame must have at most {PIECE_MAX:,} bytes of payload, not {size:,}")
        if self.held + size > self.most:
            raise WireError(f"payloads that are not complete must have at most {self.most:,} bytes together")
        begun = self._begun.get(number)
        if begun is None and not flags:
            return WireFrame(kind, number, frame[HEADER.size :])
        if begun is None:
            if len(self._begun) >= self.most_calls:
                raise WireError(f"at most {self.most_calls:,} payloads may be incomplete at once")
            begun = self._begun[number] = kind, bytearray()
        first_kind, joined = begun
        if kind is not first_kind:
            raise WireError(f"all pieces of a payload must be of one kind, not {first_kind.name} and {kind.name}")
        if flags and size < PIECE_MAX:
            raise WireError(f"a piece must have {PIECE_MAX:,} bytes unless it is the last one, not {size:,}")
        joined += memoryview(frame)[HEADER.size :]
        self.held += size
        if flags:
            return None
        del self._begun[number]
        self.held -= len(joined)
        return WireFrame(kind, number, bytes(joined))
