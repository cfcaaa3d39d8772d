"""Conversion of data between character sets, of headers, and data that cannot be converted (M-12)."""

from __future__ import annotations

import struct

import pytest

from inorder.mqi import constants as mq
from inorder.mqi.conversion import Data, character_set, converted
from inorder.mqi.layouts import layout

STRING, NONE = mq.MQFMT_STRING, mq.MQFMT_NONE
LITTLE, BIG = 546, 273
Z_OS = 785  # big-endian integers, hexadecimal floats
HEADER = bytes(layout("RFH2").new())
LONG_NAME = bytes(layout("DLH").new(DestQName="é".encode("latin-1") * 48, CodedCharSetId=819))


@pytest.mark.parametrize(
    ("source", "body", "target", "expected"),
    [
        (1208, "Grüße".encode(), 819, b"Gr\xfc\xdfe"),
        (819, b"Gr\xfc\xdfe", 37, bytes.fromhex("c799dc5985")),
        (500, bytes.fromhex("4a4f5a"), 1208, b"[!]"),
        (37, bytes.fromhex("babb5a"), 1208, b"[]!"),
        (1047, bytes.fromhex("adbd5f"), 1208, b"[]^"),
        (1208, b"[]^", 1047, bytes.fromhex("adbd5f")),
        (273, bytes.fromhex("4a6ad059"), 1208, "Äöü~".encode()),
        (1141, bytes.fromhex("9f"), 1208, "€".encode()),
        (1140, bytes.fromhex("9f"), 1208, "€".encode()),
        (1142, bytes.fromhex("5a7c"), 1208, "€Ø".encode()),
        (277, bytes.fromhex("5a7c"), 1208, "¤Ø".encode()),
        (1208, "日本".encode(), 943, "日本".encode("cp932")),
        (1208, "é€".encode(), 1252, b"\xe9\x80"),
        (1208, "é".encode(), 850, b"\x82"),
        (1208, "é".encode(), 437, b"\x82"),
        (1208, "a日".encode(), 819, b"a?"),
        (1208, "a日".encode(), 1047, bytes.fromhex("816f")),
        (-3, "é".encode(), 819, b"\xe9"),
    ],
)
def test_text_is_converted_between_character_sets(source: int, body: bytes, target: int, expected: bytes) -> None:
    found = converted(Data(body, STRING, LITTLE, source), LITTLE, target)
    assert found == (Data(expected, STRING, LITTLE, target), 0)


@pytest.mark.parametrize("ccsid", [37, 273, 277, 278, 280, 284, 285, 297, 500, 871, 1047, 1140, 1145, 1148, 1149, 819])
def test_every_byte_of_a_single_byte_character_set_survives_the_way_to_unicode_and_back(ccsid: int) -> None:
    every, one = bytes(range(256)), character_set(ccsid)
    assert one is not None
    assert one.encode(one.decode(every)) == every


def test_the_encoding_gives_the_byte_order_of_utf_16() -> None:
    big = Data("aé".encode("utf-16-be"), STRING, BIG, 1200)
    little = Data("aé".encode("utf-16-le"), STRING, LITTLE, 1200)
    assert converted(big, LITTLE, 1200) == (little, 0)
    assert converted(little, BIG, 13488) == (big._replace(ccsid=13488), 0)
    assert converted(little, LITTLE, 1208)[0].body == "aé".encode()


@pytest.mark.parametrize(
    ("data", "encoding", "ccsid", "reason"),
    [
        (Data(b"x", NONE, BIG, 819), LITTLE, 819, mq.MQRC_FORMAT_ERROR),
        (Data(b"x", NONE, LITTLE, 819), LITTLE, 1208, mq.MQRC_FORMAT_ERROR),
        (Data(b"x", b"MYFORMAT", LITTLE, 819), LITTLE, 1208, mq.MQRC_FORMAT_ERROR),
        (Data(b"x", STRING, LITTLE, 65_000), LITTLE, 1208, mq.MQRC_SOURCE_CCSID_ERROR),
        (Data(b"x", STRING, LITTLE, 819), LITTLE, 65_000, mq.MQRC_TARGET_CCSID_ERROR),
        (Data(b"\xff", STRING, LITTLE, 1208), LITTLE, 819, mq.MQRC_NOT_CONVERTED),
        (Data(b"RFH ", mq.MQFMT_RF_HEADER_2, LITTLE, 819), BIG, 819, mq.MQRC_FORMAT_ERROR),
        (Data(bytes(36), mq.MQFMT_RF_HEADER_2, LITTLE, 819), BIG, 819, mq.MQRC_FORMAT_ERROR),
        (Data(HEADER, mq.MQFMT_RF_HEADER_2, 0, 819), BIG, 819, mq.MQRC_SOURCE_INTEGER_ENC_ERROR),
        (Data(HEADER, mq.MQFMT_RF_HEADER_2, LITTLE, 819), 0, 819, mq.MQRC_TARGET_INTEGER_ENC_ERROR),
        (Data(HEADER, mq.MQFMT_RF_HEADER_2, LITTLE, 1200), BIG, 819, mq.MQRC_SOURCE_CCSID_ERROR),
        (Data(HEADER, mq.MQFMT_RF_HEADER_2, LITTLE, 819), BIG, 1200, mq.MQRC_TARGET_CCSID_ERROR),
        (Data(LONG_NAME, mq.MQFMT_DEAD_LETTER_HEADER, LITTLE, 819), LITTLE, 1208, mq.MQRC_CONVERTED_STRING_TOO_BIG),
    ],
)
def test_data_that_cannot_be_converted_stays_as_it_is(data: Data, encoding: int, ccsid: int, reason: int) -> None:
    assert converted(data, encoding, ccsid) == (data, reason)


def test_data_already_in_the_wanted_form_is_unchanged_whatever_its_format() -> None:
    data = Data(b"\xff\0", b"MYFORMAT", LITTLE, 65_000)
    assert converted(data, LITTLE, 65_000) == (data, 0)


def rfh2(
    order: str, encoding: int, ccsid: int, folder: bytes, *, format: bytes = STRING, characters: str = "ascii"
) -> bytes:
    identifier, described = "RFH ".encode(characters), format.decode().encode(characters)
    length, size = 40 + len(folder), len(folder)
    return struct.pack(f"{order}4s4i8s3i", identifier, 2, length, encoding, ccsid, described, 0, 1208, size) + folder


def test_an_mqrfh2_and_its_text_are_converted_from_a_mainframe() -> None:
    folder = b"<usr><a>1</a></usr> "
    body = rfh2(">", Z_OS, 1047, folder, characters="cp037") + bytes.fromhex("adbd")
    data, reason = converted(Data(body, mq.MQFMT_RF_HEADER_2, Z_OS, 1047), LITTLE, 1208)
    assert reason == 0
    assert data == Data(rfh2("<", LITTLE, 1208, folder) + b"[]", mq.MQFMT_RF_HEADER_2, LITTLE, 1208)


def test_a_header_describes_a_part_that_could_not_be_converted() -> None:
    body = rfh2(">", BIG, 1208, b"<x/>", format=b"MYFORMAT") + b"\0\1"
    data, reason = converted(Data(body, mq.MQFMT_RF_HEADER_2, BIG, 1208), LITTLE, 1208)
    assert reason == mq.MQRC_PARTIALLY_CONVERTED
    assert data.body == rfh2("<", BIG, 1208, b"<x/>", format=b"MYFORMAT") + b"\0\1"


def test_a_part_that_inherits_its_character_set_still_inherits_it_after_conversion() -> None:
    data, _ = converted(Data(rfh2(">", BIG, -2, b"<x/>") + b"\xe9", mq.MQFMT_RF_HEADER_2, BIG, 819), LITTLE, 1208)
    assert data.body == rfh2("<", LITTLE, -2, b"<x/>") + "é".encode()


def test_folders_in_utf_16_follow_the_encoding() -> None:
    def folded(order: str, encoding: int, codec: str) -> bytes:
        made = bytearray(rfh2(order, encoding, 819, "<x/>".encode(codec), format=NONE))
        struct.pack_into(f"{order}i", made, 32, 1200)
        return bytes(made)

    data, reason = converted(Data(folded(">", BIG, "utf-16-be"), mq.MQFMT_RF_HEADER_2, BIG, 819), LITTLE, 819)
    assert (data.body, reason) == (folded("<", LITTLE, "utf-16-le"), 0)


def test_a_chain_of_a_dead_letter_and_a_transmission_header_is_converted() -> None:
    xqh = layout("XQH").new(RemoteQName=b"R", RemoteQMgrName=b"QM2", MsgDesc=bytes(layout("MD").new(1, Format=STRING,
        CodedCharSetId=819, ReplyToQ=b"BACK")))  # fmt: skip
    dlh = layout("DLH").new(Reason=2053, Format=mq.MQFMT_XMIT_Q_HEADER, Encoding=LITTLE, CodedCharSetId=819)
    data, reason = converted(
        Data(bytes(dlh + xqh) + b"Gr\xfc\xdfe", mq.MQFMT_DEAD_LETTER_HEADER, LITTLE, 819), BIG, 500
    )
    assert reason == 0
    assert struct.unpack_from(">i", data.body, 8) == (2053,)
    back, reason = converted(data, LITTLE, 819)
    assert reason == 0
    head = layout("DLH").read(back.body)
    assert (head.Reason, head.Format, head.Encoding) == (2053, mq.MQFMT_XMIT_Q_HEADER, LITTLE)
    inner = layout("XQH").read(back.body[172:])
    assert inner.RemoteQMgrName.rstrip(b" \0") == b"QM2"
    descriptor = layout("MD").read(inner.MsgDesc)
    assert (descriptor.Format, descriptor.CodedCharSetId, descriptor.ReplyToQ.rstrip(b" \0")) == (STRING, 819, b"BACK")
    assert back.body.endswith(b"Gr\xfc\xdfe")
