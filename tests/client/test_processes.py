"""Definitions of processes and other objects that are no queues: wrong calls say what is wrong (R4.9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from inorder import InorderError, QueueManager, Reason
from inorder.errors import ObjectExists, QueueCondition, UnknownObject
from inorder.stores.engine.store import QueueStore

Call = Callable[[Any], Any]  # of a connection, wrongly used

BAD: list[tuple[Call, Reason, str]] = [
    (lambda qm: qm.admin.create_process("a b"), Reason.ARGUMENT_ERROR, "name must be 1 to 48 characters"),
    (lambda qm: qm.admin.create_process("P", exist_ok=1), Reason.OPTIONS_ERROR, "exist_ok must be True or False"),
    (lambda qm: qm.admin.create_process("P", colour="red"), Reason.SELECTOR_ERROR, "there is no attribute 'colour'"),
    (lambda qm: qm.admin.create_process("P", application_type=-1), Reason.ARGUMENT_ERROR, "an integer from 0"),
    (
        lambda qm: qm.admin.create_process("P", application_id="x" * 257),
        Reason.ARGUMENT_ERROR,
        "at most 256 characters",
    ),
    (lambda qm: qm.admin.create_process("THERE"), Reason.OBJECT_ALREADY_EXISTS, "process 'THERE' already exists"),
    (lambda qm: qm.admin.alter_process("P"), Reason.UNKNOWN_OBJECT_NAME, "there is no process 'P'"),
    (lambda qm: qm.admin.alter_process("THERE", user_data=5), Reason.ARGUMENT_ERROR, "a text of at most 128"),
    (lambda qm: qm.admin.delete_process("P"), Reason.UNKNOWN_OBJECT_NAME, "there is no process 'P'"),
    (lambda qm: qm.admin.process("THEIR"), Reason.UNKNOWN_OBJECT_NAME, "did you mean THERE"),
]


@pytest.mark.parametrize(("call", "reason", "says"), BAD)
def test_a_wrong_call_says_why_and_changes_nothing(qm: QueueManager, call: Call, reason: Reason, says: str) -> None:
    qm.admin.create_process("THERE")
    with pytest.raises(InorderError, match=says) as caught:
        call(qm)
    assert caught.value.reason is reason
    assert [one.name for one in qm.admin.processes()] == ["THERE"]
    assert qm.admin.process("THERE").user_data == ""


def test_an_object_is_altered_by_what_was_there(store: QueueStore) -> None:
    store.define_object("channel", "TO.B", "{}")
    with pytest.raises(ObjectExists):
        store.define_object("channel", "TO.B", '{"x": 1}')
    with pytest.raises(QueueCondition) as changed:
        store.alter_object("channel", "TO.B", '{"x": 1}', '{"x": 2}')
    assert changed.value.reason is Reason.OBJECT_CHANGED
    with pytest.raises(UnknownObject) as unknown:
        store.alter_object("channel", "TO.C", "{}", "{}")
    assert unknown.value.reason is Reason.UNKNOWN_OBJECT_NAME
    with pytest.raises(UnknownObject):
        store.delete_object("process", "TO.B")
    assert [one.attributes for one in store.objects("channel")] == ["{}"]
