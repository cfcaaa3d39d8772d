"""The gaps of a group, alone and compared with the rule for complete groups."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder import Flags, Message
from inorder.rules.gaps import GAPS_MAX, NO_GAPS, Gaps, Member, gaps, member_of
from inorder.rules.grouping import Members

IN, LAST, SEGMENT, END = Flags.IN_GROUP, Flags.LAST_IN_GROUP, Flags.SEGMENT, Flags.LAST_SEGMENT


def of(*members: tuple[int, int, int, int]) -> Gaps:
    return gaps(Member(*one) for one in members)


@pytest.mark.parametrize(
    ("members", "missing"),
    [
        ([], NO_GAPS),
        ([(1, 0, 5, IN), (2, 0, 5, IN | LAST)], NO_GAPS),
        ([(1, 0, 5, IN)], Gaps(last=True)),
        ([(2, 0, 5, IN), (5, 0, 5, IN | LAST)], Gaps(sequences=((1, 1), (3, 4)))),
        ([(1, 0, 5, IN), (3, 0, 5, IN)], Gaps(sequences=((2, 2),), last=True)),
        ([(1, 0, 5, IN | LAST), (7, 0, 5, IN)], NO_GAPS),
        ([(1, 0, 3, SEGMENT), (1, 3, 4, SEGMENT | END)], NO_GAPS),
        ([(1, 0, 3, SEGMENT), (1, 5, 4, SEGMENT | END)], Gaps(segments=((1, 3, 5),))),
        ([(1, 4, 4, SEGMENT)], Gaps(segments=((1, 0, 4),), unended=(1,))),
        ([(1, 0, 3, SEGMENT), (1, 3, 3, SEGMENT)], Gaps(unended=(1,))),
        ([(1, 0, 3, SEGMENT), (1, 2, 3, SEGMENT | END)], Gaps(unended=(1,))),
        ([(1, 0, 3, IN | SEGMENT), (1, 3, 3, IN | SEGMENT | END)], Gaps(last=True)),
        ([(1, 0, 3, IN), (2, 3, 3, IN | LAST | SEGMENT | END)], Gaps(segments=((2, 0, 3),))),
        ([(1, 0, 3, IN), (1, 0, 9, IN | LAST)], Gaps(last=True)),
    ],
)
def test_the_gaps_of_a_group_are_found(members: list[tuple[int, int, int, int]], missing: Gaps) -> None:
    assert of(*members) == missing
    assert of(*members).is_complete is (missing == NO_GAPS)


def test_only_the_first_of_many_gaps_are_listed() -> None:
    found = of(*((2 * n, 0, 1, IN) for n in range(1, 1000)))
    assert found.sequences == tuple((n, n) for n in range(1, 2 * GAPS_MAX, 2))
    assert (found.more, found.last) == (True, True)


@given(
    st.lists(
        st.builds(
            Message,
            st.sampled_from([b"1234", b"12345678"]),
            group_id=st.just(b"G"),
            sequence_number=st.integers(1, 3),
            offset=st.sampled_from([0, 0, 4, 8]),
            flags=st.sampled_from([IN, IN | LAST, IN | SEGMENT, IN | SEGMENT | END, IN | LAST | SEGMENT | END]),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_a_group_without_gaps_is_a_complete_group(messages: list[Message]) -> None:
    ordered = sorted(messages, key=lambda one: (one.sequence_number, one.offset))
    assert gaps(map(member_of, ordered)).is_complete is Members(messages).group_is_complete()
