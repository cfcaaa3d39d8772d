"""Writes the figures of one run into the project's pages.

    README.md                         the comparison for new readers
    docs/explanation/benchmarks.md    where we are behind, every bar, every row, the settings of all
    docs/explanation/durability.md    the ways to sync, which `group_commit.py` measures

In each page one comment line begins the generated part and another one ends it; the rest is written by hand.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.harness import RATE, Entry, Result, spread
from benchmarks.report import (
    BAR_HEAD,
    Run,
    ahead_of_peers,
    bar_rows,
    beside_the_limit,
    facts,
    figures_of,
    how,
    number,
    table,
    verdicts,
)

ROOT = Path(__file__).parents[1]
FIRST_PAGE, PAGE, DURABILITY = (
    ROOT / name for name in ("README.md", "docs/explanation/benchmarks.md", "docs/explanation/durability.md")
)
BEGIN, END = "<!-- Written by `make bench`, from here -->", "<!-- to here -->"

WIDTH: Final = 118

FIRST_ROWS: Final = (
    ("put_one", RATE, "put, one by one"),
    ("get_one", RATE, "get, one by one"),
    ("put_many", RATE, "put_many(100)"),
    ("get_many_outside", RATE, "get_many(100)"),
    ("eight_processes", RATE, "eight processes putting"),
    ("wake_up", "p50 ms", "from a put to a waiting process, ms"),
)
COMPARED = ("ours", "limit", "peer")

Row = tuple[str, Result, str]
"""A line of a table: its label, the answers to a question, and the figure that it shows."""


class PageError(Exception):
    """A page lacks the two lines that mark the place of the figures."""


def replaced(text: str, part: str) -> str:
    """Returns the text with this part between its two lines. Raises: PageError, the lines are missing."""
    before, begin, rest = text.partition(BEGIN + "\n")
    _, end, after = rest.partition(END + "\n")
    if not begin or not end:
        raise PageError(f"a page has no two lines {BEGIN!r} and {END!r}")
    return f"{before}{begin}\n{part}\n\n{end}{after}"


def rewrite(page: Path, part: str) -> None:
    """Writes the part into the page, with its prose wrapped to the width of the page."""
    lines = [line if line.startswith(("|", "* ", "#")) else textwrap.fill(line, WIDTH) for line in part.splitlines()]
    page.write_text(replaced(page.read_text(encoding="utf-8"), "\n".join(lines)), encoding="utf-8")


def write(run: Run) -> None:
    """Writes the run into the first page and into the page of benchmarks."""
    rewrite(FIRST_PAGE, first_part(run))
    rewrite(PAGE, part(run))


def first_part(run: Run) -> str:
    """Returns the part of the first page: a table, then the kinds of work in which we are slower."""
    results = {result.question.name: result for result in run.results}
    rows = [(label, results[name], figure) for name, figure, label in FIRST_ROWS if name in results]
    sync, _, _ = run.facts["sync"].partition(":")
    machine = f"{run.facts['processor']}, {run.facts['file system'].split()[0]}, {sync} a sync"
    return "\n\n".join(
        [
            f"Messages of 1 KiB a second, on disk before a call returns; {run.started[:10]}, medians of {run.rounds} "
            f"rounds; {machine}.{_quick(run)} *The limit* is the least queue that SQLite can be: one table, one "
            "counter, no groups.",
            compared(rows),
            _first_behind(rows),
        ]
    )


def part(run: Run) -> str:
    """Returns the part of the page of benchmarks."""
    rates = [(_title(result), result, RATE) for result in run.results if _has_peers(result, RATE)]
    others = [result for result in run.results if _has_peers(result) and _more_than_a_rate(result)]
    sections = [
        how(run),
        facts(run),
        "### Where it is behind",
        "\n".join(f"* {line}" for line in behind(run.results)) or "Nowhere: no peer is ahead in any row below.",
        "### The bars",
        bars_in_short(run.results),
        table(["question", *BAR_HEAD], bar_rows(run.results)),
        "### Beside the others",
        "Each median with half the distance of its quartiles, in parts of the median.",
        *(compared(rows, noise=True) for rows in _by_ours(rates)),
        "### Beside the limit",
        "Messages a second; microseconds of processor time for a message, user + system.",
        beside_the_limit(run.results),
    ]
    for result in others:
        title = result.question.title
        sections += [f"### {title[0].upper()}{title[1:]}", _all_figures(result)]
    return "\n\n".join([*sections, "### Who cannot, and why", _refusals(run), "### Settings", _settings(run)])


def _quick(run: Run) -> str:
    return "" if run.scale == 1 else " **Everything large was made small: no result.**"


def _title(result: Result) -> str:
    return f"{result.question.title}, {result.question.unit}"


def _by_ours(rows: Sequence[Row]) -> list[list[Row]]:
    """Returns the rows that share a table: those whose first entry of ours has the same name."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        ours = row[1].first("ours")
        found.setdefault(ours.name if ours is not None else "", []).append(row)
    return list(found.values())


def compared(rows: Sequence[Row], *, noise: bool = False) -> str:
    """Returns a table: a line for each kind of work, a column for each system that has a figure in one of them."""
    names = dict.fromkeys(
        entry.name for _, result, figure in rows for entry in _entries(result) if entry.values(figure)
    )
    lines = []
    for label, result, figure in rows:
        entries = [result.entry(name) for name in names]
        lines.append([label, *(_bold(entry, _cell(entry, figure, noise=noise)) for entry in entries)])
    return table(["work", *names], lines)


def _bold(entry: Entry | None, cell: str) -> str:
    return f"**{cell}**" if entry is not None and entry.role == "ours" else cell


def _entries(result: Result) -> list[Entry]:
    """Returns the entries to compare: the first of ours on disk, the limit, the peers."""
    return [
        entry
        for entry in result.entries
        if entry.role == "peer" or (entry.role in COMPARED and entry is result.first(entry.role))
    ]


def _cell(entry: Entry | None, figure: str, *, noise: bool) -> str:
    value = spread(entry.values(figure)) if entry is not None else None
    if value is None:
        return "cannot" if entry is not None else ""
    half = f" ±{(value.upper - value.lower) / 2 / value.median:.0%}" if noise and value.median else ""
    return f"{number(value.median)}{half}"


def behind(results: Sequence[Result]) -> list[str]:
    """Returns a line for each kind of work and figure in which a peer is ahead of us, the worst first."""
    found = []
    for result in results:
        for figure in (
            RATE,
            *(figure for name, figure, _ in FIRST_ROWS if name == result.question.name and figure != RATE),
        ):
            ahead = _peers_ahead(result, figure)
            if ahead:
                found.append((ahead[0][1], f"{result.question.title}: {_times(ahead, figure)}"))
    return [line for _, line in sorted(found, reverse=True)]


def _peers_ahead(result: Result, figure: str) -> list[tuple[str, float]]:
    """Returns the peers that are ahead of us, each with the ratio of its figure to ours; the best first."""
    ahead = [(name, 1 / value) for name, value in ahead_of_peers(result, figure).items() if value < 1]
    return sorted(ahead, key=lambda item: -item[1])


def _times(ahead: Sequence[tuple[str, float]], figure: str) -> str:
    what = "as fast" if figure == RATE else f"as good ({figure})"
    return ", ".join(f"{name} is {times:.2f} times" for name, times in ahead) + f" {what}"


def _first_behind(rows: Sequence[Row]) -> str:
    found = []
    for label, result, figure in rows:
        ahead = _peers_ahead(result, figure)
        if ahead:
            name, times = ahead[0]
            found.append(f"{label} ({name}, {times:.2f} times)")
    if not found:
        return "In none of these rows is anybody ahead of it but the limit."
    return f"**Others are ahead in** {', '.join(found)}. These are medians of the ratios of each round."


def bars_in_short(results: Sequence[Result]) -> str:
    """Explains bars, and reports how many are met."""
    count = verdicts(results)
    met = count["bar"] + count["goal"]
    missed = f"{count['missed']} are missed" if count["missed"] else "none is missed"
    open_ = f", {count['not measured']} could not be measured" if count["not measured"] else ""
    return (
        "A bar is a requirement on one figure, mostly as a ratio to another's; its goal is a higher one. "
        f"Of {sum(count.values())} bars {met} are met, {count['goal']} of them with their goal; {missed}{open_}."
    )


def _has_peers(result: Result, figure: str | None = None) -> bool:
    return any(
        entry.role == "peer" and (figure in figures_of(entry) if figure is not None else bool(entry.rounds))
        for entry in result.entries
    )


def _more_than_a_rate(result: Result) -> bool:
    return any(name.endswith(("ms", "%", "core")) for entry in result.entries for name in figures_of(entry))


def _all_figures(result: Result) -> str:
    entries = [entry for entry in result.entries if entry.rounds]
    names = list(dict.fromkeys(figure for entry in entries for figure in figures_of(entry)))
    head = [result.question.unit if name == RATE else name for name in names]
    return table(["", *head], [[entry.name, *(_cell(entry, name, noise=True) for name in names)] for entry in entries])


def _refusals(run: Run) -> str:
    reasons: dict[str, dict[str, list[str]]] = {}
    for result in run.results:
        for entry in result.entries:
            if entry.cannot is not None:
                reasons.setdefault(entry.name, {}).setdefault(entry.cannot, []).append(result.question.name)
    lines = [
        f"* {name}: " + "; ".join(f"{reason} ({', '.join(asked)})" for reason, asked in found.items())
        for name, found in reasons.items()
    ]
    return "\n".join(lines) or "Everyone answered everything."


def _settings(run: Run) -> str:
    found: dict[str, str] = {}
    for result in run.results:
        for entry in _entries(result):
            if entry.settings not in ("", *found.values()):
                found.setdefault(entry.name, entry.settings)
    return "\n".join(f"* {name}: {settings}" for name, settings in found.items())
