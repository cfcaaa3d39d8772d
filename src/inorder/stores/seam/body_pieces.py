"""Long bodies that a channel sends to a store elsewhere piece by piece, so that a cut costs no more than a piece."""

from __future__ import annotations

from typing import Final, NamedTuple

from ...model.attributes import MESSAGE_LENGTH_MAX

BODY_PIECE_MAX: Final = 2**22
"""Bytes of a piece; shorter bodies travel with their batch."""
BODIES_MAX: Final = MESSAGE_LENGTH_MAX
"""Bytes of all bodies of a batch that travel in pieces; the others travel with it."""


class BodyPiece(NamedTuple):
    """A piece of a body of a channel's next batch.

    Args:
        batch: the digest of the batch.
        position: of the message in the batch.
        digest: SHA-256 of the whole body.
        size: bytes of the whole body.
        first: how many bytes of the body come before the piece.
        data: at most `BODY_PIECE_MAX` bytes; empty: only to ask how much is there.
    """

    batch: bytes
    position: int
    digest: bytes
    size: int
    first: int
    data: bytes
