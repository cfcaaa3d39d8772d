"""Browse marks and message tokens (mq-semantics 3.11, R3.24)."""

from __future__ import annotations

import pytest
from tests.helpers.support import waiting

from inorder import FOREVER, Match, NoMessageAvailable, Queue, QueueManager
from inorder.errors import QueueCondition
from inorder.testing import ManualClock


def co_op(qm: QueueManager) -> Queue:
    return qm.open("Q", browse=True, co_op=True)


def test_r3_74_a_cooperative_mark_ends_when_one_of_the_set_says_so(qm: QueueManager) -> None:
    qm.put("Q", b"1")
    one, other = co_op(qm), co_op(qm)
    one.browse_first(mark_co_op=True)
    with pytest.raises(NoMessageAvailable):
        other.browse_first(unmarked=True)
    other.browse_first(unmark_co_op=True)
    assert one.browse_first(unmarked=True).body == b"1"


def test_r3_74_a_mark_of_a_handle_ends_when_it_says_so_and_not_with_the_sets(qm: QueueManager) -> None:
    qm.put("Q", b"1")
    one, plain = co_op(qm), qm.open("Q", browse=True)
    one.browse_first(mark_handle=True, mark_co_op=True)
    one.browse_first(unmark_co_op=True)
    assert plain.browse_first(unmarked=True, mark_handle=True).body == b"1"
    for handle in (one, plain):
        with pytest.raises(NoMessageAvailable):
            handle.browse_first(unmarked=True)
        assert handle.browse_first(unmark_handle=True).body == b"1"
        assert handle.browse_first(unmarked=True).body == b"1"


def test_r3_74_cooperative_marks_without_interval_end_with_the_set(qm: QueueManager, clock: ManualClock) -> None:
    qm.admin.alter_manager(mark_interval=None)
    qm.put("Q", b"1")
    one, other = co_op(qm), co_op(qm)
    one.browse_first(mark_co_op=True)
    one.close()
    clock.advance(1e9)
    with pytest.raises(NoMessageAvailable):
        other.browse_first(unmarked=True)
    other.close()
    assert co_op(qm).browse_first(unmarked=True).body == b"1"


@pytest.mark.every_store
@pytest.mark.parametrize("ends", ["by itself", "by hand"])
def test_a_browser_that_waits_for_an_unmarked_message_is_woken_when_a_mark_ends(
    qm: QueueManager, clock: ManualClock, ends: str
) -> None:
    """R3.74, B-28."""
    qm.admin.alter_manager(mark_interval=7.0)
    qm.put("Q", b"1")
    marker = co_op(qm)
    marker.browse_first(mark_co_op=True)
    other = qm.connect()
    browser = co_op(other)
    call = waiting(other, lambda: browser.browse_first(unmarked=True, wait=FOREVER).body)
    clock.advance(5.0)
    call.sleeps(other)
    clock.advance(2.0) if ends == "by itself" else marker.browse_first(unmark_co_op=True)
    assert call.result() == b"1"


def test_r3_24_a_token_of_a_message_that_the_set_has_marked_is_2200(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2"])
    one, other = co_op(qm), co_op(qm)
    token = one.browse_first(mark_co_op=True).token
    with pytest.raises(QueueCondition, match="2200"):
        other.browse_first(unmarked=True, match=Match(token=token))
    assert other.browse_first(match=Match(token=token)).body == b"1"


@pytest.mark.parametrize("is_own_mark", [True, False], ids=["a mark of the handle", "before the cursor"])
def test_r3_24_only_a_mark_of_the_set_is_2200(qm: QueueManager, is_own_mark: bool) -> None:
    qm.put_many("Q", [b"1", b"2"])
    handle = co_op(qm)
    token = handle.browse_first(mark_handle=is_own_mark).token
    if not is_own_mark:
        handle.browse_next()
    browse = handle.browse_first if is_own_mark else handle.browse_next
    with pytest.raises(NoMessageAvailable):
        browse(unmarked=True, match=Match(token=token))
