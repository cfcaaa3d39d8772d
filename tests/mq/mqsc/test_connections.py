"""DISPLAY CONN and DISPLAY QSTATUS TYPE(HANDLE): connections to the queue manager, and the queues they have open."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from typing import Any

import pytest
from tests.helpers.support import waiting

from inorder import QueueManager
from inorder.model.options import FOREVER
from inorder.mq import channels
from inorder.mq.mqsc import Answer, columns, run_script
from inorder.mq.mqsc.json_commands import object_of
from inorder.stores.seam.tables import Branch
from inorder.testing import ManualClock


def run(qm: QueueManager, command: str) -> Answer:
    (only,) = run_script([command], qm)
    return only


def shown(qm: QueueManager, command: str) -> list[dict[str, Any]]:
    answer = run(qm, command)
    assert answer.outcome == "done", answer.text
    return [dict(row) for row in answer.rows]


@pytest.fixture
def other(qm: QueueManager) -> QueueManager:
    """A second connection: it alone gets from Q, puts on Q through an alias, and browses R cooperatively."""
    qm.create_queue("R")
    qm.create_queue("A", type="alias", base_queue="Q")
    connection = qm.connect(program="other")
    connection.open("Q", input="exclusive")
    connection.open("A", output=True)
    connection.open("R", browse=True, co_op=True)
    return connection


def number(connection: QueueManager) -> str:
    (found,) = [one.connection for one in connection.inspect.connections() if one.program.name == "other"]
    return f"{found:016X}"


HANDLES = (
    {"OBJNAME": "Q", "OBJTYPE": "QUEUE", "HSTATE": "INACTIVE", "OPENOPTS": ("MQOO_INPUT_EXCLUSIVE",)},
    {"OBJNAME": "A", "OBJTYPE": "QUEUE", "HSTATE": "INACTIVE", "OPENOPTS": ("MQOO_OUTPUT",)},
    {"OBJNAME": "R", "OBJTYPE": "QUEUE", "HSTATE": "INACTIVE", "OPENOPTS": ("MQOO_BROWSE", "MQOO_CO_OP")},
)


def test_display_conn_shows_the_attributes_of_a_connection(qm: QueueManager, other: QueueManager) -> None:
    (row,) = shown(qm, "DISPLAY CONN(*) ALL WHERE(APPLTAG EQ 'other')")
    user, host = next((one.program.user, one.host) for one in qm.inspect.connections() if one.program.name == "other")
    assert list(row.items()) == [
        ("CONN", number(other)),
        ("TYPE", "CONN"),
        ("APPLTAG", "other"),
        ("APPLTYPE", "USER"),
        ("CONNAME", host),
        ("PID", os.getpid()),
        ("UOWSTATE", "NONE"),
        ("UOWSTDA", ""),
        ("UOWSTTI", ""),
        ("USERID", user),
    ]
    answer = run(qm, f"DIS CONN({number(other)}) APPLTAG PID")
    assert (answer.number, answer.text) == ("AMQ8276I", "Display Connection details.")
    assert [dict(one) for one in answer.rows] == [
        {"CONN": number(other), "TYPE": "CONN", "APPLTAG": "other", "PID": os.getpid()}
    ]


def test_display_conn_shows_the_state_and_the_begin_of_a_unit_of_work(
    qm: QueueManager, other: QueueManager, clock: ManualClock
) -> None:
    clock.advance(86_400 + 3_661)
    begun = clock.now()
    other.put("Q", b"1", syncpoint=True)
    clock.advance(60)
    (row,) = shown(qm, "DIS CONN(*) UOWSTATE UOWSTDA UOWSTTI WHERE(UOWSTATE EQ ACTIVE)")
    assert (row["CONN"], row["UOWSTATE"]) == (number(other), "ACTIVE")
    at = datetime.fromtimestamp(begun, timezone.utc)
    assert (row["UOWSTDA"], row["UOWSTTI"]) == (f"{at:%Y-%m-%d}", f"{at:%H.%M.%S}")
    other.back_out()
    assert shown(qm, f"DIS CONN({number(other)}) UOWSTATE")[0]["UOWSTATE"] == "NONE"
    states = []
    name = other._store.begin_global(other.internals.owner, [Branch("TO.PARIS", "PARIS")])
    states.append(shown(qm, f"DIS CONN({number(other)}) UOWSTATE")[0]["UOWSTATE"])
    other._store.settle(other.internals.owner, "commit", decides=name)
    states.append(shown(qm, f"DIS CONN({number(other)}) UOWSTATE")[0]["UOWSTATE"])
    assert states == ["PREPARED", "UNRESOLVED"]


def test_display_conn_lists_the_handles_of_a_connection(qm: QueueManager, other: QueueManager) -> None:
    (row,) = shown(qm, f"DIS CONN({number(other)}) TYPE(HANDLE)")
    assert row == {"CONN": number(other), "TYPE": "HANDLE", "OBJECTS": HANDLES}
    (row,) = shown(qm, f"DIS CONN({number(other)}) TYPE(ALL) APPLTAG OBJNAME")
    assert row == {
        "CONN": number(other), "TYPE": "ALL", "APPLTAG": "other",
        "OBJECTS": tuple({"OBJNAME": one["OBJNAME"], "OBJTYPE": "QUEUE"} for one in HANDLES),
    }  # fmt: skip
    assert shown(qm, f"DIS CONN({number(other)}) TYPE(*) ALL") == shown(qm, f"DIS CONN({number(other)}) TYPE(ALL)")
    (row,) = shown(qm, "DIS CONN(*) TYPE(HANDLE) WHERE(APPLTAG EQ 'test')")
    assert "OBJECTS" not in row, "it has none"
    unknown = run(qm, "DIS CONN(FFFFFFFFFFFFFFFF)")
    assert (unknown.outcome, unknown.number) == ("refused", "AMQ8147E")
    assert unknown.text.startswith("no connection matches FFFFFFFFFFFFFFFF")


@pytest.mark.parametrize(
    ("where", "handles"),
    [
        ("APPLTAG LK 'oth*'", "QAR"),
        ("OPENOPTS CT MQOO_OUTPUT", "A"),
        ("OPENOPTS EX MQOO_OUTPUT", "QR"),
        ("OPENOPTS CTG 'MQOO_INPUT*'", "Q"),
        ("OPENOPTS EXG 'MQOO_INPUT*'", "AR"),
        ("OPENOPTS EQ 'MQOO_BROWSE,MQOO_CO_OP'", "R"),
        ("HSTATE EQ ACTIVE", ""),
    ],
)
def test_a_condition_may_be_about_a_connection_or_its_handles(
    qm: QueueManager, other: QueueManager, where: str, handles: str
) -> None:
    answer = run(qm, f"DIS CONN({number(other)}) TYPE(HANDLE) WHERE({where})")
    assert "".join(one["OBJNAME"] for row in answer.rows for one in row["OBJECTS"]) == handles  # type: ignore[union-attr,index,misc]
    assert answer.outcome == ("done" if handles else "refused")
    alone = run(qm, f"DIS CONN({number(other)}) WHERE({where})")
    assert [row["CONN"] for row in alone.rows] == ([number(other)] if handles else [])


def test_a_handle_whose_connection_waits_is_active(qm: QueueManager) -> None:
    other = qm.connect(program="other")
    handle, idle = other.open("Q", input="shared"), other.open("Q", output=True)
    wait = waiting(other, lambda: handle.get(wait=FOREVER).body)
    (row,) = shown(qm, "DIS QSTATUS(Q) TYPE(HANDLE) INPUT WHERE(HSTATE EQ ACTIVE)")
    assert row == {"QUEUE": "Q", "TYPE": "HANDLE", "INPUT": "SHARED", "HSTATE": "ACTIVE"}
    (row,) = shown(qm, f"DIS CONN({number(qm)}) TYPE(HANDLE) HSTATE")
    assert [one["HSTATE"] for one in row["OBJECTS"]] == ["ACTIVE", "INACTIVE"]
    qm.put("Q", b"1")
    assert wait.result() == b"1"
    assert run(qm, "DIS QSTATUS(Q) TYPE(HANDLE) WHERE(HSTATE EQ ACTIVE)").outcome == "refused"
    idle.close()


def test_the_status_of_a_queue_shows_each_handle(qm: QueueManager, other: QueueManager) -> None:
    user, host = next((one.program.user, one.host) for one in qm.inspect.connections() if one.program.name == "other")
    rows = shown(qm, "DISPLAY QSTATUS(Q) TYPE(HANDLE) ALL")
    rest = {"CONNAME": host, "HSTATE": "INACTIVE", "PID": os.getpid(), "USERID": user}
    assert rows == [
        {"QUEUE": "Q", "TYPE": "HANDLE", "APPLTAG": "other", "APPLTYPE": "USER", "INPUT": "EXCL", "OUTPUT": "NO"}
        | rest,
        {"QUEUE": "Q", "TYPE": "HANDLE", "APPLTAG": "other", "APPLTYPE": "USER", "INPUT": "NO", "OUTPUT": "YES"} | rest,
    ]
    first, second = list(rows[0])[:2], list(rows[0])[2:]
    assert (first, second) == (["QUEUE", "TYPE"], sorted(second))
    assert run(qm, "DIS QS(Q) TYPE(HANDLE)").number == "AMQ8450I"


@pytest.mark.parametrize(
    ("command", "queues"),
    [
        ("DIS QS(*) TYPE(HANDLE)", ["Q", "Q", "R"]),
        ("DIS QS(*) TYPE(HANDLE) OPENTYPE(INPUT)", ["Q"]),
        ("DIS QS(*) TYPE(HANDLE) OPENTYPE(OUTPUT) OUTPUT", ["Q"]),
        ("DIS QS(*) TYPE(HANDLE) WHERE(INPUT EQ EXCL)", ["Q"]),
        ("DIS QS(R) TYPE(HANDLE) OPENTYPE(OUTPUT)", []),
        ("DIS QS(A) TYPE(HANDLE)", []),
    ],
)
def test_display_qstatus_selects_handles(
    qm: QueueManager, other: QueueManager, command: str, queues: list[str]
) -> None:
    answer = run(qm, command)
    assert [row["QUEUE"] for row in answer.rows] == queues
    assert (answer.outcome, answer.number) == (("done", "AMQ8450I") if queues else ("refused", "AMQ8147E"))


def test_a_connection_is_shown_as_text_and_as_json(qm: QueueManager, other: QueueManager) -> None:
    (row,) = run(qm, f"DIS CONN({number(other)}) TYPE(ALL) APPLTAG OPENOPTS").rows
    assert list(columns(row)) == [
        f"   CONN({number(other)})                  TYPE(ALL)",
        "   APPLTAG(other)",
        "",
        "   OBJNAME(Q)                              OBJTYPE(QUEUE)",
        "   OPENOPTS(MQOO_INPUT_EXCLUSIVE)",
        "",
        "   OBJNAME(A)                              OBJTYPE(QUEUE)",
        "   OPENOPTS(MQOO_OUTPUT)",
        "",
        "   OBJNAME(R)                              OBJTYPE(QUEUE)",
        "   OPENOPTS(MQOO_BROWSE,MQOO_CO_OP)",
    ]
    assert object_of(row) == {
        "conn": number(other),
        "type": "ALL",
        "appltag": "other",
        "objects": [
            {"objname": "Q", "objtype": "QUEUE", "openopts": ["MQOO_INPUT_EXCLUSIVE"]},
            {"objname": "A", "objtype": "QUEUE", "openopts": ["MQOO_OUTPUT"]},
            {"objname": "R", "objtype": "QUEUE", "openopts": ["MQOO_BROWSE", "MQOO_CO_OP"]},
        ],
    }


def test_the_open_options_of_a_handle_that_only_browses_are_shown_as_empty(qm: QueueManager) -> None:
    """The store does not keep the open options of a handle that only browses."""
    other = qm.connect(program="other")
    other.open("Q", browse=True)
    (row,) = shown(qm, f"DIS CONN({number(other)}) TYPE(HANDLE) OPENOPTS")
    assert row["OBJECTS"] == ({"OBJNAME": "Q", "OBJTYPE": "QUEUE", "OPENOPTS": ()},)
    assert list(columns(row))[-1] == "   OPENOPTS( )"


# --- ages of the oldest messages


def ages(qm: QueueManager, command: str, word: str) -> list[object]:
    (answer,) = run_script([command], qm)
    return [row[word] for row in answer.rows]


def test_msgage_is_the_age_of_the_oldest_message_and_0_on_an_empty_queue(qm: QueueManager, clock: ManualClock) -> None:
    qm.create_queue("OLD")
    qm.create_queue("NEW")
    qm.create_queue("NONE")
    qm.put("OLD", b"1", priority=1)
    clock.advance(60)
    qm.put("OLD", b"2", priority=9)
    qm.put("NEW", b"3")
    clock.advance(5.9)
    assert ages(qm, "DIS QSTATUS(*) MSGAGE WHERE(QUEUE NL 'S*')", "MSGAGE") == [5, 0, 65, 0]
    assert ages(qm, "DIS QS(*) WHERE(MSGAGE GE 5)", "QUEUE") == ["NEW", "OLD"]
    qm.get("OLD")
    qm.get("OLD")
    assert ages(qm, "DIS QS(OLD)", "MSGAGE") == [0]


def test_a_channel_shows_how_long_the_oldest_message_waits(qm: QueueManager, clock: ManualClock) -> None:
    qm.create_queue("B", usage="transmission")
    channels.define_channel(qm, "TO.B", transmission_queue="B", connection="b.db")
    channels.stop_channel(qm, "TO.B")
    assert ages(qm, "DIS CHS(TO.B) XQMSGAGE", "XQMSGAGE") == [0]
    qm.put("Q", b"1", manager="B")
    clock.advance(90)
    (now,) = channels.status(qm)
    assert (now.waiting, now.oldest_put_at) == (1, clock.now() - 90)
    assert ages(qm, "DIS CHS(TO.B) XQMSGAGE", "XQMSGAGE") == [90]
