"""MQINQ and MQSET through the door (4.1, M-15)."""

from __future__ import annotations

import pytest
from tests.mqi.program import ALL, INPUT, OK, Program

from inorder import QueueManager
from inorder.mq.words import words_of
from inorder.mqi import constants as mq
from inorder.mqi import verbs

Answer = tuple[list[int], bytes, int, int]


def inquire(program: Program, hobj: int, selectors: list[int], ints: int = 20, chars: int = 2000) -> Answer:
    return verbs.mqinq(program.hconn, hobj, selectors, ints, chars)


def test_integers_and_texts_are_returned_in_the_order_of_their_selectors(
    program: Program, mq_store: QueueManager
) -> None:
    mq_store.create_queue(
        "D", description="orders", delivery="fifo", default_priority=4, max_depth=10, backout_threshold=3,
        backout_requeue_queue="Q", trigger_data="now", put_allowed=False,
    )  # fmt: skip
    mq_store.put("Q", b"x")
    hobj = program.open("D", mq.MQOO_INQUIRE | INPUT)
    selectors = [mq.MQIA_DEF_PRIORITY, mq.MQCA_Q_DESC, mq.MQIA_MSG_DELIVERY_SEQUENCE, mq.MQCA_BACKOUT_REQ_Q_NAME,
                 mq.MQIA_INHIBIT_PUT, mq.MQIA_Q_TYPE, mq.MQIA_MAX_Q_DEPTH, mq.MQIA_BACKOUT_THRESHOLD,
                 mq.MQIA_OPEN_INPUT_COUNT, mq.MQIA_CURRENT_Q_DEPTH, mq.MQCA_Q_NAME, mq.MQIA_DEF_PRIORITY]  # fmt: skip
    ints, chars, *codes = inquire(program, hobj, selectors)
    assert codes == [0, 0]
    assert ints == [4, 1, mq.MQQA_PUT_INHIBITED, mq.MQQT_LOCAL, 10, 3, 1, 0, 4]
    assert chars == b"orders".ljust(64) + b"Q".ljust(48) + b"D".ljust(48)
    created = inquire(program, hobj, [mq.MQCA_CREATION_DATE, mq.MQCA_CREATION_TIME])[1].decode()
    assert (len(created), created[4], created[14]) == (20, "-", ".")


@pytest.mark.parametrize(
    ("selectors", "ints", "chars", "expected"),
    [
        ([mq.MQIA_Q_TYPE, mq.MQIA_DEF_PRIORITY], 1, 0, ([1], b"", 1, 2022)),
        ([mq.MQCA_Q_NAME], 0, 3, ([], b"Q  ", 1, 2008)),
        ([mq.MQIA_Q_TYPE, mq.MQCA_BASE_Q_NAME], 1, 48, ([1], b"*" * 48, 1, 2068)),
        ([mq.MQIA_DEF_BIND], 1, 0, ([-1], b"", 1, 2068)),
        ([mq.MQIA_PROPERTY_CONTROL], 1, 0, ([mq.MQPROP_COMPATIBILITY], b"", *OK)),
        ([mq.MQIA_Q_TYPE], -1, 0, ([], b"", 2, 2021)),
        ([mq.MQCA_Q_NAME], 0, -1, ([], b"", 2, 2006)),
        ([9_999], 1, 1, ([], b"", 2, 2067)),
        ([0], 1, 1, ([], b"", 2, 2067)),
        ([mq.MQIA_Q_TYPE] * 257, 300, 0, ([], b"", 2, 2066)),
        ([], 0, 0, ([], b"", 0, 0)),
    ],
)
def test_short_buffers_and_unsuitable_selectors_have_their_reasons(
    program: Program, selectors: list[int], ints: int, chars: int, expected: Answer
) -> None:
    assert inquire(program, program.open("Q", ALL), selectors, ints, chars) == expected


def test_inquiring_and_setting_need_a_handle_opened_for_it(program: Program) -> None:
    assert inquire(program, program.open("Q", INPUT), [mq.MQIA_Q_TYPE]) == ([], b"", 2, 2038)
    assert verbs.mqset(program.hconn, program.open("Q", INPUT), [mq.MQIA_INHIBIT_PUT], [1], b"") == (2, 2040)
    assert inquire(program, 999, [mq.MQIA_Q_TYPE]) == ([], b"", 2, 2019)


def test_attributes_of_alias_and_remote_queues_are_inquired(program: Program, mq_store: QueueManager) -> None:
    mq_store.create_queue("A", type="alias", base_queue="Q")
    mq_store.create_queue("X", usage="transmission")
    mq_store.create_queue("R", type="remote", remote_queue="FAR", remote_manager="QM9", transmission_queue="X")
    alias, remote = program.open("A", mq.MQOO_INQUIRE), program.open("R", mq.MQOO_INQUIRE)
    assert inquire(program, alias, [mq.MQIA_Q_TYPE, mq.MQCA_BASE_Q_NAME]) == ([mq.MQQT_ALIAS], b"Q".ljust(48), 0, 0)
    assert inquire(program, alias, [mq.MQIA_CURRENT_Q_DEPTH, mq.MQIA_Q_TYPE]) == ([-1, mq.MQQT_ALIAS], b"", 1, 2068)
    names = b"".join(name.ljust(48) for name in (b"FAR", b"QM9", b"X"))
    asked = [mq.MQCA_REMOTE_Q_NAME, mq.MQCA_REMOTE_Q_MGR_NAME, mq.MQCA_XMIT_Q_NAME]
    assert inquire(program, remote, asked) == ([], names, 0, 0)
    assert inquire(program, remote, [mq.MQIA_CURRENT_Q_DEPTH, mq.MQIA_Q_TYPE]) == ([-1, mq.MQQT_REMOTE], b"", 1, 2068)


def test_attributes_of_the_queue_manager_are_inquired(program: Program, mq_store: QueueManager) -> None:
    mq_store.admin.alter_manager(mark_interval=None, dead_letter_queue="Q")
    hobj = program.open("", mq.MQOO_INQUIRE, ObjectType=mq.MQOT_Q_MGR)
    selectors = [mq.MQIA_COMMAND_LEVEL, mq.MQIA_PLATFORM, mq.MQIA_SYNCPOINT, mq.MQIA_CODED_CHAR_SET_ID,
                 mq.MQIA_MAX_PRIORITY, mq.MQIA_MSG_MARK_BROWSE_INTERVAL, mq.MQCA_DEAD_LETTER_Q_NAME,
                 mq.MQCA_COMMAND_INPUT_Q_NAME, mq.MQCA_VERSION]  # fmt: skip
    ints, chars, *codes = inquire(program, hobj, selectors)
    assert (ints, codes) == ([940, mq.MQPL_UNIX, 1, 1208, 9, -1], [0, 0])
    assert chars == b"Q".ljust(48) + b"SYSTEM.ADMIN.COMMAND.QUEUE".ljust(48) + b"09040000"
    assert inquire(program, hobj, [mq.MQCA_Q_MGR_IDENTIFIER])[1].startswith(b"QM1_")


def test_attributes_of_a_process_are_inquired(program: Program, mq_store: QueueManager) -> None:
    mq_store.admin.create_process("P", application_id="run.sh")
    hobj = program.open("P", mq.MQOO_INQUIRE, ObjectType=mq.MQOT_PROCESS)
    assert inquire(program, hobj, [mq.MQCA_APPL_ID, mq.MQIA_APPL_TYPE]) == ([6], b"run.sh".ljust(256), 0, 0)


@pytest.mark.parametrize(("kind", "otype", "name"), [("queue", mq.MQOT_Q, "Q"), ("manager", mq.MQOT_Q_MGR, "")])
def test_every_selector_of_mq_has_an_answer(program: Program, kind: str, otype: int, name: str) -> None:
    hobj = program.open(name, mq.MQOO_INQUIRE, ObjectType=otype)
    numbers = {one.number for one in words_of(kind).values() if one.number and one.number <= 4000}
    for selector in sorted(numbers - set(range(1001, 2000)) - set(range(3001, 4001))):
        assert inquire(program, hobj, [selector])[2:] in (OK, (1, 2068)), selector


def test_mqset_sets_attributes(program: Program, mq_store: QueueManager) -> None:
    hobj = program.open("Q", ALL)
    selectors = [mq.MQIA_INHIBIT_PUT, mq.MQCA_TRIGGER_DATA, mq.MQIA_TRIGGER_DEPTH]
    assert verbs.mqset(program.hconn, hobj, selectors, [1, 7], b"data".ljust(64)) == OK
    found = mq_store.attributes("Q")
    assert (found.put_allowed, found.trigger_data, found.trigger_depth) == (False, "data", 7)
    assert program.put(hobj, b"x") == (2, 2051)


@pytest.mark.parametrize(
    ("selectors", "ints", "chars", "reason"),
    [
        ([mq.MQIA_INHIBIT_GET], [2], b"", 2020),
        ([mq.MQIA_INHIBIT_GET] * 257, [0] * 257, b"", 2066),
        ([mq.MQIA_TRIGGER_TYPE], [9], b"", 2078),
        ([mq.MQIA_MAX_Q_DEPTH], [1], b"", 2067),
        ([9_999], [1], b"", 2067),
        ([mq.MQIA_INHIBIT_GET], [], b"", 2021),
        ([mq.MQCA_TRIGGER_DATA], [], b"short", 2006),
        ([mq.MQCA_TRIGGER_DATA], [], b"\n".ljust(64), 2007),
    ],
)
def test_values_that_cannot_be_set_are_refused(
    program: Program, selectors: list[int], ints: list[int], chars: bytes, reason: int
) -> None:
    assert verbs.mqset(program.hconn, program.open("Q", ALL), selectors, ints, chars) == (2, reason)
