"""The bulk steps of an actor: claims, surveys, staged rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from inorder.client.bulk import NO_LIMIT, BulkBrowser, ClaimReader, Stager
from inorder.client.manager import QueueManager
from inorder.model.fields import GIVEN
from inorder.model.message import NO_ID, Message
from inorder.model.options import GetOptions, OpenOptions
from inorder.rules.ordering import UNSET, Cursor
from inorder.rules.staged_columns import KEYS
from inorder.stores.seam.records import BULK_COLUMNS, BulkRow, LedgerKey, Slice

from .actors import FOR_BROWSE, READ_ORDERS, NameTable, StepOutcome, number, one_of
from .language import ScenarioStep
from .once import OnceActor

APPLICATION = "app"  # the default of a step
LASTS_SECONDS = 3600.0
FOR_CLAIMS = OpenOptions(input="shared")


class BulkActor(OnceActor):
    """An actor with its applications, its surveys and its stagings."""

    def __init__(self, manager: QueueManager, table: NameTable) -> None:
        super().__init__(manager, table)
        self._readers: dict[tuple[str, str, str], ClaimReader] = {}
        self._surveyed: dict[tuple[str, str], Cursor] = {}
        self._stagers: dict[tuple[str, str], Stager] = {}

    # --- claims

    def _reader(self, handle: str, step: ScenarioStep) -> ClaimReader:
        queue, application = self._queue(handle, step, FOR_CLAIMS), step.keys.get("app", APPLICATION)
        known = handle, queue.name, application
        if known not in self._readers:
            self._readers[known] = ClaimReader(queue, application)
        return self._readers[known]

    def _begun(self, handle: str, step: ScenarioStep) -> ClaimReader:
        reader = self._reader(handle, step)
        if reader.epoch is None:
            reader.begin()
        return reader

    def _begin_claims(self, handle: str, step: ScenarioStep) -> StepOutcome:
        start = self._reader(handle, step).begin()
        return StepOutcome("ok", facts={"settled": start.settled, "horizon": start.horizon})

    def _claim(self, handle: str, step: ScenarioStep) -> StepOutcome:
        reader, horizon = self._begun(handle, step), step.keys.get("horizon")
        claim = reader.claim(
            number(step.names[0]),
            self._in_bulk(step),
            most=number(step.keys.get("most", str(NO_LIMIT))),
            most_bytes=number(step.keys.get("bytes", str(NO_LIMIT))),
            horizon=None if horizon is None else self._table.lock_of(horizon),
            ahead="ahead" in step.flags,
        )
        if claim is None:
            return StepOutcome("none")
        if "ahead" in step.flags:
            return StepOutcome("number", str(claim.messages))
        names = self._rows(reader.read(Slice(claim.number, 1, claim.messages, claim.delivered)))
        return StepOutcome("list", "", names, facts={"claim": claim.number, "more": "yes" if claim.more else "no"})

    def _plan_claim(self, handle: str, step: ScenarioStep) -> StepOutcome:
        slices = self._slices(self._begun(handle, step), step)
        return StepOutcome("list", "", tuple(f"{one.first}-{one.last}" for one in slices))

    def _read_claim(self, handle: str, step: ScenarioStep) -> StepOutcome:
        reader = self._begun(handle, step)
        names = [name for one in self._slices(reader, step) for name in self._rows(reader.read(one))]
        return StepOutcome("list", "", tuple(names))

    def _slices(self, reader: ClaimReader, step: ScenarioStep) -> Iterable[Slice]:
        claim = number(step.names[0])
        return reader.plan(claim - 1, claim, number(step.keys.get("slices", "1")))

    def _settle_claims(self, handle: str, step: ScenarioStep) -> StepOutcome:
        return StepOutcome("number", str(self._begun(handle, step).settle(number(step.names[0]))))

    def _return_ahead(self, handle: str, step: ScenarioStep) -> StepOutcome:
        return StepOutcome("number", str(self._begun(handle, step).return_ahead()))

    # --- surveys

    def _survey(self, handle: str, step: ScenarioStep) -> StepOutcome:
        queue = self._queue(handle, step, FOR_BROWSE)
        if step.names[0] not in ("first", "next"):
            raise ValueError(f"survey takes first or next, not {step.names[0]!r}")
        known, browser = (handle, queue.name), BulkBrowser(queue)
        survey = browser.survey(
            self._in_bulk(step),
            cursor=self._surveyed.get(known, UNSET) if step.names[0] == "next" else UNSET,
            most=number(step.keys.get("most", str(NO_LIMIT))),
            most_bytes=number(step.keys.get("bytes", str(NO_LIMIT))),
            slices=number(step.keys.get("slices", "1")),
        )
        self._surveyed[known] = survey.cursor
        names = [name for stretch in survey.stretches for name in self._rows(browser.read(stretch))]
        return StepOutcome("list", "", tuple(names))

    def _in_bulk(self, step: ScenarioStep) -> GetOptions:
        order: Any = one_of(step.flags & READ_ORDERS) if step.flags & READ_ORDERS else None
        flags: dict[str, Any] = {flag.replace("-", "_"): True for flag in step.flags - READ_ORDERS - {"ahead"}}
        return GetOptions(read_order=order, **flags)

    def _rows(self, pages: Iterable[Sequence[BulkRow]]) -> tuple[str, ...]:
        return tuple(self._table.name_of(_message(row)) for page in pages for row in page)

    # --- staged rows

    def _stage(self, handle: str, step: ScenarioStep) -> StepOutcome:
        name, body = step.names
        queue = self._queue(handle, step, OpenOptions(output=True))
        lasts = float(step.keys.get("lasts", LASTS_SECONDS))
        stager = self._stagers.setdefault((queue.name, name), Stager(queue, name, lasts=lasts))
        columns: dict[str, list[Any]] = {"body": [body.encode("ascii")]}
        for key in KEYS:
            if (word := key.replace("_", "-")) in step.keys:
                columns[key] = [number(step.keys[word])]
        for name, field in GIVEN.items():
            if field.word in step.keys:
                columns[name] = [self.read_field(name, step.keys[field.word])]
        stager.stage(1, columns)
        return StepOutcome("ok")

    def _settle_staging(self, handle: str, step: ScenarioStep) -> StepOutcome:
        batch, *names = step.names
        settled = self.manager.bulk.settle_staging(LedgerKey(APPLICATION, "", batch), [
            stager.staged for name in names for (_, known), stager in self._stagers.items() if known == name
        ])  # fmt: skip
        return StepOutcome("ignored") if settled.already else StepOutcome("number", str(settled.messages))

    def _undo_staging(self, handle: str, step: ScenarioStep) -> StepOutcome:
        return StepOutcome("number", str(self.manager.bulk.undo_staging(step.names)))


def _message(row: BulkRow) -> Message:
    """A row as a message, with the fields that a table can name."""
    fields = dict(zip(BULK_COLUMNS, row, strict=True))
    return Message(
        fields["body"],
        group_id=fields["group_id"] or NO_ID,
        sequence_number=fields["sequence_number"],
        offset=fields["offset"],
        flags=fields["flags"],
    )
