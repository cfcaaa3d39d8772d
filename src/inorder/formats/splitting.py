r"""Split rules: how the bytes of a file become records, so that the records in order are the bytes again.

Nothing is ever taken away, added or changed, so joining is writing one record after the other. No record is empty, and
an empty file has none. What a rule makes of a file depends on the bytes alone, not on how they are read.

========================  ==============================================================================================
text of the rule          a record
========================  ==============================================================================================
``delimiter:\n``          ends behind each delimiter, which it keeps; what follows the last one is a record too
``delimiter-start:\n\n``  begins with each delimiter; what stands before the first one is a record too
``size:65536``            has that many bytes, the last one what is left
``regex:^def``            begins at each match; what stands before the first one is a record too
``regex-end:^end\n``      ends behind each match; what follows the last one is a record too
``whole``                 is the file: one logical message, which travels in segments
========================  ==============================================================================================

In the text of a delimiter ``\n``, ``\r``, ``\t``, ``\\`` and ``\xHH`` stand for bytes; any other character stands for
its UTF-8 bytes. Delimiters are found from left to right and never overlap: ``aaa`` by ``aa`` is ``aa``, ``a``.

An expression is one of Python's `re` for bytes, written as text; it always has the flag MULTILINE, so that ``^`` and
``$`` stand for the ends of lines. Matches do not overlap. One that matches no bytes at all is refused: as soon as the
rule is made if it matches an empty file, otherwise where it does so.

**Memory.** A record is held as a whole, so it has a bound, `record_max`, and a longer one is an error (for ``whole``:
pieces are of `chunk` bytes, and no bound is needed). Besides, memory holds a chunk or two. An expression is matched in
a window: the 256 bytes before the record, and `record_max` bytes from its first byte on. A match that reaches out of
the window, or looks further back, is not found, and at the window's end ``$`` matches; so give `record_max` room.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Final, Literal, Protocol

from ..errors import bad_argument
from ..model.fields import NUMBER_MAX
from ..model.parameters import Integer, is_storable, one_of
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
        at: whether the delimiter stands at the record's "end" or at its "start".

    Raises: ArgumentError.
    """

    delimiter: bytes
    at: Literal["end", "start"] = "end"

    def __post_init__(self) -> None:
        if not isinstance(self.delimiter, bytes) or not self.delimiter:
            raise bad_argument("delimiter", self.delimiter, "at least one byte, as bytes")
        _check_side(self.at, ("end", "start"))

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
    """Records by an expression.

    Args:
        pattern: as text; it is matched with the UTF-8 bytes of it, under MULTILINE.
        at: whether a record begins at each match ("start") or ends behind it ("end").

    Raises: ArgumentError, it is not an expression for bytes, or matches no bytes.
    """

    pattern: str
    at: Literal["start", "end"] = "start"

    def __post_init__(self) -> None:
        if not isinstance(self.pattern, str) or not self.pattern or not is_storable(self.pattern):
            raise bad_argument("pattern", self.pattern, "a regular expression, as a text that is not empty")
        _check_side(self.at, ("start", "end"))
        try:
            compiled = self.compiled
        except (re.error, ValueError, OverflowError, RecursionError) as wrong:
            raise bad_argument("pattern", self.pattern, f"a regular expression for bytes ({wrong})") from None
        if compiled.search(b"") is not None:
            raise bad_argument("pattern", self.pattern, "an expression that does not match zero bytes")

    @property
    def compiled(self) -> re.Pattern[bytes]:
        """The expression, ready to use."""
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
    """What a split reads from: a binary file, or anything else that can be read so."""

    def read(self, size: int = -1, /) -> bytes:
        """At most that many bytes; none at the end."""
        ...


def parse_rule(text: str) -> Rule:
    """The rule that a text says; `str` of a rule is its text again.

    Raises: ArgumentError, it says none.
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
    """A rule, given as such or as its text. Raises: ArgumentError."""
    if isinstance(rule, Delimiter | Size | Regex | Whole):
        return rule
    return parse_rule(rule)


def _size(text: str) -> Size:
    if not re.fullmatch("[0-9]{1,9}", text):
        raise bad_argument("rule", f"size:{text}", f"size: and a number of bytes from 1 to {NUMBER_MAX:,}")
    return Size(int(text))


def _bytes_of(text: str) -> bytes:
    """The bytes that a delimiter's text stands for."""
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


def _check_side(side: object, allowed: tuple[str, ...]) -> None:
    if side not in allowed:
        raise bad_argument("at", side, one_of(allowed))


# ---- splitting


def split(
    stream: Readable, rule: Rule | str, *, chunk: int = CHUNK_BYTES, record_max: int = RECORD_BYTES_MAX
) -> Iterator[bytes]:
    """The records of a binary stream; for `whole` its pieces.

    Args:
        stream: it is read from where it stands to its end, and must block.
        rule: a rule, or its text.
        chunk: how many bytes are read at a time, 1 to 999,999,999; for `whole` also how long the pieces are.
        record_max: bytes of the longest record, 1 to 999,999,999; `whole` has none.

    Raises: ArgumentError; FormatError, a record is longer, or an expression matches zero bytes.
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
    """Writes records one after the other to a binary stream; how many bytes they are."""
    length = 0
    for record in records:
        write_whole(stream, record)
        length += len(record)
    return length


def _equal(stream: Readable, size: int) -> Iterator[bytes]:
    while record := _read(stream, size):
        yield record


def _read(stream: Readable, size: int) -> bytes:
    """That many bytes, fewer only at the end: a raw stream may bring fewer at a time."""
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
    """Where records end, by a delimiter.

    Attributes:
        context: how many bytes before a record it looks at.
        slack: how many bytes behind a record may be there without its end being known.
    """

    def __init__(self, rule: Delimiter) -> None:
        self._rule = rule
        self._seen = 0
        self.context, self.slack = 0, len(rule.delimiter) - 1
        self._is_first = True

    def end(self, buffer: bytearray, start: int, *, complete: bool) -> int:
        """Where the record that begins at `start` ends; -1: the buffer does not say."""
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
            # What a chunk's border cuts must be looked at again; a search is never begun before it.
            self._seen = max(0, len(buffer) - start - len(delimiter) + 1)
        return end


class _Matches:
    """Where records end, by an expression, searched in a window of fixed extent. Attributes: as `_Delimiters`."""

    def __init__(self, rule: Regex, record_max: int) -> None:
        self._rule, self._pattern = rule, rule.compiled
        self._record_max = record_max
        self._from = 0  # from where on in the record the next match may begin
        self._offset = 0  # of the record, in the file
        self.context, self.slack = LOOKBEHIND_BYTES, 0

    def end(self, buffer: bytearray, start: int, *, complete: bool) -> int:
        if not complete and len(buffer) - start < self._record_max:
            return -1  # the window is not full: what is found now might be found otherwise with more
        before = min(start, LOOKBEHIND_BYTES)
        end = -1
        with memoryview(buffer)[start - before : start + self._record_max] as window:
            while end < 0 and (match := self._pattern.search(window, before + self._from)) is not None:
                first, behind = match.start() - before, match.end() - before
                if first == behind:
                    raise _matches_nothing(self._rule, self._offset + first)
                self._from = behind
                if self._rule.at == "end":
                    end = behind
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
            f"the record at offset {offset:,} is longer than {record_max:,} bytes: give record_max, or another rule",
            offset=offset,
        )


__all__ = ["Delimiter", "Readable", "Regex", "Rule", "Size", "Whole", "join", "parse_rule", "rule_of", "split"]
