"""Reason codes: some test produces each code of the table through the door, or `IMPOSSIBLE` says why none can.

Rules: section 7 of mq-semantics.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.mqi.program import ALL, OK, Program

from inorder import QueueManager
from inorder import errors as of_inorder
from inorder.mqi import connections, verbs
from inorder.mqi import constants as mq
from inorder.mqi.layouts import layout
from inorder.mqi.refusals import CLOSEST, reason_of
from inorder.reasons import Reason

HERE = Path(__file__).parent
DISTRIBUTION = "there are no distribution lists"
TOPICS = "there are no topics"
Z_OS = "on z/OS alone"
XA = "MQ is no transaction manager here"
IMPOSSIBLE = {
    2007: "the verbs have no pointers that could be wrong",
    2023: "the verbs have no pointers that could be wrong",
    2056: "a full disk is 2192",
    2062: Z_OS,
    2063: "a failed check is 2035",
    2065: "the number of selectors is that of the list",
    2072: "every queue manager has syncpoint",
    2122: XA,
    2123: "a unit is committed or backed out as a whole, or is pending",
    2136: DISTRIBUTION,
    2161: "a queue manager stops at once",
    2244: "as 2243, which a table has",
    2248: "an MQMDE that is not valid stays in the data",
    2258: DISTRIBUTION,
    2297: XA,
    2331: Z_OS,
    2351: XA,
    2352: XA,
    2353: XA,
    2354: XA,
    2355: XA,
    2362: "of Java's messaging",
    2363: "of Java's messaging",
    2365: Z_OS,
    2417: TOPICS,
    2432: TOPICS,
    2443: TOPICS,
    2457: "there is no read ahead",
    2478: "the limit of properties is that of a message",
    2498: "a handle refuses such a name",
    2499: "a handle is in use for one call at a time",
    2504: "a selector that is always false is valid here",
    2516: "a selection string is checked for the open that has it",
    2519: "a selection string is a text",
    2549: "a store elsewhere alone interrupts calls",
    2550: TOPICS,
    3065: "of commands",
}


def test_every_reason_is_produced_or_impossible() -> None:
    sources = "".join(path.read_text() for path in HERE.rglob("test_*.py"))
    tables = "".join(path.read_text() for path in (HERE.parent / "scenarios").glob("*.txt"))
    said = set(map(int, re.findall(r"\b(2\d{3}|3065)\b", re.sub(r"(?m)^    \d{4}: .*$", "", sources))))
    said |= set(map(int, re.findall(r"(?:error|warning)=(\d{4})", tables)))
    said |= {int(reason) for reason in Reason if f"MQRC_{reason.name}" in sources}
    known = {int(reason) for reason in Reason if 0 < reason <= 8999}
    assert known - said - IMPOSSIBLE.keys() == set()


def test_own_reasons_are_answered_with_reasons_of_mq() -> None:
    assert CLOSEST
    assert all(ours > 9000 >= theirs for ours, theirs in CLOSEST.items())
    assert all(reason_of(of_inorder.InorderError("no", reason=one)) <= 9000 for one in Reason)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (of_inorder.StoreError("x"), 2102),
        (of_inorder.StoreFull("x"), 2192),
        (of_inorder.StoreDamaged("x"), 2101),
        (of_inorder.ConnectionBroken("x"), 2009),
        (of_inorder.OrderPending("x"), 2033),
        (of_inorder.Undeliverable("x"), 2087),
        (of_inorder.LeaseOver("x"), 2195),
        (ZeroDivisionError("x"), 2195),
    ],
)
def test_errors_of_the_store_have_their_reasons(
    program: Program, monkeypatch: pytest.MonkeyPatch, error: Exception, reason: int
) -> None:
    hobj = program.open("Q", ALL)

    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(connections.connection_of(program.hconn).objects[hobj], "put", fails)
    assert program.put(hobj, b"x") == (2, reason)


def test_a_pending_or_backed_out_commit_over_several_queue_managers_is_a_warning(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = connections.connection_of(program.hconn).manager
    monkeypatch.setattr(manager, "commit", lambda: Reason.OUTCOME_PENDING)
    assert program.commit() == (1, 2124)

    def fails() -> None:
        raise of_inorder.QueueCondition("x", reason=Reason.BACKED_OUT)

    monkeypatch.setattr(manager, "commit", fails)
    assert program.commit() == (1, 2003)
    monkeypatch.undo()
    assert verbs.mqbegin(program.hconn, b"XX  \1\0\0\0\0\0\0\0") == (2, 2134)


@pytest.fixture
def names(mq_store: QueueManager) -> None:
    mq_store.create_queue("X", usage="transmission")
    mq_store.create_queue("ALIAS", type="alias", base_queue="X")
    for name, over in (("NO.XMIT", "NONE"), ("NO.LOCAL", "ALIAS"), ("NO.USAGE", "Q")):
        mq_store.create_queue(name, type="remote", remote_queue="R", remote_manager="QM9", transmission_queue=over)


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize(
    ("default", "name", "manager", "reason"),
    [
        ("", "NO.XMIT", "", 2196),
        ("", "NO.LOCAL", "", 2091),
        ("", "NO.USAGE", "", 2092),
        ("", "ANY", "QM8", 2087),
        ("NONE", "ANY", "QM8", 2197),
        ("ALIAS", "ANY", "QM8", 2198),
        ("Q", "ANY", "QM8", 2199),
        ("", "Q", "QM 8", 2086),
    ],
)
def test_names_that_cannot_be_resolved_have_their_reasons(
    program: Program, mq_store: QueueManager, default: str, name: str, manager: str, reason: int
) -> None:
    mq_store.admin.alter_manager(default_transmission_queue=default)
    answer: Any = program.try_open(name, mq.MQOO_OUTPUT, ObjectQMgrName=manager.encode())
    assert answer == (-1, 2, reason)


def test_a_put_beyond_the_length_limit_of_the_queue_manager_is_refused(
    program: Program, mq_store: QueueManager
) -> None:
    mq_store.create_queue("BIG", max_length=100_000)
    mq_store.admin.alter_manager(max_length=40_000)
    assert program.put_one("BIG", bytes(40_001)) == (2, 2031)


def test_invalid_attributes_of_triggers_are_refused(program: Program) -> None:
    hobj = program.open("Q", ALL)
    for selector, value, reason in (
        (mq.MQIA_TRIGGER_CONTROL, 2, 2075),
        (mq.MQIA_TRIGGER_DEPTH, 0, 2076),
        (mq.MQIA_TRIGGER_MSG_PRIORITY, 10, 2077),
    ):
        assert verbs.mqset(program.hconn, hobj, [selector], [value], b"") == (2, reason)


def test_the_token_of_a_message_that_others_have_marked_is_refused(program: Program) -> None:
    hobj = program.open("Q", ALL | mq.MQOO_CO_OP)
    assert program.put(hobj, b"x") == OK
    assert program.get(hobj, mq.MQGMO_BROWSE_CO_OP) == OK
    token = program.gmo.MsgToken
    unmarked = mq.MQGMO_BROWSE_FIRST | mq.MQGMO_UNMARKED_BROWSE_MSG
    assert program.get(hobj, unmarked, gMatchOptions=mq.MQMO_MATCH_MSG_TOKEN, gMsgToken=token) == (2, 2200)


STRUCTURES: list[tuple[str, Callable[[int, int, bytearray], object], tuple[int, ...]]] = [
    ("CNO", lambda hconn, hobj, wrong: verbs.mqconnx(b"QM1".ljust(48), wrong), (-1, 2, 2139)),
    ("OD", lambda hconn, hobj, wrong: verbs.mqopen(hconn, wrong, mq.MQOO_OUTPUT), (-1, 2, 2044)),
    ("MD", lambda hconn, hobj, wrong: verbs.mqget(hconn, hobj, wrong, None, bytearray(10)), (0, 2, 2026)),
    ("GMO", lambda hconn, hobj, wrong: verbs.mqget(hconn, hobj, None, wrong, bytearray(10)), (0, 2, 2186)),
    ("MD", lambda hconn, hobj, wrong: verbs.mqput(hconn, hobj, wrong, None, b""), (2, 2026)),
    ("PMO", lambda hconn, hobj, wrong: verbs.mqput(hconn, hobj, None, wrong, b""), (2, 2173)),
    ("STS", lambda hconn, hobj, wrong: verbs.mqstat(hconn, 0, wrong), (2, 2426)),
    ("BO", lambda hconn, hobj, wrong: verbs.mqbegin(hconn, wrong), (2, 2134)),
]


@pytest.mark.parametrize(("name", "call", "answer"), STRUCTURES)
def test_a_structure_with_a_wrong_identifier_or_version_is_refused(
    program: Program, name: str, call: Callable[[int, int, bytearray], object], answer: tuple[int, ...]
) -> None:
    hobj, identifier = program.open("Q", ALL), name.encode().ljust(4)
    for begins in (b"XX  \1\0\0\0", identifier + b"\x09\0\0\0", identifier + bytes(4)):
        wrong = bytearray(layout(name).new())
        wrong[:8] = begins
        assert call(program.hconn, hobj, wrong) == answer
