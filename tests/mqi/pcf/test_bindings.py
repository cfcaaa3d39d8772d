"""The PCF layers of the bindings, unchanged: ibmmq's and pymqi's PCFExecute."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from tests.mqi.conftest import python

from inorder.testing.mq import MqTest

PROGRAM = """
from inorder.mqi.substitutes import install
install()
import {binding} as mq
from {binding} import CMQC, CMQCFC

qm = mq.connect("QM1")
pcf = mq.PCFExecute(qm)
kind = {{CMQC.MQIA_Q_TYPE: CMQC.MQQT_LOCAL}}
pcf.MQCMD_CREATE_Q({{CMQC.MQCA_Q_NAME: b"APP.ONE", CMQC.MQIA_MAX_Q_DEPTH: 55, CMQC.MQCA_Q_DESC: b"first", **kind}})
pcf.MQCMD_COPY_Q({{CMQCFC.MQCACF_FROM_Q_NAME: b"APP.ONE", CMQCFC.MQCACF_TO_Q_NAME: b"APP.TWO", **kind}})
pcf.MQCMD_CHANGE_Q({{CMQC.MQCA_Q_NAME: b"APP.TWO", CMQC.MQIA_MAX_Q_DEPTH: 66, **kind}})
wanted = {{CMQCFC.MQIACF_Q_ATTRS: [CMQC.MQCA_Q_NAME, CMQC.MQIA_MAX_Q_DEPTH, CMQC.MQCA_Q_DESC]}}
every = {{CMQC.MQCA_Q_NAME: b"APP.*", **wanted}}
for filters in ([], [mq.Filter(CMQC.MQIA_MAX_Q_DEPTH).greater(55)], [mq.Filter(CMQC.MQCA_Q_DESC).like(b"f*")]):
    found = pcf.MQCMD_INQUIRE_Q(every, filters)
    print([(one[CMQC.MQCA_Q_NAME].strip().decode(), one[CMQC.MQIA_MAX_Q_DEPTH]) for one in found])
for command, given in (
    (pcf.MQCMD_INQUIRE_Q, {{CMQC.MQCA_Q_NAME: b"NONE"}}),
    (pcf.MQCMD_CREATE_Q, {{CMQC.MQCA_Q_NAME: b"APP.ONE", **kind}}),
    (pcf.MQCMD_INQUIRE_CHANNEL_STATUS, {{CMQCFC.MQCACH_CHANNEL_NAME: b"*"}}),
    (pcf.MQCMD_INQUIRE_TOPIC, {{}}),
):
    try:
        command(given)
    except mq.MQMIError as error:
        print(error.comp, error.reason)
pcf.MQCMD_PING_Q_MGR()
manager, = pcf.MQCMD_INQUIRE_Q_MGR()
print(manager[CMQC.MQCA_Q_MGR_NAME].strip().decode(), manager[CMQC.MQIA_COMMAND_LEVEL])
names, = pcf.MQCMD_INQUIRE_Q_NAMES({{CMQC.MQCA_Q_NAME: b"APP.*"}})
print([name.strip().decode() for name in names[CMQCFC.MQCACF_Q_NAMES]])
given = {{CMQCFC.MQBACF_GENERIC_CONNECTION_ID: mq.ByteString(b"")}}
print({{len(one[CMQCFC.MQBACF_CONNECTION_ID]) for one in pcf.MQCMD_INQUIRE_CONNECTION(given)}})
pcf.MQCMD_DELETE_Q({{CMQC.MQCA_Q_NAME: b"APP.TWO", **kind}})
pcf.disconnect()
qm.disconnect()
"""


@pytest.mark.parametrize("binding", ["ibmmq", "pymqi"])
def test_a_program_administers_with_pcf(mq: MqTest, binding: str) -> None:
    if find_spec(binding) is None:
        pytest.skip(f"needs {binding}")
    assert python(PROGRAM.format(binding=binding)).splitlines() == [
        "[('APP.ONE', 55), ('APP.TWO', 66)]",
        "[('APP.TWO', 66)]",
        "[('APP.ONE', 55), ('APP.TWO', 66)]",
        "2 2085",
        "2 4001",
        "2 3065",
        "2 3007",
        f"{mq.qm.admin.manager_attributes().name} 940",
        "['APP.ONE', 'APP.TWO']",
        "{24}",
    ]
    assert [queue.name for queue in mq.qm.queues() if queue.name.startswith("APP")] == ["APP.ONE"]
    assert mq.qm.depth("SYSTEM.ADMIN.COMMAND.QUEUE") == 0
