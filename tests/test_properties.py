"""Properties of the whole: random histories, held against what follows from the rules on paper."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import examples, fresh_manager
from tests.tiers import EVERY

from inorder import Message, NoMessageAvailable, QueueManager
from inorder.message import IN_GROUP, LAST_IN_GROUP, LAST_SEGMENT, SEGMENT

ORDERS = st.sampled_from(["put", "prepare", "commit"])


def names(messages: Any) -> list[str]:
    return [message.body.decode() for message in messages]


def drain(qm: QueueManager, **options: Any) -> list[str]:
    found = []
    while True:
        try:
            found.append(qm.get("Q", **options).body.decode())
        except NoMessageAvailable:
            return found


arrivals = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 12)),
        st.tuples(st.just("delivery"), st.sampled_from(["priority", "fifo"])),
        st.tuples(st.just("default_priority"), st.integers(0, 9)),
    ),
    max_size=30,
)


@pytest.mark.parametrize("store", EVERY)
def test_a_message_stays_where_the_attributes_of_its_arrival_put_it(store: str) -> None:
    @examples(store)
    @given(arrivals)
    def holds(steps: list[tuple[str, Any]]) -> None:
        with fresh_manager(store) as qm:
            qm.create_queue("Q")
            delivery, default, expected = "priority", 0, []
            for n, (what, value) in enumerate(steps):
                if what == "put":
                    effective = min(9, value) if delivery == "priority" else default
                    expected.append((-effective, n, f"m{n}"))
                    qm.put("Q", f"m{n}".encode(), priority=value)
                else:
                    qm.alter_queue("Q", **{what: value})
                    delivery = value if what == "delivery" else delivery
                    default = value if what == "default_priority" else default
            in_order = [name for _, _, name in sorted(expected)]
            assert names(qm.browse("Q")) == in_order
            assert drain(qm) == in_order

    holds()


groups = st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=3), min_size=1, max_size=4)


def pieces_of(sizes: list[list[int]]) -> list[tuple[str, Message, int]]:
    """Every piece of every group: its name, the message, and which group it belongs to; 0 is no group."""
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
def test_logical_order_brings_each_group_together_where_its_head_stands(store: str) -> None:
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
def test_a_group_that_lacks_a_piece_is_passed_over_whole(store: str) -> None:
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


steps_of_three = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(["put", "put", "get", "get", "put outside", "get outside", "commit", "back out", "prepare"]),
    ),
    max_size=40,
)


class History:
    """Three connections that put and get in units, and what must be on the queue by now."""

    def __init__(self, qm: QueueManager) -> None:
        self.qm = qm
        self.connections = [qm.connect() for _ in range(3)]
        self.puts: list[list[str]] = [[], [], []]
        self.gets: list[list[str]] = [[], [], []]
        self.there: Counter[str] = Counter()
        self.prepared: list[tuple[str, list[str], list[str]]] = []
        self.places: dict[str, Any] = {}
        self.numbers = count()

    def put(self, who: int, *, syncpoint: bool) -> None:
        name = f"m{next(self.numbers)}"
        self.connections[who].put("Q", name.encode(), syncpoint=syncpoint)
        if syncpoint:
            self.puts[who].append(name)
        else:
            self.there[name] += 1

    def get(self, who: int, *, syncpoint: bool) -> None:
        try:
            message = self.connections[who].get("Q", syncpoint=syncpoint)
        except NoMessageAvailable:
            assert not self.there
            return
        name = message.body.decode()
        assert self.there[name] == 1, "a message that nobody committed, or that is gone"
        assert self.places.setdefault(name, message.place) == message.place, "it moved"
        del self.there[name]
        if syncpoint:
            self.gets[who].append(name)

    def settle(self, who: int, *, commit: bool) -> None:
        one = self.connections[who]
        (one.commit if commit else one.back_out)()
        self.settled(self.puts[who], self.gets[who], commit=commit)
        self.puts[who], self.gets[who] = [], []

    def settled(self, puts: list[str], gets: list[str], *, commit: bool) -> None:
        self.there.update(puts if commit else gets)

    def prepare(self, who: int) -> None:
        if self.puts[who] or self.gets[who]:
            unit = f"u{next(self.numbers)}"
            self.connections[who].prepare(unit)
            self.prepared.append((unit, self.puts[who], self.gets[who]))
            self.puts[who], self.gets[who] = [], []

    def end(self) -> None:
        for n, (unit, puts, gets) in enumerate(self.prepared):
            self.qm.settle(unit, "commit" if n % 2 else "back_out")
            self.settled(puts, gets, commit=bool(n % 2))
        for who, one in enumerate(self.connections):
            one.abandon()
            self.settled(self.puts[who], self.gets[who], commit=False)


@pytest.mark.parametrize("store", EVERY)
def test_units_lose_nothing_double_nothing_and_keep_places(store: str) -> None:
    @examples(store)
    @given(steps_of_three, ORDERS)
    def holds(steps: list[tuple[int, str]], order: Any) -> None:
        with fresh_manager(store) as qm:
            qm.create_queue("Q", order=order)
            history = History(qm)
            for who, what in steps:
                if what.startswith("put"):
                    history.put(who, syncpoint=what == "put")
                elif what.startswith("get"):
                    history.get(who, syncpoint=what == "get")
                elif what == "prepare":
                    history.prepare(who)
                else:
                    history.settle(who, commit=what == "commit")
            history.end()
            left = list(qm.browse("Q"))
            assert Counter(names(left)) == history.there
            assert qm.depth("Q") == len(left)
            assert qm.units() == []
            places = [message.place for message in left]
            assert places == sorted(places)
            assert len(set(places)) == len(places)

    holds()
