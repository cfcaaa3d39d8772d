"""The result of an audit in numbers: for programs (JSON) and for a terminal."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documents do

from ...stores.seam.damage import utc
from .findings import COUNTED, GROUP, KINDS, PUT_EARLIER, Promised


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The counts of one pass over the rows; times are seconds since 1970, None without rows."""

    messages: int
    queues: int
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
    """The number of notes with the same kind (for groups, the same size in bits) and slice.

    `missing` is the number of missing delivery numbers in them.
    """

    kind: str
    severity: str
    slice: int
    bits: int | None
    complete: bool | None
    count: int
    missing: int | None


def count_notes(notes: DataFrame, slice_of: Column) -> list[Count]:
    """Counts all notes; returns some thousand counts at most.

    Args:
        slice_of: the slice of the deliveries for a note.
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
        order: the promised order.
        messages: how many rows the archive has.
        groups: how many groups and segmented messages it has; `incomplete_groups` of them have a fault.
        bytes: the bytes of all bodies.
        first_put_at, last_put_at: seconds since 1970; None: no message has a time.
        put_earlier: how many messages were put earlier than the message before them: many with commit order.
        missing: how many delivery numbers the archive lacks.
        errors, notes: the number of findings of each kind.
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
        """Makes the summary from the counts."""
        number = Counter[tuple[str, str]]()
        for count in counts:
            number[count.kind, count.severity] += count.count
        return cls(
            **asdict(totals),
            order=order,
            groups=number[GROUP, COUNTED],
            incomplete_groups=sum(count.count for count in counts if count.kind == GROUP and not count.complete),
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
        """How many extra copies of messages the archive has; those without a unique id are counted by their delivery
        number.
        """
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
        """Returns a table for a terminal."""
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
        """The losses and errors, in numbers; each is mentioned once."""
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
        """Returns the counts with their names, without those that are 0."""
        facts = {
            "promised order": self.order,
            "messages": f"{self.messages:,} on {self.queues:,} queue{'' if self.queues == 1 else 's'}",
            "bytes of bodies": f"{self.bytes:,}",
        }
        if self.groups:
            broken = f"{self.incomplete_groups:,} of them not whole" if self.incomplete_groups else "all whole"
            facts["groups"] = f"{self.groups:,}, {broken}"
        if self.first_delivery is not None:
            facts["delivery numbers"] = f"{self.first_delivery:,} to {self.last_delivery:,}"
        if self.first_put_at is not None and self.last_put_at is not None:
            facts["first put"], facts["last put"] = utc_text(self.first_put_at), utc_text(self.last_put_at)
        if self.put_earlier:
            facts["put out of order"] = f"{self.put_earlier:,} messages, not by itself an error"
        return facts


PROVED = {
    "physical": "nothing is missing, and each message came after those before it on the queue",
    "logical": "nothing is missing, and each group came whole at the place of its first message",
    "none": "nothing is missing, and every group is whole",
}


def utc_text(seconds: float) -> str:
    """A time for people, from seconds since 1970."""
    return utc(seconds).strftime("%Y-%m-%d %H:%M:%S UTC")
