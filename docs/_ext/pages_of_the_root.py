"""Shows a page of the repository's root, README.md for one, inside a page of the site.

Where a page has the line

    <!-- shown here --> [its title](../PAGE.md)

the site has the text of PAGE.md instead, without its title, and a reader of the plain file has the link. The comment
may name the heading with which the text begins, and the one before which it ends: `<!-- shown here, from "How fast", up
to "Read on" -->`, in one line. Links to pages of the root, there and in all other pages, are turned to where the site
has them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from sphinx.application import Sphinx

SHOWN = re.compile(
    r'^<!-- shown here(?:, from "(?P<begin>[^"]+)")?(?:, up to "(?P<end>[^"]+)")? --> \[[^]]*\]\((?P<page>[^)]+)\)$',
    re.MULTILINE,
)
LINK = re.compile(r"(\]\(|<img [^>]*src=\")([^)#\"\s]+)")
# What the site shows of the repository, and where.
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "examples/README.md": "how-to/examples.md",
}


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", insert)
    return {"parallel_read_safe": True}


def insert(app: Sphinx, docname: str, source: list[str]) -> None:
    """Turns the page's links to pages of the root, and puts those that are to be shown in the places of their links."""
    site = Path(app.srcdir)
    here = (site / docname).parent

    def text(found: re.Match[str]) -> str:
        page = (here / found["page"]).resolve()
        app.env.note_dependency(str(page))
        return turned(shown(page, found["begin"], found["end"]), page.parent, here, site)

    parts = SHOWN.split(source[0])
    own = [turned(part, here, here, site) for part in parts[:: SHOWN.groups + 1]]
    theirs = [text(found) for found in SHOWN.finditer(source[0])]
    source[0] = "".join(each for pair in zip(own, [*theirs, ""], strict=True) for each in pair)


def shown(page: Path, begin: str | None, end: str | None) -> str:
    """The text of a page, without its title, from one heading up to another."""
    text = page.read_text(encoding="utf-8").partition("\n")[2]
    for heading in filter(None, (begin, end)):
        assert f"\n## {heading}\n" in text, (
            f"{page.name} has no heading {heading!r}: see docs/_ext/pages_of_the_root.py"
        )
    if end is not None:
        text = text.partition(f"\n## {end}\n")[0]
    if begin is not None:
        text = f"\n## {begin}\n" + text.partition(f"\n## {begin}\n")[2]
    return text


def turned(text: str, origin: Path, here: Path, site: Path) -> str:
    """A text of the folder `origin` with its links as they must be in the folder `here`."""

    def link(found: re.Match[str]) -> str:
        if "://" in found[2]:
            return found[0]
        target = (origin / found[2]).resolve()
        if target.is_relative_to(site):
            return found[1] + os.path.relpath(target, here)
        if (page := site / PAGES.get(target.relative_to(site.parent).as_posix(), "-")).exists():
            return found[1] + os.path.relpath(page, here)
        scheme = "path:" if found[1] == "](" and target.is_file() else ""  # MyST: this file, as it is
        return found[1] + scheme + os.path.relpath(target, here)

    return LINK.sub(link, text)
