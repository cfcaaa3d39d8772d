"""MQOPEN and MQCLOSE through the door (R4.1 to R4.5, M-11, M-16)."""

from __future__ import annotations

import pytest
from tests.mqi.program import ALL, INPUT, OK, Program

from inorder import QueueManager
from inorder.mqi import constants as mq
from inorder.mqi import verbs
from inorder.mqi.layouts import Charv, layout

OUTPUT, BROWSE, INQUIRE = mq.MQOO_OUTPUT, mq.MQOO_BROWSE, mq.MQOO_INQUIRE
NOTHING = 0


@pytest.fixture
def program(program: Program, mq_store: QueueManager) -> Program:
    mq_store.create_queue("A", type="alias", base_queue="Q")
    mq_store.create_queue("BAD", type="alias", base_queue="NONE")
    mq_store.create_queue("M", type="model", definition_type="temporary_dynamic")
    mq_store.create_queue("PERM", type="model", definition_type="permanent_dynamic")
    mq_store.create_queue("X", usage="transmission")
    mq_store.create_queue("R", type="remote", remote_queue="FAR", remote_manager="QM9", transmission_queue="X")
    return program


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("Q", NOTHING, 2046),
        ("Q", mq.MQOO_FAIL_IF_QUIESCING, 2046),
        ("Q", INPUT | mq.MQOO_INPUT_EXCLUSIVE, 2046),
        ("Q", OUTPUT | mq.MQOO_CO_OP, 2046),
        ("Q", OUTPUT | mq.MQOO_SAVE_ALL_CONTEXT, 2046),
        ("Q", INPUT | mq.MQOO_SET_ALL_CONTEXT, 2046),
        ("Q", OUTPUT | mq.MQOO_BIND_ON_OPEN | mq.MQOO_BIND_NOT_FIXED, 2046),
        ("Q", INPUT | mq.MQOO_READ_AHEAD | mq.MQOO_NO_READ_AHEAD, 2046),
        ("Q", INPUT | mq.MQOO_NO_MULTICAST, 2046),
        ("Q", OUTPUT | 1 << 29, 2046),
        ("NONE", OUTPUT, 2085),
        ("", OUTPUT, 2085),
        ("BAD", OUTPUT, 2082),
        ("R", INPUT, 2045),
        ("R", BROWSE, 2045),
    ],
)
def test_an_invalid_open_is_refused(program: Program, name: str, options: int, reason: int) -> None:
    assert program.try_open(name, options) == (-1, 2, reason)


@pytest.mark.parametrize(
    ("name", "options", "resolved"),
    [
        ("Q", OUTPUT, ("Q", "QM1")),
        ("A", INPUT, ("Q", "QM1")),
        ("R", OUTPUT, ("FAR", "QM9")),
        ("R", OUTPUT | mq.MQOO_RESOLVE_LOCAL_Q, ("X", "QM1")),
        ("R", INQUIRE, ("", "")),
        ("A", INQUIRE | mq.MQOO_SET, ("", "")),
        ("X", OUTPUT, ("X", "QM1")),
        ("Q", OUTPUT | mq.MQOO_BIND_ON_GROUP | mq.MQOO_FAIL_IF_QUIESCING | mq.MQOO_ALTERNATE_USER_AUTHORITY,
            ("Q", "QM1")),
    ],
)  # fmt: skip
def test_an_open_returns_the_resolved_names(
    program: Program, name: str, options: int, resolved: tuple[str, str]
) -> None:
    program.open(name, options)
    od = program.od
    assert (od.ObjectName, od.ResolvedType) == (name.encode().ljust(48, b"\0"), mq.MQOT_Q), (
        "only a model changes ObjectName"
    )
    assert (od.ResolvedQName, od.ResolvedQMgrName) == tuple(one.encode().ljust(48) for one in resolved)


@pytest.mark.parametrize(
    ("kind", "name", "options", "reason"),
    [
        (mq.MQOT_Q_MGR, "", INQUIRE, 0),
        (mq.MQOT_Q_MGR, "QM1", INQUIRE, 0),
        (mq.MQOT_Q_MGR, "QM2", INQUIRE, 2085),
        (mq.MQOT_Q_MGR, "", OUTPUT, 2045),
        (mq.MQOT_PROCESS, "SYSTEM.DEFAULT.PROCESS", INQUIRE, 0),
        (mq.MQOT_PROCESS, "NONE", INQUIRE, 2085),
        (mq.MQOT_PROCESS, "SYSTEM.DEFAULT.PROCESS", INPUT, 2045),
        (mq.MQOT_TOPIC, "T", OUTPUT, 2085),
        (mq.MQOT_NAMELIST, "N", INQUIRE, 2085),
        (mq.MQOT_CHANNEL, "C", INQUIRE, 2043),
    ],
)
def test_objects_that_are_not_queues_can_only_be_opened_to_inquire(
    program: Program, kind: int, name: str, options: int, reason: int
) -> None:
    answer = program.try_open(name, options, ObjectType=kind)
    assert answer[1:] == ((2, reason) if reason else OK)
    if not reason:
        assert program.try_open(name, options, ObjectType=kind, ObjectQMgrName=b"QM9") == (-1, 2, 2045)
        assert program.try_open(name, options, ObjectType=kind, ObjectQMgrName=b"QM1")[1:] == OK
        assert program.put(answer[0], b"x") == (2, 2039)
        assert program.get(answer[0]) == (2, 2037)
        assert program.close(answer[0], mq.MQCO_DELETE) == (2, 2045)
        assert program.close(answer[0]) == OK


def test_invalid_structures_are_refused(program: Program) -> None:
    assert verbs.mqopen(program.hconn, None, OUTPUT) == (-1, 2, 2044)  # type: ignore[arg-type]
    assert verbs.mqput1(program.hconn, None, None, None, b"") == (2, 2044)  # type: ignore[arg-type]
    assert verbs.mqstat(program.hconn, 0, None) == (2, 2426)  # type: ignore[arg-type]
    selector = layout("OD").new(4, ObjectName=b"Q", SelectionString=Charv(Ptr=1, Length=10_241))
    assert verbs.mqopen(program.hconn, selector, INPUT) == (-1, 2, 2519)
    lists = layout("OD").new(2, ObjectName=b"Q", RecsPresent=2)
    assert verbs.mqopen(program.hconn, lists, OUTPUT) == (-1, 2, 2154)
    assert verbs.mqput1(program.hconn, lists, None, None, b"") == (2, 2154)


def test_exclusive_input_excludes_only_other_input(program: Program) -> None:
    first = program.open("Q", mq.MQOO_INPUT_EXCLUSIVE)
    assert program.try_open("Q", INPUT) == (-1, 2, 2042)
    for options in (BROWSE, OUTPUT, INQUIRE, mq.MQOO_SET):
        program.open("Q", options)
    assert program.close(first) == OK
    program.open("Q", mq.MQOO_INPUT_AS_Q_DEF)


@pytest.mark.parametrize(
    ("dynamic", "name"),
    [(b"REPLY.*", "REPLY."), (b"*", ""), (b"MINE", "MINE"), (b"Q", None), (b"NO GOOD*", None)],
)
def test_opening_a_model_queue_creates_a_dynamic_queue(
    program: Program, mq_store: QueueManager, dynamic: bytes, name: str | None
) -> None:
    hobj, *codes = program.try_open("M", ALL, DynamicQName=dynamic)
    if name is None:
        assert codes == [2, 2100 if dynamic == b"Q" else 2011]
        return
    assert codes == [0, 0]
    made = program.od.ObjectName.decode().rstrip()
    assert made.startswith(name)
    assert program.od.ObjectQMgrName == b"QM1".ljust(48)
    assert program.od.ResolvedQName.decode().rstrip() == made
    assert program.put(hobj, b"x", Persistence=mq.MQPER_PERSISTENT) == (2, 2048)
    assert program.put(hobj, b"x") == OK
    assert program.close(hobj) == OK
    assert made not in [one.name for one in mq_store.queues()]


def test_a_permanent_dynamic_queue_is_deleted_at_the_close_that_asks_for_it(
    program: Program, mq_store: QueueManager
) -> None:
    hobj = program.open("PERM", ALL, DynamicQName=b"P")
    other = program.open("P", OUTPUT)
    assert program.put(hobj, b"x") == OK
    assert program.close(hobj, mq.MQCO_DELETE) == (2, 2042)
    assert program.close(other) == OK
    assert program.close(hobj, mq.MQCO_DELETE) == (2, 2055)
    assert program.close(hobj, mq.MQCO_DELETE | mq.MQCO_DELETE_PURGE) == (2, 2046)
    assert program.close(hobj, 1 << 20) == (2, 2046)
    assert program.close(hobj, mq.MQCO_DELETE_PURGE) == OK
    assert "P" not in [one.name for one in mq_store.queues()]
    assert program.close(program.open("Q", INPUT), mq.MQCO_DELETE) == (2, 2045)


@pytest.mark.parametrize("options", [mq.MQCO_DELETE, mq.MQCO_DELETE_PURGE])
def test_a_temporary_dynamic_queue_is_deleted_by_its_maker_alone(
    program: Program, mq_store: QueueManager, options: int
) -> None:
    maker = program.open("M", ALL, DynamicQName=b"T")
    other, late = program.open("T", OUTPUT), program.open("T", BROWSE)
    assert program.put(maker, b"x") == OK
    assert program.close(other, options) == (2, 2045)
    assert program.close(other) == OK
    assert program.close(maker, options) == OK, "its messages go with it"
    assert "T" not in [one.name for one in mq_store.queues()]
    assert program.close(late, options) == OK


def test_a_handle_of_a_deleted_queue_gets_2052(program: Program) -> None:
    maker = program.open("M", ALL, DynamicQName=b"GONE")
    hobj = program.open("GONE", OUTPUT | BROWSE)
    assert program.close(maker) == OK
    assert program.put(hobj, b"x") == (2, 2052)
    assert program.get(hobj, mq.MQGMO_BROWSE_FIRST) == (2, 2052)
    assert program.close(hobj) == OK


def test_an_open_beyond_the_limit_of_handles_is_refused(program: Program, mq_store: QueueManager) -> None:
    mq_store.admin.alter_manager(max_handles=3)
    for _ in range(3):
        program.open("Q", INPUT)
    assert program.try_open("Q", INPUT) == (-1, 2, 2017)


def test_unsupported_verbs_answer_2298(program: Program) -> None:
    assert verbs.mqsub(program.hconn, layout("SD").new(1), 0) == (-1, -1, 2, 2298)
    assert verbs.mqsubrq(program.hconn, 1, 1, layout("SRO").new(1)) == (2, 2298)
