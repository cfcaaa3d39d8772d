"""Units of work on the command line fit into memory, however long the messages are."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Command

import inorder
from inorder.cli import parts

LENGTH = 100


@pytest.fixture(autouse=True)
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit has room for three messages, and they are got one by one."""
    monkeypatch.setattr(parts, "UNIT_BYTES", 3 * LENGTH)
    monkeypatch.setattr(parts, "STEP_MESSAGES", 1)


@pytest.fixture
def long(run: Command, queue: str) -> str:
    run("put", queue, "--lines", given=b"\n".join([b"x" * LENGTH] * 8))
    run("queue", "create", "B")
    return queue


def test_parts_end_with_the_bytes_or_the_number() -> None:
    bodies = [b"x" * LENGTH] * 4 + [b""] * 5 + [b"x" * 9 * LENGTH, b""]
    assert [len(part) for part in parts.parts(bodies, 4)] == [3, 4, 3, 1]
    assert not list(parts.parts([], 4))


def units_of(store: Path, queue: str) -> list[int]:
    """How many messages each unit of work has put on a queue in COMMIT order: each has a number of its own."""
    with inorder.connect(store) as qm:
        numbers = [message.place.number for message in qm.browse(queue) if message.place]
    return [numbers.count(number) for number in sorted(set(numbers))]


@pytest.mark.parametrize("command", ["move", "copy"])
def test_a_unit_of_work_is_as_long_as_there_is_room(run: Command, long: str, store: Path, command: str) -> None:
    run("queue", "alter", "B", "--order", "commit")
    assert run(command, long, "B", "--count", "7").status == 0
    with inorder.connect(store) as qm:
        assert qm.depth("B") == 7
        assert qm.depth(long) == (1 if command == "move" else 8)
    if command == "move":
        assert units_of(store, "B") == [3, 3, 1]


def test_all_are_got_though_a_unit_has_room_for_some(run: Command, long: str, store: Path) -> None:
    assert len(run("get", long, "--all").out.splitlines()) == 8
    assert run("get", long, "--all", "--wait", "0.01").status == 0


def test_a_line_that_is_no_text_is_refused_and_not_mended(run: Command, queue: str, store: Path) -> None:
    ended = run("put", queue, "--from-json", given=b'{"body": "\xff"}\n')
    assert ended.status == 2
    assert "line 1: not JSON" in ended.err
