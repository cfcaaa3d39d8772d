"""Prints the answers of commands: text for people, or one JSON object per line for programs.

Answers go to standard output, everything else (progress, notes, questions, errors) to standard error. Colours are used
only on a terminal, and never if NO_COLOR is set. Text from messages, names and other programs goes through `plain`
first, so that it cannot control the terminal.

`drawing` needs rich, which takes a tenth of the time of a command to import: a command without a terminal does so only
for a table.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
import traceback
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

import click

from ..reasons import Reason
from .wording import Record, json_line, plain, span, words

if TYPE_CHECKING:
    from rich.console import Console

    from .drawing import Advance, Show

SPANS = frozenset({"age", "lease_left", "time_left"})  # keys whose values are durations
NUMBERED = frozenset({"claim", "connection", "lock_id", "number", "process", "settled"})  # keys of numbers to type
NARROW = 100  # columns: narrower terminals show fewer details
LAID_OUT_MAX = 1_000  # rows; laying out a row costs half a millisecond
IMPORTING = importlib.__file__


class Output:
    """The two streams of a command, and the form of its answers.

    Args:
        as_json: answers and errors are JSON objects, one per line.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    @cached_property
    def console(self) -> Console:
        """Standard output, for tables and styles."""
        from . import drawing  # noqa: PLC0415 - it loads rich

        return drawing.console(stderr=False)

    @cached_property
    def notes(self) -> Console:
        """Standard error, for styles and progress."""
        from . import drawing  # noqa: PLC0415 - it loads rich

        return drawing.console(stderr=True)

    def tell(self, record: Record, text: str) -> None:
        """Prints one answer: the record as JSON, or the text."""
        if self.as_json:
            self.line(record)
        self.say(text)

    def say(self, text: str) -> None:
        """Prints an answer for people. Programs have already received it as records."""
        if not self.as_json:
            self._print(plain(text))

    def line(self, record: Record) -> None:
        """Prints a record as one line of JSON."""
        click.echo(json_line(record))

    def listing(
        self, records: Iterable[Record], columns: Mapping[str, str], *, nothing: str, wide: Collection[str] = ()
    ) -> None:
        """Prints many answers: a line of JSON for each, or one table.

        Args:
            columns: the heading of each key. Empty columns are left out.
            nothing: the text that people see if there is no answer.
            wide: the keys that a narrow terminal leaves out.
        """
        rows = list(records)
        if self.as_json:
            _write(map(json_line, rows))
            return
        if not rows:
            self.note(nothing)
            return
        from . import drawing  # noqa: PLC0415 - it loads rich

        is_narrow = self.console.width < NARROW
        hidden = wide if is_narrow else ()
        used = [key for key in columns if key not in hidden and any(row[key] not in (None, "", []) for row in rows)]
        headings = [columns[key] for key in used]
        numbers = [columns[key] for key in used if any(isinstance(row[key], int) for row in rows)]
        cells = [[_cell(key, row[key]) for row in rows] for key in used]
        if len(rows) > LAID_OUT_MAX:
            lines = drawing.long_table(self.console, headings, cells, numbers, between="  " if is_narrow else "   ")
            _write(lines)
            return
        made = drawing.table(headings, right=numbers)
        if is_narrow:
            made.padding = (0, 1, 0, 0)
        for row in zip(*cells, strict=True):
            made.add_row(*map(drawing.text, row))
        self.console.print(made)

    def attributes(self, rows: Iterable[tuple[str, str, str]]) -> None:
        """Prints a table of attributes for people: of each its name, its value and its name in MQ."""
        from . import drawing  # noqa: PLC0415 - it loads rich

        made = drawing.table(("attribute", "value", "in MQ"))
        for name, value, in_mq in rows:
            made.add_row(*map(drawing.text, (name.replace("_", "-"), value, in_mq)))
        self.console.print(made)

    def note(self, text: str) -> None:
        """Prints a note for people on standard error. Programs do not get it."""
        if not self.as_json:
            self._print(plain(text), is_note=True)

    def error(self, text: str, record: Record) -> None:
        """Prints an error in one line. For an invalid selector, further lines mark the place of the mistake."""
        if self.as_json:
            click.echo(json_line(record), err=True)
        else:
            has_lines = record.get("reason") == Reason.SELECTOR_SYNTAX_ERROR
            shown = "\n".join(map(plain, text.split("\n"))) if has_lines else plain(text)
            self._print(shown, is_note=True, title="inorder: ")

    def _print(self, text: str, *, is_note: bool = False, title: str = "") -> None:
        if is_looked_at(sys.stderr if is_note else sys.stdout):
            from . import drawing  # noqa: PLC0415 - it loads rich

            (self.notes if is_note else self.console).print(drawing.text(text, title))
        else:
            click.echo(title + text, err=is_note)

    def trace(self, error: Exception, *, behind: str) -> None:
        """Prints the traceback of an error in the user's code, without our own frames and those of Python's import
        system.
        """
        frames = [one.filename for one in traceback.extract_tb(error.__traceback__)]
        skipped = len(frames) - frames[::-1].index(behind) if behind in frames else 0
        while skipped < len(frames) and (
            frames[skipped].startswith("<frozen importlib") or frames[skipped] == IMPORTING
        ):
            skipped += 1
        below = error.__traceback__
        for _ in range(skipped):
            below = below.tb_next if below is not None else None
        for line in "".join(traceback.format_exception(type(error), error, below)).splitlines():
            self.note(line)

    @contextmanager
    def progress(self, what: str, unit: str, *, hidden: bool = False) -> Iterator[Advance]:
        """Shows a progress bar with rate and time left, on a terminal only, if the work takes longer than a second."""
        if hidden or not self._shows_progress:
            yield lambda _done, _total=None, /: None
        else:
            from . import drawing  # noqa: PLC0415 - it loads rich

            with drawing.progress(self.notes, what, unit) as advance:
                yield advance

    @contextmanager
    def bar(self) -> Iterator[Show]:
        """Shows a progress bar with a text and the time left, on a terminal only, once the work takes longer than a
        second.
        """
        if self._shows_progress:
            from . import drawing  # noqa: PLC0415 - it loads rich

            with drawing.bar(self.notes) as show:
                yield show
        else:
            yield lambda _text, _done=0, _total=None, /: None

    @property
    def _shows_progress(self) -> bool:
        return not self.as_json and is_looked_at(sys.stderr)

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Shows a line, on a terminal only, while something starts that reports no progress.

        The line is written once, before the start, because the started program may use standard error itself.
        """
        if self._shows_progress:
            from . import drawing  # noqa: PLC0415 - it loads rich

            with drawing.waiting(self.notes, what):
                yield
        else:
            yield

    def confirm(self, question: str, *, yes: bool) -> None:
        """Asks before an action that cannot be undone. Raises: click.UsageError, if there is no terminal to ask at."""
        if yes:
            return
        if sys.stdin is None or not sys.stdin.isatty():
            raise click.UsageError(f"{question} Give --yes to confirm, because there is no terminal to ask at.")
        if not click.confirm(plain(question), err=True):
            self.note("nothing was changed")
            click.get_current_context().exit(1)


def made_writable() -> bool:
    """Prepares the streams to escape characters that their encoding lacks. False: standard output is closed."""
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for as long as the process lives
    if sys.stdout is None:
        sys.stderr.write("inorder: standard output is closed; send it to a file, or to /dev/null\n")
        return False
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    return True


def give_up_output() -> None:
    """Discards unwritten output. Otherwise Python would try to write it at exit, and fail with its own message and
    status.
    """
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def standard_input() -> BinaryIO:
    """The bytes of standard input. Raises: click.UsageError, if it is closed."""
    if sys.stdin is None:
        raise click.UsageError("Standard input is closed: redirect a file or a pipe to it.")
    return sys.stdin.buffer


def line_of_standard_input() -> str:
    """A line of standard input, such as a password. Bytes that are not UTF-8 become surrogates, which no secret has.

    Raises: click.UsageError, if it is closed.
    """
    return standard_input().readline().decode(errors="surrogateescape").rstrip("\r\n")


def _cell(key: str, value: Any) -> str:
    """A value in a table. A number that a user types in another command has no separators."""
    if key in SPANS:
        return span(value)
    return str(value) if key in NUMBERED and isinstance(value, int) else words(value)


def _write(lines: Iterable[str]) -> None:
    """Writes all lines in one call, because a call for each line would cost a system call each."""
    click.echo("".join(f"{line}\n" for line in lines), nl=False)


def is_looked_at(stream: TextIO) -> bool:
    """Whether a person looks at the stream, or a program that asks for colours."""
    return stream.isatty() or bool(os.environ.get("FORCE_COLOR"))
