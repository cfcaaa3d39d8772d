"""A new field needs a line in the table, one in the keywords, and a column; then every interface has it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from tests.tiers import ON_BOTH, gate

import inorder
from inorder.stores.postgresql import drop, parse

SOURCE = Path(inorder.__file__).parent
ROW = """
    errand = Field(
        "(errand)",
        "",
        "The errand that it belongs to.",
        text(16),
        form=("Errand", "16 characters"),
        option=PutOption("NAME", "The errand that it belongs to."),
    )

"""
COLUMNS = {"sqlite": "TEXT NOT NULL DEFAULT ''", "postgresql": "text COLLATE \"C\" NOT NULL DEFAULT ''"}
DOORS = """
import json
import sys

import inorder
from inorder import GetOptions, Match, Message, Place, UniqueId
from inorder.arrow.columns import COLUMNS
from inorder.arrow.pages import Origin, batches
from inorder.cli import main
from inorder.client.bulk import BulkBrowser, ClaimReader, LedgerKey, Stager
from inorder.errors import ArgumentError
from inorder.formats import FormatError, dmpmqmsg
from inorder.formats.json_lines import lines_of, message_of
from inorder.mq.channels.sides import messages_of
from inorder.server.api.schemas import SCHEMAS
from inorder.stores.engine.group_records import Entry, entry_of
from inorder.server.console.putting import FIELDS
from inorder.server.console.putting import message_of as of_form

with inorder.connect(sys.argv[1]) as qm:
    def got(**options):
        return qm.get("Q", **options).errand

    qm.create_queue("Q")
    for way in ({}, {"logical": True}, {"match": Match(errand="spring")}, {"selector": "Root.MQMD.Priority = 0"}):
        qm.put("Q", b"", errand="spring")
        qm.put("Q", Message(b"", errand="autumn"))
        qm.put("Q", b"")
        assert got(**way) == "spring", way
        assert [one.errand for one in qm.browse("Q")] == ["autumn", ""]
        assert [one.errand for one in qm.get_many("Q", 9)] == ["autumn", ""]
    with qm.unit_of_work(), qm.group("Q") as group:
        group.put(b"1", errand="spring")
        group.put(b"2")
    with qm.open("Q", input="shared", browse=True, output=True) as queue:
        assert queue.get(logical=True).errand == "spring"  # the group that is read now is kept with its head
        assert queue.get(logical=True).errand == ""
        stager = Stager(queue, "rows", lasts=60.0)
        stager.stage(2, {"body": [b"1", b"2"], "errand": ["spring", None]})
        qm.bulk.settle_staging(LedgerKey("app", "", "1"), [stager.staged])
        browser = BulkBrowser(queue)
        (stretch,) = browser.survey(GetOptions()).stretches
        (batch,) = batches(browser.read(stretch), Origin("Q", None, 0))
        assert batch.column("errand").to_pylist() == ["spring", ""]
        reader = ClaimReader(queue, "app")
        reader.begin()
        claim = reader.claim(0, GetOptions())
        (part,) = reader.plan(0, 1, 1)
        (page,) = reader.read(part)
        assert [one.errand for one in messages_of(page)] == ["spring", ""]
        reader.settle(1)
    assert "errand" in COLUMNS
    head = Message(b"", errand="spring").with_values(uid=UniqueId("QM", 1))
    kept = json.loads(Entry(Place(0, 1, 0), head, 1, "reader", 0.0).as_text())
    assert entry_of(json.dumps(kept)).head.errand == "spring"
    kept[1].pop()
    assert entry_of(json.dumps(kept)).head.errand == ""  # an earlier release wrote it
    made = message_of(lines_of([Message(b"", errand="spring")]), "line 1")
    assert made.errand == "spring"
    try:
        list(dmpmqmsg.write([made.replace(expiry=1)], sys.stdout.buffer, goes_on=True))
    except FormatError as error:
        assert "errand: the format cannot store it, here 'spring'" in str(error)
    else:
        raise AssertionError("it was left out")
    assert SCHEMAS["Message"]["properties"]["errand"]["type"] == "string"
    assert of_form({"body": "", "errand": "spring"}).errand == "spring"
    assert "errand" in FIELDS
    try:
        Message(b"", errand="x" * 17)
    except ArgumentError as error:
        assert "errand must be a text of at most 16 characters" in str(error)
    if sys.argv[1] != ":memory:":
        assert main(["put", "Q", "body", "--errand", "spring", "--store", sys.argv[1]]) == 0
        assert got() == "spring"
        assert qm.admin.check() == []
"""
SCENARIO = """
scenario: a message says to which errand it belongs
qm queue Q                          -> ok
P put m1 errand=spring            -> ok
P stage rows m2 errand=autumn     -> ok
P settle-staging 1 rows             -> 1
B browse first                      -> m1 errand=spring
C get                               -> m1 errand=spring
C get                               -> m2 errand=autumn
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with one more field."""
    folder = tmp_path_factory.mktemp("source")
    made = folder / "inorder"
    shutil.copytree(SOURCE, made, ignore=shutil.ignore_patterns("__pycache__"))
    table = made / "model" / "fields.py"
    text = table.read_text(encoding="utf-8")
    for end, line in (("\n\nclass Descriptor", ROW), ("\n\nGIVEN: Final", "    errand: str\n")):
        before, found, after = text.partition(end)
        assert found, end
        text = before.rstrip("\n") + "\n" + line.lstrip("\n") + found + after
    table.write_text(text, encoding="utf-8")
    for kind, column in COLUMNS.items():
        schema = made / "stores" / kind / "schema.sql"
        before, found, after = schema.read_text(encoding="utf-8").partition("CREATE TABLE content (")
        columns, end, rest = after.partition("\n)")
        schema.write_text(f"{before}{found}{columns},\n    errand {column}{end}{rest}", encoding="utf-8")
    return folder


def run(source: Path, *words: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    environment["PYTHONPATH"] = os.pathsep.join([str(source), *sys.path])
    ended = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@gate
@pytest.mark.parametrize("kind", [*ON_BOTH, "memory"])
def test_a_field_added_with_a_line_and_a_column_is_in_every_interface(
    source: Path, tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    if kind != "postgresql":
        run(source, "-c", DOORS, {"sqlite": str(tmp_path / "store.db"), "memory": ":memory:"}[kind])
        return
    url = f"{request.getfixturevalue('postgresql')}?schema=errand_{uuid.uuid4().hex}"
    try:
        run(source, "-c", DOORS, url)
    finally:
        drop(parse(url))


@gate
def test_a_scenario_can_use_the_new_field(source: Path, tmp_path: Path) -> None:
    table = tmp_path / "errand.txt"
    table.write_text(SCENARIO, encoding="utf-8")
    run(source, "-m", "inorder.testing", str(table), "--store", "sqlite")
