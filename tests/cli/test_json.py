"""The page about `--json` has every key that a command prints, and no other."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.cli.conftest import Command

import inorder
from inorder import Match
from inorder.client.bulk import ClaimReader
from inorder.formats.json_lines import FIELDS, FILLED_IN
from inorder.model.attributes import QUEUE_ATTRIBUTES
from inorder.mq.words import COMMAND_QUEUE

PAGE = Path(__file__).parents[2] / "docs/reference/json.md"


def keys_below(heading: str) -> set[str]:
    """The keys in the table of a section. Raises: ValueError, there is no such section."""
    section = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    if section is None:
        raise ValueError(f"{PAGE.name} has no section {heading!r}")
    return set(re.findall(r"^\| `(\w+)` \|", section[1], re.MULTILINE))


@pytest.fixture
def busy(run: Command, queue: str, store: Path, tmp_path: Path) -> None:
    """Three queues, one of which has messages in several states."""
    (tmp_path / "binary").write_bytes(b"\xff")
    run("put", queue, "--lines", given=b"1\n2\n3\n4\n")
    run("put", queue, "--file", "binary")
    run("queue", "create", "B")
    run("queue", "create", COMMAND_QUEUE)
    with inorder.connect(store) as qm:
        with qm.open(queue, input="shared") as handle:
            reader = ClaimReader(handle, "copy")
            reader.claim(reader.begin().settled, most=1)
        qm.browse_and_lock(queue, Match(message_id=next(qm.browse(queue)).message_id))
        qm.put(queue, b"5", syncpoint=True)
        qm.prepare("monday")


# A section of the page, commands that print its keys, and further keys that they print.
PAGES = [
    ("A put", "put ORDERS x", ()),
    ("A message", "get ORDERS --all", ()),
    ("A message that is browsed", "browse ORDERS", (*FIELDS, *FILLED_IN)),
    ("Messages that were moved or copied", "copy ORDERS B", ()),
    ("Messages that were moved or copied", "move ORDERS B", ()),
    ("A queue in a list", "queue list", ()),
    ("A queue as it is shown", "queue show ORDERS", (*QUEUE_ATTRIBUTES,)),
    ("A queue that was created, altered, retried, cleared or deleted",
     "queue create Q; queue alter Q --max-depth 5; queue retry Q; queue clear Q --yes; queue delete Q", ()),
    ("A queue that is watched", "watch --count 1", ()),
    ("A unit", "unit list; unit show monday; unit commit monday --yes", ()),
    ("A lock", "lock list", ()),
    ("A claim", "claim list", ()),
    ("A channel that is defined",
     "queue create X --usage transmission; channel create C --transmission-queue X --connection orders.db; "
     "channel list; channel alter C --batch-size 9; channel stop C; channel start C; channel ping C; "
     "channel reset C --yes; channel delete C; connection define PARIS orders.db; "
     "channel map p(1) PARIS; channel map; channel unmap p(1)",
     ("queue", "location", "user")),
    ("A connection to another store",
     "connection define PARIS orders.db; connection defined; connection delete PARIS", ()),

    ("A store that was made", "create made.db --name PARIS", ()),
    ("A check", "check", ()),
    ("A backup", "backup copy.db", ()),
    ("A queue manager that was renamed", "rename LYON", ()),
    ("An upgrade", "upgrade", ()),
    ("The library for programs of IBM MQ",
     "mqi env; mqi build; mqi install lib; mqi headers inc; mqi cflags; mqi serve-commands --until-empty", ()),
    ("An error", "get NONE; get", ()),
]  # fmt: skip


@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize(("heading", "commands", "others"), PAGES)
def test_the_page_has_the_keys_of_a_command(
    run: Command, heading: str, commands: str, others: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    told = [run(*command.split(), "--json") for command in commands.split(";")]
    records = [json.loads(line) for one in told for line in (one.out + one.err).splitlines()]
    assert {key for one in records for key in one} == keys_below(heading) | {*others}


def test_the_page_has_the_keys_of_connections(run: Command, store: Path, queue: str) -> None:
    with inorder.connect(store) as qm, qm.open(queue, output=True):
        [record] = run("connection", "list", "--json").records
    assert record.keys() == keys_below("A connection")


def test_the_page_has_the_keys_of_channels_that_send_here(run: Command, queue: str) -> None:
    run("queue", "alter", queue, "--usage", "transmission")
    run("channel", "create", "C", "--transmission-queue", queue, "--connection", "orders.db")
    run("channel", "run", "C", "--until-empty")
    [record] = run("channel", "status", "--received", "--json").records
    assert record.keys() == keys_below("A channel that sends to this queue manager")


def test_the_page_has_the_keys_of_answers(run: Command, queue: str) -> None:
    done, refused, _ = run("mqsc", "--json", given=b"DISPLAY QLOCAL(*) ALL\nDELETE QLOCAL(NONE)\n").records
    of_answers = keys_below("An answer of MQSC")
    assert done.keys() == of_answers
    assert refused.keys() == of_answers | keys_below("An error")


def test_the_page_has_the_keys_of_definitions(run: Command, queue: str) -> None:
    [record] = run("import", "-", "--dry-run", "--json", given=b"ALTER QLOCAL(ORDERS) MAXDEPTH(5)\n").records
    assert record.keys() == keys_below("A definition that changes")
