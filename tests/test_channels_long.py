"""Channels with much to carry: a message of many pieces that is killed in its middle, a day away, a slow target."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import forked
from tests.channelled import carry, link, manager, numbers

from inorder import Feedback, Flags, Report, channels, connect
from inorder.channels import carrying
from inorder.channels.sides import Receiver
from inorder.errors import StoreError
from inorder.testing import STORES
from inorder.testing.channelling import reach
from inorder.testing.sites import Sites

PIECE_BYTES = 100_000
PIECES = 50
CARRY = "from tests.channelled import carry\ncarry(*arguments)"
HOUR = 3600.0
HOURS = 24
PER_HOUR = 417  # ten thousand in a day


@pytest.fixture(params=sorted(STORES.keys() - {"memory", "sqlite-long-way"}))
def sites(request: pytest.FixtureRequest) -> Iterator[Sites]:
    """Queue managers TEST and QM2, and channel TO.QM2 to queue Q between them."""
    made = Sites(request.param)
    made["qm"].operator.create_queue("QM2", usage="transmission")
    made["qm2"].operator.create_queue("Q")
    channels.define_channel(made["qm"].operator, "TO.QM2", transmission_queue="QM2", connection="qm2", batch_size=100)
    yield made
    for site in made.values():
        site.operator.abandon()
        site.store.close_store()


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
            assert forked.run(CARRY, one, "TO.B", kill_at=point) != 0
            assert b.depth("Q") == there, point
            assert not list(b.browse("Q", logical=True, complete=True, all_segments=True)), "it is not whole yet"
        before = channels.received(b)[0].number
        carry(one, "TO.B")
        got = b.get("Q", logical=True, complete=True, all_segments=True)
        assert got.body == large
        assert (b.depth("Q"), a.depth("B")) == (0, 0)
        assert channels.received(b)[0].number - before == (PIECES - 40 + 3) // 4


@pytest.mark.nightly
def test_a_day_away_ends_with_ten_thousand_messages_in_their_order(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock moves while the run tries again; what expires meanwhile is reported here, and all else arrives."""
    monkeypatch.setattr(carrying, "LOOK_SECONDS", 600.0)  # it looks each second whether it was stopped
    here, there, clock = sites["qm"].operator, sites["qm2"].operator, sites.clock
    here.create_queue("R")
    began, put = clock.now(), 0

    def put_hour() -> None:
        """What programs put while nobody can be reached; one of each hour lives for an hour."""
        nonlocal put
        here.put_many("Q", numbers(put, put + PER_HOUR), manager="QM2")
        put += PER_HOUR
        here.put("Q", b"short", manager="QM2", expiry=HOUR, report=int(Report.EXPIRATION_WITH_DATA), reply_to_queue="R")

    def waits(seconds: float) -> bool:
        clock.advance(seconds)
        while put < PER_HOUR * HOURS and clock.now() >= began + HOUR * (put // PER_HOUR):
            put_hour()
        return False

    def connects(to: str) -> Receiver:
        if clock.now() < began + HOURS * HOUR:
            raise StoreError("there is no line", path=to)
        return reach(sites, to)

    now = channels.run_channel(here, "TO.QM2", until_empty=True, wait=waits, connects=connects)
    assert put == PER_HOUR * HOURS > 10_000
    reported = [message.feedback for message in here.browse("R")]
    arrived = [message.body for message in there.browse("Q", read_order="strict")]
    assert [body for body in arrived if body != b"short"] == numbers(0, put)
    assert (len(reported), set(reported)) == (HOURS - arrived.count(b"short"), {Feedback.EXPIRATION})
    assert arrived.count(b"short") <= 1, "only that of the last hour still lives"
    assert (now.status, now.waiting, now.in_doubt, now.messages) == ("inactive", 0, 0, len(arrived))
