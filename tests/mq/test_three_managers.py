"""Histories of three queue managers: whichever run dies, each message arrives once, in its sender's order.

HUB sends to PUSHED by a channel, and holds messages for PULLS, which collects them; both send to HUB by channels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from tests.helpers.channelled import Died, bodies

import inorder
from inorder import QueueManager, Reason
from inorder.errors import InorderError
from inorder.mq import channels
from inorder.mq.channels import points
from inorder.mq.channels.sides import Receiver

NAMES: Final = ("HUB", "PUSHED", "PULLS")
HOPS: Final = ("PUSHED to HUB", "PULLS to HUB", "HUB to PUSHED", "PULLS collects")
IN_THE_WAY: Final = (Reason.UNKNOWN_REMOTE_Q_MGR, Reason.CHANNEL_STOPPED)  # no target, or stopped


class ThreeManagers(RuleBasedStateMachine):
    """Puts between any two managers, runs of each hop that may die, and changes by an operator."""

    def __init__(self) -> None:
        super().__init__()
        self.managers = {name: inorder.connect(name=name) for name in NAMES}
        self.sent: dict[tuple[str, str], list[bytes]] = defaultdict(list)
        self.count = 0

    @initialize()
    def define(self) -> None:
        hub, pushed, pulls = self.managers.values()
        hub.create_queue("PUSHED", usage="transmission")
        hub.create_queue("SPOKES", type="store_and_forward", targets="PULLS")
        self._channel(hub, "PUSHED")
        for qm, other in ((pushed, "PULLS"), (pulls, "PUSHED")):
            qm.create_queue("HUB", usage="transmission")
            qm.create_queue(other, type="remote", remote_manager=other, transmission_queue="HUB")
            self._channel(qm, "HUB")
        channels.define_connection(pulls, "HUB", "HUB")
        pulls.create_queue("SPOKES", type="home_server", remote_manager="HUB")
        for qm in self.managers.values():
            qm.create_queue("Q", order="commit")

    @staticmethod
    def _channel(qm: QueueManager, to: str) -> None:
        channels.define_channel(
            qm, f"TO.{to}", transmission_queue=to, connection=to, batch_size=2, short_retry_count=0, long_retry_count=0
        )

    def teardown(self) -> None:
        """All messages arrive once nothing dies any more."""
        try:
            self.managers["HUB"].alter_queue("SPOKES", targets="PULLS")
            channels.start_channel(self.managers["HUB"], "SPOKES:PULLS")
            for _ in range(2):  # from one spoke to the other there are two hops
                for hop in HOPS:
                    self._run(hop)
            for (sender, receiver), expected in self.sent.items():
                found = [one for one in bodies(self.managers[receiver]) if one.startswith(sender.encode())]
                assert found == expected
            assert sum(qm.depth("Q") for qm in self.managers.values()) == self.count
        finally:
            for qm in self.managers.values():
                qm.close()

    @rule(sender=st.sampled_from(NAMES), other=st.sampled_from([1, 2]), many=st.integers(1, 5), commits=st.booleans())
    def put(self, sender: str, other: int, many: int, commits: bool) -> None:
        self._put(sender, NAMES[(NAMES.index(sender) + other) % len(NAMES)], many, commits=commits)

    def _put(self, sender: str, receiver: str, many: int, *, commits: bool) -> None:
        qm = self.managers[sender]
        new = [b"%s %d" % (sender.encode(), self.count + one) for one in range(many)]
        with qm.unit_of_work() as unit:
            qm.put_many("Q", new, manager=receiver)
            if not commits:
                unit.back_out()
        if commits:
            self.sent[sender, receiver] += new
            self.count += many

    @rule(hop=st.sampled_from(HOPS))
    def run(self, hop: str) -> None:
        self._run(hop)

    @rule(hop=st.sampled_from(HOPS), place=st.sampled_from([*points.POINTS]), many=st.integers(1, 5))
    def die_on_the_way(self, hop: str, place: str, many: int) -> None:
        """Puts messages; the run that carries them dies at this point."""
        sender, receiver = ("HUB", "PULLS") if hop == "PULLS collects" else hop.split(" to ")
        self._put(sender, receiver, many, commits=True)
        points.reached = lambda point: _die() if point == place else None
        try:
            self._run(hop)
        except Died:
            pass
        finally:
            points.reached = None

    @rule(is_target=st.booleans())
    def change_targets(self, is_target: bool) -> None:
        """Changes the targets while messages wait."""
        self.managers["HUB"].alter_queue("SPOKES", targets="OTHER,PULLS" if is_target else "OTHER")

    @rule(act=st.sampled_from([channels.stop_channel, channels.start_channel]))
    def stop_or_start_what_collects(self, act: Callable[[QueueManager, str], None]) -> None:
        _unless(lambda: act(self.managers["HUB"], "SPOKES:PULLS"), Reason.UNKNOWN_OBJECT_NAME)

    @rule()
    def resolve_what_collects(self) -> None:
        _unless(
            lambda: channels.resolve_channel(self.managers["PULLS"], "SPOKES", connects=self._connect),
            *IN_THE_WAY, Reason.NOT_FOUND,
        )  # fmt: skip

    def _connect(self, name: str) -> Receiver:
        return Receiver(self.managers[name].connect())

    def _run(self, hop: str) -> None:
        first, _, last = hop.rpartition(" ")
        qm = self.managers[first.split()[0]]
        if last == "collects":
            _unless(lambda: channels.pull(qm, "SPOKES", until_empty=True, connects=self._connect), *IN_THE_WAY)
        else:
            channels.run_channel(qm, f"TO.{last}", until_empty=True, connects=self._connect)


def _die() -> None:
    raise Died


def _unless(call: Callable[[], object], *reasons: Reason) -> None:
    """Makes a call that may be refused for these reasons."""
    try:
        call()
    except InorderError as error:
        if error.reason not in reasons:
            raise


TestThreeManagers = ThreeManagers.TestCase
TestThreeManagers.settings = settings(max_examples=25, stateful_step_count=20)
