"""The properties in an MQRFH2 at the front of a body."""

from __future__ import annotations

import re
import struct
from typing import Any
from xml.etree import ElementTree

import pytest

from inorder import Message
from inorder.formats.rfh2 import MalformedHeader, folded, parsed, unfolded

BODY = b"Hello"


def header(*folders: str | bytes, order: str = "<", character_set: int = 1208, **fixed: Any) -> bytes:
    """An MQRFH2, padded as MQ pads it."""
    code = {1208: "utf-8", 1200: "utf-16-le" if order == "<" else "utf-16-be"}.get(character_set, "utf-8")
    data = b""
    for folder in folders:
        text = folder if isinstance(folder, bytes) else folder.encode(code)
        text += " ".encode(code) * (-len(text) % 4 // len(" ".encode(code)))
        data += struct.pack(f"{order}i", len(text)) + text
    given = {"identifier": b"RFH ", "version": 2, "length": 36 + len(data), "format": b"MQSTR   "} | fixed
    return (
        struct.pack(
            f"{order}4s4i8s2i", given["identifier"], given["version"], given["length"], 546, 1208, given["format"], 0,
            character_set,
        )
        + data
    )  # fmt: skip


def carrying(data: bytes, encoding: int = 546, **fields: Any) -> Message:
    return Message(data + BODY, format="MQHRF2", encoding=encoding, coded_character_set_id=819, **fields)


@pytest.mark.parametrize(
    ("folder", "properties"),
    [
        ("<usr><colour>red</colour></usr>", {"colour": "red"}),
        (
            "<usr><n dt='i4'>5</n><big dt='int'>-9</big><short dt=\"i2\">1</short></usr>",
            {"n": 5, "big": -9, "short": 1},
        ),
        ("<usr><weight dt='r8'>2.5</weight><small dt='r4'>1E3</small></usr>", {"weight": 2.5, "small": 1000.0}),
        ("<usr><yes dt='boolean'>1</yes><no dt='boolean'>0</no></usr>", {"yes": True, "no": False}),
        ("<usr><key dt='bin.hex'>00FF</key><none xsi:nil='true'></none></usr>", {"key": b"\0\xff", "none": None}),
        ("<usr><empty></empty><text dt='string'> a &lt;b&gt; &amp; </text></usr>", {"empty": "", "text": " a <b> & "}),
        ("<usr> <a> <b>1</b> <c>2</c> </a> </usr>", {"a.b": "1", "a.c": "2"}),
        ("<jms><Dst>queue:///Q</Dst><Tms>17</Tms></jms>", {"jms.Dst": "queue:///Q", "jms.Tms": "17"}),
        ("<mcd><Msd>jms_text</Msd><Type>order</Type></mcd>", {"mcd.Msd": "jms_text", "JMSType": "order"}),
        ("<mine content='properties'><a>1</a></mine>", {"mine.a": "1"}),
    ],
)
def test_the_properties_of_folders_become_those_of_the_message(folder: str, properties: dict[str, Any]) -> None:
    found = unfolded(carrying(header(folder), priority=3))
    assert found == Message(
        BODY, format="MQSTR", encoding=546, coded_character_set_id=1208, priority=3, properties=properties
    )


@pytest.mark.parametrize(("order", "encoding"), [("<", 546), (">", 273)])
@pytest.mark.parametrize("character_set", [1208, 1200, 0])
def test_integers_and_texts_are_read_as_the_header_says(order: str, encoding: int, character_set: int) -> None:
    found = unfolded(carrying(header("<usr><a>é</a></usr>", order=order, character_set=character_set), encoding))
    assert (dict(found.properties), found.body) == ({"a": "é"}, BODY)


def test_properties_of_consecutive_headers_and_of_the_message_are_combined() -> None:
    data = header("<usr><a>1</a></usr>", "<mcd><Msd>none</Msd></mcd>", format=b"MQHRF2  ") + header(
        "<usr><b>2</b></usr>"
    )
    found = unfolded(carrying(data, properties={"c": 3}))
    assert dict(found.properties) == {"a": "1", "mcd.Msd": "none", "b": "2", "c": 3}
    assert found.body == BODY


def test_other_folders_stay_in_the_header() -> None:
    other = "<psc><Command>Publish</Command></psc>"
    found = unfolded(carrying(header("<usr><a>1</a></usr>", other)))
    assert (found.format, found.coded_character_set_id, found.body) == ("MQHRF2", 819, header(other) + BODY)
    assert dict(found.properties) == {"a": "1"}
    assert unfolded(found) == found


def test_a_header_without_folders_is_removed() -> None:
    assert unfolded(carrying(header())) == Message(BODY, format="MQSTR", encoding=546, coded_character_set_id=1208)


ENTITIES = "<!DOCTYPE usr [<!ENTITY a 'aaaaaaaaaa'>]><usr><a>&a;</a></usr>"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        header()[:30],
        header(identifier=b"RFH1"),
        header(version=1),
        header(length=35),
        header(length=9999),
        header(length=38) + b"ab",
        header(b"<usr><a>1</a></usr>  ") + struct.pack("<i", 99),
        header("<usr><a>1</usr>"),
        header("<usr><a>1</a><a>2</a></usr>"),
        header("<usr><a>1</a></usr>", "<usr><a>2</a></usr>"),
        header("<usr><a dt='i4'>one</a></usr>"),
        header("<usr><a dt='boolean'>maybe</a></usr>"),
        header("<usr><a dt='ui4'>1</a></usr>"),
        header("<usr><a dt='r8'>nan</a></usr>"),
        header("<usr><a-b>1</a-b></usr>"),
        header("<usr><JMSPriority>1</JMSPriority></usr>"),
        header("<usr><a>1</a></usr>", character_set=37),
        header(b"<usr><a>\xff</a></usr>"),
        header(ENTITIES),
        header(),
    ],
)
def test_a_malformed_header_or_an_unsupported_property_stays_in_the_body(data: bytes) -> None:
    message = carrying(data)
    if data == header():
        message = message.replace(format="MQSTR")  # the format does not announce a header
    elif data.endswith(struct.pack("<i", 99)):
        message = message.replace(body=data.replace(struct.pack("<i", 64), struct.pack("<i", 68)))
    assert unfolded(message) is message


def test_properties_are_written_into_a_header_and_read_back() -> None:
    properties: dict[str, Any] = {
        "text": " a <b> & \r\n'", "yes": True, "no": False, "n": -5, "big": 2**40, "weight": 2.5, "key": b"\0\xff",
        "none": None, "empty": "", "JMSType": "order", "jms.Dst": "queue:///Q", "mine.a.b": "1", "mine.c": "2",
    }  # fmt: skip
    message = Message(BODY, format="MQSTR", encoding=273, coded_character_set_id=819, properties=properties)
    written = folded(message)
    assert not written.properties
    assert (written.format, written.coded_character_set_id) == ("MQHRF2", 1208)
    assert written.body.endswith(BODY)
    assert unfolded(written) == message


def test_properties_are_written_as_the_text_of_these_folders() -> None:
    message = Message(BODY, properties={"n": 5, "mcd.Msd": "none", "mine.a": b"\xff", "z": "\1"})
    assert folded(message).body == (
        struct.pack("=4s4i8s2i", b"RFH ", 2, 168, message.encoding, 0, b" " * 8, 0, 1208)
        + struct.pack("=i", 28) + b"<mcd><Msd>none</Msd></mcd>  "
        + struct.pack("=i", 36) + b"<usr><n dt='i4'>5</n><z>?</z></usr> "
        + struct.pack("=i", 56) + b"<mine content='properties'><a dt='bin.hex'>ff</a></mine>"
        + BODY
    )  # fmt: skip


def test_folders_with_a_null_are_valid_xml() -> None:
    message = Message(BODY, properties={"none": None, "mcd.msgbody": None})
    text = folded(message).body[36 : -len(BODY)]
    folders = [ElementTree.fromstring(one) for one in re.findall(rb"<mcd>.*?</mcd>|<usr>.*?</usr>", text)]
    assert [(one.tag, one[0].tag) for one in folders] == [("mcd", "msgbody"), ("usr", "none")]


def test_properties_are_added_to_a_header_that_the_body_begins_with() -> None:
    other = "<psc><Command>Publish</Command></psc>"
    message = carrying(header(other, order=">"), 273, properties={"a": "1"})
    assert folded(message).body == header("<usr><a>1</a></usr>", other, order=">") + BODY
    assert unfolded(folded(message)).properties == message.properties


@pytest.mark.parametrize(
    ("data", "in_folder"), [(b"RFH", False), (header("<usr><a>"), True), (header("<usr/>", character_set=37), False)]
)
def test_an_error_says_whether_the_header_or_a_folder_is_malformed(data: bytes, in_folder: bool) -> None:
    with pytest.raises(MalformedHeader) as raised:
        parsed(Message(data, format="MQHRF2"))
    assert raised.value.in_folder == in_folder
