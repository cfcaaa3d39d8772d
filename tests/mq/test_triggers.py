"""Trigger messages: the conditions that make them due, and the messages that cause them (R4.9, P-2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from inorder import Flags, GetOptions, Message, QueueManager
from inorder.client.bulk import ClaimReader
from inorder.model.attributes import TriggerType
from inorder.mq.mqsc import run_script
from inorder.rules.triggers import TriggerMessage
from inorder.testing import ManualClock

Trigger = Callable[..., None]


@pytest.fixture
def trigger(qm: QueueManager) -> Trigger:
    """Sets the triggers of Q to these attributes; trigger messages arrive on INIT."""
    qm.create_queue("INIT")
    qm.admin.create_process("SERVE")

    def on(kind: TriggerType, process: str = "SERVE", **attributes: Any) -> None:
        qm.alter_queue(
            "Q", trigger_control=True, trigger_type=kind, initiation_queue="INIT", process=process, **attributes
        )

    return on


def triggered(qm: QueueManager) -> int:
    """Removes the trigger messages. Returns how many there were."""
    count = qm.depth("INIT")
    if count:
        got = qm.get_many("INIT", count)
        assert {TriggerMessage.from_bytes(one.body).queue for one in got} == {"Q"}
    return count


@pytest.mark.every_store
def test_first_triggers_when_a_commit_makes_messages_visible(qm: QueueManager, trigger: Trigger) -> None:
    trigger("first")
    with qm.unit_of_work():
        qm.put_many("Q", [b"1", b"2"])
        assert qm.depth("INIT") == 0
    assert triggered(qm) == 1
    qm.put("Q", b"3", syncpoint=True)
    qm.back_out()
    assert triggered(qm) == 0


def test_a_prepared_unit_triggers_when_it_is_committed(qm: QueueManager, trigger: Trigger) -> None:
    trigger("every")
    with qm.unit_of_work() as unit:
        qm.put_many("Q", [b"1", b"2"])
        unit.prepare("U")
    assert triggered(qm) == 0
    qm.settle("U", "commit")
    assert triggered(qm) == 2


def test_nothing_is_triggered_while_the_queue_is_open_for_input(qm: QueueManager, trigger: Trigger) -> None:
    trigger("first")
    with qm.open("Q", input="shared"):
        qm.put("Q", b"1")
        assert triggered(qm) == 0
    assert triggered(qm) == 1  # the last reader left a message on the queue


@pytest.mark.every_store
def test_the_end_of_a_readers_connection_triggers_like_its_close(qm: QueueManager, trigger: Trigger) -> None:
    trigger("first")
    other = qm.connect()
    other.put("Q", b"1")
    assert triggered(qm) == 1
    other.get("Q", syncpoint=True)
    other.internals.abandon()
    assert triggered(qm) == 1


def test_a_backed_out_message_is_not_the_first_if_others_are_on_the_queue(qm: QueueManager, trigger: Trigger) -> None:
    trigger("first")
    qm.put_many("Q", [b"1", b"2"])
    with qm.open("Q", input="shared") as queue:
        queue.get(syncpoint=True)
    assert triggered(qm) == 2  # one for the put, one for the close, which leaves a message on the queue
    qm.back_out()
    assert triggered(qm) == 0


def test_messages_locked_by_a_browse_trigger_nothing(qm: QueueManager, trigger: Trigger) -> None:
    trigger("first")
    qm.put_many("Q", [b"1", b"2"])
    with qm.open("Q", browse=True) as queue:
        queue.browse_first(lock=True)
        queue.browse_next(lock=True)
    assert triggered(qm) == 1


def prepare_get(qm: QueueManager, queue: Any) -> None:
    with qm.unit_of_work() as unit:
        queue.get()
        unit.prepare("U")


def claim(qm: QueueManager, queue: Any) -> None:
    reader = ClaimReader(queue, "APP")
    reader.begin()
    reader.claim(0, GetOptions(), most=1)


RETURNS: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (lambda qm, queue: queue.get(syncpoint=True), lambda qm, got: qm.back_out()),
    (lambda qm, queue: queue.get(confirm_id=7), lambda qm, got: qm.undo("Q", confirm_id=7)),
    (lambda qm, queue: queue.browse_and_lock(), lambda qm, got: qm.admin.release_lock("Q", got.lock_id)),
    (claim, lambda qm, got: qm.bulk.release_claims("Q", "APP")),
    (prepare_get, lambda qm, got: qm.settle("U", "back_out")),
]


@pytest.mark.every_store
@pytest.mark.parametrize(("take", "give_back"), RETURNS)
def test_a_message_given_back_after_the_readers_close_triggers(
    qm: QueueManager, trigger: Trigger, take: Callable[..., Any], give_back: Callable[..., Any]
) -> None:
    trigger("first")
    qm.put("Q", b"1")
    assert triggered(qm) == 1
    with qm.open("Q", input="shared") as queue:
        got = take(qm, queue)
    assert triggered(qm) == 0  # all others find the queue empty
    give_back(qm, got)
    assert triggered(qm) == 1


def test_after_the_trigger_interval_a_new_message_triggers_again(
    qm: QueueManager, trigger: Trigger, clock: ManualClock
) -> None:
    qm.admin.alter_manager(trigger_interval=60.0)
    trigger("first")
    qm.put("Q", b"1")
    clock.advance(59.0)
    qm.put("Q", b"2")
    assert triggered(qm) == 1
    clock.advance(1.0)
    assert triggered(qm) == 0  # time alone causes none
    qm.put("Q", b"3")
    qm.put("Q", b"4")
    assert triggered(qm) == 1


def test_a_trigger_time_in_the_future_keeps_no_new_message_from_triggering(
    qm: QueueManager, trigger: Trigger, clock: ManualClock
) -> None:
    begin = clock.now()
    clock.advance(365 * 86_400.0)
    trigger("first")
    qm.put("Q", b"1")
    clock._time = begin
    qm.admin.alter_manager(trigger_interval=60.0)
    qm.put("Q", b"2")
    assert triggered(qm) == 2


@pytest.mark.every_store
def test_depth_triggers_once_and_then_turns_trigger_control_off(qm: QueueManager, trigger: Trigger) -> None:
    trigger("depth", trigger_depth=3)
    qm.put_many("Q", [b"1", b"2"])
    assert (triggered(qm), qm.inquire("Q", "TriggerControl")) == (0, {"TriggerControl": 1})
    qm.put("Q", b"3")
    assert (triggered(qm), qm.inquire("Q", "TriggerControl")) == (1, {"TriggerControl": 0})
    qm.put("Q", b"4")
    assert triggered(qm) == 0
    qm.alter_queue("Q", trigger_control=True)
    assert (triggered(qm), qm.attributes("Q").trigger_control) == (1, False)


@pytest.mark.every_store
def test_messages_of_a_lower_priority_do_not_count(qm: QueueManager, trigger: Trigger) -> None:
    trigger("first", trigger_priority=5)
    qm.put("Q", b"low", priority=4)
    assert triggered(qm) == 0
    qm.put("Q", b"high", priority=5)
    assert triggered(qm) == 1
    trigger("depth", trigger_depth=2)
    qm.put("Q", b"low", priority=4)
    assert triggered(qm) == 0
    qm.put("Q", b"high", priority=9)
    assert triggered(qm) == 1


def member(number: int, flags: Flags = Flags.IN_GROUP) -> Message:
    return Message(b"m", group_id=b"G".ljust(24, b"\0"), sequence_number=number, flags=flags)


@pytest.mark.every_store
def test_group_triggers_when_a_group_becomes_complete(qm: QueueManager, trigger: Trigger) -> None:
    trigger("group")
    qm.put("Q", member(3, Flags.LAST_IN_GROUP))
    qm.put("Q", member(1))
    assert triggered(qm) == 0
    qm.put("Q", member(2))
    assert triggered(qm) == 1
    qm.put("Q", b"by itself")
    assert triggered(qm) == 1


def test_a_confirm_triggers(qm: QueueManager, trigger: Trigger) -> None:
    trigger("every")
    uid = qm.put("Q", b"1", confirm_id=7).uid
    assert triggered(qm) == 0
    qm.confirm_put("Q", uid)
    assert triggered(qm) == 1


def test_a_trigger_message_that_cannot_be_put_is_a_dead_letter(qm: QueueManager, trigger: Trigger) -> None:
    qm.create_queue("DEAD")
    qm.admin.alter_manager(dead_letter_queue="DEAD")
    trigger("every")
    qm.alter_queue("INIT", put_allowed=False)
    qm.put("Q", b"1")
    assert (qm.depth("Q"), qm.depth("INIT")) == (1, 0)
    assert TriggerMessage.from_bytes(qm.get("DEAD").body).queue == "Q"


def test_a_trigger_message_that_cannot_be_put_anywhere_does_not_affect_the_put(
    qm: QueueManager, trigger: Trigger
) -> None:
    trigger("every")
    qm.alter_queue("INIT", put_allowed=False)
    qm.put("Q", b"1")
    assert qm.depth("Q") == 1


def test_trigger_messages_trigger_nothing(qm: QueueManager, trigger: Trigger) -> None:
    trigger("every")
    qm.create_queue("INIT2")
    qm.alter_queue("INIT", trigger_control=True, trigger_type="every", initiation_queue="INIT2", process="SERVE")
    qm.put("Q", b"1")
    assert (qm.depth("INIT"), qm.depth("INIT2")) == (1, 0)


def test_an_inhibited_queue_triggers_when_gets_are_allowed_again(qm: QueueManager, trigger: Trigger) -> None:
    trigger("first")
    qm.alter_queue("Q", get_allowed=False)
    qm.put("Q", b"1")
    assert triggered(qm) == 0
    qm.alter_queue("Q", get_allowed=True)
    assert triggered(qm) == 1


@pytest.mark.every_store
def test_the_last_trigger_of_a_queue_is_deleted_with_it(qm: QueueManager, trigger: Trigger) -> None:
    trigger("first")
    qm.put("Q", b"1")
    qm.delete_queue("Q", purge=True)
    qm.create_queue("Q")
    trigger("first")
    qm.put("Q", b"1")
    assert triggered(qm) == 2
    assert qm.admin.check() == []


def test_a_trigger_message_has_the_data_of_the_queue_and_the_process_definition(
    qm: QueueManager, trigger: Trigger
) -> None:
    qm.admin.alter_process("SERVE", application_id="/bin/serve", user_data="fast", environment_data="&")
    trigger("every", process="SERVE", trigger_data="be quick")
    qm.put("Q", b"1")
    got = qm.get("INIT")
    assert (got.format, got.put_application_type, got.put_application_name) == ("MQTRIG", 7, "TEST")
    assert TriggerMessage.from_bytes(got.body) == TriggerMessage(
        queue="Q",
        trigger_data="be quick",
        process="SERVE",
        application_type=6,
        application_id="/bin/serve",
        user_data="fast",
        environment_data="&",
    )


def test_a_missing_process_triggers_nothing_until_it_is_defined(qm: QueueManager, trigger: Trigger) -> None:
    trigger("first", process="LATER")
    qm.put("Q", b"1")
    assert triggered(qm) == 0
    qm.admin.create_process("LATER")
    assert triggered(qm) == 1
    qm.admin.alter_process("LATER", user_data="x")
    assert (triggered(qm), qm.admin.process("LATER").user_data) == (1, "x")


@pytest.mark.parametrize(
    ("initiation_queue", "process", "usage", "triggers"),
    [
        ("INIT", "SERVE", "normal", 1),
        ("INIT", "", "normal", 0),  # nothing tells which program serves it
        ("INIT", "", "transmission", 1),  # a channel serves it
        ("INIT", "MISSING", "transmission", 0),
        ("MISSING", "SERVE", "normal", 0),
        ("", "SERVE", "normal", 0),
        ("SYSTEM.CHANNEL.INITQ", "", "transmission", 1),
        ("SYSTEM.DEFAULT.INITIATION.QUEUE", "SERVE", "normal", 1),
    ],
)
def test_a_trigger_message_is_put_only_if_its_queue_and_process_exist(
    qm: QueueManager, initiation_queue: str, process: str, usage: str, triggers: int
) -> None:
    """Otherwise there is not even a dead letter (R4.9)."""
    for name in ("INIT", "DEAD"):
        qm.create_queue(name)
    qm.admin.create_process("SERVE")
    qm.admin.alter_manager(dead_letter_queue="DEAD")
    script = f"DEFINE QLOCAL(T) TRIGGER TRIGTYPE(EVERY) INITQ('{initiation_queue}') PROCESS('{process}')"
    (made,) = run_script([script + (" USAGE(XMITQ)" if usage == "transmission" else "")], qm)
    assert made.outcome == "done", made.text
    qm.put("T" if usage == "normal" else "Q", b"1", manager="" if usage == "normal" else "T")
    found = [one.name for one in qm.queues() if one.type == "local" and one.name != "T" and qm.depth(one.name)]
    assert found == [initiation_queue] * triggers
