"""The properties in an MQRFH2, the header in which MQ carries them at the front of the data; read and written.

The header has 36 bytes, then folders: for each a length, and XML such as `<usr><weight dt='i4'>5</weight></usr>`. The
properties are in the folders that IBM defines for them, and in those with `content='properties'`. A property of `usr`
has its own name here, `mcd.Type` is `JMSType`, and any other has its folder in front: `jms.Dst`. Attributes other than
the data type are not kept. All other folders stay in the body.

A header that is written has integers with 32 or 64 bits, and a property with dots in the folder that its name begins
with.

Source: the pages about MQRFH2 in IBM MQ's reference, "NameValueData" and "Mapping property data types".
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, Final, NamedTuple
from xml.parsers import expat

from ..errors import ArgumentError
from ..model.message import Message
from ..model.properties import NO_PROPERTIES, Properties, PropertyValue

FORMAT: Final = "MQHRF2"
SCHEMA_INSTANCE: Final = "http://www.w3.org/2001/XMLSchema-instance"  # programs read folders with parsers of XML
IDENTIFIER, VERSION, FIXED_LENGTH = b"RFH ", 2, 36
REVERSED: Final = 2  # of the four bits of an encoding that are about integers: little-endian
UTF_8: Final = 1208
UTF_8S: Final = (UTF_8, 0)  # bindings for Python leave it at 0, the queue manager's own
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


class MalformedHeader(ValueError):
    """The header is not a valid MQRFH2.

    Attributes:
        in_folder: whether the fault is in the text of a folder.
    """

    def __init__(self, *, in_folder: bool = False) -> None:
        super().__init__("not a valid MQRFH2")
        self.in_folder = in_folder


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

    As `parsed`, but a message with an MQRFH2 that is malformed, or with a property that cannot exist here (see
    `Properties`), is returned unchanged.
    """
    try:
        return parsed(message)
    except (MalformedHeader, ArgumentError):
        return message


def parsed(message: Message) -> Message:
    """Returns a message with the properties of the headers at the front of its body as properties.

    The body, format, encoding and character set are then those after the header, or, if it has other folders too, the
    header with only those. A message without an MQRFH2 is returned unchanged.

    Raises:
        MalformedHeader: if a header is malformed, or has a property twice.
        ArgumentError: for a property that cannot exist here, as `Properties`.
    """
    found: dict[str, PropertyValue] = dict(message.properties)
    left = message
    while left.format == FORMAT:
        header = _header(left)
        kept = [folder for folder in header.folders if not _Folder(found).parse(_text(folder, header))]
        if kept:
            if len(kept) < len(header.folders):
                left = left.replace(body=_with_folders(header, kept) + left.body[header.length :])
            break
        left = left.replace(
            body=left.body[header.length :],
            format=header.format,
            encoding=header.encoding,
            coded_character_set_id=header.character_set if header.character_set > 0 else left.coded_character_set_id,
        )
    return message if left is message else left.replace(properties=Properties(found))


def _header(message: Message) -> _Header:
    body, order = message.body, "<" if message.encoding & 0xF == REVERSED else ">"
    if len(body) < FIXED_LENGTH or body[:4] != IDENTIFIER:
        raise MalformedHeader
    version, length, encoding, character_set = struct.unpack_from(f"{order}4i", body, 4)
    name_value_character_set = struct.unpack_from(f"{order}i", body, 32)[0]
    if version != VERSION or not FIXED_LENGTH <= length <= len(body):
        raise MalformedHeader
    folders, at = [], FIXED_LENGTH
    while at < length:
        size = struct.unpack_from(f"{order}i", body, at)[0] if at + 4 <= length else -1
        if size < 0 or at + 4 + size > length:
            raise MalformedHeader
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


def _text(folder: bytes, header: _Header) -> str:
    utf_16 = "utf-16-le" if header.order == "<" else "utf-16-be"
    character_set = "utf-8" if header.name_value_character_set in UTF_8S else utf_16
    if header.name_value_character_set not in (*UTF_8S, *UTF_16):
        raise MalformedHeader
    try:
        return folder.decode(character_set).strip(" \0")
    except UnicodeDecodeError as error:
        raise MalformedHeader(in_folder=True) from error


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
            raise MalformedHeader(in_folder=True) from error
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
            raise MalformedHeader(in_folder=True)
        try:
            self._found[name] = None if element.is_nil else TYPES[element.type](text)
        except (KeyError, ValueError) as error:
            raise MalformedHeader(in_folder=True) from error

    def _refuse(self, *_: object) -> None:
        raise MalformedHeader(in_folder=True)


# ---- writing


def folded(message: Message, *, is_new: bool = False) -> Message:
    """Returns a message with its properties in an MQRFH2 at the front of its body, the opposite of `unfolded`.

    If the body begins with a valid MQRFH2, the properties are added to it. A new one is in this machine's encoding and
    in UTF-8. Control characters, which XML lacks, become question marks. A message without properties is returned
    unchanged.

    Args:
        is_new: whether to make a new header also if the body begins with one.
    """
    if not message.properties:
        return message
    texts = list(_folders(message.properties))
    try:
        header = _header(message) if message.format == FORMAT and not is_new else None
    except MalformedHeader:
        header = None
    if header is not None and header.name_value_character_set in UTF_8S:
        body = _with_folders(header, [*map(_padded, texts), *header.folders]) + message.body[header.length :]
        return message.replace(body=body, properties=NO_PROPERTIES)
    format, character_set = message.format.encode("ascii", "replace").ljust(8), message.coded_character_set_id
    fixed = IDENTIFIER + struct.pack(
        "=4i8s2i", VERSION, FIXED_LENGTH, message.encoding, character_set, format, 0, UTF_8
    )
    made = _Header("=", 0, 0, "", fixed, UTF_8, FIXED_LENGTH, ())
    return message.replace(
        body=_with_folders(made, list(map(_padded, texts))) + message.body,
        format=FORMAT,
        encoding=NATIVE,
        coded_character_set_id=UTF_8,
        properties=NO_PROPERTIES,
    )


def _padded(text: str) -> bytes:
    data = text.encode()
    return data + b" " * (-len(data) % 4)


def _folders(properties: Mapping[str, PropertyValue]) -> Iterator[str]:
    """The text of each folder; `mcd` and `jms` first, as MQ has them."""
    folders: dict[str, dict[str, Any]] = {"mcd": {}, "jms": {}, "usr": {}}
    for name, value in properties.items():
        path = FULL_NAMES.get(name, name).split(".")
        parts = folders.setdefault("usr" if len(path) == 1 else path.pop(0), {})
        for part in path[:-1]:
            parts = parts.setdefault(part, {})
        parts[path[-1]] = _element(path[-1], value)
    for name, parts in folders.items():
        if parts:
            content = "" if name in FOLDERS else " content='properties'"
            yield f"<{name}{content}>{_nested(parts)}</{name}>"


def _nested(parts: Mapping[str, Any]) -> str:
    return "".join(one if isinstance(one, str) else f"<{name}>{_nested(one)}</{name}>" for name, one in parts.items())


def _element(name: str, value: PropertyValue) -> str:
    if value is None:
        return f"<{name} xmlns:xsi='{SCHEMA_INSTANCE}' xsi:nil='true'></{name}>"
    kind, text = _typed(value)
    return f"<{name} dt='{kind}'>{text}</{name}>" if kind else f"<{name}>{text}</{name}>"


def _typed(value: PropertyValue) -> tuple[str, str]:
    """The type and the text of a value; no type is a text."""
    if isinstance(value, str):
        return "", NO_XML.sub("?", escape(value, quote=False).replace("\r", "&#13;"))
    if isinstance(value, bytes):
        return "bin.hex", value.hex()
    if isinstance(value, bool):
        return "boolean", str(int(value))
    if isinstance(value, float):
        return "r8", repr(value)
    return "i4" if value in INT_32 else "i8", str(value)


NATIVE: Final = 546 if sys.byteorder == "little" else 273
FULL_NAMES: Final[Mapping[str, str]] = {name: path for path, name in SYNONYMS.items()}
INT_32: Final = range(-(2**31), 2**31)
NO_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
