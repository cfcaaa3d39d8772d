"""MQPUT and MQPUT1 through the door: outputs, versions, options, context (2.1 to 2.7, M-10, M-11)."""

from __future__ import annotations

import struct
import sys
import time
from typing import Any

import pytest
from tests.mqi.program import ALL, INPUT, OK, Program

from inorder import QueueManager
from inorder.mqi import constants as mq
from inorder.mqi import verbs
from inorder.mqi.layouts import layout

CONTEXT = {
    "UserIdentifier": b"alice".ljust(12),
    "AccountingToken": b"T" * 32,
    "ApplIdentityData": b"identity".ljust(32),
    "PutApplType": mq.MQAT_JAVA,
    "PutApplName": b"elsewhere".ljust(28),
    "PutDate": b"20240229",
    "PutTime": b"23595942",
    "ApplOriginData": b"orig",
}
IDENTITY = ("UserIdentifier", "AccountingToken", "ApplIdentityData")
SET_ALL, SET_IDENTITY = mq.MQOO_SET_ALL_CONTEXT, mq.MQOO_SET_IDENTITY_CONTEXT


def context_of(md: Any) -> dict[str, Any]:
    return {name: getattr(md, name) for name in CONTEXT}


@pytest.mark.parametrize("one", [False, True])
def test_a_put_fills_in_the_ids_and_the_context_that_the_message_has(program: Program, one: bool) -> None:
    hobj = program.open("Q", ALL)
    before = time.strftime("%Y%m%d", time.gmtime()).encode()
    codes = program.put_one("Q", b"x") if one else program.put(hobj, b"x")
    assert codes == OK
    put = program.md
    assert (put.MsgId[:4], put.CorrelId, put.PutApplType) == (b"AMQ ", bytes(24), mq.MQAT_UNIX)
    assert put.PutApplName.strip().decode() == sys.argv[0].rpartition("/")[2][:28]
    assert put.PutDate in (before, time.strftime("%Y%m%d", time.gmtime()).encode())
    assert program.pmo.ResolvedQName == b"Q".ljust(48)
    assert program.pmo.ResolvedQMgrName == b"QM1".ljust(48)
    assert (program.pmo.KnownDestCount, program.pmo.UnknownDestCount, program.pmo.InvalidDestCount) == (1, 0, 0)
    assert program.get(hobj) == OK
    assert program.md.MsgId == put.MsgId
    assert context_of(program.md) == context_of(put)


def test_every_time_that_a_program_sets_is_returned_unchanged(program: Program) -> None:
    hobj = program.open("Q", ALL | SET_ALL)
    for hundredths in range(100):
        when = {"PutDate": b"20240229", "PutTime": b"235959%02d" % hundredths}
        assert program.put(hobj, b"x", mq.MQPMO_SET_ALL_CONTEXT, **CONTEXT | when) == OK
        assert program.get(hobj) == OK
        assert context_of(program.md) == CONTEXT | when


@pytest.mark.parametrize("options", [mq.MQPMO_NONE, mq.MQPMO_MD_FOR_OUTPUT_ONLY])
def test_a_put_without_a_descriptor_takes_the_fields_of_its_message_handle(program: Program, options: int) -> None:
    hmsg, *_ = verbs.mqcrtmh(program.hconn, None)
    smpo, pd, name = layout("SMPO").new(1), layout("PD").new(1), b"Root.MQMD.Format"
    assert verbs.mqsetmp(program.hconn, hmsg, smpo, name, pd, mq.MQTYPE_STRING, mq.MQFMT_STRING) == OK
    hobj = program.open("Q", ALL)
    pmo = layout("PMO").new(3, Options=options, OriginalMsgHandle=hmsg)
    md = layout("MD").new(1, Format=mq.MQFMT_EVENT) if options else None
    assert verbs.mqput(program.hconn, hobj, md, pmo, b"x") == OK
    assert program.get(hobj) == OK
    assert program.md.Format == mq.MQFMT_STRING


def test_every_field_of_a_descriptor_is_returned_unchanged(program: Program) -> None:
    given = {
        "Report": mq.MQRO_EXCEPTION | mq.MQRO_PASS_CORREL_ID,
        "MsgType": mq.MQMT_REQUEST,
        "Expiry": 36_000,
        "Feedback": 70_000,
        "Encoding": 273,
        "CodedCharSetId": 819,
        "Format": b"MYFORMAT",
        "Priority": 7,
        "Persistence": mq.MQPER_NOT_PERSISTENT,
        "MsgId": b"\1" * 24,
        "CorrelId": b"\2" * 24,
        "ReplyToQ": b"Q".ljust(48),
        "ReplyToQMgr": b"QM1".ljust(48),
        "GroupId": b"\3" * 24,
        "MsgSeqNumber": 5,
        "Offset": 0,
        "MsgFlags": mq.MQMF_MSG_IN_GROUP,
    }
    hobj = program.open("Q", ALL)
    assert program.put(hobj, b"x", **given) == OK
    assert program.get(hobj) == OK
    found = {name: getattr(program.md, name) for name in given}
    assert 35_000 < found.pop("Expiry") <= given.pop("Expiry")
    assert found == given


def test_defaults_come_from_the_queue(program: Program, mq_store: QueueManager) -> None:
    mq_store.create_queue("D", default_priority=4, default_persistence=False, expiry=100.0)
    hobj = program.open("D", ALL)
    assert program.put(hobj, b"x", CodedCharSetId=mq.MQCCSI_INHERIT) == OK
    assert program.get(hobj) == OK
    md = program.md
    assert (md.Priority, md.Persistence, md.CodedCharSetId) == (4, mq.MQPER_NOT_PERSISTENT, 1208)
    assert 900 < md.Expiry <= 1000


@pytest.mark.parametrize(
    ("md", "reason"),
    [
        ({"Report": 4}, 2061),
        ({"Report": mq.MQRO_COA}, 2027),
        ({"MsgType": mq.MQMT_REQUEST}, 2027),
        ({"MsgType": 3}, 2029),
        ({"Expiry": 0}, 2013),
        ({"Expiry": -2}, 2013),
        ({"Feedback": -1}, 2014),
        ({"Priority": -2}, 2050),
        ({"Persistence": 3}, 2047),
        ({"MsgFlags": 32}, 2249),
        ({"MsgSeqNumber": 0, "MsgFlags": mq.MQMF_MSG_IN_GROUP}, 2250),
        ({"Offset": -1, "MsgFlags": mq.MQMF_SEGMENT}, 2251),
        ({"OriginalLength": 0, "MsgType": mq.MQMT_REPORT, "MsgFlags": mq.MQMF_SEGMENT}, 2252),
        ({"OriginalLength": -2}, 2252),
    ],
)
def test_invalid_fields_of_a_descriptor_are_refused(
    program: Program, mq_store: QueueManager, md: dict[str, Any], reason: int
) -> None:
    hobj = program.open("Q", mq.MQOO_OUTPUT)
    assert program.put(hobj, b"x", **md) == (2, reason)
    assert program.put_one("Q", b"x", **md) == (2, reason)
    assert mq_store.depth("Q") == 0


def test_a_segment_without_data_is_refused(program: Program) -> None:
    assert program.put(program.open("Q", ALL), b"", MsgFlags=mq.MQMF_SEGMENT) == (2, 2253)


def test_a_put_that_warns_fills_the_outputs_and_a_close_that_warns_closes(program: Program) -> None:
    hobj = program.open("Q", ALL)
    assert program.put(hobj, b"x", Priority=10) == (1, 2049)
    assert (program.md.MsgId[:4], program.pmo.ResolvedQName.strip()) == (b"AMQ ", b"Q")
    assert program.put(hobj, b"1", mq.MQPMO_LOGICAL_ORDER, MsgFlags=mq.MQMF_MSG_IN_GROUP) == OK
    group = program.md.GroupId
    assert group != bytes(24)
    assert program.put(hobj, b"x") == (1, 2241)
    assert (program.md.MsgId[:4], program.md.GroupId) == (b"AMQ ", bytes(24))
    assert program.put(hobj, b"1", mq.MQPMO_LOGICAL_ORDER, MsgFlags=mq.MQMF_MSG_IN_GROUP) == OK
    assert (program.close(hobj), program.close(hobj)) == ((1, 2241), (2, 2019))


@pytest.mark.parametrize(
    ("options", "versions", "reason"),
    [
        (mq.MQPMO_SYNCPOINT | mq.MQPMO_NO_SYNCPOINT, (2, 3), 2046),
        (mq.MQPMO_DEFAULT_CONTEXT | mq.MQPMO_NO_CONTEXT, (2, 3), 2046),
        (mq.MQPMO_SYNC_RESPONSE | mq.MQPMO_ASYNC_RESPONSE, (2, 3), 2046),
        (mq.MQPMO_ALTERNATE_USER_AUTHORITY, (2, 3), 2046),
        (1 << 30, (2, 3), 2046),
        (mq.MQPMO_LOGICAL_ORDER, (1, 3), 2257),
        (mq.MQPMO_SET_ALL_CONTEXT, (2, 3), 2095),
        (mq.MQPMO_SET_IDENTITY_CONTEXT, (2, 3), 2096),
        (mq.MQPMO_PASS_ALL_CONTEXT, (2, 3), 2093),
        (mq.MQPMO_PASS_IDENTITY_CONTEXT, (2, 3), 2094),
    ],
)
def test_invalid_options_are_refused(program: Program, options: int, versions: tuple[int, int], reason: int) -> None:
    hobj = program.open("Q", mq.MQOO_OUTPUT)
    assert program.put(hobj, b"x", options, versions) == (2, reason)
    assert program.put_one("Q", b"x", mq.MQPMO_LOGICAL_ORDER) == (2, 2046)
    assert program.put(program.open("Q", INPUT), b"x") == (2, 2039)


def test_fields_beyond_the_version_are_neither_read_nor_written(program: Program) -> None:
    hobj = program.open("Q", ALL)
    md, pmo = bytearray(layout("MD").new(2)), bytearray(layout("PMO").new(3))
    md[4:8] = pmo[4:8] = struct.pack("=i", 1)
    md[324:], pmo[128:] = b"\xaa" * (len(md) - 324), b"\xaa" * (len(pmo) - 128)
    assert verbs.mqput(program.hconn, hobj, md, pmo, b"x") == OK
    assert set(md[324:]) | set(pmo[128:]) == {0xAA}


@pytest.mark.parametrize(("version", "codes"), [(1, OK), (2, (2, 2154)), (3, (2, 2154))])
def test_records_of_distribution_lists_are_refused(program: Program, version: int, codes: tuple[int, int]) -> None:
    md, pmo = layout("MD").new(1), layout("PMO").new(3, RecsPresent=1)
    pmo[4:8] = struct.pack("=i", version)
    assert verbs.mqput(program.hconn, program.open("Q", ALL), md, pmo, b"x") == codes
    assert verbs.mqput1(program.hconn, layout("OD").new(1, ObjectName=b"Q"), md, pmo, b"x") == codes


def test_without_structures_a_message_has_the_defaults(program: Program) -> None:
    hobj = program.open("Q", ALL)
    assert verbs.mqput(program.hconn, hobj, None, None, memoryview(b"data")) == OK
    buffer = bytearray(4)
    assert verbs.mqget(program.hconn, hobj, None, None, buffer) == (4, 0, 0)
    assert buffer == b"data"


def test_new_ids_are_made_if_the_options_ask_for_them(program: Program) -> None:
    hobj = program.open("Q", ALL)
    options = mq.MQPMO_NEW_MSG_ID | mq.MQPMO_NEW_CORREL_ID
    assert program.put(hobj, b"x", options, MsgId=b"M" * 24, CorrelId=b"C" * 24) == OK
    made = program.md.MsgId, program.md.CorrelId
    assert made[0] != made[1]
    assert {one[:4] for one in made} == {b"AMQ "}
    assert program.get(hobj) == OK
    assert (program.md.MsgId, program.md.CorrelId) == made


def test_context_is_set_by_the_program(program: Program) -> None:
    hobj = program.open("Q", ALL | SET_ALL)
    assert program.put(hobj, b"x", mq.MQPMO_SET_ALL_CONTEXT, **CONTEXT) == OK
    assert context_of(program.md) == CONTEXT
    assert program.get(hobj) == OK
    assert context_of(program.md) == CONTEXT
    assert program.put(hobj, b"x", mq.MQPMO_SET_IDENTITY_CONTEXT, **CONTEXT) == OK
    put = context_of(program.md)
    assert {name for name in CONTEXT if put[name] == CONTEXT[name]} == set(IDENTITY)
    assert program.get(hobj) == OK
    assert context_of(program.md) == put
    assert program.put(hobj, b"x", mq.MQPMO_NO_CONTEXT) == OK
    assert program.get(hobj) == OK
    assert not b"".join(value for value in context_of(program.md).values() if isinstance(value, bytes)).strip(b" \0")
    assert program.md.PutApplType == mq.MQAT_NO_CONTEXT


def test_context_is_passed_from_the_message_that_was_got(program: Program) -> None:
    source = program.open("Q", ALL | SET_ALL | mq.MQOO_SAVE_ALL_CONTEXT)
    target = program.open("Q", mq.MQOO_OUTPUT | mq.MQOO_PASS_ALL_CONTEXT)
    passes, identity = mq.MQPMO_PASS_ALL_CONTEXT, mq.MQPMO_PASS_IDENTITY_CONTEXT
    assert program.put(target, b"x", passes, pContext=target) == (2, 2097)
    assert program.put(source, b"x", mq.MQPMO_SET_ALL_CONTEXT, **CONTEXT) == OK
    assert program.get(source, mq.MQGMO_BROWSE_FIRST) == OK
    assert program.put(target, b"x", passes, pContext=source) == (2, 2098)
    assert program.get(source) == OK
    for options, passed in ((passes, set(CONTEXT)), (identity, set(IDENTITY))):
        assert program.put(target, b"x", options, pContext=source) == OK
        put = context_of(program.md)
        assert {name for name in CONTEXT if put[name] == CONTEXT[name]} == passed
        reader = program.open("Q", INPUT)
        assert program.get(reader) == OK
        assert context_of(program.md) == put
    assert program.put_one("Q", b"x") == OK
    assert program.get(source, mq.MQGMO_BROWSE_FIRST, size=0) == (1, 2080)
    assert program.put(target, b"x", passes, pContext=source) == OK
    assert program.get(source, mq.MQGMO_BROWSE_FIRST) == OK
    assert program.put(target, b"x", passes, pContext=source) == (2, 2098), "the last get was a browse"


def test_mqbegin_is_refused_in_a_unit_of_work_and_warns_outside(program: Program) -> None:
    assert program.put_one("Q", b"x", mq.MQPMO_SYNCPOINT) == OK
    assert verbs.mqbegin(program.hconn, None) == (2, 2128)
    assert program.back_out() == OK
    assert verbs.mqbegin(program.hconn, layout("BO").new(1)) == (1, 2121)
    assert program.commit() == OK


def test_asynchronous_puts_are_counted(program: Program) -> None:
    hobj = program.open("Q", ALL)
    assert program.put(hobj, b"x", mq.MQPMO_ASYNC_RESPONSE) == OK
    assert program.put(hobj, b"x", mq.MQPMO_ASYNC_RESPONSE, Priority=10) == (1, 2049)
    sts = layout("STS").new(1)
    about_puts, about_connections = mq.MQSTAT_TYPE_ASYNC_ERROR, mq.MQSTAT_TYPE_RECONNECTION
    for kind, *counts in ((about_connections, 0, 0, 0), (about_puts, 1, 1, 0), (about_puts, 0, 0, 0)):
        assert verbs.mqstat(program.hconn, kind, sts) == OK
        values = layout("STS").read(sts)
        assert [values.PutSuccessCount, values.PutWarningCount, values.PutFailureCount] == counts
    assert verbs.mqstat(program.hconn, 3, sts) == (2, 2430)


@pytest.mark.parametrize("options", [mq.MQPMO_NO_SYNCPOINT, mq.MQPMO_SYNCPOINT])
def test_a_client_learns_of_failed_asynchronous_puts_from_mqstat(program: Program, options: int) -> None:
    client = Program(cd=layout("CD").new(ChannelName=b"DEV.APP.SVRCONN"))
    hobj = client.open("Q", mq.MQOO_OUTPUT)
    local = program.open("Q", mq.MQOO_OUTPUT | mq.MQOO_SET)
    assert client.put(hobj, b"x", options | mq.MQPMO_ASYNC_RESPONSE) == OK
    assert verbs.mqset(program.hconn, local, [mq.MQIA_INHIBIT_PUT], [mq.MQQA_PUT_INHIBITED], b"") == OK
    for _ in range(2):
        assert client.put(hobj, b"x", options | mq.MQPMO_ASYNC_RESPONSE) == OK
    assert client.put(hobj, b"x", options) == (2, 2051), "a put that waits for its answer"
    assert program.put(local, b"x", mq.MQPMO_ASYNC_RESPONSE) == (2, 2051), "a program without a channel is told at once"
    sts = layout("STS").new(1)
    for code, *counts in ((2, 1, 0, 2), (0, 0, 0, 0)):
        assert verbs.mqstat(client.hconn, mq.MQSTAT_TYPE_ASYNC_ERROR, sts) == OK
        values = layout("STS").read(sts)
        assert (values.CompCode, values.Reason) == (code, 2051 if code else 0)
        assert [values.PutSuccessCount, values.PutWarningCount, values.PutFailureCount] == counts
        if code:
            assert (values.ObjectName, values.ResolvedQMgrName) == (b"Q".ljust(48), b"QM1".ljust(48))
    assert client.commit() == OK


def test_one_put_finds_queues_as_an_open_does(program: Program, mq_store: QueueManager) -> None:
    mq_store.create_queue("M", type="model")
    mq_store.create_queue("A", type="alias", base_queue="Q")
    assert program.put_one("A", b"x") == OK
    assert program.pmo.ResolvedQName.strip() == b"Q"
    od = layout("OD").new(4, ObjectName=b"A")
    assert verbs.mqput1(program.hconn, od, None, None, b"x") == OK
    assert (layout("OD").read(od).ResolvedQName.strip(), layout("OD").read(od).KnownDestCount) == (b"Q", 1)
    assert program.put_one("M", b"x") == (2, 2057)
    mq_store.delete_queue("A")  # succeeds only if the put left nothing open
    assert program.put_one("NONE", b"x") == (2, 2085)
    od = layout("OD").new(1, ObjectName=b"T", ObjectType=mq.MQOT_TOPIC)
    assert verbs.mqput1(program.hconn, od, None, None, b"") == (2, 2085)
    for manager, reason in ((b"NOWHERE", 2087), (b"NO NAME", 2086)):
        od = layout("OD").new(1, ObjectName=b"Q", ObjectQMgrName=manager)
        assert verbs.mqput1(program.hconn, od, None, None, b"") == (2, reason)
