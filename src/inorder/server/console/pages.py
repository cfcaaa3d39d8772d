"""All pages, in the order of the navigation. A module with pages has them in its PAGES, and joins here."""

from __future__ import annotations

from typing import Final

from . import api, commands, dead, held_messages, importing, lists, message, overview, putting, queue, selection
from .page import Page

PAGES: Final[tuple[Page, ...]] = (
    *overview.PAGES,
    *queue.PAGES,
    *message.PAGES,
    *putting.PAGES,
    *importing.PAGES,
    *selection.PAGES,
    *held_messages.PAGES,
    *dead.PAGES,
    *commands.PAGES,
    *lists.PAGES,
    *api.PAGES,
)
