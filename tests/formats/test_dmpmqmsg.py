"""The text files of dmpmqmsg: ours read back the same, those of the tool are read, others are refused."""

from __future__ import annotations

import io
import math
import re
from typing import IO, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.helpers.support import Raw

from inorder import ArgumentError, Message
from inorder.formats import FormatError
from inorder.formats.dmpmqmsg import ATTRIBUTES, parse, write
from inorder.model.fields import LATER

# As the tool's source writes messages: without options, with -dA, with -da, with -dt and -dN, and an empty one.
UNLOADED = b"""\
* QLOAD Version:1.9 Created:Sat Jan  1 12:00:00 2022
* Qmgr  = QM1
* Queue = Q

* Index 1
A VER 2
A RPT 0
A MST 8
A EXP -1
A FDB 0
A ENC 546
A CCS 1208
A FMT MQSTR   \n\
A PRI 4
A PER 1
A MSI 414D5120514D312020202020202020200102030405060708
A COI 000000000000000000000000000000000000000000000000
A BOC 3
A RTQ REPLY                                           \n\
A RTM                                                 \n\
A USR alice       \n\
A ACC 0000000000000000000000000000000000000000000000000000000000000000
A AIX 2020202020202020202020202020202020202020202020202020202020202020
A PAT 6
A PAN amqsput                     \n\
A PTD 20220101
A PTT 11595927
A AOX 20202020
A GRP 000000000000000000000000000000000000000000000000
A MSQ 1
A OFF 0
A MSF 0
A ORL -1
X 48656C6C6F20576F
X 726C64

A VER 1
A AID about me
S "say ~"~~~" "
X 0A
S "end"

A FMT
X 48656C6C6F                                              <Hello>
X 0A                                                      <.>

N
T two
T lines

N
X\x20
"""


def messages(data: bytes) -> list[Message]:
    return list(parse(io.BytesIO(data)))


def after_header(text: str | bytes) -> bytes:
    return b"* QLOAD\n" + (text if isinstance(text, bytes) else text.encode())


def written(*several: Message, **how: Any) -> bytes:
    stream = io.BytesIO()
    assert write(several, stream, **how) == len(several)
    return stream.getvalue()


def test_a_stream_with_partial_writes_gets_all_bytes() -> None:
    raw = Raw()
    assert write(messages(UNLOADED), cast("IO[bytes]", raw)) == 5
    assert raw.written == written(*messages(UNLOADED))


def test_a_file_written_by_dmpmqmsg_is_read() -> None:
    first, second, third, fourth, fifth = messages(UNLOADED)
    assert first == Message(
        b"Hello World",
        expiry=math.inf,
        encoding=546,
        coded_character_set_id=1208,
        format="MQSTR",
        priority=4,
        persistent=True,
        message_id=b"AMQ QM1         \1\2\3\4\5\6\7\x08",
        reply_to_queue="REPLY",
        user_identifier="alice",
        put_application_type=6,
        put_application_name="amqsput",
        put_at=1641038399.27,
    ).with_values(backout_count=3)
    default = Message(expiry=math.inf)
    assert second == default.replace(body=b'say "~" \nend', application_identity_data="about me")
    assert third == default.replace(body=b"Hello\n")
    assert fourth == default.replace(body=b"two\nlines\n")
    assert fifth == default


def test_messages_without_data_are_empty() -> None:
    """The next descriptor begins with VER, or N."""
    found = messages(after_header("A VER 2\nA FMT ONE\n\nA VER 1\nA FMT TWO\nN\nA FMT THREE\n\nA VER 2\nX 41\nN\n"))
    assert [(one.format, one.body) for one in found] == [
        ("ONE", b""), ("TWO", b""), ("THREE", b""), ("", b"A"), ("", b"")
    ]  # fmt: skip


def test_a_segment_as_mq_dumps_it_is_read() -> None:
    """Its OriginalLength is its own length (R1.12)."""
    (segment,) = messages(after_header("A VER 2\nA MSF 6\nA ORL 4\nX 61626364\n"))
    assert (segment.flags, segment.body) == (6, b"abcd")


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_file_from_windows_reads_the_same(end: bytes) -> None:
    assert messages(UNLOADED.replace(b"\n", end)) == messages(UNLOADED)


@pytest.mark.parametrize(
    ("data", "bodies"),
    [
        (b"* QLOAD\nN\nT a\r\n", [b"a\r\n"]),  # CR is data in a file whose lines end without it
        (b"* QLOAD\nN\nX4142\nX  43  \nX\n", [b"ABC"]),
        (b"\n \n* DMPMQMSG\n\nA PRI 1\n* and\n\nA PER 0\n\nX 41\n* still\nX 42\n\n\nN\nX 43", [b"AB", b"C"]),
        (b"* QLOAD", []),
    ],
)
def test_blanks_empty_lines_and_comments_do_not_matter(data: bytes, bodies: list[bytes]) -> None:
    assert [one.body for one in messages(data)] == bodies


# ---- written messages read back

ASCII = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E))


def text(length: int) -> st.SearchStrategy[str]:
    return ASCII.map(lambda value: value[:length].rstrip())


MESSAGES = st.builds(
    lambda body, backouts, fields: Message(body, **fields).with_values(backout_count=backouts),
    body=st.one_of(
        st.binary(max_size=200), st.binary(max_size=40).map(lambda data: bytes(b'"~ a<\n\r*\xffX'[b % 9] for b in data))
    ),
    backouts=st.integers(0, 9),
    fields=st.fixed_dictionaries(
        {"expiry": st.one_of(st.just(math.inf), st.integers(1, 999_999_999).map(lambda tenths: tenths / 10))},
        optional={
            "report": st.sampled_from([0, 64, 128]),
            "message_type": st.sampled_from([2, 4, 8, 65536]),
            "feedback": st.integers(0, 999_999_999),
            "encoding": st.integers(0, 2**31 - 1),
            "coded_character_set_id": st.integers(-4, 2**31 - 1),
            "format": text(8),
            "priority": st.one_of(st.none(), st.integers(0, 12)),
            "persistent": st.sampled_from([None, True, False]),
            "message_id": st.binary(max_size=24),
            "correlation_id": st.binary(max_size=24),
            "reply_to_queue": text(48),
            "reply_to_queue_manager": text(48),
            "user_identifier": text(12),
            "accounting_token": st.binary(max_size=32),
            "application_identity_data": st.text(st.characters(max_codepoint=0x7F), max_size=32),
            "put_application_type": st.integers(-1, 2**31 - 1),
            "put_application_name": text(28),
            "put_at": st.integers(1, 4 * 10**11).map(lambda hundredths: hundredths // 100 + hundredths % 100 / 100),
            "application_origin_data": st.text(st.characters(max_codepoint=0x7F), max_size=4),
            "group_id": st.binary(max_size=24),
            "sequence_number": st.integers(1, 999_999_999),
            "offset": st.integers(0, 999_999_999),
            "flags": st.integers(0, 31),
        },
    ),
)


@given(several=st.lists(MESSAGES, max_size=3), data=st.sampled_from(["hex", "string"]), width=st.integers(10, 60))
def test_written_messages_are_read_back_unchanged(several: list[Message], data: Any, width: int) -> None:
    file = written(*several, data=data, width=width)
    assert messages(file) == several
    assert file.isascii()
    assert messages(file.replace(b"\n", b"\r\n")) == several


def test_messages_are_written_as_dmpmqmsg_writes_them() -> None:
    message = messages(UNLOADED)[0]
    assert written(message, width=10) == (
        b"* QLOAD file, written by inorder\n\n"
        + UNLOADED[UNLOADED.index(b"A VER") : UNLOADED.index(b"X 4865")]
        + b"X 48656C6C6F20576F726C\nX 64\n\n"
    )
    assert written(message.replace(body=b'"~ \n'), data="string").endswith(b'S "~"~~ "\nX 0A\n\n')
    assert written(message.replace(body=b""), data="string").endswith(b"\nX \n\n")


def test_all_attributes_are_written_and_every_field_has_one() -> None:
    file = written(Message(expiry=math.inf))
    codes = set(re.findall("^A (...) ", file.decode(), re.MULTILINE))
    assert codes == {*ATTRIBUTES, "VER", "PTD", "PTT"} - {"AID", "AOD"}
    no_code = {"put_at", "delay", "properties", "transmission", "body", "length", "token", "uid", "place"}
    no_code |= {"earlier_pending", "warning", *LATER}
    assert {one.field for one in ATTRIBUTES.values()} == set(Message.FIELDS) - no_code


def test_properties_are_refused_unless_they_are_explicitly_left_out() -> None:
    plain = Message(b"Hello", expiry=math.inf)
    with pytest.raises(FormatError, match=r"message 1, properties: .*leave_out_properties=True") as raised:
        written(plain.replace(properties={"colour": "red"}))
    assert raised.value.data["field"] == "properties"
    assert written(plain.replace(properties={"colour": "red"}), leave_out_properties=True) == written(plain)
    with pytest.raises(ArgumentError, match="leave_out_properties"):
        written(plain, leave_out_properties=1)


def test_times_and_expiries_are_truncated_to_the_precision_of_the_format() -> None:
    (message,) = messages(written(Message(expiry=12.34, put_at=1641038399.279)))
    assert (message.expiry, message.put_at) == (12.3, 1641038399.27)
    (message,) = messages(written(Message(expiry=0.1, put_at=0.0).with_values(expiry=0.04)))
    assert message.expiry == 0.1


# ---- refusals


@pytest.mark.parametrize(
    ("data", "line", "word"),
    [
        (b"", 1, "the file is empty"),
        (b"A PRI 4\nX 41\n", 1, "-dH"),
        (b"\nhello\n", 2, "'hello'"),
        (b"AMQSBCG0 - starts here\n", 1, "amqsbcg"),
        (after_header("X 41\n"), 2, "must begin with an attribute (A) or with N"),
        (after_header("A PRI 4\nP usr\nX 41\n"), 3, "a message must begin"),
        (after_header("Nothing\nX 41\n"), 2, "must be alone on its line"),
        (after_header("A ABC 4\nX 41\n"), 2, "codes are ACC, AID"),
        (after_header("APRI 4\nX 41\n"), 2, "codes are"),
        (after_header("A PRI 4\nA PRI 5\nX 41\n"), 3, "twice"),
        (after_header("A AID x\nA AIX 78\nX 41\n"), 3, "in characters and in hexadecimal"),
        (after_header("A PRI four\nX 41\n"), 2, "PRI: must be an integer"),
        (after_header("A PRI -2\nX 41\n"), 2, "priority must be"),
        (after_header("A PER 3\nX 41\n"), 2, "PER: must be 0 (no)"),
        (after_header("A BOC -1\nX 41\n"), 2, "BOC"),
        (after_header("A MSI 0\nX 41\n"), 2, "MSI: must be pairs"),
        (after_header("A FMT TOO LONG!\nX 41\n"), 2, "at most 8 characters"),
        (after_header(b"A FMT \xe9\nX 41\n"), 2, "not ASCII"),
        (after_header("A FMT MQSTR\r\nX 41\n"), 2, "control characters"),
        (after_header("A AIX FF\nX 41\n"), 2, "not ASCII"),
        (after_header("A VER 3\nX 41\n"), 2, "1 or 2"),
        (after_header("A VER 1\nA MSQ 1\nX 41\n"), 3, "version 1 does not have it"),
        (after_header("A PTD 20220101\nX 41\n"), 2, "HHMMSSTH"),
        (after_header("A PTT 11595927\nX 41\n"), 2, "YYYYMMDD"),
        (after_header("A PTD 20221301\nA PTT 11595927\nX 41\n"), 2, "must be a time from 1970 on"),
        (after_header("A PTD 19690101\nA PTT 00000000\nX 41\n"), 2, "must be a time from 1970 on"),
        (after_header("A MST 1\nX 41\n"), 2, "needs reply_to_queue"),
        (after_header("N\nX 4\n"), 3, "pairs of hexadecimal digits"),
        (after_header("N\nX 41 42\n"), 3, "pairs of hexadecimal digits"),
        (after_header("N\nX 41\r\n"), 3, "pairs of hexadecimal digits"),
        (after_header("N\nS hello\n"), 3, "characters in quotes"),
        (after_header('N\nS "a~b"\n'), 3, "characters in quotes"),
        (after_header('N\nS "a~"\n'), 3, "characters in quotes"),
        (after_header("N\nText\n"), 3, "followed by a blank"),
    ],
)
def test_undocumented_input_is_refused_with_its_line(data: bytes, line: int, word: str) -> None:
    with pytest.raises(FormatError, match=re.escape(word)) as raised:
        messages(data)
    assert raised.value.line == line
    assert str(raised.value).startswith("the file" if not data else f"line {line}: ")


def test_messages_before_an_error_are_returned() -> None:
    reading = parse(io.BytesIO(after_header("N\nX 41\nN\nX 4\n")))
    assert next(reading).body == b"A"
    with pytest.raises(FormatError, match="line 5"):
        next(reading)


def test_a_line_without_end_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inorder.formats.dmpmqmsg.LINE_BYTES_MAX", 1000)
    with pytest.raises(FormatError, match="line 3 is longer than 1,000 bytes"):
        messages(after_header("N\nX " + "41" * 2**20))


def test_a_message_without_end_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inorder.formats.dmpmqmsg.MESSAGE_LENGTH_MAX", 3)
    assert messages(after_header("N\nX 4141\nX 41\n"))[0].body == b"AAA"
    with pytest.raises(FormatError, match="line 4: the message has more than 3 bytes"):
        messages(after_header("N\nX 4141\nX 4141\n" + "X" * 9))


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (Message(expiry=math.inf, delay=5), "delay"),
        (Message(), "expiry"),
        (Message(expiry=math.inf, format="é"), "format"),
        (Message(expiry=math.inf, user_identifier="a\nb"), "user_identifier"),
        (Message(expiry=math.inf, application_identity_data="é"), "application_identity_data"),
        (Message(b"part", expiry=math.inf).with_values(length=10), "body"),
    ],
)
def test_values_that_the_format_cannot_represent_are_refused(message: Message, field: str) -> None:
    stream = io.BytesIO()
    with pytest.raises(FormatError, match=f"message 2, {field}: ") as raised:
        write([Message(b"good", expiry=math.inf), message], stream)
    assert (raised.value.message, raised.value.field) == (2, field)
    assert [one.body for one in messages(stream.getvalue())] == [b"good"], "nothing of the second one is written"


@pytest.mark.parametrize("how", [{"data": "text"}, {"width": 9}, {"width": True}])
def test_bad_arguments_are_refused(how: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=next(iter(how))):
        written(**how)
    with pytest.raises(ArgumentError, match="messages"):
        written(b"x")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="stream"):
        list(parse(io.StringIO("x")))  # type: ignore[arg-type]
