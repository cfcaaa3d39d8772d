"""What stores once answered differently, each case by itself: found by `tests/test_state_machine.py`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from inorder import QueueManager
from inorder.errors import QueueDeleted
from inorder.testing import temporary_manager
from inorder.testing.stores import STORES


@pytest.fixture(params=sorted(STORES))
def qm(request: pytest.FixtureRequest) -> Iterator[QueueManager]:
    with temporary_manager(request.param) as manager:
        yield manager


def test_r4_3_a_queue_that_is_gone_is_not_deleted_again_at_close(qm: QueueManager) -> None:
    qm.create_model("MODEL", shareable=True, default_input="shared")
    maker = qm.open("MODEL")
    user = qm.open(maker.name)
    maker.close()
    for purge in (False, True):
        with pytest.raises(QueueDeleted):
            user.close(delete=True, purge=purge)
    user.close()
