"""`inorder dead`: dead letters listed, replayed, discarded."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Command
from tests.cli.test_json import keys_below

import inorder
from inorder import Report


@pytest.fixture
def dead(queue: str, store: Path) -> None:
    """Two reports that found REPORTS full, and one for a queue that does not exist."""
    with inorder.connect(store) as qm:
        qm.create_queue("REPORTS", max_depth=1)
        qm.create_queue("DEAD")
        qm.admin.alter_manager(dead_letter_queue="DEAD")
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
def test_dead_letters_are_listed_by_reason_queue_and_selector(
    run: Command, options: tuple[str, ...], bodies: list[str]
) -> None:
    records = run("dead", "list", "--json", *options).records
    assert [one["message"]["body"] for one in records] == bodies
    assert all(one["message"]["properties"] == {} for one in records)
    shown = run("dead", "list", *options).out
    assert ("UNKNOWN_OBJECT_NAME" in shown) == ("GONE" in shown) == ("three" in bodies)
    assert ("Q_FULL" in shown) == ("one" in bodies)


@pytest.mark.usefixtures("dead")
def test_dead_letters_that_cannot_be_replayed_stay_and_the_status_is_1(run: Command) -> None:
    assert run("get", "REPORTS").out == "in the way\n"
    ended = run("dead", "replay", "--json")
    assert ended.status == 1
    (told,) = ended.records
    assert (told["replayed"], [one["reason"] for one in told["stayed"]]) == (1, [2053, 2085])
    assert "stays" in run("dead", "replay").err
    assert run("dead", "replay", "--to", "ORDERS", "--count", "1").out == "replayed 1 dead letter\n"
    assert len(run("dead", "list", "--json").records) == 1


@pytest.mark.usefixtures("dead")
def test_a_discard_needs_confirmation(run: Command) -> None:
    refused = run("dead", "discard")
    assert refused.status == 2
    assert "Discard 3 dead letters" in refused.err
    assert run("dead", "discard", "--queue", "GONE", "--yes", "--json").records == [{"discarded": 1}]
    assert run("dead", "discard", "--yes").out == "discarded 2 dead letters\n"
    assert run("dead", "discard").out == "discarded 0 dead letters\n"


def test_a_list_of_dead_letters_mentions_dropped_reports(run: Command, queue: str, store: Path) -> None:
    with inorder.connect(store) as qm:
        qm.put(queue, b"one", report=Report.COA, reply_to_queue="GONE")
    assert "1 report" in run("dead", "list", "--dead-letter-queue", queue).err
    nothing = run("dead", "list")  # on the system's queue, because the queue manager names none
    assert (nothing.status, nothing.out) == (0, "")
    assert "no dead letters" in nothing.err


RULES = """
WAIT(NO)
* what has room now
REASON(MQRC_Q_FULL) ACTION(RETRY)
ACTION(FWD) FWDQ(REPAIR) HEADER(NO)
"""


@pytest.mark.usefixtures("dead")
def test_a_table_of_rules_is_applied_and_its_json_has_the_documented_keys(
    run: Command, store: Path, tmp_path: Path
) -> None:
    table = tmp_path / "rules"
    table.write_text(RULES)
    with inorder.connect(store) as qm:
        qm.create_queue("REPAIR")
        qm.alter_queue("REPORTS", max_depth=2)
    *tried, summed = run("dead", "run", str(table), "--dry-run", "--json").records
    assert [(one["event"], one["line"]) for one in tried] == [("retried", 4), ("retried", 4), ("forwarded", 5)]
    assert summed == {
        "dry_run": True, "discarded": 0, "retried": 2, "forwarded": 1, "failed": 0, "ignored": 0
    }  # fmt: skip
    *done, summed = run("dead", "run", str(table), "--json").records
    assert [(one["event"], one["line"], one["queue"]) for one in done] == [
        ("retried", 4, "REPORTS"), ("failed", 4, "REPORTS"), ("forwarded", 5, "REPAIR"), ("forwarded", 5, "REPAIR")
    ]  # fmt: skip
    assert done[1]["error"]["reason_name"] == "Q_FULL"
    assert done[0].keys() == keys_below("A dead letter that a rule was applied to")
    with inorder.connect(store) as qm:
        assert [qm.depth(name) for name in ("DEAD", "REPORTS", "REPAIR")] == [0, 2, 2]


@pytest.mark.usefixtures("dead")
def test_people_are_shown_what_a_table_of_rules_would_do_and_has_done(run: Command, store: Path) -> None:
    told = run("dead", "run", "-", "--dry-run", given=b"WAIT(NO)\nREASON(2085) ACTION(DISCARD)\n")
    assert "would be discarded by line 2" in told.err
    assert "stays: no rule is left for it" in told.err
    assert "would have put 0 dead letters and discarded 1; 2 stay" in told.out
    told = run("dead", "run", "-", given=b"WAIT(NO)\nREASON(2085) ACTION(DISCARD)\n")
    assert "discarded by line 2" in told.err
    assert told.out == "put 0 dead letters and discarded 1; 2 stay\n"
    with inorder.connect(store) as qm:
        assert qm.depth("DEAD") == 2


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            b"ACTION(DISCARD)\nACTION(RETRY) PUTAUT(CTX)",
            "line 2: found PUTAUT('CTX'); allowed is PUTAUT(DEF): any program",
        ),
        (b"* nothing", "no rule"),
        (b"\xff", "not in UTF-8"),
    ],
)
@pytest.mark.usefixtures("dead")
def test_an_invalid_table_of_rules_is_refused_with_its_mistake_and_changes_nothing(
    run: Command, store: Path, given: bytes, text: str
) -> None:
    told = run("dead", "run", "-", given=given)
    assert told.status == 2
    assert text in told.err
    assert run("dead", "run", "no.such.file").status == 2
    assert run("dead", "list", "--reason", "FULL").status == 2
    with inorder.connect(store) as qm:
        assert qm.depth("DEAD") == 3
