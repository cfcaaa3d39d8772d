"""MQGET through the door: truncation, matches, browses, versions of structures, headers (3.1 to 3.12, M-10 to M-12)."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import pytest
from tests.mqi.program import ALL, INPUT, OK, Program

from inorder import Flags, Message, QueueManager
from inorder.client.queue_internals import QueueInternals
from inorder.mqi import constants as mq
from inorder.mqi import verbs
from inorder.mqi.layouts import layout
from inorder.rules.dead_letters import WhyDead, buried

NONE, FAILED, ACCEPTED = (2, 2033), (1, 2080), (1, 2079)
TEN = b"0123456789"


@pytest.mark.parametrize("takes_back", [True, False])
@pytest.mark.parametrize(
    ("options", "size", "codes", "data", "depth"),
    [
        (0, 10, OK, TEN, 0),
        (0, 9, FAILED, TEN[:9], 1),
        (0, 0, FAILED, b"", 1),
        (mq.MQGMO_ACCEPT_TRUNCATED_MSG, 4, ACCEPTED, TEN[:4], 0),
        (mq.MQGMO_ACCEPT_TRUNCATED_MSG, 0, ACCEPTED, b"", 0),
        (mq.MQGMO_BROWSE_FIRST, 4, FAILED, TEN[:4], 1),
        (mq.MQGMO_BROWSE_FIRST | mq.MQGMO_ACCEPT_TRUNCATED_MSG, 4, ACCEPTED, TEN[:4], 1),
        (mq.MQGMO_WAIT, 4, FAILED, TEN[:4], 1),
        (mq.MQGMO_SYNCPOINT, 4, FAILED, TEN[:4], 1),
        (mq.MQGMO_SYNCPOINT | mq.MQGMO_ACCEPT_TRUNCATED_MSG, 4, ACCEPTED, TEN[:4], 0),
        (mq.MQGMO_LOGICAL_ORDER | mq.MQGMO_COMPLETE_MSG, 4, FAILED, TEN[:4], 1),
    ],
)
def test_a_message_longer_than_the_buffer_is_truncated(
    program: Program,
    mq_store: QueueManager,
    monkeypatch: pytest.MonkeyPatch,
    *,
    takes_back: bool,
    options: int,
    size: int,
    codes: tuple[int, int],
    data: bytes,
    depth: int,
) -> None:
    monkeypatch.setattr(QueueInternals, "takes_back", takes_back)  # False: as for a store elsewhere
    hobj = program.open("Q", ALL)
    assert program.put(hobj, TEN, MsgId=b"M" * 24) == OK
    assert program.get(hobj, options, size, gWaitInterval=60_000) == codes
    assert (program.length, program.data) == (10, data)
    assert (program.md.MsgId, program.gmo.ReturnedLength) == (b"M" * 24, len(data))
    assert mq_store.depth("Q") == depth
    assert program.back_out() == OK
    if codes == FAILED:
        assert program.get(hobj, mq.MQGMO_BROWSE_NEXT) == OK, "the cursor has not moved"
        assert program.md.BackoutCount == 0


def test_a_failed_get_inside_a_group_leaves_the_handle_in_its_place(program: Program) -> None:
    hobj = program.open("Q", ALL)
    for data, flags in ((b"1", mq.MQMF_MSG_IN_GROUP), (TEN, mq.MQMF_LAST_MSG_IN_GROUP)):
        assert program.put(hobj, data, mq.MQPMO_LOGICAL_ORDER, MsgFlags=flags) == OK
    assert program.get(hobj, mq.MQGMO_LOGICAL_ORDER) == OK
    assert program.gmo.GroupStatus == b"G"
    assert program.get(hobj, mq.MQGMO_LOGICAL_ORDER, 4) == FAILED
    assert program.get(hobj, mq.MQGMO_LOGICAL_ORDER) == OK
    assert (program.data, program.gmo.GroupStatus, program.md.MsgSeqNumber) == (TEN, b"L", 2)


def test_version_1_options_match_the_ids_of_the_descriptor(program: Program) -> None:
    hobj = program.open("Q", ALL)
    for name in (b"A", b"B"):
        assert program.put(hobj, name, MsgId=name * 24, CorrelId=b"C" * 24) == OK
    assert program.get(hobj, versions=(1, 1), MsgId=b"B" * 24) == OK
    assert program.data == b"B"
    md = layout("MD").new(1)
    gmo = layout("GMO").new(1)
    buffer = bytearray(10)
    assert verbs.mqget(program.hconn, hobj, md, gmo, buffer) == (1, 0, 0)
    assert program.put(hobj, b"D") == OK
    assert verbs.mqget(program.hconn, hobj, md, gmo, buffer)[1:] == NONE, "the descriptor asks for the first one again"


@pytest.mark.parametrize(
    ("match", "fields", "data"),
    [
        (mq.MQMO_MATCH_MSG_ID, {"MsgId": b"2" * 24}, b"2"),
        (mq.MQMO_MATCH_MSG_ID | mq.MQMO_MATCH_CORREL_ID, {"MsgId": b"1" * 24, "CorrelId": b"d" * 24}, None),
        (mq.MQMO_MATCH_MSG_ID, {}, b"1"),
        (0, {"MsgId": b"2" * 24}, b"1"),
    ],
)
def test_match_options_decide_which_fields_select_a_message(
    program: Program, match: int, fields: dict[str, Any], data: bytes | None
) -> None:
    hobj = program.open("Q", ALL)
    for name in (b"1", b"2"):
        assert program.put(hobj, name, MsgId=name * 24, CorrelId=b"c" * 24) == OK
    assert program.get(hobj, gMatchOptions=match, **fields) == (NONE if data is None else OK)
    assert data is None or program.data == data


def test_a_message_token_selects_its_message(program: Program) -> None:
    hobj = program.open("Q", ALL)
    for name in (b"1", b"2"):
        assert program.put(hobj, name) == OK
    assert program.get(hobj, mq.MQGMO_BROWSE_FIRST) == OK
    assert program.get(hobj, mq.MQGMO_BROWSE_NEXT) == OK
    token = program.gmo.MsgToken
    assert program.get(hobj, gMatchOptions=mq.MQMO_MATCH_MSG_TOKEN, gMsgToken=token) == OK
    assert program.data == b"2"


@pytest.mark.parametrize(
    ("options", "versions", "more", "reason"),
    [
        (mq.MQGMO_SYNCPOINT | mq.MQGMO_NO_SYNCPOINT, (2, 4), {}, 2046),
        (mq.MQGMO_SYNCPOINT | mq.MQGMO_BROWSE_FIRST, (2, 4), {}, 2046),
        (mq.MQGMO_BROWSE_FIRST | mq.MQGMO_BROWSE_NEXT, (2, 4), {}, 2046),
        (mq.MQGMO_BROWSE_FIRST | mq.MQGMO_MSG_UNDER_CURSOR, (2, 4), {}, 2046),
        (mq.MQGMO_LOCK, (2, 4), {}, 2046),
        (mq.MQGMO_UNLOCK | mq.MQGMO_WAIT, (2, 4), {}, 2046),
        (mq.MQGMO_SYNCPOINT_IF_PERSISTENT | mq.MQGMO_COMPLETE_MSG, (2, 4), {}, 2046),
        (mq.MQGMO_MARK_BROWSE_HANDLE, (2, 4), {}, 2046),
        (mq.MQGMO_BROWSE_FIRST | mq.MQGMO_MARK_BROWSE_CO_OP, (2, 4), {}, 2046),
        (mq.MQGMO_SET_SIGNAL, (2, 4), {}, 2046),
        (mq.MQGMO_MARK_SKIP_BACKOUT | mq.MQGMO_SYNCPOINT, (2, 4), {}, 2046),
        (mq.MQGMO_PROPERTIES_FORCE_MQRFH2 | mq.MQGMO_NO_PROPERTIES, (2, 4), {}, 2046),
        (1 << 30, (2, 4), {}, 2046),
        (mq.MQGMO_WAIT, (2, 4), {"gWaitInterval": -2}, 2090),
        (0, (2, 4), {"gMatchOptions": 64}, 2247),
        (mq.MQGMO_COMPLETE_MSG, (2, 4), {"gMatchOptions": mq.MQMO_MATCH_OFFSET}, 2247),
        (0, (2, 4), {"gMatchOptions": mq.MQMO_MATCH_MSG_SEQ_NUMBER, "MsgSeqNumber": 0}, 2250),
        (mq.MQGMO_LOGICAL_ORDER, (2, 1), {}, 2256),
        (mq.MQGMO_ALL_MSGS_AVAILABLE, (2, 1), {}, 2256),
        (0, (2, 2), {"gMatchOptions": mq.MQMO_MATCH_MSG_TOKEN}, 2256),
        (mq.MQGMO_LOGICAL_ORDER, (1, 2), {}, 2257),
        (0, (1, 2), {"gMatchOptions": mq.MQMO_MATCH_GROUP_ID}, 2257),
        (mq.MQGMO_MSG_UNDER_CURSOR, (2, 4), {}, 2034),
        (mq.MQGMO_PROPERTIES_IN_HANDLE, (2, 4), {}, 2460),
    ],
)
def test_invalid_options_are_refused(
    program: Program, options: int, versions: tuple[int, int], more: dict[str, Any], reason: int
) -> None:
    hobj = program.open("Q", ALL)
    assert program.put(hobj, b"x") == OK
    assert program.get(hobj, options, versions=versions, **more) == (2, reason)
    assert program.get(hobj) == OK, "the message is still there"


def test_a_get_that_the_open_options_do_not_allow_is_refused(program: Program) -> None:
    for options, asked, reason in (
        (INPUT, mq.MQGMO_BROWSE_FIRST, 2036),
        (INPUT, mq.MQGMO_MSG_UNDER_CURSOR, 2036),
        (INPUT, mq.MQGMO_UNLOCK, 2036),
        (mq.MQOO_BROWSE, 0, 2037),
        (mq.MQOO_OUTPUT, 0, 2037),
        (mq.MQOO_INQUIRE, 0, 2037),
        (mq.MQOO_INQUIRE, mq.MQGMO_BROWSE_FIRST, 2036),
        (mq.MQOO_SET, mq.MQGMO_BROWSE_NEXT, 2036),
        (INPUT | mq.MQOO_INQUIRE, mq.MQGMO_BROWSE_MSG_UNDER_CURSOR, 2036),
    ):
        assert program.get(program.open("Q", options), asked) == (2, reason)


def test_fields_beyond_the_version_are_neither_read_nor_written(program: Program) -> None:
    hobj = program.open("Q", ALL)
    assert program.put(hobj, b"x") == OK
    md, gmo, buffer = bytearray(layout("MD").new(2)), bytearray(layout("GMO").new(4)), bytearray(10)
    md[4:8] = gmo[4:8] = struct.pack("=i", 1)
    md[324:], gmo[72:] = b"\xaa" * (len(md) - 324), b"\xaa" * (len(gmo) - 72)
    assert verbs.mqget(program.hconn, hobj, md, gmo, buffer) == (1, 0, 0)
    assert set(md[324:]) | set(gmo[72:]) == {0xAA}


def test_a_selection_string_of_the_open_selects_messages(program: Program, mq_store: QueueManager) -> None:
    for colour in ("red", "blue"):
        mq_store.put("Q", colour.encode(), properties={"colour": colour})
    text = bytearray(b"colour = 'blue'")
    place = ctypes.addressof((ctypes.c_char * len(text)).from_buffer(text))
    charv = layout("OD").Values().SelectionString._replace(Ptr=place, Length=len(text))
    hobj = program.open("Q", INPUT, SelectionString=charv)
    assert program.get(hobj, mq.MQGMO_NO_PROPERTIES) == OK
    assert program.data == b"blue"
    assert program.get(hobj) == NONE
    text[:] = b"colour ='blue  "
    assert program.try_open("Q", INPUT, SelectionString=charv)[1:] == (2, 2459)


# ---- headers


@pytest.mark.parametrize("options", [0, mq.MQGMO_BROWSE_FIRST, mq.MQGMO_WAIT, mq.MQGMO_SYNCPOINT])
def test_the_header_of_properties_counts_in_the_length(program: Program, mq_store: QueueManager, options: int) -> None:
    mq_store.put("Q", TEN, format="MQSTR", properties={"colour": "red"})
    hobj = program.open("Q", ALL)
    assert program.get(hobj, options, 20) == FAILED
    whole = program.length
    assert whole > 46
    assert program.md.Format == mq.MQFMT_RF_HEADER_2
    assert program.data[:4] == b"RFH "
    assert mq_store.depth("Q") == 1
    assert program.get(hobj, options & ~mq.MQGMO_BROWSE_FIRST | mq.MQGMO_NO_PROPERTIES, 20) == OK
    assert (program.data, program.md.Format) == (TEN, mq.MQFMT_STRING)


@pytest.mark.parametrize("marks", [mq.MQGMO_BROWSE_HANDLE, mq.MQGMO_BROWSE_CO_OP])
def test_a_browse_without_room_for_the_header_of_properties_marks_nothing(
    program: Program, mq_store: QueueManager, marks: int
) -> None:
    mq_store.put("Q", TEN, format="MQSTR", properties={"colour": "red"})
    hobj = program.open("Q", ALL | mq.MQOO_CO_OP)
    assert program.get(hobj, marks, len(TEN)) == FAILED
    assert program.get(hobj, marks) == OK
    assert program.get(hobj, marks) == NONE


def test_on_a_remote_store_a_message_is_removed_although_its_headers_do_not_fit(
    program: Program, mq_store: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QueueInternals, "takes_back", False)
    mq_store.put("Q", TEN, properties={"colour": "red"})
    hobj = program.open("Q", ALL)
    assert program.get(hobj, 0, 9) == FAILED
    assert program.get(hobj, 0, 20) == ACCEPTED
    assert program.data[:4] == b"RFH "
    assert mq_store.depth("Q") == 0


def test_a_dead_letter_is_got_and_put_with_its_header(program: Program, mq_store: QueueManager) -> None:
    why = WhyDead(2053, "ORDERS", "QM1", 1_700_000_000.0, "mover")
    dead = buried(Message(TEN, format="MQSTR", coded_character_set_id=1208, properties={"colour": "red"}), why)
    assert isinstance(dead, Message)
    mq_store.put("Q", dead)
    hobj = program.open("Q", ALL)
    assert program.get(hobj, mq.MQGMO_BROWSE_FIRST | mq.MQGMO_NO_PROPERTIES) == OK
    assert (program.md.Format, program.length) == (mq.MQFMT_DEAD_LETTER_HEADER, 172 + 10)
    header = layout("DLH").read(program.data)
    assert (header.Reason, header.DestQName.strip(), header.DestQMgrName.strip()) == (2053, b"ORDERS", b"QM1")
    assert (header.Format, header.CodedCharSetId, header.PutApplName.strip()) == (mq.MQFMT_STRING, 1208, b"mover")
    assert header.PutDate + header.PutTime == b"2023111422132000"
    assert program.data[172:] == TEN
    assert program.get(hobj, mq.MQGMO_NO_PROPERTIES) == OK
    assert program.put(hobj, program.data, Format=mq.MQFMT_DEAD_LETTER_HEADER) == OK
    letter = next(iter(mq_store.browse("Q")))
    assert (letter.body, letter.format, letter.properties["dlh.reason"]) == (TEN, "MQSTR", 2053)
    newer = b"DLH " + struct.pack("=i", 2) + program.data[8:]
    assert program.get(hobj) == OK
    assert program.put(hobj, newer, Format=mq.MQFMT_DEAD_LETTER_HEADER) == OK
    assert program.get(hobj) == OK
    assert program.data == newer, "a version that MQ does not have is data"


def test_an_ascii_header_before_data_in_ebcdic_has_its_own_character_set(
    program: Program, mq_store: QueueManager
) -> None:
    ebcdic = Message("Grüße".encode("cp500"), format="MQSTR", coded_character_set_id=500)
    dead = buried(ebcdic, WhyDead(2053, "ORDERS"))
    assert isinstance(dead, Message)
    mq_store.put("Q", dead)
    mq_store.put("Q", ebcdic.replace(flags=Flags.LAST_IN_GROUP))
    hobj = program.open("Q", ALL)
    for form, length in ((mq.MQFMT_DEAD_LETTER_HEADER, 172), (mq.MQFMT_MD_EXTENSION, 72)):
        assert program.get(hobj, mq.MQGMO_BROWSE_NEXT | mq.MQGMO_NO_PROPERTIES, versions=(1, 4)) == OK
        assert (program.md.Format, program.md.CodedCharSetId, program.data[length:]) == (form, 1208, ebcdic.body)
        converts = mq.MQGMO_MSG_UNDER_CURSOR | mq.MQGMO_NO_PROPERTIES | mq.MQGMO_CONVERT
        assert program.get(hobj, converts, versions=(1, 4), CodedCharSetId=1208) == OK
        assert program.data[length:].decode() == "Grüße"


def test_a_message_on_a_transmission_queue_is_put_and_got_with_its_header(
    program: Program, mq_store: QueueManager
) -> None:
    mq_store.create_queue("FAR", usage="transmission")
    mq_store.create_queue("THERE", type="remote", remote_queue="Q9", remote_manager="QM9", transmission_queue="FAR")
    assert program.put_one("THERE", TEN, Format=mq.MQFMT_STRING, ReplyToQ=b"Q") == OK
    hobj = program.open("FAR", ALL)
    assert program.put(hobj, TEN) == (2, 2260)
    assert program.get(hobj) == OK
    assert (program.md.Format, program.length, program.md.ReplyToQ.strip()) == (mq.MQFMT_XMIT_Q_HEADER, 428 + 10, b"")
    header = layout("XQH").read(program.data)
    assert (header.RemoteQName.strip(), header.RemoteQMgrName.strip()) == (b"Q9", b"QM9")
    inner = layout("MD").read(header.MsgDesc)
    assert (inner.Format, inner.MsgId, inner.ReplyToQ.strip()) == (mq.MQFMT_STRING, program.md.MsgId, b"Q")
    assert program.put(hobj, program.data, Format=mq.MQFMT_XMIT_Q_HEADER) == OK
    [again] = mq_store.browse("FAR")
    assert (again.transmission, again.format, again.message_id) == (("Q9", "QM9"), "MQSTR", inner.MsgId)
    version_2 = bytearray(layout("XQH").new() + TEN)
    version_2[104:112] = b"MD  " + struct.pack("=i", 2)
    newer = b"XQH " + struct.pack("=i", 2) + program.data[8:]
    for wrong in (b"XQH but short", bytes(version_2), newer):
        assert program.put(hobj, wrong, Format=mq.MQFMT_XMIT_Q_HEADER) == (2, 2260)


def test_a_grouped_message_has_an_extension_for_a_descriptor_of_version_1(program: Program) -> None:
    hobj = program.open("Q", ALL)
    flags = mq.MQMF_LAST_MSG_IN_GROUP
    assert program.put(hobj, TEN, Format=mq.MQFMT_STRING, GroupId=b"G" * 24, MsgSeqNumber=3, MsgFlags=flags) == OK
    assert program.get(hobj, versions=(1, 2)) == OK
    assert (program.md.Format, program.length) == (mq.MQFMT_MD_EXTENSION, 72 + 10)
    extension = layout("MDE").read(program.data)
    assert (extension.GroupId, extension.MsgSeqNumber, extension.Format) == (b"G" * 24, 3, mq.MQFMT_STRING)
    assert program.put(hobj, program.data, versions=(1, 1), Format=mq.MQFMT_MD_EXTENSION) == OK
    assert program.get(hobj) == OK
    assert (program.md.GroupId, program.md.MsgSeqNumber, program.md.MsgFlags, program.data) == (b"G" * 24, 3, 24, TEN)
    assert program.put(hobj, b"MDE not", versions=(1, 1), Format=mq.MQFMT_MD_EXTENSION) == OK
    assert program.get(hobj) == OK
    assert (program.md.Format, program.data) == (mq.MQFMT_MD_EXTENSION, b"MDE not")


@pytest.mark.parametrize(("flags", "number"), [(0, 3), (mq.MQMF_MSG_IN_GROUP, 1)])
def test_an_extension_is_read_unless_the_descriptor_says_the_same(program: Program, flags: int, number: int) -> None:
    hobj = program.open("Q", ALL)
    extension = bytes(layout("MDE").new(Format=mq.MQFMT_STRING, MsgFlags=mq.MQMF_MSG_IN_GROUP, MsgSeqNumber=3))
    assert program.put(hobj, extension + TEN, Format=mq.MQFMT_MD_EXTENSION, MsgFlags=flags) == OK
    assert program.get(hobj) == OK
    assert (program.md.MsgFlags, program.md.MsgSeqNumber) == (mq.MQMF_MSG_IN_GROUP, number)
    assert program.data == (extension + TEN if flags else TEN)


def test_a_report_about_an_unsegmented_message_has_no_extension(program: Program) -> None:
    hobj = program.open("Q", ALL)
    confirms = mq.MQRO_COD_WITH_FULL_DATA
    assert program.put(hobj, TEN, Format=mq.MQFMT_STRING, Report=confirms, ReplyToQ=b"Q") == OK
    assert program.get(hobj, versions=(1, 1)) == OK
    assert program.get(hobj, versions=(1, 1), gMatchOptions=0) == OK
    assert (program.md.MsgType, program.md.Format, program.data) == (mq.MQMT_REPORT, mq.MQFMT_STRING, TEN)


def test_data_is_converted_to_the_character_set_of_the_descriptor(program: Program) -> None:
    hobj = program.open("Q", ALL)
    text = "Grüße".encode()
    for options, character_set, size, expected in (
        (mq.MQGMO_CONVERT, 819, 100, (OK, "Grüße".encode("latin-1"), 819)),
        (0, 819, 100, (OK, text, 1208)),
        (mq.MQGMO_CONVERT, 0, 100, (OK, text, 1208)),
        (mq.MQGMO_CONVERT, 1200, 8, ((1, 2120), text, 1208)),
        (mq.MQGMO_CONVERT, 9999, 100, ((1, 2115), text, 1208)),
        (mq.MQGMO_CONVERT, 819, 3, (FAILED, text[:3], 1208)),
    ):
        assert program.put(hobj, text, Format=mq.MQFMT_STRING, CodedCharSetId=1208) == OK
        codes = program.get(hobj, options, size, CodedCharSetId=character_set)
        assert (codes, program.data, program.md.CodedCharSetId) == expected
    assert program.get(hobj) == OK


@pytest.mark.parametrize(
    ("text", "given", "asked", "size", "expected"),
    [
        ("Grüße", 1208, 819, 3, (ACCEPTED, b"Gr\0", 2, 819)),  # half of the third character is not counted
        ("Grüße", 1208, 819, 4, (ACCEPTED, b"Gr\xfc\0", 3, 819)),
        ("Grüße", 1208, 1200, 8, (ACCEPTED, "Grüß".encode("utf-16-le"), 8, 1200)),  # it fitted before the conversion
        ("éé", 819, 1208, 3, (ACCEPTED, "é\0".encode(), 2, 1208)),
        ("Grüße", 1208, 1208, 3, (ACCEPTED, b"Gr\xc3", 3, 1208)),
        ("Grüße", 1208, 9999, 3, (ACCEPTED, b"Gr\xc3", 3, 1208)),
        ("Grüße", 1208, 819, 0, (ACCEPTED, b"", 0, 1208)),  # no data to convert
        ("", 1208, 819, 3, (OK, b"\xee" * 3, 0, 1208)),
    ],
)
def test_truncated_data_is_converted_as_far_as_possible(
    program: Program,
    text: str,
    given: int,
    asked: int,
    size: int,
    expected: tuple[tuple[int, int], bytes, int, int],
) -> None:
    hobj = program.open("Q", ALL)
    data = text.encode("latin-1" if given == 819 else "utf-8")
    assert program.put(hobj, data, Format=mq.MQFMT_STRING, CodedCharSetId=given) == OK
    md, found = layout("MD").new(CodedCharSetId=asked), bytearray(b"\xee" * size)
    gmo = layout("GMO").new(Options=mq.MQGMO_CONVERT | mq.MQGMO_ACCEPT_TRUNCATED_MSG)
    length, *codes = verbs.mqget(program.hconn, hobj, md, gmo, found)
    returned, character_set = layout("GMO").read(gmo).ReturnedLength, layout("MD").read(md).CodedCharSetId
    assert (tuple(codes), bytes(found), returned, character_set) == expected
    assert length == len(data)


def test_properties_of_other_programs_are_read_into_a_message_handle(program: Program, mq_store: QueueManager) -> None:
    mq_store.put("Q", TEN, properties={"colour": "red"})
    hmsg, *codes = verbs.mqcrtmh(program.hconn, layout("CMHO").new(1))
    assert codes == [0, 0]
    hobj = program.open("Q", ALL)
    assert program.get(hobj, gMsgHandle=hmsg) == OK
    assert program.data == TEN
    value = bytearray(10)
    found = verbs.mqinqmp(
        program.hconn, hmsg, layout("IMPO").new(1), b"colour", layout("PD").new(1), mq.MQTYPE_AS_SET, value
    )
    assert (found, bytes(value[:3])) == ((mq.MQTYPE_STRING, 3, b"colour", 0, 0), b"red")
    assert program.put(hobj, b"again", pNewMsgHandle=hmsg) == OK
    assert next(iter(mq_store.browse("Q"))).properties == {"colour": "red"}
