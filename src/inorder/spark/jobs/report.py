"""Writes the report of an audit as one self-contained HTML page."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

from ...support.advice import how_to_install
from .findings import KINDS
from .summary import Audited, utc_text

STYLE = """
:root { color-scheme: light dark; --ink: #1f2933; --soft: #5a6774; --line: #e4e7eb; --axis: #9aa5b1; --back: #f5f7fa;
        --card: #fff; --good: #22753c; --bad: #b02a2a; --wrong: #b02a2a;
        --blue: #2b6cb0; --red: #c53030; --amber: #b86e0c; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --soft: #a3afbb; --line: #323f4b; --axis: #7b8794; --back: #12181f; --card: #1b232c;
          --good: #1f6f39; --bad: #a32828; --wrong: #ff8f8f; --blue: #6ea8dc; --red: #f07178; --amber: #e8a33d; }
  figure image, figure [id$="QuadMesh_1"] { filter: invert(1) hue-rotate(180deg); }
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
figure svg { width: 100%; height: auto; display: block; }
figcaption { color: var(--soft); font-size: 13px; margin-top: 6px; }
.table { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { text-align: left; color: var(--soft); font-weight: 600; font-size: 13px; }
th, td { padding: 7px 12px; border-bottom: 1px solid var(--line); vertical-align: top; }
tr:last-child td { border-bottom: 0; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code { font: 12.5px/1.4 ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
.about { margin: 16px 0 0; color: var(--soft); font-size: 13px; } .about div { margin-top: 2px; }
.about b { display: inline-block; min-width: 84px; font-weight: 600; }
pre { margin: 8px 0 12px; padding: 10px 14px; background: var(--card); border: 1px solid var(--line);
      border-radius: 8px; white-space: pre-wrap; overflow-wrap: anywhere; }
.what { min-width: 220px; } .what code { display: block; margin-top: 3px; color: var(--soft); }
.error { color: var(--wrong); font-weight: 600; } .absent { color: var(--soft); }
footer { margin-top: 32px; color: var(--soft); font-size: 13px; }
@media print {
  :root { color-scheme: light; --ink: #000; --soft: #444; --line: #bbb; --back: #fff; --wrong: #8f1f1f; }
  @page { margin: 14mm; }
  body { font-size: 12px; } main { max-width: none; padding: 0; }
  h2 { break-after: avoid; } figure, tr, dl div { break-inside: avoid; } thead { display: table-header-group; }
  .verdict { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .table { overflow: visible; border-radius: 0; } .pictures { grid-template-columns: 1fr 1fr; }
}
@media screen and (max-width: 560px) {
  .pictures { grid-template-columns: 1fr; } main { padding: 16px 12px; } th, td { padding: 6px 8px; }
  dl { grid-template-columns: 1fr 1fr; } dl div { padding: 8px 10px; } .what { min-width: 180px; }
}
"""
KINDS_HEAD = '<thead><tr><th>Finding</th><th class="n">Errors</th><th class="n">Notes</th><th>Meaning</th></tr></thead>'
EXAMPLES_HEAD = (
    "<thead><tr><th>Finding</th><th>What is wrong, and the condition that selects its messages</th>"
    '<th class="n">Delivery</th><th class="n">Message</th><th class="n">Place</th></tr></thead>'
)
ID = re.compile(r'(\bid="|url\(#|href="#)')
NO_PICTURES = f"The report has no pictures: they need matplotlib, {how_to_install('report')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """An SVG with a description. Its colours are variables of the page."""

    title: str
    caption: str
    svg: str


class Drawn(NamedTuple):
    """The pictures of an audit, and the titles of those for which there is nothing to show."""

    pictures: list[Picture]
    empty: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The origin of an audit, for a reader of its report.

    Args:
        title: the title of the page.
        archive: the folder that was audited; empty: a DataFrame.
        made_at: when the audit began, in seconds since 1970.
        versions: of inorder, PySpark and Python.
        call: the command or call that repeats the audit.
        history: events of the run that made the archive, one sentence each.
    """

    title: str
    archive: str
    made_at: float
    versions: str
    call: str
    history: Sequence[str] = ()


def html_report(
    source: Provenance, audited: Audited, drawn: Drawn | None, examples: Sequence[Mapping[str, Any]]
) -> str:
    """The page.

    Args:
        drawn: None: no library is installed to draw pictures, and the page says so.
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
<title>{escape(source.title)}</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>{escape(source.title)}</h1>
<div class="verdict {"good" if audited.error_count == 0 else "bad"}">{escape(audited.verdict())}</div>
{_about(source)}
<dl>{facts}</dl>
{_history(source.history)}
{_kinds(audited)}
{_examples(source, audited, examples)}
<h2>Pictures</h2>
{_pictures(drawn)}
<footer>All findings are in findings.parquet and findings.csv beside this page; the counts in summary.json.
An archive does not show messages that were lost after the last delivery.</footer>
</main>
</body>
</html>
"""


def _about(source: Provenance) -> str:
    lines = {
        "Archive": f"<code>{escape(source.archive)}</code>" if source.archive else "a DataFrame",
        "Audited": utc_text(source.made_at),
        "Versions": escape(source.versions),
        "Command": f"<code>{escape(source.call)}</code>",
    }
    return f'<div class="about">{"".join(f"<div><b>{name}</b> {text}</div>" for name, text in lines.items())}</div>'


def _history(events: Sequence[str]) -> str:
    if not events:
        return ""
    return f"<h2>During the run</h2><ul>{''.join(f'<li>{escape(event)}</li>' for event in events)}</ul>"


def _kinds(audited: Audited) -> str:
    """The kinds that were found, as a table; the others in one line."""
    rows = {kind: (audited.errors.get(kind, 0), audited.notes.get(kind, 0)) for kind in KINDS}
    found = "".join(_kind(kind, *numbers) for kind, numbers in rows.items() if any(numbers))
    absent = [kind.replace("_", " ") for kind, numbers in rows.items() if not any(numbers)]
    table = f'<div class="table"><table>{KINDS_HEAD}<tbody>{found}</tbody></table></div>' if found else ""
    line = f'<p class="absent">Looked for and not found: {", ".join(absent)}.</p>' if absent else ""
    return f"<h2>Kinds of findings</h2>{table}{line}"


def _kind(kind: str, errors: int, notes: int) -> str:
    error = ' class="n error"' if errors else ' class="n"'
    return (
        f'<tr><td>{kind.replace("_", " ")}</td><td{error}>{errors:,}</td><td class="n">{notes:,}</td>'
        f"<td>{escape(KINDS[kind].meaning)}</td></tr>"
    )


def _pictures(drawn: Drawn | None) -> str:
    if drawn is None:
        return f"<p>{escape(NO_PICTURES, quote=False)}</p>"
    figures = "".join(_figure(n, picture) for n, picture in enumerate(drawn.pictures))
    line = f'<p class="absent">Nothing to draw: {", ".join(drawn.empty)}.</p>' if drawn.empty else ""
    return f'<div class="pictures">{figures}</div>{line}'


def _figure(number: int, picture: Picture) -> str:
    # Two separately made SVGs may use the same id; in one page ids must differ.
    svg = ID.sub(rf"\g<1>p{number}-", picture.svg)
    label = escape(picture.title, quote=True)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    return f"<figure><h3>{escape(picture.title)}</h3>{svg}<figcaption>{escape(picture.caption)}</figcaption></figure>"


def _examples(source: Provenance, audited: Audited, examples: Sequence[Mapping[str, Any]]) -> str:
    if not examples:
        return ""
    total = audited.error_count + audited.note_count
    shown = f"the first {len(examples):,} of {total:,}" if total > len(examples) else "all of them"
    rows = f"spark.read.parquet({json.dumps(source.archive)})" if source.archive else "archive"
    call = f"{rows}.where({json.dumps(str(examples[0]['condition']))}).show(vertical=True)"
    return (
        f"<h2>Findings: {shown}</h2><p>To see the messages of a finding, give its condition to Spark:</p>"
        f"<pre><code>{escape(call, quote=False)}</code></pre>"
        f'<div class="table"><table>{EXAMPLES_HEAD}<tbody>{"".join(map(_example, examples))}</tbody></table></div>'
    )


def _example(row: Mapping[str, Any]) -> str:
    message = f"{row['sequence_number']}" + (f" +{row['offset']:,}" if row["offset"] else "")
    weight = ' class="error"' if row["severity"] == "error" else ""
    return (
        f"<tr><td{weight}>{row['kind'].replace('_', ' ')}</td>"
        f"<td class='what'>{escape(row['text'])}<code>{escape(row['condition'], quote=False)}</code></td>"
        f'<td class="n">{row["delivery_number"]:,}</td><td class="n">{message}</td>'
        f'<td class="n">{row["rank"]} / {row["number"]:,}.{row["ordinal"]}</td></tr>'
    )
