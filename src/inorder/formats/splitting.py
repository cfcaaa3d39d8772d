r"""Split rules: how to cut the bytes of a file into records, which in order are the same bytes.

No byte is ever removed, added or changed, so joining just writes one record after the other. No record is empty, and an
empty file has none. The records depend only on the bytes, not on how they are read.

========================  ==============================================================================================
text of the rule          a record
========================  ==============================================================================================
``delimiter:\n``          ends after each delimiter, and includes it; the rest after the last one is a record too
``delimiter-start:\n\n``  begins with each delimiter; the part before the first one is a record too
``size:65536``            has this many bytes, the last one perhaps fewer
``regex:^def``            begins at each match; the part before the first one is a record too
``regex-end:^end\n``      ends after each match; the rest after the last one is a record too
``whole``                 is the file: one logical message, which is put in segments
========================  ==============================================================================================

In the text of a delimiter ``\n``, ``\r``, ``\t``, ``\\`` and ``\xHH`` stand for bytes; any other character stands for
its UTF-8 bytes. Delimiters are found from left to right and never overlap: ``aaa`` by ``aa`` is ``aa``, ``a``.

An expression is one of Python's `re` for bytes, written as text; it always has the flag MULTILINE, so that ``^`` and
``$`` stand for the ends of lines. Matches do not overlap. An expression that matches zero bytes is refused: when the
rule is made if it matches an empty file, otherwise at the match.

**Memory.** A record is held as a whole, so its length is limited by `record_max`, and a longer one is an error
(``whole`` has pieces of `chunk` bytes, and needs no limit). Besides, memory holds a chunk or two. An expression is
matched in
a window: the 256 bytes before the record, and `record_max` bytes from its first byte on. A match that extends beyond
the window, or looks further back, is not found, and ``$`` matches at the window's end; so choose a generous
`record_max`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Final, Literal, Protocol

from ..errors import bad_argument
from ..model.fields import NUMBER_MAX
from ..model.parameters import Choice, Integer, is_storable
from ..support.streams import write_whole
from .errors import FormatError

CHUNK_BYTES: Final = 1024 * 1024
BYTES = Integer(1, NUMBER_MAX, what="a number of bytes")
RECORD_BYTES_MAX: Final = 16 * 1024 * 1024
LOOKBEHIND_BYTES: Final = 256
KINDS: Final = "delimiter:..., delimiter-start:..., size:BYTES, regex:..., regex-end:... or whole"
_ESCAPES: Final[Mapping[str, bytes]] = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\"}
_WRITTEN: Final[Mapping[int, str]] = {byte[0]: f"\\{name}" for name, byte in _ESCAPES.items()}
_ESCAPE: Final = re.compile(r"\\(x[0-9A-Fa-f]{2}|.|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Delimiter:
    """Records by a delimiter, which stays in the record.

    Args:
        delimiter: at least one byte.
        at: whether the delimiter is at the record's "end" or at its "start".

    Raises: ArgumentError.
    """

    delimiter: bytes
    at: Literal["end", "start"] = "end"

    def __post_init__(self) -> None:
        if not isinstance(self.delimiter, bytes) or not self.delimiter:
            raise bad_argument("delimiter", self.delimiter, "at least one byte, as bytes")
        Choice(("end", "start")).check("at", self.at)

    def __str__(self) -> str:
        written = "".join(_WRITTEN.get(byte) or _plain(byte) for byte in self.delimiter)
        return f"{'delimiter' if self.at == 'end' else 'delimiter-start'}:{written}"


@dataclass(frozen=True, slots=True)
class Size:
    """Records of equal size, the last one shorter. Args: size: bytes, 1 to 999,999,999. Raises: ArgumentError."""

    size: int

    def __post_init__(self) -> None:
        BYTES.check("size", self.size)

    def __str__(self) -> str:
        return f"size:{self.size}"


@dataclass(frozen=True, slots=True)
class Regex:
    """Records by a regular expression.

    Args:
        pattern: as text; its UTF-8 bytes are matched, with MULTILINE.
        at: whether a record begins at each match ("start") or ends after it ("end").

    Raises ArgumentError if it is not a regular expression for bytes, or matches zero bytes.
    """

    pattern: str
    at: Literal["start", "end"] = "start"

    def __post_init__(self) -> None:
        if not isinstance(self.pattern, str) or not self.pattern or not is_storable(self.pattern):
            raise bad_argument("pattern", self.pattern, "a regular expression, as a text that is not empty")
        Choice(("start", "end")).check("at", self.at)
        try:
            compiled = self.compiled
        except (re.error, ValueError, OverflowError, RecursionError) as wrong:
            raise bad_argument("pattern", self.pattern, f"a regular expression for bytes ({wrong})") from None
        if compiled.search(b"") is not None:
            raise bad_argument("pattern", self.pattern, "an expression that does not match zero bytes")

    @property
    def compiled(self) -> re.Pattern[bytes]:
        """The compiled expression."""
        return re.compile(self.pattern.encode(), re.MULTILINE)

    def __str__(self) -> str:
        return f"{'regex' if self.at == 'start' else 'regex-end'}:{self.pattern}"


@dataclass(frozen=True, slots=True)
class Whole:
    """The file is one logical message, in segments."""

    def __str__(self) -> str:
        return "whole"


Rule = Delimiter | Size | Regex | Whole


class Readable(Protocol):
    """The source of a split: a binary file, or anything else with this method."""

    def read(self, size: int = -1, /) -> bytes:
        """Returns at most this many bytes; none at the end."""
        ...


def parse_rule(text: str) -> Rule:
    """Reads a rule from its text; `str` of a rule is that text again.

    Raises ArgumentError if the text is not a rule.
    """
    if not isinstance(text, str):
        raise bad_argument("rule", text, f"a text: {KINDS}")
    if text == "whole":
        return Whole()
    kind, colon, value = text.partition(":")
    if not colon or kind not in _PARSERS:
        raise bad_argument("rule", text, KINDS)
    return _PARSERS[kind](value)


def rule_of(rule: Rule | str) -> Rule:
    """A rule, given as an object or as text. Raises ArgumentError."""
    if isinstance(rule, Delimiter | Size | Regex | Whole):
        return rule
    return parse_rule(rule)


def _size(text: str) -> Size:
    if not re.fullmatch("[0-9]{1,9}", text):
        raise bad_argument("rule", f"size:{text}", f"size: and a number of bytes from 1 to {NUMBER_MAX:,}")
    return Size(int(text))


def _bytes_of(text: str) -> bytes:
    """The bytes of a delimiter's text."""
    if not text or not is_storable(text):
        raise bad_argument("delimiter", text, "at least one character; write a line's end as \\n")
    found, at = [], 0
    for escape in _ESCAPE.finditer(text):
        found.append(text[at : escape.start()].encode())
        name, at = escape[1], escape.end()
        if len(name) == 3:
            found.append(bytes.fromhex(name[1:]))
        elif name in _ESCAPES:
            found.append(_ESCAPES[name])
        else:
            raise bad_argument("delimiter", text, r"written with the escapes \n, \r, \t, \\ and \xHH only")
    return b"".join([*found, text[at:].encode()])


def _plain(byte: int) -> str:
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}"


_PARSERS: Final[Mapping[str, Callable[[str], Rule]]] = {
    "delimiter": lambda text: Delimiter(_bytes_of(text)),
    "delimiter-start": lambda text: Delimiter(_bytes_of(text), "start"),
    "size": _size,
    "regex": Regex,
    "regex-end": lambda text: Regex(text, "end"),
}


# ---- splitting


def split(
    stream: Readable, rule: Rule | str, *, chunk: int = CHUNK_BYTES, record_max: int = RECORD_BYTES_MAX
) -> Iterator[bytes]:
    """Splits a binary stream into records; for `whole` into pieces.

    Args:
        stream: read from its present position to its end; it must block.
        rule: a rule, or its text.
        chunk: how many bytes are read at a time, 1 to 999,999,999; for `whole` also the length of the pieces.
        record_max: the most bytes in a record, 1 to 999,999,999; ignored for `whole`.

    Raises ArgumentError; FormatError if a record is longer, or an expression matches zero bytes.
    """
    rule = rule_of(rule)
    BYTES.check("chunk", chunk)
    BYTES.check("record_max", record_max)
    if not callable(getattr(stream, "read", None)):
        raise bad_argument("stream", stream, "a binary stream to read from")
    if isinstance(rule, Size):
        if rule.size > record_max:
            raise bad_argument("record_max", record_max, f"at least the {rule.size:,} bytes of a record of {rule}")
        return _equal(stream, rule.size)
    if isinstance(rule, Whole):
        return _equal(stream, chunk)
    ends = _Delimiters(rule) if isinstance(rule, Delimiter) else _Matches(rule, record_max)
    return _records(stream, ends, chunk, record_max)


def join(records: Iterable[bytes], stream: IO[bytes]) -> int:
    """Writes records one after the other to a binary stream; returns the number of bytes."""
    length = 0
    for record in records:
        write_whole(stream, record)
        length += len(record)
    return length


def _equal(stream: Readable, size: int) -> Iterator[bytes]:
    while record := _read(stream, size):
        yield record


def _read(stream: Readable, size: int) -> bytes:
    """Reads this many bytes, fewer only at the end: a raw stream may return fewer at a time."""
    data = stream.read(size)
    if not isinstance(data, bytes):
        raise bad_argument("stream", stream, "a binary stream that blocks: one whose reads return bytes")
    if not data or len(data) == size:
        return data
    parts, left = [data], size - len(data)
    while left and (data := stream.read(left)):
        parts.append(data)
        left -= len(data)
    return b"".join(parts)


class _Delimiters:
    """Finds the ends of records by a delimiter.

    Attributes:
        context: how many bytes before a record it looks at.
        slack: how many bytes after a record may be needed to find its end.
    """

    def __init__(self, rule: Delimiter) -> None:
        self._rule = rule
        self._seen = 0
        self.context, self.slack = 0, len(rule.delimiter) - 1
        self._is_first = True

    def end(self, buffer: bytearray, start: int, *, complete: bool) -> int:
        """The end of the record that begins at `start`; -1 if the buffer is not enough."""
        delimiter = self._rule.delimiter
        if self._rule.at == "end":
            found = buffer.find(delimiter, start + self._seen)
            end = found + len(delimiter) if found >= 0 else -1
        else:
            begins_with_it = not self._is_first or buffer.startswith(delimiter, start)
            end = buffer.find(delimiter, start + max(self._seen, len(delimiter)) if begins_with_it else start)
        if end >= 0:
            self._seen, self._is_first = 0, False
        else:
            # A delimiter may be cut by a chunk's border, so that part is searched again.
            self._seen = max(0, len(buffer) - start - len(delimiter) + 1)
        return end


class _Matches:
    """Finds the ends of records by an expression, in a window of fixed size. Attributes: as `_Delimiters`."""

    def __init__(self, rule: Regex, record_max: int) -> None:
        self._rule, self._pattern = rule, rule.compiled
        self._record_max = record_max
        self._from = 0  # where in the record the next match may begin
        self._offset = 0  # the position of the record in the file
        self.context, self.slack = LOOKBEHIND_BYTES, 0

    def end(self, buffer: bytearray, start: int, *, complete: bool) -> int:
        if not complete and len(buffer) - start < self._record_max:
            return -1  # the window is not full: with more bytes the match might be different
        before = min(start, LOOKBEHIND_BYTES)
        end = -1
        with memoryview(buffer)[start - before : start + self._record_max] as window:
            while end < 0 and (match := self._pattern.search(window, before + self._from)) is not None:
                first, after = match.start() - before, match.end() - before
                if first == after:
                    raise _matches_nothing(self._rule, self._offset + first)
                self._from = after
                if self._rule.at == "end":
                    end = after
                elif first:
                    end = first
        if end >= 0:
            self._offset += end
            self._from -= end
            return start + end
        return -1


def _matches_nothing(rule: Regex, offset: int) -> FormatError:
    text = f"{rule} matches zero bytes at offset {offset:,}: let it match at least one"
    return FormatError(text, rule=str(rule), offset=offset)


def _records(stream: Readable, ends: _Delimiters | _Matches, chunk: int, record_max: int) -> Iterator[bytes]:
    buffer, start, offset, complete = bytearray(), 0, 0, False
    while True:
        while start < len(buffer) and (end := ends.end(buffer, start, complete=complete)) >= 0:
            _check_length(end - start, offset, record_max, record_max)
            yield _copy(buffer, start, end)
            offset += end - start
            start = end
        _check_length(len(buffer) - start, offset, record_max if complete else record_max + ends.slack, record_max)
        if complete:
            break
        kept = max(0, start - ends.context)
        del buffer[:kept]
        start -= kept
        data = _read(stream, chunk)
        buffer += data
        complete = len(data) < chunk
    if start < len(buffer):
        yield _copy(buffer, start, len(buffer))


def _copy(buffer: bytearray, start: int, end: int) -> bytes:
    with memoryview(buffer) as view:
        return bytes(view[start:end])


def _check_length(length: int, offset: int, allowed: int, record_max: int) -> None:
    if length > allowed:
        raise FormatError(
            f"the record at offset {offset:,} is longer than {record_max:,} bytes: raise record_max or change the rule",
            offset=offset,
        )
