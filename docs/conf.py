"""The site: `make docs` builds it into build/docs. The pages are plain Markdown and read well without it, too."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

HERE = Path(__file__).parent
# A caption of the side bar and its pages, up to the next caption.
SECTION = re.compile(r'<p class="caption"[^>]*>(.*?)</p>\s*(<ul.*?</ul>)\s*(?=<p class="caption"|</div>|\Z)', re.DOTALL)
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

import inorder  # noqa: E402 - of this folder, also where another release is installed

project = "inorder"
author = "the authors of inorder"
copyright = author
release = inorder.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "pages_of_the_root",
    "our_docstrings",
]
exclude_patterns = ["_ext"]
default_role = "code"  # in our docstrings `this` is code
highlight_language = "text"
smartquotes_action = "D"  # dashes only
nitpicky = True
# Annotations name types of other packages, and inner ones of ours, which have no page.
nitpick_ignore_regex = [("py:(class|data|obj)", ".*")]
suppress_warnings = ["ref.python"]  # what is for tasks has the names of what is not

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True

html_theme = "furo"
html_title = f"inorder {release}"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_copy_source = False
html_show_copyright = False

# What is copied from a transcript is what was typed.
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"


def link_screenshots(app: Sphinx, page: nodes.document) -> None:
    """A picture with a width becomes a link to itself in full size, so that it can be read on a phone."""
    for picture in page.findall(nodes.image):
        if picture["uri"].endswith(".png"):
            header = Path(app.srcdir, picture["uri"]).read_bytes()[:24]
            picture["width"] = f"{int.from_bytes(header[16:20], 'big')}px"


def fold_navigation(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Each caption of the side bar folds its list of pages; the list with the current page is open."""

    def folded(found: re.Match[str]) -> str:
        title, pages = found.groups()
        is_open = " open" if "current-page" in pages else ""
        return f"<details{is_open}><summary class='caption'>{title}</summary>\n{pages}</details>"

    context["furo_navigation_tree"] = SECTION.sub(folded, context.get("furo_navigation_tree", ""))


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", link_screenshots)
    app.connect("html-page-context", fold_navigation, priority=900)  # after the theme has made it
    app.add_lexer("mqsc", TextLexer)  # nobody colours MQSC
