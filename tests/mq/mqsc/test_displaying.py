"""The layout of DISPLAY as runmqsc prints it, its choice of attributes, PING QMGR, and the dates of system objects."""

from __future__ import annotations

import pytest

import inorder
from inorder.mq.mqsc import Answer, columns, run_script
from inorder.stores.seam.damage import utc
from inorder.testing import ManualClock


def answers(qm: inorder.QueueManager, *commands: str) -> list[Answer]:
    return list(run_script(commands, qm))


def printed(qm: inorder.QueueManager, command: str) -> list[str]:
    (answer,) = answers(qm, command)
    assert answer.outcome == "done", answer.text
    return [line for row in answer.rows for line in columns(row)]


@pytest.fixture
def defined(qm: inorder.QueueManager) -> inorder.QueueManager:
    script = ["DEFINE QLOCAL('app.in') DESCR('in queue')", "DEFINE QALIAS(B) TARGET('app.in') DESCR('it''s')"]
    assert {one.outcome for one in answers(qm, *script, "DEFINE PROCESS(P) APPLICID('/bin/p')")} == {"done"}
    return qm


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("DIS QL('app*')", ["   QUEUE(app.in)                           TYPE(QLOCAL)"]),
        ("DIS Q(B*)", ["   QUEUE(B)                                TYPE(QALIAS)"]),
        ("DIS Q(B*) QTYPE", ["   QUEUE(B)                                TYPE(QALIAS)"]),
        ("DIS QA(B) DESCR", ["   QUEUE(B)                                TYPE(QALIAS)", "   DESCR(it's)"]),
        (
            "DIS QL('app.in') DESCR BOQNAME SHARE",
            [
                "   QUEUE(app.in)                           TYPE(QLOCAL)",
                "   BOQNAME( )                              DESCR(in queue)",
                "   SHARE",
            ],
        ),
        (
            "DIS QL('app*') WHERE(DESCR EQ 'in queue')",
            ["   QUEUE(app.in)                           TYPE(QLOCAL)", "   DESCR(in queue)"],
        ),
        ("DIS QS('app*')", ["   QUEUE(app.in)                           TYPE(QUEUE)"]),
        ("DIS PROCESS(P*)", ["   PROCESS(P)"]),
        ("DIS PROCESS(P) APPLICID", ["   PROCESS(P)                              APPLICID(/bin/p)"]),
        ("DIS QMGR SYNCPT", ["   QMNAME(TEST)                            SYNCPT(AVAILABLE)"]),
        (
            "DIS QMSTATUS ALL",
            [
                "   QMNAME(TEST)                            TYPE(QMGR)",
                "   STATUS(RUNNING)                         CONNS(1)",
            ],
        ),
        ("DIS QMSTATUS STATUS", ["   QMNAME(TEST)                            TYPE(QMGR)", "   STATUS(RUNNING)"]),
    ],
)
def test_a_display_prints_what_runmqsc_does(defined: inorder.QueueManager, command: str, lines: list[str]) -> None:
    assert printed(defined, command) == lines


def test_a_display_shows_all_attributes_of_one_object_and_of_several_only_with_all(
    defined: inorder.QueueManager,
) -> None:
    assert printed(defined, "DIS QL('app.in')") == printed(defined, "DIS QL('app*') ALL")
    assert "   CURDEPTH(0)" in printed(defined, "DIS QL('app.in') CURDEPTH")


def test_attributes_that_mq_lacks_are_shown_if_named_or_changed(defined: inorder.QueueManager) -> None:
    def words(command: str) -> set[str]:
        (answer,) = answers(defined, command)
        return {*answer.rows[0]}

    ours = {"ORDER", "READORDER", "EXPIRY"}
    assert not ours & words("DIS QL('app.in')")
    assert ours & words("DIS QL('app.in') READORDER") == {"READORDER"}
    defined.alter_queue("app.in", order="commit")
    assert ours & words("DIS QL('app.in') ALL") == {"ORDER"}
    assert not {"ORIGIN", "ACTSKEPT"} & words("DIS QMGR")
    assert "ORIGIN" in words("DIS QMGR ORIGIN")


def test_a_ping_answers_that_the_queue_manager_responds(qm: inorder.QueueManager) -> None:
    (answer,) = answers(qm, "PING QMGR")
    assert (answer.outcome, answer.number, answer.text) == ("done", "AMQ8415I", "Queue manager TEST responds.")


@pytest.mark.every_store
def test_system_objects_have_the_creation_date_of_their_store(qm: inorder.QueueManager, clock: ManualClock) -> None:
    created, altered = (f"{utc(clock.now() + days * 86_400):%Y-%m-%d}" for days in (0, 1))
    clock.advance(86_400)
    qm.put("SYSTEM.DEAD.LETTER.QUEUE", b"1")
    for name in ("DEAD.LETTER", "DEFAULT.LOCAL"):
        (answer,) = answers(qm, f"DIS QL(SYSTEM.{name}.QUEUE) CRDATE")
        assert answer.rows[0]["CRDATE"] == created
    (answer,) = answers(qm, "DIS QMGR CRDATE")
    assert answer.rows[0]["CRDATE"] == created
    qm.create_queue("A")
    (answer,) = answers(qm, "DIS QL(A) CRDATE")
    assert answer.rows[0]["CRDATE"] == altered
