"""Turns our docstrings into what Sphinx reads: the fields of an entry.

`Args:` is a section with a line for each argument, or for several, "logical, complete: ...". `Returns:`, `Yields:` and
`Raises:` are mostly paragraphs, "Raises: NotFound, nothing is held under it; ...", and sometimes sections with a line
for each error or for several. The names of our errors become links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sphinx.application import Sphinx

from inorder import errors

PARAGRAPH = re.compile(r"(Raises|Returns|Yields)(, [^:]*)?: (.*)")
SECTION = re.compile(r"(Raises|Returns|Yields):")
ARGUMENTS = re.compile(r"([*\w]+(?:, [*\w]+)*): (.*)")
INDENT = " " * 4
OF_A_TUPLE = "Alias for field number"  # what Python says of the fields of a named tuple


def _is_error(name: str) -> bool:
    kind = getattr(errors, name)
    return isinstance(kind, type) and issubclass(kind, errors.InorderError)


ERRORS = re.compile(rf"(?<![\w.`~])({'|'.join(filter(_is_error, errors.__all__))})\b")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", rewrite)
    return {"parallel_read_safe": True}


def rewrite(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    lines[:] = [] if lines and lines[0].startswith(OF_A_TUPLE) else rewritten(lines)


def rewritten(lines: list[str]) -> Iterator[str]:
    """The lines with our paragraphs and sections as fields."""
    rest = iter(lines)
    for line in rest:
        if found := PARAGRAPH.fullmatch(line):
            when = (found[2] or "").replace("`", "")
            yield from ["", f":{found[1]}{when}: {linked(found[3])}"]
            yield from (INDENT + linked(more) for more in until_blank(rest))
            yield ""
        elif found := SECTION.fullmatch(line):
            yield from ["", f":{found[1]}:"]
            yield from entries(until_blank(rest))
            yield ""
        elif line == "Args:":
            yield ""
            yield from arguments([more.removeprefix(INDENT) for more in until_blank(rest)])
            yield ""
        else:
            yield linked(line) if "Raises" in line else line


def until_blank(rest: Iterator[str]) -> Iterator[str]:
    """The other lines of a paragraph or section."""
    for line in rest:
        if not line:
            return
        yield line


def entries(section: Iterator[str]) -> Iterator[str]:
    """A section, a line of its own for each line of the docstring that does not go on with the one before."""
    for line in section:
        goes_on = line.startswith(2 * INDENT)
        yield INDENT + ("  " if goes_on else "| ") + linked(line.strip())


def arguments(section: list[str]) -> Iterator[str]:
    """A field for each argument; those that share a line share its text."""
    while section:
        found = ARGUMENTS.fullmatch(section.pop(0))
        assert found, "an argument is told as `name: what it is`"
        text = [found[2]]
        while section and section[0].startswith(INDENT):
            text.append(section.pop(0))
        for name in found[1].replace("*", "\\*").split(", "):
            yield from [f":param {name}: {text[0]}", *text[1:]]


def linked(text: str) -> str:
    return ERRORS.sub(r":py:exc:`~inorder.errors.\1`", text)
