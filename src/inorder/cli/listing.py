"""Shows a message on a queue: as a row of a table for people, as a record for programs."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from ..client.inspection import Gaps, MessageView
from ..client.labels import in_words, name_of, place_of, text_of
from ..formats.json_lines import record_of, when
from ..formats.property_text import write_property
from ..model.message import ANY_GROUP, ANY_SEGMENT, LAST_IN_GROUP, LAST_SEGMENT, Message
from ..stores.seam.views import Holder, SightState
from .drawing import table
from .output import NARROW
from .wording import plain, size, span

NARROW_GROUP = 12
COLOURS = (
    "dark_orange deep_sky_blue1 spring_green2 orchid gold1 light_salmon1 medium_purple1 turquoise2 chartreuse2 "
    "hot_pink steel_blue1 khaki1 indian_red1 aquamarine1 plum2 light_sky_blue1"
).split()
STATE_STYLES: Mapping[SightState, str] = {
    "available": "dim",
    "delayed": "blue",
    "put": "yellow",
    "got": "magenta",
    "locked": "red",
    "claimed": "cyan",
}
STEADY_WIDTHS = {"place": 7, "group": 8, "seq": 7, "segment": 10, "state": 16, "age": 6, "size": 5}
RIGHT = ("place", "seq", "priority", "age", "size")


# --- for people


class Rows:
    """The table of some messages.

    Args:
        sights: the messages to show. A column that would be empty for all of them is left out.
        now: the present time, for ages.
        width: the width of the terminal or the output.
        steady: more tables follow, so keep the columns and their widths the same.
    """

    def __init__(
        self, sights: Sequence[MessageView], now: float, width: int, *, is_terminal: bool, steady: bool = False
    ) -> None:
        self._now, self._narrow = now, width < NARROW
        flags = [one.message.flags for one in sights]
        columns = {
            "place": True,
            "group": any(one & (ANY_GROUP | ANY_SEGMENT) for one in flags),
            "seq": any(one & (ANY_GROUP | ANY_SEGMENT if self._narrow else ANY_GROUP) for one in flags),
            "segment": not self._narrow and any(one & ANY_SEGMENT for one in flags),
            "priority": not self._narrow or len({one.message.priority for one in sights}) > 1,
            "state": True,
            "age": True,
            "size": True,
            "properties": any(one.message.properties for one in sights),
            "preview": True,
        }
        self._columns = [name for name, is_there in columns.items() if is_there or steady]
        if self._narrow and steady:
            self._columns = [name for name in self._columns if name not in ("segment", "properties")]
        headings = ["prio" if name == "priority" else name for name in self._columns]
        self.table: Table = table(headings, right=["prio", *RIGHT])
        for name, column in zip(self._columns, self.table.columns, strict=True):
            column.no_wrap = name != "state"
            column.overflow = "fold" if name == "state" else "ellipsis"
            column.min_width = STEADY_WIDTHS.get(name) if steady else None
        self.table.columns[self._columns.index("state")].max_width = 16 if self._narrow else 44
        if self._narrow:
            self.table.padding = (0, 1, 0, 0)
            for column in self.table.columns:
                column.max_width = column.max_width or (NARROW_GROUP if column.header == "group" else None)
        if is_terminal:  # the preview gets the rest of the line
            self.table.expand, self.table.columns[-1].ratio = True, 1

    def add(self, sight: MessageView) -> None:
        """A message as a row."""
        self.table.add_row(*(_CELLS[name](self, sight) for name in self._columns))

    def note(self, group_id: bytes, missing: Gaps) -> None:
        """Adds a row that lists the missing pieces of a group."""
        cells = {
            "group": Text(name_of(group_id), colour_of(group_id)),
            "state": Text("incomplete", "bold yellow"),
            "preview": Text(f"{in_words(missing)} missing", "yellow", no_wrap=False, overflow="fold"),
        }
        self.table.add_row(*(cells.get(name, Text()) for name in self._columns))

    # --- cells

    def _place(self, sight: MessageView) -> Text:
        if sight.place is None:
            return Text("none", "dim")
        return Text(place_of(sight))

    def _group(self, sight: MessageView) -> Text:
        message = sight.message
        is_one = message.flags & (ANY_GROUP | ANY_SEGMENT)
        return Text(name_of(message.group_id), colour_of(message.group_id)) if is_one else Text()

    def _sequence(self, sight: MessageView) -> Text:
        message, flags = sight.message, sight.message.flags
        last = "last " if flags & LAST_IN_GROUP else ""
        number = f"{last}{message.sequence_number}" if flags & ANY_GROUP else ""
        offset = f" +{message.offset}" if flags & ANY_SEGMENT and self._narrow else ""
        return Text(f"{number}{offset}", colour_of(message.group_id))

    def _segment(self, sight: MessageView) -> Text:
        message = sight.message
        if not message.flags & ANY_SEGMENT:
            return Text()
        last = " last" if message.flags & LAST_SEGMENT else ""
        end = f"-{message.offset + message.length - 1}" if message.length > 1 else ""
        return Text(f"{message.offset}{end}{last}", colour_of(message.group_id))

    def _priority(self, sight: MessageView) -> Text:
        return Text(str(sight.message.priority))

    def _state(self, sight: MessageView) -> Text:
        text = Text(sight.state, STATE_STYLES[sight.state])
        if sight.due_at is not None and sight.state == "delayed":
            text.append(f", {span(sight.due_at - self._now)} left")
        if sight.holder is not None:
            text.append(f" {by_whom(sight.holder)}, {span(self._now - sight.holder.since)}")
        return text

    def _age(self, sight: MessageView) -> Text:
        return Text(span(self._now - sight.put_at))

    def _size(self, sight: MessageView) -> Text:
        return Text(size(sight.length))

    def _properties(self, sight: MessageView) -> Text:
        return Text(plain(" ".join(write_property(*one) for one in sight.message.properties.items())), "dim")

    def _preview(self, sight: MessageView) -> Text:
        return preview_of(sight.message)


_CELLS = {
    "place": Rows._place,
    "group": Rows._group,
    "seq": Rows._sequence,
    "segment": Rows._segment,
    "priority": Rows._priority,
    "state": Rows._state,
    "age": Rows._age,
    "size": Rows._size,
    "properties": Rows._properties,
    "preview": Rows._preview,
}


def by_whom(holder: Holder) -> str:
    """Names the holder of a message as `inorder unit`, `lock` and `claim` list it."""
    program = plain(holder.program.name)
    if holder.kind in ("session", "handle"):
        return f"by {program}" + (f" ({holder.process})" if holder.process is not None else "")
    kind = {
        "prepared": "prepared unit",
        "confirm": "confirm id",
        "lock": "lock id",
        "claim": "claim",
        "lease": "lease",
    }[holder.kind]
    return f"by {kind} {plain(holder.name)}"


def colour_of(group_id: bytes) -> str:
    """The colour of a group. The same group id always gets the same colour."""
    return COLOURS[zlib.crc32(group_id) % len(COLOURS)]


def preview_of(message: Message) -> Text:
    """The beginning of a body: text with control characters escaped, or hex."""
    text, more = text_of(message), "…" if message.length > len(message.body) else ""
    return Text(f"0x{message.body.hex()}{more}", "dim") if text is None else Text(f"{plain(text)}{more}")


# --- for machines


def record_of_sight(queue: str, sight: MessageView, missing: Gaps | None) -> dict[str, Any]:
    """A message as a record for `--json`; `missing` holds the gaps of its group, None if it is in none."""
    record = record_of(sight.message)
    del record["body" if "body" in record else "body_base64"]
    text = text_of(sight.message)
    return {
        "queue": queue,
        "state": sight.state,
        "holder": None if sight.holder is None else record_of_holder(sight.holder),
        "visible_since": when(sight.visible_since),
        "due_at": when(sight.due_at),
        "missing": None if missing is None or missing.is_complete else asdict(missing),
        **record,
        "preview": text,
        "preview_base64": base64.b64encode(sight.message.body).decode() if text is None else None,
    }


def record_of_holder(holder: Holder) -> dict[str, Any]:
    """The holder of a message as a record for `--json`."""
    return {
        "kind": holder.kind,
        "name": holder.name,
        "program": holder.program.name,
        "user": holder.program.user,
        "since": when(holder.since),
        "connection": holder.connection,
        "process": holder.process,
    }
