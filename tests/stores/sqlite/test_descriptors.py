"""The text of a descriptor can be read in one way only; its reader finds wrong bytes in it, or in a body."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.helpers.claiming import GROUPS, PHYSICAL, Application
from tests.helpers.staged import Writer
from tests.rules.test_message_properties import NAMES, VALUES
from tests.tiers import nightly

import inorder
from inorder import Flags, Match, Message, QueueManager, connect
from inorder.cli import main
from inorder.errors import StoreDamaged
from inorder.model.fields import NO_ACCOUNTING
from inorder.model.message import Transmission
from inorder.model.properties import NO_PROPERTIES, Properties
from inorder.stores.seam.damage import DECODING
from inorder.stores.sql.descriptors import (
    FIELDS,
    KEPT,
    PROPERTIES,
    as_text,
    begun_text,
    check,
    parts_of,
    values_of,
    with_properties,
)
from inorder.stores.sqlite import SqliteStore
from inorder.stores.sqlite.checking import problems

DEFAULTS = tuple(KEPT[name] for name in FIELDS)


def values(**given: Any) -> tuple[Any, ...]:
    return tuple(given.get(name, KEPT[name]) for name in FIELDS)


def test_the_fields_are_those_of_a_message() -> None:
    assert set(FIELDS) == KEPT.keys() <= Message.FIELDS.keys()


def test_the_text_of_default_values_is_short() -> None:
    assert as_text(DEFAULTS) == as_text(values(accounting_token=NO_ACCOUNTING)) == "[]"
    assert with_properties(DEFAULTS, NO_PROPERTIES) == with_properties(DEFAULTS, Properties({})) == "[]"
    assert parts_of("[]") == ("[]", None)
    assert as_text(values(put_application_name="app", user_identifier="me")) == '["app","me"]'


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "report": st.just(64),
            "message_type": st.integers(65536, 999_999_999),
            "feedback": st.integers(0, 999_999_999),
            "encoding": st.integers(0, 2**31 - 1),
            "coded_character_set_id": st.integers(-4, 2**31 - 1),
            "format": st.text(st.characters(codec="utf-8"), max_size=8).map(lambda text: text.rstrip(" \0")),
            "user_identifier": st.text(st.characters(codec="utf-8"), max_size=12).map(lambda text: text.rstrip(" \0")),
            "transmission": st.none() | st.builds(Transmission, st.text("AB", max_size=48), st.text("AB", max_size=48)),
            "accounting_token": st.none() | st.binary(min_size=32, max_size=32).filter(any),
        },
    )
)
def test_a_written_descriptor_is_read_back_unchanged(given: dict[str, Any]) -> None:
    assert values_of(as_text(values(**given))) == values(**given)


WRONG = {
    "no JSON": "x",
    "an object": "{}",
    "too many": json.dumps([*KEPT.values(), None]),
    "a number for a text": "[7]",
    "a text that is too long": json.dumps(["x" * 29]),
    "a text with a blank at its end": '["x "]',
    "a number out of its range": '["","",0,9999999999]',
    "a number with a point": '["","",6.0]',
    "a truth": '["","",true]',
    "a token that is too short": json.dumps([*list(KEPT.values())[:-1], "00"]),
    "a token of NULs": json.dumps([*list(KEPT.values())[:-1], "00" * 32]),
    "a transmission of one name": json.dumps([*list(KEPT.values())[:-2], ["Q"]]),
    "a transmission that is a text": json.dumps([*list(KEPT.values())[:-2], "QM"]),
    "half of a character": '["\\ud800"]',
    "deep": "[" * 3000 + "]" * 3000,
    "long": "[" + " " * 5000 + "]",
    "with blanks": '["app", "me"]',
    "with a character written as its number": '["\\u0061pp"]',
    "with a default at its end": '["app",""]',
}


BEGUN = begun_text(values(put_application_name="app"))
WRONG_PROPERTIES = {
    "properties behind fewer values": '["app",\n{"a":1}]',
    "properties that are none": f"{BEGUN},\n{{}}]",
    "properties without an end": f'{BEGUN},\n{{"a":1}}',
    "properties with a blank": f'{BEGUN},\n{{"a": 1}}]',
    "properties of a list": f"{BEGUN},\n[1]]",
    "properties and more": f'{BEGUN},\n{{"a":1}},1]',
    "a value that is none": f'{BEGUN},\n{{"a":[1]}}]',
    "a number that is none": f'{BEGUN},\n{{"a":1.e}}]',
    "an odd number of hex digits": f'{BEGUN},\n{{"a":["0"]}}]',
    "a line in a text": f'{BEGUN},\n{{"a":"\n"}}]',
    "half of a character in a property": f'{BEGUN},\n{{"a":"\\ud800"}}]',
    "properties that are too long": f'{BEGUN},\n{{"a":"{"x" * 65536}"}}]',
    "all values and no properties": f"{BEGUN},\n]",
}
# The form alone does not show that these are wrong.
WRONG_TO_THE_CHECK = {
    "a name that is none": f'{BEGUN},\n{{"1":1}}]',
    "names out of their order": f'{BEGUN},\n{{"b":1,"a":1}}]',
    "a number that has no end": f'{BEGUN},\n{{"a":1e+999}}]',
}
WRONG |= WRONG_PROPERTIES


@pytest.mark.parametrize("wrong", WRONG)
def test_a_text_that_is_not_a_valid_descriptor_is_refused(wrong: str) -> None:
    with pytest.raises(DECODING):
        values_of(parts_of(WRONG[wrong])[0])
    with pytest.raises(DECODING):
        check(WRONG[wrong])


def test_the_check_finds_wrong_properties_in_a_well_formed_descriptor(store: SqliteStore) -> None:
    with connect(store) as qm:
        qm.create_queue("Q")
        qm.put("Q", b"x", properties={"a": 1})
        for text in WRONG_TO_THE_CHECK.values():
            with store.database.writing():
                store.database.connection.execute("UPDATE content SET descriptor = ?", (text,))
            assert any("its descriptor cannot be" in one for one in qm.admin.check()), text


@given(st.dictionaries(NAMES, VALUES, min_size=1))
def test_properties_are_written_after_all_values(given: dict[str, Any]) -> None:
    properties = Properties(given)
    text = with_properties(values(put_application_name="app"), properties)
    begun, found = parts_of(text)
    assert (begun, found) == (BEGUN, properties.text)
    assert values_of(begun) == values(put_application_name="app")
    assert len(json.loads(text)) == len(KEPT) + 1
    check(text)


def test_an_sql_statement_finds_the_properties_of_messages(store: SqliteStore) -> None:
    with connect(store) as qm:
        qm.create_queue("Q")
        qm.put("Q", b"x")
        qm.put("Q", b"x", properties={"a": "\n\0,]", "b": 2**60})
        found = store.database.connection.execute(f"SELECT {PROPERTIES} FROM content c ORDER BY id").fetchall()
    assert found == [(None,), (Properties({"a": "\n\0,]", "b": 2**60}).text,)]


def test_calls_that_read_a_message_with_a_wrong_descriptor_report_the_damage(store: SqliteStore) -> None:
    with connect(store) as qm:
        qm.create_queue("Q")
        number = qm.put("Q", b"x", correlation_id=b"c").uid.number
        calls: dict[str, Callable[[], object]] = {
            "get": lambda: qm.get("Q"),
            "get by id": lambda: qm.get("Q", match=Match(correlation_id=b"c")),
            "browse": lambda: next(qm.browse("Q")),
            "look": lambda: list(qm.inspect.look("Q")),
        }
        for wrong in ("no JSON", "deep", "a value that is none", "properties without an end"):
            with store.database.writing():
                store.database.connection.execute("UPDATE content SET descriptor = ?", (WRONG[wrong],))
            for name, call in calls.items():
                with pytest.raises(StoreDamaged, match=f"message {number} on queue Q: its descriptor cannot") as found:
                    print(wrong, name, call())
                assert (found.value.queue, found.value.number) == ("Q", number)
            assert any("its descriptor cannot be" in text for text in qm.admin.check()), wrong


def test_a_match_finds_exactly_the_messages_with_the_value(store: SqliteStore) -> None:
    wanted: list[dict[str, Any]] = [
        {"format": "A\0B"}, {"format": 'A"\\B'}, {"format": "Ä"}, {"encoding": 273}, {"accounting_token": b"t" * 32},
        {"application_identity_data": "id"}, {"feedback": 7}, {"put_application_name": "app"},
    ]  # fmt: skip
    with connect(store) as qm:
        qm.create_queue("Q")
        handle = qm.open("Q", output=True)
        for fields in [{"format": "A"}, *wanted]:
            handle.put(repr(fields).encode(), context="set_all", **fields)
        for fields in wanted:
            found = [message.body for message in qm.browse("Q", match=Match(**fields))]
            assert found == [repr(fields).encode()]
            default = {name: Message.FIELDS[name].default for name in fields}
            others = [message.body for message in qm.browse("Q", match=Match(**default))]
            assert others == [repr(it).encode() for it in [{"format": "A"}, *wanted] if not fields.keys() & it.keys()]


SHORT, LONG = b"<the short body>", b"<the long body>" + bytes(range(256)) * 40
GROUP = b"g".ljust(24)
IN, LAST = Flags.IN_GROUP, Flags.LAST_IN_GROUP


@pytest.fixture(params=[True, pytest.param(False, marks=nightly)], ids=["shortcuts", "long-way"])
def reopened(path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[], SqliteStore]]:
    """Opens the store, as often as it is called."""
    opened: list[SqliteStore] = []

    def reopen() -> SqliteStore:
        opened.append(SqliteStore(path, shortcuts=request.param))
        return opened[-1]

    yield reopen
    for store in opened:
        store.close_store()


def flip(path: Path, body: bytes) -> None:
    """Flips one bit in the middle of a body, in the file."""
    content = bytearray(path.read_bytes())
    beginning = body[:14]
    assert content.count(beginning) == 1, "the body stands in the file once"
    content[content.index(beginning) + 7] ^= 1
    path.write_bytes(content)


def fill(store: SqliteStore, body: bytes) -> int:
    """Puts a whole group of one message, and another message; flips a bit of the first. Returns its number."""
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
def test_a_call_that_reads_a_damaged_body_reports_the_damage(read: str, reopened: Callable[[], SqliteStore]) -> None:
    number = fill(reopened(), LONG)
    store = reopened()
    with inorder.connect(store) as qm:
        with pytest.raises(StoreDamaged, match=f"message {number} on queue Q: its body is not the one") as found:
            READS[read](store, qm)
        assert (found.value.queue, found.value.number) == ("Q", number)
        qm.back_out()
        if read != "claim":  # a claim takes it before its body is read
            assert qm.depth("Q") == 2, "the message stays in its place"
            assert [one.state for one in qm.inspect.look("Q", preview=0)] == ["available"] * 2, (
                "an operator sees it there"
            )


def test_the_check_finds_a_damaged_body_and_a_truncated_get_removes_it(
    path: Path, reopened: Callable[[], SqliteStore], capsys: pytest.CaptureFixture[str]
) -> None:
    """A get of a part of the body returns the bytes that are there; no checksum covers a part."""
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


def test_the_check_finds_the_damaged_body_of_a_staged_row(path: Path, reopened: Callable[[], SqliteStore]) -> None:
    """A staged row: its content stays in its place when the row is put."""
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


def test_the_reader_of_a_large_group_reports_a_damaged_body(path: Path, reopened: Callable[[], SqliteStore]) -> None:
    """The group is got at once, and read in pages while the unit of work is open."""
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


def test_the_crc_includes_the_number_so_that_the_body_of_another_message_is_detected(store: SqliteStore) -> None:
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
