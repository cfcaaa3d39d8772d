"""The life of a message: states, events, and the complete table of transitions.

A message enters by a put and leaves by a get, a delete, an undone put or its expiry. In between it is in one of five
states (seed 004, lifecycle A-6):

    PUT_UNCONFIRMED          put under a unit that is not settled: only its unit sees it
    UNLOCKED                 on the queue, available to everyone
    LOCKED                   browsed and locked: only the holder of the lock reaches it
    GET_UNCONFIRMED          got under a unit that is not settled: still stored, hidden
    BROWSE_GET_UNCONFIRMED   got, with its lock, while it was locked

ABSENT means "start" and "deleted". It is never stored.

A *unit* is anything that will later be confirmed or undone: a unit of work of a connection (syncpoint), also after it
was prepared under a name, a confirm id, a claim. For a message they are all the same. A put or a get that names a unit
is a *held* put or get. Settling the unit either confirms its messages (CONFIRM) or undoes them (BACK_OUT). Confirming
one message by its unique id is the same step for a single message. A lock is a hold as well, and undoing it (UNDO_LOCK)
unlocks the message; a call that undoes both the get and the lock of one message is UNDO_BOTH (A-16, A-17). A lock with
a time limit ends at that time (END_LEASE), and a get that was made under it then counts as a get without a lock (A-19).

The table gives the result of each event in each state. It is complete: every pair has a cell, and
the cells are those of lifecycle A.3, with syncpoint in the same columns. If the answer depends on the lock that the
caller presents, a cell has up to three: for no lock, for the lock that holds the message, for any other.

The other effects of a step follow from the pair of states, and functions below compute them: whether a message becomes
visible, whether it returns to the queue with its backout count raised, whether it is deleted.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import NamedTuple

from ..errors import Reason


class State(enum.IntEnum):
    """The state of a message (A-6). The numbers are stored."""

    ABSENT = 0
    PUT_UNCONFIRMED = 1
    UNLOCKED = 2
    LOCKED = 3
    GET_UNCONFIRMED = 4
    BROWSE_GET_UNCONFIRMED = 5


class Event(enum.Enum):
    """The events that can happen to a message."""

    PUT = "put"
    PUT_HELD = "put, held"
    RESEND = "put again with resend"
    RESEND_HELD = "put again with resend, held"
    CONFIRM_PUT = "confirm put"
    GET = "get"
    GET_HELD = "get, held"
    CONFIRM_GET = "confirm get"
    BROWSE = "browse"
    BROWSE_LOCK = "browse and lock"
    UNLOCK = "unlock"
    DELETE = "delete"
    CONFIRM = "unit confirmed"
    BACK_OUT = "unit backed out"
    UNDO_LOCK = "lock undone"
    UNDO_BOTH = "get and lock undone"
    END_LEASE = "lease over"
    EXPIRE = "expiry time reached"
    RESTART = "restart"


class StepAnswer(enum.Enum):
    """The answer to a step that does not simply succeed."""

    DONE = "done"
    UNSEEN = "the call does not see the message"
    IGNORED = "accepted, no effect"
    IGNORED_WARNING = "accepted, no effect, with a warning"
    DUPLICATE = "refused: it is already on the queue"
    WRONG_STATE = "refused: its state does not allow this"
    LOCK_MISMATCH = "refused: it is locked, and the lock given is not its lock"
    NOT_FOUND = "refused: there is no such message"


REFUSALS: Mapping[StepAnswer, Reason] = {
    StepAnswer.DUPLICATE: Reason.DUPLICATE_MESSAGE,
    StepAnswer.WRONG_STATE: Reason.WRONG_STATE,
    StepAnswer.LOCK_MISMATCH: Reason.LOCK_MISMATCH,
    StepAnswer.NOT_FOUND: Reason.NOT_FOUND,
}


class Step(NamedTuple):
    """One cell: the answer, and the state afterwards (None: unchanged)."""

    answer: StepAnswer
    to: State | None = None


class Presented(enum.IntEnum):
    """The lock that the caller presents."""

    NONE = 0
    RIGHT = 1
    OTHER = 2


class Cell(NamedTuple):
    """The steps for a caller that presents no lock, the right one, or another one."""

    none: Step
    right: Step
    other: Step


ABSENT, PUT_UNCONFIRMED, UNLOCKED, LOCKED, GET_UNCONFIRMED, BROWSE_GET_UNCONFIRMED = State

_UNSEEN = Step(StepAnswer.UNSEEN)
_IGNORED = Step(StepAnswer.IGNORED)
_IGNORED_WARNING = Step(StepAnswer.IGNORED_WARNING)
_DUPLICATE = Step(StepAnswer.DUPLICATE)
_WRONG_STATE = Step(StepAnswer.WRONG_STATE)
_MISMATCH = Step(StepAnswer.LOCK_MISMATCH)
_NOT_FOUND = Step(StepAnswer.NOT_FOUND)
_STAYS = Step(StepAnswer.DONE)


def _to(state: State) -> Step:
    return Step(StepAnswer.DONE, state)


def _by_lock(none: Step, right: Step, other: Step) -> Cell:
    return Cell(none, right, other)


# A get that presents a lock sees only the message that the lock holds.
_GET_UNLOCKED = _by_lock(_to(ABSENT), _UNSEEN, _UNSEEN)
_GET_HELD_UNLOCKED = _by_lock(_to(GET_UNCONFIRMED), _UNSEEN, _UNSEEN)

# Columns:           ABSENT, PUT_UNCONFIRMED, UNLOCKED, LOCKED, GET_UNCONFIRMED, BROWSE_GET_UNCONFIRMED
_ROWS: Mapping[Event, tuple[Step | Cell, ...]] = {
    Event.PUT: (_to(UNLOCKED), _DUPLICATE, _DUPLICATE, _DUPLICATE, _DUPLICATE, _DUPLICATE),
    Event.PUT_HELD: (_to(PUT_UNCONFIRMED), _DUPLICATE, _DUPLICATE, _DUPLICATE, _DUPLICATE, _DUPLICATE),
    # Resend replaces a put that is still hidden; once it is visible, the first copy stays.
    Event.RESEND: (_to(UNLOCKED), _to(UNLOCKED), _IGNORED, _IGNORED, _IGNORED, _IGNORED),
    Event.RESEND_HELD: (_to(PUT_UNCONFIRMED), _to(PUT_UNCONFIRMED), _IGNORED, _IGNORED, _IGNORED, _IGNORED),
    Event.CONFIRM_PUT: (_IGNORED_WARNING, _to(UNLOCKED), _IGNORED, _IGNORED, _IGNORED, _IGNORED),
    Event.GET: (_UNSEEN, _UNSEEN, _GET_UNLOCKED, _by_lock(_UNSEEN, _to(ABSENT), _UNSEEN), _UNSEEN, _UNSEEN),
    Event.GET_HELD: (
        _UNSEEN,
        _UNSEEN,
        _GET_HELD_UNLOCKED,
        _by_lock(_UNSEEN, _to(BROWSE_GET_UNCONFIRMED), _UNSEEN),
        _UNSEEN,
        _UNSEEN,
    ),
    # A confirm never deletes a message that was not got (D 29).
    Event.CONFIRM_GET: (_IGNORED_WARNING, _WRONG_STATE, _WRONG_STATE, _WRONG_STATE, _to(ABSENT), _to(ABSENT)),
    # A browse presents the handle's own browse lock (R3.69); only gets present a lock id.
    Event.BROWSE: (_UNSEEN, _UNSEEN, _STAYS, _by_lock(_UNSEEN, _STAYS, _UNSEEN), _UNSEEN, _UNSEEN),
    Event.BROWSE_LOCK: (_UNSEEN, _UNSEEN, _to(LOCKED), _by_lock(_UNSEEN, _STAYS, _UNSEEN), _UNSEEN, _UNSEEN),
    Event.UNLOCK: (
        _NOT_FOUND,
        _WRONG_STATE,
        _WRONG_STATE,
        _by_lock(_MISMATCH, _to(UNLOCKED), _MISMATCH),
        _WRONG_STATE,
        _WRONG_STATE,
    ),
    # delete(UID) reaches only an unlocked message, delete(UID, lock) only a locked one.
    Event.DELETE: (
        _NOT_FOUND,
        _WRONG_STATE,
        _by_lock(_to(ABSENT), _WRONG_STATE, _WRONG_STATE),
        _by_lock(_MISMATCH, _to(ABSENT), _MISMATCH),
        _WRONG_STATE,
        _WRONG_STATE,
    ),
    Event.CONFIRM: (_UNSEEN, _to(UNLOCKED), _UNSEEN, _UNSEEN, _to(ABSENT), _to(ABSENT)),
    Event.BACK_OUT: (_UNSEEN, _to(ABSENT), _UNSEEN, _UNSEEN, _to(UNLOCKED), _to(LOCKED)),
    Event.UNDO_LOCK: (_UNSEEN, _UNSEEN, _UNSEEN, _to(UNLOCKED), _UNSEEN, _UNSEEN),
    Event.UNDO_BOTH: (_UNSEEN, _UNSEEN, _UNSEEN, _UNSEEN, _UNSEEN, _to(UNLOCKED)),
    Event.END_LEASE: (_UNSEEN, _UNSEEN, _UNSEEN, _to(UNLOCKED), _UNSEEN, _to(GET_UNCONFIRMED)),
    Event.EXPIRE: (_UNSEEN, _to(ABSENT), _to(ABSENT), _to(ABSENT), _to(ABSENT), _to(ABSENT)),
    Event.RESTART: (_UNSEEN, _STAYS, _STAYS, _STAYS, _STAYS, _STAYS),
}

TABLE: Mapping[tuple[Event, State], Cell] = {
    (event, state): cell if isinstance(cell, Cell) else Cell(cell, cell, cell)
    for event, cells in _ROWS.items()
    for state, cell in zip(State, cells, strict=True)
}


def step(state: State, event: Event, lock: Presented = Presented.NONE) -> Step:
    """Looks up the effect of `event` on a message in `state`, for a caller that presents this lock (lifecycle A.3)."""
    return TABLE[event, state][lock]


def becomes_visible(before: State, after: State) -> bool:
    """Whether this step makes the message visible to everyone for the first time: listeners are called then (A-37)."""
    return after is UNLOCKED and before in (ABSENT, PUT_UNCONFIRMED)


def adds_backout(before: State, after: State) -> bool:
    """Whether a got message returned: its backout count grows by one; undoing a lock does not count (A-40)."""
    return before in (GET_UNCONFIRMED, BROWSE_GET_UNCONFIRMED) and after in (UNLOCKED, LOCKED)


def changes() -> dict[tuple[State, State], list[str]]:
    """The steps that lead from one state to another, in words: every change of state in the table, for diagrams."""
    edges: dict[tuple[State, State], list[str]] = {}
    for (event, state), cell in TABLE.items():
        for one, note in ((cell.none, ""), (cell.right, ", with its lock")):
            if one.to is None or (note and cell.right == cell.none) or one.to is state:
                continue
            edges.setdefault((state, one.to), []).append(event.value + note)
    return edges
