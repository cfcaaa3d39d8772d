"""System objects of MQ in MQSC; inserts and IGNSTATE, which scripts for any queue manager use."""

from __future__ import annotations

import pytest

from inorder import connect
from inorder.model.channel_attributes import SYSTEM_CHANNELS
from inorder.mq import channels
from inorder.mq.mqsc import Answer, export_channel, run_script


def outcomes(script: str, *, skip: bool = False) -> list[Answer]:
    with connect(name="QMA") as qm:
        return list(run_script(script.strip().splitlines(), qm, skip=skip))


@pytest.mark.parametrize(
    "command",
    [
        "DEFINE QLOCAL(MY.INITQ) LIKE(SYSTEM.DEFAULT.INITIATION.QUEUE)",
        "ALTER QLOCAL(SYSTEM.CHANNEL.INITQ) MAXDEPTH(10)",
        "DIS QL(SYSTEM.CICS.INITIATION.QUEUE)",
        "ALTER CHANNEL(SYSTEM.DEF.SENDER) CHLTYPE(SDR) HBINT(60)",
        "DIS CHANNEL(SYSTEM.DEF.RECEIVER)",
        "ALTER PROCESS(SYSTEM.DEFAULT.PROCESS) USERDATA('x')",
        "DEFINE PROCESS(P) LIKE(SYSTEM.DEFAULT.PROCESS)",
        "DELETE QLOCAL(NOPE) IGNSTATE(YES)",
        "DELETE QREMOTE(NOPE) IGNSTATE(YES)",
        "DELETE CHANNEL(NOPE) IGNSTATE(YES)",
        "DELETE PROCESS(NOPE) IGNSTATE(YES)",
        "DEFINE QREMOTE(ANSWERS) RNAME(REPLIES) RQMNAME(+QMNAME+)",
    ],
)
def test_commands_on_system_objects_and_with_ignstate_succeed(command: str) -> None:
    (answer,) = outcomes(command)
    assert answer.outcome == "done", answer.text


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("ALTER QLOCAL(SYSTEM.ADMIN.STATISTICS.QUEUE) MAXDEPTH(500000)", "there are no accounting and monitoring"),
        ("ALTER QLOCAL(SYSTEM.ADMIN.PERFM.EVENT) MAXDEPTH(1)", "there are no event messages"),
        ("DEFINE QMODEL(MINE) LIKE(SYSTEM.JMS.TEMPQ.MODEL)", "there are no classes for JMS"),
        ("ALTER CHANNEL(SYSTEM.DEF.SVRCONN) DESCR('x')", "programs open stores directly"),
        ("DEFINE CHANNEL(C) CHLTYPE(SDR) LIKE(SYSTEM.DEF.SERVER)", "a receiver does not start a channel"),
    ],
)
def test_an_unsupported_system_object_is_refused_or_skipped_with_its_reason(command: str, why: str) -> None:
    (refused,) = outcomes(command)
    assert (refused.outcome, why in refused.text) == ("unsupported", True), refused.text
    (skipped,) = outcomes(command, skip=True)
    assert (skipped.outcome, why in skipped.text) == ("skipped", True), skipped.text


def test_a_name_that_mq_does_not_have_is_not_skipped() -> None:
    (answer,) = outcomes("ALTER QLOCAL(SYSTEM.DEFAULT.LOCAL.Q) MAXDEPTH(1)", skip=True)
    assert answer.outcome == "refused"


def test_ignstate_ignores_only_a_missing_object() -> None:
    answers = outcomes("DEFINE QLOCAL(A)\nDELETE QALIAS(A) IGNSTATE(YES)\nDELETE QLOCAL(B) IGNSTATE(NO)")
    assert [one.outcome for one in answers] == ["done", "refused", "refused"]


def test_default_channels_are_kept_from_their_first_change_on() -> None:
    with connect() as qm:
        assert (channels.channels(qm), channels.status(qm)) == ([], [])
        script = (
            "DEFINE QLOCAL(B) USAGE(XMITQ)\n"
            "DEFINE CHANNEL(BEFORE) CHLTYPE(SDR) XMITQ(B) CONNAME(B)\n"
            "ALTER CHANNEL(SYSTEM.DEF.SENDER) CHLTYPE(SDR) BATCHSZ(7)\n"
            "DEFINE CHANNEL(AFTER) CHLTYPE(SDR) XMITQ(B) CONNAME(B)\n"
            "DEFINE CHANNEL(BACK) CHLTYPE(RCVR)\n"
            "START CHANNEL(SYSTEM.DEF.SENDER)"
        )
        answers = list(run_script(script.split("\n"), qm))
        assert [one.outcome for one in answers] == ["done"] * 5 + ["refused"]
        found = {one.name: one.batch_size for one in channels.channels(qm)}
        assert found == {"AFTER": 7, "BACK": 50, "BEFORE": 50, "SYSTEM.DEF.SENDER": 7}
        with connect() as other:
            exported = [line for one in channels.channels(qm) for line in export_channel(one).split("\n")]
            assert [one.text for one in run_script(exported * 2, other) if one.outcome != "done"] == []
            assert channels.channels(other) == channels.channels(qm)
        channels.delete_channel(qm, "SYSTEM.DEF.SENDER")
        assert channels.channel(qm, "SYSTEM.DEF.SENDER") == SYSTEM_CHANNELS["SYSTEM.DEF.SENDER"]


def test_the_name_of_the_queue_manager_is_inserted() -> None:
    answers = outcomes(
        "DEFINE QLOCAL(+QMNAME+.IN) DESCR('of +MQ_Q_MGR_NAME+, 1+1')\nDIS QLOCAL(QMA.IN) DESCR\nDEFINE QLOCAL(+OTHER+)"
    )
    assert answers[1].rows[0]["DESCR"] == "of QMA, 1+1"
    assert answers[2].outcome == "not valid"
    (checked,) = run_script(["DEFINE QLOCAL(+QMNAME+.IN)"], None)
    assert checked.outcome == "read"
