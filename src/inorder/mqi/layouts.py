"""MQ's structures as tables: the layout of each in memory, by version.

`layouts.txt` has them. A line with a name begins a structure; `wrong` is the reason code for a wrong identifier or
version. The lines below it have the fields that a version adds, as NAME:TYPE=DEFAULT, in the order of memory, with the
natural alignment of a 64-bit machine:

::

    i  a 32-bit integer        Ns  N characters, filled with NUL
    q  a 64-bit integer        Nc  N characters, filled with blanks
    P  a pointer               Nb  N bytes
                               V   an MQCHARV: a string of any length elsewhere in memory

Rules: M-1, M-11, section 3 of *mqi*.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from operator import attrgetter
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from . import constants

if TYPE_CHECKING:
    from typing_extensions import Buffer

NUL_TERMINATED: Final = -1  # MQVS_NULL_TERMINATED
CHARV: Final = "Piiii"  # the pointer and, as the last one, the character set


class LayoutError(Exception):
    """The bytes are not this structure, or are a version of it that does not exist; `reason` is MQ's code for it."""

    def __init__(self, reason: int, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class Charv(NamedTuple):
    """An MQCHARV: where a string of any length is, its size, and its coded character set."""

    Ptr: int = 0
    Offset: int = 0
    BufSize: int = 0
    Length: int = 0
    CCSID: int = -3  # MQCCSI_APPL


class StructureField(NamedTuple):
    """A field of a structure: `code` is its type in layouts.txt, `version` the first version that has it."""

    name: str
    code: str
    default: Any
    version: int


class Layout:
    """A structure.

    Attributes:
        name: MQ's name without MQ, as in "GMO".
        identifier: the four characters that it begins with; empty for MQCD, which has none.
        members: all fields, the identifier and the version first.
        structs: for each version its fields as a `struct.Struct`, without what fills up the end; an MQCHARV is five.
    """

    def __init__(self, name: str, identifier: bytes, wrong: int, members: list[StructureField]) -> None:
        self.name, self.identifier, self.wrong = name, identifier, wrong
        self.members = tuple(members)
        versions = range(members[-1].version + 1)
        first = min(each.version for each in members if each.version)
        self.structs: Mapping[int, struct.Struct] = MappingProxyType(
            {version: _struct([m.code for m in members if m.version <= version]) for version in versions[first:]}
        )
        self.oldest, self.newest = first, versions[-1]
        self._defaults = {each.name: each.default for each in members}
        self._getters = {v: attrgetter(*(each.name for each in members if each.version <= v)) for v in self.structs}
        self._strings = tuple(index for index, each in enumerate(members) if each.code == "V")
        self._version_at, self._version_as = (20, "i") if not identifier else (4, "4s" if name == "TMC2" else "i")

    def Values(self, *values: Any, **fields: Any) -> Any:  # noqa: N802 -- as a class
        """Values of its fields, as attributes under MQ's names: in their order or by name, the others by default."""
        return SimpleNamespace(**(self._defaults | dict(zip(self._defaults, values, strict=False)) | fields))

    def size(self, version: int | None = None) -> int:
        """The length in bytes of a version, of the newest one by default."""
        bare = self.structs[version or self.newest]
        return -(-bare.size // 8) * 8 if {"P", "q"} & set(bare.format) else bare.size

    def version(self, buffer: Buffer | None) -> int:
        """The version of the structure in `buffer`; None is none at all. Raises LayoutError."""
        if buffer is None:
            raise LayoutError(self.wrong, f"MQ{self.name} must be given")
        view = memoryview(buffer).cast("B")
        if self.identifier and view[:4] != self.identifier:
            raise LayoutError(self.wrong, f"MQ{self.name} must begin with {self.identifier!r}, not {bytes(view[:4])!r}")
        (version,) = struct.unpack_from(self._version_as, view, self._version_at)
        if self._version_as == "4s":
            version = int(version) if version.strip().isdigit() else 0
        if version not in self.structs:
            raise LayoutError(self.wrong, f"MQ{self.name} has version {version}: from {self.oldest} to {self.newest}")
        return int(version)

    def read(self, buffer: Buffer | None) -> Any:
        """The fields of the structure in `buffer`; those that its version does not have, with their defaults.

        Raises: LayoutError.
        """
        version = self.version(buffer)
        assert buffer is not None
        read: tuple[Any, ...] = self.structs[version].unpack_from(buffer)
        return self.Values(*(self._joined(read) if self._strings else read))

    def _joined(self, read: tuple[Any, ...]) -> list[Any]:
        parts = list(read)
        for index in self._strings:
            if index < len(parts):
                parts[index : index + 5] = [Charv(*parts[index : index + 5])]
        return parts

    def write(self, buffer: Buffer, values: Any) -> None:
        """Writes the fields that the version of the structure in `buffer` has; characters are as long as the field.

        Raises: LayoutError.
        """
        self._write(buffer, self.version(buffer), values)

    def _write(self, buffer: Buffer, version: int, values: Any) -> None:
        parts: Iterable[Any] = self._getters[version](values)
        if self._strings:
            parts = [one for part in parts for one in (part if isinstance(part, Charv) else (part,))]
        self.structs[version].pack_into(buffer, 0, *parts)

    def new(self, version: int | None = None, **fields: Any) -> bytearray:
        """A structure of this version, by default the newest, with defaults for the fields that are not given.

        Characters may be shorter than the field.
        """
        version = version or self.newest
        buffer = bytearray(self.size(version))
        blank = {each.name: int(each.code[:-1]) for each in self.members if each.code[-1] == "c"}
        fields |= {name: fields[name].ljust(length) for name, length in blank.items() if name in fields}
        stored = b"%4d" % version if self._version_as == "4s" else version
        self._write(buffer, version, self.Values(**{**fields, "Version": stored}))
        return buffer

    def __repr__(self) -> str:
        return f"<Layout MQ{self.name}, versions {self.oldest} to {self.newest}>"


def _struct(codes: list[str]) -> struct.Struct:
    body = "".join(CHARV if code == "V" else f"{code[:-1]}s" if code[-1] in "bcs" else code for code in codes)
    return struct.Struct("@" + body)


def _default(code: str, text: str) -> Any:
    if code == "V":
        return Charv()
    if code[-1] in "bcs":
        return text.encode().ljust(int(code[:-1]), b" " if code[-1] == "c" else b"\0")
    return int(text or 0)


def _layout(heading: str, lines: list[str]) -> Layout:
    name, *about = heading.split()
    of = dict(each.split("=") for each in about)
    identifier = of["StrucId"].ljust(4).encode() if "StrucId" in of else b""
    version = StructureField("Version", "4s" if name == "TMC2" else "i", 0, 0)
    members = [StructureField("StrucId", "4s", identifier, 0), version]
    if not identifier:
        members = [StructureField("ChannelName", "20s", bytes(20), 0), version]
    for line in lines:
        added, *fields = line.split()
        for each in fields:
            called, _, kind = each.partition(":")
            code, _, text = kind.partition("=")
            members.append(StructureField(called, code, _default(code, text), int(added)))
    newest = members[-1].version
    members[1] = version._replace(default=b"%4d" % newest if version.code == "4s" else newest)
    return Layout(name, identifier, getattr(constants, "MQRC_" + of["wrong"]), members)


@cache
def _texts() -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    name = ""
    for line in (files(__package__) / "layouts.txt").read_text(encoding="utf-8").splitlines():
        if line[0].isalpha():
            name = line.split()[0]
        found.setdefault(name, []).append(line)
    return found


@cache
def layout(name: str) -> Layout:
    """The structure with this name of MQ's, without MQ; `GMO` of this module is ``layout("GMO")``."""
    heading, *lines = _texts()[name]
    return _layout(heading, lines)


def names() -> tuple[str, ...]:
    """The names of all structures."""
    return tuple(_texts())


def __getattr__(name: str) -> Layout:
    if name not in _texts():
        raise AttributeError(f"inorder.mqi.layouts has no {name}")
    return layout(name)


# ---- strings elsewhere in memory


def text_at(string: Charv, base: int, longest: int, wrong: int) -> bytes:
    """The bytes of an MQCHARV, which may be empty.

    Args:
        base: the address of its structure, which its offset counts from.
        longest: the greatest length in bytes that it may have.
        wrong: the reason for another length.

    Raises: LayoutError.
    """
    if string.Length != NUL_TERMINATED and not 0 <= string.Length <= longest:
        raise LayoutError(wrong, f"the length of a string must be from 0 to {longest}, or -1, not {string.Length}")
    address = string.Ptr or (base + string.Offset if string.Offset else 0)
    if not address or not string.Length:
        return b""
    if string.Length != NUL_TERMINATED:
        return ctypes.string_at(address, string.Length)
    return ctypes.string_at(address)


def put_text(string: Charv, text: bytes, base: int = 0) -> Charv:
    """Writes `text` to the buffer of an MQCHARV, as much as fits, and returns the MQCHARV with the whole length."""
    address = string.Ptr or (base + string.Offset if string.Offset else 0)
    if address and string.BufSize > 0:
        ctypes.memmove(address, text, min(len(text), string.BufSize))
    return string._replace(Length=len(text))
