"""`inorder dead`: dead letters listed, replayed, discarded."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Command

import inorder
from inorder import Report


@pytest.fixture
def dead(queue: str, store: Path) -> None:
    """Two reports that found REPORTS full, and one for a queue that is not there."""
    with inorder.connect(store) as qm:
        qm.create_queue("REPORTS", max_depth=1)
        qm.create_queue("DEAD")
        qm.alter_manager(dead_letter_queue="DEAD")
        qm.put("REPORTS", b"in the way")
        for body, reply_to in ((b"one", "REPORTS"), (b"two", "REPORTS"), (b"three", "GONE")):
            qm.put(queue, body, report=Report.COA_WITH_FULL_DATA, reply_to_queue=reply_to)


@pytest.mark.usefixtures("dead")
@pytest.mark.parametrize(
    ("options", "bodies"),
    [
        ((), ["one", "two", "three"]),
        (("--reason", "2053"), ["one", "two"]),
        (("--reason", "mqrc_unknown_object_name"), ["three"]),
        (("--queue", "GONE"), ["three"]),
        (("--selector", "dlh.reason = 2085"), ["three"]),
        (("--dead-letter-queue", "ORDERS", "--reason", "1"), []),
    ],
)
def test_dead_letters_are_chosen(run: Command, options: tuple[str, ...], bodies: list[str]) -> None:
    records = run("dead", "list", "--json", *options).records
    assert [one["message"]["body"] for one in records] == bodies
    assert all(one["message"]["properties"] == {} for one in records)


@pytest.mark.usefixtures("dead")
def test_they_are_listed_with_reason_and_target(run: Command) -> None:
    listed = run("dead", "list").out
    assert "Q_FULL" in listed
    assert "UNKNOWN_OBJECT_NAME" in listed
    assert "GONE" in listed


@pytest.mark.usefixtures("dead")
def test_what_cannot_be_replayed_stays_and_status_1_says_so(run: Command) -> None:
    assert run("get", "REPORTS").out == "in the way\n"
    ended = run("dead", "replay", "--json")
    assert ended.status == 1
    (told,) = ended.records
    assert (told["replayed"], [one["reason"] for one in told["stayed"]]) == (1, [2053, 2085])
    assert "stays" in run("dead", "replay").err
    assert run("dead", "replay", "--to", "ORDERS", "--count", "1").out == "replayed 1 dead letter\n"
    assert len(run("dead", "list", "--json").records) == 1


@pytest.mark.usefixtures("dead")
def test_a_discard_is_asked_for(run: Command) -> None:
    refused = run("dead", "discard")
    assert refused.status == 2
    assert "Discard 3 dead letters" in refused.err
    assert run("dead", "discard", "--queue", "GONE", "--yes", "--json").records == [{"discarded": 1}]
    assert run("dead", "discard", "--yes").out == "discarded 2 dead letters\n"
    assert run("dead", "discard").out == "discarded 0 dead letters\n"


def test_what_was_dropped_is_told(run: Command, queue: str, store: Path) -> None:
    with inorder.connect(store) as qm:
        qm.put(queue, b"one", report=Report.COA, reply_to_queue="GONE")
    assert "1 report" in run("dead", "list", "--dead-letter-queue", queue).err
    assert run("dead", "list").status == 2


def test_a_reason_is_a_number_or_a_name(run: Command) -> None:
    ended = run("dead", "list", "--reason", "FULL")
    assert ended.status == 2
    assert "FULL" in ended.err
