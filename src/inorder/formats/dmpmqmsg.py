"""Reads and writes the text files of IBM's dmpmqmsg (once qload, SupportPac MO03), one message at a time.

A file begins with a comment that names the tool. Each message is a line for each field of its descriptor, then lines of
data, and usually an empty line.

::

    * QLOAD Version:1.9 Created:Sat Jan  1 12:00:00 2022     the first line that is not empty: "* QLOAD" or "* DMPMQMSG"
                                                             elsewhere empty lines, and those that begin with *, are
                                                             ignored
    A VER 2                                                  A, a code of three letters, the value from column 7 on
    A FMT MQSTR
    A MSI 414D51...                                          bytes in hexadecimal; missing bytes at the end are NUL
    N                                                        in front: no descriptor, all fields as by default
    X 48656C6C6F               <Hello>                       data in hexadecimal, perhaps followed by a column of text
    S "Hello"                                                data as characters; ~" and ~~ stand for " and ~
    T Hello                                                  data as a line of text, and a line's end

docs/reference/formats.md names the source for each rule. Anything undocumented, or without a field in `Message`, is
refused with its line: nothing is guessed, nothing left out.
"""

from __future__ import annotations

import binascii
import contextlib
import math
import re
from calendar import timegm
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, Final, Literal, NamedTuple, NoReturn

from ..errors import InorderError, bad_argument
from ..model.attributes import MESSAGE_LENGTH_MAX
from ..model.fields import GIVEN, Field
from ..model.message import Message
from ..model.options import check_switch
from ..model.parameters import Choice, Integer, Octets, Text
from ..support.streams import write_whole
from .errors import FormatError
from .splitting import Readable

HEADERS: Final = (b"* QLOAD", b"* DMPMQMSG")
LINE_BYTES_MAX: Final = 256 * 1024 * 1024
WIDTH: Final = 25
DEPENDENT: Final = ("GRP", "MSQ", "OFF", "MSF", "ORL")  # a descriptor of version 1 has none of these
EXPIRY_UNLIMITED, PRIORITY_OF_QUEUE = -1, -1
PERSISTENCE: Final[Mapping[int, bool | None]] = {0: False, 1: True, 2: None}


class _Line(NamedTuple):
    """A line of the file: its number from 1, its kind, its bytes without the line's end."""

    number: int
    kind: str
    text: bytes

    def refuse(self, why: str) -> NoReturn:
        raise FormatError(f"line {self.number:,}: {why}", line=self.number)


# ---- attributes


@dataclass(frozen=True, slots=True)
class _Attribute:
    """A code, its field of `Message`, and how its value is read and written."""

    field: str
    read: Callable[[bytes], Any]
    write: Callable[[Any], str]


_INTEGER: Final = re.compile(rb"-?[0-9]{1,10} *")


def _integer(text: bytes) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"must be an integer, not {_shown(text)}")
    return int(text)


def _number(field: str) -> _Attribute:
    return _Attribute(field, _integer, str)


def _octets(field: str, length: int) -> _Attribute:
    return _Attribute(field, lambda text: _hexadecimal(text, length).ljust(length, b"\0"), lambda v: v.hex().upper())


def _hexadecimal(text: bytes, length: int) -> bytes:
    if not re.fullmatch(rb"(?:[0-9A-Fa-f]{2})* *", text):
        raise ValueError(f"must be pairs of hexadecimal digits, not {_shown(text)}")
    found = bytes.fromhex(text.decode("ascii"))
    if len(found) > length:
        raise ValueError(f"must have at most {length} bytes, not {len(found)}")
    return found


def _characters(field: str, length: int) -> _Attribute:
    def read(text: bytes) -> str:
        if len(text) > length:
            raise ValueError(f"must have at most {length} characters, not {len(text)}")
        found = _ascii(text)
        if not found.isprintable():
            raise ValueError(f"{_shown(text)} has control characters")
        return found

    def write(text: str) -> str:
        if not re.fullmatch("[ -~]*", text):
            raise ValueError(f"{text!r} is not printable ASCII: no document says how to write other characters")
        return text.ljust(length)

    return _Attribute(field, read, write)


def _characters_in_hex(field: str, length: int) -> _Attribute:
    def write(text: str) -> str:
        if not text.isascii():
            raise ValueError(f"{text!r} is not ASCII: no document says how to write other characters")
        return text.ljust(length).encode("ascii").hex().upper()

    return _Attribute(field, lambda text: _ascii(_hexadecimal(text, length)), write)


def _ascii(text: bytes) -> str:
    if not text.isascii():
        raise ValueError(f"{_shown(text)} is not ASCII: no document says which character set it is in")
    return text.decode("ascii").rstrip(" \0")


def _expiry(text: bytes) -> float:
    tenths = _integer(text)
    return math.inf if tenths == EXPIRY_UNLIMITED else tenths / 10


def _write_expiry(seconds: float | None) -> str:
    if seconds is None:
        raise ValueError("None, the queue's default, cannot be written: give seconds, or math.inf")
    return str(EXPIRY_UNLIMITED) if seconds == math.inf else str(max(1, math.floor(seconds * 10 + 1e-6)))


def _priority(text: bytes) -> int | None:
    value = _integer(text)
    return None if value == PRIORITY_OF_QUEUE else value


def _persistence(text: bytes) -> bool | None:
    value = _integer(text)
    if value not in PERSISTENCE:
        raise ValueError(f"must be 0 (no), 1 (yes) or 2 (the queue's default), not {value}")
    return PERSISTENCE[value]


OF_THEIR_OWN: Final[Mapping[str, tuple[Callable[[bytes], Any], Callable[[Any], str]]]] = {
    "expiry": (_expiry, _write_expiry),
    "priority": (_priority, lambda value: str(PRIORITY_OF_QUEUE if value is None else value)),
    "persistent": (_persistence, lambda value: "2" if value is None else str(int(value))),
}


def _of_field(name: str, field: Field[Any]) -> Iterator[tuple[str, _Attribute]]:
    """The codes of a field, each with its attribute."""
    code, *others = field.code.split()
    match field.kind:
        case _ if name in OF_THEIR_OWN:
            yield code, _Attribute(name, *OF_THEIR_OWN[name])
        case Octets() as kind:
            yield code, _octets(name, kind.length)
        case Text() as kind if others:
            yield code, _characters_in_hex(name, kind.most)
            yield others[0], _characters(name, kind.most)
        case Text() as kind:
            yield code, _characters(name, kind.most)
        case _:
            yield code, _number(name)


def _turn(name: str) -> int:
    """The place at which the tool writes a field: BOC after COI."""
    return Message.FIELDS["correlation_id" if name == "backout_count" else name].index


ATTRIBUTES: Final[Mapping[str, _Attribute]] = {
    code: attribute
    for name in sorted((name for name, field in Message.FIELDS.items() if field.code), key=_turn)
    for code, attribute in _of_field(name, Message.FIELDS[name])
}
FIRST: Final = "VER"  # with which the tool begins each descriptor
OTHERS: Final = (FIRST, "PTD", "PTT")  # which are not fields of their own
WITHOUT_CODE: Final = [one for one in GIVEN if not GIVEN[one].code and one not in ("put_at", "properties")]
# In the order in which the tool writes them, PTD and PTT after PAN; it writes either the bytes or the characters.
WRITTEN: Final = tuple(code for code in ATTRIBUTES if code not in ("AID", "AOD"))


# ---- reading


def parse(stream: Readable | IO[bytes]) -> Iterator[Message]:
    """The messages of a file, one after the other; memory holds one.

    A field without a line has MQ's default. `backout_count` is the value in the file; a put resets it to 0. With
    `context="set_all"` a put keeps the original putter and time, as the tool itself does.

    Args:
        stream: binary, from the beginning of the file.

    Raises FormatError, with `line`, if that line is not supported, or no message can have this value.
    """
    lines = _lines(stream)
    line = next(lines, None)
    while line is not None:
        begun, values, line = _descriptor(line, lines)
        pieces, length = [], 0
        while line is not None and line.kind in DATA:
            pieces.append(DATA[line.kind](line))
            length += len(pieces[-1])
            if length > MESSAGE_LENGTH_MAX:
                line.refuse(f"the message has more than {MESSAGE_LENGTH_MAX:,} bytes")
            line = next(lines, None)
        yield _message(begun, values, b"".join(pieces))


def _lines(stream: Readable | IO[bytes]) -> Iterator[_Line]:
    """The significant lines; the first line of the file is checked and skipped."""
    raw = _raw_lines(stream)
    ends_in_cr = None
    for number, text in raw:
        if ends_in_cr is None:
            if not text.strip(b" \t\r"):
                continue
            _check_header(_Line(number, "", text))
            ends_in_cr = text.endswith(b"\r")
            continue
        # A file from Windows ends every line in CR LF, which its C library reads as one line's end.
        line = text[:-1] if ends_in_cr and text.endswith(b"\r") else text
        if line and not line.startswith(b"*"):
            yield _Line(number, line[:1].decode("latin-1"), line)
    if ends_in_cr is None:
        raise FormatError("the file is empty: it must begin with '* QLOAD' or '* DMPMQMSG'", line=1)


def _raw_lines(stream: Readable | IO[bytes]) -> Iterator[tuple[int, bytes]]:
    parts, length, number = list[bytes](), 0, 0  # of a line whose end has not been read yet
    while True:
        data = stream.read(1024 * 1024)
        if not isinstance(data, bytes):
            raise bad_argument("stream", stream, "a binary stream that blocks: one whose reads return bytes")
        first, *others = data.split(b"\n")
        parts.append(first)
        length += len(first)
        if length > LINE_BYTES_MAX:
            raise FormatError(f"line {number + 1:,} is longer than {LINE_BYTES_MAX:,} bytes", line=number + 1)
        if others:
            others.insert(0, b"".join(parts))
            rest = others.pop()
            for number, line in enumerate(others, number + 1):  # noqa: B020 - it counts on
                yield number, line
            parts, length = [rest], len(rest)
        if not data:
            break
    if length:
        yield number + 1, b"".join(parts)


def _check_header(line: _Line) -> None:
    if line.text.startswith(b"AMQSBCG0"):
        line.refuse("this is the output of amqsbcg, which is not supported: unload the queue with dmpmqmsg")
    if not line.text.startswith(HEADERS):
        line.refuse(
            f"the file must begin with '* QLOAD' or '* DMPMQMSG', not {_shown(line.text)}: "
            "without that line (option -dH) the tool does not load it either"
        )


def _descriptor(line: _Line, lines: Iterator[_Line]) -> tuple[_Line, dict[str, tuple[_Line, Any]], _Line | None]:
    """The attribute lines of a message: the first one, the values by code, and the line after them."""
    begun, values = line, dict[str, tuple[_Line, Any]]()
    following: _Line | None = line
    if line.kind == "N":
        if line.text.strip(b" ") != b"N":
            line.refuse(f"N, no descriptor, must be alone on its line, not {_shown(line.text)}")
        following = next(lines, None)
    elif line.kind != "A":
        line.refuse(f"a message must begin with an attribute (A) or with N, not with {_shown(line.text)}")
    while following is not None and following.kind == "A":
        code, value = _attribute(following)
        if code == FIRST and (code in values or (values and begun.kind == "N")):
            break  # it belongs to the next message: this one has no data
        if code in values:
            following.refuse(f"{code} is given twice")
        if value is not None:
            values[code] = (following, value)
        following = next(lines, None)
    return begun, values, following


def _attribute(line: _Line) -> tuple[str, Any]:
    """The code and the value of an attribute line; without a value the field keeps its default."""
    code, text = line.text[2:5].decode("latin-1"), line.text[6:]
    if line.text[1:2] != b" " or line.text[5:6] not in (b"", b" ") or (code not in ATTRIBUTES and code not in OTHERS):
        known = ", ".join(sorted((*ATTRIBUTES, *OTHERS)))
        line.refuse(f"an attribute must be 'A', a code and a value; codes are {known}, not {_shown(line.text)}")
    if not text:
        return code, None
    try:
        if code in ATTRIBUTES:
            return code, ATTRIBUTES[code].read(text)
        return code, _integer(text) if code == "VER" else _ascii(text)
    except ValueError as wrong:
        line.refuse(f"{code}: {wrong}")


def _message(begun: _Line, values: dict[str, tuple[_Line, Any]], body: bytes) -> Message:
    _check_version(values)
    fields: dict[str, Any] = {"expiry": math.inf}
    where: dict[str, _Line] = {}
    for code, (line, value) in values.items():
        if code in ATTRIBUTES:
            field = ATTRIBUTES[code].field
            if field in where:
                line.refuse(f"{code}: the field is given twice, in characters and in hexadecimal")
            fields[field], where[field] = value, line
    fields["put_at"] = _put_at(values)
    backouts = fields.pop("backout_count", 0)
    if backouts < 0:
        where["backout_count"].refuse(f"BOC: must be an integer from 0, not {backouts}")
    try:
        return Message(body, **fields).with_values(backout_count=backouts)
    except InorderError as wrong:
        line = where.get(str(wrong.data.get("argument")), begun)
        raise FormatError(f"line {line.number:,}: {wrong.args[0]}", line=line.number, reason=wrong.reason) from wrong


def _check_version(values: Mapping[str, tuple[_Line, Any]]) -> None:
    if "VER" not in values:
        return
    line, version = values["VER"]
    if version not in (1, 2):
        line.refuse(f"VER: the version of the descriptor must be 1 or 2, not {version}")
    for code in DEPENDENT if version == 1 else ():
        if code in values:
            values[code][0].refuse(f"{code}: a descriptor of version 1 does not have it")


def _put_at(values: Mapping[str, tuple[_Line, Any]]) -> float:
    """PutDate and PutTime, YYYYMMDD and HHMMSSTH in UTC, as seconds since 1970; 0 if both are missing."""
    date, time = (values[code][1] if code in values else "" for code in ("PTD", "PTT"))
    if not date and not time:
        return 0.0
    line = values["PTD" if "PTD" in values else "PTT"][0]
    if not (re.fullmatch("[0-9]{8}", date) and re.fullmatch("[0-9]{8}", time)):
        line.refuse(f"PTD and PTT: YYYYMMDD and HHMMSSTH are needed, not {date!r} and {time!r}")
    year, month, day, hour, minute, second, hundredths = (
        *(int(date[:4]), int(date[4:6]), int(date[6:])),
        *(int(time[at : at + 2]) for at in (0, 2, 4, 6)),
    )
    try:
        seconds = timegm((year, month, day, hour, minute, second))
    except ValueError:
        seconds = -1
    if hour > 23 or minute > 59 or second > 59 or seconds < 0:
        line.refuse(f"PTD and PTT: must be a time from 1970 on, not {date} {time}")
    return seconds + hundredths / 100


# ---- data lines


_HEX_DATA: Final = re.compile(rb"X *((?:[0-9A-Fa-f]{2})*)(?: +<.*>)? *", re.DOTALL)


def _hex_data(line: _Line) -> bytes:
    if line.text[1:2] == b" ":
        with contextlib.suppress(binascii.Error):
            return binascii.unhexlify(line.text[2:])  # strict, and right for most lines
    found = _HEX_DATA.fullmatch(line.text)
    if found is None:
        line.refuse(f"X needs pairs of hexadecimal digits, then at most a column <...>, not {_shown(line.text)}")
    return bytes.fromhex(found[1].decode("ascii"))


def _string_data(line: _Line) -> bytes:
    text = line.text[1:].strip(b" ")
    if not text:
        return b""
    found = re.fullmatch(rb'"((?:[^"~]|~["~])*)"', text, re.DOTALL)
    if found is None:
        line.refuse(
            'S needs characters in quotes, with ~" and ~~ for " and ~. Without quotes the tool reads something, '
            f"but no document says how it treats the last character: {_shown(line.text)}",
        )
    return re.sub(rb"~(.)", rb"\1", found[1], flags=re.DOTALL)


def _text_data(line: _Line) -> bytes:
    if line.text[1:2] != b" ":
        line.refuse(f"T must be followed by a blank and the text, not {_shown(line.text)}")
    return line.text[2:] + b"\n"


DATA: Final[Mapping[str, Callable[[_Line], bytes]]] = {"X": _hex_data, "S": _string_data, "T": _text_data}


def _shown(text: bytes) -> str:
    return repr(text[:40])[1:] + ("..." if len(text) > 40 else "")


# ---- writing


def write(
    messages: Iterable[Message],
    stream: IO[bytes],
    *,
    data: Literal["hex", "string"] = "hex",
    width: int = WIDTH,
    leave_out_properties: bool = False,
    goes_on: bool = False,
) -> int:
    """Writes messages to a binary stream, in a form that `parse` reads back; returns how many.

    The format cannot store the unique id, the token and the place of a message. It truncates the put time to hundredths
    of a second and the expiry to tenths; everything else is read back unchanged.

    Args:
        messages: messages that were got or browsed.
        data: "hex": X lines, the tool's default; "string": S lines for data in printable ASCII.
        width: bytes of data on an X line, 10 to 1,000,000; S lines have twice as many characters.
        leave_out_properties: True writes messages without their properties, which the format cannot store.
        goes_on: whether the beginning of the file has already been written.

    Raises ArgumentError; FormatError if a message has something that the format cannot store: a delivery delay, a
    transmission, properties (unless they may be left out), an expiry of None, a truncated body, a text that is not
    ASCII. The messages before it have been written.
    """
    Choice(("hex", "string")).check("data", data)
    Integer(10, 1_000_000, what="a number of bytes").check("width", width)
    check_switch("leave_out_properties", leave_out_properties)
    check_switch("goes_on", goes_on)
    if not goes_on:
        write_whole(stream, b"* QLOAD file, written by inorder\n\n")
    count = 0
    for message in messages:
        count += 1
        if not isinstance(message, Message):
            raise bad_argument("messages", message, "messages, each a Message")
        if message.properties and not leave_out_properties:
            raise _unwritable(count, "properties", "the format cannot store them: give leave_out_properties=True")
        for name in WITHOUT_CODE:
            if (value := getattr(message, name)) != GIVEN[name].default:
                raise _unwritable(count, name, f"the format cannot store it, here {value!r}")
        body = message.body
        descriptor = (f"A {code} {value}\n".encode("ascii") for code, value in _values(message, count))
        lines = _hex_lines(body, width) if data == "hex" or not body else _string_lines(body, width)
        write_whole(stream, b"".join((*descriptor, *lines, b"\n")))
    return count


def _values(message: Message, count: int) -> list[tuple[str, str]]:
    if message.length != len(message.body):
        raise _unwritable(count, "body", f"{len(message.body):,} of {message.length:,} bytes are present")
    date, time = _date_and_time(message.put_at)
    found = [("VER", "2")]
    for code in WRITTEN:
        attribute = ATTRIBUTES[code]
        try:
            found.append((code, attribute.write(getattr(message, attribute.field))))
        except ValueError as wrong:
            raise _unwritable(count, attribute.field, str(wrong)) from None
        if code == "PAN":
            found += [("PTD", date), ("PTT", time)]
    return found


def _unwritable(count: int, field: str, why: str) -> FormatError:
    return FormatError(f"message {count:,}, {field}: {why}", message=count, field=field)


def _date_and_time(put_at: float) -> tuple[str, str]:
    if not put_at:
        return " " * 8, " " * 8
    hundredths = math.floor(put_at * 100 + 1e-3)
    at = Message(put_at=float(hundredths // 100))
    return at.put_date, f"{at.put_time[:6]}{hundredths % 100:02d}"


def _hex_lines(body: bytes, width: int) -> Iterator[bytes]:
    for at in range(0, max(1, len(body)), width):
        yield b"X " + body[at : at + width].hex().upper().encode("ascii") + b"\n"


_RUN: Final = re.compile(rb"[ -~]+|[^ -~]+")


def _string_lines(body: bytes, width: int) -> Iterator[bytes]:
    for run in _RUN.finditer(body):
        piece = run[0]
        if not 0x20 <= piece[0] <= 0x7E:
            yield from _hex_lines(piece, width)
            continue
        for at in range(0, len(piece), 2 * width):
            yield b'S "' + re.sub(rb'(["~])', rb"~\1", piece[at : at + 2 * width]) + b'"\n'
