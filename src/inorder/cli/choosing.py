"""Options that several commands share: which messages, in which order, how many in a unit of work."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

from .. import FOREVER, Match
from ..field_checks import NUMBER_MAX
from ..formats.json_lines import TEXT_ID, id_of
from ..formats.property_text import read_property
from ..properties import PropertyValue

F = TypeVar("F", bound=Callable[..., Any])
UNIT_MESSAGES = 1_000  # a unit of work that others hardly notice


class Seconds(click.FloatRange):
    """A time in a range, which nan is not, though it is not outside of it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        seconds = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail("nan is not a time.", param, ctx)
        return seconds


ORDER = click.option(
    "--order", type=click.Choice(("physical", "logical")), default="physical", show_default=True,
    help="As they arrived, or as they belong: groups and segments in sequence.",
)  # fmt: skip
READ_ORDER = click.option(
    "--read-order", type=click.Choice(("strict", "relaxed")), help="Default: what the queue says."
)
UNIT_SIZE = click.option(
    "--unit-size", type=click.IntRange(1, NUMBER_MAX), default=UNIT_MESSAGES, show_default=True, metavar="N",
    help="How many messages make a unit of work; fewer if they exceed 64 MiB.",
)  # fmt: skip
DMPMQMSG = "dmpmqmsg"


def takes_format(what: str) -> Callable[[F], F]:
    """Gives a command --format, as the keyword `form`: None, or "dmpmqmsg"."""
    return click.option("--format", "form", type=click.Choice((DMPMQMSG,)), help=what)


def any_id(value: str) -> bytes:
    """An id in hexadecimal digits, or text: and a text. None at all would be one of zeros, which fits every message."""
    if not value.removeprefix(TEXT_ID):
        raise ValueError(f"an id must be 2 to 48 hexadecimal digits, or {TEXT_ID} and a text, not {value!r}.")
    return id_of(value)


def one_property(value: str) -> tuple[str, PropertyValue]:
    """A property, as `property_text` has it."""
    return read_property(value)


def seconds(value: str) -> float:
    """How long: seconds, or "forever"."""
    return FOREVER if value == "forever" else _number(value, "forever")


def seconds_or_none(value: str) -> float | None:
    """A number of seconds, or "none"."""
    return None if value == "none" else _number(value, "none")


def _number(value: str, word: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"{value!r} is neither a number of seconds nor {word!r}.") from None


WAIT = click.option(
    "--wait", type=seconds, default=0, metavar="SECONDS|forever", help="How long to wait for a message; default: not."
)


def takes_match(function: F) -> F:
    """Gives a command the options that choose messages, and its function a `Match` as `match`."""

    @click.option("--message-id", type=any_id, metavar="HEX|text:TEXT", help="Only the message with this id.")
    @click.option(
        "--correlation-id", type=any_id, metavar="HEX|text:TEXT", help="Only messages with this correlation id."
    )
    @click.option("--group-id", type=any_id, metavar="HEX|text:TEXT", help="Only messages of this group.")
    @click.option("--priority", type=int, metavar="0..9", help="Only messages of this priority.")
    @click.option(
        "--selector", metavar="TEXT", help="Only messages that it fits, such as \"colour = 'red' AND size > 3\"."
    )
    @functools.wraps(function)
    def command(*given: Any, **named: Any) -> Any:
        chosen = {name: named.pop(name) for name in ("message_id", "correlation_id", "group_id", "priority")}
        match = Match(
            selector=named.pop("selector"), **{name: value for name, value in chosen.items() if value is not None}
        )
        return function(*given, match=match, **named)

    return command  # type: ignore[return-value]
