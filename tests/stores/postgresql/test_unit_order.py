"""Several sessions put in one unit, in turn: it stands in the order in which they put (B-5)."""

from __future__ import annotations

from typing import Literal

import pytest
from tests.helpers.support import bodies
from tests.stores.postgresql.conftest import Connect
from tests.tiers import gate

pytestmark = [gate, pytest.mark.postgresql]
PUT = [b"0", b"1", b"2", b"3", b"4", b"5"]


def test_three_sessions_that_put_in_one_lease_in_turn(connect: Connect) -> None:
    each = [connect(f"program {number}") for number in range(3)]
    orders: list[Literal["commit", "prepare"]] = ["commit", "prepare"]
    for order in orders:
        each[0].create_queue(order, order=order)
    lease = each[0].lease(seconds=600)
    for turn, body in enumerate(PUT):
        qm = each[turn % 3]
        with qm.resume_lease(lease.token):
            for order in orders:
                qm.put(order, body)
    each[1].resume_lease(lease.token).commit()
    assert [bodies(each[2], order) for order in orders] == [PUT, PUT]
