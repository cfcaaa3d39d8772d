"""The list of the docs' pictures of the console."""

from __future__ import annotations

from typing import Final, NamedTuple

WIDE, PHONE = (1440, 900), (390, 844)


class Shot(NamedTuple):
    """A picture: its page, size and colours."""

    name: str
    path: str
    size: tuple[int, int] = WIDE
    is_dark: bool = False
    opens: str = ""  # elements that are opened first, as a CSS selector
    follows: str = ""  # the link that is followed first
    steps: tuple[tuple[str, str], ...] = ()  # then: elements by CSS selector, to click, or to type the text into


# fmt: off
SHOTS: Final = (
    Shot("console-queues", "/console/"),
    Shot("console-queue", "/console/queue/ORDERS", (1440, 1000), opens="details.group.lacking"),
    Shot("console-waiting", "/console/queue/PAYMENTS", is_dark=True),
    Shot("console-message", "/console/queue/DEAD.LETTERS", follows=".messages td a"),
    Shot("console-phone", "/console/", PHONE, is_dark=True),
    Shot("console-put", "/console/queue/ORDERS/put", (1440, 1010), steps=(
        ("select[name=kind]", "JSON"),
        ("textarea[name=body]", '{"order": 1005, "customer": "Grimm", "paid": true}'),
        ("textarea[name=properties]", "customer=Grimm\nurgent:boolean=true"),
        ("select[name=group]", "in a group"),
        ("input[name=group_id]", "text:order-1005"),
    )),
    Shot("console-review", "/console/queue/ORDERS", (1440, 560), steps=(
        ("section[aria-label='physical order'] tr:nth-of-type(3) input", ""),
        ("section[aria-label='physical order'] tr:nth-of-type(5) input", ""),
        ("#chosen button[value=delete]", ""),
        ("input[name=typed]", "ORDERS"),
    )),
    Shot("console-dead", "/console/dead", (1440, 460), steps=(
        (".rows tr:nth-of-type(3) input", ""),
        ("#chosen input[name=target]", "PICKING"),
    )),
    Shot("console-held", "/console/held", (1440, 1180)),
    Shot("console-tasks", "/console/tasks", (1440, 620)),
    Shot("console-api", "/console/api", (1440, 900)),
    Shot("console-phone-review", "/console/dead", PHONE, steps=(
        (".rows tr:nth-of-type(3) input", ""),
        ("#chosen button[value=discard]", ""),
    )),
)
# fmt: on
