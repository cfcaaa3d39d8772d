"""Conversion of the data of a message, for MQGMO_CONVERT.

MQSTR is text. A chain of headers (MQRFH2, MQDLH, MQXQH, MQMDE) is converted header by header: numbers by the encoding,
characters by the character set; each header describes the next part. All other formats are the program's own. A part
that cannot be converted stays as it is, and the reason is a warning (CC 1):

==== ==============================================================================
2110 the format is blank, unknown, or the data does not have it
2111 the character set of the data is unknown, or not one for headers
2112 the numbers of a header are in an encoding that is neither normal nor reversed
2115 the wanted character set is unknown, or not one for headers
2116 the wanted encoding is neither normal nor reversed
2119 the data is not text in its character set
2190 a name in a header becomes too long
2272 the headers were converted, a later part was not; the last header describes it
==== ==============================================================================

Characters that the wanted character set lacks become question marks. Rules: M-12 of *mqi*, R3.58.
"""

from __future__ import annotations

import codecs
import contextlib
import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from . import constants as mq
from .layouts import layout
from .refusals import Refused

NORMAL, REVERSED, INTEGERS = 1, 2, 15  # MQENC_INTEGER_NORMAL, _REVERSED, _MASK
UTF_8: Final = 1208
UTF_16: Final = frozenset({1200, 1201, 13488, 17584, 21680})
INHERIT: Final = -2
CHARACTER_BYTES_MAX: Final = 4
OF_PROGRAM: Final = -3  # MQCCSI_APPL: programs in Python and Node, and C ones on today's systems, have UTF-8

# CCSIDs that are not the number of one of Python's code pages.
CODECS: Final[Mapping[int, str]] = {
    **{OF_PROGRAM: "utf-8", UTF_8: "utf-8", 367: "ascii", 813: "iso8859-7", 819: "latin-1", 878: "koi8-r"},
    **{912: "iso8859-2", 913: "iso8859-3", 914: "iso8859-4", 915: "iso8859-5", 916: "iso8859-8", 920: "iso8859-9"},
    **{921: "iso8859-13", 923: "iso8859-15", 1089: "iso8859-6", 1168: "koi8-u", 1275: "mac-roman", 5348: "cp1252"},
    **{943: "cp932", 954: "euc-jp", 970: "euc-kr", 1363: "cp949", 1386: "gbk", 1392: "gb18030", 5050: "euc-jp"},
    **{5488: "gb18030", 33722: "euc-jp"},
}
# EBCDIC pages that Python lacks: the one without the euro sign, the one with it, and where both differ from page 500.
LATIN_EBCDIC: Final[tuple[tuple[int, int, str, str], ...]] = (
    (1047, 1047, "4a4f5aadb0babbbd", "¢|![¬Ý¨]"),
    (273, 1141, "434a595a636a7c9fa1b5c0ccd0dce0ecfc", "{Ä~Ü[ö§¤ß@ä¦ü}Ö\\]"),
    (277, 1142, "474a5a5b676a707b7c809c9e9fa1c0d0dc", "}#¤Å$ø¦ÆØ@{[]üæå~"),
    (278, 1143, "43474a515a5b63676a71797b7c9fa1b5c0ccd0dce0ec", "{}§`¤Å#$ö\\éÄÖ]ü[ä¦å~É@"),
    (280, 1144, "44484a5154585a6a797b7c909fa1b1b5c0cdd0dde0", "{\\°]}~éòù£§[¤ì#@à¦è`ç"),
    (284, 1145, "494f5f696a7b9fa1babbbd", "¦|¬#ñÑ¤¨^!~"),
    (285, 1146, "4a4f5a5b5f9fa1b1babbbc", "$|!£¬¤¯[^]~"),
    (297, 1147, "44484a51545a6a797b7c909fa0a1b1b5bdc0d0dde0", "@\\°{}§ùµ£à[¤`¨#]~éè¦ç"),
    (500, 1148, "9f", "¤"),
    (871, 1149, "4a5a5f797c8c8e9c9e9fa1acaebec0ccd0e0ec", "ÞÆÖðÐ`{}]¤ö@[\\þ~æ´^"),  # noqa: RUF001
)
HEADERS: Final[Mapping[bytes, tuple[str, ...]]] = {
    mq.MQFMT_DEAD_LETTER_HEADER: ("DLH",),
    mq.MQFMT_RF_HEADER_2: ("RFH2",),
    mq.MQFMT_MD_EXTENSION: ("MDE",),
    mq.MQFMT_XMIT_Q_HEADER: ("XQH", "MD"),  # the descriptor is its last field
    mq.MQFMT_TRIGGER: ("TM",),
}


class CharacterSet(NamedTuple):
    """Decodes and encodes the text of a CCSID; `encode` writes a question mark for a character that it lacks."""

    decode: Callable[[bytes], str]
    encode: Callable[[str], bytes]


class Data(NamedTuple):
    """A part of a message and its description, as a descriptor or a header gives it."""

    body: bytes
    format: bytes
    encoding: int
    ccsid: int


@cache
def character_set(ccsid: int, encoding: int = mq.MQENC_NATIVE) -> CharacterSet | None:
    """The character set with this CCSID, or None if we do not know it; `encoding` is the byte order of UTF-16."""
    if ccsid in UTF_16:
        return _of_codec("utf-16-le" if encoding & INTEGERS == REVERSED else "utf-16-be")
    if table := _ebcdic().get(ccsid):
        lookup = codecs.charmap_build(table)
        return CharacterSet(
            lambda data: codecs.charmap_decode(data, "strict", table)[0],
            lambda text: codecs.charmap_encode(text, "replace", lookup)[0],
        )
    name = CODECS.get(ccsid, f"cp{ccsid:03d}")
    try:
        codecs.lookup(name)
    except LookupError:
        return None
    return _of_codec(name)


def _of_codec(name: str) -> CharacterSet:
    return CharacterSet(lambda data: data.decode(name), lambda text: text.encode(name, "replace"))


UNICODE: Final = _of_codec("utf-8")


@cache
def _ebcdic() -> Mapping[int, str]:
    found = {}
    for without, euro, places, characters in LATIN_EBCDIC:
        table = list(bytes(range(256)).decode("cp500"))
        for at, character in zip(bytes.fromhex(places), characters, strict=True):
            table[at] = character
        found[euro] = "".join(table).replace("¤", "€")
        found[without] = "".join(table)
    return found


def converted(data: Data, encoding: int, ccsid: int) -> tuple[Data, int]:
    """The data in another encoding and character set, and the reason of the warning, 0 if there is none.

    Args:
        data: with concrete character sets; not MQCCSI_Q_MGR.
        encoding: MQENC bits.
        ccsid: the wanted one.
    """
    try:
        return _converted(data, encoding, ccsid)
    except Refused as refused:
        return data, refused.reason


def converted_beginning(data: Data, encoding: int, ccsid: int, room: int) -> Data:
    """As `converted`, of as much of the data as fits into `room` bytes before and after the conversion.

    A character or header that is cut is not converted; data that cannot be converted are only cut.
    """
    beginning = data._replace(body=data.body[:room])
    if (data.encoding, data.ccsid) == (encoding, ccsid):
        return beginning
    source, target = character_set(data.ccsid, data.encoding), character_set(ccsid, encoding)
    is_text = data.format == mq.MQFMT_STRING and source is not None and target is not None
    if is_text and source is not None:
        beginning = beginning._replace(body=_whole(beginning.body, source))
    made, _ = converted(beginning, encoding, ccsid)
    if len(made.body) > room:
        made = made._replace(body=made.body[:room])
        if is_text and target is not None:
            made = made._replace(body=_whole(made.body, target))
    return made


def _whole(text: bytes, characters: CharacterSet) -> bytes:
    """The text without a part of a character at its end."""
    for end in range(len(text), max(-1, len(text) - CHARACTER_BYTES_MAX), -1):
        with contextlib.suppress(UnicodeDecodeError):
            characters.decode(text[:end])
            return text[:end]
    return text


def _converted(data: Data, encoding: int, ccsid: int) -> tuple[Data, int]:
    if data.format in HEADERS:
        return _header(data, encoding, ccsid)
    if (data.encoding, data.ccsid) == (encoding, ccsid) or not data.body:
        return data._replace(encoding=encoding, ccsid=ccsid), 0
    if data.format != mq.MQFMT_STRING:
        raise Refused(mq.MQRC_FORMAT_ERROR)
    source, target = _character_sets(data, encoding, ccsid)
    if data.ccsid == ccsid and ccsid not in UTF_16:
        return data._replace(encoding=encoding), 0
    return data._replace(body=target.encode(_decoded(data.body, source)), encoding=encoding, ccsid=ccsid), 0


def _decoded(part: bytes, source: CharacterSet) -> str:
    try:
        return source.decode(part)
    except UnicodeDecodeError:
        raise Refused(mq.MQRC_NOT_CONVERTED) from None


def _character_sets(data: Data, encoding: int, ccsid: int) -> tuple[CharacterSet, CharacterSet]:
    source, target = character_set(data.ccsid, data.encoding), character_set(ccsid, encoding)
    if source is None:
        raise Refused(mq.MQRC_SOURCE_CCSID_ERROR)
    if target is None:
        raise Refused(mq.MQRC_TARGET_CCSID_ERROR)
    return source, target


# ---- headers


class _Conversion:
    """The conversion of one header: the orders of its numbers, and its character sets."""

    def __init__(self, data: Data, encoding: int, ccsid: int) -> None:
        orders = {NORMAL: ">", REVERSED: "<"}
        self.source = orders.get(data.encoding & INTEGERS, "")
        self.target = orders.get(encoding & INTEGERS, "")
        self.texts = _character_sets(data, encoding, ccsid)
        if not self.source:
            raise Refused(mq.MQRC_SOURCE_INTEGER_ENC_ERROR)
        if not self.target:
            raise Refused(mq.MQRC_TARGET_INTEGER_ENC_ERROR)
        if data.ccsid in UTF_16 or ccsid in UTF_16:  # the characters of headers have one byte each
            is_source = data.ccsid in UTF_16
            raise Refused(mq.MQRC_SOURCE_CCSID_ERROR if is_source else mq.MQRC_TARGET_CCSID_ERROR)

    def read(self, part: bytes) -> str:
        return _decoded(part, self.texts[0])

    def write(self, text: str, length: int) -> bytes:
        encode = self.texts[1].encode
        written = encode(text)
        if len(written) != length:
            written = encode(text.rstrip(" \0")).ljust(length, encode(" "))
        if len(written) > length:
            raise Refused(mq.MQRC_CONVERTED_STRING_TOO_BIG)
        return written


def _members(names: tuple[str, ...]) -> list[tuple[str, str]]:
    found = [(each.name, each.code) for each in layout(names[0]).members]
    if len(names) > 1:
        found = found[:-1] + [(each.name, each.code) for each in layout(names[1]).members if each.version <= 1]
    return found


def _format_of(codes: list[str]) -> str:
    return "".join(code if code == "i" else f"{code[:-1]}s" for code in codes)


def _header(data: Data, encoding: int, ccsid: int) -> tuple[Data, int]:
    conversion = _Conversion(data, encoding, ccsid)
    members = _members(HEADERS[data.format])
    shape = _format_of([code for _, code in members])
    fixed = struct.calcsize("=" + shape)
    if len(data.body) < fixed:
        raise Refused(mq.MQRC_FORMAT_ERROR)
    values: dict[str, Any] = {}
    for (name, code), value in zip(members, struct.unpack_from(conversion.source + shape, data.body), strict=True):
        is_text = code[-1] in "cs"
        # A descriptor in an MQXQH repeats these two names; the header's own need no look.
        values[f"{name} of MD" if name in values else name] = conversion.read(value) if is_text else value
    if values["StrucId"].rstrip(" \0") != layout(HEADERS[data.format][0]).identifier.decode().rstrip(" \0"):
        raise Refused(mq.MQRC_FORMAT_ERROR)
    more, length = _variable(data, conversion, values, fixed)
    tail, reason = data.body[length:], 0
    if "CodedCharSetId" in values:
        tail, reason = _described(data, values, (encoding, ccsid), tail)
    ready = [
        conversion.write(value, int(code[:-1])) if isinstance(value, str) else value
        for (_, code), value in zip(members, values.values(), strict=True)
    ]
    body = struct.pack(conversion.target + shape, *ready) + more + tail
    return Data(body, data.format, encoding, ccsid), reason


def _described(data: Data, values: dict[str, Any], wanted: tuple[int, int], tail: bytes) -> tuple[bytes, int]:
    """Converts the part after a header, and describes it in the header's values; returns it, and the warning."""
    stated = values["CodedCharSetId"]
    format = values["Format"].replace("\0", " ").ljust(8).encode("ascii", "replace")
    part = Data(tail, format, values["Encoding"], stated if stated > 0 else data.ccsid)
    try:
        part, reason = _converted(part, *wanted)
    except Refused:
        reason = mq.MQRC_PARTIALLY_CONVERTED
    keeps = stated <= 0 and part.ccsid == wanted[1]
    values.update(Encoding=part.encoding, CodedCharSetId=stated if keeps else part.ccsid)
    return part.body, reason


def _variable(data: Data, conversion: _Conversion, values: dict[str, Any], fixed: int) -> tuple[bytes, int]:
    """The folders of an MQRFH2 with their lengths in the wanted order, and where the header ends in the data."""
    if "NameValueCCSID" not in values:
        return b"", fixed
    length, at, folders = values["StrucLength"], fixed, []
    is_swapped = values["NameValueCCSID"] in UTF_16 and conversion.source != conversion.target
    while at + 4 <= length <= len(data.body):
        (size,) = struct.unpack_from(conversion.source + "i", data.body, at)
        folder = data.body[at + 4 : at + 4 + size] if size >= 0 else b""
        if len(folder) != size or at + 4 + size > length or (is_swapped and size % 2):
            break
        if is_swapped:
            folder = folder.decode("utf-16-be", "surrogatepass").encode("utf-16-le", "surrogatepass")
        folders.append(struct.pack(conversion.target + "i", size) + folder)
        at += 4 + size
    if at != length:
        raise Refused(mq.MQRC_FORMAT_ERROR)
    return b"".join(folders), length
