"""Every store gives the answers of the memory store to the same history of claims, surveys, puts and gets."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from tests.claiming import BODY, DELIVERY, GROUPS, LOGICAL, PHYSICAL, STRICT, STRICT_GROUPS, Application, store_of
from tests.support import Stores

from inorder import Flags, InorderError, QueueManager, connect
from inorder.options import GetOptions
from inorder.rules.grouping import NOTHING_OPEN
from inorder.rules.ordering import UNSET
from inorder.stores.records import GetRequest
from inorder.testing import ManualClock

Order = Literal["put", "prepare", "commit"]
OPTIONS = (PHYSICAL, GROUPS, LOGICAL, STRICT, STRICT_GROUPS, GetOptions(logical=True, complete=True))
SURVEYED = (PHYSICAL, GROUPS, STRICT, STRICT_GROUPS)


class Step(NamedTuple):
    """An act, and two numbers that it goes by."""

    act: str
    n: int
    m: int


class History:
    """Acts on the queue R of one store, each with its answer."""

    def __init__(self, qm: QueueManager, clock: ManualClock, order: Order) -> None:
        self.qm, self.clock, self.store = qm, clock, store_of(qm)
        qm.create_queue("R", order=order, max_length=16)
        self.start(0, 0)

    def act(self, step: Step) -> Any:
        try:
            return getattr(self, step.act)(step.n, step.m)
        except InorderError as error:
            return step.act, type(error).__name__

    def put(self, n: int, m: int) -> Any:
        return self.qm.put("R", b"%d" % n, priority=m % 3).sequence_number

    def member(self, n: int, m: int, flags: int = Flags.IN_GROUP) -> None:
        group_id = (b"g%d" % (n % 3)).ljust(24, b".")
        self.qm.put("R", b"%d/%d" % (n % 3, m), group_id=group_id, sequence_number=m, flags=flags)

    def last(self, n: int, m: int) -> None:
        self.member(n, m, Flags.IN_GROUP | Flags.LAST_IN_GROUP)

    def segmented(self, n: int, m: int) -> None:
        self.qm.put("R", bytes(range(9 * m)), flags=Flags.SEGMENTATION_ALLOWED)

    def held(self, n: int, m: int) -> None:
        self.qm.put("R", b"held%d" % n, syncpoint=True)

    def commit(self, n: int, m: int) -> None:
        self.qm.commit()

    def back_out(self, n: int, m: int) -> None:
        self.qm.back_out()

    def get(self, n: int, m: int) -> bytes:
        return self.qm.get("R").body

    def get_held(self, n: int, m: int) -> bytes:
        return self.qm.get("R", syncpoint=True).body

    def delayed(self, n: int, m: int) -> None:
        self.qm.put("R", b"delayed%d" % n, delay=float(m), priority=m % 3)

    def short(self, n: int, m: int) -> None:
        self.qm.put("R", b"short%d" % n, expiry=float(m), persistent=n % 2 == 0)

    def fleeting(self, n: int, m: int) -> None:
        self.qm.put("R", b"fleeting%d" % n, persistent=False, priority=m % 3)

    def held_member(self, n: int, m: int) -> None:
        group_id = (b"g%d" % (n % 3)).ljust(24, b".")
        flags = Flags.IN_GROUP | (Flags.LAST_IN_GROUP if n > 6 else Flags.NONE)
        self.qm.put("R", b"held/%d" % m, group_id=group_id, sequence_number=m, flags=flags, syncpoint=True)

    def confirmed(self, n: int, m: int) -> None:
        self.qm.put("R", b"confirmed%d" % n, confirm_id=m)

    def undo(self, n: int, m: int) -> None:
        self.qm.undo("R", m)

    def advance(self, n: int, m: int) -> None:
        self.clock.advance(float(m))

    def lock(self, n: int, m: int) -> Any:
        if n % 2 == 0:
            return self.qm.open("R", browse=True).browse_first(lock=True).body  # a handle of its own
        return self._browse(GetOptions(browse="first", lock=True))

    def mark(self, n: int, m: int) -> Any:
        return self._browse(GetOptions(browse="first", mark_handle=True, unmarked=True))

    def _browse(self, options: GetOptions) -> list[bytes]:
        """By the application's own handle."""
        request = GetRequest(self.application.claimer.handle, options, NOTHING_OPEN, UNSET, syncpoint=False)
        return [message.body for message in self.store.get(request).messages]

    def enter(self, n: int, m: int) -> bytes:
        return self.qm.get("R", logical=True, syncpoint=n % 2 == 0).body

    def prepare(self, n: int, m: int) -> None:
        self.qm.prepare("p")

    def commit_prepared(self, n: int, m: int) -> None:
        self.qm.settle("p", "commit" if n % 2 else "back_out")

    def restart(self, n: int, m: int) -> None:
        self.store.restart()
        self.qm.abandon()
        self.qm = connect(self.store, program="test")
        self.start(n, m)

    def start(self, n: int, m: int) -> None:
        self.application = Application(self.store, queue="R")
        self.done = self.application.settled

    def claim(self, n: int, m: int) -> Any:
        horizon = self.application.horizon if m == 5 else None
        claim = self.application.claim(self.done, OPTIONS[n % 6], most=m, most_bytes=4 + n, horizon=horizon)
        if claim is None:
            return None
        self.done = claim.number
        rows = self.application.rows(claim.number, m)
        return claim[:5], [(*row[: DELIVERY + 1], *row[28:31], row[BODY]) for row in rows]

    def plan(self, n: int, m: int) -> Any:
        return self.application.plan(max(0, self.done - 1), self.done, m)

    def settle(self, n: int, m: int) -> int:
        return self.application.settle(self.done)

    def release(self, n: int, m: int) -> int:
        return self.store.release_claims("R", "app")

    def survey(self, n: int, m: int) -> Any:
        options = SURVEYED[n % 4]
        some = self.application.survey(options, most=m, most_bytes=4 + n, slices=m)
        rest = self.application.survey(options, some[0], slices=m) if n % 4 > 1 else None
        return some, rest, self.application.survey(options, slices=m)

    def everything(self) -> Any:
        messages = [(one.body, one.backout_count) for one in self.qm.browse("R", read_order="relaxed")]
        return messages, self.qm.status("R").current_depth, [(*one[:2], *one[3:6]) for one in self.store.claims()]


ACTS = (
    "put member member last segmented held commit back_out get get_held claim claim claim plan settle release start "
    "survey survey delayed short fleeting held_member confirmed undo advance lock mark enter prepare commit_prepared "
    "restart"
)
STEPS = st.lists(
    st.builds(Step, st.sampled_from(ACTS.split()), st.integers(0, 9), st.integers(1, 5)), min_size=5, max_size=40
)


def play(kind: str, order: Order, steps: list[Step]) -> list[Any]:
    clock = ManualClock()
    with Stores(kind) as stores:
        history = History(connect(stores.make(clock), program="test"), clock, order)
        return [*map(history.act, steps), history.everything()]


@given(order=st.sampled_from(["put", "commit"]), steps=STEPS)
def test_stores_agree_on_claims(order: Order, steps: list[Step]) -> None:
    assert play("sqlite", order, steps) == play("memory", order, steps)
