"""Writes the report of an audit as one self-contained HTML page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from ...support.advice import how_to_install
from .findings import KINDS
from .summary import Audited

STYLE = """
:root { color-scheme: light dark; --ink: #1f2933; --soft: #5a6774; --faint: #7b8794; --line: #e4e7eb; --back: #f5f7fa;
        --card: #fff; --good: #22753c; --bad: #b02a2a; --wrong: #b02a2a; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --soft: #a3afbb; --faint: #8b97a3; --line: #323f4b; --back: #12181f; --card: #1b232c;
          --good: #1f6f39; --bad: #a32828; --wrong: #ff8f8f; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink);
       font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 26px; margin: 0 0 16px; }
h2 { font-size: 18px; margin: 36px 0 12px; }
.verdict { padding: 14px 18px; border-radius: 8px; color: #fff; font-size: 17px; font-weight: 600; }
.good { background: var(--good); } .bad { background: var(--bad); }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(250px, 1fr)); gap: 12px; margin: 16px 0 0; }
dl div, figure, .table { background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
dl div { padding: 10px 14px; } dt { color: var(--soft); font-size: 13px; } dd { margin: 0; font-weight: 600; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(460px, 1fr)); gap: 16px; }
figure { margin: 0; padding: 14px 16px 10px; } figure h3 { margin: 0 0 6px; font-size: 15px; }
figure svg { width: 100%; height: auto; display: block; background: #fff; border-radius: 4px; }
figcaption { color: var(--soft); font-size: 13px; margin-top: 6px; }
.table { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { text-align: left; color: var(--soft); font-weight: 600; font-size: 13px; }
th, td { padding: 7px 12px; border-bottom: 1px solid var(--line); vertical-align: top; }
tr:last-child td { border-bottom: 0; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code { font: 12.5px/1.4 ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
.id { min-width: 130px; max-width: 210px; } .what { min-width: 150px; }
.error { color: var(--wrong); font-weight: 600; } .none td { color: var(--faint); }
details { margin-top: 12px; } summary { color: var(--soft); cursor: pointer; padding: 4px 0; }
footer { margin-top: 32px; color: var(--soft); font-size: 13px; }
@media print {
  :root { color-scheme: light; --ink: #000; --soft: #444; --line: #bbb; --back: #fff; --card: #fff; --wrong: #8f1f1f; }
  main { max-width: none; padding: 0; } h2 { break-after: avoid; } figure, tr, dl div { break-inside: avoid; }
  .verdict { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .table { overflow: visible; border-radius: 0; } .pictures { grid-template-columns: 1fr 1fr; }
}
@media (max-width: 560px) {
  .pictures { grid-template-columns: 1fr; } main { padding: 16px 12px; } th, td { padding: 6px 8px; }
  dl { grid-template-columns: 1fr 1fr; } dl div { padding: 8px 10px; }
}
"""
KINDS_HEAD = '<tr><th>Finding</th><th class="n">Errors</th><th class="n">Notes</th><th>Meaning</th></tr>'
ID = re.compile(r'(\bid="|url\(#|href="#)')
NO_PICTURES = f"The report has no pictures: they need matplotlib, {how_to_install('report')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """An SVG with a description."""

    title: str
    caption: str
    svg: str


def html_report(
    title: str, audited: Audited, pictures: Sequence[Picture] | None, examples: Sequence[Mapping[str, Any]]
) -> str:
    """The page.

    Args:
        pictures: None: no library is installed to draw them, and the page says so.
        examples: the first findings, as rows of the findings table.
    """
    facts = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in audited.facts().items()
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
<div class="verdict {"good" if audited.error_count == 0 else "bad"}">{escape(audited.verdict())}</div>
<dl>{facts}</dl>
<h2>What was looked for</h2>
{_kinds(audited)}
{_examples(audited, examples)}
<h2>Pictures</h2>
{_pictures(pictures)}
<footer>All findings are in findings.parquet and findings.csv beside this page; the counts in summary.json.
What was lost after the last delivery cannot be seen from an archive.</footer>
</main>
</body>
</html>
"""


def _kinds(audited: Audited) -> str:
    """The kinds that were found; the others are folded away below them."""
    rows = {kind: (audited.errors.get(kind, 0), audited.notes.get(kind, 0)) for kind in KINDS}
    found = "".join(_kind(kind, *numbers) for kind, numbers in rows.items() if any(numbers))
    nothing = [_kind(kind, *numbers) for kind, numbers in rows.items() if not any(numbers)]
    shown = f'<div class="table"><table>{KINDS_HEAD}{found}</table></div>' if found else "<p>Nothing was found.</p>"
    if not nothing:
        return shown
    kinds = "1 kind of finding" if len(nothing) == 1 else f"{len(nothing)} kinds of findings"
    table = f'<div class="table"><table>{KINDS_HEAD}{"".join(nothing)}</table></div>'
    return f"{shown}<details><summary>{kinds} that were looked for and not found</summary>{table}</details>"


def _kind(kind: str, errors: int, notes: int) -> str:
    row = "" if errors or notes else ' class="none"'
    error = ' class="n error"' if errors else ' class="n"'
    return (
        f'<tr{row}><td>{kind.replace("_", " ")}</td><td{error}>{errors:,}</td><td class="n">{notes:,}</td>'
        f"<td>{escape(KINDS[kind].meaning)}</td></tr>"
    )


def _pictures(pictures: Sequence[Picture] | None) -> str:
    if pictures is None:
        return f"<p>{escape(NO_PICTURES, quote=False)}</p>"
    figures = "".join(_figure(n, picture) for n, picture in enumerate(pictures))
    return f'<div class="pictures">{figures}</div>'


def _figure(number: int, picture: Picture) -> str:
    # Two separately made SVGs may use the same id; in one page ids must differ.
    svg = ID.sub(rf"\g<1>p{number}-", picture.svg)
    label = escape(picture.title, quote=True)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    return f"<figure><h3>{escape(picture.title)}</h3>{svg}<figcaption>{escape(picture.caption)}</figcaption></figure>"


def _examples(audited: Audited, examples: Sequence[Mapping[str, Any]]) -> str:
    if not examples:
        return ""
    total = audited.error_count + audited.note_count
    shown = f"the first {len(examples):,} of {total:,}" if total > len(examples) else "all of them"
    head = (
        "<tr><th>Finding</th><th>What is wrong</th><th>Queue</th><th class='n'>Delivery</th>"
        "<th class='n'>Message</th><th class='n'>Place</th><th>Group</th></tr>"
    )
    return f'<h2>Findings: {shown}</h2><div class="table"><table>{head}{"".join(map(_example, examples))}</table></div>'


def _example(row: Mapping[str, Any]) -> str:
    group = "" if row["group_id"] is None else _group(row["group_id"])
    message = f"{row['sequence_number']}" + (f" +{row['offset']:,}" if row["offset"] else "")
    weight = ' class="error"' if row["severity"] == "error" else ""
    return (
        f"<tr><td{weight}>{row['kind'].replace('_', ' ')}</td><td class='what'>{escape(row['text'])}</td>"
        f'<td>{escape(str(row["queue"]))}</td><td class="n">{row["delivery_number"]:,}</td>'
        f'<td class="n">{message}</td><td class="n">{row["rank"]} / {row["number"]:,}.{row["ordinal"]}</td>'
        f'<td class="id"><code>{group}</code></td></tr>'
    )


def _group(hexadecimal: str) -> str:
    """A group id without its padding zeros."""
    short = re.sub("(00)+$", "", hexadecimal)
    return short or hexadecimal
