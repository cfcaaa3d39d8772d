"""Definitions of objects that are not queues: kept, altered by what was there."""

from __future__ import annotations

import pytest

from inorder.errors import ObjectExists, QueueCondition, Reason, UnknownObject
from inorder.stores.engine.store import QueueStore


def test_what_is_refused_changes_nothing(store: QueueStore) -> None:
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
