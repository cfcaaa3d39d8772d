"""The picture of queue managers and the ways between them: what comes, what goes, and what is elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

import inorder
from inorder import QueueManager
from inorder.errors import StoreError
from inorder.mq import channels
from inorder.server.console.sites import Way, Ways, ways


@pytest.fixture
def hub(tmp_path: Path) -> QueueManager:
    return inorder.connect(tmp_path / "hub.db", name="HUB")


def test_a_queue_manager_alone_has_no_ways(hub: QueueManager) -> None:
    assert ways(hub) == Ways([], [])


def test_channels_are_ways_with_their_lag_and_trouble(hub: QueueManager, tmp_path: Path) -> None:
    oslo = inorder.connect(tmp_path / "oslo.db", name="OSLO")
    oslo.create_queue("Q")
    channels.define_connection(hub, "OSLO", str(tmp_path / "oslo.db"))
    hub.create_queue("TO.OSLO.XMITQ", usage="transmission")
    hub.create_queue("FAR", type="remote", remote_queue="Q", remote_manager="OSLO", transmission_queue="TO.OSLO.XMITQ")
    channels.define_channel(hub, "TO.OSLO", transmission_queue="TO.OSLO.XMITQ", connection="OSLO")
    hub.put("FAR", b"1")
    [view] = hub.inspect.overview("TO.OSLO.XMITQ")
    assert ways(hub).go == [Way("OSLO", "TO.OSLO", "channel", "idle", "inactive", 1, view.oldest_put_at)]
    channels.run_channel(hub, "TO.OSLO", until_empty=True)
    assert ways(hub).go == [Way("OSLO", "TO.OSLO", "channel", "idle", "inactive")]
    assert ways(oslo).come == [Way("HUB", "TO.OSLO", "channel", "idle", "batch 1 has arrived")]
    channels.stop_channel(hub, "TO.OSLO")
    assert [(one.state, one.text) for one in ways(hub).go] == [("bad", "stopped")]


def test_collections_are_ways_at_both_sides(hub: QueueManager, tmp_path: Path) -> None:
    shop = inorder.connect(tmp_path / "shop.db", name="SHOP.1")
    hub.create_queue("SHOPS", type="store_and_forward", targets="SHOP.1")
    hub.put("PRICES", b"1", manager="SHOP.1")
    [waits] = ways(hub).go
    assert (waits.manager, waits.name, waits.kind, waits.waiting) == ("SHOP.1", "SHOPS", "collection", 1)
    channels.define_connection(shop, "HUB", str(tmp_path / "none.db"))
    shop.create_queue("SHOPS", type="home_server", remote_manager="HUB")
    assert ways(shop).come == [Way("HUB", "SHOPS", "collection", "idle", "inactive")]
    with pytest.raises(StoreError):
        channels.pull(shop, "SHOPS", until_empty=True)
    assert [(one.state, one.text) for one in ways(shop).come] == [("bad", "stopped")]


def test_synchronous_queues_are_one_way_for_each_connection(hub: QueueManager, tmp_path: Path) -> None:
    for queue in ("A", "B"):
        hub.create_queue(queue, type="remote", remote_queue="Q", mode="synchronous", connection="OSLO")
    assert ways(hub).go == [Way("OSLO", "OSLO", "synchronous", "bad", "not defined")]
    channels.define_connection(hub, "OSLO", str(tmp_path / "oslo.db"))
    assert ways(hub).go == [Way("OSLO", "OSLO", "synchronous", "idle", "2 queues")]
