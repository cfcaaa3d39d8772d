"""Readers inside groups (B-45): the changes that operations make to the `EnteredRow`s of a queue."""

from __future__ import annotations

from typing import Literal

from ..seam.backend import Backend
from ..seam.tables import EnteredRow, ReaderId
from .group_records import Entry
from .queue import LocalQueue


def enter(queue: LocalQueue, number: int, reader: ReaderId, group_id: bytes, entry: Entry, unit: int | None) -> None:
    """Records that a reader enters a group. If the unit is backed out, the entry of this number is removed."""
    queue.backend.save(EnteredRow(number, queue.id, group_id, reader, unit, None, entry.as_text()))
    queue.has_entries = True


def leave(
    queue: LocalQueue, reader: ReaderId, unit: int | None, open_unit: int | None, *, but: bytes | None = None
) -> None:
    """Records that the reader has left all groups, or all but one (R3.30); in a unit, this counts once it is committed.

    Args:
        open_unit: its connection's unit of work. If that holds a member of a group, the exit counts once that unit is
            committed, because a back out returns the handle to the group (C-12).
    """
    if not queue.has_entries:
        return
    for one in queue.backend.select(EnteredRow, queue=queue.id, reader=reader, left_in=None):
        if one.group_id != but:
            held = open_unit is not None and open_unit in queue.backend.takers(queue.id, one.group_id, None)
            left_in = open_unit if held else unit
            queue.backend.save(one._replace(left_in=left_in, reader=None if left_in is None else reader))


def leave_all(queue: LocalQueue, reader: ReaderId) -> bool:
    """Makes the reader leave all groups, independent of the units in which it entered or left some.

    Returns: whether it was inside one; if so, waiting calls look again.
    """
    inside = queue.backend.select(EnteredRow, queue=queue.id, reader=reader) if queue.has_entries else []
    for one in inside:
        queue.backend.save(one._replace(reader=None))
    return bool(inside)


def settle(queue: LocalQueue, unit: int, outcome: Literal["commit", "back_out", "prepare"]) -> None:
    """Confirms or undoes the entries and exits that readers made in the unit.

    For handles a prepare counts as a commit: a handle that entered stays inside, and one that left stays outside even
    if the unit is backed out. But the groups belong to the unit until then (R5.10, B-19).
    """
    if not queue.has_entries:
        return
    for one in queue.backend.select(EnteredRow, queue=queue.id):
        if unit not in (one.entered_in, one.left_in):
            continue
        if outcome == "back_out" and one.entered_in == unit:
            queue.backend.remove_records(EnteredRow, id=one.id)
            continue
        changed = one._replace(entered_in=None if one.entered_in == unit else one.entered_in)
        if one.left_in == unit and outcome != "prepare":
            changed = changed._replace(left_in=None, reader=None if outcome == "commit" else one.reader)
        queue.backend.save(changed)


def commit_idle(backend: Backend, unit: int) -> None:
    """Makes exits under a confirm id take effect, because the id now holds nothing."""
    for one in backend.select(EnteredRow, left_in=unit):
        backend.save(one._replace(reader=None, left_in=None))


def forget(queue: LocalQueue) -> None:
    """Removes the entries of groups that have no reader and no member held by a unit."""
    for one in queue.backend.select(EnteredRow, queue=queue.id, reader=None):
        if not queue.backend.takers(queue.id, one.group_id, None):
            queue.backend.remove_records(EnteredRow, id=one.id)
