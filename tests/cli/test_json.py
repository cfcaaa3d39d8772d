"""The page about `--json` has every key that a command tells, and no other."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.cli.conftest import Command

import inorder
from inorder import Match
from inorder.attributes import QUEUE_ATTRIBUTES
from inorder.bulk import ClaimReader
from inorder.formats.json_lines import FIELDS, FILLED_IN

PAGE = Path(__file__).parents[2] / "docs/reference/json.md"
BODY = {"body", "body_base64"}


def keys_below(heading: str) -> set[str]:
    """The keys in the table of a section. Raises: ValueError, there is no such section."""
    section = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    if section is None:
        raise ValueError(f"{PAGE.name} has no section {heading!r}")
    return set(re.findall(r"^\| `(\w+)` \|", section[1], re.MULTILINE))


@pytest.fixture
def busy(run: Command, queue: str, store: Path) -> str:
    """The queue, with something of everything on it."""
    run("put", queue, "--lines", given=b"1\n2\n3\n4\n")
    run("queue", "create", "B")
    with inorder.connect(store) as qm:
        with qm.open(queue, input="shared") as handle:
            reader = ClaimReader(handle, "copy")
            reader.claim(reader.begin().settled, most=1)
        qm.browse_and_lock(queue, Match(message_id=next(qm.browse(queue)).message_id))
        qm.put(queue, b"5", syncpoint=True)
        qm.prepare("monday")
    return queue


@pytest.mark.parametrize(
    ("heading", "command", "others"),
    [
        ("A put", "put ORDERS x", ()),
        ("A message that is browsed", "browse ORDERS", (*FIELDS, *FILLED_IN)),
        ("Messages that were moved or copied", "copy ORDERS B", ()),
        ("Messages that were moved or copied", "move ORDERS B", ()),
        ("A queue in a list", "queue list", ()),
        ("A queue as it is shown", "queue show ORDERS", tuple(QUEUE_ATTRIBUTES)),
        ("A queue that is watched", "watch --count 1", ()),
        ("A lock", "lock list", ()),
        ("A claim", "claim list", ()),
        ("A check", "check", ()),
        ("A backup", "backup copy.db", ()),
        ("An upgrade", "upgrade", ()),
    ],
)
def test_the_page_has_the_keys_of_a_command(
    run: Command, busy: str, heading: str, command: str, others: tuple[str, ...]
) -> None:
    ended = run(*command.split(), "--json")
    assert ended.status == 0
    assert ended.records[0].keys() == keys_below(heading) | set(others)


def test_the_page_has_the_keys_of_messages(run: Command, queue: str, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff")
    run("put", queue, "--file", str(tmp_path / "binary"))
    run("put", queue, "text")
    one, other = run("get", queue, "--all", "--json").records
    assert one.keys() | other.keys() == keys_below("A message")
    assert one.keys() ^ other.keys() == BODY


def test_the_page_has_the_keys_of_units(run: Command, busy: str) -> None:
    listed = set(run("unit", "list", "--json").records[0])
    shown = set(run("unit", "show", "monday", "--json").records[0])
    committed = set(run("unit", "commit", "monday", "--yes", "--json").records[0])
    assert listed | shown | committed == keys_below("A unit")
    assert (shown - listed, committed - listed) == ({"messages"}, {"done"})


def test_the_page_has_the_keys_of_connections(run: Command, store: Path, queue: str) -> None:
    with inorder.connect(store) as qm, qm.open(queue, output=True):
        [record] = run("connection", "list", "--json").records
    assert record.keys() == keys_below("A connection")


def test_the_page_has_the_keys_of_what_is_done_to_queues(run: Command) -> None:
    commands = ("create Q", "alter Q --max-depth 5", "clear Q --yes", "delete Q")
    told = [run("queue", *command.split(), "--json").records[0] for command in commands]
    assert {key for one in told for key in one} == keys_below("A queue that was created, altered, cleared or deleted")
    assert [one["done"] for one in told] == ["created", "altered", "cleared", "deleted"]


def test_the_page_has_the_keys_of_answers_and_errors(run: Command, queue: str) -> None:
    answered = run("mqsc", "--json", given=b"DISPLAY QLOCAL(*) ALL\nDELETE QLOCAL(NONE)\n")
    of_answers = keys_below("An answer of MQSC")
    assert answered.records[0].keys() == of_answers
    assert answered.records[1].keys() == of_answers | keys_below("An error")
    errors = [json.loads(run(*command.split(), "--json").err) for command in ("get NONE", "get")]
    assert {key for one in errors for key in one} == keys_below("An error")
