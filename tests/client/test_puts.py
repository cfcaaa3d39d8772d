"""Puts: ids, contexts, limits, messages that the queue manager splits, empty segments."""

from __future__ import annotations

from typing import Any

import pytest

from inorder import Message, QueueManager, Reason
from inorder.errors import CallerError, MessageTooBig
from inorder.model.message import IN_GROUP, LAST_SEGMENT, SEGMENT, SEGMENTATION_ALLOWED
from inorder.testing import ManualClock

USER_LENGTH = 12


def test_r1_1_the_queue_manager_makes_a_message_id_where_there_is_none(qm: QueueManager) -> None:
    results = [qm.put("Q", b"1"), qm.put("Q", Message(b"2")), qm.put("Q", b"3", message_id=bytes(24))]
    ids = [result.message_id for result in results]
    assert len(set(ids)) == 3
    assert all(len(one) == 24 and one.startswith(b"AMQ TEST        ") for one in ids)
    assert [message.message_id for message in qm.get_many("Q", 3)] == ids


def test_the_queue_manager_gives_its_character_set_where_a_message_has_none(qm: QueueManager) -> None:
    qm.admin.alter_manager(coded_character_set_id=819)
    qm.put("Q", b"1")
    qm.put("Q", b"2", coded_character_set_id=437)
    assert [message.coded_character_set_id for message in qm.get_many("Q", 2)] == [819, 437]


CONTEXT: dict[str, Any] = {
    "user_identifier": "someone",
    "accounting_token": b"t" * 32,
    "application_identity_data": "identity",
    "put_application_type": 28,
    "put_application_name": "else",
    "put_at": 86400.0,
    "application_origin_data": "orig",
}
IDENTITY = ("user_identifier", "accounting_token", "application_identity_data")
NOTHING = {**dict.fromkeys(CONTEXT, ""), "accounting_token": bytes(32), "put_application_type": 0}


def put_context(qm: QueueManager, **options: Any) -> dict[str, Any]:
    qm.put("Q", b"1", **CONTEXT, **options)
    got = qm.get("Q")
    return {name: getattr(got, name) for name in CONTEXT}


def own_context(qm: QueueManager, clock: ManualClock) -> dict[str, Any]:
    qm.put("Q", b"1")
    user = qm.get("Q").user_identifier
    assert 0 < len(user) <= USER_LENGTH
    own = {"user_identifier": user, "put_application_type": 6, "put_application_name": "test", "put_at": clock.now()}
    return {**NOTHING, **own}


def test_r2_2_a_message_says_who_put_it_and_when_as_the_putter_chooses(qm: QueueManager, clock: ManualClock) -> None:
    own = own_context(qm, clock)
    assert put_context(qm) == put_context(qm, context="default") == own
    assert put_context(qm, context="none") == {**NOTHING, "put_at": clock.now()}
    assert put_context(qm, context="set_identity") == {**own, **{name: CONTEXT[name] for name in IDENTITY}}
    assert put_context(qm, context="set_all") == CONTEXT


def test_the_time_of_a_put_is_that_of_the_put_not_of_the_commit(qm: QueueManager, clock: ManualClock) -> None:
    with qm.unit_of_work():
        qm.put("Q", b"1")
        clock.advance(60)
    got = qm.get("Q")
    assert (got.put_at, got.put_date, got.put_time) == (clock.now() - 60, "20010909", "01464000")


@pytest.mark.parametrize(
    ("queues", "reason", "limit"), [(2**22, 2031, 32_768), (32_767, 2030, 32_767), (32_768, 2030, 32_768)]
)
def test_r2_22_of_two_limits_the_one_that_binds_is_told(qm: QueueManager, queues: int, reason: int, limit: int) -> None:
    qm.admin.alter_manager(max_length=32_768)
    qm.alter_queue("Q", max_length=queues)
    with pytest.raises(MessageTooBig) as raised:
        qm.put("Q", bytes(limit + 1))
    assert (raised.value.reason, raised.value.length, raised.value.limit) == (reason, limit + 1, limit)
    assert reason == 2031 or raised.value.queue == "Q"
    qm.put("Q", bytes(limit))
    assert qm.get("Q").length == limit


def test_r2_22_the_queue_managers_limit_splits_too(qm: QueueManager) -> None:
    qm.admin.alter_manager(max_length=32_768)
    qm.put("Q", bytes(70_000), flags=SEGMENTATION_ALLOWED)
    assert [message.length for message in qm.browse("Q")] == [32_768, 32_768, 70_000 - 65_536]
    assert qm.get("Q", complete=True).body == bytes(70_000)


def test_r2_25_pieces_differ_in_message_id_offset_length_and_flags_only(qm: QueueManager) -> None:
    qm.alter_queue("Q", max_length=100)
    fields: Any = {"priority": 3, "correlation_id": b"c", "format": "MQSTR", "reply_to_queue": "R"}
    result = qm.put("Q", bytes(250), flags=SEGMENTATION_ALLOWED | IN_GROUP, logical=True, **fields)
    pieces = list(qm.browse("Q"))
    assert [piece.offset for piece in pieces] == [0, 96, 192]
    assert [piece.flags for piece in pieces] == [1 + 2 + 8, 1 + 2 + 8, 1 + 2 + 4 + 8]
    assert [piece.original_length for piece in pieces] == [96, 96, 58]
    assert len({piece.message_id for piece in pieces}) == len({piece.token for piece in pieces}) == 3
    own = {"message_id", "offset", "original_length", "flags", "body", "length", "token", "uid", "place"}
    same = [{name: value for name, value in piece.fields() if name not in own} for piece in pieces]
    assert same[0] == same[1] == same[2]
    assert (result.message_id, result.flags) == (pieces[0].message_id, SEGMENTATION_ALLOWED | IN_GROUP)


def test_t17_t28_the_last_segment_of_a_message_alone_may_be_empty(qm: QueueManager) -> None:
    """R2.19: it ends the message at the length that the others have. (Tables know no empty message.)"""
    with pytest.raises(CallerError) as refused:
        qm.put("Q", b"", logical=True, flags=SEGMENT)
    assert refused.value.reason is Reason.SEGMENT_LENGTH_ZERO
    assert qm.depth("Q") == 0
    qm.put("Q", b"0123456789", logical=True, flags=SEGMENT)
    assert qm.put("Q", b"", logical=True, flags=LAST_SEGMENT).offset == 10
    assert qm.get("Q", complete=True).body == b"0123456789"
    assert qm.depth("Q") == 0
