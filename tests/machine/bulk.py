"""Bulk steps of a history: applications that claim, surveys, stagings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule
from tests.machine import choices
from tests.machine.history import History
from tests.machine.pairs import Failed, Returned, failed
from tests.machine.side import Side, listing

from inorder import Flags, GetOptions, InorderError, Reason, UniqueId
from inorder.client.bulk import BULK_COLUMNS, BulkBrowser, BulkRow, ClaimReader, LedgerKey, Staged, Stager, Survey

LASTS_SECONDS = 10.0
HOW_HELD: Mapping[str, Mapping[str, Any]] = {
    "in unit": {"syncpoint": True},
    "under id": {"confirm_id": 1},
    "delayed": {"delay": 5.0},
    "short": {"expiry": 5.0},
    "fleeting": {"persistent": False},
    "first": {"priority": 9},
}
HOLDS = (*HOW_HELD, "missing", "locked", "got", "marked", "")
FATES = ("restart", "over", "settle", "finish", "release", "leave group", "survey", "nothing")
Rows = tuple[Sequence[int], Mapping[str, Sequence[Any]]]


@dataclass(slots=True)
class Reader:
    """An application that claims: its handle, and the last claim that it knows."""

    handle: int
    done: int = 0
    horizon: int | None = None


class Bulk(History):
    """A history that also knows its readers and its stagings.

    Attributes:
        readers: by the name of the application.
        staged: number of rows, by the name of the staging.
    """

    def __init__(self) -> None:
        super().__init__()
        self.readers: dict[str, Reader] = {}
        self.staged: dict[str, int] = {}

    # --- claims

    def _reader(self, application: str, choice: int) -> Reader | None:
        """The reader, restarted if its handle was closed; None if it cannot start, or its connection waits."""
        reader = self.readers.get(application)
        if reader is None or reader.handle not in self.owners:
            self.begin_claims(choice, application)
            reader = self.readers.get(application)
        return None if reader is None or self.owners.get(reader.handle) in (None, *self.left.calls) else reader

    @rule(choice=choices.handles, application=choices.applications)
    def begin_claims(self, choice: int, application: str) -> None:
        handle = self.handle(choice)
        if handle is None:
            return

        def step(side: Side) -> Any:
            reader = ClaimReader(side.handles[handle], application)
            start = reader.begin()
            side.readers[application] = reader
            return start

        begun = self.both(step)
        if isinstance(begun, Returned):
            self.readers[application] = Reader(handle, begun.value.settled, begun.value.horizon)

    @rule(
        choice=choices.handles,
        application=choices.applications,
        options=choices.bulk_options,
        most=st.integers(1, 5),
        most_bytes=st.sampled_from([4, 8, 1000]),
        bounded=st.sampled_from([False, False, False, True]),
        slices=st.integers(0, 3),
        back=st.sampled_from([0, 0, 0, 0, 1, -1]),
    )
    def claim(
        self,
        *,
        choice: int,
        application: str,
        options: Mapping[str, Any],
        most: int = 5,
        most_bytes: int = 1000,
        bounded: bool = False,
        slices: int = 2,
        back: int = 0,
    ) -> None:
        """Settles the claims so far and takes the next one; reads it in this number of slices, or not at all if 0.

        With `back` it asks again for the last claim, or for one that cannot exist yet.
        """
        reader = self._reader(application, choice)
        if reader is None:
            return
        done, horizon = max(0, reader.done - back), reader.horizon if bounded else None
        limits: dict[str, Any] = {"most": most, "most_bytes": most_bytes, "horizon": horizon}

        def step(side: Side) -> Any:
            claiming = side.readers[application]
            claim = claiming.claim(done, GetOptions(**options), **limits)
            return claim, [] if claim is None or not slices else _rows_of_claim(claiming, claim.number, slices)

        outcome = self.both(step)
        claim = outcome.value[0] if isinstance(outcome, Returned) else None
        if claim is not None:
            reader.done = claim.number
        elif isinstance(outcome, Failed) and outcome.reason is Reason.FENCED:
            del self.readers[application]  # its program would restart

    @rule(
        choice=choices.handles,
        application=choices.applications,
        options=choices.bulk_options,
        most=st.integers(1, 5),
        behind=st.sampled_from([0, 0, 0, 1, -1]),
    )
    def claim_ahead(
        self, *, choice: int, application: str, options: Mapping[str, Any], most: int = 2, behind: int = 0
    ) -> None:
        """Plans the last claim, then claims the messages after it ahead of the request."""
        if (reader := self._reader(application, choice)) is None:
            return
        self.plan_claims(choice, application)
        done = max(0, reader.done - behind)
        wanted = GetOptions(**options)
        self.both(lambda side: side.readers[application].claim(done, wanted, most=most, ahead=True))

    @rule(choice=choices.handles, application=choices.applications)
    def return_ahead(self, choice: int, application: str) -> None:
        if self._reader(application, choice) is not None:
            self.both(lambda side: side.readers[application].return_ahead())

    @rule(
        choice=choices.handles,
        application=choices.applications,
        sizes=st.lists(st.integers(1, 3), min_size=1, max_size=3),
        hold=st.tuples(st.integers(0, 5), st.sampled_from(HOLDS)),
        options=choices.bulk_options,
        limits=st.fixed_dictionaries({"most": st.integers(1, 5), "most_bytes": st.sampled_from([4, 8, 1000])}),
        fate=st.sampled_from(FATES),
    )
    def claim_what_is_put(
        self,
        *,
        choice: int,
        application: str,
        sizes: list[int],
        hold: tuple[int, str],
        options: Mapping[str, Any],
        limits: Mapping[str, int],
        fate: str,
    ) -> None:
        """Puts groups and messages, one of them held or missing; claims before and after something happens."""
        for nth, (number, size) in enumerate((n, count) for count in sizes for n in range(1, count + 1)):
            if number == 1:
                self._bodies += 1
                group_id = f"c{self._bodies}".encode()
            flags = 0 if size == 1 else Flags.IN_GROUP if number < size else Flags.LAST_IN_GROUP
            where = {"group_id": group_id, "sequence_number": number, "flags": flags} if size > 1 else {}
            self._put_held(choice, where, hold[1] if nth == hold[0] else "")
        self.claim(choice=choice, application=application, options=options, **limits)
        if fate == "restart":
            self.restart_store()
        elif fate == "over":
            self.both(lambda side: side.advance(5.0))
        elif fate == "settle":
            self.settle_claims(choice, application)
        elif fate in ("finish", "release", "leave group"):
            self.operate_on_claims("A", application, fate)
        elif fate == "survey":
            self.survey(choice, {**options, "all_messages": True} if options.get("logical") else options)
        self.claim(choice=choice, application=application, options=options, **limits)

    def _put_held(self, choice: int, where: Mapping[str, Any], hold: str) -> None:
        if hold == "missing":
            return
        body, given = self.body(4), HOW_HELD.get(hold, {})
        put = self.on_handle(choice, lambda _, queue: queue.put(body, **where, **given))
        if isinstance(put, Returned) and hold in ("locked", "got", "marked"):
            match = {"message_id": put.value.message_id}
            name, other = self.left.handles[self.handle(choice) or 0].name, self.free(1)

            def step(side: Side) -> Any:
                qm, wanted = side.connections[other], side.match(match)
                own = side.translate("queue", name)
                if hold == "locked":
                    return qm.browse_and_lock(own, wanted)
                if hold == "got":
                    return qm.get(own, syncpoint=True, match=wanted)
                return listing(qm.browse(own, match=wanted, mark_co_op=True, read_order="relaxed"))

            self.both(step)

    @rule(
        choice=choices.handles,
        application=choices.applications,
        behind=st.sampled_from([1, 1, 1, 0, 2]),
        slices=st.integers(1, 4),
    )
    def plan_claims(self, choice: int, application: str, behind: int = 1, slices: int = 1) -> None:
        """Reads the last claim, one that was settled before, or one that does not exist yet."""
        if (reader := self._reader(application, choice)) is None:
            return
        done = reader.done
        upto = max(0, done + 1 - behind)
        self.both(lambda side: _rows_of_claim(side.readers[application], upto, slices, after=max(0, upto - 1)))

    @rule(choice=choices.handles, application=choices.applications, back=st.sampled_from([0, 0, 0, 1, -1]))
    def settle_claims(self, choice: int, application: str, back: int = 0) -> None:
        if (reader := self._reader(application, choice)) is None:
            return
        upto = max(0, reader.done - back)
        self.both(lambda side: side.readers[application].settle(upto))

    @rule(
        name=choices.queues,
        application=choices.applications,
        how=st.sampled_from(["finish", "release", "release", "leave group"]),
    )
    def operate_on_claims(self, name: str, application: str, how: str) -> None:
        """An operator ends the claims of an application, as after its crash."""
        reader = self.readers.get(application)
        upto = 0 if reader is None else reader.done

        def step(side: Side) -> Any:
            if how == "finish":
                return side.operator.bulk.finish_claims(name, application, upto)
            return (
                side.operator.bulk.release_claims(name, application)
                if how == "release"
                else side.operator.bulk.leave_claimed_group(name, application)
            )

        self.both(step)

    # --- surveys

    @rule(
        choice=choices.handles,
        options=choices.survey_options,
        most=st.integers(1, 5),
        most_bytes=st.sampled_from([4, 12, 1000]),
        slices=st.integers(1, 4),
    )
    def survey(
        self, choice: int, options: Mapping[str, Any], most: int = 5, most_bytes: int = 1000, slices: int = 2
    ) -> None:
        """Surveys the first messages, all messages, and in strict order those after the first survey; reads each."""
        chosen = GetOptions(**options)

        def step(side: Side, queue: Any) -> Any:
            browser = BulkBrowser(queue)
            some = browser.survey(chosen, most=most, most_bytes=most_bytes, slices=slices)
            found = [some, browser.survey(chosen, slices=slices)]
            if options.get("read_order") == "strict":
                found.append(browser.survey(chosen, cursor=some.cursor, slices=slices))
            return [(one.cursor, one.messages, one.horizon, _rows_of_survey(browser, one)) for one in found]

        self.on_handle(choice, step)

    # --- stagings

    @rule(choice=choices.handles, name=choices.staging_names, rows=choices.staged_rows())
    def stage(self, choice: int, name: str, rows: Rows) -> None:
        lengths, columns = rows
        bodies = [self.body(length) for length in lengths]

        def step(_: Side, queue: Any) -> Any:
            try:
                Stager(queue, name, lasts=LASTS_SECONDS).stage(len(bodies), {"body": bodies, **columns})
            except InorderError as error:
                return failed(error), str(error)  # its text names the row
            return None

        outcome = self.on_handle(choice, step)
        if isinstance(outcome, Returned) and outcome.value is None:
            self.staged[name] = self.staged.get(name, 0) + len(bodies)

    @rule(
        names=choices.staging_orders,
        batch=st.integers(0, 30),
        query=st.sampled_from(["", "query"]),
        wrong=st.sampled_from([0] * 9 + [1]),
    )
    def settle_staging(self, names: Sequence[str], batch: int, query: str = "", wrong: int = 0) -> None:
        """Settles the stagings that exist, or the first name; `wrong` is added to the first one's count."""
        there = [name for name in names if name in self.staged] or list(names[:1])
        stagings = [Staged(name, self.staged.get(name, 0) + (wrong if name == there[0] else 0)) for name in there]
        key = LedgerKey("app", query, str(batch) if batch else "")

        def step(side: Side) -> Any:
            settled = side.operator.bulk.settle_staging(key, stagings)
            return settled, [side.operator.bulk.in_ledger(name, key) for name in ("A", "B")]

        outcome = self.both(step)
        if isinstance(outcome, Returned):
            for name in there:
                self.staged.pop(name, None)
        elif isinstance(outcome, Failed) and outcome.reason is Reason.STAGING_GONE:  # a writer would begin again
            self.undo_staging(there)

    @rule(names=st.lists(choices.staging_names, max_size=2))
    def undo_staging(self, names: list[str]) -> None:
        self.both(lambda side: side.operator.bulk.undo_staging(names))
        for name in names:
            self.staged.pop(name, None)

    @rule(
        choice=choices.handles, parts=st.lists(choices.staged_rows(), min_size=1, max_size=3), batch=st.integers(31, 60)
    )
    def stage_and_settle(self, choice: int, parts: list[Rows], batch: int) -> None:
        """Stages and settles a batch of several writers."""
        names = [f"part {nth}" for nth in range(len(parts))]
        self.undo_staging(names)
        for name, rows in zip(names, parts, strict=True):
            self.stage(choice, name, rows)
        self.settle_staging(names, batch)

    # --- looking around

    def look_around(self) -> None:
        super().look_around()
        self.both(lambda side: side.operator.bulk.claims())


def _rows_of_claim(reader: ClaimReader, upto: int, slices: int, after: int | None = None) -> list[Any]:
    parts = reader.plan(upto - 1 if after is None else after, upto, slices)
    return [parts, _rows(page for part in parts for page in reader.read(part))]


def _rows_of_survey(browser: BulkBrowser, survey: Survey) -> list[dict[str, Any]]:
    """The rows without their places in a stretch, since each store chooses where its stretches end."""
    rows = _rows(page for part in survey.stretches for page in browser.read(part))
    for row in rows:
        del row["delivery"]
    return rows


def _rows(pages: Iterable[Sequence[BulkRow]]) -> list[dict[str, Any]]:
    """Rows by the names of their columns, without the ends of pages, which differ between stores."""
    return [_row(row) for page in pages for row in page]


def _row(row: BulkRow) -> dict[str, Any]:
    columns: dict[str, Any] = dict(zip(BULK_COLUMNS, row, strict=True))
    columns["uid"] = UniqueId(columns.pop("uid_origin"), columns.pop("uid_number"))
    return columns
