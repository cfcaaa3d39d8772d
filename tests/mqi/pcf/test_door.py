"""PCF requests that a program puts through the verbs: the reply comes in the same call, or at the commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.mqi.pcf.asking import replies_in, request

import inorder
from inorder import QueueManager
from inorder.mq.words import COMMAND_QUEUE
from inorder.mqi import verbs
from inorder.mqi.constants import constants
from inorder.mqi.layouts import layout

mq: Any = constants()
CREATE = request("CREATE_Q", {"MQCA_Q_NAME": "NEW", "MQIA_Q_TYPE": 1})
SYNCPOINT, NO_SYNCPOINT = mq["MQPMO_SYNCPOINT"], mq["MQPMO_NO_SYNCPOINT"]


@pytest.fixture
def qm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> QueueManager:
    monkeypatch.setenv("INORDER_STORE", str(tmp_path / "qm1.db"))
    monkeypatch.setenv("INORDER_MQI", str(tmp_path))
    made = inorder.connect(tmp_path / "qm1.db")
    made.create_queue(COMMAND_QUEUE)
    made.create_queue("REPLIES")
    return made


def connected() -> int:
    hconn, _, reason = verbs.mqconn(b" " * 48)
    assert reason == 0
    return hconn


def put(hconn: int, hobj: int, options: int, body: bytes = CREATE) -> tuple[int, int]:
    md = layout("MD").new(1, Format=b"MQADMIN ", MsgType=mq["MQMT_REQUEST"], ReplyToQ=b"REPLIES", CodedCharSetId=1208)
    return verbs.mqput(hconn, hobj, md, layout("PMO").new(1, Options=options), body)


def opened(hconn: int) -> int:
    hobj, _, reason = verbs.mqopen(hconn, layout("OD").new(1, ObjectName=COMMAND_QUEUE.encode()), mq["MQOO_OUTPUT"])
    assert reason == 0
    return hobj


def reasons(qm: QueueManager) -> list[int]:
    """Removes the replies so far. Returns their reasons."""
    return [replies_in([qm.get("REPLIES").body])[0].reason for _ in range(qm.depth("REPLIES"))]


def test_a_request_outside_a_unit_of_work_is_answered_in_the_same_call(qm: QueueManager) -> None:
    hconn = connected()
    assert put(hconn, opened(hconn), NO_SYNCPOINT) == (0, 0)
    assert reasons(qm) == [0]
    assert "NEW" in {queue.name for queue in qm.queues()}
    od = layout("OD").new(1, ObjectName=COMMAND_QUEUE.encode())
    md = layout("MD").new(1, Format=b"MQADMIN ", MsgType=mq["MQMT_REQUEST"], ReplyToQ=b"REPLIES")
    assert verbs.mqput1(hconn, od, md, layout("PMO").new(1, Options=NO_SYNCPOINT), CREATE) == (0, 0)
    assert reasons(qm) == [4001]
    verbs.mqdisc(hconn)


def test_requests_in_a_unit_of_work_are_answered_at_its_commit(qm: QueueManager) -> None:
    hconn = connected()
    hobj = opened(hconn)
    assert put(hconn, hobj, SYNCPOINT) == (0, 0)
    assert put(hconn, hobj, SYNCPOINT) == (0, 0)
    assert reasons(qm) == []
    assert verbs.mqcmit(hconn) == (0, 0)
    assert reasons(qm) == [0, 4001]
    assert put(hconn, hobj, SYNCPOINT) == (0, 0)
    assert verbs.mqback(hconn) == (0, 0)
    assert verbs.mqcmit(hconn) == (0, 0)
    assert reasons(qm) == []
    assert put(hconn, hobj, SYNCPOINT) == (0, 0)
    assert verbs.mqdisc(hconn) == (0, 0)
    assert reasons(qm) == [4001]
    assert qm.depth(COMMAND_QUEUE) == 0


def test_a_request_beside_a_unit_of_work_leaves_the_unit_alone(qm: QueueManager) -> None:
    hconn = connected()
    hobj = opened(hconn)
    assert put(hconn, hobj, SYNCPOINT, request("PING_Q_MGR", {})) == (0, 0)
    assert put(hconn, hobj, NO_SYNCPOINT) == (0, 0)
    assert reasons(qm) == [0]
    assert verbs.mqback(hconn) == (0, 0)
    assert (reasons(qm), qm.depth(COMMAND_QUEUE)) == ([], 0)
    verbs.mqdisc(hconn)


def test_requests_to_other_queues_and_queue_managers_run_no_command(qm: QueueManager) -> None:
    qm.create_queue("OTHER", usage="transmission")
    hconn = connected()
    for names in ({"ObjectName": b"REPLIES"}, {"ObjectName": COMMAND_QUEUE.encode(), "ObjectQMgrName": b"OTHER"}):
        hobj, _, reason = verbs.mqopen(hconn, layout("OD").new(1, **names), mq["MQOO_OUTPUT"])
        assert reason == 0
        assert put(hconn, hobj, NO_SYNCPOINT) == (0, 0)
    assert "NEW" not in {queue.name for queue in qm.queues()}
    verbs.mqdisc(hconn)
