"""The properties in an MQRFH2, the header in which MQ carries them at the front of the data.

The header has 36 bytes, then folders: for each a length, and XML such as `<usr><weight dt='i4'>5</weight></usr>`. The
properties are in the folders that IBM defines for them, and in those with `content='properties'`. A property of `usr`
has its own name here, `mcd.Type` is `JMSType`, and any other has its folder in front: `jms.Dst`. Attributes other than
the data type are not kept. All other folders stay in the body.

Source: the pages about MQRFH2 in IBM MQ's reference, "NameValueData" and "Mapping property data types".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from xml.parsers import expat

from ..errors import ArgumentError
from ..model.message import Message
from ..model.properties import Properties, PropertyValue

FORMAT: Final = "MQHRF2"
IDENTIFIER, VERSION, FIXED_LENGTH = b"RFH ", 2, 36
REVERSED: Final = 2  # of the four bits of an encoding that are about integers: little-endian
UTF_8: Final = 1208
UTF_16: Final = (1200, 13488, 17584)
FOLDERS: Final = frozenset("usr jms mcd mq_usr sib sib_context sib_usr ibm mq mqema mqext mqps mq_svc mqtt".split())
WITHOUT_FOLDER: Final = "usr."
SYNONYMS: Final[Mapping[str, str]] = {"mcd.Type": "JMSType"}


def _boolean(text: str) -> bool:
    return {"1": True, "true": True, "0": False, "false": False}[text.strip().lower()]


TYPES: Final[Mapping[str, Callable[[str], PropertyValue]]] = {
    **dict.fromkeys(("", "string", "char"), str),
    "boolean": _boolean,
    "bin.hex": bytes.fromhex,
    **dict.fromkeys(("int", "i1", "i2", "i4", "i8"), int),
    **dict.fromkeys(("r4", "r8"), float),
}


class _Malformed(ValueError):
    """The header is not a valid MQRFH2."""


class _Header(NamedTuple):
    """A header: its fixed part, and the text of each folder as bytes."""

    order: str
    encoding: int
    character_set: int
    format: str
    fixed: bytes
    name_value_character_set: int
    length: int
    folders: tuple[bytes, ...]


@dataclass(slots=True)
class _Element:
    """An element that is open while a folder is parsed."""

    name: str
    type: str
    is_nil: bool
    text: list[str] = field(default_factory=list)
    has_elements: bool = False


def unfolded(message: Message) -> Message:
    """Returns a message with the properties of the headers at the front of its body as properties.

    The body, format, encoding and character set are then those behind the header, or, if it has other folders too, the
    header with only those. A message without an MQRFH2, or with one that is malformed, or with a property that cannot
    exist here (see `Properties`), is returned unchanged.
    """
    found: dict[str, PropertyValue] = dict(message.properties)
    left = message
    try:
        while left.format == FORMAT:
            header = _header(left)
            kept = [folder for folder in header.folders if not _take(folder, header, found)]
            if kept:
                if len(kept) < len(header.folders):
                    left = left.replace(body=_with_folders(header, kept) + left.body[header.length :])
                break
            left = left.replace(
                body=left.body[header.length :],
                format=header.format,
                encoding=header.encoding,
                coded_character_set_id=header.character_set
                if header.character_set > 0
                else left.coded_character_set_id,
            )
        return message if left is message else left.replace(properties=Properties(found))
    except (_Malformed, ArgumentError):
        return message


def _header(message: Message) -> _Header:
    body, order = message.body, "<" if message.encoding & 0xF == REVERSED else ">"
    if len(body) < FIXED_LENGTH or body[:4] != IDENTIFIER:
        raise _Malformed
    version, length, encoding, character_set = struct.unpack_from(f"{order}4i", body, 4)
    name_value_character_set = struct.unpack_from(f"{order}i", body, 32)[0]
    if version != VERSION or not FIXED_LENGTH <= length <= len(body):
        raise _Malformed
    folders, at = [], FIXED_LENGTH
    while at < length:
        size = struct.unpack_from(f"{order}i", body, at)[0] if at + 4 <= length else -1
        if size < 0 or at + 4 + size > length:
            raise _Malformed
        folders.append(body[at + 4 : at + 4 + size])
        at += 4 + size
    format = body[20:28].decode("ascii", "replace").rstrip(" \0")
    return _Header(
        order, encoding, character_set, format, body[:FIXED_LENGTH], name_value_character_set, length, tuple(folders)
    )


def _with_folders(header: _Header, folders: list[bytes]) -> bytes:
    """The header with these folders alone."""
    data = b"".join(struct.pack(f"{header.order}i", len(one)) + one for one in folders)
    length = struct.pack(f"{header.order}i", FIXED_LENGTH + len(data))
    return header.fixed[:8] + length + header.fixed[12:] + data


def _take(folder: bytes, header: _Header, found: dict[str, PropertyValue]) -> bool:
    """Adds the properties of a folder; returns whether it is one of properties."""
    return _Folder(found).parse(_text(folder, header))


def _text(folder: bytes, header: _Header) -> str:
    utf_16 = "utf-16-le" if header.order == "<" else "utf-16-be"
    character_set = "utf-8" if header.name_value_character_set == UTF_8 else utf_16
    if header.name_value_character_set not in (UTF_8, *UTF_16):
        raise _Malformed
    try:
        return folder.decode(character_set).strip(" \0")
    except UnicodeDecodeError as error:
        raise _Malformed from error


class _Folder:
    """Parses the XML of one folder."""

    def __init__(self, found: dict[str, PropertyValue]) -> None:
        self._found, self._open, self._has_properties = found, list[_Element](), False

    def parse(self, text: str) -> bool:
        """Adds its properties. Returns False, and adds nothing, if it is a folder of other values."""
        parser = expat.ParserCreate()
        parser.StartElementHandler, parser.EndElementHandler = self._begin, self._end
        parser.CharacterDataHandler = self._add
        parser.StartDoctypeDeclHandler = self._refuse
        try:
            parser.Parse(text, True)
        except expat.ExpatError as error:
            raise _Malformed from error
        return self._has_properties

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        if not self._open:
            self._has_properties = name in FOLDERS or attributes.get("content") == "properties"
        else:
            self._open[-1].has_elements = True
        self._open.append(_Element(name, attributes.get("dt", ""), attributes.get("xsi:nil") == "true"))

    def _add(self, text: str) -> None:
        self._open[-1].text.append(text)

    def _end(self, _: str) -> None:
        path = ".".join(one.name for one in self._open)
        element = self._open.pop()
        text = "".join(element.text)
        if not self._open or not self._has_properties or (element.has_elements and not text.strip()):
            return
        name = SYNONYMS.get(path, path.removeprefix(WITHOUT_FOLDER))
        if name in self._found or element.type not in TYPES:
            raise _Malformed
        try:
            self._found[name] = None if element.is_nil else TYPES[element.type](text)
        except (KeyError, ValueError) as error:
            raise _Malformed from error

    def _refuse(self, *_: object) -> None:
        raise _Malformed


__all__ = ["unfolded"]
