"""What an audit comes to, in numbers: for programs (JSON) and for a terminal."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documents do

from .archive import is_member
from .findings import COUNTED, GROUP, KINDS, PUT_EARLIER, Promised

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What one pass over the rows counts; times are seconds since 1970, None where there is no row."""

    messages: int
    queues: int
    members: int
    bytes: int
    first_put_at: float | None
    last_put_at: float | None
    first_delivery: int | None
    last_delivery: int | None

    @classmethod
    def of(cls, rows: DataFrame) -> Totals:
        put_at = F.unix_micros("put_at") / 1e6
        found = rows.agg(
            F.count(F.lit(1)).alias("messages"),
            F.size(F.collect_set("queue")).alias("queues"),
            F.count_if(is_member()).alias("members"),
            F.coalesce(F.sum(F.col("length").cast("long")), F.lit(0)).alias("bytes"),
            F.min(put_at).alias("first_put_at"),
            F.max(put_at).alias("last_put_at"),
            F.min("delivery_number").alias("first_delivery"),
            F.max("delivery_number").alias("last_delivery"),
        ).first()
        assert found is not None, "an aggregate without keys has one row"
        return cls(**found.asDict())


@dataclass(frozen=True, slots=True)
class Count:
    """How many notes have these in common: of findings their kind, of groups their size in bits; and their slice.

    `missing` is how many delivery numbers they say are missing.
    """

    kind: str
    severity: str
    slice: int
    bits: int | None
    complete: bool | None
    count: int
    missing: int | None


def count_notes(notes: DataFrame, slice_of: Column) -> list[Count]:
    """All notes, counted: some thousand counts at most.

    Args:
        slice_of: the slice of the deliveries of a note.
    """
    gap = [F.when(F.col("kind") == "delivery_gap", F.col(name)).cast("bigint") for name in ("found", "expected")]
    bits = F.floor(F.log2("size")).cast("int")
    counted = notes.groupBy("kind", "severity", slice_of.alias("slice"), bits.alias("bits"), "complete").agg(
        F.count(F.lit(1)).alias("count"), F.sum(gap[0] - gap[1]).alias("missing")
    )
    return [Count(*row) for row in counted.collect()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """The summary of an audit.

    Args:
        order: what the reader was promised.
        messages: rows of the archive.
        groups: groups and segmented messages; `incomplete_groups` of them have a fault.
        bytes: of all bodies.
        first_put_at, last_put_at: seconds since 1970; None: no message has a time.
        put_earlier: messages put before the one that stands before them: many where the queue's order is commit.
        missing: delivery numbers that the archive lacks.
        errors, notes: findings of each kind.
    """

    order: Promised
    messages: int
    queues: int
    groups: int
    incomplete_groups: int
    bytes: int
    first_put_at: float | None
    last_put_at: float | None
    first_delivery: int | None
    last_delivery: int | None
    put_earlier: int
    missing: int
    errors: dict[str, int]
    notes: dict[str, int]

    @classmethod
    def of(cls, totals: Totals, counts: Sequence[Count], *, order: Promised) -> Audited:
        """The summary of what was counted."""
        number = Counter[tuple[str, str]]()
        for count in counts:
            number[count.kind, count.severity] += count.count
        return cls(
            order=order,
            messages=totals.messages,
            queues=totals.queues,
            groups=number[GROUP, COUNTED],
            incomplete_groups=sum(count.count for count in counts if count.kind == GROUP and not count.complete),
            bytes=totals.bytes,
            first_put_at=totals.first_put_at,
            last_put_at=totals.last_put_at,
            first_delivery=totals.first_delivery,
            last_delivery=totals.last_delivery,
            put_earlier=number[PUT_EARLIER, COUNTED],
            missing=sum(count.missing or 0 for count in counts),
            errors={kind: number[kind, "error"] for kind in KINDS},
            notes={kind: number[kind, "note"] for kind in KINDS},
        )

    @property
    def error_count(self) -> int:
        return sum(self.errors.values())

    @property
    def note_count(self) -> int:
        return sum(self.notes.values())

    @property
    def doubled(self) -> int:
        """Messages that stand in the archive once more; where they have no unique id, by their delivery number."""
        return self.errors["message_repeated"] or self.errors["delivery_repeated"]

    def as_json(self) -> str:
        values = {
            **asdict(self),
            "doubled": self.doubled,
            "error_count": self.error_count,
            "note_count": self.note_count,
        }
        return json.dumps(values, indent=2)

    def as_text(self) -> str:
        """A table for a terminal."""
        kinds = [(kind, "error", count) for kind, count in self.errors.items() if count]
        kinds += [(kind, "note", count) for kind, count in self.notes.items() if count]
        lines = [self.verdict(), "", *(f"{name:<20} {value}" for name, value in self.facts().items())]
        if kinds:
            lines += ["", f"{'finding':<22} {'weight':<7} {'count':>12}  meaning"]
            lines += [f"{kind:<22} {weight:<7} {count:>12,}  {KINDS[kind].meaning}" for kind, weight, count in kinds]
        return "\n".join(lines)

    def verdict(self) -> str:
        """One sentence."""
        if self.error_count == 0:
            return f"No error in {self.messages:,} messages: {PROVED[self.order]}."
        return f"{', '.join(self.losses())} in {self.messages:,} messages: the order is not what was promised."

    def losses(self) -> list[str]:
        """What was lost or done wrong, in numbers; what is said so already is not said again."""
        overtakes = self.errors["overtake"] + self.errors["overtake_in_group"]
        groups = f"{self.incomplete_groups:,} group{'' if self.incomplete_groups == 1 else 's'} not whole"
        found = [
            (self.missing, f"{self.missing:,} missing"),
            (self.doubled, f"{self.doubled:,} doubled"),
            (overtakes, f"{overtakes:,} out of order"),
            (self.incomplete_groups, groups),
        ]
        errors = "1 error" if self.error_count == 1 else f"{self.error_count:,} errors"
        return [text for number, text in found if number] or [errors]

    def facts(self) -> dict[str, str]:
        """What was counted, in words."""
        deliveries = "none" if self.first_delivery is None else f"{self.first_delivery:,} to {self.last_delivery:,}"
        return {
            "promised order": self.order,
            "messages": f"{self.messages:,} on {self.queues:,} queue{'' if self.queues == 1 else 's'}",
            "bytes of bodies": f"{self.bytes:,}",
            "groups": f"{self.groups:,}, {self.incomplete_groups:,} of them not whole" if self.groups else "none",
            "delivery numbers": deliveries,
            "first put": _time(self.first_put_at),
            "last put": _time(self.last_put_at),
            "put out of order": f"{self.put_earlier:,} messages, not by itself an error",
        }


PROVED = {
    "physical": "nothing is missing, and each message came behind those that stood before it",
    "logical": "nothing is missing, and each group came whole where its first message stood",
    "none": "nothing is missing, and every group is whole",
}


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    return (EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S UTC")
