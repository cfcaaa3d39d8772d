"""MQ Everyplace's states and events of a message across two queue managers, cell by cell (A.3, A-21 to A-31).

FAR is an asynchronous remote queue at queue manager TEST: its transmission queue is QM2, and channel TO.QM2 sends its
messages to Q at QM2. A message is in one of these states:

    PU     here, under confirm id 7           L      there, locked for browse under confirm id 8
    U      here, confirmed                    GU     there, got under confirm id 9
    SENT   claimed by a run that then died    BGU    there, locked and then got
    CONF   received there, and the run died   TAKEN  received there and got, while it was in CONF here
    V      there, visible                     0      nowhere

Each cell is a scenario: it brings a message into the state, makes the call of the row, and checks both sides' views.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from inorder_scenarios import Scenario, run_scenario
from inorder_scenarios.language import parse

# `-` message not seen, `E` refused, `i` ignored, `=` done without a change, `.` no scenario; else the next state.
TABLE = """
event              PU    U     SENT  CONF  V     L     GU    BGU   0
put again          E     E     E     E     PUV   PUL   PUGU  PUBGU PU
put resent         PU    U     SENT  CONF  PUV   PUL   PUGU  PUBGU PU
confirm put        U     i     i     i     i     i     i     i     i
undo put           0     -     -     -     -     -     -     -     -
get here           E     E     E     E     E     E     E     E     E
browse here        E     E     E     E     E     E     E     E     E
look here          -     =     -     -     -     -     -     -     -
delete here        E     E     E     E     E     E     E     E     E
get                -     -     -     TAKEN 0     -     -     -     -
get, lock          -     -     -     -     -     0     -     -     -
get, held          -     -     -     CGU   GU    -     -     -     -
get, held, lock    -     -     -     -     -     BGU   -     -     -
confirm get        .     .     .     .     E     E     0     0     i
browse             -     -     -     =     =     -     -     -     -
browse and lock    -     -     -     CL    L     -     -     -     -
unlock             .     .     .     .     E     V     E     E     E
unlock, wrong      .     .     .     .     E     E     E     E     E
delete             .     .     .     .     0     E     E     E     E
delete, lock       .     .     .     .     E     0     E     E     E
delete, wrong      .     .     .     .     E     E     E     E     E
undo get           -     -     -     -     -     -     V     L     -
undo lock          -     -     -     -     -     V     -     -     -
transmit           =     V     V     V     =     =     =     =     =
restart here       =     =     =     =     =     =     =     =     =
restart there      =     =     =     =     =     =     =     =     =
time is over       0     0     X     X0    0     0     0     0     =
"""
BEGIN = """scenario: {title}
qm queue QM2 usage=transmission order=commit           -> ok
qm queue FAR remote=Q@QM2                              -> ok
qm define-channel TO.QM2 to=qm2                        -> ok
qm2 queue Q order=commit                               -> ok
"""
PU = "A put m1 on=FAR confirm=7 expiry=100 -> ok"
U = f"{PU}\nA confirm-put m1 on=FAR -> ok"
V = f"{U}\nqm run-channel TO.QM2 -> ok sent=1\nX@qm2 browse first -> m1"
L = f"{V}\nX@qm2 browse-lock confirm=8 -> [m1] lock=$K"
STATES = {
    "PU": PU,
    "U": U,
    "SENT": f"{U}\nqm run-channel TO.QM2 kill=sending -> killed",
    "CONF": f"{U}\nqm run-channel TO.QM2 kill=received -> killed",
    "V": V,
    "L": L,
    "GU": f"{V}\nX@qm2 get confirm=9 -> m1",
    "BGU": f"{L}\nX@qm2 get confirm=9 lock=$K -> m1",
    "0": f"{V}\nX@qm2 get -> m1",
}
# The call, its answer where the message is not seen, and its answer where it is.
LOCKS = {"lock": "lock=$K", "wrong": "lock=12345"}
EVENTS = {
    "put again": ("A put m1 on=FAR confirm=7 again", "error", "ok"),
    "put resent": ("A put m1 on=FAR confirm=7 resend", "error", "ok"),
    "confirm put": ("A confirm-put m1 on=FAR", "error", "ok"),
    "undo put": ("A undo 7 on=QM2", "error=NOT_FOUND", "ok"),
    "get here": ("B get on=FAR", "error=2045", "m1"),
    "browse here": ("B browse first on=FAR", "error=2045", "m1"),
    "look here": ("B browse first on=QM2", "none", "m1"),
    "delete here": ("A delete m1 on=FAR", "error=2045", "ok"),
    "get": ("C@qm2 get", "none", "m1"),
    "get, lock": ("X@qm2 get {lock}", "none", "m1"),
    "get, held": ("X@qm2 get confirm=9", "none", "m1"),
    "get, held, lock": ("X@qm2 get confirm=9 {lock}", "none", "m1"),
    "confirm get": ("X@qm2 confirm-get m1", "error", "ok"),
    "browse": ("C@qm2 browse first", "none", "m1"),
    "browse and lock": ("X@qm2 browse-lock confirm=8", "[]", "[m1] lock=$K"),
    "unlock": ("X@qm2 unlock m1 {lock}", "error", "ok"),
    "unlock, wrong": ("X@qm2 unlock m1 lock=12345", "error", "ok"),
    "delete": ("X@qm2 delete m1", "error", "ok"),
    "delete, lock": ("X@qm2 delete m1 {lock}", "error", "ok"),
    "delete, wrong": ("X@qm2 delete m1 lock=12345", "error", "ok"),
    "undo get": ("X@qm2 undo 9", "error=NOT_FOUND", "ok"),
    "undo lock": ("X@qm2 undo 8", "error=NOT_FOUND", "ok"),
    "transmit": ("qm run-channel TO.QM2", "ok", "ok"),
    "restart here": ("qm restart", "ok", "ok"),
    "restart there": ("qm2 restart", "ok", "ok"),
    "time is over": ("qm clock +100", "ok", "ok"),
}
# The views of both sides; the proof that follows distinguishes the state from all others.
SEES = """B browse first on=QM2 -> {here}
qm depth QM2 -> {depth}
qm channel-status TO.QM2 -> ok in-doubt={doubt}
C@qm2 browse first -> {there}
"""


class Look(NamedTuple):
    """The views of the two queue managers in a state, and steps that prove the state."""

    here: str = "none"
    depth: int = 0
    doubt: int = 0
    there: str = "none"
    proof: str = ""


NOTHING_COMES = "qm run-channel TO.QM2 -> ok in-doubt=0 waiting=0\nC@qm2 get -> none"
IS_HELD = "X@qm2 undo 9 -> ok\nC@qm2 get -> m1"
IS_LOCKED = "X@qm2 unlock m1 lock=$K -> ok\nC@qm2 get -> m1"
IS_BOTH = f"X@qm2 undo 9 -> ok\nC@qm2 get -> none\n{IS_LOCKED}"
HELD_HERE = "A confirm-put m1 on=FAR -> ok\nqm run-channel TO.QM2 -> ok\n"
LOOKS = {
    "PU": Look(depth=1, proof=f"{HELD_HERE}C@qm2 get-all -> [m1]"),
    "U": Look("m1", 1, proof="qm run-channel TO.QM2 -> ok sent=1\nC@qm2 get-all -> [m1]"),
    "SENT": Look(depth=1, doubt=1, proof="qm run-channel TO.QM2 -> ok sent=1\nC@qm2 get-all -> [m1]"),
    "CONF": Look(depth=1, doubt=1, there="m1", proof="qm run-channel TO.QM2 -> ok sent=1\nC@qm2 get-all -> [m1]"),
    "TAKEN": Look(depth=1, doubt=1, proof=NOTHING_COMES),
    "CGU": Look(depth=1, doubt=1, proof=f"qm run-channel TO.QM2 -> ok sent=1\n{IS_HELD}\n{NOTHING_COMES}"),
    "CL": Look(depth=1, doubt=1, proof=f"qm run-channel TO.QM2 -> ok sent=1\n{IS_LOCKED}\n{NOTHING_COMES}"),
    "V": Look(there="m1", proof=f"C@qm2 get -> m1\n{NOTHING_COMES}"),
    "L": Look(proof=f"{IS_LOCKED}\n{NOTHING_COMES}"),
    "GU": Look(proof=f"{IS_HELD}\n{NOTHING_COMES}"),
    "BGU": Look(proof=f"{IS_BOTH}\n{NOTHING_COMES}"),
    "0": Look(proof=NOTHING_COMES),
    # A second message under the same unique id: its program has forgotten that the first one was confirmed.
    "PUV": Look(depth=1, there="m1", proof=f"{HELD_HERE}C@qm2 get-all -> [m1 m1]"),
    "PUL": Look(depth=1, proof=f"{IS_LOCKED}\n{HELD_HERE}C@qm2 get -> m1"),
    "PUGU": Look(depth=1, proof=f"{IS_HELD}\n{HELD_HERE}C@qm2 get -> m1"),
    "PUBGU": Look(depth=1, proof=f"{IS_BOTH}\n{HELD_HERE}C@qm2 get -> m1"),
    # A message claimed in time arrives with its remaining life, which is zero.
    "X": Look(depth=1, doubt=1, proof=f"qm run-channel TO.QM2 -> ok\nqm clock +1 -> ok\n{NOTHING_COMES}"),
    "X0": Look(depth=1, doubt=1, proof=f"qm run-channel TO.QM2 -> ok\n{NOTHING_COMES}"),
}
UNSEEN = {"-", "E"}


def cells() -> Iterator[tuple[str, str, str]]:
    """Event, state and entry of each cell of the table."""
    first, *rows = TABLE.strip().splitlines()
    states = first.split()[1:]
    for row in rows:
        words = row.split()
        event, said = " ".join(words[: -len(states)]), words[-len(states) :]
        yield from ((event, state, cell) for state, cell in zip(states, said, strict=True) if cell != ".")


def scenario_of(event: str, state: str, cell: str) -> Scenario:
    call, unseen, seen = EVENTS[event]
    answer = unseen if cell in UNSEEN else "ignored" if cell == "i" else seen
    if cell == "i" and state in ("U", "SENT", "CONF"):
        answer = "ok"  # of a confirmed message that is still here
    call = call.format(lock="lock=$K" if state in ("L", "BGU") else "lock=12345")
    after = state if cell in {"-", "E", "i", "="} else cell
    look = LOOKS[after]
    steps = [STATES[state], f"{call} -> {answer}", SEES.format(**look._asdict()), look.proof]
    [scenario] = parse(BEGIN.format(title=f"{event} in {state}") + "\n".join(steps), f"{event} in {state}")
    return scenario


def cases() -> Iterator[tuple[str, str, str, str]]:
    """Every cell on SQLite; only those with a change on PostgreSQL, where each takes longer."""
    for cell in cells():
        yield (*cell, "sqlite")
        if cell[2] not in UNSEEN | {"i", "="}:
            yield (*cell, "postgresql")


@pytest.mark.parametrize(("event", "state", "cell", "store"), sorted(cases()))
def test_an_event_leads_to_the_state_of_its_cell_and_both_sides_see_it(
    event: str, state: str, cell: str, store: str
) -> None:
    failure = run_scenario(scenario_of(event, state, cell), store)
    assert failure is None, str(failure)


def test_the_table_has_every_event_and_state() -> None:
    found = list(cells())
    assert {event for event, _, _ in found} == set(EVENTS)
    assert {state for _, state, _ in found} == set(STATES)
