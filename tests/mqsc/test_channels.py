"""Channels in MQSC: defined, altered, displayed, started, stopped, reset, resolved, pinged."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.channelled import bodies, manager

from inorder import channels, connect
from inorder.mqsc import run_script

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
            "CHANNEL": "TO.B", "CHLTYPE": "SDR", "BATCHSZ": 3, "BATCHINT": "500", "READORDER": "RELAXED"
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


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("DEFINE CHANNEL(A) CHLTYPE(SVR)", "CHLTYPE(SDR) or CHLTYPE(RCVR)"),
        ("DEFINE CHANNEL(A) SSLCIPH(X)", "an attribute of a channel"),
        ("STOP CHANNEL(A) MODE(SOON)", "MODE(QUIESCE)"),
        ("RESET CHANNEL(A) SEQNUM(0)", "SEQNUM(1 to 999999999)"),
        ("RESOLVE CHANNEL(A) ACTION(MAYBE)", "ACTION(BACKOUT)"),
        ("PING CHANNEL(A) DATALEN(4)", "nothing more"),
        ("DIS CHSTATUS(A) NETPRTY", "a keyword to display"),
        ("CLEAR CHANNEL(A)", "CLEAR QLOCAL"),
    ],
)
def test_what_is_no_command_of_ours_says_what_is(command: str, why: str) -> None:
    (answer,) = run_script([command], None)
    assert answer.outcome == "not valid"
    assert why in answer.text
