"""Whether a group is whole: the copies of the rule in SQL and in the shortcuts agree with `rules.grouping`.

Members are random: their numbers, offsets, lengths and flags fit together or do not, and a unit of work holds some.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from inorder import Flags, QueueManager, connect
from inorder.client.bulk import BulkBrowser, ClaimReader
from inorder.errors import NoMessageAvailable
from inorder.model.message import ANY_SEGMENT, Message
from inorder.model.options import GetOptions
from inorder.rules.grouping import Members, has_what_it_needs, is_head
from inorder.stores.sql.shortcuts import _are_a_group
from inorder.stores.sqlite import SqliteStore

GROUP = b"G".ljust(24)
GROUPS = GetOptions(logical=True, all_messages=True, complete=True)
IN, LAST, SEGMENT, LAST_SEGMENT = Flags.IN_GROUP, Flags.LAST_IN_GROUP, Flags.SEGMENT, Flags.LAST_SEGMENT
ALONE = Flags.SEGMENTATION_ALLOWED  # the group's id without a group flag (R2.13)


class Member(NamedTuple):
    """A message to put; `held`: by a unit of work that stays open."""

    sequence_number: int
    offset: int
    length: int
    flags: int
    held: bool = False


MEMBERS = st.builds(
    Member,
    sequence_number=st.integers(1, 3),
    offset=st.integers(0, 2),
    length=st.integers(1, 2),
    flags=st.sampled_from(
        [IN, IN | LAST, IN | SEGMENT, IN | LAST_SEGMENT, IN | LAST | SEGMENT, IN | LAST | LAST_SEGMENT, ALONE]
    ),
    held=st.integers(0, 7).map(lambda one: one == 0),
).map(lambda one: one if one.flags & ANY_SEGMENT else one._replace(offset=0))
WHOLE = [
    Member(1, 0, 1, IN),
    Member(2, 0, 2, IN | SEGMENT),
    Member(2, 2, 1, IN | LAST_SEGMENT),
    Member(3, 0, 1, IN | LAST),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    fresh = SqliteStore(tmp_path_factory.mktemp("wholeness") / "store.db")
    with connect(fresh, program="test"):
        yield fresh


@contextmanager
def queue_with(store: SqliteStore, members: list[Member]) -> Iterator[tuple[QueueManager, str]]:
    """A connection, and a new queue with these members; a unit of work of another connection holds some."""
    qm, holder = connect(store, program="test"), connect(store, program="holder")
    name = f"Q{len(qm.queues())}"
    qm.create_queue(name)
    for one in members:
        (holder if one.held else qm).put(
            name,
            bytes(one.length),
            group_id=GROUP,
            sequence_number=one.sequence_number,
            offset=one.offset,
            flags=one.flags,
            syncpoint=one.held,
        )
    try:
        yield qm, name
    finally:
        qm.internals.abandon()
        holder.internals.abandon()


def whole_by_the_rule(there: list[Message]) -> bool:
    """Whether any of these messages, which can be read, begins a whole group."""
    return any(is_head(one) and has_what_it_needs(one, "group", lambda _: Members(there)) for one in there)


def whole_by_the_hint(store: SqliteStore, queue: str) -> bool:
    """Whether the column `head` of any message says so."""
    sql = "SELECT max(head) FROM message m JOIN definition d ON d.id = m.queue WHERE m.available AND d.name = ?"
    with store.database.reading():
        ((found,),) = store.database.connection.execute(sql, (queue,))
    return bool(found == 2)


@given(st.lists(MEMBERS, max_size=6))
@example(WHOLE)
@example(WHOLE[1:])
@example([*WHOLE, WHOLE[0]])
@example([Member(1, 0, 1, IN), Member(1, 0, 1, IN), Member(3, 0, 1, IN | LAST)])
@example([Member(1, 0, 1, ALONE), *WHOLE])
def test_the_copies_of_the_rule_in_sql_give_the_same_result_as_the_rule(
    store: SqliteStore, members: list[Member]
) -> None:
    with queue_with(store, members) as (qm, name):
        whole = whole_by_the_rule(list(qm.browse(name)))
        assert whole_by_the_hint(store, name) >= whole, "the hint says that something is missing"
        browser = BulkBrowser(qm.open(name, browse=True))
        survey = browser.survey(GetOptions(logical=True, all_messages=True))
        rows = [row for stretch in survey.stretches for page in browser.read(stretch) for row in page]
        shown = list(qm.browse(name, logical=True, all_messages=True))
        assert survey.messages == len(rows) == len(shown)
        assert bool(rows) == whole
        reader = ClaimReader(qm.open(name, input="shared"), "test")
        assert (reader.claim(reader.begin().settled, GROUPS) is not None) == whole
        qm.bulk.release_claims(name, "test")
        assert takes_a_group(qm, name) == whole


def takes_a_group(qm: QueueManager, queue: str) -> bool:
    with qm.unit_of_work() as unit:
        try:
            got = list(qm.get_group(queue))
        except NoMessageAvailable:
            got = []
        unit.back_out()
    return bool(got)


def message(one: Member) -> Message:
    return Message(bytes(one.length)).with_values(
        group_id=GROUP, sequence_number=one.sequence_number, offset=one.offset, flags=one.flags, length=one.length
    )


@given(st.lists(MEMBERS, max_size=5))
@example([Member(1, 0, 1, IN), Member(2, 0, 1, IN | LAST)])
def test_the_shortcut_accepts_no_group_that_the_rule_rejects(members: list[Member]) -> None:
    ordered = sorted(members, key=lambda one: (one.sequence_number, one.offset))
    plain = _are_a_group((one.sequence_number, one.flags) for one in ordered)
    whole = Members(map(message, members)).group_is_complete()
    assert whole or not plain
    numbers = [one.sequence_number for one in ordered]
    is_plain = not any(one.flags & ANY_SEGMENT for one in members) and numbers == list(range(1, len(numbers) + 1))
    if is_plain and not any(one.flags & LAST for one in ordered[:-1]):
        assert plain == whole
