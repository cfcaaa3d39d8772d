"""Steps of a history with remote queues, and with messages that a queue manager makes or moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule
from tests.machine import choices
from tests.machine.bulk import Bulk
from tests.machine.definitions import Definitions
from tests.machine.once import Once
from tests.machine.rules import Confirms, Gets, Lives, Puts, Units
from tests.machine.side import listing

from inorder import Report
from inorder.client import store_transfer

REPORTS, WAY, DEAD = "REPORTS", "QM2", "DEAD"
asked = st.sampled_from(
    [
        Report.COA,
        Report.COD,
        Report.COA | Report.COD_WITH_DATA | Report.EXPIRATION,
        Report.COA_WITH_FULL_DATA | Report.PASS_MESSAGE_ID | Report.PASS_CORRELATION_ID,
        Report.EXPIRATION_WITH_FULL_DATA | Report.PASS_DISCARD_AND_EXPIRY,
        Report.EXPIRATION | Report.COD | Report.DISCARD_MESSAGE,
        Report.EXCEPTION_WITH_FULL_DATA | Report.COD_WITH_FULL_DATA,
    ]
)
reply_queues = st.sampled_from(
    [(REPORTS, ""), (REPORTS, ""), ("FAR", ""), ("NONE", ""), ("R", WAY), ("R", "QM9"), ("BACK", "")]
)
users = st.sampled_from(["few", "few", "root"])
GRANTED: Sequence[Mapping[str, Sequence[str]]] = [
    {"A": ["put"], REPORTS: ["put"]},
    {"A": ["put"], REPORTS: ["put"], "FAR": ["put"]},
    {"*": ["put"]},
    {},
]
ways = st.sampled_from(
    [("FAR", ""), ("FAR", ""), ("THERE", WAY), ("THERE", "ELSE"), ("THERE", "QM9"), ("A", "ELSE"), ("A", "")]
)


class Ways(Definitions):
    """Remote definitions, a transmission queue, a queue for reports that is soon full, and a dead-letter queue."""

    @initialize(depth=st.sampled_from([2, 1000]), dead=st.sampled_from([2, 1000]))
    def define_ways(self, depth: int, dead: int) -> None:
        self.both(lambda side: side.operator.create_queue(WAY, usage="transmission"))
        self.both(lambda side: side.operator.create_queue(REPORTS, max_depth=depth))
        self.both(lambda side: side.operator.create_queue(DEAD, max_depth=dead))
        self.both(lambda side: side.operator.admin.alter_manager(dead_letter_queue=DEAD))
        for name, queue in (("FAR", "THERE"), ("ELSE", ""), ("BACK", REPORTS)):
            self.both(
                lambda side, name=name, queue=queue: side.operator.create_queue(  # type: ignore[misc]
                    name, type="remote", remote_queue=queue, remote_manager=WAY
                )
            )

    @rule(
        choice=choices.handles,
        length=choices.lengths,
        report=asked,
        replies=reply_queues,
        fields=choices.fields,
        options=choices.put_options,
    )
    def put_asking(
        self,
        choice: int,
        length: int,
        report: Report,
        replies: tuple[str, str],
        fields: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> None:
        body, (queue, manager) = self.body(length), replies
        given = {**fields, **options, "report": report, "reply_to_queue": queue, "reply_to_queue_manager": manager}
        self.on_handle(choice, lambda side, handle: handle.put(body, **side.options(given)))

    @rule(
        number=choices.connections, way=ways, report=st.sampled_from([0, Report.COA | Report.COD]),
        fields=choices.fields, options=choices.put_options,
    )  # fmt: skip
    def put_away(
        self,
        number: int,
        way: tuple[str, str],
        report: int,
        fields: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> None:
        number, body, (name, manager) = self.free(number), self.body(4), way
        given = {**fields, **options, "report": report, "reply_to_queue": REPORTS}
        self.both(lambda side: side.connections[number].put(name, body, manager=manager, **side.options(given)))

    @initialize()
    def define_users(self) -> None:
        for name, role, queues in (("root", "admin", {}), ("few", "application", GRANTED[0])):
            self.both(
                lambda side, name=name, role=role, queues=queues: (
                    side.operator.accounts.create_user(  # type: ignore[misc]
                        name, roles=[role], queues=queues
                    ).name
                )
            )

    @rule(
        number=choices.connections, user=users, name=st.sampled_from("AB"), length=choices.lengths, report=asked,
        replies=reply_queues, options=choices.put_options,
    )  # fmt: skip
    def put_asking_as_user(
        self,
        number: int,
        user: str,
        name: str,
        length: int,
        report: Report,
        replies: tuple[str, str],
        options: Mapping[str, Any],
    ) -> None:
        number, body, (queue, manager) = self.free(number), self.body(length), replies
        given = {**options, "report": report, "reply_to_queue": queue, "reply_to_queue_manager": manager}

        def step(side: Any) -> Any:
            qm = side.connections[number]
            with qm.accounts.on_behalf_of(user):
                return qm.put(name, body, **side.options(given))

        self.both(step)

    @rule(user=users, granted=st.sampled_from(GRANTED), enabled=st.sampled_from([True, True, False]))
    def alter_user(self, user: str, granted: Mapping[str, Sequence[str]], enabled: bool) -> None:
        """Refuses or allows reports requested before; requests of a user who has been disabled stay refused."""
        more: Any = {"queues": granted} if user == "few" else {}
        self.both(lambda side: side.operator.accounts.alter_user(user, enabled=enabled, **more).enabled)

    @rule(user=users)
    def replace_user(self, user: str) -> None:
        """The new user of this name gets no reports that the deleted user requested."""

        def step(side: Any) -> None:
            side.operator.accounts.delete_user(user)
            side.operator.accounts.create_user(user, roles=["admin"] if user == "root" else ["application"])

        self.both(step)

    @rule(number=choices.connections, queue=st.sampled_from("AB"))
    def set_aside(self, number: int, queue: str) -> None:
        """Gets a message and makes it a dead letter, which sends a report if the message asks for one."""
        number = self.free(number)

        def step(side: Any) -> Any:
            qm = side.connections[number]
            return qm.dead.add(qm.get(queue, read_order="relaxed"), queue=queue)

        self.both(step)

    @rule(number=choices.connections, name=st.sampled_from([REPORTS, WAY, DEAD]), syncpoint=st.booleans())
    def get_what_was_made(self, number: int, name: str, syncpoint: bool) -> None:
        number = self.free(number)
        self.both(lambda side: side.connections[number].get(name, syncpoint=syncpoint, read_order="relaxed"))

    @rule(name=st.sampled_from(["FAR", WAY, REPORTS, DEAD]), value=st.sampled_from([True, True, False]))
    def inhibit(self, name: str, value: bool) -> None:
        self.both(lambda side: side.operator.alter_queue(name, put_allowed=value))

    @rule(queue=st.sampled_from(["THERE", "OTHER", ""]))
    def alter_way(self, queue: str) -> None:
        self.both(lambda side: side.operator.alter_queue("FAR", remote_queue=queue))

    @rule(discard=st.booleans())
    def see_to_dead_letters(self, discard: bool) -> None:
        if discard:
            self.both(lambda side: side.operator.dead.discard())
        else:
            self.both(lambda side: side.operator.dead.replay())

    @rule(number=choices.connections, count=st.integers(1, 3), fails=st.booleans())
    def move(self, number: int, count: int, fails: bool) -> None:
        """An operator moves messages from A to B."""
        number = self.free(number)

        def step(side: Any) -> Any:
            qm = side.connections[number]
            with store_transfer.moving(qm) as unit:
                qm.put_many("B", qm.get_many("A", count, read_order="relaxed"), context="set_all")
                if fails:
                    unit.back_out()

        self.both(step)

    @rule()
    def see_what_was_dropped(self) -> None:
        self.both(lambda side: side.operator.inspect.dropped())
        self.both(lambda side: listing(side.operator.dead.letters()))


class Between(Ways, Once, Puts, Gets, Confirms, Units, Lives, Bulk):
    """Messages that go elsewhere, ask for reports or are put once, among puts, gets, confirm ids, units and bulk."""

    put_asking_2 = put_asking_3 = put_asking_4 = Ways.put_asking
    put_away_2 = put_away_3 = Ways.put_away
    as_user_2 = as_user_3 = Ways.put_asking_as_user
    set_aside_2 = Ways.set_aside
    made_2 = made_3 = Ways.get_what_was_made
    under_key_2 = under_key_3 = Once.put_under_key
    twice_2 = twice_3 = Once.put_twice
    put_due_2 = Once.put_due
    get_2 = get_3 = Gets.get
    settle_2 = settle_3 = Units.settle
    advance_2 = advance_3 = Lives.advance
    stage_and_settle_2 = Bulk.stage_and_settle


class BetweenElsewhere(Between):
    """The same on a store elsewhere, where no program can act for another user or define users."""

    define_users = put_asking_as_user = as_user_2 = as_user_3 = alter_user = replace_user = None  # type: ignore[assignment]
