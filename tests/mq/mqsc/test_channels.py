"""Channels in MQSC: DEFINE, ALTER, DISPLAY, START, STOP, RESET, RESOLVE, PING."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.channelled import bodies, manager

from inorder import connect
from inorder.model.channel_attributes import SYSTEM_CHANNELS
from inorder.mq import channels
from inorder.mq.mqsc import export_channel, run_script

SCRIPT = """
DEFINE QLOCAL(B) USAGE(XMITQ)
DEFINE CHANNEL(TO.B) CHLTYPE(SDR) XMITQ(B) CONNAME('{b}') BATCHSZ(2)
DEFINE CHANNEL(TO.B) CHLTYPE(SDR) XMITQ(B) CONNAME('{b}') BATCHSZ(3) BATCHINT(500) REPLACE
ALTER CHL(TO.B) DESCR('to the other site') READORDER(RELAXED)
PING CHANNEL(TO.B)
STOP CHANNEL(TO.B) MODE(FORCE)
RESET CHL(TO.B) SEQNUM(5)
"""


def test_a_script_defines_and_operates_a_channel(tmp_path: Path) -> None:
    a, b = str(tmp_path / "a.db"), str(tmp_path / "b.db")
    manager(a, "A")
    manager(b, "B")
    with connect(a) as qm, connect(b) as other:
        answers = list(run_script(SCRIPT.format(b=b).strip().splitlines(), qm))
        assert [(one.outcome, one.text) for one in answers if one.outcome != "done"] == []
        assert "reaches queue manager B" in answers[4].text
        made = channels.channel(qm, "TO.B")
        assert (made.batch_size, made.batch_interval, made.read_order) == (3, 0.5, "relaxed")
        ((row,),) = (one.rows for one in run_script(["DIS CHANNEL(TO.*) BATCHSZ BATCHINT READORDER"], qm))
        assert row == {
            "CHANNEL": "TO.B", "CHLTYPE": "SDR", "BATCHSZ": 3, "BATCHINT": 500, "READORDER": "RELAXED"
        }  # fmt: skip
        ((row,),) = (one.rows for one in run_script(["DIS CHS(TO.B) STATUS LSTSEQNO INDOUBT STOPREQ"], qm))
        assert row == {"CHANNEL": "TO.B", "STATUS": "STOPPED", "INDOUBT": "NO", "LSTSEQNO": 4, "STOPREQ": "YES"}
        qm.put("Q", b"1", manager="B")
        (started,) = run_script(["START CHANNEL(TO.B)"], qm)
        assert started.outcome == "done"
        channels.run_channel(qm, "TO.B", until_empty=True)
        assert bodies(other) == [b"1"]
        (resolved, deleted) = run_script(["RESOLVE CHANNEL(TO.B) ACTION(COMMIT)", "DELETE CHANNEL(TO.B)"], qm)
        assert (resolved.outcome, deleted.outcome) == ("refused", "done")


DUMPED = """
DEFINE QLOCAL(B) USAGE(XMITQ)
DEFINE CHANNEL(TO.B) CHLTYPE(SDR) XMITQ(B) CONNAME(B.DB) BATCHSZ(7) TRPTYPE(TCP) NPMSPEED(NORMAL) SENDEXIT(' ') +
   BATCHINT(0) RCVEXIT(' ') SSLCIPH(' ') SSLCAUTH(REQUIRED) COMPMSG(NONE) CONVERT(NO) MAXMSGL(4194304) PUTAUT(DEF)
DEFINE CHANNEL(TO.C) LIKE(TO.B) DESCR('like the other') NPMSPEED(FAST)
DEFINE CHANNEL(BACK) CHLTYPE(RCVR) LIKE(TO.B) MRRTY(3)
"""


def test_attributes_without_effect_are_accepted_and_like_copies_the_others() -> None:
    with connect() as qm:
        answers = list(run_script(DUMPED.strip().splitlines(), qm))
        assert [one.text for one in answers if one.outcome != "done"] == []
        assert "Without effect here: TRPTYPE, SENDEXIT" in answers[1].text
        like, back = channels.channel(qm, "TO.C"), channels.channel(qm, "BACK")
        (shown,) = run_script(["DIS CHL(TO.*) BATCHINT MRTMR WHERE(BATCHINT LT 1)"], qm)
        assert [dict(row) for row in shown.rows] == [
            {"CHANNEL": name, "CHLTYPE": "SDR", "BATCHINT": 0} for name in ("TO.B", "TO.C")
        ]
        assert (like.batch_size, like.connection, like.description) == (7, "B.DB", "like the other")
        assert (like.nonpersistent_speed, back.nonpersistent_speed) == ("fast", "normal")
        assert (back.type, back.message_retry_count, back.batch_size) == ("receiver", 3, 50)


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("DIS CHL(*) WHERE(BATCHSZ EQ 7)", ["TO.B", "TO.C"]),
        ("DIS CHL(*) TYPE(RCVR)", ["BACK"]),
        ("DIS CHL(*) CHLTYPE(SDR)", ["TO.B", "TO.C"]),
        ("DIS CHL(*) TYPE(ALL)", ["BACK", "TO.B", "TO.C"]),
        ("DIS CHL(TO.*) WHERE(DESCR LK 'like*')", ["TO.C"]),
        ("DIS CHL(*) WHERE(CHLTYPE NE SDR)", ["BACK"]),
        ("DIS CHS(*) WHERE(XQMSGSA GT 0)", ["TO.B", "TO.C"]),
        ("DIS CHL(*) WHERE(NPMSPEED EQ FAST)", ["TO.C"]),
        ("DIS CHS(*) WHERE(NPMSPEED EQ NORMAL)", ["TO.B", "TO.C"]),
    ],
)
def test_where_selects_channels(command: str, found: list[str]) -> None:
    with connect() as qm:
        list(run_script(DUMPED.strip().splitlines(), qm))
        qm.put("Q", b"1", manager="B")
        (never,) = run_script(["DIS CHS(*)"], qm)
        assert (never.outcome, never.number, never.reason) == ("refused", "AMQ8420I", 3065)
        list(run_script(["STOP CHL(TO.B)", "STOP CHL(TO.C)"], qm))
        (answer,) = run_script([command], qm)
        assert [row["CHANNEL"] for row in answer.rows if row["CHANNEL"] not in SYSTEM_CHANNELS] == found
        (answer,) = run_script(["DIS CHS(*) WHERE(INDOUBT EQ YES)"], qm)
        assert (answer.outcome, answer.number) == ("refused", "AMQ8420I")


def test_a_channel_status_names_the_queue_manager_that_its_messages_are_for() -> None:
    script = """
DEFINE QREMOTE(R) RNAME(Q) RQMNAME(FAR) XMITQ(B)
STOP CHANNEL(TO.B)
STOP CHANNEL(TO.C)
"""
    with connect() as qm:
        list(run_script([*DUMPED.strip().splitlines(), "ALTER CHL(TO.C) XMITQ(C)", "DEFINE QL(C) USAGE(XMITQ)"], qm))
        list(run_script(script.splitlines(), qm))
        (answer,) = run_script(["DIS CHS(*)"], qm)
        assert [dict(row) for row in answer.rows] == [
            {"CHANNEL": name, "CHLTYPE": "SDR", "CONNAME": "B.DB", "RQMNAME": far, "STATUS": "STOPPED", "XMITQ": queue}
            for name, far, queue in (("TO.B", "FAR", "B"), ("TO.C", "C", "C"))
        ]
        list(run_script(["DEFINE QREMOTE(R2) RNAME(Q) RQMNAME(NEAR) XMITQ(B)"], qm))
        (answer,) = run_script(["DIS CHS(TO.B) RQMNAME"], qm)
        assert answer.rows[0]["RQMNAME"] == ""


def test_an_interval_of_0_means_no_interval_as_in_mq() -> None:
    """Dumps of MQ's definitions contain such intervals."""
    script = (
        "DEFINE CHANNEL(S) CHLTYPE(SDR) XMITQ(B) CONNAME(B) BATCHINT(0) MAXMSGL(104857600)",
        "DEFINE CHANNEL(R) CHLTYPE(RCVR) MRTMR(0)",
        "PING CHANNEL(R) DATALEN(64)",
        "STOP CHANNEL(S) MODE(FORCE) STATUS(STOPPED)",
        "DIS CHANNEL(*) BATCHINT WHERE(BATCHINT EQ 0)",
    )
    with connect() as qm:
        *answers, shown = run_script(script, qm)
        assert [one.outcome for one in answers] == ["done", "done", "refused", "done"]
        found = (channels.channel(qm, "S").batch_interval, channels.channel(qm, "R").message_retry_interval)
        assert found == (None, None)
        assert [(row["CHANNEL"], row["BATCHINT"]) for row in shown.rows] == [("S", 0), ("SYSTEM.DEF.SENDER", 0)]
        assert "BATCHINT(0)" in export_channel(channels.channel(qm, "S"))


def test_an_unreachable_other_side_of_a_channel_does_not_end_a_script(tmp_path: Path) -> None:
    """PING and RESOLVE need the other side and fail; RESET acts on this side."""
    script = """
DEFINE QLOCAL(OUT) USAGE(XMITQ)
DEFINE CHANNEL(FILE) CHLTYPE(SDR) CONNAME('{folder}/none.db') XMITQ(OUT)
DEFINE CHANNEL(MQ) CHLTYPE(SDR) CONNAME('other.example(1414), 10.0.0.2 (1415)') XMITQ(OUT)
PING CHANNEL(FILE)
RESET CHANNEL(FILE) SEQNUM(5)
PING CHANNEL(MQ)
RESET CHANNEL(MQ)
RESET CHANNEL(MQ) SEQNUM(7)
START CHANNEL(MQ) IGNSTATE(YES)
STOP CHANNEL(MQ) IGNSTATE(NO) MODE(QUIESCE)
DEFINE QLOCAL(AFTER)"""
    with connect() as qm:
        answers = list(run_script(script.format(folder=tmp_path).strip().splitlines(), qm))
        failed = [(one.source.lines[0][1], one.number) for one in answers if one.outcome != "done"]
        assert failed == [("PING CHANNEL(FILE)", "AMQ9202E"), ("PING CHANNEL(MQ)", "AMQ9202E")]
        assert [(one.name, one.number) for one in channels.status(qm)] == [("FILE", 4), ("MQ", 6)]
    assert list(tmp_path.iterdir()) == []


def test_an_export_defines_the_same_channels() -> None:
    with connect() as qm, connect() as other:
        list(run_script([*DUMPED.strip().splitlines(), "ALTER CHANNEL(TO.C) READORDER(RELAXED)"], qm))
        script = [line for one in channels.channels(qm) for line in export_channel(one).split("\n")]
        assert sum("READORDER" in line for line in script) == 1
        assert [one.text for one in run_script(script * 2, other) if one.outcome != "done"] == []
        assert channels.channels(other) == channels.channels(qm)


def test_a_receiver_needs_both_user_and_sender_and_is_exported_with_them() -> None:
    names = f"DEFINE CHANNEL(BACK) CHLTYPE(RCVR) MCAUSER('london') SENDER('{'f00' * 10}ab')"
    with connect() as qm:
        (half, whole) = run_script(["DEFINE CHANNEL(HALF) CHLTYPE(RCVR) MCAUSER('london')", names], qm)
        assert (half.outcome, whole.outcome) == ("refused", "done")
        back = channels.channel(qm, "BACK")
        assert (back.user, back.sender) == ("london", "f00" * 10 + "ab")
        assert "MCAUSER('london')" in export_channel(back)
        channels.define_channel(qm, "PLAIN", "receiver")
        assert "SENDER" not in export_channel(channels.channel(qm, "PLAIN"))
