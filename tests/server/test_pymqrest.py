"""pymqrest, a client of IBM's administration interface that knows a closed list of attributes, reads every answer.

It needs Python 3.12, so `make nightly` runs this on the newer Pythons.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.conftest import Served, Start

import inorder
from inorder.mq.mqsc import run_script

pymqrest = pytest.importorskip("pymqrest", reason="needs Python 3.12")
auth = pytest.importorskip("pymqrest.auth")

SCRIPT = """
DEFINE QALIAS(ALIAS) TARGET(Q1)
DEFINE QMODEL(MODEL)
DEFINE QLOCAL(B) USAGE(XMITQ)
DEFINE QREMOTE(REMOTE) RNAME(Q) RQMNAME(B)
DEFINE CHANNEL(TO.B) CHLTYPE(SDR) XMITQ(B) CONNAME('host(1414)')
DEFINE CHANNEL(BACK) CHLTYPE(RCVR)
DEFINE PROCESS(P) APPLICID('/bin/p')
STOP CHANNEL(TO.B)
"""


@pytest.fixture
def session(start: Start, served: Served) -> Any:
    with inorder.connect(served.store) as qm:
        assert {one.outcome for one in run_script(SCRIPT.splitlines(), qm)} == {"done"}
        name = qm.admin.manager_attributes().name
    running = start()
    url = f"{running.record['url'].rstrip('/')}/ibmmq/rest/v2"
    return pymqrest.MQRESTSession(url, name, credentials=auth.BasicAuth("mqadmin", running.token))


def test_pymqrest_displays_objects_of_all_kinds(session: Any) -> None:
    names = {one["queue_name"]: one["type"] for one in session.display_queue()}
    assert {"Q1": "QLOCAL", "ALIAS": "QALIAS", "MODEL": "QMODEL", "REMOTE": "QREMOTE"}.items() <= names.items()
    (one,) = session.display_queue("Q1", response_parameters=["current_queue_depth"])
    assert one == {"queue_name": "Q1", "type": "QLOCAL", "current_queue_depth": 0}
    assert session.display_qmgr()["platform"] == "UNIX"
    assert session.display_qmstatus()["ha_status"] == "RUNNING"
    assert session.ping_qmgr() is None
    channels = {one["channel_name"]: one for one in session.display_channel()}
    assert channels.keys() == {"TO.B", "BACK", "SYSTEM.DEF.RECEIVER", "SYSTEM.DEF.SENDER"}
    assert channels["TO.B"]["batch_interval"] == 0
    assert session.display_channel("BACK")[0]["message_retry_interval"] == 1000
    (status,) = session.display_chstatus("TO.B")
    assert (status["channel_status"], status["remote_queue_manager_name"]) == ("STOPPED", "B")
    assert session.display_process("P")[0]["application_id"] == "/bin/p"
    assert {"Q1", "B"} <= {one["queue_name"] for one in session.display_qstatus("*")}
    assert session.display_conn("*")
    assert session.display_conn("*", request_parameters={"connection_info_type": "ALL"})


def test_pymqrest_makes_objects_as_requested_and_reports_errors(session: Any) -> None:
    wanted = {"max_queue_depth": 5, "description": "in use"}
    actions = [session.ensure_qlocal("MADE", request_parameters=wanted).action.value for _ in range(2)]
    assert actions == ["created", "unchanged"]
    changed = session.ensure_qlocal("MADE", request_parameters={"max_queue_depth": 6})
    assert (changed.action.value, changed.changed) == ("updated", ("max_queue_depth",))
    assert session.ensure_channel("TO.B", request_parameters={"batch_size": 7}).action.value == "updated"
    assert session.ensure_process("P", request_parameters={"application_id": "/bin/q"}).action.value == "updated"
    assert session.ensure_qmgr(request_parameters={"description": "hello"}).action.value == "updated"
    session.clear_qlocal("MADE")
    session.delete_qlocal("MADE")
    for call in (session.display_topic, session.display_listener, session.display_chstatus, session.display_queue):
        with pytest.raises(pymqrest.MQRESTCommandError):
            call("NONE")
