"""What a command prints: text for people, one JSON object a line for machines.

Answers go to standard output, everything else (progress, notes, questions, errors) to standard error. Colours are
there only where somebody looks, and not where NO_COLOR is set. Whatever comes from a message, a name or another
program goes through `plain` before it is shown, so that it cannot steer the terminal.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import sys
import traceback
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import click
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.control import Control
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.segment import ControlType
from rich.table import Table
from rich.text import Text

from ..reasons import Reason

SPANS = frozenset({"age", "lease_left", "time_left"})  # keys whose values are durations
NARROW = 100  # columns: a terminal that has fewer is shown less
PIPED_WIDTH = 4000  # no line of a table is cut where a program reads it
SHOWN_AFTER_SECONDS = 1.0
BAR_WIDTH = 20
LAID_OUT_MAX = 1_000  # rows of a table, each of which costs half a millisecond
IMPORTING = importlib.__file__

Record = Mapping[str, Any]


class Advance(Protocol):
    """Tells a progress display how far the work is; `total` where it is known."""

    def __call__(self, done: int, total: int | None = None, /) -> None: ...


class Show(Protocol):
    """Says in words how far a work is; `done` of `total` where that is known."""

    def __call__(self, text: str, done: int = 0, total: int | None = None, /) -> None: ...


class Output:
    """The two streams of a command, and how its answers are written.

    Args:
        as_json: answers and errors are JSON objects, one a line.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.console = _console(stderr=False)
        self.notes = _console(stderr=True)

    def tell(self, record: Record, text: str) -> None:
        """One answer: the record as JSON, or the text."""
        if self.as_json:
            self.line(record)
        self.say(text)

    def say(self, text: str) -> None:
        """An answer for people alone: machines have had it in lines."""
        if not self.as_json:
            self.console.print(Text(plain(text)))

    def line(self, record: Record) -> None:
        """A record as one line of JSON."""
        click.echo(json_line(record))

    def listing(
        self, records: Iterable[Record], columns: Mapping[str, str], *, nothing: str, wide: Collection[str] = ()
    ) -> None:
        """Many answers: a line of JSON each, or one table.

        Args:
            columns: the headings, by the key that stands below each; one below which nothing stands is left out.
            nothing: what people see if there is no answer.
            wide: the keys for which a narrow terminal has no room.
        """
        rows = list(records)
        if self.as_json:
            _write(map(json_line, rows))
            return
        if not rows:
            self.note(nothing)
            return
        is_narrow = self.console.width < NARROW
        hidden = wide if is_narrow else ()
        used = [key for key in columns if key not in hidden and any(row[key] not in (None, "", []) for row in rows)]
        headings = [columns[key] for key in used]
        numbers = [columns[key] for key in used if any(isinstance(row[key], int) for row in rows)]
        cells = [[words(span(row[key]) if key in SPANS else row[key]) for row in rows] for key in used]
        if len(rows) > LAID_OUT_MAX:
            self._long(headings, cells, numbers, between="  " if is_narrow else "   ")
            return
        made = table(headings, right=numbers)
        if is_narrow:
            made.padding = (0, 1, 0, 0)
        for row in zip(*cells, strict=True):
            made.add_row(*map(Text, row))
        self.console.print(made)

    def _long(
        self, headings: Sequence[str], cells: Sequence[Sequence[str]], right: Collection[str], *, between: str
    ) -> None:
        """A table that is too long to be laid out cell by cell: the same lines, which a terminal breaks by itself.

        Args:
            cells: the texts of each column, from the first row to the last.
        """
        columns = [
            _padded([heading, *column], right=heading in right) for heading, column in zip(headings, cells, strict=True)
        ]
        heading, *lines = map(between.join, zip(*columns, strict=True))
        self.console.print(Text(heading, style="bold"), soft_wrap=True)
        self.console.print("\u2500" * cell_len(heading), soft_wrap=True)
        _write(lines)

    def note(self, text: str) -> None:
        """Something beside the answer, for people, not for machines."""
        if not self.as_json:
            self.notes.print(Text(plain(text)))

    def error(self, text: str, record: Record) -> None:
        """What went wrong, in one line; a selector that is wrong stands below it, with the place of the fault."""
        if self.as_json:
            click.echo(json_line(record), err=True)
        else:
            has_lines = record.get("reason") == Reason.SELECTOR_SYNTAX_ERROR
            shown = "\n".join(map(plain, text.split("\n"))) if has_lines else plain(text)
            self.notes.print(Text.assemble(("inorder: ", "bold red"), shown))

    def trace(self, error: Exception, *, behind: str) -> None:
        """Where code of the user's has failed: its traceback, from behind our own file and Python's importing."""
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
        """A bar for work that takes longer than a second; nothing where nobody looks."""
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(unit),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
        )
        is_hidden = hidden or self.as_json or not self.notes.is_terminal
        with Progress(*columns, console=self.notes, transient=True, disable=is_hidden, refresh_per_second=5) as bar:
            task = bar.add_task(what, total=None, visible=False, rate="")

            def advance(done: int, total: int | None = None) -> None:
                elapsed = bar.tasks[0].elapsed or 0.0
                rate = f"{done / elapsed:,.0f}/s" if elapsed else ""
                bar.update(task, completed=done, total=total, visible=elapsed >= SHOWN_AFTER_SECONDS, rate=rate)

            yield advance

    @contextmanager
    def bar(self) -> Iterator[Show]:
        """A bar for work that says in words how far it is; nothing where nobody looks."""
        is_hidden = self.as_json or not self.notes.is_terminal
        columns = SpinnerColumn(), BarColumn(BAR_WIDTH), TextColumn("{task.description}", markup=False)
        with Progress(*columns, TimeElapsedColumn(), console=self.notes, transient=True, disable=is_hidden) as bar:
            task = bar.add_task("", total=None)

            def show(text: str, done: int = 0, total: int | None = None) -> None:
                bar.update(task, description=plain(text), completed=done, total=total)

            yield show

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """A line while something begins that has no progress to show; nothing where nobody looks.

        It is written once, before: what begins may have standard error for itself.
        """
        is_shown = self.notes.is_terminal and not self.as_json
        if is_shown:
            self.notes.print(f"{what} ...", end="\r")
        try:
            yield
        finally:
            if is_shown:
                self.notes.control(Control((ControlType.ERASE_IN_LINE, 2)))

    def confirm(self, question: str, *, yes: bool) -> None:
        """Asks before something that cannot be taken back. Raises: click.UsageError, nobody can be asked."""
        if yes:
            return
        if sys.stdin is None or not sys.stdin.isatty():
            raise click.UsageError(f"{question} Say --yes: there is no terminal to ask at.")
        if not click.confirm(plain(question), err=True):
            self.note("nothing was changed")
            click.get_current_context().exit(1)


def table(headings: Iterable[str], *, right: Sequence[str] = ()) -> Table:
    """An empty table in the command's style; the headings in `right` stand above numbers."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for heading in headings:
        made.add_column(heading, justify="right" if heading in right else "left", overflow="fold")
    return made


def plain(text: str) -> str:
    """The text with what a terminal would obey, or a reader could not see, written as escapes."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def json_line(record: Record) -> str:
    """A record as JSON without a line's end; what `plain` would escape stands in it as JSON's own escapes."""
    is_unicode = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    text = json.dumps(record, ensure_ascii=not is_unicode)
    return text if text.isprintable() else "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in text)


def span(seconds: float | None) -> str:
    """A duration for people: 0.4 s, 12 s, 5 min, 3 h, 2 d."""
    if seconds is None:
        return ""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{max(seconds, 0.0):.1f} s"


def count(number: int, noun: str) -> str:
    """1 message, 2 messages, 1,000 messages."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def size(length: int) -> str:
    """A number of bytes for people: 999, 4.2 K, 17 M."""
    value = float(length)
    for unit in ("", " K", " M"):
        if value < 999.5:
            return f"{value:.1f}{unit}" if unit and value < 10 else f"{value:.0f}{unit}"
        value /= 1024
    return f"{value:.1f} G"


def shown(value: object) -> Text:
    """A value for people."""
    return Text(words(value))


def words(value: object) -> str:
    """A value for people, as plain text."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(plain(str(one)) for one in value)
    return "" if value is None else plain(str(value))


def made_writable() -> bool:
    """Readies the streams: what an encoding has not is written as an escape. False: there is no standard output."""
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
    """Drops what standard output cannot take: Python would try again at its end, with words and a status of its own."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def standard_input() -> BinaryIO:
    """The bytes of standard input. Raises: click.UsageError, it is closed."""
    if sys.stdin is None:
        raise click.UsageError("Standard input is closed: name a file.")
    return sys.stdin.buffer


def _write(lines: Iterable[str]) -> None:
    """Writes lines at once: to write each by itself is a system call a line."""
    click.echo("".join(f"{line}\n" for line in lines), nl=False)


def _padded(column: Sequence[str], *, right: bool) -> list[str]:
    """The texts of a column, each as wide as the widest is on a terminal."""
    widths = [len(one) if one.isascii() else cell_len(one) for one in column]
    most = max(widths)
    return [
        " " * (most - width) + one if right else one + " " * (most - width)
        for one, width in zip(column, widths, strict=True)
    ]


def _console(*, stderr: bool) -> Console:
    looked_at = (sys.stderr if stderr else sys.stdout).isatty()
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=None if looked_at else PIPED_WIDTH)
