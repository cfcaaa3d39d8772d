"""The report: what a run found, as JSON for programs and as Markdown for people.

In the Markdown each question has a table with a line for each contestant and figure: the median of the rounds, the
lowest and the highest, and how our own figure compares within the rounds. Below it stand the bars, and the settings
that each contestant had.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import Bar, Entry, Result, Spread, measured, ratio, spread, verdict

WORDS = {"goal": "reaches the goal", "bar": "passes", "missed": "**missed**", "not measured": "not measured"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run: where and when, how long each cell was measured, and the answers."""

    started: str
    facts: Mapping[str, str]
    rounds: int
    seconds: float
    scale: float
    results: Sequence[Result]


def as_json(run: Run) -> str:
    """The run with every figure of every round."""
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
        "settings": entry.settings,
        "cannot": entry.cannot,
        "rounds": [dict(figures) for figures in entry.rounds],
        "figures": {figure: asdict(found) for figure, found in spreads.items() if found is not None},
    }


def _bar(result: Result, bar: Bar) -> dict[str, Any]:
    value = measured(result, bar)
    return asdict(bar) | {"value": None if value is None else asdict(value), "verdict": verdict(bar, value)}


def figures_of(entry: Entry) -> list[str]:
    """The names of an entry's figures."""
    return list(dict.fromkeys(figure for figures in entry.rounds for figure in figures))


def ahead_of_peers(result: Result) -> dict[str, float]:
    """Our rate over each peer's, compared within the rounds, by the name of the peer."""
    ours = next((entry.name for entry in result.entries if entry.role == "ours"), None)
    if ours is None:
        return {}
    ratios = {entry.name: ratio(result, "rate", ours, entry.name) for entry in result.entries if entry.role == "peer"}
    return {name: value.median for name, value in ratios.items() if value is not None}


def as_markdown(run: Run) -> str:
    """The run as a page."""
    scale = "" if run.scale == 1 else f" **Everything large is at {run.scale:g} of its size: a quick look, no result.**"
    head = [
        "# Benchmark report",
        f"Started {run.started}; {run.rounds} rounds of {run.seconds:g} s for each figure, contestants in turn. A "
        "figure is the median of the rounds with the lowest and the highest; ratios are taken within rounds. "
        f"Bodies have 1 KiB.{scale}",
        _table(["", ""], [[name, value] for name, value in run.facts.items()]),
        "## All bars",
        _table(
            ["question", *BAR_HEAD], [[result.question.title, *row] for result in run.results for row in _bars(result)]
        ),
    ]
    return "\n\n".join(head + [part for result in run.results for part in _section(result)]) + "\n"


BAR_HEAD = ["figure", "measured", "first bar", "goal", ""]


def _section(result: Result) -> list[str]:
    rows = [row for entry in result.entries for row in _lines(result, entry)]
    parts = [
        f"## {result.question.title}",
        _table(["", "figure", "median", "lowest to highest", "ours / this"], rows),
    ]
    if result.question.bars:
        parts.append(_table(BAR_HEAD, _bars(result)))
    ahead = ahead_of_peers(result)
    if ahead:
        peer, least = min(ahead.items(), key=lambda item: item[1])
        parts.append(f"Ahead of every peer: {'yes' if least > 1 else '**no**'}; against the best, {peer}: {least:.2f}.")
    parts.append("\n".join(f"* {entry.name}: {entry.settings}" for entry in result.entries if entry.settings))
    return parts


def _lines(result: Result, entry: Entry) -> list[list[str]]:
    if entry.cannot is not None:
        return [[entry.name, "", f"cannot: {entry.cannot}", "", ""]]
    ours = next((other.name for other in result.entries if other.role == "ours"), entry.name)
    rows = []
    for figure in figures_of(entry):
        found = spread(entry.values(figure))
        compared = ratio(result, figure, ours, entry.name) if entry.name != ours else None
        named = result.question.unit if figure == "rate" else figure
        rows.append([entry.name, named, *_spread(found), "" if compared is None else f"{compared.median:.2f}"])
    return rows


def _bars(result: Result) -> list[list[str]]:
    rows = []
    for bar in result.question.bars:
        value = measured(result, bar)
        what = f"{bar.of}: {bar.figure}" + (f" / {bar.against}" if bar.against is not None else "")
        least = "at least" if bar.against is not None else "at most"
        found = "" if value is None else f"{value.median:.3g} ({value.low:.3g} to {value.high:.3g})"
        rows.append([what, found, f"{least} {bar.first:g}", f"{bar.goal:g}", WORDS[verdict(bar, value)]])
    return rows


def _spread(value: Spread | None) -> list[str]:
    if value is None:
        return ["", ""]
    return [number(value.median), f"{number(value.low)} to {number(value.high)}"]


def number(value: float) -> str:
    """A figure for people: three digits at least, thousands apart."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def write(run: Run, *, json_file: Path | None, markdown_file: Path | None) -> None:
    """Writes what is wanted, as far as the run has come."""
    if json_file is not None:
        json_file.write_text(as_json(run), encoding="utf-8")
    if markdown_file is not None:
        markdown_file.write_text(as_markdown(run), encoding="utf-8")
