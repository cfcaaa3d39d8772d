"""Who has a store open, and what is done when they are gone."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import apsw
from tools.proof import crash_points

import inorder
from inorder.stores.sqlite import SqliteStore


def test_a_second_store_object_of_a_process_is_no_start(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with inorder.connect(SqliteStore(path)) as first:
        first.create_queue("Q")
        first.put("Q", b"in a unit", syncpoint=True)
        first.put("Q", inorder.Message(b"light", persistent=False))
        with inorder.connect(SqliteStore(path)) as second:
            assert second.depth("Q") == 2
            first.commit()
            assert [message.body for message in second.browse("Q")] == [b"in a unit", b"light"]


def put_number(path: Path) -> int:
    """The number that a put is given after a start of the queue manager."""
    with inorder.connect(path) as qm:
        if not qm.queues():
            qm.create_queue("Q")
        qm.put("Q", b"x")
        (message,) = qm.get_many("Q", 2)
        assert message.place is not None
        return message.place.number


def test_a_start_passes_over_numbers_only_if_the_machine_has_not_run_on(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    assert [put_number(path), put_number(path)] == [1, 2]
    with closing(apsw.Connection(str(path))) as database:
        database.execute("UPDATE manager SET boot = 'another run'")
    after = put_number(path)
    assert after > 2 + 1
    assert put_number(path) == after + 1


LARGE_UNIT = """
import sys
import inorder
from tools.proof.limits import make_small

make_small()
with inorder.connect(sys.argv[1]) as qm, qm.unit_of_work():
    qm.get_many("Q", 10)
"""


def test_what_a_dead_process_left_to_be_removed_is_removed_by_whoever_finds_it_dead(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with inorder.connect(path) as qm, closing(apsw.Connection(str(path))) as database:
        qm.create_queue("Q")
        qm.put_many("Q", [b"x"] * 10)
        killed = subprocess.run(
            [sys.executable, "-c", LARGE_UNIT, path], env=crash_points.environment("settled:2"), check=False
        )
        assert killed.returncode == -signal.SIGKILL
        assert database.execute("SELECT count(*) FROM leftover").get == 8
        assert qm.inspect.units() == []  # who asks finds out who is dead
        qm.put("Q", b"y", syncpoint=True)
        qm.commit()
        assert database.execute("SELECT count(*) FROM leftover").get == 0
        assert database.execute("SELECT count(*) FROM content").get == 1
