"""Channels with much to carry: a message of many pieces that is killed in its middle."""

from __future__ import annotations

from pathlib import Path
from signal import SIGKILL

import pytest
from tests.helpers import forked
from tests.helpers.channelled import carry, link, manager

from inorder import Flags, connect
from inorder.mq import channels

PIECE_BYTES = 100_000
PIECES = 50
CARRY = "from tests.helpers.channelled import carry\ncarry(*arguments)"


@pytest.mark.gate
def test_a_large_message_goes_on_in_its_middle(tmp_path: Path) -> None:
    """A message of five megabytes in fifty pieces: what was received is not sent again, whoever dies."""
    one, other = str(tmp_path / "a.db"), str(tmp_path / "b.db")
    manager(one, "A")
    manager(other, "B")
    link(one, "B", other)
    large = bytes(range(250)) * (PIECE_BYTES * PIECES // 250)
    with connect(one) as a, connect(other) as b:
        a.alter_queue("B", max_length=PIECE_BYTES)
        a.put("Q", large, manager="B", flags=Flags.SEGMENTATION_ALLOWED)
        assert a.depth("B") == PIECES
        for point, there in (("received:3", 12), ("sending:2", 12), ("delivered:4", 24), ("claimed:5", 40)):
            assert forked.run(CARRY, one, "TO.B", kill_at=point) == -SIGKILL
            assert b.depth("Q") == there, point
            assert not list(b.browse("Q", logical=True, complete=True, all_segments=True)), "it is not whole yet"
        before = channels.received(b)[0].number
        carry(one, "TO.B")
        got = b.get("Q", logical=True, complete=True, all_segments=True)
        assert got.body == large
        assert (b.depth("Q"), a.depth("B")) == (0, 0)
        assert channels.received(b)[0].number - before == (PIECES - 40 + 3) // 4
