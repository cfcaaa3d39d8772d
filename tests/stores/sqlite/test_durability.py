"""What is on disk when a call returns, and what is not synced at all: the list of design section 3, a line each."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from inorder import Message, QueueManager

Act = Callable[[QueueManager], object]
LASTING, LIGHT = (Message(b"x", persistent=persistent) for persistent in (True, False))


def in_turn(*acts: Act) -> Act:
    def act(qm: QueueManager) -> None:
        for one in acts:
            one(qm)

    return act


def in_unit(*acts: Act) -> Act:
    """The acts in a unit of work, which is committed."""

    def act(qm: QueueManager) -> None:
        with qm.unit_of_work() as block:
            for one in acts:
                one(qm)
            block.commit()

    return act


def put(qm: QueueManager) -> object:
    return qm.put("Q", LASTING)


def get(qm: QueueManager) -> object:
    return qm.get("Q")


PREPARED: list[Act] = [lambda qm: qm.put("Q", LIGHT, syncpoint=True), lambda qm: qm.prepare("u")]
# What is done; how often that must sync, and no more.
PROMISES: dict[str, tuple[Act, int]] = {
    "a put": (put, 1),
    "a put of many": (lambda qm: qm.put_many("Q", [b"1", b"2", b"3"]), 1),
    "a put that is not persistent": (lambda qm: qm.put("Q", LIGHT), 0),
    "a get": (get, 1),
    "a get of many": (lambda qm: qm.get_many("Q", 3), 1),
    "a get of what is not persistent": (lambda qm: qm.get("LIGHT"), 0),
    "a browse": (lambda qm: list(qm.browse("Q")), 0),
    "a commit of a put": (in_unit(put), 1),
    "a commit of many": (in_unit(put, get, put, get), 1),
    "a commit of what is not persistent": (in_unit(lambda qm: qm.put("Q", LIGHT), lambda qm: qm.get("LIGHT")), 0),
    "a commit of nothing": (in_unit(), 0),
    "a put under a confirm id": (lambda qm: qm.put("Q", LIGHT, confirm_id=7), 1),
    "a get under a confirm id": (lambda qm: qm.get("LIGHT", confirm_id=7), 1),
    "an undo": (in_turn(lambda qm: qm.get("Q", confirm_id=7), lambda qm: qm.undo("Q", 7)), 2),
    "a lock": (lambda qm: qm.browse_and_lock("LIGHT"), 1),
    "a lock on nothing": (lambda qm: qm.browse_and_lock("EMPTY"), 0),
    "a get with a lock id": (lambda qm: qm.get("LIGHT", lock_id=qm.browse_and_lock("LIGHT").lock_id), 2),
    "a release": (lambda qm: qm.admin.release_lock("Q", qm.browse_and_lock("Q").lock_id), 2),
    "a prepare": (in_turn(*PREPARED), 1),
    "a settlement": (in_turn(*PREPARED, lambda qm: qm.settle("u", "commit")), 2),
    "a change of a definition": (lambda qm: qm.alter_queue("Q", max_depth=100), 1),
    "the end of a queue": (in_turn(lambda qm: qm.close_queue("EMPTY"), lambda qm: qm.delete_queue("EMPTY")), 1),
    "a definition": (lambda qm: qm.create_queue("NEW"), 1),
}


@pytest.fixture
def filled(qm: QueueManager) -> QueueManager:
    """With messages on two queues; all numbers that the test needs are reserved."""
    qm.create_queue("LIGHT")
    qm.create_queue("EMPTY")
    for queue, message in {"Q": LASTING, "LIGHT": LIGHT, "EMPTY": LASTING}.items():
        qm.put_many(queue, [message] * 5)
    qm.get_many("EMPTY", 5)
    return qm


@pytest.mark.parametrize("what", PROMISES)
def test_what_is_synced(filled: QueueManager, syncs: list[int], what: str) -> None:
    act, expected = PROMISES[what]
    syncs.clear()
    act(filled)
    assert len(syncs) == expected
