"""Programs that put under the same keys at once, and are killed amid it: one message for each key (decision 330)."""

from __future__ import annotations

import random
import subprocess
import sys
import uuid
from collections import Counter
from pathlib import Path
from typing import Literal

import pytest
from tests.stores.sqlite.programs import Program

from inorder import QueueManager, connect
from inorder.errors import DuplicatePending

ReadOrder = Literal["relaxed", "unordered"]
KEYS = 60
KILLS = 3
# Puts each key, outside of a unit of work, in one, in one with another key, or in one that it backs out first; and says
# that the key has been put when the queue manager has said so.
PROGRAM = f"""
import random, sys, time
import inorder
from inorder.errors import DuplicatePending, OrderDeadlock

where, seed = sys.argv[1], int(sys.argv[2])
chance = random.Random(seed)
keys = [str(n) for n in range({KEYS})]
chance.shuffle(keys)
with inorder.connect(where, program=f"putter {{seed}}") as qm:
    print("ready", flush=True)
    for n, key in enumerate(keys):
        way = chance.randrange(4)
        while True:
            try:
                if way == 0:
                    qm.put("Q", key.encode(), deduplicate=key)
                elif way == 3 and chance.random() < 0.5:
                    qm.put("Q", key.encode(), deduplicate=key, syncpoint=True)
                    qm.back_out()
                    continue
                else:
                    with qm.unit_of_work():
                        qm.put("Q", key.encode(), deduplicate=key)
                        if way == 2:
                            other = keys[(n + 1) % {KEYS}]
                            qm.put("Q", other.encode(), deduplicate=other)
            except DuplicatePending:
                way = 0 if way == 2 else way  # two with each other's next key would go on for ever
                time.sleep(0.001)
                continue
            break
        print(key, flush=True)
"""


def put_and_kill(where: str, qm: QueueManager, read_order: ReadOrder = "relaxed") -> None:
    """Programs put all keys; some are killed after some lines; the last ones run to their end."""
    qm.create_queue("Q", read_order=read_order)
    chance, said = random.Random(1), set[str]()
    for round_ in range(KILLS + 1):
        running = [
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM, where, str(10 * round_ + n)], stdout=subprocess.PIPE, text=True
            )
            for n in range(2)
        ]
        for program in running:
            assert program.stdout is not None
            assert program.stdout.readline() == "ready\n"
        if round_ < KILLS:
            for program in running:
                assert program.stdout is not None
                said |= {program.stdout.readline().strip() for _ in range(chance.randrange(KEYS // KILLS))}
                program.kill()
        for program in running:
            assert program.stdout is not None
            said |= {line.strip() for line in program.stdout if line.endswith("\n")}
            program.wait()
            program.stdout.close()
        there = Counter(message.body.decode() for message in qm.browse("Q"))
        assert not said - {""} - there.keys(), "a key whose put was promised has no message"
        assert set(there.values()) <= {1}, f"keys with more than one message: {there.most_common(3)}"
    assert len(there) == KEYS
    assert not qm.inspect.units()
    assert qm.admin.check() == []


@pytest.mark.nightly
def test_programs_that_are_killed_leave_one_message_for_each_key(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with connect(path) as qm:
        put_and_kill(str(path), qm)


@pytest.mark.nightly
@pytest.mark.postgresql
@pytest.mark.parametrize("read_order", ["relaxed", "unordered"])
def test_programs_that_are_killed_leave_one_message_for_each_key_on_a_server(
    postgresql: str, read_order: ReadOrder
) -> None:
    where = f"{postgresql}{'&' if '?' in postgresql else '?'}schema=keys_{uuid.uuid4().hex}"
    with connect(where) as qm:
        put_and_kill(where, qm, read_order)


def test_a_put_that_a_killed_programs_unit_is_in_the_way_of_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with connect(path, program="test") as qm:
        qm.create_queue("Q")
        with Program(path) as child:
            child.answer()
            child.run("qm.put('Q', b'theirs', deduplicate='k', syncpoint=True)")
            with pytest.raises(DuplicatePending, match="a unit of work of child, which is not settled"):
                qm.put("Q", b"ours", deduplicate="k")
            child.kill()
        assert qm.put("Q", b"ours", deduplicate="k").duplicate_of is None
        assert [message.body for message in qm.browse("Q")] == [b"ours"]
