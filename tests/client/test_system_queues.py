"""The queues that every store has, as in MQ: there from the beginning, kept from their first open or change on."""

from __future__ import annotations

import pytest

from inorder import NoMessageAvailable, QueueManager, UnknownQueue
from inorder.model.attributes import SYSTEM_QUEUES

DEAD = "SYSTEM.DEAD.LETTER.QUEUE"
MODEL = "SYSTEM.DEFAULT.MODEL.QUEUE"


def kept(qm: QueueManager) -> list[str]:
    return [one.name for one in qm.queues() if one.name.startswith("SYSTEM.")]


def test_they_are_described_and_not_kept(qm: QueueManager) -> None:
    for name, attributes in SYSTEM_QUEUES.items():
        assert qm.attributes(name) == attributes
    status = qm.inspect.status(DEAD)
    assert (status.current_depth, status.open_output_count) == (0, 0)
    assert kept(qm) == []


def test_a_put_keeps_one(qm: QueueManager) -> None:
    qm.put(DEAD, b"1")
    assert (kept(qm), qm.depth(DEAD), qm.get(DEAD).body) == ([DEAD], 1, b"1")


def test_a_get_finds_nothing_and_keeps_it(qm: QueueManager) -> None:
    with pytest.raises(NoMessageAvailable):
        qm.get(DEAD)
    assert kept(qm) == [DEAD]


def test_the_model_makes_queues_without_being_kept(qm: QueueManager) -> None:
    with qm.open(MODEL, input="shared") as made:
        assert qm.attributes(made.name).definition_type == "temporary_dynamic"
    assert kept(qm) == []


@pytest.mark.every_store
def test_a_change_keeps_one_and_a_delete_undoes_it(qm: QueueManager) -> None:
    qm.alter_queue(DEAD, max_depth=5)
    other = qm.connect()
    assert (kept(other), other.attributes(DEAD).max_depth) == ([DEAD], 5)
    other.delete_queue(DEAD)
    assert (kept(qm), qm.attributes(DEAD)) == ([], SYSTEM_QUEUES[DEAD])


@pytest.mark.every_store
def test_a_look_at_one_that_was_never_used_finds_nothing_and_keeps_nothing(qm: QueueManager) -> None:
    qm.create_queue("A", type="alias", base_queue=DEAD)
    qm.create_queue("EMPTY")
    for name in (DEAD, "A"):
        assert list(qm.inspect.look(name)) == []
        assert list(qm.inspect.look(name, order="logical")) == []
        assert qm.inspect.gaps(name, b"group") == qm.inspect.gaps("EMPTY", b"group")
        assert qm.inspect.order_view(name) == qm.inspect.order_view("EMPTY")
    assert kept(qm) == []
    with pytest.raises(UnknownQueue):
        qm.inspect.look("SYSTEM.NOT.THERE")
    qm.put("A", b"1")
    assert (kept(qm), qm.depth("A"), qm.depth(DEAD)) == ([DEAD], 1, 1)
