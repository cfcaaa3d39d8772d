"""Turns our docstrings into what Sphinx's napoleon understands.

In ours, `Returns:`, `Yields:` and `Raises:` are mostly paragraphs, "Raises: NotFound, nothing is held under it; ...",
and a section "Raises:" has a line for each error or for several. Both become a field of the entry, and the names of our
errors become links. `Args:` is napoleon's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sphinx.application import Sphinx

import inorder

PARAGRAPH = re.compile(r"^(Raises|Returns|Yields)(, [^:]*)?: (.*)$")
SECTION = re.compile(r"^(Raises|Returns|Yields):$")
ERRORS = re.compile(
    r"(?<![\w.`~])("
    + "|".join(
        name
        for name in inorder.__all__
        if isinstance(getattr(inorder, name), type) and issubclass(getattr(inorder, name), inorder.InorderError)
    )
    + r")\b"
)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", rewrite, priority=400)  # before napoleon's 500
    return {"parallel_read_safe": True}


def rewrite(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    lines[:] = rewritten(lines)


def rewritten(lines: list[str]) -> Iterator[str]:
    """The lines with our paragraphs and sections as fields."""
    rest = iter(lines)
    for line in rest:
        if found := PARAGRAPH.match(line):
            when = (found[2] or "").replace("`", "")
            yield from ["", f":{found[1]}{when}: {linked(found[3])}"]
            yield from until_blank(rest)
        elif found := SECTION.match(line):
            yield from ["", f":{found[1]}:"]
            yield from entries(rest)
        else:
            yield linked(line) if "Raises" in line else line


def until_blank(rest: Iterator[str]) -> Iterator[str]:
    """The other lines of a paragraph."""
    for line in rest:
        yield "    " + linked(line) if line else ""
        if not line:
            return


def entries(rest: Iterator[str]) -> Iterator[str]:
    """A section, a line of its own for each line of the docstring that is not the rest of the line before."""
    for line in rest:
        if not line:
            yield ""
            return
        deeper = line.startswith(" " * 8)
        yield "    " + ("  " if deeper else "| ") + linked(line.strip())


def linked(text: str) -> str:
    return ERRORS.sub(r":py:exc:`~inorder.\1`", text)
