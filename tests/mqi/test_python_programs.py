"""Programs in Python use the library or the substitute modules. Rules: M-2, M-4, M-9 of *mqi*."""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.mqi.conftest import python

from inorder.mqi import building, layouts
from inorder.mqi.functions import FUNCTIONS
from inorder.mqi.substitutes import ibmmqc, pymqe
from inorder.mqi.substitutes.calls import WrongSize
from inorder.testing.mq import MqTest, temporary_mq

ibmmq_is_there = pytest.mark.skipif(
    find_spec("ibmmq") is None, reason="needs ibmmq, which has no wheel for this system"
)
BOTH = pytest.mark.parametrize("door", ["library", "substitutes"])
SUBSTITUTED = "from inorder.mqi.substitutes import install; install()\n"
IBMMQ = """
import ibmmq, sys
from ibmmq import CMQC
qm = ibmmq.connect("QM1")
out = ibmmq.Queue(qm, "DEV.QUEUE.1", CMQC.MQOO_OUTPUT)
pmo = ibmmq.PMO(Options=CMQC.MQPMO_SYNCPOINT)
"""


def of_ibmmq(door: str, program: str, *arguments: str, status: int = 0) -> list[str]:
    """Runs a program with ibmmq. Returns the lines that it prints."""
    begin = SUBSTITUTED if door == "substitutes" else ""
    return python(begin + IBMMQ + program, *arguments, status=status).splitlines()


@BOTH
@ibmmq_is_there
def test_ibmmq_puts_and_gets(mq: MqTest, door: str) -> None:
    told = of_ibmmq(
        door,
        """
md = ibmmq.MD(Format=CMQC.MQFMT_STRING, CorrelId=b"C" * 24)
out.put(b"hello", md)
q = ibmmq.Queue(qm, "DEV.QUEUE.1", CMQC.MQOO_INPUT_SHARED)
again = ibmmq.MD()
print(q.get(None, again), again.MsgId == md.MsgId, again.CorrelId == b"C" * 24, again.Format)
try:
    q.get()
except ibmmq.MQMIError as error:
    print(error.comp, error.reason)
try:
    ibmmq.Queue(qm, "NO.SUCH.QUEUE", CMQC.MQOO_OUTPUT)
except ibmmq.MQMIError as error:
    print(error.comp, error.reason)
qm.put1("DEV.QUEUE.2", b"one")
qm.disconnect()
""",
    )
    assert told == ["b'hello' True True b'MQSTR   '", "2 2033", "2 2085"]
    assert mq.qm.get("DEV.QUEUE.2").body == b"one"


@BOTH
@ibmmq_is_there
@pytest.mark.parametrize(
    ("end", "status", "left"),
    [
        ("qm.commit(); sys.exit(7)", 7, 1),
        ("qm.disconnect(); sys.exit(7)", 7, 1),
        ("sys.exit(7)", 7, 0),
        ("import os; os._exit(7)", 7, 0),
        ("import os; os.abort()", -signal.SIGABRT, 0),
    ],
)
def test_the_way_a_program_ends_decides_whether_its_unit_is_committed(
    mq: MqTest, door: str, end: str, status: int, left: int
) -> None:
    of_ibmmq(door, f"out.put(b'x', ibmmq.MD(), pmo)\n{end}", status=status)
    assert len(list(mq.qm.browse("DEV.QUEUE.1"))) == left


@BOTH
@ibmmq_is_there
def test_ibmmq_sets_and_inquires_properties_and_attributes(mq: MqTest, door: str) -> None:
    told = of_ibmmq(
        door,
        """
handle = ibmmq.MessageHandle(qm)
handle.properties.set("s", "red")
for name, value, kind, length in [
    ("i", 7, CMQC.MQTYPE_INT32, 4), ("l", -7, CMQC.MQTYPE_INT64, 8), ("f", 1.5, CMQC.MQTYPE_FLOAT64, 8),
    ("b", True, CMQC.MQTYPE_BOOLEAN, 4), ("y", b"\\0\\1", CMQC.MQTYPE_BYTE_STRING, 2), ("n", None, CMQC.MQTYPE_NULL, 0),
]:
    handle.properties.set(name, value, kind, length)
print([handle.properties.get(name) for name in "silfbyn"])
try:
    handle.properties.get("s", max_value_length=1)
except ibmmq.MQMIError as error:
    print(error.reason)
handle.properties.dlt("s")
queue = ibmmq.Queue(qm, "DEV.QUEUE.1", CMQC.MQOO_INQUIRE | CMQC.MQOO_SET)
queue.set(CMQC.MQIA_INHIBIT_PUT, CMQC.MQQA_PUT_INHIBITED)
found = queue.inquire([CMQC.MQIA_INHIBIT_PUT, CMQC.MQCA_Q_NAME, CMQC.MQIA_MAX_Q_DEPTH])
print(list(found.values())[::2], found[CMQC.MQCA_Q_NAME].strip())
print(qm.inquire(CMQC.MQCA_Q_MGR_NAME).strip(), qm.stat(CMQC.MQSTAT_TYPE_ASYNC_ERROR).CompCode)
""",
    )
    assert told == [
        r"['red', 7, -7, 1.5, 1, b'\x00\x01', None]",
        "2469",
        "[1, 5000] b'DEV.QUEUE.1'",
        "b'QM1' 0",
    ]


INTERRUPTED = """
import signal
from inorder.mqi import verbs
q = ibmmq.Queue(qm, "DEV.QUEUE.1", CMQC.MQOO_INPUT_SHARED)
class Late(BaseException):
    pass
def late(*given):
    raise Late
signal.signal(signal.SIGINT, late if sys.argv[1] == "late" else signal.default_int_handler)
verb = verbs.mqget
def interrupted(*given):
    signal.raise_signal(signal.SIGINT)
    return verb(*given)
verbs.mqget = interrupted
try:
    q.get(None, ibmmq.MD(), ibmmq.GMO(Options=CMQC.MQGMO_WAIT, WaitInterval=CMQC.MQWI_UNLIMITED))
except BaseException as error:
    print(type(error).__name__)
verbs.mqget = verb
out.put(b"x", ibmmq.MD())
print(q.get())
"""


@BOTH
@ibmmq_is_there
@pytest.mark.parametrize(("handler", "raised"), [("none", "KeyboardInterrupt"), ("late", "Late")])
def test_an_interrupt_reaches_the_program(mq: MqTest, door: str, handler: str, raised: str) -> None:
    assert of_ibmmq(door, INTERRUPTED, handler) == [raised, "b'x'"]


@ibmmq_is_there
def test_a_child_gets_2009_and_can_connect_itself(mq: MqTest) -> None:
    told = of_ibmmq(
        "library",
        """
import os
out.put(b"of the parent", ibmmq.MD(), pmo)
if not os.fork():
    try:
        out.put(b"of the child", ibmmq.MD(), pmo)
    except ibmmq.MQMIError as error:
        print(error.reason, flush=True)
    ibmmq.connect("QM1").put1("DEV.QUEUE.1", b"of the child")
    os._exit(0)
os.wait()
qm.commit()
""",
    )
    assert told == ["2009"]
    assert {bytes(message.body) for message in mq.qm.browse("DEV.QUEUE.1")} == {b"of the parent", b"of the child"}


@ibmmq_is_there
def test_temporary_mq_serves_a_program_in_this_process_and_ends_its_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MQIPY_NOOTEL", "1")
    with temporary_mq("A", in_python=True) as mq:
        import ibmmq

        qm = ibmmq.connect("QM1")
        ibmmq.Queue(qm, "A", ibmmq.CMQC.MQOO_OUTPUT).put(
            b"x", ibmmq.MD(), ibmmq.PMO(Options=ibmmq.CMQC.MQPMO_SYNCPOINT)
        )
        assert os.environ["INORDER_STORE"] == str(mq.store)
    with pytest.raises(ibmmq.MQMIError) as caught:
        qm.commit()
    assert caught.value.reason == 2018
    assert "INORDER_STORE" not in os.environ
    assert "ibmmq" not in sys.modules


@BOTH
@ibmmq_is_there
def test_an_end_without_mqdisc_is_reported(mq: MqTest, door: str) -> None:
    told = of_ibmmq(door, "sys.stderr = sys.stdout; out.put(b'x', ibmmq.MD(), pmo)")
    assert told == ["the program ends without MQDISC: the messages that it did not commit are backed out"]


def test_every_function_is_exported_and_those_of_the_mqai_answer_2298(mq: MqTest) -> None:
    library = ctypes.CDLL(str(building.build() / "libmqm_r.so"))
    for function in FUNCTIONS:
        assert getattr(library, function.name)
    bag, completion, reason = (ctypes.c_int32() for _ in range(3))
    library.mqCreateBag(1, ctypes.byref(bag), ctypes.byref(completion), ctypes.byref(reason))
    assert (completion.value, reason.value) == (2, 2298)


def charv(length: int) -> bytes:
    """An MQCHARV of a wrong length; its address points to nothing."""
    return struct.pack("Piiii", 1, 0, 0, length, 0)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("library.MQINQ(hconn, 0, 257, None, 0, None, 0, None, cc, rc)", 2066),
        ("library.MQINQ(hconn, 0, -1, None, 0, None, 0, None, cc, rc)", 2065),
        ("library.MQSET(hconn, 0, 1, None, -1, None, 0, None, cc, rc)", 2021),
        ("library.MQSET(hconn, 0, 1, None, 0, None, -1, None, cc, rc)", 2006),
        ("library.MQINQ(hconn, 0, 1, None, 0, None, 0, None, cc, rc)", 2067),
        ("library.MQINQ(hconn, 0, 0, None, 1, None, 0, None, cc, rc)", 2023),
        ("library.MQINQ(hconn, 0, 0, None, 0, None, 1, None, cc, rc)", 2007),
        ("library.MQDISC(None, cc, rc)", 2018),
        ("library.MQSETMP(hconn, 0, None, charv(-7), None, 0, 0, None, cc, rc)", 2513),
        ("library.MQSETMP(hconn, 0, None, charv(4_096), None, 0, 0, None, cc, rc)", 2513),
        ("library.MQPUT(hconn, 0, None, None, -1, None, cc, rc)", 2005),
        ("library.MQPUT(hconn, 0, None, None, 1, None, cc, rc)", 2004),
        ("library.MQGET(hconn, 0, None, None, 1, None, None, cc, rc)", 2004),
        ("library.MQCB(hconn, 1, ctypes.create_string_buffer(168), 0, None, None, cc, rc)", 2444),
        ("library.MQCB(hconn, 1, bytes(layouts.CBD.new(CallbackName=b'no.so(f)')), 0, None, None, cc, rc)", 2487),
        ("library.MQCB(hconn, 1, bytes(layouts.CBD.new(CallbackName=b'libc.so.6(f)')), 0, None, None, cc, rc)", 2487),
        ("library.MQCB(hconn, 1, bytes(layouts.CBD.new(CallbackName=b'libc.so.6(abs)')), 0, None, None, cc, rc)", 2018),
        ("library.MQSUBRQ(hconn, 1, 1, None, cc, rc)", 2298),
    ],
)
def test_the_library_itself_refuses_invalid_calls(mq: MqTest, call: str, reason: int) -> None:
    library, hconn = ctypes.CDLL(str(building.build() / "libmqm_r.so")), 99
    completion, code = ctypes.c_int32(), ctypes.c_int32()
    known = {"library": library, "hconn": hconn, "ctypes": ctypes, "layouts": layouts, "charv": charv}
    eval(call, known | {"cc": ctypes.byref(completion), "rc": ctypes.byref(code)})
    assert (completion.value, code.value) == (2, reason)


def test_the_substitutes_refuse_structures_of_another_length() -> None:
    assert issubclass(vars(ibmmqc)["ibmmqc.error"], WrongSize)
    assert issubclass(vars(pymqe)["pymqe.error"], WrongSize)
    with pytest.raises(WrongSize, match=r"MQOD wrong size\. Given: 3, expected 424"):
        ibmmqc.MQOPEN(1, b"OD ", 1)


def test_versions_of_structures_are_those_of_the_layouts() -> None:
    assert ibmmqc.__strucversions__["md"] == vars(ibmmqc)["md"] == layouts.layout("MD").newest == 2
    assert (ibmmqc.__strucversions__["cno"], ibmmqc.__strucversions__["cd"]) == (8, 12)


def test_a_program_runs_with_the_substitutes(mq: MqTest, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("found = True\n")
    program = tmp_path / "program.py"
    program.write_text("import helper, sys\nprint(__name__, helper.found, sys.argv[1:], sys.argv[0])\n")
    told = python(
        "import runpy, sys; sys.argv = ['m', *sys.argv[1:]]; runpy.run_module('inorder.mqi.substitutes', "
        "run_name='__main__', alter_sys=True)",
        str(program),
        "--count",
    )
    assert told == f"__main__ True ['--count'] {program}\n"


# ---- properties, headers and callbacks, through both doors (M-12, M-13)


@BOTH
@ibmmq_is_there
def test_ibmmq_puts_and_gets_properties_of_every_type_and_headers(mq: MqTest, door: str) -> None:
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
@pytest.mark.parametrize("end", [[], ["without MQDISC"]])
def test_a_callback_gets_messages_until_it_is_stopped(mq: MqTest, door: str, end: list[str]) -> None:
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
print(*calls, sep="\\n")
if sys.argv[1:] == ["without MQDISC"]:
    qm.ctl(CMQC.MQOP_START, ibmmq.CTLO())
else:
    qm.disconnect()
""",
        *end,
    )
    assert told == ["2500", "(6, 0, b'1', b'area')", "(6, 0, b'2', b'area')", "(2, 0, None, b'area')"]


# ---- the PCF layers of the bindings, unchanged


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
