"""Columns of rows to be staged: stored values, values that the queue adds, and long bodies as several rows."""

from __future__ import annotations

from typing import Any

import pytest

from inorder.errors import ArgumentError, CallerError, MessageTooBig
from inorder.model.attributes import QueueAttributes, define_manager, define_queue
from inorder.model.fields import NO_ACCOUNTING
from inorder.model.message import IN_GROUP, LAST_IN_GROUP, LAST_SEGMENT, NO_ID, SEGMENT
from inorder.rules.puts import Program, make_id
from inorder.rules.staged_columns import Batch, check_columns, complete

MANAGER = define_manager(name="TEST")
QUEUE = define_queue("Q")
NOW = 1_000.0
FIRST_NUMBER = 7


def checked(**columns: Any) -> dict[str, Any]:
    return dict(check_columns(columns, len(columns["body"])))


def numbers(count: int) -> range:
    return range(FIRST_NUMBER, FIRST_NUMBER + count)


def completed(queue: QueueAttributes = QUEUE, **columns: Any) -> Batch:
    """The rows as they are stored for the queue."""
    count = len(columns["body"])
    program = Program("user", "program")
    return complete(checked(**columns), count, queue, MANAGER, program, NOW, numbers)


# ---- values


@pytest.mark.parametrize("name", ["message_id", "correlation_id", "group_id"])
def test_ids_have_their_full_length_and_all_nul_is_none(name: str) -> None:
    ids = [b"short", b"x" * 24, NO_ID, b"", None]
    kept = checked(body=[b""] * 5, **{name: ids})[name]
    assert kept == [b"short".ljust(24, b"\0"), b"x" * 24, None, None, None]


def test_an_accounting_token_has_its_own_length() -> None:
    kept = checked(body=[b""] * 3, accounting_token=[b"t", NO_ACCOUNTING, None])["accounting_token"]
    assert kept == [b"t".ljust(len(NO_ACCOUNTING), b"\0"), None, None]


def test_an_id_that_is_too_long_is_refused_with_its_row() -> None:
    with pytest.raises(ArgumentError, match="row 1: ") as caught:
        checked(body=[b"", b""], group_id=[b"x", b"x" * 25])
    assert caught.value.data["row"] == 1


def test_one_bad_value_among_good_ones_is_found_below_and_above_the_range() -> None:
    for priorities in ([5, -1, 6], [5, 2**40, 6]):
        with pytest.raises(ArgumentError, match="row 1: "):
            checked(body=[b""] * 3, priority=priorities)


def test_only_the_last_segment_of_a_message_may_be_empty() -> None:
    """R2.19."""
    checked(body=[b"1", b""], flags=[SEGMENT, LAST_SEGMENT])
    with pytest.raises(CallerError, match="row 1: "):
        checked(body=[b"1", b""], flags=[SEGMENT, SEGMENT])


# ---- values that the queue adds


@pytest.mark.parametrize("persistence", [True, False])
def test_r1_5_a_row_without_a_persistence_has_the_default_of_the_queue(*, persistence: bool) -> None:
    queue = define_queue("Q", default_persistence=persistence)
    batch = completed(queue, body=[b""] * 3, persistent=[None, True, False])
    assert list(batch.columns["persistent"]) == [persistence, True, False]


def test_r1_4_a_row_without_a_priority_has_the_default_of_the_queue() -> None:
    batch = completed(define_queue("Q", default_priority=4), body=[b"", b""], priority=[None, 9])
    assert list(batch.columns["priority"]) == [4, 9]


def test_a_group_id_is_made_for_a_member_that_has_none_and_dropped_outside_of_groups() -> None:
    batch = completed(body=[b"1", b"2", b"3"], group_id=[None, b"g" * 24, b"h" * 24], flags=[IN_GROUP, IN_GROUP, 0])
    assert batch.columns["group_id"] == [make_id(MANAGER.name, FIRST_NUMBER), b"g" * 24, None]
    assert batch.has_numbers


def test_r1_10_the_last_message_of_a_group_is_flagged_as_in_the_group() -> None:
    assert completed(body=[b""], flags=[LAST_IN_GROUP]).columns["flags"] == [LAST_IN_GROUP | IN_GROUP]


# ---- long bodies


def test_r2_22_a_body_as_long_as_the_limit_is_one_row() -> None:
    queue = define_queue("Q", max_length=16)
    batch = completed(queue, body=[b"x" * 16, b"y" * 17])
    assert list(batch.columns["body"]) == [b"x" * 16, b"y" * 16, b"y"]
    assert list(batch.wholes) == [0, 1, 1]
    assert list(batch.columns["flags"]) == [0, SEGMENT, LAST_SEGMENT | SEGMENT]
    assert (batch.given, batch.size) == (2, 33)


def test_a_row_of_exactly_the_limit_is_not_split() -> None:
    """A limit of three bytes is too small to split for, so no split may be tried."""
    batch = completed(define_queue("Q", max_length=3), body=[b"123"])
    assert list(batch.columns["body"]) == [b"123"]


def test_r2_28_the_pieces_of_a_segment_continue_from_its_offset() -> None:
    queue = define_queue("Q", max_length=16)
    batch = completed(
        queue, body=[b"x" * 20], flags=[IN_GROUP | SEGMENT], offset=[10], group_id=[b"g"], sequence_number=[2]
    )
    assert list(batch.columns["offset"]) == [10, 26]
    assert list(batch.columns["sequence_number"]) == [2, 2]
    assert len(set(batch.columns["group_id"])) == 1


def test_r2_24_a_row_for_which_the_limit_is_too_small_to_split_is_named() -> None:
    with pytest.raises(MessageTooBig, match="row 1: "):
        completed(define_queue("Q", max_length=3), body=[b"1", b"1234"])
