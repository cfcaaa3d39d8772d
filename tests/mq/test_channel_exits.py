"""Exits on both sides of a channel hide and shrink what is on its way (C-7, A-34)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pytest
from inorder_scenarios.channelling import reach
from inorder_scenarios.sites import Sites

from inorder import Message
from inorder.model.channel_attributes import ChannelAttributes
from inorder.mq import channels

KEY = 0x5A
TEXT = b"the same words again and again, " * 1000
SEEN: list[Message] = []


def pack(message: Message, channel: ChannelAttributes) -> Message:
    """The sender's exit: shrinks, and hides from who looks at the line."""
    return message.replace(body=bytes(byte ^ KEY for byte in zlib.compress(message.body)))


def unpack(message: Message, channel: ChannelAttributes) -> Message:
    """The receiver's."""
    SEEN.append(message)
    return message.replace(body=zlib.decompress(bytes(byte ^ KEY for byte in message.body)))


@pytest.fixture
def sites() -> Iterator[Sites]:
    made = Sites("sqlite")
    made["qm"].operator.create_queue("QM2", usage="transmission")
    made["qm2"].operator.create_queue("Q")
    yield made
    for site in made.values():
        site.operator.internals.abandon()
        site.store.close_store()


def test_what_one_side_shrinks_and_hides_the_other_opens(sites: Sites) -> None:
    here, there = sites["qm"].operator, sites["qm2"].operator
    name = f"{__name__}:"
    channels.define_channel(here, "TO.QM2", transmission_queue="QM2", connection="qm2", message_exit=f"{name}pack")
    channels.define_channel(there, "TO.QM2", "receiver", message_exit=f"{name}unpack")
    put = here.put("Q", TEXT, manager="QM2", properties={"colour": "red"}, priority=5)
    channels.run_channel(here, "TO.QM2", until_empty=True, exits=[__name__], connects=lambda to: reach(sites, to))
    (on_its_way,) = SEEN
    assert len(on_its_way.body) < len(TEXT) / 10
    got = there.get("Q")
    found = (got.body, got.message_id, got.priority, dict(got.properties))
    assert found == (TEXT, put.message_id, 5, {"colour": "red"})
