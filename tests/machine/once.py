"""Steps of a history that put once: under keys, and by schedules."""

from __future__ import annotations

from typing import Any
from unittest import mock

from hypothesis import strategies as st
from hypothesis.stateful import rule
from tests.machine import choices
from tests.machine.history import History
from tests.machine.side import Side

from inorder import Flags, Message
from inorder.work import periodic
from inorder.work.due import MISSED
from inorder.work.periodic import Periodic, Schedule

ON_TIME_SECONDS = 3.0  # so that a step of the clock makes a run late
SCHEDULES = [
    Schedule(name=missed, cron="*/5 * * * * *", queue=queue, body=b"due", missed=missed)
    for queue in ("A", "B")
    for missed in MISSED
]
names = st.sampled_from(["A", "A", "B", "ALIAS", "FAR", "BACK"])
keys = st.sampled_from(["k", "k", "m"])
lasting = st.sampled_from([2.0, 9.0, 3600.0])


class Once(History):
    """Puts of messages and whole groups under keys, in units of work and outside; schedules run by every connection."""

    @rule(
        number=choices.connections,
        name=names,
        key=keys,
        lasts=lasting,
        count=st.sampled_from([1, 1, 1, 2]),
        syncpoint=st.booleans(),
        expiry=st.sampled_from([None, None, 3.0]),
    )
    def put_under_key(
        self, number: int, name: str, key: str, lasts: float, count: int, syncpoint: bool, expiry: float | None
    ) -> None:
        number, bodies = self.free(number), [self.body(4) for _ in range(count)]
        how: dict[str, Any] = {"deduplicate": key, "deduplicate_for": lasts, "syncpoint": syncpoint}
        how |= {} if expiry is None else {"expiry": expiry}
        self.both(lambda side: side.connections[number].put_many(name, bodies, **how))

    @rule(number=choices.connections, name=names, key=keys, whole=st.sampled_from([True, True, False]),
          syncpoint=st.booleans())  # fmt: skip
    def put_group_under_key(self, number: int, name: str, key: str, whole: bool, syncpoint: bool) -> None:
        number, last = self.free(number), Flags.LAST_IN_GROUP if whole else Flags.IN_GROUP
        group = [Message(self.body(4), flags=Flags.IN_GROUP), Message(self.body(4), flags=last)]
        how: dict[str, Any] = {"deduplicate": key, "logical": True, "syncpoint": syncpoint}
        self.both(lambda side: side.connections[number].put_many(name, group, **how))

    @rule(
        one=choices.connections,
        other=choices.connections,
        names=st.tuples(names, names),
        key=keys,
        lasts=lasting,
        passes=st.sampled_from([0.0, 1.0, 5.0]),
        outcome=st.sampled_from([None, "commit", "commit", "back_out"]),
    )
    def put_twice(
        self, one: int, other: int, names: tuple[str, str], key: str, lasts: float, passes: float, outcome: str | None
    ) -> None:
        """Puts twice under one key: first alone or in a unit of work, which is then settled, and later once more."""
        first = self.free(one)
        given: dict[str, Any] = {"name": names[0], "key": key, "lasts": lasts, "count": 1, "expiry": None}
        self.put_under_key(number=first, syncpoint=outcome is not None, **given)
        self.both(lambda side: side.advance(passes))
        if outcome is not None:
            verb = outcome
            self.both(lambda side: getattr(side.connections[first], verb)())
            self.both(lambda side: side.advance(passes))
        self.put_under_key(number=other, syncpoint=False, **{**given, "name": names[1]})

    @rule(number=choices.connections, schedule=st.sampled_from(SCHEDULES))
    def put_due(self, number: int, schedule: Schedule) -> None:
        """A process that has just started puts what is due."""
        number = self.free(number)

        def step(side: Side) -> Any:
            with mock.patch.object(periodic, "ON_TIME_SECONDS", ON_TIME_SECONDS):
                return [run.due for run in Periodic(side.connections[number], [schedule]).put_due()]

        self.both(step)
