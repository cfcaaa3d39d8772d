"""Splitting and joining: the pieces of a message join to the same message."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.errors import MessageTooBig, Reason
from inorder.model.message import LAST_SEGMENT, SEGMENT, SEGMENTATION_ALLOWED, Message
from inorder.rules.segmentation import headers_length, join, split

TOO_BIG = Reason.MSG_TOO_BIG_FOR_Q


def pieces_of(message: Message, limit: int) -> list[Message]:
    return [
        message.with_values(
            body=message.body[piece.start : piece.end],
            length=piece.end - piece.start,
            offset=message.offset + piece.start,
            flags=piece.flags,
        )
        for piece in split(message, limit, TOO_BIG)
    ]


@given(st.binary(min_size=1, max_size=400), st.integers(16, 120))
def test_segments_are_valid_and_join_to_the_whole_message(body: bytes, limit: int) -> None:
    message = Message(body, flags=SEGMENTATION_ALLOWED)
    pieces = pieces_of(message, limit)
    assert all(piece.offset % 16 == 0 for piece in pieces)
    assert all(16 <= piece.length <= limit for piece in pieces[:-1])
    assert pieces[-1].length <= limit
    assert [bool(piece.flags & LAST_SEGMENT) for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    joined = join(pieces)
    assert (joined.message.body, joined.used, joined.warning) == (body, len(pieces), None)
    assert joined.message.flags == SEGMENTATION_ALLOWED | SEGMENT | LAST_SEGMENT


@pytest.mark.parametrize("limit", [0, 1, 15])
def test_splitting_by_a_limit_below_16_bytes_is_refused(limit: int) -> None:
    with pytest.raises(MessageTooBig) as refused:
        split(Message(bytes(100)), limit, Reason.MSG_TOO_BIG_FOR_Q_MGR)
    assert refused.value.reason is Reason.MSG_TOO_BIG_FOR_Q_MGR


def rfh2(length: int, following: str) -> bytes:
    return struct.pack(">4sii", b"RFH ", 2, length) + bytes(8) + following.encode().ljust(8) + bytes(length - 28)


HEADERS = [
    ("", b"plain user data", 0),
    ("MQSTR", b"text" * 100, 0),
    ("MQDEAD", bytes(172) + b"data", 172),
    ("MQHMDE", bytes(72) + b"data", 72),
    ("MQXMIT", bytes(428) + b"data", 428),
    ("MQHRF2", rfh2(60, "MQSTR") + b"data", 60),
    ("MQDEAD", bytes(108) + b"MQHRF2  " + bytes(56) + rfh2(40, "") + b"data", 212),
    ("MQDEAD", b"shorter than its header", 0),
    ("MQHRF2", rfh2(60, "")[:40], 0),
]


@pytest.mark.parametrize(("form", "body", "length"), HEADERS)
def test_the_headers_at_the_front_are_measured(form: str, body: bytes, length: int) -> None:
    assert headers_length(Message(body, format=form, encoding=273)) == length


def test_a_header_with_reversed_integers_is_measured_and_no_header_is_split() -> None:
    body = rfh2(60, "")
    reversed_length = body[:8] + struct.pack("<i", 60) + body[12:]
    assert headers_length(Message(reversed_length, format="MQHRF2", encoding=546)) == 60
    with pytest.raises(MessageTooBig):
        split(Message(bytes(500), format="MQDEAD"), 171, TOO_BIG)
    assert split(Message(bytes(500), format="MQDEAD"), 176, TOO_BIG)[0].end == 176


CHANGES = [
    ("coded_character_set_id", 1208, 819, Reason.INCONSISTENT_CCSIDS),
    ("encoding", 546, 273, Reason.INCONSISTENT_ENCODINGS),
]


@pytest.mark.parametrize(("field", "one", "other", "warning"), CHANGES)
@pytest.mark.parametrize("at", [1, 2])
def test_only_the_leading_run_of_equal_pieces_is_joined(
    field: str, one: int, other: int, warning: Reason, at: int
) -> None:
    pieces = [piece.with_values(**{field: one}) for piece in pieces_of(Message(bytes(48)), 16)]
    pieces[at:] = [piece.with_values(**{field: other}) for piece in pieces[at:]]
    joined = join(pieces)
    assert (joined.used, joined.message.length, joined.warning) == (at, 16 * at, warning)
    assert not joined.message.flags & LAST_SEGMENT
