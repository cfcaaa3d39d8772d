"""Problems, and reasons why readers wait, which the overview lists first."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from ...errors import REASON_TEXT, Reason
from ...model.attributes import QueueAttributes
from ...rules.ordering import pending_text
from ...stores.seam.views import Dropped, QueueView, Unit, Wait
from .groups import Wholeness
from .labels import number, span

LONG_SECONDS: Final = 60.0  # before an open unit of work is reported
NEARLY_FULL: Final = 0.8
WRONG_CHANNELS: Final = ("stopped", "retrying", "paused")


class StoreProblem(NamedTuple):
    """One problem. `kind`: bad if something fails; warn if something waits or will soon fail."""

    kind: Literal["bad", "warn"]
    queue: str
    text: str
    page: str = ""  # of the queue, or another page for it


class SeenStore(NamedTuple):
    """All at one moment."""

    now: float
    queues: Sequence[QueueView]
    attributes: Mapping[str, QueueAttributes]
    waits: Sequence[Wait]
    units: Sequence[Unit]
    dropped: Sequence[Dropped]
    groups: Mapping[str, Wholeness]
    dead_letter_queue: str


def troubles(seen: SeenStore, queues: Collection[str]) -> list[StoreProblem]:
    """The problems of these queues, worst first."""
    found = [*_of_queues(seen), *_of_waits(seen), *_of_units(seen), *_of_dropped(seen)]
    return sorted((one for one in found if not one.queue or one.queue in queues), key=lambda one: one.kind != "bad")


def _of_queues(seen: SeenStore) -> Iterator[StoreProblem]:
    for one in seen.queues:
        attributes = seen.attributes.get(one.name)
        if one.name == seen.dead_letter_queue and one.depth:
            yield StoreProblem("bad", one.name, f"{_messages(one.depth)} could not be delivered")
        if attributes is not None:
            yield from _of_definition(one, attributes)
        yield from _of_groups(one.name, seen)
        for channel in one.channels:
            if channel.status in WRONG_CHANNELS:
                why = f": {channel.error}" if channel.error else ""
                yield StoreProblem("bad", one.name, f"channel {channel.name} is {channel.status}{why}")


def _of_definition(one: QueueView, attributes: QueueAttributes) -> Iterator[StoreProblem]:
    most = attributes.max_depth
    if one.depth >= most:
        yield StoreProblem("bad", one.name, f"full: {number(one.depth)} of {_messages(most)}")
    elif one.depth >= NEARLY_FULL * most:
        yield StoreProblem("warn", one.name, f"nearly full: {number(one.depth)} of {_messages(most)}")
    if not attributes.put_allowed:
        yield StoreProblem("warn", one.name, "puts are inhibited")
    if not attributes.get_allowed:
        yield StoreProblem("warn", one.name, "gets are inhibited")


def _of_groups(queue: str, seen: SeenStore) -> Iterator[StoreProblem]:
    lacking = seen.groups[queue].lacking if queue in seen.groups else ()
    if lacking:
        oldest = span(seen.now - min(one.put_at for one in lacking))
        count = "1 group is" if len(lacking) == 1 else f"{number(len(lacking))} groups are"
        yield StoreProblem(
            "warn", queue, f"{count} not all there; the oldest began {oldest} ago".replace("now ago", "now")
        )


def _of_waits(seen: SeenStore) -> Iterator[StoreProblem]:
    for one in seen.waits:
        if one.pending is not None:
            process = "" if one.process is None else f" ({one.process})"
            behind = "; messages wait behind it" if one.withheld else ""
            why = f"{pending_text(one.pending)}, for {span(seen.now - one.pending.since)}"
            yield StoreProblem("warn", one.queue, f"strict reader {one.program.name}{process} waits for {why}{behind}")


def _of_units(seen: SeenStore) -> Iterator[StoreProblem]:
    for one in seen.units:
        age = seen.now - one.started_at
        for queue in one.queues:
            if one.kind == "prepared":
                yield StoreProblem("warn", queue, f"prepared unit {one.name} has not been settled for {span(age)}")
            elif one.kind == "session" and age > LONG_SECONDS:
                process = "" if one.process is None else f" ({one.process})"
                yield StoreProblem(
                    "warn", queue, f"a unit of work of {one.program.name}{process} has been open for {span(age)}"
                )


def _of_dropped(seen: SeenStore) -> Iterator[StoreProblem]:
    for one in seen.dropped:
        try:
            why = REASON_TEXT.get(Reason(one.reason), str(one.reason))
        except ValueError:
            why = str(one.reason)
        text = f"{number(one.messages)} reports or trigger messages could not be put on any queue: {why}"
        yield StoreProblem("bad", one.queue, text)


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{number(count)} messages"
