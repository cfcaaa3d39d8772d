"""A bit of a body that flips in the file is found by whoever reads the body, and by the check."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

import pytest
from tests.helpers.claiming import GROUPS, PHYSICAL, Application
from tests.helpers.staged import Writer
from tests.tiers import nightly

import inorder
from inorder import Flags, Match, QueueManager
from inorder.cli import main
from inorder.errors import StoreDamaged
from inorder.stores.sqlite import SqliteStore
from inorder.stores.sqlite.checking import problems

SHORT, LONG = b"<the short body>", b"<the long body>" + bytes(range(256)) * 40
GROUP = b"g".ljust(24)
IN, LAST = Flags.IN_GROUP, Flags.LAST_IN_GROUP


@pytest.fixture(params=[True, pytest.param(False, marks=nightly)], ids=["shortcuts", "long-way"])
def reopened(path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[], SqliteStore]]:
    """Opens the store, also once more."""
    opened: list[SqliteStore] = []

    def reopen() -> SqliteStore:
        opened.append(SqliteStore(path, shortcuts=request.param))
        return opened[-1]

    yield reopen
    for store in opened:
        store.close_store()


def flip(path: Path, body: bytes) -> None:
    """One bit in the middle of a body, in the file."""
    content = bytearray(path.read_bytes())
    beginning = body[:14]
    assert content.count(beginning) == 1, "the body stands in the file once"
    content[content.index(beginning) + 7] ^= 1
    path.write_bytes(content)


def fill(store: SqliteStore, body: bytes) -> int:
    """A queue whose first message has this body, a whole group of one; one bit flips. The message's number."""
    with inorder.connect(store) as qm:
        qm.create_queue("Q")
        put = qm.put("Q", body, group_id=GROUP, sequence_number=1, flags=LAST)
        qm.put("Q", b"another")
    store.close_store()
    flip(Path(store.path), body)
    return put.uid.number


def claimed(store: SqliteStore, _: QueueManager) -> None:
    app = Application(store)
    app.claim(0, PHYSICAL)
    app.rows(1)


READS: dict[str, Callable[[SqliteStore, QueueManager], object]] = {
    "get": lambda _, qm: qm.get("Q"),
    "get of many": lambda _, qm: qm.get_many("Q", 2),
    "get in a unit": lambda _, qm: qm.get("Q", syncpoint=True),
    "strict get": lambda _, qm: qm.get("Q", read_order="strict"),
    "logical get": lambda _, qm: qm.get("Q", logical=True),
    "get of a match": lambda _, qm: qm.get("Q", match=Match(group_id=GROUP)),
    "get with a confirm id": lambda _, qm: qm.get("Q", confirm_id=7),
    "get of a group": lambda _, qm: list(qm.get_group("Q")),
    "browse": lambda _, qm: list(qm.browse("Q")),
    "strict browse": lambda _, qm: list(qm.browse("Q", read_order="strict")),
    "logical browse": lambda _, qm: list(qm.browse("Q", logical=True)),
    "browse and lock": lambda _, qm: qm.browse_and_lock("Q"),
    "claim": claimed,
    "survey": lambda store, _: Application(store).survey(PHYSICAL),
    "survey of groups": lambda store, _: Application(store).survey(GROUPS),
}


@pytest.mark.parametrize("read", READS)
def test_who_reads_the_body_is_told(read: str, reopened: Callable[[], SqliteStore]) -> None:
    number = fill(reopened(), LONG)
    store = reopened()
    with inorder.connect(store) as qm:
        with pytest.raises(StoreDamaged, match=f"message {number} on queue Q: its body is not the one") as found:
            READS[read](store, qm)
        assert (found.value.queue, found.value.number) == ("Q", number)
        qm.back_out()
        if read != "claim":  # a claim takes it before anybody reads it
            assert qm.depth("Q") == 2, "the message stays in its place"
            assert [one.state for one in qm.inspect.look("Q", preview=0)] == ["available"] * 2, (
                "an operator sees it there"
            )


def test_the_check_finds_it_and_it_can_be_taken_away(
    path: Path, reopened: Callable[[], SqliteStore], capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever asks for a part of the body is given what is there: nothing says that it is what was put."""
    number = fill(reopened(), LONG)
    store = reopened()
    (found,) = problems(store.database)
    assert found.startswith(f"message {number} on queue Q: its body is not the one that was put: its CRC-32 is 0x")
    assert main(["check", "--json", "--store", str(path)]) == 1
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["sound"], told["problems"]) == (False, [found])
    with inorder.connect(store) as qm:
        message = qm.get("Q", buffer=20, accept_truncated=True)
        assert len(message.body) == 20
        assert message.body != LONG[:20]
        assert qm.get("Q").body == b"another"
        assert qm.admin.check() == []


def test_what_has_no_message_to_tell_of_is_found_by_the_check(path: Path, reopened: Callable[[], SqliteStore]) -> None:
    """A staged row: its content stays where it is when it is put."""
    store = reopened()
    qm = inorder.connect(store)
    qm.create_queue("Q")
    Writer(store, qm).stage("name", [SHORT])
    qm.close()
    store.close_store()
    flip(path, SHORT)
    store = reopened()
    (found,) = problems(store.database)
    assert "its body is not the one that was put" in found
    with inorder.connect(store) as qm:
        writer = Writer(store, qm)
        writer.counts["name"] = 1
        writer.settle("name")
        with pytest.raises(StoreDamaged, match="on queue Q: its body is not the one"):
            qm.get("Q")


def test_so_does_the_reader_of_a_large_group(path: Path, reopened: Callable[[], SqliteStore]) -> None:
    """It is got at once, and read in pages while the unit of work is open."""
    store = reopened()
    with inorder.connect(store) as qm:
        qm.create_queue("Q")
        with qm.group("Q") as group:
            for number in range(1, 700):
                group.put(SHORT if number == 690 else b"m")
    store.close_store()
    flip(path, SHORT)
    with inorder.connect(reopened()) as qm:
        with pytest.raises(StoreDamaged, match="its body is not the one"):
            list(qm.get_group("Q"))
        qm.back_out()
        assert qm.depth("Q") == 699


def test_the_crc_begins_with_the_number_so_that_a_body_of_another_message_is_found(store: SqliteStore) -> None:
    with inorder.connect(store) as qm:
        qm.create_queue("Q")
        number = qm.put("Q", SHORT).uid.number
        qm.put("Q", b"two")
        with store.database.writing():
            execute = store.database.connection.execute
            assert execute("SELECT crc FROM content WHERE id = ?", (number,)).get == crc32(SHORT, number)
            execute("UPDATE content SET (crc, body) = (SELECT crc, body FROM content ORDER BY id DESC LIMIT 1)")
        with pytest.raises(StoreDamaged, match="its body is not the one"):
            qm.get("Q")
