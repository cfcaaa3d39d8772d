"""Who says what to whom, one after the other: a call on its way to the disk, and a batch of Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .svg import CHARACTER, LINE, WIDTH, Picture, wrapped

HEAD = 50


class Say(NamedTuple):
    """One step: from a lane to a lane, or to itself."""

    origin: int
    target: int
    text: str


CALL = (
    ("a call",),
    ("store.py", "verb.py"),
    ("sql/back-", "end.py"),
    ("data-", "base.py"),
    ("coordi-", "nation.py"),
    ("log.py",),
)
CALL_STEPS = (
    Say(0, 1, "put, get, settle ..."),
    Say(1, 2, "begin"),
    Say(2, 3, "begin"),
    Say(3, 4, "wait for the turn"),
    Say(3, 3, "BEGIN IMMEDIATE"),
    Say(1, 1, "the rules decide"),
    Say(1, 2, "find, write: named statements"),
    Say(1, 2, "commit, with the counters of the queues"),
    Say(2, 3, "COMMIT, without a sync"),
    Say(3, 4, "number the commit, announce the changed queues, pass the turn on"),
    Say(1, 0, "wake waiters and listeners in this process"),
    Say(1, 5, "sync, if the answer is a promise"),
    Say(5, 4, "lead the round of syncs, or wait for its leader"),
    Say(1, 5, "a long log is copied into the database"),
    Say(1, 0, "the answer"),
)

BATCH = (("Spark's", "driver"), ("check-", "point"), ("queue", "manager"), ("tasks",), ("sink",))
BATCH_STEPS = (
    Say(0, 2, "what is next? claim n-1 is done"),
    Say(2, 2, "confirm claim n-1, take claim n: one transaction"),
    Say(2, 0, "offset: claim n"),
    Say(0, 1, "offset log: batch b ends with claim n"),
    Say(0, 2, "partitions: claim n is planned, cut into slices"),
    Say(0, 3, "slices"),
    Say(2, 2, "beside it: remove what is done, take claim n+1 ahead"),
    Say(3, 2, "read a slice, as often as need be"),
    Say(3, 4, "rows"),
    Say(0, 4, "commit batch b"),
    Say(0, 1, "commit log: batch b"),
    Say(0, 2, "what is next? claim n is done: note it, give claim n+1"),
)


def draw_call() -> str:
    return _draw("A verb from the call to the disk", CALL, CALL_STEPS)


def draw_batch() -> str:
    return _draw("A batch of Spark that drains a queue exactly once", BATCH, BATCH_STEPS)


def _draw(title: str, lanes: Sequence[tuple[str, ...]], steps: Sequence[Say]) -> str:
    pitch = WIDTH / len(lanes)
    texts = [wrapped(step.text, 300) for step in steps]
    height = HEAD + 24 + sum(_high(step, lines) for step, lines in zip(steps, texts, strict=True))
    picture = Picture(title, height)
    middles = [pitch * (n + 0.5) for n in range(len(lanes))]
    for x in middles:
        picture.line([(x, HEAD), (x, height - 10)], "line dash")
    for x, names in zip(middles, lanes, strict=True):
        picture.box(x - pitch / 2 + 4, 8, pitch - 8, HEAD - 8, names, "three")
    y = HEAD + 8.0
    for step, lines in zip(steps, texts, strict=True):
        y += _high(step, lines)
        _say(picture, step, lines, middles, y)
    return picture.svg()


def _high(step: Say, lines: list[str]) -> float:
    return len(lines) * LINE + (22 if step.origin == step.target else 14)


def _say(picture: Picture, step: Say, lines: list[str], middles: Sequence[float], y: float) -> None:
    """An arrow, its text above it: in the middle, as far as the picture's edges allow."""
    a, b = middles[step.origin], middles[step.target]
    half = max(map(len, lines)) * CHARACTER / 2
    x = min(max((a + b) / 2, half + 8), WIDTH - half - 8)
    first = y - 6 - (len(lines) - 1) * LINE - (8 if a == b else 0)
    picture.lines(x, first, lines, "mid small halo")
    if a == b:
        picture.arrow([(a, y - 10), (a + 26, y - 10), (a + 26, y), (a + 2, y)])
    else:
        picture.arrow([(a, y), (b, y)])
