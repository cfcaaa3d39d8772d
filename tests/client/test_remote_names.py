"""Queues of other queue managers: messages put through their names wait to be sent (between N-1 to N-4)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inorder import InorderError, Match, Message, QueueManager, Reason, Report
from inorder.client import store_transfer
from inorder.client.bulk import BULK_COLUMNS, BulkBrowser, ClaimReader
from inorder.errors import PutInhibited
from inorder.formats import FormatError, dmpmqmsg
from inorder.formats.json_lines import message_in, record_of
from inorder.model.message import Transmission

TARGET, OTHER = Transmission("THERE", "QM2"), Transmission("THERE", "QM3")
AT = BULK_COLUMNS.index("transmission")


@pytest.fixture
def sites(qm: QueueManager) -> QueueManager:
    """A transmission queue, and a remote queue at each of two queue managers."""
    qm.create_queue("XMIT", usage="transmission")
    qm.create_queue("R", type="remote", remote_queue="THERE", remote_manager="QM2", transmission_queue="XMIT")
    qm.create_queue("S", type="remote", remote_queue="THERE", remote_manager="QM3", transmission_queue="XMIT")
    return qm


def reason_of(call: Any, *given: Any, **named: Any) -> int:
    with pytest.raises(InorderError) as raised:
        call(*given, **named)
    return int(raised.value.reason)


def targets(qm: QueueManager, queue: str = "XMIT") -> list[Transmission | None]:
    return [message.transmission for message in qm.browse(queue)]


def filled(qm: QueueManager) -> list[Transmission]:
    """Puts messages for two queue managers, with and without properties; returns their targets."""
    qm.put("R", b"1")
    qm.put("S", b"2", properties={"colour": "red"}, group_id=b"G", flags=8, priority=0)
    qm.put("R", b"3", correlation_id="c", expiry=60)
    return [TARGET, OTHER, TARGET]


@pytest.mark.every_store
def test_every_way_to_read_shows_the_transmission_header(sites: QueueManager) -> None:
    wanted = filled(sites)
    assert targets(sites) == wanted
    assert [sight.message.transmission for sight in sites.inspect.look("XMIT")] == wanted
    assert [message.body for message in sites.browse("XMIT", match=Match(transmission=OTHER))] == [b"2"]
    assert [message.transmission for message in sites.browse("XMIT", selector="colour = 'red'")] == [OTHER]
    with sites.unit_of_work() as unit:
        assert [message.transmission for message in sites.get_many("XMIT", 9)] == wanted
        unit.back_out()
    with sites.open("XMIT", browse=True) as handle:
        browser = BulkBrowser(handle)
        rows = [row for one in browser.survey().stretches for page in browser.read(one) for row in page]
    assert [row[AT] for row in rows] == wanted
    with sites.open("XMIT", input="shared") as handle:
        reader = ClaimReader(handle, "sender")
        reader.begin()
        reader.claim(0)
        (part,) = reader.plan(0, 1)
        assert [row[AT] for page in reader.read(part) for row in page] == wanted
    assert sites.admin.check() == []


def test_the_transmission_header_is_kept_on_transmission_queues_and_dropped_on_others(sites: QueueManager) -> None:
    wanted = filled(sites)
    sites.create_queue("YMIT", usage="transmission")
    assert list(store_transfer.copy(sites, "XMIT", sites, "YMIT")) == [3]
    assert targets(sites, "YMIT") == wanted
    assert list(store_transfer.copy(sites, "XMIT", sites, "Q")) == [3]
    assert targets(sites, "Q") == [None] * 3
    assert list(store_transfer.move(sites, "YMIT", sites, "S")) == [3]
    assert targets(sites) == wanted + [OTHER] * 3
    sites.put("XMIT", sites.get("XMIT"))
    sites.put("Q", sites.get("XMIT"))
    assert TARGET in targets(sites)
    assert targets(sites, "Q") == [None] * 4


def test_the_transmission_header_survives_conversion_to_json_and_back(sites: QueueManager) -> None:
    filled(sites)
    for message in sites.browse("XMIT"):
        record = record_of(message)
        assert record["transmission"] == {"queue": "THERE", "manager": message.transmission.manager}  # type: ignore[union-attr]

    assert message_in(json.loads(json.dumps(record))).transmission == TARGET
    assert record_of(Message(b""))["transmission"] is None


def test_a_file_of_dmpmqmsg_cannot_hold_a_transmission_header(sites: QueueManager, tmp_path: Any) -> None:
    filled(sites)
    with (tmp_path / "file").open("wb") as stream, pytest.raises(FormatError, match="transmission"):
        dmpmqmsg.write(sites.browse("XMIT"), stream)


def test_a_message_for_a_transmission_queue_needs_a_transmission_header(sites: QueueManager) -> None:
    assert reason_of(sites.put, "XMIT", b"x") == 2260
    assert reason_of(sites.put_many, "XMIT", [Message(b"x", transmission=TARGET), b"y"]) == 2260
    assert sites.depth("XMIT") == 0
    sites.put("XMIT", b"x", transmission=OTHER)
    sites.put("R", b"y", transmission=OTHER)  # the queue name overrides the message
    assert targets(sites) == [OTHER, TARGET]


def test_every_way_to_put_takes_a_queue_manager(sites: QueueManager) -> None:
    sites.put("A", b"1", manager="XMIT")
    sites.put_many("B", [b"2", b"3"], manager="XMIT")
    sites.put_json("C", {}, manager="XMIT")
    with sites.unit_of_work(), sites.group("D", manager="XMIT") as group:
        group.put(b"5")
        group.put(b"6")
    with sites.open("E", manager="XMIT", output=True) as queue:
        queue.put(b"7")
    assert [one and one.queue for one in targets(sites)] == list("ABBCDDE")
    sites.put("Q", b"here", manager=sites.admin.manager_attributes().name)
    assert sites.get("Q").transmission is None
    sites.close_queue("A", manager="XMIT")


def test_inquire_and_set_of_a_remote_queue(sites: QueueManager) -> None:
    told = sites.inquire("R")
    assert told["type"] == "remote"
    assert (told["remote_queue"], told["remote_manager"], told["transmission_queue"]) == ("THERE", "QM2", "XMIT")
    assert not told.keys() & {"delivery", "get_allowed", "current_depth", "max_depth"}
    asked = ("QType", "RemoteQName", 2017, "XmitQName")
    assert list(sites.inquire("R", *asked).values()) == [6, "THERE", "QM2", "XMIT"]
    for selector in ("delivery", "MsgDeliverySequence", 16, "InhibitGet", "CurrentQDepth"):
        assert reason_of(sites.inquire, "R", selector) == 2068
    assert reason_of(sites.alter_queue, "R", delivery="fifo") == 2068
    assert reason_of(sites.create_queue, "N", type="remote", delivery="fifo") == 2068
    with sites.open("R", output=True) as handle:
        handle.set(InhibitPut=1)
        assert reason_of(handle.put, b"x") == 2051
        assert reason_of(handle.set, InhibitGet=1) == 2068
        assert handle.attributes().put_allowed is False
        assert reason_of(handle.status) == 2043


def test_the_usage_of_a_queue_can_change_only_while_it_is_closed_and_empty(sites: QueueManager) -> None:
    sites.put("Q", b"x")
    assert reason_of(sites.alter_queue, "Q", usage="transmission") == 2042
    sites.close_queue("Q")
    assert reason_of(sites.alter_queue, "Q", usage="transmission") == 2055
    sites.get("Q")
    sites.close_queue("Q")
    sites.alter_queue("Q", usage="transmission")
    assert reason_of(sites.put, "Q", b"x") == 2260


@pytest.fixture
def way(sites: QueueManager) -> QueueManager:
    """Adds A, an alias of the remote queue R, which leads to XMIT."""
    sites.create_queue("A", type="alias", base_queue="R")
    return sites


def test_an_open_alias_keeps_the_transmission_queue_but_not_the_remote_queue_between_them(way: QueueManager) -> None:
    handle = way.open("A", output=True)
    handle.put(b"1", syncpoint=True)
    assert [reason_of(way.delete_queue, name) for name in ("A", "XMIT")] == [2042, 2042]
    way.delete_queue("R")
    assert reason_of(handle.put, b"2") == 2041
    way.commit()  # the first message is sent
    assert targets(way) == [TARGET]
    way.create_queue("R", type="remote", remote_queue="THERE", remote_manager="QM2", transmission_queue="XMIT")
    handle.put(b"3")
    handle.close()
    assert targets(way) == [TARGET, TARGET]


@pytest.mark.parametrize("name", ["R", "ALIAS", "XMIT"])
def test_the_error_of_an_inhibited_put_names_the_definition_that_inhibits_it(sites: QueueManager, name: str) -> None:
    sites.create_queue("ALIAS", type="alias", base_queue="XMIT")
    sites.alter_queue(name, put_allowed=False)
    with pytest.raises(PutInhibited, match=f"puts to {name} are inhibited") as raised:
        sites.put(name if name != "XMIT" else "R", b"1")
    assert raised.value.data["queue"] == name


@pytest.mark.parametrize("name", ["XMIT", "ALIAS"])
def test_n_3_the_queue_manager_puts_nothing_on_a_transmission_queue_that_names_no_destination(
    sites: QueueManager, name: str
) -> None:
    """No channel could send it, or the messages behind it."""
    sites.create_queue("ALIAS", type="alias", base_queue="XMIT")
    sites.alter_queue("Q", trigger_control=True, trigger_type="every", initiation_queue=name, process="P")
    sites.create_queue("DEAD")
    sites.admin.create_process("P")
    sites.admin.alter_manager(dead_letter_queue="DEAD")
    sites.put("Q", b"1", report=Report.COA, reply_to_queue=name)
    assert [(one.why.queue, one.why.reason) for one in sites.dead.letters()] == [(name, Reason.XQH_ERROR)] * 2
    sites.admin.alter_manager(dead_letter_queue=name)
    sites.put("Q", b"2", report=Report.COA, reply_to_queue="GONE")
    assert sum(one.messages for one in sites.inspect.dropped()) == 2
    assert targets(sites) == []


def test_a_dead_letter_from_a_transmission_queue_keeps_its_destination(sites: QueueManager) -> None:
    sites.create_queue("DEAD")
    sites.admin.alter_manager(dead_letter_queue="DEAD", default_transmission_queue="XMIT")
    sites.put("R", b"1")
    with sites.unit_of_work():
        sites.dead.add(sites.get("XMIT"), queue="XMIT")
    (letter,) = sites.dead.letters()
    assert (letter.why.queue, letter.why.manager) == TARGET
    assert sites.dead.replay().messages == 1
    assert targets(sites) == [TARGET]
