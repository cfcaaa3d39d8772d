"""Makes the generated parts of docs from the program: tables of attributes, errors and reason codes; our HTTP
interface; the command; the supported commands of MQ.

`make reference` writes them; tests/house/test_reference.py fails when one differs from the program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from . import attributes, command, errors, http, words
from .command import topic_page, topics
from .markdown import filled

ROOT = Path(__file__).parents[2]
COMMANDS = ROOT / "docs/reference/command"
# Pages that are written by hand, with parts that are made from the program.
PARTS = {
    ROOT / "docs/how-to/from-ibm-mq.md": words.parts,
    ROOT / "docs/reference/attributes.md": attributes.parts,
    ROOT / "docs/reference/command.md": command.parts,
    ROOT / "docs/reference/errors.md": errors.error_parts,
    ROOT / "docs/reference/http-own.md": http.parts,
    ROOT / "docs/reference/reasons.md": errors.reason_parts,
}
PAGES: Mapping[Path, Callable[[], str]] = MappingProxyType(
    {
        **{path: functools.partial(filled, path, parts) for path, parts in PARTS.items()},
        **{COMMANDS / f"{topic.name}.md": functools.partial(topic_page, topic) for topic in topics()},
    }
)
