"""Tables, styled text and progress bars for people, drawn by rich."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

from rich import box
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.control import Control
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.segment import ControlType
from rich.table import Table
from rich.text import Text

from .wording import plain, span

PIPED_WIDTH: Final = 4000  # tables are never cut when a program reads them
SHOWN_AFTER_SECONDS = 1.0
BAR_WIDTH: Final = 20


class Advance(Protocol):
    """Tells a progress display how much is done, and the `total` if it is known."""

    def __call__(self, done: int, total: int | None = None, /) -> None: ...


class Show(Protocol):
    """Shows progress as a text, with `done` of `total` if they are known."""

    def __call__(self, text: str, done: int = 0, total: int | None = None, /) -> None: ...


def console(*, stderr: bool) -> Console:
    """Standard output, or standard error, for rich."""
    looked_at = (sys.stderr if stderr else sys.stdout).isatty()
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=None if looked_at else PIPED_WIDTH)


def text(of: str, title: str = "") -> Text:
    """A text for people after a red title."""
    return Text.assemble((title, "bold red"), of)


def table(headings: Iterable[str], *, right: Sequence[str] = ()) -> Table:
    """An empty table in the command's style. Columns whose headings are in `right` are aligned to the right."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for heading in headings:
        made.add_column(heading, justify="right" if heading in right else "left", overflow="fold")
    return made


def long_table(
    to: Console, headings: Sequence[str], cells: Sequence[Sequence[str]], right: Collection[str], *, between: str
) -> list[str]:
    """A table that is too long to lay out cell by cell: prints its heading, and returns its lines, the same as those of
    `table`, which the terminal wraps itself.

    Args:
        cells: the texts of each column, from the first row to the last.
    """
    columns = [
        _padded([heading, *column], right=heading in right) for heading, column in zip(headings, cells, strict=True)
    ]
    heading, *lines = map(between.join, zip(*columns, strict=True))
    to.print(Text(heading, style="bold"), soft_wrap=True)
    to.print("\u2500" * cell_len(heading), soft_wrap=True)
    return lines


def _padded(column: Sequence[str], *, right: bool) -> list[str]:
    """The texts of a column, padded to the width of the widest on a terminal."""
    widths = [len(one) if one.isascii() else cell_len(one) for one in column]
    most = max(widths)
    return [
        " " * (most - width) + one if right else one + " " * (most - width)
        for one, width in zip(column, widths, strict=True)
    ]


class LateProgress(Progress):
    """A progress display that shows nothing in the first second."""

    def get_renderables(self) -> Iterable[RenderableType]:
        if any((one.elapsed or 0.0) >= SHOWN_AFTER_SECONDS for one in self.tasks):
            yield from super().get_renderables()


@contextmanager
def progress(to: Console, what: str, unit: str) -> Iterator[Advance]:
    """`Output.progress`, on a terminal."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TextColumn("{task.fields[rate]}"),
    )
    with _bar(to, columns, what) as (bar, task):

        def advance(done: int, total: int | None = None, /) -> None:
            elapsed = bar.tasks[0].elapsed or 0.0
            rate = f"{done / elapsed:,.0f}/s" if elapsed else ""
            bar.update(task, completed=done, total=total, rate=rate, left=time_left(elapsed, done, total))

        yield advance


@contextmanager
def bar(to: Console) -> Iterator[Show]:
    """`Output.bar`, on a terminal."""
    columns = SpinnerColumn(), BarColumn(BAR_WIDTH), TextColumn("{task.description}", markup=False)
    with _bar(to, columns, "") as (made, task):

        def show(given: str, done: int = 0, total: int | None = None, /) -> None:
            left = time_left(made.tasks[0].elapsed or 0.0, done, total)
            made.update(task, description=plain(given), completed=done, total=total, left=left)

        yield show


@contextmanager
def _bar(to: Console, columns: Sequence[ProgressColumn], what: str) -> Iterator[tuple[Progress, TaskID]]:
    """A bar with these columns, the time so far and the time left."""
    shown = (*columns, TimeElapsedColumn(), TextColumn("{task.fields[left]}"))
    with LateProgress(*shown, console=to, transient=True, refresh_per_second=5) as made:
        yield made, made.add_task(what, total=None, rate="", left="")


def time_left(elapsed: float, done: int, total: int | None) -> str:
    """The time left for some work if its speed stays the same; empty if it is not known."""
    return f"{span(elapsed * (total - done) / done)} left" if total and 0 < done < total else ""


@contextmanager
def waiting(to: Console, what: str) -> Iterator[None]:
    """`Output.waiting`, on a terminal."""
    to.print(f"{what} ...", end="\r")
    try:
        yield
    finally:
        to.control(Control((ControlType.ERASE_IN_LINE, 2)))
