"""`inorder browse`: a queue in either order, messages in every state, and none of them removed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.cli.conftest import Command
from tests.helpers.support import put_figure

import inorder
from inorder import Flags, Match, Message, QueueManager
from inorder.cli import browsing
from inorder.cli.listing import Rows, preview_of
from inorder.cli.output import NARROW
from inorder.client import inspection
from inorder.client.inspection import Inspect, MessageView
from inorder.client.labels import in_words, name_of
from inorder.rules.gaps import Gaps

IN, LAST, SEGMENT, END = Flags.IN_GROUP, Flags.LAST_IN_GROUP, Flags.SEGMENT, Flags.LAST_SEGMENT


@pytest.fixture
def qm(store: Path, queue: str) -> Iterator[QueueManager]:
    with inorder.connect(store, program="loader") as manager:
        yield manager


def put(qm: QueueManager, body: str, **keywords: Any) -> None:
    qm.put("ORDERS", body.encode(), **keywords)


def previews(out: str) -> list[str]:
    return [row.split()[-1] for row in out.splitlines()[2:]]


# --- rows


def test_a_browse_shows_the_physical_and_logical_orders_of_the_manual(run: Command, qm: QueueManager) -> None:
    put_figure(qm, "ORDERS")
    physical = run("browse", "ORDERS").out
    assert previews(physical) == ["A", "Y1", "Z2", "Y2", "Y3.1", "Y3.2", "Z1", "B"]
    rows = [row.split() for row in physical.splitlines()[2:]]
    assert rows[0][:3] == ["1", "0", "available"]
    assert rows[2][:5] == ["3", "Z", "last", "2", "0"]
    assert rows[4][:6] == ["5", "Y", "last", "3", "0-3", "0"]
    assert rows[5][:7] == ["6", "Y", "last", "3", "4-7", "last", "0"]
    logical = run("browse", "ORDERS", "--order", "logical").out
    assert previews(logical) == ["A", "Y1", "Y2", "Y3.1", "Y3.2", "Z1", "Z2", "B"]
    assert logical.splitlines()[0].split() == "place group seq segment prio state age size preview".split()
    assert [row.split()[0] for row in logical.splitlines()[2:]] == ["1", "2", "4", "5", "6", "7", "3", "8"]
    assert qm.depth("ORDERS") == 8


def test_a_browse_says_who_holds_a_message(run: Command, qm: QueueManager) -> None:
    for body in ("1", "2", "3", "4", "5"):
        put(qm, body, correlation_id=body.encode())
    put(qm, "later", delay=600)
    qm.get("ORDERS", syncpoint=True)
    qm.prepare("night")
    qm.get("ORDERS", confirm_id=7)
    lock_id = qm.browse_and_lock("ORDERS", Match(correlation_id=b"3")).lock_id
    put(qm, "new", syncpoint=True)
    handle = qm.open("ORDERS", browse=True)
    handle.browse_first(match=Match(correlation_id=b"4"), lock=True)
    out = run("browse", "ORDERS").out
    process = os.getpid()
    for text in (
        "got by prepared unit night, ",
        "got by confirm id 7, ",
        f"locked by lock id {lock_id}, ",
        f"locked by loader ({process}), ",
        f"put by loader ({process}), ",
        "delayed, ",
        "available  ",
    ):
        assert text in out


def test_incomplete_groups_are_marked_with_what_is_missing(run: Command, qm: QueueManager) -> None:
    put(qm, "W1", group_id=b"W", sequence_number=1, flags=IN)
    put(qm, "W4", group_id=b"W", sequence_number=4, flags=IN)
    put(qm, "X2", group_id=b"X", sequence_number=2, flags=LAST)
    put(qm, "A")
    told = "sequence 2-3 and the last missing"
    logical = run("browse", "ORDERS", "--order", "logical").out.splitlines()[2:]
    assert [row.split()[-1] for row in logical] == ["W1", "W4", "missing", "A", "X2", "missing"]
    assert told in logical[2]
    assert "sequence 1 missing" in logical[5]
    assert "incomplete" in logical[5]
    physical = run("browse", "ORDERS").out.splitlines()[2:]
    assert [row.split()[-1] for row in physical] == ["W1", "missing", "W4", "X2", "missing", "A"]
    records = run("browse", "ORDERS", "--json").records
    found = records[0]["missing"]
    assert found == {"sequences": [[2, 3]], "segments": [], "unended": [], "last": True, "more": False}
    assert records[-1]["missing"] is None


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        (Gaps(unended=(1,)), "the last segment"),
        (
            Gaps(sequences=((1, 2), (5, 5)), segments=((7, 4, 8),), last=True),
            "sequence 1-2, 5, bytes 4-7 of 7 and the last",
        ),
        (Gaps(sequences=tuple((n, n) for n in range(1, 15, 2))), "sequence 1, 3, 5, 7, 9 and more"),
    ],
)
def test_gaps_in_a_group_are_described_in_words(missing: Gaps, words: str) -> None:
    assert in_words(missing) == words


# --- limits and choices


def test_a_limited_browse_shows_the_first_messages_and_says_that_more_follow(run: Command, qm: QueueManager) -> None:
    qm.put_many("ORDERS", [b"%d" % n for n in range(1, 12)])
    ended = run("browse", "ORDERS", "--limit", "3")
    assert previews(ended.out) == ["1", "2", "3"]
    assert ended.err == "more messages follow: the depth is 11 messages; --limit N shows N of them\n"
    assert run("browse", "ORDERS", "--limit", "11").err == ""
    assert len(run("browse", "ORDERS", "--limit", "5", "--json").records) == 5


def test_without_a_limit_people_see_the_first_messages_and_json_has_all(
    run: Command, qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browsing, "LIMIT", 20)
    monkeypatch.setattr(browsing, "BLOCK", 8)
    qm.put_many("ORDERS", [b"x"] * 30)
    ended = run("browse", "ORDERS")
    assert ended.out.count("available") == 20
    assert ended.out.count("preview") == 3, "a heading for each block"
    assert "more messages follow" in ended.err
    assert len(run("browse", "ORDERS", "--json").records) == 30


def test_a_browse_selects_messages_by_state_and_field(run: Command, qm: QueueManager) -> None:
    put_figure(qm, "ORDERS")
    qm.get("ORDERS", syncpoint=True)
    put(qm, "new", syncpoint=True)
    assert previews(run("browse", "ORDERS", "--state", "got", "--state", "put").out) == ["A", "new"]
    assert previews(run("browse", "ORDERS", "--group-id", b"Z".hex(), "--order", "logical").out) == ["Z1", "Z2"]
    nothing = run("browse", "ORDERS", "--state", "locked")
    assert (nothing.status, nothing.out, nothing.err) == (0, "", "no message on ORDERS matches\n")


def test_a_browse_reports_an_empty_queue_and_an_unknown_one(run: Command, queue: str) -> None:
    assert run("browse", queue).err == "no message on ORDERS\n"
    assert run("browse", queue, "--json").out == ""
    unknown = run("browse", "ORDRES")
    assert (unknown.status, "did you mean ORDERS?" in unknown.err) == (2, True)
    run("queue", "create", "M", "--type", "model")
    assert run("browse", "M").status == 2
    run("queue", "create", "A", "--type", "alias", "--base-queue", queue)
    run("put", "A", "through an alias")
    assert "through an alias" in run("browse", "A").out


# --- previews, and control characters

EVIL = "\x1b[31mred\x07\x9b2J\u202eabc\n"


def test_no_text_of_a_message_controls_the_terminal(run: Command, store: Path, queue: str) -> None:
    with inorder.connect(store, program="\x1b]0;owned\x07") as qm:
        qm.put("ORDERS", EVIL.encode(), group_id=b"\x1b[2J", sequence_number=1, flags=IN)
        qm.put("ORDERS", b"held", syncpoint=True)
        ended = run("browse", "ORDERS")
        sights = list(qm.inspect.look("ORDERS"))
        console = Console(force_terminal=True, width=200, highlight=False, markup=False, emoji=False)
        rows = Rows(sights, 0.0, 200, is_terminal=True, steady=False)
        for sight in sights:
            rows.add(sight)
        with console.capture() as shown:
            console.print(rows.table)
    for text in (ended.out, shown.get()):
        assert not {"\x07", "\x9b", "\u202e"} & set(text)
        assert "\x1b[31mred" not in text
        assert "\x1b]0" not in text
        assert "\x1b[2J" not in text
        assert r"\x1b[31mred\x07\x9b2J\u202eabc\n" in text
    assert "\x1b" not in ended.out, "and no colours where nobody looks"


@pytest.mark.parametrize("command", [("browse", "ORDERS"), ("get", "ORDERS")])
def test_no_text_of_a_message_controls_the_terminal_in_json_output(
    run: Command, queue: str, command: tuple[str, ...]
) -> None:
    body = f"{EVIL}\u2028\U000e0041ä"
    run("put", queue, body)
    ended = run(*command, "--json")
    assert ended.out.removesuffix("\n").isprintable()
    assert "ä" in ended.out, "what is harmless stands as it is"
    told = json.loads(ended.out)
    assert told.get("preview", told.get("body")) == body


@pytest.mark.parametrize(
    ("body", "length", "shown"),
    [
        (b"text", 9, "text…"),
        ("Käse".encode()[:2], 5, "K…"),
        ("Käse".encode()[:2], 2, "0x4bc3"),
        (b"\xff\xfe", 9, "0xfffe…"),
    ],
)
def test_a_preview_is_text_or_hex(body: bytes, length: int, shown: str) -> None:
    assert preview_of(Message(body).with_values(length=length)).plain == shown


def test_a_preview_is_as_long_as_requested(run: Command, queue: str) -> None:
    run("put", queue, "x" * 500)
    assert previews(run("browse", queue, "--preview", "5").out) == ["xxxxx…"]
    assert run("browse", queue, "--preview", "5", "--json").records[0]["preview"] == "xxxxx"
    assert run("browse", queue, "--preview", "0", "--json").records[0]["length"] == 500
    run("get", queue)
    run("put", queue, "xé€")
    cut = [run("browse", queue, "--preview", str(length), "--json").records[0] for length in range(7)]
    assert [one["preview"] for one in cut] == ["", "x", "x", "xé", "xé", "xé", "xé€"]
    assert not any(one["preview_base64"] for one in cut), "text that is cut within a character is text"
    run("get", queue)
    run("put", queue, given=b"\xff\x00")
    told = run("browse", queue, "--json").records[0]
    assert (told["preview"], told["preview_base64"]) == (None, "/wA=")


@pytest.mark.parametrize(
    ("group_id", "name"),
    [
        (b"ORDER-7".ljust(24, b"\0"), "ORDER-7"),
        (b"AMQ orders      " + (26).to_bytes(8, "big"), "#26"),
        (bytes(range(24)), "000102030405060708090a0…"),
    ],
)
def test_a_group_has_a_short_name(group_id: bytes, name: str) -> None:
    assert name_of(group_id) == name


# --- JSON, and --follow


def test_json_output_has_the_place_and_the_holder_of_a_message(run: Command, qm: QueueManager) -> None:
    put(qm, "1", priority=4, syncpoint=True)
    [record] = run("browse", "ORDERS", "--json").records
    found = (record["queue"], record["state"], record["due_at"], record["visible_since"])
    assert found == ("ORDERS", "put", None, None)
    assert record["place"] == {"rank": -4, "number": 1, "ordinal": 0}
    assert record["holder"].keys() == {"kind", "name", "program", "user", "since", "connection", "process"}
    assert (record["holder"]["kind"], record["holder"]["process"]) == ("session", os.getpid())


def test_follow_misses_no_message_that_arrives_while_it_reads(
    run: Command, qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "PAGE_MESSAGES", 1)
    look, steps = Inspect.look, iter(("put", "read", "end"))

    def interfered(self: Inspect, *given: Any, **named: Any) -> Iterator[MessageView]:
        for number, sight in enumerate(look(self, *given, **named)):
            yield sight
            if number == 0 and named.get("numbered_after") == 0:  # the first page, with one message, has been read
                put(qm, "urgent, before where it reads", priority=9)
                put(qm, "behind it", priority=0)

    def paused(seconds: float) -> None:
        match next(steps):
            case "put":
                put(qm, "first", priority=5)
            case "end":
                raise KeyboardInterrupt

    monkeypatch.setattr(Inspect, "look", interfered)
    monkeypatch.setattr(browsing, "pause", paused)
    ended = run("browse", "ORDERS", "--follow", "--json")
    assert [one["preview"] for one in ended.records] == ["first", "urgent, before where it reads", "behind it"]
    assert ended.status == 130


def test_follow_restarts_on_a_recreated_queue_and_ends_when_the_queue_is_deleted(
    run: Command, qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(qm, "old")
    steps = iter(("again", "unit", "back out", "gone"))

    def paused(seconds: float) -> None:
        match step := next(steps):
            case "unit":
                put(qm, "held", syncpoint=True)
            case "back out":
                qm.back_out()
            case _:
                qm.close_queue("ORDERS")
                qm.delete_queue("ORDERS", purge=True)
                if step == "again":
                    qm.create_queue("ORDERS")
                    put(qm, "new")

    monkeypatch.setattr(browsing, "pause", paused)
    ended = run("browse", "ORDERS", "--follow", "--json")
    assert [one["preview"] for one in ended.records] == ["old", "new", "held"]
    assert ended.status == 2, "the queue is gone"


@pytest.mark.parametrize("width", [80, 140])
def test_each_message_fits_on_one_line_of_a_terminal(qm: QueueManager, width: int) -> None:
    put_figure(qm, "ORDERS")
    put(qm, "a body that is far too long for what is left of a line " * 3, priority=7)
    sights = list(qm.inspect.look("ORDERS", order="logical", preview=200))
    rows = Rows(sights, sights[0].put_at + 90, width, is_terminal=True, steady=False)
    for sight in sights:
        rows.add(sight)
    console = Console(force_terminal=True, width=width, color_system=None)
    with console.capture() as shown:
        console.print(rows.table)
    lines = shown.get().splitlines()
    assert len(lines) == 2 + 9
    assert all(len(line) <= width for line in lines)
    assert "Y3.1" in lines[6]
    assert ("last 3 +0" if width < NARROW else "0-3") in lines[6]
