"""The generated pages of docs/reference: attributes, errors, reason codes, our HTTP interface and the command.

`make reference` writes them; tests/test_reference.py fails when one is not what the program says.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from .attributes import attributes_page
from .command import command_page, topic_page, topics
from .errors import errors_page, reasons_page
from .http import http_page
from .tasks import manager_page, queue_page

ROOT = Path(__file__).parents[2]
COMMANDS = ROOT / "docs/reference/command"
PAGES: Mapping[Path, Callable[[], str]] = MappingProxyType(
    {
        ROOT / "docs/reference/attributes.md": attributes_page,
        ROOT / "docs/reference/command.md": command_page,
        **{COMMANDS / f"{topic.name}.md": functools.partial(topic_page, topic) for topic in topics()},
        ROOT / "docs/reference/errors.md": errors_page,
        ROOT / "docs/reference/http-own.md": http_page,
        ROOT / "docs/reference/reasons.md": reasons_page,
        ROOT / "src/inorder/aio/calls.py": manager_page,
        ROOT / "src/inorder/aio/queue_calls.py": queue_page,
    }
)
