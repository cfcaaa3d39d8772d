"""The bodies of a channel's next batch that arrive piece by piece, before the batch itself (C-1, W-9).

A store sends one batch at a time over a channel, so pieces of another batch, or of another transmission queue of that
store, are dropped when the first piece of this batch arrives. The batch lists the positions of its messages whose
bodies have arrived in pieces, and is put like any other: only the record of the channel says whether it was received.
Pieces are not synced; those that a failure loses are sent again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from ...errors import StoreError, bad_argument
from ..seam.channel_records import BODIES_MAX, BODY_PIECE_MAX, BodyPiece, ChannelBatch, Sender
from ..seam.damage import damaged, only
from ..seam.tables import BodyRow, PieceRow
from .operation import Operation

DIGEST_LENGTH = hashlib.sha256().digest_size
BATCH_LENGTH_MAX = 64


def check_piece(piece: BodyPiece) -> None:
    """Raises: ArgumentError."""
    if len(piece.digest) != DIGEST_LENGTH or len(piece.batch) > BATCH_LENGTH_MAX:
        raise bad_argument("piece", len(piece.digest), f"a digest of {DIGEST_LENGTH} bytes, and that of a batch")
    if not 0 < piece.size <= BODIES_MAX or piece.position < 0:
        raise bad_argument("piece", piece.size, f"a piece of a body of 1 to {BODIES_MAX:,} bytes")
    if len(piece.data) > BODY_PIECE_MAX or not 0 <= piece.first <= piece.size - len(piece.data):
        raise bad_argument("piece", len(piece.data), f"at most {BODY_PIECE_MAX:,} bytes, within the body")


def keep(operation: Operation, sender: Sender, piece: BodyPiece) -> int:
    """Keeps a piece if it continues its body: `Store.receive_piece`. Returns the number of bytes that have arrived."""
    row, others = BodyRow(*sender[:3], piece.position, piece.batch, piece.digest, piece.size, 0), 0
    for found in operation.backend.select(BodyRow, identifier=sender.identifier):
        if found.channel != sender.channel:
            continue
        if found.incarnation != sender.incarnation or found.batch != piece.batch:
            _drop(operation, found)
        elif found.position != piece.position:
            others += found.size
        elif found._replace(held=0) == row:
            row = found
        else:
            _drop(operation, found)
    if others + piece.size > BODIES_MAX:
        raise bad_argument(
            "piece", piece.size, f"at most {BODIES_MAX:,} bytes, together with other bodies of the batch"
        )
    if not piece.data or piece.first != row.held:
        return row.held
    operation.backend.save(PieceRow(*sender[:3], piece.position, piece.first, piece.data))
    row = row._replace(held=row.held + len(piece.data))
    operation.backend.save(row)
    if row.held == row.size and _digest(operation, row) != row.digest:
        _drop(operation, row)
        return 0
    return row.held


def filled(operation: Operation, batch: ChannelBatch) -> ChannelBatch:
    """Returns the batch with the bodies that have arrived before it. Raises: StoreError, if one is not complete."""
    there = {row.position: row for row in operation.backend.select(BodyRow, **_of(batch.sender))}
    messages = list(batch.messages)
    for position in batch.held:
        row = there.get(position)
        if row is None or row.batch != batch.digest or row.held != row.size:
            raise StoreError(f"the body of message {position} of batch {batch.number} is incomplete: send it again")
        body = b"".join(_pieces(operation, row))
        messages[position] = messages[position].with_values(body=body, length=len(body))
    return batch._replace(messages=messages)


def forget(operation: Operation, sender: Sender) -> None:
    """Drops all pieces of a sender's bodies."""
    operation.backend.remove_records(BodyRow, **_of(sender))
    operation.backend.remove_records(PieceRow, **_of(sender))


def forget_channel(operation: Operation, channel: str) -> None:
    """Drops all pieces for a channel whose definition is deleted."""
    for row in operation.backend.select(BodyRow):
        if row.channel == channel:
            _drop(operation, row)


def _of(one: Sender | BodyRow) -> dict[str, Any]:
    return {name: getattr(one, name) for name in ("identifier", "incarnation", "channel")}


def _where(row: BodyRow) -> dict[str, Any]:
    return {**_of(row), "position": row.position}


def _drop(operation: Operation, row: BodyRow) -> None:
    operation.backend.remove_records(BodyRow, **_where(row))
    operation.backend.remove_records(PieceRow, **_where(row))


def _pieces(operation: Operation, row: BodyRow) -> Iterator[bytes]:
    """Yields the pieces of a body, one in memory at a time."""
    first, where = 0, f"a body of channel {row.channel}, position {row.position}"
    while first < row.held:
        data = only(operation.backend.select(PieceRow, **_where(row), first=first), where).data
        if not 0 < len(data) <= row.held - first:
            raise damaged(where, f"the piece at {first} cannot have {len(data)} bytes")
        yield data
        first += len(data)


def _digest(operation: Operation, row: BodyRow) -> bytes:
    found = hashlib.sha256()
    for data in _pieces(operation, row):
        found.update(data)
    return found.digest()
