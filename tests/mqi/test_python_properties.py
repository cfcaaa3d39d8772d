"""Programs in Python with properties, headers and callbacks, through both doors (M-12, M-13)."""

from __future__ import annotations

from tests.mqi.test_python_programs import BOTH, ibmmq_is_there, of_ibmmq

from inorder.testing.mq import MqTest


@BOTH
@ibmmq_is_there
def test_properties_of_every_type_and_the_headers_of_the_client(mq: MqTest, door: str) -> None:
    told = of_ibmmq(
        door,
        """
from ibmmq import MessageHandle, MQMIError
q = ibmmq.Queue(qm, "DEV.QUEUE.1", CMQC.MQOO_INPUT_SHARED)

def get(handle=None):
    md, gmo = ibmmq.MD(), ibmmq.GMO(Version=4)
    if handle:
        gmo.Options, gmo.MsgHandle = CMQC.MQGMO_PROPERTIES_IN_HANDLE, handle.get_handle()
    return q.get(None, md, gmo), md

put, got = MessageHandle(qm), MessageHandle(qm)
put.properties.set("text", "hällo")
put.properties.set("n", 5, CMQC.MQTYPE_INT32, 4)
put.properties.set("big", 2**40, CMQC.MQTYPE_INT64, 8)
put.properties.set("yes", True, CMQC.MQTYPE_BOOLEAN, 4)
put.properties.set("bytes", b"\\0\\1", CMQC.MQTYPE_BYTE_STRING, 2)
put.properties.set("weight", 2.5, CMQC.MQTYPE_FLOAT64, 8)
pmo = ibmmq.PMO(Version=3, OriginalMsgHandle=put.get_handle())
out.put(b"body", ibmmq.MD(), pmo)
print(get(got)[0])
options = CMQC.MQIMPO_INQ_FIRST
try:
    while True:
        print(got.properties.get("%", impo_options=options))
        options = CMQC.MQIMPO_INQ_NEXT
except MQMIError as error:
    print(error.reason)

out.put(b"body", ibmmq.MD(), pmo)
data, md = get()
header = ibmmq.RFH2()
header.unpack(data, md.Encoding)
print(md.Format, header["NameValueCCSID"], header["usr"].decode().rstrip(), data[header["StrucLength"]:])

header = ibmmq.RFH2(Format=CMQC.MQFMT_STRING, CodedCharSetId=1208)
header.add_folder(b"<usr><colour>red</colour></usr>")
ibmmq.mqcommon.OTelFunctions.put_trace_before = None  # which fails for folders of bytes
out.put(header.pack() + b"body", ibmmq.MD(Format=CMQC.MQFMT_RF_HEADER_2))
data, md = get(got)
print(data, md.Format, got.properties["colour"])
put.dlt()
qm.disconnect()
""".replace("ibmmq.mqcommon", "sys.modules['mqcommon']"),
    )
    assert told == [
        "b'body'",
        "(1099511627776, 'big')",
        "(b'\\x00\\x01', 'bytes')",
        "(5, 'n')",
        "('hällo', 'text')",
        "(2.5, 'weight')",
        "(1, 'yes')",
        "2471",
        "b'MQHRF2  ' 1208 <usr><big dt='i8'>1099511627776</big><bytes dt='bin.hex'>0001</bytes><n dt='i4'>5</n>"
        "<text>hällo</text><weight dt='r8'>2.5</weight><yes dt='boolean'>1</yes></usr> b'body'",
        "b'body' b'MQSTR   ' red",
    ]


@BOTH
@ibmmq_is_there
def test_a_callback_gets_messages_until_it_is_stopped(mq: MqTest, door: str) -> None:
    told = of_ibmmq(
        door,
        """
import threading
q = ibmmq.Queue(qm, "DEV.QUEUE.1", CMQC.MQOO_INPUT_SHARED)
out.put(b"1")
out.put(b"2")
over, calls = threading.Event(), []

def called(queue_manager, queue, md, gmo, msg, cbc):
    calls.append((cbc.CallType, cbc.Reason, msg, cbc.CallbackArea))
    if msg == b"2":
        over.set()

description = ibmmq.CBD(CallbackFunction=called, CallbackArea="area", Options=CMQC.MQCBDO_STOP_CALL)
options = ibmmq.GMO(Options=CMQC.MQGMO_NO_SYNCPOINT | CMQC.MQGMO_WAIT, WaitInterval=CMQC.MQWI_UNLIMITED)
q.cb(operation=CMQC.MQOP_REGISTER, cbd=description, md=ibmmq.MD(), gmo=options)
qm.ctl(CMQC.MQOP_START, ibmmq.CTLO())
try:
    out.put(b"3")
except ibmmq.MQMIError as error:
    print(error.reason)
over.wait()
qm.ctl(CMQC.MQOP_STOP, ibmmq.CTLO())
qm.disconnect()
print(*calls, sep="\\n")
""",
    )
    assert told == ["2500", "(6, 0, b'1', b'area')", "(6, 0, b'2', b'area')", "(2, 0, None, b'area')"]
