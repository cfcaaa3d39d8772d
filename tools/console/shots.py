"""Which pictures of the console the docs have."""

from __future__ import annotations

from typing import Final, NamedTuple

WIDE, PHONE = (1440, 900), (390, 844)


class Shot(NamedTuple):
    """A picture: of which page, how large, in which colours."""

    name: str
    path: str
    size: tuple[int, int] = WIDE
    is_dark: bool = False
    opens: str = ""  # elements that are opened first, as a CSS selector
    follows: str = ""  # the link that is followed first


SHOTS: Final = (
    Shot("console-queues", "/console/"),
    Shot("console-queue", "/console/queue/ORDERS", (1440, 1000), opens="details.group.lacking"),
    Shot("console-waiting", "/console/queue/PAYMENTS", is_dark=True),
    Shot("console-message", "/console/queue/DEAD.LETTERS", follows=".messages td a"),
    Shot("console-phone", "/console/", PHONE, is_dark=True),
)
