"""What MQ Everyplace says of the attributes and names of queues (A-33, A-35).

Cryptor and compressor are exits of channels (A-34, `test_channel_exits.py`); authenticators and rules have no place
here. What is fixed, and that a name is that of one queue whatever its type, is in `bad_calls.py`.
"""

from __future__ import annotations

import math

import pytest

from inorder import ArgumentError, QueueManager
from inorder.attribute import check_queue_name
from inorder.testing import ManualClock


def test_size_and_date_of_creation_are_there_to_read(qm: QueueManager, clock: ManualClock) -> None:
    made = clock.now()
    qm.create_queue("NEW")
    clock.advance(5.0)
    qm.put_many("NEW", [b"1", b"2"])
    qm.alter_queue("NEW", description="changed")
    status = qm.status("NEW")
    assert (status.current_depth, status.created_at, status.altered_at) == (2, made, made + 5.0)


def test_the_rest_can_be_changed_and_holds_for_what_comes_then(qm: QueueManager) -> None:
    qm.put("Q", b"before")
    qm.alter_queue("Q", description="of orders", default_priority=7, expiry=60.0, max_length=9, max_depth=3)
    qm.put("Q", b"after")
    qm.put("Q", b"its own", priority=2)
    assert {one.body: (one.priority, one.expiry == math.inf) for one in qm.browse("Q")} == {
        b"before": (0, True),
        b"after": (7, False),
        b"its own": (2, False),
    }
    found = qm.attributes("Q")
    assert (found.description, found.max_length, found.max_depth) == ("of orders", 9, 3)


def test_no_name_has_a_sign_that_mq_everyplace_forbids() -> None:
    """A-35: so each name here can be one there. At most 48 characters, all of them ASCII: `test_attributes.py`."""
    for sign in "{}[]#():;,'\"=":
        for name in (sign, f"A{sign}", f"A{sign}B"):
            with pytest.raises(ArgumentError, match="name must be 1 to 48 characters"):
                check_queue_name(name)
