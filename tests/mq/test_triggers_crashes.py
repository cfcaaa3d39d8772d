"""A program that is killed at each point of its calls, on a queue that triggers: no work is left without a trigger.

What it puts, gets and gives back is settled with it; then the queue and its trigger messages have to fit together, by
what can be seen from outside. The program gets no trigger message before it has the queue open, as one that a monitor
has started.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from tests.helpers import forked
from tests.helpers.support import Make, until

from inorder import Flags, Message, QueueManager, connect
from inorder.model.attributes import TriggerType

POINTS = ("written", "committed")
KILLS_MAX = 60  # a program has fewer transactions
NEEDED = 3

FIRST = """
from inorder import connect

with connect(arguments[0]) as qm:
    qm.put("Q", b"1")
    with qm.unit_of_work():
        qm.put_many("Q", [b"2", b"3"])
    for _ in range(2):
        with qm.open("Q", input="shared") as reader:
            qm.get("INIT")
            reader.get_many(3, syncpoint=True)
        qm.back_out()
    with qm.open("Q", input="shared") as reader:
        qm.get("INIT")
        reader.get_many(2, syncpoint=True)
    qm.commit()
    with qm.open("Q", input="shared") as reader:
        qm.get("INIT")
        reader.get(confirm_id=7)
    qm.undo("Q", confirm_id=7)
    qm.put("Q", b"4")
    with qm.open("Q", input="shared") as reader:
        qm.get("INIT")
        reader.get_many(2)
    qm.put("Q", b"5")
"""


def check_first(qm: QueueManager) -> str:
    """Nobody reads: what can be got has a trigger message."""
    left = len(list(qm.browse("Q")))
    return f"{left} messages, and no trigger" if left and not qm.depth("INIT") else ""


DEPTH = """
from inorder import connect

with connect(arguments[0]) as qm:
    for cycle in ("1", "2"):
        qm.put_many("Q", [b"1", b"2"])
        with qm.unit_of_work():
            qm.put_many("Q", [b"3", b"4"])
        with qm.open("Q", input="shared") as reader:
            reader.get_many(2, syncpoint=True)
        qm.alter_queue("Q", trigger_control=True, description=cycle)
        qm.back_out()
        with qm.open("Q", input="shared") as reader:
            reader.get_many(4)
        qm.alter_queue("Q", trigger_control=True, description=cycle + "b")
"""


def check_depth(qm: QueueManager) -> str:
    """Control is off if and only if the depth was reached since it was switched on; each time there is one message."""
    attributes, asked = qm.attributes("Q"), qm.depth("INIT")
    if attributes.trigger_control and qm.depth("Q") >= NEEDED:
        return f"{qm.depth('Q')} messages, and no trigger since control is on"
    # each of the four switches follows a trigger
    switched = ("", "1", "1b", "2", "2b").index(attributes.description)
    wanted = switched + (not attributes.trigger_control)
    return "" if asked == wanted else f"{asked} trigger messages, not {wanted}"


GROUP = """
from inorder import Flags, Message, connect

def member(name, number, flags=Flags.IN_GROUP):
    return Message(b"m", group_id=name.ljust(24, b"-"), sequence_number=number, flags=flags)

with connect(arguments[0]) as qm:
    qm.put("Q", b"by itself")
    with qm.unit_of_work():
        for _ in range(2):
            with qm.group("Q") as group:
                group.put(b"1")
                group.put(b"2")
    qm.put("Q", member(b"A", 3, Flags.LAST_IN_GROUP))
    qm.put("Q", member(b"A", 1))
    qm.put("Q", member(b"A", 2), syncpoint=True)
    qm.back_out()
    qm.put("Q", member(b"A", 2), syncpoint=True)
    qm.put("Q", member(b"B", 1), syncpoint=True)
    qm.commit()
    uid = qm.put("Q", member(b"B", 2, Flags.LAST_IN_GROUP), confirm_id=7).uid
    qm.confirm_put("Q", uid)
    with qm.open("Q", input="shared") as reader:
        reader.get(complete=True, logical=True, syncpoint=True)
    qm.back_out()
"""


def check_group(qm: QueueManager) -> str:
    """As many trigger messages as there are whole groups, and messages in none."""
    wanted = wholes(qm.browse("Q"))
    return "" if qm.depth("INIT") == wanted else f"{qm.depth('INIT')} trigger messages, not {wanted}"


def wholes(messages: Iterable[Message]) -> int:
    singles, groups = 0, dict[bytes, dict[int, bool]]()
    for one in messages:
        if one.flags & (Flags.IN_GROUP | Flags.LAST_IN_GROUP):
            groups.setdefault(one.group_id, {})[one.sequence_number] = bool(one.flags & Flags.LAST_IN_GROUP)
        else:
            singles += 1
    return singles + sum(max(there) == len(there) and there[max(there)] for there in groups.values())


PROGRAMS: dict[TriggerType, tuple[str, Callable[[QueueManager], str], dict[str, Any]]] = {
    "first": (FIRST, check_first, {}),
    "depth": (DEPTH, check_depth, {"trigger_depth": NEEDED}),
    "group": (GROUP, check_group, {}),
}


def is_over(qm: QueueManager) -> bool:
    """Whether what the program had open has ended with it; what it holds under a confirm id stays."""
    return not qm.inspect.status("Q").open_input_count and all(unit.kind == "confirm" for unit in qm.inspect.units())


def judged(make: Make, kind: str, trigger_type: TriggerType, kill_at: str) -> bool:
    """One life of the program; whether it came to its end."""
    program, check, attributes = PROGRAMS[trigger_type]
    place = make(kind)
    with connect(place) as qm:
        qm.create_queue("INIT")
        qm.admin.create_process("SERVE")
        attributes = attributes | {"initiation_queue": "INIT", "process": "SERVE"}
        qm.create_queue("Q", trigger_control=True, trigger_type=trigger_type, **attributes)
    status = forked.run(program, place, kill_at=kill_at)
    assert status in (0, -signal.SIGKILL), f"killed at {kill_at} it ended with {status}"
    with connect(place) as qm:
        until(lambda: is_over(qm), "the dead program's unit of work is backed out")
        wrong = check(qm) or "; ".join(map(str, qm.admin.check()))
        assert not wrong, f"killed at {kill_at}: {wrong}"
    return status == 0


@pytest.mark.nightly
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("trigger_type", list(PROGRAMS))
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_killed_anywhere_a_program_leaves_no_work_without_a_trigger(
    make: Make, kind: str, trigger_type: TriggerType, point: str
) -> None:
    lives = 0
    while lives < KILLS_MAX and not judged(make, kind, trigger_type, f"{point}:{lives + 1}"):
        lives += 1
    assert 10 < lives < KILLS_MAX, f"the program was killed {lives} times"
