"""The report of a run, as JSON for programs and as Markdown for people.

In the Markdown each question has a table with a line for each contestant and figure: the median of the rounds, the
quartiles, and the ratio to our own figure within the rounds. Below it are the bars, and the settings of each
contestant. `pages.py` writes the parts of a run that the project's own pages show.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import (
    RATE,
    SYSTEM,
    USER,
    Bar,
    Entry,
    Place,
    Result,
    Spread,
    Verdict,
    measured,
    ratio,
    spread,
    verdict,
)

WORDS: dict[Verdict, str] = {
    "missed": "**missed**",
    "not measured": "not measured",
    "bar": "passes",
    "goal": "reaches the goal",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run: its time, its machine, the seconds for each cell, and the answers."""

    started: str
    facts: Mapping[str, str]
    rounds: int
    seconds: float
    scale: float
    results: Sequence[Result]


def as_json(run: Run) -> str:
    """Returns the run with every figure of every round."""
    content = {
        "started": run.started,
        "facts": dict(run.facts),
        "rounds": run.rounds,
        "seconds": run.seconds,
        "scale": run.scale,
        "questions": [_question(result) for result in run.results],
    }
    return json.dumps(content, indent=2) + "\n"


def _question(result: Result) -> dict[str, Any]:
    question = result.question
    return {
        "name": question.name,
        "title": question.title,
        "unit": question.unit,
        "contestants": [_contestant(entry) for entry in result.entries],
        "bars": [_bar(result, bar) for bar in question.bars],
        "ahead_of_peers": ahead_of_peers(result),
    }


def _contestant(entry: Entry) -> dict[str, Any]:
    spreads = {figure: spread(entry.values(figure)) for figure in figures_of(entry)}
    return {
        "name": entry.name,
        "role": entry.role,
        "place": entry.place,
        "settings": entry.settings,
        "cannot": entry.cannot,
        "rounds": [dict(figures) for figures in entry.rounds],
        "figures": {figure: asdict(found) for figure, found in spreads.items() if found is not None},
    }


def _bar(result: Result, bar: Bar) -> dict[str, Any]:
    value = measured(result, bar)
    return asdict(bar) | {"value": None if value is None else asdict(value), "verdict": verdict(bar, value)}


def figures_of(entry: Entry) -> list[str]:
    """Returns the names of an entry's figures."""
    return list(dict.fromkeys(figure for figures in entry.rounds for figure in figures))


def ahead_of_peers(result: Result, figure: str = RATE) -> dict[str, float]:
    """Returns by peer how many times as good our figure is as the peer's, compared within the rounds.

    A higher rate is better; all other figures are times, of which a lower one is better.
    """
    ours = result.first("ours")
    if ours is None:
        return {}
    ratios = {
        entry.name: ratio(result, figure, ours.name, entry.name) for entry in result.entries if entry.role == "peer"
    }
    found = {name: value.median for name, value in ratios.items() if value is not None}
    return found if figure == RATE else {name: 1 / value for name, value in found.items()}


def as_markdown(run: Run) -> str:
    """Returns the run as a page."""
    head = [
        "# Benchmark report",
        how(run),
        facts(run),
        "## All bars",
        table(["question", *BAR_HEAD], bar_rows(run.results)),
    ]
    limit = beside_the_limit(run.results)
    if limit:
        head += ["## Beside the limit", limit]
    return "\n\n".join(head + [part for result in run.results for part in _section(result)]) + "\n"


def how(run: Run) -> str:
    """Describes the time and settings of a run."""
    scale = "" if run.scale == 1 else f" **Everything large is at {run.scale:g} of its size: no result.**"
    return (
        f"Started {run.started}; {run.rounds} rounds of {run.seconds:g} s for each figure, fewer where one is long, "
        "contestants in turn. A figure is the median of the rounds; ratios are taken within rounds. Bodies have 1 KiB."
        f"{scale}"
    )


def facts(run: Run) -> str:
    """Describes the environment of a run."""
    return table(["", ""], [[name, value] for name, value in run.facts.items()])


LIMIT_HEAD = ["work", "where", "inorder", "the limit", "ratio", "of processor time", "inorder, us", "the limit, us"]


def beside_the_limit(results: Sequence[Result]) -> str:
    """Returns a table of our rate and the limit's, in memory first, with the user and system time of a message."""
    places: tuple[Place, ...] = ("memory", "disk")
    rows = [row for place in places for result in results for row in _beside_the_limit(result, place)]
    return table(LIMIT_HEAD, rows) if rows else ""


def _beside_the_limit(result: Result, place: Place) -> list[list[str]]:
    ours, limit = result.first("ours", place), result.first("limit", place)
    if ours is None or limit is None:
        return []
    value = ratio(result, RATE, ours.name, limit.name)
    if value is None:
        return []
    rates = [number(statistics.median(entry.values(RATE))) for entry in (ours, limit)]
    costs = [[sum(both) for both in zip(*_costs(entry), strict=True)] for entry in (ours, limit)]
    saved = spread([least / own for own, least in zip(*costs, strict=True) if own])
    shown = "" if saved is None else with_quartiles(saved)
    return [[result.question.title, place, *rates, with_quartiles(value), shown, _cost(ours), _cost(limit)]]


def _costs(entry: Entry) -> tuple[list[float], list[float]]:
    return entry.values(USER), entry.values(SYSTEM)


def _cost(entry: Entry) -> str:
    return " + ".join(f"{statistics.median(values):.1f}" for values in _costs(entry) if values)


BAR_HEAD = ["figure", "measured", "first bar", "goal", ""]


def _section(result: Result) -> list[str]:
    rows = [row for entry in result.entries for row in _lines(result, entry)]
    parts = [
        f"## {result.question.title}",
        table(["", "figure", "median", "quartiles", "ours / this"], rows),
    ]
    if result.question.bars:
        parts.append(table(BAR_HEAD, _bars(result)))
    ahead = ahead_of_peers(result)
    if ahead:
        peer, least = min(ahead.items(), key=lambda item: item[1])
        parts.append(f"Ahead of every peer: {'yes' if least > 1 else '**no**'}; against the best, {peer}: {least:.2f}.")
    parts.append("\n".join(f"* {entry.name}: {entry.settings}" for entry in result.entries if entry.settings))
    return parts


def _lines(result: Result, entry: Entry) -> list[list[str]]:
    if entry.cannot is not None:
        return [[entry.name, "", f"cannot: {entry.cannot}", "", ""]]
    ours = result.first("ours", entry.place) or entry
    rows = []
    for figure in figures_of(entry):
        found = spread(entry.values(figure))
        compared = ratio(result, figure, ours.name, entry.name) if entry is not ours else None
        named = result.question.unit if figure == RATE else figure
        rows.append([entry.name, named, *_spread(found), "" if compared is None else f"{compared.median:.2f}"])
    return rows


def bar_rows(results: Sequence[Result]) -> list[list[str]]:
    """Returns a line for each bar; missed bars come first."""
    rows = [[result.question.title, *row] for result in results for row in _bars(result)]
    order = list(WORDS.values())
    return sorted(rows, key=lambda row: order.index(row[-1]))


def judged(results: Sequence[Result]) -> str:
    """Returns a table of the bars that could be judged."""
    rows = [row for row in bar_rows(results) if row[-1] != WORDS["not measured"]]
    return table(["question", *BAR_HEAD], rows) if rows else ""


def verdicts(results: Sequence[Result]) -> Counter[Verdict]:
    """Returns the number of bars with each verdict."""
    return Counter(verdict(bar, measured(result, bar)) for result in results for bar in result.question.bars)


def _bars(result: Result) -> list[list[str]]:
    rows = []
    for bar in result.question.bars:
        value = measured(result, bar)
        what = f"{bar.of}: {bar.figure}" + (f" / {bar.against}" if bar.against is not None else "")
        found = "" if value is None else with_quartiles(value)
        rows.append([what, found, f"{bar.words} {bar.first:g}", f"{bar.goal:g}", WORDS[verdict(bar, value)]])
    return rows


def with_quartiles(value: Spread) -> str:
    """Returns a median with its quartiles, as text."""
    return f"{value.median:.3g} ({value.lower:.3g} to {value.upper:.3g})"


def _spread(value: Spread | None) -> list[str]:
    if value is None:
        return ["", ""]
    return [number(value.median), f"{number(value.lower)} to {number(value.upper)}"]


def number(value: float) -> str:
    """Returns a figure as text with three digits at least, and with commas between thousands."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def write(run: Run, *, json_file: Path | None, markdown_file: Path | None) -> None:
    """Writes the requested reports for the questions answered so far."""
    if json_file is not None:
        json_file.write_text(as_json(run), encoding="utf-8")
    if markdown_file is not None:
        markdown_file.write_text(as_markdown(run), encoding="utf-8")
