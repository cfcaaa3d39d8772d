"""Queue: handles with cursors, locks, marks and group states of their own; what they are open for."""

from __future__ import annotations

from typing import Any

import pytest

from inorder import GetOptions, Match, NoMessageAvailable, PutOptions, QueueManager
from inorder.errors import ObjectInUse, Reason, TooManyHandles
from inorder.model.message import IN_GROUP, LAST_IN_GROUP


def opens(qm: QueueManager) -> tuple[int, int]:
    status = qm.inspect.status("Q")
    return status.open_input_count, status.open_output_count


def test_a_handle_is_open_for_everything_unless_it_says_for_what(qm: QueueManager) -> None:
    with qm.open("Q") as handle:
        handle.put(b"m1")
        assert handle.browse_first().body == b"m1"
        assert handle.get(under_cursor=True).body == b"m1"
        assert opens(qm) == (1, 1)
    assert opens(qm) == (0, 0)
    assert handle.closed


def test_browsing_handles_are_in_neither_open_count(qm: QueueManager) -> None:
    handles = [qm.open("Q", browse=True), qm.open("Q", input="shared"), qm.open("Q", output=True, browse=True)]
    assert opens(qm) == (1, 1)
    for handle in handles:
        handle.close()
    assert opens(qm) == (0, 0)


def test_a_browse_loop_begins_at_the_first_and_moves_the_cursor_of_its_handle(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2", b"3"])
    handle = qm.open("Q")
    assert [handle.browse_next().body, handle.browse_next().body] == [b"1", b"2"]
    assert next(handle.browse()).body == b"1"
    assert [handle.browse_cursor().body, handle.browse_next().body] == [b"1", b"2"]


def test_leaving_the_block_of_a_closed_handle_is_fine(qm: QueueManager) -> None:
    with qm.open("Q") as handle:
        handle.close()
    assert repr(qm.open("Q")) == "<queue Q>"


def test_a_connection_opens_so_many_handles_and_no_more(qm: QueueManager) -> None:
    qm.admin.alter_manager(max_handles=2)
    first, _ = qm.open("Q"), qm.open("Q")
    with pytest.raises(TooManyHandles) as raised:
        qm.open("Q")
    assert (raised.value.reason, raised.value.limit) == (2017, 2)
    with pytest.raises(TooManyHandles):
        qm.put("Q", b"m1")
    assert qm.connect().put("Q", b"m1").warning is None
    first.close()
    qm.open("Q")


@pytest.mark.parametrize("attributes", [{"default_input": "exclusive"}, {"shareable": False}], ids=str)
def test_r4_4_the_queue_says_how_input_is_opened(qm: QueueManager, attributes: dict[str, Any]) -> None:
    qm.create_queue("N", **attributes)
    qm.open("N", input="as_queue")
    for how in ("as_queue", "exclusive", "shared"):
        with pytest.raises(ObjectInUse):
            qm.open("N", input=how)
    qm.create_queue("S", default_input="exclusive")
    qm.open("S", input="shared")
    qm.open("S", input="shared")  # where exclusive is only the default


def test_keywords_are_added_to_options_that_are_given(qm: QueueManager) -> None:
    handle = qm.open("Q")
    in_group = PutOptions(logical=True, new_correlation_id=True)
    for flags in (IN_GROUP, LAST_IN_GROUP):
        result = handle.put(b"g", in_group, flags=flags, new_message_id=True, message_id=b"mine")
        assert result.message_id.startswith(b"AMQ ")
        assert result.correlation_id.startswith(b"AMQ ")
    assert result.sequence_number == 2
    with pytest.raises(NoMessageAvailable):
        handle.get(GetOptions(match=Match(priority=7)), logical=True)
    first = handle.get(GetOptions(buffer=0, accept_truncated=True), logical=True, syncpoint=True)
    assert (first.body, first.warning, qm.inspect.units()[0].gets) == (b"", Reason.TRUNCATED_MSG_ACCEPTED, 1)
    assert handle.browse_first(GetOptions(match=Match(sequence_number=2)), buffer=1).body == b"g"
    qm.back_out()
