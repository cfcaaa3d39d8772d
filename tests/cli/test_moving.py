"""`inorder move` and `inorder copy` into another store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.conftest import Command, Ended
from tests.helpers.support import bodies_at

import inorder
from inorder.cli.drawing import Advance
from inorder.cli.output import Output
from inorder.client.bulk import ClaimReader


@pytest.fixture
def other(store: Path) -> Path:
    """The path of a store that does not exist yet."""
    return store.parent / "other.db"


def lines(run: Command, queue: str, *words: bytes) -> Ended:
    return run("put", queue, "--lines", given=b"".join(word + b"\n" for word in words))


def test_a_queue_is_moved_to_a_store_that_is_made_for_it(run: Command, queue: str, store: Path, other: Path) -> None:
    run("queue", "alter", queue, "--max-depth", "50", "--read-order", "strict", "--description", "ours")
    lines(run, queue, b"1", b"2", b"3")
    run("queue", "alter", queue, "--no-put-allowed")  # nobody puts while it moves
    ended = run("move", queue, queue, "--to-store", str(other), "--create", "--unit-size", "2")
    assert (ended.status, ended.out) == (0, "moved 3 messages from ORDERS to ORDERS\n"), ended.err
    assert "made the store" in ended.err
    assert (bodies_at(store, queue), bodies_at(other, queue)) == ([], [b"1", b"2", b"3"])
    with inorder.connect(other) as qm:
        made = qm.attributes(queue)
    assert (made.max_depth, made.read_order, made.description, made.put_allowed) == (50, "strict", "ours", True)
    assert run("move", queue, queue, "--to-store", str(other), "--create", "--json").records == [
        {"done": "moved", "messages": 0, "source": "ORDERS", "target": "ORDERS"}
    ]


def test_a_copy_continues_where_the_last_one_stopped(run: Command, queue: str, other: Path) -> None:
    lines(run, queue, b"1", b"2", b"3")
    to = ("--to-store", str(other), "--create")
    assert run("copy", queue, queue, *to, "--count", "2").out == "copied 2 messages from ORDERS to ORDERS\n"
    assert run("copy", queue, queue, *to).out == "copied 1 message from ORDERS to ORDERS\n"
    assert run("copy", queue, queue, *to).out == "copied 0 messages from ORDERS to ORDERS\n"
    assert bodies_at(other, queue) == [b"1", b"2", b"3"]
    assert run("copy", queue, queue, *to, "--application", "second").out == "copied 3 messages from ORDERS to ORDERS\n"
    assert run("copy", queue, queue, *to, "--read-order", "relaxed").out == "copied 3 messages from ORDERS to ORDERS\n"
    assert len(bodies_at(other, queue)) == 9


def test_the_error_for_a_missing_target_says_how_to_create_it(run: Command, queue: str, other: Path) -> None:
    ended = run("move", queue, queue, "--to-store", str(other))
    assert ended.status == 3
    assert "there is no store at" in ended.err
    run("queue", "create", "X", "--store", str(other))
    ended = run("move", queue, queue, "--to-store", str(other))
    assert (ended.status, "--create defines ORDERS there with the attributes of ORDERS" in ended.err) == (2, True)
    ended = run("move", "NONE", "NONE", "--to-store", str(other.with_name("third.db")), "--create")
    assert (ended.status, other.with_name("third.db").exists()) == (2, False)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("move", "ORDERS", "B", "--create"), "--create needs another store"),
        (("copy", "ORDERS", "B", "--application", "a"), "--application needs another store"),
        (("copy", "ORDERS", "X", "--to-store", "other.db", "--read-order", "relaxed", "--application", "a"), "relaxed"),
        (("move", "ORDERS", "X", "--to-store", "other.db", "--group-id", "ab"), "--group-id cannot be used"),
        (("move", "ORDERS", "X", "--to-store", "other.db", "--application", ""), "application must be a text"),
        (("copy", "ORDERS", "X", "--to-store", "other.db", "--application", "x" * 201), "application must be a text"),
    ],
)
def test_conflicting_options_are_refused(
    run: Command, queue: str, other: Path, arguments: tuple[str, ...], told: str
) -> None:
    run("queue", "create", "B")
    run("queue", "create", "X", "--store", str(other))
    ended = run(*arguments)
    assert (ended.status, told in ended.err) == (2, True), ended.err


def test_the_error_that_stops_a_move_says_how_to_resume_it(run: Command, queue: str, store: Path, other: Path) -> None:
    lines(run, queue, b"1", b"2", b"3")
    run("queue", "create", queue, "--max-depth", "2", "--store", str(other))
    ended = run("move", queue, queue, "--to-store", str(other))
    assert ended.status == 1
    assert "2 messages arrived; run the same command to resume" in ended.err
    assert "1 more would exceed its limit of 2" in ended.err
    run("queue", "alter", queue, "--max-depth", "3", "--store", str(other))
    assert run("move", queue, queue, "--to-store", str(other)).status == 0
    assert (bodies_at(store, queue), bodies_at(other, queue)) == ([], [b"1", b"2", b"3"])


def test_messages_held_by_others_stay_and_are_counted(run: Command, queue: str, store: Path, other: Path) -> None:
    lines(run, queue, b"1", b"2", b"3")
    with inorder.connect(store) as qm, qm.open(queue, input="shared") as handle:
        reader = ClaimReader(handle, "spark")
        reader.claim(reader.begin().settled, most=1)
    ended = run("move", queue, queue, "--to-store", str(other), "--create")
    assert (ended.status, "1 message stayed on ORDERS" in ended.err) == (0, True)
    assert bodies_at(other, queue) == [b"2", b"3"]
    run("claim", "release", queue, "spark", "--yes")
    assert run("move", queue, queue, "--to-store", str(other)).err == ""


def test_ctrl_c_ends_a_move_and_the_next_one_continues(
    run: Command, queue: str, store: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def advance(done: int, total: int | None = None) -> None:
        if done == 3:
            raise KeyboardInterrupt

    @contextmanager
    def progress(*_: object, **__: object) -> Iterator[Advance]:
        yield advance

    lines(run, queue, b"1", b"2", b"3", b"4", b"5")
    move = ("move", queue, queue, "--to-store", str(other), "--create", "--unit-size", "1")
    with monkeypatch.context() as patched:
        patched.setattr(Output, "progress", progress)
        ended = run(*move)
    assert ended.status == 130
    assert "run the same command to resume" in ended.err
    assert "no messages are held" not in ended.err
    assert len(bodies_at(store, queue)) == 2
    assert run(*move).status == 0
    assert (bodies_at(store, queue), bodies_at(other, queue)) == ([], [b"1", b"2", b"3", b"4", b"5"])
