"""Both stores give the same answers over random histories of stagings, settles, undos, puts and gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.staged import Writer
from tests.support import Stores

from inorder import Message, NoMessageAvailable, connect
from inorder.errors import InorderError
from inorder.housekeeping import tidy
from inorder.stores.records import LedgerKey
from inorder.stores.sqlite import SqliteStore
from inorder.stores.sqlite.checking import problems
from inorder.testing import ManualClock

QUEUES, NAMES = ("Q", "R"), ("one", "two", "three")
KEYS = st.one_of(
    st.none(), st.integers(-2, 2), st.sampled_from([0.5, 1.0, -0.0, 2.0**53]), st.sampled_from(["", "a", "é", b"a"])
)
CHANGES: list[dict[str, Any]] = [
    {"order": "put"},
    {"order": "commit"},
    {"delivery": "fifo"},
    {"delivery": "priority"},
    {"max_depth": 4},
    {"max_depth": 99},
    {"put_allowed": False},
    {"put_allowed": True},
    {"index_type": "group_id"},
]
FLAGS = st.sampled_from([0, 1, 2, 6, 8, 10, 14, 16, 24])


class Step(NamedTuple):
    """One act on both stores."""

    act: str
    values: Any


@st.composite
def staging(draw: st.DrawFn) -> Step:
    count = draw(st.integers(0, 5))

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=count, max_size=count))

    columns: dict[str, list[Any]] = {}
    choices = {
        "group_key": KEYS,
        "order_key": KEYS,
        "priority": st.one_of(st.none(), st.integers(0, 11)),
        "expiry": st.sampled_from([None, 1.0, 5.0]),
        "delay": st.sampled_from([None, 0.0, 2.0]),
        "persistent": st.sampled_from([None, True, False]),
    }
    own = {
        "group_id": st.sampled_from([None, b"G", b"H"]),
        "sequence_number": st.integers(1, 4),
        "offset": st.sampled_from([0, 16, 20]),
        "flags": FLAGS,
    }
    for name in draw(st.sets(st.sampled_from(sorted(choices)))):
        columns[name] = column(choices[name])
    if draw(st.booleans()):
        columns |= {name: column(values) for name, values in own.items()}
    lengths = column(st.sampled_from([0, 1, 16, 20, 40]))
    return Step("stage", (draw(st.sampled_from(NAMES)), draw(st.sampled_from(QUEUES)), lengths, columns))


SETTLES = st.builds(
    Step,
    st.just("settle"),
    st.tuples(
        st.sampled_from([NAMES, NAMES, ("two", "one"), ("three",)]), st.integers(0, 30), st.sampled_from([0] * 9 + [1])
    ),
)
STEPS = st.one_of(
    staging(),
    staging(),
    SETTLES,
    st.builds(Step, st.just("batch"), st.lists(staging(), min_size=1, max_size=3)),
    st.builds(Step, st.just("batch"), st.lists(staging(), min_size=1, max_size=3)),
    st.builds(Step, st.just("undo"), st.lists(st.sampled_from(NAMES), max_size=2)),
    st.builds(Step, st.just("put"), st.sampled_from(QUEUES)),
    st.builds(Step, st.just("get"), st.tuples(st.sampled_from(QUEUES), st.sampled_from([{}, {"logical": True}]))),
    st.builds(Step, st.just("group"), st.sampled_from(QUEUES)),
    st.builds(Step, st.just("alter"), st.tuples(st.sampled_from(QUEUES), st.sampled_from(CHANGES))),
    st.builds(Step, st.just("wait"), st.sampled_from([0.5, 2.0, 6.0, 11.0])),
    st.builds(Step, st.just("restart"), st.none()),
)


class Side:
    """One store, and what was said about it."""

    def __init__(self, stores: Stores) -> None:
        self.clock = ManualClock()
        self.store = stores.make(self.clock)
        self.writer = Writer(self.store, connect(self.store, program="test"))
        for name in QUEUES:
            self.writer.qm.create_queue(name, max_length=24)
        self.ids: dict[bytes, int] = {}

    def begin(self) -> None:
        counts, self.writer = self.writer.counts, Writer(self.store, connect(self.store, program="test"))
        self.writer.counts = counts

    def does(self, step: Step, number: int) -> object:
        """The answer of one step; an error by its name and reason."""
        try:
            answer = getattr(self, step.act)(step.values, number)
        except InorderError as error:
            return type(error).__name__, error.reason, str(error) if step.act == "stage" else ""
        return answer, self.seen()

    def seen(self) -> object:
        qm = self.writer.qm
        messages = [
            [self.told(one) for one in qm.browse(name, logical=logical, read_order="relaxed")]
            for name in QUEUES
            for logical in (False, True)
        ]
        return messages, [qm.depth(name) for name in QUEUES], qm.units()

    def told(self, message: Message) -> object:
        """A message with ids by the order in which they were seen: each store draws its own numbers."""
        ids = [self.ids.setdefault(one, len(self.ids)) for one in (message.message_id, message.group_id)]
        return message.with_values(message_id=b"", group_id=b"", token=b"", uid=None), ids

    def stage(self, values: tuple[str, str, Sequence[int], dict[str, Any]], number: int) -> None:
        name, queue, lengths, columns = values
        body = [bytes([number % 256]) * length for length in lengths]
        self.writer.stage(name, body, queue=queue, lasts=10.0, **columns)

    def settle(self, values: tuple[Sequence[str], int, int], _: int) -> object:
        """Of these names those that are staged; with a wrong count of the first, or one that is not there."""
        names, batch, wrong = values
        there = [name for name in names if name in self.writer.counts] or list(names[:1])
        if wrong:
            self.writer.counts[there[0]] = self.writer.counts.get(there[0], 0) + 1
        return self.writer.settle(*there, key=LedgerKey("app", "", str(batch)))

    def batch(self, stagings: list[Step], number: int) -> object:
        """Each under a name of its own, and all settled."""
        for n, (_, (_, *values)) in enumerate(stagings):
            self.stage((f"{number}-{n}", *values), number)
        names = [f"{number}-{n}" for n in range(len(stagings))]
        return self.writer.settle(*names, key=LedgerKey("app", "query", f"{number}"))

    def undo(self, names: list[str], _: int) -> int:
        for name in names:
            self.writer.counts.pop(name, None)
        return self.writer.store.undo_staging(names)

    def put(self, queue: str, number: int) -> None:
        self.writer.qm.put(queue, bytes([number % 256]))

    def get(self, values: tuple[str, dict[str, Any]], _: int) -> object:
        queue, keywords = values
        return self.told(self.writer.qm.get(queue, read_order="relaxed", **keywords))

    def group(self, queue: str, _: int) -> object:
        with self.writer.qm.unit_of_work():
            return [self.told(one) for one in self.writer.qm.get_group(queue)]

    def alter(self, values: tuple[str, dict[str, Any]], _: int) -> None:
        self.writer.qm.alter_queue(values[0], **values[1])

    def wait(self, seconds: float, _: int) -> int:
        self.clock.advance(seconds)
        return tidy(self.store)

    def restart(self, _: None, __: int) -> None:
        self.store.restart()
        self.begin()


@given(st.lists(STEPS, min_size=3, max_size=25))
@settings(max_examples=settings().max_examples // 2)
def test_the_stores_agree(steps: list[Step]) -> None:
    with Stores("memory") as left_stores, Stores("sqlite") as right_stores:
        left, right = Side(left_stores), Side(right_stores)
        for number, step in enumerate(steps):
            assert left.does(step, number) == right.does(step, number), step
        assert isinstance(right.store, SqliteStore)
        assert problems(right.store) == []


def test_nothing_is_there_to_get() -> None:
    with Stores("memory") as stores:
        side = Side(stores)
        assert side.does(Step("get", ("Q", {})), 0) == ("NoMessageAvailable", NoMessageAvailable.reason, "")
