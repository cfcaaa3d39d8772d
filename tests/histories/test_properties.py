"""Properties of the whole: random histories, compared with results derived from the rules."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.helpers.support import drained, examples, fresh_manager
from tests.tiers import EVERY

from inorder import Message, NoMessageAvailable, QueueManager
from inorder.model.message import IN_GROUP, LAST_IN_GROUP, LAST_SEGMENT, SEGMENT


def names(messages: Any) -> list[str]:
    return [message.body.decode() for message in messages]


def drain(qm: QueueManager, **options: Any) -> list[str]:
    return [body.decode() for body in drained(qm, **options)]


groups = st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=3), min_size=1, max_size=4)


def pieces_of(sizes: list[list[int]]) -> list[tuple[str, Message, int]]:
    """Every piece of every group: its name, the message, and the number of its group; 0 is no group."""
    pieces = []
    for g, group in enumerate(sizes, 1):
        for n, segments in enumerate(group, 1):
            for m in range(segments):
                flags = IN_GROUP if n < len(group) else LAST_IN_GROUP
                if segments > 1:
                    flags |= SEGMENT if m < segments - 1 else LAST_SEGMENT
                name = f"{g}.{n}.{m}"
                message = Message(
                    name.encode(), group_id=bytes([g]), sequence_number=n, offset=m * len(name), flags=flags
                )
                pieces.append((name, message, g))
    return pieces


@pytest.mark.parametrize("store", EVERY)
def test_logical_order_reads_each_group_together_at_the_place_of_its_first_message(store: str) -> None:
    @examples(store)
    @given(groups, st.integers(0, 3), st.randoms(use_true_random=False))
    def holds(sizes: list[list[int]], singles: int, random: Any) -> None:
        arriving = [*pieces_of(sizes), *((f"s{n}", Message(f"s{n}".encode()), 0) for n in range(singles))]
        random.shuffle(arriving)
        expected = []
        for name, _, g in arriving:
            if g == 0:
                expected.append(name)
            elif name.endswith(".1.0"):
                expected += sorted(piece for piece, _, group in arriving if group == g)
        with fresh_manager(store) as qm:
            qm.create_queue("Q")
            for _, message, _ in arriving:
                qm.put("Q", message)
            assert names(qm.browse("Q")) == [name for name, _, _ in arriving]
            assert names(qm.browse("Q", logical=True)) == expected
            assert names(qm.browse("Q", logical=True, all_messages=True)) == expected
            assert drain(qm, logical=True) == expected

    holds()


@pytest.mark.parametrize("store", EVERY)
def test_a_group_that_lacks_a_piece_is_skipped_as_a_whole(store: str) -> None:
    @examples(store)
    @given(groups, st.data())
    def holds(sizes: list[list[int]], data: st.DataObject) -> None:
        arriving = pieces_of(sizes)
        missing = data.draw(st.integers(0, len(arriving) - 1))
        _, _, incomplete = arriving.pop(missing)
        with fresh_manager(store) as qm:
            qm.create_queue("Q")
            for _, message, _ in arriving:
                qm.put("Q", message)
            whole = [name for name, _, g in arriving if g != incomplete]
            assert names(qm.browse("Q", logical=True, all_messages=True)) == whole
            got = []
            while True:
                try:
                    got += list(qm.get_group("Q"))
                except NoMessageAvailable:
                    break
            assert b"".join(message.body for message in got) == "".join(whole).encode()
            assert names(qm.browse("Q")) == [name for name, _, g in arriving if g == incomplete]

    holds()
