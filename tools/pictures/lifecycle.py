"""The life of a message, drawn from the table of transitions: five states, and an edge for each pair that it connects.

The places are set by hand; what stands on an edge, and which edges there are, comes from the table.
"""

from __future__ import annotations

from inorder.rules.lifecycle import State, changes

from .svg import LINE, Picture, Point, wrapped

SPINE, RIGHT, END = 100.0, 240.0, 448.0  # right edge of the state at the left, left edge of the others, where lives end
AROUND = 468.0  # where a line passes the others by
WIDE, HIGH = 116.0, 56.0
TOPS = {
    State.PUT_UNCONFIRMED: 124.0,
    State.GET_UNCONFIRMED: 292.0,
    State.LOCKED: 444.0,
    State.BROWSE_GET_UNCONFIRMED: 672.0,
}
NAMES = {
    State.PUT_UNCONFIRMED: ["put", "unconfirmed"],
    State.UNLOCKED: ["unlocked"],
    State.LOCKED: ["locked"],
    State.GET_UNCONFIRMED: ["get", "unconfirmed"],
    State.BROWSE_GET_UNCONFIRMED: ["browse get", "unconfirmed"],
}
BOTTOM = 850.0
BEGIN = (RIGHT + WIDE / 2, 28.0)

Route = tuple[list[Point], Point, float]  # the line; where its text begins; how wide that may be


def _to_spine(state: State, down: float) -> Route:
    y = TOPS[state] + down
    return [(RIGHT, y), (SPINE, y)], (SPINE + 10, y + LINE), RIGHT - SPINE - 14


def _from_spine(state: State, down: float) -> Route:
    y = TOPS[state] + down
    return [(SPINE, y), (RIGHT, y)], (SPINE + 10, y - 6), RIGHT - SPINE - 14


def _to_end(state: State) -> Route:
    y = TOPS[state] + 12
    return [(RIGHT + WIDE, y), (END - 11, y)], (RIGHT + WIDE + 8, y + LINE), 96


def routes() -> dict[tuple[State, State], Route]:
    """How each edge runs. Absent is where lives begin, and where they end."""
    absent, put, unlocked, locked, got, browse_got = State
    x = RIGHT + WIDE / 2
    down, up = x - 30, x + 30
    between = TOPS[locked] + HIGH
    above, below = TOPS[locked] - 44, TOPS[browse_got] + HIGH + 52
    return {
        (absent, put): ([(x, 34), (x, TOPS[put])], (x + 10, 66), 150),
        (absent, unlocked): ([(x - 6, 28), (50, 28), (50, 80)], (64, 28 + LINE), 170),
        (put, unlocked): _to_spine(put, 20),
        (put, absent): _to_end(put),
        (unlocked, got): _from_spine(got, 12),
        (got, unlocked): _to_spine(got, 44),
        (got, absent): _to_end(got),
        (unlocked, locked): _from_spine(locked, 12),
        (locked, unlocked): _to_spine(locked, 44),
        (locked, absent): _to_end(locked),
        (locked, browse_got): ([(down, between), (down, TOPS[browse_got])], (SPINE + 56, between + 76), 110),
        (browse_got, locked): ([(up, TOPS[browse_got]), (up, between)], (up + 8, between + 112), 130),
        (browse_got, unlocked): _to_spine(browse_got, 28),
        (browse_got, absent): _to_end(browse_got),
        (browse_got, got): (
            [
                (x, TOPS[browse_got] + HIGH),
                (x, below),
                (AROUND, below),
                (AROUND, above),
                (x, above),
                (x, TOPS[got] + HIGH),
            ],
            (RIGHT + WIDE + 8, above - 6),
            96,
        ),
        (unlocked, absent): ([(50, 768), (50, BOTTOM - 37)], (64, 792), 200),
    }


def draw() -> str:
    picture = Picture("The states of a message and what leads from one to the other", BOTTOM)
    picture.dot(*BEGIN)
    for edge, (line, (x, y), width) in sorted(routes().items()):
        picture.arrow(line)
        texts = [part for event in changes()[edge] for part in _hanging(event, width)]
        upwards = edge in ((State.UNLOCKED, State.GET_UNCONFIRMED), (State.UNLOCKED, State.LOCKED))
        picture.lines(x, y - (len(texts) - 1) * LINE * upwards, texts, "small")
        if edge[1] is State.ABSENT:
            end = line[-1]
            picture.dot(*((end[0] + 11, end[1]) if line[0][1] == end[1] else (end[0], end[1] + 11)), ring=True)
    picture.box(8, 80, SPINE - 8, 688, NAMES[State.UNLOCKED], "one")
    for state, top in TOPS.items():
        picture.box(RIGHT, top, WIDE, HIGH, NAMES[state], "three" if state is State.LOCKED else "two")
    return picture.svg()


def _hanging(event: str, width: float) -> list[str]:
    """An event in lines, all but the first of them set in."""
    first, *rest = wrapped(event, width)
    return [first, *(f"\u2002{line}" for line in rest)]
