"""Joins lines into commands: comments, continuation, and the origin of each character.

A command is one line or several. If the last non-blank character of a line is "+", the command continues with the first
non-blank character of the next line; if it is "-", at the very beginning of the next line. Both also work inside a word
or a quoted text. A line that begins with "*" is a comment; comments and blank lines may be anywhere, also between
continued lines. These are the rules of IBM's runmqsc.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, cast

from .errors import MqscSyntaxError, ScriptPosition, syntax_error

LINE_LENGTH_MAX: Final = 2_048  # runmqsc's
COMMAND_LENGTH_MAX: Final = 32_768
BLANKS: Final = " \t\r\n"
INSERTS: Final = ("+QMNAME+", "+MQ_Q_MGR_NAME+")  # which runmqsc replaces with the name of the queue manager


@dataclass(frozen=True, slots=True)
class Source:
    """A command as it was written.

    Args:
        lines: each line as written, with its number from 1; comments and blank lines are left out.
        goes_on: whether the script ended where the command should continue.
        members: for a command from a JSON object, the member for each line; empty: it is from a script.
    """

    lines: tuple[tuple[int, str], ...]
    goes_on: bool = False
    members: tuple[str, ...] = ()

    @property
    def line(self) -> int:
        """The number of the first line."""
        return self.lines[0][0]

    @property
    def has_inserts(self) -> bool:
        """Whether the name of the queue manager is to be inserted."""
        return any(insert in line for _, line in self.lines for insert in INSERTS)

    def with_inserts(self, name: str) -> Source:
        """The command with the name of the queue manager for each insert."""
        lines = self.lines
        for insert in INSERTS:
            lines = tuple((number, line.replace(insert, name)) for number, line in lines)
        return replace(self, lines=lines)

    def text_of(self, error: MqscSyntaxError) -> str:
        """Describes an error in the command, with a place that its author knows: in the script, or in the object."""
        if not self.members:
            return str(error.args[0])
        return f"{self.members[cast(int, error.data['line']) - 1]}: {error.what}"


@dataclass(frozen=True, slots=True)
class CommandText:
    """The text of a command, and the beginning of each line in it and in the script."""

    text: str
    starts: tuple[int, ...]
    places: tuple[ScriptPosition, ...]

    def position(self, offset: int) -> ScriptPosition:
        """The place of a character in the script; the end of the text belongs to its last line."""
        n = bisect_right(self.starts, offset) - 1
        return ScriptPosition(self.places[n].line, self.places[n].column + offset - self.starts[n])


class Assembler:
    """Takes lines one by one and returns commands. It refuses nothing: `together` does, command by command."""

    def __init__(self) -> None:
        self._number = 0
        self._open: list[tuple[int, str]] = []

    @property
    def is_continued(self) -> bool:
        """Whether the next line continues a command."""
        return bool(self._open)

    def feed(self, line: str) -> Source | None:
        """Takes the next line; returns the command that it ends, if any."""
        self._number += 1
        line = line.rstrip(BLANKS)
        if not line or line.startswith("*"):
            return None
        self._open.append((self._number, line))
        return None if line[-1] in "+-" else self._taken(goes_on=False)

    def finish(self) -> Source | None:
        """The unfinished command at the end of the script, if any."""
        return self._taken(goes_on=True) if self._open else None

    def _taken(self, *, goes_on: bool) -> Source:
        taken = Source(tuple(self._open), goes_on)
        self._open = []
        return taken


def commands_in(lines: Iterable[str]) -> Iterator[Source]:
    """Splits lines into the commands of a script; with their line ends or without."""
    assembler = Assembler()
    for line in lines:
        if (source := assembler.feed(line)) is not None:
            yield source
    if (last := assembler.finish()) is not None:
        yield last


def together(source: Source) -> CommandText:
    """The text of a command.

    Raises MqscSyntaxError if a line or the command is too long, or its continuation is missing.
    """
    pieces: list[str] = []
    starts: list[int] = []
    places: list[ScriptPosition] = []
    length = 0
    for n, (number, line) in enumerate(source.lines):
        _check_length(number, line)
        begin = _beginning(source, n)
        piece = line[begin:]
        if line[-1] in "+-":
            piece = piece[:-1]
        pieces.append(piece)
        starts.append(length)
        places.append(ScriptPosition(number, begin + 1))
        length += len(piece)
        if length > COMMAND_LENGTH_MAX:
            raise syntax_error(places[-1], "a command that is too long", f"at most {COMMAND_LENGTH_MAX:,} characters")
    if source.goes_on:
        number, line = source.lines[-1]
        allowed = f"a further line, because this one ends with {line[-1]!r}"
        raise syntax_error(ScriptPosition(number, len(line)), "the end of the script", allowed)
    return CommandText("".join(pieces), tuple(starts), tuple(places))


def _beginning(source: Source, n: int) -> int:
    """The number of characters to skip at the beginning of a line: after "+" its blanks."""
    line = source.lines[n][1]
    follows_minus = n > 0 and source.lines[n - 1][1][-1] == "-"
    return 0 if follows_minus else len(line) - len(line.lstrip(BLANKS))


def _check_length(number: int, line: str) -> None:
    if len(line) > LINE_LENGTH_MAX:
        allowed = f"at most {LINE_LENGTH_MAX:,}; end the line with + and continue in the next"
        raise syntax_error(ScriptPosition(number, LINE_LENGTH_MAX + 1), f"a line of {len(line):,} characters", allowed)
