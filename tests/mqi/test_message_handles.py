"""Message handles: the verbs for properties, and the effect of handles on puts and gets (M-12)."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from inorder.errors import ArgumentError
from inorder.mqi import constants as mq
from inorder.mqi import handles, properties
from inorder.mqi.conversion import Data
from inorder.mqi.layouts import Charv, LayoutError, layout
from inorder.mqi.refusals import Refused

HCONN, OTHER = 7, 8
VALUES = {
    "yes": (mq.MQTYPE_BOOLEAN, struct.pack("=i", 1)),
    "small": (mq.MQTYPE_INT8, struct.pack("=b", -8)),
    "short": (mq.MQTYPE_INT16, struct.pack("=h", -300)),
    "int": (mq.MQTYPE_INT32, struct.pack("=i", 70_000)),
    "long": (mq.MQTYPE_INT64, struct.pack("=q", 2**40)),
    "single": (mq.MQTYPE_FLOAT32, struct.pack("=f", 2.5)),
    "double": (mq.MQTYPE_FLOAT64, struct.pack("=d", 0.1)),
    "text": (mq.MQTYPE_STRING, "é".encode()),
    "bytes": (mq.MQTYPE_BYTE_STRING, b"\0\xff"),
    "none": (mq.MQTYPE_NULL, b""),
}


@pytest.fixture
def handle() -> Iterator[int]:
    yield handles.create(HCONN, layout("CMHO").new())
    handles.forget(HCONN)


def put(handle: int, name: str, value: bytes, kind: int = mq.MQTYPE_STRING, *, options: int = 0, **about: Any) -> None:
    smpo, pd = layout("SMPO").new(Options=options), layout("PD").new(**about)
    properties.set_property(HCONN, handle, smpo, name.encode(), pd, kind, value)


def inquire(
    handle: int, name: str, options: int = 0, kind: int = 0, size: int = 64, **fields: Any
) -> tuple[int, bytes, str]:
    """The type, value and name of a property."""
    buffer = bytearray(size)
    impo = layout("IMPO").new(Options=options, **fields)
    found = properties.inquire(HCONN, handle, impo, name.encode(), layout("PD").new(), kind, buffer)
    if found.reason:
        raise Refused(found.reason, found.completion)
    return found.kind, bytes(buffer[: found.length]), found.name.decode()


def names(handle: int, pattern: str) -> list[str]:
    """The names that successive inquiries with a wildcard find."""
    found = []
    options = mq.MQIMPO_INQ_FIRST
    while True:
        try:
            found.append(inquire(handle, pattern, options)[2])
        except Refused as refused:
            assert refused.reason == mq.MQRC_PROPERTY_NOT_AVAILABLE  # noqa: PT017
            return found
        options = mq.MQIMPO_INQ_NEXT


def refused(call: Any, *arguments: Any, **named: Any) -> int:
    try:
        call(*arguments, **named)
    except (Refused, LayoutError) as error:
        return error.reason
    pytest.fail("it was not refused")


def test_a_property_is_returned_with_its_type(handle: int) -> None:
    for name, (kind, value) in VALUES.items():
        put(handle, name, value, kind)
    assert {name: inquire(handle, name)[:2] for name in VALUES} == VALUES


def test_a_message_keeps_values_and_forgets_the_width_of_numbers(handle: int) -> None:
    for name, (kind, value) in VALUES.items():
        put(handle, name, value, kind)
    _, given = properties.at_put(HCONN, Data(b"", mq.MQFMT_NONE, 546, 1208), handle, 0, mq.MQACTP_NEW)
    properties.at_get(Data(b"", mq.MQFMT_NONE, 546, 1208), given, 0, handles.handle_of(HCONN, handle))
    found = {name: inquire(handle, name)[:2] for name in VALUES}
    assert found == VALUES | {
        "small": (mq.MQTYPE_INT32, struct.pack("=i", -8)),
        "short": (mq.MQTYPE_INT32, struct.pack("=i", -300)),
        "single": (mq.MQTYPE_FLOAT64, struct.pack("=d", 2.5)),
    }


@pytest.mark.parametrize(
    ("kind", "value", "wanted", "expected"),
    [
        (mq.MQTYPE_BOOLEAN, struct.pack("=i", 1), mq.MQTYPE_STRING, b"TRUE"),
        (mq.MQTYPE_BOOLEAN, struct.pack("=i", 1), mq.MQTYPE_INT8, b"\1"),
        (mq.MQTYPE_BYTE_STRING, b"\x0a\xff", mq.MQTYPE_STRING, b"0AFF"),
        (mq.MQTYPE_INT32, struct.pack("=i", -5), mq.MQTYPE_STRING, b"-5"),
        (mq.MQTYPE_INT32, struct.pack("=i", -5), mq.MQTYPE_INT64, struct.pack("=q", -5)),
        (mq.MQTYPE_INT32, struct.pack("=i", -5), mq.MQTYPE_INT16, struct.pack("=h", -5)),
        (mq.MQTYPE_INT32, struct.pack("=i", 300), mq.MQTYPE_INT8, mq.MQRC_PROP_CONV_NOT_SUPPORTED),
        (mq.MQTYPE_INT32, struct.pack("=i", 1), mq.MQTYPE_FLOAT64, mq.MQRC_PROP_CONV_NOT_SUPPORTED),
        (mq.MQTYPE_FLOAT64, struct.pack("=d", 0.5), mq.MQTYPE_STRING, b"0.5"),
        (mq.MQTYPE_FLOAT64, struct.pack("=d", 0.5), mq.MQTYPE_FLOAT32, struct.pack("=f", 0.5)),
        (mq.MQTYPE_FLOAT64, struct.pack("=d", 1e300), mq.MQTYPE_FLOAT32, mq.MQRC_PROP_CONV_NOT_SUPPORTED),
        (mq.MQTYPE_STRING, b"true", mq.MQTYPE_BOOLEAN, struct.pack("=i", 1)),
        (mq.MQTYPE_STRING, b"17", mq.MQTYPE_INT64, struct.pack("=q", 17)),
        (mq.MQTYPE_STRING, b"1.5", mq.MQTYPE_FLOAT32, struct.pack("=f", 1.5)),
        (mq.MQTYPE_STRING, b"300", mq.MQTYPE_INT8, mq.MQRC_PROP_NUMBER_FORMAT_ERROR),
        (mq.MQTYPE_STRING, b"red", mq.MQTYPE_INT32, mq.MQRC_PROP_NUMBER_FORMAT_ERROR),
        (mq.MQTYPE_STRING, b"red", mq.MQTYPE_BOOLEAN, mq.MQRC_PROP_NUMBER_FORMAT_ERROR),
        (mq.MQTYPE_STRING, b"red", mq.MQTYPE_BYTE_STRING, mq.MQRC_PROP_CONV_NOT_SUPPORTED),
        (mq.MQTYPE_NULL, b"", mq.MQTYPE_STRING, mq.MQRC_PROP_CONV_NOT_SUPPORTED),
        (mq.MQTYPE_STRING, b"red", 3, mq.MQRC_PROPERTY_TYPE_ERROR),
    ],
)
def test_a_type_is_converted_if_the_program_asks(
    handle: int, kind: int, value: bytes, wanted: int, expected: bytes | int
) -> None:
    put(handle, "a", value, kind)
    if isinstance(expected, int):
        assert refused(inquire, handle, "a", mq.MQIMPO_CONVERT_TYPE, wanted) == expected
    else:
        assert inquire(handle, "a", mq.MQIMPO_CONVERT_TYPE, wanted)[:2] == (wanted, expected)
    assert inquire(handle, "a", 0, wanted)[:2] == (kind, value)


def test_a_value_is_converted_if_the_program_asks(handle: int) -> None:
    put(handle, "n", struct.pack("=i", 5), mq.MQTYPE_INT32)
    put(handle, "t", "é".encode())
    wanted = {"RequestedEncoding": 273, "RequestedCCSID": 819}
    assert inquire(handle, "n", mq.MQIMPO_CONVERT_VALUE, **wanted)[1] == struct.pack(">i", 5)
    assert inquire(handle, "t", mq.MQIMPO_CONVERT_VALUE, **wanted)[1] == b"\xe9"
    impo, buffer = layout("IMPO").new(Options=mq.MQIMPO_CONVERT_VALUE, RequestedCCSID=65_000), bytearray(9)
    found = properties.inquire(HCONN, handle, impo, b"t", None, 0, buffer)
    assert (found.completion, found.reason) == (mq.MQCC_WARNING, mq.MQRC_PROP_VALUE_NOT_CONVERTED)
    assert (bytes(buffer[: found.length]), layout("IMPO").read(impo).ReturnedCCSID) == ("é".encode(), 1208)


def test_a_value_is_read_as_its_options_say(handle: int) -> None:
    smpo = layout("SMPO").new(ValueEncoding=273, ValueCCSID=500)
    properties.set_property(HCONN, handle, smpo, b"n", None, mq.MQTYPE_INT16, struct.pack(">h", 5))
    properties.set_property(HCONN, handle, smpo, b"t", None, mq.MQTYPE_STRING, bytes.fromhex("c1"))
    properties.set_property(HCONN, handle, smpo, b"f", None, mq.MQTYPE_FLOAT32, struct.pack(">f", 2.5))
    assert handles.composed(HCONN, 0, handle, mq.MQACTP_NEW) == {"n": 5, "t": "A", "f": 2.5}


def test_wildcards_find_properties_one_by_one(handle: int) -> None:
    for name in ("alpha", "beta", "usr.alto", "jms.Dst", "mine.a", "mine.b"):
        put(handle, name, b"x")
    assert names(handle, "%") == ["alpha", "beta", "alto", "jms.Dst", "mine.a", "mine.b"]
    assert names(handle, "usr.%") == ["alpha", "beta", "alto"]
    assert names(handle, "al%") == names(handle, "usr.al%") == ["alpha", "alto"]
    assert names(handle, "mine.%") == ["mine.a", "mine.b"]
    assert names(handle, "z%") == []


def test_synonyms_name_one_property(handle: int) -> None:
    put(handle, "JMSDestination", b"queue:///Q")
    put(handle, "mcd.Type", b"order")
    assert inquire(handle, "jms.Dst")[1:] == inquire(handle, "JMSDestination")[1:] == (b"queue:///Q", "jms.Dst")
    assert inquire(handle, "JMSType")[1:] == (b"order", "JMSType")


def test_the_cursor_is_at_the_property_that_was_found_last(handle: int) -> None:
    under = mq.MQIMPO_INQ_PROP_UNDER_CURSOR
    for name in "abc":
        put(handle, name, name.encode())
    assert refused(inquire, handle, "%", under) == mq.MQRC_PROPERTY_NOT_AVAILABLE
    inquire(handle, "b")
    assert inquire(handle, "%", under)[2] == "b"
    put(handle, "b", b"B", options=mq.MQSMPO_SET_PROP_UNDER_CURSOR)
    put(handle, "x", b"x", options=mq.MQSMPO_SET_PROP_BEFORE_CURSOR)
    put(handle, "y", b"y", options=mq.MQSMPO_SET_PROP_AFTER_CURSOR)
    assert inquire(handle, "%", under)[1:] == (b"B", "b")
    put(handle, "z", b"z", options=mq.MQSMPO_APPEND_PROPERTY)
    properties.delete_property(HCONN, handle, layout("DMPO").new(Options=mq.MQDMPO_DEL_PROP_UNDER_CURSOR), b"%")
    assert refused(inquire, handle, "%", under) == mq.MQRC_PROPERTY_NOT_AVAILABLE
    assert inquire(handle, "%", mq.MQIMPO_INQ_NEXT)[2] == "y"
    assert names(handle, "%") == ["a", "x", "y", "c", "z"]
    properties.delete_property(HCONN, handle, None, b"usr.x")
    assert names(handle, "%") == ["a", "y", "c", "z"]


def test_a_short_buffer_gets_what_fits_and_the_cursor_stays(handle: int) -> None:
    put(handle, "a", b"1")
    put(handle, "b", b"12345")
    inquire(handle, "a")
    buffer = bytearray(3)
    found = properties.inquire(HCONN, handle, layout("IMPO").new(), b"b", None, 0, buffer)
    assert (found.completion, found.reason, found.length) == (2, mq.MQRC_PROPERTY_VALUE_TOO_BIG, 5)
    assert bytes(buffer) == b"123"
    assert inquire(handle, "%", mq.MQIMPO_INQ_PROP_UNDER_CURSOR)[2] == "a"
    query = layout("IMPO").new(Options=mq.MQIMPO_QUERY_LENGTH)
    found = properties.inquire(HCONN, handle, query, b"b", None, 0, bytearray())
    assert (found.completion, found.length) == (0, 5)


@pytest.mark.parametrize(("size", "reason", "written"), [(9, 0, b"jms.Dst"), (3, mq.MQRC_PROPERTY_NAME_TOO_BIG, b"")])
def test_the_name_is_returned_where_the_options_say(handle: int, size: int, reason: int, written: bytes) -> None:
    put(handle, "jms.Dst", b"Q", Support=mq.MQPD_SUPPORT_OPTIONAL, CopyOptions=mq.MQCOPY_REPLY)
    place = ctypes.create_string_buffer(16)
    string = Charv(Ptr=ctypes.addressof(place), BufSize=size)
    impo, pd = layout("IMPO").new(ReturnedName=string), layout("PD").new()
    found = properties.inquire(HCONN, handle, impo, b"jms.%", pd, 0, bytearray(9))
    assert (found.reason, place.value, layout("IMPO").read(impo).ReturnedName.Length) == (reason, written, 7)
    assert layout("PD").read(pd).CopyOptions == mq.MQCOPY_REPLY


@pytest.mark.parametrize(
    ("name", "kind", "value", "options", "reason"),
    [
        ("a b", mq.MQTYPE_STRING, b"", 0, mq.MQRC_PROPERTY_NAME_ERROR),
        ("and", mq.MQTYPE_STRING, b"", 0, mq.MQRC_PROPERTY_NAME_ERROR),
        ("JMSFoo", mq.MQTYPE_STRING, b"", 0, mq.MQRC_PROPERTY_NAME_ERROR),
        ("Body.x", mq.MQTYPE_STRING, b"", 0, mq.MQRC_PROPERTY_NAME_ERROR),
        ("Root.MQMD.Nothing", mq.MQTYPE_STRING, b"", 0, mq.MQRC_PROPERTY_NAME_ERROR),
        ("Root.MQMD.Priority", mq.MQTYPE_STRING, b"", 0, mq.MQRC_PROPERTY_TYPE_ERROR),
        ("", mq.MQTYPE_STRING, b"", 0, mq.MQRC_PROPERTY_NAME_LENGTH_ERR),
        ("a" * 4_096, mq.MQTYPE_STRING, b"", 0, mq.MQRC_PROPERTY_NAME_LENGTH_ERR),
        ("a", 3, b"", 0, mq.MQRC_PROPERTY_TYPE_ERROR),
        ("a", mq.MQTYPE_INT32, b"12", 0, mq.MQRC_BUFFER_LENGTH_ERROR),
        ("a", mq.MQTYPE_NULL, b"1", 0, mq.MQRC_BUFFER_LENGTH_ERROR),
        ("a", mq.MQTYPE_STRING, b"\xff", 0, mq.MQRC_SOURCE_CCSID_ERROR),
        ("a", mq.MQTYPE_STRING, b"", 64, mq.MQRC_OPTIONS_ERROR),
        ("a", mq.MQTYPE_STRING, b"", mq.MQSMPO_SET_PROP_AFTER_CURSOR, mq.MQRC_PROPERTY_NOT_AVAILABLE),
        ("taken", mq.MQTYPE_STRING, b"", mq.MQSMPO_APPEND_PROPERTY, mq.MQRC_PROPERTY_NAME_ERROR),
    ],
)
def test_a_property_that_cannot_be_set_is_refused(
    handle: int, name: str, kind: int, value: bytes, options: int, reason: int
) -> None:
    put(handle, "taken", b"1")
    assert refused(put, handle, name, value, kind, options=options) == reason
    assert names(handle, "%") == ["taken"]


def test_a_number_that_is_not_finite_is_refused(handle: int) -> None:
    with pytest.raises(ArgumentError) as raised:
        put(handle, "a", struct.pack("=d", float("nan")), mq.MQTYPE_FLOAT64)
    assert raised.value.reason == mq.MQRC_PROPERTY_TYPE_ERROR


def test_handles_belong_to_their_connection() -> None:
    own, free = handles.create(HCONN, None), handles.create(mq.MQHC_UNASSOCIATED_HCONN, None)
    assert refused(handles.handle_of, OTHER, own) == mq.MQRC_HMSG_ERROR
    assert handles.handle_of(OTHER, free) is handles.handle_of(HCONN, free)
    handles.forget(HCONN)
    assert refused(handles.handle_of, HCONN, own) == mq.MQRC_HMSG_ERROR
    handles.delete(OTHER, free, layout("DMHO").new())
    assert refused(handles.delete, OTHER, free, None) == mq.MQRC_HMSG_ERROR


@pytest.mark.parametrize(
    ("name", "reason"), [("CMHO", mq.MQRC_CMHO_ERROR), ("SMPO", mq.MQRC_SMPO_ERROR), ("PD", mq.MQRC_PD_ERROR)]
)
def test_a_wrong_structure_has_its_own_reason(handle: int, name: str, reason: int) -> None:
    wrong = {name: bytes(24)}
    if name == "CMHO":
        assert refused(handles.create, HCONN, wrong["CMHO"]) == reason
    else:
        arguments = (wrong.get("SMPO"), b"a", wrong.get("PD"), mq.MQTYPE_STRING, b"")
        assert refused(properties.set_property, HCONN, handle, *arguments) == reason


# ---- MQMHBUF and MQBUFMH


def test_properties_are_moved_from_a_handle_to_a_buffer_and_back(handle: int) -> None:
    put(handle, "usr.a", b"1")
    put(handle, "jms.Dst", b"Q")
    md, buffer = layout("MD").new(1, Format=mq.MQFMT_STRING, CodedCharSetId=819), bytearray(200)
    both = layout("MHBO").new(Options=mq.MQMHBO_PROPERTIES_IN_MQRFH2 | mq.MQMHBO_DELETE_PROPERTIES)
    found = properties.into_buffer(HCONN, handle, both, b"usr.%", md, bytearray(9))
    assert found == (60, mq.MQRC_PROPERTY_VALUE_TOO_BIG)
    assert properties.into_buffer(HCONN, handle, both, b"usr.%", md, buffer) == (60, 0)
    header = layout("RFH2").read(buffer)
    assert (header.Format, header.CodedCharSetId, header.StrucLength) == (mq.MQFMT_STRING, 819, 60)
    described = layout("MD").read(md)
    assert (described.Format, described.CodedCharSetId) == (mq.MQFMT_RF_HEADER_2, 1208)
    assert names(handle, "%") == ["jms.Dst"]
    assert refused(properties.into_buffer, HCONN, handle, both, b"usr.%", md, buffer) == mq.MQRC_PROPERTY_NOT_AVAILABLE

    buffer[60:] = b"Hello"
    assert properties.from_buffer(HCONN, handle, layout("BMHO").new(Options=0), md, buffer) == 65
    assert properties.from_buffer(HCONN, handle, None, md, buffer) == 5
    assert buffer.startswith(b"Hello")
    described = layout("MD").read(md)
    assert (described.Format, described.CodedCharSetId) == (mq.MQFMT_STRING, 819)
    assert names(handle, "%") == ["a"]


# ---- puts


@pytest.mark.parametrize(
    ("action", "original", "new", "expected"),
    [
        (mq.MQACTP_NEW, True, False, {"all": "1", "reply": "1", "none": "1"}),
        (mq.MQACTP_NEW, True, True, {"all": "2", "mine": "2"}),
        (mq.MQACTP_FORWARD, True, True, {"all": "2", "mine": "2"}),
        (mq.MQACTP_REPLY, True, False, {"all": "1", "reply": "1"}),
        (mq.MQACTP_REPLY, False, True, {"all": "2", "mine": "2"}),
        (mq.MQACTP_REPORT, True, False, {"all": "1"}),
    ],
)
def test_the_action_of_a_put_chooses_the_properties(
    handle: int, action: int, original: bool, new: bool, expected: dict[str, str]
) -> None:
    second = handles.create(HCONN, None)
    put(handle, "all", b"1", CopyOptions=mq.MQCOPY_ALL)
    put(handle, "reply", b"1", CopyOptions=mq.MQCOPY_REPLY)
    put(handle, "none", b"1", CopyOptions=mq.MQCOPY_NONE)
    put(second, "all", b"2")
    put(second, "mine", b"2")
    assert handles.composed(HCONN, handle * original, second * new, action) == expected


def test_a_put_refuses_a_property_that_must_be_supported_and_an_unknown_action(handle: int) -> None:
    put(handle, "a", b"1", Support=mq.MQPD_SUPPORT_REQUIRED)
    assert refused(handles.composed, HCONN, handle, 0, mq.MQACTP_NEW) == mq.MQRC_UNSUPPORTED_PROPERTY
    assert refused(handles.composed, HCONN, handle, 0, 9) == mq.MQRC_ACTION_ERROR


def test_the_fields_of_the_descriptor_are_properties_too(handle: int) -> None:
    put(handle, "Root.MQMD.Priority", struct.pack("=i", 7), mq.MQTYPE_INT32)
    put(handle, "Root.MQMD.ReplyToQ", b"BACK")
    assert inquire(handle, "Root.MQMD.ReplyToQ")[1] == b"BACK"
    made = layout("MD").read(handles.composed_descriptor(HCONN, handle, 0, mq.MQACTP_NEW))
    assert (made.Priority, made.ReplyToQ, made.Format) == (7, b"BACK".ljust(48, b"\0"), mq.MQFMT_NONE)
    properties.got(handles.handle_of(HCONN, handle), layout("MD").new(MsgId=b"m" * 24))
    assert inquire(handle, "Root.MQMD.MsgId")[:2] == (mq.MQTYPE_BYTE_STRING, b"m" * 24)
    properties.delete_property(HCONN, handle, None, b"Root.MQMD.MsgId")
    assert refused(inquire, handle, "Root.MQMD.MsgId") == mq.MQRC_PROPERTY_NOT_AVAILABLE


def test_folders_become_properties_at_a_put_and_a_handle_takes_precedence(handle: int) -> None:
    put(handle, "a", b"handle")
    psc = b"<psc><Command>RegSub</Command></psc>"
    header = layout("RFH2").new(Format=mq.MQFMT_STRING, CodedCharSetId=819, StrucLength=36 + 4 + 36 + 4 + 32)
    folders = struct.pack("=i", 36) + psc + struct.pack("=i", 32) + b"<usr><a>1</a><b>2</b></usr>     "
    data = Data(bytes(header) + folders + b"Hello", mq.MQFMT_RF_HEADER_2, 546, 1208)
    left, found = properties.at_put(HCONN, data, handle, 0, mq.MQACTP_NEW)
    assert dict(found) == {"a": "handle", "b": "2"}
    assert left.body == header[:8] + struct.pack("=i", 76) + header[12:] + struct.pack("=i", 36) + psc + b"Hello"


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b"RFH \1\0", mq.MQRC_RFH_ERROR),
        (layout("RFH2").new(StrucLength=45) + struct.pack("=i", 5) + b"<usr>", mq.MQRC_RFH_FORMAT_ERROR),
    ],
)
def test_a_put_refuses_a_malformed_header(header: bytes, reason: int) -> None:
    data = Data(bytes(header), mq.MQFMT_RF_HEADER_2, 546, 1208)
    assert refused(properties.at_put, HCONN, data, 0, 0, mq.MQACTP_NEW) == reason


def test_a_put_leaves_a_header_in_ebcdic_as_it_is() -> None:
    data = Data("RFH ".encode("cp500") + bytes(32), mq.MQFMT_RF_HEADER_2, 546, 1208)
    left, found = properties.at_put(HCONN, data, 0, 0, mq.MQACTP_NEW)
    assert (left, dict(found)) == (data, {})


# ---- gets

PLAIN = Data(b"Hello", mq.MQFMT_STRING, 546, 819)


@pytest.mark.parametrize(
    ("headers", "given", "has_header"),
    [
        (mq.MQGMO_PROPERTIES_AS_Q_DEF, {"a": 1}, True),
        (mq.MQGMO_PROPERTIES_AS_Q_DEF, {"JMSType": "x"}, True),
        (mq.MQGMO_PROPERTIES_AS_Q_DEF, {"mine.a": 1}, False),
        (mq.MQGMO_PROPERTIES_COMPATIBILITY, {"mine.a": 1, "jms.Dst": "Q"}, True),
        (mq.MQGMO_PROPERTIES_COMPATIBILITY, {"mine.a": 1}, False),
        (mq.MQGMO_PROPERTIES_FORCE_MQRFH2, {"mine.a": 1}, True),
        (mq.MQGMO_PROPERTIES_FORCE_MQRFH2, {}, False),
        (mq.MQGMO_NO_PROPERTIES, {"a": 1}, False),
    ],
)
def test_the_options_of_a_get_say_whether_a_header_comes_before_the_data(
    headers: int, given: dict[str, Any], has_header: bool
) -> None:
    _, made = properties.at_put(HCONN, PLAIN, 0, 0, mq.MQACTP_NEW)
    made = type(made)(given)
    got = properties.at_get(PLAIN, made, headers, properties.handle_for_get(HCONN, 0, headers))
    if not has_header:
        assert got == PLAIN
        return
    assert (got.format, got.encoding, got.ccsid) == (mq.MQFMT_RF_HEADER_2, 546, 1208)
    assert properties.unfolded(got) == (PLAIN, made)


@pytest.mark.parametrize("headers", [mq.MQGMO_PROPERTIES_AS_Q_DEF, mq.MQGMO_PROPERTIES_IN_HANDLE])
def test_a_handle_gets_the_properties_instead_of_a_header(handle: int, headers: int) -> None:
    _, given = properties.at_put(HCONN, PLAIN, 0, 0, mq.MQACTP_NEW)
    into = properties.handle_for_get(HCONN, handle, headers)
    assert properties.at_get(PLAIN, type(given)({"a": 1}), headers, into) == PLAIN
    assert names(handle, "%") == ["a"]


def test_a_handle_must_be_given_if_the_options_ask_for_it() -> None:
    assert refused(properties.handle_for_get, HCONN, 0, mq.MQGMO_PROPERTIES_IN_HANDLE) == mq.MQRC_HMSG_ERROR
    assert refused(properties.handle_for_get, HCONN, 99_999, mq.MQGMO_PROPERTIES_AS_Q_DEF) == mq.MQRC_HMSG_ERROR
    assert properties.handle_for_get(HCONN, 99_999, mq.MQGMO_NO_PROPERTIES) is None
